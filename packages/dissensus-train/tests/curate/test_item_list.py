"""A list of items comes back from its file as it was, and a broken one is refused with a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from dissensus.errors import InputError
from dissensus_train.curate import ItemList, read_items, write_items
from dissensus_train.curate.item_list import places

if TYPE_CHECKING:
    from pathlib import Path

LIST = ItemList(
    items=np.array(["1", "ü, 2", "1"]),
    sources=np.array(["a", "a", "b"]),
    columns={"region": np.array(["easy", "hard", ""]), "confidence": np.array([0.5, 0.25, 1.0])},
)


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "jsonl"])
def test_a_list_comes_back_from_its_file(tmp_path: Path, kind: str) -> None:
    write_items(LIST, tmp_path / f"list.{kind}")
    back = read_items(tmp_path / f"list.{kind}")
    assert back.items.tolist() == LIST.items.tolist()
    assert back.sources.tolist() == LIST.sources.tolist()
    assert back.columns["region"].tolist() == ["easy", "hard", ""]
    assert back.columns["confidence"].astype(np.float64).tolist() == [0.5, 0.25, 1.0]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("name\n1\n", "no column 'item' among name"),
        ("item\n", "holds no rows"),
        ("item,source\n1,a\n2,a\n1,a\n", "item '1' is there twice"),
    ],
)
def test_a_broken_list_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "list.csv").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=sentence):
        read_items(tmp_path / "list.csv")


def test_items_are_found_by_source_and_name() -> None:
    assert places(LIST.take(np.array([2, 0])), LIST).tolist() == [2, 0]
    other = ItemList(items=np.array(["1"]), sources=np.array(["c"]))
    with pytest.raises(InputError, match=r"item '1' of source 'c' is not among the sources given \(a, b\)"):
        places(other, LIST)


def test_strata_are_the_combinations_that_occur() -> None:
    stratum, names = LIST.strata(["source", "region"])
    assert [names[k] for k in stratum] == [("a", "easy"), ("a", "hard"), ("b", "")]
