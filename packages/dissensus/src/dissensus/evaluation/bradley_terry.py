"""Davidson's model of Bradley and Terry's with ties (1970): the likeliest scores, and what each vote does to them.

Of the pair of systems l and r, with eta = score_l - score_r + position (the side shown on the left) + length (a
doubling of the answer), the three outcomes have chances in proportion to exp(eta / 2), exp(tie) and exp(-eta / 2).

Intervals are for other questions and other people: each vote's influence on an estimate is summed by question and by
annotator (Cameron, Gelbach and Miller 2011), as `people.two_way` does for means.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from dissensus.errors import InputError
from dissensus.evaluation.comparison.intervals import estimate_within
from dissensus.evaluation.people.two_way import two_way_spread

if TYPE_CHECKING:
    from dissensus.arrays import Floats, Ints, Mask, Table
    from dissensus.bootstrap import Estimate

PRIOR: Final = 0.01
"""Precision of the normal prior of each parameter: a system that won every vote has a finite score."""

STEPS: Final = 100


@dataclass(frozen=True, eq=False)
class Comparisons:
    """(votes,) columns: systems by code, +1 where the left one is shown on the left, log2 length ratio, -1, 0, 1."""

    left: Ints
    right: Ints
    shown: Floats
    longer: Floats | None
    outcome: Ints
    question: Ints
    annotator: Ints
    systems: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Fit:
    """Parameters (scores, position, length, tie), (votes, parameters) the influence of each vote, and which votes."""

    values: Floats
    influence: Table
    rows: Ints


def fit_scores(data: Comparisons, mask: Mask) -> Fit:
    """The likeliest parameters, by Newton's steps: scores, position, length where it is known, tie where there are any.

    The influence of a vote is the inverse information times its part of the slope.
    """
    from scipy.sparse import csr_array

    rows = np.flatnonzero(mask)
    n, systems = len(rows), len(data.systems)
    outcome = data.outcome[rows]
    columns = [data.left[rows], data.right[rows], np.full(n, systems)]
    cells = [np.ones(n), -np.ones(n), data.shown[rows]]
    if data.longer is not None:
        columns, cells = [*columns, np.full(n, systems + 1)], [*cells, data.longer[rows]]
    size, ties = systems + len(columns) - 2, bool((outcome == 0).any())
    place = np.arange(n)[:, None].repeat(len(columns), axis=1)
    entries = np.stack(cells, axis=1).ravel(), (place.ravel(), np.stack(columns, axis=1).ravel())
    design = csr_array(entries, shape=(n, size))
    values = np.zeros(size + ties)
    for _ in range(STEPS):
        eta = design @ values[:size]
        log = np.stack([eta / 2, np.full(n, values[-1] if ties else -np.inf), -eta / 2])
        chance = np.exp(log - log.max(axis=0))
        chance /= chance.sum(axis=0)
        mean, tied = (chance[0] - chance[2]) / 2, chance[1]
        slopes = design.multiply((outcome / 2 - mean)[:, None]).toarray()
        curve = (design.T @ design.multiply(((1 - tied) / 4 - mean**2)[:, None])).toarray()
        if ties:
            slopes = np.column_stack([slopes, (outcome == 0) - tied])
            across = -(design.T @ (mean * tied))[:, None]
            curve = np.block([[curve, across], [across.T, np.array([[tied @ (1 - tied)]])]])
        curve += PRIOR * np.eye(len(values))
        step = np.linalg.solve(curve, slopes.sum(axis=0) - PRIOR * values)
        values = values + step
        if np.abs(step).max() < 1e-9:
            break
    return Fit(values, np.linalg.solve(curve, slopes.T).T, rows)


def estimate(data: Comparisons, *parts: tuple[Fit, Floats]) -> Estimate:
    """A sum over fits of weighted parameters, with its interval for other questions and other people."""
    value = sum(float(fit.values @ weights) for fit, weights in parts)
    influence = np.concatenate([fit.influence @ weights for fit, weights in parts])
    rows = np.concatenate([fit.rows for fit, _ in parts])
    _, question = np.unique(data.question[rows], return_inverse=True)
    _, annotator = np.unique(data.annotator[rows], return_inverse=True)
    spread = two_way_spread(len(rows) * influence, item=question, annotator=annotator)
    return estimate_within(value, spread, level=0.95, low=-np.inf, high=np.inf, resamples=0)


def weights_of(fit: Fit, place: int, less: int | Mask | None = None) -> Floats:
    """(parameters,) weights of one parameter, less another, or less the mean of some scores."""
    weights = np.zeros(len(fit.values))
    weights[place] = 1.0
    if isinstance(less, int):
        weights[less] = -1.0
    elif less is not None:
        weights[: len(less)] -= less / less.sum()
    return weights


def unbounded(data: Comparisons, fit: Fit) -> Mask:
    """(systems,) those whose likeliest scores are endless beside those of most others.

    A score is bounded by those of systems that it both wins and loses against, also through others; a tie is both.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    left, right, outcome = data.left[fit.rows], data.right[fit.rows], data.outcome[fit.rows]
    winner = np.concatenate([left[outcome >= 0], right[outcome <= 0]])
    loser = np.concatenate([right[outcome >= 0], left[outcome <= 0]])
    size = len(data.systems)
    graph = coo_array((np.ones(len(winner)), (winner, loser)), shape=(size, size))
    _, part = connected_components(graph, directed=True, connection="strong")
    sizes = np.bincount(part)
    return np.asarray((part != sizes.argmax()) | (sizes.max() == 1))


def votes_on(data: Comparisons, fit: Fit, *, by: str) -> Ints:
    """(systems,) votes on pairs with each; refuses systems that no chain of votes connects."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    left, right, size = data.left[fit.rows], data.right[fit.rows], len(data.systems)
    met = np.bincount(left, minlength=size) + np.bincount(right, minlength=size)
    _, part = connected_components(coo_array((np.ones(len(left)), (left, right)), shape=(size, size)), directed=False)
    if len(np.unique(part[met > 0])) > 1:
        apart = [data.systems[k] for k in np.flatnonzero((met > 0) & (part != part[left[0]])).tolist()]
        raise InputError(
            f"ranking by {by}: no votes compare {', '.join(apart[:5])} with the other systems, even through others; "
            "rank these votes apart, or collect some between them"
        )
    return met
