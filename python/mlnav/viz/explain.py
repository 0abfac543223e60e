"""One pose in one picture: the ground, boxes and bounds, the rover at rest in them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch, Polygon, Rectangle
from numpy.typing import NDArray

from mlnav.config import Config
from mlnav.core import WHEELS
from mlnav.linkage import Linkage, linkage
from mlnav.sim.explain import Explanation
from mlnav.terrain import Terrain
from mlnav.viz import style
from mlnav.viz.relief import draw_relief
from mlnav.viz.rover import placed

F64 = NDArray[np.float64]

_WIDTH_IN, _HEIGHT_IN = 12.4, 10.6
_REACH_M = 2.3
"""Half width of the views."""

_BOUND = style.GOOD
_STATE = "#e8743b"
_BODY = "#f4efe9"
_STEEL = "#4b4441"
_GROUND = "#b98a63"


def explain_figure(terrain: Terrain, told: Explanation, config: Config) -> Figure:
    """Map, bounds against limits, wheel boxes, and the rover from its left and from ahead."""
    figure = style.new_figure(_WIDTH_IN, _HEIGHT_IN)
    place = style.axes_by_inches(figure)

    _headline(figure, terrain, told, config)
    draw_pose_map(place(0.55, 1.62, 4.75, 4.55), terrain, told, config)
    _bounds(place(7.1, 1.62, 2.75, 4.55), told, config)
    _boxes(figure, place, told)
    links = links_of(told, config)
    draw_side(place(4.95, 7.05, 3.75, 2.85), terrain, told, config, links)
    draw_front(place(9.2, 7.05, 3.0, 2.85), terrain, told, config, links)
    style.credit(figure, terrain.attribution, 0.55 / _WIDTH_IN)
    return figure


def _headline(figure: Figure, terrain: Terrain, told: Explanation, config: Config) -> None:
    x, y, heading = told.pose
    verdict = (
        "safe" if told.safe else "rejected: " + ", ".join(r.replace("_", " ") for r in told.reasons)
    )
    style.headline(
        figure,
        f"{terrain.name}: {verdict}",
        [
            f"({x:g}, {y:g}) m, heading {math.degrees(heading):g}°,"
            f" cells {terrain.resolution_m:g} m   ·   {config.checker.name}, {config.limits.name}:"
            f" {told.inner_steps} inner step{'s' * (told.inner_steps != 1)},"
            f" {told.lookups} look-ups",
            _settled_line(told),
        ],
        0.55 / _WIDTH_IN,
        1.0 - 0.28 / _HEIGHT_IN,
    )


def _settled_line(told: Explanation) -> str:
    if told.settled is None:
        return f"at rest: not settled ({', '.join(told.settled_faults)})"
    if told.settled_faults:
        return f"at rest: unsafe ({', '.join(told.settled_faults)})"
    return "at rest: safe" + ("" if told.safe else ", so this rejection is timid")


# -------------------------------------------------------------------------------------------- map


def draw_pose_map(axes: Axes, terrain: Terrain, told: Explanation, config: Config) -> None:
    """The ground about a pose, where wheels and pan stand on it; axes of 4.75 by 4.55."""
    x, y, _ = told.pose
    res = terrain.resolution_m
    aspect = 4.75 / 4.55
    wide, high = _REACH_M * aspect, _REACH_M
    view = (x - wide, x + wide, y - high, y + high)
    margin = 3 * res
    ground = terrain.crop(view[0] - margin, view[1] + margin, view[2] - margin, view[3] + margin)
    style.map_axes(axes)
    draw_relief(axes, ground)
    _contours(axes, ground)
    axes.set_xlim(*view[:2])
    axes.set_ylim(*view[2:])

    rover = config.rover
    r, half = rover.wheel_radius_m, 0.5 * rover.wheel_width_m
    pose = told.pose
    if told.places_m is not None:
        centres = told.places_m[:, :2]
    else:
        centres = np.asarray(config.rover_model().wheel_plan())
    for forward, left in centres:
        tyre = placed(_rectangle(forward - r, forward + r, left - half, left + half), pose)
        axes.add_patch(
            Polygon(tyre, facecolor="#201a18", alpha=0.45, edgecolor="#201a18", lw=0.8, zorder=6)
        )
    pan = placed(
        _rectangle(
            rover.pan_rear_x_m, rover.pan_front_x_m, -rover.pan_half_width_m, rover.pan_half_width_m
        ),
        pose,
    )
    axes.add_patch(Polygon(pan, facecolor="#ffffff", alpha=0.10, edgecolor="none", zorder=5))
    axes.add_patch(
        Polygon(pan, facecolor="none", edgecolor="#ffffff", lw=1.3, ls=(0, (4, 2)), zorder=7)
    )
    front = rover.pan_front_x_m
    nose = placed([(front + 0.08, -0.13), (front + 0.08, 0.13), (front + 0.34, 0.0)], pose)
    axes.add_patch(Polygon(nose, facecolor=_STATE, edgecolor=style.INK, lw=0.8, zorder=9))
    for box in told.wheels or ():
        corners = placed(_rectangle(*box.forward_m, *box.left_m), pose)
        axes.add_patch(Polygon(corners, facecolor=_BOUND, alpha=0.25, edgecolor="none", zorder=8))
        axes.add_patch(Polygon(corners, facecolor="none", edgecolor=_BOUND, lw=1.6, zorder=8))
    for forward, left in centres:
        (point,) = placed([(forward, left)], pose)
        axes.plot(*point, "o", ms=4.5, color=_STATE, mec="#ffffff", mew=0.9, zorder=10)
    lowest = _lowest(terrain, told, config)
    if lowest is not None:
        axes.plot(*lowest, "X", ms=8, color=style.GOAL, mec=style.INK, mew=0.9, zorder=11)
        axes.annotate(
            "least clearance",
            (float(lowest[0]), float(lowest[1])),
            xytext=(7, 6),
            textcoords="offset points",
            fontsize=7.5,
            color="#ffffff",
            path_effects=style.HALO,
            zorder=12,
        )
    style.scale_bar(axes)
    style.panel_title(axes, "Ground, wheels and pan", "contours every 0.1 m")


def _contours(axes: Axes, ground: Terrain) -> None:
    ny, nx = ground.shape
    known = ground.z[np.isfinite(ground.z)]
    low, high = float(known.min()), float(known.max())
    levels = np.arange(math.floor(low * 10), math.ceil(high * 10) + 1) / 10.0
    if ny < 2 or nx < 2 or high == low:
        return
    if len(levels) > 60:
        levels = levels[:: len(levels) // 30]
    (x, y), res = ground.origin_m, ground.resolution_m
    axes.contour(
        x + res * np.arange(nx),
        y + res * np.arange(ny),
        ground.z,
        levels=levels,
        colors="#2b2422",
        linewidths=0.4,
        alpha=0.35,
        zorder=1,
    )


def _rectangle(x0: float, x1: float, y0: float, y1: float) -> list[tuple[float, float]]:
    return [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]


def _lowest(terrain: Terrain, told: Explanation, config: Config) -> F64 | None:
    """Where the settled pan is nearest to the ground, in the world; cells under it alone."""
    if told.settled is None:
        return None
    model = config.rover_model()
    rear_left, front_left, front_right, _ = linkage(model.geometry, told.settled).pan[0]
    a, b = np.meshgrid(np.linspace(0.0, 1.0, 61), np.linspace(0.0, 1.0, 46))
    points = (
        front_left
        + a[..., None] * (rear_left - front_left)
        + b[..., None] * (front_right - front_left)
    ).reshape(-1, 3)
    there = placed(points[:, :2], told.pose)
    gap = points[:, 2] - terrain.height(there[:, 0], there[:, 1])
    if not np.isfinite(gap).any():
        return None
    found: F64 = there[int(np.nanargmin(gap))]
    return found


# ----------------------------------------------------------------------------------------- bounds


@dataclass(frozen=True)
class _Row:
    name: str
    low: float
    high: float
    value: float | None
    limit: float | None
    """Of the size, or the least value where `least`."""
    span: tuple[float, float]
    unit: str
    margin: float | None = None
    least: bool = False

    @property
    def known(self) -> bool:
        return math.isfinite(self.low) or math.isfinite(self.high)


def _rows(told: Explanation, config: Config) -> list[_Row]:
    limits, settled = config.limits, told.settled

    def value(name: str, factor: float = 1.0) -> float | None:
        return None if settled is None else factor * settled[name]

    def two_sided(name: str, column: str, limit: float | None) -> _Row:
        low, high = (math.degrees(v) for v in told.bounds[column])
        span = 1.25 * (limit or limits.tilt_max_deg)
        margin = None if limit is None else limit - max(abs(low), abs(high))
        return _Row(
            name, low, high, value(column, 180 / math.pi), limit, (-span, span), "°", margin
        )

    boxed = config.checker.name in ("fixed_box", "probabilistic")  # they look at the box's span
    relief_limit = limits.wheel_drop_max_m if boxed else limits.relief_max_m
    least = limits.clearance_min_m
    most_relief = 1.6 * max(relief_limit or 0.3, 0.1)
    return [
        two_sided("roll", "roll_rad", None),
        two_sided("pitch", "pitch_rad", None),
        _Row(
            "tilt",
            0.0,
            math.degrees(told.tilt_max_rad),
            value("tilt_rad", 180 / math.pi),
            limits.tilt_max_deg,
            (0.0, 1.25 * limits.tilt_max_deg),
            "°",
            math.degrees(told.margins["tilt"]),
        ),
        two_sided("differential", "differential_rad", limits.differential_max_deg),
        two_sided("left bogie", "bogie_left_rad", limits.bogie_max_deg),
        two_sided("right bogie", "bogie_right_rad", limits.bogie_max_deg),
        _Row(
            "clearance",
            told.clearance_min_m,
            math.inf,
            value("clearance_m"),
            least,
            (0.0, max(0.75, 1.2 * (value("clearance_m") or 0.0))),
            " m",
            told.margins["clearance"],
            least=True,
        ),
        _Row(
            "wheel drop" if boxed else "relief",
            0.0,
            told.relief_max_m,
            None if boxed else value("relief_max_m"),
            relief_limit,
            (0.0, most_relief),
            " m",
            told.margins["relief"],
        ),
    ]


def _bounds(axes: Axes, told: Explanation, config: Config) -> None:
    rows = _rows(told, config)
    axes.set_xlim(0.0, 1.0)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_axis_off()
    for i, row in enumerate(rows):
        _bound_row(axes, i, row)
    style.panel_title(axes, "Bounds against limits")
    for x, text, colour in (
        (1.05, "bar: bounds", _darker(_BOUND)),
        (1.31, "dot: at rest", _STATE),
        (1.56, "line: limit", style.BAD),
    ):
        axes.text(x, -0.62, text, va="bottom", fontsize=7.5, color=colour)


def _darker(colour: str) -> str:
    return {style.GOOD: "#0e8f82"}.get(colour, colour)


def _bound_row(axes: Axes, i: int, row: _Row) -> None:
    first, last = row.span
    tall = 0.24

    def at(value: float) -> float:
        return float(np.clip((value - first) / (last - first), 0.0, 1.0))

    axes.add_patch(
        FancyBboxPatch(
            (0.0, i - tall / 2),
            1.0,
            tall,
            boxstyle="round,pad=0,rounding_size=0.02",
            facecolor="#ece6e1",
            edgecolor="none",
            mutation_aspect=8.0,
            zorder=1,
        )
    )
    axes.text(-0.05, i, row.name, ha="right", va="center", fontsize=9.5, color=style.INK)
    if first < 0.0:
        axes.plot([at(0.0)] * 2, [i - tall / 2, i + tall / 2], color="#ffffff", lw=1.0, zorder=2)
    # Beyond the limits the ground is tinted.
    if row.limit is not None:
        marks = [row.limit] if row.least or first >= 0.0 else [-row.limit, row.limit]
        for mark in marks:
            outer = at(first) if row.least or mark < 0.0 else at(last)
            axes.add_patch(
                Rectangle(
                    (min(at(mark), outer), i - tall / 2),
                    abs(outer - at(mark)),
                    tall,
                    facecolor=style.BAD,
                    alpha=0.13,
                    edgecolor="none",
                    zorder=2,
                )
            )
            axes.plot(
                [at(mark)] * 2,
                [i - 0.22, i + 0.22],
                color=style.BAD,
                lw=1.4,
                zorder=4,
                solid_capstyle="butt",
            )
    beyond = row.margin is not None and row.margin < 0.0
    colour = style.BAD if beyond else _BOUND
    if row.known:
        low, high = at(row.low), at(row.high)
        wide = max(high - low, 0.006)
        axes.add_patch(
            Rectangle(
                (0.5 * (low + high) - wide / 2, i - tall / 2 + 0.03),
                wide,
                tall - 0.06,
                facecolor=colour,
                alpha=0.85 if not row.least and first < 0.0 else 0.5,
                edgecolor="none",
                zorder=3,
            )
        )
        if row.least or first >= 0.0:  # one-sided: the end that is the bound
            end = low if row.least else high
            axes.plot(
                [end] * 2, [i - tall / 2, i + tall / 2], color=_darker(colour), lw=2, zorder=4
            )
    if row.value is not None:
        axes.plot(
            [at(row.value)],
            [i],
            "o",
            ms=6,
            color=_STATE,
            mec="#ffffff",
            mew=1.0,
            zorder=5,
            clip_on=False,
        )
    digits = 2 if "m" in row.unit else 1
    axes.text(
        1.05,
        i - 0.02,
        _bound_text(row, digits),
        ha="left",
        va="bottom",
        fontsize=8.5,
        color=style.INK,
    )
    axes.text(
        1.05,
        i + 0.04,
        _state_text(row, digits),
        ha="left",
        va="top",
        fontsize=7.8,
        color=style.BAD if beyond else style.SOFT_INK,
    )


def _bound_text(row: _Row, digits: int) -> str:
    if not row.known or (math.isnan(row.low) or math.isnan(row.high)):
        return "no bound"
    if row.least:
        return f"at least {row.low:z.{digits}f}{row.unit}"
    if row.span[0] >= 0.0:
        return f"at most {row.high:z.{digits}f}{row.unit}"
    return f"{row.low:z.{digits + 1}f} to {row.high:z.{digits + 1}f}{row.unit}"


def _state_text(row: _Row, digits: int) -> str:
    rest = "" if row.value is None else f"at rest {row.value:z.{digits}f}{row.unit}"
    if row.limit is None:
        return rest
    word = "least" if row.least else "most"
    limit = f"{word} {row.limit:g}{row.unit}"
    margin = ""
    if row.margin is not None and math.isfinite(row.margin):
        margin = f", margin {row.margin:z.{digits}f}"
    return f"{rest + '; ' if rest else ''}{limit}{margin}"


# ------------------------------------------------------------------------------------ wheel boxes


def _boxes(figure: Figure, place: Any, told: Explanation) -> None:
    """Six small plans of where wheels stand, forward to the right, each with a height bar."""
    x0, y0, wide, tall, gap = 0.55, 7.05, 1.12, 1.10, 0.28
    left, top = x0 / _WIDTH_IN, 1.0 - (y0 - 0.09) / _HEIGHT_IN
    figure.text(
        left,
        top,
        "Where each wheel stands",
        fontsize=8.5,
        fontweight="bold",
        color=style.INK,
        va="bottom",
    )
    if told.wheels is None:
        figure.text(
            left,
            top - 0.35 / _HEIGHT_IN,
            "The checker gave no bounds for this pose.",
            fontsize=9,
            color=style.SOFT_INK,
        )
        return
    half = 0.5 * max(
        high - low for b in told.wheels for low, high in (b.forward_m, b.left_m, b.height_m)
    )
    scale = 1.25 * max(half, 5e-4)
    unit, factor = ("mm", 1e3) if scale < 0.05 else ("cm", 1e2)
    figure.text(
        (x0 + 3 * wide + 2 * gap) / _WIDTH_IN,
        top,
        f"squares and bars are {2 * scale * factor:.2g} {unit}",
        fontsize=7.5,
        color=style.SOFT_INK,
        va="bottom",
        ha="right",
    )
    for i, (name, box) in enumerate(zip(WHEELS, told.wheels, strict=True)):
        side, order = divmod(i, 3)
        axes = place(x0 + (2 - order) * (wide + gap), y0 + 0.12 + side * (tall + 0.32), wide, tall)
        state = None if told.places_m is None else told.places_m[i]
        _one_box(axes, name.replace("_", " "), box, state, scale, factor, unit)


def _one_box(
    axes: Axes, name: str, box: Any, state: F64 | None, scale: float, factor: float, unit: str
) -> None:
    mid = [0.5 * sum(pair) for pair in (box.forward_m, box.left_m, box.height_m)]
    half = [0.5 * (b - a) for a, b in (box.forward_m, box.left_m, box.height_m)]
    axes.set_xlim(-scale, 1.55 * scale)
    axes.set_ylim(-scale, scale)
    axes.set_aspect("equal", anchor="W")
    axes.set_axis_off()
    axes.add_patch(
        Rectangle((-scale, -scale), 2 * scale, 2 * scale, facecolor="#f1ece8", edgecolor="none")
    )
    axes.plot([-scale, scale], [0, 0], color="#ffffff", lw=0.8)
    axes.plot([0, 0], [-scale, scale], color="#ffffff", lw=0.8)
    axes.add_patch(
        Rectangle((-half[0], -half[1]), 2 * half[0], 2 * half[1], facecolor=_BOUND, alpha=0.30)
    )
    axes.add_patch(
        Rectangle(
            (-half[0], -half[1]),
            2 * half[0],
            2 * half[1],
            facecolor="none",
            edgecolor=_BOUND,
            lw=1.4,
        )
    )
    bar = 1.33 * scale
    axes.add_patch(
        Rectangle((bar - 0.13 * scale, -scale), 0.26 * scale, 2 * scale, facecolor="#f1ece8")
    )
    axes.add_patch(
        Rectangle(
            (bar - 0.13 * scale, -half[2]),
            0.26 * scale,
            2 * half[2],
            facecolor=_BOUND,
            alpha=0.55,
            edgecolor=_BOUND,
            lw=1.0,
        )
    )
    if state is not None:
        off = [float(s - m) for s, m in zip(state, mid, strict=True)]
        style_of: dict[str, Any] = {
            "color": _STATE,
            "mec": "#ffffff",
            "mew": 0.9,
            "clip_on": False,
            "zorder": 5,
        }
        axes.plot([off[0]], [off[1]], "o", ms=5, **style_of)
        axes.plot([bar], [off[2]], "o", ms=5, **style_of)
    axes.text(
        -scale,
        -1.08 * scale,
        f"{name}  ±{half[2] * factor:.2g} {unit}",
        fontsize=7.2,
        color=style.SOFT_INK,
        va="top",
    )


# ------------------------------------------------------------------------------------------ views


def links_of(told: Explanation, config: Config) -> Linkage | None:
    """The linkage at rest; None where it did not settle."""
    if told.settled is None:
        return None
    return linkage(config.rover_model().geometry, told.settled)


def _profile(terrain: Terrain, told: Explanation, forward: F64, left: F64) -> tuple[F64, F64]:
    """Least and most ground height over the first axis of points, (samples, n) each."""
    there = placed(np.column_stack([forward.ravel(), left.ravel()]), told.pose)
    heights = terrain.height(there[:, 0], there[:, 1]).reshape(forward.shape)
    known = np.isfinite(heights).any(axis=0)
    low, high = np.full(known.shape, np.nan), np.full(known.shape, np.nan)
    low[known] = np.nanmin(heights[:, known], axis=0)
    high[known] = np.nanmax(heights[:, known], axis=0)
    return low, high


def _view_axes(axes: Axes, middle: float, title: str, note: str, wide: float, tall: float) -> None:
    axes.set_aspect("equal")
    axes.set_facecolor(style.PAPER)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(colors=style.SOFT_INK, labelsize=7, width=0.5, length=2.5)
    axes.set_xlim(-wide, wide)
    axes.set_ylim(middle - 0.43 * tall, middle + 0.57 * tall)
    axes.grid(color=style.GRID, linewidth=0.5)
    axes.set_axisbelow(True)
    style.panel_title(axes, title, note)


def _fill(
    axes: Axes, along: F64, low: F64, high: F64, floor: float, alpha: float, z: float
) -> None:
    axes.fill_between(along, floor, high, color=_GROUND, alpha=0.45 * alpha, lw=0, zorder=z)
    axes.fill_between(along, floor, low, color=_GROUND, alpha=0.75 * alpha, lw=0, zorder=z)
    axes.plot(along, high, color="#6d4a30", lw=1.1, alpha=alpha, zorder=z + 0.2)


def draw_side(
    axes: Axes, terrain: Terrain, told: Explanation, config: Config, links: Linkage | None
) -> None:
    """From the right, so that forward is to the right."""
    rover, half = config.rover, 0.5 * config.rover.wheel_width_m
    wide = 2.05
    tall = 2 * wide * 2.85 / 3.75
    middle = _middle(terrain, told)
    floor = middle - tall
    along = np.linspace(-wide, wide, 321)
    for side, alpha, z in ((1.0, 0.35, 1.0), (-1.0, 1.0, 4.0)):
        track = side * rover.middle_y_m
        if links is not None:
            track = float(links.axles[0, 1 if side > 0 else 4, 1])
        across = track + np.linspace(-half, half, 9)
        forward, left = np.meshgrid(along, across)
        low, high = _profile(terrain, told, forward, left)
        _fill(axes, along, low, high, floor, alpha, z)
        if links is not None:
            _side_linkage(axes, links, config, side, alpha, z + 1.0)
    if links is not None:
        pan = links.pan[0]
        edge = pan[[0, 1, 2, 3]]
        axes.add_patch(
            Polygon(
                np.column_stack([edge[:, 0], edge[:, 2]]),
                facecolor=_BODY,
                edgecolor=style.INK,
                lw=0.9,
                zorder=3.5,
            )
        )
        up = _body_up(told)
        deck = edge + 0.42 * up
        outline = np.array([edge[0], edge[1], deck[1], deck[0]])
        axes.add_patch(
            Polygon(
                np.column_stack([outline[:, 0], outline[:, 2]]),
                facecolor=_BODY,
                edgecolor=style.INK,
                lw=0.9,
                alpha=0.95,
                zorder=3.4,
            )
        )
    _view_axes(axes, middle, "From its right", "ground under the wheels' width", wide, tall)
    _metres(axes, "forward", 2)


def draw_front(
    axes: Axes, terrain: Terrain, told: Explanation, config: Config, links: Linkage | None
) -> None:
    """From ahead: the rover's left is on the right."""
    rover = config.rover
    r, half = rover.wheel_radius_m, 0.5 * rover.wheel_width_m
    wide = 1.64
    tall = 2 * wide * 2.85 / 3.0
    middle = _middle(terrain, told)
    floor = middle - tall
    across = np.linspace(-wide, wide, 261)
    for wheel, alpha, z in ((1, 0.35, 1.0), (0, 1.0, 4.0)):
        at = rover.front_x_m if wheel == 0 else 0.0
        if links is not None:
            at = float(links.axles[0, [wheel, wheel + 3], 0].mean())
        forward, left = np.meshgrid(at + np.linspace(-r, r, 9), across, indexing="ij")
        low, high = _profile(terrain, told, forward, left)
        _fill(axes, across, low, high, floor, alpha, z)
        if links is None or told.settled is None:
            continue
        roll = told.settled["roll_rad"]
        cos, sin = math.cos(roll), math.sin(roll)
        for i in (wheel, wheel + 3):
            _, y, up = links.axles[0, i]
            tyre = [
                (y + a * cos - b * sin, up + a * sin + b * cos)
                for a, b in ((-half, -r), (half, -r), (half, r), (-half, r))
            ]
            axes.add_patch(
                Polygon(
                    tyre,
                    facecolor="#3a3331",
                    edgecolor=style.INK,
                    lw=0.8,
                    alpha=alpha,
                    joinstyle="round",
                    zorder=z + 1.0,
                )
            )
    if links is not None:
        pan = links.pan[0]
        deck = pan + 0.42 * _body_up(told)
        outline = np.array([pan[1], pan[2], deck[2], deck[1]])
        axes.add_patch(
            Polygon(outline[:, 1:], facecolor=_BODY, edgecolor=style.INK, lw=0.9, zorder=3.5)
        )
    _view_axes(axes, middle, "From ahead", "ground at the front wheels", wide, tall)
    _metres(axes, "left", 1)


def _middle(terrain: Terrain, told: Explanation) -> float:
    if told.settled is not None:
        return told.settled["origin_z_m"] + 0.35
    height = float(terrain.height(told.pose[0], told.pose[1]))
    return (height if math.isfinite(height) else 0.0) + 0.35


def _metres(axes: Axes, name: str, most: int) -> None:
    """Ticks and labels in metres."""
    axes.set_xticks(np.arange(-most, most + 1))
    low, high = axes.get_ylim()
    axes.set_yticks(np.arange(math.ceil(low * 2) / 2, high, 0.5))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:z.1f}")
    axes.set_xlabel(f"{name} (m)", fontsize=7.5, color=style.SOFT_INK, labelpad=2)


def _body_up(told: Explanation) -> F64:
    """The body's z axis: forward, left, up."""
    assert told.settled is not None
    roll, pitch = told.settled["roll_rad"], told.settled["pitch_rad"]
    return np.array(
        [
            -math.sin(pitch),
            -math.cos(pitch) * math.sin(roll),
            math.cos(pitch) * math.cos(roll),
        ]
    )


def _side_linkage(
    axes: Axes, links: Linkage, config: Config, side: float, alpha: float, z: float
) -> None:
    first = 0 if side > 0 else 3
    index = 0 if side > 0 else 1
    front, middle, rear = links.axles[0, first : first + 3]
    rocker, bogie = links.rocker_pivots[0, index], links.bogie_pivots[0, index]
    r = config.rover.wheel_radius_m
    for points, colour in (((front, rocker, bogie), _STEEL), ((middle, bogie, rear), "#7a6f6a")):
        line = np.array(points)
        axes.plot(
            line[:, 0],
            line[:, 2],
            color=colour,
            lw=4.0,
            alpha=alpha,
            zorder=z + 0.6,
            solid_capstyle="round",
            solid_joinstyle="round",
        )
    for x, _, up in (front, middle, rear):
        axes.add_patch(
            Circle(
                (x, up),
                r,
                facecolor="#3a3331",
                edgecolor=style.INK,
                lw=0.8,
                alpha=alpha,
                zorder=z + 0.4,
            )
        )
        axes.add_patch(
            Circle(
                (x, up),
                0.55 * r,
                facecolor="#5b524e",
                edgecolor="none",
                alpha=alpha,
                zorder=z + 0.5,
            )
        )
    for point in (rocker, bogie):
        axes.plot(
            [point[0]],
            [point[2]],
            "o",
            ms=5,
            color=_STATE,
            mec=style.INK,
            mew=0.7,
            alpha=alpha,
            zorder=z + 0.8,
        )
