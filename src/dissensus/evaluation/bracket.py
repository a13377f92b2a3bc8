"""What k votes tell of a function of the true probability, whatever that probability is.

A class that a share p of all people would choose gets c of k votes, c ~ Binomial(k, p). The mean of any g(c) is then the
polynomial B_g(p) = sum_c C(k, c) p^c (1 - p)^(k - c) g(c). Few functions h are such polynomials, so few have an unbiased
estimate. But where B_g >= h on [0, 1], g(c) is on average at least h(p) for every p, and where B_g <= h at most: two
such g bracket the mean of h over items, with no assumption about the true distributions. (One g between them is the
best-upper-bound entropy estimate of Paninski 2003.)

Which g is chosen matters for the width alone. Each comes from a quadratic programme: the least E[g] + gamma/2 Var[g]
among those with B_g >= h, the means taken over a guess of where p lies, given what the model says (`_Reference`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.optimize import nnls
from scipy.special import betainc, expit, gammaln, logit, xlogy

if TYPE_CHECKING:
    from collections.abc import Callable

    from dissensus.arrays import Counts, Floats, Ints, Table

    CellFunction = Callable[[Any, Any], Any]
    """h(p, q) of a true probability and the model's, elementwise."""

_GRID: Final = np.sin(np.linspace(0, np.pi / 2, 101)) ** 2
"""Where B_g and h are compared: dense at 0 and 1, where entropy is steep."""

_STRENGTHS: Final = np.array([0.3, 1.0, 3.0, 10.0, 40.0, 300.0])
"""How closely true probabilities may follow the model, as concentrations of Beta distributions."""

_DEGREES: Final = np.array([*range(1, 13), 14, 17, 20, 24, 29, 35, 42, 50, 64])
"""Degrees that polynomials are fitted for; votes beyond a degree are averaged over (see `_elevated`)."""


@dataclass(frozen=True, eq=False)
class Bracket:
    """Per-item numbers whose means bracket the mean of a function of the true distributions.

    Attributes:
        low: (items,) on average, over the votes of an item, at most the function of its true distribution.
        value: (items,) between the two on average, where the guess about the true distributions puts the function.
        high: (items,) on average at least the function.
    """

    low: Floats
    value: Floats
    high: Floats

    def columns(self) -> Table:
        """(items, 3) low, value, high."""
        return np.stack([self.low, self.value, self.high], axis=1)


def bracket(
    function: CellFunction,
    counts: Counts,
    model: Table,
    *,
    panel_size: Ints,
    slope: Callable[[Any], Any] | None = None,
) -> Bracket:
    """Bracket of sum_j h(p_ij, q_ij) + slope(q_ij) p_ij for each item i, p its true probabilities and q the model's.

    Args:
        function: h, convex in q or free of it.
        counts: (items, cells) votes c_ij ~ Binomial(k_i, p_ij).
        model: (items, cells) q_ij.
        panel_size: (items,) k_i, at least 1.
        slope: of a linear part, which votes estimate without bias; named apart so that h is bracketed where the sum of
            both varies least.
    """
    nodes = _nodes(model)
    reference = _Reference.fitted(counts, model, panel_size, nodes)
    share = counts / panel_size[:, None]
    linear = np.zeros_like(share) if slope is None else slope(model) * share
    plain = (function(share, model) + linear).sum(axis=1)
    gamma = 2.0 / (np.sqrt(len(counts)) * max(float(plain.std()), 1e-3))
    left = np.clip(np.searchsorted(nodes, model, side="right") - 1, 0, max(nodes.size - 2, 0))
    right = np.minimum(left + 1, nodes.size - 1)
    gap = nodes[right] - nodes[left]
    part = np.divide(model - nodes[left], gap, out=np.zeros_like(model), where=gap > 0)
    # Between two nodes, interpolation lies above a convex h by most where p = q; the low end must not.
    excess = (1 - part) * function(model, nodes[left]) + part * function(model, nodes[right]) - function(model, model)
    ends = np.empty((3, len(counts)))
    degree_of = _DEGREES[np.searchsorted(_DEGREES, panel_size, side="right") - 1]
    for degree in np.unique(degree_of).tolist():
        fitted = _polynomials(function, degree, nodes, reference, gamma=gamma, slope=slope)
        for k in np.unique(panel_size[degree_of == degree]).tolist():
            some = panel_size == k
            tables = fitted @ _elevated(degree, k).T
            c, a, b, f = counts[some], left[some], right[some], part[some]
            cells = (1 - f) * tables[:, a, c] + f * tables[:, b, c]
            ends[:, some] = cells.sum(axis=2)
    ends[0] -= np.maximum(excess, 0.0).sum(axis=1)
    low, value, high = ends + linear.sum(axis=1)
    return Bracket(low, value, high)


@dataclass(frozen=True, eq=False)
class _Reference:
    """A guess of where true probabilities lie, given the model's: (nodes, grid) probabilities."""

    probabilities: Table

    @classmethod
    def fitted(cls, counts: Counts, model: Table, panel_size: Ints, nodes: Floats) -> _Reference:
        """A mixture of Beta distributions around a calibrated q, both fitted to the votes by maximum likelihood."""
        near = np.rint(np.interp(model, nodes, np.arange(nodes.size))).astype(np.int64)
        base = int(panel_size.max()) + 1
        code = (near * base + panel_size[:, None]) * base + counts
        code, times = np.unique(code, return_counts=True)
        node, k, c = code // base**2, code // base % base, code % base
        centre = _calibrated(nodes, np.bincount(node, times * c, nodes.size), np.bincount(node, times * k, nodes.size))
        a, b = centre[:, None] * _STRENGTHS, (1 - centre[:, None]) * _STRENGTHS
        ours, others = c[:, None], (k - c)[:, None]
        log_chance = gammaln(a[node] + ours) - gammaln(a[node]) + gammaln(b[node] + others) - gammaln(b[node])
        chance = np.exp(log_chance - gammaln(_STRENGTHS + k[:, None]) + gammaln(_STRENGTHS))
        weight = np.full(_STRENGTHS.size, 1 / _STRENGTHS.size)
        for _ in range(50):
            weight = weight * (chance.T @ (times / (chance @ weight))) / times.sum()
        middle = np.concatenate([[0.0], (_GRID[1:] + _GRID[:-1]) / 2, [1.0]])
        below = betainc(a[..., None], b[..., None], middle)
        return cls(np.einsum("s,nsg->ng", weight, np.diff(below, axis=2)))


def _calibrated(nodes: Floats, chosen: Floats, votes: Floats) -> Floats:
    """(nodes,) expit(a + b logit q), fitted by maximum likelihood to how many of the votes chose the class."""
    x = np.stack([np.ones(nodes.size), logit(np.clip(nodes, 1e-6, 1 - 1e-6))])
    # Half a vote for and against each end keeps the fit finite where votes are all alike.
    chosen, votes = chosen + 0.5, votes + 1.0
    theta = np.array([0.0, 1.0])
    loss = _logistic_loss(theta, x, chosen, votes)
    for _ in range(50):
        p = expit(theta @ x)
        gradient = x @ (votes * p - chosen)
        step = np.linalg.solve((x * (votes * p * (1 - p) + 1e-9)) @ x.T + 1e-9 * np.eye(2), gradient)
        while (new := _logistic_loss(theta - step, x, chosen, votes)) > loss and np.abs(step).max() > 1e-9:
            step = step / 2
        theta = theta - step
        if loss - new < 1e-10 * abs(loss):
            break
        loss = new
    return np.clip(expit(theta @ x), 1e-4, 1 - 1e-4)


def _logistic_loss(theta: Floats, x: Table, chosen: Floats, votes: Floats) -> float:
    z = theta @ x
    return float(votes @ np.logaddexp(0.0, z) - chosen @ z)


def _nodes(model: Table) -> Floats:
    """Values of q that polynomials are fitted for, from the least to the greatest; between them they are interpolated."""
    angle = np.arcsin(np.sqrt(np.clip(model, 0.0, 1.0)))
    low, high = float(angle.min()), float(angle.max())
    spread = np.concatenate([np.quantile(angle, np.linspace(0, 1, 97)), np.linspace(low, high, 33)])
    inner = np.unique(np.rint(spread / 0.004)) * 0.004
    kept = np.concatenate([[low], inner[(inner > low + 0.002) & (inner < high - 0.002)], [high]])
    nodes = np.sin(kept) ** 2
    nodes[0], nodes[-1] = model.min(), model.max()
    return np.unique(nodes)


def _polynomials(
    function: CellFunction,
    degree: int,
    nodes: Floats,
    reference: _Reference,
    *,
    gamma: float,
    slope: Callable[[Any], Any] | None,
) -> np.ndarray[tuple[int, int, int], np.dtype[np.float64]]:
    """(3, nodes, degree + 1) g(c) below h, between and above, for each node."""
    at_grid, at_nodes = _chances(_GRID, degree), _chances(nodes, degree)
    chance = np.maximum(reference.probabilities @ at_grid, 1e-6)
    chance /= chance.sum(axis=1, keepdims=True)
    share = np.arange(degree + 1) / degree
    # Where q is tiny the slope of a logarithm would outweigh all else, for votes that hardly ever come.
    slopes = np.zeros(nodes.size) if slope is None else slope(np.maximum(nodes, 1e-3))
    out = np.empty((3, nodes.size, degree + 1))
    for n, q in enumerate(nodes.tolist()):
        basis = np.vstack([at_grid, at_nodes[n]])
        h = function(np.append(_GRID, q), q)
        flat = (share @ chance[n] - share) * slopes[n]
        mean = reference.probabilities[n] @ h[:-1]
        high = _above(h, basis, chance[n], gamma=gamma, target=flat + mean)
        low = -_above(-h, basis, chance[n], gamma=gamma, target=-flat - mean)
        above, below = reference.probabilities[n] @ (at_grid @ np.stack([high, low], axis=1))
        where = (mean - below) / (above - below) if above - below > 1e-12 else 0.5
        out[:, n] = low, low + np.clip(where, 0.0, 1.0) * (high - low), high
    return out


def _above(h: Floats, basis: Table, chance: Floats, *, gamma: float, target: Floats) -> Floats:
    """(degree + 1,) the least E[g] + gamma/2 E[(g - target)^2] with basis @ g >= h.

    With y = g - target + 1/gamma it is the least norm under inequalities, which is a non-negative least-squares problem
    (Lawson and Hanson 1974, chapter 23).
    """
    root = np.sqrt(chance)
    bound = h - basis @ target + 1 / gamma
    scale = np.abs(bound).max()
    system = np.vstack([(basis / root).T, bound / scale])
    unit = np.zeros(len(system))
    unit[-1] = 1.0
    residual = system @ nnls(system, unit, maxiter=100 * system.shape[1])[0] - unit
    g = -residual[:-1] / residual[-1] * scale / root + target - 1 / gamma
    return np.asarray(g + max(0.0, float((h - basis @ g).max())))


def _chances(p: Floats, degree: int) -> Table:
    """(p, degree + 1) binomial probabilities of c votes."""
    c = np.arange(degree + 1)
    ways = gammaln(degree + 1) - gammaln(c + 1) - gammaln(degree - c + 1)
    return np.asarray(np.exp(ways + xlogy(c, p[:, None]) + xlogy(degree - c, 1 - p[:, None])))


def _elevated(degree: int, k: int) -> Table:
    """(k + 1, degree + 1) what g of `degree` votes becomes with k: its mean over all ways to pick `degree` of the k.

    The polynomial stays the same and the variance falls.
    """
    c, part = np.arange(k + 1)[:, None], np.arange(degree + 1)
    possible = (part <= c) & (degree - part <= k - c)

    def ways(n: Any, m: Any) -> Any:
        return gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1)

    m, rest = np.minimum(part, c), np.minimum(degree - part, k - c)
    return np.where(possible, np.exp(ways(c, m) + ways(k - c, rest) - ways(k, degree)), 0.0)
