"""`mlnav bench`: measure checkers and planners."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer import Argument, Option

from mlnav.cli import common, options
from mlnav.cli.common import RefusedError, claim, output, print_rows, progress_bar, show
from mlnav.cli.compare import traverses_command
from mlnav.config import Config

app = common.new_app("Measure checkers and planners.")

COUNTS = Path("out/instructions.json")
SUSPICIOUS_MOST = 1000
"""Cases that are written at most; an unsound checker would fill the disk."""


@app.command("soundness")
@options.with_options
def soundness_command(
    *,
    setup: Annotated[Config, options.configuration("checker limits")],
    terrain: Annotated[
        str,
        Option(
            "--terrain",
            "-t",
            metavar="FILE|RECIPE|CLASS|all",
            help="all: slopes 0-25 deg x CFA 0-20 %, steps, ditches, ripples and the real maps"
            " found, each also with heights scaled up to 1.6x.",
        ),
    ] = "all",
    reading: options.Reading,
    poses: Annotated[int, Option(min=1, help="Total number.")] = 100_000,
    seed: options.Seed = 0,
    box: Annotated[
        str | None,
        Option(metavar="M,M,...", help="Half widths of fixed_box to compare on the same poses."),
    ] = None,
    workers: options.Workers = 1,
    random_share: Annotated[
        float,
        Option(min=0, max=1, help="Share of the poses that are also settled from random starts."),
    ] = 0.01,
    replay: Annotated[
        Path | None, Option(metavar="FILE", help="A suspicious.jsonl to rerun.")
    ] = None,
    out: options.Out = Path("out/bench-soundness"),
    as_json: options.Json = False,
    force: options.Force = False,
) -> None:
    """Settle random poses and compare with the checker: is it sound, how conservative is it?

    Every pose is settled from the nominal guess; poses that passed also from the middle of their
    bounds, and a share of them from 7 random starts. `outside_limits` and `outside_bounds` count
    passed poses with a settled state that violates a limit, or lies outside the reported bounds;
    `safe_rejected` counts safe poses that were rejected; `second_states` counts random starts that
    end in a clearly different state. Rates carry 95 % Wilson intervals.

    DIR gets soundness.json, and suspicious.jsonl with all that is needed to replay each unexpected
    state (the first 1,000 cases). With --replay the exit code is 1 if any case still fails.

    **Examples**

    - mlnav bench soundness --poses 5000000 --workers 2
    - mlnav bench soundness -t 15/.10 --checker fixed_box --limits enav_like --box 0.15,0.20,0.30
    - mlnav bench soundness --replay out/bench-soundness/suspicious.jsonl
    """
    from mlnav.io import JsonlWriter, write_json
    from mlnav.studies.cases import cases
    from mlnav.studies.soundness import SoundnessRequest, soundness

    if replay is not None:
        _replay(replay, as_json)
    if box and setup.checker.name != "fixed_box":
        raise RefusedError(f"--box is of the checker fixed_box, not of {setup.checker.name}")
    boxes = common.numbers("--box", box)
    request = SoundnessRequest(setup, terrain, poses, seed, boxes, workers, random_share, reading)
    cases(terrain, reading)  # a bad terrain is an error before anything is written
    found = 0
    claim(out, ("soundness.json", "suspicious.jsonl"), force)
    with JsonlWriter(out / "suspicious.jsonl") as records, progress_bar("poses", poses) as update:

        def suspect(record: dict[str, Any]) -> None:
            nonlocal found
            found += 1
            if found <= SUSPICIOUS_MOST:
                records.write(record)

        report = soundness(request, update, suspect)
    report["suspicious"] = {"found": found, "written": min(found, SUSPICIOUS_MOST)}
    write_json(out / "soundness.json", report)
    show(report, as_json, _print_soundness)
    if found and not as_json:
        output.print(f"{found} suspicious: {out / 'suspicious.jsonl'}", soft_wrap=True)


def _replay(path: Path, as_json: bool) -> NoReturn:
    from mlnav.io import read_jsonl
    from mlnav.studies.soundness import replay

    results = [replay(record) for record in read_jsonl(path)]
    again = sum(bool(r["now"]) for r in results)
    show({"cases": len(results), "again": again, "results": results}, as_json, _print_replay)
    raise typer.Exit(common.ENDED if again else common.OK)


def _print_replay(report: dict[str, Any]) -> None:
    for r in report["results"]:
        x, y, heading = r["pose"]
        verdict = ", ".join(r["now"]) or (
            "in order now" if r["passed"] else f"rejected now: {', '.join(r['reasons'])}"
        )
        output.print(
            f"{r['label']}, cells {r['resolution_m']:.3f} m, ({x:.3f}, {y:.3f}, {heading:.4f}),"
            f" from {r['start']}: {', '.join(r['what'])} -> {verdict}",
            soft_wrap=True,
        )
    output.print(f"{report['cases']} cases, {report['again']} not as they should be")


def _print_soundness(report: dict[str, Any]) -> None:
    from mlnav.stats import Rate

    digits = dict(passed=1, settled_safe=1, outside_limits=3, outside_bounds=3, safe_rejected=1)

    def row(label: str, r: dict[str, Any]) -> list[str]:
        counts = ((r["rates"][name], n) for name, n in digits.items())
        rates = [Rate(c["hits"], c["trials"]).text(n) for c, n in counts]
        return [label, *rates, f"{r['second_states']['found']} of {r['starts']['random']}"]

    boxes = report.get("boxes")
    rows = [*report.get("by_terrain", {}).items(), ("all", report)]
    if boxes:
        rows = [(f"{entry['box_half_width_m']:g} m", entry) for entry in boxes]
    output.print(
        f"{report['checker']}, {report['limits']}, seed {report['seed']}; 95 % Wilson intervals"
    )
    headings = (*(name.replace("_", " ") for name in digits), "second states")
    print_rows(("box" if boxes else "", *headings), (), [row(*entry) for entry in rows])
    for entry in boxes or [report]:
        _print_findings(entry)


def _print_findings(r: dict[str, Any]) -> None:
    def listed(counts: dict[str, int]) -> str:
        return ", ".join(f"{name} {n:,}" for name, n in counts.items() if n) or "none"

    if "box_half_width_m" in r:
        output.print(f"box {r['box_half_width_m']:g} m")
    seconds = r["second_states"]
    unsafe = f" ({listed(seconds['unsafe_by'])})" if seconds["unsafe"] else ""
    texts = {
        "settled states": listed(r["starts"]),
        "outside limits by": listed(r["outside_limits_by"]),
        "outside bounds by": listed(r["outside_bounds_by"]),
        "safe rejected by": listed(r["safe_rejected_by"]),
        "passed, not settled": listed(r["passed_not_settled"]),
        "second states": f"{seconds['found']} of {r['starts']['random']:,} random starts,"
        f" {seconds['unsafe']} unsafe{unsafe}",
        "a pose": f"{r['inner_steps_per_pose']:.2f} inner steps,"
        f" {r['lookups_per_pose']:.0f} look-ups",
    }
    for name, text in texts.items():
        output.print(f"  {name:20} {text}")


@app.command("sweeps")
@options.with_options
def sweeps_command(
    *,
    setup: Annotated[Config, options.configuration("checker limits")],
    terrain: Annotated[str, Option("--terrain", "-t", help="GeoTIFF, recipe, class, all.")] = "all",
    motions: Annotated[int, Option("--motions", "-n", min=1, help="Number.")] = 3000,
    spacing_m: Annotated[
        float, Option("--spacing", min=0.0005, metavar="M", help="Between settled states.")
    ] = 0.02,
    reading: options.Reading,
    seed: options.Seed = 0,
    workers: options.Workers = 1,
    out: options.Out = Path("out/bench-sweeps"),
    as_json: options.Json = False,
    force: options.Force = False,
) -> None:
    """Settle the rover all along random motions and compare with the checker on their sweeps.

    Motions are those whose poses pass one by one. On certified sweeps no settled state may be
    unsafe or outside the reported bounds; `passed` is the share of the truly safe motions that
    the checker passes; us/m compares its time with that of poses one by one.

    DIR gets sweeps.json, and suspicious.jsonl with the sweeps that hold such a state.

    **Examples**

    - mlnav bench sweeps -t 15/.10 --motions 2000 --workers 2
    - mlnav bench sweeps --spacing 0.001 --set tracking.across_m=0.02
    """
    from mlnav.io import JsonlWriter, write_json
    from mlnav.studies.cases import cases
    from mlnav.studies.sweeps import SweepsRequest, sweeps

    cases(terrain, reading)  # a bad terrain is an error before anything is written
    claim(out, ("sweeps.json", "suspicious.jsonl"), force)
    request = SweepsRequest(setup, terrain, motions, spacing_m, seed, workers, reading)
    with (
        JsonlWriter(out / "suspicious.jsonl") as records,
        progress_bar("motions", motions) as update,
    ):
        report = sweeps(request, update, records.write)
    write_json(out / "sweeps.json", report)
    show(report, as_json, _print_sweeps)


def _print_sweeps(report: dict[str, Any]) -> None:
    from mlnav.stats import Rate

    def row(label: str, r: dict[str, Any]) -> list[str]:
        states = [f"{r['states'][name]:,}" for name in ("states", "unsafe", "outside", "folds")]
        rates = [r["motions"][kind]["passed"] for kind in ("arc", "turn", "resteer")]
        passed = [Rate(c["hits"], c["trials"]).text(1) for c in rates]
        times = [r["us_per_m"][name] for name in ("sweeps", "poses")]
        microseconds = ["-" if t is None else f"{t:.0f}" for t in times]
        return [label, f"{r['certified_km']:.3f}", *states, *passed, *microseconds]

    output.print(
        f"{report['checker']}, {report['limits']}, seed {report['seed']}, states every"
        f" {report['spacing_m']:g} m; % of truly safe motions passed, 95 % Wilson intervals"
    )
    headings = ("km", "states", "unsafe", "outside", "folds", "arcs", "turns", "re-steerings")
    rows = [row(*entry) for entry in (*report["by_terrain"].items(), ("all", report))]
    print_rows(("", *headings, "us/m", "pose by pose"), (), rows)


@app.command("cost")
@options.with_options
def cost_command(
    *,
    grounds: Annotated[str | None, Option(metavar="S/CFA,...", help="Or any terrains.")] = None,
    poses: Annotated[int, Option(min=1, help="Number on each terrain.")] = 4000,
    seed: options.Seed = 0,
    setup: Annotated[Config, options.configuration("limits")],
    as_json: options.Json = False,
) -> None:
    """Time every checker on the same poses, in one run on one thread.

    Only the verdict is timed, as planners ask for it; the tables that a checker builds for a map
    are reported separately (map_ms). Inner steps are evaluations of the rover's chain.

    **Examples**

    - mlnav bench cost
    - mlnav bench cost --grounds 15/.10,map.tif --limits enav_like --json
    """
    from mlnav.studies.cost import GROUNDS, cost

    names = tuple(grounds.split(",")) if grounds else GROUNDS
    with progress_bar("grounds", len(names)) as update:
        report = cost(setup, names, poses, seed, progress=update)
    show(report, as_json, _print_cost)


def _print_cost(report: dict[str, Any]) -> None:
    def row(r: dict[str, Any]) -> list[str]:
        steps = r["inner_steps"]
        times = (r["us_per_pose"], r["us_per_passed"], r["us_per_rejected"], steps["mean"])
        shown = ("-" if t is None else f"{t:.2f}" for t in times)
        counts = (f"{steps['p95']:.0f}", f"{r['lookups']['mean']:.0f}")
        return [r["ground"], r["checker"], f"{r['passed'] / r['poses']:.1%}", *shown, *counts]

    output.print(f"limits {report['limits']}; fastest of {report['repeats']} rounds, one thread")
    figures = ("passed", "us/pose", "us/passed", "us/rejected", "steps", "p95", "look-ups")
    print_rows(("ground", "checker"), figures, map(row, report["rows"]))
    for name, ratios in report["ratios"].items():
        others = ", ".join(f"{v:.2f} x {other}" for other, v in ratios.items() if other != name)
        output.print(f"  {name:14} {others}")


app.command("traverses")(traverses_command)


@app.command("instructions")
def instructions_command(
    model: Annotated[
        list[Path] | None,
        Option(metavar="DIR", help="Folder of a network; default: the shipped ones."),
    ] = None,
    networks_only: Annotated[
        bool, Option("--networks-only", help="Count networks; keep the other shipped counts.")
    ] = False,
    folder: Annotated[Path | None, Option(metavar="DIR", help="Keep the builds here.")] = None,
    out: Annotated[
        Path, Option("--out", "-o", metavar="FILE", help="File of the counts.")
    ] = COUNTS,
    as_json: options.Json = False,
    force: options.Force = False,
) -> None:
    """Count instructions of planner stages, poses and networks, for modelled flight times.

    Everything is built twice, without and with vector instructions, and run under valgrind's
    callgrind, which takes minutes. emx-onnx-cgen turns a network into C, which must compute the
    same as onnxruntime. `compare` reads the shipped file, python/mlnav/trials/instructions.json.

    **Examples**

    - mlnav bench instructions
    - mlnav bench instructions --networks-only --model out/models/small --json
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
        report = count(models, folder or Path(temporary), kept, common.say)
    write_json(out, report)
    load_instructions(out)
    show(report, as_json, _print_instructions)
    if not as_json:
        output.print(f"written: {out}", soft_wrap=True)


def _print_instructions(report: dict[str, Any]) -> None:
    from mlnav.trials.flight_time import PER_S

    rates = PER_S["rad750_class"], PER_S["hpsc_class"]
    counts = [dict(_counts(build)) for build in (report, report["vectorised"])]

    def row(label: str) -> list[str]:
        values = [(count[label], rate) for count, rate in zip(counts, rates, strict=True)]
        return [label, *(text for v, r in values for text in (f"{v:,.0f}", f"{1e3 * v / r:.4g}"))]

    print_rows(("instructions",), ("scalar", "ms", "vectorised", "ms"), map(row, counts[0]))
    for name, details in report["models"].items():
        for build in ("scalar", "vectorised"):
            counted = details[build]
            output.print(
                f"{name}, {build}: {counted['instructions_per_mac']:.2f} instructions a MAC,"
                f" {counted['as_generated']:,} with the generator's convolutions, within"
                f" {counted['max_difference']:.1e} of onnxruntime"
            )
    output.print(f"ms: {report['assumptions']}")


def _counts(build: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Counts of one build by their label in the table."""
    stages = build["stages"]
    yield from ((name, value) for name, value in stages.items() if not isinstance(value, dict))
    yield from ((f"set_map {checker}", value) for checker, value in stages["set_map"].items())
    for checker, ends in build["checkers"].items():
        yield from ((f"{checker} {end}", value) for end, value in ends.items())
    yield from ((f"one map of {name}", value) for name, value in build["network"].items())


@app.command("physics")
@options.with_options
def physics_command(
    *,
    what: Annotated[str, Argument(metavar="settled|arcs|cost")],
    terrain: Annotated[
        str | None,
        Option("--terrain", "-t", metavar="FILE|RECIPE|CLASS,...", help="`all` for every kind."),
    ] = None,
    count: Annotated[int, Option(min=1, help="Poses, arcs or metres on each terrain.")] = 100,
    seed: options.Seed = 0,
    setup: Annotated[Config, options.configuration("checker limits")],
    workers: options.Workers = 1,
    out: options.Out = Path("out/bench-physics"),
    as_json: options.Json = False,
    force: options.Force = False,
) -> None:
    """Compare computed states with Bullet's physics.

    settled: the rover is put down at random poses; its state at rest against the settled state.
    arcs: turns and arcs that the checker passed are driven; states on the way against limits and
    the checker's bounds, and again for arcs that also pass with their tracking error.
    cost: processor time and memory by size of cells.

    DIR gets WHAT.jsonl, one record per terrain, which the next run continues (--force starts anew),
    and WHAT.json, as --json prints it.

    **Examples**

    - mlnav bench physics settled -t 0/0,10/.10,20/.05,map.tif --count 100 --workers 2
    - mlnav bench physics arcs --count 150 --workers 2
    - mlnav bench physics cost -t 10/.07 --count 20
    """
    from mlnav.io import write_json
    from mlnav.studies import physics
    from mlnav.terrain import check_terrain

    if what not in physics.GROUNDS:
        raise RefusedError(f"{what!r} is none of {', '.join(physics.GROUNDS)}")
    if setup.world.name != "bullet":
        setup = setup.replaced(world="bullet")
    # An unsafe state must not end a drive: all states are compared.
    setup = setup.replaced(["world.stop_at_limits=false"])
    grounds = terrain.split(",") if terrain else list(physics.GROUNDS[what])
    for ground in grounds:
        check_terrain(ground)  # a bad terrain is an error before anything is written
    records, result = f"{what}.jsonl", f"{what}.json"
    claim(out, (records, result) if force else (), force)
    if what == "cost":
        rows = [row for g in grounds for row in physics.cost(g, float(count), setup, seed)]
    else:
        with progress_bar("terrains", physics.terrains(what, grounds, count)) as update:
            rows = physics.measure(
                what, grounds, count, setup, out / records,
                seed=seed, workers=workers, progress=update,
            )  # fmt: skip
    report = {"what": what, "grounds": grounds, "count": count, "seed": seed, "rows": rows}
    write_json(out / result, report)
    show(report, as_json, _print_physics)


def _print_physics(report: dict[str, Any]) -> None:
    """A terrain or cell size is a column, since they are few and their rows many."""

    def cell(value: Any) -> str:
        return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)

    rows = report["rows"]
    flat = [dict(_flattened(row)) for row in rows]
    names = dict.fromkeys(name for row in flat for name in row)
    columns = [str(row.get("case", row.get("resolution_m"))) for row in rows]
    print_rows(("",), columns, [[k, *(cell(row.get(k)) for row in flat)] for k in names])


def _flattened(row: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in row.items():
        if isinstance(value, dict) and {"rate", "wilson95"} <= value.keys():
            yield prefix + key, f"{value['hits']}"
        elif isinstance(value, dict):
            yield from _flattened(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value
