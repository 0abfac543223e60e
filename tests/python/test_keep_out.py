"""No point of the rover's outline is above a zone, at any place of the driven way."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mlnav import _core
from mlnav.config import Config, Rover
from mlnav.core import HeightMap
from mlnav.sim.loop import traverse
from mlnav.sim.records import TraverseResult
from mlnav.terrain import Terrain

F64 = NDArray[np.float64]
CHECKERS = ("fixed_box", "verified", "settle")


def flat(width_m: float = 30.0, height_m: float = 24.0, resolution_m: float = 0.05) -> Terrain:
    shape = (round(height_m / resolution_m), round(width_m / resolution_m))
    return Terrain(np.zeros(shape), resolution_m, (resolution_m / 2, resolution_m / 2), name="flat")


# ----------------------------------------------------------------------- the outline, independently


def outline(rover: Rover) -> F64:
    """Corners of body and wheels on level ground, wheels steered to any angle, (4, 2) [m]."""
    steered = math.hypot(rover.wheel_radius_m, rover.wheel_width_m / 2)
    front = max(rover.pan_front_x_m, rover.front_x_m + steered)
    rear = min(rover.pan_rear_x_m, rover.rear_x_m - steered)
    side = max(
        rover.pan_half_width_m,
        rover.front_y_m + steered,
        rover.rear_y_m + steered,
        rover.middle_y_m + rover.wheel_width_m / 2,
    )
    return np.array([(front, -side), (front, side), (rear, side), (rear, -side)])


def driven_poses(result: TraverseResult) -> F64:
    """Poses of the driven way, (n, 3): every centimetre and quarter of a degree."""
    rows = [np.array([result.start])]
    for cycle in result.cycles:
        if cycle.outcome != "path":
            continue
        x, y, heading = cycle.pose
        turns = np.linspace(0.0, cycle.turn_rad, 2 + int(abs(cycle.turn_rad) / math.radians(0.25)))
        rows.append(np.column_stack([turns * 0 + x, turns * 0 + y, heading + turns]))
        if cycle.length_m == 0.0:
            continue
        way = np.linspace(0.0, cycle.length_m, 2 + int(cycle.length_m / 0.01))
        headings = heading + cycle.curvature_per_m * way
        k = cycle.curvature_per_m
        if k == 0.0:
            xs, ys = x + way * math.cos(heading), y + way * math.sin(heading)
        else:
            xs = x + (np.sin(headings) - math.sin(heading)) / k
            ys = y - (np.cos(headings) - math.cos(heading)) / k
        rows.append(np.column_stack([xs, ys, headings]))
    return np.concatenate(rows)


def corners_at(poses: F64, corners: F64) -> F64:
    """Corners of the outline at (n, 3) poses, (n, 4, 2)."""
    c, s = np.cos(poses[:, 2]), np.sin(poses[:, 2])
    turn = np.stack([np.stack([c, s], 1), np.stack([-s, c], 1)], 1)
    out: F64 = corners @ turn + poses[:, None, :2]
    return out


def overlaps(rectangles: F64, polygon: F64) -> NDArray[np.bool_]:
    """Which of (n, 4, 2) rectangles overlap a convex polygon (m, 2): no axis keeps them apart."""
    apart = np.zeros(len(rectangles), bool)

    def look_along(axes: F64) -> None:
        nonlocal apart
        a = np.einsum("nci,ni->nc", rectangles, axes)
        b = np.einsum("mi,ni->nm", polygon, axes)
        apart |= (a.max(1) < b.min(1)) | (b.max(1) < a.min(1))

    for i in range(2):
        edges = rectangles[:, i + 1] - rectangles[:, i]
        look_along(np.column_stack([-edges[:, 1], edges[:, 0]]))
    for edge in np.roll(polygon, -1, axis=0) - polygon:
        look_along(np.tile([-edge[1], edge[0]], (len(rectangles), 1)))
    return ~apart


def test_the_independent_intersection_sees_overlaps() -> None:
    corners = outline(Rover())
    poses = np.array([(0.0, 0.0, 0.0), (4.0, 0.0, 0.0), (0.0, 0.0, math.pi / 4)])
    rectangles = corners_at(poses, corners)
    right_ahead = np.array([(1.6, -0.2), (2.0, -0.2), (2.0, 0.2), (1.6, 0.2)])
    np.testing.assert_array_equal(overlaps(rectangles, right_ahead), [False, False, True])
    np.testing.assert_array_equal(overlaps(rectangles, right_ahead - (0.3, 0)), [True, False, True])


def convex(center: tuple[float, float], radius: float, angles: list[float]) -> F64:
    at = np.sort(np.array(angles))
    return np.array(center) + radius * np.column_stack([np.cos(at), np.sin(at)])


def drive(
    checker: str, polygons: list[F64], *more: str, start=(6.0, 12.0), goal=(24.0, 12.0), heading=0.0
) -> TraverseResult:
    config = Config().replaced([f"checker={checker}", "traverse.max_cycles=60", *more])
    zones = [[(float(x), float(y)) for x, y in polygon] for polygon in polygons]
    config = config.model_copy(update={"keep_out": zones})
    return traverse(flat(), config, start, goal, heading_rad=heading)


def assert_kept_out(result: TraverseResult, polygons: list[F64]) -> None:
    rectangles = corners_at(driven_poses(result), outline(Rover()))
    for polygon in polygons:
        assert not overlaps(rectangles, polygon).any()


# ------------------------------------------------------------------------------------ the whole way


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_thin_wall_is_not_crossed(checker: str) -> None:
    wall = np.array([(14.0, 6.0), (14.2, 6.0), (14.2, 17.0), (14.0, 17.0)])
    result = drive(checker, [wall])
    assert result.outcome == "goal_reached"
    assert_kept_out(result, [wall])


@given(st.data())
@settings(max_examples=12)
def test_no_zone_is_touched_on_random_ways(data: st.DataObject) -> None:
    angle = st.floats(0.0, 2 * math.pi)
    polygons = []
    for _ in range(data.draw(st.integers(1, 5))):
        center = (data.draw(st.floats(9.0, 23.0)), data.draw(st.floats(3.0, 21.0)))
        radius = data.draw(st.floats(0.05, 2.5))
        angles = data.draw(st.lists(angle, min_size=3, max_size=6, unique=True))
        polygons.append(convex(center, radius, angles))
    heading = data.draw(st.floats(-math.pi, math.pi))
    start = (data.draw(st.floats(3.0, 6.0)), data.draw(st.floats(4.0, 20.0)))
    goal = (data.draw(st.floats(15.0, 27.0)), data.draw(st.floats(4.0, 20.0)))
    checker = data.draw(st.sampled_from(CHECKERS[:2]))
    result = drive(checker, polygons, start=start, goal=goal, heading=heading)
    if result.outcome == "start_unsafe":
        assert not result.cycles or "keep_out" in result.cycles[-1].start_faults
        assert result.driven_m == 0.0, "a rover that kept out stands clear of every zone"
        return
    assert len(result.cycles) > 0
    assert_kept_out(result, polygons)


@pytest.mark.parametrize("checker", CHECKERS[:2])
@pytest.mark.parametrize("gap_m", [0.0, 0.2, 0.5])
def test_the_rover_does_not_turn_into_a_zone_beside_it(checker: str, gap_m: float) -> None:
    """Its corners reach 2.1 m out: beside a wall it has to drive on before it turns."""
    side = 1.8 + gap_m
    wall = np.array([(3.0, 12.0 + side), (11.0, 12.0 + side), (11.0, 19.0), (3.0, 19.0)])
    result = drive(checker, [wall], start=(7.0, 12.0), goal=(7.0, 22.0))
    assert result.driven_m > 3.0
    assert_kept_out(result, [wall])


@pytest.mark.parametrize("checker", CHECKERS[:2])
def test_the_rover_stays_inside_a_zone_to_keep_in(checker: str) -> None:
    inside = np.array([(3.0, 8.0), (27.0, 8.0), (27.0, 16.0), (3.0, 16.0)])
    ring = [(float(x), float(y)) for x, y in inside]
    config = Config().replaced([f"checker={checker}", "traverse.max_cycles=60"])
    config = config.model_copy(update={"keep_in": [ring]})
    result = traverse(flat(), config, (6.0, 11.0), (24.0, 13.0), heading_rad=2.0)
    assert result.outcome == "goal_reached"
    corners = corners_at(driven_poses(result), outline(Rover())).reshape(-1, 2)
    assert np.all((corners >= inside.min(axis=0)) & (corners <= inside.max(axis=0)))


def test_gaps_narrower_than_the_rover_are_driven_round() -> None:
    """Not entered, nor tried over and over: cost-to-go knows how wide the rover is."""
    walls = [
        np.array([(14.0, 0.0), (14.4, 0.0), (14.4, 10.9), (14.0, 10.9)]),
        np.array([(14.0, 13.1), (14.4, 13.1), (14.4, 19.0), (14.0, 19.0)]),
    ]
    result = drive("fixed_box", walls)
    assert result.outcome == "goal_reached"
    assert_kept_out(result, walls)
    assert result.driven_m < 27.0, "straight there and round the end of the upper wall is 23 m"


# ---------------------------------------------------------------------------------------- the start


@pytest.mark.parametrize(
    ("x", "y", "heading", "free"),
    [
        (2.0, 0.0, 0.0, True),
        (1.45, 0.0, 0.0, False),  # under a front wheel
        (0.0, 1.9, 0.0, True),
        (0.0, 1.3, 0.0, False),
        (1.45, 1.45, 0.0, False),
        (1.5, 1.5, math.pi / 4, True),  # beyond the front's middle, clear of the corners
        (-1.35, 0.0, 0.0, False),
        (-2.0, 0.0, 0.0, True),
    ],
)
def test_a_start_whose_outline_touches_a_zone_is_unsafe(
    x: float, y: float, heading: float, free: bool
) -> None:
    terrain = flat(16.0, 16.0)
    mask = np.zeros(terrain.shape, np.uint8)
    mask[terrain.cell(8.0 + x, 8.0 + y)] = 1
    planner = planner_of(Config())
    result = planner.plan(
        HeightMap.of(terrain).grid, (8.0, 8.0, heading), (8.0, 1.0), keep_out=mask
    )
    if free:
        assert result.outcome != "start_unsafe"
    else:
        assert result.outcome == "start_unsafe"
        assert result.start_reasons == 1 << _core.REASONS.index("keep_out")
        assert result.ace_evaluations == 0


def planner_of(config: Config) -> _core.EnavPlanner:
    cells = 320 * 320
    return _core.EnavPlanner(
        config.to_core_planner(cells),
        config.build_checker(cells),
    )
