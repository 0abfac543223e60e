"""Writes `core_fields.py` and a part of `_core.pyi` from the core's field tables.

After a change of a table: `python -m mlnav.config.generate`. A test compares the files with this.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mlnav import _core
from mlnav.config.section import key_of

FIELDS_FILE = Path(__file__).with_name("core_fields.py")
STUB_FILE = Path(__file__).parents[1] / "_core.pyi"
BEGIN = "# From here on written by mlnav.config.generate.\n"
END = "# Up to here.\n"

HEADER = '''"""Fields of the core's structs, angles in degrees. Written by mlnav.config.generate."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from mlnav.config.section import Section
'''

PRESETS = {"SafetyLimits": ("enav_like", "flight_like")}
"""Structs without defaults, and their named sets of values."""

NOT_SET_BY_USERS = {"max_map_cells", "max_risk_cells"}


def fields_module() -> str:
    """The text of `core_fields.py`."""
    classes = "".join(
        f'\n\nclass {struct}(Section):\n    """Fields of `_core.{struct}`."""\n\n'
        + "".join(f"    {line}\n" if line else "\n" for line in _class_lines(struct))
        for struct in _core.FIELDS
    )
    unused = [name for name in ("Literal", "ClassVar") if f"{name}[" not in classes]
    header = HEADER
    for name in unused:
        header = header.replace(f", {name}", "")
    return header + classes


def stub_part() -> str:
    """The classes of the structs, for `_core.pyi`."""
    classes = []
    for struct, fields in _core.FIELDS.items():
        presets = "".join(
            f"    @staticmethod\n    def {name}() -> {struct}: ...\n"
            for name in PRESETS.get(struct, ())
        )
        classes.append(
            f"class {struct}:\n"
            + "".join(f"    {field['name']}: {_type(field)}\n" for field in fields)
            + "    def __init__(self) -> None: ...\n    def validate(self) -> None: ...\n"
            + presets
        )
    return "\n".join(classes)


def stub() -> str:
    """The text of `_core.pyi` with its generated part renewed."""
    before, _, rest = STUB_FILE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n{stub_part()}\n{END}{after}"


def _class_lines(struct: str) -> Iterator[str]:
    fields, presets = _core.FIELDS[struct], PRESETS.get(struct, ())
    for field in fields:
        if field["type"] in _core.FIELDS or field["name"] in NOT_SET_BY_USERS:
            continue
        unlimited = field["hi"] == math.inf
        annotation, value = _annotation(field), _value(field, field["default"])
        words = [field["words"], "null: no limit." if unlimited else None]
        if unlimited:
            annotation += " | None"
        if unlimited and presets:
            value = "None"
        elif presets:
            value = ""
        line = f"{key_of(field)}: {annotation}" + (f" = {value}" if value else "")
        yield from line.split("\n")
        text = " ".join(word for word in words if word)
        if text:
            yield from textwrap.wrap(f'"""{text}"""', width=95)
    if presets:
        yield ""
        yield "presets: ClassVar[dict[str, dict[str, float | None]]] = {"
        for name in presets:
            numbers = getattr(getattr(_core, struct), name)()
            items = [f'"{key_of(x)}": {_value(x, getattr(numbers, x["name"]))}' for x in fields]
            yield f'    "{name}": {{'
            yield from _wrapped(f"{', '.join(items)},", 8)
            yield "    },"
        yield "}  # fmt: skip"


def _type(field: _core.FieldInfo) -> str:
    choices = ", ".join(map(_quoted, field.get("choices", [])))
    return f"Literal[{choices}]" if choices else field["type"]


def _annotation(field: _core.FieldInfo) -> str:
    if "choices" in field or field["type"] == "bool":
        return _type(field)
    kind = field["type"].removeprefix("list[").removesuffix("]")
    bounds = {"ge": field["lo"], "le": field["hi"]}
    limits = [f"{k}={_bound(field, x)}" for k, x in bounds.items() if x not in (None, math.inf)]
    number = f"Annotated[{kind}, Field({', '.join(limits)})]" if limits else kind
    if "max_length" not in field:
        return number
    length = f"Field(min_length=1, max_length={field['max_length']})"
    return f"Annotated[\n    list[{number}], {length}\n]"


def _value(field: _core.FieldInfo, value: Any) -> str:
    """A default as Python text, degrees for radians that become the same radians."""
    if isinstance(value, list):
        numbers = ", ".join(_value(field, x) for x in value)
        return "\n".join(["[", *_wrapped(f"{numbers},", 4), "]  # fmt: skip"])
    if value == math.inf:
        return "None"
    if isinstance(value, str):
        return _quoted(value)
    if field["unit"] == "rad":
        degrees = (float(f"{math.degrees(value):.{digits}g}") for digits in range(1, 18))
        value = next((x for x in degrees if math.radians(x) == value), math.degrees(value))
    return repr(value)


def _bound(field: _core.FieldInfo, bound: float) -> str:
    if field["type"] == "int":
        return str(int(bound))
    return repr(float(f"{math.degrees(bound) if field['unit'] == 'rad' else bound:.9g}"))


def _wrapped(items: str, indent: int) -> list[str]:
    margin = " " * indent
    return textwrap.wrap(items, width=95, initial_indent=margin, subsequent_indent=margin)


def _quoted(text: str) -> str:
    return f'"{text}"'


if __name__ == "__main__":
    FIELDS_FILE.write_text(fields_module(), encoding="utf-8")
    STUB_FILE.write_text(stub(), encoding="utf-8")
