"""Several researchers on one project: what each role may do, and that the log names them."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from dissensus.errors import InputError
from dissensus_collect.cli import app
from dissensus_collect.web.logins import Logins
from dissensus_collect.web.researcher_pages import ROUTES
from tests.collect.panels import judge_all, text_project
from tests.collect.web import Visited, Visitor, visited

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def said(number: int) -> dict[str, str]:
    return {"cat": "yes" if number % 2 else "no", "dog": "unsure"}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Visited]:
    with visited(text_project(tmp_path, items=3, k=2)) as served:
        for _ in range(2):
            judge_all(served.database, served.project, said)
        yield served


def logged_in(site: Visited, name: str, role: str) -> Visitor:
    logins: Logins = site.app.state.site.logins
    if name != "researcher":
        logins.set_role(name, role)
    visitor, link = site.visitor(), logins.one_time_link(name)
    visitor.open(link)
    assert visitor.form(link).status_code == 200
    return visitor


OWNERS = ("pause", "resume", "close", "reopen", "pay", "pay/download", "adaptive/round", "export/download")


def test_readers_change_nothing_and_reviewers_neither_pay_nor_export_nor_delete(site: Visited) -> None:
    reader, reviewer = logged_in(site, "rita", "reader"), logged_in(site, "ravi", "reviewer")
    posts = {route.path.removeprefix("/researcher/") for route in ROUTES if "POST" in (route.methods or ())}
    posts -= {"login", "enter/{token}", "leave"}
    assert set(OWNERS) < posts
    before = site.read("SELECT count(*) FROM event WHERE kind NOT LIKE 'researcher%'")
    for path in posts:
        whats = ("exclude", "include", "delete", "undo", "retire", "void", "put-back", "unvoid")
        for what in whats if "{what}" in path else ("",):
            asked = f"/researcher/{path.replace('{what}', what)}"
            assert reader.form(asked, follow=False).status_code == 403, asked
            if path in OWNERS or (path.startswith("annotator") and what == "delete"):
                assert reviewer.form(asked, follow=False).status_code == 403, asked
            else:
                assert reviewer.form(asked, follow=False).status_code != 403, asked
    assert site.read("SELECT count(*) FROM event WHERE kind NOT LIKE 'researcher%'") == before, "refused or incomplete"
    assert reader.get("/researcher/pay").status_code == reader.get("/researcher/export").status_code == 403
    assert reviewer.get("/researcher/export").status_code == 403
    assert reader.form("/researcher/leave", follow=False).status_code == 303


def test_readers_see_neither_names_nor_answers(site: Visited) -> None:
    ((name,), *_) = site.read("SELECT pseudonym FROM annotator ORDER BY id")
    reader, owner = logged_in(site, "rita", "reader"), logged_in(site, "researcher", "owner")
    pages = [
        f"/researcher/{page}" for page in ("quality", "items", "item/1", "annotator/1", "progress", "adaptive", "")
    ]
    assert not [page for page in pages if name in reader.open(page).text]
    assert "person 1" in reader.open("/researcher/item/1").text
    assert name in owner.open("/researcher/item/1").text
    assert "dog: Unsure" not in owner.open("/researcher/item/1").text, "hidden while the project runs"
    owner.form("/researcher/reveal", show="yes")
    for page in ("item/1", "annotator/1"):
        assert "dog: Unsure" in owner.open(f"/researcher/{page}").text
        assert "dog: Unsure" not in reader.open(f"/researcher/{page}").text


def test_every_action_is_in_the_log_by_name(site: Visited) -> None:
    ravi = logged_in(site, "ravi", "reviewer")
    ravi.form("/researcher/annotator/exclude", annotator="1", reason="asleep")
    ravi.form("/researcher/item/retire", item="1", reason="broken")
    logged_in(site, "olga", "owner").form("/researcher/pause")
    found = {kind: json.loads(detail).get("by") for kind, detail in site.read("SELECT kind, detail FROM event")}
    assert {kind: found[kind] for kind in ("excluded", "item retired", "paused")} == {
        "excluded": "ravi", "item retired": "ravi", "paused": "olga",
    }  # fmt: skip


def test_an_account_that_is_removed_or_has_another_password_is_out_at_once(site: Visited) -> None:
    logins: Logins = site.app.state.site.logins
    ravi = logged_in(site, "ravi", "reviewer")
    logins.set_role("ravi", "reader")
    assert ravi.form("/researcher/annotator/exclude", follow=False).status_code == 403, "a role counts from now on"
    logins.set_password("correct horse battery", "ravi")
    assert ravi.get("/researcher/progress").status_code == 303
    for name, password, status in (
        ("ravi", "correct horse battery", 303), ("ravi", "wrong", 403), ("nobody", "correct horse battery", 403),
        ("researcher", "correct horse battery", 403),
    ):  # fmt: skip
        visitor = site.visitor()
        visitor.open("/researcher/login")
        answer = visitor.form("/researcher/login", follow=False, username=name, password=password)
        assert answer.status_code == status, name
        ravi = visitor if status == 303 else ravi
    logins.set_role("ravi", None)
    assert ravi.get("/researcher/progress").status_code == 303
    for name, role in (("researcher", "reader"), ("researcher", None), ("ravi", "king"), ("", "owner"), ("x", None)):
        with pytest.raises(InputError):
            logins.set_role(name, role)


def test_accounts_are_made_and_removed_on_the_command_line_and_secrets_stay_off_it(site: Visited) -> None:
    folder = str(site.project.folder)
    site.app.state.site.logins.set_address("http://project.test")
    typed = partial(CliRunner().invoke, app, catch_exceptions=True)
    made = json.loads(typed(["login", folder, "--name", "ana", "--role", "reader", "--json", "-"]).stdout)
    assert made["accounts"] == {"researcher": "owner", "ana": "reader"}
    assert made["researcher"].startswith("http://project.test/researcher/enter/")
    (site.project.folder / "secret").write_text("a long password\n")
    typed(["login", folder, "--name", "ana", "--password-file", str(site.project.folder / "secret")])
    logins = Logins(site.project.folder, clock=lambda: site.time[0])
    assert logins.enter_by_password("ana", "a long password")
    gone = json.loads(typed(["login", folder, "--name", "ana", "--remove", "--json", "-"]).stdout)
    assert gone["accounts"] == {"researcher": "owner"}
    for url in ("postgresql://me:secret@host/name", "postgresql://host/name?user=me&password=secret"):
        refused = typed(["status", folder, "--database", url])
        assert isinstance(refused.exception, InputError)
        assert "PGPASSWORD" in str(refused.exception)
        told = typed(["status", folder], env={"DISSENSUS_DATABASE": url})
        assert "PGPASSWORD" not in str(told.exception), "the environment may hold it"
    assert typed(["serve", folder, "--password", "secret"]).exit_code == 2, "there is no such option"
