"""Plausible true distributions: what a panel's votes, taken together, say about where each item's distribution lies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import gammaln

from dissensus.bootstrap import distinct_rows
from dissensus.labels.schemes import fit_concentration

if TYPE_CHECKING:
    from dissensus.arrays import Counts, Floats, Table

RATIOS: Final = np.array([1.0, 0.02, 0.05, 0.12, 0.3, 0.6, 1.7, 4.0, 10.0, 30.0, 100.0])
"""Concentrations of the components, as multiples of the single best Dirichlet's, which is the first."""


@dataclass(frozen=True, eq=False)
class Prior:
    """A mixture of Dirichlet distributions.

    Attributes:
        weights: (components,) that sum to 1.
        concentrations: (components, classes) pseudo-votes.
    """

    weights: Floats
    concentrations: Table

    def draw(self, counts: Counts, rng: np.random.Generator) -> Table:
        """(items, classes) one plausible true distribution for each item, given its votes."""
        share = self.weights * _likelihood(counts, self.concentrations)
        reached = np.cumsum(share, axis=1)
        component = (rng.random((len(counts), 1)) * reached[:, -1:] > reached).sum(axis=1)
        gamma = rng.standard_gamma(self.concentrations[component] + counts)
        return np.asarray(gamma / gamma.sum(axis=1, keepdims=True))


def fit_prior(counts: Counts, *, steps: int = 300, slack: float = 1.0) -> Prior:
    """The prior nearest to one Dirichlet that explains the votes about as well as any mixture does.

    One Dirichlet cannot hold certain and contested items at once, and the best mixture follows the noise of few votes.
    So EM over the weights starts at the single best Dirichlet (`fit_concentration`) and stops once the log-likelihood
    is within `slack` of where it would end. The components share that Dirichlet's mean, or are symmetric.

    Args:
        counts: (items, classes) votes.
        steps: of EM.
        slack: in nats, of all items together.
    """
    rows, times = distinct_rows(counts)
    single = np.maximum(fit_concentration(counts), 1e-3)
    even = np.full_like(single, single.mean())
    concentrations = np.concatenate([RATIOS[:, None] * single, RATIOS[:, None] * even])
    likelihood = _likelihood(rows, concentrations)
    weights = np.full(len(concentrations), 0.02 / len(concentrations))
    weights[0] += 0.98
    path, reached = [], []
    for _ in range(steps):
        chance = likelihood @ weights
        path.append(weights)
        reached.append(times @ np.log(chance))
        weights = weights * (likelihood.T @ (times / chance)) / times.sum()
    enough = int(np.argmax(np.array(reached) >= reached[-1] - slack))
    return Prior(path[enough], concentrations)


def _likelihood(counts: Counts, concentrations: Table) -> Table:
    """(items, components) Dirichlet-multinomial likelihoods, the best of each item scaled to 1."""
    total = counts.sum(axis=1)
    log = np.empty((len(counts), len(concentrations)))
    for component, a in enumerate(concentrations):
        log[:, component] = (gammaln(a + counts) - gammaln(a)).sum(axis=1)
        log[:, component] += gammaln(a.sum()) - gammaln(a.sum() + total)
    return np.asarray(np.exp(log - log.max(axis=1, keepdims=True)))
