"""What k votes tell of a function of the true probability, whatever that probability is.

A class that a share p of all people would choose gets c of k votes, c ~ Binomial(k, p). The mean of any g(c) is then
the polynomial B_g(p) = sum_c C(k, c) p^c (1 - p)^(k - c) g(c). Few functions h are such polynomials, so few have an
unbiased estimate. But where B_g >= h on [0, 1], g(c) is on average at least h(p) for every p, and where B_g <= h at
most: two such g bracket the mean of h over items, with no assumption about the true distributions. Halfway between them
is an estimate whose bias is at most half the gap (as in the best-upper-bound entropy estimate of Paninski 2003).

Which g is chosen matters for the width alone. Each comes from a quadratic programme: the least E[g] + gamma/2 E[g^2]
among those with B_g >= h, the means taken over a guess of where p lies, given what the model says (`_reference`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.special import betainc, entr, expit, gammaln, logit, ndtr, xlogy

if TYPE_CHECKING:
    from collections.abc import Callable

    from dissensus.arrays import Counts, Floats, Ints, Table

    CellFunction = Callable[[Any, Any], Any]
    """h(p, q) of a true probability and the model's, elementwise; convex in q, or free of it."""

    Ends = np.ndarray[tuple[int, int, int], np.dtype[np.float64]]
    """(2, nodes, k + 1) g(c) below h and above it, for each node."""

GRID: Final = np.sin(np.linspace(0, np.pi / 2, 101)) ** 2
"""Where B_g and h are compared: dense at 0 and 1, where entropy is steep."""

STRENGTHS: Final = np.array([0.3, 1.0, 3.0, 10.0, 40.0, 300.0])
"""How closely true probabilities may follow the model, as concentrations of Beta distributions."""

DEGREES: Final = np.array([*range(1, 13), 14, 17, 20, 24, 29, 35, 42, 50, 64])
"""Degrees that polynomials are fitted for; votes beyond a degree are averaged over (see `_elevated`)."""

MANY: Final = 1000
"""Votes from which on a distance is bracketed about the plain one: no polynomial of such a degree follows its kink."""


@dataclass(frozen=True, eq=False)
class Bracket:
    """Per-item numbers whose means bracket the mean of a function of the true distributions.

    Attributes:
        low: (items,) on average, over the votes that an item could have got, at most the function of its true
            distribution.
        middle: (items,) halfway: on average at most half the gap off.
        high: (items,) on average at least the function.
    """

    low: Floats
    middle: Floats
    high: Floats

    def scaled(self, factor: float, *, shift: float | Floats = 0.0) -> Bracket:
        """The bracket of factor times the function plus shift."""
        low, middle, high = (end * factor + shift for end in (self.low, self.middle, self.high))
        return Bracket(low, middle, high) if factor > 0 else Bracket(high, middle, low)


@dataclass(frozen=True, eq=False)
class Polynomials:
    """Polynomials below and above a function h(p, q), fitted for a model and for numbers of votes.

    Attributes:
        function: h.
        nodes: (nodes,) values of q that polynomials were fitted for; between them they are interpolated.
        fitted: for each degree, g(c) below and above at each node.
    """

    function: CellFunction
    nodes: Floats
    fitted: dict[int, Ends]

    def ends(self, k: int, counts: Ints) -> Ends:
        """(2, nodes, counts) g(c) below and above at each node, for these counts of k votes."""
        degree = int(_degree_of(k))
        return np.asarray(self.fitted[degree] @ _elevated(degree, k, counts).T)

    def bracket(self, counts: Counts, model: Table, *, panel_size: Ints) -> Bracket:
        """Bracket of sum_j h(p_ij, q_ij) for each item i, from its votes c_ij ~ Binomial(k_i, p_ij).

        Of (items, cells) votes and model's q_ij, and (items,) k_i; a cell is a class, or all classes up to one.
        """
        nodes, h = self.nodes, self.function
        # Where h does not depend on q, polynomials of any q will do.
        model = np.clip(model, nodes[0], nodes[-1])
        left = np.clip(np.searchsorted(nodes, model, side="right") - 1, 0, max(nodes.size - 2, 0))
        right = np.minimum(left + 1, nodes.size - 1)
        gap = nodes[right] - nodes[left]
        part = np.divide(model - nodes[left], gap, out=np.zeros_like(model), where=gap > 0)
        sums = np.empty((2, len(counts)))
        for k in np.unique(panel_size).tolist():
            some = panel_size == k
            # Of many votes, few of the counts that could be are.
            seen, c = np.unique(counts[some], return_inverse=True)
            f, g = part[some], self.ends(k, seen)
            sums[:, some] = ((1 - f) * g[:, left[some], c] + f * g[:, right[some], c]).sum(axis=2)
        # Between two nodes a convex h lies below its interpolation, by most where p = q: the low end must follow.
        excess = (1 - part) * h(model, nodes[left]) + part * h(model, nodes[right]) - h(model, model)
        low, high = sums
        return Bracket(low - np.maximum(excess, 0.0).sum(axis=1), (low + high) / 2, high)


def fit_polynomials(
    function: CellFunction,
    counts: Counts,
    model: Table,
    *,
    panel_size: Ints,
    sizes: Ints | None = None,
    parts: int,
    items: int | None = None,
) -> Polynomials:
    """Polynomials below and above h(p, q), as close as these (items, cells) votes and model's probabilities warrant.

    Args:
        function: h.
        counts: votes.
        model: q.
        panel_size: (items,) votes of each item, at least 1.
        sizes: the numbers of votes that brackets are wanted for; without it those of `panel_size`.
        parts: into how many parts q is divided; few do where h hardly bends in q.
        items: over how many the mean will be, where rows are the same items more than once; else the rows.
    """
    nodes = _nodes(model, parts)
    reference = _reference(counts, model, panel_size, nodes)
    plain = function(counts / panel_size[:, None], model).sum(axis=1)
    # The weight of a variance in the half-width of a 95 % interval around a mean of items.
    gamma = 2.0 / (np.sqrt(items or len(counts)) * max(float(plain.std()), 1e-3))
    degrees = np.unique(_degree_of(panel_size if sizes is None else sizes)).tolist()
    fitted = {degree: _ends(function, degree, nodes, reference, gamma=gamma) for degree in degrees}
    return Polynomials(function, nodes, fitted)


def _degree_of(votes: int | Ints) -> Ints:
    """The largest degree that so many votes allow."""
    return np.asarray(DEGREES[np.searchsorted(DEGREES, votes, side="right") - 1])


def bracket_distances(counts: Counts, model: Table, *, panel_size: Ints) -> Bracket:
    """Bracket of sum_j |p_ij - q_ij| for each item i, from so many votes (`MANY`) that shares are nearly normal.

    At a true distance d the plain one is on average too large by 2 sigma (phi(z) - z Phi(-z)), z = d / sigma, which
    falls with d. Less what that is four standard deviations nearer to q, the plain one is on average too small.
    """
    k = panel_size[:, None]
    share = counts / k
    spread = np.sqrt(share * (1 - share) / k)
    # That of the true share could be larger by as much as four of these.
    spread = np.sqrt(np.minimum(share * (1 - share) + 4 * spread + 16 / k, 0.25) / k)
    off = np.abs(share - model)
    z = np.maximum(off / spread - 4, 0.0)
    excess = 2 * spread * (np.exp(-z * z / 2) / np.sqrt(2 * np.pi) - z * ndtr(-z))
    low, high = (off - excess).sum(axis=1), off.sum(axis=1)
    return Bracket(low, (low + high) / 2, high)


def jsd_of_cell(p: Any, q: Any) -> Any:
    """One class's part of the Jensen-Shannon divergence, in nats, elementwise."""
    return entr((p + q) / 2) - (entr(p) + entr(q)) / 2


def _nodes(model: Table, parts: int) -> Floats:
    """From the least to the greatest q, denser where the model's probabilities are."""
    angle = np.arcsin(np.sqrt(np.clip(model, 0.0, 1.0)))
    low, high = float(angle.min()), float(angle.max())
    spread = np.concatenate([np.quantile(angle, np.linspace(0, 1, parts + 1)), np.linspace(low, high, parts // 6 + 1)])
    steps = np.unique(np.rint(spread / 0.002)) * 0.002
    inner = np.sin(steps[(steps > low + 0.001) & (steps < high - 0.001)]) ** 2
    return np.unique(np.concatenate([[model.min()], inner, [model.max()]]))


def _reference(counts: Counts, model: Table, panel_size: Ints, nodes: Floats) -> Table:
    """(nodes, grid) a guess of where true probabilities lie, given the model's.

    A mixture of Beta distributions around a calibrated q, both fitted to the votes by maximum likelihood.
    """
    near = np.rint(np.interp(model, nodes, np.arange(nodes.size))).astype(np.int64)
    base = int(panel_size.max()) + 1
    code, times = np.unique((near * base + panel_size[:, None]) * base + counts, return_counts=True)
    node, k, c = code // base**2, code // base % base, code % base
    chosen, votes = (np.bincount(node, times * number, nodes.size).astype(np.float64) for number in (c, k))
    centre = _calibrated(nodes, chosen, votes)
    a, b = centre[:, None] * STRENGTHS, (1 - centre[:, None]) * STRENGTHS
    for_it, against = c[:, None], (k - c)[:, None]
    chance = (
        gammaln(a[node] + for_it) - gammaln(a)[node] + gammaln(b[node] + against) - gammaln(b)[node]
        - gammaln(STRENGTHS + k[:, None]) + gammaln(STRENGTHS)
    )  # fmt: skip
    # A thousand votes in one order are less likely than any number; only which strength makes them likeliest counts.
    chance = np.exp(chance - chance.max(axis=1, keepdims=True))
    weight = np.full(STRENGTHS.size, 1 / STRENGTHS.size)
    for _ in range(50):
        weight = weight * (chance.T @ (times / (chance @ weight))) / times.sum()
    edges = np.concatenate([[0.0], (GRID[1:] + GRID[:-1]) / 2, [1.0]])
    below = betainc(a[..., None], b[..., None], edges)
    return np.asarray(np.einsum("s,nsg->ng", weight, np.diff(below, axis=2)))


def _calibrated(nodes: Floats, chosen: Floats, votes: Floats) -> Floats:
    """(nodes,) expit(a + b logit q), fitted by maximum likelihood to how many of the votes chose the class."""
    x = np.stack([np.ones(nodes.size), logit(np.clip(nodes, 1e-6, 1 - 1e-6))])
    # Half a vote for and half a vote against keep the fit finite where all votes are alike.
    chosen, votes = chosen + 0.5, votes + 1.0

    def loss_at(theta: Floats) -> float:
        z = theta @ x
        return float(votes @ np.logaddexp(0.0, z) - chosen @ z)

    theta = np.array([0.0, 1.0])
    loss = loss_at(theta)
    for _ in range(50):
        p = expit(theta @ x)
        curvature = (x * votes * p * (1 - p)) @ x.T + 1e-9 * np.eye(2)
        step = np.linalg.solve(curvature, x @ (votes * p - chosen))
        while (new := loss_at(theta - step)) > loss and np.abs(step).max() > 1e-9:
            step = step / 2
        theta = theta - step
        if loss - new < 1e-10 * abs(loss):
            break
        loss = new
    return np.clip(expit(theta @ x), 1e-4, 1 - 1e-4)


def _ends(function: CellFunction, degree: int, nodes: Floats, reference: Table, *, gamma: float) -> Ends:
    """(2, nodes, degree + 1) g(c) below and above h at each node."""
    at_grid, at_nodes = binomial(GRID, degree), binomial(nodes, degree)
    chance = np.maximum(reference @ at_grid, 1e-6)
    chance /= chance.sum(axis=1, keepdims=True)
    out = np.empty((2, nodes.size, degree + 1))
    for n, q in enumerate(nodes.tolist()):
        # h may have its kink at q.
        basis, h = np.vstack([at_grid, at_nodes[n]]), function(np.append(GRID, q), q)
        mean = float(reference[n] @ h[:-1])
        out[0, n] = -above(-h, basis, chance[n], gamma=gamma, mean=-mean)
        out[1, n] = above(h, basis, chance[n], gamma=gamma, mean=mean)
    return out


def above(h: Floats, basis: Table, chance: Floats, *, gamma: float, mean: float) -> Floats:
    """(degree + 1,) the g with the least E[g] + gamma/2 E[(g - mean)^2] among those with basis @ g >= h.

    In y = g - mean + 1/gamma it is the least norm under inequalities, which is a non-negative least-squares problem
    (Lawson and Hanson 1974, chapter 23).
    """
    # Imported where it is used: SciPy's optimisers take longer to load than most evaluations.
    from scipy.optimize import nnls

    root = np.sqrt(chance)
    bound = h - mean + 1 / gamma
    scale = np.abs(bound).max()
    system = np.vstack([(basis / root).T, bound / scale])
    unit = np.zeros(len(system))
    unit[-1] = 1.0
    residual = system @ nnls(system, unit, maxiter=100 * system.shape[1])[0] - unit
    g = -residual[:-1] / residual[-1] * scale / root + mean - 1 / gamma
    # Rounding must not cost the guarantee.
    return np.asarray(g + max(0.0, float((h - basis @ g).max())))


def binomial(p: Floats, k: int) -> Table:
    """(p, k + 1) probabilities of 0 to k votes."""
    c = np.arange(k + 1)
    return np.asarray(np.exp(log_ways(k, c) + xlogy(c, p[:, None]) + xlogy(k - c, 1 - p[:, None])))


def _elevated(degree: int, k: int, counts: Ints) -> Table:
    """(counts, degree + 1) what g of `degree` votes becomes with k: its mean over all ways to pick `degree` of the k.

    The polynomial stays the same, and the variance falls.
    """
    c, part = counts[:, None], np.arange(degree + 1)
    return np.asarray(np.exp(log_ways(c, part) + log_ways(k - c, degree - part) - log_ways(k, degree)))


def log_ways(n: Any, m: Any) -> Any:
    """Logarithm of the ways to draw m of n; -inf where there are none."""
    left = np.maximum(n - m, 0)
    return np.where(m <= n, gammaln(n + 1.0) - gammaln(m + 1.0) - gammaln(left + 1.0), -np.inf)
