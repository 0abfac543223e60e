"""The safety checkers and the spacing of poses that each needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from mlnav.config.core_fields import FixedBoxConfig, ProbabilisticConfig, VerifiedConfig
from mlnav.config.section import PartSection, filled

if TYPE_CHECKING:
    from mlnav import _core


WIDE_STEP_M = 0.25
"""Between checked poses on a path, for checkers whose wheel boxes (0.4 m) cover the gap."""

CLOSE_STEP_M = 0.1
"""For checkers that judge single poses: within 0.25 m a wheel may cross a rock."""

WIDE_TURN_DEG = 10.0
CLOSE_TURN_DEG = 10.0 / 3.0
"""Between checked poses of a turn in place: corner wheels move 0.28 m and 0.09 m. With 10 degrees,
all unsafe states of traverses under `verified` were in turns."""


class Checker(PartSection):
    """The base of all checkers, with the spacing of poses that each needs."""

    kind: ClassVar[str] = "checker"
    pose_step_m: ClassVar[float] = CLOSE_STEP_M
    turn_step_deg: ClassVar[float] = CLOSE_TURN_DEG


class Verified(VerifiedConfig, Checker):
    """The certified checker: passes a pose only with proof of a settled state in its bounds."""

    name: Literal["verified"] = "verified"

    def build(self, model: _core.RoverModel, max_map_cells: int) -> _core.Checker:
        """The checker; it still needs a map."""
        from mlnav import _core

        return _core.Checker.verified(model, filled(_core.VerifiedConfig(), self))


class FixedBox(FixedBoxConfig, Checker):
    """The ENav-like checker: wheel boxes of fixed size about nominal positions."""

    name: Literal["fixed_box"] = "fixed_box"

    pose_step_m: ClassVar[float] = WIDE_STEP_M
    turn_step_deg: ClassVar[float] = WIDE_TURN_DEG

    def build(self, model: _core.RoverModel, max_map_cells: int) -> _core.Checker:
        """The checker; it still needs a map."""
        from mlnav import _core

        return _core.Checker.fixed_box(model, filled(_core.FixedBoxConfig(), self), max_map_cells)


class Probabilistic(ProbabilisticConfig, FixedBoxConfig, Checker):
    """p-ACE: the intervals of `fixed_box`, passed where they are likely enough. Proves nothing."""

    name: Literal["probabilistic"] = "probabilistic"

    pose_step_m: ClassVar[float] = WIDE_STEP_M
    turn_step_deg: ClassVar[float] = WIDE_TURN_DEG

    def build(self, model: _core.RoverModel, max_map_cells: int) -> _core.Checker:
        """The checker; it still needs a map."""
        from mlnav import _core

        boxes = filled(_core.FixedBoxConfig(), self)
        config = filled(_core.ProbabilisticConfig(), self)
        return _core.Checker.probabilistic(model, boxes, config, max_map_cells)


class Settle(Checker):
    """The reference checker: settles the rover and judges the state, without bounds."""

    name: Literal["settle"] = "settle"

    def build(self, model: _core.RoverModel, max_map_cells: int) -> _core.Checker:
        """The checker; it still needs a map."""
        from mlnav import _core

        return _core.Checker.settle(model)
