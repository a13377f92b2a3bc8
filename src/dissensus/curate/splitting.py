"""Splits of exact sizes: every stratum in the same shares, and no group of duplicates in two of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy import optimize, sparse

from dissensus.errors import InputError
from dissensus.randomness import Purpose, stream

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.arrays import Counts, Ints, Names, Table
    from dissensus.curate.item_list import ItemList

_SECONDS: Final = 20
"""Time limit of the search for sizes; problems with thousands of groups take well under one second."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Splits:
    """What `split_groups` made.

    Attributes:
        items: with the column `split`.
        sizes: by split, how many items it has.
        strata: (strata, splits) items of each stratum in each split.
        names: of each stratum, its values.
        notes: a sentence where a size could not be met.
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
    by: Sequence[str] = ("region", "label"),
    group: str | None = None,
    seed: int = 0,
) -> Splits:
    """Split items at random into parts of exact sizes, each stratum in the same shares.

    How many groups of each size go to which split is a small whole-number program (SciPy's HiGHS), which meets the
    sizes exactly wherever the groups allow it. Then each stratum is brought as near its share as it can be: less than
    one item away where no groups are given. Which groups they are is drawn at random, the same for a seed
    whatever the order of the list.

    Args:
        items: to split.
        sizes: by split, numbers of items that sum to all of them, or shares that sum to 1.
        by: columns whose values together make the strata.
        group: the column that names groups; items of one name stay together, and an empty name is not a group. A group
            counts to the stratum that most of its items are in.
        seed: of the draw.
    """
    wanted = _sizes(sizes, len(items))
    stratum, names = items.strata(by)
    unit = _units(items, group)
    order = items.by_name()
    # Units numbered in the order of names, so that a draw does not depend on the order of rows.
    _, first = np.unique(unit[order], return_index=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[unit[order][np.sort(first)]] = np.arange(len(first))
    unit = rank[unit]
    size = np.bincount(unit)
    most = np.zeros((len(size), len(names)), dtype=np.int64)
    np.add.at(most, (unit, stratum), 1)
    kinds, kind = np.unique(np.stack([most.argmax(axis=1), size], axis=1), axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    count = _counts(kinds, np.bincount(kind), np.array(list(wanted.values())))
    drawn = np.lexsort((stream(seed, Purpose.SPLIT).random(len(size)), kind))
    which = np.empty(len(size), dtype=np.int64)
    which[drawn] = np.repeat(np.tile(np.arange(len(wanted)), len(kinds)), count.reshape(-1))
    split = which[unit]
    table = np.zeros((len(names), len(wanted)), dtype=np.int64)
    np.add.at(table, (stratum, split), 1)
    called = np.array(list(wanted), dtype=np.str_)
    got = dict(zip(wanted, np.bincount(split, minlength=len(wanted)).tolist(), strict=True))
    return Splits(
        items=items.adding(split=called[split]),
        sizes=got,
        strata=table,
        names=tuple(names),
        notes=tuple(
            f"split '{name}' has {got[name]:,} items and not {size:,}: groups must stay whole, and no choice of whole "
            "groups gives these sizes"
            for name, size in wanted.items()
            if got[name] != size
        ),
    )


def _sizes(sizes: Mapping[str, int | float], n: int) -> dict[str, int]:
    if not sizes or any(size < 0 for size in sizes.values()):
        raise InputError(f"splits: sizes {dict(sizes)}; give two splits or more, of 0 items or more")
    total = sum(sizes.values())
    if abs(total - 1) < 1e-9 and n > 1:
        share = np.array(list(sizes.values()), dtype=np.float64) * n
        whole = np.floor(share + 1e-9).astype(np.int64)
        whole[np.argsort(-(share - whole), kind="stable")[: n - whole.sum()]] += 1
        return dict(zip(sizes, whole.tolist(), strict=True))
    if total != n or any(size != int(size) for size in sizes.values()):
        raise InputError(
            f"splits: the sizes sum to {total:,g} and there are {n:,} items; give numbers that sum to {n:,}, or shares "
            "that sum to 1"
        )
    return {name: int(size) for name, size in sizes.items()}


def _units(items: ItemList, group: str | None) -> Ints:
    """(items,) the number of the group that an item is in; an item without a group is one by itself."""
    alone = np.arange(len(items))
    if group is None:
        return alone
    names: Names = items.column(group).astype(np.str_)
    _, first, number = np.unique(names, return_index=True, return_inverse=True)
    unit = np.where(names == "", alone, first[number])
    return np.unique(unit, return_inverse=True)[1]


def _counts(kinds: np.ndarray[Any, Any], units: Ints, wanted: Ints) -> Counts:
    """(kinds, splits) how many units of each kind, a stratum and a size, go to each split.

    Sizes first, over all strata; then for each size, from large to small, its units over strata, where the smaller
    make up for what the larger have left uneven.
    """
    strata, row = np.unique(kinds[:, 0], return_inverse=True)
    share = wanted / wanted.sum()
    sizes, of_size = np.unique(kinds[:, 1], return_inverse=True)
    into = _by_size(sizes, np.bincount(of_size, weights=units).astype(np.int64), wanted)
    count = np.zeros((len(kinds), len(wanted)), dtype=np.int64)
    uneven = np.zeros((len(strata), len(wanted)))
    for number in range(len(sizes) - 1, -1, -1):
        here = np.flatnonzero(of_size == number)
        size, expected = sizes[number], np.outer(units[here], share)
        count[here] = _rounded(expected - uneven[row[here]] / size, units[here], into[number])
        uneven[row[here]] += size * (count[here] - expected)
    return count


def _by_size(sizes: Ints, units: Ints, wanted: Ints) -> Counts:
    """(sizes, splits) how many units of each size go to each split.

    Minimises the number of items by which splits miss what is wanted and, with far less weight, the number by which
    sizes miss their shares.
    """
    n_sizes, n_splits = len(sizes), len(wanted)
    each = n_sizes * n_splits
    all_units = sparse.kron(sparse.eye_array(n_sizes), np.ones((1, n_splits)))
    into_split = sparse.kron(sizes[None, :].astype(np.float64), sparse.eye_array(n_splits))
    of_size = sparse.kron(sparse.diags_array(sizes.astype(np.float64)), sparse.eye_array(n_splits))
    met, missed = sparse.vstack([into_split, of_size]), sparse.eye_array(n_splits + each)
    matrix: Any = sparse.block_array([[all_units, None, None], [met, -missed, missed]], format="csr")
    right = np.concatenate([units, wanted, np.outer(sizes * units, wanted / wanted.sum()).reshape(-1)])
    weight = np.repeat([8.0 * wanted.sum(), 1.0], [n_splits, each])
    solved = optimize.milp(
        np.concatenate([np.zeros(each), weight, weight]),
        constraints=optimize.LinearConstraint(matrix, right, right),
        integrality=np.repeat([1, 0], [each, 2 * (n_splits + each)]),
        bounds=optimize.Bounds(0, np.concatenate([np.repeat(units, n_splits), np.full(2 * (n_splits + each), np.inf)])),
        options={"time_limit": _SECONDS},
    )
    if solved.x is None:
        raise InputError(f"splits: no split of whole groups was found within {_SECONDS} seconds; give fewer splits")
    return np.rint(solved.x[:each]).astype(np.int64).reshape(n_sizes, n_splits)


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
        np.asarray(1 - 2 * part, dtype=np.float64).reshape(-1),
        A_eq=sums,
        b_eq=left,
        bounds=(0, 1),
        method="highs-ds",
    )
    assert solved.x is not None, "a controlled rounding exists"
    return np.asarray(np.rint(down + solved.x.reshape(part.shape)), dtype=np.int64)
