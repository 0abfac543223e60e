"""Whether a map's cells are fine enough to drive on."""

from __future__ import annotations

from mlnav.config import Config

MAX_CELL_M = 0.2
"""Coarsest cells that are driven on. Wheels are 0.5 m across: coarser cells hide rocks, steps and
ditches that stop or tip a rover."""

_TOLERANCE_M = 5e-4
"""Cells in feet, or drawn in steps of 1/1024 m, are not 0.2 m to the last digit."""


def fine_enough(resolution_m: float) -> bool:
    """Whether cells of this edge show what stops a wheel."""
    return resolution_m <= MAX_CELL_M + _TOLERANCE_M


def coarse_cells(what: str, resolution_m: float, config: Config) -> str | None:
    """Why a map is too coarse to drive on; None: it is not, or the configuration allows it."""
    if config.traverse.allow_coarse_cells or fine_enough(resolution_m):
        return None
    return (
        f"{what} has cells of {resolution_m:g} m, and {MAX_CELL_M:g} m is the most that shows what"
        " stops a wheel; --allow-coarse (traverse.allow_coarse_cells) drives on it all the same"
    )
