"""`mlnav config`: show the configuration and its schema."""

from __future__ import annotations

import json
import sys
from typing import Any

import typer

from mlnav.cli.common import (
    CheckerOption,
    ConfigOption,
    HeuristicOption,
    JsonOption,
    LimitsOption,
    PlannerOption,
    SetOption,
    WorldOption,
    assemble,
    emit,
)
from mlnav.config import json_schema

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode="markdown", help="Show the configuration and its schema."
)


@app.command("show")
def show_command(
    planner: PlannerOption = None,
    checker: CheckerOption = None,
    limits: LimitsOption = None,
    heuristic: HeuristicOption = None,
    world: WorldOption = None,
    config: ConfigOption = None,
    settings: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the whole configuration that these options make, as YAML.

    **Examples**

    mlnav config show > mine.yaml

    mlnav config show --config mine.yaml --heuristic sobel --set limits.tilt_max_deg=20
    """
    setup = assemble(
        config,
        settings,
        planner=planner,
        checker=checker,
        limits=limits,
        heuristic=heuristic,
        world=world,
    )
    if as_json:
        data: dict[str, Any] = json.loads(setup.model_dump_json())
        emit(data)
    else:
        sys.stdout.write(setup.to_yaml())


@app.command("schema")
def schema_command() -> None:
    """Print the JSON Schema of the configuration, for editors.

    **Examples**

    mlnav config schema > mlnav.schema.json
    """
    emit(json_schema())
