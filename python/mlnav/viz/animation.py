"""A traverse as an animated GIF."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image

from mlnav.config import Config
from mlnav.io import whole_file
from mlnav.sim.records import TraverseResult
from mlnav.terrain import Terrain
from mlnav.viz import style
from mlnav.viz.rover import draw_rover
from mlnav.viz.traverse import draw_ending, draw_map, draw_track, effort_norm

MAX_FRAMES = 150
FRAME_MS = 110
LAST_FRAME_MS = 2500


def save_traverse_gif(
    path: str | os.PathLike[str], terrain: Terrain, result: TraverseResult, config: Config
) -> None:
    """Write a GIF of the rover, its track so far and the path just chosen, cycle by cycle."""
    size_in = 5.6
    figure = style.new_figure(size_in, size_in + 0.35)
    axes = figure.add_axes((0.0, 0.0, 1.0, size_in / (size_in + 0.35)))
    draw_map(axes, terrain, result, config)
    axes.set_axis_off()
    style.scale_bar(axes)
    norm = effort_norm(result, config)
    caption = figure.text(0.02, 0.985, "", fontsize=9.5, color=style.INK, va="top")

    frames: list[Image.Image] = []
    step = max(1, -(-len(result.cycles) // MAX_FRAMES))
    for i, cycle in list(enumerate(result.cycles))[::step]:
        artists = draw_track(axes, result.cycles[:i], norm)
        artists += draw_rover(axes, config.rover, cycle.pose)
        if len(cycle.path):
            x, y, _ = cycle.path.T
            look: dict[str, Any] = {"linewidth": 2.2, "path_effects": style.HALO}
            artists += axes.plot(x, y, color=style.CHOSEN, zorder=11, **look)
        caption.set_text(
            f"cycle {cycle.cycle + 1} of {len(result.cycles)}   ·   "
            f"{cycle.ace_evaluations} ACE evaluations   ·   {cycle.driven_m:.1f} m"
        )
        frames.append(_frame(figure))
        for artist in artists:
            artist.remove()
    draw_track(axes, result.cycles, norm)
    draw_ending(axes, result, config)
    caption.set_text(f"{result.outcome.replace('_', ' ')}   ·   {result.driven_m:.1f} m driven")
    frames.append(_frame(figure))
    _save_gif(path, frames)


def _frame(figure: Figure) -> Image.Image:
    canvas: Any = figure.canvas  # Agg, by new_figure
    canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")


def _save_gif(path: str | os.PathLike[str], frames: list[Image.Image]) -> None:
    """Write frames as a GIF that repeats and holds its last frame."""
    # One palette for all frames, so that nothing flickers: the terrain's colours and the accents.
    ours = [to_rgb(c) for c in (style.CHOSEN, style.GOAL, style.START, style.BAD, style.INK)]
    ours += [style.EFFORT(i / 31)[:3] for i in range(32)]
    ground = frames[-1].quantize(256 - len(ours), dither=Image.Dither.NONE).getpalette() or []
    accents = [round(255 * channel) for colour in ours for channel in colour]
    palette = Image.new("P", (1, 1))
    palette.putpalette(ground[: 3 * (256 - len(ours))] + accents)
    indexed = [f.quantize(palette=palette, dither=Image.Dither.NONE) for f in frames]
    durations = [FRAME_MS] * (len(indexed) - 1) + [LAST_FRAME_MS]
    rest: dict[str, Any] = {"save_all": True, "append_images": indexed[1:], "optimize": False}
    with whole_file(path) as temporary:
        indexed[0].save(temporary, duration=durations, loop=0, **rest)
