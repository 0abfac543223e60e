"""How a campaign stands: what has ended, and whether that is enough."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from mlnav.campaign.definition import Definition
from mlnav.campaign.store import Store, writer_of
from mlnav.sim.records import out_of_work
from mlnav.stats import Rate, pooled_mean
from mlnav.trials.metrics import Figures, figures, metric, plain
from mlnav.trials.records import NO_RUN, Row
from mlnav.trials.runs import Run, Runs

BRIEF = ("identity", "terrain", "trial", "contender", "outcome", "success", "ace_evaluations",
          "cycles", "driven_m", "unsafe_states", "unsafe_constraint", "risk_asked",
          "risk_missing")  # fmt: skip
"""Columns of the trials that all this takes."""

FIGURES = tuple(map(metric, ("unsafe", "unsafe_per_km", "success")))
"""Metrics that status tells."""


@dataclass(frozen=True)
class Progress:
    """How far a campaign is."""

    done: int  # trials that have ended, those of earlier runs among them
    total: int  # trials that there are to be; with a stopping rule, at most
    failed: int  # of those done, without a run: crashed, hung, out of memory, error
    success: Rate
    unsafe: Rate
    left_s: float | None  # that the rest will take at the pace so far; None: not known yet
    last: str = ""  # the trial that ended last, in words


def in_words(row: Row) -> str:
    """A trial and how it ended."""
    outcome = row["outcome"].replace("_", " ")
    return f"{row['terrain']} {row['trial']}, {row['contender']}: {outcome}"


def enough(definition: Definition, number: int, rows: Iterable[Row]) -> bool:
    """Whether trials 0 to `number` - 1 of everyone are enough, all of which have ended."""
    stop = definition.stop
    if number >= definition.trials:
        return True
    if stop is None or number < stop.at_least:
        return False
    before = [r for r in rows if r["trial"] < number]
    return all(
        _width(stop.figure, [r for r in before if r["contender"] == c.name]) <= stop.width
        for c in definition.contenders
    )


def _width(figure: str, rows: Sequence[Row]) -> float:
    """Of a figure's interval; of evaluations a cycle, as a share of it."""
    if figure == "success":
        interval, scale = Rate(sum(r["success"] for r in rows), len(rows)).interval, 1.0
    else:
        terrains = sorted({r["terrain"] for r in rows})
        mean = pooled_mean(
            [float(r["ace_evaluations"] or 0) for r in rows],
            [float(r["cycles"]) for r in rows],
            [terrains.index(r["terrain"]) for r in rows],
        )
        interval, scale = mean.interval, mean.value or 0.0
    return float("inf") if interval is None or not scale else (interval[1] - interval[0]) / scale


@dataclass(frozen=True)
class Status:
    """How a campaign stands."""

    name: str
    done: int  # trials that have ended
    total: int  # trials that there are to be; with a stopping rule, at most
    complete: bool  # nothing is left to run
    outcomes: Mapping[str, int]  # how many ended how
    figures: Mapping[str, Figures]  # of each contender, those of `FIGURES`
    out_of_work: Mapping[str, str]  # by contender, whose heuristic had no map where it was asked
    writer: str | None  # who runs it now
    left_s: float | None  # that the rest will take, while it runs
    runs: int  # how often it was run, resumed or rerun
    damaged: Sequence[str]  # parts that cannot be read, and why

    @property
    def failed(self) -> int:
        """Trials without a run."""
        return sum(self.outcomes.get(outcome, 0) for outcome in NO_RUN)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**plain(self), "failed": self.failed}


def status(folder: str | os.PathLike[str]) -> Status:
    """How a campaign stands; others may be running it. Raises CampaignError: as of `Store`."""
    store = Store(folder)
    store.require_own()
    definition = store.definition
    rows = store.rows((*BRIEF, "run"))
    by_name = {n: Runs([Run(r) for r in rows if r["contender"] == n]) for n in definition.names}
    each = len(definition.all_terrains) * len(definition.names)
    by_number = Counter(row["trial"] for row in rows)
    number = 0
    while not (ended := enough(definition, number, rows)) and by_number[number] == each:
        number += 1
    writer, total = writer_of(store.folder), each * definition.trials
    return Status(
        definition.name,
        len(rows),
        total,
        ended,
        dict(Counter(row["outcome"] for row in rows).most_common()),
        {n: figures(mine, FIGURES) for n, mine in by_name.items()},
        {n: idle for n, mine in by_name.items() if (idle := without_map(mine)) is not None},
        writer,
        _left_s(store, rows, total) if writer and not ended else None,
        len(store.provenance),
        store.damaged,
    )


def without_map(runs: Runs) -> str | None:
    """What to say of a heuristic that had no map where it was asked; None: nothing."""
    return out_of_work(int(runs.total("risk_asked")), int(runs.total("risk_missing")))


def _left_s(store: Store, rows: Sequence[Row], total: int) -> float | None:
    ended: int = sum(row["run"] == len(store.provenance) - 1 for row in rows)
    if not ended:
        return None
    began = datetime.fromisoformat(store.provenance[-1]["started_utc"])
    return (datetime.now(UTC) - began).total_seconds() / ended * (total - len(rows))
