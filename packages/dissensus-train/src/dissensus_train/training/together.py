"""Runs that advance side by side on one device; on a GPU their steps are recorded once and replayed."""

from __future__ import annotations

import time
import warnings
from abc import ABC, abstractmethod
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from dissensus.progress import Progress, silent
from dissensus_train.training.annotator_side import TRUST
from dissensus_train.training.batches import Epoch, epoch_of, padded
from dissensus_train.training.data import TRAIN, TrainingData
from dissensus_train.training.run import (
    FEW,
    Run,
    RunResult,
    answers_by_vote,
    delivery_of,
    held_out_votes,
    timed,
    why_failed,
)
from dissensus_train.training.schedule import Schedule, ended

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dissensus.arrays import Floats, Mask
    from dissensus_train.training.settings import Training


class Together(ABC):
    """R runs of one set of settings that advance epoch by epoch, side by side.

    `members` are the items of each split, on the device; an epoch has `n_examples`.
    """

    members: dict[str, Tensor]
    settings: Training
    n_examples: int

    @abstractmethod
    def train_epoch(self, epoch: int, rate: Floats) -> None:
        """One epoch of every run at its own learning rate; 0 where it has stopped."""

    @abstractmethod
    def train_loss(self) -> Floats:
        """(runs,) mean training loss of the last epoch."""

    @abstractmethod
    def select(self, shares: tuple[float, ...] | None = None) -> Floats | None:
        """(shares, runs) the selection metric, where something is selected, at shares of people's deviations.

        Where none are given they are those that an epoch is measured at; 1 alone where nobody is known.
        """

    @abstractmethod
    def predict(self, rows: Tensor, who: Tensor | None = None) -> Tensor:
        """(runs, rows, classes) probabilities of the current weights; of one person's answer where `who` is given."""

    @abstractmethod
    def keep(self, chosen: Mask) -> None:
        """The current weights of the chosen runs are, for now, the ones to keep."""

    @abstractmethod
    def trust(self, share: Floats) -> None:
        """Of people's deviations in the kept weights, each run keeps a share, (runs,)."""

    @abstractmethod
    def restore(self) -> list[dict[str, np.ndarray[Any, Any]]]:
        """Go back to the kept weights, and return them by run."""


def train_together(
    together: Together,
    runs: Sequence[Run],
    data: TrainingData,
    *,
    device: torch.device,
    progress: Progress = silent,
    engine: str = "fleet",
) -> list[RunResult]:
    """Train to the end; results in the order of `runs`. Every epoch of every run is a step of progress as it ends."""
    began, settings = time.perf_counter(), runs[0].training
    schedule = Schedule.start(len(runs), settings)
    history: dict[str, list[Floats]] = {"learning_rate": [], "train_loss": [], "selection": []}
    dynamics: dict[str, list[Tensor]] = {name: [] for name in together.members}
    lengths = np.zeros(len(runs), dtype=np.int64)
    few = together.members[TRAIN][:FEW]
    before = together.predict(few).cpu().numpy()
    for epoch in range(settings.epochs):
        lengths[schedule.active] = epoch + 1
        history["learning_rate"].append(schedule.rate.copy())
        together.train_epoch(epoch, schedule.rate * schedule.active)
        by_share = together.select()
        metric = None if by_share is None else by_share.min(axis=0)
        history["train_loss"].append(together.train_loss())
        if metric is not None:
            history["selection"].append(metric)
        if settings.dynamics:
            for name, rows in together.members.items():
                dynamics[name].append(together.predict(rows).half().cpu())
        trained = np.flatnonzero(schedule.active)
        together.keep(schedule.advance(epoch, metric, settings))
        for r in trained.tolist():
            progress(ended(runs[r], schedule, r, epoch, loss=float(history["train_loss"][-1][r])))
        if not schedule.active.any():
            break
    weights = together.restore()
    if runs[0].people is not None and settings.selects and settings.selection == "loss":
        at_each = together.select(TRUST)
        assert at_each is not None, "something is selected"
        # The first of equals is the one that trusts least.
        together.trust(np.array(TRUST)[np.argmin(at_each, axis=0)])
        weights = together.restore()
    after = together.predict(few).cpu().numpy()
    predictions = {name: together.predict(rows).cpu().numpy() for name, rows in together.members.items()}
    own = {
        name: together.predict(*asked).cpu().numpy() for name, asked in held_out_votes(runs[0], data, device).items()
    }
    columns = {name: np.stack(values, axis=1) for name, values in history.items() if values}
    recorded = {name: torch.stack(epochs, dim=1).numpy() for name, epochs in dynamics.items() if epochs}
    seconds = (time.perf_counter() - began) / len(runs)
    return [
        RunResult(
            run=run,
            history={name: values[r, : lengths[r]] for name, values in columns.items()},
            chosen_epoch=int(schedule.best_epoch[r]),
            predictions={name: values[r] for name, values in predictions.items()},
            by_vote=answers_by_vote(
                run, data, {name: values[r] for name, values in own.items()}, {n: v[r] for n, v in predictions.items()}
            ),
            dynamics={name: values[r, : lengths[r]] for name, values in recorded.items()},
            weights=weights[r],
            timing=timed(seconds, engine=engine, device=device, together=len(runs)),
            failed=why_failed(
                run,
                data,
                before=before[r],
                after=after[r],
                loss=columns["train_loss"][r, : lengths[r]],
                weights=weights[r],
            ),
        )
        for r, run in enumerate(runs)
    ]


class Captured(Together):
    """Runs of one model and one set of settings, whose optimiser steps a GPU records once and replays."""

    def __init__(self, runs: Sequence[Run], data: TrainingData, place: torch.device, features: Tensor) -> None:
        self.runs, self.settings, self.classes, self.place = runs, runs[0].training, data.classes, place
        self.features = features
        self.members = {name: torch.from_numpy(rows).to(place) for name, rows in data.splits.items()}
        self.train_features = features[self.members[TRAIN]]
        if self.settings.augmentation == "crop-flip":
            self.train_features = padded(self.train_features)
        self.deliveries = [delivery_of(run, data) for run in runs]
        self.n_examples = self.deliveries[0].examples.shape[0]
        self.step: dict[int, Callable[[], None]] = {}
        self._prepared: Any = None

    def train_epoch(self, epoch: int, rate: Floats) -> None:
        self._begin(self._prepare(epoch) if self._prepared is None else self._prepared, rate)
        for start in range(0, self.n_examples, self.settings.batch_size):
            count = min(self.settings.batch_size, self.n_examples - start)
            if count not in self.step:
                self.step[count] = captured(partial(self._step, count), self.place, self._state())
            self.step[count]()
        # While the device works through the queue, this side draws the next epoch.
        self._prepared = self._prepare(epoch + 1) if epoch + 1 < self.settings.epochs else None

    def _drawn(self, epoch: int) -> list[Epoch]:
        pairs = zip(self.runs, self.deliveries, strict=True)
        return [epoch_of(run, delivery, epoch, classes=self.classes) for run, delivery in pairs]

    @abstractmethod
    def _prepare(self, epoch: int) -> Any:
        """What an epoch shows, drawn on the CPU."""

    @abstractmethod
    def _begin(self, plan: Any, rate: Floats) -> None:
        """Bring what was prepared to the device."""

    @abstractmethod
    def _step(self, count: int) -> None:
        """One optimiser step of every run, on its next `count` examples."""

    @abstractmethod
    def _state(self) -> list[Tensor]:
        """Everything that a step changes."""


def captured(compute: Callable[[], None], device: torch.device, state: Sequence[Tensor]) -> Callable[[], None]:
    """A function that does what `compute` does; on a GPU, a replay of its CUDA graph.

    Before it is recorded it is run a few times to warm up, and the tensors of `state`, all that it changes, are put
    back each time as they were. What asks the device for a value, which no graph can, is an error already there: one
    in the middle of recording would leave the device in no state to record anything else.
    """
    if device.type != "cuda":
        return compute
    saved = [value.clone() for value in state]
    side = torch.cuda.Stream(device)
    side.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(side):
        for mode in ("default", "error", "error"):
            with _asking(mode):
                compute()
            for value, old in zip(state, saved, strict=True):
                value.copy_(old)
    torch.cuda.current_stream(device).wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        compute()
    return graph.replay


@contextmanager
def _asking(mode: str) -> Iterator[None]:
    """What PyTorch does where the device is asked for a value: `default` waits for it, `error` refuses."""
    with warnings.catch_warnings():
        # It says that it is young.
        warnings.simplefilter("ignore")
        torch.cuda.set_sync_debug_mode(mode)
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")
