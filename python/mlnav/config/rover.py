"""The rover's geometry, the limits of a safe pose, and how well the rover keeps to its path."""

from __future__ import annotations

from typing import Any

from pydantic import model_serializer

from mlnav.config.core_fields import RoverGeometry, SafetyLimits, Tube
from mlnav.config.section import from_preset


class Rover(RoverGeometry):
    """Geometry of a six-wheel rocker-bogie rover; Perseverance-class by default.

    Frame: x forward, y left, z up, origin midway between the middle wheels' contact points.
    """


class Limits(SafetyLimits):
    """What makes a pose unsafe: beyond any of these.

    Written as the name of a set, `enav_like` or `flight_like`; as a set with changes,
    `{base: enav_like, tilt_max_deg: 25}`; or as all the numbers.
    """

    @classmethod
    def expanded(cls, data: Any) -> Any:
        """Numbers from the name of a set, or from a base and changes."""
        return from_preset("limits", data, "base", cls.presets)

    @property
    def name(self) -> str:
        """Name of the set these are, or 'custom'."""
        mine = dict(self)
        return next((name for name, preset in self.presets.items() if preset == mine), "custom")

    @model_serializer
    def _as_written(self) -> str | dict[str, float | None]:
        return dict(self) if self.name == "custom" else self.name


class Tracking(Tube):
    """How far the rover may be from its path, to either side: what `verified` allows for."""
