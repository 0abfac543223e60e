"""Tasks through worker processes; every record is on the disk as soon as its task has ended."""

from __future__ import annotations

import contextlib
import itertools
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol, TypeVar

from mlnav.io import JsonlWriter, end_with_parent, read_jsonl

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

    Raises:
        RecordError: `records` is damaged.
    """
    known = known_records(records, key_of)
    missing = [t for t in tasks if t.key not in known]
    done = len(tasks) - len(missing)
    progress(done, "resumed" if done else "")
    with JsonlWriter(records, append=True) as writer:
        for record in _results(missing, run, workers):
            writer.write(record)
            known[key_of(record)] = record
            done += 1
            progress(done, note(record))
    return [known[t.key] for t in tasks]


def _results(tasks: Sequence[T], run: Callable[[T], Record], workers: int) -> Iterator[Record]:
    if workers <= 1 or len(tasks) <= 1:
        yield from map(run, tasks)
        return
    waiting = iter(tasks)
    with ProcessPoolExecutor(
        min(workers, len(tasks)), mp_context=get_context("spawn"), initializer=_start_worker
    ) as pool:
        with _uninterrupted():
            running = {pool.submit(run, t) for t in itertools.islice(waiting, workers)}
        try:
            # No task is handed out before a process is free: one that is could not be called back.
            while running:
                ended, running = wait(running, return_when=FIRST_COMPLETED)
                running |= {pool.submit(run, t) for t in itertools.islice(waiting, len(ended))}
                yield from (future.result() for future in ended)
        except KeyboardInterrupt:
            # Processes were interrupted as well, if it came from a terminal; if not they end now.
            for future in wait(running).done:
                if future.exception() is None:
                    yield future.result()
            raise


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """No Ctrl-C meanwhile; processes that are started inherit it while they still import."""
    try:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    except ValueError:  # not the main thread, which alone is interrupted
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _start_worker() -> None:
    end_with_parent()
    signal.signal(signal.SIGINT, signal.default_int_handler)
