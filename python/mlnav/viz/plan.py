"""The picture of one planning cycle: what was tried, what passed, what the costs looked like."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mlnav.config import Config
from mlnav.core import reason_names
from mlnav.nav import CandidatePlanner, Cycle, Navigator, with_candidates
from mlnav.terrain import Terrain
from mlnav.viz import style
from mlnav.viz.relief import draw_relief, window
from mlnav.viz.rover import draw_rover, placed, wheels

_WIDTH_IN, _HEIGHT_IN = 11.0, 7.4
_MAP = (0.055, 0.075, 0.565, 0.765)
_NOT_TRIED, _PASSED, _FAILED, _NOT_RANKED = 0, 1, 2, 3
_NOTHING_RANKED = ("start_unsafe", "goal_reached")
"""Outcomes of cycles that end before there are costs or candidates to draw."""

_LOOKS = {  # verdict: name, colour, width, opacity, order
    _NOT_RANKED: ("closed by the costmap", "#1c1614", 0.5, 0.18, 4),
    _NOT_TRIED: ("not tried", "#ffffff", 0.5, 0.22, 5),
    _FAILED: ("failed ACE", style.BAD, 0.7, 0.5, 6),
}


def plan_figure(
    terrain: Terrain,
    navigator: Navigator,
    cycle: Cycle,
    pose: tuple[float, float, float],
    goal: tuple[float, float],
    config: Config,
) -> Figure:
    """Candidates by verdict, the chosen path with its wheel tracks, costmap and ranked list."""
    figure = style.new_figure(_WIDTH_IN, _HEIGHT_IN)
    result, planner = cycle.result, with_candidates(navigator.planner)
    ranked = result.outcome not in _NOTHING_RANKED

    axes = figure.add_axes(_MAP)
    aspect = (_MAP[2] * _WIDTH_IN) / (_MAP[3] * _HEIGHT_IN)
    reach = max(config.planner.reach_m, 3.0)
    corners = np.array([[pose[0] - reach, pose[1] - reach], [pose[0] + reach, pose[1] + reach]])
    x_min, x_max, y_min, y_max = window(terrain, corners, 1.0, aspect)
    style.map_axes(axes)
    draw_relief(axes, terrain.crop(x_min - 1, x_max + 1, y_min - 1, y_max + 1), faded=0.25)
    axes.set_xlim(x_min, x_max)
    axes.set_ylim(y_min, y_max)
    if ranked:
        draw_candidates(axes, planner)
        draw_chosen(axes, cycle, config, pose)
    draw_rover(axes, config.rover, pose)
    draw_goal_arrow(axes, pose, goal)
    style.scale_bar(axes)
    if ranked and planner is not None:
        verdicts = planner.path_verdicts()
        _legend(axes, verdicts)
        left = _MAP[0] + _MAP[2] + 0.06
        width = 0.97 - left
        _costmap_panel(figure, (left, 0.405, width, 0.435), planner, pose, goal)
        _ranking_panel(figure.add_axes((left, 0.095, width, 0.215)), planner.path_costs(), verdicts)

    title = f"{terrain.name}: one cycle, {result.outcome.replace('_', ' ')}"
    lines_of_text = [
        f"{result.ace_evaluations} ACE evaluations (floor {result.ace_floor}), "
        f"{result.paths_tried} of {result.paths_finite} ranked paths tried,"
        f" {result.paths} candidates",
        f"{config.planner.name}, {config.checker.name}, {config.limits.name},"
        f" heuristic {config.heuristic.name}" + _why(result),
    ]
    style.headline(figure, title, lines_of_text, _MAP[0], 0.965)
    style.credit(figure, terrain.attribution, _MAP[0])
    return figure


def _why(result: Any) -> str:
    if result.start_reasons:
        return f"   ·   start: {', '.join(reason_names(result.start_reasons))}"
    rejects = {k: v for k, v in result.rejects.items() if v}
    return "   ·   rejects: " + ", ".join(f"{k} {v}" for k, v in rejects.items()) if rejects else ""


def draw_candidates(axes: Axes, planner: CandidatePlanner | None) -> None:
    """Candidates, a colour a verdict; nothing of a planner that does not show them."""
    if planner is None:
        return
    verdicts = planner.path_verdicts()
    lines = [planner.path_poses(i)[:, :2] for i in range(len(verdicts))]
    for verdict, (_, colour, width, opacity, order) in _LOOKS.items():
        chosen = [lines[i] for i in np.flatnonzero(verdicts == verdict)]
        axes.add_collection(
            LineCollection(chosen, colors=colour, linewidths=width, alpha=opacity, zorder=order),
            autolim=False,
        )


def draw_chosen(axes: Axes, cycle: Cycle, config: Config, pose: tuple[float, float, float]) -> None:
    """The path that passed with its wheel tracks, and what of it is committed."""
    result = cycle.result
    path = np.asarray(result.path).reshape(-1, 3)
    if result.outcome != "path" or len(path) < 2:
        return
    for offset in wheels(config.rover):
        track = np.vstack([placed([offset], tuple(p)) for p in path])
        axes.plot(
            track[:, 0],
            track[:, 1],
            color=style.CHOSEN,
            linewidth=4.5,
            alpha=0.22,
            zorder=7,
            solid_capstyle="butt",
        )
    axes.plot(path[:, 0], path[:, 1], color="#201a18", linewidth=4.2, alpha=0.8, zorder=8)
    axes.plot(path[:, 0], path[:, 1], color=style.CHOSEN, linewidth=2.4, zorder=9)
    dots = path[:: -(-len(path) // 32)]
    axes.plot(dots[:, 0], dots[:, 1], ".", color="#ffffff", markersize=3.2, zorder=10)
    if result.length_m:
        reach = np.hypot(path[:, 0] - pose[0], path[:, 1] - pose[1])
        end = np.hypot(result.commit_end[0] - pose[0], result.commit_end[1] - pose[1])
        part = path[: int(np.argmin(np.abs(reach - end))) + 1]
        axes.plot(part[:, 0], part[:, 1], color=style.GOAL, linewidth=3.6, zorder=11)
    x, y, heading = result.commit_end
    if result.length_m:
        tail, tip = (x, y), (x + 0.55 * np.cos(heading), y + 0.55 * np.sin(heading))
    else:
        angle = pose[2] + np.linspace(0.0, result.turn_rad, 25)
        ring = np.array(pose[:2]) + 1.75 * np.column_stack([np.cos(angle), np.sin(angle)])
        axes.plot(ring[:, 0], ring[:, 1], color=style.GOAL, linewidth=3.2, zorder=16)
        tail, tip = tuple(ring[-2]), tuple(ring[-1] + 1.5 * (ring[-1] - ring[-2]))
    axes.annotate(
        "",
        tip,
        tail,
        arrowprops={"arrowstyle": "-|>", "color": style.GOAL, "linewidth": 2.4},
        zorder=16,
    )


def draw_goal_arrow(
    axes: Axes, pose: tuple[float, float, float], goal: tuple[float, float]
) -> None:
    """The goal, or where it lies beyond the picture."""
    (x0, x1), (y0, y1) = axes.get_xlim(), axes.get_ylim()
    if x0 < goal[0] < x1 and y0 < goal[1] < y1:
        style.marker(axes, *goal, "*", style.GOAL, "goal")
        return
    direction = np.array([goal[0] - pose[0], goal[1] - pose[1]])
    distance = float(np.hypot(*direction))
    direction /= distance
    edges = np.where(direction > 0.0, (x1, y1), (x0, y0)) - np.array(pose[:2])
    room = [edges[i] / direction[i] for i in range(2) if direction[i] != 0.0]
    tip = np.array(pose[:2]) + direction * (min(room) - 0.3)
    axes.annotate(
        "",
        (tip[0], tip[1]),
        tuple(tip - 0.9 * direction),
        zorder=19,
        arrowprops={"arrowstyle": "-|>", "color": style.GOAL, "linewidth": 2.2},
    )
    axes.annotate(
        f"goal {distance:.0f} m",
        tuple(tip - 0.5 * direction),
        xytext=(0, -17 if tip[1] > y1 - 0.15 * (y1 - y0) else 9),
        textcoords="offset points",
        fontsize=8.5,
        color="#ffffff",
        fontweight="bold",
        ha="right" if direction[0] > 0 else "left",
        path_effects=style.HALO,
        zorder=19,
    )


def _legend(axes: Axes, verdicts: Any) -> None:
    handles = [
        Line2D([], [], color=style.CHOSEN, linewidth=2.4, label="passed ACE, with wheel tracks"),
        Line2D([], [], color=style.GOAL, linewidth=3.0, label="committed now"),
    ]
    for verdict in (_FAILED, _NOT_TRIED, _NOT_RANKED):
        name, colour, _, _, _ = _LOOKS[verdict]
        count = int(np.count_nonzero(verdicts == verdict))
        handles.append(Line2D([], [], color=colour, linewidth=1.6, label=f"{name}: {count}"))
    axes.legend(
        handles=handles,
        loc="lower right",
        fontsize=7.5,
        framealpha=0.78,
        facecolor="#4a3d38",
        edgecolor="none",
        labelcolor="#ffffff",
        borderpad=0.7,
    ).set_zorder(30)


def _costmap_panel(
    figure: Figure,
    box: tuple[float, float, float, float],
    planner: CandidatePlanner,
    pose: tuple[float, float, float],
    goal: tuple[float, float],
) -> None:
    left, bottom, width, height = box
    axes = figure.add_axes((left, bottom + 0.075, width, height - 0.075))
    bar_axes = figure.add_axes((left, bottom + 0.005, width, 0.014))
    costs = planner.costmap()
    cost, to_go = np.asarray(costs["cost_per_m"]), np.asarray(costs["cost_to_go"])
    res, (x, y) = float(costs["resolution_m"]), costs["origin_m"]
    ny, nx = cost.shape
    extent = (x - res / 2, x + (nx - 0.5) * res, y - res / 2, y + (ny - 0.5) * res)
    extra = costs.get("extra_per_m")
    shown = cost if extra is None or not np.size(extra) else cost + np.asarray(extra)
    finite = shown[np.isfinite(shown)]
    style.map_axes(axes)
    axes.set_facecolor("#2b2422")
    image = axes.imshow(
        np.where(np.isfinite(shown), shown, np.nan),
        origin="lower",
        extent=extent,
        cmap="YlOrBr",
        vmin=1.0,
        vmax=float(np.percentile(finite, 99)) if finite.size else 2.0,
        interpolation="nearest",
    )
    reachable = to_go[np.isfinite(to_go)]
    if reachable.size and reachable.max() > reachable.min():
        levels = np.linspace(reachable.min(), np.percentile(reachable, 99), 14)[1:]
        xs, ys = x + res * np.arange(nx), y + res * np.arange(ny)
        axes.contour(
            xs,
            ys,
            np.where(np.isfinite(to_go), to_go, np.nan),
            levels=levels,
            colors="#3b4a8c",
            linewidths=0.7,
            alpha=0.9,
        )
    axes.plot([pose[0]], [pose[1]], "o", color="#ffffff", markeredgecolor=style.INK, markersize=5)
    inside = extent[0] < goal[0] < extent[1] and extent[2] < goal[1] < extent[3]
    if inside:
        axes.plot(
            [goal[0]], [goal[1]], "*", color=style.GOAL, markeredgecolor=style.INK, markersize=11
        )
    axes.set_xlim(extent[0], extent[1])
    axes.set_ylim(extent[2], extent[3])
    style.panel_title(axes, "Costmap and cost-to-go")
    axes.set_anchor("W")
    style.colour_bar(figure, image, bar_axes, "cost per metre; black is closed")


def _ranking_panel(axes: Axes, costs: Any, verdicts: Any) -> None:
    style.plain_axes(axes)
    finite = np.flatnonzero(np.isfinite(costs))
    order = finite[np.argsort(costs[finite], kind="stable")]
    ranks = np.arange(1, len(order) + 1)
    style.panel_title(axes, "Ranked candidates", "cost by rank")
    axes.plot(ranks, costs[order], color="#b9aea8", linewidth=1.4)
    for verdict, colour, size in ((_FAILED, style.BAD, 9), (_PASSED, style.GOOD, 46)):
        hit = verdicts[order] == verdict
        axes.scatter(
            ranks[hit],
            costs[order][hit],
            s=size,
            color=colour,
            zorder=3,
            edgecolors="none" if verdict == _FAILED else style.INK,
            linewidths=0.8,
        )
    axes.set_xscale("log")
    axes.set_xlim(0.8, max(len(order), 2) * 1.2)
    axes.set_xlabel(
        "rank (ACE goes down the list until a path passes)", fontsize=7.5, color=style.SOFT_INK
    )
