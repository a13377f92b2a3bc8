"""`LabelDistribution`: what a panel said about each item, as probabilities over classes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from scipy.special import entr

from dissensus.arrays import row_argmax, row_max, row_sum
from dissensus.errors import InputError
from dissensus.votes.table import SHOWN

if TYPE_CHECKING:
    from dissensus.arrays import Codes, Counts, Floats, Ints, Mask, Names, Table
    from dissensus.votes.shown_pairs import ShownPairs

_BLOCK: Final = 1 << 14

TieRule = Literal["first", "random", "split"]
"""How a majority decides between classes with equally many votes: the first in class order, one at random (seeded),
or the mass split equally."""


@dataclass(frozen=True, eq=False)
class Majority:
    """The most voted class of each item, and where that was not clear.

    Attributes:
        label: (items,) index of the winning class; under the tie rule "split" the first of the tied.
        tied: (items,) true where two or more classes had the most votes.
        rule: the tie rule that was used.
    """

    label: Codes
    tied: Mask
    rule: TieRule


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelDistribution:
    """Probabilities over classes for each item, with the votes behind them.

    Attributes:
        probabilities: (items, classes) rows that sum to 1.
        counts: (items, classes) votes behind each row, yes and unsure alike.
        panel_size: (items,) judgements behind each row.
        items: (items,) names.
        classes: names, in class order.
        scheme: how votes became probabilities.
        ordered: whether the classes are a scale, lowest first.
        pairs: whether items are pairs and the classes run from left to right (`Votes.swapped`).
        shown: how these were shown; None where that is not known.
        mean_uncertainty: (items,) mean over judgements of the share of classes answered unsure (the soft-digits
            paper's u-bar); None where nobody could answer unsure.
        unsure_proportion: (items,) share of judgements with at least one unsure; None likewise.
        model: the annotator model that made the probabilities, if one did.

    Examples:
        >>> from dissensus.labels import label
        >>> from dissensus.votes import votes_from_counts
        >>> labels = label(votes_from_counts(np.array([[1, 1], [0, 3]])))
        >>> labels, labels.entropy.round(3).tolist(), labels.unanimous.tolist()
        (LabelDistribution(2 items, 2 classes, frequency), [0.693, 0.0], [False, True])
    """

    probabilities: Table
    counts: Counts
    panel_size: Ints
    items: Names
    classes: tuple[str, ...]
    scheme: str
    ordered: bool = False
    mean_uncertainty: Floats | None = None
    unsure_proportion: Floats | None = None
    model: Any = field(default=None, repr=False)
    pairs: bool = False
    shown: ShownPairs | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        shape = (len(self.items), len(self.classes))
        if self.probabilities.shape != shape or self.counts.shape != shape:
            raise InputError(
                f"label distribution: probabilities {self.probabilities.shape} and counts {self.counts.shape} "
                f"must both be items by classes, {shape}"
            )
        off = row_sum(self.probabilities)
        off = np.abs(np.subtract(off, 1.0, out=off), out=off)
        worst = int(off.argmax()) if off.size else 0
        if off.size and not off[worst] < 1e-6:
            raise InputError(
                f"label distribution: the probabilities of item {self.items[worst]} sum to "
                f"{self.probabilities[worst].sum():.6g}; each row must sum to 1"
            )

    def __len__(self) -> int:
        return len(self.items)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Table:
        """(items, classes) the probabilities: `np.asarray(labels)`."""
        return np.array(self.probabilities, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        return f"LabelDistribution({len(self):,} items, {len(self.classes)} classes, {self.scheme})"

    def _repr_html_(self) -> str:
        shown = self.take(np.arange(min(len(self), SHOWN)))
        return f"<p>{escape(repr(self))}</p>{shown.to_polars()._repr_html_()}"

    def to_polars(self) -> Any:
        """A Polars frame with a row per item: a column per class, majority, entropy and judgements."""
        from dissensus.labels.writing import label_table

        return label_table(self)

    def to_pandas(self) -> Any:
        """As `to_polars`, a pandas frame."""
        return self.to_polars().to_pandas()

    def to_hf(self) -> Any:
        """As `to_polars`, a Hugging Face dataset."""
        from dissensus.table_file import hugging_face

        return hugging_face(self.to_polars())

    @cached_property
    def entropy(self) -> Floats:
        """(items,) entropy H(p) = -sum_k p_k ln p_k, in nats."""
        return np.asarray(entr(self.probabilities).sum(axis=1))

    @cached_property
    def unanimous(self) -> Mask:
        """(items,) true where one class holds all the probability (NoHLV); the others are varied (HLV)."""
        return np.asarray((self.probabilities > 0).sum(axis=1) == 1)

    @cached_property
    def strata(self) -> dict[str, Mask]:
        """Items by human agreement: all, unanimous, varied."""
        return {"all": np.ones(len(self), dtype=np.bool_), "unanimous": self.unanimous, "varied": ~self.unanimous}

    def majority(self, *, tie: TieRule = "first", seed: int = 0) -> Majority:
        """The most probable class of each item, with ties decided by a stated rule and marked."""
        tied = np.asarray(row_sum(_top(self.probabilities).astype(np.intp)) > 1)
        return Majority(label=_winner(self.probabilities, tie=tie, seed=seed), tied=tied, rule=tie)

    def one_hot(self, *, tie: TieRule = "first", seed: int = 0) -> Table:
        """(items, classes) all probability on the majority class; under "split", equally on the tied classes."""
        return one_hot(self.probabilities, tie=tie, seed=seed)

    def take(self, chosen: Ints | Codes | Mask) -> LabelDistribution:
        """The distributions of the chosen items, in that order."""

        def pick(values: Any) -> Any:
            return None if values is None else values[chosen]

        return replace(
            self,
            probabilities=self.probabilities[chosen],
            counts=self.counts[chosen],
            panel_size=self.panel_size[chosen],
            items=self.items[chosen],
            mean_uncertainty=pick(self.mean_uncertainty),
            unsure_proportion=pick(self.unsure_proportion),
            model=None,
        )


def one_hot(shares: Table | Counts, *, tie: TieRule = "first", seed: int = 0) -> Table:
    """(items, classes) 1 for the class with the largest share or count; under "split", equal parts for the tied."""
    if tie == "split":
        top = _top(shares).astype(np.float64)
        return np.asarray(top / row_sum(top)[:, None])
    out = np.zeros(shares.shape)
    if tie == "random":
        out[np.arange(len(out)), _winner(shares, tie=tie, seed=seed)] = 1.0
        return out
    # Block by block what is made on the way stays in the cache; it need not be fetched from the system page by page.
    place = np.arange(0, min(len(out), _BLOCK) * out.shape[1], out.shape[1])
    for start in range(0, len(out), _BLOCK):
        winner = _winner(shares[start : start + _BLOCK], tie=tie, seed=seed)
        out[start : start + _BLOCK].reshape(-1)[place[: winner.size] + winner] = 1.0
    return out


def _winner(shares: Table | Counts, *, tie: TieRule, seed: int) -> Codes:
    if tie == "random":
        draw = np.random.default_rng(seed).random(shares.shape)
        winner = np.where(_top(shares), draw, -1.0).argmax(axis=1)
    elif tie not in ("first", "split"):
        raise InputError(f"majority: unknown tie rule '{tie}'; choose first, random or split")
    elif shares.dtype.kind == "i":
        winner = row_argmax(shares)
    else:
        winner = _top(shares).argmax(axis=1)
    return np.asarray(winner, dtype=np.int32)


def _top(shares: Table | Counts) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    # Equal votes can differ by rounding after division: a tie is a tie up to 1e-12.
    return np.asarray(shares >= row_max(shares)[:, None] - 1e-12)
