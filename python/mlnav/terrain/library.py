"""Terrains by name: a file, a shipped recipe, a class, or a source from outside."""

from __future__ import annotations

import hashlib
import os
from functools import cached_property, lru_cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Protocol

from mlnav.io import shipped_folder
from mlnav.parts import Part, Validated, find, names_of, suggestion
from mlnav.terrain.geotiff import AS_DECLARED, Reading, read_geotiff
from mlnav.terrain.recipes import (
    Recipe,
    benchmark_recipe,
    class_name,
    generate,
    parse_class,
    parse_recipe,
    read_recipe,
)
from mlnav.terrain.terrain import Terrain, TerrainError

_PATTERNS = ("FILE.tif", "FILE.yaml", "SLOPE/COVER", "RECIPE")
"""Names of this package's sources: the patterns of their terrains' names."""
_SUFFIXES = {".tif": "FILE.tif", ".tiff": "FILE.tif", ".yaml": "FILE.yaml", ".yml": "FILE.yaml"}


class Source(Protocol):
    """Makes the terrains of one name; a source from outside needs `terrain` only."""

    def terrain(self, seed: int | None) -> Terrain:
        """A terrain; the same seed gives the same heights. None: the source's own seed."""

    def resolution_m(self) -> float | None:
        """Edge of the cells, without making a terrain; None: not known before."""

    def digest(self) -> str | None:
        """Digest of the file that terrains are made from; None: they are made by code alone."""


class GeoTiff:
    """A file of elevations; seeds change nothing."""

    def __init__(self, path: str, reading: Reading) -> None:
        self._path, self._reading = path, reading

    def terrain(self, seed: int | None) -> Terrain:
        """The file's heights."""
        return read_geotiff(self._path, **vars(self._reading))

    def resolution_m(self) -> float | None:
        """Of the file, which is read whole so that its faults show."""
        return self.terrain(None).resolution_m

    def digest(self) -> str | None:
        """Of the file."""
        return _file_digest(self._path)


class RecipeFile:
    """A recipe in a YAML file."""

    def __init__(self, path: str, reading: Reading) -> None:
        self._name = path

    @cached_property
    def recipe(self) -> Recipe:
        """What to make."""
        return read_recipe(self._name)

    def terrain(self, seed: int | None) -> Terrain:
        """Generated."""
        return generate(self.recipe, seed)

    def resolution_m(self) -> float | None:
        """Of the recipe."""
        return self.recipe.resolution_m

    def digest(self) -> str | None:
        """Of the file."""
        return _file_digest(self._name)


class ShippedRecipe(RecipeFile):
    """A shipped recipe."""

    @cached_property
    def recipe(self) -> Recipe:
        """What to make."""
        return shipped_recipe(self._name)

    def digest(self) -> str | None:
        """Of its file."""
        text = (recipe_folder() / f"{self._name}.yaml").read_bytes()
        return hashlib.sha256(text).hexdigest()[:16]


class TerrainClass(RecipeFile):
    """A class of slope and rock cover. Without a seed it is that of seed 0."""

    @cached_property
    def recipe(self) -> Recipe:
        """What to make."""
        return benchmark_recipe(*(parse_class(self._name) or ()))

    def terrain(self, seed: int | None) -> Terrain:
        """Generated."""
        return super().terrain(seed or 0)

    def digest(self) -> str | None:
        """Nothing but code makes it."""
        return None


class ValidatedSource(Validated):
    """A source from outside; the first terrain is made twice, and must come out the same."""

    methods = ("terrain",)

    def terrain(self, seed: int | None) -> Terrain:
        """As the source makes it."""
        made: Terrain = self._call("terrain", seed, gives=Terrain)
        if self._part not in _VALIDATED:
            again = self._call("terrain", seed, gives=Terrain)
            self._part.expect(made.sha256 == again.sha256, f"terrain({seed}) gives two terrains")
            _VALIDATED.add(self._part)
        return made

    def resolution_m(self) -> float | None:
        """As the source says, if it does."""
        edge_m: float | None = self._optional("resolution_m")
        return edge_m

    def digest(self) -> str | None:
        """Of its module's file."""
        return self._part.origin["sha256"][:16]


_VALIDATED: set[Part] = set()
"""Sources from outside that this process has found to repeat."""


def recipe_folder() -> Traversable:
    """Where the shipped recipes are: in the installed package, or in the checkout it runs from."""
    return shipped_folder("terrains")


def recipe_names() -> list[str]:
    """Names of the shipped recipes, sorted."""
    folder = recipe_folder()
    files = [f.name for f in folder.iterdir()] if folder.is_dir() else []
    return sorted(name.removesuffix(".yaml") for name in files if name.endswith(".yaml"))


def shipped_recipe(name: str) -> Recipe:
    """The shipped recipe of this name. Raises TerrainError: there is none."""
    names = recipe_names()
    if name not in names:
        known = [*names, *_outside_names()]
        raise TerrainError(f"no shipped recipe {name!r}{suggestion(name, known)}")
    text = (recipe_folder() / f"{name}.yaml").read_text(encoding="utf-8")
    return parse_recipe(text, name=name)


def canonical(spec: str) -> str:
    """The one name of a terrain, for seeds, records and reports. It need not exist."""
    if _pattern(spec) in ("FILE.tif", "FILE.yaml") or ".py:" in spec:
        return str(Path(spec))
    slope_and_cfa = parse_class(spec)
    return spec if slope_and_cfa is None else class_name(*slope_and_cfa)


def source_of(spec: str | os.PathLike[str], reading: Reading = AS_DECLARED) -> Source:
    """The source of the terrains that ``spec`` names; arguments and errors as for `load`."""
    text = os.fspath(spec)
    pattern = _pattern(text)
    if reading != AS_DECLARED and pattern != "FILE.tif":
        raise TerrainError(f"{text}: band, nodata and vertical unit are of GeoTIFFs")
    part = find("terrain", pattern or text)
    if part.outside:
        return ValidatedSource(part.make(), part)
    if pattern == "RECIPE" and text not in recipe_names():
        try:
            shipped_recipe(text)
        except TerrainError as fault:
            raise TerrainError(
                f"cannot load terrain {text!r}: it is no file ending in .tif, .tiff, .yaml or .yml,"
                f" no class like '10/.07', no source like file.py:Class, and {fault}"
            ) from fault
    source: Source = part.make(text, reading)
    return source


def check_terrain(spec: str | os.PathLike[str], reading: Reading = AS_DECLARED) -> float | None:
    """Make sure that a terrain exists, without generating it; errors as of `load`.

    Returns:
        Edge of its cells [m]; None where a source from outside does not say.
    """
    return source_of(spec, reading).resolution_m()


def source_digest(spec: str) -> str | None:
    """`Source.digest` of a terrain's source."""
    return source_of(spec).digest()


def load(
    spec: str | os.PathLike[str], seed: int | None = None, reading: Reading = AS_DECLARED
) -> Terrain:
    """The terrain that ``spec`` names.

    Args:
        spec: a path to a GeoTIFF (.tif, .tiff) or a recipe (.yaml, .yml), the name of a shipped
            recipe ("demo"), a class of slope in degrees and rock cover ("10/.07"), or a source from
            outside (`file.py:Class`, `module:Class`, the name of an entry point).
        seed: the recipe's own, or 0 for a class, by default. GeoTIFFs do not depend on it.
        reading: how to read a GeoTIFF that says too little; nothing else takes it.

    Raises:
        TerrainError: there is no such terrain.
        PartError: a source from outside cannot be found, or breaks its contract.
    """
    return source_of(spec, reading).terrain(seed)


def _pattern(spec: str) -> str | None:
    """The pattern that a name follows; None: it names a source from outside."""
    suffix = Path(spec).suffix.lower()
    if suffix in _SUFFIXES or parse_class(spec) is not None:
        return _SUFFIXES.get(suffix, "SLOPE/COVER")
    return None if ":" in spec or spec in _outside_names() else "RECIPE"


def _outside_names() -> list[str]:
    return [name for name in names_of("terrain") if name not in _PATTERNS]


def _file_digest(path: str) -> str:
    try:
        state = Path(path).stat()
        return _digest_of(path, state.st_mtime_ns, state.st_size)
    except OSError as fault:
        raise TerrainError(f"{path}: cannot be read: {fault.strerror or fault}") from fault


@lru_cache(maxsize=64)
def _digest_of(path: str, modified_ns: int, size: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]
