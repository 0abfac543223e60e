import math
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mlnav import _core
from mlnav.config import Config, Rover
from mlnav.io import shipped_folder
from mlnav.linkage import STATE, linkage
from mlnav.sim import urdf
from mlnav.sim.world import WorldError

SMALL = Rover(
    wheel_radius_m=0.1,
    wheel_width_m=0.12,
    front_x_m=0.42,
    rear_x_m=-0.4,
    front_y_m=0.4,
    middle_y_m=0.45,
    rear_y_m=0.38,
    rocker_pivot_x_m=0.11,
    rocker_pivot_z_m=0.31,
    bogie_pivot_x_m=-0.17,
    bogie_pivot_z_m=0.22,
    pan_rear_x_m=-0.35,
    pan_front_x_m=0.3,
    pan_half_width_m=0.25,
    pan_height_m=0.22,
)


def geometry(**changes: float) -> _core.RoverGeometry:
    made = Rover().to_core()
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def parsed(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)


def vector(text: str) -> np.ndarray:
    return np.array([float(v) for v in text.split()])


def link_frames(root: ElementTree.Element, angles: dict[str, float]) -> dict[str, np.ndarray]:
    """4 x 4 frames of all links in that of the body, from the joints' angles."""
    frames = {urdf.BODY: np.eye(4)}
    joints = list(root.iter("joint"))
    while joints:
        joint = next(j for j in joints if j.find("parent").get("link") in frames)
        joints.remove(joint)
        step = np.eye(4)
        axis = vector(joint.find("axis").get("xyz"))
        step[:3, :3] = Rotation.from_rotvec(axis * angles.get(joint.get("name"), 0.0)).as_matrix()
        step[:3, 3] = vector(joint.find("origin").get("xyz"))
        child = joint.find("child").get("link")
        frames[child] = frames[joint.find("parent").get("link")] @ step
    return frames


def test_the_shipped_file_is_what_the_default_rover_gives() -> None:
    shipped = (shipped_folder("sim") / "rover.urdf").read_bytes()
    assert shipped.decode() == urdf.rover_urdf(Config().rover_model().geometry)


def test_links_and_joints_have_the_documented_names_and_masses() -> None:
    root = parsed(urdf.rover_urdf(geometry(), 2050.0))
    links = {link.get("name"): link for link in root.iter("link")}
    parts = [urdf.BODY, *urdf.ROCKERS, *urdf.BOGIES, *urdf.STEERS, *urdf.WHEELS]
    assert sorted(links) == sorted(parts)
    assert {j.get("name") for j in root.iter("joint")} == set(parts) - {urdf.BODY}
    kg = {name: float(link.find("inertial/mass").get("value")) for name, link in links.items()}
    assert sum(kg.values()) == pytest.approx(2050.0)
    assert kg[urdf.BODY] == pytest.approx(1400.0)
    assert kg["wheel_rear_right"] == pytest.approx(45.0)
    for link in links.values():
        inertia = link.find("inertial/inertia")
        x, y, z = sorted(float(inertia.get(k)) for k in ("ixx", "iyy", "izz"))
        assert 0.0 < x <= y <= z <= x + y + 1e-9  # as of a solid


@pytest.mark.parametrize("rover", [Rover(), SMALL], ids=["default", "small"])
def test_what_collides_is_wheels_and_the_pan(rover: Rover) -> None:
    g = rover.to_core()
    root = parsed(urdf.rover_urdf(g))
    colliding = {
        link.get("name"): link for link in root.iter("link") if link.find("collision") is not None
    }
    assert sorted(colliding) == sorted([urdf.BODY, *urdf.WHEELS])
    cylinder = colliding["wheel_front_left"].find("collision/geometry/cylinder")
    assert float(cylinder.get("radius")) == pytest.approx(g.wheel_radius_m)
    assert float(cylinder.get("length")) == pytest.approx(g.wheel_width_m)
    box = colliding[urdf.BODY].find("collision")
    middle = vector(box.find("origin").get("xyz")) + urdf.body_origin_m(g)
    half = 0.5 * vector(box.find("geometry/box").get("size"))
    assert middle[2] - half[2] == pytest.approx(g.pan_height_m, abs=1e-9)
    assert middle[0] - half[0] == pytest.approx(g.pan_rear_x_m, abs=1e-9)
    assert middle[0] + half[0] == pytest.approx(g.pan_front_x_m, abs=1e-9)
    assert (middle[1], half[1]) == pytest.approx((0.0, g.pan_half_width_m), abs=1e-9)


@pytest.mark.parametrize("rover", [Rover(), SMALL], ids=["default", "small"])
@pytest.mark.parametrize("seed", range(4))
def test_its_joints_move_as_the_linkage(rover: Rover, seed: int) -> None:
    g = rover.to_core()
    angles = np.random.default_rng(seed).uniform(-0.4, 0.4, 5) * (seed > 0)
    state = dict(zip(STATE, (*angles, 1.5), strict=True))
    turned = Rotation.from_euler("ZXY", [0.0, angles[0], -angles[1]]).as_matrix()
    base = np.eye(4)
    base[:3, :3] = turned
    base[:3, 3] = turned @ urdf.body_origin_m(g) + (0.0, 0.0, 1.5)
    joints = {"rocker_left": angles[2], "rocker_right": -angles[2]}
    joints |= {"bogie_left": angles[3], "bogie_right": angles[4]}
    joints |= dict.fromkeys((*urdf.STEERS, *urdf.WHEELS), 0.3)  # move no axle
    frames = link_frames(parsed(urdf.rover_urdf(g)), joints)
    at = {name: (base @ frame)[:3, 3] for name, frame in frames.items()}
    expected = linkage(g, state)
    wheels = [at[name] for name in urdf.WHEELS]
    np.testing.assert_allclose(wheels, expected.axles[0], atol=1e-6)
    rockers = [at[name] for name in urdf.ROCKERS]
    np.testing.assert_allclose(rockers, expected.rocker_pivots[0], atol=1e-6)
    # Bogies turn about an axis across the rover: where along it does not matter.
    along = np.array([at[name] for name in urdf.BOGIES]) - expected.bogie_pivots[0]
    across = turned[:, 1]
    np.testing.assert_allclose(along - np.outer(along @ across, across), 0.0, atol=1e-6)


def test_lines_are_short_enough_for_parsers_with_fixed_buffers() -> None:
    assert max(map(len, urdf.rover_urdf(geometry()).splitlines())) < 200


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bogie_pivot_x_m": 0.0, "bogie_pivot_z_m": 0.263}, "bogie pivot coincides"),
        ({"bogie_pivot_x_m": -1.075, "bogie_pivot_z_m": 0.263}, "rear axle"),
        ({"rocker_pivot_x_m": 1.185, "rocker_pivot_z_m": 0.263}, "front axle"),
        ({"rocker_pivot_x_m": -0.45, "rocker_pivot_z_m": 0.663}, "bogie pivot"),
        ({"front_x_m": 0.4, "front_y_m": 1.1845, "rocker_pivot_x_m": 0.1}, "front wheels overlap"),
        ({"rear_x_m": -0.3, "bogie_pivot_x_m": -0.2}, "middle wheels overlap the rear"),
        ({"rear_y_m": 0.1}, "rear wheels overlap"),
        ({"pan_height_m": 0.3, "pan_half_width_m": 1.0}, "overlap the belly pan"),
        ({"pan_height_m": -0.1}, "pan_height_m"),
        ({"rear_x_m": 0.0, "bogie_pivot_x_m": 0.0}, "rear_x_m"),
        ({"rocker_pivot_z_m": 0.1}, "rocker_pivot_z_m"),
        ({"pan_rear_x_m": -3.0, "pan_front_x_m": -1.2}, "it tips"),
    ],
)
def test_a_geometry_that_cannot_be_built_is_refused(changes, message) -> None:
    with pytest.raises(WorldError, match=message):
        urdf.rover_urdf(geometry(**changes))


@pytest.mark.parametrize("mass_kg", [0.0, -1.0, math.nan, math.inf])
def test_a_mass_that_is_none_is_refused(mass_kg: float) -> None:
    with pytest.raises(WorldError, match="mass"):
        urdf.rover_urdf(geometry(), mass_kg)
