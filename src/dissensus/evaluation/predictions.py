"""Files of predictions, and the matching of predictions to the items that people judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, get_args

import numpy as np
from scipy.special import softmax

from dissensus.array_file import read_npz
from dissensus.arrays import places_of
from dissensus.errors import InputError
from dissensus.evaluation.probabilities import Given, checked_logits, checked_probabilities
from dissensus.table_file import kind_of, open_file, read_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import polars as pl

    from dissensus.arrays import Floats, Ints, Names, Table
    from dissensus.evaluation.probabilities import Runs
    from dissensus.labels.distribution import LabelDistribution
    from dissensus.table_file import Rows

ROUNDING: Final = 1e-3
"""How far from 1 a row of a file may sum: numbers in text are rounded. Each row is divided by its sum."""

NPZ: Final = ".npz"

SAYS: Final[dict[str, Given]] = {
    **dict.fromkeys(("probabilities", "probs", "probability", "prob", "proba"), "probabilities"),
    **dict.fromkeys(("logits", "logit"), "logits"),
}
"""Names of a column or array that say what its numbers are."""

SAYS_NOTHING: Final = ("predictions", "prediction", "scores", "outputs")
"""Names that a column or array of a model's numbers may have, and that do not say which they are."""

ITEMS: Final = ("items", "item", "ids", "id", "uid", "uids")
"""Names that the array of items may have in an npz file."""

SEED: Final = "seed"
"""The column that tells several seeds of one system apart."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Predictions:
    """What one system predicts for items with names.

    Attributes:
        probabilities: (seeds, items, classes) rows that sum to 1.
        items: (items,) names.
        classes: names, in class order.
        given: whether the file held probabilities or logits.
        notes: sentences on what was decided while reading.
    """

    probabilities: Runs
    items: Names
    classes: tuple[str, ...]
    given: Given
    notes: tuple[str, ...] = ()


def read_predictions(
    path: str | Path, classes: Sequence[str], *, item: str | None = None, given: Given | None = None
) -> Predictions:
    """Predictions of a file: one row an item, with its name and one number a class.

    A CSV, TSV, Parquet or JSONL file has a column of item names, and one column a class in any order, or one column
    with a list of numbers (in class order) or an object (by class name). A column `seed` tells several seeds apart. An
    npz file has the arrays `items`, and `probabilities` or `logits` of shape (items, classes) or (seeds, items,
    classes), and may have `classes`, their names in order. Files that `write_labels` wrote are read too.

    Args:
        path: the file.
        classes: the names of the votes' classes, in class order.
        item: the column of item names; where there is none of that name it is guessed, and a note says which it is.
        given: probabilities or logits. None takes the name of the column or array where that says it, and else looks
            at the numbers: rows in [0, 1] that sum to 1 are probabilities; rows with negative numbers, most of which
            do not sum to 1, are logits; anything else is refused. The notes say what was decided.
    """
    if given is not None and given not in get_args(Given):
        raise InputError(f"{path}: predictions are given as probabilities or as logits, not as '{given}'")
    path = open_file(path)
    names = tuple(str(name) for name in classes)
    npz = kind_of(path, also=(NPZ,)) == "npz"
    found = _from_npz(path, names) if npz else _from_table(path, names, item)
    _refuse_repeated(path, found.items)
    notes = list(found.notes)
    if given is None:
        given, why = (found.named, f"as '{found.source}' says") if found.named else _look(path, found)
        notes.append(f"taken as {given}, {why}")
    if given == "logits":
        probabilities = softmax(checked_logits(found.numbers, str(path), items=found.items), axis=-1)
    else:
        probabilities = checked_probabilities(found.numbers, str(path), items=found.items, tolerance=ROUNDING)
        off = float(np.abs(found.numbers.sum(axis=-1) - 1.0).max())
        if off > 1e-6:
            notes.append(f"rows sum to 1 within {off:.1g}; each was divided by its sum")
    return Predictions(
        probabilities=probabilities,
        items=found.items,
        classes=names,
        given=given,
        notes=tuple(f"{path}: {sentence}" for sentence in notes),
    )


def read_column(path: str | Path, column: str, items: Names, *, item: str | None = None) -> Names:
    """(items,) what a further column of a table, such as a file of predictions, says of each of these items.

    Args:
        path: CSV, TSV, Parquet or JSONL, with a column of item names; an item may have several rows that say the same.
        column: its name.
        items: names of the items.
        item: the column of item names; where there is none of that name it is guessed.
    """
    from dissensus.votes.cells import encode_names, name_like, refuse_missing
    from dissensus.votes.encoding import to_names

    path = open_file(path)
    if kind_of(path, also=(NPZ,)) == "npz":
        raise InputError(f"{path}: an npz file has no columns; give '{column}' in a CSV, TSV, Parquet or JSONL file")
    rows = read_rows(path)
    if column not in rows.table.columns:
        raise InputError(f"{path}: there is no column '{column}'; it has {', '.join(rows.table.columns)}")
    code, names = encode_names(rows.table[_item_column(rows, item)], where=rows.where)
    values = name_like(rows.table[column], where=rows.where)
    refuse_missing(values, where=rows.where)
    first = np.empty(names.size, dtype=np.int64)
    first[code[::-1]] = np.arange(code.size - 1, -1, -1)
    other = np.flatnonzero((values.gather(first[code]) != values).to_numpy())
    if other.size:
        row = int(other[0])
        raise InputError(
            f"{rows.where(row)}: item {names[code[row]]} has '{values[row]}' in column '{column}', and "
            f"'{values[int(first[code[row]])]}' before; give one value an item"
        )
    place = places_of(items, names)
    if (place < 0).any():
        raise InputError(f"{path}: column '{column}' has no value for item {items[int(place.argmin())]}; give one")
    return to_names(values.gather(first[place]))


def align_predictions(
    human: LabelDistribution, predictions: Mapping[str, Predictions], *, only_common: bool = False
) -> tuple[LabelDistribution, dict[str, Runs], tuple[str, ...]]:
    """Predictions in the order of the items that people judged.

    Args:
        human: the label distributions.
        predictions: systems by name, read with the classes of `human`.
        only_common: evaluate the items that people judged and every system predicted, and say how many that are;
            without it an item that is on one side only is refused.

    Returns:
        The label distributions of the evaluated items, each system's (seeds, items, classes) probabilities, and notes.
    """
    places = {name: places_of(human.items, each.items) for name, each in predictions.items()}
    if not only_common:
        for name, each in predictions.items():
            _refuse_one_sided(name, human.items, each.items, places[name])
    kept = np.flatnonzero(np.all([place >= 0 for place in places.values()], axis=0))
    if not kept.size:
        raise InputError("predictions: no item has votes and a prediction of every system; check the item names")
    notes = []
    if kept.size < len(human):
        notes.append(f"{kept.size:,} of {len(human):,} items with votes have a prediction of every system and count")
    for name, each in predictions.items():
        unknown = len(each.items) - int((places[name] >= 0).sum())
        if unknown:
            notes.append(f"{name}: {unknown:,} predictions are for items without votes and do not count")
    aligned = {name: each.probabilities[:, places[name][kept]] for name, each in predictions.items()}
    return human.take(kept) if kept.size < len(human) else human, aligned, tuple(notes)


def _refuse_one_sided(name: str, judged: Names, predicted: Names, place: Ints) -> None:
    remedy = "give one prediction for each item with votes, or evaluate only the common items (--only-common)"
    missing = np.flatnonzero(place < 0)
    if missing.size:
        raise InputError(
            f"{name}: {missing.size:,} items with votes have no prediction, first {judged[missing[0]]}; {remedy}"
        )
    known = np.zeros(predicted.size, dtype=np.bool_)
    known[place] = True
    unknown = np.flatnonzero(~known)
    if unknown.size:
        raise InputError(
            f"{name}: {unknown.size:,} predictions are for items without votes, first {predicted[unknown[0]]}; {remedy}"
        )


def _refuse_repeated(path: Path, items: Names) -> None:
    names, first, times = np.unique(items, return_index=True, return_counts=True)
    if names.size < items.size:
        earliest = int(np.where(times > 1, first, items.size).argmin())
        raise InputError(
            f"{path}: {int((times > 1).sum()):,} items have more than one row, first {names[earliest]} with "
            f"{times[earliest]}; give each item one row, or say which seed a row is of in a column '{SEED}'"
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class _Found:
    """The numbers of a file, before it is settled what they are.

    Attributes:
        numbers: (seeds, items, classes).
        items: (items,) names.
        source: the column or array that held them; empty for one column a class.
        notes: sentences.
    """

    numbers: Runs
    items: Names
    source: str = ""
    notes: tuple[str, ...] = ()

    @property
    def named(self) -> Given | None:
        return SAYS.get(self.source.lower())


def _look(path: Path, found: _Found) -> tuple[Given, str]:
    """What the numbers are by their look, and why; refused where that is not clear."""
    numbers = checked_logits(found.numbers, str(path), items=found.items)
    inside = (numbers >= 0).all(axis=-1) & (np.abs(numbers.sum(axis=-1) - 1) <= ROUNDING)
    if inside.all():
        return "probabilities", "as all rows lie in [0, 1] and sum to 1"
    if (numbers < 0).any() and inside.mean() < 0.5:
        return "logits", f"as there are negative numbers and {1 - inside.mean():.0%} of rows do not sum to 1"
    # Damaged probabilities, or numbers that could be anything: say which row is not a distribution.
    checked_probabilities(numbers, str(path), items=found.items, tolerance=ROUNDING)
    return "probabilities", "as all rows sum to 1"


def _from_npz(path: Path, classes: tuple[str, ...]) -> _Found:
    arrays = read_npz(path)
    source = next((name for name in arrays if name.lower() in (*SAYS, *SAYS_NOTHING)), None)
    named = next((name for name in ITEMS if name in arrays), None)
    if source is None or named is None:
        raise InputError(
            f"{path}: it holds {', '.join(arrays) or 'nothing'}; give the arrays 'items' and 'probabilities' or "
            "'logits'"
        )
    values, items = arrays[source], arrays[named]
    if values.ndim not in (2, 3) or values.dtype.kind not in "fiu" or 0 in values.shape:
        raise InputError(
            f"{path}: '{source}' holds {values.dtype} of shape {values.shape}; give numbers, items by classes or seeds "
            "by items by classes"
        )
    runs = values.reshape(-1, *values.shape[-2:]).astype(np.float64)
    if items.shape != (runs.shape[1],) or items.dtype.kind not in "iuUT":
        raise InputError(
            f"{path}: '{named}' holds {items.dtype} of shape {items.shape} for {runs.shape[1]:,} rows; give one whole "
            "number or text a row"
        )
    named_classes = [str(name) for name in arrays["classes"].ravel().tolist()] if "classes" in arrays else None
    order = list(range(len(classes))) if named_classes is None else _order(path, named_classes, classes)
    notes = (_unnamed(source, classes),) if named_classes is None else ()
    if runs.shape[2] != len(classes):
        raise InputError(
            f"{path}: '{source}' has {runs.shape[2]} numbers a row for {len(classes)} classes; give as many"
        )
    names = items.astype(np.int64) if items.dtype.kind in "iu" else items.astype(np.dtypes.StringDType())
    return _Found(numbers=runs[:, :, order], items=names, source=source, notes=notes)


def _order(path: Path, names: list[str], classes: tuple[str, ...]) -> list[int]:
    """Where each of the votes' classes stands among the names that a file gives."""
    if sorted(names) != sorted(classes):
        raise InputError(
            f"{path}: its classes are {', '.join(names)}, and the votes' are {', '.join(classes)}; give the same names"
        )
    return [names.index(name) for name in classes]


def _unnamed(source: str, classes: tuple[str, ...]) -> str:
    return f"the numbers of '{source}' have no class names and are taken in the order {', '.join(classes)}"


def _from_table(path: Path, classes: tuple[str, ...], item: str | None) -> _Found:
    from dissensus.votes.cells import encode_names, name_like, refuse_missing
    from dissensus.votes.encoding import to_names

    rows = read_rows(path)
    column = _item_column(rows, item, classes)
    table, source, notes = _class_numbers(rows, classes, item=column)
    notes = (f"items are in the column '{column}'", *notes)
    ids = name_like(rows.table[column], where=rows.where)
    refuse_missing(ids, where=rows.where)
    if SEED not in rows.table.columns or SEED in (*classes, column):
        return _Found(numbers=table[None], items=to_names(ids), source=source, notes=notes)
    seed, seeds = encode_names(rows.table[SEED], where=rows.where)
    place, items = encode_names(ids, where=rows.where)
    cell = seed.astype(np.int64) * items.size + place
    times = np.bincount(cell, minlength=seeds.size * items.size)
    wrong = np.flatnonzero(times != 1)
    if wrong.size:
        raise InputError(
            f"{path}: item {items[wrong[0] % items.size]} has {times[wrong[0]]} rows with seed "
            f"{seeds[wrong[0] // items.size]}; give each item one row a seed"
        )
    runs = np.empty_like(table)
    runs[cell] = table
    return _Found(
        numbers=runs.reshape(seeds.size, items.size, len(classes)),
        items=items,
        source=source,
        notes=(*notes, f"{seeds.size} seeds, told apart by the column '{SEED}'"),
    )


def _item_column(rows: Rows, item: str | None, classes: Sequence[str] = ()) -> str:
    from dissensus.votes.columns import require

    columns = [name for name in rows.table.columns if name not in classes]
    return require("item", item if item in columns else None, columns, path=rows.path)


def _class_numbers(rows: Rows, classes: tuple[str, ...], *, item: str) -> tuple[Table, str, tuple[str, ...]]:
    """(rows, classes) numbers, the one column that held them if one did, and notes."""
    from dissensus.votes.columns import listed

    columns, path = rows.table.columns, rows.path
    missing = [name for name in classes if name not in columns]
    if not missing:
        others = [name for name in columns if name not in (*classes, item, SEED)]
        notes = (f"columns that are no class of the votes are not used: {listed(others)}",) if others else ()
        return _stack([rows.table[name] for name in classes], rows), "", notes
    source = next((name for name in columns if name.lower() in (*SAYS, *SAYS_NOTHING)), None)
    if source is None or len(missing) < len(classes):
        raise InputError(
            f"{path}: no column is named after {listed(missing)}, among {listed(columns)}; give one column for each "
            "class of the votes"
        )
    cells, order = _cells(rows, source, classes)
    return _stack(cells, rows), source, order


def _cells(rows: Rows, source: str, classes: tuple[str, ...]) -> tuple[list[pl.Series], tuple[str, ...]]:
    """One series a class from a column of lists or objects, and notes."""
    import polars as pl

    cells = rows.table[source]
    if isinstance(cells.dtype, pl.Struct):
        fields = cells.struct.unnest()
        return [fields.to_series(k) for k in _order(rows.path, fields.columns, classes)], ()
    if isinstance(cells.dtype, pl.Array):
        cells = cells.arr.to_list()
    if not isinstance(cells.dtype, pl.List):
        raise InputError(f"{rows.path}: '{source}' holds {cells.dtype}; give lists of numbers, or one column a class")
    wrong = np.flatnonzero((cells.list.len().fill_null(0) != len(classes)).to_numpy())
    if wrong.size:
        raise InputError(
            f"{rows.where(int(wrong[0]))}: '{source}' does not hold {len(classes)} numbers; give one for each of the "
            f"classes {', '.join(classes)}"
        )
    return [cells.list.get(k) for k in range(len(classes))], (_unnamed(source, classes),)


def _stack(columns: list[pl.Series], rows: Rows) -> Table:
    return np.stack([_floats(column, rows) for column in columns], axis=1)


def _floats(cells: pl.Series, rows: Rows) -> Floats:
    import polars as pl

    if cells.dtype.is_nested():
        raise InputError(f"{rows.path}: column '{cells.name}' holds {cells.dtype}; give one number a row")
    values = cells.cast(pl.Float64, strict=False)
    if values.null_count():
        row = int(values.is_null().arg_true()[0])
        said = "an empty cell" if cells[row] is None else repr(cells[row])
        raise InputError(f"{rows.where(row)}: {said} is no number; give one for each class")
    return values.to_numpy()
