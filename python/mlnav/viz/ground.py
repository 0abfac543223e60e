"""The ground of 3D pictures: its colours with the light baked in, and its triangles."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from mlnav.terrain import Terrain
from mlnav.viz import style
from mlnav.viz.relief import filled, hillshade

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
I32 = NDArray[np.int32]
U8 = NDArray[np.uint8]
Bounds = tuple[float, float, float, float]

SUN_AZIMUTH_DEG, SUN_ELEVATION_DEG = 135.0, 35.0
"""As the key light of shaded relief: from the upper left of a map."""

_SHADE = 0.48
"""Share of the light that ground in the shadow of other ground lacks."""
_EXPOSURE, _KNEE, _WHITEST = 0.93, 0.62, 0.90
_PENUMBRA_M = 0.06
_SHADOW_REACH_M = 8.0
_FINEST_M = 0.015
"""Texels are not made smaller than this."""
_MOST_TEXELS = 6_000_000
_VAGUE_M = 1.2
"""Standard deviation of colours that are out of focus."""
_GRAIN_M = 0.004
_GRAIN_TEXELS = 1024
_BARE = (0.84, 0.80, 0.78)
"""Tint of steep small forms: bare rock is darker and greyer than the dust between."""


def sun() -> F64:
    """Unit vector towards the sun, world frame."""
    a, e = math.radians(SUN_AZIMUTH_DEG), math.radians(SUN_ELEVATION_DEG)
    return np.array([math.cos(e) * math.cos(a), math.cos(e) * math.sin(a), math.sin(e)])


# ---------------------------------------------------------------------------------------- colours


def ground_colours(terrain: Terrain) -> U8:
    """(ny, nx, 3) colour of every cell: shaded relief as on maps, with cast shadows and mottling.

    Cells of unknown ground take after the nearest known one.
    """
    z, res = filled(terrain.z), terrain.resolution_m
    trend = ndimage.gaussian_filter(z, max(0.2 / res, 0.5))
    low, high = np.percentile(trend, [1.0, 99.0])
    height = np.clip((trend - low) / max(float(high - low), 1.0), 0.0, 1.0)
    rgb = style.ELEVATION(0.18 + 0.66 * height)[..., :3]
    rgb *= (0.28 + 1.12 * hillshade(terrain.z, res))[..., None]
    above = z - ndimage.gaussian_filter(z, max(0.5 / res, 1.0))
    bare = np.clip(np.abs(above) / 0.12 - 0.3, 0.0, 1.0)[..., None]
    rgb *= 1.0 - bare * (1.0 - np.array(_BARE))
    rgb *= (1.0 - _SHADE * cast_shadow(z, res))[..., None]
    rng = np.random.default_rng(0)
    mottle = np.zeros(z.shape)
    for size_m, strength in ((0.25, 0.035), (0.9, 0.045), (4.0, 0.04)):
        sigma = size_m / res
        if 0.4 < sigma < min(z.shape):
            noise = ndimage.gaussian_filter(rng.standard_normal(z.shape), sigma)
            mottle += strength * noise / max(float(noise.std()), 1e-12)
    rgb *= (_EXPOSURE * (1.0 + mottle))[..., None]
    # Bright ground keeps its colour: all three channels come down together.
    peak = rgb.max(axis=-1, keepdims=True)
    bright = np.maximum(peak - _KNEE, 0.0) / (_WHITEST - _KNEE)
    rgb *= np.minimum(1.0, (_KNEE + (_WHITEST - _KNEE) * np.tanh(bright)) / np.maximum(peak, 1e-6))
    return np.asarray(255.0 * rgb + 0.5, np.uint8)


def cast_shadow(z: F64, resolution_m: float) -> F64:
    """(ny, nx) in [0, 1]: how much of the sun other ground hides from each cell.

    The sun stands over a diagonal of the grid, so that its rays pass through cell centres.
    """
    step_m = math.sqrt(2.0) * resolution_m
    drop_m = step_m * math.tan(math.radians(SUN_ELEVATION_DEG))
    reach = min(math.ceil(_SHADOW_REACH_M / step_m), min(z.shape) - 1)
    over = np.full(z.shape, -np.inf)
    for k in range(1, reach + 1):  # towards -x, +y
        over[:-k, k:] = np.maximum(over[:-k, k:], z[k:, :-k] - k * drop_m - z[:-k, k:])
    return np.asarray(np.clip(over / _PENUMBRA_M + 0.5, 0.0, 1.0))


def _mips(finest: U8) -> list[U8]:
    """A picture, then halves of it by averaging, down to a few texels."""
    levels = [finest]
    while min(levels[-1].shape[:2]) >= 8:
        height, width = (n // 2 * 2 for n in levels[-1].shape[:2])
        a = levels[-1][:height, :width].astype(np.uint16)
        levels.append(((a[::2, ::2] + a[1::2, ::2] + a[::2, 1::2] + a[1::2, 1::2] + 2) >> 2)
                      .astype(np.uint8))  # fmt: skip
    return levels


def _grain() -> list[U8]:
    """Fine grain with pebbles, 128 for none: a tile without seams, in halving sizes."""
    rng = np.random.default_rng(1)
    n = _GRAIN_TEXELS
    total = np.zeros((n, n))
    for sigma, strength in ((0.8, 0.045), (2.0, 0.05), (6.0, 0.04)):
        noise = ndimage.gaussian_filter(rng.standard_normal((n, n)), sigma, mode="wrap")
        total += strength * noise / noise.std()
    pebbles = np.zeros((n, n))
    at = rng.integers(0, n, (2, n * n // 1500))
    pebbles[at[0], at[1]] = rng.uniform(0.3, 1.0, at.shape[1]) ** 3
    pebbles = ndimage.gaussian_filter(pebbles, 1.6, mode="wrap")
    pebbles /= pebbles.max()
    lit = pebbles - np.roll(pebbles, (-3, 3), (0, 1))  # a dark side away from the sun
    total += 0.45 * lit
    return _mips(np.clip(128.0 * (1.0 + total), 0.0, 255.0).astype(np.uint8))


class GroundColours:
    """Colours of the ground at any place and fineness: baked maps, fine ones where it matters.

    Args:
        terrain: the ground.
        bounds: (x_min, x_max, y_min, y_max) of what is seen from near.

    Attributes:
        mean: (3,) of the map's colours, 0 to 255.
    """

    def __init__(self, terrain: Terrain, bounds: Bounds) -> None:
        colours = ground_colours(terrain)
        self.mean: F32 = colours.reshape(-1, 3).mean(axis=0).astype(np.float32)
        self._extent, self._resolution_m = terrain.extent_m, terrain.resolution_m
        res = terrain.resolution_m
        self._vague = ndimage.gaussian_filter(
            colours.astype(np.float32), (_VAGUE_M / res, _VAGUE_M / res, 0.0), mode="mirror"
        )
        x_min, x_max, y_min, y_max = terrain.extent_m
        near = (max(bounds[0], x_min), min(bounds[1], x_max),
                max(bounds[2], y_min), min(bounds[3], y_max))  # fmt: skip
        area = (near[1] - near[0]) * (near[3] - near[2])
        texel = min(res, max(_FINEST_M, math.sqrt(area / _MOST_TEXELS)))
        size = [max(1, round((near[i + 1] - near[i]) / texel)) for i in (0, 2)]
        box = ((near[0] - x_min) / res, (near[2] - y_min) / res,
               (near[1] - x_min) / res, (near[3] - y_min) / res)  # fmt: skip
        fine = Image.fromarray(colours).resize(
            (size[0], size[1]), Image.Resampling.BICUBIC, box=box
        )
        self._levels: list[tuple[Bounds, float]] = []  # bounds and texel of each, finest first
        tables: list[tuple[int, int, int]] = []  # first texel, width, height
        packed: list[NDArray[np.uint32]] = []
        first = 0
        for extent, levels in ((near, _mips(np.asarray(fine))), (terrain.extent_m, _mips(colours))):
            for level in levels:
                h, w = level.shape[:2]
                self._levels.append((extent, (extent[1] - extent[0]) / w))
                tables.append((first, w, h))
                rgba = np.empty((h, w, 4), np.uint8)
                rgba[..., :3], rgba[..., 3] = level, 255
                packed.append(rgba.view(np.uint32).reshape(-1))
                first += h * w
            if extent is near:
                self._near_levels = len(levels)
        self._near = near
        self._first, self._width, self._height = np.array(tables, np.int32).T.copy()
        self._x_min = np.array([e[0] for e, _ in self._levels], np.float32)
        self._y_min = np.array([e[2] for e, _ in self._levels], np.float32)
        self._per_m = np.array([1.0 / t for _, t in self._levels], np.float32)
        self._texels = np.concatenate(packed)
        self._grain = _grain()
        self._grain_at = np.cumsum([0, *(g.size for g in self._grain)])[:-1].astype(np.int32)
        self._grain_texels = np.concatenate([g.reshape(-1) for g in self._grain])

    def at(self, x: F32, y: F32, footprint_m: F32) -> F32:
        """(n, 3) colours, 0 to 255, at (n,) places off or on the map, averaged over a size."""
        fineness = np.log2(footprint_m)
        inside = (x >= self._near[0]) & (x < self._near[1])
        inside &= (y >= self._near[2]) & (y < self._near[3])
        far = self._near_levels
        near_level = np.clip(fineness + np.log2(self._per_m[0]), 0, far - 1)
        far_level = np.clip(fineness + np.log2(self._per_m[far]), 0, len(self._levels) - far - 1)
        level = np.where(inside, near_level, far_level + far).astype(np.int32)
        per_m, width = self._per_m[level], self._width[level]
        column = ((x - self._x_min[level]) * per_m).astype(np.int32)
        row = ((y - self._y_min[level]) * per_m).astype(np.int32)
        np.clip(column, 0, width - 1, out=column)
        np.clip(row, 0, self._height[level] - 1, out=row)
        texels = self._texels[self._first[level] + row * width + column]
        grain = self._grain_of(x, y, fineness) * np.float32(1.0 / 128.0)
        colours = np.empty((len(x), 3), np.float32)
        for channel in range(3):
            np.multiply((texels >> (8 * channel)) & 255, grain, out=colours[:, channel],
                        casting="unsafe")  # fmt: skip
        return colours

    def vague(self, x: F32, y: F32) -> F32:
        """(n, 3) colours, 0 to 255, at (n,) places on the map, out of focus."""
        (x_min, _, y_min, _), res = self._extent, self._resolution_m
        at = np.stack([(y - y_min) / res - 0.5, (x - x_min) / res - 0.5])
        colours = np.empty((len(x), 3), np.float32)
        for channel in range(3):
            colours[:, channel] = ndimage.map_coordinates(
                self._vague[..., channel], at, order=1, mode="nearest", prefilter=False
            )
        return colours

    def _grain_of(self, x: F32, y: F32, fineness: F32) -> F32:
        level = np.clip(fineness - math.log2(_GRAIN_M), 0, len(self._grain) - 1).astype(np.int32)
        side = _GRAIN_TEXELS >> level
        finest_column = np.floor(x * np.float32(1.0 / _GRAIN_M)).astype(np.int32)
        finest_row = np.floor(y * np.float32(1.0 / _GRAIN_M)).astype(np.int32)
        column, row = (finest_column >> level) & (side - 1), (finest_row >> level) & (side - 1)
        texels = self._grain_texels[self._grain_at[level] + row * side + column]
        return np.asarray(texels, np.float32)


# -------------------------------------------------------------------------------------- triangles


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles of a piece of ground.

    Attributes:
        vertices: (n, 3) world frame [m].
        triangles: (m, 3) indices, counter-clockwise from above.
    """

    vertices: F32
    triangles: I32


def ground_mesh(terrain: Terrain, bounds: Bounds, most_vertices: int) -> Mesh:
    """The surface through cell centres within bounds, every so many cells as the most allows.

    No triangle touches unknown ground.
    """
    return _mesh(terrain, *_lattice(terrain, bounds, most_vertices))


def ground_tiles(
    terrain: Terrain, near: Bounds, near_vertices: int, far_vertices: int, side: int = 256
) -> list[Mesh]:
    """Near ground fine, the rest of the map coarse; tiles of at most side^2 vertices.

    Where the two meet they overlap by up to a square: colours go by place, so that none shows.
    """
    rows, columns = _lattice(terrain, near, near_vertices)
    tiles = [
        _mesh(terrain, rows[j : j + side], columns[i : i + side])
        for j in range(0, max(len(rows) - 1, 1), side - 1)
        for i in range(0, max(len(columns) - 1, 1), side - 1)
    ]
    far_rows, far_columns = _lattice(terrain, terrain.extent_m, far_vertices)
    for j in range(0, max(len(far_rows) - 1, 1), side - 1):
        for i in range(0, max(len(far_columns) - 1, 1), side - 1):
            tile_rows, tile_columns = far_rows[j : j + side], far_columns[i : i + side]
            covered = np.outer(
                (tile_rows[:-1] >= rows[0]) & (tile_rows[1:] <= rows[-1]),
                (tile_columns[:-1] >= columns[0]) & (tile_columns[1:] <= columns[-1]),
            )
            tiles.append(_mesh(terrain, tile_rows, tile_columns, covered))
    return [tile for tile in tiles if len(tile.triangles)]


def _lattice(
    terrain: Terrain, bounds: Bounds, most_vertices: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns of cells within bounds, evenly thinned, first and last kept."""
    (ny, nx), (x0, y0), res = terrain.shape, terrain.origin_m, terrain.resolution_m

    def cells(low: float, high: float, origin: float, n: int) -> tuple[int, int]:
        first = min(max(math.floor((low - origin) / res), 0), n - 1)
        return first, min(max(math.ceil((high - origin) / res), first), n - 1)

    columns, rows = cells(bounds[0], bounds[1], x0, nx), cells(bounds[2], bounds[3], y0, ny)
    area = (columns[1] - columns[0] + 1) * (rows[1] - rows[0] + 1)
    stride = max(1, math.ceil(math.sqrt(area / most_vertices)))

    def thinned(first: int, last: int) -> NDArray[np.int64]:
        kept = np.arange(first, last + 1, stride, dtype=np.int64)
        return kept if kept[-1] == last else np.append(kept, last)

    return thinned(*rows), thinned(*columns)


def _mesh(
    terrain: Terrain,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    left_out: NDArray[np.bool_] | None = None,
) -> Mesh:
    """Surface through given rows and columns, without some of their squares."""
    z = terrain.z[np.ix_(rows, columns)]
    x, y = np.meshgrid(
        terrain.origin_m[0] + terrain.resolution_m * columns,
        terrain.origin_m[1] + terrain.resolution_m * rows,
    )
    index = np.arange(z.size, dtype=np.int32).reshape(z.shape)
    known = np.isfinite(z)
    whole = known[:-1, :-1] & known[:-1, 1:] & known[1:, :-1] & known[1:, 1:]
    if left_out is not None:
        whole &= ~left_out
    a, b, c, d = (
        i[whole] for i in (index[:-1, :-1], index[:-1, 1:], index[1:, 1:], index[1:, :-1])
    )
    # Along the more level diagonal, or the higher one, so that ridges are not notched.
    flat = z.reshape(-1)
    slope, across = np.abs(flat[a] - flat[c]), np.abs(flat[b] - flat[d])
    first = (slope < across) | ((slope == across) & (flat[a] + flat[c] >= flat[b] + flat[d]))
    first = first[:, None]
    triangles = np.concatenate(
        [
            np.where(first, np.stack([a, b, c], 1), np.stack([a, b, d], 1)),
            np.where(first, np.stack([a, c, d], 1), np.stack([b, c, d], 1)),
        ]
    )
    used, renumbered = np.unique(triangles, return_inverse=True)
    vertices = np.stack([x, y, z], -1).reshape(-1, 3)[used].astype(np.float32)
    return Mesh(vertices, renumbered.reshape(-1, 3).astype(np.int32))
