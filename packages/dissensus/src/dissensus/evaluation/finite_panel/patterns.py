"""Brackets of what depends on a whole distribution, not on one class at a time: from the pattern of an item's votes.

The pattern of k votes is the list of their counts, largest first, whatever the classes are called. Its chance under a
true distribution p is a symmetric polynomial P(pattern | p) of degree k. As in `bracket`, numbers g(pattern) with
sum P(pattern | p) g(pattern) >= h(p) for every p are on average at least h(p), whatever p is; two such g bracket the
mean of h over items. Which g is chosen matters for the width alone; each half of the items is bracketed by those that
the other half chose, so that no choice follows the noise that it is applied to.

"Every p" is a few thousand: dense for few classes, and for many the shapes that matter (ties, one leader with the rest
even or on one class, draws from Dirichlet distributions on few and many classes); points that a first choice left
uncovered are added, and it is made again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.special import entr, gammaln

from dissensus.evaluation.finite_panel.bracket import Bracket, above
from dissensus.evaluation.finite_panel.panel import draw_votes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dissensus.arrays import Counts, Floats, Ints, Table

DEGREE: Final = 10
"""The most votes whose patterns are distinguished; of more, random draws of so many are averaged over."""

DRAWS: Final = 20
"""Those draws."""

PANELS: Final = 400
"""Simulated panels of each true distribution, where more votes than `DEGREE` make exact sums too long."""

FOLDS: Final = 2
"""Parts of the items, each bracketed by what the other chose."""

LEVELS: Final = 4
"""Ranges that panel sizes beyond the degree are put into, where there are more of them."""


@dataclass(frozen=True)
class OfTruth:
    """A function h_k(p) of a true distribution, and of the number of votes k.

    Attributes:
        exact: (points, classes) distributions, largest class first, and k, to (points,) values.
        score: where `exact` takes too long beyond `DEGREE` votes, the score of shares of votes and of p whose mean over
            votes is h, to be simulated; None where `exact` will do for any k.
    """

    exact: Callable[[Table, int], Floats]
    score: Callable[[Any, Any], Any] | None = None


def bracket_patterns(functions: Mapping[str, OfTruth], counts: Counts, *, seed: int) -> dict[str, Bracket]:
    """By name, the bracket of each function h(p), from the patterns of the items' (items, classes) votes."""
    rng = np.random.default_rng(seed)
    size = counts.sum(axis=1)
    ends = {name: np.empty((2, len(counts))) for name in functions}
    points, more = _points(counts.shape[1], rng, 1), _points(counts.shape[1], rng, 2)
    both = np.concatenate([points, more])
    # Beyond the degree h is simulated, which a fine choice of points would take too long for.
    beyond = chances(points, DEGREE) if size.max() > DEGREE else np.empty((0, 0))
    for few, many in _levels(size):
        some = np.flatnonzero((few <= size) & (size <= many))
        p, basis = (both, chances(both, few)) if few <= DEGREE else (points, beyond)
        where = _pattern_of(counts[some], min(few, DEGREE), rng)
        fold = rng.permutation(len(some)) % FOLDS
        values = [_values(functions, p, k, rng) for k in sorted({few, many})]
        for name in functions:
            # Between the ends of a range of k, h lies between its values there.
            bounds = np.stack([end([by_name[name] for by_name in values], axis=0) for end in (np.min, np.max)])
            ends[name][:, some] = _ends(bounds, basis, where, fold, len(points))
    return {name: Bracket(low, (low + high) / 2, high) for name, (low, high) in ends.items()}


def _levels(size: Ints) -> list[tuple[int, int]]:
    """Ranges of panel sizes that are taken together: each size alone, but of many large ones a few ranges."""
    small, large = np.unique(size[size <= DEGREE]), np.unique(size[size > DEGREE])
    ranges = np.array_split(large, min(LEVELS, large.size)) if large.size else []
    return [(k, k) for k in small.tolist()] + [(int(sizes[0]), int(sizes[-1])) for sizes in ranges]


def _ends(bounds: Table, basis: Table, where: Ints, fold: Ints, dense: int) -> Table:
    """(2, items) low and high numbers of items whose (items, draws) patterns are `where`.

    Of (2, points) least and greatest values of h and the (points, patterns) chances; each item is bracketed by what the
    other folds chose, and a choice begins with the first `dense` points.
    """
    out = np.empty((2, len(where)))
    for part in range(FOLDS):
        mine, others = fold == part, (fold != part if (fold != part).any() else fold == part)
        seen = np.bincount(where[others].ravel(), minlength=basis.shape[1]) / where[others].size
        reference = _smoothed(seen, basis[:dense], int(others.sum()))
        for side, sign in enumerate((-1.0, 1.0)):
            g = _covering(sign * bounds[side], basis, reference, items=len(where), dense=dense)
            out[side, mine] = sign * g[where[mine]].mean(axis=1)
    return out


def _covering(h: Floats, basis: Table, reference: Floats, *, items: int, dense: int) -> Floats:
    """(patterns,) g with basis @ g >= h at all points, and a small mean and variance under the reference."""
    chosen = np.arange(dense)
    gamma = 2.0 / (np.sqrt(items) * max(float(h.std()), 1e-3))
    g = np.zeros(len(reference))
    for _ in range(3):
        mean = float(reference @ _rough(h[chosen], basis[chosen], reference))
        g = above(h[chosen], basis[chosen], reference, gamma=gamma, mean=mean)
        short = h - basis @ g
        worst = np.argsort(-short)[:40]
        worst = worst[short[worst] > 1e-4]
        if not worst.size:
            break
        chosen = np.union1d(chosen, worst)
    return np.asarray(g + max(0.0, float((h - basis @ g).max())))


def _rough(h: Floats, basis: Table, reference: Floats) -> Floats:
    """(patterns,) a rough guess of g, to centre the quadratic programme on."""
    weight = basis * reference
    return np.asarray((weight * h[:, None]).sum(axis=0) / np.maximum(weight.sum(axis=0), 1e-300))


def _smoothed(seen: Floats, basis: Table, items: int) -> Floats:
    """(patterns,) how often patterns come, from how often they came: a mixture over the points, by some steps of EM."""
    weight = np.full(len(basis), 1 / len(basis))
    flat = weight @ basis
    for _ in range(30):
        weight = weight * (basis @ (seen / np.maximum(weight @ basis, 1e-300)))
    reference = 0.95 * (weight @ basis) + 0.05 * flat
    reference = np.maximum(reference, 0.1 / (items + 1) / len(reference))
    return np.asarray(reference / reference.sum())


def _points(classes: int, rng: np.random.Generator, times: int) -> Table:
    """(points, classes) true distributions, largest class first."""
    made = []
    lead = np.concatenate([np.linspace(0, 1, 60), 1 - np.geomspace(1e-3, 0.2, 15)])
    lead = lead if times == 1 else np.sort(rng.random(60 * times))
    supports = sorted({*range(2, min(classes, 6) + 1), min(classes, 10), classes} - {1})
    for s in supports:
        # A leader, and the rest even on the other classes.
        rest = np.repeat((1 - lead)[:, None] / (s - 1), s - 1, axis=1)
        made.append(_padded(np.column_stack([lead, rest]), classes))
        made += [
            _padded(rng.dirichlet(np.full(s, strength), 60 * times), classes) for strength in (0.1, 0.3, 1.0, 3.0, 10.0)
        ]
    for tied in range(2, min(classes - 1, 4) + 1):
        # Some equal leaders, and the rest even on all other classes, or on one.
        for others in {1, classes - tied}:
            mass = np.repeat(lead[:, None] / tied, tied, axis=1)
            rest = np.repeat((1 - lead)[:, None] / others, others, axis=1)
            made.append(_padded(np.column_stack([mass, rest]), classes))
    return np.asarray(-np.sort(-np.unique(np.round(np.concatenate(made), 9), axis=0), axis=1))


def _padded(p: Table, classes: int) -> Table:
    return np.pad(p, ((0, 0), (0, classes - p.shape[1])))


@cache
def _partitions(k: int, most: int) -> tuple[tuple[int, ...], ...]:
    """All ways to write k as a sum of at most `most` parts, largest first."""

    def parts(left: int, largest: int, room: int) -> list[tuple[int, ...]]:
        if left == 0:
            return [()]
        if room == 0:
            return []
        return [
            (first, *others)
            for first in range(min(left, largest), 0, -1)
            for others in parts(left - first, first, room - 1)
        ]

    return tuple(parts(k, k, most))


def _of_parts(p: Table, k: int) -> dict[tuple[int, ...], Floats]:
    """For each list of at most k counts, largest first, (points,) the chance of it divided by k!, class by class."""
    power = [np.ones_like(p)]
    for c in range(1, k + 1):
        power.append(power[-1] * p / c)
    chance_of: dict[tuple[int, ...], Floats] = {(): np.ones(len(p))}
    for j in range(p.shape[1]):
        if not p[:, j].any():
            break
        new = dict(chance_of)
        for parts, chance in chance_of.items():
            for c in range(1, k - sum(parts) + 1):
                more = tuple(sorted((*parts, c), reverse=True))
                step = chance * power[c][:, j]
                new[more] = new[more] + step if more in new else step
        chance_of = new
    return chance_of


def chances(p: Table, k: int) -> Table:
    """(points, patterns) chance of each pattern of k votes under true distributions, largest class first."""
    chance_of = _of_parts(p, k)
    nothing = np.zeros(len(p))
    ways = np.exp(gammaln(k + 1))
    return np.stack([ways * chance_of.get(parts, nothing) for parts in _partitions(k, min(k, p.shape[1]))], axis=1)


def _pattern_of(counts: Counts, degree: int, rng: np.random.Generator) -> Ints:
    """(items, draws) the pattern of each item's votes, or of random draws of `degree` of them."""
    size = np.full(len(counts), degree)
    whole = int(counts[0].sum()) == degree
    drawn = [counts] if whole else [draw_votes(counts, size, rng) for _ in range(DRAWS)]
    length = min(degree, counts.shape[1])
    base = (degree + 1) ** np.arange(length)[::-1]
    listed = np.array([(*parts, *([0] * (length - len(parts)))) for parts in _partitions(degree, length)]) @ base
    order = np.argsort(listed)
    codes = np.stack([-np.sort(-votes, axis=1)[:, :length] @ base for votes in drawn], axis=1)
    return np.asarray(order[np.searchsorted(listed[order], codes)])


def leader_wins(p: Table, k: int) -> Floats:
    """(points,) chance that the first class has the most of k votes, ties broken at random."""
    chance_of = _of_parts(p[:, 1:], k)
    lead = p[:, 0]
    out = np.zeros(len(p))
    for parts, chance in chance_of.items():
        c = k - sum(parts)
        most = max(parts, default=0)
        if c >= max(most, 1):
            share = 1.0 if c > most else 1 / (1 + parts.count(most))
            out += share * chance * lead**c / np.exp(gammaln(c + 1))
    return np.asarray(out * np.exp(gammaln(k + 1)))


def entropy_missed(p: Table, k: int) -> Floats:
    """(points,) mean of |H(p) - H(shares of k votes)|, in nats."""
    own = entr(p).sum(axis=1)
    patterns = _partitions(k, min(k, p.shape[1]))
    of_votes = np.array([entr(np.array(parts) / k).sum() for parts in patterns])
    return np.asarray((chances(p, k) * np.abs(own[:, None] - of_votes)).sum(axis=1))


def _values(functions: Mapping[str, OfTruth], p: Table, k: int, rng: np.random.Generator) -> dict[str, Floats]:
    """By name, (points,) values of h; those that are simulated see the same panels."""
    out = {name: function.exact(p, k) for name, function in functions.items() if k <= DEGREE or function.score is None}
    scores = {name: function.score for name, function in functions.items() if name not in out and function.score}
    out |= {name: np.zeros(len(p)) for name in scores}
    for _ in range(PANELS if scores else 0):
        shares = rng.multinomial(k, p / p.sum(axis=1, keepdims=True)) / k
        for name, score in scores.items():
            out[name] = out[name] + score(shares, p) / PANELS
    return out
