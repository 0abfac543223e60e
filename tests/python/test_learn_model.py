"""Training and export, on a network and a data set as small as they can be."""

import json
import math
import shutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

torch = pytest.importorskip("torch", reason="needs the extra 'train'")
onnx = pytest.importorskip("onnx", reason="needs the extra 'train'")
onnxruntime = pytest.importorskip("onnxruntime", reason="needs the extra 'onnx'")
pytest.importorskip("safetensors", reason="needs the extra 'train'")

from mlnav import risk  # noqa: E402
from mlnav.cli import app  # noqa: E402
from mlnav.cli import learn as cli  # noqa: E402
from mlnav.learn import export as exporting  # noqa: E402
from mlnav.learn.data import (  # noqa: E402
    DataSpec,
    Windows,
    make_data,
    network_input,
    read_part,
    read_spec,
)
from mlnav.learn.evaluation import (  # noqa: E402
    EvaluationError,
    Network,
    evaluate_model,
    fixed_spec,
    fixed_windows,
    measure,
    sobel,
    total,
)
from mlnav.learn.export import ExportError, export  # noqa: E402
from mlnav.learn.graph import GraphError, make_graph, with_batch_norm  # noqa: E402
from mlnav.learn.network import AceNet, NetworkSpec, count_macs, count_parameters  # noqa: E402
from mlnav.learn.parity import SAME_COST, swaps  # noqa: E402
from mlnav.learn.training import (  # noqa: E402
    Batches,
    TrainingError,
    TrainingSpec,
    claim_run,
    evaluate,
    load_trained,
    order_of,
    train,
)
from mlnav.risk import ModelError, model_folder, model_names, read_model  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.onnx]

DATA = DataSpec(
    seed=5,
    terrains={"train": 30, "validation": 8, "test": 4},
    windows=4,
    window_m=8.0,
    terrain_m=16.0,
    samples=400,
)
SMALL = NetworkSpec(widths=(16, 24))
SPEC = TrainingSpec("fixed_box", SMALL, epochs=12, batch=4, learning_rate=1e-2)


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("learn") / "data"
    make_data(folder, DATA)
    return folder


@pytest.fixture(scope="module")
def parts(data) -> tuple[Windows, Windows]:
    return read_part(data, "train"), read_part(data, "validation")


@pytest.fixture(scope="module")
def run(data, parts, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("learn") / "run"
    claim_run(folder, data)
    train(SPEC, *parts, folder)
    return folder


@pytest.fixture(scope="module")
def model(run, data, tmp_path_factory) -> Path:
    return export(run, data, "tiny", tmp_path_factory.mktemp("learn") / "models")


def log_of(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def weights_of(folder: Path) -> dict[str, np.ndarray]:
    from safetensors.numpy import load_file

    return load_file(folder / "checkpoint.safetensors")


def same_weights(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return one.keys() == other.keys() and all(one[k].tobytes() == other[k].tobytes() for k in one)


# ----------------------------------------------------------------------------------------- training


def test_an_epoch_has_an_order_and_augmentations_of_its_own() -> None:
    order, symmetry = order_of(1, 0, 64)
    assert sorted(order) == list(range(64))
    again = order_of(1, 0, 64)
    np.testing.assert_array_equal(order, again[0])
    np.testing.assert_array_equal(symmetry, again[1])
    for other in (order_of(1, 1, 64), order_of(2, 0, 64)):
        assert (other[0] != order).any()
        assert (other[1] != symmetry).any()
    # Two workers on halves of an epoch would not repeat one another either.
    assert (symmetry[:32] != symmetry[32:]).any()
    assert set(symmetry) == set(range(8))
    # Neither the process nor what was drawn in it before matters.
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for _, there in pool.map(order_of, (1, 1), (0, 0), (64, 64)):
            np.testing.assert_array_equal(there, symmetry)


@pytest.mark.parametrize(
    ("checker", "unfold"),
    # Of finer cells than labels have, `verified` looks at one, which is not the mirrored one.
    [("fixed_box", 1), ("fixed_box", 2), ("fixed_box", 4), ("verified", 1), ("verified", 2)],
)
def test_labels_move_with_the_window(parts, checker, unfold) -> None:
    # What a network says of a turned window must be compared with the turned labels: a stand-in
    # that knows the labels of the window as it is shown has the same loss under every symmetry.
    windows, _ = parts
    batches = Batches(windows, checker)
    chosen = np.arange(2)

    class Known(torch.nn.Module):
        def forward(self, ground):
            # Any map of height that turns with it, the same for all headings.
            pooled = torch.nn.functional.avg_pool2d(ground[:, :1], 4 // unfold)
            return pooled.expand(-1, 16, -1, -1)

    losses = []
    for symmetry in range(8):
        terms = batches.loss_terms(Known(), chosen, np.full(2, symmetry))
        logits, target, weight = (t.double() for t in terms)
        losses.append(
            float(
                torch.nn.functional.binary_cross_entropy_with_logits(
                    logits, target, weight, reduction="sum"
                )
            )
        )
    np.testing.assert_allclose(losses, losses[0], rtol=1e-5)


def test_training_is_deterministic_and_resumes_bit_for_bit(parts, tmp_path) -> None:
    training, validation = parts
    few = Windows(*(getattr(training, k)[:6] for k in Windows.__dataclass_fields__))
    spec = replace(SPEC, network=NetworkSpec((8, 12)), epochs=2, batch=2)
    whole, again, stopped = (tmp_path / k for k in ("whole", "again", "stopped"))
    train(spec, few, validation, whole)
    train(spec, few, validation, again)
    assert same_weights(weights_of(whole), weights_of(again))

    def interrupt(record: dict) -> None:
        if record["epoch"] == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(spec, few, validation, stopped, progress=interrupt)
    assert load_trained(stopped)[2] == 1
    train(spec, few, validation, stopped)
    assert same_weights(weights_of(whole), weights_of(stopped))
    assert [r["epoch"] for r in log_of(stopped)] == [1, 2]
    for one, other in zip(log_of(whole), log_of(stopped), strict=True):
        del one["seconds"], other["seconds"]
        assert one == other
    other_seed = tmp_path / "other"
    train(replace(spec, seed=2), few, validation, other_seed)
    assert not same_weights(weights_of(whole), weights_of(other_seed))


def test_loss_falls_and_order_beats_sobel(run, parts) -> None:
    log = log_of(run)
    assert log[-1]["train_loss"] < 0.9 * log[0]["train_loss"]
    _, validation = parts
    baseline = total(measure(validation, "fixed_box", sobel(DATA.resolution_m, 16)))
    assert log[-1]["validation_auc"] > baseline.auc + 0.01
    assert baseline.auc > 0.5


def test_checkpoints_of_other_settings_or_damaged_are_refused(run, parts, tmp_path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    with pytest.raises(TrainingError, match="other settings"):
        train(replace(SPEC, learning_rate=1e-3), *parts, folder)
    path = folder / "checkpoint.safetensors"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(TrainingError, match=r"checkpoint\.safetensors: damaged"):
        train(SPEC, *parts, folder)
    with pytest.raises(TrainingError, match="damaged"):
        load_trained(folder)
    with pytest.raises(TrainingError, match="nothing was trained"):
        load_trained(tmp_path)
    with pytest.raises(TrainingError, match="no labels"):
        TrainingSpec("settle")


def test_a_run_keeps_to_its_data(run, data) -> None:
    claim_run(run, data)
    with pytest.raises(TrainingError, match="other data"):
        claim_run(run, data, terrains=2)


# -------------------------------------------------------------------------------------------- graph


def used(spec: NetworkSpec, seed: int = 0) -> AceNet:
    """A network whose batch norms have seen something, and are not the identity."""
    torch.manual_seed(seed)
    made = AceNet(spec)
    for module in made.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(module.weight, 0.5, 1.5)
            torch.nn.init.uniform_(module.bias, -0.5, 0.5)
    with torch.no_grad():
        for _ in range(3):
            made(grounds(4))
    return made.eval()


def grounds(n: int, cells: int = 64) -> "torch.Tensor":
    height = torch.randn(n, 1, cells, cells) + torch.linspace(-2, 2, cells)
    known = torch.ones(n, 1, cells, cells)
    known[:, :, : cells // 3, : cells // 2] = 0.0
    known *= (torch.rand_like(known) > 0.1).float()
    return torch.cat([height * known, known], 1)


@pytest.mark.parametrize("bias", [False, True])
def test_batch_norm_is_folded_exactly(bias) -> None:
    torch.manual_seed(1)
    conv = torch.nn.Conv2d(3, 5, 3, bias=bias).double()
    norm = torch.nn.BatchNorm2d(5).double()
    x = torch.randn(4, 3, 9, 9, dtype=torch.float64)
    for values in (norm.weight, norm.bias):
        torch.nn.init.uniform_(values, 0.5, 2.0)
    for _ in range(3):
        norm(conv(x))
    norm.eval()
    before = None if conv.bias is None else conv.bias.detach().numpy()
    weight, offset = with_batch_norm(conv.weight.detach().numpy(), before, norm)
    folded = torch.nn.functional.conv2d(x, torch.from_numpy(weight), torch.from_numpy(offset))
    torch.testing.assert_close(folded, norm(conv(x)), rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    "spec",
    [
        NetworkSpec(),
        NetworkSpec((8, 12, 16), depth=2, separable=True),
        NetworkSpec((8,), fold=8, unfold=4),
        NetworkSpec((8, 12), fold=2, unfold=1),
        NetworkSpec((8, 12), unfold=1),
    ],
    ids=str,
)
def test_the_graph_computes_what_the_network_does(spec) -> None:
    network = used(spec)
    proto = make_graph(network, 64, 1.3, -0.2)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    for i in range(3):
        ground = grounds(1)
        if i == 2:
            ground[:] = 0.0  # nothing known
        with torch.no_grad():
            expected = torch.sigmoid(1.3 * network(ground) - 0.2).numpy()
        (found,) = session.run(None, {"ground": ground.numpy()})
        assert found.shape == expected.shape == (1, 16, *(2 * [64 // spec.fold * spec.unfold]))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_the_graph_is_plain() -> None:
    proto = make_graph(used(NetworkSpec()), 160)
    assert [(o.domain, o.version) for o in proto.opset_import] == [("", 17)]
    assert {n.op_type for n in proto.graph.node} <= {
        "Add", "AveragePool", "Clip", "Concat", "Conv", "Div", "Mul", "ReduceMean", "Relu",
        "Reshape", "Resize", "Sigmoid", "Slice", "SpaceToDepth", "Sub",
    }  # fmt: skip
    for value in (*proto.graph.input, *proto.graph.output):
        assert all(d.dim_value > 0 for d in value.type.tensor_type.shape.dim)
    assert proto.ByteSize() < 5e6
    again = make_graph(used(NetworkSpec()), 160)
    assert proto.SerializeToString(deterministic=True) == again.SerializeToString(
        deterministic=True
    )
    with pytest.raises(GraphError, match="multiple of 16"):
        make_graph(used(NetworkSpec()), 72)


def test_parameters_and_macs_are_counted() -> None:
    small = AceNet(NetworkSpec((4,), bins=4, unfold=1))
    # stem 20 x 4 x 9, a block of two 4 x 4 x 9, batch norms of 4, head 4 x 4 + 4
    assert count_parameters(small) == 720 + 2 * 144 + 3 * 8 + 20
    assert count_macs(small, 16) == 16 * (720 + 2 * 144 + 16)


# ------------------------------------------------------------------------------------------- export


def test_a_model_is_what_its_manifest_says(model, run, data) -> None:
    assert sorted(p.name for p in model.iterdir()) == ["card.md", "manifest.json", "model.onnx"]
    assert [p.name for p in model.parent.iterdir()] == ["tiny"]
    loaded = read_model(model)
    manifest = loaded.manifest
    assert (manifest.name, manifest.opset) == ("tiny", 17)
    assert manifest.input.cells == (80, 80)
    assert manifest.input.resolution_m == 0.1
    assert manifest.output.cells == (40, 40)
    assert manifest.output.resolution_m == 0.2
    assert (manifest.labels.checker, manifest.labels.limits) == ("fixed_box", "enav_like")
    network = AceNet(SMALL)
    assert manifest.parameters == count_parameters(network)
    assert manifest.macs == count_macs(network, 80)
    training, metrics = manifest.training, manifest.metrics
    assert training["settings"]["seed"] == SPEC.seed
    assert training["network"]["widths"] == [16, 24]
    assert training["epochs_done"] == SPEC.epochs
    assert training["last"] == log_of(run)[-1]
    assert training["data"]["digest"] == read_spec(data).digest
    assert training["data"]["counts"]["train"]["windows"] == 120
    assert training["used"]["windows"] == 120
    assert metrics["parity"]["ranking"]["swapped"] == 0
    assert metrics["parity"]["ranking"]["paths"] > 0
    assert metrics["parity"]["value_99_abs"] <= 1e-5
    # Calibrated on the validation part.
    uncalibrated = evaluate(
        load_trained(run)[1], Batches(read_part(data, "validation"), "fixed_box")
    )
    assert metrics["validation"]["loss"] <= uncalibrated.quality().loss + 1e-5
    for part in ("validation", "test", "fixed"):
        assert 0.5 < metrics[part]["auc"] < 1.0


def test_the_card_tells_where_it_fails(model) -> None:
    text = (model / "card.md").read_text()
    manifest = read_model(model).manifest
    for fact in (
        "no safety device",
        "fixed_box",
        "enav_like",
        f"{manifest.metrics['test']['auc']:.4f}",
        f"{manifest.metrics['sobel_auc']:.4f}",
        "(1, 2, 80, 80)",
        "height above the mean",
        "30 synthetic terrains",
        "Unknown ground",
        *manifest.metrics["test_by_ground"],
    ):
        assert fact in text, fact
    assert "{" not in text
    assert max(map(len, text.splitlines())) < 400


def test_a_folder_is_replaced_only_when_asked(model, run, data, tmp_path) -> None:
    with pytest.raises(ExportError, match="--force"):
        export(run, data, "tiny", model.parent)
    with pytest.raises(ExportError, match="name"):
        export(run, data, "../tiny", tmp_path)
    folder = tmp_path / "models" / "tiny"
    folder.mkdir(parents=True)
    (folder / "stale").touch()
    export(run, data, "tiny", folder.parent, force=True)
    # The same bytes, and nothing beside them.
    assert sorted(p.name for p in folder.iterdir()) == ["card.md", "manifest.json", "model.onnx"]
    for name in ("card.md", "manifest.json", "model.onnx"):
        assert (folder / name).read_bytes() == (model / name).read_bytes()
    assert [p.name for p in folder.parent.iterdir()] == ["tiny"]


def test_a_graph_that_is_not_the_network_is_refused(run, data, tmp_path, monkeypatch) -> None:
    def wrong(network, cells, slope, offset):
        return make_graph(network, cells, slope, offset + 0.01)

    monkeypatch.setattr(exporting, "make_graph", wrong)
    with pytest.raises(ExportError, match="differ"):
        export(run, data, "wrong", tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_graph_that_ranks_otherwise_is_refused(run, data, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(exporting, "VALUES_SAME", 1.0)
    monkeypatch.setattr(exporting, "VALUES_MAX", 1.0)
    monkeypatch.setattr(exporting, "make_graph", lambda m, n, a, b: make_graph(m, n, -a, b))
    with pytest.raises(ExportError, match="rank"):
        export(run, data, "wrong", tmp_path)


def test_other_data_than_that_of_the_training_is_refused(run, data, tmp_path) -> None:
    other = tmp_path / "data"
    shutil.copytree(data, other)
    (other / "manifest.json").unlink()
    with pytest.raises(ValueError, match="no data set"):
        export(run, other, "tiny", tmp_path)
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    note = json.loads((folder / "run.json").read_text()) | {"digest": "0" * 16}
    (folder / "run.json").write_text(json.dumps(note))
    with pytest.raises(ExportError, match="other data"):
        export(folder, data, "tiny", tmp_path / "models")


def test_swaps_are_counted_beyond_ties() -> None:
    a = np.array([0.0, 1.0, 2.0, 3.0])
    assert swaps(a, a) == 0
    assert swaps(a, a + np.array([0.0, 0.0, 0.6 * SAME_COST, 0.0])) == 0
    assert swaps(a, np.array([0.0, 2.0, 1.0, 3.0])) == 1
    near = np.array([0.0, 0.4, 0.8]) * SAME_COST
    assert swaps(near, near[::-1].copy()) == 0
    assert swaps(np.array([]), np.array([])) == 0


# --------------------------------------------------------------------------------------- evaluation


def test_evaluation_says_what_the_manifest_does(model, data) -> None:
    loaded = read_model(model)
    report = evaluate_model(loaded, data)
    for name in ("auc", "calibration_error", "loss", "reliability"):
        assert report[name] == loaded.manifest.metrics["test"][name]
    assert report["sobel_auc"] == loaded.manifest.metrics["sobel_auc"]
    assert report["by_ground"]["part unknown"]["windows"] + report["by_ground"]["all known"][
        "windows"
    ] == len(read_part(data, "test"))
    with pytest.raises(EvaluationError, match="no part"):
        evaluate_model(loaded, data, "all")


def test_torch_and_the_model_score_alike(model, run, data) -> None:
    # Labels are laid out twice, for training and for what is shipped; both must see the same.
    spec, network, _ = load_trained(run)
    windows = read_part(data, "test")
    shipped = total(measure(windows, spec.checker, Network(read_model(model))))
    assert evaluate(network, Batches(windows, spec.checker)).quality().auc == pytest.approx(
        shipped.auc, abs=1e-3
    )
    for checker in ("fixed_box", "verified"):
        for unfold in (1, 2, 4):
            trial = used(NetworkSpec((8,), unfold=unfold))

            def logits(heights, trial=trial):
                with torch.no_grad():
                    return trial(torch.from_numpy(network_input(heights[np.newaxis])))[0].numpy()

            one = evaluate(trial, Batches(windows, checker)).quality()
            other = total(measure(windows, checker, logits))
            assert one.auc == pytest.approx(other.auc, abs=1e-4)
            assert one.loss == pytest.approx(other.loss, rel=1e-4)


def test_the_runtime_loads_what_is_exported(model) -> None:
    from mlnav.config import Config
    from mlnav.core import HeightMap

    config = Config().replaced(
        [f"heuristic.model={model}"], checker="fixed_box", limits="enav_like", heuristic="network"
    )
    heuristic = risk.make_heuristic(config)
    z = np.random.default_rng(0).normal(0, 0.05, (120, 120)).astype(np.float32)
    predicted = heuristic.risk(HeightMap(z, 0.1, (0.05, 0.05)), (6.0, 6.0, 0.0))
    assert predicted is not None
    assert predicted.p.shape == (16, 40, 40)
    assert heuristic.take_events() == ()


SHIPPED = model_names()


@pytest.mark.skipif(not SHIPPED, reason=f"no models are shipped yet in {model_folder()}")
@pytest.mark.parametrize("name", SHIPPED or ["none"])
def test_shipped_models_still_score_what_their_manifest_says(name) -> None:
    loaded = read_model(model_folder() / name)
    inputs, expected = loaded.manifest.input, loaded.manifest.metrics["fixed"]
    spec = fixed_spec(inputs.cells[0] * inputs.resolution_m, inputs.resolution_m)
    assert spec.digest == expected["digest"]
    found = total(measure(fixed_windows(spec), loaded.manifest.labels.checker, Network(loaded)))
    assert found.auc == pytest.approx(expected["auc"], abs=0.002)
    assert found.calibration_error == pytest.approx(expected["calibration_error"], abs=0.002)
    assert found.rejected == pytest.approx(expected["rejected"], abs=0.002)
    # And twelve windows are not far from the whole test part.
    assert found.auc == pytest.approx(loaded.manifest.metrics["test"]["auc"], abs=0.06)
    assert found.auc > loaded.manifest.metrics["sobel_auc"]


# ----------------------------------------------------------------------------------------- commands


def invoke(*args: object, code: int = 0):
    result = CliRunner().invoke(app, ["learn", *map(str, args)])
    assert result.exit_code == code, result.output
    return result


TRAIN = (
    "--checker", "verified", "--widths", "8", "--epochs", 1, "--batch", 4, "--terrains", 2,
    "--threads", 1,
)  # fmt: skip


def test_from_data_to_a_model_by_commands(data, tmp_path) -> None:
    run, models = tmp_path / "run", tmp_path / "models"
    last = json.loads(invoke("train", "--data", data, "--out", run, *TRAIN, "--json").stdout)
    assert last["epoch"] == last["epochs"] == 1
    assert json.loads((run / "run.json").read_text())["terrains"] == 2
    assert "done before" in invoke("train", "--data", data, "--out", run, *TRAIN).stdout
    export_args = ("export", "--run", run, "--data", data, "--name", "v8", "--out", models)
    assert json.loads(invoke(*export_args, "--json").stdout)["name"] == "v8"
    assert "--force" in invoke(*export_args, code=2).stderr
    picture = tmp_path / "r.png"
    args = ("evaluate", "--model", models / "v8", "--data", data, "--figure", picture)
    report = json.loads(invoke(*args, "--json").stdout)
    assert report["checker"] == "verified"
    assert 0.0 <= report["auc"] <= 1.0
    assert picture.stat().st_size > 5000
    assert "--force" in invoke(*args, code=2).stderr
    shown = invoke(*args[:-2], "--terrains", 1).stdout
    assert "Sobel" in shown
    assert "4 windows of test" in shown


def test_ctrl_c_says_how_to_go_on(data, tmp_path, monkeypatch) -> None:
    from mlnav.learn import training

    def stopped(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "train", stopped)
    run = tmp_path / "run"
    result = invoke("train", "--data", data, "--out", run, *TRAIN, code=130)
    assert "begins again" in result.stderr
    (run / training.CHECKPOINT).touch()
    result = invoke("train", "--data", data, "--out", run, *TRAIN, code=130)
    assert "goes on from there" in result.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("train", "--data", "{data}", "--checker", "settle", "--out", "{tmp}"), "no labels"),
        (("train", "--data", "{tmp}", "--checker", "verified", "--out", "{tmp}"), "no data set"),
        (
            ("train", "--data", "{data}", "--checker", "verified", "--out", "x", "--widths", "8,y"),
            "--widths",
        ),
        (("data", "--out", "{tmp}", "--terrains", "3,3"), "3 whole numbers"),
        (("evaluate", "--model", "nowhere", "--data", "{data}"), "no model"),
        (("export", "--run", "{tmp}", "--data", "{data}", "--name", "x"), "nothing was trained"),
    ],
)
def test_bad_input_is_told_in_a_line(data, tmp_path, args, message) -> None:
    filled = [a.format(data=data, tmp=tmp_path) for a in args]
    assert message in " ".join(invoke(*filled, code=2).stderr.split())


def test_a_missing_extra_is_named(data, tmp_path, monkeypatch) -> None:
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "torch" else find(name)
    )
    result = invoke("train", "--data", data, "--out", tmp_path, *TRAIN, code=2)
    assert "mlnav[train]" in result.stderr.replace("\n", "")


def test_a_tiny_data_set_by_command(tmp_path) -> None:
    args = ("--terrains", "1,1,1", "--windows", 1, "--samples", 20)
    made = json.loads(invoke("data", "--out", tmp_path, *args, "--json").stdout)
    assert made["counts"]["train"]["windows"] == 1
    assert "train" in invoke("data", "--out", tmp_path, *args).stdout
    assert "other settings" in invoke("data", "--out", tmp_path, *args, "--seed", 2, code=2).stderr


def test_nothing_at_run_time_imports_torch() -> None:
    code = (
        "import sys, mlnav, mlnav.risk, mlnav.sim, mlnav.campaign, mlnav.studies, mlnav.report,"
        " mlnav.cli.main, mlnav.viz;"
        "print([m for m in ('torch', 'onnx', 'onnxruntime', 'mlnav.learn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_helpers_of_the_command_line() -> None:
    assert cli.whole_numbers("--widths", "16,24") == (16, 24)
    assert math.isclose(sum(cli.whole_numbers("--terrains", "1,2,3", 3)), 6)
    with pytest.raises(ValueError, match="--widths"):
        cli.whole_numbers("--widths", "0,4")


def test_models_of_other_windows_are_refused(model) -> None:
    with pytest.raises(EvaluationError, match="cells"):
        Network(read_model(model)).risk(np.zeros((64, 64), np.int16))
    with pytest.raises(ModelError):
        read_model(model.parent)
