"""Numbers as labels: sliders in bins, codes for no answer beside a scale, and what is no class at all."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from dissensus.errors import InputError
from dissensus.votes.cells import are_numbers, with_points
from dissensus.votes.columns import RATING, plain
from dissensus.votes.echo import Plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.arrays import Floats
    from dissensus.votes.cells import Where
    from dissensus.votes.formats import Options
    from dissensus.votes.table import Votes

MANY: Final = 20
"""The most classes that are never taken for a slider, or for free text."""

SLIDER: Final = "a slider: 5 bins of equal width"
"""What numbers that are no classes may mean."""

_CODE: Final = re.compile(
    r"-?(6+|7+|8+|9+|9+[78])|-1|none|n/?a|missing|skip(ped)?|no answer|refused|[-.?]", re.IGNORECASE
)
"""What surveys write for no answer."""


def binned(cells: pl.Series, bins: Sequence[str], *, where: Where, notes: list[str]) -> pl.Series:
    """Numbers as the names of their bins, an Enum in order: `bins` is their number, or their edges from low to high.

    A number of bins is of equal width from the least value to the largest. A bin holds its lower edge, and the last one
    its upper edge too. What is no number, or lies outside the edges, is refused.

    >>> binned(pl.Series([0.0, 20.0, 100.0]), ("0", "20", "100"), where=str, notes=[]).to_list()
    ['0-20', '20-100', '20-100']
    """
    given = pl.Series(bins, dtype=pl.String).cast(pl.Float64, strict=False)
    edges = given.fill_null(np.nan).to_numpy()
    cells = with_points(cells) if cells.dtype == pl.String else cells
    numbers = cells.cast(pl.Float64, strict=False).to_numpy() if not cells.dtype.is_nested() else np.full(1, np.nan)
    wrong = ~np.isfinite(numbers) & cells.is_not_null().to_numpy()
    if wrong.any():
        row = int(wrong.argmax())
        raise InputError(
            f"{where(row)}: '{cells[row]}' is no number that bins= could hold; correct it, or name it in missing="
        )
    if edges.size == 1:
        edges = _equal(numbers[~np.isnan(numbers)], edges[0], where=where)
    elif not (np.isfinite(edges).all() and edges.size > 2 and (np.diff(edges) > 0).all()):
        raise InputError(f"{where(0)}: bins= needs a number of bins, or three or more edges that rise; correct it")
    outside = (numbers < edges[0]) | (numbers > edges[-1])
    if outside.any():
        row = int(outside.argmax())
        raise InputError(
            f"{where(row)}: {cells[row]} lies outside the edges {edges[0]:g} and {edges[-1]:g} of bins=; correct one"
        )
    digits = next(n for n in range(4, 18) if len({f"{edge:.{n}g}" for edge in edges}) == edges.size)
    ends = [f"{edge:.{digits}g}" for edge in edges]
    dash = " to " if edges[0] < 0 or any("e" in end for end in ends) else "-"
    names = [f"{low}{dash}{high}" for low, high in pairwise(ends)]
    place = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, len(names) - 1)
    width = f"of equal width from the least value, {ends[0]}, to the largest, {ends[-1]}" if len(bins) == 1 else "given"
    notes.append(Plain(f"numbers are in {len(names)} bins {width}: {', '.join(names)}; each holds its lower edge"))
    return pl.Series(cells.name, names, dtype=pl.Enum(names)).gather(place).set(cells.is_null(), None)


def _equal(numbers: Floats, count: float, *, where: Where) -> Floats:
    """Edges of equal width, rounded so that the name of a bin says what is in it."""
    if not (2 <= count <= 1000 and count == int(count)):
        raise InputError(f"{where(0)}: bins= needs a whole number of bins from 2 to 1000, or edges; correct it")
    low, high = (float(numbers.min()), float(numbers.max())) if numbers.size else (0.0, 0.0)
    edges = np.linspace(low, high, int(count) + 1)
    if low == high:
        raise InputError(f"{where(0)}: all values are {low:g}, and bins= has nothing to split; give edges")
    rounded = np.array([low, *(float(f"{edge:.4g}") for edge in edges[1:-1]), high])
    return rounded if (np.diff(rounded) > 0).all() else edges


def refuse_labels(votes: Votes, options: Options, *, column: str, path: object) -> None:
    """Refuse labels that are too many to be classes, or that have a code for no answer among them, if nobody said."""
    if options.classes is not None or options.bins is not None:
        return
    single = votes.judgement is None and votes.none is None
    refuse_names(
        votes.classes,
        votes=len(votes),
        force=options.force,
        codes=options.missing is None and single,
        parts=options.separator is None and single,
        column=column,
        path=path,
    )


def refuse_names(
    labels: Sequence[str], *, votes: int, force: bool, column: str, path: object, codes: bool = True, parts: bool = True
) -> None:
    """The same for the names alone; `codes` and `parts` say whether codes for no answer, and several labels, may be."""
    if parts:
        refuse_composites(labels, long=bool(column), path=path)
    if not force:
        _refuse_sliders(labels, votes=votes, column=column, path=path)
    if codes:
        _refuse_codes(labels, path=path)


def refuse_composites(labels: Sequence[str], *, long: bool, path: object) -> None:
    """Refuse labels that are other labels with a mark between them, decimal commas, and objects written as text."""
    one: dict[str, dict[str, Any]] = {"each of them is a class": {"classes": list(labels)}}
    decimal = [name for name in labels if re.fullmatch(r"[-+]?\d+,\d+", name)]
    if 2 * len(decimal) > len(labels) > 1 and are_numbers(name for name in labels if name not in decimal):
        ways = {SLIDER: {"bins": ["5"]}} | (one if len(labels) <= MANY else {})
        raise InputError(f"{path}: '{decimal[0]}' is a number with a decimal comma; choose", readings=ways)
    odd = next((name for name in labels if re.fullmatch(r"\{.*:.*\}", name, re.DOTALL)), None)
    if odd is not None:
        raise InputError(
            f"{path}: '{odd}' is an object written as text; write one row per vote, or one column for each of its names"
        )
    known = set(labels)
    for mark in (",", "/", "+", "&", "\n", ";", "|", " "):
        parts = {name: [part.strip() for part in name.split(mark)] for name in labels if mark in name}
        several = next((name for name, some in parts.items() if len(some) > 1 and known.issuperset(some)), None)
        if several is not None:
            sets = {"several labels of one person in a cell": {"format": "sets", "separator": mark}} if long else {}
            raise InputError(
                f"{path}: the label {several!r} may be several labels, which also stand alone; choose",
                readings={**sets, **one},
            )


def _refuse_sliders(labels: Sequence[str], *, votes: int, column: str, path: object) -> None:
    """Refuse labels that are too many, or too finely graded, to be classes."""
    numbers = are_numbers(labels)
    graded = numbers and (RATING.search(plain(column)) is not None or any(float(name) % 1 for name in labels))
    if len(labels) <= MANY or not (graded or 10 * len(labels) > votes):
        return
    shown = ", ".join(f"'{name}'" for name in labels[:3])
    what = "a slider" if numbers else "free text, or another column than that of the labels"
    binning = {SLIDER: {"bins": ["5"]}} if numbers else {}
    raise InputError(
        f"{path}: {len(labels):,} different labels in {votes:,} votes ({shown}, ...) look like {what}; name another "
        "column with label=, or choose",
        readings={**binning, "each of them is a class": {"force": True}},
    )


def _refuse_codes(labels: Sequence[str], *, path: object) -> None:
    """Refuse a scale of at most 11 whole numbers with one beside it that may be no answer: 99 or -1 beside 1 to 5.

    -1 beside 0 and 1 is a scale of its own.
    """
    codes = [name for name in labels if _CODE.fullmatch(name)]
    while True:
        scale = [name for name in labels if name not in codes]
        if len(scale) < 2 or not are_numbers(scale) or any(float(name) % 1 for name in scale):
            return
        low, high = min(map(float, scale)), max(map(float, scale))
        near = [
            name
            for name in codes
            if are_numbers([name])
            and low - 3 <= float(name) <= high + 3
            and not (float(name) == -1 and low >= 0 and high > 1)
        ]
        if not near:
            break
        # A 9 beside 1 to 8 is a step like any other, and what is near it may be one too.
        codes = [name for name in codes if name not in near]
    if codes and high - low <= 10:
        shown = " and ".join(f"'{name}'" for name in codes)
        raise InputError(
            f"{path}: {shown} beside labels from {low:g} to {high:g} may be a class or stand for no answer; choose",
            readings={
                "no answer: such votes are left out": {"missing": codes},
                "a class like the others": {"classes": list(labels)},
            },
        )
