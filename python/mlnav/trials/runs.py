"""Trials of a campaign with their cycles, from its two tables."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from mlnav.sim.records import was_unsafe
from mlnav.stats import F64
from mlnav.trials.records import Row

if TYPE_CHECKING:
    import pyarrow as pa


def _none() -> F64:
    return np.zeros(0)


@dataclass(frozen=True, eq=False)
class Run:
    """A trial with what its cycles add.

    Attributes:
        row: of the table of trials.
        evaluations: ACE evaluations, a number a cycle.
        floors: of the cycles that found a path.
        paths_tried: in all.
        ranked_again: cycles that ranked without a risk map, then with one.
    """

    row: Row
    evaluations: F64 = field(default_factory=_none)
    floors: F64 = field(default_factory=_none)
    paths_tried: float = 0.0
    ranked_again: float = 0.0

    @property
    def slot(self) -> tuple[str, int]:
        """Terrain and trial: what contenders share."""
        return self.row["terrain"], self.row["trial"]

    @property
    def success(self) -> bool:
        """The goal was reached, with no unsafe state on the way."""
        return bool(self.row["success"])

    @property
    def unsafe(self) -> bool:
        """It ended unsafe, or was beyond its limits on the way."""
        return was_unsafe(self.row)

    def number(self, column: str) -> float:
        """A figure of the row, 0 where the trial did not get so far."""
        return float(self.row.get(column) or 0.0)

    def known(self, column: str) -> float | None:
        """A figure of the row, None where there is none."""
        value = self.row.get(column)
        return None if value is None else float(value)


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of one contender, on a terrain or on all."""

    all: Sequence[Run]

    @cached_property
    def driven(self) -> list[Run]:
        """Those with cycles."""
        return [r for r in self.all if r.number("cycles")]

    @cached_property
    def cycles(self) -> int:
        """Planning cycles in all."""
        return int(self.total("cycles"))

    @cached_property
    def evaluations(self) -> F64:
        """ACE evaluations of every cycle."""
        return np.concatenate([_none(), *(r.evaluations for r in self.all)])

    @cached_property
    def floors(self) -> F64:
        """Of every cycle that found a path."""
        return np.concatenate([_none(), *(r.floors for r in self.all)])

    def total(self, column: str) -> float:
        """Sum of a column."""
        return sum(r.number(column) for r in self.all)

    def per_cycle(self, column: str) -> float | None:
        """Sum of a column over all cycles."""
        return self.total(column) / self.cycles if self.cycles else None

    def known(self, column: str) -> list[float]:
        """Values of a column, where there are any."""
        return [v for r in self.all if (v := r.known(column)) is not None]

    @cached_property
    def rejects(self) -> dict[str, int]:
        """Poses that ACE refused, by constraint, most first."""
        counts: Counter[str] = Counter()
        for run in self.all:
            counts.update(json.loads(run.row.get("rejects_json") or "{}"))
        return dict(counts.most_common())


def strata(runs: Iterable[Run]) -> list[int]:
    """A number for each terrain, of every run."""
    labels = [r.row["terrain"] for r in runs]
    places = {label: i for i, label in enumerate(dict.fromkeys(labels))}
    return [places[label] for label in labels]


def runs_of(trials: pa.Table, cycles: pa.Table) -> list[Run]:
    """Trials with their cycles; cycles of other trials are passed over."""
    import pyarrow as pa

    rows = trials.to_pylist()
    place = {row["key"]: i for i, row in enumerate(rows)}
    if cycles.num_rows:
        encoded = cycles.column("key").combine_chunks().dictionary_encode()
        of_key = np.array([place.get(k, -1) for k in encoded.dictionary.to_pylist()], np.intp)
        trial = of_key[encoded.indices.to_numpy()]
    else:
        trial = np.zeros(0, np.intp)
    order = np.argsort(trial, kind="stable")
    edges = np.searchsorted(trial[order], np.arange(len(rows) + 1))

    def column(name: str) -> F64:
        if not cycles.num_rows:
            return np.zeros(0)
        values = cycles.column(name).cast(pa.float64()).to_numpy()
        return np.asarray(values, np.float64)[order]

    evaluations, floors, tried = map(column, ("ace_evaluations", "ace_floor", "paths_tried"))
    again = column("risk_used") * column("risk_requested")
    found = []
    for i, row in enumerate(rows):
        mine = slice(edges[i], edges[i + 1])
        known = floors[mine][np.isfinite(floors[mine])]
        found.append(Run(row, evaluations[mine], known, tried[mine].sum(), again[mine].sum()))
    return found


def chosen(
    runs: Sequence[Run], labels: Sequence[str], names: Sequence[str]
) -> tuple[list[Run], int, int]:
    """One run for each trial and contender, in the definition's order; how many were left out.

    Where a trial was run by several versions of the code, the one that most trials have is taken.

    Returns:
        The runs; runs of other terrains or contenders; further runs of the same trials.
    """
    places = {label: i for i, label in enumerate(labels)}
    ranks = {name: i for i, name in enumerate(names)}
    known = [r for r in runs if r.row["terrain"] in places and r.row["contender"] in ranks]
    votes = Counter(r.row["code"] for r in known)

    def slot(run: Run) -> tuple[int, int, int]:
        return places[run.row["terrain"]], run.row["trial"], ranks[run.row["contender"]]

    known.sort(key=lambda r: (slot(r), -votes[r.row["code"]], r.row["code"], r.row["key"]))
    kept = [next(group) for _, group in groupby(known, key=slot)]
    return kept, len(runs) - len(known), len(known) - len(kept)
