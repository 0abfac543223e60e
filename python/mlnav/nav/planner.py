"""The interface of planners: once a cycle, a request is answered with a motion or an outcome."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mlnav import _core
from mlnav.config import Config, numbers_of
from mlnav.core import HeightMap, reason_names
from mlnav.nav.motion import F64, Motion, Pose
from mlnav.parts import Part, Validated, find
from mlnav.risk import RiskMap

OUTCOMES = ("path", "goal_reached", "no_safe_path", "budget_exhausted", "start_unsafe")
"""Of a cycle."""


@dataclass(frozen=True, eq=False)
class PlanRequest:
    """The input of a planning cycle.

    Attributes:
        local_map: heights and forbidden cells around the rover.
        pose: estimated, in the frame of the map.
        goal: x, y [m].
        goal_tolerance_m: nearer than this the goal is reached.
        risk_source: computes the risk map, called at most once; None: no heuristic.
        ace_budget, work_budget: ACE evaluations and steps of search that the cycle may spend.
        standing_curvature_per_m: the wheels are steered for; infinite: turning in place.
    """

    local_map: HeightMap
    pose: Pose
    goal: tuple[float, float]
    goal_tolerance_m: float = 1.0
    risk_source: Callable[[], RiskMap | None] | None = None
    ace_budget: int | None = None
    work_budget: int | None = None
    standing_curvature_per_m: float = 0.0


@dataclass(frozen=True)
class Plan:
    """The result of a planner in Python; attributes as of `_core.PlanResult`.

    Only `outcome` is required, and for a path the motion. `commit_end` is computed from the motion
    if left out, and `overthink` always from the evaluations.
    """

    outcome: str
    turn_rad: float = 0.0
    curvature_per_m: float = 0.0
    length_m: float = 0.0
    commit_end: Pose = (math.nan, math.nan, math.nan)
    path: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 3)))
    path_index: int = -1
    short_path: bool = False
    path_cost: float = math.nan
    start_reasons: int = 0
    ace_evaluations: int = 0
    ace_floor: int = 0
    ace_boxes: int = 0
    ace_lookups: int = 0
    ace_ranges: int = 0
    overthink: bool = False
    paths: int = 0
    paths_finite: int = 0
    paths_tried: int = 0
    chosen_rank: int = -1
    work: int = 0
    work_exhausted: bool = False
    risk_asked: bool = False
    risk_requested: bool = False
    risk_used: bool = False
    risk_refused: bool = False
    evaluations_before_risk: int = 0
    rejects: Mapping[str, int] = field(default_factory=dict)
    stage_s: Mapping[str, float] = field(default_factory=dict)


PlanResult = _core.PlanResult | Plan


class Planner(Protocol):
    """Plans cycle by cycle, and may remember between them. One planner is one traverse."""

    def plan(self, request: PlanRequest) -> PlanResult:
        """One cycle. Every pose of a motion that is committed has passed the checker."""

    def reset(self) -> None:
        """Forget all earlier cycles."""

    def as_built(self) -> dict[str, float]:
        """Values by key of the configuration, read back from what was made of it."""


class CandidatePlanner(Planner, Protocol):
    """A planner that shows the candidates of the last cycle, for plots."""

    def path_costs(self) -> NDArray[np.float32]:
        """(paths,) cost of every candidate, +inf where it was not ranked."""

    def path_poses(self, path_index: int) -> NDArray[np.float64]:
        """(n, 3) poses of a candidate, the start first."""

    def path_verdicts(self) -> NDArray[np.uint8]:
        """(paths,) 0 not tried, 1 passed, 2 failed, 3 not ranked (infinite cost)."""

    def costmap(self) -> dict[str, Any]:
        """As `_core.costmap`, with cost_to_go and cost_with_memory_per_m beside it."""


def with_candidates(planner: Planner) -> CandidatePlanner | None:
    """The planner, if it shows its candidates."""
    shown = ("path_costs", "path_poses", "path_verdicts", "costmap")
    found: Any = planner
    return found if all(callable(getattr(planner, name, None)) for name in shown) else None


def make_planner(
    config: Config, checker: _core.Checker, max_map_cells: int, max_risk_cells: int
) -> Planner:
    """The planner that a configuration names, with room for maps of so many cells.

    Raises:
        ConfigError: the core refuses the configuration.
        PartError: it cannot be made.
    """
    part = find("planner", config.planner.name)
    made: Planner = part.make(config.planner, config, checker, max_map_cells, max_risk_cells)
    return ValidatedPlanner(made, part, config, checker) if part.outside else made


class ValidatedPlanner(Validated):
    """A planner from outside; every motion that it commits must pass the checker."""

    methods = ("plan",)

    def __init__(
        self, planner: Planner, part: Part, config: Config, checker: _core.Checker
    ) -> None:
        super().__init__(planner, part, numbers_of("planner", config.planner))
        self._config, self._checker = config, checker

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made, name)

    def reset(self) -> None:
        """As the planner does, if it remembers anything."""
        self._optional("reset")

    def plan(self, request: PlanRequest) -> PlanResult:
        """One cycle; the checker has the map already.

        Raises PartError: the answer is none, or commits to a motion that the checker rejects.
        """
        self._checker.set_map(request.local_map.grid)
        plan: Any = self._call("plan", request)
        expect = self._part.expect
        expect(isinstance(plan, PlanResult), f"plan() must give a Plan, not {type(plan).__name__}")
        expect(plan.outcome in OUTCOMES, f"outcome {plan.outcome!r} is none of {OUTCOMES}")
        if plan.outcome == "path":
            numbers = (plan.turn_rad, plan.curvature_per_m, plan.length_m)
            motion = Motion(*numbers)
            expect(all(map(math.isfinite, numbers)), f"motion {numbers} is not finite")
            expect(bool(plan.turn_rad or plan.length_m), "a path without a motion")
            self._pass_checker(motion, request)
            if not all(map(math.isfinite, plan.commit_end)):
                expect(isinstance(plan, Plan), "commit_end is not finite")
                turned, along = np.array([[plan.turn_rad], [plan.length_m]])
                end = motion.poses_at(request.pose, turned, along)[-1]
                plan = replace(plan, commit_end=tuple(end.tolist()))
        if isinstance(plan, Plan):
            limit = self._config.planner.overthink_evaluations
            plan = replace(plan, overthink=plan.ace_evaluations > limit)
        result: PlanResult = plan
        return result

    def _pass_checker(self, motion: Motion, request: PlanRequest) -> None:
        """Check a motion by checker and zones; no evaluations are counted."""
        local = request.local_map
        if local.keep_out is not None:
            cells = local.resolution_m * np.argwhere(local.keep_out)[:, ::-1] + local.origin_m
            poses, _ = motion.poses(request.pose, 0.1, math.radians(3.0))
            inside = any(self._covers(pose, cells) for pose in poses)
            self._part.expect(not inside, "commits to a motion that enters forbidden ground")
        sweeps = motion.sweeps(request.pose, request.standing_curvature_per_m)
        reasons = int(next(filter(None, self._checker.reasons(sweeps)), 0))
        rejects = f"checker {self._config.checker.name} rejects: {', '.join(reason_names(reasons))}"
        self._part.expect(not reasons, f"commits to a motion that {rejects}")

    def _covers(self, pose: F64, points: NDArray[np.floating]) -> bool:
        """Whether body or straight wheels are above one of (n, 2) points."""
        rover = self._config.rover
        dx, dy = (points - pose[:2]).T
        c, s = math.cos(pose[2]), math.sin(pose[2])
        forward, left = c * dx + s * dy, np.abs(c * dy - s * dx)
        front = max(rover.pan_front_x_m, rover.front_x_m + rover.wheel_radius_m)
        rear = min(rover.pan_rear_x_m, rover.rear_x_m - rover.wheel_radius_m)
        wheels = max(rover.front_y_m, rover.middle_y_m, rover.rear_y_m) + rover.wheel_width_m / 2
        side = max(rover.pan_half_width_m, wheels)
        return bool(((rear < forward) & (forward < front) & (left < side)).any())
