"""The heuristics: when each is asked and how its risk is priced."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from mlnav.config.core_fields import RiskPolicy, RiskPricing, SobelConfig
from mlnav.config.section import Count, NonNegative, PartSection

Policy = Literal["always", "on_failure"]
"""When a heuristic is asked: up front in every cycle, or once the cheapest path failed ACE."""


class NoHeuristic(PartSection):
    """The baseline: no risk map."""

    kind: ClassVar[str] = "heuristic"
    name: Literal["none"] = "none"
    policy: ClassVar[Policy] = "always"
    persist_cycles: ClassVar[int] = 0
    weight_per_m: NonNegative = 0.0
    to_go_fraction: NonNegative = 0.0
    fail_price: ClassVar[float] = 0.0


class Predictor(RiskPricing, RiskPolicy, PartSection):
    """The base of all heuristics with a risk map: when it is made, and how it is priced."""

    kind: ClassVar[str] = "heuristic"


class Failures(Predictor):
    """A map of zeros, in which only failed poses raise the price: the reference to beat."""

    name: Literal["failures"] = "failures"


class Sobel(SobelConfig, Predictor):
    """Risk from gradients: Sobel operators, squared, averaged over a rover-sized kernel."""

    name: Literal["sobel"] = "sobel"
    policy: Policy = "always"
    weight_per_m: NonNegative = 40.0
    to_go_fraction: NonNegative = 0.3


class Network(Predictor):
    """Risk from a network trained on the checker's verdicts."""

    name: Literal["network"] = "network"
    model: Annotated[str, Field(min_length=1)] = "auto"
    """auto: the shipped model for the checker and limits. Else the name of a shipped one, or the
    path of a model's folder."""
    threads: Count = 1
    """Of one inference."""


class Oracle(Predictor):
    """The checker's own verdicts as risk: a perfect network."""

    name: Literal["oracle"] = "oracle"
    bins: Annotated[int, Field(ge=1, le=360)] = 16
    """Headings."""
    resolution_m: Annotated[float, Field(ge=0.02, le=0.5)] | None = None
    """Of its cells. null: the map's own for `fixed_box`, 0.2 m for the others."""
    reach_m: Annotated[float, Field(ge=0.5, le=50)] = 8.0
    """Half width of the square about the rover."""


Heuristic = NoHeuristic | Predictor
