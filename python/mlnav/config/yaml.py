"""Configurations as YAML text, and changes to the tree it holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from mlnav.config.section import ConfigError
from mlnav.io import read_yaml
from mlnav.parts import SECTIONS


def parse_yaml(text: str, source: str = "") -> dict[str, Any]:
    """The mapping that YAML text holds; empty for no text. A key given twice is refused.

    Raises ConfigError: not YAML, or no mapping.
    """
    try:
        data = read_yaml(text)
    except yaml.YAMLError as fault:
        place = f"{source}: " if source else ""
        raise ConfigError(f"{place}not YAML: {' '.join(str(fault).split())}") from fault
    if not isinstance(data, dict | None):
        raise ConfigError(f"{source or 'configuration'}: must be a mapping of sections")
    return data or {}


def format_validation_error(fault: ValidationError, data: Any, source: str = "") -> str:
    """Path and fault of each bad key of `data`, in one line."""
    lines = "; ".join(_explained(error, data) for error in fault.errors())
    return f"{source}: {lines}" if source else lines


class _Dumper(yaml.SafeDumper):
    def short_list(self, values: list[Any]) -> yaml.Node:
        flat = all(not isinstance(v, dict) for v in values)
        return self.represent_sequence("tag:yaml.org,2002:seq", values, flow_style=flat)


_Dumper.add_representer(list, _Dumper.short_list)


def write_yaml(data: Any) -> str:
    """YAML text of a tree: block style, but lists of numbers on one line."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, width=100)


def set_value(data: dict[str, Any], setting: str) -> None:
    """Set one value in a tree of YAML, `path.to.key=value`. Raises ConfigError: it is not that."""
    path, sign, text = setting.partition("=")
    if not sign or not all(path.strip().split(".")):
        raise ConfigError(f"{setting!r}: must be path.to.key=value")
    try:
        value = read_yaml(text)
    except yaml.YAMLError as fault:
        why = getattr(fault, "problem", None) or "not YAML"
        raise ConfigError(f"{path}: value {text!r}: {why}") from fault
    put_value(data, path.strip(), value)


def put_value(data: dict[str, Any], path: str, value: Any) -> None:
    """Put one value at `path.to.key` in a tree of YAML. Raises ConfigError: no path of keys."""
    node: Any = data
    keys = path.split(".")
    for depth, key in enumerate(keys[:-1]):
        child = node.get(key, {})
        if isinstance(child, str) and keys[depth] == "limits":
            child = {"base": child}  # a named set: change a number of it
        elif isinstance(child, str) and keys[depth] in SECTIONS:
            child = {"name": child}
        elif not isinstance(child, dict):
            raise ConfigError(f"{'.'.join(keys[: depth + 1])}: holds no keys to set")
        node[key] = dict(child)
        node = node[key]
    node[keys[-1]] = value


_BOUNDS = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}


def _explained(error: ErrorDetails, data: Any) -> str:
    path: list[str] = []
    node, last = data, len(error["loc"]) - 1
    for i, part in enumerate(error["loc"]):  # which names models as well
        keys = range(len(node)) if isinstance(node, list) else node
        inside = isinstance(keys, Mapping | range) and part in keys
        if inside or (i == last and error["type"] == "missing"):
            path.append(str(part))
            node = node[part] if inside else None
    message = error["msg"].removeprefix("Value error, ")
    for name, bound in error.get("ctx", {}).items():
        if name in _BOUNDS:
            message = f"is {error['input']}, must be {_BOUNDS[name]} {bound:g}"
    return f"{'.'.join(path)}: {message}" if path else message
