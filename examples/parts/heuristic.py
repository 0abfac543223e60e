"""A heuristic: ground is risky where heights differ much within a rover's width.

mlnav traverse --terrain 10/.07 --heuristic examples/parts/heuristic.py:Relief
"""

import numpy as np
from scipy.ndimage import maximum_filter, minimum_filter

from mlnav.config import Config, Positive, Predictor
from mlnav.core import HeightMap
from mlnav.nav import Pose
from mlnav.risk import RiskMap


class Relief:
    """Risk from the range of heights in a square window, the same for all headings."""

    class Settings(Predictor):
        """Beside what all heuristics have: when it is asked, and how risk is priced."""

        window_m: Positive = 1.5
        scale_m: Positive = 0.4

    def __init__(self, settings: Settings, config: Config) -> None:
        self._settings = settings

    def max_cells(self, map_cells: int) -> int:
        """One value a cell of the map."""
        return map_cells

    def risk(self, local_map: HeightMap, pose: Pose) -> RiskMap:
        """The chance that the checker rejects the rover; NaN where nothing is known."""
        cells = max(1, round(self._settings.window_m / local_map.resolution_m))
        z, known = local_map.z, np.isfinite(local_map.z)
        highest = maximum_filter(np.where(known, z, -np.inf), cells)
        lowest = minimum_filter(np.where(known, z, np.inf), cells)
        relief = np.where(known, highest - lowest, np.nan)
        p = (1.0 - np.exp(-((relief / self._settings.scale_m) ** 2))).astype(np.float32)
        return RiskMap(p[np.newaxis], local_map.resolution_m, local_map.origin_m)
