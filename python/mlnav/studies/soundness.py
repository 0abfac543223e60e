"""Is a checker sound, and how many safe poses does it reject?

Random poses go through the checker and are settled: every pose from the nominal guess; poses that
passed also from the middle of the reported bounds, and a share of them from random heights. What a
checker passes must settle inside the limits and the reported bounds; what settles safely should
pass.

A rover can have more than one settled state at a pose: a wheel on top of a rock, or next to it. A
random start that ends in a clearly different state than the nominal guess and the box centre is
counted separately, as a second state.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlnav import _core
from mlnav.compute import results
from mlnav.config import Config
from mlnav.core import HeightMap, reason_names
from mlnav.linkage import STATE, box_centres, contact_heights
from mlnav.stats import Rate
from mlnav.studies.cases import Case, cases
from mlnav.terrain import AS_DECLARED, Reading, Terrain

POSES_PER_TERRAIN = 500
"""Poses on one terrain are not quite independent: the intervals of rates are a little narrow."""

PERTURBATION_M = 0.1
"""Largest change of a start height in random starts, up or down."""

RANDOM_STARTS = 7
RANDOM_SHARE = 0.01
"""Share of the poses that are settled from random starts if they passed."""

DISTINCT_M = 0.01
"""Wheel height difference above which settled states are distinct. Starts that end in one state
differ by microns, rarely by millimetres (two contacts under one wheel); a wheel on top of a rock
instead of next to it differs by centimetres."""

TOLERANCE = 5e-5
"""m or rad by which a settled state may exceed its bounds. Settling stops when no wheel moves more
than 1e-6 m in a step; where it converges slowly, two starts of one state end 1.2e-5 apart."""

# name, settled column, report column, sign: +1 the report is an upper bound, -1 a lower one
ONE_SIDED = (
    ("tilt_rad", "tilt_rad", "tilt_max_rad", 1),
    ("clearance_m", "clearance_m", "clearance_min_m", -1),
    ("relief_max_m", "relief_max_m", "relief_max_m", 1),
)

STARTS = ("nominal", "box_centre", "random")

Columns = dict[str, NDArray[Any]]


class ReplayError(ValueError):
    """A record of a suspicious case cannot be replayed."""


@dataclass(frozen=True)
class SoundnessRequest:
    """What to measure.

    Attributes:
        config: rover, limits and checker.
        terrain: as for `studies.cases.cases`: a file, recipe or class, or `all`.
        poses: total number, spread evenly over the cases.
        seed: of terrains, poses and starts.
        boxes: half lengths and widths [m] of `fixed_box` to compare on the same poses; empty: the
            configured checker as it is.
        workers: processes.
        random_share: share of poses settled from `RANDOM_STARTS` random starts if they passed.
        reading: of a GeoTIFF.
    """

    config: Config
    terrain: str = "all"
    poses: int = 100_000
    seed: int = 0
    boxes: tuple[float, ...] = ()
    workers: int = 1
    random_share: float = RANDOM_SHARE
    reading: Reading = AS_DECLARED

    @property
    def variants(self) -> tuple[str, ...]:
        """Box sizes as text; one empty text for the configured checker."""
        return tuple(map(repr, self.boxes)) or ("",)


@dataclass(frozen=True)
class _Task:
    request: SoundnessRequest
    case: Case
    spawn_key: tuple[int, int]
    poses: int


@dataclass(frozen=True, eq=False)
class Start:
    """Settled states of the passed poses `rows` from one kind of start.

    Attributes:
        name: `nominal`, `box_centre` or `random`.
        rows: (n,) indices into the poses.
        heights_m: (n, 6) start heights; None for the nominal guess.
        states: columns of `_core.settle`.
    """

    name: str
    rows: NDArray[np.intp]
    heights_m: NDArray[np.float64] | None
    states: Columns


def soundness(
    request: SoundnessRequest,
    progress: Callable[[int, str], None] = lambda done, note: None,
    suspect: Callable[[dict[str, Any]], None] = lambda record: None,
) -> dict[str, Any]:
    """Run the measurement.

    Args:
        request: what to measure.
        progress: called with the number of poses done and a note as it goes.
        suspect: called with everything needed to replay each settled state that is not as it
            should be, in an order that does not depend on the workers; see `findings`.

    Raises:
        TerrainError, ConfigError: the request names a bad terrain or configuration.
    """
    request.config.rover_model()
    grounds = cases(request.terrain, request.reading)
    tasks = list(_tasks(request, grounds))
    by_case: dict[str, dict[str, Counter[str]]] = {}
    done = 0
    for task, (tallies, suspects) in zip(
        tasks, results(tasks, run_task, request.workers), strict=True
    ):
        totals = by_case.setdefault(task.case.label, {v: Counter() for v in request.variants})
        for variant, tally in tallies.items():
            totals[variant].update(tally)
        for record in suspects:
            suspect(record)
        done += task.poses
        progress(done, task.case.label)
    reports = []
    for variant in request.variants:
        counts = {c.label: by_case[c.label][variant] for c in grounds if c.label in by_case}
        report = _report(sum(counts.values(), Counter()))
        report["by_terrain"] = {label: _report(tally) for label, tally in counts.items()}
        reports.append({"box_half_width_m": float(variant)} | report if variant else report)
    head = {
        "checker": request.config.checker.name,
        "limits": request.config.limits.name,
        "terrain": request.terrain,
        "seed": request.seed,
        "tolerance": TOLERANCE,
        "distinct_m": DISTINCT_M,
        "random_starts": RANDOM_STARTS,
        "random_share": request.random_share,
    }
    return head | ({"boxes": reports} if request.boxes else reports[0])


def _tasks(request: SoundnessRequest, grounds: Sequence[Case]) -> Iterator[_Task]:
    share, rest = divmod(request.poses, len(grounds))
    for i, case in enumerate(grounds):
        poses = share + (i < rest)
        for k, begin in enumerate(range(0, poses, POSES_PER_TERRAIN)):
            yield _Task(request, case, (i, k), min(poses - begin, POSES_PER_TERRAIN))


Result = tuple[dict[str, Counter[str]], list[dict[str, Any]]]


def run_task(task: _Task) -> Result:
    """Check one terrain: tallies by variant of the checker, and suspicious cases."""
    request = task.request
    root = np.random.SeedSequence(request.seed, spawn_key=task.spawn_key)
    terrain_seed, pose_seed, sample_seed, start_seed = root.spawn(4)
    terrain = task.case.make(terrain_seed)
    model = request.config.rover_model()
    grid = HeightMap.of(terrain).grid
    poses = random_poses(terrain, model, task.poses, np.random.default_rng(pose_seed))
    sampled = np.random.default_rng(sample_seed).random(task.poses) < request.random_share
    nominal: Columns = _core.settle(grid, model, poses)
    tallies = {}
    suspects = []
    for variant in request.variants:
        config = _of_variant(request.config, variant)
        checker = config.build_checker(terrain.z.size)
        checker.set_map(grid)
        report = bounds_of(checker, poses)
        rng = np.random.default_rng(start_seed)
        starts = list(settled_starts(grid, model, poses, report, nominal, sampled, rng))
        found_by_start = [findings(report, start, starts) for start in starts]
        tallies[variant] = tally(report, nominal, starts, found_by_start)
        for start, found in zip(starts, found_by_start, strict=True):
            suspects += _suspicious(task, config, terrain, poses, start, found)
    return tallies, suspects


def bounds_of(checker: _core.Checker, poses: NDArray[np.float64]) -> Columns:
    """The checker's report; relief is unbounded if it is that of wheel boxes, not of wheels."""
    report: Columns = checker.report(poses)
    if checker.name not in ("verified", "settle"):
        report["relief_max_m"] = np.full(len(poses), np.inf)
    return report


def _of_variant(config: Config, variant: str) -> Config:
    if not variant:
        return config
    return config.replaced([f"checker.half_length_m={variant}", f"checker.half_width_m={variant}"])


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


def settled_starts(
    grid: _core.Grid,
    model: _core.RoverModel,
    poses: NDArray[np.float64],
    report: Columns,
    nominal: Columns,
    sampled: NDArray[np.bool_],
    rng: np.random.Generator,
) -> Iterator[Start]:
    """The passed poses from every kind of start, `nominal` and `box_centre` first."""
    passed = report["safe"].astype(bool)
    rows = np.flatnonzero(passed)
    yield Start("nominal", rows, None, {k: v[rows] for k, v in nominal.items()})

    def settled(name: str, rows: NDArray[np.intp], heights_m: NDArray[np.float64]) -> Start:
        known = np.isfinite(heights_m).all(axis=1)
        rows, heights_m = rows[known], np.ascontiguousarray(heights_m[known])
        there = np.ascontiguousarray(poses[rows])
        return Start(name, rows, heights_m, _core.settle(grid, model, there, heights_m))

    bounds = {name: report[name][rows] for name in STATE}
    yield settled("box_centre", rows, contact_heights(model.geometry, box_centres(bounds)))
    # Drawn for every sampled pose, passed or not, so that all variants see the same starts.
    chosen = np.flatnonzero(sampled)
    shifts = rng.uniform(-PERTURBATION_M, PERTURBATION_M, (len(chosen), RANDOM_STARTS, 6))
    keep = passed[chosen]
    rows = chosen[keep]
    heights = nominal_heights(grid, model, poses[rows])
    for i in range(RANDOM_STARTS):
        yield settled("random", rows, heights + shifts[keep, i])


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


def findings(
    report: Columns, start: Start, starts: Sequence[Start]
) -> dict[str, NDArray[np.bool_]]:
    """What is wrong with the settled states of one start, by name.

    `not_settled`: no settled state was found. `outside_limits:<reason>`, `outside_bounds:<name>`:
    the state is. `second_state`: a random start ended in a state clearly different from those of
    the other two; `second_state:<reason>` says why it is unsafe.
    """
    state = start.states
    touching = state["status"] == 0
    second = np.zeros(len(start.rows), bool)
    if start.name == "random":
        second = touching & (_distance_m(start, starts) > DISTINCT_M)
    found = {"not_settled": ~touching, "second_state": second}
    expected = touching & ~second
    for bit, name in enumerate(_core.REASONS):
        unsafe = ((state["reasons"] >> bit) & 1).astype(bool)
        found[f"outside_limits:{name}"] = expected & unsafe
        found[f"second_state:{name}"] = second & unsafe
    rows = start.rows
    bounds = {name: report[name][rows] for name in (*STATE, *(b for _, _, b, _ in ONE_SIDED))}
    for name, left in left_bounds(bounds, state).items():
        found[f"outside_bounds:{name}"] = expected & left
    return found


def _distance_m(start: Start, starts: Sequence[Start]) -> NDArray[np.float64]:
    """In wheel heights, from the nearest state of the starts that are not random; inf: none."""
    nearest = np.full(len(start.rows), np.inf)
    for other in starts:
        if other.name == "random":
            continue
        at = np.searchsorted(other.rows, start.rows)
        at = np.minimum(at, max(len(other.rows) - 1, 0))
        if not len(other.rows):
            continue
        known = (other.rows[at] == start.rows) & (other.states["status"][at] == 0)
        apart = np.abs(start.states["heights_m"] - other.states["heights_m"][at]).max(axis=1)
        nearest = np.minimum(nearest, np.where(known, apart, np.inf))
    return nearest


def _named(found: Mapping[str, NDArray[np.bool_]]) -> dict[int, list[str]]:
    """Names of findings by row of the start, rows without any left out."""
    named: dict[int, list[str]] = {}
    for name, hit in found.items():
        for row in np.flatnonzero(hit):
            named.setdefault(int(row), []).append(name)
    return dict(sorted(named.items()))


def tally(
    report: Columns,
    nominal: Columns,
    starts: Sequence[Start],
    found_by_start: Sequence[Mapping[str, NDArray[np.bool_]]],
) -> Counter[str]:
    """Counts over poses; see `_report` for what they mean."""
    passed = report["safe"].astype(bool)
    contact = nominal["status"] == 0
    truly_safe = contact & nominal["safe"].astype(bool)
    refused = truly_safe & ~passed
    counts: Counter[str] = Counter(
        poses=len(passed),
        passed=int(passed.sum()),
        not_settled=int((~contact).sum()),
        settled_safe=int(truly_safe.sum()),
        safe_rejected=int(refused.sum()),
        inner_steps=int(report["inner_steps"].sum()),
        lookups=int(report["lookups"].sum()),
    )
    for bit, name in enumerate(_core.REASONS):
        hit = refused & ((report["reasons"] >> bit) & 1).astype(bool)
        counts[f"rejected:{name}"] += int(hit.sum())
    poses_with: dict[str, set[int]] = {}
    for start, found in zip(starts, found_by_start, strict=True):
        counts[f"starts:{start.name}"] += len(start.rows)
        for name, hit in found.items():
            kind = name.partition(":")[0]
            counts[f"{start.name}/{kind}" if name == "not_settled" else name] += int(hit.sum())
            poses_with.setdefault(kind, set()).update(start.rows[hit].tolist())
        unsafe = found["second_state"] & ~start.states["safe"].astype(bool)
        counts["second_states_unsafe"] += int(unsafe.sum())
        counts["second_states"] += int(found["second_state"].sum())
    for kind in ("outside_limits", "outside_bounds"):
        counts[kind] = len(poses_with.get(kind, ()))
    return counts


def left_bounds(report: Columns, state: Columns) -> dict[str, NDArray[np.bool_]]:
    """Whether each settled state leaves each bound by more than the tolerance."""
    left = {}
    with np.errstate(invalid="ignore"):
        for name in STATE:
            low, high = report[name][:, 0], report[name][:, 1]
            value = state[name]
            left[name] = ~((low - TOLERANCE <= value) & (value <= high + TOLERANCE))
        for name, column, bound, sign in ONE_SIDED:
            left[name] = ~(sign * state[column] <= sign * report[bound] + TOLERANCE)
    return left


def _report(counts: Counter[str]) -> dict[str, Any]:
    """Counts and rates, for records.

    passed: by the checker. settled_safe: inside the limits when settled from the nominal guess.
    outside_limits, outside_bounds: passed poses with a settled state, other than second states,
    beyond the limits or outside the reported bounds; `_by` splits them. safe_rejected: settled safe
    but rejected, under each reason. not_settled: of all poses, from the nominal guess;
    passed_not_settled: of the passed ones, by start. second_states: random starts that ended in
    another state, and how many of those are unsafe.
    """

    def split(prefix: str) -> dict[str, int]:
        head = f"{prefix}:"
        found = {k.removeprefix(head): v for k, v in counts.items() if k.startswith(head) and v}
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))

    passed, poses = counts["passed"], counts["poses"]
    trials = {
        "passed": poses,
        "settled_safe": poses,
        "outside_limits": passed,
        "outside_bounds": passed,
        "safe_rejected": counts["settled_safe"],
        "not_settled": poses,
    }
    rates = trials | {"second_states": counts["starts:random"]}
    return {name: counts[name] for name in ("poses", *trials)} | {
        "rates": {name: Rate(counts[name], n).as_dict() for name, n in rates.items()},
        "starts": {name: counts[f"starts:{name}"] for name in STARTS},
        "passed_not_settled": {name: counts[f"{name}/not_settled"] for name in STARTS},
        "outside_limits_by": split("outside_limits"),
        "outside_bounds_by": split("outside_bounds"),
        "safe_rejected_by": split("rejected"),
        "second_states": {
            "found": counts["second_states"],
            "unsafe": counts["second_states_unsafe"],
            "unsafe_by": split("second_state"),
        },
        "inner_steps_per_pose": counts["inner_steps"] / poses if poses else None,
        "lookups_per_pose": counts["lookups"] / poses if poses else None,
    }


# ------------------------------------------------------------------------------- suspicious cases


def _suspicious(
    task: _Task,
    config: Config,
    terrain: Terrain,
    poses: NDArray[np.float64],
    start: Start,
    found: Mapping[str, NDArray[np.bool_]],
) -> list[dict[str, Any]]:
    """Records of the findings of one start, each complete for a replay."""
    ground = {
        **asdict(task.case),
        "seed": task.request.seed,
        "spawn_key": list(task.spawn_key),
        "resolution_m": terrain.resolution_m,
        "sha256": terrain.sha256,
    }
    settings = config.model_dump(mode="json", include={"rover", "limits", "checker"})
    heights = start.heights_m
    return [
        {
            "what": what,
            "start": start.name,
            "pose": poses[start.rows[row]].tolist(),
            "start_heights_m": None if heights is None else heights[row].tolist(),
            "ground": ground,
            "config": settings,
        }
        for row, what in _named(found).items()
    ]


def replay(record: Mapping[str, Any]) -> dict[str, Any]:
    """Check a suspicious case again: what was found, what is found `now`, states and bounds.

    Raises:
        TerrainError, ConfigError: the record's ground or configuration cannot be made.
        ReplayError: the record is incomplete, or its terrain is generated differently now.
    """
    try:
        ground = record["ground"]
        reading = Reading(**ground["reading"])
        case = Case(ground["label"], tuple(ground["kinds"]), ground["scaled"], reading)
        root = np.random.SeedSequence(ground["seed"], spawn_key=tuple(ground["spawn_key"]))
        pose = np.array([record["pose"]], np.float64).reshape(1, 3)
        given = record["start_heights_m"]
        heights = None if given is None else np.array([given], np.float64).reshape(1, 6)
        what, start_name, sha256 = record["what"], record["start"], ground["sha256"]
        settings = dict(record["config"])
    except (KeyError, TypeError, ValueError) as fault:
        raise ReplayError(f"not a suspicious case: {type(fault).__name__}: {fault}") from fault
    config = Config().replaced(**settings)
    terrain = case.make(root.spawn(1)[0])
    if terrain.sha256 != sha256:
        raise ReplayError(
            f"{case.label}: the ground comes out differently than when it was recorded"
        )
    grid, model = HeightMap.of(terrain).grid, config.rover_model()
    checker = config.build_checker(terrain.z.size)
    checker.set_map(grid)
    report = bounds_of(checker, pose)
    nominal: Columns = _core.settle(grid, model, pose)
    rng = np.random.default_rng(0)
    starts = list(settled_starts(grid, model, pose, report, nominal, np.zeros(1, bool), rng))
    passed = bool(report["safe"][0])
    state = nominal if heights is None else _core.settle(grid, model, pose, heights)
    again = Start(start_name, np.arange(1), heights, state)
    now = _named(findings(report, again, starts)).get(0, []) if passed else []
    return {
        "label": case.label,
        "resolution_m": terrain.resolution_m,
        "pose": pose[0].tolist(),
        "start": start_name,
        "what": what,
        "passed": passed,
        "reasons": reason_names(int(report["reasons"][0])),
        "now": now,
        "state": _plain(state),
        "bounds": _plain(report),
    }


def _plain(columns: Columns) -> dict[str, Any]:
    return {name: np.asarray(column)[0].tolist() for name, column in columns.items()}
