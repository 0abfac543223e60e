"""The table of metrics of a contender's runs.

An entry has a name, a unit, a definition, a reducer of the records, and a format. Tables, charts,
CSV, JSON and the terms of the report read it: a further metric is an entry of `METRICS`, and a
column in `records` where what it needs is not recorded yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any, cast

import numpy as np

from mlnav.sim.records import MODELLED_S_PER_EVALUATION
from mlnav.stats import (
    Estimate,
    PerExposure,
    Rate,
    independent_ratio,
    mcnemar,
    paired_mean,
    paired_rate_difference,
    paired_ratio,
    pooled_mean,
    rate_difference,
)
from mlnav.trials.flight_time import PER_S, FlightModel, Usage
from mlnav.trials.records import STAGES
from mlnav.trials.runs import Run, Runs, strata

Figure = Rate | Estimate | PerExposure | float | Mapping[str, int] | None


class Kind(Enum):
    """How runs are reduced to a figure, and two contenders' runs to a comparison.

    RATE: share of runs; compared by Newcombe's difference and McNemar's test.
    PER_CYCLE: a sum over the cycles of all runs; compared by the ratio first / this.
    MEAN: over runs where the value is known; compared by the difference this - first.
    RUNS: anything else that runs give; not compared.
    """

    RATE = "rate"
    PER_CYCLE = "per cycle"
    MEAN = "mean"
    RUNS = "runs"


@dataclass(frozen=True)
class Metric:
    """A metric.

    Attributes:
        name: in JSON and CSV.
        title: heading of its column.
        unit: of the figure as it is shown, scaled.
        definition: of the figure; empty where the title says it.
        kind: how it is made and compared.
        of: makes it: of a `Run` a flag (RATE), a total (PER_CYCLE) or a value (MEAN); of `Runs` the
            figure itself (RUNS).
        digits: after the point.
        scale: to the unit that is shown.
        tables: that it is a column of: headline, terrain and time of the report; endings and effort
            of the screen.
        versus: heading of its comparison with the first contender; empty: none is shown.
    """

    name: str
    title: str
    unit: str
    definition: str
    kind: Kind
    of: Callable[[Any], Any]
    digits: int = 0
    scale: float = 1.0
    tables: tuple[str, ...] = ()
    versus: str = ""

    @property
    def heading(self) -> str:
        """Title and unit."""
        return f"{self.title}, {self.unit}" if self.unit else self.title


def _plan_ms(run: Run) -> float:
    """Of what a rover computes: heuristic and planner, not the simulation."""
    return 1e3 * sum(run.number(f"wall_{stage}_s") for stage in ROVER_STAGES)


ROVER_STAGES = tuple(stage for stage in STAGES if stage not in ("sense", "drive"))
"""Stages of a cycle that a rover computes; the others are the simulation's."""


def _over_floor(runs: Runs) -> float | None:
    floor = _mean(runs.floors)
    mean = runs.per_cycle("ace_evaluations")
    return mean / floor if mean is not None and floor else None


def _mean(values: Any) -> float | None:
    return float(np.mean(values)) if len(values) else None


def _quantile(q: float) -> Callable[[Runs], float | None]:
    return lambda runs: float(np.quantile(runs.evaluations, q)) if len(runs.evaluations) else None


def _cause(run: Run) -> str:
    return str(run.row.get("unsafe_constraint") or run.row["outcome"])


def _counted(names: Any) -> dict[str, int]:
    return dict(Counter(names).most_common())


def _unsafe_per_km(runs: Runs) -> PerExposure:
    return PerExposure(sum(r.unsafe for r in runs.all), runs.total("driven_m") / 1000.0)


def _unsafe_states_per_km(runs: Runs) -> float | None:
    """Without an interval: the states of a run are not independent of each other."""
    known = Runs([r for r in runs.all if r.known("unsafe_states") is not None])
    return _ratio(known.total("unsafe_states"), known.total("driven_m") / 1000.0)


def _ratio(top: float, bottom: float) -> float | None:
    return top / bottom if bottom else None


HEADLINE, TERRAIN, TIME = "headline", "terrain", "time"
ENDINGS, EFFORT = "endings", "effort"
_BOTH = (HEADLINE, TERRAIN)

METRICS: tuple[Metric, ...] = (
    Metric(
        "unsafe", "unsafe", "%",
        "Trials that ended beyond the limits of safety or in a fall, a tip-over or hung on its"
        " belly, or that were beyond the limits on the way and went on.",
        Kind.RATE, lambda run: run.unsafe, 1, 100.0, (*_BOTH, ENDINGS), "unsafe, difference, %",
    ),
    Metric(
        "unsafe_per_km", "unsafe/km", "", "Unsafe trials per driven km of all trials.",
        Kind.RUNS, _unsafe_per_km, 2, tables=(*_BOTH, ENDINGS),
    ),
    Metric(
        "unsafe_states_per_km", "unsafe states/km", "",
        "Judged states beyond the limits per driven km.",
        Kind.RUNS, _unsafe_states_per_km, 1, tables=(TERRAIN,),
    ),
    Metric(
        "success", "success", "%",
        "The goal is reached within tolerance, with no unsafe state on the way, within the limits"
        " of distance and cycles. Trials that were lost count as failures.",
        Kind.RATE, lambda run: run.success, 0, 100.0, (*_BOTH, ENDINGS), "success, difference, %",
    ),
    Metric(
        "no_safe_path", "no safe path", "", "Trials that ended since every candidate path failed.",
        Kind.RUNS,
        lambda runs: sum(r.row["outcome"] == "no_safe_path" and not r.unsafe for r in runs.all),
        tables=(TERRAIN, ENDINGS),
    ),
    Metric(
        "evaluations", "evaluations a cycle", "",
        "Poses put through the safety checker (ACE), over all cycles, whether the run arrived or"
        " not. A pose that several candidate paths share counts once in a cycle.",
        Kind.PER_CYCLE, lambda run: run.number("ace_evaluations"), 1,
        tables=(*_BOTH, EFFORT), versus="evaluations, times fewer",
    ),
    Metric("evaluations_median", "evaluations: median", "", "", Kind.RUNS, _quantile(0.5),
           tables=(TERRAIN,)),
    Metric("evaluations_p95", "evaluations: p95", "", "", Kind.RUNS, _quantile(0.95),
           tables=(*_BOTH, EFFORT)),
    Metric("evaluations_max", "evaluations: max", "", "", Kind.RUNS, _quantile(1.0),
           tables=(TERRAIN,)),
    Metric(
        "evaluations_per_m", "evaluations/m", "", "ACE evaluations per driven metre.",
        Kind.RUNS,
        lambda runs: _ratio(runs.total("ace_evaluations"), runs.total("driven_m")), 1,
        tables=(TERRAIN,),
    ),
    Metric(
        "work", "search steps a cycle", "",
        "Candidates and poses that the search puts a price on or looks up, ACE not included.",
        Kind.RUNS, lambda runs: runs.per_cycle("work"), tables=(TERRAIN,),
    ),
    Metric(
        "ace_boxes", "boxes a cycle", "",
        "Boxes of states, or poses, that the checker looked at for its evaluations.",
        Kind.RUNS, lambda runs: runs.per_cycle("ace_boxes"), tables=(TERRAIN,),
    ),
    Metric(
        "ace_ranges", "ranges a cycle", "",
        "Bounds of wheel heights over many places, most of what a proof costs.",
        Kind.RUNS, lambda runs: runs.per_cycle("ace_ranges"), tables=(TERRAIN,),
    ),
    Metric(
        "floor", "floor", "",
        "The evaluations of the accepted paths alone, a cycle that found one. No planner that"
        " proves its path can do with fewer.",
        Kind.RUNS, lambda runs: _mean(runs.floors), 1, tables=(TERRAIN,),
    ),
    Metric("over_floor", "× floor", "", "Evaluations a cycle over the floor.", Kind.RUNS,
           _over_floor, 2, tables=(*_BOTH, EFFORT)),
    Metric(
        "overthink", "overthinking", "%",
        "Cycles with more evaluations than the configured mark.",
        Kind.PER_CYCLE, lambda run: run.number("overthinks"), 1, 100.0, (*_BOTH, EFFORT),
    ),
    Metric(
        "inefficiency", "inefficiency", "",
        "Driven length / straight-line length - 1, of successful runs. A run ends within tolerance"
        " of the goal, so a straight one is slightly below 0.",
        Kind.MEAN, lambda run: run.known("inefficiency"), 2,
        tables=(*_BOTH, EFFORT), versus="inefficiency, difference",
    ),
    Metric("heuristic_ms", "heuristic", "ms", "", Kind.PER_CYCLE,
           lambda run: 1e3 * run.number("wall_heuristic_s"), 2, tables=(TIME,)),
    Metric("planner_ms", "planner", "ms", "", Kind.PER_CYCLE,
           lambda run: 1e3 * run.number("wall_plan_s"), 2, tables=(TIME,)),
    Metric(
        "plan_ms", "heuristic + planner", "ms",
        "Wall time a cycle of what a rover computes, inference included, on the machine that ran"
        " the campaign, under its load at the time.",
        Kind.PER_CYCLE, _plan_ms, 2, tables=(TIME, EFFORT), versus="wall time, times less",
    ),
    Metric("inferences", "risk maps a cycle", "", "", Kind.RUNS,
           lambda runs: runs.per_cycle("inferences"), 2, tables=(TIME, EFFORT)),
    Metric("risk_used", "cycles with a risk map", "%", "", Kind.RUNS,
           lambda runs: runs.per_cycle("risk_used"), 1, 100.0, tables=(TIME,)),
    Metric(
        "flight_ace_s", "flight (a)", "s", "Modelled time of planning on a flight computer.",
        Kind.PER_CYCLE, lambda run: run.number("ace_evaluations") * MODELLED_S_PER_EVALUATION, 2,
        tables=(TIME,),
    ),
    Metric("wall_s", "wall time of a trial", "s", "", Kind.RUNS,
           lambda runs: _mean(runs.known("wall_s")), 1, tables=(TIME,)),
    Metric("trials", "trials", "", "", Kind.RUNS, lambda runs: len(runs.all)),
    Metric("cycles", "cycles", "", "", Kind.RUNS, lambda runs: runs.cycles),
    Metric("driven_km", "driven", "km", "", Kind.RUNS,
           lambda runs: runs.total("driven_m") / 1000.0, 2),
    Metric("outcomes", "endings", "", "Trials by ending.", Kind.RUNS,
           lambda runs: _counted(r.row["outcome"] for r in runs.all)),
    Metric("causes", "broken first", "", "Unsafe trials by the constraint broken first.", Kind.RUNS,
           lambda runs: _counted(_cause(r) for r in runs.all if r.unsafe)),
    Metric("rejects", "refused for", "", "Poses that ACE refused, by constraint.", Kind.RUNS,
           lambda runs: runs.rejects),
    Metric("faults", "faults at the end", "", "Trials by what was wrong where they ended.",
           Kind.RUNS,
           lambda runs: _counted(f for r in runs.all for f in r.row.get("faults") or ())),
    Metric("events", "with events", "",
           "Trials in which something did not go as configured.", Kind.RUNS,
           lambda runs: sum(r.number("events") > 0 for r in runs.all)),
    Metric("retried", "begun again", "", "Trials that were begun more than once.", Kind.RUNS,
           lambda runs: sum(r.number("attempts") > 1 for r in runs.all)),
    Metric("tilt_max_rad", "tilt, worst", "rad", "", Kind.RUNS,
           lambda runs: max(runs.known("tilt_max_rad"), default=None), 3),
    Metric("clearance_min_m", "clearance, worst", "m", "", Kind.RUNS,
           lambda runs: min(runs.known("clearance_min_m"), default=None), 3),
)  # fmt: skip

_BY_NAME = {m.name: m for m in METRICS}


def metric(name: str) -> Metric:
    """The metric of a name."""
    return _BY_NAME[name]


def in_table(table: str) -> list[Metric]:
    """Metrics that are columns of a table."""
    return [m for m in METRICS if table in m.tables]


class Figures(dict[str, Figure]):
    """Figures of a contender's runs by name of the metric."""

    def rate(self, name: str) -> Rate:
        """A rate."""
        return cast(Rate, self[name])

    def estimate(self, name: str) -> Estimate:
        """A mean with its interval."""
        return cast(Estimate, self[name])

    def number(self, name: str) -> float | None:
        """A number; of a figure with an interval, its value."""
        figure = self[name]
        return figure.value if isinstance(figure, Rate | Estimate | PerExposure) else (
            cast("float | None", figure)
        )  # fmt: skip

    def counts(self, name: str) -> Mapping[str, int]:
        """Counts by name."""
        return cast("Mapping[str, int]", self[name])


def figures(runs: Runs, metrics: Sequence[Metric] = METRICS) -> Figures:
    """Figures of a contender's runs."""
    return Figures({m.name: _reduced(m, runs) for m in metrics})


def _reduced(m: Metric, runs: Runs) -> Figure:
    if m.kind is Kind.RATE:
        return Rate(sum(bool(m.of(r)) for r in runs.all), len(runs.all))
    if m.kind is Kind.PER_CYCLE:
        totals, cycles = _per_cycle(m, runs.driven)
        return pooled_mean(totals, cycles, strata(runs.driven))
    if m.kind is Kind.MEAN:
        known = [r for r in runs.all if m.of(r) is not None]
        return paired_mean([m.of(r) for r in known], strata(known))
    return cast(Figure, m.of(runs))


def _per_cycle(m: Metric, runs: Sequence[Run]) -> tuple[list[float], list[float]]:
    return [m.of(r) for r in runs], [r.number("cycles") for r in runs]


def plain(value: Any) -> Any:
    """A value of figures, rates and dataclasses as JSON has it."""
    if isinstance(value, Rate | Estimate | PerExposure):
        return value.as_dict()
    if is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value


# ------------------------------------------------------------------------------ two contenders


@dataclass(frozen=True)
class Versus:
    """A metric of a contender compared with the first one, or of a campaign with an earlier one.

    Attributes:
        estimate: RATE: difference this - first; MEAN: the same, where both arrive; PER_CYCLE: ratio
            first / this where both arrive, more than 1 where this one needs less.
        all_cycles: PER_CYCLE: the ratio over all cycles of all pairs.
        only_first, only_this: RATE: pairs in which it is true of one of the two alone.
        p: McNemar's exact test of these; None without pairs.
        p_holm: adjusted for all tests of its table.
    """

    estimate: Estimate
    all_cycles: Estimate | None = None
    only_first: int | None = None
    only_this: int | None = None
    p: float | None = None
    p_holm: float | None = None


NO_VERSUS = Versus(Estimate(None, None, 0))

Pair = tuple[Run, Run]


def compared(m: Metric, pairs: Sequence[Pair]) -> Versus:
    """The comparison of a metric over pairs (first, this) of the same trials."""
    if m.kind is Kind.RATE:
        first, this = ([bool(m.of(p[i])) for p in pairs] for i in (0, 1))
        test = mcnemar(first, this)
        return Versus(
            paired_rate_difference(this, first),
            only_first=test["only_a"],
            only_this=test["only_b"],
            p=test["p"] if pairs else None,
        )
    both = [p for p in pairs if p[0].success and p[1].success]
    if m.kind is Kind.PER_CYCLE:
        driven = [p for p in pairs if all(r.number("cycles") for r in p)]
        return Versus(_paired_ratio(m, both), _paired_ratio(m, driven))
    known = [(a, b) for a, b in both if m.of(a) is not None and m.of(b) is not None]
    differences = [m.of(b) - m.of(a) for a, b in known]
    return Versus(paired_mean(differences, strata(b for _, b in known)))


def _paired_ratio(m: Metric, pairs: Sequence[Pair]) -> Estimate:
    first, this = ([p[i] for p in pairs] for i in (0, 1))
    return paired_ratio(*_per_cycle(m, first), *_per_cycle(m, this), strata(this))


def compared_unpaired(m: Metric, first: Runs, this: Runs) -> Versus:
    """The comparison over different samples of trials."""
    if m.kind is Kind.RATE:
        mine, theirs = (cast(Rate, _reduced(m, runs)) for runs in (this, first))
        return Versus(rate_difference(mine, theirs))
    if m.kind is Kind.PER_CYCLE:
        ratio = independent_ratio(*_per_cycle(m, first.driven), *_per_cycle(m, this.driven))
        return Versus(ratio, ratio)
    return NO_VERSUS


# ---------------------------------------------------------------------------- modelled flight time


def flight_seconds(runs: Runs, model: FlightModel) -> tuple[dict[str, float | None], str | None]:
    """Modelled time of a cycle from counted instructions [s], by computer; why there is none."""
    nothing: dict[str, float | None] = dict.fromkeys(PER_S)
    if not runs.cycles or model.note is not None:
        return nothing, model.note
    if any(r.row.get("model") != model.model for r in runs.driven):
        return nothing, "its trials ran another model than is here now"
    seconds = model.seconds(
        Usage(
            cycles=runs.cycles,
            risk_uses=int(runs.total("risk_used")),
            rankings_again=int(sum(r.ranked_again for r in runs.all)),
            inferences=int(runs.total("inferences")),
            evaluations=int(runs.total("ace_evaluations")),
            rejected=sum(runs.rejects.values()),
            paths_tried=int(sum(r.paths_tried for r in runs.all)),
        )
    )
    return {name: s / runs.cycles for name, s in (seconds or {}).items()}, None
