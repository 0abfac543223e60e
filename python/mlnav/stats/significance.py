"""Tests of whether a difference is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlnav.stats.rates import paired_counts


def mcnemar(a: Sequence[bool], b: Sequence[bool]) -> dict[str, Any]:
    """Exact test of whether two contenders succeed, or are unsafe, equally often on the same pairs.

    Returns:
        both, only_a, only_b, neither: pairs; p: two-sided, 1 where the two never differ.
    """
    from scipy.stats import binomtest

    counts = paired_counts(a, b)
    differ = counts["only_a"] + counts["only_b"]
    p = float(binomtest(counts["only_a"], differ, 0.5).pvalue) if differ else 1.0
    return {**counts, "p": p}


def holm(p: Sequence[float]) -> list[float]:
    """Values of p adjusted for being one of many, by Holm's step-down method."""
    values = np.asarray(p, np.float64)
    order = np.argsort(values, kind="stable")
    stepped = values[order] * np.arange(len(values), 0, -1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1.0)
    return [float(v) for v in adjusted]
