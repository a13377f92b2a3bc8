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
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.arrays import places_of
from dissensus.errors import InputError
from dissensus.evaluation.answer_texts import ANSWER_KEYS, Answers, number_of, object_in, stated, summed, verbalised
from dissensus.evaluation.probabilities import Predictions
from dissensus.table_file import columns_of, kind_of, open_bytes, open_file, read_rows
from dissensus.votes.sides import side_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from dissensus.table_file import Rows
    from dissensus.votes.shown_pairs import ShownPairs

NO_CLASS: Final = "(no class)"
"""Where answers and probability go that belong to no class."""

ITEM_KEYS: Final = ("item", "item_id", "uid", "custom_id", "id", "doc_id", "request_id")
"""Where a record may have its item, the likeliest first."""

SAMPLES_KEYS: Final = ("answers", "answer", "samples", "responses", "response", "completions", "generations")
"""Where a record may have several sampled answers as a list of texts."""

ALSO: Final = (".npz", ".npy", ".eval")
"""Files that predictions may be in, beside tables."""

SEED: Final = "seed"
"""Name of the column that distinguishes several seeds of one system."""

LOOKED_AT: Final = 20
"""Records at the start of a file of which one must show its form; any of them may be a refusal or an error."""

Record = tuple[str | int | None, Answers | None]
"""The item that a record is about, where it says, and what it says of it, where that is written in the file's form."""


def read_outputs(
    path: Path,
    classes: Sequence[str],
    *,
    answers: Mapping[str, str] | None = None,
    item: str | None = None,
    shown: ShownPairs | None = None,
) -> Predictions | None:
    """What the outputs of a file say as probabilities, or None where it is a plain table of numbers.

    Args:
        path: JSON or JSONL in one of `FORMS`, or an Inspect log (`.eval`); or any table with a column of answers
            (`ANSWER_KEYS`), in which an item may have several rows, one for each sampled answer.
        classes: of the votes.
        answers: by answer, the class that it means. Any other answer is the class that it names, whatever the case and
            the punctuation around it.
        item: the key or column of item names; None looks for `ITEM_KEYS`.
        shown: of preferences, how pairs were shown.
    """
    kind, seeds = kind_of(path, also=ALSO), []
    # A table in JSONL is read once, by its own reader.
    if kind in ("npz", "npy") or (kind == "JSONL" and _form_of(_first_records(path), classes) is None):
        return None
    if kind in ("JSON", "JSONL", "eval"):
        entries = _records(path, kind)
        form = _form_of([record for _, record in entries], classes)
        records = [(_item_of(record, key, item), _read_by(FORMS[form], record)) for key, record in entries if form]
    else:
        form, records = _answer_column(path, classes, item)
        if form is not None and SEED in columns_of(path):
            seeds = read_rows(path).table[SEED].to_list()
    if form is None:
        return None
    meaning = _meaning(path, classes, answers)
    shown = shown_in(path, shown, item)
    records, about = _of_sides(records, shown, answers)
    _refuse_mostly_unread(path, [distribution for _, distribution in records], classes, meaning)
    told: Any = {"form": form, "classes": tuple(classes), "meaning": meaning, "about": about}
    if not seeds:
        return _tallied(path, records, **told)
    runs = {
        seed: _tallied(path, [record for record, own in zip(records, seeds, strict=True) if own == seed], **told)
        for seed in dict.fromkeys(seeds)
    }
    return _stacked(path, runs)


def _stacked(path: Path, runs: Mapping[int | str, Predictions]) -> Predictions:
    """Return the runs of one system as one, with a row of probabilities for each seed, item and class."""
    first = next(iter(runs.values()))
    classes = max((run.classes for run in runs.values()), key=len)
    tables = []
    for seed, run in runs.items():
        place = places_of(first.items, run.items)
        if len(run.items) != len(first.items) or (place < 0).any():
            raise InputError(
                f"{path}: expected the same items for each seed, found {len(first.items):,} with seed "
                f"{next(iter(runs))} and others with seed {seed}; give one answer for each item and seed"
            )
        table = run.probabilities[0, place]
        tables.append(np.pad(table, ((0, 0), (0, len(classes) - table.shape[1]))))
    return replace(first, probabilities=np.stack(tables), classes=classes, seeds=tuple(runs))


def shown_in(path: Path, shown: ShownPairs | None, item: str | None) -> ShownPairs | None:
    """How pairs were shown, as a table of answers says it where it has columns of sides."""
    if shown is None or kind_of(path, also=ALSO) in ("npz", "npy", "eval", "JSON"):
        return shown
    columns = columns_of(path)
    if not side_columns([name for name in columns if name not in shown.classes], None):
        return shown
    rows = read_rows(path)
    return shown.in_table(rows.table.to_dict(), rows.table[item_column(rows, item, columns)].to_list())


def _of_sides(
    records: list[Record], shown: ShownPairs | None, answers: Mapping[str, str] | None
) -> tuple[list[Record], list[str]]:
    """Records whose words for a side are classes, and notes."""
    if shown is None:
        return records, []
    table = {plain_answer(word): name for word, name in (answers or {}).items()}

    def read(item: Any, said: Answers | None) -> Answers | None:
        return said and summed((shown.meant(item, word, table.get(plain_answer(word))), p) for word, p in said.items())

    meant = [(item, read(item, said)) for item, said in records]
    return meant, shown.notes(word for _, said in records for word in said or ())


def read_answers(path: str | Path) -> dict[str, str]:
    """A table of two columns, `answer` and `class`: what a model may say, and which class it means."""
    rows = read_rows(open_file(path))
    if not {"answer", "class"} <= set(rows.table.columns):
        raise InputError(f"{path}: it has the columns {', '.join(rows.table.columns)}; give 'answer' and 'class'")
    pairs = list(zip(*(rows.table[name].cast(str).to_list() for name in ("answer", "class")), strict=True))
    for place, pair in enumerate(pairs):
        if None in pair:
            raise InputError(f"{rows.where(place)}: an answer or its class is missing; give both")
    return dict(pairs)


# Forms ----------------------------------------------------------------------------------------------------------------


def pipeline_scores(record: Any) -> Answers | None:
    """Hugging Face pipelines: `[{"label": ..., "score": ...}, ...]`, or the best label alone."""
    candidates = [*record.values(), [record]] if isinstance(record, dict) else [record]
    scores = next(filter(_is_scores, map(_unwrapped, candidates)), None)
    return None if scores is None else summed((str(row["label"]), number_of(row["score"])) for row in scores)


def _unwrapped(value: Any) -> Any:
    """A pipeline that was given one text answers with a list of one list."""
    return value[0] if _is_list_of(list, value) and len(value) == 1 else value


def _is_scores(value: Any) -> bool:
    return _is_list_of(dict, value) and all({"label", "score"} <= set(row) for row in value)


def _is_list_of(kind: type, value: Any) -> bool:
    """Whether a value is a list with entries of one kind, and not empty."""
    return isinstance(value, list) and bool(value) and all(isinstance(entry, kind) for entry in value)


def chat_logprobs(record: Any) -> Answers | None:
    """OpenAI chat completions (alone, or as lines of a batch's output), vLLM's server, and its offline outputs."""
    tokens = [_token_logprobs(choice.get("logprobs")) for choice in _choices(record)]
    return _mean([summed((token, _exp(value)) for token, value in pairs) for pairs in tokens if pairs])


def _token_logprobs(logprobs: Any) -> list[tuple[str, Any]]:
    """Each likely first token with its log-probability, in the three ways in which servers write them."""
    if isinstance(logprobs, dict) and logprobs.get("content"):
        first = logprobs["content"][0]
        return [(str(token["token"]), token["logprob"]) for token in first.get("top_logprobs") or [first]]
    if isinstance(logprobs, dict) and logprobs.get("top_logprobs"):
        return list(logprobs["top_logprobs"][0].items())
    if isinstance(logprobs, list) and logprobs and isinstance(logprobs[0], dict):
        return [(str(token["decoded_token"]), token["logprob"]) for token in logprobs[0].values()]
    return []


def harness_samples(record: Any) -> Answers | None:
    """lm-evaluation-harness `samples_*.jsonl`: log-likelihoods of the choices, or an answer in words.

    Choices share probability 1 between them, as in the harness's own multiple choice.
    """
    if not isinstance(record, dict) or not {"doc_id", "arguments", "resps"} <= set(record):
        return None
    replies = record.get("filtered_resps") or record["resps"]
    arguments = record["arguments"]
    pairs = list(arguments.values()) if isinstance(arguments, dict) else arguments
    choices = [pair["arg_1"] if isinstance(pair, dict) else pair[1] for pair in pairs]
    if isinstance(choices[0], dict):
        # Settings of a generation: replies are texts, several where it was repeated.
        texts = [text for reply in replies for text in (reply if isinstance(reply, list) else [reply])]
        return summed((str(text), 1 / len(texts)) for text in texts)
    numbers = np.array([number_of(_first(reply)) for reply in replies])
    if len(choices) != len(numbers) or not np.isfinite(numbers.max()):
        return {}
    shares = np.exp(numbers - numbers.max())
    return summed(zip(map(str, choices), (shares / shares.sum()).tolist(), strict=True))


def inspect_sample(record: Any) -> Answers | None:
    """A sample of an Inspect log: the answer that its scorer read, or what the model said."""
    if not isinstance(record, dict) or "output" not in record or not {"scores", "epoch"} & set(record):
        return None
    scores = [score.get("answer") for score in (record.get("scores") or {}).values() if isinstance(score, dict)]
    answer = next(filter(None, scores), None)
    if answer is None:
        choices = record["output"].get("choices") or []
        if choices:
            return _mean([stated(_words(choice["message"]["content"])) for choice in choices])
        answer = record["output"].get("completion", "")
    return stated(str(answer))


def words(record: Any) -> Answers | None:
    """A distribution or an answer in words: `{"A": "15%", "B": "85%"}`, or a text that may hold such an object."""
    if not isinstance(record, dict):
        return stated(record) if isinstance(record, str) else None
    if choices := _choices(record):
        texts = [(choice.get("message") or {}).get("content", choice.get("text")) for choice in choices]
        return _mean([{} if text is None else stated(_words(text)) for text in texts])
    for key in ("distribution", *ANSWER_KEYS):
        value = record.get(key)
        if isinstance(value, dict):
            return verbalised(value)
        if isinstance(value, str):
            return stated(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return {str(value): 1.0}
    sampled: list[str] = next((record[key] for key in SAMPLES_KEYS if _is_list_of(str, record.get(key))), [])
    return _mean(list(map(stated, sampled)))


FORMS: Final[dict[str, Callable[[Any], Answers | None]]] = {
    "Hugging Face pipeline scores": pipeline_scores,
    "top log-probabilities": chat_logprobs,
    "lm-evaluation-harness samples": harness_samples,
    "Inspect log": inspect_sample,
    "answers in words": words,
}
"""By name, how records may be written; the first that reads one of a file's first records reads all of it."""


NUMBERS: Final = ("Hugging Face pipeline scores", "top log-probabilities")
"""Forms whose numbers a program computed: there, more than 1 in all is an error."""


def _form_of(records: Sequence[Any], classes: Sequence[str]) -> str | None:
    """The first form that reads one of the first records; None of a table, whose records have a key for each class.

    Forms come before records: where the first completion has no log-probabilities, a refusal, those of the others
    count, and their words do not.
    """
    looked_at = records[:LOOKED_AT]
    if any(isinstance(record, dict) and set(classes) <= set(record) for record in looked_at):
        return None
    read = (name for name, form in FORMS.items() if any(_read_by(form, record) is not None for record in looked_at))
    return next(read, None)


def _read_by(form: Callable[[Any], Answers | None], record: Any) -> Answers | None:
    """What a record says; None where it is not written in this form: a refusal, an error, an output cut short."""
    try:
        return form(record)
    except (KeyError, TypeError, IndexError, AttributeError, ValueError, OverflowError, InputError):
        return None


def _choices(record: Any) -> list[dict[str, Any]]:
    """The choices of a completion, several where answers were sampled, wherever they are kept."""
    for key in ("response", "body"):
        if isinstance(record, dict) and isinstance(record.get(key), dict):
            record = record[key]
    choices: Any = (record.get("choices") or record.get("outputs")) if isinstance(record, dict) else None
    return choices if _is_list_of(dict, choices) else []


def _words(content: Any) -> str:
    """A message's text, which may come in parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content)


def _exp(logprob: Any) -> float:
    # What is beyond all numbers is no probability.
    return math.exp(number_of(logprob)) if number_of(logprob) < 700 else math.nan


def _first(reply: Any) -> Any:
    """The log-likelihood in a reply: replies are nested one or two deep, with whether it was the greedy one behind."""
    while isinstance(reply, list):
        reply = reply[0]
    return reply


def _mean(sampled: Sequence[Answers]) -> Answers | None:
    """The mean of several answers about one item; None where there is none."""
    pairs = ((answer, share / len(sampled)) for answers in sampled for answer, share in answers.items())
    return summed(pairs) if sampled else None


# Files ----------------------------------------------------------------------------------------------------------------


def _records(path: Path, kind: str) -> list[tuple[str | None, Any]]:
    """Each record with the name it stands under, where it has one."""
    if kind == "eval":
        return [(None, sample) for sample in _inspect_samples(path)]
    with open_bytes(path) as file:
        text = file.read().decode("utf-8-sig", errors="replace")
    try:
        if kind == "JSONL":
            return [(None, json.loads(line)) for line in text.splitlines() if line.strip()]
        content = json.loads(text)
    except ValueError as error:
        raise InputError(f"{path}: it is no JSON ({error}); give a whole file") from error
    if isinstance(content, dict) and isinstance(content.get("samples"), list):
        return [(None, sample) for sample in content["samples"]]
    if isinstance(content, dict):
        return [(name, _under_name(value)) for name, value in content.items()]
    return [(None, record) for record in content] if isinstance(content, list) else []


def _under_name(value: Any) -> Any:
    """What stands under an item's name, as a record."""
    if _is_list_of(str, value):
        return {"answers": value}
    return value if isinstance(value, str | list) else {"output": value}


def _first_records(path: Path) -> list[Any]:
    """The records on the first lines of a JSONL file, as far as they can be read."""
    records = []
    with open_bytes(path) as file:
        for line in islice((line for line in file if line.strip()), LOOKED_AT):
            with suppress(ValueError):
                records.append(json.loads(line))
    return records


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
    return next((record[key] for key in ITEM_KEYS if isinstance(record.get(key), str | int)), None)


def item_column(rows: Rows, item: str | None, columns: Sequence[str]) -> str:
    """The column of item names among these columns: the one named, where it is there, or else the one guessed."""
    from dissensus.votes.columns import require

    return require("item", item if item in columns else None, columns, path=rows.path)


def _answer_column(path: Path, classes: Sequence[str], item: str | None) -> tuple[str | None, list[Record]]:
    """The form and the answers of a table that has a column of them; no form where it has numbers for each class."""
    columns = columns_of(path)
    column = next((name for name in columns if name.lower() in ANSWER_KEYS), None)
    if column is None or any(name in columns for name in classes):
        return None, []
    rows = read_rows(path)
    cells = rows.table[column]
    first = object_in(str(cells[0])) if len(cells) else None
    numbers = cells.dtype.is_nested() or (cells.dtype.is_float() and (cells != cells.floor()).any())
    if numbers or (isinstance(first, list) and len(first) > 1):
        return None, []
    others = [name for name in columns if name != column]
    # A column of labels that stands alone is numbered like an array.
    items = rows.table[item_column(rows, item, others)].to_list() if others else [None] * len(rows.table)
    return _column_records(cells, items)


def _column_records(cells: Any, items: Sequence[str | int | None]) -> tuple[str, list[Record]]:
    """The form, and what each cell of a column says about its item."""
    answers = (stated(answer or "") for answer in cells.cast(str).to_list())
    return f"answers in the column '{cells.name}'", list(zip(items, answers, strict=True))


def read_column_predictions(
    path: str | Path,
    classes: Sequence[str],
    *,
    answers: Mapping[str, str] | None = None,
    item: str | None = None,
    shown: ShownPairs | None = None,
) -> dict[str, Predictions]:
    """By name, the models of a table with a column of answers for each of them; empty for any other file.

    The columns of which at least half of the cells name a class are models; `answers`, `item` and `shown` are as in
    `read_outputs`.
    """
    path = open_file(path)
    if kind_of(path, also=ALSO) in ("npz", "npy", "eval", "JSON"):
        return {}
    columns = columns_of(path)
    if any(name in classes or name.lower() in ANSWER_KEYS for name in columns):
        return {}
    rows = read_rows(path)
    flat = [name for name in columns if not rows.table[name].dtype.is_nested()]
    named = item_column(rows, item, flat)
    items, meaning = rows.table[named].to_list(), _meaning(path, classes, answers)
    sides = () if shown is None else side_columns(columns, None)
    shown = shown_in(path, shown, item)
    models = {}
    for name in flat:
        form, records = _column_records(rows.table[name], items)
        if name == named or name in sides:
            continue
        records, about = _of_sides(records, shown, answers)
        read = _tallied(path, records, form=form, classes=tuple(classes), meaning=meaning, about=about)
        if read.probabilities[..., : len(classes)].sum() >= len(read.items) / 2:
            models[name] = read
    return models


# Tallies --------------------------------------------------------------------------------------------------------------


def plain_answer(answer: str) -> str:
    """An answer without case, white space and the marks of tokens and punctuation around it; 2.0 is 2."""
    bare = answer.replace("\u2581", " ").replace("\u0120", " ").strip(string.whitespace + string.punctuation)
    return re.sub(r"^(\d+)\.0+$", r"\1", bare).casefold()


def _meaning(path: Path, classes: Sequence[str], answers: Mapping[str, str] | None) -> dict[str, int]:
    """By plain answer, the class that it means."""
    for answer, name in (answers or {}).items():
        if name not in classes:
            raise InputError(
                f"{path}: the answer '{answer}' is said to mean '{name}', and people voted for {', '.join(classes)}; "
                "name one of these"
            )
    # The table says what other answers mean, and has the last word where it names a class.
    return _places(classes, dict(zip(classes, classes, strict=True))) | _places(classes, answers or {})


def _places(classes: Sequence[str], meant_by: Mapping[str, str]) -> dict[str, int]:
    places: dict[str, int] = {}
    for answer, name in meant_by.items():
        place = list(classes).index(name)
        # Classes such as '+' and '-' are nothing but punctuation, and 'a' and 'A' may be two: such are distinguished as
        # they are written.
        key = plain_answer(answer)
        if key and places.setdefault(key, place) != place:
            places[key] = -1
        places[_exactly(answer)] = place
    return places


def _exactly(answer: str) -> str:
    """The key of an answer as it is written; no plain answer begins with white space."""
    return f" {answer.strip()}"


def _class_of(answer: str, meaning: Mapping[str, int]) -> int:
    """The class that an answer means, below 0 where it means none."""
    return meaning.get(_exactly(answer), meaning.get(plain_answer(answer), -1))


def _refuse_mostly_unread(
    path: Path, records: Sequence[Answers | None], classes: Sequence[str], meaning: Mapping[str, int]
) -> None:
    """Refuse answers of which most name no class: a verdict on them would be one on how they were read."""
    unread = [answers for answers in records if all(_class_of(answer, meaning) < 0 for answer in answers or {})]
    if 2 * len(unread) <= len(records):
        return
    texts = (
        repr(next(iter(answers)) if len(answers) == 1 else answers) if answers else "nothing that can be read"
        for answers in unread
    )
    examples = dict.fromkeys(text if len(text) <= 80 else f"{text[:79]}…" for text in texts)
    raise InputError(
        f"{path}: {len(unread):,} of {len(records):,} answers name none of the classes {', '.join(classes)}; first "
        f"{'; '.join(islice(examples, 3))}; say what they mean with answers=, a table of answer and class, or give a "
        "probability for each class"
    )


def _tallied(
    path: Path,
    records: Sequence[Record],
    *,
    form: str,
    classes: tuple[str, ...],
    meaning: Mapping[str, int],
    about: Sequence[str],
) -> Predictions:
    """The mean over an item's records of what each says."""
    notes = [f"read as {form}", *about]
    nameless = [place for place, (name, _) in enumerate(records) if name is None]
    if nameless and len(nameless) < len(records):
        raise InputError(
            f"{path}: record {nameless[0] + 1} has no item, and others have one; give each record a key 'item'"
        )
    if nameless:
        notes.append("records have no item names; they are taken as items 0, 1, 2, ... in the order of the file")
    places: dict[str | int, int] = {}
    item = [places.setdefault(n if name is None else name, len(places)) for n, (name, _) in enumerate(records)]
    names, times = list(places), np.bincount(item)
    table, in_words = np.zeros((len(names), len(classes) + 1)), form not in NUMBERS
    unread, too_much = [], []
    for record, (_, answers) in enumerate(records):
        total = sum((answers or {}).values())
        if in_words and total > 1 + 1e-3:
            too_much.append(record)
        read = [(_class_of(answer, meaning), mass) for answer, mass in (answers or {}).items()]
        for place, mass in read:
            if place >= 0:
                table[item[record], place] += mass / max(1.0, total) if in_words else mass
        if all(place < 0 for place, _ in read):
            unread.append(record)
    table /= times[:, None]
    if (table < 0).any():
        raise InputError(
            f"{path}: item {names[int(table.min(axis=1).argmin())]} has the score {table.min():.3g}, which is no "
            "probability; give scores after softmax"
        )
    inside = table.sum(axis=1)
    if (inside > 1 + 1e-3).any():
        raise InputError(
            f"{path}: the answers about item {names[int(inside.argmax())]} have probability {inside.max():.3g} in all; "
            "give at most 1"
        )
    outside = np.maximum(0.0, 1.0 - inside)
    table[:, -1] = np.where(outside < 1e-6, 0.0, outside)
    table /= table.sum(axis=1, keepdims=True)
    if (times > 1).any():
        notes.append(f"{len(records):,} answers about {len(names):,} items, {times.min()} to {times.max()} per item")
    if unread:
        name, answers = records[unread[0]]
        example = f"{next(iter(answers))[:40]!r}" if answers else "one that cannot be read"
        notes.append(
            f"{len(unread):,} of {len(records):,} answers ({len(unread) / len(records):.1%}) name no class, first "
            f"{example} about item {unread[0] if name is None else name}; they count as '{NO_CLASS}', which nobody "
            "voted for: say what they mean with a table of answers"
        )
    if too_much:
        notes.append(
            f"{len(too_much):,} of {len(records):,} distributions in words sum to more than 1, first that about item "
            f"{names[item[too_much[0]]]}; each is divided by its sum"
        )
    outside = table[:, -1]
    if outside.any() and not np.isclose(outside.mean(), len(unread) / len(records)):
        notes.append(
            f"{outside.mean():.1%} of the probability is outside the classes (most at item "
            f"{names[int(outside.argmax())]}: {outside.max():.1%}); it counts as '{NO_CLASS}'"
        )
    columns = (*classes, NO_CLASS) if outside.any() else classes
    whole = all(isinstance(name, int) for name in names)
    return Predictions(
        probabilities=table[None, :, : len(columns)],
        items=np.array(names) if whole else np.array(list(map(str, names)), dtype=np.dtypes.StringDType()),
        classes=columns,
        seeds=(0,),
        notes=tuple(f"{path}: {note}" for note in notes),
    )
