"""The fleet on a GPU for nets with batch statistics: each run on a stream of its own, all in one captured graph.

A small net at a small batch leaves much of a large GPU idle; several at once fill it. The optimiser steps of all runs
are recorded side by side and replayed together.
"""

from __future__ import annotations

from importlib.util import find_spec
from shutil import which
from typing import TYPE_CHECKING, Final

import torch
from torch import Tensor

from dissensus_train.training.annotator_side import shrink
from dissensus_train.training.batches import Epoch, each_part, inputs, placed_epoch
from dissensus_train.training.loop import EachByItself, OwnNetwork, autocast, make_optimiser
from dissensus_train.training.losses import cross_entropy
from dissensus_train.training.models import MODELS
from dissensus_train.training.together import Captured

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dissensus.arrays import Floats
    from dissensus_train.training.data import TrainingData
    from dissensus_train.training.run import Run


WORTH_COMPILING: Final = 40_000
"""Steps, of all runs: compiling takes some ten seconds, and gains 0.35 ms a step of ResNet-18 on an H200."""


def can_compile(place: torch.device) -> bool:
    """Whether PyTorch can fuse operations into kernels of its own here: with Triton and a C compiler, on a GPU."""
    return place.type == "cuda" and find_spec("triton") is not None and any(map(which, ("cc", "gcc", "clang")))


class StreamedRuns(Captured, EachByItself):
    """R runs side by side on streams."""

    singles: list[_Streamed]

    def __init__(self, runs: Sequence[Run], data: TrainingData, place: torch.device) -> None:
        features = torch.from_numpy(data.normalised()).to(place)
        if features.ndim == 4:
            features = features.contiguous(memory_format=torch.channels_last)
        super().__init__(runs, data, place, features)
        self.singles = [_Streamed(run, data, self.train_features, place) for run in runs]
        # Own networks may hold what a compiler stumbles over; small work is done before it would be compiled; and in
        # full precision engines agree to the last digits, which other sums would not.
        steps = len(runs) * self.settings.epochs * self.n_examples // self.settings.batch_size
        worth = steps >= WORTH_COMPILING and self.settings.precision == "bf16"
        if worth and runs[0].model in MODELS and can_compile(place):
            for one in self.singles:
                one.whole_batch = torch.compile(one.model, dynamic=False)
        self.streams = [torch.cuda.Stream(place) if place.type == "cuda" else None for _ in runs]

    def _begin(self, plan: list[Epoch], rate: Floats) -> None:
        for one, own, own_rate in zip(self.singles, plan, rate, strict=True):
            one.begin(own, float(own_rate))

    def _state(self) -> list[Tensor]:
        return [value for one in self.singles for value in one.state()]

    def _prepare(self, epoch: int) -> list[Epoch]:
        plans = self._drawn(epoch)
        return [each_part(plan, Tensor.pin_memory) for plan in plans] if self.place.type == "cuda" else plans

    def _step(self, count: int) -> None:
        if self.place.type != "cuda":
            for one in self.singles:
                one.step(count)
            return
        main = torch.cuda.current_stream(self.place)
        for one, side in zip(self.singles, self.streams, strict=True):
            assert side is not None
            side.wait_stream(main)
            with torch.cuda.stream(side):
                one.step(count)
        for side in self.streams:
            main.wait_stream(side)  # type: ignore[arg-type]

    def train_loss(self) -> Floats:
        return torch.stack([one.total for one in self.singles]).double().cpu().numpy() / self.n_examples


class _Streamed(OwnNetwork):
    """One run: its model, optimiser and the tensors that its captured step reads and writes."""

    def __init__(self, run: Run, data: TrainingData, train_features: Tensor, place: torch.device) -> None:
        self.run, self.place, self.train_features = run, place, train_features
        super().__init__(run, data, place, checked=False)
        self.whole_batch: Callable[..., Tensor] = self.model
        self.rate = torch.zeros((), device=place)
        self.optimiser = make_optimiser(self.model, run.training, rate=self.rate)
        begin_from_zero(self.optimiser)
        self.total = torch.zeros((), device=place)
        self.cursor = torch.zeros((), dtype=torch.long, device=place)
        self.plan: Epoch | None = None

    def begin(self, plan: Epoch, rate: float) -> None:
        self.plan = placed_epoch(plan, self.plan, self.place)
        self.model.train()
        self.rate.fill_(rate)
        self.total.zero_()
        self.cursor.zero_()

    def state(self) -> list[Tensor]:
        return [*self.model.state_dict().values(), *_moments(self.optimiser), self.total, self.cursor]

    def step(self, count: int) -> None:
        assert self.plan is not None
        now = self.cursor + torch.arange(count, device=self.place)
        x, target = inputs(self.train_features, self.plan, now), self.plan.target[now]
        given = (x,) if self.plan.who is None else (x, self.plan.who[now])
        with autocast(self.run.training, self.place):
            logits = (self.whole_batch if count == self.run.training.batch_size else self.model)(*given)
        loss = cross_entropy(logits.float(), target).mean(dim=-1)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        shrink(self.model)
        self.optimiser.step()
        self.total += loss.detach() * count
        self.cursor += count


def begin_from_zero(optimiser: torch.optim.Optimizer) -> None:
    """Make the optimiser's moments now, all zero: it would make them in its first step, which is being recorded."""
    for group in optimiser.param_groups:
        for weight in group["params"]:
            weight.grad = torch.zeros_like(weight)
    optimiser.step()
    for value in _moments(optimiser):
        value.zero_()


def _moments(optimiser: torch.optim.Optimizer) -> list[Tensor]:
    values = [value for state in optimiser.state.values() for value in state.values()]
    return [value for value in values if isinstance(value, Tensor)]
