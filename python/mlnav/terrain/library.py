"""One way to name a terrain: a file, a shipped recipe, a class, or a source from outside."""

from __future__ import annotations

import hashlib
import os
from functools import cached_property, lru_cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Protocol

from mlnav.io import shipped_folder
from mlnav.parts import Part, find, names_of, suggestion
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

_GEOTIFF = (".tif", ".tiff")
_RECIPE = (".yaml", ".yml")
_PATTERNS = ("FILE.tif", "FILE.yaml", "SLOPE/COVER", "RECIPE")
"""Names of this package's sources: what the names of their terrains look like."""


class Source(Protocol):
    """What terrains of one name are made from; a source from outside needs `terrain` only."""

    def terrain(self, seed: int | None) -> Terrain:
        """A terrain; the same seed gives the same heights. None: the source's own seed."""

    def resolution_m(self) -> float | None:
        """Edge of the cells, without making a terrain; None: not known before.

        Raises:
            TerrainError: no terrain can be made.
        """

    def digest(self) -> str | None:
        """Of the file that terrains are made from; None: code alone.

        Raises:
            TerrainError: there is no such file.
        """


class GeoTiff:
    """A file of elevations; seeds change nothing."""

    def __init__(self, path: str, reading: Reading) -> None:
        self._path, self._reading = path, reading

    def terrain(self, seed: int | None) -> Terrain:
        """The file's heights."""
        how = self._reading
        return read_geotiff(
            self._path, band=how.band, nodata=how.nodata, vertical_unit=how.vertical_unit
        )

    def resolution_m(self) -> float | None:
        """Of the file, which is read in whole: a fault in it shows."""
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
        slope_and_cfa = parse_class(self._name)
        assert slope_and_cfa is not None
        return benchmark_recipe(*slope_and_cfa)

    def terrain(self, seed: int | None) -> Terrain:
        """Generated."""
        return super().terrain(seed or 0)

    def digest(self) -> str | None:
        """Nothing but code makes it."""
        return None


class ValidatedSource:
    """A source from outside, held to its contract: the first terrain is made twice."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self._source = part.make()
        made = callable(getattr(self._source, "terrain", None))
        part.expect(made, "has no terrain()")

    def terrain(self, seed: int | None) -> Terrain:
        """As the source makes it."""
        made = self._made(seed)
        if self._part not in _VALIDATED:
            again = self._made(seed).sha256
            self._part.expect(made.sha256 == again, f"terrain({seed}) gives two terrains")
            _VALIDATED.add(self._part)
        return made

    def _made(self, seed: int | None) -> Terrain:
        with self._part.guard():
            made: Any = self._source.terrain(seed)
        given = type(made).__name__
        self._part.expect(isinstance(made, Terrain), f"terrain() gives a {given}, no Terrain")
        terrain: Terrain = made
        return terrain

    def resolution_m(self) -> float | None:
        """As the source says, if it does."""
        with self._part.guard():
            edge_m: float | None = getattr(self._source, "resolution_m", lambda: None)()
        return edge_m

    def digest(self) -> str | None:
        """Of its module's file."""
        return self._part.origin["sha256"][:16]


_VALIDATED: set[Part] = set()
"""Sources from outside whose terrains come out the same, in this process."""


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
        known = [*names, *(n for n in names_of("terrain") if n not in _PATTERNS)]
        raise TerrainError(f"no shipped recipe {name!r}{suggestion(name, known)}")
    text = (recipe_folder() / f"{name}.yaml").read_text(encoding="utf-8")
    return parse_recipe(text, name=name)


def canonical(spec: str) -> str:
    """The one name of a terrain, as seeds, records and reports have it.

    Classes are named as by `class_name`, files without `./` and doubled slashes. Whether there is
    such a terrain is not asked.
    """
    if _pattern(spec) in ("FILE.tif", "FILE.yaml") or ".py:" in spec:
        return str(Path(spec))
    slope_and_cfa = parse_class(spec)
    return spec if slope_and_cfa is None else class_name(*slope_and_cfa)


def source_of(spec: str | os.PathLike[str], reading: Reading = AS_DECLARED) -> Source:
    """What the terrains that ``spec`` names are made from, as for `load`.

    Raises:
        TerrainError: nothing; the message says what was tried.
        PartError: it is a source from outside that cannot be found.
    """
    text = os.fspath(spec)
    pattern = _pattern(text)
    if reading != AS_DECLARED and pattern != "FILE.tif":
        raise TerrainError(f"{text}: band, nodata and vertical unit are of GeoTIFFs")
    part = find("terrain", pattern or text)
    if part.outside:
        return ValidatedSource(part)
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
    """Make sure that there is such a terrain, without generating it.

    Returns:
        Edge of its cells [m]; None where a source from outside does not say.

    Raises:
        TerrainError, PartError: there is none; as `source_of`.
    """
    return source_of(spec, reading).resolution_m()


def source_digest(spec: str) -> str | None:
    """Digest of the file that a terrain is made from; None for a class, which is code alone.

    Raises:
        TerrainError: there is no such file.
    """
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
        TerrainError: nothing of these; the message says what was tried.
        PartError: a source from outside cannot be found, or breaks its contract.
    """
    return source_of(spec, reading).terrain(seed)


def _pattern(spec: str) -> str | None:
    """The pattern that a name is of; None: it names a source from outside."""
    suffix = Path(spec).suffix.lower()
    if suffix in _GEOTIFF:
        return "FILE.tif"
    if suffix in _RECIPE:
        return "FILE.yaml"
    if parse_class(spec) is not None:
        return "SLOPE/COVER"
    outside = ":" in spec or spec in set(names_of("terrain")) - set(_PATTERNS)
    return None if outside else "RECIPE"


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
