"""The figure of a comparison: every contender's numbers, terrain by terrain."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, NullLocator

from mlnav.campaign.analysis import Analysis, Slots
from mlnav.trials.metrics import Figures
from mlnav.trials.runs import Runs
from mlnav.viz import style

_TITLE_CHARACTER_IN, _TEXT_CHARACTER_IN, _LABEL_CHARACTER_IN = 0.125, 0.075, 0.066
"""Mean width of a character of a title (14 pt, bold), of text (9 pt) and of a label (8 pt)."""


def compare_figure(analysis: Analysis, slots_of_runs: Slots) -> Figure:
    """Unsafe runs, success, evaluations, ratios, inefficiency and wall time, by terrain."""
    entrants = analysis.entrants
    names = [e.name for e in entrants]
    slots = len(analysis.terrains) * (len(names) + 1)
    width = float(np.clip(2.4 + 0.34 * slots, 8.5, 18.0))
    panels = _Panels(analysis, slots_of_runs, width - 1.15)
    rows = (
        (1.2, panels.draw_unsafe), (1.2, panels.draw_success), (2.7, panels.draw_evaluations),
        (1.5, panels.draw_ratios), (1.35, panels.draw_detours), (1.5, panels.draw_wall),
    )  # fmt: skip
    parts = [dict.fromkeys(e.parts[p] for e in entrants) for p in ("checker", "limits")]
    title = f"{', '.join(' and '.join(part) for part in parts)}: {', '.join(names)}"
    folded = style.folded(title, int((width - 1.15) / _TITLE_CHARACTER_IN))
    columns = max(1, int((width - 0.8) / (0.55 + _TEXT_CHARACTER_IN * max(map(len, names)))))
    title_in = style.TITLE_LINE_IN * (len(folded) - 1)
    gap, bottom = 0.42, 0.30 + 0.14 * panels.label_lines
    top = 1.12 + 0.23 * math.ceil(len(names) / columns) + title_in
    height = top + bottom + sum(h for h, _ in rows) + gap * (len(rows) - 1)
    figure = style.new_figure(width, height)
    place, y = style.axes_by_inches(figure), top
    for h, draw in rows:
        axes = place(0.75, y, width - 1.15, h)
        panels.frame(axes, last=draw == panels.draw_wall)
        draw(axes)
        y += h + gap
    note = f"{analysis.trials:,} trials; those of a terrain are the same for everyone"
    style.headline(figure, "\n".join(folded), [note], 0.75 / width)
    figure.legend(
        handles=[Patch(color=colour, label=name) for name, colour in panels.colours.items()],
        loc="upper left", bbox_to_anchor=(0.66 / width, 1.0 - (0.76 + title_in) / height),
        ncols=min(columns, len(names)), fontsize=9, frameon=False, labelcolor=style.INK,
        handlelength=1.2, columnspacing=1.6,
    )  # fmt: skip
    return figure


class _Panels:
    """Panels above each other: along x a group a terrain, in it a slot, 1 wide, a contender."""

    def __init__(self, analysis: Analysis, slots_of_runs: Slots, width_in: float) -> None:
        entrants = analysis.entrants
        self._blocks = {str(block.label): block for block in analysis.terrains}
        self._runs = slots_of_runs
        self._marks = sorted({e.overthink_evaluations for e in entrants})
        self.colours = style.contender_colours({e.name: e.parts["heuristic"] for e in entrants})
        self._step = len(entrants) + 1.0
        most = max(6, int(0.95 * width_in / len(self._blocks) / _LABEL_CHARACTER_IN))
        self._texts = ["\n".join(style.folded(label, most)) for label in self._blocks]
        self.label_lines = max(text.count("\n") + 1 for text in self._texts)

    def _slots(self) -> Iterator[tuple[str, str, float, str, Figures]]:
        """Terrain, contender, middle of the slot, colour and figures of all."""
        for i, (label, block) in enumerate(self._blocks.items()):
            for k, (name, colour) in enumerate(self.colours.items()):
                yield label, name, i * self._step + k, colour, block.figures[name]

    def frame(self, axes: Axes, last: bool) -> None:
        """Axes with a group for each terrain, which the last panel names."""
        style.plain_axes(axes)
        first = self._step * np.arange(len(self._blocks))
        axes.set_xlim(-1.0, len(first) * self._step - 1.0)
        texts = self._texts if last else [""] * len(first)
        axes.set_xticks(first + 0.5 * (len(self.colours) - 1), texts, fontsize=8)
        axes.tick_params(axis="x", length=0, labelsize=8, labelcolor=style.INK)
        for x in first[1:]:
            axes.axvline(x - 1.0, color=style.GRID, linewidth=0.8)

    def draw_unsafe(self, axes: Axes) -> None:
        note = "beyond the limits; 95 % Wilson interval, and per driven km"
        style.panel_title(axes, "Unsafe runs", note)
        highest = 0.05
        for _, _, x, colour, figures in self._slots():
            rate, per_km = figures.rate("unsafe"), figures.number("unsafe_per_km")
            if rate.value is None or rate.interval is None:
                continue
            highest = max(highest, rate.interval[1])
            axes.bar(x, rate.value, 0.68, color=colour, alpha=0.75)
            axes.plot([x, x], rate.interval, color=style.BAD, linewidth=1.4)
            text = f"{rate.hits}/{rate.trials}" + ("" if per_km is None else f"\n{per_km:.2g}/km")
            _note(axes, text, x, rate.interval[1], style.BAD if rate.hits else style.INK)
        axes.set_ylim(0.0, 1.45 * highest)
        ticks = MaxNLocator(4).tick_values(0.0, highest)
        axes.set_yticks([t for t in ticks if 0.0 <= t <= 1.0])
        axes.yaxis.set_major_formatter(lambda v, _: f"{100 * v:g} %")

    def draw_success(self, axes: Axes) -> None:
        style.panel_title(axes, "Success", "95 % Wilson interval")
        for _, _, x, colour, figures in self._slots():
            rate = figures.rate("success")
            if rate.value is None or rate.interval is None:
                continue
            axes.bar(x, rate.value, 0.68, color=colour, alpha=0.75)
            axes.plot([x, x], rate.interval, color=style.INK, linewidth=0.9)
        axes.set_ylim(0.0, 1.04)
        axes.set_yticks([0.0, 0.5, 1.0], ["0 %", "50 %", "100 %"])

    def draw_evaluations(self, axes: Axes) -> None:
        note = "median, quartiles, 5-95 %, mean ●, floor –"
        style.panel_title(axes, "ACE evaluations a cycle", note)
        least, most = 10.0, max(10.0, *(1.3 * mark for mark in self._marks))
        for label, name, x, colour, figures in self._slots():
            counts = Runs(self._runs.get((label, name), ())).evaluations
            if not len(counts):
                continue
            shares = np.percentile(np.maximum(counts, 1), [5, 25, 50, 75, 95])
            low, first, middle, third, high = map(float, shares)
            least, most = min(least, max(low, 1.0)), max(most, high)
            box: dict[str, Any] = {"alpha": 0.55, "linewidth": 0, "zorder": 3}
            axes.vlines(x, low, high, color=colour, linewidth=1.3, zorder=2)
            axes.bar(x, third - first, 0.68, bottom=first, color=colour, **box)
            axes.hlines(middle, x - 0.34, x + 0.34, color=colour, linewidth=2.4, zorder=4)
            _mean(axes, x, figures.number("evaluations") or 0.0)
            floor = figures.number("floor")
            if floor:
                axes.hlines(floor, x - 0.42, x + 0.42, color=style.INK, linewidth=1.2, zorder=5)
        for mark in self._marks:
            look: dict[str, Any] = {"x": 1.004, "ha": "left", "va": "center"}
            style.limit_line(axes, mark, f"{mark}", style.SOFT_INK, **look)
        _log_scale(axes, 0.9 * least, 1.3 * most)

    def draw_ratios(self, axes: Axes) -> None:
        note = "pairs where both succeed, 95 % interval"
        style.panel_title(axes, "Evaluations of the first over this one's", note)
        axes.axhline(1.0, color=style.SOFT_INK, linewidth=0.9)
        least, most = 1.0, 2.0
        for label, name, x, colour, _ in self._slots():
            if name == next(iter(self.colours)):
                continue
            ratio = self._blocks[label].against[name].metrics["evaluations"].estimate
            if ratio.value is None:
                _note(axes, "n/a", x, 1.06, style.SOFT_INK)
                continue
            low, high = ratio.interval or (ratio.value, ratio.value)
            least, most = min(least, low), max(most, high)
            axes.plot([x, x], [low, high], color=colour, linewidth=1.6)
            axes.plot(x, ratio.value, "o", color=colour, ms=5)
            beside: dict[str, Any] = {"xytext": (5, 0), "ha": "left", "va": "center"}
            _note(axes, f"{ratio.value:.1f}", x, ratio.value, **beside)
        _log_scale(axes, 0.85 * least, 1.25 * most)

    def draw_detours(self, axes: Axes) -> None:
        note = "driven / straight - 1 of successful runs, mean ●"
        style.panel_title(axes, "Inefficiency", note)
        for label, name, x, colour, figures in self._slots():
            values = Runs(self._runs.get((label, name), ())).known("inefficiency")
            if not values:
                _note(axes, "n/a", x, 0.02, style.SOFT_INK)
                continue
            spread = 0.22 * np.sin(np.arange(len(values)) * 2.4)  # apart, the same every time
            axes.plot(x + spread, values, ".", color=colour, ms=4, alpha=0.7)
            _mean(axes, x, figures.number("inefficiency") or 0.0)
        low, high = axes.get_ylim()
        axes.set_ylim(min(low, -0.03), max(high, 0.2))

    def draw_wall(self, axes: Axes) -> None:
        style.panel_title(axes, "Wall time a cycle (ms)", "dark: the heuristic, inference included")
        most = 1e-3
        for label, name, x, colour, figures in self._slots():
            whole = figures.number("plan_ms")
            if whole is None:
                continue
            heuristic = self._blocks[label].stage_ms[name]["heuristic"] or 0.0
            axes.bar(x, heuristic, 0.68, color=colour)
            axes.bar(x, whole - heuristic, 0.68, bottom=heuristic, color=colour, alpha=0.5)
            _note(axes, f"{whole:.1f}", x, whole)
            most = max(most, whole)
        axes.set_ylim(0.0, 1.18 * most)


def _note(axes: Axes, text: str, x: float, y: float, colour: str = style.INK, **look: Any) -> None:
    """Small text beside a place, above it unless `look` says otherwise."""
    look = {"xytext": (0, 2), "ha": "center", "va": "bottom", **look}
    axes.annotate(text, (x, y), textcoords="offset points", fontsize=6.5, color=colour, **look)


def _mean(axes: Axes, x: float, value: float) -> None:
    axes.plot(x, value, "o", color="#ffffff", markeredgecolor=style.INK, ms=4.5, zorder=6)


def _log_scale(axes: Axes, low: float, high: float) -> None:
    """A logarithmic axis with round numbers at 1, 2 and 5, fewer where there are many."""
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    steps = (1, 2, 5) if high / low < 200 else (1, 3) if high / low < 2000 else (1,)
    ticks = [s * 10.0**k for k in range(-3, 7) for s in steps if low <= s * 10.0**k <= high]
    axes.set_yticks(ticks, [f"{t:g}" for t in ticks])
    axes.yaxis.set_minor_locator(NullLocator())
