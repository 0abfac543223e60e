"""The terrain of 3D pictures: its colours with the light baked in, and its triangles."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from mlnav.core import F32, F64, HeightMap
from mlnav.terrain import Terrain
from mlnav.viz.relief import SUN_DEG, Bounds, direction, filled, lit_colours

I32 = NDArray[np.int32]
U8 = NDArray[np.uint8]
Indices = NDArray[np.int64]

SUN = direction(*SUN_DEG)
SUN_ELEVATION_DEG = SUN_DEG[1]

_SHADE = 0.48
"""Share of the light that cast shadows take away."""
_EXPOSURE, _KNEE, _WHITEST = 0.93, 0.62, 0.90
_PENUMBRA_M = 0.06
_SHADOW_REACH_M = 8.0
_FINEST_M = 0.015
"""Size of the smallest texels."""
_MOST_TEXELS = 6_000_000
_VAGUE_M = 1.2
"""Standard deviation of the blur of colours that are out of focus."""
_GRAIN_M = 0.004
_GRAIN_TEXELS = 1024
_BARE = (0.84, 0.80, 0.78)
"""Tint of small steep forms: bare rock is darker and greyer than dust."""


def ground_colours(terrain: Terrain) -> U8:
    """(ny, nx, 3) colour of every cell: shaded relief as on maps, with cast shadows and mottling.

    Unknown cells take the colour of the nearest known one.
    """
    z, res = filled(terrain.z), terrain.resolution_m
    rgb = lit_colours(terrain.z, res, 1.0, 0.18, 0.66)
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
    # Bright terrain keeps its hue: all three channels are compressed together.
    peak = rgb.max(axis=-1, keepdims=True)
    bright = np.maximum(peak - _KNEE, 0.0) / (_WHITEST - _KNEE)
    rgb *= np.minimum(1.0, (_KNEE + (_WHITEST - _KNEE) * np.tanh(bright)) / np.maximum(peak, 1e-6))
    return np.asarray(255.0 * rgb + 0.5, np.uint8)


def cast_shadow(z: F64, resolution_m: float) -> F64:
    """(ny, nx) in [0, 1]: share of the sun that terrain hides from each cell.

    The sun's azimuth is a diagonal of the grid, so that its rays pass through cell centres.
    """
    step_m = math.sqrt(2.0) * resolution_m
    drop_m = step_m * math.tan(math.radians(SUN_ELEVATION_DEG))
    reach = min(math.ceil(_SHADOW_REACH_M / step_m), min(z.shape) - 1)
    over = np.full(z.shape, -np.inf)
    for k in range(1, reach + 1):  # towards -x, +y
        over[:-k, k:] = np.maximum(over[:-k, k:], z[k:, :-k] - k * drop_m - z[:-k, k:])
    return np.asarray(np.clip(over / _PENUMBRA_M + 0.5, 0.0, 1.0))


def _grain() -> U8:
    """A seamless tile of fine grain with pebbles; 128 is neutral."""
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
    total += 0.45 * (pebbles - np.roll(pebbles, (-3, 3), (0, 1)))  # dark away from the sun
    return np.clip(128.0 * (1.0 + total), 0.0, 255.0).astype(np.uint8)


class _Pyramid:
    """An image over a part of the plane, halved by averaging down to a few texels.

    Beyond its bounds it ends, or repeats, as `mode` of `numpy.ravel_multi_index` says.
    """

    def __init__(self, finest: U8, bounds: Bounds, mode: Literal["clip", "wrap"]) -> None:
        self.bounds, self._mode = bounds, mode
        self._levels = [finest]
        while min(self._levels[-1].shape[:2]) >= 8:
            self._levels.append(np.asarray(Image.fromarray(self._levels[-1]).reduce(2)))

    def at(self, x: F32, y: F32, footprint_m: F32) -> U8:
        """Texels, (n,) or (n, channels), at (n,) places."""
        x_min, x_max, y_min, y_max = self.bounds
        finest = self._levels[0]
        finest_m = (x_max - x_min) / finest.shape[1]
        level = np.clip(np.log2(footprint_m / finest_m), 0, len(self._levels) - 1).astype(np.int8)
        texels = np.empty((len(x), *finest.shape[2:]), np.uint8)
        for k, image in enumerate(self._levels):
            here = np.flatnonzero(level == k)
            height, width = shape = image.shape[:2]
            column = np.floor((x[here] - x_min) * (width / (x_max - x_min))).astype(int)
            row = np.floor((y[here] - y_min) * (height / (y_max - y_min))).astype(int)
            index = np.ravel_multi_index((row, column), shape, self._mode)
            texels[here] = image.reshape(-1, *finest.shape[2:])[index]
        return texels


class GroundColours:
    """Colours of the terrain at any place and resolution, from image pyramids.

    The part within bounds, seen from near, has finer texels; `mean` is (3,), 0 to 255.
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
        left, right = max(bounds[0], x_min), min(bounds[1], x_max)
        bottom, top = max(bounds[2], y_min), min(bounds[3], y_max)
        area = (right - left) * (top - bottom)
        texel = min(res, max(_FINEST_M, math.sqrt(area / _MOST_TEXELS)))
        size = (max(1, round((right - left) / texel)), max(1, round((top - bottom) / texel)))
        box = ((left - x_min) / res, (bottom - y_min) / res,
               (right - x_min) / res, (top - y_min) / res)  # fmt: skip
        fine = Image.fromarray(colours).resize(size, Image.Resampling.BICUBIC, box=box)
        self._near = _Pyramid(np.asarray(fine), (left, right, bottom, top), "clip")
        self._far = _Pyramid(colours, terrain.extent_m, "clip")
        tile_m = _GRAIN_M * _GRAIN_TEXELS
        self._grain = _Pyramid(_grain(), (0.0, tile_m, 0.0, tile_m), "wrap")

    def at(self, x: F32, y: F32, footprint_m: F32) -> F32:
        """(n, 3) colours, 0 to 255, at (n,) places on or off the map, averaged over a footprint."""
        x_min, x_max, y_min, y_max = self._near.bounds
        inside = (x >= x_min) & (x < x_max) & (y >= y_min) & (y < y_max)
        rgb = np.empty((len(x), 3), np.uint8)
        for part, pyramid in ((inside, self._near), (~inside, self._far)):
            rgb[part] = pyramid.at(x[part], y[part], footprint_m[part])
        grain = self._grain.at(x, y, footprint_m) * np.float32(1.0 / 128.0)
        return np.asarray(rgb * grain[:, None])

    def vague(self, x: F32, y: F32) -> F32:
        """(n, 3) colours, 0 to 255, at (n,) places on the map, out of focus."""
        (x_min, _, y_min, _), res = self._extent, self._resolution_m
        at = np.stack([(y - y_min) / res - 0.5, (x - x_min) / res - 0.5])
        channels = np.moveaxis(self._vague, -1, 0)
        return np.stack(
            [ndimage.map_coordinates(v, at, order=1, mode="nearest") for v in channels], axis=1
        )


class Mesh(NamedTuple):
    """(n, 3) vertices [m] and (m, 3) triangles of terrain, counter-clockwise from above."""

    vertices: F32
    triangles: I32


def ground_mesh(terrain: Terrain | HeightMap, bounds: Bounds, most_vertices: int) -> Mesh:
    """The surface through cell centres within bounds, thinned to at most `most_vertices`.

    No triangle touches an unknown cell.
    """
    return _mesh(terrain, *_lattice(terrain, bounds, most_vertices))


def ground_tiles(
    terrain: Terrain, near: Bounds, near_vertices: int, far_vertices: int, side: int = 256
) -> list[Mesh]:
    """Near terrain fine, the rest of the map coarse; tiles of at most side^2 vertices.

    The two overlap by up to a square, which does not show: colours depend on the place alone.
    """
    fine = rows, columns = _lattice(terrain, near, near_vertices)
    tiles = [_mesh(terrain, *tile) for tile in _split(*fine, side)]
    for j, i in _split(*_lattice(terrain, terrain.extent_m, far_vertices), side):
        covered = np.outer(
            (j[:-1] >= rows[0]) & (j[1:] <= rows[-1]),
            (i[:-1] >= columns[0]) & (i[1:] <= columns[-1]),
        )
        tiles.append(_mesh(terrain, j, i, covered))
    return [tile for tile in tiles if len(tile.triangles)]


def _split(rows: Indices, columns: Indices, side: int) -> Iterator[tuple[Indices, Indices]]:
    """Rows and columns of tiles that share their edges."""
    for j in range(0, max(len(rows) - 1, 1), side - 1):
        for i in range(0, max(len(columns) - 1, 1), side - 1):
            yield rows[j : j + side], columns[i : i + side]


def _lattice(
    terrain: Terrain | HeightMap, bounds: Bounds, most_vertices: int
) -> tuple[Indices, Indices]:
    """Rows and columns of cells within bounds, evenly thinned, first and last kept."""
    (ny, nx), (x0, y0), res = terrain.shape, terrain.origin_m, terrain.resolution_m

    def cells(low: float, high: float, origin: float, n: int) -> Indices:
        ends = math.floor((low - origin) / res), math.ceil((high - origin) / res)
        return np.clip(ends, 0, n - 1)

    columns, rows = cells(bounds[0], bounds[1], x0, nx), cells(bounds[2], bounds[3], y0, ny)
    area = (np.ptp(columns) + 1) * (np.ptp(rows) + 1)
    stride = max(1, math.ceil(math.sqrt(area / most_vertices)))
    every_row, every_column = (
        np.append(np.arange(first, last, stride), last) for first, last in (rows, columns)
    )
    return every_row, every_column


def _mesh(
    terrain: Terrain | HeightMap,
    rows: Indices,
    columns: Indices,
    left_out: NDArray[np.bool_] | None = None,
) -> Mesh:
    """Surface through given rows and columns, without the squares that are left out."""
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
    corners = (index[:-1, :-1], index[:-1, 1:], index[1:, 1:], index[1:, :-1])
    a, b, c, d = (i[whole] for i in corners)
    # Squares are split along the more level diagonal, or the higher one: ridges get no notches.
    flat = z.reshape(-1)
    slope, across = np.abs(flat[a] - flat[c]), np.abs(flat[b] - flat[d])
    first = (slope < across) | ((slope == across) & (flat[a] + flat[c] >= flat[b] + flat[d]))
    first = first[:, None]
    one = np.where(first, np.stack([a, b, c], 1), np.stack([a, b, d], 1))
    other = np.where(first, np.stack([a, c, d], 1), np.stack([b, c, d], 1))
    used, renumbered = np.unique(np.concatenate([one, other]), return_inverse=True)
    vertices = np.stack([x, y, z], -1).reshape(-1, 3)[used].astype(np.float32)
    return Mesh(vertices, renumbered.reshape(-1, 3).astype(np.int32))
