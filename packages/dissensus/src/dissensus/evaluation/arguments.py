"""What people hand to `evaluate`, `report` and `plot`: votes, labels and predictions, however they keep them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.arrays import column_names, places_of
from dissensus.errors import InputError, choices
from dissensus.evaluation.metrics.arithmetic import to_numpy
from dissensus.evaluation.metrics.distances import FLOOR
from dissensus.evaluation.model_outputs import SEED
from dissensus.evaluation.predictions import (
    MODEL,
    TRAINED_ON,
    align_predictions,
    read_predictions,
    table_predictions,
)
from dissensus.evaluation.probabilities import Predictions, are_counts, checked_human, checked_probabilities
from dissensus.item_names import places_of_items
from dissensus.labels.distribution import LabelDistribution
from dissensus.labels.schemes import frequency
from dissensus.votes.table import Votes

if TYPE_CHECKING:
    from dissensus.arrays import Names

SURE: Final = 5.0
"""Standard errors by which another order of unnamed columns must fit the votes better to be asked about."""

RIGHT_CALL: Final = "people come first: dis.evaluate(votes, predictions)"


def refuse_swapped(human: Any, model: Any) -> None:
    """Refuse predictions that come before votes, or before labels made of votes."""
    of_people = isinstance(human, Votes | LabelDistribution) or _is_table(human)
    if isinstance(human, Predictions) or isinstance(model, Votes):
        raise InputError(f"evaluate: here predictions come first; {RIGHT_CALL}")
    if isinstance(model, LabelDistribution) and model.counts.any() and not of_people:
        raise InputError(f"evaluate: here predictions come before labels; {RIGHT_CALL}")


def people_in(human: Any) -> tuple[LabelDistribution, Votes | None]:
    """The label distributions of what people said, and their votes where these are known.

    Args:
        human: votes, or what `read_votes` reads (a path, a frame, a list of dictionaries, a dictionary of columns);
            label distributions; or (items, classes) probabilities as an array or as a frame with a column per class.
    """
    if isinstance(human, LabelDistribution):
        return human, None
    if isinstance(human, Votes):
        return frequency(human), human
    if isinstance(human, str | Path) or _is_table(human):
        from dissensus.labels.reading import read_labels
        from dissensus.votes.reading import votes_in

        if not isinstance(human, str | Path) and _holds_distributions(human):
            return read_labels(human), None
        votes = votes_in(human)
        return frequency(votes), votes
    p = checked_human(human)
    return LabelDistribution(
        probabilities=p,
        counts=np.zeros(p.shape, dtype=np.int64),
        panel_size=np.zeros(len(p), dtype=np.int64),
        items=np.arange(len(p)),
        classes=tuple(str(k) for k in range(p.shape[1])),
        scheme="given",
    ), None


def systems_in(
    model: Any, people: LabelDistribution, *, classes: Sequence[str] | None = None, only_common: bool = False
) -> tuple[LabelDistribution, dict[str, Predictions], tuple[str, ...]]:
    """The items that people judged, by name each system's predictions for them in their order, and notes.

    Args:
        model: one system, or several by name. A system is (items, classes) or (seeds, items, classes) probabilities, a
            label per item, a frame or a list of dictionaries with a column per class (rows are matched by the column
            or index of items where there is one), a dictionary with the probabilities or the label of each item, label
            distributions, a path, or `Predictions`. One without a name is called `model`.
        people: the items that they are of.
        classes: the names of an array's columns in order; None takes the classes of the labels, and refuses an array
            whose columns fit the votes clearly better in another order.
        only_common: leave out items that not every system predicts; without it they are refused.
    """
    made = named_systems(model, people, classes=classes)
    items = [system.items for system in made.values()]
    in_order = all(theirs is people.items or np.array_equal(theirs, people.items) for theirs in items)
    # The rows of an array of people have no names: predictions are matched by their order.
    unnamed = people.scheme == "given" and all((places_of(people.items, theirs) < 0).all() for theirs in items)
    if in_order or unnamed:
        return people, made, ()
    return align_predictions(people, made, only_common=only_common)


def named_systems(
    model: Any, people: LabelDistribution, *, classes: Sequence[str] | None = None
) -> dict[str, Predictions]:
    """As `systems_in`, of the items that each system predicts, in its own order."""
    many = isinstance(model, Mapping) and not (is_by_item(model, people) or _is_by_class(model, people))
    named = {str(name): system for name, system in model.items()} if many else {MODEL: model}
    if not named:
        raise InputError("evaluate: there are no predictions; give at least one system")
    stated = None if classes is None else tuple(map(str, classes))
    return {name: _system(name, system, people, stated) for name, system in named.items()}


def _system(name: str, given: Any, people: LabelDistribution, stated: tuple[str, ...] | None) -> Predictions:
    if isinstance(given, Votes):
        raise InputError(f"{name}: these are votes of people; {RIGHT_CALL}")
    if isinstance(given, str | Path):
        given = read_predictions(given, people.classes, order=stated, shown=people.shown)
    if isinstance(given, Predictions):
        return given
    if isinstance(given, LabelDistribution):
        made = _matched(name, given.probabilities, given.items, people, classes=given.classes)
        return replace(made, trained_on=given.panel_size > 0, of_votes=True) if _same_votes(people, given) else made
    if isinstance(given, Mapping) and is_by_item(given, people):
        return _of_dictionary(name, given, people, stated)
    if _is_table(given) or (hasattr(given, "columns") and hasattr(given, "index")):
        return _of_frame(name, given, people, stated)
    by_index = _by_index(given) if getattr(given, "ndim", 0) == 1 else {}
    if is_by_item(by_index, people):
        return _of_dictionary(name, by_index, people, stated)
    if by_index:
        _check_order(name, given.index, people)
    return _of_array(name, given, people, stated)


def _same_votes(people: LabelDistribution, labels: LabelDistribution) -> bool:
    """Return whether the counts of the labels equal the votes of people on all common items."""
    place = places_of_items(labels.items, people.items)
    theirs, own = labels.counts[place >= 0], people.counts[place[place >= 0]]
    return labels.classes == people.classes and bool(theirs.any()) and np.array_equal(theirs, own)


def _of_dictionary(
    name: str, given: Mapping[Any, Any], people: LabelDistribution, stated: tuple[str, ...] | None
) -> Predictions:
    """Predictions by item: a label, a row of probabilities, or probabilities by class; a class not named has none."""
    known = people.classes
    items, rows = np.array([str(item) for item in given], dtype=np.dtypes.StringDType()), list(given.values())
    if isinstance(rows[0], Mapping):
        by_class = [{class_named(label, known): float(share) for label, share in row.items()} for row in rows]
        named = dict.fromkeys(label for row in by_class for label in row)
        unknown = [label for label in named if label not in known]
        lacking = [label for label in known if label not in named]
        if unknown and lacking:
            raise InputError(
                f"{name}: '{unknown[0]}' is none of the classes that people voted for, and '{lacking[0]}' has no "
                f"probability{choices(unknown[0], known)}"
            )
        stated = tuple(dict.fromkeys([*known, *named]))
        rows = [[row.get(label, 0.0) for label in stated] for row in by_class]
    return _matched(name, rows, items, people, classes=stated)


def _of_frame(name: str, frame: Any, people: LabelDistribution, stated: tuple[str, ...] | None) -> Predictions:
    """Predictions of a frame with a column per class, or one of labels, or as many columns of numbers as are stated.

    A column that is no class of the votes is one more class where rows sum to 1 only with it.
    """
    from dissensus.table_file import table_in_memory
    from dissensus.votes.columns import guess

    if not hasattr(frame, "columns"):
        # A list also has an attribute `index`, but it is a method.
        frame = table_in_memory(frame, index=False).rows().table
    numbered = hasattr(frame, "index") and list(frame.columns) == list(range(len(frame.columns)))
    if hasattr(frame, "index"):
        # The columns of a pandas frame may be called by numbers.
        frame = frame.rename(columns={column: class_named(column, people.classes) for column in frame.columns})
    rows = table_in_memory(frame, index=False).rows()
    table = rows.table
    beside = [column for column in table.columns if column not in people.classes]
    column, items = _items_of(name, frame, table, beside, people)
    lacking = [label for label in people.classes if label not in table.columns]
    if not lacking and (items is not None or table.height == len(people)):
        own = () if stated is None else (*people.classes, *(label for label in stated if label not in people.classes))
        return table_predictions(
            replace(rows, path=Path(name)),
            people.classes,
            order=own or None,
            item=column,
            items=people.items if items is None else items,
            shown=people.shown,
        )
    numeric = [other for other in beside if other not in (column, TRAINED_ON) and table[other].dtype.is_numeric()]
    classes = [label for label in table.columns if label in people.classes]
    answers = guess("label", beside) if guess("annotator", beside) is None else None
    if not classes and answers is not None and stated is None:
        if people.shown is not None:
            names = people.items if items is None else items
            people = replace(people, shown=people.shown.in_table(table.to_dict(), names.tolist()))
        return _matched(name, table[answers].to_list(), items, people, classes=None)
    wanted = len(people.classes) if stated is None and numbered else len(stated or ())
    if lacking and (not wanted or len(classes) + len(numeric) != wanted):
        raise InputError(
            f"{name}: no column is called after the class '{lacking[0]}'; its columns are {', '.join(table.columns)}. "
            f"Name a column after each class, or, if these are votes, {RIGHT_CALL}"
        )
    return _matched(name, table[[*classes, *numeric]].to_numpy(), items, people, classes=stated)


def _items_of(
    name: str, frame: Any, table: Any, beside: Sequence[str], people: LabelDistribution
) -> tuple[str | None, Names | None]:
    """The column of a frame that holds the items, and (rows,) their names; None where rows are in the items' order.

    It is the column, or index, whose values are the items that people judged, whatever it is called; else the one
    that is called like items. A frame whose index is in another order than it was made in has lost the items' order.
    """
    from dissensus.votes.columns import guess

    wanted = set(map(str, people.items.tolist()))

    def holds_items(values: Sequence[Any]) -> bool:
        names = set(map(str, values))
        return (len(names) == len(values) or SEED in beside) and 2 * len(names & wanted) > min(len(wanted), len(names))

    guessed = guess("item", beside)
    text = [other for other in beside if not table[other].dtype.is_float() and not table[other].dtype.is_nested()]
    for column in dict.fromkeys([*([guessed] if guessed in text else []), *text]):
        if holds_items(table[column].to_list()):
            return column, table[column].to_numpy()
    index = getattr(frame, "index", None)
    if index is not None:
        for level in range(index.nlevels):
            values = index.get_level_values(level)
            if holds_items(values.tolist()):
                return None, np.array(list(map(str, values)), dtype=np.dtypes.StringDType())
    if guessed is not None:
        return guessed, table[guessed].to_numpy()
    _check_order(name, index, people)
    return None, None


def _check_order(name: str, index: Any, people: LabelDistribution) -> None:
    """Refuse an index of pandas that names other items: its rows may be in any order."""
    if index is None or people.scheme == "given":
        return
    if list(index) != list(range(len(index))) or any(level is not None for level in index.names):
        raise InputError(
            f"{name}: the index names no item that people judged, and is not an unnamed 0, 1, 2, ...; give the items "
            "in a column 'item', or, where rows are in the items' order, an array (values.to_numpy())"
        )


def class_named(label: Any, classes: Sequence[str]) -> str:
    """The class that a label names: 2 and 2.0 name the class '2', True the class 'true'; else the label as text."""
    text = str(label)
    if text in classes:
        return text
    if isinstance(label, bool | np.bool_):
        return text.lower()
    try:
        return next((known for known in classes if float(known) == float(text)), text)
    except ValueError:
        return text


def per_item(values: Any, items: Names, *, what: str) -> Any:
    """(items,) a value per item: as they come, or of a pandas series by an index that names the items."""
    if values is None:
        return None
    by_index = _by_index(values)
    if by_index and all(str(item) in by_index for item in items.tolist()):
        return np.array([by_index[str(item)] for item in items.tolist()])
    if by_index and any(level is not None for level in values.index.names):
        raise InputError(f"{what}: the index names other items than people judged; give each item's value, or an array")
    column = np.asarray(values)
    if column.shape != (len(items),):
        raise InputError(f"{what}: {column.shape} values for {len(items):,} items; give one for each item")
    return column


def _by_index(values: Any) -> dict[str, Any]:
    """The values of a pandas series by the names in its index; empty of anything that has none."""
    index: Any = getattr(values, "index", None)
    return dict(zip(map(str, index.tolist()), values.tolist(), strict=True)) if hasattr(index, "tolist") else {}


def _matched(
    name: str, rows: Any, items: Names | None, people: LabelDistribution, *, classes: tuple[str, ...] | None
) -> Predictions:
    """Predictions whose rows have item names; where these are None, those of the items that people judged."""
    if items is not None and len(set(items.tolist())) < len(items):
        raise InputError(
            f"{name}: an item has several rows; give each item one row, and several seeds as an array of seeds by "
            "items by classes"
        )
    known = people if items is None else _of_items(people, items)
    return _of_array(name, rows, known, classes)


def _of_items(people: LabelDistribution, items: Names) -> LabelDistribution:
    """The classes of these labels, for other items; nothing is known of these."""
    shares = np.full((len(items), len(people.classes)), 1 / len(people.classes))
    counts = np.zeros(shares.shape, dtype=np.int64)
    return replace(people, items=items, probabilities=shares, counts=counts, panel_size=counts.sum(axis=1), model=None)


def _of_array(name: str, given: Any, people: LabelDistribution, stated: tuple[str, ...] | None) -> Predictions:
    """Predictions of numbers without names, or of one label per item."""
    hard = is_hard(given)
    if hard:
        runs, classes = hard_labels(name, given, people, stated), people.classes
    else:
        if are_counts(given, name):
            raise InputError(f"{name}: these are counts of votes; {RIGHT_CALL}")
        runs = checked_probabilities(given, name)
        classes = people.classes if stated is None else _checked_names(name, stated, people.classes)
    if runs.shape[1:] != (len(people), len(classes)):
        raise InputError(
            f"{name}: predictions for {runs.shape[1]:,} items and {runs.shape[2]} classes, and people judged "
            f"{len(people):,} items and {len(classes)} classes; give one row for each item that people judged, and "
            "state classes= where the model has other classes"
        )
    if stated is None and people.scheme != "given" and not hard:
        _refuse_other_order(name, runs.mean(axis=0), people)
    return Predictions(probabilities=runs, items=people.items, classes=classes, seeds=tuple(range(len(runs))))


def _checked_names(name: str, stated: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    if set(known) <= set(stated) and len(set(stated)) == len(stated):
        return stated
    raise InputError(
        f"{name}: its classes are stated as {', '.join(stated)}, and people voted for {', '.join(known)}; name each of "
        "these once"
    )


def _refuse_other_order(name: str, model: Any, people: LabelDistribution) -> None:
    """Refuse columns without names that fit what people said clearly better in another order."""
    from scipy.optimize import linear_sum_assignment

    surprise = -np.log(np.maximum(model, FLOOR))
    _, order = linear_sum_assignment(people.probabilities.T @ surprise)
    gain = (people.probabilities * (surprise - surprise[:, order])).sum(axis=1)
    if gain.mean() > SURE * gain.std() / np.sqrt(len(gain)) and len(gain) > 1:
        better = [""] * len(order)
        for label, column in zip(people.classes, order, strict=True):
            better[column] = label
        raise InputError(
            f"{name}: its columns have no names, and as {', '.join(people.classes)} (the classes of the labels) they "
            f"fit the votes worse than as {', '.join(better)}; state their order: classes={better!r}, or "
            f"classes={list(people.classes)!r} if they are right"
        )


def is_hard(given: Any) -> bool:
    """Whether these are labels, one for each item, and no probabilities."""
    try:
        labels = to_numpy(given)
    except ValueError:
        # Rows of unequal length, which are refused as what they are not.
        return False
    return labels.ndim == 1 and labels.size > 0 and labels.dtype.kind in "biuUSTO"


def hard_labels(name: str, given: Any, people: LabelDistribution, stated: Sequence[str] | None) -> Any:
    """(1, items, classes) all probability on the label of each item: a class, or its place among stated classes.

    Whole numbers are places only where they are not all classes: ratings from 1 to 5 are called so.
    """
    labels = to_numpy(given)
    known = {label: class_named(label, people.classes) for label in set(labels.tolist())}
    names = [known[label] for label in labels.tolist()]
    if people.shown is not None and len(names) == len(people):
        names = [people.shown.meant(item, said) for item, said in zip(people.items.tolist(), names, strict=True)]
    if stated is not None and labels.dtype.kind in "iu" and not set(names) <= set(people.classes):
        unknown = np.flatnonzero((labels < 0) | (labels >= len(stated)))
        names = [str(stated[place]) for place in labels] if not unknown.size else names
    if lacking := [label for label in dict.fromkeys(names) if label not in people.classes]:
        remedy = "give a class name for each item" if labels.dtype.kind not in "iu" else "state classes="
        raise InputError(
            f"{name}: '{lacking[0]}' is none of the classes {', '.join(people.classes)}; {remedy}, or one row of "
            "probabilities for each item"
        )
    return np.eye(len(people.classes))[[people.classes.index(label) for label in names]][None]


def _is_table(given: Any) -> bool:
    """Whether this is a frame, a list of dictionaries or a dictionary of columns."""
    if isinstance(given, Mapping):
        return all(isinstance(column, Sequence | np.ndarray) for column in given.values())
    return column_names(given) is not None or (
        isinstance(given, Sequence) and bool(given) and all(isinstance(row, Mapping) for row in given)
    )


def _holds_distributions(frame: Any) -> bool:
    """Whether all columns but one of items are numbers, and each row of them sums to 1."""
    from dissensus.table_file import table_in_memory
    from dissensus.votes.columns import guess

    table = table_in_memory(frame, index=False).rows().table
    columns = [column for column in table.columns if column != guess("item", table.columns)]
    if len(columns) < 2 or not all(table[column].dtype.is_numeric() for column in columns):
        return False
    return bool(np.abs(table[columns].to_numpy().sum(axis=1) - 1).max() < 1e-3)


def is_by_item(given: Mapping[Any, Any], people: LabelDistribution | Votes) -> bool:
    """Return whether the keys of a dictionary are items, at least one of them judged, not systems or columns."""
    first: Any = next(iter(given.values()), None)
    system = isinstance(first, Predictions | LabelDistribution | Path) or np.ndim(first) > 1 or _is_table(first)
    # The keys 0, 1, 2 may be classes or items. With classes as keys, each value has more entries than there are keys.
    if system or (_is_by_class(given, people) and len(first) > len(given)):
        return False
    return not {str(key) for key in given}.isdisjoint(map(str, people.items.tolist()))


def _is_by_class(given: Mapping[Any, Any], people: LabelDistribution | Votes) -> bool:
    """Whether a dictionary has a column of numbers for each class, and so is one system."""
    return set(people.classes) <= set(map(str, given)) and np.ndim(given[next(iter(given))]) == 1
