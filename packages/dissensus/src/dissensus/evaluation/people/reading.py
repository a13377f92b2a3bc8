"""Files of predictions for single votes: an item, an annotator, and class probabilities or a label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from dissensus.arrays import places_of
from dissensus.errors import InputError
from dissensus.evaluation.people.vote_scores import VotePredictions
from dissensus.evaluation.predictions import rows_predictions
from dissensus.item_names import places_of_items
from dissensus.table_file import open_table, read_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from dissensus.arrays import Ints, Names
    from dissensus.evaluation.probabilities import Given
    from dissensus.table_file import Rows
    from dissensus.votes.table import Votes


def predicts_people(path: Path, *, annotator: str | None = None) -> bool:
    """Whether a file has a column of annotators, and so predicts votes rather than items."""
    from dissensus.votes.columns import guess

    if path.suffix.lower() == ".npz":
        return False
    columns = open_table(path).columns
    return annotator in columns or guess("annotator", columns) is not None


def read_vote_predictions(
    path: Path,
    votes: Votes,
    *,
    order: Sequence[str] | None = None,
    item: str | None = None,
    annotator: str | None = None,
    label: str | None = None,
    given: Given | None = None,
    answers: Mapping[str, str] | None = None,
    only_common: bool = False,
) -> VotePredictions:
    """Read predictions for single votes: one row for each item and annotator.

    The table has a column of items and a column of annotators. The predictions are one column for each class, a column
    of lists or objects, or a column of predicted labels. `item`, `annotator` and `label` name columns. A column is
    guessed if the table has none of that name. `order`, `given` and `answers` are as in `read_predictions`. Rows of
    items or annotators without votes are left out with `only_common`. Otherwise these rows raise an error.
    """
    from dissensus.votes.cells import encode_classes
    from dissensus.votes.columns import guess, require

    if votes.annotators is None:
        raise InputError("votes: they are anonymous, so no annotator can be predicted; give votes with annotators")
    rows = read_rows(path)
    columns = [name for name in rows.table.columns if name not in votes.classes]
    items = require("item", item if item in columns else None, columns, path=rows.path)
    people = require("annotator", annotator if annotator in columns else None, columns, path=rows.path)
    who, without = _places(rows, people, votes.annotators.names, what="annotator", only_common=only_common)
    what, more = _places(rows, items, votes.items, what="item", only_common=only_common)
    kept = np.flatnonzero((who >= 0) & (what >= 0))
    if not kept.size:
        raise InputError(f"{rows.path}: no row is for an item and an annotator with votes; check the names")
    notes = [f"items are in the column '{items}', annotators in '{people}'", *without, *more]
    kind: Given | Literal["labels"]
    labels = label if label in columns else guess("label", [name for name in columns if name not in (items, people)])
    if labels is not None and not set(votes.classes) <= set(rows.table.columns):
        said = rows.table[labels] if answers is None else rows.table[labels].cast(str).replace(dict(answers))
        label_of = encode_classes(said, votes.classes, where=rows.where)[0]
        probabilities, kind = np.eye(len(votes.classes))[label_of], "labels"
        notes.append(f"labels are predicted, in the column '{labels}': there is no NLL and no Brier score of a label")
    else:
        read = rows_predictions(
            rows, _pairs(rows, items, people), votes.classes, beside=(items, people), order=order, given=given
        )
        probabilities, kind = read.probabilities[0], read.given
        notes += [note.removeprefix(f"{rows.path}: ") for note in read.notes]
    pair = what[kept] * len(votes.annotators) + who[kept]
    _, first, times = np.unique(pair, return_index=True, return_counts=True)
    if first.size < pair.size:
        again = int(np.setdiff1d(np.arange(pair.size), first)[0])
        raise InputError(
            f"{rows.where(int(kept[again]))}: item {votes.items[what[kept[again]]]} by annotator "
            f"{votes.annotators.names[who[kept[again]]]} has a row already, and so have "
            f"{int((times > 1).sum()):,} pairs; give one row for each item and annotator"
        )
    sentences = tuple(f"{rows.path}: {note}" for note in notes)
    return VotePredictions(what[kept], who[kept], np.asarray(probabilities[kept]), kind, sentences)


def _places(rows: Rows, column: str, names: Names, *, what: str, only_common: bool) -> tuple[Ints, list[str]]:
    """(rows,) the place of each row's item or annotator among those with votes, and a note where some have none."""
    from dissensus.votes.cells import encode_names

    code, here = encode_names(rows.table[column], where=rows.where)
    place = (places_of_items if what == "item" else places_of)(here, names)[code]
    unknown = np.flatnonzero(place < 0)
    if not unknown.size:
        return place, []
    if not only_common:
        raise InputError(
            f"{rows.where(int(unknown[0]))}: {what} {here[code[unknown[0]]]} has no votes, and {unknown.size:,} rows "
            f"are for such {what}s; check the names, or evaluate only what is common (only_common=)"
        )
    return place, [f"{unknown.size:,} rows are for {what}s without votes and do not count"]


def _pairs(rows: Rows, items: str, people: str) -> Names:
    """(rows,) names for sentences."""
    text = np.dtypes.StringDType()
    of_items, of_people = (np.array(list(map(str, rows.table[name])), dtype=text) for name in (items, people))
    return np.strings.add(np.strings.add(of_items, " by annotator "), of_people)
