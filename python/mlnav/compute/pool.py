"""Tasks in worker processes: one that crashes, hangs or fills the memory costs that task alone."""

from __future__ import annotations

import contextlib
import math
import time
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from functools import partial
from multiprocessing.connection import wait
from typing import Any, Generic, TypeVar

from mlnav.compute.worker import Ended, Limits, Worker

T = TypeVar("T")
R = TypeVar("R")

_NO_LIMITS = Limits()


def run_tasks(
    tasks: Iterable[T | None],
    run: Callable[[T], R],
    workers: int = 1,
    limits: Limits = _NO_LIMITS,
    group: Callable[[T], object] = id,
) -> Generator[Ended[T, R], None, None]:
    """Run tasks in processes of one thread each; yields them as they end.

    Args:
        tasks: what to run, in this order as far as workers are free, asked for as they get free.
            None among them: there are more, but not before others have ended.
        run: a function of a module, which the processes import.
        workers: processes; 0: in this process, one after the other and without limits.
        limits: of each task.
        group: of a task; those of a group that follow each other run in one process while the
            others have work too.

    Closing the iterator, or Ctrl-C, kills the processes; tasks under way are then lost.
    """
    if workers == 0:
        yield from _in_this_process(tasks, run)
        return
    with contextlib.closing(Workers(workers, limits)) as pool:
        yield from pool.run(tasks, run, group)


def results(tasks: Iterable[T], run: Callable[[T], R], workers: int = 0) -> Iterator[R]:
    """Results in the order of the tasks, for work that is all or nothing; `workers` as above.

    Raises:
        WorkerError: a process died; what a task raises is raised as it is.
    """
    early: dict[int, R] = {}
    due = 0
    for ended in run_tasks(enumerate(tasks), partial(_second, run), workers):
        early[ended.task[0]] = ended.result()
        while due in early:
            yield early.pop(due)
            due += 1


def _second(run: Callable[[T], R], task: tuple[int, T]) -> R:
    return run(task[1])


def _in_this_process(tasks: Iterable[T | None], run: Callable[[T], R]) -> Iterator[Ended[T, R]]:
    for task in tasks:
        if task is None:
            return  # all others have ended
        try:
            ended = Ended(task, run(task))
        except Exception as error:
            ended = Ended[T, R](task, error=error)
        yield ended


class Workers:
    """Worker processes, which start when they are needed and stay until closed."""

    def __init__(self, count: int, limits: Limits = _NO_LIMITS) -> None:
        self._attempts = limits.attempts
        self._workers = [Worker(limits) for _ in range(count)]

    def run(
        self,
        tasks: Iterable[T | None],
        run: Callable[[T], R],
        group: Callable[[T], object] = id,
    ) -> Iterator[Ended[T, R]]:
        """Run tasks, as `run_tasks`."""
        waiting = _Waiting(tasks, group, self._workers)
        free = list(self._workers)
        running: set[Worker] = set()
        over: deque[Ended[T, R]] = deque()

        def fill() -> None:
            while free and (taken := waiting.take(free[-1])) is not None:
                try:
                    free[-1].begin(run, *taken)
                except Exception as error:
                    over.append(Ended(taken[0], error=error))
                else:
                    running.add(free.pop())

        try:
            while True:
                fill()
                if running:
                    for worker, ended in _ended(running):
                        running.remove(worker)
                        free.append(worker)
                        if ended.loss and ended.loss.attempts < self._attempts:
                            waiting.again(worker, ended.task, ended.loss.attempts + 1)
                        else:
                            over.append(ended)
                    fill()  # before anything is done with results, so that nobody waits for that
                elif not over:
                    return
                while over:
                    yield over.popleft()
        except KeyboardInterrupt:
            over.extend(ended for _, ended in _ended(running, 0.0) if ended.loss is None)
            yield from over
            raise
        finally:
            for worker in running:
                worker.kill()

    def close(self) -> None:
        """Kill the processes."""
        for worker in self._workers:
            worker.kill()


def _ended(
    running: Collection[Worker], most_s: float = math.inf
) -> list[tuple[Worker, Ended[Any, Any]]]:
    """Workers whose task is over, with that; waits until there is news, or so long."""
    pause_s = min([most_s, *(w.deadline_s - time.monotonic() for w in running)])
    wait([w.pipe for w in running if w.pipe], None if pause_s == math.inf else max(pause_s, 0.0))
    return [(w, ended) for w in running if (ended := w.ended()) is not None]


class _Waiting(Generic[T]):
    """Tasks that wait, a queue for each worker: a group's go to the worker that had its first."""

    def __init__(
        self, tasks: Iterable[T | None], group: Callable[[T], object], workers: Sequence[Worker]
    ) -> None:
        self._tasks = iter(tasks)
        self._group = group
        self._ahead: T | None = None
        self._queues: dict[Worker, deque[tuple[T, int]]] = {w: deque() for w in workers}

    def take(self, worker: Worker) -> tuple[T, int] | None:
        """A task and its attempt for a worker, None where there is none for now."""
        queue = self._queues[worker]
        if not queue:
            self._fill(queue)
        if not queue:
            queue = max(self._queues.values(), key=len)  # nothing new: help who has most
        return queue.popleft() if queue else None

    def again(self, worker: Worker, task: T, attempt: int) -> None:
        """Put a task back."""
        self._queues[worker].appendleft((task, attempt))

    def _fill(self, queue: deque[tuple[T, int]]) -> None:
        while True:
            if self._ahead is None:
                self._ahead = next(self._tasks, None)
            task = self._ahead
            if task is None or (queue and self._group(task) != self._group(queue[0][0])):
                return
            queue.append((task, 1))
            self._ahead = None
