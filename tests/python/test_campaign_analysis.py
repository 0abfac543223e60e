"""What is made of a campaign's two tables, against hand-made cases and other libraries."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from statsmodels.stats.proportion import proportion_confint

from mlnav.campaign.analysis import Against, Analysis, against, analyse
from mlnav.campaign.definition import Definition, parse_definition
from mlnav.campaign.differences import same_trial
from mlnav.campaign.store import CYCLES, TRIALS
from mlnav.stats import (
    paired_ratio,
)
from mlnav.trials.flight_time import Usage, flight_seconds, load_instructions
from mlnav.trials.runs import Runs, runs_of

# ------------------------------------------------------------------------------------ the analysis


def definition(**changes: Any) -> Definition:
    text = {
        "name": "hand-made",
        "trials": 2,
        "terrains": ["0/.05", "20/.05"],
        "contenders": ["none", "network"],
        "config": {"checker": "fixed_box", "limits": "enav_like"},
        **changes,
    }
    return parse_definition(json.dumps(text))


def trial(
    ground: str, number: int, contender: str, evaluations: list[int], **changes: Any
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A row of the trials and those of its cycles; a floor of 20, 1 ms of planning a cycle."""
    key = changes.get("key", f"{ground} {number} {contender}")
    cycles = len(evaluations)
    row = {
        "key": key, "identity": key, "code": "c0de", "terrain": ground, "trial": number,
        "contender": contender, "outcome": "goal_reached", "success": True, "faults": [],
        "cycles": cycles, "driven_m": float(cycles), "straight_line_m": 10.0,
        "inefficiency": cycles / 10.0 - 1.0, "ace_evaluations": sum(evaluations),
        "overthinks": sum(n > 275 for n in evaluations), "risk_requested": 0,
        "risk_used": cycles if contender == "network" else 0,
        "inferences": cycles if contender == "network" else 0, "events": 0, "attempts": 1,
        "rejects_json": json.dumps({"tilt": 3, "relief": 5}), "wall_s": 2.0, "wall_sense_s": 0.1,
        "wall_heuristic_s": 0.0, "wall_plan_s": 1e-3 * cycles, "wall_drive_s": 0.1,
        "terrain_seed": number, "run_seed": number, "drawn_json": "{}",
    }  # fmt: skip
    if not changes.get("success", True):
        row["inefficiency"] = None
    told = [
        {
            "key": key, "terrain": ground, "trial": number, "contender": contender, "cycle": i,
            "ace_evaluations": n, "ace_floor": 20, "paths_tried": 2,
            "risk_used": contender == "network", "risk_requested": False,
        }
        for i, n in enumerate(evaluations)
    ]  # fmt: skip
    return row | changes, told


Trials = list[tuple[dict[str, Any], list[dict[str, Any]]]]


def tables(trials: Trials, seed: int | None = None) -> tuple[pa.Table, pa.Table]:
    rows, cycles = [row for row, _ in trials], [c for _, told in trials for c in told]
    if seed is not None:
        random.Random(seed).shuffle(rows)
        random.Random(seed).shuffle(cycles)
    return pa.Table.from_pylist(rows, TRIALS), pa.Table.from_pylist(cycles, CYCLES)


def analysed(trials: Trials, /, **changes: Any) -> Analysis:
    return analyse(*tables(trials), definition(**changes))


HAND: Trials = [
    trial("0/.05", 0, "none", [40] * 10),
    trial("0/.05", 0, "network", [20] * 11),
    trial("0/.05", 1, "none", [60] * 10),
    trial("0/.05", 1, "network", [20] * 10),
    trial("20/.05", 0, "none", [300] * 8, success=False, outcome="no_safe_path"),
    trial("20/.05", 0, "network", [50] * 20, faults=["tilt"]),
    trial("20/.05", 1, "none", [100] * 10),
    trial("20/.05", 1, "network", [30] * 10, success=False, outcome="stuck", faults=["tilt"]),
]


def test_figures_by_hand() -> None:
    analysis = analysed(HAND)
    whole = analysis.overall
    none, network = whole.figures.values()
    assert (none.rate("success").hits, none["trials"], none["cycles"]) == (3, 4, 38)
    assert none.number("evaluations") == pytest.approx((400 + 600 + 2400 + 1000) / 38)
    assert none.estimate("evaluations").interval is None  # of four trials
    assert (none["evaluations_median"], none["evaluations_max"]) == (60.0, 300.0)
    assert none.number("overthink") == pytest.approx(8 / 38)
    assert (none["floor"], network["floor"]) == (20.0, 20.0)
    assert none["over_floor"] == pytest.approx(4400 / 38 / 20)
    assert none["evaluations_per_m"] == pytest.approx(4400 / 38)
    assert network.number("inefficiency") == pytest.approx((0.1 + 0.0 + 1.0) / 3)
    assert network.estimate("inefficiency").n == 3
    assert none["outcomes"] == {"goal_reached": 3, "no_safe_path": 1}
    assert (none["no_safe_path"], network["no_safe_path"]) == (1, 0)
    assert network["faults"] == {"tilt": 2}
    assert none["rejects"] == {"relief": 20, "tilt": 12}
    assert whole.stage_ms["none"]["plan"] == pytest.approx(1.0)
    assert none.number("plan_ms") == pytest.approx(1.0)
    assert whole.stage_ms["none"]["sense"] == pytest.approx(400 / 38)
    assert none.number("flight_ace_s") == pytest.approx(0.01 * 4400 / 38)
    assert whole.evaluations_ecdf["none"][0] == [40.0, 60.0, 100.0, 300.0]
    assert network["inferences"] == 1.0
    assert [b.label for b in analysis.terrains] == ["0/.05", "20/.05"]
    level = analysis.terrains[0].figures["none"]
    assert (level.number("evaluations"), level.rate("success").hits) == (50.0, 2)


def test_comparisons_by_hand() -> None:
    analysis = analysed(HAND)
    beside = analysis.overall.against["network"]
    assert (beside.pairs, beside.both) == (4, 2)
    evaluations, success = beside.metrics["evaluations"], beside.metrics["success"]
    assert evaluations.estimate.value == pytest.approx((1000 / 20) / (420 / 21))
    assert evaluations.all_cycles.value == pytest.approx((4400 / 38) / (1720 / 51))
    assert beside.metrics["inefficiency"].estimate.value == pytest.approx(0.05)
    assert beside.metrics["plan_ms"].estimate.value == pytest.approx(1.0)
    assert (success.only_this, success.only_first) == (1, 1)
    assert success.estimate.value == pytest.approx(0.0)
    assert (success.p, success.p_holm) == (1.0, 1.0)
    assert beside.metrics["unsafe"].estimate.value == 0.0
    steep = analysis.terrains[1].against["network"]
    assert steep.metrics["evaluations"].estimate.value is None
    assert [f.outcome for f in analysis.failures] == ["no_safe_path", "stuck"]


def test_unsafe_rates_are_compared_as_success_is() -> None:
    trials = []
    for number in range(10):
        for label in ("0/.05", "20/.05"):
            fell = {"success": False, "outcome": "tipped_over"} if label == "20/.05" else {}
            trials.append(trial(label, number, "none", [30], **fell))
            trials.append(trial(label, number, "network", [30]))
    _, steep = (b.against["network"].metrics["unsafe"] for b in analysed(trials).terrains)
    assert steep.estimate.value == -1.0
    assert (steep.only_first, steep.only_this) == (10, 0)
    assert steep.p == pytest.approx(2 / 2**10)
    assert steep.p_holm == pytest.approx(2 * steep.p)


def test_p_values_by_ground_are_adjusted_for_all_of_them() -> None:
    trials = []
    for number in range(10):
        for ground in ("0/.05", "20/.05"):
            lost = {"success": False, "outcome": "stuck"} if ground == "20/.05" else {}
            trials.append(trial(ground, number, "none", [30], **lost))
            trials.append(trial(ground, number, "network", [30]))
    analysis = analysed(trials, trials=10)
    level, steep = (b.against["network"].metrics["success"] for b in analysis.terrains)
    assert steep.p == pytest.approx(2 / 2**10)
    assert steep.p_holm == pytest.approx(2 * steep.p)
    assert (level.p, level.p_holm) == (1.0, 1.0)


def random_trials(seed: int) -> Trials:
    rng = np.random.default_rng(seed)
    trials = []
    for number in range(9):
        for ground in ("0/.05", "20/.05"):
            for name, mean in (("none", 80), ("network", 35)):
                reached = bool(rng.random() < 0.8)
                counts = rng.poisson(mean, rng.integers(5, 15)).tolist()
                outcome = "goal_reached" if reached else "stuck"
                trials.append(trial(ground, number, name, counts, success=reached, outcome=outcome))
    return trials


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_rows_changes_nothing(seed: int) -> None:
    trials = random_trials(seed)
    plain = analyse(*tables(trials), definition(trials=9)).as_dict()
    assert analyse(*tables(trials, seed + 1), definition(trials=9)).as_dict() == plain


def test_the_other_contender_first_turns_everything_round() -> None:
    trials = random_trials(7)
    one = analysed(trials, trials=9).overall.against["network"]
    other = analysed(trials, trials=9, contenders=["network", "none"]).overall.against["none"]
    one, other = one.metrics, other.metrics
    for name in ("estimate", "all_cycles"):
        there, back = (getattr(v["evaluations"], name) for v in (one, other))
        assert there.value * back.value == pytest.approx(1.0)
        assert there.interval[0] * back.interval[1] == pytest.approx(1.0, rel=0.01)
        assert there.interval[1] * back.interval[0] == pytest.approx(1.0, rel=0.01)
    for name in ("inefficiency", "success", "unsafe"):
        assert one[name].estimate.value == pytest.approx(-other[name].estimate.value)
    one, other = one["success"], other["success"]
    assert (one.only_this, one.only_first) == (other.only_first, other.only_this)
    assert one.p == other.p


def test_reliability_of_risk() -> None:
    bins = {
        "reliability_poses": [10.0, 0.0, 10.0, *[0.0] * 7],
        "reliability_risk_sum": [0.5, 0.0, 2.5, *[0.0] * 7],
        "reliability_refused": [1.0, 0.0, 2.0, *[0.0] * 7],
    }
    trials = [trial("0/.05", n, "network", [30], **bins) for n in range(2)]
    reliability = analysed(trials).reliability
    assert list(reliability) == ["network"]
    found = reliability["network"]
    assert found.poses == 40
    assert found.ece == pytest.approx((20 * 0.05 + 20 * 0.05) / 40)
    assert (found.predicted, found.refused) == (pytest.approx(0.15), pytest.approx(0.15))
    assert found.bins[0].predicted == pytest.approx(0.05)
    assert (found.bins[2].refused.hits, found.bins[2].refused.trials) == (4, 20)
    assert found.bins[1].predicted is None


def test_flight_time_from_instructions_is_that_of_what_was_done() -> None:
    counts = load_instructions()
    trials = [trial("0/.05", n, "none", [40] * 10) for n in range(2)]
    overall = analyse(*tables(trials), definition(), instructions=counts).overall
    usage = Usage(
        cycles=20, risk_uses=0, rankings_again=0, inferences=0, evaluations=800, rejected=16,
        paths_tried=40,
    )  # fmt: skip
    expected = flight_seconds(counts, usage, "fixed_box", "enav_like", None)
    assert overall.flight_s["none"] == pytest.approx({k: v / 20 for k, v in expected.items()})
    # Trials of another network than is here have no count: theirs may be of another size.
    other = [trial("0/.05", n, "network", [40] * 10, model="0123") for n in range(2)]
    analysis = analyse(*tables(other), definition(), instructions=counts)
    assert set(analysis.overall.flight_s["network"].values()) == {None}
    assert "another model" in analysis.entrants[1].flight_note


# ----------------------------------------------------------------------------------- weak points


def notes(analysis: Analysis, grave: bool | None = None) -> str:
    return "\n".join(n.text for n in analysis.notes if grave is None or n.grave is grave)


def test_nothing_at_all() -> None:
    analysis = analyse(TRIALS.empty_table(), CYCLES.empty_table(), definition())
    assert (analysis.trials, analysis.planned) == (0, 8)
    assert notes(analysis) == "There are no trials, so there are no figures."
    figures = analysis.overall.figures["none"]
    assert figures.number("success") is figures.number("evaluations") is None
    assert figures["cycles"] == 0
    assert analysis.overall.against["network"].metrics["success"].p is None
    json.dumps(analysis.as_dict(), allow_nan=False)


def test_everything_failed() -> None:
    lost = {"success": False, "outcome": "crashed", "cycles": 0, "error": "crashed twice"}
    bare = ("inefficiency", "ace_evaluations", "rejects_json", "driven_m", "wall_s", "overthinks")
    trials = [
        trial(g, n, c, [], **lost, **dict.fromkeys(bare))
        for g in ("0/.05", "20/.05")
        for n in range(2)
        for c in ("none", "network")
    ]
    analysis = analysed(trials)
    assert "8 trials were lost (crashed 8)" in notes(analysis, True)
    assert "No trial reached its goal" in notes(analysis, True)
    assert analysis.overall.against["network"].metrics["evaluations"].estimate.value is None
    assert len(analysis.failures) == 8
    json.dumps(analysis.as_dict(), allow_nan=False)


def test_weak_points_are_found() -> None:
    trials = [
        trial("0/.05", 0, "none", [30]),
        trial("0/.05", 0, "network", [30], risk_used=0, events=2, model="a", attempts=2),
        trial("0/.05", 1, "none", [30], code="0ther"),
        trial("0/.05", 1, "network", [30], risk_used=0, risk_requested=1, model="b"),
        trial("99/.05", 0, "none", [30]),
    ]
    trials[0][1].pop()  # a cycle that is missing
    analysis = analyse(*tables(trials), definition(), damaged=["parts/x: torn"])
    grave, mild = notes(analysis, True), notes(analysis, False)
    assert "cannot be read, their trials are missing: parts/x: torn" in grave
    assert "4 of 8 trials have not run" in grave
    assert "2 versions of the code (c0de: 3, 0ther: 1)" in grave
    assert "Cycles of 1 trials are missing" in grave
    assert "network: its trials ran 2 different models" in grave
    assert "network: no risk map was ever used (1 were asked for)" in grave
    assert "network: in 1 of 2 trials something did not go as configured" in grave
    assert "1 trials of terrains or contenders that the definition does not have" in mild
    assert "network: 1 trials were begun more than once" in mild
    assert "rest on fewer than 20 pairs where both reach the goal, the least on 0" in mild
    assert [n.grave for n in analysis.notes] == sorted(n.grave for n in analysis.notes)[::-1]


def test_unsafe_trials_are_counted_by_contender_and_come_first_among_the_weak_points() -> None:
    trials = [
        trial("0/.05", 0, "none", [30] * 100, unsafe_states=0),
        trial("0/.05", 1, "none", [30] * 50, success=False, outcome="tipped_over"),
        trial("20/.05", 0, "none", [30] * 50, success=False, outcome="unsafe_state",
              unsafe_states=4, unsafe_constraint="relief", code="0ther"),
        trial("20/.05", 1, "none", [30] * 50, success=False, outcome="goal_reached",
              unsafe_states=6, unsafe_constraint="relief"),
        *(trial(g, n, "network", [30] * 10) for g in ("0/.05", "20/.05") for n in (0, 1)),
    ]  # fmt: skip
    analysis = analysed(trials)
    none, network = analysis.overall.figures.values()
    unsafe = none.rate("unsafe")
    assert (unsafe.hits, unsafe.trials, none["driven_km"]) == (3, 4, 0.25)
    assert unsafe.interval == pytest.approx(proportion_confint(3, 4, method="wilson"))
    assert none.number("unsafe_per_km") == 12.0
    assert none["unsafe_states_per_km"] == 50.0  # 10 on the 200 m that tell
    assert none["causes"] == {"relief": 2, "tipped_over": 1}
    assert (network.rate("unsafe").hits, network.number("unsafe_per_km")) == (0, 0.0)
    assert network["unsafe_states_per_km"] is None
    first, second = analysis.notes[:2]
    assert first.unsafe and not second.unsafe and second.grave
    assert first.text == (
        "none: 3 of 4 trials were unsafe, 75.0 % [30.1, 95.4], 12.00 per driven km. Broken first:"
        " relief 2, tipped over 1. By terrain: 20/.05 2 of 2, 0/.05 1 of 2."
    )
    told = json.loads(json.dumps(analysis.as_dict()))["overall"]["figures"]["none"]
    assert told["unsafe"]["hits"] == 3 and told["unsafe_per_km"]["rate"] == 12.0


def test_contenders_whose_evaluations_are_not_the_same_are_told_of() -> None:
    unlike = ["none", {"name": "proven", "checker": "verified"}]
    trials = [trial("0/.05", 0, "none", [30]), trial("0/.05", 0, "proven", [30])]
    assert "differ in their checker: an ACE evaluation" in notes(
        analysed(trials, contenders=unlike)
    )
    assert "differ in" not in notes(analysed(HAND))


def test_a_trial_that_ran_twice_counts_once() -> None:
    """Under other keys, of other code: that which most trials ran under is taken."""
    old = [
        trial("0/.05", 0, "none", [999], key="old", code="old"),
        trial("0/.05", 0, "none", [30]),
        trial("0/.05", 1, "none", [30]),
    ]
    analysis = analysed(old)
    assert analysis.overall.figures["none"]["trials"] == 2
    assert analysis.overall.figures["none"]["evaluations_max"] == 30.0
    assert analysis.codes == {"c0de": 2}
    assert "1 trials are there more than once" in notes(analysis)


def test_a_campaign_that_stopped_by_its_rule_is_no_torn_one() -> None:
    rule = {"figure": "success", "width": 0.9, "at_least": 2}
    analysis = analysed(HAND, trials=50, stop=rule)
    assert "8 of at most 200 trials were run" in notes(analysis, False)
    narrow = analysed(HAND, trials=50, stop=rule | {"width": 0.1})
    assert "192 of 200 trials have not run" in notes(narrow, True)


# --------------------------------------------------------------------------------- two campaigns


def change(before: Trials, after: Trials) -> Against:
    return against(Runs(runs_of(*tables(before))), Runs(runs_of(*tables(after))), same_trial)


def test_a_campaign_beside_itself_has_not_changed() -> None:
    mine = [t for t in random_trials(3) if t[0]["contender"] == "none"]
    same = change(mine, mine)
    assert (same.pairs, same.same) == (18, 18)
    values = {name: v.estimate.value for name, v in same.metrics.items()}
    assert (values["evaluations"], values["inefficiency"], values["success"]) == (1.0, 0.0, 0.0)
    success = same.metrics["success"]
    assert (success.only_first, success.only_this, success.p) == (0, 0, 1.0)


def test_trials_of_other_seeds_are_not_paired() -> None:
    before = [trial("0/.05", n, "none", [40] * 10) for n in range(6)]
    after = [trial("0/.05", n, "none", [20] * 10, run_seed=99) for n in range(6)]
    found = change(before, after)
    assert (found.pairs, found.metrics["success"].p) == (None, None)
    assert found.metrics["evaluations"].estimate.value == pytest.approx(2.0)
    low, high = found.metrics["success"].estimate.interval
    assert low < 0.0 < high


def test_what_one_campaign_alone_has_is_left_out_of_pairs() -> None:
    before = [trial("0/.05", n, "none", [40] * 10) for n in range(6)]
    after = [trial("0/.05", n, "none", [20] * 10) for n in range(2, 9)]
    found = change(before, after)
    assert (found.pairs, found.same) == (4, 0)
    ratio = paired_ratio([400.0], [10.0], [200.0], [10.0]).value
    assert found.metrics["evaluations"].estimate.value == ratio
