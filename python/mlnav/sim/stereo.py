"""Stereo cameras on the mast, and the map made of their points.

Rays are cast on one lattice of azimuths and elevations of the levelled world; a view keeps those
within its frustum. At an azimuth a frustum is an interval of slopes, as is what the rover hides.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter, minimum_filter

from mlnav import _core
from mlnav.config import Config, ConfigError, Rover, Stereo, numbers_of
from mlnav.core import HeightMap
from mlnav.nav.motion import wrapped
from mlnav.sim.rolling_map import RollingMap
from mlnav.sim.state import RoverState
from mlnav.terrain import Terrain

F64 = NDArray[np.float64]

DECK_ABOVE_PAN_M = 0.5
"""Height of the deck, which hides the ground behind it from the mast."""

STEEPEST_DEG = 89.5
"""Steepest ray; below it there is only the rover itself."""


class StereoSensor:
    """Views from the mast at every stop, averaged in the cells of a rolling map.

    The window is a square of fixed size on the terrain's lattice; its corner lies on a multiple of
    the planner's coarse cells. The map is in the frame of the estimated poses: points keep their
    place, so a growing error blurs the map.
    """

    def __init__(
        self, settings: Stereo, config: Config, terrain: Terrain, rng: np.random.Generator
    ) -> None:
        """The sensor at the start of a run; `rng` makes its noise."""
        self._terrain = terrain
        self._grid = HeightMap.of(terrain).grid
        self._settings = settings
        self._rng = rng

        self._align = config.planner.align_cells
        self._half_cells = max(1, round(settings.half_width_m / settings.resolution_m))
        # Wide enough to reach equally far to all sides, wherever the corner lies.
        side = (-(-2 * self._half_cells // self._align) + 1) * self._align
        self._shape = (side, side)
        # Values: height, and variances of the range along the vertical and along the level.
        self._map = RollingMap(settings.resolution_m, terrain.origin_m, self._shape, values=3)
        self._fill_cells = int(0.5 * settings.fill_m / settings.resolution_m + 1e-9)
        self._begun = False

        self._mast_m = np.array(settings.mast_m)
        self._views = [_frustum(settings, azimuth) for azimuth in settings.azimuth_deg]
        self._shadows = _shadows(config.rover, self._mast_m)
        self._azimuths = _columns(settings)
        self._elevations = _rows(settings)
        self._slopes = np.tan(self._elevations)
        self._range_error_per_m2 = (
            settings.disparity_sigma_px * math.radians(settings.pixel_deg) / settings.baseline_m
        )

    @property
    def max_cells(self) -> int:
        """Cells of the local map, always."""
        ny, nx = self._shape
        return ny * nx

    def as_built(self) -> dict[str, float]:
        """Its settings; the window in whole cells."""
        res = self._map.resolution_m
        in_cells = {"sensor.half_width_m": self._half_cells * res, "sensor.resolution_m": res}
        return numbers_of("sensor", self._settings) | in_cells

    def sense(self, state: RoverState) -> HeightMap:
        """Take the views, and give the map of all points so far, about the estimated pose.

        Holes are filled in `HeightMap.guessed` only.

        Raises:
            ConfigError: nothing is seen, and no known start is configured.
            CoreError: the cameras are below the ground.
        """
        iy, ix = (
            (cell - self._half_cells) // self._align * self._align
            for cell in self._map.cell(*state.estimated_pose[:2])
        )
        self._map.move((iy, ix))
        if not self._begun:
            self._begun = True
            self._map.add(*self._known_start(state))
        self._map.add(*self.points(state))
        z = self._map.heights()
        if np.isnan(z).all():
            x, y, _ = state.true_pose
            raise ConfigError(
                f"sensor: no ground is in view at ({x:g}, {y:g}), and sensor.known_start_m ="
                f" {self._settings.known_start_m:g} adds none: there is no map to plan on"
            )
        guessed = _filled(z, self._fill_cells) if self._fill_cells else None
        return HeightMap(
            z,
            self._settings.resolution_m,
            self._map.origin_m,
            guessed=guessed,
            height_error_m=self._height_error_m(z),
        )

    def _height_error_m(self, z: NDArray[np.float32]) -> NDArray[np.float32] | None:
        """Bound on the error of each known cell's mean height, from the noise of its ranges."""
        settings = self._settings
        if not (settings.error_sigmas or settings.height_error_m):
            return None
        # A range moves its point along the ray: up, and along the level, which counts by the slope.
        slopes = np.hypot(*np.gradient(z.astype(np.float64), settings.resolution_m))
        slopes[np.isnan(slopes)] = 1.0
        _, up, level = self._map.sums
        variance = (up + slopes**2 * level) / np.maximum(self._map.counts, 1.0) ** 2
        error: F64 = settings.height_error_m + settings.error_sigmas * np.sqrt(variance)
        return error.astype(np.float32)

    def points(self, state: RoverState) -> tuple[F64, ...]:
        """Points of the views at one stop, in the estimated frame.

        (n,) each: x, y, z [m], and the variance of the range along the vertical and the level [m2].
        """
        settings, (x, y, heading) = self._settings, state.true_pose
        heading = wrapped(heading)
        roll, pitch, origin_z = self._posture(state)
        body = _rotation("z", heading) @ _rotation("x", roll) @ _rotation("y", -pitch)
        mast = body @ self._mast_m

        seen, azimuth, elevation = self._looked_at(body, heading)
        if not seen.size:
            return (np.empty(0),) * 5
        ranges = _core.cast_view(
            self._grid,
            (x + mast[0], y + mast[1], origin_z + mast[2]),
            azimuth,
            elevation,
            (settings.range_min_m, settings.range_max_m),
        )
        hit = np.flatnonzero(seen & ~np.isnan(ranges))
        if settings.dropout:
            hit = hit[self._rng.random(len(hit)) >= settings.dropout]
        measured = ranges.ravel()[hit].astype(np.float64)
        sigma_m = self._range_error_per_m2 * measured**2
        if self._range_error_per_m2:
            measured += sigma_m * self._rng.standard_normal(len(hit))

        # From here on in the estimated frame: all azimuths are turned, and so is the mast.
        turned = state.estimated_pose[2] - heading
        column, row = np.divmod(hit, len(elevation))
        level = measured * np.cos(elevation)[row]
        mast = _rotation("z", turned) @ mast
        return (
            state.estimated_pose[0] + mast[0] + level * np.cos(azimuth + turned)[column],
            state.estimated_pose[1] + mast[1] + level * np.sin(azimuth + turned)[column],
            origin_z + state.estimated_z_error_m + mast[2] + measured * np.sin(elevation)[row],
            (sigma_m * np.sin(elevation)[row]) ** 2,
            (sigma_m * np.cos(elevation)[row]) ** 2,
        )

    def _looked_at(self, body: F64, heading: float) -> tuple[NDArray[np.bool_], F64, F64]:
        """Mask of the rays in view and not hidden by the rover, its azimuths and elevations."""
        azimuth = heading + self._azimuths
        views = [_slopes_within(view @ body.T, azimuth) for view in self._views]
        shadows = [_slopes_within(shadow @ body.T, azimuth) for shadow in self._shadows]
        lo = np.min([lo for lo, _ in views], axis=0)
        hi = np.max([hi for _, hi in views], axis=0)
        columns = np.flatnonzero(np.any([lo <= hi for lo, hi in views], axis=0))
        if not columns.size:
            return np.zeros((0, 0), bool), azimuth[:0], self._elevations[:0]
        first = np.searchsorted(self._slopes, lo[columns].min())
        up = slice(first, np.searchsorted(self._slopes, hi[columns].max(), side="right"))
        slopes = self._slopes[up]

        def within(intervals: list[tuple[F64, F64]]) -> NDArray[np.bool_]:
            rays = np.zeros((columns.size, slopes.size), bool)
            for lo, hi in intervals:
                rays |= (lo[columns, None] <= slopes) & (slopes <= hi[columns, None])
            return rays

        return within(views) & ~within(shadows), azimuth[columns], self._elevations[up]

    def _posture(self, state: RoverState) -> tuple[float, float, float]:
        """True roll, pitch [rad] and height of the origin [m]; level where it has not settled."""
        roll, pitch, z = (state.settled.get(k) for k in ("roll_rad", "pitch_rad", "origin_z_m"))
        if roll is None or pitch is None or z is None:
            return 0.0, 0.0, self._terrain.height(state.true_pose[0], state.true_pose[1])
        return roll, pitch, z

    def _known_start(self, state: RoverState) -> tuple[F64, ...]:
        """Points, as of `points`, at the centres of cells that are known from the start."""
        res, (x0, y0), (ny, nx) = self._settings.resolution_m, self._map.origin_m, self._shape
        dx = x0 + res * np.arange(nx)[None, :] - state.estimated_pose[0]
        dy = y0 + res * np.arange(ny)[:, None] - state.estimated_pose[1]
        iy, ix = np.nonzero(np.hypot(dx, dy) < self._settings.known_start_m)
        dx, dy = dx[0, ix], dy[iy, 0]
        turned = state.true_pose[2] - state.estimated_pose[2]
        c, s = math.cos(turned), math.sin(turned)
        x, y, _ = state.true_pose
        z = self._terrain.height(x + c * dx - s * dy, y + s * dx + c * dy)
        known, (at_x, at_y, _) = ~np.isnan(z), state.estimated_pose
        exact = np.zeros(known.sum())
        heights = z[known] + state.estimated_z_error_m
        return (at_x + dx)[known], (at_y + dy)[known], heights, exact, exact


def _filled(z: NDArray[np.float32], reach: int) -> NDArray[np.float32]:
    """Heights with holes of up to 2 x `reach` (>= 1) cells filled by the mean around them."""
    side = 2 * reach + 1
    wide = np.pad(z, reach, constant_values=np.nan)  # unknown ground beyond the window, too
    grown = maximum_filter(~np.isnan(wide), side, mode="constant", cval=0)
    # Closing: known ground does not grow outwards.
    closed = minimum_filter(grown, side)[reach:-reach, reach:-reach]
    holes = closed & np.isnan(z)
    out = z.copy()
    around = sliding_window_view(wide, (side, side))[holes]
    out[holes] = np.nanmean(around, axis=(1, 2), dtype=np.float64)
    return out


def _columns(settings: Stereo) -> F64:
    """Azimuths all around [rad], from the heading: half a map cell apart at the largest range."""
    step = max(math.radians(settings.pixel_deg), 0.5 * settings.resolution_m / settings.range_max_m)
    count = math.ceil(2.0 * math.pi / step)
    return 2.0 * math.pi / count * (np.arange(count, dtype=np.float64) - count // 2)


def _rows(settings: Stereo) -> F64:
    """Elevations [rad], ascending: half a map cell apart on level ground, at least a pixel."""
    height, pixel = settings.mast_m[2], math.radians(settings.pixel_deg)
    steepest = math.radians(STEEPEST_DEG)
    rows, row = [], -steepest
    while row < steepest:
        rows.append(row)
        further = -height / math.tan(row) + settings.resolution_m / 2 if row < 0.0 else math.inf
        row = max(row + pixel, -math.atan2(height, further))
    return np.array(rows)


def _frustum(settings: Stereo, azimuth_deg: float) -> F64:
    """A view's cone as (4, 3) inward normals in the rover frame."""
    side, top = (math.tan(math.radians(a / 2)) for a in (settings.width_deg, settings.height_deg))
    camera: F64 = np.array([[side, -1.0, 0.0], [side, 1.0, 0.0], [top, 0.0, -1.0], [top, 0.0, 1.0]])
    pan, tilt = math.radians(azimuth_deg), math.radians(settings.elevation_deg)
    return camera @ (_rotation("z", pan) @ _rotation("y", -tilt)).T


def _shadows(rover: Rover, mast_m: F64) -> list[F64]:
    """Cones, as of `_frustum`, that the rover hides: below its deck, and below its wheels' tops."""
    r, deck_z = rover.wheel_radius_m, rover.pan_height_m + DECK_ABOVE_PAN_M
    wheel_y = max(rover.front_y_m, rover.middle_y_m, rover.rear_y_m) + rover.wheel_width_m / 2
    shadows: list[F64] = []
    for rear, front, y, z in (
        (rover.pan_rear_x_m, rover.pan_front_x_m, rover.pan_half_width_m, deck_z),
        (rover.rear_x_m - r, rover.front_x_m + r, wheel_y, 2 * r),
    ):
        if z < mast_m[2]:  # else it hides nothing
            # Counter-clockwise from above: normals of the cone's sides come out outwards.
            corners = np.array([(rear, -y, z), (front, -y, z), (front, y, z), (rear, y, z)])
            edges = corners - mast_m
            shadows.append(-np.cross(edges, np.roll(edges, -1, axis=0)))
    return shadows


def _slopes_within(normals: F64, azimuth: F64) -> tuple[F64, F64]:
    """Lowest and highest slope of rays inside a cone at each of (n,) azimuths; lo > hi: none.

    `normals` (4, 3) point into the cone, in the world frame.
    """
    level = normals[:, :2] @ np.stack([np.cos(azimuth), np.sin(azimuth)])
    up = normals[:, 2:]
    with np.errstate(divide="ignore", invalid="ignore"):
        edge = -level / up
    lo = np.where(up > 0.0, edge, -np.inf).max(axis=0)
    hi = np.where(up < 0.0, edge, np.inf).min(axis=0)
    outside = ((up == 0.0) & (level < 0.0)).any(axis=0)
    return np.where(outside, np.inf, lo), np.where(outside, -np.inf, hi)


def _rotation(axis: str, angle: float) -> F64:
    """Rotation about x, y or z."""
    turned: F64 = np.eye(3)
    i, j = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}[axis]
    c, s = math.cos(angle), math.sin(angle)
    turned[[i, i, j, j], [i, j, i, j]] = c, -s, s, c
    return turned
