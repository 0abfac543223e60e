"""Models on disk: folders of model.onnx, manifest.json and card.md. Needs no onnxruntime."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from mlnav.config import Config, Network
from mlnav.io import shipped_folder, validation_faults

MANIFEST, NETWORK = "manifest.json", "model.onnx"
AUTO = "auto"

Resolution = Annotated[float, Field(gt=0)]
Cells = tuple[Annotated[int, Field(ge=1, le=4096)], Annotated[int, Field(ge=1, le=4096)]]


class ModelError(ValueError):
    """A model exists and cannot be used; the message has its folder and what is wrong."""


class _Part(BaseModel):
    # Further keys are allowed: all keys of the contract are required, so none can be mistyped.
    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


class Input(_Part):
    """(1, 2, ny, nx) float32: height above the datum, 0 where unknown; and 1 where known."""

    name: str
    channels: tuple[Literal["height_m"], Literal["known"]]
    resolution_m: Resolution
    cells: Cells
    """(ny, nx)."""
    datum: Literal["mean of the window's known heights"]


class Output(_Part):
    """(1, bins, ny, nx) float32 in [0, 1]; bin k is heading 2 pi k / bins."""

    name: str
    bins: Annotated[int, Field(ge=1, le=1024)]
    resolution_m: Resolution
    cells: Cells


class Labels(_Part):
    """Whose verdicts the network predicts."""

    checker: str
    limits: str


class Manifest(_Part):
    """manifest.json, the contract: input, output, and whose verdicts the network learnt."""

    schema_version: Literal[1] = Field(alias="schema")
    name: str
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    """Of model.onnx."""
    opset: Annotated[int, Field(ge=1)]
    input: Input
    output: Output
    labels: Labels
    parameters: Annotated[int, Field(ge=0)]
    macs: Annotated[int, Field(ge=0)]
    """Multiplications and additions of one inference."""
    training: dict[str, Any]
    metrics: dict[str, Any]

    @model_validator(mode="after")
    def _output_covers_input(self) -> Self:
        ratio = self.ratio
        if abs(self.output.resolution_m / self.input.resolution_m - ratio) > 1e-6 * ratio:
            raise ValueError("an output cell must be a whole number of input cells")
        if self.input.cells != tuple(ratio * n for n in self.output.cells):
            raise ValueError("input and output must cover the same square")
        return self

    @property
    def ratio(self) -> int:
        """Input cells per output cell, each way."""
        return max(1, round(self.output.resolution_m / self.input.resolution_m))


@dataclass(frozen=True)
class Model:
    """A validated model: its folder (for messages), manifest and the bytes of model.onnx."""

    folder: str
    manifest: Manifest
    network: bytes


def model_folder() -> Traversable:
    """Where the shipped models are."""
    return shipped_folder("models")


def model_names() -> list[str]:
    """Names of the shipped models, sorted."""
    folder = model_folder()
    folders = [f for f in folder.iterdir() if f.is_dir()] if folder.is_dir() else []
    return sorted(f.name for f in folders if not f.name.startswith("."))


def read_manifest(folder: Traversable) -> Manifest:
    """The manifest of a model. Raises ModelError: it is missing or not valid."""
    try:
        return Manifest.model_validate_json(_bytes(folder, MANIFEST))
    except ValidationError as fault:
        raise ModelError(f"{folder}/{MANIFEST}: {validation_faults(fault)}") from fault


def read_model(folder: Traversable) -> Model:
    """A model, its checksum verified.

    Raises ModelError: as `read_manifest`; or the network is missing, or not that of the manifest.
    """
    manifest, network = read_manifest(folder), _bytes(folder, NETWORK)
    found = hashlib.sha256(network).hexdigest()
    if found != manifest.sha256:
        raise ModelError(
            f"{folder}/{NETWORK}: checksum {found[:12]}... is not the {manifest.sha256[:12]}... of"
            f" {MANIFEST}; the file is damaged, or one of the two is of another model"
        )
    return Model(str(folder), manifest, network)


def _bytes(folder: Traversable, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except OSError as fault:
        raise ModelError(f"{folder}: no {name} to read ({fault.strerror or fault})") from fault


def find_model(model: str, checker: str, limits: str) -> Traversable | None:
    """The folder of a model, or None where there is none.

    `model` is 'auto' (the shipped model of checker and limits), the name of a shipped one, or a
    path. Raises ModelError: 'auto', and a shipped manifest is faulty or two are for this pair.
    """
    shipped, labels = model_folder(), Labels(checker=checker, limits=limits)
    if model == AUTO:
        fitting = [n for n in model_names() if read_manifest(shipped / n).labels == labels]
        if len(fitting) > 1:
            raise ModelError(
                f"{shipped}: {' and '.join(fitting)} are both for {checker}, {limits};"
                " name one (heuristic.model)"
            )
        return shipped / fitting[0] if fitting else None
    if model in model_names():
        return shipped / model
    return Path(model) if Path(model).is_dir() else None


def configured_model(config: Config) -> Manifest | None:
    """The manifest of a configuration's network; None where it has none. Errors as `find_model`."""
    folder = _configured(config)
    return None if folder is None else read_manifest(folder)


def require_model(config: Config) -> None:
    """Raise ModelError where the network of a configuration is missing or cannot be run."""
    if not isinstance(config.heuristic, Network):
        return
    folder = _configured(config)
    if folder is None:
        pair = f"{config.checker.name}, {config.limits.name}"
        raise ModelError(f"no model {config.heuristic.model!r} for {pair}")
    from mlnav.risk.network import inference_session

    if inference_session(read_model(folder), 1) is None:
        raise ModelError("heuristic network needs onnxruntime (extra 'onnx')")


def _configured(config: Config) -> Traversable | None:
    if not isinstance(config.heuristic, Network):
        return None
    return find_model(config.heuristic.model, config.checker.name, config.limits.name)
