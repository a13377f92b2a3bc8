"""Who answers like whom: people placed by what they say beyond what the items make everybody say.

Two people who judged an item agree beyond it by x_v . x_w, where x is the vote minus the mean of the item's votes (as a
one-hot vector, or in steps of a scale), less the mean of that over all pairs of the item. The mean over the items that
two people share, drawn towards 0 where these are few, makes a matrix of people by people. Its leading eigenvectors
place people so that those who answer alike lie together. A dimension counts only where its eigenvalue is larger than
those of 95 % of panels in which the votes of each item were dealt out to its voters at random, and where more people
lie surely to one side of its middle than chance would put there. Intervals come from resamples of the items.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.linalg import eigh, orthogonal_procrustes

from dissensus.errors import InputError
from dissensus.evaluation.people.groups import beyond_item
from dissensus.votes.privacy import LEAST_PEOPLE

if TYPE_CHECKING:
    from dissensus.arrays import Codes, Floats, Ints, Table
    from dissensus.bootstrap import Seed
    from dissensus.votes.table import Votes

MOST_PEOPLE: Final = 300
"""People that are placed at most: those who judged most."""

MOST_PAIRS: Final = 1_000_000
"""Pairs of votes at most; of more, whole items are left out at random."""

DEALS: Final = 99
"""Panels with votes dealt out at random; the least p-value is then 0.01."""

RESAMPLES: Final = 100
"""Resamples of items behind the intervals."""

DIMENSIONS: Final = 2

LEVEL: Final = 0.05
"""A dimension with a larger p-value may be noise."""

CLEAR: Final = 0.1
"""The share of people who must lie surely to one side of the middle of a dimension: 0.05 do by chance."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PeopleMap:
    """Where people lie by what they answer.

    Attributes:
        people: (people,) who is placed, as indices into the votes' annotators.
        votes: (people,) how many of their votes count: those on items that three placed people or more judged.
        place: (people, dimensions) where they lie; no column for a dimension that may be noise.
        low: (people, dimensions) lower ends of 95 % intervals for other items.
        high: likewise.
        lean: (people, classes) how much more often they chose each class than the others who judged the same items.
        p_values: of the first and second dimension, of no more structure than votes dealt out at random have.
        left_out: sentences on who was left out.
        reason: why nobody is placed, where the votes cannot distinguish people at all; else empty.
    """

    people: Ints
    votes: Ints
    place: Table
    low: Table
    high: Table
    lean: Table
    p_values: tuple[float, ...]
    left_out: tuple[str, ...]
    reason: str = ""


def people_map(votes: Votes, *, seed: Seed = 0) -> PeopleMap:
    """Place the people of a panel.

    Args:
        votes: with annotators, one vote a judgement.
        seed: of resamples and of votes dealt out at random.
    """
    if votes.annotators is None:
        raise InputError("map of people: the votes are anonymous; give votes with annotators")
    rng = np.random.default_rng(seed)
    rows, people, left_out = _chosen(votes, rng)
    item = np.unique(votes.item[rows], return_inverse=True)[1]
    who = np.searchsorted(people, votes.annotators.code[rows])
    said = np.eye(len(votes.classes))[votes.label[rows]]
    lean = beyond_item(said, item)
    x = beyond_item(votes.scale[votes.label[rows]][:, None], item) if votes.ordered else lean
    size = np.bincount(who, minlength=people.size)
    few = people.size < 3 or not rows.size
    place = reach = np.empty((people.size, 0))
    sums = np.zeros((people.size, len(votes.classes)))
    p_values: list[float] = []
    reason = "too few of them judged the same items" if few else "all who judged the same item say the same of it"
    if not few and lean.any():
        place, reach, p_values = _placed(Pairs(item, who, people.size), x, item, rng)
        sums = np.stack([np.bincount(who, weights=column, minlength=people.size) for column in lean.T], axis=1)
        reason = ""
    return PeopleMap(
        people=people,
        votes=size,
        place=place,
        low=place - reach,
        high=place + reach,
        lean=sums / np.maximum(size, 1)[:, None],
        p_values=tuple(p_values),
        left_out=tuple(left_out),
        reason=reason,
    )


def _placed(pairs: Pairs, x: Table, item: Ints, rng: np.random.Generator) -> tuple[Table, Table, list[float]]:
    """(people, dimensions) places, how far their intervals reach, and the p-value of each dimension."""
    agreement = pairs.agreement(x)
    shrunk = pairs.shrink(agreement, x)
    values, place = _leading(agreement * shrunk)
    null = np.array([_leading(pairs.agreement(x[_dealt(item, rng)]) * shrunk)[0] for _ in range(DEALS)])
    # The true panel is one deal among the others; where all give the same eigenvalues, rounding must not decide.
    p_values = (1 + (null >= values - 1e-9).sum(axis=0)) / (1 + DEALS)
    # A second dimension means nothing without the first.
    counted = int(np.cumprod(p_values < LEVEL).sum())
    place = place[:, :counted]
    drawn = []
    for _ in range(RESAMPLES if counted else 0):
        weights = rng.multinomial(pairs.items, np.full(pairs.items, 1 / pairs.items)).astype(np.float64)
        _, again = _leading(pairs.agreement(x, weights) * shrunk)
        turn, _ = orthogonal_procrustes(again[:, :counted], place)
        drawn.append(again[:, :counted] @ turn)
    reach = 1.96 * np.std(drawn, axis=0) if drawn else np.empty((pairs.people, 0))
    kept = int(np.cumprod((np.abs(place) > reach).mean(axis=0) > CLEAR).sum())
    return place[:, :kept], reach[:, :kept], p_values.tolist()


def _chosen(votes: Votes, rng: np.random.Generator) -> tuple[Ints, Ints, list[str]]:
    """The votes that count, who cast them, and sentences on who was left out."""
    assert votes.annotators is not None
    left_out = []
    cast = np.bincount(votes.annotators.code, minlength=len(votes.annotators))
    people = np.sort(np.argsort(-cast, kind="stable")[:MOST_PEOPLE])
    people = people[cast[people] > 0]
    if (cast > 0).sum() > people.size:
        left_out.append(f"the {people.size} people who judged most are placed, of {int((cast > 0).sum()):,}")
    mine = np.isin(votes.annotators.code, people)
    size = np.bincount(votes.item[mine], minlength=len(votes.items))
    # Of two votes on an item nothing is left beyond the item.
    items = rng.permutation(np.flatnonzero(size >= 3))
    fitting = items[: max(1, int((np.cumsum(size[items] * (size[items] - 1) // 2) <= MOST_PAIRS).sum()))]
    if fitting.size < items.size:
        left_out.append(f"{fitting.size:,} of {items.size:,} items count, drawn at random")
    rows = np.flatnonzero(mine & np.isin(votes.item, fitting))
    return rows, np.unique(votes.annotators.code[rows]).astype(np.int64), left_out


class Pairs:
    """All pairs of votes on one item, once."""

    def __init__(self, item: Ints, who: Ints, people: int) -> None:
        order = np.argsort(item, kind="stable")
        size = np.bincount(item)
        # Every vote is paired with those of its item that stand behind it.
        behind = np.repeat(np.cumsum(size), size) - 1 - np.arange(len(item))
        first = np.repeat(np.arange(len(item)), behind)
        step = np.arange(behind.sum()) - np.repeat(np.cumsum(behind) - behind, behind) + 1
        self.one, self.other = order[first], order[first + step]
        self.item, self.items, self.people = item[self.one], size.size, people
        self.in_item = np.bincount(self.item, minlength=self.items)
        self.cell = who[self.one] * people + who[self.other]

    def products(self, x: Table) -> Floats:
        """(pairs,) how far two votes agree beyond what the item's pairs agree."""
        product = np.einsum("pk,pk->p", x[self.one], x[self.other])
        mean = np.bincount(self.item, weights=product, minlength=self.items) / np.maximum(self.in_item, 1)
        return np.asarray(product - mean[self.item])

    def sums(self, values: Floats) -> Table:
        """(people, people) sums of values of pairs, the same both ways; nobody is paired with themselves."""
        table = np.bincount(self.cell, weights=values, minlength=self.people**2).reshape(self.people, self.people)
        table = table + table.T
        np.fill_diagonal(table, 0.0)
        return np.asarray(table)

    def agreement(self, x: Table, weights: Floats | None = None) -> Table:
        """(people, people) means over shared items; 0 where two people share none."""
        weight = np.ones(len(self.item)) if weights is None else weights[self.item]
        return np.asarray(self.sums(weight * self.products(x)) / np.maximum(self.sums(weight), 1e-9))

    def shrink(self, agreement: Table, x: Table) -> Table:
        """(people, people) from 0 to 1, how far the mean over shared items is to be believed.

        n / (n + noise / spread), with the variance of single products and that of true means between pairs of people;
        no less than 1/n of it is taken for true, so that a matrix of noise is still a matrix.
        """
        shared = self.sums(np.ones(len(self.item)))
        upper = np.triu(shared > 0, 1)
        noise = float(np.var(self.products(x)))
        n = shared[upper]
        spread = float(np.average(agreement[upper] ** 2 - noise / n, weights=n))
        ratio = noise / max(spread, noise / max(float(n.sum()), 1.0), 1e-12)
        return np.asarray(shared / (shared + ratio))


def _leading(matrix: Table) -> tuple[Floats, Table]:
    """The largest eigenvalues, and people's places along their vectors."""
    # Dense, though iterations would be faster for many people: these do not end on a matrix of zeros.
    values, vectors = eigh(matrix, subset_by_index=[len(matrix) - DIMENSIONS, len(matrix) - 1])
    values, vectors = values[::-1], vectors[:, ::-1]
    # The side of a vector is arbitrary; the largest entry is put on the right.
    side = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])])
    return values, np.asarray(vectors * side * np.sqrt(np.maximum(values, 0.0)))


def _dealt(item: Codes | Ints, rng: np.random.Generator) -> Ints:
    """(votes,) votes dealt out anew among the voters of each item."""
    order = np.argsort(item, kind="stable")
    mixed = np.lexsort((rng.random(len(item)), item))
    out = np.empty(len(item), dtype=np.int64)
    out[order] = mixed
    return out


@dataclass(frozen=True, eq=False, kw_only=True)
class PartedItems:
    """Items on which groups part.

    Attributes:
        items: indices of the items, the most parted first; only those that part more than any item of 95 % of panels
            does in which the voters of each item were dealt out to the groups at random.
        compared: how many items two groups or more judged with enough votes.
        shares: (items, groups, classes) what each group said of them; NaN for a group without a vote.
        votes: (items, groups) how many votes that rests on.
    """

    items: Ints
    compared: int
    shares: np.ndarray[Any, np.dtype[np.float64]]
    votes: Table


def parted_items(
    votes: Votes,
    group: Codes | Ints,
    *,
    groups: int,
    least: int = LEAST_PEOPLE,
    deals: int = 199,
    most: int = 6,
    seed: Seed = 0,
) -> PartedItems:
    """The items on which groups of people part, by Pearson's chi-squared of groups and classes.

    Args:
        votes: with annotators.
        group: (annotators,) the group of each person, below 0 for those who do not count.
        groups: how many.
        least: votes of a group that an item needs for the group to count on it: what fewer people said is not shown.
        deals: how often voters are dealt out to groups.
        most: how many items are shown.
        seed: of the deals.
    """
    assert votes.annotators is not None
    rows = np.flatnonzero(group[votes.annotators.code] >= 0)
    cell = votes.item[rows].astype(np.int64) * groups + group[votes.annotators.code[rows]]
    rows = rows[np.bincount(cell, minlength=1)[cell] >= least]
    item, label, member = votes.item[rows], votes.label[rows], group[votes.annotators.code[rows]]
    items, classes = len(votes.items), len(votes.classes)

    def table(member: Ints | Codes) -> np.ndarray[Any, np.dtype[np.float64]]:
        cell = (item.astype(np.int64) * groups + member) * classes + label
        counts = np.bincount(cell, minlength=items * groups * classes)
        return counts.reshape(items, groups, classes).astype(np.float64)

    observed = table(member)
    of_group, of_class = observed.sum(axis=2, keepdims=True), observed.sum(axis=1, keepdims=True)
    expected = of_group * of_class / np.maximum(of_class.sum(axis=2, keepdims=True), 1)

    def parted(counts: Any) -> Floats:
        return np.asarray(((counts - expected) ** 2 / np.where(expected > 0, expected, 1)).sum(axis=(1, 2)))

    rng = np.random.default_rng(seed)
    # The true groups are one way of dealing among the others: only so is the test exact.
    ways = [member, *(member[_dealt(item, rng)] for _ in range(deals))]
    chi = np.stack([parted(table(way)) for way in ways])
    # Tables of other sizes have other spreads: each item is measured in its own.
    middle, spread = chi.mean(axis=0), chi.std(axis=0)
    compared = spread > 1e-9
    chi = np.where(compared, (chi - middle) / np.where(compared, spread, 1), -np.inf)
    furthest = chi.max(axis=1)
    order = np.argsort(-chi[0], kind="stable")[:most]
    as_far = (furthest[:, None] >= chi[0][order]).mean(axis=0)
    sure = order[(as_far <= LEVEL) & compared[order]]
    with np.errstate(invalid="ignore"):
        shares = observed[sure] / of_group[sure]
    return PartedItems(items=sure, compared=int(compared.sum()), shares=shares, votes=of_group[sure, :, 0])
