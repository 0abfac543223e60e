"""Pictures of a comparison: everyone's numbers, and one cycle as everyone would plan it."""

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
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

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

_COLOURS = {"none": "#8d817b", "sobel": "#e8743b", "network": "#12a594", "oracle": "#3b4a8c"}
_MORE = ("#b14aa0", "#c9a227", "#5d9c3f", "#a3323c", "#4d9fd1", "#6b4f3a")

_TITLE_CHARACTER_IN, _TEXT_CHARACTER_IN, _LABEL_CHARACTER_IN = 0.125, 0.075, 0.066
"""Mean width of a character of a title (14 pt, bold), of text (9 pt) and of a label (8 pt)."""

RISK = style.SHARE.reversed()
"""Risk: none green, certain dark red, as in maps of headings that pass."""


def contender_colours(heuristics: dict[str, str]) -> dict[str, str]:
    """Colour of each contender, by its name; `heuristics` has the heuristic of each."""
    colours: dict[str, str] = {}
    spare = iter(_MORE * (1 + len(heuristics) // len(_MORE)))
    for name, heuristic in heuristics.items():
        usual = _COLOURS.get(heuristic)
        colours[name] = usual if usual and usual not in colours.values() else next(spare)
    return colours


# -------------------------------------------------------------------------------------- the numbers


def compare_figure(summary: dict[str, Any], runs: Sequence[dict[str, Any]]) -> Figure:
    """Unsafe runs, success, evaluations, ratios, inefficiency and wall time.

    A column for each terrain, a slot in it for each contender.

    Args:
        summary: of `bench.compare_report.report`.
        runs: records of the runs.
    """
    names = list(summary["contenders"])
    labels = list(summary["terrains"])
    colours = contender_colours({n: summary["contenders"][n]["heuristic"] for n in names})
    slots = _Slots(labels, names)
    width = float(np.clip(2.4 + 0.34 * len(labels) * (len(names) + 1), 8.5, 18.0))
    slots.fold((width - 1.15) / len(labels))
    rows = (("unsafe", 1.2), ("success", 1.2), ("evaluations", 2.7), ("ratio", 1.5),
            ("detour", 1.35), ("wall", 1.5))  # fmt: skip
    most = int((width - 1.15) / _TITLE_CHARACTER_IN)
    title = style.folded(f"{summary['checker']}, {summary['limits']}: " + ", ".join(names), most)
    columns = max(1, int((width - 0.8) / (0.55 + _TEXT_CHARACTER_IN * max(map(len, names)))))
    legend_lines = math.ceil(len(names) / columns)
    gap, bottom = 0.42, 0.30 + 0.14 * slots.lines
    top = 1.12 + 0.23 * legend_lines + style.TITLE_LINE_IN * (len(title) - 1)
    height = top + bottom + sum(h for _, h in rows) + gap * (len(rows) - 1)
    figure = style.new_figure(width, height)
    panels: dict[str, Axes] = {}
    y = height - top
    for name, h in rows:
        y -= h
        panels[name] = figure.add_axes((0.75 / width, y / height, 1 - 1.15 / width, h / height))
        y -= gap
        _frame(panels[name], slots, last=name == rows[-1][0])
    by_config = {c["config"]: n for n, c in summary["contenders"].items()}
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for run in runs:
        if run["config"] in by_config:
            groups.setdefault((run["entry"], by_config[run["config"]]), []).append(run)
    blocks = summary["terrains"]
    _evaluations(
        panels["evaluations"], slots, blocks, groups, colours, summary["overthink_evaluations"]
    )
    _ratios(panels["ratio"], slots, blocks, colours)
    _unsafe(panels["unsafe"], slots, blocks, colours)
    _success(panels["success"], slots, blocks, colours)
    _detours(panels["detour"], slots, blocks, groups, colours)
    _wall(panels["wall"], slots, blocks, colours)
    style.headline(
        figure,
        "\n".join(title),
        [
            f"{summary['pairs']} start-goal pairs a terrain, the same for everyone"
            + (
                f"; at most {summary['ace_budget']} ACE evaluations a cycle"
                if summary["ace_budget"]
                else ""
            )
        ],
        0.75 / width,
        1.0 - 0.22 / height,
    )
    figure.legend(
        handles=[Patch(color=colours[n], label=n) for n in names],
        loc="upper left",
        bbox_to_anchor=(
            0.66 / width,
            1.0 - (0.76 + style.TITLE_LINE_IN * (len(title) - 1)) / height,
        ),
        ncols=min(columns, len(names)),
        fontsize=9,
        frameon=False,
        labelcolor=style.INK,
        handlelength=1.2,
        columnspacing=1.6,
    )
    return figure


class _Slots:
    """Places along x: a group a terrain, a slot a contender."""

    def __init__(self, labels: list[str], names: list[str]) -> None:
        self.labels, self.names = labels, names
        self.step = len(names) + 1.0
        self.fold(1.0)

    def fold(self, width_in: float) -> None:
        """Fold terrain names to the width of a group."""
        most = max(6, int(0.95 * width_in / _LABEL_CHARACTER_IN))
        self.texts = ["\n".join(style.folded(text, most)) for text in self.labels]
        self.lines = max(text.count("\n") + 1 for text in self.texts)

    def at(self, label: str, name: str) -> float:
        """Middle of a slot; slots are 1 wide."""
        return self.labels.index(label) * self.step + self.names.index(name)

    def middle(self, i: int) -> float:
        """Of a terrain's group."""
        return i * self.step + 0.5 * (len(self.names) - 1)

    @property
    def limits(self) -> tuple[float, float]:
        """Of the axes."""
        return -1.0, len(self.labels) * self.step - 1.0

    def each(self) -> list[tuple[str, str, float]]:
        """(label, name, place) of all."""
        return [(label, n, self.at(label, n)) for label in self.labels for n in self.names]


def _frame(axes: Axes, slots: _Slots, last: bool) -> None:
    style.plain_axes(axes)
    axes.set_xlim(*slots.limits)
    places = [slots.middle(i) for i in range(len(slots.labels))]
    axes.set_xticks(places, slots.texts if last else [""] * len(places), fontsize=8)
    axes.tick_params(axis="x", length=0, labelsize=8, labelcolor=style.INK)
    for i in range(1, len(slots.labels)):
        axes.axvline(i * slots.step - 1.0, color=style.GRID, linewidth=0.8)


def _evaluations(
    axes: Axes,
    slots: _Slots,
    blocks: Any,
    groups: Any,
    colours: dict[str, str],
    overthink: int,
) -> None:
    style.panel_title(axes, "ACE evaluations a cycle", "median, quartiles, 5-95 %, mean ●, floor –")
    least, most = 10.0, 10.0
    for label, name, x in slots.each():
        counts = [n for run in groups.get((label, name), []) for n in run["evaluations"]]
        if not counts:
            continue
        low, first, middle, third, high = np.percentile(np.maximum(counts, 1), [5, 25, 50, 75, 95])
        least, most = min(least, max(low, 1.0)), max(most, high)
        colour = colours[name]
        axes.plot([x, x], [low, high], color=colour, linewidth=1.3, zorder=2)
        axes.bar(
            x, third - first, 0.68, bottom=first, color=colour, alpha=0.55, linewidth=0, zorder=3
        )
        axes.plot([x - 0.34, x + 0.34], [middle] * 2, color=colour, linewidth=2.4, zorder=4)
        contender = blocks[label]["contenders"][name]
        mean = contender["evaluations_per_cycle"]["mean"]
        axes.plot([x], [mean], "o", color="#ffffff", markeredgecolor=style.INK, ms=4.5, zorder=6)
        floor = contender["floor_per_cycle"]
        if floor:
            axes.plot([x - 0.42, x + 0.42], [floor] * 2, color=style.INK, linewidth=1.2, zorder=5)
    axes.axhline(overthink, color=style.SOFT_INK, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    axes.text(
        1.004,
        overthink,
        f"{overthink}",
        fontsize=7,
        color=style.SOFT_INK,
        va="center",
        transform=axes.get_yaxis_transform(),
    )
    _log_scale(axes, 0.9 * least, 1.3 * max(most, 1.3 * overthink))


def _log_scale(axes: Axes, low: float, high: float) -> None:
    """A logarithmic axis with round numbers at 1, 2 and 5, fewer where there are many."""
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    powers = [10.0**k for k in range(-3, 7)]
    steps = (1, 2, 5) if high / low < 200 else (1, 3) if high / low < 2000 else (1,)
    ticks = [t for p in powers for t in (p * s for s in steps) if low <= t <= high]
    axes.set_yticks(ticks, [f"{t:g}" for t in ticks])
    axes.yaxis.set_minor_locator(NullLocator())


def _ratios(axes: Axes, slots: _Slots, blocks: Any, colours: dict[str, str]) -> None:
    first = slots.names[0]
    style.panel_title(
        axes,
        "Evaluations of the first over this one's",
        "pairs where both succeed, 95 % interval",
    )
    axes.axhline(1.0, color=style.SOFT_INK, linewidth=0.9)
    least, most = 1.0, 2.0
    for label, name, x in slots.each():
        if name == first:
            continue
        value = blocks[label]["ratio"][f"{first}/{name}"]
        interval = blocks[label]["ratio_ci95"][f"{first}/{name}"]
        if value is None:
            axes.text(x, 1.06, "n/a", fontsize=6.5, color=style.SOFT_INK, ha="center", va="bottom")
            continue
        low, high = interval if interval is not None else (value, value)
        least, most = min(least, low), max(most, high)
        if interval is not None:
            axes.plot([x, x], interval, color=colours[name], linewidth=1.6)
        axes.plot([x], [value], "o", color=colours[name], ms=5)
        axes.annotate(
            f"{value:.1f}",
            (x, value),
            xytext=(5, 0),
            textcoords="offset points",
            fontsize=6.5,
            color=style.INK,
            va="center",
        )
    _log_scale(axes, 0.85 * least, 1.25 * most)


def _unsafe(axes: Axes, slots: _Slots, blocks: Any, colours: dict[str, str]) -> None:
    style.panel_title(
        axes, "Unsafe runs", "beyond the limits; 95 % Wilson interval, and per driven km"
    )
    highest = 0.05
    for label, name, x in slots.each():
        safety = blocks[label]["contenders"][name]["safety"]
        rate = safety["unsafe"]
        if rate["rate"] is None:
            continue
        highest = max(highest, rate["wilson95"][1])
        axes.bar(x, rate["rate"], 0.68, color=colours[name], alpha=0.75)
        axes.plot([x, x], rate["wilson95"], color=style.BAD, linewidth=1.4)
        per_km = safety["unsafe_per_km"]
        told = f"{rate['hits']}/{rate['trials']}"
        told += "" if per_km is None else f"\n{per_km:.2g}/km"
        axes.annotate(
            told,
            (x, rate["wilson95"][1]),
            xytext=(0, 2),
            textcoords="offset points",
            fontsize=6.5,
            color=style.BAD if rate["hits"] else style.INK,
            ha="center",
            va="bottom",
        )
    axes.set_ylim(0.0, 1.45 * highest)
    ticks = MaxNLocator(4).tick_values(0.0, highest)
    axes.set_yticks([t for t in ticks if 0.0 <= t <= 1.0])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{100 * v:g} %"))


def _success(axes: Axes, slots: _Slots, blocks: Any, colours: dict[str, str]) -> None:
    style.panel_title(axes, "Success", "95 % Wilson interval")
    for label, name, x in slots.each():
        rate = blocks[label]["contenders"][name]["success"]
        if rate["rate"] is None:
            continue
        axes.bar(x, rate["rate"], 0.68, color=colours[name], alpha=0.75)
        axes.plot([x, x], rate["wilson95"], color=style.INK, linewidth=0.9)
    axes.set_ylim(0.0, 1.04)
    axes.set_yticks([0.0, 0.5, 1.0], ["0 %", "50 %", "100 %"])


def _detours(axes: Axes, slots: _Slots, blocks: Any, groups: Any, colours: dict[str, str]) -> None:
    style.panel_title(axes, "Inefficiency", "driven / straight - 1 of successful runs, mean ●")
    for label, name, x in slots.each():
        values = [
            run["inefficiency"]
            for run in groups.get((label, name), [])
            if run["inefficiency"] is not None
        ]
        if not values:
            axes.text(x, 0.02, "n/a", fontsize=6.5, color=style.SOFT_INK, ha="center", va="bottom")
            continue
        spread = 0.22 * np.sin(np.arange(len(values)) * 2.4)  # apart, and the same every time
        axes.plot(x + spread, values, ".", color=colours[name], ms=4, alpha=0.7)
        mean = blocks[label]["contenders"][name]["inefficiency"]
        axes.plot([x], [mean], "o", color="#ffffff", markeredgecolor=style.INK, ms=4.5, zorder=5)
    axes.set_ylim(min(axes.get_ylim()[0], -0.03), max(axes.get_ylim()[1], 0.2))


def _wall(axes: Axes, slots: _Slots, blocks: Any, colours: dict[str, str]) -> None:
    style.panel_title(axes, "Wall time a cycle (ms)", "dark: the heuristic, inference included")
    most = 0.0
    for label, name, x in slots.each():
        contender = blocks[label]["contenders"][name]
        whole = contender["wall_ms_per_cycle"]
        if whole is None:
            continue
        heuristic = contender["stage_ms_per_cycle"].get("heuristic", 0.0)
        axes.bar(x, heuristic, 0.68, color=colours[name])
        axes.bar(x, whole - heuristic, 0.68, bottom=heuristic, color=colours[name], alpha=0.5)
        axes.text(x, whole, f"{whole:.1f}", fontsize=6.5, color=style.INK, ha="center", va="bottom")
        most = max(most, whole)
    axes.set_ylim(0.0, 1.18 * max(most, 1e-3))


# --------------------------------------------------------------------------------------- one cycle


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
    navigator, cycle = (
        simulated.navigator,
        simulated.cycle(at_rest(terrain, config, pose), goal, steered_per_m),
    )
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
