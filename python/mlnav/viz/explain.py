"""One pose in one figure: the terrain, the checker's boxes and bounds, the settled rover."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch
from matplotlib.ticker import MultipleLocator

from mlnav.config import Config
from mlnav.core import F64, WHEELS
from mlnav.linkage import Linkage, linkage
from mlnav.sim.explain import Explanation, WayExplanation, WheelBox
from mlnav.terrain import Terrain
from mlnav.viz import style
from mlnav.viz.relief import draw_ground
from mlnav.viz.rover import TYRE, corners, pan_corners, placed, tyre_corners

Look = tuple[float, float]
"""Opacity and order."""
Place = Callable[[float, float, float, float], Axes]

MAP_IN, SIDE_IN, FRONT_IN = (4.75, 4.55), (3.75, 2.85), (3.0, 2.85)
"""Width and height of the axes that `PoseDrawing` draws into."""
_REACH_M = 2.3
"""Half height of the map."""
_DECK_M = 0.42
"""Height of the body above the belly pan."""

_BOUND, _BOUND_DARK, _STATE, _EMPTY = style.GOOD, "#0e8f82", "#e8743b", "#f1ece8"
_BODY, _STEEL, _GROUND = "#f4efe9", "#4b4441", "#b98a63"
_FAR, _NEAR = (0.35, 1.0), (1.0, 4.0)
"""Looks of the far and of the near side of an elevation."""
_DOT: dict[str, Any] = {"color": _STATE, "mec": "#ffffff", "mew": 0.9, "clip_on": False}


def explain_figure(terrain: Terrain, explanation: Explanation, config: Config) -> Figure:
    """Map, bounds against limits, wheel boxes, and the rover from its right and from ahead."""
    width_in = 12.4
    figure = style.new_figure(width_in, 10.6)
    place = style.axes_by_inches(figure)
    drawing = PoseDrawing(terrain, explanation, config)
    drawing.draw_map(place(0.55, 1.62, *MAP_IN))
    _draw_bounds(place(7.1, 1.62, 2.75, 4.55), explanation, config)
    _draw_boxes(figure, place, explanation)
    drawing.draw_side(place(4.95, 7.05, *SIDE_IN))
    drawing.draw_front(place(9.2, 7.05, *FRONT_IN))

    x, y, heading = explanation.pose
    steps = explanation.inner_steps
    lines = [
        f"({x:g}, {y:g}) m, heading {math.degrees(heading):g}°,"
        f" cells {terrain.resolution_m:g} m   ·   {config.checker.name}, {config.limits.name}:"
        f" {steps} inner step{'s' * (steps != 1)}, {explanation.lookups} look-ups",
        _settled_line(explanation),
    ]
    title = f"{terrain.name}: {verdict(explanation)}"
    style.headline(figure, title, lines, 0.55 / width_in, terrain.attribution)
    return figure


def verdict(explained: Explanation | WayExplanation) -> str:
    """Safe, or the reasons of the rejection."""
    reasons = ", ".join(reason.replace("_", " ") for reason in explained.reasons)
    return "safe" if explained.safe else f"rejected: {reasons}"


def _settled_line(explanation: Explanation) -> str:
    faults = ", ".join(explanation.settled_faults)
    if explanation.settled is None:
        return f"at rest: not settled ({faults})"
    if faults:
        return f"at rest: unsafe ({faults})"
    return "at rest: safe" + ("" if explanation.safe else ", so this rejection is timid")


class PoseDrawing:
    """A pose seen from above, from the rover's right and from ahead.

    Attributes:
        links: the linkage at rest; None where it did not settle.
        wheel_centres: (6, 2) forward, left [m] of the axles at rest; nominal where not settled.
    """

    def __init__(self, terrain: Terrain, explanation: Explanation, config: Config) -> None:
        self._terrain, self._explanation, self._rover = terrain, explanation, config.rover
        model, settled = config.rover_model(), explanation.settled
        self.links: Linkage | None = None
        self._roll, self._pitch = 0.0, 0.0
        if settled is not None:
            self.links = linkage(model.geometry, settled)
            self._roll, self._pitch = settled["roll_rad"], settled["pitch_rad"]
            height = settled["origin_z_m"]
        else:
            height = float(np.nan_to_num(terrain.height(*explanation.pose[:2])))
        self._middle_m = height + 0.35
        places = explanation.places_m
        self.wheel_centres: F64 = np.asarray(
            model.wheel_plan() if places is None else places[:, :2], np.float64
        )

    def draw_map(self, axes: Axes) -> None:
        """The terrain about the pose, and where wheels and pan stand on it."""
        told, rover, pose = self._explanation, self._rover, self._explanation.pose
        x, y, _ = pose
        wide, high = _REACH_M * MAP_IN[0] / MAP_IN[1], _REACH_M
        margin_m = 3 * self._terrain.resolution_m
        bounds = (x - wide, x + wide, y - high, y + high)
        _contours(axes, draw_ground(axes, self._terrain, bounds, margin_m=margin_m))
        for centre in self.wheel_centres:
            tyre = placed(tyre_corners(rover, *centre), pose)
            look: dict[str, Any] = {"edgecolor": style.CASING, "alpha": 0.45, "lw": 0.8}
            style.polygon(axes, tyre, style.CASING, **look, zorder=6)
        pan, front = placed(pan_corners(rover), pose), rover.pan_front_x_m
        style.polygon(axes, pan, "#ffffff", alpha=0.10, zorder=5)
        style.polygon(axes, pan, edgecolor="#ffffff", lw=1.3, ls=style.DASHES, zorder=7)
        nose = [(front + 0.08, -0.13), (front + 0.08, 0.13), (front + 0.34, 0.0)]
        style.polygon(axes, placed(nose, pose), _STATE, edgecolor=style.INK, lw=0.8, zorder=9)
        for box in told.wheels or ():
            edge = placed(corners(*box.forward_m, *box.left_m), pose)
            style.polygon(axes, edge, _BOUND, alpha=0.25, zorder=8)
            style.polygon(axes, edge, edgecolor=_BOUND, lw=1.6, zorder=8)
        centres = placed(self.wheel_centres, pose).T
        axes.plot(*centres, "o", ms=4.5, zorder=10, **_DOT)
        lowest = self._least_clearance()
        if lowest is not None:
            axes.plot(*lowest, "X", ms=8, color=style.GOAL, mec=style.INK, mew=0.9, zorder=11)
            style.halo_text(
                axes, "least clearance", lowest, (7, 6), size=7.5, bold=False, zorder=12
            )
        style.scale_bar(axes)
        style.panel_title(axes, "Ground, wheels and pan", "contours every 0.1 m")

    def _least_clearance(self) -> tuple[float, float] | None:
        """Where the settled pan is nearest to the terrain under it, x and y."""
        if self.links is None:
            return None
        rear_left, front_left, front_right, _ = self.links.pan[0]
        along, aside = np.linspace(0.0, 1.0, 61)[:, None], np.linspace(0.0, 1.0, 46)[:, None, None]
        back, across = rear_left - front_left, front_right - front_left
        points = (front_left + along * back + aside * across).reshape(-1, 3)
        there = placed(points[:, :2], self._explanation.pose)
        gap = points[:, 2] - self._terrain.height(*there.T)
        if not np.isfinite(gap).any():
            return None
        x, y = there[int(np.nanargmin(gap))]
        return float(x), float(y)

    def draw_side(self, axes: Axes) -> None:
        """From the right, so that forward is to the right."""
        half, wide = 0.5 * self._rover.wheel_width_m, 2.05
        tall = 2 * wide * SIDE_IN[1] / SIDE_IN[0]
        along = np.linspace(-wide, wide, 321)
        for side, look in ((1.0, _FAR), (-1.0, _NEAR)):
            track = side * self._rover.middle_y_m
            if self.links is not None:
                track = float(self.links.axles[0, 1 if side > 0 else 4, 1])
            forward, left = np.meshgrid(along, track + np.linspace(-half, half, 9))
            self._draw_section(axes, along, (forward, left), tall, look)
            if self.links is not None:
                self._draw_side_linkage(axes, self.links, 0 if side > 0 else 1, look)
        self._draw_body(axes, 0, 3.4, 0.95)
        if self.links is not None:
            pan = self.links.pan[0][:, [0, 2]]
            style.polygon(axes, pan, _BODY, edgecolor=style.INK, lw=0.9, zorder=3.5)
        style.panel_title(axes, "From its right", "ground under the wheels' width")
        _elevation_axes(axes, wide, self._middle_m, tall, "forward (m)")

    def draw_front(self, axes: Axes) -> None:
        """From ahead, so that the rover's left is on the right."""
        rover, r, half = self._rover, self._rover.wheel_radius_m, 0.5 * self._rover.wheel_width_m
        wide = 1.64
        tall = 2 * wide * FRONT_IN[1] / FRONT_IN[0]
        across = np.linspace(-wide, wide, 261)
        cos, sin = math.cos(self._roll), math.sin(self._roll)
        tyre = np.array(corners(-half, half, -r, r)) @ [[cos, sin], [-sin, cos]]
        for wheel, look in ((1, _FAR), (0, _NEAR)):
            at = rover.front_x_m if wheel == 0 else 0.0
            if self.links is not None:
                at = float(self.links.axles[0, [wheel, wheel + 3], 0].mean())
            forward, left = np.meshgrid(at + np.linspace(-r, r, 9), across, indexing="ij")
            self._draw_section(axes, across, (forward, left), tall, look)
            if self.links is not None:
                for axle in self.links.axles[0, [wheel, wheel + 3], 1:]:
                    wheel_drawn = style.polygon(axes, axle + tyre, TYRE, edgecolor=style.INK)
                    wheel_drawn.set(lw=0.8, alpha=look[0], joinstyle="round", zorder=look[1] + 1.0)
        self._draw_body(axes, 1, 3.5, 1.0)
        style.panel_title(axes, "From ahead", "ground at the front wheels")
        _elevation_axes(axes, wide, self._middle_m, tall, "left (m)")

    def _draw_section(
        self, axes: Axes, along: F64, points: tuple[F64, F64], tall: float, look: Look
    ) -> None:
        """Least and most terrain height over the first axis of (samples, n) forward and left."""
        there = placed(np.column_stack([p.ravel() for p in points]), self._explanation.pose)
        heights = np.reshape(self._terrain.height(*there.T), points[0].shape)
        low, high = np.fmin.reduce(heights, axis=0), np.fmax.reduce(heights, axis=0)
        alpha, z = look
        for top, share in ((high, 0.45), (low, 0.75)):
            fill: dict[str, Any] = {"color": _GROUND, "alpha": share * alpha, "lw": 0, "zorder": z}
            axes.fill_between(along, self._middle_m - tall, top, **fill)
        axes.plot(along, high, color="#6d4a30", lw=1.1, alpha=alpha, zorder=z + 0.2)

    def _draw_body(self, axes: Axes, corner: int, order: float, alpha: float) -> None:
        """Pan to deck above the edge from a corner of the pan to the next: 0 side, 1 front."""
        if self.links is None:
            return
        cos = math.cos(self._pitch)
        up = (-math.sin(self._pitch), -cos * math.sin(self._roll), cos * math.cos(self._roll))
        edge = self.links.pan[0][[corner, corner + 1]]
        outline = np.concatenate([edge, edge[::-1] + _DECK_M * np.array(up)])[:, [corner, 2]]
        look: dict[str, Any] = {"edgecolor": style.INK, "lw": 0.9, "alpha": alpha, "zorder": order}
        style.polygon(axes, outline, _BODY, **look)

    def _draw_side_linkage(self, axes: Axes, links: Linkage, side: int, look: Look) -> None:
        alpha, z = look[0], look[1] + 1.0
        front, middle, rear = axles = links.axles[0, 3 * side : 3 * side + 3, ::2]
        pivots = rocker, bogie = links.rocker_pivots[0, side, ::2], links.bogie_pivots[0, side, ::2]
        bars = ((front, rocker, bogie), _STEEL), ((middle, bogie, rear), "#7a6f6a")
        for points, colour in bars:
            (bar,) = axes.plot(*np.transpose(points), color=colour, alpha=alpha, zorder=z + 0.6)
            bar.set(lw=4.0, solid_capstyle="round", solid_joinstyle="round")
        circles = (1.0, TYRE, style.INK, z + 0.4), (0.55, "#5b524e", "none", z + 0.5)
        for centre, (size, colour, edge, order) in itertools.product(axles, circles):
            wheel = Circle(centre, size * self._rover.wheel_radius_m, facecolor=colour)
            wheel.set(edgecolor=edge, linewidth=0.8, alpha=alpha, zorder=order)
            axes.add_patch(wheel)
        pins: dict[str, Any] = {"ms": 5, "color": _STATE, "mec": style.INK, "mew": 0.7}
        axes.plot(*np.transpose(pivots), "o", alpha=alpha, zorder=z + 0.8, **pins)


def _contours(axes: Axes, ground: Terrain) -> None:
    known = ground.z[np.isfinite(ground.z)]
    low, high = float(known.min()), float(known.max())
    levels = np.arange(math.floor(low * 10), math.ceil(high * 10) + 1) / 10.0
    if min(ground.shape) < 2 or high == low:
        return
    if len(levels) > 60:
        levels = levels[:: len(levels) // 30]
    look: dict[str, Any] = {"colors": style.INK, "linewidths": 0.4, "alpha": 0.35, "zorder": 1}
    axes.contour(ground.z, levels=levels, origin="lower", extent=ground.extent_m, **look)


def _elevation_axes(axes: Axes, wide: float, middle: float, tall: float, label: str) -> None:
    """Equal scales about a height, ticks and labels in metres."""
    style.map_axes(axes, style.PAPER)
    axes.axis((-wide, wide, middle - 0.43 * tall, middle + 0.57 * tall))
    axes.grid(color=style.GRID, linewidth=0.5)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_locator(MultipleLocator(1.0))
    axes.yaxis.set_major_locator(MultipleLocator(0.5))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:z.1f}")
    axes.set_xlabel(label, labelpad=2)


@dataclass(frozen=True)
class _Row:
    """A quantity's bounds, value at rest and limit, in the unit of the row."""

    name: str
    low: float
    high: float
    value: float | None
    limit: float | None
    """Of the magnitude; the least value where `least`."""
    span: tuple[float, float]
    unit: str
    margin: float | None = None
    least: bool = False

    @property
    def one_sided(self) -> bool:
        return self.least or self.span[0] >= 0.0

    @property
    def bounded(self) -> bool:
        return math.isfinite(self.low) or math.isfinite(self.high)

    @property
    def broken(self) -> bool:
        return self.margin is not None and self.margin < 0.0

    @property
    def bound_text(self) -> str:
        digits = 2 if "m" in self.unit else 1
        if not self.bounded or math.isnan(self.low) or math.isnan(self.high):
            return "no bound"
        if self.least:
            return f"at least {self.low:z.{digits}f}{self.unit}"
        if self.one_sided:
            return f"at most {self.high:z.{digits}f}{self.unit}"
        return f"{self.low:z.{digits + 1}f} to {self.high:z.{digits + 1}f}{self.unit}"

    @property
    def state_text(self) -> str:
        digits = 2 if "m" in self.unit else 1
        texts = [] if self.value is None else [f"at rest {self.value:z.{digits}f}{self.unit}"]
        if self.limit is not None:
            text = f"{'least' if self.least else 'most'} {self.limit:g}{self.unit}"
            if self.margin is not None and math.isfinite(self.margin):
                text += f", margin {self.margin:z.{digits}f}"
            texts.append(text)
        return "; ".join(texts)


def _rows(told: Explanation, config: Config) -> list[_Row]:
    limits, margins, degrees = config.limits, told.margins, math.degrees

    def value(name: str, factor: float = 1.0) -> float | None:
        return None if told.settled is None else factor * told.settled[name]

    def two_sided(name: str, column: str, limit: float | None) -> _Row:
        low, high = map(degrees, told.bounds[column])
        most = 1.25 * (limit or limits.tilt_max_deg)
        margin = None if limit is None else limit - max(abs(low), abs(high))
        at_rest = value(column, 180 / math.pi)
        return _Row(name, low, high, at_rest, limit, (-most, most), "°", margin)

    tilt, most = value("tilt_rad", 180 / math.pi), limits.tilt_max_deg
    tilt_bound, tilt_margin = degrees(told.tilt_max_rad), degrees(margins["tilt"])
    clearance, low, least = value("clearance_m"), told.clearance_min_m, limits.clearance_min_m
    highest, margin = max(0.75, 1.2 * (clearance or 0.0)), margins["clearance"]
    boxed = config.checker.name in ("fixed_box", "probabilistic")  # which look at the box's span
    name, relief = ("wheel drop", None) if boxed else ("relief", value("relief_max_m"))
    relief_limit = limits.wheel_drop_max_m if boxed else limits.relief_max_m
    span = (0.0, 1.6 * max(relief_limit or 0.3, 0.1))
    return [
        two_sided("roll", "roll_rad", None),
        two_sided("pitch", "pitch_rad", None),
        _Row("tilt", 0.0, tilt_bound, tilt, most, (0.0, 1.25 * most), "°", tilt_margin),
        two_sided("differential", "differential_rad", limits.differential_max_deg),
        two_sided("left bogie", "bogie_left_rad", limits.bogie_max_deg),
        two_sided("right bogie", "bogie_right_rad", limits.bogie_max_deg),
        _Row("clearance", low, math.inf, clearance, least, (0.0, highest), " m", margin, True),
        _Row(name, 0.0, told.relief_max_m, relief, relief_limit, span, " m", margins["relief"]),
    ]


def _draw_bounds(axes: Axes, told: Explanation, config: Config) -> None:
    rows = _rows(told, config)
    axes.axis((0.0, 1.0, len(rows) - 0.5, -0.5))
    axes.set_axis_off()
    for i, row in enumerate(rows):
        _draw_row(axes, i, row)
    style.panel_title(axes, "Bounds against limits")
    key = (("bar: bounds", _BOUND_DARK), ("dot: at rest", _STATE), ("line: limit", style.BAD))
    for x, (text, colour) in zip((1.05, 1.31, 1.56), key, strict=True):
        axes.text(x, -0.62, text, va="bottom", fontsize=7.5, color=colour)


def _draw_row(axes: Axes, i: int, row: _Row) -> None:
    (first, last), tall = row.span, 0.24

    def at(value: float) -> float:
        return float(np.clip((value - first) / (last - first), 0.0, 1.0))

    def bar(low: float, high: float, height: float, colour: str, alpha: float, order: int) -> None:
        axes.barh(i, high - low, height, low, color=colour, alpha=alpha, zorder=order)

    def line(x: float, half: float, colour: str, width: float, order: int) -> None:
        axes.vlines(x, i - half, i + half, color=colour, lw=width, zorder=order)

    box = FancyBboxPatch((0.0, i - tall / 2), 1.0, tall, "round,pad=0,rounding_size=0.02")
    box.set(facecolor="#ece6e1", edgecolor="none", mutation_aspect=8.0, zorder=1)
    axes.add_patch(box)
    axes.text(-0.05, i, row.name, ha="right", va="center", fontsize=9.5, color=style.INK)
    if first < 0.0:
        line(at(0.0), tall / 2, "#ffffff", 1.0, 2)
    if row.limit is not None:  # what is beyond it is tinted
        for mark in [row.limit] if row.one_sided else [-row.limit, row.limit]:
            end = at(first if row.least or mark < 0.0 else last)
            bar(min(at(mark), end), max(at(mark), end), tall, style.BAD, 0.13, 2)
            line(at(mark), 0.22, style.BAD, 1.4, 4)
    if row.bounded:
        low, high = at(row.low), at(row.high)
        middle, half = 0.5 * (low + high), 0.5 * max(high - low, 0.006)
        colour, dark = (style.BAD, style.BAD) if row.broken else (_BOUND, _BOUND_DARK)
        alpha = 0.5 if row.one_sided else 0.85
        bar(middle - half, middle + half, tall - 0.06, colour, alpha, 3)
        if row.one_sided:
            line(low if row.least else high, tall / 2, dark, 2, 4)
    if row.value is not None:
        axes.plot(at(row.value), i, "o", ms=6, zorder=5, **_DOT)
    axes.text(1.05, i - 0.02, row.bound_text, va="bottom", fontsize=8.5, color=style.INK)
    colour = style.BAD if row.broken else style.SOFT_INK
    axes.text(1.05, i + 0.04, row.state_text, va="top", fontsize=7.8, color=colour)


def _draw_boxes(figure: Figure, place: Place, told: Explanation) -> None:
    """Six small plans of where wheels stand, forward to the right, each with a height bar."""
    x0, y0, wide, tall, gap = 0.55, 7.05, 1.12, 1.10, 0.28
    frame = place(x0, y0, 3 * wide + 2 * gap, 2 * tall)
    frame.set_axis_off()
    style.panel_title(frame, "Where each wheel stands")
    if told.wheels is None:
        absent = frame.text(0.0, 0.9, "The checker gave no bounds for this pose.", fontsize=9)
        absent.set(transform=frame.transAxes, color=style.SOFT_INK)
        return
    spans = [pair for box in told.wheels for pair in (box.forward_m, box.left_m, box.height_m)]
    scale = 1.25 * max(0.5 * max(high - low for low, high in spans), 5e-4)
    unit, factor = ("mm", 1e3) if scale < 0.05 else ("cm", 1e2)
    edge = f"{2 * scale * factor:.2g} {unit}"
    style.panel_title(frame, "Where each wheel stands", f"squares and bars are {edge}")
    for i, (name, box) in enumerate(zip(WHEELS, told.wheels, strict=True)):
        side, order = divmod(i, 3)
        axes = place(x0 + (2 - order) * (wide + gap), y0 + 0.12 + side * (tall + 0.32), wide, tall)
        half_m = _draw_box(axes, box, None if told.places_m is None else told.places_m[i], scale)
        label = f"{name.replace('_', ' ')}  ±{half_m * factor:.2g} {unit}"
        axes.text(-scale, -1.08 * scale, label, fontsize=7.2, color=style.SOFT_INK, va="top")


def _draw_box(axes: Axes, box: WheelBox, place: F64 | None, scale: float) -> float:
    """A box about its middle, and the settled wheel in it; returns half the span of heights."""
    low, high = np.array([box.forward_m, box.left_m, box.height_m]).T
    middle, (x, y, up) = 0.5 * (low + high), 0.5 * (high - low)
    axes.axis((-scale, 1.55 * scale, -scale, scale))
    axes.set_aspect("equal", anchor="W")
    axes.set_axis_off()
    bar, wide = 1.33 * scale, 0.13 * scale
    style.polygon(axes, corners(-scale, scale, -scale, scale), _EMPTY)
    axes.plot([-scale, scale, np.nan, 0, 0], [0, 0, np.nan, -scale, scale], color="#ffffff", lw=0.8)
    style.polygon(axes, corners(-x, x, -y, y), _BOUND, alpha=0.30)
    style.polygon(axes, corners(-x, x, -y, y), edgecolor=_BOUND, lw=1.4)
    style.polygon(axes, corners(bar - wide, bar + wide, -scale, scale), _EMPTY)
    heights = corners(bar - wide, bar + wide, -up, up)
    style.polygon(axes, heights, _BOUND, edgecolor=_BOUND, alpha=0.55, lw=1.0)
    if place is not None:
        forward, left, height = place - middle
        axes.plot([forward, bar], [left, height], "o", ms=5, zorder=5, **_DOT)
    return float(up)
