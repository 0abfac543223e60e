"""Landforms other than rocks, each a height field [m] of shape (ny, nx) added to the ground.

Cell (iy, ix) is centred at ((ix + 0.5) res, (iy + 0.5) res).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.fft
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

RIM_SHARE = 0.2
"""Rim height over crater depth: 0.04 D against 0.2 D for fresh simple craters (Pike 1977)."""

_SYNTHESIS_MARGIN = 1.5
"""The synthesis is periodic; on a domain this much larger than the map opposite edges differ."""


@dataclass(frozen=True)
class Grid:
    """Cells of a map to be generated; its lower left corner is (0, 0)."""

    shape: tuple[int, int]
    resolution_m: float

    @property
    def size_m(self) -> tuple[float, float]:
        """(x, y) extent [m]."""
        return self.shape[1] * self.resolution_m, self.shape[0] * self.resolution_m

    def centres(self) -> tuple[FloatArray, FloatArray]:
        """Return x of shape (1, nx) and y of shape (ny, 1) of the cell centres [m]."""
        ny, nx = self.shape
        x = (np.arange(nx, dtype=np.float64)[None, :] + 0.5) * self.resolution_m
        y = (np.arange(ny, dtype=np.float64)[:, None] + 0.5) * self.resolution_m
        return x, y


def smoothstep(t: FloatArray) -> FloatArray:
    """0 below 0, 1 above 1, and 3t^2 - 2t^3 between."""
    t = np.clip(t, 0.0, 1.0)
    return np.asarray(t * t * (3.0 - 2.0 * t))


def plane(grid: Grid, slope_rad: float, aspect_rad: float) -> FloatArray:
    """A plane that rises towards ``aspect_rad`` (ccw from +x) and is 0 at the map's centre."""
    x, y = grid.centres()
    width, depth = grid.size_m
    along = (x - 0.5 * width) * np.cos(aspect_rad) + (y - 0.5 * depth) * np.sin(aspect_rad)
    return np.asarray(np.tan(slope_rad) * along)


def _spectral(
    rng: np.random.Generator,
    grid: Grid,
    hurst: float,
    wavelength_m: tuple[float, float],
    lag_m: float | None,
) -> FloatArray:
    """Gaussian field with power ~ f^-(2 hurst + 2) between two wavelengths.

    Its expected RMS difference is 1 at ``lag_m`` along x and y, or without a lag its RMS height.
    """
    n_y, n_x = (
        scipy.fft.next_fast_len(int(n * _SYNTHESIS_MARGIN) + 1, real=True) for n in grid.shape
    )
    fy = np.fft.fftfreq(n_y, grid.resolution_m)[:, None]
    fx = np.fft.rfftfreq(n_x, grid.resolution_m)[None, :]
    f2 = fx * fx + fy * fy
    f2[0, 0] = np.inf  # no mean
    shortest, longest = wavelength_m
    power = f2 ** -(hurst + 1.0)
    power[(f2 > shortest**-2) | (f2 < longest**-2)] = 0.0

    # Wiener-Khinchin on the discrete domain: D(r) = 2 sum P (1 - cos 2 pi f r). The half plane
    # that rfft leaves out is counted by doubling its mirror columns.
    twins = np.full(fx.shape, 2.0)
    twins[0, 0] = 1.0
    if n_x % 2 == 0:
        twins[0, -1] = 1.0
    weight = twins * power
    if lag_m is None:
        expected = weight.sum()
    else:
        along = 2.0 - np.cos(2.0 * np.pi * fx * lag_m) - np.cos(2.0 * np.pi * fy * lag_m)
        expected = (weight * along).sum()  # mean of the x and y structure functions
    if expected <= 0.0:
        return np.zeros(grid.shape)  # the map is smaller than the shortest wavelength
    amplitude = np.sqrt(power * (n_x * n_y / expected))
    noise = scipy.fft.rfft2(rng.standard_normal((n_y, n_x)))
    field = scipy.fft.irfft2(noise * amplitude, (n_y, n_x))
    return np.asarray(field[: grid.shape[0], : grid.shape[1]])


def self_affine(
    rng: np.random.Generator,
    grid: Grid,
    *,
    rms_1m_m: float,
    hurst: float,
    wavelength_m: tuple[float, float],
) -> FloatArray:
    """Self-affine relief: expected RMS difference ``rms_1m_m`` [m] at 1 m, growing as lag^hurst.

    The law holds between the wavelengths (least, most) [m] and below 1.5 times the map.
    """
    return rms_1m_m * _spectral(rng, grid, hurst, wavelength_m, 1.0)


def smooth_noise(rng: np.random.Generator, grid: Grid, wavelength_m: float) -> FloatArray:
    """Unit-RMS noise around one wavelength [m], for patches and for bending straight lines."""
    return _spectral(rng, grid, 0.5, (0.7 * wavelength_m, 3.0 * wavelength_m), None)


@dataclass(frozen=True)
class Crater:
    """A crater: centre and rim diameter [m], rim-to-floor depth over diameter."""

    x_m: float
    y_m: float
    diameter_m: float
    depth_ratio: float


def sample_craters(
    rng: np.random.Generator,
    grid: Grid,
    *,
    per_km2: float,
    diameter_m: tuple[float, float],
    depth_ratio: tuple[float, float],
) -> list[Crater]:
    """Craters by N(>D) = per_km2 (D / D_min)^-2.8, centres up to the largest radius off the map."""
    least, most = diameter_m
    margin = 0.5 * most
    width, depth = grid.size_m[0] + 2.0 * margin, grid.size_m[1] + 2.0 * margin
    cut = (most / least) ** -2.8
    count = rng.poisson(per_km2 * 1e-6 * (1.0 - cut) * width * depth)
    diameters = least * rng.uniform(cut, 1.0, count) ** (-1.0 / 2.8)
    xs = rng.uniform(-margin, grid.size_m[0] + margin, count)
    ys = rng.uniform(-margin, grid.size_m[1] + margin, count)
    ratios = rng.uniform(*depth_ratio, count)
    return [Crater(*map(float, c)) for c in zip(xs, ys, diameters, ratios, strict=True)]


def crater_relief(rng: np.random.Generator, grid: Grid, craters: list[Crater]) -> FloatArray:
    """Parabolic bowls with raised, slightly wavy rims and ejecta falling off as r^-3.

    Depth is from the ideal crest to the floor; the crest is rounded by a quarter of the rim's
    height.
    """
    relief = np.zeros(grid.shape)
    all_x, all_y = grid.centres()
    for c in craters:
        lobes = rng.uniform(0.0, 2.0 * np.pi, 2)
        x, y = all_x - c.x_m, all_y - c.y_m
        reach = 1.5 * c.diameter_m
        rows = np.flatnonzero(np.abs(y[:, 0]) < reach)
        columns = np.flatnonzero(np.abs(x[0]) < reach)
        if not (rows.size and columns.size):
            continue
        window = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        x, y = x[:, window[1]], y[window[0]]
        angle = np.arctan2(y, x)
        wavy = 1.0 + 0.05 * np.cos(2.0 * angle + lobes[0]) + 0.03 * np.cos(3.0 * angle + lobes[1])
        s = np.hypot(x, y) / (0.5 * c.diameter_m * wavy)
        deep = c.depth_ratio * c.diameter_m
        rim = RIM_SHARE * deep
        bowl = rim - deep * (1.0 - s * s)
        ejecta = rim * np.maximum(s, 0.3) ** -3.0 * smoothstep((2.7 - s) / 1.2)
        overlap = np.maximum(1.0 - np.abs(bowl - ejecta) / rim, 0.0)
        relief[window] += np.minimum(bowl, ejecta) - 0.25 * rim * overlap * overlap
    return relief


def ripples(
    rng: np.random.Generator,
    grid: Grid,
    *,
    height_m: float,
    wavelength_m: float,
    direction_rad: float,
    cover: float,
    patch_m: float,
) -> FloatArray:
    """Wind ripples: bending crests ``height_m`` above the wider troughs, ``wavelength_m`` apart.

    They come in patches of about ``patch_m`` that cover the share ``cover`` of the map.
    """
    x, y = grid.centres()
    bend = 0.35 * wavelength_m * smooth_noise(rng, grid, 6.0 * wavelength_m)
    along = x * np.cos(direction_rad) + y * np.sin(direction_rad) + bend
    crest = (0.5 + 0.5 * np.cos(2.0 * np.pi * along / wavelength_m)) ** 1.5
    patches = smooth_noise(rng, grid, patch_m)
    if cover >= 1.0:
        return np.asarray(height_m * crest)
    strength = smoothstep(0.5 + (patches - np.quantile(patches, 1.0 - cover)) / 0.8)
    return np.asarray(height_m * crest * strength)


def _trace(
    rng: np.random.Generator, grid: Grid, direction_rad: float, length_m: float
) -> tuple[FloatArray, FloatArray]:
    """Distance [m] across a wandering line through a random place on the map.

    Also the line's strength, from 1 to 0 at its ends.
    """
    x, y = grid.centres()
    px, py = rng.uniform(0.1, 0.9, 2) * grid.size_m
    cos, sin = np.cos(direction_rad), np.sin(direction_rad)
    along = (x - px) * cos + (y - py) * sin
    across = (y - py) * cos - (x - px) * sin + 0.6 * smooth_noise(rng, grid, 8.0)
    return across, smoothstep((0.5 * length_m - np.abs(along)) / (0.25 * length_m))


def scarp(
    rng: np.random.Generator,
    grid: Grid,
    *,
    height_m: float,
    width_m: float,
    length_m: float,
    back_m: float,
    direction_rad: float,
) -> FloatArray:
    """A ledge: ground steps up by ``height_m`` within ``width_m`` to the left of its line.

    The line fades out at both ends; behind it the ground falls back over about ``back_m``.
    """
    across, ends = _trace(rng, grid, direction_rad, length_m)
    rise = smoothstep(across / width_m + 0.5)
    back = np.exp(-0.5 * (np.maximum(across, 0.0) / back_m) ** 2)
    return height_m * ends * rise * back


def ditch(
    rng: np.random.Generator,
    grid: Grid,
    *,
    depth_m: float,
    width_m: float,
    length_m: float,
    direction_rad: float,
) -> FloatArray:
    """A trough with a rounded floor, ``width_m`` from edge to edge, dying out at both ends."""
    across, ends = _trace(rng, grid, direction_rad, length_m)
    return -depth_m * ends * smoothstep(2.0 - np.abs(across) / (0.25 * width_m))


def unknown_patches(
    rng: np.random.Generator,
    grid: Grid,
    *,
    fraction: float,
    patch_m: float,
    keep: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Cells to be unknown: patches of about ``patch_m`` on ``fraction`` of what is not kept."""
    noise = smooth_noise(rng, grid, patch_m)
    free = noise[~keep]
    if free.size == 0 or fraction == 0.0:
        return np.zeros(grid.shape, np.bool_)
    return np.asarray((noise > np.quantile(free, 1.0 - fraction)) & ~keep)
