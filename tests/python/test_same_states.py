"""Planning from the same states, of a campaign that has run."""

import math

import pytest

from mlnav.campaign import Store, run
from mlnav.campaign.definition import checked_definition
from mlnav.sim import Motion
from mlnav.studies.same_states import same_states, states_of, states_on, trial_of, worst_state

RECIPE = """\
size_m: [20, 12]
relief: {rms_1m_m: 0.05}
rocks: {cfa: 0.10}
start: {x_m: 5, y_m: 6}
goal: {x_m: 14, y_m: 6}
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Store:
    folder = tmp_path_factory.mktemp("campaign")
    for name in ("a", "b"):
        (folder / f"{name}.yaml").write_text(RECIPE)
    definition = checked_definition(
        {
            "name": "x",
            "trials": 2,
            "terrains": [str(folder / f"{name}.yaml") for name in ("a", "b")],
            "contenders": ["none", "sobel"],
            "config": {"checker": "fixed_box", "limits": "enav_like"},
        }
    )
    return run(definition, folder / "x", workers=0)


def test_the_worst_state_is_where_the_first_spent_most(store) -> None:
    mine = [r for r in store.cycles().to_pylist()
            if (r["terrain"], r["contender"]) == ("b", "none")]  # fmt: skip
    state = worst_state(store, "b")
    assert state.evaluations == max(r["ace_evaluations"] for r in mine) > 0
    (row,) = [r for r in mine if (r["trial"], r["cycle"]) == (state.trial, state.cycle)]
    assert row["ace_evaluations"] == state.evaluations
    assert state.pose == (row["pose_x_m"], row["pose_y_m"], row["pose_heading_rad"])
    assert len(states_on(store, "b")) == len(mine)
    assert worst_state(store, "nowhere") is None


def test_wheels_stand_as_the_cycle_before_left_them() -> None:
    def row(cycle: int, outcome: str, turn: float, curvature: float, length: float) -> dict:
        return {
            "trial": 3, "cycle": cycle, "outcome": outcome, "pose_x_m": 1.0 * cycle,
            "pose_y_m": 0.0, "pose_heading_rad": 0.0, "ace_evaluations": 9, "turn_rad": turn,
            "curvature_per_m": curvature, "length_m": length,
        }  # fmt: skip

    rows = [
        row(0, "path", 0.0, 0.25, 1.0), row(1, "path", 0.5, 0.0, 0.0), row(2, "no_path", 0, 0, 0),
        row(3, "no_path", 0, 0, 0),
    ]  # fmt: skip
    found = states_of(rows)
    turned = Motion(0.5, 0.0, 0.0).steered_after_per_m
    assert [s.steered_per_m for s in found] == [0.0, 0.25, turned, turned]
    assert math.isinf(found[2].steered_per_m)
    assert [s.pose[0] for s in found] == [0.0, 1.0, 2.0, 3.0]


def test_same_states_are_planned_by_everyone(store) -> None:
    seen = []
    found = same_states(store, 5, 0, progress=lambda done, note: seen.append(done))
    plans = found["plans"]
    assert seen == list(range(1, len(seen) + 1))

    def of(name: str) -> dict:
        return {(p["terrain"], p["trial"], p["cycle"]): p for p in plans if p["contender"] == name}

    none, sobel = of("none"), of("sobel")
    assert list(none) == list(sobel)
    assert [sum(key[0] == label for key in none) for label in ("a", "b")] == [5, 5]
    for key, plan in none.items():
        assert plan["pose"] == sobel[key]["pose"]
        assert plan["steered_per_m"] == sobel[key]["steered_per_m"]
    both = [key for key in none if none[key]["found"] and sobel[key]["found"]]
    beside = found["contenders"]["sobel"]
    assert list(found["contenders"]) == ["sobel"]
    assert beside["states"] == len(both) > 5
    assert beside["ratio"]["value"] == pytest.approx(
        sum(none[k]["evaluations"] for k in both) / sum(sobel[k]["evaluations"] for k in both)
    )
    assert same_states(store, 5, workers=2) == found


def test_more_states_than_there_are_are_all(store) -> None:
    everything = sum(len(states_on(store, label)) for label in ("a", "b"))
    plans = same_states(store, 10_000, 0)["plans"]
    assert len(plans) == 2 * everything
    # A first cycle has no memory in the run either: it is planned again as it was.
    first = {(r["terrain"], r["trial"], r["contender"]): r["ace_evaluations"]
             for r in store.cycles().to_pylist() if r["cycle"] == 0}  # fmt: skip
    again = {(p["terrain"], p["trial"], p["contender"]): p["evaluations"]
             for p in plans if p["cycle"] == 0}  # fmt: skip
    assert again == first


def test_a_trial_by_its_place(store) -> None:
    trial = trial_of(store, "b", 1, "sobel")
    assert (trial.label, trial.number, trial.contender) == ("b", 1, "sobel")
    assert trial.identity in {r["identity"] for r in store.rows(("identity",))}
