"""The model card of a manifest: use, inputs and outputs, training, quality and limitations."""

from __future__ import annotations

from typing import Any

_CARD = """\
# {manifest[name]}

Predicts, for every cell and heading of the ground around a rover, the chance that the checker
`{manifest[labels][checker]}` with `{manifest[labels][limits]}` limits rejects the rover there. \
The planner uses it to try likely paths
first. **It is no safety device**: a path is driven only after the checker itself has passed it,
pose by pose, whatever this network says; where it is wrong it costs evaluations and detours.

| | |
|---|---|
| parameters | {manifest[parameters]:,} |
| multiply-accumulates | {macs:.1f} million an inference |
| AUC on the test part | {auc} (Sobel: {metrics[sobel_auc]:.4f}) |
| calibration error (ECE) | {test[calibration_error]:.4f} |

## What it is fed and gives

- Input `{input[name]}` (1, 2, {input[cells][0]}, {input[cells][1]}) float32: \
a window of {width:g} m by {height:g} m in
  cells of {input[resolution_m]:g} m, row-major, x east, y north. \
Channel 0: height above the mean of the
  window's known heights, metres, 0 where unknown. Channel 1: 1 where known, else 0.
- Output `{output[name]}` (1, {output[bins]}, {output[cells][0]}, {output[cells][1]}) float32 \
in [0, 1]: risk in cells of
  {output[resolution_m]:g} m; bin k is heading 2 pi k / {output[bins]}, counter-clockwise from +x.
- ONNX, opset {manifest[opset]}, fixed shapes, no state.

## What it learnt from

{data}

Network: widths {widths}, {network[depth]} residual block(s) a level, \
trunk cells of {network[fold]} map
cells{separable}. {training[epochs_done]} epochs, seed {training[settings][seed]}, \
{minutes:.0f} min.\
 Logits are scaled by {training[calibration][slope]:.3f}
and shifted by {training[calibration][offset]:+.3f}, fitted on the validation part.

## Does risk measure what happens?

The test part, by tenth of predicted risk:

| mean risk | rejected | of poses |
|---|---|---|
{reliability}

ONNX Runtime against torch, {parity[windows]} windows: 99 of 100 risks differ by less than
{parity[value_99_abs]:.1e}, the worst by {parity[value_max_abs]:.1e}; \
in {ranking[cycles]} planning cycles ({ranking[paths]:,} paths priced)
{ranking[swapped]} paths changed places and {ranking[other_cheapest]} cheapest paths became others.

## Where it fails

Test windows by the ground they are on, worst AUC first (kinds overlap):

| ground | windows | rejected | AUC | ECE |
|---|---|---|---|---|
{grounds}

- {missed}
- It orders poses worst on: {worst}. Its risk is furthest from the share rejected on: {furthest}.
- **Unknown ground.** {unknown}
- **Cell size.** It learnt from cells of {input[resolution_m]:g} m alone. \
mlnav averages finer maps and
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
    training, test = manifest["training"], metrics["test"]
    network = training["network"]
    by_ground: dict[str, Any] = metrics["test_by_ground"]
    by_auc, by_error = _worst(by_ground, "auc"), _worst(by_ground, "calibration_error")
    risk, rejected, _ = test["reliability"][0]
    return _CARD.format(
        manifest=manifest,
        input=inputs,
        output=outputs,
        test=test,
        metrics=metrics,
        parity=metrics["parity"],
        ranking=metrics["parity"]["ranking"],
        training=training,
        network=network,
        macs=manifest["macs"] / 1e6,
        auc=_auc(test),
        width=inputs["cells"][1] * inputs["resolution_m"],
        height=inputs["cells"][0] * inputs["resolution_m"],
        data=_data(training, manifest["labels"]["checker"]),
        widths=", ".join(map(str, network["widths"])),
        separable=", separable convolutions" if network["separable"] else "",
        minutes=training["seconds"] / 60.0,
        reliability="\n".join(
            f"| {m:.3f} | {s:.3f} | {c:.1%} |" for m, s, c in test["reliability"]
        ),
        grounds="\n".join(
            f"| {k} | {q['windows']} | {q['rejected']:.1%} | {_auc(q)} |"
            f" {q['calibration_error']:.4f} |"
            for k, q in by_auc
        ),
        missed=(
            f"Of the poses whose risk it puts below 0.1, {rejected:.1%} are rejected all the same."
            if risk < 0.1
            else "It gives no pose a risk below 0.1."
        ),
        worst=", ".join(name for name, _ in by_auc[:3]),
        furthest=", ".join(name for name, _ in by_error[:3]),
        unknown=_unknown(by_ground, metrics["test_unknown_share_max"]),
    )


def _auc(quality: dict[str, Any]) -> str:
    return "-" if quality["auc"] is None else f"{quality['auc']:.4f}"


def _worst(by_ground: dict[str, Any], by: str) -> list[tuple[str, Any]]:
    """Kinds of terrain from worst to best by AUC or calibration error, those without one last."""
    sign = 1.0 if by == "auc" else -1.0
    return sorted(
        by_ground.items(), key=lambda item: 2.0 if item[1][by] is None else sign * item[1][by]
    )


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
