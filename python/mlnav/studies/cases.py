"""Grounds to measure on: classes of slope and rocks, steps, ditches, ripples and real maps.

Each also with its heights scaled up: steeper, rougher ground than anyone would send a rover to.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from mlnav.terrain import (
    AS_DECLARED,
    Reading,
    Recipe,
    Terrain,
    TerrainError,
    benchmark_recipe,
    canonical,
    check_terrain,
    class_name,
    generate,
    load,
    parse_class,
    parse_recipe,
    read_geotiff,
    read_recipe,
    shipped_recipe,
)
from mlnav.terrain import recipe_names as shipped_names

SLOPES_DEG = (0, 5, 10, 15, 20, 25)
CFAS = (0.0, 0.05, 0.10, 0.15, 0.20)
MAP_SIZE_M = 24.0
RESOLUTIONS_M = (0.05, 0.20)
"""Recipes are made at a random resolution between these."""

SCALE_MAX = 1.6
"""Heights of the scaled grounds are multiplied with a random number between 1 and this."""

REAL_RESOLUTION_MAX_M = 0.2
REAL_CORE_M = 16.0
"""Real maps with a mesh spacing layer are rover-scale in the square |x|, |y| up to this."""

_STEPS = """
name: steps
size_m: [24, 24]
base: {slope_deg: 5}
scarps:
  - {number: 4, height_m: 0.15, width_m: 0.1, length_m: 20, back_m: 4}
  - {number: 3, height_m: 0.30, width_m: 0.1, length_m: 16, back_m: 5}
"""
_DITCHES = """
name: ditches
size_m: [24, 24]
base: {slope_deg: 5}
ditches:
  - {number: 4, depth_m: 0.25, width_m: 0.6, length_m: 16}
  - {number: 3, depth_m: 0.50, width_m: 1.5, length_m: 16}
"""
_RIPPLES = """
name: ripples
size_m: [24, 24]
base: {slope_deg: 5}
relief: {rms_1m_m: 0.03}
rocks: {cfa: 0.02}
ripples:
  - {height_m: 0.35, wavelength_m: 2.5, cover: 0.7, patch_m: 12}
  - {height_m: 0.12, wavelength_m: 1.0, cover: 0.5, patch_m: 8}
"""


@dataclass(frozen=True)
class Case:
    """A kind of ground; `make(seed)` gives one terrain of it, the same for the same seed.

    Attributes:
        label: of tables.
        kinds: how it is made and from what, `class:10/.07` or `file:/a/map.tif`: all it takes, so
            that it travels to other processes and into records. One of several is drawn.
        scaled: whether heights are scaled up, by a random factor up to `SCALE_MAX`.
        reading: of files.
    """

    label: str
    kinds: tuple[str, ...]
    scaled: bool = False
    reading: Reading = AS_DECLARED

    def make(self, seed: np.random.SeedSequence, resolution_m: float | None = None) -> Terrain:
        """A terrain with a random origin; recipes at a random resolution too, or the given one."""
        rng = np.random.default_rng(seed)
        kind = self.kinds[int(rng.integers(len(self.kinds)))] if self.kinds[1:] else self.kinds[0]
        how, _, what = kind.partition(":")
        if how == "file":
            terrain = _real(what, self.reading)
        else:
            low, high = RESOLUTIONS_M
            # Multiples of 1/1024 m, so that records can name them exactly.
            drawn_m = round(rng.uniform(low, high) * 1024) / 1024
            recipe = _RECIPES[how](what).model_copy(
                update={
                    "resolution_m": resolution_m or drawn_m,
                    "size_m": (MAP_SIZE_M, MAP_SIZE_M),
                    "start": None,
                    "goal": None,
                }
            )
            terrain = generate(recipe, int(rng.integers(2**31)))
        origin = tuple(float(v) for v in rng.uniform(-2000.0, 2000.0, 2))
        z = terrain.z * np.float32(rng.uniform(1.0, SCALE_MAX)) if self.scaled else terrain.z
        return replace(
            terrain, z=z, origin_m=(origin[0], origin[1]), layers={}, start_m=None, goal_m=None
        )


def _of_class(name: str) -> Recipe:
    slope_and_cfa = parse_class(name)
    assert slope_and_cfa is not None
    return benchmark_recipe(*slope_and_cfa)


_RECIPES: dict[str, Callable[[str], Recipe]] = {
    "class": _of_class,
    "text": parse_recipe,
    "yaml": read_recipe,
    "recipe": shipped_recipe,
}


@lru_cache(maxsize=8)
def _real(path: str, reading: Reading) -> Terrain:
    terrain = load(path, reading=reading)
    if "source_mesh_spacing_m" in terrain.layers:
        core = REAL_CORE_M
        return terrain.crop(-core, core, -core, core)
    return terrain


def real_terrain_folder() -> Path | None:
    """Folder of real maps: MLNAV_REAL_TERRAINS, or `shared/terrains_real` beside the checkout."""
    named = os.environ.get("MLNAV_REAL_TERRAINS")
    if named:
        return Path(named) if Path(named).is_dir() else None
    beside = (Path.cwd(), Path(__file__).parents[3])
    for place in (b.parent / "shared" / "terrains_real" for b in beside):
        if place.is_dir():
            return place
    return None


def real_terrain_files() -> list[Path]:
    """Real maps that are there, sorted by name."""
    folder = real_terrain_folder()
    return sorted(folder.glob("*.tif")) if folder else []


def _is_drivable(path: Path) -> bool:
    try:
        terrain = read_geotiff(path)
    except TerrainError:
        return False
    return (
        terrain.resolution_m <= REAL_RESOLUTION_MAX_M and float(np.isfinite(terrain.z).mean()) > 0.5
    )


def cases(spec: str, reading: Reading = AS_DECLARED) -> list[Case]:
    """The grounds that `spec` names: one as for `terrain.load`, or `all`.

    Raises:
        TerrainError: `spec` names nothing, or something else than a GeoTIFF is to be read so.
    """
    if reading != AS_DECLARED and Path(spec).suffix.lower() not in (".tif", ".tiff"):
        raise TerrainError(f"{spec}: band, nodata and vertical unit are of GeoTIFFs")
    if spec == "all":
        real = [Case(f.stem, (f"file:{f}",)) for f in real_terrain_files() if _is_drivable(f)]
        return [*_synthetic(), *real, *_scaled(real)]
    spec = canonical(spec)
    suffix = Path(spec).suffix.lower()
    if suffix in (".tif", ".tiff"):
        load(spec, reading=reading)  # faults now, not in a worker
        return [Case(Path(spec).stem, (f"file:{Path(spec).resolve()}",), reading=reading)]
    if suffix in (".yaml", ".yml"):
        read_recipe(spec)
        return [Case(Path(spec).stem, (f"yaml:{Path(spec).resolve()}",))]
    if parse_class(spec) is not None:
        _of_class(spec)
        return [Case(spec, (f"class:{spec}",))]
    check_terrain(spec)  # says what was tried
    if spec not in shipped_names():
        return [Case(spec, (f"file:{spec}",))]  # a source from outside
    return [Case(spec, (f"recipe:{spec}",))]


def _synthetic() -> list[Case]:
    classes = [class_name(s, c) for s in SLOPES_DEG for c in CFAS]
    return [
        *(Case(name, (f"class:{name}",)) for name in classes),
        Case("steps", (f"text:{_STEPS}",)),
        Case("ditches", (f"text:{_DITCHES}",)),
        Case("ripples", (f"text:{_RIPPLES}",)),
    ]


def _scaled(real: Sequence[Case]) -> list[Case]:
    """Everything once more with its heights scaled up, a case a slope and one a kind."""
    cases = [
        Case(f"{s}/* scaled", tuple(f"class:{class_name(s, c)}" for c in CFAS), scaled=True)
        for s in SLOPES_DEG
    ]
    forms = tuple(f"text:{text}" for text in (_STEPS, _DITCHES, _RIPPLES))
    cases.append(Case("landforms scaled", forms, scaled=True))
    if real:
        cases.append(Case("real scaled", tuple(k for c in real for k in c.kinds), scaled=True))
    return cases


__all__ = ["Case", "cases", "real_terrain_files", "real_terrain_folder"]
