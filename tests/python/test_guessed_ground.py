"""Guessed heights guide costs; nothing stands on them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mlnav import _core
from mlnav.config import Config, Rover
from mlnav.core import ArrayError, HeightMap
from mlnav.nav import Navigator
from mlnav.sim.loop import traverse
from mlnav.terrain import Terrain

RES = 0.1
KNOWN_START_M = 2.5


def ground(ditches: list[tuple[float, float]], rocks: list[tuple[float, float]]) -> Terrain:
    """Level, with ditches across the way, (x, width) [m], and rocks that hide what is behind."""
    z = np.zeros((180, 300))
    x = RES * np.arange(300) + RES / 2
    y = RES * np.arange(180) + RES / 2
    for at, width in ditches:
        z[:, (x >= at) & (x < at + width)] = -1.5
    for at_x, at_y in rocks:
        z[np.hypot(x[None, :] - at_x, y[:, None] - at_y) < 0.35] = 0.4
    return Terrain(z, RES, (RES / 2, RES / 2), name="ditches")


def assert_stood_on_seen_ground(terrain: Terrain, *more: str) -> int:
    """Drive, and hold every driven state against what was seen until then; how many cycles."""
    overrides = [
        "sensor=stereo",
        f"sensor.known_start_m={KNOWN_START_M}",
        "traverse.max_cycles=25",
        *more,
    ]
    config, rover = Config().replaced(overrides), Rover()
    start = (5.0, 9.0)
    driven = []

    def look(record, _, cycle) -> None:
        if record.outcome != "path":
            return
        seen = cycle.local_map
        states = record.states.poses
        driven.append(len(states))
        assert not unseen_under(seen, states, rover).any(), (record.cycle, more)

    traverse(terrain, config, start, (25.0, 9.0), 1, heading_rad=0.0, observers=[look])
    return len(driven)


def unseen_under(seen: HeightMap, poses: NDArray[np.float64], rover: Rover) -> NDArray[np.bool_]:
    """At which of (n, 3) poses a wheel (its middle) or the pan is over a cell that was not seen."""
    (ny, nx), (x0, y0) = seen.shape, seen.origin_m
    wheels = [
        (x, side * y)
        for x, y in (
            (rover.front_x_m, rover.front_y_m),
            (0.0, rover.middle_y_m),
            (rover.rear_x_m, rover.rear_y_m),
        )
        for side in (-1, 1)
    ]
    pan = [
        (x, y)
        for x in np.arange(rover.pan_rear_x_m, rover.pan_front_x_m, RES)
        for y in np.arange(-rover.pan_half_width_m, rover.pan_half_width_m, RES)
    ]
    places = np.array(wheels + pan)
    c, s = np.cos(poses[:, 2, None]), np.sin(poses[:, 2, None])
    x = poses[:, 0, None] + c * places[:, 0] - s * places[:, 1]
    y = poses[:, 1, None] + s * places[:, 0] + c * places[:, 1]
    ix = np.floor((x - x0) / RES + 0.5).astype(int)
    iy = np.floor((y - y0) / RES + 0.5).astype(int)
    assert ix.min() >= 0 and iy.min() >= 0 and ix.max() < nx and iy.max() < ny
    out: NDArray[np.bool_] = np.isnan(seen.z[iy, ix]).any(axis=1)
    return out


@pytest.mark.parametrize("checker", ["fixed_box", "verified"])
@pytest.mark.parametrize("fill_m", [0.0, 0.4, 2.0])
def test_a_ditch_that_nobody_saw_is_not_certified(checker: str, fill_m: float) -> None:
    more = (f"checker={checker}", f"sensor.fill_m={fill_m}", "planner.commit_length_m=3")
    assert assert_stood_on_seen_ground(ground([(11.0, 0.3)], []), *more) > 0


@given(st.data())
@settings(max_examples=6)
def test_no_driven_pose_stands_on_ground_that_was_never_seen(data: st.DataObject) -> None:
    spot = st.tuples(st.floats(9.0, 22.0), st.floats(2.0, 16.0))
    ditch = st.tuples(st.floats(10.0, 22.0), st.floats(0.2, 0.6))
    terrain = ground(
        data.draw(st.lists(ditch, max_size=2)), data.draw(st.lists(spot, min_size=1, max_size=12))
    )
    assert_stood_on_seen_ground(
        terrain,
        f"checker={data.draw(st.sampled_from(['fixed_box', 'verified']))}",
        f"sensor.fill_m={data.draw(st.sampled_from([0.0, 0.4, 2.0]))}",
        f"planner.commit_length_m={data.draw(st.sampled_from([1, 3]))}",
    )


# ------------------------------------------------------------------------------------- the planner


def plan(z, guessed=None, commit_length_m: float = 1.0, short_paths: bool = True):
    config = Config().replaced(
        [f"planner.commit_length_m={commit_length_m}", f"planner.short_paths={short_paths}"]
    )
    local = HeightMap(z, RES, (0.05, 0.05), None, guessed)
    planner = _core.EnavPlanner(
        config.to_core_planner(z.size),
        config.build_checker(z.size),
    )
    cost_grid = local.for_costs.grid if guessed is not None else None
    return planner.plan(local.grid, (10.0, 10.0, 0.0), (18.0, 10.0), cost_grid=cost_grid)


@pytest.mark.parametrize("guess", [False, True])
def test_a_path_is_proven_up_to_unseen_ground(guess: bool) -> None:
    """A band 4 m ahead, across all ways: what is promised ends before it, what is driven too."""
    z = np.zeros((200, 200), np.float32)
    whole = z.copy()
    z[:, 150:153] = np.nan
    result = plan(z, whole if guess else None, short_paths=False)
    assert result.outcome == "path"
    assert result.length_m == 1.0
    front = result.path[:, 0].max() + Rover().front_x_m
    assert front < 15.0, "no pose of the path stands on the band"
    assert len(result.path) > 10


def test_unseen_ground_within_two_commitments_rules_a_path_out() -> None:
    """With one alone a rover drives up against a hole and cannot leave it."""
    for band, seen in ((140, True), (130, False)):  # a front wheel is there after 2.6 m, 1.6 m
        z = np.zeros((200, 200), np.float32)
        whole = z.copy()
        z[:, band : band + 3] = np.nan
        near = plan(z, whole, 1.0, short_paths=False)
        assert (near.length_m == 1.0 and abs(near.commit_end[2]) < math.radians(20)) == seen
        far = plan(z, whole, 1.5, short_paths=False)
        assert far.length_m == 0.0 or abs(far.commit_end[2]) > math.radians(20)


@pytest.mark.parametrize("checker", ["fixed_box", "verified"])
def test_a_navigator_gives_its_checker_no_guesses(checker: str) -> None:
    """Level guesses over a band 1.6 m ahead of the front wheels look easy."""
    config = Config().replaced([f"checker={checker}", "planner.short_paths=false"])
    z = np.zeros((200, 200), np.float32)
    navigator = Navigator(config, z.size)
    banded = z.copy()
    banded[:, 130:133] = np.nan
    local = HeightMap(banded, RES, (0.05, 0.05), None, z)
    result = navigator.cycle(local, (10.0, 10.0, 0.0), (18.0, 10.0)).result
    assert result.rejects["unknown"] > 0
    if result.outcome == "path":
        assert not unseen_under(local, result.path, Rover()).any()
        assert abs(result.commit_end[2]) > math.radians(20), "not straight at what nobody saw"


def test_guesses_change_costs_alone() -> None:
    z = np.zeros((200, 200), np.float32)
    z[90:110, 160:164] = np.nan
    steep = z.copy()
    steep[np.isnan(z)] = 3.0
    level = plan(z, np.zeros_like(z))
    assert plan(z, steep).path_cost > level.path_cost + 0.5
    assert level.rejects["unknown"] >= 0


def test_a_guess_leaves_what_is_known_alone() -> None:
    z = np.zeros((4, 5), np.float32)
    z[1, 2] = np.nan
    guessed = np.zeros_like(z)
    local = HeightMap(z, RES, (0.0, 0.0), None, guessed)
    assert np.isnan(local.z[1, 2]) and np.isnan(local.grid.heights(np.array([[0.2, 0.1]]))[0])
    assert local.for_costs.z[1, 2] == 0.0
    assert HeightMap(z, RES, (0.0, 0.0)).for_costs.guessed is None
    for wrong in (guessed + 1.0, np.zeros((5, 4), np.float32)):
        with pytest.raises(ArrayError, match="guessed"):
            HeightMap(z, RES, (0.0, 0.0), None, wrong)


def test_a_map_for_costs_of_another_frame_is_refused() -> None:
    z = np.zeros((60, 60), np.float32)
    planner = _core.EnavPlanner(
        Config().to_core_planner(3600),
        Config().build_checker(3600),
    )
    grid = HeightMap(z, RES, (0.0, 0.0)).grid
    for other in (
        HeightMap(z[:-1], RES, (0.0, 0.0)),
        HeightMap(z, RES, (0.1, 0.0)),
        HeightMap(z, 0.2, (0.0, 0.0)),
    ):
        with pytest.raises(_core.CoreError, match="cost_grid"):
            planner.plan(grid, (3.0, 3.0, 0.0), (5.0, 3.0), cost_grid=other.grid)
