"""The rover's true and estimated state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from mlnav.nav.motion import Pose
from mlnav.sim.world import SettledStates


@dataclass(frozen=True, eq=False)
class RoverState:
    """A rover at rest.

    Attributes:
        true_pose: x, y [m], heading [rad].
        settled: its true attitude and suspension: numbers of `STATE_COLUMNS`.
        estimated_pose: by the localization; the rover maps and plans in its frame.
        estimated_z_error_m: the estimated height less the true one.
    """

    true_pose: Pose
    settled: Mapping[str, float | None]
    estimated_pose: Pose
    estimated_z_error_m: float = 0.0

    @property
    def exact(self) -> bool:
        """Whether the estimate is the truth."""
        return self.true_pose == self.estimated_pose and self.estimated_z_error_m == 0.0

    @classmethod
    def at(cls, states: SettledStates, index: int = -1) -> Self:
        """At one of a world's states, estimated without error."""
        x, y, heading = map(float, states.poses[index])
        return cls((x, y, heading), states.state(index), (x, y, heading))
