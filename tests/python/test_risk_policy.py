"""When a heuristic is asked, and that nothing it says makes a path that ACE refuses."""

import math

import numpy as np
import pytest

from mlnav.config import Config
from mlnav.core import HeightMap
from mlnav.io.records import to_json
from mlnav.nav import navigator
from mlnav.parts import names_of
from mlnav.risk import RiskMap, make_heuristic
from mlnav.sim import SimulatedNavigator, TruthSensor, at_rest, traverse
from mlnav.terrain import Terrain, benchmark_class

FIXED_BOX = Config().replaced(["traverse.max_cycles=14"], checker="fixed_box", limits="enav_like")


def level(nx=240, ny=160) -> Terrain:
    return Terrain(
        np.zeros((ny, nx)), 0.1, (0.05, 0.05), name="level", start_m=(4.0, 8.0), goal_m=(19.0, 8.0)
    )


@pytest.fixture(scope="module")
def rocky() -> Terrain:
    return benchmark_class(15.0, 0.10, seed=3)


class Made:
    """A heuristic that says whatever `make` makes of a map and pose."""

    name = "oracle"

    def __init__(self, make, max_cells=16 * 200 * 200) -> None:
        self.make, self.most, self.inferences = make, max_cells, 0

    def risk(self, local_map, pose):
        self.inferences += 1
        return self.make(local_map, pose)

    def max_cells(self, map_cells) -> int:
        return self.most

    def take_events(self) -> tuple[str, ...]:
        return ()


def square(p, pose, res=0.2) -> RiskMap:
    """Values about a pose."""
    ny, nx = p.shape[1:]
    return RiskMap(p, res, (pose[0] - 0.5 * res * nx, pose[1] - 0.5 * res * ny))


def constant(value):
    return lambda local_map, pose: square(np.full((16, 80, 80), value, np.float32), pose)


def random(seed):
    rng = np.random.default_rng(seed)
    return lambda local_map, pose: square(rng.uniform(0, 1, (16, 80, 80)).astype("f4"), pose)


def wild(seed):
    """Every kind of float, NaN and infinities among them."""
    rng = np.random.default_rng(seed)

    def make(local_map, pose):
        bits = rng.integers(0, 2**32, (7, 61, 83), dtype=np.uint32)
        return square(bits.view(np.float32), pose, 0.17)

    return make


def inverted():
    """The oracle's opposite: certain of all that fails."""
    truth = make_heuristic(FIXED_BOX.replaced(heuristic="oracle"))

    def make(local_map, pose):
        risk = truth.risk(local_map, pose)
        return RiskMap(1.0 - risk.p, risk.resolution_m, risk.origin_m)

    return make


LIES = {
    "random": lambda: random(1),
    "wild": lambda: wild(2),
    "inverted": inverted,
    "nan": lambda: constant(math.nan),
    "inf": lambda: constant(math.inf),
    "-inf": lambda: constant(-math.inf),
    "one": lambda: constant(1.0),
    "zero": lambda: constant(0.0),
    "negative": lambda: constant(-5.0),
}


def recheck(ground: Terrain, config: Config, cycles) -> int:
    """Put every pose of every returned path through a checker that knows nothing of the run."""
    sensor = TruthSensor(
        ground, config.sensor.half_width_m, align_cells=config.planner.costmap.coarsening
    )
    poses = 0
    for cycle in cycles:
        seen = sensor.window(cycle.pose)
        checker = config.build_checker(seen.z.size)
        checker.set_map(seen.grid)
        assert not checker.reasons(np.ascontiguousarray(cycle.path)).any()
        poses += len(cycle.path)
    return poses


@pytest.mark.parametrize("policy", ["always", "on_failure"])
@pytest.mark.parametrize("riskiest_first", [True, False])
@pytest.mark.parametrize("lie", LIES)
def test_no_lie_makes_a_path_that_ace_refuses(
    rocky, monkeypatch, lie, policy, riskiest_first
) -> None:
    config = FIXED_BOX.replaced(
        [
            f"heuristic.policy={policy}",
            f"planner.riskiest_first={riskiest_first}",
            "traverse.max_cycles=10",
        ],
        heuristic="oracle",
    )
    liar = Made(LIES[lie]())
    monkeypatch.setattr(navigator, "make_heuristic", lambda config: liar)
    result = traverse(rocky, config)
    # What is no risk never reaches the planner; what might be one does.
    refused = lie in ("wild", "negative")
    assert any(c.risk_missing if refused else c.risk_used for c in result.cycles)
    assert not (refused and any(c.risk_used for c in result.cycles))
    assert recheck(rocky, config, result.cycles) > 50
    assert all(c.ace_evaluations >= c.ace_floor for c in result.cycles)


@pytest.mark.parametrize("heuristic", ["sobel", "oracle"])
@pytest.mark.parametrize("policy", ["always", "on_failure"])
def test_real_heuristics_are_rechecked_too(rocky, heuristic, policy) -> None:
    config = FIXED_BOX.replaced([f"heuristic.policy={policy}"], heuristic=heuristic)
    result = traverse(rocky, config)
    assert recheck(rocky, config, result.cycles) > 50


# ------------------------------------------------------------------------------------- when asked


def test_defaults_ask_only_who_is_cheap() -> None:
    policies = {n: Config().replaced(heuristic=n).heuristic.policy for n in names_of("heuristic")}
    assert policies == {
        "none": "always", "failures": "on_failure", "sobel": "always", "network": "on_failure",
        "oracle": "on_failure",
    }  # fmt: skip


@pytest.mark.parametrize("heuristic", ["sobel", "oracle"])
def test_level_ground_asks_nobody(heuristic) -> None:
    config = FIXED_BOX.replaced(
        ["heuristic.policy=on_failure", "traverse.max_cycles=40"], heuristic=heuristic
    )
    result = traverse(level(), config)
    baseline = traverse(level(), config.replaced(heuristic="none"))
    assert result.success
    summary = result.summary()
    assert (summary["risk_requested"], summary["risk_used"], summary["inferences"]) == (0, 0, 0)
    assert all(c.timing_s["heuristic"] < 1e-3 for c in result.cycles)
    assert [c.pose for c in result.cycles] == [c.pose for c in baseline.cycles]
    assert summary["ace_evaluations"] == baseline.summary()["ace_evaluations"]


def test_on_failure_asks_where_the_cheapest_path_failed(rocky) -> None:
    config = FIXED_BOX.replaced(
        ["traverse.max_cycles=20", "heuristic.persist_cycles=0"], heuristic="oracle"
    )
    cycles = traverse(rocky, config).cycles
    assert {c.risk_requested for c in cycles} == {False, True}
    for cycle in cycles:
        assert cycle.risk_requested == cycle.risk_used == (cycle.inferences == 1)
        if cycle.risk_requested:
            assert 1 < cycle.evaluations_before_risk <= cycle.ace_evaluations
            assert cycle.timing_s["heuristic"] > 0.0
        else:
            assert cycle.chosen_rank == 0
            assert cycle.evaluations_before_risk == 0
        record = cycle.as_dict()
        assert record["risk_used"] == cycle.risk_used
        assert record["inferences"] == cycle.inferences
        assert "plan.heuristic" not in cycle.timing_s


def test_hard_ground_has_its_map_from_the_start(rocky) -> None:
    """For persist_cycles after one that needed it, and on while more than one path is tried."""
    config = FIXED_BOX.replaced(["heuristic.persist_cycles=2"], heuristic="failures")
    left, seen = 0, set()
    for cycle in traverse(rocky, config).cycles:
        if left:
            assert cycle.risk_used and not cycle.risk_requested
        needed = cycle.risk_used and (cycle.risk_requested or cycle.paths_tried > 1)
        left = 2 if needed else max(0, left - 1)
        seen.add((cycle.risk_requested, cycle.risk_used))
    assert seen >= {(True, True), (False, True)}


def test_always_asks_up_front(rocky) -> None:
    config = FIXED_BOX.replaced(["heuristic.policy=always"], heuristic="oracle")
    result = traverse(rocky, config)
    assert all(c.risk_used and not c.risk_requested and c.inferences == 1 for c in result.cycles)
    assert result.summary()["inferences"] == result.summary()["risk_used"] == len(result.cycles)


def test_a_cycle_holds_the_map_that_was_used(rocky) -> None:
    rows = []
    for policy in ("always", "on_failure"):
        config = FIXED_BOX.replaced([f"heuristic.policy={policy}"], heuristic="oracle")
        pilot = SimulatedNavigator(rocky, config)
        for pose in ((8.0, 26.0, 0.0), (14.0, 20.0, 1.0), (20.0, 30.0, -1.0)):
            cycle = pilot.cycle(at_rest(rocky, config, pose), rocky.goal_m)
            assert (cycle.risk is not None) == cycle.result.risk_used
            rows.append(cycle.result.risk_used)
    assert any(rows)
    where = at_rest(rocky, FIXED_BOX, (8.0, 26.0, 0.0))
    assert not SimulatedNavigator(rocky, FIXED_BOX).cycle(where, rocky.goal_m).result.risk_used


def test_a_map_that_the_planner_refuses_is_an_event(rocky, monkeypatch) -> None:
    """A heuristic that breaks its word on its size, mid-run."""
    baseline = traverse(rocky, FIXED_BOX)
    liar = Made(constant(0.5), max_cells=16 * 79 * 79)
    monkeypatch.setattr(navigator, "make_heuristic", lambda config: liar)
    result = traverse(rocky, FIXED_BOX.replaced(heuristic="oracle"))
    assert [c.pose for c in result.cycles] == [c.pose for c in baseline.cycles]
    events = result.summary()["events"]
    assert events["distinct"] == [
        "heuristic: the planner refused the risk map; planned as the baseline does"
    ]
    assert events["count"] == result.summary()["risk_requested"] > 1


def test_a_fault_of_our_own_is_not_hidden(rocky, monkeypatch) -> None:
    def fails(local_map, pose):
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(navigator, "make_heuristic", lambda config: Made(fails))
    with pytest.raises(ZeroDivisionError, match="ours"):
        traverse(rocky, FIXED_BOX.replaced(heuristic="oracle"))


@pytest.mark.parametrize("policy", ["always", "on_failure"])
@pytest.mark.parametrize("heuristic", ["sobel", "oracle"])
def test_a_run_repeats_bit_for_bit(rocky, heuristic, policy) -> None:
    config = FIXED_BOX.replaced([f"heuristic.policy={policy}"], heuristic=heuristic)
    runs = [traverse(rocky, config) for _ in range(2)]
    assert len({to_json(run.summary(timing=False)) for run in runs}) == 1
    for a, b in zip(runs[0].cycles, runs[1].cycles, strict=True):
        assert {**a.as_dict(), "timing_s": 0} == {**b.as_dict(), "timing_s": 0}


@pytest.mark.parametrize("name", ["none", "sobel", "oracle"])
def test_heuristics_keep_the_protocol(name) -> None:
    config = FIXED_BOX.replaced(heuristic=name)
    heuristic = make_heuristic(config)
    assert heuristic.name == name
    assert heuristic.inferences == 0
    seen = HeightMap(np.zeros((200, 240), np.float32), 0.1, (0.0, 0.0))
    risk = heuristic.risk(seen, (12.0, 10.0, 0.0))
    assert heuristic.inferences == (name != "none")
    assert (0 if risk is None else risk.p.size) <= heuristic.max_cells(seen.z.size)
    assert heuristic.take_events() == ()
