"""YAML without the surprises of YAML 1.1, which are refused.

PyYAML reads `010` as 8, `12:30` as 750 and `yes` as true, and keeps the last of two equal keys.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, get_args

import yaml
from pydantic import ValidationError


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


def _plain_only(kind: str, pattern: str, instead: str) -> None:
    """Refuse a kind of scalar unless it is written as `pattern`."""
    construct = yaml.SafeLoader.yaml_constructors[f"tag:yaml.org,2002:{kind}"]

    def constructor(loader: StrictLoader, node: yaml.ScalarNode) -> object:
        value = construct(loader, node)
        if re.fullmatch(pattern, node.value):
            return value
        read = str(value).lower() if isinstance(value, bool) else str(value)
        raise yaml.constructor.ConstructorError(
            None, None, f"{node.value} would be read as {read}: {instead}", node.start_mark
        )

    StrictLoader.add_constructor(f"tag:yaml.org,2002:{kind}", constructor)


_plain_only("int", r"[-+]?(0|[1-9][0-9]*|0x[0-9a-fA-F]+)", "write it in decimal digits alone")
_plain_only("float", r"[^:_]*", "write it as a decimal number")
_plain_only(
    "bool", "true|True|TRUE|false|False|FALSE", "write true or false, or put a name in quotes"
)


def read_yaml(text: str) -> Any:
    """What YAML text holds; YAMLError also for a key given twice or what YAML 1.1 misreads."""
    return yaml.load(text, Loader=StrictLoader)


def flag_for_number(types: Mapping[str, Any], data: Mapping[Any, Any]) -> str | None:
    """The first key with true or false, alone or in a list, for a number (pydantic: 1 or 0)."""
    wrong = (k for k, v in data.items() if _holds_flag(v) and not _takes_flag(types[k]))
    return next(map(str, wrong), None)


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
