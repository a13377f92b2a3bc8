"""The panel behind a pilot: which label distributions items have, and how often, from a few votes of each.

The distribution of label distributions is a discrete mixture with weights by maximum likelihood (Kiefer and Wolfowitz
1956), over points that are drawn where items may lie: from each item's posterior under a fitted Dirichlet prior, from
that prior itself, and the corners. No family of distributions is assumed: what the votes can tell, the mixture repeats.
(Forecasts from votes are learnt with fewer points, `labels.mixture`; here points lie close, as ties matter.)

Few votes tell little of how rough the mixture is. After a few steps of EM it is smooth, after many it has fallen into a
few lumps; both fit. The smooth one is the estimate, and the rough ones, of resampled items, say how far off it may be.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Final

import numpy as np

from dissensus.bootstrap import distinct_rows
from dissensus.labels.mixture import Mixture, em_weights, fit_prior
from dissensus.labels.schemes import fit_concentration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.arrays import Counts, Floats, Ints, Table
    from dissensus.labels.mixture import Prior

POINTS: Final = 1200
"""About how many points the mixture may put weight on."""

SMOOTH: Final = 20
"""Steps of EM of the estimate: fewer keep to the prior, more fall into lumps."""

ROUGH: Final = 200
"""Steps of EM of the mixtures of resampled items."""

RESAMPLES: Final = 60
"""Resamples of the pilot's items that rough mixtures are fitted to."""

REPEATS: Final = 24
"""Simulated items of each point, or of each item of the pilot."""

ITEMS: Final = 2000
"""The most items that a mixture is fitted to; of more, so many drawn at random, which are enough for a plan."""


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedPanel:
    """Items as a mixture of label distributions.

    Attributes:
        points: (points, classes) label distributions.
        weights: (points,) the share of items that have each.
        prior: what people's votes forecast with, as on the people ruler.
        rows: (rows, classes) the pilot's distinct rows of counts.
        times: (rows,) how many items of the pilot have each row.
        seed: of the resamples.
    """

    points: Table
    weights: Floats
    prior: Prior
    rows: Counts = field(repr=False)
    times: Ints = field(repr=False)
    seed: int = 0

    @cached_property
    def rough(self) -> Table:
        """(1 + resamples, points) rough weights: of the pilot, and of bootstrap resamples of its items."""
        items = int(self.times.sum())
        drawn = np.random.default_rng(self.seed).multinomial(items, self.times / items, size=RESAMPLES)
        even = Mixture(self.points, np.ones(len(self.points)))
        return np.stack([em_weights(even, self.rows, times, steps=ROUGH) for times in (self.times, *drawn)])


def fit_panel(counts: Counts, *, seed: int = 0) -> FittedPanel:
    """Fit the mixture to a pilot.

    Args:
        counts: (items, classes) single votes, at least one an item.
        seed: of the points, and of resamples.
    """
    rng = np.random.default_rng(seed)
    rows, times = distinct_rows(counts[rng.permutation(len(counts))[:ITEMS]] if len(counts) > ITEMS else counts)
    # The least positive number stands for 0, so that a class without votes adds nothing and one with votes rules out.
    points = np.maximum(_points(rows, times, fit_concentration(counts), rng), 1e-300)
    weights = em_weights(Mixture(points, np.ones(len(points))), rows, times, steps=SMOOTH)
    prior = fit_prior(counts.astype(np.float64), seed=seed)
    return FittedPanel(points=points, weights=weights, prior=prior, rows=rows, times=times, seed=seed)


def nested_votes(p: Table, votes: Sequence[int], rng: np.random.Generator) -> dict[int, Counts]:
    """By k, (items, classes) k votes on each item; those of a larger k begin with those of a smaller one."""
    p, ks = p / p.sum(axis=1, keepdims=True), sorted(votes)
    drawn = (rng.multinomial(further, p) for further in np.diff(ks, prepend=0))
    return dict(zip(ks, accumulate(drawn), strict=True))


def _points(rows: Counts, times: Ints, prior: Floats, rng: np.random.Generator) -> Table:
    """(points, classes) where items may lie."""
    classes = rows.shape[1]
    drawn = rng.choice(len(rows), size=POINTS, p=np.sqrt(times) / np.sqrt(times).sum())
    posterior = draw_dirichlets(rows[drawn] + prior, rng)
    flatter = draw_dirichlets(rows[drawn[: POINTS // 4]] + np.full(classes, 1 / classes), rng)
    before = draw_dirichlets(np.zeros((POINTS // 4, classes)) + prior, rng)
    everybody = (rows * times[:, None]).sum(axis=0) / (rows * times[:, None]).sum()
    return np.concatenate([np.eye(classes), everybody[None], posterior, flatter, before])


def draw_dirichlets(concentration: Table, rng: np.random.Generator) -> Table:
    """(rows, classes) one draw from each row's Dirichlet distribution."""
    gamma = rng.standard_gamma(concentration) + 1e-300
    return np.asarray(gamma / gamma.sum(axis=1, keepdims=True))
