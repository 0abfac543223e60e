"""The picture of a traverse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from mlnav.config import Config
from mlnav.sim.records import OUTCOMES, CycleRecord, TraverseResult
from mlnav.terrain import Terrain
from mlnav.viz import style
from mlnav.viz.relief import draw_relief, window
from mlnav.viz.rover import draw_rover

_WIDTH_IN, _HEIGHT_IN = 11.0, 7.4
_MAP = (0.055, 0.075, 0.565, 0.765)


def traverse_figure(terrain: Terrain, result: TraverseResult, config: Config) -> Figure:
    """Track over shaded relief, coloured by ACE evaluations; evaluations and tilt by cycle."""
    figure = style.new_figure(_WIDTH_IN, _HEIGHT_IN)
    overthink = config.planner.overthink_evaluations
    norm = style.effort_norm(max((c.ace_evaluations for c in result.cycles), default=0), overthink)

    axes = figure.add_axes(_MAP)
    aspect = (_MAP[2] * _WIDTH_IN) / (_MAP[3] * _HEIGHT_IN)
    bounds = window(terrain, points_of(result), margin_m(result), aspect)
    draw_map(axes, terrain, result, config, bounds)
    draw_track(axes, result.cycles, norm)
    draw_ending(axes, result, config)
    style.scale_bar(axes)

    left = _MAP[0] + _MAP[2] + 0.06
    width = 0.97 - left
    bar_axes = figure.add_axes((left, 0.795, width, 0.016))
    bar = style.colour_bar(
        figure, ScalarMappable(norm, style.EFFORT), bar_axes, "ACE evaluations in a cycle"
    )
    bar.ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    bar.ax.axvline(overthink, color=style.INK, linewidth=1.2)
    _effort_panel(figure.add_axes((left, 0.435, width, 0.265)), result, config, norm)
    _tilt_panel(figure.add_axes((left, 0.095, width, 0.235)), result, config)

    title, lines = numbers(result)
    style.headline(figure, title, lines, _MAP[0], 0.965)
    style.credit(figure, terrain.attribution, _MAP[0])
    return figure


def points_of(result: TraverseResult) -> Any:
    """(n, 2) all places a picture of the run must show."""
    tracks = [c.track[:, :2] for c in result.cycles if len(c.track)]
    return np.vstack([[result.start[:2], result.goal, result.end[:2]], *tracks])


def margin_m(result: TraverseResult) -> float:
    """Ground to show around the track."""
    return max(3.5, 0.12 * result.straight_line_m)


def draw_map(
    axes: Axes,
    terrain: Terrain,
    result: TraverseResult,
    config: Config,
    bounds: tuple[float, float, float, float],
) -> None:
    """Relief, zones, start and goal."""
    x_min, x_max, y_min, y_max = bounds
    style.map_axes(axes)
    draw_relief(axes, terrain.crop(x_min - 1, x_max + 1, y_min - 1, y_max + 1))
    axes.set_xlim(x_min, x_max)
    axes.set_ylim(y_min, y_max)
    for polygon in config.keep_out:
        xs, ys = zip(*polygon, strict=True)
        axes.fill(xs, ys, facecolor=style.BAD, alpha=0.18, edgecolor="none", zorder=2)
        axes.fill(xs, ys, fill=False, edgecolor=style.BAD, hatch="//", linewidth=1.0, zorder=3)
    angle = np.linspace(0.0, 2.0 * math.pi, 73)
    radius = config.traverse.goal_tolerance_m
    axes.plot(
        result.goal[0] + radius * np.cos(angle),
        result.goal[1] + radius * np.sin(angle),
        color=style.GOAL,
        linewidth=1.2,
        linestyle=(0, (3, 2)),
        zorder=8,
    )
    style.marker(axes, *result.start[:2], "o", style.START, "start")
    style.marker(axes, *result.goal, "*", style.GOAL, "goal")


def draw_track(axes: Axes, cycles: Any, norm: Any) -> list[Any]:
    """Driven track, a colour a cycle; dots where cycles began."""
    segments: list[Any] = []
    values: list[float] = []
    for cycle in cycles:
        if len(cycle.track):
            line = np.vstack([cycle.pose[:2], cycle.track[:, :2]])
            segments.append(line)
            values.append(cycle.ace_evaluations)
    casing = LineCollection(
        segments, colors="#201a18", linewidths=5.2, alpha=0.75, zorder=9, capstyle="round"
    )
    track = LineCollection(
        segments, cmap=style.EFFORT, norm=norm, linewidths=3.2, zorder=10, capstyle="round"
    )
    track.set_array(np.array(values))
    axes.add_collection(casing, autolim=False)
    axes.add_collection(track, autolim=False)
    artists: list[Any] = [casing, track]
    if cycles:
        starts = np.array([c.pose[:2] for c in cycles])
        colours = style.EFFORT(norm([c.ace_evaluations for c in cycles]))
        artists.append(
            axes.scatter(
                starts[:, 0],
                starts[:, 1],
                s=16,
                c=colours,
                edgecolors="#201a18",
                linewidths=0.7,
                zorder=11,
            )
        )
    return artists


def draw_ending(axes: Axes, result: TraverseResult, config: Config) -> None:
    """The rover where it ended, and a cross with the reason when that is not the goal."""
    draw_rover(axes, config.rover, result.end)
    if result.success:
        return
    x, y, _ = result.end
    axes.plot(
        [x],
        [y],
        "X",
        color=style.BAD,
        markersize=13,
        markeredgecolor="#ffffff",
        markeredgewidth=1.3,
        zorder=18,
    )
    why = result.outcome.replace("_", " ")
    if result.faults:
        why += ": " + ", ".join(result.faults)
    axes.annotate(
        why,
        (x, y),
        xytext=(11, -16),
        textcoords="offset points",
        fontsize=9,
        color="#ffffff",
        fontweight="bold",
        path_effects=style.HALO,
        zorder=19,
    )


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


def _effort_panel(axes: Axes, result: TraverseResult, config: Config, norm: Any) -> None:
    style.plain_axes(axes)
    mark = config.planner.overthink_evaluations
    counts = np.array([c.ace_evaluations for c in result.cycles])
    floors = np.array([c.ace_floor for c in result.cycles])
    share = f"overthink {100 * np.mean(counts > mark):.0f} %" if len(counts) else ""
    style.panel_title(axes, "ACE evaluations by cycle", share)
    index = np.arange(len(counts))
    axes.bar(index, counts, width=0.86, color=style.EFFORT(norm(np.maximum(counts, 1))))
    shown = floors > 0
    axes.plot(
        index[shown],
        floors[shown],
        "_",
        color=style.INK,
        markersize=3.5,
        markeredgewidth=0.9,
    )
    axes.axhline(mark, color=style.INK, linewidth=0.9, linestyle=(0, (4, 2)))
    axes.text(
        1.0,
        mark,
        f"overthink {mark}",
        fontsize=7,
        color=style.INK,
        ha="right",
        va="center",
        transform=axes.get_yaxis_transform(),
        bbox={"facecolor": style.PAPER, "edgecolor": "none", "pad": 1.2, "alpha": 0.85},
    )
    axes.set_yscale("log")
    axes.set_ylim(5, max(float(norm.vmax), 2.5 * mark))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    axes.set_xlim(-0.7, max(len(counts), 1) - 0.3)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=7))
    axes.set_xlabel(
        "cycle; dashes: floor, the accepted path alone", fontsize=7.5, color=style.SOFT_INK
    )


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
    axes.axhline(limit, color=style.BAD, linewidth=0.9, linestyle=(0, (4, 2)))
    axes.text(
        1.0,
        limit * 1.02,
        f"limit {limit:g}°",
        fontsize=7,
        color=style.BAD,
        ha="right",
        va="bottom",
        transform=axes.get_yaxis_transform(),
    )
    axes.set_ylim(0.0, 1.2 * limit)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}°"))
    axes.set_xlabel("driven (m)", fontsize=7.5, color=style.SOFT_INK)


__all__ = [
    "CycleRecord",
    "draw_ending",
    "draw_map",
    "draw_track",
    "margin_m",
    "numbers",
    "points_of",
    "traverse_figure",
]
