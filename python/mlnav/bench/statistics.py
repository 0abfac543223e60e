"""Rates, ratios and differences with their uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

F64 = NDArray[np.float64]

BOOTSTRAP_DRAWS = 4000


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
    """A number over `n` pairs with its 95 % percentile bootstrap interval; None of no pairs."""

    value: float | None
    interval: tuple[float, float] | None
    n: int


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
    columns = np.asarray(values, np.float64).reshape(-1, 1)
    columns = np.column_stack([columns, np.ones(len(columns))])
    return _estimate(lambda s: np.asarray(s[..., 0] / s[..., 1]), columns, strata)


def _estimate(statistic: Any, columns: F64, strata: Sequence[int] | None) -> Estimate:
    n = len(columns)
    value = float(statistic(columns.sum(axis=0))) if n else np.nan
    if not np.isfinite(value):
        return Estimate(None, None, n)
    group = np.zeros(n, np.intp) if strata is None else np.asarray(strata, np.intp)
    rng = np.random.default_rng(0)  # the same records give the same interval
    sums = np.zeros((BOOTSTRAP_DRAWS, columns.shape[1]))
    for g in np.unique(group):
        mine = columns[group == g]
        sums += mine[rng.integers(len(mine), size=(BOOTSTRAP_DRAWS, len(mine)))].sum(axis=1)
    drawn = statistic(sums)
    drawn = drawn[np.isfinite(drawn)]
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Estimate(value, (float(low), float(high)), n)


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
