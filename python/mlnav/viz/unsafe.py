"""Where a run first exceeded its limits: the pose, the part at fault, the constraint's curve."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from mlnav.config import Config
from mlnav.core import F64, WHEELS
from mlnav.sim.explain import Explanation, explain
from mlnav.sim.records import CycleRecord, TraverseResult
from mlnav.sim.world import CONSTRAINTS, STATE_COLUMNS, UnsafeState
from mlnav.terrain import Terrain
from mlnav.viz import style
from mlnav.viz.explain import FRONT_IN, MAP_IN, SIDE_IN, PoseDrawing
from mlnav.viz.rover import pan_corners, placed


def unsafe_figure(terrain: Terrain, result: TraverseResult, config: Config) -> Figure:
    """The first unsafe state of a run: map, elevations, and the broken constraint's curve.

    Raises:
        ValueError: the run has no unsafe state.
    """
    record = next((c for c in result.cycles if c.unsafe is not None), None)
    if record is None or record.unsafe is None:
        raise ValueError("the run has no unsafe state to draw")
    unsafe = record.unsafe
    explanation = _explained(terrain, record, unsafe, config)
    drawing = PoseDrawing(terrain, explanation, config)
    width_in = 13.2
    figure = style.new_figure(width_in, 7.1)
    place = style.axes_by_inches(figure)
    seen = place(0.55, 1.7, *MAP_IN), place(5.85, 1.7, *SIDE_IN), place(9.95, 1.7, *FRONT_IN)
    drawing.draw_map(seen[0])
    drawing.draw_side(seen[1])
    drawing.draw_front(seen[2])
    _mark_map(seen[0], drawing, unsafe, config)
    if drawing.links is not None:
        points = drawing.links.axles[0], drawing.links.pan[0]
        for i, axes in enumerate(seen[1:]):
            axles, pan = (p[:, [i, 2]] for p in points)
            _mark(axes, axles[_wheels_of(unsafe)], pan, 1.25 * config.rover.wheel_radius_m)
    _draw_curve(place(6.2, 5.3, 6.75, 1.3), result, unsafe)

    verdict = "passes" if explanation.safe else "rejects: " + ", ".join(explanation.reasons)
    x, y, heading = unsafe.pose
    lines = [
        f"beyond its limits: {unsafe}",
        f"at ({x:.2f}, {y:.2f}) m, heading {math.degrees(heading):.1f}°, after"
        f" {unsafe.distance_m:.2f} m, in cycle {record.cycle + 1} of {len(result.cycles)}   ·  "
        f" on the true ground {config.checker.name}, {config.limits.name} {verdict} this pose",
        f"{result.unsafe_states} of {result.judged_states} judged states of the run are beyond"
        " the limits",
    ]
    title = f"{terrain.name}: {result.outcome.replace('_', ' ')}"
    style.headline(figure, title, lines, 0.55 / width_in, terrain.attribution)
    return figure


def _explained(
    terrain: Terrain, record: CycleRecord, unsafe: UnsafeState, config: Config
) -> Explanation:
    """The checker's answer, with the state that the world judged: its wheels were steered."""
    explanation = explain(terrain, config, unsafe.pose)
    index = record.states.first_unsafe()
    if index is None:
        return explanation
    state, columns = record.states.state(index), record.states.columns
    known = {name: value for name, value in state.items() if value is not None}
    faults = tuple(record.states.faults(index))
    if len(known) < len(STATE_COLUMNS):
        return replace(explanation, settled=None, settled_faults=faults, places_m=None)
    places = np.column_stack([columns[n][index] for n in ("forward_m", "left_m", "heights_m")])
    return replace(explanation, settled=known, settled_faults=faults, places_m=places)


def _wheels_of(unsafe: UnsafeState) -> list[int]:
    """Indices of the wheels of the part at fault; empty for the body."""
    kind, _, name = unsafe.part.partition(" ")
    if kind == "wheel" and name in WHEELS:
        return [WHEELS.index(name)]
    if kind == "bogie":
        return [i for i, wheel in enumerate(WHEELS) if wheel in (f"middle_{name}", f"rear_{name}")]
    return []


def _mark_map(axes: Axes, drawing: PoseDrawing, unsafe: UnsafeState, config: Config) -> None:
    wheels = placed(drawing.wheel_centres, unsafe.pose)[_wheels_of(unsafe)]
    pan = placed(pan_corners(config.rover), unsafe.pose)
    _mark(axes, wheels, pan, 1.5 * config.rover.wheel_radius_m)
    x, y = map(float, wheels[0] if len(wheels) else unsafe.pose[:2])
    text = f"{unsafe.constraint}: {unsafe.part}" if unsafe.part else unsafe.constraint
    style.halo_text(axes, text, (x, y), (0, 24), size=9.5, ha="center", zorder=14)


def _mark(axes: Axes, wheels: F64, pan: F64, radius_m: float) -> None:
    """Rings about (n, 2) wheels at fault, or the outline of the pan where there are none."""
    look: dict[str, Any] = {"edgecolor": style.BAD, "lw": 2.3, "zorder": 13}
    for centre in wheels:
        axes.add_patch(Circle(centre, radius_m, facecolor="none", **look))
    if not len(wheels):
        style.polygon(axes, pan, **look)


def _draw_curve(axes: Axes, result: TraverseResult, unsafe: UnsafeState) -> None:
    """The broken constraint against its limit in all judged states; without a number, the tilt."""
    measured = unsafe.limit is not None
    name = unsafe.constraint if measured else "tilt"
    constraint = CONSTRAINTS[name]
    scale, unit = (math.degrees(1.0), "°") if constraint.unit == "rad" else (1.0, " m")
    before = [0.0, *(c.driven_m for c in result.cycles)]
    runs = zip(before, result.cycles, strict=False)
    judged = [(driven_m, c.states.columns) for driven_m, c in runs if len(c.states)]
    along = np.concatenate([driven_m + columns["driven_m"] for driven_m, columns in judged])
    values = scale * np.concatenate([constraint.values(columns) for _, columns in judged])
    style.plain_axes(axes)
    note = "dot: the first one beyond the limit"
    if not measured:
        note = f"{unsafe.constraint} has no number"
    style.panel_title(axes, f"{name.capitalize()} along the way", f"all judged states; {note}")
    axes.plot(along, values, color="#a9543a", lw=1.2, zorder=3)
    axes.set_xlim(0.0, max(float(along[-1]), unsafe.distance_m, 0.1))
    ends = [0.0, *values[np.isfinite(values)]]
    if unsafe.limit is not None:
        limit = scale * unsafe.limit
        ends.append(limit)
        beyond = values < limit if constraint.least else values > limit
        axes.fill_between(along, values, limit, where=beyond, color=style.BAD, alpha=0.5, lw=0)
        style.limit_line(axes, limit, f"limit {limit:.3g}{unit}", x=0.004, ha="left")
        first = np.flatnonzero(beyond)[:1]
        dot: dict[str, Any] = {"ms": 6, "mec": "#ffffff", "clip_on": False}
        axes.plot(along[first], values[first], "o", color=style.BAD, zorder=5, **dot)
    else:
        axes.axvline(unsafe.distance_m, color=style.BAD, lw=1.4, zorder=4, clip_on=False)
    low, high = float(min(ends)), float(max(ends))
    axes.set_ylim(low, high + 0.18 * max(high - low, 1e-3))
    axes.yaxis.set_major_formatter(lambda v, _: f"{v:z.3g}{unit}")
    axes.set_xlabel("driven (m)")
