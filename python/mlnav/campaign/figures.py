"""Figures of a campaign: what `analyse` gives, and what reports show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from mlnav.stats import Estimate, Rate
from mlnav.trials.safety import Safety

FORMAT = 1
"""Of an analysis written as JSON."""


@dataclass(frozen=True)
class Spread:
    """ACE evaluations of cycles; the interval of the mean is over runs."""

    mean: Estimate
    median: float | None
    p95: float | None
    max: float | None


@dataclass(frozen=True)
class Distribution:
    """Steps of a cumulative distribution: share of cycles with at most so many evaluations."""

    evaluations: Sequence[float]
    shares: Sequence[float]


@dataclass(frozen=True)
class Flight:
    """Modelled time of planning on a flight computer, per cycle [s].

    Attributes:
        ace_s: ACE evaluations at the published cost; nothing else is in it.
        instructions_s: counted instructions, by class of computer; None without counts.
        note: why there are none.
    """

    ace_s: float | None
    instructions_s: Mapping[str, float] | None
    note: str | None = None


@dataclass(frozen=True)
class Figures:
    """A contender on a ground, or on all; of all its cycles unless said otherwise.

    Attributes:
        trials: how many.
        safety: unsafe runs.
        success: goals reached.
        outcomes: trials by ending.
        cycles: planning cycles in all.
        evaluations: ACE evaluations a cycle.
        distribution: of them.
        evaluations_per_m: ACE evaluations a metre driven.
        overthink: share of cycles with more evaluations than the threshold.
        floor: evaluations of the accepted paths alone, per cycle that found one.
        over_floor: mean evaluations over that.
        inefficiency: driven / straight-line length - 1 of successful runs.
        inferences: risk maps a cycle.
        risk_used: share of cycles that a risk map entered.
        stage_ms: wall time a cycle by stage [ms].
        plan_ms: of what a rover computes: all stages but the simulation's [ms].
        wall_s: a trial [s].
        flight: modelled flight time.
        events: trials in which something did not go as configured.
        retried: trials that were begun more than once.
        tilt_max_rad, clearance_min_m: the worst along all runs.
        rejects: poses that ACE refused, by constraint.
        faults: trials by what was wrong where they ended.
    """

    trials: int
    safety: Safety
    success: Rate
    outcomes: Mapping[str, int]
    cycles: int
    evaluations: Spread
    distribution: Distribution
    evaluations_per_m: float | None
    overthink: Estimate
    floor: float | None
    over_floor: float | None
    inefficiency: Estimate
    inferences: float | None
    risk_used: float | None
    stage_ms: Mapping[str, float]
    plan_ms: float | None
    wall_s: float | None
    flight: Flight
    events: int
    retried: int
    tilt_max_rad: float | None
    clearance_min_m: float | None
    rejects: Mapping[str, int]
    faults: Mapping[str, int]


@dataclass(frozen=True)
class Against:
    """A contender beside the first one, over the trials that both have.

    Attributes:
        pairs: such trials.
        both: of those, trials where both reach the goal.
        ratio: evaluations a cycle of the first over this one's, where both reach the goal: more
            than 1, this one needs fewer.
        ratio_all: the same over all cycles of all pairs.
        detour: inefficiency of this one less that of the first, where both reach the goal.
        success: success rate of this one less that of the first.
        only_first, only_this: goals that one of the two alone reaches.
        p: McNemar's exact test of these.
        p_holm: the same, adjusted for all tests of its table; None without pairs.
    """

    pairs: int
    both: int
    ratio: Estimate
    ratio_all: Estimate
    detour: Estimate
    success: Estimate
    only_first: int
    only_this: int
    p: float | None
    p_holm: float | None


@dataclass(frozen=True)
class Block:
    """A ground, or all of them (`label` is then None)."""

    label: str | None
    slope_deg: float | None
    cfa: float | None
    figures: Mapping[str, Figures]
    against: Mapping[str, Against]


@dataclass(frozen=True)
class ReliabilityBin:
    """Poses whose predicted risk fell into a bin, and how many of them ACE refused."""

    predicted: float | None
    refused: Rate


@dataclass(frozen=True)
class Reliability:
    """Predicted risk held against ACE.

    Attributes:
        bins: of predicted risk.
        poses: in all.
        predicted, refused: mean risk, and share of the poses that ACE refused.
        ece: expected calibration error: distance of the two by bin, weighted by poses.
    """

    bins: Sequence[ReliabilityBin]
    poses: int
    predicted: float | None
    refused: float | None
    ece: float | None


@dataclass(frozen=True)
class Failure:
    """A trial that did not reach the goal."""

    key: str
    ground: str
    trial: int
    contender: str
    outcome: str
    faults: Sequence[str]
    error: str | None
    cycles: int
    driven_m: float | None
    code: str


@dataclass(frozen=True)
class Entrant:
    """What a contender is made of."""

    name: str
    planner: str
    checker: str
    limits: str
    heuristic: str
    world: str
    sensor: str
    localization: str
    overthink_evaluations: int
    models: Sequence[str]
    """Digests of the networks that its trials ran."""


@dataclass(frozen=True)
class Note:
    """A weak point of the campaign.

    Attributes:
        text: in words.
        grave: it puts figures in doubt.
        unsafe: it tells of unsafe runs.
    """

    text: str
    grave: bool = False
    unsafe: bool = False


@dataclass(frozen=True)
class Analysis:
    """A campaign in numbers.

    Attributes:
        name, description, seed: of the definition.
        planned: trials of it, at most.
        trials: trials that figures rest on.
        entrants: the contenders; others are measured against the first.
        grounds: in the definition's order.
        overall: all grounds together.
        reliability: by contender, of those that predict risk.
        failures: by ground, trial and contender.
        notes: weak points: unsafe runs, then grave ones, then others.
        assumptions: of the modelled flight times.
        codes: trials by digest of the code that ran them.
    """

    name: str
    description: str
    seed: int
    planned: int
    trials: int
    entrants: Sequence[Entrant]
    grounds: Sequence[Block]
    overall: Block
    reliability: Mapping[str, Reliability]
    failures: Sequence[Failure]
    notes: Sequence[Note]
    assumptions: Sequence[str]
    codes: Mapping[str, int]

    @property
    def first(self) -> str:
        """The contender that others are measured against."""
        return self.entrants[0].name

    @property
    def others(self) -> list[str]:
        """All other contenders."""
        return [e.name for e in self.entrants[1:]]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        data: dict[str, Any] = _plain(self)
        return {"format": FORMAT, **data}


def _plain(value: Any) -> Any:
    if isinstance(value, Rate | Estimate | Safety):
        return value.as_dict()
    if is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value


# ------------------------------------------------------------------------------- two campaigns


@dataclass(frozen=True)
class Change:
    """A contender in two campaigns, on a ground or on all.

    Attributes:
        pairs: trials that both campaigns have, with the same ground, seeds and dispersions.
        both: of those, trials where it reaches the goal in both.
        same: of those, trials that went the same way to the last evaluation.
        paired: whether what follows is over pairs; without any, it is over all trials of each.
        success: success rate after less that before.
        only_before, only_after: pairs whose goal it reaches in one campaign alone.
        p, p_holm: McNemar's exact test of these, and adjusted for all tests of the table.
        ratio: ACE evaluations a cycle before over after, where it reaches the goal in both (of all
            cycles where nothing is paired): more than 1, fewer are needed now.
        detour: inefficiency after less that before, where it reaches the goal in both.
    """

    pairs: int
    both: int
    same: int
    paired: bool
    success: Estimate
    only_before: int
    only_after: int
    p: float | None
    p_holm: float | None
    ratio: Estimate
    detour: Estimate


@dataclass(frozen=True)
class ChangeBlock:
    """A ground that both campaigns have, or all of them (`label` is then None)."""

    label: str | None
    before: Mapping[str, Figures]
    after: Mapping[str, Figures]
    changes: Mapping[str, Change]


@dataclass(frozen=True)
class Comparison:
    """Two campaigns side by side.

    Attributes:
        before, after: each in numbers.
        contenders: that both have.
        grounds, overall: of those contenders.
        settings: by contender, what its configuration differs in: (key, before, after).
        notes: what to keep in mind.
    """

    before: Analysis
    after: Analysis
    contenders: Sequence[str]
    grounds: Sequence[ChangeBlock]
    overall: ChangeBlock
    settings: Mapping[str, Sequence[tuple[str, str, str]]]
    notes: Sequence[Note]

    def as_dict(self) -> dict[str, Any]:
        """For JSON; figures of each campaign alone are in its own report."""
        data: dict[str, Any] = _plain(self)
        for side in ("before", "after"):
            data[side] = {k: data[side][k] for k in ("name", "seed", "trials", "codes", "entrants")}
        return {"format": FORMAT, **data}
