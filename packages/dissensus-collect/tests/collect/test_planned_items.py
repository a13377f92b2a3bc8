"""A list that `dissensus plan` wrote says how many votes each item is to get."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from dissensus.errors import InputError
from dissensus.planning import next_votes
from dissensus.planning.next_items import write_list
from dissensus.votes import simulate_votes
from dissensus_collect.project.items import project_items
from dissensus_collect.project.reading import read_project
from dissensus_collect.project.setup_check import check_setup, project_budget
from dissensus_collect.project.starting import init_project
from dissensus_collect.store.opening import open_database

if TYPE_CHECKING:
    from pathlib import Path


def test_collect_takes_the_list_and_asks_for_as_many_votes(tmp_path: Path) -> None:
    votes = simulate_votes(np.random.default_rng(0).dirichlet([0.5, 0.5], 80), 4, annotators=20, seed=0)
    texts = np.array([f"text of {item}" for item in votes.items])
    found = next_votes(replace(votes, item_attributes={"text": texts}), budget=60)
    assert found is not None
    table = tmp_path / "next.csv"
    write_list(found, table)
    init_project(tmp_path / "project", texts=table, classes=votes.classes)
    project = read_project(tmp_path / "project")
    items = project_items(project)
    assert [each.wanted for each in items] == found.votes.tolist()
    assert items[0].text == f"text of {found.items[0]}"
    assert project_budget(project).votes == 60
    assert any("the votes that their table wants = 60 votes" in each.sentence for each in check_setup(project))
    with open_database(project) as database:
        wanted = database.read_now(lambda c: c.execute("SELECT name, wanted FROM item").fetchall())
    assert dict(wanted) == {str(item): k for item, k in zip(found.items, found.votes.tolist(), strict=True)}


def test_a_number_of_votes_that_is_none_is_refused_with_its_place(tmp_path: Path) -> None:
    table = tmp_path / "next.csv"
    table.write_text("item,text,votes_wanted\na,one,2\nb,two,\n")
    init_project(tmp_path / "project", texts=table, classes=("x", "y"))
    table.write_text("item,text,votes_wanted\na,one,2\nb,two,\nc,three,few\n")
    with pytest.raises(InputError, match="'few' in column votes_wanted is no number of votes"):
        project_items(read_project(tmp_path / "project"))
    table.write_text("item,text,votes_wanted\na,one,2\nb,two,\n")
    assert [each.wanted for each in project_items(read_project(tmp_path / "project"))] == [2, None]
