"""Measurements: how sound and how timid checkers are, and how planners fare."""

from mlnav.bench.cost import cost
from mlnav.bench.soundness import SoundnessRequest, replay, soundness
from mlnav.bench.traverses import class_table, traverses
from mlnav.campaign.statistics import Rate

__all__ = ["Rate", "SoundnessRequest", "class_table", "cost", "replay", "soundness", "traverses"]
