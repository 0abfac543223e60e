"""Random streams of a run: one for each part, so that parts do not disturb each other."""

from __future__ import annotations

import numpy as np

_STREAMS = ("sensor", "localization")


def random_stream(seed: int, part: str) -> np.random.Generator:
    """The generator of one part's noise in a run of this seed."""
    key = (_STREAMS.index(part),)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
