"""Items together with what people said about them: all that a set brings to a study."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.errors import InputError, choices
from dissensus.labels.schemes import weighted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dissensus.arrays import Codes, Features, Ints, Names
    from dissensus.items.shown import Items
    from dissensus.labels.distribution import LabelDistribution
    from dissensus.votes.table import Votes

ORIGINAL: Final = "original"
"""The target of the labels that items had before people voted."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelledItems:
    """Everything that a set brings to a study: what people saw and said, targets, splits and sources.

    Attributes:
        human: what people said.
        source: (items,) where each item is from.
        features: (items, ...) float32; None where an encoder is to make them from `items`.
        targets: by name, label distributions that the set itself holds, over the same items and classes.
        splits: by name, (n,) the items of the splits that the set itself holds.
        votes: the votes behind the distributions; None where only distributions were published.
        note: what a reader must know about the set; empty where there is nothing.
        items: what people saw; None where that is not known.
        together: (items,) items with the same number are kept in one split; None where each may be in any.
    """

    human: LabelDistribution
    source: Names
    features: Features = None
    targets: Mapping[str, LabelDistribution] = field(default_factory=dict)
    splits: Mapping[str, Ints] = field(default_factory=dict)
    votes: Votes | None = None
    note: str = ""
    items: Items | None = None
    together: Ints | None = None

    @classmethod
    def of_votes(
        cls, votes: Votes, items: Items, *, label: Codes | Ints | None = None, source: Any = "", **more: Any
    ) -> LabelledItems:
        """Items whose judgements all count the same; `label` is the target `original`, and `source` one name or all."""
        human = weighted(votes, "equal-weighted")
        targets = {} if label is None else {ORIGINAL: original_labels(human, label)}
        named = np.full(len(votes.items), source)
        return cls(human=human, source=named, targets=targets, votes=votes, items=items, **more)

    def __len__(self) -> int:
        return len(self.human)

    def __repr__(self) -> str:
        votes = "label distributions without votes" if self.votes is None else repr(self.votes)
        return f"LabelledItems({len(self):,} items, {len(self.human.classes)} classes, {votes})"

    def of_source(self, source: str) -> LabelledItems:
        """The items of one source."""
        chosen = np.flatnonzero(self.source == source)
        if not chosen.size:
            raise InputError(f"source: no item is from '{source}'{choices(source, np.unique(self.source).tolist())}")
        place = np.full(len(self), -1, dtype=np.int64)
        place[chosen] = np.arange(chosen.size)
        return replace(
            self,
            features=None if self.features is None else self.features[chosen],
            human=self.human.take(chosen),
            targets={name: labels.take(chosen) for name, labels in self.targets.items()},
            splits={name: place[members[place[members] >= 0]] for name, members in self.splits.items()},
            source=self.source[chosen],
            votes=None if self.votes is None else self.votes.take_items(chosen),
            items=None if self.items is None else self.items.take(chosen),
            together=None if self.together is None else self.together[chosen],
        )


def original_labels(human: LabelDistribution, label: Codes | Ints) -> LabelDistribution:
    """The (items,) labels that items had before people voted, as a target: all on one class."""
    one_hot = np.eye(len(human.classes), dtype=np.int64)[label]
    return replace(
        human,
        probabilities=one_hot.astype(np.float64),
        counts=one_hot,
        panel_size=np.ones(len(human), dtype=np.int64),
        scheme=ORIGINAL,
        mean_uncertainty=None,
        unsure_proportion=None,
        model=None,
    )
