"""Checkers written in Python, asked by the core's planner: honest, wrong, slow and broken ones."""

import threading
from collections.abc import Callable

import numpy as np
import pytest

from mlnav import _core
from mlnav.core import CoreError

SIDE, RES = 240, 0.1
START, GOAL = (12.0, 12.0, 0.0), (20.0, 12.3)
TILT = 1 << _core.REASONS.index("tilt")
NOT_CERTIFIED = 1 << _core.REASONS.index("not_certified")
BAD_POSE = 1 << _core.REASONS.index("bad_pose")


def ground(seed: int = 3) -> _core.Grid:
    """Rocks at random, none of them at the start."""
    rng = np.random.default_rng(seed)
    z = np.zeros((SIDE, SIDE), np.float32)
    for iy, ix in rng.integers(10, SIDE - 10, (60, 2)):
        z[iy : iy + 4, ix : ix + 4] = rng.uniform(0.1, 0.5)
    z[100:140, 100:140] = 0.0
    return _core.Grid(z, RES, 0.0, 0.0)


def model() -> _core.RoverModel:
    made = _core.RoverModel()
    made.limits = _core.SafetyLimits.enav_like()
    return made


def sized_config() -> _core.EnavConfig:
    config = _core.EnavConfig()
    config.max_map_cells = SIDE * SIDE
    config.max_risk_cells = 0
    return config


def planner_of(make: Callable[[], object]) -> _core.EnavPlanner:
    return _core.EnavPlanner(sized_config(), _core.Checker.of_python(make, model()))


class Level:
    """Safe everywhere, or what `answer` makes of the poses; keeps what it was asked."""

    def __init__(self, answer: Callable[[np.ndarray], object] | None = None) -> None:
        self.answer = answer or (lambda poses: np.zeros(len(poses), np.uint16))
        self.asked: list[np.ndarray] = []
        self.grids: list[_core.Grid] = []

    def set_map(self, grid: _core.Grid) -> None:
        self.grids.append(grid)

    def reasons(self, poses: np.ndarray) -> object:
        self.asked.append(poses)
        return self.answer(poses)


def raises(error: BaseException) -> Callable[[np.ndarray], object]:
    def answer(poses: np.ndarray) -> object:
        raise error

    return answer


def outcome_of(result: _core.PlanResult) -> tuple[object, ...]:
    counts = (result.ace_evaluations, result.paths_tried, result.chosen_rank, result.ace_floor)
    return (result.outcome, result.path_index, result.path.tobytes(), *counts)


def core_checker(name: str) -> _core.Checker:
    if name == "fixed_box":
        return _core.Checker.fixed_box(model(), _core.FixedBoxConfig(), SIDE * SIDE)
    if name == "verified":
        return _core.Checker.verified(model(), _core.VerifiedConfig())
    return _core.Checker.settle(model())


# ------------------------------------------------------------------------------------------ honest


@pytest.mark.parametrize("name", ["fixed_box", "verified", "settle"])
def test_a_wrapped_core_checker_plans_the_same(name: str) -> None:
    """Cycle by cycle, down to the bits of the path and the count of evaluations."""
    plain = _core.EnavPlanner(sized_config(), core_checker(name))
    wrapped = planner_of(lambda: core_checker(name))
    pose = START
    for seed in (3, 4, 5):
        grid = ground(seed)
        expected, found = plain.plan(grid, pose, GOAL), wrapped.plan(grid, pose, GOAL)
        assert outcome_of(found) == outcome_of(expected)
        assert found.rejects == expected.rejects
        pose = expected.commit_end if expected.outcome == "path" else pose


def test_every_pose_of_a_path_has_been_asked_for_and_passed() -> None:
    """Half of the plane is forbidden: the way around it is taken."""
    made: list[Level] = []

    def right_half_only(poses: np.ndarray) -> np.ndarray:
        forbidden = (poses[:, 1] > 12.5) & (poses[:, 0] > 13)
        return np.where(forbidden, TILT, 0).astype(np.uint16)

    def make() -> Level:
        made.append(Level(right_half_only))
        return made[-1]

    result = planner_of(make).plan(ground(), START, (20.0, 15.0))
    assert result.outcome == "path" and result.rejects["tilt"] > 0
    asked = np.concatenate([poses for checker in made for poses in checker.asked])
    passed = {tuple(row) for row in asked[right_half_only(asked) == 0][:, :3]}
    assert all(tuple(row) in passed for row in result.path)
    for poses in made[-1].asked[1:]:  # poses of one sweep, close to each other
        assert poses.shape[1] == 4
        assert (np.hypot(*np.diff(poses[:, :2], axis=0).T) < 0.0501).all()
    assert np.isinf(asked[:, 3]).any()  # turning in place
    assert len(made[-1].asked) == result.ace_evaluations


def test_a_checker_that_passes_nothing_ends_the_cycle() -> None:
    nowhere = planner_of(lambda: Level(lambda poses: [NOT_CERTIFIED] * len(poses)))
    result = nowhere.plan(ground(), START, GOAL)
    assert (result.outcome, result.start_reasons) == ("start_unsafe", NOT_CERTIFIED)


def test_the_map_arrives_as_it_was_given() -> None:
    z = np.arange(45, dtype=np.float32).reshape(5, 9) * 0.01
    z[1, 2] = np.nan
    made: list[Level] = []
    checker = _core.Checker.of_python(lambda: made.append(Level()) or made[-1], model())
    checker.set_map(_core.Grid(z, 0.2, -1.0, 7.0))
    (grid,) = made[-1].grids
    np.testing.assert_array_equal(grid.z, z)
    assert (grid.resolution_m, grid.origin_m) == (0.2, (-1.0, 7.0))
    assert not grid.z.flags.writeable


def test_each_user_has_an_object_of_its_own() -> None:
    made: list[Level] = []
    checker = _core.Checker.of_python(lambda: made.append(Level()) or made[-1], model())
    first, second = ground(1), ground(2)
    checker.set_map(first)
    of_checker = made[-1]
    _core.EnavPlanner(sized_config(), checker).plan(second, START, GOAL)
    assert made[-1] is not of_checker
    np.testing.assert_array_equal(made[-1].grids[-1].z, second.z)
    assert len(of_checker.grids) == 1
    checker.reasons(np.array([[12.0, 12.0, 0.0]]))
    assert len(of_checker.asked) == 1


def test_poses_that_are_none_are_not_asked_for() -> None:
    made: list[Level] = []
    checker = _core.Checker.of_python(lambda: made.append(Level()) or made[-1], model())
    checker.set_map(ground())
    poses = np.array([[1.0, 2, 3, 0], [np.nan, 0, 0, 0], [4, 5, 6, np.inf], [0, 0, 1e9, 0]])
    assert checker.reasons(poses).tolist() == [0, BAD_POSE, 0, BAD_POSE]
    np.testing.assert_array_equal(made[-1].asked[0], poses[[0, 2]])
    assert checker.report(poses)["safe"].tolist() == [True, False, True, False]
    assert checker.reasons(np.zeros((0, 3))).shape == (0,)


def test_name_settings_and_model() -> None:
    class Tuned(Level):
        def __init__(self) -> None:
            super().__init__()
            self.settings = {"margin_m": 0.1}

    checker = _core.Checker.of_python(Tuned, model(), "mine")
    assert (checker.name, checker.settings) == ("mine", {"margin_m": 0.1})
    assert checker.model.limits.wheel_drop_max_m == 0.22
    assert _core.Checker.of_python(Level, model()).settings == {}
    with pytest.raises(CoreError, match="fixed_box checker, not fixed_box"):
        fake = _core.Checker.of_python(Level, model(), "fixed_box")
        fake.set_map(ground())
        fake.ace_map(4)


# ----------------------------------------------------------------------------------------- reports


def test_reports_have_what_the_object_provides() -> None:
    class Reporting(Level):
        def report(self, poses: np.ndarray) -> dict[str, object]:
            n = len(poses)
            return {
                "safe": np.zeros(n, bool),  # verdicts are those of reasons()
                "roll_rad": np.tile([-0.1, 0.2], (n, 1)),
                "tilt_max_rad": list(range(n)),
                "inner_steps": np.full(n, 7),
            }

    checker = _core.Checker.of_python(Reporting, model())
    checker.set_map(ground())
    report = checker.report(np.array([[1.0, 2, 3], [np.nan, 0, 0], [4, 5, 6]]))
    assert report["safe"].tolist() == [True, False, True]
    np.testing.assert_array_equal(report["roll_rad"][[0, 2]], [[-0.1, 0.2]] * 2)
    np.testing.assert_array_equal(report["tilt_max_rad"], [0, np.nan, 1])
    assert report["inner_steps"].tolist() == [7, 0, 7]
    assert np.isnan(report["pitch_rad"]).all()
    reference = core_checker("settle")
    reference.set_map(ground())
    assert report.keys() == reference.report(np.zeros((1, 3))).keys()


def test_reports_of_a_wrapped_core_checker_are_its_own() -> None:
    plain = core_checker("verified")
    wrapped = _core.Checker.of_python(lambda: core_checker("verified"), model())
    poses = np.random.default_rng(0).uniform([4, 4, -3], [20, 20, 3], (50, 3))
    for checker in (plain, wrapped):
        checker.set_map(ground())
    expected, found = plain.report(poses), wrapped.report(poses)
    for name, column in expected.items():
        assert found[name].dtype == column.dtype
        np.testing.assert_array_equal(found[name], column)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ({"tilt": [0.0]}, "a column beside:.*tilt_max_rad"),
        ({"tilt_max_rad": [0.0, 1.0]}, r"tilt_max_rad must be \(1,\) numbers"),
        ({"roll_rad": [0.0]}, r"roll_rad must be \(1, 2\) numbers"),
        ({"risk": ["high"]}, r"risk must be \(1,\) numbers"),
        ({"lookups": [-1]}, "lookups must be counts"),
        ({"lookups": [float("nan")]}, "lookups must be counts"),
    ],
)
def test_reports_that_make_no_sense_are_refused(column: dict[str, object], words: str) -> None:
    class Reporting(Level):
        def report(self, poses: np.ndarray) -> dict[str, object]:
            return column

    checker = _core.Checker.of_python(Reporting, model())
    checker.set_map(ground())
    with pytest.raises(ValueError, match=words):
        checker.report(np.array([[12.0, 12.0, 0.0]]))


# ------------------------------------------------------------------------------------------ broken


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (raises(ZeroDivisionError("mine")), ZeroDivisionError),
        (raises(KeyboardInterrupt()), KeyboardInterrupt),
        (raises(SystemExit(3)), SystemExit),
        (lambda poses: None, TypeError),
        (lambda poses: 0, TypeError),
        (lambda poses: [False] * len(poses), TypeError),  # "not safe", not "no reasons"
        (lambda poses: np.ones(len(poses), bool), TypeError),
        (lambda poses: np.zeros(len(poses)), TypeError),
        (lambda poses: np.zeros(len(poses) + 1, np.uint16), TypeError),
        (lambda poses: np.zeros((len(poses), 1), np.uint16), TypeError),
        (lambda poses: [-1] * len(poses), ValueError),
        (lambda poses: [1 << len(_core.REASONS)] * len(poses), ValueError),
    ],
)
def test_no_answer_is_no_pass(answer: Callable[[np.ndarray], object], error: type) -> None:
    checker = _core.Checker.of_python(lambda: Level(answer), model())
    checker.set_map(ground())
    with pytest.raises(error):
        checker.reasons(np.array([[12.0, 12.0, 0.0]]))
    planner = _core.EnavPlanner(sized_config(), checker)
    for _ in range(2):
        with pytest.raises(error):
            planner.plan(ground(), START, GOAL)


@pytest.mark.parametrize("calls_before", [0, 1, 5, 15])
def test_what_a_checker_raises_is_raised_when_the_cycle_is_over(calls_before: int) -> None:
    """It is not asked again in that cycle, and the next one begins afresh."""
    made: list[Level] = []
    broken = True

    def make() -> Level:
        def answer(poses: np.ndarray) -> list[int]:
            if broken and len(made[-1].asked) > calls_before:
                raise RuntimeError("out of order")
            return [0] * len(poses)

        made.append(Level(answer))
        return made[-1]

    planner = planner_of(make)
    with pytest.raises(RuntimeError, match="out of order"):
        planner.plan(ground(), START, GOAL)
    assert len(made[-1].asked) == calls_before + 1
    broken = False
    planner.reset()
    fresh = planner_of(Level)
    assert outcome_of(planner.plan(ground(), START, GOAL)) == outcome_of(
        fresh.plan(ground(), START, GOAL)
    )


def test_a_map_that_the_checker_refuses_is_not_planned_on() -> None:
    refused = [ground(1).z.tobytes()]

    class Choosy(Level):
        def set_map(self, grid: _core.Grid) -> None:
            super().set_map(grid)
            if grid.z.tobytes() in refused:
                raise LookupError("not this one")

    checker = _core.Checker.of_python(Choosy, model())
    planner = _core.EnavPlanner(sized_config(), checker)
    checker.set_map(ground(2))
    for grid, accepted in ((ground(1), False), (ground(2), True), (ground(1), False)):
        if accepted:
            assert planner.plan(grid, START, GOAL).outcome == "path"
            continue
        with pytest.raises(LookupError, match="not this one"):
            planner.plan(grid, START, GOAL)
        with pytest.raises(LookupError, match="not this one"):
            checker.set_map(grid)
    assert checker.reasons(np.array([[12.0, 12.0, 0.0]])).tolist() == [0]  # of the map before


def test_an_error_of_the_checker_goes_before_one_of_the_risk_source() -> None:
    """And neither of them waits for the next cycle."""
    answers = iter([0, TILT])

    def answer(poses: np.ndarray) -> list[int]:
        return [next(answers)] * len(poses)  # StopIteration from the third on

    def source() -> None:
        raise OSError("no map")

    config = sized_config()
    config.max_risk_cells = 4 * SIDE * SIDE
    checker = _core.Checker.of_python(lambda: Level(answer), model())
    planner = _core.EnavPlanner(config, checker)
    with pytest.raises(StopIteration):
        planner.plan(ground(), START, GOAL, risk_source=source)
    answers = iter([0] * 10_000)
    assert planner.plan(ground(), START, GOAL).outcome == "path"


def test_a_checker_may_not_call_its_planner() -> None:
    planners: list[_core.EnavPlanner] = []

    def answer(poses: np.ndarray) -> object:
        return planners[0].plan(ground(), START, GOAL)

    planners.append(planner_of(lambda: Level(answer)))
    with pytest.raises(CoreError, match="one call at a time"):
        planners[0].plan(ground(), START, GOAL)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (3, "make must make a checker"),
        (Level(), "make must make a checker"),
        (object, r"a checker needs a method set_map\(\)"),
        (type("Half", (), {"set_map": None}), r"a checker needs a method reasons\(\)"),
        (lambda: 1 // 0, "by zero"),
    ],
)
def test_what_makes_no_checker_is_refused(make: object, words: str) -> None:
    with pytest.raises((TypeError, ZeroDivisionError), match=words):
        _core.Checker.of_python(make, model())


def test_a_bad_rover_is_refused() -> None:
    bad = model()
    bad.limits.tilt_max_rad = 3.0
    with pytest.raises(CoreError, match=r"\[tilt_max_rad\]"):
        _core.Checker.of_python(Level, bad)


# ----------------------------------------------------------------------------------------- threads


def test_planners_with_python_checkers_run_in_threads() -> None:
    """Each gets what it gets alone: the interpreter's lock is given up and taken pose by pose."""
    expected = outcome_of(planner_of(lambda: core_checker("settle")).plan(ground(), START, GOAL))
    found: list[tuple[object, ...]] = []

    def plan() -> None:
        planner = planner_of(lambda: core_checker("settle"))
        found.append(outcome_of(planner.plan(ground(), START, GOAL)))

    threads = [threading.Thread(target=plan) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert found == [expected] * 4


def test_one_checker_asked_by_many_threads() -> None:
    checker = _core.Checker.of_python(
        lambda: Level(lambda poses: (poses[:, 0] > 12).astype(np.uint16)), model()
    )
    checker.set_map(ground())
    poses = np.random.default_rng(1).uniform(4, 20, (200, 3))
    found: list[bool] = []

    def ask() -> None:
        found.extend(bool((checker.reasons(poses) == (poses[:, 0] > 12)).all()) for _ in range(20))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert found == [True] * 80
