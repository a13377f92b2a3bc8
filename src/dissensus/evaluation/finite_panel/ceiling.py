"""Human ceilings: how well people do as a model of people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dissensus.bootstrap import Estimate, percentile_estimate
from dissensus.errors import InputError
from dissensus.evaluation.comparison.resampling import resampled_means, resampled_over_items
from dissensus.evaluation.finite_panel.best_achievable import held_against_votes
from dissensus.evaluation.finite_panel.counts import counted, draw_votes

if TYPE_CHECKING:
    from dissensus.arrays import Counts, Ints, Table
    from dissensus.evaluation.metrics.metric import Metric
    from dissensus.labels.distribution import LabelDistribution


def human_ceiling(
    name: str, labels: LabelDistribution, *, splits: int = 20, resamples: int = 1000, seed: int = 0
) -> Estimate | None:
    """One half of the panel held against the other: the score of k / 2 people as a model of k / 2 others.

    In each split every item's k votes are dealt at random into two halves of k // 2, of an odd number one is left out;
    the value is the mean over splits. Items with one vote cannot be split and are left out. None where the metric is
    undefined, such as a correlation of halves that all agree.

    A model can score better than this ceiling, because it may know more than half a panel does. Under KL, reverse KL
    and soft NLL it is hardly one: where a half lacks a class that the other chose, it pays 27.6 nats for it.

    Args:
        name: of a metric.
        labels: plain shares of votes.
        splits: random splits.
        resamples: of items, for the interval; 0 for none.
        seed: of the splits and of the resamples.
    """
    counts, total = counted(labels)
    some = total >= 2
    if not some.any():
        raise InputError("human ceiling: no item has two votes, so no panel can be split; collect a second vote")
    half = total[some] // 2

    def halves(rng: np.random.Generator) -> tuple[Table, Table]:
        one = draw_votes(counts[some], half, rng)
        other = draw_votes(counts[some] - one, half, rng)
        return _shares(one, half), _shares(other, half)

    rng = np.random.default_rng(seed)
    pairs = [halves(rng) for _ in range(_at_least_one(splits, "splits"))]
    return _mean_score(_checked(name, labels), pairs, resamples=resamples, seed=seed)


def vote_ceiling(
    name: str, labels: LabelDistribution, *, votes: int, draws: int = 20, resamples: int = 1000, seed: int = 0
) -> Estimate | None:
    """All votes as the truth, and `votes` of them as the model: what that many people tell of everybody.

    Votes are drawn at random without replacement; the value is the mean over draws. Items with fewer votes are left
    out. None where the metric is undefined.

    Args:
        name: of a metric.
        labels: plain shares of votes.
        votes: how many votes of each item are the model.
        draws: random draws.
        resamples: of items, for the interval; 0 for none.
        seed: of the draws and of the resamples.
    """
    counts, total = counted(labels)
    some = total >= votes
    if votes < 1 or not some.any():
        raise InputError(f"vote ceiling: no item has {votes} votes to draw; give 1 to {total.max()}")
    size = np.full(int(some.sum()), votes)
    everybody = _shares(counts[some], total[some])
    rng = np.random.default_rng(seed)
    pairs = [
        (everybody, _shares(draw_votes(counts[some], size, rng), size)) for _ in range(_at_least_one(draws, "draws"))
    ]
    return _mean_score(_checked(name, labels), pairs, resamples=resamples, seed=seed)


def _mean_score(metric: Metric, pairs: list[tuple[Table, Table]], *, resamples: int, seed: int) -> Estimate | None:
    """The mean over pairs of human and model, with its interval over items."""
    if metric.per_item is not None:
        scores = np.mean([metric.per_item(human, model) for human, model in pairs], axis=0)
        return percentile_estimate(resampled_means(scores, resamples=resamples, seed=seed))
    # A few resamples of every pair, each as its distance from that pair's own value.
    each = -(-resamples // len(pairs))
    values = np.stack(
        [
            resampled_over_items(metric, human, [model], resamples=each, seed=seed + split)[:, 0]
            for split, (human, model) in enumerate(pairs)
        ]
    )
    values = values[np.isfinite(values[:, 0])]
    if not len(values):
        return None
    value = values[:, 0].mean()
    resampled = (values[:, 1:] - values[:, :1] + value).ravel()
    return percentile_estimate(np.append(value, resampled[np.isfinite(resampled)]))


def _checked(name: str, labels: LabelDistribution) -> Metric:
    metric = held_against_votes(name)
    if "ordered" in metric.needs and not labels.ordered:
        raise InputError(f"metric: {name} needs ordered classes; say that these are a scale, or choose tvd")
    return metric


def _shares(counts: Counts, size: Ints) -> Table:
    return np.asarray(counts / size[:, None])


def _at_least_one(number: int, what: str) -> int:
    if number < 1:
        raise InputError(f"ceiling: {number} {what}; give at least 1")
    return number
