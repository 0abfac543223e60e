"""Sensors: what of the world the planner gets to see."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import rasterio.features
from numpy.typing import NDArray

from mlnav.core import HeightMap
from mlnav.terrain import Terrain

Pose = tuple[float, float, float]
Polygon = Sequence[tuple[float, float]]


class Sensor(Protocol):
    """Turns the ground around a pose into the planner's local map."""

    @property
    def max_cells(self) -> int:
        """Most cells of a local map."""
        ...

    def sense(self, pose: Pose) -> HeightMap:
        """The local map at a pose."""
        ...


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

    def sense(self, pose: Pose) -> HeightMap:
        """The window about the cell that the pose is in.

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
