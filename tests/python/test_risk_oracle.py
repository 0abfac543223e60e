"""The oracle says what the checker says, pose by pose."""

import numpy as np
import pytest

from mlnav import _core
from mlnav.config import Config
from mlnav.core import HeightMap
from mlnav.risk import make_heuristic
from mlnav.sim import TruthSensor, traverse
from mlnav.terrain import Terrain, benchmark_class


def oracle(checker: str, *settings: str) -> Config:
    return Config().replaced(
        [f"heuristic.{s}" for s in settings],
        heuristic="oracle",
        checker=checker,
        limits="enav_like",
    )


def poses_of(risk) -> np.ndarray:
    """(bins, ny, nx, 3) poses that the values of a risk map stand for."""
    bins, ny, nx = risk.p.shape
    heading, y, x = np.meshgrid(
        2.0 * np.pi / bins * np.arange(bins),
        risk.origin_m[1] + risk.resolution_m * np.arange(ny),
        risk.origin_m[0] + risk.resolution_m * np.arange(nx),
        indexing="ij",
    )
    return np.stack([x, y, heading], axis=-1)


def rejected(config: Config, seen: HeightMap, risk) -> np.ndarray:
    checker = config.build_checker(seen.z.size)
    checker.set_map(seen.grid)
    reasons = checker.reasons(poses_of(risk).reshape(-1, 3))
    return (reasons != 0).reshape(risk.p.shape)


class Counting:
    """A checker that counts what it is asked."""

    def __init__(self, inner: _core.Checker, asked: list) -> None:
        self.inner, self.asked = inner, asked

    def set_map(self, grid) -> None:
        self.inner.set_map(grid)

    def reasons(self, poses):
        self.asked.extend(map(tuple, poses))
        return self.inner.reasons(poses)


@pytest.fixture
def asked(monkeypatch) -> list:
    """Poses that checkers built from here on are asked about."""
    poses: list = []
    build = Config.build_checker
    monkeypatch.setattr(Config, "build_checker", lambda self, n: Counting(build(self, n), poses))
    return poses


@pytest.fixture(scope="module")
def rocky() -> Terrain:
    return benchmark_class(10.0, 0.12, seed=2)


@pytest.mark.parametrize("place", [(26.0, 20.0), (1.7, 48.9), (51.0, 26.0)])
def test_dense_verdicts_are_those_of_every_pose(rocky, place) -> None:
    """In the middle, in a corner, and at a border; reach and map not centred on each other."""
    config = oracle("fixed_box", "reach_m=5.05", "bins=10")
    seen = TruthSensor(rocky, 16.0, align_cells=4).window((*place, 0.0))
    heuristic = make_heuristic(config)
    risk = heuristic.risk(seen, (*place, 0.3))
    assert risk.p.dtype == np.float32
    assert risk.resolution_m == seen.resolution_m
    assert risk.p.shape[0] == 10
    if place == (26.0, 20.0):
        assert risk.p.shape[1:] == (101, 101)
        assert 0.02 < risk.p.mean() < 0.98
    assert risk.p.size <= heuristic.max_cells(seen.z.size)
    np.testing.assert_array_equal(risk.p, rejected(config, seen, risk))


def test_dense_verdicts_know_of_holes(rocky) -> None:
    z = rocky.z.copy()
    z[200:220, 240:280] = np.nan
    seen = HeightMap(z, 0.1, rocky.origin_m)
    config = oracle("fixed_box", "reach_m=4")
    risk = make_heuristic(config).risk(seen, (26.0, 20.0, 0.0))
    np.testing.assert_array_equal(risk.p, rejected(config, seen, risk))


@pytest.mark.parametrize(
    ("checker", "settings"),
    [
        ("verified", ["reach_m=2", "bins=6"]),
        ("settle", ["reach_m=2.5", "bins=5"]),
        ("probabilistic", ["reach_m=4", "resolution_m=0.31"]),
        ("fixed_box", ["reach_m=4", "resolution_m=0.2"]),
    ],
)
def test_other_verdicts_are_those_of_every_pose(rocky, checker, settings) -> None:
    """Along a way, so that most are remembered."""
    config = oracle(checker, *settings)
    sensor = TruthSensor(rocky, 6.0, align_cells=4)
    heuristic = make_heuristic(config)
    for place in ((3.0, 20.0), (3.9, 20.3), (4.7, 20.9), (3.2, 20.1)):
        seen = sensor.window((*place, 0.0))
        risk = heuristic.risk(seen, (*place, 0.1))
        reach = config.heuristic.reach_m
        res = config.heuristic.resolution_m or 0.2
        assert risk.resolution_m == res
        for at, origin, n in zip(place, risk.origin_m, risk.p.shape[:0:-1], strict=True):
            assert origin / res == pytest.approx(round(origin / res), abs=1e-6)
            first, last = origin - at, origin + (n - 1) * res - at
            assert -reach - 1e-9 <= first < -reach + res + 1e-9
            assert reach - res - 1e-9 < last <= reach + 1e-9
        assert risk.p.size <= heuristic.max_cells(seen.z.size)
        np.testing.assert_array_equal(risk.p, rejected(config, seen, risk))


def test_each_verdict_is_asked_for_once(rocky, asked) -> None:
    heuristic = make_heuristic(oracle("settle", "reach_m=2", "bins=4"))
    sensor = TruthSensor(rocky, 16.0)
    for place in ((20.0, 20.0), (20.5, 20.2), (21.4, 20.7), (20.1, 20.0), (20.0, 20.0)):
        heuristic.risk(sensor.window((*place, 0.0)), (*place, 0.0))
    assert len(asked) == len(set(asked))
    assert len(asked) < 3 * 4 * 21 * 21


def test_ground_that_changes_is_asked_for_again(rocky, asked) -> None:
    config = oracle("settle", "reach_m=2", "bins=4")
    heuristic = make_heuristic(config)
    pose = (20.0, 20.0, 0.0)
    seen = TruthSensor(rocky, 8.0).window(pose)
    heuristic.risk(seen, pose)
    count = len(asked)
    z = seen.z.copy()
    z[70:78, 90:96] += 0.8
    changed = HeightMap(z, seen.resolution_m, seen.origin_m)
    risk = heuristic.risk(changed, pose)
    assert len(asked) == 2 * count
    np.testing.assert_array_equal(risk.p, rejected(config, changed, risk))


def test_what_a_small_map_hid_is_asked_for_again(rocky) -> None:
    """A verdict that only lacked ground does not outlive the map that ended there."""
    config = oracle("settle", "reach_m=3", "bins=4")
    heuristic = make_heuristic(config)
    sensor = TruthSensor(rocky, 3.2)
    hidden = 0
    for x in (20.0, 21.0, 22.0):
        seen = sensor.window((x, 20.0, 0.0))
        risk = heuristic.risk(seen, (x, 20.0, 0.0))
        np.testing.assert_array_equal(risk.p, rejected(config, seen, risk))
        hidden += int(risk.p.sum())
    assert hidden > 0


def test_other_cells_than_before_are_other_ground(rocky, asked) -> None:
    heuristic = make_heuristic(oracle("settle", "reach_m=1", "bins=2"))
    for shift in (0.0, 0.03):
        z = np.zeros((100, 100), np.float32)
        heuristic.risk(HeightMap(z, 0.1, (shift, 0.0)), (5.0, 5.0, 0.0))
    assert len(asked) == 2 * 2 * 11 * 11


def test_nothing_known_is_no_opinion() -> None:
    z = np.full((100, 400), np.nan, np.float32)
    z[:, 300:] = 0.0
    heuristic = make_heuristic(oracle("fixed_box", "reach_m=3"))
    assert heuristic.risk(HeightMap(z, 0.1, (0.0, 0.0)), (5.0, 5.0, 0.0)) is None
    assert heuristic.risk(HeightMap(z, 0.1, (0.0, 0.0)), (35.0, 5.0, 0.0)) is not None


def test_foresight_saves_evaluations() -> None:
    """On ground where the baseline tries many paths, with the same checker and planner."""
    ground = benchmark_class(15.0, 0.07, seed=6)
    cost = {}
    for heuristic in ("none", "oracle"):
        config = oracle("fixed_box").replaced(["traverse.max_cycles=60"], heuristic=heuristic)
        summary = traverse(ground, config).summary()
        assert summary["success"]
        cost[heuristic] = summary["ace_evaluations"]
    assert cost["oracle"] < 0.8 * cost["none"]
