"""Localization: the pose that the rover is estimated to be at."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from mlnav.config import Config, Odometry, TruePose, numbers_of
from mlnav.parts import find
from mlnav.sim.noise import random_stream
from mlnav.sim.state import RoverState
from mlnav.sim.validated import ValidatedLocalization
from mlnav.sim.world import Execution, moved, seen_from


class Localization(Protocol):
    """Estimates the rover's pose. One localization is one traverse."""

    def update(self, before: RoverState, execution: Execution) -> RoverState:
        """The state after a motion that began at `before`; its true pose is the execution's."""

    def as_built(self) -> dict[str, float]:
        """Values by key of the configuration, read back from what was made of it."""


def make_localization(config: Config, seed: int) -> Localization:
    """The localization that a configuration names, with noise of the run's seed."""
    part, rng = find("localization", config.localization.name), random_stream(seed, "localization")
    made: Localization = part.make(config.localization, config, rng)
    settings = numbers_of("localization", config.localization)
    return ValidatedLocalization(made, part, settings) if part.outside else made


class TrueLocalization:
    """The estimated pose is the true one."""

    def __init__(self, settings: TruePose, config: Config, rng: np.random.Generator) -> None:
        pass

    def as_built(self) -> dict[str, float]:
        """It has no settings."""
        return {}

    def update(self, before: RoverState, execution: Execution) -> RoverState:
        """As the protocol says."""
        return RoverState(execution.pose, execution.settled_after(before.settled), execution.pose)


class OdometryLocalization:
    """Odometry: motions seen in images, or by wheel turns and a gyro, with errors added."""

    def __init__(self, settings: Odometry, config: Config, rng: np.random.Generator) -> None:
        self._settings = settings
        self._rng = rng

    def as_built(self) -> dict[str, float]:
        """Sizes of its errors."""
        return numbers_of("localization", self._settings)

    def update(self, before: RoverState, execution: Execution) -> RoverState:
        """As the protocol says."""
        settings = self._settings
        seen = seen_from(before.true_pose, execution.pose)
        forward, left, turned = execution.counted if settings.name == "wheel" else seen
        # Random walks: variances grow with the distance.
        way_m = math.hypot(forward, left)
        sigma_m = settings.distance_sigma * math.sqrt(way_m)
        sigma_rad = math.radians(settings.heading_sigma_deg) * math.sqrt(way_m + abs(turned))
        noise = self._rng.standard_normal(4)
        step = (
            forward + float(sigma_m * noise[0]),
            left + float(sigma_m * noise[1]),
            turned + float(sigma_rad * noise[2]),
        )
        return RoverState(
            execution.pose,
            execution.settled_after(before.settled),
            moved(before.estimated_pose, step),
            before.estimated_z_error_m + float(sigma_m * noise[3]),
        )
