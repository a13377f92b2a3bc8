"""Files of predictions, and the matching of predictions to the items that people judged."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, get_args

import numpy as np
from scipy.special import softmax

from dissensus.array_file import read_npy, read_npz
from dissensus.errors import InputError, choices
from dissensus.evaluation.answer_texts import number_of, object_in
from dissensus.evaluation.model_outputs import ALSO, SEED, item_column, read_outputs
from dissensus.evaluation.probabilities import Given, Predictions, checked_logits, checked_probabilities
from dissensus.item_names import places_of_items
from dissensus.table_file import kind_of, open_bytes, open_file, read_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import polars as pl

    from dissensus.arrays import Floats, Ints, Mask, Names, Table
    from dissensus.evaluation.probabilities import Runs
    from dissensus.labels.distribution import LabelDistribution
    from dissensus.table_file import Rows
    from dissensus.votes.shown_pairs import ShownPairs

ROUNDING: Final = 1e-3
"""How far from 1 a row of a file may sum: numbers in text are rounded. Each row is divided by its sum."""

SAYS: Final[dict[str, Given]] = {
    **dict.fromkeys(("probabilities", "probs", "probability", "prob", "proba"), "probabilities"),
    **dict.fromkeys(("logits", "logit"), "logits"),
}
"""Names of a column or array that say what its numbers are."""

SAYS_NOTHING: Final = ("predictions", "prediction", "scores", "outputs")
"""Names that a column or array of a model's numbers may have, and that do not say which they are."""

ITEMS: Final = ("items", "item", "ids", "id", "uid", "uids")
"""Names that the array of items may have in an npz file."""

TRAINED_ON: Final = "trained_on"
"""The column of `dissensus predict` that says of each item whether it was used to train or choose the model."""

LABELS: Final = ("majority", "tied", "entropy", "judgements")
"""Columns that identify a file of labels made from votes. The last column counts the votes of each item."""

MODEL: Final = "model"
"""What a system is called that came without a name."""

SEEDS: Final = "seeds"
"""The array of an npz file that numbers its runs."""


def read_predictions(
    path: str | Path,
    classes: Sequence[str],
    *,
    order: Sequence[str] | None = None,
    item: str | None = None,
    given: Given | None = None,
    answers: Mapping[str, str] | None = None,
    shown: ShownPairs | None = None,
) -> Predictions:
    """Predictions of a file: one row for each item, with its name and a number for each class; or a model's outputs.

    A CSV, TSV, Parquet or JSONL file has a column of item names, and one column for each class in any order, or one
    column with a list of numbers or an object (by class name). A column `seed` tells several seeds apart, and a column
    `trained_on` (true or false, 1 or 0) which items were used to train or choose the system. An npz file has the
    arrays `items`, and `probabilities` or `logits` of shape (items, classes) or (seeds, items, classes); it may have
    `classes`, their names in order, and `seeds`. Files that `write_labels` wrote are read too. An npy file has such an
    array alone, a JSON file may have it as lists of numbers, and its rows are items 0, 1, 2, ...

    Outputs are hard labels, sampled answers, log-probabilities of tokens and answers in words, as `model_outputs` reads
    them; what names no class counts as one more class, which nobody voted for.

    A class that nobody voted for counts: its column is recognised because rows sum to 1 only with it, or because
    `order` names it.

    Args:
        path: the file.
        classes: the names of the votes' classes, in class order.
        order: the names of the model's classes, in the order of its numbers. Lists and arrays without class names are
            refused without it: the alphabetical order of the votes' classes is seldom that of a model.
        item: the column of item names; where there is none of that name it is guessed, and a note says which it is.
        given: probabilities or logits. None takes the name of the column or array where that says it, and else looks
            at the numbers: rows in [0, 1] that sum to 1 are probabilities; rows with negative numbers, most of which
            do not sum to 1, are logits; anything else is refused. The notes say what was decided.
        answers: of outputs, by answer the class that it means; without it an answer is the class that it names.
        shown: of preferences, how pairs were shown (`LabelDistribution.shown`): `model_a` is a side, and the name of a
            system the side that it is on. Columns of the file that name the sides of its rows turn these.
    """
    if given is not None and given not in get_args(Given):
        raise InputError(f"{path}: predictions are given as probabilities or as logits, not as '{given}'")
    path = open_file(path)
    names = _Names(tuple(map(str, classes)), None if order is None else tuple(map(str, order)))
    outputs = read_outputs(path, names.all, answers=answers, item=item, shown=shown)
    if outputs is not None:
        return outputs
    if answers is not None:
        raise InputError(f"{path}: it holds numbers for each class, and no answers; leave out answers=")
    arrays = _arrays(path, kind_of(path, also=ALSO))
    if arrays is None:
        return table_predictions(read_rows(path), names.votes, order=names.stated, item=item, given=given, shown=shown)
    numbers = _from_arrays(path, arrays, names)
    _refuse_repeated(path, numbers.items)
    return _settled(path, numbers, given)


def table_predictions(
    rows: Rows,
    classes: Sequence[str],
    *,
    order: Sequence[str] | None = None,
    item: str | None = None,
    items: Names | None = None,
    given: Given | None = None,
    shown: ShownPairs | None = None,
) -> Predictions:
    """The predictions of a table, with the arguments of `read_predictions`.

    (rows,) `items` are the names of the items where they are known otherwise; the column `item` then says nothing.
    """
    numbers = _from_rows(rows, _Names(tuple(classes), None if order is None else tuple(order)), item, items)
    _refuse_repeated(rows.path, numbers.items)
    read = _settled(rows.path, numbers, given)
    if shown is None:
        return read
    names = items if items is not None else rows.table[item_column(rows, item, rows.table.columns)]
    shown, runs, size = shown.in_table(rows.table.to_dict(), list(names)), read.probabilities.copy(), len(classes)
    turned = shown.turned(read.items.tolist())
    runs[:, turned, :size] = runs[:, turned, :size][..., ::-1]
    notes = (f"{rows.path}: {note}" for note in shown.notes(classes))
    return replace(read, probabilities=runs, notes=(*read.notes, *notes))


def rows_predictions(
    rows: Rows,
    names: Names,
    classes: Sequence[str],
    *,
    beside: Sequence[str],
    order: Sequence[str] | None = None,
    given: Given | None = None,
) -> Predictions:
    """The predictions of rows that are not items but have (rows,) names of their own, such as votes; of one run.

    The columns `beside` hold no class; the other arguments are those of `read_predictions`.
    """
    known = _Names(tuple(map(str, classes)), None if order is None else tuple(map(str, order)))
    return _settled(rows.path, replace(_class_numbers(rows, known, beside=beside), items=names), given)


def _settled(path: Path, held: _Numbers, given: Given | None) -> Predictions:
    """The numbers of a file as probabilities, once it is settled what they are."""
    held = held if (given or held.named) == "logits" else _from_percent(held)
    decided = []
    if given is None:
        given, why = (held.named, f"as '{held.source}' says") if held.named else _look(path, held)
        decided.append(f"taken as {given}, {why}")
    held = _with_unvoted(path, held, given)
    notes = [*held.notes, *decided]
    if held.unused:
        notes.append(f"columns that are no class of the votes are not used: {', '.join(map(repr, held.unused))}")
    if held.trained_on is not None and held.trained_on.any():
        made = f"'{LABELS[-1]}' counts the votes that made these labels; drop it if they are other people's votes"
        used = f"'{TRAINED_ON}' names {int(held.trained_on.sum()):,} items that trained or chose the system"
        notes.append(made if held.of_votes else used)
    if given == "logits":
        probabilities = softmax(checked_logits(held.numbers, str(path), items=held.items), axis=-1)
    else:
        probabilities = checked_probabilities(held.numbers, str(path), items=held.items, tolerance=ROUNDING)
        off = float(np.abs(held.numbers.sum(axis=-1) - 1.0).max())
        if off > 1e-6:
            notes.append(f"rows sum to 1 within {off:.1g}; each was divided by its sum")
    return Predictions(
        probabilities=probabilities,
        items=held.items,
        classes=held.classes,
        given=given,
        seeds=held.seeds or tuple(range(len(probabilities))),
        notes=tuple(f"{path}: {note}" for note in notes),
        trained_on=held.trained_on,
        of_votes=held.of_votes,
    )


def _from_percent(held: _Numbers) -> _Numbers:
    """The numbers as parts of 1 where all rows sum to 100, with or without the further columns; else as they are."""
    total, rest = held.numbers.sum(axis=-1), sum(held.others.values())
    near = [np.abs(whole - 100.0).max() <= 100 * ROUNDING for whole in (total, total + rest)]
    if not any(near) or (held.numbers < 0).any():
        return held
    return replace(
        held,
        numbers=held.numbers / 100.0,
        others={name: values / 100.0 for name, values in held.others.items()},
        notes=(*held.notes, "rows sum to 100, and are taken as percentages"),
    )


def read_column(path: str | Path, column: str, items: Names, *, item: str | None = None) -> Names:
    """(items,) what a further column of a table, such as a file of predictions, says of each of these items.

    An item may have several rows that say the same; `item` names the column of items, which is guessed where there is
    none of that name.
    """
    from dissensus.votes.cells import encode_names, name_like, refuse_missing
    from dissensus.votes.encoding import to_names

    path = open_file(path)
    if kind_of(path, also=ALSO) == "npz":
        raise InputError(f"{path}: an npz file has no columns; give '{column}' in a CSV, TSV, Parquet or JSONL file")
    rows = read_rows(path)
    if column not in rows.table.columns:
        raise InputError(f"{path}: there is no column '{column}'{choices(column, rows.table.columns)}")
    code, names = encode_names(rows.table[item_column(rows, item, rows.table.columns)], where=rows.where)
    values = name_like(rows.table[column], where=rows.where)
    refuse_missing(values, where=rows.where)
    first = np.empty(names.size, dtype=np.int64)
    first[code[::-1]] = np.arange(code.size - 1, -1, -1)
    other = np.flatnonzero((values.gather(first[code]) != values).to_numpy())
    if other.size:
        row = int(other[0])
        raise InputError(
            f"{rows.where(row)}: item {names[code[row]]} has '{values[row]}' in column '{column}', and "
            f"'{values[int(first[code[row]])]}' before; give one value per item"
        )
    place = places_of_items(items, names)
    if (place < 0).any():
        raise InputError(f"{path}: column '{column}' has no value for item {items[int(place.argmin())]}; give one")
    return to_names(values.gather(first[place]))


def align_predictions(
    human: LabelDistribution, predictions: Mapping[str, Predictions], *, only_common: bool = False
) -> tuple[LabelDistribution, dict[str, Predictions], tuple[str, ...]]:
    """Label distributions of the evaluated items, each system's predictions for them in that order, and notes.

    Args:
        human: the label distributions.
        predictions: systems by name, read with the classes of `human`.
        only_common: evaluate the items that people judged and every system predicted, and say how many they are;
            without it an item that has only votes or only a prediction is refused.
    """
    places = {name: places_of_items(human.items, system.items) for name, system in predictions.items()}
    if not only_common:
        for name, system in predictions.items():
            _refuse_one_sided(name, human.items, system.items, places[name])
    kept = np.flatnonzero(np.all([place >= 0 for place in places.values()], axis=0))
    if not kept.size:
        raise InputError("predictions: no item has votes and a prediction of every system; check the item names")
    notes = []
    if kept.size < len(human):
        notes.append(f"{kept.size:,} of {len(human):,} items with votes have a prediction of every system; these count")
    for name, system in predictions.items():
        if unknown := len(system.items) - int((places[name] >= 0).sum()):
            notes.append(f"{name}: {unknown:,} predictions are for items without votes and do not count")
    judged = human.take(kept) if kept.size < len(human) else human
    aligned = {
        name: replace(
            system,
            probabilities=system.probabilities[:, places[name][kept]],
            items=judged.items,
            trained_on=None if system.trained_on is None else system.trained_on[places[name][kept]],
        )
        for name, system in predictions.items()
    }
    return judged, aligned, tuple(notes)


def _refuse_one_sided(name: str, judged: Names, predicted: Names, place: Ints) -> None:
    remedy = "give one prediction for each item with votes, or evaluate only the common items (only_common=)"
    missing = np.flatnonzero(place < 0)
    if missing.size == judged.size:
        raise InputError(
            f"{name}: no prediction is for an item with votes; these are called {', '.join(map(str, judged[:3]))}, and "
            f"those of the predictions {', '.join(map(str, predicted[:3]))}; call items the same in both"
        )
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


@dataclass(frozen=True)
class _Names:
    """The votes' classes, and the model's in the order of its numbers where that was stated."""

    votes: tuple[str, ...]
    stated: tuple[str, ...] | None

    @property
    def all(self) -> tuple[str, ...]:
        """The votes' classes, then those of the model that nobody voted for."""
        return (*self.votes, *(name for name in self.stated or () if name not in self.votes))

    def places(self, path: Path, names: Sequence[str]) -> tuple[list[int], tuple[str, ...]]:
        """Where each class stands among the names that a file gives, and all classes; extra names follow the votes'."""
        lacking = [name for name in self.votes if name not in names]
        if lacking or len(set(names)) < len(names):
            raise InputError(
                f"{path}: its classes are {', '.join(names)}, and people voted for {', '.join(self.votes)}; give each "
                "of these once"
            )
        classes = (*self.votes, *(name for name in names if name not in self.votes))
        return [list(names).index(name) for name in classes], classes

    def stated_for(self, path: Path, source: str, numbers: int) -> tuple[list[int], tuple[str, ...], str]:
        """The same for numbers without class names, from the stated order, which is refused where there is none."""
        if self.stated is None:
            raise InputError(
                f"{path}: the numbers of '{source}' have no class names, so their order is not known; state it: "
                f"classes={list(self.votes)!r} (order= in read_predictions) if that is the model's order"
            )
        if numbers != len(self.stated):
            raise InputError(
                f"{path}: '{source}' has {numbers} numbers per row, and {len(self.stated)} classes were stated "
                f"({', '.join(self.stated)}); give as many"
            )
        order, classes = self.places(path, self.stated)
        return order, classes, f"the numbers of '{source}' are taken in the stated order {', '.join(self.stated)}"


@dataclass(frozen=True, eq=False, kw_only=True)
class _Numbers:
    """The numbers of a file, before it is settled what they are, with what `Predictions` has beside them.

    `source` is the column or array that held them, empty for one column per class; `others` are further columns of
    numbers, (seeds, items) each, that could be classes nobody voted for; `unused` names those that are none.
    """

    numbers: Runs
    items: Names
    classes: tuple[str, ...]
    seeds: tuple[int | str, ...] = ()
    source: str = ""
    notes: tuple[str, ...] = ()
    others: Mapping[str, Table] = field(default_factory=dict)
    unused: tuple[str, ...] = ()
    trained_on: Mask | None = None
    of_votes: bool = False

    @property
    def named(self) -> Given | None:
        return SAYS.get(self.source.lower())


def _with_unvoted(path: Path, held: _Numbers, given: Given) -> _Numbers:
    """The numbers with the further columns that are classes nobody voted for, where there are such columns."""
    if not held.others:
        return held
    names = ", ".join(map(repr, held.others))
    total, rest = held.numbers.sum(axis=-1), sum(held.others.values())
    fractions = [name for name, values in held.others.items() if (values != np.floor(values)).any()]
    if given == "logits" and fractions:
        raise InputError(
            f"{path}: {', '.join(map(repr, fractions))} may be classes that nobody voted for, which among logits look "
            "like any other column of numbers; name the model's classes (classes=), or drop what is none"
        )
    if given == "logits" or np.abs(total - 1.0).max() <= ROUNDING:
        return replace(held, others={}, unused=(*held.unused, *held.others))
    if np.abs(total + rest - 1.0).max() <= ROUNDING:
        return replace(
            held,
            numbers=np.concatenate([held.numbers, np.stack(list(held.others.values()), axis=-1)], axis=-1),
            classes=(*held.classes, *held.others),
            others={},
            notes=(*held.notes, f"rows sum to 1 with the columns {names}, which are classes that nobody voted for"),
        )
    raise InputError(
        f"{path}: rows do not sum to 1 over {', '.join(held.classes)}, nor with the further columns {names}; name the "
        "model's classes (classes=) if some of these are classes, and give every class's probability"
    )


def _look(path: Path, held: _Numbers) -> tuple[Given, str]:
    """What the numbers are by their look, and why; refused where that is not clear."""
    numbers = checked_logits(held.numbers, str(path), items=held.items)
    if held.others and (numbers >= 0).all():
        numbers = _with_unvoted(path, held, "probabilities").numbers
    inside = (numbers >= 0).all(axis=-1) & (np.abs(numbers.sum(axis=-1) - 1) <= ROUNDING)
    if inside.all():
        return "probabilities", "as all rows lie in [0, 1] and sum to 1"
    if (numbers < 0).any() and inside.mean() < 0.5:
        return "logits", f"as there are negative numbers and {1 - inside.mean():.0%} of rows are no distributions"
    # Damaged probabilities, or numbers that could be anything: say which row is not a distribution.
    checked_probabilities(numbers, str(path), items=held.items, tolerance=ROUNDING)
    return "probabilities", "as all rows sum to 1"


def _arrays(path: Path, kind: str) -> Mapping[str, np.ndarray[Any, Any]] | None:
    """The arrays of a file, or None where it is a table; the rows of an array that stands alone are numbered."""
    if kind == "npz":
        return read_npz(path)
    if kind == "npy":
        values = read_npy(path)
    elif kind == "JSON":
        with open_bytes(path) as file:
            held = json.load(file)
        if not isinstance(held, list) or not held or not isinstance(held[0], list):
            return None
        try:
            values = np.array(held)
            if values.dtype.kind == "U":
                numbers = np.vectorize(lambda text: number_of(text) / (100.0 if "%" in text else 1.0))(values)
                values = values if np.isnan(numbers).any() else numbers
        except ValueError:
            raise InputError(f"{path}: its lists are not of equal length; give one number for each class") from None
    else:
        return None
    return {"predictions": values, "items": np.arange(values.shape[-2] if values.ndim > 1 else 0)}


def _from_arrays(path: Path, arrays: Mapping[str, np.ndarray[Any, Any]], classes: _Names) -> _Numbers:
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
            "number or text per row"
        )
    seeds = tuple(arrays[SEEDS].ravel().tolist()) if SEEDS in arrays else ()
    if seeds and not len(set(seeds)) == len(seeds) == len(runs):
        raise InputError(f"{path}: '{SEEDS}' holds {len(seeds)} numbers for {len(runs)} runs; give each run its own")
    notes: tuple[str, ...] = ()
    if "classes" in arrays:
        listed = [str(name) for name in arrays["classes"].ravel().tolist()]
        if len(listed) != runs.shape[2]:
            raise InputError(
                f"{path}: '{source}' has {runs.shape[2]} numbers per row for {len(listed)} classes; give as many"
            )
        order, all_classes = classes.places(path, listed)
    else:
        order, all_classes, note = classes.stated_for(path, source, runs.shape[2])
        notes = (note,)
    if len(runs) > 1 and not seeds:
        notes = (*notes, f"seeds are numbered from 0 to {len(runs) - 1}: the file has no array '{SEEDS}'")
    names = items.astype(np.int64) if items.dtype.kind in "iu" else items.astype(np.dtypes.StringDType())
    judged = arrays["panel_size"] > 0 if {"counts", "panel_size"} <= set(arrays) else None
    of_votes: Any = {"trained_on": judged, "of_votes": judged is not None}
    return _Numbers(
        numbers=runs[:, :, order], items=names, classes=all_classes, seeds=seeds, source=source, notes=notes, **of_votes
    )


def _from_rows(rows: Rows, classes: _Names, item: str | None, items: Names | None) -> _Numbers:
    import polars as pl

    from dissensus.votes.cells import encode_names, name_like, refuse_missing
    from dissensus.votes.encoding import to_names

    column = item or ""
    if items is None:
        column = item_column(rows, item, [name for name in rows.table.columns if name not in classes.all])
    labels = LABELS if set(LABELS) <= set(rows.table.columns) else ()
    held = _class_numbers(rows, classes, beside=(column, SEED, TRAINED_ON, *labels))
    if labels:
        held = replace(held, trained_on=_floats(rows.table[labels[-1]], rows) > 0, of_votes=True)
    if TRAINED_ON in rows.table.columns and TRAINED_ON not in (*classes.all, column):
        held = replace(held, trained_on=_trained_on_rows(rows.table[TRAINED_ON], rows.where))
    notes = (*([f"items are in the column '{column}'"] if items is None else []), *held.notes)
    ids = name_like(rows.table[column] if items is None else pl.Series(items.tolist()), where=rows.where)
    refuse_missing(ids, where=rows.where)
    if SEED not in rows.table.columns or SEED in (*classes.all, column):
        return replace(held, items=to_names(ids), notes=notes)
    seed, seeds = encode_names(rows.table[SEED], where=rows.where)
    place, items = encode_names(ids, where=rows.where)
    cell = seed.astype(np.int64) * items.size + place
    times = np.bincount(cell, minlength=seeds.size * items.size)
    wrong = np.flatnonzero(times != 1)
    if wrong.size:
        raise InputError(
            f"{rows.path}: item {items[wrong[0] % items.size]} has {times[wrong[0]]} rows with seed "
            f"{seeds[wrong[0] // items.size]}; give each item one row per seed"
        )

    def by_seed(values: np.ndarray[Any, Any]) -> Any:
        out = np.empty_like(values[0])
        out[cell] = values[0]
        return out.reshape(seeds.size, items.size, *out.shape[1:])

    return replace(
        held,
        numbers=by_seed(held.numbers),
        others={name: by_seed(values) for name, values in held.others.items()},
        items=items,
        trained_on=None if held.trained_on is None else by_seed(held.trained_on[None]).any(axis=0),
        seeds=tuple(seeds.tolist()),
        notes=(*notes, f"{seeds.size} seeds, distinguished by the column '{SEED}'"),
    )


def _trained_on_rows(column: pl.Series, where: Callable[[int], str]) -> Mask:
    """(rows,) what the column `trained_on` says; anything but true and false, or 1 and 0, is refused."""
    import polars as pl

    from dissensus.votes.cells import name_like

    cells = name_like(column, where=where).cast(pl.String).str.to_lowercase().str.strip_suffix(".0")
    unclear = (~cells.is_in(["true", "false", "1", "0"])).fill_null(value=True)
    if unclear.any():
        row = int(unclear.arg_true()[0])
        raise InputError(
            f"{where(row)}: column '{TRAINED_ON}' says {column[row]!r}; say true or false, whether the item was "
            "used to train or choose the system, or call the column something else"
        )
    return cells.is_in(["true", "1"]).to_numpy()


def _class_numbers(rows: Rows, classes: _Names, *, beside: Sequence[str]) -> _Numbers:
    """The numbers of each row, as one run of items without names, and the further columns of the file."""
    from dissensus.votes.columns import listed

    columns, path = rows.table.columns, rows.path
    nameless = np.arange(rows.table.height)
    missing = [name for name in classes.all if name not in columns]
    if not missing:
        others = [name for name in columns if name not in (*classes.all, *beside)]
        # A stated list of classes is complete; without it any column of numbers could be one more class.
        numeric = [name for name in others if classes.stated is None and _all_numbers(rows.table[name])]
        return _Numbers(
            numbers=np.stack([_floats(rows.table[name], rows) for name in classes.all], axis=1)[None],
            items=nameless,
            classes=classes.all,
            others={name: _floats(rows.table[name], rows)[None] for name in numeric},
            unused=tuple(name for name in others if name not in numeric),
        )
    source = next((name for name in columns if name.lower() in (*SAYS, *SAYS_NOTHING)), None)
    if source is None or len(missing) < len(classes.all):
        raise InputError(
            f"{path}: no column is named after {listed(missing)}, among {listed(columns)}; give one column for each "
            "class of the votes, or one called 'label' with an answer in each row"
        )
    cells, names, notes = _cells(rows, source, classes)
    numbers = np.stack([_floats(column, rows) for column in cells], axis=1)[None]
    return _Numbers(numbers=numbers, items=nameless, classes=names, source=source, notes=notes)


def _all_numbers(cells: pl.Series) -> bool:
    """Whether every row has a finite number in this column."""
    import polars as pl

    if cells.dtype.is_nested() or cells.dtype == pl.Boolean:
        return False
    values = cells.cast(pl.Float64, strict=False)
    return not values.null_count() and bool(values.is_finite().all())


def _cells(rows: Rows, source: str, classes: _Names) -> tuple[list[pl.Series], tuple[str, ...], tuple[str, ...]]:
    """One series for each class from a column of lists or objects, the classes, and notes."""
    import polars as pl

    cells = rows.table[source]
    if cells.dtype == pl.String:
        cells = _parsed(cells)
    if isinstance(cells.dtype, pl.Struct):
        fields = cells.struct.unnest()
        order, names = classes.places(rows.path, fields.columns)
        return [fields.to_series(k) for k in order], names, ()
    if isinstance(cells.dtype, pl.Array):
        cells = cells.arr.to_list()
    if not isinstance(cells.dtype, pl.List):
        raise InputError(f"{rows.path}: '{source}' holds {cells.dtype}; give lists of numbers, or one column per class")
    length = cells.list.len().fill_null(0)
    order, names, note = classes.stated_for(rows.path, source, int(length[0]))
    wrong = np.flatnonzero((length != len(names)).to_numpy())
    if wrong.size:
        raise InputError(
            f"{rows.where(int(wrong[0]))}: '{source}' does not hold {len(names)} numbers; give one for each of the "
            f"classes {', '.join(names)}"
        )
    return [cells.list.get(k) for k in order], names, (note,)


def _parsed(cells: pl.Series) -> pl.Series:
    """Objects, or lists, that each cell of text holds; the column as it is where one holds neither."""
    import polars as pl

    held = [object_in(text or "") for text in cells]
    if all(isinstance(cell, dict) for cell in held):
        objects = [{str(name): str(value) for name, value in dict(cell or {}).items()} for cell in held]
        return pl.DataFrame(objects, infer_schema_length=None).to_struct(cells.name)
    if all(isinstance(cell, list) for cell in held):
        return pl.Series(cells.name, [list(map(str, cell or [])) for cell in held])
    return cells


def _floats(cells: pl.Series, rows: Rows) -> Floats:
    import polars as pl

    from dissensus.votes.cells import with_points

    if cells.dtype.is_nested():
        raise InputError(f"{rows.path}: column '{cells.name}' holds {cells.dtype}; give one number per row")
    values = cells.cast(pl.Float64, strict=False)
    if cells.dtype == pl.String:
        bare = with_points(cells.str.strip_chars().str.strip_suffix("%").str.strip_chars_end())
        percent = cells.str.contains("%", literal=True).fill_null(value=False)
        values = bare.cast(pl.Float64, strict=False) / pl.Series(np.where(percent, 100.0, 1.0))
    if values.null_count():
        row = int(values.is_null().arg_true()[0])
        said = "an empty cell" if cells[row] is None else repr(cells[row])
        raise InputError(f"{rows.where(row)}: {said} is no number; give one for each class")
    return values.to_numpy()
