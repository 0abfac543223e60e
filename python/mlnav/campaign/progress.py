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
    """How far a campaign is.

    Attributes:
        done: trials that have ended, those of earlier runs among them.
        total: that there are to be; with a stopping rule, at most.
        failed: of those done, without a run: crashed, hung, out of memory, error.
        success: of those done.
        unsafe: of those done.
        left_s: seconds that the rest will take at the pace so far; None: not known yet.
        last: the trial that ended last, in words.
    """

    done: int
    total: int
    failed: int
    success: Rate
    unsafe: Rate
    left_s: float | None
    last: str = ""


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
    """How a campaign stands.

    Attributes:
        name: of the campaign.
        done: trials that have ended.
        total: that there are to be; with a stopping rule, at most.
        complete: nothing is left to run.
        outcomes: how many ended how.
        figures: of each contender, those of `FIGURES`.
        out_of_work: what to say of heuristics that had no map where they were asked, by contender.
        writer: who runs it now.
        left_s: seconds that the rest will take, while it runs.
        runs: how often it was run, resumed or rerun.
        damaged: parts that cannot be read, and why.
    """

    name: str
    done: int
    total: int
    complete: bool
    outcomes: Mapping[str, int]
    figures: Mapping[str, Figures]
    out_of_work: Mapping[str, str]
    writer: str | None
    left_s: float | None
    runs: int
    damaged: Sequence[str]

    @property
    def failed(self) -> int:
        """Trials without a run."""
        return sum(self.outcomes.get(outcome, 0) for outcome in NO_RUN)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**plain(self), "failed": self.failed}


def status(folder: str | os.PathLike[str]) -> Status:
    """How a campaign stands; others may be running it meanwhile.

    Raises:
        CampaignError: there is none, or it is of a newer mlnav.
    """
    store = Store(folder)
    store.require_own()
    definition = store.definition
    rows = store.rows((*BRIEF, "run"))
    by_name = {n: [r for r in rows if r["contender"] == n] for n in definition.names}
    each = len(definition.all_terrains) * len(definition.names)
    by_number = Counter(row["trial"] for row in rows)
    number = 0
    while not (ended := enough(definition, number, rows)) and by_number[number] == each:
        number += 1
    writer = writer_of(store.folder)
    return Status(
        definition.name,
        len(rows),
        each * definition.trials,
        ended,
        dict(Counter(row["outcome"] for row in rows).most_common()),
        {n: figures(Runs(list(map(Run, mine))), FIGURES) for n, mine in by_name.items()},
        {n: idle for n, mine in by_name.items() if (idle := _out_of_work(mine)) is not None},
        writer,
        _left_s(store, rows, each * definition.trials) if writer and not ended else None,
        len(store.provenance),
        store.damaged,
    )


def _out_of_work(rows: Sequence[Row]) -> str | None:
    asked, missing = (sum(r[c] or 0 for r in rows) for c in ("risk_asked", "risk_missing"))
    return out_of_work(asked, missing)


def _left_s(store: Store, rows: Sequence[Row], total: int) -> float | None:
    now_running = len(store.provenance) - 1
    ended: int = sum(row["run"] == now_running for row in rows)
    if not ended:
        return None
    began = datetime.fromisoformat(store.provenance[-1]["started_utc"])
    pace_s: float = (datetime.now(UTC) - began).total_seconds() / ended
    return pace_s * (total - len(rows))
