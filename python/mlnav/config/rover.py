"""The rover's geometry and the limits of a safe pose."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import model_serializer

from mlnav.config.section import Angle, Positive, Section, filled, from_preset

if TYPE_CHECKING:
    from mlnav import _core


class Rover(Section):
    """Geometry of a six-wheel rocker-bogie rover; Perseverance-class by default.

    Frame: x forward, y left, z up, origin midway between the middle wheels' contact points.
    """

    wheel_radius_m: Positive = 0.263
    wheel_width_m: Positive = 0.335
    front_x_m: float = 1.185
    rear_x_m: float = -1.075
    front_y_m: Positive = 1.0625
    middle_y_m: Positive = 1.1845
    rear_y_m: Positive = 1.0625
    rocker_pivot_x_m: float = 0.304
    rocker_pivot_z_m: float = 0.893
    bogie_pivot_x_m: float = -0.450
    bogie_pivot_z_m: float = 0.663
    pan_rear_x_m: float = -1.18
    pan_front_x_m: float = 0.90
    pan_half_width_m: Positive = 0.775
    pan_height_m: float = 0.60

    def to_core(self) -> _core.RoverGeometry:
        """The core's struct."""
        from mlnav import _core

        return filled(_core.RoverGeometry(), **self.model_dump())


class Limits(Section):
    """What makes a pose unsafe: beyond any of these.

    Written as the name of a set, `enav_like` or `flight_like`; as a set with changes,
    `{base: enav_like, tilt_max_deg: 25}`; or as all the numbers.
    """

    clearance_min_m: float
    """Least height of the belly pan above ground."""
    tilt_max_deg: Angle
    """Body z axis against the vertical."""
    bogie_max_deg: Angle
    """Bogie angle relative to its rocker, either way."""
    differential_max_deg: Angle
    """Rocker angle relative to the body, either way."""
    wheel_drop_max_m: Positive
    """Height span of the ground in a wheel's box: what `fixed_box` looks at."""
    relief_max_m: Positive | None = None
    """Height span of the ground under a settled wheel's footprint; null for no limit."""

    presets: ClassVar[dict[str, dict[str, float | None]]] = {
        # Reproduces the difficulty published for ENav with the fixed-box checker.
        "enav_like": {
            "clearance_min_m": 0.06,
            "tilt_max_deg": 30.0,
            "bogie_max_deg": 25.0,
            "differential_max_deg": 12.0,
            "wheel_drop_max_m": 0.22,
            "relief_max_m": None,
        },
        # After the limits Curiosity is operated with.
        "flight_like": {
            "clearance_min_m": 0.20,
            "tilt_max_deg": 25.0,
            "bogie_max_deg": 17.0,
            "differential_max_deg": 7.0,
            "wheel_drop_max_m": 0.30,
            "relief_max_m": 0.30,
        },
    }

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

        return filled(
            _core.SafetyLimits(),
            clearance_min_m=self.clearance_min_m,
            tilt_max_rad=math.radians(self.tilt_max_deg),
            bogie_max_rad=math.radians(self.bogie_max_deg),
            differential_max_rad=math.radians(self.differential_max_deg),
            wheel_drop_max_m=self.wheel_drop_max_m,
            relief_max_m=math.inf if self.relief_max_m is None else self.relief_max_m,
        )
