"""One cycle from the same state, as every contender would plan it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mlnav.config import Config
from mlnav.nav import Cycle, Navigator, with_candidates
from mlnav.risk import RiskMap, make_heuristic
from mlnav.sim import SimulatedNavigator, at_rest
from mlnav.terrain import Terrain
from mlnav.viz import style
from mlnav.viz.plan import draw_candidates, draw_chosen, draw_goal_arrow
from mlnav.viz.relief import draw_relief, window
from mlnav.viz.rover import draw_rover

Pose = tuple[float, float, float]
Point = tuple[float, float]

RISK = style.SHARE.reversed()
"""Risk: none green, certain dark red, as in maps of headings that pass."""


@dataclass(frozen=True, eq=False)
class View:
    """A cycle as one contender would plan it.

    Attributes:
        name: of the contender.
        config: its configuration.
        navigator: that planned the cycle.
        cycle: what it decided.
        risk: its heuristic's map, asked for or not; None where it has none.
    """

    name: str
    config: Config
    navigator: Navigator
    cycle: Cycle
    risk: RiskMap | None


def view(
    name: str, terrain: Terrain, config: Config, pose: Pose, goal: Point, steered_per_m: float
) -> View:
    """Plan a cycle without memory, to look at."""
    simulated = SimulatedNavigator(terrain, config)
    navigator = simulated.navigator
    cycle = simulated.cycle(at_rest(terrain, config, pose), goal, steered_per_m)
    risk = cycle.risk
    if risk is None and config.heuristic.name != "none":
        risk = navigator.heuristic.risk(cycle.local_map.for_costs, pose)
    return View(name, config, navigator, cycle, risk)


def state_figure(
    terrain: Terrain, views: Sequence[View], pose: Pose, goal: Point, title: str, note: str
) -> Figure:
    """One state: risk as each heuristic sees it and as it is, and what each contender chose.

    Risk is the mean over headings within 45 degrees of the rover's.
    """
    columns = len(views) + 1
    cell, gap, left, top, bottom = 3.05, 0.26, 0.42, 1.15, 0.42
    between = 0.55
    width = left + columns * (cell + gap)
    height = top + 2 * cell + between + bottom
    figure = style.new_figure(width, height)
    config = views[0].config
    reach = max(config.planner.reach_m, 3.0)
    corners = np.array([[pose[0] - reach, pose[1] - reach], [pose[0] + reach, pose[1] + reach]])
    bounds = window(terrain, corners, 0.5)
    truth_of = make_heuristic(config.replaced(heuristic="oracle"))
    truth = truth_of.risk(views[0].cycle.local_map.for_costs, pose)

    def place(row: int, column: int) -> Axes:
        x = left + column * (cell + gap)
        y = height - top - cell - row * (cell + between)
        axes = figure.add_axes((x / width, y / height, cell / width, cell / height))
        _ground(axes, terrain, bounds)
        if column:
            axes.set_yticklabels([])
        if row == 0:
            axes.set_xticklabels([])
        return axes

    for i, seen in enumerate(views):
        axes = place(0, i)
        style.panel_title(axes, f"{seen.name}: risk", _asked(seen))
        _draw_risk(axes, seen.risk, pose)
        draw_rover(axes, config.rover, pose)
        axes = place(1, i)
        _choice(axes, seen, pose, goal)
        style.scale_bar(axes)
    axes = place(0, len(views))
    style.panel_title(axes, "What ACE would say", f"{config.checker.name}")
    _draw_risk(axes, truth, pose)
    draw_rover(axes, config.rover, pose)
    _legend(figure, place(1, len(views)), views)
    style.headline(figure, title, [note], left / width, 1.0 - 0.22 / height)
    style.credit(figure, terrain.attribution, left / width)
    return figure


def _ground(axes: Axes, terrain: Terrain, bounds: tuple[float, float, float, float]) -> None:
    x_min, x_max, y_min, y_max = bounds
    style.map_axes(axes)
    draw_relief(axes, terrain.crop(x_min - 1, x_max + 1, y_min - 1, y_max + 1), faded=0.25)
    axes.set_xlim(x_min, x_max)
    axes.set_ylim(y_min, y_max)


def _asked(seen: View) -> str:
    if seen.config.heuristic.name == "none":
        return ""
    result = seen.cycle.result
    if result.risk_used:
        return "used"
    return "asked, has none" if result.risk_requested else "not asked: first path passed"


def _draw_risk(axes: Axes, risk: RiskMap | None, pose: Pose) -> None:
    if risk is None:
        axes.text(
            0.5,
            0.06,
            "no risk map",
            transform=axes.transAxes,
            fontsize=9,
            color="#ffffff",
            ha="center",
            path_effects=style.HALO,
        )
        return
    p = _near_heading(risk.p, pose[2])
    ny, nx = p.shape
    (x, y), res = risk.origin_m, risk.resolution_m
    colours = RISK(np.clip(np.nan_to_num(p), 0.0, 1.0))
    colours[..., 3] = np.where(np.isfinite(p), 0.72, 0.0)
    axes.imshow(
        colours,
        origin="lower",
        extent=(x - res / 2, x + (nx - 0.5) * res, y - res / 2, y + (ny - 0.5) * res),
        interpolation="nearest",
        zorder=2,
    )


def _near_heading(p: Any, heading: float) -> Any:
    bins = len(p)
    angles = 2.0 * math.pi * np.arange(bins) / bins
    near = np.cos(angles - heading) >= math.cos(math.radians(45.0)) - 1e-9
    if not near.any():
        near[int(np.argmax(np.cos(angles - heading)))] = True
    return p[near].mean(axis=0)


def _choice(axes: Axes, seen: View, pose: Pose, goal: Point) -> None:
    result = seen.cycle.result
    if result.outcome not in ("start_unsafe", "goal_reached"):
        draw_candidates(axes, with_candidates(seen.navigator.planner))
        draw_chosen(axes, seen.cycle, seen.config, pose)
    draw_rover(axes, seen.config.rover, pose)
    draw_goal_arrow(axes, pose, goal)
    found = result.outcome == "path"
    style.panel_title(
        axes,
        f"{result.ace_evaluations} evaluations",
        f"floor {result.ace_floor}" if found else result.outcome.replace("_", " "),
    )


def _legend(figure: Figure, axes: Axes, views: Sequence[View]) -> None:
    for image in axes.images:
        image.remove()
    axes.set_axis_off()
    handles = [
        Line2D([], [], color=style.CHOSEN, linewidth=2.4, label="passed ACE, with wheel tracks"),
        Line2D([], [], color=style.GOAL, linewidth=3.0, label="committed now"),
        Line2D([], [], color=style.BAD, linewidth=1.6, label="candidates that failed"),
        Line2D([], [], color="#b9aea8", linewidth=1.6, label="not tried"),
        Line2D([], [], color="#1c1614", linewidth=1.6, alpha=0.5, label="closed by the costmap"),
    ]
    axes.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0.0, 0.98),
        fontsize=8.5,
        frameon=False,
        labelcolor=style.INK,
    )
    box = axes.get_position()
    bar_axes = figure.add_axes(
        (box.x0 + 0.05 * box.width, box.y0 + 0.36 * box.height, 0.8 * box.width, 0.035 * box.height)
    )
    bar = style.colour_bar(
        figure,
        ScalarMappable(Normalize(0.0, 1.0), RISK),
        bar_axes,
        "risk, mean of headings within 45° of the rover's",
    )
    bar.set_ticks([0.0, 0.5, 1.0])
