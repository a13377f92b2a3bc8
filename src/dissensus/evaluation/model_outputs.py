"""What models print, as probabilities of classes: hard labels, sampled answers, log-probabilities, words.

A *record* is one output for one item, and a *form* a way in which records are written. Each form turns a record into
answers with their probabilities; a mapping turns answers into classes. Nothing is dropped: an answer that is no class,
and probability that a file gives to none, count as the class `NO_CLASS`, which nobody voted for.
"""

from __future__ import annotations

import json
import math
import re
import string
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.errors import InputError
from dissensus.table_file import columns_of, kind_of, open_bytes, read_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from dissensus.arrays import Names, Table

NO_CLASS: Final = "(no class)"
"""Where answers and probability go that belong to no class."""

ITEM_KEYS: Final = ("item", "item_id", "uid", "custom_id", "id", "doc_id", "request_id")
"""Where a record may have its item, the likeliest first."""

ANSWER_KEYS: Final = (
    "answer",
    "label",
    "prediction",
    "predicted_label",
    "predicted",
    "generated_text",
    "completion",
    "output",
    "response",
    "text",
)
"""Where a record or a column may have an answer in words, the likeliest first."""

LOOKED_AT: Final = 20
"""Records at the start of a file of which one must show its form; any of them may be a refusal or an error."""

Answers = dict[str, float]
"""By what the model said, its probability; together at most 1."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Outputs:
    """What a model said about items, as probabilities of classes.

    Attributes:
        probabilities: (items, classes) rows that sum to 1.
        items: (items,) names; numbers from 0 where the file has none.
        classes: of the votes, and `NO_CLASS` where something fell there.
        form: how the records are written, in words.
        notes: sentences on what was decided, and on what is no class.
    """

    probabilities: Table
    items: Names
    classes: tuple[str, ...]
    form: str
    notes: tuple[str, ...]


def read_outputs(
    path: Path, classes: Sequence[str], *, answers: Mapping[str, str] | None = None, item: str | None = None
) -> Outputs | None:
    """The outputs of a file, or None where it is a plain table of numbers.

    Args:
        path: JSON or JSONL in one of `FORMS`, or an Inspect log (`.eval`); or any table with a column of answers
            (`ANSWER_KEYS`), in which an item may have several rows, one for each sampled answer.
        classes: of the votes.
        answers: by answer, the class that it means. Without it an answer is the class that it names, whatever the case
            and the punctuation around it.
        item: the key or column of item names; None looks for `ITEM_KEYS`.
    """
    kind = kind_of(path, also=(".npz", ".npy", ".eval"))
    if kind in ("npz", "npy"):
        return None
    if kind == "JSONL" and _form_of(_first_records(path), classes) is None:
        # A table, which is read once, by its own reader.
        return None
    if kind in ("JSON", "JSONL", "eval"):
        records = _records(path, kind)
        form = _form_of([record for _, record in records], classes)
        if form is None:
            return None
        told = [(_item_of(record, key, item), _read_by(FORMS[form], record)) for key, record in records]
    else:
        found = _answer_column(path, classes, item)
        if found is None:
            return None
        form, told = found
    return _tallied(path, told, form=form, classes=tuple(classes), meaning=_meaning(path, classes, answers))


def read_answers(path: str | Path) -> dict[str, str]:
    """A table of two columns, `answer` and `class`: what a model may say, and which class it means."""
    from dissensus.table_file import open_file

    rows = read_rows(open_file(path))
    if not {"answer", "class"} <= set(rows.table.columns):
        raise InputError(f"{path}: it has the columns {', '.join(rows.table.columns)}; give 'answer' and 'class'")
    said, meant = (rows.table[name].cast(str).to_list() for name in ("answer", "class"))
    for place, pair in enumerate(zip(said, meant, strict=True)):
        if None in pair:
            raise InputError(f"{rows.where(place)}: an answer or its class is missing; give both")
    return dict(zip(said, meant, strict=True))


# Forms ----------------------------------------------------------------------------------------------------------------


def pipeline_scores(record: Any) -> Answers | None:
    """Hugging Face pipelines: `[{"label": ..., "score": ...}, ...]`, or the best label alone."""
    if isinstance(record, dict):
        held = next((value for value in record.values() if _is_scores(value)), None)
        record = held if held is not None else [record] if _is_scores([record]) else None
    if not _is_scores(record):
        return None
    return _summed((str(each["label"]), float(each["score"])) for each in record)


def _is_scores(value: Any) -> bool:
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(each, dict) and {"label", "score"} <= set(each) for each in value)
    )


def chat_logprobs(record: Any) -> Answers | None:
    """OpenAI chat completions (alone, or as lines of a batch's output), vLLM's server, and its offline outputs."""
    choice = _choice(record)
    logprobs = choice.get("logprobs") if choice is not None else None
    if isinstance(logprobs, dict) and logprobs.get("content"):
        first = logprobs["content"][0]
        found = first.get("top_logprobs") or [first]
        return _summed((str(each["token"]), math.exp(_number(each["logprob"]))) for each in found)
    if isinstance(logprobs, dict) and logprobs.get("top_logprobs"):
        return _summed((token, math.exp(_number(value))) for token, value in logprobs["top_logprobs"][0].items())
    if isinstance(logprobs, list) and logprobs and isinstance(logprobs[0], dict):
        return _summed(
            (str(each["decoded_token"]), math.exp(_number(each["logprob"]))) for each in logprobs[0].values()
        )
    return None


def harness_samples(record: Any) -> Answers | None:
    """lm-evaluation-harness `samples_*.jsonl`: log-likelihoods of the choices, or an answer in words.

    Choices share probability 1 between them, as in the harness's own multiple choice.
    """
    if not isinstance(record, dict) or not {"doc_id", "arguments", "resps"} <= set(record):
        return None
    replies = record.get("filtered_resps") or record["resps"]
    if isinstance(replies[0], str):
        return _summed((reply, 1 / len(replies)) for reply in replies)
    given = record["arguments"]
    pairs = list(given.values()) if isinstance(given, dict) else given
    choices = [str(pair["arg_1"] if isinstance(pair, dict) else pair[1]) for pair in pairs]
    numbers = np.array([_number(_first(reply)) for reply in replies])
    if len(choices) != len(numbers):
        raise InputError(f"document {record['doc_id']} has {len(numbers)} replies for {len(choices)} choices")
    shares = np.exp(numbers - numbers.max())
    return _summed(zip(choices, (shares / shares.sum()).tolist(), strict=True))


def inspect_sample(record: Any) -> Answers | None:
    """A sample of an Inspect log: the answer that its scorer read, or what the model said."""
    if not isinstance(record, dict) or "output" not in record or not {"scores", "epoch"} & set(record):
        return None
    scored = [each.get("answer") for each in (record.get("scores") or {}).values() if isinstance(each, dict)]
    said = next((each for each in scored if each), None)
    if said is None:
        choices = record["output"].get("choices") or []
        said = _words(choices[0]["message"]["content"]) if choices else record["output"].get("completion", "")
    return _said(str(said))


def words(record: Any) -> Answers | None:
    """A distribution or an answer in words: `{"A": "15%", "B": "85%"}`, or a text that may hold such an object."""
    if not isinstance(record, dict):
        return _said(record) if isinstance(record, str) else None
    choice = _choice(record)
    if choice is not None:
        said = (choice.get("message") or {}).get("content", choice.get("text"))
        return None if said is None else _said(_words(said))
    for key in ("distribution", *ANSWER_KEYS):
        value = record.get(key)
        if isinstance(value, dict):
            return _verbalised(value)
        if isinstance(value, str):
            return _said(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return {str(value): 1.0}
    return None


FORMS: Final[dict[str, Callable[[Any], Answers | None]]] = {
    "Hugging Face pipeline scores": pipeline_scores,
    "top log-probabilities": chat_logprobs,
    "lm-evaluation-harness samples": harness_samples,
    "Inspect log": inspect_sample,
    "answers in words": words,
}
"""By name, how records may be written; the first that reads a file's first record reads all of it."""


def _form_of(records: Sequence[Any], classes: Sequence[str]) -> str | None:
    """The form of the first record that has one; None of a table, whose records have a key for each class."""
    for record in records[:LOOKED_AT]:
        if isinstance(record, dict) and set(classes) <= set(record):
            return None
        for name, form in FORMS.items():
            if _read_by(form, record) is not None:
                return name
    return None


def _read_by(form: Callable[[Any], Answers | None], record: Any) -> Answers | None:
    """What a record says; None where it is not written in this form: a refusal, an error, an output cut short."""
    try:
        return form(record)
    except (KeyError, TypeError, IndexError, AttributeError, ValueError, OverflowError, InputError):
        return None


def _choice(record: Any) -> dict[str, Any] | None:
    """The first choice of a completion, wherever a server, a batch or an offline run keeps it."""
    for key in ("response", "body"):
        if isinstance(record, dict) and isinstance(record.get(key), dict):
            record = record[key]
    if not isinstance(record, dict):
        return None
    held = record.get("choices") or record.get("outputs")
    return held[0] if isinstance(held, list) and held and isinstance(held[0], dict) else None


def _words(content: Any) -> str:
    """A message's text, which may come in parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content)


def _said(text: str) -> Answers:
    """An answer in words, or the distribution that it holds as a JSON object."""
    found = re.search(r"\{[^{}]*\}", text)
    if found:
        try:
            held = json.loads(found.group())
        except ValueError:
            held = None
        if isinstance(held, dict) and held:
            try:
                return _verbalised(held)
            except (ValueError, InputError):
                # An object that holds no numbers, such as {"answer": "A"}: the answer is in it.
                inner = next((held[key] for key in ANSWER_KEYS if isinstance(held.get(key), str)), None)
                if inner is not None:
                    return {inner: 1.0}
    return {text: 1.0}


def _verbalised(held: Mapping[str, Any]) -> Answers:
    """Numbers or percentages by answer; more than 1 in all is taken as percent, and the rest as nothing said."""
    shares = {str(name): _number(value) for name, value in held.items()}
    if any(not 0 <= share < math.inf for share in shares.values()):
        raise InputError("a stated probability is negative or endless")
    total = sum(shares.values())
    percent = any(isinstance(value, str) and "%" in value for value in held.values()) or total > 1.5
    whole = 100.0 if percent else 1.0
    return {name: share / max(total, whole) for name, share in shares.items()}


def _number(value: Any) -> float:
    """A number, which harnesses and models also write as text."""
    return float(value.strip().rstrip("%")) if isinstance(value, str) else float(value)


def _first(reply: Any) -> Any:
    """The log-likelihood in a reply: replies are nested one or two deep, with whether it was the greedy one behind."""
    while isinstance(reply, list):
        reply = reply[0]
    return reply


def _summed(pairs: Iterable[tuple[str, float]]) -> Answers:
    """Probabilities by answer; tokens that differ in white space alone stay apart until they are mapped."""
    summed: Answers = {}
    for answer, share in pairs:
        summed[answer] = summed.get(answer, 0.0) + share
    return summed


# Files ----------------------------------------------------------------------------------------------------------------


def _records(path: Path, kind: str) -> list[tuple[str | None, Any]]:
    """Each record with the name it stands under, where it has one."""
    if kind == "eval":
        return [(None, sample) for sample in _inspect_samples(path)]
    with open_bytes(path) as file:
        text = file.read().decode("utf-8", errors="replace")
    try:
        if kind == "JSONL":
            return [(None, json.loads(line)) for line in text.splitlines() if line.strip()]
        held = json.loads(text)
    except ValueError as error:
        raise InputError(f"{path}: it is no JSON ({error}); give a whole file") from error
    if isinstance(held, dict) and isinstance(held.get("samples"), list):
        return [(None, sample) for sample in held["samples"]]
    if isinstance(held, dict):
        return [(name, value if isinstance(value, str | list) else {"output": value}) for name, value in held.items()]
    return [(None, record) for record in held] if isinstance(held, list) else []


def _first_records(path: Path) -> list[Any]:
    """The records on the first lines of a JSONL file, as far as they can be read."""
    found = []
    with open_bytes(path) as file:
        for line in islice((line for line in file if line.strip()), LOOKED_AT):
            with suppress(ValueError):
                found.append(json.loads(line))
    return found


def _inspect_samples(path: Path) -> list[Any]:
    """The samples of an Inspect log in its own format, an archive with a JSON file for each."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(name for name in archive.namelist() if name.startswith("samples/"))
            return [json.loads(archive.read(name)) for name in names]
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: it is no Inspect log ({error}); give a whole file") from error


def _item_of(record: Any, name: str | None, wanted: str | None) -> str | int | None:
    if name is not None or not isinstance(record, dict):
        return name
    for place in (record, record.get("doc")):
        if isinstance(place, dict) and wanted is not None and wanted in place:
            return place[wanted]  # type: ignore[no-any-return]
    for key in ITEM_KEYS:
        if isinstance(record.get(key), str | int):
            return record[key]  # type: ignore[no-any-return]
    return None


def _answer_column(
    path: Path, classes: Sequence[str], item: str | None
) -> tuple[str, list[tuple[str | int | None, Answers | None]]] | None:
    """The answers of a table that has a column of them, and none for each class."""
    from dissensus.votes.columns import require

    columns = columns_of(path)
    column = next((name for name in columns if name.lower() in ANSWER_KEYS), None)
    if column is None or any(name in columns for name in classes):
        # Numbers for each class, which are read once, by their own reader.
        return None
    rows = read_rows(path)
    if rows.table[column].dtype.is_nested() or rows.table[column].dtype.is_float():
        return None
    others = [name for name in columns if name != column]
    named = require("item", item if item in others else None, others, path=rows.path)
    items, said = rows.table[named].to_list(), rows.table[column].cast(str).to_list()
    return f"answers in the column '{column}'", [
        (each, {"" if answer is None else answer: 1.0}) for each, answer in zip(items, said, strict=True)
    ]


# Tallies --------------------------------------------------------------------------------------------------------------


def plain_answer(answer: str) -> str:
    """An answer without case, white space and the marks of tokens and punctuation around it."""
    return answer.replace("\u2581", " ").replace("\u0120", " ").strip(string.whitespace + string.punctuation).casefold()


def _meaning(path: Path, classes: Sequence[str], answers: Mapping[str, str] | None) -> dict[str, int]:
    """By plain answer, the class that it means."""
    for said, meant in (answers or {}).items():
        if meant not in classes:
            raise InputError(
                f"{path}: the answer '{said}' is said to mean '{meant}', and people voted for {', '.join(classes)}; "
                "name one of these"
            )
    pairs = dict(answers) if answers is not None else {name: name for name in classes}
    meaning: dict[str, int] = {}
    for said, meant in pairs.items():
        place = list(classes).index(meant)
        # Classes such as '+' and '-' are nothing but punctuation, and 'a' and 'A' may be two: such are told apart as
        # they are written.
        key = plain_answer(said)
        if key and meaning.setdefault(key, place) != place:
            meaning[key] = -1
        meaning[_exactly(said)] = place
    return meaning


def _exactly(answer: str) -> str:
    """The key of an answer as it is written; no plain answer begins with white space."""
    return f" {answer}"


def _tallied(
    path: Path,
    told: Sequence[tuple[str | int | None, Answers | None]],
    *,
    form: str,
    classes: tuple[str, ...],
    meaning: Mapping[str, int],
) -> Outputs:
    """The mean over an item's records of what each says."""
    notes = [f"read as {form}"]
    nameless = [place for place, (name, _) in enumerate(told) if name is None]
    if nameless and len(nameless) < len(told):
        raise InputError(
            f"{path}: record {nameless[0] + 1} has no item, and others have one; give each record a key 'item'"
        )
    if nameless:
        notes.append("records have no item names; they are taken as items 0, 1, 2, ... in the order of the file")
    names: dict[str | int, int] = {}
    place = np.array([names.setdefault(n if name is None else name, len(names)) for n, (name, _) in enumerate(told)])
    row: list[int] = []
    column: list[int] = []
    share: list[float] = []
    unread: list[int] = []
    for record, (_, said) in enumerate(told):
        before = len(row)
        for answer, mass in (said or {}).items():
            where = meaning.get(_exactly(answer), meaning.get(plain_answer(answer), -1))
            if where >= 0:
                row.append(record)
                column.append(where)
                share.append(mass)
        if len(row) == before:
            unread.append(record)
    cell = place[np.array(row, dtype=np.int64)] * (len(classes) + 1) + np.array(column, dtype=np.int64)
    table: Table = np.bincount(cell, share, minlength=len(names) * (len(classes) + 1)).reshape(len(names), -1) / 1.0
    times = np.bincount(place, minlength=len(names))
    table /= times[:, None]
    inside = table.sum(axis=1)
    if (inside > 1 + 1e-3).any():
        raise InputError(
            f"{path}: the answers about item {list(names)[int(inside.argmax())]} have probability {inside.max():.3g} "
            "in all; give at most 1"
        )
    table[:, -1] = np.maximum(0.0, 1.0 - inside)
    table[table[:, -1] < 1e-6, -1] = 0.0
    table /= table.sum(axis=1, keepdims=True)
    if (times > 1).any():
        notes.append(f"{len(told):,} answers about {len(names):,} items, {times.min()} to {times.max()} an item")
    if unread:
        name, said = told[unread[0]]
        example = f"{next(iter(said))[:40]!r}" if said else "an empty one"
        notes.append(
            f"{len(unread):,} of {len(told):,} answers ({len(unread) / len(told):.1%}) name no class, first {example} "
            f"about item {unread[0] if name is None else name}; they count as '{NO_CLASS}', which nobody voted for: "
            "say what they mean with --answers FILE"
        )
    outside = table[:, -1]
    if outside.any() and not np.isclose(outside.mean(), len(unread) / len(told)):
        notes.append(
            f"{outside.mean():.1%} of the probability is outside the classes (most at item "
            f"{list(names)[int(outside.argmax())]}: {outside.max():.1%}); it counts as '{NO_CLASS}'"
        )
    shown = (*classes, NO_CLASS) if outside.any() else classes
    keys = list(names)
    whole = all(isinstance(name, int) for name in keys)
    items = np.array(keys) if whole else np.array([str(name) for name in keys], dtype=np.dtypes.StringDType())
    return Outputs(probabilities=table[:, : len(shown)], items=items, classes=shown, form=form, notes=tuple(notes))
