"""Is a checker sound on the whole way, how much of the safe way does it pass, and at what cost?

Random motions whose poses, 0.1 m or 3.3 degrees apart, all pass are put through the checker as the
planner does it, sweep by sweep, and settled all along: every 0.02 m or 0.5 degrees by default, from
the nominal guess and from the state before. Where the two end apart there is a fold: more than one
settled state. Each is counted, and what is unsafe or outside the bounds told apart by it.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlnav import _core
from mlnav.compute import results
from mlnav.config import Config
from mlnav.core import HeightMap
from mlnav.linkage import STATE
from mlnav.nav import Motion
from mlnav.stats import Rate
from mlnav.studies.cases import Case, cases
from mlnav.studies.soundness import DISTINCT_M, ONE_SIDED, Columns, left_bounds, random_poses
from mlnav.terrain import AS_DECLARED, Reading

KINDS = ("arc", "turn", "resteer")
ARC_M, TURN_RAD = 1.0, 2.0 / 3.0
POSE_M, POSE_RAD = 0.1, math.radians(10.0 / 3.0)
"""Between poses that are checked one by one, for comparison and to choose motions."""

MOTIONS_PER_TERRAIN = 60

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class SweepsRequest:
    """What to measure.

    Attributes:
        config: rover, limits, tracking and checker.
        terrain: as for `studies.cases.cases`: a file, recipe or class, or `all`.
        motions: number, spread evenly over the cases: arcs, turns in place, re-steerings in turn.
        spacing_m: between settled states; half a degree of a turn counts as 0.02 m.
        seed: of terrains and motions.
        workers: processes.
        reading: of a GeoTIFF.
    """

    config: Config
    terrain: str = "all"
    motions: int = 3000
    spacing_m: float = 0.02
    seed: int = 0
    workers: int = 1
    reading: Reading = AS_DECLARED


@dataclass(frozen=True)
class _Task:
    request: SweepsRequest
    case: Case
    spawn_key: tuple[int, int]
    motions: int


def sweeps(
    request: SweepsRequest,
    progress: Callable[[int, str], None] = lambda done, note: None,
    suspect: Callable[[dict[str, Any]], None] = lambda record: None,
) -> dict[str, Any]:
    """Run the measurement.

    Args:
        request: what to measure.
        progress: called with the number of motions tried and a note as it goes.
        suspect: called with each certified sweep that holds a state beyond limits or bounds.

    Raises:
        TerrainError, ConfigError: the request names a bad terrain or configuration.
    """
    request.config.rover_model()
    grounds = cases(request.terrain, request.reading)
    share, rest = divmod(request.motions, len(grounds))
    tasks = [
        _Task(request, case, (i, k), min(share + (i < rest) - begin, MOTIONS_PER_TERRAIN))
        for i, case in enumerate(grounds)
        for k, begin in enumerate(range(0, share + (i < rest), MOTIONS_PER_TERRAIN))
    ]
    by_case: dict[str, Counter[str]] = {}
    done = 0
    for task, (counts, suspects) in zip(
        tasks, results(tasks, run_task, request.workers), strict=True
    ):
        by_case.setdefault(task.case.label, Counter()).update(counts)
        for record in suspects:
            suspect(record)
        done += task.motions
        progress(done, task.case.label)
    return {
        "checker": request.config.checker.name,
        "limits": request.config.limits.name,
        "tracking": request.config.tracking.model_dump(),
        "terrain": request.terrain,
        "seed": request.seed,
        "spacing_m": request.spacing_m,
        **_report(sum(by_case.values(), Counter())),
        "by_terrain": {label: _report(counts) for label, counts in by_case.items()},
    }


def run_task(task: _Task) -> tuple[Counter[str], list[dict[str, Any]]]:
    """Motions on one terrain: counts, and certified sweeps with states that should not be."""
    request = task.request
    root = np.random.SeedSequence(request.seed, spawn_key=task.spawn_key)
    terrain_seed, motion_seed, tube_seed = root.spawn(3)
    terrain = task.case.make(terrain_seed)
    rng, tube_rng = np.random.default_rng(motion_seed), np.random.default_rng(tube_seed)
    model = request.config.rover_model()
    grid = HeightMap.of(terrain).grid
    checker = request.config.build_checker(terrain.z.size)
    checker.set_map(grid)
    counts: Counter[str] = Counter()
    suspects: list[dict[str, Any]] = []
    for pose in random_poses(terrain, model, task.motions, rng):
        kind = KINDS[int(rng.integers(len(KINDS)))]
        rows, poses, way_m = _drawn(kind, pose, rng)
        counts[f"{kind}s"] += 1
        begin = time.thread_time()
        if checker.reasons(poses).any():
            continue
        counts["pose_us"] += round(1e6 * (time.thread_time() - begin))
        counts[f"{kind}s_drawn"] += 1
        counts["way_mm"] += round(1e3 * way_m)
        begin = time.thread_time()
        passed = not checker.reasons(rows).any()
        spent_us = round(1e6 * (time.thread_time() - begin))
        report: Columns = checker.report(rows)
        counts["sweeps"] += len(rows)
        counts["boxes"] += int(report["inner_steps"].sum())
        counts["ranges"] += int(report["ranges"].sum())
        safe = True
        for row, bounds in zip(rows, _rows_of(report), strict=True):
            found = _settled_along(grid, model, row, request, tube_rng, bounds)
            safe &= not found["unsafe"]
            if not bounds["safe"]:
                continue
            counts.update({f"states_{k}": v for k, v in found.items()})
            counts["certified_mm"] += round(1e3 * _length_m(row))
            if found["unsafe"] or found["outside"] or found["not_settled"]:
                suspects.append(
                    {"sweep": row.tolist(), "case": task.case.label, "found": dict(found),
                     "spawn_key": list(task.spawn_key), "seed": request.seed}
                )  # fmt: skip
        counts[f"{kind}s_safe"] += safe
        counts[f"{kind}s_passed"] += safe and passed
        counts[f"{kind}s_unsafe_passed"] += passed and not safe
        if passed:
            counts["passed_us"] += spent_us
            counts["passed_mm"] += round(1e3 * way_m)
        elif safe:
            failed = np.bitwise_or.reduce(report["reasons"])
            for bit, name in enumerate(_core.REASONS):
                counts[f"refused:{name}"] += int(failed >> bit & 1)
    return counts, suspects


def _drawn(kind: str, pose: F64, rng: np.random.Generator) -> tuple[F64, F64, float]:
    """Rows of the sweeps of a random motion, its poses checked one by one, and its way [m]."""
    x, y, heading = map(float, pose)
    curvature = float(rng.uniform(-1.0, 1.0)) / 3.0
    if kind == "resteer":
        before = float(rng.choice([math.inf, rng.uniform(-1.0, 1.0) / 3.0]))
        rows = np.array([[x, y, heading, curvature, 0.0, before]])
        return rows, np.array([[x, y, heading, before], [x, y, heading, curvature]]), 0.0
    turn = float(rng.choice([-TURN_RAD, TURN_RAD]))
    motion = Motion(turn, 0.0, 0.0) if kind == "turn" else Motion(0.0, curvature, ARC_M)
    steered = math.inf if kind == "turn" else curvature
    poses, _ = motion.stances((x, y, heading), POSE_M, POSE_RAD)
    rows = motion.sweeps((x, y, heading), steered)
    return rows, np.vstack([[x, y, heading, steered], poses]), float(sum(map(_length_m, rows)))


def _length_m(row: F64) -> float:
    """Way of the outermost wheels of a sweep; re-steering has none."""
    return abs(float(row[4])) * (1.5 if math.isinf(row[3]) else 1.0)


def _rows_of(report: Columns) -> Iterator[Columns]:
    for i in range(len(report["safe"])):
        yield {name: column[i] for name, column in report.items()}


def _settled_along(
    grid: _core.Grid,
    model: _core.RoverModel,
    row: F64,
    request: SweepsRequest,
    rng: np.random.Generator,
    bounds: Columns,
) -> Counter[str]:
    """States along one sweep, in the tube: how many, unsafe, outside the bounds, in folds."""
    x, y, heading, curvature, extent, before = map(float, row)
    to = model.wheel_steering_rad(curvature)
    turns, resteers = math.isinf(curvature), not math.isnan(before)
    way = np.abs(to - model.wheel_steering_rad(before)).max() if resteers else _length_m(row)
    count = max(2, math.ceil(way / request.spacing_m) + 1)
    share = np.linspace(0.0, 1.0, count)
    steering = np.tile(to, (count, 1))
    if resteers:
        start = model.wheel_steering_rad(before)
        steering = start + share[:, None] * (to - start)
        poses = np.tile([x, y, heading], (count, 1))
    else:
        motion = Motion(extent, 0.0, 0.0) if turns else Motion(0.0, curvature, extent)
        moved = (extent * share, np.empty(0)) if turns else (np.empty(0), extent * share)
        poses = motion.poses_at((x, y, heading), *moved)
    tube = request.config.tracking
    off = rng.uniform(-1.0, 1.0, (count, 3)) * [
        tube.along_m, tube.across_m, math.radians(tube.heading_deg)
    ]  # fmt: skip
    c, s = np.cos(poses[:, 2]), np.sin(poses[:, 2])
    poses[:, 0] += off[:, 0] * c - off[:, 1] * s
    poses[:, 1] += off[:, 0] * s + off[:, 1] * c
    poses[:, 2] += off[:, 2]
    nominal: Columns = _core.settle(grid, model, poses, steering_rad=steering)
    found: Counter[str] = Counter(states=0, unsafe=0, outside=0, folds=0, not_settled=0)
    found.update(_judged(nominal, bounds))
    heights: F64 | None = None
    for i in range(count):
        if heights is not None:
            one: Columns = _core.settle(grid, model, poses[i : i + 1], heights, steering[i : i + 1])
            found.update(_judged(one, bounds))
            if one["status"][0] == 0:
                heights = one["heights_m"]
                apart = np.abs(heights[0] - nominal["heights_m"][i]).max()
                found["folds"] += int(nominal["status"][i] == 0 and apart > DISTINCT_M)
        elif nominal["status"][i] == 0:
            heights = np.ascontiguousarray(nominal["heights_m"][i : i + 1])
    return found


def _judged(states: Columns, bounds: Columns) -> Counter[str]:
    settled = states["status"] == 0
    names = (*STATE, *(bound for _, _, bound, _ in ONE_SIDED))
    repeated = {name: np.repeat(bounds[name][None], len(settled), axis=0) for name in names}
    outside = np.zeros(len(settled), bool)
    if bounds["safe"]:
        for left in left_bounds(repeated, states).values():
            outside |= left
    return Counter(
        states=len(settled),
        unsafe=int((settled & ~states["safe"].astype(bool)).sum()),
        outside=int((settled & outside).sum()),
        not_settled=int((~settled).sum()),
    )


def _report(counts: Counter[str]) -> dict[str, Any]:
    """Counts and rates, for records.

    certified_km: way of certified sweeps; re-steerings count in `states` alone. states: settled on
    it, unsafe, outside the bounds, where two starts end apart (folds). passed: of the truly safe
    motions of a kind, those whose every sweep passed. us_per_m: of thread time, per metre of
    passed motions, by sweeps and, of all drawn, pose by pose.
    """
    way_m, passed_m = counts["way_mm"] / 1e3, counts["passed_mm"] / 1e3
    kinds = {
        kind: {
            "tried": counts[f"{kind}s"],
            "drawn": counts[f"{kind}s_drawn"],
            "unsafe": counts[f"{kind}s_drawn"] - counts[f"{kind}s_safe"],
            "unsafe_passed": counts[f"{kind}s_unsafe_passed"],
            "passed": Rate(counts[f"{kind}s_passed"], counts[f"{kind}s_safe"]).as_dict(),
        }
        for kind in KINDS
    }
    return {
        "certified_km": counts["certified_mm"] / 1e6,
        "states": {
            name: counts[f"states_{name}"]
            for name in ("states", "unsafe", "outside", "folds", "not_settled")
        },
        "motions": kinds,
        "refused": {
            name: counts[f"refused:{name}"] for name in _core.REASONS if counts[f"refused:{name}"]
        },
        "sweeps": counts["sweeps"],
        "boxes_per_sweep": counts["boxes"] / counts["sweeps"] if counts["sweeps"] else None,
        "ranges_per_sweep": counts["ranges"] / counts["sweeps"] if counts["sweeps"] else None,
        "us_per_m": {
            "sweeps": counts["passed_us"] / passed_m if passed_m else None,
            "poses": counts["pose_us"] / way_m if way_m else None,
        },
    }
