"""What n further items with k votes each would show, from a pilot: agreement, and how firm their labels would be.

Every interval is for what would be *measured* on n new items, so its width has three parts: which items the pilot
happened to have, which items and votes the collection will happen to have, and what the pilot's few votes cannot tell.

Agreement does not depend on k: pairs of votes are pairs of votes. With d_kl the distance of two classes, D_o the mean
distance of two votes on one item, and D_e that of two votes on any items,

    alpha = 1 - D_o / D_e,    pairwise agreement = 1 - D_o (d = 1 for unlike classes),

and what one item contributes to the error of either is its influence (`_influence`), on the pilot with its own votes
and on simulated items of the fitted panel with k. Ends are laid on a logarithmic scale, as D_o cannot fall below 0.

Where ids tell that the same people judged many items, the pilot's people are a sample, too: what leaving out one of
them (or one of `PARTS` random parts of them) at a time does to D_o / D_e is their part of the variance, with the t of
so many less 1 (the jackknife). Without it, pilots by the same 5 people held agreement in 35 % of trials.

How often another k people would choose the same majority depends on the label distributions near a tie, of which k = 5
tells little for k = 50. It is that of the fitted panel; what the votes cannot tell is as wide as rough mixtures of
resampled items differ from it (`FittedPanel.rough`), and where that is too wide to plan with it is withheld.
(Bounds with no assumption, as best achievable scores have them, are from 0.7 to 1 for 200 items with 5 votes.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import ndtri

from dissensus.bootstrap import Estimate
from dissensus.evaluation.comparison.intervals import Spread
from dissensus.evaluation.finite_panel.finding import Finding, withheld
from dissensus.evaluation.metrics.ranking import majority_by_class
from dissensus.planning.fitted import REPEATS, nested_votes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.arrays import Counts, Floats, Table
    from dissensus.planning.fitted import FittedPanel

LEVEL: Final = 0.95

PANELS: Final = 100
"""Simulated panels of each label distribution, for how often two of them have one majority."""

PARTS: Final = 30
"""Of a pilot's people, left out one after the other."""

FEW_PEOPLE: Final = 20
"""Shared by the items of a pilot, with fewer people than this it is not said what others' majorities would be."""

TOO_WIDE: Final = 0.3
"""A share whose interval is wider says too little to plan with."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Prediction:
    """What would be measured on n new items with k votes each, with 95 % prediction intervals.

    Attributes:
        k: votes per item.
        items: n.
        agreement: the share of pairs of votes on an item that agree.
        alpha: Krippendorff's alpha, nominal, or interval where classes are ordered.
        same_majority: the share of items on which k other people would have the same majority, ties broken at random.
        reliability: the correlation over items of the mean ratings of two panels of k; None where classes have no
            order.
        label_error: expected squared distance of an item's shares of k votes from everybody's, summed over classes.
    """

    k: int
    items: int
    agreement: Finding
    alpha: Finding
    same_majority: Finding
    reliability: Finding | None
    label_error: Finding


def predict(
    counts: Counts,
    panel: FittedPanel,
    plans: Sequence[tuple[int, int]],
    *,
    scale: Floats | None,
    without: Sequence[Counts] = (),
    seed: int = 0,
) -> list[Prediction]:
    """A prediction for each plan.

    Args:
        counts: (items, classes) single votes of the pilot; some items with two votes or more.
        panel: fitted to them.
        plans: pairs (n items, k votes), k at least 1.
        scale: (classes,) the place of each class, where they are ordered; None where they are not.
        without: the same votes without each person, or part of the people, where the same judged several items.
        seed: random seed.
    """
    nominal = 1.0 - np.eye(counts.shape[1])
    several = counts[counts.sum(axis=1) >= 2]
    unanimous = bool((several.max(axis=1) == several.sum(axis=1)).all())
    votes = sorted({k for _, k in plans})
    simulated = nested_votes(np.repeat(panel.points, REPEATS, axis=0), votes, np.random.default_rng(seed))
    chance = {k: same_majority(panel.points, k, seed=seed) for k in votes}
    agreement = _Disagreement(several, nominal, panel, simulated, without, chance=False)
    distance = nominal if scale is None else (scale[:, None] - scale) ** 2
    alpha = _Disagreement(several, distance, panel, simulated, without, chance=True)
    no_pairs = withheld("one vote per item makes no pairs")
    few = withheld(f"the same {len(without)} people judged the pilot, who do not tell what others' majorities would be")
    return [
        Prediction(
            k=k,
            items=n,
            agreement=_linear(agreement.predicted(n, k), -1, 1) if k > 1 else no_pairs,
            alpha=_linear(alpha.predicted(n, k), -1, 1) if k > 1 else no_pairs,
            same_majority=few
            if 0 < len(without) < FEW_PEOPLE
            else _unseen(len(several))
            if unanimous
            else _same(chance[k], panel, n),
            reliability=None if scale is None else _reliability(alpha.known(), n, k),
            label_error=_linear(agreement.known(), 1 / k, 0),
        )
        for n, k in plans
    ]


class _Disagreement:
    """1 - agreement, or 1 - alpha: D_o, or D_o / D_e."""

    def __init__(
        self,
        pilot: Counts,
        distance: Table,
        panel: FittedPanel,
        simulated: Mapping[int, Counts],
        without: Sequence[Counts],
        *,
        chance: bool,
    ) -> None:
        self._simulated, self._weights, self._distance = simulated, panel.weights, distance
        self._marginal = (pilot / pilot.sum(axis=1)[:, None]).mean(axis=0)
        expected = float(self._marginal @ distance @ self._marginal)
        # Of agreement D_o alone is asked, which is alpha's quotient with a D_e that nothing moves.
        self._expected = expected if chance and expected else None
        self._observed = float(_pairs(pilot, distance).mean())
        self._variance = float(self._influence(pilot).var(ddof=1)) / len(pilot) if len(pilot) > 1 else np.inf
        self._degrees = len(pilot) - 1
        others = np.array([_quotient(some, distance, chance=chance) for some in without])
        others = others[np.isfinite(others)]
        self._people = (float(others.var() * (len(others) - 1)), len(others) - 1) if len(others) > 1 else (0.0, 1)

    def _influence(self, counts: Counts) -> Floats:
        """(items,) what each adds to the error: of D_o / D_e, (d_i - D_o) / D_e - 2 D_o (s_i d m - D_e) / D_e^2."""
        own = _pairs(counts, self._distance) - self._observed
        if self._expected is None:
            return own
        shares = counts / counts.sum(axis=1, keepdims=True)
        by_chance = shares @ (self._distance @ self._marginal) - self._expected
        return np.asarray(own / self._expected - 2 * self._observed * by_chance / self._expected**2)

    def predicted(self, n: int, k: int) -> Finding:
        """Of n new items with k votes: what each of them does to the error adds to what the pilot's items do."""
        values = self._influence(self._simulated[k]).reshape(-1, REPEATS)
        mean = self._weights @ values.mean(axis=1)
        return self._finding(self._variance + float(self._weights @ ((values - mean) ** 2).mean(axis=1)) / n)

    def known(self) -> Finding:
        """Of all items there could be: no part for a collection."""
        return self._finding(self._variance)

    def _finding(self, variance: float) -> Finding:
        if self._degrees < 1:
            return withheld("fewer than two items of the pilot have two votes")
        value = self._observed / (self._expected or 1.0)
        if value <= 0 or variance <= 0:
            # No two votes differed: the rule of three, in pairs, bounds what was not seen.
            return _finding(0.0, 0.0, 3 / (self._degrees + 1))
        # Items and people are known with degrees of freedom of their own (see `Spread`).
        parts = ((variance, self._degrees), self._people)
        reach = Spread(parts).half_width(LEVEL) / value
        return _finding(value, value * float(np.exp(-reach)), value * float(np.exp(reach)))


def _quotient(counts: Counts, distance: Table, *, chance: bool) -> float:
    """D_o, or D_o / D_e, of the items with two votes or more; NaN where there is none of them."""
    some = counts[counts.sum(axis=1) >= 2]
    if not len(some):
        return np.nan
    marginal = (some / some.sum(axis=1)[:, None]).mean(axis=0)
    expected = float(marginal @ distance @ marginal) if chance else 1.0
    return float(_pairs(some, distance).mean()) / expected if expected else np.nan


def _finding(value: float, low: float, high: float) -> Finding:
    return Finding(Estimate(value, low, high, LEVEL, 0))


def _pairs(counts: Counts, distance: Table) -> Floats:
    """(items,) mean distance of two votes on an item, of items with two or more."""
    size = counts.sum(axis=1)
    return np.asarray(((counts @ distance) * counts).sum(axis=1) / (size * (size - 1)))


def _linear(finding: Finding, slope: float, shift: float) -> Finding:
    """Slope times it plus shift."""
    return finding if finding.estimate is None else Finding(finding.estimate.linear(slope, shift))


def _reliability(disagreement: Finding, n: int, k: int) -> Finding:
    """The reliability k alpha / (1 + (k - 1) alpha) (Spearman and Brown 1910); its ends follow from alpha's."""
    if disagreement.estimate is None:
        return disagreement
    known = disagreement.estimate
    value, high, low = (
        float(np.clip(k * a / (1 + (k - 1) * a), 0.0, 0.9999)) if 1 + (k - 1) * a > 0 else 0.0
        for a in (1 - known.value, 1 - (known.low or 0.0), 1 - (known.high or 0.0))
    )
    # A correlation over n items is normal on Fisher's scale.
    z = float(ndtri((1 + LEVEL) / 2)) / np.sqrt(max(n - 3, 1))
    centre = np.arctanh(value)
    below, above = (np.hypot(centre - np.arctanh(low), z), np.hypot(np.arctanh(high) - centre, z))
    return _finding(value, float(np.tanh(centre - below)), float(np.tanh(centre + above)))


def same_majority(p: Table, k: int, *, seed: int) -> Floats:
    """(points,) chance that two panels of k votes have the same majority, ties broken at random; simulated.

    With t the shares of tied leaders of a panel, the chance is |E t|^2; its estimate from M panels is free of the bias
    that squaring brings.
    """
    rng = np.random.default_rng([seed, k])
    p = p / p.sum(axis=1, keepdims=True)
    total, squares = np.zeros(p.shape), np.zeros(len(p))
    for _ in range(PANELS):
        top = majority_by_class(rng.multinomial(k, p).T / k).T
        total += top
        squares += (top**2).sum(axis=1)
    return np.asarray(((total**2).sum(axis=1) - squares) / (PANELS * (PANELS - 1)))


def _unseen(items: int) -> Finding:
    """Where no two votes on an item differed: the rule of three bounds the share of items on which they would."""
    return _finding(1.0, 1 - 3 / items, 1.0)


def _same(chance: Floats, panel: FittedPanel, n: int) -> Finding:
    """The share of n new items with one majority, from the (points,) chance that two panels have one."""
    differ = float(panel.weights @ (1 - chance))
    others = panel.rough @ (1 - chance)
    # The variance of resampled items, how far a rough mixture differs, and n items each of which is same or not.
    variance = float(others[1:].var(ddof=1) + (others[0] - differ) ** 2) + differ * (1 - differ) / n
    if differ <= 0:
        return _unseen(int(panel.times.sum()))
    # Beyond some hundred the end is 0 anyway, and the exponential no number.
    reach = min(-float(ndtri((1 - LEVEL) / 2)) * float(np.sqrt(variance)) / differ, 500.0)
    low, high = max(0.0, 1 - differ * float(np.exp(reach))), 1 - differ * float(np.exp(-reach))
    if high - low > TOO_WIDE:
        return withheld(f"the pilot leaves it anywhere between {low:.2f} and {high:.2f}")
    return _finding(1 - differ, low, high)
