"""Items come from a folder or a table, and what was shown stays what it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dissensus.errors import InputError
from dissensus_collect.project.items import ProjectItem, classes_of, project_items
from dissensus_collect.project.reading import read_project
from dissensus_collect.project.starting import init_project
from dissensus_collect.store.opening import open_database
from tests.collect.conftest import Collecting, make_project
from tests.collect.test_project import images

if TYPE_CHECKING:
    from pathlib import Path


def changed(project: Collecting | Path, old: str, new: str) -> None:
    folder = project if not isinstance(project, Collecting) else project.project.folder
    path = folder / "collect.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_images_are_named_by_their_place_and_texts_by_their_column(tmp_path: Path) -> None:
    folder = images(tmp_path / "pets", "dog/1.png", "cat/2.JPG", "notes/readme.png")
    (folder / "notes" / "text.txt").write_text("not an image")
    init_project(folder)
    assert project_items(read_project(folder)) == [
        ProjectItem(name=name, media=name) for name in ("cat/2.JPG", "dog/1.png", "notes/readme.png")
    ]
    texts = make_project(tmp_path / "texts", items=2)
    assert project_items(texts) == [ProjectItem(name="t0", text="text 0"), ProjectItem(name="t1", text="text 1")]


def test_classes_are_sorted_as_numbers_where_they_are(tmp_path: Path) -> None:
    assert classes_of(images(tmp_path / "a", "10/x.png", "9/x.png"), is_table=False) == ["9", "10"]
    assert classes_of(images(tmp_path / "b", "x.png"), is_table=False) == list("0123456789")


def test_every_item_is_loaded_once_and_wants_k_votes(tmp_path: Path) -> None:
    project = make_project(
        tmp_path, items=3, k=2, gold__items='[{ item = "t0", yes = ["a"] }]', practice__items='["t1"]'
    )
    for _ in range(2):
        with open_database(project) as database:
            rows = database.read_now(
                lambda c: c.execute("SELECT name, role, wanted FROM item ORDER BY name").fetchall()
            )
    assert rows == [("t0", "gold", 0), ("t1", "practice", 0), ("t2", "vote", 2)]


def test_items_may_be_added_but_not_taken_away(tmp_path: Path) -> None:
    project = make_project(tmp_path, items=2)
    open_database(project).close()
    table = tmp_path / "items.csv"
    table.write_text(table.read_text() + "t9,text 9\n")
    with open_database(project) as database:
        assert database.read_now(lambda c: c.execute("SELECT count(*) FROM item").fetchone()) == (3,)
    table.write_text("item,text\nt9,text 9\n")
    with pytest.raises(InputError, match="item 't0' is in the project's database but no longer in its source"):
        open_database(project)


def test_an_item_that_was_shown_keeps_its_role(tmp_path: Path) -> None:
    project = make_project(tmp_path, items=2, k=1)
    with open_database(project) as database:
        collecting = Collecting(project, database)
        shown = collecting.lease(collecting.worker()).item.id
        names = dict(collecting.read("SELECT id, name FROM item"))
    other = next(name for number, name in names.items() if number != shown)
    for name, refused in ((other, False), (names[shown], True)):
        path = tmp_path / "collect.toml"
        lines = path.read_text().splitlines()
        place = lines.index("[practice]") + 1
        lines[place] = f'items = ["{name}"]'
        path.write_text("\n".join(lines))
        if refused:
            with pytest.raises(InputError, match="was shown as a vote item and is now a practice item"):
                open_database(read_project(tmp_path))
        else:
            open_database(read_project(tmp_path)).close()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"gold__items": '[{ item = "nine", yes = ["a"] }]'}, r"\[gold\] names the item 'nine', which is not there"),
        ({"practice__items": '["nine"]'}, r"\[practice\] names the item 'nine'"),
        ({"practice__items": '["t0"]', "gold__items": '[{ item = "t0" }]'}, "both a gold and a practice item"),
        ({"practice__items": '["t0", "t1"]'}, "all items are gold or practice"),
    ],
)
def test_items_that_are_not_there_cannot_be_gold(tmp_path: Path, change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        open_database(make_project(tmp_path, items=2, **change))


def test_k_may_be_changed_between_two_starts_without_losing_votes(tmp_path: Path) -> None:
    project = make_project(tmp_path, items=2, k=1)
    with open_database(project) as database:
        collecting = Collecting(project, database)
        collecting.work_through(collecting.worker())
    changed(tmp_path, "k = 1 ", "k = 2 ")
    project = read_project(tmp_path)
    with open_database(project) as database:
        collecting = Collecting(project, database)
        assert collecting.work_through(collecting.worker()) == 2
        assert collecting.read("SELECT DISTINCT wanted, counted FROM item") == [(2, 2)]
    changed(tmp_path, "k = 2 ", "k = 1 ")
    with open_database(read_project(tmp_path)) as database:
        assert database.read_now(lambda c: c.execute("SELECT DISTINCT wanted, counted FROM item").fetchall()) == [
            (2, 2)
        ]


def test_classes_cannot_change_once_items_were_shown_and_wording_can(tmp_path: Path) -> None:
    project = make_project(tmp_path, items=2, k=1)
    with open_database(project) as database:
        collecting = Collecting(project, database)
        collecting.lease(collecting.worker())
    changed(tmp_path, "Could this", "Might this")
    open_database(read_project(tmp_path)).close()
    changed(tmp_path, '["a", "b", "c"]', '["b", "a", "c"]')
    with pytest.raises(InputError, match="classes, layout, scale or unsure were changed after items had been shown"):
        open_database(read_project(tmp_path))
