"""Grounds to drive on: a terrain with a start and a goal for each trial."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from mlnav.config import parse_config
from mlnav.sim import Screen, default_endpoints, drawn_endpoints, screen
from mlnav.terrain import (
    AS_DECLARED,
    Reading,
    Terrain,
    TerrainError,
    canonical,
    cover_text,
    load,
    parse_class,
    recipe_folder,
    with_rocks,
)

Point = tuple[float, float]

_GEOTIFF = (".tif", ".tiff")
_FILES = (*_GEOTIFF, ".yaml", ".yml")


@dataclass(frozen=True)
class Entry:
    """A ground that pairs are driven on.

    Attributes:
        label: its name in reports.
        spec: what `terrain.load` takes.
        cfa: rocks laid on it, of a GeoTIFF.
        reading: how a GeoTIFF is read.
    """

    label: str
    spec: str
    cfa: float = 0.0
    reading: Reading = AS_DECLARED

    @property
    def drawn(self) -> bool:
        """Whether start-goal pairs are drawn on one map, rather than each with its own terrain."""
        return is_geotiff(self.spec)


def is_geotiff(spec: str) -> bool:
    """Whether a terrain's name is that of a GeoTIFF file."""
    return Path(spec).suffix.lower() in _GEOTIFF


def file_digest(spec: str) -> str | None:
    """Of the file that a terrain is made from; None for a class, which is made by code alone.

    Raises:
        TerrainError: there is no such file.
    """
    if parse_class(spec) is not None:
        return None
    try:
        if Path(spec).suffix.lower() in _FILES:
            state = Path(spec).stat()
            return _digest_of(spec, state.st_mtime_ns, state.st_size)
        return hashlib.sha256((recipe_folder() / f"{spec}.yaml").read_bytes()).hexdigest()[:16]
    except OSError as fault:
        raise TerrainError(f"{spec}: cannot be read: {fault.strerror or fault}") from fault


@lru_cache(maxsize=64)
def _digest_of(path: str, modified_ns: int, size: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def labelled(specs: Sequence[tuple[str, float, Reading]]) -> list[Entry]:
    """Entries of (terrain, rocks' cover, reading), files by their stems where these differ."""
    specs = [(canonical(spec), cfa, reading) for spec, cfa, reading in specs]
    files = {spec for spec, *_ in specs if Path(spec).suffix.lower() in _FILES}
    stems = [Path(spec).stem for spec in files]

    def label(spec: str) -> str:
        return Path(spec).stem if spec in files and stems.count(Path(spec).stem) == 1 else spec

    def mark(cfa: float) -> str:
        return f" +{cover_text(cfa)}" if cfa else ""

    return [Entry(label(spec) + mark(cfa), spec, cfa, reading) for spec, cfa, reading in specs]


@dataclass(frozen=True, eq=False)
class Ground:
    """A terrain with the start and goal that all contenders share."""

    terrain: Terrain
    start: Point
    goal: Point


@lru_cache(maxsize=2)
def ground_of(
    entry: Entry, seed: int, pair_key: tuple[int, ...], size_m: float | None, common: str
) -> Ground:
    """The ground of a trial. It depends on nothing that contenders differ in.

    Args:
        entry: what kind.
        seed: of the terrain, or of the rocks on a GeoTIFF.
        pair_key: entropy and spawn key that start and goal are drawn with on a GeoTIFF; classes and
            recipes have their own.
        size_m: side of the square in the middle of a GeoTIFF that they are drawn in; None: all.
        common: configuration that contenders share, as YAML.

    Raises:
        TerrainError: the terrain cannot be made.
        SimError: no start and goal were found.
    """
    if not entry.drawn:
        terrain = load(entry.spec, seed)
        start, goal = terrain.start_m, terrain.goal_m
        if start is None or goal is None:
            start, goal = default_endpoints(terrain, parse_config(common))
        return Ground(terrain, start, goal)

    config = parse_config(common)
    terrain, screened = _screened(entry.spec, entry.reading, size_m, common)

    def laid(start: Point, goal: Point) -> Terrain:
        return with_rocks(terrain, entry.cfa, seed, clear=(start, goal))

    rng = np.random.default_rng(np.random.SeedSequence(pair_key[0], spawn_key=pair_key[1:]))
    return Ground(
        *drawn_endpoints(
            terrain, config, rng, screened, lay=laid if entry.cfa else None, size_m=size_m
        )
    )


@lru_cache(maxsize=2)
def _screened(
    spec: str, reading: Reading, size_m: float | None, common: str
) -> tuple[Terrain, Screen]:
    terrain = load(spec, reading=reading)
    return terrain, screen(terrain, parse_config(common), size_m)
