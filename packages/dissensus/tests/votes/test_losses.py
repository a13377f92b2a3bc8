"""Rows are lost on purpose only: by an option that says how many, and writes which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import dissensus as dis
from dissensus.errors import InputError
from dissensus.votes.reading import understand
from tests.cli.test_commands import dissensus
from tests.votes.test_advice import advised

if TYPE_CHECKING:
    from pathlib import Path

TABLES = {
    "wide": "item,ann1,ann2\n1,x,y\n2,,NA\n3,x,x\n3,y,y\n",
    "counts": "item,x,y\n1,1,1\n2,0,0\n3,2,0\n3,0,2\n",
}


@pytest.mark.parametrize("format_", TABLES)
def test_empty_and_repeated_rows_are_refused_and_dropped_as_advised(format_: str, tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text(TABLES[format_])
    command: list[Any] = ["votes", "inspect", "v.csv", "--format", format_, "--resamples", "0", "--dropped", "d.csv"]
    for _ in range(2):
        done = dissensus(*command, cwd=tmp_path)
        assert done.returncode == 2
        # Zeros may also be people who chose none of the classes.
        command, *_ = advised(done.stderr)
    done = dissensus(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 item without a vote left out (2)" in done.stderr
    assert "1 item repeated left out (3)" in done.stderr
    assert (tmp_path / "d.csv").read_text().splitlines() == ["item,why", "2,without a vote", "3,repeated"]
    votes = dis.read_votes(tmp_path / "v.csv", format=format_, drop_empty=True, drop_repeated=True)
    assert votes.items.tolist() == [1, 3]
    assert votes.counts.tolist() == [[1, 1], [2, 0]]


@pytest.mark.parametrize("format_", TABLES)
@pytest.mark.parametrize("source", ["path", "file", "link"])
def test_read_votes_never_writes_dropped_over_its_source(format_: str, source: str, tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text(TABLES[format_])
    (tmp_path / "link.csv").symlink_to(path)
    options: Any = {"format": format_, "drop_empty": True, "drop_repeated": True}
    dropped = tmp_path / "link.csv" if source == "link" else path
    with path.open() as file, pytest.raises(InputError, match="is read, and would be written over"):
        dis.read_votes(file if source == "file" else path, dropped=str(dropped), **options)
    assert path.read_text() == TABLES[format_]


def test_read_votes_never_writes_dropped_over_a_part_of_its_folder(tmp_path: Path) -> None:
    for who in ("ann", "ben"):
        (tmp_path / f"{who}.jsonl").write_text('{"id": 1, "text": "x", "label": ["a"], "Comments": []}\n')
    before = (tmp_path / "ann.jsonl").read_text()
    assert len(dis.read_votes(tmp_path, format="doccano")) == 2
    with pytest.raises(InputError, match="is read, and would be written over"):
        dis.read_votes(tmp_path, format="doccano", dropped=str(tmp_path / "ann.jsonl"))
    assert (tmp_path / "ann.jsonl").read_text() == before


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        ("1,x,x/y\n2,,\n3,x,y\n", {}),
        ("1,x,y\n2,,\n3,x,\"{'a': 1}\"\n", {}),
        ("1,1,99\n2,,\n3,2,3\n", {}),
        ("1,x,y\n2,,\n3,x,y\n", {"classes": ["x"]}),
        ("1,x,y\n2,,\n3,x,y\n", {"models": ["nobody"]}),
    ],
    ids=["labels of labels", "objects", "codes", "classes", "models"],
)
def test_read_votes_writes_dropped_last(rows: str, options: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text(f"item,ann1,ann2\n{rows}")
    with pytest.raises(InputError):
        dis.read_votes(tmp_path / "v.csv", drop_empty=True, dropped=str(tmp_path / "d.csv"), **options)
    assert [path.name for path in tmp_path.iterdir()] == ["v.csv"]


def test_read_votes_names_a_missing_folder_of_dropped_before_it_reads() -> None:
    with pytest.raises(InputError, match="there is no folder nowhere"):
        dis.read_votes("no such file.csv", dropped="nowhere/d.csv")


def test_a_line_is_still_named_by_its_place_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("item,x,y\n1,0,0\n2,1,1\n3,1,1.5\n")
    with pytest.raises(InputError, match="line 4"):
        dis.read_votes(tmp_path / "v.csv", format="counts", drop_empty=True)


def test_what_needs_no_such_option_refuses_it(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("item,annotator,label\n1,a,x\n")
    with pytest.raises(InputError, match="has no use for drop_empty="):
        dis.read_votes(tmp_path / "v.csv", drop_empty=True)
    assert understand(tmp_path / "v.csv").notes == ()
