"""One pose or one way: the checker's answer with its bounds, and the settled rover."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlnav import _core
from mlnav.config import Config
from mlnav.core import WHEELS, HeightMap, reason_names
from mlnav.io.records import plain
from mlnav.linkage import STATE, linkage
from mlnav.nav.motion import Motion, Pose
from mlnav.sim.cells import check_cells
from mlnav.sim.loop import SimError
from mlnav.sim.records import CycleRecord
from mlnav.sim.world import CONSTRAINTS, STATE_COLUMNS, SettledStates
from mlnav.terrain import Terrain

F64 = NDArray[np.float64]

_ONE_SIDED = ("tilt_max_rad", "clearance_min_m", "relief_max_m")


@dataclass(frozen=True, eq=False)
class WheelBox:
    """Where axle and lowest point of a wheel may be in the pose's heading frame: (least, most)."""

    forward_m: tuple[float, float]
    left_m: tuple[float, float]
    height_m: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Explanation:
    """A checker's answer for one pose, and the settled state.

    Attributes:
        pose: x, y [m], heading [rad].
        safe, reasons: the verdict, and why the pose is rejected.
        bounds: (least, most) of each name of `linkage.STATE`, NaN where the checker gave none.
        tilt_max_rad, clearance_min_m, relief_max_m: one-sided bounds, NaN likewise.
        margins: by name of `CONSTRAINTS`, positive inside the limit.
        wheels: six boxes in the order of `WHEELS`; None where the checker gave no bounds.
        settled: `STATE_COLUMNS` of the state from the nominal guess; None where not settled.
        settled_faults: why the settled state is unsafe, or why there is none.
        places_m: (6, 3) forward, left of the settled axles and heights of the contacts; or None.
        inner_steps, lookups: cost of the answer.
    """

    pose: Pose
    safe: bool
    reasons: tuple[str, ...]
    bounds: Mapping[str, tuple[float, float]]
    tilt_max_rad: float
    clearance_min_m: float
    relief_max_m: float
    margins: Mapping[str, float]
    wheels: tuple[WheelBox, ...] | None
    settled: Mapping[str, float] | None
    settled_faults: tuple[str, ...]
    places_m: F64 | None
    inner_steps: int
    lookups: int

    def as_dict(self) -> dict[str, Any]:
        """For records; NaN becomes null."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "places_m"}
        bounds = dict(self.bounds) | {name: values.pop(name) for name in _ONE_SIDED}
        if self.wheels is not None:
            boxes = zip(WHEELS, self.wheels, strict=True)
            values["wheels"] = {name: asdict(box) for name, box in boxes}
        record: dict[str, Any] = plain(values | {"bounds": bounds})
        return record


def _asked(terrain: Terrain, config: Config, pose: Pose) -> tuple[_core.Checker, _core.Grid]:
    """The checker, with the map that holds the pose."""
    check_cells(terrain, config)
    if not all(map(math.isfinite, pose)):
        raise SimError(f"pose must be finite, got {pose}")
    if not terrain.contains(pose[0], pose[1]):
        raise SimError(f"pose ({pose[0]:g}, {pose[1]:g}) is outside the map {terrain.extent_m}")
    checker, grid = config.build_checker(terrain.z.size), HeightMap.of(terrain).grid
    checker.set_map(grid)
    return checker, grid


def explain(terrain: Terrain, config: Config, pose: Pose) -> Explanation:
    """Ask the configured checker about one pose, and settle the rover there.

    Raises:
        SimError: the pose is not finite or off the map.
        ConfigError, CoreError: the configuration or map is refused.
        TerrainError: cells are too coarse.
    """
    (checker, grid), model = _asked(terrain, config, pose), config.rover_model()
    at = np.array([pose], np.float64)
    report = {name: column[0] for name, column in checker.report(at).items()}
    states = SettledStates(at, _core.settle(grid, model, at))
    state = {name: column[0] for name, column in states.columns.items()}
    rests = int(state["status"]) == 0
    places = np.column_stack([state["forward_m"], state["left_m"], state["heights_m"]])
    bounds = {name: (float(report[name][0]), float(report[name][1])) for name in STATE}
    return Explanation(
        pose=pose,
        safe=bool(report["safe"]),
        reasons=tuple(reason_names(int(report["reasons"]))),
        bounds=bounds,
        **{name: float(report[name]) for name in _ONE_SIDED},
        margins={k: float(report[f"margin_{k}_{c.unit}"]) for k, c in CONSTRAINTS.items()},
        wheels=_wheel_boxes(config, grid, model, pose, bounds),
        settled={name: float(state[name]) for name in STATE_COLUMNS} if rests else None,
        settled_faults=tuple(states.faults(0)),
        places_m=places if rests else None,
        inner_steps=int(report["inner_steps"]),
        lookups=int(report["lookups"]),
    )


def _wheel_boxes(
    config: Config,
    grid: _core.Grid,
    model: _core.RoverModel,
    pose: Pose,
    bounds: Mapping[str, tuple[float, float]],
) -> tuple[WheelBox, ...] | None:
    half_length = getattr(config.checker, "half_length_m", None)
    half_width = getattr(config.checker, "half_width_m", None)
    if half_length is not None and half_width is not None:
        share = np.linspace(-1.0, 1.0, 17)
        c, s = math.cos(pose[2]), math.sin(pose[2])
        boxes = []
        for x, y in model.wheel_plan():
            at = np.meshgrid(x + half_length * share, y + half_width * share)
            forward, left = (v.ravel() for v in at)
            there = [pose[0] + (c * forward - s * left), pose[1] + (s * forward + c * left)]
            poses = np.column_stack([*there, np.full(forward.size, pose[2])])
            boxes.append(np.column_stack([forward, left, grid.wheel_heights(model, poses)]))
        points = np.stack(boxes, axis=1)
    else:
        # The corners of the box of states, and its middle: it is small, and wheels move almost
        # linearly in it.
        middle = [sum(b) / 2 for b in bounds.values()]
        states = np.array([*itertools.product(*bounds.values()), middle]).T
        points = linkage(model.geometry, dict(zip(STATE, states, strict=True))).axles
        points[:, :, 2] -= model.geometry.wheel_radius_m
    if not np.isfinite(points).all():
        return None
    spans = np.stack([points.min(axis=0), points.max(axis=0)], axis=-1).tolist()
    return tuple(WheelBox(*map(tuple, wheel)) for wheel in spans)


PART_M, STATE_M = 0.05, 0.01
"""Of a way: stretches with bounds of their own, and between settled states; a turn in place counts
1.5 m a radian."""


@dataclass(frozen=True, eq=False)
class WayExplanation:
    """A checker's answer along a way, and the settled states on it.

    Attributes:
        pose: where it begins.
        motion: the arc or turn; None for a whole drive.
        safe, reasons: the verdict on the whole of it, as planners ask.
        edge_m: (n + 1,) where its stretches begin and end, in metres from the start.
        bounds: (n, 2) by name of `linkage.STATE`, of each stretch; NaN where there are none.
        tilt_max_rad, clearance_min_m, relief_max_m: (n,) likewise.
        state_m: (k,) where it was settled.
        settled: (k,) of each of `STATE_COLUMNS`; NaN where not settled.
    """

    pose: Pose
    motion: Motion | None
    safe: bool
    reasons: tuple[str, ...]
    edge_m: F64
    bounds: dict[str, F64]
    tilt_max_rad: F64
    clearance_min_m: F64
    relief_max_m: F64
    state_m: F64
    settled: dict[str, F64]


def explain_way(terrain: Terrain, config: Config, pose: Pose, motion: Motion) -> WayExplanation:
    """Ask the configured checker about an arc or a turn, stretch by stretch, and settle along it.

    Raises SimError: the pose is not on the map, or the motion is none or both.
    """
    checker, grid = _asked(terrain, config, pose)
    if bool(motion.turn_rad) == bool(motion.length_m):
        raise SimError("a way is an arc or a turn in place")
    extent = motion.turn_rad or motion.length_m
    steered = math.inf if motion.turn_rad else motion.curvature_per_m
    parts = max(1, math.ceil(_way_m(steered, extent) / PART_M))
    rows = np.column_stack([
        _along(motion, pose, parts)[:-1], np.full((parts, 1), steered),
        np.full((parts, 1), extent / parts), np.full((parts, 1), math.nan),
    ])  # fmt: skip
    return _explained(checker, grid, config, motion, motion.sweeps(pose, steered), rows)


def explain_drive(
    terrain: Terrain, config: Config, cycles: Sequence[CycleRecord]
) -> WayExplanation:
    """Ask about each sweep of a run as the planner did, and settle along them.

    The checker is asked on the true ground, about motions driven exactly.

    Raises SimError: nothing was driven.
    """
    rows, standing = [], 0.0
    for cycle in cycles:
        motion = Motion(cycle.turn_rad, cycle.curvature_per_m, cycle.length_m)
        if motion.turn_rad or motion.length_m:
            rows.append(motion.sweeps(cycle.pose, standing))
            standing = motion.steered_after_per_m
    if not rows:
        raise SimError("nothing was driven")
    checker, grid = _asked(terrain, config, cycles[0].pose)
    asked = np.concatenate(rows)
    return _explained(checker, grid, config, None, asked, asked[asked[:, 4] != 0.0])


def _explained(
    checker: _core.Checker,
    grid: _core.Grid,
    config: Config,
    motion: Motion | None,
    asked: F64,
    rows: F64,
) -> WayExplanation:
    """The verdict on sweeps as asked; bounds of (n, 6) stretches, and states along these."""
    whole, report = checker.reasons(asked), checker.report(np.ascontiguousarray(rows))
    model = config.rover_model()
    poses, steering, state_m = [], [], []
    edge_m = np.concatenate([[0.0], np.cumsum([_way_m(row[3], row[4]) for row in rows])])
    for row, begin, end in zip(rows, edge_m, edge_m[1:], strict=False):
        x, y, heading, steered, extent, _ = map(float, row)
        turns = math.isinf(steered)
        stretch = Motion(extent, 0.0, 0.0) if turns else Motion(0.0, steered, extent)
        count = max(1, math.ceil((end - begin) / STATE_M - 1e-9))
        poses.append(_along(stretch, (x, y, heading), count))
        steering.append(np.tile(model.wheel_steering_rad(steered), (count + 1, 1)))
        state_m.append(np.linspace(begin, end, count + 1))
    states = _core.settle(grid, model, np.concatenate(poses), steering_rad=np.concatenate(steering))
    x, y, heading = map(float, rows[0, :3])
    return WayExplanation(
        pose=(x, y, heading),
        motion=motion,
        safe=not whole.any(),
        reasons=tuple(reason_names(int(np.bitwise_or.reduce(whole)))),
        edge_m=edge_m,
        bounds={name: np.asarray(report[name], np.float64) for name in STATE},
        **{name: np.asarray(report[name], np.float64) for name in _ONE_SIDED},
        state_m=np.concatenate(state_m),
        settled={name: np.asarray(states[name], np.float64) for name in STATE_COLUMNS},
    )


def _way_m(steered_per_m: float, extent: float) -> float:
    """Way of the outermost wheels."""
    return abs(extent) * (1.5 if math.isinf(steered_per_m) else 1.0)


def _along(motion: Motion, pose: Pose, count: int) -> F64:
    """(count + 1, 3) poses from the start to the end of an arc or a turn."""
    share = np.linspace(0.0, 1.0, count + 1)
    if motion.turn_rad:
        x, y, heading = pose
        return np.column_stack([np.full((count + 1, 2), (x, y)), heading + motion.turn_rad * share])
    return motion.poses_at(pose, share[:0], motion.length_m * share)
