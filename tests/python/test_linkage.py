"""The linkage from its state to its wheels, against the core's chain the other way."""

import numpy as np
import pytest

from mlnav import _core
from mlnav.config import Config
from mlnav.core import HeightMap
from mlnav.linkage import STATE, box_centres, contact_heights, linkage
from mlnav.studies.soundness import random_poses
from mlnav.terrain import benchmark_class

MODEL = Config().rover_model()
LEVEL = dict.fromkeys(STATE, 0.0)


@pytest.fixture(scope="module")
def settled() -> dict[str, np.ndarray]:
    """Some hundred states at rest on steep, rocky ground."""
    terrain = benchmark_class(20.0, 0.10, seed=4)
    poses = random_poses(terrain, MODEL, 400, np.random.default_rng(1))
    state = _core.settle(HeightMap.of(terrain).grid, MODEL, poses)
    rest = state["status"] == 0
    assert rest.sum() > 350
    return {name: column[rest] for name, column in state.items()}


def test_wheels_are_where_settling_put_them(settled) -> None:
    axles = linkage(MODEL.geometry, settled).axles
    assert np.abs(axles[:, :, 0] - settled["forward_m"]).max() < 1e-12
    assert np.abs(axles[:, :, 1] - settled["left_m"]).max() < 1e-12
    # Settling stops within a micron of contact.
    assert np.abs(contact_heights(MODEL.geometry, settled) - settled["heights_m"]).max() < 1.01e-6


def test_settling_from_a_states_own_heights_stays_there(settled) -> None:
    """Heights of a state -> the core's chain -> the same state, within settling's tolerance."""
    terrain = benchmark_class(20.0, 0.10, seed=4)
    grid = HeightMap.of(terrain).grid
    poses = random_poses(terrain, MODEL, 400, np.random.default_rng(1))
    first = _core.settle(grid, MODEL, poses)
    rest = first["status"] == 0
    again = _core.settle(
        grid, MODEL, np.ascontiguousarray(poses[rest]), contact_heights(MODEL.geometry, settled)
    )
    assert (again["status"] == 0).all()
    for name in STATE:
        assert np.abs(again[name] - settled[name]).max() < 1e-4, name
    assert np.median(again["steps"]) <= 2


def test_at_rest_on_level_ground_everything_is_nominal() -> None:
    g = MODEL.geometry
    links = linkage(g, LEVEL)
    assert links.axles.shape == (1, 6, 3)
    assert links.axles[0, :, :2] == pytest.approx(MODEL.wheel_plan())
    assert links.axles[0, :, 2] == pytest.approx(np.full(6, g.wheel_radius_m))
    assert links.pan[0, :, 0] == pytest.approx(
        [g.pan_rear_x_m, g.pan_front_x_m, g.pan_front_x_m, g.pan_rear_x_m]
    )
    assert links.pan[0, :, 1] == pytest.approx(g.pan_half_width_m * np.array([1, 1, -1, -1]))
    assert links.pan[0, :, 2] == pytest.approx(np.full(4, g.pan_height_m))
    for side in (0, 1):
        x, _, up = links.rocker_pivots[0, side]
        assert (x, up) == pytest.approx((g.rocker_pivot_x_m, g.rocker_pivot_z_m))


@pytest.mark.parametrize(
    ("name", "points", "axis", "sign"),
    [
        ("roll_rad", slice(0, 3), 2, 1),  # left side up
        ("pitch_rad", [0, 3], 2, 1),  # nose up
        ("differential_rad", [0], 2, 1),  # left rocker's front up
        ("differential_rad", [3], 2, -1),
        ("bogie_left_rad", [1], 2, 1),  # middle above rear
        ("bogie_left_rad", [2], 2, -1),
        ("bogie_right_rad", [4], 2, 1),
        ("origin_z_m", slice(0, 6), 2, 1),
    ],
)
def test_signs_of_the_state(name: str, points, axis: int, sign: int) -> None:
    moved = (
        linkage(MODEL.geometry, LEVEL | {name: 0.05}).axles[0]
        - linkage(MODEL.geometry, LEVEL).axles[0]
    )
    assert (sign * moved[points, axis] > 1e-3).all()


def test_links_keep_their_lengths(settled) -> None:
    """Distances within the body, a rocker and a bogie are those at rest, whatever the state."""
    rest, now = linkage(MODEL.geometry, LEVEL), linkage(MODEL.geometry, settled)
    for side in (0, 1):
        for a, b in (
            (lambda k, s=side: k.rocker_pivots[:, s], lambda k, s=side: k.bogie_pivots[:, s]),
            (lambda k, s=side: k.rocker_pivots[:, s], lambda k, s=side: k.axles[:, 3 * s]),
            (lambda k, s=side: k.bogie_pivots[:, s], lambda k, s=side: k.axles[:, 3 * s + 1]),
            (lambda k, s=side: k.bogie_pivots[:, s], lambda k, s=side: k.axles[:, 3 * s + 2]),
        ):
            expected = np.linalg.norm(a(rest) - b(rest), axis=-1)
            found = np.linalg.norm(a(now) - b(now), axis=-1)
            assert np.abs(found - expected).max() < 1e-12


def test_box_centres_are_the_middles_of_bounds() -> None:
    report = {name: np.array([[0.0, 0.2], [np.nan, np.nan]]) for name in STATE}
    centres = box_centres(report)
    assert centres["roll_rad"][0] == pytest.approx(0.1)
    assert np.isnan(contact_heights(MODEL.geometry, centres)[1]).all()
