"""What a reader is shown of a study: items as texts and images, figures, and how they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.report.figures import HEIGHT, Figure, spec_of
from dissensus.report.items import LARGEST
from dissensus.report.tables import Cell, Table, TableRow
from dissensus.shipped import shipped_toml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from dissensus.arrays import Ints, Names
    from dissensus_train.training.data import TrainingData

    Column = Callable[[Mapping[str, Any]], Cell | str]
    """What a cell of a table says of a record."""

_NOTES: Final[dict[str, str]] = shipped_toml(__package__, "notes.toml")


def item_texts(data: TrainingData, members: Ints) -> Names:
    """(members,) what a reader is shown of items: their text (of a pair both), or else their names."""
    if data.items is None or not data.items.texts:
        return data.human.items[members]
    first, *rest = (column[members] for column in data.items.texts)
    for column in rest:
        first = np.strings.add(np.strings.add(first, "\n"), column)
    return first


def item_pictures(data: TrainingData, members: Ints) -> np.ndarray[Any, Any]:
    """(members, ...) the items' images, or else their features, which may be images."""
    if data.items is not None and data.items.kind == "images":
        return data.items.images(members, side=LARGEST if data.items.files else None)
    drawable = data.items is None and isinstance(data.features, np.ndarray)
    return np.asarray(data.features[members]) if drawable else np.zeros((len(members), 0))


def drawn(name: str, title: str, chart: Any, about: str, *, height: int = HEIGHT, **more: Any) -> Figure:
    """A chart as a figure, with data of its own name unless others are named."""
    return Figure(slug=name, title=title, spec=spec_of(chart, height=height), about=about, **{"data": name, **more})


def table_of_cells(
    slug: str, title: str, header: Iterable[str], rows: Iterable[tuple[str, Iterable[Cell]]], records: Any, how: str
) -> Table:
    """A table of rows, each a name and its cells, with the numbers behind it and how it is read."""
    named = tuple(TableRow(name=name, cells=tuple(cells)) for name, cells in rows)
    return Table(slug=slug, title=title, header=tuple(header), rows=named, records=tuple(records), note=how)


def number_column(name: str, form: str = ".3f") -> Column:
    """A column of a table: this number of a record."""
    return lambda record: f"{record[name]:{form}}"


def note(name: str, **values: Any) -> str:
    """How a table or figure is read, from `notes.toml`."""
    return _NOTES[name].strip().format(**values)
