"""Where a run was first beyond its limits: the pose, what is at fault, the constraint's curve."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Polygon
from numpy.typing import NDArray

from mlnav.config import Config
from mlnav.core import WHEELS
from mlnav.linkage import Linkage
from mlnav.sim.explain import Explanation, explain
from mlnav.sim.records import CycleRecord, TraverseResult
from mlnav.sim.world import STATE_COLUMNS, UnsafeState
from mlnav.terrain import Terrain
from mlnav.viz import style
from mlnav.viz.explain import draw_front, draw_pose_map, draw_side, links_of
from mlnav.viz.rover import placed

F64 = NDArray[np.float64]

_WIDTH_IN, _HEIGHT_IN = 13.2, 7.1

_Columns = Mapping[str, NDArray[Any]]
_VALUES: dict[str, tuple[str, Callable[[_Columns], F64]]] = {
    "tilt": ("rad", lambda c: np.asarray(c["tilt_rad"])),
    "bogie": ("rad", lambda c: np.fmax(abs(c["bogie_left_rad"]), abs(c["bogie_right_rad"]))),
    "differential": ("rad", lambda c: np.abs(c["differential_rad"])),
    "clearance": ("m", lambda c: np.asarray(c["clearance_m"])),
    "relief": ("m", lambda c: np.asarray(c["relief_max_m"])),
}
"""Of each constraint that has a number: its unit, and its value in each settled state."""


def unsafe_figure(terrain: Terrain, result: TraverseResult, config: Config) -> Figure:
    """The first unsafe state of a run: map, views, and the broken constraint along the way.

    Args:
        terrain: the ground.
        result: a run with an unsafe state.
        config: of the run.

    Raises:
        ValueError: the run has no unsafe state.
    """
    record, unsafe = _first(result)
    told = _explained(terrain, record, unsafe, config)
    links = links_of(told, config)
    figure = style.new_figure(_WIDTH_IN, _HEIGHT_IN)
    place = style.axes_by_inches(figure)

    here = place(0.55, 1.7, 4.75, 4.55)
    draw_pose_map(here, terrain, told, config)
    _mark_plan(here, told, unsafe, config)
    side, front = place(5.85, 1.7, 3.75, 2.85), place(9.95, 1.7, 3.0, 2.85)
    draw_side(side, terrain, told, config, links)
    draw_front(front, terrain, told, config, links)
    if links is not None:
        _mark_view(side, links, unsafe, 0, config)
        _mark_view(front, links, unsafe, 1, config)
    _curve(place(6.2, 5.3, 6.75, 1.3), result, unsafe)

    verdict = "passes" if told.safe else "rejects: " + ", ".join(told.reasons)
    x, y, heading = unsafe.pose
    style.headline(
        figure,
        f"{terrain.name}: {result.outcome.replace('_', ' ')}",
        [
            f"beyond its limits: {unsafe}",
            f"at ({x:.2f}, {y:.2f}) m, heading {math.degrees(heading):.1f}°, after"
            f" {unsafe.distance_m:.2f} m, in cycle {record.cycle + 1} of {len(result.cycles)}   ·  "
            f" on the true ground {config.checker.name}, {config.limits.name} {verdict} this pose",
            f"{result.unsafe_states} of {result.judged_states} judged states of the run are beyond"
            " the limits",
        ],
        0.55 / _WIDTH_IN,
        1.0 - 0.28 / _HEIGHT_IN,
    )
    style.credit(figure, terrain.attribution, 0.55 / _WIDTH_IN)
    return figure


def _first(result: TraverseResult) -> tuple[CycleRecord, UnsafeState]:
    for record in result.cycles:
        if record.unsafe is not None:
            return record, record.unsafe
    raise ValueError("the run has no unsafe state to draw")


def _explained(
    terrain: Terrain, record: CycleRecord, unsafe: UnsafeState, config: Config
) -> Explanation:
    """The checker's answer, beside the state that the world judged: its wheels were steered."""
    told = explain(terrain, config, unsafe.pose)
    index = record.states.first_unsafe()
    if index is None:
        return told
    state, columns = record.states.state(index), record.states.columns
    known = {name: value for name, value in state.items() if value is not None}
    faults = tuple(record.states.faults(index))
    if len(known) < len(STATE_COLUMNS):
        return replace(told, settled=None, settled_faults=faults, places_m=None)
    places = np.column_stack([columns[n][index] for n in ("forward_m", "left_m", "heights_m")])
    return replace(told, settled=known, settled_faults=faults, places_m=places)


def _wheels_of(unsafe: UnsafeState) -> list[int]:
    """Indices of the wheels that stand for the part at fault; empty for the body."""
    kind, _, name = unsafe.part.partition(" ")
    if kind == "wheel" and name in WHEELS:
        return [WHEELS.index(name)]
    if kind == "bogie":
        return [i for i, wheel in enumerate(WHEELS) if wheel in (f"middle_{name}", f"rear_{name}")]
    return []


def _mark_plan(axes: Axes, told: Explanation, unsafe: UnsafeState, config: Config) -> None:
    rover = config.rover
    if told.places_m is not None:
        centres = told.places_m[:, :2]
    else:
        centres = np.asarray(config.rover_model().wheel_plan())
    wheels = _wheels_of(unsafe)
    marked = [(float(a), float(b)) for a, b in centres[wheels]]
    for point in placed(marked, told.pose) if marked else ():
        axes.add_patch(
            Circle(
                (float(point[0]), float(point[1])),
                1.5 * rover.wheel_radius_m,
                facecolor="none",
                edgecolor=style.BAD,
                lw=2.4,
                zorder=13,
            )
        )
    label_at = unsafe.pose[:2]
    if marked:
        label_at = tuple(placed(marked, told.pose)[0])
    else:
        x0, x1, y1 = rover.pan_rear_x_m, rover.pan_front_x_m, rover.pan_half_width_m
        pan = placed([(x0, -y1), (x1, -y1), (x1, y1), (x0, y1)], told.pose)
        axes.add_patch(Polygon(pan, facecolor="none", edgecolor=style.BAD, lw=2.4, zorder=13))
    axes.annotate(
        f"{unsafe.constraint}: {unsafe.part}" if unsafe.part else unsafe.constraint,
        (float(label_at[0]), float(label_at[1])),
        xytext=(0, 24),
        textcoords="offset points",
        fontsize=9.5,
        fontweight="bold",
        color="#ffffff",
        ha="center",
        path_effects=style.HALO,
        zorder=14,
    )


def _mark_view(
    axes: Axes, links: Linkage, unsafe: UnsafeState, across: int, config: Config
) -> None:
    """Rings about the wheels at fault; `across` is the horizontal coordinate: 0 forward, 1 left."""
    for wheel in _wheels_of(unsafe):
        place = links.axles[0, wheel]
        axes.add_patch(
            Circle(
                (float(place[across]), float(place[2])),
                1.25 * config.rover.wheel_radius_m,
                facecolor="none",
                edgecolor=style.BAD,
                lw=2.2,
                zorder=12,
            )
        )
    if not _wheels_of(unsafe):
        corners = links.pan[0][:, [across, 2]]
        axes.add_patch(Polygon(corners, facecolor="none", edgecolor=style.BAD, lw=2.2, zorder=12))


def _curve(axes: Axes, result: TraverseResult, unsafe: UnsafeState) -> None:
    """The broken constraint against its limit in all judged states; of others, the tilt."""
    measured = unsafe.limit is not None and unsafe.constraint in _VALUES
    name = unsafe.constraint if measured else "tilt"
    unit, value_of = _VALUES[name]
    scale, shown = (math.degrees(1.0), "°") if unit == "rad" else (1.0, " m")
    along, values = _along(result, value_of)
    values = scale * values
    style.plain_axes(axes)
    note = "all judged states; " + (
        "dot: the first one beyond the limit" if measured else f"{unsafe.constraint} has no number"
    )
    style.panel_title(axes, f"{name.capitalize()} along the way", note)
    axes.plot(along, values, color="#a9543a", lw=1.2, zorder=3)
    axes.set_xlim(0.0, max(float(along[-1]), unsafe.distance_m, 0.1))
    known = values[np.isfinite(values)]
    ends = [0.0, *(float(v) for v in known)]
    if measured and unsafe.limit is not None:
        limit = scale * unsafe.limit
        ends.append(limit)
        least = name == "clearance"
        beyond = values < limit if least else values > limit
        axes.fill_between(along, values, limit, where=beyond, color=style.BAD, alpha=0.5, lw=0)
        axes.axhline(limit, color=style.BAD, lw=1.0, ls=(0, (4, 2)), zorder=2)
        axes.text(
            0.004,
            limit,
            f"limit {limit:.3g}{shown}",
            fontsize=7.5,
            color=style.BAD,
            va="bottom",
            transform=axes.get_yaxis_transform(),
        )
        broken = np.flatnonzero(beyond)
        if len(broken):
            first = int(broken[0])
            axes.plot(along[first], values[first], "o", ms=6, color=style.BAD, mec="#ffffff",
                      clip_on=False, zorder=5)  # fmt: skip
    else:
        axes.axvline(unsafe.distance_m, color=style.BAD, lw=1.4, zorder=4, clip_on=False)
    low, high = min(ends), max(ends)
    axes.set_ylim(low, high + 0.18 * max(high - low, 1e-3))
    axes.yaxis.set_major_formatter(lambda v, _: f"{v:z.3g}{shown}")
    axes.set_xlabel("driven (m)", fontsize=7.5, color=style.SOFT_INK)


def _along(result: TraverseResult, value_of: Callable[[_Columns], F64]) -> tuple[F64, F64]:
    """Way from the start [m] and value at each judged state that is in the records."""
    ways: list[F64] = []
    values: list[F64] = []
    before = 0.0
    for cycle in result.cycles:
        if len(cycle.states):
            ways.append(before + np.asarray(cycle.states.columns["driven_m"], np.float64))
            values.append(np.asarray(value_of(cycle.states.columns), np.float64))
        before = cycle.driven_m
    return np.concatenate(ways), np.concatenate(values)
