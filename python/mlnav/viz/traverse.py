"""The figure of a traverse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from matplotlib.ticker import MaxNLocator

from mlnav.config import Config
from mlnav.sim.records import OUTCOMES, CycleRecord, TraverseResult
from mlnav.terrain import Terrain
from mlnav.viz import style
from mlnav.viz.relief import draw_ground, window
from mlnav.viz.rover import draw_rover


def traverse_figure(terrain: Terrain, result: TraverseResult, config: Config) -> Figure:
    """Track over shaded relief, coloured by ACE evaluations; evaluations and tilt by cycle."""
    figure, axes, panel = style.map_page()
    norm = effort_norm(result, config)
    draw_map(axes, terrain, result, config, style.aspect_of(axes))
    draw_track(axes, result.cycles, norm)
    draw_ending(axes, result, config)
    style.scale_bar(axes)

    mappable = ScalarMappable(norm, style.EFFORT)
    bar = style.colour_bar(figure, mappable, panel(0.795, 0.016), "ACE evaluations in a cycle")
    bar.ax.xaxis.set_major_formatter("{x:g}")
    bar.ax.axvline(config.planner.overthink_evaluations, color=style.INK, linewidth=1.2)
    _effort_panel(panel(0.435, 0.265), result, config, norm)
    _tilt_panel(panel(0.095, 0.235), result, config)
    style.headline(figure, *numbers(result), 0.055, terrain.attribution)
    return figure


def effort_norm(result: TraverseResult, config: Config) -> LogNorm:
    """Logarithmic scale of evaluations, always reaching past the overthink mark."""
    most = max((c.ace_evaluations for c in result.cycles), default=0)
    highest = max(most, 2 * config.planner.overthink_evaluations, 100)
    return LogNorm(vmin=10.0, vmax=float(highest), clip=True)


def draw_map(
    axes: Axes, terrain: Terrain, result: TraverseResult, config: Config, aspect: float = 1.0
) -> None:
    """Relief around the run, keep-out zones, start and goal; `aspect` is width over height."""
    tracks = [c.track[:, :2] for c in result.cycles if len(c.track)]
    points = np.vstack([[result.start[:2], result.goal, result.end[:2]], *tracks])
    margin_m = max(3.5, 0.12 * result.straight_line_m)
    draw_ground(axes, terrain, window(terrain, points, margin_m, aspect))
    for zone in config.keep_out:
        style.polygon(axes, zone, style.BAD, alpha=0.18, zorder=2)
        style.polygon(axes, zone, edgecolor=style.BAD, hatch="//", linewidth=1.0, zorder=3)
    tolerance: dict[str, Any] = {"linewidth": 1.2, "linestyle": (0, (3, 2)), "zorder": 8}
    radius = config.traverse.goal_tolerance_m
    axes.add_patch(Circle(result.goal, radius, fill=False, edgecolor=style.GOAL, **tolerance))
    style.mark_ends(axes, result.start, result.goal)


def draw_track(axes: Axes, cycles: Sequence[CycleRecord], norm: LogNorm) -> list[Any]:
    """Driven track, a colour a cycle, with dots where cycles began; returns the artists."""
    driven = [c for c in cycles if len(c.track)]
    lines = [np.vstack([c.pose[:2], c.track[:, :2]]) for c in driven]
    look: dict[str, Any] = {"capstyle": "round"}
    casing = LineCollection(
        lines, colors=style.CASING, linewidths=5.2, alpha=0.75, zorder=9, **look
    )
    track = LineCollection(lines, cmap=style.EFFORT, norm=norm, linewidths=3.2, zorder=10, **look)
    track.set_array(np.array([c.ace_evaluations for c in driven], np.float64))
    artists: list[Any] = [axes.add_collection(c, autolim=False) for c in (casing, track)]
    if cycles:
        x, y = np.array([c.pose[:2] for c in cycles]).T
        rim: dict[str, Any] = {"edgecolors": style.CASING, "linewidths": 0.7, "zorder": 11}
        colours = style.EFFORT(norm([c.ace_evaluations for c in cycles]))
        artists.append(axes.scatter(x, y, s=16, c=colours, **rim))
    return artists


def draw_ending(axes: Axes, result: TraverseResult, config: Config) -> None:
    """The rover where it ended, and a cross with the reason when that is not the goal."""
    draw_rover(axes, config.rover, result.end)
    if result.success:
        return
    x, y, _ = result.end
    look: dict[str, Any] = {"markeredgecolor": "#ffffff", "markeredgewidth": 1.3, "zorder": 18}
    axes.plot(x, y, "X", color=style.BAD, markersize=13, **look)
    style.halo_text(axes, ending(result), (x, y), (11, -16), size=9, zorder=19)


def ending(result: TraverseResult) -> str:
    """How a run ended: outcome and faults."""
    return ": ".join(filter(None, (result.outcome.replace("_", " "), ", ".join(result.faults))))


def numbers(result: TraverseResult) -> tuple[str, list[str]]:
    """Title and lines of a picture."""
    s = result.summary(timing=False)
    per_cycle = s["ace_evaluations_per_cycle"]
    title = f"{result.terrain}: {result.outcome.replace('_', ' ')}"
    drive = f"{result.driven_m:.1f} m driven for {result.straight_line_m:.1f} m"
    if result.inefficiency is not None:
        drive += f" (inefficiency {result.inefficiency:z.2f})"
    safety = f"{result.unsafe_states or 'no'} unsafe of {result.judged_states:,} judged states"
    lines = [f"{drive} in {len(result.cycles)} cycles   ·   {safety}"]
    if result.cycles:
        lines.append(
            f"ACE evaluations a cycle: mean {per_cycle['mean']:.0f}, median"
            f" {per_cycle['median']:.0f}, p95 {per_cycle['p95']:.0f}   ·  "
            f" {result.planner}, {result.checker}, {result.limits}, heuristic {result.heuristic}"
        )
    else:
        lines.append(OUTCOMES.get(result.outcome, ""))
    return title, lines


def _effort_panel(axes: Axes, result: TraverseResult, config: Config, norm: LogNorm) -> None:
    style.plain_axes(axes)
    mark = config.planner.overthink_evaluations
    counts = np.array([c.ace_evaluations for c in result.cycles])
    floors = np.array([c.ace_floor for c in result.cycles])
    share = f"overthink {100 * np.mean(counts > mark):.0f} %" if len(counts) else ""
    style.panel_title(axes, "ACE evaluations by cycle", share)
    index = np.arange(len(counts))
    axes.bar(index, counts, width=0.86, color=style.EFFORT(norm(np.maximum(counts, 1))))
    shown = floors > 0
    axes.plot(index[shown], floors[shown], "_", color=style.INK, ms=3.5, mew=0.9)
    box = {"facecolor": style.PAPER, "edgecolor": "none", "pad": 1.2, "alpha": 0.85}
    style.limit_line(axes, mark, f"overthink {mark}", style.INK, va="center", bbox=box)
    axes.set_yscale("log")
    axes.set_ylim(5, max(float(norm.vmax or 0.0), 2.5 * mark))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xlim(-0.7, max(len(counts), 1) - 0.3)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=7))
    axes.set_xlabel("cycle; dashes: floor, the accepted path alone")


def _tilt_panel(axes: Axes, result: TraverseResult, config: Config) -> None:
    style.plain_axes(axes)
    style.panel_title(axes, "Settled tilt", "worst of each cycle")
    driven = [(c.driven_m, c.tilt_max_rad) for c in result.cycles if c.tilt_max_rad is not None]
    limit = config.limits.tilt_max_deg
    if driven:
        along, tilt = np.array(driven).T
        tilt = np.degrees(tilt)
        axes.fill_between(along, 0.0, tilt, color="#a96f4e", alpha=0.25, linewidth=0)
        axes.plot(along, tilt, color="#a9543a", linewidth=1.3)
        axes.set_xlim(0.0, max(along[-1], 1.0))
    style.limit_line(axes, limit, f"limit {limit:g}°")
    axes.set_ylim(0.0, 1.2 * limit)
    axes.yaxis.set_major_formatter("{x:g}°")
    axes.set_xlabel("driven (m)")
