"""A start and a goal for maps that name none."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from mlnav.config import Config
from mlnav.core import HeightMap
from mlnav.sim.loop import SimError
from mlnav.terrain import Terrain

SPACING_M = 0.5
"""Between candidate points."""

CORE_HALF_WIDTH_M = 14.0
"""Half width of the square about the map's middle that points are chosen in."""

HEADINGS = 8

Point = tuple[float, float]


def default_endpoints(terrain: Terrain, config: Config) -> tuple[Point, Point]:
    """The two points of the map's core, farthest apart, that suit as start and goal.

    The core is the square of 28 m about the middle of the map (the shared real maps are
    rover-scale there, short of a seam).
    Candidates lie on a 0.5 m lattice; both ends must pass the configured checker at all of 8
    headings, and be joined by lattice points that pass at some heading. Ties go to the first in
    row-major order, start before goal.

    Raises:
        SimError: there are no two such points.
    """
    xs, ys = _lattice(terrain)
    gx, gy = np.meshgrid(xs, ys)
    headings = np.arange(HEADINGS) * (2.0 * math.pi / HEADINGS)
    poses = np.column_stack(
        [
            np.repeat(gx.ravel(), HEADINGS),
            np.repeat(gy.ravel(), HEADINGS),
            np.tile(headings, gx.size),
        ]
    )
    heights = HeightMap.of(terrain)
    checker = config.build_checker(heights.z.size)
    checker.set_map(heights.grid)
    passed = (checker.reasons(poses) == 0).reshape((*gx.shape, HEADINGS))
    joined, groups = ndimage.label(passed.any(axis=-1), structure=np.ones((3, 3)))
    ends = passed.all(axis=-1)
    best: tuple[float, Point, Point] | None = None
    for group in range(1, groups + 1):
        chosen = ends & (joined == group)
        points = np.column_stack([gx[chosen], gy[chosen]])
        pair = _farthest(points)
        if pair is not None and (best is None or pair[0] > best[0]):
            best = pair
    if best is None or best[0] < 2.0 * config.traverse.goal_tolerance_m:
        raise SimError(
            f"terrain {terrain.name!r} names no start and goal, and no two safe places far enough"
            " apart were found in its middle: give --start and --goal"
        )
    return best[1], best[2]


def _lattice(terrain: Terrain) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    x_min, x_max, y_min, y_max = terrain.extent_m

    def line(low: float, high: float) -> NDArray[np.float64]:
        half = min(0.5 * (high - low), CORE_HALF_WIDTH_M)
        steps = int(half / SPACING_M)
        offsets = np.arange(-steps, steps + 1, dtype=np.float64)
        return np.asarray(0.5 * (low + high) + SPACING_M * offsets, np.float64)

    return line(x_min, x_max), line(y_min, y_max)


def _farthest(points: NDArray[np.float64]) -> tuple[float, Point, Point] | None:
    """The pair of points farthest apart, of those on the convex outline in 64 directions."""
    if len(points) < 2:
        return None
    angles = np.arange(64) * (math.pi / 32)
    along = points @ np.stack([np.cos(angles), np.sin(angles)])
    outer = points[np.unique(np.argmax(along, axis=0))]
    distance = np.hypot(*(outer[:, None] - outer[None]).transpose(2, 0, 1))
    i, j = np.unravel_index(int(np.argmax(distance)), distance.shape)
    first, second = sorted((int(i), int(j)))
    (ax, ay), (bx, by) = outer[first].tolist(), outer[second].tolist()
    return float(distance[i, j]), (ax, ay), (bx, by)
