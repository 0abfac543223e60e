"""A risk map on demand, through the binding: what the callable may return, and what then."""

import sys
import threading
import weakref
from collections.abc import Callable

import numpy as np
import pytest

from mlnav import _core
from mlnav.core import CoreError

SIDE, RES = 240, 0.1
START, GOAL = (12.0, 12.0, 0.0), (20.0, 12.3)
ORIGIN = (0.0, 0.0)


def ground(*, blocked: bool) -> _core.Grid:
    """Level; `blocked`: with blocks across the straight way."""
    z = np.zeros((SIDE, SIDE), np.float32)
    if blocked:
        z[110:132:6, 152:156] = 0.5
    return _core.Grid(z, RES, *ORIGIN)


def risk_map(seed: int = 1) -> np.ndarray:
    p = np.random.default_rng(seed).random((2, SIDE, SIDE), np.float32)
    p[:, 105:137, 142:166] = 0.95
    return p


@pytest.fixture
def checker() -> _core.Checker:
    model = _core.RoverModel()
    model.limits = _core.SafetyLimits.enav_like()
    return _core.Checker.fixed_box(model, _core.FixedBoxConfig(), SIDE * SIDE)


def sized_config() -> _core.EnavConfig:
    config = _core.EnavConfig()
    config.max_map_cells = SIDE * SIDE
    config.max_risk_cells = 2 * SIDE * SIDE
    return config


@pytest.fixture
def planner(checker: _core.Checker) -> _core.EnavPlanner:
    return _core.EnavPlanner(sized_config(), checker)


@pytest.fixture
def plain_planner(checker: _core.Checker) -> _core.EnavPlanner:
    """Asks for poses along the path, and failures teach it nothing."""
    config = sized_config()
    config.riskiest_first = False
    config.risk.fail_price = 0.0
    config.memory_failures = 0
    return _core.EnavPlanner(config, checker)


class Source:
    """Returns, or raises, the same each time, and counts how often."""

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.asked = 0

    def __call__(self) -> object:
        self.asked += 1
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def plan(planner: _core.EnavPlanner, grid: _core.Grid, **more: object) -> _core.PlanResult:
    planner.reset()
    return planner.plan(grid, START, GOAL, **more)


def counts(result: _core.PlanResult) -> tuple[object, ...]:
    return (
        result.outcome,
        result.path_index,
        result.path_cost,
        result.ace_evaluations,
        result.paths_tried,
        result.commit_end,
        result.rejects,
    )


def test_stages_and_configuration() -> None:
    assert _core.STAGES == ("costmap", "heuristic", "risk", "cost_to_go", "rank", "ace")
    config = _core.EnavConfig()
    assert config.riskiest_first is True
    config.riskiest_first = False
    assert config.riskiest_first is False
    assert config.risk.fail_price > 0.0
    config.risk.fail_price = 0.5
    assert config.risk.fail_price == 0.5
    assert config.memory_failures > 0
    config.memory_failures = 0
    assert config.memory_failures == 0


@pytest.mark.parametrize("field", ["fail_price", "memory_failures"])
def test_bounds_of_what_failures_teach(checker: _core.Checker, field: str) -> None:
    config = sized_config()
    if field == "fail_price":
        config.risk.fail_price = -0.1
    else:
        config.memory_failures = -1
    with pytest.raises(CoreError, match=field):
        _core.EnavPlanner(config, checker)


def test_not_asked_where_the_cheapest_path_passes(planner: _core.EnavPlanner) -> None:
    grid = ground(blocked=False)
    source = Source((risk_map(), RES, ORIGIN))
    result = plan(planner, grid, risk_source=source)
    assert source.asked == 0
    assert not (result.risk_requested or result.risk_used or result.risk_refused)
    assert result.evaluations_before_risk == 0
    assert result.stage_s["heuristic"] == 0.0
    assert counts(result) == counts(plan(planner, grid))


def test_asked_once(planner: _core.EnavPlanner) -> None:
    source = Source((risk_map(), RES, ORIGIN))
    result = plan(planner, ground(blocked=True), risk_source=source)
    assert source.asked == 1
    assert result.outcome == "path"
    assert result.risk_requested
    assert result.risk_used
    assert 1 < result.evaluations_before_risk < result.ace_evaluations


def test_then_it_is_as_if_given(plain_planner: _core.EnavPlanner) -> None:
    planner = plain_planner
    grid = ground(blocked=True)
    p = risk_map()
    source = Source((p, RES, ORIGIN))
    result = plan(planner, grid, risk_source=source)
    assert source.asked == 1
    assert result.risk_requested
    assert result.risk_used
    assert not result.risk_refused
    assert 1 < result.evaluations_before_risk < result.ace_evaluations
    assert result.stage_s["heuristic"] > 0.0
    costs = planner.path_costs()

    given = plan(planner, grid, risk=p, risk_resolution_m=RES, risk_origin_m=ORIGIN)
    assert given.risk_used
    assert not given.risk_requested
    assert given.stage_s["heuristic"] == 0.0
    assert (given.path_index, given.path_cost) == (result.path_index, result.path_cost)
    np.testing.assert_array_equal(planner.path_costs(), costs)
    assert given.path_index != plan(planner, grid).path_index  # the map made a difference


def test_a_map_given_up_front_comes_first(planner: _core.EnavPlanner) -> None:
    source = Source((risk_map(2), RES, ORIGIN))
    given = {"risk": risk_map(), "risk_resolution_m": RES, "risk_origin_m": ORIGIN}
    result = plan(planner, ground(blocked=True), risk_source=source, **given)
    assert source.asked == 0
    assert result.risk_used
    assert not result.risk_requested


NOT_A_MAP = {
    "none": None,
    "no resolution": (risk_map(), float("nan"), ORIGIN),
    "no place": (risk_map(), RES, (float("inf"), 0.0)),
    "no cells": (np.zeros((1, 0, 5), np.float32), RES, ORIGIN),
    "too many cells": (np.zeros((3, SIDE, SIDE), np.float32), RES, ORIGIN),
}


@pytest.mark.parametrize("answer", NOT_A_MAP)
def test_without_a_usable_map_it_is_the_baseline(
    planner: _core.EnavPlanner, plain_planner: _core.EnavPlanner, answer: str
) -> None:
    grid = ground(blocked=True)
    for asks_by_cost in (False, True):
        either = planner if asks_by_cost else plain_planner
        source = Source(NOT_A_MAP[answer])
        result = plan(either, grid, risk_source=source)
        assert source.asked == 1
        assert result.risk_requested
        assert result.risk_refused
        assert not result.risk_used
        expected = plan(either, grid)
        if asks_by_cost:  # another pose of the cheapest path may have failed first
            assert (result.path_index, result.path_cost, result.paths_tried) == (
                expected.path_index,
                expected.path_cost,
                expected.paths_tried,
            )
        else:
            assert counts(result) == counts(expected)


def test_failures_are_remembered_until_reset(planner: _core.EnavPlanner) -> None:
    nothing = np.zeros((2, SIDE, SIDE), np.float32)
    given = {"risk": nothing, "risk_resolution_m": RES, "risk_origin_m": ORIGIN}
    flat = ground(blocked=False)
    plan(planner, flat, **given)
    assert planner.plan(flat, START, GOAL, **given).paths_tried == 1
    unlearned = planner.path_costs()  # after two visits
    assert plan(planner, ground(blocked=True), **given).paths_tried > 1
    planner.plan(flat, START, GOAL, **given)
    learned = planner.path_costs()
    assert (learned >= unlearned).all()
    assert (learned > unlearned + 0.1).any()
    plan(planner, flat, **given)
    planner.plan(flat, START, GOAL, **given)
    np.testing.assert_array_equal(planner.path_costs(), unlearned)


class OddError(Exception):
    pass


MISTAKES: dict[str, tuple[object, type[BaseException]]] = {
    "raises": (OddError("here"), OddError),
    "interrupted": (KeyboardInterrupt(), KeyboardInterrupt),
    "number": (3, TypeError),
    "array alone": (risk_map(), TypeError),
    "two of three": ((risk_map(), RES), TypeError),
    "words": ((risk_map(), "fine", ORIGIN), TypeError),
    "origin of one": ((risk_map(), RES, (0.0,)), TypeError),
    "float64": ((risk_map().astype(np.float64), RES, ORIGIN), CoreError),
    "big-endian": ((risk_map().astype(">f4"), RES, ORIGIN), CoreError),
    "fortran": ((np.asfortranarray(risk_map()), RES, ORIGIN), CoreError),
    "list": ((risk_map().tolist(), RES, ORIGIN), CoreError),
    "two dimensions": ((risk_map()[0], RES, ORIGIN), CoreError),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_raised_after_the_cycle(planner: _core.EnavPlanner, mistake: str) -> None:
    grid = ground(blocked=True)
    answer, error = MISTAKES[mistake]
    source = Source(answer)
    with pytest.raises(error) as caught:
        plan(planner, grid, risk_source=source)
    assert source.asked == 1
    if isinstance(answer, BaseException):
        assert caught.value is answer
    # The cycle went on to its end, without risk, and the planner is as usable as ever.
    verdicts = planner.path_verdicts()
    costs = planner.path_costs()
    expected = plan(planner, grid)
    np.testing.assert_array_equal(planner.path_verdicts(), verdicts)
    np.testing.assert_array_equal(planner.path_costs(), costs)
    assert expected.outcome == "path"


@pytest.mark.parametrize("ask", ["always", "on_failure"])
def test_the_policy_says_when_it_is_asked(checker: _core.Checker, ask: str) -> None:
    config = sized_config()
    config.risk_policy.ask = ask  # type: ignore[assignment]
    assert config.risk_policy.ask == ask
    planner = _core.EnavPlanner(config, checker)
    for blocked in (False, True):
        source = Source((risk_map(), RES, ORIGIN))
        result = plan(planner, ground(blocked=blocked), risk_source=source)
        up_front = ask == "always"
        assert source.asked == (up_front or blocked)
        assert result.risk_asked == result.risk_used == (up_front or blocked)
        assert result.risk_requested == (blocked and not up_front)
        assert (result.stage_s["heuristic"] > 0.0) == (up_front or blocked)
    with pytest.raises(CoreError, match="ask"):
        config.risk_policy.ask = "sometimes"  # type: ignore[assignment]


def test_search_work_has_a_budget(planner: _core.EnavPlanner) -> None:
    """It ends the cycle as the checker's budget does, exactly, and says which of the two it was."""
    grid = ground(blocked=True)
    full = plan(planner, grid)
    assert full.outcome == "path"
    assert full.work > full.ace_evaluations
    assert not full.work_exhausted
    for budget, enough in ((full.work, True), (full.work - 1, False), (0, False)):
        result = plan(planner, grid, work_budget=budget)
        assert (result.outcome == "path") == enough
        assert result.work_exhausted == (not enough)
        assert result.work <= budget
    assert result.outcome == "budget_exhausted"
    assert not plan(planner, grid, ace_budget=5).work_exhausted


def test_what_is_no_source_is_refused(planner: _core.EnavPlanner) -> None:
    with pytest.raises(TypeError, match="callable"):
        plan(planner, ground(blocked=False), risk_source=risk_map())


def test_arrays_live_as_long_as_the_cycle(planner: _core.EnavPlanner) -> None:
    grid = ground(blocked=True)
    expected = counts(plan(planner, grid, risk_source=lambda: (risk_map(), RES, ORIGIN)))
    kept: list[weakref.ref[np.ndarray]] = []

    def fleeting() -> tuple[np.ndarray, float, tuple[float, float]]:
        p = risk_map()
        kept.append(weakref.ref(p))
        return p, RES, ORIGIN

    before = sys.getrefcount(fleeting)
    for _ in range(5):
        assert counts(plan(planner, grid, risk_source=fleeting)) == expected
    assert sys.getrefcount(fleeting) == before
    assert [ref() for ref in kept] == [None] * 5


def test_a_read_only_map_will_do(planner: _core.EnavPlanner) -> None:
    p = risk_map()
    p.setflags(write=False)
    assert plan(planner, ground(blocked=True), risk_source=lambda: (p, RES, ORIGIN)).risk_used


def test_the_source_runs_in_the_callers_thread_while_others_go_on(
    planner: _core.EnavPlanner,
) -> None:
    grid = ground(blocked=True)
    threads = set()
    stop = threading.Event()

    def source() -> tuple[np.ndarray, float, tuple[float, float]]:
        threads.add(threading.get_ident())
        ran.wait(10.0)  # lets the other thread have the lock
        return risk_map(), RES, ORIGIN

    ran = threading.Event()
    numbers = []

    def work() -> None:
        while not stop.is_set():
            numbers.append(str(len(numbers)))
            ran.set()

    other = threading.Thread(target=work)
    other.start()
    try:
        results = [counts(plan(planner, grid, risk_source=source)) for _ in range(10)]
    finally:
        stop.set()
        other.join()
    assert threads == {threading.get_ident()}
    assert results == results[:1] * 10


@pytest.mark.parametrize("call", ["plan", "reset", "path_costs", "path_verdicts", "costmap"])
def test_a_planner_is_taken_meanwhile(planner: _core.EnavPlanner, call: str) -> None:
    grid, flat = ground(blocked=True), ground(blocked=False)
    calls: dict[str, Callable[[], object]] = {
        "plan": lambda: planner.plan(flat, START, GOAL),
        "reset": planner.reset,
        "path_costs": planner.path_costs,
        "path_verdicts": planner.path_verdicts,
        "costmap": planner.costmap,
    }
    with pytest.raises(CoreError, match="is planning"):
        plan(planner, grid, risk_source=calls[call])
    calls[call]()  # free again
    assert plan(planner, grid).outcome == "path"


def test_what_is_made_of_the_planners_checker_is_not_the_planners(
    planner: _core.EnavPlanner, checker: _core.Checker
) -> None:
    """A map given to the checker meanwhile does not reach the planner's."""
    grid, flat = ground(blocked=True), ground(blocked=False)
    alone = counts(plan(planner, grid, risk_source=lambda: None))
    assert counts(plan(planner, grid, risk_source=lambda: checker.set_map(flat))) == alone
