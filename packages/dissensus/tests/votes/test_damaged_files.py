"""A damaged file is read as valid votes or refused in one sentence that names it; nothing else ever happens."""

from __future__ import annotations

import sys
import tempfile
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissensus.errors import InputError
from dissensus.table_file import open_table
from dissensus.votes.counting import count_votes
from dissensus.votes.reading import read_votes
from dissensus.votes.table import Annotators, Votes
from dissensus.votes.writing import write_votes
from tests.votes.people import people_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from dissensus.votes.counting import CountedVotes


def panel() -> Votes:
    """Responses of 4 annotators to 3 classes on 6 items, with seconds and an attribute."""
    rng = np.random.default_rng(1)
    response = rng.integers(0, 3, (24, 3))
    response[0] = 0
    table = np.column_stack([response, (response == 0).all(axis=1)])
    judgement, label = np.nonzero(table)
    return Votes(
        item=(judgement // 4).astype(np.int32),
        label=label.astype(np.int32),
        items=np.array([f"item-{k}" for k in range(6)], dtype=np.dtypes.StringDType()),
        classes=("cat", "dog", "eel", "none"),
        annotators=Annotators((judgement % 4).astype(np.int32), np.arange(4), {"age": np.arange(20, 24)}),
        unsure=table[judgement, label] == 2,
        judgement=judgement.astype(np.int32),
        seconds=rng.random(24).round(3),
        none=3,
    )


@cache
def whole_file(name: str, form: str) -> bytes:
    """A valid file, as bytes."""
    votes = panel()
    if form != "long":
        row = np.arange(24, dtype=np.int32)
        votes = Votes(
            item=row // 4,
            label=row % 3,
            items=votes.items,
            classes=("cat", "dog", "eel"),
            annotators=Annotators(row % 4, people_of(votes).names),
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write_votes(votes, path, format=form)
        return path.read_bytes()


CUTS = ("truncate", "behead", "empty")
WOUNDS = (*CUTS, "flip", "insert", "invalid", "lines", "repeat", "drop", "swap")


@st.composite
def damage(draw: st.DrawFn, content: bytes, kinds: tuple[str, ...] = WOUNDS) -> bytes:
    """The content with one to three wounds."""
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(kinds))
        at = draw(st.integers(0, len(content)))
        lines = content.split(b"\n")
        line = draw(st.integers(0, len(lines) - 1))
        if kind == "truncate":
            content = content[:at]
        elif kind == "behead":
            content = content[at:]
        elif kind == "flip" and at < len(content):
            content = content[:at] + bytes([content[at] ^ draw(st.integers(1, 255))]) + content[at + 1 :]
        elif kind == "insert":
            content = content[:at] + draw(st.binary(max_size=8)) + content[at:]
        elif kind == "invalid":
            content = content[:at] + b"\xff\xfe\x80" + content[at:]
        elif kind == "lines":
            content = b"\n".join(draw(st.permutations(lines)))
        elif kind == "repeat":
            content = b"\n".join([*lines[:line], lines[line], *lines[line:]])
        elif kind == "drop":
            mark = b"\t" if b"\t" in content else b","
            column = draw(st.integers(0, 5))
            cut = (each.split(mark) for each in lines)
            content = b"\n".join(mark.join(cells[:column] + cells[column + 1 :]) for cells in cut)
        elif kind == "swap":
            old, new = draw(st.sampled_from([(b",", b";"), (b"\t", b","), (b",", b"\t"), (b":", b","), (b'"', b"'")]))
            content = content.replace(old, new)
        else:
            content = b""
    return content


def outcome(read: Callable[[], Votes | CountedVotes]) -> Votes | CountedVotes | str:
    """What is read, or the sentence that refuses it."""
    try:
        return read()
    except InputError as refused:
        return refused.sentence


def check(name: str, content: bytes, form: str | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        for read in (partial(read_votes, path, format=form), partial(count_votes, path)):
            found = outcome(read)
            if isinstance(found, str):
                assert found.startswith(str(path))
                assert "\n" not in found
            else:
                assert int(found.counts.sum(axis=1).min()) > 0


@pytest.mark.parametrize("form", ["long", "sets", "wide", "counts"])
@pytest.mark.parametrize("name", ["v.csv", "v.tsv", "v.jsonl"])
@given(data=st.data(), told=st.booleans())
@settings(max_examples=40)
def test_damaged_text(name: str, form: str, data: st.DataObject, told: bool) -> None:
    check(name, data.draw(damage(whole_file(name, form))), form if told else None)


# Bytes are not flipped inside Parquet: about one such file in ten thousand makes Polars ask for 2**61 bytes and abort
# the process, which nobody can catch.
@pytest.mark.parametrize("form", ["long", "sets", "counts"])
@given(data=st.data(), behind=st.binary(max_size=8))
def test_damaged_parquet(form: str, data: st.DataObject, behind: bytes) -> None:
    check("v.parquet", data.draw(damage(whole_file("v.parquet", form), CUTS)) + behind, form)


@given(data=st.data())
def test_damaged_npy(data: st.DataObject) -> None:
    check("v.npy", data.draw(damage(whole_file("v.npy", "counts"))), None)


@pytest.mark.parametrize("name", ["v.csv", "v.tsv", "v.jsonl", "v.parquet", "v.npy"])
@given(content=st.binary(max_size=200))
def test_garbage(name: str, content: bytes) -> None:
    check(name, content, None)


@pytest.mark.parametrize(("name", "form"), [("v.csv", "long"), ("v.parquet", "long"), ("v.npy", "counts")])
def test_the_undamaged_file_is_read(name: str, form: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(whole_file(name, form))
    assert len(read_votes(tmp_path / name)) >= 24


@pytest.mark.parametrize(
    ("name", "start", "package"),
    [("votes.csv.zst", b"\x28\xb5\x2f\xfd", "zstandard"), ("votes.xlsx", b"PK\x03\x04", "fastexcel")],
)
def test_a_file_whose_reader_is_not_installed_says_what_to_install(
    name: str, start: bytes, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_bytes(start + b"some bytes")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        InputError, match=rf"{name}: {package} is not installed; .*pip install .*({package}|dissensus\[files\])"
    ):
        open_table(tmp_path / name)
