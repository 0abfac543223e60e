"""Means and ratios over runs, with intervals from drawing whole runs again.

Expanded percentiles (Hesterberg 2015, The American Statistician 69): plain ones of few pairs are
too narrow, by as much as a normal interval is beside one of Student's t. With tails as heavy as
evaluations have, 95 % intervals still cover only about 83 % of the time of 5 pairs, 88 % of 20,
92 % of 30 and 93 % of 60.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from mlnav.stats.estimate import Estimate, Interval

F64 = NDArray[np.float64]

BOOTSTRAP_DRAWS = 4000

FEWEST_PAIRS = 5
"""Of fewer, a bootstrap interval says more of the draws than of the runs."""

SMALL_STRATUM = 5
"""Pairs. Strata of fewer are drawn from together: drawn from alone, one of two pairs has half the
variance that it should have, and a single one has none."""

_CHUNK = 2_000_000
"""Numbers drawn at a time: what a bootstrap holds in memory does not grow with the campaign."""


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
    columns = _columns(top, top_cycles, bottom, bottom_cycles)
    return _estimate(_ratio, columns, _strata(columns, strata), len(columns))


def paired_mean(values: Sequence[float], strata: Sequence[int] | None = None) -> Estimate:
    """Mean over pairs; of differences between two contenders."""
    return pooled_mean(values, [1.0] * len(values), strata)


def pooled_mean(
    totals: Sequence[float], counts: Sequence[float], strata: Sequence[int] | None = None
) -> Estimate:
    """Sum of totals over sum of counts: a mean per cycle, its interval from drawing whole runs.

    Cycles of a run are not independent of each other; runs are.
    """
    columns = _columns(totals, counts)
    parts = _strata(columns, strata)
    return _estimate(lambda s: s[..., 0] / s[..., 1], columns, parts, len(columns))


def independent_ratio(
    top: Sequence[float],
    top_cycles: Sequence[float],
    bottom: Sequence[float],
    bottom_cycles: Sequence[float],
) -> Estimate:
    """As `paired_ratio`, of runs that are not paired; `n` is the smaller number of runs."""
    upper, lower = _columns(top, top_cycles), _columns(bottom, bottom_cycles)
    parts = [np.pad(upper, ((0, 0), (0, 2))), np.pad(lower, ((0, 0), (2, 0)))]
    return _estimate(_ratio, np.vstack(parts), parts, min(len(upper), len(lower)))


def _ratio(s: F64) -> F64:
    return (s[..., 0] / s[..., 1]) / (s[..., 2] / s[..., 3])


def _columns(*columns: Sequence[float]) -> F64:
    return np.column_stack([np.asarray(c, np.float64) for c in columns])


def _estimate(
    statistic: Callable[[F64], F64], columns: F64, parts: Sequence[F64], n: int
) -> Estimate:
    """A statistic of the sums of columns, whose rows are drawn again in each part alone."""
    rng = np.random.default_rng(0)  # the same records give the same interval
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(statistic(columns.sum(axis=0))) if n else np.nan
        if not np.isfinite(value):
            return Estimate(None, None, n)
        sums = sum(_drawn_sums(mine, rng) for mine in parts)
        return Estimate(value, _interval(statistic(np.asarray(sums)), n), n)


def _strata(columns: F64, strata: Sequence[int] | None) -> list[F64]:
    if strata is None:
        return [columns]
    _, group, sizes = np.unique(strata, return_inverse=True, return_counts=True)
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


def _interval(drawn: F64, n: int) -> Interval | None:
    if n < FEWEST_PAIRS:
        return None
    from scipy.stats import norm, t

    tail = float(norm.cdf(-np.sqrt(n / (n - 1)) * t.ppf(0.975, n - 1)))
    low, high = np.quantile(drawn[np.isfinite(drawn)], [tail, 1.0 - tail])
    return (float(low), float(high)) if low < high else None


def ecdf(values: Sequence[float] | F64, points: int = 200) -> tuple[list[float], list[float]]:
    """Steps of the empirical distribution: values, and the share of all that are at most these.

    Of more steps than `points`, as many are left as drawn lines can show, the first and the last
    among them; each that is left is exact.
    """
    from scipy.stats import ecdf as all_steps

    cdf = all_steps(values).cdf
    steps = len(cdf.quantiles)
    kept = np.unique(np.linspace(0, steps - 1, min(points, steps)).round().astype(int))
    return cdf.quantiles[kept].tolist(), cdf.probabilities[kept].tolist()
