"""A 3D scene of terrain, rover and marks, and pictures of it.

PyBullet's software renderer (extra `viz`) gives body and depth at each pixel and lights the rover;
terrain colours, the rover's shadow, haze and sky are added here. Its client is the scene's own.
"""

from __future__ import annotations

import importlib.util
import math
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.colors import to_rgb
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw
from scipy import ndimage
from scipy.spatial.transform import Rotation

from mlnav import _core
from mlnav.core import F32, F64
from mlnav.sim.bullet_rig import import_pybullet
from mlnav.terrain import Terrain
from mlnav.viz import style
from mlnav.viz.camera import Camera
from mlnav.viz.ground import SUN, GroundColours, ground_tiles
from mlnav.viz.model import RoverParts, Shape, joined
from mlnav.viz.playback import Posture
from mlnav.viz.relief import filled

U8 = NDArray[np.uint8]
Colour = tuple[float, float, float]
"""Red, green, blue in [0, 1]."""

_WHITE: Colour = (1.0, 1.0, 1.0)

SKY, GROUND, ROVER, MARK = 0, 1, 2, 3
"""What a pixel shows."""

_LIGHT = {
    "lightDirection": SUN.tolist(), "lightColor": [1.0, 0.96, 0.90], "lightAmbientCoeff": 0.60,
    "lightDiffuseCoeff": 0.64, "lightSpecularCoeff": 0.0, "shadow": 0,
}  # fmt: skip
_FAR_M = 600.0
_NEAR_GROUND_M = 14.0
"""Within this distance of the points of interest, all cells are drawn."""
_NEAR_VERTICES, _FAR_VERTICES = 110_000, 40_000

_HAZE = np.array([222, 187, 150], np.float32)
_ZENITH = np.array([170, 124, 92], np.float32)
_HAZE_M = 190.0
"""Distance at which haze has taken most of the contrast."""
_UNKNOWN = np.array([92, 84, 80], np.float32)
"""Colour of unknown cells."""

_LIKE_M = 12.0
"""Distance over which the plain beyond the map loses the colours of the map's edge."""
GOAL_POLE_M, GOAL_BALL_M = 2.2, 0.16

_SHADOW_PX, _SHADOW_HALF_M, _SHADOW_FROM_M = 384, 2.6, 60.0
_SHADOW_DARK = 0.55
_LAID_M = 0.03
"""Height of ribbons above the terrain."""
_PIECE_M, _DASH = 0.1, 2
"""Length of the pieces of a ribbon, and pieces of a dash."""
_HIDDEN_BY_M = 0.12
"""A ribbon farther than this behind the visible surface is hidden."""


class Ribbon(NamedTuple):
    """Bands along lines of (n, 2) points on the terrain, world frame.

    `hidden_opacity` is that of the parts that something hides.
    """

    lines_m: Sequence[F64]
    width_m: float
    colour: str
    opacity: float = 1.0
    hidden_opacity: float = 0.0
    dashed: bool = False


class Picture(NamedTuple):
    """A picture, and what each of its oversampled pixels shows.

    Attributes:
        depth_m: (h, w) along the camera's axis; infinite in the sky.
        kind: (h, w): SKY, GROUND, ROVER or MARK.
    """

    image: Image.Image
    depth_m: F32
    kind: U8
    camera: Camera


class Scene:
    """Terrain with holes at unknown cells, a rover and marks.

    Around (n, 2) `points_m` all cells are drawn.

    Raises:
        VizError: pybullet is missing.
    """

    def __init__(
        self, terrain: Terrain, geometry: _core.RoverGeometry, points_m: ArrayLike
    ) -> None:
        self._terrain = terrain
        self._filled_z = filled(terrain.z).astype(np.float32)
        self._plain_m = _plain_height(terrain)
        points = np.asarray(points_m, np.float64)
        low, high = points.min(axis=0) - _NEAR_GROUND_M, points.max(axis=0) + _NEAR_GROUND_M
        near = (low[0], high[0], low[1], high[1])
        self._colours = GroundColours(terrain, near)
        self._stage, self._sun_stage = _Stage(), _Stage()
        for tile in ground_tiles(terrain, near, _NEAR_VERTICES, _FAR_VERTICES):
            up = np.tile([0.0, 0.0, 1.0], (len(tile.vertices), 1))
            self._stage.add(tile.vertices, up, tile.triangles)
        self._parts = RoverParts(geometry)
        self._rover = self._stage.add_rover(self._parts)
        self._sun_stage.add_rover(self._parts)
        self._middle_m = np.zeros(3)

    def close(self) -> None:
        """Release the renderer; the scene cannot be used afterwards."""
        self._stage.close()
        self._sun_stage.close()

    def pose(self, posture: Posture) -> None:
        """Place the rover."""
        self._middle_m = posture.point(self._parts.body_origin_m)
        frames = self._parts.placed(posture)
        for stage in (self._stage, self._sun_stage):
            stage.pose(frames)

    def add_goal(self, goal_m: tuple[float, float]) -> None:
        """A pole with a ball on top at (x, y)."""
        z = float(self._terrain.height(*goal_m))
        foot = np.array([*goal_m, z if math.isfinite(z) else self._plain_m])
        colour: Colour = to_rgb(style.GOAL)
        up = np.array([0.0, 0.0, GOAL_POLE_M])
        pole = Shape(np.array([0.07, 0.07, GOAL_POLE_M]), True, 0.5 * up, np.eye(3), colour)
        (body,) = self._stage.add_shapes([pole])
        self._stage.move(body, np.eye(3), foot)
        self._stage.move(self._stage.add_ball(GOAL_BALL_M, colour), np.eye(3), foot + up)

    def picture(
        self, camera: Camera, ribbons: Iterable[Ribbon] = (), oversampling: float = 2.0
    ) -> Picture:
        """Render the scene, oversampled and averaged."""
        fine = camera.enlarged(oversampling)
        rgb, buffer, bodies = self._stage.render(fine)
        kind = np.full(bodies.shape, MARK, np.uint8)
        kind[bodies <= self._rover[-1]] = ROVER
        kind[bodies < self._rover[0]] = GROUND  # added first
        kind[bodies < 0] = SKY
        near, far = np.float32(camera.near_m), np.float32(_FAR_M)
        depth = far * near / (far - (far - near) * buffer)
        canvas = rgb.reshape(-1, 3).astype(np.float32)
        self._paint_ground(canvas, fine, depth, kind)
        self._paint_sky(canvas, fine, kind)
        marks = np.flatnonzero(kind == MARK)  # which glow
        canvas[marks] += 0.6 * (255.0 * np.array(to_rgb(style.GOAL), np.float32) - canvas[marks])
        depth[kind == SKY] = np.inf
        for ribbon in ribbons:
            self._paint_ribbon(canvas, fine, depth, ribbon)
        pixels = np.clip(canvas + 0.5, 0.0, 255.0).astype(np.uint8)
        image = Image.fromarray(pixels.reshape(rgb.shape))
        if image.size != camera.size_px:
            image = image.resize(camera.size_px, Image.Resampling.HAMMING)
        return Picture(image, depth, kind, camera)

    def _paint_ground(self, canvas: F32, camera: Camera, depth: F32, kind: U8) -> None:
        at = np.flatnonzero(kind == GROUND)
        if not at.size:
            return
        rays = _rays(camera, at) * depth.reshape(-1)[at]
        distance = np.linalg.norm(rays, axis=0)
        # At a low angle a pixel covers a long strip: a size between its length and its width.
        slant = np.sqrt(distance / np.maximum(-rays[2], 0.05 * distance))
        x, y, _ = places = rays + _column(camera.eye_m)
        pixel_rad = np.float32(2.0 * camera.half[0] / camera.size_px[0])
        colours = self._colours.at(x, y, distance * pixel_rad * slant)
        colours *= self._sunlit(places)[:, None]
        canvas[at] = _hazed(colours, distance)

    def _sunlit(self, places: F32) -> F32:
        """Light at (3, n) places on the terrain: less in the rover's shadow, seen from the sun."""
        middle, half, away = self._middle_m, _SHADOW_HALF_M, _SHADOW_FROM_M
        size, width_deg = (_SHADOW_PX, _SHADOW_PX), 2.0 * math.degrees(math.atan2(half, away))
        eye = middle + away * SUN
        sight = Camera.looking(eye, middle, size, width_deg, away - 2.0 * half)
        _, _, bodies = self._sun_stage.render(sight)
        mask = Image.fromarray(np.where(bodies >= 0, 255, 0).astype(np.uint8))
        soft = mask.resize((_SHADOW_PX // 3, _SHADOW_PX // 3), Image.Resampling.BOX)
        blurred = np.asarray(soft.resize(mask.size, Image.Resampling.BILINEAR), np.float32)
        scale = _SHADOW_PX / (2.0 * half)
        right, up, _ = sight.axes.astype(np.float32)
        offsets = np.stack([-up, right]) @ (places - _column(middle))  # down and to the right
        near = np.flatnonzero((np.abs(offsets) < half).all(axis=0))
        at = (offsets[:, near] + half) * scale - 0.5
        shade = ndimage.map_coordinates(blurred, at, order=1, mode="nearest")
        light = np.ones(places.shape[1], np.float32)
        light[near] -= (_SHADOW_DARK / 255.0) * shade
        return light

    def _paint_sky(self, canvas: F32, camera: Camera, kind: U8) -> None:
        at = np.flatnonzero(kind == SKY)
        if not at.size:
            return
        rays = _rays(camera, at)
        slope = rays[2] / np.maximum(np.hypot(rays[0], rays[1]), 1e-6)
        height = np.clip(slope, 0.0, 1.0) ** np.float32(0.6)
        colours = _HAZE + height[:, None] * (_ZENITH - _HAZE)
        below = np.flatnonzero(rays[2] < -1e-4)
        if below.size:
            colours[below] = self._plain(camera, rays[:, below])
        canvas[at] = colours

    def _plain(self, camera: Camera, rays: F32) -> F32:
        """A blurred plain beyond the map, and unknown cells on it."""
        dx, dy, dz = rays
        eye = camera.eye_m.astype(np.float32)
        (ny, nx), res = self._terrain.shape, np.float32(self._terrain.resolution_m)
        x_min, x_max, y_min, y_max = map(np.float32, self._terrain.extent_m)
        times = np.minimum(-max(float(eye[2]) - self._plain_m, 1.0) / dz, 1e4).astype(np.float32)
        hole = np.zeros(len(times), np.bool_)
        for _ in range(3):  # towards where the ray meets the filled-in height of unknown cells
            x, y = eye[0] + times * dx, eye[1] + times * dy
            at = np.flatnonzero((x >= x_min) & (x < x_max) & (y >= y_min) & (y < y_max))
            row = np.minimum(((y[at] - y_min) / res).astype(np.int32), ny - 1)
            column = np.minimum(((x[at] - x_min) / res).astype(np.int32), nx - 1)
            hole[:] = False
            hole[at] = np.isnan(self._terrain.z[row, column])
            drop = np.maximum(eye[2] - self._filled_z[row, column], 0.1)
            times[at] = np.where(hole[at], -drop / dz[at], times[at])
        # The map's colours continue beyond its edges for a while, mirrored and blurred.
        inner_x, inner_y = _mirrored(x, x_min, x_max), _mirrored(y, y_min, y_max)
        beyond = np.hypot(x - np.clip(x, x_min, x_max), y - np.clip(y, y_min, y_max))
        mean = self._colours.mean
        likeness = np.exp(beyond * np.float32(-1.0 / _LIKE_M))[:, None]
        colours = mean + likeness * (self._colours.vague(inner_x, inner_y) - mean)
        distance = times * np.linalg.norm(rays, axis=0)
        colours[hole] = _UNKNOWN
        return _hazed(colours, distance)

    def _paint_ribbon(self, canvas: F32, camera: Camera, depth: F32, ribbon: Ribbon) -> None:
        pieces = [self._pieces(line, ribbon) for line in ribbon.lines_m]
        if not pieces:
            return
        seen = camera.project(np.concatenate(pieces)).reshape(-1, 4, 3)
        seen = seen[np.isfinite(seen).all(axis=(1, 2))]
        low, high = seen[..., :2].min(axis=1), seen[..., :2].max(axis=1)
        inside = (high > 0.0).all(axis=1) & (low < camera.size_px).all(axis=1)
        seen, low, high = seen[inside], low[inside], high[inside]
        if not len(seen):
            return
        # A depth image of the pieces, of the part of the picture that they cover.
        left, top = np.maximum(np.floor(low.min(axis=0)), 0).astype(int)
        right, bottom = np.minimum(np.ceil(high.max(axis=0)) + 1, camera.size_px).astype(int)
        layer = Image.new("F", (right - left, bottom - top), 0.0)
        draw = ImageDraw.Draw(layer)
        for piece in seen[np.argsort(-seen[..., 2].mean(axis=1), kind="stable")]:
            corners = piece[:, :2] - (left, top)
            draw.polygon(corners.reshape(-1).tolist(), fill=float(piece[:, 2].mean()))
        away = np.asarray(layer, np.float32)
        row, column = np.nonzero(away)
        at = (row + top) * camera.size_px[0] + column + left
        hidden = away[row, column] > depth.reshape(-1)[at] + _HIDDEN_BY_M
        share = np.where(hidden, ribbon.hidden_opacity, ribbon.opacity).astype(np.float32)
        colour = 255.0 * np.array(to_rgb(ribbon.colour), np.float32)
        canvas[at] += share[:, None] * (colour - canvas[at])

    def _pieces(self, line: F64, ribbon: Ribbon) -> F64:
        """(4 n, 3) corners of the n pieces of a band."""
        points = _evenly(np.asarray(line, np.float64)[:, :2])
        if len(points) < 2:
            return np.empty((0, 3))
        along = np.gradient(points, axis=0)
        along /= np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-12)
        aside = 0.5 * ribbon.width_m * np.column_stack([-along[:, 1], along[:, 0]])
        unknown = np.nan_to_num(self._terrain.height(*points.T), nan=self._plain_m)
        left, right = (
            laid(self._terrain, points + edge, _LAID_M, unknown) for edge in (aside, -aside)
        )
        pieces = np.stack([left[:-1], left[1:], right[1:], right[:-1]], axis=1)
        if ribbon.dashed:
            pieces = pieces[np.arange(len(pieces)) // _DASH % 2 == 0]
        return pieces.reshape(-1, 3)


class VizError(ValueError):
    """A picture cannot be made; the message says which and why."""


def needs(*modules: str) -> None:
    """Check that libraries of the extra `viz` are installed.

    Raises:
        VizError: some are missing.
    """
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        raise VizError(f"{' and '.join(missing)} missing: pip install 'mlnav[viz]'")


def ring(centre_m: tuple[float, float], radius_m: float) -> F64:
    """(61, 2) points of a closed circle."""
    angle = np.linspace(0.0, 2.0 * math.pi, 61)
    return np.add(centre_m, radius_m * np.column_stack([np.cos(angle), np.sin(angle)]))


def laid(terrain: Terrain, xy: F64, above_m: float, unknown_m: float | F64) -> F64:
    """(n, 3) points above the terrain, or above given heights where it is unknown."""
    z = terrain.height(*xy.T)
    return np.column_stack([xy, np.where(np.isfinite(z), z, unknown_m) + above_m])


class _Stage:
    """A PyBullet client and its bodies."""

    def __init__(self) -> None:
        needs("pybullet")
        self._bullet = pybullet = import_pybullet()
        self._client = int(pybullet.connect(pybullet.DIRECT))
        self.close = weakref.finalize(self, pybullet.disconnect, self._client)

    def add(self, vertices: Any, normals: Any, triangles: Any, colour: Colour = _WHITE) -> int:
        """Add a body of triangles; returns its number."""
        shape = {"vertices": vertices, "normals": normals, "indices": triangles.reshape(-1)}
        lists = {name: table.tolist() for name, table in shape.items()}
        return self._add(self._bullet.GEOM_MESH, colour, **lists)

    def add_ball(self, radius_m: float, colour: Colour) -> int:
        """Add a sphere; returns the body's number."""
        return self._add(self._bullet.GEOM_SPHERE, colour, radius=radius_m)

    def add_rover(self, parts: RoverParts) -> list[int]:
        """Add the rover's links; returns the bodies' numbers."""
        self._links = {link.name: self.add_shapes(link.shapes) for link in parts.links}
        return [body for bodies in self._links.values() for body in bodies]

    def pose(self, frames: Mapping[str, tuple[F64, F64]]) -> None:
        """Place the rover's links, by name."""
        for name, bodies in self._links.items():
            for body in bodies:
                self.move(body, *frames[name])

    def _add(self, kind: int, colour: Colour, **shape: Any) -> int:
        client: dict[str, Any] = {"physicsClientId": self._client}
        visual = self._bullet.createVisualShape(kind, rgbaColor=[*colour, 1.0], **shape, **client)
        return int(self._bullet.createMultiBody(0.0, -1, visual, **client))

    def add_shapes(self, shapes: Iterable[Shape]) -> list[int]:
        """Add a body for each colour of shapes in one frame; returns their numbers."""
        by_colour: dict[Colour, list[Shape]] = {}
        for shape in shapes:
            by_colour.setdefault(shape.colour, []).append(shape)
        return [self.add(*joined(group), colour) for colour, group in by_colour.items()]

    def move(self, body: int, rotation: F64, at_m: F64) -> None:
        """Place a body's frame."""
        turned = Rotation.from_matrix(rotation).as_quat().tolist()
        self._bullet.resetBasePositionAndOrientation(
            body, at_m.tolist(), turned, physicsClientId=self._client
        )

    def render(self, camera: Camera) -> tuple[U8, F32, NDArray[np.int32]]:
        """(h, w, 3) colours, (h, w) depth buffer and (h, w) body, -1 for none."""
        p, eye, axes = self._bullet, camera.eye_m, camera.axes
        across, up = (camera.near_m * tangent for tangent in camera.half)
        _, _, rgba, depth, bodies = p.getCameraImage(
            *camera.size_px,
            p.computeViewMatrix(eye.tolist(), (eye + axes[2]).tolist(), axes[1].tolist()),
            p.computeProjectionMatrix(-across, across, -up, up, camera.near_m, _FAR_M),
            **_LIGHT,
            renderer=p.ER_TINY_RENDERER,
            physicsClientId=self._client,
        )
        return rgba[..., :3], depth, bodies


def _evenly(points: F64) -> F64:
    """Points along a line at most `_PIECE_M` apart, without duplicates."""
    step = np.hypot(*np.diff(points, axis=0).T)
    moved = step > 1e-6
    points, step = points[np.concatenate([[True], moved])[: len(points)]], step[moved]
    if len(points) < 2:
        return points
    way = np.concatenate([[0.0], np.cumsum(step)])
    at = np.linspace(0.0, way[-1], math.ceil(way[-1] / _PIECE_M) + 1)
    return np.column_stack([np.interp(at, way, column) for column in points.T])


def _rays(camera: Camera, at: NDArray[np.intp]) -> F32:
    """(3, n) directions from the eye through pixels, given by index; 1 along the camera's axis."""
    width, height = camera.size_px
    row, column = np.divmod(at, width)
    across, up = camera.half
    u = (((np.arange(width) + 0.5) / width * 2.0 - 1.0) * across).astype(np.float32)
    v = ((1.0 - (np.arange(height) + 0.5) / height * 2.0) * up).astype(np.float32)
    through = np.stack([u[column], v[row], np.ones(len(at), np.float32)])
    return np.asarray(camera.axes.T.astype(np.float32) @ through)


def _column(vector: F64) -> F32:
    return vector.astype(np.float32)[:, None]


def _hazed(colours: F32, distance_m: F32) -> F32:
    clear = np.exp(distance_m * np.float32(-1.0 / _HAZE_M))[:, None]
    return np.asarray(_HAZE + clear * (colours - _HAZE))


def _mirrored(x: F32, low: np.float32, high: np.float32) -> F32:
    """Places folded onto [low, high] as by a mirror at either end."""
    return np.asarray(high - np.abs(np.mod(x - low, 2.0 * (high - low)) - (high - low)), np.float32)


def _plain_height(terrain: Terrain) -> float:
    """Height of the plain beyond the map: low terrain at its border."""
    z = terrain.z
    border = np.concatenate([z[0], z[-1], z[:, 0], z[:, -1]])
    known = border[np.isfinite(border)]
    known = known if known.size else z[np.isfinite(z)]
    return float(np.percentile(known, 10.0))
