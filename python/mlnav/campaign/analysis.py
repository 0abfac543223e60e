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
from mlnav.config import Config
from mlnav.sim.records import out_of_work
from mlnav.stats import F64, Rate, ecdf, holm
from mlnav.trials.flight_time import FlightModel, Instructions, assumptions
from mlnav.trials.metrics import (
    METRICS,
    Figures,
    Kind,
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
    """A contender compared with the first one, or a campaign with an earlier one.

    Attributes:
        pairs: trials that both have; None where there are none in common, and different samples of
            trials are compared.
        both: of the pairs, those where both reach the goal.
        same: of the pairs, those that went the same way to the last evaluation.
        metrics: comparisons by metric.
    """

    pairs: int | None
    both: int
    same: int
    metrics: Mapping[str, Versus]


@dataclass(frozen=True)
class Block:
    """A terrain, or all of them (`label` is then None).

    Attributes:
        label: of the terrain.
        slope_deg, cfa: of a terrain class.
        figures: by contender.
        evaluations_ecdf: by contender, steps of the distribution of evaluations: values, and the
            share of cycles with at most so many.
        stage_ms: by contender, wall time a cycle by stage [ms].
        flight_s: by contender, time of a cycle modelled from counted instructions, by computer [s].
        against: by contender, all but the first.
    """

    label: str | None
    slope_deg: float | None
    cfa: float | None
    figures: Mapping[str, Figures]
    evaluations_ecdf: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    stage_ms: Mapping[str, Mapping[str, float | None]]
    flight_s: Mapping[str, Mapping[str, float | None]]
    against: Mapping[str, Against]


@dataclass(frozen=True)
class ReliabilityBin:
    """Poses whose predicted risk fell into a bin, and how many of them ACE refused."""

    predicted: float | None
    refused: Rate


@dataclass(frozen=True)
class Reliability:
    """Predicted risk held against ACE.

    Attributes:
        bins: of predicted risk.
        poses: in all.
        predicted, refused: mean risk, and share of the poses that ACE refused.
        ece: expected calibration error: distance of the two by bin, weighted by poses.
    """

    bins: Sequence[ReliabilityBin]
    poses: int
    predicted: float | None
    refused: float | None
    ece: float | None


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
    """What a contender is made of.

    Attributes:
        name: of the contender.
        parts: names by part (`PARTS`).
        overthink_evaluations: the mark of its configuration.
        models: digests of the networks that its trials ran.
        events: what did not go as configured, in words.
        out_of_work: what to say where its heuristic had no map; None: nothing.
        flight_note: why there is no flight time from instructions; None where there is.
    """

    name: str
    parts: Mapping[str, str]
    overthink_evaluations: int
    models: Sequence[str]
    events: Sequence[str]
    out_of_work: str | None
    flight_note: str | None


@dataclass(frozen=True)
class Analysis:
    """A campaign in numbers.

    Attributes:
        name, description, seed: of the definition.
        planned: trials of it, at most.
        trials: trials that figures rest on.
        entrants: the contenders; others are measured against the first.
        terrains: in the definition's order.
        overall: all terrains together.
        reliability: by contender, of those that predict risk.
        failures: by terrain, trial and contender.
        notes: caveats: unsafe runs, then grave ones, then others.
        assumptions: of the modelled flight times.
        codes: trials by digest of the code that ran them.
    """

    name: str
    description: str
    seed: int
    planned: int
    trials: int
    entrants: Sequence[Entrant]
    terrains: Sequence[Block]
    overall: Block
    reliability: Mapping[str, Reliability]
    failures: Sequence[Failure]
    notes: Sequence[Caveat]
    assumptions: Sequence[str]
    codes: Mapping[str, int]

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
        trials: a row a trial.
        cycles: a row a cycle.
        definition: of the campaign; trials of other terrains or contenders are left out.
        damaged: parts of the store that could not be read, for the caveats.
        instructions: counts for the second model of flight time.
    """
    names, labels, configs = definition.names, definition.labels, definition.configs
    runs, foreign, repeated = chosen(runs_of(trials, cycles), labels, names)
    flights = {n: FlightModel(configs[n], instructions) for n in names}
    grouped = by_slot(runs)
    blocks = [block(label, [label], grouped, flights) for label in labels]
    overall = with_holm([block(None, labels, grouped, flights)])[0]
    mine = {n: [r for r in runs if r.row["contender"] == n] for n in names}
    analysis = Analysis(
        name=definition.name,
        description=definition.description,
        seed=definition.seed,
        planned=definition.trials * len(labels) * len(names),
        trials=len(runs),
        entrants=[_entrant(n, configs[n], mine[n], flights[n]) for n in names],
        terrains=with_holm(blocks),
        overall=overall,
        reliability={n: r for n in names if (r := _reliability(mine[n])).poses},
        failures=[_failure(r.row) for r in runs if not r.success],
        notes=(),
        assumptions=assumptions(instructions),
        codes=dict(Counter(r.row["code"] for r in runs).most_common()),
    )
    notes = caveats(analysis, definition, runs, foreign, repeated, damaged)
    return replace(analysis, notes=notes)


Slots = Mapping[tuple[str, str], Sequence[Run]]
"""Runs by terrain and contender."""


def by_slot(runs: Sequence[Run]) -> Slots:
    """Runs by terrain and contender."""
    found: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        found.setdefault((run.row["terrain"], run.row["contender"]), []).append(run)
    return found


def block(
    label: str | None, labels: Sequence[str], slots: Slots, flights: Mapping[str, FlightModel]
) -> Block:
    """Of some terrains together, for contenders with their flight models; without `p_holm`."""
    mine = {n: Runs([r for at in labels for r in slots.get((at, n), ())]) for n in flights}
    first, *others = mine
    rows = [r.row for runs in mine.values() for r in runs.all] if label else []
    return Block(
        label=label,
        slope_deg=next((r.get("slope_deg") for r in rows), None),
        cfa=next((r.get("cfa") for r in rows), None),
        figures={n: figures(runs) for n, runs in mine.items()},
        evaluations_ecdf={n: ecdf(runs.evaluations) for n, runs in mine.items()},
        stage_ms={n: _stage_ms(runs) for n, runs in mine.items()},
        flight_s={n: flight_seconds(runs, flights[n])[0] for n, runs in mine.items()},
        against={n: against(mine[first], mine[n]) for n in others},
    )


def _stage_ms(runs: Runs) -> dict[str, float | None]:
    times = {stage: runs.per_cycle(f"wall_{stage}_s") for stage in STAGES}
    return {stage: None if s is None else 1e3 * s for stage, s in times.items()}


_SAME_RUN = ("outcome", "cycles", "ace_evaluations", "driven_m")


def against(first: Runs, this: Runs, same_trial: Any = None) -> Against:
    """Compare runs with those of the first contender, or of an earlier campaign.

    Args:
        first: the others.
        this: these.
        same_trial: says whether two runs of the same terrain and number are a pair; where it is
            given and none are, different samples are compared.
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
    adjusted: dict[tuple[int, str, str], float] = {}
    for m in VERSUS:
        if m.kind is not Kind.RATE:
            continue
        tests = [
            ((i, n, m.name), p)
            for i, b in enumerate(blocks)
            for n, a in b.against.items()
            if (p := a.metrics[m.name].p) is not None
        ]
        values = holm([p for _, p in tests])
        adjusted |= dict(zip((place for place, _ in tests), values, strict=True))

    def with_p(i: int, name: str, a: Against) -> Against:
        known = {k: replace(v, p_holm=adjusted.get((i, name, k))) for k, v in a.metrics.items()}
        return replace(a, metrics=known)

    return [
        replace(b, against={n: with_p(i, n, a) for n, a in b.against.items()})
        for i, b in enumerate(blocks)
    ]


# ------------------------------------------------------------------------------------ its parts


def _reliability(runs: Sequence[Run]) -> Reliability:
    def summed(column: str) -> F64:
        rows = [r.row[column] for r in runs if r.row.get(column) is not None]
        return np.asarray(np.array(rows, np.float64).reshape(-1, RELIABILITY_BINS).sum(axis=0))

    poses, risk, refused = map(
        summed, ("reliability_poses", "reliability_risk_sum", "reliability_refused")
    )
    total = poses.sum()
    return Reliability(
        bins=[
            ReliabilityBin(float(s / n) if n else None, Rate(int(k), int(n)))
            for n, s, k in zip(poses, risk, refused, strict=True)
        ],
        poses=int(total),
        predicted=float(risk.sum() / total) if total else None,
        refused=float(refused.sum() / total) if total else None,
        ece=float(np.abs(risk - refused).sum() / total) if total else None,
    )


def _entrant(name: str, config: Config, runs: Sequence[Run], flight: FlightModel) -> Entrant:
    mine = Runs(runs)
    return Entrant(
        name,
        parts={part: getattr(config, part).name for part in PARTS},
        overthink_evaluations=config.planner.overthink_evaluations,
        models=sorted({m for r in runs if (m := r.row.get("model")) is not None}),
        events=sorted({e for r in runs for e in r.row.get("distinct_events") or ()}),
        out_of_work=out_of_work(int(mine.total("risk_asked")), int(mine.total("risk_missing"))),
        flight_note=flight_seconds(mine, flight)[1],
    )


def _failure(row: Row) -> Failure:
    return Failure(
        key=row["key"],
        terrain=row["terrain"],
        trial=row["trial"],
        contender=row["contender"],
        outcome=row["outcome"],
        faults=tuple(row.get("faults") or ()),
        error=row.get("error"),
        cycles=int(row.get("cycles") or 0),
        driven_m=row.get("driven_m"),
        code=row["code"],
    )
