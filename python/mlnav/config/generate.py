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
    return HEADER + classes


def stub_part() -> str:
    """The classes of the structs, for `_core.pyi`."""
    classes = []
    for struct, fields in _core.FIELDS.items():
        lines = [f"class {struct}:", *(f"    {field['name']}: {_type(field)}" for field in fields)]
        lines += ["    def __init__(self) -> None: ...", "    def validate(self) -> None: ..."]
        for name in PRESETS.get(struct, ()):
            lines += ["    @staticmethod", f"    def {name}() -> {struct}: ..."]
        classes.append("\n".join(lines) + "\n")
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
        value = None if presets else _value(field, field["default"])
        annotation = _annotation(field) + (" | None" if unlimited else "")
        default = f" = {value}" if unlimited or not presets else ""
        yield from f"{key_of(field)}: {annotation}{default}".split("\n")
        text = " ".join(filter(None, [field["words"], "null: no limit." if unlimited else None]))
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
    choices = ", ".join(f'"{choice}"' for choice in field.get("choices", []))
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
        return f'"{value}"'
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


if __name__ == "__main__":
    FIELDS_FILE.write_text(fields_module(), encoding="utf-8")
    STUB_FILE.write_text(stub(), encoding="utf-8")
