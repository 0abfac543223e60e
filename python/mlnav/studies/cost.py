"""Time per pose of every checker, in one run on the same poses."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlnav import _core
from mlnav.config import Config
from mlnav.core import HeightMap
from mlnav.parts import names_of
from mlnav.studies.cases import cases
from mlnav.studies.soundness import random_poses

GROUNDS = ("0/.02", "10/.07", "15/.10", "0/.20", "20/.05")

REPEATS = 7
"""Timings of the same poses, checkers taking turns; the fastest of each counts."""

Poses = NDArray[np.float64]


def cost(
    config: Config,
    grounds: Sequence[str] = GROUNDS,
    poses: int = 4000,
    seed: int = 0,
    checkers: Sequence[str] | None = None,
    progress: Callable[[int, str], None] = lambda done, note: None,
) -> dict[str, Any]:
    """Time every checker per pose: the verdict alone, on one thread, without tables for a map.

    Args:
        config: rover, limits, and settings of its checker; others have defaults.
        grounds: as for `studies.cases.cases`; one terrain of each is used.
        poses: number on each terrain.
        seed: of terrains and poses.
        checkers: names; all by default.
        progress: called with the number of terrains done and the name of the next.

    Raises:
        TerrainError, ConfigError: a ground or the configuration is bad.
    """
    names = list(checkers or names_of("checker"))
    setups = {n: config if n == config.checker.name else config.replaced(checker=n) for n in names}
    model = config.rover_model()
    rows: list[dict[str, Any]] = []
    for index, spec in enumerate(grounds):
        progress(index, spec)
        case = cases(spec)[0]
        terrain_seed, pose_seed = np.random.SeedSequence(seed, spawn_key=(index,)).spawn(2)
        terrain = case.make(terrain_seed)
        grid = HeightMap.of(terrain).grid
        where = random_poses(terrain, model, poses, np.random.default_rng(pose_seed))
        built = {n: setups[n].build_checker(terrain.z.size) for n in names}
        prepare = {n: _seconds(partial(c.set_map, grid)) for n, c in built.items()}
        reports = {n: c.report(where) for n, c in built.items()}
        groups: dict[tuple[str, str], Poses] = {}
        for name, report in reports.items():
            safe = report["safe"].astype(bool)
            for kind, chosen in (("pose", safe | ~safe), ("passed", safe), ("rejected", ~safe)):
                groups[name, kind] = np.ascontiguousarray(where[chosen])
        best = _timed(built, groups)
        rows += [
            {
                "ground": case.label,
                "checker": name,
                "poses": poses,
                "passed": int(report["safe"].sum()),
                **{f"us_per_{kind}": best[name, kind] for kind in ("pose", "passed", "rejected")},
                "map_ms": 1e3 * prepare[name],
                "inner_steps": _spread(report["inner_steps"]),
                "lookups": _spread(report["lookups"]),
            }
            for name, report in reports.items()
        ]
    progress(len(grounds), "")
    return {
        "limits": config.limits.name,
        "seed": seed,
        "repeats": REPEATS,
        "rows": rows,
        "ratios": _ratios(rows, names),
    }


def _seconds(call: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def _timed(
    built: dict[str, _core.Checker], groups: dict[tuple[str, str], Poses]
) -> dict[tuple[str, str], float | None]:
    """Microseconds a pose of each group, None for an empty one."""
    times: dict[tuple[str, str], list[float]] = {key: [] for key in groups}
    for _ in range(REPEATS):
        for (name, kind), where in groups.items():
            if len(where):
                took = _seconds(partial(built[name].reasons, where))
                times[name, kind].append(1e6 * took / len(where))
    return {key: min(took, default=None) for key, took in times.items()}


def _spread(values: NDArray[Any]) -> dict[str, float]:
    return {"mean": float(np.mean(values)), "p95": float(np.percentile(values, 95))}


def _ratios(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> dict[str, dict[str, float]]:
    """Time of each checker over that of each other, geometric mean over the grounds."""
    logs = {n: np.log([r["us_per_pose"] for r in rows if r["checker"] == n]) for n in names}
    return {a: {b: float(np.exp(np.mean(logs[a] - logs[b]))) for b in names} for a in names}
