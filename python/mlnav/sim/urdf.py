"""The rover as a URDF for a physics engine or a viewer, made from the planner's geometry.

A joint has the name of the link that it carries. Rockers and bogies turn about the right axis (nose
up positive), wheels about the left axis (forward positive). At zero the rover stands level.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from mlnav import _core, core
from mlnav.sim.world import WorldError

BODY = "body"
SIDES = ("left", "right")
ROCKERS = ("rocker_left", "rocker_right")
BOGIES = ("bogie_left", "bogie_right")
STEERS = ("steer_front_left", "steer_rear_left", "steer_front_right", "steer_rear_right")
WHEELS = tuple(f"wheel_{name}" for name in core.WHEELS)

ROVER_MASS_KG = 1025.0
_BODY_SHARE, _ROCKER_SHARE, _BOGIE_SHARE, _STEER_SHARE, _WHEEL_SHARE = (
    kg / ROVER_MASS_KG for kg in (700.0, 45.0, 30.0, 10.0, 22.5)
)

_WHEEL_BASE_M = 2.26
"""Of the default rover. Sizes that are not in the geometry, such as the height of the body, are
those of the default rover, scaled by the wheel base."""
_BODY_HEIGHT_M = 0.45
_MAST_HEAD_M = (0.80, -0.56, 1.98)
_LEAST_LEVER_M = 0.01
"""Pivots and axles nearer to each other than this are one point."""

_COLOURS = {
    "white": "0.90 0.89 0.86 1",
    "gold": "0.78 0.60 0.30 1",
    "grey": "0.55 0.55 0.57 1",
    "dark": "0.16 0.16 0.17 1",
}

Vector = tuple[float, float, float]
_ORIGIN: Vector = (0.0, 0.0, 0.0)
_ACROSS: Vector = (math.pi / 2.0, 0.0, 0.0)
"""Rotation that lays a cylinder across the rover."""


def rover_urdf(geometry: _core.RoverGeometry, mass_kg: float = ROVER_MASS_KG) -> str:
    """The URDF of a rover of this mass. Wheels and body collide; the body's bottom is the pan.

    The base link `body` has its origin at its centre of mass, `body_origin_m` in the rover frame.
    Raises WorldError: no rover can be built with this geometry or mass.
    """
    _check(geometry, mass_kg)
    robot = Element("robot", name="mlnav_rover")
    for name, rgba in _COLOURS.items():
        SubElement(SubElement(robot, "material", name=name), "color", rgba=rgba)
    _body(robot, geometry, mass_kg * _BODY_SHARE)
    for side in (1.0, -1.0):
        _suspension(robot, geometry, mass_kg, side)
    ElementTree.indent(robot)
    return f'<?xml version="1.0"?>\n{ElementTree.tostring(robot, encoding="unicode")}\n'


def body_origin_m(geometry: _core.RoverGeometry) -> Vector:
    """Centre of mass of the body in the rover frame: forward, left, up."""
    size = _size(geometry)
    middle_x_m = 0.5 * (geometry.pan_rear_x_m + geometry.pan_front_x_m)
    return middle_x_m + 0.09 * size, 0.0, geometry.pan_height_m + 0.33 * size


def _size(geometry: _core.RoverGeometry) -> float:
    return (geometry.front_x_m - geometry.rear_x_m) / _WHEEL_BASE_M


def _check(g: _core.RoverGeometry, mass_kg: float) -> None:
    if not (math.isfinite(mass_kg) and mass_kg > 0.0):
        raise WorldError(f"the rover's mass must be positive, got {mass_kg:g} kg")
    model = _core.RoverModel()
    model.geometry = g
    model.limits.clearance_min_m = 0.0  # geometry alone is judged here
    try:
        model.validate()
    except _core.CoreError as fault:
        raise WorldError(f"no such rover: {fault}") from fault

    r, half = g.wheel_radius_m, 0.5 * g.wheel_width_m
    places = (g.front_x_m, g.front_y_m), (0.0, g.middle_y_m), (g.rear_x_m, g.rear_y_m)
    axles = dict(zip(("front", "middle", "rear"), places, strict=True))
    for a, b in pairwise(axles):
        (xa, ya), (xb, yb) = axles[a], axles[b]
        if xa - xb < 2.0 * r and abs(ya - yb) < 2.0 * half:
            raise WorldError(f"the {a} wheels overlap the {b} wheels")
    for name, (x, y) in axles.items():
        if y < half:
            raise WorldError(f"the {name} wheels overlap each other")
        beside = y - half >= g.pan_half_width_m
        apart = x - r >= g.pan_front_x_m or x + r <= g.pan_rear_x_m
        if not beside and not apart and g.pan_height_m < 2.0 * r:
            raise WorldError(f"the {name} wheels overlap the belly pan")
    rocker = (g.rocker_pivot_x_m, g.rocker_pivot_z_m)
    bogie = (g.bogie_pivot_x_m, g.bogie_pivot_z_m)
    for a, a_at, b, b_at in (
        ("rocker pivot", rocker, "front axle", (g.front_x_m, r)),
        ("rocker pivot", rocker, "bogie pivot", bogie),
        ("bogie pivot", bogie, "middle axle", (0.0, r)),
        ("bogie pivot", bogie, "rear axle", (g.rear_x_m, r)),
    ):
        if math.dist(a_at, b_at) < _LEAST_LEVER_M:
            raise WorldError(f"the {a} coincides with the {b}")
    if not g.bogie_pivot_x_m < body_origin_m(g)[0] < g.front_x_m:
        raise WorldError("the body's weight is not between bogie pivots and front axles: it tips")


# ------------------------------------------------------------------------------------------ parts


def _body(robot: Element, g: _core.RoverGeometry, mass_kg: float) -> None:
    size, com = _size(g), body_origin_m(g)
    length, width = g.pan_front_x_m - g.pan_rear_x_m, 2.0 * g.pan_half_width_m
    height = _BODY_HEIGHT_M * size
    middle_x = 0.5 * (g.pan_front_x_m + g.pan_rear_x_m)
    box_size = (length, width, height)
    box = _box(box_size, (middle_x, 0.0, g.pan_height_m + 0.5 * height), com)
    top = g.pan_height_m + height
    deck = _box((1.02 * length, 1.02 * width, 0.04 * size), (middle_x, 0.0, top), com)
    mx, my, mz = (size * v for v in _MAST_HEAD_M)
    mast = _strut((mx, my, top), (mx, my, max(mz, top + 0.1 * size)), 0.05 * size, com)
    head = _box((0.22 * size, 0.42 * size, 0.20 * size), (mx, my, mz), com)
    lens_x = mx + 0.11 * size
    lenses = [
        _strut((lens_x, my + dy, mz), (lens_x + 0.03 * size, my + dy, mz), 0.05 * size, com)
        for dy in (-0.13 * size, 0.13 * size)
    ]
    root = (g.pan_rear_x_m, 0.0, top - 0.25 * size)
    tip = (g.pan_rear_x_m - 0.45 * size, 0.0, top + 0.05 * size)
    tail = _strut(root, tip, 0.16 * size, com)
    link = _link(robot, BODY, mass_kg, _box_inertia(mass_kg, box_size))
    _show(link, "gold", box)
    _show(link, "white", deck, mast, head)
    _show(link, "dark", *lenses, tail)
    _part(link, "collision", box)


def _suspension(robot: Element, g: _core.RoverGeometry, rover_kg: float, side: float) -> None:
    """Rocker, bogie and wheels of a side, +1 left or -1 right; frames at pivots and axles."""
    name = SIDES[0 if side > 0.0 else 1]
    size, r = _size(g), g.wheel_radius_m
    knee_z = 2.0 * r + 0.12 * size
    rocker_at = (g.rocker_pivot_x_m, side * g.pan_half_width_m, g.rocker_pivot_z_m)
    inner_y = side * (g.middle_y_m - 0.5 * g.wheel_width_m)  # of the middle wheel
    bogie_at = (g.bogie_pivot_x_m, inner_y - side * 0.1 * size, g.bogie_pivot_z_m)
    front_at, middle_at, rear_at = (
        (x, side * y, r)
        for x, y in ((g.front_x_m, g.front_y_m), (0.0, g.middle_y_m), (g.rear_x_m, g.rear_y_m))
    )
    turns, pitches, rolls = "0 0 1", "0 -1 0", "0 1 0"
    tube = 0.045 * size

    rocker, rocker_kg = f"rocker_{name}", rover_kg * _ROCKER_SHARE
    outer_at = (rocker_at[0], rocker_at[1] + side * 0.05 * size, rocker_at[2])
    length = (g.front_x_m - g.bogie_pivot_x_m, 2.0 * tube, 4.0 * tube)
    _show(
        _link(robot, rocker, rocker_kg, _box_inertia(rocker_kg, length)),
        "white",
        _strut(outer_at, (front_at[0], front_at[1], knee_z), tube, rocker_at),
        _strut(outer_at, bogie_at, tube, rocker_at),
        _strut(rocker_at, outer_at, 2.0 * tube, rocker_at),
    )
    _joint(robot, rocker, BODY, body_origin_m(g), rocker_at, pitches)

    bogie, bogie_kg = f"bogie_{name}", rover_kg * _BOGIE_SHARE
    hub_at = (middle_at[0], inner_y - side * 0.03 * size, r)
    length = (-g.rear_x_m, 2.0 * tube, 4.0 * tube)
    _show(
        _link(robot, bogie, bogie_kg, _box_inertia(bogie_kg, length)),
        "grey",
        _strut(bogie_at, (rear_at[0], rear_at[1], knee_z), tube, bogie_at),
        _strut(bogie_at, hub_at, tube, bogie_at),
        _strut(hub_at, middle_at, tube, bogie_at),
    )
    _joint(robot, bogie, rocker, rocker_at, bogie_at, pitches)

    ends = ("front", rocker, rocker_at, front_at), ("rear", bogie, bogie_at, rear_at)
    for place, parent, parent_at, at in ends:
        steer, wheel = f"steer_{place}_{name}", f"wheel_{place}_{name}"
        _fork(robot, g, steer, rover_kg * _STEER_SHARE, side)
        _joint(robot, steer, parent, parent_at, at, turns)
        _wheel(robot, g, wheel, rover_kg * _WHEEL_SHARE)
        _joint(robot, wheel, steer, at, at, rolls)
    _wheel(robot, g, f"wheel_middle_{name}", rover_kg * _WHEEL_SHARE)
    _joint(robot, f"wheel_middle_{name}", bogie, bogie_at, middle_at, rolls)


def _fork(robot: Element, g: _core.RoverGeometry, name: str, mass_kg: float, side: float) -> None:
    """Steering actuator above a corner wheel and the arm down to its axle; frame at the axle."""
    size, r = _size(g), g.wheel_radius_m
    inner_y = -side * (0.5 * g.wheel_width_m + 0.03 * size)
    top_z = r + 0.06 * size
    cube = 0.3 * size
    arm = ((0.0, 0.0, top_z), (0.0, inner_y, top_z), (0.0, inner_y, 0.0), _ORIGIN)
    _show(
        _link(robot, name, mass_kg, _box_inertia(mass_kg, (cube, cube, cube))),
        "grey",
        _strut(arm[0], (0.0, 0.0, r + 0.15 * size), 0.06 * size),
        *(_strut(a, b, 0.03 * size) for a, b in pairwise(arm)),
    )


def _wheel(robot: Element, g: _core.RoverGeometry, name: str, mass_kg: float) -> None:
    r, width = g.wheel_radius_m, g.wheel_width_m
    tyre = _cylinder(r, width, _ORIGIN, _ACROSS)
    across = mass_kg * (3.0 * r * r + width * width) / 12.0
    link = _link(robot, name, mass_kg, (across, 0.5 * mass_kg * r * r, across))
    _show(link, "dark", tyre)
    for angle in (0.0, math.pi / 3.0, 2.0 * math.pi / 3.0):  # spokes show that it turns
        _show(link, "grey", _box((1.7 * r, 1.02 * width, 0.12 * r), rpy=(0.0, angle, 0.0)))
    _part(link, "collision", tyre)


# ------------------------------------------------------------------------------- shapes and XML


class _Shape(NamedTuple):
    kind: str
    sizes: dict[str, str]
    xyz: Vector
    rpy: Vector


def _box(
    size: Vector, place: Vector = _ORIGIN, frame: Vector = _ORIGIN, rpy: Vector = _ORIGIN
) -> _Shape:
    """A box at a place of the rover frame, for a link whose frame is at `frame`."""
    return _Shape("box", {"size": _text(*size)}, _minus(place, frame), rpy)


def _cylinder(radius: float, length: float, xyz: Vector, rpy: Vector) -> _Shape:
    return _Shape("cylinder", {"radius": _text(radius), "length": _text(length)}, xyz, rpy)


def _strut(a: Vector, b: Vector, radius: float, frame: Vector = _ORIGIN) -> _Shape:
    """A cylinder between two points of the rover frame, for a link whose frame is at `frame`."""
    dx, dy, dz = _minus(b, a)
    lean = math.atan2(math.hypot(dx, dy), dz)
    middle = (0.5 * (a[0] + b[0]), 0.5 * (a[1] + b[1]), 0.5 * (a[2] + b[2]))
    turn = (0.0, lean, math.atan2(dy, dx))
    return _cylinder(radius, math.dist(a, b), _minus(middle, frame), turn)


def _minus(a: Vector, b: Vector) -> Vector:
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


def _text(*numbers: float) -> str:
    """With digits to a nanometre; never `-0`."""
    return " ".join(f"{number:z.9f}".rstrip("0").rstrip(".") for number in numbers)


def _box_inertia(mass_kg: float, size: Vector) -> Vector:
    x, y, z = (v * v for v in size)
    return mass_kg * (y + z) / 12.0, mass_kg * (x + z) / 12.0, mass_kg * (x + y) / 12.0


def _link(robot: Element, name: str, mass_kg: float, inertia: Vector) -> Element:
    link = SubElement(robot, "link", name=name)
    inertial = SubElement(link, "inertial")
    SubElement(inertial, "mass", value=_text(mass_kg))
    ixx, iyy, izz = map(_text, inertia)
    SubElement(inertial, "inertia", ixx=ixx, iyy=iyy, izz=izz, ixy="0", ixz="0", iyz="0")
    return link


def _show(link: Element, colour: str, *shapes: _Shape) -> None:
    for shape in shapes:
        SubElement(_part(link, "visual", shape), "material", name=colour)


def _part(link: Element, what: str, shape: _Shape) -> Element:
    part = SubElement(link, what)
    SubElement(part, "origin", xyz=_text(*shape.xyz), rpy=_text(*shape.rpy))
    SubElement(SubElement(part, "geometry"), shape.kind, shape.sizes)
    return part


def _joint(
    robot: Element, child: str, parent: str, parent_at: Vector, at: Vector, axis: str
) -> None:
    """A joint between links whose frames are at places in the rover frame."""
    joint = SubElement(robot, "joint", name=child, type="continuous")
    SubElement(joint, "parent", link=parent)
    SubElement(joint, "child", link=child)
    SubElement(joint, "origin", xyz=_text(*_minus(at, parent_at)))
    SubElement(joint, "axis", xyz=axis)
