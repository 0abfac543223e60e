"""What the commands share: messages, exit codes, output folders, tables, progress."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from typer.core import TyperGroup

from mlnav.cli.streams import take_every_text
from mlnav.config import Config
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
    """Bad input; the message is one line."""


class Group(TyperGroup):
    """Prints every fault as one line and sets the exit code; --debug shows the traceback."""

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
            _drop_output()  # the reader of the pipe has closed it
            ctx.exit(OK)
        except Exception as fault:
            if ctx.params.get("debug") or hasattr(fault, "exit_code"):
                raise  # usage errors print themselves
            if _is_input_fault(fault):
                text = " ".join(str(fault).split())
                if isinstance(fault, OSError) and fault.filename is None and fault.errno in _FULL:
                    _drop_output()  # errors of files have a name, so it is this that is full
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
    """Discard further standard output: flushing it at exit would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def escaped(text: str) -> str:
    """The text, not read as markup by Rich."""
    return text.replace("[", r"\[")


def _is_input_fault(fault: Exception) -> bool:
    """Faults that callers can cause: our own ValueErrors, and the file system's."""
    if isinstance(fault, OSError):
        return True
    return isinstance(fault, ValueError) and type(fault).__module__.startswith("mlnav")


# ----------------------------------------------------------------------------------------- values


def numbers(
    option: str, text: str | None, wanted: str = "a list of numbers", count: int = 0
) -> tuple[float, ...]:
    """Numbers separated by commas; exactly `count` of them, unless that is 0.

    Raises:
        RefusedError: the text is something else than what is `wanted`.
    """
    try:
        found = tuple(map(float, text.split(","))) if text else ()
        if count not in (0, len(found)):
            raise ValueError
    except ValueError:
        raise RefusedError(f"{option}: {text!r} is not {wanted}") from None
    return found


def point(option: str, text: str | None) -> tuple[float, float] | None:
    """`X,Y` in metres.

    Raises:
        RefusedError: the text is something else.
    """
    if text is None:
        return None
    x, y = numbers(option, text, "X,Y in metres", 2)
    return x, y


def driven_terrain(spec: str, seed: int, reading: Reading, config: Config) -> Terrain:
    """The terrain of --terrain, checked that its cells are fine enough to plan or drive on.

    Raises:
        TerrainError: there is none, or its cells are too coarse for the configuration.
    """
    from mlnav.sim.cells import check_cells
    from mlnav.terrain import load

    terrain = load(spec, seed, reading)
    check_cells(terrain, config)
    return terrain


# ----------------------------------------------------------------------------------------- output


def claim(
    folder: Path, names: Sequence[str], force: bool, *more: tuple[Path, Sequence[str]]
) -> None:
    """Make folders ready for results: all of them, or nothing is touched.

    Call it after all input is checked, since it removes the files that `force` replaces.

    Args:
        folder: of results.
        names: of the results in it.
        force: replace results that exist.
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
    """Make a folder; returns the folders that did not exist, outermost first."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return missing[::-1]


def file_name(label: str) -> str:
    """A terrain's name as a file name without suffix."""
    kept = "".join(c if c.isalnum() or c in "._+-" else "-" for c in label.replace(" ", ""))
    return kept.strip(".-") or "terrain"


def emit(value: Any) -> None:
    """Print the one JSON object of a command."""
    sys.stdout.write(to_json(value, indent=2) + "\n")
    sys.stdout.flush()


def show(value: Any, as_json: bool, show_text: Callable[[Any], None]) -> None:
    """Print the result of a command: as JSON with --json, otherwise by `show_text(value)`."""
    (emit if as_json else show_text)(value)


def say(text: str) -> None:
    """Print a message on standard error."""
    errors.print(text, soft_wrap=True)


def new_table(labels: Sequence[str], figures: Sequence[str] = (), *, header: bool = True) -> Table:
    """A table that cuts no cell: on a narrow screen the widest columns fold.

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


def print_rows(
    labels: Sequence[str], figures: Sequence[str], rows: Iterable[Sequence[str]]
) -> None:
    """Print a table with columns as of `new_table`."""
    table = new_table(labels, figures)
    for row in rows:
        table.add_row(*row)
    output.print(table)


def print_fields(fields: Iterable[tuple[str, str]]) -> None:
    """Print names and values, one pair per line."""
    table = new_table(("", ""), header=False)
    for field in fields:
        table.add_row(*field)
    output.print(table)


def print_table(table: tables.Table) -> None:
    """Print a table of a report by terrain; names fold where the screen is narrow."""
    if not table.lines:
        return
    output.print(f"[bold]{escaped(table.caption)}[/]", soft_wrap=True)
    widths = [
        max(len(str(line.cells[i])) for line in table.lines) for i in range(len(table.headings))
    ]
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
