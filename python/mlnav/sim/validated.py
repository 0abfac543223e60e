"""Worlds, sensors and localizations from outside, validated while they are used."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from mlnav.config import Config, numbers_of
from mlnav.core import HeightMap
from mlnav.nav.motion import Motion, Pose
from mlnav.parts import Part
from mlnav.sim.state import RoverState
from mlnav.sim.world import STATE_COLUMNS, Execution, SettledStates

if TYPE_CHECKING:
    from mlnav.sim.localization import Localization
    from mlnav.sim.sensor import Sensor
    from mlnav.sim.world import World

_COLUMNS = (*STATE_COLUMNS, "safe", "reasons", "status", "phase", "driven_m")
"""Of states, which records, pictures and judgements read."""


class _Validated:
    """What they share: the part's own settings where it reads nothing back."""

    def __init__(self, made: Any, part: Part, config: Config) -> None:
        self._made, self._part, self._config = made, part, config

    def as_built(self) -> dict[str, float]:
        """As the part says, or its settings."""
        own = getattr(self._made, "as_built", None)
        with self._part.guard():
            return (
                own()
                if own
                else numbers_of(self._part.kind, getattr(self._config, self._part.kind))
            )


class ValidatedSensor(_Validated):
    """A sensor whose maps are of one resolution and as large as it says, at most."""

    _made: Sensor
    _resolution_m: float | None = None

    @property
    def max_cells(self) -> int:
        """Most cells of a local map."""
        with self._part.guard():
            cells = self._made.max_cells
        self._part.expect(cells > 0, f"max_cells must be positive, not {cells}")
        return cells

    def sense(self, state: RoverState) -> HeightMap:
        """The local map."""
        with self._part.guard():
            seen = self._made.sense(state)
        expect = self._part.expect
        expect(isinstance(seen, HeightMap), f"sense() gives a {type(seen).__name__}, no HeightMap")
        expect(seen.z.size <= self.max_cells, f"a map of {seen.z.size} cells; max_cells is less")
        first = self._resolution_m = self._resolution_m or seen.resolution_m
        expect(seen.resolution_m == first, f"cells of {seen.resolution_m:g} m after {first:g} m")
        expect(bool(np.isfinite(seen.z).any()), "a map of which no height is known")
        return seen


class ValidatedLocalization(_Validated):
    """A localization that leaves the truth as it is."""

    _made: Localization

    def update(self, before: RoverState, execution: Execution) -> RoverState:
        """The state after a motion."""
        with self._part.guard():
            state = self._made.update(before, execution)
        expect = self._part.expect
        given = type(state).__name__
        expect(isinstance(state, RoverState), f"update() gives a {given}, no RoverState")
        expect(
            state.true_pose == execution.pose,
            f"true_pose {state.true_pose} is not where the motion ended, {execution.pose}",
        )
        numbers = (*state.estimated_pose, state.estimated_z_error_m)
        expect(all(map(math.isfinite, numbers)), f"estimated pose {numbers} is not finite")
        return state


class ValidatedWorld(_Validated):
    """A world whose states have all that is read of them."""

    _made: World

    def place(self, pose: Pose) -> SettledStates:
        """Put the rover down."""
        with self._part.guard():
            placed = self._made.place(pose)
        self._states("place", placed)
        self._part.expect(len(placed) == 1, f"place() must give one state, not {len(placed)}")
        return placed

    def execute(self, pose: Pose, motion: Motion) -> Execution:
        """Drive a committed motion."""
        with self._part.guard():
            done = self._made.execute(pose, motion)
        expect = self._part.expect
        given = type(done).__name__
        expect(isinstance(done, Execution), f"execute() gives a {given}, no Execution")
        self._states("execute", done.states)
        numbers = (*done.pose, done.driven_m, *done.counted)
        expect(all(map(math.isfinite, numbers)), f"pose, way and count {numbers} are not finite")
        expect(done.driven_m >= 0.0, f"driven_m {done.driven_m:g} is negative")
        return done

    def _states(self, method: str, states: Any) -> None:
        expect, what = self._part.expect, f"{method}() must give SettledStates"
        expect(isinstance(states, SettledStates), what)
        expect(states.poses.shape == (len(states.poses), 3), f"{what} of (n, 3) poses")
        for name in _COLUMNS:
            column = states.columns.get(name)
            expect(
                (column is not None and len(column) == len(states)) or not len(states),
                f"{what} with a row of {name} for each pose",
            )
