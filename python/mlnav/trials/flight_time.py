"""Modelled flight time from instructions, counted stage by stage (by `studies.instructions`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from mlnav.config import Config
from mlnav.risk.models import ModelError, configured_model
from mlnav.sim.records import MODELLED_S_PER_EVALUATION

PER_S = {"rad750_class": 200e6, "hpsc_class": 20e9}
"""Instructions a second of two classes of flight computer; assumed, not measured."""

STAGES = (
    "other", "costmap", "price", "cost_to_go", "rank", "rank_risk", "search", "search_risk",
)  # fmt: skip
"""`other`: all of a cycle outside its stages. `search`: going down the ranked list without the
evaluations, a path that is tried."""

_SHIPPED = "instructions.json"


class InstructionError(ValueError):
    """A file of instruction counts cannot be used; the message says why."""


@dataclass(frozen=True)
class Usage:
    """What a contender did, in all.

    Attributes:
        cycles: planning cycles.
        risk_uses: cycles that priced a risk map.
        rankings_again: of those, cycles that had ranked without it before.
        inferences: risk maps that were computed.
        evaluations: ACE evaluations.
        rejected: of those, poses that failed; None where that is not known.
        paths_tried: paths taken off the ranked lists.
    """

    cycles: int
    risk_uses: int
    rankings_again: int
    inferences: int
    evaluations: int
    rejected: int | None
    paths_tried: int = 0


@dataclass(frozen=True)
class Instructions:
    """Counts, in instructions a piece.

    Attributes:
        network: of one inference, by name of the model (or of the heuristic that has none).
        stages: of one run of each of `STAGES`.
        set_map: of giving a checker its map, by checker.
        checkers: of one pose, by "checker/limits" and by how it ends, pass or reject.
        assumptions: printed with every figure.
        vectorised: the same of a build with vectors; the counts above are of one without.
    """

    network: Mapping[str, float]
    stages: Mapping[str, float]
    set_map: Mapping[str, float]
    checkers: Mapping[str, Mapping[str, float]]
    assumptions: str
    vectorised: Instructions | None = None

    def missing(self, checker: str, limits: str, predictor: str | None) -> str | None:
        """Why there is no figure for a contender, or None when there is one."""
        for counts in filter(None, (self, self.vectorised)):
            if f"{checker}/{limits}" not in counts.checkers or checker not in counts.set_map:
                return f"no instruction counts of {checker}/{limits}"
            if predictor is not None and predictor not in counts.network:
                return f"no instruction counts of the heuristic {predictor!r}"
        return None

    def total(self, usage: Usage, checker: str, limits: str, predictor: str | None) -> float:
        """Instructions of a usage; `missing` must have been None."""
        stage, pose = self.stages, self.checkers[f"{checker}/{limits}"]
        search = "search" if predictor is None else "search_risk"
        if usage.rejected is None:
            poses = usage.evaluations * 0.5 * (pose["pass"] + pose["reject"])
        else:
            rejected = min(usage.rejected, usage.evaluations)
            poses = (usage.evaluations - rejected) * pose["pass"] + rejected * pose["reject"]
        plain = usage.cycles - usage.risk_uses + usage.rankings_again
        return (
            usage.cycles * (stage["other"] + stage["costmap"] + self.set_map[checker])
            + plain * (stage["cost_to_go"] + stage["rank"])
            + usage.risk_uses * (stage["price"] + stage["cost_to_go"] + stage["rank_risk"])
            + usage.inferences * (0.0 if predictor is None else self.network[predictor])
            + usage.paths_tried * stage[search]
            + poses
        )


def flight_seconds(
    counts: Instructions, usage: Usage, checker: str, limits: str, predictor: str | None
) -> dict[str, float]:
    """Modelled time of a usage [s] by class of flight computer; `missing` must have been None.

    A RAD750 has no vectors; an HPSC has, so its figure is of the vectorised build where there is
    one.
    """
    builds = {"rad750_class": counts, "hpsc_class": counts.vectorised or counts}
    return {
        name: builds[name].total(usage, checker, limits, predictor) / per_s
        for name, per_s in PER_S.items()
    }


def shipped_counts() -> dict[str, Any] | None:
    """The shipped file as it is, None where there is none.

    Raises:
        InstructionError: it is not what it should be.
    """
    if load_instructions() is None:
        return None
    counts: dict[str, Any] = json.loads((files("mlnav.trials") / _SHIPPED).read_text("utf-8"))
    return counts


def load_instructions(path: Path | None = None) -> Instructions | None:
    """Counts of a JSON file, the shipped one by default; None where there is none.

    Raises:
        InstructionError: the file is not what it should be.
    """
    source = files("mlnav.trials") / _SHIPPED if path is None else path
    if not source.is_file():
        return None
    try:
        data = json.loads(source.read_text(encoding="utf-8"))
        assumptions = str(data["assumptions"])
        other = data.get("vectorised")
        vectorised = None if other is None else _counts(other, assumptions)
        return _counts(data, assumptions, vectorised)
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as fault:
        raise InstructionError(
            f"{source}: not a file of instruction counts: {type(fault).__name__}: {fault}"
        ) from fault


def _counts(
    data: Mapping[str, Any], assumptions: str, vectorised: Instructions | None = None
) -> Instructions:
    return Instructions(
        network=_numbers(data["network"]),
        stages=_numbers({name: data["stages"][name] for name in STAGES}),
        set_map=_numbers(data["stages"]["set_map"]),
        checkers={
            name: _numbers({end: counts[end] for end in ("pass", "reject")})
            for name, counts in data["checkers"].items()
        },
        assumptions=assumptions,
        vectorised=vectorised,
    )


def _numbers(data: Mapping[str, Any]) -> dict[str, float]:
    return {str(name): float(value) for name, value in data.items()}


MODELLED_ACE = (
    f"(a) ACE evaluations x {1e3 * MODELLED_S_PER_EVALUATION:g} ms, the published RAD750 figure;"
    " no other stage is in it"
)


def assumptions(counts: Instructions | None) -> list[str]:
    """Of the modelled flight times, to be printed with them."""
    if counts is None:
        return [MODELLED_ACE]
    rates = ", ".join(f"{name} {per_s:.3g}/s" for name, per_s in PER_S.items())
    return [MODELLED_ACE, f"(b) counted instructions over {rates}: {counts.assumptions}"]


class FlightModel:
    """Modelled flight time (b) of a contender.

    Attributes:
        note: why there is none; None where there is one.
    """

    def __init__(self, config: Config, counts: Instructions | None) -> None:
        self._counts = counts
        self._checker, self._limits = config.checker.name, config.limits.name
        heuristic = config.heuristic.name
        self._predictor: str | None = None if heuristic == "none" else heuristic
        self.model: str | None = None
        try:
            model = configured_model(config)
        except ModelError as fault:
            self.note: str | None = f"no instruction counts of its model: {fault}"
            return
        if model is not None:
            self._predictor, self.model = model.name, model.sha256[:16]
        self.note = (
            "no instruction counts are shipped"
            if counts is None
            else counts.missing(self._checker, self._limits, self._predictor)
        )

    def seconds(self, usage: Usage) -> dict[str, float] | None:
        """Of a usage, by class of computer; None with a note."""
        if self._counts is None or self.note is not None:
            return None
        return flight_seconds(self._counts, usage, self._checker, self._limits, self._predictor)
