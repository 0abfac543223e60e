import gc
import math
import subprocess
import sys

import numpy as np
import pytest

from mlnav import _core
from mlnav.config import Bullet, Config, Rover
from mlnav.core import reason_names
from mlnav.sim import traverse
from mlnav.sim.world import (
    PHASES,
    STATE_COLUMNS,
    Execution,
    KinematicWorld,
    Motion,
    WorldError,
    wrapped,
)
from mlnav.terrain import Terrain

pytest.importorskip("pybullet")
from mlnav.sim import bullet, bullet_rig
from mlnav.sim.bullet import BulletWorld

pytestmark = pytest.mark.bullet

MODEL = Config().rover_model()
CELLS = 120  # 12 m: 6 m to drive in between the margins
MIDDLE = (6.0, 6.0, 0.0)


def flat() -> np.ndarray:
    return np.zeros((CELLS, CELLS))


def world(z: np.ndarray, resolution_m: float = 0.1, origin_m=(0.0, 0.0), **settings) -> BulletWorld:
    """A world of which the rover drives fast, unless told otherwise, to save time."""
    terrain = Terrain(z, resolution_m, origin_m, name="made")
    return BulletWorld(terrain, MODEL, Bullet.model_validate({"speed_m_s": 1.0, **settings}))


def drive(w: BulletWorld, pose, *motions: Motion) -> Execution:
    """Place the rover, drive until the run ends; the last execution."""
    end = tuple(w.place(pose).poses[0])
    for motion in motions:
        run = w.execute(end, motion)
        end = run.pose
        if run.ending is not None:
            break
    return run


def exact_end(start, motion: Motion):
    return tuple(motion.poses(start, 0.1, 0.1)[0][-1])


# ------------------------------------------------------------------------------------ standing


def slope(degrees: float) -> np.ndarray:
    return np.tile(np.arange(CELLS) * 0.1 * math.tan(math.radians(degrees)), (CELLS, 1))


def waves() -> np.ndarray:
    y, x = np.mgrid[:CELLS, :CELLS] * 0.1
    return 0.12 * np.sin(1.7 * x + 0.4) * np.cos(1.3 * y)


@pytest.mark.parametrize(
    ("z", "heading", "angle_deg", "height_m"),
    [
        (flat(), 0.4, 0.01, 0.0005),
        (slope(20), 0.0, 0.01, 0.002),
        (slope(20), math.pi, 0.01, 0.002),
        # The kinematic wheel stands upright, that of the physics tilts with the rover: across a
        # slope it touches with its side and the rover stands lower by up to half a wheel's width.
        (slope(15), math.pi / 2, 0.01, 0.168 * math.tan(math.radians(15))),
        (waves(), 0.7, 0.3, 0.03),
    ],
    ids=["flat", "up", "down", "across", "waves"],
)
def test_the_rover_settles_as_the_kinematic_world_says(z, heading, angle_deg, height_m) -> None:
    states = world(z).place((6.0, 6.0, heading))
    pose = tuple(states.poses[0])
    assert math.dist(pose, (6.0, 6.0, heading)) < 0.005
    expected = KinematicWorld(Terrain(z, 0.1), MODEL).place(pose).state(0)
    for name, value in states.state(0).items():
        bogie = 3.0 if name.startswith("bogie") else 1.0
        tolerance = math.radians(angle_deg) * bogie if name.endswith("_rad") else height_m
        assert value == pytest.approx(expected[name], abs=tolerance), name
    assert not states.columns["belly_contact"][0]


def test_states_have_what_planner_and_records_look_at() -> None:
    for z in (flat(), np.where(np.arange(CELLS) < 55, 5.0, 0.0) * np.ones((CELLS, 1))):
        states = world(z).place((6.0, 6.0, math.pi / 2))
        assert {*STATE_COLUMNS, "safe", "reasons", "status", "belly_contact"} <= {*states.columns}
        assert all(len(column) == 1 for column in states.columns.values())
        assert (states.first_unsafe() is None) == (z.max() == 0.0)


def test_a_place_where_it_cannot_settle_is_unsafe_and_holds_no_rover() -> None:
    z = flat()
    z[:, 65:] = -6.0  # the right wheels have no ground within reach
    w = world(z)
    states = w.place((6.0, 6.0, math.pi / 2))
    assert states.first_unsafe() == 0
    assert states.faults(0) == ["mechanical"]
    with pytest.raises(WorldError, match="placed first"):
        w.execute((6.0, 6.0, math.pi / 2), Motion(0.0, 0.0, 1.0))


def test_steep_ground_is_beyond_the_limits() -> None:
    states = world(slope(28), friction=1.0).place(MIDDLE)
    assert states.faults(0) == ["tilt"]


def test_time_stands_still_while_the_rover_does() -> None:
    w = world(slope(20))
    pose = tuple(w.place(MIDDLE).poses[0])
    for _ in range(3):
        run = w.execute(pose, Motion(0.0, 0.0, 0.0))
        assert (run.pose, len(run.states), run.driven_m, run.ending) == (pose, 0, 0.0, None)


# ------------------------------------------------------------------------------------ driving


@pytest.mark.parametrize(
    ("motion", "pose", "resolution_m", "origin_m", "shape"),
    [
        (Motion(0.0, 0.0, 1.0), (6.0, 6.0, 0.0), 0.1, (0.0, 0.0), (120, 120)),
        (Motion(0.0, 0.0, -1.0), (6.0, 6.0, 2.0), 0.1, (0.0, 0.0), (120, 120)),
        (Motion(0.0, 0.3, 1.0), (-95.2, 706.1, -2.6), 0.1, (-103.73, 701.41), (90, 171)),
        (Motion(0.0, -0.3, 1.0), (-95.2, 706.1, -2.6), 0.1, (-103.73, 701.41), (90, 171)),
        (Motion(0.4, 0.0, 0.0), (4.5, 5.0, 3.1), 0.05, (0.01, 0.02), (201, 180)),
        (Motion(-0.3, 0.7, 1.0), (6.0, 6.0, 1.0), 0.1, (0.0, 0.0), (120, 120)),
    ],
    ids=["ahead", "back", "left", "right", "turn", "turn and arc"],
)
def test_motions_end_where_they_should(motion, pose, resolution_m, origin_m, shape) -> None:
    w = world(np.full(shape, -1234.5), resolution_m, origin_m, speed_m_s=0.2)
    start = tuple(w.place(pose).poses[0])
    run = w.execute(start, motion)
    end = exact_end(start, motion)
    assert run.ending is None and run.faults == ()
    assert math.dist(run.pose[:2], end[:2]) < 0.05
    assert abs(wrapped(run.pose[2] - end[2])) < math.radians(1.5)
    assert run.driven_m == pytest.approx(abs(motion.length_m), abs=0.03)
    assert run.pose == tuple(run.states.poses[-1])
    rolling = run.states.columns["phase"] >= PHASES.index("turn")
    assert rolling.sum() == len(motion.poses(start, 0.02, math.radians(0.5))[0])
    # Its wheels are judged while they steer at a standstill, too.
    steered = np.abs(MODEL.wheel_steering_rad(motion.curvature_per_m)).max() > 0.1
    assert not steered or (~rolling).sum() >= 3
    assert run.states.columns["safe"].all()
    # Wheel turns and gyro: the commanded way, along the headings that it really had.
    forward, left, turned = run.counted
    assert turned == pytest.approx(wrapped(run.pose[2] - start[2]))
    flown = math.hypot(forward, left)
    half = 0.5 * motion.curvature_per_m * motion.length_m
    chord = abs(motion.length_m) * (math.sin(half) / half if half else 1.0)
    assert flown == pytest.approx(chord, abs=0.005)


def test_settings_of_the_drive_have_effect() -> None:
    w = world(flat(), state_step_m=0.25, state_turn_deg=5.0, speed_m_s=0.5, steps_per_s=240)
    start = tuple(w.place(MIDDLE).poses[0])
    run = w.execute(start, Motion(math.radians(20), 0.0, 1.0))
    rolling = run.states.columns["phase"] >= PHASES.index("turn")
    assert rolling.sum() == 4 + 4
    weak = drive(world(slope(20), wheel_torque_nm=20.0), MIDDLE, Motion(0.0, 0.0, 1.0))
    assert weak.pose[0] < 6.0  # rolls back down
    light = drive(world(slope(20), wheel_torque_nm=20.0, mass_kg=50), MIDDLE, Motion(0.0, 0.0, 1.0))
    assert light.pose[0] > 6.5
    smooth = drive(world(slope(20), friction=0.2), MIDDLE, Motion(0.0, 0.0, 1.0))
    assert smooth.pose[0] < 6.0
    coarse = drive(world(flat(), solver_iterations=10), MIDDLE, Motion(0.0, 0.6, 1.0))
    fine = drive(world(flat(), solver_iterations=60), MIDDLE, Motion(0.0, 0.6, 1.0))
    assert coarse.pose != fine.pose


def test_the_engine_tells_what_it_is_set_to() -> None:
    told = {"mass_kg": 900.0, "friction": 0.6, "steps_per_s": 240, "solver_iterations": 77}
    w = world(flat(), **told)
    for _ in range(2):
        built = w.as_built()
        assert {key: built[f"world.{key}"] for key in told} == pytest.approx(told)
        w.place(MIDDLE)


def test_a_rover_of_another_size_drives() -> None:
    rover = Rover(**{name: 0.5 * size for name, size in Rover().model_dump().items()})
    config = Config(rover=rover)
    w = BulletWorld(Terrain(flat(), 0.1), config.rover_model(), Bullet(mass_kg=100.0))
    run = drive(w, MIDDLE, Motion(0.0, 0.5, 1.0))
    assert run.ending is None
    assert math.dist(run.pose, exact_end(MIDDLE, Motion(0.0, 0.5, 1.0))) < 0.05


@pytest.mark.parametrize(("soil", "uphill", "share"), [("sand", 0, 0.08), ("sand", 10, 0.28)])
def test_slip_takes_from_the_way_and_not_from_the_count(soil, uphill, share) -> None:
    w = world(slope(uphill), slip=soil, speed_m_s=0.5)
    run = drive(w, MIDDLE, Motion(0.0, 0.0, 1.0))
    assert run.counted[0] == pytest.approx(1.0, abs=1e-6)
    along = run.driven_m / math.cos(math.radians(uphill))
    assert along == pytest.approx(1.0 - share, abs=0.03)


def test_slip_is_less_downhill_and_takes_from_turns_too() -> None:
    w = world(slope(10), slip="sand", speed_m_s=0.5)
    down = drive(w, (6.0, 6.0, math.pi), Motion(0.0, 0.0, 1.0))
    back = drive(w, MIDDLE, Motion(0.0, 0.0, -1.0))
    for run in (down, back):
        assert run.driven_m / math.cos(math.radians(10)) == pytest.approx(0.98, abs=0.03)
    slow = {"level": 0.5, "growth_deg": 10.0}
    turn = drive(world(flat(), slip=slow), MIDDLE, Motion(0.6, 0.0, 0.0))
    assert turn.pose[2] == pytest.approx(0.3, abs=0.03)


# ------------------------------------------------------------------------------------ endings


def test_a_rover_that_follows_its_path_ends_nearer_to_its_end() -> None:
    """Across a slope it slides down, and sand takes from the way."""
    y, x = np.mgrid[:CELLS, :CELLS] * 0.1
    across = 0.2 * y + 0.01 * np.sin(7.0 * x)
    for motion in (Motion(0.0, 0.1, 1.0), Motion(0.0, -0.2, -1.0), Motion(0.5, 0.0, 0.0)):
        off = {}
        for follows in (False, True):
            w = world(across, slip="sand", follows_path=follows, speed_m_s=0.4)
            start = tuple(w.place(MIDDLE).poses[0])
            run = w.execute(start, motion)
            assert run.ending is None
            x_m, y_m, heading = exact_end(start, motion)
            way = math.hypot(run.pose[0] - x_m, run.pose[1] - y_m)
            turned = 1.5 * abs(wrapped(run.pose[2] - heading))
            off[follows] = turned if motion.turn_rad else way
        assert off[True] < 0.5 * off[False], (motion, off)


def test_a_cliff_tips_it_over() -> None:
    z = flat()
    z[:, 75:] = -4.0
    run = drive(world(z, stop_at_limits=False), MIDDLE, Motion(0.0, 0.0, 2.0))
    assert run.ending == "tipped_over"
    assert "tilt" in run.faults
    assert run.states.columns["tilt_rad"][-1] > math.radians(60.0)
    assert run.pose == tuple(run.states.poses[-1])


def test_with_limits_it_stops_before_the_cliff_has_it() -> None:
    z = flat()
    z[:, 75:] = -4.0
    run = drive(world(z), MIDDLE, Motion(0.0, 0.0, 2.0))
    assert run.ending == "unsafe_state"
    assert run.states.first_unsafe() == len(run.states) - 1
    assert run.pose == tuple(run.states.poses[-1])
    assert run.states.columns["tilt_rad"][-1] < math.radians(30.0)


def ridge(height_m: float) -> np.ndarray:
    """Between the wheels, across the rover's way."""
    z = flat()
    z[54:67, 82:84] = height_m
    return z


def test_belly_contact_is_seen_and_unsafe() -> None:
    # So few states that none is due before the contact, at which there is one.
    run = drive(world(ridge(0.75), state_step_m=5.0), MIDDLE, Motion(0.0, 0.0, 2.0))
    assert (run.ending, run.faults) == ("unsafe_state", ("clearance",))
    assert len(run.states) == 1 and run.states.first_unsafe() == 0
    assert run.states.columns["belly_contact"][0]
    assert run.states.columns["belly_force_n"][0] > 0.0
    assert run.pose[0] + MODEL.geometry.pan_front_x_m == pytest.approx(8.15, abs=0.1)


def test_a_touch_between_two_states_is_seen() -> None:
    settings = {"state_step_m": 5.0, "stop_at_limits": False, "speed_m_s": 0.2}
    z = flat()
    z[60, 85] = 0.62  # scratches along the pan and is behind it before the next state
    z[60, 86] = 0.61
    run = drive(world(z, **settings), MIDDLE, Motion(0.0, 0.0, 1.9))
    assert len(run.states) == 1
    assert run.states.columns["belly_contact"][0]


def test_a_ridge_hangs_it_on_its_belly() -> None:
    run = drive(world(ridge(0.75), stop_at_limits=False), MIDDLE, Motion(0.0, 0.0, 3.0))
    assert run.ending == "high_centred"
    assert run.pose[0] < 7.5


def test_a_wall_stalls_it() -> None:
    z = flat()
    z[:, 80:] = 4.0
    run = drive(world(z, stop_at_limits=False), MIDDLE, Motion(0.0, 0.0, 3.0))
    assert run.ending == "stalled"
    assert not run.states.columns["belly_contact"].any()
    assert run.counted[0] < 3.0


def test_stalling_is_seen_over_short_motions() -> None:
    z = flat()
    z[:, 76:] = 4.0
    w = world(z, stop_at_limits=False)
    run = drive(w, MIDDLE, *[Motion(0.0, 0.0, 0.2)] * 10)
    assert run.ending == "stalled"


def test_turning_to_and_fro_is_no_stall() -> None:
    run = drive(world(flat()), MIDDLE, Motion(0.3, 0.0, 0.0), Motion(-0.3, 0.0, 0.0))
    assert run.ending is None


def test_jammed_steering_stalls(monkeypatch) -> None:
    monkeypatch.setattr(bullet, "_JAMMED_S", -10.0)
    run = drive(world(flat()), MIDDLE, Motion(0.5, 0.0, 0.0))
    assert (run.ending, len(run.states), run.faults) == ("stalled", 2, ())


def test_the_edge_of_the_map_ends_the_run() -> None:
    run = drive(world(flat()), (8.0, 6.0, 0.0), Motion(0.0, 0.0, 3.0))
    assert (run.ending, run.faults) == ("map_edge", ())
    assert 8.9 < run.pose[0] < 9.0  # 3 m from the last cell at 11.9 m
    nearer = drive(world(flat(), edge_m=2.5), (8.5, 6.0, 0.0), Motion(0.0, 0.0, 0.7))
    assert nearer.ending is None


def engine_of(w: BulletWorld):
    return w._rig._engine, w._rig._rover


@pytest.mark.parametrize("limits", [True, False])
def test_below_the_ground_it_fell_through(limits: bool) -> None:
    w = world(flat(), stop_at_limits=limits)
    pose = tuple(w.place(MIDDLE).poses[0])
    engine, rover = engine_of(w)
    engine.resetBasePositionAndOrientation(rover, [0.0, 0.0, -0.5], [0.0, 0.0, 0.0, 1.0])
    run = w.execute(pose, Motion(0.0, 0.0, 1.0))
    assert run.ending == "fell_through"


def test_a_hole_in_the_physics_is_fallen_through() -> None:
    w = world(flat(), stop_at_limits=False)
    pose = tuple(w.place(MIDDLE).poses[0])
    w._rig._lay(np.full((CELLS, CELLS), np.nan, np.float32))
    run = w.execute(pose, Motion(0.0, 0.0, 1.0))
    assert run.ending == "fell_through"


@pytest.mark.parametrize("where", ["speed", "place", "joint"])
def test_numbers_that_are_none_end_the_run(where: str) -> None:
    w = world(flat())
    pose = tuple(w.place(MIDDLE).poses[0])
    engine, rover = engine_of(w)
    if where == "speed":
        engine.resetBaseVelocity(rover, [math.nan, 0.0, 0.0], [0.0, 0.0, 0.0])
    elif where == "place":
        engine.resetBasePositionAndOrientation(rover, [0.0, math.nan, 1.0], [0.0, 0.0, 0.0, 1.0])
    else:
        engine.resetJointState(rover, 0, math.nan)
    run = w.execute(pose, Motion(0.0, 0.0, 1.0))
    assert (run.ending, run.pose, len(run.states)) == ("physics_failed", pose, 0)
    with pytest.raises(WorldError, match="placed first"):
        w.execute(pose, Motion(0.0, 0.0, 1.0))
    assert w.place(MIDDLE).first_unsafe() is None


def test_physics_that_fails_at_the_start_is_told(monkeypatch) -> None:
    monkeypatch.setattr(bullet_rig.Rig, "stand", lambda self: None)
    with pytest.raises(WorldError, match="physics failed"):
        world(flat()).place(MIDDLE)


# ------------------------------------------------------------------------------------ the ground


def test_unknown_ground_is_driven_on_and_not_safe() -> None:
    z = flat()
    z[:, 80:] = np.nan
    run = drive(world(z), MIDDLE, Motion(0.0, 0.0, 2.0))
    assert (run.ending, run.faults) == ("unsafe_state", ("unknown",))
    on = drive(world(z, stop_at_limits=False), MIDDLE, Motion(0.0, 0.0, 2.0))
    assert on.ending is None
    assert on.pose[0] == pytest.approx(8.0, abs=0.02)
    assert reason_names(int(on.states.columns["reasons"][-1])) == ["unknown"]


def test_the_surface_it_is_held_against_is_the_physics_own() -> None:
    z = np.random.default_rng(5).normal(0.0, 0.5, (61, 83))
    w = world(z, 0.2, (10.0, -20.0))
    w.place((18.0, -14.0, 0.0))
    engine, rover = engine_of(w)
    engine.resetBasePositionAndOrientation(rover, [0.0, 0.0, 50.0], [0.0, 0.0, 0.0, 1.0])
    xy = np.random.default_rng(6).uniform(-5.0, 5.0, (300, 2))
    above = [[x, y, 10.0] for x, y in xy]
    hits = engine.rayTestBatch(above, [[x, y, -10.0] for x, y in xy])
    at = np.array([hit[3] for hit in hits])
    np.testing.assert_allclose(w._ground.above_m(at), 0.0, atol=1e-4)
    x, y, height = w._ground.outer(*at[0])
    nodes = Terrain(z, 0.2, (10.0, -20.0))
    assert height == pytest.approx(nodes.height(x, y), abs=0.6)


def test_a_moving_patch_is_as_good_as_the_whole_map() -> None:
    y, x = np.mgrid[:140, :300] * 0.1
    z = 0.15 * np.sin(1.1 * x) * np.cos(0.9 * y) + 0.1 * x
    ends = []
    for half in (8.0, 40.0):
        w = world(z, patch_half_width_m=half, speed_m_s=0.5)
        assert (w._ground._nodes == z.shape) == (half == 40.0)
        pose = (10.0, 7.0, 0.0)
        run = drive(w, pose, *[Motion(0.0, 0.0, 2.5)] * 3)
        assert run.ending is None
        ends.append([*run.pose, *run.states.state(-1).values()])
        moved = w._rig._patch.middle != w._ground.patch(pose).middle
        assert moved == (half == 8.0)
    np.testing.assert_allclose(ends[0], ends[1], atol=0.01)


def test_a_patch_is_laid_out_under_a_rover_that_leaves_it() -> None:
    z = np.zeros((100, 400))
    w = world(z, patch_half_width_m=8.0, speed_m_s=1.0)
    run = drive(w, (10.0, 5.0, 0.0), Motion(0.0, 0.0, 12.0))
    assert run.ending is None
    assert run.pose[0] == pytest.approx(22.0, abs=0.1)


def test_rough_worlds_neither_crash_nor_hang() -> None:
    rng = np.random.default_rng(8)
    for _ in range(3):
        z = flat()
        for _ in range(25):
            i, j = rng.integers(0, CELLS, 2)
            size = rng.integers(1, 9)
            z[i : i + size, j : j + size] += rng.choice([0.4, -0.5, 8.0, -30.0, 500.0])
        z[50:71, 45:76] = 0.0
        w = world(z, stop_at_limits=False)
        run = drive(w, MIDDLE, Motion(0.0, rng.uniform(-0.5, 0.5), 4.0))
        assert math.isfinite(sum(run.pose)) and math.isfinite(run.driven_m)


# ------------------------------------------------------------------------------------ refused


@pytest.mark.parametrize(
    ("shape", "resolution_m", "message"),
    [
        ((1, 1), 0.1, "too small"),
        ((400, 20), 0.1, "too small"),
        ((60, 60), 0.1, "too small"),
        ((50, 50), 1.5, "too coarse"),
        ((1500, 1500), 0.005, "too fine"),
    ],
)
def test_terrains_it_cannot_hold_are_refused(shape, resolution_m, message) -> None:
    with pytest.raises(WorldError, match=message):
        world(np.zeros(shape), resolution_m)


@pytest.mark.parametrize(
    ("pose", "message"),
    [
        ((6.0, 40.0, 0.0), "outside the map"),
        ((6.0, 2.0, 0.0), "from the map's edge"),
        ((5.0, 5.0, 0.0), "unknown ground"),
        ((math.nan, 6.0, 0.0), "finite"),
        ((6.0, 6.0, math.inf), "finite"),
    ],
)
def test_starts_it_cannot_have_are_refused(pose, message) -> None:
    z = flat()
    z[48:53, 48:53] = np.nan
    with pytest.raises(WorldError, match=message):
        world(z).place(pose)


def test_it_drives_only_from_where_it_stands() -> None:
    w = world(flat())
    with pytest.raises(WorldError, match="placed first"):
        w.execute(MIDDLE, Motion(0.0, 0.0, 1.0))
    w.place(MIDDLE)
    with pytest.raises(WorldError, match="stands at"):
        w.execute((6.0, 6.1, 0.0), Motion(0.0, 0.0, 1.0))
    w.close()
    with pytest.raises(WorldError, match="placed first"):
        w.execute(MIDDLE, Motion(0.0, 0.0, 1.0))


def test_without_the_library_the_extra_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "pybullet", None)
    with pytest.raises(WorldError, match=r"mlnav\[sim\]"):
        world(flat())


def test_a_rover_that_cannot_be_built_is_refused() -> None:
    model = _core.RoverModel()
    model.geometry.middle_y_m = 0.1
    with pytest.raises(WorldError, match="wheels overlap"):
        BulletWorld(Terrain(flat(), 0.1), model)


# ------------------------------------------------------------------------------------ repetition

RUN = """
import hashlib, numpy as np
from mlnav.config import Bullet, Config
from mlnav.sim.bullet import BulletWorld
from mlnav.sim.world import Motion
from mlnav.terrain import Terrain
y, x = np.mgrid[:140, :260] * 0.1
z = 0.15 * np.sin(1.3 * x) * np.cos(0.9 * y)
z[60:63, 110:113] += 0.2
settings = Bullet(
    patch_half_width_m=8.0, stop_at_limits=False, speed_m_s=1.0, steps_per_s=60, slip="compact"
)
world = BulletWorld(Terrain(z, 0.1, (3.3, -7.1)), Config().rover_model(), settings)
def digest():
    states = world.place((13.0, -1.0, 0.0))
    sha = hashlib.sha256(states.poses.tobytes())
    pose = tuple(states.poses[0])
    for motion in (Motion(0.0, -0.1, 4.5), Motion(0.0, 0.1, 0.5)):
        run = world.execute(pose, motion)
        pose = run.pose
        sha.update(run.states.poses.tobytes() + np.array([run.driven_m, *run.counted]).tobytes())
        for name in sorted(run.states.columns):
            sha.update(run.states.columns[name].tobytes())
    return sha.hexdigest()
"""


def test_runs_repeat_bit_for_bit() -> None:
    scope: dict = {}
    exec(RUN, scope)
    first = scope["digest"]()
    assert scope["digest"]() == first  # placed again in the same world
    drive(world(slope(10)), MIDDLE, Motion(0.2, 0.0, 0.3))  # another run in between
    exec(RUN, scope)
    assert scope["digest"]() == first
    child = subprocess.run(
        [sys.executable, "-c", RUN + "\nprint(digest())"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert child.stdout.split()[-1] == first


def test_worlds_let_their_engines_go() -> None:
    import pybullet

    def free_engine() -> int:
        engine = pybullet.connect(pybullet.DIRECT)
        pybullet.disconnect(engine)
        return engine

    gc.collect()  # of tests before this one
    before = free_engine()
    z = np.zeros((70, 70))
    for i in range(12):
        w = world(z, steps_per_s=60, solver_iterations=10)
        w.place((3.45, 3.45, 0.0))
        if i % 2:
            w.close()
    del w
    assert free_engine() == before


def test_two_worlds_do_not_meet() -> None:
    one, two = world(flat()), world(slope(15))
    a, b = (tuple(w.place(MIDDLE).poses[0]) for w in (one, two))
    apart = [one.execute(a, Motion(0.0, 0.0, 0.5)), two.execute(b, Motion(0.0, 0.0, 0.5))]
    alone = drive(world(flat()), MIDDLE, Motion(0.0, 0.0, 0.5))
    assert apart[0].pose == alone.pose
    assert apart[1].states.columns["tilt_rad"][-1] == pytest.approx(math.radians(15), abs=1e-3)


def test_a_traverse_reaches_its_goal_and_repeats() -> None:
    z = 0.05 * np.sin(np.mgrid[:160, :160].sum(axis=0) * 0.08)
    z[78:82, 75:78] += 0.5  # a rock to go round
    terrain = Terrain(z, 0.1, (2.0, 5.0), name="made")
    config = Config.model_validate(
        {"world": {"name": "bullet", "speed_m_s": 1.0, "steps_per_s": 60}}
    )
    runs = [traverse(terrain, config, (7.0, 13.0), (11.9, 13.0), 1) for _ in range(2)]
    assert runs[0].outcome == "goal_reached"
    assert runs[0].world == "bullet"
    assert runs[0].summary(timing=False) == runs[1].summary(timing=False)
    cycles = [[{**c.as_dict(), "timing_s": None} for c in run.cycles] for run in runs]
    assert cycles[0] == cycles[1]
