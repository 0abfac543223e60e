"""Tasks in worker processes: one that crashes, hangs or runs out of memory costs that task alone.

Every worker is a loky executor of one process, so that it is known which task a process died of.
"""

from __future__ import annotations

import os
import pickle
import resource
import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar, cast

from loky import ProcessPoolExecutor

T = TypeVar("T")
R = TypeVar("R")

ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
)

_POLL_S = 0.5


class WorkerError(RuntimeError):
    """A process died, hung or ran out of memory, and its task has no result."""


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


_NO_LIMITS = Limits()


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
    """A task that is over: its result, or what it raised, or how it was lost with its process."""

    task: T
    value: R | None = None
    error: BaseException | None = None
    loss: Loss | None = None

    def result(self) -> R:
        """The value; what the task raised; or WorkerError where it was lost."""
        if self.error is not None:
            raise self.error
        if self.loss is not None:
            raise WorkerError(f"a worker process {self.loss}")
        return cast(R, self.value)


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
    if workers:
        with closing(Workers(workers, limits)) as pool:
            yield from pool.run(tasks, run, group)
        return
    for task in tasks:
        if task is None:
            return  # all others have ended
        try:
            ended = Ended(task, run(task))
        except Exception as error:
            ended = Ended[T, R](task, error=error)
        yield ended


class Workers:
    """Places for worker processes, which start when they are needed and stay until closed."""

    def __init__(self, count: int, limits: Limits = _NO_LIMITS) -> None:
        self._limits = limits
        self._slots = [_Slot(limits.memory_mb) for _ in range(count)]

    def run(
        self, tasks: Iterable[T | None], run: Callable[[T], R], group: Callable[[T], object] = id
    ) -> Iterator[Ended[T, R]]:
        """Run tasks, as `run_tasks`."""
        waiting = _Waiting(tasks, group, self._slots)
        running: dict[Future[Any], _Running[T]] = {}
        free = list(self._slots)
        over: deque[Ended[T, R]] = deque()

        def fill() -> None:
            while free and (taken := waiting.take(free[-1])) is not None:
                slot = free.pop()
                running[slot.submit(run, taken[0])] = _Running(slot, *taken)

        try:
            while True:
                fill()
                if not running:
                    return
                for future, lost in _ended(running, self._limits.wall_s):
                    slot, task, attempt = running.pop(future)
                    free.append(slot)
                    if lost is None:
                        over.append(_read(task, future))
                        continue
                    slot.kill()
                    if attempt < self._limits.attempts:
                        waiting.again(slot, task, attempt + 1)
                    else:
                        over.append(Ended(task, loss=Loss(*lost, attempt)))
                fill()  # before anything is done with results, so that nobody waits for that
                while over:
                    yield over.popleft()
        except KeyboardInterrupt:
            yield from over
            for future in [f for f in running if f.done() and f.exception() is None]:
                yield _read(running.pop(future).task, future)
            raise
        finally:
            for slot, *_ in running.values():
                slot.kill()

    def close(self) -> None:
        """Kill the processes."""
        for slot in self._slots:
            slot.kill()


class _Running(NamedTuple, Generic[T]):
    slot: _Slot
    task: T
    attempt: int


class _Waiting(Generic[T]):
    """Tasks that wait, a queue for each slot: a group's go to the slot that had its first."""

    def __init__(
        self, tasks: Iterable[T | None], group: Callable[[T], object], slots: Sequence[_Slot]
    ) -> None:
        self._tasks = iter(tasks)
        self._group = group
        self._ahead: T | None = None
        self._queues: dict[_Slot, deque[tuple[T, int]]] = {slot: deque() for slot in slots}

    def take(self, slot: _Slot) -> tuple[T, int] | None:
        """A task and its attempt for a slot, None where there is none for now."""
        queue = self._queues[slot]
        if not queue:
            self._fill(queue)
        queue = queue or max(self._queues.values(), key=len)  # nothing new: help who has most
        return queue.popleft() if queue else None

    def again(self, slot: _Slot, task: T, attempt: int) -> None:
        """Put a task back."""
        self._queues[slot].appendleft((task, attempt))

    def _fill(self, queue: deque[tuple[T, int]]) -> None:
        while True:
            if self._ahead is None:
                self._ahead = next(self._tasks, None)
            task = self._ahead
            if task is None or (queue and self._group(task) != self._group(queue[0][0])):
                return
            queue.append((task, 1))
            self._ahead = None


def _ended(
    running: dict[Future[R], _Running[T]], wall_s: float | None
) -> list[tuple[Future[R], tuple[str, str] | None]]:
    """Futures that are over, with how their process was lost; waits a while for the first."""
    # Not until the first limit: a process that starts has its task begin at any time.
    pause_s = _POLL_S if wall_s is None else min(max(wall_s, 0.01), _POLL_S)
    done, _ = wait(running, pause_s, FIRST_COMPLETED)
    ended: list[tuple[Future[R], tuple[str, str] | None]] = []
    for future in done:
        error = future.exception()
        if isinstance(error, BrokenProcessPool):
            ended.append((future, ("crashed", "its process ended")))
        elif isinstance(error, MemoryError):
            ended.append((future, ("out_of_memory", "beyond the limit of a worker's memory")))
        else:
            ended.append((future, None))
    if not ended:
        now = time.monotonic()
        for future, (slot, *_) in running.items():
            slot.end_if_dead()
            if wall_s is not None and now - slot.begun_s >= wall_s:
                ended.append((future, ("hung", f"not over after {wall_s:g} s")))
    return ended


_START_S = 120.0
"""That a process may take to start, which is not its first task's time."""


class _Slot:
    """A place for one worker process, which is started when it is needed."""

    def __init__(self, memory_mb: int | None) -> None:
        self._memory_mb = memory_mb
        self._executor: Any = None
        self.begun_s = 0.0
        """When its task began, by the monotonic clock."""

    def submit(self, run: Callable[[T], R], task: T) -> Future[Any]:
        if self._executor is None:
            self._executor = ProcessPoolExecutor(
                1, initializer=_start_worker, initargs=(self._memory_mb,), env=ONE_THREAD
            )
            self.begun_s = time.monotonic() + _START_S
            ready = self._executor.submit(bool, run)  # to be sent `run`, it has to import it
            ready.add_done_callback(self._begin)
        else:
            self.begun_s = time.monotonic()
        future: Future[Any] = self._executor.submit(_answer, run, task)
        return future

    def _begin(self, _: object) -> None:
        self.begun_s = time.monotonic()

    def end_if_dead(self) -> None:
        # loky holds the sending end of the answers' pipe open itself, so it waits for ever for the
        # rest of an answer whose sender has died. Closing that end tells it.
        processes = list(self._executor._processes.values()) if self._executor else []
        if processes and all(p.exitcode is not None for p in processes):
            self._executor._result_queue._writer.close()

    def kill(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=False, kill_workers=True)
            self._executor = None


def _answer(run: Callable[[T], R], task: T) -> bytes:
    """Value and error of a task, pickled here: what cannot be costs that task, not its process."""
    try:
        return pickle.dumps((run(task), None))
    except MemoryError:
        raise
    except Exception as error:
        error.add_note(f"In a worker process:\n{traceback.format_exc()}")
        try:
            answer = pickle.dumps((None, error))
            pickle.loads(answer)
        except Exception:
            answer = pickle.dumps((None, RuntimeError(f"{type(error).__name__}: {error}")))
        return answer


def _read(task: T, future: Future[Any]) -> Ended[T, Any]:
    """A task that has ended, from its answer."""
    error = future.exception()
    if error is not None:
        return Ended(task, error=error)
    try:
        return Ended(task, *pickle.loads(future.result()))
    except Exception as fault:
        return Ended(task, error=fault)


def _start_worker(memory_mb: int | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which kills workers
    _end_with_parent()
    if memory_mb is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory_mb * 2**20,) * 2)


def _end_with_parent() -> None:
    """End this process when its parent is killed: a worker holds its own queue open, and waits."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:  # an orphan is adopted
            time.sleep(_POLL_S)
        os._exit(1)

    threading.Thread(target=watch, name="end with parent", daemon=True).start()


def results(tasks: Iterable[T], run: Callable[[T], R], workers: int = 0) -> Iterator[R]:
    """Results in the order of the tasks, for work that is all or nothing; `workers` as above.

    Raises WorkerError where a process died, and what a task raises as it is.
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
