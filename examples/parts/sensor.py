"""A sensor: true heights with noise, out to a range, and nothing beyond it.

mlnav config show --set sensor=examples/parts/sensor.py:Lidar
"""

from dataclasses import replace

import numpy as np

from mlnav.config import Config, NonNegative, Positive, Sensor
from mlnav.core import HeightMap
from mlnav.sim import RoverState, TruthSensor
from mlnav.terrain import Terrain


class Lidar:
    """The heights around the rover; it remembers nothing."""

    class Settings(Sensor):
        """What it sees."""

        range_m: Positive = 8.0
        sigma_m: NonNegative = 0.005

    def __init__(
        self, settings: Settings, config: Config, terrain: Terrain, rng: np.random.Generator
    ) -> None:
        self._settings, self._rng = settings, rng
        self._truth = TruthSensor(terrain, settings.range_m, align_cells=config.planner.align_cells)

    @property
    def max_cells(self) -> int:
        """Most cells of a local map."""
        return self._truth.max_cells

    def sense(self, state: RoverState) -> HeightMap:
        """The local map, in the frame of the estimated pose."""
        seen = self._truth.sense(state)
        (ny, nx), (x, y) = seen.shape, seen.origin_m
        dx = x + seen.resolution_m * np.arange(nx) - state.estimated_pose[0]
        dy = y + seen.resolution_m * np.arange(ny) - state.estimated_pose[1]
        away = np.hypot(dx, dy[:, np.newaxis])
        noise = self._settings.sigma_m * self._rng.standard_normal(seen.shape)
        z = np.where(away <= self._settings.range_m, seen.z + noise, np.nan)
        return replace(seen, z=z)
