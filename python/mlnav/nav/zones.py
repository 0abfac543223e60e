"""Zones that no path may touch, as cells of a map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mlnav.core import HeightMap

if TYPE_CHECKING:
    from mlnav.terrain import Terrain

Polygon = Sequence[tuple[float, float]]


def zone_mask(
    raster: HeightMap | Terrain, keep_out: Sequence[Polygon], keep_in: Sequence[Polygon]
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
        margin = 10.0 * raster.resolution_m
        x_min, x_max, y_min, y_max = np.add(raster.extent_m, np.multiply(margin, (-1, 1, -1, 1)))
        frame = [(x_min, y_min), (x_max, y_min), (x_max, y_max), (x_min, y_max)]
        outside = [_touched(raster, [frame], hole=polygon) for polygon in keep_in]
        mask |= np.bitwise_and.reduce(outside)
    return mask


def _touched(
    raster: HeightMap | Terrain, polygons: Sequence[Polygon], hole: Polygon | None = None
) -> NDArray[np.uint8]:
    import rasterio.features

    def ring(polygon: Polygon) -> Any:
        points = np.array([*polygon, polygon[0]], np.float64)
        if not np.isfinite(points).all():
            raise ValueError("zone polygons must be finite")
        return points.tolist()

    holes, (x_min, _, y_min, _), res = [hole] if hole else [], raster.extent_m, raster.resolution_m
    mask = rasterio.features.rasterize(
        [{"type": "Polygon", "coordinates": [*map(ring, (p, *holes))]} for p in polygons],
        out_shape=raster.shape,
        transform=rasterio.Affine(res, 0.0, x_min, 0.0, res, y_min),
        all_touched=True,
        dtype="uint8",
    )
    return np.asarray(mask, np.uint8)
