"""Training of one network for one pair of checker and limits.

The order of windows and the symmetry of each follow from (seed, epoch): resuming changes nothing.
"""

from __future__ import annotations

import json
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import TypeAdapter
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor
from torch.nn import functional

from mlnav.io import JsonlWriter, whole_file, write_json
from mlnav.learn.data import PAIRS, Windows, network_input, read_spec
from mlnav.learn.evaluation import dense_target
from mlnav.learn.network import AceNet, NetworkSpec
from mlnav.learn.quality import QualityMeter
from mlnav.learn.symmetry import SYMMETRIES, transform, transform_risk

CHECKPOINT, LOG, RUN = "checkpoint.safetensors", "log.jsonl", "run.json"


class TrainingError(ValueError):
    """Training cannot start or continue; the message says why."""


@dataclass(frozen=True)
class TrainingSpec:
    """Settings of one training run.

    Attributes:
        checker: its verdicts are the labels.
        network: its shape.
        epochs: passes over the training part.
        batch: windows a step.
        learning_rate: maximum; linear warm-up over the first twentieth, then cosine decay.
        weight_decay: AdamW's.
        average: decay of the running average of weights, which is exported.
        seed: of the initial weights, the order and the symmetries.
    """

    checker: str
    network: NetworkSpec = field(default_factory=NetworkSpec)
    epochs: int = 20
    batch: int = 16
    learning_rate: float = 4e-3
    weight_decay: float = 1e-3
    average: float = 0.998
    seed: int = 1

    def __post_init__(self) -> None:
        if self.checker not in PAIRS:
            raise TrainingError(f"no labels of checker {self.checker!r}; known: {', '.join(PAIRS)}")
        if self.epochs < 1 or self.batch < 1:
            raise TrainingError("epochs and batch must be at least 1")


# ----------------------------------------------------------------------------------------- batches


def order_of(seed: int, epoch: int, windows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Order of the windows in an epoch, and the symmetry applied to each."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(epoch,)))
    return rng.permutation(windows), rng.integers(0, SYMMETRIES, windows)


class Batches:
    """Inputs and targets of a part, with a symmetry applied to each window."""

    def __init__(self, windows: Windows, checker: str) -> None:
        self._windows = windows
        self._dense = checker == "fixed_box"
        places = np.arange(windows.dense[0].size).reshape(windows.dense.shape[1:])
        # New flat indices by symmetry: the inverse of a permutation is its argsort.
        self._moved = [np.argsort(transform_risk(places, s).ravel()) for s in range(SYMMETRIES)]

    def __len__(self) -> int:
        return len(self._windows)

    def loss_terms(
        self, model: AceNet, chosen: NDArray[np.int64], symmetry: NDArray[np.int64]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Logits, targets in [0, 1] and weights of all labels of some windows, as flat tensors."""
        w = self._windows
        picks = list(zip(chosen, map(int, symmetry), strict=True))
        heights = np.stack([transform(w.heights[i], s) for i, s in picks])
        ground = torch.from_numpy(network_input(heights)).to(memory_format=torch.channels_last)
        logits = model(ground)
        side = w.dense.shape[-1]
        if self._dense:
            dense = np.stack([transform_risk(w.dense[i], s) for i, s in picks])
            target = torch.from_numpy(dense_target(dense, logits.shape[-1]))
            return logits.reshape(-1), target.reshape(-1), torch.ones(target.numel())
        if logits.shape[-1] != side:
            logits = functional.interpolate(logits, size=(side, side), mode="nearest")
        at = np.stack([self._moved[s][w.sample_at[i]] for i, s in picks])
        picked = torch.gather(logits.flatten(1), 1, torch.from_numpy(at))
        bad = torch.from_numpy(w.sample_bad[chosen].astype(np.float32))
        weight = torch.from_numpy(w.sample_weight[chosen])
        return picked.reshape(-1), bad.reshape(-1), weight.reshape(-1)


# ---------------------------------------------------------------------------------------- training


def evaluate(model: AceNet, batches: Batches, batch: int = 16) -> QualityMeter:
    """Meter of a model's logits over all windows of a part."""
    training = model.training
    model.eval()
    meter, still = QualityMeter(), np.zeros(batch, np.int64)
    with torch.no_grad():
        for chosen in _split(np.arange(len(batches)), batch):
            terms = batches.loss_terms(model, chosen, still[: len(chosen)])
            meter.add(*(t.numpy() for t in terms))
    model.train(training)
    return meter


def _split(order: NDArray[np.int64], batch: int) -> Iterator[NDArray[np.int64]]:
    for begin in range(0, len(order), batch):
        yield order[begin : begin + batch]


class _Run:
    """State of a training, as in its checkpoint."""

    def __init__(self, spec: TrainingSpec) -> None:
        torch.manual_seed(spec.seed)
        self.spec = spec
        self.model = AceNet(spec.network).to(memory_format=torch.channels_last)
        self.average = AceNet(spec.network).to(memory_format=torch.channels_last)
        self.average.load_state_dict(self.model.state_dict())
        decay, rate = spec.weight_decay, spec.learning_rate
        self.optimizer = torch.optim.AdamW(self.model.parameters(), rate, weight_decay=decay)
        self.epoch = self.step = 0

    def rate(self, total: int) -> float:
        """Learning rate of the next step."""
        warm = max(1, total // 20)
        if self.step < warm:
            return self.spec.learning_rate * (self.step + 1) / warm
        done = (self.step - warm) / max(1, total - warm)
        return self.spec.learning_rate * (0.01 + 0.99 * 0.5 * (1.0 + math.cos(math.pi * done)))

    def update(self, loss: Tensor, total: int) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(total)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.step += 1
        # A shorter average at first, or the initial weights would persist in it.
        keep = min(self.spec.average, (1.0 + self.step) / (10.0 + self.step))
        theirs = self.model.state_dict()
        for name, value in self.average.state_dict().items():
            if value.dtype.is_floating_point:
                value.lerp_(theirs[name], 1.0 - keep)
            else:
                value.copy_(theirs[name])

    def save(self, path: Path) -> None:
        tensors = {f"model.{k}": v for k, v in self.model.state_dict().items()}
        tensors |= {f"average.{k}": v for k, v in self.average.state_dict().items()}
        for i, state in self.optimizer.state_dict()["state"].items():
            tensors |= {f"adam.{i}.{k}": v for k, v in state.items()}
        tensors = {k: v.contiguous().clone() for k, v in tensors.items()}
        place = {"epoch": str(self.epoch), "step": str(self.step)}
        with whole_file(path) as temporary:
            temporary.write_bytes(save(tensors, {"spec": json.dumps(asdict(self.spec)), **place}))

    def load(self, path: Path) -> None:
        meta, tensors = _read(path)
        if meta["spec"] != json.dumps(asdict(self.spec)):
            raise TrainingError(f"{path}: is of other settings: {meta['spec']}")
        self.model.load_state_dict(_under(tensors, "model."))
        self.average.load_state_dict(_under(tensors, "average."))
        state: dict[int, dict[str, Tensor]] = defaultdict(dict)
        for name, value in _under(tensors, "adam.").items():
            i, _, key = name.partition(".")
            state[int(i)][key] = value
        self.optimizer.load_state_dict(self.optimizer.state_dict() | {"state": state})
        self.epoch, self.step = int(meta["epoch"]), int(meta["step"])


def claim_run(folder: Path, data: Path, terrains: int | None = None) -> None:
    """Record the data of a training in the run.json of its folder.

    Raises:
        TrainingError: the training was begun on other data.
        DataError: there is no data set.
    """
    spec = read_spec(data)
    used = min(terrains or spec.terrains["train"], spec.terrains["train"])
    mine = {"digest": spec.digest, "terrains": used, "windows": used * spec.windows}
    found = read_run(folder)
    if found is None:
        write_json(folder / RUN, mine)
    elif found != mine:
        raise TrainingError(f"{folder}: was begun on other data: {found}, not {mine}")


def read_run(folder: Path) -> dict[str, Any] | None:
    """The data of a training from its run.json, or None. Raises TrainingError: it is damaged."""
    path = folder / RUN
    if not path.exists():
        return None
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as fault:
        raise TrainingError(f"{path}: damaged: {fault}") from fault


def load_trained(folder: Path) -> tuple[TrainingSpec, AceNet, int]:
    """Settings, averaged network, epochs of a training. Raises TrainingError: none, or damaged."""
    path = folder / CHECKPOINT
    if not path.exists():
        raise TrainingError(f"{folder}: no {CHECKPOINT}; nothing was trained here")
    meta, tensors = _read(path)
    try:
        spec = TypeAdapter(TrainingSpec).validate_json(meta["spec"])
        model = AceNet(spec.network)
        model.load_state_dict(_under(tensors, "average."))
        epoch = int(meta["epoch"])
    except (KeyError, TypeError, ValueError, RuntimeError) as fault:
        raise TrainingError(f"{path}: damaged checkpoint: {fault}") from fault
    return spec, model.eval(), epoch


def _read(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    try:
        with safe_open(path, "pt") as file:
            return file.metadata() or {}, {k: file.get_tensor(k) for k in file.keys()}  # noqa: SIM118
    except Exception as fault:
        raise TrainingError(f"{path}: damaged checkpoint: {fault}") from fault


def _under(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


Progress = Callable[[dict[str, Any]], None]


def train(
    spec: TrainingSpec,
    training: Windows,
    validation: Windows,
    folder: Path,
    *,
    progress: Progress = lambda record: None,
    threads: int = 1,
) -> AceNet:
    """Train, or continue from the checkpoint in `folder`; returns the averaged network.

    `folder` gets checkpoint.safetensors after every epoch, and log.jsonl with one record per epoch.
    `progress` is called with these records, and with partial ones within epochs (`step`, `steps`).
    Raises TrainingError: the checkpoint is damaged or of other settings, or the loss is not finite.
    """
    torch.set_num_threads(threads)
    folder.mkdir(parents=True, exist_ok=True)
    run = _Run(spec)
    checkpoint = folder / CHECKPOINT
    if checkpoint.exists():
        run.load(checkpoint)
    batches, held_out = Batches(training, spec.checker), Batches(validation, spec.checker)
    per_epoch = math.ceil(len(batches) / spec.batch)
    total = per_epoch * spec.epochs
    while run.epoch < spec.epochs:
        begin = time.perf_counter()
        order, symmetry = order_of(spec.seed, run.epoch, len(batches))
        run.model.train()
        summed = 0.0
        for i, chosen in enumerate(_split(order, spec.batch)):
            terms = batches.loss_terms(run.model, chosen, symmetry[chosen])
            loss = functional.binary_cross_entropy_with_logits(*terms)
            value = float(loss.detach())
            if not math.isfinite(value):
                raise TrainingError(f"the loss is {value} at step {run.step}")
            run.update(loss, total)
            summed += value
            if i % 10 == 9:
                step = {"epoch": run.epoch, "step": i + 1, "steps": per_epoch}
                progress(step | {"loss": summed / (i + 1)})
        run.epoch += 1
        quality = evaluate(run.average, held_out).quality()
        record = {
            "epoch": run.epoch,
            "epochs": spec.epochs,
            "train_loss": summed / per_epoch,
            "validation_loss": quality.loss,
            "validation_auc": quality.auc,
            "calibration_error": quality.calibration_error,
            "seconds": time.perf_counter() - begin,
        }
        run.save(checkpoint)
        with JsonlWriter(folder / LOG, append=True) as log:
            log.write(record)
        progress(record)
    model: AceNet = run.average.eval()
    return model
