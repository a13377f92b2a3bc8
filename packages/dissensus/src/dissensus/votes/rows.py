"""Rows of named columns to `Votes`: one row per vote, per response, or per set of labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from dissensus.errors import InputError
from dissensus.responses import NO, RESPONSES, UNSURE
from dissensus.votes.cells import (
    are_numbers,
    describe,
    encode_classes,
    encode_names,
    encode_responses,
    merged,
    parse_kinds,
    parse_seconds,
    parse_times,
)
from dissensus.votes.columns import RATING, Columns, plain
from dissensus.votes.echo import number
from dissensus.votes.encoding import first_appearances
from dissensus.votes.roles import FEW
from dissensus.votes.table import KINDS, NONE, Annotators, Votes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dissensus.arrays import Codes, Floats, Ints, Mask, Names, Times
    from dissensus.votes.cells import Where

Duplicates = Literal["refuse", "first", "last"]
"""What to do where one annotator judged one item twice: refuse the file, or keep the first or the last."""


@dataclass(frozen=True, eq=False, kw_only=True)
class _VoteRows:
    """What every kind of row holds, one entry per row, and how to read it."""

    item: Codes
    items: Names
    annotators: Annotators | None
    seconds: Floats | None
    time: Times | None
    label: pl.Series
    response: pl.Series | None
    where: Where
    classes: Sequence[str] | None
    separator: str | None
    duplicates: Duplicates | None
    force: bool
    finer: Callable[[], Sequence[str]] | None
    exact: bool
    merge: Sequence[str]
    notes: list[str]

    def pair(self) -> Ints | None:
        """One number for each pair of item and annotator; None where the rows are anonymous."""
        if self.annotators is None:
            return None
        return self.item.astype(np.int64) * len(self.annotators) + self.annotators.code

    def place_of(self, label: str) -> str:
        """Place of the first row with a label, for a sentence."""
        if self.label.dtype.is_nested() or self.separator is not None:
            return self.where(0)
        return self.where(int((self.label.cast(pl.String) == label).fill_null(value=False).to_numpy().argmax()))

    def who(self, row: int) -> str:
        """Place, annotator and item of a row, for a sentence."""
        item = f"item '{self.items[self.item[row]]}'"
        if self.annotators is None:
            return f"{self.where(row)}: {item}"
        return f"{self.where(row)}: annotator '{self.annotators.names[self.annotators.code[row]]}', {item}"

    def keep_distinct(self, key: Ints, said: Callable[[int, int], str]) -> Any:
        """As the function; `said` is what a row and its repetition say, the beginning of a refusal."""

        def refusal(before: int, again: int, number: int) -> InputError:
            sentence = f"{said(before, again)}; {number:,} of {key.size:,} rows are repetitions"
            many = number > FEW * key.size and not self.force
            items = () if self.finer is None or not many else self.finer()
            ways = {None: [], "refuse": ["first", "last"]}.get(self.duplicates, [self.duplicates])
            by = "in the file" if self.time is None else "by time"
            return InputError(
                f"{sentence}; remove them{', or choose' if ways else ''}",
                readings={f"'{name}' names the item: so nobody judges one twice": {"item": name} for name in items}
                | {f"the {way} {by} counts": {"duplicates": way} | ({"force": True} if many else {}) for way in ways},
            )

        return keep_distinct(
            key,
            self.duplicates or "refuse",
            refusal=refusal,
            time=self.time,
            most=1.0 if self.force else FEW,
            notes=self.notes,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class _Selected:
    """The classes that judgements select.

    `rows` is the row that stands for each judgement, or a slice of all; `judgement` that of each vote, rising, None
    where each has one vote; `label` and `unsure` are (votes,), `seconds` (judgements,).
    """

    rows: Any
    label: Codes
    seconds: Floats | None
    classes: tuple[str, ...]
    judgement: Any = None
    unsure: Mask | None = None
    none: int | None = None


def votes_from_rows(
    table: pl.DataFrame,
    columns: Columns,
    *,
    where: Where,
    classes: Sequence[str] | None = None,
    ordered: bool | None = None,
    separator: str | None = None,
    duplicates: Duplicates | None = None,
    force: bool = True,
    merge: Sequence[str] = (),
    finer: Callable[[], Sequence[str]] | None = None,
    exact: bool = False,
    notes: list[str] | None = None,
) -> Votes:
    """Votes from a table with one row per vote, per response, or per set of labels.

    Without `classes` they are those in the rows, numbers by size and others by alphabet, or an Enum's in its own order.
    They are a scale (`ordered`) where nothing is said and the label column is named like a rating, and the classes are
    numbers or given. `separator` stands between the labels of one cell; `exact` keeps white space around them. `where`
    is the file and line of a row, and `notes` takes sentences on what was understood. `duplicates` is None
    where nobody can choose; those left out are 2 % of the rows at most, unless `force`, and `finer` looks for columns
    by which nobody judges an item twice.
    """
    notes = [] if notes is None else notes
    item, items = encode_names(table[columns.item], where=where)
    if "items" in merge:
        item, items = merged(item, items, what="items", notes=notes)
    panel = None
    if columns.annotator is not None:
        code, names = encode_names(table[columns.annotator], where=where)
        if "annotators" in merge:
            code, names = merged(code, names, what="annotators", notes=notes)
        attributes = {
            name: describe(table[name], code, names=names, what="annotator", where=where) for name in columns.attributes
        }
        panel = Annotators(code, names, attributes)
    elif columns.attributes:
        raise InputError(f"{where(0)}: attributes describe annotators; name their column with annotator=")
    by_model = None if columns.kind is None else parse_kinds(table[columns.kind], where=where)
    if by_model is not None and panel is not None:
        said = pl.Series(columns.kind, KINDS).gather(by_model.astype(np.int64))
        describe(said, panel.code, names=panel.names, what="annotator", where=where)
    rows = _VoteRows(
        item=item,
        items=items,
        annotators=panel,
        seconds=None if columns.seconds is None else parse_seconds(table[columns.seconds], where=where),
        time=None if columns.time is None else parse_times(table[columns.time], where=where),
        label=table[columns.label],
        response=None if columns.response is None else table[columns.response],
        where=where,
        classes=classes,
        separator=separator,
        duplicates=duplicates,
        force=force,
        finer=finer,
        exact=exact,
        merge=merge,
        notes=notes,
    )
    if rows.response is not None:
        selected = _select_responses(rows, rows.response)
    elif separator is not None or rows.label.dtype == pl.List:
        selected = _select_sets(rows)
    else:
        selected = _select_choices(rows)

    row: Any = selected.rows
    if selected.judgement is not None:
        row = np.arange(table.height)[row][selected.judgement]
    return Votes(
        item=item[row],
        label=selected.label,
        items=items,
        classes=selected.classes,
        annotators=None if panel is None else panel.of_votes(row),
        unsure=selected.unsure,
        by_model=None if by_model is None else by_model[row],
        judgement=selected.judgement,
        seconds=selected.seconds,
        time=None if rows.time is None else rows.time[selected.rows],
        item_attributes={
            name: describe(table[name], item, names=items, what="item", where=where) for name in columns.item_attributes
        },
        ordered=is_scale(columns.label, selected.classes, known=classes is not None, place=rows.place_of)
        if ordered is None
        else ordered,
        none=selected.none,
    )


def is_scale(column: str, classes: Sequence[str], *, known: bool, place: Callable[[str], str]) -> bool:
    """Whether labels are a scale: the column is named like a rating, and the order is known or that of numbers.

    A column named like a rating that holds numbers beside other labels is refused: were it read as no scale, one
    damaged cell would change what the whole file means.
    """
    if RATING.search(plain(column)) is None:
        return False
    named = [name for name in classes if name != NONE]
    if known or are_numbers(named):
        return True
    odd = next(name for name in named if not are_numbers([name]))
    if any(are_numbers([name]) for name in named):
        raise InputError(
            f"{place(odd)}: column '{column}' holds the label '{odd}' beside numbers; correct it, or choose",
            readings={
                f"'{odd}' stands for no rating: such rows are left out": {"missing": [odd]},
                "the classes are no scale": {"ordered": False},
            },
        )
    return False


def _select_choices(rows: _VoteRows) -> _Selected:
    label, classes = encode_classes(rows.label, rows.classes, where=rows.where, merge=rows.merge, notes=rows.notes)
    kept = _judged_once(rows)
    seconds = None if rows.seconds is None else rows.seconds[kept]
    return _Selected(rows=kept, label=label[kept], seconds=seconds, classes=classes)


def _select_sets(rows: _VoteRows) -> _Selected:
    kept = _judged_once(rows)
    sets = _split(rows) if isinstance(kept, slice) else _split(rows).filter(kept)
    size = sets.list.len().to_numpy().astype(np.int64)
    of_vote = np.repeat(np.arange(len(rows.item))[kept], size)

    def where(vote: int) -> str:
        return rows.where(int(of_vote[vote]))

    label, classes = encode_classes(
        sets.filter(size > 0).explode(), rows.classes, where=where, merge=rows.merge, notes=rows.notes
    )
    silent = int((size == 0).sum())
    if silent:
        rows.notes.append(f"{number(silent, 'judgement')} without a class, read as a vote for '{NONE}'")
    if silent and NONE not in classes:
        classes = (*classes, NONE)
    none = classes.index(NONE) if NONE in classes else None
    judgement = np.repeat(np.arange(size.size), size).astype(np.int64)
    keep_distinct(
        judgement * len(classes) + label,
        refusal=lambda _, vote, number: InputError(
            f"{where(vote)}: '{classes[label[vote]]}' stands twice in one set; remove one, or choose format='lists' "
            "where a list holds the votes of several people"
        ),
    )
    crowded = np.flatnonzero((label == none) & (size[judgement] > 1))
    if crowded.size:
        raise InputError(f"{where(int(crowded[0]))}: '{NONE}' stands beside other labels; remove it or them")
    seconds = None if rows.seconds is None else rows.seconds[kept]
    selected = _Selected(rows=kept, label=label, seconds=seconds, classes=classes, judgement=judgement, none=none)
    return _by_judgement(selected, n_judgements=size.size)


def _select_responses(rows: _VoteRows, cells: pl.Series) -> _Selected:
    pair = rows.pair()
    if pair is None:
        raise InputError(f"{rows.where(0)}: no column says who gave the responses; name it with annotator=")
    asked = None if rows.classes is None else [name for name in rows.classes if name != NONE]
    label, classes = encode_classes(rows.label, asked, where=rows.where, merge=rows.merge, notes=rows.notes)
    response = encode_responses(cells, where=rows.where)
    if NONE in classes:
        row = int((label == classes.index(NONE)).argmax())
        raise InputError(f"{rows.where(row)}: the class '{NONE}' is kept for judgements of all no; rename it")

    def said(before: int, again: int) -> str:
        words = f"'{RESPONSES[response[again]]}' to class '{classes[label[again]]}'"
        return f"{rows.who(again)} says {words} after '{RESPONSES[response[before]]}'"

    judgement, first = first_appearances(pl.Series(pair))
    cell = judgement.astype(np.int64) * len(classes) + label
    kept = rows.keep_distinct(cell, said)
    seconds = None if rows.seconds is None else _seconds_of_judgements(rows, judgement, kept, n=first.size)
    judgement, label, response = judgement[kept], label[kept], response[kept]
    if partial := int((np.bincount(judgement, minlength=first.size) < len(classes)).sum()):
        rows.notes.append(f"{number(partial, 'judgement')} with unanswered classes, read as no")
    said = response != NO
    unsure = response[said] == UNSURE
    selected = _Selected(
        rows=first,
        label=label[said],
        seconds=seconds,
        classes=(*classes, NONE),
        judgement=judgement[said],
        unsure=unsure if unsure.any() else None,
        none=len(classes),
    )
    return _by_judgement(selected, n_judgements=first.size)


def _by_judgement(selected: _Selected, *, n_judgements: int) -> _Selected:
    """Votes sorted by judgement and class; a judgement without a vote gets one for `none`."""
    label, unsure = selected.label, selected.unsure
    silent = np.flatnonzero(np.bincount(selected.judgement, minlength=n_judgements) == 0)
    judgement = np.concatenate([selected.judgement, silent]).astype(np.int32)
    label = np.concatenate([label, np.full(silent.size, selected.none, dtype=np.int32)]) if silent.size else label
    order = np.lexsort((label, judgement))
    if unsure is not None:
        unsure = np.concatenate([unsure, np.zeros(silent.size, dtype=np.bool_)])[order]
    several = None if judgement.size == n_judgements else judgement[order]
    return replace(selected, judgement=several, label=label[order], unsure=unsure)


def _split(rows: _VoteRows) -> pl.Series:
    """(rows,) the list of labels of each row."""
    cells = rows.label
    if cells.dtype == pl.List:
        if cells.null_count():
            row = int(cells.is_null().arg_true()[0])
            raise InputError(f"{rows.where(row)}: column '{cells.name}' is missing; give a list, [] for no class")
        return cells
    parts = cells.cast(pl.String).fill_null("").str.split(rows.separator or "|")
    trimmed = parts if rows.exact else parts.list.eval(pl.element().str.strip_chars())
    return trimmed.list.eval(pl.element().filter(pl.element() != ""))


def _judged_once(rows: _VoteRows) -> Any:
    """The rows to keep so that each annotator judges an item once."""
    pair = rows.pair()
    if pair is None:
        return slice(None)

    return rows.keep_distinct(
        pair, lambda before, again: f"{rows.who(again)} is judged a second time, after {rows.where(before)}"
    )


def keep_distinct(
    key: Ints,
    duplicates: Duplicates = "refuse",
    *,
    refusal: Callable[[int, int, int], InputError],
    time: Times | None = None,
    most: float = 1.0,
    notes: list[str] | None = None,
) -> Any:
    """The rows to keep so that no (rows,) key occurs twice: a slice of all, or a mask.

    The first and the last are so by `time` where it is known, else by row. `refusal` makes the error for a row, its
    repetition and the number of such, also where these are a larger share of the rows than `most`; `notes` takes a
    sentence on how many rows were left out.
    """
    # A parallel sort is the fastest answer to whether any key repeats.
    in_order = pl.Series(key).sort().to_numpy()
    if not (in_order[1:] == in_order[:-1]).any():
        return slice(None)
    keys = pl.Series(key)
    first = keys.is_first_distinct().to_numpy()
    n = int((~first).sum())
    if duplicates == "refuse" or n > most * key.size:
        again = int(first.argmin())
        raise refusal(int((key == key[again]).argmax()), again, n)
    if notes is not None:
        by = "" if time is None else " by time"
        notes.append(f"{number(n, 'repeated row')} left out, the {duplicates}{by} of each kept")
    # A moment that is not known comes last in order of moments, and first in that of their numbers.
    moments = np.zeros(key.size) if time is None else time if duplicates == "first" else time.view(np.int64)
    order = np.argsort(moments, kind="stable")
    sorted_keys = keys.gather(order)
    kept = np.empty(key.size, dtype=np.bool_)
    alone = sorted_keys.is_first_distinct() if duplicates == "first" else sorted_keys.is_last_distinct()
    kept[order] = alone.to_numpy()
    return kept


def _seconds_of_judgements(rows: _VoteRows, judgement: Codes, kept: Any, *, n: int) -> Floats:
    """(n,) the seconds that the kept rows of each judgement agree on, NaN where none is known."""
    assert rows.seconds is not None
    row = np.arange(judgement.size)[kept]
    row = row[~np.isnan(rows.seconds[row])]
    seconds = np.full(n, np.nan)
    seconds[judgement[row]] = rows.seconds[row]
    differ = row[seconds[judgement[row]] != rows.seconds[row]]
    if differ.size:
        at = int(differ[0])
        raise InputError(
            f"{rows.who(at)} has {rows.seconds[at]:g} seconds here and {seconds[judgement[at]]:g} elsewhere; "
            "give one time per judgement"
        )
    return seconds
