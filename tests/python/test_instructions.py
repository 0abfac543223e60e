"""Modelled flight time: the file of counts, what is added up of it, and the counting itself."""

import importlib.util
import json
import platform
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from mlnav.risk import model_folder, model_names, read_model
from mlnav.studies.instructions import (
    BUILDS,
    CountingError,
    _Tools,
    by_part,
    require_scalar,
    totals,
)
from mlnav.trials.flight_time import (
    PER_S,
    STAGES,
    InstructionError,
    Usage,
    flight_seconds,
    load_instructions,
    shipped_counts,
)

ROOT = Path(__file__).parents[2]

needs_valgrind = pytest.mark.skipif(
    any(shutil.which(tool) is None for tool in ("valgrind", "cc")),
    reason="needs valgrind and a C compiler",
)
needs_generator = pytest.mark.skipif(
    any(importlib.util.find_spec(m) is None for m in ("emx_onnx_cgen", "onnx", "onnxruntime")),
    reason="needs emx-onnx-cgen, onnx and onnxruntime",
)


def made_counts(scale: int = 1) -> dict:
    stages = {name: scale * (i + 1) for i, name in enumerate(STAGES)}
    stages["set_map"] = {"fixed_box": 100 * scale, "verified": 0}
    return {
        "network": {"small": 1000 * scale},
        "stages": stages,
        "checkers": {
            "fixed_box/enav_like": {"pass": 3 * scale, "reject": 2 * scale},
            "verified/flight_like": {"pass": 30 * scale, "reject": 20 * scale},
        },
    }


@pytest.fixture
def counts(tmp_path):
    path = tmp_path / "counts.json"
    path.write_text(
        json.dumps(made_counts(10) | {"vectorised": made_counts(), "assumptions": "made up"})
    )
    return load_instructions(path)


def test_stages_poses_and_inferences_add_up(counts) -> None:
    usage = Usage(
        cycles=10, risk_uses=4, rankings_again=3, inferences=2, evaluations=100, rejected=30,
        paths_tried=7,
    )  # fmt: skip
    stage = made_counts()["stages"]
    expected = (
        10 * (stage["other"] + stage["costmap"])
        # 9 rankings without risk and 4 with it, each after a cost-to-go of its own
        + 13 * stage["cost_to_go"]
        + 9 * stage["rank"]
        + 4 * (stage["rank_risk"] + stage["price"])
        + 2 * 1000
        + 7 * stage["search_risk"]
        + 70 * 30
        + 30 * 20
    )
    arguments = usage, "verified", "flight_like", "small"
    assert counts.vectorised.total(*arguments) == expected
    assert counts.total(*arguments) == 10 * expected
    assert flight_seconds(counts, *arguments) == {
        "rad750_class": pytest.approx(10 * expected / PER_S["rad750_class"]),
        "hpsc_class": pytest.approx(expected / PER_S["hpsc_class"]),
    }


def test_a_baseline_ranks_once_a_cycle_at_the_checkers_step(counts) -> None:
    stage = made_counts()["stages"]
    usage = Usage(2, 0, 0, 0, 10, None, 5)
    assert counts.vectorised.total(usage, "fixed_box", "enav_like", None) == (
        2 * (stage["other"] + stage["costmap"] + 100 + stage["cost_to_go"] + stage["rank"])
        + 5 * stage["search"]
        + 10 * 2.5
    )


def test_what_was_not_counted_is_named(counts) -> None:
    assert counts.missing("fixed_box", "enav_like", "small") is None
    assert counts.missing("fixed_box", "enav_like", None) is None
    assert "fixed_box/flight_like" in counts.missing("fixed_box", "flight_like", None)
    assert "'large'" in counts.missing("fixed_box", "enav_like", "large")


@pytest.mark.parametrize("lacks", [*STAGES, "set_map"])
def test_a_file_without_a_stage_is_refused(tmp_path, lacks) -> None:
    data = made_counts() | {"assumptions": ""}
    del data["stages"][lacks]
    path = tmp_path / "counts.json"
    path.write_text(json.dumps(data))
    with pytest.raises(InstructionError, match=r"counts\.json.*" + lacks):
        load_instructions(path)


def test_the_shipped_counts_hold_together() -> None:
    counts = load_instructions()
    assert counts is not None and counts.vectorised is not None
    assert counts.assumptions
    assert "sobel" in counts.network
    for build in (counts, counts.vectorised):
        for pair in ("fixed_box/enav_like", "verified/flight_like"):
            assert build.missing(*pair.split("/"), "sobel") is None
        stage = build.stages
        assert all(v > 0 for v in stage.values())
        assert stage["rank"] < stage["rank_risk"]
        # A proof costs more than a look at boxes.
        poses = build.checkers
        assert poses["verified/flight_like"]["pass"] > 10 * poses["fixed_box/enav_like"]["pass"]


@pytest.mark.parametrize("name", model_names())
def test_shipped_networks_are_those_that_were_counted(name) -> None:
    """After another shape is exported: mlnav bench instructions --networks-only."""
    manifest = read_model(model_folder() / name).manifest
    counted = shipped_counts()["models"][manifest.name]
    assert (counted["parameters"], counted["macs"]) == (manifest.parameters, manifest.macs)


def dump(trigger: str, instructions: int) -> str:
    return f"version: 1\ndesc: Trigger: {trigger}\n\nevents: Ir\nfn=(1) x\ntotals: {instructions}\n"


def test_dumps_are_read_and_sorted() -> None:
    texts = [
        dump("Client Request: costmap 4", 40),
        dump("Client Request: costmap 1", 20),
        dump("Client Request: fixed_box/enav_like pass 3", 10),
        dump("Client Request: set_map/fixed_box 2", 8),
        dump("Client Request: sobel 2", 6),
        dump("Program termination", 1000),
    ]
    read = totals(texts)
    assert read["costmap"] == 12
    assert by_part(read) == {
        "network": {"sobel": 3},
        "stages": {"costmap": 12, "set_map": {"fixed_box": 4}},
        "checkers": {"fixed_box/enav_like": {"pass": 3}},
    }
    with pytest.raises(CountingError, match="headers"):
        totals(texts[-1:])


def compiled(folder: Path, source: str, ground: int, risk: int) -> Path:
    (folder / "network.c").write_text(source)
    program = folder / "count"
    subprocess.run(
        ["cc", "-O1", f"-DGROUND_VALUES={ground}", f"-DRISK_VALUES={risk}",
         str(ROOT / "cpp/bench/count_network.c"), str(folder / "network.c"), "-o", str(program),
         "-lm"],
        check=True,
    )  # fmt: skip
    return program


@needs_valgrind
def test_only_the_network_is_counted(tmp_path) -> None:
    source = """
    void network(const float* ground, float* risk) {
      for (int i = 0; i < 1000; ++i) risk[i] = 2.0F * ground[i];
    }"""
    program = compiled(tmp_path, source, 1000, 1000)
    ground = np.arange(1000, dtype=np.float32)
    ground.tofile(tmp_path / "ground")
    read = _Tools.find().callgrind(program, tmp_path / "ground", tmp_path / "risk")
    assert 3000 < read["network"] < 12000
    assert (np.fromfile(tmp_path / "risk", np.float32) == 2.0 * ground).all()


@needs_valgrind
@needs_generator
@pytest.mark.parametrize(
    ("into", "out", "kernel", "stride", "group", "bias"),
    [(3, 8, 3, 1, 1, True), (4, 10, 3, 2, 1, False), (6, 7, 1, 1, 1, True), (5, 5, 3, 2, 5, True)],
)
def test_our_convolution_is_a_convolution(tmp_path, into, out, kernel, stride, group, bias) -> None:
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    from mlnav.studies.instructions import _generated, _templates

    rng = np.random.default_rng(0)
    constants = {"w": rng.standard_normal((out, into // group, kernel, kernel))}
    if bias:
        constants["b"] = rng.standard_normal(out)
    pad, (ny, nx) = kernel // 2, (9, 12)
    shape = (1, out, (ny - 1) // stride + 1, (nx - 1) // stride + 1)
    node = helper.make_node(
        "Conv", ["x", *constants], ["y"], pads=[pad] * 4, strides=[stride] * 2, group=group,
        kernel_shape=[kernel] * 2,
    )  # fmt: skip
    network = helper.make_model(
        helper.make_graph(
            [node],
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, into, ny, nx))],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
            [numpy_helper.from_array(v.astype(np.float32), k) for k, v in constants.items()],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    ).SerializeToString()
    x = rng.standard_normal((1, into, ny, nx)).astype(np.float32)
    (expected,) = onnxruntime.InferenceSession(network).run(None, {"x": x})
    source = _generated(network, _templates(tmp_path))
    assert "packed" in source
    program = compiled(tmp_path, source, x.size, expected.size)
    x.tofile(tmp_path / "x")
    subprocess.run([program, tmp_path / "x", tmp_path / "y"], check=True)
    y = np.fromfile(tmp_path / "y", np.float32).reshape(expected.shape)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(
    platform.machine() != "x86_64"
    or shutil.which("objdump") is None
    or shutil.which("c++") is None,
    reason="looks for x86 vector instructions in a program, with objdump",
)
@pytest.mark.parametrize("source", ["ground/wheel_height.cpp", "safety/fixed_box.cpp"])
def test_the_scalar_build_computes_one_number_at_a_time(tmp_path, source) -> None:
    """With the core's own lanes left in, a pose was counted at half of what it costs."""

    def compiled(name: str, flags: tuple[str, ...]) -> Path:
        program = tmp_path / f"{name}.o"
        command = ["c++", "-std=c++17", *flags, "-I", ROOT / "cpp" / "include", "-c"]
        subprocess.run([*command, ROOT / "cpp" / "src" / source, "-o", program], check=True)
        return program

    scalar = BUILDS["scalar"].core
    assert "-DMLNAV_SCALAR" in scalar
    require_scalar(compiled("scalar", scalar))
    lanes = tuple(flag for flag in scalar if flag != "-DMLNAV_SCALAR")
    for name, flags in (("lanes", lanes), ("vectorised", BUILDS["vectorised"].core)):
        with pytest.raises(CountingError, match=r"vector instructions.*mlnav::"):
            require_scalar(compiled(name, flags))
