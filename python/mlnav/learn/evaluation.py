"""Evaluation of a model folder on a part of a data set, with ONNX Runtime and without torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlnav import _core
from mlnav.learn.data import (
    BINS,
    PAIRS,
    PARTS,
    SUBCELLS,
    UNKNOWN,
    DataSpec,
    Windows,
    heights_m,
    make_windows,
    network_input,
    read_part,
    read_spec,
    recipe_of,
)
from mlnav.learn.quality import Quality, QualityMeter
from mlnav.risk.models import Model
from mlnav.risk.network import inference_session

F32 = NDArray[np.float32]
Predictor = Callable[[NDArray[np.int16]], NDArray[Any]]
"""(cells, cells) stored heights -> (bins, side, side) scores that increase with risk."""


class EvaluationError(ValueError):
    """A model cannot be evaluated on this data."""


class Network:
    """A model in ONNX Runtime, on one thread."""

    def __init__(self, model: Model) -> None:
        self._session = inference_session(model, threads=1)
        if self._session is None:
            raise EvaluationError("onnxruntime is missing: pip install mlnav[onnx]")
        self._manifest = model.manifest

    def risk(self, heights: NDArray[np.int16]) -> F32:
        """(cells, cells) stored heights -> (bins, side, side) risk.

        Raises EvaluationError: the model has another window size.
        """
        wanted = self._manifest.input
        if heights.shape != wanted.cells:
            raise EvaluationError(
                f"{self._manifest.name} looks at {wanted.cells} cells, the data has {heights.shape}"
            )
        inputs = {wanted.name: network_input(heights[np.newaxis])}
        risk: F32 = self._session.run([self._manifest.output.name], inputs)[0][0]
        return risk

    def __call__(self, heights: NDArray[np.int16]) -> NDArray[Any]:
        """Logits, as a `Predictor`."""
        return logits_of(self.risk(heights))


def sobel(resolution_m: float, bins: int) -> Predictor:
    """Scores of the Sobel heuristic: logits of its mean risk over each risk cell."""

    def predict(heights: NDArray[np.int16]) -> NDArray[Any]:
        p = _core.sobel_risk(_core.Grid(heights_m(heights), resolution_m, 0.0, 0.0))
        scores = logits_of(block_mean(p, SUBCELLS))
        return np.broadcast_to(scores, (bins, *scores.shape))

    return predict


def logits_of(risk: NDArray[Any]) -> NDArray[np.float64]:
    """log(p / (1 - p)), with p kept from 0 and 1 by the resolution of float32."""
    p = np.clip(risk.astype(np.float64), 6e-8, 1.0 - 6e-8)
    return np.asarray(np.log(p / (1.0 - p)))


def block_mean(values: NDArray[Any], size: int) -> NDArray[Any]:
    """Means of size x size blocks of the last two axes."""
    *front, ny, nx = values.shape
    blocks = values.reshape(*front, ny // size, size, nx // size, size)
    return np.asarray(blocks.mean((-3, -1), dtype=values.dtype if size > 1 else None))


def dense_target(rejected: NDArray[np.uint8], size: int) -> NDArray[np.float32]:
    """Shares rejected (..., size, size) of counts in coarser or finer risk cells."""
    share, side = rejected.astype(np.float32) / SUBCELLS**2, rejected.shape[-1]
    return block_mean(share, side // size) if size < side else _spread(share, size // side)


def labels_for(
    windows: Windows, i: int, checker: str, scores: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[np.float32], NDArray[np.float32]]:
    """Scores, targets in [0, 1] and weights of the labels of window i, flat.

    Scores may have coarser or finer cells than labels.
    """
    side, size = windows.dense.shape[-1], scores.shape[-1]
    if checker == "fixed_box":
        target = dense_target(windows.dense[i], size)
        return scores.ravel(), target.ravel(), np.ones(target.size, np.float32)
    step = max(1, size // side)
    scores = _spread(scores, max(1, side // size))[:, ::step, ::step]
    picked = scores.reshape(-1)[windows.sample_at[i]]
    return picked, windows.sample_bad[i].astype(np.float32), windows.sample_weight[i]


def _spread(values: NDArray[Any], times: int) -> NDArray[Any]:
    return values.repeat(times, -1).repeat(times, -2)


def measure(
    windows: Windows,
    checker: str,
    predict: Predictor,
    progress: Callable[[int], None] = lambda done: None,
) -> list[QualityMeter]:
    """One meter per window; `total` sums them."""
    meters = []
    for i in range(len(windows)):
        meter = QualityMeter()
        meter.add(*labels_for(windows, i, checker, predict(windows.heights[i])))
        meters.append(meter)
        progress(i + 1)
    return meters


def total(meters: list[QualityMeter], chosen: NDArray[np.bool_] | None = None) -> Quality:
    """Quality over all windows, or over the chosen ones."""
    summed = QualityMeter()
    for i, meter in enumerate(meters):
        if chosen is None or chosen[i]:
            summed += meter
    return summed.quality()


def grounds(spec: DataSpec, part: str, windows: Windows) -> Mapping[str, NDArray[np.bool_]]:
    """Masks of the windows by kind of terrain; kinds overlap."""
    recipes = [recipe_of(spec, part, i) for i in range(len(windows) // spec.windows)]

    def of(value: Callable[[Any], Any]) -> NDArray[Any]:
        return np.repeat([value(r) for r in recipes], spec.windows)

    slope_deg = of(lambda r: r.base.slope_deg)
    cfa = of(lambda r: r.rocks.cfa if r.rocks else 0.0)
    unknown = (windows.heights == UNKNOWN).any((1, 2))
    return {
        "slope below 8 deg": slope_deg < 8.0,
        "slope 8-16 deg": (slope_deg >= 8.0) & (slope_deg < 16.0),
        "slope 16-25 deg": slope_deg >= 16.0,
        "rocks below 5 %": cfa < 0.05,
        "rocks 5-10 %": (cfa >= 0.05) & (cfa < 0.10),
        "rocks 10-20 %": cfa >= 0.10,
        "rough between rocks": of(lambda r: r.relief.rms_1m_m >= 0.06),
        "craters": of(lambda r: r.craters is not None),
        "ripples": of(lambda r: bool(r.ripples)),
        "scarps": of(lambda r: bool(r.scarps)),
        "ditches": of(lambda r: bool(r.ditches)),
        "part unknown": unknown,
        "all known": ~unknown,
    }


def by_ground(
    meters: list[QualityMeter], kinds: Mapping[str, NDArray[np.bool_]]
) -> dict[str, dict[str, Any]]:
    """Quality and number of windows of each kind of terrain that occurs."""
    return {
        kind: total(meters, chosen).as_dict() | {"windows": int(chosen.sum())}
        for kind, chosen in kinds.items()
        if chosen.any()
    }


def fixed_spec(window_m: float, resolution_m: float) -> DataSpec:
    """A small data set, made on demand, on which a manifest has the model's score."""
    return DataSpec(
        seed=20,
        terrains={"train": 1, "validation": 1, "test": 6},
        windows=2,
        window_m=window_m,
        resolution_m=resolution_m,
        terrain_m=window_m + 12.0,
        samples=2000,
    )


def fixed_windows(spec: DataSpec) -> Windows:
    """The windows of a fixed set."""
    return Windows.stacked([make_windows(spec, "test", i) for i in range(spec.terrains["test"])])


def evaluate_model(
    model: Model,
    data: Path,
    part: str = "test",
    most: int | None = None,
    progress: Callable[[float, str], None] = lambda done, what: None,
) -> dict[str, Any]:
    """Quality of a model and of Sobel on a part of a data set, as a whole and by kind of terrain.

    Raises:
        EvaluationError: the part is unknown, or the model has other windows or another checker.
        DataError: the data set is incomplete or damaged.
    """
    manifest = model.manifest
    checker = manifest.labels.checker
    if part not in PARTS:
        raise EvaluationError(f"no part {part!r}; known: {', '.join(PARTS)}")
    if PAIRS.get(checker) != manifest.labels.limits:
        raise EvaluationError(f"{manifest.name}: no labels of {checker}, {manifest.labels.limits}")
    spec = read_spec(data)
    if abs(spec.resolution_m / manifest.input.resolution_m - 1.0) > 1e-6:
        raise EvaluationError(
            f"{manifest.name} looks at cells of {manifest.input.resolution_m:g} m, the data has"
            f" {spec.resolution_m:g} m"
        )
    windows = read_part(data, part, most)
    n = len(windows)
    meters = measure(windows, checker, Network(model), lambda done: progress(0.5 * done / n, ""))
    of_sobel = sobel(spec.resolution_m, BINS)
    baseline = measure(windows, checker, of_sobel, lambda k: progress(0.5 + 0.5 * k / n, ""))
    return {
        "model": manifest.name,
        "checker": checker,
        "limits": manifest.labels.limits,
        "data": {"digest": spec.digest, "part": part, "windows": n},
        **total(meters).as_dict(),
        "sobel_auc": round(total(baseline).auc, 6),
        "by_ground": by_ground(meters, grounds(spec, part, windows)),
    }
