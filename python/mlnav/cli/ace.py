"""`mlnav ace`: which poses pass ACE, and why one pose fails."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import numpy as np
import typer

from mlnav.cli import options
from mlnav.cli.common import (
    ENDED,
    OK,
    RefusedError,
    claim,
    driven_terrain,
    numbers,
    output,
    progress_bar,
    show,
)
from mlnav.config import Config

if TYPE_CHECKING:
    from mlnav.nav import Pose
    from mlnav.terrain import Terrain

app = typer.Typer(invoke_without_command=True, rich_markup_mode="markdown")


@app.callback()
@options.with_options
def ace_command(
    *,
    context: typer.Context,
    terrain: options.Terrain = "demo",
    reading: options.Reading,
    setup: Annotated[Config, options.configuration("checker", "limits", "allow_coarse")],
    bins: Annotated[int, typer.Option(min=1, max=64, help="Headings per cell.")] = 16,
    seed: options.Seed = 0,
    out: options.Out = Path("out/ace"),
    as_json: options.Json = False,
    force: options.Force = False,
) -> None:
    """Map the share of headings that pass ACE in each cell.

    DIR gets ace.tif (band 2, `ace_pass_share`), ace.png and ace.json.

    **Examples**

    mlnav ace --terrain demo --out out/ace

    mlnav ace -t map.tif --checker fixed_box --limits enav_like --bins 32

    mlnav ace explain -t demo --at 20,35,-20
    """
    if context.invoked_subcommand is not None:
        return
    from mlnav import viz
    from mlnav.io import write_json
    from mlnav.sim.standing import standing
    from mlnav.terrain import write_geotiff

    ground = driven_terrain(terrain, seed, reading, setup)
    claim(out, ("ace.tif", "ace.png", "ace.json"), force)
    with progress_bar(ground.name, 1.0) as update:
        verdicts = standing(ground, setup, bins, lambda done, of: update(done / of, ""))
    known = verdicts.share[np.isfinite(verdicts.share)]
    summary: dict[str, Any] = {
        "terrain": ground.name,
        "checker": setup.checker.name,
        "limits": setup.limits.name,
        "bins": bins,
        "poses": verdicts.poses,
        "evaluated_share": known.size / verdicts.share.size,
        "pass_share": float(known.mean()) if known.size else None,
        "all_headings_share": float((known == 1.0).mean()) if known.size else None,
        "no_heading_share": float((known == 0.0).mean()) if known.size else None,
        "rejects": verdicts.rejects,
        "out": str(out),
    }
    layers = {"ace_pass_share": verdicts.share}
    write_geotiff(out / "ace.tif", replace(ground, layers=layers), force=True)
    viz.save_figure(
        viz.ace_figure(ground, verdicts.share, verdicts.rejects, setup), out / "ace.png"
    )
    write_json(out / "ace.json", summary)
    show(summary, as_json, _print_shares)


def _print_shares(summary: dict[str, Any]) -> None:
    share, out = summary["pass_share"], Path(summary["out"])
    text = "no pose was evaluated" if share is None else f"{share:.1%} of poses pass"
    output.print(f"{text}; {out / 'ace.png'}, {out / 'ace.tif'}", soft_wrap=True)


@app.command("explain")
@options.with_options
def explain_command(
    *,
    at: Annotated[str, typer.Option(metavar="X,Y,DEG", help="Pose: position in metres, heading.")],
    way: Annotated[
        str | None,
        typer.Option(
            metavar="M,1/M or DEG",
            help="Explain the way from there: length and curvature of an arc, or a turn in place.",
        ),
    ] = None,
    terrain: options.Terrain = "demo",
    reading: options.Reading,
    setup: Annotated[Config, options.configuration("checker", "limits", "allow_coarse")],
    seed: options.Seed = 0,
    out: options.Out = Path("out/explain"),
    as_json: options.Json = False,
    force: options.Force = False,
) -> None:
    """Draw a checker's bounds at one pose or along a way, and the rover settled there.

    DIR gets explain.png (ground, wheel boxes, bounds against limits, the rover from its right and
    from ahead; with --way bounds along it, and the states settled every centimetre) and
    explain.json. Exit code 1 if the checker rejects it.

    **Examples**

    mlnav ace explain --terrain demo --seed 1 --at 19.9,35,-20

    mlnav ace explain -t map.tif --at=-3,4,90 --checker fixed_box --limits enav_like

    mlnav ace explain -t 15/.10 --at 20,35,-20 --way 2,0.1
    """
    from mlnav import viz
    from mlnav.io import write_json
    from mlnav.sim.explain import explain

    ground = driven_terrain(terrain, seed, reading, setup)
    x, y, heading_deg = numbers("--at", at, "X,Y,DEG: metres and degrees", 3)
    pose = (x, y, math.radians(heading_deg))
    if way is not None:
        _explain_way(ground, setup, pose, way, out, as_json, force)
    explained = explain(ground, setup, pose)
    claim(out, ("explain.png", "explain.json"), force)
    summary: dict[str, Any] = {
        "terrain": ground.name,
        "checker": setup.checker.name,
        "limits": setup.limits.name,
        **explained.as_dict(),
        "out": str(out),
    }
    write_json(out / "explain.json", summary)
    viz.save_figure(viz.explain_figure(ground, explained, setup), out / "explain.png")
    verdict = "safe" if explained.safe else f"rejected: {', '.join(explained.reasons)}"
    faults = ", ".join(explained.settled_faults)
    text = f"{verdict} (at rest {f'unsafe: {faults}' if faults else 'safe'}); {out / 'explain.png'}"
    show(summary, as_json, lambda _: output.print(text, soft_wrap=True))
    raise typer.Exit(OK if explained.safe else ENDED)


def _explain_way(
    ground: Terrain, setup: Config, pose: Pose, way: str, out: Path, as_json: bool, force: bool
) -> NoReturn:
    from mlnav import viz
    from mlnav.io import write_json
    from mlnav.io.records import plain
    from mlnav.nav import Motion
    from mlnav.sim.explain import explain_way

    values = numbers("--way", way)
    if len(values) not in (1, 2):
        raise RefusedError("--way is the length and curvature of an arc, or the degrees of a turn")
    arc = len(values) == 2
    motion = Motion(0.0, values[1], values[0]) if arc else Motion(math.radians(values[0]), 0.0, 0.0)
    explained = explain_way(ground, setup, pose, motion)
    claim(out, ("explain.png", "explain.json"), force)
    summary = {
        "terrain": ground.name,
        "checker": setup.checker.name,
        "limits": setup.limits.name,
        **plain(asdict(explained)),
        "out": str(out),
    }
    write_json(out / "explain.json", summary)
    viz.save_figure(viz.way_figure(ground, explained, setup), out / "explain.png")
    verdict = "safe" if explained.safe else f"rejected: {', '.join(explained.reasons)}"
    text = f"{verdict}; {out / 'explain.png'}"
    show(summary, as_json, lambda _: output.print(text, soft_wrap=True))
    raise typer.Exit(OK if explained.safe else ENDED)
