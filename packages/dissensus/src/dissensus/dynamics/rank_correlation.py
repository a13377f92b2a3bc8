"""Spearman's correlation of many pairs of series on the same bootstrap resamples of items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.bootstrap import resampled_draws
from dissensus.evaluation.comparison.resampling import Ranking
from dissensus.evaluation.metrics.set_level import DECIMALS

if TYPE_CHECKING:
    from dissensus.arrays import Floats, Table
    from dissensus.bootstrap import Seed


def resampled_spearman(human: Table, model: Table, *, resamples: int, seed: Seed) -> np.ndarray[Any, Any]:
    """(1 + resamples, human series, model series) correlations of the sample (first) and of resamples of its items.

    Pearson's correlation of average ranks; ranks are taken anew in every resample, from how often each item was drawn,
    so that nothing is sorted twice. NaN where a series is constant in a resample.

    Args:
        human: (series, items) values; those that agree to 10 decimals are tied.
        model: (series, items) values of the same items.
        resamples: number of resamples, 0 or more.
        seed: of the draws.
    """
    rankings = [Ranking(np.round(series, DECIMALS)) for series in (*human, *model)]
    values = np.empty((1 + resamples, len(human), len(model)))
    for block, draws in resampled_draws(human.shape[1], resamples=resamples, seed=seed):
        values[block] = _correlations(draws, rankings, people=len(human))
    return values


def _correlations(draws: Table, rankings: list[Ranking], *, people: int) -> np.ndarray[Any, Any]:
    """(resamples, human series, model series)."""
    whole = draws.astype(np.int32)

    def ranked(ranking: Ranking) -> tuple[Table, Table, Floats]:
        """(resamples, items) ranks, the same times draws, and their (resamples,) length; NaN where all are tied."""
        rank = ranking(whole)
        weighted = draws * rank
        # Ranks are multiples of a half: where all are tied the sum is 0, not a hair beside it.
        squares = np.einsum("ri,ri->r", weighted, rank)
        return rank, weighted, np.sqrt(np.where(squares > 0, squares, np.nan))

    human = [ranked(ranking)[1:] for ranking in rankings[:people]]
    out = np.empty((len(draws), people, len(rankings) - people))
    for column, ranking in enumerate(rankings[people:]):
        rank, _, length = ranked(ranking)
        for row, (weighted, own) in enumerate(human):
            out[:, row, column] = np.einsum("ri,ri->r", weighted, rank) / (own * length)
    return np.clip(out, -1.0, 1.0)
