"""Seeds of trials: one spawn key for each terrain, trial and stream."""

from __future__ import annotations

import zlib
from enum import IntEnum

import numpy as np


class Stream(IntEnum):
    """What a stream of random numbers is for."""

    TERRAIN = 0
    RUN = 1
    PAIR = 2
    DISPERSION = 3
    STATE = 4


def spawn_key(label: str, number: int, stream: Stream) -> tuple[int, int, int]:
    """Of a terrain, trial and stream.

    By label: further terrains in a definition leave the trials of the others as they are.
    """
    return zlib.crc32(label.encode()), number, int(stream)


def sequence(seed: int, label: str, number: int, stream: Stream) -> np.random.SeedSequence:
    """The seed sequence of a campaign's seed, terrain, trial and stream."""
    return np.random.SeedSequence(seed, spawn_key=spawn_key(label, number, stream))


def generator(seed: int, label: str, number: int, stream: Stream) -> np.random.Generator:
    """A generator of such a sequence."""
    return np.random.default_rng(sequence(seed, label, number, stream))
