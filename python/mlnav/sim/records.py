"""Records of a traverse: one per cycle, and one result per run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np

from mlnav.core import reason_names
from mlnav.io.records import plain
from mlnav.nav import Cycle, Pose
from mlnav.sim.state import RoverState
from mlnav.sim.world import Execution, SettledStates, UnsafeState

OUTCOMES = {
    "goal_reached": "the rover is within tolerance of the goal",
    "start_unsafe": "the pose that a cycle begins at is not safe",
    "no_safe_path": "every candidate path failed",
    "stuck": "the budget ran out in several cycles in a row without a move",
    "goal_missed": "the rover was estimated to be at the goal, and was not near it",
    "unsafe_state": "the rover was beyond its limits on the way",
    "tipped_over": "the rover lay on its side or back",
    "high_centred": "the rover hung on its belly and made no way",
    "stalled": "the wheels turned or strained, and the rover made no way",
    "map_edge": "the rover came too near to the edge of the map",
    "fell_through": "the rover was below the ground: the physics failed",
    "physics_failed": "the physics gave numbers that are not finite: likewise",
    "timeout": "the limit of planning cycles was reached",
    "distance_limit": "the limit of driven distance was reached",
    "error": "the run could not begin or go on; its message says why",
    "crashed": "the process that ran it died; there are no records",
    "hung": "the process that ran it was stopped after its time; likewise",
    "out_of_memory": "the process that ran it went beyond its memory; likewise",
    "interrupted": "stopped from outside; records are complete up to here",
}

UNSAFE_OUTCOMES = ("unsafe_state", "tipped_over", "high_centred", "fell_through", "physics_failed")
"""The rover ended beyond its limits, or the physics failed, so that it was not shown safe."""


def was_unsafe(run: Mapping[str, Any]) -> bool:
    """Whether a run (`outcome`, `unsafe_states` if recorded) was ever beyond its limits."""
    return run["outcome"] in UNSAFE_OUTCOMES or bool(run.get("unsafe_states"))


MODELLED_S_PER_EVALUATION = 0.010
"""Published RAD750 figure for one ACE evaluation: 10-15 ms a pose."""


def out_of_work(asked: int, missing: int) -> str | None:
    """A warning about a heuristic that had no map in more than 5 % of the cycles that asked it."""
    warning = f"the heuristic had no map in {missing} of {asked} cycles that asked for one"
    return warning if missing > 0.05 * asked else None


@dataclass(frozen=True, eq=False)
class CycleRecord:
    """One cycle: where it began, what was planned, how the committed motion went.

    `timing_s` is wall time, different on every run; everything else is deterministic.
    """

    cycle: int
    pose: Pose
    outcome: str
    start_faults: tuple[str, ...]
    turn_rad: float
    curvature_per_m: float
    length_m: float
    ace_evaluations: int
    ace_floor: int
    overthink: bool
    paths_finite: int
    paths_tried: int
    work: int
    """Steps of search, as `work_budget` counts them."""
    ace_boxes: int
    ace_ranges: int
    """What the evaluations took inside the checker: boxes of states, bounds of wheel heights."""
    chosen_rank: int
    path_cost: float
    risk_requested: bool
    """The heuristic was asked during the search, after the cheapest path failed."""
    risk_used: bool
    """A risk map entered the costs."""
    risk_asked: bool
    """The heuristic was asked for a map, up front or during the search."""
    risk_missing: bool
    """It was asked and had no usable map: the cycle was planned as the baseline does."""
    evaluations_before_risk: int
    """ACE evaluations made before the heuristic was asked."""
    inferences: int
    """Risk maps computed in this cycle; reused ones do not count."""
    rejects: Mapping[str, int]
    end: Pose
    driven_m: float
    """Since the start of the run, at the end of this cycle."""
    settled: Mapping[str, float | None] | None
    """Settled state at the end of the motion; None without a motion."""
    tilt_max_rad: float | None
    clearance_min_m: float | None
    """Worst along the motion."""
    ending: str | None
    """The outcome, where the motion ended the run."""
    faults: tuple[str, ...]
    """Why; empty when the rover is safe and can go on."""
    unsafe: UnsafeState | None
    """First stretch beyond the limits in this motion."""
    unsafe_states: int
    """Judged states beyond the limits in this motion."""
    events: tuple[str, ...]
    """Deviations from the configuration that did not stop the run, in words."""
    timing_s: Mapping[str, float]
    estimated_pose: Pose
    """Where the cycle was planned from; `pose` is the truth."""
    estimated_z_error_m: float
    """The estimated height less the true one."""
    path: np.ndarray[Any, np.dtype[np.float64]] = field(repr=False)
    """(n, 3) poses of the chosen path, in the estimated frame; for plots, not recorded."""
    states: SettledStates = field(repr=False)
    """The rover along the motion; likewise."""

    @classmethod
    def of(
        cls,
        number: int,
        state: RoverState,
        cycle: Cycle,
        execution: Execution | None,
        driven_m: float,
        timing_s: Mapping[str, float],
    ) -> Self:
        """The record of a cycle that began at `state` after `driven_m`; None: it made no motion."""
        plan = cycle.result
        done = Execution.none(state.true_pose) if execution is None else execution
        states, unsafe = done.states, done.unsafe
        if unsafe is not None:
            unsafe = replace(unsafe, distance_m=driven_m + unsafe.distance_m)
        return cls(
            cycle=number,
            pose=state.true_pose,
            start_faults=tuple(reason_names(plan.start_reasons)),
            **{name: getattr(plan, name) for name in _OF_THE_PLAN},
            **{name: getattr(cycle, name) for name in _OF_THE_CYCLE},
            rejects={k: v for k, v in plan.rejects.items() if v},
            end=done.pose,
            driven_m=driven_m + done.driven_m,
            settled=states.state(-1) if len(states) else None,
            tilt_max_rad=_extreme(np.max, states, "tilt_rad"),
            clearance_min_m=_extreme(np.min, states, "clearance_m"),
            ending=done.ending,
            faults=done.faults,
            unsafe=unsafe,
            unsafe_states=done.unsafe_states,
            timing_s=dict(timing_s),
            estimated_pose=state.estimated_pose,
            estimated_z_error_m=state.estimated_z_error_m,
            path=np.array(plan.path, np.float64).reshape(-1, 3),
            states=states,
        )

    @property
    def track(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """(n, 3) poses driven in this cycle."""
        return self.states.poses

    def as_dict(self) -> dict[str, Any]:
        """The record for a file, wall times apart under `timing_s`."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _NOT_PLAIN}
        record: dict[str, Any] = plain({
            **values,
            "unsafe": self.unsafe and self.unsafe.as_dict(),
            "believed": (*self.estimated_pose, self.estimated_z_error_m),
            "motion": {name: getattr(self, name) for name in _MOTION},
            "judged_states": len(self.states),
        })  # fmt: skip
        return record


_MOTION = ("turn_rad", "curvature_per_m", "length_m")
_OF_THE_PLAN = (
    "outcome", *_MOTION, "ace_evaluations", "ace_floor", "overthink", "paths_finite", "paths_tried",
    "work", "ace_boxes", "ace_ranges", "chosen_rank", "path_cost", "risk_requested",
    "risk_used", "evaluations_before_risk",
)  # fmt: skip
_OF_THE_CYCLE = ("risk_asked", "risk_missing", "inferences", "events")

_NOT_PLAIN = (*_MOTION, "estimated_pose", "estimated_z_error_m", "path", "states")


def _extreme(reduce: Any, states: SettledStates, column: str) -> float | None:
    values = states.columns.get(column, np.empty(0))
    finite = values[np.isfinite(values)]
    return float(reduce(finite)) if finite.size else None


PARTS = ("planner", "checker", "limits", "heuristic", "world", "sensor", "localization")
_IDENTITY = ("outcome", "success", "terrain", "terrain_sha256", *PARTS, "seed")
_SUMMED = ("risk_requested", "risk_used", "risk_asked", "risk_missing", "inferences")


def _summed(cycles: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Sums by key."""
    total: Counter[str] = Counter()
    for numbers in cycles:
        total.update(numbers)
    return dict(total)


@dataclass(frozen=True, eq=False)
class TraverseResult:
    """A whole run. `summary()` is its JSON."""

    outcome: str
    terrain: str
    terrain_sha256: str
    planner: str
    checker: str
    limits: str
    heuristic: str
    world: str
    sensor: str
    localization: str
    seed: int
    start: Pose
    goal: tuple[float, float]
    end: Pose
    estimated_end: Pose
    """Where the rover was estimated to be at the end."""
    driven_m: float
    cycles: Sequence[CycleRecord]
    faults: tuple[str, ...]
    built: Mapping[str, float]
    """By key of the configuration: values read back from what was built of it."""
    wall_s: float

    @property
    def success(self) -> bool:
        """The goal was reached, with no unsafe state on the way."""
        return self.outcome == "goal_reached" and self.unsafe is None

    @property
    def unsafe(self) -> UnsafeState | None:
        """Where the rover was first beyond its limits; None: nowhere."""
        return next((c.unsafe for c in self.cycles if c.unsafe is not None), None)

    @property
    def unsafe_states(self) -> int:
        """Judged states beyond the limits."""
        return sum(c.unsafe_states for c in self.cycles)

    @property
    def judged_states(self) -> int:
        """States along the driven way that the world held against the limits."""
        return sum(len(c.states) for c in self.cycles)

    @property
    def straight_line_m(self) -> float:
        """From start to goal."""
        return float(np.hypot(self.goal[0] - self.start[0], self.goal[1] - self.start[1]))

    @property
    def inefficiency(self) -> float | None:
        """Driven length / straight-line length - 1; of successful runs only."""
        if not self.success or self.straight_line_m == 0.0:
            return None
        return self.driven_m / self.straight_line_m - 1.0

    def summary(self, *, timing: bool = True) -> dict[str, Any]:
        """Numbers of the run. Without `timing` they are the same in every repetition."""
        evaluations = [c.ace_evaluations for c in self.cycles]
        total = sum(evaluations)
        overthinks = sum(c.overthink for c in self.cycles)
        floors = [c.ace_floor for c in self.cycles if c.outcome == "path"]
        events = [event for cycle in self.cycles for event in cycle.events]
        n = len(self.cycles)
        flight_s = total * MODELLED_S_PER_EVALUATION
        summary: dict[str, Any] = {
            **{name: getattr(self, name) for name in _IDENTITY},
            "start": list(self.start),
            "goal": list(self.goal),
            "end": list(self.end),
            "position_error_m": math.dist(self.end[:2], self.estimated_end[:2]),
            "cycles": n,
            "driven_m": self.driven_m,
            "straight_line_m": self.straight_line_m,
            "inefficiency": self.inefficiency,
            "ace_evaluations_per_cycle": {
                "mean": total / n if n else None,
                "median": float(np.median(evaluations)) if n else None,
                "p95": float(np.percentile(evaluations, 95)) if n else None,
                "max": max(evaluations, default=None),
            },
            "ace_evaluations": total,
            "ace_floor": sum(floors),
            "ace_floor_per_cycle": sum(floors) / len(floors) if floors else None,
            "overthinks": overthinks,
            "overthink_rate": overthinks / n if n else None,
            **{name: sum(getattr(c, name) for c in self.cycles) for name in _SUMMED},
            "rejects": _summed(c.rejects for c in self.cycles),
            "faults": list(self.faults),
            "unsafe_state": None if self.unsafe is None else self.unsafe.as_dict(),
            "unsafe_states": self.unsafe_states,
            "judged_states": self.judged_states,
            "events": {"count": len(events), "distinct": list(dict.fromkeys(events))},
            "built": dict(self.built),
            "modelled_flight_ace_s": flight_s,
            "modelled_flight_ace_s_per_cycle": flight_s / n if n else None,
        }
        if timing:
            stages = _summed(c.timing_s for c in self.cycles)
            summary["timing"] = {
                "wall_s": self.wall_s,
                "stage_s": stages,
                "stage_ms_per_cycle": {k: 1e3 * v / n for k, v in stages.items()},
            }
        return summary
