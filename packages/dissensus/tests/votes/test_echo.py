"""What was understood is said before any number, in Python and on the command line; what is odd is a warning."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING

import pytest

import dissensus as dis
from dissensus.cli.options import ENTRIES
from dissensus.errors import VotesWarning
from dissensus.votes.reading import FORMATS, understand
from tests.cli.test_commands import dissensus

if TYPE_CHECKING:
    from pathlib import Path

PLAIN = "id,rater,vote,age\na,1,yes,30\na,2,no,40\nb,1,no,30\n"
ODD = "id,rater,vote\na,1,Yes\na,2,yes\nb,1,no\n"
UNDERSTOOD = (
    "read as long: 2 items by 'id' (1 to 2 votes each), 2 classes by 'vote' (no 2, yes 1), 2 annotators by 'rater'"
)


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    (tmp_path / "plain.csv").write_text(PLAIN)
    return tmp_path / "plain.csv"


def test_notes_say_columns_and_numbers_and_nothing_is_warned_of_a_plain_file(plain: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        votes = dis.read_votes(plain)
    assert votes.notes == (UNDERSTOOD, "not used: 'age'")
    assert UNDERSTOOD in votes._repr_html_().replace("&#x27;", "'")


def test_what_is_odd_is_warned_of_once_where_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "odd.csv").write_text(ODD)
    for read in (dis.read_votes, dis.inspect):
        with pytest.warns(VotesWarning, match="'Yes' .* and 'yes' .* differ only") as told:
            read(tmp_path / "odd.csv")
        assert len(told) == 1
        assert told[0].filename == __file__


@pytest.mark.parametrize("command", [["votes", "inspect"], ["labels"]])
def test_every_command_begins_with_it(command: list[str], plain: Path) -> None:
    done = dissensus(*command, plain)
    assert done.stderr.startswith(f"{UNDERSTOOD}\nnot used: 'age'\n")


def test_json_has_it_too(plain: Path) -> None:
    assert json.loads(dissensus("votes", "inspect", plain, "--json").stdout)["reading_notes"][0] == UNDERSTOOD


def test_scales_sets_and_attributes_are_named(plain: Path) -> None:
    votes = understand(plain).votes
    assert "2 ordered classes" in dis.read_votes(plain, ordered=True).notes[0]
    assert dis.read_votes(plain, attributes="age").notes[0].endswith("; of annotators: age")
    sets = dis.read_votes([{"item": 1, "annotator": "x", "label": ["a", "b"]}])
    assert "(1 judgement each)" in sets.notes[0]
    assert "anonymous" in dis.read_votes({"item": [1], "label": ["a"]}).notes[0]
    assert str(votes.subset(items=["b"])) == "Votes(1 vote, 1 item, 2 classes, 2 annotators)"


def test_the_help_of_inspect_names_every_format() -> None:
    words = set(ENTRIES["inspect"]["format"]["help"].replace(",", " ").replace(".", " ").split())
    assert words >= set(FORMATS)
    assert "--format" in dissensus("votes", "inspect", "--help").stdout


def test_a_panel_that_never_disagrees_is_remarked() -> None:
    rows = [(item, who, "ab"[item % 2]) for item in range(10) for who in "xyz"]
    assert "Nobody ever disagrees" in dis.inspect(rows, resamples=0).sentences()[0]
    assert (
        "Nobody ever disagrees" not in dis.inspect([*rows, (99, "x", "a"), (99, "y", "b")], resamples=0).sentences()[0]
    )


def test_hints_repeat_what_was_typed_so_that_they_can_be_typed_again(plain: Path, tmp_path: Path) -> None:
    (tmp_path / "p 1.csv").write_text("id,no,yes\na,0.5,0.5\nb,0.9,0.1\nc,0.5,0.5\n")
    (tmp_path / "q.csv").write_text("id,no,yes\na,0.4,0.6\nb,0.9,0.1\nc,0.5,0.5\n")
    files = ("--predictions", "p 1.csv", "--compare", "q.csv")
    done = dissensus(
        *(
            "evaluate",
            "--votes",
            plain.name,
            *files,
            "--only-common",
            "--given",
            "probabilities",
            "--classes",
            "no,yes",
        ),
        *("--resamples", 0),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == (
        "next: dissensus report --votes plain.csv --predictions 'p 1.csv' --compare q.csv --given probabilities "
        "--only-common --classes no,yes"
    )
    after = dissensus("labels", plain.name, "--label", "vote", cwd=tmp_path).stderr.splitlines()[-1]
    assert after.startswith("next: dissensus evaluate --votes plain.csv --predictions FILE --label vote")


def test_the_column_of_items_may_be_that_of_the_predictions_alone(plain: Path, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("nr of it,no,yes\na,0.5,0.5\nb,0.9,0.1\n")
    command = ("evaluate", "--votes", plain, "--predictions", tmp_path / "p.csv", "--resamples", 0)
    assert "name it with --item" in dissensus(*command).stderr
    assert dissensus(*command, "--item", "nr of it").returncode == 0
    assert "no column 'nr'" in dissensus(*command, "--item", "nr").stderr


def test_label_distributions_are_told_from_votes(plain: Path, tmp_path: Path) -> None:
    dissensus("labels", plain, "-o", tmp_path / "labels.csv")
    assert (
        "label distributions, as `dissensus labels` writes them"
        in dissensus("votes", "inspect", tmp_path / "labels.csv").stderr
    )
