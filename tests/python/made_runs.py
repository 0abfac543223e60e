"""Records of trials written by hand, and what is made of them."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from mlnav.campaign.analysis import Analysis, Slots, analyse, by_slot
from mlnav.campaign.definition import Definition, checked_definition
from mlnav.campaign.store import CYCLES, TRIALS, Writer, create, locked
from mlnav.trials.flight_time import Instructions
from mlnav.trials.runs import Run, runs_of

Made = tuple[dict[str, Any], list[dict[str, Any]]]
"""A row of the table of trials and those of its cycles."""


def made_trial(
    terrain: str, number: int, contender: str, evaluations: list[int], **changes: Any
) -> Made:
    """A trial that reached its goal: 1 m and 1 ms of planning a cycle, a floor of 20."""
    cycles = len(evaluations)
    by_cycle = changes.pop("by_cycle", {})
    key = f"{terrain} {number} {contender}"
    row = {
        "key": key, "identity": key, "code": "c0de", "terrain": terrain, "trial": number,
        "contender": contender, "heuristic": contender, "outcome": "goal_reached", "success": True,
        "faults": [], "cycles": cycles, "driven_m": float(cycles), "inefficiency": 0.1,
        "ace_evaluations": sum(evaluations), "overthinks": sum(n > 275 for n in evaluations),
        "risk_requested": sum(by_cycle.get("risk_requested", ())),
        "risk_used": sum(by_cycle.get("risk_used", ())),
        "inferences": sum(by_cycle.get("inferences", ())),
        "risk_asked": 0, "risk_missing": 0, "events": 0, "attempts": 1,
        "rejects_json": json.dumps({"tilt": cycles}), "wall_s": 20.0, "wall_sense_s": 9.0,
        "wall_heuristic_s": 0.0, "wall_plan_s": 1e-3 * cycles, "wall_drive_s": 8.0,
    }  # fmt: skip
    told = [
        {
            "key": key, "terrain": terrain, "trial": number, "contender": contender, "cycle": i,
            "ace_evaluations": n, "ace_floor": 20, "paths_tried": 2, "risk_requested": False,
            "risk_used": False, **{k: values[i] for k, values in by_cycle.items()},
        }
        for i, n in enumerate(evaluations)
    ]  # fmt: skip
    return row | changes, told


def tables(trials: list[Made]) -> tuple[pa.Table, pa.Table]:
    cycles = [cycle for _, told in trials for cycle in told]
    return pa.Table.from_pylist([r for r, _ in trials], TRIALS), pa.Table.from_pylist(
        cycles, CYCLES
    )


def made_runs(trials: list[Made]) -> list[Run]:
    return runs_of(*tables(trials))


def made_definition(trials: list[Made], **changes: Any) -> Definition:
    """Of a campaign that has these trials."""
    rows = [row for row, _ in trials]
    return checked_definition(
        {
            "name": "hand-made",
            "trials": 1 + max(r["trial"] for r in rows),
            "terrains": [
                label if "/" in label else f"{label}.yaml"  # of a file by its stem
                for label in dict.fromkeys(r["terrain"] for r in rows)
            ],
            "contenders": [
                {"name": n, "heuristic": n.partition("-")[0]}
                for n in dict.fromkeys(r["contender"] for r in rows)
            ],
            "config": {"checker": "fixed_box", "limits": "enav_like"},
            **changes,
        }
    )


def analysed(
    trials: list[Made], instructions: Instructions | None = None, **changes: Any
) -> Analysis:
    return analyse(*tables(trials), made_definition(trials, **changes), (), instructions)


def slots(trials: list[Made]) -> Slots:
    return by_slot(made_runs(trials))


def made_campaign(folder: Path, trials: list[Made], **changes: Any) -> Path:
    """A campaign's folder with these trials."""
    definition = made_definition(trials, **changes)
    numbers = sorted({row["trial"] for row, _ in trials})
    identity = {(t.label, t.number, t.contender): t.identity for t in definition.trials_of(numbers)}
    rows = [r | {"identity": identity[r["terrain"], r["trial"], r["contender"]]} for r, _ in trials]
    folder.mkdir(parents=True)
    with locked(folder):
        create(folder, definition)
        with Writer(folder, {"what": "run", "host": "here"}) as writer:
            writer.add_part(pa.Table.from_pylist(rows, TRIALS), tables(trials)[1])
    return folder
