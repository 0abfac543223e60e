"""Terrains to measure on: classes of slope and rocks, steps, ditches, ripples and real maps.

Each also with its heights scaled up: steeper and rougher than a rover would be sent to.
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
"""Real maps with a layer of mesh spacing are detailed in the square |x|, |y| up to this."""

_GEOTIFF = (".tif", ".tiff")

_LANDFORMS = {
    "steps": """
name: steps
size_m: [24, 24]
base: {slope_deg: 5}
scarps:
  - {number: 4, height_m: 0.15, width_m: 0.1, length_m: 20, back_m: 4}
  - {number: 3, height_m: 0.30, width_m: 0.1, length_m: 16, back_m: 5}
""",
    "ditches": """
name: ditches
size_m: [24, 24]
base: {slope_deg: 5}
ditches:
  - {number: 4, depth_m: 0.25, width_m: 0.6, length_m: 16}
  - {number: 3, depth_m: 0.50, width_m: 1.5, length_m: 16}
""",
    "ripples": """
name: ripples
size_m: [24, 24]
base: {slope_deg: 5}
relief: {rms_1m_m: 0.03}
rocks: {cfa: 0.02}
ripples:
  - {height_m: 0.35, wavelength_m: 2.5, cover: 0.7, patch_m: 12}
  - {height_m: 0.12, wavelength_m: 1.0, cover: 0.5, patch_m: 8}
""",
}


@dataclass(frozen=True)
class Case:
    """A kind of terrain; `make(seed)` gives one of it, the same for the same seed.

    Attributes:
        label: in tables.
        kinds: sources, as `class:10/.07` or `file:/a/map.tif`, complete so that processes and
            records can hold them. One of several is drawn.
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
            size = {"size_m": (MAP_SIZE_M, MAP_SIZE_M), "resolution_m": resolution_m or drawn_m}
            recipe = _RECIPES[how](what).model_copy(update=size | {"start": None, "goal": None})
            terrain = generate(recipe, int(rng.integers(2**31)))
        x, y = rng.uniform(-2000.0, 2000.0, 2).tolist()
        z = terrain.z * np.float32(rng.uniform(1.0, SCALE_MAX)) if self.scaled else terrain.z
        return replace(terrain, z=z, origin_m=(x, y), layers={}, start_m=None, goal_m=None)


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
    """Folder of real maps: MLNAV_REAL_TERRAINS, or `shared/terrains_real` next to the checkout."""
    named = os.environ.get("MLNAV_REAL_TERRAINS")
    checkouts = (Path.cwd(), Path(__file__).parents[3])
    places = [Path(named)] if named else [c.parent / "shared/terrains_real" for c in checkouts]
    return next((place for place in places if place.is_dir()), None)


def real_terrain_files() -> list[Path]:
    """Real maps found, sorted by name."""
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
    """The cases that `spec` names: one as for `terrain.load`, or `all`.

    Raises:
        TerrainError: `spec` names nothing, or a `reading` is given for something else than a
            GeoTIFF.
    """
    if reading != AS_DECLARED and Path(spec).suffix.lower() not in _GEOTIFF:
        raise TerrainError(f"{spec}: band, nodata and vertical unit are of GeoTIFFs")
    if spec == "all":
        synthetic = {n: f"class:{n}" for n in (class_name(s, c) for s in SLOPES_DEG for c in CFAS)}
        synthetic |= {name: f"text:{text}" for name, text in _LANDFORMS.items()}
        real = [Case(f.stem, (f"file:{f}",)) for f in real_terrain_files() if _is_drivable(f)]
        return [*(Case(n, (kind,)) for n, kind in synthetic.items()), *real, *_scaled(real)]
    spec = canonical(spec)
    path = Path(spec)
    # Errors are raised here rather than in a worker.
    if path.suffix.lower() in _GEOTIFF:
        load(spec, reading=reading)
        return [Case(path.stem, (f"file:{path.resolve()}",), reading=reading)]
    if path.suffix.lower() in (".yaml", ".yml"):
        read_recipe(spec)
        return [Case(path.stem, (f"yaml:{path.resolve()}",))]
    if parse_class(spec) is not None:
        _of_class(spec)
        return [Case(spec, (f"class:{spec}",))]
    check_terrain(spec)
    # Other names are those of terrain sources from outside the package.
    return [Case(spec, (f"{'recipe' if spec in shipped_names() else 'file'}:{spec}",))]


def _scaled(real: Sequence[Case]) -> list[Case]:
    """All terrains with heights scaled up: a case per slope, one of landforms, one of real maps."""
    cases = [
        Case(f"{s}/* scaled", tuple(f"class:{class_name(s, c)}" for c in CFAS), scaled=True)
        for s in SLOPES_DEG
    ]
    forms = tuple(f"text:{text}" for text in _LANDFORMS.values())
    cases.append(Case("landforms scaled", forms, scaled=True))
    if real:
        cases.append(Case("real scaled", tuple(k for c in real for k in c.kinds), scaled=True))
    return cases


__all__ = ["Case", "cases", "real_terrain_files", "real_terrain_folder"]
