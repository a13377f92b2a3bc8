"""Label Studio: the exports of a project whose labels are choices, ratings or the like.

Items are task ids, annotators the users' addresses or ids. Cancelled annotations, predictions and unanswered questions
are left out; a task without any vote is not an item. Several choices are several votes in one judgement; ratings are a
scale from 1 to the highest one given; the levels of a taxonomy are joined by ' / '. The time of a judgement is when it
was created. `label` names the control tag (`from_name`), where there are several.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from dissensus.errors import InputError
from dissensus.votes.official.exports import ToolAnswer, ToolExport
from dissensus.votes.official.opening import begins

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dissensus.votes.official.exports import Records

VALUES: Final = {"choices": "choices", "taxonomy": "taxonomy", "rating": "rating", "pairwise": "selected"}
"""The control tags whose results are votes, and the key of a result's value that holds the classes."""

JSON_MIN: Final = ("annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement", "id")
"""The keys of a JSON-MIN record that are neither the task's data nor answers."""


def _answers(records: Records, _: str | None) -> Iterator[ToolAnswer]:
    for number, record in enumerate(records, start=1):
        try:
            if "annotations" in record or "completions" in record:
                yield from _answers_of_task(record)
            else:
                yield from _answers_of_annotation(record)
        except (TypeError, KeyError, AttributeError):
            raise InputError(
                f"entry {number}: this is not an annotated task as Label Studio writes it; export the project again"
            ) from None


def _answers_of_task(task: dict[str, Any]) -> Iterator[ToolAnswer]:
    item = task["id"]
    for _ in task.get("predictions") or ():
        yield ToolAnswer("", item, None, "", None, "predictions")
    annotations = task["annotations"] if "annotations" in task else task["completions"]
    for number, annotation in enumerate(annotations, start=1):
        place = f"task {item}, annotation {annotation.get('id', number)}"
        annotator, seconds, time = (annotation.get(key) for key in ("completed_by", "lead_time", "created_at"))
        if isinstance(annotator, dict):
            annotator = annotator.get("email") or annotator.get("id")
        if annotation.get("was_cancelled"):
            yield ToolAnswer(place, item, annotator, "", None, "cancelled")
            continue
        if not annotation["result"]:
            yield ToolAnswer(place, item, annotator, "", None)
        answered = set()
        for result in annotation["result"]:
            kind, control = result["type"], result["from_name"]
            if kind not in VALUES:
                yield ToolAnswer(place, item, annotator, "", None, f"{kind} (no votes)")
                continue
            if control in answered:
                raise InputError(
                    f"{place}: '{control}' is answered more than once, for regions of the task; votes are about whole "
                    "tasks: choose another control"
                )
            answered.add(control)
            labels = _labels(result["value"].get(VALUES[kind]))
            yield ToolAnswer(place, item, annotator, control, labels, "", seconds, time, kind == "rating")


def _answers_of_annotation(record: dict[str, Any]) -> Iterator[ToolAnswer]:
    """The answers of one annotation, in JSON-MIN or a table."""
    item, annotator, keys = record["id"], record["annotator"], list(record)
    if keys.index("id") < keys.index("annotator"):
        # The converter writes the task's data, its id, the answers, and then the annotator; the last columns of a table
        # are controls that nobody answered in its first row.
        keys = keys[keys.index("id") + 1 :]
    place = f"task {item}, annotation {record.get('annotation_id')}"
    for key in keys:
        for kind, labels in _short_answers(record[key]) if key not in JSON_MIN else ():
            seconds, time = record.get("lead_time"), record.get("created_at")
            yield ToolAnswer(place, item, annotator, key, labels, "", seconds, time, kind == "rating")


def _short_answers(value: Any) -> list[tuple[str, list[str] | None]]:
    """The kinds and labels of a cell: one choice as text, everything else as objects, or their JSON."""
    if isinstance(value, str) and value.startswith(("{", "[")):
        try:
            value = json.loads(value)
        except ValueError:
            return [("choices", [value])]
    if isinstance(value, dict):
        return [(kind, _labels(value[key])) for kind, key in VALUES.items() if key in value]
    if isinstance(value, list):
        return [answer for part in value for answer in _short_answers(part)]
    return [("choices", _labels(value))]


def _labels(selected: Any) -> list[str] | None:
    """Class names of what was selected: a name, a number, or a list of names or of paths of names."""
    several = selected if isinstance(selected, list) else [selected]
    return [
        " / ".join(name) if isinstance(name, list) else str(name) for name in several if name not in (None, "", [])
    ] or None


_EXPORT: Final = ToolExport(
    "label-studio",
    _answers,
    "Label Studio: a JSON, JSON-MIN, CSV or TSV export; --label names the control where there are several",
    ("id annotator annotation_id",),
    item="tasks",
    annotator="users",
)
_BEGINNINGS: Final = (begins("[", "annotations", "result"), begins("[", "completions", "result"), _EXPORT.detect)
LABEL_STUDIO: Final = replace(_EXPORT.format(), detect=lambda path: any(detect(path) for detect in _BEGINNINGS))
