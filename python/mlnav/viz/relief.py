"""Shaded relief: heights as light and colour."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray
from scipy import ndimage

from mlnav.terrain import Terrain
from mlnav.viz.style import ELEVATION

Array = NDArray[Any]

# (azimuth from +x counter-clockwise, elevation, weight): a key light from the upper left and two
# weak ones, so that slopes away from it keep their shape.
_LIGHTS = ((135.0, 35.0, 0.72), (225.0, 50.0, 0.14), (45.0, 50.0, 0.14))


def filled(z: Array) -> Array:
    """Heights in float64 with unknown cells taken from the nearest known one."""
    unknown = ~np.isfinite(z)
    heights = z.astype(np.float64)
    if unknown.any() and not unknown.all():
        nearest = ndimage.distance_transform_edt(
            unknown, return_distances=False, return_indices=True
        )
        heights = heights[tuple(nearest)]
    return heights


def slope(z: Array, resolution_m: float) -> tuple[Array, Array]:
    """Rise over run along x and y; one cell is enough: a map of one row is level across."""
    heights = filled(z)
    dy = np.gradient(heights, resolution_m, axis=0) if z.shape[0] > 1 else np.zeros(z.shape)
    dx = np.gradient(heights, resolution_m, axis=1) if z.shape[1] > 1 else np.zeros(z.shape)
    return dx, dy


def hillshade(z: Array, resolution_m: float) -> Array:
    """Brightness in [0, 1] of a matt surface; level ground is about 0.6."""
    dx, dy = slope(z, resolution_m)
    norm = np.sqrt(dx * dx + dy * dy + 1.0)
    light = np.zeros(z.shape)
    for azimuth, elevation, weight in _LIGHTS:
        a, e = math.radians(azimuth), math.radians(elevation)
        toward = (math.cos(e) * math.cos(a), math.cos(e) * math.sin(a), math.sin(e))
        cosine = (-dx * toward[0] - dy * toward[1] + toward[2]) / norm
        light += weight * np.clip(cosine, 0.0, None)
    # Hollows get less of the sky than tops: a little darkness below the local mean.
    heights = filled(z)
    hollow = heights - ndimage.gaussian_filter(heights, max(0.6 / resolution_m, 1.0))
    light += 0.14 * np.tanh(hollow / 0.25)
    # Gentle ground gets more contrast, rough ground keeps its own.
    level = float(np.median(light))
    gain = float(np.clip(0.12 / max(float(light.std()), 1e-6), 1.0, 1.7))
    shade: Array = np.clip(0.6 + gain * (light - level), 0.0, 1.0)
    return shade


def relief_image(z: Array, resolution_m: float) -> Array:
    """(ny, nx, 4) RGBA: tint by height, lit; unknown cells transparent."""
    heights = filled(z)
    trend = ndimage.gaussian_filter(heights, max(0.2 / resolution_m, 0.5))
    low, high = np.percentile(trend, [1.0, 99.0])
    span = max(high - low, 0.5)
    image = ELEVATION(np.clip((trend - low) / span, 0.0, 1.0) * 0.80 + 0.12)
    shade = hillshade(z, resolution_m)
    image[..., :3] = np.clip(image[..., :3] * (0.28 + 1.12 * shade)[..., None], 0.0, 1.0)
    image[..., 3] = np.isfinite(z)
    return np.asarray(image)


def draw_relief(axes: Axes, terrain: Terrain, *, faded: float = 0.0) -> None:
    """The terrain under a map; `faded` towards grey by that share."""
    image = relief_image(terrain.z, terrain.resolution_m)
    if faded:
        grey = image[..., :3].mean(axis=-1, keepdims=True)
        image[..., :3] = (1 - faded) * image[..., :3] + faded * (0.25 + 0.75 * grey)
    x_min, x_max, y_min, y_max = terrain.extent_m
    axes.imshow(
        image,
        origin="lower",
        extent=(x_min, x_max, y_min, y_max),
        interpolation="bilinear",
        zorder=0,
    )


def window(
    terrain: Terrain, points: Array, margin_m: float, aspect: float = 1.0
) -> tuple[float, float, float, float]:
    """Bounds (x_min, x_max, y_min, y_max) around points, of a given width over height.

    Shifted to lie on the map as far as it fits.
    """
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
