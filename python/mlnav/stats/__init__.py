"""Rates, ratios and differences with their uncertainty."""

from mlnav.stats.bootstrap import (
    BOOTSTRAP_DRAWS,
    F64,
    FEWEST_PAIRS,
    SMALL_STRATUM,
    ecdf,
    independent_ratio,
    paired_mean,
    paired_ratio,
    pooled_mean,
)
from mlnav.stats.estimate import Estimate
from mlnav.stats.rates import PerExposure, Rate, paired_rate_difference, rate_difference
from mlnav.stats.significance import holm, mcnemar

__all__ = [
    "BOOTSTRAP_DRAWS",
    "F64",
    "FEWEST_PAIRS",
    "SMALL_STRATUM",
    "Estimate",
    "PerExposure",
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
