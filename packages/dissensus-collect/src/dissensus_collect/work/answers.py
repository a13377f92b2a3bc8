"""An annotator's answers, checked for completeness and legality, and every layout read as yes, no and unsure."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from dissensus.responses import NO, RESPONSES, UNSURE, YES
from dissensus_collect.project.tables import LONGEST_ANSWER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dissensus_collect.project.reading import Project
    from dissensus_collect.project.tables import ItemQuestion

POINTS: Final = 100
"""How many points the layout `points` shares out among the classes."""
INPUTS: Final = ("key", "mouse", "touch", "mixed")
LONGEST: Final = 30 * 86400.0
"""Seconds; a longer time means a broken clock."""


class Refused(Exception):  # noqa: N818
    """Something an annotator may not do, in one sentence.

    Attributes:
        kind: "incomplete" or "illegal" for answers, "foreign" or "closed" for an assignment.
        classes: the unanswered ones, where answers are incomplete.
    """

    def __init__(self, kind: str, sentence: str, *, classes: tuple[int, ...] = ()) -> None:
        super().__init__(sentence)
        self.kind, self.classes = kind, classes


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
        input: one of `INPUTS`.
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
    input: str | None = None
    window: tuple[float, float, float] | None = None
    frame_ms: float | None = None
    reason: str | None = None


def check_answers(project: Project, raw: Any) -> Answer:
    """The answer that a browser sent, or `Refused`.

    Args:
        project: its layout and classes decide what is legal and complete.
        raw: parsed JSON: values, first, last, changes by class; total_ms, hidden_ms, input, window, frame_ms, reason.
            Classes are numbered through where there are several questions. The layouts `rows` and `one-at-a-time` need
            "yes", "no" or "unsure" for every class; in `select-all` and `single-choice` a class that is not named is
            "no"; `rating` needs a step of the scale for every class; `points` needs whole numbers that sum to 100.
    """
    if not isinstance(raw, dict) or not isinstance(raw.get("values"), dict):
        raise Refused("illegal", 'answers must be an object with "values" by class')
    values = check_values(project, raw["values"])
    for question, places in questions_of(project):
        _check_complete(question, values, places)
    window = raw.get("window")
    if window is not None and not (isinstance(window, list) and len(window) == 3):
        raise Refused("illegal", "the window must be its width, height and pixel ratio")
    input_kind = raw.get("input")
    if input_kind is not None and input_kind not in INPUTS:
        raise Refused("illegal", f"the input must be one of {', '.join(INPUTS)}")
    changes = {place: int(_measure(count, "changes")) for place, count in _by_class(project, raw, "changes").items()}
    return Answer(
        values=values,
        first_seconds=_seconds_by_class(project, raw, "first"),
        last_seconds=_seconds_by_class(project, raw, "last"),
        changes=changes,
        seconds=_seconds(raw, "total_ms"),
        hidden_seconds=_seconds(raw, "hidden_ms"),
        input=input_kind,
        window=None if window is None else tuple(_measure(side, "window") for side in window),  # type: ignore[arg-type]
        frame_ms=None if raw.get("frame_ms") is None else _measure(raw["frame_ms"], "frame_ms"),
        reason=_reason(project, raw.get("reason")),
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
        raise Refused("incomplete", f"{left} left: {named}", classes=missing)
    chosen = sum(values[place] == YES for place in places)
    if question.layout == "single-choice" and chosen != 1:
        raise Refused("incomplete" if not chosen else "illegal", f"choose one class; {chosen} are chosen")
    if question.layout == "points" and (total := sum(values[place] for place in places)) != POINTS:
        raise Refused("incomplete", f"the points sum to {total:g}; share out all {POINTS}")


def _reason(project: Project, text: Any) -> str | None:
    if project.reason.ask == "off" or text is None:
        text = ""
    if not isinstance(text, str) or len(text) > LONGEST_ANSWER:
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
    place = _places(len(project.all_classes)).get(key) if isinstance(key, str) else None
    if place is None:
        raise Refused("illegal", f"'{str(key)[:40]}' is not a class of this project")
    return place


def _by_class(project: Project, raw: Mapping[str, Any], name: str) -> dict[int, Any]:
    values = raw.get(name)
    if values is not None and not isinstance(values, dict):
        raise Refused("illegal", f"{name} must be an object by class")
    return {_class(project, key): value for key, value in (values or {}).items() if value is not None}


def _seconds_by_class(project: Project, raw: Mapping[str, Any], name: str) -> dict[int, float]:
    return {place: _measure(value, name) / 1000 for place, value in _by_class(project, raw, name).items()}


def _seconds(raw: Mapping[str, Any], name: str) -> float | None:
    return None if raw.get(name) is None else _measure(raw[name], name) / 1000


def _measure(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LONGEST * 1000:
        raise Refused("illegal", f"{name} must be a number from 0")
    return float(value)
