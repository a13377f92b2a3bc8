"""Batches: which examples, in which order, augmented and mixed how. The same on every engine and device."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from dissensus.randomness import Purpose, stream

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dissensus.arrays import Ints
    from dissensus_train.delivery import Delivery
    from dissensus_train.training.inputs import SparseRows
    from dissensus_train.training.run import Run

PADDING = 4
"""Pixels of zero around an image before a random crop of its own size."""


@dataclass(frozen=True, eq=False)
class Epoch:
    """Everything random about an epoch, in the order in which examples are visited.

    `row` is the training item of each example, its target an (examples, classes) float32 distribution; `shift`,
    (examples, 3), row offset, column offset and whether to flip; `partner` the training item that is mixed in, `weight`
    the share of the example itself; `who` whose answer it is. The last four are None where there is none.
    """

    row: Tensor
    target: Tensor
    shift: Tensor | None = None
    partner: Tensor | None = None
    weight: Tensor | None = None
    who: Tensor | None = None


# Methods of one seed visit their examples in one order, and are asked for it one after the other.
@lru_cache(maxsize=2)
def example_order(examples: int, *, seed: int, epoch: int) -> Ints:
    """(examples,) the order in which an epoch visits its examples."""
    return stream(seed, Purpose.ORDER, epoch).permutation(examples)


def epoch_of(run: Run, delivery: Delivery, epoch: int, *, classes: int) -> Epoch:
    """The epoch of a run, on the CPU or wherever its delivery lies."""
    examples = delivery.examples
    device, n_examples = examples.device, examples.shape[0]
    order = torch.from_numpy(example_order(n_examples, seed=run.seed, epoch=epoch)).to(device)
    target = delivery(epoch)[order]
    if target.ndim == 1:
        target = torch.eye(classes, device=device)[target]
    shift = None
    if run.training.augmentation == "crop-flip":
        generator = stream(run.seed, Purpose.AUGMENTATION, epoch)
        high = np.array([2 * PADDING + 1, 2 * PADDING + 1, 2])
        shift = torch.from_numpy(generator.integers(0, high, (n_examples, 3))).to(device)
    mixing = delivery.mixing(epoch)
    # Deliveries of a user's own need not know of it.
    who = getattr(delivery, "annotator", None)
    return Epoch(
        row=examples[order],
        target=target.float(),
        shift=shift,
        partner=None if mixing is None else examples[mixing.partner[order]],
        weight=None if mixing is None else mixing.weight[order],
        who=None if who is None else who[order],
    )


def padded(features: Tensor) -> Tensor:
    """Images with the border that random crops reach into."""
    return F.pad(features, (PADDING,) * 4)


def crop_flip(images: Tensor, row: Tensor, shift: Tensor) -> Tensor:
    """(..., channels, height, width) crops of the chosen padded images, flipped where asked; `shift` is (..., 3)."""
    height, width = images.shape[-2] - 2 * PADDING, images.shape[-1] - 2 * PADDING
    down = shift[..., 0, None] + torch.arange(height, device=images.device)
    across = torch.arange(width, device=images.device).expand(*shift.shape[:-1], width)
    across = torch.where(shift[..., 2, None] == 1, width - 1 - across, across) + shift[..., 1, None]
    channel = torch.arange(images.shape[1], device=images.device)[:, None, None]
    return images[row[..., None, None, None], channel, down[..., None, :, None], across[..., None, None, :]]


def inputs(features: Tensor | SparseRows, epoch: Epoch, batch: slice | Tensor) -> Tensor:
    """The inputs of one batch, (..., batch, ...), by places of the epoch: of one run, or of stacked runs at once.

    Features are those of the training items, padded where the epoch is augmented.
    """
    shift = None if epoch.shift is None else epoch.shift[..., batch, :]

    def take(row: Tensor) -> Tensor:
        if shift is None:
            return features[row]
        assert isinstance(features, Tensor), "only images are augmented"
        return crop_flip(features, row, shift)

    x = take(epoch.row[..., batch])
    if epoch.partner is None or epoch.weight is None:
        return x
    weight = epoch.weight[..., batch]
    weight = weight.reshape(*weight.shape, *(1,) * (x.ndim - weight.ndim))
    return weight * x + (1 - weight) * take(epoch.partner[..., batch])


def each_part(epoch: Epoch, change: Callable[[Tensor], Tensor]) -> Epoch:
    """The same change made to every part that is there."""
    return Epoch(*(None if part is None else change(part) for part in _parts(epoch)))  # type: ignore[arg-type]


def stacked_epoch(epochs: Sequence[Epoch], into: Epoch | None = None) -> Epoch:
    """The epochs of several runs as one, with runs in front; written into another one's tensors where it is given."""
    columns = zip(*map(_parts, epochs), [None] * len(fields(Epoch)) if into is None else _parts(into), strict=True)
    return Epoch(*(None if parts[0] is None else torch.stack(parts, out=out) for *parts, out in columns))  # type: ignore[arg-type]


def placed_epoch(epoch: Epoch, into: Epoch | None, place: torch.device) -> Epoch:
    """An epoch on a device; in the tensors of another, which a captured step reads from where they are, if given."""
    if into is None:
        return each_part(epoch, lambda part: part.to(place, copy=True))
    for new, old in zip(_parts(epoch), _parts(into), strict=True):
        if new is not None:
            old.copy_(new, non_blocking=True)
    return into


def _parts(epoch: Epoch) -> list[Any]:
    return [getattr(epoch, field.name) for field in fields(Epoch)]
