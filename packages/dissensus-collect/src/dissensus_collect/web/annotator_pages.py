"""The annotator's pages: arrival, consent, instructions, practice, items, final questions, and the code at the end.

No route takes an annotator's id: the session cookie alone says who is asking.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from dissensus.responses import RESPONSES
from dissensus_collect.project.orders import class_order
from dissensus_collect.project.tables import LONGEST_ANSWER
from dissensus_collect.store.events import log_event
from dissensus_collect.web.media import inside, picture
from dissensus_collect.web.security import ANNOTATOR_COOKIE, RESEARCHER_COOKIE, address_of, csrf_token, too_many
from dissensus_collect.web.site import (
    LANGUAGE_COOKIE,
    Refusal,
    known,
    language_of,
    message,
    page,
    posted_form,
    posted_json,
    session_of,
    session_tag,
    site_of,
    text_of,
    turned_away,
)
from dissensus_collect.work import assignment, participants
from dissensus_collect.work.answers import Refused, check_answers, check_values, questions_of
from dissensus_collect.work.assignment import Assigned, Elsewhere, Finished, Nothing
from dissensus_collect.work.door import door
from dissensus_collect.work.recruitment import Preview, external_of, way_back

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from starlette.datastructures import FormData
    from starlette.requests import Request

    from dissensus_collect.project.language import Language
    from dissensus_collect.store.database import Cursor
    from dissensus_collect.web.site import Site
    from dissensus_collect.work.participants import Annotator

    T = TypeVar("T")
    from dissensus_collect.project.reading import Project
    from dissensus_collect.project.tables import Gold

SCREENS: Final = {
    "arrived": ("/consent", "/screen"),
    "consented": ("/instructions", "/practice", "/screen"),
    "practised": ("/comprehension",),
    "working": ("/work",),
    "finished": ("/finish",),
    "no-consent": ("/finish",),
    "screened-out": ("/finish",),
    "technical": ("/finish",),
}
"""By state: the screens that may be seen, beginning with the one that is due."""


def shut_out(tongue: Language, shut: str) -> tuple[str, str]:
    """Why somebody is not let in: the heading and the text of the page at the door."""
    if shut == "paused":
        text = tongue.say("Nobody new can start now. You can come back later with the same link.")
        return tongue.say("The project is paused"), text
    if shut == "closed":
        text = tongue.say("Thank you for coming. Nobody new can start in this project any more.")
        return tongue.say("The project is closed"), text
    if shut == "group":
        text = tongue.say("Thank you for coming. This project has enough people of your group already.")
    else:
        text = tongue.say("Thank you for coming. Others are answering everything that is left in this project.")
    return tongue.say("All places are taken"), text


RETURN_COOKIE: Final = "dissensus_return"
"""Where MTurk wants its task submitted; only its own hosts are trusted."""

EVENTS: Final = ("refused", "all-no-key", "image-failed", "small-screen")
"""What a browser may report about itself."""

DETAIL: Final = re.compile(r"[a-z-]{1,20}")
"""Words in the detail of an event: nothing can be deleted from the log, so nobody's own text may go into it."""

PAUSE_SECONDS: Final = 15


def paused(tongue: Language) -> dict[str, Any]:
    """What the script of the item screen is told while the project is paused."""
    told = tongue.say(
        "The researchers have paused the project. Your answers are saved, and this page carries on by itself."
    )
    return {"state": "paused", "retry_seconds": PAUSE_SECONDS, "error": told, "kind": "paused"}


def ending(tongue: Language, state: str, *, platform: str) -> tuple[str, str, str]:
    """For the last page: its heading, its text where the project gives none, and what the code is for."""
    where = {"prolific": "Prolific", "mturk": "MTurk"}.get(platform)
    if state == "finished":
        told = (
            tongue.say("This code shows {platform} that you are done.", platform=where)
            if where
            else tongue.say("This code shows that you are done. Keep it until you have been paid.")
        )
        return tongue.say("All done"), "", told
    if state == "no-consent":
        told = (
            tongue.say(
                "This code tells {platform} that you did not take part, so that you lose nothing.", platform=where
            )
            if where
            else tongue.say("You need this code only if somebody asks you for one: it says that you did not take part.")
        )
        text = tongue.say("Only that you did not agree was kept. You can close this page.")
        return tongue.say("You did not take part"), text, told
    told = (
        tongue.say("This code tells {platform} how your session ended.", platform=where)
        if where
        else tongue.say("This code says how your session ended. Keep it in case that somebody asks you for one.")
    )
    if state == "screened-out":
        text = tongue.say("Thank you for coming. There is no task for you in this project; you can close this page.")
        return tongue.say("Your session ends here"), text, told
    text = tongue.say("Something on our side kept you from finishing. You are not at fault.")
    return tongue.say("Your session ended early"), text, told


class NotDue(Exception):  # noqa: N818
    """The annotator asked for a screen that is not due; `screen` is the one that is."""

    def __init__(self, screen: str) -> None:
        super().__init__(screen)
        self.screen = screen


def screens_of(cursor: Cursor, project: Project, annotator: Annotator, *, now: float) -> tuple[str, ...]:
    """The screens that an annotator may see, beginning with the one that is due."""
    if participants.questions_due(project, annotator):
        return ("/questions",)
    if annotator.state == "arrived":
        if door(cursor, project, annotator.id, now=now).shut is not None:
            return ("/door",)
        if project.eligibility and annotator.eligible is None:
            return ("/eligibility", "/screen")
    return SCREENS[annotator.state]


def is_secure(site: Site) -> dict[str, Any]:
    """The settings of cookies: no script can read them, and they work inside MTurk's frame where that is needed."""
    framed = site.project.recruitment.kind == "mturk" and site.https
    return {"httponly": True, "secure": site.https, "samesite": "none" if framed else "lax", "path": "/"}


async def arrival(request: Request) -> Response:
    """The link that people are given: makes a new participant, or finds the one who comes back."""
    site = site_of(request)
    project, now = site.project, site.now()
    if request.method == "HEAD":
        return Response()
    external = external_of(
        project.recruitment.kind, request.query_params, study_id=project.recruitment.study, keys=site.keys, now=now
    )
    if isinstance(external, Preview):
        told = language_of(request).say("This is a preview: accept the task on MTurk to take part.")
        return message(request, project.texts.title, told)
    session = request.cookies.get(ANNOTATOR_COOKIE)
    if external is None and session:

        def came_before(cursor: Cursor) -> str | None:
            before = participants.annotator_of(cursor, session)
            known_state = before is not None and before.state in SCREENS
            return screens_of(cursor, project, before, now=now)[0] if before is not None and known_state else None

        known_screen = await site.database.read(came_before)
        if known_screen is not None:
            return RedirectResponse(known_screen, 303)
    if site.limits is not None:
        wait = site.limits.arrivals.wait(address_of(request.scope), now)
        if wait:
            return turned_away(request, too_many(wait))

    asked = {each.name for each in project.eligibility}
    given = {name: request.query_params.get(name, "") for name in project.quotas if name not in asked}
    parameters = {name: value for name, value in given.items() if value and value.isprintable()}

    def arrive(cursor: Cursor) -> tuple[str, str]:
        token = participants.arrive(cursor, now=now, external=external, parameters=parameters).token
        return token, screens_of(cursor, project, known(cursor, token), now=now)[0]

    token, screen_due = await site.database.write(arrive)
    response = RedirectResponse(screen_due, 303)
    response.set_cookie(ANNOTATOR_COOKIE, token, max_age=30 * 24 * 3600, **is_secure(site))
    if "turkSubmitTo" in request.query_params:
        response.set_cookie(RETURN_COOKIE, request.query_params["turkSubmitTo"][:200], **is_secure(site))
    return response


async def due(request: Request) -> tuple[str, Annotator]:
    """The session and its annotator, if the screen that was asked for is one that the annotator may see now.

    Of a post, the token is checked before anything else.

    Raises:
        NotDue: the annotator has to be on another screen, which the exception names.
    """
    site, session = site_of(request), session_of(request)
    if request.method == "POST":
        await posted_form(request, session)
    now = site.now()

    def look(cursor: Cursor) -> tuple[Annotator, tuple[str, ...]]:
        found = known(cursor, session)
        return found, screens_of(cursor, site.project, found, now=now)

    found, screens = await site.database.read(look)
    if request.url.path not in screens:
        raise NotDue(screens[0])
    return session, found


def in_words(request: Request, name: str) -> str:
    """A text of the project in the visitor's language."""
    project = site_of(request).project
    return project.told(language_of(request).code).get(name) or str(getattr(project.texts, name))


def kind_of(project: Project) -> str:
    """What an item is called."""
    return "image" if project.images is not None else "text"


async def small_screen(request: Request) -> Response:
    """For a window that is too narrow for the project: what to do, and a way out without taking part."""
    session, annotator = await due(request)
    site = site_of(request)
    project, now = site.project, site.now()
    if not project.screen.least_width:
        return RedirectResponse("/consent" if annotator.state == "arrived" else SCREENS[annotator.state][0], 303)
    if request.method == "POST":
        await site.database.write(
            lambda cursor: participants.break_off(cursor, annotator.id, now=now, reason="small screen")
        )
        return RedirectResponse("/finish", 303)
    return page(request, "screen", session=session)


async def at_the_door(request: Request) -> Response:
    """Why nobody new is let in, before anything was asked of them, and the way back to the platform."""
    session, annotator = await due(request)
    site = site_of(request)
    project, now = site.project, site.now()

    def look(cursor: Cursor) -> tuple[str | None, str | None]:
        shut = door(cursor, project, annotator.id, now=now).shut
        return shut, _platform_session(cursor, annotator.id)

    shut, platform_session = await site.database.read(look)
    if shut is None:
        return RedirectResponse("/consent", 303)
    code = project.recruitment.codes["full"] if project.recruitment.kind != "plain" else None
    tongue = language_of(request)
    heading, text = shut_out(tongue, shut)
    _, _, purpose = ending(tongue, "no-consent", platform=project.recruitment.kind)
    said = (heading, text, purpose)
    return _last_page(request, session, said, code, state="door", platform_session=platform_session)


async def eligibility(request: Request) -> Response:
    """Questions before consent that decide who may take part."""
    session, annotator = await due(request)
    site = site_of(request)
    project, now = site.project, site.now()
    answers = [""] * len(project.eligibility)
    if request.method == "POST":
        answers = posted_answers(await request.form(), len(project.eligibility))
        if all(answers):
            given = {each.name: answer for each, answer in zip(project.eligibility, answers, strict=True)}
            await site.database.write(
                lambda cursor: participants.screen(cursor, project, annotator.id, now=now, answers=given)
            )
            return RedirectResponse("/consent", 303)
    return page(
        request,
        "eligibility",
        session=session,
        status=422 if request.method == "POST" else 200,
        questions=project.eligibility,
        answers=answers,
        said=language_of(request).say("Please answer every question.") if request.method == "POST" else "",
    )


async def consent(request: Request) -> Response:
    """What the project is about, and the question whether to take part."""
    session, annotator = await due(request)
    site = site_of(request)
    project = site.project
    if (chosen := request.query_params.get("language")) in project.languages:
        response = RedirectResponse("/consent", 303)
        response.set_cookie(LANGUAGE_COOKIE, str(chosen), max_age=30 * 24 * 3600, **is_secure(site))
        return response
    if request.method == "POST":
        form = await request.form()
        agreed, now, tongue = form.get("agreed") == "yes", site.now(), language_of(request).code

        def decided(cursor: Cursor) -> str:
            state = participants.consent(cursor, project, annotator.id, now=now, agreed=agreed)
            if state == "consented" and len(project.languages) > 1:
                log_event(cursor, "language", annotator.id, {"language": tongue}, now=now)
            return state

        state = await site.database.write(decided)
        # The last place may have gone to somebody else while this page was read.
        return RedirectResponse("/door" if state == "arrived" else SCREENS[state][0], 303)
    (votes,) = await site.database.read(_vote_items)
    items = min(project.items_per_annotator, votes) + len(project.gold_items)
    minutes = max(1, round(items * project.cost.seconds_per_item / 60))
    return page(
        request,
        "consent",
        session=session,
        text=in_words(request, "consent"),
        minutes=minutes,
        items=items,
        kind=kind_of(project),
    )


def _vote_items(cursor: Cursor) -> Any:
    return cursor.execute("SELECT count(*) FROM item WHERE role = 'vote' AND retired_at IS NULL").fetchone()


async def instructions(request: Request) -> Response:
    """How to answer; never an example of an answer."""
    session, _ = await due(request)
    project = site_of(request).project
    if request.method == "POST":
        return RedirectResponse("/practice", 303)
    return page(
        request,
        "instructions",
        session=session,
        text=in_words(request, "instructions"),
        asked=project.asked,
        choices={each.name: choices_of(project, unsure=each.unsure) for each in project.asked},
        reason=project.reason.ask,
        back=project.back,
        shortcuts=project.shortcuts,
        kind=kind_of(project),
    )


async def practice(request: Request) -> Response:
    """The item screen to try out: it comments only on how to use it, and nothing is stored."""
    session, annotator = await due(request)
    site = site_of(request)
    project, now = site.project, site.now()
    tongue = language_of(request)
    rounds = await site.database.read(lambda cursor: practice_items(cursor, site, session, tongue))
    if request.method == "POST":
        form = await request.form()
        passed = is_practised(project, str(form.get("answers", "")), rounds=len(rounds))
        state = await site.database.write(
            lambda cursor: participants.practised(cursor, project, annotator.id, now=now, passed=passed)
        )
        if state == "consented":
            said = language_of(request).say("Some classes were left without an answer.")
            return screen(request, session, annotator, rounds=rounds, said=said)
        return RedirectResponse(SCREENS[state][0], 303)
    return screen(request, session, annotator, rounds=rounds)


async def comprehension(request: Request) -> Response:
    """Questions about the task before it begins: two attempts, checked on the server."""
    session, annotator = await due(request)
    site = site_of(request)
    project, now = site.project, site.now()
    answers = [""] * len(project.comprehension)
    tongue = language_of(request)
    said = (
        tongue.say("Please look at the instructions again; you can answer once more.")
        if annotator.misunderstood
        else ""
    )
    # Nobody may be stuck here because the questions were taken out of the project after the practice.
    if request.method == "POST" or not project.comprehension:
        form = await request.form()
        answers = posted_answers(form, len(project.comprehension))
        if all(answers):
            drawn = str(form.get("attempt", ""))
            attempt = int(drawn) if drawn in ("0", "1") else annotator.misunderstood
            state = await site.database.write(
                lambda cursor: participants.understood(
                    cursor, project, annotator.id, now=now, answers=answers, attempt=attempt
                )
            )
            return RedirectResponse(SCREENS[state][0], 303)
        said = tongue.say("Please answer every question.")
    return page(
        request,
        "comprehension",
        session=session,
        status=422 if request.method == "POST" else 200,
        text=in_words(request, "instructions"),
        questions=project.comprehension,
        answers=answers,
        wrong=await site.database.read(lambda cursor: participants.misunderstood(cursor, annotator.id)),
        attempt=annotator.misunderstood,
        said=said,
    )


def posted_answers(form: FormData, count: int) -> list[str]:
    """The answers in a form of questions, in their order; empty where nothing was answered."""
    said = (str(form.get(f"answer-{place}", "")) for place in range(count))
    # Browsers send a line break as two characters but count it as one; databases take no NUL.
    return [each.replace("\r\n", "\n").replace("\0", "").strip() for each in said]


async def questions(request: Request) -> Response:
    """The questions to the annotator after the last item; what is left empty is not stored."""
    session, annotator = await due(request)
    site = site_of(request)
    project, now = site.project, site.now()
    answers, missing = [""] * len(project.questions), set[int]()
    if request.method == "POST":
        answers = posted_answers(await request.form(), len(project.questions))
        both = list(zip(project.questions, answers, strict=True))
        missing = {place for place, (each, answer) in enumerate(both) if each.required and not answer}
        if not missing:
            given = {each.name: answer for each, answer in both if answer}
            await site.database.write(
                lambda cursor: participants.answer_questions(cursor, project, annotator.id, now=now, answers=given)
            )
            return RedirectResponse("/finish", 303)
    return page(
        request,
        "questions",
        session=session,
        status=422 if missing else 200,
        questions=project.questions,
        answers=answers,
        missing=missing,
        longest=LONGEST_ANSWER,
    )


def is_practised(project: Project, answers: str, *, rounds: int) -> bool:
    """Whether the practice was answered in full, by the rule that holds for saved answers."""
    try:
        given = json.loads(answers)
        for each in given:
            check_answers(project, each)
    except (ValueError, TypeError, RecursionError, Refused):
        return False
    return len(given) == rounds


def practice_items(cursor: Cursor, site: Site, session: str, tongue: Language) -> list[dict[str, Any]]:
    """The project's practice items, or one neutral item where it names none."""
    cursor.execute("SELECT name, media, text FROM item WHERE role = 'practice' ORDER BY id")
    rows = cursor.fetchall()
    found = [shown(site, session, media=media, text=text) for _, media, text in rows]
    feedback = {each.item: each for each in site.project.feedback}
    if found:
        return [
            {"item": each, "feedback": _feedback(site.project, feedback.get(name))}
            for each, (name, _, _) in zip(found, rows, strict=True)
        ]
    if not found and site.project.images is not None:
        found = [{"kind": "image", "src": "/static/practice.svg"}]
    elif not found:
        found = [
            {"kind": "text", "text": tongue.say("This is a text to practise with. It says nothing about the task.")}
        ]
    return [{"item": each, "feedback": None} for each in found]


def _feedback(project: Project, feedback: Gold | None) -> dict[str, Any] | None:
    """What the browser says after a practice item: the answers that are right, where it asks for yes and no."""
    if feedback is None:
        return None
    numeric = project.layout in ("rating", "points")
    right = {place: [RESPONSES[code] for code in sorted(codes)] for place, codes in enumerate(feedback.required)}
    return {"right": {} if numeric else right, "text": feedback.feedback}


def shown(site: Site, session: str, *, media: str | None, text: str | None) -> dict[str, Any]:
    """An item as the browser gets it."""
    if media is not None:
        return {"kind": "image", "src": site.offered.offer(session, media)}
    return {"kind": "text", "text": text}


async def work(request: Request) -> Response:
    """The item screen; its script asks for the items."""
    return screen(request, *await due(request))


def screen(
    request: Request, session: str, annotator: Annotator, *, rounds: list[dict[str, Any]] | None = None, said: str = ""
) -> Response:
    """The item screen, for work or (with its rounds) for practice."""
    project = site_of(request).project
    order = class_order(project, annotator.id, 0)
    names = project.all_classes
    told = project.told(language_of(request).code)

    def worded(*, unsure: bool) -> list[dict[str, str]]:
        return [{**each, "word": told.get(each["word"], each["word"])} for each in choices_of(project, unsure=unsure)]

    about = {
        "told": told,
        "layout": project.layout,
        "values": worded(unsure=project.classes.unsure),
        "classes": [{"id": each, "name": names[each]} for each in order],
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
    return page(
        request,
        "work",
        session=session,
        project=json.dumps(about),
        browser=session_tag(session),
        question=project.question,
        kind=kind_of(project),
        shortcuts=project.shortcuts,
        practice=None if rounds is None else json.dumps(rounds),
        said=said,
    )


def choices_of(project: Project, *, unsure: bool) -> list[dict[str, str]]:
    """The buttons of a class: the value and the word on each."""
    values = ("yes", "no", "unsure") if unsure else ("yes", "no")
    return [{"value": each, "word": project.classes.words[each]} for each in values]


async def finish(request: Request) -> Response:
    """The last page, with the code; it is shown only when every answer is on disk."""
    session, annotator = await due(request)
    project, tongue = site_of(request).project, language_of(request)

    def ended(cursor: Cursor) -> tuple[str | None, str | None]:
        return participants.finish_code(cursor, project, annotator.id), _platform_session(cursor, annotator.id)

    code, platform_session = await site_of(request).database.read(ended)
    heading, text, purpose = ending(tongue, annotator.state, platform=project.recruitment.kind)
    if annotator.eligible is False:
        heading = tongue.say("You cannot take part")
        text = tongue.say(
            "Thank you for your answers, which were not stored. This project looks for other people this time."
        )
    if annotator.state == "finished":
        text = in_words(request, "finish")
    said = (heading, text, purpose)
    return _last_page(request, session, said, code, state=annotator.state, platform_session=platform_session)


def _platform_session(cursor: Cursor, annotator: int) -> str | None:
    row = cursor.execute("SELECT session FROM identity WHERE annotator = ?", (annotator,)).fetchone()
    return None if row is None else row[0]


def _last_page(
    request: Request,
    session: str,
    said: tuple[str, str, str],
    code: str | None,
    *,
    state: str,
    platform_session: str | None,
) -> Response:
    """A heading, a text, what the code is for, and the way back to the platform with it."""
    recruitment = site_of(request).project.recruitment
    heading, text, purpose = said
    way = way_back(
        recruitment.kind,
        code or "",
        return_url=recruitment.return_url,
        session=platform_session,
        submit_to=request.cookies.get(RETURN_COOKIE),
    )
    return page(
        request,
        "finish",
        session=session,
        state=state,
        heading=heading,
        text=text,
        code=code,
        purpose=purpose,
        way=way,
        platform=recruitment.kind,
    )


async def media(request: Request) -> Response:
    """The picture of an item, for the browser it was handed to and nobody else."""
    site = site_of(request)
    sessions = tuple(
        each for name in (ANNOTATOR_COOKIE, RESEARCHER_COOKIE) if (each := request.cookies.get(name)) is not None
    )
    name = site.offered.file(request.path_params["name"], sessions)
    path = inside(site.project.images, name) if name is not None and site.project.images is not None else None
    drawn = await asyncio.to_thread(picture, path) if path is not None else None
    return drawn if drawn is not None else Response(status_code=404)


# What the script of the item screen calls.


async def session(request: Request) -> Response:
    """What a browser may know about its own session."""
    site, token, now = site_of(request), session_of(request), site_of(request).now()

    def look(cursor: Cursor) -> tuple[str, str]:
        found = known(cursor, token)
        return found.state, screens_of(cursor, site.project, found, now=now)[0]

    state, screen_due = await site.database.read(look)
    return JSONResponse({"state": state, "csrf": csrf_token(token), "screen": screen_due})


def after(cursor: Cursor, site: Site, annotator: int, *, now: float, tab: str, token: str) -> dict[str, Any]:
    """What comes next, and the picture that will most likely come after it, so that it can be fetched ahead."""
    given = assignment.next_item(cursor, site.project, annotator, now=now, tab=tab)
    told = as_json(site, token, given)
    if isinstance(given, Assigned) and given.item.media is not None and given.number < given.of:
        likely = assignment.likely_next(cursor, site.project, annotator, number=given.number + 1)
        if likely is not None and likely.media is not None:
            told["preload"] = [site.offered.offer(token, likely.media)]
    return told


def as_json(site: Site, token: str, given: Assigned | Finished | Nothing | Elsewhere) -> dict[str, Any]:
    """What comes next, as the browser gets it."""
    if isinstance(given, Assigned):
        return {
            "state": "item",
            "assignment": given.assignment,
            "number": given.number,
            "of": given.of,
            "item": shown(site, token, media=given.item.media, text=given.item.text),
            "classes": [{"id": each, "name": site.project.all_classes[each]} for each in given.classes],
            "layout": site.project.layout,
            "heartbeat_seconds": site.project.lease.heartbeat,
            # A finished item has no lease; but the next item waits for whoever went back, for as long as this.
            "expires_in": site.project.lease.seconds if given.done else max(0.0, given.expires - site.now()),
            "draft": given.draft,
            "preload": [],
        }
    if isinstance(given, Finished):
        return {"state": "finished", "url": "/finish"}
    if isinstance(given, Elsewhere):
        return {"state": "elsewhere"}
    return {"state": "nothing", "retry_seconds": given.retry_seconds}


def working(cursor: Cursor, token: str) -> Annotator:
    """The annotator of a session, who must be one that may be given items."""
    found = known(cursor, token)
    if found.state not in ("working", "finished"):
        raise Refusal("Please go through the first pages of this project.", 409, "state")
    return found


async def call(request: Request) -> tuple[Site, str, dict[str, Any]]:
    """The site, the session and the posted object of a call by the script of the item screen."""
    token = session_of(request)
    return site_of(request), token, await posted_json(request, token)


async def write_for(site: Site, token: str, work: Callable[[Cursor, int], T]) -> T:
    """Runs a request in the name of a session's annotator, who must be at work."""
    return await site.database.write(lambda cursor: work(cursor, working(cursor, token).id))


async def next_item(request: Request) -> Response:
    """The item to judge now; asking again gives the same one."""
    site, token, body = await call(request)
    tab, now = text_of(body, "tab", longest=64), site.now()
    if site.paused:
        return JSONResponse(paused(language_of(request)), 503, headers={"Retry-After": str(PAUSE_SECONDS)})
    told = await write_for(
        site, token, lambda cursor, annotator: after(cursor, site, annotator, now=now, tab=tab, token=token)
    )
    return JSONResponse(told)


async def save(request: Request) -> Response:
    """Store an answer and hand out the next item, in one transaction; answered when it is on disk."""
    site, token, body = await call(request)
    project, now = site.project, site.now()
    uuid, asked, tab = (text_of(body, name, longest=64) for name in ("uuid", "assignment", "tab"))
    answer = check_answers(project, body.get("answers"))

    def store(cursor: Cursor, annotator: int) -> dict[str, Any]:
        saved = assignment.save(cursor, project, annotator, now=now, assignment=asked, uuid=uuid, answer=answer)
        told = (
            paused(language_of(request))
            if site.paused
            else after(cursor, site, annotator, now=now, tab=tab, token=token)
        )
        hurried = not saved.duplicate and told["state"] == "item"
        hurried = hurried and participants.reminded(cursor, project, annotator, now=now, seconds=answer.seconds)
        return {"saved": True, "duplicate": saved.duplicate, "late": saved.late, "hurried": hurried, "next": told}

    return JSONResponse(await write_for(site, token, store), 201)


async def heartbeat(request: Request) -> Response:
    """A sign of life: the lease is prolonged."""
    site, token, body = await call(request)
    asked, tab, now = text_of(body, "assignment", longest=64), text_of(body, "tab", longest=64), site.now()
    lease = await write_for(
        site,
        token,
        lambda cursor, annotator: assignment.heartbeat(
            cursor, site.project, annotator, now=now, assignment=asked, tab=tab
        ),
    )
    return JSONResponse({"expires_in": max(0.0, lease.expires - now), "mine": lease.mine, "held": lease.held})


async def draft(request: Request) -> Response:
    """Half-filled answers, so that another browser can carry on with them."""
    site, token, body = await call(request)
    asked, values = text_of(body, "assignment", longest=64), body.get("values")
    if not isinstance(values, dict):
        raise Refusal("'values' must be an object by class.", 422, "illegal")
    check_values(site.project, values)
    await write_for(
        site,
        token,
        lambda cursor, annotator: assignment.keep_draft(cursor, annotator, assignment=asked, values=values),
    )
    return JSONResponse({"kept": True})


async def problem(request: Request) -> Response:
    """Something is wrong with the item: it is put aside without a vote."""
    site, token, body = await call(request)
    asked, reason, now = text_of(body, "assignment", longest=64), text_of(body, "reason", longest=600), site.now()
    await write_for(
        site,
        token,
        lambda cursor, annotator: assignment.report_problem(
            cursor, annotator, now=now, assignment=asked, reason=reason
        ),
    )
    return JSONResponse({"reported": True})


async def back(request: Request) -> Response:
    """Go back one item, where the project allows it."""
    site, token, body = await call(request)
    text_of(body, "tab", longest=64)
    now = site.now()
    given = await write_for(
        site, token, lambda cursor, annotator: assignment.back(cursor, site.project, annotator, now=now)
    )
    if given is None:
        told = language_of(request).say("There is nothing to go back to.")
        return JSONResponse({"state": "none", "error": told})
    return JSONResponse(as_json(site, token, given))


async def take_over(request: Request) -> Response:
    """Carry on in this tab; the other one stops."""
    site, token, body = await call(request)
    tab, now = text_of(body, "tab", longest=64), site.now()
    await write_for(site, token, lambda cursor, annotator: assignment.take_over(cursor, annotator, now=now, tab=tab))
    return JSONResponse({"taken": True})


def _is_plain(entry: tuple[str, Any]) -> bool:
    name, value = entry
    known_kind = value is None or isinstance(value, int) or (isinstance(value, str) and bool(DETAIL.fullmatch(value)))
    return bool(DETAIL.fullmatch(name)) and known_kind


async def event(request: Request) -> Response:
    """Something that a browser reports about itself, for the log."""
    site, token, body = await call(request)
    kind, detail, now = text_of(body, "kind"), body.get("detail"), site.now()
    if kind not in EVENTS or not isinstance(detail, dict) or len(detail) > 4 or not all(map(_is_plain, detail.items())):
        raise Refusal(
            f"An event is one of {', '.join(EVENTS)}, with numbers and short words for detail.", 422, "illegal"
        )

    def log(cursor: Cursor) -> None:
        log_event(cursor, f"browser {kind}", known(cursor, token).id, detail, now=now)

    await site.database.write(log)
    return JSONResponse({"logged": True})


def _page(path: str, endpoint: Callable[[Request], Any], *, posts: bool = True) -> Route:
    return Route(path, endpoint, methods=["GET", "POST"] if posts else ["GET"])


ROUTES: Final = (
    # Routes are tried in this order, so the ones that every item needs come first.
    Route("/api/save", save, methods=["POST"]),
    Route("/api/next", next_item, methods=["POST"]),
    Route("/api/heartbeat", heartbeat, methods=["POST"]),
    _page("/media/{name}", media, posts=False),
    Route("/api/draft", draft, methods=["POST"]),
    Route("/api/problem", problem, methods=["POST"]),
    Route("/api/back", back, methods=["POST"]),
    Route("/api/take-over", take_over, methods=["POST"]),
    Route("/api/event", event, methods=["POST"]),
    _page("/api/session", session, posts=False),
    _page("/", arrival, posts=False),
    _page("/door", at_the_door, posts=False),
    _page("/eligibility", eligibility),
    _page("/screen", small_screen),
    _page("/consent", consent),
    _page("/instructions", instructions),
    _page("/practice", practice),
    _page("/comprehension", comprehension),
    _page("/work", work, posts=False),
    _page("/questions", questions),
    _page("/finish", finish, posts=False),
)
