"""Options that several commands have, and arguments that are made from several options."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mlnav.config import Config, load_config

if TYPE_CHECKING:
    from mlnav.terrain import Reading as TerrainReading

Terrain = Annotated[
    str,
    typer.Option(
        "--terrain",
        "-t",
        metavar="FILE|RECIPE|CLASS",
        help="GeoTIFF, recipe (YAML file or shipped name), or class of slope/CFA such as 10/.07.",
    ),
]
Band = Annotated[
    int, typer.Option("--band", min=1, metavar="N", help="Band of the heights in a GeoTIFF.")
]
Nodata = Annotated[
    list[float] | None,
    typer.Option(
        "--nodata", metavar="VALUE", help="A further value for unknown in a GeoTIFF; repeat."
    ),
]
VerticalUnit = Annotated[
    str | None,
    typer.Option(
        "--vertical-unit",
        metavar="UNIT",
        help="Unit of the heights, overriding that of the GeoTIFF: m, ft, us-ft, km, ...",
    ),
]
AllowCoarse = Annotated[
    bool, typer.Option("--allow-coarse", help="Accept cells coarser than 0.2 m, which hide rocks.")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of recipe and run.")]
RunSeed = Annotated[int, typer.Option("--seed", min=0, help="Seed of terrains, pairs and noise.")]
Start = Annotated[str | None, typer.Option("--start", metavar="X,Y", help="Start in metres.")]
Goal = Annotated[str | None, typer.Option("--goal", metavar="X,Y", help="Goal in metres.")]
Heading = Annotated[
    float | None,
    typer.Option("--heading-deg", help="Heading at the start; towards the goal by default."),
]
Gif = Annotated[bool, typer.Option("--gif", help="Animate the run: traverse.gif.")]
Rerun = Annotated[
    Path | None,
    typer.Option("--rerun", metavar="FILE", help="Record the run for Rerun, an .rrd file."),
]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder of the results.")]
Workers = Annotated[
    int, typer.Option("--workers", "-w", min=0, help="Worker processes; 0: none, run in this one.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
Force = Annotated[bool, typer.Option("--force", "-f", help="Replace earlier results.")]

CONFIGURATION = {
    "planner": Annotated[str | None, typer.Option("--planner", help="enav")],
    "checker": Annotated[
        str | None, typer.Option("--checker", help="verified, fixed_box, probabilistic, settle")
    ],
    "limits": Annotated[str | None, typer.Option("--limits", help="flight_like, enav_like")],
    "heuristic": Annotated[
        str | None, typer.Option("--heuristic", help="none, failures, sobel, network, oracle")
    ],
    "world": Annotated[str | None, typer.Option("--world", help="kinematic, bullet")],
    "sensor": Annotated[str | None, typer.Option("--sensor", help="truth, stereo")],
    "allow_coarse": AllowCoarse,
    "config": Annotated[
        Path | None, typer.Option("--config", "-c", metavar="FILE", help="Configuration, YAML.")
    ],
    "settings": Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="One value, as planner.commit_length_m=0.5."
        ),
    ],
}
"""Options of the configuration by the name of their argument."""


@dataclass(frozen=True)
class MadeFrom:
    """Marks an argument of a command that is made from options; see `with_options`.

    Attributes:
        options: parameters of the options, which the command has in place of the argument.
        make: called with their values; the argument.
    """

    options: Sequence[inspect.Parameter]
    make: Callable[..., Any]


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that its arguments marked with `MadeFrom` are made from."""
    parameters: list[inspect.Parameter] = []
    made: dict[str, MadeFrom] = {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        metadata = getattr(parameter.annotation, "__metadata__", ())
        mark = next((m for m in metadata if isinstance(m, MadeFrom)), None)
        if mark is None:
            parameters.append(parameter)
        else:
            parameters += mark.options
            made[parameter.name] = mark

    @functools.wraps(command)
    def run(**values: Any) -> None:
        for name, mark in made.items():
            values[name] = mark.make(**{p.name: values.pop(p.name) for p in mark.options})
        command(**values)

    run.__annotations__ = {p.name: p.annotation for p in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def _option(name: str, annotation: Any, default: Any = None) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def configuration(*names: str) -> MadeFrom:
    """A configuration from options of these parts (or `allow_coarse`), --config and --set."""
    options = [
        _option(name, CONFIGURATION[name], False if name == "allow_coarse" else None)
        for name in (*names, "config", "settings")
    ]
    return MadeFrom(options, assemble)


def assemble(
    config: Path | None = None,
    settings: Sequence[str] | None = None,
    allow_coarse: bool = False,
    **parts: str | None,
) -> Config:
    """The configuration: file, then options, then single settings; later ones win."""
    base = load_config(config) if config is not None else Config()
    return base.replaced([*allowing_coarse(allow_coarse), *(settings or ())], **parts)


def allowing_coarse(allow: bool, path: str = "") -> list[str]:
    """The setting of --allow-coarse, in a configuration at `path`."""
    return [f"{path}traverse.allow_coarse_cells=true"] if allow else []


def _reading(
    band: int, nodata: Sequence[float] | None, vertical_unit: str | None
) -> TerrainReading:
    from mlnav.terrain import Reading

    return Reading(band, tuple(nodata or ()), vertical_unit)


Reading = Annotated[
    "TerrainReading",
    MadeFrom(
        [
            _option("band", Band, 1),
            _option("nodata", Nodata),
            _option("vertical_unit", VerticalUnit),
        ],
        _reading,
    ),
]
"""How GeoTIFFs are read: --band, --nodata and --vertical-unit."""
