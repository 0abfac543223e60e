import json
import math

import numpy as np
import pytest

from mlnav.config import Config
from mlnav.core import WHEELS
from mlnav.io.records import to_json
from mlnav.linkage import STATE
from mlnav.nav import Motion
from mlnav.parts import names_of
from mlnav.sim import SimError
from mlnav.sim.explain import explain, explain_way
from mlnav.terrain import Terrain, benchmark_class, load
from mlnav.viz import way_figure


@pytest.fixture(scope="module")
def rocky() -> Terrain:
    return benchmark_class(10.0, 0.10, seed=5)


def poses(n: int) -> list[tuple[float, float, float]]:
    rng = np.random.default_rng(2)
    rows = rng.uniform([8, 8, -math.pi], [44, 44, math.pi], (n, 3))
    return [tuple(map(float, row)) for row in rows]


@pytest.mark.parametrize("checker", names_of("checker"))
def test_it_tells_what_the_checker_reports(rocky: Terrain, checker: str) -> None:
    from mlnav.core import HeightMap, reason_names

    config = Config().replaced(checker=checker)
    built = config.build_checker(rocky.z.size)
    built.set_map(HeightMap.of(rocky).grid)
    for pose in poses(12):
        told = explain(rocky, config, pose)
        report = built.report(np.array([pose]))
        assert told.safe == report["safe"][0]
        assert list(told.reasons) == reason_names(int(report["reasons"][0]))
        for name in STATE:
            assert np.array_equal(told.bounds[name], report[name][0], equal_nan=True)
        assert told.inner_steps == report["inner_steps"][0]
        assert json.loads(to_json(told.as_dict()))["safe"] == told.safe


def test_the_settled_rover_is_inside_the_certified_boxes(rocky: Terrain) -> None:
    seen = 0
    for pose in poses(60):
        told = explain(rocky, Config(), pose)
        if not told.safe:
            continue
        seen += 1
        assert told.settled is not None
        assert told.settled_faults == ()
        for name, (low, high) in told.bounds.items():
            assert low - 5e-5 <= told.settled[name] <= high + 5e-5
        for box, place in zip(told.wheels, told.places_m, strict=True):
            for (low, high), at in zip(
                (box.forward_m, box.left_m, box.height_m), place, strict=True
            ):
                assert low - 5e-5 <= at <= high + 5e-5
                assert high - low < 0.05
        assert all(margin >= 0.0 for margin in told.margins.values())
    assert seen > 20


def test_fixed_boxes_are_about_the_nominal_wheels(rocky: Terrain) -> None:
    settings = ["checker.half_length_m=0.3", "checker.half_width_m=0.1"]
    config = Config().replaced(settings, checker="fixed_box")
    told = explain(rocky, config, (25.0, 25.0, 0.7))
    for name, box, (x, y) in zip(
        WHEELS, told.wheels, config.rover_model().wheel_plan(), strict=True
    ):
        assert box.forward_m == pytest.approx((x - 0.3, x + 0.3))
        assert box.left_m == pytest.approx((y - 0.1, y + 0.1))
        assert (y > 0) == name.endswith("left")
        assert box.height_m[0] <= box.height_m[1]


def test_where_nothing_is_known_nothing_is_told() -> None:
    z = np.zeros((80, 80))
    z[30:50, 30:50] = np.nan
    terrain = Terrain(z, 0.1, name="hole")
    told = explain(terrain, Config(), (4.0, 4.0, 0.0))
    assert (told.safe, told.wheels, told.settled) == (False, None, None)
    assert told.reasons == told.settled_faults == ("unknown",)
    record = told.as_dict()
    assert record["bounds"]["roll_rad"] == [None, None]
    assert record["margins"]["tilt"] is None


@pytest.mark.parametrize("pose", [(1e9, 0.0, 0.0), (math.nan, 4.0, 0.0), (4.0, 4.0, math.inf)])
def test_what_is_no_pose_is_refused(pose) -> None:
    with pytest.raises(SimError, match="pose"):
        explain(Terrain(np.zeros((80, 80)), 0.1), Config(), pose)


def test_a_way_is_explained_stretch_by_stretch() -> None:
    terrain = load("10/.10", seed=3)
    pose = (25.0, 25.0, math.radians(60.0))
    for motion in (Motion(0.0, 0.1, 1.0), Motion(math.radians(20.0), 0.0, 0.0)):
        way = explain_way(terrain, Config(), pose, motion)
        assert way.safe and not way.reasons
        length = 1.0 if motion.length_m else 1.5 * motion.turn_rad
        assert way.edge_m[-1] == pytest.approx(length) == pytest.approx(way.state_m[-1])
        part = np.clip(np.searchsorted(way.edge_m, way.state_m), 1, len(way.edge_m) - 1) - 1
        for name, bounds in way.bounds.items():
            low, high = bounds[part].T
            assert (low - 1e-4 <= way.settled[name]).all(), name
            assert (way.settled[name] <= high + 1e-4).all(), name
        assert (way.settled["clearance_m"] >= way.clearance_min_m[part] - 1e-4).all()
        assert (way.settled["relief_max_m"] <= way.relief_max_m[part] + 1e-4).all()
        assert len(way_figure(terrain, way, Config()).axes) == 8
    with pytest.raises(SimError, match="an arc or a turn"):
        explain_way(terrain, Config(), pose, Motion(0.1, 0.1, 1.0))
    with pytest.raises(SimError, match="outside the map"):
        explain_way(terrain, Config(), (-5.0, 0.0, 0.0), Motion(0.1, 0.0, 0.0))
