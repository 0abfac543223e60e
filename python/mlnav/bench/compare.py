"""Contenders on the same terrains, starts and goals: planners, heuristics and sensors, paired."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mlnav.bench.runner import Key, Progress, Record, run_recorded
from mlnav.bench.traverses import config_digest, run_record
from mlnav.compute.pool import Loss
from mlnav.config import Config, ConfigError
from mlnav.io import read_jsonl
from mlnav.risk.models import Manifest, configured_model
from mlnav.sim import (
    CycleRecord,
    Motion,
    Navigator,
    TraverseResult,
    at_rest,
    lost_run,
    traverse,
)
from mlnav.sim.cells import check_cells
from mlnav.terrain import AS_DECLARED, Reading, Terrain, load, with_rocks
from mlnav.trials.grounds import Entry, Ground, ground_of, is_geotiff, labelled
from mlnav.trials.provenance import core_digest

_PAIR, _STATE = 64, 65
"""First numbers of spawn keys: of drawn start-goal pairs, and of sampled states."""


class CompareError(ValueError):
    """A comparison cannot be made; the message says why."""


# ------------------------------------------------------------------------------- what is compared


def entries(
    specs: Sequence[str],
    covers: Sequence[float] = (0.0,),
    reading: Reading = AS_DECLARED,
    config: Config | None = None,
) -> list[Entry]:
    """The grounds that names and rock covers stand for; each GeoTIFF once for each cover.

    Args:
        specs: as for `terrain.load`.
        covers: of rocks laid on GeoTIFFs.
        reading: of GeoTIFFs.
        config: says whether coarse cells are driven on.

    Raises:
        CompareError: none, one twice, or covers or a reading without a GeoTIFF.
        TerrainError: a terrain cannot be loaded, or its cells are coarse.
    """
    if not specs:
        raise CompareError("no terrain is given")
    if tuple(covers) != (0.0,) and not any(map(is_geotiff, specs)):
        raise CompareError("rocks are laid on GeoTIFFs, and none is given")
    if reading != AS_DECLARED and not any(map(is_geotiff, specs)):
        raise CompareError("band, nodata and vertical unit are of GeoTIFFs, and none is given")
    found = labelled(
        [
            (spec, cover, reading if is_geotiff(spec) else AS_DECLARED)
            for spec in specs
            for cover in (covers if is_geotiff(spec) else (0.0,))
        ]
    )
    labels = [e.label for e in found]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise CompareError(f"given twice: {', '.join(twice)}")
    for spec, read in dict.fromkeys((e.spec, e.reading) for e in found):
        check_cells(load(spec, 0, read), config or _FIRST)
    for cover in covers:
        with_rocks(Terrain(np.zeros((2, 2), np.float32), 0.1), cover, 0)
    return found


@dataclass(frozen=True)
class Contender:
    """A planner with a heuristic and a sensor: what is compared.

    Attributes:
        name: of the parts that contenders differ in, joined by +.
        config: the whole configuration.
    """

    name: str
    config: Config

    @cached_property
    def digest(self) -> str:
        """Of the configuration, and of the model that it only names.

        Raises:
            ModelError: the model is there and cannot be used.
        """
        model = self._model
        mark = "" if model is None else model.sha256
        return hashlib.sha256((config_digest(self.config) + mark).encode()).hexdigest()[:16]

    @property
    def predictor(self) -> str | None:
        """Whose instructions an inference costs: the model, or the heuristic without one."""
        if self.config.heuristic.name == "none":
            return None
        return self.config.heuristic.name if self._model is None else self._model.name

    @cached_property
    def _model(self) -> Manifest | None:
        return configured_model(self.config)


COMPARED = ("planner", "heuristic", "sensor")
"""Parts of the configuration that contenders may differ in."""


def contenders(base: Config, **names: Sequence[str]) -> list[Contender]:
    """Every combination of the named planners, heuristics and sensors (`COMPARED`).

    A part without names is the base's. A name may carry settings of its own,
    `sobel:weight_per_m=20;to_go_fraction=0`. Where the base has the part of that name, its settings
    are kept; the others have their defaults.

    Raises:
        CompareError: fewer than two, or one twice.
        ConfigError: an unknown name or setting.
    """
    lists = {part: names.get(part) or [getattr(base, part).name] for part in COMPARED}
    differ = [part for part in COMPARED if len(lists[part]) > 1]
    found = []
    for chosen in itertools.product(*lists.values()):
        config = base
        for part, text in zip(COMPARED, chosen, strict=True):
            config = _with(config, part, text)
        named = dict(zip(COMPARED, chosen, strict=True))
        found.append(Contender("+".join(named[part] for part in differ), config))
    if len(found) < 2:
        raise CompareError("a comparison needs two contenders: name more planners or heuristics")
    twice = sorted({c.name for c in found if [d.name for d in found].count(c.name) > 1})
    if twice:
        raise CompareError(f"given twice: {', '.join(twice)}")
    return found


def _with(config: Config, part: str, text: str) -> Config:
    name, _, settings = text.partition(":")
    if not name:
        raise ConfigError(f"{part}: an empty name in the list")
    if getattr(config, part).name != name:
        config = config.replaced(**{part: name})
    return config.replaced([f"{part}.{s}" for s in settings.split(";") if s])


@dataclass(frozen=True)
class Comparison:
    """What is to be compared, where.

    Attributes:
        base: the configuration that contenders share, besides what is `COMPARED`.
        contenders: the first is the one that others are measured against.
        entries: grounds.
        pairs: start-goal pairs of each ground.
        seed: of the first pair's terrain, and of drawn pairs.
        size_m: side of the square in the middle of a GeoTIFF that pairs are drawn in; None: all of
            it that is rover-scale.
    """

    base: Config
    contenders: Sequence[Contender]
    entries: Sequence[Entry]
    pairs: int
    seed: int = 0
    size_m: float | None = None

    @property
    def common(self) -> str:
        """The shared configuration, as YAML; pairs depend on nothing else of it."""
        return self.base.replaced(**{part: getattr(_FIRST, part) for part in COMPARED}).to_yaml()

    @property
    def setting(self) -> dict[str, Any]:
        """What every record of a folder must agree on to be of the same comparison."""
        digest = hashlib.sha256(self.common.encode()).hexdigest()[:16]
        return {
            "seed": self.seed,
            "size_m": self.size_m,
            "checker": self.base.checker.name,
            "limits": self.base.limits.name,
            "ace_budget": self.base.traverse.ace_budget,
            "common": digest,
            "core": core_digest(),
        }

    @property
    def settings(self) -> dict[str, dict[str, Any]]:
        """And what those of each ground must agree on, by its label: how it was read besides."""
        common = self.setting
        return {e.label: common | {"reading": e.reading.as_dict()} for e in self.entries}


_FIRST = Config()


# --------------------------------------------------------------------------------------- the runs


@dataclass(frozen=True)
class _Run:
    entry: Entry
    pair: int
    seed: int
    size_m: float | None
    common: str
    config: Config
    digest: str
    setting: dict[str, Any]

    @property
    def key(self) -> Key:
        return self.entry.label, self.pair, self.digest

    def ground(self) -> Ground:
        return pair_ground(self.entry, self.pair, self.seed, self.size_m, self.common)


def pair_ground(entry: Entry, pair: int, seed: int, size_m: float | None, common: str) -> Ground:
    """What everyone drives of a pair: the terrain of `seed + pair`, or a pair drawn on a map.

    Raises:
        TerrainError, SimError: as `ground_of`.
    """
    return ground_of(entry, seed + pair, (seed, _PAIR, pair), size_m, common)


def _key(record: Record) -> Key:
    return record["entry"], record["pair"], record["config"]


def compare(
    comparison: Comparison,
    records: Path,
    workers: int = 1,
    progress: Progress = lambda done, note: None,
) -> list[Record]:
    """Run what `records` does not hold yet, append each as it ends, and return all asked for.

    Raises:
        CompareError: the file holds records of another comparison.
        TerrainError, SimError: a terrain cannot be made, or no start and goal were found.
        RecordError: the file is damaged.
    """
    _agree(comparison, records)
    common, settings = comparison.common, comparison.settings
    size_m = comparison.size_m
    # Contenders of a pair follow each other, so that a process makes the ground once.
    tasks = [
        _Run(e, k, comparison.seed, size_m, common, c.config, c.digest, settings[e.label])
        for e in comparison.entries
        for k in range(comparison.pairs)
        for c in comparison.contenders
    ]
    names = {c.digest: c.name for c in comparison.contenders}
    return run_recorded(
        tasks,
        _run,
        records,
        _key,
        workers=workers,
        progress=progress,
        note=lambda r: f"{r['entry']} {r['pair']}, {names[r['config']]}: {r['outcome']}",
        # Physics comes with a library that may take its process down.
        lost=_lost if comparison.base.world.name == "bullet" else None,
    )


def _agree(comparison: Comparison, records: Path) -> None:
    common, settings = comparison.setting, comparison.settings
    for record in read_jsonl(records) if records.exists() else ():
        held = record.get("setting")
        # A ground that is not asked for now may have been read in any way.
        read = {"reading": held.get("reading")} if isinstance(held, dict) else {}
        wanted = settings.get(record.get("entry", ""), common | read)
        if held == wanted:
            continue
        differs = "what they are of is not said"
        if isinstance(held, dict):
            differs = ", ".join(
                f"{k} {held.get(k)}, not {v}" for k, v in wanted.items() if held.get(k) != v
            )
        raise CompareError(
            f"{records} holds records of another comparison ({differs}): pass another --out, or"
            " --force to start anew"
        )


def _run(task: _Run) -> Record:
    ground = task.ground()
    seed = task.seed + task.pair
    return _record(task, traverse(ground.terrain, task.config, ground.start, ground.goal, seed))


def _lost(task: _Run, loss: Loss) -> Record:
    ground = task.ground()
    seed = task.seed + task.pair
    return _record(
        task, lost_run(ground.terrain, task.config, ground.start, ground.goal, seed, loss.kind)
    )


def _record(task: _Run, result: TraverseResult) -> Record:
    cycles = result.cycles
    return {
        "entry": task.entry.label,
        "pair": task.pair,
        "config": task.digest,
        "setting": task.setting,
        **run_record(result),
        "by_cycle": {
            "floor": [c.ace_floor if c.outcome == "path" else None for c in cycles],
            "paths_tried": [c.paths_tried for c in cycles],
            "rejected": [sum(c.rejects.values()) for c in cycles],
            "inferences": [c.inferences for c in cycles],
            "risk_used": [int(c.risk_used) for c in cycles],
            "ranked_again": [int(c.risk_used and c.risk_requested) for c in cycles],
            "pose": [[round(v, 9) for v in c.pose] for c in cycles],
            "steered_per_m": _steered(cycles),
        },
    }


def _steered(cycles: Sequence[CycleRecord]) -> list[float | None]:
    """Curvature that the wheels stand steered for as each cycle begins; None: turning in place."""
    steered = [0.0]
    for c in cycles:
        motion = Motion(c.turn_rad, c.curvature_per_m, c.length_m)
        steered.append(motion.steered_after_per_m)
    return [s if math.isfinite(s) else None for s in steered[: len(cycles)]]


# -------------------------------------------------------------------------------- the same states


@dataclass(frozen=True)
class State:
    """Where a cycle of the first contender began."""

    pair: int
    pose: tuple[float, float, float]
    steered_per_m: float


@dataclass(frozen=True)
class _Plan:
    run: _Run
    states: tuple[State, ...]

    @property
    def key(self) -> Key:
        text = repr([(s.pose, s.steered_per_m) for s in self.states])
        return (*self.run.key, hashlib.sha256(text.encode()).hexdigest()[:16])


def same_states(
    comparison: Comparison,
    runs: Sequence[Record],
    most: int,
    records: Path,
    workers: int = 1,
    progress: Progress = lambda done, note: None,
) -> list[Record]:
    """Plan one cycle of every contender, without memory, from states of the first one's runs.

    At most `most` states of each entry are drawn from all cycles of the first contender, the same
    for everyone. Records go to `records`, one for each entry, pair and contender.

    Raises:
        RecordError: `records` is damaged.
    """
    common, settings = comparison.common, comparison.settings
    first = comparison.contenders[0].digest
    tasks = []
    for i, entry in enumerate(comparison.entries):
        mine = [r for r in runs if r["entry"] == entry.label and r["config"] == first]
        states = _drawn_states(mine, most, comparison.seed, i)
        for pair in sorted({s.pair for s in states}):
            here = tuple(s for s in states if s.pair == pair)
            for c in comparison.contenders:
                run = _Run(
                    entry, pair, comparison.seed, comparison.size_m, common, c.config, c.digest,
                    settings[entry.label],
                )  # fmt: skip
                tasks.append(_Plan(run, here))
    return run_recorded(
        tasks,
        _plan,
        records,
        lambda r: (*_key(r), r["states"]),
        workers=workers,
        progress=progress,
        note=lambda r: f"{r['entry']} {r['pair']}: same states",
    )


def _drawn_states(runs: Sequence[Record], most: int, seed: int, entry: int) -> list[State]:
    all_states = [state for r in runs for state in _states_of(r)]
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STATE, entry)))
    chosen = rng.permutation(len(all_states))[:most]
    return [all_states[i] for i in sorted(chosen)]


def _states_of(run: Record) -> list[State]:
    cycles = run["by_cycle"]
    return [
        State(run["pair"], (x, y, heading), math.inf if steered is None else steered)
        for (x, y, heading), steered in zip(cycles["pose"], cycles["steered_per_m"], strict=True)
    ]


def worst_state(
    comparison: Comparison, runs: Sequence[Record], entry: Entry
) -> tuple[State, int, int] | None:
    """Where the first contender spent most on a ground: state, cycle and evaluations there."""
    first = comparison.contenders[0].digest
    mine = [r for r in runs if r["entry"] == entry.label and r["config"] == first]
    spent = [(n, r, i) for r in mine for i, n in enumerate(r["evaluations"])]
    if not spent:
        return None
    most, run, i = max(spent, key=lambda s: s[0])
    return _states_of(run)[i], i, most


def _plan(task: _Plan) -> Record:
    run = task.run
    ground = run.ground()
    counts, found, floors = [], [], []
    for state in task.states:
        # A new navigator each time: nothing is remembered from one state to the next.
        where = at_rest(ground.terrain, run.config, state.pose)
        navigator = Navigator(ground.terrain, run.config)
        result = navigator.cycle(where, ground.goal, state.steered_per_m).result
        counts.append(result.ace_evaluations)
        floors.append(result.ace_floor)
        found.append(result.outcome == "path")
    return {
        "entry": run.entry.label,
        "pair": run.pair,
        "config": run.digest,
        "states": task.key[-1],
        "evaluations": counts,
        "floors": floors,
        "found": found,
    }
