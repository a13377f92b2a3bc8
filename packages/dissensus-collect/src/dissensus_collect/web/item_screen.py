"""The item screen, for work and for practice: what the browser is told of the project and of an item."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from dissensus.responses import RESPONSES
from dissensus_collect.project.orders import class_order
from dissensus_collect.web.media import inside
from dissensus_collect.web.security import keyed_name
from dissensus_collect.work.answers import Refused, check_answers, questions_of

if TYPE_CHECKING:
    from starlette.responses import Response

    from dissensus_collect.project.reading import Project
    from dissensus_collect.project.tables import Gold
    from dissensus_collect.store.database import Cursor
    from dissensus_collect.web.annotator_pages import Visit
    from dissensus_collect.web.site import Site


def is_practised(project: Project, answers: str, *, rounds: int) -> bool:
    """Whether the practice was answered in full, by the rule that holds for saved answers."""
    try:
        given = msgspec.json.decode(answers, type=list[Any])
        for answer in given:
            check_answers(project, answer)
    except (ValueError, RecursionError, Refused):
        return False
    return len(given) == rounds


def practice_items(cursor: Cursor, visit: Visit) -> list[dict[str, Any]]:
    """The project's practice items, or one neutral item where it names none."""
    project = visit.project
    rows = cursor.execute("SELECT name, media, text FROM item WHERE role = 'practice' ORDER BY id").fetchall()
    feedback = {entry.item: entry for entry in project.feedback}
    items = [shown(visit.site, visit.session, media=media, text=text) for _, media, text in rows]
    told = [_feedback(project, feedback.get(name)) for name, _, _ in rows]
    text = {"text": visit.tongue.say("This is a text to practise with. It says nothing about the task.")}
    neutral: dict[str, Any] = {"kind": "image", "src": "/static/practice.svg"}
    if project.items.pairs:
        neutral = {"kind": "pair", "prompt": "", "sides": [text, text]}
    elif project.images is None:
        neutral = {"kind": "text", **text}
    return [{"item": item, "feedback": said} for item, said in zip(items or [neutral], told or [None], strict=True)]


def _feedback(project: Project, feedback: Gold | None) -> dict[str, Any] | None:
    """What the browser says after a practice item: the answers that are right, where it asks for yes and no."""
    if feedback is None:
        return None
    numeric = project.layout in ("rating", "points")
    right = {place: [RESPONSES[code] for code in sorted(codes)] for place, codes in enumerate(feedback.required)}
    return {"right": {} if numeric else right, "text": feedback.feedback}


def shown(
    site: Site, session: str, *, media: str | None, text: str | None, order: tuple[int, ...] = (0,)
) -> dict[str, Any]:
    """An item as the browser gets it; the order of its classes tells on which sides a pair is shown."""
    if site.project.items.pairs and text is not None:
        pair, folder = json.loads(text), site.project.media_folder
        sides = [
            {"src": site.offered.offer(session, side)} if folder and inside(folder, side) else {"text": side}
            for side in pair["sides"]
        ]
        return {"kind": "pair", "prompt": pair["prompt"], "sides": sides[:: -1 if order[0] else 1]}
    if media is not None:
        return {"kind": "image", "src": site.offered.offer(session, media)}
    return {"kind": "text", "text": text}


def screen(visit: Visit, *, rounds: list[dict[str, Any]] | None = None, said: str = "") -> Response:
    """The item screen, for work or (with its rounds) for practice."""
    project = visit.project
    told = project.told(visit.tongue.code)

    def worded(*, unsure: bool) -> list[dict[str, str]]:
        choices = choices_of(project, unsure=unsure)
        return [{**choice, "word": told.get(choice["word"], choice["word"])} for choice in choices]

    about = {
        "told": told,
        "layout": project.layout,
        "values": worded(unsure=project.classes.unsure),
        "classes": named_classes(project, class_order(project, visit.annotator.id, 0)),
        "questions": [
            {
                "question": asked.question,
                "layout": asked.layout,
                "values": worded(unsure=asked.unsure),
                "ids": list(places),
                "scale": {"values": asked.scale.values, "low": asked.scale.low, "high": asked.scale.high},
            }
            for asked, places in questions_of(project)
        ],
        "reason": {"ask": project.reason.ask, "question": project.reason.question},
        "shortcuts": project.shortcuts,
        "allNoKey": project.all_no_key,
        "rendering": project.items.rendering,
        "back": project.back,
    }
    return visit.page(
        "work",
        project=json.dumps(about),
        browser=keyed_name(visit.session, "browser"),
        question=project.question,
        shortcuts=project.shortcuts,
        practice=None if rounds is None else json.dumps(rounds),
        said=said,
    )


def named_classes(project: Project, order: tuple[int, ...]) -> list[dict[str, Any]]:
    """The classes in an order, as the browser gets them; those of pairs are called by the side that is shown there."""
    names = project.all_classes
    sides = len(project.classes.names) if project.items.pairs else 0
    return [{"id": place, "name": names[at if at < sides else place]} for at, place in enumerate(order)]


def choices_of(project: Project, *, unsure: bool) -> list[dict[str, str]]:
    """The buttons of a class: the value and the word on each."""
    values = ("yes", "no", "unsure") if unsure else ("yes", "no")
    return [{"value": value, "word": project.classes.words[value]} for value in values]
