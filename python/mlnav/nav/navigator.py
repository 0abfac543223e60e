"""One planning cycle of a rover: predict risk, up front or during the search, and plan."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from mlnav.config import Config, numbers_of, numbers_of_struct
from mlnav.core import HeightMap
from mlnav.nav.cells import coarse_cells
from mlnav.nav.motion import Pose
from mlnav.nav.planner import Planner, PlanRequest, PlanResult, make_planner
from mlnav.nav.zones import zone_mask
from mlnav.risk import Heuristic, RiskMap, held_to_contract, make_heuristic


class MapError(ValueError):
    """A local map cannot be planned on; the message says why."""


@dataclass(frozen=True, eq=False)
class Cycle:
    """Input and result of one cycle.

    Attributes:
        pose: estimated, that was planned from.
        local_map: that was planned on, with zones as forbidden cells.
        risk: the map that the planner used, if any.
        result: the planner's.
        timing_s: wall time by stage; `plan` does not contain `heuristic`.
        inferences: 1 where a risk map was computed, else 0.
        events: of the heuristic, in words.
        risk_asked, risk_missing: the heuristic was asked for a map; it had no usable one.
    """

    pose: Pose
    local_map: HeightMap
    risk: RiskMap | None
    result: PlanResult
    timing_s: dict[str, float]
    inferences: int
    events: tuple[str, ...]
    risk_asked: bool
    risk_missing: bool


class Navigator:
    """Heuristic, checker and planner of a configuration, fed with local maps.

    Holds the planner's memory between cycles; one navigator is one traverse. Maps may come from a
    rover's stereo, a file, or a simulation (`mlnav.sim`)::

        navigator = Navigator(Config(), max_map_cells=320 * 320)
        cycle = navigator.cycle(HeightMap(z, 0.1, (0.0, 0.0)), (8.0, 8.0, 0.0), (14.0, 8.0))
        cycle.result.outcome, cycle.result.turn_rad, cycle.result.curvature_per_m

    Raises:
        ConfigError: the core refuses the configuration.
        ModelError: the network's model is there and cannot be used.
        PartError: a part cannot be made.
    """

    def __init__(self, config: Config, max_map_cells: int) -> None:
        """A navigator with room for local maps of so many cells."""
        self._config = config
        self.heuristic: Heuristic = make_heuristic(config)
        risk_cells = self.heuristic.max_cells(max_map_cells)
        self.checker = config.build_checker(max_map_cells)
        self.planner: Planner = make_planner(config, self.checker, max_map_cells, risk_cells)
        # A heuristic that never has a map is not asked: the run is exactly the baseline's.
        self._may_ask = risk_cells > 0

    def as_built(self) -> dict[str, float]:
        """Values by key of the configuration, read back; the prices of risk from the planner."""
        model, planned = self.checker.model, self.planner.as_built()
        mine = numbers_of("heuristic", self._config.heuristic)
        return {
            **numbers_of_struct("rover", model.geometry),
            **numbers_of_struct("tracking", model.tracking),
            **numbers_of_struct("limits", model.limits),
            **{f"checker.{name}": value for name, value in self.checker.settings.items()},
            **mine,
            **{k: v for k, v in planned.items() if k.startswith("planner.") or k in mine},
        }

    def cycle(
        self, local_map: HeightMap, pose: Pose, goal: tuple[float, float], steered_per_m: float = 0
    ) -> Cycle:
        """Plan from an estimated pose towards the goal, in the frame of the local map.

        A map without forbidden cells gets those of the configuration's zones. The wheels are
        steered for an arc of curvature `steered_per_m`; infinite: for turning in place.

        Raises:
            MapError: cells are too coarse to drive on.
            CoreError: the planner refuses the map, pose or goal.
            PartError: a part from outside breaks its contract.
        """
        config = self._config
        fault = coarse_cells("the local map", local_map.resolution_m, config)
        if fault is not None:
            raise MapError(fault)
        begin = time.perf_counter()
        if local_map.keep_out is None and (config.keep_out or config.keep_in):
            zones = zone_mask(local_map, config.keep_out, config.keep_in)
            local_map = replace(local_map, keep_out=zones)
        heuristic, inferences = self.heuristic, self.heuristic.inferences
        for_costs = local_map.for_costs
        faults: list[str] = []
        risk: RiskMap | None = None
        predicting_s = 0.0
        asked = False

        def predict() -> RiskMap | None:
            nonlocal risk, predicting_s, asked
            asked, began_s = True, time.perf_counter()
            risk = heuristic.risk(for_costs, pose)
            if risk is not None:
                risk, fault = held_to_contract(risk)
                if fault is not None:
                    faults.append(f"heuristic: {fault}")
            predicting_s += time.perf_counter() - began_s
            return risk

        limits, source = config.traverse, predict if self._may_ask else None
        budgets = limits.ace_budget, limits.work_budget
        result = self.planner.plan(
            PlanRequest(
                local_map, pose, goal, limits.goal_tolerance_m, source, *budgets, steered_per_m
            )
        )
        # A heuristic that can never have a map counts as asked without success.
        asked = asked or (heuristic.name != "none" and not self._may_ask)
        timing = {
            "heuristic": predicting_s,
            "plan": time.perf_counter() - begin - predicting_s,
            **{f"plan.{s}": t for s, t in result.stage_s.items() if s != "heuristic"},
        }
        events = heuristic.take_events() + tuple(faults)
        if risk is not None and result.risk_refused:
            events += ("heuristic: the planner refused the risk map; planned as the baseline does",)
        return Cycle(
            pose,
            local_map,
            risk if result.risk_used else None,
            result,
            timing,
            heuristic.inferences - inferences,
            events,
            asked,
            asked and (risk is None or result.risk_refused),
        )
