"""Rates, by trial and by exposure, and differences of rates."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mlnav.stats.estimate import Estimate, Interval, as_list, in_words


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
    def interval(self) -> Interval | None:
        """95 % Wilson score interval, None without trials."""
        if not self.trials:
            return None
        from scipy.stats import binomtest

        interval = binomtest(self.hits, self.trials).proportion_ci(0.95, method="wilson")
        return float(interval.low), float(interval.high)

    def as_dict(self) -> dict[str, Any]:
        """For records: hits, trials, rate and interval."""
        return asdict(self) | {"rate": self.value, "wilson95": as_list(self.interval)}

    def text(self, digits: int = 2) -> str:
        """Percent with its interval, for tables."""
        return in_words(self.value, self.interval, digits, 100.0, " %")


@dataclass(frozen=True)
class PerExposure:
    """`events` over an `exposure` such as km driven, with the exact 95 % Poisson interval.

    The interval (Garwood 1936, Biometrika 28:437) takes events to be independent of each other:
    count runs that became unsafe rather than states of the same run.
    """

    events: int
    exposure: float

    @property
    def value(self) -> float | None:
        """Events per unit of exposure, None without exposure."""
        return self.events / self.exposure if self.exposure else None

    @property
    def interval(self) -> Interval | None:
        """Exact 95 % interval, None without exposure."""
        if not self.exposure:
            return None
        from scipy.stats import chi2

        low = chi2.ppf(0.025, 2 * self.events) / 2.0 if self.events else 0.0
        high = chi2.ppf(0.975, 2 * self.events + 2) / 2.0
        return float(low / self.exposure), float(high / self.exposure)

    def as_dict(self) -> dict[str, Any]:
        """For records: events, exposure, rate and interval."""
        return asdict(self) | {"rate": self.value, "poisson95": as_list(self.interval)}


def rate_difference(a: Rate, b: Rate, correlation: float = 0.0) -> Estimate:
    """Difference a - b of two rates, by Newcombe's interval from their Wilson intervals."""
    n = min(a.trials, b.trials)
    if a.value is None or b.value is None or a.interval is None or b.interval is None:
        return Estimate(None, None, n)

    def distance(u: float, v: float) -> float:
        return math.sqrt(max(u * u - 2.0 * correlation * u * v + v * v, 0.0))

    value = a.value - b.value
    low = value - distance(a.value - a.interval[0], b.interval[1] - b.value)
    high = value + distance(a.interval[1] - a.value, b.value - b.interval[0])
    return Estimate(value, (low, high), n)


def paired_rate_difference(a: Sequence[bool], b: Sequence[bool]) -> Estimate:
    """Difference of success rates on the same pairs (Newcombe 1998, Stat. Med. 17:2635, method 10).

    Unlike a bootstrap's, its interval has a width where the two never differ.
    """
    both, only_a, only_b, neither = paired_counts(a, b).values()
    first, second, n = both + only_a, both + only_b, len(a)
    margins = first * (n - first) * second * (n - second)
    excess: float = both * neither - only_a * only_b
    if excess > 0:
        excess = max(excess - n / 2, 0.0)
    correlation = excess / math.sqrt(margins) if margins else 0.0
    return rate_difference(Rate(first, n), Rate(second, n), correlation)


def paired_counts(a: Sequence[bool], b: Sequence[bool]) -> dict[str, int]:
    """Pairs in which both, only one or neither of two contenders has a property."""
    counts = Counter(zip(a, b, strict=True))
    return {
        "both": counts[True, True], "only_a": counts[True, False],
        "only_b": counts[False, True], "neither": counts[False, False],
    }  # fmt: skip
