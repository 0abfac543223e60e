import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from campaign_cases import tiny, tiny_yaml
from typer.testing import CliRunner

from mlnav.campaign import load
from mlnav.campaign.store import create, locked
from mlnav.cli import app

MLNAV = shutil.which("mlnav", path=str(Path(sys.executable).parent)) or "mlnav"


def mlnav(*args: object, code: int = 0):
    result = CliRunner().invoke(app, ["campaign", *map(str, args)])
    assert result.exit_code == code, result.output
    return result


def refused(*args: object) -> str:
    result = mlnav(*args, code=2)
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return " ".join(result.stderr.split())


@pytest.fixture(scope="module")
def spec(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("definition")
    (folder / "tiny.yaml").write_text(tiny_yaml(folder))
    return folder / "tiny.yaml"


def test_help_of_every_command_has_examples() -> None:
    for command in ("run", "resume", "status", "rerun", "merge", "report", "compare"):
        assert "Examples" in mlnav(command, "--help").stdout, command


def test_from_a_run_to_a_merge(spec, tmp_path) -> None:
    out = tmp_path / "x"
    result = mlnav("run", spec, "--out", out, "--trials", 1, "--workers", 1, "--json")
    state = json.loads(result.stdout)
    assert (state["done"], state["total"], state["complete"], state["failed"]) == (4, 4, True, 0)
    assert state["figures"]["none"]["success"]["hits"] == 2
    assert state["out"] == str(out)
    assert json.loads(mlnav("status", out, "--json").stdout) == state

    message = refused("run", spec, "--out", out)
    assert "holds a campaign already" in message
    result = mlnav("resume", out, "--trials", 2, "--workers", 1)
    assert "8 of 8" in result.stdout
    assert "complete" in result.stdout
    mlnav("rerun", out, "a,0,none", "-w", 1)
    assert load(out).find("a,0,none")["run"] == 2
    assert "no trial to run again" in refused("rerun", out, "--outcome", "crashed")
    assert "no trial 'zzz'" in refused("rerun", out, "zzz")

    assert "8 of 8" in mlnav("merge", out, "--out", tmp_path / "y").stdout
    assert load(tmp_path / "y").trials().num_rows == 8


def test_reports_are_written(spec, tmp_path) -> None:
    pytest.importorskip("jinja2")
    pytest.importorskip("plotly")
    create(tmp_path, tiny(spec.parent))
    page = mlnav("report", tmp_path, "--pictures", 0).stdout.strip()
    assert page == str(tmp_path / "report/report.html")
    assert Path(page).exists()
    files = json.loads(mlnav("compare", tmp_path, tmp_path, "-o", tmp_path / "c", "--json").stdout)
    assert all(Path(path).exists() for path in files.values())


def test_a_campaign_with_lost_trials_ends_with_1(spec, tmp_path) -> None:
    out = tmp_path / "x"
    result = mlnav(
        "run", spec, "--out", out, "--trials", 1, "--set", "wall_s=0.02",
        "--terrain", "20/.10", "--set", "contenders=[none]", code=1,
    )  # fmt: skip
    assert "1 hung" in result.stdout
    assert "rerun" in result.stderr
    replays = list((out / "replays").iterdir())
    assert len(replays) == 1
    assert mlnav("status", out).exit_code == 0  # nothing is left to run
    again = CliRunner().invoke(
        app, ["replay", str(replays[0]), "--out", str(tmp_path / "r"), "--no-picture"]
    )
    assert again.exit_code == 1
    assert "outcome: recorded 'hung', now '" in again.stdout


def test_a_campaign_that_has_not_begun_has_a_status(spec, tmp_path) -> None:
    create(tmp_path, tiny(spec.parent))
    assert "0 of 12" in mlnav("status", tmp_path, code=1).stdout
    with locked(tmp_path):
        assert "being run by process" in " ".join(mlnav("status", tmp_path, code=1).stdout.split())
        assert "being written by process" in refused("resume", tmp_path)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["run", "smokes"], "no campaign 'smokes'"),
        (["run", "nowhere.yaml"], "nowhere.yaml: cannot be read"),
        (["run", "real"], "--terrain"),
        (["run", "smoke", "--terrain", "nowhere.tif"], "nowhere.tif"),
        (["run", "smoke", "--set", "trails=3"], "did you mean 'trials'"),
        (["run", "smoke", "--trials", "0"], "--trials"),
        (["run", "smoke", "--workers", "0"], "--workers"),
        (["run", "smoke", "--scheduler", "localhost:8786"], "must be dask://host:port"),
        (["resume", "nowhere"], "holds no campaign"),
        (["status", "nowhere"], "holds no campaign"),
        (["rerun", "nowhere"], "holds no campaign"),
        (["merge", "nowhere", "--out", "x"], "holds no campaign"),
    ],
)
def test_bad_input_is_named(tmp_path, monkeypatch, args, words) -> None:
    monkeypatch.chdir(tmp_path)
    assert words in refused(*args)


def test_damage_is_told(spec, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("mlnav.campaign.store.FLUSH_LEAST_S", 1e9)
    monkeypatch.setattr("mlnav.campaign.store.FLUSH_MOST_S", 1e9)
    out = tmp_path / "x"
    mlnav("run", spec, "--out", out, "--trials", 1, "--workers", 1)
    part = out / "parts/trials-000001.parquet"
    part.write_bytes(part.read_bytes()[:500])
    result = mlnav("status", out, code=1)
    assert "0 of 4" in result.stdout
    assert "trials-000001.parquet" in " ".join(result.stderr.split()).replace(" ", "")


def test_ctrl_c_says_how_to_go_on(spec, tmp_path, ctrl_c) -> None:
    command = [
        MLNAV, "campaign", "run", spec, "--out", tmp_path / "x",
        "--trials", "400", "--workers", "1",
    ]  # fmt: skip
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    parts = tmp_path / "x/parts"
    while not list(parts.glob("trials-*.parquet")):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to the workers too
    stdout, stderr = process.communicate()
    assert process.returncode == 130, stderr
    assert stdout == ""
    assert "Traceback" not in stderr
    assert "`mlnav campaign resume" in " ".join(stderr.split())
    done = load(tmp_path / "x").trials().num_rows
    assert 0 < done < 1600
    assert f"after {done} of 1600 trials" in " ".join(stderr.split())
