"""A campaign's folder: what was asked for, and records of trials and cycles as Parquet.

    campaign.yaml             the definition, every default written out
    provenance.json           what each run, resume or rerun was made with
    parts/trials-000001.parquet, parts/cycles-000001.parquet, ...
    replays/KEY.json          trials that have no run: crashed, hung, out of memory, error
    lock                      held while somebody writes

Parts only ever come in addition, each under a temporary name first. The cycles of a batch are there
before its trials; a batch counts from when its trials are there. A trial that ran more than once
has a row for each run in the parts; `Store.trials` and `Store.cycles` hold the newest alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mlnav.campaign.definition import CampaignError, Definition, parse_definition
from mlnav.io import write_json, write_text
from mlnav.terrain import canonical
from mlnav.trials.records import CYCLE_COLUMNS, TRIAL_COLUMNS, Column, Outcome, Row

SCHEMA = 3
"""Of the tables. A store of another is refused, but columns may be added: those that a store lacks
are null."""

_SCHEMA_KEY = b"mlnav_schema"

_TYPES = {
    "string": pa.string(),
    "bool": pa.bool_(),
    "double": pa.float64(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "list<string>": pa.list_(pa.string()),
    "list<double>": pa.list_(pa.float64()),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


def _schema(columns: Iterable[Column]) -> pa.Schema:
    types = {column.name: _TYPES[column.type] for column in columns}
    return pa.schema(types, metadata={_SCHEMA_KEY: str(SCHEMA)})


TRIALS, CYCLES = _schema(TRIAL_COLUMNS), _schema(CYCLE_COLUMNS)

DEFINITION, PROVENANCE, LOCK = "campaign.yaml", "provenance.json", "lock"
PARTS, REPLAYS = "parts", "replays"
_CONTENT = (DEFINITION, PROVENANCE, PARTS, REPLAYS)

FLUSH_TRIALS = 256
FLUSH_LEAST_S, FLUSH_MOST_S, FLUSH_SHARE = 2.0, 60.0, 0.02
"""A part is written this long after the last: a share of the time that the run has taken, so that
few parts come of long campaigns, and a runner that is killed loses little."""


# ----------------------------------------------------------------------------------------- reading


class Store:
    """A campaign as it was when this was made, with the newest row of each trial.

    Attributes:
        folder: where it is.
        definition: what was asked for.
        provenance: what each run, resume or rerun was made with, in order.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Read a campaign.

        Raises:
            CampaignError: there is none, its definition is damaged, or it is of a newer mlnav.
        """
        self.folder = Path(folder)
        self.definition = read_definition(self.folder)
        self.provenance = read_provenance(self.folder)
        self._damaged: dict[int, str] = {}
        self._trials: dict[int, pa.Table] = {}
        for number in part_numbers(self.folder, "trials"):
            self._open(number)

    @property
    def damaged(self) -> tuple[str, ...]:
        """Parts that cannot be read, and why. Their trials count as not yet run."""
        return tuple(self._damaged[number] for number in sorted(self._damaged))

    def trials(self) -> pa.Table:
        """A row a trial: by terrain and contender in the definition's order, and number."""
        return self._ordered(
            [self._trials[n].take(pa.array(rows)) for n, rows in self._newest.items()], TRIALS
        )

    def cycles(self, key: str | None = None) -> pa.Table:
        """A row a cycle, in the order of the trials; of all, or of the trial with a key."""
        tables = []
        for number, rows in self._newest.items():
            keys = self._trials[number]["key"].take(pa.array(rows))
            if key is not None:
                keys = keys.filter(pc.equal(keys, key))
            table = self._read("cycles", number, CYCLES) if len(keys) else None
            if table is None:
                continue
            if len(keys) < self._trials[number].num_rows:
                table = table.filter(pc.is_in(table["key"], value_set=keys))
            tables.append(table)
        return self._ordered(tables, CYCLES)

    def rows(self, columns: Sequence[str]) -> list[Row]:
        """Some columns of the trials, as dictionaries."""
        return list(self.trials().select(list(columns)).to_pylist())

    def find(self, name: str) -> Row:
        """The row of a trial by its key or the first digits of it, or `TERRAIN,NUMBER,CONTENDER`.

        Raises:
            CampaignError: there is none, or the digits fit several.
        """
        terrain, *rest = name.rsplit(",", 2)
        name = ",".join([canonical(terrain), *rest])
        table = self.trials()
        keys = table["key"].to_pylist()
        places = zip(
            *(table[c].to_pylist() for c in ("terrain", "trial", "contender")), strict=True
        )
        found = [
            i
            for i, (key, place) in enumerate(zip(keys, places, strict=True))
            if key.startswith(name) or name == ",".join(map(str, place))
        ]
        if len(found) == 1:
            return dict(table.slice(found[0], 1).to_pylist()[0])
        fits = f"{len(found)} trials fit" if found else "no trial"
        raise CampaignError(
            f"{self.folder}: {fits} {name!r}; give a key, or TERRAIN,NUMBER,CONTENDER"
        )

    def require_own(self) -> None:
        """Make sure that the trials are of the definition as it stands in the folder.

        Raises:
            CampaignError: it was changed since, so that it would speak of other trials.
        """
        held = {(row["identity"], row["trial"]) for row in self.rows(("identity", "trial"))}
        own = {t.identity for t in self.definition.trials_of(sorted({n for _, n in held}))}
        foreign = sum(identity not in own for identity, _ in held)
        if foreign:
            raise CampaignError(
                f"{self.folder} holds {foreign} trials that are not of its {DEFINITION}, which was"
                " changed since"
            )

    def verify(self) -> None:
        """Read everything, so that parts with any damage count as damaged."""
        for number in list(self._trials):
            if self._read("cycles", number, CYCLES) is None:
                del self._trials[number]
        self.__dict__.pop("_newest", None)

    @cached_property
    def _newest(self) -> dict[int, list[int]]:
        """Rows of each part that are the newest of their trials."""
        last: dict[str, tuple[int, int]] = {}
        for number, table in self._trials.items():
            for row, identity in enumerate(table["identity"].to_pylist()):
                last[identity] = (number, row)
        newest: dict[int, list[int]] = {}
        for number, row in sorted(last.values()):
            newest.setdefault(number, []).append(row)
        return newest

    def _open(self, number: int) -> None:
        trials = self._read("trials", number, TRIALS)
        if trials is None:
            return
        path = part_path(self.folder, "cycles", number)
        try:
            found = pq.read_metadata(path).num_rows
        except (OSError, pa.ArrowException) as fault:
            self._damage(number, path, fault)
            return
        expected = pc.sum(trials["cycles"]).as_py() or 0
        if found != expected:
            self._damage(number, path, f"holds {found} cycles of {expected}")
            return
        self._trials[number] = trials

    def _read(self, kind: str, number: int, schema: pa.Schema) -> pa.Table | None:
        path = part_path(self.folder, kind, number)
        try:
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                version = int((file.schema_arrow.metadata or {}).get(_SCHEMA_KEY, b"0"))
                if version == SCHEMA:
                    return _completed(file.read(), schema).cast(schema)
        except (OSError, ValueError, pa.ArrowException) as fault:
            self._damage(number, path, fault)
            return None
        raise CampaignError(
            f"{path} is of schema {version}, this mlnav reads schema {SCHEMA}: use the"
            f" {'newer' if version > SCHEMA else 'older'} mlnav that made it"
        )

    def _damage(self, number: int, path: Path, why: object) -> None:
        reason = " ".join(str(why).split())[:200]
        self._damaged[number] = f"{path}: {reason}"

    def _ordered(self, tables: list[pa.Table], schema: pa.Schema) -> pa.Table:
        if not tables:
            return schema.empty_table()
        table = pa.concat_tables(tables)
        terrain = _ranks(table["terrain"], self.definition.labels)
        contender = _ranks(table["contender"], self.definition.names)
        # A stable sort: cycles of a trial stay in the order that they were written in.
        order = np.lexsort((contender, table["trial"].to_numpy(), terrain))
        return table.take(pa.array(order)).combine_chunks()


def _ranks(column: pa.ChunkedArray, order: Sequence[str]) -> np.ndarray[Any, np.dtype[np.intp]]:
    place = {name: i for i, name in enumerate(order)}
    encoded = column.combine_chunks().dictionary_encode()
    ranks = np.array([place.get(n, len(place)) for n in encoded.dictionary.to_pylist()], np.intp)
    return ranks[np.asarray(encoded.indices, np.intp)]


def load(folder: str | os.PathLike[str]) -> Store:
    """The campaign in a folder.

    Raises:
        CampaignError: there is none, its definition is damaged, or it is of a newer mlnav.
    """
    return Store(folder)


def read_definition(folder: Path) -> Definition:
    """The definition of the campaign in a folder.

    Raises:
        CampaignError: there is no campaign, or its definition is damaged.
    """
    path = folder / DEFINITION
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise CampaignError(f"{folder} holds no campaign (no {DEFINITION})") from None
    except (OSError, UnicodeDecodeError) as fault:
        raise CampaignError(f"{path}: cannot be read: {fault}") from fault
    return parse_definition(text, str(path))


def read_provenance(folder: Path) -> list[dict[str, Any]]:
    """What each run, resume or rerun was made with; empty before the first.

    Raises:
        CampaignError: the file is damaged.
    """
    path = folder / PROVENANCE
    try:
        found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    except (OSError, ValueError) as fault:
        raise CampaignError(f"{path}: cannot be read: {fault}") from fault
    if not isinstance(found, list):
        raise CampaignError(f"{path}: not a list")
    return found


def part_path(folder: Path, kind: str, number: int) -> Path:
    """Of a part, of `trials` or `cycles`."""
    return folder / PARTS / f"{kind}-{number:06d}.parquet"


def _completed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """With null columns where the table has none of the schema's, in the schema's order."""
    for field in schema:
        if field.name not in table.column_names:
            table = table.append_column(field, pa.nulls(table.num_rows, field.type))
    return table.select(schema.names)


def part_numbers(folder: Path, kind: str) -> list[int]:
    """Numbers of the parts that are there, in order."""
    files = (folder / PARTS).glob(f"{kind}-*.parquet")
    numbers = (path.stem.removeprefix(f"{kind}-") for path in files)
    return sorted(int(number) for number in numbers if number.isdigit())


# ----------------------------------------------------------------------------------------- writing


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other writers out of a folder; ends with this process, however that ends.

    Raises:
        CampaignError: somebody else writes there, or nobody can.
    """
    with contextlib.ExitStack() as stack:
        with writing(folder):
            file = stack.enter_context(open(folder / LOCK, "ab", buffering=0))
            if not _flocked(file.fileno(), patience_s=1.0):
                raise CampaignError(
                    f"{folder} is being written by {_holder(folder)}: wait until it is over, or"
                    " end it"
                )
            file.truncate(0)
            file.write(f"process {os.getpid()} on {platform.node()}".encode())
        yield


def writer_of(folder: Path) -> str | None:
    """Who writes there now, `process 123 on host`; None: nobody."""
    try:
        with open(folder / LOCK, encoding="utf-8") as file:
            free = _flocked(file.fileno(), patience_s=0.0)
    except OSError:
        return None
    return None if free else _holder(folder)


def _flocked(descriptor: int, patience_s: float) -> bool:
    """Take the lock. Waits briefly, since `writer_of` holds it for a moment."""
    until = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(0.05)
        else:
            return True


def _holder(folder: Path) -> str:
    return (folder / LOCK).read_text(encoding="utf-8") or "another process"


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Tell faults of the disk as a `CampaignError`."""
    try:
        yield
    except OSError as fault:
        raise CampaignError(f"cannot write to {folder}: {fault.strerror or fault}") from fault


def create(folder: Path, definition: Definition) -> None:
    """Begin a campaign in a folder whose lock is held.

    Raises:
        CampaignError: the folder holds one already, or cannot be written.
    """
    for name in _CONTENT:
        if (folder / name).exists():
            raise CampaignError(
                f"{folder} holds a campaign already ({name}): `mlnav campaign resume {folder}` goes"
                " on with it; a new one needs a folder of its own (--out)"
            )
    with writing(folder):
        write_text(folder / DEFINITION, definition.to_yaml())


def remove(folder: Path) -> None:
    """Remove the campaign in a folder, and nothing else there.

    Raises:
        CampaignError: somebody writes there, or it cannot be removed.
    """
    if not folder.is_dir():
        return
    with locked(folder), writing(folder):
        for name in _CONTENT:
            if (folder / name).is_dir():
                shutil.rmtree(folder / name)
            else:
                (folder / name).unlink(missing_ok=True)


class Writer:
    """Adds records to a campaign; its lock must be held.

    Leaving it as a context writes what waits, also when it is left by Ctrl-C.
    """

    def __init__(self, folder: Path, about: Mapping[str, Any]) -> None:
        """Begin a run of the campaign.

        Args:
            folder: of the campaign.
            about: this run, for provenance.json.

        Raises:
            CampaignError: the folder cannot be written.
        """
        self._folder = folder
        self._about = {**about, "started_utc": _now()}
        self._earlier = read_provenance(folder)
        self._waiting: list[Outcome] = []
        self._begin_s = self._flushed_s = time.monotonic()
        with writing(folder):
            (folder / PARTS).mkdir(exist_ok=True)
            trials, cycles = (part_numbers(folder, kind) for kind in ("trials", "cycles"))
            for orphan in set(cycles) - set(trials):
                part_path(folder, "cycles", orphan).unlink()
            for left in (folder / PARTS).glob(".*.parquet"):
                left.unlink()
            self._next = max([*trials, *cycles], default=0) + 1
            self._tell()

    def add(self, outcome: Outcome) -> None:
        """Add the records of a trial; they are on the disk within a while.

        Raises:
            CampaignError: the folder cannot be written; what waited is lost.
        """
        outcome.trial["recorded_utc"] = datetime.now(UTC)
        outcome.trial["run"] = len(self._earlier)
        self._waiting.append(outcome)
        now = time.monotonic()
        pause = min(max(FLUSH_LEAST_S, FLUSH_SHARE * (now - self._begin_s)), FLUSH_MOST_S)
        if len(self._waiting) >= FLUSH_TRIALS or now - self._flushed_s >= pause:
            self.flush()

    def add_replay(self, key: str, trial: Mapping[str, Any]) -> None:
        """Keep a trial that has no run, for another try at it.

        Raises:
            CampaignError: the folder cannot be written.
        """
        with writing(self._folder):
            write_json(self._folder / REPLAYS / f"{key}.json", trial)

    def flush(self) -> None:
        """Write a part of what waits.

        Raises:
            CampaignError: the folder cannot be written; what waited is lost.
        """
        if not self._waiting:
            return
        trials = [o.trial for o in self._waiting]
        cycles = [row for o in self._waiting for row in o.cycles]
        try:
            with writing(self._folder):
                self.add_part(
                    pa.Table.from_pylist(trials, TRIALS), pa.Table.from_pylist(cycles, CYCLES)
                )
        except CampaignError as fault:
            self._waiting = []
            raise CampaignError(
                f"{fault}; {len(trials)} trials that ended since the last part are lost. Once there"
                f" is room or leave to write, `mlnav campaign resume {self._folder}` runs them"
                " again"
            ) from fault
        self._waiting = []
        self._flushed_s = time.monotonic()

    def add_part(self, trials: pa.Table, cycles: pa.Table) -> None:
        """Write a part."""
        number = self._next
        self._next += 1
        for kind, table in (("cycles", cycles), ("trials", trials)):
            _write_parquet(part_path(self._folder, kind, number), table)

    def close(self) -> None:
        """Write what waits, and when this run ended.

        Raises:
            CampaignError: the folder cannot be written; what waited is lost.
        """
        self.flush()
        self._about["ended_utc"] = _now()
        with writing(self._folder):
            self._tell()

    def _tell(self) -> None:
        write_json(self._folder / PROVENANCE, [*self._earlier, self._about])

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._waiting or kind is None or not issubclass(kind, CampaignError):
            self.close()


def _write_parquet(path: Path, table: pa.Table) -> None:
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer, compression="zstd", write_page_checksum=True)
    temporary = path.with_name(f".{path.name}")
    try:
        with open(temporary, "wb") as file:
            file.write(buffer.getvalue())
            file.flush()
            os.fsync(file.fileno())  # a full disk may not tell before
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
