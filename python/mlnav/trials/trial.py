"""One trial of a campaign: what it is, and what its records hold."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any, Self

import numpy as np

from mlnav import _core
from mlnav.campaign.definition import CampaignError, Definition, dispersed
from mlnav.config import Config, ConfigError
from mlnav.risk import RiskMap
from mlnav.risk.models import configured_model
from mlnav.sim import (
    Cycle,
    CycleRecord,
    Navigator,
    SimError,
    TraverseResult,
    WorldError,
    traverse,
)
from mlnav.sim.loop import Observer
from mlnav.terrain import Reading, TerrainError, parse_class
from mlnav.trials.grounds import Entry, Ground, file_digest, ground_of
from mlnav.trials.provenance import code_digest

Row = dict[str, Any]

FORMAT = 2
"""Of trials written as JSON."""

RELIABILITY_BINS = 10
"""Of predicted risk, for how often ACE in fact refused."""

_SAMPLES = 12
"""Poses a cycle that predicted risk is held against ACE at; instruments, not ACE evaluations."""

_SAMPLE_REACH_M = 6.0
"""From the rover: as far as candidate paths go."""

# Last numbers of spawn keys: campaign seed, ground, trial, stream.
_TERRAIN, _RUN, _PAIR, _DISPERSION = range(4)


@dataclass(frozen=True)
class Trial:
    """A run: everything that it depends on besides the code.

    Attributes:
        campaign: its name.
        entry: the ground.
        size_m: side of the square that start and goal are drawn in on a GeoTIFF; None: all.
        number: 0, 1, ...: contenders share ground, start, goal, noise and dispersions of a number.
        contender: the name.
        config: the whole configuration, dispersions in it.
        common: what contenders share, without dispersions, as YAML: start and goal depend on it.
        campaign_seed: of the campaign.
        drawn: the dispersed values by key.
    """

    campaign: str
    entry: Entry
    size_m: float | None
    number: int
    contender: str
    config: Config
    common: str
    campaign_seed: int
    drawn: Mapping[str, float | str]

    def seed(self, stream: int) -> int:
        """Of one stream, the same for all contenders."""
        return int(
            _sequence(self.campaign_seed, self.entry, self.number, stream).generate_state(1)[0]
        )

    @property
    def terrain_seed(self) -> int:
        """Of the terrain, as for `terrain.load`."""
        return self.seed(_TERRAIN)

    @property
    def run_seed(self) -> int:
        """Of the run's noise, as for `sim.traverse`."""
        return self.seed(_RUN)

    @cached_property
    def identity(self) -> str:
        """Digest of the trial alone: the same under any code, model and ground file."""
        return _digest(json.dumps(self.as_dict(), sort_keys=True))

    @cached_property
    def made_with(self) -> dict[str, str | None]:
        """Digests of what it depends on besides: code, network, and the ground's file.

        Raises:
            ModelError: the model is there and cannot be used.
            TerrainError: there is no such ground.
        """
        model = configured_model(self.config)
        return {
            "code": code_digest(),
            "model": None if model is None else model.sha256[:16],
            "ground_file": file_digest(self.entry.spec),
        }

    @property
    def key(self) -> str:
        """Digest of trial, code, model and ground file: what its records are known by."""
        return _digest(self.identity + json.dumps(self.made_with, sort_keys=True))

    def ground(self) -> Ground:
        """Terrain, start and goal.

        Raises:
            TerrainError, SimError: there are none to be had.
        """
        pair_key = (self.campaign_seed, *_spawn_key(self.entry, self.number, _PAIR))
        return ground_of(self.entry, self.terrain_seed, pair_key, self.size_m, self.common)

    def as_dict(self) -> dict[str, Any]:
        """For a replay file."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {
            "format": FORMAT,
            **values,
            "entry": asdict(self.entry) | {"reading": self.entry.reading.as_dict()},
            "config": self.config.model_dump(mode="json"),
            "drawn": dict(self.drawn),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """From a replay file.

        Raises:
            CampaignError: it is of another format, or something is missing.
        """
        values = dict(data)
        found = values.pop("format", None)
        if found != FORMAT:
            raise CampaignError(f"a trial of format {found}, not {FORMAT}")
        try:
            entry = values["entry"]
            values["entry"] = Entry(**entry | {"reading": Reading(**entry["reading"])})
            values["config"] = Config.checked(values["config"])
            return cls(**values)
        except (KeyError, TypeError, ConfigError) as fault:
            raise CampaignError(f"not a trial: {fault}") from fault


def trials_of(definition: Definition, numbers: Iterable[int]) -> Iterator[Trial]:
    """All trials of some numbers: every ground with every contender; those of a ground together."""
    configs = [(c.name, definition.config_of(c)) for c in definition.contenders]
    common = definition.base.to_yaml()
    sizes = [g.size_m for g in definition.all_grounds]
    grounds = list(zip(definition.entries, sizes, strict=True))
    for number in numbers:
        for entry, size_m in grounds:
            rng = np.random.default_rng(_sequence(definition.seed, entry, number, _DISPERSION))
            drawn = {path: spread.draw(rng) for path, spread in definition.dispersions.items()}
            for name, config in configs:
                yield Trial(
                    definition.name, entry, size_m, number, name, dispersed(config, drawn), common,
                    definition.seed, drawn,
                )  # fmt: skip


def _sequence(seed: int, entry: Entry, number: int, stream: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed, spawn_key=_spawn_key(entry, number, stream))


def _spawn_key(entry: Entry, number: int, stream: int) -> tuple[int, int, int]:
    # By label, so that further grounds in a definition leave the others' trials as they are.
    return zlib.crc32(entry.label.encode()), number, stream


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# ------------------------------------------------------------------------------------- its records


CANNOT_RUN = (SimError, TerrainError, WorldError, _core.CoreError)
"""What keeps a trial from beginning or going on; the next may do."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """Records of a trial: a row of the table of trials, and a row a cycle."""

    trial: Row
    cycles: list[Row]


def run_trial(trial: Trial) -> Outcome:
    """Run a trial. What keeps it from beginning is its outcome `error`, with the message.

    Raises:
        ModelError: the network is there and cannot be used; it would be so for all trials.
        KeyboardInterrupt: stopped from outside; there is nothing to keep.
    """
    try:
        return drive(trial, trial.ground())[0]
    except CANNOT_RUN as fault:
        return unfinished(trial, "error", f"{type(fault).__name__}: {fault}")


def drive(
    trial: Trial, ground: Ground, observers: Iterable[Observer] = ()
) -> tuple[Outcome, TraverseResult]:
    """Drive a trial on its ground, watched by observers: its records, and the run for pictures.

    Raises:
        SimError, WorldError, CoreError: the run cannot begin or go on.
        ModelError, KeyboardInterrupt: as `run_trial`.
    """
    reliability = Reliability(trial.run_seed)
    result = traverse(
        ground.terrain, trial.config, ground.start, ground.goal, trial.run_seed,
        observers=[reliability, *observers],
    )  # fmt: skip
    if result.outcome == "interrupted":
        raise KeyboardInterrupt
    row = _row(trial, result) | reliability.as_dict()
    return Outcome(row, [_cycle_row(row, c) for c in result.cycles]), result


def unfinished(trial: Trial, outcome: str, message: str, attempts: int = 1) -> Outcome:
    """Records of a trial of which there is nothing but how it was lost.

    Nothing of its ground is here, since that may be what a process died of.
    """
    row = _identity(trial)
    row |= {"outcome": outcome, "success": False, "cycles": 0}
    return Outcome(row | {"attempts": attempts, "error": message}, [])


def _identity(trial: Trial) -> Row:
    config = trial.config
    slope_and_cfa = parse_class(trial.entry.spec) or (None, trial.entry.cfa or None)
    return {
        "key": trial.key,
        "identity": trial.identity,
        **trial.made_with,
        "ground": trial.entry.label,
        "slope_deg": slope_and_cfa[0],
        "cfa": slope_and_cfa[1],
        "trial": trial.number,
        "contender": trial.contender,
        "planner": config.planner.name,
        "checker": config.checker.name,
        "limits": config.limits.name,
        "heuristic": config.heuristic.name,
        "world": config.world.name,
        "sensor": config.sensor.name,
        "localization": config.localization.name,
        "terrain_seed": trial.terrain_seed,
        "run_seed": trial.run_seed,
        "drawn_json": json.dumps(dict(trial.drawn), sort_keys=True),
        "attempts": 1,
        "error": None,
    }


def _row(trial: Trial, result: TraverseResult) -> Row:
    cycles = result.cycles
    evaluations = np.array([c.ace_evaluations for c in cycles], np.float64)
    tilts = [c.tilt_max_rad for c in cycles if c.tilt_max_rad is not None]
    clearances = [c.clearance_min_m for c in cycles if c.clearance_min_m is not None]
    summary = result.summary()
    stages = summary["timing"]["stage_s"]
    return {
        **_identity(trial),
        "outcome": result.outcome,
        "success": result.success,
        "faults": list(result.faults),
        "unsafe_states": result.unsafe_states,
        "judged_states": result.judged_states,
        "unsafe_constraint": None if result.unsafe is None else result.unsafe.constraint,
        "unsafe_json": json.dumps(summary["unsafe_state"]),
        "terrain_sha256": result.terrain_sha256,
        **{
            f"start_{n}": v
            for n, v in zip(("x_m", "y_m", "heading_rad"), result.start, strict=True)
        },
        **{f"goal_{n}": v for n, v in zip(("x_m", "y_m"), result.goal, strict=True)},
        **{f"end_{n}": v for n, v in zip(("x_m", "y_m", "heading_rad"), result.end, strict=True)},
        "position_error_m": summary["position_error_m"],
        "cycles": len(cycles),
        "driven_m": result.driven_m,
        "straight_line_m": result.straight_line_m,
        "inefficiency": result.inefficiency,
        "ace_evaluations": int(evaluations.sum()),
        "ace_evaluations_p95": float(np.percentile(evaluations, 95)) if len(cycles) else None,
        "ace_evaluations_max": int(evaluations.max()) if len(cycles) else None,
        "ace_floor": summary["ace_floor"],
        "overthinks": summary["overthinks"],
        "risk_requested": summary["risk_requested"],
        "risk_used": summary["risk_used"],
        "risk_asked": summary["risk_asked"],
        "risk_missing": summary["risk_missing"],
        "inferences": summary["inferences"],
        "events": summary["events"]["count"],
        "tilt_max_rad": max(tilts, default=None),
        "clearance_min_m": min(clearances, default=None),
        "rejects_json": json.dumps(summary["rejects"], sort_keys=True),
        "built_json": json.dumps(dict(result.built), sort_keys=True),
        "wall_s": result.wall_s,
        **{f"wall_{stage}_s": stages.get(stage) for stage in STAGES},
    }


STAGES = ("sense", "heuristic", "plan", "drive")
"""Stages of a cycle whose wall times are kept."""


def _cycle_row(trial: Row, cycle: CycleRecord) -> Row:
    believed = cycle.believed
    return {
        **{name: trial[name] for name in ("key", "ground", "trial", "contender")},
        "cycle": cycle.cycle,
        "outcome": cycle.outcome,
        "ending": cycle.ending,
        "faults": list(cycle.faults or cycle.start_faults),
        **{f"pose_{n}": v for n, v in zip(("x_m", "y_m", "heading_rad"), cycle.pose, strict=True)},
        **{
            f"believed_{n}": v for n, v in zip(("x_m", "y_m", "heading_rad"), believed, strict=True)
        },
        "turn_rad": cycle.turn_rad,
        "curvature_per_m": cycle.curvature_per_m,
        "length_m": cycle.length_m,
        "driven_m": cycle.driven_m,
        "ace_evaluations": cycle.ace_evaluations,
        "ace_floor": cycle.ace_floor if cycle.outcome == "path" else None,
        "overthink": cycle.overthink,
        "paths_tried": cycle.paths_tried,
        "chosen_rank": cycle.chosen_rank,
        "path_cost": cycle.path_cost,
        "risk_requested": cycle.risk_requested,
        "risk_used": cycle.risk_used,
        "inferences": cycle.inferences,
        "tilt_max_rad": cycle.tilt_max_rad,
        "clearance_min_m": cycle.clearance_min_m,
        **{f"wall_{stage}_s": cycle.timing_s.get(stage) for stage in STAGES},
    }


class Reliability:
    """Observer that holds predicted risk against the checker, at random poses about the rover.

    Counts by bin of predicted risk: poses, sum of risk, poses that the checker refused. Its calls
    of the checker are not the planner's: they count nowhere.
    """

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2,)))
        self._counts = np.zeros((3, RELIABILITY_BINS))

    def __call__(self, record: CycleRecord, navigator: Navigator, cycle: Cycle) -> None:
        """Take the samples of a cycle."""
        if cycle.risk is None:
            return
        x, y, _ = record.believed
        poses = np.column_stack(
            [
                self._rng.uniform(x - _SAMPLE_REACH_M, x + _SAMPLE_REACH_M, _SAMPLES),
                self._rng.uniform(y - _SAMPLE_REACH_M, y + _SAMPLE_REACH_M, _SAMPLES),
                self._rng.uniform(-np.pi, np.pi, _SAMPLES),
            ]
        )
        predicted = risk_at(cycle.risk, poses)
        told = np.isfinite(predicted)
        navigator.checker.set_map(cycle.local_map.grid)
        refused = navigator.checker.reasons(np.ascontiguousarray(poses[told])) != 0
        risk = predicted[told]
        bins = np.minimum((risk * RELIABILITY_BINS).astype(np.intp), RELIABILITY_BINS - 1)
        for row, weights in enumerate((np.ones(len(risk)), risk, refused.astype(np.float64))):
            self._counts[row] += np.bincount(bins, weights, RELIABILITY_BINS)

    def as_dict(self) -> Row:
        """Columns of the trial's row."""
        names = ("reliability_poses", "reliability_risk_sum", "reliability_refused")
        return {
            name: [float(v) for v in row] for name, row in zip(names, self._counts, strict=True)
        }


def risk_at(risk: RiskMap, poses: np.ndarray[Any, np.dtype[np.float64]]) -> Any:
    """(n,) predicted risk at (n, 3) poses: of the nearest cell and heading; NaN beyond the map."""
    bins, ny, nx = risk.p.shape
    ix = np.floor((poses[:, 0] - risk.origin_m[0]) / risk.resolution_m + 0.5).astype(np.intp)
    iy = np.floor((poses[:, 1] - risk.origin_m[1]) / risk.resolution_m + 0.5).astype(np.intp)
    k = np.rint(poses[:, 2] / (2.0 * np.pi / bins)).astype(np.intp) % bins
    inside = (ix >= 0) & (ix < nx) & (iy >= 0) & (iy < ny)
    values = risk.p[k, np.clip(iy, 0, ny - 1), np.clip(ix, 0, nx - 1)].astype(np.float64)
    return np.where(inside, values, np.nan)
