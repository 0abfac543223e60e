"""`mlnav config`: show the configuration and its schema."""

from __future__ import annotations

import json
import sys
from typing import Annotated

from mlnav.cli import common, options
from mlnav.cli.common import emit
from mlnav.config import Config, json_schema

app = common.new_app("Show the configuration and its schema.")


@app.command("show")
@options.with_options
def show_command(
    *,
    setup: Annotated[Config, options.configuration("planner checker limits heuristic world")],
    as_json: options.Json = False,
) -> None:
    """Print the whole configuration that these options make, as YAML.

    **Examples**

    - mlnav config show > mine.yaml
    - mlnav config show --config mine.yaml --heuristic sobel --set limits.tilt_max_deg=20
    """
    if as_json:
        emit(json.loads(setup.model_dump_json()))
    else:
        sys.stdout.write(setup.to_yaml())


@app.command("schema")
def schema_command() -> None:
    """Print the JSON Schema of the configuration, for editors.

    **Examples**

    - mlnav config schema > mlnav.schema.json
    """
    emit(json_schema())
