"""The safety checkers and the spacing of poses that each needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from mlnav.config.section import Positive, Section, filled

if TYPE_CHECKING:
    from mlnav import _core


WIDE_STEP_M = 0.25
"""Between checked poses on a path for checkers whose wheel boxes (0.4 m) reach over the gap."""

CLOSE_STEP_M = 0.1
"""For checkers that judge a pose and nothing beside it: a wheel comes on to a rock and off it
within 0.25 m."""

WIDE_TURN_DEG = 10.0
CLOSE_TURN_DEG = 10.0 / 3.0
"""Between checked poses of a turn in place: corner wheels move 0.28 m and 0.09 m. All unsafe states
that traverses under `verified` ran into with 10 degrees were in turns."""


class Verified(Section):
    """The certified checker: passes a pose only with proof of a settled state in its bounds."""

    name: Literal["verified"] = "verified"
    enclosed_m: Annotated[float, Field(ge=1e-8, le=0.1)] = 1e-3
    """Wheel height by which the first box lets settled states differ."""
    max_tries: Annotated[int, Field(ge=1, le=100)] = 8
    """Boxes tried before `not_certified`."""

    pose_step_m: ClassVar[float] = CLOSE_STEP_M
    turn_step_deg: ClassVar[float] = CLOSE_TURN_DEG

    def build(self, model: _core.RoverModel, max_map_cells: int) -> _core.Checker:
        """The checker; it still needs a map."""
        from mlnav import _core

        config = filled(
            _core.VerifiedConfig(), enclosed_m=self.enclosed_m, max_tries=self.max_tries
        )
        return _core.Checker.verified(model, config)


class FixedBox(Section):
    """The ENav-like checker: wheel boxes of fixed size about nominal positions."""

    name: Literal["fixed_box"] = "fixed_box"
    half_length_m: Positive = 0.20
    """Of a wheel's box, along the rover."""
    half_width_m: Positive = 0.20
    """Across."""

    pose_step_m: ClassVar[float] = WIDE_STEP_M
    turn_step_deg: ClassVar[float] = WIDE_TURN_DEG

    def build(self, model: _core.RoverModel, max_map_cells: int) -> _core.Checker:
        """The checker; it still needs a map."""
        from mlnav import _core

        box = filled(
            _core.FixedBoxConfig(), half_length_m=self.half_length_m, half_width_m=self.half_width_m
        )
        return _core.Checker.fixed_box(model, box, max_map_cells)


class Probabilistic(Section):
    """p-ACE: the intervals of `fixed_box`, passed where they are likely enough. Proves nothing."""

    name: Literal["probabilistic"] = "probabilistic"
    half_length_m: Positive = 0.20
    """Of a wheel's box, along the rover."""
    half_width_m: Positive = 0.20
    """Across."""
    sigma_fraction: Positive = 0.17
    """Standard deviation of a state, of its interval's width; published: 0.13 to 0.20."""
    risk_max: Annotated[float, Field(ge=0, le=1)] = 0.05
    """Chance of breaking any limit that a pose may have."""

    pose_step_m: ClassVar[float] = WIDE_STEP_M
    turn_step_deg: ClassVar[float] = WIDE_TURN_DEG

    def build(self, model: _core.RoverModel, max_map_cells: int) -> _core.Checker:
        """The checker; it still needs a map."""
        from mlnav import _core

        box = filled(
            _core.FixedBoxConfig(), half_length_m=self.half_length_m, half_width_m=self.half_width_m
        )
        config = filled(
            _core.ProbabilisticConfig(), sigma_fraction=self.sigma_fraction, risk_max=self.risk_max
        )
        return _core.Checker.probabilistic(model, box, config, max_map_cells)


class Settle(Section):
    """The reference checker: settles the rover and looks at the state. No bounds."""

    name: Literal["settle"] = "settle"

    pose_step_m: ClassVar[float] = CLOSE_STEP_M
    turn_step_deg: ClassVar[float] = CLOSE_TURN_DEG

    def build(self, model: _core.RoverModel, max_map_cells: int) -> _core.Checker:
        """The checker; it still needs a map."""
        from mlnav import _core

        return _core.Checker.settle(model)
