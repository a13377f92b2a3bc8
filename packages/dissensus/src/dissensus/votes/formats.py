"""The formats of votes: what each holds, what a user may say about a file, and what was understood of it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Final

import numpy as np

from dissensus.errors import InputError
from dissensus.votes.columns import listed
from dissensus.votes.official import OFFICIAL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.table_file import OpenTable
    from dissensus.votes.roles import Readings
    from dissensus.votes.rows import Duplicates
    from dissensus.votes.table import Votes

PREFERENCES: Final = "preferences"

FORMATS: Final = {
    "long": "one row per vote, or per response of yes, no or unsure",
    "wide": "one row per item, one column per annotator",
    "counts": "one row per item, one column per class: numbers of votes",
    "sets": "one row per judgement, with several labels in a cell or a list",
    "lists": "one row per item, with the votes of several people in a cell or a list",
    "flags": "one row per judgement, one column per class: 1 where it is selected, else 0",
    PREFERENCES: "votes on pairs, as rows, a column per annotator or a nested file: left, right, a tie, or degrees",
    **{official.name: official.what for official in OFFICIAL.values()},
}
"""The formats that `read_votes` knows, and what each holds."""

LONG_COLUMNS: Final = ("annotator", "label", "response", "seconds", "time", "kind", "attributes", "separator")
"""The options that only files with a row per vote have a use for."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the user says about a file; what is None or () is worked out. See `read_votes`."""

    format: str | None = None
    item: str | None = None
    annotator: str | None = None
    label: str | None = None
    response: str | None = None
    seconds: str | None = None
    time: str | None = None
    kind: str | None = None
    attributes: tuple[str, ...] = ()
    item_attributes: tuple[str, ...] = ()
    annotators: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    missing: tuple[str, ...] | None = None
    classes: tuple[str, ...] | None = None
    ordered: bool | None = None
    separator: str | None = None
    duplicates: Duplicates = "refuse"
    bins: tuple[str, ...] | None = None
    merge_spellings: tuple[str, ...] = ()
    force: bool = False
    drop_empty: bool = False
    drop_repeated: bool = False
    dropped: str | None = None
    panel: str | None = None
    sides: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            if value is None:
                continue
            if option.name == "bins":
                value = tuple(map(str, np.atleast_1d(value).tolist()))
            elif option.name == "panel":
                value = str(value)
            elif option.name == "item":
                value = value if isinstance(value, str) else ",".join(value)
            elif "tuple" in str(option.type):
                value = (value,) if isinstance(value, str) else tuple(value)
            object.__setattr__(self, option.name, value)

    def given(self, *names: str) -> list[str]:
        """Those of the named options that the user gave."""
        options = (option for option in fields(self) if option.name in names)
        return [option.name for option in options if getattr(self, option.name) != option.default]

    def refuse(self, path: object, format: str, *names: str) -> None:  # noqa: A002 - as --format
        """Refuse those of the named options that the user gave: the format has no use for them."""
        for name in self.given(*names):
            raise InputError(f"{path}: the format {format} has no use for {name}=; leave it out")


@dataclass(frozen=True, eq=False, kw_only=True)
class Reading:
    """Votes of a file, and how it was understood: the format, the column of each role, notes, and items left out."""

    votes: Votes
    format: str
    columns: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    lost: Mapping[str, Sequence[object]] = field(default_factory=dict)


def in_formats(*names: str) -> Readings:
    """The readings of a file that may have any of these formats."""
    return {FORMATS[name]: {"format": name} for name in names}


def unclear(table: OpenTable, *formats: str, labels: Sequence[str] = ()) -> InputError:
    """A refusal whose readings are formats, and columns that may hold the label of a long file."""
    return InputError(
        f"{table.path}: the columns {listed(table.columns)} can mean more than one thing; choose one of these, or, "
        "where they are no names but the first row, name all columns with columns=",
        readings=in_formats(*formats)
        | {f"one row per vote, for what '{name}' says": {"format": "long", "label": name} for name in labels},
    )
