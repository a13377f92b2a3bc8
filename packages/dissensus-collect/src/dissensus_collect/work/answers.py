"""An annotator's answers, checked for completeness and legality, and every layout read as yes, no and unsure."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import msgspec

from dissensus.responses import NO, RESPONSES, UNSURE, YES
from dissensus_collect.project.tables import LONGEST_ANSWER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dissensus_collect.project.reading import Project
    from dissensus_collect.project.tables import ItemQuestion

POINTS: Final = 100
"""How many points the layout `points` shares out among the classes."""
Input = Literal["key", "mouse", "touch", "mixed"]
_Measure = Annotated[float, msgspec.Meta(ge=0, le=30 * 86_400_000)]
"""Milliseconds, counts and widths; a time of more than 30 days means a broken clock."""
_ByClass: TypeAlias = dict[str, _Measure | None]


class Refused(Exception):  # noqa: N818
    """Something an annotator may not do: "incomplete" or "illegal" answers, a "foreign" or "closed" assignment."""

    def __init__(self, kind: str, sentence: str) -> None:
        super().__init__(sentence)
        self.kind = kind


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A complete and legal answer to one item.

    Attributes:
        values: by class, the code of yes, no or unsure; the number given in the layouts `rating` and `points`.
        first_seconds: by class, from the first frame to the first answer.
        last_seconds: by class, from the first frame to the last answer.
        changes: by class, how often the answer was changed.
        seconds: from the first frame to the submission of the item.
        hidden_seconds: how long the page was hidden in that time.
        window: width and height in CSS pixels, and device pixels per CSS pixel.
        frame_ms: milliseconds between two frames.
        reason: why it was answered like this, in the annotator's words.
    """

    values: Mapping[int, int | float]
    first_seconds: Mapping[int, float] = field(default_factory=dict)
    last_seconds: Mapping[int, float] = field(default_factory=dict)
    changes: Mapping[int, int] = field(default_factory=dict)
    seconds: float | None = None
    hidden_seconds: float | None = None
    input: Input | None = None
    window: tuple[float, float, float] | None = None
    frame_ms: float | None = None
    reason: str | None = None


class _Sent(msgspec.Struct):
    """What a browser sends of an answer, with its times in milliseconds."""

    values: dict[str, Any]
    first: _ByClass | None = None
    last: _ByClass | None = None
    changes: _ByClass | None = None
    total_ms: _Measure | None = None
    hidden_ms: _Measure | None = None
    input: Input | None = None
    window: tuple[_Measure, _Measure, _Measure] | None = None
    frame_ms: _Measure | None = None
    reason: str | None = None


def check_answers(project: Project, raw: Any) -> Answer:
    """The answer that a browser sent, as parsed JSON, or `Refused`.

    Classes are numbered through where there are several questions. The layouts `rows` and `one-at-a-time` need "yes",
    "no" or "unsure" for every class; in `select-all` and `single-choice` a class that is not named is "no"; `rating`
    needs a step of the scale for every class; `points` needs whole numbers that sum to 100.
    """
    try:
        sent = msgspec.convert(raw, _Sent)
    except msgspec.ValidationError as error:
        raise Refused("illegal", f"answers: {error}") from error
    values = check_values(project, sent.values)
    for question, places in questions_of(project):
        _check_complete(question, values, places)
    return Answer(
        values=values,
        first_seconds=_seconds_by_class(project, sent.first),
        last_seconds=_seconds_by_class(project, sent.last),
        changes={place: int(count) for place, count in _by_class(project, sent.changes).items()},
        seconds=None if sent.total_ms is None else sent.total_ms / 1000,
        hidden_seconds=None if sent.hidden_ms is None else sent.hidden_ms / 1000,
        input=sent.input,
        window=sent.window,
        frame_ms=sent.frame_ms,
        reason=_reason(project, sent.reason),
    )


def questions_of(project: Project) -> Iterator[tuple[ItemQuestion, range]]:
    """The questions about an item, each with the numbers of its classes."""
    first = 0
    for question in project.asked:
        yield question, range(first, first + len(question.classes))
        first += len(question.classes)


def check_values(project: Project, raw: Mapping[Any, Any]) -> dict[int, int | float]:
    """Values by class, each legal by itself; not necessarily complete (a draft)."""
    names = project.all_classes
    legal = [values for question, places in questions_of(project) for values in [_legal(question)] * len(places)]
    values: dict[int, int | float] = {}
    for key, value in raw.items():
        place = _class(project, key)
        # A JSON true is an int in Python, and a list cannot be looked up.
        if isinstance(value, bool) or not isinstance(value, str | int | float) or value not in legal[place]:
            allowed = ", ".join(map(str, list(legal[place])[:6]))
            raise Refused("illegal", f"'{str(value)[:40]}' is not an answer to {names[place]}; answer {allowed}")
        values[place] = legal[place][value]
    return values


def responses_of(project: Project, values: Mapping[int, int | float]) -> tuple[int, ...]:
    """(classes,) codes of no, yes and unsure, question after question.

    A rating above the middle of its scale is yes, the middle is unsure, less is no. The class with the most points is
    yes, others with any points are unsure, and zero points are no.
    """
    out: list[int] = []
    for question, places in questions_of(project):
        numbers = [values[place] for place in places]
        if question.layout == "rating":
            twice = question.scale.least + question.scale.most
            out += (YES if 2 * value > twice else UNSURE if 2 * value == twice else NO for value in numbers)
        elif question.layout == "points":
            out += (YES if value == max(numbers) else UNSURE if value > 0 else NO for value in numbers)
        else:
            out += (int(value) for value in numbers)
    return tuple(out)


def amounts_of(project: Project, values: Mapping[int, int | float]) -> tuple[float | None, ...]:
    """(classes,) the ratings or points themselves; None in the other layouts."""
    return tuple(
        float(values[place]) if question.layout in ("rating", "points") else None
        for question, places in questions_of(project)
        for place in places
    )


@functools.lru_cache(maxsize=64)
def _legal(question: ItemQuestion) -> dict[str | int | float, int | float]:
    """What may be sent for a class, and what it is stored as."""
    if question.layout == "rating":
        return {rating: rating for rating in question.scale.values}
    if question.layout == "points":
        return {points: points for points in range(POINTS + 1)}
    unsure = question.unsure and question.layout in ("rows", "one-at-a-time")
    return {RESPONSES[code]: code for code in ((YES, NO, UNSURE) if unsure else (YES, NO))}


def _check_complete(question: ItemQuestion, values: dict[int, int | float], places: range) -> None:
    """Fills in what an unanswered class means in a layout, and refuses answers that are not complete."""
    if question.layout in ("select-all", "single-choice"):
        values.update({place: NO for place in places if place not in values})
    if missing := tuple(place for place in places if place not in values):
        named = ", ".join(question.classes[place - places.start] for place in missing[:10])
        left = "1 class" if len(missing) == 1 else f"{len(missing)} classes"
        raise Refused("incomplete", f"{left} left: {named}")
    chosen = sum(values[place] == YES for place in places)
    if question.layout == "single-choice" and chosen != 1:
        raise Refused("incomplete" if not chosen else "illegal", f"choose one class; {chosen} are chosen")
    if question.layout == "points" and (total := sum(values[place] for place in places)) != POINTS:
        raise Refused("incomplete", f"the points sum to {total:g}; share out all {POINTS}")


def _reason(project: Project, text: str | None) -> str | None:
    if project.reason.ask == "off" or text is None:
        text = ""
    if len(text) > LONGEST_ANSWER:
        raise Refused("illegal", f"the reason must be text of at most {LONGEST_ANSWER} characters")
    # Databases take no NUL.
    reason = text.replace("\0", "").strip()
    if project.reason.ask == "required" and not reason:
        raise Refused("incomplete", "please say why in a few words")
    return reason or None


@functools.cache
def _places(classes: int) -> dict[str, int]:
    """By the names that browsers give them, the places of so many classes."""
    return {str(place): place for place in range(classes)}


def _class(project: Project, key: Any) -> int:
    # Looked up, not read as a number: "007" is no class, nor are digits of other scripts, and it is done forty times an
    # answer.
    place = _places(len(project.all_classes)).get(key)
    if place is None:
        raise Refused("illegal", f"'{str(key)[:40]}' is not a class of this project")
    return place


def _by_class(project: Project, sent: _ByClass | None) -> dict[int, float]:
    return {_class(project, key): value for key, value in (sent or {}).items() if value is not None}


def _seconds_by_class(project: Project, sent: _ByClass | None) -> dict[int, float]:
    return {place: value / 1000 for place, value in _by_class(project, sent).items()}
