"""What a model says of items: its logits, and the features that its last layer sees."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from dissensus.errors import InputError
from dissensus.training.loop import EVALUATION_BATCH, same_bits

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, eq=False)
class Outputs:
    """A model's view of items, on its device.

    Attributes:
        logits: (items, classes) float64.
        features: (items, width) float64; None where they were not asked for.
    """

    logits: Tensor
    features: Tensor | None


def model_outputs(
    model: nn.Module, inputs: Tensor, *, features: bool = True, layer: str | None = None, batch: int = EVALUATION_BATCH
) -> Outputs:
    """Logits and features in evaluation mode, a batch at a time; the model is left in the mode it was in.

    Args:
        model: any network that gives one logit a class.
        inputs: (items, ...) as the model takes them, on any device.
        features: whether features are wanted.
        layer: the module whose output is the features, by its name in `named_modules`; if not given, they are the
            input of the `nn.Linear` that runs last.
        batch: items at once.
    """
    device = device_of(model)
    logits, seen = [], []
    with evaluated(model), _watched(model, layer if features else None, wanted=features) as kept, torch.no_grad():
        for part in torch.split(inputs, batch):
            logits.append(model(part.to(device)).double())
            if features:
                seen.append(_features(kept, len(part)).double())
    return Outputs(torch.cat(logits), torch.cat(seen) if features else None)


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
def _watched(model: nn.Module, layer: str | None, *, wanted: bool) -> Iterator[dict[str, Any]]:
    """What the watched layer saw or said in the latest pass, under the key `features`."""
    kept: dict[str, Any] = {}
    if not wanted:
        yield kept
        return
    modules = dict(model.named_modules())
    if layer is not None and layer not in modules:
        raise InputError(f"layer '{layer}' is not in the model; there are {', '.join(filter(None, modules))}")
    linears = [module for module in modules.values() if isinstance(module, nn.Linear)]
    if layer is None and not linears:
        raise InputError(
            "the model has no nn.Linear whose input could be its features; name a layer, one of "
            f"{', '.join(filter(None, modules))}"
        )

    def keep_input(module: nn.Module, given: tuple[Any, ...]) -> None:
        # Later layers overwrite earlier ones, so that the last to run is kept, whatever the order of definition.
        kept["features"] = given[0]

    def keep_output(module: nn.Module, given: tuple[Any, ...], out: Any) -> None:
        kept["features"] = out

    hooks = (
        [module.register_forward_pre_hook(keep_input) for module in linears]
        if layer is None
        else [modules[layer].register_forward_hook(keep_output)]
    )
    try:
        yield kept
    finally:
        for hook in hooks:
            hook.remove()


def _features(kept: dict[str, Any], items: int) -> Tensor:
    """(items, width) what was watched."""
    found = kept.get("features")
    if not isinstance(found, Tensor) or found.ndim < 2 or found.shape[0] != items:
        told = f"a tensor of shape {tuple(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
        raise InputError(
            f"the watched layer of the model gives {told} for {items} items; name a layer that gives one row an item"
        )
    return found.detach().flatten(start_dim=1)
