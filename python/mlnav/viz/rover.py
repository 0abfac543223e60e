"""The rover as seen from above."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Polygon
from numpy.typing import NDArray

from mlnav.config import Rover
from mlnav.viz.style import INK

Pose = tuple[float, float, float]


def wheels(rover: Rover) -> list[tuple[float, float]]:
    """Nominal wheel centres, forward and left [m]."""
    xs_ys = (
        (rover.front_x_m, rover.front_y_m),
        (0.0, rover.middle_y_m),
        (rover.rear_x_m, rover.rear_y_m),
    )
    return [(x, side * y) for side in (1.0, -1.0) for x, y in xs_ys]


def placed(points: Any, pose: Pose) -> NDArray[np.float64]:
    """Points in the rover frame, (n, 2), in the world's."""
    c, s = math.cos(pose[2]), math.sin(pose[2])
    p = np.asarray(points, np.float64)
    x, y = p[:, 0], p[:, 1]
    return np.column_stack([pose[0] + c * x - s * y, pose[1] + s * x + c * y])


def _box(x0: float, x1: float, y0: float, y1: float) -> list[tuple[float, float]]:
    return [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]


def draw_rover(axes: Axes, rover: Rover, pose: Pose, alpha: float = 1.0) -> list[Any]:
    """Body and six wheels at a pose; returns the artists."""
    artists: list[Any] = []

    def add(points: list[tuple[float, float]], colour: str, zorder: float) -> None:
        patch = Polygon(
            placed(points, pose),
            closed=True,
            facecolor=colour,
            edgecolor=INK,
            linewidth=0.7,
            alpha=alpha,
            zorder=zorder,
        )
        axes.add_patch(patch)
        artists.append(patch)

    r, half = rover.wheel_radius_m, 0.5 * rover.wheel_width_m
    for x, y in wheels(rover):
        add(_box(x - r, x + r, y - half, y + half), "#3a3331", 12)
    pan = (rover.pan_rear_x_m, rover.pan_front_x_m, rover.pan_half_width_m)
    add(_box(pan[0], pan[1], -pan[2], pan[2]), "#f4efe9", 13)
    nose = [(pan[1] - 0.35, -0.3), (pan[1] - 0.35, 0.3), (pan[1] + 0.05, 0.0)]
    add(nose, "#e8743b", 14)
    return artists
