"""No damaged file is read wrongly without a word; `python -m tests.votes.damage 2000` takes more of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.votes.damage import SHAPES, Shape, judge, ours, table, written

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


def test_parquet_that_would_end_the_process_ends_in_a_sentence(tmp_path: Path) -> None:
    """Of these files five ended the process of Polars 2.1 there and then; all end in votes or a sentence here."""
    path = tmp_path / "v.parquet"
    for seed in (663, 1811, 2214, 2306, 5852):
        random = np.random.default_rng(seed)
        shape = Shape("parquet", ["long", "rating", "sets"][seed % 3])
        content = bytearray(written(table(shape.rows, random), shape))
        for _ in range(random.integers(1, 3)):
            at = int(random.integers(len(content)))
            content[at] ^= int(random.integers(1, 256))
        path.write_bytes(content)
        found = ours(path, shape)
        assert not isinstance(found, str) or found.startswith(f"{path}: this is not a whole Parquet file")
