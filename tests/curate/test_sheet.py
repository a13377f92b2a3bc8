"""A datasheet says what the lists and votes say, and nothing else."""

from __future__ import annotations

import numpy as np

from dissensus.curate import ItemList, datasheet
from dissensus.votes.simulate import simulate_votes

ITEMS = ItemList(
    items=np.array(["0", "1", "2", "3"]),
    sources=np.array(["scans", "scans", "pens|inks", "pens|inks"]),
    columns={
        "label": np.array(["a", "b", "a", "a"]),
        "region": np.array(["easy", "hard", "easy", "easy"]),
        "split": np.array(["train", "train", "test", "train"]),
        "group": np.array(["1", "", "", "1"]),
    },
)
DUPLICATES = ItemList(
    items=np.array(["0", "1", "2", "3", "4", "5"]),
    sources=np.array(["scans"] * 4 + ["pens|inks"] * 2),
    columns={
        "group": np.array(["0", "0", "1", "1", "", "1"]),
        "kind": np.array(["exact", "exact", "near", "near", "", "near"]),
        "kept": np.array(["yes", "no", "yes", "no", "yes", "no"]),
    },
)


def test_every_number_is_that_of_the_lists() -> None:
    sheet = datasheet(ITEMS, name="Digits", duplicates=DUPLICATES, licences={"scans": "CC0"})
    assert sheet.startswith("# Datasheet: Digits\n")
    assert "4 items. 2 classes: a 3, b 1." in sheet
    assert "| scans | 4 | 2 | CC0 |" in sheet
    assert "| pens\\|inks | 2 | 2 | not stated |" in sheet
    assert "2 groups of duplicates found; 3 items were removed" in sheet
    assert "one of each is left (1 exact and 2 near duplicates)" in sheet
    assert "1 groups lay across sources. Duplicates across splits: not stated." in sheet
    assert "| easy | 3 | 3 | 0 |" in sheet
    assert "| train | 3 | 2 | 1 |" in sheet
    assert "0 groups lie across splits." in sheet


def test_what_is_not_known_is_not_stated() -> None:
    bare = datasheet(ItemList(items=np.array(["0"]), sources=np.array([""])), name="Bare")
    for sentence in (
        "Classes: not stated.",
        "| not stated | not stated | 1 | not stated |",
        "Whether duplicates were looked for: not stated.",
        "Regions of a data map: not stated.",
        "Recommended splits: not stated.",
        "Annotators: not stated. Agreement: not stated.",
    ):
        assert sentence in bare


def test_annotators_and_agreement_come_from_the_votes() -> None:
    votes = simulate_votes(np.full((5, 2), 0.5), np.full(5, 4), annotators=6, seed=0)
    sheet = datasheet(ITEMS, name="Digits", votes=votes, resamples=100)
    assert "6 annotators gave 20 judgements (20 votes) on 5 items: 4.00 an item (4 to 4)." in sheet
    assert "0 items of this set have no votes; 1 items with votes are not in it." in sheet
    assert "| judgements with an unsure | not stated |  |" in sheet
    assert "Krippendorff" in sheet
