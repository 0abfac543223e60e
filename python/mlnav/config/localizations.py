"""Where estimated poses come from."""

from __future__ import annotations

from typing import Literal

from mlnav.config.section import NonNegative, Section


class TruePose(Section):
    """The planner is told where the rover is."""

    name: Literal["truth"] = "truth"


class Odometry(Section):
    """A pose that is counted up from the start: its errors add up, as random walks."""

    name: str
    distance_sigma: NonNegative = 0.01
    """Error along, across and in height [m] after 1 m; after s metres sqrt(s) times that."""
    heading_sigma_deg: NonNegative = 0.1
    """Error of the heading after 1 m, or after turning by 1 rad in place, likewise."""


class VisualOdometry(Odometry):
    """The planner is told the pose that images give: slip is seen."""

    name: Literal["visual"] = "visual"


class WheelOdometry(Odometry):
    """The planner is told the pose that wheel turns and a gyro give: slip goes unnoticed."""

    name: Literal["wheel"] = "wheel"
