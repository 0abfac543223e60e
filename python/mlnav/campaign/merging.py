"""Campaigns put together."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from mlnav.campaign.definition import CampaignError
from mlnav.campaign.joining import joined
from mlnav.campaign.store import (
    PROVENANCE,
    REPLAYS,
    Store,
    Writer,
    create,
    locked,
    writing,
)
from mlnav.io import write_json
from mlnav.trials.provenance import provenance
from mlnav.trials.records import MADE_WITH


def merge(
    folders: Sequence[str | os.PathLike[str]],
    into: str | os.PathLike[str],
    *,
    keep_old: bool = False,
) -> Store:
    """Put campaigns together that differ in terrains, contenders or number of trials alone.

    Of a trial that several hold the result recorded last is taken.

    Args:
        folders: of the campaigns; they stay as they are.
        into: a folder for the whole.
        keep_old: also where results were made with different code, models or terrain files.

    Raises:
        CampaignError: they do not go together, a part cannot be read, or `into` holds a campaign or
            cannot be written.
    """
    stores = [Store(folder) for folder in folders]
    for store in stores:
        store.verify()
        store.require_own()
        if store.damaged:
            raise CampaignError(
                f"{store.damaged[0]}: `mlnav campaign resume {store.folder}` runs its trials again"
            )
    definition = joined([(str(s.folder), s.definition) for s in stores])
    tables = [store.trials() for store in stores]
    if not keep_old:
        _refuse_mixture(tables)
    latest: dict[str, tuple[datetime, int]] = {}
    for i, table in enumerate(tables):
        for identity, recorded in zip(
            table["identity"].to_pylist(), table["recorded_utc"].to_pylist(), strict=True
        ):
            latest[identity] = max(latest.get(identity, (recorded, i)), (recorded, i))
    path = Path(into)
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)
        with locked(path):
            create(path, definition)
            entries = [{**e, "folder": str(s.folder)} for s in stores for e in s.provenance]
            write_json(path / PROVENANCE, entries)
            before = 0
            with Writer(path, {"what": "merge", **provenance()}) as writer:
                for i, (store, table) in enumerate(zip(stores, tables, strict=True)):
                    mine = [latest[identity][1] == i for identity in table["identity"].to_pylist()]
                    _copy(store, table.filter(pa.array(mine, pa.bool_())), before, writer)
                    before += len(store.provenance)
            for store in stores:
                for replay in (store.folder / REPLAYS).glob("*.json"):
                    (path / REPLAYS).mkdir(exist_ok=True)
                    shutil.copyfile(replay, path / REPLAYS / replay.name)
    return Store(path)


_PART_TRIALS = 2000


def _copy(store: Store, trials: pa.Table, runs_before: int, writer: Writer) -> None:
    place = trials.schema.get_field_index("run")
    field = trials.schema.field(place)
    runs = pc.add(trials["run"], pa.scalar(runs_before, field.type))
    trials = trials.set_column(place, field, runs)
    cycles = store.cycles()
    for first in range(0, trials.num_rows, _PART_TRIALS):
        part = trials.slice(first, _PART_TRIALS)
        writer.add_part(part, cycles.filter(pc.is_in(cycles["key"], value_set=part["key"])))


def _refuse_mixture(tables: Sequence[pa.Table]) -> None:
    rows = [r for t in tables for r in t.select(["terrain", "contender", *MADE_WITH]).to_pylist()]
    seen: dict[tuple[str, str | None], str | None] = {}
    for row in rows:
        owner = {"code": None, "model": row["contender"], "terrain_file": row["terrain"]}
        owner["parts"] = row["contender"]
        for what, whose in owner.items():
            known = seen.setdefault((what, whose), row[what])
            if known != row[what]:
                raise CampaignError(
                    f"results were made with different {what.replace('_', ' ')}s: {known} and"
                    f" {row[what]}; --keep-old puts them together all the same"
                )
