"""Splits of exact sizes: every stratum in the same shares, and no group of duplicates in two of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy import optimize, sparse
from scipy.spatial.distance import cdist

from dissensus.arrays import Counts, Floats, Ints, Names, Table, cross_counts
from dissensus.errors import InputError, choices
from dissensus.randomness import Purpose, stream
from dissensus_train.curate.item_list import ItemList, stratum_name
from dissensus_train.curate.selecting import Demand, Floor, columns_of, demands_of, whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_SECONDS: Final = 20
"""Time limit of the search for sizes; problems with thousands of groups take well under one second."""

SWEEPS: Final = 400
"""Sweeps over all pairs of splits at most, for one weight of sizes."""

LOOKED_AT: Final = 600
"""Kinds of each side that are looked at for an exchange, drawn at random where there are more."""

WEIGHTS: Final = (0.3, 2.0, 1e4)
"""Weights of sizes against strata, one after the other: a search that keeps every size from the first step on can only
exchange groups of one size, and ends where one that may miss them on its way does not."""

TRIES: Final = 12
"""Times that the search starts anew from where it got, with some groups moved at random."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Splits:
    """What `split_groups` made.

    Attributes:
        items: with the column `split`.
        sizes: by split, how many items it has.
        strata: (strata, splits) items of each stratum in each split.
        names: of each stratum, its values.
        notes: a sentence for each size and floor that could not be met, and one where strata miss their shares by an
            item or more.
    """

    items: ItemList
    sizes: dict[str, int]
    strata: Counts
    names: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]


def split_groups(
    items: ItemList,
    sizes: Mapping[str, int | float],
    *,
    by: Sequence[str] | None = None,
    group: str | None = None,
    floors: Sequence[Floor] = (),
    seed: int = 0,
) -> Splits:
    """Split items at random into parts of exact sizes, each stratum in the same shares.

    Without groups every stratum is less than one item from its share. With groups, how many of each size go to which
    split is a small whole-number program (SciPy's HiGHS), which meets the sizes exactly wherever the groups allow it;
    groups are then exchanged between splits until no exchange brings strata nearer to their shares (see `_exchanged`).
    Floors raise the shares of what they ask for. The draw is the same for a seed whatever the order of the list.

    Args:
        items: to split.
        sizes: by split, numbers of items that sum to all of them, or shares that sum to 1.
        by: columns whose values together make the strata; those of floors make finer ones. None are region and label,
            where the list has them.
        group: the column that names groups; items of one name stay together, and an empty name is not a group. None is
            the column `group`, where the list has it; an empty name is no column.
        floors: such as at least 150 easy items of each label in the split train.
        seed: of the draw.
    """
    wanted = _sizes(sizes, len(items))
    if strangers := [floor.split for floor in floors if floor.split not in wanted]:
        raise InputError(f"splits: a floor is for split '{strangers[0]}'{choices(strangers[0], wanted)}")
    by = [name for name in ("region", "label") if name in items.columns] if by is None else by
    columns = list(dict.fromkeys([*by, *columns_of(floors)]))
    stratum, names = items.strata(columns)
    split_of = {name: place for place, name in enumerate(wanted)}
    demands = [(demand, split_of[str(demand.split)]) for demand in demands_of(floors, columns, names)]
    there, goal = np.bincount(stratum, minlength=len(names)), np.array(list(wanted.values()))
    # Floors of a region take from other regions of the same label, not from other labels.
    coarse, _ = items.strata([name for name in columns if name not in {floor.column for floor in floors}])
    target = _target(there, goal, demands, coarse[np.unique(stratum, return_index=True)[1]])
    unit = _units(items, ("group" if "group" in items.columns else "") if group is None else group)
    size = np.bincount(unit)
    held = cross_counts(unit, stratum, (len(size), len(names)))
    generator = stream(seed, Purpose.SPLIT)
    known, kind = _kinds(np.stack([held.argmax(axis=1), size], axis=1))
    which = _spread(kind, _counts(known, np.bincount(kind), goal, target), generator)
    if demands or (size > 1).any():
        which = _brought_nearer(which, held, target, demands, generator)
    split = which[unit]
    table = cross_counts(stratum, split, (len(names), len(wanted)))
    made = dict(zip(wanted, table.sum(axis=0).tolist(), strict=True))
    missed = [
        f"split '{name}' has {made[name]:,} items and not {number:,}: groups must stay whole, and no choice of whole "
        "groups was found that gives these sizes"
        for name, number in wanted.items()
        if made[name] != number
    ]
    missed += [
        f"{demand.name}: at least {demand.least:,} wanted and {has:,} there, of {there[demand.strata].sum():,} in all "
        "splits"
        for demand, place in demands
        if (has := int(table[demand.strata, place].sum())) < demand.least
    ]
    return Splits(
        items=items.adding(split=np.array(list(wanted), dtype=np.str_)[split]),
        sizes=made,
        strata=table,
        names=tuple(names),
        notes=(*missed, *_uneven(table, target, columns, names, list(wanted))),
    )


def _kinds(rows: Counts) -> tuple[Counts, Ints]:
    """Rows that differ, and (rows,) which of them each is."""
    kinds, kind = np.unique(rows, axis=0, return_inverse=True)
    return kinds, kind.reshape(-1)


def _brought_nearer(
    which: Ints, held: Counts, target: Table, demands: Sequence[tuple[Demand, int]], generator: np.random.Generator
) -> Ints:
    """(units,) the split of each unit, after exchanges that bring strata nearer to the target, with floors met."""
    kinds, kind = _kinds(held)
    made = cross_counts(kind, which, (len(kinds), target.shape[1]))
    floors = [((kinds @ demand.strata).astype(np.float64), split, demand.least) for demand, split in demands]
    made = _exchanged(made, kinds, target, floors=floors, generator=generator)
    if _lacking(made, floors):
        other = _programmed(kinds, np.bincount(kind), target, floors, gap=0.01)
        if other is not None and _lacking(other, floors) < _lacking(made, floors):
            made = _exchanged(other, kinds, target, floors=floors, generator=generator)
    return _spread(kind, made, generator)


def _uneven(
    table: Counts, target: Table, columns: Sequence[str], names: Sequence[tuple[str, ...]], splits: Sequence[str]
) -> tuple[str, ...]:
    """A sentence where whole groups keep strata an item or more from their shares: how many, and the furthest."""
    away = np.abs(table - target)
    far = away >= 1
    if not far.any():
        return ()
    stratum, split = divmod(int(away.argmax()), away.shape[1])
    sentence = (
        f"{int(far.any(axis=1).sum()):,} of {len(names):,} strata are one item or more from their share of a split, "
        f"furthest {stratum_name(columns, names[stratum])} in split '{splits[split]}': {table[stratum, split]:,} items "
        f"and not {target[stratum, split]:,.1f}"
    )
    return (sentence,)


def _target(there: Ints, wanted: Ints, demands: Sequence[tuple[Demand, int]], coarse: Ints) -> Table:
    """(strata, splits) items in equal shares, with what floors ask for: rows and columns keep their sums.

    Whatever a floor lacks is scaled up to it, and coarse strata, columns and rows to their sums, in turns.
    """
    together = np.eye(int(coarse.max()) + 1)[coarse]
    even = np.outer(together.T @ there, wanted / wanted.sum())
    target = np.outer(there, wanted / wanted.sum())
    for _ in range(500 if demands else 0):
        before = target.copy()
        for demand, split in demands:
            strata, least = demand.strata, min(demand.least, int(there[demand.strata].sum()))
            target[strata, split] *= max(least / max(float(target[strata, split].sum()), 1e-12), 1.0)
        target *= together @ (even / np.maximum(together.T @ target, 1e-12))
        target *= (wanted / np.maximum(target.sum(axis=0), 1e-12))[None]
        target *= (there / np.maximum(target.sum(axis=1), 1e-12))[:, None]
        if np.abs(target - before).max() < 1e-9:
            break
    return target


def _spread(kind: Ints, count: Counts, generator: np.random.Generator) -> Ints:
    """(units,) the split of each unit: so many of each kind to each split, drawn at random."""
    drawn = np.lexsort((generator.random(len(kind)), kind))
    which = np.empty(len(kind), dtype=np.int64)
    which[drawn] = np.repeat(np.tile(np.arange(count.shape[1]), len(count)), count.reshape(-1))
    return which


def _sizes(sizes: Mapping[str, int | float], n: int) -> dict[str, int]:
    if not sizes or any(size < 0 for size in sizes.values()):
        raise InputError(f"splits: sizes {dict(sizes)}; give two splits or more, of 0 items or more")
    total = sum(sizes.values())
    if abs(total - 1) < 1e-9 and n > 1:
        numbers = whole(n, np.array(list(sizes.values()), dtype=np.float64) * n, most=np.full(len(sizes), n))
        return dict(zip(sizes, numbers.tolist(), strict=True))
    if total != n or any(size != int(size) for size in sizes.values()):
        raise InputError(
            f"splits: the sizes sum to {total:,g} and there are {n:,} items; give numbers that sum to {n:,}, or shares "
            "that sum to 1"
        )
    return {name: int(size) for name, size in sizes.items()}


def _units(items: ItemList, group: str) -> Ints:
    """(items,) the number of the group that an item is in; an item without a group is one by itself.

    Numbered in the order of names, so that a draw does not depend on the order of rows.
    """
    order = items.by_name()
    unit = np.arange(len(items))
    if group:
        names: Names = items.column(group).astype(np.str_)[order]
        _, first, number = np.unique(names, return_index=True, return_inverse=True)
        unit = np.where(names == "", unit, first[number])
    numbered = np.empty(len(items), dtype=np.int64)
    numbered[order] = np.unique(unit, return_inverse=True)[1]
    return numbered


def _counts(kinds: Counts, units: Ints, wanted: Ints, target: Table) -> Counts:
    """(kinds, splits) how many units of each kind, a stratum and a size, go to each split.

    Sizes first, over all strata; then for each size, from large to small, its units over strata, where the smaller
    make up for what the larger have left uneven.
    """
    strata, row = np.unique(kinds[:, 0], return_inverse=True)
    share = target[kinds[:, 0]] / target[kinds[:, 0]].sum(axis=1, keepdims=True)
    sizes, of_size = np.unique(kinds[:, 1], return_inverse=True)
    number = np.bincount(of_size, weights=units).astype(np.int64)
    into = _programmed(np.diag(sizes), number, np.outer(sizes * number, wanted / wanted.sum()), gap=0.1)
    if into is None:
        raise InputError(f"splits: no split of whole groups was found within {_SECONDS} seconds; give fewer splits")
    count = np.zeros((len(kinds), len(wanted)), dtype=np.int64)
    uneven = np.zeros((len(strata), len(wanted)))
    for place in range(len(sizes) - 1, -1, -1):
        here = np.flatnonzero(of_size == place)
        size, expected = sizes[place], units[here][:, None] * share[here]
        count[here] = _rounded(expected - uneven[row[here]] / size, units[here], into[place])
        uneven[row[here]] += size * (count[here] - expected)
    return count


def _lacking(made: Counts, floors: Sequence[tuple[Floats, int, int]]) -> float:
    return sum(max(0.0, enough - float(held @ made[:, split])) for held, split, enough in floors)


def _programmed(
    kinds: Counts, units: Ints, target: Table, floors: Sequence[tuple[Floats, int, int]] = (), *, gap: float
) -> Counts | None:
    """(kinds, splits) how many units of each kind go to each split: a whole-number program over all that is wanted.

    What is missed of sizes weighs most, then what floors lack, and then what strata miss of the target. None where
    nothing was found in time.
    """
    n_kinds, (n_strata, n_splits) = len(kinds), target.shape
    n_units, items = n_kinds * n_splits, float(target.sum())
    splits = sparse.eye_array(n_splits)
    of_kind: Any = sparse.kron(sparse.eye_array(n_kinds), np.ones((1, n_splits)))
    of_split = sparse.kron(kinds.sum(axis=1)[None].astype(np.float64), splits)
    of_stratum = sparse.kron(kinds.T.astype(np.float64), splits)
    of_floors = [sparse.kron(held[None], np.eye(n_splits)[None, split]) for held, split, _ in floors]
    met: Any = sparse.vstack([of_split, of_stratum, *of_floors])
    n_missed, n_floors = n_splits * (1 + n_strata), len(floors)
    over: Any = sparse.vstack([sparse.eye_array(n_missed), sparse.csr_array((n_floors, n_missed))])
    under: Any = sparse.eye_array(n_missed + n_floors)
    matrix: Any = sparse.block_array([[of_kind, None, None], [met, -over, under]], format="csr")
    low = np.concatenate([units, target.sum(axis=0), target.reshape(-1), [enough for _, _, enough in floors]])
    weight = np.repeat([32 * items, 1.0, 4 * items], [n_splits, n_splits * n_strata, n_floors])
    solved = optimize.milp(
        np.concatenate([np.zeros(n_units), weight[:n_missed], weight]),
        constraints=optimize.LinearConstraint(
            matrix, low, np.concatenate([low[: len(low) - n_floors], np.full(n_floors, np.inf)])
        ),
        integrality=np.repeat([1, 0], [n_units, 2 * n_missed + n_floors]),
        bounds=optimize.Bounds(
            0, np.concatenate([np.repeat(units, n_splits), np.full(2 * n_missed + n_floors, np.inf)])
        ),
        options={"time_limit": _SECONDS, "mip_rel_gap": gap},
    )
    if solved.x is None:
        return None
    return np.asarray(np.rint(solved.x[:n_units]), dtype=np.int64).reshape(n_kinds, n_splits)


def _rounded(target: Table, rows: Ints, columns: Ints) -> Counts:
    """(rows, columns) whole numbers with the given sums, near the target.

    The target is brought to the sums by proportional fitting, and every number then rounded up or down: such a
    rounding always exists (Bacharach 1966), and a linear program finds the nearest, since its corners are whole.
    """
    fitted = np.maximum(target, 1e-6)
    for _ in range(1000):
        fitted *= (rows / fitted.sum(axis=1))[:, None]
        over = columns / np.maximum(fitted.sum(axis=0), 1e-12)
        fitted *= over
        if np.abs(over - 1).max() < 1e-12:
            break
    down = np.floor(fitted + 1e-7)
    part = fitted - down
    n_rows, n_columns = part.shape
    sums: Any = sparse.vstack(
        [
            sparse.kron(sparse.eye_array(n_rows), np.ones((1, n_columns))),
            sparse.kron(np.ones((1, n_rows)), sparse.eye_array(n_columns)),
        ],
        format="csr",
    )
    left: Any = np.concatenate([rows - down.sum(axis=1), columns - down.sum(axis=0)])
    solved = optimize.linprog(
        np.asarray(1 - 2 * part, dtype=np.float64).reshape(-1), A_eq=sums, b_eq=left, bounds=(0, 1), method="highs-ds"
    )
    assert solved.x is not None, "a controlled rounding exists"
    return np.asarray(np.rint(down + solved.x.reshape(part.shape)), dtype=np.int64)


def _exchanged(
    made: Counts,
    kinds: Counts,
    wanted: Table,
    *,
    floors: Sequence[tuple[Floats, int, int]] = (),
    generator: np.random.Generator,
) -> Counts:
    """(kinds, splits) how many units of each kind are in each split, after exchanges that bring the splits nearer.

    Nearer is, first, fewer items missing to or exceeding the sizes, and then a smaller sum of squares by which strata
    miss what is wanted of them, (strata, splits) items. A step moves one unit, or exchanges two, whichever is best for
    a pair of splits: for units with c and d items of each stratum, splits a and b, and their excess r over what is
    wanted, moving c from a to b and d from b to a changes the sum of squares by 2 (d - c) . (r_a - r_b) + 2 |d - c|^2.

    A floor is (kinds,) items that count, a split, and how many it must have; no step takes it below, or further below.
    """
    best, best_miss = made, _missed(made, kinds, wanted)
    if made.shape[1] == 1 or not best_miss[1]:
        return made
    now = made
    for _ in range(TRIES):
        for weight in WEIGHTS:
            now = _descended(now, kinds, wanted, weight, floors, generator)
        miss = _missed(now, kinds, wanted)
        kept = all(held @ now[:, split] >= min(least, float(held @ made[:, split])) for held, split, least in floors)
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
