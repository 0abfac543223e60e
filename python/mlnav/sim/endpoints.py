"""Starts and goals for maps that name none: the farthest pair, or pairs drawn at random."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from mlnav import _core
from mlnav.config import Config
from mlnav.core import HeightMap
from mlnav.nav import zone_mask
from mlnav.sim.cells import check_cells
from mlnav.sim.loop import SimError
from mlnav.terrain import Terrain

SPACING_M = 0.5
"""Between candidate points."""

CORE_HALF_WIDTH_M = 14.0
"""Half width of the square about the map's middle that points are chosen in."""

HEADINGS = 8

APART_M, APART_SHARE = 20.0, 0.6
"""Drawn start and goal are this far apart, or this share of the usable extent if that is less."""

FINE_MESH_M = 0.25
"""Mean spacing of the source within 1 m of a point, beyond which ground is not rover-scale."""

MESH_LAYER = "source_mesh_spacing_m"

F64 = NDArray[np.float64]
Point = tuple[float, float]


def default_endpoints(terrain: Terrain, config: Config) -> tuple[Point, Point]:
    """The two points of the map's core that are farthest apart and suit as start and goal.

    The core is the square of 28 m about the middle of the map. Candidates lie on a 0.5 m lattice;
    both ends must pass the configured checker at all of 8 headings, and be connected by points that
    pass at some heading. Ties go to the first in row-major order, start before goal.

    Raises:
        SimError: there are no two such points.
        TerrainError: cells are too coarse to drive on.
    """
    check_cells(terrain, config)
    gx, gy = np.meshgrid(*_lattice(terrain, CORE_HALF_WIDTH_M))
    passed = _passed(terrain, config.build_checker(terrain.z.size), gx, gy)
    joined, groups = ndimage.label(passed.any(axis=-1), structure=np.ones((3, 3)))
    ends = passed.all(axis=-1)
    chosen = (ends & (joined == group) for group in range(1, groups + 1))
    pairs = (_farthest(np.column_stack([gx[mask], gy[mask]])) for mask in chosen)
    # The first of the farthest.
    apart_m, start, goal = max(filter(None, pairs), key=itemgetter(0), default=(0.0, None, None))
    if start is None or goal is None or apart_m < 2.0 * config.traverse.goal_tolerance_m:
        raise SimError(
            f"terrain {terrain.name!r} names no start and goal, and no two safe places far enough"
            " apart were found in its middle: give --start and --goal"
        )
    return start, goal


def _lattice(terrain: Terrain, half_m: float) -> tuple[F64, F64]:
    """Lattice lines x and y within `half_m` of the map's middle."""

    def line(low: float, high: float) -> F64:
        steps = int(min(0.5 * (high - low), half_m) / SPACING_M)
        offsets = np.arange(-steps, steps + 1, dtype=np.float64)
        return np.asarray(0.5 * (low + high) + SPACING_M * offsets, np.float64)

    x_min, x_max, y_min, y_max = terrain.extent_m
    return line(x_min, x_max), line(y_min, y_max)


def _passed(terrain: Terrain, checker: _core.Checker, x: F64, y: F64) -> NDArray[np.bool_]:
    """Whether points pass a checker, (*shape of x, 8): at each heading."""
    checker.set_map(HeightMap.of(terrain).grid)
    headings = np.arange(HEADINGS) * (2.0 * math.pi / HEADINGS)
    poses = np.stack(np.broadcast_arrays(x[..., None], y[..., None], headings), axis=-1)
    safe: NDArray[np.bool_] = checker.reasons(poses.reshape(-1, 3)) == 0
    return safe.reshape(poses.shape[:-1])


def _farthest(points: F64) -> tuple[float, Point, Point] | None:
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


# ------------------------------------------------------------------------------------ drawn pairs


@dataclass(frozen=True, eq=False)
class Screen:
    """Lattice points of a map that a rover could stand on, in connected groups.

    Attributes:
        x_m, y_m: lattice lines.
        group: (ny, nx) number of a point's group; 0 where no rover could stand.
        extent_m: longer side of what is usable.
    """

    x_m: F64
    y_m: F64
    group: NDArray[np.int32]
    extent_m: float

    def joined(self, a: Point, b: Point) -> bool:
        """Whether the lattice points next to two points are in one group."""
        first, second = (
            self.group[np.argmin(np.abs(self.y_m - y)), np.argmin(np.abs(self.x_m - x))]
            for x, y in (a, b)
        )
        return bool(first == second != 0)


def screen(terrain: Terrain, config: Config, size_m: float | None = None) -> Screen:
    """A cheap reachability test by settling alone, to reject hopeless pairs of start and goal.

    On a 0.5 m lattice a point is passable where the settled rover keeps the configured limits at
    any of 8 headings; adjacent passable points, diagonals included, form groups. Ground between
    points and turns are not checked. Ground whose source was coarse and zones are left out. The
    square about the map's middle is `size_m` wide, or the whole map.

    Raises:
        SimError: nothing of the map is usable.
        TerrainError: cells are too coarse to drive on.
    """
    check_cells(terrain, config)
    xs, ys = _lattice(terrain, math.inf if size_m is None else 0.5 * size_m)
    gx, gy = np.meshgrid(xs, ys)
    usable = _usable(terrain, config, gx, gy)
    if not usable.any():
        raise SimError(f"terrain {terrain.name!r}: no known, rover-scale ground in its middle")
    checker = _core.Checker.settle(config.rover_model())
    passable = np.zeros(gx.shape, np.bool_)
    passable[usable] = _passed(terrain, checker, gx[usable], gy[usable]).any(axis=-1)
    group, _ = ndimage.label(passable, structure=np.ones((3, 3)))
    extent = max(float(np.ptp(gx[usable])), float(np.ptp(gy[usable])))
    return Screen(xs, ys, group.astype(np.int32), extent)


Lay = Callable[[Point, Point], Terrain]


def drawn_endpoints(
    terrain: Terrain,
    config: Config,
    rng: np.random.Generator,
    screened: Screen,
    *,
    lay: Lay | None = None,
    size_m: float | None = None,
) -> tuple[Terrain, Point, Point]:
    """A random start and goal that are safe, far enough apart and in one group of the screen.

    At the heading from start to goal the rover settles within limits at both, and the configured
    checker passes the start. They are at least 20 m apart, or 60 % of the usable extent. `lay` adds
    to the ground once they are known (`with_rocks`): they must be safe and connected there as well,
    with `size_m` as for `screen`. The same state of `rng` gives the same pair.

    Returns:
        The ground to drive on, start and goal.

    Raises:
        SimError: no such pair was found.
    """
    least = min(APART_M, APART_SHARE * screened.extent_m)
    far_m = max(least, 2.0 * config.traverse.goal_tolerance_m)
    gx, gy = np.meshgrid(screened.x_m, screened.y_m)
    places = screened.group > 0
    points, groups = np.column_stack([gx[places], gy[places]]), screened.group[places]
    laid = 0
    for _ in range(_TRIES if len(points) else 0):
        i = int(rng.integers(len(points)))
        far = np.hypot(*(points - points[i]).T) >= far_m
        choices = np.flatnonzero(far & (groups == groups[i]))
        if not len(choices):
            continue
        (ax, ay), (bx, by) = points[i].tolist(), points[int(rng.choice(choices))].tolist()
        start, goal = (ax, ay), (bx, by)
        if not _safe_ends(terrain, config, start, goal):
            continue
        if lay is None:
            return terrain, start, goal
        ground = lay(start, goal)
        laid += 1
        safe = _safe_ends(ground, config, start, goal)
        if safe and screen(ground, config, size_m).joined(start, goal):
            return ground, start, goal
        if laid == _TRIES_LAID:
            break
    tried = f" with what was laid on it in {laid} tries" if laid else ""
    raise SimError(
        f"terrain {terrain.name!r}: no safe start and goal at least {least:.1f} m apart"
        f" that hang together were found{tried}"
    )


_TRIES, _TRIES_LAID = 400, 20


def _safe_ends(terrain: Terrain, config: Config, start: Point, goal: Point) -> bool:
    heading = math.atan2(goal[1] - start[1], goal[0] - start[0])
    settle = _core.Checker.settle(config.rover_model())
    for (x, y), at_start in ((start, True), (goal, False)):
        around = HeightMap.of(terrain.crop(x - 4.0, x + 4.0, y - 4.0, y + 4.0))
        checkers = [settle, config.build_checker(around.z.size)] if at_start else [settle]
        for checker in checkers:
            checker.set_map(around.grid)
            if checker.reasons(np.array([[x, y, heading]]))[0] != 0:
                return False
    return True


def _usable(terrain: Terrain, config: Config, gx: F64, gy: F64) -> NDArray[np.bool_]:
    usable = np.isfinite(terrain.height(gx, gy))
    ix, iy = (
        np.clip(np.floor((at - low) / terrain.resolution_m).astype(np.intp), 0, n - 1)
        for at, low, n in zip((gx, gy), terrain.extent_m[::2], terrain.shape[::-1], strict=True)
    )
    forbidden = zone_mask(terrain, config.keep_out, config.keep_in)
    if forbidden is not None:
        usable &= forbidden[iy, ix] == 0
    spacing = terrain.layers.get(MESH_LAYER)
    if spacing is not None:
        coarse = np.nan_to_num(spacing.astype(np.float64), nan=np.inf)
        window = 2 * round(1.0 / terrain.resolution_m) + 1
        usable &= ndimage.uniform_filter(np.minimum(coarse, 10.0), window)[iy, ix] <= FINE_MESH_M
    return np.asarray(usable)
