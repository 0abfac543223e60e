"""YAML without the surprises of YAML 1.1, which are refused.

PyYAML reads `010` as 8, `12:30` as 750 and `yes` as true, and keeps the last of two equal keys.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, get_args

import yaml
from pydantic import ValidationError

_INT = re.compile(r"[-+]?(0|[1-9][0-9]*|0x[0-9a-fA-F]+)")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")


class StrictLoader(yaml.SafeLoader):
    """YAML without silent surprises."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A mapping whose keys are all different."""
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, str) and key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} is given twice", key_node.start_mark
                )
            seen.add(key if isinstance(key, str) else None)
        return super().construct_mapping(node, deep)


def _whole(loader: StrictLoader, node: yaml.ScalarNode) -> int:
    value = yaml.SafeLoader.construct_yaml_int(loader, node)
    if not _INT.fullmatch(node.value):
        raise _ambiguous(node, value, "write it in decimal digits alone")
    return value


def _real(loader: StrictLoader, node: yaml.ScalarNode) -> float:
    value = yaml.SafeLoader.construct_yaml_float(loader, node)
    if ":" in node.value or "_" in node.value:
        raise _ambiguous(node, value, "write it as a decimal number")
    return value


def _truth(loader: StrictLoader, node: yaml.ScalarNode) -> bool:
    value = yaml.SafeLoader.construct_yaml_bool(loader, node)
    if not _BOOL.fullmatch(node.value):
        raise _ambiguous(node, value, "write true or false, or put a name in quotes")
    return value


def _ambiguous(node: yaml.ScalarNode, value: object, instead: str) -> yaml.YAMLError:
    read = str(value).lower() if isinstance(value, bool) else str(value)
    return yaml.constructor.ConstructorError(
        None, None, f"{node.value} would be read as {read}: {instead}", node.start_mark
    )


StrictLoader.add_constructor("tag:yaml.org,2002:int", _whole)
StrictLoader.add_constructor("tag:yaml.org,2002:float", _real)
StrictLoader.add_constructor("tag:yaml.org,2002:bool", _truth)


def read_yaml(text: str) -> Any:
    """What YAML text holds.

    Raises:
        yaml.YAMLError: not YAML, a key given twice, or a value that YAML 1.1 misreads.
    """
    return yaml.load(text, Loader=StrictLoader)


def flag_for_number(types: Mapping[str, Any], data: Mapping[Any, Any]) -> str | None:
    """The first key with true or false, alone or in a list, for a number (pydantic: 1 or 0)."""
    for key, value in data.items():
        if _holds_flag(value) and not _takes_flag(types[key]):
            return str(key)
    return None


def validation_faults(fault: ValidationError) -> str:
    """Key path and fault of each of pydantic's errors, in one line."""
    faults = [
        (".".join(map(str, e["loc"])), e["msg"].removeprefix("Value error, "))
        for e in fault.errors()
    ]
    return "; ".join(f"{path}: {message}" if path else message for path, message in faults)


def _holds_flag(value: Any) -> bool:
    return isinstance(value, bool) or (isinstance(value, list) and any(map(_holds_flag, value)))


def _takes_flag(annotation: Any) -> bool:
    return annotation in (bool, Any) or any(map(_takes_flag, get_args(annotation)))
