"""`mlnav ace`: where the rover may stand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from mlnav.cli.common import (
    CheckerOption,
    ConfigOption,
    ForceOption,
    JsonOption,
    LimitsOption,
    OutOption,
    SeedOption,
    SetOption,
    TerrainOption,
    assemble,
    claim,
    emit,
    output,
    progress_bar,
)


def ace_command(
    terrain: TerrainOption = "demo",
    checker: CheckerOption = None,
    limits: LimitsOption = None,
    bins: Annotated[int, typer.Option("--bins", min=1, max=64, help="Headings a cell.")] = 16,
    seed: SeedOption = 0,
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

    mlnav ace -t map.tif --limits flight_like --bins 32
    """
    from mlnav import viz
    from mlnav.io import write_json
    from mlnav.sim.standing import standing
    from mlnav.terrain import load, write_geotiff

    setup = assemble(config, settings, checker=checker, limits=limits)
    ground = load(terrain, seed)
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
