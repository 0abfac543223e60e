"""Sensors: what of the world the planner gets to see."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import rasterio.features
from numpy.typing import NDArray

from mlnav.config import Config, Stereo
from mlnav.core import HeightMap
from mlnav.sim.localization import Whereabouts
from mlnav.sim.noise import random_stream
from mlnav.sim.world import Pose
from mlnav.terrain import Terrain

Polygon = Sequence[tuple[float, float]]


class Sensor(Protocol):
    """Turns the ground around a pose into the planner's local map."""

    @property
    def max_cells(self) -> int:
        """Most cells of a local map."""
        ...

    def sense(self, where: Whereabouts) -> HeightMap:
        """The local map, in the frame that the rover believes to be in."""
        ...

    def as_built(self) -> dict[str, float]:
        """Values by key of the configuration, read back from what was made of it."""
        ...


def make_sensor(terrain: Terrain, config: Config, seed: int) -> Sensor:
    """The sensor that a configuration names, with noise of the run's seed."""
    settings = config.sensor
    if isinstance(settings, Stereo):
        from mlnav.sim.stereo import StereoSensor

        return StereoSensor(terrain, config, settings, random_stream(seed, "sensor"))
    return TruthSensor(
        terrain,
        settings.half_width_m,
        align_cells=config.planner.costmap.coarsening,
        keep_out=zone_mask(terrain, config.keep_out, config.keep_in),
    )


class TruthSensor:
    """The true heights in a square window around the rover.

    The window is cut on whole cells, so nothing is resampled, and its corner lies on a multiple of
    `align_cells`: coarse cells that a planner builds of so many fine ones cover the same ground in
    every cycle. At the border of the terrain the window is smaller.
    """

    def __init__(
        self,
        terrain: Terrain,
        half_width_m: float = 16.0,
        *,
        align_cells: int = 1,
        keep_out: NDArray[np.uint8] | None = None,
    ) -> None:
        self._terrain = terrain
        self._keep_out = keep_out
        self._align = align_cells
        self._half_cells = max(1, round(half_width_m / terrain.resolution_m))

    @property
    def max_cells(self) -> int:
        """Most cells of a local map."""
        side = 2 * self._half_cells + 2 * self._align
        ny, nx = self._terrain.shape
        return min(side, ny) * min(side, nx)

    def as_built(self) -> dict[str, float]:
        """Size of the window, in whole cells."""
        return {"sensor.half_width_m": self._half_cells * self._terrain.resolution_m}

    def sense(self, where: Whereabouts) -> HeightMap:
        """The window about the rover, shifted and turned by its error of localization.

        Raises:
            TerrainError: the rover is off the map.
        """
        if where.known:
            return self.window(where.pose)
        # The same lattice about the believed pose; heights are looked up where its cells truly are.
        frame = self.window(where.believed)
        (ny, nx), (x0, y0), res = frame.shape, frame.origin_m, frame.resolution_m
        x, y = np.meshgrid(x0 + res * np.arange(nx), y0 + res * np.arange(ny))
        turned = where.pose[2] - where.believed[2]
        c, s = math.cos(turned), math.sin(turned)
        dx, dy = x - where.believed[0], y - where.believed[1]
        true_x, true_y = where.pose[0] + c * dx - s * dy, where.pose[1] + s * dx + c * dy
        z = self._terrain.height(true_x, true_y) + where.believed_z_error_m
        return HeightMap(z.astype(np.float32), res, frame.origin_m, frame.keep_out)

    def window(self, pose: Pose) -> HeightMap:
        """The window about the cell that a pose is in.

        Raises:
            TerrainError: the pose is off the map.
        """
        iy, ix = self._terrain.cell(pose[0], pose[1])
        ny, nx = self._terrain.shape
        rows, columns = self._range(iy, ny), self._range(ix, nx)
        res, (x, y) = self._terrain.resolution_m, self._terrain.origin_m
        return HeightMap(
            self._terrain.z[rows, columns],
            res,
            (x + columns.start * res, y + rows.start * res),
            None if self._keep_out is None else self._keep_out[rows, columns],
        )

    def _range(self, cell: int, cells: int) -> slice:
        first = (cell - self._half_cells) // self._align * self._align
        last = -(-(cell + self._half_cells + 1) // self._align) * self._align
        return slice(max(first, 0), min(last, cells))


def zone_mask(
    terrain: Terrain, keep_out: Sequence[Polygon], keep_in: Sequence[Polygon]
) -> NDArray[np.uint8] | None:
    """Forbidden cells of a terrain, (ny, nx) nonzero; None where there are no zones.

    Conservative to a hundredth of a cell (GDAL's tolerance): a cell that a keep-out zone touches is
    forbidden, and so is one that is not wholly inside a keep-in zone.
    """
    if not keep_out and not keep_in:
        return None
    mask = np.zeros(terrain.shape, np.uint8)
    if keep_out:
        mask |= _touched(terrain, keep_out)
    if keep_in:
        res = terrain.resolution_m
        x_min, x_max, y_min, y_max = (
            b + s * 10.0 * res for b, s in zip(terrain.extent_m, (-1, 1, -1, 1), strict=True)
        )
        frame = [(x_min, y_min), (x_max, y_min), (x_max, y_max), (x_min, y_max)]
        outside = np.ones(terrain.shape, np.uint8)
        for polygon in keep_in:
            outside &= _touched(terrain, [frame], hole=polygon)
        mask |= outside
    return mask


def _touched(
    terrain: Terrain, polygons: Sequence[Polygon], hole: Polygon | None = None
) -> NDArray[np.uint8]:
    def ring(polygon: Polygon) -> list[tuple[float, float]]:
        points = [(float(x), float(y)) for x, y in polygon]
        if not all(math.isfinite(v) for point in points for v in point):
            raise ValueError("zone polygons must be finite")
        return [*points, points[0]]

    shapes = [
        ({"type": "Polygon", "coordinates": [ring(p)] + ([ring(hole)] if hole else [])}, 1)
        for p in polygons
    ]
    x_min, _, y_min, _ = terrain.extent_m
    res = terrain.resolution_m
    mask = rasterio.features.rasterize(
        shapes,
        out_shape=terrain.shape,
        transform=rasterio.Affine(res, 0.0, x_min, 0.0, res, y_min),
        all_touched=True,
        dtype="uint8",
    )
    return np.asarray(mask, np.uint8)
