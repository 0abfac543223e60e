"""The eight symmetries of a square window and their effect on heading bins.

The rover is mirror-symmetric: labels turn and reflect with the window.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

SYMMETRIES = 8


def transform(array: NDArray[Any], symmetry: int) -> NDArray[Any]:
    """A view of `array` (..., ny, nx), square in its last two axes, under a symmetry of 0..7.

    Bit 0 swaps x and y; then bit 1 reflects x, and bit 2 reflects y. 0 changes nothing.
    """
    if symmetry & 1:
        array = np.swapaxes(array, -1, -2)
    if symmetry & 2:
        array = array[..., :, ::-1]
    if symmetry & 4:
        array = array[..., ::-1, :]
    return array


def heading_bins(bins: int, symmetry: int) -> NDArray[np.int64]:
    """(bins,): the new index of each heading bin; bin k is heading 2 pi k / bins.

    Raises ValueError: bins is not a multiple of 4, so quarter turns do not map bins to bins.
    """
    if bins % 4:
        raise ValueError(f"heading bins must be a multiple of 4, got {bins}")
    k = np.arange(bins)
    if symmetry & 1:
        k = bins // 4 - k
    if symmetry & 2:
        k = bins // 2 - k
    if symmetry & 4:
        k = -k
    return k % bins


def transform_risk(risk: NDArray[Any], symmetry: int) -> NDArray[Any]:
    """A copy of `risk` (bins, ny, nx) under a symmetry of places and headings."""
    out = np.empty_like(risk)
    out[heading_bins(len(risk), symmetry)] = transform(risk, symmetry)
    return out
