"""The parts that are chosen by name: a new one is a model and one line in its union."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

from mlnav.config.checkers import FixedBox, Probabilistic, Settle, Verified
from mlnav.config.heuristics import Failures, Network, NoHeuristic, Oracle, Sobel
from mlnav.config.localizations import TruePose, VisualOdometry, WheelOdometry
from mlnav.config.planners import Enav
from mlnav.config.section import Section, suggestion
from mlnav.config.sensors import Stereo, TruthSensor
from mlnav.config.worlds import Bullet, Kinematic

# A new part is its model above and one name here.
Checker = Verified | FixedBox | Probabilistic | Settle
Planner = Enav
World = Kinematic | Bullet
Sensor = TruthSensor | Stereo
Localization = TruePose | VisualOdometry | WheelOdometry

KINDS: dict[str, tuple[type[Section], ...]] = {
    "checker": (Verified, FixedBox, Probabilistic, Settle),
    "planner": (Enav,),
    "heuristic": (NoHeuristic, Failures, Sobel, Network, Oracle),
    "world": (Kinematic, Bullet),
    "sensor": (TruthSensor, Stereo),
    "localization": (TruePose, VisualOdometry, WheelOdometry),
}


def names_of(kind: str) -> list[str]:
    """The names that a part which is chosen by name may have."""
    return [str(section.model_fields["name"].default) for section in KINDS[kind]]


def by_name(kind: str) -> BeforeValidator:
    """Takes `{name: x, ...}` or just `x`, and builds the model of that name."""

    def build(data: Any) -> Any:
        if isinstance(data, Section):
            return data
        if isinstance(data, str):
            data = {"name": data}
        if not isinstance(data, Mapping):
            raise PydanticCustomError("kind", "must be a name or a mapping with a name")
        known = dict(zip(names_of(kind), KINDS[kind], strict=True))
        name = data.get("name", next(iter(known)))
        if name not in known:
            hint = suggestion(str(name), known)
            raise PydanticCustomError(
                "unknown_name",
                "no {kind} '{name}'{hint}",
                {"kind": kind, "name": str(name), "hint": hint},
            )
        return known[name].model_validate(data)

    return BeforeValidator(build)
