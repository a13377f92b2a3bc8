"""A model's predictions: checked, read from files, and matched to the items that people judged."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np
from scipy.special import log_softmax, softmax

from dissensus.errors import InputError
from dissensus.labels.distribution import LabelDistribution

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from dissensus.arrays import Floats, Ints, Names, Table
    from dissensus.votes.files import Rows

Given: TypeAlias = Literal["probabilities", "logits"]
"""What a model's numbers are; logits become probabilities by softmax."""

Runs: TypeAlias = np.ndarray[tuple[int, int, int], np.dtype[np.float64]]
"""(seeds, items, classes) one distribution for each seed and item."""

TOLERANCE: Final = 1e-3
"""How far from 1 a row of probabilities may sum, for rounding; rows within it are divided by their sum."""

FLOOR: Final = 1e-12
"""What a probability of 0 counts as where its logarithm is taken for calibration."""

KINDS: Final = (".csv", ".tsv", ".parquet", ".pq", ".jsonl", ".ndjson", ".npz")


@dataclass(frozen=True, eq=False, kw_only=True)
class Predictions:
    """Predictions of one system on items that have names.

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


def checked_human(human: LabelDistribution | Any) -> Table:
    """(items, classes) the human probabilities of label distributions or of an array, refused where they are none."""
    if isinstance(human, LabelDistribution):
        return human.probabilities
    table = checked_probabilities(human, "human")
    if table.shape[0] != 1:
        raise InputError(f"human: expected one distribution an item, (items, classes), got {table.shape}")
    return table[0]


def checked_probabilities(values: Any, what: str, *, items: Names | None = None) -> Runs:
    """(seeds, items, classes) probabilities of an array of that shape or of (items, classes), in float64.

    Refuses numbers that are not finite, negative numbers, and rows that do not sum to 1 within `TOLERANCE`, with the item
    and how far off it is.
    """
    table = _finite(values, what, items)
    total = table.sum(axis=-1)
    off = np.where((table < -1e-9).any(axis=-1), np.inf, np.abs(total - 1.0))
    seed, item = np.unravel_index(int(off.argmax()), off.shape)
    if not off[seed, item] <= TOLERANCE:
        row, where = table[seed, item], f"{what}: item {_name(items, int(item))}"
        if row.min() < -1e-9:
            raise InputError(
                f"{where} has the probability {row.min():.6g}; none is negative, and logits must be called logits"
            )
        far = int((off > TOLERANCE).sum())
        raise InputError(
            f"{where} sums to {row.sum():.6g}, {row.sum() - 1:+.3g} off, the farthest of {far:,} rows that do not sum "
            "to 1; give probabilities, or say that these are logits"
        )
    return np.asarray(np.maximum(table, 0.0) / total[..., None])


def log_probabilities(predictions: Any, *, given: Given) -> Any:
    """(..., classes) natural logarithms of probabilities, or of the softmax of logits; of the same shape."""
    shape = np.shape(predictions)
    if given == "logits":
        table = log_softmax(_finite(predictions, "logits", None), axis=-1)
    elif given == "probabilities":
        table = np.log(np.maximum(checked_probabilities(predictions, "predictions"), FLOOR))
    else:
        raise InputError(f"predictions: they are given as probabilities or as logits, not as '{given}'")
    return table.reshape(shape)


def _finite(values: Any, what: str, items: Names | None) -> Runs:
    # A tensor may sit on a GPU, hold gradients or have a type that NumPy lacks.
    values = values.detach().double().cpu().numpy() if hasattr(values, "detach") else values
    try:
        table = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what}: expected a table of numbers, items by classes ({error})") from None
    if table.ndim not in (2, 3) or table.size == 0:
        raise InputError(
            f"{what}: expected (items, classes) or (seeds, items, classes) numbers, got an array of shape {table.shape}"
        )
    table = table.reshape(-1, *table.shape[-2:])
    if items is not None and table.shape[1] != len(items):
        raise InputError(f"{what}: {table.shape[1]:,} rows for {len(items):,} items; give one row an item")
    bad = ~np.isfinite(table).all(axis=-1)
    if bad.any():
        item = int(bad.any(axis=0).argmax())
        row = table[int(bad[:, item].argmax()), item]
        raise InputError(
            f"{what}: item {_name(items, item)} holds {row[~np.isfinite(row)][0]}, and so do {int(bad.sum()) - 1:,} more "
            "rows; give a finite number for each class"
            if bad.sum() > 1
            else f"{what}: item {_name(items, item)} holds {row[~np.isfinite(row)][0]}; give a finite number a class"
        )
    return table


def _name(items: Names | None, row: int) -> Any:
    return row if items is None else items[row]


def read_predictions(
    path: str | Path, classes: Sequence[str], *, item: str | None = None, given: Given | None = None
) -> Predictions:
    """Predictions of a file: one row an item, with its name and one number a class.

    A CSV, TSV, Parquet or JSONL file has a column of item names and one column a class, in any order, or one column that
    holds a list (in class order) or an object (by class name). A column called `seed` says which of several seeds a row
    is of. An npz file has the arrays `items`, `probabilities` or `logits` of shape (items, classes) or (seeds, items,
    classes), and may have `classes`, their names in order. Files that `write_labels` wrote are read too.

    Args:
        path: the file.
        classes: the names of the votes' classes, in class order.
        item: the column of item names; None guesses it from its name.
        given: probabilities or logits; None takes the name of the array or column where it says so, and else looks:
            rows in [0, 1] that sum to 1 are probabilities, and rows with negative numbers, of which fewer than half sum
            to 1, are logits. What is neither is refused. The notes say what was decided.
    """
    path = _opened(path)
    names = tuple(str(name) for name in classes)
    found = _from_npz(path, names) if path.suffix.lower() == ".npz" else _from_rows(path, names, item)
    _refuse_twice(path, found.items)
    given, notes = _decide(path, found, given)
    if given == "logits":
        probabilities = softmax(_finite(found.values, str(path), found.items), axis=-1)
    else:
        probabilities = checked_probabilities(found.values, str(path), items=found.items)
        off = float(np.abs(found.values.sum(axis=-1) - 1.0).max())
        if off > 1e-6:
            notes = (*notes, f"rows sum to 1 within {off:.1g}; each was divided by its sum")
    return Predictions(
        probabilities=probabilities, items=found.items, classes=names, given=given, notes=(*found.notes, *notes)
    )


def align_predictions(
    human: LabelDistribution, predictions: Mapping[str, Predictions], *, only_common: bool = False
) -> tuple[LabelDistribution, dict[str, Runs], tuple[str, ...]]:
    """Predictions in the order of the items that people judged.

    Args:
        human: the label distributions.
        predictions: systems by name.
        only_common: evaluate the items that people judged and every system predicted, and say how many were left out;
            without it any item on one side only is refused.

    Returns:
        The label distributions of the evaluated items, each system's (seeds, items, classes) probabilities, and notes.
    """
    places = {name: _places(human, each, name, only_common) for name, each in predictions.items()}
    everywhere = np.ones(len(human), dtype=np.bool_)
    for place in places.values():
        everywhere &= place >= 0
    kept = np.flatnonzero(everywhere)
    if not kept.size:
        raise InputError("predictions: no item has votes and a prediction of every system; check the item names")
    notes = []
    if kept.size < len(human):
        notes.append(
            f"{kept.size:,} of {len(human):,} items with votes have a prediction of every system; only these count"
        )
    for name, each in predictions.items():
        unknown = len(each.items) - int((places[name] >= 0).sum())
        if unknown:
            notes.append(f"{name}: {unknown:,} predictions for items without votes were left out")
    aligned = {name: each.probabilities[:, places[name][kept]] for name, each in predictions.items()}
    return human.take(kept) if kept.size < len(human) else human, aligned, tuple(notes)


def _places(human: LabelDistribution, predictions: Predictions, name: str, only_common: bool) -> Ints:
    """(items of the votes,) the row of each item in the predictions, -1 where there is none."""
    if predictions.classes != human.classes:
        raise InputError(
            f"{name}: its classes are {', '.join(predictions.classes)} and the votes' {', '.join(human.classes)}; "
            "read the predictions with the votes' classes"
        )
    wanted, there = _comparable(human.items, predictions.items)
    order = np.argsort(there, kind="stable")
    nearest = order[np.minimum(np.searchsorted(there, wanted, sorter=order), there.size - 1)]
    place = np.where(there[nearest] == wanted, nearest, -1)
    missing = np.flatnonzero(place < 0)
    if missing.size and not only_common:
        raise InputError(
            f"{name}: no prediction for item {human.items[missing[0]]}, which has votes{_more(missing.size)}; predict "
            "every item, or evaluate only the common items"
        )
    known = np.zeros(there.size, dtype=np.bool_)
    known[place[place >= 0]] = True
    unknown = np.flatnonzero(~known)
    if unknown.size and not only_common:
        raise InputError(
            f"{name}: a prediction for item {predictions.items[unknown[0]]}, which has no votes{_more(unknown.size)}; "
            "leave it out, or evaluate only the common items"
        )
    return place


def _comparable(left: Names, right: Names) -> tuple[Names, Names]:
    """Names as whole numbers where both are, else as text."""
    if left.dtype.kind in "iu" and right.dtype.kind in "iu":
        return left, right
    text = np.dtypes.StringDType()
    return left.astype(text), right.astype(text)


def _more(size: int) -> str:
    return f", nor for {size - 1:,} more".replace("nor for", "and so for") if size > 1 else ""


def _refuse_twice(path: Path, items: Names) -> None:
    names, first, times = np.unique(items, return_index=True, return_counts=True)
    if names.size < items.size:
        twice = int(np.where(times > 1, first, items.size).argmin())
        raise InputError(
            f"{path}: item {names[twice]} stands {times[twice]} times, and {int((times > 1).sum()) - 1:,} more items "
            "stand more than once; give each item one row, or name the seed of each row in a column 'seed'"
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class _Found:
    """Numbers of a file, before it is settled what they are.

    Attributes:
        values: (seeds, items, classes) numbers.
        items: names.
        named: what the name of the array or column says they are, if anything.
        source: that name.
        notes: sentences.
    """

    values: Runs
    items: Names
    named: Given | None = None
    source: str = ""
    notes: tuple[str, ...] = ()


_SAYS: Final[dict[str, Given]] = {
    **dict.fromkeys(("probabilities", "probability", "probs", "prob", "proba"), "probabilities"),
    **dict.fromkeys(("logits", "logit"), "logits"),
}
_SAYS_NOTHING: Final = ("predictions", "prediction", "scores", "outputs")


def _decide(path: Path, found: _Found, given: Given | None) -> tuple[Given, tuple[str, ...]]:
    if given is not None:
        if given not in ("probabilities", "logits"):
            raise InputError(f"{path}: predictions are given as probabilities or as logits, not as '{given}'")
        return given, ()
    if found.named is not None:
        return found.named, (f"{path}: taken as {found.named}, as '{found.source}' says",)
    table = _finite(found.values, str(path), found.items)
    total = table.sum(axis=-1)
    inside = ((table >= -1e-9) & (table <= 1 + TOLERANCE)).all(axis=-1) & (np.abs(total - 1) <= TOLERANCE)
    if inside.all():
        return "probabilities", (f"{path}: taken as probabilities, as all rows lie in [0, 1] and sum to 1",)
    if (table < 0).any() and inside.mean() < 0.5:
        return "logits", (
            f"{path}: taken as logits and put through softmax, as there are negative numbers and "
            f"{1 - inside.mean():.0%} of rows do not sum to 1",
        )
    # Either damaged probabilities, whose row is then named, or numbers that could be anything.
    checked_probabilities(table, str(path), items=found.items)
    raise AssertionError("rows that are not all distributions are refused")


def _opened(path: str | Path) -> Path:
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path}: this is a folder; give a file of predictions")
    if not path.exists():
        raise InputError(f"{path}: there is no such file; check the name and the folder")
    if path.suffix.lower() not in KINDS:
        raise InputError(f"{path}: unknown extension '{path.suffix}'; save the predictions as one of {', '.join(KINDS)}")
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty; give a file with predictions in it")
    return path


def _from_npz(path: Path, classes: tuple[str, ...]) -> _Found:
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError) as error:
        raise InputError(f"{path}: this is no whole npz file of plain arrays ({error}); write it again") from None
    source = next((name for name in (*_SAYS, *_SAYS_NOTHING) if name in arrays), None)
    held = next((name for name in ("items", "item", "ids", "uid", "id") if name in arrays), None)
    if source is None or held is None:
        raise InputError(
            f"{path}: it holds {_listed(list(arrays))}; give the arrays 'items' and 'probabilities' or 'logits'"
        )
    values = np.asarray(arrays[source])
    if values.ndim not in (2, 3) or values.dtype.kind not in "fiu" or values.size == 0:
        raise InputError(
            f"{path}: '{source}' is {values.dtype} of shape {values.shape}; give numbers of shape (items, classes) or "
            "(seeds, items, classes)"
        )
    values = values.reshape(-1, *values.shape[-2:]).astype(np.float64)
    items = arrays[held]
    if items.shape != values.shape[1:2]:
        raise InputError(f"{path}: '{held}' has shape {items.shape} for {values.shape[1]:,} rows; give one name a row")
    items = items.astype(np.int64) if items.dtype.kind in "iu" else items.astype(np.dtypes.StringDType())
    if "classes" in arrays:
        order, notes = _class_order(path, [str(name) for name in arrays["classes"].ravel().tolist()], classes), ()
    else:
        order, notes = list(range(len(classes))), (_in_class_order(path, source, classes),)
    if values.shape[2] != len(order):
        raise InputError(
            f"{path}: '{source}' has {values.shape[2]} numbers a row for the classes {', '.join(classes)}; "
            "give one number a class"
        )
    return _Found(values=values[:, :, order], items=items, named=_SAYS.get(source), source=source, notes=notes)


def _class_order(path: Path, names: list[str], classes: tuple[str, ...]) -> list[int]:
    """Where each of the votes' classes stands among the names that a file gives."""
    if sorted(names) != sorted(classes):
        raise InputError(
            f"{path}: its classes are {', '.join(names)}, and the votes' are {', '.join(classes)}; give the same names"
        )
    return [names.index(name) for name in classes]


def _in_class_order(path: Path, source: str, classes: tuple[str, ...]) -> str:
    return f"{path}: the numbers of '{source}' carry no class names; taken in the order {', '.join(classes)}"


def _from_rows(path: Path, classes: tuple[str, ...], item: str | None) -> _Found:
    from dissensus.votes.cells import encode_names, name_like, refuse_missing
    from dissensus.votes.columns import require
    from dissensus.votes.encoding import to_names

    rows = _rows(path)
    table = rows.table
    column = require("item", item, [name for name in table.columns if name not in classes], path=path)
    values, found = _class_columns(rows, classes, item=column)
    ids = name_like(table[column], where=rows.where)
    refuse_missing(ids, where=rows.where)
    if "seed" not in table.columns or "seed" in classes or column == "seed":
        return replace(found, values=values[None], items=to_names(ids))
    seed, seeds = encode_names(table["seed"], where=rows.where)
    place, items = encode_names(ids, where=rows.where)
    cell = seed.astype(np.int64) * items.size + place
    times = np.bincount(cell, minlength=seeds.size * items.size)
    wrong = np.flatnonzero(times != 1)
    if wrong.size:
        raise InputError(
            f"{path}: item {items[wrong[0] % items.size]} stands {times[wrong[0]]} times with seed "
            f"{seeds[wrong[0] // items.size]}; give each item exactly one row a seed"
        )
    runs = np.empty_like(values)
    runs[cell] = values
    note = f"{path}: {seeds.size} seeds, told apart by the column 'seed'"
    return replace(
        found,
        values=runs.reshape(seeds.size, items.size, len(classes)),
        items=items,
        notes=(*found.notes, note),
    )


def _rows(path: Path) -> Rows:
    from dissensus.votes.files import Rows, explained, kind_of, scan, whole_numbers, without_blank

    with explained(path):
        rows = without_blank(Rows(path, scan(path).collect()))
    if kind_of(path) in ("CSV", "TSV"):
        rows = replace(rows, table=rows.table.select(whole_numbers(column) for column in rows.table))
    if not rows.table.height:
        raise InputError(f"{path}: the file holds no rows; give a file with predictions in it")
    return rows


def _class_columns(rows: Rows, classes: tuple[str, ...], *, item: str) -> tuple[Table, _Found]:
    """(rows, classes) numbers, and what their column says they are."""
    import polars as pl

    table, path = rows.table, rows.path
    nothing = _Found(values=np.empty((0, 0, 0)), items=np.empty(0))
    there = [name for name in classes if name in table.columns]
    if len(there) == len(classes):
        others = [
            name for name in table.columns if name not in (*classes, item, "seed") and table.schema[name].is_float()
        ]
        notes = (f"{path}: {_listed(others)} are no classes of the votes and were not used",) if others else ()
        values = np.stack([_numbers(table[name], rows) for name in classes], axis=1)
        return values, replace(nothing, notes=notes)
    nested = [name for name in table.columns if name.lower() in _SAYS or name.lower() in _SAYS_NOTHING]
    if there or not nested:
        missing = [name for name in classes if name not in table.columns]
        raise InputError(
            f"{path}: there is no column for the class {_listed(missing)} among {_listed(table.columns)}; name one "
            "column after each class of the votes"
        )
    source = nested[0]
    cells = table[source]
    notes = ()
    if isinstance(cells.dtype, pl.Struct):
        fields = cells.struct.unnest()
        order = _class_order(path, fields.columns, classes)
        columns = [fields.to_series(k) for k in order]
    elif isinstance(cells.dtype, pl.List | pl.Array):
        cells = cells.cast(pl.List(cells.dtype.inner)) if isinstance(cells.dtype, pl.Array) else cells
        wrong = np.flatnonzero((cells.list.len().fill_null(0) != len(classes)).to_numpy())
        if wrong.size:
            row = int(wrong[0])
            raise InputError(
                f"{rows.where(row)}: '{source}' does not hold {len(classes)} numbers, one for each of "
                f"{', '.join(classes)}; give one number a class"
            )
        columns = [cells.list.get(k) for k in range(len(classes))]
        notes = (_in_class_order(path, source, classes),)
    else:
        raise InputError(
            f"{rows.where(0)}: '{source}' holds {cells.dtype}; give one column a class, or a list of numbers"
        )
    values = np.stack([_numbers(column, rows) for column in columns], axis=1)
    return values, replace(nothing, named=_SAYS.get(source.lower()), source=source, notes=notes)


def _numbers(cells: pl.Series, rows: Rows) -> Floats:
    import polars as pl

    values = cells.cast(pl.Float64, strict=False) if not cells.dtype.is_nested() else cells.clear(len(cells))
    if values.null_count():
        row = int(values.is_null().arg_true()[0])
        raise InputError(f"{rows.where(row)}: '{cells[row]}' is no number for the class; give one in every row")
    return values.to_numpy()


def _listed(names: Sequence[str]) -> str:
    from dissensus.votes.columns import listed

    return listed(list(names))
