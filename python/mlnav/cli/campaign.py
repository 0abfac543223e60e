"""`mlnav campaign`: many runs from one definition."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from mlnav.cli import common, options
from mlnav.cli.common import duration, output, say

if TYPE_CHECKING:
    from mlnav.campaign import Progress, Status, Store

app = common.new_app("Monte Carlo campaigns: run, resume, inspect, report.")

SetOption = Annotated[
    list[str] | None, Option("--set", metavar="KEY=VALUE", help="One value, as stop.width=0.05.")
]
FolderArgument = Annotated[Path, Argument(metavar="DIR", help="Folder of the campaign.")]
WorkersOption = Annotated[
    int | None,
    Option("--workers", "-w", min=1, help="Worker processes; default: the number of cores."),
]
SchedulerOption = Annotated[
    str | None,
    Option(
        "--scheduler", metavar="dask://HOST:PORT", help="Run on a dask cluster (extra `cluster`)."
    ),
]
KeepOldOption = Annotated[
    bool, Option("--keep-old", help="Keep results of other code, models or terrain files.")
]


@app.command("run")
@options.with_options
def run_command(
    *,
    spec: Annotated[str, Argument(metavar="SPEC", help="A YAML file, or a shipped definition.")],
    out: options.NamedOut = None,
    terrain: Annotated[
        list[str] | None,
        Option(
            "--terrain", "-t", metavar="FILE|RECIPE|CLASS", help="Instead of its terrains; repeat."
        ),
    ] = None,
    reading: options.Reading,
    trials: Annotated[int | None, Option(min=1, help="Number per terrain and contender.")] = None,
    allow_coarse: options.AllowCoarse = False,
    settings: SetOption = None,
    workers: WorkersOption = None,
    scheduler: SchedulerOption = None,
    as_json: options.Json = False,
) -> None:
    """Run a campaign: every terrain, trial and contender of a definition.

    Contenders share terrain, start, goal, noise and dispersions of a trial. A trial that crashes
    its process, hangs or runs out of memory is tried once more and then recorded as such, with a
    replay file; the others continue. DIR, out/campaign/NAME by default, must not hold a campaign
    yet. Ctrl-C keeps finished
    trials; `mlnav campaign resume` continues, also after a power cut. Shipped: smoke, heuristics,
    real, bullet. Exit code 1 if any trial has no run.

    **Examples**

    - mlnav campaign run smoke --out out/smoke
    - mlnav campaign run real -t map.tif -t other.tif --trials 40
    - mlnav campaign run heuristics --set stop.width=0.05 --set config.planner.commit_length_m=0.5
    """
    from mlnav.campaign import load_definition, run

    changes = [*options.allowing_coarse(allow_coarse, "config."), *(settings or ())]
    changes += [f"trials={trials}"] if trials else []
    definition = load_definition(spec, terrains=terrain or (), reading=reading, settings=changes)
    folder = out or Path("out/campaign") / re.sub(r"[^\w.+-]+", "-", definition.name)
    _run(partial(run, definition, folder), folder, workers, scheduler, as_json)


@app.command("resume")
def resume_command(
    folder: FolderArgument,
    trials: Annotated[int | None, Option(min=1, help="Increased number of trials.")] = None,
    keep_old: KeepOldOption = False,
    workers: WorkersOption = None,
    scheduler: SchedulerOption = None,
    as_json: options.Json = False,
) -> None:
    """Continue a campaign: run the trials without a result.

    Results of other code, models or terrain files are an error, unless --keep-old counts them as
    done. Trials in damaged parts run again.

    **Examples**

    - mlnav campaign resume out/smoke
    - mlnav campaign resume out/smoke --trials 100 --workers 8
    """
    from mlnav.campaign import resume

    start = partial(resume, folder, trials=trials, keep_old=keep_old)
    _run(start, folder, workers, scheduler, as_json)


@app.command("rerun")
def rerun_command(
    folder: FolderArgument,
    names: Annotated[
        list[str] | None,
        Argument(
            metavar="[TRIAL]...", help="Keys, their first digits, or TERRAIN,NUMBER,CONTENDER."
        ),
    ] = None,
    outcomes: Annotated[
        list[str] | None,
        Option("--outcome", metavar="NAME", help="All with this outcome, as crashed; repeat."),
    ] = None,
    keep_old: KeepOldOption = False,
    workers: WorkersOption = None,
    scheduler: SchedulerOption = None,
    as_json: options.Json = False,
) -> None:
    """Run trials again that have a result; the new result replaces it.

    **Examples**

    - mlnav campaign rerun out/smoke --outcome crashed --outcome hung
    - mlnav campaign rerun out/smoke 3f9c 15/.10,4,network --keep-old
    """
    from mlnav.campaign import rerun

    start = partial(rerun, folder, names or (), outcomes=outcomes or (), keep_old=keep_old)
    _run(start, folder, workers, scheduler, as_json)


@app.command("status")
def status_command(folder: FolderArgument, as_json: options.Json = False) -> None:
    """Show the state of a campaign, also while it runs. Exit code 1 if trials are left to run.

    **Examples**

    - mlnav campaign status out/smoke --json
    """
    from mlnav.campaign import status

    found = status(folder)
    _show_status(found, folder, as_json)
    raise typer.Exit(common.OK if found.complete else common.ENDED)


@app.command("merge")
def merge_command(
    folders: Annotated[list[Path], Argument(metavar="DIR...", help="Campaigns.")],
    out: options.Out,
    keep_old: KeepOldOption = False,
    as_json: options.Json = False,
) -> None:
    """Merge campaigns that differ only in terrains, contenders or number of trials.

    **Examples**

    - mlnav campaign merge out/here out/there --out out/both
    """
    from mlnav.campaign import merge

    _finish(merge(folders, out, keep_old=keep_old), as_json)


@app.command("report")
def report_command(
    folder: FolderArgument,
    out: options.NamedOut = None,
    pictures: Annotated[int, Option(min=0, help="Failed trials to rerun and draw, at most.")] = 6,
    as_json: options.Json = False,
) -> None:
    """Write the report of a campaign, also while it runs: a page, Markdown, JSON and CSV.

    It goes to DIR/report by default. An earlier report is replaced.

    **Examples**

    - mlnav campaign report out/smoke
    - mlnav campaign report out/smoke --out out/page --pictures 12
    """
    from mlnav.report.report import write_report

    _show_files(write_report(folder, out, pictures), as_json)


@app.command("compare")
def compare_command(
    before: Annotated[Path, Argument(metavar="BEFORE", help="Folder of a campaign.")],
    after: Annotated[Path, Argument(metavar="AFTER", help="Folder of another.")],
    out: options.Out = Path("out/campaign-compare"),
    as_json: options.Json = False,
) -> None:
    """Compare two campaigns, as of two versions of the code, trial by trial where both have them.

    An earlier comparison is replaced.

    **Examples**

    - mlnav campaign compare out/before out/after --out out/change
    """
    from mlnav.report.report import compare_reports

    _show_files(compare_reports(before, after, out), as_json)


def _run(
    start: Callable[..., Any],
    folder: Path,
    workers: int | None,
    scheduler: str | None,
    as_json: bool,
) -> None:
    """Run trials with progress at the terminal; print the state of the campaign at the end."""
    workers = workers or len(os.sched_getaffinity(0))
    with watched(f"`mlnav campaign resume {folder}` goes on") as progress:
        store = start(workers=workers, scheduler=scheduler, progress=progress)
    _finish(store, as_json)


@contextmanager
def watched(hint: str) -> Iterator[Callable[[Progress], None]]:
    """Progress at the terminal; Ctrl-C prints a hint how to continue."""
    last: Progress | None = None
    try:
        with common.progress_bar("trials", 1.0) as update:

            def update_bar(progress: Progress) -> None:
                nonlocal last
                last = progress
                left = "" if progress.left_s is None else f", {duration(progress.left_s)} left"
                failed = f", {progress.failed} without a run" if progress.failed else ""
                text = (
                    f"{progress.done}/{progress.total}{left}; success {progress.success.text(0)},"
                    f" unsafe {progress.unsafe.text(0)}{failed}; {progress.last}"
                )
                update(progress.done / progress.total, text)

            yield update_bar
    except KeyboardInterrupt:
        ended = "" if last is None else f" after {last.done} of {last.total} trials"
        say(f"interrupted{ended}: {hint}")
        raise typer.Exit(common.INTERRUPTED) from None


def _show_files(files: Mapping[str, Path], as_json: bool) -> None:
    first, *_ = files.values()
    paths = {name: str(path) for name, path in files.items()}
    common.show(paths, as_json, lambda _: output.print(str(first), soft_wrap=True))


def _finish(store: Store, as_json: bool) -> None:
    from mlnav.campaign import status

    found = status(store.folder)
    _show_status(found, store.folder, as_json)
    raise typer.Exit(common.ENDED if found.failed else common.OK)


def _show_status(found: Status, folder: Path, as_json: bool) -> None:
    if as_json:
        common.emit({**found.as_dict(), "out": str(folder)})
    else:
        _print(found, folder)
    for part in found.damaged:
        say(f"damaged, its trials count as not yet run: {part}")


def _print(found: Status, folder: Path) -> None:
    state = "complete" if found.complete else "not complete"
    if found.writer is not None:
        left = "" if found.left_s is None else f", {duration(found.left_s)} left"
        state += f", being run by {found.writer}{left}"
    fields = [
        ("campaign", f"[bold]{found.name}[/], {state}"),
        ("trials", f"{found.done} of {found.total}"),
    ]
    for name, figures in found.figures.items():
        unsafe, per_km = figures.rate("unsafe"), figures.number("unsafe_per_km")
        text = f"{name} {unsafe.hits}/{unsafe.trials}, {unsafe.text(1)}"
        text += "" if per_km is None else f", {per_km:.2f}/km"
        fields.append((f"[{'red' if unsafe.hits else 'green'}]unsafe[/]", text))
    for name, idle in found.out_of_work.items():
        fields.append(("[red]out of work[/]", f"{name}: {idle}"))
    for name, figures in found.figures.items():
        fields.append(("success", f"{name} {figures.rate('success').text(1)}"))
    ended = (f"{n} {outcome.replace('_', ' ')}" for outcome, n in found.outcomes.items())
    fields += [("outcomes", ", ".join(ended) or "-"), ("results", str(folder))]
    common.print_fields(fields)
    if found.failed:
        say(
            f"{found.failed} trials have no run: `mlnav replay {folder}/replays/KEY.json` shows"
            f" one, `mlnav campaign rerun {folder} --outcome NAME` tries them again"
        )
