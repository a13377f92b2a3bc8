"""Corrected scores: what the model would score against everybody, from the few votes there are.

Three ways, by what a metric allows:

- Exact. Soft NLL and expected accuracy are linear in the true distribution p, and Brier is quadratic: their means are
  estimated without bias (Brier from pairs of votes).
- Bracketed. KL, signed EntCE, JSD, TVD and Wasserstein are no polynomials in p, so no unbiased estimate exists, but the
  votes bracket their mean whatever p is (`bracket`). The value is halfway; the interval runs from the lower end of the
  low mean to the upper end of the high mean, and holds without any assumption about p.
- Split-half. The Pearson correlation of entropies is divided by the square root of the reliability of the human
  entropies, from two halves of the panel (Spearman 1904). Plain entropies of halves are biased by unlike amounts, which
  makes that quotient too large (1.1 to 1.5 for a true 0.9 at 5 votes), so each half's entropy is the bracketed one.

Corrected values may lie a little outside the range of the metric, as unbiased estimates of a small number must.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.special import entr

from dissensus.bootstrap import Estimate, percentile_estimate
from dissensus.evaluation.comparison.resampling import resampled_means
from dissensus.evaluation.finite_panel.best_achievable import jsd_of_cell
from dissensus.evaluation.finite_panel.bracket import Bracket, fit_polynomials
from dissensus.evaluation.finite_panel.counts import draw_votes
from dissensus.evaluation.metrics.distances import LN2, entropy, soft_nll
from dissensus.evaluation.metrics.registry import METRICS

if TYPE_CHECKING:
    from collections.abc import Callable

    from dissensus.arrays import Counts, Ints, Table
    from dissensus.evaluation.finite_panel.bracket import CellFunction

LEVEL: Final = 0.95


@dataclass(frozen=True)
class Correction:
    """A corrected score, or why there is none.

    Attributes:
        estimate: of the score against the true distributions; None where there is no sound one.
        note: how it was made and how far to trust it, or why it is missing.
    """

    estimate: Estimate | None
    note: str


def correct(
    name: str, counts: Counts, model: Table, *, resamples: int = 1000, splits: int = 20, seed: int = 0
) -> Correction:
    """The score of a model against the true distributions that votes were drawn from.

    Args:
        name: of a metric in the registry.
        counts: (items, classes) votes, each item's drawn from its true distribution; at least 1 an item.
        model: (items, classes) probabilities.
        resamples: of items, for the interval; 0 leaves an exact correction without one, and a bracketed one with the
            bracket alone.
        splits: random halvings, for the entropy correlation.
        seed: of resamples and splits.
    """
    if name in UNBIASED:
        scores = METRICS[name].per_item
        assert scores is not None
        values = resampled_means(scores(_shares(counts), model), resamples=resamples, seed=seed)
        return Correction(
            percentile_estimate(values, level=LEVEL), "votes estimate it without bias: corrected is plain"
        )
    if name == "brier":
        return _brier(counts, model, resamples=resamples, seed=seed)
    if name in BRACKETED:
        return _bracketed(BRACKETED[name](counts, model), resamples=resamples, seed=seed)
    if name == "entropy_pearson":
        return _entropy_pearson(counts, model, resamples=resamples, splits=splits, seed=seed)
    return Correction(None, WHY_NOT.get(name, "no sound correction is known; hold the plain score against its floor"))


def true_entropy(counts: Counts, *, model: Table | None = None, resamples: int = 1000, seed: int = 0) -> Correction:
    """Mean entropy, in nats, of the true distributions that votes were drawn from.

    Args:
        counts: (items, classes) votes.
        model: (items, classes) any guess of the distributions; the closer, the narrower the interval, which holds for
            all. Without it, everybody's shares of the classes.
        resamples: of items, for the interval.
        seed: of the resamples.
    """
    guess = np.broadcast_to(counts.sum(axis=0) / counts.sum(), counts.shape) if model is None else model
    return _bracketed(_entropies(counts, np.asarray(guess)), resamples=resamples, seed=seed)


def _brier(counts: Counts, model: Table, *, resamples: int, seed: int) -> Correction:
    k = counts.sum(axis=1)
    some = k >= 2
    alone = int((~some).sum())
    left_out = f"; {alone:,} items with a single vote are left out" if alone else ""
    if not some.any():
        return Correction(None, "no item has two votes, and Brier needs pairs of votes")
    c, q, k = counts[some], model[some], k[some][:, None]
    scores = (c * (c - 1) / (k * (k - 1)) - 2 * q * c / k + q * q).sum(axis=1)
    values = resampled_means(scores, resamples=resamples, seed=seed)
    return Correction(percentile_estimate(values, level=LEVEL), f"unbiased, from pairs of votes{left_out}")


def _bracketed(bracket: Bracket, *, resamples: int, seed: int) -> Correction:
    columns = np.stack([bracket.low, bracket.middle, bracket.high])
    values = resampled_means(columns, resamples=resamples, seed=seed)
    low, middle, high = values[0].tolist()
    ends = values[1:] if resamples else values
    least = float(np.quantile(ends[:, 0], (1 - LEVEL) / 2))
    most = float(np.quantile(ends[:, 2], (1 + LEVEL) / 2))
    note = f"votes leave it between {low:.3g} and {high:.3g}, whatever the true distributions are"
    if most - least > WIDE * abs(middle):
        note += "; quote the interval, not the value"
    return Correction(Estimate(middle, least, most, LEVEL, resamples), note)


def _entropy_pearson(counts: Counts, model: Table, *, resamples: int, splits: int, seed: int) -> Correction:
    k = counts.sum(axis=1)
    some = k >= 4
    left_out = int((~some).sum())
    if some.sum() < 2:
        return Correction(None, "too few items have four votes: the entropy of a half that is one vote is always 0")
    c, q, k = counts[some], model[some], k[some]
    one, other = (k + 1) // 2, k // 2
    fitted = fit_polynomials(_entropy_of_cell, c, q, panel_size=k, sizes=np.concatenate([k, one, other]), parts=48)
    rng = np.random.default_rng(seed)
    first, second, product = np.zeros(len(c)), np.zeros(len(c)), np.zeros(len(c))
    for _ in range(splits):
        part = draw_votes(c, one, rng)
        a = fitted.bracket(part, q, panel_size=one).middle
        b = fitted.bracket(c - part, q, panel_size=other).middle
        first, second, product = first + a / splits, second + b / splits, product + a * b / splits
    human, surprise = fitted.bracket(c, q, panel_size=k).middle, entropy(q)
    # Centred first, so that what is left of products is no difference of large numbers.
    centre, at = float(human.mean()), float(surprise.mean())
    x, y = human - centre, surprise - at
    product = product - centre * (first + second) + centre**2
    columns = np.stack([x, y, x * y, y * y, first - centre, second - centre, product])
    x, y, xy, yy, a, b, ab = np.moveaxis(resampled_means(columns, resamples=resamples, seed=seed), 1, 0)
    between, spread = ab - a * b, yy - y * y
    if not (between[0] > 0 and spread[0] > 1e-12):
        return Correction(None, "the entropies of people, or of the model, do not differ between items beyond noise")
    r = (xy - x * y) / np.sqrt(np.maximum(between, 1e-12) * np.maximum(spread, 1e-12))
    note = "plain correlation over the square root of the split-half reliability of entropies, at most 1"
    if left_out:
        note += f"; {left_out:,} items with fewer than four votes are left out"
    if k.min() < 8:
        note += "; with fewer than eight votes an item its interval holds the truth about 90 times in 100, not 95"
    return Correction(percentile_estimate(np.clip(r, -1.0, 1.0), level=LEVEL), note)


def _entropy_of_cell(p: Any, q: Any) -> Any:
    return entr(p)


def _entropies(counts: Counts, model: Table) -> Bracket:
    return _bracket(_entropy_of_cell, counts, model, counts.sum(axis=1), parts=48)


def _bracket(function: CellFunction, counts: Counts, model: Table, panel_size: Ints, *, parts: int) -> Bracket:
    fitted = fit_polynomials(function, counts, model, panel_size=panel_size, parts=parts)
    return fitted.bracket(counts, model, panel_size=panel_size)


def _kl(counts: Counts, model: Table) -> Bracket:
    return _entropies(counts, model).scaled(-1.0, shift=soft_nll(_shares(counts), model))


def _entce(counts: Counts, model: Table) -> Bracket:
    return _entropies(counts, model).scaled(-1.0, shift=entropy(model))


def _jsd(counts: Counts, model: Table) -> Bracket:
    return _bracket(jsd_of_cell, counts, model, counts.sum(axis=1), parts=96)


def _tvd(counts: Counts, model: Table) -> Bracket:
    return _bracket(lambda p, q: np.abs(p - q) / 2, counts, model, counts.sum(axis=1), parts=192)


def _wasserstein(counts: Counts, model: Table) -> Bracket:
    reached, said = np.cumsum(counts, axis=1)[:, :-1], np.cumsum(model, axis=1)[:, :-1]
    return _bracket(lambda p, q: np.abs(p - q), reached, np.clip(said, 0.0, 1.0), counts.sum(axis=1), parts=192)


def _shares(counts: Counts) -> Table:
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


UNBIASED: Final = ("soft_nll", "expected_accuracy")
"""Linear in the true distribution."""

BRACKETED: Final[dict[str, Callable[[Counts, Table], Bracket]]] = {
    "kl": _kl,
    "entce": _entce,
    "jsd": _jsd,
    "po_jsd": lambda counts, model: _jsd(counts, model).scaled(-1 / LN2, shift=1.0),
    "tvd": _tvd,
    "manhattan": lambda counts, model: _tvd(counts, model).scaled(2.0),
    "soft_accuracy": lambda counts, model: _tvd(counts, model).scaled(-1.0, shift=1.0),
    "soft_micro_f1": lambda counts, model: _tvd(counts, model).scaled(-1.0, shift=1.0),
    "wasserstein": _wasserstein,
}
"""Sums over classes of a function of one true probability."""

WIDE: Final = 0.5
"""The width of an interval, as a multiple of the value, from which on the value should not be quoted alone."""

_TOP: Final = "which class most people would choose is not known from few votes; hold the plain score against its floor"

WHY_NOT: Final = {
    "reverse_kl": "classes that people hardly ever choose decide it, and few votes never show them",
    "abs_entce": "the absolute value of an item's difference needs its entropy, which few votes do not give; see entce",
    "entropy_spearman": "ranks of entropies have no unbiased moments; see entropy_pearson",
    "accuracy": _TOP,
    "second_best_accuracy": _TOP,
    "rank_cs": _TOP,
    "brier_majority": _TOP,
    "ece": _TOP,
    "ece_equal_mass": _TOP,
    "classwise_ece": _TOP,
}
"""Why a metric has no corrected score."""
