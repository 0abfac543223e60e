"""Pinhole cameras, and where to put them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.ndimage import gaussian_filter1d, maximum_filter1d

from mlnav.config import Config, Stereo
from mlnav.core import F64
from mlnav.terrain import Terrain
from mlnav.viz.playback import Posture

Size = tuple[int, int]

MAST_M = (0.80, -0.56, 1.98)
"""Default place of the mast camera: forward, left, up in the rover frame."""
MAST_WIDTH_DEG, MAST_HEIGHT_DEG = 96.0, 73.0
MAST_ELEVATION_DEG = -18.0
_MAST_NEAR_M = 0.35
"""Beyond the camera's housing."""

_CHASE_BACK_M, _CHASE_UP_M = 8.8, 3.8
_CHASE_SIDE_DEG = 30.0
"""Off the direction of travel, so that the suspension is seen."""
_ABOVE_GROUND_M = 2.6


@dataclass(frozen=True, eq=False)
class Camera:
    """A pinhole camera.

    Attributes:
        eye_m: where it is, world frame.
        axes: (3, 3) unit vectors in rows: right, up, forward.
        size_px: width, height of its pictures.
        width_deg: horizontal angle of view.
        near_m: nothing nearer is seen; measured along the axis.
    """

    eye_m: F64
    axes: F64
    size_px: Size
    width_deg: float
    near_m: float = 0.2

    @classmethod
    def looking(
        cls, eye_m: ArrayLike, at_m: ArrayLike, size_px: Size, width_deg: float, near_m: float = 0.2
    ) -> Self:
        """A level camera that looks from one place at another."""
        eye = np.asarray(eye_m, np.float64)
        forward = np.asarray(at_m, np.float64) - eye
        forward /= np.linalg.norm(forward)
        right = np.array([forward[1], -forward[0], 0.0])
        length = float(np.linalg.norm(right))
        right = right / length if length > 1e-9 else np.array([1.0, 0.0, 0.0])
        axes = np.stack([right, np.cross(right, forward), forward])
        return cls(eye, axes, size_px, width_deg, near_m)

    def enlarged(self, factor: float) -> Camera:
        """The same view with more pixels."""
        width, height = self.size_px
        return replace(self, size_px=(round(width * factor), round(height * factor)))

    @property
    def half(self) -> tuple[float, float]:
        """Tangents of half the angles of view: across, up."""
        across = math.tan(math.radians(0.5 * self.width_deg))
        return across, across * self.size_px[1] / self.size_px[0]

    def project(self, points_m: ArrayLike) -> F64:
        """(n, 3) points to (n, 3) column, row [px] and depth along the axis [m].

        Pixel edges are whole numbers. Columns and rows are NaN before `near_m`.
        """
        seen = (np.asarray(points_m, np.float64).reshape(-1, 3) - self.eye_m) @ self.axes.T
        depth = seen[:, 2]
        safe = np.where(depth >= self.near_m, depth, np.nan)
        (across, up), (width, height) = self.half, self.size_px
        column = 0.5 * width * (1.0 + seen[:, 0] / (safe * across))
        row = 0.5 * height * (1.0 - seen[:, 1] / (safe * up))
        return np.column_stack([column, row, depth])


def chase_eyes(terrain: Terrain, poses: ArrayLike, smooth_poses: float) -> F64:
    """(n, 3) smoothly moving places behind and above a rover, which terrain does not hide.

    Poses are (n, 3), headings unwrapped; `smooth_poses` is the smoothing's standard deviation.
    """
    track = np.asarray(poses, np.float64).reshape(-1, 3)
    heading = gaussian_filter1d(track[:, 2], smooth_poses, mode="nearest")
    middle = gaussian_filter1d(track[:, :2], 0.4 * smooth_poses, axis=0, mode="nearest")
    towards = heading + math.pi - math.radians(_CHASE_SIDE_DEG)
    eyes = middle + _CHASE_BACK_M * np.column_stack([np.cos(towards), np.sin(towards)])
    # Between eye and rover the terrain must lie below the line of sight.
    share = np.linspace(0.0, 0.85, 18)[:, None]
    x, y = (eyes[:, i] + share * (track[:, i] - eyes[:, i]) for i in (0, 1))
    ground = np.nan_to_num(terrain.height(x, y), nan=-np.inf)
    stand = np.nan_to_num(terrain.height(track[:, 0], track[:, 1]), nan=0.0)
    above = stand + 0.5
    least = ((ground + _ABOVE_GROUND_M * (1.0 - share) - above) / (1.0 - share) + above).max(axis=0)
    wanted = np.maximum(stand + _CHASE_UP_M, least)
    width = max(1, round(2.0 * smooth_poses)) | 1
    highest = maximum_filter1d(wanted, width, mode="nearest")
    height = gaussian_filter1d(highest, 0.5 * smooth_poses, mode="nearest")
    return np.column_stack([eyes, height])


def chase_camera(eye_m: ArrayLike, posture: Posture, size_px: Size) -> Camera:
    """A camera that looks over the rover at the terrain ahead of it."""
    x, y, heading = posture.pose
    ahead, z = 3.3, posture.state["origin_z_m"] + 0.5
    at = (x + ahead * math.cos(heading), y + ahead * math.sin(heading), z)
    return Camera.looking(eye_m, at, size_px, 58.0)


def overview_camera(terrain: Terrain, points: Any, size_px: Size) -> Camera:
    """A camera that sees (n, 2) points and some terrain around them from above."""
    track = np.asarray(points, np.float64).reshape(-1, 2)
    low, high = track.min(axis=0) - 2.5, track.max(axis=0) + 2.5
    corners = np.array([(x, y) for x in (low[0], high[0]) for y in (low[1], high[1])])
    shown = np.vstack([track, corners])
    z = np.nan_to_num(terrain.height(shown[:, 0], shown[:, 1]), nan=float(np.nanmedian(terrain.z)))
    shown = np.column_stack([shown, z])
    # The view is across the longer side, with the sun to one side.
    along = high - low
    azimuth = math.radians(65.0 if along[0] >= along[1] else 205.0)
    away = np.array([math.cos(azimuth), math.sin(azimuth), math.tan(math.radians(32.0))])
    middle = 0.5 * (shown.min(axis=0) + shown.max(axis=0))
    distance = 4.0
    while True:
        camera = Camera.looking(middle + distance * away, middle, size_px, 45.0)
        if (np.abs(camera.project(shown)[:, :2] / size_px - 0.5) < 0.47).all():
            return camera
        distance *= 1.08


def mast_camera(
    config: Config, posture: Posture, width_px: int, azimuth_rad: float = 0.0
) -> Camera:
    """The rover's mast camera; its place and angles of view are those of configured stereo cameras.

    The height of pictures follows from the angles of view. Azimuth is of the mast, left positive.
    """
    sensor = config.sensor
    place, width, height = MAST_M, MAST_WIDTH_DEG, MAST_HEIGHT_DEG
    if isinstance(sensor, Stereo):
        place, width, height = sensor.mast_m, sensor.width_deg, sensor.height_deg
    aspect = math.tan(math.radians(0.5 * height)) / math.tan(math.radians(0.5 * width))
    down = math.radians(MAST_ELEVATION_DEG)
    cos, sin = math.cos(azimuth_rad), math.sin(azimuth_rad)
    aim = np.array([math.cos(down) * cos, math.cos(down) * sin, math.sin(down)])
    across = np.array([sin, -cos, 0.0])
    axes = np.stack([across, np.cross(across, aim), aim]) @ posture.rotation.T
    size = (width_px, max(2, round(width_px * aspect)))
    return Camera(posture.point(place), axes, size, width, _MAST_NEAR_M)
