"""No damaged file is read wrongly without a word; `python -m tests.votes.damage 2000` takes more of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.votes.damage import SHAPES, judge

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("shape", range(len(SHAPES)), ids=lambda k: f"{SHAPES[k].rows}.{SHAPES[k].ending}")
def test_no_damaged_file_is_read_wrongly_without_a_word(
    shape: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    # Seeds above those of the command, so that the two see different files.
    verdicts = [judge(100_000 * len(SHAPES) + shape + len(SHAPES) * k, tmp_path) for k in range(12)]
    assert [what for verdict, what in verdicts if verdict == "WRONG"] == []
    assert capfd.readouterr() == ("", "")
