"""`mlnav learn`: data set, training, export and measurement of the learned heuristic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from mlnav.cli import common, options
from mlnav.cli.common import RefusedError, emit, errors, numbers, output, progress_bar, say, show

app = common.new_app("Train the learned heuristic.")

TerrainsOption = Annotated[int | None, Option(min=1, help="Number of terrains; default: all.")]
DataOption = Annotated[Path, Option("--data", metavar="DIR", help="Data set of `learn data`.")]


def whole_numbers(option: str, text: str, count: int = 0) -> tuple[int, ...]:
    """`16,24,32`; exactly `count` of them, unless that is 0.

    Raises:
        RefusedError: the text is something else.
    """
    wanted = f"{count} whole numbers" if count else "a list of whole numbers"
    found = numbers(option, text, wanted, count)
    if not found or any(n < 1 or n % 1 for n in found):
        raise RefusedError(f"{option}: {text!r} is not {wanted}")
    return tuple(map(int, found))


def _need(extra: str, *modules: str) -> None:
    """Check that the modules of an extra are installed."""
    from importlib.util import find_spec

    missing = [m for m in modules if find_spec(m) is None]
    if missing:
        raise RefusedError(
            f"{', '.join(missing)} not installed: pip install 'mlnav[{extra}]' (extra '{extra}')"
        )


@app.command("data")
def data_command(
    out: Annotated[Path, Option("--out", "-o", metavar="DIR", help="The data set's folder.")],
    terrains: Annotated[
        str, Option(metavar="N,N,N", help="Training, validation, test.")
    ] = "1000,80,80",
    windows: Annotated[int, Option(min=1, help="Windows per terrain.")] = 8,
    samples: Annotated[int, Option(min=2, help="Verdicts of `verified` per window.")] = 3000,
    seed: Annotated[int, Option(min=0, help="Seed of the data set.")] = 1,
    workers: Annotated[int, Option(min=1, help="Processes.")] = 1,
    as_json: options.Json = False,
) -> None:
    """Make a data set: windows of synthetic terrain with ACE verdicts as labels.

    For fixed_box with enav_like limits every cell is labelled at 16 headings, for verified with
    flight_like limits a sample of poses. Training, validation and test use different terrains. The
    same settings give the same bytes; an interrupted run continues.

    **Examples**

    - mlnav learn data --out data --workers 2
    - mlnav learn data --out tiny --terrains 20,5,5 --windows 4
    """
    from mlnav.learn.data import PARTS, DataSpec, make_data

    counts = whole_numbers("--terrains", terrains, len(PARTS))
    terrains_of = dict(zip(PARTS, counts, strict=True))
    spec = DataSpec(seed=seed, terrains=terrains_of, windows=windows, samples=samples)
    with progress_bar("terrains", sum(counts)) as update:
        try:
            manifest = make_data(
                out, spec, workers, lambda done, total: update(done, f"{done} of {total}")
            )
        except KeyboardInterrupt:
            say(f"{out} keeps the terrains that are done; the same command goes on from there")
            raise
    show(manifest, as_json, _print_data)


def _print_data(manifest: dict[str, Any]) -> None:
    for part, counts in manifest["counts"].items():
        output.print(
            f"{part:10} {counts['terrains']:5} terrains {counts['windows']:6} windows,"
            f" {counts['windows_with_unknown']} with unknown ground;"
            + ";".join(
                f" {checker} {counts[checker]['labels'] / 1e6:.1f} M labels,"
                f" {counts[checker]['rejected']:.1%} rejected"
                for checker in ("fixed_box", "verified")
            ),
            soft_wrap=True,
        )


@app.command("train")
def train_command(
    data: DataOption,
    checker: Annotated[str, Option(help="Verdicts to learn: fixed_box, verified.")],
    run: Annotated[
        Path, Option("--out", "-o", metavar="RUN", help="Folder of checkpoint and log.")
    ],
    widths: Annotated[str, Option(metavar="N,...", help="Channels of each level.")] = "16,24,32",
    depth: Annotated[int, Option(min=1, help="Residual blocks per level.")] = 1,
    fold: Annotated[int, Option(min=1, help="Map cells along a trunk cell.")] = 4,
    unfold: Annotated[int, Option(min=1, help="Risk cells along a trunk cell.")] = 2,
    separable: Annotated[bool, Option("--separable", help="Separable convolutions.")] = False,
    epochs: Annotated[int, Option(min=1)] = 20,
    batch: Annotated[int, Option(min=1, help="Windows per step.")] = 16,
    learning_rate: Annotated[float, Option(min=1e-7, max=1.0)] = 4e-3,
    seed: Annotated[int, Option(min=0, help="Seed of weights, order, symmetries.")] = 1,
    threads: Annotated[int, Option(min=1)] = 2,
    terrains: TerrainsOption = None,
    as_json: options.Json = False,
) -> None:
    """Train a network, or continue an interrupted training.

    RUN gets checkpoint.safetensors after every epoch, log.jsonl with one record per epoch, and
    run.json. The same command continues from the last epoch; the result is bit for bit that of an
    uninterrupted training.

    **Examples**

    - mlnav learn train --data data --checker fixed_box --out runs/fixed-box
    - mlnav learn train --data data --checker verified --widths 24,32,48 --epochs 30 --out runs/v24
    """
    _need("train", "torch", "safetensors")
    from mlnav.learn.data import read_part
    from mlnav.learn.network import NetworkSpec
    from mlnav.learn.training import CHECKPOINT, TrainingSpec, claim_run, train

    network = NetworkSpec(whole_numbers("--widths", widths), depth, fold, unfold, separable)
    spec = TrainingSpec(checker, network, epochs, batch, learning_rate, seed=seed)
    claim_run(run, data, terrains)
    training, validation = read_part(data, "train", terrains), read_part(data, "validation")
    last: dict[str, Any] = {}
    with progress_bar("epochs", epochs) as update:

        def show_progress(record: dict[str, Any]) -> None:
            """Update the bar within epochs, print a line after each."""
            nonlocal last
            if "step" in record:
                done = record["epoch"] + record["step"] / record["steps"]
                update(done, f"epoch {record['epoch'] + 1}, loss {record['loss']:.4f}")
                return
            last = record
            update(record["epoch"], "")
            errors.print(
                f"epoch {record['epoch']:3} of {record['epochs']}:"
                f" loss {record['train_loss']:.4f}, validation {record['validation_loss']:.4f},"
                f" AUC {record['validation_auc']:.4f}, ECE {record['calibration_error']:.4f},"
                f" {record['seconds']:.0f} s"
            )

        try:
            train(spec, training, validation, run, progress=show_progress, threads=threads)
        except KeyboardInterrupt:
            say(
                f"{run} holds the last whole epoch; the same command goes on from there"
                if (run / CHECKPOINT).exists()
                else f"{run}: not one epoch was complete; the same command begins again"
            )
            raise
    if as_json:
        emit(last)
    elif not last:
        output.print(f"{run}: all {epochs} epochs were done before", soft_wrap=True)


@app.command("export")
def export_command(
    run: Annotated[Path, Option(metavar="RUN", help="Folder of `learn train`.")],
    data: DataOption,
    name: Annotated[str, Option(help="Name of the model and its folder.")],
    out: Annotated[
        Path, Option("--out", "-o", metavar="DIR", help="Parent of the model's folder.")
    ] = Path("models"),
    as_json: options.Json = False,
    force: options.Force = False,
) -> None:
    """Export a trained network as a model folder: model.onnx, manifest.json, card.md.

    Risk is calibrated on the validation part and evaluated on the test part, with ONNX Runtime. It
    is an error if ONNX Runtime and torch differ in values (1e-5) or in the order of the planner's
    paths.

    **Examples**

    - mlnav learn export --run runs/fixed-box --data data --name ace-fixed-box
    """
    _need("train", "torch", "safetensors", "onnx", "onnxruntime")
    from mlnav.learn.export import export
    from mlnav.risk.models import MANIFEST

    with progress_bar("export", 1.0) as update:
        folder = export(run, data, name, out, force=force, progress=update)
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    show(manifest, as_json, lambda _: output.print(str(folder), soft_wrap=True))


@app.command("evaluate")
def evaluate_command(
    model: Annotated[str, Option(metavar="NAME|DIR", help="A shipped model, or a folder.")],
    data: DataOption,
    part: Annotated[str, Option(help="train, validation or test.")] = "test",
    terrains: TerrainsOption = None,
    figure: Annotated[Path | None, Option(metavar="FILE", help="Reliability curve, PNG.")] = None,
    as_json: options.Json = False,
    force: options.Force = False,
) -> None:
    """Evaluate a model on a data set with ONNX Runtime.

    AUC is the probability that a rejected pose has a higher risk than a passed one; ECE is the mean
    distance between risk and the share rejected, over tenths of risk.

    **Examples**

    - mlnav learn evaluate --model ace-fixed-box --data data
    - mlnav learn evaluate --model models/mine --data data --figure reliability.png --json
    """
    _need("onnx", "onnxruntime")
    from mlnav.learn.evaluation import evaluate_model
    from mlnav.risk.models import find_model, model_names, read_model

    folder = find_model(model, "", "")
    if folder is None:
        known = ", ".join(model_names()) or "none"
        raise RefusedError(f"no model {model!r}: neither a folder nor shipped ({known})")
    if figure is not None and figure.exists() and not force:
        raise RefusedError(f"{figure} is there: --force replaces it")
    with progress_bar("windows", 1.0) as update:
        report = evaluate_model(read_model(folder), data, part, terrains, update)
    if figure is not None:
        from mlnav.viz.learn import reliability_figure
        from mlnav.viz.style import save_figure

        save_figure(reliability_figure(report), figure)
    show(report, as_json, _print_evaluation)


def _print_evaluation(report: dict[str, Any]) -> None:
    output.print(
        f"{report['model']}: {report['checker']}, {report['limits']};"
        f" {report['data']['windows']} windows of {report['data']['part']}"
    )

    def row(ground: str, r: dict[str, Any]) -> list[str]:
        auc = "-" if r["auc"] is None else f"{r['auc']:.4f}"
        ece = f"{r['calibration_error']:.4f}"
        return [ground, f"{r['windows']}", f"{r['rejected']:.1%}", auc, ece]

    rows = [row("all", report | report["data"])]
    rows += [row(ground, r) for ground, r in report["by_ground"].items()]
    common.print_rows(("ground",), ("windows", "rejected", "AUC", "ECE"), rows)
    output.print(f"Sobel's AUC {report['sobel_auc']:.4f}")
    reliability = ((f"{m:.3f}", f"{s:.3f}", f"{n:.1%}") for m, s, n in report["reliability"])
    common.print_rows((), ("risk", "rejected", "of poses"), reliability)
