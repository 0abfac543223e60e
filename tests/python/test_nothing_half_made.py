"""What is refused is refused before anything is written: no folder that then wants --force."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mlnav.cli import app
from mlnav.risk import model_folder

SHORT = ["--terrain", "0/.05"]


def refused(out: Path, *args: object) -> str:
    result = CliRunner().invoke(app, [*map(str, args), "--out", str(out)])
    assert result.exit_code == 2, result.output
    assert not out.exists(), sorted(out.rglob("*"))
    assert "internal" not in result.output
    return " ".join(result.output.split())


@pytest.fixture
def corrupt(tmp_path) -> Path:
    """A shipped model with one byte changed."""
    folder = tmp_path / "corrupt"
    shutil.copytree(str(model_folder() / "verified-flight_like"), folder)
    content = bytearray((folder / "model.onnx").read_bytes())
    content[len(content) // 2] ^= 1
    (folder / "model.onnx").write_bytes(content)
    return folder


@pytest.mark.onnx
@pytest.mark.parametrize(
    "command",
    [
        ["traverse", *SHORT, "--heuristic", "network", "--set", "heuristic.model={}"],
        ["plan", *SHORT, "--heuristic", "network", "--set", "heuristic.model={}"],
        ["compare", *SHORT, "--pairs", "1", "--heuristics", "none,network:model={}"],
        [
            "campaign", "run", "smoke",
            "--set", "contenders=[none, {{name: x, heuristic: {{name: network, model: {}}}}}]",
        ],
    ],
    ids=lambda command: command[0],
)  # fmt: skip
def test_a_corrupt_model(tmp_path, corrupt, command) -> None:
    pytest.importorskip("onnxruntime")
    args = [arg.format(corrupt) for arg in command]
    assert "checksum" in refused(tmp_path / "out", *args)


@pytest.mark.parametrize(
    "command",
    [
        ["traverse", *SHORT],
        ["plan", *SHORT],
        ["compare", *SHORT, "--pairs", "1"],
        ["ace", *SHORT],
        ["ace", "explain", *SHORT, "--at", "20,20,0"],
        ["bench", "soundness", *SHORT, "--poses", "10"],
    ],
    ids=lambda command: " ".join(command[:2]),
)
@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("planner.tree.ace_step_m=0.07", "ace_step_m"),
        ("planner.visit_radius_m=20", "visit_radius_m"),
        ("limits.tilt_max_deg=80", "tilt_max_deg"),
        ("checker.max_tries=0", "max_tries"),
    ],
)
def test_a_value_that_the_core_refuses(tmp_path, command, setting, told) -> None:
    assert told in refused(tmp_path / "out", *command, "--set", setting)


@pytest.mark.parametrize(
    ("command", "args", "told"),
    [
        *(
            (command, args, told)
            for command in ("traverse", "plan")
            for args, told in (
                (["--start=-5,5", "--goal=30,30"], "start"),
                (["--start=5,5", "--goal=300,30"], "goal"),
                (["--heading-deg=nan"], "heading"),
                (["--terrain", "nowhere.tif"], "nowhere.tif"),
            )
        ),
        ("traverse", ["--world", "kinematic:x"], "world"),
    ],
)
def test_a_run_that_cannot_begin(tmp_path, command, args, told) -> None:
    assert told in refused(tmp_path / "out", command, *SHORT, *args)


@pytest.mark.onnx
@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (["--heuristics", "none,network:model=typo"], "no model 'typo' for verified, flight_like"),
        (
            ["--heuristics", "none,network", "--checker", "fixed_box", "--limits", "flight_like"],
            "no model 'auto' for fixed_box, flight_like",
        ),
        (["--heuristics", "none,netwrok"], "network"),
        (["--terrain", "nowhere.tif"], "nowhere.tif"),
    ],
)
def test_a_comparison_that_would_be_of_the_baseline_with_itself(tmp_path, settings, told) -> None:
    pytest.importorskip("onnxruntime")
    output = refused(tmp_path / "out", "compare", *SHORT, "--pairs", "1", *settings)
    assert told in output


def test_training_data_that_is_none(tmp_path) -> None:
    pytest.importorskip("torch")
    told = refused(
        tmp_path / "run", "learn", "train", "--data", tmp_path / "nowhere", "--checker", "verified"
    )
    assert "nowhere" in told
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.onnx
def test_a_model_that_is_no_network(tmp_path, corrupt) -> None:
    """Its checksum holds: it was written for rubbish."""
    pytest.importorskip("onnxruntime")
    rubbish = b"this is no network"
    (corrupt / "model.onnx").write_bytes(rubbish)
    manifest = json.loads((corrupt / "manifest.json").read_text())
    manifest["sha256"] = hashlib.sha256(rubbish).hexdigest()
    (corrupt / "manifest.json").write_text(json.dumps(manifest))
    for command in (
        ["compare", *SHORT, "--pairs", "1", "--heuristics", f"none,network:model={corrupt}"],
        ["traverse", *SHORT, "--heuristic", "network", "--set", f"heuristic.model={corrupt}"],
        ["bench", "traverses", "--classes", "0/.05", "--seeds", "1", "--heuristic", "network",
         "--set", f"heuristic.model={corrupt}"],
    ):  # fmt: skip
        assert "not a usable network" in refused(tmp_path / "out", *command)


def test_results_that_are_there_outlive_what_is_refused(tmp_path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    for name, command in (
        ("summary.json", ["traverse", *SHORT, "--rerun", str(blocked / "run.rrd")]),
        ("traverses.jsonl", ["bench", "traverses", "--classes", "nonsense"]),
        ("ace.json", ["ace", *SHORT, "--set", "checker.max_tries=0"]),
    ):
        (out / name).write_text("precious")
        result = CliRunner().invoke(app, [*command, "--out", str(out), "--force"])
        assert result.exit_code == 2, result.output
        assert (out / name).read_text() == "precious"
