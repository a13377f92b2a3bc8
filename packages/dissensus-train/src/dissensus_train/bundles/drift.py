"""Has the panel moved: do people now answer otherwise than those a model learnt from?

Two comparisons, class by class, of which the first is the better one:

- The same items judged before and after: the mean over items of p_after - p_before. Nothing but people can move it.
- Other items, none of which the model was trained on: the mean over judgements of the answer less what the model
  forecast, now less then. The forecast stands for what the items are; a new kind of items can move it too.

Judgements of one item share the item, those of one person the person. On other items the variance is that of two-way
clusters (Cameron, Gelbach and Miller 2011; `evaluation.people.two_way`), each part with degrees of freedom of its own;
on the same items, which move nothing unless people do, the wider of both. p-values are corrected by Holm over the
classes; two classes mirror each other and are one test.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.sparse import vstack

from dissensus.arrays import Floats, Ints, Table, places_of
from dissensus.errors import InputError
from dissensus.evaluation.comparison.differences import holm
from dissensus.evaluation.comparison.intervals import Spread, estimate_within
from dissensus.evaluation.finite_panel.panel import Panel, panel_of
from dissensus.evaluation.people.two_way import two_way_spread
from dissensus.labels.schemes import weighted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.bootstrap import Estimate
    from dissensus.votes.table import Votes

LEAST: Final = 20
"""Fewer items in common than this are not compared by themselves."""

LEVEL: Final = 0.95

ROUNDING: Final = 1e-9
"""A share of answers that moved by less has not moved."""


@dataclass(frozen=True, kw_only=True)
class Drift:
    """How people's answers moved.

    Attributes:
        shift: by class, the share of answers after less that before, with an interval for other items and people.
        p: of no move at all, corrected by Holm over the classes.
        items: how many were compared.
        same: whether the same items were judged before and after; else answers are less what the model forecast.
        people: whether people are known by name in both, so that other people are allowed for.
        freedom: the least degrees of freedom of a variance; a test with 1 finds hardly any move.
    """

    shift: Mapping[str, Estimate]
    p: float
    items: int
    same: bool
    people: bool
    freedom: int

    @property
    def moved(self) -> bool:
        """Whether people's answers moved significantly."""
        return self.p < 1 - LEVEL

    def __str__(self) -> str:
        name = max(self.shift, key=lambda name: abs(self.shift[name].value))
        p = f"= {self.p:.3f}" if self.p >= 0.001 else "< 0.001"
        on = f"the same {self.items:,} items" if self.same else "other items, beside what the deployed model forecast,"
        told = f"on {on} the share of '{name}' moved most, by {_points(self.shift[name])}, p {p}"
        if not self.moved and self.freedom < 2:
            return f"These votes are too few to tell whether people answer as before: {told}."
        if not self.moved:
            return f"People answer as before, as far as these votes tell: {told}."
        cause = (
            "" if self.same else "; people or the kind of items changed: the same items judged again would tell which"
        )
        return f"People answer otherwise than before: {told}{cause}."


def _points(shift: Estimate) -> str:
    """A difference of shares in percentage points."""
    ends = "" if shift.low is None or shift.high is None else f" [{100 * shift.low:+.1f}, {100 * shift.high:+.1f}]"
    return f"{100 * shift.value:+.1f} points{ends}"


def answers_of(panel: Panel, forecast: Table) -> dict[str, Any] | None:
    """By class, the mean over judgements of the answer less the forecast, and the parts of its spread.

    None where votes are not known, or are all on one item or of one person, which tells nothing of others. A bundle
    keeps this of its held-out items, for `moved_since`; it holds nobody's votes.
    """
    if panel.item is None or panel.vectors is None:
        return None
    off = panel.vectors.toarray() - forecast[panel.item]
    # Where nobody is known, every judgement counts as somebody's only one.
    who = np.arange(len(off)) if panel.annotator is None else panel.annotator
    spreads = [two_way_spread(column, item=panel.item, annotator=who) for column in off.T]
    parts = [() if spread is None else spread.parts for spread in spreads]
    if any(len(each) < 2 for each in parts):
        return None
    return {
        "difference": off.mean(axis=0).tolist(),
        "parts": parts,
        "items": len(panel),
        "people": panel.annotator is not None,
    }


def moved_since(then: Mapping[str, Any], now: Mapping[str, Any], classes: Sequence[str]) -> Drift:
    """What `answers_of` gave of other items, then and now; people who judged both make it no less honest."""
    shift = np.array(now["difference"]) - np.array(then["difference"])
    parts = zip(now["parts"], then["parts"], strict=True)
    spreads = [Spread(tuple((float(v), int(d)) for v, d in (*new, *old))) for new, old in parts]
    people = bool(then["people"] and now["people"])
    return _drift(shift, spreads, classes, items=int(now["items"]), same=False, people=people)


def moved_on_the_same(before: Votes, after: Votes) -> Drift | None:
    """The items that both votes judged; None where there are fewer than `LEAST`."""
    if before.classes != after.classes:
        raise InputError(
            f"before: the classes of these votes are {', '.join(before.classes)}, and those now "
            f"{', '.join(after.classes)}; give votes of the same classes"
        )
    judged = [votes.items[votes.panel_size > 0] for votes in (before, after)]
    names = judged[0][places_of(*judged) >= 0]
    if len(names) < LEAST:
        return None
    old, new = (_panel(votes, places_of(names, votes.items)) for votes in (before, after))
    assert old.item is not None
    assert old.vectors is not None
    assert new.item is not None
    assert new.vectors is not None
    people = old.annotator is not None and new.annotator is not None
    who = None
    if before.annotators is not None and after.annotators is not None and people:
        # Somebody who judged at both times is one person.
        every = np.unique(np.concatenate([before.annotators.names, after.annotators.names]))
        sides = ((before.annotators.names, old.annotator), (after.annotators.names, new.annotator))
        who = np.concatenate([places_of(names_then, every)[place] for names_then, place in sides])
    item = np.concatenate([old.item, new.item]).astype(np.int64)
    size = old.size + new.size
    pooled = (old.mass + new.mass) / size[:, None]
    # Each judgement's part in the shift.
    weight = np.concatenate([-1 / old.size[old.item], 1 / new.size[new.item]]) / len(names)
    part = (vstack([old.vectors, new.vectors]).toarray() - pooled[item]) * weight[:, None]
    # Of people the deviation from the item's other judgements counts, which their own does not shrink.
    apart = part * (size / (size - 1))[item, None]
    spreads = [_spread(*columns, weight, item=item, who=who) for columns in zip(part.T, apart.T, strict=True)]
    return _drift(part.sum(axis=0), spreads, before.classes, items=len(names), same=True, people=people)


def _spread(part: Floats, apart: Floats, weight: Floats, *, item: Ints, who: Ints | None) -> Spread:
    """The spread of a shift: that between items, or that between people where it is the wider.

    The noise of single judgements is in both. Taken off the people's, it would leave too little of a few of them, and
    too many false alarms. People count by their weights: the one person of one side is a single one, however many
    there are on the other.
    """
    of_items = np.bincount(item, weights=part)
    spreads = [Spread(((float(of_items.var(ddof=1)) * len(of_items), len(of_items) - 1),))]
    if who is not None:
        # Each weighs half for either side, and carries so much of the shift itself.
        off = apart - apart.sum() * np.abs(weight) / 2
        of_people, share = np.bincount(who, weights=off), np.bincount(who, weights=np.abs(weight)) ** 2
        people = float(share.sum() ** 2 / (share @ share))
        # Deviations are from the means of two sides of the same people.
        free = max(people - 2, 1)
        spreads.append(Spread(((float(of_people @ of_people) * people / free, round(free)),)))
    return max(spreads, key=Spread.half_width)


def _panel(votes: Votes, rows: Ints) -> Panel:
    some = votes.take_items(rows)
    return panel_of(weighted(some, "equal-weighted"), some)


def _drift(
    shift: Any, spreads: Sequence[Spread], classes: Sequence[str], *, items: int, same: bool, people: bool
) -> Drift:
    # What only rounding moves has not moved.
    values = [float(value) if abs(value) > ROUNDING else 0.0 for value in shift]
    p = np.array([spread.p_value(value) for spread, value in zip(spreads, values, strict=True)])
    most = 1.0 if same else inf
    made = {
        name: estimate_within(value, spread, level=LEVEL, low=-most, high=most, resamples=0)
        for name, value, spread in zip(classes, values, spreads, strict=True)
    }
    p_holm, freedom = float(holm(p[1:] if len(p) == 2 else p).min()), min(df for one in spreads for _, df in one.parts)
    return Drift(shift=made, p=p_holm, items=items, same=same, people=people, freedom=freedom)
