"""The objective: a model's mean loss over fixed data as a function of its weights, one flat vector.

Everything in this room is measured on an objective, and every result says which one it was.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypedDict

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional as F

from dissensus.basins.frozen import fix_statistics
from dissensus.errors import InputError
from dissensus.training.loop import same_bits
from dissensus.training.patches import as_matmuls
from dissensus.training.stacked import stackable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np

    Loss: TypeAlias = Callable[[Tensor, Tensor], Tensor]
    """(items, classes) logits and (items, ...) targets to (items,) losses."""

    Values: TypeAlias = Tensor | np.ndarray[Any, Any]
    """Numbers that come as a tensor or as an array."""

CHUNK: Final = 250
"""How many items are computed at once: few enough for a processor's cache, enough to keep a GPU busy."""

STACKED: Final = 32
"""How many weight vectors are evaluated at once where they are stacked."""


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """(items,) -sum_k p_k log q_k for (items, classes) probabilities, or -log q_y for (items,) class indices."""
    return F.cross_entropy(logits, target, reduction="none")


class ObjectiveOptions(TypedDict, total=False):
    """The options of `objective`, for functions that hand them on; it says what they mean."""

    loss: Loss
    data: str
    chunk: int
    device: str | torch.device | None


@dataclass(frozen=True, kw_only=True)
class MeasuredOn:
    """What a measurement was made on; two measurements compare only where these agree.

    Attributes:
        loss: name of the loss.
        data: name of the data.
        items: how many items, all of them used.
    """

    loss: str
    data: str
    items: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Objective:
    """Mean loss over fixed items as a function of the trainable weights.

    Attributes:
        model: a copy in evaluation mode, so that what happens to the original changes nothing here.
        names: of the trainable parameters.
        shapes: of the trainable parameters.
        weights: (size,) their values, one after another.
        buffer_names: of the buffers that hold real numbers (batch statistics).
        buffers: (size of the buffers,) their values, one after another.
        features: (items, ...).
        targets: (items, ...).
        loss: gives the loss of each item.
        chunk: how many items are computed at once.
        stacked: the model in a form that is fast over stacked weights; None where one vector at a time is faster.
        measured_on: loss and data in words.
    """

    model: nn.Module
    names: tuple[str, ...]
    shapes: tuple[torch.Size, ...]
    weights: Tensor
    buffer_names: tuple[str, ...]
    buffers: Tensor
    features: Tensor
    targets: Tensor
    loss: Loss
    chunk: int
    stacked: nn.Module | None
    measured_on: MeasuredOn

    @property
    def size(self) -> int:
        """The number of trainable weights."""
        return self.weights.shape[0]

    @property
    def items(self) -> int:
        """The number of items."""
        return self.features.shape[0]

    def named(self, weights: Tensor) -> dict[str, Tensor]:
        """The parts of a flat vector, by parameter name."""
        parts = weights.split([shape.numel() for shape in self.shapes])
        return {name: part.view(shape) for name, part, shape in zip(self.names, parts, self.shapes, strict=True)}

    def logits(self, weights: Tensor, features: Tensor, *, buffers: Tensor | None = None) -> Tensor:
        """(items, classes) of the model with these weights, and these batch statistics where given."""
        own = {} if buffers is None or not self.buffer_names else self._named_buffers(buffers)
        state = {**self.named(weights), **own}
        out: Tensor = functional_call(self.model, state, (features,))
        return out

    def chunks(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Features and targets, some items at a time."""
        yield from zip(self.features.split(self.chunk), self.targets.split(self.chunk), strict=True)

    @torch.no_grad()
    def losses(self, points: Tensor, *, buffers: Tensor | None = None) -> Tensor:
        """(points, items) losses at each of the (points, size) weight vectors.

        Vectors are stacked where that is faster (see `stacked`), else taken in turn.
        """
        with same_bits():
            if self.stacked is not None and buffers is None:
                parts = [self._stacked_losses(part) for part in points.split(STACKED)]
                return torch.cat(parts)
            rows = []
            for number, point in enumerate(points):
                own = None if buffers is None else buffers[number]
                outs = [self.loss(self.logits(point, x, buffers=own), t) for x, t in self.chunks()]
                rows.append(torch.cat(outs))
            return torch.stack(rows)

    def gradients(self, points: Tensor) -> Tensor:
        """(points, size) gradients of the mean loss at each weight vector."""
        with same_bits():
            if self.stacked is not None:
                return torch.cat([self._stacked_gradients(part) for part in points.split(STACKED)])
            return torch.stack([self._gradient(point) for point in points])

    def _gradient(self, point: Tensor) -> Tensor:
        def total(weights: Tensor, x: Tensor, t: Tensor) -> Tensor:
            return self.loss(self.logits(weights, x), t).sum()

        slope = torch.zeros_like(point)
        for x, t in self.chunks():
            slope += grad(total)(point, x, t)
        return slope / self.items

    def _stacked_losses(self, points: Tensor) -> Tensor:
        return torch.cat(
            [vmap(self._losses_of_form, in_dims=(0, None, None))(points, x, t) for x, t in self.chunks()], 1
        )

    def _stacked_gradients(self, points: Tensor) -> Tensor:
        def total(weights: Tensor, x: Tensor, t: Tensor) -> Tensor:
            return self._losses_of_form(weights, x, t).sum()

        slope = torch.zeros_like(points)
        for x, t in self.chunks():
            slope += vmap(grad(total), in_dims=(0, None, None))(points, x, t)
        return slope / self.items

    def _losses_of_form(self, weights: Tensor, x: Tensor, t: Tensor) -> Tensor:
        assert self.stacked is not None
        return self.loss(functional_call(self.stacked, self.named(weights), (x,)), t)

    def _named_buffers(self, buffers: Tensor) -> dict[str, Tensor]:
        now = dict(self.model.named_buffers())
        parts = buffers.split([now[name].numel() for name in self.buffer_names])
        return {name: part.view(now[name].shape) for name, part in zip(self.buffer_names, parts, strict=True)}


def objective(
    model: nn.Module,
    features: Values,
    targets: Values,
    *,
    loss: Loss = cross_entropy,
    data: str = "the given items",
    chunk: int = CHUNK,
    device: str | torch.device | None = None,
) -> Objective:
    """The mean loss of a model over these items, as a function of its trainable weights.

    Args:
        model: any network that takes a batch of items and gives one row for each; in evaluation mode.
        features: (items, ...) what it takes.
        targets: (items, classes) distributions or (items,) class indices, or whatever the loss takes.
        loss: gives (items,) losses; the loss of an item must not depend on other items.
        data: name of the items, for the results.
        chunk: how many items are computed at once.
        device: where to compute; by default where the model is.
    """
    refuse_training_mode(model)
    weights = {name: value for name, value in model.named_parameters() if value.requires_grad}
    if not weights:
        raise InputError("basins: the model has no trainable parameters; set requires_grad on those to be measured")
    place = torch.device(device) if device is not None else next(iter(weights.values())).device
    own = fix_statistics(copy.deepcopy(model).to(place).requires_grad_(False))
    parts = {name: value.detach().to(place) for name, value in weights.items()}
    flat = torch.cat([value.reshape(-1) for value in parts.values()])
    x, t = (_placed(values, flat) for values in (features, targets))
    if not x.shape[0] or x.shape[0] != t.shape[0]:
        raise InputError(
            f"basins: {x.shape[0]:,} rows of features and {t.shape[0]:,} targets; give one target for each item, and "
            "at least one item"
        )
    real = {name: value for name, value in own.named_buffers() if value.is_floating_point()}
    made = Objective(
        model=own,
        names=tuple(parts),
        shapes=tuple(value.shape for value in parts.values()),
        weights=flat,
        buffer_names=tuple(real),
        buffers=torch.cat([value.reshape(-1) for value in real.values()]) if real else flat.new_zeros(0),
        features=x,
        targets=t,
        loss=loss,
        chunk=max(1, min(chunk, x.shape[0])),
        stacked=_stacked_form(own, parts, x[:2]),
        measured_on=MeasuredOn(loss=_loss_name(loss, t), data=data, items=x.shape[0]),
    )
    with torch.no_grad():
        given = made.loss(made.logits(flat, x[:2]), t[:2])
    if given.shape != x[:2].shape[:1]:
        raise InputError(
            f"basins: the loss gives values of shape {tuple(given.shape)} for {x[:2].shape[0]} items; it must give one "
            "for each item (reduction='none')"
        )
    return made


def refuse_training_mode(model: nn.Module) -> None:
    """Raise unless the model is a fixed function of each item: evaluation mode, no statistics of the current batch."""
    for name, module in model.named_modules():
        where = f"its layer '{name}' ({type(module).__name__})" if name else f"it ({type(module).__name__})"
        if module.training:
            raise InputError(
                f"basins: the model cannot be measured because {where} is in training mode, where dropout and batch "
                "statistics change from one evaluation to the next; call model.eval() first"
            )
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.running_mean is None:
            raise InputError(
                f"basins: the model cannot be measured because {where} keeps no running statistics, so an item's loss "
                "depends on its batch; use track_running_stats=True"
            )


def together(objectives: Sequence[Objective]) -> bool:
    """Whether points of all these objectives can be evaluated by the first: the same stacked network and data."""
    first = objectives[0]
    return all(
        each.stacked is not None and each.shapes == first.shapes and each.measured_on == first.measured_on
        for each in objectives
    )


def mean_and_error(values: Tensor) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """(...) means over the last axis (items) and their standard errors, in double precision."""
    exact = values.double()
    n = exact.shape[-1]
    spread = exact.std(dim=-1) if n > 1 else torch.full_like(exact[..., 0], torch.nan)
    return exact.mean(dim=-1).cpu().numpy(), (spread / n**0.5).cpu().numpy()


def _stacked_form(model: nn.Module, weights: dict[str, Tensor], features: Tensor) -> nn.Module | None:
    """The network for stacked weights; None where one vector at a time is faster, or where it cannot be stacked.

    Measured on one thread of a CPU, 32 vectors: a network of matrix products takes 0.6 to 0.8 of the time when
    stacked, one of convolutions twice the time. Networks with batch statistics have convolutions that fill a GPU alone.
    """
    convolutions = any(isinstance(module, nn.modules.conv._ConvNd) for module in model.modules())
    if not stackable(model) or (convolutions and features.device.type == "cpu"):
        return None
    form = as_matmuls(copy.deepcopy(model))
    try:
        with torch.no_grad():
            vmap(lambda state: functional_call(form, state, (features,)))({k: v[None] for k, v in weights.items()})
    except (RuntimeError, ValueError):
        # For example, a network that branches on its own values.
        return None
    return form


def _placed(values: Values, like: Tensor) -> Tensor:
    tensor = torch.as_tensor(values).to(like.device)
    return tensor.to(like.dtype) if tensor.is_floating_point() else tensor


def _loss_name(loss: Loss, targets: Tensor) -> str:
    if loss is cross_entropy:
        return "soft cross-entropy" if targets.is_floating_point() else "cross-entropy"
    return str(getattr(loss, "__name__", type(loss).__name__))
