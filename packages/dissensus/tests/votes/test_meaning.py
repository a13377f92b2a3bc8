"""No intact file that means something else than it looks like is read wrongly without a word.

`python -m benchmarks.damage` takes thousands of them.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.votes.meaning import LAYOUTS, TWISTS, File, Reading, Verdict, Vote, generated, judge, judged

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FIRST = 10_000 * len(LAYOUTS)
"""Seeds above those of the command, so that the two see different files."""


@pytest.mark.parametrize("layout", range(len(LAYOUTS)), ids=list(LAYOUTS))
def test_no_file_is_read_wrongly_without_a_word(layout: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    judgements = [judge(FIRST + layout + len(LAYOUTS) * k, tmp_path) for k in range(7)]
    wrong = [
        (file.layout, file.twists, verdict.what, verdict.advice)
        for file, verdict in judgements
        if verdict.outcome in ("WRONG", "CRASH") or verdict.advice.startswith("CRASH")
    ]
    assert wrong == []
    assert capfd.readouterr() == ("", "")


def test_every_layout_and_every_twist_is_tried() -> None:
    files = [generated(FIRST + k) for k in range(30 * len(LAYOUTS))]
    assert {name for file in files for name in file.twists} == set(TWISTS)
    assert any(len(file.twists) == 2 for file in files)
    assert any(not file.twists for file in files)


VOTES = [Vote("x", "anna", "cat"), Vote("x", "ben", "dog"), Vote("y", "anna", "cat"), Vote("y", "ben", "cat")]
MEANT: Reading = Reading(Counter(VOTES))


def verdict_on(rows: Sequence[tuple[str, str, str]], *readings: Reading) -> Verdict:
    """What the oracle says of a table that should hold `VOTES`."""
    table = [dict(zip(("item", "annotator", "label"), row, strict=True)) for row in rows]
    file = File("long", VOTES, ["cat", "dog"], table, list(readings or [MEANT]), "item", "annotator", "label")
    return judged(file, table, {})


class TestTheOracle:
    def test_takes_the_truth_in_any_order(self) -> None:
        assert verdict_on([*VOTES[2:], *VOTES[:2]]).outcome == "right"

    @pytest.mark.parametrize(
        "rows",
        [
            VOTES[:3],
            [*VOTES[:3], ("y", "ben", "dog")],
            [*VOTES[:3], ("y ", "ben", "cat")],
            [("x", "ben", "cat"), ("x", "anna", "dog"), *VOTES[2:]],
            [*VOTES, ("z", "anna", "cat")],
        ],
        ids=["a vote less", "another label", "another item", "people exchanged", "a vote more"],
    )
    def test_takes_nothing_else(self, rows: Sequence[tuple[str, str, str]]) -> None:
        assert verdict_on(rows).outcome == "WRONG"

    def test_asks_for_the_note_that_names_what_was_read_by_the_letter(self) -> None:
        odd = [*VOTES[:3], Vote("y ", "ben", "cat")]
        assert verdict_on(odd, MEANT, Reading(Counter(odd), ("no such note",))).outcome == "WRONG"
        assert verdict_on(odd, MEANT, Reading(Counter(odd), ("'y '",))).outcome == "noted"

    def test_takes_a_sentence_that_refuses(self) -> None:
        assert verdict_on([*VOTES[:3], ("y", "ben", "")]).outcome == "refused"
