"""`mlnav terrain`: make, describe and draw terrains."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from mlnav.cli import common, options
from mlnav.cli.common import RefusedError, claim, file_name, output, print_fields, say, show

app = common.new_app("Make, describe and draw terrains.")

Spec = Annotated[str, Argument(metavar="FILE|RECIPE|CLASS", help="As --terrain of others.")]


@app.command("make")
@options.with_options
def make_command(
    *,
    spec: Spec,
    out: Annotated[Path, Option("--out", "-o", metavar="FILE.tif", help="GeoTIFF to write.")],
    seed: options.Seed = 0,
    reading: options.Reading,
    force: options.Force = False,
) -> None:
    """Make a terrain from a recipe and write it as a GeoTIFF.

    **Examples**

    - mlnav terrain make demo --seed 3 --out demo.tif
    - mlnav terrain make 15/.10 --out hard.tif
    """
    from mlnav.terrain import load, write_geotiff

    if out.suffix.lower() not in (".tif", ".tiff"):
        raise RefusedError(f"{out}: must end in .tif")
    ground = load(spec, seed, reading)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_geotiff(out, ground, force=force)
    output.print(f"{ground.name}: {out}", soft_wrap=True)


@app.command("info")
@options.with_options
def info_command(
    *, spec: Spec, seed: options.Seed = 0, reading: options.Reading, as_json: options.Json = False
) -> None:
    """Describe a terrain: size, heights, slope and roughness at rover scale.

    **Examples**

    - mlnav terrain info demo
    - mlnav terrain info map.tif --json
    """
    from mlnav.terrain import load
    from mlnav.viz.terrain import terrain_statistics

    stats = terrain_statistics(load(spec, seed, reading))
    show(stats, as_json, _print)


@app.command("show")
@options.with_options
def show_command(
    *,
    spec: Spec,
    seed: options.Seed = 0,
    reading: options.Reading,
    out: Annotated[
        Path | None,
        Option("--out", "-o", metavar="FILE.png", help="Default: out/terrain/NAME.png."),
    ] = None,
    force: options.Force = False,
) -> None:
    """Draw a terrain: shaded relief, slope, distributions.

    **Examples**

    - mlnav terrain show demo --out demo.png
    - mlnav terrain show map.tif --nodata=-9999 --vertical-unit ft
    """
    from mlnav import viz
    from mlnav.nav.cells import MAX_CELL_M, fine_enough
    from mlnav.terrain import load

    ground = load(spec, seed, reading)
    target = out or Path("out/terrain") / f"{file_name(ground.name)}.png"
    claim(target.parent, [target.name], force)
    viz.save_figure(viz.terrain_figure(ground), target)
    output.print(f"{ground.name}: {target}", soft_wrap=True)
    if not fine_enough(ground.resolution_m):
        say(f"cells of {ground.resolution_m:g} m: coarser than the {MAX_CELL_M:g} m to drive on")


def _print(stats: dict[str, Any]) -> None:
    from mlnav.nav.cells import MAX_CELL_M

    def spread(values: dict[str, Any], unit: str, factor: float = 1.0) -> str:
        if values["median"] is None:
            return "-"
        median, p95, most = (factor * values[k] for k in ("median", "p95", "max"))
        return f"median {median:.1f}, 95 % below {p95:.1f}, most {most:.1f} {unit}"

    def point(value: Any) -> str:
        return "-" if value is None else f"({value[0]:g}, {value[1]:g})"

    nx, ny = stats["cells"]
    extent, height = stats["extent_m"], stats["height_m"]
    coarse = "" if stats["fine_enough"] else f", coarser than the {MAX_CELL_M:g} m to drive on"
    rows = {
        "name": stats["name"],
        "cells": f"{nx} x {ny} of {stats['resolution_m']:g} m{coarse}",
        "x": f"{extent['x'][0]:g} to {extent['x'][1]:g} m",
        "y": f"{extent['y'][0]:g} to {extent['y'][1]:g} m",
        "heights": f"{height['min']:.2f} to {height['max']:.2f} m",
        "known": f"{stats['known_share']:.1%}",
        "slope (2 m patches)": spread(stats["slope_deg"], "deg"),
        "roughness": spread(stats["roughness_m"], "cm", 100.0),
        "start, goal": f"{point(stats['start_m'])}, {point(stats['goal_m'])}",
        "datum": "({:g}, {:g}, {:g}) m".format(*stats["datum_m"]),
        "layers": ", ".join(stats["layers"]) or "-",
        "credit": stats["attribution"] or "-",
        "sha256": stats["sha256"],
    }
    print_fields(rows.items())
