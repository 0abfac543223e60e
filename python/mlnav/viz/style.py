"""The look of all figures: colours, axes, marks and text."""

from __future__ import annotations

import math
import os
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from matplotlib.patheffects import withStroke
from numpy.typing import ArrayLike

from mlnav.io import whole_file

XY = tuple[float, float]

PAPER = "#fbfaf8"
INK = "#2b2422"
SOFT_INK = "#7a6f6a"
GRID = "#e4deda"
CASING = "#201a18"
"""Dark edge under lines drawn on a map."""

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
"""ACE evaluations: few are teal, many magenta."""

SHARE = LinearSegmentedColormap.from_list(
    "share", ["#7a0c3d", "#d62455", "#f58b4c", "#ffe28a", "#8fd694", "#118a7e"]
)
"""Share of headings that pass: none is dark red, all green."""

HALO = [withStroke(linewidth=2.5, foreground=CASING, alpha=0.75)]
DASHES = (0, (4, 2))

TITLE_LINE_IN = 0.24
"""Height of a line of a figure's title."""
_TITLE_TOP_IN = 0.22

_MAP = (0.055, 0.075, 0.565, 0.765)
_SIDE = (0.68, 0.97)
"""Left and right edge of the column of panels beside a map."""


def new_figure(width_in: float, height_in: float) -> Figure:
    """An empty figure with its own Agg canvas."""
    figure = Figure(figsize=(width_in, height_in), facecolor=PAPER)
    FigureCanvasAgg(figure)
    return figure


def axes_by_inches(figure: Figure) -> Callable[[float, float, float, float], Axes]:
    """A function that adds axes at left, top, width, height [in] from the upper left corner."""
    width_in, height_in = figure.get_size_inches()

    def place(left: float, top: float, width: float, height: float) -> Axes:
        box = (left, height_in - top - height, width, height)
        scale = (width_in, height_in, width_in, height_in)
        return figure.add_axes(tuple(v / of for v, of in zip(box, scale, strict=True)))

    return place


def map_page(height_in: float = 7.4) -> tuple[Figure, Axes, Callable[..., Axes]]:
    """A figure, the axes of a large map at the left, and a function that adds a panel beside it.

    A panel has bottom and height in figure fraction, left and right edge in [0, 1] of the column.
    """
    figure = new_figure(11.0, height_in)
    first, last = _SIDE

    def panel(bottom: float, height: float, left: float = 0.0, right: float = 1.0) -> Axes:
        wide = last - first
        return figure.add_axes((first + left * wide, bottom, (right - left) * wide, height))

    return figure, figure.add_axes(_MAP), panel


def aspect_of(axes: Axes) -> float:
    """Width over height of the room that axes have in their figure."""
    figure, box = axes.get_figure(root=True), axes.get_position(original=True)
    assert figure is not None
    width_in, height_in = figure.get_size_inches()
    return float(box.width * width_in / (box.height * height_in))


def save_figure(figure: Figure, path: str | os.PathLike[str], dpi: int = 150) -> None:
    """Write a PNG without dates or versions: the same figure gives the same bytes."""
    with whole_file(path) as temporary:
        figure.savefig(temporary, dpi=dpi, facecolor=PAPER, metadata={"Software": None})


def headline(
    figure: Figure, title: str, lines: Iterable[str], left: float, credit: str | None = None
) -> None:
    """Title and lines of numbers at the top, the credit of the data at the foot.

    Text begins at `left` in figure fraction; a credit too long for a line is shortened.
    """
    height_in = float(figure.get_size_inches()[1])
    top = 1.0 - _TITLE_TOP_IN / height_in
    figure.text(left, top, title, fontsize=14, fontweight="bold", color=INK, va="top")
    for i, line in enumerate(lines):
        y = top - (0.30 + TITLE_LINE_IN * title.count("\n") + 0.20 * i) / height_in
        figure.text(left, y, line, fontsize=9, color=SOFT_INK, va="top")
    if credit:
        text = textwrap.shorten(credit, 170, placeholder="...")
        figure.text(left, 0.012, text, fontsize=6, color=SOFT_INK, va="bottom")


def plain_axes(axes: Axes) -> None:
    """Light axes for curves and bars."""
    axes.set_facecolor(PAPER)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set(color=SOFT_INK, linewidth=0.6)
    axes.tick_params(colors=SOFT_INK, labelsize=7, width=0.6, length=3)
    axes.xaxis.label.set(fontsize=7.5, color=SOFT_INK)
    axes.grid(axis="y", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)


def map_axes(axes: Axes, facecolor: str = "#d8d2cd") -> None:
    """Axes in metres: equal scales, no frame."""
    axes.set_aspect("equal")
    axes.set_facecolor(facecolor)
    axes.spines[:].set_visible(False)
    axes.tick_params(colors=SOFT_INK, labelsize=7, width=0.5, length=2.5)
    axes.xaxis.label.set(fontsize=7.5, color=SOFT_INK)


def panel_title(axes: Axes, text: str, note: str = "") -> None:
    """Small title of a panel, with an optional note at its right end."""
    axes.set_title(text, loc="left", fontsize=8.5, color=INK, fontweight="bold", pad=6)
    if note:
        axes.set_title(note, loc="right", fontsize=7.5, color=SOFT_INK, pad=6)


def colour_bar(figure: Figure, mappable: Any, axes: Axes, label: str) -> Any:
    """A slim horizontal colour bar that fills its own axes."""
    bar = figure.colorbar(mappable, cax=axes, orientation="horizontal")
    bar.outline.set_visible(False)
    axes.tick_params(colors=SOFT_INK, labelsize=7, width=0.5, length=2.5, which="both")
    axes.set_title(label, loc="left", fontsize=7.5, color=SOFT_INK, pad=4)
    return bar


def scale_bar(axes: Axes) -> None:
    """A bar of a round length at the lower left of a map."""
    (x0, x1), (y0, y1) = axes.get_xlim(), axes.get_ylim()
    most = 0.22 * (x1 - x0)
    power = 10.0 ** math.floor(math.log10(most))
    length = max(k * power for k in (1.0, 2.0, 5.0) if k * power <= most)
    x, y = x0 + 0.035 * (x1 - x0), y0 + 0.04 * (y1 - y0)
    thick = 0.007 * (y1 - y0)
    look: dict[str, Any] = {"align": "edge", "edgecolor": INK, "linewidth": 0.6, "zorder": 20}
    axes.barh([y] * 2, length / 2, thick, [x, x + length / 2], color=["#ffffff", INK], **look)
    at, look = (x + length / 2, y + 1.8 * thick), {"ha": "center", "va": "bottom", "zorder": 20}
    halo_text(axes, f"{length:g} m", at, (0, 0), size=8, bold=False, **look)


def halo_text(
    axes: Axes, text: str, at: XY, offset_pt: XY, size: float = 8.5, bold: bool = True, **look: Any
) -> None:
    """White text with a dark halo, to be read on any ground; offset from a place in points."""
    look |= {"fontweight": "bold" if bold else "normal", "color": "#ffffff", "path_effects": HALO}
    axes.annotate(text, at, offset_pt, textcoords="offset points", fontsize=size, **look)


def arrow(axes: Axes, tail: Any, tip: Any, **look: Any) -> None:
    """An arrow in the colour of the goal, from (x, y) to (x, y)."""
    look = {"arrowstyle": "-|>", "color": GOAL, **look}
    axes.annotate("", (tip[0], tip[1]), (tail[0], tail[1]), arrowprops=look, zorder=16)


def limit_line(
    axes: Axes, y: float, text: str, colour: str = BAD, x: float = 1.0, **look: Any
) -> None:
    """A dashed line across a panel, named at `x` in axes fraction."""
    axes.axhline(y, color=colour, linewidth=0.9, linestyle=DASHES)
    look = {"ha": "right", "va": "bottom", **look}
    offset_pt = (0.0, 0.0 if look["va"] == "center" else 1.5)
    at: dict[str, Any] = {"xycoords": axes.get_yaxis_transform(), "textcoords": "offset points"}
    axes.annotate(text, (x, y), offset_pt, fontsize=7, color=colour, **at, **look)


def polygon(axes: Axes, points: ArrayLike, facecolor: str = "none", **look: Any) -> Polygon:
    """A polygon through (n, 2) points, without an edge unless `look` has one."""
    drawn = Polygon(points, facecolor=facecolor, **{"edgecolor": "none", **look})
    axes.add_patch(drawn)
    return drawn


def marker(axes: Axes, x: float, y: float, shape: str, colour: str, label: str = "") -> None:
    """A marker with a dark rim, and its name beside it."""
    rim: dict[str, Any] = {"markeredgecolor": INK, "markeredgewidth": 1.2}
    axes.plot(x, y, shape, color=colour, markersize=13 if shape == "*" else 8, zorder=15, **rim)
    if label:
        halo_text(axes, label, (x, y), (9, 7), zorder=16)


def mark_ends(axes: Axes, start_m: Sequence[float] | None, goal_m: Sequence[float] | None) -> None:
    """Start and goal on a map, where there are any."""
    ends = ((start_m, "o", START, "start"), (goal_m, "*", GOAL, "goal"))
    for point, shape, colour, name in ends:
        if point is not None:
            marker(axes, point[0], point[1], shape, colour, name)


def folded(text: str, most: int) -> list[str]:
    """Text in lines of at most `most` characters, none of it left out.

    Broken after blanks and after separators in names, else within a word.
    """
    wrapper = textwrap.TextWrapper(most, break_on_hyphens=False)
    wrapper.wordsep_simple_re = re.compile(r"( |[^ _/;,+\-]*[_/;,+\-])")
    return wrapper.wrap(text) or [""]


_COLOURS = {"none": "#8d817b", "sobel": "#e8743b", "network": "#12a594", "oracle": "#3b4a8c"}
_MORE = ("#b14aa0", "#c9a227", "#5d9c3f", "#a3323c", "#4d9fd1", "#6b4f3a")


def contender_colours(heuristics: dict[str, str]) -> dict[str, str]:
    """A colour for each contender, given the heuristic of each by its name."""
    colours: dict[str, str] = {}
    spare = iter(_MORE * (1 + len(heuristics) // len(_MORE)))
    for name, heuristic in heuristics.items():
        usual = _COLOURS.get(heuristic)
        colours[name] = usual if usual and usual not in colours.values() else next(spare)
    return colours
