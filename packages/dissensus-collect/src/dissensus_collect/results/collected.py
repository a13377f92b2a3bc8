"""What has been collected so far, read from the database as columns, and as `Votes`."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.errors import InputError
from dissensus.responses import NO, UNSURE
from dissensus.votes.columns import SYNONYMS
from dissensus.votes.table import NONE, Annotators, Votes
from dissensus_collect.store.database import FILE, existing_file
from dissensus_collect.work.participants import final_answers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dissensus.arrays import Codes, Counts, Floats, Ints, Mask, Names, Table
    from dissensus_collect.project.reading import Project

_COLUMNS: Final = {
    "assignment": "a.id",
    "item": "a.item",
    "annotator": "a.annotator",
    "counts": "a.counts",
    "late": "a.late",
    "number": "a.number",
    "done_at": "a.done_at",
    "judgement": "j.id",
    "seconds": "j.seconds",
    "hidden_seconds": "j.hidden_seconds",
}
_FLOATS: Final = frozenset({"done_at", "seconds", "hidden_seconds"})

_DONE: Final = """
    FROM assignment a
    JOIN judgement j ON j.assignment = a.id AND j.current = 1
    JOIN item i ON i.id = a.item
    JOIN annotator n ON n.id = a.annotator
"""
_USED: Final = "i.retired_at IS NULL AND a.voided IS NULL"
"""What is neither voided nor of an item that was set aside."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Judgements:
    """Finished judgements, in the order in which they were done.

    Attributes:
        assignment: (judgements,) id.
        item: (judgements,) id of the item.
        annotator: (judgements,) id of the annotator.
        counts: (judgements,) whether it is one of the k votes of its item.
        late: (judgements,) whether it came after its lease had run out.
        number: (judgements,) the item's place among those of its annotator, from 1.
        done_at: (judgements,) UNIX seconds.
        judgement: (judgements,) id of the saved answer, the latest revision.
        seconds: (judgements,) from the first frame to the answer; NaN where unknown.
        hidden_seconds: (judgements,) how long the page was hidden in that time; NaN where unknown.
        response: (judgements, classes) `NO`, `YES` or `UNSURE`.
        amount: (judgements, classes) points or rating; NaN where the layout asks for neither.
        first_seconds: (judgements, classes) to the first answer; NaN where unknown.
        last_seconds: (judgements, classes) to the last answer; NaN where unknown.
        changes: (judgements, classes) how often the answer was changed.
    """

    assignment: Ints
    item: Ints
    annotator: Ints
    counts: Mask
    late: Mask
    number: Ints
    done_at: Floats
    judgement: Ints
    seconds: Floats
    hidden_seconds: Floats
    response: Counts
    amount: Table
    first_seconds: Table
    last_seconds: Table
    changes: Counts

    def __len__(self) -> int:
        return self.item.shape[0]

    def where(self, chosen: Mask | Ints) -> Judgements:
        """The chosen judgements."""
        return Judgements(**{each.name: getattr(self, each.name)[chosen] for each in fields(self)})


@contextmanager
def snapshot(project: Project, url: str | None = None) -> Iterator[Any]:
    """A cursor that sees one state of a project's database and cannot change it, even while a server is writing.

    Args:
        project: the project.
        url: the URL of its PostgreSQL database; by default collect.sqlite in its folder.
    """
    connection: Any
    if url is not None:
        from dissensus_collect.store.postgres import postgres_beside

        connection = postgres_beside(url, read_only=True)
        connection.begin()
    else:
        path = existing_file(project)
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)
    try:
        if url is None:
            connection.execute("PRAGMA busy_timeout = 10000")
            connection.execute("BEGIN")
        yield connection.cursor()
    except sqlite3.DatabaseError as error:
        raise InputError(
            f"{project.folder / FILE}: the database cannot be read ({error}); restore a backup with "
            f"'dissensus collect restore {project.folder} BACKUP'"
        ) from error
    finally:
        connection.close()


def read_judgements(
    cursor: Any,
    project: Project,
    *,
    question: int = 0,
    role: str = "vote",
    exported: bool = True,
    counted: bool = True,
    used: bool = True,
) -> Judgements:
    """The finished judgements.

    Args:
        cursor: a cursor that reads the database.
        project: the project.
        question: the place of the question among those about an item; its classes are the columns.
        role: which items: vote, gold or practice.
        exported: only those of annotators whose answers are exported.
        counted: only those that are among the k votes of their item.
        used: those that are used; false gives the others: voided ones, and those of items that were set aside.
    """
    first = sum(len(each.classes) for each in project.asked[:question])
    shape_of = project.asked[question]
    where = (
        f"WHERE a.state = 'done' AND {_USED if used else f'NOT ({_USED})'} AND i.role = ? AND n.exported >= ? "
        "AND a.counts >= ?"
    )
    given = (role, int(exported), int(counted))
    cursor.execute(f"SELECT {', '.join(_COLUMNS.values())} {_DONE} {where} ORDER BY a.done_at, a.id", given)
    columns = list(zip(*cursor.fetchall(), strict=True)) or [()] * len(_COLUMNS)
    named: dict[str, Any] = {
        name: np.array(values, dtype=np.float64 if name in _FLOATS else np.int64)
        for name, values in zip(_COLUMNS, columns, strict=True)
    }
    named["counts"], named["late"] = named["counts"].astype(np.bool_), named["late"].astype(np.bool_)
    cursor.execute(
        f"SELECT r.judgement, r.class - {first}, r.value, r.amount, r.first_seconds, r.last_seconds, r.changes "
        f"{_DONE} JOIN response r ON r.judgement = j.id AND r.class >= ? AND r.class < ? {where}",
        (first, first + len(shape_of.classes), *given),
    )
    cells = np.array(cursor.fetchall(), dtype=np.float64).reshape(-1, 7)
    shape = (named["judgement"].size, len(shape_of.classes))
    order = np.argsort(named["judgement"])
    row = order[np.searchsorted(named["judgement"], cells[:, 0], sorter=order)]
    label = cells[:, 1].astype(np.int64)
    grids = np.full((5, *shape), np.nan)
    grids[:, row, label] = cells[:, 2:].T
    response, amount, first, last, changes = grids
    return Judgements(
        **named,
        response=response.astype(np.int64),
        amount=amount,
        first_seconds=first,
        last_seconds=last,
        changes=np.nan_to_num(changes).astype(np.int64),
    )


def names_of_items(cursor: Any, *, role: str = "vote") -> dict[int, str]:
    """The name of each item, by its id."""
    cursor.execute("SELECT id, name FROM item WHERE role = ? ORDER BY id", (role,))
    return dict(cursor.fetchall())


def pseudonyms(cursor: Any) -> dict[int, str]:
    """The pseudonym of each annotator, by its id."""
    cursor.execute("SELECT id, pseudonym FROM annotator ORDER BY id")
    return dict(cursor.fetchall())


def collected_votes(cursor: Any, project: Project, *, question: int = 0) -> Votes:
    """The collected votes: judgements that count, of annotators whose answers are exported.

    Items without a vote so far are left out. A layout in which people choose one class gives single choices, and so
    does a rating of one class, whose steps are then the classes, in order; in the others a judgement of all No is a
    vote for the class `none`.

    Args:
        cursor: a cursor that reads the database.
        project: the project.
        question: the place of the question among those about an item.
    """
    found = read_judgements(cursor, project, question=question)
    project = project.about(question)
    if not len(found):
        raise InputError(f"{project.folder}: no judgement has been collected yet; open the annotator link first")
    votes = votes_of_judgements(found, project, items=names_of_items(cursor), annotators=pseudonyms(cursor))
    assert votes.annotators is not None
    attributes = _attributes(cursor, project, np.unique(found.annotator))
    return replace(votes, annotators=replace(votes.annotators, attributes=attributes))


def _attributes(cursor: Any, project: Project, ids: Ints) -> dict[str, Names]:
    """What is known of annotators; empty text where nothing is.

    It comes from what they chose when asked about themselves, the parameters of their links, and their platform.
    Free text is left out, since it may reveal who somebody is, and so is whatever is named like a column of votes.
    """
    told = final_answers(cursor)
    free_text = {asked.name for asked in project.questions if not asked.options}
    known = dict.fromkeys(each.name for each in project.eligibility)
    known |= dict.fromkeys(each.name for each in project.questions)
    known |= dict.fromkeys(sorted({name for each in told.values() for name in each}))
    return {
        name: _text([told.get(each, {}).get(name, "") for each in ids.tolist()])
        for name in known
        if name not in free_text and name not in SYNONYMS
    }


def votes_of_judgements(
    found: Judgements, project: Project, *, items: dict[int, str], annotators: dict[int, str]
) -> Votes:
    """Judgements as `Votes`; items and annotators are those that occur, by rising id."""
    item, item_names = _coded(found.item, items)
    annotator, annotator_names = _coded(found.annotator, annotators)
    asked = project.asked[0]
    if asked.is_choice and asked.layout == "rating":
        steps = np.array(asked.scale.values)
        return Votes(
            item=item,
            label=np.searchsorted(steps, found.amount[:, 0]).astype(np.int32),
            items=item_names,
            classes=tuple(map(str, asked.scale.values)),
            ordered=True,
            annotators=Annotators(annotator, annotator_names),
            seconds=found.seconds,
        )
    single = asked.is_choice
    said = found.response != NO
    if not single:
        said = np.column_stack([said, ~said.any(axis=1)])
    judgement, label = np.nonzero(said)
    unsure = None
    if project.layout in ("rating", "points") or (
        project.layout in ("rows", "one-at-a-time") and project.classes.unsure
    ):
        unsure = np.column_stack([found.response == UNSURE, np.zeros(len(found), dtype=np.bool_)])[judgement, label]
    return Votes(
        item=item[judgement],
        label=label.astype(np.int32),
        items=item_names,
        classes=project.classes.names if single else (*project.classes.names, NONE),
        annotators=Annotators(annotator[judgement], annotator_names),
        unsure=unsure,
        judgement=None if single else judgement.astype(np.int32),
        seconds=found.seconds,
        none=None if single else len(project.classes.names),
    )


def _coded(ids: Ints, names: dict[int, str]) -> tuple[Codes, Names]:
    distinct, codes = np.unique(ids, return_inverse=True)
    return codes.astype(np.int32), _text([names[each] for each in distinct.tolist()])


def _text(values: list[str]) -> Names:
    return np.array(values, dtype=np.dtypes.StringDType())
