"""Is a checker sound, and what does it cost in safe poses refused?

Random poses go through the checker and are settled from two starts: the nominal guess, and heights
perturbed at random. What a checker passes must settle inside the limits and inside the bounds it
reported; what settles safely should pass.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlnav import _core
from mlnav.bench.cases import Case, cases
from mlnav.bench.statistics import Rate
from mlnav.config import Config
from mlnav.core import HeightMap
from mlnav.terrain import Terrain

POSES_PER_TERRAIN = 500
"""Then a new terrain is made. Poses on one terrain are not quite independent, so the intervals of
rates are a little narrow."""

PERTURBATION_M = 0.1
"""Of each start height of the second settling, either way."""

TOLERANCE = 5e-5
"""m or rad by which a settled state may leave its bounds. Settling stops when a step moves no wheel
by more than 1e-6 m; where it converges slowly, two starts of one state end 1.2e-5 apart."""

BOUNDED = (
    "roll_rad",
    "pitch_rad",
    "differential_rad",
    "bogie_left_rad",
    "bogie_right_rad",
    "origin_z_m",
)
# name, settled column, report column, sign: +1 the report is an upper bound, -1 a lower one
ONE_SIDED = (
    ("tilt_rad", "tilt_rad", "tilt_max_rad", 1),
    ("clearance_m", "clearance_m", "clearance_min_m", -1),
)

Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class SoundnessRequest:
    """What to measure.

    Attributes:
        config: rover, limits and checker.
        terrain: as for `bench.cases.cases`: a file, recipe or class, or `all`.
        poses: in all, spread evenly over the grounds.
        seed: of terrains, poses and starts.
        boxes: half lengths and widths [m] of `fixed_box` to compare on the same poses; empty: the
            configured checker as it is.
        workers: processes.
    """

    config: Config
    terrain: str = "all"
    poses: int = 100_000
    seed: int = 0
    boxes: tuple[float, ...] = ()
    workers: int = 1


@dataclass(frozen=True)
class _Task:
    case: Case
    case_index: int
    terrain_index: int
    poses: int
    seed: int
    config: Config
    variants: tuple[str, ...]


def soundness(
    request: SoundnessRequest, progress: Callable[[int, str], None] = lambda done, note: None
) -> dict[str, Any]:
    """Run the measurement; `progress(poses done, note)` is called as it goes.

    Raises:
        TerrainError, ConfigError: the request names a bad terrain or configuration.
    """
    request.config.rover_model()
    grounds = cases(request.terrain)
    tasks = list(_tasks(request, grounds))
    by_case: dict[str, dict[str, Counter[str]]] = {}
    done = 0
    for task, tallies in _results(tasks, request.workers):
        totals = by_case.setdefault(task.case.label, {v: Counter() for v in task.variants})
        for variant, tally in tallies.items():
            totals[variant].update(tally)
        done += task.poses
        progress(done, task.case.label)
    variants = _variants(request)
    reports = []
    for variant in variants:
        overall: Counter[str] = Counter()
        for totals in by_case.values():
            overall.update(totals[variant])
        report = _report(overall)
        report["by_terrain"] = {
            case.label: _report(by_case[case.label][variant])
            for case in grounds
            if case.label in by_case
        }
        if request.boxes:
            report = {"box_half_width_m": float(variant)} | report
        reports.append(report)
    head = {
        "checker": request.config.checker.name,
        "limits": request.config.limits.name,
        "terrain": request.terrain,
        "seed": request.seed,
        "tolerance": TOLERANCE,
    }
    return head | ({"boxes": reports} if request.boxes else reports[0])


def _variants(request: SoundnessRequest) -> tuple[str, ...]:
    return tuple(repr(b) for b in request.boxes) or ("",)


def _tasks(request: SoundnessRequest, grounds: Sequence[Case]) -> Iterator[_Task]:
    share, rest = divmod(request.poses, len(grounds))
    for i, case in enumerate(grounds):
        left = share + (i < rest)
        index = 0
        while left > 0:
            poses = min(left, POSES_PER_TERRAIN)
            yield _Task(case, i, index, poses, request.seed, request.config, _variants(request))
            left -= poses
            index += 1


def _results(
    tasks: Sequence[_Task], workers: int
) -> Iterator[tuple[_Task, dict[str, Counter[str]]]]:
    if workers <= 1:
        for task in tasks:
            yield task, run_task(task)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(run_task, task): task for task in tasks}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def run_task(task: _Task) -> dict[str, Counter[str]]:
    """One terrain: its tally by variant of the checker."""
    root = np.random.SeedSequence(task.seed, spawn_key=(task.case_index, task.terrain_index))
    terrain_seed, pose_seed = root.spawn(2)
    terrain = task.case.make(terrain_seed)
    rng = np.random.default_rng(pose_seed)
    model = task.config.rover_model()
    grid = HeightMap.of(terrain).grid
    poses = random_poses(terrain, model, task.poses, rng)
    settled = settle_twice(grid, model, poses, rng)
    tallies = {}
    for variant in task.variants:
        config = task.config
        if variant:
            config = config.replaced(
                [f"checker.half_length_m={variant}", f"checker.half_width_m={variant}"]
            )
        checker = config.build_checker(terrain.z.size)
        checker.set_map(grid)
        tallies[variant] = tally(checker.report(poses), settled)
    return tallies


def random_poses(
    terrain: Terrain, model: _core.RoverModel, count: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Uniform poses where the whole rover is on the map, any heading, (n, 3)."""
    g = model.geometry
    reach = math.hypot(
        max(g.front_x_m, -g.rear_x_m, g.pan_front_x_m, -g.pan_rear_x_m) + g.wheel_radius_m,
        max(g.middle_y_m, g.front_y_m, g.rear_y_m) + g.wheel_width_m,
    )
    margin = reach + 0.5 + 3.0 * terrain.resolution_m  # steeply tilted, wheels reach farther
    x_min, x_max, y_min, y_max = terrain.extent_m
    xs = _between(rng, x_min + margin, x_max - margin, count)
    ys = _between(rng, y_min + margin, y_max - margin, count)
    return np.column_stack([xs, ys, rng.uniform(-math.pi, math.pi, count)])


def _between(rng: np.random.Generator, low: float, high: float, count: int) -> NDArray[np.float64]:
    if low > high:  # a map smaller than the rover: its middle is as good as any place
        low = high = 0.5 * (low + high)
    return rng.uniform(low, high, count)


def settle_twice(
    grid: _core.Grid, model: _core.RoverModel, poses: NDArray[np.float64], rng: np.random.Generator
) -> tuple[Columns, Columns]:
    """Settled states from the nominal guess, and from heights perturbed at random."""
    nominal: Columns = _core.settle(grid, model, poses)
    starts = nominal_heights(grid, model, poses)
    starts = starts + rng.uniform(-PERTURBATION_M, PERTURBATION_M, starts.shape)
    usable = np.isfinite(starts).all(axis=1)
    starts[~usable] = 0.0  # over unknown ground; settling will say so
    perturbed: Columns = _core.settle(grid, model, poses, np.ascontiguousarray(starts))
    return nominal, perturbed


def nominal_heights(
    grid: _core.Grid, model: _core.RoverModel, poses: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(n, 6) heights at which wheels rest at their nominal places."""
    plan = model.wheel_plan()
    cos, sin = np.cos(poses[:, 2:3]), np.sin(poses[:, 2:3])
    x = poses[:, 0:1] + cos * plan[:, 0] - sin * plan[:, 1]
    y = poses[:, 1:2] + sin * plan[:, 0] + cos * plan[:, 1]
    heading = np.broadcast_to(poses[:, 2:3], x.shape)
    wheels = np.ascontiguousarray(np.stack([x, y, heading], axis=-1).reshape(-1, 3))
    return grid.wheel_heights(model, wheels).reshape(-1, 6)


def tally(report: Columns, settled: tuple[Columns, Columns]) -> Counter[str]:
    """Counts over poses; see `_report` for what they mean."""
    passed = report["safe"].astype(bool)
    contact = [s["status"] == 0 for s in settled]
    safe = [s["safe"].astype(bool) for s in settled]
    counts: Counter[str] = Counter(
        poses=len(passed),
        passed=int(passed.sum()),
        not_settled=int((~contact[0]).sum()),
        passed_not_settled=int((passed & ~contact[0]).sum()),
        inner_steps=int(report["inner_steps"].sum()),
        lookups=int(report["lookups"].sum()),
    )
    outside_limits = np.zeros(len(passed), bool)
    outside_bounds = np.zeros(len(passed), bool)
    for state, touching, is_safe in zip(settled, contact, safe, strict=True):
        seen = passed & touching
        outside_limits |= seen & ~is_safe
        for bit, name in enumerate(_core.REASONS):
            hit = seen & ((state["reasons"] >> bit) & 1).astype(bool)
            counts[f"limits:{name}"] += int(hit.sum())
        for name, left in left_bounds(report, state).items():
            counts[f"bounds:{name}"] += int((seen & left).sum())
            outside_bounds |= seen & left
    counts["outside_limits"] = int(outside_limits.sum())
    counts["outside_bounds"] = int(outside_bounds.sum())
    truly_safe = contact[0] & safe[0] & (~contact[1] | safe[1])
    refused = truly_safe & ~passed
    counts["settled_safe"] = int(truly_safe.sum())
    counts["safe_rejected"] = int(refused.sum())
    for bit, name in enumerate(_core.REASONS):
        hit = refused & ((report["reasons"] >> bit) & 1).astype(bool)
        counts[f"rejected:{name}"] += int(hit.sum())
    return counts


def left_bounds(report: Columns, state: Columns) -> dict[str, NDArray[np.bool_]]:
    """Whether each settled state leaves each bound by more than the tolerance."""
    left = {}
    with np.errstate(invalid="ignore"):
        for name in BOUNDED:
            low, high = report[name][:, 0], report[name][:, 1]
            value = state[name]
            left[name] = ~((low - TOLERANCE <= value) & (value <= high + TOLERANCE))
        for name, column, bound, sign in ONE_SIDED:
            left[name] = ~(sign * state[column] <= sign * report[bound] + TOLERANCE)
    return left


def _report(counts: Counter[str]) -> dict[str, Any]:
    """Counts and rates, for records.

    passed: by the checker. settled_safe: in contact and inside the limits from both starts.
    outside_limits, outside_bounds: passed, and a settled state is beyond the limits, or outside
    what the checker reported. safe_rejected: settled safe, yet not passed; a pose counts under each
    of its reasons. not_settled: from the nominal guess.
    """

    def split(prefix: str) -> dict[str, int]:
        head = f"{prefix}:"
        found = {k.removeprefix(head): v for k, v in counts.items() if k.startswith(head) and v}
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))

    passed, safe = counts["passed"], counts["settled_safe"]
    poses = counts["poses"]
    names = (
        "poses",
        "passed",
        "settled_safe",
        "outside_limits",
        "outside_bounds",
        "safe_rejected",
        "not_settled",
        "passed_not_settled",
    )
    return {name: counts[name] for name in names} | {
        "rates": {
            "passed": Rate(passed, poses).as_dict(),
            "settled_safe": Rate(safe, poses).as_dict(),
            "outside_limits": Rate(counts["outside_limits"], passed).as_dict(),
            "outside_bounds": Rate(counts["outside_bounds"], passed).as_dict(),
            "safe_rejected": Rate(counts["safe_rejected"], safe).as_dict(),
        },
        "outside_limits_by": split("limits"),
        "outside_bounds_by": split("bounds"),
        "safe_rejected_by": split("rejected"),
        "inner_steps_per_pose": counts["inner_steps"] / poses if poses else None,
        "lookups_per_pose": counts["lookups"] / poses if poses else None,
    }
