"""Quality of predicted risk: discrimination (AUC) and calibration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class Quality:
    """Discrimination and calibration of predicted risk.

    Attributes:
        loss: mean cross entropy [nat].
        auc: probability that a rejected pose has a higher risk than a passed one; NaN without both.
        calibration_error: expected |risk - share rejected| over tenths of risk (ECE).
        reliability: rows of mean risk, share rejected and share of poses, by tenth of risk.
        rejected: share of poses that are rejected.
    """

    loss: float
    auc: float
    calibration_error: float
    reliability: list[tuple[float, float, float]]
    rejected: float

    def as_dict(self) -> dict[str, Any]:
        """For a manifest."""
        return {
            "loss": round(self.loss, 6),
            "auc": None if math.isnan(self.auc) else round(self.auc, 6),
            "calibration_error": round(self.calibration_error, 6),
            "rejected": round(self.rejected, 6),
            "reliability": [[round(v, 6) for v in row] for row in self.reliability],
        }


class QualityMeter:
    """Histograms of scores (logits, or any number that increases with risk) by verdict."""

    STEPS = 8192
    RANGE = 16.0

    def __init__(self) -> None:
        self._bad = np.zeros(self.STEPS)
        self._good = np.zeros(self.STEPS)
        self._loss = 0.0

    def add(self, logits: NDArray[Any], target: NDArray[Any], weight: NDArray[Any]) -> None:
        """Add predictions with labels; a target in [0, 1] is the share rejected."""
        logits = logits.astype(np.float64)
        place = (logits + self.RANGE) * (self.STEPS / (2.0 * self.RANGE))
        place = np.clip(place, 0, self.STEPS - 1).astype(np.int64)
        bad = target.astype(np.float64) * weight
        self._bad += np.bincount(place, bad, self.STEPS)
        self._good += np.bincount(place, weight - bad, self.STEPS)
        self._loss += float((np.logaddexp(0.0, logits) * weight - logits * bad).sum())

    def __iadd__(self, other: QualityMeter) -> Self:
        self._bad += other._bad
        self._good += other._good
        self._loss += other._loss
        return self

    def quality(self) -> Quality:
        """Quality over everything added."""
        bad, good = self._bad, self._good
        below = np.cumsum(good) - 0.5 * good
        pairs = bad.sum() * good.sum()
        auc = float((bad * below).sum() / pairs) if pairs > 0.0 else math.nan
        risk = 1.0 / (1.0 + np.exp(-self._centres()))
        tenth = np.minimum((risk * 10.0).astype(int), 9)
        total = bad + good
        everything = max(float(total.sum()), 1e-30)
        sums = np.stack([np.bincount(tenth, w, 10) for w in (total, risk * total, bad)])
        count, risks, rejected = sums[:, sums[0] > 0.0]
        means, shares = risks / count, rejected / count
        rows = list(zip(*(v.tolist() for v in (means, shares, count / everything)), strict=True))
        error = float((np.abs(means - shares) * count).sum() / everything)
        return Quality(self._loss / everything, auc, error, rows, float(bad.sum()) / everything)

    def calibration(self) -> tuple[float, float]:
        """(a, b) that minimise the cross entropy of sigmoid(a x logit + b)."""
        bad, good = self._bad, self._good
        everything = max(float((bad + good).sum()), 1e-30)
        logits = self._centres()

        def loss(at: F64) -> tuple[float, F64]:
            moved = at[0] * logits + at[1]
            risk = 1.0 / (1.0 + np.exp(-moved))
            value = good * np.logaddexp(0.0, moved) + bad * np.logaddexp(0.0, -moved)
            slope = (bad + good) * risk - bad
            slopes = np.array([(slope * logits).sum(), slope.sum()])
            return float(value.sum()) / everything, slopes / everything

        found = minimize(loss, np.array([1.0, 0.0]), jac=True, method="BFGS")
        return float(found.x[0]), float(found.x[1])

    def _centres(self) -> F64:
        steps = np.arange(self.STEPS) + 0.5
        return np.asarray(steps * (2.0 * self.RANGE / self.STEPS) - self.RANGE)
