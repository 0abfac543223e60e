"""What every section of the configuration is made of."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from mlnav.io import flag_for_number

T = TypeVar("T")


class ConfigError(ValueError):
    """A configuration is faulty; the message has the path of each bad key and what is wrong."""


def suggestion(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the nearest known name, or a list of what is known."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(names)}"


def from_preset(what: str, data: Any, key: str, presets: Mapping[str, Mapping[str, Any]]) -> Any:
    """The values of a named set, `x` or `{key: x, ...}` with changes; other data as it is."""
    if isinstance(data, str):
        data = {key: data}
    if not (isinstance(data, Mapping) and key in data):
        return data
    name = data[key]
    if name not in presets:
        hint = suggestion(str(name), presets)
        raise PydanticCustomError(
            "unknown_name",
            "no {what} '{name}'{hint}",
            {"what": what, "name": str(name), "hint": hint},
        )
    return {**presets[name], **{k: v for k, v in data.items() if k != key}}


class Section(BaseModel):
    """A part of the configuration: immutable, and closed to keys it does not know."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    @model_validator(mode="before")
    @classmethod
    def _prepared(cls, data: Any) -> Any:
        data = cls.expanded(data)
        if isinstance(data, Mapping):
            for key in data:
                if key not in cls.model_fields:
                    hint = suggestion(str(key), cls.model_fields)
                    raise PydanticCustomError(
                        "unknown_key", "unknown key '{key}'{hint}", {"key": str(key), "hint": hint}
                    )
            flag = flag_for_number({k: f.annotation for k, f in cls.model_fields.items()}, data)
            if flag is not None:
                raise PydanticCustomError(
                    "number", "{key} is a number, not true or false", {"key": flag}
                )
        return data

    @classmethod
    def expanded(cls, data: Any) -> Any:
        """Data with short forms written out; sections that have some override this."""
        return data


Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]
Angle = Annotated[float, Field(gt=0, lt=90)]


def numbers_of(prefix: str, section: Section) -> dict[str, float]:
    """Numbers in a section and the sections in it, by path; lists and what is null are left out."""
    found: dict[str, float] = {}
    for name in type(section).model_fields:
        value = getattr(section, name)
        if isinstance(value, Section):
            found |= numbers_of(f"{prefix}.{name}", value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found[f"{prefix}.{name}"] = value
    return found


def numbers_of_struct(prefix: str, struct: Any) -> dict[str, float]:
    """Numbers of a core's struct and the structs in it, by path, angles in degrees."""
    found: dict[str, float] = {}
    for name in dir(struct):
        value = getattr(struct, name)
        if name.startswith("_") or callable(value):
            continue
        path = f"{prefix}.{name}"
        if isinstance(value, int | float):
            if isinstance(value, bool) or math.isinf(value):
                continue
            angle = name.endswith("_rad") and not name.endswith("_per_rad")
            found[path.removesuffix("_rad") + "_deg" if angle else path] = (
                math.degrees(value) if angle else value
            )
        elif type(value).__module__ == type(struct).__module__:
            found |= numbers_of_struct(path, value)
    return found


def filled(struct: T, **values: Any) -> T:
    """A struct of the core, with some of its fields set."""
    for name, value in values.items():
        setattr(struct, name, value)
    return struct
