"""Parts of a package: a heuristic and a terrain source, both named `windy`."""

import math

import numpy as np

from mlnav.config import Config, Predictor
from mlnav.core import HeightMap
from mlnav.nav import Pose
from mlnav.risk import RiskMap
from mlnav.terrain import Terrain


class Windward:
    """Risk on slopes that rise towards the west."""

    class Settings(Predictor):
        """Steepest slope that is free of risk."""

        free_deg: float = 5.0

    def __init__(self, settings: Settings, config: Config) -> None:
        self._free = math.tan(math.radians(settings.free_deg))

    def max_cells(self, map_cells: int) -> int:
        """One value a cell of the map."""
        return map_cells

    def risk(self, local_map: HeightMap, pose: Pose) -> RiskMap:
        """Linear in the slope beyond what is free, up to 1."""
        rise = -np.gradient(local_map.z.astype(np.float64), local_map.resolution_m, axis=1)
        p = np.clip(rise - self._free, 0.0, 1.0)
        return RiskMap(p[np.newaxis], local_map.resolution_m, local_map.origin_m)


class Ripples:
    """Ripples across the wind, which blows along x."""

    def terrain(self, seed: int | None) -> Terrain:
        """The ripples of a seed."""
        phase = np.random.default_rng(seed or 0).uniform(0.0, math.tau)
        x = 0.1 * (np.arange(300) + 0.5)
        z = np.tile(0.05 * np.sin(math.tau * x / 3.0 + phase), (300, 1))
        z = np.round(z * 16384.0) / 16384.0  # the same on every platform
        return Terrain(
            z, 0.1, (0.05, 0.05), name=f"windy-seed{seed or 0}",
            start_m=(5.0, 15.0), goal_m=(25.0, 15.0),
        )  # fmt: skip
