"""Terrains: the height grid, GeoTIFF in and out, and recipes for synthetic Mars ground."""

from mlnav.terrain.geotiff import AS_DECLARED, Reading, read_geotiff, write_geotiff
from mlnav.terrain.library import (
    Source,
    canonical,
    check_terrain,
    load,
    recipe_folder,
    recipe_names,
    shipped_recipe,
    source_digest,
)
from mlnav.terrain.overlay import with_rocks
from mlnav.terrain.recipes import (
    Recipe,
    benchmark_class,
    benchmark_recipe,
    class_name,
    cover_text,
    generate,
    parse_class,
    parse_recipe,
    read_recipe,
)
from mlnav.terrain.terrain import Terrain, TerrainError

__all__ = [
    "AS_DECLARED", "Reading", "Recipe", "Source", "Terrain", "TerrainError", "benchmark_class",
    "benchmark_recipe", "canonical", "check_terrain", "class_name", "cover_text", "generate",
    "load", "parse_class", "parse_recipe", "read_geotiff", "read_recipe", "recipe_folder",
    "recipe_names", "shipped_recipe", "source_digest", "with_rocks", "write_geotiff",
]  # fmt: skip
