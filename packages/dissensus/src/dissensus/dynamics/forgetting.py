"""Forgetting events: items that a model had learnt and lost again (Toneva et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.dynamics.recorded import as_runs, checked_epoch
from dissensus.dynamics.tracked import tracked
from dissensus.evaluation.metrics.ranking import expected_accuracy

if TYPE_CHECKING:
    from dissensus.arrays import Names
    from dissensus.labels.distribution import LabelDistribution


@dataclass(frozen=True, eq=False, kw_only=True)
class Forgetting:
    """How often each run learnt and lost each item.

    Attributes:
        items: (items,) names.
        events: (seeds, items) how often the item was right after an epoch and wrong after the next.
        first_learnt: (seeds, items) the first epoch, from 0, after which it was right; -1 where it never was.
    """

    items: Names
    events: np.ndarray[tuple[int, int], np.dtype[np.int64]]
    first_learnt: np.ndarray[tuple[int, int], np.dtype[np.int64]]

    @property
    def never_learnt(self) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
        """(seeds, items) true where the item was wrong after every epoch; its 0 events say nothing."""
        return np.asarray(self.first_learnt < 0)

    @property
    def unforgettable(self) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
        """(seeds, items) true where the item was learnt and never lost."""
        return np.asarray((self.first_learnt >= 0) & (self.events == 0))


def forgetting_events(dynamics: Any, target: LabelDistribution | Any) -> Forgetting:
    """Count the forgetting events of each run over all its epochs.

    An item is right after an epoch if every class to which the model gives its highest probability is the label, or one
    of the people's most chosen classes. What was learnt and lost between two recorded epochs is not seen, and a run of
    more epochs has more chances to forget.

    Args:
        dynamics: (seeds, epochs, items, classes) probabilities, one run, or a sequence of runs.
        target: (items,) class indices; or label distributions or (items, classes) probabilities of people.
    """
    runs = as_runs(dynamics)
    n_items = runs[0].shape[1]
    what = tracked(target, runs[0].shape[1:])
    right_classes = (what.weights > 0).astype(np.float32)
    events = np.zeros((len(runs), n_items), dtype=np.int64)
    first_learnt = np.full((len(runs), n_items), -1, dtype=np.int64)
    for number, run in enumerate(runs):
        before = np.zeros(n_items, dtype=np.bool_)
        for epoch in range(run.shape[0]):
            model = checked_epoch(run, epoch, number=number, items=what.items)
            right = expected_accuracy(right_classes, model) == 1
            events[number] += before & ~right
            first_learnt[number, right & (first_learnt[number] < 0)] = epoch
            before = right
    return Forgetting(items=what.items, events=events, first_learnt=first_learnt)
