"""The base of the configuration's sections, and what converts them to the core's structs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, SupportsIndex, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from mlnav import parts
from mlnav.io import flag_for_number
from mlnav.parts import suggestion

if TYPE_CHECKING:
    from mlnav import _core

T = TypeVar("T")


class ConfigError(ValueError):
    """A configuration is faulty; the message has the path of each bad key and what is wrong."""


def refusal(why: str) -> PydanticCustomError:
    """A fault of a value, for validators to raise; pydantic adds the path of its key."""
    return PydanticCustomError("value", "{why}", {"why": why})


def from_preset(what: str, data: Any, key: str, presets: Mapping[str, Mapping[str, Any]]) -> Any:
    """The values of a named set, `x` or `{key: x, ...}` with changes; other data unchanged."""
    if isinstance(data, str):
        data = {key: data}
    if not (isinstance(data, Mapping) and key in data):
        return data
    name = data[key]
    if name not in presets:
        raise refusal(f"no {what} '{name}'{suggestion(str(name), presets)}")
    return {**presets[name], **{k: v for k, v in data.items() if k != key}}


class Section(BaseModel):
    """A part of the configuration: immutable, unknown keys are refused."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    @model_validator(mode="before")
    @classmethod
    def _prepared(cls, data: Any) -> Any:
        data = cls.expanded(data)
        if isinstance(data, Mapping):
            fields = cls.model_fields
            for key in data:
                if key not in fields:
                    raise refusal(f"unknown key '{key}'{suggestion(str(key), fields)}")
            flag = flag_for_number({k: f.annotation for k, f in fields.items()}, data)
            if flag is not None:
                raise refusal(f"{flag} is a number, not true or false")
        return data

    @classmethod
    def expanded(cls, data: Any) -> Any:
        """Data with short forms written out; sections that have some override this."""
        return data

    def to_core(self) -> Any:
        """The core's struct that the section has the fields of; radians for degrees."""
        from mlnav import _core

        struct = next(c.__name__ for c in type(self).__mro__ if c.__name__ in _core.FIELDS)
        return filled(getattr(_core, struct)(), self)


class PartSection(Section):
    """The settings of a part that is chosen by name."""

    kind: ClassVar[str]
    name: str

    @classmethod
    def of(cls, kind: str, data: Any) -> PartSection:
        """The section of the part that data name, `{name: x, ...}` or just `x`."""
        if isinstance(data, str):
            data = {"name": data}
        if not isinstance(data, Mapping):
            raise refusal("must be a name or a mapping with a name")
        name = str(data.get("name", parts.names_of(kind)[0]))
        try:
            model = parts.find(kind, name).model
        except parts.PartError as fault:
            raise refusal(str(fault)) from fault
        section: PartSection = model.model_validate({**data, "name": name})
        return section

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        # By the part's name where the model comes from a file, which another process must load.
        digest = parts.of_file(type(self))
        if digest is None:
            return super().__reduce_ex__(protocol)
        return _section_again, (self.kind, self.model_dump(), digest)


def _section_again(kind: str, data: dict[str, Any], digest: str) -> PartSection:
    section = PartSection.of(kind, data)
    if parts.of_file(type(section)) != digest:
        raise parts.PartError(f"{kind} {section.name}: its file was changed while it was in use")
    return section


Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]


def numbers_of(prefix: str, section: Section) -> dict[str, float]:
    """Numbers of a section and its subsections, by path; without lists and null."""
    found: dict[str, float] = {}
    for name in type(section).model_fields:
        value = getattr(section, name)
        if isinstance(value, Section):
            found |= numbers_of(f"{prefix}.{name}", value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found[f"{prefix}.{name}"] = value
    return found


KEYS = {"ask": "policy"}
"""Fields of the core that the configuration has by another name."""


def key_of(field: _core.FieldInfo) -> str:
    """The key of a core's field in the configuration, where angles are in degrees."""
    name = KEYS.get(field["name"], field["name"])
    return name.removesuffix("_rad") + "_deg" if field["unit"] == "rad" else name


def numbers_of_struct(prefix: str, struct: Any) -> dict[str, float]:
    """Numbers of a core's struct and its substructs, by path, angles in degrees."""
    from mlnav import _core

    found: dict[str, float] = {}
    for field in _core.FIELDS[type(struct).__name__]:
        value = getattr(struct, field["name"])
        path = f"{prefix}.{key_of(field)}"
        if field["type"] in _core.FIELDS:
            found |= numbers_of_struct(path, value)
        elif field["type"] in ("float", "int") and not math.isinf(value):
            found[path] = math.degrees(value) if field["unit"] == "rad" else value
    return found


def filled(struct: T, section: Any) -> T:
    """A core's struct with the values of a section; null: no limit, or the struct's own value."""
    from mlnav import _core

    for field in _core.FIELDS[type(struct).__name__]:
        name, key = field["name"], key_of(field)
        if not hasattr(section, key):
            continue
        value = getattr(section, key)
        if field["type"] in _core.FIELDS:
            filled(getattr(struct, name), value)
        elif value is not None:
            setattr(struct, name, np.radians(value).tolist() if field["unit"] == "rad" else value)
        elif field["hi"] == math.inf:
            setattr(struct, name, math.inf)
    return struct
