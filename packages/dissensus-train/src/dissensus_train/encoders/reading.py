"""Items and features from a user's files; every refusal names the file, and the line where there is one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.array_file import read_npy, read_npz
from dissensus.datasets.sources import TEXT_COLUMNS, distinct, named_like
from dissensus.errors import InputError, MissingItemsError, choices, meant_path
from dissensus.item_names import places_of_items
from dissensus.items.pictures import ImageReading, image_paths
from dissensus.items.shown import Items
from dissensus.table_file import Rows, open_file, read_rows
from dissensus.votes.columns import guess

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import polars as pl

    from dissensus.arrays import Ints, Names

PAIRS: Final = (
    ("premise", "hypothesis"),
    ("sentence1", "sentence2"),
    ("text_a", "text_b"),
    ("text1", "text2"),
    ("question", "answer"),
    ("context", "response"),
    ("prompt", "response"),
    ("response1", "response2"),
    ("response_a", "response_b"),
    ("answer_a", "answer_b"),
)
"""Names of two columns that are taken for a pair of texts."""

FEATURES: Final = (
    "give a .npz with arrays 'items' and 'features', a .parquet with a column of items and columns of numbers, or a "
    ".npy whose rows are the items 0, 1, 2, ..."
)
"""What features may be, for the end of a sentence."""


def read_texts(path: Path, names: Names | None = None, *, item: str | None = None, text: Sequence[str] = ()) -> Items:
    """Texts of items from a table: a column of items, and one of texts, or two for pairs, or three.

    An item may have several rows, as in a file of votes, if its text is the same in all of them. A JSON file holds an
    object with an entry for each item, as those of Le-Wi-Di.

    Args:
        path: CSV, TSV, Parquet, JSONL or JSON.
        names: the items whose texts are wanted, in this order; all of the file's where they are not given.
        item: the column of items; found by its name where it is not given.
        text: the columns of texts, up to three; found by their names where they are not given.
    """
    rows = _json_rows(path) if path.suffix.lower() == ".json" else read_rows(open_file(path))
    columns = rows.table.columns
    item = _item_column(path, columns, item)
    chosen = _text_columns(path, rows.table, item, text)
    row, names = _one_row_an_item(rows, item, chosen, names)
    for column in chosen:
        texts = rows.table[column].cast(str)
        empty = np.flatnonzero((texts.is_null() | (texts.str.strip_chars() == ""))[row])
        if empty.size:
            raise MissingItemsError(
                f"{rows.where(int(row[empty[0]]))}: item {names[empty[0]]} has no text in column '{column}'"
                f"{_and_more(empty.size)}; fill it, or leave the item out of the votes",
                np.isin(np.arange(len(names)), empty),
            )
    others = [name for name in columns if name not in (item, *chosen) and not rows.table[name].dtype.is_nested()]
    return Items(
        names=names,
        texts=tuple(_strings(rows.table[column], row) for column in chosen),
        columns={name: _strings(rows.table[name], row) for name in others},
    )


def read_images(folder: Path, names: Names | None = None, *, reading: ImageReading = ImageReading()) -> Items:  # noqa: B008
    """Image files of a folder and its sub-folders; an item is called by its path in the folder, or its file's name.

    The ending may be left out. Images are read when they are needed, not here.

    Args:
        folder: where they lie.
        names: the items whose images are wanted, in this order; all of the folder's where they are not given.
        reading: how they become bytes; their range of values is that of the wanted images where it has none.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder; give the folder that holds the images")
    paths = image_paths(folder)
    called = [path.relative_to(folder).as_posix() for path in paths]
    if names is None:
        return Items(names=np.array(called, dtype=np.dtypes.StringDType()), files=tuple(paths), reading=reading)
    spellings: dict[str, list[int]] = {}
    for number, path in enumerate(paths):
        for spelling in {called[number], path.name, path.stem, path.relative_to(folder).with_suffix("").as_posix()}:
            spellings.setdefault(spelling, []).append(number)
    exact = {name: number for number, name in enumerate(called)}
    matches = [[exact[name]] if name in exact else spellings.get(name, []) for name in map(str, names.tolist())]
    if without := [number for number, places in enumerate(matches) if not places]:
        raise MissingItemsError(
            f"{folder}: no image for item '{names[without[0]]}'{_and_more(len(without))}; an image is called "
            f"like its item, as {called[0]} is",
            np.isin(np.arange(len(names)), without),
        )
    for several in (number for number, places in enumerate(matches) if len(places) > 1):
        first, second = matches[several][:2]
        raise InputError(
            f"{folder}: item '{names[several]}' may be {called[first]} or {called[second]}; call items by their path "
            "in the folder"
        )
    shown = np.array([places[0] for places in matches], dtype=np.int64)
    _, one, item = np.unique(shown, return_index=True, return_inverse=True)
    again = np.flatnonzero(one[item] != np.arange(len(shown)))
    if again.size:
        raise InputError(
            f"{folder}: items '{names[one[item[again[0]]]]}' and '{names[again[0]]}' are both "
            f"{called[shown[again[0]]]}; call an item by one name"
        )
    return Items(names=names, files=tuple(paths[places[0]] for places in matches), reading=reading)


def read_features(path: Path, names: Names) -> np.ndarray[Any, np.dtype[np.float32]]:
    """(items, ...) the features of the given items, from a `.npz`, `.npy` or `.parquet` file.

    The file is read as by `read_all_features`; every given item must have a row in it.
    """
    own, rows = read_all_features(path)
    place = places_in_file(path, names, own, "features")
    # What does not fit becomes infinite, and is refused below.
    with np.errstate(over="ignore"):
        features = rows[place].astype(np.float32)
    wrong_rows = np.flatnonzero(~np.isfinite(features.reshape(len(features), -1)).all(axis=1))
    if wrong_rows.size:
        raise InputError(
            f"{path}: the features of item {names[wrong_rows[0]]} hold NaN, infinity or a number beyond float32"
            f"{_and_more(wrong_rows.size)}; fill or scale them"
        )
    return features


def read_all_features(path: Path) -> tuple[Names, np.ndarray[Any, Any]]:
    """(items,) names and (items, ...) features of a `.npz`, `.npy` or `.parquet` file, in any type of real numbers.

    An npz holds arrays `items` and `features`. A Parquet file has a column of items, and one column of lists or
    several of numbers. A npy has no names: its items are the numbers 0, 1, 2, ... of its rows.
    """
    kind = path.suffix.lower()
    if kind not in (".npz", ".npy", ".parquet"):
        raise InputError(f"{path}: features are not read from '{path.suffix}' files; {FEATURES}")
    if not path.is_file():
        raise InputError(f"{path}: there is no such file{meant_path(path) or f'; {FEATURES}'}")
    if kind == ".npy":
        rows = read_npy(path, remedy=FEATURES)
        own: Names = np.arange(rows.shape[0] if rows.ndim else 0)
    elif kind == ".npz":
        arrays = read_npz(path, only=("items", "features"), remedy=FEATURES)
        if missing := [name for name in ("items", "features") if name not in arrays]:
            raise InputError(f"{path}: there is no array '{missing[0]}'; {FEATURES}")
        own, rows = arrays["items"], arrays["features"]
    else:
        own, rows = _parquet_features(path)
    if own.ndim != 1 or rows.ndim < 2:
        wrong = "features" if own.ndim == 1 else "items"
        axes = rows.ndim if wrong == "features" else own.ndim
        raise InputError(
            f"{path}: '{wrong}' has {axes} {'axis' if axes == 1 else 'axes'}; features are a row of numbers per item, "
            "(items, columns) or (items, channels, height, width), and items one name each"
        )
    if own.shape[0] != rows.shape[0]:
        raise InputError(
            f"{path}: {own.shape[0]:,} items and {rows.shape[0]:,} rows of features; give one row per item"
        )
    if rows.dtype.kind not in "fiub":
        raise InputError(f"{path}: the features are of type {rows.dtype}; give real numbers")
    if not np.prod(rows.shape[1:]):
        raise InputError(f"{path}: the features have no columns; give at least one number per item")
    return distinct(own, path), rows


def _json_rows(path: Path) -> Rows:
    import polars as pl

    try:
        entries = json.loads(open_file(path).read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise InputError(
            f"{path}: this is not JSON ({str(error).splitlines()[0]}); write or download it again"
        ) from error
    if not isinstance(entries, dict) or not entries or not all(isinstance(entry, dict) for entry in entries.values()):
        raise InputError(f'{path}: expected an object with an entry for each item, as {{"1": {{"text": "..."}}}}')
    cells = [
        {key: str(value) for key, value in entry.items() if isinstance(value, str | int | float)}
        for entry in entries.values()
    ]
    keys = dict.fromkeys(key for row in cells for key in row if key != "item")
    table = {key: [row.get(key) for row in cells] for key in keys}
    return Rows(path, pl.DataFrame({"item": list(entries), **table}))


def _item_column(path: Path, columns: Sequence[str], given: str | None) -> str:
    if given is not None and given not in columns:
        raise InputError(f"{path}: there is no column '{given}' of items{choices(given, columns)}")
    column = given or guess("item", columns)
    if column is None:
        raise InputError(
            f"{path}: none of the columns {', '.join(columns)} is known to name the items; name it with item="
        )
    return column


def _text_columns(path: Path, table: pl.DataFrame, item: str, given: Sequence[str]) -> tuple[str, ...]:
    for name in given:
        if name not in table.columns:
            raise InputError(
                f"{path}: there is no column '{name}' of texts{choices(name, table.columns)}, or two of them"
            )
    if given:
        return tuple(given)
    columns = [name for name in table.columns if name != item]
    for names in (*((name,) for name in TEXT_COLUMNS), *PAIRS):
        chosen = [column for name in names if (column := named_like(columns, [name])) is not None]
        if len(chosen) == len(names):
            return tuple(chosen)
    texts = [name for name in columns if str(table[name].dtype) == "String"]
    if len(texts) == 1:
        return (texts[0],)
    longest = sorted(texts, key=lambda name: -int(table[name].drop_nulls().str.len_chars().to_numpy().sum()))
    raise InputError(
        f"{path}: none of the columns {', '.join(table.columns)} is known to hold texts; name it, or two, with text=",
        readings={f"the texts are in '{name}'": {"text": name} for name in longest[:2]},
    )


def _one_row_an_item(rows: Rows, item: str, chosen: Sequence[str], names: Names | None) -> tuple[Ints, Names]:
    """The first row of each wanted item, and the items; two rows of an item that differ in text are refused."""
    from dissensus.votes.cells import encode_names

    code, known = encode_names(rows.table[item], where=rows.where)
    first = np.unique(code, return_index=True)[1]
    for column in chosen:
        texts = rows.table[column].cast(str)
        other = np.flatnonzero((texts != texts[first[code]]).fill_null(value=False).to_numpy())
        if other.size:
            row = int(other[0])
            raise InputError(
                f"{rows.where(row)}: item {known[code[row]]} has another text in column '{column}' than in "
                f"{rows.where(int(first[code[row]])).rpartition(', ')[2]}; give an item one text"
            )
    if names is None:
        return np.asarray(first, dtype=np.int64), known
    return np.asarray(first[places_in_file(rows.path, names, known, "row")], dtype=np.int64), names


def places_in_file(path: Path, names: Names, known: Names, what: str) -> Ints:
    """(items,) the place of each item among those that a file knows; refuses an item that is not there."""
    place = places_of_items(names, known)
    without = np.flatnonzero(place < 0)
    if without.size:
        item = f"'{names[without[0]]}'{_and_more(without.size)}"
        raise MissingItemsError(f"{path}: no {what} for item {item}; every item with votes needs one", place < 0)
    return place


def _parquet_features(path: Path) -> tuple[Names, np.ndarray[Any, Any]]:
    table = read_rows(open_file(path)).table
    item = _item_column(path, table.columns, None)
    others = [name for name in table.columns if name != item]
    if len(others) == 1 and table[others[0]].dtype.is_nested():
        column = table[others[0]]
        if str(column.dtype).startswith("List") and column.list.len().n_unique() != 1:
            raise InputError(
                f"{path}: the lists of column '{others[0]}' differ in length; give every item as many numbers"
            )
        rows = np.array(column.to_list())
    else:
        for wrong in (name for name in others if not table[name].dtype.is_numeric()):
            raise InputError(f"{path}: column '{wrong}' holds {table[wrong].dtype}, not numbers; leave it out")
        rows = table.select(others).to_numpy()
    return table[item].to_numpy(), rows


def _strings(column: pl.Series, rows: Ints) -> Names:
    return np.array(column.cast(str).fill_null("").gather(rows).to_list(), dtype=np.dtypes.StringDType())


def _and_more(count: int) -> str:
    return f" and {count - 1:,} more item{'s' if count > 2 else ''}" if count > 1 else ""
