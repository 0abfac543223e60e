"""`mlnav traverse`: a whole run, with records and pictures."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from mlnav.cli import common, options
from mlnav.cli.common import RefusedError, duration, progress_bar, say
from mlnav.config import Config

FILES = (
    "traverse.png", "unsafe.png", "traverse.gif", "traverse.mp4", "view.png", "still-start.png",
    "still-tilt.png", "still-end.png", "still-overview.png", "cycles.jsonl", "summary.json",
    "config.yaml",
)  # fmt: skip


@options.with_options
def traverse_command(
    *,
    terrain: options.Terrain = "demo",
    reading: options.Reading,
    ends: options.Ends,
    setup: Annotated[
        Config, options.configuration("planner checker limits heuristic world sensor allow_coarse")
    ],
    seed: options.Seed = 0,
    budget: Annotated[int | None, Option(min=1, help="ACE evaluations per cycle.")] = None,
    out: options.Out = Path("out/traverse"),
    gif: options.Gif = False,
    picture: Annotated[bool, Option(help="Draw traverse.png, and unsafe.png.")] = True,
    video: Annotated[
        bool,
        Option("--video", help="Film in 3D: traverse.mp4, stills, and view.png from the mast."),
    ] = False,
    film_every: Annotated[
        int,
        Option(
            metavar="N", min=1, help="Film every N-th frame of 8 cm of driving, N times as long."
        ),
    ] = 3,
    rerun: options.Rerun = None,
    as_json: options.Json = False,
    force: options.Force = False,
) -> None:
    """Drive a rover from start to goal and draw the run.

    DIR gets traverse.png, for an unsafe run also unsafe.png (the pose, the violated constraint,
    and its value against the limit along the path), cycles.jsonl (one record per cycle, written as
    it ends), summary.json and the whole config.yaml. Start and goal default to those of the
    terrain; on a map without any, to two safe places near its middle, as far apart as possible.
    --video and --rerun need the extra `viz`.

    **Examples**

    - mlnav traverse --terrain demo --seed 1 --out out/demo
    - mlnav traverse -t 10/.07 --heuristic sobel --seed 4 --json
    - mlnav traverse -t map.tif --start=-10,-8 --goal=11,9 --set traverse.max_cycles=80
    - mlnav traverse -t 15/.10 --world bullet --video --rerun out/run.rrd
    """
    from mlnav import sim
    from mlnav.io import JsonlWriter, write_json, write_text
    from mlnav.risk.models import require_model

    if budget is not None:
        setup = setup.replaced([f"traverse.ace_budget={budget}"])
    _check_extras(video, rerun)
    ground = common.driven_terrain(terrain, seed, reading, setup)
    start, goal, heading_rad = ends
    endpoints = "given" if start or goal else "terrain"
    if endpoints == "terrain" and (ground.start_m is None or ground.goal_m is None):
        start, goal = sim.default_endpoints(ground, setup)
        endpoints = "default"
        say(
            f"{ground.name} names no start and goal: driving from"
            f" ({start[0]:g}, {start[1]:g}) to ({goal[0]:g}, {goal[1]:g})"
        )
    goal = sim.checked_point("goal", goal or ground.goal_m, ground)
    pose = sim.start_pose(ground, start, goal, heading_rad)
    distance = math.dist(pose[:2], goal)
    require_model(setup)
    # What may fail comes before the output folder is claimed.
    navigator = sim.SimulatedNavigator(ground, setup, seed)
    driven_world = sim.make_world(ground, setup)
    common.claim(out, FILES, force, rerun)
    write_text(out / "config.yaml", setup.to_yaml())

    with contextlib.ExitStack() as open_files:
        records = open_files.enter_context(JsonlWriter(out / "cycles.jsonl"))
        update = open_files.enter_context(progress_bar(ground.name, distance))
        written = 0

        def observe(record: sim.CycleRecord, *_: object) -> None:
            nonlocal written
            records.write(record.as_dict())
            written += 1
            left = math.dist(record.end[:2], goal)
            update(distance - left, f"cycle {record.cycle + 1}, {left:.0f} m to go")

        observers: list[Callable[..., None]] = [observe]
        busiest = recording = None
        if video:
            from mlnav.viz.film import Busiest

            busiest = Busiest()
            observers.append(busiest)
        if rerun is not None:
            from mlnav.viz.recording import Recording

            recording = Recording(rerun, ground, setup, pose, goal)
            observers.append(open_files.enter_context(recording))
        result = sim.traverse(
            ground, setup, start, goal, seed, heading_rad=heading_rad, observers=observers,
            navigator=navigator, world=driven_world,
        )  # fmt: skip
        for record in result.cycles[written:]:  # an interrupt may skip the last observer call
            records.write(record.as_dict())
        if recording is not None:
            recording.finish(result)

    summary: dict[str, Any] = result.summary() | {"endpoints": endpoints, "out": str(out)}
    write_json(out / "summary.json", summary)
    if result.outcome == "interrupted":
        say(f"interrupted after {len(result.cycles)} cycles; records are in {out}")
    elif picture or gif:
        _draw(ground, result, setup, out, picture, gif)
    common.show(summary, as_json, _print_summary)
    for event in summary["events"]["distinct"]:
        say(event)
    idle = sim.out_of_work(summary["risk_asked"], summary["risk_missing"])
    if idle is not None:
        say(f"[bold]{summary['heuristic']}[/]: {idle}")
    if busiest is not None and result.outcome != "interrupted":
        _film(ground, result, setup, out, busiest, film_every)
    if result.outcome == "interrupted":
        raise typer.Exit(common.INTERRUPTED)
    raise typer.Exit(common.OK if result.success else common.ENDED)


def _draw(ground: Any, result: Any, setup: Any, out: Path, picture: bool, gif: bool) -> None:
    from mlnav import viz

    if picture:
        viz.save_figure(viz.traverse_figure(ground, result, setup), out / "traverse.png")
        if result.unsafe is not None:
            viz.save_figure(viz.unsafe_figure(ground, result, setup), out / "unsafe.png")
    if gif:
        viz.save_traverse_gif(out / "traverse.gif", ground, result, setup)


def _check_extras(video: bool, rerun: Path | None) -> None:
    """Check before the drive that its outputs can be written afterwards."""
    if rerun is not None and rerun.suffix != ".rrd":
        raise RefusedError(f"--rerun: {rerun} does not end in .rrd")
    wanted = [*(("pybullet", "av") if video else ()), *(("rerun",) if rerun is not None else ())]
    if wanted:
        from mlnav.viz.scene import needs

        needs(*wanted)


def _film(ground: Any, result: Any, setup: Any, out: Path, busiest: Any, every: int) -> None:
    from mlnav.io import whole_file
    from mlnav.viz.film import Studio

    with Studio(ground, result, setup) as studio:
        count, seconds = studio.frame_count(every), studio.seconds_a_frame()
        say(
            f"filming {count} frames of {studio.frame_count()} at {seconds:.2g} s a"
            f" frame: about {duration(count * seconds)}, and the stills (--film-every {every})"
        )
        with progress_bar("film", float(count)) as update:

            def on_frame(share: float) -> None:
                done = 1 + round(share * (count - 1))
                update(done, f"traverse.mp4, frame {done} of {count}")

            update(0.0, "stills")
            studio.save_stills(out)
            if busiest.cycle is not None:
                with whole_file(out / "view.png") as temporary:
                    studio.mast_view(busiest.cycle, busiest.failed).image.save(temporary)
            studio.save_film(out / "traverse.mp4", every=every, on_frame=on_frame)


def _print_summary(summary: dict[str, Any]) -> None:
    per_cycle = summary["ace_evaluations_per_cycle"]
    colour = "green" if summary["success"] else "red"
    faults = f" ({', '.join(summary['faults'])})" if summary["faults"] else ""
    driven = f"{summary['driven_m']:.1f} m for {summary['straight_line_m']:.1f} m"
    if summary["inefficiency"] is not None:
        driven += f", inefficiency {summary['inefficiency']:z.2f}"
    fields = {
        "outcome": f"[bold {colour}]{summary['outcome']}{faults}[/]",
        "unsafe": _unsafe(summary),
        "start": "({:.2f}, {:.2f}), heading {:.3f} rad".format(*summary["start"]),
        "goal": "({:.2f}, {:.2f})".format(*summary["goal"]),
        "driven": driven,
        "cycles": str(summary["cycles"]),
    }
    if summary["cycles"]:
        fields["ACE evaluations a cycle"] = (
            f"mean {per_cycle['mean']:.1f}, median {per_cycle['median']:.0f},"
            f" p95 {per_cycle['p95']:.0f}, max {per_cycle['max']}"
        )
        fields["overthinks"] = f"{summary['overthinks']} ({summary['overthink_rate']:.0%})"
        if summary["inferences"]:
            uses = f"in use in {summary['risk_used']} cycles"
            fields["risk maps"] = f"{summary['inferences']} made, {uses}"
        fields["modelled flight time"] = (
            f"{summary['modelled_flight_ace_s_per_cycle']:.2f} s a cycle"
            " (ACE evaluations x 10 ms, other stages left out)"
        )
    stage_ms = summary["timing"]["stage_ms_per_cycle"].items()
    stages = ", ".join(f"{name} {ms:.1f}" for name, ms in stage_ms if "." not in name)
    wall = f"{summary['timing']['wall_s']:.2f} s"
    fields["wall time"] = f"{wall}; ms a cycle: {stages}" if stages else wall
    fields["results"] = summary["out"]
    common.print_fields(fields.items())


def _unsafe(summary: dict[str, Any]) -> str:
    """Number of judged states beyond the limits, and the first of them."""
    count, judged = summary["unsafe_states"], summary["judged_states"]
    if not count:
        return f"[green]none[/] of {judged:,} judged states"
    text = f"[bold red]{count:,}[/] of {judged:,} judged states"
    if summary["driven_m"]:
        text += f", {1000.0 * count / summary['driven_m']:,.0f} per driven km"
    first = summary["unsafe_state"]
    if first is None:
        return text
    text += f"; first at {first['distance_m']:.2f} m ({first['phase']}): {first['constraint']}"
    text += f" ({first['part']})" if first["part"] else ""
    if first["value"] is not None and first["limit"] is not None:
        scale, unit = (math.degrees(1.0), "deg") if first["unit"] == "rad" else (1.0, first["unit"])
        text += f" {scale * first['value']:.3g} {unit}, limit {scale * first['limit']:.3g} {unit}"
    return text
