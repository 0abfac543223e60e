"""`mlnav bench`: measure checkers and planners."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mlnav.cli.common import (
    CheckerOption,
    ConfigOption,
    ForceOption,
    HeuristicOption,
    JsonOption,
    LimitsOption,
    OutOption,
    PlannerOption,
    RefusedError,
    SeedOption,
    SetOption,
    assemble,
    claim,
    emit,
    output,
    progress_bar,
)

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode="markdown", help="Measure checkers and planners."
)

WorkersOption = Annotated[int, typer.Option("--workers", min=1, help="Processes.")]


def numbers(option: str, text: str | None) -> tuple[float, ...]:
    """`0.15,0.20`.

    Raises:
        RefusedError: the text is something else.
    """
    try:
        return tuple(float(part) for part in text.split(",")) if text else ()
    except ValueError:
        raise RefusedError(f"{option}: {text!r} is not a list of numbers") from None


@app.command("soundness")
def soundness_command(
    checker: CheckerOption = None,
    limits: LimitsOption = None,
    terrain: Annotated[
        str,
        typer.Option(
            "--terrain",
            "-t",
            metavar="FILE|RECIPE|CLASS|all",
            help="all: slopes 0-25 deg x CFA 0-20 %, steps, ditches and the real maps there are.",
        ),
    ] = "all",
    poses: Annotated[int, typer.Option("--poses", min=1, help="In all.")] = 100_000,
    seed: SeedOption = 0,
    box: Annotated[
        str | None,
        typer.Option(
            "--box",
            metavar="M,M,...",
            help="Half widths of fixed_box to compare on the same poses.",
        ),
    ] = None,
    workers: WorkersOption = 1,
    config: ConfigOption = None,
    settings: SetOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE.json", help="Also write it here.")
    ] = None,
    as_json: JsonOption = False,
    force: ForceOption = False,
) -> None:
    """Settle random poses and compare with the checker: is it sound, and how timid is it?

    Every pose is settled from two starts. `outside_limits` and `outside_bounds` count poses that
    passed although a settled state breaks a limit, or leaves what the checker reported;
    `safe_rejected` counts safe poses that were refused. Rates carry 95 % Wilson intervals.

    **Examples**

    mlnav bench soundness --checker fixed_box --limits enav_like --poses 100000 --json

    mlnav bench soundness -t 15/.10 --box 0.15,0.20,0.25,0.30
    """
    from mlnav.bench.soundness import SoundnessRequest, soundness
    from mlnav.io import write_json

    setup = assemble(config, settings, checker=checker, limits=limits)
    if box and setup.checker.name != "fixed_box":
        raise RefusedError(f"--box is of the checker fixed_box, not of {setup.checker.name}")
    if out is not None and out.exists() and not force:
        raise RefusedError(f"{out} exists: pass --force to replace it")
    request = SoundnessRequest(setup, terrain, poses, seed, numbers("--box", box), workers)
    with progress_bar("poses", poses) as update:
        report = soundness(request, update)
    if out is not None:
        write_json(out, report)
    if as_json:
        emit(report)
    else:
        _print_soundness(report)


@app.command("traverses")
def traverses_command(
    classes: Annotated[
        str | None,
        typer.Option("--classes", metavar="S/CFA,...", help="Classes, or any terrain names."),
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Runs a class.")] = 20,
    seed: SeedOption = 0,
    planner: PlannerOption = None,
    checker: CheckerOption = None,
    limits: LimitsOption = None,
    heuristic: HeuristicOption = None,
    workers: WorkersOption = 1,
    config: ConfigOption = None,
    settings: SetOption = None,
    out: OutOption = Path("out/bench-traverses"),
    as_json: JsonOption = False,
    force: ForceOption = False,
) -> None:
    """Drive many traverses and print a table by class.

    Seeds run from --seed upwards; the same class and seed is the same ground under every
    configuration. DIR/traverses.jsonl gets a record a run and is gone on with next time: what it
    holds is not run again (--force starts anew).

    **Examples**

    mlnav bench traverses --classes 10/.07,15/.10 --seeds 20 --workers 2

    mlnav bench traverses --heuristic sobel --json
    """
    from mlnav.bench.traverses import CLASSES, class_table, traverses

    setup = assemble(
        config, settings, planner=planner, checker=checker, limits=limits, heuristic=heuristic
    )
    names = tuple(classes.split(",")) if classes else CLASSES
    if force:
        claim(out, ("traverses.jsonl",), force=True)
    with progress_bar("runs", len(names) * seeds) as update:
        records = traverses(
            names, range(seed, seed + seeds), setup, out / "traverses.jsonl", workers, update
        )
    rows = class_table(records, setup.planner.overthink_evaluations)
    if as_json:
        emit(
            {
                "planner": setup.planner.name,
                "checker": setup.checker.name,
                "limits": setup.limits.name,
                "heuristic": setup.heuristic.name,
                "seeds": [seed, seed + seeds - 1],
                "records": str(out / "traverses.jsonl"),
                "classes": rows,
            }
        )
    else:
        _print_traverses(rows)


def _print_soundness(report: dict[str, Any]) -> None:
    from rich.table import Table

    from mlnav.bench.statistics import Rate

    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in (
        "box" if "boxes" in report else "",
        "passed",
        "settled safe",
        "outside limits",
        "outside bounds",
        "safe rejected",
    ):
        table.add_column(name, no_wrap=True)

    def row(label: str, r: dict[str, Any]) -> None:
        rates = r["rates"]
        cells = [
            Rate(rates[k]["hits"], rates[k]["trials"]).text(3 if "outside" in k else 1)
            for k in ("passed", "settled_safe", "outside_limits", "outside_bounds", "safe_rejected")
        ]
        table.add_row(label, *cells)

    if "boxes" in report:
        for entry in report["boxes"]:
            row(f"{entry['box_half_width_m']:g} m", entry)
    else:
        for label, entry in report["by_terrain"].items():
            row(label, entry)
        row("all", report)
    output.print(
        f"{report['checker']}, {report['limits']}, seed {report['seed']}; 95 % Wilson intervals"
    )
    output.print(table)


def _print_traverses(rows: list[dict[str, Any]]) -> None:
    from rich.table import Table

    from mlnav.bench.statistics import Rate

    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in (
        "class",
        "success",
        "mean",
        "median",
        "p95",
        "overthink",
        "ineff.",
        "/m",
        "ms/cycle",
        "s/run",
    ):
        table.add_column(name, justify="left" if name in ("class", "success") else "right")

    def number(value: float | None, digits: int = 0, unit: str = "") -> str:
        return "-" if value is None else f"{value:z.{digits}f}{unit}"

    for r in rows:
        e, stages = r["evaluations_per_cycle"], r["stage_ms_per_cycle"]
        rate, overthink = r["success"], r["overthink_rate"]
        whole = sum(v for k, v in stages.items() if "." not in k)
        table.add_row(
            r["class"],
            Rate(rate["hits"], rate["trials"]).text(0),
            number(e["mean"]),
            number(e["median"]),
            number(e["p95"]),
            number(None if overthink is None else 100 * overthink, 1, " %"),
            number(r["inefficiency"], 2),
            number(r["evaluations_per_m"], 1),
            number(whole, 1),
            number(r["wall_s_per_run"], 1),
        )
    output.print("ACE evaluations a cycle, over all cycles; success with 95 % Wilson interval")
    output.print(table)
