"""The physics world: the rover drives on its wheels over rigid ground (PyBullet, extra `sim`)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mlnav import _core
from mlnav.config import Bullet, Config, numbers_of, numbers_of_struct
from mlnav.core import HeightMap
from mlnav.linkage import STATE, contact_heights
from mlnav.nav.motion import F64, Motion, Pose, wrapped
from mlnav.sim import urdf
from mlnav.sim.bullet_rig import STEER_RAD_S, Ground, Rig, Stand, load_library
from mlnav.sim.world import (
    CONSTRAINTS,
    PHASES,
    STATE_COLUMNS,
    Execution,
    KinematicWorld,
    SettledStates,
    UnsafeState,
    WorldError,
    judged_model,
    seen_from,
)
from mlnav.terrain import Terrain

_PLACE_S = 1.0
_PLACE_ABOVE_M = 0.002

_STEERED_RAD = 0.01
_JAMMED_S = 2.0
"""Steering is jammed when it takes this much longer than its rate allows."""
_REST_S = 0.25
_REST_MAX_S = 5.0
_STILL_M_S = 0.01

_RETURN_M, _BEND_MOST_PER_M = 0.4, 0.4
"""How a rover that follows its path comes back to it: way, and most curvature to spend on it."""
_LAG_M, _HASTE = 0.1, 0.5
"""Behind by so much it drives faster by this share, or less; ahead likewise slower."""
_OVERTIME, _CLOSED_M = 0.5, 0.004
"""It goes on for at most this share of a motion until so little of the way is left."""

_CHECK_S = 0.1
"""Between checks of the rover; belly contact is checked in every step of the physics."""
_TIPPED_RAD = math.radians(60.0)
_BELOW_M = 0.05
"""A wheel's or the body's middle this far below the surface has fallen through it."""
_STALL_COMMANDED_M = 0.5
_STALL_SHARE = 0.1
"""Stalled: of this commanded distance the rover made less than this share."""

_BIT = {name: 1 << bit for bit, name in enumerate(_core.REASONS)}
_NO_GROUND = _BIT["unknown"] | _BIT["border"]
_COLUMNS: dict[str, type] = {
    **dict.fromkeys((*STATE_COLUMNS, "relief_m", "steering_rad"), np.float64),
    **dict.fromkeys(("driven_m", "belly_force_n"), np.float64),
    **dict.fromkeys(("safe", "belly_contact"), np.bool_),
    **dict.fromkeys(("phase", "status"), np.uint8),
    "reasons": np.uint16,
}
Row = dict[str, Any]


class BulletWorld:
    """Rigid-body physics. Open loop: slip and bounces are not corrected.

    States are measured and judged by the core's rules, on the true map; belly contact counts as a
    lack of clearance. Where a motion ends the run, the last state is the one that ended it. Runs
    repeat bit for bit, in any process. Raises WorldError: pybullet is missing, or cannot
    hold the terrain or rover.
    """

    def __init__(
        self, terrain: Terrain, model: _core.RoverModel, settings: Bullet | None = None
    ) -> None:
        self._settings = settings or Bullet()
        self._model = model
        self._library = load_library()
        self._urdf = urdf.rover_urdf(model.geometry, self._settings.mass_kg)
        self._ground = Ground(terrain, self._settings)
        self._grid = HeightMap.of(terrain).grid
        self._kinematic = KinematicWorld(terrain, model)
        self._rig: Rig | None = None
        self._stand: Stand  # set where a rover is placed
        # Way made and commanded since stalling was last judged, across motions.
        self._made_m = self._commanded_m = 0.0

    @classmethod
    def of(cls, settings: Bullet, config: Config, terrain: Terrain) -> Self:
        """The world of a configuration."""
        return cls(terrain, judged_model(config, settings.limits), settings)

    def as_built(self) -> dict[str, float]:
        """Its settings; those of engine and rover are read back from the engine."""
        rig = self._rig or self._new_rig()
        engine = {f"world.{key}": value for key, value in rig.as_built().items()}
        limits = numbers_of_struct("world.limits", self._model.limits)
        return numbers_of("world", self._settings) | limits | engine

    def place(self, pose: Pose) -> SettledStates:
        """Put the rover down, wheels straight, and let it settle: one state, safe or not.

        It is dropped from just above where the kinematic world settles it; where that finds no
        settled state, its unsafe state is returned. Raises WorldError: outside the map or too near
        its edge, or on unknown ground.
        """
        self.close()
        self._ground.check_start(pose)
        settled = self._kinematic.place(pose)
        if settled.columns["status"][0] != 0:
            untouched = {"belly_force_n": np.zeros(1), "belly_contact": np.zeros(1, np.bool_)}
            columns = {**settled.columns, **untouched}
            return SettledStates(settled.poses, {name: columns[name] for name in _COLUMNS})
        posture = {name: float(settled.columns[name][0]) for name in STATE}
        rig = self._new_rig()
        rig.put(pose, {**posture, "origin_z_m": posture["origin_z_m"] + _PLACE_ABOVE_M})
        _, belly_n = rig.step(rig.steps_in(_PLACE_S))
        stand = rig.stand()
        if stand is None:
            raise WorldError(f"the physics failed while the rover settled at {pose}")
        self._rig, self._stand = rig, stand
        self._made_m = self._commanded_m = 0.0
        log = _Log(stand, belly_n)
        log.add(self._judged(rig, log))
        return log.states

    def execute(self, pose: Pose, motion: Motion) -> Execution:
        """Drive a committed motion. Raises WorldError: the rover does not stand where it begins."""
        rig = self._rig
        if rig is None:
            raise WorldError("no rover stands in this world: it must be placed first")
        if not np.allclose(seen_from(self._stand.pose, pose), 0.0, rtol=0.0, atol=1e-3):
            raise WorldError(f"the rover stands at {self._stand.pose}, not at {pose}")
        rig.follow(self._stand.pose, standing=True)
        log = _Log(self._stand)
        ending = None
        try:
            begin = self._stand.pose
            for leg in _legs(motion, self._model, self._settings):
                self._steer(rig, leg, log)
                self._roll(rig, leg, log, begin)
                begin = leg.pose_at(begin, leg.steps)
        except _Ended as ended:
            ending = ended.outcome
        if ending == "physics_failed":
            self.close()
        elif ending not in (None, "unsafe_state"):  # that state is recorded already
            log.add(self._judged(rig, log))
        self._stand = log.stand
        states = log.states
        faults = tuple(states.faults(-1)) if ending is not None and len(states) else ()
        unsafe, count = UnsafeState.of(states, self._model.limits), states.unsafe_count
        pose, driven_m = log.stand.pose, log.driven_m
        return Execution(states, pose, driven_m, log.counted, ending, faults, unsafe, count)

    def close(self) -> None:
        """Free the engine. The rover must be placed again to drive on."""
        if self._rig is not None:
            self._rig.close()
            self._rig = None

    def _new_rig(self) -> Rig:
        return Rig(self._library, self._urdf, self._model.geometry, self._ground, self._settings)

    def _steer(self, rig: Rig, leg: _Leg, log: _Log) -> None:
        log.phase = "steer"
        rig.brake()
        rig.steer(leg.angles_rad)
        steps_left = rig.steps_in(rig.steering_left_rad(leg.angles_rad) / STEER_RAD_S + _JAMMED_S)
        while rig.steering_left_rad(leg.angles_rad) > _STEERED_RAD:
            if steps_left <= 0:
                raise _Ended("high_centred" if log.touching else "stalled")
            steps_left -= self._step(rig, rig.steps_in(_CHECK_S), log)
            self._record(rig, log)
        log.phase = "turn" if math.isinf(leg.curvature_per_m) else "arc"

    def _roll(self, rig: Rig, leg: _Leg, log: _Log, begin: Pose) -> None:
        done, look = 0, rig.steps_in(_CHECK_S)
        for record in range(1, leg.records + 1):
            until = leg.steps * record // leg.records
            while done < until:
                done += self._drive(rig, leg, log, begin, done, min(look, until - done))
            if record < leg.records:
                self._record(rig, log)
        if self._settings.follows_path:
            most = done + round(_OVERTIME * leg.steps)
            while done < most and leg.left_m(begin, log.stand.pose) > _CLOSED_M:
                self._drive(rig, leg, log, begin, leg.steps, look)
                done += look
        self._rest(rig, log)
        self._record(rig, log)

    def _drive(self, rig: Rig, leg: _Leg, log: _Log, begin: Pose, done: int, steps: int) -> int:
        """Up to `steps` after `done` ones of a leg that began at `begin`; gives those made."""
        grip = 1.0 - self._settings.slip.share(leg.uphill * log.stand.climb_rad)
        rates = leg.rates_rad_s
        if self._settings.follows_path:
            target = leg.pose_at(begin, min(done + steps, leg.steps))
            angles, rates = leg.towards(target, log.stand.pose, self._model)
            rig.steer(angles)
        rig.drive(rates * grip)
        before = log.stand.pose
        stepped = self._step(rig, steps, log, leg.ahead_m)
        self._made_m += leg.made_m(before, log.stand.pose)
        self._commanded_m += leg.swept_m * stepped * grip
        if self._commanded_m >= _STALL_COMMANDED_M:
            stalled = self._made_m < _STALL_SHARE * self._commanded_m
            self._made_m = self._commanded_m = 0.0
            if stalled:
                raise _Ended("high_centred" if log.touching else "stalled")
        return stepped

    def _rest(self, rig: Rig, log: _Log) -> None:
        """Brake until the rover is still; sliding or tumbling is followed for a while."""
        rig.brake()
        steps = self._step(rig, rig.steps_in(_REST_S), log)
        while log.stand.speed_m_s > _STILL_M_S and steps < rig.steps_in(_REST_MAX_S):
            steps += self._step(rig, rig.steps_in(_CHECK_S), log)

    def _step(self, rig: Rig, steps: int, log: _Log, ahead_m: float = 0.0) -> int:
        """Simulate up to `steps`, fewer where belly contact is a limit; gives those made."""
        stepped, belly_n = rig.step(steps, stop_at_touch=self._settings.stop_at_limits)
        stand = rig.stand()
        if stand is None:
            raise _Ended("physics_failed")
        log.look(stand, belly_n, ahead_m * stepped)
        if stand.above_m < -_BELOW_M:
            raise _Ended("fell_through")
        if stand.tilt_rad > _TIPPED_RAD:
            raise _Ended("tipped_over")
        if self._ground.to_edge_m(stand.pose) < self._settings.edge_m:
            raise _Ended("map_edge")
        if log.touching and self._settings.stop_at_limits:
            self._record(rig, log)
        rig.follow(stand.pose, standing=False)
        return stepped

    def _record(self, rig: Rig, log: _Log) -> None:
        row = self._judged(rig, log)
        log.add(row)
        if self._settings.stop_at_limits and not row["safe"]:
            raise _Ended("unsafe_state")

    def _judged(self, rig: Rig, log: _Log) -> Row:
        """The columns of `_core.settle` for the rover as measured."""
        stand, posture = log.stand, log.stand.posture
        at = np.array([stand.pose], np.float64)
        attitude = np.array([[posture[k] for k in ("roll_rad", "pitch_rad", "origin_z_m")]])
        clearance_m = float(_core.clearance(self._grid, self._model, at, attitude)[0])
        # Relief and unknown ground come from settling, which starts from the wheels' measured
        # heights so that it nearly always converges.
        heights = contact_heights(self._model.geometry, posture)
        steering = rig.steering_rad()
        settled = _core.settle(self._grid, self._model, at, heights, steering[None, :])
        relief_m = float(settled["relief_max_m"][0])
        no_ground = int(settled["reasons"][0]) & _NO_GROUND
        if math.isnan(clearance_m) and not no_ground:
            no_ground = _BIT["unknown"]

        row: Row = {
            **posture,
            "tilt_rad": stand.tilt_rad,
            "clearance_m": clearance_m,
            "relief_max_m": relief_m,
            "relief_m": settled["relief_m"][0],
            "steering_rad": steering,
            "phase": PHASES.index(log.phase),
            "belly_force_n": log.belly_n,
            "belly_contact": log.belly_n > 0.0,
            "status": int(settled["status"][0]) if no_ground else 0,  # where it stands, it stands
        }
        limits = self._model.limits
        beyond = {name for name, limit in CONSTRAINTS.items() if limit.excess(row, limits) > 0.0}
        if row["belly_contact"]:
            beyond.add("clearance")
        reasons = no_ground | sum(_BIT[name] for name in beyond)
        return {**row, "safe": reasons == 0, "reasons": reasons}


# ------------------------------------------------------------------------------------- one motion


class _Ended(Exception):  # noqa: N818 - no error: a run's outcome
    """The run is over, with this outcome."""

    def __init__(self, outcome: str) -> None:
        super().__init__(outcome)
        self.outcome = outcome


class _Log:
    """States and odometry of one motion."""

    def __init__(self, stand: Stand, belly_n: float = 0.0) -> None:
        self.stand = stand
        self.belly_n = belly_n  # most since the last state
        self.touching = belly_n > 0.0
        self.driven_m = 0.0
        self.phase = "stand"
        self._start_rad = stand.pose[2]
        self._at = stand.pose
        self._forward_m = self._left_m = 0.0
        self._poses: list[Pose] = []
        self._rows: list[Row] = []

    def look(self, stand: Stand, belly_n: float, commanded_m: float) -> None:
        """Note the rover's state after a commanded distance."""
        before = self._turned_rad
        self.stand = stand
        self.touching = belly_n > 0.0
        self.belly_n = max(self.belly_n, belly_n)
        along = before + 0.5 * wrapped(self._turned_rad - before)
        self._forward_m += commanded_m * math.cos(along)
        self._left_m += commanded_m * math.sin(along)

    def add(self, row: Row) -> None:
        """Add a state at the current pose."""
        pose = self.stand.pose
        self.driven_m += math.dist(pose[:2], self._at[:2])
        self._at = pose
        self.belly_n = 0.0
        self._poses.append(pose)
        self._rows.append({**row, "driven_m": self.driven_m})

    @property
    def counted(self) -> Pose:
        """By wheel turns and gyro, seen from the start."""
        return self._forward_m, self._left_m, self._turned_rad

    @property
    def states(self) -> SettledStates:
        rows, poses = self._rows, np.array(self._poses, np.float64).reshape(-1, 3)
        return SettledStates(
            poses, {k: np.array([row[k] for row in rows], t) for k, t in _COLUMNS.items()}
        )

    @property
    def _turned_rad(self) -> float:
        return wrapped(self.stand.pose[2] - self._start_rad)


@dataclass(frozen=True, eq=False)
class _Leg:
    """A turn in place or an arc, as commanded to the wheels.

    Attributes:
        curvature_per_m: infinite for a turn.
        angles_rad: of the steered wheels, left positive.
        rates_rad_s: of all wheels, forward positive.
        steps: of the physics.
        records: states to record.
        ahead_m: distance in a step, backwards negative; 0 in a turn.
        turned_m: turn in a step, as distance of the farthest wheel, left positive.
        reach_m: distance to that wheel.
    """

    curvature_per_m: float
    angles_rad: list[float]
    rates_rad_s: F64
    steps: int
    records: int
    ahead_m: float
    turned_m: float
    reach_m: float

    @classmethod
    def of(
        cls,
        curvature_per_m: float,
        way: float,
        record_step: float,
        model: _core.RoverModel,
        settings: Bullet,
    ) -> _Leg:
        """Of `way` metres, or radians where the curvature is infinite; negative: backwards."""
        ahead, turned = (0.0, 1.0) if math.isinf(curvature_per_m) else (1.0, curvature_per_m)
        angles, ways = _wheels(curvature_per_m, model)
        steps_per_way = max(map(abs, ways)) * settings.steps_per_s / settings.speed_m_s
        steps = max(1, math.ceil(abs(way) * steps_per_way - 1e-9))
        step = way / steps
        reach_m = float(np.hypot(*model.wheel_plan().T).max())
        turns_per_m = settings.steps_per_s / model.geometry.wheel_radius_m
        return cls(
            curvature_per_m=curvature_per_m,
            angles_rad=angles,
            rates_rad_s=np.array(ways) * (step * turns_per_m),
            steps=steps,
            records=min(steps, max(1, math.ceil(abs(way) / record_step - 1e-9))),
            ahead_m=ahead * step,
            turned_m=turned * step * reach_m,
            reach_m=reach_m,
        )

    @property
    def uphill(self) -> float:
        """Sign of the slope: 1 forwards, -1 backwards, 0 in a turn."""
        return float(np.sign(self.ahead_m))

    @property
    def swept_m(self) -> float:
        """Distance and turn in a step together."""
        return math.hypot(self.ahead_m, self.turned_m)

    def pose_at(self, begin: Pose, steps: int) -> Pose:
        """Where the rover would be after so many steps from `begin`, exactly as commanded."""
        way = steps * (self.ahead_m or self.turned_m / self.reach_m)
        turn = math.isinf(self.curvature_per_m)
        motion = Motion(way, 0.0, 0.0) if turn else Motion(0.0, self.curvature_per_m, way)
        moved = np.array([way]), np.empty(0)
        x, y, heading = motion.poses_at(begin, *(moved if turn else moved[::-1]))[0].tolist()
        return x, y, heading

    def left_m(self, begin: Pose, pose: Pose) -> float:
        """Of the way, or in a turn of the farthest wheel's, before the leg's end."""
        ahead_m, _, turned_rad = seen_from(pose, self.pose_at(begin, self.steps))
        if self.ahead_m:
            return ahead_m * self.uphill
        return turned_rad * self.reach_m * math.copysign(1.0, self.turned_m)

    def towards(self, target: Pose, pose: Pose, model: _core.RoverModel) -> tuple[list[float], F64]:
        """Steering angles and wheel rates that lead back to a target a little ahead.

        Beside an arc it is steered as a critically damped spring of length L = `_RETURN_M`, y'' =
        -y / L^2 - 2 y' / L, primes by the way; as much faster as it lags, within `_HASTE`.
        """
        ahead_m, left_m, turned_rad = seen_from(target, pose)
        if not self.ahead_m:
            lag_m = -turned_rad * self.reach_m * math.copysign(1.0, self.turned_m)
            haste = 1.0 + max(-_HASTE, min(_HASTE, lag_m / _LAG_M))
            return self.angles_rad, self.rates_rad_s * haste
        bend = -left_m / _RETURN_M**2 - 2.0 * self.uphill * turned_rad / _RETURN_M
        bend = max(-_BEND_MOST_PER_M, min(_BEND_MOST_PER_M, bend))
        haste = 1.0 + max(-_HASTE, min(_HASTE, -ahead_m * self.uphill / _LAG_M))
        angles, ways = _wheels(self.curvature_per_m + bend, model)
        commanded = np.abs(_wheels(self.curvature_per_m, model)[1]).max()
        per_way = np.abs(self.rates_rad_s).max() / commanded
        return angles, np.array(ways) * (per_way * haste * self.uphill)

    def made_m(self, before: Pose, after: Pose) -> float:
        """The part of a movement that is as commanded, to compare with `swept_m`."""
        ahead_m, _, turned_rad = seen_from(before, after)
        made = ahead_m * self.ahead_m + turned_rad * self.reach_m * self.turned_m
        return made / self.swept_m


def _legs(motion: Motion, model: _core.RoverModel, settings: Bullet) -> Iterator[_Leg]:
    if motion.turn_rad:
        turn_rad = math.radians(settings.state_turn_deg)
        yield _Leg.of(math.inf, motion.turn_rad, turn_rad, model, settings)
    if motion.length_m:
        step_m = settings.state_step_m
        yield _Leg.of(motion.curvature_per_m, motion.length_m, step_m, model, settings)


def _wheels(curvature_per_m: float, model: _core.RoverModel) -> tuple[list[float], list[float]]:
    """Angles of the steered wheels, and the way of each wheel for the rover's, along an arc."""
    ahead, turned = (0.0, 1.0) if math.isinf(curvature_per_m) else (1.0, curvature_per_m)
    angles: list[float] = []
    ways: list[float] = []
    for x, y in model.wheel_plan():
        forward, left = ahead - turned * y, turned * x
        if x == 0.0:
            ways.append(forward)
            continue
        # Steered within 90 degrees; a wheel that goes back then turns backwards.
        sign = -1.0 if forward < 0.0 else 1.0
        angles.append(math.atan2(sign * left, sign * forward))
        ways.append(sign * math.hypot(forward, left))
    return angles, ways
