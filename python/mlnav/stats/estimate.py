"""A number with its uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Interval = tuple[float, float]


@dataclass(frozen=True)
class Estimate:
    """A number over `n` pairs or runs with its 95 % interval; None of none.

    There is no interval where it would say nothing: of a bootstrap, with fewer than `FEWEST_PAIRS`
    pairs, or with pairs that are all alike.
    """

    value: float | None
    interval: Interval | None
    n: int

    def as_dict(self) -> dict[str, Any]:
        """For records: value, interval and number of pairs."""
        return {"value": self.value, "ci95": as_list(self.interval), "n": self.n}

    def text(self, digits: int = 2) -> str:
        """The number with its interval, for tables."""
        return in_words(self.value, self.interval, digits)


def as_list(interval: Interval | None) -> list[float] | None:
    """An interval for records."""
    return None if interval is None else list(interval)


def in_words(
    value: float | None, interval: Interval | None, digits: int, scale: float = 1.0, unit: str = ""
) -> str:
    """`value unit [low, high]`; a dash without a value."""
    if value is None:
        return "-"
    text = f"{scale * value:z.{digits}f}{unit}"
    if interval is not None:
        low, high = (f"{scale * v:z.{digits}f}" for v in interval)
        text += f" [{low}, {high}]"
    return text
