"""Every route as everybody: an annotator reaches nothing of another's and nothing of the researcher's.

The routes are taken from the app itself, so that one that is added later is walked too, and fails here until somebody
has said whose it is.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.routing import Mount, Route

from dissensus_collect.web.security import ANNOTATOR_COOKIE, RESEARCHER_COOKIE
from tests.collect.conftest import ASKED, CHECKED
from tests.collect.web import ORIGIN, legal_values, visited, web_project

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from tests.collect.web import Visited, Visitor

ANYONE, ANNOTATOR, RESEARCHER = "anyone", "annotator", "researcher"
WHOSE = {
    "/": ANYONE,
    "/static": ANYONE,
    "/health": ANYONE,
    "/researcher/login": ANYONE,
    "/researcher/enter/{token}": ANYONE,
    "/door": ANNOTATOR,
    "/eligibility": ANNOTATOR,
    "/consent": ANNOTATOR,
    "/instructions": ANNOTATOR,
    "/practice": ANNOTATOR,
    "/comprehension": ANNOTATOR,
    "/screen": ANNOTATOR,
    "/work": ANNOTATOR,
    "/questions": ANNOTATOR,
    "/finish": ANNOTATOR,
    "/withdraw": ANNOTATOR,
    "/media/{name}": ANNOTATOR,
    "/api/session": ANNOTATOR,
    "/api/next": ANNOTATOR,
    "/api/save": ANNOTATOR,
    "/api/heartbeat": ANNOTATOR,
    "/api/draft": ANNOTATOR,
    "/api/problem": ANNOTATOR,
    "/api/back": ANNOTATOR,
    "/api/take-over": ANNOTATOR,
    "/api/event": ANNOTATOR,
    "/api/here": ANNOTATOR,
    "/researcher": ANYONE,
    "/researcher/": RESEARCHER,
    "/researcher/leave": RESEARCHER,
    "/researcher/progress": RESEARCHER,
    "/researcher/api/progress": RESEARCHER,
    "/researcher/quality": RESEARCHER,
    "/researcher/items": RESEARCHER,
    "/researcher/item/{item:int}": RESEARCHER,
    "/researcher/item/{what}": RESEARCHER,
    "/researcher/items/refresh": RESEARCHER,
    "/researcher/items/put-back": RESEARCHER,
    "/researcher/pay": RESEARCHER,
    "/researcher/pay/download": RESEARCHER,
    "/researcher/adaptive": RESEARCHER,
    "/researcher/export": RESEARCHER,
    "/researcher/pause": RESEARCHER,
    "/researcher/resume": RESEARCHER,
    "/researcher/close": RESEARCHER,
    "/researcher/reopen": RESEARCHER,
    "/researcher/annotator/{what}": RESEARCHER,
    "/researcher/annotator/{annotator:int}": RESEARCHER,
    "/researcher/reveal": RESEARCHER,
    "/researcher/adaptive/round": RESEARCHER,
    "/researcher/export/download": RESEARCHER,
}
"""By path of a route: who may ask for it."""

TABLES = ("annotator", "assignment", "judgement", "response", "item", "identity", "final_answer", "decision")


@dataclass
class Walk:
    """Two annotators in the middle of their work, a researcher, and everything that names the second annotator."""

    site: Visited
    one: Visitor
    other: Visitor
    nobody: Visitor
    researcher: Visitor
    item: dict[str, Any]
    names: dict[str, list[str]]

    def state(self) -> list[Any]:
        """Everything that is the second annotator's or nobody's in particular."""
        (annotator,) = self.names["annotator"]
        return [
            self.site.read("SELECT * FROM annotator WHERE id = ?", annotator),
            self.site.read("SELECT * FROM assignment WHERE annotator = ? ORDER BY id", annotator),
            self.site.read(
                "SELECT judgement.*, response.* FROM judgement JOIN response ON response.judgement = judgement.id "
                "JOIN assignment ON assignment.id = judgement.assignment WHERE annotator = ? ORDER BY 1",
                annotator,
            ),
            self.site.read("SELECT * FROM identity"),
            self.site.read("SELECT * FROM final_answer"),
            self.site.read("SELECT * FROM decision"),
            self.site.read("SELECT * FROM payment"),
            self.site.read("SELECT name, retired_at FROM item"),
            self.site.read(
                "SELECT kind FROM event WHERE kind IN ('paused', 'closed', 'excluded', 'deleted', 'exported')"
            ),
        ]

    def secrets(self) -> list[str]:
        """What the first annotator must never read: the second's names, and who anybody is."""
        return [
            each for names in (self.names[n] for n in ("assignment", "media", "token", "pseudonym")) for each in names
        ]


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    project = web_project(
        tmp_path_factory.mktemp("walk"),
        items=6,
        k=3,
        changes={"adaptive.on": "true", "max_k": "4", "budget": "9", "least_width": "900"},
        more=CHECKED + ASKED,
    )
    with visited(project, rate_limits=False, password="open sesame") as site:
        one, other = site.annotator(), site.annotator()
        done = other.next()
        item = other.save(done, legal_values(project)).json()["next"]
        mine = one.next()
        ((number, pseudonym),) = site.read(
            "SELECT annotator.id, pseudonym FROM annotator JOIN assignment ON annotator.id = assignment.annotator "
            "WHERE token = ?",
            item["assignment"],
        )
        uuids = [row[0] for row in site.read("SELECT uuid FROM judgement")]
        names = {
            "annotator": [str(number)],
            "pseudonym": [pseudonym],
            "assignment": [item["assignment"], done["assignment"]],
            "media": [each["item"]["src"].rsplit("/", 1)[1] for each in (item, done)],
            "token": [other.token, other.client.cookies[ANNOTATOR_COOKIE]],
            "uuid": uuids,
            "tab": [other.tab],
        }
        yield Walk(site, one, other, site.visitor(), site.researcher(), {"mine": mine, **item}, names)


def routes(site: Visited) -> list[tuple[str, str]]:
    """Every path of the app with every method it takes."""
    found = []
    for route in site.app.routes:
        if isinstance(route, Mount):
            found.append((route.path, "GET"))
        else:
            assert isinstance(route, Route), f"{route} is of a kind that this walk does not know"
            found += [(route.path, method) for method in sorted(route.methods or ())]
    return found


def test_every_route_is_somebodys(walk: Walk) -> None:
    paths = {path for path, _ in routes(walk.site)}
    assert paths == WHOSE.keys(), "say in WHOSE who may ask for a new route"


def filled(path: str, walk: Walk, *, name: str) -> str:
    """A path with the second annotator's names in it."""
    ((judged,),) = walk.site.read("SELECT max(id) FROM annotator WHERE done > 0")
    path = path.replace("{what}", "delete").replace("{annotator:int}", str(judged)).replace("{item:int}", "1")
    return re.sub(r"\{.*?\}", name, path)


def bodies(walk: Walk) -> dict[str, Any]:
    """A body with every name of the second annotator that a route might believe."""
    names = walk.names
    return {
        "annotator": names["annotator"][0],
        "annotator_id": names["annotator"][0],
        "pseudonym": names["pseudonym"][0],
        "assignment": names["assignment"][0],
        "uuid": names["uuid"][0],
        "tab": names["tab"][0],
        "session": names["token"][1],
        "reason": "because",
        "sure": "yes",
        "show": "yes",
        "identities": "yes",
        "values": {"0": "yes"},
        "answer-0": "Unsure",
        "kind": "image-failed",
        "detail": {},
        "answers": {"values": legal_values(walk.site.project)},
    }


def asked(visitor: Visitor, method: str, path: str, body: dict[str, Any], *, token: str) -> httpx.Response:
    """A request with the best forgery: our origin, a token, the body as a script's and as a form's."""
    headers = {"Origin": ORIGIN, "X-CSRF-Token": token}
    if method in ("GET", "HEAD"):
        query = {key: value for key, value in body.items() if isinstance(value, str)}
        return visitor.request(method, path, headers=headers, params=query)
    if "/api/" in path:
        return visitor.request(method, path, headers=headers, json=body)
    fields = {key: value if isinstance(value, str) else json.dumps(value) for key, value in body.items()}
    return visitor.request(method, path, headers=headers, data={**fields, "csrf": token})


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_an_annotator_reaches_nothing_of_another_and_nothing_of_the_researcher(walk: Walk, data: st.DataObject) -> None:
    path, method = data.draw(st.sampled_from(sorted(routes(walk.site))), label="route")
    everything = [each for names in walk.names.values() for each in names]
    at = filled(path, walk, name=data.draw(st.sampled_from(everything), label="name in the path"))
    body = bodies(walk)
    for key in ("assignment", "uuid", "tab"):
        body[key] = data.draw(st.sampled_from(walk.names[key] + everything), label=key)
    token = data.draw(st.sampled_from([walk.one.token, walk.other.token, walk.researcher.token]), label="token")
    before = walk.state()
    answer = asked(walk.one, method, at, body, token=token)
    assert walk.state() == before, "the second annotator's work or the project was changed"
    assert answer.status_code < 500, answer.text
    sent = [at, json.dumps(body)]
    told = answer.text if "image" not in answer.headers.get("content-type", "") else ""
    for secret in walk.secrets():
        # What the asker already sent may come back in an address; nothing else may.
        assert secret not in told or any(secret in each for each in sent), f"{path} tells {secret}"
    if WHOSE[path] == RESEARCHER:
        assert answer.status_code in (303, 401, 405), f"{path} answered {answer.status_code} to an annotator"
        assert answer.headers.get("location", "/researcher/login") == "/researcher/login"
    if path == "/media/{name}":
        assert answer.status_code == 404


def test_the_walk_is_complete_for_every_role(walk: Walk) -> None:
    """Each route once as nobody, as an annotator and (where it only looks) as the researcher."""
    for path, method in routes(walk.site):
        at = filled(path, walk, name=walk.names["media"][0])
        before = walk.state()
        nobody = asked(walk.site.visitor(), method, at, bodies(walk), token="")
        assert walk.state() == before
        if WHOSE[path] == ANNOTATOR:
            assert nobody.status_code in (401, 404), f"{path} answered {nobody.status_code} to nobody"
        if WHOSE[path] == RESEARCHER:
            assert nobody.status_code in (303, 401), f"{path} answered {nobody.status_code} to nobody"
        if method == "POST":
            for visitor in (walk.one, walk.researcher):
                forged = asked(visitor, method, at, bodies(walk), token="")
                assert forged.status_code in (401, 403, 303), f"{path} took a post without a token"
                assert forged.headers.get("location", "/researcher/login") == "/researcher/login"
        if WHOSE[path] == RESEARCHER and method == "GET":
            assert asked(walk.researcher, method, at, {}, token="").status_code == 200


def test_the_researchers_cookie_is_no_annotator_and_the_annotators_no_researcher(walk: Walk) -> None:
    visitor = walk.site.visitor()
    visitor.client.cookies.set(ANNOTATOR_COOKIE, walk.researcher.client.cookies[RESEARCHER_COOKIE])
    assert visitor.get("/api/session").status_code == 401
    visitor.client.cookies.set(RESEARCHER_COOKIE, walk.other.client.cookies[ANNOTATOR_COOKIE])
    assert visitor.get("/researcher/api/progress").status_code == 401


def test_a_picture_belongs_to_the_session_it_was_handed_to(walk: Walk) -> None:
    theirs, mine = walk.item["item"]["src"], walk.item["mine"]["item"]["src"]
    assert walk.other.get(theirs).status_code == 200
    assert walk.one.get(mine).status_code == 200
    assert walk.one.get(theirs).status_code == 404
    assert walk.nobody.get(theirs).status_code == 404
    assert walk.researcher.get(theirs).status_code == 404


def test_the_other_methods_are_refused_everywhere(walk: Walk) -> None:
    for path, _ in routes(walk.site):
        at = filled(path, walk, name="x") + ("/work.js" if path == "/static" else "")
        for method in ("PUT", "PATCH", "DELETE"):
            answer = walk.one.request(method, at, headers={"Origin": ORIGIN, "X-CSRF-Token": walk.one.token})
            assert answer.status_code == 405, (method, at, answer.status_code)
