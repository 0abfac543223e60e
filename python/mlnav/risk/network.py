"""The learned heuristic: a network that predicts the checker's verdicts, through ONNX Runtime.

Where it fails the planner works as the baseline, and an event says why. Only a model that does not
match its manifest stops a run, before it starts.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlnav.config import Config, Network
from mlnav.core import HeightMap
from mlnav.risk.base import Pose, RiskMap
from mlnav.risk.models import AUTO, Manifest, Model, ModelError, find_model, read_model

SAME_RESOLUTION = 0.01
"""Relative difference up to which a map has the network's resolution."""

F32 = NDArray[np.float32]


def _same(a: HeightMap, b: HeightMap) -> bool:
    """Whether two windows have the same place and heights."""
    apart_m = math.dist(a.origin_m, b.origin_m)
    return (
        a.resolution_m == b.resolution_m
        and apart_m < 1e-3 * a.resolution_m  # the maps' corners are rounded sums
        and np.array_equal(a.z, b.z, equal_nan=True)
    )


def window_of(local_map: HeightMap, pose: Pose, manifest: Manifest) -> HeightMap:
    """The square that the network looks at about a pose, unknown beyond the map.

    Its corner lies a multiple of two output cells from a fixed point, so that the ground keeps its
    phase in the network's cells. Where the map has the network's resolution that is the map's
    corner, and cells are copied. Else it is the world's origin, and heights are interpolated at the
    cells' centres; cells of less than half the network's are averaged in whole blocks first.
    """
    ny, nx = manifest.input.cells
    align = 2 * manifest.ratio
    res = local_map.resolution_m
    if abs(res / manifest.input.resolution_m - 1.0) > SAME_RESOLUTION:
        blocks = max(1, round(manifest.input.resolution_m / res))
        if blocks > 1:
            local_map = _averaged(local_map, blocks)
        res = manifest.input.resolution_m
        x0 = y0 = 0.5 * res
        iy, ix = (_first(pose[i], res, n, align) for i, n in ((1, ny), (0, nx)))
        xs, ys = x0 + res * np.arange(ix, ix + nx), y0 + res * np.arange(iy, iy + ny)
        xy = np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2)
        z = local_map.grid.heights(np.ascontiguousarray(xy)).astype(np.float32).reshape(ny, nx)
        return HeightMap(z, res, (float(xs[0]), float(ys[0])))
    x0, y0 = local_map.origin_m
    iy, ix = (
        _first(pose[i] - start + 0.5 * res, res, n, align)
        for i, start, n in ((1, y0, ny), (0, x0, nx))
    )
    z = np.full((ny, nx), np.nan, np.float32)
    rows, columns = iy + np.arange(ny), ix + np.arange(nx)
    on_y, on_x = (
        (at >= 0) & (at < n) for at, n in zip((rows, columns), local_map.shape, strict=True)
    )
    z[np.ix_(on_y, on_x)] = local_map.z[np.ix_(rows[on_y], columns[on_x])]
    return HeightMap(z, res, (x0 + ix * res, y0 + iy * res))


def _averaged(local_map: HeightMap, blocks: int) -> HeightMap:
    """Means of whole blocks, aligned to the world's origin; unknown where one of the cells is."""
    res, origin = local_map.resolution_m, local_map.origin_m
    first = [-round(at / res) % blocks for at in origin]
    ny, nx = ((n - skip) // blocks for n, skip in zip(local_map.shape, first[::-1], strict=True))
    if min(ny, nx) < 1:
        return local_map
    part = local_map.z[first[1] : first[1] + ny * blocks, first[0] : first[0] + nx * blocks]
    wide = part.reshape(ny, blocks, nx, blocks).astype(np.float64)
    middle = 0.5 * res * (blocks - 1)
    x, y = (at + skip * res + middle for at, skip in zip(origin, first, strict=True))
    mean = wide.mean(axis=(1, 3))
    return HeightMap(mean.astype(np.float32), res * blocks, (x, y))


def network_input(z: F32) -> F32:
    """The network's input (1, 2, ny, nx) of (ny, nx) heights, NaN unknown.

    Channels: height above the mean of the known ones, 0 where unknown; and 1 where known.
    """
    known = np.isfinite(z)
    wide = z.astype(np.float64)
    datum = wide[known].mean() if known.any() else 0.0
    return np.stack([np.where(known, wide - datum, 0.0), known])[np.newaxis].astype(np.float32)


class NetworkRisk:
    """Risk as a network predicts it from the heights around the rover."""

    name = "network"

    def __init__(self, settings: Network, config: Config) -> None:
        """Load the model. Raises ModelError: it cannot be used, or breaks its manifest."""
        checker, limits = config.checker.name, config.limits.name
        self.inferences = 0
        self._events: list[str] = []
        self._kept: tuple[HeightMap, RiskMap] | None = None
        self._session: Any = None
        self._manifest: Manifest | None = None
        folder = find_model(settings.model, checker, limits)
        if folder is None:
            which = f"{settings.model!r} (a shipped name or a folder)"
            which = f"for {checker}, {limits}" if settings.model == AUTO else which
            self._report(f"no model {which}; planning as the baseline does")
            return
        model = read_model(folder)
        labels = model.manifest.labels
        if (labels.checker, labels.limits) != (checker, limits):
            self._report(
                f"model {model.manifest.name} learnt {labels.checker}, {labels.limits},"
                f" not {checker}, {limits}; used as asked"
            )
        self._session = inference_session(model, settings.threads)
        if self._session is not None:
            self._manifest = model.manifest
        else:
            fault = "onnxruntime is not installed (extra 'onnx')"
            self._report(f"{fault}; planning as the baseline does")

    def risk(self, local_map: HeightMap, pose: Pose) -> RiskMap | None:
        """Risk on the network's window about the pose, from before where the window is the same."""
        if self._manifest is None:
            return None
        window = window_of(local_map, pose, self._manifest)
        if self._kept is not None and _same(window, self._kept[0]):
            return self._kept[1]
        try:
            p = self._inferred(window)
        except _NoInference as fault:
            self._report(f"{fault}; planned as the baseline does")
            return None
        res = window.resolution_m
        inner = 0.5 * res * (self._manifest.ratio - 1)  # from an input cell's centre to an output's
        x, y = window.origin_m
        risk = RiskMap(p, res * self._manifest.ratio, (x + inner, y + inner))
        self._kept = window, risk
        return risk

    def max_cells(self, map_cells: int) -> int:
        """Those of the network's output."""
        if self._manifest is None:
            return 0
        ny, nx = self._manifest.output.cells
        return self._manifest.output.bins * ny * nx

    def take_events(self) -> tuple[str, ...]:
        """As the protocol says."""
        events, self._events = tuple(self._events), []
        return events

    def _inferred(self, window: HeightMap) -> F32:
        assert self._manifest is not None
        inputs, output = self._manifest.input, self._manifest.output
        if not np.isfinite(window.z).any():
            raise _NoInference("nothing is known around the rover")
        self.inferences += 1
        try:
            fed = {inputs.name: network_input(window.z)}
            (result,) = self._session.run([output.name], fed)
        except Exception as fault:  # of any type: the rover plans on
            raise _NoInference(f"inference failed ({_short(fault)})") from fault
        shape = (1, output.bins, *output.cells)
        if result.shape != shape:
            raise _NoInference(f"output of shape {result.shape}, not {shape}")
        if not np.isfinite(result).all():
            raise _NoInference("output is not finite")
        p: F32 = result[0]
        return p

    def _report(self, event: str) -> None:
        self._events.append(f"heuristic: {event}")


class _NoInference(Exception):  # noqa: N818 - the run goes on
    """Why there is no risk map in a cycle."""


def _first(position_m: float, resolution_m: float, cells: int, align: int) -> int:
    """First of `cells` cells about a position, a multiple of `align`."""
    first = math.floor(position_m / resolution_m) - cells // 2
    return (first + align // 2) // align * align


def inference_session(model: Model, threads: int) -> Any:
    """An inference session that holds to the manifest; None without onnxruntime.

    Raises ModelError: the file is no network, or one with another input or output.
    """
    try:
        import onnxruntime
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.use_deterministic_compute = True
    options.log_severity_level = 4  # faults come back as exceptions, nothing is printed
    for pool in ("intra", "inter"):
        options.add_session_config_entry(f"session.{pool}_op.allow_spinning", "0")
    on_cpu = {"providers": ["CPUExecutionProvider"]}
    try:
        session = onnxruntime.InferenceSession(model.network, options, **on_cpu)
    except Exception as fault:  # onnxruntime's own exceptions share no base but this
        raise ModelError(f"{model.folder}: not a usable network: {_short(fault)}") from fault
    inputs, output = model.manifest.input, model.manifest.output
    _hold(model, "input", session.get_inputs(), inputs.name, (len(inputs.channels), *inputs.cells))
    _hold(model, "output", session.get_outputs(), output.name, (output.bins, *output.cells))
    return session


def _hold(model: Model, side: str, found: list[Any], name: str, shape: tuple[int, ...]) -> None:
    """Refuse a network whose one input or output is not the manifest's.

    The first dimension, the batch, may be open.
    """
    wanted = f"{name!r} tensor(float) {[1, *shape]}"
    has = ", ".join(f"{a.name!r} {a.type} {a.shape}" for a in found) or "none"
    kinds = [(a.name, a.type, *a.shape[1:]) for a in found]
    batches = [batch for a in found for batch in a.shape[:1] if isinstance(batch, int)]
    if kinds != [(name, "tensor(float)", *shape)] or batches not in ([], [1]):
        raise ModelError(f"{model.folder}: {side} by the manifest: {wanted}; of the network: {has}")


def _short(fault: Exception) -> str:
    return f"{type(fault).__name__}: {' '.join(str(fault).split())[:200]}"
