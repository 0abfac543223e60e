"""A checker in Python, slow and honest: a pose passes only if all poses close to it are safe.

mlnav traverse --terrain 5/.03 --checker examples/parts/checker.py:Jittered
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlnav import _core
from mlnav.config import Checker, NonNegative
from mlnav.linkage import STATE

F64 = NDArray[np.float64]
NOT_SETTLED = 1 << _core.REASONS.index("not_settled")


class Jittered:
    """Settles the rover at a pose and at six poses around it, and looks at the states."""

    class Settings(Checker):
        """How far around."""

        jitter_m: NonNegative = 0.03
        jitter_deg: NonNegative = 1.0

    def __init__(self, settings: Settings, model: _core.RoverModel, max_map_cells: int) -> None:
        self._model = model
        steps = np.array([settings.jitter_m, settings.jitter_m, math.radians(settings.jitter_deg)])
        around = np.vstack([np.zeros(3), np.diag(steps), np.diag(-steps)])
        self._shifts = np.column_stack([around, np.zeros(len(around))])

    def set_map(self, grid: _core.Grid) -> None:
        """Answer about this map from now on."""
        self._grid = grid

    def reasons(self, poses: F64) -> NDArray[np.uint16]:
        """Why poses (n, 4), x, y, heading, curvature of the wheels, are not safe; 0: safe."""
        states = self._settled(poses)
        found = np.where(states["safe"], 0, np.maximum(states["reasons"], NOT_SETTLED))
        reasons: NDArray[np.uint16] = np.bitwise_or.reduce(found, axis=1).astype(np.uint16)
        return reasons

    def report(self, poses: F64) -> dict[str, F64]:
        """Least and most of the states around each pose: for pictures and studies, not planners."""
        states = self._settled(poses)
        bounds = {k: np.stack([states[k].min(1), states[k].max(1)], axis=1) for k in STATE}
        return {
            **bounds,
            "tilt_max_rad": states["tilt_rad"].max(1),
            "clearance_min_m": states["clearance_m"].min(1),
            "relief_max_m": states["relief_max_m"].max(1),
        }

    def _settled(self, poses: F64) -> dict[str, NDArray[Any]]:
        """Columns (n, 7) of the states at and around (n, 4) poses."""
        close = (poses[:, np.newaxis] + self._shifts).reshape(-1, 4)
        states = _core.settle(self._grid, self._model, close)
        return {k: v.reshape(len(poses), -1) for k, v in states.items() if v.ndim == 1}
