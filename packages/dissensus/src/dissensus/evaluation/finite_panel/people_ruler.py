"""How many people is a model worth?

For each item n of its m judgements, drawn without replacement, make the best forecast that they allow: the posterior
mean under a mixture of label distributions, learnt from other items' votes (`labels.mixture`). It is scored on the
item's other judgements, one by one, by NLL, Brier or
RPS, and so is the model. These scores are linear in the judgement that
is scored, so nothing needs correcting for few votes. The curve over n = 0 (the marginal), 1, 2, ... is the ruler, and a
model is worth as many people as it takes to score as well. A person, handed in as a model, is worth one person: that is
tested on real votes (tests/evaluation/placebo.py), and no assumption of the ruler's is shared by the test.

Which of the m votes are the n is averaged over exactly where there are few ways, S, to choose them: with W[S] the
hypergeometric chance of S and L[S, k] the score of a vote for k after S, an item with votes c scores
sum_S W[S] (c - S) . L[S] / (m - n). Elsewhere, and for judgements with several votes, random draws stand for all.
Beyond ten people only some n are computed, and those between lie on lines in 1 / n.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cache
from math import comb
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from dissensus.bootstrap import Estimate
from dissensus.errors import InputError
from dissensus.evaluation.baselines import marginal
from dissensus.evaluation.comparison.intervals import Spread, spread_over_seeds
from dissensus.evaluation.comparison.resampling import resampled_means
from dissensus.evaluation.finite_panel.bracket import log_ways
from dissensus.evaluation.finite_panel.panel import cumulated, draw_judgements, draw_votes
from dissensus.evaluation.finite_panel.shared_annotators import THESE_PEOPLE, clustered, shared, with_annotators
from dissensus.evaluation.metrics.distances import FLOOR
from dissensus.labels.mixture import FOLDS, choose_smoothings, cross_fitted, cross_fitted_by_group, fit_prior
from dissensus.votes.sides import both_sides

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dissensus.arrays import Codes, Counts, Floats, Ints, Mask, Table
    from dissensus.evaluation.finite_panel.panel import Panel
    from dissensus.evaluation.probabilities import Runs
    from dissensus.labels.mixture import Prior

    Ruled = Literal["soft_nll", "brier", "rps"]
    """The scores that a ruler can have, under the names of the metrics that differ from them by no model."""

LONGEST: Final = 100
"""The most people a ruler runs to."""

COMPUTED: Final = (*range(11), 13, 16, 20, 25, 32, 40, 50, 63, 80, LONGEST)
"""Numbers of people whose scores are computed, as far as the ruler runs; its end is, too."""

EXACT: Final = 400_000
"""Cells of items by ways to choose n votes, up to which all ways are summed."""

DRAWN: Final = 80_000
"""Random choices of n votes, over all items of a panel, where there are more; at least 2 an item."""

COMPARED: Final = 500
"""The most items on which forecasts learnt from half of the items are compared with those learnt from all."""

MOST_DRAWS: Final = 40
"""The most of them of an item."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Ruler:
    """What n people's judgements are worth as a forecast of the others'.

    Attributes:
        score: of a vote v: "soft_nll" (-ln q_v, nats), "brier" (1 - 2 q_v + sum_k q_k^2), or for ordered classes "rps"
            (sum_k (1[v <= k] - Q_k)^2).
        values: (1 + most,) the mean score of n = 0, 1, ..., most people, over the items with more than n judgements.
        items: (1 + most,) how many items these are.
        notes: sentences that belong beside it.
        per_item: (1 + most, items) the expected score of each item; NaN where it has no more than n judgements.
        panel: the judgements.
        learning: (1 + most,) by how much better n people would forecast had they learnt from items without end. What is
            lost falls as 1 / items, so it is as much as learning from half of the items loses beside all.
        learnt_from: number of items that people's forecasts are learnt from.
        without: by n, where it is known who judged several items: (items, classes) what an item's score changes by
            once one of its votes for the class is left out; nothing sound where it has fewer than n + 2.
    """

    score: Ruled
    values: Floats
    items: Ints
    notes: tuple[str, ...]
    per_item: Table = field(repr=False)
    panel: Panel = field(repr=False)
    learning: Floats = field(repr=False)
    learnt_from: int
    without: Mapping[int, Table] = field(repr=False)

    @property
    def most(self) -> int:
        """The most people that the ruler runs to."""
        return len(self.values) - 1

    def to_dict(self) -> dict[str, Any]:
        """The curve, ready for JSON."""
        return {
            "score": self.score,
            "people": list(range(len(self.values))),
            "values": self.values.tolist(),
            "items": self.items.tolist(),
            "notes": list(self.notes),
        }


@dataclass(frozen=True, kw_only=True)
class Worth:
    """How many people a model is worth.

    Attributes:
        estimate: in people, from 0 to `most`: ends and value that lie off the ruler are set to its end, and the four
            marks below say so.
        fewer: the model scores worse than the marginal, a constant that knows nothing of the item.
        more: the value is more than `most` people.
        low_open: the interval reaches below 0 people.
        high_open: the interval reaches beyond `most` people.
        most: where the ruler ends.
        notes: sentences that belong beside it.
        reason: why the number is withheld; empty if it is not.
    """

    estimate: Estimate
    fewer: bool = False
    more: bool = False
    low_open: bool = False
    high_open: bool = False
    most: int = 0
    notes: tuple[str, ...] = ()
    reason: str = ""

    @property
    def known(self) -> bool:
        """Return whether the worth is known: not withheld, and with an interval smaller than the whole ruler."""
        return not self.reason and not (self.low_open and self.high_open)

    def __str__(self) -> str:
        low, high = self.estimate.low, self.estimate.high
        if not self.known:
            return f"a number of people that these votes cannot tell{f' ({self.reason})' if self.reason else ''}"
        beyond = f"more than {self.most}"
        people = beyond if self.more else f"{self.estimate.value:.1f}"
        value = "worse than the marginal" if self.fewer else f"{people} people"
        if low is None or high is None or (self.fewer and not high) or (self.more and low == self.most):
            return value
        ends = "below 0" if self.low_open else f"{low:.1f}", beyond if self.high_open else f"{high:.1f}"
        return f"{value} [{ends[0]}, {ends[1]}]"

    @property
    def in_words(self) -> str:
        """The same for a sentence: worth so many people, or worse than the marginal."""
        return str(self) if self.fewer and self.known else f"worth {self}"

    @property
    def short(self) -> str:
        """The same for a narrow column: < for below 0, > for beyond the ruler."""
        text = str(self).replace("worse than the marginal", "< 0").replace("below", "<").replace("more than", ">")
        return text.replace(" people", "") if self.known else "unknown"

    def to_dict(self) -> dict[str, Any]:
        """The fields, ready for JSON, and the number in words."""
        return asdict(self) | {"words": str(self)}


def people_ruler(
    panel: Panel,
    *,
    training: Table | None = None,
    question: Codes | Ints | None = None,
    mirrored: Codes | Ints | None = None,
    nobody: Table | None = None,
    score: Ruled = "soft_nll",
    seed: int = 0,
) -> Ruler | str:
    """The ruler of a panel, or the reason why it has none.

    It runs to the largest n that at least half of the items reach, that is, have more than n judgements; at most 100.

    Args:
        panel: the judgements of the scored items.
        training: (items, classes) votes, or sums of judgements, of other items, that forecasts are learnt from; without
            it, folds of the scored items stand in for them.
        question: (items,) the question that each item belongs to, or whatever else is known of it, counted from 0: what
            is learnt is then learnt for each, from the scored items, so that knowing it is not worth people.
        mirrored: of preferences, the same of each item's mirror image, where swapped sides change it.
        nobody: (items, classes) what is said of an item of which nobody's vote is known; None for the mean of the
            training items, or of the other items, or for what was learnt of the question.
        score: which of the three.
        seed: of the folds, and of random draws where there are any.
    """
    if score not in ("soft_nll", "brier", "rps"):
        raise InputError(f"people ruler: it is not for '{score}'; choose soft_nll, brier or, of ordered classes, rps")
    most = min(int(np.sort(panel.size)[len(panel) // 2]) - 1, LONGEST)
    if most < 1:
        return "most items have a single judgement: nobody is left to score a person's forecast on"
    if training is None and len(panel) < 2 * FOLDS:
        raise InputError(f"people ruler: {len(panel)} items are too few to learn from; give training items")
    notes = [_reach(panel, most)]
    known_votes = panel.mass if training is None else training
    # Chosen once, for what is learnt from all items and from half of them.
    chosen = choose_smoothings(known_votes, seed=seed, pairs=panel.pairs) if question is None else ()

    def learnt(part: float) -> tuple[tuple[Prior, ...], Ints]:
        if training is None:
            return cross_fitted(panel.mass, smoothings=chosen, seed=seed, part=part, pairs=panel.pairs)
        prior = fit_prior(training, smoothings=chosen, seed=seed, part=part, pairs=panel.pairs)
        return (prior,), np.zeros(len(panel), dtype=np.int64)

    if question is None:
        priors, prior_of = learnt(1.0)
    else:
        mirrored = question if mirrored is None and panel.pairs else mirrored
        priors, prior_of = cross_fitted_by_group(panel.mass, question, seed=seed, mirrored=mirrored)
    if training is None or question is not None:
        notes.append(f"people's forecasts are learnt from {FOLDS} folds of the scored items")
    if nobody is None and question is None:
        known = None if training is None else training / training.sum(axis=1, keepdims=True)
        nobody = marginal(panel.shares, training=known, pairs=panel.pairs).probabilities[0]
    per_item, without = _scores(panel, most, priors, prior_of, score, seed=seed)
    learning = np.zeros(most + 1)
    if question is None:
        some = np.random.default_rng(seed).permutation(len(panel))[:COMPARED]
        lost = _scores(panel.take(some), most, learnt(0.5)[0], prior_of[some], score, seed=seed)[0] - per_item[:, some]
        learning[1:] = np.maximum(lost[1:].mean(axis=1), 0.0)
    learning[0] = _lost_by_a_mean(panel, question, mirrored, None if training is None else len(training), score)
    if nobody is not None:
        per_item[0] = (panel.shares * losses(nobody, score)).sum(axis=1) + _whatever_forecast(panel, score)
    if nobody is not None and without:
        without[0] = _change_of_model(panel, losses(nobody, score))
    if not panel.single:
        notes.append("the mean over random orders of each item's judgements")
    reached = panel.size > np.arange(most + 1)[:, None]
    return Ruler(
        score=score,
        values=np.array([row[mask].mean() for row, mask in zip(per_item, reached, strict=True)]),
        items=reached.sum(axis=1),
        notes=tuple(notes),
        per_item=np.where(reached, per_item, np.nan),
        panel=panel,
        learning=learning,
        learnt_from=len(panel) if training is None else len(training),
        without=without,
    )


def _lost_by_a_mean(
    panel: Panel, question: Codes | Ints | None, mirrored: Codes | Ints | None, items: int | None, score: Ruled
) -> float:
    """What nobody's forecast loses as a mean over N items, of each question.

    By NLL sum_k var_k / (2 N p_k), by Brier sum_k var_k / N, and by RPS that of cumulated shares.
    """
    of = np.zeros(len(panel), dtype=np.int64) if question is None else np.asarray(question)
    everybody = both_sides(panel.shares) if panel.pairs else panel.shares
    everywhere = np.concatenate([of, of if mirrored is None else mirrored]) if panel.pairs else of
    lost = 0.0
    for one in np.unique(of).tolist():
        shares, size = everybody[everywhere == one], int((of == one).sum())
        shares = cumulated(shares) if score == "rps" else shares
        mean = shares.mean(axis=0) * 2 if score == "soft_nll" else np.ones(shares.shape[1])
        excess = np.divide(shares.var(axis=0), mean, out=np.zeros(len(mean)), where=mean > 0).sum()
        lost += float(excess) / (items or max(size - 1, 1)) * size / len(panel)
    return lost


def _reach(panel: Panel, most: int) -> str:
    reach = int((panel.size > most).sum())
    note = f"the ruler runs to {most} people, which {reach:,} of {len(panel):,} items reach"
    return note + ("; each number of people is compared on the items that reach it" if reach < len(panel) else "")


def _scores(
    panel: Panel, most: int, priors: tuple[Prior, ...], prior_of: Ints, score: Ruled, *, seed: int
) -> tuple[Table, dict[int, Table]]:
    """(1 + most, items) the expected score of n people; of items with fewer judgements, of all but one of these.

    And what leaving out a vote does to it, as `Ruler.without` says.
    """
    at = np.array(sorted({most, *(n for n in COMPUTED if n <= most)}))
    scores, without = np.empty((len(at), len(panel))), {}
    draws = max(2, min(MOST_DRAWS, DRAWN // len(panel)))
    people_known = panel.single and shared(panel)
    for row, n in enumerate(at.tolist()):
        change = np.zeros(panel.mass.shape)
        for few in np.unique(np.minimum(n, panel.size - 1)).tolist():
            for which, prior in enumerate(priors):
                mine = np.flatnonzero((np.minimum(n, panel.size - 1) == few) & (prior_of == which))
                how: Any = {"draws": draws, "seed": seed}
                if len(mine) and panel.single:
                    votes = panel.counts[mine]
                    scores[row, mine], left = _mean_scores(votes, few, prior, score, without=people_known, **how)
                    if left is not None:
                        change[mine] = left - scores[row, mine, None]
                elif len(mine):
                    scores[row, mine] = _score_in_random_orders(panel.take(mine), few, prior, score, **how)
        if people_known:
            without[n] = change
    out = np.empty((1 + most, len(panel)))
    for n in range(1 + most):
        above = int(np.searchsorted(at, n))
        below = above if at[above] == n else above - 1
        # On a line in 1 / n, of an item from the number of its own votes that stand behind the value.
        x, low, high = (1 / np.maximum(np.minimum(people, panel.size - 1), 1) for people in (n, at[below], at[above]))
        part = np.divide(low - x, low - high, out=np.zeros(len(panel)), where=low > high)
        out[n] = (1 - part) * scores[below] + part * scores[above]
    return out + _whatever_forecast(panel, score), without


def _whatever_forecast(panel: Panel, score: Ruled) -> Floats:
    """(items,) what its judgements add to an item's score, whatever is forecast: |x|^2, of RPS cumulated; of NLL 0."""
    if score == "soft_nll":
        return np.zeros(len(panel))
    return np.asarray((panel.cumulated() if score == "rps" else panel).squares.sum(axis=1) / panel.size)


def _change_of_model(panel: Panel, losses: Table) -> Table:
    """(items, classes) what a model's score of an item changes by once a vote for the class is left out."""
    own = (panel.shares * losses).sum(axis=1, keepdims=True)
    return np.asarray((own - losses) / np.maximum(panel.size - 1, 1)[:, None])


def _mean_scores(
    counts: Counts, n: int, prior: Prior, score: Ruled, *, draws: int, seed: int, without: bool
) -> tuple[Floats, Table | None]:
    """(items,) expected score of a vote that n of the item's others forecast; and, where asked, without one vote.

    The latter is (items, classes), the same in a panel with one vote fewer for the class; of items with n + 2 votes or
    more. With c an item's votes, S the n of them that are chosen and t = (c - S) . L[S] the score of the rest, it
    follows from the means over S of t, L[S, k], t S_k and S_k L[S, k]: given S, a vote for k is none of the n with the
    chance 1 - S_k / c_k.
    """
    rows, back = np.unique(counts, axis=0, return_inverse=True)
    if len(rows) * comb(n + rows.shape[1] - 1, n) <= EXACT:
        chosen = _ways(n, rows.shape[1])
        loss = losses(prior.forecast(chosen), score)
        chance = _hypergeometric(rows, chosen)
        rest = chance * (rows @ loss.T - (chosen * loss).sum(axis=1))
        total = rest.sum(axis=1)[back.ravel()]
        parts = (chance @ loss, rest @ chosen, chance @ (chosen * loss)) if without else ()
        means = [part[back.ravel()] for part in parts]
    else:
        rng, size = np.random.default_rng([seed, n]), np.full(len(counts), n)
        chosen = np.concatenate([draw_votes(counts, size, rng) for _ in range(draws)])
        distinct, back = np.unique(chosen, axis=0, return_inverse=True)
        loss = losses(prior.forecast(distinct), score)[back.ravel()]
        rest = ((np.tile(counts, (draws, 1)) - chosen) * loss).sum(axis=1)
        total = rest.reshape(draws, len(counts)).mean(axis=0)
        parts = (loss, rest[:, None] * chosen, chosen * loss) if without else ()
        means = [part.reshape(draws, len(counts), -1).mean(axis=0) for part in parts]
    votes = counts.sum(axis=1, keepdims=True).astype(np.float64)
    mean = np.asarray(total / (votes[:, 0] - n))
    if not without:
        return mean, None
    surprise, total_chosen, surprise_chosen = means
    left = total[:, None] - surprise - (total_chosen - surprise_chosen) / np.maximum(counts, 1)
    return mean, np.asarray(left * votes / ((votes - n) * np.maximum(votes - n - 1, 1)))


def losses(forecast: Table, score: Ruled) -> Table:
    """(forecasts, classes) the score of a vote for each class; of Brier and RPS what the forecast changes."""
    if score == "soft_nll":
        return np.asarray(-np.log(np.maximum(forecast, FLOOR)))
    if score == "rps":
        below = cumulated(forecast)
        # A vote lies at or below its own step and all that follow.
        met = np.cumsum(below[:, ::-1], axis=1)[:, ::-1]
        return np.asarray((below**2).sum(axis=1, keepdims=True) - 2 * np.pad(met, ((0, 0), (0, 1))))
    return np.asarray((forecast**2).sum(axis=1, keepdims=True) - 2 * forecast)


@cache
def _ways(n: int, classes: int) -> Counts:
    """(ways, classes) all counts of n votes."""
    if classes == 1:
        return np.array([[n]])
    parts = [_ways(n - first, classes - 1) for first in range(n + 1)]
    return np.concatenate([np.insert(part, 0, first, axis=1) for first, part in enumerate(parts)])


def _hypergeometric(counts: Counts, chosen: Counts) -> Table:
    """(items, ways) chance that n of an item's votes, drawn without replacement, are these."""
    log = np.zeros((len(counts), len(chosen)))
    n = int(chosen[0].sum())
    for k in range(counts.shape[1]):
        values, back = np.unique(counts[:, k], return_inverse=True)
        log += log_ways(values[:, None], np.arange(n + 1))[back][:, chosen[:, k]]
    size = counts.sum(axis=1)
    return np.asarray(np.exp(log - log_ways(size, np.full(len(size), n))[:, None]))


def _score_in_random_orders(panel: Panel, n: int, prior: Prior, score: Ruled, *, draws: int, seed: int) -> Floats:
    """(items,) the mean, over random orders, of what the first n judgements say of the rest."""
    rng = np.random.default_rng([seed, n])
    total = np.zeros(len(panel))
    for _ in range(draws):
        first = draw_judgements(panel, np.full(len(panel), n), rng)
        rest = np.maximum(panel.mass - first, 0.0)
        total += (rest * losses(prior.forecast(first), score)).sum(axis=1) / (panel.size - n) / draws
    return total


def worth_in_people(ruler: Ruler, model: Runs | Table, *, resamples: int = 1000, seed: int = 0) -> Worth:
    """How many people a model is worth: where its score meets the ruler.

    At each n model and ruler are compared on the same items, and their mean gap has a 95 % interval over items, seeds
    and, where ids are known and shared, annotators. Worth is where the gap crosses 0, between whole n by linear
    interpolation. People's forecasts count as if they had been learnt from items without end (`Ruler.learning`); a
    model would else be worth more on few items. The interval is every n at which the interval of the gap holds 0, with
    or without that correction. The number is withheld if the correction exceeds what one person in four is worth.

    Args:
        ruler: of the same items.
        model: (items, classes) probabilities, or (seeds, items, classes).
        resamples: of items; 0 gives no interval.
        seed: of the resamples.
    """
    panel = ruler.panel
    runs = panel.runs_of(model, what="worth in people")
    scores = np.stack([(panel.shares * losses(run, ruler.score)).sum(axis=1) for run in runs])
    scores = scores + _whatever_forecast(panel, ruler.score)
    return worth_of_scores(ruler, scores, mean_losses(runs, ruler.score), resamples=resamples, seed=seed)


def worth_of_scores(ruler: Ruler, scores: Table, of_votes: Table, *, resamples: int = 1000, seed: int = 0) -> Worth:
    """As `worth_in_people`, of forecasts that are known by their scores.

    Args:
        ruler: of the same items.
        scores: (seeds, items) the score of each item; NaN where it has none.
        of_votes: (items, classes) the mean score of a vote for each class, as `losses` gives it.
        resamples: of items; 0 gives no interval.
        seed: of the resamples.
    """
    low, middle, high = _gaps(ruler, scores, of_votes, resamples=resamples, seed=seed)
    # Zero people is the marginal baseline's own score. A model that beats the baseline is never called worse than it.
    of_people = np.where(np.arange(ruler.most + 1) > 0, ruler.learning, 0.0)
    value, least, last = first_crossings(np.stack([middle + of_people, high + ruler.learning, -low[::-1]])).tolist()
    # What says of every item what nobody's forecast says is worth nobody, however little tells people from nobody.
    # Equal scores may differ by rounding once they are summed.
    nobody = max(abs(low[0]), abs(middle[0]), abs(high[0])) < 1e-9
    value, least, most = (0.0, 0.0, 0.0) if nobody else (value, least, ruler.most - last)
    end = float(ruler.most)
    notes = list(ruler.notes)
    if shared(ruler.panel) and not ruler.panel.single:
        notes.append(THESE_PEOPLE)
    if len(scores) == 1:
        notes.append("over items, given this seed")
    inside = [min(max(n, 0.0), end) for n in (value, min(least, value), max(most, value))]
    low_end, high_end = inside[1:] if resamples else (None, None)
    return Worth(
        estimate=Estimate(inside[0], low_end, high_end, 0.95, resamples),
        fewer=value < 0,
        more=value > end,
        low_open=least < 0 and resamples > 0,
        high_open=most > end and resamples > 0,
        most=ruler.most,
        notes=tuple(notes),
        reason="" if least < 0 and most > end else _too_few_items(ruler, value),
    )


def _too_few_items(ruler: Ruler, value: float) -> str:
    """Return why a worth is withheld, else ''.

    A worth is withheld if its correction for few items exceeds the gain from the last quarter of its people.
    """
    n = int(np.clip(np.ceil(value), 1, ruler.most))
    added = np.nanmean(ruler.per_item[n + (-n // 4)] - ruler.per_item[n])
    if value <= 0 or ruler.learning[n] <= added:
        return ""
    return f"{ruler.learnt_from:,} items are too few to learn what {n} people's votes say of others"


def mean_losses(runs: Runs, score: Ruled) -> Table:
    """(items, classes) `losses` in the mean over seeds."""
    return np.asarray(np.mean([losses(run, score) for run in runs], axis=0))


def _gaps(ruler: Ruler, scores: Table, of_votes: Table, *, resamples: int, seed: int) -> tuple[Floats, Floats, Floats]:
    """Lower end, value and upper end of model minus ruler, (1 + most,) each."""
    ends = np.empty((3, len(ruler.values)))
    reach = ruler.items
    for items in np.unique(reach).tolist():
        people = np.flatnonzero(reach == items)
        some = np.isfinite(ruler.per_item[people[0]]) & np.isfinite(scores[0])
        columns = np.concatenate([scores[:, some], ruler.per_item[np.ix_(people, some)]])
        values = resampled_means(columns, resamples=resamples, seed=seed)
        ours = values[:, : len(scores)]
        for place, n in enumerate(people.tolist()):
            gap = ours - values[:, len(scores) + place, None]
            spread = spread_over_seeds([gap], items=int(some.sum()))
            middle = float(gap[0].mean())
            half = np.inf if spread is None else _with_people(spread, ruler, of_votes, n, some).half_width()
            ends[:, n] = middle - half, middle, middle + half
    return ends[0], ends[1], ends[2]


def _with_people(spread: Spread, ruler: Ruler, of_votes: Table, n: int, some: Mask) -> Spread:
    """The spread of the gap at n people, over annotators too, from what leaving out each judgement does."""
    # Without one of its judgements the smallest panel cannot have n left beside the one that is scored; and what people
    # do to the gap hardly changes with n.
    n = min(n, int(ruler.panel.size[some].min()) - 2)
    if not ruler.without or n < 0:
        return spread
    part = ruler.panel.take(some)
    assert part.item is not None
    assert part.vectors is not None
    change = (
        _change_of_model(part, of_votes[some])
        - ruler.without[max(known for known in ruler.without if known <= n)][some]
    )
    # A vote is a row with one class; SciPy's argmax of sparse rows is a loop over them.
    return with_annotators(spread, clustered(part, change[part.item, part.vectors.indices]))


def first_crossings(gaps: Table) -> Floats:
    """(rows,) where a gap over n = 0, 1, ... first crosses from below 0 to above it, linear between whole n.

    -inf where it begins above 0, inf where it stays below. Uneven panels can bring several crossings; read backwards
    and with its sign changed, the first is the last.

    >>> first_crossings(np.array([[-1.0, -0.5, 0.5], [-1.0, -1.0, -1.0], [2.0, 3.0, 4.0], [0.0, 1.0, 1.0]])).tolist()
    [1.5, inf, -inf, 0.0]
    """
    above = gaps >= 0
    n = above.argmax(axis=1)
    here, before = (np.take_along_axis(gaps, place[:, None], axis=1)[:, 0] for place in (n, np.maximum(n - 1, 0)))
    with np.errstate(divide="ignore", invalid="ignore"):  # nothing is interpolated before 0
        crossed = np.where(n > 0, n - here / (here - before), np.where(here == 0, 0.0, -np.inf))
    return np.where(above.any(axis=1), crossed, np.inf)
