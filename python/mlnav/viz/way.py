"""A way in one figure: bounds along it against limits, and the settled states inside them."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mlnav.config import Config
from mlnav.core import F64
from mlnav.sim.explain import WayExplanation
from mlnav.terrain import Terrain
from mlnav.viz import style
from mlnav.viz.explain import verdict

_STATE, _LIMIT = "#e8743b", "#b3261e"


def way_figure(terrain: Terrain, way: WayExplanation, config: Config) -> Figure:
    """A panel a quantity: the bounds of each stretch, settled states, the limits."""
    limits, degrees = config.limits, 180.0 / math.pi
    figure = style.new_figure(12.4, 8.6)
    panels = figure.subplots(4, 2, sharex=True, gridspec_kw={"hspace": 0.32, "wspace": 0.16})
    figure.subplots_adjust(left=0.07, right=0.98, bottom=0.07, top=0.89)
    following = iter(panels.T.ravel())

    def two_sided(label: str, name: str, limit: float | None = None) -> None:
        low, high = (degrees * way.bounds[name]).T
        marks = [] if limit is None else [-limit, limit]
        _panel(next(following), way, label, low, high, degrees * way.settled[name], marks)

    def one_sided(label: str, bound: F64, states: F64, limit: float | None, least: bool) -> None:
        other = np.full(len(bound), np.nanmax(states) if least else np.nanmin(states))
        low, high = (bound, other) if least else (other, bound)
        _panel(next(following), way, label, low, high, states, [] if limit is None else [limit])

    two_sided("roll, deg", "roll_rad")
    two_sided("pitch, deg", "pitch_rad")
    two_sided("left bogie, deg", "bogie_left_rad", limits.bogie_max_deg)
    two_sided("right bogie, deg", "bogie_right_rad", limits.bogie_max_deg)
    two_sided("differential, deg", "differential_rad", limits.differential_max_deg)
    tilt, relief, clearance = (way.settled[n] for n in ("tilt_rad", "relief_max_m", "clearance_m"))
    one_sided("tilt, deg", degrees * way.tilt_max_rad, degrees * tilt, limits.tilt_max_deg, False)
    one_sided("relief, m", way.relief_max_m, relief, limits.relief_max_m, False)
    one_sided("clearance, m", way.clearance_min_m, clearance, limits.clearance_min_m, True)
    turns = way.motion is not None and way.motion.turn_rad
    for axes in panels[-1]:
        axes.set_xlabel("way of the outermost wheels, m" if turns else "way, m")
    x, y, heading = way.pose
    if way.motion is None:
        motion = f"drive of {way.edge_m[-1]:.1f} m"
    elif turns:
        motion = f"turn of {math.degrees(way.motion.turn_rad):.0f} deg"
    else:
        motion = f"arc of {way.motion.length_m:g} m at {way.motion.curvature_per_m:g} 1/m"
    lines = [
        f"from ({x:.2f}, {y:.2f}) m, heading {math.degrees(heading):.1f}°   ·  "
        f" {config.checker.name}, {config.limits.name}:"
        " bands are bounds, points settled states, dashed lines limits"
    ]
    title = f"{terrain.name}: {motion}, {verdict(way)}"
    style.headline(figure, title, lines, 0.55 / 12.4, terrain.attribution)
    return figure


def _panel(
    axes: Axes,
    way: WayExplanation,
    label: str,
    low: F64,
    high: F64,
    states: F64,
    limits: list[float],
) -> None:
    along = np.repeat(way.edge_m, 2)[1:-1]
    low, high = np.repeat(low, 2), np.repeat(high, 2)
    axes.fill_between(along, low, high, color=style.GOOD, alpha=0.3, linewidth=0)
    axes.plot(way.state_m, states, ".", color=_STATE, markersize=2.5)
    for limit in limits:
        axes.axhline(limit, color=_LIMIT, linewidth=1.2, linestyle=style.DASHES)
    axes.set_title(label, loc="left", fontsize=9, color=style.INK)
    axes.grid(color=style.GRID, linewidth=0.5)
    axes.margins(x=0.01)
