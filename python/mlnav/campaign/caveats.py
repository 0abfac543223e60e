"""Caveats: weak points of a campaign, found by rule in its figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlnav.campaign.definition import Definition
from mlnav.campaign.progress import enough
from mlnav.stats import FEWEST_PAIRS, PerExposure
from mlnav.trials.records import NO_RUN
from mlnav.trials.runs import Run, Runs

if TYPE_CHECKING:
    from mlnav.campaign.analysis import Analysis

FEW_PAIRS = 20
"""With fewer there is a caveat: intervals of so few pairs are too narrow."""

WIDE = 0.2
"""Width of a success rate's interval beyond which it is called rough."""

_UNLIKE = {
    "checker": "an ACE evaluation of one is not an evaluation of another",
    "limits": "what is safe for one is not safe for another",
    "rover": "they are different rovers",
    "world": "they did not drive in the same world",
    "sensor": "they did not see the same",
}
"""Parts that contenders should share, and why."""


@dataclass(frozen=True)
class Caveat:
    """A weak point of a campaign."""

    text: str
    grave: bool = False  # it puts figures in doubt
    unsafe: bool = False  # it tells of unsafe runs


def caveats(
    analysis: Analysis,
    definition: Definition,
    runs: Sequence[Run],
    foreign: int,
    repeated: int,
    damaged: Sequence[object],
) -> Iterator[Caveat]:
    """Caveats of a campaign, in no order.

    Args:
        analysis: its figures.
        definition: what was asked for.
        runs: trials that the figures rest on.
        foreign: trials of terrains or contenders that the definition does not have.
        repeated: trials that were run more than once, under different keys.
        damaged: parts of the store that could not be read.
    """
    if damaged:
        parts = ", ".join(str(d) for d in damaged)
        yield Caveat(f"Parts of the store cannot be read, their trials are missing: {parts}.", True)
    if not analysis.trials:
        yield Caveat("There are no trials, so there are no figures.", True)
        return
    missing = analysis.planned - analysis.trials
    if missing and not _stopped(definition, runs):
        yield Caveat(f"{missing} of {analysis.planned} trials have not run, or are lost.", True)
    elif missing and definition.stop is not None:
        stop = definition.stop
        yield Caveat(
            f"{analysis.trials} of at most {analysis.planned} trials were run: the campaign ends"
            f" once {stop.figure} is known to {stop.width:g}. Intervals of a campaign that looks at"
            " them while it runs are somewhat too narrow."
        )
    if foreign:
        yield Caveat(
            f"{foreign} trials of terrains or contenders that the definition does not have are"
            " left out."
        )
    if repeated:
        yield Caveat(
            f"{repeated} trials are there more than once, of other code or another model; one of"
            " each is counted, of the code that ran most."
        )
    if len(analysis.codes) > 1:
        text = ", ".join(f"{code}: {n}" for code, n in analysis.codes.items())
        yield Caveat(
            f"Trials were run by {len(analysis.codes)} versions of the code ({text}). What differs"
            " between them is mixed into every figure.",
            True,
        )
    yield from _of_safety(analysis)
    yield from _of_runs(analysis, runs)
    configs = definition.configs.values()
    for part, why in _UNLIKE.items():
        if len({getattr(c, part).model_dump_json() for c in configs}) > 1:
            yield Caveat(f"Contenders differ in their {part}: {why}.")
    yield from _of_size(analysis)


def _stopped(definition: Definition, runs: Sequence[Run]) -> bool:
    """Whether there are trials enough for the definition's rule to stop at."""
    slots = Counter((r.row["terrain"], r.row["contender"]) for r in runs)
    least = min(slots[label, name] for label in definition.labels for name in definition.names)
    return enough(definition, least, [r.row for r in runs])


def _of_safety(analysis: Analysis) -> Iterator[Caveat]:
    for name, f in analysis.overall.figures.items():
        unsafe, per_km = f.rate("unsafe"), f["unsafe_per_km"]
        if not unsafe.hits:
            continue
        text = f"{name}: {unsafe.hits} of {unsafe.trials} trials were unsafe, {unsafe.text(1)}"
        if isinstance(per_km, PerExposure):
            text += f", {per_km.value:.2f} per driven km"
        causes = ", ".join(f"{c.replace('_', ' ')} {n}" for c, n in f.counts("causes").items())
        rates = [(str(b.label), b.figures[name].rate("unsafe")) for b in analysis.terrains]
        rates = [(label, rate) for label, rate in rates if rate.hits]
        rates.sort(key=lambda entry: -(entry[1].value or 0.0))
        terrains = ", ".join(f"{label} {rate.hits} of {rate.trials}" for label, rate in rates)
        yield Caveat(f"{text}. Broken first: {causes}. By terrain: {terrains}.", unsafe=True)


def _of_runs(analysis: Analysis, runs: Sequence[Run]) -> Iterator[Caveat]:
    if lost := Counter(r.row["outcome"] for r in runs if r.row["outcome"] in NO_RUN):
        text = ", ".join(f"{kind.replace('_', ' ')} {n}" for kind, n in lost.most_common())
        yield Caveat(f"{lost.total()} trials were lost ({text}); they count as failures.", True)
    if torn := sum(r.number("cycles") != len(r.evaluations) for r in runs):
        yield Caveat(
            f"Cycles of {torn} trials are missing: medians, percentiles, floors and distributions"
            " are without them.",
            True,
        )
    for entrant in analysis.entrants:
        name, f = entrant.name, analysis.overall.figures[entrant.name]
        if len(entrant.models) > 1:
            yield Caveat(f"{name}: its trials ran {len(entrant.models)} different models.", True)
        mine = Runs([r for r in runs if r.row["contender"] == name])
        if entrant.parts["heuristic"] != "none" and mine.cycles and not mine.total("risk_used"):
            asked = mine.total("risk_requested")
            why = f"{asked:.0f} were asked for" if asked else "none was asked for"
            yield Caveat(
                f"{name}: no risk map was ever used ({why}); it drove as the bare planner.",
                asked > 0,
            )
        if entrant.out_of_work is not None:
            yield Caveat(
                f"{name}: {entrant.out_of_work}; there it drove as the bare planner.", True
            )
        if events := f.number("events"):
            yield Caveat(
                f"{name}: in {events:.0f} of {f.number('trials'):.0f} trials something did not go"
                " as configured, a risk map that was missing or broken above all.",
                True,
            )
        if retried := f.number("retried"):
            yield Caveat(f"{name}: {retried:.0f} trials were begun more than once.")
    files = {(r.row["terrain"], r.row.get("terrain_file")) for r in runs}
    if changed := [g for g, n in Counter(ground for ground, _ in files).items() if n > 1]:
        yield Caveat(
            f"The files of these terrains changed between trials: {', '.join(changed)}.", True
        )
    if not any(r.row["success"] for r in runs):
        yield Caveat("No trial reached its goal: there are no pairs to compare efforts on.", True)


def _of_size(analysis: Analysis) -> Iterator[Caveat]:
    tests = [a for block in analysis.terrains for a in block.against.values()]
    if few := sum(a.both < FEW_PAIRS for a in tests):
        yield Caveat(
            f"{few} of {len(tests)} comparisons by terrain rest on fewer than {FEW_PAIRS} pairs"
            f" where both reach the goal, the least on {min(a.both for a in tests)}. Intervals of"
            f" so few are too narrow; of fewer than {FEWEST_PAIRS} none is given."
        )
    if len(tests) > 1:
        misses = max(1, round(0.05 * len(tests)))
        yield Caveat(
            f"Each interval by terrain is a 95 % one by itself; of {len(tests)}, expect {misses} to"
            f" miss. p values by terrain are adjusted for {len(tests)} tests (Holm)."
        )
    for name, a in analysis.overall.against.items():
        if a.pairs and a.both < 0.5 * a.pairs:
            yield Caveat(
                f"{name} and {analysis.first} both reach the goal in {a.both} of {a.pairs} pairs:"
                " ratios and inefficiencies are of the easier terrain."
            )
    rough = {
        name: 50.0 * (interval[1] - interval[0])
        for name, f in analysis.overall.figures.items()
        if (interval := f.rate("success").interval) is not None
    }
    if text := ", ".join(f"{n} ±{half:.0f}" for n, half in rough.items() if half > 50.0 * WIDE):
        yield Caveat(f"Success rates are rough, in percentage points: {text}.")
