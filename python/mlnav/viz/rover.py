"""The rover as seen from above."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

from mlnav.config import Rover
from mlnav.nav.motion import Pose
from mlnav.viz.style import INK, polygon

TYRE = "#3a3331"


def wheels(rover: Rover) -> list[tuple[float, float]]:
    """Nominal wheel centres, forward and left [m]."""
    xs = (rover.front_x_m, 0.0, rover.rear_x_m)
    ys = (rover.front_y_m, rover.middle_y_m, rover.rear_y_m)
    return [(x, side * y) for side in (1.0, -1.0) for x, y in zip(xs, ys, strict=True)]


def placed(points: ArrayLike, pose: Pose) -> NDArray[np.float64]:
    """(n, 2) points in the rover frame, in the world frame."""
    c, s = math.cos(pose[2]), math.sin(pose[2])
    x, y = np.asarray(points, np.float64).T
    return np.column_stack([pose[0] + c * x - s * y, pose[1] + s * x + c * y])


def corners(x0: float, x1: float, y0: float, y1: float) -> list[tuple[float, float]]:
    """Of a rectangle, in order."""
    return [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]


def tyre_corners(rover: Rover, x: float, y: float) -> list[tuple[float, float]]:
    """Of a wheel seen from above, about its centre."""
    r, half = rover.wheel_radius_m, 0.5 * rover.wheel_width_m
    return corners(x - r, x + r, y - half, y + half)


def pan_corners(rover: Rover) -> list[tuple[float, float]]:
    """Of the belly pan seen from above."""
    half = rover.pan_half_width_m
    return corners(rover.pan_rear_x_m, rover.pan_front_x_m, -half, half)


def draw_rover(axes: Axes, rover: Rover, pose: Pose) -> list[Any]:
    """Body and six wheels at a pose; returns the artists."""
    front = rover.pan_front_x_m
    nose = [(front - 0.35, -0.3), (front - 0.35, 0.3), (front + 0.05, 0.0)]
    parts = [(tyre_corners(rover, x, y), TYRE, 12) for x, y in wheels(rover)]
    parts += [(pan_corners(rover), "#f4efe9", 13), (nose, "#e8743b", 14)]
    return [
        polygon(axes, placed(points, pose), colour, edgecolor=INK, linewidth=0.7, zorder=z)
        for points, colour, z in parts
    ]
