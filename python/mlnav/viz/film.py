"""A run in 3D (extra `viz`): films, stills and views from the rover's mast camera."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from fractions import Fraction
from pathlib import Path

import matplotlib
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from mlnav.config import Config
from mlnav.core import F64
from mlnav.io import whole_file
from mlnav.nav import Cycle, Navigator, with_candidates
from mlnav.nav.motion import wrapped
from mlnav.sim.records import CycleRecord, TraverseResult
from mlnav.terrain import Terrain
from mlnav.viz import style
from mlnav.viz.camera import Size, chase_camera, chase_eyes, mast_camera, overview_camera
from mlnav.viz.plan import FAILED
from mlnav.viz.playback import Playback, in_truth
from mlnav.viz.scene import Picture, Ribbon, Scene, needs, ring
from mlnav.viz.traverse import ending

MAX_FRAMES = 240
FRAMES_PER_S = 20
LAST_FRAME_S = 1.5
FILM_PX: Size = (854, 480)
STILL_PX: Size = (1280, 720)
VIEW_WIDTH_PX = 1200

_STEP_M = 0.08
"""Least distance between frames: short runs take fewer of them."""
_EYE_STEP_M, _EYE_SMOOTH_M = 0.1, 2.5
_FILM_OVERSAMPLING = 1.5
_AHEAD_M = 0.3
"""The mast turns to paths whose middle is farther than this."""
_MOST_FAILED = 24


class Busiest:
    """An observer of `traverse` that keeps the cycle with most evaluations among those with a path.

    Attributes:
        cycle: its index; None while no cycle found a path.
        failed: (n, 3) poses of each of its candidates that the checker rejected.
    """

    def __init__(self) -> None:
        self.cycle: int | None = None
        self.failed: list[F64] = []
        self._evaluations = -1

    def __call__(self, record: CycleRecord, navigator: Navigator, cycle: Cycle) -> None:
        """Compare a finished cycle."""
        if record.outcome != "path" or record.ace_evaluations <= self._evaluations:
            return
        self.cycle, self._evaluations = record.cycle, record.ace_evaluations
        planner = with_candidates(navigator.planner)
        if planner is None:
            return
        failed = np.flatnonzero(planner.path_verdicts() == FAILED)
        self.failed = [in_truth(record, planner.path_poses(int(i))) for i in failed]


class Studio(AbstractContextManager["Studio"]):
    """Renders a run from its recorded states.

    Raises:
        VizError: pybullet is missing.
    """

    def __init__(self, terrain: Terrain, result: TraverseResult, config: Config) -> None:
        self._terrain, self._result, self._config = terrain, result, config
        self._playback = Playback(terrain, config, result.start, result.cycles)
        self._scene = Scene(terrain, config.rover.to_core(), self._places())
        self._scene.add_goal(result.goal)
        g = config.rover
        self._lane_m, self._lane_width_m = 0.5 * (g.front_y_m + g.middle_y_m), g.wheel_width_m
        self._length_m = float(self._playback.way_m[-1])
        count = math.ceil(self._length_m / _EYE_STEP_M) + 1
        self._eye_at = np.linspace(0.0, self._length_m, count)
        poses = self._playback.between(self._playback.poses, self._eye_at)
        self._eyes = chase_eyes(terrain, poses, _EYE_SMOOTH_M / _EYE_STEP_M)

    def __exit__(self, *_: object) -> None:
        self._scene.close()

    def save_film(
        self, path: Path, *, every: int = 1, on_frame: Callable[[float], None] = lambda share: None
    ) -> None:
        """Write the run as an H.264 film seen from behind the rover, at constant speed.

        The file is replaced as a whole, or not at all. The last frame is held.

        Args:
            path: of the `.mp4` file.
            every: keep every n-th of at most `MAX_FRAMES` frames and show it n times as long.
            on_frame: called with the share of the run that is done.

        Raises:
            VizError: PyAV is missing.
        """
        needs("av")
        import av

        options = {"movflags": "faststart"}
        with whole_file(path) as file, av.open(str(file), "w", "mp4", options=options) as film:
            stream = film.add_stream("libx264", rate=Fraction(FRAMES_PER_S, every))
            stream.width, stream.height = FILM_PX
            stream.pix_fmt = "yuv420p"
            stream.options = {"crf": "22", "preset": "medium"}
            for image in self.frames(every, on_frame):
                film.mux(stream.encode(av.VideoFrame.from_image(image)))
            for _ in range(math.ceil(FRAMES_PER_S * LAST_FRAME_S / every)):
                film.mux(stream.encode(av.VideoFrame.from_image(image)))
            film.mux(stream.encode())

    def frame_count(self, every: int = 1) -> int:
        """Number of frames of a film; short runs take fewer."""
        whole = min(MAX_FRAMES, math.ceil(self._length_m / _STEP_M) + 1)
        return math.ceil((whole - 1) / every) + 1

    def seconds_a_frame(self) -> float:
        """Wall time that a frame of a film takes on this machine [s], measured on one."""
        self.frame(0.0, FILM_PX, _FILM_OVERSAMPLING)  # the first one takes longer
        begin = time.perf_counter()
        self.frame(0.5 * self._length_m, FILM_PX, _FILM_OVERSAMPLING)
        return time.perf_counter() - begin

    def frames(self, every: int, on_frame: Callable[[float], None]) -> Iterator[Image.Image]:
        """Frames of the whole run, evenly spaced; the last one says how the run ended."""
        count = self.frame_count(every)
        for way_m in np.linspace(self._length_m if count == 1 else 0.0, self._length_m, count):
            yield self.frame(float(way_m), FILM_PX, _FILM_OVERSAMPLING)
            on_frame(way_m / self._length_m if self._length_m else 1.0)

    def frame(self, way_m: float, size_px: Size, oversampling: float = 2.0) -> Image.Image:
        """The rover from behind at a distance from the start, with a caption."""
        posture = self._playback.at(way_m)
        eye = [np.interp(way_m, self._eye_at, column) for column in self._eyes.T]
        self._scene.pose(posture)
        cycle = self._cycle_at(way_m)
        ribbons = [*self._track(way_m), *self._zones(), *self._path(cycle)]
        camera = chase_camera(eye, posture, size_px)
        image = self._scene.picture(camera, ribbons, oversampling).image
        return _captioned(image, *self._caption(way_m, cycle))

    def save_stills(self, folder: Path) -> None:
        """Write still-start, -tilt (the greatest), -end and -overview.png."""
        steepest = int(np.argmax(self._playback.tilt_rad))
        places_m = {"start": 0.0, "tilt": self._playback.way_m[steepest], "end": self._length_m}
        images = {name: self.frame(float(way_m), STILL_PX) for name, way_m in places_m.items()}
        images["overview"] = self.overview(STILL_PX)
        for name, image in images.items():
            with whole_file(folder / f"still-{name}.png") as temporary:
                image.save(temporary)

    def overview(self, size_px: Size) -> Image.Image:
        """The whole run from above."""
        self._scene.pose(self._playback.posture(len(self._playback) - 1))
        camera = overview_camera(self._terrain, self._places(), size_px)
        line = [self._playback.poses[:, :2]]
        driven = [Ribbon(line, 0.26, style.CASING, 0.5), Ribbon(line, 0.16, style.CHOSEN)]
        ribbons = [*self._track(math.inf), *driven, *self._zones()]
        image = self._scene.picture(camera, ribbons).image
        return _captioned(image, *self._caption(self._length_m, None))

    def mast_view(
        self, cycle: int, failed: Sequence[F64] = (), *, width_px: int = VIEW_WIDTH_PX
    ) -> Picture:
        """View of the mast camera at the start of a cycle, with the chosen path.

        The mast is turned to the path. Parts of it that terrain hides are dashed and faint. Of the
        rejected candidates, `failed` as `Busiest` keeps them, at most `_MOST_FAILED` are drawn. The
        height of the picture follows from the camera's angles of view.
        """
        record = self._result.cycles[cycle]
        earlier = np.flatnonzero(self._playback.cycle < record.cycle)
        posture = self._playback.posture(int(earlier[-1]))
        self._scene.pose(posture)
        shown = failed[:: math.ceil(len(failed) / _MOST_FAILED) or 1]
        ribbons = [
            *self._zones(),
            Ribbon([path[:, :2] for path in shown], 0.02, style.BAD, 0.5),
            *self._path(record, 0.06, hidden=True),
        ]
        azimuth_rad = 0.0
        if len(record.path):
            ahead = in_truth(record, record.path)[:, :2].mean(axis=0) - record.pose[:2]
            if math.hypot(*ahead) > _AHEAD_M:
                azimuth_rad = wrapped(math.atan2(ahead[1], ahead[0]) - record.pose[2])
        camera = mast_camera(self._config, posture, width_px, azimuth_rad)
        return self._scene.picture(camera, ribbons)

    def _places(self) -> F64:
        return np.vstack([self._playback.poses[:, :2], [self._result.goal]])

    def _cycle_at(self, way_m: float) -> CycleRecord | None:
        if len(self._playback) < 2:
            return None
        index = int(np.searchsorted(self._playback.way_m, way_m))
        return self._result.cycles[int(self._playback.cycle[max(index, 1)])]

    def _lanes(self, poses: F64) -> list[F64]:
        """Lines of the left and of the right wheels."""
        across = np.column_stack([-np.sin(poses[:, 2]), np.cos(poses[:, 2])])
        return [poses[:, :2] + side * self._lane_m * across for side in (1.0, -1.0)]

    def _track(self, way_m: float) -> list[Ribbon]:
        """Ruts up to a distance from the start."""
        driven = self._playback.poses[self._playback.way_m < way_m]
        here = self._playback.between(self._playback.poses, way_m)
        lanes = self._lanes(np.vstack([driven, here]))
        return [Ribbon(lanes, 0.9 * self._lane_width_m, "#2a1710", 0.32)]

    def _path(
        self, record: CycleRecord | None, width_m: float = 0.09, hidden: bool = False
    ) -> list[Ribbon]:
        """The goal, and the path that a cycle chose with the lanes of its wheels."""
        goal = ring(self._result.goal, self._config.traverse.goal_tolerance_m)
        ribbons = [Ribbon([goal], 0.09, style.GOAL, 0.9)]
        if record is None or len(record.path) < 2:
            return ribbons
        path = in_truth(record, record.path)
        line, lanes = [path[:, :2]], self._lanes(path)
        ribbons.append(Ribbon(lanes, self._lane_width_m, style.CHOSEN, 0.30))
        if hidden:
            ribbons.append(Ribbon(lanes, 0.05, style.CHOSEN, 0.0, 0.35, dashed=True))
            ribbons.append(Ribbon(line, width_m, style.CHOSEN, 0.0, 0.55, dashed=True))
        ribbons.append(Ribbon(line, 1.7 * width_m, style.CASING, 0.5))
        ribbons.append(Ribbon(line, width_m, style.CHOSEN))
        return ribbons

    def _zones(self) -> list[Ribbon]:
        closed = [np.array([*polygon, polygon[0]]) for polygon in self._config.keep_out]
        return [Ribbon(closed, 0.15, style.BAD, 0.8)] if closed else []

    def _caption(self, way_m: float, record: CycleRecord | None) -> tuple[str, str]:
        """What is written at the left and at the right."""
        result, count = self._result, len(self._result.cycles)
        driven_m = np.interp(way_m, self._playback.way_m, self._playback.driven_m)
        if record is None or way_m >= self._length_m:
            parts = [ending(result), f"{driven_m:.1f} m driven in {count} cycles"]
        else:
            evaluations = f"{record.ace_evaluations} ACE evaluations"
            parts = [f"cycle {record.cycle + 1} of {count}", evaluations, f"{driven_m:.1f} m"]
        return "   ·   ".join(parts), result.terrain


def _captioned(image: Image.Image, left: str, right: str) -> Image.Image:
    """The image with a strip of text over its foot."""
    width, height = image.size
    strip = max(16, round(0.062 * height))
    file = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"
    font = ImageFont.truetype(file, round(0.52 * strip))
    shade = Image.new("RGB", (width, strip), style.INK)
    foot = image.crop((0, height - strip, width, height))
    image.paste(Image.blend(foot, shade, 0.72), (0, height - strip))
    draw = ImageDraw.Draw(image)
    middle, margin = height - 0.5 * strip, 0.5 * strip
    draw.text((margin, middle), left, "#ffffff", font, anchor="lm")
    draw.text((width - margin, middle), right, "#d9cfc8", font, anchor="rm")
    return image
