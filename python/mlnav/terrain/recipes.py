"""Terrain recipes (``terrains/*.yaml``), as validated data, and the terrains generated from them.

A map covers [0, size_x] x [0, size_y] metres. Each kind of feature draws from a stream of its own,
so adding rocks to a recipe leaves its relief as it was.
"""

from __future__ import annotations

import itertools
import math
import re
from enum import IntEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
import yaml
from numpy.typing import NDArray
from pydantic import Field, ValidationError, model_validator

from mlnav.config import Section
from mlnav.io import read_yaml, validation_faults
from mlnav.terrain import landforms, rocks
from mlnav.terrain.landforms import Crater, FloatArray, Grid
from mlnav.terrain.terrain import Terrain, TerrainError

MAX_CELLS = 4_000_000
"""Largest map a recipe may ask for: 200 x 200 m at 0.1 m."""

Angle = Annotated[float, Field(ge=-360.0, le=360.0)] | Literal["random"]
Length = Annotated[float, Field(gt=0.0, le=1000.0)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Count = Annotated[int, Field(ge=0, le=200)]


_Stream = IntEnum("_Stream", "BASE RELIEF ROCKS CRATERS RIPPLES SCARPS DITCHES UNKNOWN", start=0)
"""First number of the spawn key of each feature. Renumbering changes every terrain."""


def _ordered(label: str, *values: float) -> None:
    if not all(a < b for a, b in itertools.pairwise(values)):
        raise ValueError(f"{label} must increase, got {', '.join(f'{v:g}' for v in values)}")


class Base(Section):
    """The plane everything lies on."""

    slope_deg: float = Field(default=0.0, ge=0.0, le=45.0)
    aspect_deg: Angle = "random"
    """Direction of steepest ascent, counter-clockwise from +x."""


class Relief(Section):
    """Self-affine undulation. Jezero: Hurst 0.7, about 0.09 m RMS height difference at 1 m."""

    rms_1m_m: float = Field(default=0.05, ge=0.0, le=1.0)
    hurst: float = Field(default=0.7, ge=0.05, le=1.0)
    wavelength_min_m: Length = 0.8
    """Finer relief than this is left to the rocks: ground between them is drifted smooth."""
    wavelength_max_m: Length = 60.0

    @model_validator(mode="after")
    def _check(self) -> Self:
        _ordered("wavelength_min_m, wavelength_max_m", self.wavelength_min_m, self.wavelength_max_m)
        return self


class Rocks(Section):
    """Golombek rocks; those smaller than d_min_m are left out, so the rest cover less than cfa."""

    cfa: float = Field(ge=0.0, le=0.3)
    """Fraction k of the ground under rocks of all sizes."""
    d_min_m: float = Field(default=0.15, ge=0.05, le=2.0)
    d_max_m: float = Field(default=2.5, le=10.0)
    height_ratio_min: float = Field(default=0.24, gt=0.0, le=1.5)
    height_ratio_mean: float = Field(default=0.5, gt=0.0, le=1.5)
    height_ratio_max: float = Field(default=0.83, gt=0.0, le=1.5)
    elongation_max: float = Field(default=1.7, ge=1.0, le=4.0)
    burial_max: float = Field(default=0.6, ge=0.0, lt=1.0)

    @model_validator(mode="after")
    def _check(self) -> Self:
        _ordered("d_min_m, d_max_m", self.d_min_m, self.d_max_m)
        _ordered("height_ratio_min, _mean, _max", *self.height_ratio)
        return self

    @property
    def height_ratio(self) -> tuple[float, float, float]:
        """(least, mean, most) height over diameter."""
        return self.height_ratio_min, self.height_ratio_mean, self.height_ratio_max

    def scattered(self, rng: np.random.Generator, size_m: tuple[float, float]) -> rocks.RockField:
        """Such rocks on [0, size_x] x [0, size_y] m."""
        return rocks.scatter(
            rng,
            k=self.cfa,
            size_m=size_m,
            height_ratio=self.height_ratio,
            **self.model_dump(include={"d_min_m", "d_max_m", "elongation_max", "burial_max"}),
        )


class PlacedCrater(Section):
    """One crater at a chosen place."""

    x_m: float
    y_m: float
    diameter_m: Length
    depth_ratio: float = Field(default=0.08, gt=0.0, le=0.25)


class Craters(Section):
    """Small craters by N(>D) ~ D^-2.8, and craters at chosen places."""

    per_km2: float = Field(default=250.0, ge=0.0, le=1e5)
    """Number of craters larger than d_min_m on a square kilometre; Mars: about 250 above 4 m."""
    d_min_m: Length = 4.0
    d_max_m: Length = 120.0
    depth_ratio_min: float = Field(default=0.05, gt=0.0, le=0.25)
    depth_ratio_max: float = Field(default=0.10, gt=0.0, le=0.25)
    placed: list[PlacedCrater] = Field(default_factory=list, max_length=50)

    @model_validator(mode="after")
    def _check(self) -> Self:
        _ordered("d_min_m, d_max_m", self.d_min_m, self.d_max_m)
        if self.depth_ratio_min > self.depth_ratio_max:
            raise ValueError("depth_ratio_min is above depth_ratio_max")
        return self


class Ripples(Section):
    """A set of wind ripples: decimetre height, metres wavelength."""

    height_m: float = Field(default=0.15, gt=0.0, le=2.0)
    wavelength_m: float = Field(default=2.5, ge=0.3, le=50.0)
    direction_deg: Angle = "random"
    """Across the crests, the way the wind blew, counter-clockwise from +x."""
    cover: Share = 0.4
    patch_m: Length = 15.0


class Scarps(Section):
    """Ledges of bedrock that die out along their length."""

    number: Count = 1
    height_m: float = Field(default=0.4, gt=0.0, le=5.0)
    width_m: Length = 0.3
    """Horizontal distance over which the ground rises."""
    length_m: Length = 30.0
    back_m: Length = 8.0
    """Distance behind the edge over which the ground falls back."""
    direction_deg: Angle = "random"


class Ditches(Section):
    """Troughs that die out along their length."""

    number: Count = 1
    depth_m: float = Field(default=0.4, gt=0.0, le=5.0)
    width_m: Length = 1.5
    length_m: Length = 20.0
    direction_deg: Angle = "random"


class Unknown(Section):
    """Patches without data, as stereo leaves them."""

    fraction: float = Field(default=0.05, ge=0.0, le=0.9)
    patch_m: Length = 3.0


class Clearing(Section):
    """A place to stand: no rocks within the radius, ground blended to its local plane."""

    x_m: float
    y_m: float
    radius_m: float = Field(default=2.5, ge=0.0, le=20.0)


class Recipe(Section):
    """A whole terrain. Only the size is required; features left out are absent."""

    name: str = "recipe"
    description: str = ""
    seed: int = Field(default=0, ge=0)
    """Used where the caller of ``generate`` gives none."""
    size_m: tuple[Length, Length]
    resolution_m: float = Field(default=0.1, ge=0.01, le=10.0)
    base: Base = Base()
    relief: Relief | None = None
    rocks: Rocks | None = None
    craters: Craters | None = None
    ripples: list[Ripples] = Field(default_factory=list, max_length=10)
    scarps: list[Scarps] = Field(default_factory=list, max_length=10)
    ditches: list[Ditches] = Field(default_factory=list, max_length=10)
    unknown: Unknown | None = None
    start: Clearing | None = None
    goal: Clearing | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        ny, nx = self.shape
        if ny < 2 or nx < 2 or ny * nx > MAX_CELLS:
            raise ValueError(f"{nx} x {ny} cells: maps have 2 x 2 to {MAX_CELLS} cells")
        width, depth = (n * self.resolution_m for n in (nx, ny))
        for label, place in (("start", self.start), ("goal", self.goal)):
            if place and not (0.0 <= place.x_m < width and 0.0 <= place.y_m < depth):
                raise ValueError(f"{label} ({place.x_m:g}, {place.y_m:g}) is outside the map")
        return self

    @property
    def shape(self) -> tuple[int, int]:
        """(ny, nx), cells."""
        nx, ny = (round(extent / self.resolution_m) for extent in self.size_m)
        return ny, nx

    @property
    def clearings(self) -> list[Clearing]:
        """Start and goal, where given."""
        return [place for place in (self.start, self.goal) if place is not None]


def parse_recipe(text: str, *, name: str = "recipe") -> Recipe:
    """A recipe from YAML text; ``name`` is used where the text gives none.

    Raises TerrainError: not YAML, no mapping, an unknown key, or a value that is not valid.
    """
    try:
        data = read_yaml(text)
    except yaml.YAMLError as fault:
        raise TerrainError(f"recipe {name!r} is not YAML: {fault}") from fault
    if not isinstance(data, dict):
        raise TerrainError(f"recipe {name!r} must be a mapping, got {type(data).__name__}")
    try:
        return Recipe.model_validate({"name": name, **data})
    except ValidationError as faults:
        raise TerrainError(f"recipe {name!r}: {validation_faults(faults)}") from faults


def read_recipe(path: str | Path) -> Recipe:
    """A recipe from a YAML file. Raises TerrainError: not to be read, or as `parse_recipe`."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise TerrainError(f"{file}: cannot read the recipe: {fault}") from fault
    return parse_recipe(text, name=file.stem)


def generate(recipe: Recipe, seed: int | None = None) -> Terrain:
    """Make the terrain of a recipe; the same recipe and seed give the same heights.

    The seed is the recipe's own by default. Raises TerrainError: it is negative.
    """
    seed = recipe.seed if seed is None else seed
    if seed < 0:
        raise TerrainError(f"seed must not be negative, got {seed}")
    grid = Grid(recipe.shape, recipe.resolution_m)

    ground = _ground(recipe, grid, seed)
    for place in recipe.clearings:
        ground = _blended(ground, grid, place)
    relief: FloatArray | float = 0.0  # added all the same: no cell is -0.0
    if recipe.rocks is not None:
        field = recipe.rocks.scattered(_rng(seed, _Stream.ROCKS), grid.size_m)
        for place in recipe.clearings:
            field = field.clear_of(place.x_m, place.y_m, place.radius_m)
        relief = rocks.relief_of(field, grid.shape, grid.resolution_m)
    z = rounded(ground + relief)
    if recipe.unknown is not None:
        keep = np.zeros(grid.shape, np.bool_)
        for place in recipe.clearings:
            keep |= _distance(grid, place) < place.radius_m
        rng = _rng(seed, _Stream.UNKNOWN)
        z[landforms.unknown_patches(rng, grid, keep=keep, **recipe.unknown.model_dump())] = np.nan

    half = 0.5 * recipe.resolution_m
    return Terrain(
        z.astype(np.float32),
        recipe.resolution_m,
        (half, half),
        name=f"{recipe.name}-seed{seed}",
        start_m=(recipe.start.x_m, recipe.start.y_m) if recipe.start else None,
        goal_m=(recipe.goal.x_m, recipe.goal.y_m) if recipe.goal else None,
    )


def rounded(z: FloatArray) -> FloatArray:
    """Heights [m] to 1/16384 m, which hides last-bit differences between platforms."""
    return np.asarray(np.round(z * 16384.0) / 16384.0)


def _rng(seed: int, stream: _Stream, *item: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(int(stream), *item)))


def _angle(angle_deg: float | Literal["random"], rng: np.random.Generator) -> float:
    if angle_deg == "random":
        return float(rng.uniform(0.0, 2.0 * math.pi))
    return math.radians(angle_deg)


def _ground(recipe: Recipe, grid: Grid, seed: int) -> FloatArray:
    """Everything but rocks and clearings."""
    aspect = _angle(recipe.base.aspect_deg, _rng(seed, _Stream.BASE))
    ground = landforms.plane(grid, math.radians(recipe.base.slope_deg), aspect)
    if recipe.relief is not None:
        ground += landforms.self_affine(
            _rng(seed, _Stream.RELIEF),
            grid,
            rms_1m_m=recipe.relief.rms_1m_m,
            hurst=recipe.relief.hurst,
            wavelength_m=(recipe.relief.wavelength_min_m, recipe.relief.wavelength_max_m),
        )
    if recipe.craters is not None:
        rng = _rng(seed, _Stream.CRATERS)
        craters = [Crater(**placed.model_dump()) for placed in recipe.craters.placed]
        craters += landforms.sample_craters(
            rng,
            grid,
            per_km2=recipe.craters.per_km2,
            diameter_m=(recipe.craters.d_min_m, recipe.craters.d_max_m),
            depth_ratio=(recipe.craters.depth_ratio_min, recipe.craters.depth_ratio_max),
        )
        ground += landforms.crater_relief(rng, grid, craters)
    for i, ripple in enumerate(recipe.ripples):
        ground += _directed(landforms.ripples, ripple, grid, _rng(seed, _Stream.RIPPLES, i))
    for i, scarp in enumerate(recipe.scarps):
        for j in range(scarp.number):
            ground += _directed(landforms.scarp, scarp, grid, _rng(seed, _Stream.SCARPS, i, j))
    for i, ditch in enumerate(recipe.ditches):
        for j in range(ditch.number):
            ground += _directed(landforms.ditch, ditch, grid, _rng(seed, _Stream.DITCHES, i, j))
    return ground


def _directed(
    landform: Any, settings: Ripples | Scarps | Ditches, grid: Grid, rng: np.random.Generator
) -> FloatArray:
    direction_rad = _angle(settings.direction_deg, rng)
    sizes = settings.model_dump(exclude={"number", "direction_deg"})
    return np.asarray(landform(rng, grid, direction_rad=direction_rad, **sizes))


def _distance(grid: Grid, place: Clearing) -> FloatArray:
    x, y = grid.centres()
    return np.hypot(x - place.x_m, y - place.y_m)


def _blended(ground: FloatArray, grid: Grid, place: Clearing) -> FloatArray:
    """Ground replaced by its least-squares plane within 0.8 radii, fading out at 1.4 radii.

    A plane, not a level: a rover that starts on a slope should stand on that slope.
    """
    distance = _distance(grid, place)
    inside: NDArray[np.bool_] = distance < place.radius_m
    if inside.sum() < 3:
        return ground
    x, y = (np.broadcast_to(c, grid.shape) for c in grid.centres())
    basis = np.stack([np.ones(grid.shape), x - place.x_m, y - place.y_m], axis=-1)
    coefficients = np.linalg.lstsq(basis[inside], ground[inside])[0]
    weight = landforms.smoothstep((1.4 - distance / place.radius_m) / 0.6)
    return np.asarray(ground + weight * (basis @ coefficients - ground))


# ------------------------------------------------------------------------------- campaign classes

_CLASS = re.compile(r"(\d+(?:\.\d+)?)/(\d*\.\d+|\d+)")


def parse_class(text: str) -> tuple[float, float] | None:
    """(slope_deg, cfa) of a class name such as "10/.07" or "10/0.07"; None if it is not one."""
    match = _CLASS.fullmatch(text.strip())
    return (float(match[1]), float(match[2])) if match else None


def class_name(slope_deg: float, cfa: float) -> str:
    """The one name of a class, for seeds and records: "10/.10" for `10/.10` and `10.0/.100`."""
    slope = np.format_float_positional(slope_deg, trim="-")
    return f"{slope}/{cover_text(cfa)}"


def cover_text(cfa: float) -> str:
    """A rock cover as names have it: .07, .10, .125; 0 for none."""
    return np.format_float_positional(cfa, min_digits=2).removeprefix("0") if cfa else "0"


def benchmark_recipe(slope_deg: float, cfa: float) -> Recipe:
    """The campaign class of a slope and a rock abundance: 52 m at 0.1 m, start to goal 36 m.

    The slope's direction is drawn for each seed. Raises TerrainError: slope above 45 deg, cfa above
    0.3.
    """
    try:
        return Recipe(
            name=f"slope{slope_deg:g}-cfa{cfa:g}",
            size_m=(52.0, 52.0),
            resolution_m=0.1,
            base=Base(slope_deg=slope_deg, aspect_deg="random"),
            relief=Relief(),
            rocks=Rocks(cfa=cfa, d_min_m=0.15),
            start=Clearing(x_m=8.0, y_m=26.0, radius_m=2.5),
            goal=Clearing(x_m=44.0, y_m=26.0, radius_m=2.5),
        )
    except ValidationError as faults:
        name = class_name(slope_deg, cfa)
        raise TerrainError(f"no class {name}: {validation_faults(faults)}") from faults


def benchmark_class(slope_deg: float, cfa: float, seed: int) -> Terrain:
    """The terrain of ``benchmark_recipe`` for one seed."""
    return generate(benchmark_recipe(slope_deg, cfa), seed)
