"""The core's ENav-like planner behind the `Planner` interface."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlnav import _core
from mlnav.config import Config, Enav, numbers_of_struct
from mlnav.nav.planner import PlanRequest
from mlnav.risk import RiskMap


class EnavPlanner:
    """The core's planner; it shows its candidates."""

    def __init__(
        self,
        settings: Enav,
        config: Config,
        checker: _core.Checker,
        max_map_cells: int,
        max_risk_cells: int,
    ) -> None:
        core = _core.EnavPlanner(config.to_core_planner(max_map_cells, max_risk_cells), checker)
        self._core = core
        self.reset = core.reset
        self.path_costs = core.path_costs
        self.path_poses = core.path_poses
        self.path_verdicts = core.path_verdicts
        self.costmap: Callable[[], dict[str, Any]] = core.costmap

    def plan(self, request: PlanRequest) -> _core.PlanResult:
        """One cycle. Raises CoreError: the map, pose or goal is refused."""
        local_map, source = request.local_map, request.risk_source
        for_costs = local_map.for_costs
        return self._core.plan(
            local_map.grid,
            request.pose,
            request.goal,
            goal_tolerance_m=request.goal_tolerance_m,
            keep_out=local_map.keep_out,
            ace_budget=-1 if request.ace_budget is None else request.ace_budget,
            work_budget=-1 if request.work_budget is None else request.work_budget,
            standing_curvature_per_m=request.standing_curvature_per_m,
            risk_source=None if source is None else lambda: _for_core(source()),
            cost_grid=None if for_costs is local_map else for_costs.grid,
        )

    def as_built(self) -> dict[str, float]:
        """Settings of the planner, and how it asks for risk and prices it."""
        config = self._core.config
        in_core = numbers_of_struct("heuristic", config.risk)
        in_core |= numbers_of_struct("heuristic", config.risk_policy)
        return in_core | {
            key: value
            for key, value in numbers_of_struct("planner", config).items()
            if not key.startswith(("planner.risk.", "planner.risk_policy.", "planner.max_"))
        }


def _for_core(risk: RiskMap | None) -> tuple[Any, float, tuple[float, float]] | None:
    return None if risk is None else (risk.p, risk.resolution_m, risk.origin_m)
