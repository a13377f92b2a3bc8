"""The noise floor: what a perfect model would score against so few votes.

A perfect model says each item's true distribution p. Held against k votes it still scores badly, because their shares
are not p. No model can be expected to do better, and a score near the floor is as good as the votes can tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.special import entr, gammaln, xlogy

from dissensus.errors import InputError
from dissensus.evaluation.finite_panel.counts import counted
from dissensus.evaluation.finite_panel.prior import fit_prior
from dissensus.evaluation.metrics.registry import METRICS

if TYPE_CHECKING:
    from collections.abc import Callable

    from dissensus.arrays import Floats, Ints, Table
    from dissensus.bootstrap import Seed
    from dissensus.evaluation.metrics.metric import Metric
    from dissensus.labels.distribution import LabelDistribution

ROWS: Final = 20_000
"""About how many true distributions a floor is averaged over."""


def noise_floor(name: str, truth: Table, *, panel_size: int | Ints, draws: int = 20, seed: Seed = 0) -> float | None:
    """Expected score of the model that says `truth`, against votes drawn from it.

    Exact for Brier, soft NLL, KL, signed EntCE, JSD, TVD and what follows from it, Wasserstein and expected accuracy,
    by sums over binomial distributions; for the other metrics the mean over simulated panels. None where the metric is
    undefined on all of them.

    Args:
        name: of a metric.
        truth: (items, classes) true distributions.
        panel_size: votes of each item, one number or (items,).
        draws: simulated panels, for the metrics without an exact mean.
        seed: of the simulated panels.
    """
    metric = held_against_votes(name)
    size = np.broadcast_to(np.asarray(panel_size, dtype=np.int64), (len(truth),))
    if size.size and size.min() < 1:
        raise InputError(f"noise floor: a panel of {size.min()} votes; every item needs at least 1")
    if name in EXPECTED:
        return float(EXPECTED[name](truth, size).mean())
    rng = np.random.default_rng(seed)
    scores = []
    for _ in range(draws):
        votes = rng.multinomial(size, truth) / size[:, None]
        score = _score(metric, votes, truth)
        scores += [] if score is None else [score]
    return float(np.mean(scores)) if scores else None


def _score(metric: Metric, human: Table, model: Table) -> float | None:
    if metric.per_item is not None:
        return float(metric.per_item(human, model).mean())
    assert metric.over_items is not None
    return metric.over_items(human, model)


def panel_floor(name: str, labels: LabelDistribution, *, seed: int = 0) -> float | None:
    """The noise floor of a panel whose true distributions are not known: its mean over plausible ones.

    Plausible are draws from the posterior of each item's distribution, under a prior fitted to all votes (`fit_prior`).
    Not the posterior mean: that is smoother than the truth, and at 5 votes sets the floor of TVD a quarter too high.
    And not the model: the floor is a property of the votes, the same for every model in a table.
    """
    counts, total = counted(labels)
    prior = fit_prior(counts)
    rng = np.random.default_rng(seed)
    rounds = int(np.clip(ROWS // len(counts), 2, 50))
    floors = [noise_floor(name, prior.draw(counts, rng), panel_size=total, draws=1, seed=rng) for _ in range(rounds)]
    known = [floor for floor in floors if floor is not None]
    return float(np.mean(known)) if known else None


def held_against_votes(name: str) -> Metric:
    """The metric of this name, refused where it asks for more than people's votes and the model."""
    if name not in METRICS:
        raise InputError(f"metric: there is no '{name}'; choose one of {', '.join(METRICS)}")
    if "original" in METRICS[name].needs:
        raise InputError(f"metric: {name} holds the model against the original labels, which no votes stand behind")
    return METRICS[name]


def binomial_mean(function: Callable[[Any, Any], Any], p: Table, size: Ints) -> Table:
    """(items, cells) the mean of function(c / k, p) over c ~ Binomial(k, p), with k of each item."""
    k = size[:, None]
    out = np.zeros_like(p)
    for c in range(int(size.max(initial=0)) + 1):
        possible = c <= k
        rest = np.maximum(k - c, 0)
        log_ways = gammaln(k + 1) - gammaln(c + 1) - gammaln(rest + 1)
        chance = np.exp(log_ways + xlogy(c, p) + xlogy(rest, 1 - p))
        out += np.where(possible, chance * function(np.minimum(c / k, 1.0), p), 0.0)
    return out


def mean_deviation(p: Table, size: Ints) -> Table:
    """(items, cells) E|c / k - p| for c ~ Binomial(k, p), with k of each item.

    De Moivre's formula 2 v C(k, v) p^v (1 - p)^(k - v + 1) / k, v = floor(k p) + 1.
    """
    k = size[:, None]
    v = np.minimum(np.floor(k * p) + 1, k)
    log_ways = gammaln(k + 1) - gammaln(v + 1) - gammaln(k - v + 1)
    return np.asarray(2 * v / k * np.exp(log_ways + xlogy(v, p) + xlogy(k - v + 1, 1 - p)))


def jsd_of_cell(p: Any, q: Any) -> Any:
    """One class's part of the Jensen-Shannon divergence, in nats, elementwise."""
    return entr((p + q) / 2) - (entr(p) + entr(q)) / 2


def _entropy_lost(truth: Table, size: Ints) -> Floats:
    return np.asarray((entr(truth) - binomial_mean(lambda share, _: entr(share), truth, size)).sum(axis=1))


def _tvd(truth: Table, size: Ints) -> Floats:
    return np.asarray(mean_deviation(truth, size).sum(axis=1) / 2)


def _jsd(truth: Table, size: Ints) -> Floats:
    return np.asarray(binomial_mean(jsd_of_cell, truth, size).sum(axis=1))


def _wasserstein(truth: Table, size: Ints) -> Floats:
    reached = np.clip(np.cumsum(truth, axis=1)[:, :-1], 0.0, 1.0)
    return np.asarray(mean_deviation(reached, size).sum(axis=1))


EXPECTED: Final[dict[str, Callable[[Table, Ints], Floats]]] = {
    "kl": _entropy_lost,
    "entce": _entropy_lost,
    "soft_nll": lambda truth, size: np.asarray(entr(truth).sum(axis=1)),
    "jsd": _jsd,
    "po_jsd": lambda truth, size: 1 - _jsd(truth, size) / np.log(2),
    "tvd": _tvd,
    "manhattan": lambda truth, size: 2 * _tvd(truth, size),
    "soft_accuracy": lambda truth, size: 1 - _tvd(truth, size),
    "soft_micro_f1": lambda truth, size: 1 - _tvd(truth, size),
    "wasserstein": _wasserstein,
    "brier": lambda truth, size: (1 - (truth**2).sum(axis=1)) / size,
    "expected_accuracy": lambda truth, size: np.asarray(truth.max(axis=1)),
}
"""Per metric, (items,) expected scores of the true distributions against votes drawn from them."""
