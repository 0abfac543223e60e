"""Options that several commands have, and arguments that are made from several options."""

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from mlnav.cli.common import numbers
from mlnav.config import Config, load_config

if TYPE_CHECKING:
    from mlnav.terrain import Reading as TerrainReading

Point = tuple[float, float]

Terrain = Annotated[
    str,
    Option(
        "--terrain",
        "-t",
        metavar="FILE|RECIPE|CLASS",
        help="GeoTIFF, recipe (YAML file or shipped name), or class of slope/CFA such as 10/.07.",
    ),
]
AllowCoarse = Annotated[
    bool, Option("--allow-coarse", help="Accept cells coarser than 0.2 m, which hide rocks.")
]
Seed = Annotated[int, Option(min=0, help="Seed of recipe and run.")]
RunSeed = Annotated[int, Option(min=0, help="Seed of terrains, pairs and noise.")]
Gif = Annotated[bool, Option("--gif", help="Animate the run: traverse.gif.")]
Rerun = Annotated[Path | None, Option(metavar="FILE", help="Record for Rerun, an .rrd file.")]
Out = Annotated[Path, Option("--out", "-o", metavar="DIR", help="Folder of the results.")]
NamedOut = Annotated[
    Path | None,
    Option("--out", "-o", metavar="DIR", help="Folder of the results; default: see above."),
]
Workers = Annotated[
    int, Option("--workers", "-w", min=0, help="Worker processes; 0: none, run in this one.")
]
Json = Annotated[bool, Option("--json", help="One JSON object on standard output.")]
Force = Annotated[bool, Option("--force", "-f", help="Replace earlier results.")]


@dataclass(frozen=True)
class MadeFrom:
    """Marks an argument of a command that is made from options; see `with_options`.

    Attributes:
        make: called with the values of the options, which are its keyword arguments.
        names: of the options that the command has; all by default.
    """

    make: Callable[..., Any]
    names: Sequence[str] = ()

    @property
    def options(self) -> list[inspect.Parameter]:
        """Parameters that the command has in place of the argument."""
        parameters = inspect.signature(self.make).parameters
        return [parameters[name] for name in self.names or parameters]


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that its arguments marked with `MadeFrom` are made from."""
    parameters: list[inspect.Parameter] = []
    made: dict[str, MadeFrom] = {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        marks = getattr(parameter.annotation, "__metadata__", ())
        if marks and isinstance(marks[0], MadeFrom):
            made[parameter.name] = marks[0]
            parameters += marks[0].options
        else:
            parameters.append(parameter)

    @functools.wraps(command)
    def run(**values: Any) -> None:
        for name, mark in made.items():
            values[name] = mark.make(**{p.name: values.pop(p.name) for p in mark.options})
        command(**values)

    run.__annotations__ = {p.name: p.annotation for p in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def _configuration(
    *,
    planner: Annotated[str | None, Option(help="enav")] = None,
    checker: Annotated[
        str | None, Option(help="verified, fixed_box, probabilistic, settle")
    ] = None,
    limits: Annotated[str | None, Option(help="flight_like, enav_like")] = None,
    heuristic: Annotated[str | None, Option(help="none, failures, sobel, network, oracle")] = None,
    world: Annotated[str | None, Option(help="kinematic, bullet")] = None,
    sensor: Annotated[str | None, Option(help="truth, stereo")] = None,
    allow_coarse: AllowCoarse = False,
    config: Annotated[
        Path | None, Option("--config", "-c", metavar="FILE", help="Configuration, YAML.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        Option("--set", metavar="KEY=VALUE", help="One value, as planner.commit_length_m=0.5."),
    ] = None,
) -> Config:
    """The configuration: file, then options, then single settings; later ones win."""
    base = load_config(config) if config is not None else Config()
    parts = {"planner": planner, "checker": checker, "limits": limits, "heuristic": heuristic}
    changes = [*allowing_coarse(allow_coarse), *(settings or ())]
    return base.replaced(changes, **parts, world=world, sensor=sensor)


def configuration(names: str) -> MadeFrom:
    """A configuration from options of these parts (or `allow_coarse`), --config and --set."""
    return MadeFrom(_configuration, (*names.split(), "config", "settings"))


def allowing_coarse(allow: bool, path: str = "") -> list[str]:
    """The setting of --allow-coarse, in a configuration at `path`."""
    return [f"{path}traverse.allow_coarse_cells=true"] if allow else []


def _reading(
    *,
    band: Annotated[int, Option(min=1, metavar="N", help="Band of the heights in a GeoTIFF.")] = 1,
    nodata: Annotated[
        list[float] | None,
        Option(metavar="VALUE", help="A further value for unknown in a GeoTIFF; repeat."),
    ] = None,
    vertical_unit: Annotated[
        str | None,
        Option(
            metavar="UNIT", help="Unit of the heights, if not the GeoTIFF's: m, ft, us-ft, km, ..."
        ),
    ] = None,
) -> "TerrainReading":
    from mlnav.terrain import Reading

    return Reading(band, tuple(nodata or ()), vertical_unit)


Reading = Annotated["TerrainReading", MadeFrom(_reading)]
"""How GeoTIFFs are read: --band, --nodata and --vertical-unit."""


def _ends(
    *,
    start: Annotated[str | None, Option(metavar="X,Y", help="Start in metres.")] = None,
    goal: Annotated[str | None, Option(metavar="X,Y", help="Goal in metres.")] = None,
    heading_deg: Annotated[float | None, Option(help="At the start; default: to the goal.")] = None,
) -> tuple[Point | None, Point | None, float | None]:
    def point(option: str, text: str | None) -> Point | None:
        if text is None:
            return None
        x, y = numbers(option, text, "X,Y in metres", 2)
        return x, y

    heading_rad = None if heading_deg is None else math.radians(heading_deg)
    return point("--start", start), point("--goal", goal), heading_rad


Ends = Annotated[tuple[Point | None, Point | None, float | None], MadeFrom(_ends)]
"""Start and goal [m] and heading at the start [rad], each where it is given."""
