"""What the commands share: messages, exit codes, output folders, tables, progress."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.markup import escape
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
            ours = isinstance(fault, ValueError) and type(fault).__module__.startswith("mlnav")
            if ours or isinstance(fault, OSError):  # callers can cause these
                text = " ".join(str(fault).split())
                if isinstance(fault, OSError) and fault.filename is None and fault.errno in _FULL:
                    _drop_output()  # errors of files have a name, so it is this that is full
                    text = f"standard output: {fault.strerror}"
                errors.print(f"[bold red]error:[/] {escape(text)}", soft_wrap=True)
                ctx.exit(USAGE)
            errors.print(
                f"[bold red]internal error:[/] {type(fault).__name__}: {escape(str(fault))}"
                " (--debug shows where)",
                soft_wrap=True,
            )
            ctx.exit(INTERNAL)


def _drop_output() -> None:
    """Discard further standard output: flushing it at exit would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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


def new_app(text: str) -> typer.Typer:
    """A group of sub-commands."""
    return typer.Typer(no_args_is_help=True, rich_markup_mode="markdown", help=text)


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


def claim(folder: Path, names: Sequence[str], force: bool, further: Path | None = None) -> None:
    """Make folders ready for results, the names in one and a further file: all, or none is touched.

    Call it after all input is checked, since it removes the files that `force` replaces.

    Raises:
        RefusedError: some of them exist and `force` is not set, or a folder cannot be written.
    """
    results = [*(folder / name for name in names), *([] if further is None else [further])]
    present = [path for path in results if path.exists()]
    if present and not force:
        held = ", ".join(path.name for path in present if path.parent == present[0].parent)
        raise RefusedError(f"{present[0].parent} holds {held}: pass --force to replace, or --out")
    made: list[Path] = []
    try:
        for place in dict.fromkeys([folder, *(path.parent for path in results)]):
            made += [p for p in (*reversed(place.parents), place) if not p.exists()]
            place.mkdir(parents=True, exist_ok=True)
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


def file_name(label: str) -> str:
    """A terrain's name as a file name without suffix."""
    return re.sub(r"[^\w.+-]", "-", label.replace(" ", "")).strip(".-") or "terrain"


def duration(seconds: float) -> str:
    """A time to wait, in the unit that suits it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


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
    """A table of columns of text, then of numbers; on a narrow screen the widest columns fold."""
    table = Table(show_header=header, box=None, padding=(0, 2, 0, 0))
    for name in labels:
        table.add_column(name, overflow="fold")
    for name in figures:
        table.add_column(name, justify="right", overflow="fold")
    return table


def print_rows(
    labels: Sequence[str],
    figures: Sequence[str],
    rows: Iterable[Sequence[str]],
    header: bool = True,
) -> None:
    """Print a table with columns as of `new_table`."""
    table = new_table(labels, figures, header=header)
    for row in rows:
        table.add_row(*row)
    output.print(table)


def print_fields(fields: Iterable[tuple[str, str]]) -> None:
    """Print names and values, one pair per line."""
    print_rows(("", ""), (), fields, header=False)


def print_table(table: tables.Table) -> None:
    """Print a table of a report by terrain; names fold where the screen is narrow."""
    if not table.lines:
        return
    output.print(f"[bold]{escape(table.caption)}[/]", soft_wrap=True)
    columns = range(len(table.headings))
    widths = [max(len(str(line.cells[i])) for line in table.lines) for i in columns]
    shown = new_table(("",), [escape(heading) for heading in table.headings])
    for column, width in zip(shown.columns, (10, *widths), strict=True):
        column.min_width = width  # headings fold, numbers do not
    for terrain, lines in table.groups:
        if table.by_terrain:
            shown.add_row(f"[bold]{escape(terrain)}[/]")
        for line in lines:
            shown.add_row(escape(line.contender), *(escape(str(cell)) for cell in line.cells))
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
