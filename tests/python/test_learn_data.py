import json
import math
import shutil
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from mlnav import _core
from mlnav.config import Config
from mlnav.learn import data
from mlnav.learn.data import (
    BINS,
    HEIGHT_STEP_M,
    PAIRS,
    PARTS,
    SUBCELLS,
    UNKNOWN,
    DataError,
    DataSpec,
    Windows,
    make_data,
    make_windows,
    network_input,
    read_part,
    read_shard,
)
from mlnav.learn.symmetry import SYMMETRIES, heading_bins, transform, transform_risk

TINY = DataSpec(
    seed=3,
    terrains={"train": 2, "validation": 1, "test": 1},
    windows=2,
    window_m=4.0,
    terrain_m=10.0,
    samples=300,
)


def checker(name: str, z: np.ndarray) -> _core.Checker:
    made = Config().replaced(checker=name, limits=PAIRS[name]).build_checker(z.size)
    made.set_map(grid_of(z))
    return made


def grid_of(z: np.ndarray) -> _core.Grid:
    return _core.Grid(np.ascontiguousarray(z, np.float32), 0.1, 0.0, 0.0)


def rough(cells: int, seed: int = 0) -> np.ndarray:
    """Lumps of a few decimetres on a slope, with a hole."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:cells, 0:cells] * 0.1
    z = 0.15 * x - 0.05 * y
    for cx, cy, height, width in zip(
        *rng.uniform(0, cells * 0.1, (2, 14)), rng.uniform(0.1, 0.5, 14), rng.uniform(0.2, 0.7, 14),
        strict=True,
    ):  # fmt: skip
        z += height * np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / width**2)
    z[3:6, 10:14] = np.nan
    return z.astype(np.float32)


# ----------------------------------------------------------------------------------------- symmetry


@pytest.mark.parametrize("symmetry", range(SYMMETRIES))
def test_ace_of_a_transformed_map_is_the_transformed_ace(symmetry) -> None:
    z = rough(64)
    labels = checker("fixed_box", z).ace_map(BINS) != 0
    moved = checker("fixed_box", transform(z, symmetry)).ace_map(BINS) != 0
    assert 0.1 < labels[:, 16:-16, 16:-16].mean() < 0.9
    np.testing.assert_array_equal(moved, transform_risk(labels, symmetry))


@pytest.mark.parametrize("symmetry", range(SYMMETRIES))
def test_headings_move_as_directions_do(symmetry) -> None:
    heading = 2.0 * math.pi * np.arange(BINS) / BINS
    # A step in that direction, as the difference of two points that are transformed.
    x, y = np.cos(heading), np.sin(heading)
    if symmetry & 1:
        x, y = y, x
    if symmetry & 2:
        x = -x
    if symmetry & 4:
        y = -y
    expected = np.rint(np.arctan2(y, x) / (2.0 * math.pi) * BINS).astype(int) % BINS
    np.testing.assert_array_equal(heading_bins(BINS, symmetry), expected)
    assert sorted(heading_bins(BINS, symmetry)) == list(range(BINS))


def test_bins_must_allow_quarter_turns() -> None:
    with pytest.raises(ValueError, match="multiple of 4"):
        heading_bins(6, 1)


# ------------------------------------------------------------------------------------------ windows


def test_the_input_is_what_the_heuristic_makes_of_the_same_window() -> None:
    from mlnav.risk.network import network_input as at_run_time

    heights = np.random.default_rng(0).integers(-9000, 9000, (40, 40)).astype(np.int16)
    heights[:7, :9] = UNKNOWN
    z = np.where(heights == UNKNOWN, np.nan, heights * np.float32(HEIGHT_STEP_M) + 100.0)
    there = at_run_time(z.astype(np.float32))
    np.testing.assert_allclose(network_input(heights[np.newaxis]), there, atol=2e-5)
    nothing = network_input(np.full((1, 8, 8), UNKNOWN))
    assert not nothing.any()


def test_dense_labels_count_the_rejected_cells() -> None:
    z = rough(60)
    dense = data._dense_labels(grid_of(z), 10, 40)
    assert dense.shape == (BINS, 20, 20)
    rng = np.random.default_rng(0)
    poses_at, counted = [], []
    for _ in range(200):
        k, row, column = int(rng.integers(BINS)), *(int(v) for v in rng.integers(0, 20, 2))
        counted.append(dense[k, row, column])
        poses_at.append(
            [
                (0.1 * (10 + 2 * column + i), 0.1 * (10 + 2 * row + j), 2.0 * math.pi * k / BINS)
                for j in range(SUBCELLS)
                for i in range(SUBCELLS)
            ]
        )
    bad = checker("fixed_box", z).reasons(np.array(poses_at).reshape(-1, 3)) != 0
    np.testing.assert_array_equal(bad.reshape(200, -1).sum(1), counted)


class Recorder:
    """A checker that keeps the poses that it was asked for."""

    def __init__(self, inner: _core.Checker) -> None:
        self.inner = inner
        self.poses = np.empty((0, 4))

    def set_map(self, grid: _core.Grid) -> None:
        self.inner.set_map(grid)

    def reasons(self, poses: np.ndarray) -> np.ndarray:
        self.poses = poses
        return self.inner.reasons(poses)


def test_sampled_labels_are_verdicts_at_the_cells_they_name(monkeypatch) -> None:
    z, margin, spec = rough(90), 25, replace(TINY, samples=500)
    asked: dict[str, Recorder] = {}
    build = data._checker

    def recording(name: str, limits: str, cells: int) -> Recorder:
        asked[name] = Recorder(build(name, limits, cells))
        return asked[name]

    monkeypatch.setattr(data, "_checker", recording)
    at, bad, weight = data._sampled_labels(grid_of(z), margin, spec, np.random.default_rng(1))
    assert at.shape == bad.shape == weight.shape == (500,)
    poses = asked["verified"].poses
    k, row, column = np.unravel_index(at, (BINS, 20, 20))
    corner = 0.1 * (margin - 0.5)
    np.testing.assert_array_equal(np.floor((poses[:, 0] - corner) / 0.2), column)
    np.testing.assert_array_equal(np.floor((poses[:, 1] - corner) / 0.2), row)
    np.testing.assert_allclose(poses[:, 2], 2.0 * math.pi * k / BINS)
    np.testing.assert_array_equal(checker("verified", z).reasons(poses) != 0, bad)
    assert np.isinf(poses[:, 3]).mean() == pytest.approx(0.1, abs=0.05)
    # The doubtful half is over-represented, and weighs less.
    assert len(np.unique(weight)) == 2
    assert weight.mean() == pytest.approx(1.0, abs=1e-5)


def test_weighted_labels_are_an_unbiased_estimate() -> None:
    # Even enough for most poses to be beyond doubt, so that the two halves are not about even.
    z, margin = 0.6 * rough(90, seed=1), 25
    spec = replace(TINY, samples=3000)
    _, bad, weight = data._sampled_labels(grid_of(z), margin, spec, np.random.default_rng(2))
    rng = np.random.default_rng(3)
    n = 6000
    poses = np.column_stack(
        [
            *rng.uniform(2.45, 6.45, (2, n)),
            rng.integers(0, BINS, n) * (2.0 * math.pi / BINS),
            np.where(rng.random(n) < 0.1, np.inf, rng.integers(-5, 6, n) / 15.0),
        ]
    )
    share = float((checker("verified", z).reasons(poses) != 0).mean())
    assert 0.05 < share < 0.95
    spread = math.sqrt(share * (1 - share) * (2.0 / len(bad) + 1.0 / n))
    assert float((weight * bad).mean()) == pytest.approx(share, abs=4.0 * spread)
    assert abs(float(bad.mean()) - share) > 4.0 * spread  # without weights it is another number


def test_hidden_ground_is_behind_what_hides_it() -> None:
    z = np.zeros((61, 61), np.float32)
    z[20:41, 45] = 3.0  # a wall east of the mast, higher than its eye
    hidden = data.mast_shadow(z, 0.1, (30, 30))
    assert hidden[30, 50:].all()
    assert not hidden[:, :45].any()
    assert not data.mast_shadow(np.zeros((30, 40), np.float32), 0.1, (3, 5)).any()


# ------------------------------------------------------------------------------------------- shards


def content(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("learn") / "data"
    make_data(folder, TINY)
    return folder


def test_the_same_settings_give_the_same_bytes(made, tmp_path) -> None:
    # With two workers, in a folder where one shard is there and another was being written.
    (tmp_path / "train").mkdir()
    shutil.copy(made / "train" / "00001.npz", tmp_path / "train")
    (tmp_path / "train" / ".0123abcd.npz").write_bytes(b"half")
    counted = []
    make_data(tmp_path, TINY, 2, lambda done, total: counted.append((done, total)))
    assert content(tmp_path) == content(made)
    assert counted == [(n, 4) for n in (1, 2, 3, 4)]


def test_a_complete_data_set_is_not_made_again(made, monkeypatch) -> None:
    monkeypatch.setattr(data, "make_windows", None)
    before = content(made)
    make_data(made, TINY)
    assert content(made) == before


def test_other_seeds_are_other_windows() -> None:
    one, other = (make_windows(replace(TINY, seed=s), "train", 0).heights for s in (3, 4))
    assert (one != other).mean() > 0.9


def test_no_ground_is_in_two_parts(monkeypatch) -> None:
    class SeenError(Exception):
        pass

    seeds = []

    def generate(recipe, seed):
        seeds.append((recipe, seed))
        raise SeenError

    monkeypatch.setattr(data, "generate", generate)
    for part in PARTS:
        for i in range(60):
            with pytest.raises(SeenError):
                make_windows(TINY, part, i)
            assert data.recipe_of(TINY, part, i) == seeds[-1][0]
    assert len({seed for _, seed in seeds}) == len({repr(r) for r, _ in seeds}) == 3 * 60


def test_the_manifest_counts(made) -> None:
    counts = data.read_manifest(made)["counts"]["train"]
    windows = read_part(made, "train")
    assert counts["terrains"] == 2
    assert counts["windows"] == len(windows) == 4
    assert counts["fixed_box"]["labels"] == windows.dense.size * SUBCELLS**2
    share = windows.dense.mean() / SUBCELLS**2
    assert counts["fixed_box"]["rejected"] == pytest.approx(share)
    assert counts["verified"]["labels"] == 4 * TINY.samples
    share = (windows.sample_weight * windows.sample_bad).mean()
    assert counts["verified"]["rejected"] == pytest.approx(share, rel=1e-5)


def test_parts_are_read_whole_or_from_the_first(made) -> None:
    shards = [read_shard(made / "train" / f"{i:05d}.npz") for i in range(2)]
    whole, first = read_part(made, "train"), read_part(made, "train", 1)
    for f in fields(Windows):
        np.testing.assert_array_equal(
            getattr(whole, f.name), getattr(Windows.stacked(shards), f.name)
        )
        np.testing.assert_array_equal(getattr(first, f.name), getattr(shards[0], f.name))


def test_a_folder_of_other_settings_is_refused(made) -> None:
    with pytest.raises(DataError, match="other settings"):
        make_data(made, replace(TINY, seed=4))
    with pytest.raises(DataError, match="no data set"):
        read_part(made / "train", "train")


@pytest.mark.parametrize("damage", ["cut", "garbage", "empty", "missing", "other"])
def test_a_damaged_shard_is_named(made, tmp_path, damage) -> None:
    folder = tmp_path / "data"
    shutil.copytree(made, folder)
    shard = folder / "train" / "00001.npz"
    whole = shard.read_bytes()
    if damage == "missing":
        shard.unlink()
    elif damage == "other":
        windows = read_shard(shard)
        arrays = {f.name: getattr(windows, f.name)[:1] for f in fields(Windows)}
        np.savez(shard, **arrays)
    else:
        shard.write_bytes(
            {"cut": whole[:-2000], "garbage": b"PK" + whole[2:40], "empty": b""}[damage]
        )
    with pytest.raises(DataError, match="00001"):
        read_part(folder, "train")


def test_a_changed_manifest_is_refused(made, tmp_path) -> None:
    folder = tmp_path / "data"
    shutil.copytree(made, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["spec"]["windows"] = 1
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(DataError, match="digest"):
        read_part(folder, "train")


def test_a_part_beyond_memory_is_refused(made, monkeypatch) -> None:
    monkeypatch.setattr(data, "_free_bytes", lambda: 1e4)
    with pytest.raises(DataError, match="fewer of its 2 terrains"):
        read_part(made, "train")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"terrains": {"train": 1}}, "terrains"),
        ({"terrains": {"train": 0, "validation": 1, "test": 1}}, "terrains"),
        ({"windows": 0}, "windows"),
        ({"samples": 1}, "samples"),
        ({"window_m": 4.1}, "window_m"),
        ({"terrain_m": 8.0}, "terrain_m"),
        ({"unknown_share": 1.5}, "unknown_share"),
    ],
)
def test_bad_settings_are_refused(change, message) -> None:
    with pytest.raises(DataError, match=message):
        replace(TINY, **change)
