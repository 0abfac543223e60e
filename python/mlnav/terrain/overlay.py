"""Rocks laid on ground that was measured without them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mlnav.terrain import rocks
from mlnav.terrain.recipes import Rocks, rounded
from mlnav.terrain.terrain import Point, Terrain, TerrainError

CLEAR_M = 2.5
"""Radius kept free of rocks about start and goal, as in the recipes of the benchmark classes."""

_STREAM = 32
"""First number of the spawn key, apart from those of recipes."""


def with_rocks(terrain: Terrain, cfa: float, seed: int, *, clear: Sequence[Point] = ()) -> Terrain:
    """The map with Golombek rocks of this cumulative fractional area on it, as of a recipe.

    Rocks only add height; unknown ground stays unknown. Start, goal and the points `clear`, (x, y)
    [m], stay free of them. Raises TerrainError: cfa is not 0 to 0.3, or the seed is negative.
    """
    if not 0.0 <= cfa <= 0.3:
        raise TerrainError(f"rock cover must be 0 to 0.3, got {cfa:g}")
    if seed < 0:
        raise TerrainError(f"seed must not be negative, got {seed}")
    if cfa == 0.0:
        return terrain
    (ny, nx), res = terrain.shape, terrain.resolution_m
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAM,)))
    field = Rocks(cfa=cfa).scattered(rng, (nx * res, ny * res))
    x_min, _, y_min, _ = terrain.extent_m  # a rock field begins at (0, 0)
    for x, y in (*clear, *(p for p in (terrain.start_m, terrain.goal_m) if p is not None)):
        field = field.clear_of(x, y, CLEAR_M, origin_m=(x_min, y_min))
    relief = rocks.relief_of(field, terrain.shape, res)
    # Cells without a rock keep their exact heights.
    z = np.where(relief > 0.0, rounded(terrain.z + relief), terrain.z)
    return replace(terrain.with_heights(z), name=f"{terrain.name}-cfa{cfa:g}-seed{seed}")
