"""Planning from the same states: one cycle of every contender, without memory of earlier ones.

Runs of contenders diverge after a few cycles. Here all plan from states of the first contender's
runs, so that only the planning differs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mlnav.campaign.store import Store
from mlnav.compute import results
from mlnav.nav import Motion
from mlnav.sim import SimulatedNavigator, at_rest
from mlnav.stats import Estimate, paired_ratio
from mlnav.trials.records import Row
from mlnav.trials.seeds import Stream, generator
from mlnav.trials.trial import Trial


@dataclass(frozen=True)
class State:
    """State at the start of a cycle of the first contender.

    Attributes:
        trial: number of its trial.
        cycle: of the trial.
        pose: the true one.
        steered_per_m: curvature that the wheels were steered for; infinite: turning in place.
        evaluations: ACE evaluations of the first contender in the cycle, with its memory.
    """

    trial: int
    cycle: int
    pose: tuple[float, float, float]
    steered_per_m: float
    evaluations: int


def states_of(cycles: Iterable[Row]) -> list[State]:
    """States at the start of each cycle of one trial."""
    found, steered = [], 0.0
    for row in cycles:
        x, y, heading = (row[f"pose_{part}"] for part in ("x_m", "y_m", "heading_rad"))
        spent = row["ace_evaluations"]
        found.append(State(row["trial"], row["cycle"], (x, y, heading), steered, spent))
        if row["outcome"] == "path":
            motion = Motion(row["turn_rad"], row["curvature_per_m"], row["length_m"])
            steered = motion.steered_after_per_m
    return found


def states_on(store: Store, label: str) -> list[State]:
    """All states of the first contender on a terrain."""
    trials: dict[int, list[Row]] = {}
    for row in store.cycles().to_pylist():
        if row["terrain"] == label and row["contender"] == store.definition.names[0]:
            trials.setdefault(row["trial"], []).append(row)
    return [state for cycles in trials.values() for state in states_of(cycles)]


def worst_state(store: Store, label: str) -> State | None:
    """State where the first contender spent most on a terrain; None without cycles."""
    return max(states_on(store, label), key=lambda s: s.evaluations, default=None)


def trial_of(store: Store, label: str, number: int, contender: str) -> Trial:
    """A trial of a campaign by terrain, number and contender."""
    trials = store.definition.trials_of([number])
    return next(t for t in trials if (t.label, t.contender) == (label, contender))


def same_states(
    store: Store,
    most: int,
    workers: int = 1,
    progress: Callable[[int, str], None] = lambda done, note: None,
) -> dict[str, Any]:
    """Plan one cycle of every contender from up to `most` random states per terrain.

    Returns:
        `contenders`, by name, without the first: `ratio`, evaluations of the first over those of
        this one where both find a path, with its interval, and the number of `states`; and `plans`,
        the plan of each contender at each state.
    """
    names = store.definition.names
    tasks: list[tuple[Trial, tuple[State, ...]]] = []
    for label in store.definition.labels:
        everything = states_on(store, label)
        rng = generator(store.definition.seed, label, 0, Stream.STATE)
        drawn = [everything[i] for i in sorted(rng.permutation(len(everything))[:most])]
        for number in sorted({s.trial for s in drawn}):
            here = tuple(s for s in drawn if s.trial == number)
            trials = store.definition.trials_of([number])
            tasks += [(trial, here) for trial in trials if trial.label == label]
    plans: list[Row] = []
    for done, rows in enumerate(results(tasks, _plan, workers), 1):
        plans += rows
        progress(done, f"{rows[0]['terrain']} {rows[0]['trial']}: same states")
    return {
        "contenders": {name: _compare(plans, names[0], name) for name in names[1:]},
        "plans": plans,
    }


def _plan(task: tuple[Trial, tuple[State, ...]]) -> list[Row]:
    trial, states = task
    scenario = trial.scenario()
    rows = []
    for state in states:
        steered = state.steered_per_m
        navigator = SimulatedNavigator(scenario.terrain, trial.config)  # without memory
        where = at_rest(scenario.terrain, trial.config, state.pose)
        result = navigator.cycle(where, scenario.goal, steered).result
        rows.append(
            {
                "terrain": trial.label,
                "trial": trial.number,
                "contender": trial.contender,
                "cycle": state.cycle,
                "pose": list(state.pose),
                "steered_per_m": steered if math.isfinite(steered) else None,
                "evaluations": result.ace_evaluations,
                "floor": result.ace_floor,
                "found": result.outcome == "path",
            }
        )
    return rows


def _compare(plans: Sequence[Row], first: str, this: str) -> dict[str, Any]:
    """One contender against the first, over states from which both find a path."""

    def found(name: str) -> dict[tuple[Any, ...], Row]:
        mine = (p for p in plans if p["contender"] == name and p["found"])
        return {(p["terrain"], p["trial"], p["cycle"]): p for p in mine}

    others, own = found(first), found(this)
    both = [(others[key], own[key], key[0]) for key in own if key in others]
    labels = list(dict.fromkeys(label for _, _, label in both))
    ones = [1.0] * len(both)
    ratio: Estimate = paired_ratio(
        [a["evaluations"] for a, _, _ in both], ones,
        [b["evaluations"] for _, b, _ in both], ones,
        [labels.index(label) for _, _, label in both],
    )  # fmt: skip
    return {"ratio": ratio.as_dict(), "states": len(both)}
