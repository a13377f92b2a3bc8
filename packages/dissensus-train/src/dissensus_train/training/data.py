"""What a study trains on: features, targets, and who is in which split."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.arrays import Codes, Features, Ints, places_within
from dissensus.errors import InputError
from dissensus.randomness import Purpose, stream

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from dissensus.items.shown import Items
    from dissensus.labels.distribution import LabelDistribution
    from dissensus.votes.table import Votes
    from dissensus_train.encoders.encoding import Encoder

TRAIN = "train"


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainingData:
    """Features and targets of all items, and the splits.

    Attributes:
        name: of the dataset.
        features: (items, ...) float32, not normalised; or a sparse (items, columns) matrix, which is never made dense
            as a whole. Of width 0 where every model reads the items themselves.
        human: what people said; the selection metrics `soft-nll` and `accuracy` are measured against it.
        targets: by name, what runs are trained towards, over the same items and classes.
        splits: by name, (n,) indices of items; `train` must be there, and no item may be in two.
        votes: what people said, in the same order of items; only multipass of weighted targets needs it.
        panels: by target, the votes that it was made from, where those are not all.
        note: what a reader of any result must know of the data, that it is simulated say; empty where nothing.
        items: what people saw, in the same order; None where only features are known.
        normalise: whether networks see features moved and scaled by one mean and one standard deviation, those of all
            the training items' numbers; sparse features, ids and embeddings are seen as they are.
        encoder: what made the features of the items; None where features were given.
        folder: of the study, where networks, losses and deliveries of the user's own are; not part of the fingerprint.
    """

    name: str
    features: Features
    human: LabelDistribution
    targets: Mapping[str, LabelDistribution]
    splits: Mapping[str, Ints]
    votes: Votes | None = None
    panels: Mapping[str, Votes] = field(default_factory=dict)
    note: str = ""
    items: Items | None = None
    normalise: bool = True
    encoder: Encoder | None = None
    folder: Path | None = None

    def __post_init__(self) -> None:
        n_items, name = len(self.human), self.name
        if self.votes is not None:
            self.votes.require_people()
        if self.features.shape[0] != n_items:
            raise InputError(
                f"{name}: {self.features.shape[0]:,} rows of features for {n_items:,} labelled items; "
                "give one row of features per item, in the same order"
            )
        if self.features.dtype != np.float32:
            raise InputError(f"{name}: features are {self.features.dtype}; convert them to float32")
        if self.sparse and self.normalise:
            raise InputError(
                f"{name}: sparse features cannot be normalised, which would fill them; set normalise = false"
            )
        if self.items is not None and len(self.items) != n_items:
            raise InputError(f"{name}: {len(self.items):,} items for {n_items:,} labelled ones; give the same items")
        if not self.shape[0] and self.items is None:
            raise InputError(f"{name}: the features have no columns; give at least one number per item")
        wrong = _not_finite(self.features)
        if wrong.size:
            raise InputError(
                f"{name}: the features of item {self.human.items[wrong[0]]} hold NaN or infinity"
                f"{f', and so do those of {wrong.size - 1:,} more items' if wrong.size > 1 else ''}; "
                "fill or remove them"
            )
        for target, labels in self.targets.items():
            if len(labels) != n_items or labels.classes != self.human.classes:
                raise InputError(
                    f"{name}: target '{target}' has {len(labels):,} items and classes {', '.join(labels.classes)}; "
                    f"expected {n_items:,} items and {', '.join(self.human.classes)}"
                )
        if TRAIN not in self.splits or not self.splits[TRAIN].size:
            raise InputError(f"{name}: there is no split '{TRAIN}' with items in it")
        members = np.concatenate(list(self.splits.values()))
        if members.size and (members.min() < 0 or members.max() >= n_items):
            raise InputError(f"{name}: a split holds indices outside 0 to {n_items - 1}")
        if np.unique(members).size != members.size:
            raise InputError(f"{name}: an item is in two splits, or twice in one; a split may share no item")
        unseen = self.human.probabilities[self.splits[TRAIN]].sum(axis=0) == 0
        if (~unseen).sum() < 2:
            raise InputError(
                f"{name}: every vote on an item of the split '{TRAIN}' is for '{self.human.classes[unseen.argmin()]}', "
                "so that there is nothing to learn; give votes for the other classes too"
            )
        if self.votes is not None and self.votes.none is not None:
            # We add that class ourselves, for judgements that say No to every other; often nobody does.
            unseen[self.votes.none] = False
        # A degree of preference that nobody chose is a place between others.
        if unseen.any() and not self.human.pairs:
            missing = self.human.classes[int(unseen.argmax())]
            raise InputError(
                f"{name}: nobody voted for class '{missing}' on any item of the split '{TRAIN}'; a model cannot learn "
                "it: remove the class, or split otherwise"
            )

    @property
    def classes(self) -> int:
        """The number of classes."""
        return len(self.human.classes)

    @property
    def held_out(self) -> str:
        """The split that models are scored on: test, or else the last that is not trained on, or else train."""
        others = [name for name in self.splits if name != TRAIN]
        return "test" if "test" in others else others[-1] if others else TRAIN

    def places_in(self, split: str) -> Ints:
        """(items,) where each item of a split stands in it; 0 for the others."""
        place = np.zeros(len(self.human), dtype=np.int64)
        place[self.splits[split]] = np.arange(len(self.splits[split]))
        return place

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one item's features."""
        return tuple(self.features.shape[1:])

    @property
    def sparse(self) -> bool:
        """Whether features are a sparse matrix."""
        return not isinstance(self.features, np.ndarray)

    @cached_property
    def normalisation(self) -> tuple[float, float]:
        """Mean and standard deviation of all the training items' features together; 0 and 1 where not normalised."""
        if not self.normalise or not self.shape[0]:
            return 0.0, 1.0
        seen = self.features[self.splits[TRAIN]]
        return float(seen.mean(dtype=np.float64)), float(seen.std(dtype=np.float64)) or 1.0

    def normalised(self) -> Features:
        """(items, ...) features as networks see them: mean 0 and deviation 1 on training items, unless switched off.

        Sparse features come as they are, a `csr_matrix`.
        """
        return self.as_input(self.features)

    def as_input(self, features: Features) -> Features:
        """(any items, ...) features, moved and scaled as the training items' are for the network."""
        return moved_and_scaled(features, self.normalisation)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the features and the splits. What runs add to it is in `data_fingerprint`."""
        digest = hashlib.sha256()
        digest.update(str(self.features.shape).encode())
        for part in _parts(self.features):
            digest.update(np.ascontiguousarray(part).data)
        if not self.normalise:
            digest.update(b"as they are")
        for name, members in sorted(self.splits.items()):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(members).data)
        return digest.hexdigest()[:16]


def _parts(features: Features) -> tuple[np.ndarray[Any, Any], ...]:
    return (features,) if isinstance(features, np.ndarray) else (features.data, features.indices, features.indptr)


def _not_finite(features: Features) -> Ints:
    """Places of the items whose features hold NaN or infinity."""
    values = features if isinstance(features, np.ndarray) else features.data
    # A sum is finite only if all its terms are; looking for the culprit can wait until there is one.
    if np.isfinite(values.sum(dtype=np.float64)):
        return np.empty(0, dtype=np.int64)
    if isinstance(features, np.ndarray):
        return np.flatnonzero(~np.isfinite(features.reshape(len(features), -1)).all(axis=1))
    return np.unique(features.nonzero()[0][~np.isfinite(features.data)])


def moved_and_scaled(features: Features, normalisation: tuple[float, float]) -> Features:
    """(items, ...) features less a mean, divided by a standard deviation; untouched where these are 0 and 1."""
    mean, deviation = normalisation
    if (mean, deviation) == (0.0, 1.0):
        return features
    return ((features - np.float32(mean)) / np.float32(deviation)).astype(np.float32, copy=False)


def split_items(
    groups: Codes | Ints, shares: Mapping[str, float], *, seed: int, together: Ints | None = None
) -> dict[str, Ints]:
    """Split items at random in the given shares, each group (its majority class, say) in the same shares.

    Args:
        groups: (items,) the group of each item.
        shares: by split, its share of items; they must sum to 1.
        seed: of the split.
        together: (items,) items with the same number stay in one split; the split of the first of them decides.
    """
    total = sum(shares.values())
    if abs(total - 1) > 1e-9 or any(share < 0 for share in shares.values()):
        raise InputError(f"splits: shares {dict(shares)} sum to {total:g}; they must be 0 or more and sum to 1")
    order = np.lexsort((stream(seed, Purpose.SPLIT).random(len(groups)), groups))
    size = np.bincount(groups)
    place = (places_within(size) + 0.5) / np.repeat(size, size)
    which = np.empty(len(groups), dtype=np.int64)
    which[order] = np.searchsorted(np.cumsum(list(shares.values()))[:-1], place, side="right")
    if together is not None:
        _, first, member = np.unique(together, return_index=True, return_inverse=True)
        which = which[first][member]
    return {name: np.flatnonzero(which == number) for number, name in enumerate(shares)}
