"""One pose through the checker and at rest, with all that is known about it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlnav import _core
from mlnav.config import Config
from mlnav.core import WHEELS, HeightMap, reason_names
from mlnav.linkage import STATE, linkage
from mlnav.nav.motion import Pose
from mlnav.sim.cells import check_cells
from mlnav.sim.loop import SimError
from mlnav.sim.world import STATE_COLUMNS
from mlnav.terrain import Terrain

F64 = NDArray[np.float64]

MARGINS = {
    "tilt": "margin_tilt_rad",
    "bogie": "margin_bogie_rad",
    "differential": "margin_differential_rad",
    "clearance": "margin_clearance_m",
    "relief": "margin_relief_m",
}
"""Column of each limit's margin, by the limit's reason."""


@dataclass(frozen=True, eq=False)
class WheelBox:
    """Where a wheel may stand, and how high, in the heading frame about the pose.

    Attributes:
        forward_m, left_m: (least, most) of the axle's place.
        height_m: (least, most) of the wheel's lowest point.
    """

    forward_m: tuple[float, float]
    left_m: tuple[float, float]
    height_m: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Explanation:
    """A checker's answer about one pose, beside the settled state.

    Attributes:
        pose: x, y [m], heading [rad].
        safe: the verdict.
        reasons: names of why not; empty when safe.
        bounds: (least, most) of each name of `linkage.STATE`, NaN where the checker gave none.
        tilt_max_rad, clearance_min_m, relief_max_m: one-sided bounds, NaN likewise.
        margins: by name of the limit, positive inside.
        wheels: six boxes in the order of `WHEELS`; None where the checker gave no bounds.
        settled: numbers of `STATE_COLUMNS` of the state from the nominal guess; None: not settled.
        settled_faults: reasons why the settled state is unsafe, or why there is none.
        places_m: (6, 3) forward, left of the settled axles and heights of the contacts; or None.
        inner_steps, lookups: what the answer cost.
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

    @property
    def bounded(self) -> bool:
        """Whether the checker gave bounds."""
        return all(math.isfinite(v) for pair in self.bounds.values() for v in pair)

    def as_dict(self) -> dict[str, Any]:
        """For records; NaN becomes null."""
        wheels = None
        if self.wheels is not None:
            wheels = {
                name: {
                    "forward_m": list(box.forward_m),
                    "left_m": list(box.left_m),
                    "height_m": list(box.height_m),
                }
                for name, box in zip(WHEELS, self.wheels, strict=True)
            }
        bounds: dict[str, Any] = {k: [_known(x) for x in pair] for k, pair in self.bounds.items()}
        bounds |= {
            "tilt_max_rad": _known(self.tilt_max_rad),
            "clearance_min_m": _known(self.clearance_min_m),
            "relief_max_m": _known(self.relief_max_m),
        }
        return {
            "pose": list(self.pose),
            "safe": self.safe,
            "reasons": list(self.reasons),
            "bounds": bounds,
            "margins": {k: _known(v) for k, v in self.margins.items()},
            "wheels": wheels,
            "settled": None if self.settled is None else dict(self.settled),
            "settled_faults": list(self.settled_faults),
            "inner_steps": self.inner_steps,
            "lookups": self.lookups,
        }


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def explain(terrain: Terrain, config: Config, pose: Pose) -> Explanation:
    """Put one pose through the configured checker, and settle the rover there.

    Raises:
        SimError: the pose is not finite or off the map.
        ConfigError, CoreError: the configuration or map is refused.
        TerrainError: cells are too coarse.
    """
    check_cells(terrain, config)
    if not all(map(math.isfinite, pose)):
        raise SimError(f"pose must be finite, got {pose}")
    if not terrain.contains(pose[0], pose[1]):
        raise SimError(f"pose ({pose[0]:g}, {pose[1]:g}) is outside the map {terrain.extent_m}")
    grid, model = HeightMap.of(terrain).grid, config.rover_model()
    checker = config.build_checker(terrain.z.size)
    checker.set_map(grid)
    at = np.array([pose], np.float64)
    report = {name: column[0] for name, column in checker.report(at).items()}
    state = {name: column[0] for name, column in _core.settle(grid, model, at).items()}
    status = int(state["status"])
    settled = {name: float(state[name]) for name in STATE_COLUMNS} if status == 0 else None
    faults = reason_names(int(state["reasons"])) or ([_core.status_name(status)] if status else [])
    bounds = {name: (float(report[name][0]), float(report[name][1])) for name in STATE}
    return Explanation(
        pose=pose,
        safe=bool(report["safe"]),
        reasons=tuple(reason_names(int(report["reasons"]))),
        bounds=bounds,
        tilt_max_rad=float(report["tilt_max_rad"]),
        clearance_min_m=float(report["clearance_min_m"]),
        relief_max_m=float(report["relief_max_m"]),
        margins={name: float(report[column]) for name, column in MARGINS.items()},
        wheels=_wheel_boxes(config, grid, model, pose, bounds),
        settled=settled,
        settled_faults=tuple(faults),
        places_m=_places(state) if status == 0 else None,
        inner_steps=int(report["inner_steps"]),
        lookups=int(report["lookups"]),
    )


def _places(state: Mapping[str, Any]) -> F64:
    return np.column_stack([state["forward_m"], state["left_m"], state["heights_m"]])


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
        return _fixed_boxes(grid, model, pose, half_length, half_width)
    if not all(math.isfinite(v) for pair in bounds.values() for v in pair):
        return None
    # The corners of the box of states, and its middle: it is small, and wheels move almost
    # linearly in it.
    corners = np.array(
        [*itertools.product(*bounds.values()), [sum(b) / 2 for b in bounds.values()]]
    )
    points = linkage(model.geometry, dict(zip(STATE, corners.T, strict=True))).axles
    points[:, :, 2] -= model.geometry.wheel_radius_m
    return tuple(_box(points[:, i]) for i in range(len(WHEELS)))


def _fixed_boxes(
    grid: _core.Grid, model: _core.RoverModel, pose: Pose, half_length: float, half_width: float
) -> tuple[WheelBox, ...] | None:
    boxes = []
    for x, y in model.wheel_plan():
        forward, left = np.meshgrid(
            x + half_length * np.linspace(-1.0, 1.0, 17),
            y + half_width * np.linspace(-1.0, 1.0, 17),
        )
        cos, sin = math.cos(pose[2]), math.sin(pose[2])
        there = np.column_stack(
            [
                pose[0] + (cos * forward - sin * left).ravel(),
                pose[1] + (sin * forward + cos * left).ravel(),
                np.full(forward.size, pose[2]),
            ]
        )
        heights = grid.wheel_heights(model, np.ascontiguousarray(there))
        if not np.isfinite(heights).all():
            return None
        boxes.append(_box(np.column_stack([forward.ravel(), left.ravel(), heights])))
    return tuple(boxes)


def _box(points: F64) -> WheelBox:
    low, high = points.min(axis=0), points.max(axis=0)
    forward, left, height = ((float(a), float(b)) for a, b in zip(low, high, strict=True))
    return WheelBox(forward, left, height)
