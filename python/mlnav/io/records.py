"""Atomic writing of files, and records as JSON lines.

Each record is one line in one unbuffered write: after Ctrl-C or on a full disk the file ends with
the last whole record. A line torn by a crash (power, kill -9) is dropped on reading and cut off on
appending.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np


class RecordError(ValueError):
    """A record file is damaged before its last line; the message has path and line."""


def plain(value: Any) -> Any:
    """`value` in JSON's types: numpy scalars and arrays converted, NaN and infinity as null."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def to_json(value: Any, *, indent: int | None = None) -> str:
    """Strict JSON (no NaN) in ASCII, for any standard output, of what `plain` can convert."""
    return json.dumps(plain(value), allow_nan=False, indent=indent)


class JsonlWriter:
    """Appends records to a file, one JSON object a line; folders are made.

    With `append` it goes on after the records that are there; otherwise the file starts empty.
    """

    def __init__(self, path: str | os.PathLike[str], *, append: bool = False) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if append and self.path.exists():
            _cut_torn_line(self.path)
        self._file = open(self.path, "ab" if append else "wb", buffering=0)  # noqa: SIM115

    def write(self, record: Mapping[str, Any]) -> None:
        """Hand one record to the system; after an OSError the file ends with the one before."""
        line = (to_json(record) + "\n").encode()
        end = os.fstat(self._file.fileno()).st_size
        written = 0
        try:
            while written < len(line):  # a disk that fills up takes a part without an error
                written += self._file.write(line[written:])
        except OSError as fault:
            with contextlib.suppress(OSError):
                self._file.truncate(end)
                self._file.seek(end)
            raise _with_path(fault, self.path) from fault

    def close(self) -> None:
        """Close the file; writing afterwards is an error."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_jsonl(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """Records of a file in order, less a torn last line; RecordError for what is no JSON object."""
    with open(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                record = json.loads(line)
            except ValueError as fault:
                raise RecordError(f"{path}, line {number}: not JSON: {fault}") from fault
            if not isinstance(record, dict):
                raise RecordError(f"{path}, line {number}: not a JSON object")
            yield record


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write a JSON document atomically."""
    write_text(path, to_json(value, indent=2) + "\n")


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file atomically."""
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write a file atomically; folders are made.

    Yields a path beside it, with its suffix, to write to: renamed to the file at the end, or
    removed on any fault. An OSError names `path` instead of the temporary one.
    """
    file = Path(path)
    temporary = file.with_name(f".{uuid.uuid4().hex}{file.suffix}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        os.replace(temporary, file)
    except OSError as fault:
        if fault.filename not in (None, str(temporary), temporary):
            raise
        raise _with_path(fault, file) from fault
    finally:
        with contextlib.suppress(OSError):  # an unusable folder was reported already
            temporary.unlink(missing_ok=True)


def _with_path(fault: OSError, path: Path) -> OSError:
    return OSError(fault.errno, fault.strerror or str(fault), str(path))


def _cut_torn_line(path: Path) -> None:
    with open(path, "r+b") as file:
        file.truncate(file.read().rfind(b"\n") + 1)
