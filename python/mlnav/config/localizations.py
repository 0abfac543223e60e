"""Where estimated poses come from."""

from __future__ import annotations

from typing import ClassVar, Literal

from mlnav.config.section import NonNegative, PartSection


class Localization(PartSection):
    """The base of all localizations."""

    kind: ClassVar[str] = "localization"


class TruePose(Localization):
    """The estimated pose is the true one."""

    name: Literal["truth"] = "truth"


class Odometry(Localization):
    """A pose that adds up motions from the start; its errors add up as random walks."""

    distance_sigma: NonNegative = 0.01
    """Error along, across and in height [m] after 1 m; after s metres sqrt(s) times that."""
    heading_sigma_deg: NonNegative = 0.1
    """Error of the heading after 1 m, or after turning by 1 rad in place, likewise."""


class VisualOdometry(Odometry):
    """The pose estimated from images: slip is seen."""

    name: Literal["visual"] = "visual"


class WheelOdometry(Odometry):
    """The pose estimated from wheel turns and a gyro: slip goes unnoticed."""

    name: Literal["wheel"] = "wheel"
