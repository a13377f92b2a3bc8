"""Tables with one row per item: whether their columns are annotators or classes, and the votes in them."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from dissensus.errors import InputError, choices
from dissensus.votes.cells import MISSING, describe, holds_times, numbers_of
from dissensus.votes.columns import (
    ABOUT_ITEMS,
    ROW_NUMBERS,
    SETTLED,
    choose,
    counts_people,
    guess,
    is_annotator,
    listed,
    names_rows,
    people_column,
    plain,
    require,
)
from dissensus.votes.echo import Plain, drop_notes
from dissensus.votes.formats import FORMATS, LONG_COLUMNS, Reading, in_formats, unclear
from dissensus.votes.grid import (
    OF_PARTS,
    are_counts,
    are_shares,
    other_meanings,
    votes_from_count_rows,
    votes_from_parts,
    votes_from_wide,
)
from dissensus.votes.lists import parsed
from dissensus.votes.long_form import read_long
from dissensus.votes.roles import choose_item, item_columns, label_columns, label_readings, long_readings
from dissensus.votes.scales import refuse_labels
from dissensus.votes.summaries import HOLDS, summary_columns, sums_of_others, without_headers, without_summary_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.table_file import OpenTable, Rows
    from dissensus.votes.formats import Options
    from dissensus.votes.own import Own
    from dissensus.votes.roles import Readings
    from dissensus.votes.table import Votes


def read_wide(table: OpenTable, options: Options, own: Own | None) -> Reading:
    """The votes of a table with one row per item, wide or of counts; `own` is what it says of itself."""
    path, available = table.path, table.columns
    if options.panel is not None:
        kept_of_items = (name for name in options.item_attributes if name in available or name not in OF_PARTS)
        options = replace(options, item_attributes=tuple(kept_of_items))
    free = [name for name in available if name not in options.item_attributes]
    item = choose("item", options.item, free if options.item is None else available, path=path)
    for name in options.item_attributes:
        choose("item_attributes", name, available, path=path)
    if options.format is None and {"majority", "tied", "entropy", "judgements"} <= set(available):
        raise InputError(
            f"{path}: this holds label distributions, as `dissensus labels` writes them, and no votes; give the votes "
            "that they were made of, or read it with dis.labels.read_labels or `dissensus labels FILE --probabilities`"
        )
    notes: list[str] = []
    rows = _with_one_order(table.rows(available, as_text=() if own is None else own.text))
    if own is None:
        rows = without_headers(rows, notes)
    fit = [
        name
        for name in ([] if own is not None else [*item_columns(free), *filter(names_rows, free)])
        if not rows.table.schema[name].is_nested() and rows.table[name].n_unique() == rows.table.height
    ]
    item = next(iter(fit), item) if options.item is None else item
    row_numbers = [name for name in fit if name != item and plain(name) in ROW_NUMBERS]
    beside = [name for name in available if name != item and name not in row_numbers]
    about = list(options.item_attributes)
    if own is None and options.classes is None:
        about += [name for name in beside if plain(name) in ABOUT_ITEMS and name not in about]
    annotators = _named_annotators(table, options.annotators, beside)
    if options.panel is not None:
        choose("label", options.label, beside, path=path)
    classes = [options.label] if options.panel is not None and options.label is not None else options.classes or ()
    # In a wide table, classes are labels.
    named = annotators or (list(classes) if options.format != "wide" and set(classes) <= set(beside) else [])
    cells = named or [name for name in beside if name not in (*about, options.panel)]
    chosen = options.format or ("wide" if annotators else "counts" if named or options.panel else None)
    if chosen is None:
        if item is not None and guess("label", available) and not rows.table[item].is_unique().all():
            # A repeated item has one row for each label, which may hold the number of people who gave the label.
            return read_long(table, options, own)
        label = _unnamed_label(table, rows, item, options)
        if label is not None:
            return read_long(table, replace(options, label=label), own)
    categories = set(rows.table[cells].dtypes) if cells else set()
    if len(categories) == 1 and isinstance(one := categories.pop(), pl.Enum):
        scale = True if options.ordered is None and {*cells} <= {*table.scales} else options.ordered
        options = replace(options, classes=options.classes or tuple(one.categories), ordered=scale)
        chosen = chosen or "wide"
        rows = replace(rows, table=rows.table.with_columns(rows.table[cells].select(pl.all().cast(pl.String))))
    if own is None and item is not None:
        rows = without_summary_rows(rows, item, cells, notes)
    if own is None and not named and cells:
        cells, counted = _without_summaries(rows, cells, item, options, notes)
        chosen = "counts" if chosen is None and counted else chosen
    chosen = chosen or _wide_or_counts(rows.table[cells] if cells else pl.DataFrame(), table, item)
    unused = [*row_numbers, *(name for name in beside if named and name not in (*named, *about, options.panel))]
    notes.extend([Plain(f"not used: {listed(unused)}")] if unused else [])
    unfit = [name for name in LONG_COLUMNS if name != "label" or options.panel is None]
    unfit += ["duplicates", "panel"] if chosen == "wide" else ["bins", "duplicates", "merge_spellings"]
    options.refuse(path, chosen, *unfit)
    if set(about) > set(options.item_attributes):
        notes.append(Plain(f"the columns {listed(about)} describe items, and are kept as such"))
    columns = {} if item is None else {"item": item}
    rows, lost = _with_losses(rows, item, cells, replace(options, format=chosen), notes)
    of: Any = slice(None)
    if chosen == "counts":
        options.refuse(path, chosen, "annotators", "missing")
        if item is None:
            notes.append(Plain("items are numbered from 0"))
        if options.panel is not None:
            votes, of = votes_from_parts(rows, item=item, classes=cells, panel=options.panel, notes=notes)
        else:
            counted_rows = replace(rows, table=rows.table[[*columns.values(), *cells]])
            votes = votes_from_count_rows(counted_rows, item=item, classes=options.classes, ordered=options.ordered)
    else:
        item = require("item", item, available, path=path)
        votes = _votes_of_annotators(rows, item, cells, options, own, notes)
    row = np.arange(rows.table.height, dtype=np.int32)
    described = {name: describe(rows.table[name], row, names=row, what="item", where=rows.where) for name in about}
    said = {name: values[of] for name, values in described.items()}
    votes = replace(votes, item_attributes={**votes.item_attributes, **said})
    return Reading(votes=votes, format=chosen, columns=columns, notes=tuple(notes), lost=lost)


def _with_one_order(rows: Rows) -> Rows:
    """The rows, with text for categories of unlike orders: they are names like any other."""
    ranked = {dtype for dtype in rows.table.dtypes if dtype in (pl.Enum, pl.Categorical)}
    if len(ranked) < 2:
        return rows
    text = pl.col([name for name, dtype in rows.table.schema.items() if dtype in ranked]).cast(pl.String)
    return replace(rows, table=rows.table.with_columns(text))


def _votes_of_annotators(
    rows: Rows, item: str, cells: list[str], options: Options, own: Own | None, notes: list[str]
) -> Votes:
    """The votes of a table with one column per annotator; dates and times among these are refused."""
    guessed = own is None and not options.annotators
    moments = [name for name in cells if holds_times(rows.table[name])] if guessed else []
    if moments and (others := [name for name in cells if name not in moments]):
        raise InputError(
            f"{rows.path}: {listed(moments)} holds dates and times, which are no labels; name the annotators, or "
            "choose",
            readings={"the others are the annotators": {"annotators": others}},
        )
    votes = votes_from_wide(
        replace(rows, table=rows.table[[item, *cells]]),
        item=item,
        classes=options.classes,
        ordered=options.ordered if options.bins is None else options.ordered is not False,
        merge=options.merge_spellings,
        missing=("",) if own is not None else options.missing,
        bins=options.bins,
        text_annotators=own is not None and "annotator" in own.text,
        notes=notes,
    )
    if own is None:
        refuse_labels(votes, options, column="", path=rows.path)
    return votes


def _without_summaries(
    rows: Rows, columns: list[str], item: str | None, options: Options, notes: list[str]
) -> tuple[list[str], bool]:
    """The columns but those that sum up the others; and whether one of these says that the others are counts."""
    held = summary_columns(rows.table[columns])
    notes.extend(f"left out: column '{name}', {HOLDS[kind]}" for name, kind in held.items() if kind is not None)
    votes = [name for name in columns if name not in held]
    doubtful = [name for name, kind in held.items() if kind is None] or sums_of_others(rows.table[votes])
    if options.format == "wide" or not all(rows.table.schema[name].is_numeric() for name in votes):
        settled = [name for name in votes if SETTLED.intersection(plain(name).split("_"))]
        doubtful += settled if len(settled) <= len(votes) - 2 else []
    votes = [name for name in votes if name not in doubtful]
    if doubtful:
        both = [name for name in columns if name in (*votes, *doubtful)]
        people = {"no annotator": {"annotators": votes}, "an annotator": {"annotators": both}}
        classes = {"no class of a table of counts": votes, "a class of a table of counts": both}
        raise InputError(
            f"{rows.path}: {listed(doubtful)} is called like a summary of the others, or adds them up; choose one",
            readings=(people if options.format != "counts" and item is not None and votes else {})
            | {
                meaning: {"format": "counts", "classes": names}
                for meaning, names in classes.items()
                if options.format != "wide" and names and are_counts(rows.table[names])
            },
        )
    return votes, any(kind == "sum" and counts_people(name) for name, kind in held.items())


def _unnamed_label(table: OpenTable, rows: Rows, item: str | None, options: Options) -> str | None:
    """The column of labels of a file with one row per vote or with lists, where no name says which it is."""
    cells, annotator = rows.table, guess("annotator", table.columns)
    taken = (*options.item_attributes, people_column(table.columns))
    lists = [
        name
        for name in table.columns
        if name not in taken
        and isinstance(dtype := parsed(cells[name], where=rows.where).dtype, pl.List)
        and not dtype.inner.is_nested()
    ]
    labels = lists
    if not lists and annotator is not None and sum(is_annotator(name) for name in table.columns) == 1:
        if item is not None and cells[item].n_unique() == cells.height and len(item_columns(table.columns)) == 1:
            return None
        known = {guess(role, table.columns) for role in ("annotator", "seconds", "time")}
        free = [name for name in table.columns if name not in {*known, *taken}]
        item = options.item or choose_item(table, free, annotator, None, notes=[])
        about = {name for name in free if plain(name) in ABOUT_ITEMS} | set(item_columns(free))
        labels = label_columns(cells, item, annotator, {*known, *taken, *about})
        if len(labels) == 1 and not {*free} - {*labels, *about}:
            return labels[0]
    if len(lists) == 1:
        return lists[0]
    if not labels:
        return None
    raise InputError(
        f"{table.path}: none of the columns {listed(table.columns)} is known to hold the label; name it with label=",
        readings={f"'{name}' holds lists of labels": {"label": name} for name in lists}
        | label_readings(cells, [name for name in labels if name not in lists]),
    )


def _with_losses(
    rows: Rows, item: str | None, panel: list[str], options: Options, notes: list[str]
) -> tuple[Rows, dict[str, list[object]]]:
    """Return the rows but those without votes, or that repeat an item, if the user chose so; and these by reason."""
    lost: dict[str, pl.Series] = {}
    if options.drop_empty:
        words = list(MISSING if options.missing is None else ("", *options.missing))
        words += ["0", "0.0"] if options.format == "counts" else []
        text = rows.table[panel].select(pl.all().cast(pl.String).fill_null(""))
        lost["without a vote"] = text.select(pl.all_horizontal(pl.all().is_in(words))).to_series()
    if item is not None:
        again = ~rows.table[item].is_first_distinct() & rows.table[item].is_not_null()
        if again.any() and not options.drop_repeated:
            row = int(again.arg_true()[0])
            raise InputError(
                f"{rows.where(row)}: item '{rows.table[item][row]}' has a row already; give one row per item",
                readings={"keep the first row of each item": {"drop_repeated": True}},
            )
        lost["repeated"] = again
    lost = {why: mask for why, mask in lost.items() if mask.any()}
    if not lost:
        return rows, {}
    names = rows.table[item] if item is not None else pl.Series(np.arange(rows.table.height))
    gone = {why: names.filter(mask).to_list() for why, mask in lost.items()}
    notes += drop_notes(gone)
    return rows.without(pl.DataFrame(lost).select(pl.any_horizontal(pl.all())).to_series()), gone


def _named_annotators(table: OpenTable, patterns: Sequence[str], beside: Sequence[str]) -> list[str]:
    result = [name for name in beside if name in patterns or any(fnmatchcase(name, pattern) for pattern in patterns)]
    for pattern in patterns:
        if pattern not in beside and not any(fnmatchcase(name, pattern) for name in beside):
            raise InputError(f"{table.path}: no column fits '{pattern}' of annotators={choices(pattern, beside)}")
    return result


def _wide_or_counts(panel: pl.DataFrame, table: OpenTable, item: str | None) -> str:
    """Which of the two a table is, where its names or values leave no doubt; a damaged cell must not tip it.

    Refuses a table that may be either, or in which only some columns look like annotators.
    """
    labels = panel.columns[:3] if item is not None else ()

    def ambiguous() -> InputError:
        error = unclear(table, "wide", "counts", labels=labels)
        return error if item is not None else InputError(error.sentence, readings=_by_values(panel) or error.readings)

    if panel.width < 2 or any(dtype.is_nested() for dtype in panel.dtypes):
        raise ambiguous()
    named = [column for column in panel.columns if is_annotator(column)]
    if len(named) == panel.width or (table.across is not None and guess("annotator", [table.across])):
        return "wide"
    numbers = numbers_of(panel)
    _refuse_shares(numbers, table)
    if numbers.null_count().sum_horizontal().item() == 0 and not named:
        other = other_meanings(numbers, wide=item is not None)
        if other is None or (table.across is not None and guess("label", [table.across]) and are_counts(panel)):
            return "counts"
        why, ways = other
        if not why:
            raise unclear(table, *(way["format"] for way in ways), labels=labels)
        shares = "how many of so many people chose each class, in numbers, shares or percent"
        readings = {FORMATS.get(way.get("format", ""), shares): way for way in ways}
        raise InputError(f"{table.path}: {why}; choose one of these", readings=readings)
    text = panel.select(pl.all().cast(pl.String))
    filled = text.select(pl.all().is_not_null().sum()).row(0)
    numeric = numbers.select(pl.all().is_not_null().sum()).row(0)
    if not named and all(2 * number >= cells for number, cells in zip(numeric, filled, strict=True)):
        raise ambiguous()
    # An annotator's labels are also those of others; a text, an address or a gold label of its own kind is not.
    alike = [
        name
        for name, cells in zip(text.columns, filled, strict=True)
        if 2 * text[name].drop_nulls().is_in(_cells(text.drop(name)).unique().implode()).sum() >= cells
    ]
    everywhere = _cells(text).drop_nulls()
    if len(alike) == panel.width and not named:
        if 2 * everywhere.n_unique() <= len(everywhere):
            return "wide"
        raise ambiguous()
    sure_ones = named or alike
    if len(sure_ones) < 2 or item is None:
        raise ambiguous()
    odd = [name for name in text.columns if name not in sure_ones]
    raise InputError(
        f"{table.path}: the columns {listed(odd)} may be annotators like {listed(sure_ones)}, or describe items; name "
        "the annotators with annotators=",
        readings={
            "they describe items": {"annotators": sure_ones, "item_attributes": odd},
            "they are annotators": {"annotators": panel.columns},
        },
    )


def _cells(text: pl.DataFrame) -> pl.Series:
    return pl.concat([column.alias("cell") for column in text])


def _by_values(panel: pl.DataFrame) -> Readings:
    """The readings of a table none of whose columns is called like items: those that its values allow."""
    own = [name for name in panel.columns if panel[name].dtype == pl.String and panel[name].is_unique().all()]
    wide = {f"{FORMATS['wide']}; items by '{own[0]}'": {"format": "wide", "item": own[0]}} if own else {}
    return long_readings(panel) | wide | (in_formats("counts") if are_counts(panel) else {})


def _refuse_shares(numbers: pl.DataFrame, table: OpenTable) -> None:
    """Refuse a table with a column of how many people judged an item, and others of which share of them said yes."""
    shares = [column.name for column in numbers if column.null_count() == 0 and column.is_between(0, 1).all()]
    people = [name for name in table.columns if counts_people(name)]
    if people and shares and are_shares(numbers[shares].to_numpy()):
        panel = {"panel": people[0]}
        raise InputError(
            f"{table.path}: the columns {listed(shares)} are shares of the people that '{people[0]}' counts; say which",
            readings={
                f"a vote of yes or no per person, for what '{shares[0]}' says": {"label": shares[0], **panel},
                "as many for each of the columns": {"classes": shares, **panel},
            },
        )
