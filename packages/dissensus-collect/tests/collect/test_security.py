"""The wall around a project: forged posts, headers, rates, sizes, passwords."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissensus_collect.web.logins import check_password, hash_password
from dissensus_collect.web.media import inside, picture
from dissensus_collect.web.security import (
    LARGEST_BODY,
    Buckets,
    content_policy,
    csrf_token,
    new_token,
    proxy_of,
    same_origin,
)
from dissensus_collect.work.participants import network_of
from tests.collect.web import ORIGIN, visited, web_project

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.collect.web import Visited, Visitor


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Visited]:
    with visited(web_project(tmp_path / "project"), password="open sesame") as served:
        yield served


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": ORIGIN},
        {"X-CSRF-Token": "right"},
        {"Origin": ORIGIN, "X-CSRF-Token": "wrong"},
        {"Origin": "http://evil.test", "X-CSRF-Token": "right"},
        {"Origin": "null", "X-CSRF-Token": "right"},
        {"Origin": "http://project.test.evil.test", "X-CSRF-Token": "right"},
        {"Referer": "http://evil.test/http://project.test/", "X-CSRF-Token": "right"},
    ],
)
def test_a_post_needs_our_origin_and_our_token(site: Visited, headers: dict[str, str]) -> None:
    visitor = site.annotator()
    sent = {name: visitor.token if value == "right" else value for name, value in headers.items()}
    assert visitor.post("/api/next", headers=sent, tab="tab").status_code == 403
    assert site.read("SELECT count(*) FROM assignment") == [(0,)]


def test_the_token_of_one_session_is_worth_nothing_in_another(site: Visited) -> None:
    one, other = site.annotator(), site.annotator()
    answer = one.post("/api/next", headers={"Origin": ORIGIN, "X-CSRF-Token": other.token}, tab="tab")
    assert answer.status_code == 403


def test_a_referer_of_ours_is_as_good_as_an_origin(site: Visited) -> None:
    visitor = site.annotator()
    headers = {"Referer": f"{ORIGIN}/work", "X-CSRF-Token": visitor.token}
    assert visitor.post("/api/next", headers=headers, tab="tab").status_code == 200


def test_forms_are_held_to_the_same(site: Visited) -> None:
    visitor = site.visitor()
    visitor.open("/")
    assert visitor.form("/consent", agreed="yes", origin=None).status_code == 403
    assert visitor.form("/consent", agreed="yes", origin="http://evil.test").status_code == 403
    assert visitor.form("/consent", agreed="yes", csrf="").status_code == 403
    assert visitor.open("/work").url.path == "/consent"


def test_behind_a_proxy_the_address_people_use_is_the_origin(tmp_path: Path) -> None:
    with visited(web_project(tmp_path), base_url="https://votes.test") as site:
        visitor = site.visitor(base_url="https://votes.test")
        visitor.open("/")
        assert visitor.form("/consent", agreed="yes", origin="http://votes.test").status_code == 403
        assert visitor.form("/consent", agreed="yes", origin="https://votes.test").status_code == 200


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_two_different_hosts_are_one_origin(one: str, other: str) -> None:
    told = same_origin({"origin": f"http://{one}", "host": other}, base_url=None)
    assert not told or one == other or one.split("/")[0].split("?")[0].split("#")[0] == other


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(site: Visited) -> None:
    (cookie,) = site.visitor().get("/").headers.get_list("set-cookie")
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert len(cookie.split("=")[1].split(";")[0]) >= 22  # 128 bits in base64


def test_over_https_cookies_are_secure_and_the_browser_is_told_to_stay(tmp_path: Path) -> None:
    with visited(web_project(tmp_path), base_url="https://votes.test", password="x") as site:
        visitor = site.visitor(base_url="https://votes.test")
        for path in ("/", "/researcher/login"):
            answer = visitor.get(path)
            assert "Secure" in answer.headers["set-cookie"]
            assert "max-age" in answer.headers["strict-transport-security"]


def test_every_answer_carries_the_headers_of_a_closed_page(site: Visited) -> None:
    visitor = site.annotator()
    for path in ("/work", "/api/session", "/static/work.js", "/nowhere", "/researcher/login", "/media/none"):
        headers = visitor.get(path).headers
        policy = headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "same-origin"


def test_pages_have_no_inline_script_or_style_and_ask_nothing_of_others(site: Visited) -> None:
    visitor, researcher = site.annotator(), site.researcher()
    pages = [visitor.open(path) for path in ("/work", "/nowhere")]
    pages += [researcher.open(f"/researcher/{path}") for path in ("", "progress", "quality", "items", "export")]
    for page in pages:
        assert "<style" not in page.text
        assert " style=" not in page.text
        assert " onclick=" not in page.text
        assert "<script>" not in page.text
        assert "//" not in page.text.replace("http://www.w3.org", "")


def test_a_project_on_mturk_may_be_framed_by_mturk_alone() -> None:
    policy = content_policy(framed_by=("https://www.mturk.com",))
    assert "frame-ancestors https://www.mturk.com" in policy
    assert "form-action 'self' https://www.mturk.com;" in policy


def test_a_body_larger_than_any_honest_one_is_refused(site: Visited) -> None:
    visitor = site.annotator()
    big = "x" * (LARGEST_BODY + 1)
    assert visitor.post("/api/next", tab=big).status_code == 413

    async def pieces() -> object:
        for _ in range(3):
            yield b"x" * (LARGEST_BODY // 2)

    headers = {"Origin": ORIGIN, "X-CSRF-Token": visitor.token}
    assert visitor.request("POST", "/api/next", content=pieces(), headers=headers).status_code == 413
    assert visitor.next()["state"] == "item"


# Rates.


def test_a_bucket_gives_its_burst_then_its_rate() -> None:
    bucket = Buckets(rate=2, burst=3)
    assert [bucket.wait("a", 0.0) for _ in range(4)] == [0, 0, 0, 0.5]
    assert bucket.wait("b", 0.0) == 0
    assert bucket.wait("a", 0.6) == 0
    assert bucket.wait("a", 0.6) > 0


def test_a_bucket_never_holds_more_than_its_burst_however_long_nobody_came() -> None:
    bucket = Buckets(rate=2, burst=3)
    assert bucket.wait("a", 0.0) == 0
    assert [bucket.wait("a", 86_400.0) for _ in range(4)] == [0, 0, 0, 0.5]


@given(st.lists(st.floats(0, 50), max_size=60), st.floats(0.1, 10), st.integers(1, 20))
def test_no_stretch_of_time_ever_gives_more_than_burst_plus_rate(steps: list[float], rate: float, burst: int) -> None:
    bucket, now, taken = Buckets(rate=rate, burst=burst), 0.0, list[float]()
    for step in steps:
        now += step
        if bucket.wait("a", now) == 0:
            taken.append(now)
    for first, began in enumerate(taken):
        for last, ended in enumerate(taken[first:], start=first):
            assert last - first + 1 <= burst + rate * (ended - began) + 1e-6


def test_the_longest_unseen_keys_are_forgotten() -> None:
    bucket = Buckets(rate=1e-9, burst=1, kept=2)
    for key in "abc":
        assert bucket.wait(key, 0.0) == 0
    assert bucket.wait("a", 0.0) == 0
    assert bucket.wait("c", 0.0) > 0


def test_a_session_that_asks_too_fast_is_told_to_wait_and_others_are_not(site: Visited) -> None:
    hurried, calm = site.annotator(), site.annotator()
    statuses = [hurried.get("/api/session").status_code for _ in range(80)]
    assert 429 in statuses
    assert hurried.get("/api/session").headers["retry-after"] == "1"
    assert calm.get("/api/session").status_code == 200
    site.time[0] += 10
    assert hurried.get("/api/session").status_code == 200


@pytest.mark.parametrize(
    ("addresses", "together"),
    [
        (["10.0.0.1", "10.0.0.1"], True),
        (["10.0.0.1", "10.0.0.2"], False),
        (["2001:db8::1", "2001:db8::ffff:0:0:2"], True),
        (["2001:db8::1", "2001:DB8:0:0:9::%eth0"], True),
        (["2001:db8::1", "2001:db8:0:1::1"], False),
        (["10.0.0.1", "::ffff:10.0.0.1"], True),
        (["::ffff:10.0.0.1", "::ffff:10.0.0.2"], False),
        (["unknown", "10.0.0.1"], False),
    ],
)
def test_network_of_is_what_one_visitor_has_alone(addresses: list[str], together: bool) -> None:
    assert (len({network_of(address) for address in addresses}) == 1) == together


def test_limits_count_a_network_and_not_an_address(site: Visited) -> None:
    addresses = (f"2001:db8::{number:x}" for number in count(1))
    statuses = [site.visitor(address=next(addresses)).get("/").status_code for _ in range(205)]
    assert statuses == [303] * 200 + [429] * 5
    assert site.visitor(address="2001:db8:0:1::1").get("/").status_code == 303
    statuses = [guess(site.visitor(address=next(addresses)), f"somebody{n}") for n in range(10)]
    assert statuses == [403] * 8 + [429] * 2


def test_limits_count_guesses_at_an_account_from_whatever_network(site: Visited) -> None:
    networks = [f"10.0.{n}.1" if n % 2 else f"2001:db8:{n}::1" for n in range(10)]
    statuses = [guess(site.visitor(address=network), "researcher") for network in networks]
    assert statuses == [403] * 8 + [429] * 2
    assert guess(site.visitor(address="10.1.0.1"), "another") == 403
    site.researcher()  # by a link, which nobody can guess
    site.time[0] += 30
    assert guess(site.visitor(address="10.1.0.2"), "researcher") == 403


def guess(visitor: Visitor, name: str) -> int:
    visitor.open("/researcher/login")
    return visitor.form("/researcher/login", username=name, password="guess").status_code


@pytest.mark.parametrize(
    ("address", "forwarded", "proxy"),
    [
        ("10.0.0.1", [], "none"),
        ("10.0.0.1", ["10.0.0.12"], "untrusted"),
        ("10.0.0.1", ["110.0.0.1, 81.2.69.142"], "untrusted"),
        ("10.0.0.12", ["10.0.0.12"], "trusted"),
        ("10.0.0.12", ["81.2.69.142,10.0.0.12"], "trusted"),
        ("10.0.0.12", ["81.2.69.142", "10.0.0.12:443"], "trusted"),
        ("2001:db8::1", ["2001:db8::12"], "untrusted"),
        ("2001:db8::1", ["2001:DB8:0:0:0:0:0:1"], "trusted"),
        ("2001:db8::1", ["[2001:db8::1]:443"], "trusted"),
        ("::ffff:10.0.0.1", ["10.0.0.1"], "trusted"),
        ("unknown", ["unknown"], "trusted"),
    ],
)
def test_proxy_of_compares_addresses_and_not_text(address: str, forwarded: list[str], proxy: str) -> None:
    headers = [(b"x-forwarded-for", each.encode()) for each in forwarded]
    assert proxy_of({"type": "http", "client": (address, 1), "headers": headers}) == proxy


def test_limits_can_be_switched_off_for_simulations(tmp_path: Path) -> None:
    with visited(web_project(tmp_path), rate_limits=False) as site:
        visitor = site.annotator()
        assert {visitor.get("/api/session").status_code for _ in range(100)} == {200}


# Secrets.


def test_a_password_is_kept_as_a_salted_hash() -> None:
    hashed = hash_password("open sesame")
    assert "sesame" not in hashed
    assert hashed != hash_password("open sesame")
    assert check_password("open sesame", hashed)
    assert not check_password("open barley", hashed)


def test_tokens_differ_and_the_posted_one_does_not_give_the_session_away() -> None:
    tokens = {new_token() for _ in range(1000)}
    assert len(tokens) == 1000
    session = next(iter(tokens))
    assert session not in csrf_token(session)
    assert len({csrf_token(each) for each in tokens}) == 1000


# Files.


@pytest.mark.parametrize(
    "name",
    [
        "../secret.png",
        "..%2fsecret.png",
        "/etc/passwd",
        "sub/../../secret.png",
        "link.png",
        "loop.png",
        "sub",
        "\0.png",
    ],
)
def test_no_name_leads_out_of_the_folder_of_images(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "images"
    (folder / "sub").mkdir(parents=True)
    (tmp_path / "secret.png").write_bytes(b"secret")
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    (folder / "loop.png").symlink_to(folder / "loop.png")
    (folder / "sub" / "a.png").write_bytes(b"seen")
    assert inside(folder, name) is None
    found = inside(folder, "sub/a.png")
    assert found is not None
    assert found.read_bytes() == b"seen"


@pytest.mark.parametrize(
    "path",
    [
        "/media/../collect.toml",
        "/media/%2e%2e/collect.toml",
        "/media/..%2fcollect.toml",
        "/media/%2fetc%2fpasswd",
        "/media//etc/passwd",
        "/media/item0.png",
        "/static/../server.py",
        "/static/%2e%2e/server.py",
        "/static/..%2fserver.py",
    ],
)
def test_no_address_leads_to_a_file_that_was_not_handed_out(site: Visited, path: str) -> None:
    visitor = site.annotator()
    visitor.next()
    answer = visitor.get(path)
    assert answer.status_code == 404, answer.text
    assert "root:" not in answer.text


def test_a_symlink_among_the_images_is_not_followed_out(tmp_path: Path) -> None:
    project = web_project(tmp_path / "project", items=2)
    with visited(project) as site:
        visitor = site.annotator()
        source = visitor.next()["item"]["src"]
        (tmp_path / "secret.png").write_bytes(b"secret")
        for each in (tmp_path / "project").glob("*.png"):
            each.unlink()
            each.symlink_to(tmp_path / "secret.png")
        assert visitor.get(source).status_code == 404


def test_only_pictures_are_sent_and_tiff_as_png(tmp_path: Path) -> None:
    from PIL import Image

    Image.new("L", (4, 4), 7).save(tmp_path / "a.tif")
    sent = picture(tmp_path / "a.tif")
    assert sent is not None
    assert sent.media_type == "image/png"
    assert sent.body[:4] == b"\x89PNG"
    (tmp_path / "a.svg").write_text("<svg/>")
    assert picture(tmp_path / "a.svg") is None
