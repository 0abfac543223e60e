"""Worlds: how a rover settles where it is put down, and what happens when it drives."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from mlnav import _core
from mlnav.config import Config, Kinematic, Limits, numbers_of_struct
from mlnav.core import WHEELS, HeightMap, reason_names
from mlnav.linkage import STATE
from mlnav.nav.motion import F64, Motion, Pose, wrapped
from mlnav.terrain import Terrain

_NOT_SETTLED = 1 << _core.REASONS.index("not_settled")

STATE_COLUMNS = (*STATE, "tilt_rad", "clearance_m", "relief_max_m")

_OFFSET = 0.5 * (3.0 - math.sqrt(5.0))
"""Of the first judged place, in steps; irrational, so that poses at round spacings seldom meet."""


def _out_of_phase(way: float, step: float) -> F64:
    """Places in (0, way], or [way, 0), no further apart than `step`; the last one is the end."""
    length = abs(way)
    places: F64 = step * (_OFFSET + np.arange(math.ceil(length / step), dtype=np.float64))
    if length:
        places = np.array([*places[places < length - 1e-9], length])
    return math.copysign(1.0, way) * places


@dataclass(frozen=True)
class Spacing:
    """Largest distance between judged states: along an arc, in a turn, and while wheels steer.

    `steer_rad` is of the wheel that steers furthest, while the rover stands.
    """

    step_m: float = 0.02
    turn_rad: float = math.radians(0.5)
    steer_rad: float = math.radians(2.0)


PHASES = ("stand", "steer", "turn", "arc")
"""What a rover does in a state; the column `phase` holds indices into this."""


@dataclass(frozen=True, eq=False)
class SampledMotion:
    """Poses along a motion at which a world judges the rover, in order.

    Attributes:
        poses: (n, 3) x, y [m], heading [rad].
        steering_rad: (n, 6) of each wheel against the rover, left positive.
        phase: (n,) indices into `PHASES`.
        driven_m: (n,) length of arc driven so far.
    """

    poses: F64
    steering_rad: F64
    phase: NDArray[np.uint8]
    driven_m: F64

    @classmethod
    def of(
        cls, motion: Motion, start: Pose, steer_rad: F64, model: _core.RoverModel, spacing: Spacing
    ) -> SampledMotion:
        """A motion of a rover whose wheels are steered by (6,) angles [rad] at its start.

        Before a turn or an arc the rover stands while its wheels steer, all in the same time.
        """
        turned = _out_of_phase(motion.turn_rad, spacing.turn_rad)
        along = _out_of_phase(motion.length_m, spacing.step_m)
        rolled = motion.poses_at(start, turned, along)
        parts = [(np.empty((0, 3)), np.empty((0, 6)), np.empty(0, np.uint8), np.empty(0))]
        at: F64 = np.array([start], np.float64)
        for phase, curvature, poses, driven in (
            (2, math.inf, rolled[: len(turned)], np.zeros(len(turned))),
            (3, motion.curvature_per_m, rolled[len(turned) :], np.abs(along)),
        ):
            n = len(poses)
            if not n:
                continue
            target = model.wheel_steering_rad(curvature)
            change = target - steer_rad
            most = float(np.abs(change).max())
            shares = _out_of_phase(1.0, spacing.steer_rad / most) if most > 1e-9 else np.empty(0)
            k, steers = len(shares), steer_rad + shares[:, None] * change
            parts += [
                (np.repeat(at, k, axis=0), steers, np.full(k, 1, np.uint8), np.zeros(k)),
                (poses, np.tile(target, (n, 1)), np.full(n, phase, np.uint8), driven),
            ]
            at, steer_rad = poses[-1:], target
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))


@dataclass(frozen=True, eq=False)
class SettledStates:
    """The rover at rest at (n, 3) poses, with the columns of `_core.settle`.

    Further columns: `phase` (index into `PHASES`), `driven_m`, the length of arc since the motion
    began, and `steering_rad` (n, 6) of each wheel.
    """

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

    @property
    def unsafe_count(self) -> int:
        """States that are not safe."""
        return int(np.count_nonzero(~self.columns["safe"].astype(bool))) if len(self) else 0


@dataclass(frozen=True)
class UnsafeState:
    """One stretch of a motion beyond the limits.

    Attributes:
        constraint: the core's name of the reason that is exceeded by the largest share of its limit
            where the stretch begins.
        reasons: names of all that are exceeded somewhere in the stretch.
        part: of the rover that exceeds it; empty where no single part does.
        value, limit, excess: the worst along the stretch [unit]; None: it has no number.
        unit: `m`, `rad` or empty.
        pose, phase, distance_m: where the stretch begins; of `PHASES` there; driven up to there.
        length_m, turn_rad: of arc, and turned in place, from its first state to its last.
        states: judged states in it.
    """

    constraint: str
    reasons: tuple[str, ...]
    part: str
    value: float | None
    limit: float | None
    excess: float | None
    unit: str
    pose: Pose
    phase: str
    distance_m: float
    length_m: float
    turn_rad: float
    states: int

    @classmethod
    def of(cls, states: SettledStates, limits: _core.SafetyLimits) -> UnsafeState | None:
        """The first stretch of unsafe states, or None; distances are from the motion's start."""
        first = states.first_unsafe()
        if first is None:
            return None
        after = np.flatnonzero(states.columns["safe"][first:])
        end = first + int(after[0]) if after.size else len(states)
        reasons = int(np.bitwise_or.reduce(states.columns["reasons"][first:end]))
        name, constraint = _most_exceeded(states, first, limits)
        value = limit = excess = None
        part = unit = ""
        if constraint is not None:
            over, unit = constraint.excess(states.columns, limits), constraint.unit
            worst = first + int(np.nanargmax(over[first:end]))
            value, excess = float(constraint.values(states.columns)[worst]), float(over[worst])
            limit, part = getattr(limits, constraint.limit), constraint.part(states.columns, worst)
        turning = states.columns["phase"][first:end] == PHASES.index("turn")
        headings = states.poses[first:end, 2][turning]
        driven = states.columns["driven_m"]
        x, y, heading = map(float, states.poses[first])
        return cls(
            constraint=name,
            reasons=tuple(reason_names(reasons)) or (name,),
            part=part,
            value=value,
            limit=limit,
            excess=excess,
            unit=unit,
            pose=(x, y, heading),
            phase=PHASES[int(states.columns["phase"][first])],
            distance_m=float(driven[first]),
            length_m=float(driven[end - 1] - driven[first]),
            turn_rad=float(np.abs(np.diff(np.unwrap(headings))).sum()),
            states=end - first,
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and names, for a file."""
        return {**asdict(self), "reasons": list(self.reasons), "pose": list(self.pose)}

    def __str__(self) -> str:
        scale, unit = (180.0 / math.pi, "deg") if self.unit == "rad" else (1.0, self.unit)
        what = f"{self.constraint} ({self.part})" if self.part else self.constraint
        if self.value is not None and self.limit is not None and self.excess is not None:
            what += (
                f" {self.value * scale:.3g} {unit} where {self.limit * scale:.3g} is allowed,"
                f" {self.excess * scale:.2g} beyond"
            )
        extent = [f"{self.length_m:.2f} m"] if self.length_m else []
        extent += [f"{math.degrees(self.turn_rad):.1f} deg"] if self.turn_rad else []
        over = f" over {' and '.join(extent)}" if extent else ""
        plural = "" if self.states == 1 else "s"
        phases = ("standing", "while steering at a standstill", "in a turn", "in an arc")
        first = phases[PHASES.index(self.phase)]
        return f"{what}, in {self.states} state{plural}{over}, first {first}"


@dataclass(frozen=True)
class Constraint:
    """A limit that has a number, in columns of settled states.

    Attributes:
        unit: `m` or `rad`.
        limit: field of `SafetyLimits`.
        values: (n,) magnitude in each state.
        part: of the rover that breaks it in one state.
        least: whether the limit is a least value.
    """

    unit: str
    limit: str
    values: Callable[[Mapping[str, NDArray[Any]]], F64]
    part: Callable[[Mapping[str, NDArray[Any]], int], str]
    least: bool = False

    def excess(self, columns: Mapping[str, NDArray[Any]], limits: _core.SafetyLimits) -> F64:
        """(n,) how far each state is beyond the limit; negative inside."""
        values, limit = self.values(columns), float(getattr(limits, self.limit))
        return limit - values if self.least else values - limit


def _bogies(columns: Mapping[str, NDArray[Any]]) -> F64:
    return np.abs([columns["bogie_left_rad"], columns["bogie_right_rad"]])


CONSTRAINTS: dict[str, Constraint] = {
    "tilt": Constraint("rad", "tilt_max_rad", lambda c: c["tilt_rad"], lambda c, i: "body"),
    "bogie": Constraint(
        "rad",
        "bogie_max_rad",
        lambda c: np.fmax(*_bogies(c)),
        lambda c, i: "bogie left" if np.greater_equal(*_bogies(c)[:, i]) else "bogie right",
    ),
    "differential": Constraint(
        "rad",
        "differential_max_rad",
        lambda c: np.abs(c["differential_rad"]),
        lambda c, i: "differential",
    ),
    "clearance": Constraint(
        "m", "clearance_min_m", lambda c: c["clearance_m"], lambda c, i: "pan", least=True
    ),
    "relief": Constraint(
        "m",
        "relief_max_m",
        lambda c: c["relief_max_m"],
        lambda c, i: f"wheel {WHEELS[int(np.nanargmax(c['relief_m'][i]))]}",
    ),
}
"""By the core's name of the reason."""


def _most_exceeded(
    states: SettledStates, index: int, limits: _core.SafetyLimits
) -> tuple[str, Constraint | None]:
    """The constraint that a state exceeds by the largest share of its limit; None: no number."""
    names = states.faults(index) or ["not_settled"]

    def share(name: str) -> float:
        excess = float(CONSTRAINTS[name].excess(states.columns, limits)[index])
        return excess / max(float(getattr(limits, CONSTRAINTS[name].limit)), 1e-9)

    numbered = [name for name in names if name in CONSTRAINTS and math.isfinite(share(name))]
    worst = max(numbered, key=share, default=names[0])
    return worst, CONSTRAINTS[worst] if numbered else None


@dataclass(frozen=True, eq=False)
class Execution:
    """How a committed motion went.

    Attributes:
        states: along the motion in order; where it ended unsafe, that state is last.
        pose: where the rover ended.
        driven_m: path length.
        counted: its end by wheel odometry and gyro, in the frame of its start: forward and left
            [m], turned [rad].
        ending, faults: outcome that ends the run here, and why; None: drive on.
        unsafe: the first stretch beyond the limits; where the motion ended there, the kinematic
            world gives all of it.
        unsafe_states: judged states beyond the limits, that stretch included.
    """

    states: SettledStates
    pose: Pose
    driven_m: float
    counted: Pose
    ending: str | None = None
    faults: tuple[str, ...] = ()
    unsafe: UnsafeState | None = None
    unsafe_states: int = 0

    @classmethod
    def none(cls, pose: Pose) -> Execution:
        """Of no motion: the rover stays where it is."""
        return cls(SettledStates(np.empty((0, 3)), {}), pose, 0.0, (0.0, 0.0, 0.0))

    def settled_after(self, before: Mapping[str, float | None]) -> Mapping[str, float | None]:
        """The rover's settled state at its end; that of before where it did not move."""
        return self.states.state(-1) if len(self.states) else before


class WorldError(ValueError):
    """A world cannot use a terrain, rover or start, or its library is missing."""


class World(Protocol):
    """A place to drive in. Worlds know the truth; planners only see what a sensor gives them."""

    def place(self, pose: Pose) -> SettledStates:
        """Put the rover down: one state, safe or not."""

    def execute(self, pose: Pose, motion: Motion) -> Execution:
        """Drive a committed motion from the pose where the rover was put down, or ended last."""

    def as_built(self) -> dict[str, float]:
        """Values by key of the configuration, read back from what was made of it."""


def judged_model(config: Config, limits: Limits | None) -> _core.RoverModel:
    """The rover with the limits of a world; None: the planner's."""
    model = config.rover_model()
    if limits is not None:
        model.limits = limits.to_core()
    return model


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
    """The rover follows commands exactly and settles on the ground all along the motion.

    A state beyond the limits, over unknown ground, off the map or without contact of all wheels is
    unsafe, and ends the motion there.
    """

    def __init__(
        self,
        terrain: Terrain,
        model: _core.RoverModel,
        *,
        spacing: Spacing | None = None,
        stop_at_limits: bool = True,
    ) -> None:
        self._grid = HeightMap.of(terrain).grid
        self._model = model
        self._spacing = spacing or Spacing()
        self._stop_at_limits = stop_at_limits
        self._steering_rad: F64 = model.wheel_steering_rad(0.0)

    @classmethod
    def of(cls, settings: Kinematic, config: Config, terrain: Terrain) -> Self:
        """The world of a configuration."""
        spacing = Spacing(
            settings.settle_step_m,
            math.radians(settings.settle_turn_deg),
            math.radians(settings.settle_steer_deg),
        )
        model = judged_model(config, settings.limits)
        return cls(terrain, model, spacing=spacing, stop_at_limits=settings.stop_at_limits)

    def settle(self, poses: F64, steering_rad: F64 | None = None) -> dict[str, NDArray[Any]]:
        """Columns of `_core.settle` at (n, 3) poses of a motion, wheels steered by (n, 6) angles.

        Where settling does not converge, it is tried again from the wheel heights of the pose
        before.
        """
        if steering_rad is None:
            steering_rad = np.zeros((len(poses), len(WHEELS)))
        columns: dict[str, NDArray[Any]] = _core.settle(
            self._grid, self._model, poses, steering_rad=steering_rad
        )
        for i in np.flatnonzero(columns["reasons"] & _NOT_SETTLED):
            if i > 0 and columns["status"][i - 1] == 0:
                at = slice(i, i + 1)
                start = np.ascontiguousarray(columns["heights_m"][i - 1 : i])
                again = _core.settle(self._grid, self._model, poses[at], start, steering_rad[at])
                for name, column in columns.items():
                    column[i] = again[name][0]
        return columns

    def as_built(self) -> dict[str, float]:
        """Steps between judged states, and what they are held against."""
        spacing = self._spacing
        return {
            **numbers_of_struct("world.limits", self._model.limits),
            "world.settle_step_m": spacing.step_m,
            "world.settle_turn_deg": math.degrees(spacing.turn_rad),
            "world.settle_steer_deg": math.degrees(spacing.steer_rad),
        }

    def place(self, pose: Pose) -> SettledStates:
        """Put the rover down, its wheels straight: one state, safe or not."""
        self._steering_rad = self._model.wheel_steering_rad(0.0)
        steering, zero = self._steering_rad[None, :], np.zeros(1)
        return self._states(SampledMotion(np.array([pose]), steering, zero.astype(np.uint8), zero))

    def execute(self, pose: Pose, motion: Motion) -> Execution:
        """Steer and drive a committed motion; stops at the first unsafe state."""
        sampled = SampledMotion.of(motion, pose, self._steering_rad, self._model, self._spacing)
        states = self._states(sampled)
        if not len(states):
            return Execution(states, pose, 0.0, (0.0, 0.0, 0.0))
        unsafe = UnsafeState.of(states, self._model.limits)
        first = states.first_unsafe() if self._stop_at_limits else None
        last = len(states) - 1 if first is None else first
        self._steering_rad = sampled.steering_rad[last]
        x, y, heading = map(float, sampled.poses[last])
        driven = Execution(
            states.prefix(last + 1),
            (x, y, heading),
            float(sampled.driven_m[last]),
            seen_from(pose, (x, y, heading)),
            unsafe=unsafe,
            unsafe_states=states.unsafe_count,
        )
        if first is None or unsafe is None:
            return driven
        faults = tuple(states.faults(first))
        return replace(driven, ending="unsafe_state", faults=faults, unsafe_states=unsafe.states)

    def _states(self, sampled: SampledMotion) -> SettledStates:
        columns = self.settle(sampled.poses, sampled.steering_rad)
        columns["phase"], columns["driven_m"] = sampled.phase, sampled.driven_m
        columns["steering_rad"] = sampled.steering_rad
        return SettledStates(sampled.poses, columns)
