"""Worlds: where a rover stands when it is put down, and how it fares when it drives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mlnav import _core
from mlnav.core import HeightMap, reason_names
from mlnav.terrain import Terrain

Pose = tuple[float, float, float]
F64 = NDArray[np.float64]

_NOT_SETTLED = 1 << _core.REASONS.index("not_settled")

STATE_COLUMNS = (
    "roll_rad",
    "pitch_rad",
    "differential_rad",
    "bogie_left_rad",
    "bogie_right_rad",
    "origin_z_m",
    "tilt_rad",
    "clearance_m",
    "relief_max_m",
)


def wrapped(heading_rad: float) -> float:
    """The heading in [-pi, pi)."""
    if -math.pi <= heading_rad < math.pi:
        return heading_rad
    return (heading_rad + math.pi) % (2.0 * math.pi) - math.pi


@dataclass(frozen=True)
class Motion:
    """What a planner commits: turn in place, then drive an arc.

    Attributes:
        turn_rad: counter-clockwise positive.
        curvature_per_m: left positive.
        length_m: along the arc.
        end: the pose where this ends when driven exactly; None: computed.
    """

    turn_rad: float
    curvature_per_m: float
    length_m: float
    end: Pose | None = None

    def poses(self, start: Pose, step_m: float, step_rad: float) -> tuple[F64, F64]:
        """Poses along the motion after its start, no further apart than the steps.

        Returns:
            (n, 3) poses, headings wrapped, and (n,) distance driven at each [m].
        """
        x, y, heading = start
        turns = math.ceil(abs(self.turn_rad) / step_rad - 1e-9)
        arcs = math.ceil(abs(self.length_m) / step_m - 1e-9)
        rows: list[Pose] = []
        driven: list[float] = []
        for i in range(1, turns + 1):
            rows.append((x, y, wrapped(heading + self.turn_rad * i / turns)))
            driven.append(0.0)
        heading += self.turn_rad
        k = self.curvature_per_m
        for i in range(1, arcs + 1):
            s = self.length_m * i / arcs
            half = 0.5 * k * s
            chord = s * (math.sin(half) / half if half else 1.0)
            along = heading + half
            rows.append(
                (x + chord * math.cos(along), y + chord * math.sin(along), wrapped(along + half))
            )
            driven.append(abs(s))
        if rows and self.end is not None:
            rows[-1] = (self.end[0], self.end[1], wrapped(self.end[2]))
        return np.array(rows, np.float64).reshape(-1, 3), np.array(driven, np.float64)

    def stances(self, start: Pose, step_m: float, step_rad: float) -> tuple[F64, F64]:
        """The same, with the curvature that the wheels are steered for as a fourth column."""
        poses, driven = self.poses(start, step_m, step_rad)
        turning = np.arange(len(poses)) < math.ceil(abs(self.turn_rad) / step_rad - 1e-9)
        steered = np.where(turning, math.inf, self.curvature_per_m)
        return np.column_stack([poses, steered]), driven

    @property
    def steered_after_per_m(self) -> float:
        """Curvature that the wheels are left steered for: infinite after a turn in place."""
        return math.inf if self.turn_rad and not self.length_m else self.curvature_per_m


@dataclass(frozen=True, eq=False)
class SettledStates:
    """The rover at rest at (n, 3) poses, with what `_core.settle` tells about each."""

    poses: F64
    columns: Mapping[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.poses)

    def first_unsafe(self) -> int | None:
        """Index of the first state that is not safe, or None."""
        bad = np.flatnonzero(~self.columns["safe"].astype(bool))
        return int(bad[0]) if bad.size else None

    def faults(self, index: int) -> list[str]:
        """Why a state is not safe: names of reasons, and the status when it did not settle."""
        names = reason_names(int(self.columns["reasons"][index]))
        status = int(self.columns["status"][index])
        return names or ([_core.status_name(status)] if status else [])

    def state(self, index: int) -> dict[str, float | None]:
        """One settled state as plain numbers, None where it did not settle."""
        values = ((c, float(self.columns[c][index])) for c in STATE_COLUMNS)
        return {name: value if math.isfinite(value) else None for name, value in values}

    def prefix(self, count: int) -> SettledStates:
        """The first `count` states."""
        return SettledStates(self.poses[:count], {k: v[:count] for k, v in self.columns.items()})


@dataclass(frozen=True, eq=False)
class Execution:
    """How a committed motion went.

    Attributes:
        states: the rover's states along the way in order; where it ends unsafe, that one is last.
        pose: where the rover ended.
        driven_m: path length it drove.
        counted: where wheel turns and a gyro say that it ended, seen from where it began: forward
            and left [m], turned [rad].
        ending: the name of an outcome that ends the run here; None: drive on.
        faults: why.
    """

    states: SettledStates
    pose: Pose
    driven_m: float
    counted: Pose
    ending: str | None = None
    faults: tuple[str, ...] = ()


class WorldError(ValueError):
    """A world cannot hold a terrain, rover or start, or its library is missing: which, and why."""


class World(Protocol):
    """A place to drive in. Worlds know the truth; planners only see what a sensor gives them."""

    def place(self, pose: Pose) -> SettledStates:
        """Put the rover down: one state, safe or not."""
        ...

    def execute(self, pose: Pose, motion: Motion) -> Execution:
        """Drive a committed motion from the pose where the rover was put down, or ended last."""
        ...

    def as_built(self) -> dict[str, float]:
        """Values by key of the configuration, read back from what was made of it."""
        ...


def seen_from(base: Pose, pose: Pose) -> Pose:
    """A pose in the frame of another: forward and left [m], turned [rad]."""
    dx, dy = pose[0] - base[0], pose[1] - base[1]
    c, s = math.cos(base[2]), math.sin(base[2])
    return c * dx + s * dy, c * dy - s * dx, wrapped(pose[2] - base[2])


def moved(base: Pose, step: Pose) -> Pose:
    """The pose that looks like `step` from `base`: undoes `seen_from`."""
    c, s = math.cos(base[2]), math.sin(base[2])
    x, y = base[0] + c * step[0] - s * step[1], base[1] + s * step[0] + c * step[1]
    return x, y, wrapped(base[2] + step[2])


class KinematicWorld:
    """The rover goes exactly where it is told and settles on the ground all along the way.

    A settled state beyond the limits, over unknown ground, off the map or without contact of all
    wheels ends the motion there.
    """

    def __init__(
        self,
        terrain: Terrain,
        model: _core.RoverModel,
        *,
        settle_step_m: float = 0.1,
        settle_turn_rad: float = math.radians(2.0),
    ) -> None:
        self._grid = HeightMap.of(terrain).grid
        self._model = model
        self._step_m = settle_step_m
        self._step_rad = settle_turn_rad

    def settle(self, poses: F64) -> SettledStates:
        """The rover at rest at (n, 3) poses along a way, or (n, 4) with curvatures steered for.

        Where settling does not converge from the nominal guess, it is tried once more from the
        wheel heights of the pose before, which is where the rover comes from.
        """
        columns: dict[str, NDArray[Any]] = _core.settle(self._grid, self._model, poses)
        for i in np.flatnonzero(columns["reasons"] & _NOT_SETTLED):
            if i > 0 and columns["status"][i - 1] == 0:
                start = np.ascontiguousarray(columns["heights_m"][i - 1 : i])
                again = _core.settle(self._grid, self._model, poses[i : i + 1], start)
                for name, column in columns.items():
                    column[i] = again[name][0]
        return SettledStates(poses[:, :3], columns)

    def as_built(self) -> dict[str, float]:
        """Steps between settled states."""
        return {
            "world.settle_step_m": self._step_m,
            "world.settle_turn_deg": math.degrees(self._step_rad),
        }

    def place(self, pose: Pose) -> SettledStates:
        """Put the rover down: one state, safe or not."""
        return self.settle(np.array([pose], np.float64))

    def execute(self, pose: Pose, motion: Motion) -> Execution:
        """Drive a committed motion, settling every step; stops at the first unsafe state."""
        poses, driven = motion.stances(pose, self._step_m, self._step_rad)
        if not len(poses):
            return Execution(self.settle(poses), pose, 0.0, (0.0, 0.0, 0.0))
        states = self.settle(poses)
        bad = states.first_unsafe()
        last = len(poses) - 1 if bad is None else bad
        x, y, heading = map(float, poses[last, :3])
        end = (x, y, heading)
        return Execution(
            states.prefix(last + 1),
            end,
            float(driven[last]),
            seen_from(pose, end),
            None if bad is None else "unsafe_state",
            () if bad is None else tuple(states.faults(bad)),
        )
