"""Shaded relief: heights as light and colour."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray
from scipy import ndimage

from mlnav.terrain import Terrain
from mlnav.viz.style import ELEVATION, map_axes

Array = NDArray[Any]
Bounds = tuple[float, float, float, float]
"""x_min, x_max, y_min, y_max [m]."""

SUN_DEG = (135.0, 35.0)
"""Azimuth from +x counter-clockwise, and elevation: from the upper left of a map."""
_LIGHTS = ((SUN_DEG, 0.72), ((225.0, 50.0), 0.14), ((45.0, 50.0), 0.14))
"""Directions and weights; two weak lights, so that slopes away from the sun keep their shape."""


def filled(z: Array) -> Array:
    """Heights in float64; unknown cells take the height of the nearest known one."""
    unknown = ~np.isfinite(z)
    heights = z.astype(np.float64)
    if unknown.any() and not unknown.all():
        _, nearest = ndimage.distance_transform_edt(unknown, return_indices=True)
        heights = heights[tuple(nearest)]
    return heights


def direction(azimuth_deg: float, elevation_deg: float) -> Array:
    """(3,) unit vector; azimuth from +x counter-clockwise."""
    a, e = math.radians(azimuth_deg), math.radians(elevation_deg)
    return np.array([math.cos(e) * math.cos(a), math.cos(e) * math.sin(a), math.sin(e)])


def hillshade(z: Array, resolution_m: float) -> Array:
    """Brightness in [0, 1] of a matt surface; level ground is about 0.6."""
    heights = filled(z)
    dy, dx = (  # a map of one row is level across
        np.gradient(heights, resolution_m, axis=i) if n > 1 else np.zeros(z.shape)
        for i, n in enumerate(z.shape)
    )
    norm = np.sqrt(dx * dx + dy * dy + 1.0)
    light = np.zeros(z.shape)
    for place_deg, weight in _LIGHTS:
        x, y, up = direction(*place_deg)
        light += weight * np.clip((-dx * x - dy * y + up) / norm, 0.0, None)
    # Hollows see less of the sky than tops: a little darkness below the local mean.
    hollow = heights - ndimage.gaussian_filter(heights, max(0.6 / resolution_m, 1.0))
    light += 0.14 * np.tanh(hollow / 0.25)
    # Gentle ground gets more contrast, rough ground keeps its own.
    level = float(np.median(light))
    gain = float(np.clip(0.12 / max(float(light.std()), 1e-6), 1.0, 1.7))
    shade: Array = np.clip(0.6 + gain * (light - level), 0.0, 1.0)
    return shade


def lit_colours(
    z: Array, resolution_m: float, span_m: float, darkest: float, share: float
) -> Array:
    """(ny, nx, 3) tint by height, lit; it may exceed 1.

    Heights take a `share` of the scale of colours from `darkest` on, less if they span less than
    `span_m`.
    """
    trend = ndimage.gaussian_filter(filled(z), max(0.2 / resolution_m, 0.5))
    low, high = np.percentile(trend, [1.0, 99.0])
    height = np.clip((trend - low) / max(high - low, span_m), 0.0, 1.0)
    light = (0.28 + 1.12 * hillshade(z, resolution_m))[..., None]
    return np.asarray(ELEVATION(height * share + darkest)[..., :3] * light)


def relief_image(z: Array, resolution_m: float) -> Array:
    """(ny, nx, 4) RGBA: tint by height, lit; unknown cells transparent."""
    colours = np.clip(lit_colours(z, resolution_m, 0.5, 0.12, 0.80), 0.0, 1.0)
    return np.dstack([colours, np.isfinite(z)])


def draw_ground(
    axes: Axes,
    terrain: Terrain,
    bounds: Bounds | None = None,
    faded: float = 0.0,
    margin_m: float = 1.0,
) -> Terrain:
    """Axes of a map with shaded relief, all of it or within bounds; returns the terrain drawn.

    It is `faded` towards grey by a share; terrain within `margin_m` of the bounds has its part in
    the shades.
    """
    if bounds is not None:
        (x_min, x_max, y_min, y_max), m = bounds, margin_m
        terrain = terrain.crop(x_min - m, x_max + m, y_min - m, y_max + m)
    map_axes(axes)
    image = relief_image(terrain.z, terrain.resolution_m)
    if faded:
        grey = image[..., :3].mean(axis=-1, keepdims=True)
        image[..., :3] = (1 - faded) * image[..., :3] + faded * (0.25 + 0.75 * grey)
    axes.imshow(image, origin="lower", extent=terrain.extent_m, interpolation="bilinear", zorder=0)
    axes.axis(bounds or terrain.extent_m)
    return terrain


def window(terrain: Terrain, points: Array, margin_m: float, aspect: float = 1.0) -> Bounds:
    """Bounds around (n, 2) points with a given width over height, moved onto the map if it fits."""
    low, high = points.min(axis=0) - margin_m, points.max(axis=0) + margin_m
    width, height = high - low
    width, height = max(width, height * aspect), max(height, width / aspect)
    centre = 0.5 * (low + high)
    x_min, x_max, y_min, y_max = terrain.extent_m

    def fit(middle: float, size: float, least: float, most: float) -> tuple[float, float]:
        if size >= most - least:
            return 0.5 * (least + most - size), 0.5 * (least + most + size)
        first = min(max(middle - 0.5 * size, least), most - size)
        return first, first + size

    return (*fit(centre[0], width, x_min, x_max), *fit(centre[1], height, y_min, y_max))
