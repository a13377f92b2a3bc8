"""The cells of one column to numbers; what cannot be read is refused with its line."""

from __future__ import annotations

import itertools
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from dissensus.errors import InputError
from dissensus.responses import NO, RESPONSES, UNSURE, YES
from dissensus.votes.columns import listed
from dissensus.votes.echo import Plain
from dissensus.votes.encoding import encode, first_appearances, to_names
from dissensus.votes.table import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from dissensus.arrays import Codes, Floats, Ints, Mask, Names, Times

    Where = Callable[[int], str]
    """The file and the line of a row, for a sentence."""

SEPARATORS: Final = "|;"
"""What may stand between the labels of one cell, the surest first."""

_SPELLINGS: Final = {
    **dict.fromkeys(("no", "n", "false"), NO),
    **dict.fromkeys(("yes", "y", "true"), YES),
    **dict.fromkeys(("unsure", "u", "maybe", "?"), UNSURE),
}
_KIND_SPELLINGS: Final = {
    **dict.fromkeys(("human", "people"), KINDS[0]),
    **dict.fromkeys(("llm", "ai", "machine"), KINDS[1]),
}
MISSING: Final = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "<NA>")
"""What stands in a cell without a label, unless the user says otherwise."""

_NO_ANSWER: Final = r"(?i)^\s*(none|n/?a|missing|skip(ped)?|no answer|refused|[-.?])\s*$"
"""What may stand there too, beside these."""

_NUMBER: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?")
_WHOLE: Final = re.compile(r"([+-]?[0-9]+)(\.0*)?")
_SHARE: Final = r"^\s*(\d+(?:\.\d+)?)\s*(?:%|/\s*(\d+))\s*$"


def encode_names(cells: pl.Series, *, where: Where) -> tuple[Codes, Names]:
    """Codes and names of items, annotators or labels; an empty cell is refused."""
    values = name_like(cells, where=where)
    refuse_missing(values, where=where)
    return encode(values)


def distinct_names(cells: pl.Series, *, where: Where) -> Names:
    """(rows,) names of items, each of which may occur once."""
    codes, names = encode_names(cells, where=where)
    if len(names) < codes.size:
        again = int((codes != np.arange(codes.size)).argmax())
        raise InputError(f"{where(again)}: item '{names[codes[again]]}' has a row already; give one row per item")
    return names


def encode_classes(
    cells: pl.Series,
    classes: Sequence[str] | None,
    *,
    where: Where,
    merge: Sequence[str] = (),
    notes: list[str] | None = None,
) -> tuple[Codes, tuple[str, ...]]:
    """Class codes and names: in the given order, an Enum's own, else numbers by size or text by alphabet."""
    codes, names = encode_names(cells, where=where)
    if "labels" in merge:
        codes, names = merged(codes, names, what="labels", notes=notes)
    if classes is None and isinstance(cells.dtype, pl.Enum):
        classes = class_names(cells.dtype.categories.to_list())
    labels = [str(name) for name in names.tolist()]
    rank, order = arrange_classes(labels, classes, where=lambda k: where(int((codes == k).argmax())))
    if notes is not None:
        for k in np.flatnonzero(np.bincount(rank) > 1).tolist():
            same = " and ".join(f"'{labels[j]}'" for j in np.flatnonzero(rank == k).tolist())
            notes.append(f"the labels {same} are the same number, and one class '{order[k]}'")
    return rank[codes], order


def arrange_classes(
    labels: Sequence[str], classes: Sequence[str] | None, *, where: Where
) -> tuple[Codes, tuple[str, ...]]:
    """The class of each distinct label, and the class names in order.

    Without `classes` they are the labels, numbers by size and others by alphabet. A label that is not among them is
    taken for the one that is the same number, such as 1 for 1.0. `where` is the place where a label first occurs.
    """
    named = class_names(labels)
    order = in_order(named) if classes is None else tuple(classes)
    index = {name: k for k, name in enumerate(order)}
    equal = {number: index[name] for name in order if (number := _number(name)) is not None}
    places = [index.get(label, index.get(name)) for label, name in zip(labels, named, strict=True)]
    places = [
        equal.get(number) if k is None and (number := _number(label)) is not None else k
        for k, label in zip(places, labels, strict=True)
    ]
    unknown = next((k for k, place in enumerate(places) if place is None), None)
    if unknown is not None:
        raise InputError(
            f"{where(unknown)}: the label '{named[unknown]}' is not one of the classes {listed(order)}; "
            "correct it, or add it to classes="
        )
    return np.array(places, dtype=np.int32), order


def class_names(labels: Sequence[str]) -> list[str]:
    """Labels as names: equal numbers, such as 0, 00 and -0, or 1 and 1.0, have the same.

    Where no two labels are equal numbers they keep their spelling, `01` for one, save that 1.0 is 1 where all are
    whole.
    """
    numbers = {label: number for label in labels if (number := _number(label)) is not None}
    if len(set(numbers.values())) < len(numbers):
        return [f"{numbers[label].normalize() + 0:f}" if label in numbers else label for label in labels]
    matches = [_WHOLE.fullmatch(label) for label in labels]
    return [match[1] for match in matches if match] if all(matches) else list(labels)


def _number(label: str) -> Decimal | None:
    return Decimal(label) if _NUMBER.fullmatch(label) else None


def spelling(names: pl.Series) -> pl.Series:
    """Names without what is hardly seen: white space, case, normal forms, invisible marks, how a number is written.

    >>> spelling(pl.Series(["Cat ", "cat", "007", "7.0", "1E5", "1.905336E+06"])).to_list()
    ['cat', 'cat', '7.0', '7.0', '100000.0', '1905336.0']
    """
    if names.str.len_bytes().sum() > names.str.len_chars().sum():
        names = names.str.replace_all("[\u200b-\u200f\u2060\ufeff\u00ad]", "").str.normalize("NFC")
    plain = names.str.strip_chars().str.to_lowercase()
    if plain.str.contains(r"\s").any():
        plain = plain.str.replace_all(r"\s+", " ")
    # More digits than a float holds could make two names one.
    numbers = plain.str.contains(r"^[+-]?([0-9]{1,12}(\.[0-9]{0,3})?|[0-9](\.[0-9]{0,12})?e\+?0?[0-9])$")
    if not numbers.any():
        return plain
    return plain.cast(pl.Float64, strict=False).cast(pl.String).zip_with(numbers, plain).fill_null(plain)


def variants(
    names: Sequence[str] | pl.Series,
    counts: Sequence[int] | Ints,
    *,
    what: str = "labels",
    format: str = "",  # noqa: A002 - as --format
) -> list[str]:
    """Sentences on different names that look like one, with the remedy: labels and an item are named, and nobody."""
    table = pl.DataFrame({"names": pl.Series(names, dtype=pl.String), "counts": counts})
    keys = spelling(table["names"])
    # Counting distinct names is much faster than finding those that are not.
    if keys.n_unique() == len(keys):
        return []
    again = keys.is_duplicated()
    groups = table.filter(again).group_by(keys.filter(again).alias("key"), maintain_order=True)
    often = [
        " and ".join(f"'{name}' ({count:,})" for name, count in group.iter_rows())
        for _, group in itertools.islice(groups, 1 if what == "items" else None)
    ]
    how = "differ only in white space, case or spelling, and are kept apart"
    if format in ("long", "sets", "lists") or (format == "wide" and what == "labels"):
        how += f"; merge_spellings=['{what}'] makes them one"
    if what == "labels":
        return [f"the labels {alike} {how}" for alike in often]
    such = f" such as {often[0]}" if what == "items" else " have names that"
    return [f"{int(again.sum()):,} {what}{such} {how}"]


MERGED: Final = ("items", "annotators", "labels")
"""What may be joined where names differ only in their spelling."""


def merged(code: Codes, names: Names, *, what: str, notes: list[str] | None) -> tuple[Codes, Names]:
    """Codes and names where names that look like one are the most frequent of them, without white space around it."""
    if names.dtype.kind != "T":
        return code, names
    text = pl.Series(names.tolist())
    one, first = first_appearances(spelling(text))
    spelled = pl.DataFrame(
        {"one": one, "name": text.str.strip_chars(), "votes": np.bincount(code, minlength=len(names))}
    )
    often = spelled.group_by("one", "name", maintain_order=True).agg(pl.col("votes").sum())
    best = often.group_by("one").agg(pl.col("name").get(pl.col("votes").arg_max())).sort("one")
    if notes is not None:
        notes.append(Plain(f"{len(names) - first.size:,} names of {what} merged into others that look like them"))
    return one[code], to_names(best["name"])


def in_order(labels: Iterable[str]) -> tuple[str, ...]:
    """Distinct labels, numbers by size and others by alphabet."""
    distinct = sorted(set(labels))
    return tuple(sorted(distinct, key=float)) if are_numbers(distinct) else tuple(distinct)


def are_numbers(labels: Iterable[str]) -> bool:
    """Whether all labels are written as numbers."""
    return all(_NUMBER.fullmatch(label) for label in labels)


def encode_responses(cells: pl.Series, *, where: Where) -> Codes:
    """(rows,) NO, YES or UNSURE."""
    codes, names = encode_names(cells, where=where)
    meaning = [_SPELLINGS.get(str(name).strip().lower(), -1) for name in names.tolist()]
    if -1 in meaning:
        unknown = meaning.index(-1)
        raise InputError(
            f"{where(int((codes == unknown).argmax()))}: '{names[unknown]}' is not a response; "
            f"a response is {', '.join(RESPONSES[:-1])} or {RESPONSES[-1]}"
        )
    return np.array(meaning, dtype=np.int32)[codes]


def holds_responses(cells: pl.Series) -> bool:
    """Whether a column called `response` may be of yes, no and unsure, and is not what a model said."""
    text = not cells.dtype.is_nested() and cells.dtype not in (pl.Binary, pl.Object)
    words = cells.cast(pl.String).str.strip_chars().str.to_lowercase() if text else pl.Series(list("abcdefgh"))
    return words.n_unique() <= 2 * len(RESPONSES) or bool(words.is_in([*_SPELLINGS]).any())


def holds_kinds(cells: pl.Series, *, where: Where) -> bool:
    """Whether a column that nobody named says of each row that a person or a model gave it.

    Refuses one that says so of some rows: were it passed over, one damaged cell would mix models with people.
    """
    said = _kind_words(cells)
    known = said.is_in(KINDS).fill_null(value=False)
    if known.all() or not (said == KINDS[1]).any():
        return bool(known.all()) and len(cells) > 0
    row = int((~known).to_numpy().argmax())
    raise InputError(
        f"{where(row)}: column '{cells.name}' says '{cells[row]}' here, and elsewhere that a model gave the vote; "
        f"write {' or '.join(KINDS)} in each row, or, where it is about something else, name it with "
        "item_attributes= or attributes="
    )


def parse_kinds(cells: pl.Series, *, where: Where) -> Mask:
    """(rows,) true where a model gave the vote, false where a person did."""
    said = _kind_words(cells)
    refuse_cells(
        ~said.is_in(KINDS).fill_null(value=False),
        cells,
        f"is no kind of annotator; give {' or '.join(KINDS)}",
        where=where,
    )
    return (said == KINDS[1]).to_numpy()


def _kind_words(cells: pl.Series) -> pl.Series:
    if cells.dtype.is_nested() or cells.dtype in (pl.Binary, pl.Object):
        return pl.repeat(None, len(cells), dtype=pl.String, eager=True)
    return cells.cast(pl.String).str.strip_chars().str.to_lowercase().replace(_KIND_SPELLINGS)


def parse_seconds(cells: pl.Series, *, where: Where) -> Floats:
    """(rows,) seconds, NaN where a cell is empty."""
    why = "is not a time; give seconds as a number of 0 or more, or leave the cell empty"
    refuse_cells(not_seconds(cells), cells, why, where=where)
    return cells.cast(pl.Float64).fill_null(float("nan")).to_numpy()


def not_seconds(cells: pl.Series) -> pl.Series:
    """(rows,) true where a cell is neither empty nor a number of seconds."""
    if not (cells.dtype.is_numeric() or cells.dtype == pl.String):
        return cells.is_not_null()
    values = cells.cast(pl.Float64, strict=False)
    # NaN is how many tools write an empty cell.
    right = values.is_nan() | (values.is_finite() & (values >= 0))
    return cells.is_not_null() & ~right.fill_null(value=False)


def parse_times(cells: pl.Series, *, where: Where) -> Times:
    """(rows,) moments in UTC, NaT where a cell is empty."""
    moments = times_of(cells)
    refuse_cells(
        moments.is_null() & ~_is_empty(cells),
        cells,
        "is no moment; write it as 2024-05-31 17:45:00, in UTC or with its offset, or as UNIX seconds, or leave the "
        "cell empty",
        where=where,
    )
    return moments.to_numpy().astype("datetime64[us]")


def refuse_cells(wrong: pl.Series, cells: pl.Series, why: str, *, where: Where) -> None:
    """Refuse a column of which a cell is wrong, with the first of these and why."""
    if wrong.any():
        row = int(wrong.to_numpy().argmax())
        value = cells.dtype if cells.dtype.is_nested() else cells[row]
        raise InputError(f"{where(row)}: '{value}' in column '{cells.name}' {why}")


def holds_times(cells: pl.Series) -> bool:
    """Whether a column has cells, and all of them are moments."""
    empty = _is_empty(cells)
    return bool((times_of(cells).is_not_null() | empty).all() and not empty.all())


def holds_no_times(cells: pl.Series) -> bool:
    """Whether a column has cells, and none of them is a moment."""
    return bool(times_of(cells).is_null().all() and not _is_empty(cells).all())


def times_of(cells: pl.Series) -> pl.Series:
    """(rows,) moments in UTC; null where a cell is empty or none: a date and time as ISO 8601 writes it, or UNIX time.

    UNIX time is in seconds, milliseconds or microseconds, the same for the whole column: which of them is told by the
    size of its numbers, which lie between 1973 and 5138. `03/04/2024` is no moment here: it has two readings.
    """
    nothing = pl.repeat(None, len(cells), dtype=pl.Datetime("us"), eager=True).alias(cells.name)
    if cells.dtype == pl.Date or isinstance(cells.dtype, pl.Datetime):
        moments = cells.cast(pl.Datetime("us"))
        if getattr(cells.dtype, "time_zone", None) is None:
            return moments
        return cells.dt.convert_time_zone("UTC").dt.replace_time_zone(None).cast(moments.dtype)
    if not (cells.dtype.is_numeric() or cells.dtype == pl.String):
        return nothing
    numbers = cells.cast(pl.Float64, strict=False)
    for unit in (1, 1_000, 1_000_000):
        known = numbers.is_between(1e8 * unit, 1e11 * unit, closed="left").fill_null(value=False)
        if known.any():
            moments = (numbers.filter(known) * (1_000_000 // unit)).round().cast(pl.Int64).cast(pl.Datetime("us"))
            return moments.gather(known.cum_sum().cast(pl.Int64) - 1).zip_with(known, nothing)
    if cells.dtype != pl.String:
        return nothing
    parts = cells.str.strip_chars().str.extract_groups(_MOMENT).struct.unnest()
    day, clock, seconds, offset = (parts[name] for name in parts.columns)
    text = day + " " + clock.fill_null("00:00") + seconds.fill_null(":00")
    moments = text.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="us", strict=False)
    digits = offset.str.replace_all(":", "").cast(pl.Int64, strict=False).fill_null(0)
    minutes = (digits.abs() // 100 * 60 + digits.abs() % 100) * digits.sign()
    return moments - (minutes * 60_000_000).cast(pl.Duration("us"))


_MOMENT: Final = r"^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(:\d{2}(?:\.\d{1,9})?)?\s*(?:Z|UTC|([+-]\d{2}:?\d{2}))?)?$"
"""Date, hours and minutes, seconds, and offset from UTC."""


def _is_empty(cells: pl.Series) -> pl.Series:
    return cells.is_null() if cells.dtype != pl.String else (cells == "").fill_null(value=True)


def describe(cells: pl.Series, code: Codes, *, names: Names, what: str, where: Where) -> Names:
    """(names,) the one value that each annotator or item has in a column; empty text where all its cells are empty."""
    values = name_like(cells, where=where)
    if values.null_count():
        values = values.cast(pl.String).fill_null("")
    said = np.flatnonzero(~_is_empty(values).to_numpy())[::-1]
    first = np.zeros(len(names), dtype=np.int64)
    for rows in (np.arange(code.size - 1, -1, -1), said):  # an empty cell contradicts nobody
        first[code[rows]] = rows
    kept = values.gather(first)
    other = said[(kept.gather(code[said]) != values.gather(said)).to_numpy()]
    if other.size:
        row, who = int(other[-1]), int(code[other[-1]])
        elsewhere = "; one of items is named with item_attributes=" if what == "annotator" else ""
        raise InputError(
            f"{where(row)}: {what} '{names[who]}' has '{cells[row]}' in column '{cells.name}', and "
            f"'{kept[who]}' before; an attribute has one value per {what}{elsewhere}"
        )
    return to_names(kept)


def name_like(cells: pl.Series, *, where: Where) -> pl.Series:
    """Cells as whole numbers or text, with nulls where they are empty."""
    dtype = cells.dtype
    if dtype.is_nested() or dtype in (pl.Binary, pl.Object):
        raise InputError(
            f"{where(0)}: column '{cells.name}' holds lists, objects or bytes; give a name or a number in each cell"
        )
    if dtype.is_float():
        cells = cells.fill_nan(None)
    if dtype.is_numeric():
        whole = cells.cast(pl.Int64, strict=False)
        fits = whole.null_count() == cells.null_count() and (dtype.is_integer() or (whole == cells).all())
        return whole if fits else cells.cast(pl.String)
    return cells if dtype in (pl.String, pl.Enum, pl.Categorical) else cells.cast(pl.String)


def refuse_missing(cells: pl.Series, *, where: Where) -> None:
    """Refuse a column with an empty cell."""
    if isinstance(cells.dtype, pl.Enum | pl.Categorical) and "" in cells.unique().cast(pl.String):
        cells = cells.cast(pl.String)
    missing = _is_empty(cells)
    if missing.any():
        row = int(missing.to_numpy().argmax())
        raise InputError(f"{where(row)}: column '{cells.name}' is empty; fill the cell or remove the row")


def is_missing(cells: pl.Series, tokens: Sequence[str]) -> pl.Series:
    """(rows,) true where a cell is empty or holds one of the words for a missing label."""
    if cells.dtype.is_nested():
        return cells.is_null()
    missing = cells.is_null() if "" in tokens else pl.repeat(value=False, n=len(cells), eager=True)
    words = [token for token in tokens if token or cells.dtype == pl.String]
    if cells.dtype.is_float() and "" in tokens:
        missing = missing | cells.is_nan()
    if numbers := [float(token) for token in words if _NUMBER.fullmatch(token)]:
        # 99.0 is 99, as a class is too.
        missing = missing | cells.cast(pl.Float64, strict=False).is_in(numbers).fill_null(value=False)
    if cells.dtype.is_numeric() or not words:
        return missing
    return missing | cells.cast(pl.String).is_in(words).fill_null(value=False)


def missing_words(cells: pl.Series) -> list[str]:
    """The labels of a column that may stand for a missing one."""
    if cells.dtype.is_nested() or cells.dtype.is_numeric():
        return []
    words = cells.unique().drop_nulls().cast(pl.String).sort()
    return words.filter((words != "") & (words.is_in(MISSING) | words.str.contains(_NO_ANSWER))).to_list()


def with_points(cells: pl.Series) -> pl.Series:
    """Text with a point for the comma of each cell that is a number with one: 0,25 is a quarter."""
    return cells.str.replace(r"^\s*([+-]?\d+),(\d+(?:[eE][+-]?\d+)?)\s*$", "$1.$2")


def numbers_of(table: pl.DataFrame) -> pl.DataFrame:
    """Read cells as numbers. `80 %` is 0.8 and `3/5` is 0.6. Text that is no number is null.

    >>> numbers_of(pl.DataFrame({"share": ["80 %", "3/5", "12,5%", "2", "x"]}))["share"].to_list()
    [0.8, 0.6, 0.125, 2.0, None]
    """
    numbers = table.select(pl.all().cast(pl.Float64, strict=False))
    for cells in table.select(pl.selectors.string()):
        part, of = cells.str.replace(",", ".").str.extract_groups(_SHARE).struct.unnest().cast(pl.Float64)
        numbers = numbers.with_columns(numbers[cells.name].fill_null(part / of.fill_null(100)))
    return numbers


def separator_mark(distinct: pl.Series) -> str | None:
    """The first of `SEPARATORS` that stands in any label."""
    return next((mark for mark in SEPARATORS if distinct.str.contains(mark, literal=True).any()), None)


def separator_of(distinct: pl.Series, path: Path) -> str | None:
    """What splits cells that hold several labels; None where every one of the distinct cells is one label.

    Cells are split where every part of every one of them also stands alone; where only some do, the user must say.
    """
    mark = separator_mark(distinct)
    if mark is None:
        return None
    joined = distinct.str.contains(mark, literal=True)
    parts = distinct.filter(joined).str.split(mark).explode().str.strip_chars()
    if parts.is_in(distinct.filter(~joined).implode()).all():
        return mark
    raise InputError(
        f"{path}: labels such as '{distinct.filter(joined).sort()[0]}' may be one label or several; "
        f"choose format='long', or format='sets' with separator='{mark}'"
    )
