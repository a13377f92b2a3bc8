"""Strata: subsets of the items, each scored on its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.arrays import places_of
from dissensus.errors import InputError
from dissensus.votes.privacy import LEAST_PEOPLE, groups_of

if TYPE_CHECKING:
    from dissensus.arrays import Mask
    from dissensus.labels.distribution import LabelDistribution
    from dissensus.votes.table import Votes

ALL: Final = "all"
"""The stratum of all items, which stands first in every list of strata."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Stratum:
    """A named subset of the evaluated items.

    Attributes:
        name: for tables.
        items: (items,) true for the items in it; none may be.
        human: the label distributions that these items, in their order, are compared with, where that is not
            everybody's (see `by_attribute`); None for everybody's.
        by_votes: whether the votes chose its items. Such votes are no random draw from what people think: of the items
            that all five of a panel agree on, some would divide another panel. So they cannot tell their own noise.
        note: what else a reader must know.
    """

    name: str
    items: Mask
    human: LabelDistribution | None = None
    by_votes: bool = False
    note: str = ""


def make_strata(human: LabelDistribution, by: str) -> tuple[Stratum, ...]:
    """The strata of a named idea: agreement, entropy or class."""
    if by not in STRATA:
        raise InputError(
            f"strata: '{by}' is not one of {', '.join(STRATA)}; for any other column give one name per item"
        )
    return STRATA[by](human)


def by_agreement(human: LabelDistribution) -> tuple[Stratum, ...]:
    """All items, the unanimous and the varied (NoHLV and HLV of the soft-digits paper).

    More votes find more dissent: with 51 votes 44 % of CIFAR-10H is unanimous, with 5 of them 84 %.
    """
    return tuple(Stratum(name=name, items=items, by_votes=name != ALL) for name, items in human.strata.items())


def by_entropy(human: LabelDistribution, *, parts: int = 4) -> tuple[Stratum, ...]:
    """All items, and equal parts by human entropy, the surest first.

    Items of equal entropy are in one part, so parts are unequal where many items share one, and a part may be empty.
    """
    if parts < 2:
        raise InputError(f"strata: {parts} parts by entropy; give 2 or more")
    # Equal votes for other classes give entropies that differ by rounding.
    entropy = np.round(human.entropy, 10)
    edges = (
        np.quantile(entropy, np.arange(1, parts) / parts, method="inverted_cdf") if len(human) else np.zeros(parts - 1)
    )
    part = np.searchsorted(edges, entropy, side="left")
    made = [_all(human)]
    for k in range(parts):
        items = part == k
        held = entropy[items]
        note = f"human entropy {held.min():.3f} to {held.max():.3f} nats" if held.size else ""
        made.append(Stratum(name=f"entropy {k + 1}/{parts}", items=items, by_votes=True, note=note))
    return tuple(made)


def by_class(human: LabelDistribution) -> tuple[Stratum, ...]:
    """All items, and those of each majority class; a tied majority counts for the first of the tied classes."""
    majority = human.majority()
    made = [_all(human)]
    for k, name in enumerate(human.classes):
        items = majority.label == k
        tied = int((items & majority.tied).sum())
        note = f"{tied:,} of them with a tied majority" if tied else ""
        made.append(Stratum(name=name, items=items, by_votes=True, note=note))
    return tuple(made)


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
    made = [_all(human)]
    for k in sorted(np.flatnonzero(groups.shown).tolist(), key=lambda k: groups.names[k]):
        theirs = votes.take_judgements(np.flatnonzero(groups.group[annotator] == k))
        voted = np.flatnonzero(theirs.panel_size > 0)
        place = places_of(human.items, theirs.items[voted])
        items = place >= 0
        name = f"{attribute} {groups.names[k]}"
        if not items.any():
            made.append(Stratum(name=name, items=items))
            continue
        said = label(theirs.take_items(voted[place[items]]), scheme)
        note = (
            f"compared with {said.panel_size.mean():.1f} judgements per item, not {human.panel_size[items].mean():.1f}"
        )
        made.append(Stratum(name=name, items=items, human=said, note=note))
    return tuple(made)


def _all(human: LabelDistribution) -> Stratum:
    return Stratum(name=ALL, items=np.ones(len(human), dtype=np.bool_))


STRATA: Final = {"agreement": by_agreement, "entropy": by_entropy, "class": by_class}
"""The ideas that `make_strata` knows by name."""
