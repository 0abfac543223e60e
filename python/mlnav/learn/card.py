"""The model card: what a person should know of a model before using it, from its manifest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_CARD = """\
# {name}

Predicts, for every cell and heading of the ground around a rover, the chance that the checker
`{checker}` with `{limits}` limits rejects the rover there. The planner uses it to try likely paths
first. **It is no safety device**: a path is driven only after the checker itself has passed it,
pose by pose, whatever this network says; where it is wrong it costs evaluations and detours.

| | |
|---|---|
| parameters | {parameters:,} |
| multiply-accumulates | {macs:.1f} million an inference |
| AUC on the test part | {auc} (Sobel: {sobel_auc}) |
| calibration error (ECE) | {ece:.4f} |

## What it is fed and gives

- Input `{input_name}` (1, 2, {ny}, {nx}) float32: a window of {width:g} m by {height:g} m in
  cells of {resolution:g} m, row-major, x east, y north. Channel 0: height above the mean of the
  window's known heights, metres, 0 where unknown. Channel 1: 1 where known, else 0.
- Output `{output_name}` (1, {bins}, {out_ny}, {out_nx}) float32 in [0, 1]: risk in cells of
  {out_resolution:g} m; bin k is heading 2 pi k / {bins}, counter-clockwise from +x.
- ONNX, opset {opset}, fixed shapes, no state.

## What it learnt from

{data}

Network: widths {widths}, {depth} residual block(s) a level, trunk cells of {fold} map
cells{separable}. {epochs} epochs, seed {seed}, {minutes:.0f} min. Logits are scaled by {slope:.3f}
and shifted by {offset:+.3f}, fitted on the validation part.

## Does risk measure what happens?

The test part, by tenth of predicted risk:

| mean risk | rejected | of poses |
|---|---|---|
{reliability}

ONNX Runtime against torch, {parity_windows} windows: 99 of 100 risks differ by less than
{value_99:.1e}, the worst by {value_max:.1e}; in {cycles} planning cycles ({paths:,} paths priced)
{swapped} paths changed places and {other} cheapest paths became others.

## Where it fails

Test windows by the ground they are on, worst AUC first (kinds overlap):

| ground | windows | rejected | AUC | ECE |
|---|---|---|---|---|
{grounds}

- {missed}
- It orders poses worst on: {worst}. Its risk is furthest from the share rejected on: {furthest}.
- **Unknown ground.** {unknown}
- **Cell size.** It learnt from cells of {resolution:g} m alone. mlnav averages finer maps and
  interpolates all others to that; what this does to its risk is not part of these numbers.
- **Other ground.** Slopes above 25 degrees, rock covers above 20 %, walls and man-made objects,
  and a sensor's noise are not in its training data. Nor are other rovers, limits or checkers: for
  those its risk means nothing.
- **Edges.** It sees nothing outside its window, while poses in the outermost metre stand on ground
  there; these means are over whole windows.
"""


def card(manifest: dict[str, Any]) -> str:
    """card.md of a manifest."""
    inputs, outputs, metrics = manifest["input"], manifest["output"], manifest["metrics"]
    training, test, parity = manifest["training"], metrics["test"], metrics["parity"]
    network = training["network"]
    by_ground: dict[str, Any] = metrics["test_by_ground"]
    first = test["reliability"][0]
    return _CARD.format(
        name=manifest["name"],
        **manifest["labels"],
        parameters=manifest["parameters"],
        macs=manifest["macs"] / 1e6,
        auc=_auc(test),
        sobel_auc=f"{metrics['sobel_auc']:.4f}",
        ece=test["calibration_error"],
        input_name=inputs["name"],
        ny=inputs["cells"][0],
        nx=inputs["cells"][1],
        width=inputs["cells"][1] * inputs["resolution_m"],
        height=inputs["cells"][0] * inputs["resolution_m"],
        resolution=inputs["resolution_m"],
        output_name=outputs["name"],
        bins=outputs["bins"],
        out_ny=outputs["cells"][0],
        out_nx=outputs["cells"][1],
        out_resolution=outputs["resolution_m"],
        opset=manifest["opset"],
        data=_data(training, manifest["labels"]["checker"]),
        widths=", ".join(map(str, network["widths"])),
        depth=network["depth"],
        fold=network["fold"],
        separable=", separable convolutions" if network["separable"] else "",
        epochs=training["epochs_done"],
        seed=training["settings"]["seed"],
        minutes=training["seconds"] / 60.0,
        **training["calibration"],
        reliability="\n".join(
            f"| {m:.3f} | {s:.3f} | {c:.1%} |" for m, s, c in test["reliability"]
        ),
        parity_windows=parity["windows"],
        value_99=parity["value_99_abs"],
        value_max=parity["value_max_abs"],
        cycles=parity["ranking"]["cycles"],
        paths=parity["ranking"]["paths"],
        swapped=parity["ranking"]["swapped"],
        other=parity["ranking"]["other_cheapest"],
        grounds="\n".join(
            f"| {k} | {q['windows']} | {q['rejected']:.1%} | {_auc(q)} |"
            f" {q['calibration_error']:.4f} |"
            for k, q in _worst(by_ground, "auc")
        ),
        missed=(
            f"Of the poses whose risk it puts below 0.1, {first[1]:.1%} are rejected all the same."
            if first[0] < 0.1
            else "It gives no pose a risk below 0.1."
        ),
        worst=_named(_worst(by_ground, "auc")),
        furthest=_named(_worst(by_ground, "calibration_error")),
        unknown=_unknown(by_ground, metrics["test_unknown_share_max"]),
    )


def _auc(quality: dict[str, Any]) -> str:
    return "-" if quality["auc"] is None else f"{quality['auc']:.4f}"


def _worst(by_ground: dict[str, Any], by: str) -> list[tuple[str, Any]]:
    sign = 1.0 if by == "auc" else -1.0
    return sorted(
        by_ground.items(), key=lambda item: 2.0 if item[1][by] is None else sign * item[1][by]
    )


def _named(grounds: Iterable[tuple[str, Any]]) -> str:
    return ", ".join(name for name, _ in list(grounds)[:3])


def _data(training: dict[str, Any], checker: str) -> str:
    spec, counts = training["data"]["spec"], training["data"]["counts"]
    used = training["used"] or {"terrains": spec["terrains"]["train"]}
    text = (
        f"{used['terrains']:,} synthetic terrains, {spec['windows']} windows of each"
        f" (`mlnav learn data`, seed {spec['seed']}, digest `{training['data']['digest']}`): slopes"
        " of 0-25 degrees, rock covers of 0-20 %, craters, ripples, scarps and ditches; turned and"
        " mirrored. Real terrain was never used."
    )
    if counts:
        made = counts["train"][checker]
        text += (
            f" The whole training part has {made['labels'] / 1e6:.1f} million labels,"
            f" {made['rejected']:.0%} of poses rejected."
        )
    return text + " Validation and test have terrains of their own."


def _unknown(by_ground: dict[str, Any], share_max: float) -> str:
    text = f"No test window had more than {share_max:.0%} of its cells unknown"
    if "part unknown" in by_ground and "all known" in by_ground:
        text += (
            f"; AUC is {_auc(by_ground['part unknown'])} where some are and"
            f" {_auc(by_ground['all known'])} where none is"
        )
    return text + ". Beyond that, as at the edge of a map, it is untested."
