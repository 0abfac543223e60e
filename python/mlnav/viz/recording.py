"""A run as a Rerun recording (extra `viz`): what was seen, planned and driven, written as it runs.

There are two timelines: `cycle`, and `way_mm`, the distance driven in millimetres with turns in
place counted as a distance. What a cycle saw and planned is logged at the distance where it began.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import to_rgba
from numpy.typing import NDArray
from PIL import Image
from scipy.spatial.transform import Rotation

from mlnav.config import Config
from mlnav.core import F64, HeightMap
from mlnav.linkage import STATE
from mlnav.nav import Cycle, Navigator, with_candidates
from mlnav.nav.motion import Pose
from mlnav.risk import RiskMap
from mlnav.sim.records import OUTCOMES, CycleRecord, TraverseResult
from mlnav.terrain import Terrain
from mlnav.viz import style
from mlnav.viz.ground import Mesh, ground_colours, ground_mesh
from mlnav.viz.model import Link, RoverParts, joined
from mlnav.viz.plan import FAILED, NOT_RANKED, NOT_TRIED, NOTHING_RANKED
from mlnav.viz.playback import Playback, in_truth
from mlnav.viz.scene import laid, needs, ring

_GROUND_VERTICES, _TEXTURE_PX = 60_000, 1280
_LOCAL_VERTICES = 6_000
_ABOVE_M = 0.06
"""Height of lines and risk above the terrain."""

_VERDICTS = {  # entity: verdict, colour, points of a line
    "failed": (FAILED, "#d62455d0", 24),
    "not_tried": (NOT_TRIED, "#ffffff50", 7),
    "not_ranked": (NOT_RANKED, "#1c161440", 7),
}
_SERIES = {  # entity under telemetry/: name, colour
    "evaluations/ace": ("ACE evaluations", "#e0622b"),
    "evaluations/floor": ("floor", "#19a39b"),
    "attitude/tilt_deg": ("tilt (deg)", "#a9543a"),
    "attitude/bogie_left_deg": ("left bogie (deg)", "#c9a227"),
    "attitude/bogie_right_deg": ("right bogie (deg)", "#8c6d5a"),
    "attitude/differential_deg": ("differential (deg)", "#3b4a8c"),
    "clearance/clearance_m": ("clearance (m)", "#12a594"),
    "localization/error_m": ("position error (m)", "#d62455"),
}


class Recording(AbstractContextManager["Recording"]):
    """Writes a recording; an observer of `traverse`.

    The `.rrd` file can be read at any time: each cycle is flushed when its call returns.

    Raises:
        VizError: rerun-sdk is missing.
    """

    def __init__(
        self, path: Path, terrain: Terrain, config: Config, start: Pose, goal: tuple[float, float]
    ) -> None:
        needs("rerun")
        import rerun as rr

        path.parent.mkdir(parents=True, exist_ok=True)
        self._rr: Any = rr
        self._terrain, self._config = terrain, config
        self._playback = Playback(terrain, config, start)
        self._parts = RoverParts(config.rover.to_core())
        self._links = _paths(self._parts.links)
        self._cycles = 0
        self._stream: Any = rr.RecordingStream("mlnav")
        rr.set_log_time_enabled(False, recording=self._stream)  # nothing of the clock is kept
        self._stream.save(path, default_blueprint=_blueprint())
        self._log_ground()
        self._log_rover()
        self._log_ends(start, goal)
        for name, (label, colour) in _SERIES.items():
            self._static(f"telemetry/{name}", rr.SeriesLines(names=label, colors=_rgba(colour)))
        self._send_states(0)
        self._stream.flush()

    def __exit__(self, *_: object) -> None:
        self._stream.flush()
        self._stream.disconnect()

    def __call__(self, record: CycleRecord, navigator: Navigator, cycle: Cycle) -> None:
        """Add a finished cycle."""
        self._now(record.cycle, float(self._playback.way_m[-1]))
        self._log_sight(record, cycle)
        self._log_plan(record, navigator)
        self._scalar("evaluations/ace", record.ace_evaluations)
        self._scalar("evaluations/floor", record.ace_floor)
        self._scalar("localization/error_m", math.dist(record.pose[:2], record.estimated_pose[:2]))
        first = len(self._playback)
        self._playback.add(record)
        self._send_states(first)
        self._now(record.cycle, float(self._playback.way_m[-1]))
        track = self._laid(self._playback.poses[:, :2])
        self._stream.log("track", self._strips([track], "#3a2016", 0.05))
        self._log_words(record)
        self._cycles = record.cycle + 1
        self._stream.flush()

    def finish(self, result: TraverseResult) -> None:
        """Add the outcome of the run."""
        self._now(max(self._cycles - 1, 0), float(self._playback.way_m[-1]))
        faults = f" ({', '.join(result.faults)})" if result.faults else ""
        text = f"{result.outcome}: {OUTCOMES.get(result.outcome, '')}{faults}"
        text += f"; {result.driven_m:.1f} m driven in {len(result.cycles)} cycles"
        self._say(text, "INFO" if result.success else "ERROR")
        self._stream.flush()

    def _log_ground(self) -> None:
        terrain = self._terrain
        mesh = ground_mesh(terrain, terrain.extent_m, _GROUND_VERTICES)
        texture = Image.fromarray(ground_colours(terrain))
        texture.thumbnail((_TEXTURE_PX, _TEXTURE_PX))
        x_min, x_max, y_min, y_max = terrain.extent_m
        at = (mesh.vertices[:, :2] - (x_min, y_min)) / (x_max - x_min, y_max - y_min)
        look = {"vertex_texcoords": at.astype(np.float32), "albedo_texture": np.asarray(texture)}
        self._static("ground", self._mesh(mesh.vertices, mesh.triangles, **look))
        self._static("/", self._rr.ViewCoordinates.RIGHT_HAND_Z_UP)

    def _log_rover(self) -> None:
        for link in self._parts.links:
            vertices, normals, triangles = joined(link.shapes)
            counts = [len(shape.triangles[0]) for shape in link.shapes]
            colours = np.repeat([shape.colour for shape in link.shapes], counts, axis=0)
            look = {"vertex_colors": np.round(255.0 * colours).astype(np.uint8)}
            look["vertex_normals"] = normals.astype(np.float32)
            mesh = self._mesh(vertices.astype(np.float32), triangles, **look)
            self._static(self._links[link.name], mesh)

    def _log_ends(self, start: Pose, goal: tuple[float, float]) -> None:
        circle = self._laid(ring(goal, self._config.traverse.goal_tolerance_m))
        foot = circle.mean(axis=0)
        pole = np.array([foot, np.add(foot, (0.0, 0.0, 2.2))])
        self._static("goal", self._strips([circle, pole], style.GOAL, 0.05))
        point = self._laid(np.array([start[:2]]))
        self._static("start", self._rr.Points3D(point, radii=0.15, colors=_rgba(style.START)))
        zones = [self._laid(np.array([*p, p[0]])) for p in self._config.keep_out]
        if zones:
            self._static("keep_out", self._strips(zones, style.BAD, 0.06))

    def _send_states(self, first: int) -> None:
        """Transforms and attitude of the states from index `first` on."""
        playback, rr = self._playback, self._rr
        count = len(playback) - first
        if not count:
            return
        postures = [playback.posture(i) for i in range(first, len(playback))]
        index = [
            rr.TimeColumn("cycle", sequence=np.maximum(playback.cycle[first:], 0)),
            rr.TimeColumn("way_mm", sequence=np.round(1000.0 * playback.way_m[first:]).astype(int)),
        ]
        for link in self._parts.links:
            if link.parent is None:
                turned = np.array([p.rotation for p in postures])
                at = np.array([p.point(self._parts.body_origin_m) for p in postures])
            else:
                turned = np.array([link.turned(p.joints_rad[link.name]) for p in postures])
                at = np.tile(link.at_m, (count, 1))
            turns = Rotation.from_matrix(turned).as_quat().astype(np.float32)
            columns = rr.Transform3D.columns(translation=at.astype(np.float32), quaternion=turns)
            self._stream.send_columns(self._links[link.name], index, columns)
        angles = {"tilt": playback.tilt_rad[first:]}
        for joint in ("bogie_left", "bogie_right", "differential"):
            angles[joint] = playback.states[first:, STATE.index(f"{joint}_rad")]
        for name, angle in angles.items():
            columns = rr.Scalars.columns(scalars=np.degrees(angle))
            self._stream.send_columns(f"telemetry/attitude/{name}_deg", index, columns)

    def _log_sight(self, record: CycleRecord, cycle: Cycle) -> None:
        """The local map coloured by height, and risk over it."""
        local, risk = cycle.local_map, cycle.risk
        seen = ground_mesh(local, local.extent_m, _LOCAL_VERTICES)
        meshes = {
            "local_map": (seen, _by_height(seen.vertices[:, 2])) if len(seen.triangles) else None,
            "risk": None if risk is None else _risk_mesh(risk, local),
        }
        for entity, drawn in meshes.items():
            if drawn is None:
                self._stream.log(entity, self._rr.Clear(recursive=False))
                continue
            mesh, rgba = drawn
            x, y, z = mesh.vertices.T
            places = in_truth(record, np.column_stack([x, y, np.zeros(len(x))]))[:, :2]
            vertices = np.column_stack([places, z - record.estimated_z_error_m]).astype(np.float32)
            colours = np.round(255.0 * rgba[:, :3]).astype(np.uint8)
            shown = self._mesh(vertices, mesh.triangles, vertex_colors=colours)
            self._stream.log(entity, shown)

    def _log_plan(self, record: CycleRecord, navigator: Navigator) -> None:
        planner = with_candidates(navigator.planner)
        if record.outcome in NOTHING_RANKED:
            planner = None
        verdicts = np.empty(0, np.uint8) if planner is None else planner.path_verdicts()
        for name, (verdict, colour, points) in _VERDICTS.items():
            shown = np.flatnonzero(verdicts == verdict)
            paths = [_thinned(planner.path_poses(int(i)), points) for i in shown if planner]
            poses = np.concatenate(paths) if paths else np.empty((0, 3))
            ends = np.cumsum([len(path) for path in paths])[:-1]
            lines = np.split(self._laid(in_truth(record, poses)[:, :2]), ends) if paths else []
            self._stream.log(f"plan/candidates/{name}", self._strips(lines, colour, 0.012))
        path = self._laid(in_truth(record, record.path)[:, :2])
        chosen = self._strips([path] if len(path) > 1 else [], style.CHOSEN, 0.05)
        self._stream.log("plan/chosen", chosen)

    def _log_words(self, record: CycleRecord) -> None:
        text = (
            f"cycle {record.cycle + 1}: {record.outcome}, {record.ace_evaluations} ACE evaluations,"
            f" {record.paths_tried} of {record.paths_finite} paths tried"
        )
        faults = ", ".join(record.faults or record.start_faults)
        text = "; ".join(filter(None, (text, faults, record.ending)))
        fine = record.outcome in ("path", "goal_reached") and record.ending is None
        self._say(text, "INFO" if fine else "WARN")
        for event in record.events:
            self._say(event, "WARN")
        if record.clearance_min_m is not None:
            self._scalar("clearance/clearance_m", record.clearance_min_m)

    def _now(self, cycle: int, way_m: float) -> None:
        self._stream.set_time("cycle", sequence=cycle)
        self._stream.set_time("way_mm", sequence=round(1000.0 * way_m))

    def _static(self, entity: str, what: Any) -> None:
        self._stream.log(entity, what, static=True)

    def _scalar(self, name: str, value: float) -> None:
        self._stream.log(f"telemetry/{name}", self._rr.Scalars(float(value)))

    def _say(self, text: str, level: str) -> None:
        self._stream.log("log", self._rr.TextLog(text, level=level))

    def _mesh(self, vertices: Any, triangles: Any, **look: Any) -> Any:
        return self._rr.Mesh3D(vertex_positions=vertices, triangle_indices=triangles, **look)

    def _strips(self, lines: Sequence[F64], colour: str, radius_m: float) -> Any:
        return self._rr.LineStrips3D(lines, colors=_rgba(colour), radii=radius_m)

    def _laid(self, xy: F64) -> F64:
        """(n, 3) points just above the terrain, at the rover's height where it is unknown."""
        return laid(self._terrain, xy, _ABOVE_M, self._playback.states[-1, -1])


def _paths(links: Sequence[Link]) -> dict[str | None, str]:
    """Entity of each link, under its parent's."""
    paths: dict[str | None, str] = {None: "rover"}
    for link in links:
        paths[link.name] = f"{paths[link.parent]}/{link.name}"
    return paths


def _rgba(colour: str) -> tuple[int, ...]:
    return tuple(round(255 * v) for v in to_rgba(colour))


def _thinned(poses: F64, points: int) -> F64:
    """At most `points` poses of a path without its turn in place, first and last kept."""
    moving = np.flatnonzero((poses[:, :2] != poses[0, :2]).any(axis=1))
    poses = poses[moving[0] - 1 :] if moving.size else poses[-1:]
    kept = np.unique(np.linspace(0, len(poses) - 1, points).round().astype(int))
    return np.asarray(poses[kept])


def _risk_mesh(risk: RiskMap, local: HeightMap) -> tuple[Mesh, F64] | None:
    """The worst risk over headings, laid over the local map, and the colour of each vertex."""
    worst = np.where(np.isfinite(risk.p), risk.p, -1.0).max(axis=0)  # -1: nothing is known
    step = max(1, math.ceil(math.sqrt(worst.size / _LOCAL_VERTICES)))
    rows, columns = (n // step for n in worst.shape)
    blocks = worst[: rows * step, : columns * step].reshape(rows, step, columns, step)
    values = blocks.max(axis=(1, 3))
    size_m = step * risk.resolution_m
    x0, y0 = (corner + 0.5 * (size_m - risk.resolution_m) for corner in risk.origin_m)
    x, y = np.meshgrid(x0 + size_m * np.arange(columns), y0 + size_m * np.arange(rows))
    heights = local.grid.heights(np.column_stack([x.ravel(), y.ravel()])).reshape(x.shape)
    heights = np.where(values >= 0.0, heights + _ABOVE_M, np.nan)
    blocks_map = HeightMap(heights.astype(np.float32), size_m, (x0, y0))
    mesh = ground_mesh(blocks_map, blocks_map.extent_m, heights.size)
    if not len(mesh.triangles):
        return None
    column = np.round((mesh.vertices[:, 0] - x0) / size_m).astype(int)
    row = np.round((mesh.vertices[:, 1] - y0) / size_m).astype(int)
    return mesh, np.asarray(style.SHARE(1.0 - np.asarray(values[row, column], np.float64)))


def _by_height(z: NDArray[np.float32]) -> F64:
    low, high = np.percentile(z, [1.0, 99.0])
    share = np.clip((z - low) / max(float(high - low), 0.5), 0.0, 1.0)
    return np.asarray(style.ELEVATION(share))


def _blueprint() -> Any:
    import rerun.blueprint as rrb

    def scene(name: str, *contents: str) -> Any:
        return rrb.Spatial3DView(
            name=name,
            contents=[f"/{entity}" for entity in contents],
            eye_controls=rrb.EyeControls3D(tracking_entity="/rover/body"),
            line_grid=False,
        )

    traverse = scene(
        "Traverse", "ground", "rover/**", "goal", "start", "keep_out", "track", "plan/chosen"
    )
    planned = scene("Seen and planned", "local_map", "risk", "plan/**", "rover/**", "goal")
    curves = {
        "ACE evaluations": "evaluations",
        "Attitude": "attitude",
        "Clearance": "clearance",
        "Position error": "localization",
    }
    telemetry = rrb.Tabs(
        *(rrb.TimeSeriesView(origin=f"/telemetry/{g}", name=name) for name, g in curves.items())
    )
    log = rrb.TextLogView(origin="/log", name="Log")
    return rrb.Blueprint(
        rrb.Horizontal(
            rrb.Vertical(traverse, log, row_shares=[4.0, 1.0]),
            rrb.Vertical(planned, telemetry, row_shares=[3.0, 2.0]),
            column_shares=[3.0, 2.0],
        ),
        rrb.TimePanel(timeline="way_mm", fps=1000.0),
        collapse_panels=True,
    )
