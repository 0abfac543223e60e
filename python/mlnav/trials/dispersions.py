"""Dispersions: values of the configuration that are drawn anew for each trial."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self

import numpy as np
from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from mlnav.config import Config, ConfigError, Section


def _probes(low: float, high: float) -> tuple[float, ...]:
    """The ends of a range, and a value between that is not round: whole numbers do not take it."""
    return (low, high) if low == high else (low, high, low + (high - low) / math.pi)


class Uniform(Section):
    """Equally likely between two values."""

    uniform: tuple[float, float]

    def draw(self, rng: np.random.Generator) -> float:
        """One value."""
        return float(rng.uniform(*self.uniform))

    @property
    def probes(self) -> Sequence[float | str]:
        """Values that the configuration must accept: the ends, and one that is not round."""
        return _probes(*self.uniform)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.uniform[0] > self.uniform[1]:
            raise ValueError(f"uniform: {self.uniform[0]:g} is more than {self.uniform[1]:g}")
        return self


class Normal(Section):
    """Normally distributed: mean and standard deviation, truncated at 3 of it."""

    normal: tuple[float, Annotated[float, Field(ge=0)]]

    def draw(self, rng: np.random.Generator) -> float:
        """One value."""
        mean, sigma = self.normal
        value = rng.standard_normal()
        while abs(value) > 3.0:
            value = rng.standard_normal()
        return float(mean + sigma * value)

    @property
    def probes(self) -> Sequence[float | str]:
        """As `Uniform.probes`."""
        mean, sigma = self.normal
        return _probes(mean - 3.0 * sigma, mean + 3.0 * sigma)


class Choice(Section):
    """One of several values or names, equally likely."""

    choice: Annotated[list[float | str], Field(min_length=1)]

    def draw(self, rng: np.random.Generator) -> float | str:
        """One value."""
        return self.choice[int(rng.integers(len(self.choice)))]

    @property
    def probes(self) -> Sequence[float | str]:
        """All of them."""
        return self.choice


def _by_key(data: Any) -> Any:
    """The distribution that a mapping's only key names."""
    kinds: dict[str, type[Section]] = {"uniform": Uniform, "normal": Normal, "choice": Choice}
    if isinstance(data, Section):
        return data
    if isinstance(data, Mapping) and len(data) == 1 and (name := next(iter(data))) in kinds:
        return kinds[name].model_validate(data)
    raise PydanticCustomError(
        "distribution",
        "must be {uniform: [low, high]}, {normal: [mean, sigma]} or {choice: [...]}",
    )


Distribution = Annotated[Uniform | Normal | Choice, BeforeValidator(_by_key)]
Dispersions = dict[str, Distribution]
"""By key of the configuration, `world.friction: {uniform: [0.5, 0.9]}`."""

_COMBINATIONS = 1000
"""Of probes of several dispersions that are tried together, at most."""


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


def check_dispersions(config: Config, dispersions: Dispersions) -> None:
    """Try extreme values, each alone and then together, since keys may bound each other.

    Raises:
        ConfigError: the configuration refuses some of them.
    """
    for path, distribution in dispersions.items():
        for value in distribution.probes:
            dispersed(config, {path: value})
    every = itertools.product(*(d.probes for d in dispersions.values()))
    for values in itertools.islice(every, _COMBINATIONS):
        dispersed(config, dict(zip(dispersions, values, strict=True)))
