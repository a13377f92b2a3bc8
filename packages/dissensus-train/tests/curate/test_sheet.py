"""A datasheet says what the lists and votes say, and nothing else."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from dissensus.errors import InputError
from dissensus.votes.simulate import simulate_votes
from dissensus_train.curate import ItemList, datasheet, read_answers, sheet_croissant, write_items
from dissensus_train.curate.sheet import QUESTIONS, merged

if TYPE_CHECKING:
    from pathlib import Path

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
    assert "2 groups of duplicates found: 3 items beyond one of each (1 exact and 2 near duplicates)." in sheet
    # Of the set, item 1 of scans is a duplicate of item 0, which is there too.
    assert "Of these, 2 are not in this set and 1 are; 1 groups have two items or more in it." in sheet
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
    assert "6 annotators gave 20 judgements (20 votes) on 5 items: 4.00 per item (4 to 4)." in sheet
    assert "0 items of this set have no votes; 1 items with votes are not in it." in sheet
    assert "| judgements with an unsure | not stated |  |" in sheet
    assert "Krippendorff" in sheet


def test_votes_of_models_are_said_and_are_in_no_number() -> None:
    votes = simulate_votes(np.full((5, 2), 0.5), np.full(5, 4), annotators=6, seed=0)
    assert votes.annotators is not None
    marked = replace(votes, by_model=votes.annotators.code == 0)
    sheet = datasheet(ITEMS, name="Digits", votes=marked, resamples=100)
    told = f"{marked.n_model_votes} of 20 votes are from models"
    assert told in sheet
    assert f"5 annotators gave {20 - marked.n_model_votes} judgements" in sheet
    people = datasheet(ITEMS, name="Digits", votes=marked.people, resamples=100)
    assert [line for line in sheet.splitlines() if told not in line] == [
        line for line in people.splitlines() if "annotators gave" not in line
    ]


def test_duplicates_that_are_kept_as_groups_are_not_said_to_be_gone() -> None:
    everything = datasheet(DUPLICATES, name="Digits", duplicates=DUPLICATES)
    assert "Of these, 0 are not in this set and 3 are; 2 groups have two items or more in it." in everything
    clean = DUPLICATES.take(DUPLICATES.columns["kept"] == "yes")
    assert "Of these, 3 are not in this set and 0 are; 0 groups have two items or more in it." in datasheet(
        clean, name="Digits", duplicates=DUPLICATES
    )
    unnamed = ItemList(items=clean.items, sources=np.full(len(clean), ""))
    assert "Of these, 3 are not in this set and 0 are" in datasheet(unnamed, name="Digits", duplicates=DUPLICATES)


def test_a_licence_of_no_source_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"licence is given for 'nosuch', which is no source; choose pens\|inks, scans"
    ):
        datasheet(ITEMS, name="Digits", licences={"nosuch": "CC0"})


def test_every_question_of_the_form_is_answered_from_the_file_or_not_stated(tmp_path: Path) -> None:
    path = tmp_path / "sheet.toml"
    path.write_text(
        "".join(
            f"[{section}]\n" + "".join(f'{key} = "the {section} {key} | of it"\n' for key in asked)
            for section, asked in QUESTIONS.items()
        )
    )
    full, bare = (datasheet(ITEMS, name="Digits", answers=each) for each in (read_answers(path), None))
    for section, asked in QUESTIONS.items():
        for key, question in asked.items():
            assert f"- {question}: the {section} {key} \\| of it" in full
            assert f"- {question}: not stated" in bare
    asked_for = {each for asked in QUESTIONS.values() for each in asked}
    assert {"purpose", "biases", "exclusions", "instructions", "pay", "meant_for", "licence", "updates"} <= asked_for
    path.write_text("[motivation]\npurpos = 'x'\n")
    with pytest.raises(InputError, match=r"line 2: 'purpos' is no key in \[motivation\]; did you mean 'purpose'"):
        read_answers(path)
    path.write_text("[motivation]\npurpose = 3\n")
    with pytest.raises(InputError, match="'purpose' is 3; give a text"):
        read_answers(path)


def test_a_later_sheet_overrules_an_earlier_one_where_it_answers() -> None:
    both = merged({"uses": {"so_far": "a", "not_for": "b"}}, {"uses": {"so_far": "c", "not_for": " "}})
    assert both == {"uses": {"so_far": "c", "not_for": "b"}}


def test_the_croissant_file_describes_the_list_and_what_was_answered(tmp_path: Path) -> None:
    write_items(ITEMS, tmp_path / "splits.csv")
    answers = {"distribution": {"licence": "CC-BY-4.0"}, "composition": {"biases": "few left-handed people"}}
    found = json.loads(json.dumps(sheet_croissant(ITEMS, tmp_path / "splits.csv", name="Digits", answers=answers)))
    assert found["license"] == "CC-BY-4.0"
    assert found["rai:dataBiases"] == "few left-handed people"
    assert "rai:dataUseCases" not in found
    (file,) = found["distribution"]
    assert file["sha256"] == hashlib.sha256((tmp_path / "splits.csv").read_bytes()).hexdigest()
    columns = [field["name"] for field in found["recordSet"][0]["field"]]
    assert columns == ["item", "source", "label", "region", "split", "group"]
