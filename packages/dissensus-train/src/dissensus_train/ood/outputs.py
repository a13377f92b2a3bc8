"""What a model makes of items: its logits, and the features that enter its last layer."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from dissensus.errors import InputError
from dissensus_train.training.inputs import evaluation_parts
from dissensus_train.training.last_layer import rows_of, watched_last_layer
from dissensus_train.training.loop import same_bits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dissensus_train.training.inputs import Features


class ModelOutputs(NamedTuple):
    """What a model makes of items, on its device: (items, classes) logits and (items, width) features, float64."""

    logits: Tensor
    features: Tensor | None


def model_outputs(
    model: nn.Module, inputs: Features, *, features: bool = True, layer: str | None = None
) -> ModelOutputs:
    """Logits and features in evaluation mode, a batch at a time; the model is left in the mode it was in.

    Args:
        model: any network that gives one logit per class.
        inputs: (items, ...) as the model takes them, on any device; or a sparse table, or tokens, on the model's.
        features: whether features are wanted; None if not.
        layer: the module whose output is the features, by its name in `named_modules`; if not given, they are the
            input of the `nn.Linear` that runs last.
    """
    device = device_of(model)
    logits, seen = [], []
    parts = evaluation_parts(inputs, torch.arange(number_of(inputs), device=place_of(inputs)))
    with evaluated(model), _watched(model, layer) if features else nullcontext() as watched, torch.no_grad():
        for rows in parts:
            batch = inputs[rows]
            logits.append(model(batch.to(device) if isinstance(batch, Tensor) else batch).double())
            if watched is not None:
                seen.append(watched(len(rows)).double())
    # Texts are evaluated in the order of their lengths.
    order = torch.argsort(torch.cat(parts)).to(device)
    return ModelOutputs(torch.cat(logits)[order], torch.cat(seen)[order] if features else None)


def number_of(inputs: Features) -> int:
    """How many items there are."""
    return len(inputs) if isinstance(inputs, Tensor) else len(inputs.first) - 1


def place_of(inputs: Features) -> torch.device:
    """Where rows are taken from."""
    return inputs.device if isinstance(inputs, Tensor) else inputs.first.device


def device_of(model: nn.Module) -> torch.device:
    """Where a model's weights are."""
    first = next(model.parameters(), None)
    return torch.device("cpu") if first is None else first.device


@contextmanager
def evaluated(model: nn.Module) -> Iterator[None]:
    """The model in evaluation mode, with convolutions that give the same bits every time."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with same_bits():
            yield
    finally:
        for module, mode in modes.items():
            module.training = mode


@contextmanager
def _watched(model: nn.Module, layer: str | None) -> Iterator[Callable[[int], Tensor]]:
    """A function that gives the features of so many items, from the latest pass."""
    if layer is None:
        with watched_last_layer(model) as last:
            yield last.inputs
        return
    modules = dict(model.named_modules())
    if layer not in modules:
        raise InputError(f"layer '{layer}' is not in the model; there are {', '.join(filter(None, modules))}")
    kept: list[Any] = []
    hook = modules[layer].register_forward_hook(lambda _module, _inputs, out: kept.append(out))
    try:
        yield lambda items: rows_of(kept.pop(), items)
    finally:
        hook.remove()
