"""Items while a project runs: set aside, replaced, added; and single judgements that are not used."""

from __future__ import annotations

import json
import shutil
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from dissensus.errors import InputError
from dissensus_collect.cli.shared import app
from dissensus_collect.project.items import hashes_of, project_items
from dissensus_collect.project.reading import read_project
from dissensus_collect.results.collected import collected_votes
from dissensus_collect.results.export import export_project
from dissensus_collect.results.live import status_of
from dissensus_collect.store.items import load_items
from dissensus_collect.store.opening import open_database, snapshot
from dissensus_collect.store.slots import put_back, retire, unvoid, void
from dissensus_collect.store.sqlite import schema
from dissensus_collect.work.assignment import heartbeat
from dissensus_collect.work.leaving import delete_participant, exclude, include
from tests.collect.conftest import Collecting, make_project
from tests.collect.web import legal_values, visited, web_project

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dissensus_collect.project.reading import Project

    Make = Callable[..., Collecting]


def item(project: Collecting, name: str) -> int:
    return int(project.one("SELECT id FROM item WHERE name = ?", name))


def votes(project: Collecting) -> dict[str, int]:
    def read(cursor: Any) -> dict[str, int]:
        found = collected_votes(cursor, project.project)
        return dict(zip(found.items.tolist(), found.panel_size.tolist(), strict=True))

    return project.database.read_now(read)


def test_a_retired_item_is_shown_to_nobody_and_the_project_completes_without_it(collecting: Make) -> None:
    project = collecting(items=3, k=2)
    one = project.worker()
    project.work_through(one)
    project.write(retire, item(project, "t1"), reason="the file is gone", by="researcher")
    assert votes(project) == {"t0": 1, "t2": 1}, "its votes are kept apart"
    other = project.worker()
    assert project.work_through(other) == 2
    told = project.write(status_of)
    assert (told.items, told.complete, told.retired) == (2, 2, 1)
    project.write(put_back, item(project, "t1"), by="researcher")
    assert votes(project) == {"t0": 2, "t1": 1, "t2": 2}
    assert project.one("SELECT free FROM item WHERE name = 't1'") == 1
    kinds = [kind for (kind,) in project.read("SELECT kind FROM event WHERE kind LIKE 'item %' ORDER BY id")]
    assert kinds == ["item retired", "item put back"]


def test_whoever_has_a_retired_item_on_the_screen_gets_another_and_their_answer_is_kept(collecting: Make) -> None:
    project = collecting(items=2, k=1)
    one = project.worker()
    lease = project.lease(one)
    project.write(retire, lease.item.id, reason="blurred", by="researcher")
    assert project.lease(one).item.id != lease.item.id
    assert not project.save(one, lease).counted
    assert project.one("SELECT count(*) FROM assignment WHERE state = 'done' AND counts = 0") == 1


def test_votes_of_a_retired_item_are_uncounted_and_counted_again_like_others(collecting: Make) -> None:
    project = collecting(items=1, k=2)
    people = [project.worker(), project.worker()]
    for who in people:
        project.work_through(who)
    project.write(retire, 1, reason="blurred", by="researcher")
    project.write(exclude, people[0], reason="speed", by="researcher")
    assert project.read("SELECT wanted, counted, free FROM item") == [(1, 1, 0)]
    project.write(include, people[0], by="researcher")
    project.write(delete_participant, people[1])
    assert project.read("SELECT wanted, counted, free FROM item") == [(0, 0, 0)]
    project.write(put_back, 1, by="researcher")
    assert project.read("SELECT wanted, counted, free FROM item") == [(2, 1, 1)]


def test_a_voided_judgement_is_kept_and_somebody_else_gives_a_vote_in_its_place(collecting: Make) -> None:
    project = collecting(items=2, k=1)
    project.work_through(project.worker())
    first = int(project.one("SELECT min(id) FROM assignment"))
    project.write(void, first, reason="the image was not shown", by="researcher")
    assert project.read("SELECT counts, voided FROM assignment WHERE id = ?", first) == [(0, "the image was not shown")]
    assert sum(votes(project).values()) == 1
    other = project.worker()
    assert project.work_through(other) == 1
    assert sum(votes(project).values()) == 2
    project.write(unvoid, first, by="researcher")
    assert project.one("SELECT counts FROM assignment WHERE id = ?", first) == 0, "the item has its vote by now"
    project.write(exclude, other, reason="speed", by="researcher")
    assert project.one("SELECT counts FROM assignment WHERE id = ?", first) == 1
    with pytest.raises(InputError, match="no finished judgement"):
        project.write(void, 99, reason="x", by="researcher")


def read_again(project: Collecting, **options: Any) -> Any:
    items = project_items(project.project)
    return project.write(load_items, items, hashes=hashes_of(project.project, items), **options)


def rewritten(project: Project, old: str, new: str) -> None:
    assert project.table is not None
    text = project.table.read_text()
    assert old in text
    project.table.write_text(text.replace(old, new))


def test_a_changed_text_is_refused_once_shown_or_kept_apart_as_a_version(collecting: Make) -> None:
    project = collecting(items=2, k=1)
    rewritten(project.project, "text 1", "a typo mended")
    read_again(project)
    assert project.one("SELECT text FROM item WHERE name = 't1'") == "a typo mended", "nobody had seen it"
    project.work_through(project.worker())
    rewritten(project.project, "a typo mended", "another text")
    with pytest.raises(InputError, match=r"text of item 't1' was changed .* items replace"):
        read_again(project)
    assert read_again(project, replaced=["t1"]) == ["t1"]
    assert project.read("SELECT name, text, counted, wanted FROM item ORDER BY name") == [
        ("t0", "text 0", 1, 1),
        ("t1", "another text", 0, 1),
        ("t1#1", "a typo mended", 1, 1),
    ]
    assert votes(project) == {"t0": 1}
    with pytest.raises(InputError, match="'t0' has not changed"):
        read_again(project, replaced=["t0"])
    assert project.work_through(project.worker()) == 1
    rewritten(project.project, "another text", "a third one")
    read_again(project, replaced=["t1"])
    assert project.one("SELECT count(*) FROM item WHERE name = 't1#2'") == 1


def test_replaced_bytes_of_an_image_are_noticed_at_the_start(tmp_path: Path) -> None:
    project = web_project(tmp_path, items=3, k=1)
    with visited(project) as site:
        site.annotator().finish(project)
    shutil.copy(tmp_path / "item0.png", tmp_path / "item1.png")
    with pytest.raises(InputError, match=r"file of item 'item1.png' was changed after people had been shown it"):
        open_database(project)


def test_an_item_that_is_gone_is_refused_with_a_remedy_that_works(tmp_path: Path) -> None:
    project = web_project(tmp_path, items=3, k=1)
    with visited(project) as site:
        site.annotator().finish(project)
    (tmp_path / "item1.png").unlink()
    with pytest.raises(InputError, match=r"items retire .* item1.png"):
        open_database(project)
    told = CliRunner().invoke(app, ["items", "retire", str(tmp_path), "item1.png", "--reason", "lost"])
    assert told.exit_code == 0, told.output
    open_database(project).close()
    with snapshot(project) as cursor:
        assert collected_votes(cursor, project).items.tolist() == ["item0.png", "item2.png"]


@pytest.mark.parametrize("gold", [True, False])
def test_a_sign_of_life_does_not_bring_back_an_item_that_was_set_aside(
    collecting: Callable[..., Collecting], gold: bool
) -> None:
    """Neither a gold item nor that of somebody who does not count holds a slot that could be missing."""
    project = collecting(items=4, k=2, gold__items='[{ item = "t0", yes = ["a"] }]')
    who = project.worker()
    if not gold:
        project.write(exclude, who, reason="speed", by="researcher")
    while True:
        lease = project.lease(who)
        if (project.one("SELECT role FROM item WHERE id = ?", lease.item.id) == "gold") == gold:
            break
        project.save(who, lease)
    project.write(retire, lease.item.id, reason="blurred", by="researcher")
    assert not project.write(heartbeat, who, assignment=lease.assignment, tab="tab").held
    assert project.lease(who).item.id != lease.item.id
    assert project.one("SELECT count(*) FROM assignment WHERE state = 'open'") == 1


def test_items_are_added_replaced_and_set_aside_from_another_process_while_the_project_is_served(
    tmp_path: Path, url: str | None
) -> None:
    project = web_project(tmp_path, texts=["one", "two"], k=1)
    there = [] if url is None else ["--database", url]
    run = CliRunner()
    with visited(project, url) as site:
        visitor = site.annotator()
        shown = visitor.next()
        with (tmp_path / "texts.csv").open("a") as file:
            file.write("t2,three\n")
        assert "1 item added: t2" in run.invoke(app, ["items", "add", str(tmp_path), *there]).output
        gone = "t0" if shown["item"]["text"] == "one" else "t1"
        assert run.invoke(app, ["items", "retire", str(tmp_path), gone, "--reason", "blurred", *there]).exit_code == 0
        assert visitor.next()["item"]["text"] != shown["item"]["text"]
        assert run.invoke(app, ["items", "retire", str(tmp_path), "t9", "--reason", "x", *there]).exit_code != 0
        assert site.read("SELECT count(*) FROM event WHERE kind IN ('items added', 'item retired')") == [(2,)]
        wrong = run.invoke(app, ["void", str(tmp_path), "--item", "t2", "--reason", "not shown", *there])
        assert "no such judgement" in str(wrong.exception)
        table = tmp_path / "texts.csv"
        other = "t1" if gone == "t0" else "t0"
        visitor.finish(project)
        table.write_text(table.read_text().replace(f"{other},", f"{other},new "))
        done = run.invoke(app, ["items", "replace", str(tmp_path), other, *there])
        assert done.exit_code == 0, done.output
        assert site.read("SELECT name FROM item WHERE retired_at IS NOT NULL ORDER BY name") == sorted(
            [(f"{other}#1",), (gone,)]
        )


def test_the_researchers_page_sets_items_aside_and_judgements_too(tmp_path: Path) -> None:
    project = web_project(tmp_path, texts=["one", "two"], k=2)
    with visited(project) as site:
        visitor = site.annotator()
        visitor.save(visitor.next(), legal_values(project))
        ((number, done),) = site.read("SELECT id, item FROM assignment WHERE state = 'done'")
        researcher = site.researcher()
        assert f"/researcher/item/{done}" in researcher.open("/researcher/items").text
        page = researcher.open(f"/researcher/item/{done}")
        assert "Do not use it" in page.text
        refused = researcher.form("/researcher/item/void", item=str(done), judgement=str(number))
        assert refused.status_code == 422
        page = researcher.form("/researcher/item/void", item=str(done), judgement=str(number), reason="blank")
        assert (page.url.path, "blank" in page.text) == (f"/researcher/item/{done}", True)
        assert site.read("SELECT voided FROM assignment WHERE id = ?", number) == [("blank",)]
        researcher.form("/researcher/item/unvoid", item=str(done), judgement=str(number))
        assert site.read("SELECT counts FROM assignment WHERE id = ?", number) == [(1,)]
        page = researcher.form("/researcher/item/retire", item=str(done), reason="not of this world")
        assert "Set aside: not of this world" in page.text
        assert "not of this world" in researcher.open("/researcher/items").text
        researcher.form("/researcher/item/put-back", item=str(done))
        with (tmp_path / "texts.csv").open("a") as file:
            file.write("t2,three\n")
        researcher.form("/researcher/items/refresh")
        assert site.read("SELECT count(*) FROM item") == [(3,)]
        assert researcher.open("/researcher/item/99").status_code == 404


def test_what_is_not_used_stands_apart_in_the_export(tmp_path: Path) -> None:
    import polars as pl

    project = make_project(tmp_path / "p", items=3, k=1)
    with open_database(project) as database:
        collecting = Collecting(project, database)
        collecting.work_through(collecting.worker())
        collecting.write(retire, 1, reason="blurred", by="researcher")
        second = collecting.one("SELECT id FROM assignment WHERE item = 2")
        collecting.write(void, second, reason="not shown", by="researcher")
        with snapshot(project) as cursor:
            export_project(cursor, project, tmp_path / "out")
    aside = pl.read_parquet(tmp_path / "out" / "set_aside.parquet")
    told = aside.select("item", "voided", "retired").unique().sort("item").rows()
    assert told == [("t0", None, "blurred"), ("t1", "not shown", None)]
    assert pl.read_parquet(tmp_path / "out" / "answers.parquet")["item"].unique().to_list() == ["t2"]


def old_database(path: Path, project: Project) -> None:
    """A database of the first version: two items, one of them judged."""
    connection = sqlite3.connect(path)
    connection.executescript(schema("schema.sql") + schema("triggers.sql"))
    names = json.dumps(project.classes.names)
    connection.execute("INSERT INTO instrument VALUES ('v1', ?, 'rows', 3, ?, 2, 2, 1.0)", (project.toml, names))
    connection.executemany(
        "INSERT INTO item VALUES (?, ?, 'vote', NULL, ?, 2, ?, 0, ?, 0, ?)",
        [(1, "t0", "text 0", 0, 2, 0.1), (2, "t1", "text 1", 0, 2, 0.6)],
    )
    connection.execute(
        "INSERT INTO annotator (id, pseudonym, state, seen_at, arrived_at) VALUES (1, 'a1', 'working', 1, 1)"
    )
    connection.execute(
        "INSERT INTO assignment (id, token, item, annotator, state, holds, number, class_order, version, leased_at, "
        "expires) VALUES (1, 'tok', 1, 1, 'open', 0, 1, '[0, 1, 2]', 'v1', 1, 2)"
    )
    connection.execute(
        "INSERT INTO judgement (id, assignment, uuid, revision, current, saved_at) VALUES (1, 1, 'u', 0, 1, 2)"
    )
    connection.executemany("INSERT INTO response (judgement, class, value) VALUES (1, ?, ?)", [(0, 1), (1, 0), (2, 0)])
    connection.execute("UPDATE assignment SET state = 'done', counts = 1, done_at = 2 WHERE id = 1")
    connection.execute("UPDATE item SET counted = 1, free = 1 WHERE id = 1")
    connection.commit()
    connection.close()


def test_a_database_of_the_first_version_opens_with_everything_in_it(tmp_path: Path) -> None:
    project = make_project(tmp_path, items=2, k=2)
    old_database(tmp_path / "collect.sqlite", project)
    told = CliRunner().invoke(app, ["status", str(tmp_path)])
    assert "older version of dissensus" in str(told.exception), "only a server changes the tables"
    with open_database(project) as database:
        collecting = Collecting(project, database)
        assert votes(collecting) == {"t0": 1}
        assert collecting.work_through(collecting.worker()) == 2
        collecting.check()
        assert collecting.one("SELECT count(*) FROM item WHERE hash IS NULL") == 0
    path = tmp_path / "collect.toml"
    path.write_text(path.read_text().replace("unsure = true", "unsure = false"))
    with pytest.raises(InputError, match="unsure were changed after items had been shown"):
        open_database(read_project(tmp_path))


def test_a_database_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    project = make_project(tmp_path, items=2, k=2)
    open_database(project).close()
    with sqlite3.connect(tmp_path / "collect.sqlite") as connection:
        connection.execute("UPDATE schema_version SET version = 99")
    with pytest.raises(InputError, match="newer version of dissensus"):
        open_database(project)


def test_after_a_clean_stop_the_file_alone_holds_everything(tmp_path: Path) -> None:
    project = make_project(tmp_path / "p", items=20, k=2)
    with open_database(project) as database:
        collecting = Collecting(project, database)
        collecting.work_through(collecting.worker())
        collecting.read("SELECT 1")
    assert not (tmp_path / "p" / "collect.sqlite-wal").exists()
    shutil.copy(tmp_path / "p" / "collect.sqlite", tmp_path / "alone.sqlite")
    with sqlite3.connect(tmp_path / "alone.sqlite") as connection:
        assert connection.execute("SELECT count(*) FROM judgement").fetchone() == (20,)


@pytest.mark.parametrize("old", ["unsure = true", 'layout = "rows"'])
def test_what_may_be_answered_cannot_change_once_items_were_shown(tmp_path: Path, old: str) -> None:
    project = make_project(tmp_path, items=2, k=1)
    with open_database(project) as database:
        collecting = Collecting(project, database)
        collecting.lease(collecting.worker())
    path = tmp_path / "collect.toml"
    new = {"unsure = true": "unsure = false", 'layout = "rows"': 'layout = "select-all"'}[old]
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(InputError, match="changed after items had been shown"):
        open_database(read_project(tmp_path))
