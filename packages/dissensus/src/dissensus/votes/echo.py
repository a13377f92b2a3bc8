"""What was understood of votes, in a sentence, before any number is made of them."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dissensus.whole_file import whole_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.arrays import Ints
    from dissensus.votes.table import Votes

_NAMED: Final = 8
"""Classes that the sentence names, with their votes."""


class Plain(str):
    """A note that any file may have, such as which columns are not used; other notes are remarks on something odd."""

    __slots__ = ()


def echo(votes: Votes, format: str, columns: Mapping[str, str]) -> str:  # noqa: A002 - as --format
    """The format, and each thing that votes hold: how many, and the column that it was read from.

    >>> from dissensus.votes import read_votes
    >>> read_votes({"id": ["a", "a", "b"], "rater": [1, 2, 1], "vote": ["yes", "no", "no"]}).notes[0]
    "read as long: 2 items by 'id' (1 to 2 votes each), 2 classes by 'vote' (no 2, yes 1), 2 annotators by 'rater'"
    """
    import numpy as np  # late: whoever counts something in a sentence needs none of it

    by = {role: f" by '{column}'" for role, column in columns.items()}
    size = np.bincount(votes.judgement_item, minlength=len(votes.items))
    what = "vote" if votes.judgement is None else "judgement"
    often = np.bincount(votes.label, minlength=len(votes.classes))
    named = [f"{seen(votes.classes[k])} {often[k]:,}" for k in range(min(len(often), _NAMED))]
    more = f", {len(often) - _NAMED:,} more" if len(often) > _NAMED else ""
    who = "anonymous" if votes.annotators is None else number(len(votes.annotators), "annotator")
    classes = number(len(often), "ordered class" if votes.ordered else "class")
    said = [
        f"{number(len(votes.items), 'item')}{by.get('item', '')} ({_spread(size, what)})",
        f"{classes}{by.get('label', '')} ({', '.join(named)}{more})",
        f"{who}{by.get('annotator', '')}",
        *([f"{number(votes.n_model_votes, 'vote')} from models"] if votes.n_model_votes else []),
        *(f"{role}{by[role]}" for role in ("response", "seconds", "time", "kind") if role in by),
    ]
    about = {"annotators": votes.annotator_attributes, "items": votes.item_attributes}
    told = [f"; of {whom}: {', '.join(names)}" for whom, names in about.items() if names]
    return f"read as {format}: {', '.join(said)}{''.join(told)}"


def seen(name: str) -> str:
    """A name, in quotation marks where white space around it would not be seen."""
    return name if name == name.strip() else f"'{name}'"


def number(count: int, what: str) -> str:
    """How many of what: `1 item`, `2 items`, `3 classes`."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}{'es' if what.endswith('s') else 's'}"


def drop_notes(lost: Mapping[str, Sequence[object]], path: str | None = None) -> list[str]:
    """Return a note for each reason for leaving out items. With `path`, also write the items to a CSV file."""
    write_dropped(lost, path)
    shown = {why: ", ".join(map(str, items[:_NAMED])) + ", ..." * (len(items) > _NAMED) for why, items in lost.items()}
    return [f"{number(len(items), 'item')} {why} left out ({shown[why]})" for why, items in lost.items()]


def write_dropped(lost: Mapping[str, Sequence[object]], path: str | None) -> None:
    """Write the items that were left out, if any, to the CSV file `path`. Do nothing without a path."""
    if path is not None and lost:
        with whole_file(Path(path)) as part, part.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("item", "why"), *((item, why) for why in lost for item in lost[why])])


def _spread(size: Ints, what: str) -> str:
    import numpy as np

    low, high = (int(size.min()), int(size.max())) if size.size else (0, 0)
    if low == high:
        return f"{number(low, what)} each"
    median = f", {np.median(size):g} in the median" if high - low > 1 else ""
    return f"{low:,} to {high:,} {what}s each{median}"
