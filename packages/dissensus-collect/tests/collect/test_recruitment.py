"""Where participants come from: Prolific, MTurk, plain links; signed links without a network."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any

import pytest

from dissensus.errors import InputError
from dissensus_collect.project.reading import read_project
from dissensus_collect.project.tables import ENDINGS
from dissensus_collect.results.pay import pay_sheet
from dissensus_collect.web.security import ANNOTATOR_COOKIE
from dissensus_collect.work.participants import External, codes_of
from dissensus_collect.work.recruitment import NotInvited, Preview, external_of, read_key_set, way_back
from tests.collect.web import legal_values, visited, web_project

if TYPE_CHECKING:
    from pathlib import Path

jwt = pytest.importorskip("jwt", reason="PyJWT is not installed")
rsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa", reason="cryptography is not installed")

AUDIENCE = "https://votes.test"
PERSON = {"PROLIFIC_PID": "p1", "STUDY_ID": "s1", "SESSION_ID": "x1"}


@pytest.fixture(scope="module")
def key() -> Any:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture
def keys_file(tmp_path: Path, key: Any) -> Path:
    return write_keys(tmp_path / "jwks.json", key)


def write_keys(path: Path, key: Any) -> Path:
    public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
    path.write_text(json.dumps({"keys": [{**public, "kid": "k1", "alg": "RS256", "use": "sig"}]}))
    return path


def signed(key: Any, *, algorithm: str = "RS256", kid: str = "k1", **claims: Any) -> str:
    told = {"aud": AUDIENCE, "exp": 2000, "prolific": {**PERSON, "workspace_id": "w"}, **claims}
    given = {name: value for name, value in told.items() if value is not None}
    token: str = jwt.encode(given, key, algorithm=algorithm, headers={"kid": kid})
    return token


def test_prolific_names_the_person_the_study_and_the_session() -> None:
    assert external_of("prolific", PERSON) == External(platform="prolific", id="p1", study="s1", session="x1")


def test_mturk_names_the_worker_the_hit_and_the_assignment() -> None:
    query = {"workerId": "W", "hitId": "H", "assignmentId": "A"}
    assert external_of("mturk", query) == External(platform="mturk", id="W", study="H", session="A")


def test_a_preview_on_mturk_is_nobody() -> None:
    assert external_of("mturk", {"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE", "hitId": "H"}) == Preview()


def test_a_plain_link_names_nobody_whatever_it_says() -> None:
    assert external_of("plain", PERSON) is None


@pytest.mark.parametrize("lost", PERSON)
@pytest.mark.parametrize("value", [None, "", "a b", "x" * 200, "<script>", "{{%PROLIFIC_PID%}}"])
def test_a_link_without_a_name_or_with_a_malformed_one_is_refused(lost: str, value: str | None) -> None:
    query = {**PERSON, lost: value or ""} if value is not None else {k: v for k, v in PERSON.items() if k != lost}
    with pytest.raises(NotInvited, match="from Prolific"):
        external_of("prolific", query)


def test_a_link_of_another_study_is_refused() -> None:
    assert external_of("prolific", PERSON, study_id="s1") is not None
    with pytest.raises(NotInvited, match="another study"):
        external_of("prolific", PERSON, study_id="s2")


def test_a_signed_link_is_believed_for_its_claims_and_not_for_its_parameters(keys_file: Path, key: Any) -> None:
    keys = read_key_set(keys_file, audience=AUDIENCE)
    query = {"prolific_token": signed(key), "PROLIFIC_PID": "somebody-else"}
    found = external_of("prolific", query, keys=keys, now=1000)
    assert found == External(platform="prolific", id="p1", study="s1", session="x1")


def test_signed_links_that_do_not_hold_are_refused(keys_file: Path, key: Any) -> None:
    keys = read_key_set(keys_file, audience=AUDIENCE)
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    right = signed(key)
    header, _, signature = right.split(".")
    forged = jwt.utils.base64url_encode(
        json.dumps({"aud": AUDIENCE, "exp": 2000, "prolific": PERSON}).encode()
    ).decode()
    tokens = {
        "expired": signed(key, exp=900),
        "without an end": signed(key, exp=None),
        "not yet": signed(key, nbf=1500),
        "for somebody else": signed(key, aud="https://other.test"),
        "for nobody": signed(key, aud=None),
        "by another key": signed(other),
        "by an unknown key": signed(key, kid="k2"),
        "unsigned": signed(None, algorithm="none"),
        "signed with the public key as a secret": jwt.api_jwt.PyJWT().encode(
            {"aud": AUDIENCE, "exp": 2000, "prolific": PERSON}, "x" * 64, algorithm="HS256", headers={"kid": "k1"}
        ),
        "of nobody": signed(key, prolific=None),
        "with words for a person": signed(key, prolific="p1"),
        "with another body": f"{header}.{forged}.{signature}",
        "cut": right[:-4],
        "empty": "",
        "no token at all": "a.b.c",
    }
    for token in tokens.values():
        with pytest.raises(NotInvited):
            external_of("prolific", {"prolific_token": token, **PERSON}, keys=keys, now=1000)
    with pytest.raises(NotInvited):
        external_of("prolific", PERSON, keys=keys, now=1000)


def test_clocks_may_differ_by_half_a_minute(keys_file: Path, key: Any) -> None:
    keys = read_key_set(keys_file, audience=AUDIENCE)
    query = {"prolific_token": signed(key)}
    assert external_of("prolific", query, keys=keys, now=2029) is not None
    with pytest.raises(NotInvited):
        external_of("prolific", query, keys=keys, now=2031)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"keys": []}', '{"keys": [{"kty": "RSA", "kid": "a"}]}', '{"keys": 3}']
)
def test_a_broken_key_set_is_told_with_its_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "jwks.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"jwks\.json"):
        read_key_set(path, audience=AUDIENCE)
    with pytest.raises(InputError, match=r"none\.json"):
        read_key_set(tmp_path / "none.json", audience=AUDIENCE)


def test_the_way_back_carries_the_code() -> None:
    assert way_back("prolific", "C&1").link == "https://app.prolific.com/submissions/complete?cc=C%261"
    assert way_back("plain", "C1").link is None
    assert (
        way_back("plain", "C 1", return_url="https://panel.test/?code={code}").link == "https://panel.test/?code=C%201"
    )


def test_work_is_handed_in_to_mturk_and_to_nobody_who_says_to_be_it() -> None:
    way = way_back("mturk", "C1", session="A", submit_to="https://workersandbox.mturk.com")
    assert way.post_to == "https://workersandbox.mturk.com/mturk/externalSubmit"
    assert way.fields == (("assignmentId", "A"), ("code", "C1"))
    for false in (
        "https://evil.test",
        "https://www.mturk.com.evil.test",
        "http://www.mturk.com",
        "javascript:alert(1)",
    ):
        assert way_back("mturk", "C1", session="A", submit_to=false).post_to is None


# The same through the server.


def test_who_joins_again_from_prolific_is_the_same_participant(tmp_path: Path) -> None:
    project = web_project(tmp_path, changes={"recruitment.kind": '"prolific"'})
    link = "/?PROLIFIC_PID=p1&STUDY_ID=s1&SESSION_ID=x1"
    with visited(project) as site:
        first = site.visitor().work(project, link=link)
        item = first.next()
        assert first.open(link).url.path == "/work"
        assert first.next()["assignment"] == item["assignment"]
        assert site.read("SELECT count(*) FROM annotator") == [(1,)]
        refused = site.visitor().open("/")
        assert (refused.status_code, "from Prolific" in refused.text) == (403, True)
        first.finish(project)
        page = first.open("/finish")
        code = project.recruitment.codes["complete"]
        assert f"https://app.prolific.com/submissions/complete?cc={code}" in page.text


@pytest.mark.parametrize(("kind", "given"), [("plain", "{}"), ("prolific", '{ complete = "C1", full = "F1" }')])
def test_codes_of_endings_without_one_are_random_and_stay_the_same(tmp_path: Path, kind: str, given: str) -> None:
    changes = {"recruitment.kind": f'"{kind}"', "recruitment.codes": given}
    for place in ("one", "other"):
        web_project(tmp_path / place, items=1, k=9, changes=changes)
    link = LINKS.get(kind, "/")
    first, again, other = [codes_shown(tmp_path / place, link.format(place)) for place in ("one", "one", "other")]
    assert first == again, "after a restart"
    assert list(first) == list(ENDINGS)
    made = {ending for ending in ENDINGS if given == "{}" or ending not in ("complete", "full")}
    assert {ending for ending in ENDINGS if first[ending] != other[ending]} == made, "each project has its own"
    assert len(set(first.values())) == len(ENDINGS)
    assert all(re.fullmatch("[0-9A-F]{8}", first[ending]) for ending in made)


def codes_shown(folder: Path, link: str) -> dict[str, str]:
    """Return the codes of a served project. Check that participants and the researcher see the same codes."""
    project = read_project(folder)
    with visited(project) as site:
        codes = site.database.read_now(lambda cursor: codes_of(cursor, project))
        visitor = site.visitor().work(project, link=link) if not site.read("SELECT 1 FROM annotator") else None
        if visitor is not None:
            visitor.finish(project)
            assert codes["complete"] in visitor.open("/finish").text
        (line,) = site.database.read_now(lambda cursor: pay_sheet(cursor, project))
        assert line.code == codes["complete"]
        page = site.researcher().open("/researcher/").text
        assert all(f"<code>{code}</code>" in page for code in codes.values())
    return codes


LINKS = {
    "prolific": "/?PROLIFIC_PID={}&STUDY_ID=s1&SESSION_ID=x1",
    "mturk": "/?workerId={}&hitId=h1&assignmentId=x1",
}


@pytest.mark.parametrize(
    ("kind", "state", "cookie"),
    [
        ("prolific", "consented", "none"),
        ("prolific", "working", "another person's"),
        ("prolific", "finished", "none"),
        ("mturk", "working", "made up"),
    ],
)
def test_arrival_with_the_id_of_somebody_else_neither_resumes_nor_withdraws(
    tmp_path: Path, kind: str, state: str, cookie: str
) -> None:
    project = web_project(tmp_path, changes={"recruitment.kind": f'"{kind}"'})
    with visited(project) as site:
        person, thief = site.visitor(), site.visitor()
        if state == "consented":
            person.open(LINKS[kind].format("p1"))
            person.form("/consent", agreed="yes")
        else:
            person.work(project, link=LINKS[kind].format("p1"))
            person.save(person.next(), legal_values(project))
        if state == "finished":
            person.finish(project)
        if cookie == "another person's":
            thief.work(project, link=LINKS[kind].format("p2"))
        elif cookie == "made up":
            thief.client.cookies.set(ANNOTATOR_COOKIE, "made-up", domain="project.test")
        whole = "SELECT state, done, withdrawn_at FROM annotator WHERE id = 1"
        before, answers = site.read(whole), site.read("SELECT count(*) FROM judgement")
        sessions = site.read("SELECT count(*) FROM session WHERE annotator = 1")
        refused = thief.open(LINKS[kind].format("p1"))
        assert (refused.status_code, "belongs to the browser" in refused.text) == (403, True)
        thief.open("/withdraw")
        thief.form("/withdraw", answers="delete")
        assert (site.read(whole), site.read("SELECT count(*) FROM judgement")) == (before, answers)
        assert site.read("SELECT count(*) FROM session WHERE annotator = 1") == sessions
        due = {"consented": "/instructions", "working": "/work", "finished": "/finish"}[state]
        assert person.open(LINKS[kind].format("p1")).url.path == due, "by their own cookie"


def test_arrival_before_consent_may_move_to_another_device(tmp_path: Path) -> None:
    project = web_project(tmp_path, changes={"recruitment.kind": '"prolific"'})
    with visited(project) as site:
        phone, computer = site.visitor(), site.visitor()
        phone.open(LINKS["prolific"].format("p1"))
        computer.work(project, link=LINKS["prolific"].format("p1"))
        assert phone.form("/consent", agreed="no").status_code == 401, "there is one session"
        assert computer.finish(project) == 3
        assert site.read("SELECT state FROM annotator") == [("finished",)]


def test_arrival_by_a_signed_link_goes_on_without_the_cookie(tmp_path: Path, key: Any) -> None:
    folder = tmp_path / "project"
    project = web_project(folder, changes={"recruitment.kind": '"prolific"\njwks = "jwks.json"'})
    write_keys(folder / "jwks.json", key)
    with visited(project, base_url=AUDIENCE) as site:
        site.time[0] = now = time.time()
        link = f"/?prolific_token={signed(key, exp=now + 60)}"
        first, second = site.visitor(base_url=AUDIENCE), site.visitor(base_url=AUDIENCE)
        first.open(link)
        first.form("/consent", agreed="yes", origin=AUDIENCE)
        assert second.open(link).url.path == "/instructions"
        assert site.read("SELECT count(*) FROM annotator") == [(1,)]


def test_a_project_with_a_key_set_lets_in_signed_links_only(tmp_path: Path, key: Any) -> None:
    folder = tmp_path / "project"
    project = web_project(folder, changes={"recruitment.kind": '"prolific"\njwks = "jwks.json"'})
    write_keys(folder / "jwks.json", key)
    with pytest.raises(InputError, match="base URL"), visited(project):
        pass
    with visited(project, base_url=AUDIENCE) as site:
        site.time[0] = now = time.time()
        visitor = site.visitor(base_url=AUDIENCE)
        assert visitor.open("/?PROLIFIC_PID=p1&STUDY_ID=s1&SESSION_ID=x1").status_code == 403
        assert site.read("SELECT count(*) FROM annotator") == [(0,)]
        token = signed(key, exp=now + 60)
        assert visitor.open(f"/?prolific_token={token}").url.path == "/consent"
        assert site.read("SELECT external FROM identity") == [("p1",)]


def test_on_mturk_a_preview_makes_nobody_and_the_end_is_handed_in(tmp_path: Path) -> None:
    project = web_project(tmp_path, changes={"recruitment.kind": '"mturk"'})
    with visited(project) as site:
        visitor = site.visitor()
        preview = visitor.open("/?assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE&hitId=H")
        assert "preview" in preview.text
        assert site.read("SELECT count(*) FROM annotator") == [(0,)]
        link = "/?workerId=W&assignmentId=A1&hitId=H&turkSubmitTo=https%3A%2F%2Fwww.mturk.com"
        visitor.work(project, link=link).finish(project)
        page = visitor.open("/finish")
        assert 'action="https://www.mturk.com/mturk/externalSubmit"' in page.text
        assert 'name="assignmentId" value="A1"' in page.text
        assert "https://www.mturk.com" in page.headers["content-security-policy"]
