"""The annotation tools whose exports are read by name: where each keeps its answers, and which of them count."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

from dissensus.errors import InputError
from dissensus.shipped import shipped_toml
from dissensus.votes.official.exports import ToolAnswer, ToolExport, labels_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dissensus.votes.official.exports import Records

_UNMARKED: Final = (None, "", False, "false", "False")


def _prodigy(records: Records, _: str | None) -> Iterator[ToolAnswer]:
    """Choices are in `accept`, and count where the answer is accept; else `label` was accepted or rejected."""
    for row, record in enumerate(records):
        answer, is_choice = record["answer"], "accept" in record or "options" in record
        if not is_choice and "label" not in record:
            raise InputError("records without options and without a label do not classify whole items")
        annotator = record.get("_annotator_id") or record.get("_session_id")
        question = "accept" if is_choice else str(record["label"])
        labels = labels_of(record.get("accept", [])) if is_choice else [answer]
        left_out = {"accept": "", "ignore": "ignored", "reject": "rejected" if is_choice else ""}[answer]
        yield ToolAnswer(
            row, record["_input_hash"], annotator, question, labels, left_out, time=record.get("_timestamp")
        )


def _doccano(records: Records, _: str | None) -> Iterator[ToolAnswer]:
    for row, record in enumerate(records):
        label = record["label"]
        labels = label.split("#") if isinstance(label, str) and label else labels_of(label or [])
        if labels is None:
            raise InputError("the labels are of parts of a text, and not of whole documents")
        yield ToolAnswer(row, record["id"], None, "label", labels)


def _mturk(records: Records, _: str | None) -> Iterator[ToolAnswer]:
    """Forms have a column for each question; crowd elements keep all of them as JSON in one."""
    for row, record in enumerate(records):
        answers = {name: value for name, value in record.items() if name.startswith("Answer.")}
        for task in json.loads(answers.pop("Answer.taskAnswers", None) or "[]"):
            answers |= task
        item, annotator, seconds = record["HITId"], record["WorkerId"], record.get("WorkTimeInSeconds")
        left_out = "rejected" if record["AssignmentStatus"] == "Rejected" or record.get("Reject") else ""
        for question, value in answers.items():
            # The boxes that are ticked in a form stand in one cell.
            boxes = isinstance(value, str) and "|" in value and not value.startswith(("[", "{"))
            labels = value.split("|") if boxes else labels_of(value)
            yield ToolAnswer(row, item, annotator, question, labels, left_out, seconds)


def _toloka(records: Records, _: str | None) -> Iterator[ToolAnswer]:
    """An item is what a task showed; a task with a golden answer tests its worker."""
    for row, record in enumerate(records):
        parts: dict[str, dict[str, Any]] = defaultdict(dict)
        for name, value in record.items():
            parts[name.partition(":")[0]][name] = value
        item = " / ".join(str(value) for value in parts["INPUT"].values() if value is not None)
        annotator, time = record["ASSIGNMENT:worker_id"], record.get("ASSIGNMENT:submitted")
        status = str(record.get("ASSIGNMENT:status") or "approved").lower()
        left_out = "" if status in ("approved", "submitted") else status
        if any(value is not None for value in parts["GOLDEN"].values()):
            left_out = "control tasks (GOLDEN)"
        for question, value in parts["OUTPUT"].items():
            yield ToolAnswer(row, item, annotator, question, labels_of(value), left_out, time=time)


def _crowdflower(records: Records, label: str | None) -> Iterator[ToolAnswer]:
    """A question is a column that test questions have a gold answer to, or the one that is named."""
    if "_worker_id" not in records[0]:
        raise InputError(
            "this is the aggregated report, with one label per item and its confidence, and not the votes; download "
            "the full report of the job"
        )
    names = [name for name in records[0] if not name.startswith("_") and "_gold" not in name]
    tested = [name for name in names if f"{name}_gold" in records[0]]
    for row, record in enumerate(records):
        golden, tainted = (str(record.get(name)).lower() == "true" for name in ("_golden", "_tainted"))
        left_out = "test questions (_golden)" if golden else "tainted" if tainted else ""
        for question in [name for name in names if name == label] or tested or names:
            value = record[question]
            # The boxes that are ticked stand in one cell, on a line each.
            labels = value.split("\n") if isinstance(value, str) else labels_of(value)
            yield ToolAnswer(row, record["_unit_id"], record["_worker_id"], question, labels, left_out)


def _qualtrics(records: Records, label: str | None) -> Iterator[ToolAnswer]:
    """Questions are items: those of one text, in a matrix or a loop, or those that `label` names."""
    texts, imports, *respondents = records
    columns = [name for name, code in imports.items() if '"QID' in str(code)]
    groups = defaultdict(list)
    for name in columns:
        groups[str(texts[name]).rpartition(" - ")[0] or name].append(name)
    if label is None and len(groups) > 1:
        alike = "".join(f"label='{','.join(names)}' or " for names in groups.values() if len(names) > 1)
        raise InputError(
            f"the {len(columns)} questions differ in more than the item that they are about; choose the columns that "
            f"are items, by names or patterns: {alike}label='*' for all of them"
        )
    if label is not None:
        columns = [name for name in columns if any(fnmatchcase(name, part) for part in label.split(","))]
    for row, record in enumerate(respondents, start=2):
        status = str(record["Status"]).lower()
        if re.search("preview|test|spam", status) or status in ("1", "2", "8", "9", "12", "17"):
            yield ToolAnswer(row, None, None, "", None, "previews, tests or spam")
            continue
        for name in columns:
            labels = None if record[name] is None else [str(record[name])]
            yield ToolAnswer(row, name, record["ResponseId"], label or "answer", labels)


def _labelbox(records: Records, _: str | None) -> Iterator[ToolAnswer]:
    for row, record in enumerate(records):
        item = record["data_row"]["id"]
        labels = [label for project in record["projects"].values() for label in project["labels"]]
        if not labels:
            yield ToolAnswer(row, item, None, "", None, "data rows without labels")
        for label in labels:
            details, effort = label["label_details"], label.get("performance_details") or {}
            for answer in label["annotations"]["classifications"]:
                options = [answer["radio_answer"]] if "radio_answer" in answer else answer.get("checklist_answers")
                chosen = None if options is None else labels_of([option["name"] for option in options])
                left_out, seconds = "skipped" * bool(effort.get("skipped")), effort.get("seconds_to_create")
                yield ToolAnswer(row, item, details["created_by"], answer["name"], chosen, left_out, seconds)


def _argilla(records: Records, _: str | None) -> Iterator[ToolAnswer]:
    """Responses of version 1, of records of version 2, and of these as a flat table; suggestions are a model's."""
    for row, record in enumerate(records):
        item = next((record[key] for key in ("id", "external_id", "_server_id") if record.get(key) is not None), row)
        flat = [key.removesuffix(".responses") for key in record if key.endswith(".responses")]
        if isinstance(record.get("responses"), dict):
            responses, suggestions = record["responses"], record["suggestions"]
        elif flat:
            suggestions = {question: record.get(f"{question}.suggestion") for question in flat}
            responses = {}
            for question in flat:
                names = (f"{question}.responses{end}" for end in ("", ".users", ".status"))
                cells = zip(*(record[name] or () for name in names), strict=True)
                responses[question] = [dict(zip(("value", "user_id", "status"), cell, strict=True)) for cell in cells]
        else:
            asked = [key for key in record if f"{key}-suggestion" in record]
            suggestions = {question: record[f"{question}-suggestion"] for question in asked}
            responses = {question: record[question] or () for question in asked}
        for question, answers in responses.items():
            for answer in answers:
                left_out = str(answer.get("status") or "submitted").replace("submitted", "")
                yield ToolAnswer(row, item, answer["user_id"], question, labels_of(answer["value"]), left_out)
            if suggestions.get(question) is not None:
                yield ToolAnswer(row, item, None, question, None, "suggestions of a model")


def _potato(records: Records, _: str | None) -> Iterator[ToolAnswer]:
    """A scheme has its labels as keys, with a mark; where it has one key only, the answers are its values."""
    marks: list[dict[str, dict[str, str]]] = []
    keys: dict[str, set[str]] = defaultdict(set)
    values: dict[str, set[str]] = defaultdict(set)
    for record in records:
        schemes = record.get("label_annotations", record.get("labels"))
        if schemes is None:
            schemes = defaultdict(dict)
            for column, value in record.items():
                scheme, _, name = re.sub(r":::|\.", "\0", column, count=1).partition("\0")
                if name and not name.startswith("_"):
                    schemes[scheme][name] = value
        marks.append({})
        for scheme, labels in schemes.items():
            marked = {name: str(mark) for name, mark in labels.items() if mark not in _UNMARKED}
            marks[-1][scheme] = marked
            keys[scheme] |= marked.keys()
            values[scheme] |= set(marked.values())
    for row, (record, schemes) in enumerate(zip(records, marks, strict=True)):
        item, annotator = record.get("instance_id", record.get("id")), record.get("user_id", record.get("user"))
        origin = record.get("annotator_origin") or "human"
        is_human = (origin["kind"] if isinstance(origin, dict) else origin) == "human"
        for scheme in keys:
            marked = schemes.get(scheme, {})
            labels = marked.values() if len(keys[scheme]) == 1 < len(values[scheme]) else marked
            left_out = "" if is_human else "answers of a tool or a model"
            yield ToolAnswer(row, item, annotator, scheme, list(labels) or None, left_out)


def _peerannot(records: Records, _: str | None) -> Iterator[ToolAnswer]:
    for row, (task, answers) in enumerate(records):
        yield from (ToolAnswer(row, task, worker, "label", labels_of(label)) for worker, label in answers.items())


def _snli(records: Records, _: str | None) -> Iterator[ToolAnswer]:
    for row, record in enumerate(records):
        for label in record["annotator_labels"]:
            yield ToolAnswer(row, record["pairID"], None, "annotator_labels", labels_of(label))


_ANSWERS: Final = (
    *(_prodigy, _doccano, _mturk, _toloka, _crowdflower, _qualtrics, _labelbox, _argilla, _potato, _peerannot, _snli),
)
_DESCRIPTIONS: Final = shipped_toml(__package__, "tools.toml")

TOOLS: Final = {
    name: ToolExport(name, answers, **about).format()
    for answers, (name, about) in zip(_ANSWERS, _DESCRIPTIONS.items(), strict=True)
}
"""The formats of every tool but Label Studio, which has a module of its own."""
