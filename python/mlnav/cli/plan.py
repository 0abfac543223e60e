"""`mlnav plan`: plan and draw one cycle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mlnav.cli import options
from mlnav.cli.common import ENDED, OK, claim, driven_terrain, emit, output, say
from mlnav.config import Config

MOTION = ("turn_rad", "curvature_per_m", "length_m")
RECORDED = (
    "path_index", "path_cost", "path", "ace_evaluations", "ace_floor", "overthink", "paths",
    "paths_finite", "paths_tried", "chosen_rank", "risk_requested", "risk_used",
    "evaluations_before_risk",
)  # fmt: skip
"""Figures of the planner's answer in plan.json."""


@options.with_options
def plan_command(
    *,
    terrain: options.Terrain = "demo",
    reading: options.Reading,
    ends: options.Ends,
    setup: Annotated[
        Config, options.configuration("planner checker limits heuristic allow_coarse")
    ],
    seed: options.Seed = 0,
    out: options.Out = Path("out/plan"),
    as_json: options.Json = False,
    force: options.Force = False,
) -> None:
    """Plan one cycle and draw it: candidates by verdict, the chosen path, costs.

    DIR gets plan.png and plan.json.

    **Examples**

    - mlnav plan --terrain demo --out out/plan
    - mlnav plan -t 15/.10 --seed 2 --start=20,26 --heading-deg 45 --heuristic sobel --force
    """
    from mlnav import sim, viz
    from mlnav.io import write_json
    from mlnav.risk.models import require_model

    ground = driven_terrain(terrain, seed, reading, setup)
    require_model(setup)
    start, goal, heading_rad = ends
    if not (start or goal or (ground.start_m and ground.goal_m)):
        start, goal = sim.default_endpoints(ground, setup)
    navigator, cycle, pose, goal = sim.one_cycle(
        ground, setup, start, goal, heading_rad=heading_rad
    )
    claim(out, ("plan.png", "plan.json"), force)
    result = cycle.result
    summary: dict[str, Any] = {
        "outcome": result.outcome,
        "pose": list(pose),
        "goal": list(goal),
        "motion": {name: getattr(result, name) for name in MOTION},
        "commit_end": list(result.commit_end),
        **{name: getattr(result, name) for name in RECORDED},
        "events": list(cycle.events),
        "start_faults": sim.reason_names(result.start_reasons),
        "rejects": {k: v for k, v in result.rejects.items() if v},
        "timing_s": cycle.timing_s,
        "out": str(out),
    }
    write_json(out / "plan.json", summary)
    figure = viz.plan_figure(ground, navigator, cycle, pose, goal, setup)
    viz.save_figure(figure, out / "plan.png")
    if as_json:
        emit(summary)
    else:
        output.print(
            f"[bold]{result.outcome}[/]: {result.ace_evaluations} ACE evaluations"
            f" (floor {result.ace_floor}), {result.paths_tried} of {result.paths_finite} paths"
            f" tried; {out / 'plan.png'}",
            soft_wrap=True,
        )
        for event in cycle.events:
            say(event)
    raise typer.Exit(OK if result.outcome in ("path", "goal_reached") else ENDED)
