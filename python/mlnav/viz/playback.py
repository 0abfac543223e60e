"""A run played back: the rover's posture at recorded states and between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from mlnav.config import Config
from mlnav.core import F64
from mlnav.linkage import STATE
from mlnav.nav.motion import Pose, wrapped
from mlnav.sim.records import CycleRecord
from mlnav.sim.urdf import BOGIES, ROCKERS, STEERS, WHEELS
from mlnav.sim.world import PHASES, KinematicWorld
from mlnav.terrain import Terrain
from mlnav.viz.rover import placed

_TURN_M_PER_RAD = 1.1
"""A turn in place counts as this distance, about what a corner wheel rolls."""


@dataclass(frozen=True, eq=False)
class Posture:
    """Pose, attitude and joint angles of a rover.

    Attributes:
        pose: x, y [m], heading [rad].
        state: values of `linkage.STATE` by name.
        steer_rad: of the steered wheels in the order of `urdf.STEERS`, left positive.
        spin_rad: of the wheels in the order of `urdf.WHEELS`, forward positive.
    """

    pose: Pose
    state: Mapping[str, float]
    steer_rad: tuple[float, ...] = (0.0,) * len(STEERS)
    spin_rad: tuple[float, ...] = (0.0,) * len(WHEELS)

    @property
    def rotation(self) -> F64:
        """(3, 3): the body's forward, left, up in columns, world frame."""
        angles = (self.pose[2], self.state["roll_rad"], -self.state["pitch_rad"])
        return np.asarray(Rotation.from_euler("ZXY", angles).as_matrix())

    def point(self, on_body: ArrayLike) -> F64:
        """World frame of a point on the body, given as forward, left, up in the rover frame."""
        origin = np.array([self.pose[0], self.pose[1], self.state["origin_z_m"]])
        return np.asarray(self.rotation @ np.asarray(on_body, np.float64) + origin)

    @property
    def joints_rad(self) -> dict[str, float]:
        """Angles of all joints of the rover's URDF, by name."""
        names = ("differential_rad", "bogie_left_rad", "bogie_right_rad")
        differential, *bogies = (self.state[name] for name in names)
        angles = (differential, -differential, *bogies, *self.steer_rad, *self.spin_rad)
        return dict(zip((*ROCKERS, *BOGIES, *STEERS, *WHEELS), angles, strict=True))


class Playback:
    """Postures from the start to the last state of the last cycle added.

    States that are not finite are left out. Wheels are steered as recorded and roll without slip.

    Attributes:
        poses: (n, 3), headings unwrapped.
        states: (n, 6), columns of `linkage.STATE`.
        steer_rad: (n, 4).
        spin_rad: (n, 6).
        cycle: (n,) index of the cycle that led there; -1 at the start.
        driven_m: (n,) distance driven so far.
        way_m: (n,) likewise, with turns in place counted as a distance.
    """

    def __init__(
        self, terrain: Terrain, config: Config, start: Pose, cycles: Iterable[CycleRecord] = ()
    ) -> None:
        model = config.rover_model()
        self._wheels = model.wheel_plan()
        self._radius_m = model.geometry.wheel_radius_m
        self._corners = np.flatnonzero(self._wheels[:, 0])
        placed = KinematicWorld(terrain, model).place(start)
        state = np.array([float(placed.columns[name][0]) for name in STATE])
        if not np.isfinite(state).all():
            state = np.array([0.0] * 5 + [np.nan_to_num(terrain.height(start[0], start[1]))])
        self.poses: F64 = np.array([start], np.float64)
        self.states: F64 = state[None, :]
        self.steer_rad: F64 = np.zeros((1, len(STEERS)))
        self.spin_rad: F64 = np.zeros((1, len(WHEELS)))
        self.cycle: NDArray[np.int64] = np.array([-1], np.int64)
        self.driven_m: F64 = np.zeros(1)
        self.way_m: F64 = np.zeros(1)
        for record in cycles:
            self.add(record)

    def __len__(self) -> int:
        return len(self.poses)

    def add(self, record: CycleRecord) -> None:
        """Append the states of a further cycle."""
        if not len(record.states):
            return
        states = np.column_stack([record.states.columns[name] for name in STATE])
        known = np.isfinite(states).all(axis=1)
        states, poses = states[known], record.states.poses[known].copy()
        if not len(poses):
            return
        before = self.poses[-1]
        poses[:, 2] = np.unwrap(np.concatenate([before[2:], poses[:, 2]]))[1:]
        steps = np.diff(np.vstack([before, poses]), axis=0)
        length, turned = np.hypot(steps[:, 0], steps[:, 1]), steps[:, 2]
        turning = record.states.columns["phase"][known] == PHASES.index("turn")
        angle = record.states.columns["steering_rad"][known]
        steer = angle[:, self._corners]
        along = poses[:, 2] - 0.5 * turned
        forward = steps[:, 0] * np.cos(along) + steps[:, 1] * np.sin(along)
        left = -steps[:, 0] * np.sin(along) + steps[:, 1] * np.cos(along)
        x, y = self._wheels.T
        rolled = (forward[:, None] - y * turned[:, None]) * np.cos(angle)
        rolled += (left[:, None] + x * turned[:, None]) * np.sin(angle)
        spin = self.spin_rad[-1] + np.cumsum(rolled, axis=0) / self._radius_m
        way = length + _TURN_M_PER_RAD * np.abs(turned) * turning
        self.poses = np.vstack([self.poses, poses])
        self.states = np.vstack([self.states, states])
        self.steer_rad = np.vstack([self.steer_rad, steer])
        self.spin_rad = np.vstack([self.spin_rad, spin])
        self.cycle = np.append(self.cycle, np.full(len(poses), record.cycle))
        self.driven_m = np.append(self.driven_m, self.driven_m[-1] + np.cumsum(length))
        self.way_m = np.append(self.way_m, self.way_m[-1] + np.cumsum(way))

    @property
    def _tables(self) -> tuple[F64, ...]:
        return self.poses, self.states, self.steer_rad, self.spin_rad

    def posture(self, index: int) -> Posture:
        """At a recorded state."""
        return self._posture(*(table[index] for table in self._tables))

    def at(self, way_m: float) -> Posture:
        """At a distance `way_m` from the start, between recorded states."""
        return self._posture(*(self.between(table, way_m) for table in self._tables))

    def between(self, table: F64, way_m: float | F64) -> F64:
        """(..., k) interpolation of an (n, k) table over `way_m`."""
        return np.stack([np.interp(way_m, self.way_m, column) for column in table.T], axis=-1)

    @staticmethod
    def _posture(pose: F64, state: F64, steer: F64, spin: F64) -> Posture:
        x, y, heading = pose.tolist()
        named = dict(zip(STATE, state.tolist(), strict=True))
        return Posture((x, y, wrapped(heading)), named, tuple(steer.tolist()), tuple(spin.tolist()))

    @property
    def tilt_rad(self) -> F64:
        """(n,) of the body's up axis against the vertical."""
        roll, pitch = (self.states[:, STATE.index(name)] for name in ("roll_rad", "pitch_rad"))
        return np.asarray(np.arccos(np.clip(np.cos(roll) * np.cos(pitch), -1.0, 1.0)))


def in_truth(record: CycleRecord, poses: F64) -> F64:
    """(n, 3) poses planned in a cycle's estimated frame, where they truly are."""
    true, estimated = record.pose, record.estimated_pose
    if true == estimated:
        return poses
    turned = true[2] - estimated[2]
    points = placed(poses[:, :2] - estimated[:2], (*true[:2], turned))
    return np.column_stack([points, poses[:, 2] + turned])
