import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from mlnav import _core
from mlnav.config import Config
from mlnav.core import HeightMap
from mlnav.parts import names_of
from mlnav.studies.cases import Case, cases, real_terrain_files
from mlnav.studies.cost import cost
from mlnav.studies.soundness import (
    DISTINCT_M,
    ReplayError,
    SoundnessRequest,
    Start,
    findings,
    left_bounds,
    nominal_heights,
    replay,
    soundness,
    tally,
)
from mlnav.terrain import TerrainError

# -------------------------------------------------------------------------------------------- cases


def test_all_names_classes_steps_ditches_and_real_maps() -> None:
    labels = [c.label for c in cases("all")]
    assert labels[:2] == ["0/0", "0/.05"]
    assert {"steps", "ditches", "ripples", "25/.20", "20/* scaled", "landforms scaled"} < set(
        labels
    )
    real = [f for f in labels if "_" in f]
    assert ("real scaled" in labels) == bool(real)
    assert len(labels) == len(set(labels)) == 33 + len(real) + 7 + bool(real)


def test_scaled_grounds_are_higher_versions_of_plain_ones() -> None:
    plain, scaled = (Case("x", ("class:10/.07",), scaled=s) for s in (False, True))
    factors = []
    for i in range(6):
        a, b = (c.make(np.random.SeedSequence(5, spawn_key=(i,))) for c in (plain, scaled))
        assert (a.shape, a.resolution_m, a.origin_m) == (b.shape, b.resolution_m, b.origin_m)
        ratio = np.ptp(b.z) / np.ptp(a.z)
        assert np.allclose(b.z, a.z * ratio, atol=1e-4)
        factors.append(ratio)
    assert 1.0 < min(factors) < 1.25 < max(factors) < 1.6


def test_a_case_of_several_kinds_draws_all_of_them() -> None:
    case = Case("x", ("class:0/.02", "class:20/.02"))
    tilts = [
        np.ptp(case.make(np.random.SeedSequence(1, spawn_key=(i,))).z) > 4.0 for i in range(12)
    ]
    assert {True, False} == set(tilts)


def test_a_class_is_one_case_however_it_is_written() -> None:
    assert cases("10/0.1") == cases("10/.10")


@pytest.mark.parametrize("spec", ["10/.07", "demo", "steps"])
def test_a_case_is_the_same_for_the_same_seed(spec: str) -> None:
    case = {c.label: c for c in [*cases("10/.07"), *cases("demo"), *cases("all")]}[spec]
    a, b = (case.make(np.random.SeedSequence(5, spawn_key=(1, 2))) for _ in range(2))
    other = case.make(np.random.SeedSequence(5, spawn_key=(1, 3)))
    assert a.sha256 == b.sha256 != other.sha256
    assert 0.05 <= a.resolution_m <= 0.2
    assert a.resolution_m != other.resolution_m
    assert a.origin_m != other.origin_m


def test_real_maps_are_found_by_environment(monkeypatch, tmp_path) -> None:
    (tmp_path / "b.tif").touch()
    (tmp_path / "a.tif").touch()
    monkeypatch.setenv("MLNAV_REAL_TERRAINS", str(tmp_path))
    assert [f.name for f in real_terrain_files()] == ["a.tif", "b.tif"]
    monkeypatch.setenv("MLNAV_REAL_TERRAINS", str(tmp_path / "nowhere"))
    assert real_terrain_files() == []


def test_a_case_that_is_none_is_refused() -> None:
    for spec in ("nowhere", "nowhere.tif", "nowhere.yaml", "80/.07"):
        with pytest.raises(TerrainError):
            cases(spec)


# ---------------------------------------------------------------------------------------- soundness


request_of = partial(SoundnessRequest, workers=0)  # in this process unless workers are the point


def measured(request: SoundnessRequest) -> tuple[dict, list[dict]]:
    suspects: list[dict] = []
    return soundness(request, suspect=suspects.append), suspects


BOXES = Config().replaced(checker="fixed_box", limits="enav_like")


@pytest.mark.parametrize("config", [Config(), BOXES], ids=["verified", "fixed_box"])
def test_soundness_repeats_whatever_the_workers(config: Config) -> None:
    request = request_of(config, "0/.15", 2500, seed=3, random_share=0.1)
    one = measured(request)
    assert measured(request) == one
    assert measured(replace(request, workers=2)) == one
    assert measured(replace(request, seed=4)) != one


def test_the_certified_checker_is_sound_and_not_timid() -> None:
    """A small part of the measurement in docs/benchmarks.md, on the ground that is hardest."""
    for ground in ("0/.20", "15/.10", "ripples"):
        report, suspects = measured(request_of(Config(), ground, 3000, seed=2, random_share=0.2))
        assert report["passed"] > 1000
        assert report["outside_limits"] == report["outside_bounds"] == 0
        assert report["starts"]["box_centre"] == report["starts"]["nominal"] == report["passed"]
        assert report["starts"]["random"] > 7 * 0.15 * report["passed"]
        assert report["safe_rejected"] < 0.02 * report["settled_safe"]
        assert all({"second_state", "not_settled"} & set(s["what"]) for s in suspects)


def test_settle_is_sound_by_definition() -> None:
    config = Config().replaced(checker="settle", limits="enav_like")
    report, _ = measured(request_of(config, "0/.15", 2000, random_share=1.0))
    assert report["passed"] > 1000
    assert report["outside_limits"] == report["safe_rejected"] == 0
    assert report["starts"]["random"] == 7 * report["passed"]
    # A point is no bound: a start in thousands ends in another state near by.
    assert report["outside_bounds"] <= 6


def test_boxes_see_the_same_poses_and_larger_ones_pass_fewer() -> None:
    report = soundness(request_of(BOXES, "5/.10", 1500, boxes=(0.1, 0.2, 0.3)))
    boxes = report["boxes"]
    assert [b["box_half_width_m"] for b in boxes] == [0.1, 0.2, 0.3]
    assert len({b["settled_safe"] for b in boxes}) == 1
    assert boxes[0]["passed"] > boxes[1]["passed"] > boxes[2]["passed"]
    assert boxes[0]["outside_bounds"] > boxes[2]["outside_bounds"]


def test_all_checkers_see_the_same_poses_and_ground() -> None:
    reports = [
        soundness(request_of(Config().replaced(checker=name), "10/.10", 1000, seed=7))
        for name in names_of("checker")
    ]
    assert len({(r["settled_safe"], r["not_settled"]) for r in reports}) == 1
    assert len({r["passed"] for r in reports}) > 2


def test_progress_reaches_the_number_of_poses() -> None:
    seen = []
    soundness(request_of(Config(), "0/.05", 2100), lambda done, note: seen.append(done))
    assert seen == [500, 1000, 1500, 2000, 2100]


def test_a_replay_is_the_same_case_again() -> None:
    _, suspects = measured(request_of(BOXES, "all", 2300, seed=1, random_share=0.1))
    assert {s["start"] for s in suspects} == {"nominal", "box_centre", "random"}
    for record in json.loads(json.dumps(suspects)):  # as from a file
        again = replay(record)
        assert again["passed"]
        assert again["now"] == record["what"] == again["what"]


def test_a_replay_on_other_ground_is_refused() -> None:
    _, suspects = measured(request_of(BOXES, "0/.20", 500))
    record = suspects[0]
    other = record | {"ground": record["ground"] | {"sha256": "0" * 64}}
    with pytest.raises(ReplayError, match="differently"):
        replay(other)
    for broken in ({}, record | {"pose": [1.0]}, record | {"ground": 3}):
        with pytest.raises(ReplayError, match="not a suspicious case"):
            replay(broken)


def columns(n: int, **values) -> dict[str, np.ndarray]:
    """Settled states at rest on level ground, changed by `values`."""
    state = {
        name: np.zeros(n)
        for name in (
            "roll_rad", "pitch_rad", "differential_rad", "bogie_left_rad", "bogie_right_rad",
            "origin_z_m", "tilt_rad", "relief_max_m",
        )
    }  # fmt: skip
    state |= {
        "clearance_m": np.full(n, 0.6),
        "status": np.zeros(n, np.uint8),
        "safe": np.ones(n, bool),
        "reasons": np.zeros(n, np.uint16),
        "heights_m": np.zeros((n, 6)),
    }
    return state | {k: np.asarray(v) for k, v in values.items()}


def verdicts(n: int, **values) -> dict[str, np.ndarray]:
    report = {
        name: np.tile([-0.1, 0.1], (n, 1))
        for name in (
            "roll_rad", "pitch_rad", "differential_rad", "bogie_left_rad", "bogie_right_rad",
            "origin_z_m",
        )
    }  # fmt: skip
    report |= {
        "safe": np.ones(n, bool),
        "reasons": np.zeros(n, np.uint16),
        "tilt_max_rad": np.full(n, 0.1),
        "clearance_min_m": np.full(n, 0.5),
        "relief_max_m": np.full(n, 0.2),
        "inner_steps": np.ones(n, np.int32),
        "lookups": np.ones(n, np.int32),
    }
    return report | {k: np.asarray(v) for k, v in values.items()}


def bit(name: str) -> int:
    return 1 << _core.REASONS.index(name)


def test_tally_counts_each_kind_of_miss() -> None:
    bogie, tilt = bit("bogie"), bit("tilt")
    report = verdicts(
        6,
        safe=[True, True, True, False, False, True],
        reasons=np.array([0, 0, 0, tilt | bogie, tilt, 0], np.uint16),
    )
    nominal = columns(
        6,
        roll_rad=[0.0, 0.0, 0.2, 0.0, 0.0, 0.0],  # pose 2 leaves its bounds
        safe=[True, True, True, True, False, True],
        reasons=np.array([0, 0, 0, 0, tilt, 0], np.uint16),
        status=np.array([0, 0, 0, 0, 0, 9], np.uint8),  # pose 5 did not settle
    )
    rows = np.array([0, 1, 2, 5])
    first = Start("nominal", rows, None, {k: v[rows] for k, v in nominal.items()})
    centre = columns(
        4,
        safe=[True, False, True, True],  # pose 1 is unsafe from the middle of its box
        reasons=np.array([0, bogie, 0, 0], np.uint16),
    )
    heights = np.zeros((2, 6))
    heights[1, 4] = 2 * DISTINCT_M  # pose 2: another state from this start, unsafe, out of bounds
    random = columns(
        2,
        heights_m=heights,
        pitch_rad=[0.2, 0.2],  # pose 0: the same state, out of bounds
        safe=[True, False],
        reasons=np.array([0, tilt], np.uint16),
    )
    starts = [
        first,
        Start("box_centre", rows, np.zeros((4, 6)), centre),
        Start("random", np.array([0, 2]), np.zeros((2, 6)), random),
    ]
    counts = tally(report, nominal, starts, [findings(report, s, starts) for s in starts])
    assert counts["poses"] == 6
    assert counts["passed"] == 4
    assert counts["outside_limits"] == 1
    assert counts["outside_limits:bogie"] == 1
    assert counts["outside_limits:tilt"] == 0
    assert counts["outside_bounds"] == 2
    assert counts["outside_bounds:roll_rad"] == counts["outside_bounds:pitch_rad"] == 1
    assert counts["second_states"] == counts["second_states_unsafe"] == 1
    assert counts["second_state:tilt"] == 1
    assert counts["not_settled"] == counts["nominal/not_settled"] == 1
    assert counts["box_centre/not_settled"] == counts["random/not_settled"] == 0
    assert counts["starts:nominal"] == counts["starts:box_centre"] == 4
    assert counts["starts:random"] == 2
    assert counts["settled_safe"] == 4
    assert counts["safe_rejected"] == 1
    assert counts["rejected:tilt"] == counts["rejected:bogie"] == 1


@pytest.mark.parametrize(
    ("name", "apart", "kind"),
    [
        ("random", 2 * DISTINCT_M, "second_state"),
        ("random", 0.5 * DISTINCT_M, "outside_bounds:roll_rad"),
        # What the nominal guess or the box's centre ends in is never excused.
        ("nominal", 2 * DISTINCT_M, "outside_bounds:roll_rad"),
        ("box_centre", 2 * DISTINCT_M, "outside_bounds:roll_rad"),
    ],
)
def test_only_random_starts_have_second_states(name: str, apart: float, kind: str) -> None:
    rows = np.array([0])
    known = [Start(n, rows, None, columns(1)) for n in ("nominal", "box_centre") if n != name]
    far = columns(1, heights_m=np.full((1, 6), apart), roll_rad=[0.2])
    start = Start(name, rows, np.zeros((1, 6)), far)
    found = findings(verdicts(1), start, [*known, start])
    assert {k for k, hit in found.items() if hit[0]} == {kind}


def test_a_second_state_is_far_from_both_other_states() -> None:
    """Poses of which only one of the other two starts settled there, or neither."""
    rows = np.array([3, 5, 8])
    apart = np.zeros((3, 6))
    apart[:, 2] = 2 * DISTINCT_M
    near_nominal = columns(3, status=np.array([0, 9, 9], np.uint8), heights_m=apart)
    centre = columns(3, status=np.array([0, 0, 9], np.uint8))
    starts = [Start("nominal", rows, None, near_nominal), Start("box_centre", rows, None, centre)]
    start = Start("random", rows, None, columns(3, heights_m=apart))
    found = findings(verdicts(9), start, [*starts, start])
    assert found["second_state"].tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("column", "value", "left"),
    [
        ("clearance_m", 0.4, True),
        ("clearance_m", 0.5, False),
        ("clearance_m", 9.0, False),
        ("tilt_rad", 0.11, True),
        ("tilt_rad", 0.0, False),
        ("relief_max_m", 0.21, True),
        ("relief_max_m", 0.1, False),
        ("roll_rad", -0.1 - 1e-5, False),
        ("roll_rad", -0.1 - 1e-4, True),
        ("origin_z_m", np.nan, True),
    ],
)
def test_bounds_are_one_or_two_sided(column: str, value: float, left: bool) -> None:
    assert left_bounds(verdicts(1), columns(1, **{column: [value]}))[column][0] == left


def test_nominal_heights_are_those_settling_starts_from() -> None:
    """On a ramp along x, heights at the nominal wheels differ by slope times distance."""
    from mlnav.terrain import Terrain

    x = np.arange(100) * 0.1
    terrain = Terrain(np.tile(0.2 * x, (100, 1)), 0.1)
    model = Config().rover_model()
    poses = np.array([[5.0, 5.0, 0.0], [5.0, 5.0, np.pi / 2]])
    heights = nominal_heights(HeightMap.of(terrain).grid, model, poses)
    plan = model.wheel_plan()
    offset = heights[0] - 0.2 * (5.0 + plan[:, 0])
    assert np.ptp(offset) < 1e-6
    assert offset[0] > 0.0  # a wheel on a slope touches uphill of its middle
    assert np.ptp(heights[1] - 0.2 * (5.0 - plan[:, 1])) < 1e-6


# ------------------------------------------------------------------------------------------- cost


def test_cost_compares_all_checkers_on_the_same_poses() -> None:
    seen = []
    report = cost(Config(), ("5/.05", "10/.10"), 60, progress=lambda done, note: seen.append(done))
    assert seen == [0, 1, 2]
    names = names_of("checker")
    assert [(r["ground"], r["checker"]) for r in report["rows"]] == [
        (g, n) for g in ("5/.05", "10/.10") for n in names
    ]
    for row in report["rows"]:
        assert row["us_per_pose"] > 0.0
        assert (row["us_per_passed"] is None) == (row["passed"] == 0)
        assert (row["us_per_rejected"] is None) == (row["passed"] == 60)
        assert row["inner_steps"]["mean"] >= 1.0
    for a in names:
        assert report["ratios"][a][a] == 1.0
        for b in names:
            assert report["ratios"][a][b] * report["ratios"][b][a] == pytest.approx(1.0)


def test_cost_keeps_the_settings_of_the_configured_checker() -> None:
    config = Config().replaced(["checker.max_tries=1", "checker.enclosed_m=0.05"])
    (few,) = cost(config, ("0/.20",), 300, checkers=("verified",))["rows"]
    (more,) = cost(Config(), ("0/.20",), 300, checkers=("verified",))["rows"]
    assert few["passed"] < more["passed"]
    assert few["inner_steps"]["mean"] < more["inner_steps"]["mean"]
