"""The fleet on a GPU for nets without batch statistics: runs of one architecture as one stacked computation.

Parameters of R runs are stacked, `torch.func` maps the gradient over them, and a whole optimiser step (gather the
batch, gradient, update) is captured once as a CUDA graph and replayed. Learning rates and stopping are masks, not
branches. On a CPU the same code runs uncaptured, which is how tests compare it with `loop`.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap

from dissensus_train.training.annotator_side import PeopleNetwork, trusted
from dissensus_train.training.batches import Epoch, each_part, inputs, placed_epoch, stacked_epoch
from dissensus_train.training.inputs import evaluation_parts
from dissensus_train.training.loop import autocast, selection_metric
from dissensus_train.training.losses import cross_entropy
from dissensus_train.training.models import network_of
from dissensus_train.training.patches import as_matmuls
from dissensus_train.training.run import Run, selection_of
from dissensus_train.training.together import Captured, captured

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dissensus.arrays import Floats, Mask
    from dissensus_train.training.data import TrainingData

Stack = dict[str, Tensor]
"""By parameter name, (runs, ...) values."""

ADAM_BETAS, ADAM_EPSILON = (0.9, 0.999), 1e-8  # torch.optim.Adam's own


def stackable(model: nn.Module) -> bool:
    """Whether runs of this network of ours can be stacked: it has no buffers that training changes."""
    return {name for name, _ in model.named_buffers()} <= set(getattr(model, "constants", ()))


class StackedRuns(Captured):
    """The stacked state of R runs, and the captured computations over it."""

    def __init__(self, runs: Sequence[Run], data: TrainingData, place: torch.device) -> None:
        super().__init__(runs, data, place, torch.from_numpy(data.normalised()).to(place))
        models = [network_of(run, data, checked=False) for run in runs]
        stacked, _ = stack_module_state(models)
        self.weights: Stack = {name: value.detach().to(place) for name, value in stacked.items()}
        self.kept = {name: value.clone() for name, value in self.weights.items()}
        self.constants = {name: value.to(place) for name, value in models[0].named_buffers()}
        self.form = as_matmuls(copy.deepcopy(models[0])).to("meta")
        self.moments: list[Stack] = [
            {name: torch.zeros_like(value) for name, value in self.weights.items()}
            for _ in range(2 if self.settings.optimiser == "adam" else 1)
        ]
        self.rate = torch.zeros(len(runs), device=place)
        # Double: 1 - 0.999**t would lose four digits in single precision.
        self.steps = torch.zeros((), dtype=torch.double, device=place)
        self.total = torch.zeros(len(runs), device=place)
        self.cursor = torch.zeros((), dtype=torch.long, device=place)
        self.plan: Epoch | None = None
        self._pinned: dict[int, Epoch] = {}
        selections = [selection_of(run, data, place) for run in runs]
        # Runs that go together are selected on the same rows.
        self.selection = selections[0]
        self.compared = torch.stack([rows.target for rows in selections if rows is not None]) if selections[0] else None
        self._measure: dict[tuple[float, ...], tuple[Callable[[], None], Tensor]] = {}

    def _begin(self, plan: Epoch, rate: Floats) -> None:
        self.plan = placed_epoch(plan, self.plan, self.place)
        self.rate.copy_(torch.from_numpy(rate))
        self.total.zero_()
        self.cursor.zero_()

    def train_loss(self) -> Floats:
        return np.asarray(self.total.double().cpu().numpy() / self.n_examples)

    def _prepare(self, epoch: int) -> Epoch:
        epochs = self._drawn(epoch)
        if self.place.type != "cuda":
            return stacked_epoch(epochs)
        # Two, in turn: one is filled while the device may still read the other.
        if epoch % 2 not in self._pinned:
            self._pinned[epoch % 2] = each_part(stacked_epoch(epochs), Tensor.pin_memory)
        return stacked_epoch(epochs, self._pinned[epoch % 2])

    def select(self, shares: tuple[float, ...] | None = None) -> Floats | None:
        if self.selection is None:
            return None
        shares = self.selection.shares if shares is None else shares
        if shares not in self._measure:
            metric = torch.zeros(len(shares), len(self.runs), dtype=torch.double, device=self.place)
            measure = captured(partial(self._measure_selection, shares, metric), self.place, [])
            self._measure[shares] = measure, metric
        measure, metric = self._measure[shares]
        measure()
        # A copy: on a CPU the array would be the tensor itself, which the next epoch overwrites.
        return metric.cpu().numpy().copy()

    def keep(self, chosen: Mask) -> None:
        now = torch.from_numpy(chosen).to(self.place)
        for name, value in self.weights.items():
            self.kept[name].copy_(torch.where(_per_run(now, value), value, self.kept[name]))

    def trust(self, share: Floats) -> None:
        kept = self.kept["deviation"]
        kept *= _per_run(torch.from_numpy(share).to(self.place, torch.float32), kept)

    def restore(self) -> list[dict[str, np.ndarray[Any, Any]]]:
        for name, value in self.weights.items():
            value.copy_(self.kept[name])
        arrays = {name: value.cpu().numpy() for name, value in self.kept.items()}
        constants = {name: value.cpu().numpy() for name, value in self.constants.items()}
        return [{**{name: values[r] for name, values in arrays.items()}, **constants} for r in range(len(self.runs))]

    @torch.no_grad()
    def predict(self, rows: Tensor, who: Tensor | None = None) -> Tensor:
        return self._log_q(rows, who).exp()

    def _state(self) -> list[Tensor]:
        moments = [value for moment in self.moments for value in moment.values()]
        return [*self.weights.values(), *moments, self.steps, self.total, self.cursor]

    def _logits(self, weights: Stack, *given: Tensor) -> Tensor:
        with autocast(self.settings, self.place):
            out: Tensor = functional_call(self.form, {**weights, **self.constants}, given)
        return out.float()

    def _loss(self, weights: Stack, target: Tensor, *given: Tensor) -> Tensor:
        return cross_entropy(self._logits(weights, *given), target).mean(dim=-1)

    def _step(self, count: int) -> None:
        assert self.plan is not None
        now = self.cursor + torch.arange(count, device=self.place)
        x, target = inputs(self.train_features, self.plan, now), self.plan.target[:, now]
        who = () if self.plan.who is None else (self.plan.who[:, now],)
        self.form.train()
        gradient, loss = vmap(grad_and_value(self._loss))(self.weights, target, x, *who)
        with torch.no_grad():
            if isinstance(self.form, PeopleNetwork):
                gradient["deviation"].add_(self.weights["deviation"], alpha=self.form.decay)
            self.steps += 1
            self._update(gradient)
            self.total += loss * count
            self.cursor += count

    def _update(self, gradient: Stack) -> None:
        names = list(self.weights)
        weights, slopes = ([values[name] for name in names] for values in (self.weights, gradient))
        if self.settings.weight_decay:
            slopes = list(torch._foreach_add(slopes, weights, alpha=self.settings.weight_decay))
        if self.settings.optimiser == "sgd":
            speed = [self.moments[0][name] for name in names]
            torch._foreach_mul_(speed, self.settings.momentum)
            torch._foreach_add_(speed, slopes)
            change, rate = speed, self.rate
        else:
            first, second = ([moment[name] for name in names] for moment in self.moments)
            beta1, beta2 = ADAM_BETAS
            torch._foreach_lerp_(first, slopes, 1 - beta1)
            torch._foreach_mul_(second, beta2)
            torch._foreach_addcmul_(second, slopes, slopes, value=1 - beta2)
            root = torch._foreach_sqrt(second)
            torch._foreach_div_(root, (1 - beta2**self.steps).sqrt().float())
            torch._foreach_add_(root, ADAM_EPSILON)
            change, rate = list(torch._foreach_div(first, root)), self.rate / (1 - beta1**self.steps).float()
        for weight, by in zip(weights, change, strict=True):
            weight.addcmul_(by, _per_run(rate, weight), value=-1)

    @torch.no_grad()
    def _measure_selection(self, shares: tuple[float, ...], metric: Tensor) -> None:
        assert self.compared is not None
        assert self.selection is not None
        for row, share in enumerate(shares):
            with trusted(self.form, share):
                log_q = self._log_q(self.selection.rows, self.selection.who)
            metric[row].copy_(selection_metric(log_q, self.compared, self.settings))

    def _log_q(self, rows: Tensor, who: Tensor | None = None) -> Tensor:
        self.form.eval()
        logits = vmap(self._logits, in_dims=(0, None) if who is None else (0, None, None))
        most = self.form.items_at_once if isinstance(self.form, PeopleNetwork) and who is None else None
        parts = [
            logits(self.weights, self.features[rows[part]], *(() if who is None else (who[part],))).log_softmax(dim=-1)
            for part in evaluation_parts(self.features, rows, most=most)
        ]
        return torch.cat(parts, dim=1)


def _per_run(values: Tensor, like: Tensor) -> Tensor:
    return values.reshape(-1, *(1,) * (like.ndim - 1))
