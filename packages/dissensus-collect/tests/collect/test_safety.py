"""What must hold on a machine that everybody can reach: file modes, addresses, lost files, floods, broken input."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from dissensus.errors import InputError
from dissensus_collect.hosting.serving import serving_warnings
from dissensus_collect.results.export import export_project
from dissensus_collect.store.backup import back_up, restore
from dissensus_collect.store.opening import open_database, snapshot
from dissensus_collect.web.security import checked_base_url
from tests.collect.web import ORIGIN, visited, web_project

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def mode(path: Path) -> str:
    return oct(stat.S_IMODE(path.stat().st_mode))


# Files -----------------------------------------------------------------------------------------------------------


def test_every_file_that_holds_identities_is_for_its_owner_alone(tmp_path: Path) -> None:
    project = web_project(tmp_path / "p", texts=["one"], changes={"recruitment.kind": '"prolific"'})
    before = os.umask(0o022)
    try:
        with visited(project) as site:
            site.visitor().open("/?PROLIFIC_PID=p1&STUDY_ID=s&SESSION_ID=x")
            made = back_up(site.database, project)
            site.researcher()
        with snapshot(project) as cursor:
            export_project(cursor, project, tmp_path / "out", identities=True, formats=("csv", "parquet"))
        restore(project, made)
        kept = list(project.folder.glob("collect-replaced-*"))
    finally:
        os.umask(before)
    assert kept
    secret = [project.folder / "collect.sqlite", made, *kept, project.folder / "logins.json"]
    secret += [tmp_path / "out" / "identities.csv", tmp_path / "out" / "identities.parquet"]
    assert {str(each): mode(each) for each in secret} == {str(each): "0o600" for each in secret}
    assert mode(made.parent) == "0o700"


def test_a_database_that_an_older_version_left_readable_is_closed_when_it_is_opened(tmp_path: Path) -> None:
    project = web_project(tmp_path, texts=["one"])
    open_database(project).close()
    (tmp_path / "collect.sqlite").chmod(0o644)
    open_database(project).close()
    assert mode(tmp_path / "collect.sqlite") == "0o600"


@pytest.mark.parametrize("loss", ["missing", "empty", "only its log is left"])
def test_a_lost_database_beside_backups_is_not_begun_anew_in_silence(tmp_path: Path, loss: str) -> None:
    project = web_project(tmp_path, texts=["one"])
    with open_database(project) as database:
        made = back_up(database, project)
    (tmp_path / "collect.sqlite").unlink()
    if loss == "empty":
        (tmp_path / "collect.sqlite").touch()
    if loss == "only its log is left":
        shutil.rmtree(made.parent)
        (tmp_path / "collect.sqlite-wal").write_bytes(b"what was not copied yet")
    with pytest.raises(InputError, match="restore" if made.exists() else "log"):
        open_database(project)
    if made.exists():
        restore(project, made)
        open_database(project).close()


def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    """A folder where the lock should be: the same errors as on a disk mounted read-only, which root does not get."""
    project = web_project(tmp_path, texts=["one"])
    (tmp_path / "collect.lock").mkdir()
    with pytest.raises(InputError, match=r"collect\.lock.*cannot be written"):
        open_database(project)
    (tmp_path / "collect.lock").rmdir()
    (tmp_path / "collect.sqlite").mkdir()
    with pytest.raises(InputError, match=r"collect\.sqlite"):
        open_database(project)


def test_a_database_damaged_in_the_middle_is_a_sentence_wherever_it_is_read(tmp_path: Path) -> None:
    project = web_project(tmp_path, texts=[f"text {each}" for each in range(400)])
    open_database(project).close()
    path = tmp_path / "collect.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    size = path.stat().st_size
    with path.open("r+b") as file:
        for place in range(8192, size, 4096):
            file.seek(place)
            file.write(b"\xff" * 2048)
    with pytest.raises(InputError, match="restore"):
        open_database(project)
    with pytest.raises(InputError, match="restore"), snapshot(project) as cursor:
        export_project(cursor, project, tmp_path / "out")


# Addresses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("https://study.example.org", "https://study.example.org"),
        ("https://Study.Example.org/", "https://study.example.org"),
        ("https://study.example.org:443", "https://study.example.org"),
        ("http://10.0.0.7:80/", "http://10.0.0.7"),
        ("http://[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_the_base_url_is_written_as_browsers_write_an_origin(given: str, meant: str) -> None:
    assert checked_base_url(given) == meant


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        ("study.example.org", "https://study.example.org"),
        ("localhost:8000", "https://localhost:8000"),
        ("ftp://study.example.org", "https://"),
        ("https://study.example.org/votes", "host name of its own"),
        ("https://study.example.org/?a=1", "host name of its own"),
        ("https://me:secret@study.example.org", "https://study.example.org"),
        ("https://", "https://"),
        ("https://study.example.org:port", "https://"),
        ("https://study example.org", "https://"),
        ("", "https://"),
    ],
)
def test_a_base_url_under_which_posts_would_fail_is_refused(given: str, remedy: str) -> None:
    with pytest.raises(InputError) as refused:
        checked_base_url(given)
    assert remedy in str(refused.value)


def test_the_researchers_door_redirects_within_the_site_whatever_the_host_says(tmp_path: Path) -> None:
    with visited(web_project(tmp_path, texts=["one"]), base_url="https://study.example.org") as site:
        for path in ("/researcher", "/researcher/"):
            answer = site.visitor().get(path, headers={"Host": "evil.example"})
            assert answer.status_code == 303
            assert answer.headers["location"].startswith("/researcher/")
        assert site.visitor().get("/consent/", headers={"Host": "evil.example"}).status_code == 404


@pytest.mark.parametrize(
    ("host", "base_url", "password", "said"),
    [
        ("127.0.0.1", None, None, []),
        ("127.0.0.1", None, "x", ["password"]),
        ("0.0.0.0", None, "x", ["plain HTTP", "password"]),
        ("::", None, None, ["plain HTTP"]),
        ("192.168.1.4", None, "correct horse battery", ["plain HTTP"]),
        ("0.0.0.0", "https://study.example.org", "correct horse battery", ["reach"]),
        ("127.0.0.1", "https://study.example.org", "correct horse battery", []),
        ("127.0.0.1", "http://study.example.org", "correct horse battery", ["plain HTTP"]),
        ("127.0.0.1", None, "aaaaaaaaaaaaaa", ["password"]),
    ],
)
def test_what_is_risky_about_how_it_is_served_is_said(
    host: str, base_url: str | None, password: str | None, said: list[str]
) -> None:
    warned = serving_warnings(host=host, base_url=base_url, password=password)
    assert len(warned) == len(said), warned
    for sentence, word in zip(warned, said, strict=True):
        assert word in sentence


# Too much --------------------------------------------------------------------------------------------------------


def test_too_many_requests_are_a_page_for_a_person_and_json_for_a_script(tmp_path: Path) -> None:
    with visited(web_project(tmp_path, texts=["one"])) as site:
        person = site.visitor()
        for _ in range(1000):
            person.get("/media/x")
        refused = person.get("/consent")
        assert refused.status_code == 429
        assert "<h1>" in refused.text
        assert refused.headers["retry-after"] == "1"
        assert refused.headers["content-security-policy"]
        assert person.post("/api/next").json()["kind"] == "rate"
        newcomers = [site.visitor(address="10.0.0.2") for _ in range(201)]
        last = [each.get("/") for each in newcomers][-1]
        assert (last.status_code, "<h1>" in last.text) == (429, True)


def test_a_proxy_that_is_not_trusted_is_named_to_the_researcher(tmp_path: Path) -> None:
    """Behind it everybody is one address, and the limits would turn people away."""
    with visited(web_project(tmp_path, texts=["one"]), base_url=ORIGIN) as site:
        desk = site.researcher()
        assert "trusted-proxy" not in desk.open("/researcher/progress").text
        site.visitor(address="172.18.0.2").get("/", headers={"X-Forwarded-For": "81.2.69.142"})
        assert "--trusted-proxy 172.18.0.2" in desk.open("/researcher/progress").text


PATIENCE = 120.0
"""Seconds after which an answer is given up; no machine is so busy."""
SERVE = """
import sys
from dissensus_collect.project.reading import read_project
from dissensus_collect.hosting.serving import serve_project
given = {"port": int(sys.argv[2]), "base_url": "http://project.test"}
serve_project(read_project(sys.argv[1]), **given, ready=lambda links: print(links.annotator, flush=True))
"""


@contextmanager
def serving(folder: Path) -> Iterator[tuple[tuple[str, int], Path]]:
    """A server in a process of its own, and its log."""
    log = folder / "log.txt"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with log.open("w") as written:
        process = subprocess.Popen(
            [sys.executable, "-c", SERVE, str(folder), str(port)],
            stdout=subprocess.PIPE,
            stderr=written,
            text=True,
        )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, log.read_text()
        assert line == "http://project.test/\n"
        yield ("127.0.0.1", port), log
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)
        process.stdout.close()


def ask(place: tuple[str, int], path: bytes = b"/static/icon.svg", *, more: bytes = b"") -> bytes:
    with socket.create_connection(place, timeout=PATIENCE) as line:
        line.settimeout(PATIENCE)
        line.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n" + more + b"Connection: close\r\n\r\n")
        answer = b""
        while got := line.recv(65536):
            answer += got
        return answer


# Broken input ----------------------------------------------------------------------------------------------------


def test_json_that_no_page_sends_is_refused_with_a_sentence_and_not_with_a_failure(tmp_path: Path) -> None:
    with visited(web_project(tmp_path, texts=["one"])) as site:
        person = site.annotator()
        item = person.next()
        headers = {"Origin": ORIGIN, "X-CSRF-Token": person.token, "Content-Type": "application/json"}

        def sent(body: str) -> int:
            answer = person.request("POST", "/api/save", content=body.encode("utf-8", "surrogatepass"), headers=headers)
            assert answer.json()["error"]
            return int(answer.status_code)

        asked = json.dumps(item["assignment"])
        assert sent('{"a":' * 9000 + "1" + "}" * 9000) == 400
        assert sent("[" * 30000) == 400
        assert sent('{"uuid": "\\ud800", "tab": "t", "assignment": ' + asked + ', "answers": {"values": {}}}') == 400
        assert sent('{"uuid": "\ud800", "tab": "t"}') == 400
        assert sent('{"tab": "t", "uuid": "u", "assignment": "\\udfff", "answers": {"values": {"0": "no"}}}') == 400
        assert sent('{"tab": "\\u0000", "uuid": "\\u0000", "assignment": ' + asked + ', "answers": {}}') in (400, 422)
        assert sent('{"tab": NaN}') in (400, 422)
        # A pair of surrogates is a character like any other.
        answer = person.post("/api/problem", assignment=item["assignment"], reason="broken \U0001f600")
        assert answer.status_code == 200
        nested = json.dumps([{"values": {}}]).replace("{}", "[" * 5000 + "]" * 5000)
        assert site.visitor().form("/consent", agreed="yes").status_code in (401, 403)
        fresh = site.visitor()
        fresh.open("/")
        fresh.form("/consent", agreed="yes")
        assert fresh.form("/practice", answers=nested).status_code == 200
        assert fresh.form("/practice", answers='[{"values": {"\\ud800": 1}}]').status_code == 200


def test_a_browser_that_goes_away_in_the_middle_leaves_nothing_in_the_log(tmp_path: Path) -> None:
    web_project(tmp_path, texts=["one"])
    with serving(tmp_path) as (place, log):
        for path in (b"/api/save", b"/consent", b"/researcher/login"):
            with socket.create_connection(place) as line:
                kind = b"application/x-www-form-urlencoded" if path != b"/api/save" else b"application/json"
                line.sendall(
                    b"POST " + path + b" HTTP/1.1\r\nHost: x\r\nCookie: dissensus_session=x; dissensus_door=y\r\n"
                )
                line.sendall(b"Content-Type: " + kind + b"\r\nContent-Length: 900\r\n\r\ncsrf=")
                time.sleep(0.05)
        assert ask(place).startswith(b"HTTP/1.1 200")
        # There is a base URL, so a proxy on this machine is taken at its word.
        assert b'"proxy":"trusted"' in ask(place, b"/health", more=b"X-Forwarded-For: 81.2.69.142\r\n")
    assert log.read_text() == ""


# Logging in ------------------------------------------------------------------------------------------------------


def test_a_login_survives_a_restart_and_a_new_link_can_be_had_while_it_is_served(tmp_path: Path) -> None:
    from dissensus_collect.web.logins import Logins
    from dissensus_collect.web.security import RESEARCHER_COOKIE

    project = web_project(tmp_path, texts=["one"])
    with visited(project) as site:
        desk = site.researcher()
        cookie = desk.client.cookies[RESEARCHER_COOKIE]
    with visited(project) as site:
        desk = site.visitor()
        desk.client.cookies.set(RESEARCHER_COOKIE, cookie)
        assert desk.open("/researcher/progress").url.path == "/researcher/progress"
        left = desk.form("/researcher/leave")
        assert "dissensus collect login" in left.text, "how to come back"
        desk.client.cookies.set(RESEARCHER_COOKIE, cookie)
        assert desk.open("/researcher/progress").url.path == "/researcher/login", "logged out for good"
        link = Logins(project.folder, clock=lambda: site.time[0]).one_time_link()
        desk.open(link)
        assert desk.form(link).url.path == "/researcher/progress"
    with visited(project) as site:
        again = site.visitor()
        again.open(link)
        assert again.form(link).status_code == 403, "once is once, over a restart, too"


def test_another_password_logs_everybody_out(tmp_path: Path) -> None:
    from dissensus_collect.web.security import RESEARCHER_COOKIE

    project = web_project(tmp_path, texts=["one"])
    with visited(project, password="correct horse battery") as site:
        cookie = site.researcher().client.cookies[RESEARCHER_COOKIE]
    for password, where in (("correct horse battery", "/researcher/progress"), ("another one", "/researcher/login")):
        with visited(project, password=password) as site:
            desk = site.visitor()
            desk.client.cookies.set(RESEARCHER_COOKIE, cookie)
            assert desk.open("/researcher/progress").url.path == where
