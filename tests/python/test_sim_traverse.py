import json
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from mlnav.config import Config
from mlnav.io.records import to_json
from mlnav.risk import make_heuristic
from mlnav.sim import (
    KinematicWorld,
    SimError,
    TruthSensor,
    one_cycle,
    traverse,
)
from mlnav.terrain import Terrain, benchmark_class


def level(nx: int = 240, ny: int = 160) -> Terrain:
    return Terrain(
        np.zeros((ny, nx)), 0.1, (0.05, 0.05), name="level", start_m=(4.0, 8.0), goal_m=(19.0, 8.0)
    )


@pytest.fixture(scope="module")
def rocky() -> Terrain:
    return benchmark_class(10.0, 0.07, seed=1)


def test_level_ground_is_driven_straight() -> None:
    result = traverse(level(), Config())
    assert result.outcome == "goal_reached"
    assert result.success
    assert result.driven_m == pytest.approx(14.0, abs=1.01)
    assert result.inefficiency == pytest.approx(result.driven_m / 15.0 - 1.0)
    assert result.start == (4.0, 8.0, 0.0)
    summary = result.summary()
    assert summary["ace_evaluations"] == sum(c.ace_evaluations for c in result.cycles)
    assert summary["ace_floor"] <= summary["ace_evaluations"]
    assert summary["modelled_flight_ace_s"] == pytest.approx(0.01 * summary["ace_evaluations"])
    assert summary["overthinks"] == 0
    assert (summary["risk_requested"], summary["risk_used"], summary["inferences"]) == (0, 0, 0)
    assert summary["events"] == {"count": 0, "distinct": []}
    assert set(summary["timing"]["stage_s"]) > {"sense", "heuristic", "plan", "drive", "plan.ace"}


@pytest.mark.parametrize("heuristic", ["none", "sobel"])
def test_a_run_repeats_bit_for_bit(rocky: Terrain, heuristic: str) -> None:
    config = Config().replaced(heuristic=heuristic)
    runs = [traverse(rocky, config, seed=3) for _ in range(2)]
    first, second = (to_json(r.summary(timing=False)) for r in runs)
    assert first == second
    for a, b in zip(runs[0].cycles, runs[1].cycles, strict=True):
        record, other = a.as_dict(), b.as_dict()
        del record["timing_s"], other["timing_s"]
        assert to_json(record) == to_json(other)


def test_records_are_consistent(rocky: Terrain) -> None:
    seen = []
    result = traverse(rocky, Config(), observers=[lambda record, *_: seen.append(record)])
    assert result.outcome == "goal_reached"
    assert seen == list(result.cycles)
    pose, driven = result.start, 0.0
    for i, cycle in enumerate(result.cycles):
        assert cycle.cycle == i
        assert cycle.pose == pose
        assert cycle.outcome == "path"
        assert cycle.ace_evaluations >= cycle.ace_floor >= 1
        assert (cycle.turn_rad == 0.0) != (cycle.length_m == 0.0)
        assert cycle.driven_m == pytest.approx(driven + cycle.length_m)
        assert tuple(cycle.track[-1]) == cycle.end
        assert cycle.tilt_max_rad <= math.radians(30.0)
        json.loads(to_json(cycle.as_dict()))
        pose, driven = cycle.end, cycle.driven_m
    assert result.end == pose
    assert math.dist(pose[:2], result.goal) <= 1.0


# ------------------------------------------------------------------------------------- how runs end


def test_already_there() -> None:
    result = traverse(level(), Config(), start=(19.0, 8.2))
    assert (result.outcome, result.cycles, result.driven_m) == ("goal_reached", (), 0.0)
    assert result.summary()["ace_evaluations_per_cycle"]["mean"] is None


def test_cycles_are_limited() -> None:
    result = traverse(level(), Config().replaced(["traverse.max_cycles=3"]))
    assert result.outcome == "timeout"
    assert len(result.cycles) == 3
    assert result.inefficiency is None


def test_distance_is_limited(rocky: Terrain) -> None:
    # A tolerance so narrow that the goal is driven past, again and again.
    config = Config().replaced(["traverse.max_driven_factor=1.5", "traverse.goal_tolerance_m=1e-6"])
    result = traverse(rocky, config)
    assert result.outcome == "distance_limit"
    assert 1.5 * 36.0 < result.driven_m < 1.5 * 36.0 + 1.01


def test_a_pit_has_no_safe_path() -> None:
    terrain = level()
    z = np.full(terrain.shape, 3.0)
    z[48:112, 8:72] = 0.0  # walls all around the start
    result = traverse(terrain.with_heights(z), Config())
    assert result.outcome in ("no_safe_path", "timeout", "distance_limit")
    assert not result.success
    assert result.end[0] < 7.2


def test_a_start_among_rocks_is_unsafe() -> None:
    terrain = level()
    z = np.random.default_rng(1).uniform(0.0, 1.5, terrain.shape)
    result = traverse(terrain.with_heights(z), Config())
    assert result.outcome == "start_unsafe"
    assert result.faults
    assert result.driven_m == 0.0


@pytest.mark.parametrize("budget", ["ace_budget=5", "work_budget=20000"])
def test_a_spent_budget_ends_as_stuck(budget: str) -> None:
    result = traverse(level(), Config().replaced([f"traverse.{budget}"]))
    assert result.outcome == "stuck"
    assert [c.outcome for c in result.cycles] == ["budget_exhausted"] * 3
    assert all(c.ace_evaluations <= 5 for c in result.cycles)
    assert result.driven_m == 0.0


@dataclass
class Trap:
    """A world that turns unsafe after a while."""

    inner: KinematicWorld
    left: int

    def place(self, pose):
        return self.inner.place(pose)

    def as_built(self):
        return self.inner.as_built()

    def execute(self, pose, motion):
        self.left -= 1
        run = self.inner.execute(pose, motion)
        if self.left:
            return run
        return replace(run, ending="unsafe_state", faults=("tilt",))


def test_an_unsafe_state_ends_the_run() -> None:
    trap = Trap(KinematicWorld(level(), Config().rover_model()), 4)
    result = traverse(level(), Config(), world=trap)
    assert result.outcome == "unsafe_state"
    assert result.faults == ("tilt",)
    assert len(result.cycles) == 4
    assert not result.success


def test_unsafe_at_the_goal_is_no_success() -> None:
    clean = traverse(level(), Config())
    trap = Trap(KinematicWorld(level(), Config().rover_model()), len(clean.cycles))
    assert traverse(level(), Config(), world=trap).outcome == "unsafe_state"


def test_an_interrupt_keeps_what_was_done() -> None:
    def interrupt(record, *_) -> None:
        if record.cycle == 2:
            raise KeyboardInterrupt

    result = traverse(level(), Config(), observers=[interrupt])
    assert result.outcome == "interrupted"
    assert len(result.cycles) == 3
    assert result.driven_m == result.cycles[-1].driven_m


def test_zones_are_kept_out_of() -> None:
    config = Config().replaced(["keep_out=[[[9, 4], [12, 4], [12, 20], [9, 20]]]"])
    result = traverse(level(), config)
    assert result.outcome == "goal_reached" and result.driven_m > 15.0
    for cycle in result.cycles:
        x, y = cycle.track[:, 0], cycle.track[:, 1]
        assert not np.any((x > 9.0) & (x < 12.0) & (y > 4.0))


# ---------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("start", "goal", "heading", "words"),
    [
        ((-1.0, 8.0), None, None, "start .* outside"),
        (None, (1e9, 8.0), None, "goal .* outside"),
        ((math.nan, 8.0), None, None, "start must be finite"),
        (None, (math.inf, 8.0), None, "goal must be finite"),
        ((2.0, 2.0), None, None, "start .* unknown"),
        (None, (2.0, 2.0), None, "goal .* unknown"),
        (None, None, math.nan, "heading"),
        (None, None, 1e9, "heading"),
    ],
)
def test_unusable_ends_are_refused(start, goal, heading, words) -> None:
    terrain = level()
    z = np.array(terrain.z)
    z[:40, :40] = np.nan
    with pytest.raises(SimError, match=words):
        traverse(terrain.with_heights(z), Config(), start, goal, heading_rad=heading)


def test_a_map_without_ends_needs_them() -> None:
    bare = Terrain(np.zeros((100, 100)), 0.1, name="bare")
    with pytest.raises(SimError, match="'bare' names none"):
        traverse(bare, Config(), start=(5.0, 5.0))


@pytest.mark.parametrize("turns", [-1e5, 1e5])
def test_large_headings_mean_the_same(turns: float) -> None:
    heading = 2.0 * math.pi * turns
    result = traverse(level(), Config(), heading_rad=heading)
    assert result.outcome == "goal_reached"


def test_coarse_and_fine_maps() -> None:
    for resolution in (0.05, 0.2):
        n = round(20.0 / resolution)
        terrain = Terrain(np.zeros((n, n)), resolution, (resolution / 2,) * 2, name="level")
        result = traverse(terrain, Config(), (4.0, 10.0), (15.0, 11.0))
        assert result.outcome == "goal_reached", resolution


# ---------------------------------------------------------------------------- heuristics, one cycle


def test_sobel_sees_rocks() -> None:
    z = np.zeros((80, 120))
    z[30:36, 70:76] = 0.6
    seen = TruthSensor(Terrain(z, 0.1, name="rock"), 20.0).window((2.0, 2.0, 0.0))
    heuristic = make_heuristic(Config().replaced(heuristic="sobel"))
    risk = heuristic.risk(seen, (2.0, 2.0, 0.0))
    assert risk.p.shape == (1, *seen.shape)
    assert risk.p.dtype == np.float32
    assert risk.p[0, 33, 73] > risk.p[0, 33, 10]
    assert np.all((risk.p >= 0.0) & (risk.p < 1.0))
    assert risk.p.size <= heuristic.max_cells(seen.z.size)


def test_no_heuristic_has_no_opinion() -> None:
    seen = TruthSensor(level()).window((2.0, 2.0, 0.0))
    assert make_heuristic(Config()).risk(seen, (2.0, 2.0, 0.0)) is None


def test_one_cycle_can_be_looked_at() -> None:
    navigator, cycle, pose, goal = one_cycle(level(), Config(), heading_rad=0.5)
    assert cycle.result.outcome == "path"
    assert pose == (4.0, 8.0, 0.5)
    assert goal == (19.0, 8.0)
    assert len(navigator.planner.path_costs()) == cycle.result.paths == 1694
