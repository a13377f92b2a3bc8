"""LeWiDi 2025: both tasks of the third shared task on learning with disagreements, scored as its organisers score them.

A submission is a file for each dataset and task, `<Dataset>_test_soft.tsv` and `<Dataset>_test_pe.tsv`, with a line for
each item: its id, a tab, and a list. The soft task asks for the distribution of answers, the perspectivist task for the
answer of each annotator of the item, in the order of the dataset's file. VariErrNLI, where an annotator may give
several labels, has a list for each label: shares of 0 and 1, or a 0 or 1 for each annotator.

| dataset | soft | perspectivist |
|---|---|---|
| MP, VariErrNLI | Manhattan distance (VariErrNLI: its mean over labels) | error rate |
| CSC, Paraphrase | Wasserstein distance, in steps of the scale | absolute distance / 6 (CSC) or / 11 (Paraphrase) |

Distances and error rates of items are rounded to five decimals, as the organisers' notebook does, and so are the means
of the soft task. The divisors are those of their notebook: the numbers of answers, not the lengths of the scales (5 and
10), which a docstring of an earlier version names.
"""

from __future__ import annotations

import json
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from dissensus.arrays import cross_counts
from dissensus.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.arrays import Floats

    Cube: TypeAlias = np.ndarray[tuple[int, int, int], np.dtype[np.float64]]
    """(items, labels, values) distributions; one label save in VariErrNLI."""

Task: TypeAlias = Literal["soft", "pe"]

LABELS: Final = {
    "CSC": tuple(map(str, range(1, 7))),
    "MP": ("0", "1"),
    "Paraphrase": tuple(map(str, range(-5, 6))),
    "VariErrNLI": ("contradiction", "entailment", "neutral"),
}
"""What annotators of each dataset could answer, in the order of a submission's numbers."""

DIVISORS: Final = {"CSC": 6.0, "MP": 1.0, "Paraphrase": 11.0, "VariErrNLI": 1.0}
"""What absolute distances between answers are divided by; answers of 0 and 1 differ by an error."""

SEVERAL: Final = "VariErrNLI"
"""The dataset in which an annotator may give several labels."""

SCALES: Final = ("CSC", "Paraphrase")
"""The datasets whose answers are a scale."""

DECIMALS: Final = 5

SLACK: Final = 0.05
"""How far from 1 a submitted distribution may sum: numbers may be rounded to two digits."""

_NAME: Final = re.compile(r"(CSC|MP|Par(?:aphrase)?|VariErrNLI)_([a-z]+)_(soft|pe)\.tsv", re.IGNORECASE)
_SPELLED: Final = {"par": "Paraphrase", **{name.lower(): name for name in LABELS}}


@dataclass(frozen=True)
class LewidiScore:
    """The score of one file of a submission.

    Attributes:
        dataset: CSC, MP, Paraphrase or VariErrNLI.
        split: dev or test.
        task: "soft" or "pe" (perspectivist).
        measure: what the score is; lower is better.
        items: how many were scored.
        score: the organisers' number.
        baseline: the same of the baseline; None where no other labelled file lies beside the reference.
        baseline_is: what the baseline predicts, and from which file.
    """

    dataset: str
    split: str
    task: Task
    measure: str
    items: int
    score: float
    baseline: float | None
    baseline_is: str


@dataclass(frozen=True, eq=False)
class Reference:
    """What the annotators of a dataset's file said, in its order of items.

    `soft` are the (items, labels, values) soft labels, as rounded as they are there; by item, `answers` are (labels,
    annotators) what each annotator said, as numbers, and `annotators` their names in order.
    """

    dataset: str
    path: Path
    items: tuple[str, ...]
    soft: Cube
    answers: tuple[Any, ...]
    annotators: tuple[tuple[str, ...], ...]


def score_submission(submission: str | Path, reference: str | Path) -> tuple[LewidiScore, ...]:
    """The scores of all files of a submission.

    Args:
        submission: a `.tsv` file, or a folder or zip file that holds them.
        reference: the folder of the datasets' official files, or one of these where there is one dataset.
    """
    return tuple(_score_file(name, text, Path(reference)) for name, text in _submitted(Path(submission)))


def read_reference(path: str | Path) -> Reference:
    """A dataset's official file with annotations, such as `CSC_test.json`."""
    from dissensus.votes.official.opening import read_json

    path = Path(path)
    dataset = _SPELLED.get(path.stem.partition("_")[0].lower())
    if dataset is None:
        raise InputError(f"{path}: its name begins with none of {', '.join(LABELS)}; give the official file unchanged")
    entries = read_json(path)
    try:
        soft = [_soft(dataset, entry["soft_label"]) for entry in entries.values()]
        answers = tuple(_answers(dataset, entry["annotations"].values()) for entry in entries.values())
        annotators = tuple(tuple(entry["annotations"]) for entry in entries.values())
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InputError(
            f"{path}: not every item has annotations and a soft label of {dataset}, as in test files before their "
            "release; give the official file with labels"
        ) from None
    return Reference(dataset, path, tuple(entries), np.array(soft, dtype=np.float64), answers, annotators)


def soft_scores(reference: Reference, submitted: Cube) -> Floats:
    """(items,) the distances of the soft task, of (items, labels, values) predicted distributions.

    A seventh value of CSC comes first: the organisers count a rating of 0, which nobody could give.
    """
    human = reference.soft
    if reference.dataset in SCALES:
        human = np.pad(human, ((0, 0), (0, 0), (submitted.shape[2] - human.shape[2], 0)))
        # Their transport moves as much as people's shares sum to, which after rounding is not quite 1.
        model = submitted * (human.sum(axis=2, keepdims=True) / submitted.sum(axis=2, keepdims=True))
        return np.asarray(np.abs(np.cumsum(human - model, axis=2)).sum(axis=2)[:, 0])
    distance = np.round(np.abs(human - submitted).sum(axis=2), DECIMALS)
    return np.asarray(np.round(distance.mean(axis=1), DECIMALS) if reference.dataset == SEVERAL else distance[:, 0])


def perspectivist_scores(reference: Reference, submitted: Sequence[Any]) -> Floats:
    """(items,) how far the (labels, annotators) answers submitted by item are off, in the mean over both."""
    people = np.array([answers.shape[1] for answers in reference.answers])
    off = np.abs(np.concatenate(reference.answers, axis=1) - np.concatenate(submitted, axis=1))
    mean = np.add.reduceat(off, np.cumsum(people) - people, axis=1) / people
    if reference.dataset not in SCALES:
        mean = np.round(mean, DECIMALS)
    return np.asarray(mean.mean(axis=0) / DIVISORS[reference.dataset])


def most_frequent_answers(training: Reference, reference: Reference) -> list[Any]:
    """By item, (labels, annotators) each annotator's most frequent number in a training file.

    The numbers of all labels count together, as in the organisers' baseline: for VariErrNLI everybody's is 0. Of
    equally frequent numbers the one that is more frequent among all annotators is taken. Annotators who are not in the
    training file get the most frequent number of all.
    """
    values, code = np.unique(np.concatenate([answers.ravel() for answers in training.answers]), return_inverse=True)
    labels = training.soft.shape[1] if training.dataset == SEVERAL else 1
    names, who = np.unique([name for people in training.annotators for name in people * labels], return_inverse=True)
    counts = cross_counts(who, code, (names.size, values.size))
    often = counts.sum(axis=0)
    ranked = counts + often / (often.sum() + 1)
    usual = dict(zip(names.tolist(), values[ranked.argmax(axis=1)].tolist(), strict=True))
    other = float(values[often.argmax()])
    return [
        np.repeat([[usual.get(name, other) for name in people]], len(answers), axis=0)
        for people, answers in zip(reference.annotators, reference.answers, strict=True)
    ]


def _score_file(name: str, text: str, place: Path) -> LewidiScore:
    match = _NAME.fullmatch(Path(name).name)
    assert match is not None, "only such files are taken from a submission"
    dataset, split = _SPELLED[match[1].lower()], match[2].lower()
    task: Task = "soft" if match[3].lower() == "soft" else "pe"
    path = place / f"{dataset}_{split}.json" if place.is_dir() else place
    reference = read_reference(path)
    if reference.dataset != dataset:
        raise InputError(f"{path}: this is {reference.dataset}, and {name} is of {dataset}; give the file of that one")
    lines = _lines(name, text, reference)
    training = _training(reference)
    predictions: list[Any] = []
    if task == "soft":
        measure = "Wasserstein distance" if dataset in SCALES else "Manhattan distance"
        rule = "mean soft label"
        predictions.append(_distributions(name, lines, reference))
        if training is not None:
            predictions.append(np.repeat(training.soft.mean(axis=0, keepdims=True), len(lines), axis=0))
        scores = [round(float(soft_scores(reference, prediction).mean()), DECIMALS) for prediction in predictions]
    else:
        measure = "normalised absolute distance" if dataset in SCALES else "error rate"
        rule = "each annotator's most frequent answer"
        predictions.append(_predicted_answers(name, lines, reference))
        if training is not None:
            predictions.append(most_frequent_answers(training, reference))
        scores = [float(perspectivist_scores(reference, prediction).mean()) for prediction in predictions]
    return LewidiScore(
        dataset=dataset,
        split=split,
        task=task,
        measure=measure,
        items=len(reference.items),
        score=scores[0],
        baseline=None if training is None else scores[1],
        baseline_is="" if training is None else f"{rule} in {training.path.name}",
    )


def _training(reference: Reference) -> Reference | None:
    """The file of other items beside the reference: train, or dev where there is none."""
    beside = (reference.path.with_name(f"{reference.dataset}_{split}.json") for split in ("train", "dev"))
    path = next((file for file in beside if file.is_file() and file != reference.path), None)
    return None if path is None else read_reference(path)


def _soft(dataset: str, soft: Mapping[str, Any]) -> list[list[float]]:
    """The shares of a soft label: for each label a no and a yes, or one list in the order of the labels."""
    if dataset == SEVERAL:
        return [[float(soft[name]["0"]), float(soft[name]["1"])] for name in LABELS[dataset]]
    shares = {str(int(float(name))): float(share) for name, share in soft.items()}
    return [[shares.get(name, 0.0) for name in LABELS[dataset]]]


def _answers(dataset: str, annotations: Any) -> Any:
    """(labels, annotators) what each annotator said, as numbers."""
    if dataset == SEVERAL:
        chosen = [{label.strip() for label in answer.split(",")} for answer in annotations]
        return np.array([[float(name in labels) for labels in chosen] for name in LABELS[dataset]])
    return np.array([[float(answer) for answer in annotations]])


def _submitted(path: Path) -> list[tuple[str, str]]:
    """The names and texts of a submission's files."""
    if not path.exists():
        raise InputError(f"{path}: there is no such file or folder; give a submission")
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                names = [name for name in sorted(archive.namelist()) if _NAME.fullmatch(Path(name).name)]
                files = [(name, archive.read(name).decode("utf-8")) for name in names]
        else:
            paths = [
                file for file in (sorted(path.iterdir()) if path.is_dir() else [path]) if _NAME.fullmatch(file.name)
            ]
            files = [(file.name, file.read_text(encoding="utf-8")) for file in paths]
    except (OSError, UnicodeDecodeError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: cannot be read ({error}); give a folder, zip or tsv file of a submission") from None
    if not files:
        raise InputError(f"{path}: there is no file called like CSC_test_soft.tsv or CSC_test_pe.tsv; name them so")
    return files


def _lines(name: str, text: str, reference: Reference) -> list[tuple[str, Any]]:
    """The submitted value of each item, in the order of the reference, with the place of each for a sentence."""
    lines: dict[str, tuple[str, Any]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        item, _, value = line.partition("\t")
        where = f"{name}, line {number}"
        if item.strip() in lines:
            raise InputError(f"{where}: item {item.strip()} has a line already; give one line per item")
        try:
            lines[item.strip()] = where, json.loads(value)
        except json.JSONDecodeError:
            raise InputError(
                f"{where}: {value[:40]!r} is no list of numbers; give the item, a tab, and a list such as [0.2, 0.8]"
            ) from None
    missing = [item for item in reference.items if item not in lines]
    unknown = [item for item in lines if item not in set(reference.items)]
    if missing or unknown:
        wrong = f"item {missing[0]} has no line" if missing else f"item {unknown[0]} is not in {reference.path.name}"
        raise InputError(
            f"{name}: {wrong}, and {len(missing) + len(unknown):,} items in all are on one side only; give one line "
            "for each item of the file"
        )
    return [lines[item] for item in reference.items]


def _distributions(name: str, lines: Sequence[tuple[str, Any]], reference: Reference) -> Cube:
    labels, values = reference.soft.shape[1:]
    lengths = (values, values + 1) if reference.dataset == "CSC" else (values,)
    rows = [_numbers(value, where, labels=labels) for where, value in lines]
    wanted = rows[0].shape[1] if rows[0].shape[1] in lengths else values
    for (where, _), row in zip(lines, rows, strict=True):
        if row.shape != (labels, wanted):
            raise InputError(
                f"{where}: {_shape(row)} for {_shape(np.empty((labels, values)))}; give a share for each of "
                f"{', '.join(LABELS[reference.dataset])}" + (" (a no and a yes)" if labels > 1 else "")
            )
    table = np.stack(rows)
    wrong = np.flatnonzero(((table < 0) | (np.abs(table.sum(axis=2, keepdims=True) - 1) > SLACK)).any(axis=(1, 2)))
    if wrong.size:
        raise InputError(
            f"{lines[wrong[0]][0]}: the shares {lines[wrong[0]][1]} are no distribution, and so it is with "
            f"{wrong.size:,} lines of {name}; give shares of 0 or more that sum to 1"
        )
    return table


def _predicted_answers(name: str, lines: Sequence[tuple[str, Any]], reference: Reference) -> list[Any]:
    rows = []
    for (where, value), answers, people in zip(lines, reference.answers, reference.annotators, strict=True):
        row = _numbers(value, where, labels=len(answers))
        if row.shape != answers.shape:
            wanted = f"{_shape(answers)} in {name}; give an answer for each of {', '.join(people)}"
            raise InputError(f"{where}: {_shape(row)} for {wanted}")
        known = ("0", "1") if reference.dataset == SEVERAL else LABELS[reference.dataset]
        if not np.isin(row, np.array(known, dtype=np.float64)).all():
            raise InputError(f"{where}: an answer in {value} is none that could be given; give {', '.join(known)}")
        rows.append(row)
    return rows


def _numbers(value: Any, where: str, *, labels: int) -> Any:
    try:
        row = np.array(value if labels > 1 else [value], dtype=np.float64)
    except (TypeError, ValueError):
        row = np.empty(0)
    if row.ndim != 2 or not np.isfinite(row).all():
        raise InputError(
            f"{where}: {str(value)[:60]} is not {'a list of numbers for each label' if labels > 1 else 'a list'}; "
            "give numbers"
        )
    return row


def _shape(row: Any) -> str:
    return f"{row.shape[1]} numbers" if len(row) == 1 else f"{row.shape[0]} lists of {row.shape[1]} numbers"
