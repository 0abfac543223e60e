"""Tasks on a dask.distributed cluster (extra `cluster`): the same as in processes of one machine.

Every thread of a dask worker keeps a process of its own for tasks, as `pool` does, so that what a
task does to its process costs that task alone. A dask worker that dies costs its tasks a retry.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, TypeVar

from mlnav.compute.pool import Ended, Limits, Loss, Workers

if TYPE_CHECKING:
    from distributed import Client, Future

T = TypeVar("T")
R = TypeVar("R")

SCHEME = "dask://"


class ClusterError(ValueError):
    """A cluster cannot be used; the message says why."""


_CONNECT_S = 15.0
"""To wait for the scheduler, and then for a first worker."""

_QUEUED = 2
"""Tasks with the cluster for each of its threads: one that runs, and one that waits there."""


def run_on_cluster(
    tasks: Iterable[T | None], run: Callable[[T], R], address: str, limits: Limits
) -> Generator[Ended[T, R], None, None]:
    """Run tasks as `pool.run_tasks`, on the cluster of the scheduler at `dask://host:port`.

    Its workers need this mlnav. ClusterError: `distributed` is missing, the address is none, or the
    cluster is out of reach.
    """
    if not address.startswith(SCHEME):
        raise ClusterError(f"scheduler {address!r}: must be {SCHEME}host:port")
    try:
        from distributed import CancelledError, Client
    except ImportError:
        raise ClusterError("a cluster needs distributed (extra 'cluster')") from None
    try:
        client = Client(f"tcp://{address.removeprefix(SCHEME)}", timeout=_CONNECT_S)
    except (OSError, ValueError) as fault:
        raise ClusterError(f"{address}: no scheduler answers ({fault})") from fault
    with client:
        try:
            client.wait_for_workers(1, timeout=_CONNECT_S)
        except TimeoutError:
            raise ClusterError(f"{address}: the cluster has no workers") from None
        try:
            yield from _ended(client, iter(tasks), run, limits)
        except (OSError, CancelledError) as fault:
            raise ClusterError(f"{address}: the cluster is gone ({fault})") from fault


def _ended(
    client: Client, tasks: Iterable[T | None], run: Callable[[T], R], limits: Limits
) -> Generator[Ended[T, R], None, None]:
    from distributed import wait
    from distributed.scheduler import KilledWorker

    waiting = iter(tasks)
    running: dict[Future, T] = {}
    try:
        while True:
            room = _QUEUED * max(1, sum(client.nthreads().values())) - len(running)
            while room > 0 and (task := next(waiting, None)) is not None:
                running[client.submit(_on_worker, run, task, limits, pure=False)] = task
                room -= 1
            if not running:
                return
            for future in wait(list(running), return_when="FIRST_COMPLETED").done:
                task = running.pop(future)
                if future.status == "finished":
                    yield future.result()
                    continue
                error = future.exception()  # CancelledError where the scheduler is lost
                if isinstance(error, KilledWorker):
                    attempts = error.allowed_failures + 1
                    yield Ended(task, loss=Loss("crashed", "its dask worker ended", attempts))
                else:
                    yield Ended(task, error=error)
    finally:
        client.cancel(list(running), force=True)


_here = threading.local()


def _on_worker(run: Callable[[T], R], task: T, limits: Limits) -> Ended[T, R]:
    """Run a task in this thread's process."""
    if getattr(_here, "limits", None) != limits:
        if hasattr(_here, "workers"):
            _here.workers.close()
        _here.workers, _here.limits = Workers(1, limits), limits
    ended: Ended[T, R] = next(_here.workers.run([task], run))
    return ended
