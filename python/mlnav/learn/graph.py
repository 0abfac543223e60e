"""The ONNX graph of a network, written node by node: the same bytes wherever it is exported.

Batch norm is folded into the convolutions, the scales of the inputs into the stem, the calibration
of risk into the head. Export compares the graph with `AceNet`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from torch import Tensor, nn

from mlnav.learn.network import (
    DATUM_CELLS,
    FINE_SCALE,
    SLOPE_SCALE,
    STEP_SCALE,
    TINY,
    AceNet,
    NetworkSpec,
)

OPSET, IR_VERSION = 17, 8
INPUT, OUTPUT = "ground", "risk"

F64 = NDArray[np.float64]


class GraphError(ValueError):
    """The network does not fit windows of this size."""


class _Graph:
    """Nodes and constants in order; a value has the name of its node."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, NDArray[Any]] = {}

    def op(self, kind: str, name: str, *inputs: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [name], name, **attributes))
        return name

    def constant(self, name: str, value: Any, dtype: type = np.float32) -> str:
        self.constants[name] = np.asarray(value, dtype)
        return name

    def relu(self, name: str, x: str) -> str:
        return self.op("Relu", f"{name}.relu", x)

    def cut(self, name: str, x: str, axis: int, begin: int, end: int) -> str:
        """Elements [begin, end) along an axis."""
        ends = {"begin": begin, "end": end, "axis": axis}.items()
        return self.op("Slice", name, x, *(self.constant(f"{name}.{k}", [v], int) for k, v in ends))

    def conv(self, name: str, x: str, weight: F64, bias: F64 | None, conv: nn.Conv2d) -> str:
        inputs = [x, self.constant(f"{name}.weight", weight)]
        if bias is not None:
            inputs.append(self.constant(f"{name}.bias", bias))
        (stride, _), (pad, _) = conv.stride, conv.padding
        shape = {"kernel_shape": list(conv.kernel_size), "strides": [stride] * 2}
        return self.op("Conv", name, *inputs, **shape, pads=[int(pad)] * 4, group=conv.groups)


def make_graph(model: AceNet, cells: int, slope: float = 1.0, bias: float = 0.0) -> onnx.ModelProto:
    """The graph of sigmoid(slope x logits + bias) for one window of `cells` map cells a side.

    Input (1, 2, cells, cells) float32: height [m] and known; output (1, bins, cells / fold x
    unfold, ...) float32. Raises GraphError: `cells` is not a multiple of `AceNet.multiple`.
    """
    spec = model.spec
    if cells % model.multiple:
        raise GraphError(f"a window of {cells} cells is no multiple of {model.multiple}")
    graph = _Graph()
    x = _trunk(graph, model, _features(graph, spec, cells // spec.fold))
    weight, offset = _numbers(model.head.weight), _numbers(model.head.bias)
    x = graph.conv("head", x, slope * weight, slope * offset + bias, model.head)
    if spec.unfold > 1:
        x = _unfolded(graph, x, spec, cells // spec.fold)
    graph.op("Sigmoid", OUTPUT, x)
    side = cells // spec.fold * spec.unfold
    shapes = {INPUT: [1, 2, cells, cells], OUTPUT: [1, spec.bins, side, side]}
    ends = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in shapes.items()
    ]
    constants = [numpy_helper.from_array(v, k) for k, v in graph.constants.items()]
    proto = helper.make_model(
        helper.make_graph(graph.nodes, "mlnav", ends[:1], ends[1:], constants),
        producer_name="mlnav",
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET)],
    )
    onnx.checker.check_model(proto, full_check=True)
    return proto


def _unfolded(graph: _Graph, x: str, spec: NetworkSpec, side: int) -> str:
    """DepthToSpace (CRD) by concatenation, which takes a third of the time in ONNX Runtime."""
    r, bins = spec.unfold, spec.bins
    parts_shape = graph.constant("parts.shape", [bins, r * r, side, side, 1], np.int64)
    x = graph.op("Reshape", "parts", x, parts_shape)
    rows = []
    row_shape = graph.constant("row.shape", [bins, side, 1, side * r], np.int64)
    for dy in range(r):
        cells = range(r * dy, r * dy + r)
        parts = [graph.cut(f"part.{i}", x, 1, i, i + 1) for i in cells]
        row = graph.op("Concat", f"row.{dy}", *parts, axis=4)
        rows.append(graph.op("Reshape", f"row.{dy}.flat", row, row_shape))
    stacked = graph.op("Concat", "rows", *rows, axis=2)
    shape = graph.constant("unfolded.shape", [1, bins, side * r, side * r], np.int64)
    return graph.op("Reshape", "unfolded", stacked, shape)


def _features(graph: _Graph, spec: NetworkSpec, side: int) -> str:
    """`AceNet.features` without the scales, which are folded into the stem."""
    op, cut = graph.op, graph.cut
    folded = []
    for channel, name in enumerate(("height", "known")):
        x = cut(f"{name}.cells", INPUT, 1, channel, channel + 1)
        folded.append(op("SpaceToDepth", name, x, blocksize=spec.fold))
    height, known = folded
    share = op("ReduceMean", "share", known, axes=[1], keepdims=1)
    masked = op("Mul", "height.known", height, known)
    total = op("ReduceMean", "total", masked, axes=[1], keepdims=1)
    tiny = graph.constant("tiny", TINY)
    mean = op("Div", "mean", total, op("Add", "share.positive", share, tiny))
    window = {"kernel_shape": [DATUM_CELLS] * 2, "pads": [DATUM_CELLS // 2] * 4}
    pooling = window | {"strides": [1, 1], "count_include_pad": 1}
    share_around = op("AveragePool", "share.around", share, **pooling)
    total_around = op("AveragePool", "total.around", total, **pooling)
    seen_around = op("Add", "share.around.positive", share_around, tiny)
    datum = op("Div", "datum", total_around, seen_around)
    slopes = []
    for name, axis in (("east", 3), ("north", 2)):
        first, last = (cut(f"{name}.{i}", datum, axis, i, i + 1) for i in (0, side - 1))
        ahead, behind = (cut(f"{name}.from{i}", datum, axis, i, side - 1 + i) for i in (1, 0))
        after = op("Concat", f"{name}.after", ahead, last, axis=axis)
        before = op("Concat", f"{name}.before", first, behind, axis=axis)
        slopes.append(op("Sub", name, after, before))
    fine = op("Mul", "fine", op("Sub", "height.above", masked, mean), known)
    # 1 where any cell is known: shares are multiples of 1 / fold^2.
    cells = graph.constant("fold.squared", float(spec.fold**2))
    known_cells = op("Mul", "share.cells", share, cells)
    zero, one = graph.constant("zero", 0.0), graph.constant("one", 1.0)
    seen = op("Clip", "seen", known_cells, zero, one)
    step = op("Mul", "step", op("Sub", "mean.above", mean, datum), seen)
    return op("Concat", "features", fine, step, *slopes, share, axis=1)


def _trunk(graph: _Graph, model: AceNet, x: str) -> str:
    """`AceNet.forward` from its features to the input of the head."""
    fold = model.spec.fold
    scales = np.array([FINE_SCALE] * fold**2 + [STEP_SCALE, SLOPE_SCALE, SLOPE_SCALE, 1.0])
    x = graph.relu("stem", _layers(graph, "stem", x, model.stem, scales))
    levels = []
    for i, blocks in enumerate(model.down):
        x = _blocks(graph, f"down{i}", x, blocks)
        if i < len(model.shrink):
            levels.append(x)
            x = graph.relu(f"shrink{i}", _layers(graph, f"shrink{i}", x, model.shrink[i]))
    nearest = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    for i in reversed(range(len(levels))):
        x = _layers(graph, f"widen{i}", x, nn.Sequential(model.widen[i]))
        scale = graph.constant(f"widen{i}.scales", [1.0, 1.0, 2.0, 2.0])
        x = graph.op("Resize", f"widen{i}.twice", x, "", scale, mode="nearest", **nearest)
        x = graph.relu(f"up{i}", graph.op("Add", f"up{i}.joined", x, levels[i]))
        x = _blocks(graph, f"up{i}", x, model.up[i])
    return x


def _blocks(graph: _Graph, name: str, x: str, blocks: nn.Sequential) -> str:
    for i, block in enumerate(blocks):
        inner = graph.relu(f"{name}.{i}.first", _layers(graph, f"{name}.{i}.first", x, block.first))
        inner = _layers(graph, f"{name}.{i}.second", inner, block.second)
        x = graph.relu(f"{name}.{i}", graph.op("Add", f"{name}.{i}.sum", x, inner))
    return x


def _layers(
    graph: _Graph, name: str, x: str, layers: nn.Sequential, scales: F64 | None = None
) -> str:
    """Convolutions with their batch norms folded in; `scales` apply to the inputs of the first."""
    folded: list[tuple[nn.Conv2d, F64, F64 | None]] = []
    for layer in layers:
        if isinstance(layer, nn.BatchNorm2d):
            conv, weight, bias = folded.pop()
            folded.append((conv, *with_batch_norm(weight, bias, layer)))
        else:
            bias = None if layer.bias is None else _numbers(layer.bias)
            folded.append((layer, _numbers(layer.weight), bias))
    if scales is not None:
        conv, weight, bias = folded[0]
        folded[0] = conv, weight * scales[None, :, None, None], bias
    for i, (conv, weight, bias) in enumerate(folded):
        x = graph.conv(name if len(folded) == 1 else f"{name}.{i}", x, weight, bias, conv)
    return x


def with_batch_norm(weight: F64, bias: F64 | None, norm: nn.BatchNorm2d) -> tuple[F64, F64]:
    """Weight and bias of a convolution with `norm`, in evaluation mode, folded in."""
    gain = _numbers(norm.weight) / np.sqrt(_numbers(norm.running_var) + norm.eps)
    shift = (0.0 if bias is None else bias) - _numbers(norm.running_mean)
    return weight * gain[:, None, None, None], _numbers(norm.bias) + shift * gain


def _numbers(tensor: Tensor) -> F64:
    return np.asarray(tensor.detach().to("cpu").double().contiguous().numpy())
