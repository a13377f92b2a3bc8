"""What leaves a project: votes that the other rooms read, files that spreadsheets cannot be hurt by, no names."""

from __future__ import annotations

import csv
import hashlib
import json
import subprocess
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

from dissensus.errors import InputError
from dissensus.labels.schemes import weighted
from dissensus.votes.reading import read_votes
from dissensus_collect.results.collected import collected_votes
from dissensus_collect.results.export import CODEBOOK, export_project, write_guarded_csv
from dissensus_collect.results.pay import bulk_files, decide_pay
from dissensus_collect.results.quality import annotator_quality, item_quality
from dissensus_collect.store.events import log_event
from dissensus_collect.store.opening import open_database, snapshot
from dissensus_collect.work.leaving import delete_participant, exclude
from tests.collect.panels import NOW, agreement_by_class, judge_all, text_project

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus_collect.project.reading import Project
    from dissensus_collect.store.database import Database

WORDS = ("no", "yes", "unsure")


def cells(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


def fill(database: Database, project: Project, *, people: int, first: int = 0) -> list[int]:
    return [
        judge_all(
            database,
            project,
            lambda item, p=person: {  # type: ignore[misc]
                label: WORDS[(item * (k + 1) + p) % 3] for k, label in enumerate(project.classes.names)
            },
            external=f"PROLIFIC-{person}",
        )
        for person in range(first, first + people)
    ]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return text_project(tmp_path / "project", items=5, k=3, classes=("cat", "dog", "=cmd()"))


def exported(database: Database, project: Project, folder: Path, **options: Any) -> Any:
    return database.read_now(lambda cursor: export_project(cursor, project, folder, **options))


def test_votes_are_what_people_said(project: Project, tmp_path: Path) -> None:
    with open_database(project) as database:
        fill(database, project, people=3)
        votes = database.read_now(lambda cursor: collected_votes(cursor, project))
        said = database.read_now(
            lambda cursor: cursor.execute(
                "SELECT i.name, r.class, r.value FROM response r JOIN judgement j ON j.id = r.judgement "
                "JOIN assignment a ON a.id = j.assignment JOIN item i ON i.id = a.item"
            ).fetchall()
        )
    assert votes.classes == ("cat", "dog", "=cmd()", "none")
    assert votes.panel_size.tolist() == [3] * 5
    yes, unsure = np.zeros((5, 3)), np.zeros((5, 3))
    for name, label, value in said:
        yes[int(name[4:]), label] += value == 1
        unsure[int(name[4:]), label] += value == 2
    place = [votes.items.tolist().index(f"item{n}") for n in range(5)]
    np.testing.assert_array_equal(votes.counts[place][:, :3], yes + unsure)
    assert votes.unsure is not None
    assert int(votes.unsure.sum()) == unsure.sum()
    assert votes.seconds is not None
    assert set(votes.seconds.tolist()) == {5.0}


def test_every_kind_of_file_reads_back_as_the_same_votes(project: Project, tmp_path: Path) -> None:
    with open_database(project) as database:
        fill(database, project, people=3)
        done = exported(database, project, tmp_path / "out")
    labels = weighted(done.votes, "uncertainty-weighted")
    for kind in ("csv", "jsonl", "parquet"):
        classes = ("cat", "dog", "'=cmd()" if kind == "csv" else "=cmd()")
        read = read_votes(tmp_path / "out" / f"votes.{kind}", classes=classes)
        again = weighted(read, "uncertainty-weighted")
        order = [again.items.tolist().index(name) for name in labels.items.tolist()]
        np.testing.assert_allclose(again.probabilities[order], labels.probabilities)


def test_a_spreadsheet_finds_no_formula_in_any_csv(project: Project, tmp_path: Path) -> None:
    with open_database(project) as database:
        fill(database, project, people=3)
        done = exported(database, project, tmp_path / "out")
    seen = Counter[str]()
    for path in done.files:
        if path.suffix == ".csv":
            for row in cells(path):
                for cell in row:
                    seen[path.name] += cell.startswith("'=")
                    assert not cell.startswith(("=", "+", "@", "\t", "\r")), f"{path.name}: {cell}"
    assert seen["answers.csv"] == 15
    assert seen["votes.csv"] == 15
    parquet = pl.read_parquet(tmp_path / "out" / "answers.parquet")
    assert set(parquet["class"]) == {"cat", "dog", "=cmd()"}


def test_numbers_keep_their_sign(tmp_path: Path) -> None:
    table = pl.DataFrame({"item": ["-1", "+2.5", "-x", "=1", "@a", "plain"], "value": [-1, 2, 3, 4, 5, 6]})
    write_guarded_csv(table, tmp_path / "t.csv")
    assert [row[0] for row in cells(tmp_path / "t.csv")][1:] == [
        "-1", "+2.5", "'-x", "'=1", "'@a", "plain",
    ]  # fmt: skip


def test_the_manifest_is_what_sha256sum_checks(project: Project, tmp_path: Path) -> None:
    with open_database(project) as database:
        fill(database, project, people=2)
        done = exported(database, project, tmp_path / "out")
    lines = (tmp_path / "out" / "manifest.sha256").read_text().splitlines()
    listed = {name: digest for digest, name in (line.split("  ") for line in lines)}
    assert listed == dict(done.checksums)
    assert set(listed) == {path.name for path in done.files} - {"manifest.sha256"}
    for name, digest in listed.items():
        assert hashlib.sha256((tmp_path / "out" / name).read_bytes()).hexdigest() == digest
    subprocess.run(["sha256sum", "-c", "--quiet", "manifest.sha256"], cwd=tmp_path / "out", check=True)


def test_who_people_are_leaves_on_request_only_and_in_a_file_of_its_own(project: Project, tmp_path: Path) -> None:
    with open_database(project) as database:
        fill(database, project, people=3)
        exported(database, project, tmp_path / "plain")
        exported(database, project, tmp_path / "named", identities=True)
    for path in (tmp_path / "plain").iterdir():
        assert b"PROLIFIC-" not in path.read_bytes(), path.name
    telling = {path.stem for path in (tmp_path / "named").iterdir() if b"PROLIFIC-" in path.read_bytes()}
    assert telling == {"identities"}


def test_only_what_counts_is_in_answers_and_surplus_stands_apart(project: Project, tmp_path: Path) -> None:
    with open_database(project) as database:
        people = fill(database, project, people=3)
        database.write_now(lambda cursor: exclude(cursor, people[0], now=NOW + 50, reason="test", by="test"))
        fill(database, project, people=2, first=3)
        exported(database, project, tmp_path / "out")
        names = dict(database.read_now(lambda cursor: cursor.execute("SELECT id, pseudonym FROM annotator").fetchall()))
    answers = pl.read_parquet(tmp_path / "out" / "answers.parquet")
    assert answers.columns == list(CODEBOOK["answers"])
    votes = answers.group_by("item").agg(pl.col("annotator").n_unique())
    assert votes["annotator"].to_list() == [3] * 5
    assert names[people[0]] not in answers["annotator"].to_list()
    surplus = pl.read_parquet(tmp_path / "out" / "surplus.parquet")
    assert names[people[0]] not in surplus["annotator"].to_list()
    annotators = pl.read_parquet(tmp_path / "out" / "annotators.parquet")
    assert annotators.filter(pl.col("annotator") == names[people[0]])["reason"].to_list() == ["test"]


def test_the_order_that_was_shown_is_in_the_answers(project: Project, tmp_path: Path) -> None:
    with open_database(project) as database:
        fill(database, project, people=1)
        exported(database, project, tmp_path / "out")
        orders = database.read_now(
            lambda cursor: cursor.execute(
                "SELECT i.name, a.class_order FROM assignment a JOIN item i ON i.id = a.item"
            ).fetchall()
        )
    answers = pl.read_parquet(tmp_path / "out" / "answers.parquet")
    for name, order in orders:
        rows = answers.filter(pl.col("item") == name).sort("position")
        assert rows["class"].to_list() == [project.classes.names[k] for k in json.loads(order)]


def test_a_deleted_person_is_gone_from_the_export(project: Project, tmp_path: Path) -> None:
    with open_database(project) as database:
        people = fill(database, project, people=2)
        names = dict(database.read_now(lambda cursor: cursor.execute("SELECT id, pseudonym FROM annotator").fetchall()))
        paid: dict[str, Any] = {"now": NOW, "decision": "approved", "by": "researcher"}
        database.write_now(lambda cursor: decide_pay(cursor, project, people[:1], **paid))
        database.write_now(lambda cursor: bulk_files(cursor, "prolific", now=NOW))
        database.write_now(lambda cursor: delete_participant(cursor, people[0], now=NOW + 90))
        exported(database, project, tmp_path / "out", identities=True)
    for table in ("answers", "annotators", "sessions", "identities", "surplus"):
        text = (tmp_path / "out" / f"{table}.csv").read_text()
        assert names[people[0]] not in text, table
        assert "PROLIFIC-0" not in text, table


def test_a_simulated_project_says_so(project: Project, tmp_path: Path) -> None:
    with open_database(project) as database:
        database.write_now(lambda cursor: log_event(cursor, "simulated", now=NOW))
        done = exported(database, project, tmp_path / "out")
    assert done.simulated
    assert "simulated: bots gave them" in (tmp_path / "out" / "codebook.md").read_text()


def test_nothing_is_overwritten_and_nothing_half_written(project: Project, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious").write_text("mine")
    with open_database(project) as database:
        with pytest.raises(InputError, match="something in it already"):
            exported(database, project, tmp_path / "out")
        with pytest.raises(InputError, match="not a format"):
            exported(database, project, tmp_path / "other", formats=("xls",))
        assert not (tmp_path / "other").exists()
        assert exported(database, project, tmp_path / "empty").votes is None
    assert (tmp_path / "out" / "precious").read_text() == "mine"
    assert not list(tmp_path.glob(".*.part"))


def test_a_project_is_read_while_it_is_being_served(project: Project) -> None:
    with open_database(project) as database:
        fill(database, project, people=1)
        with snapshot(project) as cursor:
            assert collected_votes(cursor, project).n_judgements == 5
            fill(database, project, people=1, first=1)
            # One state of things, whatever is written meanwhile.
            assert collected_votes(cursor, project).n_judgements == 5
        with snapshot(project) as cursor:
            assert collected_votes(cursor, project).n_judgements == 10


def test_both_databases_are_read_alike(tmp_path: Path, project: Project, url: str | None) -> None:
    with open_database(project, url) as database:
        fill(database, project, people=3)
        with snapshot(project, url) as cursor:
            done = export_project(cursor, project, tmp_path / "out", formats=("parquet",), identities=True)
            people, items = annotator_quality(cursor, project), item_quality(cursor, project)
            agreement = agreement_by_class(cursor, project)
    assert done.votes is not None
    assert done.votes.panel_size.tolist() == [3] * 5
    assert pl.read_parquet(tmp_path / "out" / "identities.parquet")["external"].to_list() == [
        "PROLIFIC-0", "PROLIFIC-1", "PROLIFIC-2",
    ]  # fmt: skip
    assert [each.judgements for each in people] == [5, 5, 5]
    assert [each.counted for each in items] == [3] * 5
    assert all(each.alpha is not None for each in agreement)


@pytest.mark.parametrize(
    ("layout", "said", "expected"),
    [
        ("single-choice", {"a": "yes", "b": "no", "c": "no"}, {"a": 1}),
        ("select-all", {"a": "yes", "b": "yes", "c": "no"}, {"a": 1, "b": 1}),
        ("rating", {"a": 5, "b": 3, "c": 1}, {"a": 1, "b": 1}),
        ("points", {"a": 70, "b": 30, "c": 0}, {"a": 1, "b": 1}),
    ],
)
def test_every_layout_becomes_votes(
    tmp_path: Path, layout: str, said: dict[str, Any], expected: dict[str, int]
) -> None:
    project = text_project(tmp_path / "project", items=2, k=1, classes=("a", "b", "c"), layout=f'layout = "{layout}"')
    with open_database(project) as database:
        judge_all(database, project, lambda _: said)
        done = exported(database, project, tmp_path / "out")
    votes = done.votes
    assert {votes.classes[k]: int(n) for k, n in enumerate(votes.counts[0]) if n} == expected
    amounts = pl.read_parquet(tmp_path / "out" / "answers.parquet")["amount"].drop_nulls().to_list()
    assert amounts == ([] if layout in ("single-choice", "select-all") else list(said.values()) * 2)
