"""What is made of a campaign's two tables, against hand-made cases and other libraries."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import bootstrap
from statsmodels.stats.contingency_tables import mcnemar as reference_mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from mlnav.campaign.analysis import analyse
from mlnav.campaign.definition import Definition, parse_definition
from mlnav.campaign.differences import change
from mlnav.campaign.figures import Analysis
from mlnav.campaign.store import CYCLES, TRIALS
from mlnav.stats import (
    FEWEST_PAIRS,
    Rate,
    ecdf,
    holm,
    independent_ratio,
    mcnemar,
    paired_mean,
    paired_rate_difference,
    paired_ratio,
    pooled_mean,
    rate_difference,
)
from mlnav.studies.instructions import Usage, flight_seconds, load_instructions
from mlnav.trials.runs import Run, runs_of

# ------------------------------------------------------------------------------------- statistics


@pytest.mark.parametrize("seed", range(5))
def test_holm_is_that_of_statsmodels(seed: int) -> None:
    p = np.random.default_rng(seed).random(3 * seed + 1) ** 4
    p[seed:] = p[seed:].round(1)  # some of them equal
    assert holm(p.tolist()) == pytest.approx(multipletests(p, method="holm")[1].tolist())


def test_holm_by_hand() -> None:
    assert holm([]) == []
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


@given(st.integers(0, 40), st.integers(1, 40), st.integers(0, 40), st.integers(1, 40))
def test_rates_and_their_difference_are_those_of_statsmodels(
    a: int, more_a: int, b: int, more_b: int
) -> None:
    first, second = Rate(a, a + more_a), Rate(b, b + more_b)
    assert first.interval == pytest.approx(
        proportion_confint(first.hits, first.trials, method="wilson")
    )
    got = rate_difference(first, second)
    expected = confint_proportions_2indep(
        first.hits, first.trials, second.hits, second.trials, method="newcomb", compare="diff"
    )
    assert got.interval == pytest.approx(expected)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_mcnemar_is_that_of_statsmodels(pairs: list[tuple[bool, bool]]) -> None:
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    got = mcnemar(a, b)
    table = [[got["both"], got["only_a"]], [got["only_b"], got["neither"]]]
    assert got["p"] == pytest.approx(reference_mcnemar(table, exact=True).pvalue)


def test_paired_differences_of_rates_keep_a_width_where_none_is_seen() -> None:
    same = paired_rate_difference([True] * 20, [True] * 20)
    low, _ = Rate(20, 20).interval
    assert same.value == 0.0
    assert same.interval == pytest.approx((-(1 - low), 1 - low))
    # Agreement beyond chance narrows it: 10 of 20 each, and the same ones.
    half = [True] * 10 + [False] * 10
    together = paired_rate_difference(half, half).interval
    apart = rate_difference(Rate(10, 20), Rate(10, 20)).interval
    assert together[1] - together[0] < 0.6 * (apart[1] - apart[0])


def test_paired_differences_of_rates_cover_the_truth() -> None:
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(250):
        hard = rng.random(25)
        a, b = hard < 0.9 * rng.random(25) ** 0.2, hard < 0.7 * rng.random(25) ** 0.2
        low, high = paired_rate_difference(a.tolist(), b.tolist()).interval
        hits += low <= (0.9 - 0.7) / 1.2 <= high
    assert 0.92 <= hits / 250 <= 1.0


def test_a_bootstrap_of_many_is_that_of_scipy() -> None:
    rng = np.random.default_rng(2)
    totals, counts = rng.gamma(2.0, 20.0, 300), rng.integers(20, 60, 300).astype(float)
    got = pooled_mean(totals.tolist(), counts.tolist())
    reference = bootstrap(
        (totals, counts), lambda t, c, axis: t.sum(axis=axis) / c.sum(axis=axis), paired=True,
        vectorized=True, method="percentile", n_resamples=4000, rng=np.random.default_rng(1),
    ).confidence_interval  # fmt: skip
    width = reference.high - reference.low
    assert got.value == pytest.approx(totals.sum() / counts.sum())
    assert got.interval == pytest.approx((reference.low, reference.high), abs=0.06 * width)


def test_few_pairs_get_wider_intervals_than_plain_percentiles() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(size=6)
    drawn = values[np.random.default_rng(9).integers(6, size=(4000, 6))].mean(axis=1)
    plain = np.percentile(drawn, [2.5, 97.5])
    low, high = paired_mean(values.tolist()).interval
    assert high - low > 1.15 * (plain[1] - plain[0])


def test_strata_of_one_are_drawn_from_together() -> None:
    values = [1.0, 2.0, 4.0, 7.0, 11.0, 16.0]
    assert paired_mean(values, range(6)) == paired_mean(values)
    # Five of a kind stay among themselves; the two single ones are drawn from together.
    mixed = paired_mean([3.0] * 5 + [0.0, 1.0], [0] * 5 + [1, 2])
    assert mixed.interval == pytest.approx((15 / 7, 17 / 7))


def test_an_interval_that_says_nothing_is_none() -> None:
    assert paired_mean([1.0, 2.0]).interval is None
    assert paired_mean([2.0] * FEWEST_PAIRS).interval is None
    assert paired_mean([2.0] * FEWEST_PAIRS).value == 2.0
    assert paired_mean(list(range(FEWEST_PAIRS))).interval is not None


def test_independent_ratios() -> None:
    got = independent_ratio([100.0, 300.0], [10.0, 10.0], [50.0], [10.0])
    assert (got.value, got.n) == (pytest.approx(4.0), 1)
    same = independent_ratio([40.0] * 9, [4.0] * 9, [10.0] * 7, [2.0] * 7)
    assert (same.value, same.interval) == (pytest.approx(2.0), None)  # all alike
    assert independent_ratio([], [], [1.0], [1.0]).value is None
    assert independent_ratio([1.0], [1.0], [0.0], [1.0]).value is None


def test_distributions_are_exact_also_when_thinned() -> None:
    assert ecdf([]) == ([], [])
    assert ecdf([3, 1, 3, 8]) == ([1.0, 3.0, 8.0], [0.25, 0.75, 1.0])
    values = np.random.default_rng(0).integers(1, 5000, 20_000).astype(float)
    steps, shares = ecdf(values, 50)
    assert len(steps) == 50
    assert (steps[0], steps[-1], shares[-1]) == (values.min(), values.max(), 1.0)
    assert shares == pytest.approx([float((values <= v).mean()) for v in steps])


# ------------------------------------------------------------------------------------ the analysis


def definition(**changes: Any) -> Definition:
    text = {
        "name": "hand-made",
        "trials": 2,
        "grounds": ["0/.05", "20/.05"],
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
        "key": key, "identity": key, "code": "c0de", "ground": ground, "trial": number,
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
            "key": key, "ground": ground, "trial": number, "contender": contender, "cycle": i,
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
    none, network = analysis.overall.figures.values()
    assert (none.success.hits, none.trials, none.cycles) == (3, 4, 38)
    assert none.evaluations.mean.value == pytest.approx((400 + 600 + 2400 + 1000) / 38)
    assert none.evaluations.mean.interval is None  # of four trials
    assert (none.evaluations.median, none.evaluations.max) == (60.0, 300.0)
    assert none.overthink.value == pytest.approx(8 / 38)
    assert (none.floor, network.floor) == (20.0, 20.0)
    assert none.over_floor == pytest.approx(4400 / 38 / 20)
    assert none.evaluations_per_m == pytest.approx(4400 / 38)
    assert network.inefficiency.value == pytest.approx((0.1 + 0.0 + 1.0) / 3)
    assert network.inefficiency.n == 3
    assert none.outcomes == {"goal_reached": 3, "no_safe_path": 1}
    assert network.faults == {"tilt": 2}
    assert none.rejects == {"relief": 20, "tilt": 12}
    assert none.stage_ms["plan"] == pytest.approx(1.0)
    assert none.plan_ms == pytest.approx(1.0)
    assert none.stage_ms["sense"] == pytest.approx(400 / 38)
    assert none.flight.ace_s == pytest.approx(0.01 * 4400 / 38)
    assert none.distribution.evaluations == [40.0, 60.0, 100.0, 300.0]
    assert network.inferences == 1.0
    assert [b.label for b in analysis.grounds] == ["0/.05", "20/.05"]
    level = analysis.grounds[0].figures["none"]
    assert (level.evaluations.mean.value, level.success.hits) == (50.0, 2)


def test_comparisons_by_hand() -> None:
    analysis = analysed(HAND)
    against = analysis.overall.against["network"]
    assert (against.pairs, against.both) == (4, 2)
    assert against.ratio.value == pytest.approx((1000 / 20) / (420 / 21))
    assert against.ratio_all.value == pytest.approx((4400 / 38) / (1720 / 51))
    assert against.detour.value == pytest.approx(0.05)
    assert (against.only_this, against.only_first) == (1, 1)
    assert against.success.value == pytest.approx(0.0)
    assert (against.p, against.p_holm) == (1.0, 1.0)
    assert analysis.grounds[1].against["network"].ratio.value is None
    assert [f.outcome for f in analysis.failures] == ["no_safe_path", "stuck"]


def test_p_values_by_ground_are_adjusted_for_all_of_them() -> None:
    trials = []
    for number in range(10):
        for ground in ("0/.05", "20/.05"):
            lost = {"success": False, "outcome": "stuck"} if ground == "20/.05" else {}
            trials.append(trial(ground, number, "none", [30], **lost))
            trials.append(trial(ground, number, "network", [30]))
    analysis = analysed(trials, trials=10)
    level, steep = (b.against["network"] for b in analysis.grounds)
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
    for name in ("ratio", "ratio_all"):
        there, back = getattr(one, name), getattr(other, name)
        assert there.value * back.value == pytest.approx(1.0)
        assert there.interval[0] * back.interval[1] == pytest.approx(1.0, rel=0.01)
        assert there.interval[1] * back.interval[0] == pytest.approx(1.0, rel=0.01)
    assert one.detour.value == pytest.approx(-other.detour.value)
    assert one.success.value == pytest.approx(-other.success.value)
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
    flight = (
        analyse(*tables(trials), definition(), instructions=counts).overall.figures["none"].flight
    )
    usage = Usage(
        cycles=20, risk_uses=0, rankings_again=0, inferences=0, evaluations=800, rejected=16,
        paths_tried=40,
    )  # fmt: skip
    expected = flight_seconds(counts, usage, "fixed_box", "enav_like", None)
    assert flight.instructions_s == pytest.approx({k: v / 20 for k, v in expected.items()})
    # Trials of another network than is here have no count: theirs may be of another size.
    other = [trial("0/.05", n, "network", [40] * 10, model="0123") for n in range(2)]
    whole = analyse(*tables(other), definition(), instructions=counts).overall
    assert whole.figures["network"].flight.instructions_s is None
    assert "another model" in whole.figures["network"].flight.note


# ----------------------------------------------------------------------------------- weak points


def notes(analysis: Analysis, grave: bool | None = None) -> str:
    return "\n".join(n.text for n in analysis.notes if grave is None or n.grave is grave)


def test_nothing_at_all() -> None:
    analysis = analyse(TRIALS.empty_table(), CYCLES.empty_table(), definition())
    assert (analysis.trials, analysis.planned) == (0, 8)
    assert notes(analysis) == "There are no trials, so there are no figures."
    figures = analysis.overall.figures["none"]
    assert (figures.success.value, figures.evaluations.mean.value, figures.cycles) == (
        None,
        None,
        0,
    )
    assert analysis.overall.against["network"].p is None
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
    assert analysis.overall.against["network"].ratio.value is None
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
    assert "cannot be read; what they held is missing: parts/x: torn" in grave
    assert "4 of 8 trials have not been run" in grave
    assert "2 versions of the code (c0de: 3, 0ther: 1)" in grave
    assert "Cycles of 1 trials are missing" in grave
    assert "network: its trials ran 2 different models" in grave
    assert "network: no risk map was ever used (1 were asked for)" in grave
    assert "network: in 1 of 2 trials something did not go as configured" in grave
    assert "1 trials of grounds or contenders that the definition does not have" in mild
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
    safety = analysis.overall.figures["none"].safety
    assert (safety.unsafe.hits, safety.unsafe.trials, safety.driven_km) == (3, 4, 0.25)
    assert safety.unsafe.interval == pytest.approx(proportion_confint(3, 4, method="wilson"))
    assert safety.unsafe_per_km == 12.0
    assert (safety.unsafe_states, safety.unsafe_states_per_km) == (10, 50.0)  # of 200 m that tell
    assert safety.causes == {"relief": 2, "tipped_over": 1}
    other = analysis.overall.figures["network"].safety
    assert (other.unsafe.hits, other.unsafe_per_km, other.unsafe_states) == (0, 0.0, None)
    first, second = analysis.notes[:2]
    assert first.unsafe and not second.unsafe and second.grave
    assert first.text == (
        "none: 3 of 4 trials were unsafe, 75.0 % [30.1, 95.4], 12.00 per driven km. Broken first:"
        " relief 2, tipped over 1. By ground: 20/.05 2 of 2, 0/.05 1 of 2."
    )
    told = json.loads(json.dumps(analysis.as_dict()))["overall"]["figures"]["none"]["safety"]
    assert told["unsafe"]["hits"] == 3 and told["unsafe_per_km"] == 12.0


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
    assert analysis.overall.figures["none"].trials == 2
    assert analysis.overall.figures["none"].evaluations.max == 30.0
    assert analysis.codes == {"c0de": 2}
    assert "1 trials are there more than once" in notes(analysis)


def test_a_campaign_that_stopped_by_its_rule_is_no_torn_one() -> None:
    rule = {"figure": "success", "width": 0.9, "at_least": 2}
    analysis = analysed(HAND, trials=50, stop=rule)
    assert "8 of at most 200 trials were run" in notes(analysis, False)
    narrow = analysed(HAND, trials=50, stop=rule | {"width": 0.1})
    assert "192 of 200 trials have not been run" in notes(narrow, True)


# --------------------------------------------------------------------------------- two campaigns


def runs(trials: Trials) -> list[Run]:
    return runs_of(*tables(trials))


def test_a_campaign_beside_itself_has_not_changed() -> None:
    mine = runs([t for t in random_trials(3) if t[0]["contender"] == "none"])
    same = change(mine, mine)
    assert (same.pairs, same.same, same.paired) == (18, 18, True)
    assert (same.ratio.value, same.detour.value, same.success.value) == (1.0, 0.0, 0.0)
    assert (same.only_before, same.only_after, same.p) == (0, 0, 1.0)


def test_trials_of_other_seeds_are_not_paired() -> None:
    before = runs([trial("0/.05", n, "none", [40] * 10) for n in range(6)])
    after = runs([trial("0/.05", n, "none", [20] * 10, run_seed=99) for n in range(6)])
    found = change(before, after)
    assert (found.paired, found.pairs, found.p) == (False, 0, None)
    assert found.ratio.value == pytest.approx(2.0)
    assert found.success.interval[0] < 0.0 < found.success.interval[1]


def test_what_one_campaign_alone_has_is_left_out_of_pairs() -> None:
    before = runs([trial("0/.05", n, "none", [40] * 10) for n in range(6)])
    after = runs([trial("0/.05", n, "none", [20] * 10) for n in range(2, 9)])
    found = change(before, after)
    assert (found.pairs, found.same) == (4, 0)
    assert found.ratio.value == paired_ratio([400.0], [10.0], [200.0], [10.0]).value
