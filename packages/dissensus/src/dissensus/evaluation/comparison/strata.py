"""Strata: subsets of the items, each scored on its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.arrays import places_of
from dissensus.errors import InputError
from dissensus.evaluation.finite_panel.panel import divided_judgements
from dissensus.votes.privacy import LEAST_PEOPLE, groups_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dissensus.arrays import Ints, Mask, Table
    from dissensus.evaluation.finite_panel.panel import Panel
    from dissensus.labels.distribution import LabelDistribution
    from dissensus.votes.table import Votes

    Halves = tuple[LabelDistribution, LabelDistribution]
    """What two halves of the judgements say of each item with two or more; `items` are places among all items."""

ALL: Final = "all"
"""The stratum of all items, which stands first in every list of strata."""

LEAST_VOTES: Final = 4
"""Judgements of the median item below which no half of them is left to score."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Stratum:
    """A named subset of the evaluated items.

    Attributes:
        name: for tables.
        items: (items,) true for the items in it; none may be.
        human: the label distributions that these items, in their order, are compared with, where that is not
            everybody's (see `by_attribute`); None for everybody's.
        by_votes: whether the votes chose its items. Such votes are no random draw from what people think: of the items
            that all five of a panel agree on, some would divide another panel. Scored on them, an over-confident model
            beats the truth on the unanimous items.
        rule: how votes choose: label distributions to (items,) which are in it, so that one half of an item's votes can
            choose and the other half score (`rows_of`); None where the items stay as they are.
        note: what else a reader must know.
    """

    name: str
    items: Mask
    human: LabelDistribution | None = None
    by_votes: bool = False
    rule: Callable[[LabelDistribution], Mask] | None = None
    note: str = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class ScoredRows:
    """What a stratum is scored on.

    Attributes:
        item: (rows,) the item of each row, in order; twice where either half of its votes put it into the stratum.
        human: (rows, classes) what the scored votes say of it.
        items: how many items that is; of halves, in the mean over both ways, rounded down, so that strata never hold
            more items than there are; at least 1 where there is a row.
    """

    item: Ints
    human: Table
    items: int


def halves_of(human: LabelDistribution, panel: Panel, *, seed: int) -> Halves | str:
    """Each item's judgements in two halves, drawn at random; a sentence where there are too few of them."""
    middle = float(np.median(panel.size))
    if middle < LEAST_VOTES:
        return f"the median item has {middle:g} votes, and {LEAST_VOTES} are needed"
    rng = np.random.default_rng(seed)
    items = np.flatnonzero(panel.size > 1)
    divided, known = panel.take(items), replace(human.take(items), items=items)
    size = divided.size // 2
    one, other = divided_judgements(divided, [size], rng)

    def part(mass: Any, size: Ints) -> LabelDistribution:
        return replace(known, probabilities=mass / size[:, None], counts=np.zeros_like(known.counts), panel_size=size)

    return part(one, size), part(other, divided.size - size)


def rows_of(stratum: Stratum, human: LabelDistribution, halves: Halves | str) -> ScoredRows:
    """What a stratum is scored on: where votes choose its items, one half of them chooses and the other is scored.

    That is done both ways; where there are no halves, the votes that chose are scored.
    """
    if stratum.rule is None or isinstance(halves, str):
        item = np.flatnonzero(stratum.items)
        votes = human.probabilities[item] if stratum.human is None else stratum.human.probabilities
        return ScoredRows(item=item, human=votes, items=len(item))
    one, other = halves
    by_one, by_other = (np.flatnonzero(stratum.rule(half)) for half in halves)
    item = one.items[np.concatenate([by_one, by_other])]
    votes = np.concatenate([other.probabilities[by_one], one.probabilities[by_other]])
    order = np.argsort(item, kind="stable")
    return ScoredRows(item=item[order], human=votes[order], items=max(len(item) // 2, min(len(item), 1)))


def make_strata(human: LabelDistribution, by: str) -> tuple[Stratum, ...]:
    """The strata of a named idea: agreement (unanimous and varied items), entropy (quarters) or class; all items first.

    Raises:
        InputError: where there is no such idea.
    """
    if by not in STRATA:
        raise InputError(
            f"strata: '{by}' is not one of {', '.join(STRATA)}; for any other column give one name per item"
        )
    return STRATA[by](human)


def by_agreement(human: LabelDistribution) -> tuple[Stratum, ...]:
    """All items, the unanimous and the varied (NoHLV and HLV of the soft-digits paper).

    More votes find more dissent: with 51 votes 44 % of CIFAR-10H is unanimous, with 5 of them 84 %.
    """
    return _by_rule(human, {name: partial(_agreement, name) for name in human.strata if name != ALL})


def _agreement(name: str, human: LabelDistribution) -> Mask:
    return human.strata[name]


def by_entropy(human: LabelDistribution, *, parts: int = 4) -> tuple[Stratum, ...]:
    """All items, and equal parts by human entropy, the surest first.

    Items of equal entropy are in one part, so parts are unequal where many items share one, and a part may be empty.
    """
    if parts < 2:
        raise InputError(f"strata: {parts} parts by entropy; give 2 or more")
    return _by_rule(human, {f"entropy {k + 1}/{parts}": partial(_entropy_part, k, parts) for k in range(parts)})


def _entropy_part(k: int, parts: int, human: LabelDistribution) -> Mask:
    # Equal votes for other classes give entropies that differ by rounding.
    entropy = np.round(human.entropy, 10)
    if not len(human):
        return np.zeros(0, dtype=np.bool_)
    edges = np.quantile(entropy, np.arange(1, parts) / parts, method="inverted_cdf")
    return np.asarray(np.searchsorted(edges, entropy, side="left") == k)


def by_class(human: LabelDistribution) -> tuple[Stratum, ...]:
    """All items, and those of each majority class; a tied majority counts for the first of the tied classes."""
    return _by_rule(human, {name: partial(_majority, k) for k, name in enumerate(human.classes)})


def _majority(k: int, human: LabelDistribution) -> Mask:
    return np.asarray(human.majority().label == k)


def _by_rule(human: LabelDistribution, rules: Mapping[str, Callable[[LabelDistribution], Mask]]) -> tuple[Stratum, ...]:
    strata = (Stratum(name=name, items=rule(human), by_votes=True, rule=rule) for name, rule in rules.items())
    return _all(human), *strata


def by_column(human: LabelDistribution, values: Any) -> tuple[Stratum, ...]:
    """All items, and those of each distinct value of a column, which has one value per item.

    Values are in order of size or alphabet.
    """
    column = np.asarray(values)
    if column.shape != (len(human),):
        raise InputError(f"strata: a column of shape {column.shape} for {len(human):,} items; give one value per item")
    if column.dtype.kind == "O":
        column = column.astype(str)
    if column.dtype.kind == "f" and np.isnan(column).any():
        raise InputError("strata: the column holds NaN; give every item a value, such as 'unknown'")
    names, place = np.unique(column, return_inverse=True)
    return (_all(human), *(Stratum(name=str(name), items=place == k) for k, name in enumerate(names.tolist())))


def by_attribute(
    human: LabelDistribution, votes: Votes, attribute: str, *, scheme: str = "frequency", least: int = LEAST_PEOPLE
) -> tuple[Stratum, ...]:
    """All items against everybody's votes, and for each value of an annotator attribute against that group's votes.

    Here a stratum is not a subset of items but of people: the same predictions are compared with what one group said.
    An item is in the stratum of every group that voted on it, so strata overlap. A
    group has fewer votes per item than everybody, which raises every plain distance: compare groups by the corrected
    estimate, or by how far each score is from what is best achievable for that group, not by the plain scores.

    Args:
        human: the label distributions of the evaluated items.
        votes: the votes behind them, with the annotators' attributes.
        attribute: its name.
        scheme: how each group's votes become label distributions.
        least: how many people a group needs to be a stratum (`dissensus.votes.privacy`).
    """
    from dissensus.labels.labelling import label

    known = places_of(human.items, votes.items)
    # A group is as large as those of it who judged the evaluated items.
    groups = groups_of(votes.take_items(known[known >= 0]), attribute, least=least)
    annotator = votes.judgement_annotator
    assert annotator is not None, "attributes describe annotators"
    strata = [_all(human)]
    for k in sorted(np.flatnonzero(groups.shown).tolist(), key=lambda k: groups.names[k]):
        theirs = votes.take_judgements(np.flatnonzero(groups.group[annotator] == k))
        voted = np.flatnonzero(theirs.panel_size > 0)
        place = places_of(human.items, theirs.items[voted])
        items = place >= 0
        name = f"{attribute} {groups.names[k]}"
        if not items.any():
            strata.append(Stratum(name=name, items=items))
            continue
        group = label(theirs.take_items(voted[place[items]]), scheme)
        few, many = group.panel_size.mean(), human.panel_size[items].mean()
        note = f"compared with {few:.1f} judgements per item, not {many:.1f}"
        strata.append(Stratum(name=name, items=items, human=group, note=note))
    return tuple(strata)


def _all(human: LabelDistribution) -> Stratum:
    return Stratum(name=ALL, items=np.ones(len(human), dtype=np.bool_))


STRATA: Final = {"agreement": by_agreement, "entropy": by_entropy, "class": by_class}
"""The ideas that `make_strata` knows by name."""
