"""Columns of a long file without a use, asked about where another use of them would change the votes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from dissensus.errors import InputError
from dissensus.votes.cells import numbers_of
from dissensus.votes.columns import (
    ABOUT_ITEMS,
    ITEM_PARTS,
    SYNONYMS,
    WITHOUT_UNIT,
    item_parts,
    listed,
    names_rows,
    plain,
)
from dissensus.votes.formats import FORMATS
from dissensus.votes.grid import are_counts
from dissensus.votes.roles import FEW, label_columns, label_readings
from dissensus.votes.scales import SLIDER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.table_file import OpenTable
    from dissensus.votes.columns import Columns
    from dissensus.votes.formats import Options

_LABELS: Final = frozenset([*SYNONYMS["label"], *SYNONYMS["response"]])
_ITEMS: Final = frozenset(SYNONYMS["item"])


def refuse_other_uses(table: OpenTable, columns: Columns, options: Options, *, format: str) -> None:  # noqa: A002
    """Raise where an unused column may be a time, a part of the item, the label, or a number of votes.

    `format` is the format that was found. Naming it says that such a time or number is not used.
    """
    item, label = columns.item, columns.label
    parts = item_parts(item, table.columns) or [item]
    who = [] if columns.annotator is None else [columns.annotator]
    unused = {name: plain(name) for name in table.columns if name not in (*columns.names(), *parts)}
    if not unused:
        return

    def cells(names: Sequence[str]) -> pl.DataFrame:
        held = table.rows(list(dict.fromkeys([*parts, *who, label, *names]))).table
        flat = held.select(name for name, dtype in held.schema.items() if name == label or not dtype.is_nested())
        return flat if item in flat.columns else flat.with_columns(pl.struct(parts).alias(item))

    times = [name for name, called in unused.items() if called in WITHOUT_UNIT]
    if times and columns.seconds is None and not (options.format or options.label):
        raise InputError(
            f"{table.path}: '{times[0]}' may hold seconds or milliseconds; choose",
            readings={"seconds": {"seconds": times[0]}, "anything else: it is not used": {"format": format}},
        )
    named = [name for name, called in unused.items() if called in (*ITEM_PARTS, *_ITEMS)]
    whole = cells(named)
    items, rows = whole[item].n_unique(), whole.height
    # Where people seem to judge items twice, the refusal of that names finer items.
    who = [name for name in who if name in whole.columns]
    once = not who or rows - whole.n_unique([item, *who]) <= FEW * rows
    if named and options.item is None and once:
        size = {name: whole.n_unique([item, name]) for name in named if name in whole.columns}
        # An id that differs in most rows numbers the judgements.
        most = {name: rows if unused[name] in ITEM_PARTS else 2 * rows // 3 for name in size}
        finer = [name for name in size if items < size[name] <= most[name]]
        ways = {f"'{item}' and '{name}' together": {"item": f"{item},{name}"} for name in finer}
        ways |= {"all of them together": {"item": ",".join([item, *finer])}} if len(finer) > 1 else {}
        if finer:
            raise InputError(
                f"{table.path}: {listed(finer)} differs within '{item}'; choose what names the item",
                readings=ways | {f"'{item}' alone": {"item": item}},
            )
    if format != "long" or columns.response is not None:
        return
    # A user may name the item's column as that of the label.
    distinct = whole.n_unique([*{item, label}])
    numbers: list[str] = []
    if not who and not (options.format and options.label) and distinct == rows:
        free = [name for name in unused if not (unused[name] in (*ABOUT_ITEMS, *_ITEMS) or names_rows(name))]
        held = cells(free)
        for column in numbers_of(held.select(name for name in held.columns if name in free)):
            part = (column % 1 == 0).all() or (column <= 1).all()
            numbers += [column.name] if part and (column >= 0).all() and column.n_unique() > 1 else []
    # Labels that never differ within an item describe it, where others differ.
    settled = distinct == items < rows
    rivals = [name for name in unused if settled or unused[name] in _LABELS] if options.label is None else []
    if rivals:
        whole = cells(rivals)
        of = (None if items == rows else item, columns.annotator)
        others = label_columns(whole, *of, (item, *parts, label))
        graded = label_columns(whole, *of, (item, *parts, label, *others), most=rows)
        graded = [
            name for name in graded if unused[name] in _LABELS and not numbers_of(whole[[name]])[name].has_nulls()
        ]
        ways = label_readings(whole, [label, *others])
        ways |= {f"the labels are in '{name}', {SLIDER}": {"label": name, "bins": ["5"]} for name in graded}
        if others or graded:
            raise InputError(
                f"{table.path}: the columns {listed([label, *others, *graded])} may each hold the label; choose",
                readings={meaning: ({"format": "long"} if numbers else {}) | way for meaning, way in ways.items()},
            )
    if numbers:
        ways = {"one row per vote, and the numbers are about something else": {"format": "long", "label": label}}
        remedy = f"pandas: frame.set_index(['{item}', '{label}'])['{numbers[0]}'].unstack(fill_value=0)"
        if len(numbers) > 1 and items == rows and are_counts(cells(numbers)[numbers]):
            ways |= {FORMATS["counts"]: {"format": "counts", "classes": numbers}}
        raise InputError(
            f"{table.path}: each item and label has one row, and {listed(numbers)} may say how many people gave it; "
            f"write one column per class ({remedy}), or choose",
            readings=ways,
        )
