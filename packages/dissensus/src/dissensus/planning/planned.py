"""A plan: n items with k votes each at one cost, for a stated goal, with what each choice would show."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.arrays import cross_counts
from dissensus.bootstrap import json_fields, json_value
from dissensus.errors import InputError
from dissensus.evaluation.arguments import systems_in
from dissensus.evaluation.comparison.verdict import listed
from dissensus.evaluation.finite_panel.known_votes import added_or_chosen, knows_the_votes
from dissensus.evaluation.finite_panel.panel import panel_of
from dissensus.evaluation.finite_panel.shared_annotators import UNKNOWN_PEOPLE
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.evaluation.scoring import rules_out
from dissensus.frames import Framed
from dissensus.labels.schemes import frequency
from dissensus.planning.comparing import (
    HIDDEN,
    MOST_ITEMS,
    POWER,
    WORTH,
    plain_gain,
    plain_scores,
    real_pair,
    simulated_pair,
)
from dissensus.planning.fitted import fit_panel
from dissensus.planning.next_items import NextVotes, next_votes
from dissensus.planning.predicted import FEW_PEOPLE, PARTS, predict
from dissensus.votes.agreement import single_choice
from dissensus.votes.echo import number
from dissensus.votes.reading import votes_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dissensus.arrays import Counts, Table
    from dissensus.bootstrap import Estimate
    from dissensus.planning.comparing import Pair
    from dissensus.planning.predicted import Prediction
    from dissensus.votes.table import Votes

VOTES: Final = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50)
"""The numbers of votes per item that are weighed."""

FEW: Final = 10
"""Fewer votes per item than this are few: `few` in the benchmark's protocol."""

GOALS: Final = ("soft_nll", "accuracy", "tvd", "wasserstein", "agreement")
"""What a plan can be for: finding the better of two systems by a metric, or measuring agreement."""

NEAR: Final = 0.1
"""Plans within this part of the best one are as good."""

TRAINED: Final = (
    "What a model trained on these votes would score cannot be known from votes alone: train on parts of the pilot "
    "(dissensus study run) and see how its score grows."
)


@dataclass(frozen=True, kw_only=True)
class Prices:
    """What a collection costs, in one currency; by default each vote costs 1, and a budget is a number of votes.

    Attributes:
        vote: of one vote.
        item: of one item, whatever its votes: finding it, preparing it.
        seconds: that one answer takes; None where that is not known.
    """

    vote: float = 1.0
    item: float = 0.0
    seconds: float | None = None

    def __post_init__(self) -> None:
        if not (self.vote > 0 and self.item >= 0 and (self.seconds is None or self.seconds > 0)):
            raise InputError("plan: a vote must cost more than 0, an item 0 or more, and an answer take time")

    def cost(self, items: int, k: int) -> float:
        """Of n items with k votes each."""
        return items * (self.item + k * self.vote)

    def hours(self, items: int, k: int) -> float | None:
        """Of people's time."""
        return None if self.seconds is None else items * k * self.seconds / 3600


@dataclass(frozen=True, eq=False, kw_only=True)
class Choice:
    """One way to spend: n items with k votes.

    Attributes:
        items: n.
        k: votes per item.
        cost: in total.
        hours: of people's time; None where the seconds that an answer takes are not known.
        shown: what would be measured.
        power: by metric, of finding the better of the two systems.
        error: by metric, root mean squared error of the measured difference, in parts of the true one.
        scores: of systems whose predictions were given, by system and metric, what they would score.
    """

    items: int
    k: int
    cost: float
    hours: float | None
    shown: Prediction
    power: Mapping[str, Estimate]
    error: Mapping[str, Estimate]
    scores: Mapping[str, Mapping[str, Estimate]]

    def to_dict(self) -> dict[str, Any]:
        """The choice, ready for JSON."""
        return {"votes": self.k, **json_fields(self, but=("k", "shown")), **json_fields(self.shown, but=("k", "items"))}


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan(Framed):
    """What a pilot tells of how to spend.

    Attributes:
        goal: what it is for.
        budget: in total; None where the cheapest plan of a power of 80 % was asked for.
        choices: by votes per item, at one cost, or those that reach the power.
        best: the recommended one; None where no choice reaches the power.
        prices: of votes and items.
        needed: by metric and votes per item, how many items give a power of 80 %.
        difference: by metric, of the two systems, against everybody.
        answer: in sentences.
        delivery: what to train with, from the benchmark.
        next: which items of the pilot should get the next votes.
        notes: what a reader must know.
    """

    goal: str
    budget: float | None
    choices: tuple[Choice, ...]
    best: Choice | None
    prices: Prices
    needed: Mapping[str, Mapping[int, Estimate]]
    difference: Mapping[str, float]
    answer: tuple[str, ...]
    delivery: str
    next: NextVotes | None
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        return "\n".join([f"Plan({self.goal}, {len(self.choices)} choices)", *self.answer])

    def records(self) -> list[dict[str, Any]]:
        """A row per choice."""
        return [choice.to_dict() for choice in self.choices]

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        best = None if self.best is None else {"items": self.best.items, "votes": self.best.k}
        return {
            **json_fields(self, but=("best", "prices", "needed")),
            "best": best,
            "items_needed": json_value(self.needed),
        }


def plan(
    votes: Votes | Any,
    *,
    goal: str = "soft_nll",
    budget: float | None = None,
    difference: float | None = None,
    prices: Prices | None = None,
    systems: Any | None = None,
    seed: int = 0,
) -> Plan:
    """How many items with how many votes, from a pilot.

    Args:
        votes: the pilot: single choices, most items with two votes or more.
        goal: one of `GOALS`.
        budget: what may be spent in all, in the currency of the prices; None asks for the cheapest plan that finds the
            better of two systems with a power of 80 %.
        difference: between those systems, in the metric of the goal; None takes a simulated pair of which the worse
            system knows nothing of every tenth item.
        prices: of votes and items.
        systems: one or two by name, as `evaluate` takes predictions, for the pilot's items; two of them take the place
            of the simulated pair, and the better one by the goal on the pilot stays so.
        seed: random seed.

    Examples:
        >>> import numpy as np
        >>> from dissensus.votes import simulate_votes
        >>> truth = np.random.default_rng(0).dirichlet([0.5, 0.5, 0.5], size=150)
        >>> found = plan(simulate_votes(truth, 4, annotators=20, seed=0), budget=2000)
        >>> found.best.items * found.best.k
        2000
    """
    votes, prices = votes_in(votes), prices or Prices()
    systems, seen = (None, []) if systems is None else _of_pilot(systems, votes)
    _check(votes, goal, budget, difference, systems)
    counts = votes.counts[votes.panel_size > 0]
    metrics = ["soft_nll", "accuracy", "tvd", *(["wasserstein"] if votes.ordered else [])]
    panel = fit_panel(counts, seed=seed)
    ks = [k for k in VOTES if budget is None or prices.cost(2, k) <= budget]
    if not ks or (goal == "agreement" and ks == [1]):
        raise InputError(f"plan: a budget of {budget:g} does not buy two items with the votes for it; give more")
    held = goal if goal in metrics else "soft_nll"
    systems = {name: table[votes.panel_size > 0] for name, table in (systems or {}).items()}
    seen += _of_votes(votes, systems)
    for name, table in systems.items():
        if rules_out(counts, table):
            raise InputError(
                f"plan: expected a probability above 0 for each class that people chose; {name} gives 0, as answers "
                "without probabilities do, and soft NLL is infinite; give probabilities"
            )
    if systems:
        real = real_pair(counts, systems, ks, metrics=metrics, seed=seed)
        if len(systems) > 1:
            # The pilot's own votes decide which system is better. The fitted population may give another order.
            if (plain := plain_gain(held, plain_scores(held, counts, systems)).mean()) < 0:
                systems = dict(reversed(systems.items()))
                real = real_pair(counts, systems, ks, metrics=metrics, seed=seed)
            if not plain or real.difference(held) <= 0:
                better, worse = systems
                raise InputError(
                    f"plan: expected a better system by {METRICS[held].short}; {better} is ahead of {worse} by "
                    f"{abs(plain):.3g} on the pilot's votes, and by {real.difference(held):.3g} against everybody as "
                    "fitted; give two systems that differ, or another goal"
                )
    pair = (
        real
        if len(systems) > 1
        else simulated_pair(panel, ks, metrics=metrics, goal=held, difference=difference, seed=seed)
    )
    needed = {metric: {k: n for k in ks if (n := pair.items_needed(metric, k)) is not None} for metric in metrics}
    sizes = (
        [(affordable(budget, prices.cost(1, k)), k) for k in ks]
        if budget is not None
        else [(ceil(n.value), k) for k, n in needed[goal].items()]
    )
    without = _without_people(votes, seed=seed)
    scale = votes.scale if votes.ordered else None
    shown = predict(counts, panel, sizes, scale=scale, without=without, seed=seed)
    choices = tuple(
        Choice(
            items=n,
            k=k,
            cost=prices.cost(n, k),
            hours=prices.hours(n, k),
            shown=prediction,
            power={metric: pair.power(metric, n, k) for metric in metrics},
            error={metric: pair.error(metric, n, k) for metric in metrics},
            scores={name: {metric: real.score(name, metric, k) for metric in metrics} for name in systems},
        )
        for (n, k), prediction in zip(sizes, shown, strict=True)
    )
    loss = {choice.k: _loss(choice, goal, budget) for choice in choices}
    best = min(choices, key=lambda choice: loss[choice.k], default=None)
    # As many votes again as the pilot has, or fewer: what it tells of its items does not reach further.
    again = int(counts.sum())
    further = next_votes(votes, budget=again if budget is None else min(again, affordable(budget, prices.vote)))
    return Plan(
        goal=goal,
        budget=budget,
        choices=choices,
        best=best,
        prices=prices,
        needed=needed,
        difference={metric: pair.difference(metric) for metric in metrics},
        answer=tuple(_answer(goal, budget, choices, best, loss, pair, further)),
        delivery=delivery_advice(float(counts.sum(axis=1).mean())),
        next=further,
        notes=(*_notes(votes, pair, list(systems)), *_of_people(votes, len(without)), *seen),
    )


def _without_people(votes: Votes, *, seed: int) -> list[Counts]:
    """The (items, classes) votes without each of the people, or of at most `PARTS` random parts of them.

    Empty where who voted is not known, or nobody judged two items.
    """
    if votes.annotators is None:
        return []
    code, seen = votes.annotators.code, votes.panel_size > 0
    judged = np.bincount(code)
    if judged.max() < 2:
        return []
    people = np.flatnonzero(judged)
    part = np.zeros(len(judged), dtype=np.int64)
    part[people] = np.random.default_rng(seed).permutation(len(people)) % min(len(people), PARTS)
    theirs = (part[code] == one for one in np.unique(part[people]))
    taken = (cross_counts(votes.item[mine], votes.label[mine], votes.counts.shape) for mine in theirs)
    return [(votes.counts - each)[seen] for each in taken]


def _of_people(votes: Votes, parts: int) -> list[str]:
    """A warning where few people judged the whole pilot."""
    if votes.annotators is None:
        return [f"Warning: {UNKNOWN_PEOPLE}."]
    if not 0 < parts < FEW_PEOPLE:
        return []
    known = f"Intervals of agreement and alpha allow for other people, with {parts - 1} degrees of freedom"
    return [
        f"Warning: the same {parts} people judged the pilot. {known}; power takes these for everybody. Ask more people."
    ]


def _of_votes(votes: Votes, systems: Mapping[str, Table]) -> list[str]:
    """Warnings where votes were added to some items, and of systems that seem to know the pilot's votes."""
    judged = votes.take_items(np.flatnonzero(votes.panel_size > 0))
    panel = panel_of(frequency(judged), judged)
    added = added_or_chosen(panel)
    told = {name: why for name, system in systems.items() if (why := knows_the_votes(panel, system[None]))}
    return [*([f"Warning: {added}."] if added else []), *(f"Warning: {name}: {why}." for name, why in told.items())]


def delivery_advice(votes_per_item: float) -> str:
    """What to train with, in the words of the benchmark (`answers.json` has them from `docs/results/bench.json`)."""
    answers = json.loads(Path(__file__).with_name("answers.json").read_text(encoding="utf-8"))
    return str(answers["few" if votes_per_item < FEW else "many"])


def _of_pilot(systems: Any, votes: Votes) -> tuple[dict[str, Table], list[str]]:
    """Return (items, classes) probabilities of each system, and warnings on systems that used items of the pilot."""
    _, named, _ = systems_in(systems, frequency(votes))
    for name, system in named.items():
        if set(system.classes) != set(votes.classes):
            raise InputError(f"plan: {name} has classes that nobody voted for; leave them out")
    order = {name: [system.classes.index(label) for label in votes.classes] for name, system in named.items()}
    told = [f"Warning: {seen}." for name, system in named.items() if (seen := system.seen(name))]
    return {name: system.probabilities.mean(axis=0)[:, order[name]] for name, system in named.items()}, told


def affordable(budget: float, price: float) -> int:
    """How many a budget buys; three at 0.1 cost 0.3, though 0.3 / 0.1 is a little less than 3 in binary numbers."""
    number = int(budget / price)
    return number + ((number + 1) * price <= budget * (1 + 4e-15))


def _check(
    votes: Votes, goal: str, budget: float | None, difference: float | None, systems: Mapping[str, Table] | None
) -> None:
    if goal not in GOALS:
        raise InputError(f"plan: there is no goal '{goal}'; choose {', '.join(GOALS)}")
    if goal == "wasserstein" and not votes.ordered:
        raise InputError("plan: wasserstein needs classes that are a scale; add ordered=, or choose tvd")
    if not single_choice(votes):
        raise InputError("plan: the votes have judgements with several classes or none; a pilot needs single choices")
    votes.require_people()
    if (votes.counts.sum(axis=0) > 0).sum() < 2:
        raise InputError("plan: all votes are for one class, so that nothing can be compared; ask more items")
    if (votes.panel_size >= 2).sum() < 10:
        raise InputError(
            f"plan: {(votes.panel_size >= 2).sum()} items have two votes or more; ask at least 10 items twice, or "
            "nothing is known of how people differ"
        )
    if budget is None and goal == "agreement":
        raise InputError("plan: agreement has no power to reach; give a budget")
    if budget is not None and not 0 < budget < np.inf:
        raise InputError(f"plan: a budget of {budget:g} buys nothing; give more, as a number")
    if systems is not None and len(systems) > 2:
        raise InputError(f"plan: {len(systems)} systems; give one, or the two that are to be compared")
    if difference is not None and systems is not None and len(systems) == 2:
        raise InputError("plan: two systems differ as they do; leave out the difference, or one of them")


def _loss(choice: Choice, goal: str, budget: float | None) -> float:
    """What is to be small: the cost of the power, the error of the difference, or the width of alpha's interval."""
    if budget is None:
        return choice.cost
    if goal != "agreement":
        return choice.error[goal].value
    alpha = choice.shown.alpha.estimate
    return np.inf if alpha is None or alpha.low is None or alpha.high is None else alpha.high - alpha.low


def _answer(
    goal: str,
    budget: float | None,
    choices: Sequence[Choice],
    best: Choice | None,
    loss: Mapping[int, float],
    pair: Pair,
    further: NextVotes | None,
) -> list[str]:
    """What to do, for which metric, what other metrics would want, and what is not known."""
    if best is None:
        return [
            (
                f"No number of votes up to {VOTES[-1]} shows the difference in {METRICS[goal].short}: more than "
                f"{HIDDEN:.0%} of it stays hidden behind few votes, or it takes more than {MOST_ITEMS:,.0f} items."
            ),
            TRAINED,
        ]
    votes = number(best.k, "vote")
    hours = "" if best.hours is None else f", {best.hours:,.0f} hours of people's time"
    size = f"{best.items:,} items x {votes} (cost {money(best.cost)}{hours})"
    if goal == "agreement":
        answer = [f"{size} measure agreement best: alpha {best.shown.alpha.estimate}."]
    else:
        power, gap = span(best.power[goal], "{:.0%}".format), f"{pair.difference(goal):.3g}"
        by = f"{METRICS[goal].short} with a power of {power}, where they differ by {gap} against everybody"
        answer = [f"{size} find the better of two systems by {by}."]
        if budget is not None and best.power[goal].value < POWER:
            answer[:0] = [_too_little(goal, budget, choices, best, pair)]
    near = [choice.k for choice in choices if loss[choice.k] <= (1 + NEAR) * loss[best.k]]
    if best.k < choices[-1].k:
        answer.append(
            f"More items beat more votes here, from {votes} per item on."
            if best.k == choices[0].k
            else f"Beyond {best.k} votes per item, buy items instead."
        )
    if len(near) > 1:
        answer.append(f"{_ends(near, choices)} votes per item measure it as well within {NEAR:.0%}.")
    if best.k == 1:
        answer.append(
            "With one vote per item nothing is learnt of how people differ; a part of the items needs a second."
        )
    purpose = f"This is for {METRICS[goal].short if goal in METRICS else goal}"
    if budget is None:
        answer.append(f"{purpose}; other metrics want other numbers.")
    else:
        others = [metric for metric in best.power if metric != goal]
        closest = {metric: min(choices, key=lambda choice: choice.error[metric].value) for metric in others}
        wishes = (
            f"{METRICS[metric].short} {choice.items:,} x {choice.k} "
            f"(power {span(choice.power[metric], '{:.0%}'.format)})"
            for metric, choice in closest.items()
        )
        answer.append(f"{purpose}; at the same cost others would want: {'; '.join(wishes)}.")
    return [*answer, *([] if further is None else [further.answer]), TRAINED]


def _too_little(goal: str, budget: float, choices: Sequence[Choice], best: Choice, pair: Pair) -> str:
    """That no choice of the budget reaches the power, or which does though it measures the difference less well."""
    strong = max(choices, key=lambda choice: choice.power[goal].value)
    size = f"{strong.items:,} items x {number(strong.k, 'vote')}"
    less = "which measure the size of the difference less well than what is recommended"
    if strong.power[goal].value >= POWER:
        return f"A power of {POWER:.0%} takes {size}, {less}."
    needed = {k: pair.items_needed(goal, k) for k in (choice.k for choice in choices)}
    prices = {choice.k: choice.cost / choice.items for choice in choices}
    cost = min((ceil(n.value) * prices[k] for k, n in needed.items() if n is not None), default=None)
    aside = "" if strong is best else f" ({size}, {less})"
    more = "" if cost is None else f" The cheapest plan that does costs {money(cost)}."
    return (
        f"No plan for {money(budget)} finds the better system reliably: the greatest power is "
        f"{strong.power[goal].value:.0%}{aside}, and {POWER:.0%} is enough.{more}"
    )


def money(cost: float) -> str:
    """A cost with its pence, where it has any.

    >>> money(5000.0), money(4998.6667)
    ('5,000', '4,998.67')
    """
    return f"{cost:,.2f}".removesuffix(".00")


def span(estimate: Estimate, written: Callable[[float], str] = "{:.1f}".format) -> str:
    """A number with its interval."""
    low, high = estimate.low, estimate.high
    ends = "" if low is None or high is None else f" [{written(low)}, {written(high)}]"
    return f"{written(estimate.value)}{ends}"


def _ends(near: Sequence[int], choices: Sequence[Choice]) -> str:
    """Numbers of votes that are as good: from one to another where none between them is left out."""
    between = [choice.k for choice in choices if near[0] <= choice.k <= near[-1]]
    return f"{near[0]} to {near[-1]}" if list(near) == between else listed([str(k) for k in near])


def _notes(votes: Votes, pair: Pair, systems: Sequence[str]) -> tuple[str, str]:
    size = votes.panel_size[votes.panel_size > 0]
    pilot = (
        f"From a pilot of {len(size):,} items with {size.mean():.3g} votes each. Intervals are 95 % prediction "
        "intervals for as many new items of the same kind, judged by people of the same kind, each item by people of "
        "its own."
    )
    if pair.real:
        return pilot, (
            f"The systems are {' and '.join(systems)}, and {systems[0]} is taken for the better one, as it is on the "
            "pilot; how far they differ is known from the pilot alone, by soft NLL as the plain mean over its votes."
        )
    return pilot, (
        f"The two systems are simulated: one forecasts as well as {WORTH} people's votes, the other does so too but "
        f"knows nothing of {pair.share:.1%} of items. Power is that of a paired t-test over items, two-sided at 5 %, "
        f"and {POWER:.0%} of it is enough. For systems of your own give two files of predictions."
    )
