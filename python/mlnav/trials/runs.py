"""Trials of a campaign with their cycles, from its two tables."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import pyarrow as pa

from mlnav.stats import F64
from mlnav.trials.trial import Row


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
    evaluations: F64
    floors: F64
    paths_tried: float
    ranked_again: float

    @property
    def slot(self) -> tuple[str, int]:
        """Ground and trial: what contenders share."""
        return self.row["ground"], self.row["trial"]

    def number(self, column: str) -> float:
        """A figure of the row, 0 where the trial did not get so far."""
        return float(self.row.get(column) or 0.0)


def runs_of(trials: pa.Table, cycles: pa.Table) -> list[Run]:
    """Trials with their cycles; cycles of other trials are passed over."""
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
    """Runs of the definition, one a trial and contender, in its order; how many were left out.

    Where a trial was run by several versions of the code, the one that most trials have is taken.
    """
    places = {label: i for i, label in enumerate(labels)}
    ranks = {name: i for i, name in enumerate(names)}
    known = [r for r in runs if r.row["ground"] in places and r.row["contender"] in ranks]
    votes = Counter(r.row["code"] for r in known)

    def slot(run: Run) -> tuple[int, int, int]:
        return places[run.row["ground"]], run.row["trial"], ranks[run.row["contender"]]

    known.sort(key=lambda r: (slot(r), -votes[r.row["code"]], r.row["code"], r.row["key"]))
    kept = [next(group) for _, group in groupby(known, key=slot)]
    return kept, len(runs) - len(known), len(known) - len(kept)


def strata(runs: Sequence[Run]) -> list[int]:
    """A number for each ground, of every run."""
    places = {label: i for i, label in enumerate(dict.fromkeys(r.row["ground"] for r in runs))}
    return [places[r.row["ground"]] for r in runs]


def total(runs: Iterable[Run], column: str) -> float:
    """Sum of a column of their rows."""
    return sum(r.number(column) for r in runs)


def rejects(runs: Iterable[Run]) -> dict[str, int]:
    """Poses that ACE refused, by constraint, most first."""
    counts: Counter[str] = Counter()
    for run in runs:
        counts.update(json.loads(run.row.get("rejects_json") or "{}"))
    return dict(counts.most_common())
