"""Sensors: the local maps that the planner sees."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from mlnav.config import Config, numbers_of
from mlnav.config import TruthSensor as Settings
from mlnav.core import HeightMap
from mlnav.nav.motion import Pose
from mlnav.nav.zones import zone_mask
from mlnav.parts import find
from mlnav.sim.noise import random_stream
from mlnav.sim.state import RoverState
from mlnav.sim.validated import ValidatedSensor
from mlnav.terrain import Terrain


class Sensor(Protocol):
    """Makes the planner's local map of the ground around the rover."""

    @property
    def max_cells(self) -> int:
        """Most cells of a local map."""

    def sense(self, state: RoverState) -> HeightMap:
        """The local map, in the frame of the estimated pose."""

    def as_built(self) -> dict[str, float]:
        """Values by key of the configuration, read back from what was made of it."""


def make_sensor(terrain: Terrain, config: Config, seed: int) -> Sensor:
    """The sensor that a configuration names, with noise of the run's seed."""
    part, rng = find("sensor", config.sensor.name), random_stream(seed, "sensor")
    made: Sensor = part.make(config.sensor, config, terrain, rng)
    settings = numbers_of("sensor", config.sensor)
    return ValidatedSensor(made, part, settings) if part.outside else made


class TruthSensor:
    """The true heights in a square window of whole cells around the rover, smaller at the border.

    Its corner lies on a multiple of `align_cells`, so that a planner's coarse cells cover the same
    ground in every cycle.
    """

    def __init__(
        self,
        terrain: Terrain,
        half_width_m: float = 16.0,
        *,
        align_cells: int = 1,
        keep_out: NDArray[np.uint8] | None = None,
        height_error_m: float = 0.0,
    ) -> None:
        self._terrain = terrain
        self._map = replace(HeightMap.of(terrain, keep_out), height_error_m=height_error_m or None)
        self._align, self._height_error_m = align_cells, height_error_m
        self._half_cells = max(1, round(half_width_m / terrain.resolution_m))

    @classmethod
    def of(
        cls, settings: Settings, config: Config, terrain: Terrain, rng: np.random.Generator
    ) -> Self:
        """The sensor of a configuration; it has no noise."""
        return cls(
            terrain,
            settings.half_width_m,
            align_cells=config.planner.align_cells,
            keep_out=zone_mask(terrain, config.keep_out, config.keep_in),
            height_error_m=settings.height_error_m,
        )

    @property
    def max_cells(self) -> int:
        """Most cells of a local map."""
        side = 2 * self._half_cells + 2 * self._align
        ny, nx = self._terrain.shape
        return min(side, ny) * min(side, nx)

    def as_built(self) -> dict[str, float]:
        """Size of the window, in whole cells, and its error."""
        return {
            "sensor.half_width_m": self._half_cells * self._terrain.resolution_m,
            "sensor.height_error_m": self._height_error_m,
        }

    def sense(self, state: RoverState) -> HeightMap:
        """The window, shifted and turned by the error of localization. Raises as `window`."""
        if state.exact:
            return self.window(state.true_pose)
        # The same lattice about the estimated pose, with the heights at its true place.
        frame = self.window(state.estimated_pose)
        (ny, nx), (x0, y0), res = frame.shape, frame.origin_m, frame.resolution_m
        (x, y, heading), (at_x, at_y, at_heading) = state.true_pose, state.estimated_pose
        dx, dy = np.meshgrid(x0 + res * np.arange(nx) - at_x, y0 + res * np.arange(ny) - at_y)
        c, s = math.cos(heading - at_heading), math.sin(heading - at_heading)
        z = self._terrain.height(x + c * dx - s * dy, y + s * dx + c * dy)
        z += state.estimated_z_error_m
        return replace(frame, z=z.astype(np.float32))

    def window(self, pose: Pose) -> HeightMap:
        """The window about the cell of a pose. Raises TerrainError: the pose is off the map."""
        iy, ix = self._terrain.cell(pose[0], pose[1])
        ny, nx = self._terrain.shape
        return self._map.part(self._range(iy, ny), self._range(ix, nx))

    def _range(self, cell: int, cells: int) -> slice:
        first = (cell - self._half_cells) // self._align * self._align
        last = -(-(cell + self._half_cells + 1) // self._align) * self._align
        return slice(max(first, 0), min(last, cells))
