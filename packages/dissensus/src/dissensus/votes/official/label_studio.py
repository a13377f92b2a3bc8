"""Label Studio: the JSON and JSON-MIN exports of a project whose labels are choices, ratings or the like."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import polars as pl

from dissensus.errors import InputError
from dissensus.votes.cells import times_of
from dissensus.votes.columns import Columns, listed
from dissensus.votes.official.opening import Format, begins, official_file, read_json
from dissensus.votes.rows import votes_from_rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dissensus.votes.rows import Duplicates
    from dissensus.votes.table import Votes

VALUES: Final = {"choices": "choices", "taxonomy": "taxonomy", "rating": "rating", "pairwise": "selected"}
"""The control tags whose results are votes, and the key of a result's value that holds the classes."""

JSON_MIN: Final = ("annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement", "id")
"""The keys of a JSON-MIN record that are neither the task's data nor answers."""

LONGEST_SCALE: Final = 1000


class _Answer(NamedTuple):
    """What one annotation says through one control tag."""

    item: Any
    annotator: Any
    seconds: Any
    time: Any
    control: str
    kind: str
    labels: list[str]
    where: str


def read_label_studio(
    path: Path, *, label: str | None = None, duplicates: Duplicates = "refuse", notes: list[str] | None = None
) -> Votes:
    """Votes of a JSON or JSON-MIN export; items are task ids, annotators the users' addresses or ids.

    Cancelled annotations, predictions, and annotations that leave the question unanswered are skipped; a task without
    any vote is not an item. Several choices are several votes in one judgement; ratings are a scale from 1 to the
    highest one given; the levels of a taxonomy are joined by ' / '. The time of a judgement is when it was created.
    `label` is the name of the control tag (`from_name`) to read, needed where the project has several.
    """
    path = official_file(path, "*.json")
    records = read_json(path)
    if not isinstance(records, list):
        raise InputError(f"{path}: expected a list of tasks; export the project as JSON or JSON-MIN")
    all_answers = [
        answer for number, record in enumerate(records, start=1) for answer in _answers(record, number, path)
    ]
    if notes is not None:
        notes.extend(_left_out(records))
    control = _choose(label, list(dict.fromkeys(answer.control for answer in all_answers)), path)
    answers = [answer for answer in all_answers if answer.control == control]
    places = pl.Series([answer.where for answer in answers])
    if places.is_duplicated().any():
        raise InputError(
            f"{answers[int(places.is_duplicated().arg_true()[0])].where}: '{control}' is answered more than once, for "
            "regions of the task; votes are about whole tasks: choose another control"
        )
    annotator = _names([answer.annotator for answer in answers])
    time = times_of(
        pl.Series([answer.time if isinstance(answer.time, str) else None for answer in answers], dtype=pl.String)
    )
    is_rating = all(answer.kind == "rating" for answer in answers)
    return votes_from_rows(
        pl.DataFrame(
            {
                "task": _names([answer.item for answer in answers]),
                "annotator": annotator,
                "seconds": [answer.seconds if isinstance(answer.seconds, int | float) else None for answer in answers],
                "time": time,
                "label": [answer.labels for answer in answers],
            },
            schema_overrides={"seconds": pl.Float64, "label": pl.List(pl.String)},
        ),
        Columns(
            item="task",
            annotator=None if annotator.is_null().all() else "annotator",
            label="label",
            seconds="seconds",
            time=None if time.is_null().all() else "time",
        ),
        where=lambda row: answers[row].where,
        classes=_scale(answers) if is_rating else None,
        ordered=is_rating,
        duplicates=duplicates,
        notes=notes,
    )


def _left_out(tasks: Sequence[Any]) -> list[str]:
    """A sentence on the results whose type is no vote, such as drawn regions."""
    types = Counter(
        str(result.get("type"))
        for task in tasks
        for annotation in task.get("annotations") or task.get("completions") or ()
        for result in annotation.get("result") or ()
        if result.get("type") not in VALUES
    )
    listing = ", ".join(f"{number:,} {name}" for name, number in types.most_common())
    return [f"results that are no votes are left out: {listing}"] if listing else []


def _answers(record: Any, number: int, path: Path) -> list[_Answer]:
    """The answers of a task, or of a JSON-MIN record, which is one annotation of a task."""
    try:
        if "annotations" in record or "completions" in record:
            return _answers_of_task(record, path)
        if "annotator" in record:
            return _answers_of_annotation(record, path)
    except (TypeError, KeyError, AttributeError, ValueError):
        pass
    raise InputError(
        f"{path}, entry {number}: this is not an annotated task as Label Studio writes it; "
        "export the project as JSON or JSON-MIN"
    )


def _answers_of_task(task: dict[str, Any], path: Path) -> list[_Answer]:
    annotations = task["annotations"] if "annotations" in task else task["completions"]
    return [
        _Answer(
            item=task["id"],
            annotator=_annotator(annotation.get("completed_by")),
            seconds=annotation.get("lead_time"),
            time=annotation.get("created_at"),
            control=str(result["from_name"]),
            kind=result["type"],
            labels=labels,
            where=f"{path}, task {task['id']}, annotation {annotation.get('id', number)}",
        )
        for number, annotation in enumerate(annotations, start=1)
        if not annotation.get("was_cancelled")
        for result in annotation["result"]
        if result.get("type") in VALUES and (labels := _labels(result["value"].get(VALUES[result["type"]])))
    ]


def _answers_of_annotation(record: dict[str, Any], path: Path) -> list[_Answer]:
    keys = list(record)
    if keys.index("id") < keys.index("annotator"):
        # The converter writes the task's data, its id, the answers, and then the annotator.
        keys = keys[keys.index("id") + 1 : keys.index("annotator")]
    return [
        _Answer(
            item=record["id"],
            annotator=_annotator(record["annotator"]),
            seconds=record.get("lead_time"),
            time=record.get("created_at"),
            control=key,
            kind=kind,
            labels=labels,
            where=f"{path}, task {record['id']}, annotation {record.get('annotation_id')}",
        )
        for key in keys
        if key not in JSON_MIN
        for kind, labels in _short_answers(record[key])
        if labels
    ]


def _short_answers(value: Any) -> list[tuple[str, list[str]]]:
    """The kinds and labels of a JSON-MIN cell: one choice as text, everything else as objects in a list."""
    if isinstance(value, str):
        return [("choices", _labels(value))]
    if isinstance(value, dict):
        return [(kind, _labels(value[key])) for kind, key in VALUES.items() if key in value]
    return [answer for entry in value for answer in _short_answers(entry)] if isinstance(value, list) else []


def _labels(selected: Any) -> list[str]:
    """Class names of what was selected: a name, a number, or a list of names or of paths of names."""
    several = selected if isinstance(selected, list) else [selected]
    return [" / ".join(name) if isinstance(name, list) else str(name) for name in several if name not in (None, "", [])]


def _annotator(completed_by: Any) -> Any:
    if isinstance(completed_by, dict):
        return completed_by.get("email") or completed_by.get("id")
    return completed_by


def _names(values: Sequence[Any]) -> pl.Series:
    """Whole numbers where all are, else text."""
    if all(isinstance(value, int) and abs(value) < 1 << 62 for value in values):
        return pl.Series(values, dtype=pl.Int64)
    return pl.Series([None if value is None else str(value) for value in values], dtype=pl.String)


def _choose(control: str | None, controls: Sequence[str], path: Path) -> str:
    if not controls:
        raise InputError(
            f"{path}: no annotation answers a question of type {listed(list(VALUES))}; give a file with votes"
        )
    if control is None and len(controls) == 1:
        return controls[0]
    if control is None:
        raise InputError(f"{path}: the tasks have several questions; choose the control {listed(controls)}")
    if control not in controls:
        raise InputError(f"{path}: there is no control '{control}' with votes; choose {listed(controls)}")
    return control


def _scale(answers: Sequence[_Answer]) -> tuple[str, ...]:
    """The scale from 1 to the highest rating, including ratings that nobody gave."""
    highest = max(int(label) if label.isdecimal() else 0 for answer in answers for label in answer.labels)
    if highest > LONGEST_SCALE:
        place = next(answer.where for answer in answers if str(highest) in answer.labels)
        raise InputError(f"{place}: a rating of {highest} is not a place on a scale; correct it")
    return tuple(str(rating) for rating in range(1, max(highest, 1) + 1))


_BEGINNINGS: Final = (
    begins("[", "annotations", "result"),
    begins("[", "completions", "result"),
    begins("[", "annotator", "annotation_id"),
)
LABEL_STUDIO: Final = Format(
    "label-studio",
    "Label Studio: a JSON or JSON-MIN export; --label names the control where there are several",
    read_label_studio,
    lambda path: any(detect(path) for detect in _BEGINNINGS),
)
