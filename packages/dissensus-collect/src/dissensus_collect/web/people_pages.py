"""The researcher's pages about people: their quality, their answers, and their pay."""

from __future__ import annotations

import io
import zipfile
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import RedirectResponse, Response

from dissensus_collect.results.overview import said
from dissensus_collect.results.pay import PayLine, bulk_files, decide_pay, pay_sheet, realised, realised_by_group
from dissensus_collect.results.quality import AnnotatorQuality, annotator_facts
from dissensus_collect.web.desk import Desk, desk_of, required
from dissensus_collect.web.listing import LongList
from dissensus_collect.web.security import Refusal, keyed_name
from dissensus_collect.web.site import Decided
from dissensus_collect.work import leaving

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from starlette.requests import Request

    from dissensus_collect.results.overview import Overview
    from dissensus_collect.store.database import Cursor

AT_ONCE: Final = 100
"""The most people that are decided about in one transaction."""
PEOPLE: Final = LongList[AnnotatorQuality](
    name="pseudonym",
    filters={
        "all": ("Everybody", lambda person: True),
        "flagged": ("With flags", lambda person: bool(person.flags) and person.counts),
        "counting": ("Counting", lambda person: person.counts),
        "excluded": ("Excluded", lambda person: not person.counts),
    },
    columns={
        "flags": ("annotator", True),
        "judgements": ("items", True),
        "gold_missed": ("gold missed", True),
        "agreement": ("agreement with the others", False),
        "reliability": ("reliability", False),
        "seconds": ("seconds per item", False),
        "unsure": ("unsure", True),
        "straight_lining": ("all alike", True),
        "counts": ("counts", False),
    },
    most=25,
)
PAY: Final = LongList[PayLine](
    name="pseudonym",
    filters={
        "all": ("Everybody", lambda line: True),
        "open": ("To decide", lambda line: line.open),
        "clear": ("To decide, no flag", lambda line: line.open and not line.flags),
        "flagged": ("With flags", lambda line: bool(line.flags)),
        "decided": ("Decided", lambda line: line.decision is not None),
    },
    columns={
        "annotator": ("annotator", False),
        "pay": ("pay", True),
        "bonus": ("bonus", True),
        "items": ("done", False),
        "minutes": ("minutes", False),
        "active_minutes": ("on items", False),
        "code": ("code", False),
        "decision": ("decided", False),
    },
    most=50,
)


async def quality(request: Request) -> Response:
    """Every annotator compared with the panel, and how well the panel agrees on each question."""
    desk = await desk_of(request)
    seen, undo = await desk.overview(), desk.site.undo.get(keyed_name(desk.session, "undo"))
    people = await _people(desk, seen, request.query_params)
    return await desk.page("quality", seen=seen, people=people, undo="" if undo is None else _undo_sentence(undo))


async def _people(desk: Desk, seen: Overview | None, query: Mapping[str, str]) -> Any:
    return await desk.study(lambda cursor: PEOPLE.listed([] if seen is None else seen.people_now(cursor), query))


def _undo_sentence(last: Decided) -> str:
    n = len(last.before)
    return f"{n} {'person was' if n == 1 else 'people were'} {last.what}d."


async def person(request: Request) -> Response:
    """One annotator, with everything that is known, what they answered, and what can be decided."""
    desk, number = await desk_of(request), request.path_params["annotator"]
    seen = await desk.overview()
    facts, answers = await desk.read(
        lambda cursor: (annotator_facts(cursor, number), said(cursor, desk.project, annotator=number))
    )
    if not facts:
        raise Refusal("There is no such page.", 404, "missing")
    known = next((each for each in (seen.people if seen is not None else ()) if each.annotator == number), None)
    return await desk.page("person", facts=facts[0], person=known, answers=answers)


def _chosen(desk: Desk, name: str, whole: Iterable[Any]) -> tuple[int, ...]:
    """The people whom a form is about: those who are ticked, or all of the list that it was sent from."""
    if desk.form.get("whole") == "yes":
        return tuple(row.annotator for row in whole)
    return desk.numbers(name, "Tick the people whom you decide about.")


def _asked_for(desk: Desk) -> dict[str, str]:
    return {name: str(desk.form.get(name, "")) for name in ("show", "find")}


async def decide_on_annotator(request: Request) -> Response:
    """Exclude, include or delete annotators, or take the last such decision back; items are refilled to k votes."""
    what = request.path_params["what"]
    desk = await desk_of(request, role="owner" if what == "delete" else "reviewer")
    site, now, mine = desk.site, desk.now, keyed_name(desk.session, "undo")
    if what not in ("exclude", "include", "delete", "undo"):
        raise Refusal("There is no such page.", 404, "missing")
    taken_back, reason = site.undo.get(mine, Decided("exclude")) if what == "undo" else Decided(what), desk.reason()
    if what == "undo":
        people = tuple(annotator for annotator, _, _ in taken_back.before)
        what, reason = "include" if taken_back.what == "exclude" else "exclude", "taken back"
    else:
        seen = await desk.overview() if desk.form.get("whole") == "yes" else None
        people = _chosen(desk, "annotator", (await _people(desk, seen, _asked_for(desk))).chosen)
    if what == "delete" and desk.form.get("sure") != "yes":
        raise Refusal("Tick that you are sure; what is deleted cannot be brought back.", 422, "incomplete")
    if what != "delete":
        required(reason)

    def decide(cursor: Cursor, people: Sequence[int]) -> tuple[Any, ...]:
        if what == "delete":
            for annotator in people:
                leaving.delete_participant(cursor, annotator, now=now, by=desk.account.name)
            return ()
        step = leaving.exclude if what == "exclude" else leaving.include
        among = f"({', '.join('?' * len(people)) or 'NULL'})"
        changed = cursor.execute(
            f"SELECT id, kept, reason FROM annotator WHERE counts = ? AND id IN {among}",
            (int(what == "exclude"), *people),
        ).fetchall()
        for annotator in people:
            step(cursor, annotator, now=now, reason=reason, by=desk.account.name)
        # Whoever was under the gold rule is again, and an older reason is the reason again.
        cursor.executemany(
            "UPDATE annotator SET kept = ?, reason = ? WHERE id = ?",
            [(kept, before, annotator) for annotator, kept, before in taken_back.before if annotator in people],
        )
        return tuple(changed)

    changed: tuple[Any, ...] = ()
    for first in range(0, len(people), AT_ONCE):
        # Annotators' answers come between.
        changed += await desk.write(partial(decide, people=people[first : first + AT_ONCE]))
    site.undo.pop(mine, None)
    if changed and request.path_params["what"] != "undo":
        site.undo[mine] = Decided(what, changed)
    return RedirectResponse("/researcher/quality", 303)


async def pay(request: Request) -> Response:
    """What everybody is due, and what was decided."""
    desk = await desk_of(request, role="reviewer")
    lines = await desk.study(lambda cursor: pay_sheet(cursor, desk.project))
    people = PAY.listed(lines, request.query_params)
    return await desk.page("pay", people=people, realised=realised(lines), by_group=realised_by_group(lines))


async def decide_on_pay(request: Request) -> Response:
    """Approve or reject the pay of everybody who was ticked."""
    desk = await desk_of(request, role="owner")
    lines = await desk.study(lambda cursor: pay_sheet(cursor, desk.project))
    decision = "rejected" if desk.form.get("decision") == "rejected" else "approved"
    listed = PAY.listed(lines, _asked_for(desk))
    flags = decision == "rejected" or listed.show == "flagged"
    undecided = (line for line in listed.chosen if (line.decision is None or line.open) and (flags or not line.flags))
    people = _chosen(desk, "chosen", undecided)
    try:
        bonus = float(str(desk.form.get("bonus", "")) or 0)
    except ValueError:
        raise Refusal("A bonus is a number.", 422, "illegal") from None
    about: dict[str, Any] = {"decision": decision, "bonus": bonus, "reason": desk.reason(), "by": desk.account.name}
    await desk.write(lambda cursor: decide_pay(cursor, desk.project, people, now=desk.now, **about))
    return RedirectResponse("/researcher/pay", 303)


async def download_pay(request: Request) -> Response:
    """The decisions in the bulk formats of the recruitment platform."""
    desk = await desk_of(request, role="owner")
    kind, again = desk.project.recruitment.kind, desk.form.get("again") == "yes"
    files = await desk.write(lambda cursor: bulk_files(cursor, kind, now=desk.now, again=again))
    await desk.log("pay downloaded")
    return zip_file({name: text.encode() for name, text in files.items()}, f"{kind}-pay.zip")


def zip_file(files: Mapping[str, bytes], name: str) -> Response:
    """Files as one archive to download."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for inside, content in files.items():
            archive.writestr(inside, content)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(packed.getvalue(), media_type="application/zip", headers=headers)
