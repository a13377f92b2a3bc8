"""The catalogue: every set that is here is what its entry says, and a download continues where it broke off."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from dissensus.cli import app
from dissensus.datasets.catalogue import DATASETS, get, load
from dissensus.datasets.sources import Source
from dissensus.errors import InputError
from dissensus.progress import Step

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dissensus.datasets import catalogue


@pytest.mark.parametrize("name", [name for name, each in DATASETS.items() if each.holds == "votes"])
def test_a_set_that_is_here_is_what_its_entry_says(name: str, data: Path) -> None:
    dataset = DATASETS[name]
    if not dataset.present():
        pytest.skip(f"{name} is not here")
    votes = dataset.load()
    assert len(votes.items) == dataset.items
    assert len(votes) == dataset.votes
    assert (None if votes.annotators is None else len(votes.annotators)) == dataset.annotators
    assert int(votes.panel_size.min()) >= 1


@pytest.mark.parametrize("name", [name for name, each in DATASETS.items() if each.holds == "items"])
def test_a_set_of_items_that_is_here_has_as_many_as_its_entry_says(name: str, data: Path) -> None:
    dataset = DATASETS[name]
    if not dataset.present():
        pytest.skip(f"{name} is not here")
    held = dataset.contents()
    assert isinstance(held, Source)
    assert len(held) == dataset.items
    assert held.labels is not None
    with pytest.raises(InputError, match="holds items without votes"):
        dataset.load()


def test_crehates_country_labels_are_the_majority_of_hate_and_not_hate_alone(data: Path) -> None:
    """What 0 and 1 mean is checked; that 2 is left out is all that the authors' files say about it."""
    folder = data / "crehate"
    rows = pl.read_csv(folder / "CREHate_raw_annotations.csv")
    said = rows.group_by("ID", "nationality").agg(
        hate=(pl.col("annotation") == 1).sum(), other=(pl.col("annotation") == 0).sum()
    )
    stated = pl.concat([pl.read_csv(folder / f"CREHate_{part}.csv") for part in ("CP", "SBIC")]).drop("Text")
    stated = stated.unpivot(index="ID", variable_name="nationality").with_columns(
        pl.col("nationality").str.replace("_Hate", "").str.replace("_", " ")
    )
    both = said.join(stated, on=["ID", "nationality"])
    assert both.height == 7_900
    assert ((both["hate"] > both["other"]) == (both["value"] == 1)).all()
    assert "unsure" in load("crehate").classes


def test_what_is_not_verified_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        app(["data", "list"])
    listed = " ".join(capsys.readouterr().out.split())
    for name in ("popquorn-politeness", "cifar-10n", "crehate", "soft-digits", "svhn"):
        assert f"{name}: {DATASETS[name].unverified}" in listed
    without = [name for name, each in DATASETS.items() if each.sha256 is not None and "made file" in each.unverified]
    assert without == []


def test_every_entry_says_where_to_get_it() -> None:
    for each in DATASETS.values():
        assert each.package or each.address or each.page, each.name
        assert each.licence
        assert each.reference


CONTENT = b"item,annotator,label\n" + b"".join(b"%d,a,x\n" % k for k in range(5000))


class Server(BaseHTTPRequestHandler):
    """Sends the content, or the asked end of it; the first time it breaks off in the middle."""

    breaks = True
    asked: list[str | None]

    def do_GET(self) -> None:
        Server.asked.append(self.headers.get("Range"))
        start = int((self.headers.get("Range") or "bytes=0-")[6:].rstrip("-"))
        if start >= len(CONTENT):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(CONTENT) - start))
        self.end_headers()
        self.wfile.write(CONTENT[start:20_000] if Server.breaks else CONTENT[start:])
        Server.breaks = False

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    Server.breaks, Server.asked = True, []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v.csv"
    server.shutdown()
    server.server_close()


@pytest.fixture
def entry(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> catalogue.Dataset:
    known = replace(DATASETS["product"], name="test", file="test/v.csv", address=address, page=None)
    known = replace(known, sha256=hashlib.sha256(CONTENT).hexdigest())
    monkeypatch.setitem(DATASETS, "test", known)
    monkeypatch.setenv("DISSENSUS_DATA", str(tmp_path))
    return known


def test_a_download_continues_where_it_broke_off(entry: catalogue.Dataset, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"broke off after 20,000 of [0-9,]+ bytes; try again to continue"):
        get("test")
    assert not (tmp_path / "test" / "v.csv").exists()
    notes: list[str] = []
    steps: list[Step] = []
    assert get("test", progress=steps.append, notes=notes) == tmp_path / "test" / "v.csv"
    assert (tmp_path / "test" / "v.csv").read_bytes() == CONTENT
    assert Server.asked == [None, "bytes=20000-"]
    assert steps[-1] == Step("bytes", len(CONTENT), len(CONTENT))
    assert notes == ["the checksum is right"]
    assert [file.name for file in (tmp_path / "test").iterdir()] == ["v.csv"]


def test_another_file_than_the_known_one_is_told(
    entry: catalogue.Dataset, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Server.breaks = False
    monkeypatch.setitem(DATASETS, "test", replace(entry, sha256="0" * 64))
    notes: list[str] = []
    get("test", notes=notes)
    assert "is not the one that the catalogue knows" in notes[0]


def test_what_cannot_be_read_does_not_get_its_name(
    entry: catalogue.Dataset, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Server.breaks = False
    monkeypatch.setattr("tests.datasets.test_catalogue.CONTENT", b"<html>no such page</html>")
    with pytest.raises(InputError):
        get("test")
    assert list((tmp_path / "test").iterdir()) == []
