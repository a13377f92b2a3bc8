"""What a few votes say of the next one: people's best forecast, learnt from the votes of other items.

Items have label distributions p that differ from item to item. How they differ is a discrete mixture with weights by
maximum likelihood (Kiefer and Wolfowitz 1956), and the forecast after some votes is the posterior mean of p. No family
is assumed: where "positive" and "very positive" are neighbours, a vote for one makes the other likelier.

The mixture's points lie where items do: at each item's votes c, smoothed by s further votes that are spread as the
votes of people beside them are, p = (c + s (c / m) T) / (m + s), with T[k, l] the share of l among the votes that stand
beside a vote for k. A second round may smooth towards what the first mixture forecasts after c. How much to smooth, and
whether twice, is chosen by votes on held-out items, and the one Dirichlet prior of all items, which knows no
neighbours, is a candidate that may win.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from scipy.special import digamma, gammaln, rel_entr, softmax

from dissensus.labels.schemes import fit_concentration
from dissensus.votes.sides import both_sides, on_one_side

if TYPE_CHECKING:
    from dissensus.arrays import Codes, Counts, Floats, Ints, Table

SMOOTHINGS: Final = ((), (0.3,), (1.0,), (3.0,), (10.0,), (3.0, 10.0), (3.0, 30.0))
"""Candidates: the votes that points are smoothed by in each round, and four times as many; none is the Dirichlet."""

POINTS: Final = 1000
"""The most items whose votes become points."""

STEPS: Final = 100
"""Steps of EM: fewer keep to even weights, many more fall into a few lumps."""

ITEMS: Final = 6000
"""The most items that weights are fitted to; of more, so many drawn at random."""

CHOOSING: Final = 2000
"""The most items that a smoothing is chosen on."""

FOLDS: Final = 5
"""Parts of the items, each forecast by what was learnt from the others."""

SHRINKAGE: Final = (1.0, 3.0, 10.0, 30.0, 100.0)
"""Items' worth of everybody's weights that a group's own weights may be drawn towards."""

FEW: Final = 3.0
"""Votes per item that a shrinkage is chosen on: what is known of an item counts while it has few votes."""

MANY: Final = 200
"""Classes beyond which points have no room to tell neighbours: then the Dirichlet prior it is."""

ROWS: Final = 4096
"""Forecasts that are made at a time, to spare memory."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """Items as a discrete mixture: (points, classes) label distributions above 0, and the (points,) share of each."""

    points: Table
    weights: Floats

    def forecast(self, mass: Any) -> Table:
        """(rows, classes) the posterior mean of p after these votes, or sums of judgements."""
        out = np.empty((len(mass), self.points.shape[1]))
        for begin in range(0, len(mass), ROWS):
            log = self._log_joint(mass[begin : begin + ROWS])
            posterior = np.exp(log - log.max(axis=1, keepdims=True))
            out[begin : begin + ROWS] = (posterior @ self.points) / posterior.sum(axis=1, keepdims=True)
        return out

    def forecast_after_one(self, mass: Any, chances: Table) -> Table:
        """The same after one vote more, which is for each class with these (rows, classes) chances."""
        out = np.empty((len(mass), self.points.shape[1]))
        for begin in range(0, len(mass), ROWS):
            posterior = softmax(self._log_joint(mass[begin : begin + ROWS]), axis=1)
            # Bayes' rule for each class, summed over classes.
            posterior *= (chances[begin : begin + ROWS] / (posterior @ self.points)) @ self.points.T
            out[begin : begin + ROWS] = posterior @ self.points
        return out

    def log_likelihood(self, mass: Any) -> Floats:
        """(rows,) of these votes in one of their orders: the sum of ln forecast of each vote by those before it."""
        out = np.empty(len(mass))
        for begin in range(0, len(mass), ROWS):
            log = self._log_joint(mass[begin : begin + ROWS])
            top = log.max(axis=1)
            out[begin : begin + ROWS] = top + np.log(np.exp(log - top[:, None]).sum(axis=1))
        return out

    def mean_log(self, mass: Any) -> Table:
        """(rows, classes) the posterior mean of ln p, which is the slope of `log_likelihood` in the votes."""
        return np.asarray(softmax(self._log_joint(mass), axis=1) @ np.log(self.points))

    def _log_joint(self, mass: Any) -> Table:
        return np.asarray(mass @ np.log(self.points).T + np.log(np.maximum(self.weights, 1e-300)))


@dataclass(frozen=True, eq=False)
class Dirichlet:
    """Items as draws from one Dirichlet distribution of (classes,) pseudo-votes `alpha`, all above 0; or a row each."""

    alpha: Floats | Table

    def forecast(self, mass: Any) -> Table:
        """(rows, classes) the posterior mean of p after these votes, or sums of judgements."""
        total = np.asarray(mass) + self.alpha
        return np.asarray(total / total.sum(axis=1, keepdims=True))

    def forecast_after_one(self, mass: Any, chances: Table) -> Table:
        """The same after one vote more, which is for each class with these (rows, classes) chances."""
        return self.forecast(np.asarray(mass) + chances)

    def log_likelihood(self, mass: Any) -> Floats:
        """(rows,) of these votes in one of their orders."""
        mass, whole = np.asarray(mass, dtype=np.float64), self.alpha.sum(axis=-1)
        own = gammaln(self.alpha + mass) - gammaln(self.alpha)
        return np.asarray(own.sum(axis=1) + gammaln(whole) - gammaln(whole + mass.sum(axis=1)))

    def mean_log(self, mass: Any) -> Table:
        """(rows, classes) the posterior mean of ln p, which is the slope of `log_likelihood` in the votes."""
        total = np.asarray(mass) + self.alpha
        return np.asarray(digamma(total) - digamma(total.sum(axis=1, keepdims=True)))


Prior: TypeAlias = Mixture | Dirichlet
"""What is known of an item before its votes."""

Forecast: TypeAlias = Callable[[Any], Any]
"""(items, classes) judgements of all items to the (items, classes) posterior means of their label distributions."""


def next_vote(mass: Table, forecast: Forecast) -> tuple[Floats, Floats, Floats]:
    """(items,) expected squared error of the posterior mean m, and what the next vote is expected to do about it.

    With m(l) the mean after a vote for l: V = sum_l m_l m(l)_l - sum_k m_k^2, then G = sum_l m_l |m(l) - m|^2 and, by
    NLL on a further vote, sum_l m_l KL(m(l) || m).
    """
    mean = forecast(mass)
    alike, moved, surprise = (np.zeros(len(mass)) for _ in range(3))
    for k, one in enumerate(np.eye(mass.shape[1])):
        after = forecast(mass + one)
        alike += mean[:, k] * after[:, k]
        moved += mean[:, k] * ((after - mean) ** 2).sum(axis=1)
        surprise += mean[:, k] * rel_entr(after, mean).sum(axis=1)
    return np.maximum(alike - (mean**2).sum(axis=1), 0.0), moved, surprise


def fit_dirichlet(mass: Table, *, pairs: bool = False) -> Dirichlet:
    """Maximum-likelihood pseudo-votes; a class that nobody chose gets the share of half a vote."""
    mass = both_sides(mass) if pairs else mass
    alpha = fit_concentration(mass)
    return Dirichlet(np.maximum(alpha, alpha.sum() * 0.5 / (mass.sum() + 0.5 * len(alpha))))


def fit_mixture(mass: Table, smoothings: tuple[float, ...], *, seed: int = 0, pairs: bool = False) -> Mixture:
    """The mixture whose points are items' (items, classes) votes, smoothed by so many votes in each round.

    Where there are many items, some are drawn at random. Of `pairs` it is that of items and their mirror images.
    """
    rng = np.random.default_rng(seed)
    rows, times = _distinct(_some(mass, ITEMS, rng), pairs=pairs)
    of = rows if len(rows) <= POINTS else rows[rng.choice(len(rows), POINTS, replace=False, p=times / times.sum())]
    if pairs:
        mass, rows, of, times = both_sides(mass), both_sides(rows), both_sides(of), np.tile(times, 2)
    everybody, beside = _everybody(mass), _votes_beside(mass)
    size = of.sum(axis=1, keepdims=True)
    spread = (of / size) @ beside
    for smoothing in smoothings:
        smoothed = [(of + s * spread) / (size + s) for s in (smoothing, 4 * smoothing)]
        points = np.concatenate([*smoothed, beside, everybody[None]])
        weights = em_weights(Mixture(points, np.ones(len(points))), rows, times, steps=STEPS)
        kept = weights > 1e-7
        mixture = Mixture(points[kept], weights[kept] / weights[kept].sum())
        spread = mixture.forecast(of)
    return mixture


def fit_prior(
    mass: Table, *, smoothings: tuple[float, ...] | None = None, seed: int = 0, part: float = 1.0, pairs: bool = False
) -> Prior:
    """A candidate, fitted to the (items, classes) votes of all items or of a random `part` of them.

    Without `smoothings` it is the one that forecasts held-out votes best. Of `pairs`, preferences, it is the same
    whichever way round the sides of items are named.
    """
    chosen = choose_smoothings(mass, seed=seed, pairs=pairs) if smoothings is None else smoothings
    return _fit(_part(mass, part, seed=seed), chosen, seed=seed, pairs=pairs)


def cross_fitted(
    mass: Table, *, smoothings: tuple[float, ...] | None = None, seed: int = 0, part: float = 1.0, pairs: bool = False
) -> tuple[tuple[Prior, ...], Ints]:
    """A prior for each of some folds of the items, fitted to the others, and (items,) the fold of each.

    As `fit_prior`: without `smoothings` the best candidate, fitted to a random `part` of the others.
    """
    fold = folds_of(len(mass), seed=seed)
    chosen = choose_smoothings(mass, seed=seed, pairs=pairs) if smoothings is None else smoothings
    others = (_part(mass[fold != number], part, seed=seed) for number in range(FOLDS))
    return tuple(_fit(other, chosen, seed=seed, pairs=pairs) for other in others), fold


def by_group(
    prior: Mixture,
    mass: Table,
    group: Codes | Ints,
    *,
    groups: int,
    shrinkage: float,
    mirrored: Codes | Ints | None = None,
) -> tuple[Mixture, ...]:
    """The mixture of each group of items: the same points, with weights between the group's own and everybody's.

    `mass` is (items, classes), `group` (items,). A group without items has everybody's weights, which count as
    `shrinkage` items in each. Of pairs, `mirrored` are the (items,) groups of their mirror images.
    """
    if mirrored is not None:
        mass, group = both_sides(mass), np.concatenate([group, mirrored])
    out = []
    for number in range(groups):
        rows, times = _distinct(mass[group == number], pairs=False)
        items = times if mirrored is None else times / 2
        weights = em_weights(prior, rows, items, steps=STEPS, shrinkage=shrinkage) if len(rows) else prior.weights
        out.append(Mixture(prior.points, weights))
    return tuple(out)


def cross_fitted_by_group(
    mass: Table, group: Codes | Ints, *, seed: int = 0, mirrored: Codes | Ints | None = None
) -> tuple[tuple[Mixture, ...], Ints]:
    """As `cross_fitted`, by fold and (items,) group; how far groups keep to everybody, held-out votes tell.

    Of pairs, `mirrored` are the groups of their mirror images.
    """
    fold, pairs = folds_of(len(mass), seed=seed), mirrored is not None
    groups = int(max(group.max(), 0 if mirrored is None else mirrored.max())) + 1
    chosen = choose_smoothings(mass, seed=seed, mixtures=True, pairs=pairs)
    everybody = [fit_mixture(mass[fold != number], chosen, seed=seed, pairs=pairs) for number in range(FOLDS)]
    few = mass * np.minimum(1.0, FEW / mass.sum(axis=1, keepdims=True))
    best, result = -np.inf, None
    for shrinkage in SHRINKAGE:
        of = tuple(
            mixture
            for number, prior in enumerate(everybody)
            for mixture in by_group(
                prior,
                mass[fold != number],
                group[fold != number],
                groups=groups,
                shrinkage=shrinkage,
                mirrored=None if mirrored is None else mirrored[fold != number],
            )
        )
        which = fold * groups + group
        likelihood = sum(float(prior.log_likelihood(few[which == k]).sum()) for k, prior in enumerate(of))
        if likelihood > best:
            best, result = likelihood, of
    assert result is not None
    return result, which


def folds_of(items: int, *, seed: int) -> Ints:
    """(items,) the fold of each, 0 to `FOLDS` - 1, of nearly equal size."""
    return np.asarray(np.random.default_rng(seed).permutation(items) % FOLDS)


def choose_smoothings(mass: Table, *, seed: int = 0, mixtures: bool = False, pairs: bool = False) -> tuple[float, ...]:
    """The candidate that makes held-out items' votes likeliest; with `mixtures`, the Dirichlet prior is left out."""
    if mass.shape[1] > MANY and not mixtures:
        return ()
    some = np.asarray(_some(mass, CHOOSING, np.random.default_rng(seed)))
    return _likeliest(some.tobytes(), some.dtype.str, some.shape[1], seed, mixtures, pairs)


@lru_cache(maxsize=8)
def _likeliest(votes: bytes, kind: str, classes: int, seed: int, mixtures: bool, pairs: bool) -> tuple[float, ...]:
    """The candidate for these votes, an array's bytes; rulers of several scores and of several models ask for one."""
    some = np.frombuffer(votes, dtype=kind).reshape(-1, classes)
    fold = folds_of(len(some), seed=seed)

    def likelihood(smoothings: tuple[float, ...]) -> float:
        fitted = [_fit(some[fold != number], smoothings, seed=seed, pairs=pairs) for number in range(FOLDS)]
        return sum(float(fitted[number].log_likelihood(some[fold == number]).sum()) for number in range(FOLDS))

    return max((smoothing for smoothing in SMOOTHINGS if smoothing or not mixtures), key=likelihood)


def em_weights(prior: Mixture, rows: Table | Counts, times: Any, *, steps: int, shrinkage: float = 0.0) -> Floats:
    """(points,) weights after some steps of EM from those of the prior; each raises the likelihood of the rows.

    `rows` are (rows, classes) votes, `times` (rows,) how many items have each, and `shrinkage` the items' worth of the
    prior's weights that are added to them.
    """
    log = rows @ np.log(prior.points).T
    likelihood = np.exp(log - log.max(axis=1, keepdims=True))
    total = times.sum() + shrinkage
    base = prior.weights / prior.weights.sum()
    weights = base
    for _ in range(steps):
        own = weights * ((times / np.maximum(likelihood @ weights, 1e-300)) @ likelihood)
        weights = (own + shrinkage * base) / total
    return np.asarray(weights)


def _fit(mass: Table, smoothings: tuple[float, ...], *, seed: int, pairs: bool) -> Prior:
    return fit_mixture(mass, smoothings, seed=seed, pairs=pairs) if smoothings else fit_dirichlet(mass, pairs=pairs)


def _distinct(mass: Table, *, pairs: bool) -> tuple[Table, Ints]:
    """The distinct rows, of `pairs` without their mirror images, and how many items have each."""
    return np.unique(on_one_side(mass) if pairs else mass, axis=0, return_counts=True)


def _part(mass: Table, part: float, *, seed: int) -> Table:
    return _some(mass, max(2, round(part * len(mass))), np.random.default_rng([seed, 1]))


def _some(mass: Table, most: int, rng: np.random.Generator) -> Table:
    return mass if len(mass) <= most else mass[rng.permutation(len(mass))[:most]]


def _everybody(mass: Table) -> Floats:
    """(classes,) the mean over items of the shares of their votes, with half an item's votes spread evenly."""
    classes = mass.shape[1]
    shares = (mass / mass.sum(axis=1, keepdims=True)).sum(axis=0)
    return np.asarray((shares + 0.5 / classes) / (len(mass) + 0.5))


def _votes_beside(mass: Table) -> Table:
    """(classes, classes) row k: the shares of classes among votes beside a vote for k, with two of everybody's."""
    everybody = _everybody(mass)
    several = mass[mass.sum(axis=1) > 1]
    size = several.sum(axis=1, keepdims=True)
    pairs = (several / (size * (size - 1))).T @ several
    # A vote does not stand beside itself.
    pairs = np.maximum(pairs - np.diag((several / (size * (size - 1))).sum(axis=0)), 0.0)
    return np.asarray((pairs + 2 * everybody) / (pairs.sum(axis=1, keepdims=True) + 2))
