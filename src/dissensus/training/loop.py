"""The reference engine: one run at a time, plain PyTorch, any `nn.Module`."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dissensus.randomness import Purpose, stream
from dissensus.training.batches import epoch_of, inputs, padded
from dissensus.training.data import TRAIN
from dissensus.training.failing import why_failed
from dissensus.training.models import build
from dissensus.training.progress import Progress
from dissensus.training.run import Run, RunResult, delivery_of, selection_target

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dissensus.training.data import TrainingData
    from dissensus.training.settings import Training

EVALUATION_BATCH = 1024


def train_loop(run: Run, data: TrainingData, *, device: str | torch.device = "cpu") -> RunResult:
    """Train one run and return what it leaves.

    Layers that draw random numbers themselves (dropout) draw from the global generator; it starts from the run's seed
    and is put back as it was.
    """
    place = torch.device(device)
    with torch.random.fork_rng(devices=[place] if place.type == "cuda" else []), same_bits():
        torch.manual_seed(int(stream(run.seed, Purpose.LAYERS).integers(2**62)))
        return _train(run, data, place)


def _train(run: Run, data: TrainingData, place: torch.device) -> RunResult:
    began, settings = time.perf_counter(), run.training
    model = placed(build(run.model, data.shape, classes=data.classes, seed=run.seed), data.shape, place)
    features = torch.from_numpy(data.normalised()).to(place)
    members = {name: torch.from_numpy(rows).to(place) for name, rows in data.splits.items()}
    train_features = features[members[TRAIN]]
    if settings.augmentation == "crop-flip":
        train_features = padded(train_features)
    delivery = delivery_of(run, data, place)
    optimiser = make_optimiser(model, settings, rate=settings.learning_rate)
    compared = selection_target(run, data)
    selection = None if compared is None else torch.from_numpy(compared).to(place)
    progress = Progress.start(1, settings)
    history: dict[str, list[float]] = {"learning_rate": [], "train_loss": [], "selection": []}
    dynamics: dict[str, list[np.ndarray[Any, Any]]] = {name: [] for name in members}
    kept = snapshot(model)
    for epoch in range(settings.epochs):
        plan = epoch_of(run, delivery, epoch, classes=data.classes)
        for group in optimiser.param_groups:
            group["lr"] = float(progress.rate[0])
        history["learning_rate"].append(float(progress.rate[0]))
        model.train()
        total = torch.zeros((), device=place)
        n_examples = plan.row.shape[0]
        for start in range(0, n_examples, settings.batch_size):
            batch = slice(start, start + settings.batch_size)
            x, target = inputs(train_features, plan, batch), plan.target[batch]
            optimiser.zero_grad(set_to_none=True)
            with autocast(settings, place):
                logits = model(x)
            loss = F.cross_entropy(logits.float(), target)
            loss.backward()
            optimiser.step()
            total += loss.detach() * target.shape[0]
        history["train_loss"].append(float(total) / n_examples)
        metric = None
        if selection is not None:
            log_q = log_probabilities(model, features[members[settings.selection_split]], settings)
            metric = np.array([float(selection_metric(log_q, selection, settings))])
            history["selection"].append(float(metric[0]))
        if settings.dynamics:
            for name, rows in members.items():
                dynamics[name].append(log_probabilities(model, features[rows], settings).exp().half().cpu().numpy())
        if progress.advance(epoch, metric, settings)[0]:
            kept = snapshot(model)
        if not progress.active[0]:
            break
    model.load_state_dict(kept)
    predictions = {
        name: log_probabilities(model, features[rows], settings).exp().cpu().numpy() for name, rows in members.items()
    }
    columns = {name: np.array(values) for name, values in history.items() if values}
    weights = {name: value.cpu().numpy() for name, value in kept.items()}
    return RunResult(
        run=run,
        history=columns,
        chosen_epoch=int(progress.best_epoch[0]),
        predictions=predictions,
        dynamics={name: np.stack(epochs) for name, epochs in dynamics.items() if epochs},
        weights=weights,
        timing={"seconds": time.perf_counter() - began, "engine": "loop", "device": str(place), "together": 1},
        failed=why_failed(run, data, history=columns, weights=weights),
    )


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


def soft_cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """-sum_k p_k log q_k, mean over the batch: `F.cross_entropy`, for any dimensions in front."""
    return -(target * logits.log_softmax(dim=-1)).sum(dim=-1).mean(dim=-1)


def selection_metric(log_q: Tensor, target: Tensor, settings: Training) -> Tensor:
    """What is selected on, (...) for (..., items, classes), lower is better: soft cross-entropy, or minus accuracy."""
    if settings.selection == "accuracy":
        return -(log_q.argmax(dim=-1) == target.argmax(dim=-1)).double().mean(dim=-1)
    return -(target * log_q).sum(dim=-1).double().mean(dim=-1)


def make_optimiser(model: nn.Module, settings: Training, *, rate: float | Tensor) -> torch.optim.Optimizer:
    """Adam or SGD as PyTorch has them; the fused ones do the same sums in one pass over the weights.

    A rate in a tensor can be changed between replays of a captured step.
    """
    weights, decay = list(model.parameters()), settings.weight_decay
    if settings.optimiser == "adam":
        on_device = isinstance(rate, Tensor) and rate.is_cuda
        return torch.optim.Adam(weights, lr=rate, weight_decay=decay, fused=True, capturable=on_device)
    return torch.optim.SGD(weights, lr=rate, momentum=settings.momentum, weight_decay=decay, fused=True)


def log_probabilities(model: nn.Module, features: Tensor, settings: Training) -> Tensor:
    """(items, classes) log q in evaluation mode, float32."""
    model.eval()
    with torch.no_grad(), autocast(settings, features.device):
        parts = [model(part).float().log_softmax(dim=1) for part in torch.split(features, EVALUATION_BATCH)]
    return torch.cat(parts)


def autocast(settings: Training, device: torch.device) -> AbstractContextManager[Any]:
    """Bfloat16 where it is asked for."""
    if settings.precision == "bf16":
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return nullcontext()


def snapshot(model: nn.Module) -> dict[str, Tensor]:
    """A copy of the weights and buffers as they are now."""
    return {name: value.detach().clone() for name, value in model.state_dict().items()}
