"""The whole configuration of a run."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BeforeValidator, SerializeAsAny, ValidationError, model_validator
from pydantic.json_schema import models_json_schema

from mlnav import parts
from mlnav.config.checkers import Checker, Verified
from mlnav.config.heuristics import Heuristic, NoHeuristic
from mlnav.config.localizations import Localization, TruePose
from mlnav.config.planners import Enav, Planner
from mlnav.config.rover import Limits, Rover, Tracking
from mlnav.config.section import ConfigError, PartSection, Section, numbers_of, refusal
from mlnav.config.sensors import Sensor, TruthSensor
from mlnav.config.traverse import Polygon, Traverse
from mlnav.config.worlds import Kinematic, World
from mlnav.config.yaml import format_validation_error, parse_yaml, put_value, set_value, write_yaml

if TYPE_CHECKING:
    from mlnav import _core


_RADIANS = re.compile(r"_rad(\])")
"""The end of an angle's name in the core's messages, which give its value in degrees."""


def _by_name(kind: str) -> BeforeValidator:
    """Builds the section of a part from `{name: x, ...}` or `x`."""
    return BeforeValidator(
        lambda data: data if isinstance(data, Section) else PartSection.of(kind, data)
    )


class Config(Section):
    """Everything a run depends on besides its terrain, start, goal and seed."""

    rover: Rover = Rover()
    limits: Limits = Limits.model_validate("flight_like")
    tracking: Tracking = Tracking()
    checker: Annotated[SerializeAsAny[Checker], _by_name("checker")] = Verified()
    planner: Annotated[SerializeAsAny[Planner], _by_name("planner")] = Enav()
    heuristic: Annotated[SerializeAsAny[Heuristic], _by_name("heuristic")] = NoHeuristic()
    world: Annotated[SerializeAsAny[World], _by_name("world")] = Kinematic()
    sensor: Annotated[SerializeAsAny[Sensor], _by_name("sensor")] = TruthSensor()
    localization: Annotated[SerializeAsAny[Localization], _by_name("localization")] = TruePose()
    traverse: Traverse = Traverse()
    keep_out: list[Polygon] = []
    """Polygons [[x, y], ...] in metres that no path may touch."""
    keep_in: list[Polygon] = []
    """Where there are any, ground outside all of them is forbidden."""

    @model_validator(mode="after")
    def _accepted_by_the_core(self) -> Self:
        """Refuse what the core would refuse later."""
        try:
            self.rover_model()
            if self.world.limits is not None:
                self.model_copy(update={"limits": self.world.limits}).rover_model()
            if not parts.find("checker", self.checker.name).outside:
                self.build_checker(1)
            if isinstance(self.planner, Enav):
                self.to_core_planner()
        except ConfigError as fault:
            raise refusal(_RADIANS.sub(r"_deg\1", str(fault))) from fault
        return self

    def to_core_planner(self, max_map_cells: int = 0, max_risk_cells: int = 0) -> _core.EnavConfig:
        """The planner's struct. Raises ConfigError: refused by the core, or not the core's."""
        if not isinstance(self.planner, Enav):
            raise ConfigError(f"planner {self.planner.name} is not the core's")
        return self.planner.to_core(self.heuristic, max_map_cells, max_risk_cells)

    def rover_model(self) -> _core.RoverModel:
        """Geometry and limits for the core. Raises ConfigError: it refuses a value, named."""
        from mlnav import _core

        model = _core.RoverModel()
        model.geometry = self.rover.to_core()
        model.limits = self.limits.to_core()
        model.tracking = self.tracking.to_core()
        try:
            model.validate()
        except _core.CoreError as fault:
            raise ConfigError(f"rover or limits: {fault}") from fault
        return model

    def build_checker(self, max_map_cells: int) -> _core.Checker:
        """The checker, for maps of up to so many cells; it still needs a map.

        Raises ConfigError: the core refuses a value; the message names its field.
        """
        from mlnav import _core
        from mlnav.core import checker_of_part

        model, part = self.rover_model(), parts.find("checker", self.checker.name)
        numbers = numbers_of("checker", self.checker)
        settings = {name.removeprefix("checker."): value for name, value in numbers.items()}

        def make() -> Any:
            return part.make(self.checker, model, max_map_cells)

        try:
            return checker_of_part(part, settings, make, model)
        except _core.CoreError as fault:
            raise ConfigError(f"checker: {fault}") from fault

    def replaced(self, settings: Iterable[str] = (), **parts: Any) -> Self:
        """A copy with other parts, then keys, `path.to.key=value`. Raises ConfigError: bad ones."""
        data = self.model_dump(mode="json")
        data.update({k: v for k, v in parts.items() if v is not None})
        for setting in settings:
            set_value(data, setting)
        return type(self).checked(data)

    def with_values(self, values: Mapping[str, Any]) -> Self:
        """A copy with the values of some keys, by path, changed. Raises ConfigError: bad ones."""
        data = self.model_dump(mode="json")
        for path, value in values.items():
            put_value(data, path, value)
        return type(self).checked(data)

    def to_yaml(self) -> str:
        """YAML that `load_config` reads back to an equal configuration."""
        return write_yaml(json.loads(self.model_dump_json()))

    @classmethod
    def checked(cls, data: Any, source: str = "") -> Self:
        """A configuration from the tree of a YAML file. Raises ConfigError: it is not valid."""
        try:
            return cls.model_validate(data)
        except ValidationError as fault:
            raise ConfigError(format_validation_error(fault, data, source)) from fault


def parse_config(text: str, source: str = "") -> Config:
    """A configuration from YAML text, or defaults. Raises ConfigError: not YAML, or not valid."""
    return Config.checked(parse_yaml(text, source), source)


def load_config(path: str | os.PathLike[str]) -> Config:
    """A configuration from a YAML file. Raises ConfigError: it cannot be read, or is not valid."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise ConfigError(f"{path}: cannot be read: {fault}") from fault
    data = parts.anchored(parse_yaml(text, str(path)), Path(path).parent)
    return Config.checked(data, str(path))


def json_schema() -> dict[str, Any]:
    """JSON Schema of the YAML file, for editors."""
    schema = Config.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    definitions = schema["$defs"]
    short = {"type": "string", "enum": list(Limits.presets)}
    numbers = definitions["Limits"]
    base = {"base": short | {"description": "A set to start from."}}
    changed = {**numbers, "properties": base | numbers["properties"], "required": ["base"]}
    text = numbers["description"]
    definitions["Limits"] = {"description": text, "anyOf": [short, numbers, changed]}
    for kind in parts.SECTIONS:
        models = [parts.find(kind, name).model for name in parts.names_of(kind)]
        refs, more = models_json_schema([(model, "validation") for model in models])
        definitions.update({k: v for k, v in more["$defs"].items() if k not in definitions})
        field = schema["properties"][kind]
        bases = field.pop("anyOf", None) or [{"$ref": field.pop("$ref")}]
        for base in bases:
            if base not in refs.values():
                definitions.pop(base["$ref"].rpartition("/")[2])
        field["anyOf"] = [
            {"type": "string", "anyOf": [{"enum": parts.names_of(kind)}, {"pattern": ":"}]},
            *(refs[model, "validation"] for model in models),
        ]
    return schema
