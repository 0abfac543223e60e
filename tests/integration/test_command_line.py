"""The installed command in processes of its own: output streams, exit codes, Ctrl-C."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from mlnav.io import read_jsonl
from mlnav.terrain import Terrain, write_geotiff

MLNAV = shutil.which("mlnav", path=str(Path(sys.executable).parent)) or "mlnav"


def run(*args: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [MLNAV, *map(str, args)], cwd=cwd, capture_output=True, text=True, check=False
    )


def test_the_demo_is_driven_and_drawn(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    args = ["--terrain", "demo", "--seed", 1, "--heuristic", "network", "--json", "--gif"]
    done = run("traverse", *args, cwd=tmp_path)
    summary = json.loads(done.stdout)
    assert (done.returncode, summary["outcome"]) == (0, "goal_reached"), done.stderr
    out = tmp_path / "out" / "traverse"
    assert sorted(p.name for p in out.iterdir()) == [
        "config.yaml", "cycles.jsonl", "summary.json", "traverse.gif", "traverse.png",
    ]  # fmt: skip


def test_two_processes_agree(tmp_path: Path) -> None:
    summaries = []
    for name in ("a", "b"):
        done = run(
            "traverse", "-t", "10/.07", "--seed", 2, "--no-picture", "--json", "--out", name,
            cwd=tmp_path,
        )  # fmt: skip
        summary = json.loads(done.stdout)
        del summary["timing"], summary["out"]
        summaries.append(summary)
    assert summaries[0] == summaries[1]

    def records(name: str) -> list[dict]:
        found = list(read_jsonl(tmp_path / name / "cycles.jsonl"))
        for record in found:
            del record["timing_s"]
        return found

    assert records("a") == records("b")


def test_ctrl_c_leaves_complete_records(tmp_path: Path, ctrl_c: None) -> None:
    terrain = Terrain(np.zeros((400, 4000)), 0.1, (0.05, 0.05), name="long")
    write_geotiff(tmp_path / "long.tif", terrain)
    command = [
        MLNAV, "traverse", "--terrain", "long.tif", "--start=5,20", "--goal=390,20", "--json",
        "--out", "out",
    ]  # fmt: skip
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    records = tmp_path / "out" / "cycles.jsonl"
    while not records.exists() or records.stat().st_size == 0:
        assert process.poll() is None
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate()
    assert "Traceback" not in stderr
    summary = json.loads(stdout)
    if process.returncode == 0:
        pytest.skip("the run was over before the interrupt")
    assert process.returncode == 130
    assert summary["outcome"] == "interrupted"
    assert summary["success"] is False
    assert json.loads((tmp_path / "out" / "summary.json").read_text()) == summary
    assert records.read_bytes().endswith(b"\n")
    assert len(list(read_jsonl(records))) == summary["cycles"] > 0


def test_a_closed_pipe_is_no_fault(tmp_path: Path) -> None:
    done = subprocess.run(
        f"{MLNAV} config schema | head -c 1", shell=True, cwd=tmp_path, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert "error" not in done.stderr.lower()


def test_faults_are_one_line_on_standard_error(tmp_path: Path) -> None:
    done = run("traverse", "--terrain", "nowhere.tif", "--json", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: nowhere.tif")
