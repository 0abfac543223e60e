"""One trial: everything that a run depends on besides the code."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Self

from pydantic import ValidationError

from mlnav import parts
from mlnav.config import Config, ConfigError
from mlnav.risk.models import configured_model
from mlnav.terrain import source_digest
from mlnav.trials.provenance import code_digest
from mlnav.trials.scenarios import Scenario, TerrainSpec, scenario_of
from mlnav.trials.seeds import Stream, sequence, spawn_key

FORMAT = 3
"""Of trials written as JSON."""


class TrialError(ValueError):
    """A trial cannot be read; the message says why."""


@dataclass(frozen=True)
class Trial:
    """A run: everything that it depends on besides the code.

    Attributes:
        campaign: its name.
        label: of the terrain, in reports and in the seeds.
        terrain: what is driven on.
        number: 0, 1, ...: contenders share scenario, noise and dispersions of a number.
        contender: the name.
        config: the whole configuration, with the dispersed values.
        common: what contenders share, without dispersions, as YAML: start and goal depend on it.
        campaign_seed: of the campaign.
        drawn: the dispersed values by key.
    """

    campaign: str
    label: str
    terrain: TerrainSpec
    number: int
    contender: str
    config: Config
    common: str
    campaign_seed: int
    drawn: Mapping[str, float | str]

    def seed(self, stream: Stream) -> int:
        """Of one stream, the same for all contenders."""
        of_stream = sequence(self.campaign_seed, self.label, self.number, stream)
        return int(of_stream.generate_state(1)[0])

    @property
    def terrain_seed(self) -> int:
        """Of the terrain, as for `terrain.load`."""
        return self.seed(Stream.TERRAIN)

    @property
    def run_seed(self) -> int:
        """Of the run's noise, as for `sim.traverse`."""
        return self.seed(Stream.RUN)

    @cached_property
    def identity(self) -> str:
        """Digest of the trial alone: the same under any code, model and terrain file."""
        return _digest(json.dumps(self.as_dict(), sort_keys=True))

    @cached_property
    def made_with(self) -> dict[str, str | None]:
        """Digests of what it depends on besides: code, network, terrain file, parts from outside.

        Raises:
            ModelError: the model is there and cannot be used.
            TerrainError: there is no such terrain.
        """
        model = configured_model(self.config)
        return {
            "code": code_digest(),
            "model": None if model is None else model.sha256[:16],
            "terrain_file": source_digest(self.terrain.terrain),
            "parts": parts.digest(self.config),
        }

    @property
    def key(self) -> str:
        """Digest of trial, code, model and terrain file: what its records are known by."""
        return _digest(self.identity + json.dumps(self.made_with, sort_keys=True))

    def scenario(self) -> Scenario:
        """Terrain, start and goal.

        Raises:
            TerrainError, SimError: there are none to be had.
        """
        pair_key = (self.campaign_seed, *spawn_key(self.label, self.number, Stream.PAIR))
        return scenario_of(self.terrain, self.terrain_seed, pair_key, self.common)

    def as_dict(self) -> dict[str, Any]:
        """For a replay file."""
        return {
            "format": FORMAT,
            **{f.name: getattr(self, f.name) for f in fields(self)},
            "terrain": self.terrain.model_dump(mode="json"),
            "config": self.config.model_dump(mode="json"),
            "drawn": dict(self.drawn),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """From a replay file.

        Raises:
            TrialError: it is of another format, or something is missing.
        """
        values = dict(data)
        found = values.pop("format", None)
        if found != FORMAT:
            raise TrialError(f"a trial of format {found}, not {FORMAT}")
        try:
            values["terrain"] = TerrainSpec.model_validate(values["terrain"])
            values["config"] = Config.checked(values["config"])
            return cls(**values)
        except (KeyError, TypeError, ConfigError, ValidationError) as fault:
            raise TrialError(f"not a trial: {fault}") from fault


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
