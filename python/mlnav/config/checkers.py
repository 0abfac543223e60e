"""The safety checkers."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from mlnav.config.core_fields import FixedBoxConfig, ProbabilisticConfig, VerifiedConfig
from mlnav.config.section import PartSection, filled

if TYPE_CHECKING:
    from mlnav import _core


class Checker(PartSection):
    """The base of all checkers."""

    kind: ClassVar[str] = "checker"


class Verified(VerifiedConfig, Checker):
    """The certified checker: proves a settled state, within bounds, all along a sweep."""

    name: Literal["verified"] = "verified"

    def build(self, model: _core.RoverModel, max_map_cells: int) -> _core.Checker:
        """The checker; it still needs a map."""
        from mlnav import _core

        return _core.Checker.verified(model, filled(_core.VerifiedConfig(), self))


class FixedBox(FixedBoxConfig, Checker):
    """The ENav-like checker: wheel boxes of fixed size about nominal positions."""

    name: Literal["fixed_box"] = "fixed_box"

    def build(self, model: _core.RoverModel, max_map_cells: int) -> _core.Checker:
        """The checker; it still needs a map."""
        from mlnav import _core

        return _core.Checker.fixed_box(model, filled(_core.FixedBoxConfig(), self), max_map_cells)


class Probabilistic(ProbabilisticConfig, FixedBoxConfig, Checker):
    """p-ACE: the intervals of `fixed_box`, passed where they are likely enough. Proves nothing."""

    name: Literal["probabilistic"] = "probabilistic"

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
