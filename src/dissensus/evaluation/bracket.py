"""What k votes tell of a function of the true probability, whatever that probability is.

A class that a share p of all people would choose gets c of k votes, c ~ Binomial(k, p). The mean of any g(c) is then the
polynomial B_g(p) = sum_c C(k, c) p^c (1 - p)^(k - c) g(c). Few functions h are such polynomials, so few have an unbiased
estimate. But where B_g >= h on [0, 1], g(c) is on average at least h(p) for every p, and where B_g <= h at most: two
such g bracket the mean of h over items, with no assumption about the true distributions. Halfway between them is an
estimate whose bias is at most half the gap (as in the best-upper-bound entropy estimate of Paninski 2003).

Which g is chosen matters for the width alone. Each comes from a quadratic programme: the least E[g] + gamma/2 E[g^2]
among those with B_g >= h, the means taken over a guess of where p lies, given what the model says (`_reference`).
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
    """h(p, q) of a true probability and the model's, elementwise; convex in q, or free of it."""

    Ends = np.ndarray[tuple[int, int, int], np.dtype[np.float64]]
    """(2, nodes, k + 1) g(c) below h and above it, for each node."""

GRID: Final = np.sin(np.linspace(0, np.pi / 2, 101)) ** 2
"""Where B_g and h are compared: dense at 0 and 1, where entropy is steep."""

STRENGTHS: Final = np.array([0.3, 1.0, 3.0, 10.0, 40.0, 300.0])
"""How closely true probabilities may follow the model, as concentrations of Beta distributions."""

DEGREES: Final = np.array([*range(1, 13), 14, 17, 20, 24, 29, 35, 42, 50, 64])
"""Degrees that polynomials are fitted for; votes beyond a degree are averaged over (see `_elevated`)."""


@dataclass(frozen=True, eq=False)
class Bracket:
    """Per-item numbers whose means bracket the mean of a function of the true distributions.

    Attributes:
        low: (items,) on average, over the votes that an item could have got, at most the function of its true
            distribution.
        high: (items,) on average at least that.
    """

    low: Floats
    high: Floats

    @property
    def middle(self) -> Floats:
        """(items,) halfway: on average at most half the gap off."""
        return (self.low + self.high) / 2

    def scaled(self, factor: float, *, shift: float | Floats = 0.0) -> Bracket:
        """The bracket of factor times the function plus shift."""
        a, b = self.low * factor + shift, self.high * factor + shift
        return Bracket(a, b) if factor > 0 else Bracket(b, a)


@dataclass(frozen=True, eq=False)
class Polynomials:
    """Polynomials below and above a function h(p, q), fitted for a model and for numbers of votes.

    Attributes:
        function: h.
        nodes: (nodes,) values of q that polynomials were fitted for; between them they are interpolated.
        ends: for each number of votes k, g(c) below and above at each node.
    """

    function: CellFunction
    nodes: Floats
    ends: dict[int, Ends]

    def bracket(self, counts: Counts, model: Table) -> Bracket:
        """Bracket of sum_j h(p_ij, q_ij) for each item i, from its votes.

        Args:
            counts: (items, cells) votes c_ij ~ Binomial(k_i, p_ij); a cell is a class, or all classes up to one.
            model: (items, cells) q_ij.
        """
        panel_size, nodes, h = self.votes_of(counts), self.nodes, self.function
        left = np.clip(np.searchsorted(nodes, model, side="right") - 1, 0, max(nodes.size - 2, 0))
        right = np.minimum(left + 1, nodes.size - 1)
        gap = nodes[right] - nodes[left]
        part = np.divide(model - nodes[left], gap, out=np.zeros_like(model), where=gap > 0)
        sums = np.empty((2, len(counts)))
        for k in np.unique(panel_size).tolist():
            some = panel_size == k
            c, f, g = counts[some], part[some], self.ends[k]
            sums[:, some] = ((1 - f) * g[:, left[some], c] + f * g[:, right[some], c]).sum(axis=2)
        # Between two nodes a convex h lies below its interpolation, by most where p = q: the low end must follow.
        excess = (1 - part) * h(model, nodes[left]) + part * h(model, nodes[right]) - h(model, model)
        return Bracket(sums[0] - np.maximum(excess, 0.0).sum(axis=1), sums[1])
