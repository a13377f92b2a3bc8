"""What a model and n votes are worth together: learnt from some items, and measured on others' votes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.evaluation.comparison.intervals import estimate_over_seeds
from dissensus.evaluation.comparison.resampling import resampled_means
from dissensus.evaluation.finite_panel.panel import draw_judgements
from dissensus.evaluation.finite_panel.people_ruler import losses, people_ruler, worth_of_scores
from dissensus.together.combining import cross_fitted_combinations

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dissensus.arrays import Floats, Ints, Table
    from dissensus.bootstrap import Estimate
    from dissensus.evaluation.finite_panel.panel import Panel
    from dissensus.evaluation.finite_panel.people_ruler import Ruler, Worth
    from dissensus.evaluation.probabilities import Runs
    from dissensus.together.combining import Combination

NUMBERS: Final = (0, 1, 2, 3, 5, 10)
"""Votes beside the model that are looked at, as far as most items have more."""

DRAWN: Final = 20_000
"""Random choices of n votes, over all items, at least 2 an item."""


@dataclass(frozen=True, kw_only=True)
class Gain:
    """What n votes of an item and the models forecast of its other votes, on items that nothing was learnt from.

    Attributes:
        votes: n.
        items: how many have more than n judgements.
        soft_nll: of both together, in nats.
        of_votes: how much less that is than of n votes alone, by people's best forecast. Its lower end allows for what
            that forecast would gain by more items to learn from, so that no model is credited with it.
        of_one_more: and than of n + 1 votes alone: above 0 the models do more than another person; None where too few
            items have n + 2 judgements.
        of_models: and than of the models alone, calibrated.
        worth: both together, in people.
    """

    votes: int
    items: int
    soft_nll: Estimate
    of_votes: Estimate
    of_one_more: Estimate | None
    of_models: Estimate
    worth: Worth

    @property
    def people(self) -> Estimate:
        """How many people the models add to n."""
        return self.worth.estimate.linear(1.0, -self.votes)


@dataclass(frozen=True, eq=False)
class Learnt:
    """What was learnt of models beside votes, and from which items.

    Attributes:
        panel: the items' judgements; items that are only predicted may stand behind those that it has.
        models: of each model, (seeds, items, classes) predictions of them.
        combinations: one for each fold, learnt from the others.
        fold: (items,) the fold of each item.
    """

    panel: Panel
    models: Sequence[Runs]
    combinations: tuple[Combination, ...]
    fold: Ints

    @cached_property
    def pseudo(self) -> Table:
        """(items, classes) what the predictions of each item count for."""

        def of_fold(own: Combination, rows: Ints) -> Table:
            return own.pseudo_votes([model[:, rows] for model in self.models])

        return np.asarray(self._by_fold(of_fold, self.models[0].shape[1:]))

    @property
    def strength(self) -> Floats:
        """(items,) how many people's votes would tell as much of each item as its predictions do."""
        strength = self._by_fold(lambda own, rows: own.people(self.pseudo[rows]), (len(self.fold), 1))
        return np.asarray(strength[:, 0])

    def forecast(self, votes: Any) -> Any:
        """The label distribution of each item after its predictions and these (..., items, classes) votes."""
        return self._by_fold(
            lambda own, rows: own.forecast(
                np.broadcast_to(self.pseudo[rows], votes[..., rows, :].shape).reshape(-1, votes.shape[-1]),
                votes[..., rows, :].reshape(-1, votes.shape[-1]),
            ),
            votes.shape,
        )

    def forecast_of_votes(self, votes: Any) -> Any:
        """The same without predictions."""
        return self._by_fold(
            lambda own, rows: own.prior.forecast(votes[..., rows, :].reshape(-1, votes.shape[-1])), votes.shape
        )

    def take(self, rows: Ints) -> Learnt:
        """The same of some items, each at most once."""
        models = [model[:, rows] for model in self.models]
        return Learnt(self.panel.take(rows), models, self.combinations, self.fold[rows])

    def _by_fold(self, made: Callable[[Combination, Ints], Any], shape: tuple[int, ...]) -> Any:
        """(..., items, classes) what the combination that was not learnt from an item makes of it."""
        out = np.empty(shape)
        for place, own in enumerate(self.combinations):
            rows = np.flatnonzero(self.fold == place)
            out[..., rows, :] = made(own, rows).reshape(*shape[:-2], len(rows), shape[-1])
        return out


def learn(panel: Panel, models: Sequence[Runs], *, seed: int = 0, part: float = 1.0) -> Learnt:
    """Combinations of models and votes, cross-fitted over the items of a panel; see `together.combining`.

    Each is learnt from all other items, or from a random `part` of them.
    """
    return Learnt(panel, models, *cross_fitted_combinations(panel, models, seed=seed, part=part))


def gains_of(learnt: Learnt, *, resamples: int = 1000, seed: int = 0) -> tuple[Gain, ...]:
    """What 0, 1, 2, 3, 5 and 10 votes and the models are worth, as far as most items have more; () where none do."""
    ruler = people_ruler(learnt.panel, seed=seed)
    if isinstance(ruler, str):
        return ()
    drawn: Any = {"resamples": resamples, "seed": seed}

    def estimate(values: Floats) -> Estimate:
        known = values[np.isfinite(values)]
        return estimate_over_seeds(resampled_means(known[None], **drawn), items=len(known))

    def less_than_votes(n: int, scores: Floats) -> Estimate:
        """How much better than n votes alone, which would forecast better had they learnt from items without end."""
        found = estimate(ruler.per_item[n] - scores)
        return found if found.low is None else replace(found, low=found.low - float(ruler.learning[n]))

    gains = []
    alone, _ = scores_together(learnt, ruler, 0)
    for n in (n for n in NUMBERS if n <= ruler.most):
        scores, of_classes = scores_together(learnt, ruler, n, seed=seed)
        gains.append(
            Gain(
                votes=n,
                items=int(np.isfinite(scores).sum()),
                soft_nll=estimate(scores),
                of_votes=less_than_votes(n, scores),
                of_one_more=less_than_votes(n + 1, scores) if n < ruler.most else None,
                of_models=estimate(alone - scores),
                worth=worth_of_scores(ruler, scores[None], of_classes, **drawn),
            )
        )
    return tuple(gains)


def scores_together(learnt: Learnt, ruler: Ruler, n: int, *, seed: int = 0) -> tuple[Floats, Table]:
    """(items,) expected soft NLL of an item's other votes after n of them and the models; (items, classes) by class.

    Which n votes is drawn at random, and what votes alone would score on the same draws, less what they score in the
    mean over all (the ruler's value), is taken off: their chance is the same. NaN where an item has no more than n.
    """
    panel, rng = learnt.panel, np.random.default_rng([seed, n])
    reached = panel.size > n
    scores, of_classes = np.where(reached, ruler.per_item[n] if n else 0.0, np.nan), np.zeros(panel.mass.shape)
    draws = max(2, min(40, DRAWN // len(panel))) if n else 1
    votes = np.stack([draw_judgements(panel, np.where(reached, n, 0), rng) for _ in range(draws)])
    rest = np.maximum(panel.mass - votes, 0.0) / np.where(reached, panel.size - n, 1)[:, None]
    both = losses(learnt.forecast(votes), "soft_nll")
    alone = losses(learnt.forecast_of_votes(votes), "soft_nll") if n else 0.0
    scores += (rest * (both - alone)).sum(axis=2).mean(axis=0)
    of_classes[reached] = both.mean(axis=0)[reached]
    return scores, of_classes
