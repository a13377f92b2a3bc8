"""Which methods differ over data sets: Friedman's test, then Nemenyi's critical difference (Demsar 2006).

Ranks, because a nat on two classes is not a nat on ten; no normal distribution and no prior, because there are about
ten sets. The price is power: with few sets only large differences are significant, and each further method widens the
critical difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from dissensus.errors import InputError
from dissensus.evaluation import holm, wilcoxon

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dissensus.arrays import Table


@dataclass(frozen=True, kw_only=True)
class MethodRanking:
    """Methods over data sets, best first.

    Attributes:
        methods: in the order of their mean ranks.
        mean_ranks: 1 is best; equal scores share their ranks.
        sets: that they were ranked on.
        chi_square: Friedman's statistic, corrected for ties.
        p: of it, with one degree of freedom fewer than methods; 1 where every set ties all methods.
        alpha: of the critical difference.
        critical_difference: of two mean ranks, by Nemenyi.
    """

    methods: tuple[str, ...]
    mean_ranks: tuple[float, ...]
    sets: tuple[str, ...]
    chi_square: float
    p: float
    alpha: float
    critical_difference: float

    def rank(self, method: str) -> float:
        """The mean rank of a method."""
        return self.mean_ranks[self.methods.index(method)]

    def apart(self, one: str, other: str) -> bool:
        """Whether two methods differ significantly: by Friedman's test any do, and by Nemenyi's these two."""
        return self.p < self.alpha and abs(self.rank(one) - self.rank(other)) >= self.critical_difference

    @property
    def cliques(self) -> tuple[tuple[str, ...], ...]:
        """The largest runs of neighbouring methods without a significant difference, of two methods or more."""
        runs: list[tuple[str, ...]] = []
        for first, name in enumerate(self.methods):
            alike = tuple(other for other in self.methods[first:] if not self.apart(name, other))
            if len(alike) > 1 and not (runs and alike[-1] in runs[-1]):
                runs.append(alike)
        return tuple(runs)

    def to_dict(self) -> dict[str, Any]:
        """The ranking, ready for JSON."""
        numbers = {key: getattr(self, key) for key in ("chi_square", "p", "alpha", "critical_difference")}
        ranks = dict(zip(self.methods, self.mean_ranks, strict=True))
        return {"mean_ranks": ranks, "sets": list(self.sets), **numbers, "cliques": list(map(list, self.cliques))}


def rank_methods(
    scores: Table,
    *,
    methods: Sequence[str],
    sets: Sequence[str],
    higher_is_better: bool = False,
    alpha: float = 0.05,
) -> MethodRanking:
    """Rank three methods or more by their finite (sets, methods) scores, and see which of them differ over sets.

    `alpha` is the level of both tests.
    """
    if scores.shape != (len(sets), len(methods)) or not np.isfinite(scores).all():
        raise InputError("rank_methods: give one finite score for each set and method")
    if len(methods) < 3 or len(sets) < 2:
        raise InputError(
            f"rank_methods: Friedman's test needs 3 methods and 2 sets, and there are {len(methods)} and {len(sets)}; "
            "run more of them"
        )
    ranks = ranks_of(scores, higher_is_better=higher_is_better)
    tied = (ranks == ranks[:, :1]).all()
    chi_square, p = (0.0, 1.0) if tied else map(float, stats.friedmanchisquare(*ranks.T))
    mean = ranks.mean(axis=0)
    order = np.argsort(mean, kind="stable")
    return MethodRanking(
        methods=tuple(methods[place] for place in order),
        mean_ranks=tuple(mean[order].tolist()),
        sets=tuple(sets),
        chi_square=chi_square,
        p=p,
        alpha=alpha,
        critical_difference=critical_difference(len(methods), len(sets), alpha=alpha),
    )


def place_among(loss: float, others: Iterable[float]) -> float:
    """The rank of a loss among others, 1 is best; equal ones share the mean of theirs. It moves none of them."""
    apart = np.array([*others])
    return 1.0 + float((apart < loss).sum()) + float((apart == loss).sum()) / 2


def against_best(scores: Table, *, methods: Sequence[str], best: str) -> dict[str, float]:
    """By method, the exact two-sided Wilcoxon p of its differences from the best one over sets, corrected by Holm.

    It has more power than Nemenyi's distance, since it compares with one method and uses the sizes of differences, and
    it asks for more: that differences of sets can be ranked among each other. `scores` are (sets, methods), all finite.
    """
    others = [place for place, name in enumerate(methods) if name != best]
    gaps = scores[:, others] - scores[:, [methods.index(best)]]
    p = holm(np.array([wilcoxon(column) for column in gaps.T]))
    return {methods[place]: float(value) for place, value in zip(others, p, strict=True)}


def ranks_of(scores: Table, *, higher_is_better: bool = False) -> Table:
    """(sets, methods) ranks within each set, 1 is best; equal scores share the mean of their ranks."""
    return np.asarray(stats.rankdata(-scores if higher_is_better else scores, axis=1))


def critical_difference(methods: int, sets: int, *, alpha: float = 0.05) -> float:
    """Nemenyi's critical difference of mean ranks: q sqrt(k (k + 1) / (6 n)), with k methods and n sets.

    q is the upper alpha quantile of the studentized range of k groups with infinite degrees of freedom, divided by
    the square root of 2.
    """
    q = float(stats.studentized_range.ppf(1 - alpha, methods, np.inf)) / 2**0.5
    return q * float(np.sqrt(methods * (methods + 1) / (6 * sets)))
