"""What the script of the item screen calls: the next item, a save, signs of life, drafts, problems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import msgspec
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dissensus.toml_file import fits
from dissensus_collect.store.events import BROWSER_EVENTS, log_bounded
from dissensus_collect.web.annotator_pages import screens_of
from dissensus_collect.web.item_screen import named_classes, shown
from dissensus_collect.web.security import Refusal, csrf_token
from dissensus_collect.web.site import Site, known, language_of, posted_json, session_of, site_of
from dissensus_collect.work import assignment, choosing
from dissensus_collect.work.answers import check_answers, check_values
from dissensus_collect.work.assignment import Assigned, Elsewhere, Finished
from dissensus_collect.work.door import wait
from dissensus_collect.work.steps import reminded

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from dissensus_collect.store.database import Cursor

T = TypeVar("T")
_Word = Annotated[str, msgspec.Meta(pattern=r"^[a-z-]{1,20}(?![\s\S])")]
_Number = Annotated[int, msgspec.Meta(gt=-1_000_000, lt=1_000_000)]
Detail = Annotated[dict[_Word, _Number | bool | _Word | None], msgspec.Meta(max_length=4)]
"""The detail of an event: nothing can be deleted from the log, so nobody's own text may go into it."""
PAUSE_SECONDS: Final = 15


@dataclass(frozen=True)
class Call:
    """A call by the script of the item screen: who calls, and the object that was posted."""

    request: Request
    site: Site
    token: str
    body: dict[str, Any]
    now: float

    def text(self, name: str, *, longest: int = 64) -> str:
        """A text of the object, or a refusal."""
        value = self.body.get(name)
        if not isinstance(value, str) or not 0 < len(value) <= longest:
            raise Refusal(f"'{name}' must be text of 1 to {longest} characters.", 422, "illegal")
        return value

    async def write(self, work: Callable[[Cursor, int], T]) -> T:
        """Runs a request in the name of the session's annotator, who must be at work."""

        def for_annotator(cursor: Cursor) -> T:
            annotator = known(cursor, self.token)
            if annotator.state not in ("working", "finished") or annotator.withdrawn:
                raise Refusal("Please go through the first pages of this project.", 409, "state")
            return work(cursor, annotator.id)

        return await self.site.database.write(for_annotator)

    async def record(self, step: Callable[..., T], **what: Any) -> T:
        """Takes a step of the annotator's work (`assignment.heartbeat`), and returns what it does."""
        return await self.write(
            lambda cursor, annotator: step(cursor, self.site.project, annotator, now=self.now, **what)
        )

    def after(self, cursor: Cursor, annotator: int, *, tab: str) -> dict[str, Any]:
        """What comes next, and the picture that will most likely come after it, so that it can be fetched ahead."""
        project = self.site.project
        step = assignment.next_item(cursor, project, annotator, now=self.now, tab=tab)
        if isinstance(step, Finished):
            return {"state": "finished", "url": "/finish"}
        if isinstance(step, Elsewhere):
            return {"state": "elsewhere"}
        if not isinstance(step, Assigned):
            return {"state": "nothing", "retry_seconds": step.retry_seconds}
        reply = self.item(step)
        if step.item.media is not None and step.number < step.of:
            likely = choosing.likely_next(cursor, project, annotator, number=step.number + 1)
            if likely is not None and likely.media is not None:
                reply["preload"] = [self.site.offered.offer(self.token, likely.media)]
        return reply

    def item(self, assigned: Assigned) -> dict[str, Any]:
        """An item as the browser gets it."""
        site = self.site
        return {
            "state": "item",
            "assignment": assigned.assignment,
            "number": assigned.number,
            "of": assigned.of,
            "item": shown(site, self.token, media=assigned.item.media, text=assigned.item.text, order=assigned.classes),
            "classes": named_classes(site.project, assigned.classes),
            "layout": site.project.layout,
            "heartbeat_seconds": site.project.lease.heartbeat,
            # A finished item has no lease; but the next item waits for whoever went back, for as long as this.
            "expires_in": site.project.lease.seconds if assigned.done else max(0.0, assigned.expires - site.now()),
            "draft": assigned.draft,
            "preload": [],
        }

    def paused(self) -> dict[str, Any]:
        """What the script is told while the project is paused."""
        sentence = language_of(self.request).say(
            "The researchers have paused the project. Your answers are saved, and this page carries on by itself."
        )
        return {"state": "paused", "retry_seconds": PAUSE_SECONDS, "error": sentence, "kind": "paused"}


async def called(request: Request) -> Call:
    """A call, whose token is checked."""
    site, token = site_of(request), session_of(request)
    return Call(request, site, token, await posted_json(request, token), site.now())


async def session(request: Request) -> Response:
    """What a browser may know about its own session."""
    site, token, now = site_of(request), session_of(request), site_of(request).now()

    def look(cursor: Cursor) -> tuple[str, str]:
        annotator = known(cursor, token)
        return annotator.state, screens_of(cursor, site.project, annotator, now=now)[0]

    state, screen_due = await site.database.read(look)
    return JSONResponse({"state": state, "csrf": csrf_token(token), "screen": screen_due})


async def next_item(request: Request) -> Response:
    """The item to judge now; asking again gives the same one."""
    call = await called(request)
    tab = call.text("tab")
    if call.site.paused:
        return JSONResponse(call.paused(), 503, headers={"Retry-After": str(PAUSE_SECONDS)})
    return JSONResponse(await call.write(lambda cursor, annotator: call.after(cursor, annotator, tab=tab)))


async def save(request: Request) -> Response:
    """Store an answer and hand out the next item, in one transaction; answered when it is on disk."""
    call = await called(request)
    project, now = call.site.project, call.now
    uuid, name, tab = call.text("uuid"), call.text("assignment"), call.text("tab")
    answer = check_answers(project, call.body.get("answers"))

    def store(cursor: Cursor, annotator: int) -> dict[str, Any]:
        receipt = assignment.save(cursor, project, annotator, now=now, assignment=name, uuid=uuid, answer=answer)
        step = call.paused() if call.site.paused else call.after(cursor, annotator, tab=tab)
        hurried = not receipt.duplicate and step["state"] == "item"
        hurried = hurried and reminded(cursor, project, annotator, now=now, seconds=answer.seconds)
        reply = {"saved": True, "duplicate": receipt.duplicate, "late": receipt.late}
        return {**reply, "hurried": hurried, "next": step}

    return JSONResponse(await call.write(store), 201)


async def heartbeat(request: Request) -> Response:
    """A sign of life: the lease is prolonged."""
    call = await called(request)
    lease = await call.record(assignment.heartbeat, assignment=call.text("assignment"), tab=call.text("tab"))
    return JSONResponse({"expires_in": max(0.0, lease.expires - call.now), "mine": lease.mine, "held": lease.held})


async def draft(request: Request) -> Response:
    """Half-filled answers, so that another browser can carry on with them."""
    call = await called(request)
    name, values = call.text("assignment"), call.body.get("values")
    if not isinstance(values, dict):
        raise Refusal("'values' must be an object by class.", 422, "illegal")
    check_values(call.site.project, values)
    await call.write(lambda cursor, annotator: assignment.keep_draft(cursor, annotator, assignment=name, values=values))
    return JSONResponse({"kept": True})


async def problem(request: Request) -> Response:
    """Something is wrong with the item: it is put aside without a vote."""
    call = await called(request)
    about = {"assignment": call.text("assignment"), "reason": call.text("reason", longest=600)}
    await call.record(assignment.report_problem, **about)
    return JSONResponse({"reported": True})


async def back(request: Request) -> Response:
    """Go back one item, where the project allows it."""
    call = await called(request)
    call.text("tab")
    item = await call.record(assignment.back)
    if item is None:
        sentence = language_of(request).say("There is nothing to go back to.")
        return JSONResponse({"state": "none", "error": sentence})
    return JSONResponse(call.item(item))


async def take_over(request: Request) -> Response:
    """Carry on in this tab; the other one stops."""
    call = await called(request)
    tab = call.text("tab")
    await call.write(lambda cursor, annotator: assignment.take_over(cursor, annotator, now=call.now, tab=tab))
    return JSONResponse({"taken": True})


async def event(request: Request) -> Response:
    """Something that a browser reports about itself, for the log."""
    call = await called(request)
    kind, detail = call.text("kind", longest=200), call.body.get("detail")
    if kind not in BROWSER_EVENTS or fits(detail, Detail):
        raise Refusal(
            f"An event is one of {', '.join(BROWSER_EVENTS)}, with numbers and short words for detail.", 422, "illegal"
        )

    def log(cursor: Cursor) -> bool:
        annotator = known(cursor, call.token)
        agreed = annotator.promised is not None
        return agreed and log_bounded(cursor, f"browser {kind}", annotator.id, detail, now=call.now)

    return JSONResponse({"logged": await call.site.database.write(log)})


async def here(request: Request) -> Response:
    """A sign of life of somebody who reads or waits: the screen that is due, and their place in line at the door."""
    call = await called(request)

    def look(cursor: Cursor) -> dict[str, Any]:
        annotator, line = known(cursor, call.token), None
        if annotator.state == "arrived":
            line = wait(cursor, call.site.project, annotator.id, now=call.now).line
        else:
            cursor.execute("UPDATE annotator SET seen_at = ? WHERE id = ?", (call.now, annotator.id))
        return {"screen": screens_of(cursor, call.site.project, annotator, now=call.now)[0], "line": line}

    return JSONResponse(await call.site.database.write(look))


ROUTES: Final = (
    # Routes are tried in this order, so the ones that every item needs come first.
    *(
        Route(path, endpoint, methods=["POST"])
        for path, endpoint in {
            "/api/save": save, "/api/next": next_item, "/api/heartbeat": heartbeat, "/api/draft": draft,
            "/api/problem": problem, "/api/back": back, "/api/take-over": take_over, "/api/event": event,
            "/api/here": here,
        }.items()
    ),
    Route("/api/session", session, methods=["GET"]),
)  # fmt: skip
