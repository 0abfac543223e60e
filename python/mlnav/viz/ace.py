"""Where the rover may be: the share of headings that pass."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from mlnav.config import Config
from mlnav.terrain import Terrain
from mlnav.viz import style
from mlnav.viz.relief import draw_ground, hillshade

_WIDTH_IN = 8.6


def ace_figure(terrain: Terrain, share: Any, rejects: dict[str, float], config: Config) -> Figure:
    """Map of the share of headings that pass, over shaded relief.

    `share` is (ny, nx) in [0, 1], NaN at the border and on unknown ground; `rejects` the share of
    evaluated poses rejected, by reason.
    """
    x_min, x_max, y_min, y_max = terrain.extent_m
    tall = float(np.clip((y_max - y_min) / (x_max - x_min), 0.4, 1.6))
    map_width = 0.90
    height = map_width * _WIDTH_IN * tall + 2.1
    figure = style.new_figure(_WIDTH_IN, height)
    axes = figure.add_axes((0.065, 0.5 / height, map_width, 1.0 - 2.1 / height))
    draw_ground(axes, terrain, faded=0.85)
    colours = style.SHARE(np.nan_to_num(share))
    shade = 0.45 + 0.85 * hillshade(terrain.z, terrain.resolution_m)
    colours[..., :3] = np.clip(colours[..., :3] * shade[..., None], 0.0, 1.0)
    colours[..., 3] = np.where(np.isfinite(share), 0.88, 0.0)
    axes.imshow(colours, origin="lower", extent=terrain.extent_m, interpolation="nearest")
    axes.axis(terrain.extent_m)
    style.mark_ends(axes, terrain.start_m, terrain.goal_m)
    style.scale_bar(axes)

    bar_axes = figure.add_axes((0.70, 1.0 - 0.62 / height, 0.265, 0.10 / height))
    bar = style.colour_bar(
        figure, ScalarMappable(Normalize(0.0, 1.0), style.SHARE), bar_axes, "headings that pass"
    )
    bar.set_ticks([0.0, 0.5, 1.0], labels=["none", "half", "all"])
    known = share[np.isfinite(share)]
    mean, every, none = (
        100.0 * float(part.mean()) if known.size else 0.0
        for part in (known, known == 1.0, known == 0.0)
    )
    most = sorted(rejects.items(), key=lambda item: -item[1])[:4]
    why = ", ".join(f"{reason} {100 * v:.1f} %" for reason, v in most if v)
    lines = [
        f"{mean:.1f} % of poses pass; all headings on {every:.1f} % of the ground,"
        f" none on {none:.1f} %",
        f"{config.checker.name}, {config.limits.name}",
        f"rejects: {why}" if why else "",
    ]
    title = f"{terrain.name}: where the rover may stand"
    style.headline(figure, title, lines, 0.065, terrain.attribution)
    return figure
