"""Which column of a file holds what: guessed from its name, or given."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dissensus.errors import InputError, choices
from dissensus.shipped import shipped_toml

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence


_NAMES: Final = shipped_toml("dissensus.votes", "columns.toml")

SYNONYMS: Final[dict[str, list[str]]] = _NAMES["roles"]
"""For each role, the names of columns that are taken for it, the surest first."""

KIND: Final = "kind"
"""The column that says whether a person or a model gave a vote: taken for it only where its cells say so."""

ABOUT_ITEMS: Final = frozenset([*_NAMES["texts"], *_NAMES["about_items"]])
"""Names of columns of a table with one row per item that describe the item, and are no annotators or classes."""

TEXTS: Final = frozenset(_NAMES["texts"])
"""Those of them that hold what was judged, or where it lies."""

SUMMARIES: Final = {name: kind for kind, names in _NAMES["summaries"].items() for name in names}
"""What a column or a row of this name sums up: a number of votes, a sum, mode, mean, median or spread."""

ITEM_PARTS: Final = frozenset(_NAMES["item_parts"])
"""Names of columns that may identify the item together with another column."""

AUTHORS: Final = frozenset(_NAMES["authors"])
"""Names of columns that may hold either the annotator or the author of an item."""

WITHOUT_UNIT: Final = frozenset(_NAMES["without_unit"])
"""Names of columns with times whose unit is ambiguous: seconds or milliseconds."""

SETTLED: Final = frozenset(_NAMES["settled"])
"""Words in the names of columns with labels that were not given by a single person."""

ROW_NUMBERS: Final = ("", "index", "unnamed_0")
"""What pandas' index is called in a file or a frame where it has no name."""

RATING: Final = re.compile(r"(^|_)(ratings?|scores?|stars?|likert|grades?|sliders?)(_|$)")
"""What the label column of a rating scale is called."""

_ANNOTATOR_NUMBERED: Final = re.compile(
    r"(annotator|annot|ann|worker|user|rater|coder|judge|label+er|participant|subject|expert|reviewer|[awr])_?\d+"
)


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The column that holds each role; None where the file has none. `attributes` describe annotators."""

    item: str
    label: str
    annotator: str | None = None
    response: str | None = None
    seconds: str | None = None
    time: str | None = None
    kind: str | None = None
    attributes: tuple[str, ...] = ()
    item_attributes: tuple[str, ...] = ()

    def roles(self) -> dict[str, str]:
        """The column of each role that the file has."""
        named = {role: getattr(self, role) for role in (*SYNONYMS, KIND)}
        return {role: column for role, column in named.items() if column is not None}

    def names(self) -> list[str]:
        """All columns, each once."""
        return list(dict.fromkeys([*self.roles().values(), *self.attributes, *self.item_attributes]))


def plain(name: str) -> str:
    """A column name freed of differences in spelling: `WorkerId`, `worker-id` and ` worker_ID ` are all `worker_id`."""
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip())
    return re.sub(r"[\W_]+", "_", split.lower()).strip("_")


def guess(role: str, available: Iterable[str]) -> str | None:
    """The column whose name best fits a role, or `gold` (the known class), the first of equals; None if none does."""
    spelled = {plain(column): column for column in reversed(list(available))}
    names = _NAMES["gold"] if role == "gold" else SYNONYMS[role]
    return next((spelled[name] for name in names if name in spelled), None)


def people_column(available: Sequence[str]) -> str | None:
    """The column that is named like lists of annotators, beside lists of their labels."""
    return next((column for column in available if plain(column) in _NAMES["people"]), None)


def item_parts(item: str | None, available: Sequence[str]) -> list[str]:
    """The columns that name an item together, where `item` is no column but several with commas between them."""
    parts = [] if item is None or item in available else [part.strip() for part in item.split(",")]
    return parts if len(parts) > 1 and set(parts) <= set(available) else []


def choose(role: str, given: str | None, available: Sequence[str], *, path: object) -> str | None:
    """The column given for a role, which must be there, or else the one guessed."""
    if given is None:
        return guess(role, available)
    if given not in available:
        # What is kept of items may be asked for by other names, such as --by.
        use = " that describes items" if role == "item_attributes" else f" for {role}="
        raise InputError(f"{path}: there is no column '{given}'{use}{choices(given, available)}")
    return given


def kind_column(
    given: str | None, available: Sequence[str], *, taken: Collection[str | None], path: object
) -> str | None:
    """The column that may say whether a person or a model gave a row: the one given, or a free one called `kind`."""
    if given is not None:
        return choose(KIND, given, available, path=path)
    return next((column for column in available if plain(column) == KIND and column not in taken), None)


def require(role: str, given: str | None, available: Sequence[str], *, path: object) -> str:
    """As `choose`, where there must be a column."""
    column = choose(role, given, available, path=path)
    if column is None:
        raise InputError(
            f"{path}: none of the columns {listed(available)} is known to hold the {role}; name it with {role}=, or, "
            "where these are no names but the first row, name all columns with columns="
        )
    return column


def is_annotator(column: str) -> bool:
    """Whether a column is named like one annotator of a wide table: `annotator_3`, `rater2`, `A1`."""
    name = plain(column)
    return name in SYNONYMS["annotator"] or _ANNOTATOR_NUMBERED.fullmatch(name) is not None


def counts_people(column: str) -> bool:
    """Whether a column is named like one that says how many people judged an item: `toxicity_annotator_count`."""
    return SUMMARIES.get(plain(column)) == "number" or plain(column).endswith("annotator_count")


def names_rows(column: str) -> bool:
    """Whether a column of no known role may name the rows of a table: pandas' index, or one called like `essay_id`."""
    return plain(column) in ROW_NUMBERS or (plain(column).endswith("_id") and not is_annotator(column))


def listed(columns: Sequence[str]) -> str:
    """Column names for a sentence; a long list is cut."""
    shown = ", ".join(f"'{column}'" for column in columns[:12])
    return f"{shown} and {len(columns) - 12:,} more" if len(columns) > 12 else shown
