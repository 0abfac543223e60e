"""Rates, ratios and differences with their uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest, norm, t

F64 = NDArray[np.float64]

BOOTSTRAP_DRAWS = 4000

FEWEST_PAIRS = 5
"""Of fewer, a bootstrap interval says more of the draws than of the runs."""

SMALL_STRATUM = 5
"""Pairs. Strata of fewer are drawn from together: drawn from alone, one of two pairs has half the
variance that it should have, and a single one has none."""

_CHUNK = 2_000_000
"""Numbers drawn at a time: what a bootstrap holds in memory does not grow with the campaign."""


@dataclass(frozen=True)
class Rate:
    """`hits` of `trials`, with its 95 % Wilson interval."""

    hits: int
    trials: int

    @property
    def value(self) -> float | None:
        """The share, None without trials."""
        return self.hits / self.trials if self.trials else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % Wilson score interval, None without trials."""
        if not self.trials:
            return None
        interval = binomtest(self.hits, self.trials).proportion_ci(0.95, method="wilson")
        return float(interval.low), float(interval.high)

    def as_dict(self) -> dict[str, Any]:
        """For records: hits, trials, rate and interval."""
        interval = self.interval
        return {
            "hits": self.hits,
            "trials": self.trials,
            "rate": self.value,
            "wilson95": None if interval is None else list(interval),
        }

    def text(self, digits: int = 2) -> str:
        """Percent with its interval, for tables."""
        if self.value is None or self.interval is None:
            return "-"
        low, high = self.interval
        return f"{100 * self.value:.{digits}f} % [{100 * low:.{digits}f}, {100 * high:.{digits}f}]"


@dataclass(frozen=True)
class Estimate:
    """A number over `n` pairs with its 95 % bootstrap interval; None of no pairs.

    There is no interval where it would say nothing: of fewer than `FEWEST_PAIRS` pairs, or of pairs
    that are all alike.

    Expanded percentiles (Hesterberg 2015, The American Statistician 69): plain ones of few pairs
    are too narrow, by as much as a normal interval is beside one of Student's t. With tails as
    heavy as evaluations have, 95 % intervals still cover only about 83 % of the time of 5 pairs,
    88 % of 20, 92 % of 30 and 93 % of 60.
    """

    value: float | None
    interval: tuple[float, float] | None
    n: int

    def as_dict(self) -> dict[str, Any]:
        """For records: value, interval and number of pairs."""
        interval = None if self.interval is None else list(self.interval)
        return {"value": self.value, "ci95": interval, "n": self.n}


def paired_ratio(
    top: Sequence[float],
    top_cycles: Sequence[float],
    bottom: Sequence[float],
    bottom_cycles: Sequence[float],
    strata: Sequence[int] | None = None,
) -> Estimate:
    """Mean per cycle of one contender over that of another, over the same pairs.

    (sum top / sum top_cycles) / (sum bottom / sum bottom_cycles). Whole pairs are drawn again in
    the bootstrap, within each stratum (terrain) where `strata` tells them apart.
    """
    sums = np.column_stack(
        [np.asarray(c, np.float64) for c in (top, top_cycles, bottom, bottom_cycles)]
    ).reshape(-1, 4)

    def ratio(s: F64) -> F64:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((s[..., 0] / s[..., 1]) / (s[..., 2] / s[..., 3]))

    return _estimate(ratio, sums, strata)


def paired_mean(values: Sequence[float], strata: Sequence[int] | None = None) -> Estimate:
    """Mean over pairs; of differences between two contenders."""
    return pooled_mean(values, np.ones(len(values)).tolist(), strata)


def pooled_mean(
    totals: Sequence[float], counts: Sequence[float], strata: Sequence[int] | None = None
) -> Estimate:
    """Sum of totals over sum of counts: a mean per cycle, its interval from drawing whole runs.

    Cycles of a run are not independent of each other; runs are.
    """
    columns = np.column_stack([np.asarray(c, np.float64) for c in (totals, counts)]).reshape(-1, 2)

    def mean(s: F64) -> F64:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(s[..., 0] / s[..., 1])

    return _estimate(mean, columns, strata)


def independent_ratio(
    top: Sequence[float],
    top_cycles: Sequence[float],
    bottom: Sequence[float],
    bottom_cycles: Sequence[float],
) -> Estimate:
    """As `paired_ratio`, of runs that are not paired; `n` is the smaller number of runs."""
    upper = np.column_stack([np.asarray(top, np.float64), np.asarray(top_cycles, np.float64)])
    lower = np.column_stack([np.asarray(bottom, np.float64), np.asarray(bottom_cycles, np.float64)])
    n = min(len(upper), len(lower))
    with np.errstate(divide="ignore", invalid="ignore"):
        (a, b), (c, d) = upper.sum(axis=0), lower.sum(axis=0)
        value = float((a / b) / (c / d)) if n else np.nan
        if not np.isfinite(value):
            return Estimate(None, None, n)
        rng = np.random.default_rng(0)
        u, v = _drawn_sums(upper, rng), _drawn_sums(lower, rng)
        drawn = (u[:, 0] / u[:, 1]) / (v[:, 0] / v[:, 1])
    return Estimate(value, _interval(drawn, n), n)


def _estimate(statistic: Any, columns: F64, strata: Sequence[int] | None) -> Estimate:
    n = len(columns)
    value = float(statistic(columns.sum(axis=0))) if n else np.nan
    if not np.isfinite(value):
        return Estimate(None, None, n)
    rng = np.random.default_rng(0)  # the same records give the same interval
    sums = np.zeros((BOOTSTRAP_DRAWS, columns.shape[1]))
    for mine in _strata(columns, strata):
        sums += _drawn_sums(mine, rng)
    return Estimate(value, _interval(statistic(sums), n), n)


def _strata(columns: F64, strata: Sequence[int] | None) -> list[F64]:
    if strata is None:
        return [columns]
    _, group, sizes = np.unique(
        np.asarray(strata, np.intp), return_inverse=True, return_counts=True
    )
    small = sizes[group] < SMALL_STRATUM
    parts = [columns[small]] if small.any() else []
    return parts + [columns[group == g] for g in np.flatnonzero(sizes >= SMALL_STRATUM)]


def _drawn_sums(columns: F64, rng: np.random.Generator) -> F64:
    """(draws, k) sums of the columns of as many rows, drawn with replacement."""
    n, k = columns.shape
    at_once = max(1, _CHUNK // (n * k))
    parts = [
        columns[rng.integers(n, size=(min(at_once, BOOTSTRAP_DRAWS - i), n))].sum(axis=1)
        for i in range(0, BOOTSTRAP_DRAWS, at_once)
    ]
    return np.concatenate(parts)


def _interval(drawn: F64, n: int) -> tuple[float, float] | None:
    if n < FEWEST_PAIRS:
        return None
    tail = float(norm.cdf(-np.sqrt(n / (n - 1)) * t.ppf(0.975, n - 1)))
    low, high = np.quantile(drawn[np.isfinite(drawn)], [tail, 1.0 - tail])
    return (float(low), float(high)) if low < high else None


def rate_difference(a: Rate, b: Rate, correlation: float = 0.0) -> Estimate:
    """Difference a - b of two rates, by Newcombe's interval from their Wilson intervals.

    Args:
        a: a rate.
        b: another.
        correlation: of the two; 0 for independent trials.
    """
    n = min(a.trials, b.trials)
    if a.value is None or b.value is None or a.interval is None or b.interval is None:
        return Estimate(None, None, n)
    below_a, above_a = a.value - a.interval[0], a.interval[1] - a.value
    below_b, above_b = b.value - b.interval[0], b.interval[1] - b.value

    def distance(u: float, v: float) -> float:
        return float(np.sqrt(max(u * u - 2.0 * correlation * u * v + v * v, 0.0)))

    value = a.value - b.value
    return Estimate(
        value, (value - distance(below_a, above_b), value + distance(above_a, below_b)), n
    )


def paired_rate_difference(a: Sequence[bool], b: Sequence[bool]) -> Estimate:
    """Difference of success rates on the same pairs (Newcombe 1998, Stat. Med. 17:2635, method 10).

    Unlike a bootstrap's, its interval has a width where the two never differ.
    """
    counts = mcnemar(a, b)
    both, only_a, only_b, neither = (counts[k] for k in ("both", "only_a", "only_b", "neither"))
    first, second, n = both + only_a, both + only_b, len(a)
    margins = first * (n - first) * second * (n - second)
    excess = both * neither - only_a * only_b
    if excess > 0:
        excess = max(excess - n / 2, 0.0)
    correlation = excess / np.sqrt(float(margins)) if margins else 0.0
    return rate_difference(Rate(first, n), Rate(second, n), float(correlation))


def mcnemar(a: Sequence[bool], b: Sequence[bool]) -> dict[str, Any]:
    """Exact test of whether two contenders succeed equally often on the same pairs.

    Returns:
        both, only_a, only_b, neither: pairs; p: two-sided, 1 where the two never differ.
    """
    pairs = list(zip(a, b, strict=True))
    only_a, only_b = pairs.count((True, False)), pairs.count((False, True))
    differ = only_a + only_b
    return {
        "both": pairs.count((True, True)),
        "only_a": only_a,
        "only_b": only_b,
        "neither": pairs.count((False, False)),
        "p": float(binomtest(only_a, differ, 0.5).pvalue) if differ else 1.0,
    }


def holm(p: Sequence[float]) -> list[float]:
    """Values of p adjusted for being one of many, by Holm's step-down method."""
    values = np.asarray(p, np.float64)
    order = np.argsort(values, kind="stable")
    stepped = values[order] * np.arange(len(values), 0, -1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1.0)
    return [float(v) for v in adjusted]


def ecdf(values: Sequence[float] | F64, points: int = 200) -> tuple[list[float], list[float]]:
    """Steps of the empirical distribution: values, and the share of all that are at most these.

    Of more steps than `points`, as many are left as drawn lines can show, the first and the last
    among them; each that is left is exact.
    """
    found, counts = np.unique(np.asarray(values, np.float64), return_counts=True)
    if not len(found):
        return [], []
    shares = np.cumsum(counts) / counts.sum()
    kept = np.unique(np.linspace(0, len(found) - 1, min(points, len(found))).round().astype(int))
    return [float(v) for v in found[kept]], [float(v) for v in shares[kept]]
