"""Items together with what people said about them: sets that are published as label distributions, not as votes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dissensus.arrays import Ints, Names
    from dissensus.labels.distribution import LabelDistribution
    from dissensus.votes.table import Votes


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelledItems:
    """Everything that a set brings to a study: features, label distributions, targets, splits and sources.

    Attributes:
        features: (items, ...) float32.
        human: what people said.
        targets: by name, label distributions that the set itself holds, over the same items and classes.
        splits: by name, (n,) the items of the splits that the set itself holds.
        source: (items,) where each item is from.
        votes: the votes behind the distributions; None where only distributions were published.
        note: what a reader must know about the set; empty where there is nothing.
    """

    features: np.ndarray[Any, np.dtype[np.float32]]
    human: LabelDistribution
    targets: Mapping[str, LabelDistribution]
    splits: Mapping[str, Ints]
    source: Names
    votes: Votes | None = None
    note: str = ""

    def __len__(self) -> int:
        return len(self.human)

    def __repr__(self) -> str:
        votes = "label distributions without votes" if self.votes is None else repr(self.votes)
        return f"LabelledItems({len(self):,} items, {len(self.human.classes)} classes, {votes})"

    def of_source(self, source: str) -> LabelledItems:
        """The items of one source."""
        chosen = np.flatnonzero(self.source == source)
        if not chosen.size:
            known = ", ".join(np.unique(self.source).tolist())
            raise InputError(f"source: no item is from '{source}'; there is {known}")
        place = np.full(len(self), -1, dtype=np.int64)
        place[chosen] = np.arange(chosen.size)
        return LabelledItems(
            features=self.features[chosen],
            human=self.human.take(chosen),
            targets={name: labels.take(chosen) for name, labels in self.targets.items()},
            splits={name: place[members[place[members] >= 0]] for name, members in self.splits.items()},
            source=self.source[chosen],
            votes=None if self.votes is None else self.votes.take_items(chosen),
            note=self.note,
        )
