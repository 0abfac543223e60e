"""What the commands share: options, messages, exit codes, output folders."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from typer.core import TyperGroup

from mlnav.cli.streams import take_every_text
from mlnav.config import Config, load_config
from mlnav.io.records import to_json

if TYPE_CHECKING:
    from mlnav.report import tables
    from mlnav.terrain import Reading, Terrain

OK, ENDED, USAGE, INTERNAL, INTERRUPTED = 0, 1, 2, 3, 130

EXIT_CODES = (
    "Exit codes: 0 done (traverse: goal reached; plan: path found), 1 ended without (doctor: a"
    " fault was found), 2 bad input, 3 internal error, 130 stopped by Ctrl-C."
)

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

errors = Console(stderr=True, highlight=False)
output = Console(highlight=False, width=None if sys.stdout.isatty() else 170)


class RefusedError(ValueError):
    """Bad input, told in one line."""


class Group(TyperGroup):
    """Turns every fault into one line and an exit code, unless --debug asks for the traceback."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run as a program."""
        take_every_text()
        try:
            return super().main(*args, **kwargs)
        except OSError as fault:  # the help could not be written
            _drop_output()
            errors.print(f"[bold red]error:[/] standard output: {fault.strerror or fault}")
            sys.exit(USAGE)

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            errors.print("interrupted")
            ctx.exit(INTERRUPTED)
        except (typer.Exit, typer.Abort):
            raise
        except BrokenPipeError:
            _drop_output()  # its reader went away; nothing is left to say
            ctx.exit(OK)
        except Exception as fault:
            if ctx.params.get("debug") or hasattr(fault, "exit_code"):
                raise  # usage errors know how to show themselves
            if _is_input_fault(fault):
                text = " ".join(str(fault).split())
                if isinstance(fault, OSError) and fault.filename is None and fault.errno in _FULL:
                    _drop_output()  # what writes files names them, so it is this that is full
                    text = f"standard output: {fault.strerror}"
                errors.print(f"[bold red]error:[/] {escaped(text)}", soft_wrap=True)
                ctx.exit(USAGE)
            errors.print(
                f"[bold red]internal error:[/] {type(fault).__name__}: {escaped(str(fault))}"
                " (--debug shows where)",
                soft_wrap=True,
            )
            ctx.exit(INTERNAL)


def _drop_output() -> None:
    """Write no more to standard output: what is left there would fail again at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def escaped(text: str) -> str:
    """The text, not read as markup by Rich."""
    return text.replace("[", r"\[")


def _is_input_fault(fault: Exception) -> bool:
    """Faults that callers can cause: our own ValueErrors, and the file system's."""
    if isinstance(fault, OSError):
        return True
    return isinstance(fault, ValueError) and type(fault).__module__.startswith("mlnav")


# ---------------------------------------------------------------------------------------- options


def point(option: str, text: str | None) -> tuple[float, float] | None:
    """`X,Y` in metres.

    Raises:
        RefusedError: the text is something else.
    """
    if text is None:
        return None
    try:
        x, y = (float(part) for part in text.split(","))
    except ValueError:
        raise RefusedError(f"{option}: {text!r} is not X,Y in metres") from None
    return x, y


TerrainOption = Annotated[
    str,
    typer.Option(
        "--terrain",
        "-t",
        metavar="FILE|RECIPE|CLASS",
        help="GeoTIFF, recipe (YAML file or shipped name), or class of slope/CFA such as 10/.07.",
    ),
]
BandOption = Annotated[
    int, typer.Option("--band", min=1, metavar="N", help="Of the heights in a GeoTIFF.")
]
NodataOption = Annotated[
    list[float] | None,
    typer.Option("--nodata", metavar="VALUE", help="Also unknown in a GeoTIFF; repeat."),
]
VerticalUnitOption = Annotated[
    str | None,
    typer.Option(
        "--vertical-unit",
        metavar="UNIT",
        help="Of the heights in a GeoTIFF, whatever it says: m, ft, us-ft, km, ...",
    ),
]
AllowCoarseOption = Annotated[
    bool,
    typer.Option("--allow-coarse", help="Also on cells coarser than 0.2 m, which hide rocks."),
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of recipe and run.")]
StartOption = Annotated[
    str | None,
    typer.Option("--start", metavar="X,Y", help="Start in metres."),
]
GoalOption = Annotated[
    str | None,
    typer.Option("--goal", metavar="X,Y", help="Goal in metres."),
]
HeadingOption = Annotated[
    float | None,
    typer.Option("--heading-deg", help="Heading at the start; towards the goal by default."),
]
PlannerOption = Annotated[str | None, typer.Option("--planner", help="enav")]
CheckerOption = Annotated[
    str | None, typer.Option("--checker", help="verified, fixed_box, probabilistic, settle")
]
LimitsOption = Annotated[str | None, typer.Option("--limits", help="flight_like, enav_like")]
HeuristicOption = Annotated[
    str | None, typer.Option("--heuristic", help="none, failures, sobel, network, oracle")
]
WorldOption = Annotated[str | None, typer.Option("--world", help="kinematic, bullet")]
SensorOption = Annotated[str | None, typer.Option("--sensor", help="truth, stereo")]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", "-c", metavar="FILE", help="Configuration, YAML.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="One value, as planner.commit_length_m=0.5."),
]
OutOption = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where results go.")]
WorkersOption = Annotated[
    int, typer.Option("--workers", "-w", min=0, help="Processes; 0: in this one.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
ForceOption = Annotated[bool, typer.Option("--force", "-f", help="Replace earlier results.")]


def numbers(option: str, text: str | None) -> tuple[float, ...]:
    """`0.15,0.20`.

    Raises:
        RefusedError: the text is something else.
    """
    try:
        return tuple(float(part) for part in text.split(",")) if text else ()
    except ValueError:
        raise RefusedError(f"{option}: {text!r} is not a list of numbers") from None


def assemble(
    config: Path | None,
    settings: Sequence[str] | None,
    allow_coarse: bool = False,
    **parts: str | None,
) -> Config:
    """The configuration: file, then options, then single settings; later ones win."""
    base = load_config(config) if config is not None else Config()
    return base.replaced([*allowing_coarse(allow_coarse), *(settings or ())], **parts)


def allowing_coarse(allow: bool, path: str = "") -> list[str]:
    """The single setting that --allow-coarse stands for, of a configuration at `path`."""
    return [f"{path}traverse.allow_coarse_cells=true"] if allow else []


def reading(band: int, nodata: Sequence[float] | None, vertical_unit: str | None) -> Reading:
    """How GeoTIFFs are read: what --band, --nodata and --vertical-unit say together."""
    from mlnav.terrain import Reading

    return Reading(band, tuple(nodata or ()), vertical_unit)


def driven_terrain(spec: str, seed: int, how: Reading, config: Config) -> Terrain:
    """The terrain of --terrain, once its cells are fine enough to plan, check or drive on.

    Raises:
        TerrainError: there is none, or its cells are coarse and the configuration does not insist.
    """
    from mlnav.sim.cells import check_cells
    from mlnav.terrain import load

    terrain = load(spec, seed, how)
    check_cells(terrain, config)
    return terrain


# ----------------------------------------------------------------------------------------- output


def claim(
    folder: Path, names: Sequence[str], force: bool, *more: tuple[Path, Sequence[str]]
) -> None:
    """Make folders ready for results of these names: all of them, or nothing is touched.

    Call it once all that may be refused has been looked at, since it removes what `force` replaces.

    Args:
        folder: for results.
        names: of the results in it.
        force: replace results that are there.
        more: further folders, each with its names.

    Raises:
        RefusedError: a folder holds some of them and `force` is not set, or cannot be written.
    """
    targets = [(folder, names), *more]
    present = [(place / name) for place, mine in targets for name in mine]
    present = [path for path in present if path.exists()]
    if present and not force:
        held = ", ".join(path.name for path in present if path.parent == present[0].parent)
        raise RefusedError(f"{present[0].parent} holds {held}: pass --force to replace, or --out")
    made: list[Path] = []
    try:
        for place, _ in targets:
            made += _made_folders(place)
            probe = place / f".mlnav-{os.getpid()}"
            probe.touch()
            probe.unlink()
    except OSError as fault:
        for empty in reversed(made):
            with contextlib.suppress(OSError):
                empty.rmdir()
        raise RefusedError(f"cannot write to {place}: {fault.strerror or fault}") from fault
    for path in present:
        path.unlink()


def _made_folders(folder: Path) -> list[Path]:
    """Make a folder; those that were not there, outermost first."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return missing[::-1]


def file_name(label: str) -> str:
    """A name of a terrain as one of a file, without a suffix."""
    kept = "".join(c if c.isalnum() or c in "._+-" else "-" for c in label.replace(" ", ""))
    return kept.strip(".-") or "terrain"


def emit(value: Any) -> None:
    """The one JSON object of a command."""
    sys.stdout.write(to_json(value, indent=2) + "\n")
    sys.stdout.flush()


def say(text: str) -> None:
    """A message for the person at the terminal."""
    errors.print(text, soft_wrap=True)


def new_table(labels: Sequence[str], figures: Sequence[str] = (), *, header: bool = True) -> Table:
    """A table for the screen that cuts no cell: where it is narrow, the widest columns fold.

    Args:
        labels: headings of columns of text, on the left.
        figures: headings of columns of numbers, to the right of them.
        header: show the headings.
    """
    table = Table(show_header=header, box=None, padding=(0, 2, 0, 0))
    for name in labels:
        table.add_column(name, overflow="fold")
    for name in figures:
        table.add_column(name, justify="right", overflow="fold")
    return table


def print_table(table: tables.Table) -> None:
    """A table of a report: a block a terrain, names folded where the screen is narrow."""
    if not table.lines:
        return
    output.print(f"[bold]{escaped(table.caption)}[/]", soft_wrap=True)
    widths = [max(len(str(line.cells[i])) for line in table.lines) for i in range(table.columns)]
    shown = Table(box=None, padding=(0, 2, 0, 0))
    shown.add_column("", overflow="fold", min_width=10)
    for heading, width in zip(table.headings, widths, strict=True):
        # Headings fold, numbers do not.
        shown.add_column(escaped(heading), justify="right", min_width=width, overflow="fold")
    for terrain, lines in table.groups:
        if table.by_terrain:
            shown.add_row(f"[bold]{escaped(terrain)}[/]")
        for line in lines:
            shown.add_row(escaped(line.contender), *(escaped(str(cell)) for cell in line.cells))
    output.print(shown)


@contextlib.contextmanager
def progress_bar(title: str, total: float) -> Iterator[Callable[[float, str], None]]:
    """A bar on standard error while it is a terminal; yields `update(done, note)`."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=32),
        TextColumn("{task.percentage:3.0f} %"),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
    )
    with Progress(
        *columns, console=errors, transient=True, disable=not errors.is_terminal
    ) as progress:
        task = progress.add_task(title, total=max(total, 1e-9), note="")
        yield lambda done, note: progress.update(task, completed=done, note=note)
