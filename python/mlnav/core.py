"""Array-likes for the compiled core, which takes C-contiguous arrays of one exact type only.

The caller's array is never changed; what would lose its meaning is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mlnav import _core
from mlnav._core import CoreError
from mlnav.parts import Part, Validated

if TYPE_CHECKING:
    from mlnav.terrain import Terrain

__all__ = [
    "WHEELS", "ArrayError", "CoreError", "HeightMap", "as_array", "as_float32",
    "as_mask", "checker_of_part", "frozen_copy", "reason_names",
]  # fmt: skip

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]


WHEELS = ("front_left", "middle_left", "rear_left", "front_right", "middle_right", "rear_right")
"""In the core's order."""


class ArrayError(ValueError):
    """An array cannot be used: wrong rank, shape or type. The message names it and the fault."""


def as_array(values: Any, masked: Any = np.nan) -> NDArray[Any]:
    """`values` as a plain array; entries hidden by a mask become `masked`, integers then floats.

    Copies only masked arrays. Raises ValueError: nested lists of different lengths.
    """
    if isinstance(values, list | tuple) and any(map(np.ma.isMaskedArray, values)):
        values = np.ma.array(values)
    if not np.ma.isMaskedArray(values):
        return np.asarray(values)
    if values.dtype.kind in "iu" and isinstance(masked, float):
        values = values.astype(np.result_type(values.dtype, np.float32))
    return np.asarray(values.filled(masked) if values.dtype.kind in "iufb" else values.data)


def as_float32(name: str, values: ArrayLike, ndim: int) -> F32:
    """`values` as a C-contiguous native float32 array of `ndim` dimensions, copied if need be.

    Masked entries become NaN, values beyond float32 infinite. Raises ArrayError: another rank or
    type.
    """
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(_real(name, values, ndim), dtype=np.float32)


def frozen_copy(array: NDArray[Any]) -> NDArray[Any]:
    """A copy of an array that cannot be written to."""
    copy = array.copy()
    copy.setflags(write=False)
    return copy


def as_mask(name: str, mask: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """`mask` (bool or numbers, nonzero = set) as C-contiguous uint8 of exactly `shape`.

    Masked entries and NaN are set: whether ground is forbidden is not known there, and a rover
    keeps off what may be forbidden. Raises ArrayError: another shape or no number type.
    """
    array = as_array(mask, masked=True)
    if array.dtype.kind not in "biuf":
        raise ArrayError(f"{name} must be bool or numbers, got {array.dtype}")
    if array.shape != shape:
        raise ArrayError(f"{name} has shape {array.shape}, the map has {shape}")
    return np.ascontiguousarray(array != 0, dtype=np.uint8)


def _real(name: str, values: ArrayLike, ndim: int) -> NDArray[Any]:
    try:
        array = as_array(values)
    except ValueError as fault:  # ragged nested lists
        raise ArrayError(f"{name} is not a rectangular array: {fault}") from fault
    if array.dtype.kind not in "iuf":
        raise ArrayError(f"{name} must hold real numbers, got dtype {array.dtype}")
    if array.ndim != ndim:
        raise ArrayError(f"{name} must have {ndim} dimension(s), got shape {array.shape}")
    return array


@dataclass(frozen=True, eq=False)
class HeightMap:
    """A heightmap with its frame, as planners and heuristics see it. Arrays are read-only copies.

    Attributes:
        z: heights [m], (ny, nx) float32, NaN unknown.
        resolution_m: edge of a square cell.
        origin_m: x, y of the centre of cell (0, 0), world frame.
        keep_out: (ny, nx) uint8, nonzero is forbidden ground; or None.
        guessed: `z` with guesses in unknown cells, for costs and heuristics, never for a checker;
            or None.
        height_error_m: (ny, nx) float32, no known height is off by more; a number goes for all
            cells. None: the heights are exact. `verified` proves for all ground within it.
    """

    z: F32
    resolution_m: float
    origin_m: tuple[float, float]
    keep_out: NDArray[np.uint8] | None = None
    guessed: F32 | None = None
    height_error_m: F32 | float | None = None

    def __post_init__(self) -> None:
        z = frozen_copy(as_float32("z", self.z, 2))
        object.__setattr__(self, "z", z)
        if self.keep_out is not None:
            mask = as_mask("keep_out", self.keep_out, z.shape)
            object.__setattr__(self, "keep_out", frozen_copy(mask))
        if self.guessed is not None:
            guessed = frozen_copy(as_float32("guessed", self.guessed, 2))
            known = ~np.isnan(z)
            if guessed.shape != z.shape or not np.array_equal(guessed[known], z[known]):
                raise ArrayError("guessed must be z, with other heights in unknown cells only")
            object.__setattr__(self, "guessed", guessed)
        if self.height_error_m is not None:
            error = np.asarray(self.height_error_m, np.float32)
            if error.ndim and error.shape != z.shape:
                raise ArrayError(f"height_error_m has shape {error.shape}, the map has {z.shape}")
            error = frozen_copy(np.broadcast_to(error, z.shape))
            object.__setattr__(self, "height_error_m", error)

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor: read-only in another process too, with a grid of its own.
        return type(self), tuple(getattr(self, f.name) for f in fields(self))

    @classmethod
    def of(cls, terrain: Terrain, keep_out: NDArray[np.uint8] | None = None) -> HeightMap:
        """The whole of a terrain."""
        return cls(terrain.z, terrain.resolution_m, terrain.origin_m, keep_out)

    @cached_property
    def for_costs(self) -> HeightMap:
        """The map that costs and heuristics are made from: guesses count as known."""
        if self.guessed is None:
            return self
        return HeightMap(self.guessed, self.resolution_m, self.origin_m, self.keep_out)

    @property
    def shape(self) -> tuple[int, int]:
        """(ny, nx), cells."""
        ny, nx = self.z.shape
        return ny, nx

    @property
    def extent_m(self) -> tuple[float, float, float, float]:
        """(x_min, x_max, y_min, y_max) [m], half a cell beyond the outer centres."""
        (ny, nx), (x, y), res = self.shape, self.origin_m, self.resolution_m
        return (x - res / 2, x + (nx - 0.5) * res, y - res / 2, y + (ny - 0.5) * res)

    def part(self, rows: slice, columns: slice) -> HeightMap:
        """The cells of some rows and columns, without guesses."""
        (x, y), res = self.origin_m, self.resolution_m
        return HeightMap(
            self.z[rows, columns],
            res,
            (x + columns.start * res, y + rows.start * res),
            None if self.keep_out is None else self.keep_out[rows, columns],
            height_error_m=None
            if self.height_error_m is None
            else np.asarray(self.height_error_m)[rows, columns],
        )

    @cached_property
    def grid(self) -> _core.Grid:
        """The core's view of this map.

        Raises CoreError: the map is empty, all unknown, infinite, or its frame unusable.
        """
        x, y = map(float, self.origin_m)
        error = None if self.height_error_m is None else np.asarray(self.height_error_m)
        return _core.Grid(self.z, float(self.resolution_m), x, y, error)


def reason_names(reasons: int) -> list[str]:
    """Names of the set bits of a checker's reasons, in order of the bits."""
    return [name for bit, name in enumerate(_core.REASONS) if reasons >> bit & 1]


class _ValidatedChecker(Validated):
    """A checker from outside; the first poses are checked twice."""

    methods = ("set_map", "reasons")

    def __init__(self, checker: Any, part: Part, settings: Mapping[str, float]) -> None:
        super().__init__(checker, part)
        self._asked = False
        self.settings = getattr(checker, "settings", settings)
        if hasattr(checker, "report"):
            self.report = checker.report

    def set_map(self, grid: _core.Grid) -> None:
        self._call("set_map", grid)

    def reasons(self, poses: F64) -> NDArray[np.integer]:
        found = np.asarray(self._call("reasons", poses))
        again = found if self._asked else np.asarray(self._call("reasons", poses))
        self._asked = True
        expect, got = self._part.expect, f"got {found.dtype} of shape {found.shape}"
        one_a_pose = found.shape == (len(poses),) and found.dtype.kind in "iu"
        expect(one_a_pose, f"reasons() must give {len(poses)} whole numbers, one a pose; {got}")
        bits = bool(((found >= 0) & (found < 1 << len(_core.REASONS))).all())
        expect(bits, "reasons() must give bits of _core.REASONS, 0 for a safe pose")
        expect(np.array_equal(found, again), "reasons() gives two answers about the same poses")
        return found


def checker_of_part(
    part: Part, settings: Mapping[str, float], make: Callable[[], Any], model: _core.RoverModel
) -> _core.Checker:
    """The checker that a part makes; the core makes one in Python anew for each planner and map.

    Raises PartError: what it makes is no checker.
    """
    made = make()
    if isinstance(made, _core.Checker):
        return made
    _ValidatedChecker(made, part, settings)
    return _core.Checker.of_python(
        lambda: _ValidatedChecker(make(), part, settings), model, part.name
    )
