"""The definition of a campaign: one validated tree, written by people as YAML."""

from __future__ import annotations

import itertools
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
import yaml
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from mlnav.config import (
    Config,
    ConfigError,
    Count,
    Positive,
    Section,
    parse_yaml,
    set_value,
    told,
)
from mlnav.io import shipped_folder
from mlnav.risk.models import ModelError, require_model
from mlnav.sim.cells import check_cells
from mlnav.terrain import (
    AS_DECLARED,
    Reading,
    TerrainError,
    benchmark_recipe,
    canonical,
    class_name,
    load,
    parse_class,
)
from mlnav.trials.grounds import Entry, is_geotiff, labelled

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")


class CampaignError(ValueError):
    """A campaign cannot be defined, run or read; the message says why."""


def _probes(low: float, high: float) -> tuple[float, ...]:
    """A range that a key takes has both ends in it; one that it takes whole has all between."""
    return (low, high) if low == high else (low, high, low + (high - low) / math.pi)


class Uniform(Section):
    """Equally likely between two values."""

    uniform: tuple[float, float]

    def draw(self, rng: np.random.Generator) -> float:
        """One value."""
        return float(rng.uniform(*self.uniform))

    @property
    def must_fit(self) -> Sequence[float | str]:
        """Values that must all be possible: the ends, and one between that is not round."""
        return _probes(*self.uniform)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.uniform[0] > self.uniform[1]:
            raise ValueError(f"uniform: {self.uniform[0]:g} is more than {self.uniform[1]:g}")
        return self


class Normal(Section):
    """Normally distributed: mean and standard deviation, drawn again beyond 3 of it."""

    normal: tuple[float, Annotated[float, Field(ge=0)]]

    def draw(self, rng: np.random.Generator) -> float:
        """One value."""
        mean, sigma = self.normal
        value = rng.standard_normal()
        while abs(value) > 3.0:
            value = rng.standard_normal()
        return float(mean + sigma * value)

    @property
    def must_fit(self) -> Sequence[float | str]:
        """Values that must all be possible: the ends, and one between that is not round."""
        mean, sigma = self.normal
        return _probes(mean - 3.0 * sigma, mean + 3.0 * sigma)


class Choice(Section):
    """One of several values or names, equally likely."""

    choice: Annotated[list[float | str], Field(min_length=1)]

    def draw(self, rng: np.random.Generator) -> float | str:
        """One value."""
        return self.choice[int(rng.integers(len(self.choice)))]

    @property
    def must_fit(self) -> Sequence[float | str]:
        """Values that must all be possible."""
        return self.choice


def _spread(data: Any) -> Any:
    """The spread that a mapping's key names."""
    kinds: dict[str, type[Section]] = {"uniform": Uniform, "normal": Normal, "choice": Choice}
    if isinstance(data, Mapping) and len(data) == 1:
        for name, kind in kinds.items():
            if name in data:
                return kind.model_validate(data)
    if isinstance(data, Section):
        return data
    raise PydanticCustomError(
        "spread", "must be {uniform: [low, high]}, {normal: [mean, sigma]} or {choice: [...]}"
    )


Spread = Annotated[Uniform | Normal | Choice, BeforeValidator(_spread)]


class Ground(Section):
    """A ground: `10/.07`, a recipe or GeoTIFF; or one of these with more said about it."""

    terrain: Annotated[str, Field(min_length=1), AfterValidator(canonical)]
    """GeoTIFF, recipe (shipped name or YAML file), or class of slope and CFA."""
    cfa: Annotated[float, Field(ge=0, le=0.3)] = 0.0
    """Rocks laid on a GeoTIFF."""
    size_m: Positive | None = None
    """Pairs are drawn in the square of this side in the middle of a GeoTIFF; null: in all of it."""
    band: Count = 1
    """Of the heights in a GeoTIFF."""
    nodata: list[Annotated[float, Field(allow_inf_nan=False)]] = Field(default_factory=list)
    """Further values of a GeoTIFF that mean unknown."""
    vertical_unit: str | None = None
    """Of the heights of a GeoTIFF, whatever it says: m, ft, ..."""

    @classmethod
    def expanded(cls, data: Any) -> Any:
        """A bare name is the terrain's."""
        return {"terrain": data} if isinstance(data, str) else data

    @property
    def reading(self) -> Reading:
        """How a GeoTIFF is read."""
        return Reading(self.band, tuple(self.nodata), self.vertical_unit)


class Grid(Section):
    """Classes of slopes times rock covers."""

    slope_deg: Annotated[list[float], Field(min_length=1)]
    cfa: Annotated[list[float], Field(min_length=1)]

    @property
    def grounds(self) -> list[Ground]:
        """A ground for each."""
        return [
            Ground(terrain=class_name(slope, cfa)) for slope in self.slope_deg for cfa in self.cfa
        ]


class Contender(Section):
    """Something under comparison: parts of the configuration that are its own."""

    name: str
    parts: dict[str, Any] = Field(default_factory=dict)
    """Whole parts by name, `heuristic: network`, and single values, `planner.commit_length_m: 0.5`.
    Written beside the name."""

    @classmethod
    def expanded(cls, data: Any) -> Any:
        """`network` is a heuristic; keys beside the name are the parts."""
        if isinstance(data, str):
            return {"name": data, "parts": {"heuristic": data}}
        if isinstance(data, Mapping) and "name" not in data:
            raise PydanticCustomError("name", "needs a name beside its parts")
        if isinstance(data, Mapping) and "parts" not in data:
            parts = {k: v for k, v in data.items() if k != "name"}
            return {"name": data["name"], "parts": parts}
        return data

    @field_validator("name")
    @classmethod
    def _plain(cls, name: str) -> str:
        if not NAME.fullmatch(name):
            raise ValueError(f"{name!r}: letters, digits and _ . + - only")
        return name


class Stop(Section):
    """When there are trials enough: by count, or once a figure is known well."""

    figure: Literal["success", "evaluations"] = "success"
    """Of every contender over all grounds: success rate, or ACE evaluations a cycle."""
    width: Positive
    """Of its 95 % interval; for evaluations as a share of the figure."""
    at_least: Count = 10
    """Trials of each ground before the first look."""


_COMBINATIONS = 1000
"""Of extreme values of dispersions that are tried together, at most."""


class Definition(Section):
    """A campaign: what is driven, where, by whom, and how often."""

    name: Annotated[str, Field(min_length=1, max_length=80)]
    description: str = ""
    seed: Annotated[int, Field(ge=0)] = 0
    """Of terrains, starts and goals, noise and dispersions; contenders share all of them."""
    trials: Count = 30
    """Of each ground with each contender; with `stop`, at most."""
    stop: Stop | None = None
    grounds: list[Ground] = Field(default_factory=list)
    grid: Grid | None = None
    """Further grounds."""
    contenders: Annotated[list[Contender], Field(min_length=1)]
    """The first is the one that others are measured against."""
    config: dict[str, Any] = Field(default_factory=dict)
    """What contenders share: sections as in a configuration file."""
    dispersions: dict[str, Spread] = Field(default_factory=dict)
    """By key of the configuration, `world.friction: {uniform: [0.5, 0.9]}`: drawn for each ground
    and trial."""
    wall_s: Positive = 1800.0
    """A trial that takes longer is stopped, tried once more, and recorded as `hung`."""
    memory_mb: Annotated[int, Field(ge=256)] | None = None
    """Address space of a worker; a trial that needs more is recorded as `out_of_memory`."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.all_grounds:
            raise ValueError("no grounds: give `grounds`, `grid`, or --terrain")
        for what, names in (
            ("contender", [c.name for c in self.contenders]),
            ("ground", [e.label for e in self.entries]),
        ):
            twice = sorted({n for n in names if names.count(n) > 1})
            if twice:
                raise ValueError(f"{what} given twice: {', '.join(twice)}")
        for ground in self.all_grounds:
            if is_geotiff(ground.terrain):
                continue
            if ground.cfa or ground.size_m is not None or ground.reading != AS_DECLARED:
                raise ValueError(
                    f"{ground.terrain}: cfa, size_m, band, nodata and vertical_unit are of GeoTIFFs"
                )
        for contender in self.contenders:
            config = self.config_of(contender)
            for path, spread in self.dispersions.items():
                for value in spread.must_fit:
                    dispersed(config, {path: value})
            # Keys may bound each other: all of them at once, end with end.
            every = itertools.product(*(d.must_fit for d in self.dispersions.values()))
            for values in itertools.islice(every, _COMBINATIONS):
                dispersed(config, dict(zip(self.dispersions, values, strict=True)))
        return self

    @property
    def all_grounds(self) -> list[Ground]:
        """Grounds of the list, then of the grid."""
        return [*self.grounds, *(self.grid.grounds if self.grid else ())]

    @property
    def entries(self) -> list[Entry]:
        """Where to drive, with labels."""
        return labelled([(g.terrain, g.cfa, g.reading) for g in self.all_grounds])

    @property
    def base(self) -> Config:
        """The configuration that contenders share."""
        return Config.checked(self.config, "config")

    def config_of(self, contender: Contender) -> Config:
        """A contender's whole configuration, before dispersions.

        Raises:
            ConfigError: it is not a valid one.
        """
        parts = contender.parts.items()
        whole = {k: v for k, v in parts if "." not in k}
        single = [f"{k}={yaml.safe_dump(v).strip()}" for k, v in parts if "." in k]
        try:
            return self.base.replaced(**whole).replaced(single)
        except ConfigError as fault:
            raise ConfigError(f"contender {contender.name}: {fault}") from fault

    def to_yaml(self) -> str:
        """YAML that reads back to an equal definition."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, width=100)


def dispersed(config: Config, drawn: Mapping[str, float | str]) -> Config:
    """A configuration with drawn values in it.

    Keys that the configuration has no use for (`sensor.dropout` with a true sensor) are an error: a
    dispersion that does nothing would be reported as if it did something.

    Raises:
        ConfigError: there is no such key, or the value is out of its range.
    """
    if not drawn:
        return config
    try:
        return config.with_values(drawn)
    except ConfigError as fault:
        hint = "; of whole numbers give a {choice: [...]}" if "integer" in str(fault) else ""
        raise ConfigError(f"dispersions: {fault}{hint}") from fault


def load_definition(
    spec: str | os.PathLike[str],
    *,
    terrains: Sequence[str] = (),
    reading: Reading = AS_DECLARED,
    settings: Iterable[str] = (),
) -> Definition:
    """The definition in a YAML file, or the shipped one of a name (`smoke`).

    Args:
        spec: path or name.
        terrains: to drive on instead of the grounds it has.
        reading: how those of `terrains` that are GeoTIFFs are read.
        settings: single values to change, `path.to.key=value`.

    Raises:
        CampaignError: there is none, or it is not valid; the message has the key and what is wrong.
    """
    text, source = _read(os.fspath(spec))
    try:
        data = parse_yaml(text, source)
        if reading != AS_DECLARED and not any(map(is_geotiff, terrains)):
            raise CampaignError(
                "band, nodata and vertical unit are of GeoTIFFs, and --terrain names none; in a"
                " definition they are said beside a ground's terrain"
            )
        if terrains:
            said = reading.as_dict()
            grounds = [{"terrain": t, **said} if is_geotiff(t) else t for t in terrains]
            data = {k: v for k, v in data.items() if k != "grid"} | {"grounds": grounds}
        for setting in settings:
            set_value(data, setting)
    except ConfigError as fault:
        raise CampaignError(str(fault)) from fault
    return _checked(data, source)


def _read(spec: str) -> tuple[str, str]:
    """Text of a definition, and what to call it."""
    if Path(spec).suffix.lower() in (".yaml", ".yml"):
        try:
            return Path(spec).read_text(encoding="utf-8"), spec
        except (OSError, UnicodeDecodeError) as fault:
            raise CampaignError(f"{spec}: cannot be read: {fault}") from fault
    folder = shipped_folder("sim") / "campaigns"
    files = folder.iterdir() if folder.is_dir() else ()
    names = sorted(f.name.removesuffix(".yaml") for f in files)
    if spec not in names:
        raise CampaignError(f"no campaign {spec!r}: give a YAML file, or one of {', '.join(names)}")
    return (folder / f"{spec}.yaml").read_text(encoding="utf-8"), f"campaign {spec}"


def parse_definition(text: str, source: str = "") -> Definition:
    """A definition from YAML text.

    Raises:
        CampaignError: not YAML, or not valid.
    """
    try:
        return _checked(parse_yaml(text, source), source)
    except ConfigError as fault:
        raise CampaignError(str(fault)) from fault


def _checked(data: dict[str, Any], source: str) -> Definition:
    try:
        return Definition.model_validate(data)
    except ValidationError as fault:
        raise CampaignError(told(fault, data, source)) from fault


def check_available(definition: Definition) -> None:
    """Look at all that trials will need, so that what is missing is told before anything runs.

    Grounds of recipes and files are loaded once, cells fine enough to drive on; checksums of models
    are compared.

    Raises:
        CampaignError: something is missing or damaged.
    """
    configs = [definition.base, *map(definition.config_of, definition.contenders)]
    for ground in definition.all_grounds:
        try:
            slope_and_cfa = parse_class(ground.terrain)
            if slope_and_cfa is None:
                terrain = load(ground.terrain, 0, ground.reading)
                for config in configs:
                    check_cells(terrain, config)
            else:
                benchmark_recipe(*slope_and_cfa)
        except TerrainError as fault:
            raise CampaignError(f"grounds: {fault}") from fault
    for contender in definition.contenders:
        config = definition.config_of(contender)
        if config.world.name == "bullet" and find_spec("pybullet") is None:
            raise CampaignError(
                f"contender {contender.name}: world bullet needs pybullet (extra 'sim')"
            )
        try:
            require_model(config)
        except ModelError as fault:
            raise CampaignError(f"contender {contender.name}: {fault}") from fault
