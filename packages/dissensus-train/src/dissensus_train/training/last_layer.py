"""The layers that run last in a forward pass, and what enters the last linear one.

Only a forward pass can tell which layer that is: a network may declare its layers in any order, and may declare layers
that it never runs.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from dissensus.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class LastLayer:
    """The linear layer that ran last in the latest forward pass; None before the first, or where another is watched."""

    def __init__(self) -> None:
        self.layer: nn.Linear | None = None
        self._given: Any = None

    def ran(self, layer: Any, given: tuple[Any, ...]) -> None:
        """Note that a layer is about to run; of all that run, the last is remembered."""
        self.layer, self._given = layer, given[0]

    def inputs(self, items: int) -> Tensor:
        """(items, width) what entered it, for a batch of so many items."""
        return rows_of(self._given, items)


@contextmanager
def watched_last_layer(model: nn.Module) -> Iterator[LastLayer]:
    """Follow which linear layer runs last, in every forward pass within the context."""
    linears = [module for module in model.modules() if isinstance(module, nn.Linear)]
    if not linears:
        names = ", ".join(name for name, _ in model.named_modules() if name)
        raise InputError(
            "the model has no nn.Linear whose input could be its features; use a network that ends in one, or, for "
            f"ood, name a layer, one of {names}"
        )
    last = LastLayer()
    with ExitStack() as hooks:
        for module in linears:
            hooks.enter_context(module.register_forward_pre_hook(last.ran))
        yield last


@contextmanager
def in_evaluation_mode(model: nn.Module) -> Iterator[None]:
    """The model in evaluation mode for as long as the context lasts, and then each layer in the mode it was in."""
    trained = [layer for layer in model.modules() if layer.training]
    model.eval()
    try:
        yield
    finally:
        for layer in trained:
            layer.training = True


@torch.no_grad()
def layers_that_run(
    model: nn.Module, run: Callable[[], Any], *, wanted: Callable[[nn.Module], bool], giving: Callable[[Tensor], bool]
) -> list[str]:
    """The names of wanted layers that give such a tensor, in the order in which a pass in evaluation mode runs them."""
    ran: list[str] = []

    def note(name: str, out: Any) -> None:
        if isinstance(out, Tensor) and giving(out):
            ran.append(name)

    layers = {name: layer for name, layer in model.named_modules() if wanted(layer)}
    with in_evaluation_mode(model), ExitStack() as hooks:
        for name, layer in layers.items():
            hooks.enter_context(layer.register_forward_hook(lambda _, __, out, name=name: note(name, out)))
        if layers:
            run()
    return ran


def rows_of(values: Any, items: int) -> Tensor:
    """(items, width) what a layer was given or gave, flattened; refused where it is not one row for each item."""
    if not isinstance(values, Tensor) or values.ndim < 2 or values.shape[0] != items:
        what = f"a tensor of shape {tuple(values.shape)}" if isinstance(values, Tensor) else type(values).__name__
        raise InputError(
            f"the watched layer of the model has {what} for {items} items; name a layer that has one row for each item"
        )
    return values.detach().flatten(start_dim=1)
