"""Definitions put together."""

from __future__ import annotations

from collections.abc import Sequence

from mlnav.campaign.definition import CampaignError, Contender, Definition
from mlnav.trials.scenarios import TerrainSpec

_MAY_DIFFER = {
    "trials", "terrains", "grid", "contenders", "description", "wall_s", "memory_mb", "stop",
}  # fmt: skip


def joined(named: Sequence[tuple[str, Definition]]) -> Definition:
    """The definition of campaigns together, from names to call them by and their definitions.

    Raises CampaignError: they differ in more than terrains, contenders and number of trials.
    """
    first_name, first = named[0]
    must_agree = first.model_dump(exclude=_MAY_DIFFER)
    terrains: dict[str, TerrainSpec] = {}
    contenders: dict[str, Contender] = {}
    for name, definition in named:
        for key, value in definition.model_dump(exclude=_MAY_DIFFER).items():
            if value != must_agree[key]:
                raise CampaignError(f"{first_name} and {name} differ in their {key}")
        for label, spec in zip(definition.labels, definition.all_terrains, strict=True):
            if terrains.setdefault(label, spec) != spec:
                raise CampaignError(f"terrain {label} of {name} is another one")
        for contender in definition.contenders:
            if contenders.setdefault(contender.name, contender) != contender:
                raise CampaignError(f"contender {contender.name} of {name} is another one")
    whole = first.model_copy(
        update={
            "trials": max(definition.trials for _, definition in named),
            "stop": None,
            "terrains": list(terrains.values()),
            "grid": None,
            "contenders": list(contenders.values()),
        }
    )
    if whole.labels != list(terrains):
        # Seeds follow from labels.
        raise CampaignError(f"terrains of {first_name} and others share file names: rename some")
    return whole
