"""Tasks in worker processes: one that crashes, hangs or runs out of memory costs that task alone.

Every worker is a loky executor of one process, so that it is known which task a process died of.
"""

from __future__ import annotations

import resource
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from loky import ProcessPoolExecutor

from mlnav.io import end_with_parent

T = TypeVar("T")
R = TypeVar("R")

ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
)


@dataclass(frozen=True)
class Limits:
    """What a task may take.

    Attributes:
        wall_s: seconds, after which its process is killed; None: no limit.
        memory_mb: address space of a worker, beyond which it gets a MemoryError; None: no limit.
        attempts: how often a task is begun whose process died, hung or ran out of memory.
    """

    wall_s: float | None = None
    memory_mb: int | None = None
    attempts: int = 2


@dataclass(frozen=True)
class Loss:
    """Why a task has no result: `crashed`, `hung` or `out_of_memory`, as often as it was begun."""

    kind: str
    detail: str
    attempts: int

    def __str__(self) -> str:
        return f"{self.kind.replace('_', ' ')} {self.attempts} times ({self.detail})"


@dataclass(frozen=True, eq=False)
class Ended(Generic[T, R]):
    """A task that is over.

    Attributes:
        task: which.
        value: its result, where there is one.
        error: what it raised, else.
        loss: or how it was lost with its process.
    """

    task: T
    value: R | None = None
    error: BaseException | None = None
    loss: Loss | None = None


def run_tasks(
    tasks: Sequence[T],
    run: Callable[[T], R],
    workers: int = 1,
    limits: Limits = Limits(),
) -> Iterator[Ended[T, R]]:
    """Run tasks in processes of one thread each; yields them as they end.

    Args:
        tasks: what to run, in this order as far as workers are free.
        run: a function of a module, which the processes import.
        workers: processes.
        limits: of each task.

    Closing the iterator, or Ctrl-C, kills the processes; tasks under way are then lost.
    """
    waiting = deque((task, 1) for task in tasks)
    slots = [_Slot(limits) for _ in range(min(workers, len(tasks)))]
    running: dict[Future[R], tuple[_Slot, T, int, float]] = {}
    free = list(slots)
    try:
        while waiting or running:
            while free and waiting:
                task, attempt = waiting.popleft()
                slot = free.pop()
                running[slot.submit(run, task)] = (slot, task, attempt, time.monotonic())
            for future, lost in _ended(running, limits.wall_s):
                slot, task, attempt, _ = running.pop(future)
                free.append(slot)
                if lost is not None:
                    slot.kill()
                    if attempt < limits.attempts:
                        waiting.append((task, attempt + 1))
                    else:
                        yield Ended(task, loss=Loss(*lost, attempt))
                    continue
                error = future.exception()
                yield Ended(task, None if error else future.result(), error)
    except KeyboardInterrupt:
        for future in [f for f in running if f.done() and f.exception() is None]:
            yield Ended(running[future][1], future.result())
        raise
    finally:
        for slot in slots:
            slot.kill()


def _ended(
    running: dict[Future[R], tuple[_Slot, T, int, float]], wall_s: float | None
) -> list[tuple[Future[R], tuple[str, str] | None]]:
    """Futures that are over, with how their process was lost; waits for the first."""
    timeout = None
    if wall_s is not None:
        begun = min(begin for *_, begin in running.values())
        timeout = max(0.0, begun + wall_s - time.monotonic())
    done, _ = wait(running, timeout, FIRST_COMPLETED)
    ended: list[tuple[Future[R], tuple[str, str] | None]] = []
    for future in done:
        error = future.exception()
        if isinstance(error, BrokenProcessPool):
            ended.append((future, ("crashed", "its process ended")))
        elif isinstance(error, MemoryError):
            ended.append((future, ("out_of_memory", "beyond the limit of a worker's memory")))
        else:
            ended.append((future, None))
    if not ended and wall_s is not None:
        now = time.monotonic()
        for future, (*_, begin) in running.items():
            if now - begin >= wall_s:
                ended.append((future, ("hung", f"not over after {wall_s:g} s")))
    return ended


class _Slot:
    """A place for one worker process, which is started when it is needed."""

    def __init__(self, limits: Limits) -> None:
        self._memory_mb = limits.memory_mb
        self._executor: Any = None

    def submit(self, run: Callable[[T], R], task: T) -> Future[R]:
        if self._executor is None:
            self._executor = ProcessPoolExecutor(
                1, initializer=_start_worker, initargs=(self._memory_mb,), env=ONE_THREAD
            )
        future: Future[R] = self._executor.submit(run, task)
        return future

    def kill(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=False, kill_workers=True)
            self._executor = None


def _start_worker(memory_mb: int | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which kills workers
    end_with_parent()
    if memory_mb is not None:
        size = memory_mb * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
