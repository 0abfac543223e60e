"""Studies that can be taken up again: a record is on the disk as soon as its task has ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from mlnav.compute.pool import run_tasks
from mlnav.io import JsonlWriter, read_jsonl

Key = tuple[Any, ...]
Record = dict[str, Any]
T = TypeVar("T")


def run_recorded(
    tasks: Mapping[Key, T],
    run: Callable[[T], Record],
    records: Path,
    key_of: Callable[[Record], Key],
    *,
    workers: int = 0,
    progress: Callable[[int, Record | None], None] = lambda done, record: None,
) -> list[Record]:
    """Run the tasks that `records` does not hold yet; records of all, in the order of the tasks.

    Args:
        tasks: what is wanted, by key.
        run: makes a task's record; a function of a module, which the processes import.
        records: JSON lines, appended to as tasks end.
        key_of: the key of a record; that of its task.
        workers: processes; 0: in this process.
        progress: called with the number of tasks that are done, and the record that came last.

    Raises RecordError where `records` is damaged, WorkerError where a task's process died, and what
    a task raises as it is.
    """
    known = {key_of(r): r for r in read_jsonl(records)} if records.exists() else {}
    missing = [task for key, task in tasks.items() if key not in known]
    before = len(tasks) - len(missing)
    progress(before, None)
    with JsonlWriter(records, append=True) as writer:
        for done, ended in enumerate(run_tasks(missing, run, workers), start=before + 1):
            record = ended.result()
            writer.write(record)
            known[key_of(record)] = record
            progress(done, record)
    return [known[key] for key in tasks]
