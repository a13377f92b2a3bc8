"""Columns and rows that sum up a table's votes and are none: told by their names, and by what they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from dissensus.errors import InputError
from dissensus.votes.cells import MISSING
from dissensus.votes.columns import SUMMARIES, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.table_file import Rows

ENOUGH: Final = 0.8
"""The share of rows in which a majority is that of the votes: ties and adjudication go one way or the other."""

ROUNDED: Final = 0.06
"""How far the mean in a row of means may be from that of the cells."""

HOLDS: Final = {
    "number": "the number of votes",
    "sum": "the sum of the others",
    "mode": "in most rows the most frequent of the others",
    "fractions": "numbers that can be no votes, as the others are whole",
}
"""What a column that is left out is said to hold."""


_CALLED: Final = [spelling for name in SUMMARIES if len(name) > 1 for spelling in {name, name.replace("_", " ")}]


def summary_columns(panel: pl.DataFrame) -> dict[str, str | None]:
    """By name, the columns that are called like a summary, and which of `HOLDS` they hold; None where it is none."""
    named = [column for column in panel.columns if plain(column) in SUMMARIES]
    held = {column: _held(SUMMARIES[plain(column)], panel[column], panel.drop(named)) for column in named}
    # Beside other single letters, as in `y` and `n`, an `n` that counts nothing is a name like any other.
    letters = [column for column in panel.columns if len(column) == 1]
    names = [column for column in letters if len(letters) > 1 and held.get(column, "none") is None]
    return summary_columns(panel.rename({name: f"the class {name}" for name in names})) if names else held


def _held(kind: str, cells: pl.Series, votes: pl.DataFrame) -> str | None:
    if not votes.width or any(dtype.is_nested() for dtype in (cells.dtype, *votes.dtypes)):
        return None
    text, value = votes.select(_spelled(pl.all())), cells.to_frame("value").select(_spelled(pl.all()))
    numbers, number = (table.select(pl.all().cast(pl.Float64, strict=False)) for table in (text, value))
    given = value["value"].count()
    if kind in ("number", "sum"):
        there = text.select(pl.sum_horizontal(pl.all().is_not_null())).to_series()
        total = numbers.select(pl.sum_horizontal(pl.all(), ignore_nulls=False)).to_series()
        known = {"number": there, "sum": total} if kind == "number" else {"sum": total, "number": there}
        return next((one for one, own in known.items() if given and (own == number["value"]).sum() == given), None)
    if kind == "mode":
        row = pl.int_range(pl.len()).alias("row")
        said = text.with_columns(row).unpivot(index="row").drop_nulls("value")
        frequent = said.group_by("row", "value").len().filter(pl.col("len") == pl.col("len").max().over("row"))
        # Of counts, it is the class with the largest.
        counted = numbers.with_columns(row).unpivot(index="row", variable_name="class")
        largest = counted.filter(pl.col("value") == pl.col("value").max().over("row"))
        pairs = pl.concat([frequent.select("row", "value"), largest.select("row", value="class")])
        equal = value.with_columns(row).join(pairs, on=["row", "value"], how="semi").height
        return kind if equal >= max(ENOUGH * given, votes.height / 2) else None
    fractions = [bool((column % 1 != 0).any()) for column in (number["value"], *numbers)]
    return "fractions" if fractions[0] and not any(fractions[1:]) and number["value"].count() == given else None


def sums_of_others(panel: pl.DataFrame) -> list[str]:
    """The columns, of three or more, that are the sum of the others in every row, whatever they are called."""
    if panel.width < 3 or panel.height < 3 or not all(dtype.is_numeric() for dtype in panel.dtypes):
        return []
    total = panel.sum_horizontal()
    return [name for name in panel.columns if total.sum() and (2 * panel[name] == total).all()]


def _spelled(cells: pl.Expr) -> pl.Expr:
    """Cells as text, 2.0 as 2, and null where nothing is said."""
    text = cells.cast(pl.String).str.strip_chars().str.replace(r"^(-?\d+)\.0+$", "${1}")
    return pl.when(~text.is_in(MISSING)).then(text)


def without_headers(rows: Rows, notes: list[str]) -> Rows:
    """The rows that are not the header once more."""
    if not rows.header or any(dtype != pl.String for dtype in rows.table.dtypes):
        return rows
    again = pl.repeat(value=True, n=rows.table.height, eager=True)
    for column in rows.table:
        again = again & (column == column.name).fill_null(value=False)
        if not again.any():
            return rows
    notes.append(
        f"left out: {again.sum():,} {'line that repeats' if again.sum() == 1 else 'lines that repeat'} the header"
    )
    return rows.without(again).read_again()


def without_summary_rows(
    rows: Rows, item: str, votes: Sequence[str], notes: list[str], *, annotator: str | None = None, long: bool = False
) -> Rows:
    """The rows but those that sum up the others: the last may be their sum, and those called Total or Mean either.

    In a long file only the last three may, and where it names annotators, only if they name none. A row that is called
    so, and holds what others hold, is kept as an item and told; one that holds anything else is refused.
    """
    table, columns = rows.table, list(votes)
    first = max(0, table.height - 3) if long else 0
    names = table[item].slice(first)
    if any(table.schema[name].is_nested() for name in (item, *votes)):
        return rows
    called = []
    if not names.dtype.is_numeric():
        words = names.cast(pl.String).str.strip_chars().str.to_lowercase().is_in(_CALLED)
        called = [first + place for place in words.fill_null(value=False).arg_true().to_list()]
    gone: list[int] = []
    for row in called[:9] if long else sorted({*called[:9], table.height - 1}):
        name, cells = table[item][row], table[[row], columns]
        others = table[columns].filter(~pl.int_range(pl.len()).is_in(called)) if called else table[columns].head(row)
        if annotator is not None:
            sums_up = not table[annotator].cast(pl.String)[row]
        else:
            sums_up = _sums_up(cells, others, called=row in called)
        if sums_up:
            gone.append(row)
            notes.append(f"left out: the row '{name}', which sums up the others")
        elif row in called:
            known = pl.concat([column.cast(pl.String).alias("cell") for column in others])
            if not all(cell in known for cell in cells.select(pl.all().cast(pl.String)).row(0) if cell is not None):
                raise InputError(
                    f"{rows.where(row)}: the item '{name}' is called like a summary of the others, and holds no "
                    "such thing, nor labels of theirs; remove the line, or correct it"
                )
            notes.append(f"item '{name}' is called like a summary of the others, and is kept as an item")
    return rows.without(pl.int_range(table.height, eager=True).is_in(gone)).read_again() if gone else rows


def _sums_up(row: pl.DataFrame, others: pl.DataFrame, *, called: bool) -> bool:
    """Whether a row holds the sum of each column of the others; or, where it is called so, their mean or number."""
    cells = row.select(pl.all().cast(pl.Float64, strict=False))
    cells = cells.select(column for column in cells if column[0] is not None)
    if not cells.width or cells.width < row.width - row.null_count().sum_horizontal().item():
        return False
    others = others[cells.columns].select(_spelled(pl.all())) if called else others[cells.columns]
    numbers = others.select(pl.all().cast(pl.Float64, strict=False))
    known = [numbers.sum(), numbers.mean(), others.count()] if called else [numbers.sum()]
    larger = all(total > (top or 0) for total, top in zip(known[0].row(0), numbers.max().row(0), strict=True))
    equal = any((abs((own - cells).to_numpy()) < ROUNDED).all() for own in known)
    return equal and (called or (larger and others.height >= 5))
