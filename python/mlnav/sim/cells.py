"""Whether a map's cells are fine enough to drive on."""

from __future__ import annotations

from mlnav.config import Config
from mlnav.terrain import Terrain, TerrainError

MAX_CELL_M = 0.2
"""Coarsest cells that are driven on. Wheels are 0.5 m across: coarser cells hide rocks, steps and
ditches that stop or tip a rover, and every check passes over what the map does not show."""

_TOLERANCE_M = 5e-4
"""Cells in feet, or drawn in steps of 1/1024 m, are not 0.2 m to the last digit."""


def fine_enough(resolution_m: float) -> bool:
    """Whether cells of this edge show what stops a wheel."""
    return resolution_m <= MAX_CELL_M + _TOLERANCE_M


def check_cells(terrain: Terrain, config: Config) -> None:
    """Refuse to plan, check or drive on coarse cells, of the terrain or of what a sensor maps.

    Raises:
        TerrainError: cells are coarse, and the configuration does not insist.
    """
    if config.traverse.allow_coarse_cells:
        return
    edges_m = {f"terrain {terrain.name!r}": terrain.resolution_m}
    sensed_m = getattr(config.sensor, "resolution_m", None)
    if sensed_m is not None:
        edges_m[f"the map of sensor {config.sensor.name!r}"] = sensed_m
    for what, edge_m in edges_m.items():
        if not fine_enough(edge_m):
            raise TerrainError(
                f"{what} has cells of {edge_m:g} m, and {MAX_CELL_M:g} m is the most that shows"
                " what stops a wheel; --allow-coarse (traverse.allow_coarse_cells) drives on it"
                " all the same"
            )
