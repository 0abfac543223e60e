"""A checker answers for its own map, whatever planners, threads and owners of arrays do."""

import gc
import pickle
import threading

import numpy as np
import pytest

from mlnav import _core
from mlnav.config import Config
from mlnav.core import HeightMap
from mlnav.risk.base import RiskMap
from mlnav.sim.loop import one_cycle
from mlnav.terrain import load

NAMES = ["fixed_box", "verified", "settle", "probabilistic"]
POSES = np.array([[8.0, 8.0, 0.0], [8.0, 8.0, 1.0]])


def checker_of(name: str, cells: int = 400 * 400) -> _core.Checker:
    limits = "flight_like" if name in ("verified", "settle") else "enav_like"
    return Config().replaced(checker=name, limits=limits).build_checker(cells)


def planner_of(checker: _core.Checker) -> _core.EnavPlanner:
    config = _core.EnavConfig()
    config.max_map_cells = 160 * 160
    return _core.EnavPlanner(config, checker)


def flat(side: int = 160) -> HeightMap:
    return HeightMap(np.zeros((side, side), np.float32), 0.1, (0.0, 0.0))


def blocked(side: int = 160) -> HeightMap:
    z = np.zeros((side, side), np.float32)
    z[76:84, 76:84] = 0.7
    return HeightMap(z, 0.1, (0.0, 0.0))


@pytest.mark.parametrize("name", NAMES)
def test_a_planner_does_not_change_what_a_checker_speaks_of(name: str) -> None:
    checker = checker_of(name)
    checker.set_map(flat().grid)
    before = checker.report(POSES)
    assert before["safe"].all()
    planner = planner_of(checker)
    other = blocked()
    planner.plan(other.grid, (4.0, 4.0, 0.0), (12.0, 12.0))
    assert not checker.reasons(POSES).any()
    del other, planner
    gc.collect()
    junk = [np.full((160, 160), 9.0, np.float32) for _ in range(20)]  # over what was freed
    after = checker.report(POSES)
    for column, values in before.items():
        np.testing.assert_array_equal(values, after[column], column)
    assert junk
    checker.set_map(blocked().grid)
    assert checker.reasons(POSES).all()


def test_ace_map_has_the_shape_and_verdicts_of_its_own_map() -> None:
    small, large = load("0/.10", seed=1), load("15/.10", seed=2)
    a = HeightMap(large.z[:200, :128], 0.1, (0.0, 0.0))
    b = HeightMap(small.z[:320, :320], 0.1, (0.0, 0.0))
    checker = checker_of("fixed_box")
    checker.set_map(a.grid)
    config = _core.EnavConfig()
    config.max_map_cells = 320 * 320
    _core.EnavPlanner(config, checker).plan(b.grid, (16.0, 16.0, 0.0), (28.0, 16.0))
    labels = checker.ace_map(4)
    assert labels.shape == (4, 200, 128)
    alone = checker_of("fixed_box")
    alone.set_map(a.grid)
    np.testing.assert_array_equal(labels, alone.ace_map(4))


@pytest.mark.parametrize("name", ["fixed_box", "verified"])
def test_a_map_given_while_others_ask_mixes_nothing(name: str) -> None:
    """Every answer is of one whole map, also where it is exchanged at the same time."""
    checker = checker_of(name)
    grids = [flat().grid, blocked().grid]
    checker.set_map(grids[0])
    poses = np.tile(POSES[:1], (400 if name == "verified" else 20_000, 1))
    stop = threading.Event()
    faults: list[str] = []

    def ask() -> None:
        while not stop.is_set():
            answers = set(checker.reasons(poses).astype(bool).tolist())
            if len(answers) != 1:
                faults.append(f"answers of two maps: {answers}")

    askers = [threading.Thread(target=ask) for _ in range(3)]
    for thread in askers:
        thread.start()
    for i in range(300):
        checker.set_map(grids[i % 2])
    stop.set()
    for thread in askers:
        thread.join()
    assert faults == []


@pytest.mark.parametrize("name", NAMES)
def test_heights_edited_in_place_do_not_reach_a_map(name: str) -> None:
    z = np.zeros((160, 160), np.float32)
    heights = HeightMap(z, 0.1, (0.0, 0.0))
    grid = _core.Grid(z, 0.1, 0.0, 0.0)
    checkers = [checker_of(name), checker_of(name)]
    for checker, made_of in zip(checkers, (heights.grid, grid), strict=True):
        checker.set_map(made_of)
    z[:, 70:90] = np.nan
    for checker in checkers:
        assert not checker.reasons(POSES).any()  # of the map as it was
    assert np.isfinite(heights.z).all() and np.isfinite(grid.z).all()
    z[:] = 3.0  # the caller's array stays the caller's


def test_what_maps_hand_out_is_read_only() -> None:
    mask = np.zeros((5, 9), np.uint8)
    heights = HeightMap(np.zeros((5, 9)), 0.1, (0.0, 0.0), mask)
    mask[2, 2] = 1
    assert not heights.keep_out.any()
    risk = RiskMap(np.zeros((1, 5, 9), np.float32), 0.2, (0.0, 0.0))
    for array in (heights.z, heights.keep_out, heights.grid.z, risk.p):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 1


def test_maps_and_cycles_can_be_pickled() -> None:
    heights = HeightMap(np.arange(45.0).reshape(5, 9), 0.2, (3.0, 4.0), np.eye(5, 9))
    assert heights.grid.origin_m == (3.0, 4.0)
    again = pickle.loads(pickle.dumps(heights))
    np.testing.assert_array_equal(again.z, heights.z)
    np.testing.assert_array_equal(again.keep_out, heights.keep_out)
    assert (again.resolution_m, again.origin_m) == (0.2, (3.0, 4.0))
    assert again.grid.resolution_m == 0.2
    assert not again.z.flags.writeable

    terrain = load("10/.10", seed=3)
    config = Config().replaced(heuristic={"name": "sobel", "policy": "always"})
    _, cycle, _, _ = one_cycle(terrain, config, (10.0, 10.0), (30.0, 30.0))
    copy = pickle.loads(pickle.dumps(cycle))
    assert cycle.risk is not None and copy.risk is not None
    np.testing.assert_array_equal(copy.risk.p, cycle.risk.p)
    assert not copy.risk.p.flags.writeable
    for name in dir(cycle.result):
        if not name.startswith("_"):
            np.testing.assert_array_equal(
                getattr(copy.result, name), getattr(cycle.result, name), name
            )
    assert len(cycle.result.path) > 10


def test_a_refused_request_leaves_the_last_cycle_as_it_was() -> None:
    planner = planner_of(checker_of("verified"))
    first = flat()
    planner.plan(first.grid, (4.0, 4.0, 0.0), (12.0, 12.0))
    poses, verdicts = planner.path_poses(0), planner.path_verdicts()
    with pytest.raises(ValueError, match="pose"):
        planner.plan(blocked().grid, (400.0, 4.0, 0.0), (12.0, 12.0))
    gc.collect()
    np.testing.assert_array_equal(planner.path_poses(0), poses)
    np.testing.assert_array_equal(planner.path_verdicts(), verdicts)
    assert planner.plan(first.grid, (4.0, 4.0, 0.0), (12.0, 12.0)).outcome == "path"
