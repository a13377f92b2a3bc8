"""Advice is obeyed: what a refusal prints is typed as it stands, until the file is read."""

from __future__ import annotations

import pickle
import shlex
from typing import TYPE_CHECKING

import pytest

import dissensus as dis
from dissensus.errors import InputError
from dissensus.votes.reading import votes_in
from tests.cli.test_commands import dissensus
from tests.votes.ambiguous import AMBIGUOUS

if TYPE_CHECKING:
    from pathlib import Path


def advised(stderr: str) -> list[list[str]]:
    """The commands that a refusal prints below its sentence, as a shell would split them."""
    lines = [line for line in stderr.splitlines() if line.startswith("  dissensus ")]
    return [shlex.split(line, comments=True)[1:] for line in lines]


def obey(command: list[str], before: set[str], folder: Path, *, depth: int = 0) -> None:
    """Type a command; where it is refused, all that is advised, and never the same options twice."""
    done = dissensus(*command, cwd=folder)
    if done.returncode == 0:
        return
    words = {word.partition("=")[0] for word in command if word.startswith("--")}
    advice = advised(done.stderr)
    assert advice, f"{shlex.join(command)} is advised, and refused: {done.stderr}"
    assert depth < 3, f"one refusal leads to the next: {done.stderr}"
    for again in advice:
        assert {word.partition("=")[0] for word in again if word.startswith("--")} > words | before or depth == 0, (
            f"{shlex.join(command)} is advised, and refused for the same reason: {done.stderr}"
        )
        obey(again, words, folder, depth=depth + 1)


@pytest.mark.parametrize(("name", "content", "options"), AMBIGUOUS, ids=[name for name, *_ in AMBIGUOUS])
def test_what_a_refusal_advises_is_read(name: str, content: str, options: list[str], tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    command = ["votes", "inspect", name, "--resamples", "0", *options]
    refused = dissensus(*command, cwd=tmp_path)
    assert refused.returncode == 2
    assert len(advised(refused.stderr)) > 1, refused.stderr
    obey(command, set(), tmp_path)


def test_a_reading_is_shown_as_keywords_in_python_and_as_the_command_that_was_typed(tmp_path: Path) -> None:
    (tmp_path / "my votes.csv").write_text(AMBIGUOUS[0][1])
    with pytest.raises(InputError, match=r"(?s)can mean more than one thing.*\n  format='wide' +# one row per item"):
        dis.read_votes(tmp_path / "my votes.csv")
    done = dissensus("labels", "my votes.csv", "-o", "out.csv", cwd=tmp_path)
    assert "\n  dissensus labels 'my votes.csv' -o out.csv --format counts" in done.stderr
    assert not (tmp_path / "out.csv").exists()


def test_an_option_that_was_given_is_replaced() -> None:
    from dissensus.cli import typed_again

    given = ["labels", "v.csv", "--format=wide", "--nominal", "--attribute", "age", "--keep", "text", "--missing", "-"]
    ways = {"format": "counts", "ordered": True, "attributes": ["sex", "land"], "missing": ["-1", "no, thanks"]}
    again = typed_again(given, ways)
    assert again is not None
    assert shlex.split(again)[1:] == [
        *("labels", "v.csv", "--keep", "text", "--format", "counts", "--ordered"),
        *("--attribute", "sex", "--attribute", "land", '--missing=-1,"no, thanks"'),
    ]
    assert typed_again(["data", "list"], {"format": "counts"}) is None


def test_readings_survive_where_an_error_is_wrapped_or_sent() -> None:
    table = {"item": ["a", "b", "c"], "x": [1, 2, 1], "y": [2, 2, 3]}
    with pytest.raises(InputError, match="say so where it is read") as raised:
        votes_in(table)
    assert {"format": "counts"} in raised.value.readings.values()
    sent = pickle.loads(pickle.dumps(raised.value))
    assert (str(sent), sent.readings) == (str(raised.value), raised.value.readings)
