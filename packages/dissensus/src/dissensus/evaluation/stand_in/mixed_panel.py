"""What a panel of people and a model is worth, in people.

n people's votes of an item forecast its other votes by the posterior mean under a Dirichlet prior (`people_ruler`). A
model's answer is one more thing that is known of an item: the prior is then fitted to other items with the same answer,
so that how much the answer weighs beside a vote is what predicts held-out people best. A mixed panel of n people and
the model is worth as many people alone as forecast as well.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.bootstrap import percentile_estimate
from dissensus.evaluation.comparison.resampling import resampled_means
from dissensus.evaluation.finite_panel.people_ruler import FOLDS, first_crossings, fit_prior, folds_of, people_ruler

if TYPE_CHECKING:
    from dissensus.arrays import Codes, Table
    from dissensus.bootstrap import Estimate
    from dissensus.evaluation.finite_panel.panel import Panel

FEWEST: Final = 10
"""Items with an answer, below which the prior of all items is taken for it."""


@dataclass(frozen=True, kw_only=True)
class Saved:
    """How many people a model saves a panel of n people at equal quality.

    Attributes:
        people: n, beside the model.
        saved: the number of further people who would do as much as the model; its ends lie on the ruler.
        fewer: the panel forecasts worse with the model than nobody does.
        more: the panel does better with the model than the ruler's end, so more are saved than the value says.
        high_open: the interval reaches beyond the ruler's end.
        most: where the ruler ends, in people.
        weight: the mean number of votes that the prior counts for, once the model's answer is known.
    """

    people: int
    saved: Estimate
    fewer: bool
    more: bool
    high_open: bool
    most: int
    weight: float

    def __str__(self) -> str:
        if self.fewer:
            return "less than nobody"
        end = self.most - self.people
        low, high = self.saved.low, self.saved.high
        value = f"more than {end}" if self.more else f"{self.saved.value:.1f}"
        if low is None or high is None or (self.more and low == end):
            return value
        return f"{value} [{low:.1f}, {f'more than {end}' if self.high_open else f'{high:.1f}'}]"

    def to_dict(self) -> dict[str, Any]:
        """The fields, ready for JSON, and the number in words."""
        return asdict(self) | {"words": str(self)}


def answer_priors(panel: Panel, answer: Codes, *, seed: int = 0) -> Table:
    """(items, classes) pseudo-votes behind an item's forecasts once the model's answer is known.

    Args:
        panel: the judgements.
        answer: (items,) the model's answer of each item, as a whole number.
        seed: of the folds; an item's prior is fitted to items of other folds.
    """
    fold = folds_of(panel, seed=seed)
    prior = np.empty_like(panel.mass)
    for each in range(FOLDS):
        here, rest = fold == each, fold != each
        prior[here] = fit_prior(panel.mass[rest])
        for said in np.unique(answer[here]).tolist():
            known = rest & (answer == said)
            if known.sum() >= FEWEST:
                prior[here & (answer == said)] = fit_prior(panel.mass[known])
    return prior


def people_saved(panel: Panel, answer: Codes, *, resamples: int = 1000, seed: int = 0) -> list[Saved] | str:
    """How many people a model saves beside n = 0, 1, ... people, or the reason why that cannot be told.

    n = 0 is what the model's answers are worth alone. Intervals are percentiles over resamples of the items, for these
    people; all is on the items that reach the end of the ruler.

    Args:
        panel: single votes of at least ten items.
        answer: (items,) the model's answer of each.
        resamples: of items.
        seed: of folds and resamples.
    """
    if len(panel) < 2 * FOLDS:
        return f"{len(panel)} items are too few to learn from the others what an answer is worth"
    alone = people_ruler(panel, seed=seed)
    if isinstance(alone, str):
        return alone
    prior = answer_priors(panel, answer, seed=seed)
    mixed = people_ruler(panel, prior=prior, seed=seed)
    assert not isinstance(mixed, str)
    some = panel.size > alone.most
    curves = np.stack([alone.per_item[:, some], mixed.per_item[:, some]])
    means = resampled_means(curves, resamples=resamples, seed=seed)
    people, both = means[:, 0], means[:, 1]
    found = []
    for n in range(alone.most):
        worth = first_crossings(both[:, n, None] - people)
        found.append(
            Saved(
                people=n,
                saved=percentile_estimate(np.clip(worth, 0, alone.most) - n),
                fewer=bool(worth[0] == -np.inf),
                more=bool(worth[0] == np.inf),
                high_open=bool(resamples and (worth[1:] == np.inf).mean() > 0.025),
                most=alone.most,
                weight=float(prior.sum(axis=1).mean()),
            )
        )
    return found
