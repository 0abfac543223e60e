"""Worlds, sensors and localizations from outside, validated while they are used."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mlnav.core import HeightMap
from mlnav.nav.motion import Motion, Pose
from mlnav.parts import Validated
from mlnav.sim.state import RoverState
from mlnav.sim.world import STATE_COLUMNS, Execution, SettledStates

_COLUMNS = (*STATE_COLUMNS, "safe", "reasons", "status", "phase", "driven_m")
"""Columns of states that are read outside the world."""


class ValidatedSensor(Validated):
    """A sensor whose maps have one resolution and at most `max_cells` cells."""

    _resolution_m: float | None = None

    @property
    def max_cells(self) -> int:
        """Most cells of a local map."""
        with self._part.guard():
            cells: int = self._made.max_cells
        self._part.expect(cells > 0, f"max_cells must be positive, not {cells}")
        return cells

    def sense(self, state: RoverState) -> HeightMap:
        """The local map."""
        seen: HeightMap = self._call("sense", state, gives=HeightMap)
        expect = self._part.expect
        expect(seen.z.size <= self.max_cells, f"a map of {seen.z.size} cells; max_cells is less")
        first = self._resolution_m = self._resolution_m or seen.resolution_m
        expect(seen.resolution_m == first, f"cells of {seen.resolution_m:g} m after {first:g} m")
        expect(bool(np.isfinite(seen.z).any()), "a map of which no height is known")
        return seen


class ValidatedLocalization(Validated):
    """A localization that leaves the true pose as it is."""

    def update(self, before: RoverState, execution: Execution) -> RoverState:
        """The state after a motion."""
        state: RoverState = self._call("update", before, execution, gives=RoverState)
        self._part.expect(
            state.true_pose == execution.pose,
            f"true_pose {state.true_pose} is not where the motion ended, {execution.pose}",
        )
        numbers = (*state.estimated_pose, state.estimated_z_error_m)
        finite = all(map(math.isfinite, numbers))
        self._part.expect(finite, f"estimated pose {numbers} is not finite")
        return state


class ValidatedWorld(Validated):
    """A world whose states have every column that is read."""

    def place(self, pose: Pose) -> SettledStates:
        """Put the rover down."""
        placed: SettledStates = self._call("place", pose)
        self._states("place", placed)
        self._part.expect(len(placed) == 1, f"place() must give one state, not {len(placed)}")
        return placed

    def execute(self, pose: Pose, motion: Motion) -> Execution:
        """Drive a committed motion."""
        done: Execution = self._call("execute", pose, motion, gives=Execution)
        self._states("execute", done.states)
        expect, numbers = self._part.expect, (*done.pose, done.driven_m, *done.counted)
        expect(all(map(math.isfinite, numbers)), f"pose, way and count {numbers} are not finite")
        expect(done.driven_m >= 0.0, f"driven_m {done.driven_m:g} is negative")
        return done

    def _states(self, method: str, states: Any) -> None:
        expect, what = self._part.expect, f"{method}() must give SettledStates"
        expect(isinstance(states, SettledStates), what)
        expect(states.poses.shape == (len(states.poses), 3), f"{what} of (n, 3) poses")
        for name in _COLUMNS if len(states) else ():
            rows = len(states.columns.get(name, ()))
            expect(rows == len(states), f"{what} with a row of {name} for each pose")
