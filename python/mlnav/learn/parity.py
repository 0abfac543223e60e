"""Check that two risk maps give the same ranking of the planner's paths, by the planner itself.

Path costs may be nearly tied: values that agree to 1e-5 are not enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlnav import _core
from mlnav.config import Config

SAME_COST = 1e-3
"""Paths whose costs [m of flat driving] differ by less may swap ranks."""

F32 = NDArray[np.float32]


@dataclass
class Ranking:
    """Result of a comparison of rankings.

    Attributes:
        cycles: planning cycles compared.
        paths: candidates with a finite cost, in all of them.
        swapped: paths that swapped ranks with a path of clearly different cost.
        other_cheapest: cycles whose cheapest path differs.
        cost_max_abs: largest difference of a path's two costs.
    """

    cycles: int = 0
    paths: int = 0
    swapped: int = 0
    other_cheapest: int = 0
    cost_max_abs: float = 0.0

    @property
    def same(self) -> bool:
        """Whether the planner would choose the same paths."""
        return self.cycles > 0 and self.swapped == 0 and self.other_cheapest == 0


class RankingCheck:
    """Plans from poses in windows with each of two risk maps and compares all path costs.

    `ranking` is the result over all windows compared so far.
    """

    def __init__(
        self, checker: str, limits: str, cells: int, resolution_m: float, risk_cells: int
    ) -> None:
        config = Config().replaced(checker=checker, limits=limits, heuristic="network")
        self._checker = config.build_checker(cells**2)
        settings = config.to_core_planner(cells**2, risk_cells)
        self._planner = _core.EnavPlanner(settings, self._checker)
        self._cells, self._resolution_m = cells, resolution_m
        self._rng = np.random.default_rng(0)
        self.ranking = Ranking()

    def compare(self, z: F32, one: F32, other: F32) -> None:
        """Compare two risk maps (bins, side, side) of a window, from a safe pose in it."""
        grid = _core.Grid(np.ascontiguousarray(z), self._resolution_m, 0.0, 0.0)
        pose = self._safe_pose(grid)
        if pose is None:
            return
        bearing = self._rng.uniform(-math.pi, math.pi)
        goal = (pose[0] + 40.0 * math.cos(bearing), pose[1] + 40.0 * math.sin(bearing))
        a, b = (self._costs(grid, pose, goal, p) for p in (one, other))
        if not (np.isfinite(a) | np.isfinite(b)).any():
            return
        found, ranked = self.ranking, np.isfinite(a) & np.isfinite(b)
        found.cycles += 1
        found.paths += int(ranked.sum())
        found.swapped += int((np.isfinite(a) != np.isfinite(b)).sum()) + swaps(a[ranked], b[ranked])
        # Mirrored candidates on flat terrain have equal costs up to rounding.
        found.other_cheapest += int(a[np.argmin(b)] > a.min() + 1e-5)
        apart = float(np.abs(a[ranked] - b[ranked]).max(initial=0.0))
        found.cost_max_abs = max(found.cost_max_abs, apart)

    def _safe_pose(self, grid: _core.Grid) -> tuple[float, float, float] | None:
        edge = self._cells * self._resolution_m
        poses = np.column_stack(
            [*self._rng.uniform(0.3 * edge, 0.7 * edge, (2, 64)), self._rng.uniform(-3.1, 3.1, 64)]
        )
        self._checker.set_map(grid)
        safe = np.flatnonzero(self._checker.reasons(np.ascontiguousarray(poses)) == 0)
        if not safe.size:
            return None
        x, y, heading = poses[safe[0]].tolist()
        return x, y, heading

    def _costs(
        self, grid: _core.Grid, pose: tuple[float, float, float], goal: tuple[float, float], p: F32
    ) -> NDArray[np.float64]:
        ratio = self._cells // p.shape[-1]
        corner = 0.5 * self._resolution_m * (ratio - 1)
        self._planner.reset()
        self._planner.plan(
            grid,
            pose,
            goal,
            risk=np.ascontiguousarray(p),
            risk_resolution_m=self._resolution_m * ratio,
            risk_origin_m=(corner, corner),
            ace_budget=2,  # costs are computed before the first path is checked
        )
        return self._planner.path_costs().astype(np.float64)


def swaps(a: NDArray[np.float64], b: NDArray[np.float64]) -> int:
    """Number of elements less than another in `a`, by more than SAME_COST, and greater in `b`."""
    if not len(a):
        return 0
    order = np.argsort(a, kind="stable")
    a, b = a[order], b[order]
    most_before = np.maximum.accumulate(b)
    clearly_before = np.searchsorted(a, a - SAME_COST, side="left")
    some = clearly_before > 0
    return int((most_before[clearly_before[some] - 1] > b[some]).sum())
