"""Work in processes of this machine, or on a cluster; tasks that fail cost themselves alone."""

from mlnav.compute.cluster import ClusterError, run_on_cluster
from mlnav.compute.pool import Ended, Limits, Loss, WorkerError, results, run_tasks
from mlnav.compute.recorded import run_recorded

__all__ = [
    "ClusterError",
    "Ended",
    "Limits",
    "Loss",
    "WorkerError",
    "results",
    "run_on_cluster",
    "run_recorded",
    "run_tasks",
]
