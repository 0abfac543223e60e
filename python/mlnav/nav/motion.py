"""The motion that a planner commits: a turn in place, then an arc."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Pose = tuple[float, float, float]
"""x, y [m], heading [rad]."""

F64 = NDArray[np.float64]

SWEEP_M, SWEEP_RAD = 0.25, math.radians(10.0)
"""Stretches of an arc and of a turn that a checker is asked about at once."""


def wrapped(heading_rad: float) -> float:
    """The heading in [-pi, pi)."""
    if -math.pi <= heading_rad < math.pi:
        return heading_rad
    return (heading_rad + math.pi) % (2.0 * math.pi) - math.pi


@dataclass(frozen=True)
class Motion:
    """A turn in place, then an arc.

    Attributes:
        turn_rad: counter-clockwise positive.
        curvature_per_m: left positive.
        length_m: along the arc.
        end: the pose where it ends when driven exactly; None: computed.
    """

    turn_rad: float
    curvature_per_m: float
    length_m: float
    end: Pose | None = None

    def poses(self, start: Pose, step_m: float, step_rad: float) -> tuple[F64, F64]:
        """(n, 3) poses after the start, evenly spaced by at most the steps; (n,) distance [m]."""
        turned, along = _even(self.turn_rad, step_rad), _even(self.length_m, step_m)
        poses = self.poses_at(start, turned, along)
        return poses, np.concatenate([np.zeros(len(turned)), np.abs(along)])

    def stances(self, start: Pose, step_m: float, step_rad: float) -> tuple[F64, F64]:
        """As `poses`, with the curvature that the wheels are steered for as a fourth column."""
        poses, driven = self.poses(start, step_m, step_rad)
        turning = np.arange(len(poses)) < len(_even(self.turn_rad, step_rad))
        return np.column_stack([poses, np.where(turning, math.inf, self.curvature_per_m)]), driven

    def sweeps(self, start: Pose, standing_curvature_per_m: float = 0.0) -> F64:
        """(n, 6) rows for `Checker.reasons`: all of the motion, wheels re-steered where need be."""
        rows: list[tuple[float, ...]] = []
        standing, begin = standing_curvature_per_m, start
        for steered, extent, step in (
            (math.inf, self.turn_rad, SWEEP_RAD),
            (self.curvature_per_m, self.length_m, SWEEP_M),
        ):
            if not extent:
                continue
            if standing != steered:
                rows.append((*begin, steered, 0.0, standing))
            turns = steered == math.inf
            alone = Motion(extent, 0.0, 0.0) if turns else Motion(0.0, steered, extent)
            ends, _ = alone.poses(begin, step, step)
            for x, y, heading in ends:
                rows.append((*begin, steered, extent / len(ends), math.nan))
                begin = (float(x), float(y), float(heading))
            standing = steered
        return np.array(rows, np.float64).reshape(-1, 6)

    def poses_at(self, start: Pose, turned_rad: F64, along_m: F64) -> F64:
        """(m + k, 3) poses after (m,) angles of the turn, then after (k,) lengths of the arc.

        Headings are wrapped. The last pose is `end` where the motion has one.
        """
        x, y, heading = start
        k = self.curvature_per_m
        half = 0.5 * k * along_m
        chord = along_m * np.sinc(half / math.pi)
        towards = heading + self.turn_rad + half
        turn = np.column_stack([np.full((len(turned_rad), 2), (x, y)), heading + turned_rad])
        dx, dy = chord * np.cos(towards), chord * np.sin(towards)
        rows = np.concatenate([turn, np.column_stack([x + dx, y + dy, towards + half])])
        if len(rows) and self.end is not None:
            rows[-1] = self.end
        rows[:, 2] = [wrapped(h) for h in rows[:, 2]]
        return rows

    @property
    def steered_after_per_m(self) -> float:
        """Curvature that the wheels are left steered for: infinite after a turn in place."""
        return math.inf if self.turn_rad and not self.length_m else self.curvature_per_m


def _even(way: float, step: float) -> F64:
    """Places in (0, way], or [way, 0) for a negative one, in order, evenly spaced."""
    count = math.ceil(abs(way) / step - 1e-9)
    places: F64 = way * np.arange(1, count + 1) / max(count, 1)
    return places
