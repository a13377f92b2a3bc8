"""Choosing items for people to look at: a share for each stratum, a floor for some, and what could not be met."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dissensus.arrays import places_within
from dissensus.errors import InputError
from dissensus.randomness import Purpose, stream

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.arrays import Floats, Ints
    from dissensus.curate.item_list import ItemList


@dataclass(frozen=True, kw_only=True)
class Floor:
    """A number of items that a selection must not fall below.

    Attributes:
        column: which is looked at, such as region.
        value: in it, such as easy.
        least: items with that value, for each value of `each` alone.
        each: a column, such as label; None for one floor over all.
    """

    column: str
    value: str
    least: int
    each: str | None = None


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
    shares. Floors are met first; the rest of n goes to the strata in proportion to what they still lack. Where a
    stratum runs out, the others take its part in proportion to their shares.

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
    columns = [*quotas, *(name for floor in floors for name in (floor.column, floor.each) if name)]
    strata = tuple(dict.fromkeys(columns))
    stratum, names = items.strata(strata)
    available = np.bincount(stratum, minlength=len(names))
    share = _shares(items, strata, names, quotas, available)
    floor_of, shortfalls = _floors(strata, names, available, floors, share)
    if floor_of.sum() > n:
        raise InputError(
            f"selection: the floors alone ask for {floor_of.sum():,} items and n is {n:,}; ask for more items, or "
            "lower the floors"
        )
    wanted = apportion(n, share, least=floor_of, most=np.full(len(names), n))
    taken = apportion(n, share, least=floor_of, most=np.where(share > 0, available, floor_of))
    shortfalls += [
        f"{_called(strata, name)}: {want:,} wanted and {there:,} there"
        for name, want, there in zip(names, wanted.tolist(), available.tolist(), strict=True)
        if there < want
    ]
    if taken.sum() < n:
        shortfalls.append(f"{n:,} items asked for and {taken.sum():,} chosen: the strata with a share hold no more")
    order = items.by_name()
    drawn = np.empty(len(items))
    drawn[order] = stream(seed, Purpose.SPLIT).random(len(items))
    by_stratum = np.lexsort((drawn, stratum))
    within = places_within(available)
    chosen = np.sort(by_stratum[within < taken[stratum[by_stratum]]])
    return Selection(
        items=items.take(chosen),
        strata=strata,
        names=tuple(names),
        available=available,
        wanted=wanted,
        taken=taken,
        shortfalls=tuple(shortfalls),
    )


def apportion(n: int, share: Floats, *, least: Ints, most: Ints) -> Ints:
    """(parts,) whole numbers that sum to n, or to all there is, near n times the shares and within the bounds.

    The real numbers between the bounds that are in proportion to the shares are found by bisection on the factor;
    largest remainders make them whole.
    """
    n = int(min(n, most.sum()))
    low, high = 0.0, 2.0 * (n + 1) / max(float(share[share > 0].min(initial=1.0)), 1e-12)
    for _ in range(200):
        factor = (low + high) / 2
        low, high = (factor, high) if np.clip(factor * share, least, most).sum() < n else (low, factor)
    real = np.clip(high * share, least, most)
    whole = np.maximum(np.floor(real + 1e-9).astype(np.int64), least)
    left = n - int(whole.sum())
    if left > 0:
        room = np.flatnonzero((whole < most) & (share > 0))
        nearest = room[np.argsort(-(real - whole)[room], kind="stable")]
        whole[nearest[:left]] += 1
    elif left < 0:
        # Rounding can overshoot only where a part is above its floor.
        above = np.flatnonzero(whole > least)
        whole[above[np.argsort((real - whole)[above], kind="stable")][:-left]] -= 1
    return whole


def _shares(
    items: ItemList,
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
        given = quotas[column] or dict.fromkeys(values, 1.0)
        unknown = [value for value in given if value not in values]
        if unknown:
            raise InputError(
                f"selection: no item has {column} '{unknown[0]}'; there are {', '.join(sorted(set(values)))}"
            )
        total = sum(given.values())
        if any(part < 0 for part in given.values()) or not total > 0:
            raise InputError(f"selection: the shares of {column} are {dict(given)}; give shares of 0 or more")
        share *= [given.get(value, 0.0) / total for value in values]
    free = [place for place, column in enumerate(strata) if column not in quotas]
    if free:
        ruled = [tuple(name[place] for place in range(len(strata)) if place not in free) for name in names]
        total_of: dict[tuple[str, ...], int] = {}
        for rule, count in zip(ruled, available.tolist(), strict=True):
            total_of[rule] = total_of.get(rule, 0) + count
        share *= available / np.array([total_of[rule] for rule in ruled])
    return share


def _floors(
    strata: tuple[str, ...],
    names: Sequence[tuple[str, ...]],
    available: Ints,
    floors: Sequence[Floor],
    share: Floats,
) -> tuple[Ints, list[str]]:
    """(strata,) the least of each stratum, and a sentence for each floor that there are not enough items for."""
    least = np.zeros(len(names), dtype=np.int64)
    short = []
    for floor in floors:
        at = strata.index(floor.column)
        values = {name[at] for name in names}
        if floor.value not in values:
            raise InputError(
                f"selection: no item has {floor.column} '{floor.value}'; there are {', '.join(sorted(values))}"
            )
        kinds = [()] if floor.each is None else sorted({(name[strata.index(floor.each)],) for name in names})
        for kind in kinds:
            here = np.array(
                [
                    name[at] == floor.value and (floor.each is None or (name[strata.index(floor.each)],) == kind)
                    for name in names
                ]
            )
            there = int(available[here].sum())
            whose = f" of {floor.each} '{kind[0]}'" if kind else ""
            if there < floor.least:
                short.append(
                    f"{floor.column} '{floor.value}'{whose}: at least {floor.least:,} wanted and {there:,} there"
                )
            weight = share[here] if share[here].any() else available[here].astype(np.float64)
            least[here] = np.maximum(
                least[here],
                apportion(floor.least, weight, least=np.zeros(int(here.sum()), dtype=np.int64), most=available[here]),
            )
    return least, short


def _called(strata: tuple[str, ...], name: tuple[str, ...]) -> str:
    return ", ".join(f"{column} '{value}'" for column, value in zip(strata, name, strict=True)) or "all items"
