"""The picture of a comparison: every contender's figures, terrain by terrain."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from mlnav.campaign.analysis import Analysis, Block, Slots
from mlnav.trials.runs import Runs
from mlnav.viz import style

Blocks = Mapping[str, Block]

_TITLE_CHARACTER_IN, _TEXT_CHARACTER_IN, _LABEL_CHARACTER_IN = 0.125, 0.075, 0.066
"""Mean width of a character of a title (14 pt, bold), of text (9 pt) and of a label (8 pt)."""


def compare_figure(analysis: Analysis, slots_of_runs: Slots) -> Figure:
    """Unsafe runs, success, evaluations, ratios, inefficiency and wall time.

    A column for each terrain, a slot in it for each contender.

    Args:
        analysis: of the campaign.
        slots_of_runs: its runs by terrain and contender.
    """
    names = [e.name for e in analysis.entrants]
    blocks = {str(b.label): b for b in analysis.terrains}
    labels = list(blocks)
    colours = style.contender_colours({e.name: e.parts["heuristic"] for e in analysis.entrants})
    slots = _Slots(labels, names)
    width = float(np.clip(2.4 + 0.34 * len(labels) * (len(names) + 1), 8.5, 18.0))
    slots.fold((width - 1.15) / len(labels))
    rows = (("unsafe", 1.2), ("success", 1.2), ("evaluations", 2.7), ("ratio", 1.5),
            ("detour", 1.35), ("wall", 1.5))  # fmt: skip
    most = int((width - 1.15) / _TITLE_CHARACTER_IN)
    parts = [dict.fromkeys(e.parts[p] for e in analysis.entrants) for p in ("checker", "limits")]
    checkers = ", ".join(" and ".join(part) for part in parts)
    title = style.folded(f"{checkers}: " + ", ".join(names), most)
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
    marks = sorted({e.overthink_evaluations for e in analysis.entrants})
    _evaluations(panels["evaluations"], slots, blocks, slots_of_runs, colours, marks)
    _ratios(panels["ratio"], slots, blocks, colours)
    _unsafe(panels["unsafe"], slots, blocks, colours)
    _success(panels["success"], slots, blocks, colours)
    _detours(panels["detour"], slots, blocks, slots_of_runs, colours)
    _wall(panels["wall"], slots, blocks, colours)
    style.headline(
        figure,
        "\n".join(title),
        [f"{analysis.trials:,} trials; those of a terrain are the same for everyone"],
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
    blocks: Blocks,
    runs: Slots,
    colours: dict[str, str],
    marks: Sequence[int],
) -> None:
    style.panel_title(axes, "ACE evaluations a cycle", "median, quartiles, 5-95 %, mean ●, floor –")
    least, most = 10.0, 10.0
    for label, name, x in slots.each():
        counts = Runs(runs.get((label, name), ())).evaluations
        if not len(counts):
            continue
        low, first, middle, third, high = np.percentile(np.maximum(counts, 1), [5, 25, 50, 75, 95])
        least, most = min(least, max(low, 1.0)), max(most, high)
        colour = colours[name]
        axes.plot([x, x], [low, high], color=colour, linewidth=1.3, zorder=2)
        axes.bar(
            x, third - first, 0.68, bottom=first, color=colour, alpha=0.55, linewidth=0, zorder=3
        )
        axes.plot([x - 0.34, x + 0.34], [middle] * 2, color=colour, linewidth=2.4, zorder=4)
        figures = blocks[label].figures[name]
        mean = figures.number("evaluations") or 0.0
        axes.plot([x], [mean], "o", color="#ffffff", markeredgecolor=style.INK, ms=4.5, zorder=6)
        floor = figures.number("floor")
        if floor:
            axes.plot([x - 0.42, x + 0.42], [floor] * 2, color=style.INK, linewidth=1.2, zorder=5)
    for mark in marks:
        axes.axhline(mark, color=style.SOFT_INK, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
        axes.text(
            1.004, mark, f"{mark}", fontsize=7, color=style.SOFT_INK, va="center",
            transform=axes.get_yaxis_transform(),
        )  # fmt: skip
    _log_scale(axes, 0.9 * least, 1.3 * max(most, *(1.3 * mark for mark in marks)))


def _log_scale(axes: Axes, low: float, high: float) -> None:
    """A logarithmic axis with round numbers at 1, 2 and 5, fewer where there are many."""
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    powers = [10.0**k for k in range(-3, 7)]
    steps = (1, 2, 5) if high / low < 200 else (1, 3) if high / low < 2000 else (1,)
    ticks = [t for p in powers for t in (p * s for s in steps) if low <= t <= high]
    axes.set_yticks(ticks, [f"{t:g}" for t in ticks])
    axes.yaxis.set_minor_locator(NullLocator())


def _ratios(axes: Axes, slots: _Slots, blocks: Blocks, colours: dict[str, str]) -> None:
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
        ratio = blocks[label].against[name].metrics["evaluations"].estimate
        value, interval = ratio.value, ratio.interval
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


def _unsafe(axes: Axes, slots: _Slots, blocks: Blocks, colours: dict[str, str]) -> None:
    style.panel_title(
        axes, "Unsafe runs", "beyond the limits; 95 % Wilson interval, and per driven km"
    )
    highest = 0.05
    for label, name, x in slots.each():
        figures = blocks[label].figures[name]
        rate, per_km = figures.rate("unsafe"), figures.number("unsafe_per_km")
        if rate.value is None or rate.interval is None:
            continue
        highest = max(highest, rate.interval[1])
        axes.bar(x, rate.value, 0.68, color=colours[name], alpha=0.75)
        axes.plot([x, x], rate.interval, color=style.BAD, linewidth=1.4)
        text = f"{rate.hits}/{rate.trials}"
        text += "" if per_km is None else f"\n{per_km:.2g}/km"
        axes.annotate(
            text,
            (x, rate.interval[1]),
            xytext=(0, 2),
            textcoords="offset points",
            fontsize=6.5,
            color=style.BAD if rate.hits else style.INK,
            ha="center",
            va="bottom",
        )
    axes.set_ylim(0.0, 1.45 * highest)
    ticks = MaxNLocator(4).tick_values(0.0, highest)
    axes.set_yticks([t for t in ticks if 0.0 <= t <= 1.0])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{100 * v:g} %"))


def _success(axes: Axes, slots: _Slots, blocks: Blocks, colours: dict[str, str]) -> None:
    style.panel_title(axes, "Success", "95 % Wilson interval")
    for label, name, x in slots.each():
        rate = blocks[label].figures[name].rate("success")
        if rate.value is None or rate.interval is None:
            continue
        axes.bar(x, rate.value, 0.68, color=colours[name], alpha=0.75)
        axes.plot([x, x], rate.interval, color=style.INK, linewidth=0.9)
    axes.set_ylim(0.0, 1.04)
    axes.set_yticks([0.0, 0.5, 1.0], ["0 %", "50 %", "100 %"])


def _detours(
    axes: Axes, slots: _Slots, blocks: Blocks, runs: Slots, colours: dict[str, str]
) -> None:
    style.panel_title(axes, "Inefficiency", "driven / straight - 1 of successful runs, mean ●")
    for label, name, x in slots.each():
        values = Runs(runs.get((label, name), ())).known("inefficiency")
        if not values:
            axes.text(x, 0.02, "n/a", fontsize=6.5, color=style.SOFT_INK, ha="center", va="bottom")
            continue
        spread = 0.22 * np.sin(np.arange(len(values)) * 2.4)  # apart, and the same every time
        axes.plot(x + spread, values, ".", color=colours[name], ms=4, alpha=0.7)
        mean = blocks[label].figures[name].number("inefficiency") or 0.0
        axes.plot([x], [mean], "o", color="#ffffff", markeredgecolor=style.INK, ms=4.5, zorder=5)
    axes.set_ylim(min(axes.get_ylim()[0], -0.03), max(axes.get_ylim()[1], 0.2))


def _wall(axes: Axes, slots: _Slots, blocks: Blocks, colours: dict[str, str]) -> None:
    style.panel_title(axes, "Wall time a cycle (ms)", "dark: the heuristic, inference included")
    most = 0.0
    for label, name, x in slots.each():
        whole = blocks[label].figures[name].number("plan_ms")
        if whole is None:
            continue
        heuristic = blocks[label].stage_ms[name]["heuristic"] or 0.0
        axes.bar(x, heuristic, 0.68, color=colours[name])
        axes.bar(x, whole - heuristic, 0.68, bottom=heuristic, color=colours[name], alpha=0.5)
        axes.text(x, whole, f"{whole:.1f}", fontsize=6.5, color=style.INK, ha="center", va="bottom")
        most = max(most, whole)
    axes.set_ylim(0.0, 1.18 * max(most, 1e-3))
