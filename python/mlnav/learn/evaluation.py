"""How good a model on disk is, on a part of a data set: what is shipped, as it is run.

Needs onnxruntime, not torch.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlnav import _core
from mlnav.learn.data import (
    BINS,
    HEIGHT_STEP_M,
    PAIRS,
    PARTS,
    SUBCELLS,
    UNKNOWN,
    DataSpec,
    Windows,
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
"""(cells, cells) stored heights of a window -> (bins, side, side) scores that grow with risk."""


class EvaluationError(ValueError):
    """A model cannot be measured on this data."""


class Network:
    """A model through ONNX Runtime, on one thread."""

    def __init__(self, model: Model) -> None:
        self._session = inference_session(model, threads=1)
        if self._session is None:
            raise EvaluationError("onnxruntime is missing: pip install mlnav[onnx]")
        self._manifest = model.manifest

    def risk(self, heights: NDArray[np.int16]) -> F32:
        """(cells, cells) stored heights -> (bins, side, side) risk.

        Raises:
            EvaluationError: the model is of another window.
        """
        wanted = self._manifest.input
        if heights.shape != wanted.cells:
            raise EvaluationError(
                f"{self._manifest.name} looks at {wanted.cells} cells, the data has {heights.shape}"
            )
        ground = network_input(heights[np.newaxis])
        (p,) = self._session.run([self._manifest.output.name], {wanted.name: ground})
        risk: F32 = p[0]
        return risk

    def __call__(self, heights: NDArray[np.int16]) -> NDArray[Any]:
        """Logits, as a `Predictor`."""
        return logits_of(self.risk(heights))


def sobel(resolution_m: float, bins: int) -> Predictor:
    """The Sobel heuristic's risk, mean over a risk cell, as scores to rank by."""

    def predict(heights: NDArray[np.int16]) -> NDArray[Any]:
        z = heights_m(heights)
        p = _core.sobel_risk(_core.Grid(z, resolution_m, 0.0, 0.0))
        return np.broadcast_to(logits_of(block_mean(p, SUBCELLS)), (bins, *_coarse(p.shape)))

    return predict


def _coarse(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n // SUBCELLS for n in shape)


def heights_m(heights: NDArray[np.int16]) -> F32:
    """Stored heights in metres, NaN unknown."""
    z = heights * np.float32(HEIGHT_STEP_M)
    return np.where(heights == UNKNOWN, np.float32(np.nan), z)


def logits_of(risk: NDArray[Any]) -> NDArray[np.float64]:
    """log(p / (1 - p)), of risks kept off 0 and 1 by what float32 can tell."""
    p = np.clip(risk.astype(np.float64), 6e-8, 1.0 - 6e-8)
    return np.asarray(np.log(p / (1.0 - p)))


def block_mean(values: NDArray[Any], size: int) -> NDArray[Any]:
    """Means of size x size blocks of the last two axes."""
    *front, ny, nx = values.shape
    blocks = values.reshape(*front, ny // size, size, nx // size, size)
    return np.asarray(blocks.mean((-3, -1), dtype=values.dtype if size > 1 else None))


def labels_for(
    windows: Windows, i: int, checker: str, scores: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[np.float32], NDArray[np.float32]]:
    """Scores, targets in [0, 1] and weights of window i's labels, flat.

    Scores may be on coarser or finer cells than labels.
    """
    side, size = windows.dense.shape[-1], scores.shape[-1]
    if checker == "fixed_box":
        target = windows.dense[i].astype(np.float32) / SUBCELLS**2
        coarser = size < side
        target = block_mean(target, side // size) if coarser else _spread(target, size // side)
        return scores.ravel(), target.ravel(), np.ones(target.size, np.float32)
    if size < side:
        scores = _spread(scores, side // size)
    elif size > side:
        scores = scores[:, :: size // side, :: size // side]
    picked = scores.reshape(-1)[windows.sample_at[i]]
    return picked, windows.sample_bad[i].astype(np.float32), windows.sample_weight[i]


def _spread(values: NDArray[Any], times: int) -> NDArray[Any]:
    return values if times == 1 else values.repeat(times, -1).repeat(times, -2)


def measure(
    windows: Windows,
    checker: str,
    predict: Predictor,
    progress: Callable[[int], None] = lambda done: None,
) -> list[QualityMeter]:
    """A meter for each window; add those of interest up."""
    meters = []
    for i in range(len(windows)):
        meter = QualityMeter()
        meter.add(*labels_for(windows, i, checker, predict(windows.heights[i])))
        meters.append(meter)
        progress(i + 1)
    return meters


def total(meters: list[QualityMeter], chosen: NDArray[np.bool_] | None = None) -> Quality:
    """Quality over all windows, or over the chosen ones."""
    sum_of = QualityMeter()
    for i, meter in enumerate(meters):
        if chosen is None or chosen[i]:
            sum_of += meter
    return sum_of.quality()


def grounds(spec: DataSpec, part: str, windows: Windows) -> Mapping[str, NDArray[np.bool_]]:
    """Which windows are on ground of which kind; kinds overlap."""
    recipes = [recipe_of(spec, part, i) for i in range(len(windows) // spec.windows)]

    def of(test: Callable[[Any], bool]) -> NDArray[np.bool_]:
        return np.repeat([test(r) for r in recipes], spec.windows)

    def slope(low: float, high: float) -> NDArray[np.bool_]:
        return of(lambda r: low <= r.base.slope_deg < high)

    def rocks(low: float, high: float) -> NDArray[np.bool_]:
        return of(lambda r: low <= (r.rocks.cfa if r.rocks else 0.0) < high)

    unknown = (windows.heights == UNKNOWN).any((1, 2))
    return {
        "slope below 8 deg": slope(-1.0, 8.0),
        "slope 8-16 deg": slope(8.0, 16.0),
        "slope 16-25 deg": slope(16.0, 90.0),
        "rocks below 5 %": rocks(-1.0, 0.05),
        "rocks 5-10 %": rocks(0.05, 0.10),
        "rocks 10-20 %": rocks(0.10, 1.0),
        "rough between rocks": of(lambda r: r.relief.rms_1m_m >= 0.06),
        "craters": of(lambda r: r.craters is not None),
        "ripples": of(lambda r: bool(r.ripples)),
        "scarps": of(lambda r: bool(r.scarps)),
        "ditches": of(lambda r: bool(r.ditches)),
        "part unknown": unknown,
        "all known": ~unknown,
    }


def fixed_spec(window_m: float, resolution_m: float) -> DataSpec:
    """A small data set that is made when it is needed.

    What a model scores on it is part of its manifest, so anyone can tell in seconds whether model,
    checker and terrain are still those that it was trained and exported with.
    """
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
    """Quality of a model and of Sobel on a part of a data set, whole and by kind of ground.

    Raises:
        EvaluationError: there is no such part, or the model is of other windows or another checker.
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
    done = itertools.count(1)

    def told(_: int) -> None:
        progress(next(done) / (2.0 * len(windows)), "")

    meters = measure(windows, checker, Network(model), told)
    baseline = total(measure(windows, checker, sobel(spec.resolution_m, BINS), told))
    by_ground = {
        ground: total(meters, chosen).as_dict() | {"windows": int(chosen.sum())}
        for ground, chosen in grounds(spec, part, windows).items()
        if chosen.any()
    }
    return {
        "model": manifest.name,
        "checker": checker,
        "limits": manifest.labels.limits,
        "data": {"digest": spec.digest, "part": part, "windows": len(windows)},
        **total(meters).as_dict(),
        "sobel_auc": round(baseline.auc, 6),
        "by_ground": by_ground,
    }
