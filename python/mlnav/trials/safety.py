"""How often runs are unsafe: the first figure of every report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlnav.sim.metrics import was_unsafe
from mlnav.stats import Rate

ENDINGS = ("goal reached", "unsafe", "no safe path", "other")
"""What `ending_of` tells apart."""


def ending_of(run: Mapping[str, Any]) -> str:
    """The ending of a run, of `ENDINGS`; a goal that was reached through unsafe states is unsafe.

    Args:
        run: `outcome`, `success` and, where recorded, `unsafe_states` of a run.
    """
    if was_unsafe(run):
        return "unsafe"
    if run["success"]:
        return "goal reached"
    return "no safe path" if run["outcome"] == "no_safe_path" else "other"


@dataclass(frozen=True)
class Safety:
    """Unsafe runs of a contender.

    A run is unsafe if it ended so (`UNSAFE_OUTCOMES`), or was beyond its limits and went on.

    Attributes:
        unsafe: runs.
        driven_km: by all runs.
        unsafe_states: judged states beyond the limits; None where no run recorded them.
        unsafe_states_per_km: over the runs that recorded them; None where nothing was driven.
        causes: unsafe runs by the constraint broken first, or by ending where none is recorded,
            most first.
    """

    unsafe: Rate
    driven_km: float
    unsafe_states: int | None
    unsafe_states_per_km: float | None
    causes: Mapping[str, int]

    @property
    def unsafe_per_km(self) -> float | None:
        """Unsafe runs per driven km; None where nothing was driven."""
        return self.unsafe.hits / self.driven_km if self.driven_km else None

    def as_dict(self) -> dict[str, Any]:
        """For records."""
        return {
            "unsafe": self.unsafe.as_dict(),
            "driven_km": self.driven_km,
            "unsafe_per_km": self.unsafe_per_km,
            "unsafe_states": self.unsafe_states,
            "unsafe_states_per_km": self.unsafe_states_per_km,
            "causes": dict(self.causes),
        }

    def text(self) -> str:
        """Count, rate with interval, and unsafe runs per km, for the screen."""
        if not self.unsafe.trials:
            return "-"
        told = f"{self.unsafe.hits}/{self.unsafe.trials}, {self.unsafe.text(1)}"
        if self.unsafe_per_km is not None:
            told += f", {self.unsafe_per_km:.2f}/km"
        return told


def safety_of(runs: Sequence[Mapping[str, Any]]) -> Safety:
    """Of runs: summaries of traverses, or rows of a campaign's trials.

    Runs recorded before unsafe states were counted lack `unsafe_states`, or have None.
    """
    unsafe = [r for r in runs if was_unsafe(r)]
    known = [r for r in runs if r.get("unsafe_states") is not None]
    states = sum(r["unsafe_states"] for r in known) if known else None
    known_km = _driven_km(known)
    return Safety(
        unsafe=Rate(len(unsafe), len(runs)),
        driven_km=_driven_km(runs),
        unsafe_states=states,
        unsafe_states_per_km=states / known_km if states is not None and known_km else None,
        causes=dict(Counter(map(_cause, unsafe)).most_common()),
    )


def _driven_km(runs: Sequence[Mapping[str, Any]]) -> float:
    return sum(r.get("driven_m") or 0.0 for r in runs) / 1000.0


def _cause(run: Mapping[str, Any]) -> str:
    first: str | None = run.get("unsafe_constraint") or (run.get("unsafe_state") or {}).get(
        "constraint"
    )
    return first or str(run["outcome"])
