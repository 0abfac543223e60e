"""The figure of one planning cycle: candidates, verdicts and costs."""

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
from mlnav.nav.motion import Pose
from mlnav.terrain import Terrain
from mlnav.viz import style
from mlnav.viz.relief import Bounds, draw_ground, window
from mlnav.viz.rover import draw_rover, placed, wheels

Point = tuple[float, float]

NOT_TRIED, PASSED, FAILED, NOT_RANKED = 0, 1, 2, 3
"""Values of `path_verdicts`."""
NOTHING_RANKED = ("start_unsafe", "goal_reached")
"""Outcomes of cycles that end before there are costs or candidates."""

_LOOKS = {  # verdict: name, colour, width, opacity, order
    NOT_RANKED: ("closed by the costmap", "#1c1614", 0.5, 0.18, 4),
    NOT_TRIED: ("not tried", "#ffffff", 0.5, 0.22, 5),
    FAILED: ("failed ACE", style.BAD, 0.7, 0.5, 6),
}


def plan_figure(
    terrain: Terrain, navigator: Navigator, cycle: Cycle, pose: Pose, goal: Point, config: Config
) -> Figure:
    """Candidates by verdict, the chosen path with its wheel tracks, costmap and ranked list."""
    figure, axes, panel = style.map_page()
    result, planner = cycle.result, with_candidates(navigator.planner)
    bounds = reach_window(terrain, config, pose, 1.0, style.aspect_of(axes))
    draw_ground(axes, terrain, bounds, faded=0.25)
    draw_choice(axes, navigator, cycle, config, pose, goal)
    style.scale_bar(axes)
    if result.outcome not in NOTHING_RANKED and planner is not None:
        verdicts = planner.path_verdicts()
        labels = {
            v: f"{name}: {np.count_nonzero(verdicts == v)}"
            for v, (name, *_) in reversed(_LOOKS.items())
        }
        look: dict[str, Any] = {"facecolor": "#4a3d38", "edgecolor": "none", "framealpha": 0.78}
        look |= {"labelcolor": "#ffffff", "borderpad": 0.7, "fontsize": 7.5}
        axes.legend(handles=legend_handles(labels), loc="lower right", **look).set_zorder(30)
        image = _costmap_panel(panel(0.48, 0.36), planner, pose, goal)
        bar = panel(0.41, 0.014)
        style.colour_bar(figure, image, bar, "cost per metre; black is closed")
        _ranking_panel(panel(0.095, 0.215), planner.path_costs(), verdicts)

    lines = [
        f"{result.ace_evaluations} ACE evaluations (floor {result.ace_floor}), "
        f"{result.paths_tried} of {result.paths_finite} ranked paths tried,"
        f" {result.paths} candidates",
        f"{config.planner.name}, {config.checker.name}, {config.limits.name},"
        f" heuristic {config.heuristic.name}" + _why(result),
    ]
    title = f"{terrain.name}: one cycle, {result.outcome.replace('_', ' ')}"
    style.headline(figure, title, lines, 0.055, terrain.attribution)
    return figure


def _why(result: Any) -> str:
    if result.start_reasons:
        return f"   ·   start: {', '.join(reason_names(result.start_reasons))}"
    rejects = ", ".join(f"{reason} {count}" for reason, count in result.rejects.items() if count)
    return f"   ·   rejects: {rejects}" if rejects else ""


def reach_window(
    terrain: Terrain, config: Config, pose: Pose, margin_m: float, aspect: float
) -> Bounds:
    """Bounds of a map that holds all that a cycle's candidates reach."""
    reach = max(config.planner.reach_m, 3.0)
    points = np.add(pose[:2], [[-reach, -reach], [reach, reach]])
    return window(terrain, points, margin_m, aspect)


def draw_choice(
    axes: Axes, navigator: Navigator, cycle: Cycle, config: Config, pose: Pose, goal: Point
) -> None:
    """Candidates by verdict, where the planner shows them, the chosen path, rover and goal."""
    planner = with_candidates(navigator.planner)
    if cycle.result.outcome not in NOTHING_RANKED:
        verdicts = np.empty(0) if planner is None else planner.path_verdicts()
        for verdict, (_, colour, width, opacity, order) in _LOOKS.items():
            shown = np.flatnonzero(verdicts == verdict)
            lines = [planner.path_poses(int(i))[:, :2] for i in shown if planner]
            look: dict[str, Any] = {"linewidths": width, "alpha": opacity, "zorder": order}
            axes.add_collection(LineCollection(lines, colors=colour, **look), autolim=False)
        _draw_chosen(axes, cycle, config, pose)
    draw_rover(axes, config.rover, pose)
    _draw_goal(axes, pose, goal)


def legend_handles(labels: dict[int, str]) -> list[Line2D]:
    """Of what `draw_choice` draws; `labels` names candidates by verdict."""
    looks = [
        ("passed ACE, with wheel tracks", style.CHOSEN, 2.4),
        ("committed now", style.GOAL, 3.0),
        *((label, _LOOKS[verdict][1], 1.6) for verdict, label in labels.items()),
    ]
    return [Line2D([], [], color=c, linewidth=width, label=label) for label, c, width in looks]


def _draw_chosen(axes: Axes, cycle: Cycle, config: Config, pose: Pose) -> None:
    """The path that passed with its wheel tracks, and the part of it that is committed."""
    result = cycle.result
    path = np.asarray(result.path).reshape(-1, 3)
    if result.outcome != "path" or len(path) < 2:
        return

    def line(points: Any, *form: str, **look: Any) -> None:
        axes.plot(points[:, 0], points[:, 1], *form, **look)

    for offset in wheels(config.rover):
        track = np.vstack([placed([offset], tuple(p)) for p in path])
        line(track, color=style.CHOSEN, lw=4.5, alpha=0.22, zorder=7, solid_capstyle="butt")
    line(path, color=style.CASING, lw=4.2, alpha=0.8, zorder=8)
    line(path, color=style.CHOSEN, lw=2.4, zorder=9)
    line(path[:: -(-len(path) // 32)], ".", color="#ffffff", ms=3.2, zorder=10)
    end = np.array(result.commit_end)
    if result.length_m:
        reach, at = (np.hypot(*(p[..., :2] - pose[:2]).T) for p in (path, end))
        line(path[: int(np.argmin(np.abs(reach - at))) + 1], color=style.GOAL, lw=3.6, zorder=11)
        tail, tip = end, end[:2] + 0.55 * np.array([np.cos(end[2]), np.sin(end[2])])
    else:
        angle = pose[2] + np.linspace(0.0, result.turn_rad, 25)
        ring = np.array(pose[:2]) + 1.75 * np.column_stack([np.cos(angle), np.sin(angle)])
        line(ring, color=style.GOAL, lw=3.2, zorder=16)
        tail, tip = ring[-2], ring[-1] + 1.5 * (ring[-1] - ring[-2])
    style.arrow(axes, tail, tip, linewidth=2.4)


def _draw_goal(axes: Axes, pose: Pose, goal: Point) -> None:
    """The goal, or an arrow to it at the edge of the map."""
    (x0, x1), (y0, y1) = axes.get_xlim(), axes.get_ylim()
    if x0 < goal[0] < x1 and y0 < goal[1] < y1:
        style.mark_ends(axes, None, goal)
        return
    here = np.array(pose[:2])
    distance = float(np.hypot(*(goal - here)))
    direction = (goal - here) / distance
    edges = np.where(direction > 0.0, (x1, y1), (x0, y0)) - here
    aslant = direction != 0.0
    tip = here + direction * (min(edges[aslant] / direction[aslant]) - 0.3)
    style.arrow(axes, tip - 0.9 * direction, tip, linewidth=2.2)
    x, y = map(float, tip - 0.5 * direction)
    offset_pt = (0, -17 if tip[1] > y1 - 0.15 * (y1 - y0) else 9)
    align = "right" if direction[0] > 0 else "left"
    style.halo_text(axes, f"goal {distance:.0f} m", (x, y), offset_pt, ha=align, zorder=19)


def _costmap_panel(axes: Axes, planner: CandidatePlanner, pose: Pose, goal: Point) -> Any:
    """Cost per metre with contours of cost-to-go; returns the image."""
    costs = planner.costmap()
    cost, to_go = np.asarray(costs["cost_per_m"]), np.asarray(costs["cost_to_go"])
    res, (x, y), (ny, nx) = float(costs["resolution_m"]), costs["origin_m"], cost.shape
    extent = (x - res / 2, x + (nx - 0.5) * res, y - res / 2, y + (ny - 0.5) * res)
    extra = costs.get("extra_per_m")
    shown = cost if extra is None or not np.size(extra) else cost + np.asarray(extra)
    finite, reachable = shown[np.isfinite(shown)], to_go[np.isfinite(to_go)]
    style.map_axes(axes, style.INK)
    most = float(np.percentile(finite, 99)) if finite.size else 2.0
    place: dict[str, Any] = {"origin": "lower", "extent": extent}
    image = axes.imshow(shown, cmap="YlOrBr", vmin=1.0, vmax=most, interpolation="nearest", **place)
    if reachable.size and reachable.max() > reachable.min():
        levels = np.linspace(reachable.min(), np.percentile(reachable, 99), 14)[1:]
        look: dict[str, Any] = {"colors": "#3b4a8c", "linewidths": 0.7, "alpha": 0.9}
        axes.contour(to_go, levels=levels, **place, **look)
    axes.plot(*pose[:2], "o", color="#ffffff", mec=style.INK, ms=5)
    axes.plot(*goal, "*", color=style.GOAL, mec=style.INK, ms=11)
    axes.axis(extent)
    style.panel_title(axes, "Costmap and cost-to-go")
    axes.set_anchor("W")
    return image


def _ranking_panel(axes: Axes, costs: Any, verdicts: Any) -> None:
    style.plain_axes(axes)
    finite = np.flatnonzero(np.isfinite(costs))
    order = finite[np.argsort(costs[finite], kind="stable")]
    ranks = np.arange(1, len(order) + 1)
    style.panel_title(axes, "Ranked candidates", "cost by rank")
    axes.plot(ranks, costs[order], color="#b9aea8", linewidth=1.4)
    looks = ((FAILED, style.BAD, 9, "none"), (PASSED, style.GOOD, 46, style.INK))
    for verdict, colour, size, edge in looks:
        hit = verdicts[order] == verdict
        look: dict[str, Any] = {"edgecolors": edge, "linewidths": 0.8, "zorder": 3}
        axes.scatter(ranks[hit], costs[order][hit], s=size, color=colour, **look)
    axes.set_xscale("log")
    axes.set_xlim(0.8, max(len(order), 2) * 1.2)
    axes.set_xlabel("rank (ACE goes down the list until a path passes)")
