"""Scenarios: a terrain with a start and a goal, the same for every contender of a trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from mlnav.config import Count, Positive, Section, parse_config
from mlnav.sim import Screen, default_endpoints, drawn_endpoints, screen
from mlnav.terrain import (
    AS_DECLARED,
    Reading,
    Terrain,
    canonical,
    cover_text,
    load,
    parse_class,
    with_rocks,
)

Point = tuple[float, float]

_GEOTIFF = (".tif", ".tiff")
_FILES = (*_GEOTIFF, ".yaml", ".yml")


class TerrainSpec(Section):
    """A terrain to drive on: `10/.07`, a recipe or GeoTIFF; or one of these with settings."""

    terrain: Annotated[str, Field(min_length=1), AfterValidator(canonical)]
    """GeoTIFF, recipe (shipped name or YAML file), or class of slope and rock cover (CFA)."""
    cfa: Annotated[float, Field(ge=0, le=0.3)] = 0.0
    """Rocks added to a GeoTIFF."""
    size_m: Positive | None = None
    """Side of the square in the middle of a GeoTIFF that start and goal are drawn in; null: all."""
    band: Count = 1
    """Of the heights in a GeoTIFF."""
    nodata: tuple[Annotated[float, Field(allow_inf_nan=False)], ...] = ()
    """Further values of a GeoTIFF that mean unknown."""
    vertical_unit: str | None = None
    """Of the heights of a GeoTIFF, overriding the file: m, ft, ..."""

    @classmethod
    def expanded(cls, data: Any) -> Any:
        """A bare name is the terrain's."""
        return {"terrain": data} if isinstance(data, str) else data

    @model_validator(mode="after")
    def _geotiff_settings(self) -> TerrainSpec:
        if not self.is_map and (self.cfa or self.size_m is not None or self.reading != AS_DECLARED):
            raise ValueError(
                f"{self.terrain}: cfa, size_m, band, nodata and vertical_unit are of GeoTIFFs"
            )
        return self

    @property
    def is_map(self) -> bool:
        """Whether it is one map on which starts and goals are drawn, not a new terrain a trial."""
        return is_geotiff(self.terrain)

    @property
    def reading(self) -> Reading:
        """How a GeoTIFF is read."""
        return Reading(self.band, self.nodata, self.vertical_unit)

    @property
    def slope_and_cfa(self) -> tuple[float | None, float | None]:
        """Slope [deg] and rock cover of a class; the cover of rocks added to a map."""
        return parse_class(self.terrain) or (None, self.cfa or None)


def is_geotiff(terrain: str) -> bool:
    """Whether a terrain's name is that of a GeoTIFF file."""
    return Path(terrain).suffix.lower() in _GEOTIFF


def labels_of(specs: Sequence[TerrainSpec]) -> list[str]:
    """Names for reports: files by their stems where these differ, with the cover of added rocks."""
    files = {s.terrain for s in specs if Path(s.terrain).suffix.lower() in _FILES}
    stems = [Path(terrain).stem for terrain in files]

    def label(spec: TerrainSpec) -> str:
        stem = Path(spec.terrain).stem
        name = stem if spec.terrain in files and stems.count(stem) == 1 else spec.terrain
        return name + (f" +{cover_text(spec.cfa)}" if spec.cfa else "")

    return [label(spec) for spec in specs]


@dataclass(frozen=True, eq=False)
class Scenario:
    """A terrain with the start and goal that all contenders share."""

    terrain: Terrain
    start: Point
    goal: Point


@lru_cache(maxsize=2)
def scenario_of(spec: TerrainSpec, seed: int, pair_key: tuple[int, ...], common: str) -> Scenario:
    """The scenario of a trial. It depends on nothing that contenders differ in.

    Args:
        spec: the terrain.
        seed: of the terrain, or of the rocks on a GeoTIFF.
        pair_key: entropy and spawn key that start and goal are drawn with on a GeoTIFF; classes and
            recipes have their own.
        common: configuration that contenders share, as YAML.

    Raises:
        TerrainError: the terrain cannot be made.
        SimError: no start and goal were found.
    """
    if not spec.is_map:
        terrain = load(spec.terrain, seed)
        start, goal = terrain.start_m, terrain.goal_m
        if start is None or goal is None:
            start, goal = default_endpoints(terrain, parse_config(common))
        return Scenario(terrain, start, goal)

    config = parse_config(common)
    terrain, screened = _screened(spec.terrain, spec.reading, spec.size_m, common)

    def with_added_rocks(start: Point, goal: Point) -> Terrain:
        return with_rocks(terrain, spec.cfa, seed, clear=(start, goal))

    rng = np.random.default_rng(np.random.SeedSequence(pair_key[0], spawn_key=pair_key[1:]))
    lay = with_added_rocks if spec.cfa else None
    return Scenario(*drawn_endpoints(terrain, config, rng, screened, lay=lay, size_m=spec.size_m))


@lru_cache(maxsize=2)
def _screened(
    terrain: str, reading: Reading, size_m: float | None, common: str
) -> tuple[Terrain, Screen]:
    loaded = load(terrain, reading=reading)
    return loaded, screen(loaded, parse_config(common), size_m)
