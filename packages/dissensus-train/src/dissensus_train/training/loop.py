"""The reference engine: one run at a time, plain PyTorch, any `nn.Module`."""

from __future__ import annotations

import inspect
import time
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from dissensus.errors import InputError
from dissensus.own_code import own_function
from dissensus.progress import silent
from dissensus.randomness import Purpose, stream
from dissensus_train.training.annotator_side import TRUST, PeopleNetwork, most_trusted, shrink, trusted
from dissensus_train.training.batches import epoch_of, padded
from dissensus_train.training.data import TRAIN
from dissensus_train.training.inputs import Tokens, batch_inputs, evaluation_parts, network_inputs, rows_of
from dissensus_train.training.losses import batch_mean, cross_entropy, loss_of
from dissensus_train.training.models import network_of
from dissensus_train.training.run import (
    Run,
    RunResult,
    answers_by_vote,
    class_weights,
    delivery_of,
    held_out_votes,
    machine,
    selection_of,
    why_failed,
)
from dissensus_train.training.schedule import Schedule, ended

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dissensus.arrays import Floats
    from dissensus.progress import Progress
    from dissensus_train.training.data import TrainingData
    from dissensus_train.training.inputs import Features
    from dissensus_train.training.losses import Loss
    from dissensus_train.training.run import SelectionRows
    from dissensus_train.training.settings import Training


def train_loop(
    run: Run, data: TrainingData, *, device: str | torch.device = "cpu", progress: Progress = silent
) -> RunResult:
    """Train one run and return what it leaves.

    Layers that draw random numbers themselves (dropout) draw from the global generator; it starts from the run's seed
    and is put back as it was.
    """
    place = torch.device(device)
    with torch.random.fork_rng(devices=[place] if place.type == "cuda" else []), same_bits():
        torch.manual_seed(int(stream(run.seed, Purpose.LAYERS).integers(2**62)))
        return _train(run, data, place, progress)


def _train(run: Run, data: TrainingData, place: torch.device, progress: Progress) -> RunResult:
    began, settings = time.perf_counter(), run.training
    model = placed(network_of(run, data), data.shape, place)
    features = network_inputs(model, data, place)
    members = {name: torch.from_numpy(rows).to(place) for name, rows in data.splits.items()}
    train_features = rows_of(features, members[TRAIN])
    if settings.augmentation == "crop-flip":
        train_features = padded(images_only(train_features, run))
    delivery = delivery_of(run, data, place)
    optimiser = make_optimiser(model, settings, rate=settings.learning_rate, folder=data.folder)
    loss_function, weights_of_classes = loss_of(settings, data.folder), class_weights(run, data)
    by_class = None if weights_of_classes is None else torch.from_numpy(weights_of_classes).to(place)
    selection = selection_of(run, data, place)
    schedule = Schedule.start(1, settings)
    steps_an_epoch = -(-delivery.examples.shape[0] // settings.batch_size)
    history: dict[str, list[float]] = {"learning_rate": [], "train_loss": [], "selection": []}
    dynamics: dict[str, list[np.ndarray[Any, Any]]] = {name: [] for name in members}
    kept = snapshot(model)
    for epoch in range(settings.epochs):
        plan = epoch_of(run, delivery, epoch, classes=data.classes)
        if isinstance(train_features, Tokens):
            plan = train_features.bucketed(plan, size=settings.batch_size, seed=run.seed, number=epoch)
        history["learning_rate"].append(float(schedule.rate[0]))
        model.train()
        total = torch.zeros((), device=place)
        n_examples = plan.row.shape[0]
        for step, start in enumerate(range(0, n_examples, settings.batch_size), start=epoch * steps_an_epoch):
            batch = slice(start, start + settings.batch_size)
            given, target = batch_inputs(train_features, plan, batch), plan.target[batch]
            for group in optimiser.param_groups:
                group["lr"] = float(schedule.rate[0]) * warmed_up(step, steps_an_epoch, settings)
            optimiser.zero_grad(set_to_none=True)
            with autocast(settings, place):
                logits = model(*given)
            loss = batch_mean(loss_function, logits.float(), target, by_class)
            loss.backward()
            shrink(model)
            if settings.clip_norm is not None:
                nn.utils.clip_grad_norm_(model.parameters(), settings.clip_norm)
            optimiser.step()
            total += loss.detach() * target.shape[0]
        history["train_loss"].append(float(total) / n_examples)
        metric = None
        if selection is not None:
            metric = measured(model, features, selection, settings, loss=loss_function).min(axis=0, keepdims=True)
            history["selection"].append(float(metric[0]))
        if settings.dynamics:
            for name, rows in members.items():
                log_q = log_probabilities(model, features, rows, settings)
                dynamics[name].append(log_q.exp().half().cpu().numpy())
        if schedule.advance(epoch, metric, settings)[0]:
            kept = snapshot(model)
        progress(ended(run, schedule, 0, epoch, loss=history["train_loss"][-1]))
        if not schedule.active[0]:
            break
    model.load_state_dict(kept)
    if selection is not None and selection.who is not None:
        by_share = measured(model, features, selection, settings, loss=loss_function, shares=TRUST)
        kept["deviation"] *= float(most_trusted(by_share))
        model.load_state_dict(kept)
    predictions = {
        name: log_probabilities(model, features, rows, settings).exp().cpu().numpy() for name, rows in members.items()
    }
    own = {
        name: log_probabilities(model, features, rows, settings, who=who).exp().cpu().numpy()
        for name, (rows, who) in held_out_votes(run, data, place).items()
    }
    columns = {name: np.array(values) for name, values in history.items() if values}
    weights = {name: value.cpu().numpy() for name, value in kept.items()}
    return RunResult(
        run=run,
        history=columns,
        chosen_epoch=int(schedule.best_epoch[0]),
        predictions=predictions,
        by_vote=answers_by_vote(run, data, own, predictions),
        dynamics={name: np.stack(epochs) for name, epochs in dynamics.items() if epochs},
        weights=weights,
        timing={
            "seconds": time.perf_counter() - began,
            "engine": "loop",
            "device": str(place),
            "together": 1,
            "machine": machine(place),
        },
        failed=why_failed(run, data, history=columns, weights=weights),
    )


def warmed_up(step: int, steps_an_epoch: int, settings: Training) -> float:
    """The share of the learning rate that a step has: it climbs to 1 in equal steps, and stays there."""
    steps = settings.warmup_steps or round(settings.warmup * steps_an_epoch)
    return min(1.0, (step + 1) / steps) if steps else 1.0


def images_only(features: Features, run: Run) -> Tensor:
    """Dense images, which alone can be cropped and flipped."""
    if not isinstance(features, Tensor) or features.ndim != 4:
        raise InputError(
            f"training: augmentation is '{run.training.augmentation}', and what {run.model} is given are no images; "
            "set augmentation = 'none'"
        )
    return features


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

    A rate in a tensor can be changed between replays of a captured step.
    """
    weights, decay = list(model.parameters()), settings.weight_decay
    if settings.optimiser == "adam":
        on_device = isinstance(rate, Tensor) and rate.is_cuda
        return torch.optim.Adam(weights, lr=rate, weight_decay=decay, fused=True, capturable=on_device)
    if settings.optimiser == "adamw":
        return torch.optim.AdamW(weights, lr=rate, weight_decay=decay, fused=True)
    if settings.optimiser == "sgd":
        return torch.optim.SGD(weights, lr=rate, momentum=settings.momentum, weight_decay=decay, fused=True)
    return _own_optimiser(weights, settings, rate=rate, folder=folder)


def _own_optimiser(
    weights: list[nn.Parameter], settings: Training, *, rate: float | Tensor, folder: Path | None
) -> torch.optim.Optimizer:
    """An optimiser by path; what the settings ask for and it does not know is refused."""
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
    if settings.precision == "bf16":
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return nullcontext()


def snapshot(model: nn.Module) -> dict[str, Tensor]:
    """A copy of the weights and buffers as they are now."""
    return {name: value.detach().clone() for name, value in model.state_dict().items()}
