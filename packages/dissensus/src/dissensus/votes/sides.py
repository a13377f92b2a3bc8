"""Sides of a pair: naming them is arbitrary, so whatever is made of preferences is the same with any of them swapped.

The classes of preferences run from left to right, and reversing them is what swapping the sides does. What is learnt
from all items together (a prior, an annotator's confusions, chance agreement) is learnt from the items and their mirror
images, half an item each: `both_sides`. It is then the same whichever way round each item is named.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.errors import InputError
from dissensus.item_names import places_of_items
from dissensus.votes.columns import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dissensus.arrays import Mask
    from dissensus.votes.table import Votes

LEFT, TIE, RIGHT = "left", "tie", "right"

_NAMES: Final = (("left", "right"), ("a", "b"), ("1", "2"), ("first", "second"), ("chosen", "rejected"))

_SYSTEMS: Final = ("model", "system", "assistant", "generator", "policy", "agent", "bot", "method")
"""What columns are called that name who made the left and the right side, without their a and b."""


def both_sides(table: Any) -> Any:
    """(2 items, classes) each row, and after all of them their mirror images."""
    return np.concatenate([table, table[:, ::-1]])


def on_one_side(table: Any) -> Any:
    """(items, classes) of each row and its mirror image the one that leans to the left.

    Where what follows is the same for both, random draws are, too.

    >>> on_one_side(np.array([[0, 1, 2], [2, 0, 1]])).tolist()
    [[2, 1, 0], [2, 0, 1]]
    """
    lean = table - table[:, ::-1]
    first = np.take_along_axis(lean, (lean != 0).argmax(axis=1)[:, None], axis=1)
    return np.where(first < 0, table[:, ::-1], table)


def symmetric(sums: Any) -> Any:
    """(..., classes) sums over items as they would be over items and mirror images, half an item each."""
    return (sums + sums[..., ::-1]) / 2


def with_mirror_images(votes: Votes) -> Votes:
    """The votes on all items, and the same votes on their mirror images, which are items of their own after them."""
    judged = np.arange(votes.n_judgements)
    twice = votes.take_judgements(np.concatenate([judged, judged]))
    second = np.arange(len(twice)) >= len(votes)
    return replace(
        twice,
        item=(twice.item + second * len(votes.items)).astype(np.int32),
        label=np.where(second, len(votes.classes) - 1 - twice.label, twice.label).astype(np.int32),
        items=np.concatenate([votes.items, votes.items]),
        item_attributes={},
    )


def swap_sides(votes: Votes, items: Any = None) -> Votes:
    """The same preferences with the sides of some items named the other way round.

    `items` are their names, or an (items,) mask; None is all.

    Labels are mirrored, and so is what describes either side (`left` and `right`, `response_1` and `response_2`). All
    that dissensus makes of preferences stays the same but for these names.

    >>> from dissensus.votes import read_votes
    >>> rows = [{"item": 1, "model_a": "x", "model_b": "y", "annotator": "ann", "winner": "model_a"}]
    >>> votes = read_votes(rows, format="preferences")
    >>> votes.counts.tolist(), swap_sides(votes).counts.tolist()
    ([[1, 0, 0]], [[0, 0, 1]])
    """
    if votes.swapped is None:
        raise InputError("votes: these are no preferences, and have no sides; read them with format='preferences'")
    turned = np.ones(len(votes.items), dtype=np.bool_) if items is None else np.asarray(items)
    if turned.dtype != np.bool_:
        names = turned.astype(np.dtypes.StringDType())
        unknown = np.flatnonzero(places_of_items(names, votes.items) < 0)
        if unknown.size:
            raise InputError(f"swap_sides: there is no item '{names[unknown[0]]}'; give names of items, or a mask")
        turned = places_of_items(votes.items, np.unique(names)) >= 0
    if turned.shape != votes.items.shape:
        raise InputError(
            f"swap_sides: a mask of {turned.size:,} for {len(votes.items):,} items; give one for each item"
        )
    here = turned[votes.item]
    return replace(
        votes,
        label=np.where(here, len(votes.classes) - 1 - votes.label, votes.label).astype(np.int32),
        swapped=votes.swapped ^ here,
        item_attributes=turn_pairs(votes.item_attributes, turned),
    )


def turn_pairs(attributes: Any, turned: Mask) -> dict[str, Any]:
    """What describes items, with the values of either side exchanged where an item is turned."""
    result = dict(attributes)
    for first, second in side_pairs(attributes):
        one, other = attributes[first], attributes[second]
        if one.dtype != other.dtype:
            one, other = (values.astype(np.dtypes.StringDType()) for values in (one, other))
        result[first], result[second] = np.where(turned, other, one), np.where(turned, one, other)
    return result


def side_pairs(names: Iterable[str]) -> list[tuple[str, str]]:
    """Names that are alike but for the side: `model_a` and `model_b`, `response1` and `response2`.

    >>> side_pairs(["question", "model_a", "model_b", "Response1", "Response2"])
    [('model_a', 'model_b'), ('Response1', 'Response2')]
    """
    known = {plain(name): name for name in names}
    found = []
    for spelled, name in known.items():
        for first, second in _NAMES:
            # A number may stand right behind a word.
            own = rf"(?<![a-z0-9]){first}(?![a-z0-9])" + (r"|(?<=[a-z])1$" if first == "1" else "")
            other = re.sub(own, second, spelled, count=1)
            found += [(name, known[other])] if other != spelled and other in known else []
    return found


def side_columns(columns: Sequence[str], given: Sequence[str] | None) -> list[str]:
    """The columns that name the two sides: those given, else those called so (`model_a` and `model_b`)."""
    if given:
        return [name for name in given if name in columns]
    ends = r"(_?(a|b|1|2|left|right|first|second))"
    for first, second in side_pairs(columns):
        if re.fullmatch(rf"(({'|'.join(_SYSTEMS)})(_name|_id)?{ends})|left|chosen", plain(first)):
            return [first, second]
    return []


@dataclass(frozen=True)
class PositionBias:
    """How much somebody likes the side that is shown on the left, or first.

    Attributes:
        annotator: who.
        model: whether a model.
        judgements: those on pairs that other people judged, too.
        left: the share of them that prefer the side shown on the left; a tie is half of one.
        expected: the same of the other people who judged these pairs, turned to the way that they were shown here.
        bias: `left` - `expected`.
        low: the lower end of its 95 % interval, over pairs; None for fewer than two.
        high: its upper end.
    """

    annotator: str
    model: bool
    judgements: int
    left: float
    expected: float
    bias: float
    low: float | None
    high: float | None


def position_bias(votes: Votes) -> tuple[PositionBias, ...]:
    """The position bias of each annotator who shares pairs with other people, in their order.

    It is told from what other people say of the same pair. Where everybody saw a pair the same way round, a bias that
    all share is part of what they say, and not seen here; where sides are drawn at random for each vote, it is.
    """
    if votes.swapped is None or votes.annotators is None:
        return ()
    code, size = votes.annotators.code, len(votes.annotators)
    side = np.sign((len(votes.classes) - 1) / 2 - votes.label)
    person = np.ones(len(votes)) if votes.by_model is None else (~votes.by_model).astype(np.float64)
    pair = votes.item.astype(np.int64) * size + code
    _, own = np.unique(pair, return_inverse=True)
    numbers, sums = (
        np.bincount(votes.item, weight, len(votes.items))[votes.item] - np.bincount(own, weight)[own]
        for weight in (person, person * side)
    )
    shown = np.where(votes.swapped, -1.0, 1.0)
    compared = numbers > 0
    others = shown[compared] * sums[compared] / numbers[compared]
    mine, who = (shown * side)[compared], code[compared]
    count = np.bincount(who, minlength=size)
    mean = {name: np.bincount(who, of, size) / np.maximum(count, 1) for name, of in (("own", mine), ("others", others))}
    away = (mine - others - (mean["own"] - mean["others"])[who]) / 2
    error = np.sqrt(np.bincount(who, away**2, size) / np.maximum(count * (count - 1), 1))
    models = votes.model_annotators
    found = []
    for place in np.flatnonzero(count).tolist():
        left, expected = ((1 + float(mean[name][place])) / 2 for name in ("own", "others"))
        half = 1.96 * float(error[place])
        ends = (left - expected - half, left - expected + half) if count[place] > 1 else (None, None)
        name = str(votes.annotators.names[place])
        found.append(PositionBias(name, bool(models[place]), int(count[place]), left, expected, left - expected, *ends))
    return tuple(found)
