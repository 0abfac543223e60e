"""Rates with their uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scipy.stats import binomtest


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
