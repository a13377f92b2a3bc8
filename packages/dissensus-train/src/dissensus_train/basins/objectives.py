"""The objective: a model's mean loss over fixed data as a function of its weights, one flat vector.

Everything in this room is measured on an objective, and every result says which one it was.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypedDict

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from dissensus.errors import InputError, choices
from dissensus_train.basins.linearised import random_numbers
from dissensus_train.basins.sources import Fingerprint, each_tensor, rows_in, source_of, tensors_in
from dissensus_train.training.loop import same_bits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np

    from dissensus_train.basins.sources import Batch, Chunks

    Loss: TypeAlias = Callable[[Tensor, Tensor], Tensor]
    """(items, classes) logits and (items, ...) targets to (items,) losses."""

CHUNK: Final = 250
"""How many items are computed at once: few enough for a processor's cache, enough to keep a GPU busy."""

SOFT: Final = "soft cross-entropy"
"""What cross-entropy is called where the targets are distributions."""


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """(items,) -sum_k p_k log q_k for (items, classes) probabilities, or -log q_y for (items,) class indices."""
    return F.cross_entropy(logits, target, reduction="none")


def binary_cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """(items,) mean over outputs of the cross-entropy of yes and no, for (items, outputs) shares of yes."""
    return _by_item(F.binary_cross_entropy_with_logits(logits, target.to(logits.dtype), reduction="none"))


def squared_error(outputs: Tensor, target: Tensor) -> Tensor:
    """(items,) mean over outputs of (output - target)^2."""
    return _by_item((outputs - target.to(outputs.dtype).view_as(outputs)) ** 2)


LOSSES: Final[dict[str, Loss]] = {
    "cross-entropy": cross_entropy,
    "binary-cross-entropy": binary_cross_entropy,
    "squared-error": squared_error,
}
"""Losses by name."""


class ObjectiveOptions(TypedDict, total=False):
    """The options of `objective`, for functions that hand them on; it says what they mean."""

    loss: Loss | str
    data: str
    chunk: int
    device: str | torch.device | None


@dataclass(frozen=True, kw_only=True)
class MeasuredOn:
    """What a measurement was made on; two measurements compare only where these agree.

    All items are used. The fingerprint is a hash of inputs and targets; empty where it was not taken.
    """

    loss: str
    data: str
    items: int
    fingerprint: str = ""

    def __str__(self) -> str:
        """In words."""
        return f"{self.loss} on {self.items:,} items ({self.data})"


@dataclass(frozen=True, eq=False, kw_only=True)
class Measurement:
    """A result: what it took, whether that was enough, and the loss and data that it is of, where they are known."""

    iterations: int
    converged: bool
    measured_on: MeasuredOn | None


@dataclass(frozen=True, eq=False, kw_only=True)
class Objective:
    """Mean loss over fixed items as a function of the trainable weights, (size,) one after another.

    The model is a copy in evaluation mode, so that what happens to the original changes nothing here. `buffers` are
    those that hold real numbers (batch statistics), one after another.
    """

    model: nn.Module
    shapes: dict[str, torch.Size]
    weights: Tensor
    buffer_shapes: dict[str, torch.Size]
    buffers: Tensor
    source: Chunks
    loss: Loss
    chunk: int
    measured_on: MeasuredOn

    @property
    def size(self) -> int:
        """The number of trainable weights."""
        return self.weights.shape[0]

    @property
    def dtype(self) -> torch.dtype:
        """Of the weights."""
        return self.weights.dtype

    @property
    def device(self) -> torch.device:
        """Of the weights."""
        return self.weights.device

    @property
    def items(self) -> int:
        """The number of items."""
        return self.measured_on.items

    def named(self, weights: Tensor) -> dict[str, Tensor]:
        """The parts of a flat vector, by parameter name."""
        return _named(weights, self.shapes)

    @property
    def named_buffers(self) -> dict[str, Tensor]:
        """The batch statistics, by name."""
        return _named(self.buffers, self.buffer_shapes)

    def logits(self, weights: Tensor, inputs: Any, *, buffers: Tensor | None = None) -> Tensor:
        """(items, classes) of the model with these weights, and these batch statistics where given."""
        own = {} if buffers is None else _named(buffers, self.buffer_shapes)
        return outputs_of(self.model, inputs, {**self.named(weights), **own})

    def chunks(self) -> Iterator[Batch]:
        """Inputs and targets, some items at a time."""
        return self.source(0)

    @property
    def targets(self) -> Tensor:
        """(items, ...) of all items."""
        return torch.cat([targets for _, targets in self.chunks()])

    @torch.no_grad()
    def losses(self, points: Tensor, *, buffers: Tensor | None = None) -> Tensor:
        """(points, items) losses at each of the (points, size) weight vectors."""
        own = [None] * len(points) if buffers is None else list(buffers)

        def of_chunk(x: Any, t: Tensor) -> Tensor:
            return torch.stack([self.loss(self.logits(w, x, buffers=b), t) for w, b in zip(points, own, strict=True)])

        with same_bits():
            return torch.cat([of_chunk(x, t) for x, t in self.chunks()], dim=1)

    def gradient(self, weights: Tensor) -> Tensor:
        """(size,) gradient of the mean loss at a weight vector."""

        def total(weights: Tensor, x: Any, t: Tensor) -> Tensor:
            return self.loss(self.logits(weights, x), t).sum()

        slope = torch.zeros_like(weights)
        with same_bits():
            for x, t in self.chunks():
                slope += grad(total)(weights, x, t)
        return slope / self.items

    @torch.no_grad()
    def statistics(self, weights: Tensor, buffers: Tensor) -> Tensor:
        """(buffers,) with the batch statistics that the network has on the items with these weights, taken anew.

        Between two runs, neither's fit: what enters a layer varies less there than with either (Jordan et al. 2022).
        """
        model = copy.deepcopy(self.model)
        norms = [module for module in model.modules() if isinstance(module, FixedBatchNorm)]
        if not norms or min(self.chunk, self.items) < 2:
            return buffers  # One item has no spread.
        for name, value in _named(buffers, self.buffer_shapes).items():
            model.get_buffer(name).copy_(value)
        for norm in norms:
            norm.reset_running_stats()
            norm.train().momentum = None  # an average over all chunks
        with same_bits():
            for x, t in self.chunks():
                if len(t) > 1:
                    outputs_of(model, x, self.named(weights))
        return torch.cat([model.get_buffer(name).reshape(-1) for name in self.buffer_shapes])


def _named(vector: Tensor, shapes: dict[str, torch.Size]) -> dict[str, Tensor]:
    parts = vector.split([shape.numel() for shape in shapes.values()])
    return {name: part.view(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}


def objective(
    model: nn.Module,
    inputs: Any,
    targets: Any = None,
    *,
    loss: Loss | str = cross_entropy,
    data: str = "the given items",
    chunk: int = CHUNK,
    device: str | torch.device | None = None,
) -> Objective:
    """The mean loss of a model over these items, as a function of its trainable weights.

    Args:
        model: any network that gives one row of outputs for each item, as a tensor, the first of a tuple, or `logits`
            of a mapping; in evaluation mode.
        inputs: (items, ...) what it takes; a tuple is given by position, a mapping by name. Or a DataLoader, a Dataset
            or a list of batches (inputs, targets), which are read anew on each pass; then without targets. Batches that
            are mappings hold their targets as labels, label, targets or target.
        targets: (items, classes) distributions or (items,) class indices, or whatever the loss takes.
        loss: a name in `LOSSES`, a loss of PyTorch, or a function that gives (items,) losses; the loss of an item must
            not depend on other items.
        data: name of the items, for the results.
        chunk: how many items are computed at once; a loader's batches stay as they are.
        device: where to compute; by default where the model is.
    """
    refuse_training_mode(model)
    weights = {name: value for name, value in model.named_parameters() if value.requires_grad}
    if not weights:
        raise InputError("basins: the model has no trainable parameters; set requires_grad on those to be measured")
    place = torch.device(device) if device is not None else next(iter(weights.values())).device
    try:
        own = _fix_statistics(copy.deepcopy(model).to(place).requires_grad_(False))
    except RuntimeError as error:
        first = str(error).split(".")[0]
        raise InputError(
            f"basins: the model cannot be copied ({first}); take out hooks such as torch.nn.utils.weight_norm"
        ) from error
    parts = {name: value.detach().to(place) for name, value in weights.items()}
    flat = torch.cat([value.reshape(-1) for value in parts.values()])
    chosen = _loss_of(loss)
    source = source_of(inputs, targets, chunk=max(1, chunk), like=flat)
    with same_bits():
        size, measured_on = _looked_through(own, source, chosen, data)
    real = {name: value for name, value in own.named_buffers() if value.is_floating_point()}
    return Objective(
        model=own,
        shapes={name: value.shape for name, value in parts.items()},
        weights=flat,
        buffer_shapes={name: value.shape for name, value in real.items()},
        buffers=torch.cat([value.reshape(-1) for value in real.values()]) if real else flat.new_zeros(0),
        source=source,
        loss=chosen,
        chunk=size,
        measured_on=measured_on,
    )


class FixedBatchNorm(nn.modules.batchnorm._BatchNorm):
    """A batch normalisation in evaluation mode as plain arithmetic: x scale + shift by channel.

    PyTorch's own layer has different derivative formulas in nested forward mode, so that one tangent gets two names and
    everything after it is computed twice. One multiplication and one addition avoid that.
    """

    def _check_input_dim(self, _: Tensor) -> None:
        """PyTorch's layer that this one was has checked it."""

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            return super().forward(x)
        assert self.running_mean is not None
        assert self.running_var is not None
        scale = (self.running_var + self.eps).rsqrt() * (1 if self.weight is None else self.weight)
        shift = (0 if self.bias is None else self.bias) - self.running_mean * scale
        by_channel = (1, -1, *(1,) * (x.ndim - 2))
        return x * scale.view(by_channel) + shift.view(by_channel)


def _fix_statistics(model: nn.Module) -> nn.Module:
    """Turn the batch normalisations of a model into plain arithmetic, in place; it computes the same."""
    for module in model.modules():
        if type(module) in (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d):
            module.__class__ = FixedBatchNorm
    return model


def outputs_of(model: nn.Module, inputs: Any, state: dict[str, Tensor] | None = None) -> Tensor:
    """(items, ...) outputs of a model, with other weights where given; attention by formulas that have derivatives."""
    names = dict(inputs) if isinstance(inputs, Mapping) else {}
    positions: tuple[Any, ...] = () if names else inputs if isinstance(inputs, tuple) else (inputs,)
    with derivable(model):
        out: Any = functional_call(model, state or {}, positions, names)
    if isinstance(out, Mapping):
        if "logits" not in out:
            raise InputError(
                f"basins: the model gives {', '.join(map(str, out))}; wrap it to give a tensor, or 'logits'"
            )
        out = out["logits"]
    elif isinstance(out, tuple | list) and out:
        out = out[0]
    if not isinstance(out, Tensor):
        raise InputError(f"basins: the model gives a {type(out).__name__}; wrap it so that it gives a tensor")
    return out


@contextmanager
def derivable(model: nn.Module) -> Iterator[None]:
    """Attention and recurrent layers as plain arithmetic: fused kernels have no second derivatives, or no first."""
    fast = torch.backends.mha.get_fastpath_enabled()
    libraries: tuple[Any, ...] = torch.backends.mkldnn, torch.backends.cudnn
    were = [library.enabled for library in libraries]
    torch.backends.mha.set_fastpath_enabled(False)
    recurrent = any(isinstance(module, nn.RNNBase) for module in model.modules())
    try:
        for library, was in zip(libraries, were, strict=True):
            library.enabled = was and not recurrent
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        for library, was in zip(libraries, were, strict=True):
            library.enabled = was


@torch.no_grad()
def _looked_through(model: nn.Module, source: Chunks, loss: Loss, data: str) -> tuple[int, MeasuredOn]:
    """The size of the first chunk and what will be measured on, all items checked."""
    fingerprint, items, size, name = Fingerprint(), 0, 0, ""
    for inputs, targets in source(0):
        count = rows_in(inputs)
        if targets.ndim < 1 or len(targets) != count:
            shape = tuple(targets.shape)
            raise InputError(
                f"basins: {count:,} rows of features and targets of shape {shape}; give one target per item"
            )
        if not items:
            size, name = count, _loss_name(loss, targets)
            outputs = outputs_of(model, inputs)
        if loss is cross_entropy:
            _check_classes(outputs, targets, items)
        if not items:
            _check_loss(loss, outputs, targets)
            _check_apart(model, inputs, outputs)
        fingerprint.add(inputs, targets)
        items += count
    if not items:
        raise InputError("basins: the loader gives no items; give at least one")
    return size, MeasuredOn(loss=name, data=data, items=items, fingerprint=str(fingerprint))


def _check_apart(model: nn.Module, inputs: Any, outputs: Tensor) -> None:
    """Raise where half of a batch alone gives something else: everything here is a sum over items, in any chunks."""
    half = len(outputs) // 2
    # Tables of sparse rows and of tokens are read by our own layers, row by row.
    if not half or any(len(part) != len(outputs) for part in tensors_in(inputs)):
        return
    alone = outputs_of(model, each_tensor(inputs, itemgetter(slice(half))))
    close = 1e-3 if torch.finfo(outputs.dtype).bits >= 32 else 0.05
    if not torch.allclose(alone, outputs[:half], close, close * float(outputs.abs().max()), equal_nan=True):
        again = outputs_of(model, inputs)
        if not torch.allclose(again, outputs, close, close * float(outputs.abs().max()), equal_nan=True):
            raise random_numbers("the same items computed twice differ")
        raise InputError(
            "basins: what the model gives for an item depends on the other items of its batch, so that every result "
            "would change with the size of chunks; compute each item by itself"
        )


def _check_classes(outputs: Tensor, targets: Tensor, before: int) -> None:
    """Raise unless targets are class indices or distributions over the outputs."""
    classes = outputs.shape[-1]
    if outputs.ndim != 2:
        raise InputError(
            f"basins: the model gives outputs of shape {tuple(outputs.shape)}, and cross-entropy takes (items, "
            "classes); give a loss of your own"
        )
    if not targets.is_floating_point():
        if targets.ndim != 1:
            raise InputError(
                f"basins: targets of whole numbers have shape {tuple(targets.shape)}; give (items,) class indices, or "
                "distributions as real numbers"
            )
        wrong = (targets < 0) | (targets >= classes)
        if wrong.any():
            row = int(wrong.nonzero()[0])
            raise InputError(
                f"basins: the target of item {before + row} is {int(targets[row])}, and the model has {classes} "
                f"outputs; give class indices from 0 to {classes - 1}"
            )
        return
    if targets.ndim != 2 or targets.shape[1] != classes:
        shape = ", ".join(["items", *map(str, targets.shape[1:])])
        raise InputError(
            f"basins: targets of shape ({shape}) for a model of {classes} outputs; give (items, {classes}) "
            "distributions, or (items,) class indices as whole numbers"
        )
    wrong = ~((targets >= 0).all(dim=1) & ((targets.sum(dim=1) - 1).abs() <= 1e-3))
    if wrong.any():
        row = int(wrong.nonzero()[0])
        raise InputError(
            f"basins: the target of item {before + row} sums to {float(targets[row].sum()):g} with a least share of "
            f"{float(targets[row].min()):g}; give distributions that sum to 1, counts divided by their sum"
        )


def _check_loss(loss: Loss, outputs: Tensor, targets: Tensor) -> None:
    try:
        losses = loss(outputs, targets)
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        raise InputError(
            f"basins: the loss cannot take outputs of shape {tuple(outputs.shape)} and targets of shape "
            f"{tuple(targets.shape)} ({str(error).splitlines()[0]}); give targets that fit the loss"
        ) from error
    if losses.shape != outputs.shape[:1]:
        shape = tuple(losses.shape)
        raise InputError(f"basins: the loss gives shape {shape} for {len(outputs)} items; use reduction='none'")


def _loss_of(loss: Loss | str) -> Loss:
    if isinstance(loss, str):
        if loss not in LOSSES:
            raise InputError(f"basins: no loss '{loss}'{choices(loss, LOSSES)}, or give a function")
        return LOSSES[loss]
    if isinstance(loss, nn.Module) and hasattr(loss, "reduction"):
        unreduced: Any = copy.deepcopy(loss)
        unreduced.reduction = "none"

        def by_item(outputs: Tensor, targets: Tensor) -> Tensor:
            return _by_item(unreduced(outputs, targets))

        by_item.__name__ = type(loss).__name__
        return by_item
    return loss


def _by_item(values: Tensor) -> Tensor:
    return values.flatten(1).mean(dim=1) if values.ndim > 1 else values


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


def mean_and_error(values: Tensor) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """(...) means over the last axis (items) and their standard errors, in double precision."""
    exact = values.double()
    n = exact.shape[-1]
    spread = exact.std(dim=-1) if n > 1 else torch.full_like(exact[..., 0], torch.nan)
    return exact.mean(dim=-1).cpu().numpy(), (spread / n**0.5).cpu().numpy()


def _loss_name(loss: Loss, targets: Tensor) -> str:
    if loss is cross_entropy:
        return SOFT if targets.is_floating_point() else "cross-entropy"
    known = next((name for name, function in LOSSES.items() if function is loss), None)
    return known or str(getattr(loss, "__name__", type(loss).__name__))
