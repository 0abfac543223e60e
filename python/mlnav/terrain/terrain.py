"""A terrain: one height grid with its frame.

World frame: x east, y north, z up, metres. Heights are row-major ``z[iy, ix]``; cell (0, 0) has the
smallest x and y. A cell owns the half-open square about its centre. NaN is unknown ground.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mlnav.core import as_array, frozen_copy

HeightArray = NDArray[np.float32]
Point = tuple[float, float]

MAX_ABS_HEIGHT_M = 1e5
"""Local heights beyond this are fill values or in wrong units."""

_BOUND_TOLERANCE_CELLS = 1e-6
"""Crop bounds this close to a cell centre are taken as that centre (0.1 * 3 is not 0.3)."""


class TerrainError(ValueError):
    """A terrain, terrain file or terrain recipe is faulty; the message names the fault."""


@dataclass(frozen=True, eq=False)
class Terrain:
    """An immutable height grid in a local metric frame.

    Attributes:
        z: heights [m], float32, shape (ny, nx), C-contiguous, read-only; NaN is unknown. Any real
            2-D array is accepted and copied; masked entries become unknown.
        resolution_m: edge of a square cell [m].
        origin_m: (x, y) of the centre of cell (0, 0), local frame [m].
        datum: (dx, dy, dz) [m], float64: source coordinates are ``local + datum``.
        name: for people and reports.
        start_m, goal_m: suggested (x, y) of a traverse, local frame, on the map; or None.
        layers: further bands of the source by name, float32, each of the shape of ``z``, read-only.
        attribution: credit and licence of the data, where it has one.

    Raises:
        TerrainError: heights or frame are unusable; heights beyond ``MAX_ABS_HEIGHT_M`` are.
    """

    z: HeightArray
    resolution_m: float
    origin_m: Point = (0.0, 0.0)
    datum: tuple[float, float, float] = (0.0, 0.0, 0.0)
    name: str = "terrain"
    start_m: Point | None = None
    goal_m: Point | None = None
    layers: Mapping[str, HeightArray] = field(default_factory=dict)
    attribution: str | None = None

    def __post_init__(self) -> None:
        z = _validated_heights(self.z)
        resolution_m = float(self.resolution_m)
        if not (math.isfinite(resolution_m) and resolution_m > 0.0):
            raise TerrainError(f"resolution must be a positive number, got {self.resolution_m} m")
        set_field = object.__setattr__  # the dataclass is frozen
        set_field(self, "z", z)
        set_field(self, "resolution_m", resolution_m)
        set_field(self, "origin_m", _finite("origin_m", self.origin_m, 2))
        set_field(self, "datum", _finite("datum", self.datum, 3))
        set_field(self, "layers", {k: _layer(k, v, z.shape) for k, v in self.layers.items()})
        for label in ("start_m", "goal_m"):
            point = getattr(self, label)
            if point is not None:
                x, y = _finite(label, point, 2)
                if not self.contains(x, y):
                    raise TerrainError(f"{label} ({x:g}, {y:g}) is outside the map {self.extent_m}")
                set_field(self, label, (x, y))

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, so that arrays are read-only in another process as well.
        return type(self), tuple(getattr(self, f.name) for f in fields(self))

    @property
    def shape(self) -> tuple[int, int]:
        """(ny, nx), cells."""
        ny, nx = self.z.shape
        return ny, nx

    @property
    def extent_m(self) -> tuple[float, float, float, float]:
        """(x_min, x_max, y_min, y_max) [m], half a cell beyond the outer centres, maxima out."""
        (ny, nx), (ox, oy), res = self.shape, self.origin_m, self.resolution_m
        half, x_max, y_max = 0.5 * res, ox + (nx - 1) * res, oy + (ny - 1) * res
        return (ox - half, x_max + half, oy - half, y_max + half)

    @cached_property
    def sha256(self) -> str:
        """Hex digest of what a rover can drive on: heights, shape, resolution, origin and datum."""
        frame = struct.pack("<2q6d", *self.shape, self.resolution_m, *self.origin_m, *self.datum)
        digest = hashlib.sha256(frame)
        digest.update(self.z.astype("<f4", copy=False).tobytes())
        return digest.hexdigest()

    @overload
    def contains(self, x: float, y: float) -> bool: ...
    @overload
    def contains(self, x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.bool_]: ...
    def contains(self, x: Any, y: Any) -> Any:
        """Whether points (x, y) [m] lie on the map: bool, or a bool array of the common shape.

        Follows the rule of ``cell``. NaN and infinity are off the map.
        """
        ix, iy = (np.floor(at + 0.5) for at in self._fractional(x, y))
        ny, nx = self.shape
        inside = (ix >= 0) & (ix < nx) & (iy >= 0) & (iy < ny)
        return inside if inside.ndim else bool(inside)

    def cell(self, x: float, y: float) -> tuple[int, int]:
        """(iy, ix) of the cell that owns point (x, y) [m]. Raises TerrainError: off the map."""
        if not self.contains(x, y):
            raise TerrainError(f"point ({x:g}, {y:g}) is outside the map {self.extent_m}")
        u, v = self._fractional(x, y)
        return int(np.floor(v + 0.5)), int(np.floor(u + 0.5))

    @overload
    def height(self, x: float, y: float) -> float: ...
    @overload
    def height(self, x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]: ...
    def height(self, x: Any, y: Any) -> Any:
        """Bilinear height [m] at points (x, y) [m], arrays of one shape or broadcastable.

        NaN outside the map and where a cell of non-zero weight is unknown. In the outer half cell
        the surface continues level from the outermost centres.
        """
        ny, nx = self.shape
        u, v = self._fractional(x, y)
        inside = self.contains(x, y)
        u = np.clip(np.where(inside, u, 0.0), 0.0, nx - 1.0)
        v = np.clip(np.where(inside, v, 0.0), 0.0, ny - 1.0)
        ix, iy = u.astype(np.intp), v.astype(np.intp)
        fx, fy = u - ix, v - iy
        total = np.zeros(np.broadcast(u, v).shape)
        for dy, wy in ((0, 1.0 - fy), (1, fy)):
            for dx, wx in ((0, 1.0 - fx), (1, fx)):
                weight = wy * wx
                corner = self.z[np.minimum(iy + dy, ny - 1), np.minimum(ix + dx, nx - 1)]
                total += np.where(weight > 0.0, weight * corner, 0.0)
        total = np.where(inside, total, np.nan)
        return total if total.ndim else float(total)

    def crop(self, x_min: float, x_max: float, y_min: float, y_max: float) -> Terrain:
        """The cells whose centres lie in [x_min, x_max) x [y_min, y_max) [m], in the same frame.

        Bounds are clipped to the map. A suggested start or goal that is cut away is dropped. Raises
        TerrainError: no cell, or only unknown ground, is left.
        """
        bounds = (x_min, x_max, y_min, y_max)
        if not all(map(math.isfinite, bounds)):
            raise TerrainError(f"crop bounds must be finite, got {bounds}")
        (ny, nx), (ox, oy), res = self.shape, self.origin_m, self.resolution_m
        corners = np.array([(x_min, y_min), (x_max, y_max)])
        cells = np.ceil((corners - self.origin_m) / res - _BOUND_TOLERANCE_CELLS)
        (ix0, iy0), (ix1, iy1) = np.clip(cells, 0, (nx, ny)).astype(int).tolist()
        if ix1 <= ix0 or iy1 <= iy0:
            raise TerrainError(f"crop {bounds} holds no cell of the map {self.extent_m}")
        window = np.s_[iy0:iy1, ix0:ix1]
        bare = replace(
            self,
            z=self.z[window],
            origin_m=(ox + ix0 * res, oy + iy0 * res),
            layers={k: v[window] for k, v in self.layers.items()},
            start_m=None,
            goal_m=None,
        )
        return bare.with_ends(self.start_m, self.goal_m)

    def with_ends(self, start_m: Point | None, goal_m: Point | None) -> Terrain:
        """The map with suggested start and goal (x, y) [m]; points off the map are dropped."""
        start_m, goal_m = (p if p and self.contains(*p) else None for p in (start_m, goal_m))
        return replace(self, start_m=start_m, goal_m=goal_m)

    def with_heights(self, z: ArrayLike) -> Terrain:
        """The map with other heights [m]. Raises TerrainError: of another shape, or faulty."""
        heights = as_array(z)
        if heights.shape != self.shape:
            raise TerrainError(f"heights have shape {heights.shape}, the map has {self.shape}")
        return replace(self, z=heights)

    def _fractional(self, x: ArrayLike, y: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
        """Column and row coordinates in cells, 0 at the centre of cell (0, 0); float64."""
        (ox, oy), res = self.origin_m, self.resolution_m
        u, v = (np.asarray(as_array(at), np.float64) for at in (x, y))
        return (u - ox) / res, (v - oy) / res


def _validated_heights(raw: ArrayLike) -> HeightArray:
    source = as_array(raw)
    if source.ndim != 2:
        raise TerrainError(f"heights must be a 2-D grid, got {source.ndim} dimension(s)")
    if source.size == 0:
        raise TerrainError(f"height grid is empty, shape {source.shape}")
    if source.dtype.kind not in "iuf":
        raise TerrainError(f"heights must be real numbers, got {source.dtype}")
    if np.isinf(source).any():
        raise TerrainError(f"heights hold {np.isinf(source).sum()} infinite cell(s)")
    if (np.abs(source.astype(np.float64, copy=False)) > MAX_ABS_HEIGHT_M).any():
        raise TerrainError(
            f"heights reach beyond {MAX_ABS_HEIGHT_M:g} m: fill values or wrong units"
        )
    unknown = np.isnan(source)
    if unknown.all():
        raise TerrainError("every height is unknown")
    # One bit pattern for NaN, so equal maps have equal digests.
    return frozen_copy(np.where(unknown, np.float32("nan"), source.astype(np.float32)))


def _layer(name: str, raw: ArrayLike, shape: tuple[int, ...]) -> HeightArray:
    layer = frozen_copy(np.asarray(as_array(raw), np.float32))
    if layer.shape != shape:
        raise TerrainError(f"layer {name!r} has shape {layer.shape}, the map has {shape}")
    return layer


def _finite(label: str, values: Any, n: int) -> tuple[float, ...]:
    numbers = tuple(float(v) for v in values)
    if len(numbers) != n or not all(math.isfinite(v) for v in numbers):
        raise TerrainError(f"{label} must be {n} finite numbers, got {numbers}")
    return numbers
