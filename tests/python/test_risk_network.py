"""The network heuristic, on networks of one layer whose output is known by hand."""

import hashlib
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from mlnav import risk
from mlnav.cli import app
from mlnav.config import Config
from mlnav.core import HeightMap
from mlnav.io.records import to_json
from mlnav.risk import ModelError, RiskMap, held_to_contract, make_heuristic, models
from mlnav.risk.network import network_input
from mlnav.sim import TruthSensor, out_of_work, traverse
from mlnav.terrain import Terrain, benchmark_class, load
from mlnav.trials.records import Reliability, risk_at

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.onnx


def network(
    *,
    height=0.0,
    known=0.0,
    bias=0.0,
    cells=(160, 160),
    bins=16,
    ratio=2,
    names=("ground", "risk"),
    kind_in=onnx.TensorProto.FLOAT,
    shape_in=None,
    shape_out=None,
    second_output=False,
) -> bytes:
    """p[k] = height x (mean height of its cells) + known x (share known) + bias[k]."""
    kind = onnx.TensorProto.FLOAT
    weights = np.empty((bins, 2, ratio, ratio), np.float32)
    weights[:, 0], weights[:, 1] = height / ratio**2, known / ratio**2
    out = tuple(n // ratio for n in cells)
    helper = onnx.helper
    outputs = [helper.make_tensor_value_info(names[1], kind, shape_out or (1, bins, *out))]
    nodes = [
        helper.make_node("Cast", [names[0]], ["x"], to=kind),
        helper.make_node("Conv", ["x", "w", "b"], [names[1]], strides=[ratio, ratio]),
    ]
    if second_output:
        nodes.append(helper.make_node("Neg", [names[1]], ["more"]))
        outputs.append(helper.make_tensor_value_info("more", kind, (1, bins, *out)))
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(names[0], kind_in, shape_in or (1, 2, *cells))],
        outputs,
        [
            onnx.numpy_helper.from_array(weights, "w"),
            onnx.numpy_helper.from_array(np.broadcast_to(bias, bins).astype(np.float32), "b"),
        ],
    )
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=9).SerializeToString()


def manifest(**changes) -> dict:
    """A manifest; keys 'input.cells' change what is inside."""
    data = {
        "schema": 1,
        "name": "tiny",
        "sha256": "",
        "opset": 17,
        "input": {
            "name": "ground",
            "channels": ["height_m", "known"],
            "resolution_m": 0.1,
            "cells": [160, 160],
            "datum": "mean of the window's known heights",
        },
        "output": {"name": "risk", "bins": 16, "resolution_m": 0.2, "cells": [80, 80]},
        "labels": {"checker": "fixed_box", "limits": "enav_like"},
        "parameters": 144,
        "macs": 819200,
        "training": {},
        "metrics": {},
    }
    for key, value in changes.items():
        *path, last = key.split("__")
        node = data
        for part in path:
            node = node[part]
        if value is ...:
            del node[last]
        else:
            node[last] = value
    return data


def write(folder: Path, content: bytes | None = None, **changes) -> Path:
    content = network() if content is None else content
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(content)
    data = manifest(**{"sha256": hashlib.sha256(content).hexdigest()} | changes)
    (folder / "manifest.json").write_text(json.dumps(data))
    return folder


def configured(model: Path | str, *settings: str) -> Config:
    return Config().replaced(
        [f"heuristic.model={json.dumps(str(model))}", *settings],
        heuristic="network",
        checker="fixed_box",
        limits="enav_like",
    )


@pytest.fixture
def shipped(tmp_path, monkeypatch) -> Path:
    """An empty folder of shipped models."""
    folder = tmp_path / "shipped"
    folder.mkdir()
    monkeypatch.setattr(models, "model_folder", lambda: folder)
    monkeypatch.setattr(risk, "model_folder", lambda: folder)
    return folder


def ground(ny=300, nx=420, res=0.1, origin=(3.05, -7.05)) -> HeightMap:
    z = np.random.default_rng(5).normal(0.0, 1.0, (ny, nx))
    return HeightMap(z.astype(np.float32), res, origin)


def level(nx=240, ny=160) -> Terrain:
    return Terrain(
        np.zeros((ny, nx)), 0.1, (0.05, 0.05), name="level", start_m=(4.0, 8.0), goal_m=(19.0, 8.0)
    )


@pytest.fixture(scope="module")
def rocky() -> Terrain:
    return benchmark_class(15.0, 0.10, seed=3)


# ------------------------------------------------------------------------------------- the contract


def test_risk_lies_over_the_ground_it_was_predicted_from(tmp_path) -> None:
    """Every output cell has the mean height of the four map cells inside it, on an uneven map."""
    seen = ground()
    heuristic = make_heuristic(configured(write(tmp_path, network(height=1.0))))
    pose = (24.3, 9.6, 1.0)
    found = heuristic.risk(seen, pose)
    assert found.p.shape == (16, 80, 80)
    assert found.p.dtype == np.float32
    assert found.resolution_m == pytest.approx(0.2)
    assert heuristic.max_cells(seen.z.size) == found.p.size
    (x, y), (x0, y0) = found.origin_m, seen.origin_m
    ix, iy = (x - 0.05 - x0) / 0.1, (y - 0.05 - y0) / 0.1
    assert (ix, iy) == pytest.approx((round(ix), round(iy)), abs=1e-6)
    ix, iy = round(ix), round(iy)
    assert ix % 4 == iy % 4 == 0
    assert abs(x - 0.1 + 8.0 - pose[0]) <= 0.3  # the rover is in the middle
    assert abs(y - 0.1 + 8.0 - pose[1]) <= 0.3
    under = seen.z[iy : iy + 160, ix : ix + 160].astype(np.float64)
    expected = (under - under.mean()).reshape(80, 2, 80, 2).mean(axis=(1, 3))
    for heading in found.p:
        np.testing.assert_allclose(heading, expected, atol=1e-5)


def test_beyond_the_map_and_holes_are_unknown(tmp_path) -> None:
    z = ground(120, 200).z.copy()
    z[40:60, 10:30] = np.nan
    seen = HeightMap(z, 0.1, (0.05, 0.05))
    heuristic = make_heuristic(configured(write(tmp_path, network(known=1.0))))
    found = heuristic.risk(seen, (1.0, 2.0, 0.0))
    (x, y), res = found.origin_m, found.resolution_m
    cx, cy = np.meshgrid(x + res * np.arange(80), y + res * np.arange(80))
    inside = (cx > 0.0) & (cx < 20.0) & (cy > 0.0) & (cy < 12.0)
    hole = (cx > 1.0) & (cx < 3.0) & (cy > 4.0) & (cy < 6.0)
    np.testing.assert_array_equal(found.p[0], np.where(inside & ~hole, 1.0, 0.0))


def test_unknown_heights_are_zero_above_the_datum() -> None:
    z = np.array([[1.0, np.nan], [3.0, 5.0]], np.float32)
    fed = network_input(z)
    assert fed.dtype == np.float32
    assert fed.tolist() == [[[[-2.0, 0.0], [0.0, 2.0]], [[1.0, 0.0], [1.0, 1.0]]]]
    assert not network_input(np.full((2, 2), np.nan, np.float32)).any()


def test_altitude_does_not_matter() -> None:
    z = np.float32(2.0**-6) * np.random.default_rng(0).integers(-64, 64, (160, 160))
    high = (z + 4096.0).astype(np.float32)  # exact
    np.testing.assert_array_equal(network_input(high), network_input(z.astype(np.float32)))


def test_sizes_come_from_the_manifest(tmp_path) -> None:
    content = network(height=1.0, cells=(48, 96), bins=4, ratio=3)
    folder = write(
        tmp_path, content, input__cells=[48, 96], output__cells=[16, 32], output__bins=4,
        output__resolution_m=0.3,
    )  # fmt: skip
    seen = ground()
    heuristic = make_heuristic(configured(folder))
    found = heuristic.risk(seen, (24.3, 9.6, 0.0))
    assert found.p.shape == (4, 16, 32)
    assert heuristic.max_cells(10) == 4 * 16 * 32
    ix, iy = (
        round((a - 0.1 - b) / 0.1) for a, b in zip(found.origin_m, seen.origin_m, strict=True)
    )
    assert ix % 6 == iy % 6 == 0
    under = seen.z[iy : iy + 48, ix : ix + 96].astype(np.float64)
    expected = (under - under.mean()).reshape(16, 3, 32, 3).mean(axis=(1, 3))
    np.testing.assert_allclose(found.p[3], expected, atol=1e-5)


def test_what_the_network_says_is_priced(tmp_path, rocky) -> None:
    """The goal is down the slope, and this network fears low ground."""
    fears = network(height=-0.04, bias=0.5)
    config = configured(write(tmp_path, fears), "traverse.max_cycles=12")
    shy, plain = traverse(rocky, config), traverse(rocky, config.replaced(heuristic="none"))
    assert sum(c.risk_used for c in shy.cycles) > 0
    assert [c.pose for c in shy.cycles] != [c.pose for c in plain.cycles]


# --------------------------------------------------------------------------------------- resampling


@pytest.mark.parametrize("res", [0.05, 0.094, 0.12])
def test_other_cells_are_interpolated(tmp_path, res) -> None:
    n = round(30.0 / res)
    x = 2.0 + res * np.arange(n + 40)
    y = -5.0 + res * np.arange(n)
    plane = 0.2 * x[np.newaxis, :] - 0.1 * y[:, np.newaxis]
    seen = HeightMap(plane.astype(np.float32), res, (2.0, -5.0))
    heuristic = make_heuristic(configured(write(tmp_path, network(height=1.0))))
    found = heuristic.risk(seen, (17.0, 10.0, 0.0))
    assert found.resolution_m == 0.2
    (x0, y0) = found.origin_m
    assert (x0 - 0.1) / 0.4 == pytest.approx(round((x0 - 0.1) / 0.4), abs=1e-6)  # of the world
    cx, cy = x0 + 0.2 * np.arange(80), y0 + 0.2 * np.arange(80)
    expected = 0.2 * cx[np.newaxis, :] - 0.1 * cy[:, np.newaxis]
    np.testing.assert_allclose(found.p[0], expected - expected.mean(), atol=1e-4)
    assert heuristic.take_events() == ()


def test_interpolated_windows_end_with_the_map(tmp_path) -> None:
    seen = HeightMap(np.zeros((100, 100), np.float32), 0.05, (0.025, 0.025))
    heuristic = make_heuristic(configured(write(tmp_path, network(known=1.0))))
    found = heuristic.risk(seen, (2.5, 2.5, 0.0))
    assert found.p[0].sum() == 25 * 25


def test_cells_within_a_hundredth_are_taken_as_they_are(tmp_path) -> None:
    z = ground().z
    heuristic = make_heuristic(configured(write(tmp_path, network(height=1.0))))
    a = heuristic.risk(HeightMap(z, 0.1, (0.0, 0.0)), (20.0, 15.0, 0.0))
    b = heuristic.risk(HeightMap(z, 0.1009, (0.0, 0.0)), (20.18, 15.135, 0.0))
    np.testing.assert_array_equal(a.p, b.p)
    assert b.resolution_m == pytest.approx(0.2018)
    assert b.origin_m == pytest.approx([1.009 * v for v in a.origin_m])


def test_cells_of_a_fifth_of_a_metre_are_interpolated_like_others(tmp_path) -> None:
    """The first size beyond the network's own at which nothing used to be predicted was 0.13 m."""
    heuristic = make_heuristic(configured(write(tmp_path, network(known=1.0))))
    for res in (0.011, 0.02, 0.03, 0.14, 0.1946, 0.2, 0.5):
        seen = HeightMap(np.zeros((round(40 / res),) * 2, np.float32), res, (0.0, 0.0))
        found = heuristic.risk(seen, (20.0, 20.0, 0.0))
        assert (found.p == 1.0).all(), res
    assert heuristic.take_events() == ()


def test_finer_cells_are_averaged_and_holes_stay_holes(tmp_path) -> None:
    """A spike of 2 cm between the network's cell centres is in its mean; a hole is unknown."""
    z = np.zeros((1000, 1000), np.float32)
    z[500, 500] = 2.5  # a 25th of a cell of 0.1 m
    z[700, 700] = np.nan
    seen = HeightMap(z, 0.02, (0.01, 0.01))
    heuristic = make_heuristic(configured(write(tmp_path, network(height=4.0))))
    found = heuristic.risk(seen, (10.0, 10.0, 0.0))
    iy, ix = (round((10.0 - at) / 0.2) for at in (found.origin_m[1], found.origin_m[0]))
    # 0.1 m in one of the four cells under the risk cell; the mean of the map is next to nothing.
    assert found.p[0].max() == pytest.approx(0.1, abs=0.01)
    assert abs(found.p[0, iy - 2 : iy + 3, ix - 2 : ix + 3].max() - found.p[0].max()) < 1e-6
    shares = make_heuristic(configured(write(tmp_path / "known", network(known=1.0))))
    known = shares.risk(seen, (10.0, 10.0, 0.0)).p[0]
    assert 0.0 < (1.0 - known).sum() <= 4.0


@pytest.mark.parametrize("res", [0.05, 0.13, 0.1946])
def test_the_shipped_network_works_on_any_cells(res) -> None:
    """Resampled rough ground: about the same risk on cells of any size."""
    terrain = load("0/.20", seed=3)
    n = round(50.0 / res)
    at = 1.0 + res * np.arange(n)
    x, y = np.meshgrid(at, at)
    z = terrain.height(x, y).astype(np.float32)
    config = Config().replaced(heuristic="network")
    coarse = make_heuristic(config).risk(HeightMap(z, res, (1.0, 1.0)), (26.0, 26.0, 0.0))
    fine = make_heuristic(config).risk(
        HeightMap(terrain.z, terrain.resolution_m, terrain.origin_m), (26.0, 26.0, 0.0)
    )
    poses = np.column_stack([*np.random.default_rng(1).uniform(20, 32, (2, 4000)), np.zeros(4000)])
    a, b = risk_at(coarse, poses), risk_at(fine, poses)
    assert np.corrcoef(a, b)[0, 1] > 0.8
    assert a.std() > 0.1


# ---------------------------------------------------------------------------------------- contract


@pytest.mark.parametrize(
    ("low", "high", "told"),
    [
        (0.0, 1.0, None),
        (-1e-6, 1.0000001, None),
        (0.0, 1.5, "risk from 0 to 1.5"),
        (-7.0, 4.0, "risk from -7 to 4"),
        (math.nan, math.nan, None),
    ],
)
def test_risk_is_held_to_its_contract(low, high, told) -> None:
    p = np.zeros((1, 4, 4), np.float32)
    p[0, 0], p[0, 1] = low, high
    held, fault = held_to_contract(RiskMap(p, 0.2, (0.0, 0.0)))
    if told is None:
        assert fault is None
        known = held.p[np.isfinite(held.p)]
        assert known.min(initial=0.0) >= 0.0 and known.max(initial=1.0) <= 1.0
    else:
        assert held is None and told in fault


@pytest.mark.parametrize("policy", ["always", "on_failure"])
def test_logits_are_an_event_and_the_baseline(tmp_path, rocky, policy) -> None:
    """The planner never sees them, nor do the instruments of a campaign."""
    logits = write(tmp_path, network(bias=-4.0))
    config = configured(logits, f"heuristic.policy={policy}", "traverse.max_cycles=6")
    reliability = Reliability(1)
    result = traverse(rocky, config, observers=[reliability])
    baseline = traverse(rocky, config.replaced(heuristic="none"))
    # Where a map may still come poses are asked for in another order, for the same path.
    assert [c.as_dict()["motion"] for c in result.cycles] == [
        c.as_dict()["motion"] for c in baseline.cycles
    ]
    summary = result.summary()
    assert summary["risk_used"] == 0 < summary["risk_asked"] == summary["risk_missing"]
    assert "not within 0 to 1" in summary["events"]["distinct"][0]
    assert out_of_work(summary["risk_asked"], summary["risk_missing"]) is not None
    assert sum(reliability.as_dict()["reliability_poses"]) == 0


def test_a_heuristic_at_work_is_not_told_of() -> None:
    assert out_of_work(0, 0) is None
    assert out_of_work(100, 5) is None
    assert "6 of 100" in out_of_work(100, 6)


# ----------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"schema": 2}, "schema"),
        ({"sha256": "abc"}, "sha256"),
        ({"opset": ...}, "opset: Field required"),
        ({"labels": ...}, "labels"),
        ({"input__datum": "zero"}, "input.datum"),
        ({"input__channels": ["height_m"]}, "input.channels"),
        ({"input__channels": ["known", "height_m"]}, "input.channels"),
        ({"input__cells": [160, 158]}, "same square"),
        ({"output__resolution_m": 0.25}, "whole number"),
        ({"output__resolution_m": -0.2}, "output.resolution_m"),
        ({"output__bins": 0}, "output.bins"),
        ({"sha256": "0" * 64}, "checksum .* is not the 000000000000"),
    ],
)
def test_manifests_that_do_not_hold_are_refused(tmp_path, changes, words) -> None:
    folder = write(tmp_path / "mine", **changes)
    with pytest.raises(ModelError, match=words) as fault:
        make_heuristic(configured(folder))
    assert str(folder) in str(fault.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not a usable network"),
        (b"no network at all", "not a usable network"),
        (network(names=("heights", "risk")), "input .*'ground'.*'heights'"),
        (network(names=("ground", "p")), "output .*'risk'.*'p'"),
        (network(cells=(128, 160)), r"input .*\[1, 2, 160, 160\].*\[1, 2, 128, 160\]"),
        (network(bins=8), r"output .*\[1, 16, 80, 80\].*\[1, 8, 80, 80\]"),
        (network(shape_in=(1, 2, "ny", "nx"), shape_out=(1, 16, "my", "mx")), "input .*'ny'"),
        (network(shape_in=(2, 2, 160, 160), shape_out=(2, 16, 80, 80)), r"input .*\[2, 2,"),
        (network(kind_in=onnx.TensorProto.DOUBLE), r"input .*tensor\(double\)"),
        (network(second_output=True), "output .*'more'"),
    ],
)
def test_networks_that_are_not_the_manifests_are_refused(tmp_path, content, words) -> None:
    with pytest.raises(ModelError, match=words):
        make_heuristic(configured(write(tmp_path, content)))


def test_an_open_batch_is_one(tmp_path) -> None:
    content = network(bias=0.5, shape_in=("n", 2, 160, 160), shape_out=("n", 16, 80, 80))
    found = make_heuristic(configured(write(tmp_path, content))).risk(ground(), (24.0, 9.0, 0.0))
    assert np.all(found.p == 0.5)


def test_folders_that_lack_a_part_are_refused(tmp_path) -> None:
    (tmp_path / "bare").mkdir()
    with pytest.raises(ModelError, match=r"bare: no manifest\.json"):
        make_heuristic(configured(tmp_path / "bare"))
    (write(tmp_path / "half") / "model.onnx").unlink()
    with pytest.raises(ModelError, match=r"half: no model\.onnx"):
        make_heuristic(configured(tmp_path / "half"))
    (tmp_path / "half" / "manifest.json").write_bytes(b"\xff{")
    with pytest.raises(ModelError, match=r"manifest\.json: .*JSON"):
        make_heuristic(configured(tmp_path / "half"))


def test_a_refused_model_stops_a_run_before_it_starts(tmp_path) -> None:
    folder = write(tmp_path / "mine", sha256="0" * 64)
    with pytest.raises(ModelError):
        traverse(level(), configured(folder))
    result = CliRunner().invoke(
        app,
        ["traverse", "--heuristic", "network", "--set", f"heuristic.model={folder}",
         "--out", str(tmp_path / "out")],
    )  # fmt: skip
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "checksum" in result.stderr
    assert "Traceback" not in result.stderr


# ----------------------------------------------------------------------------- which model, or none


def test_the_shipped_model_of_the_pair_is_found(shipped) -> None:
    write(shipped / "b", network(bias=0.25))
    write(
        shipped / "a",
        network(bias=0.75),
        labels__checker="verified",
        labels__limits="flight_like",
    )
    auto = Config().replaced(heuristic="network")
    for config, p in (
        (auto, 0.75),
        (auto.replaced(checker="fixed_box", limits="enav_like"), 0.25),
        (configured("b"), 0.25),
    ):
        heuristic = make_heuristic(config)
        assert heuristic.risk(ground(), (24.0, 9.0, 0.0)).p[0, 0, 0] == p
        assert heuristic.take_events() == ()


def test_a_model_for_other_labels_is_used_where_it_was_asked_for(shipped) -> None:
    write(shipped / "b", network(bias=0.25))
    heuristic = make_heuristic(
        Config().replaced(["heuristic.model=b", "limits.tilt_max_deg=20"], heuristic="network")
    )
    (event,) = heuristic.take_events()
    assert "tiny learnt fixed_box, enav_like, not verified, custom" in event
    assert heuristic.risk(ground(), (24.0, 9.0, 0.0)).p[0, 0, 0] == 0.25


def test_two_models_for_one_pair_are_refused(shipped) -> None:
    write(shipped / "one")
    write(shipped / "two")
    with pytest.raises(ModelError, match="one and two are both for fixed_box, enav_like"):
        make_heuristic(configured("auto"))
    make_heuristic(configured("two"))


def test_what_ships_is_sound() -> None:
    labels = set()
    for name in models.model_names():
        model = models.read_model(models.model_folder() / name)
        pair = (model.manifest.labels.checker, model.manifest.labels.limits)
        assert pair not in labels
        labels.add(pair)
        assert (models.model_folder() / name / "card.md").is_file()
        config = Config().replaced(heuristic="network", checker=pair[0], limits=pair[1])
        heuristic = make_heuristic(config)
        p = heuristic.risk(ground(), (24.0, 9.0, 0.0)).p
        assert np.all((p >= 0.0) & (p <= 1.0))
        assert heuristic.take_events() == ()
    assert len(labels) >= 2


def records(result) -> list[dict]:
    """What the cycles did, without times, events, and that a heuristic was asked."""
    left_out = {"timing_s", "events", "risk_requested", "evaluations_before_risk"}
    left_out |= {"risk_asked", "risk_missing"}
    return [{k: v for k, v in c.as_dict().items() if k not in left_out} for c in result.cycles]


@pytest.mark.parametrize("policy", ["always", "on_failure"])
@pytest.mark.parametrize(
    ("model", "event"),
    [
        ("auto", "heuristic: no model for fixed_box, enav_like; planning as the baseline does"),
        ("nowhere", "heuristic: no model 'nowhere' (a shipped name or a folder); planning as"),
    ],
)
def test_without_a_model_the_run_is_the_baselines(shipped, rocky, policy, model, event) -> None:
    config = configured(model, f"heuristic.policy={policy}", "traverse.max_cycles=8")
    result = traverse(rocky, config)
    baseline = traverse(rocky, config.replaced(heuristic="none"))
    assert to_json(records(result)) == to_json(records(baseline))
    assert result.cycles[0].events[0].startswith(event)
    summary = result.summary()
    assert summary["events"] == {"count": 1, "distinct": list(result.cycles[0].events)}
    assert (summary["risk_used"], summary["inferences"]) == (0, 0)


def test_without_onnxruntime_the_run_is_the_baselines(tmp_path, rocky, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    config = configured(write(tmp_path), "traverse.max_cycles=4")
    result = traverse(rocky, config)
    baseline = traverse(rocky, config.replaced(heuristic="none"))
    assert to_json(records(result)) == to_json(records(baseline))
    assert "onnxruntime is not installed" in result.summary()["events"]["distinct"][0]
    write(tmp_path, sha256="0" * 64)  # what is wrong is refused all the same
    with pytest.raises(ModelError):
        make_heuristic(config)


@pytest.mark.parametrize("bias", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("policy", ["always", "on_failure"])
def test_outputs_that_are_not_finite_are_dropped(tmp_path, rocky, bias, policy) -> None:
    values = np.zeros(16)
    values[7] = bias  # one heading is enough
    config = configured(
        write(tmp_path, network(bias=values)),
        f"heuristic.policy={policy}",
        "traverse.max_cycles=8",
    )
    result = traverse(rocky, config)
    baseline = traverse(rocky, config.replaced(heuristic="none"))
    assert [c.pose for c in result.cycles] == [c.pose for c in baseline.cycles]
    assert not any(c.risk_used for c in result.cycles)
    for cycle in result.cycles:  # told in each cycle
        asked = cycle.risk_requested or policy == "always"
        events = ("heuristic: output is not finite; planned as the baseline does",)
        assert cycle.events == (events if asked else ())
        assert cycle.as_dict()["events"] == list(cycle.events)
    events = result.summary()["events"]
    assert events["count"] == sum(len(c.events) for c in result.cycles) > 1
    assert len(events["distinct"]) == 1


def test_an_inference_that_raises_is_survived(tmp_path, rocky, monkeypatch) -> None:
    import onnxruntime

    def fails(*args, **kwargs):
        raise RuntimeError("out of\nmemory")

    config = configured(write(tmp_path), "traverse.max_cycles=6")
    monkeypatch.setattr(onnxruntime.InferenceSession, "run", fails)
    result = traverse(rocky, config)
    baseline = traverse(rocky, config.replaced(heuristic="none"))
    assert [c.pose for c in result.cycles] == [c.pose for c in baseline.cycles]
    (event,) = result.summary()["events"]["distinct"]
    assert event.startswith("heuristic: inference failed (RuntimeError: out of memory)")


def test_nothing_known_is_no_opinion(tmp_path) -> None:
    z = np.full((300, 600), np.nan, np.float32)
    z[:, 500:] = 0.0
    heuristic = make_heuristic(configured(write(tmp_path)))
    assert heuristic.risk(HeightMap(z, 0.1, (0.0, 0.0)), (15.0, 15.0, 0.0)) is None
    assert "nothing is known" in heuristic.take_events()[0]
    assert heuristic.inferences == 0


# ------------------------------------------------------------------------------ caching, repetition


def test_a_window_that_has_not_changed_is_not_inferred_again(tmp_path) -> None:
    heuristic = make_heuristic(configured(write(tmp_path, network(height=1.0))))
    seen = ground()
    first = heuristic.risk(seen, (24.3, 9.6, 0.0))
    turned = heuristic.risk(HeightMap(seen.z.copy(), 0.1, seen.origin_m), (24.3, 9.6, 2.0))
    assert heuristic.inferences == 1
    assert turned is first
    far = seen.z.copy()
    far[0, 0] += 1.0  # outside the window
    assert heuristic.risk(HeightMap(far, 0.1, seen.origin_m), (24.3, 9.6, 0.0)) is first
    near = seen.z.copy()
    near[150, 200] += 1.0
    assert heuristic.risk(HeightMap(near, 0.1, seen.origin_m), (24.3, 9.6, 0.0)) is not first
    assert heuristic.inferences == 2
    heuristic.risk(seen, (25.3, 9.6, 0.0))
    assert heuristic.inferences == 3


def test_a_hole_that_stays_is_no_change(tmp_path) -> None:
    z = ground().z.copy()
    z[100:140, 200:230] = np.nan
    heuristic = make_heuristic(configured(write(tmp_path)))
    for _ in range(2):
        heuristic.risk(HeightMap(z.copy(), 0.1, (0.0, 0.0)), (20.0, 15.0, 0.0))
    assert heuristic.inferences == 1


def test_the_window_stays_while_the_sensors_window_moves(tmp_path) -> None:
    """The sensor's corner and the network's step at different places along the way."""
    terrain = Terrain(ground(600, 600).z, 0.1, (1234.05, -987.05), name="far")
    sensor = TruthSensor(terrain, 16.0, align_cells=4)
    heuristic = make_heuristic(configured(write(tmp_path, network(height=1.0))))
    corners, maps = set(), set()
    for i in range(41):
        pose = (1262.0 + 0.1 * i, -957.0, 0.0)
        seen = sensor.window(pose)
        maps.add(seen.origin_m)
        corners.add(round(heuristic.risk(seen, pose).origin_m[0], 6))
    assert len(maps) > 9
    assert heuristic.inferences == len(corners) <= 12


@pytest.mark.parametrize("threads", [1, 2])
def test_inference_repeats_bit_for_bit(tmp_path, threads) -> None:
    rng = np.random.default_rng(2)
    content = network(height=0.37, known=0.11, bias=rng.uniform(0, 1, 16))
    config = configured(write(tmp_path, content), f"heuristic.threads={threads}")
    maps = [make_heuristic(config).risk(ground(), (24.3, 9.6, 0.0)).p for _ in range(3)]
    assert maps[0].tobytes() == maps[1].tobytes() == maps[2].tobytes()


@pytest.mark.parametrize("policy", ["always", "on_failure"])
def test_a_run_repeats_bit_for_bit(tmp_path, rocky, policy) -> None:
    config = configured(
        write(tmp_path, network(height=0.5, bias=0.2)),
        f"heuristic.policy={policy}",
        "traverse.max_cycles=12",
    )
    runs = [traverse(rocky, config) for _ in range(2)]
    summaries = [to_json(run.summary(timing=False)) for run in runs]
    assert summaries[0] == summaries[1]
    assert runs[0].summary()["inferences"] > 0


# ------------------------------------------------------------------------------------- on the way


def test_level_ground_needs_no_inference(tmp_path) -> None:
    folder = write(tmp_path, network(bias=0.3))
    lazy = traverse(level(), configured(folder))
    assert lazy.success
    assert lazy.summary()["inferences"] == lazy.summary()["risk_requested"] == 0
    eager = traverse(level(), configured(folder, "heuristic.policy=always"))
    assert eager.success
    assert all(c.risk_used for c in eager.cycles)
    assert 0 < eager.summary()["inferences"] <= len(eager.cycles)


# ------------------------------------------------------------------------------------------ doctor


def test_doctor_verifies_what_ships(shipped) -> None:
    write(shipped / "good")
    result = CliRunner().invoke(app, ["doctor", "--json"])
    checks = json.loads(result.stdout)["checks"]
    assert checks["models"] == {
        "ok": True, "detail": "good for fixed_box, enav_like; checksums hold",
    }  # fmt: skip
    assert "onnxruntime" in checks["inference"]["detail"]
    write(shipped / "bad", sha256="0" * 64)
    result = CliRunner().invoke(app, ["doctor", "--json"])
    assert result.exit_code == 1
    assert "checksum" in json.loads(result.stdout)["checks"]["model bad"]["detail"]
