"""Whole groups exchanged between splits until no exchange brings the splits nearer to what is wanted of them."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.spatial.distance import cdist

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.arrays import Counts, Floats, Ints, Table

SWEEPS: Final = 400
"""Sweeps over all pairs of splits at most, for one weight of sizes."""

LOOKED_AT: Final = 600
"""Kinds of each side that are looked at for an exchange, drawn at random where there are more."""

WEIGHTS: Final = (0.3, 2.0, 1e4)
"""Weights of sizes against strata, one after the other: a search that keeps every size from the first step on can only
exchange groups of one size, and ends where one that may miss them on its way does not."""

TRIES: Final = 12
"""Times that the search starts anew from where it got, with some groups moved at random."""


def exchanged(
    made: Counts,
    kinds: Counts,
    wanted: Table,
    *,
    floors: Sequence[tuple[Floats, int, int]] = (),
    generator: np.random.Generator,
) -> Counts:
    """(kinds, splits) how many units of each kind are in each split, after exchanges that bring the splits nearer.

    Nearer is, first, fewer items missing to or exceeding the sizes, and then a smaller sum of squares by which strata
    miss what is wanted of them. A step moves one unit, or exchanges two, whichever is best for a pair of splits:
    for units with c and d items of each stratum, splits a and b, and their excess r over what is wanted, moving c from
    a to b and d from b to a changes the sum of squares by 2 (d - c) . (r_a - r_b) + 2 |d - c|^2.

    Args:
        made: (kinds, splits) units to begin with.
        kinds: (kinds, strata) items of each stratum in a unit of each kind.
        wanted: (strata, splits) items; those of a split sum to its size.
        floors: (kinds,) items that count, a split, and how many it must have; no step takes it below, or further below.
        generator: of the candidates and restarts.
    """
    best, best_miss = made, _missed(made, kinds, wanted)
    if made.shape[1] == 1 or not best_miss[1]:
        return made
    now = made
    for _ in range(TRIES):
        for weight in WEIGHTS:
            now = _descended(now, kinds, wanted, weight, floors, generator)
        miss = _missed(now, kinds, wanted)
        kept = all(held @ now[:, split] >= min(least, held @ made[:, split]) for held, split, least in floors)
        if miss < best_miss and kept:
            best, best_miss = now, miss
        now = _shaken(best, generator)
    # From what has the best sizes, by exchanges that keep them.
    return _descended(best, kinds, wanted, WEIGHTS[-1], floors, generator)


def _missed(made: Counts, kinds: Counts, wanted: Table) -> tuple[float, float]:
    away = kinds.T @ made - wanted
    return round(float(np.abs(away.sum(axis=0)).sum()), 6), round(float((away**2).sum()), 6)


def _shaken(made: Counts, generator: np.random.Generator) -> Counts:
    """Three units of each split moved to another one."""
    shaken = made.copy()
    splits = made.shape[1]
    for split in np.flatnonzero(made.any(axis=0)):
        for kind in generator.choice(len(made), 3, p=made[:, split] / made[:, split].sum()):
            if shaken[kind, split]:
                shaken[kind, split] -= 1
                shaken[kind, (split + generator.integers(1, splits)) % splits] += 1
    return shaken


def _descended(
    made: Counts,
    kinds: Counts,
    wanted: Table,
    weight: float,
    floors: Sequence[tuple[Floats, int, int]],
    generator: np.random.Generator,
) -> Counts:
    # Sizes are one more stratum, that every item is in; and nothing, for a step that only moves, is one more kind.
    scale = np.sqrt(weight)
    items = np.vstack([np.column_stack([kinds, scale * kinds.sum(axis=1)]), np.zeros(kinds.shape[1] + 1)])
    goal = np.vstack([wanted, scale * wanted.sum(axis=0)])
    made = np.vstack([made, np.full(made.shape[1], 2)])
    excess = items.T @ made - goal
    counted = [(np.append(held, 0.0), split, least) for held, split, least in floors]
    for _ in range(SWEEPS):
        better = False
        for one, other in combinations(range(made.shape[1]), 2):
            here, there = (_candidates(made[:, split], generator) for split in (one, other))
            leaving, coming = items[here], items[there]
            squares = cdist(leaving, coming, "sqeuclidean")
            pull = excess[:, one] - excess[:, other]
            change = 2 * ((coming @ pull)[None] - (leaving @ pull)[:, None] + squares)
            for counts, split, least in counted:
                if split in (one, other):
                    spare = float(counts @ made[:, split]) - least
                    gain = counts[there][None] - counts[here][:, None]
                    change[(gain if split == one else -gain) < -max(spare, 0.0)] = np.inf
            best = int(change.argmin())
            gone, come = here[best // len(there)], there[best % len(there)]
            if change.flat[best] > -1e-9:
                continue
            better = True
            for kind, before, after in ((gone, one, other), (come, other, one)):
                if kind < len(kinds):
                    made[kind, before] -= 1
                    made[kind, after] += 1
                    excess[:, before] -= items[kind]
                    excess[:, after] += items[kind]
        if not better:
            break
    return made[:-1]


def _candidates(units: Ints, generator: np.random.Generator) -> Ints:
    there = np.flatnonzero(units)
    if len(there) <= LOOKED_AT:
        return there
    return np.append(generator.choice(there[:-1], LOOKED_AT, replace=False), there[-1])
