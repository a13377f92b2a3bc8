"""A system's predictions: its numbers as probabilities, for one seed or several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import numpy as np
from scipy.special import log_softmax

from dissensus.errors import InputError
from dissensus.evaluation.metrics.distances import FLOOR
from dissensus.evaluation.metrics.distributions import TOLERANCE, check_distributions
from dissensus.labels.distribution import LabelDistribution
from dissensus.votes.table import Votes

if TYPE_CHECKING:
    from dissensus.arrays import Floats, Mask, Names, Table

Given: TypeAlias = Literal["probabilities", "logits"]
"""What a model's numbers are; logits become probabilities by softmax."""

HALF_TOLERANCE: Final = 0.01
"""How far from 1 the sums of float16 or bfloat16 rows may be: the latter keeps 8 bits."""

Runs: TypeAlias = np.ndarray[tuple[int, int, int], np.dtype[np.float64]]
"""(seeds, items, classes) one distribution for each seed and item."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Predictions:
    """What one system, a model or a baseline, predicts for items with names.

    Attributes:
        probabilities: (seeds, items, classes) rows that sum to 1.
        items: (items,) names.
        classes: names in the order of the last axis: those of the votes, then those that nobody voted for.
        given: whether they came as probabilities or as logits.
        seeds: the seed of each run, numbered from 0 where nothing says it; None where nothing about it was drawn.
        notes: sentences on what was decided while they were read or made.
        trained_on: (items,) whether any run was trained or chosen on the item, or made of its votes; None where that is
            not known.
        of_votes: whether the predictions are labels, and so made of votes.
        constant: (classes,) the one distribution that stands for all items in measures over items; None for a model.
            Means that leave each item out move against that item, and a correlation would take this for knowledge.
    """

    probabilities: Runs
    items: Names
    classes: tuple[str, ...]
    given: Given = "probabilities"
    seeds: tuple[int | str, ...] | None
    notes: tuple[str, ...] = ()
    trained_on: Mask | None = None
    of_votes: bool = False
    constant: Floats | None = None

    def __repr__(self) -> str:
        seeds = f", {len(self.probabilities)} seeds" if len(self.probabilities) > 1 else ""
        return f"Predictions({len(self.items):,} items, {len(self.classes)} classes{seeds}, from {self.given})"

    def seen(self, name: str) -> str:
        """Return a phrase with the number of items used to train, choose or make the system, else ''."""
        number = 0 if self.trained_on is None else int(self.trained_on.sum())
        of = f"{number:,} of {len(self.items):,}"
        made = f"{name} was made of the votes on {of} (its judgements)"
        return "" if not number else made if self.of_votes else f"{of} were used to train or choose {name}"

    @property
    def over_items(self) -> Runs:
        """(seeds, items, classes) what measures over items see."""
        return self.probabilities if self.constant is None else np.broadcast_to(self.constant, self.probabilities.shape)


def checked_human(human: LabelDistribution | Any) -> Table:
    """(items, classes) probabilities of label distributions or of an array; refused where the array holds no such."""
    if isinstance(human, LabelDistribution):
        return np.asarray(human.probabilities, dtype=np.float64)
    if isinstance(human, Votes):
        raise InputError("human: these are votes, of which there are many for an item; give dis.label(votes)")
    if are_counts(human, "human"):
        raise InputError(
            "human: these are counts of votes; give dis.votes_from_counts(counts), with classes= if they have names"
        )
    runs = checked_probabilities(human, "human")
    if len(runs) != 1:
        raise InputError(f"human: shape {runs.shape} is not items by classes; give one distribution per item")
    return np.asarray(runs[0])


def checked_probabilities(model: Any, what: str, *, items: Names | None = None, tolerance: float | None = None) -> Runs:
    """(seeds, items, classes) float64 probabilities of an array of that shape, or of (items, classes).

    Refuses what `check_distributions` refuses, calling the array `what` and its rows by `items`; rows are divided by
    their sum, which is 1 within the tolerance, or what the array's precision allows.
    """
    runs, off = numbers(model, what), tolerance_of(model) if tolerance is None else tolerance
    for run in runs:
        check_distributions(run, what=what, items=items, tolerance=off)
    positive = np.maximum(runs, 0.0)
    return np.asarray(positive / positive.sum(axis=-1, keepdims=True))


def are_counts(values: Any, what: str) -> bool:
    """Whether these are whole numbers that do not sum to 1 in every row."""
    counts = numbers(values, what)
    return bool((counts == np.floor(counts)).all() and (counts >= 0).all() and counts.sum(axis=-1).max() > 1)


def tolerance_of(values: Any) -> float:
    """How far from 1 rows of these may sum, by the precision in which they come."""
    half = str(getattr(values, "dtype", "")).removeprefix("torch.") in ("float16", "bfloat16")
    return HALF_TOLERANCE if half else TOLERANCE


def log_probabilities(predictions: Any, *, given: Given) -> Any:
    """(..., classes) natural logarithms of probabilities (at least `FLOOR`) or of the softmax of logits, same shape."""
    if given not in get_args(Given):
        raise InputError(f"predictions: they are given as probabilities or as logits, not as '{given}'")
    shape = np.shape(predictions)
    if given == "probabilities":
        return np.log(np.maximum(checked_probabilities(predictions, "predictions"), FLOOR)).reshape(shape)
    return log_softmax(checked_logits(predictions, "logits"), axis=-1).reshape(shape)


def checked_logits(logits: Any, what: str, *, items: Names | None = None) -> Runs:
    """(seeds, items, classes) finite float64 numbers."""
    runs = numbers(logits, what)
    bad = ~np.isfinite(runs).all(axis=(0, 2))
    if bad.any():
        first = int(bad.argmax())
        name = f"row {first}" if items is None else f"item {items[first]}"
        raise InputError(
            f"{what}: {name} has a number that is NaN or infinite"
            f"{f', and so have {more:,} more rows' if (more := int(bad.sum()) - 1) else ''}; give a finite number for "
            "every class"
        )
    return runs


def numbers(values: Any, what: str) -> Runs:
    """(seeds, items, classes) float64 numbers of an array of that shape, or of (items, classes)."""
    # A tensor may sit on a GPU, carry gradients, or have a type that NumPy lacks.
    plain = values.detach().double().cpu().numpy() if hasattr(values, "detach") else values
    try:
        if np.iscomplexobj(plain):
            raise TypeError
        table = np.asarray(plain, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{what}: these are not numbers in rows of equal length; give items by classes") from None
    if table.ndim not in (2, 3) or 0 in table.shape:
        raise InputError(
            f"{what}: shape {table.shape} is neither items by classes nor seeds by items by classes; give one row for "
            "each item"
        )
    return table.reshape(-1, *table.shape[-2:])
