"""Rates, ratios and differences with their uncertainty."""

from mlnav.stats.statistics import (
    BOOTSTRAP_DRAWS,
    F64,
    FEWEST_PAIRS,
    SMALL_STRATUM,
    Estimate,
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

__all__ = [
    "BOOTSTRAP_DRAWS",
    "F64",
    "FEWEST_PAIRS",
    "SMALL_STRATUM",
    "Estimate",
    "Rate",
    "ecdf",
    "holm",
    "independent_ratio",
    "mcnemar",
    "paired_mean",
    "paired_rate_difference",
    "paired_ratio",
    "pooled_mean",
    "rate_difference",
]
