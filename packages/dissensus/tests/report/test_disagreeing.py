"""The part of the page on people, from simulated panels with known groups."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from dissensus.evaluation.people.evaluating import evaluate_people, item_predictions
from dissensus.labels.labelling import label
from dissensus.report import write_report
from dissensus.report.disagreeing import OTHERS, group_dots, who_disagrees
from dissensus.report.dots import write_figure
from dissensus.votes.privacy import pseudonymous
from tests.evaluation.people.panels import simulated
from tests.report.subjects import made
from tests.votes.people import with_people

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.report.subject import Subject
    from dissensus.votes.table import Votes


def about(votes: Votes, truth: Any) -> Subject:
    people = label(votes, "frequency")
    return made(people, {"panel": truth.mean(axis=1)[None]}, votes=votes, resamples=2, metrics=("soft_nll",))


@pytest.fixture(scope="module")
def camps() -> Subject:
    """On items 3 and 5 the groups say the opposite; elsewhere group a chooses class a more often."""
    votes, truth = simulated(items=80, people=24, share=0.9, part=1.5, seed=1)
    assert votes.annotators is not None
    split = np.isin(votes.item, [3, 5])
    said = np.where(split, np.where(votes.annotators.code < 12, 0, 1), votes.label).astype(np.int32)
    return about(replace(votes, label=said), truth)


def test_camps_are_drawn_told_of_and_shown_with_their_items(camps: Subject) -> None:
    found = who_disagrees(camps, seed=0)
    assert found is not None
    assert found.map is not None
    rows = found.map.data["people-map"]
    assert {row["kind"] for row in rows} == {"a", "b"}
    places = {kind: [row["x"] for row in rows if row["kind"] == kind] for kind in ("a", "b")}
    assert min(places["a"]) > max(places["b"]) or min(places["b"]) > max(places["a"])
    assert any("Groups that differ in what they say of the same items: by group" in each for each in found.sentences)
    assert any(each.startswith("Those at the right choose ‘") for each in found.sentences)
    ((attribute, cards),) = found.parted
    assert attribute == "group"
    assert {card.text for card in cards} >= {"i3", "i5"}
    first = next(card for card in cards if card.text == "i3")
    assert [[part.name for part in parts] for _, parts in sorted(first.bars)] == [["a"], ["b"]]
    assert [each.slug for each in found.tables] == ["people-map", "groups"]
    assert len(found.tables[0].records) == 24


def test_a_panel_without_structure_is_said_to_have_none() -> None:
    votes, truth = simulated(items=60, people=20, share=0.5, seed=3)
    found = who_disagrees(about(votes, truth), seed=0)
    assert found is not None
    assert found.map is None
    assert found.parted == ()
    assert any("there is no map to draw" in each for each in found.sentences)
    assert any("No significant difference: by group" in each for each in found.sentences)
    assert [each.slug for each in found.tables] == ["groups"]


def test_small_groups_have_no_numbers_anywhere(camps: Subject) -> None:
    votes = camps.votes
    assert votes is not None
    small = np.array(["large"] * 12 + ["middle"] * 9 + ["tiny"] * 3, dtype=np.dtypes.StringDType())
    found = who_disagrees(replace(camps, votes=with_people(votes, attributes={"group": small})), seed=0)
    assert found is not None
    # The middle one is hidden with it; a single group that is left is not compared with anything.
    assert all(table.slug != "groups" for table in found.tables)
    assert found.groups is None
    three = np.array(["large"] * 8 + ["middle"] * 8 + ["tiny"] * 4 + ["small"] * 4, dtype=np.dtypes.StringDType())
    found = who_disagrees(replace(camps, votes=with_people(votes, attributes={"group": three})), seed=0)
    assert found is not None
    groups = next(table for table in found.tables if table.slug == "groups")
    assert {record["group"] for record in groups.records} == {"large", "middle"}
    assert any("no numbers of" in each and "tiny" in each for each in found.sentences)
    assert found.map is not None
    kinds = {row["kind"] for row in found.map.data["people-map"]}
    assert "tiny" not in kinds
    assert kinds <= {"large", "middle", OTHERS} or all("side" in each or "middle" in each for each in kinds)


def test_an_item_tells_only_of_groups_with_enough_votes_on_it(camps: Subject) -> None:
    found = who_disagrees(replace(camps, least_people=11), seed=0)
    assert found is not None
    votes = [
        int(who.rpartition("(")[2].rstrip(")")) for _, cards in found.parted for card in cards for who, _ in card.bars
    ]
    assert all(number >= 11 for number in votes)
    everybody = who_disagrees(camps, seed=0)
    assert everybody is not None
    assert any(who.endswith("(10)") for _, cards in everybody.parted for card in cards for who, _ in card.bars)


def test_an_attribute_of_many_values_is_left_out_and_said_so(camps: Subject) -> None:
    assert camps.votes is not None
    many = np.array([f"town {k}" for k in range(24)], dtype=np.dtypes.StringDType())
    found = who_disagrees(replace(camps, votes=with_people(camps.votes, attributes={"town": many})), seed=0)
    assert found is not None
    assert any("Not shown by group: town" in each for each in found.sentences)


def test_nobody_is_told_of_where_votes_are_anonymous_or_hold_several_classes(camps: Subject) -> None:
    assert camps.votes is not None
    anonymous = replace(camps.votes, annotators=None)
    assert who_disagrees(replace(camps, votes=anonymous), seed=0) is None
    several = replace(camps.votes, judgement=np.arange(len(camps.votes), dtype=np.int32))
    assert who_disagrees(replace(camps, votes=several), seed=0) is None


def test_the_page_and_its_files_name_nobody_under_pseudonyms(camps: Subject, tmp_path: Path) -> None:
    votes = camps.votes
    assert votes is not None
    assert votes.annotators is not None
    names = np.array([f"secretname{k}" for k in range(24)], dtype=np.dtypes.StringDType())
    hidden = pseudonymous(with_people(votes, names=names), "key of ours")
    path = write_report(replace(camps, votes=hidden), tmp_path / "page.html")
    text = path.read_text(encoding="utf-8")
    assert "Who disagrees with whom" in text
    assert 'id="people"' in text
    for file in (path, *(tmp_path / "page-files").iterdir()):
        held = file.read_bytes()
        assert b"secretname" not in held, file
        assert b"key of ours" not in held, file
    # Beside the dots of the panel, too.
    assert b"person-" in (tmp_path / "page-files" / "annotators.svg").read_bytes()
    assert b"person-" in (tmp_path / "page-files" / "people-map.csv").read_bytes()


def test_distances_by_group_are_drawn_as_a_file(tmp_path: Path) -> None:
    votes, truth = simulated(items=40, people=24)
    found = evaluate_people(votes, {"m": item_predictions(votes, votes.items, truth.mean(axis=1))})
    rows = group_dots(found).data["group-distance"]
    assert [row["group"] for row in rows] == ["group: a", "group: b"]
    assert all(row["low"] <= row["distance"] <= row["high"] for row in rows)
    write_figure(group_dots(found), tmp_path / "groups.svg")
    assert "group: a" in (tmp_path / "groups.svg").read_text(encoding="utf-8")
