"""A terrain source: parallel dunes, of a phase and direction that the seed draws.

mlnav traverse --terrain examples/parts/terrain.py:Dunes --seed 3
"""

import math

import numpy as np

from mlnav.terrain import Terrain

SIDE_M, CELL_M, CREST_M, WAVE_M = 40.0, 0.1, 0.4, 9.0


class Dunes:
    """Sine waves, 40 m square."""

    def terrain(self, seed: int | None) -> Terrain:
        """The dunes of a seed."""
        rng = np.random.default_rng(seed or 0)
        phase, direction = rng.uniform(0.0, math.tau, 2)
        at = CELL_M * (np.arange(round(SIDE_M / CELL_M)) + 0.5)
        along = at * math.cos(direction) + at[:, np.newaxis] * math.sin(direction)
        z = 0.5 * CREST_M * np.sin(math.tau * along / WAVE_M + phase)
        return Terrain(
            np.round(z * 16384.0) / 16384.0,  # the same on every platform
            CELL_M,
            (CELL_M / 2, CELL_M / 2),
            name=f"dunes-seed{seed or 0}",
            start_m=(8.0, 20.0),
            goal_m=(32.0, 20.0),
        )

    def resolution_m(self) -> float:
        """Edge of the cells, asked before any terrain is made."""
        return CELL_M
