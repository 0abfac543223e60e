"""One look for all pictures: colours, axes, scale bar, text."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke

from mlnav.io import whole_file

PAPER = "#fbfaf8"
INK = "#2b2422"
SOFT_INK = "#7a6f6a"
GRID = "#e4deda"

GOOD = "#19c3b2"
BAD = "#d62455"
CHOSEN = "#00e5d0"
START = "#ffffff"
GOAL = "#ffd23f"

ELEVATION = LinearSegmentedColormap.from_list(
    "mars", ["#4a2f28", "#7c4b39", "#a96f4e", "#cf9d74", "#e9c9a3", "#f6e6cf"]
)
"""Low ground dark, high ground pale."""

EFFORT = LinearSegmentedColormap.from_list(
    "effort", ["#21d3c4", "#9be564", "#ffe14d", "#ff8a3c", "#e02462", "#8e1171"]
)
"""ACE evaluations: few teal, many magenta."""

SHARE = LinearSegmentedColormap.from_list(
    "share", ["#7a0c3d", "#d62455", "#f58b4c", "#ffe28a", "#8fd694", "#118a7e"]
)
"""Share of headings that pass: none dark red, all green."""

HALO = [withStroke(linewidth=2.5, foreground="#201a18", alpha=0.75)]


TITLE_LINE_IN = 0.24
"""Height of a line of a title."""


def effort_norm(most: int, overthink: int) -> LogNorm:
    """Logarithmic scale of evaluations that always reaches past the overthink mark."""
    return LogNorm(vmin=10.0, vmax=float(max(most, 2 * overthink, 100)), clip=True)


def new_figure(width_in: float, height_in: float) -> Figure:
    """An empty figure with its own Agg canvas."""
    figure = Figure(figsize=(width_in, height_in), facecolor=PAPER)
    FigureCanvasAgg(figure)
    return figure


def axes_by_inches(figure: Figure) -> Callable[[float, float, float, float], Axes]:
    """What adds axes to a figure: left, top, width, height [in], from its upper left corner."""
    width_in, height_in = figure.get_size_inches()

    def place(left: float, top: float, width: float, height: float) -> Axes:
        return figure.add_axes(
            (
                left / width_in,
                1.0 - (top + height) / height_in,
                width / width_in,
                height / height_in,
            )
        )

    return place


def save_figure(figure: Figure, path: str | os.PathLike[str], dpi: int = 150) -> None:
    """Write a PNG, without dates or versions in it: the same figure gives the same bytes."""
    with whole_file(path) as temporary:
        figure.savefig(temporary, dpi=dpi, facecolor=PAPER, metadata={"Software": None})


def plain_axes(axes: Axes) -> None:
    """Light axes for curves and bars."""
    axes.set_facecolor(PAPER)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(SOFT_INK)
        axes.spines[side].set_linewidth(0.6)
    axes.tick_params(colors=SOFT_INK, labelsize=7, width=0.6, length=3)
    axes.grid(axis="y", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)


def map_axes(axes: Axes) -> None:
    """Axes of a map: equal scales, quiet frame, metres."""
    axes.set_aspect("equal")
    axes.set_facecolor("#d8d2cd")
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(colors=SOFT_INK, labelsize=7, width=0.5, length=2.5)


def panel_title(axes: Axes, text: str, note: str = "") -> None:
    """Small title of a panel, with an optional softer note after it."""
    axes.set_title(text, loc="left", fontsize=8.5, color=INK, fontweight="bold", pad=6)
    if note:
        axes.set_title(note, loc="right", fontsize=7.5, color=SOFT_INK, pad=6)


def headline(figure: Figure, title: str, lines: list[str], left: float, top: float) -> None:
    """Title and lines of numbers at the top left of a figure; `top` in figure fraction.

    Each line of the title beyond the first takes `TITLE_LINE_IN`.
    """
    height_in = float(figure.get_size_inches()[1])
    figure.text(left, top, title, fontsize=14, fontweight="bold", color=INK, va="top")
    for i, line in enumerate(lines):
        y = top - (0.30 + TITLE_LINE_IN * title.count("\n") + 0.20 * i) / height_in
        figure.text(left, y, line, fontsize=9, color=SOFT_INK, va="top")


def credit(figure: Figure, text: str | None, left: float) -> None:
    """Credit of the data at the foot of a figure."""
    if text:
        short = " ".join(text.split())
        short = short if len(short) <= 170 else short[:167] + "..."
        figure.text(left, 0.012, short, fontsize=6, color=SOFT_INK, va="bottom")


def folded(text: str, most: int) -> list[str]:
    """Lines of at most so many characters, none of the text left out.

    Broken after blanks and after the marks that part names, else in the middle of a word.
    """
    lines = [""]
    for part in re.findall(r"[^ _/;,+\-]*[ _/;,+\-]|[^ _/;,+\-]+", text):
        if len(lines[-1]) + len(part.rstrip()) > most and lines[-1]:
            lines.append("")
        rest = lines[-1] + part
        while len(rest.rstrip()) > most:
            lines[-1], rest = rest[:most], rest[most:]
            lines.append("")
        lines[-1] = rest
    return [line.rstrip() for line in lines]


def colour_bar(figure: Figure, mappable: Any, axes: Axes, label: str) -> Any:
    """A slim horizontal colour bar in its own axes."""
    bar = figure.colorbar(mappable, cax=axes, orientation="horizontal")
    bar.outline.set_visible(False)
    axes.tick_params(colors=SOFT_INK, labelsize=7, width=0.5, length=2.5, which="both")
    axes.set_title(label, loc="left", fontsize=7.5, color=SOFT_INK, pad=4)
    return bar


def scale_bar(axes: Axes) -> None:
    """A bar of a round length at the lower left of a map."""
    (x0, x1), (y0, y1) = axes.get_xlim(), axes.get_ylim()
    length = _round_length(0.22 * (x1 - x0))
    x, y = x0 + 0.035 * (x1 - x0), y0 + 0.04 * (y1 - y0)
    thick = 0.007 * (y1 - y0)
    for i, colour in enumerate(("#ffffff", INK)):
        axes.add_patch(
            Rectangle(
                (x + i * length / 2, y),
                length / 2,
                thick,
                facecolor=colour,
                edgecolor=INK,
                linewidth=0.6,
                zorder=20,
            )
        )
    axes.text(
        x + length / 2,
        y + 1.8 * thick,
        f"{length:g} m",
        ha="center",
        va="bottom",
        fontsize=8,
        color="#ffffff",
        path_effects=HALO,
        zorder=20,
    )


def _round_length(most: float) -> float:
    power = 10.0 ** math.floor(math.log10(most))
    return max(k * power for k in (1.0, 2.0, 5.0) if k * power <= most)


def marker(axes: Axes, x: float, y: float, shape: str, colour: str, label: str = "") -> None:
    """A marker with a dark rim, and its name beside it."""
    size = 13 if shape == "*" else 8
    axes.plot(
        [x],
        [y],
        shape,
        color=colour,
        markersize=size,
        markeredgecolor=INK,
        markeredgewidth=1.2,
        zorder=15,
    )
    if label:
        axes.annotate(
            label,
            (x, y),
            xytext=(9, 7),
            textcoords="offset points",
            fontsize=8.5,
            color="#ffffff",
            fontweight="bold",
            path_effects=HALO,
            zorder=16,
        )


_COLOURS = {"none": "#8d817b", "sobel": "#e8743b", "network": "#12a594", "oracle": "#3b4a8c"}
_MORE = ("#b14aa0", "#c9a227", "#5d9c3f", "#a3323c", "#4d9fd1", "#6b4f3a")


def contender_colours(heuristics: dict[str, str]) -> dict[str, str]:
    """Colour of each contender, by its name; `heuristics` has the heuristic of each."""
    colours: dict[str, str] = {}
    spare = iter(_MORE * (1 + len(heuristics) // len(_MORE)))
    for name, heuristic in heuristics.items():
        usual = _COLOURS.get(heuristic)
        colours[name] = usual if usual and usual not in colours.values() else next(spare)
    return colours
