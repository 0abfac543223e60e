"""The heuristics that need at most an image filter."""

from __future__ import annotations

import math

import numpy as np

from mlnav import _core
from mlnav.config import Config, Failures, NoHeuristic, Sobel
from mlnav.core import HeightMap
from mlnav.parts import find
from mlnav.risk.base import Heuristic, Pose, RiskMap, SteadyHeuristic, ValidatedHeuristic


class NoRisk(SteadyHeuristic):
    """The baseline."""

    name = "none"

    def __init__(self, settings: NoHeuristic, config: Config) -> None:
        pass

    def risk(self, local_map: HeightMap, pose: Pose) -> RiskMap | None:
        """No opinion."""
        return None

    def max_cells(self, map_cells: int) -> int:
        """None."""
        return 0


class FailureRisk(SteadyHeuristic):
    """Zero everywhere about the rover: the planner learns from failed poses alone."""

    name = "failures"
    BINS, CELLS, RESOLUTION_M = 16, 80, 0.2
    """As of the network's map, so that only the predictions differ."""

    def __init__(self, settings: Failures, config: Config) -> None:
        self._p = np.zeros((self.BINS, self.CELLS, self.CELLS), np.float32)

    def risk(self, local_map: HeightMap, pose: Pose) -> RiskMap | None:
        """No risk, on cells that keep their place while the rover moves."""
        self.inferences += 1
        half = self.CELLS // 2
        x, y = (
            (math.floor(v / self.RESOLUTION_M) - half + 0.5) * self.RESOLUTION_M for v in pose[:2]
        )
        return RiskMap(self._p, self.RESOLUTION_M, (x, y))

    def max_cells(self, map_cells: int) -> int:
        """Those of its map."""
        return self._p.size


class SobelRisk(SteadyHeuristic):
    """Mean squared Sobel gradient over a rover-sized kernel, the same for all headings."""

    name = "sobel"

    def __init__(self, settings: Sobel, config: Config) -> None:
        self._kernel_half_width_m = settings.kernel_half_width_m

    def risk(self, local_map: HeightMap, pose: Pose) -> RiskMap | None:
        """Risk on the heightmap's own cells, one bin."""
        p = _core.sobel_risk(local_map.grid, self._kernel_half_width_m)
        self.inferences += 1
        return RiskMap(p[np.newaxis], local_map.resolution_m, local_map.origin_m)

    def max_cells(self, map_cells: int) -> int:
        """As many as the map has."""
        return map_cells


def make_heuristic(config: Config) -> Heuristic:
    """The heuristic that a configuration names.

    Raises:
        ModelError: the network's model is there and cannot be used.
        ConfigError: the core refuses the oracle's checker.
        PartError: it cannot be made.
    """
    part = find("heuristic", config.heuristic.name)
    made: Heuristic = part.make(config.heuristic, config)
    return ValidatedHeuristic(made, part) if part.outside else made
