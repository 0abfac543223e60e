"""A navigator on a terrain: a simulated sensor gives its local maps."""

from __future__ import annotations

import time
from dataclasses import replace

from mlnav.config import Config
from mlnav.nav import Cycle, Navigator
from mlnav.sim.cells import check_cells
from mlnav.sim.sensor import Sensor, make_sensor
from mlnav.sim.state import RoverState
from mlnav.terrain import Terrain


class SimulatedNavigator:
    """Sensor and navigator of a configuration, on one terrain.

    Raises:
        TerrainError: cells are too coarse to drive on.
        ConfigError: the core refuses the configuration.
    """

    def __init__(self, terrain: Terrain, config: Config, seed: int = 0) -> None:
        check_cells(terrain, config)
        self.sensor: Sensor = make_sensor(terrain, config, seed)
        self.navigator = Navigator(config, self.sensor.max_cells)

    def as_built(self) -> dict[str, float]:
        """Values by key of the configuration, read back from what was made of it."""
        return {**self.navigator.as_built(), **self.sensor.as_built()}

    def cycle(
        self, state: RoverState, goal: tuple[float, float], steered_per_m: float = 0.0
    ) -> Cycle:
        """Sense from the true pose and plan from the estimated one, as `Navigator.cycle`.

        Raises:
            CoreError: the planner refuses the map, pose or goal.
            TerrainError: the pose is off the map.
        """
        begin = time.perf_counter()
        local_map = self.sensor.sense(state)
        sensed_s = time.perf_counter() - begin
        cycle = self.navigator.cycle(local_map, state.estimated_pose, goal, steered_per_m)
        return replace(cycle, timing_s={"sense": sensed_s, **cycle.timing_s})
