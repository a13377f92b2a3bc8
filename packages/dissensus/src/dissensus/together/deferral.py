"""Which items a model should leave to people, and how many votes each is worth.

People's answers to an item help where they would move the model's answer: not where the model is unsure because people
are divided, which no vote changes. So an item's claim to be asked about is how much the next vote is expected to lower
the soft NLL of the answer on a further person's answer, under the posterior of prediction and votes (`combining`,
`together.allocation`). A vote has a price, in nats of soft NLL: an answer costs - ln of the probability that it gives
to what a person says, so that a wrong or over-sure one costs most. An item goes to people where its first vote gains
the price or more, and gets votes for as long as the next one does. A price and a share of the items are two names of
one threshold; items of equal gain stay together.

What a rule is worth is told by votes that neither chose items nor were asked for. Each item's votes are divided: one
part is given to the best achievable rule alone, n are asked for, and the rest are scored. The risk of an item that the
model answers is what asking would have saved, soft NLL of the model's answer less that of prediction and n votes. Over
the share that is answered, the risk of those items in the mean over all is a curve from 0 to the risk of asking nobody;
a rule that chooses at random has half of that as the area under it, and the lower the area the better the rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.special import entr

from dissensus.bootstrap import json_fields
from dissensus.errors import InputError
from dissensus.evaluation.arguments import people_in, refuse_swapped
from dissensus.evaluation.comparison.intervals import estimate_over_seeds
from dissensus.evaluation.comparison.resampling import resampled_means
from dissensus.evaluation.finite_panel.panel import divided_judgements
from dissensus.evaluation.finite_panel.people_ruler import losses
from dissensus.frames import Framed
from dissensus.item_names import places_of_items
from dissensus.together.allocation import WANTED, gains_of_next_votes
from dissensus.together.combined import beside_votes
from dissensus.together.combining import LEAST, learn_combination
from dissensus.together.gains import learn
from dissensus.votes.echo import number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.arrays import Floats, Ints, Names, Table
    from dissensus.bootstrap import Estimate
    from dissensus.evaluation.probabilities import Runs
    from dissensus.together.combining import Combination
    from dissensus.together.gains import Learnt

GAIN: Final = "expected gain"
ENTROPY: Final = "entropy"
DISAGREEMENT: Final = "disagreement of seeds"
RANDOM: Final = "chance"
BEST: Final = "best achievable"

MOST_VOTES: Final = 10
"""Votes that one item is asked for at most."""

ASKED: Final = 3
"""Votes that an item is asked for where rules are compared, at most: fewer where items have fewer than eight."""

DIVISIONS: Final = 5
"""Divisions of the items' votes that rules are scored on."""

GUESSES: Final = 4
"""Draws of n votes that the best achievable rule foresees gains with."""

MOST_ITEMS: Final = 1500
"""Items that rules are scored on, drawn at random of more."""

POINTS: Final = 21
"""Shares answered, from 0 to 1, that a curve is drawn at."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How well a way to choose items for people does.

    Attributes:
        rule: by what items are chosen.
        area: under the curve of risk against share answered, in nats.
        less: how much less that is than of choosing at random, paired over items.
        of_random: the area as a part of that of choosing at random: 1 is no better than chance, 0 is perfect; None
            where asking everybody is not shown to gain anything.
        risk: (points,) the curve, at shares answered from 0 to 1.
    """

    rule: str
    area: Estimate
    less: Estimate
    of_random: float | None
    risk: tuple[float, ...]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Deferral(Framed):
    """Which items go to people, and how well that rule does beside others.

    Attributes:
        share: of the items that go to people.
        cost: of a vote, in nats: the threshold on what an item's first vote is expected to gain.
        items: all that are predicted.
        gain: (items,) what the first vote of each is expected to gain, in nats, were there none so far.
        votes: (items,) to ask for; 0 where the model answers.
        asked: n, the votes that asked items get where rules are compared; 0 where votes are too few to compare them.
        rules: the comparison, on items that taught nothing of themselves.
        costs: soft NLL and the votes' cost together, in nats per item: of asking `nobody`, of `these` items with their
            numbers of votes, and of `everybody` with n.
        notes: sentences that belong beside it.
        learnt: what rules were compared with, and from which items; None where they were not.
    """

    share: float
    cost: float
    items: Names
    gain: Floats
    votes: Ints
    asked: int
    rules: tuple[Rule, ...]
    costs: Mapping[str, Estimate]
    notes: tuple[str, ...]
    learnt: Learnt | None

    @property
    def verdict(self) -> tuple[str, ...]:
        """What goes to people, and whether that beats chance."""
        mean = f"{self.votes[self.votes > 0].mean():.2g}" if self.votes.any() else "0"
        each = f"{mean} {'vote' if mean == '1' else 'votes'} each"
        lines = [f"{self.share:.0%} of items go to people, {each}: worth it where a vote costs {self.cost:.2g} nats."]
        if self.costs:
            these, nobody, everybody = (f"{self.costs[who].value:.3f}" for who in ("these", "nobody", "everybody"))
            lines.append(
                f"Soft NLL and votes together then cost {these} nats per item: {nobody} without asking, {everybody} "
                f"with {number(self.asked, 'vote')} for every item."
            )
        if areas := [f"{rule.of_random:.2f} by {rule.rule}" for rule in self.rules[:-1] if rule.of_random is not None]:
            lines.append(f"Area under risk against share answered, where choosing at random is 1: {', '.join(areas)}.")
            if not (self.rules[0].less.low or 0.0) > 0:
                lines.append("The rule is not shown to beat chance here.")
        elif self.rules:
            lines.append("Votes are not shown to improve its answers, so no rule is significantly better.")
        return tuple(lines)

    def columns(self, items: Names) -> dict[str, Any]:
        """Of these items, (items,) columns of a table; what is not predicted goes to nobody."""
        place = places_of_items(items, self.items)
        return deferral_columns(np.where(place < 0, 0.0, self.gain[place]), np.where(place < 0, 0, self.votes[place]))

    def __repr__(self) -> str:
        return "\n".join([f"Deferral({len(self.items):,} items)", *self.verdict, *self.notes])

    def records(self) -> list[dict[str, Any]]:
        """A row per rule."""
        return [json_fields(rule, but=("risk",)) for rule in self.rules]

    def to_dict(self) -> dict[str, Any]:
        """Everything but the items, ready for JSON."""
        return {**json_fields(self, but=("items", "gain", "votes", "learnt")), "verdict": list(self.verdict)}


def defer(
    human: Any,
    model: Any,
    *,
    share: float | None = None,
    cost: float | None = None,
    classes: Sequence[str] | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> Deferral:
    """Which predicted items should go to people, how many votes each, and how well that rule does.

    Args:
        human: votes of people, as `evaluate` takes them; at least 20 items with two votes.
        model: one system or several by name, as `combine` takes them; they must be new to the items.
        share: of items that go to people, 0 to 1; a tenth where neither share nor cost is given.
        cost: of a vote, in nats of soft NLL, instead.
        classes: as in `evaluate`.
        resamples: of items, behind intervals.
        seed: of folds, draws and resamples.

    Examples:
        >>> import dissensus as dis
        >>> truth = np.random.default_rng(0).dirichlet([0.4, 0.4, 0.4], 200)
        >>> votes = dis.simulate_votes(truth, 6, annotators=20, seed=0)
        >>> asked = dis.defer(votes, 0.8 * truth + 0.2 / 3, share=0.25, resamples=0)
        >>> print(asked.share, (asked.votes > 0).sum())
        0.25 50
    """
    refuse_swapped(human, model)
    if share is not None and cost is not None:
        raise InputError("defer: share= and cost= are two names of one threshold; give one of them")
    if (share is not None and not 0 < share <= 1) or (cost is not None and not 0 <= cost < np.inf):
        raise InputError(
            "defer: give a share of the items above 0 and up to 1, such as 0.1, or a cost of 0 nats or more"
        )
    given = beside_votes(*people_in(human), model, classes=classes)
    taught, own = given.panel.take(given.teachers), [model[:, given.teachers] for model in given.models]
    everybody = learn_combination(taught, own, seed=seed)
    said = np.flatnonzero(np.any([np.isfinite(model[0, :, 0]) for model in given.models], axis=0))
    gains = gains_of_votes(everybody, [model[:, said] for model in given.models])
    price = cost if cost is not None else threshold_of(gains[:, 0], 0.1 if share is None else share)
    votes = (gains >= price).sum(axis=1)
    n = int(np.clip(np.median(taught.size) // 2 - 1, 1, ASKED))
    # One vote at least is left to score, and one for the best achievable rule.
    reached = np.flatnonzero(taught.size - taught.size // 2 > n)
    learnt, notes = None, given.notes
    rules: tuple[Rule, ...] = ()
    costs: dict[str, Estimate] = {}
    if len(reached) < 2 * LEAST:
        few = f"{len(reached)} items have {2 * n + 1} votes or more, and {2 * LEAST} are needed"
        notes = (*notes, f"rules are not compared: {few}")
    else:
        learnt = learn(taught, own, seed=seed)
        part = float((votes > 0).mean())
        rules, costs = _compared(learnt.take(reached), n, price, part, resamples=resamples, seed=seed)
    if share is not None and (votes > 0).mean() > share + 1 / len(votes):
        notes = (*notes, f"{share:.0%} of items were asked for: more have the same expected gain, and stay together")
    return Deferral(
        share=float((votes > 0).mean()),
        cost=float(price),
        items=given.labels.items[said],
        gain=gains[:, 0],
        votes=votes,
        asked=0 if learnt is None else n,
        rules=rules,
        costs=costs,
        notes=notes,
        learnt=learnt,
    )


def gains_of_votes(combination: Combination, models: Sequence[Runs]) -> Table:
    """(items, MOST_VOTES) what the first vote, the second, ... of each predicted item is expected to gain, in nats."""
    pseudo = combination.pseudo_votes(models)
    return _gains(pseudo.shape, lambda mass: combination.forecast(pseudo, mass))


def threshold_of(gain: Floats, share: float) -> float:
    """The gain that a share of the items have or exceed."""
    chosen = round(share * len(gain))
    return float(np.sort(gain)[-chosen]) if chosen else np.inf


def deferral_columns(gain: Floats, votes: Ints) -> dict[str, Any]:
    """What is asked as columns of a table: whether, how many votes, and what the first is expected to gain."""
    return {"to_people": (votes > 0).tolist(), WANTED: votes.tolist(), "gain": gain.tolist()}


def _gains(shape: tuple[int, int], forecast: Any) -> Table:
    return gains_of_next_votes(np.zeros(shape), forecast, votes=MOST_VOTES, score="soft_nll")


def _compared(
    learnt: Learnt, n: int, price: float, share: float, *, resamples: int, seed: int
) -> tuple[tuple[Rule, ...], dict[str, Estimate]]:
    """Rules and costs on items whose votes can be divided in three, none of which taught what is said of it."""
    rng = np.random.default_rng(seed)
    learnt = learnt.take(np.sort(rng.permutation(len(learnt.panel))[:MOST_ITEMS]))
    panel, nothing = learnt.panel, np.zeros_like(learnt.panel.mass)
    gains, answer = _gains(nothing.shape, learnt.forecast), losses(learnt.forecast(nothing), "soft_nll")
    # As many items as go to people, by what is said of each without its own votes.
    chosen = gains[:, 0] >= threshold_of(gains[:, 0], share)
    wanted = np.where(chosen, np.maximum((gains >= price).sum(axis=1), 1), 0)
    runs = np.concatenate(learnt.models)
    claims = {GAIN: gains[:, :n].sum(axis=1), ENTROPY: entr(np.nanmean(runs, axis=0)).sum(axis=1)}
    if len(runs) > 1:
        claims[DISAGREEMENT] = claims[ENTROPY] - np.nanmean(entr(runs).sum(axis=2), axis=0)

    def scored(known: Ints, asked: Ints, rng: np.random.Generator) -> tuple[Table, Floats, Floats]:
        """The judgements that the best rule knows, and (items,) losses on the rest before and after those asked for."""
        seen, votes, rest = divided_judgements(panel, [known, asked], rng)
        shares = rest / rest.sum(axis=1, keepdims=True)
        after = losses(learnt.forecast(votes), "soft_nll")
        return seen, (shares * answer).sum(axis=1), (shares * after).sum(axis=1)

    areas: dict[str, Any] = dict.fromkeys((*claims, BEST), 0.0)
    curves: dict[str, Any] = dict.fromkeys(areas, 0.0)
    costs: dict[str, Any] = dict.fromkeys(("nobody", "these", "everybody"), 0.0)
    answered = np.round(np.linspace(0, 1, POINTS) * len(panel)).astype(np.int64)
    spent = np.minimum(wanted, panel.size - 1)
    # With draws of its own, so that asking nobody costs the same whatever is asked for.
    of_these = np.random.default_rng([seed, 1])
    for _ in range(DIVISIONS):
        seen, before, after = scored(panel.size // 2, np.full(len(panel), n), rng)
        claims[BEST] = _gain_if(learnt.forecast(seen), learnt, answer, n, rng)
        costs["nobody"] += before / DIVISIONS
        costs["everybody"] += (after + price * n) / DIVISIONS
        for rule, claim in claims.items():
            order = np.argsort(claim, kind="stable")
            risk = (before - after)[order] / DIVISIONS
            # The first in order is answered at nearly all shares, the last only where all are.
            part = np.empty(len(order))
            part[order] = 1 - (np.arange(len(order)) + 0.5) / len(order)
            areas[rule] += (before - after) * part / DIVISIONS
            curves[rule] += np.append(0.0, np.cumsum(risk))[answered] / len(order)
        _, before, after = scored(np.zeros_like(panel.size), spent, of_these)
        costs["these"] += (after - before + price * spent) / DIVISIONS
    costs["these"] += costs["nobody"]
    risk = costs["nobody"] - costs["everybody"] + price * n
    areas[RANDOM], curves[RANDOM] = risk / 2, np.linspace(0, risk.mean(), POINTS)

    def estimate(values: Floats) -> Estimate:
        means = resampled_means(values[None], resamples=resamples, seed=seed)
        return estimate_over_seeds(means, items=len(values))

    least = estimate(risk).low
    # Without resamples there is no interval to go by.
    gained = (risk.mean() if least is None else least) > 0
    rules = tuple(
        Rule(
            rule=rule,
            area=estimate(area),
            less=estimate(areas[RANDOM] - area),
            of_random=float(area.mean() / areas[RANDOM].mean()) if gained else None,
            risk=tuple(curves[rule].tolist()),
        )
        for rule, area in areas.items()
    )
    return rules, {what: estimate(values) for what, values in costs.items()}


def _gain_if(truth: Table, learnt: Learnt, answer: Table, n: int, rng: np.random.Generator) -> Floats:
    """(items,) what n votes would gain if people answered as these (items, classes) label distributions have it."""
    gain = np.zeros(len(truth))
    for _ in range(GUESSES):
        after = losses(learnt.forecast(rng.multinomial(n, truth).astype(np.float64)), "soft_nll")
        gain += (truth * (answer - after)).sum(axis=1) / GUESSES
    return gain
