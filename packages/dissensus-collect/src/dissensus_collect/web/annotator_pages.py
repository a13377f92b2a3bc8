"""The annotator's pages: arrival, consent, instructions, practice, items, final questions, and the code at the end.

No route takes an annotator's id: the session cookie alone says who is asking.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from dissensus_collect.project.promise import promise_of
from dissensus_collect.project.tables import LONGEST_ANSWER
from dissensus_collect.store.events import log_event
from dissensus_collect.store.slots import vote_items
from dissensus_collect.web.item_screen import choices_of, is_practised, practice_items, screen
from dissensus_collect.web.media import inside, picture
from dissensus_collect.web.security import ANNOTATOR_COOKIE, RESEARCHER_COOKIE, address_of, too_many
from dissensus_collect.web.site import (
    LANGUAGE_COOKIE,
    Site,
    known,
    language_of,
    message,
    page,
    posted_form,
    session_of,
    site_of,
)
from dissensus_collect.work import leaving, participants, steps
from dissensus_collect.work.door import door, wait
from dissensus_collect.work.recruitment import NotInvited, Preview, external_of, invited, way_back

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.datastructures import FormData
    from starlette.requests import Request

    from dissensus_collect.project.language import Language
    from dissensus_collect.project.reading import Project
    from dissensus_collect.store.database import Cursor
    from dissensus_collect.work.participants import Annotator

SCREENS: Final = {
    "arrived": ("/consent", "/screen"),
    "consented": ("/instructions", "/practice", "/screen", "/withdraw"),
    "practised": ("/comprehension", "/withdraw"),
    "working": ("/work", "/withdraw"),
    "finished": ("/finish", "/withdraw"),
    "no-consent": ("/finish",),
    "screened-out": ("/finish",),
    "technical": ("/finish",),
}
"""By state: the screens that may be seen, beginning with the one that is due."""
RETURN_COOKIE: Final = "dissensus_return"
"""Where MTurk wants its task submitted; only its own hosts are trusted."""
MONTH: Final = 30 * 24 * 3600


class NotDue(Exception):  # noqa: N818
    """The annotator asked for a screen that is not due; `screen` is the one that is."""

    def __init__(self, screen: str) -> None:
        super().__init__(screen)
        self.screen = screen


def screens_of(cursor: Cursor, project: Project, annotator: Annotator, *, now: float) -> tuple[str, ...]:
    """The screens that an annotator may see, beginning with the one that is due."""
    if participants.questions_due(project, annotator):
        return ("/questions", "/withdraw")
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
    project, now, query = site.project, site.now(), request.query_params
    if request.method == "HEAD":
        return Response()
    recruitment = project.recruitment
    external = external_of(recruitment.kind, query, study_id=recruitment.study, keys=site.keys, now=now)
    if isinstance(external, Preview):
        preview = language_of(request).say("This is a preview: accept the task on MTurk to take part.")
        return message(request, project.texts.title, preview)
    session = request.cookies.get(ANNOTATOR_COOKIE)
    if external is None and session:

        def came_before(cursor: Cursor) -> str | None:
            before = participants.annotator_of(cursor, session)
            if before is None or before.state not in SCREENS:
                return None
            return screens_of(cursor, project, before, now=now)[0]

        known_screen = await site.database.read(came_before)
        if known_screen is not None:
            return RedirectResponse(known_screen, 303)
    if site.limits is not None and (
        wait := site.limits.arrivals.wait(participants.network_of(address_of(request.scope)), now)
    ):
        raise too_many(wait)
    questions = {question.name for question in project.eligibility}
    groups = {name: query.get(name, "") for name in project.quotas if name not in questions}
    parameters = {name: group for name, group in groups.items() if group and group.isprintable()}

    device = "\n".join(request.headers.get(name, "") for name in ("user-agent", "accept-language"))
    origin: dict[str, str] = {"address": address_of(request.scope), "device": device}

    def arrive(cursor: Cursor) -> tuple[str, str]:
        who = external or invited(cursor, query.get("code", ""))
        own = participants.annotator_of(cursor, session or "")
        came = participants.arrive(cursor, now=now, external=who, parameters=parameters, **origin)
        annotator = participants.annotator_of(cursor, came.token)
        if annotator is None or annotator.state == "deleted":
            raise NotInvited("Thank you for coming. There is no task for you in this project; you can close this page.")
        # A link without a signature proves nothing: anybody can write the id of another person into the link.
        if came.returning and external and site.keys is None and (own is None or own.id != annotator.id):
            if annotator.state != "arrived":
                raise NotInvited(
                    "Your session belongs to the browser in which it began; please carry on there. If you cannot, "
                    "write to the researchers."
                )
            participants.end_other_sessions(cursor, annotator.id, came.token)
        return came.token, screens_of(cursor, project, annotator, now=now)[0]

    token, screen_due = await site.database.write(arrive)
    response = RedirectResponse(screen_due, 303)
    response.set_cookie(ANNOTATOR_COOKIE, token, max_age=MONTH, **is_secure(site))
    if "turkSubmitTo" in query:
        response.set_cookie(RETURN_COOKIE, query["turkSubmitTo"][:200], **is_secure(site))
    return response


@dataclass(frozen=True)
class Visit:
    """An annotator on a screen that is due; `form` is what a post has sent, and None if it is none."""

    request: Request
    site: Site
    session: str
    annotator: Annotator
    tongue: Language
    form: FormData | None
    now: float

    @property
    def project(self) -> Project:
        """The project."""
        return self.site.project

    def text(self, name: str) -> str:
        """A text of the project in the visitor's language."""
        return self.project.told(self.tongue.code).get(name) or str(getattr(self.project.texts, name))

    async def record(self, step: Callable[..., Any], **what: Any) -> Any:
        """Takes a step of the annotator's (`steps.consent`), and returns what it does."""
        work = (self.project, self.annotator.id)
        return await self.site.database.write(lambda cursor: step(cursor, *work, now=self.now, **what))

    def answers(self, count: int) -> list[str]:
        """The answers in a form of questions, in their order; empty where nothing was answered."""
        form: Mapping[str, Any] = self.form or {}
        # Browsers send a line break as two characters but count it as one; databases take no NUL.
        texts = (str(form.get(f"answer-{place}", "")) for place in range(count))
        return [text.replace("\r\n", "\n").replace("\0", "").strip() for text in texts]

    def page(self, name: str, *, status: int = 200, **words: Any) -> Response:
        """A page with the token that its posts need."""
        kind = "image" if self.project.images is not None else "text"
        leave = name != "withdraw" and "/withdraw" in SCREENS[self.annotator.state] and not self.annotator.withdrawn
        about = {"kind": kind, "leave": leave, **words}
        return page(self.request, name, session=self.session, status=status, **about)

    def money(self, amount: float) -> str:
        """An amount in the project's currency."""
        return f"{amount:.2f} {self.project.cost.currency}"


async def due(request: Request) -> Visit:
    """The visit, if the screen that was asked for is one that the annotator may see now, or else `NotDue`.

    Of a post, the token is checked before anything else.
    """
    site, session = site_of(request), session_of(request)
    form = await posted_form(request, session) if request.method == "POST" else None
    now = site.now()

    def look(cursor: Cursor) -> tuple[Annotator, tuple[str, ...]]:
        annotator = known(cursor, session)
        return annotator, screens_of(cursor, site.project, annotator, now=now)

    annotator, screens = await site.database.read(look)
    if request.url.path not in screens:
        raise NotDue(screens[0])
    return Visit(request, site, session, annotator, language_of(request), form, now)


async def small_screen(request: Request) -> Response:
    """For a window that is too narrow for the project: what to do, and a way out without taking part."""
    visit = await due(request)
    state = visit.annotator.state
    if not visit.project.screen.least_width:
        return RedirectResponse("/consent" if state == "arrived" else SCREENS[state][0], 303)
    if visit.form is not None:
        await visit.site.database.write(
            lambda cursor: leaving.break_off(cursor, visit.annotator.id, now=visit.now, reason="small screen")
        )
        return RedirectResponse("/finish", 303)
    return visit.page("screen")


async def at_the_door(request: Request) -> Response:
    """Why nobody new is let in, before anything was asked of them, and the way back to the platform."""
    visit = await due(request)
    project = visit.project
    found = await visit.record(wait)
    if found.shut is None:
        return RedirectResponse("/consent", 303)
    codes = await visit.site.database.read(lambda cursor: participants.codes_of(cursor, project))
    code = codes["full"] if project.recruitment.kind != "plain" else None
    return await _last_page(visit, found.shut, code, line=found.line)


async def eligibility(request: Request) -> Response:
    """Questions before consent that decide who may take part."""
    visit = await due(request)
    asked = visit.project.eligibility
    answers = visit.answers(len(asked))
    if visit.form is not None and all(answers):
        by_name = {question.name: answer for question, answer in zip(asked, answers, strict=True)}
        await visit.record(steps.screen, answers=by_name)
        return RedirectResponse("/consent", 303)
    reminder = "" if visit.form is None else visit.tongue.say("Please answer every question.")
    return visit.page("eligibility", status=422 if reminder else 200, questions=asked, answers=answers, said=reminder)


async def consent(request: Request) -> Response:
    """What the project is about, and the question whether to take part."""
    visit = await due(request)
    project, annotator, now = visit.project, visit.annotator.id, visit.now
    if (chosen := request.query_params.get("language")) in project.languages:
        response = RedirectResponse("/consent", 303)
        response.set_cookie(LANGUAGE_COOKIE, str(chosen), max_age=MONTH, **is_secure(visit.site))
        return response
    if visit.form is not None:
        agreed, read = visit.form.get("agreed") == "yes", str(visit.form.get("promise", ""))

        def decide(cursor: Cursor) -> str:
            state = steps.consent(cursor, project, annotator, now=now, agreed=agreed, read=read)
            if state == "consented" and len(project.languages) > 1:
                log_event(cursor, "language", annotator, {"language": visit.tongue.code}, now=now)
            return state

        state = await visit.site.database.write(decide)
        # While this page was read, the last place may have gone to somebody else, or the promise have changed.
        return RedirectResponse("/consent" if state == "arrived" else SCREENS[state][0], 303)
    promise = promise_of(project, await visit.site.database.read(vote_items))
    items = promise.votes + promise.gold
    minutes = max(1, round(items * project.cost.seconds_per_item / 60))
    pay = visit.money(promise.pay) if promise.pay else ""
    return visit.page(
        "consent", text=visit.text("consent"), minutes=minutes, items=items, promise=promise.text, pay=pay
    )


async def withdraw(request: Request) -> Response:
    """A way out at any time: what was done is paid, and the answers are kept or deleted."""
    visit = await due(request)
    annotator = visit.annotator.id
    if visit.form is not None:
        keep = visit.form.get("answers") != "delete"
        await visit.site.database.write(lambda cursor: leaving.withdraw(cursor, annotator, now=visit.now, keep=keep))
        return RedirectResponse("/finish", 303)
    done, of, pay = await visit.site.database.read(lambda cursor: participants.earned(cursor, annotator))
    return visit.page("withdraw", done=done, of=of, pay=visit.money(pay) if visit.annotator.promised else "")


async def instructions(request: Request) -> Response:
    """How to answer; never an example of an answer."""
    visit = await due(request)
    project = visit.project
    if visit.form is not None:
        return RedirectResponse("/practice", 303)
    return visit.page(
        "instructions",
        text=visit.text("instructions"),
        asked=project.asked,
        choices={asked.name: choices_of(project, unsure=asked.unsure) for asked in project.asked},
        reason=project.reason.ask,
        back=project.back,
        shortcuts=project.shortcuts,
    )


async def practice(request: Request) -> Response:
    """The item screen to try out: it comments only on how to use it, and nothing is stored."""
    visit = await due(request)
    rounds = await visit.site.database.read(lambda cursor: practice_items(cursor, visit))
    if visit.form is None:
        return screen(visit, rounds=rounds)
    passed = is_practised(visit.project, str(visit.form.get("answers", "")), rounds=len(rounds))
    state = await visit.record(steps.practised, passed=passed)
    if state == "consented":
        return screen(visit, rounds=rounds, said=visit.tongue.say("Some classes were left without an answer."))
    return RedirectResponse(SCREENS[state][0], 303)


async def comprehension(request: Request) -> Response:
    """Questions about the task before it begins: two attempts, checked on the server."""
    visit = await due(request)
    asked, attempt, say = visit.project.comprehension, visit.annotator.misunderstood, visit.tongue.say
    answers = visit.answers(len(asked))
    reminder = say("Please look at the instructions again; you can answer once more.") if attempt else ""
    # Nobody may be stuck here because the questions were taken out of the project after the practice.
    if visit.form is not None or not asked:
        if all(answers):
            sent = "" if visit.form is None else str(visit.form.get("attempt", ""))
            state = await visit.record(
                steps.understood, answers=answers, attempt=int(sent) if sent in ("0", "1") else attempt
            )
            return RedirectResponse(SCREENS[state][0], 303)
        reminder = say("Please answer every question.")
    return visit.page(
        "comprehension",
        status=200 if visit.form is None else 422,
        text=visit.text("instructions"),
        questions=asked,
        answers=answers,
        wrong=await visit.site.database.read(lambda cursor: steps.misunderstood(cursor, visit.annotator.id)),
        attempt=attempt,
        said=reminder,
    )


async def questions(request: Request) -> Response:
    """The questions to the annotator after the last item; what is left empty is not stored."""
    visit = await due(request)
    asked = visit.project.questions
    answers, missing = visit.answers(len(asked)), set[int]()
    if visit.form is not None:
        both = list(zip(asked, answers, strict=True))
        missing = {place for place, (question, answer) in enumerate(both) if question.required and not answer}
        if not missing:
            by_name = {question.name: answer for question, answer in both if answer}
            await visit.record(steps.answer_questions, answers=by_name)
            return RedirectResponse("/finish", 303)
    return visit.page(
        "questions",
        status=422 if missing else 200,
        questions=asked,
        answers=answers,
        missing=missing,
        longest=LONGEST_ANSWER,
    )


async def work(request: Request) -> Response:
    """The item screen; its script asks for the items."""
    return screen(await due(request))


async def finish(request: Request) -> Response:
    """The last page, with the code; it is shown only when every answer is on disk."""
    visit = await due(request)
    project, annotator = visit.project, visit.annotator
    code = await visit.site.database.read(lambda cursor: participants.finish_code(cursor, project, annotator.id))
    pay, done, of = None, 0, 0
    ended = "ineligible" if annotator.eligible is False else "withdrawn" if annotator.withdrawn else annotator.state
    if annotator.promised and ended in ("finished", "withdrawn"):
        done, of, earned = await visit.site.database.read(lambda cursor: participants.earned(cursor, annotator.id))
        pay = visit.money(earned)
    return await _last_page(visit, ended, code, text=visit.text("finish"), pay=pay, done=done, of=of)


async def _last_page(visit: Visit, ended: str, code: str | None, **words: Any) -> Response:
    """How it ended, what the code is for, and the way back to the platform with it."""
    recruitment, annotator = visit.project.recruitment, visit.annotator.id
    row = await visit.site.database.read(
        lambda cursor: cursor.execute("SELECT session FROM identity WHERE annotator = ?", (annotator,)).fetchone()
    )
    way = way_back(
        recruitment.kind,
        code or "",
        return_url=recruitment.return_url,
        session=None if row is None else row[0],
        submit_to=visit.request.cookies.get(RETURN_COOKIE),
    )
    about = {"line": None, "pay": None, "text": "", **words}
    return visit.page("finish", ended=ended, code=code, way=way, platform=recruitment.kind, **about)


async def media(request: Request) -> Response:
    """The picture of an item, for the browser it was handed to and nobody else."""
    site, cookies = site_of(request), request.cookies
    sessions = tuple(cookies[name] for name in (ANNOTATOR_COOKIE, RESEARCHER_COOKIE) if name in cookies)
    name = site.offered.file(request.path_params["name"], sessions)
    folder = site.project.media_folder
    path = inside(folder, name) if name is not None and folder is not None else None
    drawn = await asyncio.to_thread(picture, path) if path is not None else None
    return drawn if drawn is not None else Response(status_code=404)


ROUTES: Final = (
    *(
        Route(path, endpoint, methods=["GET"])
        for path, endpoint in {
            "/media/{name}": media, "/": arrival, "/door": at_the_door, "/work": work, "/finish": finish,
        }.items()
    ),
    *(
        Route(path, endpoint, methods=["GET", "POST"])
        for path, endpoint in {
            "/eligibility": eligibility, "/screen": small_screen, "/consent": consent, "/instructions": instructions,
            "/practice": practice, "/comprehension": comprehension, "/questions": questions, "/withdraw": withdraw,
        }.items()
    ),
)  # fmt: skip
