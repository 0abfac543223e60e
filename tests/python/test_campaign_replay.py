import json
from pathlib import Path

import numpy as np
import pytest
from campaign_cases import tiny
from typer.testing import CliRunner

from mlnav.campaign import CampaignError, run
from mlnav.campaign.replay import find, replay
from mlnav.campaign.store import Writer, locked
from mlnav.cli import app
from mlnav.trials.records import Outcome, run_trial, unfinished


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    home = tmp_path_factory.mktemp("replay")
    definition = tiny(
        home,
        trials=2,
        contenders=["none", "network"],
        dispersions={"sensor.half_width_m": {"uniform": [10, 14]}},
    )
    run(definition, home / "x")
    return home / "x"


def mlnav(*args: object, code: int = 0):
    result = CliRunner().invoke(app, ["replay", *map(str, args)])
    assert result.exit_code == code, result.output
    return result


def tampered(folder: Path, name: str, **changes: object) -> None:
    """Record a trial of a campaign anew, with other values."""
    record = find(name, folder)
    with locked(folder), Writer(folder, {"what": "rerun"}) as writer:
        writer.add(Outcome(dict(record.row) | changes, [dict(c) for c in record.cycles]))


def test_every_trial_comes_again_bit_for_bit(folder) -> None:
    for name in ("a,0,none", "a,1,network", "b,1,none"):
        record = find(name, folder)
        again = replay(record)
        assert again.differences == []
        assert again.made_with == {}
        assert again.outcome.trial["key"] == record.row["key"]
        assert len(again.outcome.cycles) == len(record.cycles) == record.row["cycles"] > 0
        assert again.result.outcome == "goal_reached"


def test_replay_files_need_no_campaign(folder, tmp_path) -> None:
    trial = find("a,1,network", folder).trial
    alone = tmp_path / "trial.json"
    alone.write_text(json.dumps(trial.as_dict()))
    record = find(str(alone))
    assert (record.trial, record.row) == (trial, None)
    assert replay(record).differences == []
    assert find(str(alone), folder).row["key"] == trial.key
    (folder / "replays").mkdir(exist_ok=True)
    inside = folder / "replays" / f"{trial.key}.json"
    inside.write_text(alone.read_text())
    assert find(str(inside)).row["key"] == trial.key
    for bad in ("", "[]", "{}"):
        alone.write_text(bad)
        with pytest.raises(CampaignError):
            find(str(alone))
    with pytest.raises(CampaignError, match=r"nowhere.json: cannot be read"):
        find("nowhere.json")
    with pytest.raises(CampaignError, match="say which campaign"):
        find("a,0,none")


def test_differences_are_found_and_told(folder, tmp_path) -> None:
    row = find("b,0,none", folder).row
    tampered(folder, "b,0,none", driven_m=float(np.nextafter(row["driven_m"], 99)), faults=["x"])
    found = replay(find("b,0,none", folder)).differences
    assert {(d.cycle, d.column) for d in found} == {(None, "driven_m"), (None, "faults")}
    result = mlnav("b,0,none", "-C", folder, "--out", tmp_path, "--no-picture", code=1)
    assert "2 differences" in result.stdout
    assert "faults: recorded ['x'], now []" in result.stdout
    told = json.loads((tmp_path / "replay.json").read_text())
    assert told["identical"] is False
    assert len(told["differences"]) == 2


def test_a_difference_of_a_cycle_has_its_number(folder) -> None:
    record = find("b,0,network", folder)
    record.cycles[2]["path_cost"] += 1e-9
    (difference,) = replay(record).differences
    assert (difference.cycle, difference.column) == (2, "path_cost")


def test_a_trial_without_a_run_shows_how_it_ends_now(folder) -> None:
    trial = find("a,0,none", folder).trial
    with locked(folder), Writer(folder, {"what": "rerun"}) as writer:
        writer.add(unfinished(trial, "crashed", "crashed 2 times"))
    (difference,) = replay(find("a,0,none", folder)).differences
    assert (difference.recorded, difference.now) == ("crashed", "goal_reached")
    with locked(folder), Writer(folder, {"what": "rerun"}) as writer:
        writer.add(run_trial(trial))
    assert replay(find("a,0,none", folder)).differences == []


def test_other_code_is_told_and_is_no_difference(folder, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr("mlnav.trials.trial.code_digest", lambda: "0123456789abcdef")
    again = replay(find("a,1,network", folder))
    assert again.differences == []
    assert set(again.made_with) == {"code"}
    result = mlnav("a,1,network", "-C", folder, "--out", tmp_path, "--no-picture")
    assert "now 0123456789abcdef" in result.stderr


def test_a_trial_that_cannot_begin_is_told(tmp_path) -> None:
    definition = tiny(tmp_path)
    trial = next(definition.trials_of([0]))
    (tmp_path / "trial.json").write_text(json.dumps(trial.as_dict()))
    (tmp_path / "a.yaml").write_text("size_m: [3, 3]\n")
    result = mlnav(tmp_path / "trial.json", "--out", tmp_path / "out")
    assert "error, 0 cycles" in result.stdout
    assert "nothing is recorded" in result.stdout
    assert "Error" in result.stderr


def test_the_command_draws_what_is_asked_for(folder, tmp_path) -> None:
    key = find("a,1,network", folder).row["key"]
    out = tmp_path / "out"
    args = (key[:10], "--campaign", folder, "--out", out)
    result = mlnav(*args, "--cycle", 1, "--cycle", 3, "--gif", "--json")
    told = json.loads(result.stdout)
    assert (told["identical"], told["outcome"], told["recorded"]) == (
        True, "goal_reached", "goal_reached",
    )  # fmt: skip
    assert sorted(p.name for p in out.iterdir()) == [
        "cycle-1.json", "cycle-1.png", "cycle-3.json", "cycle-3.png", "replay.json",
        "traverse.gif", "traverse.png",
    ]  # fmt: skip
    cycle = json.loads((out / "cycle-3.json").read_text())
    recorded = find("a,1,network", folder).cycles[3]
    assert cycle["cycle"] == 3
    assert cycle["path_cost"] == recorded["path_cost"]
    assert cycle["pose"][0] == recorded["pose_x_m"]
    message = " ".join(mlnav(*args, code=2).stderr.split())
    assert "--force" in message
    assert "identical" in mlnav(*args, "--force", "--no-picture").stdout
    message = mlnav(*args, "--force", "--no-picture", "--cycle", 99, code=2).stderr
    assert "--cycle 99: the run has" in message


def test_a_recording_is_of_the_same_run(folder, tmp_path) -> None:
    pytest.importorskip("rerun")
    path = tmp_path / "run.rrd"
    mlnav("a,1,network", "-C", folder, "--out", tmp_path, "--no-picture", "--rerun", path)
    assert path.stat().st_size > 10_000
