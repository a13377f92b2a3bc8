"""Choosing items for people to look at: a share for each stratum, a floor for some, and what could not be met."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import optimize, sparse

from dissensus.arrays import Floats, Ints, Mask, places_within
from dissensus.errors import InputError, choices
from dissensus.randomness import Purpose, stream
from dissensus_train.curate.item_list import ItemList, stratum_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, kw_only=True)
class Floor:
    """A number of items that a selection, or one of its splits, must not fall below.

    Attributes:
        column: which is looked at, such as region.
        value: in it, such as easy.
        least: items with that value, for each value of `each` alone.
        each: a column, such as label; None for one floor over all.
        split: that must have them, such as train; None where a whole selection must.
    """

    column: str
    value: str
    least: int
    each: str | None = None
    split: str | None = None


class Demand(NamedTuple):
    """What a floor asks for, of one value of its column `each`: at least so many items of some (strata,) strata.

    They must be in a split; in the whole selection where it is None. `name` says in words which items they are.
    """

    strata: Mask
    least: int
    split: str | None
    name: str


def columns_of(floors: Sequence[Floor]) -> list[str]:
    """The columns that floors look at."""
    return [name for floor in floors for name in (floor.column, floor.each) if name]


def demands_of(floors: Sequence[Floor], columns: Sequence[str], names: Sequence[tuple[str, ...]]) -> list[Demand]:
    """What floors ask for, of strata by their values in columns, one by one; a value that no item has is refused."""
    demands = []
    for floor in floors:
        value = np.array([name[columns.index(floor.column)] for name in names])
        if floor.value not in value:
            known = choices(floor.value, np.unique(value).tolist())
            raise InputError(f"floors: no item has {floor.column} '{floor.value}'{known}")
        part = np.array(["" if floor.each is None else name[columns.index(floor.each)] for name in names])
        where = "" if floor.split is None else f" in split '{floor.split}'"
        for one in np.unique(part).tolist():
            whose = "" if floor.each is None else f" of {floor.each} '{one}'"
            counted = (value == floor.value) & (part == one)
            demands.append(Demand(counted, floor.least, floor.split, f"{floor.column} '{floor.value}'{whose}{where}"))
    return demands


@dataclass(frozen=True, eq=False, kw_only=True)
class Selection:
    """What `select_items` chose.

    Attributes:
        items: the chosen items, in the order of the list they were chosen from.
        strata: the columns that make the strata.
        names: of each stratum, its values in those columns.
        available: (strata,) items there were.
        wanted: (strata,) items that shares and floors ask for, before anything ran out.
        taken: (strata,) items chosen.
        shortfalls: a sentence for each thing that could not be met.
    """

    items: ItemList
    strata: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]
    available: Ints
    wanted: Ints
    taken: Ints
    shortfalls: tuple[str, ...]


def select_items(
    items: ItemList,
    n: int,
    *,
    quotas: Mapping[str, Mapping[str, float] | None],
    floors: Sequence[Floor] = (),
    seed: int = 0,
) -> Selection:
    """Choose n items over strata, at random within each; the same for a seed, whatever the order of the list.

    The strata are all combinations of the values of the columns in `quotas`. Each asks for n times the product of its
    shares. Floors come first: an item may count to several of them, and of all choices that meet them the one nearest
    to the shares is made. Where a stratum runs out, the others take its part in proportion to their shares.

    Args:
        items: to choose from.
        n: how many.
        quotas: by column, the share of each value (brought to sum to 1; values left out get none), or None for equal
            shares of all its values.
        floors: such as 150 easy items of each label.
        seed: of the draw.
    """
    if n < 1:
        raise InputError(f"selection: {n} items are asked for; ask for 1 or more")
    if any(floor.split for floor in floors):
        raise InputError("selection: a floor names a split, and splits are made later; give that floor to the split")
    strata = tuple(dict.fromkeys([*quotas, *columns_of(floors)]))
    stratum, names = items.strata(strata)
    available = np.bincount(stratum, minlength=len(names))
    share = _shares(strata, names, quotas, available)
    demands = demands_of(floors, strata, names)
    enough = [(demand.strata, min(demand.least, int(available[demand.strata].sum()))) for demand in demands]
    least = int(_solved(np.ones(len(names)), enough, most=available).sum()) if demands else 0
    if least > n:
        raise InputError(
            f"selection: the floors alone ask for {least:,} items and n is {n:,}; ask for more, or lower the floors"
        )
    wanted = apportion(n, share, enough, most=np.full(len(names), n))
    taken = apportion(n, share, enough, most=available)
    shortfalls = [
        f"{demand.name}: at least {demand.least:,} wanted and {there:,} there"
        for demand, (_, there) in zip(demands, enough, strict=True)
        if there < demand.least
    ]
    shortfalls += [
        f"{stratum_name(strata, name)}: {want:,} wanted and {there:,} there"
        for name, want, there in zip(names, wanted.tolist(), available.tolist(), strict=True)
        if there < want
    ]
    if taken.sum() < n:
        shortfalls.append(f"{n:,} items asked for and {taken.sum():,} chosen: the strata with a share hold no more")
    order = items.by_name()
    drawn = np.empty(len(items))
    drawn[order] = stream(seed, Purpose.SPLIT).random(len(items))
    by_stratum = np.lexsort((drawn, stratum))
    chosen = np.sort(by_stratum[places_within(available) < taken[stratum[by_stratum]]])
    return Selection(
        items=items.take(chosen),
        strata=strata,
        names=tuple(names),
        available=available,
        wanted=wanted,
        taken=taken,
        shortfalls=tuple(shortfalls),
    )


def whole(n: int, real: Floats, *, most: Ints) -> Ints:
    """(parts,) whole numbers of at most so much each that sum to n, by largest remainders of real numbers that do."""
    numbers = np.floor(real + 1e-9).astype(np.int64)
    left = n - int(numbers.sum())
    # Rounded: remainders that are equal but for the last bits go to the first parts.
    remainder = np.round(real - numbers, 6)
    room = np.flatnonzero(numbers < most if left > 0 else numbers > 0)
    nearest = room[np.argsort(-np.sign(left) * remainder[room], kind="stable")]
    numbers[nearest[: abs(left)]] += np.sign(left)
    return numbers


def _shares(
    strata: tuple[str, ...],
    names: Sequence[tuple[str, ...]],
    quotas: Mapping[str, Mapping[str, float] | None],
    available: Ints,
) -> Floats:
    """(strata,) product of the shares of a stratum's values; a column without quotas shares by what is there."""
    share = np.ones(len(names))
    for place, column in enumerate(strata):
        if column not in quotas:
            continue
        values = [name[place] for name in names]
        shares = quotas[column] or dict.fromkeys(values, 1.0)
        if unknown := [value for value in shares if value not in values]:
            raise InputError(
                f"selection: no item has {column} '{unknown[0]}'{choices(unknown[0], sorted(set(values)))}"
            )
        total = sum(shares.values())
        if any(part < 0 for part in shares.values()) or not total > 0:
            raise InputError(f"selection: the shares of {column} are {dict(shares)}; give shares of 0 or more")
        share *= [shares.get(value, 0.0) / total for value in values]
    # The items of strata that quotas do not separate.
    ruled = [tuple(value for value, column in zip(name, strata, strict=True) if column in quotas) for name in names]
    total_of = Counter[tuple[str, ...]]()
    for rule, count in zip(ruled, available.tolist(), strict=True):
        total_of[rule] += count
    return share * available / np.maximum([total_of[rule] for rule in ruled], 1)


def apportion(n: int, share: Floats, floors: Sequence[tuple[Mask, int]] = (), *, most: Ints) -> Ints:
    """(strata,) whole numbers that sum to n, or to all there is, near n times the shares, with every floor met.

    Of strata without a share no more is taken than floors need. Of all real numbers that meet the floors, those nearest
    to the shares (by the divergence of Kullback and Leibler) are found and rounded; where rounding breaks a floor, the
    nearest whole numbers that meet them all are a small program (SciPy's HiGHS).
    """
    unshared = share <= 0
    if unshared.any():
        most = np.where(unshared, _solved(unshared.astype(np.float64), floors, most=most, total=(0, n)), most)
    n = min(n, int(most.sum()))
    real = _nearest(n, np.where(unshared, most, share * n), floors, most)
    numbers = whole(n, real, most=most)
    if numbers.sum() == n and all(numbers[strata].sum() >= least for strata, least in floors):
        return numbers
    return _solved(np.zeros(len(most)), floors, most=most, total=(n, n), near=real)


def _nearest(n: int, wanted: Floats, floors: Sequence[tuple[Mask, int]], most: Ints) -> Floats:
    """(strata,) real numbers that sum to n and meet the floors, nearest to those wanted.

    They are the wanted numbers times a factor for the sum and one for each floor that binds, cut at what there is. The
    factors are found in turns, each by its logarithm: ascent on the dual, which is concave.
    """
    log_wanted = np.log(np.maximum(wanted, 1e-12))
    sums = [(np.ones(len(most), dtype=np.bool_), n, -40.0), *((strata, least, 0.0) for strata, least in floors)]
    factor = np.zeros(len(sums))
    member = np.stack([strata for strata, _, _ in sums]).astype(np.float64)

    def numbers(log_factor: Floats) -> Floats:
        return np.minimum(np.exp(np.minimum(log_wanted + log_factor @ member, 60)), most)

    real = numbers(factor)
    # Half a hundred rounds are near enough where factors grow without end: the numbers are made whole afterwards.
    for _ in range(50):
        before = real
        for number, (strata, least, lowest) in enumerate(sums):

            def spare(log_factor: float, number: int = number, strata: Mask = strata, least: int = least) -> float:
                factor[number] = log_factor
                return float(numbers(factor)[strata].sum()) - least

            if spare(lowest) < 0 and spare(40.0) > 0:
                spare(optimize.brentq(spare, lowest, 40.0, xtol=1e-12))
        real = numbers(factor)
        if np.abs(real - before).max() < 1e-7:
            break
    return real


def _solved(
    cost: Floats,
    floors: Sequence[tuple[Mask, int]],
    *,
    most: Ints,
    total: tuple[int, float] = (0, np.inf),
    near: Floats | None = None,
) -> Ints:
    """(strata,) whole numbers that meet the floors and the total, of least cost, and then nearest to some numbers."""
    n = len(most)
    wanted = np.zeros(n) if near is None else near
    away = 0.0 if near is None else 1.0
    # x - over + under = wanted: what is paid for is over and under.
    rows = [*(np.concatenate([strata, np.zeros(2 * n)]) for strata, _ in floors), np.repeat([1.0, 0.0], [n, 2 * n])]
    one = np.eye(n)
    matrix = sparse.csr_array(np.vstack([*rows, np.hstack([one, -one, one])]))
    least = [number for _, number in floors]
    solved = optimize.milp(
        np.concatenate([cost, np.full(2 * n, away)]),
        constraints=optimize.LinearConstraint(
            matrix,
            np.concatenate([least, [total[0]], wanted]),
            np.concatenate([np.full(len(least), np.inf), [total[1]], wanted]),
        ),
        integrality=np.repeat([1, 0], [n, 2 * n]),
        bounds=optimize.Bounds(0, np.concatenate([most, np.full(2 * n, np.inf)])),
    )
    assert solved.x is not None, "floors are cut to what there is"
    return np.rint(solved.x[:n]).astype(np.int64)
