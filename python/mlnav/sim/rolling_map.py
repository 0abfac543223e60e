"""A map of mean heights whose window moves along by whole cells."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

F64 = NDArray[np.float64]


class RollingMap:
    """Sums and counts of points on a lattice of cells, in a window that moves by whole cells.

    Cell (iy, ix) of the lattice, any whole numbers, is centred on the anchor + resolution x (ix,
    iy) and owns the half-open square about that point. Cells that leave the window are forgotten.
    """

    def __init__(
        self, resolution_m: float, anchor_m: tuple[float, float], cells: tuple[int, int]
    ) -> None:
        """An empty map of `cells` (ny, nx), the first of them (0, 0) of the lattice."""
        self.resolution_m = resolution_m
        self._anchor_m = anchor_m
        self._first = (0, 0)
        self._sums: F64 = np.zeros(cells)
        self._counts: F64 = np.zeros(cells)

    @property
    def origin_m(self) -> tuple[float, float]:
        """x, y of the centre of the window's first cell."""
        (x, y), (iy, ix), res = self._anchor_m, self._first, self.resolution_m
        return x + ix * res, y + iy * res

    def cell(self, x: float, y: float) -> tuple[int, int]:
        """(iy, ix) on the lattice of the cell that owns a point [m]."""
        ix, iy = (
            int(np.floor((at - anchor) / self.resolution_m + 0.5))
            for at, anchor in zip((x, y), self._anchor_m, strict=True)
        )
        return iy, ix

    def move(self, first: tuple[int, int]) -> None:
        """Put the window's first cell at (iy, ix) of the lattice."""
        shift = [old - new for new, old in zip(first, self._first, strict=True)]
        if any(shift):
            self._sums = ndimage.shift(self._sums, shift, order=0)
            self._counts = ndimage.shift(self._counts, shift, order=0)
        self._first = first

    def add(self, x: F64, y: F64, z: F64) -> None:
        """Add finite points, (n,) each [m]; those beyond the window are ignored."""
        ny, nx = self._sums.shape
        ix = self._window_index(x, 1)
        iy = self._window_index(y, 0)
        inside = (ix >= 0) & (ix < nx) & (iy >= 0) & (iy < ny)
        cells = (iy * nx + ix)[inside].astype(np.intp)
        shape, size = (ny, nx), ny * nx
        self._counts += np.bincount(cells, minlength=size).reshape(shape)
        self._sums += np.bincount(cells, weights=z[inside], minlength=size).reshape(shape)

    def heights(self) -> NDArray[np.float32]:
        """Mean height of the points of each cell [m], (ny, nx); NaN where there are none."""
        mean = np.full(self._sums.shape, np.nan)
        np.divide(self._sums, self._counts, out=mean, where=self._counts > 0)
        return mean.astype(np.float32)

    def _window_index(self, at: F64, axis: int) -> F64:
        """Whole cells from the window's first, as floats; axis 0 is y, as in arrays."""
        cells = np.floor((at - self._anchor_m[1 - axis]) / self.resolution_m + 0.5)
        cells -= self._first[axis]
        return cells
