"""The reference engine: one run at a time, plain PyTorch, any `nn.Module`."""

from __future__ import annotations

import inspect
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from dissensus.errors import InputError
from dissensus.own_code import own_function
from dissensus.progress import Progress, silent
from dissensus.randomness import Purpose, stream
from dissensus_train.training.annotator_side import PeopleNetwork, shrink, trusted
from dissensus_train.training.batches import epoch_of, padded
from dissensus_train.training.data import TRAIN, TrainingData
from dissensus_train.training.inputs import Features, Tokens, batch_inputs, evaluation_parts, network_inputs, rows_of
from dissensus_train.training.losses import batch_mean, cross_entropy, loss_of
from dissensus_train.training.models import LOGISTIC, network_of
from dissensus_train.training.run import Run, RunResult, SelectionRows, class_weights, delivery_of, selection_of
from dissensus_train.training.together import Together, train_together

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from dissensus.arrays import Floats, Mask
    from dissensus_train.training.losses import Loss
    from dissensus_train.training.settings import Training


def train_loop(
    run: Run, data: TrainingData, *, device: str | torch.device = "cpu", progress: Progress = silent
) -> RunResult:
    """Train one run and return what it leaves; logistic regression is fitted on the CPU."""
    if run.model == LOGISTIC:
        # It measures as this module does.
        from dissensus_train.training.logistic import fit_logistic

        return fit_logistic(run, data, progress=progress)
    place = torch.device(device)
    with own_draws(run, place):
        single = SingleRun(run, data, place)
        return train_together(single, [run], data, device=place, progress=progress, engine="loop")[0]


@contextmanager
def own_draws(run: Run, place: torch.device) -> Iterator[None]:
    """Layers that draw random numbers themselves (dropout) do so from the run's seed, and the same bits every time.

    They draw from the global generator; it is put back as it was.
    """
    with torch.random.fork_rng(devices=[place] if place.type == "cuda" else []), same_bits():
        torch.manual_seed(int(stream(run.seed, Purpose.LAYERS).integers(2**62)))
        yield


class OwnNetwork:
    """The network of one run on a device, the weights that are kept of it, and what it is selected on."""

    def __init__(self, run: Run, data: TrainingData, place: torch.device, *, checked: bool = True) -> None:
        self.model = placed(network_of(run, data, checked=checked), data.shape, place)
        self.kept, self.compared = snapshot(self.model), selection_of(run, data, place)


class EachByItself(Together):
    """Runs that have a network each: they are asked, kept and restored one after the other."""

    singles: Sequence[OwnNetwork]
    features: Any
    loss: Loss = staticmethod(cross_entropy)

    def select(self, shares: tuple[float, ...] | None = None) -> Floats | None:
        metrics = [
            measured(one.model, self.features, one.compared, self.settings, loss=self.loss, shares=shares)
            for one in self.singles
            if one.compared is not None
        ]
        return np.stack(metrics, axis=1) if metrics else None

    def predict(self, rows: Tensor, who: Tensor | None = None) -> Tensor:
        log_q = [log_probabilities(one.model, self.features, rows, self.settings, who=who) for one in self.singles]
        return torch.stack(log_q).exp()

    def keep(self, chosen: Mask) -> None:
        for one, now in zip(self.singles, chosen, strict=True):
            if now:
                one.kept = snapshot(one.model)

    def trust(self, share: Floats) -> None:
        for one, own in zip(self.singles, share.tolist(), strict=True):
            one.kept["deviation"] *= own

    def restore(self) -> list[dict[str, np.ndarray[Any, Any]]]:
        for one in self.singles:
            one.model.load_state_dict(one.kept)
        return [{name: value.cpu().numpy() for name, value in one.kept.items()} for one in self.singles]


class SingleRun(EachByItself):
    """One run, its batches one after the other as PyTorch has them."""

    def __init__(self, run: Run, data: TrainingData, place: torch.device) -> None:
        self.run, self.settings, self.classes, self.place = run, run.training, data.classes, place
        self.singles = [OwnNetwork(run, data, place)]
        self.model = self.singles[0].model
        self.features = network_inputs(self.model, data, place)
        self.members = {name: torch.from_numpy(rows).to(place) for name, rows in data.splits.items()}
        self.train_features = rows_of(self.features, self.members[TRAIN])
        if self.settings.augmentation == "crop-flip":
            if not isinstance(self.train_features, Tensor) or self.train_features.ndim != 4:
                raise InputError(
                    f"training: augmentation is '{self.settings.augmentation}', and what {run.model} is given are no "
                    "images; set augmentation = 'none'"
                )
            self.train_features = padded(self.train_features)
        self.delivery = delivery_of(run, data, place)
        self.n_examples = self.delivery.examples.shape[0]
        rate = self.settings.learning_rate
        self.optimiser = make_optimiser(self.model, self.settings, rate=rate, folder=data.folder)
        self.loss, by_class = loss_of(self.settings, data.folder), class_weights(run, data)
        self.by_class = None if by_class is None else torch.from_numpy(by_class).to(place)
        self.total = torch.zeros((), device=place)

    def train_epoch(self, epoch: int, rate: Floats) -> None:
        settings = self.settings
        steps_an_epoch = -(-self.n_examples // settings.batch_size)
        plan = epoch_of(self.run, self.delivery, epoch, classes=self.classes)
        if isinstance(self.train_features, Tokens):
            plan = self.train_features.bucketed(plan, size=settings.batch_size, seed=self.run.seed, number=epoch)
        self.model.train()
        self.total = torch.zeros((), device=self.place)
        for step, start in enumerate(range(0, self.n_examples, settings.batch_size), start=epoch * steps_an_epoch):
            batch = slice(start, start + settings.batch_size)
            given, target = batch_inputs(self.train_features, plan, batch), plan.target[batch]
            for group in self.optimiser.param_groups:
                group["lr"] = float(rate[0]) * warmed_up(step, steps_an_epoch, settings)
            self.optimiser.zero_grad(set_to_none=True)
            with autocast(settings, self.place):
                logits = self.model(*given)
            loss = batch_mean(self.loss, logits.float(), target, self.by_class)
            loss.backward()
            shrink(self.model)
            if settings.clip_norm is not None:
                nn.utils.clip_grad_norm_(self.model.parameters(), settings.clip_norm)
            self.optimiser.step()
            self.total += loss.detach() * target.shape[0]

    def train_loss(self) -> Floats:
        return np.array([float(self.total) / self.n_examples])


def warmed_up(step: int, steps_an_epoch: int, settings: Training) -> float:
    """The share of the learning rate that a step has: it climbs to 1 in equal steps, and stays there."""
    steps = settings.warmup_steps or round(settings.warmup * steps_an_epoch)
    return min(1.0, (step + 1) / steps) if steps else 1.0


def placed(model: nn.Module, shape: tuple[int, ...], place: torch.device) -> nn.Module:
    """The model on a device; for images with channels last, in which convolutions and pooling run faster."""
    model = model.to(place)
    return model.to(memory_format=torch.channels_last) if len(shape) == 3 else model  # type: ignore[call-overload]


def same_bits() -> AbstractContextManager[Any]:
    """Convolutions in full precision, by algorithms that give the same bits every time."""
    return torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False)


@contextmanager
def one_thread() -> Iterator[None]:
    """PyTorch on one thread: the same sums, and so the same bits, whatever the number of cores."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def selection_metric(log_q: Tensor, target: Tensor, settings: Training, loss: Loss = cross_entropy) -> Tensor:
    """What is selected on, (...) for (..., items, classes), lower is better: loss, soft NLL, or minus accuracy."""
    if settings.selection == "accuracy":
        return -(log_q.argmax(dim=-1) == target.argmax(dim=-1)).double().mean(dim=-1)
    if settings.selection == "loss" and loss is not cross_entropy:
        return loss(log_q, target).double().mean(dim=-1)
    return -(target * log_q).sum(dim=-1).double().mean(dim=-1)


def measured(
    model: nn.Module,
    features: Features,
    selection: SelectionRows,
    settings: Training,
    *,
    loss: Loss = cross_entropy,
    shares: tuple[float, ...] | None = None,
) -> Floats:
    """(shares,) the selection metric at each share of people's deviations; at 1 alone where nobody is known."""
    metrics = []
    for share in selection.shares if shares is None else shares:
        with trusted(model, share):
            log_q = log_probabilities(model, features, selection.rows, settings, who=selection.who)
        metrics.append(float(selection_metric(log_q, selection.target, settings, loss)))
    return np.array(metrics)


def make_optimiser(
    model: nn.Module, settings: Training, *, rate: float | Tensor, folder: Path | None = None
) -> torch.optim.Optimizer:
    """Adam, AdamW or SGD as PyTorch has them (the fused ones do the same sums in one pass), or another by its path.

    What the settings ask for and that one does not know is refused. A rate in a tensor can be changed between replays
    of a captured step.
    """
    weights, decay = list(model.parameters()), settings.weight_decay
    if settings.optimiser == "adam":
        on_device = isinstance(rate, Tensor) and rate.is_cuda
        return torch.optim.Adam(weights, lr=rate, weight_decay=decay, fused=True, capturable=on_device)
    if settings.optimiser == "adamw":
        return torch.optim.AdamW(weights, lr=rate, weight_decay=decay, fused=True)
    if settings.optimiser == "sgd":
        return torch.optim.SGD(weights, lr=rate, momentum=settings.momentum, weight_decay=decay, fused=True)
    make = own_function(settings.optimiser, folder=folder, kind="optimiser")
    known = inspect.signature(make).parameters
    asked = {name: getattr(settings, name) for name in ("weight_decay", "momentum") if getattr(settings, name)}
    for name in asked:
        if name not in known:
            raise InputError(f"training: {name} is {asked[name]}, and {settings.optimiser} has none; leave {name} out")
    made = make(weights, lr=rate, **asked)
    if not isinstance(made, torch.optim.Optimizer) or isinstance(made, torch.optim.LBFGS):
        raise InputError(
            f"training: optimiser {settings.optimiser} is {type(made).__name__}; give a torch.optim.Optimizer that "
            "steps on gradients alone"
        )
    return made


def log_probabilities(
    model: nn.Module, features: Features, rows: Tensor, settings: Training, *, who: Tensor | None = None
) -> Tensor:
    """(rows, classes) log q in evaluation mode, float32; of one person's answer a row where it is told who."""
    model.eval()
    most = model.items_at_once if isinstance(model, PeopleNetwork) and who is None else None
    places = evaluation_parts(features, rows, most=most)

    def answer(part: Tensor) -> Tensor:
        asked = () if who is None else (who[part],)
        return torch.log_softmax(model(features[rows[part]], *asked).float(), dim=1)

    with torch.no_grad(), autocast(settings, rows.device):
        log_q = torch.cat([answer(part) for part in places])
    return log_q[torch.argsort(torch.cat(places))]


def autocast(settings: Training, device: torch.device) -> AbstractContextManager[Any]:
    """Bfloat16 where it is asked for."""
    return torch.autocast(device.type, dtype=torch.bfloat16) if settings.precision == "bf16" else nullcontext()


def snapshot(model: nn.Module) -> dict[str, Tensor]:
    """A copy of the weights and buffers as they are now."""
    return {name: value.detach().clone() for name, value in model.state_dict().items()}
