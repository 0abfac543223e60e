"""A localization: positions are exact, and the heading drifts with the way.

mlnav config show --set localization=examples/parts/localization.py:DriftingGyro
"""

import math

import numpy as np

from mlnav.config import Config, Localization
from mlnav.sim import Execution, RoverState


class DriftingGyro:
    """A heading whose error grows by the same angle with every metre."""

    class Settings(Localization):
        """How fast."""

        drift_deg_per_m: float = 0.02

    def __init__(self, settings: Settings, config: Config, rng: np.random.Generator) -> None:
        self._drift_rad_per_m = math.radians(settings.drift_deg_per_m)

    def update(self, before: RoverState, execution: Execution) -> RoverState:
        """The state after a motion that began at `before`."""
        x, y, heading = execution.pose
        error = before.estimated_pose[2] - before.true_pose[2]
        error += self._drift_rad_per_m * execution.driven_m
        return RoverState(
            execution.pose, execution.settled_after(before.settled), (x, y, heading + error)
        )
