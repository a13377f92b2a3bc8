"""Where the items of an objective come from: tensors held on the device, or a loader that is read anew on each pass.

Inputs are whatever the network takes: a tensor, or tensors in a tuple (positions), a mapping (names) or a dataclass.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, RandomSampler, SequentialSampler, Subset

from dissensus.errors import InputError
from dissensus_train.training.inputs import SparseRows, Tokens

if TYPE_CHECKING:
    from collections.abc import Callable

TARGETS = ("labels", "label", "targets", "target")
"""Under which name a batch that is a mapping may hold its targets."""

Batch: TypeAlias = tuple[Any, Tensor]
"""Inputs and targets of some items."""


Chunks: TypeAlias = "Callable[[int], Iterator[Batch]]"
"""Items in chunks, in the same order on each pass, from the chunk of a number on."""


def _held(inputs: Any, targets: Tensor, chunk: int) -> Chunks:
    """Items held on a device: tensors with one row for each item, or a table of sparse rows or of tokens."""
    table = isinstance(inputs, SparseRows | Tokens)

    def chunks(first: int) -> Iterator[Batch]:
        for start in range(first * chunk, len(targets), chunk):
            rows = slice(start, start + chunk)
            answers = targets[rows]
            places = torch.arange(start, start + len(answers), device=answers.device)
            yield inputs[places] if table else each_tensor(inputs, itemgetter(rows)), answers

    return chunks


def _streamed(batches: Callable[[int], Iterable[Any]], like: Tensor) -> Chunks:
    """Batches, from a number on, that are read when they are needed and held no longer."""

    def chunks(first: int) -> Iterator[Batch]:
        for batch in batches(first):
            inputs, targets = _split(batch)
            yield each_tensor(inputs, lambda part: placed(part, like)), placed(targets, like)

    return chunks


def source_of(inputs: Any, targets: Any, *, chunk: int, like: Tensor) -> Chunks:
    """Items of inputs and targets in chunks, or those of a DataLoader, a Dataset or a list of batches in its batches.

    They get the device and the type of numbers that `like` has.
    """
    if targets is None:
        return _streamed(_batches(inputs, chunk), like)
    answers = placed(targets, like)
    if isinstance(inputs, SparseRows | Tokens):
        made, count = inputs, len(inputs.first) - 1
    else:
        made = each_tensor(inputs, lambda part: placed(part, like))
        counts = {len(part) if part.ndim else 0 for part in tensors_in(made)}
        if len(counts) != 1:
            rows = ", ".join(map(str, sorted(counts)))
            raise InputError(f"basins: the inputs hold tensors of {rows} rows; give one row per item in each of them")
        (count,) = counts
    if not count or count != len(answers):
        raise InputError(f"basins: {count:,} rows of features and {len(answers):,} targets; give one target per item")
    return _held(made, answers, min(chunk, count))


def _batches(items: Any, chunk: int) -> Callable[[int], Iterable[Any]]:
    if isinstance(items, Dataset) and not isinstance(items, IterableDataset):
        items = DataLoader(items, batch_size=chunk)
    if isinstance(items, DataLoader) and not isinstance(items.dataset, IterableDataset) and items.batch_size:
        return _in_order(items)
    if isinstance(items, Tensor | np.ndarray) or not isinstance(items, Iterable):
        raise InputError("basins: inputs without targets; give targets too, or a DataLoader whose batches hold both")
    if iter(items) is items:
        raise InputError("basins: the batches can be read only once; give a DataLoader or a list of batches")
    return lambda first: islice(items, first, None)


def _in_order(loader: DataLoader[Any]) -> Callable[[int], Iterable[Any]]:
    """The same items in one order, whatever order the loader draws them in; none is dropped."""
    dataset: Any = loader.dataset
    sampler, size = loader.sampler, loader.batch_size
    assert size is not None
    shuffled = isinstance(sampler, RandomSampler) and not sampler.replacement and sampler.num_samples == len(dataset)
    whole = shuffled or isinstance(sampler, SequentialSampler)
    places: Sequence[int] = range(len(dataset)) if whole else list(sampler)
    return lambda first: DataLoader(
        Subset(dataset, places[first * size :]),
        batch_size=size,
        collate_fn=loader.collate_fn,
        num_workers=loader.num_workers,
    )


def _split(batch: Any) -> tuple[Any, Any]:
    """Inputs and targets of a loader's batch."""
    if isinstance(batch, Mapping):
        name = next((key for key in TARGETS if key in batch), None)
        if name is None:
            names = ", ".join(map(str, batch))
            raise InputError(f"basins: a batch holds {names} and no targets; name them one of {', '.join(TARGETS)}")
        return {key: value for key, value in batch.items() if key != name}, batch[name]
    if not isinstance(batch, tuple | list) or len(batch) < 2:
        raise InputError("basins: a batch holds no targets; let the loader give (inputs, targets), or a mapping")
    *inputs, targets = batch
    return (inputs[0] if len(inputs) == 1 else tuple(inputs)), targets


def placed(values: Any, like: Tensor) -> Tensor:
    """Numbers as a tensor on the device, real ones in the type of the weights."""
    tensor = torch.as_tensor(values).to(like.device)
    return tensor.to(like.dtype) if tensor.is_floating_point() else tensor


def each_tensor(inputs: Any, change: Callable[[Any], Tensor]) -> Any:
    """Inputs of the same form with each tensor changed."""
    if isinstance(inputs, Tensor | np.ndarray):
        return change(inputs)
    if isinstance(inputs, Mapping):
        return {name: each_tensor(part, change) for name, part in inputs.items()}
    if isinstance(inputs, tuple | list):
        return tuple(each_tensor(part, change) for part in inputs)
    if is_dataclass(inputs) and not isinstance(inputs, type):
        return replace(inputs, **{of.name: each_tensor(getattr(inputs, of.name), change) for of in fields(inputs)})
    return inputs


def tensors_in(inputs: Any) -> list[Tensor]:
    """All tensors of some inputs, in the order in which `each_tensor` meets them."""
    tensors: list[Tensor] = []
    each_tensor(inputs, lambda part: tensors.append(part) or part)  # type: ignore[func-returns-value]
    return tensors


def rows_in(inputs: Any) -> int:
    """The number of items in a batch of inputs."""
    parts = tensors_in(inputs)
    if not parts or not parts[0].ndim:
        raise InputError("basins: a batch of inputs holds no tensor with one row for each item; check what is given")
    return len(parts[0])


class Fingerprint:
    """A hash of items that does not depend on how they are cut into chunks."""

    def __init__(self) -> None:
        self._parts: list[Any] = []

    def add(self, inputs: Any, targets: Tensor) -> None:
        """Some more items."""
        tensors = [*tensors_in(inputs), targets]
        self._parts += [hashlib.blake2b(digest_size=8) for _ in range(len(tensors) - len(self._parts))]
        for part, tensor in zip(self._parts, tensors, strict=False):
            part.update(np.ascontiguousarray(tensor.detach().cpu().contiguous().view(-1).numpy()).data)

    def __str__(self) -> str:
        return hashlib.blake2b(b"".join(part.digest() for part in self._parts), digest_size=8).hexdigest()
