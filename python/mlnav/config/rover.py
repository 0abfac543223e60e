"""The rover's geometry, the limits of a safe pose, and how well the rover keeps to its path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import model_serializer

from mlnav.config.core_fields import RoverGeometry, SafetyLimits, Tube
from mlnav.config.section import filled, from_preset

if TYPE_CHECKING:
    from mlnav import _core


class Rover(RoverGeometry):
    """Geometry of a six-wheel rocker-bogie rover; Perseverance-class by default.

    Frame: x forward, y left, z up, origin midway between the middle wheels' contact points.
    """

    def to_core(self) -> _core.RoverGeometry:
        """The core's struct."""
        from mlnav import _core

        return filled(_core.RoverGeometry(), self)


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
        mine = {k: getattr(self, k) for k in type(self).model_fields}
        return next((name for name, preset in self.presets.items() if preset == mine), "custom")

    @model_serializer
    def _as_written(self) -> str | dict[str, float | None]:
        if self.name != "custom":
            return self.name
        return {k: getattr(self, k) for k in type(self).model_fields}

    def to_core(self) -> _core.SafetyLimits:
        """The core's struct."""
        from mlnav import _core

        return filled(_core.SafetyLimits(), self)


class Tracking(Tube):
    """How far the rover may be from its path, to either side: what `verified` allows for."""

    def to_core(self) -> _core.Tube:
        """The core's struct."""
        from mlnav import _core

        return filled(_core.Tube(), self)
