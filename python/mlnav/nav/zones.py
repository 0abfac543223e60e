"""Zones that no path may touch, as cells of a map."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Polygon = Sequence[tuple[float, float]]


class Raster(Protocol):
    """Square cells with a frame: a `HeightMap` or a `Terrain`."""

    @property
    def shape(self) -> tuple[int, int]:
        """(ny, nx), cells."""

    @property
    def resolution_m(self) -> float:
        """Edge of a cell."""

    @property
    def extent_m(self) -> tuple[float, float, float, float]:
        """(x_min, x_max, y_min, y_max) of the outer cells' edges."""


def zone_mask(
    raster: Raster, keep_out: Sequence[Polygon], keep_in: Sequence[Polygon]
) -> NDArray[np.uint8] | None:
    """Forbidden cells of a raster, (ny, nx) nonzero; None where there are no zones.

    Conservative to a hundredth of a cell (GDAL's tolerance): a cell that a keep-out zone touches is
    forbidden, and so is one that is not wholly inside a keep-in zone.
    """
    if not keep_out and not keep_in:
        return None
    mask = np.zeros(raster.shape, np.uint8)
    if keep_out:
        mask |= _touched(raster, keep_out)
    if keep_in:
        res = raster.resolution_m
        x_min, x_max, y_min, y_max = (
            b + s * 10.0 * res for b, s in zip(raster.extent_m, (-1, 1, -1, 1), strict=True)
        )
        frame = [(x_min, y_min), (x_max, y_min), (x_max, y_max), (x_min, y_max)]
        outside = np.ones(raster.shape, np.uint8)
        for polygon in keep_in:
            outside &= _touched(raster, [frame], hole=polygon)
        mask |= outside
    return mask


def _touched(
    raster: Raster, polygons: Sequence[Polygon], hole: Polygon | None = None
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
    import rasterio.features

    x_min, _, y_min, _ = raster.extent_m
    res = raster.resolution_m
    mask = rasterio.features.rasterize(
        shapes,
        out_shape=raster.shape,
        transform=rasterio.Affine(res, 0.0, x_min, 0.0, res, y_min),
        all_touched=True,
        dtype="uint8",
    )
    return np.asarray(mask, np.uint8)
