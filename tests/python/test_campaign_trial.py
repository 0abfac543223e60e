import json
from dataclasses import replace

import numpy as np
import pytest
from campaign_cases import tiny

from mlnav.campaign.store import CYCLES, TRIALS
from mlnav.compute import run_tasks
from mlnav.sim import traverse
from mlnav.trials.records import STAGES, TIMES, Reliability, drive, run_trial, unfinished
from mlnav.trials.trial import Trial, TrialError


@pytest.fixture(scope="module")
def trials(tmp_path_factory) -> list[Trial]:
    folder = tmp_path_factory.mktemp("recipes")
    definition = tiny(
        folder,
        terrains=["15/.10"],
        contenders=["none", "network"],
        config={},
        dispersions={"sensor.half_width_m": {"uniform": [10, 14]}},
    )
    return list(definition.trials_of([0]))


@pytest.fixture(scope="module")
def outcomes(trials):
    return [run_trial(t) for t in trials]


def test_a_trial_is_a_traverse_and_nothing_is_added_to_it(trials, outcomes) -> None:
    for trial, outcome in zip(trials, outcomes, strict=True):
        ground = trial.scenario()
        result = traverse(ground.terrain, trial.config, ground.start, ground.goal, trial.run_seed)
        row = outcome.trial
        assert (row["outcome"], row["cycles"]) == (result.outcome, len(result.cycles))
        assert row["ace_evaluations"] == sum(c.ace_evaluations for c in result.cycles)
        assert (row["end_x_m"], row["end_y_m"], row["end_heading_rad"]) == result.end
        assert [c["path_cost"] for c in outcome.cycles] == [c.path_cost for c in result.cycles]
        assert json.loads(row["built_json"]) == dict(result.built)
        assert row["error"] is None


def test_contenders_drive_on_the_same(outcomes) -> None:
    none, network = (o.trial for o in outcomes)
    for column in (
        "terrain_sha256", "terrain_seed", "run_seed", "start_x_m", "start_y_m", "goal_x_m",
        "drawn_json",
    ):  # fmt: skip
        assert none[column] == network[column]
    assert none["inferences"] == 0 < network["inferences"]
    assert none["model"] is None
    assert len(network["model"]) == 16


def test_what_was_drawn_is_read_back_from_what_was_built(trials, outcomes) -> None:
    for trial, outcome in zip(trials, outcomes, strict=True):
        drawn, built = (json.loads(outcome.trial[k]) for k in ("drawn_json", "built_json"))
        assert drawn == trial.drawn
        # A whole number of cells.
        assert built["sensor.half_width_m"] == pytest.approx(drawn["sensor.half_width_m"], abs=0.1)


def test_reliability_counts_poses_where_there_is_a_map(trials, outcomes) -> None:
    none, network = (o.trial for o in outcomes)
    assert sum(none["reliability_poses"]) == 0
    poses, refused = (np.array(network[f"reliability_{n}"]) for n in ("poses", "refused"))
    assert poses.sum() > 100
    assert (refused <= poses).all()
    assert refused[-1] / poses[-1] > refused[0] / poses[0]  # the network knows something


def test_records_fit_the_tables(trials, outcomes) -> None:
    added = {"run", "recorded_utc"}
    trial, cycle = outcomes[1].trial, outcomes[1].cycles[0]
    assert set(trial) | added == set(TRIALS.names)
    assert set(cycle) == set(CYCLES.names)
    assert set(unfinished(trials[0], "hung", "x").trial) <= set(TRIALS.names)
    assert {f"wall_{stage}_s" for stage in STAGES} < set(TIMES) < set(TRIALS.names)


def test_a_trial_survives_json(trials, outcomes) -> None:
    for trial, outcome in zip(trials, outcomes, strict=True):
        again = Trial.from_dict(json.loads(json.dumps(trial.as_dict())))
        assert again == trial
        assert (again.identity, again.key) == (trial.identity, trial.key)
        assert outcome.trial["key"] == trial.key
    with pytest.raises(TrialError, match="format 9"):
        Trial.from_dict({"format": 9})
    with pytest.raises(TrialError, match="not a trial"):
        Trial.from_dict({"format": 3, "terrain": "10/.07"})
    with pytest.raises(TrialError, match=r"not a trial: .*unknown key"):
        Trial.from_dict(trials[0].as_dict() | {"config": {"checkr": 1}})


def test_the_key_depends_on_all_that_results_depend_on(tmp_path, monkeypatch) -> None:
    trial = next(tiny(tmp_path).trials_of([0]))
    for change in (
        {"number": 1}, {"contender": "x"}, {"campaign_seed": 1}, {"campaign": "x"},
        {"config": trial.config.replaced(["planner.commit_length_m=0.5"])},
    ):  # fmt: skip
        assert replace(trial, **change).identity != trial.identity
    again = replace(trial)
    assert again.key == trial.key
    (tmp_path / "a.yaml").write_text((tmp_path / "a.yaml").read_text() + "# changed\n")
    again = replace(trial)
    assert again.identity == trial.identity
    assert again.key != trial.key
    monkeypatch.setattr("mlnav.trials.trial.code_digest", lambda: "other")
    assert replace(again).key != again.key


def test_what_cannot_begin_is_an_error_with_its_message(tmp_path) -> None:
    trial = next(tiny(tmp_path).trials_of([0]))
    (tmp_path / "a.yaml").write_text("size_m: [3, 3]\nstart: {x_m: 1, y_m: 1}\n")
    outcome = run_trial(trial)
    assert outcome.trial["outcome"] == "error"
    assert "Error: " in outcome.trial["error"]
    assert outcome.cycles == []


def test_observers_see_the_cycles_of_a_trial(trials) -> None:
    seen = []
    outcome, result = drive(
        trials[0], trials[0].scenario(), [lambda record, *_: seen.append(record.cycle)]
    )
    assert seen == list(range(outcome.trial["cycles"])) == [c.cycle for c in result.cycles]


def test_processes_agree_bit_for_bit(trials, outcomes) -> None:
    def plain(row: dict) -> dict:
        return {k: v for k, v in row.items() if k not in TIMES}

    for ended in run_tasks(trials, run_trial):
        mine = outcomes[trials.index(ended.task)]
        assert plain(ended.result().trial) == plain(mine.trial)
        assert list(map(plain, ended.result().cycles)) == list(map(plain, mine.cycles))


def test_the_observer_is_the_same_each_time(trials) -> None:
    trial = trials[1]
    assert (
        drive(trial, trial.scenario())[0].trial["reliability_risk_sum"]
        == (drive(trial, trial.scenario())[0].trial["reliability_risk_sum"])
    )
    assert Reliability(1).as_dict()["reliability_poses"] == [0.0] * 10
