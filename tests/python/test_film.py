import json
from dataclasses import replace

import numpy as np
import pytest
from made_grounds import ground
from PIL import Image
from typer.testing import CliRunner

from mlnav.cli import app
from mlnav.config import Config
from mlnav.sim import traverse
from mlnav.terrain import Terrain, write_geotiff
from mlnav.viz import film, scene, style
from mlnav.viz.film import Busiest, Studio
from mlnav.viz.scene import ROVER

pytest.importorskip("pybullet")
av = pytest.importorskip("av")
pytestmark = pytest.mark.viz

SMALL = (160, 90)


@pytest.fixture(scope="module")
def run():
    """A run with its busiest cycle kept, and a studio for it."""
    terrain, config, busiest = ground(), Config(), Busiest()
    result = traverse(terrain, config, (1.0, 10.0), (9.0, 10.0), observers=[busiest])
    assert result.success
    assert busiest.cycle is not None
    with Studio(terrain, result, config) as studio:
        yield terrain, result, config, busiest, studio


def frames_of(path) -> list[np.ndarray]:
    with av.open(str(path)) as container:
        assert container.streams.video[0].codec_context.name == "h264"
        assert container.streams.video[0].codec_context.pix_fmt == "yuv420p"
        return [f.to_ndarray(format="rgb24") for f in container.decode(video=0)]


HELD = round(film.FRAMES_PER_S * film.LAST_FRAME_S)


@pytest.fixture(autouse=True)
def small(monkeypatch) -> None:
    monkeypatch.setattr(film, "FILM_PX", SMALL)
    monkeypatch.setattr(film, "STILL_PX", SMALL)


def test_a_film_decodes_to_the_frames_that_were_asked_for(run, tmp_path, monkeypatch) -> None:
    *_, studio = run
    monkeypatch.setattr(film, "MAX_FRAMES", 5)
    shares: list[float] = []
    studio.save_film(tmp_path / "a.mp4", on_frame=shares.append)
    frames = frames_of(tmp_path / "a.mp4")
    assert len(frames) == 5 + HELD
    assert frames[0].shape == (90, 160, 3)
    assert shares == pytest.approx([0.0, 0.25, 0.5, 0.75, 1.0])
    assert all(f.std() > 20.0 for f in frames)  # nothing is blank
    assert np.abs(frames[0].astype(int) - frames[4].astype(int)).mean() > 3.0  # it moves
    assert np.abs(frames[5].astype(int) - frames[-1].astype(int)).mean() < 3.0  # and rests
    head = (tmp_path / "a.mp4").read_bytes()
    assert head.index(b"moov") < head.index(b"mdat")  # players can start before the end
    assert [p.name for p in tmp_path.iterdir()] == ["a.mp4"]


def test_every_nth_frame_is_filmed_at_the_same_speed(run, tmp_path, monkeypatch) -> None:
    *_, studio = run
    monkeypatch.setattr(film, "MAX_FRAMES", 9)
    studio.save_film(tmp_path / "all.mp4")
    studio.save_film(tmp_path / "third.mp4", every=3)
    everything, third = frames_of(tmp_path / "all.mp4"), frames_of(tmp_path / "third.mp4")
    assert (studio.frame_count(), studio.frame_count(3)) == (9, 4)
    assert len(everything) == 9 + HELD
    assert len(third) == 4 + HELD // 3
    durations = []
    for name in ("all", "third"):
        with av.open(str(tmp_path / f"{name}.mp4")) as container:
            durations.append(container.duration / 1e6)
    assert durations[1] == pytest.approx(durations[0], abs=0.2)


def test_short_runs_take_fewer_frames(run) -> None:
    terrain, result, config, *_ = run
    short = replace(result, cycles=result.cycles[:1])
    with Studio(terrain, short, config) as studio:
        frames = list(studio.frames(1, lambda share: None))
    assert 10 < len(frames) < 30


def test_an_interrupted_film_leaves_no_file(run, tmp_path) -> None:
    def stop(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run[-1].save_film(tmp_path / "a.mp4", on_frame=stop)
    assert not list(tmp_path.iterdir())


def test_the_rover_is_in_the_middle_of_all_frames(run) -> None:
    *_, studio = run
    for way_m in np.linspace(0.0, studio._length_m, 4):
        image = studio.frame(float(way_m), (240, 136), 1.0)
        middle = np.asarray(image.crop((72, 40, 180, 115)), float)
        light, grey = middle.mean(axis=-1), np.ptp(middle, axis=-1) < 40.0
        assert (grey & (light > 185.0)).mean() > 0.02  # the deck
        assert (grey & (light < 60.0)).mean() > 0.03  # the wheels


def near(image: Image.Image, colour: str, within: float = 60.0) -> np.ndarray:
    wanted = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)], float)
    return np.abs(np.asarray(image, float) - wanted).sum(axis=-1) < within


def test_the_current_path_is_drawn(run) -> None:
    *_, studio = run
    image = studio.frame(1.0, (320, 180))
    assert near(image, style.CHOSEN).sum() > 20


def test_stills(run, tmp_path) -> None:
    *_, studio = run
    studio.save_stills(tmp_path)
    paths = sorted(tmp_path.iterdir())
    assert [p.name for p in paths] == [
        "still-end.png", "still-overview.png", "still-start.png", "still-tilt.png",
    ]  # fmt: skip
    for path in paths:
        with Image.open(path) as image:
            assert image.size == SMALL
            assert np.asarray(image.convert("L"), float).std() > 15.0


def test_the_view_from_the_mast_has_the_path_on_it(run) -> None:
    terrain, result, _, busiest, studio = run
    record = result.cycles[busiest.cycle]
    picture = studio.mast_view(busiest.cycle, busiest.failed, width_px=400)
    assert picture.image.width == 400
    drawn = near(picture.image, style.CHOSEN, 40.0)
    assert drawn.sum() > 100
    # Wherever a pose of the path is in sight, its line is.
    z = terrain.height(record.path[:, 0], record.path[:, 1])
    points = np.column_stack([record.path[:, :2], z + 0.03])
    seen = picture.camera.project(points)
    oversampling = picture.depth_m.shape[1] / picture.image.width
    column, row = np.floor(oversampling * np.nan_to_num(seen[:, :2], nan=-1.0)).astype(int).T
    height, width = picture.depth_m.shape
    visible = (column >= 0) & (column < width) & (row >= 0) & (row < height) & (seen[:, 2] > 2.0)
    depth = picture.depth_m[row[visible], column[visible]]
    visible[visible] = seen[visible, 2] < depth + 0.12
    assert visible.sum() > 5
    hits = 0
    for column, row, _ in seen[visible]:
        box = drawn[max(int(row) - 2, 0) : int(row) + 3, max(int(column) - 2, 0) : int(column) + 3]
        hits += bool(box.any())
    assert hits >= 0.9 * visible.sum()
    assert (picture.kind == ROVER).mean() < 0.02  # its own housing does not stand in the way


def test_the_busiest_cycle_is_kept_with_what_failed() -> None:
    terrain = ground()
    busiest, told = Busiest(), []

    def note(record, navigator, cycle) -> None:
        failed = int((navigator.planner.path_verdicts() == 2).sum())
        told.append((record.ace_evaluations, failed))

    traverse(terrain, Config(), (1.0, 10.0), (9.0, 10.0), observers=[busiest, note])
    most = max(n for n, _ in told)
    assert told[busiest.cycle][0] == most
    assert len(busiest.failed) == told[busiest.cycle][1]
    assert all(path.shape[1] == 3 for path in busiest.failed)


def test_a_run_without_cycles(tmp_path) -> None:
    terrain, busiest = ground(holes=True), Busiest()
    config = Config().replaced(["keep_out=[[[2, 8], [3, 8], [3, 9]]]"])
    result = traverse(terrain, config, (1.0, 10.0), (1.2, 10.0), observers=[busiest])
    assert not len(result.cycles)
    assert busiest.cycle is None
    with Studio(terrain, result, config) as studio:
        studio.save_film(tmp_path / "a.mp4")
        assert len(frames_of(tmp_path / "a.mp4")) == 1 + HELD
        studio.save_stills(tmp_path)
        assert len(list(tmp_path.glob("still-*.png"))) == 4


def test_a_cycle_without_a_path_has_a_view() -> None:
    z = np.zeros((160, 160), np.float32)
    z[:, 90:] = 3.0  # a wall
    terrain = Terrain(z, 0.1)
    result = traverse(terrain, Config(), (6.5, 8.0), (14.0, 8.0))
    last = result.cycles[-1]
    assert last.outcome != "path"
    with Studio(terrain, result, Config()) as studio:
        assert studio.mast_view(last.cycle, width_px=120).image.width == 120
        assert studio.frame(1e9, SMALL).size == SMALL


# ----------------------------------------------------------------------------------- command line


@pytest.fixture(scope="module")
def level(tmp_path_factory):
    path = tmp_path_factory.mktemp("maps") / "bumps.tif"
    write_geotiff(path, ground())
    return path


def invoke(*args: object):
    return CliRunner().invoke(app, ["traverse", *map(str, args)])


def test_video_on_the_command_line(level, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(film, "MAX_FRAMES", 4)
    out = tmp_path / "out"
    args = ("-t", level, "--start=1,10", "--goal=5,10", "--video", "--json", "--no-picture")
    done = invoke(*args, "--film-every", 1, "--out", out)
    assert done.exit_code == 0, done.output
    assert "filming 4 frames of 4 at " in done.stderr and " a frame: about " in done.stderr
    assert json.loads(done.stdout)["success"]
    assert sorted(p.name for p in out.iterdir()) == [
        "config.yaml", "cycles.jsonl", "still-end.png", "still-overview.png", "still-start.png",
        "still-tilt.png", "summary.json", "traverse.mp4", "view.png",
    ]  # fmt: skip
    assert len(frames_of(out / "traverse.mp4")) == 4 + HELD
    again = invoke(*args, "--out", out)
    assert again.exit_code == 2
    assert "traverse.mp4" in again.stderr


def test_what_is_missing_is_told_before_the_run(level, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(scene.importlib.util, "find_spec", lambda name: None)
    done = invoke("-t", level, "--video", "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert "pybullet and av missing" in done.stderr
    assert "mlnav[viz]" in done.stderr
    assert not (tmp_path / "out").exists()
