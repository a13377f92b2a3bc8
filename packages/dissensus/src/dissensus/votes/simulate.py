"""Simulated panels: votes whose true distributions and annotators are known.

For tests and for planning a study. Whatever is made from these votes is a simulated result and must say so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import entr

from dissensus.arrays import places_within
from dissensus.errors import InputError
from dissensus.votes.table import NONE, Annotators, Votes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.arrays import Codes, Confusions, Ints, Table

    Judgements = tuple[Codes, Codes]


def simulate_votes(
    truth: Table,
    votes_per_item: int | Ints,
    *,
    annotators: int,
    seed: int,
    confusion: Confusions | None = None,
    classes: Sequence[str] | None = None,
    ordered: bool = False,
) -> Votes:
    """Single choices of a simulated panel.

    Each judgement of item i perceives a class z drawn from truth[i] and says y drawn from confusion[a, z]. One-hot
    truth with confusion matrices is the Dawid-Skene model; soft truth without them is a panel of honest annotators who
    differ.

    Args:
        truth: (items, classes) true label distributions.
        votes_per_item: how many votes each item gets, one number or (items,) numbers, each by a different annotator.
        annotators: size of the panel, at least the largest number of votes of an item.
        seed: seed of all draws.
        confusion: (annotators, classes, classes) probability that annotator a says y where the perceived class is z.
        classes: class names; 0, 1, 2, ... by default.
        ordered: whether the classes are a scale.

    Examples:
        >>> import numpy as np
        >>> simulate_votes(np.array([[0.5, 0.5], [0.9, 0.1]]), 3, annotators=4, seed=0)
        Votes(6 votes, 2 items, 2 classes, 4 annotators)
    """
    truth = _distributions(truth, views=False)
    n_classes = truth.shape[1]
    generator = np.random.default_rng(seed)
    item, annotator = _assign(truth.shape[0], votes_per_item, annotators=annotators, generator=generator)
    label = _draw(truth, item, generator)
    if confusion is not None:
        if confusion.shape != (annotators, n_classes, n_classes):
            raise InputError(
                f"simulate: confusion has shape {confusion.shape}; expected ({annotators}, {n_classes}, {n_classes})"
            )
        flat = confusion.reshape(annotators * n_classes, n_classes)
        label = _draw(flat, annotator.astype(np.int64) * n_classes + label, generator)
    return Votes(
        item=item,
        label=label,
        items=np.arange(truth.shape[0], dtype=np.int64),
        annotators=Annotators(annotator, np.arange(annotators, dtype=np.int64)),
        classes=_names(classes, n_classes),
        ordered=ordered,
    )


@dataclass(frozen=True, kw_only=True)
class Habits:
    """How the annotators of a simulated panel answer yes, unsure or no to one class after the other.

    An annotator perceives class k of item i with strength s = truth[i, k] + noise, and says yes where s reaches their
    own threshold for yes, unsure where it comes within `doubt` below it, and no otherwise. A careless annotator answers
    every item as if it were another one.

    Attributes:
        noise: standard deviation of the perceived strength.
        threshold: mean of the annotators' thresholds for yes.
        spread: standard deviation of those thresholds over annotators.
        doubt: width of the band below the threshold that is answered unsure.
        seconds: median seconds of an easy judgement; harder items take longer, up to twice that at full entropy.
        careless: probability that an annotator is careless.
        slip: probability that a judgement says no to every class, whatever was perceived.
    """

    noise: float = 0.08
    threshold: float = 0.35
    spread: float = 0.08
    doubt: float = 0.15
    seconds: float = 12.5
    careless: float = 0.0
    slip: float = 0.0


def simulate_responses(
    truth: Table | Confusions,
    votes_per_item: int | Ints,
    *,
    annotators: int,
    seed: int,
    habits: Habits | None = None,
    classes: Sequence[str] | None = None,
) -> Votes:
    """Yes, no or unsure for every class, with seconds, by a simulated panel (see `Habits`).

    The votes have one class more than `truth`: a judgement of all No is the class `none`.

    Args:
        truth: (items, classes) label distributions that all annotators perceive; or (views, items, classes), where each
            annotator sees one of the views.
        votes_per_item: how many judgements each item gets, one number or (items,) numbers, each by a different
            annotator.
        annotators: size of the panel, at least the largest number of judgements of an item.
        seed: of all draws.
        habits: how annotators answer.
        classes: class names; 0, 1, 2, ... by default.

    Examples:
        >>> import numpy as np
        >>> simulate_responses(np.array([[0.5, 0.5], [0.9, 0.1]]), 3, annotators=4, seed=0).classes
        ('0', '1', 'none')
    """
    checked = _distributions(truth, views=True)
    views = checked[None] if checked.ndim == 2 else checked
    n_views, n_items, n_classes = views.shape
    habit = Habits() if habits is None else habits
    generator = np.random.default_rng(seed)
    item, annotator = _assign(n_items, votes_per_item, annotators=annotators, generator=generator)
    threshold = generator.normal(habit.threshold, habit.spread, annotators)[annotator]
    own_view = generator.integers(0, n_views, annotators) if n_views > 1 else np.zeros(annotators, dtype=np.int64)
    seen = item
    if habit.careless > 0:
        careless = generator.random(annotators) < habit.careless
        other = generator.integers(0, n_items, item.shape[0]).astype(np.int32)
        seen = np.where(careless[annotator], other, item)
    strength = views[own_view[annotator], seen] + generator.normal(0.0, habit.noise, (item.shape[0], n_classes))
    if habit.slip > 0:
        strength[generator.random(item.shape[0]) < habit.slip] = -np.inf
    margin = strength - threshold[:, None]
    yes, unsure = margin >= 0, (margin < 0) & (margin >= -habit.doubt)
    silent = ~(yes | unsure).any(axis=1)
    judgement, label = np.nonzero(np.column_stack([yes | unsure, silent]))
    hardness = entr(views.mean(axis=0)).sum(axis=1) / np.log(n_classes)
    seconds = habit.seconds * np.exp(generator.normal(0.0, 0.35, item.shape[0])) * (1.0 + hardness[item])
    return Votes(
        item=item[judgement],
        label=label.astype(np.int32),
        unsure=np.column_stack([unsure, np.zeros_like(silent)])[judgement, label],
        judgement=judgement.astype(np.int32),
        seconds=seconds,
        items=np.arange(n_items, dtype=np.int64),
        annotators=Annotators(annotator[judgement], np.arange(annotators, dtype=np.int64)),
        classes=(*_names(classes, n_classes), NONE),
        none=n_classes,
    )


def _assign(n_items: int, votes_per_item: int | Ints, *, annotators: int, generator: np.random.Generator) -> Judgements:
    """Judgements with distinct annotators for each item, every annotator equally likely."""
    size = np.broadcast_to(np.asarray(votes_per_item, dtype=np.int64), (n_items,))
    if n_items and (size.min() < 1 or size.max() > annotators):
        raise InputError(
            f"simulate: {size.min()} to {size.max()} votes per item by {annotators} annotators; an item needs at least "
            "1 vote, and at most one by each annotator"
        )
    item = np.repeat(np.arange(n_items, dtype=np.int32), size)
    nth = places_within(size)
    # A walk around the panel with a stride that shares no factor with its size meets nobody twice.
    strides = np.flatnonzero(np.gcd(np.arange(annotators), annotators) == 1) if annotators > 1 else np.array([1])
    start = generator.integers(0, annotators, n_items)
    stride = generator.choice(strides, n_items)
    place = (start[item] + nth * stride[item]) % annotators
    return item, generator.permutation(annotators)[place].astype(np.int32)


def _draw(distributions: Any, row: Any, generator: np.random.Generator) -> Codes:
    """One class for each entry of `row`, drawn from that row of `distributions` by inverting its cumulative sum."""
    cumulative = np.cumsum(distributions, axis=1)
    cumulative /= cumulative[:, -1:]
    n_classes = cumulative.shape[1]
    # One sorted array serves all rows: row r lives in the interval [r, r + 1).
    ladder = (cumulative + np.arange(cumulative.shape[0])[:, None]).ravel()
    step = np.searchsorted(ladder, row + generator.random(row.shape[0]), side="right")
    return np.asarray(np.minimum(step - row * n_classes, n_classes - 1), dtype=np.int32)


def _distributions(values: Any, *, views: bool) -> np.ndarray[Any, np.dtype[np.float64]]:
    try:
        truth = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        truth = np.empty(0)
    if truth.ndim not in ((2, 3) if views else (2,)) or (truth < 0).any() or not np.allclose(truth.sum(axis=-1), 1.0):
        raise InputError("simulate: truth must be items by classes, each row 0 or more and summing to 1")
    return truth


def _names(classes: Sequence[str] | None, n_classes: int) -> tuple[str, ...]:
    return tuple(classes) if classes is not None else tuple(str(k) for k in range(n_classes))
