"""Trials run again from their records, bit for bit."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from mlnav.campaign.definition import CampaignError
from mlnav.campaign.store import CYCLES, REPLAYS, TRIALS, Store
from mlnav.sim import TraverseResult
from mlnav.sim.loop import Observer
from mlnav.trials.records import (
    CANNOT_RUN,
    MADE_WITH,
    NO_RUN,
    TIMES,
    Outcome,
    Row,
    drive,
    unfinished,
)
from mlnav.trials.scenarios import Scenario
from mlnav.trials.trial import Trial, TrialError

_OF_THE_RECORDING = ("key", "attempts", *MADE_WITH, *TIMES)
"""Columns that say how a trial was run, not what it did."""


@dataclass(frozen=True)
class Record:
    """A trial, and what is held of it.

    Attributes:
        trial: what to run.
        row: of the table of trials; None where nothing is held.
        cycles: of the table of cycles.
    """

    trial: Trial
    row: Row | None = None
    cycles: Sequence[Row] = ()


@dataclass(frozen=True)
class Difference:
    """A value that did not come again; `cycle` None: of the trial as a whole."""

    cycle: int | None
    column: str
    recorded: Any
    now: Any


@dataclass(frozen=True, eq=False)
class Replay:
    """A trial that ran again.

    Attributes:
        record: what it was run from.
        outcome: its records now.
        scenario: terrain, start and goal; None where there are none to be had.
        result: the run; None where it did not begin.
        differences: from the record; none where nothing is held.
        made_with: digests of code, model and terrain file that differ, then and now.
    """

    record: Record
    outcome: Outcome
    scenario: Scenario | None
    result: TraverseResult | None
    differences: Sequence[Difference]
    made_with: Mapping[str, tuple[str | None, str | None]]


def find(what: str, folder: str | os.PathLike[str] | None = None) -> Record:
    """The record of a trial.

    Args:
        what: its replay file; or, in a campaign, its key, the first digits of it, or
            `TERRAIN,NUMBER,CONTENDER`.
        folder: of the campaign; that which a replay file lies in by default.

    Raises:
        CampaignError: there is no such trial, or the file is damaged.
    """
    if Path(what).suffix == ".json":
        trial = _read(Path(what))
        home = Path(what).resolve().parent
        if folder is None and home.name == REPLAYS:
            folder = home.parent
        if folder is None:
            return Record(trial)
        store = Store(folder)
        same = [r for r in store.trials().to_pylist() if r["identity"] == trial.identity]
        return _with_cycles(store, trial, same[0]) if same else Record(trial)
    if folder is None:
        raise CampaignError(f"{what!r} is no replay file (.json): say which campaign it is of")
    store = Store(folder)
    row = store.find(what)
    for trial in store.definition.trials_of([row["trial"]]):
        if trial.identity == row["identity"]:
            return _with_cycles(store, trial, row)
    raise CampaignError(f"{folder}: trial {row['key']} is not of its definition, which was changed")


def _read(path: Path) -> Trial:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as fault:
        raise CampaignError(f"{path}: cannot be read: {fault}") from fault
    if not isinstance(data, dict):
        raise CampaignError(f"{path}: not a trial")
    try:
        return Trial.from_dict(data)
    except TrialError as fault:
        raise CampaignError(f"{path}: {fault}") from fault


def _with_cycles(store: Store, trial: Trial, row: Row) -> Record:
    return Record(trial, row, store.cycles(row["key"]).to_pylist())


def replay(record: Record, observers: Iterable[Observer] = ()) -> Replay:
    """Run a trial again, in this process: what it did to its own it does here.

    Raises:
        ModelError: its network cannot be used.
        KeyboardInterrupt: stopped from outside.
    """
    trial = record.trial
    scenario, result = None, None
    try:
        scenario = trial.scenario()
        outcome, result = drive(trial, scenario, observers)
    except CANNOT_RUN as fault:
        outcome = unfinished(trial, "error", f"{type(fault).__name__}: {fault}")
    then: Row = record.row or dict(trial.made_with)
    made_with = {k: (then[k], now) for k, now in trial.made_with.items() if then[k] != now}
    return Replay(record, outcome, scenario, result, _differences(record, outcome), made_with)


def _differences(record: Record, outcome: Outcome) -> list[Difference]:
    if record.row is None:
        return []
    (now,) = _as_stored([outcome.trial], TRIALS)
    if record.row["outcome"] in NO_RUN:
        # There is no run to compare with, only how it ended.
        columns = ("outcome", "error") if now["outcome"] in NO_RUN else ("outcome",)
        return _between(None, {k: record.row[k] for k in columns}, now)
    found = _between(None, record.row, now)
    for then, again in zip(record.cycles, _as_stored(outcome.cycles, CYCLES), strict=False):
        found += _between(then["cycle"], then, again)
    return found


def _as_stored(rows: Sequence[Row], schema: pa.Schema) -> list[Row]:
    return list(pa.Table.from_pylist(list(rows), schema).to_pylist())


def _between(cycle: int | None, then: Row, now: Row) -> list[Difference]:
    return [
        Difference(cycle, column, value, now[column])
        for column, value in then.items()
        if column not in _OF_THE_RECORDING and not _same(value, now[column])
    ]


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    return bool(a == b)
