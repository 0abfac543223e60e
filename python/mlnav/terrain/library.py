"""One way to name a terrain: a file, a shipped recipe or a campaign class."""

from __future__ import annotations

import difflib
import os
from importlib.resources.abc import Traversable
from pathlib import Path

from mlnav.io import shipped_folder
from mlnav.terrain.geotiff import AS_DECLARED, Reading, read_geotiff
from mlnav.terrain.recipes import (
    Recipe,
    benchmark_class,
    class_name,
    generate,
    parse_class,
    parse_recipe,
    read_recipe,
)
from mlnav.terrain.terrain import Terrain, TerrainError

_GEOTIFF = (".tif", ".tiff")
_RECIPE = (".yaml", ".yml")


def recipe_folder() -> Traversable:
    """Where the shipped recipes are: in the installed package, or in the checkout it runs from."""
    return shipped_folder("terrains")


def recipe_names() -> list[str]:
    """Names of the shipped recipes, sorted."""
    folder = recipe_folder()
    if not folder.is_dir():
        return []
    return sorted(
        f.name.removesuffix(".yaml") for f in folder.iterdir() if f.name.endswith(".yaml")
    )


def shipped_recipe(name: str) -> Recipe:
    """The shipped recipe of this name.

    Raises:
        TerrainError: there is none; the nearest name is given.
    """
    names = recipe_names()
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
        hint = f", did you mean {near[0]!r}?" if near else "."
        raise TerrainError(f"no shipped recipe {name!r}{hint} Shipped are: {', '.join(names)}")
    text = (recipe_folder() / f"{name}.yaml").read_text(encoding="utf-8")
    return parse_recipe(text, name=name)


def canonical(spec: str) -> str:
    """The one name of a terrain, as seeds, records and reports have it.

    Classes are named as by `class_name`, files without `./` and doubled slashes. Whether there is
    such a terrain is not asked.
    """
    if Path(spec).suffix.lower() in (*_GEOTIFF, *_RECIPE):
        return str(Path(spec))
    slope_and_cfa = parse_class(spec)
    return spec if slope_and_cfa is None else class_name(*slope_and_cfa)


def load(
    spec: str | os.PathLike[str], seed: int | None = None, reading: Reading = AS_DECLARED
) -> Terrain:
    """The terrain that ``spec`` names.

    Args:
        spec: a path to a GeoTIFF (.tif, .tiff) or a recipe (.yaml, .yml), the name of a shipped
            recipe ("demo"), or a campaign class, slope in degrees and CFA ("10/.07").
        seed: for recipes and classes; the recipe's own, or 0 for a class, by default. GeoTIFFs
            do not depend on it.
        reading: how to read a GeoTIFF that says too little; nothing else takes it.

    Raises:
        TerrainError: nothing of these; the message says what was tried.
    """
    text = os.fspath(spec)
    suffix = Path(text).suffix.lower()
    if suffix in _GEOTIFF:
        return read_geotiff(
            text,
            band=reading.band,
            nodata=reading.nodata,
            vertical_unit=reading.vertical_unit,
        )
    if reading != AS_DECLARED:
        raise TerrainError(f"{text}: band, nodata and vertical unit are of GeoTIFFs")
    if suffix in _RECIPE:
        return generate(read_recipe(text), seed)
    slope_and_cfa = parse_class(text)
    if slope_and_cfa is not None:
        return benchmark_class(*slope_and_cfa, seed=seed or 0)
    try:
        return generate(shipped_recipe(text), seed)
    except TerrainError as fault:
        if text in recipe_names():
            raise
        raise TerrainError(
            f"cannot load terrain {text!r}: it is no file ending in .tif, .tiff, .yaml or .yml, no"
            f" class like '10/.07', and {fault}"
        ) from fault
