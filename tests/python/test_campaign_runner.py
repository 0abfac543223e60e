import os
import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import campaign_cases
import pyarrow as pa
import pytest
from campaign_cases import content, outcomes, results, tiny, tiny_yaml

from mlnav import campaign
from mlnav.campaign import CampaignError, load, merge, status
from mlnav.campaign.progress import enough
from mlnav.campaign.store import Writer, create, locked, part_path
from mlnav.compute.cluster import ClusterError
from mlnav.risk.models import ModelError

SLOW = {"trials": 8}

# Where no process is at stake, none is started: `workers` says where one is.
run, resume, rerun = (
    partial(act, workers=0) for act in (campaign.run, campaign.resume, campaign.rerun)
)


@pytest.fixture(scope="module")
def recipes(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("recipes")


@pytest.fixture(scope="module")
def whole(tmp_path_factory, recipes):
    """Uninterrupted, with one worker."""
    return run(tiny(recipes, **SLOW), tmp_path_factory.mktemp("campaign") / "whole", workers=1)


def test_every_trial_is_run_once(whole) -> None:
    slots = [(r["terrain"], r["trial"], r["contender"]) for r in whole.trials().to_pylist()]
    assert slots == [(g, k, c) for g in "ab" for k in range(8) for c in ("none", "sobel")]
    state = status(whole.folder)
    assert (state.done, state.total, state.complete, state.failed) == (32, 32, True, 0)
    assert (state.writer, state.runs, state.damaged) == (None, 1, ())
    entry = whole.provenance[0]
    assert {"what", "workers", "mlnav", "code", "core", "started_utc", "ended_utc"} <= set(entry)


def test_two_workers_give_the_same_table(whole, recipes, tmp_path) -> None:
    seen = []
    store = run(tiny(recipes, **SLOW), tmp_path / "two", workers=2, progress=seen.append)
    assert content(store) == content(whole)
    assert [p.done for p in seen] == list(range(33))
    assert {p.total for p in seen} == {32}
    assert seen[-1].success.trials == 32
    assert seen[0].left_s is None
    assert seen[-1].left_s == 0.0
    assert seen[10].left_s > 0
    assert "goal reached" in seen[-1].last


def test_resume_runs_what_is_missing_and_nothing_else(whole, recipes, tmp_path) -> None:
    folder = tmp_path / "x"
    run(tiny(recipes, **SLOW | {"trials": 5}), folder)
    before = part_path(folder, "trials", 1).read_bytes()
    seen = []
    store = resume(folder, trials=8, progress=seen.append)
    assert seen[0].done == 20
    assert content(store) == content(whole)
    assert part_path(folder, "trials", 1).read_bytes() == before
    assert store.trials().filter(pa.compute.equal(store.trials()["run"], 1)).num_rows == 12
    seen.clear()
    resume(folder, progress=seen.append)
    assert [p.done for p in seen] == [32]
    with pytest.raises(CampaignError, match="is to have 8 trials a terrain, 7 are fewer"):
        resume(folder, trials=7)


# ----------------------------------------------------------------------------- trials that are lost


def test_what_a_trial_does_to_its_process_costs_that_trial(recipes, tmp_path) -> None:
    definition = tiny(recipes, trials=6, terrains=[str(recipes / "a.yaml")], wall_s=2.0,
                      memory_mb=6000)  # fmt: skip
    store = run(definition, tmp_path / "x", workers=2, run_one=campaign_cases.troubled)
    found = outcomes(store)
    assert [found[k, "sobel"] for k in range(6)] == [
        "crashed", "crashed", "hung", "out_of_memory", "error", "goal_reached",
    ]  # fmt: skip
    assert {found[k, "none"] for k in range(6)} == {"goal_reached"}
    for row in store.trials().to_pylist():
        lost = row["outcome"] in ("crashed", "hung", "out_of_memory")
        assert row["attempts"] == (2 if lost else 1)
        assert (row["error"] is None) == (row["outcome"] == "goal_reached")
        assert (tmp_path / "x/replays" / f"{row['key']}.json").exists() == (not row["success"])
    errors = [e for e in store.trials()["error"].to_pylist() if e]
    assert "ZeroDivisionError: on purpose" in errors
    assert any("hung 2 times (not over after 2 s)" in e for e in errors)
    state = status(tmp_path / "x")
    assert (state.failed, state.complete) == (5, True)
    # They have a result, so that they are not run again unasked; asked for, they are.
    assert content(resume(tmp_path / "x")) == content(store)
    store = rerun(tmp_path / "x", outcomes=["crashed"])
    found = outcomes(store)
    assert [found[k, "sobel"] for k in range(3)] == ["goal_reached", "goal_reached", "hung"]
    assert store.trials().num_rows == 12
    row = next(r for r in store.trials().to_pylist() if r["outcome"] == "hung")
    store = rerun(tmp_path / "x", [row["key"][:8], "a,3,sobel"])
    assert status(tmp_path / "x").failed == 1
    with pytest.raises(CampaignError, match="no trial to run again"):
        rerun(tmp_path / "x", outcomes=["crashed"])


def test_a_crash_that_does_not_come_again_costs_nothing(recipes, tmp_path, monkeypatch) -> None:
    (tmp_path / "flags").mkdir()
    monkeypatch.setenv("MLNAV_TEST_FLAGS", str(tmp_path / "flags"))
    definition = tiny(recipes, trials=1, terrains=[str(recipes / "a.yaml")])
    store = run(definition, tmp_path / "x", workers=2, run_one=campaign_cases.troubled_once)
    assert store.trials()["outcome"].to_pylist() == ["goal_reached"] * 2
    assert len(list((tmp_path / "flags").iterdir())) == 2


def test_a_campaign_of_which_every_trial_fails_is_complete(recipes, tmp_path) -> None:
    grounds = [str(recipes / "a.yaml")]
    definition = tiny(recipes, trials=1, terrains=grounds, contenders=["none"], wall_s=0.05)
    store = run(definition, tmp_path / "x", workers=1, run_one=campaign_cases.half_a_second)
    assert store.trials()["outcome"].to_pylist() == ["hung"]
    assert store.cycles().num_rows == 0
    state = status(tmp_path / "x")
    assert (state.complete, state.failed) == (True, 1)
    assert state.figures["none"].rate("success").hits == 0


# ------------------------------------------------------------------------------ ends and new starts

PROGRAM = """\
import sys
import campaign_cases
from mlnav import campaign
from mlnav.campaign import store
store.FLUSH_LEAST_S = store.FLUSH_SHARE = 0.0  # a part for every trial
definition, folder = sys.argv[1:]
if __name__ == "__main__":
    if (store.Path(folder) / "campaign.yaml").exists():
        campaign.resume(folder)
    else:
        campaign.run(campaign.load_definition(definition), folder)
"""


def started(definition: Path, folder: Path) -> subprocess.Popen:
    program = definition.with_name("program.py")
    program.write_text(PROGRAM)
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, program, definition, folder],
        env=os.environ | {"PYTHONPATH": path},
        stderr=subprocess.DEVNULL,
    )


def killed_and_resumed(whole, recipes, tmp_path, moments: int, again: float, seed: int) -> None:
    """Kill runners at so many random moments, some of them again while they resume."""
    definition = tmp_path / "definition.yaml"
    definition.write_text(tiny_yaml(recipes, **SLOW))
    rng = random.Random(seed)
    kills = 0
    for i in range(moments):
        folder = tmp_path / str(i)
        parts = folder / "parts"
        while True:
            process = started(definition, folder)
            wanted = len(list(parts.glob("trials-*"))) + rng.randrange(16)
            while process.poll() is None and len(list(parts.glob("trials-*"))) < wanted:
                time.sleep(0.005)
            time.sleep(rng.uniform(0.0, 0.1))
            process.send_signal(signal.SIGKILL)
            if process.wait() == 0:
                break
            assert process.returncode == -signal.SIGKILL
            kills += 1
            if rng.random() >= again:
                break
        if (folder / "campaign.yaml").exists():
            resume(folder)
        else:
            run(tiny(recipes, **SLOW), folder)
        assert content(load(folder)) == content(whole)
        assert not list(parts.glob(".*"))
    assert kills >= moments


def test_a_runner_that_is_killed_resumes_to_the_same_table(whole, recipes, tmp_path) -> None:
    killed_and_resumed(whole, recipes, tmp_path, moments=3, again=0.0, seed=1)


@pytest.mark.slow
@pytest.mark.skipif(
    not os.environ.get("MLNAV_SLOW_TESTS"), reason="minutes long: set MLNAV_SLOW_TESTS"
)
def test_twenty_moments_to_be_killed_at(whole, recipes, tmp_path) -> None:
    killed_and_resumed(whole, recipes, tmp_path, moments=20, again=0.5, seed=2)


def test_ctrl_c_keeps_what_has_ended(whole, recipes, tmp_path, ctrl_c) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(
            tiny(recipes, **SLOW), tmp_path / "x", workers=1,
            run_one=campaign_cases.interrupted_at_4,
        )  # fmt: skip
    kept = load(tmp_path / "x")
    assert kept.trials().num_rows == 16
    assert set(kept.trials()["trial"].to_pylist()) == {0, 1, 2, 3}
    assert "ended_utc" in kept.provenance[0]
    assert not status(tmp_path / "x").complete
    assert content(resume(tmp_path / "x")) == content(whole)


def test_a_damaged_part_is_run_again_and_left(whole, recipes, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("mlnav.campaign.store.FLUSH_TRIALS", 10)
    run(tiny(recipes, **SLOW), tmp_path / "x")
    part = part_path(tmp_path / "x", "trials", 2)
    part.write_bytes(part.read_bytes()[:-100])
    assert status(tmp_path / "x").done < 32
    store = resume(tmp_path / "x")
    assert content(store) == content(whole)
    assert len(store.damaged) == 1
    assert part.exists()


def test_two_runners_do_not_share_a_campaign(recipes, tmp_path) -> None:
    folder = tmp_path / "x"
    run(tiny(recipes, trials=1), folder)
    with locked(folder):
        for action in (
            lambda: resume(folder),
            lambda: rerun(folder, ["a,0,none"]),
            lambda: run(tiny(recipes), folder),
        ):
            with pytest.raises(CampaignError, match=f"being written by process {os.getpid()} on"):
                action()
        assert status(folder).writer.startswith(f"process {os.getpid()}")


def test_a_campaign_is_not_run_over_another(recipes, tmp_path) -> None:
    store = run(tiny(recipes, trials=1), tmp_path / "x")
    with pytest.raises(CampaignError, match="holds a campaign already"):
        run(tiny(recipes, trials=2), tmp_path / "x")
    assert content(load(tmp_path / "x")) == content(store)
    with pytest.raises(CampaignError, match="holds no campaign"):
        resume(tmp_path / "nothing")
    (tmp_path / "file").write_text("")
    with pytest.raises(CampaignError, match="cannot write to"):
        run(tiny(recipes), tmp_path / "file" / "x")


# -------------------------------------------------------------------------------- nothing is mixed


def test_results_of_other_code_are_not_mixed_in(recipes, tmp_path, monkeypatch) -> None:
    folder = tmp_path / "x"
    before = run(tiny(recipes, trials=1), folder)
    code = before.trials()["code"][0].as_py()
    monkeypatch.setattr("mlnav.trials.trial.code_digest", lambda: "0123456789abcdef")
    for action in (lambda: resume(folder, trials=2), lambda: rerun(folder, ["a,0,none"])):
        with pytest.raises(CampaignError, match=f"4 trials .*code {code}, now 0123.*--keep-old"):
            action()
    assert content(resume(folder, keep_old=True)) == content(before)
    # The workers have the code that is there, which is not what this process says it runs.
    with pytest.raises(CampaignError, match=r"other code, models or files than this .* \(code "):
        resume(folder, trials=2, keep_old=True, workers=1)


def test_a_changed_ground_file_is_not_mixed_in(recipes, tmp_path) -> None:
    definition = tiny(tmp_path, trials=1)
    run(definition, tmp_path / "x")
    path = tmp_path / "b.yaml"
    path.write_text(path.read_text().replace("cfa: 0.05", "cfa: 0.06"))
    with pytest.raises(CampaignError, match=r"2 trials .*terrain file .*, now "):
        resume(tmp_path / "x", trials=2)
    store = resume(tmp_path / "x", trials=2, keep_old=True)
    assert store.trials().num_rows == 8
    assert len(set(store.trials()["terrain_file"].to_pylist())) == 2


def test_a_changed_model_is_not_mixed_in(recipes, tmp_path) -> None:
    import hashlib
    import json
    import shutil

    from mlnav.io import shipped_folder

    model = tmp_path / "model"
    shutil.copytree(str(shipped_folder("models") / "fixed_box-enav_like"), model)
    contender = {"name": "n", "heuristic": {"name": "network", "model": str(model)}}
    definition = tiny(recipes, trials=1, contenders=["none", contender])
    before = run(definition, tmp_path / "x")
    weights = bytearray((model / "model.onnx").read_bytes())
    weights[len(weights) // 2] ^= 1
    network = bytes(weights)
    (model / "model.onnx").write_bytes(network)
    with pytest.raises(CampaignError, match=r"contender n: .*checksum"):
        resume(tmp_path / "x", trials=2)
    manifest = json.loads((model / "manifest.json").read_text())
    manifest["sha256"] = hashlib.sha256(network).hexdigest()
    (model / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(CampaignError, match=r"2 trials .*model .*, now "):
        resume(tmp_path / "x", trials=2)
    assert content(load(tmp_path / "x")) == content(before)


def test_a_definition_that_was_changed_is_noticed(recipes, tmp_path) -> None:
    run(tiny(recipes, trials=1), tmp_path / "x")
    path = tmp_path / "x/campaign.yaml"
    path.write_text(path.read_text().replace("seed: 0", "seed: 1"))
    with pytest.raises(CampaignError, match=r"4 trials that are not of its campaign.yaml"):
        resume(tmp_path / "x", keep_old=True)


def test_a_model_that_cannot_be_used_ends_a_campaign(recipes, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("mlnav.campaign.runner.check_available", lambda definition: None)
    contender = {"name": "n", "heuristic": {"name": "network", "model": str(tmp_path)}}
    with pytest.raises(ModelError, match="manifest"):
        run(tiny(recipes, trials=1, contenders=["none", contender]), tmp_path / "x")


# ----------------------------------------------------------------------------------- stopping rule


def test_trials_end_when_the_figure_is_known(recipes, tmp_path) -> None:
    stop = {"figure": "success", "width": 0.3, "at_least": 2}  # all succeed: from 5 x 2 on
    definition = tiny(recipes, trials=30, stop=stop)
    seen = []
    store = run(definition, tmp_path / "x", workers=2, progress=seen.append)
    assert set(store.trials()["trial"].to_pylist()) == set(range(5))
    assert store.trials().num_rows == 20
    assert seen[0].total == 120
    state = status(tmp_path / "x")
    assert (state.complete, state.done, state.total) == (True, 20, 120)
    assert content(resume(tmp_path / "x")) == content(store)
    # Interrupted on the way, it ends at the same place.
    with pytest.raises(KeyboardInterrupt):
        run(definition, tmp_path / "y", run_one=campaign_cases.stopped_at_4)
    assert not status(tmp_path / "y").complete
    assert content(resume(tmp_path / "y")) == content(store)


def test_the_rule_looks_at_every_contender(recipes) -> None:
    definition = tiny(
        recipes, trials=50, stop={"figure": "evaluations", "width": 0.1, "at_least": 5}
    )

    def rows(spread: int) -> list[dict]:
        return [
            {"trial": k, "terrain": "a", "contender": c, "success": True, "cycles": 10,
             "ace_evaluations": 500 + (spread * (-1) ** k if c == "sobel" else k)}
            for k in range(20) for c in ("none", "sobel")
        ]  # fmt: skip

    assert not enough(definition, 4, rows(1))
    assert enough(definition, 20, rows(1))
    assert not enough(definition, 20, rows(200))
    assert enough(definition, 50, [])


# ------------------------------------------------------------------------------------------- merge


def test_campaigns_of_parts_are_one(whole, recipes, tmp_path) -> None:
    grounds = [str(recipes / "a.yaml"), str(recipes / "b.yaml")]
    run(tiny(recipes, **SLOW | {"terrains": grounds[:1], "trials": 8}), tmp_path / "a")
    run(tiny(recipes, **SLOW | {"terrains": grounds[1:], "trials": 8}), tmp_path / "b")
    run(tiny(recipes, **SLOW | {"trials": 2}), tmp_path / "both")
    store = merge([tmp_path / "a", tmp_path / "b", tmp_path / "both"], tmp_path / "all")
    assert content(store) == content(whole)
    assert status(tmp_path / "all").complete
    assert [e["what"] for e in store.provenance] == ["run", "run", "run", "merge"]
    rows = store.trials().to_pylist()
    by_run = {r["run"]: store.provenance[r["run"]]["folder"] for r in rows}
    assert by_run[0].endswith("/a")
    assert by_run[1].endswith("/b")
    assert by_run[2].endswith("/both")
    # What was recorded last is taken.
    assert {r["run"] for r in rows if r["trial"] < 2} == {2}
    with pytest.raises(CampaignError, match="holds a campaign already"):
        merge([tmp_path / "a"], tmp_path / "b")


def test_campaigns_that_do_not_go_together_are_told(recipes, tmp_path) -> None:
    other = [{"name": "none", "planner.commit_length_m": 0.5}]
    for name, changes in (("a", {}), ("b", {"seed": 1}), ("d", {"contenders": other})):
        (tmp_path / name).mkdir()
        create(tmp_path / name, tiny(recipes, **changes))
    with pytest.raises(CampaignError, match="differ in their seed"):
        merge([tmp_path / "a", tmp_path / "b"], tmp_path / "c")
    with pytest.raises(CampaignError, match=r"contender none of .*d is another one"):
        merge([tmp_path / "a", tmp_path / "d"], tmp_path / "c")
    assert not (tmp_path / "c").exists()


def test_results_of_different_code_are_not_put_together(whole, recipes, tmp_path) -> None:
    (tmp_path / "a").mkdir()
    create(tmp_path / "a", tiny(recipes, trials=1))
    trials = whole.trials().slice(0, 2)
    code = pa.array(["0123456789abcdef"] * 2)
    with locked(tmp_path / "a"), Writer(tmp_path / "a", {"what": "run"}) as writer:
        place = trials.schema.get_field_index("code")
        trials = trials.set_column(place, trials.schema.field(place), code)
        keys = trials["key"]
        cycles = whole.cycles()
        writer.add_part(trials, cycles.filter(pa.compute.is_in(cycles["key"], value_set=keys)))
    with pytest.raises(CampaignError, match="different codes: 0123456789abcdef and"):
        merge([tmp_path / "a", whole.folder], tmp_path / "c")
    assert merge([tmp_path / "a", whole.folder], tmp_path / "c", keep_old=True).trials()


# ----------------------------------------------------------------------------------------- folders


@pytest.fixture
def disk(tmp_path):
    """Mounts a small file system; skips where that is not allowed."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def mount(options: str) -> Path:
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "mlnav-test", folder],
            capture_output=True, check=False,
        )  # fmt: skip
        if done.returncode:
            pytest.skip("mounting is not permitted here")
        return folder

    yield mount
    subprocess.run(["umount", folder], capture_output=True, check=False)


def test_a_full_disk_costs_the_part_that_was_to_come(whole, recipes, disk, monkeypatch) -> None:
    folder = disk("size=128k") / "x"
    monkeypatch.setattr("mlnav.campaign.store.FLUSH_TRIALS", 8)
    with pytest.raises(CampaignError, match=r"cannot write to .*No space left .*8 trials .*lost"):
        run(tiny(recipes, **SLOW), folder)
    kept = load(folder)
    assert 0 < kept.trials().num_rows < 32
    assert kept.damaged == ()
    disk("remount,size=10m")
    assert content(resume(folder)) == content(whole)


def test_a_disk_that_is_full_from_the_start(recipes, disk) -> None:
    folder = disk("size=4k")
    (folder / "filler").write_bytes(b"x" * 4096)
    with pytest.raises(CampaignError, match=r"cannot write to .*No space left"):
        run(tiny(recipes), folder / "x")


def test_a_read_only_folder_can_be_read(recipes, disk) -> None:
    folder = disk("size=10m") / "x"
    store = run(tiny(recipes, trials=1), folder)
    disk("remount,ro")
    assert content(load(folder)) == content(store)
    assert status(folder).complete
    for action in (lambda: resume(folder), lambda: run(tiny(recipes), folder.parent / "y")):
        with pytest.raises(CampaignError, match=r"cannot write to .*Read-only file system"):
            action()


# ----------------------------------------------------------------------------------------- cluster


def test_schedulers_that_are_none_are_refused(recipes, tmp_path, monkeypatch) -> None:
    with pytest.raises(ClusterError, match="'tcp://x:1': must be dask://host:port"):
        run(tiny(recipes), tmp_path / "a", scheduler="tcp://x:1")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ClusterError, match="extra 'cluster'"):
        run(tiny(recipes), tmp_path / "b", scheduler="dask://x:1")


def test_a_cluster_out_of_reach_is_told(recipes, tmp_path, monkeypatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("mlnav.compute.cluster._CONNECT_S", 0.5)
    with pytest.raises(ClusterError, match=r"dask://127.0.0.1:1: no scheduler answers"):
        run(tiny(recipes), tmp_path / "a", scheduler="dask://127.0.0.1:1")


def test_a_cluster_gives_the_same_table_though_a_worker_is_killed(whole, recipes, tmp_path) -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
        silence_logs=50,
    ) as cluster:  # fmt: skip
        victim = next(iter(cluster.workers.values())).process.pid

        def progress(p) -> None:
            if p.done == 4:
                os.kill(victim, signal.SIGKILL)

        address = cluster.scheduler_address.replace("tcp://", "dask://")
        store = run(tiny(recipes, **SLOW), tmp_path / "x", scheduler=address, progress=progress)
        assert content(store) == content(whole)
        # A trial that takes its process down leaves the cluster as it is.
        definition = tiny(recipes, trials=2, wall_s=60)
        lost = run(definition, tmp_path / "y", scheduler=address, run_one=campaign_cases.troubled)
        found = outcomes(lost)
        assert {found[k, "sobel"] for k in range(2)} == {"crashed"}
        assert {found[k, "none"] for k in range(2)} == {"goal_reached"}
        assert results(lost)[0].num_rows == 8
