"""Whether a terrain and what a sensor maps of it are fine enough to drive on."""

from __future__ import annotations

from mlnav.config import Config
from mlnav.nav.cells import coarse_cells
from mlnav.terrain import Terrain, TerrainError


def check_cells(terrain: Terrain, config: Config) -> None:
    """Raise TerrainError where terrain or sensor have coarse cells that are not allowed."""
    check_cell_sizes(f"terrain {terrain.name!r}", terrain.resolution_m, config)


def check_cell_sizes(what: str, resolution_m: float | None, config: Config) -> None:
    """Likewise, for a terrain of which no more is known than what it is called and its cells."""
    edges_m = {what: resolution_m}
    sensed_m = getattr(config.sensor, "resolution_m", None)
    if sensed_m is not None:
        edges_m[f"the map of sensor {config.sensor.name!r}"] = sensed_m
    for what, edge_m in edges_m.items():
        fault = None if edge_m is None else coarse_cells(what, edge_m, config)
        if fault is not None:
            raise TerrainError(fault)
