"""What records of a comparison say: each contender in numbers, and each against each."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlnav.bench.compare import COMPARED, Comparison, Contender
from mlnav.bench.runner import Record
from mlnav.bench.traverses import evaluation_statistics, outcomes_of, stage_ms
from mlnav.sim.metrics import MODELLED_S_PER_EVALUATION, out_of_work
from mlnav.stats import Estimate, Rate, mcnemar, paired_mean, paired_ratio
from mlnav.studies.instructions import PER_S, Instructions, Usage, flight_seconds
from mlnav.trials.safety import ENDINGS, ending_of, safety_of

WORLD_STAGES = ("sense", "drive")
"""Stages of the simulation; the others are what a rover computes."""

ASSUMPTIONS_ACE = (
    f"(a) ACE evaluations x {1e3 * MODELLED_S_PER_EVALUATION:g} ms, the published RAD750 figure;"
    " no other stage is in it"
)


def report(
    comparison: Comparison,
    runs: Sequence[Record],
    states: Sequence[Record] = (),
    instructions: Instructions | None = None,
) -> dict[str, Any]:
    """The comparison in numbers; the README has the fields.

    Args:
        comparison: what was compared.
        runs: records of `compare`.
        states: records of `same_states`.
        instructions: counts for the second model of flight time; left out without.
    """
    labels = [e.label for e in comparison.entries]
    blocks = {
        label: _block(
            comparison,
            [r for r in runs if r["entry"] == label],
            [r for r in states if r["entry"] == label],
            instructions,
        )
        for label in labels
    }
    overall = _block(comparison, runs, states, instructions)
    assumptions = [ASSUMPTIONS_ACE]
    if instructions is None:
        assumptions.append("(b) left out: no instruction counts are shipped")
    else:
        rates = ", ".join(f"{name} {per_s:.3g}/s" for name, per_s in PER_S.items())
        assumptions.append(f"(b) counted instructions over {rates}: {instructions.assumptions}")
    everyone = comparison.contenders
    return {
        **{
            f"{part}s": list(dict.fromkeys(getattr(c.config, part).name for c in everyone))
            for part in COMPARED
        },
        **comparison.setting,
        "pairs": comparison.pairs,
        "overthink_evaluations": comparison.base.planner.overthink_evaluations,
        "contenders": {
            c.name: {
                **{part: getattr(c.config, part).name for part in COMPARED},
                "config": c.digest,
            }
            for c in everyone
        },
        "assumptions": assumptions,
        "terrains": blocks,
        "overall": overall,
        # Over everything, where whoever looks for one number looks first.
        "ratio": overall["ratio"],
        "ratio_ci95": overall["ratio_ci95"],
    }


def _block(
    comparison: Comparison,
    runs: Sequence[Record],
    states: Sequence[Record],
    instructions: Instructions | None,
) -> dict[str, Any]:
    by_contender = {
        c.name: _ordered([r for r in runs if r["config"] == c.digest])
        for c in comparison.contenders
    }
    planned = {
        c.name: _ordered([r for r in states if r["config"] == c.digest])
        for c in comparison.contenders
    }
    block: dict[str, Any] = {
        "pairs": len(next(iter(by_contender.values()))),
        "contenders": {
            c.name: contender_statistics(c, by_contender[c.name], instructions)
            for c in comparison.contenders
        },
    }
    for a, b in itertools.permutations(by_contender, 2):
        against = _against(by_contender[a], by_contender[b]) | _same(planned[a], planned[b])
        for name, value in against.items():
            block.setdefault(name, {})[f"{a}/{b}"] = value
    return block


def _ordered(records: list[Record]) -> list[Record]:
    """Records of a contender in the order that pairs them with those of another."""
    return sorted(records, key=lambda r: (r["entry"], r["pair"]))


# ---------------------------------------------------------------------------------- one contender


def contender_statistics(
    contender: Contender, runs: Sequence[Record], instructions: Instructions | None = None
) -> dict[str, Any]:
    """Numbers of a contender over runs: over all of their cycles, successful or not.

    `evaluations_over_floor` is evaluations per cycle over the floor per cycle, the latter over
    cycles that found a path. Inefficiency is of successful runs.
    """
    counts = np.array([n for r in runs for n in r["evaluations"]], np.float64)
    floors = np.array(
        [n for r in runs for n in r["by_cycle"]["floor"] if n is not None], np.float64
    )
    driven = sum(r["driven_m"] for r in runs)
    inferences, used = _total(runs, "inferences"), _total(runs, "risk_used")
    detours = [r["inefficiency"] for r in runs if r["inefficiency"] is not None]
    cycles = len(counts)
    stages = stage_ms(runs)
    floor = float(floors.mean()) if len(floors) and floors.any() else None
    mean = float(counts.mean()) if cycles else None
    overthink = contender.config.planner.overthink_evaluations
    flight: dict[str, Any] = {
        "ace_s_per_cycle": None if mean is None else mean * MODELLED_S_PER_EVALUATION
    }
    if instructions is not None:
        flight |= _instructions(contender, runs, instructions)
    return {
        "runs": len(runs),
        "safety": safety_of(runs).as_dict(),
        "endings": {e: sum(ending_of(r) == e for r in runs) for e in ENDINGS},
        "success": Rate(sum(r["success"] for r in runs), len(runs)).as_dict(),
        "outcomes": outcomes_of(runs),
        "cycles": cycles,
        "evaluations_per_cycle": evaluation_statistics(counts),
        "evaluations_per_m": float(counts.sum() / driven) if driven else None,
        "overthink_rate": float((counts > overthink).mean()) if cycles else None,
        "floor_per_cycle": floor,
        "evaluations_over_floor": mean / floor if mean is not None and floor else None,
        "evaluations_above_floor": mean - floor if mean is not None and floor else None,
        "inefficiency": float(np.mean(detours)) if detours else None,
        "inferences_per_cycle": inferences / cycles if cycles else None,
        "risk_used_rate": used / cycles if cycles else None,
        "wall_ms_per_cycle": wall_ms(stages) if cycles else None,
        "stage_ms_per_cycle": stages,
        "modelled_flight": flight,
        "out_of_work": out_of_work(
            sum(r.get("risk_asked", 0) for r in runs), sum(r.get("risk_missing", 0) for r in runs)
        ),
        "events": sorted({e for r in runs for e in r["events"]["distinct"]}),
    }


def _total(runs: Sequence[Record], what: str) -> int:
    return sum(sum(r["by_cycle"].get(what, ())) for r in runs)


def wall_ms(stages: dict[str, float]) -> float:
    """Time of all that a rover computes, inference included; finer stages have a dot."""
    return sum(v for k, v in stages.items() if "." not in k and k not in WORLD_STAGES)


def _instructions(
    contender: Contender, runs: Sequence[Record], counts: Instructions
) -> dict[str, Any]:
    config = contender.config
    predictor = contender.predictor
    why = counts.missing(config.checker.name, config.limits.name, predictor)
    if why is not None:
        return {"instructions_s_per_cycle": None, "note": why}
    cycles = sum(r["cycles"] for r in runs)
    if not cycles:
        return {"instructions_s_per_cycle": None}
    usage = Usage(
        cycles=cycles,
        risk_uses=_total(runs, "risk_used"),
        rankings_again=_total(runs, "ranked_again"),
        inferences=_total(runs, "inferences"),
        evaluations=sum(r["ace_evaluations"] for r in runs),
        rejected=_total(runs, "rejected"),
        paths_tried=_total(runs, "paths_tried"),
    )
    pair = config.checker.name, config.limits.name
    return {
        "instructions_per_cycle": counts.total(usage, *pair, predictor) / cycles,
        "instructions_s_per_cycle": {
            name: seconds / cycles
            for name, seconds in flight_seconds(counts, usage, *pair, predictor).items()
        },
    }


# ----------------------------------------------------------------------------- one against another


def _against(a: Sequence[Record], b: Sequence[Record]) -> dict[str, Any]:
    """A over B. `ratio` and `wall_ratio` are over pairs where both succeed."""
    pairs = list(zip(a, b, strict=True))
    assert all((p["entry"], p["pair"]) == (q["entry"], q["pair"]) for p, q in pairs)
    both = [(p, q) for p, q in pairs if p["success"] and q["success"]]
    differences = paired_mean(
        [p["inefficiency"] - q["inefficiency"] for p, q in both], _strata(both)
    )
    test = mcnemar([p["success"] for p in a], [q["success"] for q in b])
    return {
        **_told("ratio", _ratio(both, "ace_evaluations")),
        "ratio_pairs": len(both),
        **_told("ratio_all_cycles", _ratio(pairs, "ace_evaluations")),
        **_told("wall_ratio", _wall_ratio(both)),
        **_told("inefficiency_difference", differences),
        "success_test": test,
    }


Pairs = list[tuple[Record, Record]]


def _strata(pairs: Pairs) -> list[int]:
    labels = list(dict.fromkeys(p["entry"] for p, _ in pairs))
    return [labels.index(p["entry"]) for p, _ in pairs]


def _ratio(pairs: Pairs, what: str) -> Estimate:
    return paired_ratio(
        [p[what] for p, _ in pairs],
        [p["cycles"] for p, _ in pairs],
        [q[what] for _, q in pairs],
        [q["cycles"] for _, q in pairs],
        _strata(pairs),
    )


def _wall_ratio(pairs: Pairs) -> Estimate:
    return paired_ratio(
        [wall_ms(p["timing"]["stage_s"]) for p, _ in pairs],
        [p["cycles"] for p, _ in pairs],
        [wall_ms(q["timing"]["stage_s"]) for _, q in pairs],
        [q["cycles"] for _, q in pairs],
        _strata(pairs),
    )


def _same(a: Sequence[Record], b: Sequence[Record]) -> dict[str, Any]:
    """From the same states: over those from which both find a path."""
    top: list[float] = []
    bottom: list[float] = []
    strata: list[int] = []
    labels = list(dict.fromkeys(r["entry"] for r in a))
    for p, q in zip(a, b, strict=True):
        for i, (x, y) in enumerate(zip(p["evaluations"], q["evaluations"], strict=True)):
            if p["found"][i] and q["found"][i]:
                top.append(x)
                bottom.append(y)
                strata.append(labels.index(p["entry"]))
    if not a:
        return {}
    ones = [1.0] * len(top)
    return {
        **_told("same_state_ratio", paired_ratio(top, ones, bottom, ones, strata)),
        "same_states": len(top),
    }


def _told(name: str, estimate: Estimate) -> dict[str, Any]:
    interval = None if estimate.interval is None else list(estimate.interval)
    return {name: estimate.value, f"{name}_ci95": interval}


# ----------------------------------------------------------------------------------------- Markdown

_SAFETY_HEADINGS = (
    "",
    "unsafe",
    "unsafe, 95 %",
    "unsafe/km",
    "unsafe states/km",
    "broken first",
    *(e for e in ENDINGS if e != "unsafe"),
)

_HEADINGS = (
    "",
    "success",
    "evaluations a cycle: mean, p95",
    "mean / floor",
    "overthink",
    "inefficiency",
    "maps a cycle",
    "wall ms a cycle",
    "flight s a cycle (a)",
    "ratio, 95 %",
)


def markdown(summary: dict[str, Any]) -> str:
    """A report's tables as Markdown: of each terrain one of safety and one of effort."""
    names = list(summary["contenders"])
    first = names[0]
    lines = [
        f"# {', '.join(names)}",
        "",
        f"Checker {summary['checker']}, limits {summary['limits']}, {summary['pairs']} pairs a"
        f" terrain from seed {summary['seed']}. Overthink: a cycle above"
        f" {summary['overthink_evaluations']} evaluations. Ratio: ACE evaluations a cycle of"
        f" {first} over this one's, on pairs where both succeed. Unsafe: runs that ended beyond the"
        " limits, or were beyond them on the way; per km: of way driven in all runs.",
    ]
    blocks = dict(summary["terrains"])
    if len(blocks) > 1:
        blocks["all"] = summary["overall"]
    for label, block in blocks.items():
        lines += ["", f"## {label}", ""]
        lines += [_row(_SAFETY_HEADINGS), _row(["---"] * len(_SAFETY_HEADINGS))]
        lines += [_row([name, *_safety(block["contenders"][name])]) for name in names]
        lines += ["", _row(_HEADINGS), _row(["---"] * len(_HEADINGS))]
        lines += [_row([name, *_numbers(block, first, name)]) for name in names]
    for name in names:
        idle = summary["overall"]["contenders"][name]["out_of_work"]
        if idle is not None:
            lines += ["", f"**{name}: {idle}.**"]
    lines += ["", "## Assumptions", ""]
    return "\n".join([*lines, *(f"- {text}" for text in summary["assumptions"])]) + "\n"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _safety(contender: dict[str, Any]) -> list[str]:
    safety, endings = contender["safety"], contender["endings"]
    rate = safety["unsafe"]
    causes = ", ".join(f"{c.replace('_', ' ')} {n}" for c, n in safety["causes"].items())
    return [
        f"{rate['hits']}/{rate['trials']}",
        Rate(rate["hits"], rate["trials"]).text(1),
        _text(safety["unsafe_per_km"], 2),
        _text(safety["unsafe_states_per_km"], 1),
        causes or "-",
        *(str(endings[e]) for e in ENDINGS if e != "unsafe"),
    ]


def _numbers(block: dict[str, Any], first: str, name: str) -> list[str]:
    c = block["contenders"][name]
    counts, rate = c["evaluations_per_cycle"], c["success"]
    ratio = "-"
    if name != first:
        key = f"{first}/{name}"
        ratio, interval = _text(block["ratio"][key], 2), block["ratio_ci95"][key]
        if interval is not None:
            ratio += f" [{interval[0]:.2f}, {interval[1]:.2f}]"
    overthink = c["overthink_rate"]
    return [
        f"{rate['hits']}/{rate['trials']}",
        f"{_text(counts['mean'], 1)}, {_text(counts['p95'], 0)}",
        _text(c["evaluations_over_floor"], 2),
        "-" if overthink is None else f"{100.0 * overthink:.1f} %",
        _text(c["inefficiency"], 2),
        _text(c["inferences_per_cycle"], 2),
        _text(c["wall_ms_per_cycle"], 1),
        _text(c["modelled_flight"]["ace_s_per_cycle"], 2),
        ratio,
    ]


def _text(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:z.{digits}f}"
