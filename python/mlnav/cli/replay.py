"""`mlnav replay`: run a trial of a campaign again and compare it with its record."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from mlnav.cli import options
from mlnav.cli.common import ENDED, OK, RefusedError, claim, output, say, show

if TYPE_CHECKING:
    from mlnav.campaign.replay import Record, Replay

PRINTED_DIFFERENCES = 12
"""replay.json has all of them."""


def replay_command(
    trial: Annotated[
        str,
        Argument(
            metavar="TRIAL",
            help="Replay file; key of a trial or the first digits; or TERRAIN,NUMBER,CONTENDER.",
        ),
    ],
    campaign: Annotated[
        Path | None, Option("--campaign", "-C", metavar="DIR", help="Campaign of the trial.")
    ] = None,
    cycles: Annotated[
        list[int] | None,
        Option("--cycle", min=0, metavar="K", help="Draw this cycle as it was planned."),
    ] = None,
    gif: options.Gif = False,
    picture: Annotated[bool, Option(help="Draw traverse.png.")] = True,
    rerun: options.Rerun = None,
    out: options.NamedOut = None,
    as_json: options.Json = False,
    force: options.Force = False,
) -> None:
    """Run a trial of a campaign again, and compare it with its record, bit for bit.

    Everything is compared but wall times. DIR, out/replay/KEY by default, gets replay.json,
    traverse.png and, on request, cycle-K.png and cycle-K.json (candidates by verdict and costs of a
    cycle) and traverse.gif. The trial runs in this process, as under a debugger: one that crashed
    its worker may crash it too. Exit code 1 if anything differs.

    **Examples**

    - mlnav replay 3f9c --campaign out/campaign/smoke --cycle 7
    - mlnav replay 15/.10,4,network --campaign out/campaign/heuristics --gif
    - mlnav replay out/campaign/smoke/replays/3f9c21d07be4a655.json
    """
    from mlnav.campaign import replay as module
    from mlnav.io import write_json

    record = module.find(trial, campaign)
    wanted = sorted(set(cycles or []))
    names = ["replay.json", *(["traverse.png"] if picture else []), *(["traverse.gif"] * gif)]
    names += [f"cycle-{k}.{kind}" for k in wanted for kind in ("png", "json")]
    folder = out or Path("out/replay") / record.trial.key
    known = len(record.cycles)
    if known and wanted and wanted[-1] >= known:
        raise RefusedError(f"--cycle {wanted[-1]}: the run has {known} cycles, from 0")
    claim(folder, names, force, rerun)
    drawn: list[int] = []
    with contextlib.ExitStack() as open_files:
        observers: list[Callable[..., None]] = []
        if wanted:
            observers.append(_drawer(record, wanted, folder, drawn))
        if rerun is not None:
            from mlnav.sim import start_pose
            from mlnav.viz.recording import Recording

            scenario, config = record.trial.scenario(), record.trial.config
            pose = start_pose(scenario.terrain, scenario.start, scenario.goal, None)
            recording = Recording(rerun, scenario.terrain, config, pose, scenario.goal)
            observers.append(open_files.enter_context(recording))
        done = module.replay(record, observers)
    _draw(done, folder, picture, gif)
    report = _report(done, folder)
    write_json(folder / "replay.json", report)
    show(report, as_json, _print)
    missing = sorted(set(wanted) - set(drawn))
    if missing:
        count = len(done.outcome.cycles)
        raise RefusedError(f"--cycle {missing[0]}: the run has {count} cycles, from 0")
    raise typer.Exit(ENDED if done.differences else OK)


def _drawer(
    record: Record, wanted: Sequence[int], folder: Path, drawn: list[int]
) -> Callable[..., None]:
    from mlnav import viz
    from mlnav.io import write_json

    scenario = record.trial.scenario()

    def draw(cycle_record: Any, navigator: Any, cycle: Any) -> None:
        number = cycle_record.cycle
        if number in wanted:
            pose, config = cycle_record.estimated_pose, record.trial.config
            figure = viz.plan_figure(
                scenario.terrain, navigator, cycle, pose, scenario.goal, config
            )
            viz.save_figure(figure, folder / f"cycle-{number}.png")
            write_json(folder / f"cycle-{number}.json", cycle_record.as_dict())
            drawn.append(number)

    return draw


def _draw(done: Replay, folder: Path, picture: bool, gif: bool) -> None:
    if done.scenario is None or done.result is None or not (picture or gif):
        return
    from mlnav import viz

    terrain, config = done.scenario.terrain, done.record.trial.config
    if picture:
        viz.save_figure(viz.traverse_figure(terrain, done.result, config), folder / "traverse.png")
    if gif:
        viz.save_traverse_gif(folder / "traverse.gif", terrain, done.result, config)


def _report(done: Replay, folder: Path) -> dict[str, Any]:
    trial, row = done.record.trial, done.record.row
    return {
        "key": trial.key if row is None else row["key"],
        "terrain": trial.label,
        "trial": trial.number,
        "contender": trial.contender,
        "drawn": dict(trial.drawn),
        "recorded": None if row is None else row["outcome"],
        **{name: done.outcome.trial[name] for name in ("outcome", "error", "cycles")},
        "identical": None if row is None else not done.differences,
        "differences": [vars(d) for d in done.differences],
        "made_with_other": {k: list(v) for k, v in done.made_with.items()},
        "out": str(folder),
    }


def _print(report: dict[str, Any]) -> None:
    place = f"{report['terrain']}, trial {report['trial']}, {report['contender']}"
    ended = report["outcome"].replace("_", " ")
    output.print(f"[bold]{place}[/]: {ended}, {report['cycles']} cycles", soft_wrap=True)
    if report["error"]:
        say(report["error"])
    for what, (then, now) in report["made_with_other"].items():
        say(f"recorded with {what.replace('_', ' ')} {then}, now {now}")
    differences = report["differences"]
    if report["identical"] is None:
        output.print("nothing is recorded to compare it with")
    elif not differences:
        output.print("[green]identical[/] to its record")
    else:
        output.print(f"[red]{len(differences)} differences[/] from its record")
        for d in differences[:PRINTED_DIFFERENCES]:
            where = "" if d["cycle"] is None else f"cycle {d['cycle']}, "
            output.print(
                f"  {where}{d['column']}: recorded {d['recorded']!r}, now {d['now']!r}",
                soft_wrap=True, markup=False,
            )  # fmt: skip
    output.print(report["out"], soft_wrap=True)
