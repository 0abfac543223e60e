"""Where the rover is, and where it is told to be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mlnav.config import Localization as Settings
from mlnav.config import Odometry
from mlnav.sim.world import Execution, Pose, SettledStates, moved, seen_from


@dataclass(frozen=True, eq=False)
class Whereabouts:
    """A rover at rest.

    Attributes:
        pose: the truth.
        state: likewise, its attitude and suspension: numbers of `STATE_COLUMNS`.
        believed: where the rover is told to be: the frame that it maps and plans in.
        believed_z_error_m: the height it is told, less the true one.
    """

    pose: Pose
    state: Mapping[str, float | None]
    believed: Pose
    believed_z_error_m: float = 0.0

    @property
    def known(self) -> bool:
        """Whether the rover is where it is told to be."""
        return self.pose == self.believed and self.believed_z_error_m == 0.0

    @classmethod
    def at(cls, states: SettledStates, index: int = -1) -> Whereabouts:
        """At one of a world's states, and told so."""
        x, y, heading = map(float, states.poses[index])
        return cls((x, y, heading), states.state(index), (x, y, heading))


class Localization:
    """Tells the rover its pose, as a configuration says."""

    def __init__(self, settings: Settings, rng: np.random.Generator) -> None:
        self._settings = settings
        self._rng = rng

    def as_built(self) -> dict[str, float]:
        """Sizes of its errors, by key of the configuration; none where the truth is told."""
        settings = self._settings
        if not isinstance(settings, Odometry):
            return {}
        return {
            "localization.distance_sigma": settings.distance_sigma,
            "localization.heading_sigma_deg": settings.heading_sigma_deg,
        }

    def update(self, before: Whereabouts, execution: Execution) -> Whereabouts:
        """Whereabouts after a motion that began at `before`."""
        state = execution.states.state(-1) if len(execution.states) else before.state
        settings = self._settings
        if not isinstance(settings, Odometry):
            return Whereabouts(execution.pose, state, execution.pose)
        true = seen_from(before.pose, execution.pose)
        forward, left, turned = execution.counted if settings.name == "wheel" else true
        # Random walks: variances add up with the way.
        way_m = math.hypot(forward, left)
        sigma_m = settings.distance_sigma * math.sqrt(way_m)
        sigma_rad = math.radians(settings.heading_sigma_deg) * math.sqrt(way_m + abs(turned))
        noise = self._rng.standard_normal(4)
        step = (
            forward + float(sigma_m * noise[0]),
            left + float(sigma_m * noise[1]),
            turned + float(sigma_rad * noise[2]),
        )
        return Whereabouts(
            execution.pose,
            state,
            moved(before.believed, step),
            before.believed_z_error_m + float(sigma_m * noise[3]),
        )
