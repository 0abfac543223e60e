"""What is recorded of a trial: a row of the table of trials, and a row a cycle.

`TRIAL_COLUMNS` and `CYCLE_COLUMNS` are the schema of the store: a further column is one entry here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlnav import _core
from mlnav.nav import Cycle, Navigator
from mlnav.risk import RiskMap
from mlnav.sim import (
    CycleRecord,
    SimError,
    TraverseResult,
    WorldError,
    traverse,
)
from mlnav.sim.loop import Observer
from mlnav.terrain import TerrainError
from mlnav.trials.scenarios import Scenario
from mlnav.trials.trial import Trial

Row = dict[str, Any]

STAGES = ("sense", "heuristic", "plan", "drive")
"""Stages of a cycle whose wall times are kept."""

RELIABILITY_BINS = 10
"""Of predicted risk, for how often ACE in fact refused."""

CANNOT_RUN = (SimError, TerrainError, WorldError, _core.CoreError)
"""What keeps a trial from beginning or going on; the next may do."""

NO_RUN = ("crashed", "hung", "out_of_memory", "error")
"""Outcomes of trials that there is no run of."""


@dataclass(frozen=True)
class Column:
    """A column of a table: its name, Arrow's name of its type, and where its values come from."""

    name: str
    type: str
    of: Callable[[Any], Any] | None = None


def _pose(name: str, get: Callable[[Any], Any], parts: str = "x_m y_m heading_rad") -> list[Column]:
    def part(i: int) -> Callable[[Any], Any]:
        return lambda source: get(source)[i]

    return [Column(f"{name}_{p}", "double", part(i)) for i, p in enumerate(parts.split())]


def _evaluations(reduce: Callable[[Any], Any]) -> Callable[[TraverseResult], Any]:
    """Of the cycles of a run; None without cycles."""
    return lambda r: reduce([c.ace_evaluations for c in r.cycles]) if r.cycles else None


def _worst(reduce: Callable[..., Any], name: str) -> Callable[[TraverseResult], Any]:
    def of(r: TraverseResult) -> Any:
        values = [v for c in r.cycles if (v := getattr(c, name)) is not None]
        return reduce(values, default=None)

    return of


def _summed(name: str) -> Callable[[TraverseResult], Any]:
    return lambda r: sum(getattr(c, name) for c in r.cycles)


def _summary(name: str) -> Callable[[TraverseResult], Any]:
    return lambda r: r.summary(timing=False)[name]


def _stage_s(stage: str) -> Callable[[Any], Any]:
    def of(source: Any) -> Any:
        cycles = (source,) if isinstance(source, CycleRecord) else source.cycles
        times = [c.timing_s[stage] for c in cycles if stage in c.timing_s]
        return sum(times) if times else None

    return of


_STAGE_COLUMNS = [Column(f"wall_{stage}_s", "double", _stage_s(stage)) for stage in STAGES]

_WHICH = (
    Column("key", "string", lambda t: t.key),
    Column("identity", "string", lambda t: t.identity),
    Column("code", "string", lambda t: t.made_with["code"]),
    Column("model", "string", lambda t: t.made_with["model"]),
    Column("terrain_file", "string", lambda t: t.made_with["terrain_file"]),
    Column("parts", "string", lambda t: t.made_with["parts"]),
    Column("terrain", "string", lambda t: t.label),
    Column("slope_deg", "double", lambda t: t.terrain.slope_and_cfa[0]),
    Column("cfa", "double", lambda t: t.terrain.slope_and_cfa[1]),
    Column("trial", "int32", lambda t: t.number),
    Column("contender", "string", lambda t: t.contender),
    Column("planner", "string", lambda t: t.config.planner.name),
    Column("checker", "string", lambda t: t.config.checker.name),
    Column("limits", "string", lambda t: t.config.limits.name),
    Column("heuristic", "string", lambda t: t.config.heuristic.name),
    Column("world", "string", lambda t: t.config.world.name),
    Column("sensor", "string", lambda t: t.config.sensor.name),
    Column("localization", "string", lambda t: t.config.localization.name),
    Column("terrain_seed", "int64", lambda t: t.terrain_seed),
    Column("run_seed", "int64", lambda t: t.run_seed),
    Column("drawn_json", "string", lambda t: json.dumps(dict(t.drawn), sort_keys=True)),
)
"""What a trial is, from the trial."""

_HOW = (
    Column("outcome", "string", lambda r: r.outcome),
    Column("success", "bool", lambda r: r.success),
    Column("faults", "list<string>", lambda r: list(r.faults)),
    Column("unsafe_states", "int64", lambda r: r.unsafe_states),
    Column("judged_states", "int64", lambda r: r.judged_states),
    Column("unsafe_constraint", "string", lambda r: r.unsafe and r.unsafe.constraint),
    Column("unsafe_json", "string", lambda r: json.dumps(r.unsafe and r.unsafe.as_dict())),
    Column("terrain_sha256", "string", lambda r: r.terrain_sha256),
    *_pose("start", lambda r: r.start),
    *_pose("goal", lambda r: r.goal, "x_m y_m"),
    *_pose("end", lambda r: r.end),
    Column("position_error_m", "double", _summary("position_error_m")),
    Column("cycles", "int32", lambda r: len(r.cycles)),
    Column("driven_m", "double", lambda r: r.driven_m),
    Column("straight_line_m", "double", lambda r: r.straight_line_m),
    Column("inefficiency", "double", lambda r: r.inefficiency),
    Column("ace_evaluations", "int64", _summed("ace_evaluations")),
    Column("ace_evaluations_p95", "double", _evaluations(lambda n: float(np.percentile(n, 95)))),
    Column("ace_evaluations_max", "int64", _evaluations(max)),
    Column("ace_floor", "int64", _summary("ace_floor")),
    Column("work", "int64", _summed("work")),
    Column("ace_boxes", "int64", _summed("ace_boxes")),
    Column("ace_ranges", "int64", _summed("ace_ranges")),
    Column("overthinks", "int32", _summed("overthink")),
    Column("risk_requested", "int32", _summed("risk_requested")),
    Column("risk_used", "int32", _summed("risk_used")),
    Column("risk_asked", "int32", _summed("risk_asked")),
    Column("risk_missing", "int32", _summed("risk_missing")),
    Column("inferences", "int32", _summed("inferences")),
    Column("events", "int32", lambda r: sum(len(c.events) for c in r.cycles)),
    Column("distinct_events", "list<string>", lambda r: r.summary()["events"]["distinct"]),
    Column("tilt_max_rad", "double", _worst(max, "tilt_max_rad")),
    Column("clearance_min_m", "double", _worst(min, "clearance_min_m")),
    Column(
        "rejects_json",
        "string",
        lambda r: json.dumps(r.summary(timing=False)["rejects"], sort_keys=True),
    ),
    Column("built_json", "string", lambda r: json.dumps(dict(r.built), sort_keys=True)),
    Column("wall_s", "double", lambda r: r.wall_s),
    *_STAGE_COLUMNS,
)
"""What came of it, from the traverse."""

_RELIABILITY = ("reliability_poses", "reliability_risk_sum", "reliability_refused")

TRIAL_COLUMNS = (
    *_WHICH,
    Column("run", "int32"),
    Column("recorded_utc", "timestamp"),
    Column("attempts", "int32"),
    Column("error", "string"),
    *_HOW,
    *(Column(name, "list<double>") for name in _RELIABILITY),
)
"""Of the table of trials. `run` is the run of the campaign in provenance.json, `recorded_utc` when
the row was recorded; both are the store's. The reliability columns count by bin of predicted risk:
poses, the sum of risk, and poses that the checker refused."""

CYCLE_COLUMNS = (
    Column("key", "string"),
    Column("terrain", "string"),
    Column("trial", "int32"),
    Column("contender", "string"),
    Column("cycle", "int32", lambda c: c.cycle),
    Column("outcome", "string", lambda c: c.outcome),
    Column("ending", "string", lambda c: c.ending),
    Column("faults", "list<string>", lambda c: list(c.faults or c.start_faults)),
    *_pose("pose", lambda c: c.pose),
    *_pose("believed", lambda c: c.estimated_pose),
    Column("turn_rad", "double", lambda c: c.turn_rad),
    Column("curvature_per_m", "double", lambda c: c.curvature_per_m),
    Column("length_m", "double", lambda c: c.length_m),
    Column("driven_m", "double", lambda c: c.driven_m),
    Column("ace_evaluations", "int64", lambda c: c.ace_evaluations),
    Column("ace_floor", "int64", lambda c: c.ace_floor if c.outcome == "path" else None),
    Column("overthink", "bool", lambda c: c.overthink),
    Column("paths_tried", "int32", lambda c: c.paths_tried),
    Column("work", "int64", lambda c: c.work),
    Column("ace_boxes", "int64", lambda c: c.ace_boxes),
    Column("ace_ranges", "int64", lambda c: c.ace_ranges),
    Column("chosen_rank", "int32", lambda c: c.chosen_rank),
    Column("path_cost", "double", lambda c: c.path_cost),
    Column("risk_requested", "bool", lambda c: c.risk_requested),
    Column("risk_used", "bool", lambda c: c.risk_used),
    Column("inferences", "int32", lambda c: c.inferences),
    Column("tilt_max_rad", "double", lambda c: c.tilt_max_rad),
    Column("clearance_min_m", "double", lambda c: c.clearance_min_m),
    *_STAGE_COLUMNS,
)
"""Of the table of cycles; the first four are the trial's."""

TIMES = ("run", "recorded_utc", "wall_s", *(c.name for c in _STAGE_COLUMNS))
"""Columns that differ each time a trial is run; the others do not."""

MADE_WITH = ("code", "model", "terrain_file", "parts")
"""Columns of digests that results depend on, apart from the trial itself."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """Records of a trial: a row of the table of trials, and a row a cycle."""

    trial: Row
    cycles: list[Row]


def run_trial(trial: Trial) -> Outcome:
    """Run a trial. What keeps it from beginning is its outcome `error`, with the message.

    Raises:
        ModelError: the network is there and cannot be used; it would be so for all trials.
        KeyboardInterrupt: stopped from outside; there is nothing to keep.
    """
    try:
        return drive(trial, trial.scenario())[0]
    except CANNOT_RUN as fault:
        return unfinished(trial, "error", f"{type(fault).__name__}: {fault}")


def drive(
    trial: Trial, scenario: Scenario, observers: Iterable[Observer] = ()
) -> tuple[Outcome, TraverseResult]:
    """Drive a trial, watched by observers: its records, and the run for pictures.

    Raises:
        SimError, WorldError, CoreError: the run cannot begin or go on.
        ModelError, KeyboardInterrupt: as `run_trial`.
    """
    reliability = Reliability(trial.run_seed)
    result = traverse(
        scenario.terrain, trial.config, scenario.start, scenario.goal, trial.run_seed,
        observers=[reliability, *observers],
    )  # fmt: skip
    if result.outcome == "interrupted":
        raise KeyboardInterrupt
    row = _identity(trial) | _values(_HOW, result) | reliability.as_dict()
    which = {name: row[name] for name in ("key", "terrain", "trial", "contender")}
    cycles = [which | _values(CYCLE_COLUMNS, cycle) for cycle in result.cycles]
    return Outcome(row, cycles), result


def unfinished(trial: Trial, outcome: str, message: str, attempts: int = 1) -> Outcome:
    """Records of a trial of which there is nothing but how it was lost.

    The terrain is not looked at, since that may be what a process died of.
    """
    row = _identity(trial)
    row |= {"outcome": outcome, "success": False, "cycles": 0}
    return Outcome(row | {"attempts": attempts, "error": message}, [])


def _identity(trial: Trial) -> Row:
    return _values(_WHICH, trial) | {"attempts": 1, "error": None}


def _values(columns: Iterable[Column], source: Any) -> Row:
    return {c.name: c.of(source) for c in columns if c.of is not None}


# -------------------------------------------------------------------------- predicted risk and ACE

_SAMPLES = 12
"""Poses a cycle that predicted risk is held against ACE at; instruments, not ACE evaluations."""

_SAMPLE_REACH_M = 6.0
"""From the rover: as far as candidate paths go."""


class Reliability:
    """Observer that holds predicted risk against the checker, at random poses about the rover.

    Counts by bin of predicted risk: poses, sum of risk, poses that the checker refused. Its calls
    of the checker are not the planner's: they count nowhere.
    """

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2,)))
        self._counts = np.zeros((3, RELIABILITY_BINS))

    def __call__(self, record: CycleRecord, navigator: Navigator, cycle: Cycle) -> None:
        """Take the samples of a cycle."""
        if cycle.risk is None:
            return
        x, y, _ = record.estimated_pose
        poses = np.column_stack(
            [
                self._rng.uniform(x - _SAMPLE_REACH_M, x + _SAMPLE_REACH_M, _SAMPLES),
                self._rng.uniform(y - _SAMPLE_REACH_M, y + _SAMPLE_REACH_M, _SAMPLES),
                self._rng.uniform(-np.pi, np.pi, _SAMPLES),
            ]
        )
        predicted = risk_at(cycle.risk, poses)
        known = np.isfinite(predicted)
        navigator.checker.set_map(cycle.local_map.grid)
        refused = navigator.checker.reasons(np.ascontiguousarray(poses[known])) != 0
        risk = predicted[known]
        bins = np.minimum((risk * RELIABILITY_BINS).astype(np.intp), RELIABILITY_BINS - 1)
        for row, weights in enumerate((np.ones(len(risk)), risk, refused.astype(np.float64))):
            self._counts[row] += np.bincount(bins, weights, RELIABILITY_BINS)

    def as_dict(self) -> Row:
        """Columns of the trial's row."""
        return {
            name: [float(v) for v in row]
            for name, row in zip(_RELIABILITY, self._counts, strict=True)
        }


def risk_at(risk: RiskMap, poses: np.ndarray[Any, np.dtype[np.float64]]) -> Any:
    """(n,) predicted risk at (n, 3) poses: of the nearest cell and heading; NaN beyond the map."""
    bins, ny, nx = risk.p.shape
    ix = np.floor((poses[:, 0] - risk.origin_m[0]) / risk.resolution_m + 0.5).astype(np.intp)
    iy = np.floor((poses[:, 1] - risk.origin_m[1]) / risk.resolution_m + 0.5).astype(np.intp)
    k = np.rint(poses[:, 2] / (2.0 * np.pi / bins)).astype(np.intp) % bins
    inside = (ix >= 0) & (ix < nx) & (iy >= 0) & (iy < ny)
    values = risk.p[k, np.clip(iy, 0, ny - 1), np.clip(ix, 0, nx - 1)].astype(np.float64)
    return np.where(inside, values, np.nan)
