"""`mlnav bench`: measure checkers and planners."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mlnav.cli.common import (
    ENDED,
    OK,
    BandOption,
    CheckerOption,
    ConfigOption,
    ForceOption,
    JsonOption,
    LimitsOption,
    NodataOption,
    OutOption,
    RefusedError,
    SeedOption,
    SetOption,
    VerticalUnitOption,
    WorkersOption,
    assemble,
    claim,
    emit,
    new_table,
    numbers,
    output,
    progress_bar,
    reading,
    say,
)
from mlnav.cli.compare import traverses_command

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode="markdown", help="Measure checkers and planners."
)

SUSPICIOUS_MOST = 1000
"""Cases that are written; an unsound checker fills disks otherwise."""


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
            help="all: slopes 0-25 deg x CFA 0-20 %, steps, ditches, ripples and the real maps"
            " there are, each also with heights scaled up to 1.6x.",
        ),
    ] = "all",
    band: BandOption = 1,
    nodata: NodataOption = None,
    vertical_unit: VerticalUnitOption = None,
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
    random_share: Annotated[
        float,
        typer.Option(
            "--random-share", min=0, max=1, help="Of the poses, settled from random starts too."
        ),
    ] = 0.01,
    replay: Annotated[
        Path | None,
        typer.Option("--replay", metavar="FILE", help="Rerun the cases of a suspicious.jsonl."),
    ] = None,
    out: OutOption = Path("out/bench-soundness"),
    as_json: JsonOption = False,
    force: ForceOption = False,
) -> None:
    """Settle random poses and compare with the checker: is it sound, and how timid is it?

    Every pose is settled from the nominal guess; those that passed from the middle of their bounds
    as well, a share of them from 7 random starts. `outside_limits` and `outside_bounds` count
    passed poses of which a settled state breaks a limit, or leaves what the checker reported;
    `safe_rejected` counts safe poses that were refused; `second_states` counts random starts that
    end in a clearly different state. Rates carry 95 % Wilson intervals.

    DIR gets soundness.json, and suspicious.jsonl with all that is needed to replay whatever was
    not as it should be (the first 1,000 cases). With --replay it ends with 1 if any still is not.

    **Examples**

    mlnav bench soundness --poses 5000000 --workers 2

    mlnav bench soundness -t 15/.10 --checker fixed_box --limits enav_like --box 0.15,0.20,0.25,0.30

    mlnav bench soundness --replay out/bench-soundness/suspicious.jsonl
    """
    from mlnav.io import JsonlWriter, write_json
    from mlnav.studies.cases import cases
    from mlnav.studies.soundness import SoundnessRequest, soundness

    if replay is not None:
        _replay(replay, as_json)
        return
    setup = assemble(config, settings, checker=checker, limits=limits)
    if box and setup.checker.name != "fixed_box":
        raise RefusedError(f"--box is of the checker fixed_box, not of {setup.checker.name}")
    request = SoundnessRequest(
        setup,
        terrain,
        poses,
        seed,
        numbers("--box", box),
        workers,
        random_share,
        reading(band, nodata, vertical_unit),
    )
    cases(request.terrain, request.reading)  # faults of it before anything is written
    found = 0
    claim(out, ("soundness.json", "suspicious.jsonl"), force)
    with (
        JsonlWriter(out / "suspicious.jsonl") as records,
        progress_bar("poses", poses) as update,
    ):

        def suspect(record: dict[str, Any]) -> None:
            nonlocal found
            found += 1
            if found <= SUSPICIOUS_MOST:
                records.write(record)

        report = soundness(request, update, suspect)
    report["suspicious"] = {"found": found, "written": min(found, SUSPICIOUS_MOST)}
    write_json(out / "soundness.json", report)
    if as_json:
        emit(report)
    else:
        _print_soundness(report)
        if found:
            output.print(f"{found} suspicious: {out / 'suspicious.jsonl'}", soft_wrap=True)


def _replay(path: Path, as_json: bool) -> None:
    from mlnav.io import read_jsonl
    from mlnav.studies.soundness import replay

    results = [replay(record) for record in read_jsonl(path)]
    again = [r for r in results if r["now"]]
    if as_json:
        emit({"cases": len(results), "again": len(again), "results": results})
    else:
        for r in results:
            x, y, heading = r["pose"]
            verdict = ", ".join(r["now"]) or (
                "in order now" if r["passed"] else f"rejected now: {', '.join(r['reasons'])}"
            )
            output.print(
                f"{r['label']}, cells {r['resolution_m']:.3f} m, ({x:.3f}, {y:.3f}, {heading:.4f}),"
                f" from {r['start']}: {', '.join(r['what'])} -> {verdict}",
                soft_wrap=True,
            )
        output.print(f"{len(results)} cases, {len(again)} not as they should be")
    raise typer.Exit(ENDED if again else OK)


@app.command("cost")
def cost_command(
    grounds: Annotated[
        str | None,
        typer.Option("--grounds", metavar="S/CFA,...", help="Classes, or any terrain names."),
    ] = None,
    poses: Annotated[int, typer.Option("--poses", min=1, help="On each ground.")] = 4000,
    seed: SeedOption = 0,
    limits: LimitsOption = None,
    config: ConfigOption = None,
    settings: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Time a pose of every checker on the same poses, in one run on one thread.

    The bare verdict is timed, as planners ask for it; tables that a checker makes for a map are
    told apart (map_ms). Inner steps are evaluations of the rover's chain.

    **Examples**

    mlnav bench cost

    mlnav bench cost --grounds 15/.10,map.tif --limits enav_like --json
    """
    from mlnav.studies.cost import GROUNDS, cost

    setup = assemble(config, settings, limits=limits)
    names = tuple(grounds.split(",")) if grounds else GROUNDS
    with progress_bar("grounds", len(names)) as update:
        report = cost(setup, names, poses, seed, progress=update)
    if as_json:
        emit(report)
    else:
        _print_cost(report)


app.command("traverses")(traverses_command)


@app.command("instructions")
def instructions_command(
    model: Annotated[
        list[Path] | None,
        typer.Option(
            "--model", metavar="DIR", help="A network's folder; the shipped ones if none."
        ),
    ] = None,
    networks_only: Annotated[
        bool, typer.Option("--networks-only", help="Keep the shipped counts of all the rest.")
    ] = False,
    folder: Annotated[
        Path | None,
        typer.Option("--folder", metavar="DIR", help="For builds, which are kept; else temporary."),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Where the counts go.")
    ] = Path("out/instructions.json"),
    as_json: JsonOption = False,
    force: ForceOption = False,
) -> None:
    """Count instructions of planner stages, poses and networks: what `compare` takes for flight.

    Everything is built twice, without and with vectors, and run under valgrind's callgrind, which
    takes minutes. A network is turned into C by emx-onnx-cgen and has to compute what onnxruntime
    does. `compare` reads the file that ships, python/mlnav/trials/instructions.json.

    **Examples**

    mlnav bench instructions

    mlnav bench instructions --networks-only --model out/models/small --json
    """
    import tempfile

    from mlnav.io import write_json
    from mlnav.risk import model_folder, model_names, read_model
    from mlnav.studies.instructions import count
    from mlnav.trials.flight_time import load_instructions, shipped_counts

    if out.exists() and not force:
        raise RefusedError(f"{out} is there: pass --force to replace it, or --out")
    shipped = [model_folder() / name for name in model_names()]
    models = [read_model(f) for f in (model or shipped)]
    kept = shipped_counts() if networks_only else None
    if networks_only and kept is None:
        raise RefusedError("--networks-only: no counts are shipped")
    with tempfile.TemporaryDirectory(prefix="mlnav-") as temporary:
        report = count(models, folder or Path(temporary), kept, say)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_json(out, report)
    load_instructions(out)
    if as_json:
        emit(report)
    else:
        _print_instructions(report)
        output.print(f"written: {out}", soft_wrap=True)


def _print_soundness(report: dict[str, Any]) -> None:
    from mlnav.stats import Rate

    headings = (
        "box" if "boxes" in report else "",
        "passed",
        "settled safe",
        "outside limits",
        "outside bounds",
        "safe rejected",
        "second states",
    )
    table = new_table(headings)

    def row(label: str, r: dict[str, Any]) -> None:
        rates = r["rates"]
        cells = [
            Rate(rates[k]["hits"], rates[k]["trials"]).text(3 if "outside" in k else 1)
            for k in ("passed", "settled_safe", "outside_limits", "outside_bounds", "safe_rejected")
        ] + [f"{r['second_states']['found']} of {r['starts']['random']}"]
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
    for entry in report.get("boxes", [report]):
        _print_findings(entry)


def _print_findings(r: dict[str, Any]) -> None:
    def listed(counts: dict[str, int]) -> str:
        return ", ".join(f"{name} {n:,}" for name, n in counts.items() if n) or "none"

    if "box_half_width_m" in r:
        output.print(f"box {r['box_half_width_m']:g} m")
    seconds = r["second_states"]
    unsafe = f" ({listed(seconds['unsafe_by'])})" if seconds["unsafe"] else ""
    for name, text in (
        ("settled states", listed(r["starts"])),
        ("outside limits by", listed(r["outside_limits_by"])),
        ("outside bounds by", listed(r["outside_bounds_by"])),
        ("safe rejected by", listed(r["safe_rejected_by"])),
        ("passed, not settled", listed(r["passed_not_settled"])),
        (
            "second states",
            f"{seconds['found']} of {r['starts']['random']:,} random starts,"
            f" {seconds['unsafe']} unsafe{unsafe}",
        ),
        (
            "a pose",
            f"{r['inner_steps_per_pose']:.2f} inner steps, {r['lookups_per_pose']:.0f} look-ups",
        ),
    ):
        output.print(f"  {name:20} {text}")


def _print_cost(report: dict[str, Any]) -> None:
    figures = ("passed", "us/pose", "us/passed", "us/rejected", "steps", "p95", "look-ups")
    table = new_table(("ground", "checker"), figures)

    def number(value: float | None) -> str:
        return "-" if value is None else f"{value:.2f}"

    for r in report["rows"]:
        times = (r["us_per_pose"], r["us_per_passed"], r["us_per_rejected"])
        steps = r["inner_steps"]
        table.add_row(
            r["ground"],
            r["checker"],
            f"{r['passed'] / r['poses']:.1%}",
            *(number(t) for t in times),
            number(steps["mean"]),
            f"{steps['p95']:.0f}",
            f"{r['lookups']['mean']:.0f}",
        )
    output.print(f"limits {report['limits']}; fastest of {report['repeats']} rounds, one thread")
    output.print(table)
    for name, ratios in report["ratios"].items():
        others = ", ".join(f"{v:.2f} x {other}" for other, v in ratios.items() if other != name)
        output.print(f"  {name:14} {others}")


def _print_instructions(report: dict[str, Any]) -> None:
    from mlnav.trials.flight_time import PER_S

    table = new_table(("instructions",), ("scalar", "ms", "vectorised", "ms"))
    builds = (report, report["vectorised"])
    rates = PER_S["rad750_class"], PER_S["hpsc_class"]

    def row(label: str, values: list[float]) -> None:
        cells = [(f"{v:,.0f}", f"{1e3 * v / r:.4g}") for v, r in zip(values, rates, strict=True)]
        table.add_row(label, *cells[0], *cells[1])

    for name, value in report["stages"].items():
        if not isinstance(value, dict):
            row(name, [b["stages"][name] for b in builds])
    for checker in report["stages"]["set_map"]:
        row(f"set_map {checker}", [b["stages"]["set_map"][checker] for b in builds])
    for checker, ends in report["checkers"].items():
        for end in ends:
            row(f"{checker} {end}", [b["checkers"][checker][end] for b in builds])
    for name in report["network"]:
        row(f"one map of {name}", [b["network"][name] for b in builds])
    output.print(table)
    for name, told in report["models"].items():
        for build in ("scalar", "vectorised"):
            t = told[build]
            output.print(
                f"{name}, {build}: {t['instructions_per_mac']:.2f} instructions a MAC,"
                f" {t['as_generated']:,} with the generator's convolutions, within"
                f" {t['max_difference']:.1e} of onnxruntime"
            )
    output.print(f"ms: {report['assumptions']}")


@app.command("physics")
def physics_command(
    what: Annotated[str, typer.Argument(metavar="settled|arcs|cost")],
    terrain: Annotated[
        str | None,
        typer.Option(
            "--terrain",
            "-t",
            metavar="FILE|RECIPE|CLASS,...",
            help="Grounds, `all` for every kind.",
        ),
    ] = None,
    count: Annotated[
        int, typer.Option("--count", min=1, help="Poses, arcs or metres on each ground.")
    ] = 100,
    seed: SeedOption = 0,
    checker: CheckerOption = None,
    limits: LimitsOption = None,
    workers: WorkersOption = 1,
    config: ConfigOption = None,
    settings: SetOption = None,
    out: OutOption = Path("out/bench-physics"),
    as_json: JsonOption = False,
    force: ForceOption = False,
) -> None:
    """Hold what is computed against what Bullet's physics does.

    settled: the rover is put down at random poses; where it rests against where settling says.
    arcs: turns and arcs that the checker passed are driven; states on the way against limits and
    the checker's bounds, and once more for arcs that it also passes with their tracking error.
    cost: processor time and memory by size of cells.

    DIR gets WHAT.jsonl, a record a terrain, which is gone on with next time (--force starts anew),
    and WHAT.json, as --json prints it.

    **Examples**

    mlnav bench physics settled -t 0/0,10/.10,20/.05,map.tif --count 100 --workers 2

    mlnav bench physics arcs --count 150 --workers 2

    mlnav bench physics cost -t 10/.07 --count 20
    """
    from mlnav.io import write_json
    from mlnav.studies import physics
    from mlnav.terrain import check_terrain

    if what not in physics.GROUNDS:
        raise RefusedError(f"{what!r} is none of {', '.join(physics.GROUNDS)}")
    setup = assemble(config, settings, checker=checker, limits=limits)
    if setup.world.name != "bullet":
        setup = setup.replaced(world="bullet")
    # The drive goes on whatever happens, to see all of it.
    setup = setup.replaced(["world.stop_at_limits=false"])
    grounds = terrain.split(",") if terrain else list(physics.GROUNDS[what])
    for ground in grounds:
        check_terrain(ground)  # faults of it before anything is written
    files = (f"{what}.jsonl", f"{what}.json")
    claim(out, files if force else (), force)
    if what == "cost":
        rows = [row for g in grounds for row in physics.cost(g, float(count), setup, seed)]
    else:
        with progress_bar("terrains", physics.terrains(what, grounds, count)) as update:
            records = physics.measure(
                what, grounds, count, setup, out / files[0],
                seed=seed, workers=workers, progress=update,
            )  # fmt: skip
        rows = (physics.settled_table if what == "settled" else physics.arcs_table)(records)
    report = {"what": what, "grounds": grounds, "count": count, "seed": seed, "rows": rows}
    write_json(out / files[1], report)
    if as_json:
        emit(report)
    else:
        _print_rows(rows)


def _print_rows(rows: list[dict[str, Any]]) -> None:
    """A column a row of the table, since they are few and wide."""
    table = new_table(("",), [str(row.get("case", row.get("resolution_m"))) for row in rows])
    flat = [dict(_flattened(row)) for row in rows]
    for key in dict.fromkeys(k for row in flat for k in row):
        table.add_row(key, *(_cell(row.get(key)) for row in flat))
    output.print(table)


def _flattened(row: dict[str, Any], prefix: str = "") -> Any:
    for key, value in row.items():
        if isinstance(value, dict) and {"rate", "wilson95"} <= value.keys():
            yield prefix + key, f"{value['hits']}"
        elif isinstance(value, dict):
            yield from _flattened(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)
