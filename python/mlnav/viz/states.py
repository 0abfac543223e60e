"""One cycle from the same state, planned by every contender."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure

from mlnav.config import Config
from mlnav.nav import Cycle, Navigator
from mlnav.nav.motion import Pose
from mlnav.risk import RiskMap, make_heuristic
from mlnav.sim import SimulatedNavigator, at_rest
from mlnav.terrain import Terrain
from mlnav.viz import plan, style
from mlnav.viz.relief import draw_ground
from mlnav.viz.rover import draw_rover

RISK = style.SHARE.reversed()
"""Risk: none is green, certain is dark red, as in maps of headings that pass."""


class View(NamedTuple):
    """A cycle planned by one contender.

    Risk is its heuristic's map, whether the planner asked for it or not; None without one.
    """

    name: str
    config: Config
    navigator: Navigator
    cycle: Cycle
    risk: RiskMap | None


def view(
    name: str, terrain: Terrain, config: Config, pose: Pose, goal: plan.Point, steered_per_m: float
) -> View:
    """Plan a cycle without memory of earlier ones."""
    simulated = SimulatedNavigator(terrain, config)
    navigator = simulated.navigator
    cycle = simulated.cycle(at_rest(terrain, config, pose), goal, steered_per_m)
    risk = cycle.risk
    if risk is None and config.heuristic.name != "none":
        risk = navigator.heuristic.risk(cycle.local_map.for_costs, pose)
    return View(name, config, navigator, cycle, risk)


def state_figure(
    terrain: Terrain, views: Sequence[View], pose: Pose, goal: plan.Point, title: str, note: str
) -> Figure:
    """One state: predicted and true risk, and what each contender chose.

    Risk is the mean over headings within 45 degrees of the rover's.
    """
    columns = len(views) + 1
    cell, gap, between, left, top, bottom = 3.05, 0.26, 0.55, 0.42, 1.15, 0.42
    width = left + columns * (cell + gap)
    figure = style.new_figure(width, top + 2 * cell + between + bottom)
    place = style.axes_by_inches(figure)
    config = views[0].config
    bounds = plan.reach_window(terrain, config, pose, 0.5, 1.0)

    def panel(row: int, column: int, text: str, note: str) -> Axes:
        axes = place(left + column * (cell + gap), top + row * (cell + between), cell, cell)
        draw_ground(axes, terrain, bounds, faded=0.25)
        axes.tick_params(labelleft=column == 0, labelbottom=row == 1)
        style.panel_title(axes, text, note)
        return axes

    oracle = make_heuristic(config.replaced(heuristic="oracle"))
    truth = oracle.risk(views[0].cycle.local_map.for_costs, pose)
    risks = [(f"{v.name}: risk", _use_of_risk(v), v.risk) for v in views]
    risks.append(("What ACE would say", config.checker.name, truth))
    for i, (text, note_of_risk, risk) in enumerate(risks):
        axes = panel(0, i, text, note_of_risk)
        _draw_risk(axes, risk, pose)
        draw_rover(axes, config.rover, pose)
    for i, v in enumerate(views):
        result = v.cycle.result
        outcome = result.outcome.replace("_", " ")
        found = f"floor {result.ace_floor}" if result.outcome == "path" else outcome
        axes = panel(1, i, f"{result.ace_evaluations} evaluations", found)
        plan.draw_choice(axes, v.navigator, v.cycle, v.config, pose, goal)
        style.scale_bar(axes)
    _legend(figure, place(left + len(views) * (cell + gap), top + cell + between, cell, cell))
    style.headline(figure, title, [note], left / width, terrain.attribution)
    return figure


def _use_of_risk(seen: View) -> str:
    if seen.config.heuristic.name == "none":
        return ""
    result = seen.cycle.result
    if result.risk_used:
        return "used"
    return "asked, has none" if result.risk_requested else "not asked: first path passed"


def _draw_risk(axes: Axes, risk: RiskMap | None, pose: Pose) -> None:
    if risk is None:
        at = (float(np.mean(axes.get_xlim())), axes.get_ylim()[0])
        style.halo_text(axes, "no risk map", at, (0, 13), size=9, bold=False, ha="center")
        return
    cosine = np.cos(2.0 * math.pi * np.arange(len(risk.p)) / len(risk.p) - pose[2])
    near = cosine >= min(math.cos(math.radians(45.0)) - 1e-9, cosine.max())
    p = risk.p[near].mean(axis=0)
    ny, nx = p.shape
    (x, y), res = risk.origin_m, risk.resolution_m
    colours = RISK(np.clip(np.nan_to_num(p), 0.0, 1.0))
    colours[..., 3] = np.where(np.isfinite(p), 0.72, 0.0)
    extent = (x - res / 2, x + (nx - 0.5) * res, y - res / 2, y + (ny - 0.5) * res)
    axes.imshow(colours, origin="lower", extent=extent, interpolation="nearest", zorder=2)


def _legend(figure: Figure, axes: Axes) -> None:
    axes.set_axis_off()
    labels = {plan.FAILED: "candidates that failed", plan.NOT_TRIED: "not tried"}
    labels[plan.NOT_RANKED] = "closed by the costmap"
    handles = plan.legend_handles(labels)
    handles[3].set_color("#b9aea8")  # on paper, not on the ground
    look: dict[str, Any] = {"fontsize": 8.5, "frameon": False, "labelcolor": style.INK}
    axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(0.0, 0.98), **look)
    bar_axes, label = axes.inset_axes((0.05, 0.36, 0.8, 0.035)), "risk, mean of headings within 45°"
    bar = style.colour_bar(figure, ScalarMappable(cmap=RISK), bar_axes, f"{label} of the rover's")
    bar.set_ticks([0.0, 0.5, 1.0])
