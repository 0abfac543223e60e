"""The `mlnav` command and its sub-commands."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Option

from mlnav import __version__
from mlnav.cli import (
    ace,
    bench,
    campaign,
    compare,
    configuration,
    doctor,
    learn,
    plan,
    replay,
    terrain,
    traverse,
)
from mlnav.cli.common import EXIT_CODES, Group

app = typer.Typer(
    name="mlnav",
    cls=Group,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXIT_CODES,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"mlnav {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, Option("--version", callback=_version, is_eager=True, help="Version, and stop.")
    ] = False,
    debug: Annotated[bool, Option("--debug", help="Show tracebacks of faults.")] = False,
) -> None:
    """Rover navigation: plan, drive and measure on rough ground.

    **Examples**

    - mlnav traverse --terrain demo --out out/demo
    - mlnav traverse --terrain map.tif --start=-10,-8 --goal=11,9 --heuristic sobel --gif
    - mlnav plan --terrain 15/.10 --seed 3 --out out/plan
    """


app.command("traverse", epilog=EXIT_CODES)(traverse.traverse_command)
app.command("plan", epilog=EXIT_CODES)(plan.plan_command)
app.command("compare", epilog=EXIT_CODES)(compare.compare_command)
app.add_typer(campaign.app, name="campaign")
app.command("replay", epilog=EXIT_CODES)(replay.replay_command)
app.add_typer(ace.app, name="ace")
app.add_typer(terrain.app, name="terrain")
app.add_typer(configuration.app, name="config")
app.add_typer(bench.app, name="bench")
app.add_typer(learn.app, name="learn")
app.command("doctor")(doctor.doctor_command)
