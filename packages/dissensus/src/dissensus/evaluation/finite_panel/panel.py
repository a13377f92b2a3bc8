"""`Panel`: the judgements behind label distributions, as finite-panel statistics need them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.arrays import places_of, places_within
from dissensus.errors import InputError
from dissensus.labels.schemes import UNSURE_WEIGHT, judgement_vectors
from dissensus.votes.sides import both_sides

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scipy.sparse import csr_array

    from dissensus.arrays import Codes, Counts, Ints, Mask, Table
    from dissensus.evaluation.probabilities import Runs
    from dissensus.labels.distribution import LabelDistribution
    from dissensus.votes.table import Votes


@dataclass(frozen=True, eq=False, kw_only=True)
class Panel:
    """Judgements of items, each a distribution over classes that was drawn from everybody's: one-hot for a single vote.

    Attributes:
        mass: (items, classes) sums of the item's judgements; the counts of votes where each judgement is one vote.
        squares: (items, classes) sums of their squares; the counts again where each judgement is one vote.
        size: (items,) judgements of each item, at least 1.
        single: whether each judgement is one vote.
        item: (judgements,) the item of each judgement; None where only counts are known.
        vectors: (judgements, classes) the judgements themselves; None likewise.
        annotator: (judgements,) who judged, as a whole number; None where that is not known.
        pairs: whether they are preferences, whose sides may be swapped.
    """

    mass: Table
    squares: Table
    size: Ints
    single: bool
    item: Codes | None = None
    vectors: csr_array | None = None
    annotator: Codes | None = None
    pairs: bool = False

    def __len__(self) -> int:
        return len(self.size)

    @property
    def shares(self) -> Table:
        """(items, classes) means over judgements."""
        return np.asarray(self.mass / self.size[:, None])

    @property
    def counts(self) -> Counts:
        """(items, classes) votes, where each judgement is one vote."""
        assert self.single
        return np.rint(self.mass).astype(np.int64)

    def runs_of(self, model: Runs | Table, *, what: str) -> Runs:
        """(seeds, items, classes) the probabilities of one run or of several, refused where they are of other items."""
        runs = np.asarray(model, dtype=np.float64)
        runs = runs[None] if runs.ndim == 2 else runs
        if runs.shape[1:] != self.mass.shape:
            raise InputError(
                f"{what}: predictions of shape {runs.shape[1:]} for judgements of shape {self.mass.shape}; "
                "give one distribution per item"
            )
        return runs

    def cumulated(self) -> Panel:
        """The same judgements along a scale: for each step but the last, how much of them lies at or below it.

        What Brier is of these is the ranked probability score.
        """
        # What lies below a step is 0 or 1 of a single vote, and its own square.
        squares = mass = cumulated(self.mass)
        if self.item is None or self.vectors is None:
            return replace(self, mass=mass, squares=squares, pairs=False)
        below = cumulated(self.vectors.toarray())
        if not self.single:
            squares = np.stack([np.bincount(self.item, column, len(self)) for column in (below**2).T], axis=1)
        return replace(self, mass=mass, squares=squares, vectors=type(self.vectors)(below), pairs=False)

    def with_mirror_images(self) -> Panel:
        """Preferences beside those on the swapped pairs, items of their own after them; other panels as they are."""
        if not self.pairs:
            return self
        mass, squares = both_sides(self.mass), both_sides(self.squares)
        return Panel(mass=mass, squares=squares, size=np.tile(self.size, 2), single=self.single)

    def take(self, chosen: Mask | Ints) -> Panel:
        """The panel of the chosen items, in that order; each at most once."""
        rows = np.flatnonzero(chosen) if np.asarray(chosen).dtype == np.bool_ else np.asarray(chosen)
        some = replace(self, mass=self.mass[rows], squares=self.squares[rows], size=self.size[rows])
        if self.item is None or self.vectors is None:
            return some
        place = np.full(len(self), -1, dtype=np.int32)
        place[rows] = np.arange(len(rows), dtype=np.int32)
        kept = np.flatnonzero(place[self.item] >= 0)
        return replace(
            some,
            item=place[self.item[kept]],
            vectors=self.vectors[kept],
            annotator=None if self.annotator is None else self.annotator[kept],
        )


def cumulated(table: Any) -> Any:
    """(..., classes - 1) what lies at or below each step of the scale but the last, where everything does."""
    return np.cumsum(table, axis=-1)[..., :-1]


def panel_of(labels: LabelDistribution, votes: Votes | None = None) -> Panel:
    """The panel behind label distributions; refused, with the reason, where they are no means over judgements.

    Weighted, smoothed or modelled distributions are no means of independent draws from what everybody would say, and
    nothing in this folder would hold for them.

    Args:
        labels: of the items, in this order.
        votes: what they were made from; needed for judgements with several votes, and for who judged what.
    """
    if not len(labels):
        raise InputError("panel: there are no items; give at least one with votes")
    total = np.asarray(labels.counts).sum(axis=1)
    empty = np.flatnonzero(total < 1)
    if empty.size:
        raise InputError(
            f"panel: item {labels.items[empty[0]]} has no votes; leave out such items, {empty.size:,} in all"
        )
    panel = _from_counts(labels) if votes is None else _from_votes(labels, votes)
    if np.abs(labels.probabilities - panel.shares).max() > 1e-6:
        raise InputError(
            f"panel: these distributions are '{labels.scheme}', no plain means over judgements; label them by "
            f"'frequency' (single votes) or by {', '.join(UNSURE_WEIGHT)}"
        )
    return panel


def _from_counts(labels: LabelDistribution) -> Panel:
    counts = np.asarray(labels.counts, dtype=np.float64)
    total = counts.sum(axis=1)
    several = np.flatnonzero(labels.panel_size != total)
    if several.size:
        item = several[0]
        raise InputError(
            f"panel: item {labels.items[item]} has {total[item]:.0f} votes in {labels.panel_size[item]} judgements; "
            "give the votes too, so that each judgement can be taken as a whole"
        )
    return Panel(mass=counts, squares=counts, size=total.astype(np.int64), single=True, pairs=labels.pairs)


def _from_votes(labels: LabelDistribution, votes: Votes) -> Panel:
    rows = places_of(labels.items, votes.items)
    if (rows < 0).any():
        missing = labels.items[int((rows < 0).argmax())]
        raise InputError(f"panel: item {missing} is not among the votes; give the votes that the labels were made from")
    if votes.classes != labels.classes:
        raise InputError("panel: votes and labels have unlike classes; give the votes that the labels were made from")
    vectors = judgement_vectors(votes, labels.scheme if labels.scheme in UNSURE_WEIGHT else "equal-weighted")
    item, judges = votes.judgement_item, np.arange(votes.n_judgements)
    by_item = type(vectors)((np.ones(len(item)), (item, judges)), shape=(len(votes.items), len(item)))
    squared = vectors.multiply(vectors)
    everything = Panel(
        mass=(by_item @ vectors).toarray(),
        squares=(by_item @ squared).toarray(),
        size=votes.panel_size.astype(np.int64),
        # A distribution whose squares sum to 1 lies on one class.
        single=bool(np.abs(squared.sum(axis=1) - 1.0).max(initial=0.0) < 1e-9),
        item=item,
        vectors=vectors,
        annotator=votes.judgement_annotator,
        pairs=votes.pairs,
    )
    return everything.take(rows)


def draw_votes(counts: Counts, size: Ints, rng: np.random.Generator) -> Counts:
    """(items, classes) `size` (items,) of each item's votes, drawn at random without replacement."""
    out = np.zeros_like(counts)
    left, wanted = counts.sum(axis=1), size.astype(np.int64)
    for k in range(counts.shape[1]):
        left = left - counts[:, k]
        out[:, k] = rng.hypergeometric(counts[:, k], left, wanted)
        wanted = wanted - out[:, k]
    return out


def draw_judgements(panel: Panel, size: Ints, rng: np.random.Generator) -> Table:
    """(items, classes) sums of `size` (items,) of each item's judgements, drawn at random without replacement."""
    return divided_judgements(panel, [size], rng)[0]


def divided_judgements(panel: Panel, sizes: Sequence[Ints], rng: np.random.Generator) -> list[Table]:
    """(items, classes) sums of each part of the items' judgements, drawn at random; then of what is left of them."""
    if panel.single:
        left, parts = panel.counts, []
        for size in sizes:
            parts.append(draw_votes(left, size, rng))
            left = left - parts[-1]
        return [part.astype(np.float64) for part in (*parts, left)]
    assert panel.item is not None
    assert panel.vectors is not None
    order = np.lexsort((rng.random(len(panel.item)), panel.item))
    place, begin = places_within(panel.size), np.cumsum(panel.size) - panel.size
    vectors = panel.vectors.toarray()[order]
    ends = [np.repeat(end, panel.size) for end in np.cumsum([np.zeros_like(panel.size), *sizes, panel.size], axis=0)]
    within = [(place >= low) & (place < high) for low, high in pairwise(ends)]
    return [np.asarray(np.add.reduceat(vectors * part[:, None], begin, axis=0)) for part in within]
