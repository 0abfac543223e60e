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


class FixedBox(FixedBoxConfig, Checker):
    """The ENav-like checker: wheel boxes of fixed size about nominal positions."""

    name: Literal["fixed_box"] = "fixed_box"


class Probabilistic(ProbabilisticConfig, FixedBoxConfig, Checker):
    """p-ACE: the intervals of `fixed_box`, passed where they are likely enough. Proves nothing."""

    name: Literal["probabilistic"] = "probabilistic"


class Settle(Checker):
    """The reference checker: settles the rover and judges the state, without bounds."""

    name: Literal["settle"] = "settle"


def build(settings: Checker, model: _core.RoverModel, max_map_cells: int) -> _core.Checker:
    """The core's checker of these settings; it still needs a map."""
    from mlnav import _core

    if isinstance(settings, Verified):
        return _core.Checker.verified(model, filled(_core.VerifiedConfig(), settings))
    if isinstance(settings, Settle):
        return _core.Checker.settle(model)
    boxes = filled(_core.FixedBoxConfig(), settings)
    if isinstance(settings, FixedBox):
        return _core.Checker.fixed_box(model, boxes, max_map_cells)
    shares = filled(_core.ProbabilisticConfig(), settings)
    return _core.Checker.probabilistic(model, boxes, shares, max_map_cells)
