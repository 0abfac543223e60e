"""Traverses over classes of ground, paired by seed, recorded as they end and resumable."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlnav.bench.runner import Key, Progress, Record, run_recorded
from mlnav.config import Config
from mlnav.sim import TraverseResult, default_endpoints, traverse
from mlnav.stats import Rate
from mlnav.terrain import canonical, load
from mlnav.trials.safety import safety_of

CLASSES = ("10/.07", "15/.07", "0/.15", "10/.12", "0/.20", "15/.10", "20/.05")
"""Slope (deg) / rock abundance, from easy to hard."""


@dataclass(frozen=True)
class _Task:
    ground: str
    seed: int
    config: Config
    digest: str

    @property
    def key(self) -> Key:
        return self.ground, self.seed, self.digest


def config_digest(config: Config) -> str:
    """Short digest of everything a run's result depends on besides its terrain and seed."""
    return hashlib.sha256(config.to_yaml().encode()).hexdigest()[:16]


def traverses(
    classes: Sequence[str],
    seeds: Sequence[int],
    config: Config,
    records: Path,
    workers: int = 1,
    progress: Progress = lambda done, note: None,
) -> list[Record]:
    """Run what `records` does not hold yet, append each as it ends, and return all asked for.

    Terrains depend on class and seed alone, so runs under different configurations are paired.

    Raises:
        TerrainError, ConfigError: a class or the configuration is bad.
        RecordError: `records` is damaged.
    """
    digest = config_digest(config)
    return run_recorded(
        [_Task(canonical(c), s, config, digest) for c in classes for s in seeds],
        run_task,
        records,
        lambda r: (r["class"], r["seed"], r["config"]),
        workers=workers,
        progress=progress,
        note=lambda r: f"{r['class']} seed {r['seed']}: {r['outcome']}",
    )


def run_task(task: _Task) -> Record:
    """One traverse: its summary and the evaluations of every cycle."""
    terrain = load(task.ground, task.seed)
    start, goal = terrain.start_m, terrain.goal_m
    if start is None or goal is None:
        start, goal = default_endpoints(terrain, task.config)
    result = traverse(terrain, task.config, start, goal, task.seed)
    return {"class": task.ground, "config": task.digest, **run_record(result)}


def run_record(result: TraverseResult) -> Record:
    """A run's summary, and what its statistics need of every cycle.

    Raises:
        KeyboardInterrupt: the run was interrupted, so there is nothing to keep.
    """
    if result.outcome == "interrupted":
        raise KeyboardInterrupt
    return {
        **result.summary(),
        "evaluations": [c.ace_evaluations for c in result.cycles],
        "driven_by_cycle_m": [round(c.driven_m, 6) for c in result.cycles],
    }


def evaluation_statistics(counts: NDArray[np.float64]) -> dict[str, float | None]:
    """Mean, median, 95th percentile and most of the evaluations of cycles; None of no cycles."""
    if not len(counts):
        return dict.fromkeys(("mean", "median", "p95", "max"))
    return {
        "mean": float(counts.mean()),
        "median": float(np.median(counts)),
        "p95": float(np.percentile(counts, 95)),
        "max": float(counts.max()),
    }


def stage_ms(runs: Sequence[Record]) -> dict[str, float]:
    """Wall time by stage [ms], the mean over all cycles of the runs."""
    cycles = max(sum(len(r["evaluations"]) for r in runs), 1)
    stages: dict[str, float] = {}
    for run in runs:
        for stage, seconds in run["timing"]["stage_s"].items():
            stages[stage] = stages.get(stage, 0.0) + 1e3 * seconds / cycles
    return stages


def outcomes_of(runs: Sequence[Record]) -> dict[str, int]:
    """How many runs ended in which way."""
    return dict(Counter(r["outcome"] for r in runs))


def class_table(records: Sequence[dict[str, Any]], overthink: int = 275) -> list[dict[str, Any]]:
    """One row a class: unsafe runs, success, evaluations over all cycles, detours, times."""
    rows = []
    for name in dict.fromkeys(r["class"] for r in records):
        runs = [r for r in records if r["class"] == name]
        counts = np.array([n for r in runs for n in r["evaluations"]], np.float64)
        detours = [r["inefficiency"] for r in runs if r["inefficiency"] is not None]
        driven = sum(r["driven_m"] for r in runs)
        rows.append(
            {
                "class": name,
                "runs": len(runs),
                "safety": safety_of(runs).as_dict(),
                "success": Rate(sum(r["success"] for r in runs), len(runs)).as_dict(),
                "outcomes": outcomes_of(runs),
                "cycles": len(counts),
                "evaluations_per_cycle": evaluation_statistics(counts),
                "evaluations_per_m": float(counts.sum() / driven) if driven else None,
                "overthink_rate": float((counts > overthink).mean()) if len(counts) else None,
                "inefficiency": float(np.mean(detours)) if detours else None,
                "stage_ms_per_cycle": stage_ms(runs),
                "wall_s_per_run": float(np.mean([r["timing"]["wall_s"] for r in runs])),
            }
        )
    return rows
