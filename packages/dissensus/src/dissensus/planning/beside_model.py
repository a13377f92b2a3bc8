"""How many votes per item are needed beside a model to know as much as k votes tell alone, and what that saves.

Both are measured, not simulated: k votes of an item forecast its others by people's best forecast (the people ruler),
and n votes do so beside the model (`together`). Where the two score alike, n votes beside the model do what k do alone.
A number between two whole ones is had by giving some items one vote more than others.

The interval is that of the score's gap over items, so that it holds the luck of the pilot's items. Both forecasts are
learnt from the pilot, and votes alone would gain more than votes beside a model from more items to learn from, as a
collection has them: pilots of 200 promised up to 0.4 votes too much. What is lost falls as 1 / items, so each score is
lowered by what learning from half of the pilot's items loses beside all. That is a rough number, and the interval holds
what comes of none of it and of twice as much.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.bootstrap import Estimate, json_fields
from dissensus.errors import InputError
from dissensus.evaluation.finite_panel.people_ruler import people_ruler, worth_of_scores
from dissensus.frames import Framed
from dissensus.planning.next_items import next_votes
from dissensus.planning.planned import Prices, affordable, money, span
from dissensus.together.combined import combine
from dissensus.together.combining import LEAST
from dissensus.together.gains import learn, scores_together
from dissensus.votes.echo import number
from dissensus.votes.reading import votes_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.arrays import Table
    from dissensus.evaluation.finite_panel.people_ruler import Ruler, Worth
    from dissensus.planning.next_items import NextVotes
    from dissensus.together.gains import Learnt

MOST: Final = 10
"""The most votes alone that are looked at."""

USUAL: Final = 3
"""Votes alone that the answer speaks of first, where the pilot tells of as many."""


@dataclass(frozen=True, kw_only=True)
class Saving:
    """What a model saves somebody who would otherwise ask k people about each item.

    Attributes:
        alone: k.
        beside: votes per item that tell as much beside the model.
        none: whether the model tells as much without any.
        votes: saved per item, k less these.
        cost: saved on all items.
        hours: of people's time, saved on all items; None where it is not known how long an answer takes.
    """

    alone: int
    beside: Estimate
    none: bool
    votes: Estimate
    cost: Estimate
    hours: Estimate | None


@dataclass(frozen=True, eq=False, kw_only=True)
class PlanBeside(Framed):
    """Votes that are needed beside a model.

    Attributes:
        items: to be labelled: all that have votes or a prediction.
        savings: by votes alone, as far as the pilot's votes tell.
        answer: in sentences.
        next: which items should get the next votes, given votes and predictions.
        notes: what a reader must know.
    """

    items: int
    savings: tuple[Saving, ...]
    answer: tuple[str, ...]
    next: NextVotes | None
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        return "\n".join([f"PlanBeside({self.items:,} items)", *self.answer])

    def records(self) -> list[dict[str, Any]]:
        """A row per number of votes alone."""
        return [json_fields(saving) for saving in self.savings]

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return json_fields(self)


def plan_with_model(
    votes: Any,
    model: Any,
    *,
    budget: float | None = None,
    prices: Prices | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> PlanBeside:
    """How many votes per item are needed beside a model for what k votes tell alone, what that saves, and where to ask.

    Args:
        votes: a pilot: with m votes per item it tells of up to m - 1 votes alone; at least 20 items with two votes.
        model: one system, or several by name, as `combine` takes them, for the pilot's items and for all others that
            are to be labelled. They must be new to the pilot's items.
        budget: for further votes, in total; without it, as many votes again as the pilot has.
        prices: of votes and items.
        resamples: of items, behind intervals.
        seed: random seed.

    Examples:
        >>> import dissensus as dis
        >>> truth = np.random.default_rng(0).dirichlet([0.4, 0.4, 0.4], 300)
        >>> pilot = dis.simulate_votes(truth, 4, annotators=20, seed=0)
        >>> found = dis.plan_with_model(pilot, 0.8 * truth + 0.2 / 3, prices=Prices(vote=0.1), resamples=100)
        >>> [saving.alone for saving in found.savings]
        [1, 2, 3]
        >>> 1 < found.savings[-1].votes.value <= 3
        True
    """
    votes, prices = votes_in(votes), prices or Prices()
    if budget is not None and not 0 < budget < np.inf:
        raise InputError(f"plan: a budget of {budget:g} buys nothing; give more, as a number")
    both = combine(votes, model, resamples=resamples, seed=seed)
    found = votes_beside(both.learnt, resamples=resamples, seed=seed)
    if isinstance(found, str):
        raise InputError(f"plan: {found}; give at least two votes on most of the pilot's items")
    items = len(both.labels)
    savings = tuple(
        Saving(
            alone=k,
            beside=beside.estimate,
            none=beside.fewer,
            votes=(saved := beside.estimate.linear(-1.0, k)),
            cost=saved.linear(items * prices.vote),
            hours=None if prices.seconds is None else saved.linear(items * prices.seconds / 3600),
        )
        for k, beside in found.items()
    )
    again = int(both.labels.panel_size.sum())
    further = next_votes(
        votes, budget=again if budget is None else min(again, affordable(budget, prices.vote)), beside=both
    )
    most = savings[-1].alone
    reach = f"The pilot's votes tell of up to {number(most, 'vote')} alone; more on each item tell further."
    return PlanBeside(
        items=items,
        savings=savings,
        answer=tuple(_answer(savings, items, further)),
        next=further,
        notes=(*both.verdict, *both.notes, *([reach] if most < MOST else [])),
    )


def votes_beside(learnt: Learnt, *, resamples: int = 1000, seed: int = 0) -> dict[int, Worth] | str:
    """By k, the votes beside models that score as k do alone, or the reason why that is not known."""
    ruler = people_ruler(learnt.panel, seed=seed)
    if isinstance(ruler, str):
        return ruler
    together = scores_beside(learnt, ruler, seed=seed)
    most = len(together) - 1
    lost = together
    if (learnt.panel.size > 1).sum() >= 4 * LEAST:
        lost = scores_beside(learn(learnt.panel, learnt.models, seed=seed, part=0.5), ruler, seed=seed)
    learning = np.nanmean(lost - together, axis=1)
    # From one vote on, scores are told as differences from votes alone, which half of the items teach less, too.
    learning[1:] += ruler.learning[1 : most + 1]
    learning, of_votes = np.maximum(learning, 0.0)[:, None], np.zeros(ruler.panel.mass.shape)

    def measured(k: int, part: float) -> Worth:
        """Of k votes alone, on a ruler of votes beside the model, with such a part of what both have yet to learn."""
        curve = replace(ruler, values=ruler.values[: most + 1], items=ruler.items[: most + 1], without={})
        curve = replace(curve, per_item=together - part * learning, learning=np.zeros(most + 1))
        alone = (ruler.per_item[k] - part * ruler.learning[k])[None]
        return worth_of_scores(curve, alone, of_votes, resamples=resamples, seed=seed)

    found = {}
    for k in range(1, most + 1):
        value, *others = (measured(k, part) for part in (1.0, 0.0, 2.0))
        ends = [end for each in (value, *others) for end in (each.estimate.low, each.estimate.high) if end is not None]
        wide = replace(value.estimate, low=min(ends), high=max(ends)) if ends else value.estimate
        found[k] = replace(value, estimate=wide)
    return found


def scores_beside(learnt: Learnt, ruler: Ruler, *, seed: int = 0) -> Table:
    """(1 + most, items) soft NLL of each item's other votes after n = 0, 1, ... of them beside the models."""
    return np.stack([scores_together(learnt, ruler, n, seed=seed)[0] for n in range(min(ruler.most, MOST) + 1)])


def _answer(savings: Sequence[Saving], items: int, further: NextVotes | None) -> list[str]:
    """What a model saves, how, and where to ask next."""
    saving = savings[min(USUAL, len(savings)) - 1]
    alone, saved, value = f"{number(saving.alone, 'vote')} per item alone", saving.votes, saving.beside.value
    if saved.low is not None and saved.low <= 0:
        answer = [f"It is not shown that the model saves votes where you would ask {alone}: {span(saved)} per item."]
    elif saving.none:
        answer = [f"Without any votes the model tells as much as {alone}."]
    else:
        answer = [f"{span(saving.beside)} votes per item beside the model tell as much as {alone}."]
        if 0.05 < value % 1 < 0.95:
            answer.append(f"That is {int(value)} on each item and one more on {value % 1:.0%} of them.")
    hours = "" if saving.hours is None else f", {span(saving.hours, '{:,.2g}'.format)} hours of people's time"
    if saved.low is None or saved.low > 0:
        price = f"{span(saving.cost, money)} in money on {items:,} items{hours}"
        answer.append(f"It saves {span(saved)} votes per item: {price}.")
    return [*answer, *([] if further is None else [further.answer])]
