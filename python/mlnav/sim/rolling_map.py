"""A map of mean heights whose window moves along by whole cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

F64 = NDArray[np.float64]


class RollingMap:
    """Counts of points on a lattice of cells, and sums of their values, in a moving window.

    Cell (iy, ix) of the lattice, any whole numbers, is centred on the anchor + resolution x (ix,
    iy) and owns the half-open square about that point. Cells that leave the window are forgotten.
    """

    def __init__(
        self,
        resolution_m: float,
        anchor_m: tuple[float, float],
        cells: tuple[int, int],
        values: int = 1,
    ) -> None:
        """An empty map of `cells` (ny, nx), the first of them (0, 0) of the lattice.

        Points have so many `values`, the first of them the height.
        """
        self.resolution_m = resolution_m
        self._anchor_m = anchor_m
        self._first = (0, 0)
        self.sums: F64 = np.zeros((values, *cells))
        self.counts: F64 = np.zeros(cells)

    @property
    def origin_m(self) -> tuple[float, float]:
        """x, y of the centre of the window's first cell."""
        (x, y), (iy, ix), res = self._anchor_m, self._first, self.resolution_m
        return x + ix * res, y + iy * res

    def cell(self, x: float, y: float) -> tuple[int, int]:
        """(iy, ix) on the lattice of the cell that owns a point [m]."""
        return int(self._index(y, 0)), int(self._index(x, 1))

    def move(self, first: tuple[int, int]) -> None:
        """Put the window's first cell at (iy, ix) of the lattice."""
        shift = [old - new for new, old in zip(first, self._first, strict=True)]
        if any(shift):
            self.sums = ndimage.shift(self.sums, (0, *shift), order=0)
            self.counts = ndimage.shift(self.counts, shift, order=0)
        self._first = first

    def add(self, x: F64, y: F64, *values: F64) -> None:
        """Add finite points, (n,) each; those beyond the window are ignored."""
        (ny, nx), (first_y, first_x) = self.counts.shape, self._first
        iy, ix = self._index(y, 0) - first_y, self._index(x, 1) - first_x
        inside = (ix >= 0) & (ix < nx) & (iy >= 0) & (iy < ny)
        cells = (iy * nx + ix)[inside].astype(np.intp)
        self.counts += np.bincount(cells, minlength=ny * nx).reshape(ny, nx)
        for i, value in enumerate(values):
            self.sums[i] += np.bincount(cells, value[inside], ny * nx).reshape(ny, nx)

    def heights(self) -> NDArray[np.float32]:
        """Mean height of the points of each cell [m], (ny, nx); NaN where there are none."""
        mean = np.full(self.counts.shape, np.nan)
        np.divide(self.sums[0], self.counts, out=mean, where=self.counts > 0)
        return mean.astype(np.float32)

    def _index(self, at: Any, axis: int) -> Any:
        """Of cells on the lattice, as floats; axis 0 is y, as in arrays."""
        return np.floor((at - self._anchor_m[1 - axis]) / self.resolution_m + 0.5)
