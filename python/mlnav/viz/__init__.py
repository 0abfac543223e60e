"""Pictures: matplotlib figures made without any global state, saved as PNG or GIF."""

from mlnav.viz.ace import ace_figure
from mlnav.viz.animation import save_traverse_gif
from mlnav.viz.explain import explain_figure
from mlnav.viz.plan import plan_figure
from mlnav.viz.style import save_figure
from mlnav.viz.terrain import terrain_figure, terrain_statistics
from mlnav.viz.traverse import traverse_figure
from mlnav.viz.unsafe import unsafe_figure
from mlnav.viz.way import way_figure

__all__ = [
    "ace_figure",
    "explain_figure",
    "plan_figure",
    "save_figure",
    "save_traverse_gif",
    "terrain_figure",
    "terrain_statistics",
    "traverse_figure",
    "unsafe_figure",
    "way_figure",
]
