"""Two systems on n items with k votes each: how likely is the better one found to be significantly better?

The systems are those whose predictions are given, or a simulated pair that differs by d. Of that pair the better one
forecasts as well as `WORTH` people's votes would (the posterior mean under the mixture, as on the people ruler).
The other one does so too, from other people's votes, but on a share e of items knows nothing: there it says what people
say of any item. Its score against everybody is worse by d = e (score of knowing nothing - score of the better one),
which gives e. Against k votes the difference may be smaller: a majority of few votes is often not everybody's, and
distances to few votes are long whoever forecasts. That is why metrics want different numbers of votes.

Items with their votes are simulated from the fitted panel, and a paired t-test over items, two-sided at 5 %, decides.
With m and s the mean and the standard deviation of an item's difference, n items have the power of the effect m / s;
below `FEW` items, where the t-test feels how skewed differences are, tests themselves are simulated.

A plan must also measure the difference, not just find one. With b = m - d the part that few votes hide, the error of
the measured difference is sqrt(b^2 + s^2 / n), and under a budget the best plan is the one with the least error. For
soft NLL b is 0, and it has the greatest power, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln, ndtr, ndtri, softmax, stdtrit

from dissensus.bootstrap import Estimate, percentile_estimate
from dissensus.errors import InputError
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.planning.fitted import REPEATS, RESAMPLES, draw_dirichlets, nested_votes
from dissensus.planning.predicted import LEVEL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.arrays import Counts, Floats, Ints, Table
    from dissensus.planning.fitted import FittedPanel

WORTH: Final = 5
"""People's votes that the better one of a simulated pair forecasts as well as."""

SHARE: Final = 0.1
"""Of items on which the worse one of a simulated pair knows nothing, where no difference is asked for."""

SIZE: Final = 0.05
"""Of the two-sided test."""

POWER: Final = 0.8
"""That a plan is to reach."""

HIDDEN: Final = 0.25
"""The most of a difference that few votes may hide, in parts of it."""

FEW: Final = 500
"""Items below which tests are simulated one by one."""

TESTS: Final = 2000
"""Of them."""

MOST_ITEMS: Final = 1e9

FAR: Final = 0.2
"""In parts of it, how far off a first guess of the items needed may be."""

LINEAR: Final = ("soft_nll",)
"""Metrics that are linear in the votes, so that against k votes the mean difference is the one against everybody."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Gains:
    """How much better the better system is, by one metric, on simulated items.

    Items of a group (those of one point of a fitted panel, or an item of the pilot with the label distributions that
    its votes allow) weigh the same.

    Attributes:
        linear: whether the metric is one of `LINEAR`.
        truth: (groups,) against everybody, where the worse system knows nothing. Of real systems it is the plain gain
            on the pilot's votes if the metric is linear, which nothing fitted can bias.
        apart: by k, (groups, repeats) against k votes, likewise.
        alike: by k, (groups, repeats) where both systems are alike; empty for real systems.
        noise: of real systems by a linear metric, (2, groups) the variance of a single vote's gain within its item, and
            what it leaves in the item's mean over the pilot's votes; empty otherwise.
    """

    linear: bool
    truth: Floats
    apart: Mapping[int, Table]
    alike: Mapping[int, Table]
    noise: Table = field(default_factory=lambda: np.empty((2, 0)))

    def moments(self, k: int, weights: Table, share: Floats) -> tuple[Floats, Floats]:
        """(rows,) mean and standard deviation of an item's difference, for rows of weights and shares."""
        if self.noise.size:
            # A one-way analysis of variance estimates mean and variance from the votes, without a fitted population.
            mean, of_votes = weights @ self.truth, weights @ self.noise.T
            between = weights @ self.truth**2 - mean**2 - of_votes[:, 1]
            return mean, np.sqrt(np.maximum(between, 0.0) + of_votes[:, 0] / k + 1e-15)
        # What is known needs no simulation, whose noise would choose between plans where items are many.
        mean = share * (weights @ (self.truth if self.linear else self.apart[k].mean(axis=1)))
        square = share * (weights @ (self.apart[k] ** 2).mean(axis=1))
        if k in self.alike:
            square = square + (1 - share) * (weights @ (self.alike[k] ** 2).mean(axis=1))
        return mean, np.sqrt(np.maximum(square - mean**2, 1e-15))


@dataclass(frozen=True, eq=False, kw_only=True)
class Pair:
    """Two systems, of which the better one is to be found.

    Attributes:
        real: whether their predictions were given.
        share: of items on which the worse one knows nothing; 1 for real systems.
        held: the metric whose difference is held while weights vary, and that difference; None holds the share.
        by_metric: gains.
        weights: (groups,) the share of items of each group.
        others: (resamples, groups) weights that other pilots would have given.
        scores: of real systems, by system, metric and k, (groups,) scores against k votes.
    """

    real: bool
    share: float
    held: tuple[str, float] | None
    by_metric: Mapping[str, Gains] = field(repr=False)
    weights: Floats = field(repr=False)
    others: Table = field(repr=False)
    scores: Mapping[str, Mapping[str, Mapping[int, Floats]]] = field(repr=False, default_factory=dict)

    def difference(self, metric: str) -> float:
        """How much better the better one is against everybody."""
        return self.share * float(self.weights @ self.by_metric[metric].truth)

    @cached_property
    def _rows(self) -> tuple[Table, Floats]:
        """(1 + resamples, groups) weights and (1 + resamples,) shares: here, and of other pilots."""
        weights = np.concatenate([self.weights[None], self.others])
        if self.held is None:
            return weights, np.full(len(weights), self.share)
        metric, d = self.held
        return weights, np.clip(d / np.maximum(weights @ self.by_metric[metric].truth, 1e-12), 0.0, 1.0)

    def error(self, metric: str, items: int, k: int) -> Estimate:
        """Root mean squared error of the measured difference, in parts of the true one."""
        weights, share = self._rows
        mean, deviation = self.by_metric[metric].moments(k, weights, share)
        truth = share * (weights @ self.by_metric[metric].truth)
        return _middle(np.hypot(mean - truth, deviation / items**0.5) / np.maximum(np.abs(truth), 1e-12))

    def power(self, metric: str, items: int, k: int) -> Estimate:
        """The chance of finding the better system better, with an interval for what the pilot leaves open."""
        if items < 2:
            return Estimate(0.0, 0.0, 0.0, LEVEL, len(self.others))
        mean, deviation = self.by_metric[metric].moments(k, *self._rows)
        distance = mean / deviation * items**0.5 + stdtrit(items - 1, SIZE / 2)
        if items < FEW and abs(distance[0]) < 4:
            distance = distance + self._simulated(metric, np.array([items]), k)[0] - distance[0]
        return _middle(ndtr(distance))

    @cached_property
    def _draws(self) -> Any:
        """(tests, items) the items of simulated tests, as places among the gains apart, alike, and alike reversed.

        They are the same for all metrics and numbers of votes, so that chance does not make one look better.
        """
        rng = np.random.default_rng(0)
        shape = (TESTS, ceil(1.2 * FEW) + 1)
        place = rng.choice(len(self.weights), size=shape, p=self.weights / self.weights.sum()) * REPEATS
        place += rng.integers(REPEATS, size=shape)
        apart = rng.random(shape) < self.share
        # Alike systems could change places, so that neither is better by the luck of a few simulated items.
        reversed_ = rng.choice([-1.0, 1.0], size=shape) < 0
        return place + np.where(apart, 0, 1 + reversed_) * len(self.weights) * REPEATS

    def _simulated(self, metric: str, items: Ints, k: int) -> Floats:
        """(items,) how far, in standard deviations, t-tests of so many items lie beyond what they need."""
        gains, beyond = self.by_metric[metric], np.empty(len(items))
        alike = gains.alike.get(k, gains.apart[k][:0])
        table = np.concatenate([gains.apart[k], alike, -alike]).ravel()
        values = table[self._draws[:, : items.max()]]
        for at, n in enumerate(items.tolist()):
            mean, deviation = values[:, :n].mean(axis=1), values[:, :n].std(axis=1, ddof=1)
            t = np.divide(mean, deviation, out=np.zeros(TESTS), where=deviation > 0) * np.sqrt(n)
            hits = float((t > -stdtrit(n - 1, SIZE / 2)).mean())
            beyond[at] = ndtri(np.clip(hits, 0.5 / TESTS, 1 - 0.5 / TESTS))
        return beyond

    def items_needed(self, metric: str, k: int, *, power: float = POWER) -> Estimate | None:
        """How many items find the better system better with this power.

        None where k votes hide too much of it, or these are more than `MOST_ITEMS`.
        """
        mean, deviation = self.by_metric[metric].moments(k, *self._rows)
        if abs(mean[0] - self.difference(metric)) > HIDDEN * abs(self.difference(metric)) or mean[0] <= 0:
            return None
        # One and a half items more for Student's t in place of the normal distribution.
        needed = (float(ndtri(power) - ndtri(SIZE / 2)) * deviation / np.maximum(mean, 1e-12)) ** 2 + 1.5
        simulated = float(needed[0])
        if simulated < FEW:
            simulated = self._simulated_need(metric, k, about=simulated, power=power)
            if abs(simulated / needed[0] - 1) > FAR and simulated < FEW:
                # Few items suffice, and what was simulated lay elsewhere: again, about what came out.
                simulated = self._simulated_need(metric, k, about=simulated, power=power)
        needed = needed * simulated / needed[0]
        return _middle(np.minimum(needed, MOST_ITEMS)) if needed[0] < MOST_ITEMS else None

    def _simulated_need(self, metric: str, k: int, *, about: float, power: float) -> float:
        """How many items have this power, from simulated tests of some more and fewer."""
        at = np.unique(np.ceil(about * np.array([0.7, 0.85, 1.0, 1.2])).astype(np.int64).clip(5))
        slope, start = np.polyfit(np.sqrt(at), self._simulated(metric, at, k), 1) if len(at) > 1 else (0.0, 0.0)
        return float(((float(ndtri(power)) - start) / slope) ** 2) if slope > 0 else about

    def score(self, system: str, metric: str, k: int) -> Estimate:
        """What a real system would score against k votes of such items."""
        return _middle(self._rows[0] @ self.scores[system][metric][k])


def _middle(values: Floats) -> Estimate:
    """The first value, and the middle 95 % of the others about it."""
    estimate = percentile_estimate(values, level=LEVEL)
    assert estimate.low is not None
    assert estimate.high is not None
    return replace(estimate, low=min(estimate.low, estimate.value), high=max(estimate.high, estimate.value))


def simulated_pair(
    panel: FittedPanel,
    votes: Sequence[int],
    *,
    metrics: Sequence[str],
    goal: str,
    difference: float | None = None,
    seed: int = 0,
) -> Pair:
    """A pair of systems that differs by `difference` in the metric `goal`.

    Args:
        panel: fitted to a pilot.
        votes: the numbers k of votes to be held against.
        metrics: of the registry; one of them is `goal`.
        goal: the metric whose difference is given.
        difference: that difference, 0 or more; None takes what a share of 0.1 of items makes.
        seed: random seed.
    """
    rng = np.random.default_rng(seed)
    p = np.repeat(panel.points, REPEATS, axis=0)
    better, alike = (panel.prior.forecast(rng.multinomial(WORTH, p / p.sum(axis=1, keepdims=True))) for _ in range(2))
    nothing = np.broadcast_to(panel.prior.forecast(np.zeros((1, p.shape[1]))), p.shape)
    counts = nested_votes(p, votes, rng)
    by_metric = {metric: _gains(metric, p, counts, better, nothing, alike) for metric in metrics}
    most = float(panel.weights @ by_metric[goal].truth)
    if difference is not None and not 0 < difference <= most:
        raise InputError(
            f"plan: a difference of {difference:g} in {METRICS[goal].short} is not between 0 and {most:.3g}, which "
            f"lies between a system worth {WORTH} people and one that knows nothing of the items; give a smaller one"
        )
    return Pair(
        real=False,
        share=SHARE if difference is None else difference / most,
        held=None if difference is None else (goal, difference),
        by_metric=by_metric,
        weights=panel.weights,
        others=panel.rough[1:],
    )


def real_pair(
    pilot: Counts, systems: Mapping[str, Table], votes: Sequence[int], *, metrics: Sequence[str], seed: int = 0
) -> Pair:
    """Two systems by their predictions of the pilot's items; the first is taken for the better one.

    Each item's label distribution is drawn from what its votes leave possible, again and again. Metrics that are linear
    in the votes keep their plain mean over the pilot's votes, for the difference and for the scores.

    Args:
        pilot: (items, classes) votes.
        systems: by name, (items, classes) probabilities; one or two systems.
        votes: the numbers k of votes.
        metrics: of the registry.
        seed: random seed.
    """
    rng = np.random.default_rng(seed)
    items = len(pilot)
    p = _likely_distributions(pilot, list(systems.values()), rng)
    repeated = {name: np.repeat(q, REPEATS, axis=0) for name, q in systems.items()}
    one, *_, other = [*repeated.values(), *repeated.values()]
    counts = nested_votes(p, votes, rng)
    by_metric = {metric: _gains(metric, p, counts, one, other, None) for metric in metrics}
    scores = {
        name: {metric: {k: _scores(metric, c / k, q).mean(axis=1) for k, c in counts.items()} for metric in metrics}
        for name, q in repeated.items()
    }
    even = np.full(items, 1 / items)
    for metric in (metric for metric in metrics if metric in LINEAR):
        by_metric[metric] = _of_votes(metric, pilot, systems, by_metric[metric])
        for name, plain in plain_scores(metric, pilot, systems).items():
            scores[name][metric] = dict.fromkeys(counts, plain)
    others = rng.multinomial(items, even, size=RESAMPLES * 5) / items
    return Pair(real=True, share=1.0, held=None, by_metric=by_metric, weights=even, others=others, scores=scores)


def plain_scores(metric: str, pilot: Counts, systems: Mapping[str, Table]) -> dict[str, Floats]:
    """Return, for each system, (items,) scores against the vote shares of the pilot."""
    per_item = METRICS[metric].per_item
    assert per_item is not None
    shares = pilot / pilot.sum(axis=1, keepdims=True)
    return {name: np.asarray(per_item(shares, q), dtype=np.float64) for name, q in systems.items()}


def plain_gain(metric: str, scores: Mapping[str, Floats]) -> Floats:
    """Return the (items,) gain of the first of two systems over the second. The gain of a single system is 0."""
    first, *_, last = [*scores.values(), *scores.values()]
    return first - last if METRICS[metric].better == "higher" else last - first


def _of_votes(metric: str, pilot: Counts, systems: Mapping[str, Table], fitted: Gains) -> Gains:
    """Return gains by a linear metric. Their mean and variance are the pilot's, and their shape comes from `fitted`."""
    classes, size = pilot.shape[1], pilot.sum(axis=1)
    by_vote = [
        plain_scores(metric, np.tile(vote, (len(pilot), 1)), systems) for vote in np.eye(classes, dtype=np.int64)
    ]
    gain = np.stack([plain_gain(metric, scores) for scores in by_vote], axis=1)
    mean = (pilot * gain).sum(axis=1) / size
    several = size > 1
    within = (pilot * (gain - mean[:, None]) ** 2).sum(axis=1) / np.maximum(size - 1, 1)
    within = np.where(several, within, within[several].mean())
    found = replace(fitted, truth=mean, noise=np.stack([within, within / size]))
    even, apart = np.full((1, len(pilot)), 1 / len(pilot)), {}
    for k, drawn in fitted.apart.items():
        centre, deviation = found.moments(k, even, np.ones(1))
        apart[k] = centre + (drawn - drawn.mean()) * deviation / max(float(drawn.std()), 1e-12)
    return replace(found, apart=apart)


def _likely_distributions(pilot: Counts, systems: Sequence[Table], rng: np.random.Generator) -> Table:
    """(items * REPEATS, classes) label distributions that the votes and the systems' predictions leave possible.

    Before its votes an item's distribution is Dirichlet about a mean of what everybody says of any item and what each
    system says of this one, made sharper or flatter by a power. How much each counts, the power, and how closely
    distributions follow the mean fit the votes best (maximum likelihood). Without the predictions an item would seem to
    differ from what a good system says of it by more than it does.
    """
    everybody = np.broadcast_to(pilot.sum(axis=0) / pilot.sum(), pilot.shape)
    logs = np.log(np.maximum(np.stack(systems), 1e-6))

    def concentration(theta: Floats) -> Table:
        parts = softmax(theta[2:])
        sharpened = softmax(np.exp(theta[1]) * logs, axis=2)
        mean = parts[0] * everybody + np.tensordot(parts[1:], sharpened, axes=1)
        return np.asarray(np.exp(theta[0]) * np.maximum(mean, 1e-6))

    def unlikely(theta: Floats) -> float:
        a = concentration(theta)
        total, size = a.sum(axis=1), pilot.sum(axis=1)
        likelihood = gammaln(total) - gammaln(total + size) + (gammaln(a + pilot) - gammaln(a)).sum(axis=1)
        return -float(likelihood.sum())

    # The likelihood has several peaks. A search from one start ended up to 226 log-likelihood units below the best.
    bounds = [(-5, 8), (-3, 3), *[(-12, 12)] * (1 + len(logs))]
    starts = [np.r_[spread, power, np.zeros(1 + len(logs))] for spread in (0.0, 3.0) for power in (-1.0, 0.0, 1.0)]
    fitted = min((minimize(unlikely, start, method="L-BFGS-B", bounds=bounds) for start in starts), key=lambda f: f.fun)
    return draw_dirichlets(np.repeat(concentration(fitted.x) + pilot, REPEATS, axis=0), rng)


def _scores(metric: str, human: Table, model: Table) -> Table:
    """(groups, repeats)."""
    per_item = METRICS[metric].per_item
    assert per_item is not None
    return np.asarray(per_item(human, np.ascontiguousarray(model)).reshape(-1, REPEATS))


def _gains(
    metric: str, p: Table, counts: Mapping[int, Counts], better: Table, worse: Table, alike: Table | None
) -> Gains:
    """What the better system gains over the worse against everybody and k votes, and over one that is as good."""

    def gain(human: Table, other: Table) -> Table:
        values = _scores(metric, human, other) - _scores(metric, human, better)
        return -values if METRICS[metric].better == "higher" else values

    return Gains(
        linear=metric in LINEAR,
        truth=gain(p, worse).mean(axis=1),
        apart={k: gain(c / k, worse) for k, c in counts.items()},
        alike={} if alike is None else {k: gain(c / k, alike) for k, c in counts.items()},
    )
