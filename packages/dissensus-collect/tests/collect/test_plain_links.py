"""Plain links, by which one person can be several annotators: flagged, never blocked, unless there are codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typer.testing import CliRunner

from dissensus_collect.cli.shared import app
from dissensus_collect.project.setup_check import check_setup
from tests.collect.web import visited, web_project

if TYPE_CHECKING:
    from pathlib import Path


def test_the_setup_check_says_what_a_plain_link_allows(tmp_path: Path) -> None:
    said = [check.sentence for check in check_setup(web_project(tmp_path, k=5)) if check.kind == "warning"]
    assert any("one person can give all 5 votes by a plain link" in each for each in said)
    other = web_project(tmp_path / "other", changes={"recruitment.kind": '"prolific"'})
    assert not any("plain link" in check.sentence for check in check_setup(other))


def test_sessions_of_one_address_and_device_are_flagged_and_let_in(tmp_path: Path) -> None:
    project = web_project(tmp_path, items=2, k=5)
    with visited(project) as site:
        for address, agent in (("10.0.0.1", "Fox"), ("10.0.0.1", "Fox"), ("10.0.0.1", "Owl"), ("10.0.0.2", "Fox")):
            visitor = site.visitor(address=address)
            visitor.client.headers["User-Agent"] = agent
            assert visitor.work(project).finish(project) == 2
        page = site.researcher().open("/researcher/quality").text
        assert page.count("one of 2 sessions from the same address and device") == 2
        assert "2 sessions share an address and a device" in page
        assert "10.0.0" not in str(site.read("SELECT address, device FROM annotator")), "hashes only"
        assert site.read("SELECT count(DISTINCT address), count(DISTINCT device) FROM annotator") == [(2, 3)]


def test_codes_let_one_person_in_each_and_nobody_without_one(tmp_path: Path) -> None:
    project = web_project(tmp_path, items=2, k=5)
    run = CliRunner()
    assert "has not been served yet" in str(run.invoke(app, ["invite", str(tmp_path), "--codes", "2"]).exception)
    with visited(project) as site:
        site.app.state.site.logins.set_address("http://project.test")
        early = site.visitor().work(project)
        told = run.invoke(app, ["invite", str(tmp_path), "--codes", "2"])
        first, second = [line for line in told.stdout.splitlines() if line.startswith("http://project.test/?code=")]
        for link in ("/", "/?code=guessed"):
            refused = site.visitor().open(link)
            assert refused.status_code == 403
            assert "please open the link that you were sent" in refused.text
        one = site.visitor().work(project, link=first.removeprefix("http://project.test"))
        one.finish(project)
        again = site.visitor()
        page = again.open(first.removeprefix("http://project.test"))
        assert page.url.path == "/finish", "whoever clears the cookies is the same person"
        site.visitor().work(project, link=second.removeprefix("http://project.test"))
        assert early.finish(project) == 2, "those who are inside carry on"
        assert site.read("SELECT count(*) FROM annotator") == [(3,)]
