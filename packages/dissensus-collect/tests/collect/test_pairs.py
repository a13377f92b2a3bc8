"""Two things side by side: which side is which is drawn for everybody, and known in the end."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from PIL import Image

from dissensus.errors import InputError
from dissensus_collect.project.reading import read_project
from dissensus_collect.project.starting import init_project
from dissensus_collect.results.collected import collected_votes
from dissensus_collect.results.export import export_project
from dissensus_collect.simulation.bots import simulate
from dissensus_collect.simulation.crowd import Behaviour
from dissensus_collect.store.opening import snapshot
from tests.collect.web import visited

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus_collect.project.reading import Project

THREE = ("A is better", "About the same", "B is better")


def pair_project(folder: Path, *, pairs: int = 8, classes: tuple[str, ...] = THREE, image: bool = False) -> Project:
    """Pairs of a good answer, on the left of the table, and a bad one, by the models llama and gpt."""
    folder.mkdir(parents=True, exist_ok=True)
    if image:
        Image.new("RGB", (600, 400), "red").save(folder / "good.png")
    with (folder / "pairs.csv").open("w", newline="") as file:
        rows = [
            [f"p{n}", f"Question {n}?", "good.png" if image else "good", "bad", "llama", "gpt"] for n in range(pairs)
        ]
        csv.writer(file).writerows([["item", "prompt", "left", "right", "left_name", "right_name"], *rows])
    init_project(folder, pairs=folder / "pairs.csv", classes=classes, k=2, items_per_annotator=pairs)
    return read_project(folder)


def answer(project: Project, place: Path, choose: str) -> pl.DataFrame:
    """Two people go through all pairs; what is exported."""
    with visited(project) as site:
        for _ in range(2):
            person = site.annotator()
            told = person.next()
            while told["state"] == "item":
                sides = [side.get("text") or "good" for side in told["item"]["sides"]]
                at = {"good": sides.index("good"), "left": 0, "middle": 1}[choose]
                shown = told["classes"]
                chosen = shown[1] if choose == "middle" else shown[-at]
                told = person.save(told, {str(chosen["id"]): "yes"}).json()["next"]
    with snapshot(project) as cursor:
        export_project(cursor, project, place, formats=("csv",))
        votes = collected_votes(cursor, project)
    counted = dict(zip(votes.classes, votes.counts.sum(axis=0).tolist(), strict=True))
    return pl.read_csv(place / "preferences.csv").with_columns(pl.lit(str(counted)).alias("counted"))


def test_whoever_sees_the_better_side_votes_for_it_wherever_it_is_shown(tmp_path: Path) -> None:
    found = answer(pair_project(tmp_path / "p"), tmp_path / "out", "good")
    assert found.columns[:5] == ["item", "annotator", "left", "right", "choice"]
    assert set(found["left"]) == {"llama", "gpt"}, "sides are drawn"
    better = found.select(pl.when(pl.col("choice") == "left").then("left").otherwise("right")).to_series()
    assert set(better) == {"llama"}
    assert found["counted"][0] == str({"A is better": 16, "About the same": 0, "B is better": 0}), "A: the table's left"


def test_whoever_always_takes_the_left_side_votes_for_both_models(tmp_path: Path) -> None:
    found = answer(pair_project(tmp_path / "p"), tmp_path / "out", "left")
    assert set(found["choice"]) == {"left"}
    per_person = found.group_by("annotator").agg(pl.col("left").unique().len())["left"].to_list()
    assert per_person == [2, 2], "everybody sees each model on both sides"
    assert len(set(found.group_by("item").agg(pl.col("left").n_unique())["left"])) == 2, "not the same for all"


def test_ties_and_degrees_are_written_as_the_format_preferences_reads_them(tmp_path: Path) -> None:
    assert set(answer(pair_project(tmp_path / "p"), tmp_path / "out", "middle")["choice"]) == {"tie"}
    five = ("A is much better", "A is better", "About the same", "B is better", "B is much better")
    found = answer(pair_project(tmp_path / "five", classes=five), tmp_path / "out5", "left")
    assert set(found["choice"]) == {"A>>B"}
    assert set(answer(pair_project(tmp_path / "x", classes=five), tmp_path / "o", "middle")["choice"]) == {"A>B"}
    two = answer(pair_project(tmp_path / "two", classes=("A", "B")), tmp_path / "out2", "left")
    assert set(two["choice"]) == {"left"}


def test_a_side_may_be_an_image_and_names_of_models_never_reach_a_browser(tmp_path: Path) -> None:
    project = pair_project(tmp_path, image=True)
    with visited(project) as site:
        person = site.annotator()
        told = person.next()
        (source,) = [side["src"] for side in told["item"]["sides"] if "src" in side]
        assert person.get(source).headers["content-type"] == "image/png"
        assert site.visitor().get(source).status_code == 404
        assert "llama" not in str(told)
        assert told["item"]["prompt"] == f"Question {told['item']['prompt'][9:-1]}?"
        assert [each["name"] for each in told["classes"]] == list(THREE), "buttons are where the sides are"
        page = site.researcher().open("/researcher/item/1").text
        assert "Question 0?" in page
        assert "&#34;sides&#34;" not in page, "no JSON for people"


def test_a_table_without_two_sides_is_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("item,left\na,one\n")
    with pytest.raises(InputError, match="right"):
        init_project(tmp_path, pairs=tmp_path / "pairs.csv")
    path = tmp_path / "collect.toml"
    assert not path.exists()
    (tmp_path / "pairs.csv").write_text("item,left,right\na,one,two\n")
    init_project(tmp_path, pairs=tmp_path / "pairs.csv")
    path.write_text(path.read_text().replace('layout = "single-choice"', 'layout = "rows"'))
    with pytest.raises(InputError, match="single-choice for pairs"):
        read_project(tmp_path)


def test_bots_can_rehearse_pairs_of_texts_and_images(tmp_path: Path) -> None:
    """They say the same of a pair whichever side is which, so that two of one mind agree on every pair."""
    project = pair_project(tmp_path / "p", pairs=4, image=True)
    truth = np.tile([1.0, 0.0, 0.0], (4, 1))
    quiet = Behaviour(abandon=0, careless=0, exclude=0)
    run = simulate(project, tmp_path / "sim", annotators=2, behaviour=quiet, seed=0, truth=truth)
    assert run.votes_per_item == {2: 4}
    with snapshot(read_project(tmp_path / "sim")) as cursor:
        votes = collected_votes(cursor, read_project(tmp_path / "sim"))
    assert votes.counts.sum(axis=0).tolist() == [8, 0, 0]
