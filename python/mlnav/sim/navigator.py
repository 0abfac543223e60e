"""One planning cycle as a rover runs it: sense, predict risk, plan."""

from __future__ import annotations

import time
from dataclasses import dataclass

from mlnav import _core
from mlnav.config import Config
from mlnav.core import HeightMap
from mlnav.risk import Heuristic, RiskMap, make_heuristic
from mlnav.sim.sensor import Sensor, TruthSensor, zone_mask
from mlnav.sim.world import Pose
from mlnav.terrain import Terrain


@dataclass(frozen=True, eq=False)
class Cycle:
    """What one cycle saw and decided.

    Attributes:
        local_map: what the sensor gave.
        risk: what the heuristic made of it.
        result: the planner's answer.
        timing_s: wall time by stage, the planner's own stages included.
    """

    local_map: HeightMap
    risk: RiskMap | None
    result: _core.PlanResult
    timing_s: dict[str, float]


class Navigator:
    """Sensor, heuristic, checker and planner of a configuration, on one terrain.

    Holds the planner's memory between cycles; one navigator is one traverse.
    """

    def __init__(self, terrain: Terrain, config: Config) -> None:
        self._config = config
        self.sensor: Sensor = TruthSensor(
            terrain,
            config.sensing.window_half_width_m,
            align_cells=config.planner.costmap.coarsening,
            keep_out=zone_mask(terrain, config.keep_out, config.keep_in),
        )
        self.heuristic: Heuristic = make_heuristic(config.heuristic)
        map_cells = self.sensor.max_cells
        risk_cells = self.heuristic.max_cells(map_cells)
        self.checker = config.build_checker(map_cells)
        self.planner = _core.EnavPlanner(
            config.planner.to_core(
                config.heuristic, map_cells, risk_cells, config.checker.pose_step_m
            ),
            self.checker,
        )

    def cycle(self, pose: Pose, goal: tuple[float, float], steered_per_m: float = 0.0) -> Cycle:
        """Sense at a pose and plan from it towards the goal.

        The wheels stand steered for an arc of curvature `steered_per_m`; infinite: for turning in
        place.

        Raises:
            CoreError: the planner refuses the map, pose or goal.
            TerrainError: the pose is off the map.
        """
        begin = time.perf_counter()
        local_map = self.sensor.sense(pose)
        grid = local_map.grid
        sensed = time.perf_counter()
        risk = self.heuristic.risk(local_map)
        predicted = time.perf_counter()
        budget = self._config.traverse.ace_budget
        result = self.planner.plan(
            grid,
            pose,
            goal,
            goal_tolerance_m=self._config.traverse.goal_tolerance_m,
            risk=None if risk is None else risk.p,
            risk_resolution_m=0.0 if risk is None else risk.resolution_m,
            risk_origin_m=(0.0, 0.0) if risk is None else risk.origin_m,
            keep_out=local_map.keep_out,
            ace_budget=-1 if budget is None else budget,
            standing_curvature_per_m=steered_per_m,
        )
        timing = {
            "sense": sensed - begin,
            "heuristic": predicted - sensed,
            "plan": time.perf_counter() - predicted,
        }
        timing |= {f"plan.{stage}": seconds for stage, seconds in result.stage_s.items()}
        return Cycle(local_map, risk, result, timing)
