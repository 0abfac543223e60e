"""The network: predicts ACE verdicts for every cell and heading of a window in one pass.

Heights are folded into the channels of a coarser trunk, relative to a local mean whose slope is a
further input. A small U-Net follows; its last layer unfolds risk cells from each trunk cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

DATUM_CELLS = 7
"""Trunk cells along the edge of the local mean (2.8 m at 0.4 m: a rover)."""
FINE_SCALE, STEP_SCALE, SLOPE_SCALE = 10.0, 4.0, 2.0
"""Scale the inputs of the trunk to about one."""
TINY = 1e-6
"""Keeps means without known cells finite."""


@dataclass(frozen=True)
class NetworkSpec:
    """Shape of a network.

    Attributes:
        widths: channels of the U's levels, from the trunk's resolution down; each halves it.
        depth: residual blocks on each level, going down and going up.
        fold: map cells along a trunk cell.
        unfold: risk cells along a trunk cell.
        separable: depthwise and pointwise convolutions for full ones.
        bins: heading bins.
    """

    widths: tuple[int, ...] = (16, 24, 32)
    depth: int = 1
    fold: int = 4
    unfold: int = 2
    separable: bool = False
    bins: int = 16


def _conv(width: int, to: int, separable: bool, stride: int = 1) -> nn.Sequential:
    if separable:
        return nn.Sequential(
            nn.Conv2d(width, width, 3, stride, 1, groups=width, bias=False),
            nn.Conv2d(width, to, 1, bias=False),
            nn.BatchNorm2d(to),
        )
    return nn.Sequential(nn.Conv2d(width, to, 3, stride, 1, bias=False), nn.BatchNorm2d(to))


class _Block(nn.Module):
    def __init__(self, width: int, separable: bool) -> None:
        super().__init__()
        self.first = _conv(width, width, separable)
        self.second = _conv(width, width, separable)

    def forward(self, x: Tensor) -> Tensor:
        inner = functional.relu(self.first(x))
        return functional.relu(x + self.second(inner))


def _blocks(width: int, spec: NetworkSpec) -> nn.Sequential:
    return nn.Sequential(*(_Block(width, spec.separable) for _ in range(spec.depth)))


class AceNet(nn.Module):
    """(n, 2, ny, nx) height [m] and known -> (n, bins, ny', nx') logits of rejection.

    Heights are relative to any datum and 0 where unknown; ny and nx are multiples of `multiple`.
    """

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__()
        self.spec = spec
        widths = spec.widths
        self.stem = _conv(spec.fold**2 + 4, widths[0], separable=False)
        self.down = nn.ModuleList(_blocks(w, spec) for w in widths)
        self.shrink = nn.ModuleList(_conv(a, b, spec.separable, 2) for a, b in pairwise(widths))
        self.widen = nn.ModuleList(nn.Conv2d(b, a, 1) for a, b in pairwise(widths))
        self.up = nn.ModuleList(_blocks(w, spec) for w in widths[:-1])
        self.head = nn.Conv2d(widths[0], spec.bins * spec.unfold**2, 1)

    @property
    def multiple(self) -> int:
        """Map cells that a window's edge must be a multiple of."""
        return self.spec.fold << (len(self.spec.widths) - 1)

    def features(self, ground: Tensor) -> Tensor:
        """(n, 2, ny, nx) -> (n, fold^2 + 4, ny / fold, nx / fold): inputs of the trunk."""
        fold = self.spec.fold
        known = functional.pixel_unshuffle(ground[:, 1:2], fold)
        height = functional.pixel_unshuffle(ground[:, 0:1], fold) * known
        share = known.mean(1, keepdim=True)
        total = height.mean(1, keepdim=True)
        mean = total / (share + TINY)
        half = DATUM_CELLS // 2
        share_around = functional.avg_pool2d(share, DATUM_CELLS, 1, half)
        datum = functional.avg_pool2d(total, DATUM_CELLS, 1, half) / (share_around + TINY)
        # Slopes of the datum by central differences, one-sided at the edges.
        east = torch.cat([datum[..., :, 1:], datum[..., :, -1:]], -1)
        west = torch.cat([datum[..., :, :1], datum[..., :, :-1]], -1)
        north = torch.cat([datum[..., 1:, :], datum[..., -1:, :]], -2)
        south = torch.cat([datum[..., :1, :], datum[..., :-1, :]], -2)
        seen = (share > 0.0).to(share.dtype)
        return torch.cat(
            [
                (height - mean) * known * FINE_SCALE,
                (mean - datum) * seen * STEP_SCALE,
                (east - west) * SLOPE_SCALE,
                (north - south) * SLOPE_SCALE,
                share,
            ],
            1,
        )

    def forward(self, ground: Tensor) -> Tensor:
        """Logits; `mlnav.learn.graph` writes the same for ONNX."""
        x = functional.relu(self.stem(self.features(ground)))
        levels = []
        for i, block in enumerate(self.down):
            x = block(x)
            if i < len(self.shrink):
                levels.append(x)
                x = functional.relu(self.shrink[i](x))
        for i in reversed(range(len(levels))):
            x = functional.interpolate(self.widen[i](x), scale_factor=2.0, mode="nearest")
            x = self.up[i](functional.relu(x + levels[i]))
        return functional.pixel_shuffle(self.head(x), self.spec.unfold)


def count_parameters(model: nn.Module) -> int:
    """Number of trained values, including those of batch norm."""
    return sum(p.numel() for p in model.parameters())


def count_macs(model: AceNet, cells: int) -> int:
    """Multiply-accumulates of the convolutions for one window of `cells` map cells a side."""
    training = model.training
    model.eval()
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(torch.zeros(1, 2, cells, cells))
    model.train(training)
    return int(counter.get_total_flops()) // 2
