"""The rover's shapes and joints for pictures, read from its URDF."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from mlnav import _core
from mlnav.core import F64
from mlnav.sim import urdf
from mlnav.viz.playback import Posture

I32 = NDArray[np.int32]

_SIDES = 24
"""Of the polygon that stands for a circle."""


@dataclass(frozen=True, eq=False)
class Shape:
    """A box, or a cylinder along z, in its link's frame.

    Attributes:
        size_m: (3,) edges of the box; diameters and height of the cylinder.
        round: whether it is a cylinder.
        middle_m, rotation: (3,) and (3, 3).
        colour: red, green, blue in [0, 1].
    """

    size_m: F64
    round: bool
    middle_m: F64
    rotation: F64
    colour: tuple[float, float, float]

    @property
    def triangles(self) -> tuple[F64, F64, I32]:
        """Vertices and normals in the link's frame, and triangles; edges stay sharp."""
        vertices, normals, triangles = _cylinder() if self.round else _box()
        turned = (vertices * (0.5 * self.size_m)) @ self.rotation.T + self.middle_m
        return turned, normals @ self.rotation.T, triangles


@dataclass(frozen=True, eq=False)
class Link:
    """A part of the rover, and the joint of the same name that holds it.

    Attributes:
        parent: name of the link that it is joined to; None for the body.
        at_m: (3,) joint in the parent's frame.
        axis: (3,) of positive rotation.
    """

    name: str
    parent: str | None
    at_m: F64
    axis: F64
    shapes: tuple[Shape, ...]

    def turned(self, angle_rad: float) -> F64:
        """(3, 3) rotation of the joint."""
        return np.asarray(Rotation.from_rotvec(angle_rad * self.axis).as_matrix())


class RoverParts:
    """All links of a rover, parents first.

    Raises:
        WorldError: no rover can be built with this geometry.
    """

    def __init__(self, geometry: _core.RoverGeometry) -> None:
        self.body_origin_m = np.array(urdf.body_origin_m(geometry))
        robot = ElementTree.fromstring(urdf.rover_urdf(geometry))
        materials = robot.findall("material")
        colours = {m.attrib["name"]: _numbers(m, "color", "rgba") for m in materials}
        joints = {joint.attrib["name"]: joint for joint in robot.iter("joint")}
        self.links = [_link(e, joints.get(e.attrib["name"]), colours) for e in robot.iter("link")]

    def placed(self, posture: Posture) -> dict[str, tuple[F64, F64]]:
        """(3, 3) rotation and (3,) origin of every link's frame in the world frame."""
        angles = posture.joints_rad
        frames: dict[str, tuple[F64, F64]] = {}
        for link in self.links:
            if link.parent is None:
                frames[link.name] = (posture.rotation, posture.point(self.body_origin_m))
            else:
                rotation, at = frames[link.parent]
                turned = rotation @ link.turned(angles[link.name])
                frames[link.name] = (turned, rotation @ link.at_m + at)
        return frames


def joined(shapes: Iterable[Shape]) -> tuple[F64, F64, I32]:
    """Vertices, normals and triangles of several shapes as one."""
    vertices, normals, triangles = zip(*(shape.triangles for shape in shapes), strict=True)
    before = np.cumsum([0, *(len(v) for v in vertices)])
    shifted = [part + np.int32(n) for part, n in zip(triangles, before, strict=False)]
    return np.concatenate(vertices), np.concatenate(normals), np.concatenate(shifted)


def _link(
    link: ElementTree.Element, joint: ElementTree.Element | None, colours: dict[str, F64]
) -> Link:
    name = link.attrib["name"]
    shapes = tuple(_shape(visual, colours) for visual in link.findall("visual"))
    if joint is None:
        return Link(name, None, np.zeros(3), np.zeros(3), shapes)
    parent = _text(joint, "parent", "link")
    return Link(
        name, parent, _numbers(joint, "origin", "xyz"), _numbers(joint, "axis", "xyz"), shapes
    )


def _shape(visual: ElementTree.Element, colours: dict[str, F64]) -> Shape:
    red, green, blue, _ = colours[_text(visual, "material", "name")].tolist()
    cylinder = visual.find("geometry/cylinder") is not None
    if cylinder:
        (radius,) = _numbers(visual, "geometry/cylinder", "radius")
        size = np.array(
            [2.0 * radius, 2.0 * radius, *_numbers(visual, "geometry/cylinder", "length")]
        )
    else:
        size = _numbers(visual, "geometry/box", "size")
    turned = Rotation.from_euler("xyz", _numbers(visual, "origin", "rpy")).as_matrix()
    return Shape(size, cylinder, _numbers(visual, "origin", "xyz"), turned, (red, green, blue))


def _text(element: ElementTree.Element, path: str, attribute: str) -> str:
    (found,) = element.findall(path)
    return found.attrib[attribute]


def _numbers(element: ElementTree.Element, path: str, attribute: str) -> F64:
    return np.array(_text(element, path, attribute).split(), np.float64)


def _box() -> tuple[F64, F64, I32]:
    """A cube of edge 2 about the origin, four vertices a face."""
    top = np.array([(-1, -1, 1), (1, -1, 1), (1, 1, 1), (-1, 1, 1)], np.float64)
    faces = np.array([np.roll(f, axis, axis=1) for f in (top, -top[::-1]) for axis in range(3)])
    normals = np.repeat(faces.mean(axis=1), 4, axis=0)
    first = 4 * np.arange(6)[:, None, None]
    triangles = (first + np.array([(0, 1, 2), (0, 2, 3)])).reshape(-1, 3).astype(np.int32)
    return faces.reshape(-1, 3), normals, triangles


def _cylinder() -> tuple[F64, F64, I32]:
    """A cylinder of radius 1 and height 2 about the origin, along z."""
    n = _SIDES
    angle = 2.0 * np.pi / n * np.arange(n)
    rim = np.column_stack([np.cos(angle), np.sin(angle), np.zeros(n)])
    up = np.array([0.0, 0.0, 1.0])
    vertices = np.concatenate([rim + up, rim - up, rim + up, [up], rim - up, [-up]])
    tile = np.tile(up, (n + 1, 1))
    normals = np.concatenate([rim, rim, tile, -tile])
    i, j = np.arange(n), (np.arange(n) + 1) % n
    top, bottom = 2 * n, 3 * n + 1
    sides = (i, i + n, j + n), (i, j + n, j)
    hubs = np.full(n, top + n), np.full(n, bottom + n)
    ends = (top + i, top + j, hubs[0]), (bottom + j, bottom + i, hubs[1])
    triangles = np.concatenate([np.stack(corners, 1) for corners in (*sides, *ends)])
    return vertices, normals, triangles.astype(np.int32)
