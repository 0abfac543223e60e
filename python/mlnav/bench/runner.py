"""Tasks through worker processes; every record is on the disk as soon as its task has ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from mlnav.compute.pool import Loss, run_tasks
from mlnav.io import JsonlWriter, read_jsonl

Key = tuple[Any, ...]
Record = dict[str, Any]
Progress = Callable[[int, str], None]


class Task(Protocol):
    """Something to run, with a name of its own."""

    @property
    def key(self) -> Key:
        """What tells its record from all others."""
        ...


T = TypeVar("T", bound=Task)


def known_records(records: Path, key_of: Callable[[Record], Key]) -> dict[Key, Record]:
    """Records of a file by key; none where there is no file.

    Raises:
        RecordError: the file is damaged.
    """
    return {key_of(r): r for r in read_jsonl(records)} if records.exists() else {}


def run_recorded(
    tasks: Sequence[T],
    run: Callable[[T], Record],
    records: Path,
    key_of: Callable[[Record], Key],
    *,
    workers: int = 1,
    progress: Progress = lambda done, note: None,
    note: Callable[[Record], str] = lambda record: "",
    lost: Callable[[T, Loss], Record] | None = None,
) -> list[Record]:
    """Run the tasks that `records` does not hold yet; records of all, in the order of the tasks.

    Args:
        tasks: what is wanted.
        run: makes a task's record; a function of a module, since processes import it.
        records: JSON lines, appended to as tasks end.
        key_of: the key of a record; that of its task.
        workers: processes; with one, tasks run in this process.
        progress: called with the number of tasks that are done, and a note.
        note: on a record, for `progress`.
        lost: makes the record of a task that its process died of, for tasks that may do that: they
            run in processes of their own even with one worker. None: it is an error.

    Raises:
        RecordError: `records` is damaged.
        WorkerError: a task's process died.
    """
    known = known_records(records, key_of)
    missing = [t for t in tasks if t.key not in known]
    done = len(tasks) - len(missing)
    progress(done, "resumed" if done else "")
    with JsonlWriter(records, append=True) as writer:
        for record in _results(missing, run, workers, lost):
            writer.write(record)
            known[key_of(record)] = record
            done += 1
            progress(done, note(record))
    return [known[t.key] for t in tasks]


def _results(
    tasks: Sequence[T],
    run: Callable[[T], Record],
    workers: int,
    lost: Callable[[T, Loss], Record] | None,
) -> Iterator[Record]:
    if lost is None and (workers <= 1 or len(tasks) <= 1):
        yield from map(run, tasks)
        return
    for ended in run_tasks(tasks, run, workers):
        yield lost(ended.task, ended.loss) if lost and ended.loss else ended.result()
