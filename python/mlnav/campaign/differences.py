"""Two campaigns side by side: what changed from one to the other, trial by trial where it can."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mlnav.campaign.analysis import (
    FORMAT,
    Against,
    Analysis,
    Block,
    Slots,
    against,
    analyse,
    block,
    by_slot,
    gathered,
    with_holm,
)
from mlnav.campaign.caveats import FEW_PAIRS, Caveat
from mlnav.campaign.store import Store
from mlnav.stats import FEWEST_PAIRS
from mlnav.trials.flight_time import FlightModel, load_instructions
from mlnav.trials.metrics import plain
from mlnav.trials.runs import Run, chosen, runs_of

_SAME_TRIAL = (
    "terrain_seed", "run_seed", "drawn_json", "terrain_sha256", "start_x_m", "start_y_m",
    "goal_x_m", "goal_y_m",
)  # fmt: skip
"""Columns that trials must agree in to be a pair, as far as both have them."""


@dataclass(frozen=True)
class Comparison:
    """Two campaigns side by side."""

    before: Analysis
    after: Analysis
    contenders: Sequence[str]  # that both have
    terrains: Sequence[tuple[Block, Block]]
    """Those that both have: before, and after with changes from before in `against`."""
    overall: tuple[Block, Block]  # likewise, of all these
    settings: Mapping[str, Sequence[tuple[str, str, str]]]
    """By contender, what its configuration differs in: key, before, after."""
    notes: Sequence[Caveat]  # what to keep in mind

    @property
    def blocks(self) -> list[tuple[Block, Block]]:
        """Terrains, then all together where there are several."""
        return [*self.terrains, *([self.overall] if len(self.terrains) > 1 else ())]

    @property
    def changes(self) -> Mapping[str, Against]:
        """Over all terrains, by contender."""
        return self.overall[1].against

    def as_dict(self) -> dict[str, Any]:
        """For JSON; figures of each campaign alone are in its own report."""
        data: dict[str, Any] = plain(self)
        for side in ("before", "after"):
            data[side] = {k: data[side][k] for k in ("name", "seed", "trials", "codes", "entrants")}
        return {"format": FORMAT, **data}


def compare(before: Store, after: Store) -> Comparison:
    """What changed from one campaign to another, for the contenders and terrains that both have."""
    (first, second), slots = zip(*map(_read, (before, after)), strict=True)
    theirs = {e.name for e in second.entrants}
    names = [e.name for e in first.entrants if e.name in theirs]
    labels = [x for x in before.definition.labels if x in set(after.definition.labels)]
    counts = load_instructions()
    flights = [
        {n: FlightModel(c, counts) for n, c in store.definition.configs.items() if n in names}
        for store in (before, after)
    ]

    def pair(label: str | None, places: Sequence[str]) -> tuple[Block, Block]:
        runs = [gathered(side, places, names) for side in slots]
        then, now = (block(label, r, f) for r, f in zip(runs, flights, strict=True))
        changes = {n: against(runs[0][n], runs[1][n], same_trial) for n in names}
        return then, replace(now, against=changes)

    pairs = [pair(label, [label]) for label in labels]
    changed = with_holm([now for _, now in pairs])
    then, now = pair(None, labels)
    comparison = Comparison(
        before=first,
        after=second,
        contenders=names,
        terrains=list(zip([b for b, _ in pairs], changed, strict=True)),
        overall=(then, with_holm([now])[0]),
        settings={n: _settings(before, after, n) for n in names},
        notes=(),
    )
    return replace(comparison, notes=list(_notes(comparison, before, after)))


def _read(store: Store) -> tuple[Analysis, Slots]:
    definition, trials, cycles = store.definition, store.trials(), store.cycles()
    analysis = analyse(trials, cycles, definition, store.damaged, load_instructions())
    runs, _, _ = chosen(runs_of(trials, cycles), definition.labels, definition.names)
    return analysis, by_slot(runs)


def same_trial(a: Run, b: Run) -> bool:
    """Whether two runs met the same terrain, start, goal, noise and dispersions."""
    pairs = ((a.row.get(c), b.row.get(c)) for c in _SAME_TRIAL)
    return all(x is None or y is None or x == y for x, y in pairs)


# -------------------------------------------------------------------------- what else differs


def _settings(before: Store, after: Store, name: str) -> list[tuple[str, str, str]]:
    """Keys of a contender's configuration that differ, with both values."""
    then, now = (
        dict(_leaves(store.definition.configs[name].model_dump(mode="json"), ""))
        for store in (before, after)
    )
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


def _notes(c: Comparison, before: Store, after: Store) -> Iterator[Caveat]:
    for side, analysis in (("before", c.before), ("after", c.after)):
        yield from (Caveat(f"{side}: {n.text}", True) for n in analysis.notes if n.grave)
    if not c.contenders or not c.terrains:
        yield Caveat("The campaigns have no contender and terrain in common.", True)
        return
    for what, left, right in (
        ("contenders", before.definition.names, after.definition.names),
        ("terrains", before.definition.labels, after.definition.labels),
    ):
        if alone := sorted(set(left) ^ set(right)):
            yield Caveat(f"Left out, since one campaign alone has them: {what} {', '.join(alone)}.")
    then, now = c.overall
    for name, change in c.changes.items():
        trials = [int(b.figures[name].number("trials") or 0) for b in (then, now)]
        if change.pairs is None:
            if min(trials):
                yield Caveat(
                    f"{name}: no trial of one campaign is one of the other. They are compared as"
                    " different samples, evaluations over all cycles: only large changes show.",
                    True,
                )
            continue
        if change.pairs < max(trials):
            yield Caveat(f"{name}: {change.pairs} pairs of {trials[0]} and {trials[1]} trials.")
        if change.same == change.pairs:
            yield Caveat(
                f"{name}: all {change.pairs} pairs went the same way to the last evaluation."
            )
    tests = [x for _, b in c.terrains for x in b.against.values()]
    if few := sum(x.pairs is not None and x.both < FEW_PAIRS for x in tests):
        yield Caveat(
            f"{few} of {len(tests)} comparisons by terrain rest on fewer than {FEW_PAIRS} pairs"
            " that reach the goal both times. Intervals of so few are too narrow; of fewer than"
            f" {FEWEST_PAIRS} none is given."
        )
    hosts = [sorted({str(p.get("host")) for p in s.provenance}) for s in (before, after)]
    if hosts[0] != hosts[1]:
        yield Caveat("They ran on different machines: wall times do not compare.")
