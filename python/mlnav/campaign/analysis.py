"""What a campaign shows: contenders in numbers, ground by ground, and each against the first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from mlnav.campaign.caveats import weak_points
from mlnav.campaign.definition import Definition
from mlnav.campaign.figures import (
    Against,
    Analysis,
    Block,
    Distribution,
    Entrant,
    Failure,
    Figures,
    Flight,
    Reliability,
    ReliabilityBin,
    Spread,
)
from mlnav.config import Config
from mlnav.risk.models import ModelError, configured_model
from mlnav.sim.metrics import MODELLED_S_PER_EVALUATION
from mlnav.stats import (
    F64,
    Estimate,
    Rate,
    ecdf,
    holm,
    mcnemar,
    paired_mean,
    paired_rate_difference,
    paired_ratio,
    pooled_mean,
)
from mlnav.studies.instructions import PER_S, Instructions, Usage, flight_seconds
from mlnav.trials.runs import Run, chosen, rejects, runs_of, strata, total
from mlnav.trials.safety import safety_of
from mlnav.trials.trial import RELIABILITY_BINS, STAGES, Row

WORLD_STAGES = ("sense", "drive")
"""Stages of the simulation; a rover computes the others."""


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
        definition: of the campaign; trials of other grounds or contenders are left out.
        damaged: parts of the store that could not be read, to be told of.
        instructions: counts for the second model of flight time.
    """
    names = [c.name for c in definition.contenders]
    configs = {c.name: definition.config_of(c) for c in definition.contenders}
    labels = [e.label for e in definition.entries]
    everything = runs_of(trials, cycles)
    runs, strangers, again = chosen(everything, labels, names)
    by_slot: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        by_slot.setdefault((run.row["ground"], run.row["contender"]), []).append(run)

    flights = {n: FlightModel(configs[n], instructions) for n in names}
    grounds = [
        _block(label, {n: by_slot.get((label, n), []) for n in names}, flights) for label in labels
    ]
    whole = {n: [r for label in labels for r in by_slot.get((label, n), [])] for n in names}
    overall = _block(None, whole, flights)
    grounds, overall = _with_holm(grounds), _with_holm([overall])[0]
    entrants = [_entrant(n, configs[n], whole[n]) for n in names]
    analysis = Analysis(
        name=definition.name,
        description=definition.description,
        seed=definition.seed,
        planned=definition.trials * len(labels) * len(names),
        trials=len(runs),
        entrants=entrants,
        grounds=grounds,
        overall=overall,
        reliability={n: r for n in names if (r := _reliability(whole[n])).poses},
        failures=[_failure(r.row) for r in runs if not r.row["success"]],
        notes=(),
        assumptions=_assumptions(instructions),
        codes=dict(Counter(r.row["code"] for r in runs).most_common()),
    )
    return replace(
        analysis, notes=weak_points(analysis, definition, runs, strangers, again, damaged)
    )


def _block(
    label: str | None, runs: Mapping[str, Sequence[Run]], flights: Mapping[str, FlightModel]
) -> Block:
    first = next(iter(runs))
    rows = [r.row for mine in runs.values() for r in mine]
    return Block(
        label=label,
        slope_deg=next((r.get("slope_deg") for r in rows), None) if label else None,
        cfa=next((r.get("cfa") for r in rows), None) if label else None,
        figures={n: figures(mine, flights[n]) for n, mine in runs.items()},
        against={n: _against(runs[first], mine) for n, mine in runs.items() if n != first},
    )


def _mean(values: F64) -> float | None:
    return float(values.mean()) if len(values) else None


def _joined(arrays: Sequence[F64]) -> F64:
    return np.concatenate(arrays) if arrays else np.zeros(0)


def figures(runs: Sequence[Run], flight: FlightModel) -> Figures:
    """Of runs of one contender."""
    counts, floors = _joined([r.evaluations for r in runs]), _joined([r.floors for r in runs])
    driven = [r for r in runs if r.number("cycles")]
    cycles = int(total(driven, "cycles"))
    per_cycle = [r.number("cycles") for r in driven]
    grounds = strata(driven)
    mean = pooled_mean([r.number("ace_evaluations") for r in driven], per_cycle, grounds)
    overthink = pooled_mean([r.number("overthinks") for r in driven], per_cycle, grounds)
    arrived = [r for r in runs if r.row.get("inefficiency") is not None]
    detour = paired_mean([r.row["inefficiency"] for r in arrived], strata(arrived))
    way, floor = total(runs, "driven_m"), _mean(floors)
    stages = _stage_ms(driven, cycles)
    walls = [r.row["wall_s"] for r in runs if r.row.get("wall_s") is not None]
    tilts = [r.row["tilt_max_rad"] for r in runs if r.row.get("tilt_max_rad") is not None]
    heights = [r.row["clearance_min_m"] for r in runs if r.row.get("clearance_min_m") is not None]
    return Figures(
        trials=len(runs),
        safety=safety_of([r.row for r in runs]),
        success=Rate(sum(bool(r.row["success"]) for r in runs), len(runs)),
        outcomes=dict(Counter(r.row["outcome"] for r in runs).most_common()),
        cycles=cycles,
        evaluations=Spread(
            mean,
            float(np.median(counts)) if len(counts) else None,
            float(np.percentile(counts, 95)) if len(counts) else None,
            float(counts.max()) if len(counts) else None,
        ),
        distribution=Distribution(*ecdf(counts)),
        evaluations_per_m=total(runs, "ace_evaluations") / way if way else None,
        overthink=overthink,
        floor=floor,
        over_floor=mean.value / floor if mean.value is not None and floor else None,
        inefficiency=detour,
        inferences=total(driven, "inferences") / cycles if cycles else None,
        risk_used=total(driven, "risk_used") / cycles if cycles else None,
        stage_ms=stages,
        plan_ms=sum(v for k, v in stages.items() if k not in WORLD_STAGES) if stages else None,
        wall_s=_mean(np.array(walls, np.float64)),
        flight=flight.of(driven, cycles),
        events=sum(r.number("events") > 0 for r in runs),
        retried=sum(r.number("attempts") > 1 for r in runs),
        tilt_max_rad=max(tilts, default=None),
        clearance_min_m=min(heights, default=None),
        rejects=rejects(runs),
        faults=dict(Counter(f for r in runs for f in r.row.get("faults") or ()).most_common()),
    )


def _stage_ms(runs: Sequence[Run], cycles: int) -> dict[str, float]:
    if not cycles:
        return {}
    return {stage: 1e3 * total(runs, f"wall_{stage}_s") / cycles for stage in STAGES}


# ----------------------------------------------------------------------------- against the first


def _against(first: Sequence[Run], this: Sequence[Run]) -> Against:
    others = {r.slot: r for r in first}
    pairs = [(others[r.slot], r) for r in this if r.slot in others]
    both = [(a, b) for a, b in pairs if a.row["success"] and b.row["success"]]
    driven = [(a, b) for a, b in pairs if a.number("cycles") and b.number("cycles")]
    detours = [
        (a, b)
        for a, b in both
        if a.row.get("inefficiency") is not None and b.row.get("inefficiency") is not None
    ]
    detour = paired_mean(
        [b.row["inefficiency"] - a.row["inefficiency"] for a, b in detours],
        strata([b for _, b in detours]),
    )
    successes = (
        [bool(b.row["success"]) for _, b in pairs],
        [bool(a.row["success"]) for a, _ in pairs],
    )
    test = mcnemar(*successes)
    return Against(
        pairs=len(pairs),
        both=len(both),
        ratio=_ratio(both),
        ratio_all=_ratio(driven),
        detour=detour,
        success=paired_rate_difference(*successes),
        only_first=test["only_b"],
        only_this=test["only_a"],
        p=test["p"] if pairs else None,
        p_holm=None,
    )


def _ratio(pairs: Sequence[tuple[Run, Run]]) -> Estimate:
    return paired_ratio(
        [a.number("ace_evaluations") for a, _ in pairs],
        [a.number("cycles") for a, _ in pairs],
        [b.number("ace_evaluations") for _, b in pairs],
        [b.number("cycles") for _, b in pairs],
        strata([b for _, b in pairs]),
    )


def _with_holm(blocks: Sequence[Block]) -> list[Block]:
    """The blocks with p values adjusted for all tests in them."""
    tests = [(i, n, a) for i, b in enumerate(blocks) for n, a in b.against.items()]
    tests = [(i, n, a) for i, n, a in tests if a.p is not None]
    adjusted = holm([a.p for _, _, a in tests if a.p is not None])
    values = {(i, n): p for (i, n, _), p in zip(tests, adjusted, strict=True)}
    return [
        replace(b, against={n: replace(a, p_holm=values.get((i, n))) for n, a in b.against.items()})
        for i, b in enumerate(blocks)
    ]


# ------------------------------------------------------------------------------------ its parts


class FlightModel:
    """Modelled flight time of a contender."""

    def __init__(self, config: Config, counts: Instructions | None) -> None:
        self._counts, self._note = counts, None if counts else "no instruction counts are shipped"
        self._checker, self._limits = config.checker.name, config.limits.name
        heuristic = config.heuristic.name
        self._predictor: str | None = None if heuristic == "none" else heuristic
        self._digest: str | None = None
        try:
            model = configured_model(config)
        except ModelError as fault:
            self._note = f"no instruction counts of its model: {fault}"
            return
        if model is not None:
            self._predictor, self._digest = model.name, model.sha256[:16]
        if counts is not None:
            self._note = counts.missing(self._checker, self._limits, self._predictor)

    def of(self, runs: Sequence[Run], cycles: int) -> Flight:
        """Of these runs, per cycle."""
        if not cycles:
            return Flight(None, None, self._note)
        ace_s = total(runs, "ace_evaluations") / cycles * MODELLED_S_PER_EVALUATION
        if self._counts is None or self._note is not None:
            return Flight(ace_s, None, self._note)
        if any(r.row.get("model") != self._digest for r in runs):
            return Flight(ace_s, None, "its trials ran another model than is here now")
        usage = Usage(
            cycles=cycles,
            risk_uses=int(total(runs, "risk_used")),
            rankings_again=int(sum(r.ranked_again for r in runs)),
            inferences=int(total(runs, "inferences")),
            evaluations=int(total(runs, "ace_evaluations")),
            rejected=sum(rejects(runs).values()),
            paths_tried=int(sum(r.paths_tried for r in runs)),
        )
        times = flight_seconds(self._counts, usage, self._checker, self._limits, self._predictor)
        return Flight(ace_s, {name: seconds / cycles for name, seconds in times.items()})


def _assumptions(counts: Instructions | None) -> list[str]:
    ace = f"(a) ACE evaluations x {1e3 * MODELLED_S_PER_EVALUATION:g} ms, the published RAD750"
    told = [f"{ace} figure; no other stage is in it"]
    if counts is not None:
        rates = ", ".join(f"{name} {per_s:.3g}/s" for name, per_s in PER_S.items())
        told.append(f"(b) counted instructions over {rates}: {counts.assumptions}")
    return told


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


def _entrant(name: str, config: Config, runs: Sequence[Run]) -> Entrant:
    return Entrant(
        name,
        **{
            part: getattr(config, part).name
            for part in ("planner", "checker", "limits", "heuristic", "world", "sensor",
                         "localization")
        },
        overthink_evaluations=config.planner.overthink_evaluations,
        models=sorted({m for r in runs if (m := r.row.get("model")) is not None}),
    )  # fmt: skip


def _failure(row: Row) -> Failure:
    return Failure(
        key=row["key"],
        ground=row["ground"],
        trial=row["trial"],
        contender=row["contender"],
        outcome=row["outcome"],
        faults=tuple(row.get("faults") or ()),
        error=row.get("error"),
        cycles=int(row.get("cycles") or 0),
        driven_m=row.get("driven_m"),
        code=row["code"],
    )
