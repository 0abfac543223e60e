"""The definition of a campaign: one validated tree, written by people as YAML."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_core import PydanticCustomError

from mlnav.config import (
    Config,
    ConfigError,
    Count,
    Positive,
    Section,
    format_validation_error,
    parse_yaml,
    set_value,
)
from mlnav.io import shipped_folder
from mlnav.parts import PartError, anchored, require_parts
from mlnav.risk.models import ModelError, require_model
from mlnav.sim.cells import check_cell_sizes
from mlnav.terrain import AS_DECLARED, Reading, TerrainError, check_terrain, class_name
from mlnav.trials.dispersions import Dispersions, check_dispersions, dispersed
from mlnav.trials.scenarios import TerrainSpec, is_geotiff, labels_of
from mlnav.trials.seeds import Stream, generator
from mlnav.trials.trial import Trial

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")


class CampaignError(ValueError):
    """A campaign cannot be defined, run or read; the message says why."""


class Grid(Section):
    """Classes of slopes times rock covers."""

    slope_deg: Annotated[list[float], Field(min_length=1)]
    cfa: Annotated[list[float], Field(min_length=1)]

    @property
    def terrains(self) -> list[TerrainSpec]:
        """A terrain for each."""
        return [TerrainSpec(terrain=class_name(s, c)) for s in self.slope_deg for c in self.cfa]


class Contender(Section):
    """Something under comparison: parts of the configuration that are its own."""

    name: str
    parts: dict[str, Any] = Field(default_factory=dict)
    """Whole parts by name, `heuristic: network`, and single values, `planner.commit_length_m: 0.5`.
    Written as keys next to the name."""

    @classmethod
    def expanded(cls, data: Any) -> Any:
        """`network` is a heuristic; the keys next to the name are the parts."""
        if isinstance(data, str):
            return {"name": data, "parts": {"heuristic": data}}
        if isinstance(data, Mapping) and "name" not in data:
            raise PydanticCustomError("name", "needs a name next to its parts")
        if isinstance(data, Mapping) and "parts" not in data:
            return {"name": data["name"], "parts": {k: data[k] for k in data if k != "name"}}
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
    """Of every contender over all terrains: success rate, or ACE evaluations a cycle."""
    width: Positive
    """Of its 95 % interval; for evaluations as a share of the figure."""
    at_least: Count = 10
    """Trials of each terrain before the first look."""


class Definition(Section):
    """A campaign: what is driven, where, by whom, and how often."""

    name: Annotated[str, Field(min_length=1, max_length=80)]
    description: str = ""
    seed: Annotated[int, Field(ge=0)] = 0
    """Of terrains, starts and goals, noise and dispersions; contenders share all of them."""
    trials: Count = 30
    """Of each terrain with each contender; with `stop`, at most."""
    stop: Stop | None = None
    terrains: list[TerrainSpec] = Field(default_factory=list)
    grid: Grid | None = None
    """Further terrains."""
    contenders: Annotated[list[Contender], Field(min_length=1)]
    """The first is the one that others are measured against."""
    config: dict[str, Any] = Field(default_factory=dict)
    """What contenders share: sections as in a configuration file."""
    dispersions: Dispersions = Field(default_factory=dict)
    """By key of the configuration, `world.friction: {uniform: [0.5, 0.9]}`: drawn for each terrain
    and trial."""
    wall_s: Positive = 1800.0
    """A trial that takes longer is stopped, tried once more, and recorded as `hung`."""
    memory_mb: Annotated[int, Field(ge=256)] | None = None
    """Address space of a worker; a trial that needs more is recorded as `out_of_memory`."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.all_terrains:
            raise ValueError("no terrains: give `terrains`, `grid`, or --terrain")
        for what, names in (("contender", self.names), ("terrain", self.labels)):
            if twice := sorted({n for n in names if names.count(n) > 1}):
                raise ValueError(f"{what} given twice: {', '.join(twice)}")
        for contender in self.contenders:
            check_dispersions(self.config_of(contender), self.dispersions)
        return self

    @property
    def all_terrains(self) -> list[TerrainSpec]:
        """Terrains of the list, then of the grid."""
        return [*self.terrains, *(self.grid.terrains if self.grid else ())]

    @property
    def labels(self) -> list[str]:
        """Of all terrains, in their order."""
        return labels_of(self.all_terrains)

    @property
    def names(self) -> list[str]:
        """Of the contenders."""
        return [c.name for c in self.contenders]

    @property
    def base(self) -> Config:
        """The configuration that contenders share."""
        return Config.checked(self.config, "config")

    @property
    def configs(self) -> dict[str, Config]:
        """Whole configurations by contender, before dispersions."""
        return {c.name: self.config_of(c) for c in self.contenders}

    def config_of(self, contender: Contender) -> Config:
        """Of a contender, whole, before dispersions. Raises ConfigError: it is not valid."""
        parts = contender.parts.items()
        whole = {k: v for k, v in parts if "." not in k}
        single = [f"{k}={yaml.safe_dump(v).strip()}" for k, v in parts if "." in k]
        try:
            return self.base.replaced(**whole).replaced(single)
        except ConfigError as fault:
            raise ConfigError(f"contender {contender.name}: {fault}") from fault

    def trials_of(self, numbers: Iterable[int]) -> Iterator[Trial]:
        """All trials of some numbers, every terrain with every contender; a terrain's together."""
        configs, common = self.configs, self.base.to_yaml()
        terrains = list(zip(self.labels, self.all_terrains, strict=True))
        for number in numbers:
            for label, terrain in terrains:
                rng = generator(self.seed, label, number, Stream.DISPERSION)
                drawn = {path: spread.draw(rng) for path, spread in self.dispersions.items()}
                for name, config in configs.items():
                    yield Trial(
                        self.name, label, terrain, number, name, dispersed(config, drawn), common,
                        self.seed, drawn,
                    )  # fmt: skip

    def to_yaml(self) -> str:
        """YAML that reads back to an equal definition."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, width=100)


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
        terrains: to drive on instead of those it has.
        reading: how those of `terrains` that are GeoTIFFs are read.
        settings: single values to change, `path.to.key=value`.

    Raises CampaignError: there is none, or it is not valid (with the key and what is wrong).
    """
    spec = os.fspath(spec)
    path = Path(spec)
    of_file = path.suffix.lower() in (".yaml", ".yml")
    text, source = (_text(path), spec) if of_file else (_shipped(spec), f"campaign {spec}")
    try:
        # Files of parts are looked for beside a definition's file, before the working directory.
        data = anchored(parse_yaml(text, source), path.parent if of_file else Path())
        if reading != AS_DECLARED and not any(map(is_geotiff, terrains)):
            raise CampaignError(
                "band, nodata and vertical unit are of GeoTIFFs, and --terrain names none; in a"
                " definition they are keys of the terrain"
            )
        if terrains:
            listed = [terrain_data(t, reading) for t in terrains]
            data = {k: v for k, v in data.items() if k != "grid"} | {"terrains": listed}
        for setting in settings:
            set_value(data, setting)
    except ConfigError as fault:
        raise CampaignError(str(fault)) from fault
    return checked_definition(data, source)


def terrain_data(terrain: str, reading: Reading, **more: Any) -> dict[str, Any] | str:
    """A terrain of a definition, with what is said of GeoTIFFs where it is one."""
    return {"terrain": terrain, **reading.as_dict(), **more} if is_geotiff(terrain) else terrain


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise CampaignError(f"{path}: cannot be read: {fault}") from fault


def _shipped(name: str) -> str:
    folder = shipped_folder("sim") / "campaigns"
    files = folder.iterdir() if folder.is_dir() else ()
    names = sorted(f.name.removesuffix(".yaml") for f in files)
    if name not in names:
        raise CampaignError(f"no campaign {name!r}: give a YAML file, or one of {', '.join(names)}")
    return (folder / f"{name}.yaml").read_text(encoding="utf-8")


def parse_definition(text: str, source: str = "") -> Definition:
    """A definition from YAML text. Raises CampaignError: not YAML, or not valid."""
    try:
        return checked_definition(parse_yaml(text, source), source)
    except ConfigError as fault:
        raise CampaignError(str(fault)) from fault


def checked_definition(data: dict[str, Any], source: str = "") -> Definition:
    """A definition from the tree that YAML holds. Raises CampaignError: it is not a valid one."""
    try:
        return Definition.model_validate(data)
    except ValidationError as fault:
        raise CampaignError(format_validation_error(fault, data, source)) from fault


def check_available(definition: Definition) -> None:
    """Raise CampaignError where anything that trials will need is missing or damaged.

    Terrains must be there, with cells fine enough to drive on; checksums of models are compared.
    """
    configs = definition.configs
    for spec in definition.all_terrains:
        try:
            edge_m = check_terrain(spec.terrain, spec.reading)
            for config in (definition.base, *configs.values()):
                check_cell_sizes(f"terrain {spec.terrain!r}", edge_m, config)
        except (TerrainError, PartError) as fault:
            raise CampaignError(f"terrains: {fault}") from fault
    for name, config in configs.items():
        try:
            require_parts(config)
            require_model(config)
        except (PartError, ModelError) as fault:
            raise CampaignError(f"contender {name}: {fault}") from fault
