"""What the tests of campaigns share. Worker processes import the functions that run trials."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from mlnav.campaign import Definition, Store
from mlnav.campaign.definition import parse_definition
from mlnav.trials.records import MADE_WITH, TIMES, Outcome, run_trial
from mlnav.trials.trial import Trial

RECIPE = """\
size_m: [20, 12]
relief: {rms_1m_m: 0.04}
rocks: {cfa: 0.05}
start: {x_m: 6, y_m: 6}
goal: {x_m: 12, y_m: 6}
"""


def tiny(folder: Path, **changes: Any) -> Definition:
    """Trials of 6 m, some twenty milliseconds each: two grounds, two contenders."""
    return parse_definition(tiny_yaml(folder, **changes))


def tiny_yaml(folder: Path, **changes: Any) -> str:
    grounds = []
    for name in ("a", "b"):
        path = folder / f"{name}.yaml"
        path.write_text(RECIPE)
        grounds.append(str(path))
    data = {
        "name": "tiny",
        "trials": 3,
        "terrains": grounds,
        "contenders": ["none", "sobel"],
        "config": {"checker": "fixed_box", "limits": "enav_like"},
    }
    return yaml.safe_dump(data | changes, sort_keys=False)


def content(store: Store) -> tuple[pa.Table, pa.Table]:
    """Both tables without what differs each time."""
    return store.trials().drop(list(TIMES)), store.cycles().drop(
        [c for c in TIMES if c in store.cycles().column_names]
    )


def results(store: Store) -> tuple[pa.Table, pa.Table]:
    """And without what they were made with."""
    trials, cycles = content(store)
    return trials.drop(["key", *MADE_WITH]), cycles.drop(["key"])


def outcomes(store: Store) -> dict[tuple[int, str], str]:
    """By trial and contender, of the first ground."""
    first = store.definition.labels[0]
    rows = store.rows(("terrain", "trial", "contender", "outcome"))
    return {(r["trial"], r["contender"]): r["outcome"] for r in rows if r["terrain"] == first}


# ---------------------------------------------------------------------------- what runs in workers

TROUBLES = ("exit", "segfault", "hang", "hungry", "wrong")


def troubled(trial: Trial) -> Outcome:
    """Some trials of contender `sobel` on ground `a` do things to their process, by number."""
    if (trial.label, trial.contender) != ("a", "sobel") or trial.number >= len(TROUBLES):
        return run_trial(trial)
    match TROUBLES[trial.number]:
        case "exit":
            os._exit(3)
        case "segfault":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "hang":
            time.sleep(600)
        case "hungry":
            return bytearray(20_000_000_000)  # type: ignore[return-value]
    raise ZeroDivisionError("on purpose")


def troubled_once(trial: Trial) -> Outcome:
    """Every trial dies the first time, if there is a folder to say so in."""
    flag = Path(os.environ["MLNAV_TEST_FLAGS"]) / trial.identity
    if flag.exists():
        return run_trial(trial)
    flag.touch()
    os._exit(3)


def half_a_second(trial: Trial) -> Outcome:
    """A trial that takes a while."""
    time.sleep(0.5)
    return run_trial(trial)


def interrupted_at_4(trial: Trial) -> Outcome:
    """Ctrl-C in the parent while trial 4 runs."""
    if trial.number == 4:
        os.kill(os.getppid(), signal.SIGINT)
        time.sleep(30)
    return run_trial(trial)


def stopped_at_4(trial: Trial) -> Outcome:
    """Ctrl-C where trials run in the process itself."""
    if trial.number == 4:
        raise KeyboardInterrupt
    return run_trial(trial)
