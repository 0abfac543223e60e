"""Monte Carlo campaigns: many runs from one definition, and what they show.

    from mlnav import campaign

    store = campaign.run(campaign.load_definition("smoke"), "out/smoke", workers=2)
    trials = store.trials().to_pandas()  # or polars.from_arrow(store.trials())

Results that are there already: `campaign.load("out/smoke")`, `campaign.resume("out/smoke")`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlnav.campaign.definition import CampaignError, Definition, load_definition
    from mlnav.campaign.merging import merge
    from mlnav.campaign.progress import Progress, Status, status
    from mlnav.campaign.runner import rerun, resume, run
    from mlnav.campaign.store import Store, load

__all__ = [
    "CampaignError", "Definition", "Progress", "Status", "Store", "load", "load_definition",
    "merge", "rerun", "resume", "run", "status",
]  # fmt: skip

_HOMES = {
    "definition": ("CampaignError", "Definition", "load_definition"),
    "merging": ("merge",),
    "runner": ("rerun", "resume", "run"),
    "progress": ("Progress", "Status", "status"),
    "store": ("Store", "load"),
}


def __getattr__(name: str) -> Any:
    # When asked for: worker processes import this package, and have no use for tables.
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
