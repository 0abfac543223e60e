"""Export of a trained network to a model folder that `mlnav.risk` loads.

Risk is calibrated on the validation part, and evaluated with ONNX Runtime on the test part.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mlnav.io import whole_file, write_text
from mlnav.learn.card import card
from mlnav.learn.data import (
    BINS,
    PAIRS,
    UNKNOWN,
    DataSpec,
    Windows,
    heights_m,
    network_input,
    read_manifest,
    read_part,
    read_spec,
)
from mlnav.learn.evaluation import (
    Network,
    by_ground,
    fixed_spec,
    fixed_windows,
    grounds,
    measure,
    sobel,
    total,
)
from mlnav.learn.graph import INPUT, OPSET, OUTPUT, make_graph
from mlnav.learn.network import AceNet, count_macs, count_parameters
from mlnav.learn.parity import RankingCheck
from mlnav.learn.training import LOG, Batches, TrainingSpec, evaluate, load_trained, read_run
from mlnav.risk.models import MANIFEST, NETWORK, Manifest, Model

VALUES_SAME = 1e-5
"""Largest difference between torch and ONNX Runtime for 99 % of the risks."""
VALUES_MAX = 1e-4
"""For all risks. Where risk changes within millimetres of height, float32 is no more precise: torch
itself differs by 2e-5 from torch in float64."""
PARITY_WINDOWS = 48
SIZE_MAX = 5_000_000

Progress = Callable[[float, str], None]
"""Share done, and the next step."""


class ExportError(ValueError):
    """The model is not exported; the message says why."""


@dataclass(frozen=True)
class Calibrated:
    """A network with the slope and offset that calibrate its logits."""

    model: AceNet
    slope: float
    offset: float

    def risk(self, heights: NDArray[np.int16]) -> NDArray[np.float32]:
        """(cells, cells) stored heights -> (bins, side, side), by torch."""
        ground = torch.from_numpy(network_input(heights[np.newaxis]))
        with torch.no_grad():
            p = torch.sigmoid(self.slope * self.model(ground) + self.offset)
        risk: NDArray[np.float32] = p[0].numpy()
        return risk


def export(
    run: Path,
    data: Path,
    name: str,
    out: Path,
    *,
    force: bool = False,
    progress: Progress = lambda done, what: None,
) -> Path:
    """Export the training in `run` to `out`/`name`; returns that folder.

    Raises:
        ExportError: the folder exists and `force` is not set, the name is not valid, or the graph
            differs from the trained network.
        TrainingError: nothing was trained in `run`.
        DataError: the data set is incomplete or damaged.
    """
    folder = out / name
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", name):
        raise ExportError(f"name {name!r}: lower case letters, digits, '.', '_' and '-' only")
    if folder.exists() and not force:
        raise ExportError(f"{folder} is there: --force replaces it")
    spec, model, epoch = load_trained(run)
    data_spec = read_spec(data)
    trained_on = read_run(run)
    if trained_on is not None and trained_on["digest"] != data_spec.digest:
        raise ExportError(f"{run} was trained on other data than {data}")
    if data_spec.cells % model.multiple or spec.network.bins != BINS:
        raise ExportError(f"{run}: the network does not fit windows of {data_spec.cells} cells")
    progress(0.0, "calibration")
    # One thread: deterministic, and no slower for small windows.
    torch.set_num_threads(1)
    validation = read_part(data, "validation")
    calibrated = Calibrated(
        model, *evaluate(model, Batches(validation, spec.checker)).calibration()
    )
    graph = make_graph(model, data_spec.cells, calibrated.slope, calibrated.offset)
    network = graph.SerializeToString(deterministic=True)
    if len(network) > SIZE_MAX:
        raise ExportError(f"model.onnx would have {len(network)} bytes, at most {SIZE_MAX} ship")
    manifest = _manifest(name, network, spec, calibrated, data_spec)
    manifest["training"] = _training(run, data, spec, calibrated, epoch)
    test = read_part(data, "test")
    shipped = Network(Model(str(folder), Manifest.model_validate(manifest), network))
    progress(0.3, "parity")
    parity = compare(calibrated, shipped, test, spec.checker, data_spec)
    progress(0.4, "quality")
    metrics = _metrics(shipped, spec.checker, data_spec, validation, test)
    manifest["metrics"] = metrics | {"parity": parity}
    _write(folder, network, manifest)
    return folder


def compare(
    calibrated: Calibrated, shipped: Network, windows: Windows, checker: str, spec: DataSpec
) -> dict[str, Any]:
    """Differences of torch and ONNX Runtime in values and rankings of paths, for the manifest.

    Raises ExportError: they differ.
    """
    chosen = np.unique(np.linspace(0, len(windows) - 1, PARITY_WINDOWS).astype(int))
    pairs = [(calibrated.risk(h), shipped.risk(h)) for h in windows.heights[chosen]]
    size = pairs[0][0].size
    check = RankingCheck(checker, PAIRS[checker], spec.cells, spec.resolution_m, size)
    for heights, (one, other) in zip(windows.heights[chosen], pairs, strict=True):
        check.compare(heights_m(heights), one, other)
    differences = [np.abs(one - other) for one, other in pairs]
    most, largest = (float(np.quantile(differences, q)) for q in (0.99, 1.0))
    if not (most <= VALUES_SAME and largest <= VALUES_MAX):
        raise ExportError(
            f"torch and ONNX Runtime differ by {most:.2g} (99 %), {largest:.2g} (all); allowed"
            f" are {VALUES_SAME:g} and {VALUES_MAX:g}"
        )
    ranking = check.ranking
    if not ranking.same:
        raise ExportError(f"torch and ONNX Runtime rank paths differently: {ranking}")
    return {
        "windows": len(chosen),
        "value_99_abs": most,
        "value_max_abs": largest,
        "ranking": asdict(ranking),
    }


def _manifest(
    name: str, network: bytes, spec: TrainingSpec, calibrated: Calibrated, data: DataSpec
) -> dict[str, Any]:
    cells, model = data.cells, calibrated.model
    side = cells // spec.network.fold * spec.network.unfold
    return {
        "schema": 1,
        "name": name,
        "sha256": hashlib.sha256(network).hexdigest(),
        "opset": OPSET,
        "input": {
            "name": INPUT,
            "channels": ["height_m", "known"],
            "resolution_m": data.resolution_m,
            "cells": [cells, cells],
            "datum": "mean of the window's known heights",
        },
        "output": {
            "name": OUTPUT,
            "bins": spec.network.bins,
            "resolution_m": round(data.resolution_m * cells / side, 9),
            "cells": [side, side],
        },
        "labels": {"checker": spec.checker, "limits": PAIRS[spec.checker]},
        "parameters": count_parameters(model),
        "macs": count_macs(model, cells),
        "training": {},
        "metrics": {},
    }


def _metrics(
    shipped: Network, checker: str, spec: DataSpec, validation: Windows, test: Windows
) -> dict[str, Any]:
    meters = measure(test, checker, shipped)
    kinds = by_ground(meters, grounds(spec, "test", test))
    for quality in kinds.values():
        del quality["reliability"]
    unknown = (test.heights == UNKNOWN).mean((1, 2))
    fixed = fixed_spec(spec.window_m, spec.resolution_m)
    return {
        "validation": total(measure(validation, checker, shipped)).as_dict(),
        "test": total(meters).as_dict(),
        "test_by_ground": kinds,
        "test_unknown_share_max": round(float(unknown.max()), 4),
        "sobel_auc": round(total(measure(test, checker, sobel(spec.resolution_m, BINS))).auc, 6),
        "fixed": total(measure(fixed_windows(fixed), checker, shipped)).as_dict()
        | {"digest": fixed.digest},
    }


def _training(
    run: Path, data: Path, spec: TrainingSpec, calibrated: Calibrated, epoch: int
) -> dict[str, Any]:
    log = [json.loads(line) for line in (run / LOG).read_text(encoding="utf-8").splitlines()]
    found = read_manifest(data)
    settings = asdict(spec)
    return {
        "network": settings.pop("network"),
        "settings": settings,
        "epochs_done": epoch,
        "seconds": round(sum(r["seconds"] for r in log), 1),
        "last": log[-1] if log else None,
        "calibration": {k: round(getattr(calibrated, k), 6) for k in ("slope", "offset")},
        "data": {k: found.get(k) for k in ("digest", "spec", "counts")},
        "used": read_run(run),
    }


def _write(folder: Path, network: bytes, manifest: dict[str, Any]) -> None:
    """Write the three files under a temporary name; rename the folder when complete."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir()
        with whole_file(temporary / NETWORK) as file:
            file.write_bytes(network)
        write_text(temporary / MANIFEST, json.dumps(manifest, indent=2) + "\n")
        write_text(temporary / "card.md", card(manifest))
        if folder.exists():
            shutil.rmtree(folder)
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
