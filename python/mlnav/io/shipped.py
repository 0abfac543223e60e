"""Data that ships with the package: recipes, models."""

from __future__ import annotations

import importlib.resources
from importlib.resources.abc import Traversable
from pathlib import Path


def shipped_folder(name: str) -> Traversable:
    """Where `name` is: in the installed package, or in the checkout it runs from."""
    installed = importlib.resources.files("mlnav") / "data" / name
    return installed if installed.is_dir() else Path(__file__).parents[3] / name
