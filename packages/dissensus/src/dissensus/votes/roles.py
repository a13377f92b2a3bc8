"""Which column of a file holds what: as given, by its name, and by its values where names leave it open."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from dissensus.errors import InputError
from dissensus.votes.cells import holds_kinds, holds_no_times, holds_responses, holds_times, not_seconds, numbers_of
from dissensus.votes.columns import (
    ABOUT_ITEMS,
    ITEM_PARTS,
    KIND,
    SYNONYMS,
    TEXTS,
    WITHOUT_UNIT,
    Columns,
    choose,
    item_parts,
    kind_column,
    listed,
    names_rows,
    people_column,
    plain,
    require,
)
from dissensus.votes.echo import Plain
from dissensus.votes.grid import are_counts
from dissensus.votes.lists import holds_several, with_lists
from dissensus.votes.scales import MANY

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from dissensus.table_file import OpenTable, Rows
    from dissensus.votes.formats import Options
    from dissensus.votes.own import Own

    Readings = dict[str, dict[str, Any]]
    """By what a file may mean, the options that say so."""

FEW: Final = 0.02
"""The share of rows that may be repetitions, or be left out as such, before something else is asked."""

_SHOWN: Final = 30


def choose_columns(table: OpenTable, options: Options, own: Own | None, notes: list[str]) -> Columns:
    """The column of each role of a file with one row per vote; `own` is what the file says of itself."""
    available, path = table.columns, table.path
    given = {role: getattr(options, role) for role in SYNONYMS}
    parts = item_parts(options.item, available)
    chosen: dict[str, str | None] = {}
    for role, name in given.items():
        taken = {*given.values(), *chosen.values(), *parts, *options.attributes, *options.item_attributes}
        free = [column for column in available if column not in taken]
        known = [*available, *(["".join(name or ())] if role == "item" and parts else [])]
        chosen[role] = choose(role, name, known if name is not None else free, path=path)
    taken = {*chosen.values(), *parts, *options.attributes, *options.item_attributes}
    chosen[KIND] = kind_column(options.kind, available, taken=taken, path=path)
    chosen["annotator"] = chosen["annotator"] or people_column([name for name in available if name not in taken])
    if options.format == "lists" and options.response is None:
        # Beside the scores of several people stands what they judged, a model's response.
        chosen["response"] = None
    if chosen["label"] is None:
        chosen["label"], chosen["response"] = chosen["response"], None
    label = require("label", chosen["label"], available, path=path)
    if own is None and options.item is None:
        roles = {name for role, name in chosen.items() if role != "item"}
        free = [name for name in available if name not in {*roles, *options.attributes, *options.item_attributes}]
        chosen["item"] = choose_item(table, free, chosen["annotator"], label, notes=notes)
    chosen["item"] = chosen["item"] if parts else require("item", chosen["item"], available, path=path)
    for name in options.attributes:
        choose("attributes", name, available, path=path)
    for name in options.item_attributes:
        choose("item_attributes", name, available, path=path)
    return Columns(**chosen, attributes=options.attributes, item_attributes=options.item_attributes)  # type: ignore[arg-type]


def as_cells_say(rows: Rows, columns: Columns, options: Options, notes: list[str]) -> tuple[Rows, Columns]:
    """The rows and columns without the roles that were guessed from a name and that no cell bears out."""
    if columns.kind and options.kind is None and not holds_kinds(rows.table[columns.kind], where=rows.where):
        # Some other kind, of items perhaps: a column like any other.
        rows, columns = replace(rows, table=rows.table.drop(columns.kind)), replace(columns, kind=None)
    if columns.response and options.response is None and not holds_responses(rows.table[columns.response]):
        notes.append(Plain(f"column '{columns.response}' holds no yes, no or unsure, and is not used"))
        columns = replace(columns, response=None)
    if columns.seconds is not None and options.seconds is None:
        cells = rows.table[columns.seconds]
        if columns.time is None and holds_times(cells):
            columns = replace(columns, seconds=None, time=columns.seconds)
        elif (not_seconds(cells) == cells.is_not_null()).all() and cells.null_count() < len(cells):
            notes.append(f"column '{columns.seconds}' holds no seconds and is not used")
            columns = replace(columns, seconds=None)
    if columns.time is not None and options.time is None and holds_no_times(rows.table[columns.time]):
        if options.duplicates != "refuse":
            raise InputError(
                f"{rows.path}: the cells of '{columns.time}', which tell the {options.duplicates} vote, are no "
                "dates and times that are known; write them as ISO 8601 does, or rename the column to go by rows"
            )
        notes.append(f"column '{columns.time}' holds no moments and is not used")
        columns = replace(columns, time=None)
    return rows, columns


def item_columns(available: Sequence[str]) -> list[str]:
    """The columns whose names fit items, the surest first."""
    spelled = {plain(column): column for column in reversed(available)}
    return [spelled[name] for name in SYNONYMS["item"] if name in spelled]


def choose_item(
    table: OpenTable, free: Sequence[str], annotator: str | None, label: str | None, *, notes: list[str]
) -> str | None:
    """The column of items among those that have no other role: by its name, and where several fit, by their values."""
    candidates = item_columns(free)
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        rows = with_lists(table.rows([*candidates, *filter(None, (annotator, label))]), label, annotator)
        candidates = [name for name in candidates if not rows.table.schema[name].is_nested()] or candidates
        several = annotator is not None and rows.table.schema[annotator] == pl.List
        row_is_item = label is not None and (annotator is None or several) and holds_several(rows.table[label])
        return item_by_values(rows, candidates, None if several else annotator, row_is_item=row_is_item, notes=notes)
    if annotator is not None and (ways := finer_items(table.rows().table, [], annotator, (label,))):
        raise InputError(
            f"{table.path}: none of the columns {listed(table.columns)} is known to hold the item; name it with item=",
            readings={f"'{way}' names it: so nobody judges one twice": {"item": way} for way in ways},
        )
    return None


def item_by_values(
    rows: Rows, candidates: Sequence[str], annotator: str | None, *, row_is_item: bool, notes: list[str]
) -> str:
    """The one of several columns that names the items, each of which has one row where `row_is_item`.

    It is the one with which nobody judges an item twice. Where another is different in every row, that one numbers the
    rows if by chance many people would have judged an item twice. Refused where this leaves more than one.
    """
    table, n = rows.table, rows.table.height
    size = {name: table[name].n_unique() for name in candidates}
    repeated = {name: 0 if annotator is None else n - table.n_unique([name, annotator]) for name in candidates}
    apart: list[str] = []
    for name in candidates:
        same = (other for other in apart if size[name] == size[other] == table.n_unique([name, other]))
        apart += [] if any(same) else [name]
    if row_is_item:
        left = [name for name in apart if size[name] == n]
    elif plain(apart[0]) == "item" and not repeated[apart[0]]:
        left = apart[:1]
    else:
        left = [name for name in apart if repeated[name] <= FEW * n and size[name] < n and annotator is not None]
        numbered = any(size[name] == n for name in apart)
        left = [name for name in left if not numbered or annotator is None or _planned(table, name, annotator)]
    if len(apart) == 1 or len(left) == 1:
        chosen = (left or apart)[0]
        if others := [name for name in apart if name != chosen]:
            notes.append(Plain(f"items are named by '{chosen}', not by {listed(others)}: so nobody judges one twice"))
        return chosen
    together = ",".join(apart)
    size[together] = table.n_unique(apart)
    repeated[together] = 0 if annotator is None else n - table.n_unique([*apart, annotator])
    names = [*apart, *([together] if len(apart) > 1 and 3 * size[together] <= 2 * n else [])]
    # Offer a reading that discards votes only if no column, nor all columns together, would keep the votes.
    names = [name for name in names if repeated[name] <= FEW * n] or names
    ways: Readings = {}
    for name in names:
        again = repeated[name] > FEW * n
        lost = f"; of {repeated[name]:,} repeated rows the last counts" if again else ""
        meaning = f"'{name}': {size[name]:,} items, {n / size[name]:.1f} rows each{lost}"
        ways[meaning] = {"item": name, **({"duplicates": "last", "force": True} if again else {})}
    raise InputError(f"{rows.path}: the columns {listed(apart)} may each name the item; choose one", readings=ways)


def _planned(table: pl.DataFrame, item: str, annotator: str) -> bool:
    """Whether ten people or more would have judged an item twice, were items given out by chance."""

    def pairs(name: str) -> float:
        rows = table[name].value_counts(name="\0rows")["\0rows"].cast(pl.Float64)
        return float((rows * (rows - 1)).sum()) / 2

    return pairs(item) * pairs(annotator) >= 10 * table.height * (table.height - 1) / 2


def finer_items(table: pl.DataFrame, item: Sequence[str], annotator: str, taken: Collection[str | None]) -> list[str]:
    """What names items so that nobody judges one twice: one column, or several with commas between them."""
    n = table.height
    flat = [
        name
        for name, dtype in table.schema.items()
        if name not in (*item, annotator, *taken) and not dtype.is_nested() and dtype != pl.Binary
        # Two rows in three of their own: a time, a remark, or a number of rows.
        if 3 * table[name].n_unique() <= 2 * n and not table[name].null_count()
    ]
    alone = [name for name in (*item_columns(flat), *flat) if len(item) == 1 and n == table.n_unique([name, annotator])]
    together = list(item)
    for name in [] if alone else flat:
        if not together or table.n_unique([*together, name]) > table.n_unique(together):
            together.append(name)
        if table.n_unique([*together, annotator]) == n and 3 * table.n_unique(together) <= 2 * n:
            return [",".join(together)]
    return alone[:1]


def label_columns(
    table: pl.DataFrame, item: str | None, annotator: str | None, taken: Collection[str | None], *, most: int = MANY
) -> list[str]:
    """Return the columns that may hold labels: 2 to `most` values that differ within items and within annotators."""
    return [
        name
        for name, dtype in table.schema.items()
        if name not in (item, annotator, *taken) and not dtype.is_nested() and dtype != pl.Binary
        if 2 <= table[name].drop_nulls().n_unique() <= most
        if all(of is None or table.n_unique([of, name]) > table[of].n_unique() for of in (item, annotator))
    ][:_SHOWN]


def long_readings(table: pl.DataFrame) -> Readings:
    """The readings by one row per vote of a file whose names say nothing: so nobody judges an item twice."""
    n, ways = table.height, {}
    size = {
        name: number
        for name, dtype in table.schema.items()
        if not dtype.is_nested() and dtype != pl.Binary and not table[name].null_count()
        if (number := table[name].n_unique()) >= 2 and 3 * number <= 2 * n
    }
    # There are more items than people, and more of both than classes.
    for annotator, item in itertools.combinations(sorted(size, key=size.__getitem__)[-8:], 2):
        for label in label_columns(table, item, annotator, ()) if table.n_unique([item, annotator]) == n else ():
            if table[label].n_unique() <= size[annotator]:
                way = {"format": "long", "item": item, "annotator": annotator, "label": label}
                ways[f"one row per vote: {size[item]:,} items, {size[annotator]:,} people"] = way
    return ways


def label_readings(table: pl.DataFrame, labels: Sequence[str]) -> Readings:
    """The readings of a file whose labels may be in several columns; of 0 and 1, they may be flags of one judgement."""
    flags = [
        name
        for name in table.columns
        if labels
        and table[name].n_unique() > 1
        and not table.schema[name].is_nested()
        and table[name].cast(pl.String).is_in(["0", "1", "0.0", "1.0", "true", "false", "True", "False"]).all()
        and not table[name].null_count()
    ]
    together = {"columns of 0 and 1 are the classes": {"format": "flags", "classes": flags}} if len(flags) > 1 else {}
    return {f"the labels are in '{name}'": {"label": name} for name in labels} | together


def refuse_other_uses(table: OpenTable, columns: Columns, options: Options, *, found: str, notes: list[str]) -> None:
    """Raise if an unused column may hold a time, (a part of) the item, labels, people or numbers of votes.

    `found` is the format that was recognised. A user who names a format confirms that times and numbers are not used.
    """
    item, label, who = columns.item, columns.label, columns.annotator
    parts = item_parts(item, table.columns) or [item]
    unused = {name: plain(name) for name in table.columns if name not in (*columns.names(), *parts)}
    if not unused or columns.response is not None:
        return

    def cells(names: Iterable[str]) -> pl.DataFrame:
        held = table.rows(list(dict.fromkeys([*parts, *([who] if who else []), label, *names]))).table
        flat = held.select(name for name, dtype in held.schema.items() if name == label or not dtype.is_nested())
        return flat if item in flat.columns else flat.with_columns(pl.struct(parts).alias(item))

    def question(sentence: str, ways: Readings) -> InputError:
        return InputError(f"{table.path}: {sentence}; choose", readings=ways)

    times = [name for name, called in unused.items() if called in WITHOUT_UNIT]
    if times and not (columns.seconds or options.format or options.label):
        ways: Readings = {"seconds": {"seconds": times[0]}, "anything else: it is not used": {"format": found}}
        raise question(f"'{times[0]}' may hold seconds or milliseconds", ways)
    named = [name for name, called in unused.items() if called in ITEM_PARTS or called in SYNONYMS["item"]]
    whole = cells(named)
    items, rows = whole[item].n_unique(), whole.height
    people = whole[who].n_unique() if who in whole.columns else None
    # If people seem to judge items twice, a later error already offers finer items.
    if options.item is None and (people is None or rows - whole.n_unique([item, who]) <= FEW * rows):
        # A synonym of the item with a different value in most rows numbers the judgements, not the items.
        most = {name: rows if unused[name] in ITEM_PARTS else 2 * rows // 3 for name in named if name in whole.columns}
        if finer := [name for name in most if items < whole.n_unique([item, name]) <= most[name]]:
            together = [[item, *more] for more in (*([name] for name in finer), finer)]
            ways = {f"{listed(names)} together": {"item": ",".join(names)} for names in together}
            raise question(f"{listed(finer)} differs within '{item}'", ways | {f"'{item}' alone": {"item": item}})
    if found != "long":
        return
    alone = items == rows > 1
    # If people have several rows, any column without repeated pairs of value and person may name the items.
    texts = [name for name, called in unused.items() if alone and (called in TEXTS or (people or rows) < rows)]
    held = cells(texts)
    for text in (name for name in texts if name in held.columns and 5 * held[name].n_unique() <= 4 * rows):
        if people is not None and held.n_unique([text, who]) < rows:
            continue
        if options.item is None:
            ways = {f"'{item}' numbers the rows": {"item": text}}
            ways["each row is an item of its own, with one vote"] = {"item": item}
            raise question(f"each row has its own '{item}', and '{text}' repeats: what names the items?", ways)
        notes.append(f"each row has its own '{item}', and '{text}' repeats: it may number the rows")
    numbers: list[str] = []
    # `n_unique` refuses the same column twice, and a user may name one column for both the item and the label.
    distinct = whole.n_unique([*{item, label}])
    if who is None and distinct == rows and not (options.format and options.label):
        free = [name for name, called in unused.items() if called not in ABOUT_ITEMS and not names_rows(name)]
        held = cells([name for name in free if name not in item_columns(free)])
        held = held.select(pl.selectors.by_name(*free, require_all=False) - pl.selectors.boolean())
        known = whole[label].cast(pl.String).unique().implode()
        alike = [c.name for c in held if 2 * c.cast(pl.String).is_in(known).sum() > c.count()]
        if alone and len(alike) > 1 and not (options.format or options.label):
            ways = {f"each of them is an annotator, and '{label}' is none": {"annotators": alike}}
            ways[f"each row is one vote, '{label}'"] = {"format": "long", "label": label}
            raise question(f"{listed(alike)} hold labels as '{label}' does", ways)
        # `all` ignores nulls, so a column with text that is no number must be excluded first.
        varied = [column for column in numbers_of(held) if not column.has_nulls() and column.n_unique() > 1]
        numbers = [c.name for c in varied if (c >= 0).all() and ((c % 1 == 0).all() or (c <= 1).all())]
    # Labels that never differ within an item may describe the item. Any unused column may then hold the votes.
    named = [name for name, called in unused.items() if called in SYNONYMS["label"]]
    rivals = [] if options.label is not None else [*unused] if distinct == items < rows else named
    if rivals:
        held = cells(rivals)
        of = label_columns(held, None if alone else item, who, (item, *parts, label), most=rows)
        # A column with many values holds labels only if the values are numbers, as those of a slider are.
        graded = [name for name in of if held[name].n_unique() > MANY]
        sliders = [name for name in graded if name in named and not numbers_of(held[[name]])[name].has_nulls()]
        if others := [name for name in of if name in sliders or name not in graded]:
            ways = label_readings(held, [label, *others])
            for way in ways.values():
                way |= ({"format": "long"} if numbers else {}) | (
                    {"bins": ["5"]} if way.get("label") in sliders else {}
                )
            raise question(f"the columns {listed([label, *others])} may each hold the label", ways)
    if numbers:
        ways = {"one row per vote, and the numbers are about something else": {"format": "long", "label": label}}
        if len(numbers) > 1 and alone and are_counts(cells(numbers)[numbers]):
            ways["one row per item, with numbers of votes"] = {"format": "counts", "classes": numbers}
        remedy = f"pandas: frame.set_index(['{item}', '{label}'])['{numbers[0]}'].unstack().fillna(0)"
        what = f"{listed(numbers)} may say how many people gave it"
        raise question(
            f"each item and label has one row, and {what}; if so, write one column per class ({remedy})", ways
        )


def finer(table: OpenTable, columns: Columns) -> list[str]:
    """Other columns that may name the items, where people seem to judge some twice."""
    others = (columns.label, columns.response, columns.seconds, columns.time, columns.kind, *columns.attributes)
    item = item_parts(columns.item, table.columns) or [columns.item]
    if columns.annotator is None or not {*item} <= {*table.columns}:
        return []
    return finer_items(table.rows().table, item, columns.annotator, others)


def other_labels(table: OpenTable, columns: Columns) -> Readings:
    """The readings of a file by other columns that may hold its labels."""
    if columns.annotator is None or columns.item not in table.columns:
        return {}
    whole, taken = table.rows().table, [*columns.names(), *item_columns(table.columns)]
    return label_readings(whole, label_columns(whole, columns.item, columns.annotator, taken))
