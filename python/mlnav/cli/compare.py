"""`mlnav compare`: planners, heuristics and sensors on the same terrains, starts and goals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from mlnav.cli.bench import WorkersOption, numbers
from mlnav.cli.common import (
    INTERRUPTED,
    AllowCoarseOption,
    BandOption,
    CheckerOption,
    ConfigOption,
    ForceOption,
    JsonOption,
    LimitsOption,
    NodataOption,
    OutOption,
    RefusedError,
    SetOption,
    VerticalUnitOption,
    WorldOption,
    assemble,
    claim,
    emit,
    file_name,
    output,
    progress_bar,
    reading,
    say,
)

FILES = ("records.jsonl", "states.jsonl", "compare.json", "compare.md", "compare.png", "states")


def compare_command(
    more: Annotated[
        list[str] | None, typer.Argument(metavar="[TERRAIN]...", help="Further terrains.")
    ] = None,
    terrain: Annotated[
        list[str] | None,
        typer.Option(
            "--terrain",
            "-t",
            metavar="FILE|RECIPE|CLASS",
            help="GeoTIFF, recipe, or class such as 10/.07; several after it, or the option again.",
        ),
    ] = None,
    band: BandOption = 1,
    nodata: NodataOption = None,
    vertical_unit: VerticalUnitOption = None,
    planners: Annotated[str | None, typer.Option("--planners", metavar="A,B,...")] = None,
    heuristics: Annotated[
        str,
        typer.Option(
            "--heuristics",
            metavar="C,D,...",
            help="Names, each with settings of its own after a colon if need be:"
            " none,sobel:weight_per_m=20;to_go_fraction=0",
        ),
    ] = "none,sobel",
    sensors: Annotated[
        str | None, typer.Option("--sensors", metavar="E,F,...", help="truth, stereo")
    ] = None,
    checker: CheckerOption = None,
    limits: LimitsOption = None,
    world: WorldOption = None,
    pairs: Annotated[
        int, typer.Option("--pairs", min=1, help="Start-goal pairs of each terrain.")
    ] = 10,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Of the first pair's terrain, and of drawn pairs.")
    ] = 0,
    rocks: Annotated[
        str | None,
        typer.Option(
            "--rocks",
            metavar="CFA,...",
            help="Drive each GeoTIFF with rocks of these covers on it; 0 is as it is.",
        ),
    ] = None,
    size: Annotated[
        float | None,
        typer.Option(
            "--size",
            min=2.0,
            metavar="M",
            help="Draw pairs in the square of this side in the middle of a GeoTIFF.",
        ),
    ] = None,
    budget: Annotated[
        int | None, typer.Option("--ace-budget", min=1, help="ACE evaluations a cycle may spend.")
    ] = None,
    same_state: Annotated[
        int,
        typer.Option(
            "--same-state",
            min=0,
            metavar="K",
            help="Also plan one cycle of everyone from K states a terrain of the first contender.",
        ),
    ] = 0,
    workers: WorkersOption = 1,
    allow_coarse: AllowCoarseOption = False,
    config: ConfigOption = None,
    settings: SetOption = None,
    out: OutOption = Path("out/compare"),
    pictures: Annotated[bool, typer.Option(help="Draw compare.png and states/*.png.")] = True,
    as_json: JsonOption = False,
    force: ForceOption = False,
) -> None:
    """Drive the same pairs with every contender, planner x heuristic x sensor, and compare.

    Classes and recipes: pair k is the terrain of seed + k with its own start and goal. GeoTIFFs:
    pairs are drawn, both ends safe to stand on by settling, at least 20 m (or 60 % of the usable
    extent) apart, and joined in a cheap screen: a flood over a 0.5 m lattice of points where the
    settled rover is within limits at any of 8 headings. With rocks, all this holds on the rocky
    ground; 2.5 m about start and goal are kept clear.

    The first contender is what others are measured against. `ratio` of A/B is ACE evaluations a
    cycle of A over those of B, over pairs where both succeed, with a paired bootstrap interval.

    DIR gets records.jsonl, a record a run, which is gone on with next time (--force starts anew);
    compare.json, as --json prints it; compare.md, its tables; compare.png; and states/*.png, the
    cycle of each terrain where the first contender spent most, as everyone would plan it.

    **Examples**

    mlnav compare --terrain 10/.07 15/.10 --heuristics none,sobel --pairs 20 --workers 2

    mlnav compare -t map.tif --rocks 0,0.05,0.10 --size 32 --heuristics none,network --pairs 20

    mlnav compare -t 15/.10 --heuristics "none,sobel:weight_per_m=20" --same-state 40 --json
    """
    from mlnav.bench.compare import Comparison, compare, contenders, entries, same_states
    from mlnav.bench.compare_report import markdown, report
    from mlnav.io import write_json, write_text
    from mlnav.risk.models import ModelError, require_model
    from mlnav.studies.instructions import load_instructions

    specs = [part for text in [*(terrain or []), *(more or [])] for part in _parts(text)]
    if not specs:
        raise RefusedError("--terrain: a GeoTIFF, recipe or class is needed")
    base = assemble(config, settings, allow_coarse, checker=checker, limits=limits, world=world)
    if budget is not None:
        base = base.replaced([f"traverse.ace_budget={budget}"])
    comparison = Comparison(
        base,
        contenders(
            base,
            planner=(planners or base.planner.name).split(","),
            heuristic=heuristics.split(","),
            sensor=(sensors or base.sensor.name).split(","),
        ),
        entries(
            specs,
            numbers("--rocks", rocks) or (0.0,),
            reading(band, nodata, vertical_unit),
            base,
        ),
        pairs,
        seed,
        size,
    )
    counts = load_instructions()
    for contender in comparison.contenders:
        try:
            require_model(contender.config)
        except ModelError as fault:
            raise RefusedError(f"contender {contender.name}: {fault}") from fault
    claim(out, _present(out) if force else (), force)
    total = len(comparison.entries) * pairs * len(comparison.contenders)
    try:
        with progress_bar("runs", total) as update:
            runs = compare(comparison, out / "records.jsonl", workers, update)
        states: list[dict[str, Any]] = []
        if same_state:
            with progress_bar("states", total) as update:
                states = same_states(
                    comparison, runs, same_state, out / "states.jsonl", workers, update
                )
    except KeyboardInterrupt:
        say(f"interrupted; what has ended is in {out}, the same command goes on with it")
        raise typer.Exit(INTERRUPTED) from None
    summary = report(comparison, runs, states, counts) | {"out": str(out)}
    write_json(out / "compare.json", summary)
    write_text(out / "compare.md", markdown(summary))
    if pictures:
        _draw(comparison, runs, summary, out)
    if as_json:
        emit(summary)
    else:
        print_report(summary)


def _parts(text: str) -> list[str]:
    """Terrains of one word: commas part them, unless a file is named so."""
    return [text] if Path(text).exists() else [p for p in text.split(",") if p]


def _present(out: Path) -> Sequence[str]:
    return [name for name in FILES[:-1] if (out / name).exists()]


def _draw(comparison: Any, runs: list[dict[str, Any]], summary: dict[str, Any], out: Path) -> None:
    from mlnav import viz
    from mlnav.bench.compare import pair_ground, worst_state
    from mlnav.viz.compare import compare_figure, state_figure, view

    viz.save_figure(compare_figure(summary, runs), out / "compare.png")
    first = comparison.contenders[0]
    for entry in comparison.entries:
        found = worst_state(comparison, runs, entry)
        if found is None:
            continue
        state, cycle, spent = found
        size_m, common = comparison.size_m, comparison.common
        ground = pair_ground(entry, state.pair, comparison.seed, size_m, common)
        views = [
            view(c.name, ground.terrain, c.config, state.pose, ground.goal, state.steered_per_m)
            for c in comparison.contenders
        ]
        figure = state_figure(
            ground.terrain,
            views,
            state.pose,
            ground.goal,
            f"{entry.label}: where {first.name} spent most",
            f"pair {state.pair}, cycle {cycle + 1} of {first.name}, {spent} ACE evaluations there;"
            " here everyone plans without memory of earlier cycles",
        )
        viz.save_figure(figure, out / "states" / f"{file_name(entry.label)}.png")


# ----------------------------------------------------------------------------------------- output


def print_report(summary: dict[str, Any]) -> None:
    """Endings, then effort: of each a table for each terrain, a line a contender."""
    names = list(summary["contenders"])
    most = summary["overthink_evaluations"]
    blocks = dict(summary["terrains"])
    if len(blocks) > 1:
        blocks["all"] = summary["overall"]
    output.print(
        f"{summary['checker']}, {summary['limits']}; {summary['pairs']} pairs a terrain from seed"
        f" {summary['seed']}"
    )
    output.print("[bold]Endings[/]: unsafe runs with 95 % interval and per driven km, then others")
    _print_tables(
        ("unsafe", "of runs", "/km", "goal reached", "no safe path", "other"),
        {label: [(n, _endings(b["contenders"][n])) for n in names] for label, b in blocks.items()},
    )  # fmt: skip
    output.print(
        f"[bold]Effort[/]: ACE evaluations a cycle: mean, p95, mean over floor, share above {most}"
    )
    _print_tables(
        ("mean", "p95", "/floor", f">{most}", "ineff.", "infer", "ms", "ratio"),
        {label: [(n, _cells(b, names[0], n)) for n in names] for label, b in blocks.items()},
    )  # fmt: skip
    output.print(
        f"infer: risk maps a cycle; ms: wall time a cycle, inference included. ratio: evaluations"
        f" of {names[0]} over this one's, where both succeed, with 95 % interval"
    )
    _print_same_states(summary["overall"], names)
    flight = summary["overall"]["contenders"]
    for i, line in enumerate(summary["assumptions"]):
        figures = ", ".join(f"{n} {_flight(flight[n]['modelled_flight'], i)}" for n in names)
        output.print(f"modelled flight time a cycle {line}" + (f": {figures}" if figures else ""))
    for name in names:
        if flight[name]["out_of_work"] is not None:
            output.print(f"[bold red]{name}[/]: {flight[name]['out_of_work']}", soft_wrap=True)
        for event in flight[name]["events"]:
            output.print(f"[bold]{name}[/]: {event}")


def _print_tables(
    columns: Sequence[str], rows: Mapping[str, Sequence[tuple[str, Sequence[str]]]]
) -> None:
    """A table for each terrain; numbers are whole, and names folded where the screen is narrow."""
    from rich.markup import escape, render
    from rich.table import Table

    everything = [row for mine in rows.values() for row in mine]
    widths = [
        max([len(title), *(len(render(cells[i])) for _, cells in everything)])
        for i, title in enumerate(columns)
    ]
    widest = max(len(name) for name, _ in everything)
    room = output.width - sum(width + 1 for width in widths) - 1
    for i, label in enumerate(rows):
        output.print(f"[bold]{escape(label)}[/]", soft_wrap=True)
        table = Table(box=None, padding=(0, 1, 0, 0), show_header=i == 0)
        # The same width in all tables, so that their columns stand below each other.
        table.add_column("", width=max(10, min(widest, room)), overflow="fold")
        for title, width in zip(columns, widths, strict=True):
            table.add_column(title, justify="right", min_width=width, no_wrap=True)
        for name, cells in rows[label]:
            table.add_row(escape(name), *cells)
        output.print(table)


def _endings(contender: dict[str, Any]) -> list[str]:
    from mlnav.stats import Rate

    safety, endings = contender["safety"], contender["endings"]
    unsafe = safety["unsafe"]
    colour = "red" if unsafe["hits"] else "green"
    runs = contender["runs"]
    return [
        f"[{colour}]{unsafe['hits']}/{unsafe['trials']}[/]",
        Rate(unsafe["hits"], unsafe["trials"]).text(1),
        number(safety["unsafe_per_km"], 2),
        f"{endings['goal reached']}/{runs}",
        str(endings["no safe path"]),
        str(endings["other"]),
    ]


def _flight(flight: dict[str, Any], model: int) -> str:
    if model == 0:
        return _seconds(flight["ace_s_per_cycle"])
    seconds = flight.get("instructions_s_per_cycle")
    if seconds is None:
        return str(flight.get("note", "-"))
    return " / ".join(_seconds(v) for v in seconds.values())


def _seconds(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.2f} s" if value >= 0.1 else f"{1e3 * value:.2g} ms"


def _print_same_states(overall: dict[str, Any], names: list[str]) -> None:
    if "same_state_ratio" not in overall:
        return
    told = []
    for name in names[1:]:
        key = f"{names[0]}/{name}"
        interval = overall["same_state_ratio_ci95"][key]
        spread = "" if interval is None else f" [{interval[0]:.2f}, {interval[1]:.2f}]"
        states = overall["same_states"][key]
        told.append(f"{name} {number(overall['same_state_ratio'][key], 2)}{spread} of {states}")
    output.print(f"ratio from the same states, without memory: {', '.join(told)}")


def _cells(block: dict[str, Any], first: str, name: str) -> list[str]:
    c = block["contenders"][name]
    counts = c["evaluations_per_cycle"]
    overthink = c["overthink_rate"]
    ratio = "-"
    if name != first:
        key = f"{first}/{name}"
        ratio = number(block["ratio"][key], 2)
        interval = block["ratio_ci95"][key]
        if interval is not None:
            ratio += f" [{interval[0]:.2f}, {interval[1]:.2f}]"
    return [
        number(counts["mean"], 1),
        number(counts["p95"], 0),
        number(c["evaluations_over_floor"], 2),
        number(None if overthink is None else 100 * overthink, 1, "%"),
        number(c["inefficiency"], 2),
        number(c["inferences_per_cycle"], 2),
        number(c["wall_ms_per_cycle"], 1),
        ratio,
    ]


def number(value: float | None, digits: int, unit: str = "") -> str:
    """A number of a table."""
    return "-" if value is None else f"{value:z.{digits}f}{unit}"
