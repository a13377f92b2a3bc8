"""What has been collected so far, read from the database as columns, and as `Votes`."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.errors import InputError
from dissensus.responses import NO, UNSURE
from dissensus.votes.columns import SYNONYMS
from dissensus.votes.table import NONE, Annotators, Votes
from dissensus_collect.work.answers import questions_of
from dissensus_collect.work.attributes import final_answers

if TYPE_CHECKING:
    from dissensus.arrays import Codes, Counts, Floats, Ints, Mask, Names, Table
    from dissensus_collect.project.reading import Project

_COLUMNS: Final = {
    "assignment": ("a.id", np.int64), "item": ("a.item", np.int64), "annotator": ("a.annotator", np.int64),
    "counts": ("a.counts", np.bool_), "late": ("a.late", np.bool_), "number": ("a.number", np.int64),
    "done_at": ("a.done_at", np.float64), "judgement": ("j.id", np.int64), "seconds": ("j.seconds", np.float64),
    "hidden_seconds": ("j.hidden_seconds", np.float64),
}  # fmt: skip

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
    """Finished judgements, in the order in which they were done. What is unknown is NaN.

    Assignments, items, annotators and judgements (the saved answers, in their latest revision) are ids. What there is
    one of for each judgement is (judgements,), and from `response` on (judgements, classes).

    Attributes:
        counts: whether it is one of the k votes of its item.
        late: whether it came after its lease had run out.
        number: the item's place among those of its annotator, from 1.
        done_at: UNIX seconds.
        seconds: from the first frame to the answer.
        hidden_seconds: how long the page was hidden in that time.
        response: `NO`, `YES` or `UNSURE`.
        amount: points or rating; NaN where the layout asks for neither.
        first_seconds: to the first answer; `last_seconds` to the last.
        changes: how often the answer was changed.
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
        return Judgements(**{column.name: getattr(self, column.name)[chosen] for column in fields(self)})


def read_judgements(
    cursor: Any, project: Project, *, question: int = 0, exported: bool = True, counted: bool = True, used: bool = True
) -> Judgements:
    """The finished judgements of items to vote on; the columns are the classes of the question at a place.

    They are only those of annotators whose answers are `exported`, only those that are `counted` among the k votes of
    their item, and those that are `used`; false gives the others: voided ones, and those of items that were set aside.
    """
    places = [places for _, places in questions_of(project)][question]
    where = (
        f"WHERE a.state = 'done' AND {_USED if used else f'NOT ({_USED})'} AND i.role = 'vote' AND n.exported >= ? "
        "AND a.counts >= ?"
    )
    which = (int(exported), int(counted))
    selected = ", ".join(column for column, _ in _COLUMNS.values())
    cursor.execute(f"SELECT {selected} {_DONE} {where} ORDER BY a.done_at, a.id", which)
    rows = list(zip(*cursor.fetchall(), strict=True)) or [()] * len(_COLUMNS)
    columns: dict[str, Any] = {
        name: np.array(values, dtype=kind) for (name, (_, kind)), values in zip(_COLUMNS.items(), rows, strict=True)
    }
    cursor.execute(
        f"SELECT r.judgement, r.class - {places.start}, r.value, r.amount, r.first_seconds, r.last_seconds, r.changes "
        f"{_DONE} JOIN response r ON r.judgement = j.id AND r.class >= ? AND r.class < ? {where}",
        (places.start, places.stop, *which),
    )
    cells = np.array(cursor.fetchall(), dtype=np.float64).reshape(-1, 7)
    order = np.argsort(columns["judgement"])
    row = order[np.searchsorted(columns["judgement"], cells[:, 0], sorter=order)]
    grids = np.full((5, order.size, len(places)), np.nan)
    grids[:, row, cells[:, 1].astype(np.int64)] = cells[:, 2:].T
    response, amount, first_seconds, last_seconds, changes = grids
    return Judgements(
        **columns,
        response=response.astype(np.int64),
        amount=amount,
        first_seconds=first_seconds,
        last_seconds=last_seconds,
        changes=np.nan_to_num(changes).astype(np.int64),
    )


def names_of_items(cursor: Any) -> dict[int, str]:
    """The name of each item to vote on, by its id."""
    return dict(cursor.execute("SELECT id, name FROM item WHERE role = 'vote' ORDER BY id").fetchall())


def pseudonyms(cursor: Any) -> dict[int, str]:
    """The pseudonym of each annotator, by its id."""
    return dict(cursor.execute("SELECT id, pseudonym FROM annotator ORDER BY id").fetchall())


def collected_votes(cursor: Any, project: Project, *, question: int = 0) -> Votes:
    """The collected votes: judgements that count, of annotators whose answers are exported.

    Items without a vote so far are left out. A layout in which people choose one class gives single choices, and so
    does a rating of one class, whose steps are then the classes, in order; in the others a judgement of all No is a
    vote for the class `none`. The `question` is given by its place among those about an item.
    """
    judgements = read_judgements(cursor, project, question=question)
    project = project.about(question)
    if not len(judgements):
        raise InputError(f"{project.folder}: no judgement has been collected yet; open the annotator link first")
    votes = votes_of_judgements(judgements, project, items=names_of_items(cursor), annotators=pseudonyms(cursor))
    assert votes.annotators is not None
    attributes = _attributes(cursor, project, np.unique(judgements.annotator))
    return replace(votes, annotators=replace(votes.annotators, attributes=attributes))


def _attributes(cursor: Any, project: Project, ids: Ints) -> dict[str, Names]:
    """What is known of annotators; empty text where nothing is.

    It comes from what they chose when asked about themselves, the parameters of their links, and their platform.
    Free text is left out, since it may reveal who somebody is, and so is whatever is named like a column of votes.
    """
    answers = final_answers(cursor)
    free_text = {asked.name for asked in project.questions if not asked.options}
    asked = [*(question.name for question in project.eligibility), *(question.name for question in project.questions)]
    other = sorted({name for person in answers.values() for name in person})
    return {
        name: _text([answers.get(person, {}).get(name, "") for person in ids.tolist()])
        for name in dict.fromkeys((*asked, *other))
        if name not in free_text and name not in SYNONYMS
    }


def votes_of_judgements(
    judgements: Judgements, project: Project, *, items: dict[int, str], annotators: dict[int, str]
) -> Votes:
    """Judgements as `Votes`; items and annotators are those that occur, by rising id."""
    item, item_names = _coded(judgements.item, items)
    annotator, annotator_names = _coded(judgements.annotator, annotators)
    asked = project.asked[0]
    if asked.is_choice and asked.layout == "rating":
        steps = np.array(asked.scale.values)
        return Votes(
            item=item,
            label=np.searchsorted(steps, judgements.amount[:, 0]).astype(np.int32),
            items=item_names,
            classes=tuple(map(str, asked.scale.values)),
            ordered=True,
            annotators=Annotators(annotator, annotator_names),
            seconds=judgements.seconds,
        )
    single = asked.is_choice
    named = judgements.response != NO
    if not single:
        named = np.column_stack([named, ~named.any(axis=1)])
    judgement, label = np.nonzero(named)
    unsure = None
    if project.layout in ("rating", "points") or (
        project.layout in ("rows", "one-at-a-time") and project.classes.unsure
    ):
        unsure = np.column_stack([judgements.response == UNSURE, np.zeros(len(judgements), dtype=np.bool_)])[
            judgement, label
        ]
    return Votes(
        item=item[judgement],
        label=label.astype(np.int32),
        items=item_names,
        classes=project.classes.names if single else (*project.classes.names, NONE),
        annotators=Annotators(annotator[judgement], annotator_names),
        unsure=unsure,
        judgement=None if single else judgement.astype(np.int32),
        seconds=judgements.seconds,
        none=None if single else len(project.classes.names),
    )


def _coded(ids: Ints, names: dict[int, str]) -> tuple[Codes, Names]:
    distinct, codes = np.unique(ids, return_inverse=True)
    return codes.astype(np.int32), _text([names[number] for number in distinct.tolist()])


def _text(values: list[str]) -> Names:
    return np.array(values, dtype=np.dtypes.StringDType())
