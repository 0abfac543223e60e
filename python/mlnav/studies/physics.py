"""Compare computed states with Bullet's physics: settled states, and arcs that ACE passed.

`settled`: the rover is put down at random poses. Its state at rest is compared with that of
`_core.settle` at the same pose, and with an independent method: cylinders that lean with the body,
sampled more finely than the wheel height field H (`settle_leaning`).

`arcs`: turns and arcs that the checker passed at every pose are driven. Each state on the way is
compared with the limits and, at the pose that was reached, with the checker's bounds. A rover does
not follow an arc exactly; so the checker also judges all poses within the arc's own tracking error.
Violations on arcs that fail this come from tracking; on arcs that pass, from the checker or motion.
"""

from __future__ import annotations

import math
import resource
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

from mlnav import _core
from mlnav.compute import run_recorded
from mlnav.config import Bullet, Config, ConfigError, Enav
from mlnav.core import HeightMap, reason_names
from mlnav.linkage import STATE, linkage
from mlnav.nav.motion import Motion, Pose
from mlnav.sim import RoverState
from mlnav.sim.bullet import BulletWorld
from mlnav.sim.world import PHASES, KinematicWorld, SettledStates, seen_from
from mlnav.stats import Rate
from mlnav.studies.cases import Case, cases
from mlnav.terrain import Terrain

F64 = NDArray[np.float64]

Record = dict[str, Any]
Progress = Callable[[int, str], None]

PER_TERRAIN = 25
"""Poses or arcs on each terrain."""

GROUNDS = {
    "settled": ("0/0", "20/0", "0/.10", "10/.10", "0/.20", "15/.15", "20/.05"),
    "arcs": tuple(
        f"{slope}/{cfa}" for slope in (0, 5, 10, 15, 20) for cfa in (".05", ".10", ".15")
    ),
    "cost": ("10/.07",),
}
"""What is measured, and the default terrains."""

COST_RESOLUTIONS_M = (0.1, 0.05)

RESOLUTION_M = 0.1
"""Of synthetic grounds."""

FOOTPRINT_M = 2.6
"""Distance from the edge beyond the world's own margin: half the rover, and an arc's drift."""

TILT_MOST_RAD = math.radians(30.0)
"""Steeper settled poses are left out: brakes hold to about atan(0.75)."""

NEAR_RADII, NEAR_DIRECTIONS = (0.5, 1.0), 8
"""Samples of the poses within a distance: at these shares of it, in so many directions."""

SLACK = {"origin_z_m": 2e-3} | dict.fromkeys(STATE[:-1], math.radians(0.1))
"""How far a state may exceed bounds for rigid wheels at rest: contacts of the physics are not quite
rigid, and a driven rover is not at rest."""


@dataclass(frozen=True)
class _Task:
    what: str
    case: Case
    index: tuple[int, int]
    seed: int
    count: int
    config: Config

    @property
    def key(self) -> tuple[Any, ...]:
        return self.what, self.case.label, self.index[1]

    def ground(self) -> tuple[Terrain, np.random.Generator]:
        root = np.random.SeedSequence(self.seed, spawn_key=self.index)
        terrain, rng = root.spawn(2)
        return self.case.make(terrain, RESOLUTION_M), np.random.default_rng(rng)


def measure(
    what: str,
    specs: Sequence[str],
    count: int,
    config: Config,
    records: Path,
    *,
    seed: int = 0,
    workers: int = 1,
    progress: Progress = lambda done, note: None,
) -> list[Record]:
    """Run the terrains that `records` does not hold yet; rows of a table, one per kind of terrain.

    Args:
        what: `settled` or `arcs`.
        specs: grounds, as for `studies.cases.cases`.
        count: poses or arcs on each ground.
        config: rover, limits, checker and a Bullet world.
        records: JSON lines, appended to.
        seed: of terrains and poses.
        workers: processes.
        progress: called with the number of terrains done, and a note.

    Raises:
        TerrainError, ConfigError: a ground or the configuration is bad.
        RecordError: `records` is damaged.
        WorkerError: a process died.
    """
    run, table = _MEASUREMENTS[what]
    measured = run_recorded(
        {task.key: task for task in _tasks(what, specs, count, config, seed)},
        run,
        records,
        lambda r: (r["what"], r["case"], r["terrain"]),
        workers=workers,
        progress=lambda done, r: progress(done, f"{r['case']} {r['terrain']}" if r else ""),
    )
    by_case: dict[str, list[Record]] = {}
    for record in measured:
        by_case.setdefault(record["case"], []).extend(record["rows"])
    by_case["all"] = [row for rows in by_case.values() for row in rows]
    return [table(label, rows) for label, rows in by_case.items()]


def terrains(what: str, specs: Sequence[str], count: int) -> int:
    """Number of terrains that `measure` runs."""
    return len(_tasks(what, specs, count, Config(), 0))


def _tasks(what: str, specs: Sequence[str], count: int, config: Config, seed: int) -> list[_Task]:
    found = [case for spec in specs for case in cases(spec)]
    return [
        _Task(what, case, (i, k), seed, min(PER_TERRAIN, count - k * PER_TERRAIN), config)
        for k in range(-(-count // PER_TERRAIN))
        for i, case in enumerate(found)
    ]


def _record(task: _Task, rows: list[Record]) -> Record:
    return {"what": task.what, "case": task.case.label, "terrain": task.index[1], "rows": rows}


def _bullet(config: Config) -> Bullet:
    assert isinstance(config.world, Bullet)
    return config.world


def _world(terrain: Terrain, config: Config) -> BulletWorld:
    return BulletWorld(terrain, config.rover_model(), _bullet(config))


def _drawn_poses(
    terrain: Terrain, config: Config, rng: np.random.Generator, accept: Callable[[F64], Any]
) -> Any:
    """Random poses, away from the edge, that `accept` (n, 3) -> (n,) bool accepts."""
    x_min, x_max, y_min, y_max = terrain.extent_m
    margin = _bullet(config).edge_m + FOOTPRINT_M
    low = (x_min + margin, y_min + margin, -math.pi)
    high = (x_max - margin, y_max - margin, math.pi)
    for _ in range(200):
        # Columns are drawn one after another.
        poses = np.column_stack([rng.uniform(a, b, 64) for a, b in zip(low, high, strict=True)])
        for pose in poses[accept(poses)]:
            yield tuple(map(float, pose))


# ---------------------------------------------------------------------------------- settled states


def _settled(task: _Task) -> Record:
    terrain, rng = task.ground()
    model = task.config.rover_model()
    still = KinematicWorld(terrain, model)
    world = _world(terrain, task.config)

    def settles(poses: F64) -> Any:
        columns = still.settle(poses)
        return (columns["status"] == 0) & (columns["tilt_rad"] <= TILT_MOST_RAD)

    rows: list[Record] = []
    for pose in _drawn_poses(terrain, task.config, rng, settles):
        if len(rows) == task.count:
            break
        measured = world.place(pose)
        rest = RoverState.at(measured).true_pose
        computed = still.place(rest)
        state = computed.state(0)
        if not all(np.isfinite(s.columns["roll_rad"][0]) for s in (measured, computed)):
            rows.append({"pose": pose, "rest": rest, "differs": None})
            continue
        leaning = settle_leaning(terrain, model.geometry, rest, {n: state[n] or 0.0 for n in STATE})
        rows.append(
            {
                "pose": pose,
                "rest": rest,
                "slid_m": math.dist(pose[:2], rest[:2]),
                "differs": _difference(measured, state),
                "differs_leaning": leaning and _difference(measured, leaning),
                "relief_max_m": float(computed.columns["relief_max_m"][0]),
                "tilt_rad": float(computed.columns["tilt_rad"][0]),
                "within_limits": bool(computed.columns["safe"][0]),
                "belly": bool(measured.columns["belly_contact"][0]),
            }
        )
    return _record(task, rows)


def _difference(measured: SettledStates, state: Mapping[str, float | None]) -> dict[str, float]:
    return {name: float(measured.columns[name][0]) - (state[name] or 0.0) for name in STATE}


def settle_leaning(
    terrain: Terrain, geometry: _core.RoverGeometry, pose: Pose, start: Mapping[str, float]
) -> dict[str, float] | None:
    """The state in which all six wheels, cylinders that lean with the body, touch the ground.

    Wheels are not steered. Sampled every centimetre or so; None where it is not found.

    Args:
        terrain: bilinear between its cells.
        geometry: of the rover.
        pose: x, y [m], heading [rad].
        start: names of `STATE`, to begin from.
    """

    def gaps(values: F64) -> F64:
        state = dict(zip(STATE, values, strict=True))
        axles = linkage(geometry, state).axles[0]
        points = _wheel_surface(geometry, state["roll_rad"])
        c, s = math.cos(pose[2]), math.sin(pose[2])
        forward, left = (axles[:, None, i] + points[None, :, i] for i in (0, 1))
        ground = terrain.height(pose[0] + c * forward - s * left, pose[1] + s * forward + c * left)
        return np.asarray((axles[:, None, 2] + points[None, :, 2] - ground).min(axis=1))

    found = scipy.optimize.root(gaps, [start[name] for name in STATE], method="hybr", tol=1e-9)
    if np.abs(gaps(found.x)).max() > 1e-4:
        return None
    return {name: float(value) for name, value in zip(STATE, found.x, strict=True)}


def _wheel_surface(geometry: _core.RoverGeometry, roll_rad: float) -> F64:
    """(n, 3) points of a wheel's lower half from its centre: forward, left, up, heading frame."""
    angles = np.linspace(-0.5 * math.pi, 0.5 * math.pi, 91)
    across = np.linspace(-0.5 * geometry.wheel_width_m, 0.5 * geometry.wheel_width_m, 35)
    angle, aside = (grid.ravel() for grid in np.meshgrid(angles, across))
    below = -geometry.wheel_radius_m * np.cos(angle)
    c, s = math.cos(roll_rad), math.sin(roll_rad)
    return np.column_stack(
        [geometry.wheel_radius_m * np.sin(angle), aside * c - below * s, aside * s + below * c]
    )


# -------------------------------------------------------------------------------------- the arcs


def _arcs(task: _Task) -> Record:
    terrain, rng = task.ground()
    config = task.config
    checker = config.build_checker(terrain.z.size)
    checker.set_map(HeightMap.of(terrain).grid)
    world = _world(terrain, config)
    rows: list[Record] = []
    for pose in _drawn_poses(terrain, config, rng, lambda p: checker.reasons(p) == 0):
        if len(rows) == task.count:
            break
        motion = _passed_motion(checker, config, pose, rng)
        if motion is not None:
            rows.append(_driven(checker, config, world, pose, motion))
    return _record(task, rows)


def _enav(config: Config) -> Enav:
    if not isinstance(config.planner, Enav):
        raise ConfigError(f"planner {config.planner.name}: motions are drawn from enav's tree")
    return config.planner


def _passed_motion(
    checker: _core.Checker, config: Config, pose: Pose, rng: np.random.Generator
) -> Motion | None:
    """A random motion of those the planner may commit, part of a turn or of an arc, that passes."""
    planner = _enav(config)
    turn = math.radians(planner.commit_turn_deg)
    turns = {max(-turn, min(turn, math.radians(t))) for t in planner.tree.turn_deg if t}
    motions = [
        *(Motion(t, 0.0, 0.0) for t in sorted(turns)),
        *(Motion(0.0, k, planner.commit_length_m) for k in planner.tree.curvature_per_m),
    ]
    order = [motions[i] for i in rng.permutation(len(motions))]
    return next((m for m in order if not checker.reasons(m.sweeps(pose)).any()), None)


def _driven(
    checker: _core.Checker, config: Config, world: BulletWorld, pose: Pose, motion: Motion
) -> Record:
    start = RoverState.at(world.place(pose)).true_pose
    run = world.execute(start, motion)
    states = run.states
    commanded, _ = motion.stances(start, 0.02, math.radians(0.5))
    along_m, across_m, turned_rad = _off_track(states.poses, commanded)
    tracking_m, tracking_rad = float(np.hypot(along_m, across_m).max()), float(turned_rad.max())
    steered = math.inf if motion.turn_rad else motion.curvature_per_m
    stances = np.column_stack([states.poses, np.full(len(states), steered)])
    bounds = checker.report(np.ascontiguousarray(stances))
    # The bounds do not hold while the wheels are being steered.
    rolling = states.columns["phase"] >= PHASES.index("turn")
    rolled = {name: column[rolling] for name, column in bounds.items()}
    limits = [reason_names(int(r)) for r in states.columns["reasons"]]
    end = (float(commanded[-1, 0]), float(commanded[-1, 1]), float(commanded[-1, 2]))
    stances, _ = motion.stances(start, 0.1, math.radians(10.0 / 3.0))
    near = _around(stances, tracking_m, tracking_rad)
    return {
        "pose": pose,
        "turn_rad": motion.turn_rad,
        "curvature_per_m": motion.curvature_per_m,
        "ending": run.ending,
        "states": len(states),
        "end_error": list(seen_from(end, run.pose)),
        "tracking_m": tracking_m,
        "tracking_rad": tracking_rad,
        "tube": [float(off.max()) for off in (along_m, across_m, turned_rad)],
        "belly": int(np.count_nonzero(states.columns["belly_contact"])),
        # Only at certified poses do the bounds hold.
        "bounded": int(np.count_nonzero(rolled["safe"])),
        "outside": {name: _outside(states.columns[name][rolling], rolled, name) for name in STATE},
        "breaches": [
            {"state": i, "limits": names, "ace_passes_there": bool(bounds["safe"][i])}
            for i, names in enumerate(limits)
            if names
        ],
        "passes_with_tracking": not checker.reasons(near).any(),
    }


def _off_track(poses: F64, commanded: F64) -> tuple[F64, F64, F64]:
    """How far each pose is from the nearest commanded one: along, across [m], in heading [rad]."""
    gaps = np.hypot(*(poses[:, None, i] - commanded[None, :, i] for i in (0, 1)))
    turns = np.abs((poses[:, None, 2] - commanded[None, :, 2] + math.pi) % (2 * math.pi) - math.pi)
    # Commanded poses of a turn in place are all at one point and differ in heading.
    nearest = np.argmin(gaps + turns, axis=1)
    rows = np.arange(len(poses))
    near = commanded[nearest]
    dx, dy = (poses[:, i] - near[:, i] for i in (0, 1))
    c, s = np.cos(near[:, 2]), np.sin(near[:, 2])
    return np.abs(c * dx + s * dy), np.abs(c * dy - s * dx), turns[rows, nearest]


def _around(stances: F64, distance_m: float, heading_rad: float) -> F64:
    """The stances, and samples of all poses within a distance and an angle of them."""
    steps = [(0.0, 0.0)]
    for share in NEAR_RADII:
        angles = np.arange(NEAR_DIRECTIONS) * (2.0 * math.pi / NEAR_DIRECTIONS)
        steps += [(share * math.cos(a), share * math.sin(a)) for a in angles]
    moved = [
        stances + np.array([distance_m * dx, distance_m * dy, heading_rad * turn, 0.0])
        for dx, dy in steps
        for turn in (-1.0, 0.0, 1.0)
    ]
    return np.ascontiguousarray(np.concatenate(moved))


def _outside(values: F64, bounds: dict[str, Any], name: str) -> float | None:
    """Largest distance of certified states outside their bounds; 0 inside, None without any."""
    low, high = bounds[name][:, 0], bounds[name][:, 1]
    excess = np.maximum(np.maximum(low - values, values - high), 0.0)[bounds["safe"].astype(bool)]
    return float(excess.max()) if len(excess) else None


# ------------------------------------------------------------------------------------- the tables


def _settled_row(label: str, rows: Sequence[Record]) -> Record:
    """|physics - computed| of each variable on one kind of terrain: p50, p95 and max."""
    return {
        "case": label,
        "poses": len(rows),
        "not_compared": sum(r["differs"] is None for r in rows),
        "slid_m": _spread([r["slid_m"] for r in rows if r["differs"]]),
        **{
            how: {n: _spread([abs(r[how][n]) for r in rows if r.get(how)]) for n in STATE}
            for how in ("differs", "differs_leaning")
        },
    }


def _arcs_row(label: str, rows: Sequence[Record]) -> Record:
    """Results of the arcs on one kind of terrain."""
    breached = [r for r in rows if r["breaches"]]
    beyond = sum(any((r["outside"][n] or 0.0) > SLACK[n] for n in STATE) for r in rows)
    allowed = [r for r in rows if r["passes_with_tracking"]]
    limits = ({name for b in r["breaches"] for name in b["limits"]} for r in breached)
    outside = {n: [r["outside"][n] for r in rows if r["outside"][n] is not None] for n in STATE}
    return {
        "case": label,
        "arcs": len(rows),
        "states": sum(r["states"] for r in rows),
        "endings": dict(Counter(r["ending"] or "driven" for r in rows)),
        "end_error_m": _spread([math.hypot(*r["end_error"][:2]) for r in rows]),
        "end_error_rad": _spread([abs(r["end_error"][2]) for r in rows]),
        "tracking_m": _spread([r["tracking_m"] for r in rows]),
        "tube": _tube(rows),
        "belly_contact": Rate(sum(r["belly"] > 0 for r in rows), len(rows)).as_dict(),
        "beyond_limits": Rate(len(breached), len(rows)).as_dict(),
        "limits": dict(Counter(name for names in limits for name in names)),
        "beyond_limits_where_ace_passes": sum(
            any(b["ace_passes_there"] for b in r["breaches"]) for r in rows
        ),
        "outside_bounds": Rate(beyond, len(rows)).as_dict(),
        "outside": {n: _spread(values) for n, values in outside.items()},
        "passed_with_tracking": len(allowed),
        "beyond_limits_with_tracking": sum(bool(r["breaches"]) for r in allowed),
        "belly_contact_with_tracking": sum(r["belly"] > 0 for r in allowed),
    }


def _tube(rows: Sequence[Record]) -> dict[str, float] | None:
    """Values of `tracking` that 99.9 % of the arcs stay within, each by itself."""
    if not rows:
        return None
    along_m, across_m, turned_rad = np.percentile([r["tube"] for r in rows], 99.9, axis=0)
    return {
        "along_m": float(along_m),
        "across_m": float(across_m),
        "heading_deg": math.degrees(turned_rad),
    }


def _spread(values: Sequence[float]) -> dict[str, float] | None:
    if not values:
        return None
    p50, p95, most = np.percentile(np.asarray(values, np.float64), [50, 95, 100])
    return {"p50": float(p50), "p95": float(p95), "max": float(most)}


_MEASUREMENTS: dict[
    str, tuple[Callable[[_Task], Record], Callable[[str, Sequence[Record]], Record]]
] = {"settled": (_settled, _settled_row), "arcs": (_arcs, _arcs_row)}


# ---------------------------------------------------------------------------------------- the cost


def cost(spec: str, metres: float, config: Config, seed: int = 0) -> list[Record]:
    """Cost of physics by cell size, in one process: a drive of `metres` in steps of 1 m.

    Returns:
        resolution_m, create_s, memory_mb (of the world), real_time_factor, cpu_s_per_m, and the
        same of the kinematic world on the same ground, `kinematic_cpu_s_per_m`.
    """
    (case,) = cases(spec)
    rows = []
    for resolution_m in COST_RESOLUTIONS_M:
        terrain = _at_resolution(case.make(np.random.SeedSequence(seed)), resolution_m)
        before_mb = _resident_mb()
        begin = time.process_time()
        world = _world(terrain, config)
        pose = _start(terrain, config)
        world.place(pose)
        created = time.process_time() - begin
        driven = simulated_s = 0.0
        begin = time.process_time()
        for i in range(round(metres)):
            run = world.execute(pose, Motion(0.0, (0.2, -0.2)[i % 2], 1.0))
            pose, driven = run.pose, driven + run.driven_m
            simulated_s += 1.0 / _bullet(config).speed_m_s
            if run.ending is not None:
                break
        spent = time.process_time() - begin
        still = KinematicWorld(terrain, config.rover_model())
        begin = time.process_time()
        for _ in range(20):
            still.execute(pose, Motion(0.0, 0.2, 1.0))
        rows.append(
            {
                "resolution_m": resolution_m,
                "cells": list(terrain.shape),
                "create_s": created,
                "memory_mb": _resident_mb() - before_mb,
                "driven_m": driven,
                "real_time_factor": simulated_s / spent,
                "cpu_s_per_m": spent / driven,
                "kinematic_cpu_s_per_m": (time.process_time() - begin) / 20.0,
            }
        )
        world.close()
    return rows


def _at_resolution(terrain: Terrain, resolution_m: float) -> Terrain:
    x_min, x_max, y_min, y_max = terrain.extent_m
    x = np.arange(x_min + resolution_m, x_max - resolution_m, resolution_m)
    y = np.arange(y_min + resolution_m, y_max - resolution_m, resolution_m)
    z = np.asarray(terrain.height(*np.meshgrid(x, y)), np.float32)
    return Terrain(z, resolution_m, (float(x[0]), float(y[0])))


def _start(terrain: Terrain, config: Config) -> Pose:
    """A safe pose on the western side, heading east."""
    still = KinematicWorld(terrain, config.rover_model())
    x_min, x_max, y_min, y_max = terrain.extent_m
    for dy in np.linspace(0.0, 0.3 * (y_max - y_min), 40):
        pose = (x_min + 0.3 * (x_max - x_min), (y_min + y_max) / 2 + float(dy), 0.0)
        if still.place(pose).first_unsafe() is None:
            return pose
    raise ValueError(f"no safe place to start on {terrain.name}")


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20
