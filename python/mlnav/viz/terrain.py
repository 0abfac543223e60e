"""A terrain in a figure and in numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mlnav import _core
from mlnav.core import HeightMap
from mlnav.nav.cells import fine_enough
from mlnav.terrain import Terrain
from mlnav.viz import style
from mlnav.viz.relief import draw_ground


def rover_scale(terrain: Terrain) -> dict[str, Any]:
    """Plane-fit tilt [rad] and roughness [m] of rover-sized patches, as the planner sees them."""
    config = _core.CostmapConfig()
    config.coarsening = max(1, round(0.4 / terrain.resolution_m))
    return _core.costmap(HeightMap.of(terrain).grid, config)


def terrain_statistics(terrain: Terrain) -> dict[str, Any]:
    """Size, heights, and slope and roughness at rover scale (2 m patches)."""
    x_min, x_max, y_min, y_max = terrain.extent_m
    scale = rover_scale(terrain)
    known = terrain.z[np.isfinite(terrain.z)]

    def percentiles(values: Any, factor: float) -> dict[str, float | None]:
        finite = values[np.isfinite(values)] * factor
        names = (("median", 50), ("p95", 95), ("max", 100))
        return {k: float(np.percentile(finite, q)) if finite.size else None for k, q in names}

    return {
        "name": terrain.name,
        "sha256": terrain.sha256,
        "cells": [terrain.shape[1], terrain.shape[0]],
        "resolution_m": terrain.resolution_m,
        "fine_enough": fine_enough(terrain.resolution_m),
        "extent_m": {"x": [x_min, x_max], "y": [y_min, y_max]},
        "datum_m": list(terrain.datum),
        "height_m": {"min": float(known.min()), "max": float(known.max())},
        "known_share": known.size / terrain.z.size,
        "slope_deg": percentiles(np.asarray(scale["tilt_rad"]), 180.0 / math.pi),
        "roughness_m": percentiles(np.asarray(scale["roughness_m"]), 1.0),
        "start_m": None if terrain.start_m is None else list(terrain.start_m),
        "goal_m": None if terrain.goal_m is None else list(terrain.goal_m),
        "layers": sorted(terrain.layers),
        "attribution": terrain.attribution,
    }


def terrain_figure(terrain: Terrain) -> Figure:
    """Shaded relief, slope map and the distributions of slope and roughness."""
    figure, axes, panel = style.map_page(7.0)
    stats, scale = terrain_statistics(terrain), rover_scale(terrain)
    x_min, x_max, y_min, y_max = terrain.extent_m
    draw_ground(axes, terrain)
    axes.set_anchor("NW")
    style.mark_ends(axes, terrain.start_m, terrain.goal_m)
    style.scale_bar(axes)

    tilt = np.degrees(np.asarray(scale["tilt_rad"], np.float64))
    roughness = 100.0 * np.asarray(scale["roughness_m"], np.float64)
    slopes = panel(0.44, 0.415)
    style.map_axes(slopes)
    image = slopes.imshow(
        tilt, origin="lower", extent=terrain.extent_m, cmap="YlOrRd", vmin=0.0, vmax=30.0
    )
    style.panel_title(slopes, "Slope of 2 m patches")
    bar = figure.colorbar(image, ax=slopes, fraction=0.04, pad=0.03, format="{x:g}°")
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=style.SOFT_INK, labelsize=7, width=0.5, length=2.5)
    _histogram(panel(0.10, 0.225, 0.0, 0.43), "Slope", tilt, "°", "#c4572f")
    _histogram(panel(0.10, 0.225, 0.57, 1.0), "Roughness", roughness, " cm", "#8c6d5a")

    (nx, ny), height = stats["cells"], stats["height_m"]
    line = (
        f"{x_max - x_min:.0f} x {y_max - y_min:.0f} m, {nx} x {ny} cells of"
        f" {terrain.resolution_m:g} m, heights {height['min']:.2f} to {height['max']:.2f} m,"
        f" {100 * stats['known_share']:.0f} % known"
    )
    style.headline(figure, terrain.name, [line], 0.055, terrain.attribution)
    return figure


def _histogram(axes: Axes, name: str, values: Any, unit: str, colour: str) -> None:
    style.plain_axes(axes)
    axes.grid(visible=False)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    finite = values[np.isfinite(values)]
    if finite.size:
        top = max(float(np.percentile(finite, 99.5)), 1e-3)
        axes.hist(finite, bins=40, range=(0.0, top), color=colour, alpha=0.85)
        median = float(np.median(finite))
        axes.axvline(median, color=style.INK, linewidth=1.0)
        style.panel_title(axes, f"{name} {median:.1f}{unit}")
    axes.set_xlabel("line: the median")
    axes.xaxis.set_major_formatter("{x:g}" + unit)
