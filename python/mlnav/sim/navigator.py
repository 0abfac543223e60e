"""One planning cycle as a rover runs it: sense, plan, and predict risk before or on the way."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlnav import _core
from mlnav.config import Config, numbers_of, numbers_of_struct
from mlnav.core import HeightMap
from mlnav.risk import Heuristic, RiskMap, held_to_contract, make_heuristic
from mlnav.sim.cells import check_cells
from mlnav.sim.localization import Whereabouts
from mlnav.sim.sensor import Sensor, make_sensor
from mlnav.terrain import Terrain


@dataclass(frozen=True, eq=False)
class Cycle:
    """What one cycle saw and decided.

    Attributes:
        where: where the rover was, and was told to be.
        local_map: what the sensor gave.
        risk: the map that the planner used; None where it was not asked for, or there was none.
        result: the planner's answer.
        timing_s: wall time by stage, the planner's own stages included. `heuristic` is not part of
            `plan`, whenever it was asked.
        inferences: 1 where a risk map was computed, 0 where there was none, or an earlier one.
        events: what the heuristic has to report, in words.
        risk_asked: the heuristic was asked for a map.
        risk_missing: and there was none that could be used.
    """

    where: Whereabouts
    local_map: HeightMap
    risk: RiskMap | None
    result: _core.PlanResult
    timing_s: dict[str, float]
    inferences: int
    events: tuple[str, ...]
    risk_asked: bool
    risk_missing: bool


class Navigator:
    """Sensor, heuristic, checker and planner of a configuration, on one terrain.

    Holds the planner's memory between cycles; one navigator is one traverse.

    Raises:
        TerrainError: cells are too coarse to drive on.
        ConfigError: the core refuses the configuration.
    """

    def __init__(self, terrain: Terrain, config: Config, seed: int = 0) -> None:
        check_cells(terrain, config)
        self._config = config
        self.sensor: Sensor = make_sensor(terrain, config, seed)
        self.heuristic: Heuristic = make_heuristic(config)
        map_cells = self.sensor.max_cells
        risk_cells = self.heuristic.max_cells(map_cells)
        self.checker = config.build_checker(map_cells)
        self.planner = _core.EnavPlanner(
            config.to_core_planner(map_cells, risk_cells), self.checker
        )
        # One that never has a map is not asked: the run is the baseline's to the last evaluation.
        self._may_ask = risk_cells > 0

    def as_built(self) -> dict[str, float]:
        """Values by key of the configuration, read back from what was made of it.

        Of heuristics what the planner asks and prices their maps with comes from the planner, the
        rest from their settings.
        """
        model, planner = self.checker.model, self.planner.config
        in_core = numbers_of_struct("heuristic", planner.risk)
        in_core |= numbers_of_struct("heuristic", planner.risk_policy)
        mine = numbers_of("heuristic", self._config.heuristic)
        return {
            **numbers_of_struct("rover", model.geometry),
            **numbers_of_struct("limits", model.limits),
            **{f"checker.{name}": value for name, value in self.checker.settings.items()},
            **{
                key: value
                for key, value in numbers_of_struct("planner", planner).items()
                if not key.startswith(("planner.risk.", "planner.risk_policy.", "planner.max_"))
            },
            **mine,
            **{key: value for key, value in in_core.items() if key in mine},
            **self.sensor.as_built(),
        }

    def cycle(
        self, where: Whereabouts, goal: tuple[float, float], steered_per_m: float = 0.0
    ) -> Cycle:
        """Sense where the rover is and plan from where it is told to be towards the goal.

        The wheels stand steered for an arc of curvature `steered_per_m`; infinite: for turning in
        place.

        Raises:
            CoreError: the planner refuses the map, pose or goal.
            TerrainError: the pose is off the map.
        """
        begin = time.perf_counter()
        local_map, pose = self.sensor.sense(where), where.believed
        grid = local_map.grid
        sensed = time.perf_counter()
        heuristic, inferences = self.heuristic, self.heuristic.inferences
        for_costs = local_map.for_costs
        risk: RiskMap | None = None
        faults: list[str] = []

        def predict() -> tuple[NDArray[np.float32], float, tuple[float, float]] | None:
            nonlocal risk
            made = heuristic.risk(for_costs, pose)
            if made is None:
                return None
            risk, fault = held_to_contract(made)
            if fault is not None:
                faults.append(f"heuristic: {fault}")
            return None if risk is None else (risk.p, risk.resolution_m, risk.origin_m)

        limits = self._config.traverse
        result = self.planner.plan(
            grid,
            pose,
            goal,
            goal_tolerance_m=limits.goal_tolerance_m,
            keep_out=local_map.keep_out,
            ace_budget=-1 if limits.ace_budget is None else limits.ace_budget,
            work_budget=-1 if limits.work_budget is None else limits.work_budget,
            standing_curvature_per_m=steered_per_m,
            risk_source=predict if self._may_ask else None,
            cost_grid=None if for_costs is local_map else for_costs.grid,
        )
        stages = dict(result.stage_s)
        predicted = stages.pop("heuristic")
        timing = {
            "sense": sensed - begin,
            "heuristic": predicted,
            "plan": time.perf_counter() - sensed - predicted,
        }
        timing |= {f"plan.{stage}": seconds for stage, seconds in stages.items()}
        events = heuristic.take_events() + tuple(faults)
        if risk is not None and result.risk_refused:
            events += ("heuristic: the planner refused the risk map; planned as the baseline does",)
        # One that can never have a map counts as asked in vain.
        asked = result.risk_asked or (heuristic.name != "none" and not self._may_ask)
        return Cycle(
            where,
            local_map,
            risk if result.risk_used else None,
            result,
            timing,
            heuristic.inferences - inferences,
            events,
            asked,
            asked and (risk is None or result.risk_refused),
        )
