import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlnav.config import Config
from mlnav.core import WHEELS, HeightMap
from mlnav.nav import Motion
from mlnav.sim import KinematicWorld, traverse
from mlnav.sim.world import PHASES, SampledMotion, Spacing, wrapped
from mlnav.terrain import Terrain, load

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
    assert (run.unsafe, run.unsafe_states) == (None, 0)


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


# ------------------------------------------------------------------------- the way between poses

MODEL = Config().rover_model()
STRAIGHT = np.zeros(6)


def way_of(motion: Motion, start=(1.0, 2.0, 0.3), steering=STRAIGHT) -> SampledMotion:
    return SampledMotion.of(motion, start, steering, MODEL, Spacing())


@given(turn=st.floats(-3.0, 3.0), length=st.floats(-3.0, 3.0), curvature=st.floats(-0.5, 0.5))
def test_a_world_judges_every_two_centimetres_half_a_degree_and_steering(
    turn, length, curvature
) -> None:
    spacing = Spacing()
    way = way_of(Motion(turn, curvature, length))
    driven = way.driven_m[way.phase == PHASES.index("arc")]
    assert np.diff(driven, prepend=0.0).max(initial=0.0) <= spacing.step_m + 1e-9
    assert driven[-1:].sum() == pytest.approx(abs(length))
    turning = way.poses[way.phase == PHASES.index("turn"), 2]
    turned = np.abs(np.diff(np.unwrap(np.array([0.3, *turning]))))
    assert turned.max(initial=0.0) <= spacing.turn_rad + 1e-9
    assert turned.sum() == pytest.approx(abs(turn), abs=1e-9)
    # From a rover with straight wheels on, no wheel ever steers by more from a state to the next.
    steered = np.abs(np.diff(np.vstack([STRAIGHT, way.steering_rad]), axis=0))
    assert steered.max(initial=0.0) <= spacing.steer_rad + 1e-9


@pytest.mark.parametrize("checked_m", [0.01, 0.02, 0.025, 0.05, 0.1, 0.25])
def test_a_world_is_out_of_phase_with_any_checker(checked_m: float) -> None:
    driven = way_of(Motion(0.0, 0.2, 1.0)).driven_m
    rolled = driven[(driven > 0.0) & (driven < 1.0)]
    nearest = np.abs(rolled / checked_m - np.rint(rolled / checked_m)) * checked_m
    assert len(rolled) >= 49
    assert nearest.max() > 0.2 * checked_m  # not at the checker's own places
    assert nearest.min() > 1e-4  # at none of them


def test_wheels_steer_while_the_rover_stands() -> None:
    start = (1.0, 2.0, 0.3)
    straight, left = MODEL.wheel_steering_rad(0.0), MODEL.wheel_steering_rad(1 / 3)
    assert np.all(straight == 0.0)
    assert left[[1, 4]] == pytest.approx(0.0)  # the middle wheels do not steer
    assert left[0] > 0.3 and left[2] < -0.3
    assert MODEL.wheel_steering_rad(math.inf)[[0, 3]] == pytest.approx([-0.84, 0.84], abs=0.01)
    way = way_of(Motion(0.4, 1 / 3, 1.0), start)
    steer = way.phase == PHASES.index("steer")
    # Before the turn, and before the arc at the pose where the turn has ended.
    assert {tuple(np.round(p, 9)) for p in way.poses[steer]} == {(1.0, 2.0, 0.3), (1.0, 2.0, 0.7)}
    first = np.flatnonzero(steer)[0]
    assert first == 0 and np.abs(way.steering_rad[first]).max() < math.radians(2.0)
    assert way.steering_rad[-1] == pytest.approx(left)
    # Steered so already: nothing to do.
    again = way_of(Motion(0.0, 1 / 3, 1.0), start, left)
    assert np.all(again.phase == PHASES.index("arc"))


def certified_arcs(terrain: Terrain, count: int):
    """Arcs of a metre whose every pose of a tenth of a metre the certified checker passes."""
    config = Config()
    checker = config.build_checker(terrain.z.size)
    checker.set_map(HeightMap.of(terrain).grid)
    rng = np.random.default_rng(4)
    x_min, x_max, y_min, y_max = terrain.extent_m
    while count > 0:
        start = (
            float(rng.uniform(x_min + 4, x_max - 4)),
            float(rng.uniform(y_min + 4, y_max - 4)),
            float(rng.uniform(-math.pi, math.pi)),
        )
        motion = Motion(0.0, float(rng.choice([-1 / 3, -0.2, 0.0, 0.2, 1 / 3])), 1.0)
        stances, _ = motion.stances(start, 0.1, math.radians(3.3))
        before = np.array([[*start, motion.curvature_per_m], [*start, 0.0]])
        if not checker.reasons(np.vstack([before, stances])).any():
            count -= 1
            yield start, motion


def test_unsafe_states_between_certified_poses_are_seen() -> None:
    terrain = load("0/.20", seed=5)
    between = world(terrain)
    at_poses = KinematicWorld(terrain, MODEL, spacing=Spacing(0.1, math.radians(2.0), 10.0))
    seen = []
    for start, motion in certified_arcs(terrain, 150):
        between.place(start)
        run = between.execute(start, motion)
        if run.ending is None:
            continue
        seen.append(run)
        assert run.ending == "unsafe_state" and run.unsafe is not None
        unsafe, here = run.unsafe, run.states.columns
        assert PHASES[here["phase"][-1]] == unsafe.phase
        if unsafe.constraint == "relief":
            wheel = WHEELS.index(unsafe.part.removeprefix("wheel "))
            assert unsafe.value == pytest.approx(unsafe.limit + unsafe.excess)
            assert unsafe.excess > 0.0 and unsafe.unit == "m"
            assert here["relief_m"][-1, wheel] <= unsafe.value + 1e-12
            assert here["relief_m"][-1].max() == here["relief_max_m"][-1]
        assert unsafe.states >= 1
        assert unsafe.distance_m == run.driven_m < 1.0
        assert 0.0 <= unsafe.length_m <= 1.0 - unsafe.distance_m + 1e-9
    assert len(seen) >= 3  # 150 m of certified way on ground where a world sees tens a kilometre
    assert at_poses.as_built()["world.settle_step_m"] == 0.1


def test_wheels_that_steer_onto_a_rock_are_seen() -> None:
    terrain = load("10/.20", seed=2)
    rng, steered = np.random.default_rng(7), 0
    ground_world = world(terrain)
    for _ in range(3000):
        x, y, heading = (float(v) for v in rng.uniform((6, 6, -3), (46, 46, 3)))
        both = np.array([STRAIGHT, MODEL.wheel_steering_rad(math.inf)])
        ends = ground_world.settle(np.array([(x, y, heading)] * 2), both)
        if not ends["safe"].all():
            continue
        ground_world.place((x, y, heading))
        run = ground_world.execute((x, y, heading), Motion(0.01, 0.0, 0.0))
        if run.unsafe is not None and run.unsafe.phase == "steer":
            assert run.ending == "unsafe_state" and run.driven_m == 0.0
            assert run.pose == (x, y, heading)
            assert "steer" in str(run.unsafe)
            steered += 1
    assert steered >= 5


def test_an_unsafe_state_says_what_by_how_much_and_for_how_long() -> None:
    run = world(bump(0.7)).execute((3.0, 13.0, 0.0), Motion(0.0, 0.0, 5.0))
    unsafe = run.unsafe
    assert unsafe is not None
    # A block of 0.7 m from x = 6 m on: the front wheels climb it with their edges first.
    assert unsafe.constraint in unsafe.reasons
    assert unsafe.constraint == "relief" and unsafe.part in (
        "wheel front_left",
        "wheel front_right",
    )
    assert unsafe.limit == pytest.approx(0.30) and unsafe.value == pytest.approx(0.70, abs=0.01)
    assert unsafe.excess == pytest.approx(unsafe.value - unsafe.limit)
    assert unsafe.length_m > 0.5 and unsafe.states > 25
    assert unsafe.states == run.unsafe_states
    assert "0.7 m where 0.3 is allowed" in str(unsafe) and "first in an arc" in str(unsafe)
    assert unsafe.pose == run.pose and unsafe.distance_m == run.driven_m
    steep = ground(np.tile(np.arange(160) * 0.1 * math.tan(math.radians(26)), (120, 1)))
    tilted = world(steep).execute((3.0, 13.0, 0.0), Motion(0.0, 0.0, 0.5)).unsafe
    assert (tilted.constraint, tilted.part, tilted.unit) == ("tilt", "body", "rad")
    assert "26 deg where 25 is allowed" in str(tilted)


def test_ground_without_a_number_is_named() -> None:
    z = np.zeros((120, 160))
    z[:, 90:] = np.nan
    unsafe = world(ground(z)).execute((3.0, 13.0, 0.0), Motion(0.0, 0.0, 3.0)).unsafe
    assert (unsafe.constraint, unsafe.value, unsafe.excess) == ("unknown", None, None)
    assert unsafe.length_m > 0.5


def test_a_run_that_drives_on_counts_its_unsafe_states_and_is_no_success() -> None:
    # A ridge across the way: relief beyond the limit, no more.
    z = np.tile(np.maximum(0.0, 0.35 - 0.7 * np.abs(np.arange(260) * 0.1 - 13.0)), (200, 1))
    terrain = Terrain(z, 0.1, name="sill")
    config = Config().replaced(["world.limits=flight_like"], limits="enav_like")
    start, goal = (8.0, 10.0), (18.0, 10.0)
    stopped = traverse(terrain, config, start, goal)
    assert (stopped.outcome, stopped.success) == ("unsafe_state", False)
    assert stopped.unsafe.constraint == "relief"
    assert stopped.unsafe.distance_m == pytest.approx(stopped.driven_m)
    summary = stopped.summary()
    assert summary["unsafe_state"]["part"].startswith("wheel ")
    assert 0 < summary["unsafe_states"] < summary["judged_states"]
    on = traverse(terrain, config.replaced(["world.stop_at_limits=false"]), start, goal)
    assert (on.outcome, on.success) == ("goal_reached", False)
    assert on.unsafe_states > stopped.unsafe_states
    assert on.inefficiency is None
