import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from mlnav.learn.quality import QualityMeter
from mlnav.viz.learn import reliability_figure
from mlnav.viz.style import save_figure

STEP = 2.0 * QualityMeter.RANGE / QualityMeter.STEPS


@st.composite
def labels(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Logits at the middle of the meter's steps, where it is exact; targets in quarters."""
    n = draw(st.integers(1, 40))
    places = draw(st.lists(st.integers(-2000, 2000), min_size=n, max_size=n))
    quarters = draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    weights = draw(st.lists(st.floats(0.1, 5.0), min_size=n, max_size=n))
    return (np.array(places) + 0.5) * STEP, np.array(quarters) / 4.0, np.array(weights)


def brute_auc(logits, target, weight) -> float:
    bad, good = weight * target, weight * (1.0 - target)
    wins = np.sign(logits[:, None] - logits[None, :]) * 0.5 + 0.5
    pairs = bad[:, None] * good[None, :]
    return float((wins * pairs).sum() / pairs.sum()) if pairs.sum() > 0 else math.nan


def brute_error(logits, target, weight) -> float:
    risk = 1.0 / (1.0 + np.exp(-logits))
    tenth = np.minimum((risk * 10).astype(int), 9)
    apart = 0.0
    for k in set(tenth):
        here = tenth == k
        apart += abs((weight * (risk - target))[here].sum())
    return float(apart / weight.sum())


@settings(max_examples=60)
@given(labels())
def test_the_meter_is_what_a_brute_force_sum_is(drawn) -> None:
    logits, target, weight = drawn
    meter = QualityMeter()
    half = len(logits) // 2
    meter.add(logits[:half], target[:half], weight[:half])
    rest = QualityMeter()
    rest.add(logits[half:], target[half:], weight[half:])
    meter += rest
    quality = meter.quality()
    assert quality.auc == pytest.approx(brute_auc(*drawn), nan_ok=True, abs=1e-9)
    assert quality.calibration_error == pytest.approx(brute_error(*drawn), abs=1e-9)
    assert quality.rejected == pytest.approx(float((weight * target).sum() / weight.sum()))
    loss = weight * (np.logaddexp(0, logits) - target * logits)
    assert quality.loss == pytest.approx(float(loss.sum() / weight.sum()))
    assert sum(share for _, _, share in quality.reliability) == pytest.approx(1.0)


def test_scores_beyond_the_range_keep_their_order() -> None:
    meter = QualityMeter()
    meter.add(np.array([-900.0, 900.0]), np.array([0.0, 1.0]), np.ones(2))
    assert meter.quality().auc == 1.0


def test_calibration_finds_the_slope_and_offset_that_labels_have() -> None:
    logits = np.random.default_rng(0).normal(0.0, 4.0, 20_000)
    target = 1.0 / (1.0 + np.exp(-(0.6 * logits - 0.4)))
    meter = QualityMeter()
    meter.add(logits, target, np.ones(len(logits)))
    assert meter.calibration() == pytest.approx((0.6, -0.4), abs=0.01)
    moved = QualityMeter()
    slope, offset = meter.calibration()
    moved.add(slope * logits + offset, target, np.ones(len(logits)))
    assert moved.quality().calibration_error < 0.002 < meter.quality().calibration_error
    assert moved.quality().loss < meter.quality().loss


def test_one_verdict_has_no_auc() -> None:
    meter = QualityMeter()
    meter.add(np.zeros(3), np.zeros(3), np.ones(3))
    assert math.isnan(meter.quality().auc)
    assert meter.quality().as_dict()["auc"] is None


def test_reliability_is_drawn(tmp_path) -> None:
    report = {
        "model": "tiny",
        "checker": "verified",
        "limits": "flight_like",
        "data": {"part": "test", "windows": 8},
        "auc": 0.91,
        "sobel_auc": 0.8,
        "calibration_error": 0.02,
        "reliability": [[0.04, 0.05, 0.6], [0.5, 0.45, 0.1], [0.97, 0.95, 0.3]],
    }
    save_figure(reliability_figure(report), tmp_path / "r.png", dpi=60)
    save_figure(reliability_figure(report | {"auc": None, "reliability": []}), tmp_path / "e.png")
    with Image.open(tmp_path / "r.png") as image:
        assert len(set(image.convert("L").tobytes())) > 20
