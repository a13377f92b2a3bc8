"""Deliveries as PyTorch datasets and loaders, for training loops that are not ours."""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler, default_collate

from dissensus.errors import InputError
from dissensus_train.delivery.deliveries import Fixed
from dissensus_train.training.batches import example_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dissensus_train.delivery import Delivery, Mixing


class Delivered(Dataset[tuple[Any, Tensor, Tensor]]):
    """The examples of a delivery as a map-style dataset: `(inputs, target, item)` in the epoch that was set.

    Inputs are taken from a dataset of one element per training item. The epoch lies in shared memory, so that it
    reaches workers that are already running; it is `fresh` where it was set since it was last handed out.
    """

    def __init__(self, dataset: Any, delivery: Delivery) -> None:
        """Put a dataset (see `loader`) and a delivery over its items side by side."""
        if not hasattr(delivery, "examples"):
            raise InputError(
                f"loader: a {type(delivery).__name__} is no delivery; give dis.deliver(name, labels), such as 'sls'"
            )
        self.dataset, self.delivery, self.fresh = dataset, delivery, True
        self._item = delivery.examples
        if self._item.device.type != "cpu":
            raise InputError(f"loader: the delivery lies on {self._item.device}; make it with device='cpu'")
        # A frame is asked for columns.
        if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__") or hasattr(dataset, "columns"):
            raise InputError(
                f"loader: a {type(dataset).__name__} cannot be asked for the item at a place; give a dataset with a "
                "length and __getitem__, a tensor or an array"
            )
        items = int(self._item.max()) + 1 if len(self._item) else 0
        try:
            held = len(dataset)
        except TypeError as error:
            raise InputError(f"loader: a {type(dataset).__name__} has no length ({error}); give an array") from error
        if held != items:
            raise InputError(
                f"loader: {held:,} items in the dataset and {items:,} in the delivery; give the dataset of the "
                "delivered items, in the order of their labels"
            )
        self._epoch = torch.zeros((), dtype=torch.int64).share_memory_()
        self._made: tuple[int, Tensor, Mixing | None] | None = None

    @property
    def epoch(self) -> int:
        """The epoch whose targets are handed out."""
        return int(self._epoch)

    def set_epoch(self, epoch: int) -> None:
        """Hand out the targets of this epoch, from 0, from now on; in living workers too."""
        if not hasattr(epoch, "__index__") or epoch < 0:
            raise InputError(f"loader: epoch {epoch}; epochs are whole numbers, counted from 0")
        self._epoch.fill_(epoch)
        self.fresh = True

    def __len__(self) -> int:
        """Examples of an epoch: the items, or all their votes where items are repeated."""
        return len(self._item)

    def __getitem__(self, place: int) -> tuple[Any, Tensor, Tensor]:
        return self.__getitems__([place])[0]

    def __getitems__(self, places: Sequence[int]) -> list[tuple[Any, Tensor, Tensor]]:
        """The examples of a batch, as a `DataLoader` asks for them."""
        _, target, mixing = self._now()
        chosen = torch.as_tensor(places)
        item = self._item[chosen]
        inputs = self._inputs(item)
        if mixing is not None:
            partners = self._inputs(self._item[mixing.partner[chosen]])
            weights = mixing.weight[chosen].unbind()
            inputs = [_mixed(*triple) for triple in zip(inputs, partners, weights, strict=True)]
        return list(zip(inputs, target[chosen].unbind(), item.unbind(), strict=True))

    def _now(self) -> tuple[int, Tensor, Mixing | None]:
        """Targets and mixing of the epoch; made once per epoch in each process."""
        epoch = self.epoch
        if self._made is None or self._made[0] != epoch:
            self._made = epoch, self.delivery(epoch), self.delivery.mixing(epoch)
        return self._made

    def _inputs(self, item: Tensor) -> list[Any]:
        places = item.tolist()
        if hasattr(self.dataset, "__getitems__"):
            return [_inputs_of(element) for element in self.dataset.__getitems__(places)]
        return [_inputs_of(self.dataset[place]) for place in places]


class ExampleOrder(Sampler[int]):
    """The order in which our engines visit the examples of an epoch, by the seed of the run that is to be equalled."""

    def __init__(self, delivered: Delivered, *, seed: int) -> None:
        self.delivered, self.seed = delivered, seed

    def __len__(self) -> int:
        return len(self.delivered)

    def __iter__(self) -> Iterator[int]:
        yield from example_order(len(self), seed=self.seed, epoch=self.delivered.epoch).tolist()

    def set_epoch(self, epoch: int) -> None:
        """Move on; libraries that set the epoch of samplers move the labels with it."""
        self.delivered.set_epoch(epoch)


class Loader(DataLoader[tuple[Any, Tensor, Tensor]]):
    """A `DataLoader` of `Delivered` examples, and of the sampler's order, in the epoch that is set."""

    dataset: Delivered

    def set_epoch(self, epoch: int) -> None:
        """Hand out the targets of this epoch, from 0, in the order of this epoch."""
        self.dataset.set_epoch(epoch)
        if hasattr(self.sampler, "set_epoch"):
            self.sampler.set_epoch(epoch)

    def __iter__(self) -> Any:
        if not self.dataset.fresh and not isinstance(self.dataset.delivery, Fixed):
            warnings.warn(
                f"loader: epoch {self.dataset.epoch} is handed out again, so labels do not move; call "
                "loader.set_epoch(epoch) before each epoch",
                stacklevel=2,
            )
        self.dataset.fresh = False
        return super().__iter__()


def loader(
    dataset: Any,
    delivery: Delivery,
    *,
    batch_size: int = 64,
    seed: int = 0,
    sampler: Sampler[int] | None = None,
    collate_fn: Callable[[list[Any]], Any] = default_collate,
    **options: Any,
) -> Loader:
    """Batches `(inputs, target, item)` for any training loop.

        batches = dis.loader(dataset, dis.deliver("multipass", labels), batch_size=64)
        for epoch in range(40):
            batches.set_epoch(epoch)
            for inputs, target, item in batches:
                loss = F.cross_entropy(model(inputs), target)

    `target` is what the delivery gives: (batch,) class indices or (batch, classes) distributions, both of which
    `F.cross_entropy` and `dis.losses` take. `item` is (batch,) the place of each item in the dataset. Under `mixup`
    inputs are mixed like targets; under `repeated` an epoch has one example for each vote.

    Args:
        dataset: a tensor, an array or a map-style dataset, one element per training item, in the order of the labels
            that the delivery was made from. An element is the inputs, or a tuple of inputs and the index of a class,
            which the delivery replaces. Several inputs are a dictionary.
        delivery: as `dis.deliver` makes it, on the CPU.
        batch_size: examples in a batch.
        seed: of the order; with the seed of a run of ours, batches are those of the run.
        sampler: another order, over places in `delivery.examples`: `DistributedSampler(delivery.examples)` where
            several processes train together.
        collate_fn: makes a batch of a list of inputs.
        options: of PyTorch's `DataLoader`: `num_workers`, `persistent_workers`, `drop_last`.

    Examples:
        >>> import numpy as np, torch
        >>> from dissensus_train.delivery import deliver
        >>> from dissensus.labels import label
        >>> from dissensus.votes import votes_from_counts
        >>> delivered = deliver("soft", label(votes_from_counts(np.array([[2, 2], [0, 4]]))))
        >>> batches = loader(torch.eye(2), delivered, batch_size=2)
        >>> batches.set_epoch(0)
        >>> inputs, target, item = next(iter(batches))
        >>> target[item.argsort()].tolist()
        [[0.5, 0.5], [0.0, 1.0]]
    """
    if taken := [name for name in ("shuffle", "batch_sampler") if options.get(name)]:
        raise InputError(
            f"loader: {taken[0]} is not taken, since the order of an epoch comes from seed=; leave it out, or give "
            "another order as sampler="
        )
    if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size < 1:
        raise InputError(f"loader: batch_size is {batch_size!r}; give a whole number of examples, 1 or more")
    delivered = Delivered(dataset, delivery)
    source = getattr(sampler, "dataset", getattr(sampler, "data_source", delivered))
    if len(source) != len(delivered):
        raise InputError(
            f"loader: the sampler is of {len(source):,} places and the delivery has {len(delivered):,} examples; make "
            f"it with {type(sampler).__name__}(delivery.examples)"
        )
    order = ExampleOrder(delivered, seed=seed) if sampler is None else sampler
    try:
        return Loader(
            delivered, batch_size=batch_size, sampler=order, collate_fn=partial(_collated, collate_fn), **options
        )
    except (TypeError, ValueError) as error:
        raise InputError(f"loader: PyTorch's DataLoader refuses its options ({error}); change or drop them") from error


def _collated(
    collate: Callable[[list[Any]], Any], examples: Sequence[tuple[Any, Tensor, Tensor]]
) -> tuple[Any, Tensor, Tensor]:
    inputs, target, item = zip(*examples, strict=True)
    return collate(list(inputs)), torch.stack(target), torch.stack(item)


def _inputs_of(element: Any) -> Any:
    """An element of a dataset without its own label."""
    if not isinstance(element, tuple):
        return element
    kind = str(getattr(element[-1], "dtype", type(element[-1]).__name__)).removeprefix("torch.")
    is_class = kind.startswith(("int", "uint", "bool")) and getattr(element[-1], "ndim", 0) == 0
    if len(element) == 1 or (len(element) == 2 and is_class):
        return element[0]
    raise InputError(
        f"loader: an element of the dataset has {len(element)} parts, the last is {kind}, and which are inputs is not "
        "known; give a dataset of inputs (several as a dictionary), or of pairs of inputs and class index"
    )


def _mixed(inputs: Any, partner: Any, weight: Tensor) -> Tensor:
    try:
        own, other = torch.as_tensor(inputs), torch.as_tensor(partner)
    except (TypeError, ValueError, RuntimeError):
        own = other = torch.empty(0, dtype=torch.int64)
    if not own.is_floating_point() or own.shape != other.shape:
        kind = f"{own.dtype} of shape {tuple(own.shape)}" if isinstance(inputs, Tensor) else type(inputs).__name__
        raise InputError(
            f"loader: mixup adds up the inputs of two items, and the inputs are {kind}; give tensors of real numbers, "
            "all of one shape, or another delivery"
        )
    return weight * own + (1 - weight) * other
