"""The rover's linkage from its state to its wheels, in numpy.

Independent of the core's chain, which goes the other way, so that each checks the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mlnav import _core

F64 = NDArray[np.float64]

STATE = (
    "roll_rad",
    "pitch_rad",
    "differential_rad",
    "bogie_left_rad",
    "bogie_right_rad",
    "origin_z_m",
)
"""The linkage's posture; angles are positive with the left side up and nose up."""


@dataclass(frozen=True, eq=False)
class Linkage:
    """Points of n rovers, (n, points, 3): forward, left and up in the heading frame.

    The frame's origin is the pose's (x, y) at height zero, so `up` is a height in the world. Sides
    come left, right; wheels front, middle, rear of the left side, then of the right.

    Attributes:
        axles: centres of the six wheels.
        rocker_pivots: where rockers turn on the body, (n, 2, 3).
        bogie_pivots: where bogies turn on rockers, (n, 2, 3).
        pan: corners of the belly pan, rear left, front left, front right, rear right.
    """

    axles: F64
    rocker_pivots: F64
    bogie_pivots: F64
    pan: F64


def linkage(geometry: _core.RoverGeometry, state: Mapping[str, ArrayLike]) -> Linkage:
    """Points of the linkage at given states (names of `STATE`, numbers or (n,) each)."""
    g, r = geometry, geometry.wheel_radius_m
    columns = [np.atleast_1d(np.asarray(state[name], np.float64)) for name in STATE]
    roll, pitch, differential, *bogies, z = columns

    def body(x: Any, y: Any, up: Any) -> F64:
        """Points in a frame rolled about the heading axis: forward, left, up."""
        cos, sin = np.cos(roll), np.sin(roll)
        forward = np.broadcast_to(x, roll.shape)
        return np.stack([forward, y * cos - up * sin, y * sin + up * cos + z], axis=-1)

    axles: list[F64] = []
    rocker_pivots: list[F64] = []
    bogie_pivots: list[F64] = []
    for side, bogie in zip((1.0, -1.0), bogies, strict=True):
        rocker = pitch + side * differential
        pivot = _turned(g.rocker_pivot_x_m, g.rocker_pivot_z_m, pitch)
        on_rocker = [
            pivot + _turned(x - g.rocker_pivot_x_m, up - g.rocker_pivot_z_m, rocker)
            for x, up in ((g.front_x_m, r), (g.bogie_pivot_x_m, g.bogie_pivot_z_m))
        ]
        on_bogie = [
            on_rocker[1] + _turned(x - g.bogie_pivot_x_m, r - g.bogie_pivot_z_m, rocker + bogie)
            for x in (0.0, g.rear_x_m)
        ]
        wheels = zip(
            (on_rocker[0], *on_bogie), (g.front_y_m, g.middle_y_m, g.rear_y_m), strict=True
        )
        axles += [body(at[0], side * y, at[1]) for at, y in wheels]
        rocker_pivots.append(body(pivot[0], side * g.pan_half_width_m, pivot[1]))
        bogie_pivots.append(body(on_rocker[1][0], side * g.middle_y_m, on_rocker[1][1]))
    rear, front = g.pan_rear_x_m, g.pan_front_x_m
    pan = []
    for x, side in ((rear, 1), (front, 1), (front, -1), (rear, -1)):
        at = _turned(x, g.pan_height_m, pitch)
        pan.append(body(at[0], side * g.pan_half_width_m, at[1]))
    return Linkage(
        *(np.stack(points, axis=1) for points in (axles, rocker_pivots, bogie_pivots, pan))
    )


def contact_heights(geometry: _core.RoverGeometry, state: Mapping[str, ArrayLike]) -> F64:
    """(n, 6) heights [m] of the lowest points of the wheels at given states."""
    return np.ascontiguousarray(linkage(geometry, state).axles[:, :, 2] - geometry.wheel_radius_m)


def box_centres(report: Mapping[str, NDArray[Any]]) -> dict[str, F64]:
    """States at the middle of a checker's bounds; NaN where there are none."""
    return {name: np.asarray(report[name]).mean(axis=1, dtype=np.float64) for name in STATE}


def _turned(x: float, up: float, angle: F64) -> F64:
    """(2, n): a point turned nose up in the side's plane."""
    cos, sin = np.cos(angle), np.sin(angle)
    return np.stack([x * cos - up * sin, x * sin + up * cos])
