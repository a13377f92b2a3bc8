"""What a model makes of items: its logits, and the features that enter its last layer."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

from dissensus.errors import InputError
from dissensus_train.training.inputs import evaluation_parts
from dissensus_train.training.last_layer import LastLayer, in_evaluation_mode, watched_last_layer
from dissensus_train.training.loop import same_bits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dissensus_train.training.inputs import Features


class ModelOutputs(NamedTuple):
    """What a model makes of items, on its device, float64: (items, classes) logits and (items, width) features.

    And its last layer, by which features become logits: (classes, width + 1) weights, with the bias in the last column;
    None where features are no input of it.
    """

    logits: Tensor
    features: Tensor | None
    last_layer: Tensor | None = None


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
    parts = evaluation_parts(inputs, all_rows(inputs))
    last: Tensor | None = None
    watching = _watched(model, layer) if features else nullcontext()
    with in_evaluation_mode(model), same_bits(), watching as watched, torch.no_grad():
        for rows in parts:
            batch = inputs[rows]
            logits.append(model(batch.to(device) if isinstance(batch, Tensor) else batch).double())
            if watched is not None:
                seen.append(watched.inputs(len(rows)).double())
        if watched is not None and watched.layer is not None:
            linear = watched.layer
            bias = linear.weight.new_zeros(linear.out_features) if linear.bias is None else linear.bias
            last = torch.cat([linear.weight, bias[:, None]], dim=1).double()
    # Texts are evaluated in the order of their lengths.
    order = torch.argsort(torch.cat(parts)).to(device)
    made = torch.cat(logits)[order], torch.cat(seen)[order] if features else None
    return ModelOutputs(*made, last if last is not None and leads_to(last, made[1], made[0]) else None)


def leads_to(last_layer: Tensor, features: Tensor | None, logits: Tensor) -> bool:
    """Whether a last layer makes these logits of these features."""
    if features is None or last_layer.shape != (logits.shape[1], features.shape[1] + 1):
        return False
    expected = features @ last_layer[:, :-1].T + last_layer[:, -1]
    return bool(torch.allclose(expected, logits, rtol=1e-3, atol=1e-3 * float(logits.abs().max())))


def all_rows(inputs: Features) -> Tensor:
    """(items,) the place of each item, on the device that rows are taken from."""
    each = inputs if isinstance(inputs, Tensor) else inputs.first[1:]
    return torch.arange(len(each), device=each.device)


def device_of(model: nn.Module) -> torch.device:
    """Where a model's weights are."""
    first = next(model.parameters(), None)
    return torch.device("cpu") if first is None else first.device


@contextmanager
def _watched(model: nn.Module, layer: str | None) -> Iterator[LastLayer]:
    """What the features of the latest pass are asked of; it knows the last layer where they enter that."""
    if layer is None:
        with watched_last_layer(model) as last:
            yield last
        return
    modules = dict(model.named_modules())
    if layer not in modules:
        raise InputError(f"layer '{layer}' is not in the model; there are {', '.join(filter(None, modules))}")
    last = LastLayer()
    with modules[layer].register_forward_hook(lambda _module, _inputs, out: last.ran(None, (out,))):
        yield last
