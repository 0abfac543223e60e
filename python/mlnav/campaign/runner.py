"""Running campaigns: every trial once, whatever happens to a worker, never with mixed code."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mlnav import parts
from mlnav.campaign.definition import CampaignError, Definition, check_available
from mlnav.campaign.joining import joined
from mlnav.campaign.progress import BRIEF, Progress, enough, in_words
from mlnav.campaign.store import (
    DEFINITION,
    Store,
    Writer,
    create,
    locked,
    read_definition,
    writing,
)
from mlnav.compute import Ended, Limits, run_tasks
from mlnav.config import ConfigError
from mlnav.io import write_text
from mlnav.risk.models import ModelError
from mlnav.sim.records import was_unsafe
from mlnav.stats import Rate
from mlnav.trials.provenance import provenance
from mlnav.trials.records import MADE_WITH, NO_RUN, Outcome, Row, run_trial, unfinished
from mlnav.trials.trial import Trial

RunOne = Callable[[Trial], Outcome]
Tell = Callable[[Progress], None]


def silent(progress: Progress) -> None:
    """Tell nobody."""


def run(
    definition: Definition,
    folder: str | os.PathLike[str],
    *,
    extend: bool = False,
    keep_old: bool = False,
    workers: int = 1,
    scheduler: str | None = None,
    progress: Tell = silent,
    run_one: RunOne = run_trial,
) -> Store:
    """Run a campaign, in a folder of its own.

    Args:
        definition: what to run.
        folder: for its results; made if need be.
        extend: where the folder holds a campaign that differs in terrains, contenders or number of
            trials alone, go on with both put together.
        keep_old: with `extend`, count trials as done that other code, models or terrain files made.
        workers: processes on this machine, of one thread each; 0: run in this process.
        scheduler: `dask://host:port` of a cluster to run on instead.
        progress: called as trials end.
        run_one: makes a trial's records; a function of a module, which workers import.

    Raises:
        CampaignError: something is missing, the folder holds a campaign (with `extend`: one that
            differs in more) or cannot be written.
        ClusterError: the cluster is out of reach.
        ModelError: a network cannot be used.
        KeyboardInterrupt: Ctrl-C; what has ended is kept, `resume` goes on.
    """
    check_available(definition)
    path = Path(folder)
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)
    with locked(path):
        ended: Sequence[Row] = ()
        if extend and (path / DEFINITION).exists():
            store = Store(path)
            store.verify()
            _refuse_others(store, keep_old)
            ended, definition = store.rows(BRIEF), _extended(store, definition)
        else:
            create(path, definition)
        session = _Session(definition, ended)
        about = _about("run", definition, workers, scheduler)
        _go(path, session, session.tasks(), about, workers, scheduler, progress, run_one)
    return Store(path)


def resume(
    folder: str | os.PathLike[str],
    *,
    trials: int | None = None,
    keep_old: bool = False,
    workers: int = 1,
    scheduler: str | None = None,
    progress: Tell = silent,
    run_one: RunOne = run_trial,
) -> Store:
    """Go on with a campaign: run what has no result yet.

    Args:
        folder: of the campaign.
        trials: of each terrain and contender from now on; not fewer than there were to be.
        keep_old: count trials as done that other code, models or terrain files made.
        workers: as for `run`, likewise the others.
        scheduler: likewise.
        progress: likewise.
        run_one: likewise.

    Raises:
        CampaignError: there is no campaign, results were made with something else, or as `run`.
        ModelError, KeyboardInterrupt: as `run`.
    """
    path = Path(folder)
    read_definition(path)
    with locked(path):
        store = Store(path)
        store.verify()
        definition = store.definition
        check_available(definition)
        _refuse_others(store, keep_old)
        if trials is not None:
            if trials < definition.trials:
                raise CampaignError(
                    f"{path} is to have {definition.trials} trials a terrain, {trials} are fewer"
                )
            definition = _extended(store, definition.model_copy(update={"trials": trials}))
        session = _Session(definition, store.rows(BRIEF))
        about = _about("resume", definition, workers, scheduler, keep_old=keep_old)
        _go(path, session, session.tasks(), about, workers, scheduler, progress, run_one)
    return Store(path)


def rerun(
    folder: str | os.PathLike[str],
    names: Sequence[str] = (),
    *,
    outcomes: Sequence[str] = (),
    keep_old: bool = False,
    workers: int = 1,
    scheduler: str | None = None,
    progress: Tell = silent,
    run_one: RunOne = run_trial,
) -> Store:
    """Run trials again that have a result; the new one counts from now on.

    Args:
        folder: of the campaign.
        names: keys of trials, their first digits, or `TERRAIN,NUMBER,CONTENDER`.
        outcomes: all trials that ended so, `crashed`.
        keep_old: go on although other code, models or terrain files made the results there are.
        workers: as for `run`, likewise the others.
        scheduler: likewise.
        progress: likewise.
        run_one: likewise.

    Raises:
        CampaignError: there are no such trials, or as `resume`.
        ModelError, KeyboardInterrupt: as `run`.
    """
    path = Path(folder)
    read_definition(path)
    with locked(path):
        store = Store(path)
        check_available(store.definition)
        _refuse_others(store, keep_old)
        chosen = {row["identity"]: row for row in map(store.find, names)}
        chosen |= {r["identity"]: r for r in store.rows(BRIEF) if r["outcome"] in outcomes}
        if not chosen:
            raise CampaignError(f"{path}: no trial to run again ({', '.join(outcomes) or 'none'})")
        numbers = sorted({row["trial"] for row in chosen.values()})
        tasks = [t for t in store.definition.trials_of(numbers) if t.identity in chosen]
        about = _about(
            "rerun", store.definition, workers, scheduler, keep_old=keep_old, trials=len(tasks)
        )
        session = _Session(store.definition, (), total=len(tasks))
        _go(path, session, tasks, about, workers, scheduler, progress, run_one)
    return Store(path)


def _about(
    what: str, definition: Definition, workers: int, scheduler: str | None, **more: Any
) -> dict[str, Any]:
    """What a run is made with, parts from outside included."""
    where = {"workers": workers} if scheduler is None else {"scheduler": scheduler}
    outside = {name: parts.provenance(config) for name, config in definition.configs.items()}
    found = {name: theirs for name, theirs in outside.items() if theirs}
    more |= {"parts": found} if found else {}
    return {"what": what, **where, **more, **provenance()}


def _go(
    folder: Path,
    session: _Session,
    tasks: Iterable[Trial | None],
    about: Mapping[str, Any],
    workers: int,
    scheduler: str | None,
    progress: Tell,
    run_one: RunOne,
) -> None:
    definition = session.definition
    limits = Limits(definition.wall_s, definition.memory_mb)
    ends: Generator[Ended[Trial, Outcome], None, None]
    with Writer(folder, about) as writer:
        if scheduler is None:
            ends = run_tasks(tasks, run_one, workers, limits, _place)
        else:
            from mlnav.compute.cluster import run_on_cluster

            ends = run_on_cluster(tasks, run_one, scheduler, limits)
        progress(session.progress())
        try:
            with contextlib.closing(ends):
                for ended in ends:
                    outcome = _outcome(ended)
                    if outcome.trial["outcome"] in NO_RUN:
                        writer.add_replay(ended.task.key, ended.task.as_dict())
                    session.record(outcome.trial)
                    writer.add(outcome)
                    progress(session.progress(outcome.trial))
        except KeyboardInterrupt:
            progress(session.progress())  # it may have come while a trial was being written
            raise


def _place(trial: Trial) -> tuple[str, int]:
    """Trials of a scenario follow each other in one worker, which makes it once."""
    return trial.label, trial.number


def _outcome(ended: Ended[Trial, Outcome]) -> Outcome:
    trial, loss, error = ended.task, ended.loss, ended.error
    if loss is not None:
        return unfinished(trial, loss.kind, str(loss), loss.attempts)
    if isinstance(error, ModelError | ConfigError):
        raise error  # it would be so for all others
    if error is not None:
        return unfinished(trial, "error", f"{type(error).__name__}: {error}")
    assert ended.value is not None
    if ended.value.trial["key"] != trial.key:
        differs = _differences([(ended.value.trial, trial.made_with)], "{} there, {} here")
        raise CampaignError(
            f"a worker runs other code, models or files than this process ({differs}): they changed"
            " meanwhile, or are not the same on all machines"
        )
    return ended.value


# ------------------------------------------------------------------------------- what is to be run


class _Session:
    """A campaign under way: what has ended, and what is still to be run."""

    def __init__(
        self, definition: Definition, ended: Iterable[Row], total: int | None = None
    ) -> None:
        self.definition = definition
        self._rows = {row["identity"]: row for row in ended}
        each = len(definition.all_terrains) * len(definition.contenders)
        self._total = total or each * definition.trials
        self._earlier = len(self._rows)
        self._under_way = 0
        self._successes = sum(row["success"] for row in self._rows.values())
        self._unsafe = sum(map(was_unsafe, self._rows.values()))
        self._failed = sum(row["outcome"] in NO_RUN for row in self._rows.values())
        self._begin_s = time.monotonic()

    def tasks(self) -> Iterator[Trial | None]:
        """Trials by number; None where the stopping rule waits for all before to have ended."""
        stop = self.definition.stop
        everything = self.definition.trials_of(itertools.count())
        for number, trials in itertools.groupby(everything, lambda trial: trial.number):
            while self._under_way and stop is not None and number >= stop.at_least:
                yield None
            if enough(self.definition, number, self._rows.values()):
                return
            for trial in trials:
                if trial.identity not in self._rows:
                    self._under_way += 1
                    yield trial

    def record(self, row: Row) -> None:
        """Take note of a trial that has ended."""
        self._rows[row["identity"]] = row
        self._under_way -= 1
        self._successes += row["success"]
        self._unsafe += was_unsafe(row)
        self._failed += row["outcome"] in NO_RUN

    def progress(self, row: Row | None = None) -> Progress:
        """How far it is, after the trial of a row."""
        done = len(self._rows)
        ended = done - self._earlier
        pace_s = (time.monotonic() - self._begin_s) / ended if ended else None
        return Progress(
            done,
            self._total,
            self._failed,
            Rate(self._successes, done),
            Rate(self._unsafe, done),
            None if pace_s is None else pace_s * (self._total - done),
            "" if row is None else in_words(row),
        )


def _extended(store: Store, definition: Definition) -> Definition:
    """The store's definition and another put together, written to the folder."""
    whole = joined([("what is asked for", definition), (str(store.folder), store.definition)])
    whole = whole.model_copy(update={"stop": definition.stop})
    with writing(store.folder):
        write_text(store.folder / DEFINITION, whole.to_yaml())
    return whole


def _refuse_others(store: Store, keep_old: bool) -> None:
    """Refuse to go on where results are of another definition, or made with something else."""
    store.require_own()
    held = {row["identity"]: row for row in store.rows(("identity", "key", "trial", *MADE_WITH))}
    differ = []
    for trial in store.definition.trials_of(sorted({row["trial"] for row in held.values()})):
        row = held.get(trial.identity)
        if row is not None and row["key"] != trial.key:
            differ.append((row, trial.made_with))
    if differ and not keep_old:
        raise CampaignError(
            f"{store.folder} holds {len(differ)} trials made with something else"
            f" ({_differences(differ)}): begin anew in another folder, or go on with --keep-old,"
            " which counts them as done"
        )


def _differences(
    pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], form: str = "{}, now {}"
) -> str:
    """`code 1f..., now 2e...` of digests on one side and the other."""
    found = {(w, a[w], b[w]) for a, b in pairs for w in MADE_WITH if a[w] != b[w]}
    return "; ".join(sorted(f"{w.replace('_', ' ')} {form.format(a, b)}" for w, a, b in found))
