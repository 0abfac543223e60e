"""Two campaigns side by side: what changed from one to the other, trial by trial where it can."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mlnav.campaign.analysis import FlightModel, analyse, figures
from mlnav.campaign.caveats import FEW_PAIRS
from mlnav.campaign.figures import Analysis, Change, ChangeBlock, Comparison, Figures, Note
from mlnav.campaign.store import Store
from mlnav.stats import (
    FEWEST_PAIRS,
    Estimate,
    Rate,
    holm,
    independent_ratio,
    mcnemar,
    paired_mean,
    paired_rate_difference,
    paired_ratio,
    rate_difference,
)
from mlnav.studies.instructions import load_instructions
from mlnav.trials.runs import Run, chosen, runs_of, strata

_SAME_TRIAL = (
    "terrain_seed", "run_seed", "drawn_json", "terrain_sha256", "start_x_m", "start_y_m",
    "goal_x_m", "goal_y_m",
)  # fmt: skip
"""Columns that trials must agree in to be a pair, as far as both have them."""

_SAME_RUN = ("outcome", "cycles", "ace_evaluations", "driven_m")

Runs = Mapping[tuple[str, str], Sequence[Run]]
"""By ground and contender."""


def compare(before: Store, after: Store) -> Comparison:
    """What changed from one campaign to another, for the contenders and grounds that both have."""
    (first, runs_before), (second, runs_after) = _read(before), _read(after)
    others = {e.name for e in second.entrants}
    names = [e.name for e in first.entrants if e.name in others]
    theirs = {b.label for b in second.grounds}
    labels = [b.label for b in first.grounds if b.label is not None and b.label in theirs]

    def block(label: str | None, places: Sequence[str]) -> ChangeBlock:
        def of(runs: Runs, name: str) -> list[Run]:
            return [r for place in places for r in runs.get((place, name), ())]

        def told(runs: Runs, store: Store) -> dict[str, Figures]:
            configs = {c.name: store.definition.config_of(c) for c in store.definition.contenders}
            return {n: figures(of(runs, n), FlightModel(configs[n], counts)) for n in names}

        return ChangeBlock(
            label=label,
            before=told(runs_before, before),
            after=told(runs_after, after),
            changes={n: change(of(runs_before, n), of(runs_after, n)) for n in names},
        )

    counts = load_instructions()
    comparison = Comparison(
        before=first,
        after=second,
        contenders=names,
        grounds=_with_holm([block(label, [label]) for label in labels]),
        overall=_with_holm([block(None, labels)])[0],
        settings={n: _settings(before, after, n) for n in names},
        notes=(),
    )
    notes = sorted(_notes(comparison, before, after), key=lambda note: not note.grave)
    return replace(comparison, notes=notes)


def _read(store: Store) -> tuple[Analysis, Runs]:
    trials, cycles, definition = store.trials(), store.cycles(), store.definition
    analysis = analyse(trials, cycles, definition, store.damaged, load_instructions())
    labels = [e.label for e in definition.entries]
    names = [c.name for c in definition.contenders]
    runs: dict[tuple[str, str], list[Run]] = {}
    for run in chosen(runs_of(trials, cycles), labels, names)[0]:
        runs.setdefault((run.row["ground"], run.row["contender"]), []).append(run)
    return analysis, runs


def change(before: Sequence[Run], after: Sequence[Run]) -> Change:
    """What changed between runs of a contender."""
    others = {r.slot: r for r in before}
    pairs = [(a, b) for b in after if (a := others.get(b.slot)) is not None and same_trial(a, b)]
    if not pairs:
        return _unpaired(before, after)
    both = [(a, b) for a, b in pairs if a.row["success"] and b.row["success"]]
    detours = [
        (a, b)
        for a, b in both
        if a.row["inefficiency"] is not None and b.row["inefficiency"] is not None
    ]
    then = [bool(a.row["success"]) for a, _ in pairs]
    now = [bool(b.row["success"]) for _, b in pairs]
    test = mcnemar(then, now)
    return Change(
        pairs=len(pairs),
        both=len(both),
        same=sum(all(a.row[c] == b.row[c] for c in _SAME_RUN) for a, b in pairs),
        paired=True,
        success=paired_rate_difference(now, then),
        only_before=test["only_a"],
        only_after=test["only_b"],
        p=test["p"],
        p_holm=None,
        ratio=paired_ratio(
            [a.number("ace_evaluations") for a, _ in both],
            [a.number("cycles") for a, _ in both],
            [b.number("ace_evaluations") for _, b in both],
            [b.number("cycles") for _, b in both],
            strata([b for _, b in both]),
        ),
        detour=paired_mean(
            [b.row["inefficiency"] - a.row["inefficiency"] for a, b in detours],
            strata([b for _, b in detours]),
        ),
    )


def same_trial(a: Run, b: Run) -> bool:
    """Whether two runs met the same terrain, start, goal, noise and dispersions."""
    pairs = ((a.row.get(c), b.row.get(c)) for c in _SAME_TRIAL)
    return all(x is None or y is None or x == y for x, y in pairs)


def _unpaired(before: Sequence[Run], after: Sequence[Run]) -> Change:
    driven = [[r for r in runs if r.number("cycles")] for runs in (before, after)]
    columns = [
        [r.number(c) for r in runs] for runs in driven for c in ("ace_evaluations", "cycles")
    ]
    return Change(
        pairs=0,
        both=0,
        same=0,
        paired=False,
        success=rate_difference(_rate(after), _rate(before)),
        only_before=0,
        only_after=0,
        p=None,
        p_holm=None,
        ratio=independent_ratio(*columns),
        detour=Estimate(None, None, 0),
    )


def _rate(runs: Sequence[Run]) -> Rate:
    return Rate(sum(bool(r.row["success"]) for r in runs), len(runs))


def _with_holm(blocks: Sequence[ChangeBlock]) -> list[ChangeBlock]:
    """The blocks with p values adjusted for all tests in them."""
    tests = [
        (i, n, c.p) for i, b in enumerate(blocks) for n, c in b.changes.items() if c.p is not None
    ]
    adjusted = holm([p for _, _, p in tests])
    values = {(i, n): p for (i, n, _), p in zip(tests, adjusted, strict=True)}
    return [
        replace(b, changes={n: replace(c, p_holm=values.get((i, n))) for n, c in b.changes.items()})
        for i, b in enumerate(blocks)
    ]


# -------------------------------------------------------------------------- what else differs


def _settings(before: Store, after: Store, name: str) -> list[tuple[str, str, str]]:
    """Keys of a contender's configuration that differ, with both values."""
    flat = []
    for store in (before, after):
        contender = next(c for c in store.definition.contenders if c.name == name)
        config = store.definition.config_of(contender)
        flat.append(dict(_leaves(config.model_dump(mode="json"), "")))
    then, now = flat
    keys = dict.fromkeys([*then, *now])
    return [
        (k, str(then.get(k, "–")), str(now.get(k, "–"))) for k in keys if then.get(k) != now.get(k)
    ]


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else str(key))
    else:
        yield path, value


def _notes(c: Comparison, before: Store, after: Store) -> Iterator[Note]:
    for side, analysis in (("before", c.before), ("after", c.after)):
        for note in analysis.notes:
            if note.grave:
                yield Note(f"{side}: {note.text}", True)
    if not c.contenders or not c.grounds:
        yield Note("The campaigns have no contender and ground in common.", True)
        return
    for what, left, right in (
        ("contenders", [e.name for e in c.before.entrants], [e.name for e in c.after.entrants]),
        ("grounds", [b.label for b in c.before.grounds], [b.label for b in c.after.grounds]),
    ):
        alone = sorted({str(x) for x in left} ^ {str(x) for x in right})
        if alone:
            yield Note(f"Left out, since one campaign alone has them: {what} {', '.join(alone)}.")
    for name, whole in c.overall.changes.items():
        trials = [f[name].trials for f in (c.overall.before, c.overall.after)]
        if not whole.paired and min(trials):
            yield Note(
                f"{name}: no trial of one campaign is one of the other. They are compared as"
                " different samples, evaluations over all cycles: only large changes show.",
                True,
            )
        elif whole.pairs < max(trials):
            yield Note(f"{name}: {whole.pairs} pairs of {trials[0]} and {trials[1]} trials.")
        if whole.paired and whole.same == whole.pairs:
            yield Note(f"{name}: all {whole.pairs} pairs went the same way to the last evaluation.")
    tests = [x for block in c.grounds for x in block.changes.values()]
    few = sum(x.paired and x.both < FEW_PAIRS for x in tests)
    if few:
        yield Note(
            f"{few} of {len(tests)} comparisons by ground rest on fewer than {FEW_PAIRS} pairs that"
            " reach the goal both times. Intervals of so few are too narrow; of fewer than"
            f" {FEWEST_PAIRS} none is given."
        )
    hosts = [sorted({str(p.get("host")) for p in s.provenance}) for s in (before, after)]
    if hosts[0] != hosts[1]:
        yield Note("They ran on different machines: wall times do not compare.")
