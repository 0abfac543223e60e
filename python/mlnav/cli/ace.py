"""`mlnav ace`: which poses pass ACE, and why one pose fails."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from typer import Option

from mlnav.cli import common, options
from mlnav.cli.common import RefusedError, claim, driven_terrain, numbers, output, show
from mlnav.config import Config

app = typer.Typer(invoke_without_command=True, rich_markup_mode="markdown")


@app.callback()
@options.with_options
def ace_command(
    *,
    context: typer.Context,
    terrain: options.Terrain = "demo",
    reading: options.Reading,
    setup: Annotated[Config, options.configuration("checker limits allow_coarse")],
    bins: Annotated[int, Option(min=1, max=64, help="Headings per cell.")] = 16,
    seed: options.Seed = 0,
    out: options.Out = Path("out/ace"),
    as_json: options.Json = False,
    force: options.Force = False,
) -> None:
    """Map the share of headings that pass ACE in each cell.

    DIR gets ace.tif (band 2, `ace_pass_share`), ace.png and ace.json.

    **Examples**

    - mlnav ace --terrain demo --out out/ace
    - mlnav ace -t map.tif --checker fixed_box --limits enav_like --bins 32
    - mlnav ace explain -t demo --at 20,35,-20
    """
    if context.invoked_subcommand is not None:
        return
    from mlnav import viz
    from mlnav.io import write_json
    from mlnav.sim.standing import standing
    from mlnav.terrain import write_geotiff

    ground = driven_terrain(terrain, seed, reading, setup)
    claim(out, ("ace.tif", "ace.png", "ace.json"), force)
    with common.progress_bar(ground.name, 1.0) as update:
        verdicts = standing(ground, setup, bins, lambda done, of: update(done / of, ""))
    share, rejects = verdicts.share, verdicts.rejects
    known = share[np.isfinite(share)]
    shares = {
        "pass_share": known,
        "all_headings_share": known == 1.0,
        "no_heading_share": known == 0.0,
    }
    figures = {
        "bins": bins,
        "poses": verdicts.poses,
        "evaluated_share": known.size / share.size,
        **{name: float(part.mean()) if known.size else None for name, part in shares.items()},
        "rejects": rejects,
    }
    summary = _summary(ground, setup, figures, out)
    write_geotiff(out / "ace.tif", replace(ground, layers={"ace_pass_share": share}), force=True)
    viz.save_figure(viz.ace_figure(ground, share, rejects, setup), out / "ace.png")
    write_json(out / "ace.json", summary)
    text = f"{known.mean():.1%} of poses pass" if known.size else "no pose was evaluated"
    text += f"; {out / 'ace.png'}, {out / 'ace.tif'}"
    show(summary, as_json, lambda _: output.print(text, soft_wrap=True))


def _summary(ground: Any, setup: Config, figures: dict[str, Any], out: Path) -> dict[str, Any]:
    names = {"terrain": ground.name, "checker": setup.checker.name, "limits": setup.limits.name}
    return {**names, **figures, "out": str(out)}


@app.command("explain")
@options.with_options
def explain_command(
    *,
    at: Annotated[str, Option(metavar="X,Y,DEG", help="Pose: position in metres, heading.")],
    way: Annotated[
        str | None,
        Option(
            metavar="M,1/M or DEG",
            help="Explain the way from there: length and curvature of an arc, or a turn in place.",
        ),
    ] = None,
    terrain: options.Terrain = "demo",
    reading: options.Reading,
    setup: Annotated[Config, options.configuration("checker limits allow_coarse")],
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

    - mlnav ace explain --terrain demo --seed 1 --at 19.9,35,-20
    - mlnav ace explain -t map.tif --at=-3,4,90 --checker fixed_box --limits enav_like
    - mlnav ace explain -t 15/.10 --at 20,35,-20 --way 2,0.1
    """
    from mlnav import viz
    from mlnav.io import write_json
    from mlnav.io.records import plain
    from mlnav.sim.explain import explain, explain_way

    ground = driven_terrain(terrain, seed, reading, setup)
    x, y, heading_deg = numbers("--at", at, "X,Y,DEG: metres and degrees", 3)
    pose = (x, y, math.radians(heading_deg))
    explained: Any
    if way is None:
        explained = explain(ground, setup, pose)
        faults = ", ".join(explained.settled_faults)
        at_rest = f" (at rest {f'unsafe: {faults}' if faults else 'safe'})"
        figure = viz.explain_figure(ground, explained, setup)
        figures = explained.as_dict()
    else:
        explained = explain_way(ground, setup, pose, _motion(way))
        at_rest = ""
        figure = viz.way_figure(ground, explained, setup)
        figures = plain(asdict(explained))
    claim(out, ("explain.png", "explain.json"), force)
    summary = _summary(ground, setup, figures, out)
    write_json(out / "explain.json", summary)
    viz.save_figure(figure, out / "explain.png")
    verdict = "safe" if explained.safe else f"rejected: {', '.join(explained.reasons)}"
    text = f"{verdict}{at_rest}; {out / 'explain.png'}"
    show(summary, as_json, lambda _: output.print(text, soft_wrap=True))
    raise typer.Exit(common.OK if explained.safe else common.ENDED)


def _motion(way: str) -> Any:
    """Of --way: an arc, or a turn in place."""
    from mlnav.nav import Motion

    values = numbers("--way", way)
    if len(values) == 1:
        return Motion(math.radians(values[0]), 0.0, 0.0)
    if len(values) == 2:
        return Motion(0.0, values[1], values[0])
    raise RefusedError("--way is the length and curvature of an arc, or the degrees of a turn")
