"""The oracle: exact ACE as a risk map, an upper bound on what a heuristic can gain."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from mlnav import _core
from mlnav.config import Config, FixedBox, Oracle, Probabilistic
from mlnav.core import HeightMap
from mlnav.risk.base import Pose, RiskMap, SteadyHeuristic

SAMPLED_RESOLUTION_M = 0.2
"""Of checkers that judge pose by pose."""

F32 = NDArray[np.float32]
Cell = tuple[int, int]


class OracleRisk(SteadyHeuristic):
    """The verdicts of a checker of its own: `fixed_box` gives those of all cells of a map at once.

    Others are asked pose by pose on a grid fixed in the world, until the ground changes.
    """

    name = "oracle"

    def __init__(self, settings: Oracle, config: Config) -> None:
        self._settings = settings
        self._config = config
        self._dense = isinstance(config.checker, FixedBox) and settings.resolution_m is None
        self._resolution_m = settings.resolution_m or SAMPLED_RESOLUTION_M
        self._checker: _core.Checker | None = None
        self._room = 0
        self._seen: HeightMap | None = None
        self._verdicts: dict[Cell, F32] = {}

    def risk(self, local_map: HeightMap, pose: Pose) -> RiskMap | None:
        """Verdicts within reach of the pose, a square; cells of the map, or of the fixed grid."""
        if not np.isfinite(local_map.z).any():
            return None
        risk = (self._by_map if self._dense else self._by_pose)(local_map, pose)
        self.inferences += risk is not None
        return risk

    def max_cells(self, map_cells: int) -> int:
        """Those within reach, at most."""
        bins = self._settings.bins
        if self._dense:
            return bins * map_cells
        return bins * (math.floor(2.0 * self._settings.reach_m / self._resolution_m) + 1) ** 2

    def _by_map(self, local_map: HeightMap, pose: Pose) -> RiskMap | None:
        wide = _about(local_map, pose, self._settings.reach_m + self._footprint_m(local_map))
        inner = _about(local_map, pose, self._settings.reach_m)
        part, within = local_map.part(*wide), local_map.part(*inner)
        if not np.isfinite(part.z).any():
            return None
        reasons = self._checker_for(part).ace_map(self._settings.bins)
        rows, columns = (
            slice(i.start - w.start, i.stop - w.start) for i, w in zip(inner, wide, strict=True)
        )
        p = (reasons[:, rows, columns] != 0).astype(np.float32)
        return RiskMap(p, within.resolution_m, within.origin_m)

    def _by_pose(self, local_map: HeightMap, pose: Pose) -> RiskMap:
        if self._seen is not None and not _agree(self._seen, local_map):
            self._verdicts.clear()
        self._seen = local_map
        res, reach = self._resolution_m, self._settings.reach_m
        columns, rows = (
            range(math.ceil((at - reach) / res), math.floor((at + reach) / res) + 1)
            for at in pose[:2]
        )
        cells = list(itertools.product(rows, columns))
        # Where the footprint crosses the map's border, a verdict holds for this map alone.
        x_min, x_max, y_min, y_max = local_map.extent_m
        margin = self._footprint_m(local_map)
        whole_y = [y_min + margin <= row * res <= y_max - margin for row in rows]
        whole_x = [x_min + margin <= column * res <= x_max - margin for column in columns]
        lasting = dict(zip(cells, (a and b for a in whole_y for b in whole_x), strict=True))
        verdicts = {c: self._verdicts[c] for c in cells if lasting[c] and c in self._verdicts}
        verdicts |= self._judged([c for c in cells if c not in verdicts], local_map)
        self._verdicts.update((c, v) for c, v in verdicts.items() if lasting[c])
        p = np.array([verdicts[c] for c in cells], np.float32)
        p = p.reshape(len(rows), len(columns), -1).transpose(2, 0, 1)
        return RiskMap(p, res, (columns.start * res, rows.start * res))

    def _judged(self, cells: list[Cell], local_map: HeightMap) -> dict[Cell, F32]:
        """The checker's verdicts at every heading of cells, (row, column), of the fixed grid."""
        if not cells:
            return {}
        bins = self._settings.bins
        poses = np.empty((len(cells), bins, 3))
        poses[:, :, 1::-1] = self._resolution_m * np.array(cells, np.float64)[:, np.newaxis]
        poses[:, :, 2] = 2.0 * math.pi / bins * np.arange(bins)
        reasons = self._checker_for(local_map).reasons(poses.reshape(-1, 3)).reshape(-1, bins)
        return dict(zip(cells, (reasons != 0).astype(np.float32), strict=True))

    def _checker_for(self, local_map: HeightMap) -> _core.Checker:
        """The checker with this map; a new one where the map is larger than those before."""
        if self._checker is None or local_map.z.size > self._room:
            self._room = local_map.z.size
            self._checker = self._config.build_checker(self._room)
        self._checker.set_map(local_map.grid)
        return self._checker

    def _footprint_m(self, local_map: HeightMap) -> float:
        """How far from a pose a checker looks: wheels, their boxes, and some cells for rounding."""
        rover, checker = self._config.rover, self._config.checker
        ends = (rover.front_x_m, rover.rear_x_m, rover.pan_front_x_m, rover.pan_rear_x_m)
        sides = (rover.front_y_m, rover.middle_y_m, rover.rear_y_m, rover.pan_half_width_m)
        around = [rover.wheel_radius_m]
        if isinstance(checker, FixedBox | Probabilistic):
            around += [checker.half_length_m, checker.half_width_m]
        length, width = max(map(abs, ends)) + max(around), max(sides) + max(around)
        return math.hypot(length, width) + 4.0 * local_map.resolution_m


def _about(local_map: HeightMap, pose: Pose, reach_m: float) -> tuple[slice, slice]:
    """Rows and columns whose centres are within reach of the pose's cell."""
    res, (x, y) = local_map.resolution_m, local_map.origin_m
    n = math.floor(reach_m / res)
    ny, nx = local_map.shape
    iy, ix = round((pose[1] - y) / res), round((pose[0] - x) / res)
    return slice(max(iy - n, 0), min(iy + n + 1, ny)), slice(max(ix - n, 0), min(ix + n + 1, nx))


def _agree(a: HeightMap, b: HeightMap) -> bool:
    """Whether two maps have the same cells, and the same heights where both have any."""
    res = a.resolution_m
    shift = [(q - p) / res for p, q in zip(a.origin_m, b.origin_m, strict=True)]
    whole = [round(s) for s in shift]
    if b.resolution_m != res or max(abs(s - w) for s, w in zip(shift, whole, strict=True)) > 1e-6:
        return False
    (ay, ax), (by, bx), (dx, dy) = a.shape, b.shape, whole
    if not (-by < dy < ay and -bx < dx < ax):
        return True
    mine = a.z[max(0, dy) : dy + by, max(0, dx) : dx + bx]
    theirs = b.z[max(0, -dy) :, max(0, -dx) :][: mine.shape[0], : mine.shape[1]]
    return np.array_equal(mine, theirs, equal_nan=True)
