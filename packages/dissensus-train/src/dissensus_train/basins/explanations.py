"""What a network looked at: Grad-CAM or input gradients, and how alike these maps are from seed to seed."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from dissensus.errors import InputError
from dissensus_train.basins.objectives import outputs_of
from dissensus_train.basins.sources import each_tensor, tensors_in
from dissensus_train.basins.stored import Stored
from dissensus_train.basins.summary import mean_over_pairs
from dissensus_train.training.last_layer import layers_that_run
from dissensus_train.training.loop import same_bits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dissensus.arrays import Ints, Table
    from dissensus.bootstrap import Estimate
    from dissensus_train.basins.objectives import MeasuredOn, Objective

    Images = np.ndarray[Any, np.dtype[np.float64]]
    """Maps, whatever the number of sides before height and width."""

GRAD_CAM = "Grad-CAM"
GRADIENTS = "input gradients"


@dataclass(frozen=True, eq=False, kw_only=True)
class ExplanationStability(Stored):
    """How alike the maps of several seeds are: the mean over pairs of seeds and over items.

    Attributes:
        method: Grad-CAM of the convolution that runs last, or input gradients for a network without convolutions.
        cosine: of the angle between two maps, from 0 to 1; with an interval over items and seeds.
        correlation: Pearson's, of the same maps.
        seeds: how many.
        pairs: how many pairs of seeds.
        defined: the share of items whose maps are all different from 0; the others are left out.
        examples: (items shown,) places of some items among those measured.
        maps: (items shown, seeds, height, width) maps of these items, each divided by its largest value.
        measured_on: loss and data.
    """

    method: str
    cosine: Estimate
    correlation: Estimate
    seeds: int
    pairs: int
    defined: float
    examples: Ints
    maps: Images
    measured_on: MeasuredOn


def explain(measured: Objective, inputs: Any, classes: Tensor) -> tuple[Tensor, str]:
    """(items, height, width) maps of what speaks for a class of each item, 0 or more, and the method.

    Grad-CAM (Selvaraju et al. 2017) where the network has a convolution that gives more than one place: its channels,
    weighted by the mean gradient of the class's logit over places, summed, and cut at 0. Otherwise the absolute
    gradient of the logit with respect to the inputs, the largest over colours (Simonyan et al. 2014); for networks that
    read tokens, the length of the gradient with respect to each token's embedding. Maps of texts have height 1.

    Args:
        measured: the objective of a run.
        inputs: a batch of what the network takes.
        classes: (items,) which logit is explained.
    """
    layer = _last_convolution(measured.model, inputs)
    if layer is not None:
        with _watched(layer) as seen:
            slope = _slope(measured, inputs, classes, seen)
            channels = seen[0]
        weight = slope.flatten(2).mean(dim=2)
        return _as_images(torch.relu(torch.einsum("nk,nk...->n...", weight, channels.detach()))), GRAD_CAM
    if real := [part for part in tensors_in(inputs) if part.is_floating_point()]:
        leaf = real[0].clone().requires_grad_()
        slope = _slope(measured, each_tensor(inputs, lambda part: leaf if part is real[0] else part), classes, [leaf])
        return _as_images(slope.abs().amax(dim=1) if slope.ndim == 4 else slope.abs()), GRADIENTS
    embeddings = [module for module in measured.model.modules() if isinstance(module, nn.Embedding)]
    if not embeddings:
        raise InputError("explanations: the inputs are whole numbers and the network has no nn.Embedding to explain by")
    with _watched(embeddings[0]) as seen:
        slope = _slope(measured, inputs, classes, seen)
    return _as_images(slope.norm(dim=-1)), GRADIENTS


def explanation_stability(objectives: Sequence[Objective], *, examples: int = 6) -> ExplanationStability:
    """How alike seeds explain the same items: maps of the class that most people chose, for every pair of seeds.

    Args:
        objectives: one for each seed, on the same items; two or more.
        examples: how many items' maps to keep, evenly spread over all.
    """
    first = objectives[0]
    if len(objectives) < 2:
        raise InputError("explanations: one run alone; give the runs of two seeds or more")
    if len({measured.measured_on for measured in objectives}) > 1:
        raise InputError("explanations: the runs are measured on different items; measure all on the same")
    pairs = list(combinations(range(len(objectives)), 2))
    shown = np.unique(np.linspace(0, first.items - 1, min(examples, first.items)).round().astype(np.int64))
    cosines, correlations, kept, done, method = [], [], [], 0, ""
    for inputs, targets in first.chunks():
        classes = targets if not targets.is_floating_point() else targets.argmax(dim=1)
        of_seeds, methods = zip(*(explain(measured, inputs, classes) for measured in objectives), strict=True)
        stacked, method = torch.stack(of_seeds), methods[0]
        here = shown[(shown >= done) & (shown < done + len(targets))] - done
        largest = stacked[:, here].flatten(2).amax(dim=2)[..., None, None].clamp_min(torch.finfo(stacked.dtype).tiny)
        kept += list((stacked[:, here] / largest).transpose(0, 1).double().cpu().numpy())
        flat = stacked.flatten(2).double()
        cosines.append(_cosines(flat, pairs))
        correlations.append(_cosines(flat - flat.mean(dim=2, keepdim=True), pairs))
        done += len(targets)
    by_item = [torch.cat(parts, dim=1).cpu().numpy() for parts in (cosines, correlations)]
    whole = np.isfinite(by_item[0]).all(axis=0)
    if not whole.any():
        raise InputError("explanations: no item has a map other than 0 for every seed; nothing can be compared")

    def mean(values: Table, low: float) -> Estimate:
        """The mean of (pairs, items) values, over items that have one in every pair."""
        complete = values[:, np.isfinite(values).all(axis=0)]
        items = complete.shape[1]
        variance = float(complete.mean(axis=0).var(ddof=1)) / items if items > 1 else 0.0
        return mean_over_pairs(complete.mean(axis=1), pairs, item_variance=variance, items=items, low=low, high=1.0)

    # Texts of different lengths are filled up with 0.
    width = max(maps.shape[-1] for maps in kept)
    return ExplanationStability(
        method=method,
        cosine=mean(by_item[0], 0.0),
        correlation=mean(by_item[1], -1.0),
        seeds=len(objectives),
        pairs=len(pairs),
        defined=float(whole.mean()),
        examples=shown,
        maps=np.stack([np.pad(maps, ((0, 0), (0, 0), (0, width - maps.shape[-1]))) for maps in kept]),
        measured_on=first.measured_on,
    )


def _cosines(flat: Tensor, pairs: Sequence[tuple[int, int]]) -> Tensor:
    """(pairs, items) cosines between (seeds, items, places) maps; NaN where one of them is 0."""
    length = flat.norm(dim=2, keepdim=True)
    unit = torch.where(length > 0, flat / length, torch.nan)
    return torch.stack([(unit[one] * unit[other]).sum(dim=1) for one, other in pairs])


def _as_images(maps: Tensor) -> Tensor:
    """(items, height, width) of maps with any number of sides; height 1 where they have only one."""
    if maps.ndim == 3:
        return maps
    return maps.flatten(1)[:, None] if maps.ndim < 3 else maps.flatten(2)


def _slope(measured: Objective, inputs: Any, classes: Tensor, seen: list[Tensor]) -> Tensor:
    """The gradient of each item's chosen logit with respect to what was seen of it."""
    with torch.enable_grad(), same_bits():
        logits = outputs_of(measured.model, inputs)
        if logits.ndim != 2:
            raise InputError("explanations: the model does not give (items, classes) logits; there is none to explain")
        (slope,) = torch.autograd.grad(logits.gather(1, classes[:, None]).sum(), seen[0])
    return slope


@contextmanager
def _watched(layer: nn.Module) -> Iterator[list[Tensor]]:
    """What a layer gives in the next pass, as the place where gradients begin."""
    seen: list[Tensor] = []

    def begin(_: nn.Module, __: Any, out: Tensor) -> Tensor:
        seen[:] = [out.detach().requires_grad_()]
        # A layer after it may write into what it is given.
        return seen[0].clone()

    with layer.register_forward_hook(begin):
        yield seen


def _last_convolution(model: nn.Module, inputs: Any) -> nn.Module | None:
    """The convolution that runs last of those that give more than one place; None where there is none."""
    ran = layers_that_run(
        model,
        lambda: outputs_of(model, each_tensor(inputs, lambda part: part[:1])),
        wanted=lambda layer: isinstance(layer, nn.modules.conv._ConvNd),
        giving=lambda out: out.ndim > 2 and out[0, 0].numel() > 1,
    )
    return model.get_submodule(ran[-1]) if ran else None
