"""Measures of human uncertainty of each item, and how they hang together (the soft-digits paper, table 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.bootstrap import percentile_estimate
from dissensus.labels.schemes import human_uncertainty, weighted
from dissensus.votes.annotators import normalised_seconds, ratio

if TYPE_CHECKING:
    from dissensus.arrays import Floats
    from dissensus.bootstrap import Estimate, Seed
    from dissensus.votes.table import Votes


@dataclass(frozen=True)
class Correlations:
    """Spearman's correlation of each pair of measures over the items that have both.

    Attributes:
        measures: names, in the order of rows and columns.
        estimates: for each pair of places (row, column) with row < column, the correlation with its interval.
        items: items that have all measures.
    """

    measures: tuple[str, ...]
    estimates: dict[tuple[int, int], Estimate]
    items: int

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON: a list of pairs."""
        pairs = [
            {"first": self.measures[i], "second": self.measures[j], **estimate.to_dict()}
            for (i, j), estimate in self.estimates.items()
        ]
        return {"items": self.items, "pairs": pairs}


def uncertainty_measures(votes: Votes) -> dict[str, Floats]:
    """(items,) each: how uncertain people were about each item, by every measure that the votes know.

    Mean seconds of a judgement, the same normalised within each annotator, mean uncertainty, unsure proportion, and
    the entropy of the label distribution under both weightings of unsure (one, where nobody could say it). NaN where an
    item has no value.
    """
    measures: dict[str, Floats] = {}
    if votes.seconds is not None:
        measures["seconds"] = _means(votes.seconds, votes)
    pace = normalised_seconds(votes)
    if pace is not None:
        measures["normalised seconds"] = _means(pace, votes)
    mean, proportion = human_uncertainty(votes)
    if mean is not None and proportion is not None:
        measures |= {"mean uncertainty": mean, "unsure proportion": proportion}
    schemes = ("equal-weighted", "uncertainty-weighted") if votes.unsure is not None else ("equal-weighted",)
    for scheme in schemes:
        measures[f"entropy, {scheme}" if len(schemes) > 1 else "entropy"] = weighted(votes, scheme).entropy
    return measures


def uncertainty_correlations(votes: Votes, *, resamples: int = 1000, seed: Seed = 0) -> Correlations | None:
    """Spearman's correlations of the measures, with bootstrap intervals over items.

    None where there is but one measure, or fewer than three items have them all.
    """
    measures = uncertainty_measures(votes)
    table: Any = np.array(list(measures.values()))
    table = table[:, ~np.isnan(table).any(axis=0)]
    items = table.shape[1]
    if len(measures) < 2 or items < 3:
        return None
    rng = np.random.default_rng(seed)
    drawn = [np.arange(items), *(rng.integers(items, size=items) for _ in range(resamples))]
    matrices = np.array([_spearman(table[:, rows]) for rows in drawn])
    pairs = [(i, j) for i in range(len(measures)) for j in range(i + 1, len(measures))]
    estimates = {(i, j): percentile_estimate(matrices[:, i, j]) for i, j in pairs if not np.isnan(matrices[0, i, j])}
    return Correlations(tuple(measures), estimates, items)


def _spearman(table: Any) -> Any:
    """(measures, measures) Pearson's correlations of the ranks; NaN where a measure is the same for all items."""
    from scipy.stats import rankdata

    ranks = rankdata(table, axis=1)
    ranks -= ranks.mean(axis=1, keepdims=True)
    length = np.sqrt((ranks**2).sum(axis=1))
    scale = np.outer(length, length)
    return np.divide(ranks @ ranks.T, scale, out=np.full(scale.shape, np.nan), where=scale > 0)


def _means(values: Floats, votes: Votes) -> Floats:
    """(items,) the mean over judgements of known values; NaN where an item has none."""
    known = ~np.isnan(values)
    item, n = votes.judgement_item[known], len(votes.items)
    return ratio(np.bincount(item, weights=values[known], minlength=n), np.bincount(item, minlength=n))
