import math
import shutil
from collections import Counter

import numpy as np
import pytest
from made_grounds import ground
from typer.testing import CliRunner

from mlnav.cli import app
from mlnav.config import Config
from mlnav.sim import start_pose, traverse
from mlnav.terrain import Terrain, write_geotiff
from mlnav.viz import scene
from mlnav.viz.model import RoverParts
from mlnav.viz.playback import Playback
from mlnav.viz.recording import Recording

pytest.importorskip("rerun")
chunks = pytest.importorskip("rerun.chunk")
pytestmark = pytest.mark.viz

START, GOAL = (1.0, 10.0), (8.0, 10.0)


def recorded(path, terrain: Terrain, config: Config, goal=GOAL, observers=()):
    pose = start_pose(terrain, START, goal, None)
    with Recording(path, terrain, config, pose, goal) as recording:
        result = traverse(terrain, config, START, goal, observers=[recording, *observers])
        recording.finish(result)
    return result


class Read:
    """A recording, read back."""

    def __init__(self, path) -> None:
        self.reader = chunks.RrdReader(path)
        self.chunks = self.reader.stream().to_chunks()
        self.entities = {c.entity_path for c in self.chunks}

    def of(self, entity: str, static: bool = False) -> list:
        return [c for c in self.chunks if c.entity_path == entity and c.is_static == static]

    def rows(self, entity: str) -> int:
        return sum(c.num_rows for c in self.of(entity))

    def column(self, entity: str, name: str, static: bool = False) -> list:
        """All rows of one column, in the order of the way."""
        rows: list = []
        for chunk in self.of(entity, static):
            batch = chunk.to_record_batch()
            if name not in batch.schema.names:
                continue
            index = batch.column("way_mm").to_pylist() if not static else [0] * batch.num_rows
            rows += zip(index, batch.column(name).to_pylist(), strict=True)
        return [value for _, value in sorted(rows, key=lambda row: row[0])]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run under a heuristic that makes a risk map in every cycle."""
    path = tmp_path_factory.mktemp("rrd") / "run.rrd"
    terrain, config = ground(holes=True), Config().replaced(heuristic="sobel")
    verdicts: list[Counter] = []

    def note(record, navigator, cycle) -> None:
        verdicts.append(Counter(navigator.planner.path_verdicts().tolist()))

    result = recorded(path, terrain, config, observers=[note])
    assert result.success
    return terrain, config, result, verdicts, Read(path)


def test_the_file_holds_a_recording_and_a_blueprint(run) -> None:
    *_, read = run
    assert [s.application_id for s in read.reader.recordings()] == ["mlnav"]
    assert len(read.reader.blueprints()) == 1


def test_entities_and_time_lines(run) -> None:
    _, config, _, _, read = run
    links = RoverParts(config.rover.to_core()).links
    assert len([e for e in read.entities if e.startswith("/rover/")]) == len(links) == 15
    assert "/rover/body/rocker_left/bogie_left/steer_rear_left/wheel_rear_left" in read.entities
    wanted = """
        /ground /goal /start /local_map /risk /track /log /plan/chosen /plan/candidates/failed
        /plan/candidates/not_tried /plan/candidates/not_ranked /telemetry/evaluations/ace
        /telemetry/evaluations/floor /telemetry/attitude/tilt_deg /telemetry/clearance/clearance_m
        /telemetry/localization/error_m
    """
    assert set(wanted.split()) <= read.entities
    for chunk in read.chunks:
        if not chunk.is_static:
            assert sorted(chunk.timeline_names) == ["cycle", "way_mm"]  # and no clock


def test_a_row_a_cycle_and_a_row_a_state(run) -> None:
    terrain, config, result, _, read = run
    cycles = len(result.cycles)
    for entity in ("local_map", "risk", "track", "plan/chosen", "plan/candidates/failed",
                   "telemetry/evaluations/ace", "telemetry/localization/error_m"):  # fmt: skip
        assert read.rows(f"/{entity}") == cycles, entity
    states = len(Playback(terrain, config, result.start, result.cycles))
    for entity in ("rover/body", "rover/body/rocker_right", "telemetry/attitude/tilt_deg"):
        assert read.rows(f"/{entity}") == states
    assert read.rows("/log") == cycles + 1
    counts = read.column("/telemetry/evaluations/ace", "Scalars:scalars")
    assert [n for (n,) in counts] == [c.ace_evaluations for c in result.cycles]
    assert read.column("/local_map", "cycle") == list(range(cycles))


def test_the_rover_stands_where_it_stood(run) -> None:
    terrain, config, result, _, read = run
    played = Playback(terrain, config, result.start, result.cycles)
    places = read.column("/rover/body", "Transform3D:translation")
    turns = read.column("/rover/body", "Transform3D:quaternion")
    origin = RoverParts(config.rover.to_core()).body_origin_m
    for index in (0, len(played) // 2, len(played) - 1):
        posture = played.posture(index)
        assert places[index][0] == pytest.approx(posture.point(origin), abs=1e-5)
        x, y, z, w = turns[index][0]
        forward = (1 - 2 * (y * y + z * z), 2 * (x * y + z * w), 2 * (x * z - y * w))
        assert forward == pytest.approx(posture.rotation[:, 0], abs=1e-6)
    tilts = read.column("/telemetry/attitude/tilt_deg", "Scalars:scalars")
    assert [t for (t,) in tilts] == pytest.approx(np.degrees(played.tilt_rad))


def test_candidates_by_verdict_and_the_path_that_was_chosen(run) -> None:
    terrain, _, result, verdicts, read = run
    for name, verdict in (("failed", 2), ("not_tried", 0), ("not_ranked", 3)):
        strips = read.column(f"/plan/candidates/{name}", "LineStrips3D:strips")
        assert [len(s) for s in strips] == [v[verdict] for v in verdicts]
    for record, strips in zip(
        result.cycles, read.column("/plan/chosen", "LineStrips3D:strips"), strict=True
    ):
        if record.outcome == "path":
            line = np.array(strips[0])
            assert line[:, :2] == pytest.approx(record.path[:, :2], abs=1e-4)
            above = line[:, 2] - terrain.height(line[:, 0], line[:, 1])
            assert np.all((above > 0.0) & (above < 0.1))
        else:
            assert not strips


def test_ground_and_sight_are_where_the_ground_is(run) -> None:
    terrain, *_, read = run
    for entity, static in (("/ground", True), ("/local_map", False), ("/risk", False)):
        (vertices, *_) = read.column(entity, "Mesh3D:vertex_positions", static)
        points = np.array(vertices, float)
        assert len(points) > 500
        assert np.isfinite(points).all()
        z = terrain.height(points[:, 0], points[:, 1])
        # Cells of a risk map are coarser than the ground's, and lie above it.
        limit = 0.09 if entity == "/risk" else 1e-3
        assert np.median(np.abs(points[:, 2] - z)) < limit
    (colours, *_) = read.column("/risk", "Mesh3D:vertex_colors")
    assert len(set(colours)) > 10


def test_words_tell_how_it_went(run) -> None:
    *_, result, _, read = run
    lines = [text for (text,) in read.column("/log", "TextLog:text")]
    assert any(line.startswith("cycle 1: path, ") for line in lines)
    assert (
        f"goal_reached: the rover is within tolerance of the goal; {result.driven_m:.1f} m"
        in (lines[-1])
    )


def test_a_run_without_cycles(tmp_path) -> None:
    result = recorded(tmp_path / "a.rrd", ground(), Config(), goal=(1.2, 10.0))
    assert not len(result.cycles)
    read = Read(tmp_path / "a.rrd")
    assert read.rows("/rover/body") == 1
    assert read.rows("/log") == 1
    assert "/local_map" not in read.entities


def test_without_a_risk_map_none_is_shown(tmp_path) -> None:
    config = Config().replaced(["keep_out=[[[2, 4], [3, 4], [3, 5]]]", "traverse.max_cycles=2"])
    recorded(tmp_path / "a.rrd", ground(), config)
    read = Read(tmp_path / "a.rrd")
    assert read.column("/risk", "Mesh3D:vertex_positions") == []
    assert "/keep_out" in read.entities


def test_the_position_error_is_told_and_plans_stay_with_the_rover(tmp_path) -> None:
    config = Config().replaced(
        ["localization.distance_sigma=0.1", "localization.heading_sigma_deg=3"],
        localization="visual",
    )
    result = recorded(tmp_path / "a.rrd", ground(), config)
    read = Read(tmp_path / "a.rrd")
    errors = [e for (e,) in read.column("/telemetry/localization/error_m", "Scalars:scalars")]
    assert errors == pytest.approx(
        [math.dist(c.pose[:2], c.estimated_pose[:2]) for c in result.cycles]
    )
    assert errors[-1] > 0.02
    strips = read.column("/plan/chosen", "LineStrips3D:strips")
    for record, lines in zip(result.cycles, strips, strict=True):
        if record.outcome == "path":
            assert lines[0][0][:2] == pytest.approx(record.pose[:2], abs=1e-4)


def test_an_interrupted_run_leaves_a_readable_file(tmp_path) -> None:
    def stop(record, navigator, cycle) -> None:
        # What is on the disk at this moment can be read as well.
        shutil.copy(tmp_path / "a.rrd", tmp_path / f"after-{record.cycle}.rrd")
        if record.cycle == 2:
            raise KeyboardInterrupt

    result = recorded(tmp_path / "a.rrd", ground(), Config(), observers=[stop])
    assert result.outcome == "interrupted"
    read = Read(tmp_path / "a.rrd")
    assert read.rows("/track") == 3
    lines = [text for (text,) in read.column("/log", "TextLog:text")]
    assert lines[-1].startswith("interrupted")
    with pytest.warns(Warning, match="no footer"):
        torn = Read(tmp_path / "after-1.rrd")
    assert torn.rows("/track") == 2


def test_a_run_that_raises_leaves_a_readable_file(tmp_path) -> None:
    def fail(record, navigator, cycle) -> None:
        raise RuntimeError("of someone else")

    with pytest.raises(RuntimeError, match="someone else"):
        recorded(tmp_path / "a.rrd", ground(), Config(), observers=[fail])
    assert Read(tmp_path / "a.rrd").rows("/track") == 1


@pytest.mark.parametrize("shape", [(1, 1), (3, 2)])
def test_tiny_terrains(tmp_path, shape) -> None:
    terrain = Terrain(np.zeros(shape, np.float32), 0.1)
    with Recording(tmp_path / "a.rrd", terrain, Config(), (0.0, 0.0, 0.0), (0.0, 0.0)):
        pass
    assert "/ground" in Read(tmp_path / "a.rrd").entities


def test_two_recordings_at_a_time_stay_apart(tmp_path) -> None:
    terrain, pose = ground(), (1.0, 10.0, 0.0)
    with (
        Recording(tmp_path / "a.rrd", terrain, Config(), pose, GOAL) as first,
        Recording(tmp_path / "b.rrd", terrain, Config(), pose, GOAL),
    ):
        traverse(terrain, Config().replaced(["traverse.max_cycles=2"]), START, GOAL,
                 observers=[first])  # fmt: skip
    assert Read(tmp_path / "a.rrd").rows("/track") == 2
    assert Read(tmp_path / "b.rrd").rows("/track") == 0


# ----------------------------------------------------------------------------------- command line


def invoke(*args: object):
    return CliRunner().invoke(app, ["traverse", *map(str, args)])


def test_rerun_on_the_command_line(tmp_path) -> None:
    write_geotiff(tmp_path / "bumps.tif", ground())
    args = ("-t", tmp_path / "bumps.tif", "--start=1,10", "--goal=5,10", "--no-picture", "--force")
    done = invoke(*args, "--out", tmp_path / "out", "--rerun", tmp_path / "new" / "run.rrd")
    assert done.exit_code == 0, done.output
    assert Read(tmp_path / "new" / "run.rrd").rows("/track") > 2
    again = invoke(*args[:-1], "--out", tmp_path / "b", "--rerun", tmp_path / "new" / "run.rrd")
    assert again.exit_code == 2
    assert "holds run.rrd" in again.stderr
    wrong = invoke(*args, "--out", tmp_path / "c", "--rerun", tmp_path / "run.txt")
    assert wrong.exit_code == 2
    assert "does not end in .rrd" in wrong.stderr
    assert not (tmp_path / "c").exists()


def test_a_missing_library_is_told_before_the_run(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(scene.importlib.util, "find_spec", lambda name: None)
    done = invoke("-t", "demo", "--rerun", tmp_path / "a.rrd", "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert "rerun missing: pip install 'mlnav[viz]'" in done.stderr
    assert not (tmp_path / "out").exists()
