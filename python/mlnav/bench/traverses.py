"""Traverses over classes of ground, paired by seed, recorded as they end and resumable."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from mlnav.bench.statistics import Rate
from mlnav.config import Config
from mlnav.io import JsonlWriter, read_jsonl
from mlnav.sim import default_endpoints, traverse
from mlnav.terrain import load

CLASSES = ("10/.07", "15/.07", "0/.15", "10/.12", "0/.20", "15/.10", "20/.05")
"""Slope (deg) / rock abundance, from easy to hard."""


@dataclass(frozen=True)
class _Task:
    ground: str
    seed: int
    config: Config
    digest: str


def config_digest(config: Config) -> str:
    """Short digest of everything a run's result depends on besides its terrain and seed."""
    return hashlib.sha256(config.to_yaml().encode()).hexdigest()[:16]


def traverses(
    classes: Sequence[str],
    seeds: Sequence[int],
    config: Config,
    records: Path,
    workers: int = 1,
    progress: Callable[[int, str], None] = lambda done, note: None,
) -> list[dict[str, Any]]:
    """Run what `records` does not hold yet, append each as it ends, and return all asked for.

    Terrains depend on class and seed alone, so runs under different configurations are paired.

    Raises:
        TerrainError, ConfigError: a class or the configuration is bad.
        RecordError: `records` is damaged.
    """
    digest = config_digest(config)
    wanted = [_Task(c, s, config, digest) for c in classes for s in seeds]
    known: dict[tuple[str, int, str], dict[str, Any]] = {}
    if records.exists():
        known = {(r["class"], r["seed"], r["config"]): r for r in read_jsonl(records)}
    missing = [t for t in wanted if (t.ground, t.seed, digest) not in known]
    done = len(wanted) - len(missing)
    progress(done, "resumed" if done else "")
    with JsonlWriter(records, append=True) as writer:
        for record in _results(missing, workers):
            writer.write(record)
            known[record["class"], record["seed"], record["config"]] = record
            done += 1
            progress(done, f"{record['class']} seed {record['seed']}: {record['outcome']}")
    return [known[t.ground, t.seed, digest] for t in wanted]


def _results(tasks: Sequence[_Task], workers: int) -> Iterator[dict[str, Any]]:
    if workers <= 1:
        yield from map(run_task, tasks)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(run_task, task) for task in tasks]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def run_task(task: _Task) -> dict[str, Any]:
    """One traverse: its summary and the evaluations of every cycle."""
    terrain = load(task.ground, task.seed)
    start, goal = terrain.start_m, terrain.goal_m
    if start is None or goal is None:
        start, goal = default_endpoints(terrain, task.config)
    result = traverse(terrain, task.config, start, goal, task.seed)
    if result.outcome == "interrupted":
        raise KeyboardInterrupt
    return {
        "class": task.ground,
        "config": task.digest,
        **result.summary(),
        "evaluations": [c.ace_evaluations for c in result.cycles],
        "driven_by_cycle_m": [round(c.driven_m, 6) for c in result.cycles],
    }


def class_table(records: Sequence[dict[str, Any]], overthink: int = 275) -> list[dict[str, Any]]:
    """One row a class: success, evaluations over all cycles, overthinks, inefficiency, times."""
    rows = []
    for name in dict.fromkeys(r["class"] for r in records):
        runs = [r for r in records if r["class"] == name]
        counts = np.array([n for r in runs for n in r["evaluations"]], np.float64)
        cycles = max(len(counts), 1)
        stages: dict[str, float] = {}
        for run in runs:
            for stage, seconds in run["timing"]["stage_s"].items():
                stages[stage] = stages.get(stage, 0.0) + 1e3 * seconds / cycles
        detours = [r["inefficiency"] for r in runs if r["inefficiency"] is not None]
        outcomes: dict[str, int] = {}
        for run in runs:
            outcomes[run["outcome"]] = outcomes.get(run["outcome"], 0) + 1
        driven = sum(r["driven_m"] for r in runs)
        rows.append(
            {
                "class": name,
                "runs": len(runs),
                "success": Rate(sum(r["success"] for r in runs), len(runs)).as_dict(),
                "outcomes": outcomes,
                "cycles": len(counts),
                "evaluations_per_cycle": {
                    "mean": float(counts.mean()) if len(counts) else None,
                    "median": float(np.median(counts)) if len(counts) else None,
                    "p95": float(np.percentile(counts, 95)) if len(counts) else None,
                    "max": float(counts.max()) if len(counts) else None,
                },
                "evaluations_per_m": float(counts.sum() / driven) if driven else None,
                "overthink_rate": float((counts > overthink).mean()) if len(counts) else None,
                "inefficiency": float(np.mean(detours)) if detours else None,
                "stage_ms_per_cycle": stages,
                "wall_s_per_run": float(np.mean([r["timing"]["wall_s"] for r in runs])),
            }
        )
    return rows
