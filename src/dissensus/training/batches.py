"""Batches: which examples, in which order, augmented and mixed how. The same on every engine and device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from dissensus.randomness import Purpose, stream

if TYPE_CHECKING:
    from dissensus.delivery import Delivery
    from dissensus.training.run import Run

PADDING = 4
"""Pixels of zero around an image before a random crop of its own size."""


@dataclass(frozen=True, eq=False)
class Epoch:
    """Everything random about an epoch, in the order in which examples are visited.

    Attributes:
        row: (examples,) the training item of each example.
        target: (examples, classes) float32 distributions.
        shift: (examples, 3) row offset, column offset and whether to flip; None without augmentation.
        partner: (examples,) the training item that is mixed in; None without mixing.
        weight: (examples,) share of the example itself, None without mixing.
    """

    row: Tensor
    target: Tensor
    shift: Tensor | None = None
    partner: Tensor | None = None
    weight: Tensor | None = None


def epoch_of(run: Run, delivery: Delivery, epoch: int, *, classes: int) -> Epoch:
    """The epoch of a run, on the CPU or wherever its delivery lies."""
    examples = delivery.examples
    device, n_examples = examples.device, examples.shape[0]
    order = torch.from_numpy(stream(run.seed, Purpose.ORDER, epoch).permutation(n_examples)).to(device)
    target = delivery(epoch)[order]
    if target.ndim == 1:
        target = F.one_hot(target, classes)
    shift = None
    if run.training.augmentation == "crop-flip":
        generator = stream(run.seed, Purpose.AUGMENTATION, epoch)
        high = np.array([2 * PADDING + 1, 2 * PADDING + 1, 2])
        shift = torch.from_numpy(generator.integers(0, high, (n_examples, 3))).to(device)
    mixing = delivery.mixing(epoch)
    return Epoch(
        row=examples[order],
        target=target.float(),
        shift=shift,
        partner=None if mixing is None else examples[mixing.partner[order]],
        weight=None if mixing is None else mixing.weight[order],
    )


def padded(features: Tensor) -> Tensor:
    """Images with the border that random crops reach into."""
    return F.pad(features, (PADDING,) * 4)


def crop_flip(images: Tensor, row: Tensor, shift: Tensor) -> Tensor:
    """(..., channels, height, width) crops of the chosen padded images, flipped where asked.

    Args:
        images: (items, channels, height + 2 padding, width + 2 padding).
        row: (...) which image.
        shift: (..., 3) offsets and flip.
    """
    height, width = images.shape[-2] - 2 * PADDING, images.shape[-1] - 2 * PADDING
    down = shift[..., 0, None] + torch.arange(height, device=images.device)
    across = torch.arange(width, device=images.device).expand(*shift.shape[:-1], width)
    across = torch.where(shift[..., 2, None] == 1, width - 1 - across, across) + shift[..., 1, None]
    channel = torch.arange(images.shape[1], device=images.device)[:, None, None]
    return images[row[..., None, None, None], channel, down[..., None, :, None], across[..., None, None, :]]


def inputs(features: Tensor, epoch: Epoch, batch: slice) -> Tensor:
    """The inputs of one batch; `features` are the training items', padded where the epoch is augmented."""
    row = epoch.row[batch]
    if epoch.shift is None:
        x = features[row]
        other = None if epoch.partner is None else features[epoch.partner[batch]]
    else:
        shift = epoch.shift[batch]
        x = crop_flip(features, row, shift)
        other = None if epoch.partner is None else crop_flip(features, epoch.partner[batch], shift)
    if other is None or epoch.weight is None:
        return x
    weight = epoch.weight[batch].reshape(-1, *(1,) * (x.ndim - 1))
    return weight * x + (1 - weight) * other
