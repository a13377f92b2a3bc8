"""What models answered, one class per item, as a person would."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.arrays import places_of
from dissensus.errors import InputError
from dissensus.evaluation.arguments import is_by_item, named_systems
from dissensus.evaluation.finite_panel.known_votes import knows_the_votes
from dissensus.evaluation.finite_panel.panel import panel_of
from dissensus.evaluation.model_outputs import read_column_predictions
from dissensus.evaluation.predictions import MODEL, read_predictions
from dissensus.item_names import places_of_items
from dissensus.labels.schemes import frequency
from dissensus.table_file import open_file
from dissensus.votes.reading import votes_in
from dissensus.votes.shown_pairs import shown_pairs
from dissensus.votes.table import KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dissensus.arrays import Codes, Floats
    from dissensus.evaluation.probabilities import Given, Predictions
    from dissensus.votes.table import Votes

OFFICIAL: Final = ".llm_annotations.json"
"""How the files of the alternative annotator test end that hold, for each model, its answer about each item."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Answers:
    """One model's answer about each item that people judged.

    Attributes:
        label: (items,) the answer as an index into `classes`, in the order of the votes' items; -1 where there is none.
        classes: those of the votes, then answers that nobody gave.
        notes: sentences on what was decided while reading.
        knowing: why the distributions that they are the likeliest classes of seem to know the votes; empty otherwise.
    """

    label: Codes
    classes: tuple[str, ...]
    notes: tuple[str, ...] = ()
    knowing: str = ""

    def places(self, votes: Votes) -> Floats:
        """(classes,) each answer's place on the votes' scale; NaN for an answer that is none."""
        by_name = names_are_places(votes)
        further = [_number(name) if by_name else np.nan for name in self.classes[len(votes.classes) :]]
        return np.concatenate([votes.scale, further])


def names_are_places(votes: Votes) -> bool:
    """Whether the classes are called by their places on the scale: numbers, such as ratings."""
    return [_number(name) for name in votes.classes] == votes.scale.tolist()


def _number(name: str) -> float:
    try:
        return float(name)
    except ValueError:
        return float("nan")


def named_answers(votes: Votes, said: Mapping[Any, Any], *, answers: Mapping[str, str] | None = None) -> Answers:
    """Answers by item, as words or numbers; an answer that nobody gave is a class of its own.

    `answers` has the classes that some words mean. Of preferences, words for a side are read as those of people are.
    """
    # The rating 2 is the class "2", and so is 2.0.
    words = [str(int(a) if isinstance(a, float) and a.is_integer() else a) for a in said.values()]
    notes: tuple[str, ...] = ()
    shown, table = shown_pairs(votes), answers or {}
    if shown is None:
        words = [table.get(word, word) for word in words]
    else:
        read = [shown.meant(item, word, table.get(word)) for item, word in zip(said, words, strict=True)]
        odd = [k for k, word in enumerate(read) if word not in votes.classes]
        unread = f"{len(odd):,} of {len(read):,} answers name neither a side nor a tie, and agree with nobody"
        notes = (
            *shown.notes(words),
            *([f"{unread}; first '{words[odd[0]]}' about '{list(said)[odd[0]]}'"] if odd else []),
        )
        words = read
    classes = tuple(dict.fromkeys((*votes.classes, *words)))
    code = {name: place for place, name in enumerate(classes)}
    names = np.array(list(map(str, said)), dtype=np.dtypes.StringDType())
    # One more answer, none, stands at the end, where the place of an item without an answer points.
    label = np.array([*(code[answer] for answer in words), -1], dtype=np.int32)
    return Answers(label=label[places_of_items(votes.items, names)], classes=classes, notes=notes)


def likeliest_answers(votes: Votes, predictions: Predictions) -> Answers:
    """A model's likeliest class of each item, in the mean over its seeds; the first of several that are as likely."""
    place = places_of_items(votes.items, predictions.items)
    mean = predictions.probabilities.mean(axis=0)
    label = np.append(mean.argmax(axis=1), -1).astype(np.int32)
    unsure = float((mean.max(axis=1) < 1 - 1e-9).mean())
    notes = [f"{unsure:.0%} of answers are the likeliest class of a distribution"] if unsure else []
    if tied := int(((mean > mean.max(axis=1, keepdims=True) - 1e-9).sum(axis=1) > 1).sum()):
        notes.append(f"answers that are the first of several equally likely classes: {tied:,}")
    if beside := len(predictions.items) - int((place >= 0).sum()):
        notes.append(f"answers about items without votes, which are left out: {beside:,}")
    judged = np.flatnonzero((place >= 0) & (votes.panel_size > 0))
    said = predictions.probabilities[:, place[judged], : len(votes.classes)]
    some, used = votes.take_items(judged), predictions.trained_on
    here = replace(predictions, items=some.items, trained_on=None if used is None else used[place[judged]])
    return Answers(
        label=label[place],
        classes=predictions.classes,
        notes=(*predictions.notes, *notes),
        knowing=here.seen("it") or (knows_the_votes(panel_of(frequency(some), some), said) if judged.size else ""),
    )


def voted_answers(votes: Votes) -> dict[str, Answers]:
    """What the models among the voters answered, by name, beside the votes of people (`votes.people`).

    Votes without annotators are those of one model. Refuses judgements of several classes, and two answers of one
    model about one item.
    """
    models = votes.models
    if models is None:
        raise InputError(
            "stand-in: no vote is marked as a model's; give its answers with predictions=, or mark its votes in a "
            "column 'kind', or name it with models="
        )
    if models.judgement is not None or models.unsure is not None or models.none is not None:
        raise InputError("stand-in: a model answers one class per item, and these votes hold several, or unsure")
    names = [KINDS[1]] if models.annotators is None else [str(name) for name in models.annotators.names.tolist()]
    who = np.zeros(len(models), dtype=np.int32) if models.annotators is None else models.annotators.code
    given = np.unique(who.astype(np.int64) * len(models.items) + models.item, return_index=True)[1]
    if given.size < len(models):
        again = int(np.setdiff1d(np.arange(len(models)), given)[0])
        raise InputError(
            f"stand-in: model '{names[who[again]]}' answers item '{models.items[models.item[again]]}' twice; keep one "
            "answer, or name several models in a column of annotators"
        )
    people = votes.people
    classes = (*people.classes, *(name for name in models.classes if name not in people.classes))
    label = np.array([classes.index(name) for name in models.classes], dtype=np.int32)[models.label]
    place = places_of(models.items, people.items)[models.item]
    answers = np.full((len(names), len(people.items)), -1, dtype=np.int32)
    answers[who[place >= 0], place[place >= 0]] = label[place >= 0]
    return {name: Answers(label=answers[k], classes=classes) for k, name in enumerate(names)}


def read_model_answers(
    path: str | Path,
    votes: Votes,
    *,
    name: str,
    order: Sequence[str] | None = None,
    item: str | None = None,
    given: Given | None = None,
    answers: Mapping[str, str] | None = None,
) -> dict[str, Answers]:
    """The models of a file by name: several in an official `*.llm_annotations.json` or a table of them, else one.

    An official file has {model: {item: answer}}, a table a column of answers for each model; any other file is one that
    `read_predictions` reads, whose model is called `name`.
    """
    file, shown = open_file(path), shown_pairs(votes)
    if not file.name.endswith(OFFICIAL):
        if by_column := read_column_predictions(file, votes.classes, answers=answers, item=item, shown=shown):
            return {model: likeliest_answers(votes, read) for model, read in by_column.items()}
        read = read_predictions(file, votes.classes, order=order, item=item, given=given, answers=answers, shown=shown)
        return {name: likeliest_answers(votes, read)}
    try:
        held: Any = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{file}: it is no JSON ({error}); give a whole file") from error
    if not isinstance(held, dict) or not all(isinstance(said, dict) and said for said in held.values()):
        raise InputError(f"{file}: expected, for each model, an object of items and answers")
    return {str(model): named_answers(votes, said, answers=answers) for model, said in held.items()}


def answers_in(votes: Votes | Any, models: Any) -> tuple[Votes, dict[str, Answers]]:
    """People's votes, and by name what models answered, however they are handed in (see `stand_in`)."""
    votes = votes_in(votes)
    if models is None:
        return votes.people, voted_answers(votes)
    people = votes.people
    named = models if isinstance(models, Mapping) and not is_by_item(models, people) else {MODEL: models}
    return people, {str(name): _answers(str(name), answers, people) for name, answers in named.items()}


def _answers(name: str, given: Any, votes: Votes) -> Answers:
    if isinstance(given, Answers):
        return given
    if isinstance(given, Mapping) and isinstance(next(iter(given.values()), ""), str | int | float):
        return named_answers(votes, given)
    judged = frequency(votes.take_items(np.flatnonzero(votes.panel_size)))
    return likeliest_answers(votes, named_systems({name: given}, judged)[name])
