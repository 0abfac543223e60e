"""The heuristics that need no learning, and the lookup of all by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mlnav import _core, config
from mlnav.core import HeightMap, as_float32


@dataclass(frozen=True, eq=False)
class RiskMap:
    """Risk by heading and place; its cells need not be those of the heightmap.

    Attributes:
        p: (bins, ny, nx) float32 in [0, 1); bin k is heading 2 pi k / bins, one bin is any heading.
            Values that are not finite carry no information.
        resolution_m: edge of a square cell.
        origin_m: x, y of the centre of cell (0, 0), world frame.
    """

    p: NDArray[np.float32]
    resolution_m: float
    origin_m: tuple[float, float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", as_float32("risk", self.p, 3))


class Heuristic(Protocol):
    """Predicts risk from the map that the planner sees."""

    @property
    def name(self) -> str:
        """As in the configuration."""
        ...

    def risk(self, local_map: HeightMap) -> RiskMap | None:
        """The risk map of a local map, or None for no opinion."""
        ...

    def max_cells(self, map_cells: int) -> int:
        """Most values (bins x cells) that `risk` returns for a map of `map_cells` cells."""
        ...


class NoRisk:
    """The baseline."""

    name = "none"

    def risk(self, local_map: HeightMap) -> RiskMap | None:
        """No opinion."""
        return None

    def max_cells(self, map_cells: int) -> int:
        """None."""
        return 0


@dataclass(frozen=True)
class SobelRisk:
    """Mean squared Sobel gradient over a rover-sized kernel, the same for all headings."""

    kernel_half_width_m: float = 1.2
    name = "sobel"

    def risk(self, local_map: HeightMap) -> RiskMap | None:
        """Risk on the heightmap's own cells, one bin."""
        p = _core.sobel_risk(local_map.grid, self.kernel_half_width_m)
        return RiskMap(p[np.newaxis], local_map.resolution_m, local_map.origin_m)

    def max_cells(self, map_cells: int) -> int:
        """As many as the map has."""
        return map_cells


# By name in the configuration; a new heuristic is one line here.
_MAKERS: dict[str, Callable[[Any], Heuristic]] = {
    "none": lambda section: NoRisk(),
    "sobel": lambda section: SobelRisk(section.kernel_half_width_m),
}


def make_heuristic(section: config.Heuristic) -> Heuristic:
    """The heuristic that a configuration names."""
    return _MAKERS[section.name](section)
