import json

import numpy as np
import pytest

from mlnav import _core
from mlnav.bench import Rate, SoundnessRequest, soundness
from mlnav.bench.cases import cases, real_terrain_files
from mlnav.bench.soundness import left_bounds, nominal_heights, tally
from mlnav.bench.traverses import class_table, config_digest
from mlnav.config import Config
from mlnav.core import HeightMap
from mlnav.terrain import TerrainError


def test_wilson_intervals() -> None:
    # Brown, Cai, DasGupta 2001, and the rule of three's better kin
    low, high = Rate(0, 100).interval
    assert (low, high) == pytest.approx((0.0, 0.03699), abs=1e-5)
    assert Rate(8, 10).interval == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert Rate(0, 0).interval is None
    assert Rate(0, 0).as_dict()["rate"] is None
    assert Rate(0, 0).text() == "-"


# -------------------------------------------------------------------------------------------- cases


def test_all_names_classes_steps_ditches_and_real_maps() -> None:
    labels = [c.label for c in cases("all")]
    assert labels[:2] == ["0/0.00", "0/0.05"]
    assert {"steps", "ditches", "25/0.20"} < set(labels)
    assert len(labels) == len(set(labels)) == 32 + len([f for f in labels if "_" in f])


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


def report_of(request: SoundnessRequest) -> str:
    return json.dumps(soundness(request), sort_keys=True)


def test_soundness_repeats_whatever_the_workers() -> None:
    request = SoundnessRequest(Config(), "0/.15", 2500, seed=3)
    one = report_of(request)
    assert report_of(request) == one
    assert report_of(SoundnessRequest(Config(), "0/.15", 2500, seed=3, workers=2)) == one
    assert report_of(SoundnessRequest(Config(), "0/.15", 2500, seed=4)) != one


def test_settle_is_sound_by_definition() -> None:
    config = Config().replaced(checker="settle")
    report = soundness(SoundnessRequest(config, "0/.15", 2000))
    assert report["passed"] > 1000
    # A pose in thousands has a second settled state.
    assert report["outside_bounds"] <= 2
    assert report["safe_rejected"] == 0


def test_boxes_see_the_same_poses_and_larger_ones_pass_fewer() -> None:
    report = soundness(SoundnessRequest(Config(), "5/.10", 1500, boxes=(0.1, 0.2, 0.3)))
    boxes = report["boxes"]
    assert [b["box_half_width_m"] for b in boxes] == [0.1, 0.2, 0.3]
    assert len({b["settled_safe"] for b in boxes}) == 1
    assert boxes[0]["passed"] > boxes[1]["passed"] > boxes[2]["passed"]
    assert boxes[0]["outside_bounds"] > boxes[2]["outside_bounds"]


def test_progress_reaches_the_number_of_poses() -> None:
    seen = []
    soundness(SoundnessRequest(Config(), "0/.05", 2100), lambda done, note: seen.append(done))
    assert seen == [500, 1000, 1500, 2000, 2100]


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
        "inner_steps": np.ones(n, np.int32),
        "lookups": np.ones(n, np.int32),
    }
    return report | {k: np.asarray(v) for k, v in values.items()}


def test_tally_counts_each_kind_of_miss() -> None:
    bogie, tilt = 1 << _core.REASONS.index("bogie"), 1 << _core.REASONS.index("tilt")
    report = verdicts(
        6,
        safe=[True, True, True, False, False, True],
        reasons=np.array([0, 0, 0, tilt | bogie, tilt, 0], np.uint16),
    )
    first = columns(
        6,
        roll_rad=[0.0, 0.0, 0.2, 0.0, 0.0, 0.0],  # pose 2 leaves its bounds
        safe=[True, True, True, True, False, True],
        status=np.array([0, 0, 0, 0, 0, 9], np.uint8),  # pose 5 did not settle
    )
    second = columns(
        6,
        safe=[True, False, True, True, False, True],  # pose 1 is unsafe from the other start
        reasons=np.array([0, bogie, 0, 0, tilt, 0], np.uint16),
    )
    counts = tally(report, (first, second))
    assert counts["poses"] == 6
    assert counts["passed"] == 4
    assert counts["outside_limits"] == 1
    assert counts["limits:bogie"] == 1
    assert counts["outside_bounds"] == 1
    assert counts["bounds:roll_rad"] == 1
    assert counts["not_settled"] == counts["passed_not_settled"] == 1
    assert counts["settled_safe"] == 3
    assert counts["safe_rejected"] == 1
    assert counts["rejected:tilt"] == counts["rejected:bogie"] == 1


@pytest.mark.parametrize(
    ("column", "value", "left"),
    [
        ("clearance_m", 0.4, True),
        ("clearance_m", 0.5, False),
        ("clearance_m", 9.0, False),
        ("tilt_rad", 0.11, True),
        ("tilt_rad", 0.0, False),
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


# ---------------------------------------------------------------------------------------- traverses


def test_class_table_pools_cycles() -> None:
    timing = {"wall_s": 1.0, "stage_s": {"plan": 0.2}}
    common = {"class": "0/.1", "timing": timing, "driven_m": 10.0}
    good = {"success": True, "outcome": "goal_reached", "inefficiency": 0.2, "evaluations": [1, 3]}
    bad = {"success": False, "outcome": "stuck", "inefficiency": None, "evaluations": [300, 500]}
    (row,) = class_table([common | good, common | bad])
    assert row["runs"] == 2
    assert row["success"]["rate"] == 0.5
    assert row["outcomes"] == {"goal_reached": 1, "stuck": 1}
    assert row["evaluations_per_cycle"]["mean"] == 201.0
    assert row["evaluations_per_cycle"]["median"] == 151.5
    assert row["overthink_rate"] == 0.5
    assert row["inefficiency"] == 0.2
    assert row["evaluations_per_m"] == pytest.approx(40.2)
    assert row["stage_ms_per_cycle"]["plan"] == pytest.approx(100.0)


def test_a_digest_tells_configurations_apart() -> None:
    assert config_digest(Config()) == config_digest(Config())
    assert config_digest(Config()) != config_digest(Config().replaced(heuristic="sobel"))
