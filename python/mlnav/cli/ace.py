"""`mlnav ace`: where the rover may stand, and why not at one pose."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from mlnav.cli.common import (
    ENDED,
    OK,
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
    SeedOption,
    SetOption,
    TerrainOption,
    VerticalUnitOption,
    assemble,
    claim,
    driven_terrain,
    emit,
    output,
    progress_bar,
    reading,
)

app = typer.Typer(invoke_without_command=True, rich_markup_mode="markdown")


@app.callback()
def ace_command(
    context: typer.Context,
    terrain: TerrainOption = "demo",
    band: BandOption = 1,
    nodata: NodataOption = None,
    vertical_unit: VerticalUnitOption = None,
    checker: CheckerOption = None,
    limits: LimitsOption = None,
    bins: Annotated[int, typer.Option("--bins", min=1, max=64, help="Headings a cell.")] = 16,
    seed: SeedOption = 0,
    allow_coarse: AllowCoarseOption = False,
    config: ConfigOption = None,
    settings: SetOption = None,
    out: OutOption = Path("out/ace"),
    as_json: JsonOption = False,
    force: ForceOption = False,
) -> None:
    """Map the share of headings that pass ACE, cell by cell.

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

    setup = assemble(config, settings, allow_coarse, checker=checker, limits=limits)
    how = reading(band, nodata, vertical_unit)
    ground = driven_terrain(terrain, seed, how, setup)
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
    if as_json:
        emit(summary)
    else:
        share = summary["pass_share"]
        text = "nothing can be told" if share is None else f"{share:.1%} of poses pass"
        output.print(f"{text}; {out / 'ace.png'}, {out / 'ace.tif'}", soft_wrap=True)


@app.command("explain")
def explain_command(
    at: Annotated[
        str, typer.Option("--at", metavar="X,Y,DEG", help="Where, in metres, and the heading.")
    ],
    terrain: TerrainOption = "demo",
    band: BandOption = 1,
    nodata: NodataOption = None,
    vertical_unit: VerticalUnitOption = None,
    checker: CheckerOption = None,
    limits: LimitsOption = None,
    seed: SeedOption = 0,
    allow_coarse: AllowCoarseOption = False,
    config: ConfigOption = None,
    settings: SetOption = None,
    out: OutOption = Path("out/explain"),
    as_json: JsonOption = False,
    force: ForceOption = False,
) -> None:
    """Draw what a checker knows about one pose, and the rover at rest there.

    DIR gets explain.png (ground, wheel boxes, bounds against limits, the rover from its right and
    from ahead) and explain.json. It ends with 1 where the checker rejects the pose.

    **Examples**

    mlnav ace explain --terrain demo --seed 1 --at 19.9,35,-20

    mlnav ace explain -t map.tif --at=-3,4,90 --checker fixed_box --limits enav_like
    """
    from mlnav import viz
    from mlnav.io import write_json
    from mlnav.sim.explain import explain

    setup = assemble(config, settings, allow_coarse, checker=checker, limits=limits)
    how = reading(band, nodata, vertical_unit)
    ground = driven_terrain(terrain, seed, how, setup)
    told = explain(ground, setup, _pose(at))
    claim(out, ("explain.png", "explain.json"), force)
    summary: dict[str, Any] = {
        "terrain": ground.name,
        "checker": setup.checker.name,
        "limits": setup.limits.name,
        **told.as_dict(),
        "out": str(out),
    }
    write_json(out / "explain.json", summary)
    viz.save_figure(viz.explain_figure(ground, told, setup), out / "explain.png")
    if as_json:
        emit(summary)
    else:
        verdict = "safe" if told.safe else f"rejected: {', '.join(told.reasons)}"
        rest = f"unsafe: {', '.join(told.settled_faults)}" if told.settled_faults else "safe"
        output.print(f"{verdict} (at rest {rest}); {out / 'explain.png'}", soft_wrap=True)
    raise typer.Exit(OK if told.safe else ENDED)


def _pose(text: str) -> tuple[float, float, float]:
    try:
        x, y, degrees = (float(part) for part in text.split(","))
    except ValueError:
        raise RefusedError(f"--at: {text!r} is not X,Y,DEG: metres and degrees") from None
    return x, y, math.radians(degrees)
