"""Statistics, against other libraries, by hand, and by how often intervals cover the truth."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import bootstrap, poisson
from statsmodels.stats.contingency_tables import mcnemar as reference_mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint
from statsmodels.stats.rates import confint_poisson

from mlnav.stats import (
    FEWEST_PAIRS,
    Estimate,
    PerExposure,
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


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_paired_differences_of_rates_are_newcombes_method_10(pairs) -> None:
    a, b = (np.array(side) for side in zip(*pairs, strict=True))
    n = len(pairs)
    table = np.array([[(a & b).sum(), (a & ~b).sum()], [(~a & b).sum(), (~a & ~b).sum()]])
    det = table[0, 0] * table[1, 1] - table[0, 1] * table[1, 0]
    corrected = max(det - n / 2, 0.0) if det > 0 else det
    margins = float(np.prod(table.sum(axis=0)) * np.prod(table.sum(axis=1)))
    phi = corrected / np.sqrt(margins) if margins else 0.0
    p, q = a.mean(), b.mean()
    (p_low, p_high), (q_low, q_high) = (
        proportion_confint(side.sum(), n, method="wilson") for side in (a, b)
    )
    below = np.array([p - p_low, q_high - q])
    above = np.array([p_high - p, q - q_low])
    form = np.array([[1.0, -phi], [-phi, 1.0]])
    got = paired_rate_difference(a.tolist(), b.tolist())
    assert got.value == pytest.approx(p - q)
    low, high = (np.sqrt(max(v @ form @ v, 0.0)) for v in (below, above))
    assert got.interval == pytest.approx((p - q - low, p - q + high), abs=1e-7)


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


def test_paired_ratios() -> None:
    got = paired_ratio([100.0, 300.0], [10.0, 10.0], [50.0, 30.0], [10.0, 10.0])
    assert (got.value, got.interval, got.n) == (pytest.approx(5.0), None, 2)
    tops, bottoms = [10.0, 20.0, 30.0, 40.0, 50.0], [5.0, 10.0, 15.0, 20.0, 25.0]
    twice = paired_ratio(tops, [1.0] * 5, bottoms, [1.0] * 5)  # in every draw, too
    assert (twice.value, twice.interval) == (2.0, None)
    assert paired_ratio([], [], [], []).value is None
    assert paired_ratio([1.0], [1.0], [0.0], [1.0]).value is None
    many = paired_ratio([100.0, 300.0] * 4, [10.0] * 8, [50.0, 30.0] * 4, [10.0] * 8)
    assert 2.0 <= many.interval[0] < 5.0 < many.interval[1] <= 10.0


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


@given(st.integers(0, 400), st.floats(1e-3, 1e3))
def test_rates_per_exposure_are_those_of_statsmodels(events: int, km: float) -> None:
    got = PerExposure(events, km)
    assert got.value == events / km
    assert got.interval == pytest.approx(confint_poisson(events, km, method="exact-c"))


@given(st.integers(0, 60), st.floats(0.1, 50.0))
def test_exact_intervals_leave_a_fortieth_at_each_side(events: int, km: float) -> None:
    low, high = PerExposure(events, km).interval
    assert poisson.cdf(events, high * km) == pytest.approx(0.025)
    if events:
        assert poisson.sf(events - 1, low * km) == pytest.approx(0.025)
    else:
        assert low == 0.0


def test_figures_in_words_and_in_records() -> None:
    assert Rate(1, 4).text(1) == "25.0 % [4.6, 69.9]"
    assert Rate(0, 0).text() == Estimate(None, None, 0).text() == "-"
    assert Estimate(1.234, (1.0, 1.5), 7).text() == "1.23 [1.00, 1.50]"
    assert Estimate(-0.001, None, 3).text() == "0.00"
    assert PerExposure(0, 0.0).interval is None
    told = PerExposure(3, 2.0).as_dict()
    assert (told["events"], told["exposure"], told["rate"]) == (3, 2.0, 1.5)
    assert told["poisson95"] == pytest.approx(confint_poisson(3, 2.0, method="exact-c"))


def test_scipys_statistics_are_not_loaded_before_they_are_needed() -> None:
    program = "import sys, mlnav.stats; sys.exit('scipy.stats' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_wilson_intervals() -> None:
    # Brown, Cai, DasGupta 2001, and the rule of three's better kin
    assert Rate(0, 100).interval == pytest.approx((0.0, 0.03699), abs=1e-5)
    assert Rate(8, 10).interval == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert Rate(0, 0).interval is None
    assert Rate(0, 0).as_dict()["rate"] is None


def test_strata_are_drawn_each_for_itself() -> None:
    top, bottom = [10.0] * 5 + [1000.0] * 5, [10.0] * 10
    ones = [1.0] * 10
    mixed = paired_ratio(top, ones, bottom, ones)
    kept = paired_ratio(top, ones, bottom, ones, [0] * 5 + [1] * 5)
    assert kept.value == mixed.value
    assert kept.interval is None  # nothing varies within a stratum
    assert mixed.interval[1] - mixed.interval[0] > 1.0


def test_paired_mean_covers_the_truth() -> None:
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(60):
        low, high = paired_mean(rng.normal(0.3, 1.0, 40).tolist()).interval
        hits += low < 0.3 < high
    assert 50 <= hits <= 60


def test_mcnemar_by_hand() -> None:
    a = [True] * 9 + [False] * 1 + [True] * 5 + [False] * 3
    b = [False] * 9 + [True] * 1 + [True] * 5 + [False] * 3
    test = mcnemar(a, b)
    assert (test["only_a"], test["only_b"], test["both"], test["neither"]) == (9, 1, 5, 3)
    assert test["p"] == pytest.approx(2 * 11 / 1024)
    assert mcnemar([True, False], [True, False])["p"] == 1.0
    assert mcnemar([], [])["p"] == 1.0
