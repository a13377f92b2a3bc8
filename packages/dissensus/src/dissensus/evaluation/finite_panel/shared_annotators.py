"""People who judged many items: what other annotators would have changed.

Where each item is judged by people of its own, their differences are part of the noise between items. Where the same
few people judge all items, their habits move all items together, and an interval over items alone holds the score of
everybody in 6 trials of 10. So the variance gets a part for annotators, from what leaving out one of them at a time
does to the score (the jackknife of two-way clusters; Cameron, Gelbach and Miller 2011), with as many degrees of freedom
as there are people.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from dissensus.evaluation.comparison.intervals import Spread

if TYPE_CHECKING:
    from collections.abc import Callable

    from dissensus.arrays import Codes, Floats, Ints, Table
    from dissensus.evaluation.finite_panel.panel import Panel

    Scores = Callable[[Table, Table, Ints, Ints], Floats]
    """Sums, sums of squares and numbers of judgements of items, and the items' rows, to the items' scores."""

THESE_PEOPLE: Final = (
    "the same people judged many items, and intervals do not allow for other people: annotators are treated as fixed"
)
"""The note of a number whose interval leaves annotators out though they are shared."""

UNKNOWN_PEOPLE: Final = "who voted is not known: if the same few people judged all items, the interval is too narrow"
"""Caution about intervals and p-values from anonymous votes."""


@dataclass(frozen=True)
class Clustered:
    """The annotators' part of the variance of a mean over items.

    Attributes:
        variance: of the mean, over annotators.
        cells: the part of it that is the noise of single judgements, which a variance between items holds too.
        people: how many annotators stand behind it: (sum_a n_a)^2 / sum_a n_a^2 with n_a judgements of each, which is
            their number where all judged equally often.
    """

    variance: float
    cells: float
    people: float


def shared(panel: Panel) -> bool:
    """Whether anybody is known to have judged two items or more."""
    return panel.annotator is not None and bool((np.bincount(panel.annotator) > 1).any())


def over_items(annotator: Ints | Codes | None) -> str:
    """Return a note on the variation that intervals over items cover. `annotator` holds the annotator of each vote."""
    if annotator is None:
        return f"95 % intervals are over items; {UNKNOWN_PEOPLE}"
    fixed = (np.bincount(annotator) > 1).any()
    return f"95 % intervals are over items{', and annotators are treated as fixed' if fixed else ''}"


def annotator_variance(panel: Panel, weights: Table) -> Clustered | None:
    """The annotators' part for a score that is linear in the votes: a mean over items of sum_k p_ik w_ik.

    Soft NLL has weights w = -ln q; the difference of two models' Brier scores has w = -2 (q - q'), apart from what no
    vote touches. None where nobody is known to have judged two items.
    """
    if not shared(panel):
        return None

    def scores_of(mass: Table, _: Table, size: Ints, rows: Ints) -> Floats:
        return np.asarray((mass * weights[rows]).sum(axis=1) / size)

    scores = scores_of(panel.mass, panel.squares, panel.size, np.arange(len(panel)))
    return clustered(panel, deletions(panel, scores_of, scores))


def deletions(panel: Panel, scores_of: Scores, scores: Floats, *, least: int = 1) -> Floats:
    """(judgements,) an item's score without the judgement minus its score with all.

    Where fewer judgements than `least` would be left the item would drop out: then the mean over items minus the item's
    score. `scores_of` scores rows of items from sums, sums of squares and numbers of their judgements.
    """
    assert panel.item is not None
    assert panel.vectors is not None
    out = scores.mean() - scores[panel.item]
    some = np.flatnonzero(panel.size[panel.item] - 1 >= least)
    item, x = panel.item[some].astype(np.int64), panel.vectors[some].toarray()
    # Votes of an item for the same class leave the same votes behind.
    steps = np.arange(1, x.shape[1] + 1)
    kinds = item * (len(steps) + 1) ** 2 + x @ steps if panel.single else np.arange(len(item))
    _, first, kind = np.unique(kinds, return_index=True, return_inverse=True)
    item, x = item[first], x[first]
    without = scores_of(panel.mass[item] - x, panel.squares[item] - x * x, panel.size[item] - 1, item)
    out[some] = (without - scores[item])[kind]
    return np.asarray(out)


def clustered(panel: Panel, deletion: Floats) -> Clustered | None:
    """The annotators' part of the variance from the (judgements,) `deletions`."""
    if not shared(panel):
        return None
    assert panel.item is not None
    assert panel.annotator is not None
    size = panel.size[panel.item]
    # Leaving out one of m overstates the variance of a mean of m by m / (m - 1).
    step = deletion * np.sqrt(np.where(size > 1, (size - 1) / size, 1.0)) / len(panel)
    judged = np.bincount(panel.annotator)
    return Clustered(
        variance=float((np.bincount(panel.annotator, weights=step) ** 2).sum()),
        cells=float((step**2).sum()),
        people=float(judged.sum() ** 2 / (judged.astype(np.float64) ** 2).sum()),
    )


def with_annotators(spread: Spread, part: Clustered | None) -> Spread:
    """The spread over items (its first part) and seeds, and over annotators too."""
    if part is None or part.people < 1.5:
        return spread
    # The noise of single judgements is in the part of items already.
    beyond = max(part.variance - part.cells, 0.0)
    return Spread((*spread.parts, (beyond, max(1, round(part.people) - 1))))
