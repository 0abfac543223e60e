"""A model's predictions against the checker's verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from mlnav.viz import style


def reliability_figure(report: Mapping[str, Any]) -> Figure:
    """Share of poses rejected and share of poses, by predicted risk.

    `report` is the result of `mlnav.learn.evaluation.evaluate_model`.
    """
    rows = np.array(report["reliability"], np.float64).reshape(-1, 3)
    figure = style.new_figure(5.2, 6.0)
    auc = "-" if report["auc"] is None else f"{report['auc']:.4f}"
    data = report["data"]
    lines = [
        f"{report['checker']}, {report['limits']}; {data['windows']} windows of the"
        f" {data['part']} part",
        f"AUC {auc} (Sobel {report['sobel_auc']:.4f}), ECE {report['calibration_error']:.4f}",
    ]
    style.headline(figure, str(report["model"]), lines, 0.11)
    axes = figure.add_axes((0.11, 0.32, 0.84, 0.50))
    style.plain_axes(axes)
    axes.plot([0, 1], [0, 1], color=style.SOFT_INK, linewidth=0.8, linestyle=style.DASHES)
    axes.plot(rows[:, 0], rows[:, 1], color=style.BAD, linewidth=1.4, marker="o", markersize=4)
    axes.set(xlim=(0, 1), ylim=(0, 1), xticklabels=[])
    style.panel_title(axes, "Share rejected", "by mean risk, in tenths; on the line is calibrated")
    bars = figure.add_axes((0.11, 0.08, 0.84, 0.17))
    style.plain_axes(bars)
    tenth = np.minimum((rows[:, 0] * 10).astype(int), 9)
    bars.bar((tenth + 0.5) / 10, rows[:, 2], width=0.09, color=style.SOFT_INK)
    bars.set(xlim=(0, 1), xlabel="predicted risk")
    style.panel_title(bars, "Share of poses")
    return figure
