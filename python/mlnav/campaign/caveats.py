"""Weak points of a campaign, found in its figures: what a reader should keep in mind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from mlnav.campaign.definition import Definition
from mlnav.campaign.figures import Analysis, Note
from mlnav.campaign.status import NO_RUN, enough
from mlnav.config import Config
from mlnav.sim.metrics import out_of_work
from mlnav.stats import FEWEST_PAIRS
from mlnav.trials.runs import Run, total

FEW_PAIRS = 20
"""Fewer are told of: intervals of so few pairs are too narrow."""

WIDE = 0.2
"""Width of a success rate's interval beyond which it is called rough."""


def weak_points(
    analysis: Analysis,
    definition: Definition,
    runs: Sequence[Run],
    strangers: int,
    again: int,
    damaged: Sequence[object],
) -> list[Note]:
    """What is weak about a campaign: unsafe runs, then grave points, then others.

    Args:
        analysis: its figures.
        definition: what was asked for.
        runs: trials that the figures rest on.
        strangers: trials of grounds or contenders that the definition does not have.
        again: trials that were run more than once, under different keys.
        damaged: parts of the store that could not be read.
    """
    notes = list(_of_store(analysis, definition, runs, strangers, again, damaged))
    if runs:
        configs = {c.name: definition.config_of(c) for c in definition.contenders}
        notes += _of_safety(analysis)
        notes += _of_runs(analysis, runs)
        notes += _of_fairness(configs)
        notes += _of_size(analysis)
    return sorted(notes, key=lambda note: (not note.unsafe, not note.grave))


def _of_store(
    analysis: Analysis,
    definition: Definition,
    runs: Sequence[Run],
    strangers: int,
    again: int,
    damaged: Sequence[object],
) -> Iterator[Note]:
    if damaged:
        parts = ", ".join(str(d) for d in damaged)
        yield Note(f"Parts of the store cannot be read; what they held is missing: {parts}.", True)
    if not analysis.trials:
        yield Note("There are no trials, so there are no figures.", True)
        return
    missing = analysis.planned - analysis.trials
    if missing and not _stopped(definition, runs):
        yield Note(f"{missing} of {analysis.planned} trials have not been run, or are lost.", True)
    elif missing and definition.stop is not None:
        stop = definition.stop
        yield Note(
            f"{analysis.trials} of at most {analysis.planned} trials were run: the campaign ends"
            f" once {stop.figure} is known to {stop.width:g}. Intervals of a campaign that looks at"
            " them while it runs are somewhat too narrow."
        )
    if strangers:
        yield Note(
            f"{strangers} trials of grounds or contenders that the definition does not have are"
            " left out."
        )
    if again:
        yield Note(
            f"{again} trials are there more than once, of other code or another model; one of each"
            " is counted, of the code that ran most."
        )
    if len(analysis.codes) > 1:
        told = ", ".join(f"{code}: {n}" for code, n in analysis.codes.items())
        yield Note(
            f"Trials were run by {len(analysis.codes)} versions of the code ({told}). What differs"
            " between them is mixed into every figure.",
            True,
        )


def _stopped(definition: Definition, runs: Sequence[Run]) -> bool:
    """Whether there are trials enough for the definition's rule to stop at."""
    slots = Counter((r.row["ground"], r.row["contender"]) for r in runs)
    everyone = len(definition.entries) * len(definition.contenders)
    least = min(slots.values()) if len(slots) == everyone else 0
    return enough(definition, least, [r.row for r in runs])


def _of_safety(analysis: Analysis) -> Iterator[Note]:
    for name, f in analysis.overall.figures.items():
        unsafe = f.safety.unsafe
        if not unsafe.hits:
            continue
        told = f"{name}: {unsafe.hits} of {unsafe.trials} trials were unsafe, {unsafe.text(1)}"
        if f.safety.unsafe_per_km is not None:
            told += f", {f.safety.unsafe_per_km:.2f} per driven km"
        causes = ", ".join(f"{c.replace('_', ' ')} {n}" for c, n in f.safety.causes.items())
        rates = [
            (str(block.label), block.figures[name].safety.unsafe) for block in analysis.grounds
        ]
        rates = [(label, rate) for label, rate in rates if rate.hits]
        rates.sort(key=lambda entry: -(entry[1].value or 0.0))
        grounds = ", ".join(f"{label} {rate.hits} of {rate.trials}" for label, rate in rates)
        yield Note(f"{told}. Broken first: {causes}. By ground: {grounds}.", unsafe=True)


def _of_runs(analysis: Analysis, runs: Sequence[Run]) -> Iterator[Note]:
    lost = Counter(r.row["outcome"] for r in runs if r.row["outcome"] in NO_RUN)
    if lost:
        told = ", ".join(f"{kind.replace('_', ' ')} {n}" for kind, n in lost.most_common())
        yield Note(f"{lost.total()} trials were lost ({told}); they count as failures.", True)
    torn = sum(r.number("cycles") != len(r.evaluations) for r in runs)
    if torn:
        yield Note(
            f"Cycles of {torn} trials are missing: medians, percentiles, floors and distributions"
            " are without them.",
            True,
        )
    for entrant in analysis.entrants:
        name, f = entrant.name, analysis.overall.figures[entrant.name]
        if len(entrant.models) > 1:
            yield Note(f"{name}: its trials ran {len(entrant.models)} different models.", True)
        if entrant.heuristic != "none" and f.cycles and not f.risk_used:
            asked = total([r for r in runs if r.row["contender"] == name], "risk_requested")
            why = f"{asked:.0f} were asked for" if asked else "none was asked for"
            yield Note(
                f"{name}: no risk map was ever used ({why}); it drove as the bare planner.",
                asked > 0,
            )
        mine = [r for r in runs if r.row["contender"] == name]
        idle = out_of_work(int(total(mine, "risk_asked")), int(total(mine, "risk_missing")))
        if idle is not None:
            yield Note(f"{name}: {idle}; there it drove as the bare planner.", True)
        if f.events:
            yield Note(
                f"{name}: in {f.events} of {f.trials} trials something did not go as configured, a"
                " risk map that was missing or broken above all.",
                True,
            )
        if f.retried:
            yield Note(f"{name}: {f.retried} trials were begun more than once.")
    files = {(r.row["ground"], r.row.get("ground_file")) for r in runs}
    changed = [g for g, n in Counter(ground for ground, _ in files).items() if n > 1]
    if changed:
        yield Note(
            f"The files of these grounds changed between trials: {', '.join(changed)}.", True
        )
    if not any(r.row["success"] for r in runs):
        yield Note("No trial reached its goal: there are no pairs to compare efforts on.", True)


_UNLIKE = {
    "checker": "an ACE evaluation of one is not an evaluation of another",
    "limits": "what is safe for one is not safe for another",
    "rover": "they are different rovers",
    "world": "they did not drive in the same world",
    "sensor": "they did not see the same",
}


def _of_fairness(configs: Mapping[str, Config]) -> Iterator[Note]:
    for part, why in _UNLIKE.items():
        if len({getattr(c, part).model_dump_json() for c in configs.values()}) > 1:
            yield Note(f"Contenders differ in their {part}: {why}.")


def _of_size(analysis: Analysis) -> Iterator[Note]:
    tests = [a for block in analysis.grounds for a in block.against.values()]
    few = sum(a.both < FEW_PAIRS for a in tests)
    if few:
        yield Note(
            f"{few} of {len(tests)} comparisons by ground rest on fewer than {FEW_PAIRS} pairs"
            f" where both reach the goal, the least on {min(a.both for a in tests)}. Intervals of"
            f" so few are too narrow; of fewer than {FEWEST_PAIRS} none is given."
        )
    if len(tests) > 1:
        misses = max(1, round(0.05 * len(tests)))
        yield Note(
            f"Each interval by ground is a 95 % one by itself; of {len(tests)}, expect {misses} to"
            f" miss. p values by ground are adjusted for {len(tests)} tests (Holm)."
        )
    for name, a in analysis.overall.against.items():
        if a.pairs and a.both < 0.5 * a.pairs:
            yield Note(
                f"{name} and {analysis.first} both reach the goal in {a.both} of {a.pairs} pairs:"
                " ratios and inefficiencies are of the easier part of the ground."
            )
    rough = {
        name: 50.0 * (f.success.interval[1] - f.success.interval[0])
        for name, f in analysis.overall.figures.items()
        if f.success.interval is not None
    }
    told = ", ".join(f"{n} ±{half:.0f}" for n, half in rough.items() if half > 50.0 * WIDE)
    if told:
        yield Note(f"Success rates are rough, in percentage points: {told}.")
