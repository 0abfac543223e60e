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
from mlnav.campaign.store import DEFINITION, Store, Writer, create, locked, read_definition, writing
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


def run(
    definition: Definition,
    folder: str | os.PathLike[str],
    *,
    extend: bool = False,
    keep_old: bool = False,
    workers: int = 1,
    scheduler: str | None = None,
    progress: Tell = lambda _: None,
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
        _go("run", path, session, workers, scheduler, progress, run_one)
    return Store(path)


def resume(
    folder: str | os.PathLike[str],
    *,
    trials: int | None = None,
    keep_old: bool = False,
    workers: int = 1,
    scheduler: str | None = None,
    progress: Tell = lambda _: None,
    run_one: RunOne = run_trial,
) -> Store:
    """Go on with a campaign: run what has no result yet. Otherwise as `run`.

    `trials`: of each terrain and contender from now on; not fewer than there were to be.
    `keep_old`: count trials as done that other code, models or terrain files made.
    Raises CampaignError: there is no campaign, or results were made with something else.
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
        _go("resume", path, session, workers, scheduler, progress, run_one, keep_old=keep_old)
    return Store(path)


def rerun(
    folder: str | os.PathLike[str],
    names: Sequence[str] = (),
    *,
    outcomes: Sequence[str] = (),
    keep_old: bool = False,
    workers: int = 1,
    scheduler: str | None = None,
    progress: Tell = lambda _: None,
    run_one: RunOne = run_trial,
) -> Store:
    """Run trials again that have a result; the new one counts from now on. Otherwise as `resume`.

    `names`: keys of trials, their first digits, or `TERRAIN,NUMBER,CONTENDER`.
    `outcomes`: all trials that ended so, `crashed`.
    Raises CampaignError: there are no such trials.
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
        session = _Session(store.definition, again=tasks)
        about = {"keep_old": keep_old, "trials": len(tasks)}
        _go("rerun", path, session, workers, scheduler, progress, run_one, **about)
    return Store(path)


def _go(
    what: str,
    folder: Path,
    session: _Session,
    workers: int,
    scheduler: str | None,
    progress: Tell,
    run_one: RunOne,
    **about: Any,
) -> None:
    """Run what a session is to run; provenance tells `what` was done, where, and `about` it."""
    definition, tasks = session.definition, session.tasks
    where = {"workers": workers} if scheduler is None else {"scheduler": scheduler}
    outside = {n: found for n, c in definition.configs.items() if (found := parts.provenance(c))}
    about |= {"parts": outside} if outside else {}
    limits = Limits(definition.wall_s, definition.memory_mb)
    ends: Generator[Ended[Trial, Outcome], None, None]
    with Writer(folder, {"what": what, **where, **about, **provenance()}) as writer:
        if scheduler is None:
            # Trials of a scenario follow each other in one worker, which makes it once.
            ends = run_tasks(tasks, run_one, workers, limits, lambda t: (t.label, t.number))
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
    """A campaign under way: what has ended, and what is still to be run.

    `tasks`: trials by number, None where the stopping rule waits for all before to have ended; or
    those that are to run `again`, whatever has ended.
    """

    def __init__(
        self, definition: Definition, ended: Iterable[Row] = (), again: Sequence[Trial] = ()
    ) -> None:
        self.definition = definition
        self.tasks: Iterable[Trial | None] = again or self._missing()
        each = len(definition.all_terrains) * len(definition.contenders)
        self._total = len(again) or each * definition.trials
        self._rows: dict[str, Row] = {}
        self._under_way = self._successes = self._unsafe = self._failed = 0
        for row in ended:
            self._count(row)
        self._earlier = len(self._rows)
        self._begin_s = time.monotonic()

    def _missing(self) -> Iterator[Trial | None]:
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
        self._under_way -= 1
        self._count(row)

    def _count(self, row: Row) -> None:
        self._rows[row["identity"]] = row
        self._successes += row["success"]
        self._unsafe += was_unsafe(row)
        self._failed += row["outcome"] in NO_RUN

    def progress(self, row: Row | None = None) -> Progress:
        """How far it is, after the trial of a row."""
        done = len(self._rows)
        ended, gone_s = done - self._earlier, time.monotonic() - self._begin_s
        return Progress(
            done,
            self._total,
            self._failed,
            Rate(self._successes, done),
            Rate(self._unsafe, done),
            gone_s / ended * (self._total - done) if ended else None,
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
    differ = [
        (row, trial.made_with)
        for trial in store.definition.trials_of(sorted({row["trial"] for row in held.values()}))
        if (row := held.get(trial.identity)) and row["key"] != trial.key
    ]
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
