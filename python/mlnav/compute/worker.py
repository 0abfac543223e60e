"""A worker process: an interpreter at the other end of a pipe, which runs one task at a time."""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import queue
import resource
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")
R = TypeVar("R")

_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
)
_BEGUN, _OUT_OF_MEMORY = b"begun", b"out of memory"  # no pickle is either

_START_S = 120.0
"""For a process to start and import what it runs, on top of the first task's time limit."""


class WorkerError(RuntimeError):
    """A worker process died, hung or ran out of memory, so its task has no result."""


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
        error: what it raised, else; in its notes, where in the worker.
        loss: or how it was lost with its process.
    """

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


class Worker:
    """The parent's side of a worker process, which starts with its first task."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None
        self._task: Any = None
        self._attempt = 0
        self.pipe: Connection | None = None
        """To the process, while there is one."""
        self.deadline_s = math.inf
        """When its task is to be over, by the monotonic clock."""

    def begin(self, run: Callable[[T], Any], task: T, attempt: int) -> None:
        """Have the process run a task.

        Raises:
            Exception: the task cannot be pickled.
        """
        packed = pickle.dumps((run, task))
        if self.pipe is None or self._process is None or self._process.poll() is not None:
            self.kill()
            self.pipe = self._start()
        self._task, self._attempt = task, attempt
        self._set_deadline(_START_S)
        with contextlib.suppress(OSError):  # it has just died, as `ended` finds
            self.pipe.send_bytes(packed)

    def ended(self) -> Ended[Any, Any] | None:
        """Its task, if that is over; None: it runs."""
        while self.pipe is not None and self.pipe.poll():
            try:
                packed = self.pipe.recv_bytes()
            except (EOFError, OSError):
                return self._lost("crashed", "its process ended")
            except KeyboardInterrupt:
                self.kill()  # a message may be read in part
                raise
            if packed == _OUT_OF_MEMORY:
                return self._lost("out_of_memory", "beyond the limit of a worker's memory")
            if packed != _BEGUN:
                try:
                    return Ended(self._task, *pickle.loads(packed))
                except Exception as fault:
                    return Ended(self._task, error=fault)
            self._set_deadline()
        if time.monotonic() >= self.deadline_s:
            return self._lost("hung", f"not over after {self._limits.wall_s:g} s")
        return None

    def kill(self) -> None:
        """End the process, whatever it does."""
        if self.pipe is not None and self._process is not None:
            self.pipe.close()
            self._process.kill()
            self._process.wait()
            self.pipe = None

    def _set_deadline(self, more_s: float = 0.0) -> None:
        wall_s = self._limits.wall_s
        self.deadline_s = math.inf if wall_s is None else time.monotonic() + wall_s + more_s

    def _lost(self, kind: str, detail: str) -> Ended[Any, Any]:
        self.kill()
        return Ended(self._task, loss=Loss(kind, detail, self._attempt))

    def _start(self) -> Connection:
        ours, theirs = Pipe()
        # Ctrl-C is for the parent, which kills its workers: ignored from the first line on.
        program = (
            "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN);"
            f"sys.path[:] = {[str(p) for p in sys.path]!r};"
            "from mlnav.compute.worker import serve;"
            f"serve({theirs.fileno()}, {self._limits.memory_mb})"
        )
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", program],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=os.environ | _ONE_THREAD,
            )
        return ours


# ------------------------------------------------------------------------------- in the process


def serve(fd: int, memory_mb: int | None) -> None:
    """Run the tasks that come through a pipe, until the parent closes it or ends."""
    os.set_inheritable(fd, False)  # or a task's own processes would keep the pipe open
    if memory_mb is not None:
        size = memory_mb * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
    pipe = Connection(fd)
    tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def listen() -> None:
        try:
            while True:
                tasks.put(pipe.recv_bytes())
        except (EOFError, OSError):
            os._exit(1)  # in the middle of a task, too

    threading.Thread(target=listen, daemon=True).start()
    while True:
        pipe.send_bytes(_answer(tasks.get(), lambda: pipe.send_bytes(_BEGUN)))


def _answer(packed: bytes, begun: Callable[[], None]) -> bytes:
    """Result and error of a task, pickled."""
    try:
        run, task = pickle.loads(packed)
        begun()
        return pickle.dumps((run(task), None))
    except MemoryError:
        return _OUT_OF_MEMORY
    except BaseException as error:
        error.add_note(f"In a worker process:\n{traceback.format_exc()}")
        try:
            answer = pickle.dumps((None, error))
            pickle.loads(answer)
        except Exception:
            error = RuntimeError(f"{type(error).__name__}: {error}")
            answer = pickle.dumps((None, error))
        return answer
