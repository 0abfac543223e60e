"""The checker's verdicts at every cell of a map."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlnav import _core
from mlnav.config import Config
from mlnav.core import HeightMap
from mlnav.sim.cells import check_cells
from mlnav.terrain import Terrain

_UNDECIDED = ("unknown", "border")


@dataclass(frozen=True, eq=False)
class Standing:
    """Verdicts over all cells and heading bins of a terrain.

    Attributes:
        share: (ny, nx) float32 share of headings that pass; NaN where all are undecided (unknown
            ground or the map's border).
        rejects: share of the decided poses that fail, by reason.
        poses: number of poses evaluated.
    """

    share: NDArray[np.float32]
    rejects: dict[str, float]
    poses: int


def standing(
    terrain: Terrain,
    config: Config,
    bins: int = 16,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Standing:
    """Check every cell centre at `bins` headings.

    Raises:
        ConfigError, CoreError: the configuration or map is refused.
        TerrainError: cells are too coarse.
    """
    check_cells(terrain, config)
    heights = HeightMap.of(terrain)
    ny, nx = heights.shape
    checker = config.build_checker(ny * nx)
    checker.set_map(heights.grid)
    undecided_bits = sum(1 << i for i, name in enumerate(_core.REASONS) if name in _UNDECIDED)

    passed = np.zeros((ny, nx), np.int32)
    decided = np.zeros((ny, nx), np.int32)
    counts = np.zeros(len(_core.REASONS), np.int64)
    for block, reasons in _slabs(config, checker, heights, bins):
        known = (reasons & undecided_bits) == 0
        passed[block] += (reasons == 0).sum(axis=0, dtype=np.int32)
        decided[block] += known.sum(axis=0, dtype=np.int32)
        counts += [np.count_nonzero(known & (reasons >> bit & 1 > 0)) for bit in range(len(counts))]
        progress(block.stop, ny)
    share = np.where(decided > 0, passed / np.float32(bins), np.float32("nan"))
    total = max(int(decided.sum()), 1)
    rejects = {name: float(counts[i]) / total for i, name in enumerate(_core.REASONS) if counts[i]}
    return Standing(share.astype(np.float32), rejects, ny * nx * bins)


def _slabs(
    config: Config, checker: _core.Checker, heights: HeightMap, bins: int
) -> Iterator[tuple[slice, NDArray[np.uint16]]]:
    """Reasons by block of rows, (bins, rows, nx), in order."""
    ny, nx = heights.shape
    if config.checker.name == "fixed_box":
        yield slice(0, ny), checker.ace_map(bins)
        return
    rows = max(1, 20_000 // (nx * bins))
    blocks = [slice(i, min(i + rows, ny)) for i in range(0, ny, rows)]
    # Threads, since the core computes without the interpreter's lock and checkers only read.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        slabs = pool.map(lambda block: _rows(checker, heights, block, bins), blocks)
        try:
            yield from zip(blocks, slabs, strict=True)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _rows(
    checker: _core.Checker, heights: HeightMap, block: slice, bins: int
) -> NDArray[np.uint16]:
    (_, nx), (x0, y0), res = heights.shape, heights.origin_m, heights.resolution_m
    ys = y0 + res * np.arange(block.start, block.stop)
    xs = x0 + res * np.arange(nx)
    angles = np.arange(bins) * (2.0 * math.pi / bins)
    h, y, x = np.meshgrid(angles, ys, xs, indexing="ij")
    poses = np.ascontiguousarray(np.column_stack([x.ravel(), y.ravel(), h.ravel()]))
    return checker.reasons(poses).reshape(bins, len(ys), nx)
