import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlnav.config import Config
from mlnav.sim import KinematicWorld, Motion, traverse
from mlnav.sim.world import wrapped
from mlnav.terrain import Terrain

STEP_M, STEP_RAD = 0.1, math.radians(2.0)


def ground(z: np.ndarray, resolution_m: float = 0.1) -> Terrain:
    return Terrain(z, resolution_m, (-3.0, 7.0), name="made")


def world(terrain: Terrain) -> KinematicWorld:
    return KinematicWorld(terrain, Config().rover_model())


def level(nx: int = 160, ny: int = 120) -> Terrain:
    return ground(np.full((ny, nx), 1.25))


# ------------------------------------------------------------------------------------------- motion


@given(
    turn=st.floats(-3.0, 3.0),
    curvature=st.floats(-1.0, 1.0),
    length=st.floats(0.0, 3.0),
    heading=st.floats(-3.0, 3.0),
)
def test_motion_is_sampled_finely_and_ends_right(turn, curvature, length, heading) -> None:
    start = (4.0, -2.0, heading)
    poses, driven = Motion(turn, curvature, length).poses(start, STEP_M, STEP_RAD)
    path = np.vstack([start, poses])
    assert np.hypot(*np.diff(path[:, :2], axis=0).T).max(initial=0.0) <= STEP_M + 1e-9
    assert np.all(np.diff(driven) >= 0.0)
    assert np.all((poses[:, 2] >= -math.pi) & (poses[:, 2] < math.pi))
    if len(poses) and length > 1e-6:
        assert driven[-1] == pytest.approx(length)
        # integrate the unicycle finely
        s = (np.arange(4000) + 0.5) * length / 4000
        angle = heading + turn + curvature * s
        end = (4.0 + np.cos(angle).mean() * length, -2.0 + np.sin(angle).mean() * length)
        assert poses[-1, :2] == pytest.approx(end, abs=1e-6)
        assert math.cos(poses[-1, 2] - (heading + turn + curvature * length)) == pytest.approx(1.0)


def test_a_motion_ends_where_the_planner_says() -> None:
    end = (1.0, 1e-9, 7.0)
    poses, _ = Motion(0.0, 0.0, 1.0, end).poses((0.0, 0.0, 0.0), STEP_M, STEP_RAD)
    assert tuple(poses[-1]) == (1.0, 1e-9, wrapped(7.0))
    assert len(poses) == 10


def test_no_motion() -> None:
    poses, driven = Motion(0.0, 0.0, 0.0).poses((0.0, 0.0, 0.0), STEP_M, STEP_RAD)
    assert poses.shape == (0, 3)
    assert driven.shape == (0,)


def test_a_turn_is_sampled_by_angle() -> None:
    poses, driven = Motion(math.radians(-30), 0.0, 0.0).poses((1.0, 2.0, 3.0), STEP_M, STEP_RAD)
    assert len(poses) == 15
    assert np.all(driven == 0.0)
    assert np.all(poses[:, :2] == (1.0, 2.0))


@given(st.floats(-1e6, 1e6))
def test_wrapping(heading: float) -> None:
    angle = wrapped(heading)
    assert -math.pi <= angle < math.pi
    assert math.cos(angle - heading) == pytest.approx(1.0, abs=1e-8)


# -------------------------------------------------------------------------------------------- world


def test_the_rover_stands_level_on_level_ground() -> None:
    states = world(level()).place((3.0, 12.0, 0.4))
    assert states.first_unsafe() is None
    state = states.state(0)
    assert state["tilt_rad"] == pytest.approx(0.0, abs=1e-6)
    assert state["origin_z_m"] == pytest.approx(1.25, abs=1e-5)
    assert state["clearance_m"] == pytest.approx(0.60, abs=1e-4)


@pytest.mark.parametrize("heading_deg", [0, 37, 90, 200])
def test_tilt_on_a_slope_is_the_slope(heading_deg: float) -> None:
    x = np.arange(160) * 0.1
    terrain = ground(np.tile(x * math.tan(math.radians(15)), (120, 1)))
    state = world(terrain).place((4.0, 12.0, math.radians(heading_deg))).state(0)
    assert math.degrees(state["tilt_rad"]) == pytest.approx(15.0, abs=0.2)
    # uphill is +x: nose up when heading there
    assert np.sign(round(state["pitch_rad"], 3)) == np.sign(
        round(math.cos(math.radians(heading_deg)), 3)
    )


def test_an_arc_is_driven_to_its_end() -> None:
    run = world(level()).execute((2.0, 12.0, 0.0), Motion(0.0, 0.25, 2.0))
    assert run.ending is None
    assert run.driven_m == pytest.approx(2.0)
    assert run.pose[2] == pytest.approx(0.5)
    assert len(run.states) == 20


def test_nothing_committed_nothing_moved() -> None:
    run = world(level()).execute((2.0, 12.0, 0.0), Motion(0.0, 0.0, 0.0))
    assert (run.pose, run.driven_m, run.ending) == ((2.0, 12.0, 0.0), 0.0, None)


def bump(height_m: float) -> Terrain:
    z = np.zeros((120, 160))
    z[40:80, 90:110] = height_m  # a block ahead, x 6 to 8 m
    return ground(z)


def test_a_drive_stops_at_its_first_unsafe_state() -> None:
    run = world(bump(0.7)).execute((3.0, 13.0, 0.0), Motion(0.0, 0.0, 5.0))
    assert run.ending == "unsafe_state"
    assert run.faults
    assert 0.0 < run.driven_m < 5.0
    assert run.states.first_unsafe() == len(run.states) - 1
    assert run.pose == tuple(run.states.poses[-1])


def test_unknown_ground_is_not_safe_to_stand_on() -> None:
    z = np.zeros((120, 160))
    z[:, 90:] = np.nan
    run = world(ground(z)).execute((3.0, 13.0, 0.0), Motion(0.0, 0.0, 3.0))
    assert run.ending == "unsafe_state"
    assert "unknown" in run.faults
    state = run.states.state(len(run.states) - 1)
    assert state["tilt_rad"] is None


def test_the_border_is_not_safe_to_stand_on() -> None:
    run = world(level()).execute((11.0, 13.0, 0.0), Motion(0.0, 0.0, 3.0))
    assert run.ending == "unsafe_state"
    assert "border" in run.faults


def test_stances_say_how_the_wheels_are_steered() -> None:
    motion = Motion(math.radians(40), 0.25, 1.0)
    stances, driven = motion.stances((1.0, 2.0, 3.0), STEP_M, STEP_RAD)
    poses, _ = motion.poses((1.0, 2.0, 3.0), STEP_M, STEP_RAD)
    np.testing.assert_array_equal(stances[:, :3], poses)
    assert np.isinf(stances[driven == 0, 3]).all() and (driven == 0).any()
    assert (stances[driven > 0, 3] == 0.25).all()
    assert motion.steered_after_per_m == 0.25
    assert math.isinf(Motion(0.3, 0.0, 0.0).steered_after_per_m)


def test_a_world_may_have_limits_of_its_own() -> None:
    y, x = np.mgrid[0:120, 0:160] * 0.1
    rolling = ground(0.08 * np.sin(2.0 * x) * np.cos(1.7 * y))
    start, goal = (2.0, 13.0), (7.0, 13.0)
    config = Config().replaced(limits="enav_like")
    assert traverse(rolling, config, start, goal).outcome == "goal_reached"
    strict = config.replaced(["world.limits={base: enav_like, bogie_max_deg: 1}"])
    result = traverse(rolling, strict, start, goal)
    assert (result.outcome, result.faults) == ("start_unsafe", ("bogie",))
    assert result.built["limits.bogie_max_deg"] == pytest.approx(25.0)  # the planner's
