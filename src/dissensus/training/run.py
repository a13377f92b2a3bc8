"""One run and what it leaves."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.delivery import deliver
from dissensus.errors import InputError
from dissensus.training.data import TRAIN

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch

    from dissensus.delivery import Delivery
    from dissensus.training.data import TrainingData
    from dissensus.training.settings import Training

MEANING = 1
"""Counts up when the code changes what a run means, so that no stored run is taken for one it is not."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One model trained on one target by one delivery with one seed.

    Attributes:
        model: its name or import path.
        target: a name in `TrainingData.targets`.
        delivery: its name.
        options: of the delivery.
        seed: of weights, batches, draws and augmentation.
        training: settings.
        data: the fingerprint of the data.
    """

    model: str
    target: str
    delivery: str
    seed: int
    training: Training
    data: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def spec(self) -> dict[str, Any]:
        """Everything that decides the result, as plain values."""
        return {"meaning": MEANING, **asdict(self)}

    @property
    def key(self) -> str:
        """The hash of the spec: what the run is stored and found by."""
        canonical = json.dumps(self.spec(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()[:20]

    @property
    def method(self) -> str:
        """Target, delivery and its options, in words: `frequency / stale-sls (keep=5)`."""
        options = ", ".join(f"{name}={value}" for name, value in sorted(self.options.items()))
        return f"{self.target} / {self.delivery}{f' ({options})' if options else ''}"


@dataclass(frozen=True, eq=False, kw_only=True)
class RunResult:
    """What a run leaves.

    Attributes:
        run: its spec.
        history: by column, (epochs,) values: learning_rate, train_loss, and selection where it was measured.
        chosen_epoch: the epoch, from 0, whose weights were kept.
        predictions: by split, (items, classes) float32 probabilities of the kept weights.
        dynamics: by split, (epochs, items, classes) float16 probabilities after each epoch; empty unless asked for.
        weights: by name, the kept parameters and buffers.
        timing: seconds of wall clock by part, the engine and the device.
    """

    run: Run
    history: Mapping[str, np.ndarray[Any, Any]]
    chosen_epoch: int
    predictions: Mapping[str, np.ndarray[Any, np.dtype[np.float32]]]
    dynamics: Mapping[str, np.ndarray[Any, np.dtype[np.float16]]]
    weights: Mapping[str, np.ndarray[Any, Any]]
    timing: Mapping[str, Any]


def delivery_of(run: Run, data: TrainingData, device: torch.device | str = "cpu") -> Delivery:
    """The delivery of a run over the training items, in the order of the train split."""
    members = data.splits[TRAIN]
    votes = None if data.votes is None else data.votes.take_items(members)
    return deliver(run.delivery, target_of(run, data).take(members), votes, seed=run.seed, device=device, **run.options)


def target_of(run: Run, data: TrainingData) -> Any:
    """The target of a run over all items."""
    if run.target not in data.targets:
        raise InputError(f"'{run.target}' is no target of {data.name}; choose {', '.join(data.targets)}")
    return data.targets[run.target]


def selection_target(run: Run, data: TrainingData) -> np.ndarray[Any, np.dtype[np.float32]] | None:
    """(items of the selection split, classes) what the selection metric compares with; None where nothing is selected.

    The run's own target as it would be delivered in the mean (a majority run is selected on majority labels), or the
    human distribution.
    """
    settings = run.training
    if not settings.selects:
        return None
    if settings.selection_split not in data.splits or not data.splits[settings.selection_split].size:
        raise InputError(
            f"training: the selection split '{settings.selection_split}' has no items in {data.name}; add it, or set "
            "keep = 'last', patience and plateau off"
        )
    members = data.splits[settings.selection_split]
    if settings.selection == "loss":
        own = target_of(run, data).take(members)
        hard = run.delivery in ("majority", "label-smoothing", "mixup")
        return np.asarray(own.one_hot() if hard else own.probabilities, dtype=np.float32)
    human = data.human.take(members)
    return np.asarray(human.one_hot() if settings.selection == "accuracy" else human.probabilities, dtype=np.float32)
