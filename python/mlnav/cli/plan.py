"""`mlnav plan`: plan and draw one cycle."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from mlnav.cli import options
from mlnav.cli.common import ENDED, OK, claim, driven_terrain, emit, output, point, say
from mlnav.config import Config


@options.with_options
def plan_command(
    *,
    terrain: options.Terrain = "demo",
    reading: options.Reading,
    start: options.Start = None,
    goal: options.Goal = None,
    heading_deg: options.Heading = None,
    setup: Annotated[
        Config, options.configuration("planner", "checker", "limits", "heuristic", "allow_coarse")
    ],
    seed: options.Seed = 0,
    out: options.Out = Path("out/plan"),
    as_json: options.Json = False,
    force: options.Force = False,
) -> None:
    """Plan one cycle and draw it: candidates by verdict, the chosen path, costs.

    DIR gets plan.png and plan.json.

    **Examples**

    mlnav plan --terrain demo --out out/plan

    mlnav plan -t 15/.10 --seed 2 --start=20,26 --heading-deg 45 --heuristic sobel --force
    """
    from mlnav import sim, viz
    from mlnav.io import write_json
    from mlnav.risk.models import require_model

    ground = driven_terrain(terrain, seed, reading, setup)
    require_model(setup)
    start_at, goal_at = point("--start", start), point("--goal", goal)
    if not (start_at or goal_at or (ground.start_m and ground.goal_m)):
        start_at, goal_at = sim.default_endpoints(ground, setup)
    heading = None if heading_deg is None else math.radians(heading_deg)
    navigator, cycle, pose, goal_point = sim.one_cycle(
        ground, setup, start_at, goal_at, heading_rad=heading
    )
    claim(out, ("plan.png", "plan.json"), force)
    result = cycle.result
    summary: dict[str, Any] = {
        "outcome": result.outcome,
        "pose": list(pose),
        "goal": list(goal_point),
        "motion": {
            "turn_rad": result.turn_rad,
            "curvature_per_m": result.curvature_per_m,
            "length_m": result.length_m,
        },
        "commit_end": list(result.commit_end),
        "path_index": result.path_index,
        "path_cost": result.path_cost,
        "path": result.path,
        "ace_evaluations": result.ace_evaluations,
        "ace_floor": result.ace_floor,
        "overthink": result.overthink,
        "paths": result.paths,
        "paths_finite": result.paths_finite,
        "paths_tried": result.paths_tried,
        "chosen_rank": result.chosen_rank,
        "risk_requested": result.risk_requested,
        "risk_used": result.risk_used,
        "evaluations_before_risk": result.evaluations_before_risk,
        "events": list(cycle.events),
        "start_faults": sim.reason_names(result.start_reasons),
        "rejects": {k: v for k, v in result.rejects.items() if v},
        "timing_s": cycle.timing_s,
        "out": str(out),
    }
    write_json(out / "plan.json", summary)
    figure = viz.plan_figure(ground, navigator, cycle, pose, goal_point, setup)
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
