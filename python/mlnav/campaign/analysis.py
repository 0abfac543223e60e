"""What a campaign shows: contenders in numbers, terrain by terrain, and each against the first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from mlnav.campaign.caveats import Caveat, caveats
from mlnav.campaign.definition import Definition
from mlnav.campaign.progress import without_map
from mlnav.config import Config
from mlnav.stats import F64, Rate, ecdf, holm
from mlnav.trials.flight_time import FlightModel, Instructions, assumptions
from mlnav.trials.metrics import (
    METRICS,
    Figures,
    Versus,
    compared,
    compared_unpaired,
    figures,
    flight_seconds,
    plain,
)
from mlnav.trials.records import RELIABILITY_BINS, STAGES, Row
from mlnav.trials.runs import Run, Runs, chosen, runs_of

FORMAT = 2
"""Of an analysis written as JSON."""

VERSUS = tuple(m for m in METRICS if m.versus)
"""Metrics that contenders are compared by."""


@dataclass(frozen=True)
class Against:
    """A contender compared with the first one, or a campaign with an earlier one."""

    pairs: int | None  # trials that both have; None: none, so different samples are compared
    both: int  # of the pairs, those where both reach the goal
    same: int  # of the pairs, those that went the same way to the last evaluation
    metrics: Mapping[str, Versus]


@dataclass(frozen=True)
class Block:
    """A terrain, or all of them (`label` is then None); mappings are by contender."""

    label: str | None
    slope_deg: float | None  # of a terrain class
    cfa: float | None
    figures: Mapping[str, Figures]
    evaluations_ecdf: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    """Steps of the distribution: evaluations, and share of cycles with at most so many."""
    stage_ms: Mapping[str, Mapping[str, float | None]]  # wall time a cycle, by stage
    flight_s: Mapping[str, Mapping[str, float | None]]  # of a cycle, from instructions, by computer
    against: Mapping[str, Against]  # all but the first


@dataclass(frozen=True)
class ReliabilityBin:
    """Poses whose predicted risk fell into a bin, and how many of them ACE refused."""

    predicted: float | None
    refused: Rate


@dataclass(frozen=True)
class Reliability:
    """Predicted risk held against ACE."""

    bins: Sequence[ReliabilityBin]
    poses: int  # in all
    predicted: float | None  # mean risk
    refused: float | None  # share of the poses that ACE refused
    ece: float | None  # expected calibration error: distance of the two by bin, weighted by poses


@dataclass(frozen=True)
class Failure:
    """A trial that did not reach the goal."""

    key: str
    terrain: str
    trial: int
    contender: str
    outcome: str
    faults: Sequence[str]
    error: str | None
    cycles: int
    driven_m: float | None
    code: str


PARTS = ("planner", "checker", "limits", "heuristic", "world", "sensor", "localization")
"""Parts of the configuration that a contender is described by."""


@dataclass(frozen=True)
class Entrant:
    """What a contender is made of."""

    name: str
    parts: Mapping[str, str]  # names by part (`PARTS`)
    overthink_evaluations: int  # the mark of its configuration
    models: Sequence[str]  # digests of the networks that its trials ran
    events: Sequence[str]  # what did not go as configured, in words
    out_of_work: str | None  # what to say where its heuristic had no map
    flight_note: str | None  # why there is no flight time from instructions


@dataclass(frozen=True)
class Analysis:
    """A campaign in numbers."""

    name: str
    description: str
    seed: int
    planned: int  # trials of the definition, at most
    trials: int  # that figures rest on
    entrants: Sequence[Entrant]  # the contenders; others are measured against the first
    terrains: Sequence[Block]  # in the definition's order
    overall: Block  # all terrains together
    reliability: Mapping[str, Reliability]  # by contender, of those that predict risk
    failures: Sequence[Failure]  # by terrain, trial and contender
    notes: Sequence[Caveat]  # unsafe runs, then grave ones, then others
    assumptions: Sequence[str]  # of the modelled flight times
    codes: Mapping[str, int]  # trials by digest of the code that ran them

    @property
    def first(self) -> str:
        """The contender that others are measured against."""
        return self.entrants[0].name

    @property
    def others(self) -> list[str]:
        """All other contenders."""
        return [e.name for e in self.entrants[1:]]

    @property
    def blocks(self) -> list[Block]:
        """Terrains, then all together where there are several."""
        return [*self.terrains, *([self.overall] if len(self.terrains) > 1 else ())]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"format": FORMAT, **plain(self)}


def analyse(
    trials: pa.Table,
    cycles: pa.Table,
    definition: Definition,
    damaged: Sequence[object] = (),
    instructions: Instructions | None = None,
) -> Analysis:
    """A campaign in numbers, from its two tables; the order of their rows does not matter.

    Args:
        trials: a row a trial; those of terrains or contenders that are not defined are left out.
        cycles: a row a cycle.
        definition: of the campaign.
        damaged: parts of the store that could not be read, for the caveats.
        instructions: counts for the second model of flight time.
    """
    names, labels, configs = definition.names, definition.labels, definition.configs
    runs, foreign, repeated = chosen(runs_of(trials, cycles), labels, names)
    flights = {n: FlightModel(configs[n], instructions) for n in names}
    grouped = by_slot(runs)
    blocks = [block(label, gathered(grouped, [label], names), flights) for label in labels]
    mine = gathered(grouped, labels, names)
    analysis = Analysis(
        name=definition.name,
        description=definition.description,
        seed=definition.seed,
        planned=definition.trials * len(labels) * len(names),
        trials=len(runs),
        entrants=[_entrant(n, configs[n], mine[n], flights[n]) for n in names],
        terrains=with_holm(blocks),
        overall=with_holm([block(None, mine, flights)])[0],
        reliability={n: r for n in names if (r := _reliability(mine[n].all)).poses},
        failures=[_failure(r.row) for r in runs if not r.success],
        notes=(),
        assumptions=assumptions(instructions),
        codes=dict(Counter(r.row["code"] for r in runs).most_common()),
    )
    notes = caveats(analysis, definition, runs, foreign, repeated, damaged)
    ranked = sorted(notes, key=lambda note: (not note.unsafe, not note.grave))
    return replace(analysis, notes=ranked)


Slots = Mapping[tuple[str, str], Sequence[Run]]


def by_slot(runs: Sequence[Run]) -> Slots:
    """Runs by terrain and contender."""
    found: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        found.setdefault((run.row["terrain"], run.row["contender"]), []).append(run)
    return found


def gathered(slots: Slots, labels: Sequence[str], names: Sequence[str]) -> dict[str, Runs]:
    """Runs of some terrains together, by contender."""
    return {n: Runs([r for at in labels for r in slots.get((at, n), ())]) for n in names}


def block(label: str | None, mine: Mapping[str, Runs], flights: Mapping[str, FlightModel]) -> Block:
    """Of runs by contender, the first of which the others are held against; without `p_holm`."""
    names = list(mine)
    rows = [r.row for runs in mine.values() for r in runs.all] if label else []
    return Block(
        label=label,
        slope_deg=next((r.get("slope_deg") for r in rows), None),
        cfa=next((r.get("cfa") for r in rows), None),
        figures={n: figures(runs) for n, runs in mine.items()},
        evaluations_ecdf={n: ecdf(runs.evaluations) for n, runs in mine.items()},
        stage_ms={n: _stage_ms(runs) for n, runs in mine.items()},
        flight_s={n: flight_seconds(runs, flights[n])[0] for n, runs in mine.items()},
        against={n: against(mine[names[0]], mine[n]) for n in names[1:]},
    )


def _stage_ms(runs: Runs) -> dict[str, float | None]:
    times = {stage: runs.per_cycle(f"wall_{stage}_s") for stage in STAGES}
    return {stage: None if s is None else 1e3 * s for stage, s in times.items()}


_SAME_RUN = ("outcome", "cycles", "ace_evaluations", "driven_m")


def against(first: Runs, this: Runs, same_trial: Any = None) -> Against:
    """Compare `this` with runs of the first contender, or of an earlier campaign.

    `same_trial` says whether two runs of the same terrain and number are a pair; where it is given
    and none are, different samples are compared.
    """
    others = {r.slot: r for r in first.all}
    pairs = [(others[r.slot], r) for r in this.all if r.slot in others]
    if same_trial is not None:
        pairs = [p for p in pairs if same_trial(*p)]
        if not pairs:
            unpaired = {m.name: compared_unpaired(m, first, this) for m in VERSUS}
            return Against(None, 0, 0, unpaired)
    return Against(
        pairs=len(pairs),
        both=sum(a.success and b.success for a, b in pairs),
        same=sum(all(a.row[c] == b.row[c] for c in _SAME_RUN) for a, b in pairs),
        metrics={m.name: compared(m, pairs) for m in VERSUS},
    )


def with_holm(blocks: Sequence[Block]) -> list[Block]:
    """The blocks, the p values of each metric adjusted for all tests of it in them."""
    changed = [{n: dict(a.metrics) for n, a in b.against.items()} for b in blocks]
    for m in VERSUS:
        tests = [
            (metrics, p)
            for by_name in changed
            for metrics in by_name.values()
            if (p := metrics[m.name].p) is not None
        ]
        for (metrics, _), p_holm in zip(tests, holm([p for _, p in tests]), strict=True):
            metrics[m.name] = replace(metrics[m.name], p_holm=p_holm)
    return [
        replace(b, against={n: replace(a, metrics=by_name[n]) for n, a in b.against.items()})
        for b, by_name in zip(blocks, changed, strict=True)
    ]


# ------------------------------------------------------------------------------------ its parts


def _reliability(runs: Sequence[Run]) -> Reliability:
    def summed(column: str) -> F64:
        rows = [r.row[column] for r in runs if r.row.get(column) is not None]
        return np.asarray(np.array(rows, np.float64).reshape(-1, RELIABILITY_BINS).sum(axis=0))

    poses, risk, refused = map(
        summed, ("reliability_poses", "reliability_risk_sum", "reliability_refused")
    )

    def a_pose(total: float) -> float | None:
        return float(total / poses.sum()) if poses.any() else None

    return Reliability(
        bins=[
            ReliabilityBin(float(s / n) if n else None, Rate(int(k), int(n)))
            for n, s, k in zip(poses, risk, refused, strict=True)
        ],
        poses=int(poses.sum()),
        predicted=a_pose(risk.sum()),
        refused=a_pose(refused.sum()),
        ece=a_pose(np.abs(risk - refused).sum()),
    )


def _entrant(name: str, config: Config, mine: Runs, flight: FlightModel) -> Entrant:
    rows = [r.row for r in mine.all]
    return Entrant(
        name,
        parts={part: getattr(config, part).name for part in PARTS},
        overthink_evaluations=config.planner.overthink_evaluations,
        models=sorted({m for row in rows if (m := row.get("model")) is not None}),
        events=sorted({e for row in rows for e in row.get("distinct_events") or ()}),
        out_of_work=without_map(mine),
        flight_note=flight_seconds(mine, flight)[1],
    )


def _failure(row: Row) -> Failure:
    columns = ("key", "terrain", "trial", "contender", "outcome", "error", "driven_m", "code")
    copied: dict[str, Any] = {c: row.get(c) for c in columns}
    return Failure(
        **copied, faults=tuple(row.get("faults") or ()), cycles=int(row.get("cycles") or 0)
    )
