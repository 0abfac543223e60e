"""Where the rover is told to be, against where it is."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlnav.config import Config
from mlnav.io.records import to_json
from mlnav.sim import Execution, KinematicWorld, RoverState, SettledStates, TruthSensor, traverse
from mlnav.sim.localization import Localization, make_localization
from mlnav.sim.world import moved, seen_from
from mlnav.terrain import Terrain

NO_STATES = SettledStates(np.empty((0, 3)), {})

coordinates = st.floats(-50.0, 50.0)
headings = st.floats(-math.pi, math.pi, exclude_max=True)
poses = st.tuples(coordinates, coordinates, headings)


def localization(name: str, *settings: str, seed: int = 0) -> Localization:
    return make_localization(Config().replaced(settings, localization=name), seed)


def drive(end, counted=None) -> Execution:
    return Execution(NO_STATES, end, 1.0, counted or (0.0, 0.0, 0.0))


@given(poses, poses)
def test_a_pose_seen_from_another_is_found_again(base, pose) -> None:
    again = moved(base, seen_from(base, pose))
    assert again[:2] == pytest.approx(pose[:2], abs=1e-9)
    assert math.cos(again[2] - pose[2]) == pytest.approx(1.0, abs=1e-9)


def test_truth_is_truth_whatever_the_wheels_counted() -> None:
    before = RoverState((1.0, 2.0, 0.3), {}, (1.0, 2.0, 0.3))
    after = localization("truth").update(before, drive((4.0, 5.0, 1.0), (9.0, 9.0, 2.0)))
    assert after.exact
    assert after.estimated_pose == (4.0, 5.0, 1.0)


def test_wheels_count_slip_as_way_and_images_do_not() -> None:
    quiet = ["localization.distance_sigma=0", "localization.heading_sigma_deg=0"]
    before = RoverState((1.0, 2.0, math.pi / 2), {}, (11.0, 2.0, 0.0), 0.5)
    slipped = drive((1.0, 2.6, math.pi / 2 + 0.1), counted=(1.0, 0.0, 0.2))
    wheels = localization("wheel", *quiet).update(before, slipped)
    assert wheels.true_pose == slipped.pose
    assert wheels.estimated_pose == pytest.approx((12.0, 2.0, 0.2))
    images = localization("visual", *quiet).update(before, slipped)
    assert images.estimated_pose == pytest.approx((11.6, 2.0, 0.1))
    assert images.estimated_z_error_m == 0.5


def test_errors_grow_with_the_root_of_the_way() -> None:
    settings = ["localization.distance_sigma=0.02", "localization.heading_sigma_deg=0.5"]
    before = RoverState((0.0, 0.0, 0.0), {}, (0.0, 0.0, 0.0))
    for steps in (1, 4):
        ends = []
        for seed in range(400):
            tells = localization("visual", *settings, seed=seed)
            where = before
            for i in range(steps):
                where = tells.update(where, drive((i + 1.0, 0.0, 0.0)))
            x, _, heading = where.estimated_pose
            ends.append((x - steps, heading, where.estimated_z_error_m))
        along, turned, up = np.std(ends, axis=0)
        assert along == pytest.approx(0.02 * math.sqrt(steps), rel=0.15)
        assert turned == pytest.approx(math.radians(0.5) * math.sqrt(steps), rel=0.15)
        assert up == pytest.approx(0.02 * math.sqrt(steps), rel=0.15)


def test_the_true_sensor_shows_the_ground_where_the_rover_believes_it_to_be() -> None:
    y, x = np.mgrid[0:120, 0:160] * 0.1
    z = (0.2 * x - 0.1 * y + 0.05 * np.sin(x) * np.cos(1.3 * y)).astype(np.float32)
    terrain = Terrain(z, 0.1, (3.0, -2.0))
    where = RoverState((11.0, 4.0, 0.7), {}, (10.6, 4.3, 0.9), 0.25)
    sensor = TruthSensor(terrain, 2.0, align_cells=4)
    seen = sensor.sense(where)
    assert seen.origin_m == sensor.window(where.estimated_pose).origin_m
    rng = np.random.default_rng(0)
    for forward, left in rng.uniform(-1.2, 1.2, (20, 2)):
        true = moved(where.true_pose, (forward, left, 0.0))
        told = moved(where.estimated_pose, (forward, left, 0.0))
        frame = Terrain(seen.z, seen.resolution_m, seen.origin_m)
        assert frame.height(*told[:2]) == pytest.approx(terrain.height(*true[:2]) + 0.25, abs=2e-3)


def flat() -> Terrain:
    return Terrain(np.zeros((200, 300), np.float32), 0.1, start_m=(5.0, 10.0), goal_m=(24.0, 10.0))


def test_a_run_with_odometry_ends_where_the_rover_believes_the_goal_to_be() -> None:
    config = Config().replaced(["localization.distance_sigma=0.05"], localization="visual")
    result = traverse(flat(), config, seed=4)
    assert result.outcome == "goal_reached"
    error = result.summary()["position_error_m"]
    assert 0.01 < error < 2.0
    assert math.dist(result.estimated_end[:2], result.goal) <= 1.0
    again = traverse(flat(), config, seed=4)
    assert to_json(again.summary(timing=False)) == to_json(result.summary(timing=False))
    assert traverse(flat(), config, seed=5).end != result.end


def test_a_goal_that_was_missed_is_no_success() -> None:
    config = Config().replaced(
        ["localization.distance_sigma=0", "localization.heading_sigma_deg=0"], localization="wheel"
    )

    class Slippery(KinematicWorld):
        """Counts a fifth more than it drives."""

        def execute(self, pose, motion):
            run = super().execute(pose, motion)
            forward, left, turned = run.counted
            counted = (1.2 * forward, 1.2 * left, turned)
            return Execution(run.states, run.pose, run.driven_m, counted)

    ground = flat()
    world = Slippery(ground, config.rover_model())
    result = traverse(ground, config, world=world)
    assert result.outcome == "goal_missed"
    assert not result.success
    assert 2.0 < math.dist(result.end[:2], result.goal) < 5.0
