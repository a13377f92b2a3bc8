"""Metrics on bootstrap resamples of items, without computing any item twice.

A resample is how often each item was drawn. A mean is then a matrix product; so is a measure over items that follows
from sums, such as a correlation or a calibration error with fixed bins; ranks within a resample are cumulated draws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.bootstrap import resampled_draws, resampled_sums
from dissensus.evaluation.metrics.calibration_error import equal_width_ends, millionths
from dissensus.evaluation.metrics.distances import entropy, jsd
from dissensus.evaluation.metrics.ranking import accuracy, expected_accuracy
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.evaluation.metrics.set_level import DECIMALS
from dissensus.labels.distribution import one_hot

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dissensus.arrays import Floats, Ints, Table
    from dissensus.bootstrap import Seed
    from dissensus.evaluation.metrics.registry import Metric

    Draws = np.ndarray[tuple[int, int], np.dtype[np.int32]]
    """(resamples, items) numbers of draws, as whole numbers."""

    Statistic = Callable[[Table], Floats]
    """(resamples, items) numbers of draws to (resamples,) values; NaN where a resample has none."""

ENOUGH: Final = 400
"""Resamples for a measure over items: its interval takes their variance alone, which is then known to 7 %."""


def resampled_means(scores: Any, *, resamples: int, seed: Seed) -> Any:
    """(1 + resamples, ...) means over items of (..., items) values, on the sample (row 0) and on bootstrap resamples.

    All columns see the same resamples of items, so that what is computed from them is paired.
    """
    flat = scores.reshape(-1, scores.shape[-1])
    ones = np.ones(flat.shape[1], dtype=np.int64)
    sums = resampled_sums(ones, lambda block: flat[:, block].T, resamples=resamples, seed=seed)
    return (sums / flat.shape[1]).reshape(-1, *scores.shape[:-1])


def resampled_over_items(
    metric: Metric, human: Table, models: Sequence[Table], *, item: Ints, resamples: int, seed: int
) -> Table:
    """(1 + resamples, models) values of a measure over items, of the sample (row 0) and of resamples of its items.

    Of (rows, classes) probabilities of people and of each model; `item` is the (rows,) item of each row, from 0 in
    order, whose rows are drawn together. Undefined values are NaN. All models see the same resamples, at most `ENOUGH`.
    """
    assert metric.over_items is not None
    resamples = min(resamples, ENOUGH)
    of_models = _statistics_of(metric, human, models)
    values = np.empty((1 + resamples, len(models)))
    items = int(item[-1]) + 1
    for block, draws in resampled_draws(items, resamples=resamples, seed=seed):
        values[block] = of_models(draws if items == len(item) else draws[:, item])
    values[0] = [_number(metric.over_items(human, model)) for model in models]
    return values


def _statistics_of(metric: Metric, human: Table, models: Sequence[Table]) -> Callable[[Table], Table]:
    """(resamples, items) numbers of draws to (resamples, models) values."""
    if metric.name == "entropy_spearman":
        # People are ranked once in a resample, not once for every model.
        people, rankings = _entropy_ranking(human), [_entropy_ranking(model) for model in models]

        def by_ranks(draws: Table) -> Table:
            whole = draws.astype(np.int32)
            rank = people(whole)
            weighted, spread = draws * rank, np.einsum("ri,ri,ri->r", draws, rank, rank)
            columns = []
            for ranking in rankings:
                other = ranking(whole)
                other_spread = np.einsum("ri,ri,ri->r", draws, other, other)
                columns.append(_correlation(np.einsum("ri,ri->r", weighted, other), spread, other_spread))
            return np.stack(columns, axis=1)

        return by_ranks
    statistics = [statistic_of(metric, human, model) for model in models]
    return lambda draws: np.stack([statistic(draws) for statistic in statistics], axis=1)


def statistic_of(metric: Metric, human: Table, model: Table) -> Statistic:
    """A measure over items as a function of how often each item was drawn."""
    prepare = _STATISTICS.get(metric.name)
    if prepare is not None:
        return prepare(human, model)

    def one_by_one(draws: Table) -> Floats:
        assert metric.over_items is not None
        rows = (np.repeat(np.arange(len(human)), times) for times in draws.astype(np.int64))
        return np.array([_number(metric.over_items(human[row], model[row])) for row in rows])

    return one_by_one


def _number(value: float | None) -> float:
    return np.nan if value is None else value


def _soft_micro_f1(human: Table, model: Table) -> Statistic:
    shared, mass = np.minimum(human, model).sum(axis=1), (human + model).sum(axis=1)
    return lambda draws: 2 * (draws @ shared) / (draws @ mass)


def _soft_macro_f1(human: Table, model: Table) -> Statistic:
    shared, mass = np.minimum(human, model), human + model

    def statistic(draws: Table) -> Floats:
        total = draws @ mass
        used = total > 0
        return np.asarray((2 * (draws @ shared) / np.where(used, total, 1.0)).sum(axis=1) / used.sum(axis=1))

    return statistic


def _po_jsd(human: Table, model: Table) -> Statistic:
    bits = jsd(human, model, base="bits")
    return lambda draws: 1 - (draws @ bits) / draws.sum(axis=1)


def _entropy_pearson(human: Table, model: Table) -> Statistic:
    x, y = (values - values.mean() for values in (entropy(human), entropy(model)))
    products = np.stack([x, y, x * x, y * y, x * y], axis=1)

    def statistic(draws: Table) -> Floats:
        x, y, xx, yy, xy = (draws @ products / draws.sum(axis=1, keepdims=True)).T
        return _correlation(xy - x * y, xx - x * x, yy - y * y)

    return statistic


def _entropy_spearman(human: Table, model: Table) -> Statistic:
    of_models = _statistics_of(METRICS["entropy_spearman"], human, [model])
    return lambda draws: of_models(draws)[:, 0]


def _entropy_ranking(table: Table) -> Ranking:
    return Ranking(np.round(entropy(table), DECIMALS))


class Ranking:
    """Ranks of the same values in any resample: values are sorted once."""

    def __init__(self, values: Floats) -> None:
        _, group, size = np.unique(values, return_inverse=True, return_counts=True)
        self.order = np.argsort(group, kind="stable")
        last = np.cumsum(size)
        self.up_to, self.before = last[group], (last - size)[group]

    def __call__(self, draws: Draws) -> Table:
        """(resamples, items) average ranks minus their mean, from whole numbers of draws.

        Ranks are multiples of a half, so that their products and sums are exact, in whichever order they are added.
        """
        items = draws.shape[1]
        # Whole numbers, which cumulate many times faster.
        cumulated = np.zeros((len(draws), items + 1), dtype=np.int32)
        np.cumsum(draws.take(self.order, axis=1), axis=1, dtype=np.int32, out=cumulated[:, 1:])
        twice = cumulated.take(self.up_to, axis=1)
        twice += cumulated.take(self.before, axis=1)
        twice -= cumulated[:, -1:]
        return np.asarray(twice * 0.5)


def _correlation(together: Floats, one: Floats, other: Floats) -> Floats:
    # Rounding leaves a constant a hair of spread.
    defined = (one > 1e-12 * one.max(initial=1.0)) & (other > 1e-12 * other.max(initial=1.0))
    spread = np.sqrt(np.where(defined, one * other, 1.0))
    return np.where(defined, np.clip(together / spread, -1.0, 1.0), np.nan)


def _ece_equal_mass(human: Table, model: Table, *, bins: int = 10) -> Statistic:
    confidence = model.max(axis=1)
    order = np.argsort(millionths(confidence), kind="stable")
    ascending, gap = millionths(confidence)[order], (accuracy(human, model) - confidence)[order]
    # Equal confidences end together.
    together = np.searchsorted(ascending, ascending, side="right") - 1

    def statistic(draws: Table) -> Floats:
        sorted_draws = draws.take(order, axis=1)
        # Draws are whole numbers, which cumulate many times faster as such.
        count = np.cumsum(sorted_draws.astype(np.int32), axis=1, dtype=np.int32)
        total = count[:, -1:].astype(np.int64)
        # A bin ends where so many draws, in order of confidence, are in it or before.
        ends = -(-np.arange(1, bins + 1) * total // bins)
        # One search for all resamples: each is lifted above the one before.
        lift = np.arange(len(draws))[:, None] * (total.max() + 1)
        last = np.searchsorted((count + lift).ravel(), (ends + lift).ravel()).reshape(len(draws), bins)
        last = together[last - np.arange(len(draws))[:, None] * len(order)]
        up_to = np.take_along_axis(np.cumsum(sorted_draws * gap, axis=1), last, axis=1)
        return np.asarray(np.abs(np.diff(up_to, axis=1, prepend=0.0)).sum(axis=1) / total[:, 0])

    return statistic


def _binned(confidence: Table, outcome: Table, *, bins: int = 10) -> Statistic:
    """Mean over columns of the calibration error of (items, columns) confidences, in bins of equal width."""
    columns = confidence.shape[1]
    ends = equal_width_ends(bins)[:-1]
    place = np.searchsorted(ends, millionths(confidence), side="left") + np.arange(columns) * bins
    gap = np.zeros((len(confidence), columns * bins))
    np.put_along_axis(gap, place, outcome - confidence, axis=1)
    return lambda draws: np.abs(draws @ gap).sum(axis=1) / (columns * draws.sum(axis=1))


_STATISTICS: Final[dict[str, Callable[[Table, Table], Statistic]]] = {
    "soft_micro_f1": _soft_micro_f1,
    "soft_macro_f1": _soft_macro_f1,
    "po_jsd": _po_jsd,
    "entropy_pearson": _entropy_pearson,
    "entropy_spearman": _entropy_spearman,
    "ece": lambda human, model: _binned(model.max(axis=1, keepdims=True), accuracy(human, model)[:, None]),
    "ece_equal_mass": _ece_equal_mass,
    "ece_votes": lambda human, model: _binned(
        model.max(axis=1, keepdims=True), expected_accuracy(human, model)[:, None]
    ),
    "classwise_ece": lambda human, model: _binned(model, one_hot(human, tie="split")),
    "classwise_ece_votes": lambda human, model: _binned(model, human),
}
"""Measures over items that follow from sums over items; the others are computed resample by resample."""
