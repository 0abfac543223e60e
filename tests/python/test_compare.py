import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mlnav.bench import compare as compare_module
from mlnav.bench.compare import (
    CompareError,
    Comparison,
    Contender,
    compare,
    contenders,
    entries,
    pair_ground,
    same_states,
    worst_state,
)
from mlnav.bench.compare_report import markdown, report
from rich.console import Console
from typer.testing import CliRunner

from mlnav.cli import app
from mlnav.cli import compare as compare_command
from mlnav.config import Config, ConfigError
from mlnav.core import HeightMap
from mlnav.io import read_jsonl
from mlnav.sim import SimError, drawn_endpoints, screen
from mlnav.stats import mcnemar, paired_mean, paired_ratio
from mlnav.terrain import Reading, Terrain, TerrainError, load, read_geotiff, write_geotiff
from mlnav.trials.flight_time import STAGES, Instructions, load_instructions
from mlnav.trials.scenarios import Entry, ground_of

BASE = Config().replaced(checker="fixed_box", limits="enav_like")

SHORT = """\
size_m: [16, 12]
relief: {rms_1m_m: 0.05}
rocks: {cfa: 0.05}
start: {x_m: 4, y_m: 6}
goal: {x_m: 11, y_m: 6}
"""


@pytest.fixture(scope="module")
def short(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("recipes") / "short.yaml"
    path.write_text(SHORT)
    return path


@pytest.fixture(scope="module")
def rolling(tmp_path_factory) -> Path:
    """A GeoTIFF of 24 x 20 m with a wall nearly across it, and a hole."""
    rng = np.random.default_rng(3)
    z = 0.02 * rng.normal(size=(200, 240))
    z[:150, 110:116] = 2.0
    z[20:40, 20:40] = np.nan
    path = tmp_path_factory.mktemp("maps") / "rolling.tif"
    write_geotiff(path, Terrain(z, 0.1, (100.05, -49.95), name="rolling"))
    return path


def comparison(*specs: object, pairs: int = 2, **changes: Any) -> Comparison:
    two = contenders(BASE, heuristic=["none", "sobel"])
    return replace(Comparison(BASE, two, entries([str(s) for s in specs]), pairs), **changes)


def without_times(records: list[dict]) -> list[dict]:
    return [{k: v for k, v in r.items() if k != "timing"} for r in records]


# -------------------------------------------------------------------------------------- contenders


def test_contenders_are_named_by_what_differs() -> None:
    assert [c.name for c in contenders(BASE, heuristic=["none", "sobel"])] == ["none", "sobel"]
    weights = contenders(BASE, heuristic=["sobel", "sobel:weight_per_m=20;to_go_fraction=0"])
    assert [c.config.heuristic.weight_per_m for c in weights] == [40.0, 20.0]
    assert weights[1].config.heuristic.to_go_fraction == 0.0
    assert len({c.digest for c in weights}) == 2
    steps = contenders(BASE, planner=["enav", "enav:commit_length_m=0.5"])
    assert [c.name for c in steps] == ["enav", "enav:commit_length_m=0.5"]
    assert steps[1].config.planner.commit_length_m == 0.5
    seen = contenders(BASE, heuristic=["none", "sobel"], sensor=["truth", "stereo:dropout=0"])
    assert [c.name for c in seen] == [
        "none+truth", "none+stereo:dropout=0", "sobel+truth", "sobel+stereo:dropout=0",
    ]  # fmt: skip
    assert seen[3].config.sensor.dropout == 0.0


def test_contenders_keep_what_the_configuration_says_of_them() -> None:
    base = BASE.replaced(["heuristic.weight_per_m=7"], heuristic="sobel")
    none, sobel = contenders(base, heuristic=["none", "sobel"])
    assert none.config == BASE
    assert sobel.config.heuristic.weight_per_m == 7.0


@pytest.mark.parametrize(
    ("planners", "heuristics", "kind", "told"),
    [
        (["enav"], ["none"], CompareError, "two contenders"),
        (["enav"], [], CompareError, "two contenders"),
        (["enav"], ["none", "none"], CompareError, "given twice: none"),
        (["enav"], ["none", "sobbel"], ConfigError, "sobel"),
        (["enav"], ["none", ""], ConfigError, "empty"),
        (["enva"], ["none", "sobel"], ConfigError, "enav"),
        (["enav"], ["none", "sobel:wieght_per_m=3"], ConfigError, "weight_per_m"),
    ],
)
def test_bad_contenders_are_refused(planners, heuristics, kind, told) -> None:
    with pytest.raises(kind, match=told):
        contenders(BASE, planner=planners, heuristic=heuristics)


def test_predictors_name_whose_inference_it_is() -> None:
    none, sobel = contenders(BASE, heuristic=["none", "sobel"])
    assert none.predictor is None
    assert sobel.predictor == "sobel"


# ----------------------------------------------------------------------------------------- grounds


def test_each_geotiff_is_driven_with_each_rock_cover(rolling, short) -> None:
    found = entries([str(rolling), "10/.07", str(short)], (0.0, 0.05, 0.1))
    assert [e.label for e in found] == [
        "rolling", "rolling +.05", "rolling +.10", "10/.07", "short"
    ]  # fmt: skip
    assert [e.cfa for e in found] == [0.0, 0.05, 0.1, 0.0, 0.0]
    assert [e.drawn for e in found] == [True, True, True, False, False]


def test_only_geotiffs_are_read_in_some_way(rolling, short) -> None:
    reading = Reading(nodata=(7.0,))
    found = entries([str(rolling), str(short)], (0.0, 0.1), reading)
    assert [e.reading == reading for e in found] == [True, True, False]
    with pytest.raises(CompareError, match="of GeoTIFFs, and none is given"):
        entries([str(short)], reading=reading)
    with pytest.raises(TerrainError, match=r"short\.yaml: band, nodata .* of GeoTIFFs"):
        load(short, reading=reading)


def test_bad_grounds_are_refused(rolling, tmp_path) -> None:
    for specs, covers, kind, told in (
        ([], (0.0,), CompareError, "no terrain"),
        (["10/.07", "10/.07"], (0.0,), CompareError, "twice"),
        (["10/.10", "10/0.1"], (0.0,), CompareError, "twice: 10/.10"),
        (["10/.07"], (0.05,), CompareError, "GeoTIFF"),
        ([str(rolling)], (0.5,), TerrainError, "rock cover"),
        (["nowhere"], (0.0,), TerrainError, "nowhere"),
        (["10/.07", "80/.07"], (0.0,), TerrainError, "80"),
        ([str(tmp_path / "none.tif")], (0.0,), TerrainError, "none.tif"),
    ):
        with pytest.raises(kind, match=told):
            entries(specs, covers)


def test_a_pair_of_a_recipe_has_its_own_terrain_start_and_goal(short) -> None:
    entry, common = Entry("short", str(short)), comparison(short).common
    first, second, later = (
        pair_ground(entry, k, s, None, common) for k, s in ((0, 5), (1, 5), (0, 6))
    )
    assert first.terrain.sha256 != second.terrain.sha256 == later.terrain.sha256
    assert (first.start, first.goal) == ((4.0, 6.0), (11.0, 6.0))


def test_pairs_of_a_map_are_safe_apart_and_joined(rolling) -> None:
    entry, common = Entry("rolling", str(rolling)), comparison(rolling).common
    terrain = read_geotiff(rolling)
    screened = screen(terrain, BASE)
    settle = BASE.replaced(checker="settle").build_checker(terrain.z.size)
    settle.set_map(HeightMap.of(terrain).grid)
    grounds = [pair_ground(entry, k, 1, None, common) for k in range(8)]
    for ground in grounds:
        (ax, ay), (bx, by) = ground.start, ground.goal
        assert np.hypot(bx - ax, by - ay) >= 0.6 * screened.extent_m
        heading = np.arctan2(by - ay, bx - ax)
        assert (settle.reasons(np.array([[ax, ay, heading], [bx, by, heading]])) == 0).all()
        assert screened.joined(ground.start, ground.goal)
    assert len({g.start for g in grounds}) > 4
    ground_of.cache_clear()
    again = pair_ground(entry, 3, 1, None, common)
    assert (again.start, again.goal) == (grounds[3].start, grounds[3].goal)


def test_size_keeps_pairs_in_the_middle(rolling) -> None:
    entry, common = Entry("rolling", str(rolling)), comparison(rolling).common
    middle = np.array([112.0, -40.0])
    for k in range(4):
        ground = pair_ground(entry, k, 1, 14.0, common)
        assert np.abs(np.array([ground.start, ground.goal]) - middle).max() <= 7.0
        assert np.hypot(*np.subtract(ground.goal, ground.start)) >= 0.6 * 14.0 - 1e-9


def test_rocky_pairs_are_clear_about_their_ends_and_joined(rolling) -> None:
    entry, common = Entry("rolling +.10", str(rolling), 0.1), comparison(rolling).common
    bare = read_geotiff(rolling)
    ground = pair_ground(entry, 2, 1, None, common)
    raised = np.nan_to_num(ground.terrain.z - bare.z)
    assert raised.max() > 0.1
    (ny, nx), (ox, oy) = bare.shape, bare.origin_m
    x, y = np.meshgrid(ox + 0.1 * np.arange(nx), oy + 0.1 * np.arange(ny))
    for px, py in (ground.start, ground.goal):
        assert raised[np.hypot(x - px, y - py) < 2.5].max() == 0.0
    assert screen(ground.terrain, BASE).joined(ground.start, ground.goal)


def test_a_wall_parts_the_screen() -> None:
    z = np.zeros((160, 240), np.float32)
    z[:, 118:124] = 3.0
    terrain = Terrain(z, 0.1, (0.05, 0.05))
    screened = screen(terrain, BASE)
    assert screened.joined((4.0, 4.0), (4.0, 12.0))
    assert not screened.joined((4.0, 8.0), (20.0, 8.0))
    assert not screened.joined((12.0, 8.0), (12.0, 8.0))
    with pytest.raises(SimError, match="hang together"):
        drawn_endpoints(terrain, BASE, np.random.default_rng(0), screened, apart_m=15.0)


def test_coarse_and_forbidden_ground_is_left_out() -> None:
    z = np.zeros((160, 240), np.float32)
    spacing = np.full(z.shape, 0.15, np.float32)
    spacing[:, 120:] = 1.0
    fine = screen(Terrain(z, 0.1, (0.05, 0.05), layers={"source_mesh_spacing_m": spacing}), BASE)
    assert fine.group[:, fine.x_m < 9.0].any()
    assert not fine.group[:, fine.x_m > 12.0].any()
    zone = [[0.0, 0.0], [12.0, 0.0], [12.0, 16.0], [0.0, 16.0]]
    zoned = screen(Terrain(z, 0.1, (0.05, 0.05)), Config(**{**dict(BASE), "keep_out": [zone]}))
    assert not zoned.group[:, zoned.x_m < 12.0].any()
    assert zoned.group[:, zoned.x_m > 13.0].any()
    with pytest.raises(SimError, match="rover-scale"):
        bad = np.full(z.shape, 1.0, np.float32)
        screen(Terrain(z, 0.1, layers={"source_mesh_spacing_m": bad}), BASE)


# -------------------------------------------------------------------------------------------- runs


@pytest.fixture(scope="module")
def driven(short, tmp_path_factory) -> tuple[Comparison, list[dict], Path]:
    what = comparison(short)
    path = tmp_path_factory.mktemp("runs") / "records.jsonl"
    return what, compare(what, path), path


def test_everyone_drives_the_same_pairs(driven) -> None:
    _, records, _ = driven
    assert [(r["pair"], r["heuristic"]) for r in records] == [
        (0, "none"), (0, "sobel"), (1, "none"), (1, "sobel")
    ]  # fmt: skip
    for a, b in (records[:2], records[2:]):
        assert all(a[k] == b[k] for k in ("terrain_sha256", "start", "goal", "seed"))
        assert a["config"] != b["config"]
    assert records[0]["terrain_sha256"] != records[2]["terrain_sha256"]
    for r in records:
        cycles = r["by_cycle"]
        assert {len(v) for v in cycles.values()} == {len(r["evaluations"])} == {r["cycles"]}
        assert sum(r["evaluations"]) == r["ace_evaluations"]
        assert sum(cycles["inferences"]) == (0 if r["heuristic"] == "none" else r["cycles"])


def test_processes_change_nothing(driven, tmp_path) -> None:
    what, records, _ = driven
    again = compare(what, tmp_path / "records.jsonl", workers=2)
    assert without_times(again) == without_times(records)
    on_disk = list(read_jsonl(tmp_path / "records.jsonl"))
    assert sorted(without_times(on_disk), key=str) == sorted(without_times(records), key=str)


def test_a_stopped_comparison_goes_on(driven, tmp_path, monkeypatch) -> None:
    what, records, _ = driven
    path = tmp_path / "records.jsonl"
    real, calls = compare_module._run, []

    def stopping(task):
        calls.append(task.key)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(task)

    monkeypatch.setattr(compare_module, "_run", stopping)
    with pytest.raises(KeyboardInterrupt):
        compare(what, path)
    assert len(list(read_jsonl(path))) == 2
    notes: list[tuple[int, str]] = []
    again = compare(what, path, progress=lambda done, note: notes.append((done, note)))
    assert without_times(again) == without_times(records)
    assert len(calls) == 5  # two, the one that was stopped, and two
    assert notes[0] == (2, "resumed")
    assert notes[-1][0] == 4
    more = compare(replace(what, pairs=3), path)
    assert more[:4] == again
    assert len(calls) == 7


def test_records_of_another_comparison_are_refused(driven, tmp_path) -> None:
    what, _, path = driven
    with pytest.raises(CompareError, match="seed 0, not 1"):
        compare(replace(what, seed=1), path)
    other = replace(what, base=BASE.replaced(["traverse.ace_budget=50"]))
    with pytest.raises(CompareError, match="ace_budget None, not 50"):
        compare(other, path)
    read = [replace(e, reading=Reading(nodata=(0.0,))) for e in what.entries]
    with pytest.raises(CompareError, match=r"reading .*'nodata': \[\].*, not .*\[0\.0\]"):
        compare(replace(what, entries=read), path)
    foreign = tmp_path / "records.jsonl"
    foreign.write_text('{"class": "10/.07"}\n')
    with pytest.raises(CompareError, match="another comparison"):
        compare(what, foreign)


def test_worst_state_is_where_the_first_spent_most(driven) -> None:
    what, records, _ = driven
    state, cycle, spent = worst_state(what, records, what.entries[0])
    mine = [r for r in records if r["heuristic"] == "none"]
    assert spent == max(max(r["evaluations"]) for r in mine)
    run = mine[state.pair]
    assert run["evaluations"][cycle] == spent
    assert list(state.pose) == run["by_cycle"]["pose"][cycle]


def test_same_states_are_planned_once_by_everyone(driven, tmp_path) -> None:
    what, records, _ = driven
    states = same_states(what, records, 5, tmp_path / "states.jsonl")
    assert same_states(what, records, 5, tmp_path / "states.jsonl") == states
    assert len(list(read_jsonl(tmp_path / "states.jsonl"))) == len(states)
    first = [s for s in states if s["config"] == what.contenders[0].digest]
    second = [s for s in states if s["config"] == what.contenders[1].digest]
    assert sum(len(s["evaluations"]) for s in first) == 5
    assert [s["states"] for s in first] == [s["states"] for s in second]
    block = report(what, records, states)["overall"]
    both = [
        (a, b)
        for p, q in zip(first, second, strict=True)
        for a, b, f, g in zip(
            p["evaluations"], q["evaluations"], p["found"], q["found"], strict=True
        )
        if f and g
    ]
    assert block["same_states"]["none/sobel"] == len(both)
    assert block["same_state_ratio"]["none/sobel"] == pytest.approx(
        sum(a for a, _ in both) / sum(b for _, b in both)
    )


# ---------------------------------------------------------------------------------------- numbers


def test_paired_ratio_is_of_means_and_its_interval_of_pairs() -> None:
    top, bottom = [100.0, 300.0], [50.0, 30.0]
    cycles = [10.0, 10.0]
    got = paired_ratio(top, cycles, bottom, [10.0, 10.0])
    assert got.value == pytest.approx(5.0)
    assert (got.n, got.interval) == (2, None)  # of two pairs an interval would say nothing
    many = paired_ratio(top * 4, cycles * 4, bottom * 4, [10.0] * 8)
    assert 2.0 <= many.interval[0] < 5.0 < many.interval[1] <= 10.0
    same = paired_ratio([40.0] * 9, [4.0] * 9, [10.0] * 9, [2.0] * 9)
    assert same.value == pytest.approx(2.0)
    assert same.interval is None
    assert paired_ratio([], [], [], []).value is None
    assert paired_ratio([1.0], [1.0], [0.0], [1.0]).value is None


def test_strata_are_drawn_each_for_itself() -> None:
    top, bottom = [10.0] * 5 + [1000.0] * 5, [10.0] * 10
    ones = [1.0] * 10
    mixed = paired_ratio(top, ones, bottom, ones)
    kept = paired_ratio(top, ones, bottom, ones, [0] * 5 + [1] * 5)
    assert kept.value == mixed.value
    assert kept.interval is None  # nothing varies within a stratum
    assert mixed.interval[1] - mixed.interval[0] > 1.0


def test_paired_mean_covers_the_truth() -> None:
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(60):
        low, high = paired_mean(rng.normal(0.3, 1.0, 40).tolist()).interval
        hits += low < 0.3 < high
    assert 50 <= hits <= 60


def test_mcnemar_is_exact() -> None:
    a = [True] * 9 + [False] * 1 + [True] * 5 + [False] * 3
    b = [False] * 9 + [True] * 1 + [True] * 5 + [False] * 3
    test = mcnemar(a, b)
    assert (test["only_a"], test["only_b"], test["both"], test["neither"]) == (9, 1, 5, 3)
    assert test["p"] == pytest.approx(2 * 11 / 1024)
    assert mcnemar([True, False], [True, False])["p"] == 1.0
    assert mcnemar([], [])["p"] == 1.0


def made_record(entry: str, pair: int, contender: Contender, **changes: Any) -> dict[str, Any]:
    evaluations = changes.pop("evaluations")
    n = len(evaluations)
    record = {
        "entry": entry,
        "pair": pair,
        "config": contender.digest,
        "outcome": "goal_reached",
        "success": True,
        "cycles": n,
        "driven_m": float(n),
        "inefficiency": 0.1,
        "ace_evaluations": sum(evaluations),
        "evaluations": evaluations,
        "events": {"count": 0, "distinct": []},
        "timing": {"wall_s": 1.0, "stage_s": {"sense": 9.0, "plan": 0.001 * n, "plan.ace": 5.0}},
        "by_cycle": {
            "floor": [20] * n,
            "rejected": [1] * n,
            "inferences": [0] * n,
            "risk_used": [0] * n,
            "ranked_again": [0] * n,
        },
    }
    return record | changes


def test_report_arithmetic() -> None:
    a, b = contenders(BASE, heuristic=["none", "sobel"])
    what = Comparison(BASE, [a, b], [Entry("x", "x"), Entry("y", "y")], 2)
    risk = {
        "floor": [25, None],
        "rejected": [0, 4],
        "inferences": [1, 0],
        "risk_used": [1, 1],
        "ranked_again": [1, 0],
    }
    failed = {"success": False, "outcome": "stuck", "inefficiency": None}
    runs = [
        made_record("x", 0, a, evaluations=[100, 300]),
        made_record("x", 1, a, evaluations=[40, 60], **failed),
        made_record("y", 0, a, evaluations=[10]),
        made_record("y", 1, a, evaluations=[10], inefficiency=0.5),
        made_record("x", 0, b, evaluations=[50, 50], by_cycle=risk, inefficiency=0.3),
        made_record("x", 1, b, evaluations=[20, 20]),
        made_record("y", 0, b, evaluations=[20]),
        made_record("y", 1, b, evaluations=[20], inefficiency=0.1),
    ]
    told = report(what, runs)
    x = told["terrains"]["x"]
    assert x["ratio"]["none/sobel"] == pytest.approx(200 / 50)
    assert x["ratio"]["sobel/none"] == pytest.approx(50 / 200)
    assert x["ratio_pairs"]["none/sobel"] == 1
    assert x["ratio_all_cycles"]["none/sobel"] == pytest.approx(125 / 35)
    assert x["inefficiency_difference"]["none/sobel"] == pytest.approx(-0.2)
    assert x["success_test"]["none/sobel"]["only_b"] == 1
    assert told["ratio"]["none/sobel"] == pytest.approx((420 / 4) / (140 / 4))
    assert told["overall"]["inefficiency_difference"]["none/sobel"] == pytest.approx(0.2 / 3)
    assert told["ratio_ci95"]["none/sobel"] is None  # of three pairs

    none, sobel = x["contenders"]["none"], x["contenders"]["sobel"]
    assert none["success"]["rate"] == 0.5
    assert none["outcomes"] == {"goal_reached": 1, "stuck": 1}
    assert none["evaluations_per_cycle"]["mean"] == 125.0
    assert none["overthink_rate"] == 0.25
    assert none["evaluations_over_floor"] == pytest.approx(125 / 20)
    assert none["evaluations_above_floor"] == pytest.approx(105)
    assert none["evaluations_per_m"] == pytest.approx(125)
    assert none["wall_ms_per_cycle"] == pytest.approx(1.0)  # neither the world nor parts of parts
    assert none["modelled_flight"] == {"ace_s_per_cycle": pytest.approx(1.25)}
    assert sobel["floor_per_cycle"] == pytest.approx((25 + 40) / 3)
    assert sobel["inferences_per_cycle"] == 0.25
    assert sobel["risk_used_rate"] == 0.5
    assert x["wall_ratio"]["none/sobel"] == pytest.approx(1.0)
    assert "left out" in told["assumptions"][1]
    assert told["overall"]["pairs"] == 4
    json.dumps(told, allow_nan=False)


def test_a_heuristic_that_is_out_of_work_is_told_of() -> None:
    a, b = contenders(BASE, heuristic=["none", "sobel"])
    what = Comparison(BASE, [a, b], [Entry("x", "x")], 1)
    idle = {"risk_asked": 10, "risk_missing": 9}
    told = report(
        what,
        [
            made_record("x", 0, a, evaluations=[5], risk_asked=0, risk_missing=0),
            made_record("x", 0, b, evaluations=[5], **idle),
        ],
    )
    numbers = told["overall"]["contenders"]
    assert numbers["none"]["out_of_work"] is None
    assert "no map in 9 of 10 cycles" in numbers["sobel"]["out_of_work"]
    assert "**sobel: the heuristic had no map" in markdown(told)


def test_report_of_runs_that_never_moved() -> None:
    a, b = contenders(BASE, heuristic=["none", "sobel"])
    what = Comparison(BASE, [a, b], [Entry("x", "x")], 1)
    gone = {"success": False, "outcome": "start_unsafe", "inefficiency": None, "driven_m": 0.0}
    told = report(what, [made_record("x", 0, c, evaluations=[], **gone) for c in (a, b)])
    assert told["ratio"]["none/sobel"] is None
    assert told["ratio_ci95"]["none/sobel"] is None
    assert told["overall"]["contenders"]["none"]["evaluations_per_cycle"]["mean"] is None


# ----------------------------------------------------------------------------------- instructions


def made_counts(tmp_path: Path, **network: float) -> Instructions:
    stages = dict.fromkeys(STAGES, 10) | {"set_map": {"fixed_box": 1000}}
    path = tmp_path / "counts.json"
    path.write_text(
        json.dumps(
            {
                "network": network,
                "stages": stages,
                "checkers": {"fixed_box/enav_like": {"pass": 3, "reject": 2}},
                "assumptions": "made up",
            }
        )
    )
    counts = load_instructions(path)
    assert counts is not None
    return counts


def test_instructions_enter_the_report(driven, tmp_path) -> None:
    what, records, _ = driven
    told = report(what, records, (), made_counts(tmp_path, sobel=500))
    assert "made up" in told["assumptions"][1]
    for name, each in (("none", 0), ("sobel", 10 + 500)):
        flight = told["overall"]["contenders"][name]["modelled_flight"]
        runs = [r for r in records if r["heuristic"] == name]
        cycles, spent = sum(r["cycles"] for r in runs), sum(r["ace_evaluations"] for r in runs)
        rejected, tried = (
            sum(sum(r["by_cycle"][k]) for r in runs) for k in ("rejected", "paths_tried")
        )
        expected = 1000 + 4 * 10 + each + (3 * spent - rejected + 10 * tried) / cycles
        assert flight["instructions_per_cycle"] == pytest.approx(expected)
        assert flight["instructions_s_per_cycle"]["rad750_class"] == pytest.approx(expected / 200e6)
        assert flight["ace_s_per_cycle"] == pytest.approx(0.01 * spent / cycles)


def test_a_contender_without_counts_says_so(driven, tmp_path) -> None:
    what, records, _ = driven
    told = report(what, records, (), made_counts(tmp_path))
    flights = {n: c["modelled_flight"] for n, c in told["overall"]["contenders"].items()}
    assert flights["none"]["instructions_per_cycle"] > 0
    assert flights["sobel"]["instructions_s_per_cycle"] is None
    assert "'sobel'" in flights["sobel"]["note"]


# ---------------------------------------------------------------------------------------- command


def run(*args: object, code: int = 0):
    result = CliRunner().invoke(app, ["compare", *(str(a) for a in args)])
    assert result.exit_code == code, result.output
    return result


SETUP = ("--checker", "fixed_box", "--limits", "enav_like")


@pytest.fixture(scope="module")
def commanded(short, rolling, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("compare")
    run("--terrain", short, rolling, *SETUP, "--pairs", 1, "--size", 16, "--same-state", 3,
        "--out", out, "--seed", 2)  # fmt: skip
    return out


def test_the_folder_holds_records_numbers_and_pictures(commanded) -> None:
    told = json.loads((commanded / "compare.json").read_text())
    assert list(told["terrains"]) == ["short", "rolling"]
    assert told["ratio"]["none/sobel"] > 0
    assert told["overall"]["same_states"]["none/sobel"] > 0
    assert len(list(read_jsonl(commanded / "records.jsonl"))) == 4
    assert (commanded / "compare.png").stat().st_size > 10_000
    assert len(list((commanded / "states").glob("*.png"))) == 2


def test_help_has_examples_and_exit_codes() -> None:
    text = run("--help").stdout
    assert "Examples" in text
    assert "130" in text


def test_json_is_one_object_and_a_table_fits_a_terminal(commanded, short, rolling) -> None:
    again = ("--terrain", f"{short},{rolling}", *SETUP, "--pairs", 1, "--size", 16, "--same-state",
             3, "--out", commanded, "--seed", 2, "--no-pictures")  # fmt: skip
    told = json.loads(run(*again, "--json").stdout)
    assert told == json.loads((commanded / "compare.json").read_text())
    text = run(*again).stdout
    rows = [line for line in text.splitlines() if line.startswith(("none ", "sobel "))]
    assert len(rows) == 12  # endings and effort of two terrains and of all
    assert all(len(line.rstrip()) <= 80 for line in rows)
    assert "10 ms" in text


def unsafe_report() -> dict[str, Any]:
    a, b = contenders(BASE, heuristic=["none", "sobel:weight_per_m=20;to_go_fraction=0"])
    where = "a_valley_north_of_the_second_landing_ellipse"
    ends = (
        {"outcome": "unsafe_state", "unsafe_states": 5, "unsafe_state": {"constraint": "relief"}},
        {"outcome": "goal_reached", "unsafe_states": 1, "unsafe_state": {"constraint": "tilt"}},
        {"outcome": "no_safe_path", "unsafe_states": 0, "unsafe_state": None},
        {"outcome": "high_centred"},
    )
    runs = [
        *(made_record(where, i, a, evaluations=[1500] * 50, success=False, inefficiency=None, **end)
          for i, end in enumerate(ends)),
        *(made_record(where, i, b, evaluations=[20] * 50, unsafe_states=0) for i in range(4)),
    ]  # fmt: skip
    return report(Comparison(BASE, [a, b], [Entry(where, where)], 4), runs)


def test_unsafe_runs_are_reported_by_contender() -> None:
    summary = unsafe_report()
    none, sobel = summary["overall"]["contenders"].values()
    assert none["endings"] == {"goal reached": 0, "unsafe": 3, "no safe path": 1, "other": 0}
    assert sobel["endings"] == {"goal reached": 4, "unsafe": 0, "no safe path": 0, "other": 0}
    assert none["safety"]["unsafe"]["hits"] == 3
    assert none["safety"]["unsafe_per_km"] == 15.0  # in 200 m
    assert none["safety"]["unsafe_states_per_km"] == pytest.approx(6 / 0.15)  # of those that tell
    assert none["safety"]["causes"] == {"relief": 1, "tilt": 1, "high_centred": 1}
    text = markdown(summary)
    assert "| none | 3/4 | 75.0 % [30.1, 95.4] | 15.00 | 40.0 | relief 1, tilt 1" in text


def test_the_screen_tells_of_unsafe_runs_and_cuts_no_name_at_80_columns(monkeypatch) -> None:
    screen = Console(width=80, file=io.StringIO(), highlight=False)
    monkeypatch.setattr(compare_command, "output", screen)
    summary = unsafe_report()
    compare_command.print_report(summary)
    text = screen.file.getvalue()
    lines = text.splitlines()
    assert "…" not in text
    assert all(len(line) <= 80 for line in lines)
    none, effort = [line for line in lines if line.startswith("none ")][:2]
    assert none.split() == ["none", "3/4", "75.0", "%", "[30.1,", "95.4]", "15.00", "0/4", "1", "0"]
    assert effort.split()[1:3] == ["1500.0", "1500"]
    for title in ("unsafe", "mean"):  # the first columns of the two tables, put together again
        at = next(i for i, line in enumerate(lines) if line.split()[:1] == [title])
        width = len(lines[at + 2].split("  ")[0])
        name = "".join(line[:width].strip() for line in lines[at + 2 : at + 6])
        assert name.startswith("sobel:weight_per_m=20;to_go_fraction=0")


def test_bad_input_is_refused(commanded, short, tmp_path) -> None:
    fresh = ("--out", tmp_path / "new", "--no-pictures", *SETUP)
    for args, told in (
        ((), "--terrain"),
        (("-t", "nowhere"), "nowhere"),
        (("-t", "10/.07", "80/.07"), "80"),
        (("-t", short, "--heuristics", "none,sobbel"), "did you mean 'sobel'"),
        (("-t", short, "--planners", "enva"), "did you mean 'enav'"),
        (("-t", short, "--heuristics", "none"), "two contenders"),
        (("-t", short, "--pairs", 0), "--pairs"),
        (("-t", short, "--rocks", "0.1"), "GeoTIFF"),
        (("-t", short, "--rocks", "a"), "--rocks"),
    ):
        result = run(*args, *fresh, code=2)
        assert told in " ".join(result.stderr.split()), result.stderr
        assert result.stdout == ""
    assert not (tmp_path / "new").exists()
    result = run("-t", short, *SETUP, "--out", commanded, "--seed", 3, code=2)
    assert "another comparison" in " ".join(result.stderr.split())


def test_force_starts_anew(short, tmp_path) -> None:
    (tmp_path / "records.jsonl").write_text('{"something": "else"}\n')
    args = ("-t", short, *SETUP, "--pairs", 1, "--out", tmp_path, "--no-pictures")
    run(*args, code=2)
    run(*args, "--force")
    assert len(list(read_jsonl(tmp_path / "records.jsonl"))) == 2
