"""The items of a project: finding them, and putting them into its database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dissensus.collect.orders import fraction
from dissensus.datasets.sources import read_source
from dissensus.errors import InputError
from dissensus.items.pictures import IMAGE_SUFFIXES, image_paths

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.collect.database import Cursor
    from dissensus.collect.project import Project


WANTED: Final = "votes_wanted"
"""The column of a table that says how many votes an item wants."""


@dataclass(frozen=True, kw_only=True)
class ProjectItem:
    """An item before it is in the database: a media file (relative to the folder of images) or a text.

    A table may say how many votes an item wants, in the column `votes_wanted`, as the lists of `dissensus plan` do;
    other items want the project's k.
    """

    name: str
    media: str | None = None
    text: str | None = None
    wanted: int | None = None


def project_items(project: Project) -> list[ProjectItem]:
    """The items in a project's folder of images or table of texts, in their order."""
    if project.images is not None:
        names = [path.relative_to(project.images).as_posix() for path in image_paths(project.images)]
        if not names:
            raise InputError(f"{project.images}: there is no image in it; images end in {', '.join(IMAGE_SUFFIXES)}")
        return [ProjectItem(name=name, media=name) for name in names]
    assert project.table is not None
    source = read_source(project.table, item=project.item_column, text=project.text_column)
    if source.texts is None:
        raise InputError(f"{project.table}: holds images, not texts; give a table with a column of texts")
    asked = source.columns.get(WANTED)
    wanted = [None] * len(source) if asked is None else [_whole(cell, project.table) for cell in asked.tolist()]
    return [
        ProjectItem(name=str(name), text=str(text), wanted=k)
        for name, text, k in zip(source.items, source.texts, wanted, strict=True)
    ]


def _whole(cell: str, table: Path) -> int | None:
    """The number of votes in a cell; an empty one leaves it to the project."""
    if not cell:
        return None
    if not cell.isdecimal() or int(cell) < 1:
        raise InputError(f"{table}: '{cell}' in column {WANTED} is no number of votes; give a whole number from 1 on")
    return int(cell)


def classes_of(source: Path, *, is_table: bool) -> list[str]:
    """The classes that a source names: sub-folders of images or labels of a table; the ten digits if it names none."""
    if is_table:
        labels = read_source(source).labels
        named = set() if labels is None else {str(label) for label in labels if str(label)}
    else:
        paths = image_paths(source)
        if not paths:
            raise InputError(f"{source}: there is no image in it; images end in {', '.join(IMAGE_SUFFIXES)}")
        named = {path.relative_to(source).parts[0] for path in paths if path.parent != source}
    if not 2 <= len(named) <= 100:
        return [str(digit) for digit in range(10)]
    return sorted(named, key=lambda name: (not name.isdigit(), int(name) if name.isdigit() else 0, name))


def load_items(cursor: Cursor, project: Project) -> None:
    """Puts new items into the database; refused if items that were there are gone."""
    items = project_items(project)
    names = {item.name for item in items}
    gold, practice = {each.item for each in project.gold}, set(project.practice)
    for table, listed in (("gold", gold), ("practice", practice)):
        unknown = sorted(listed - names)
        if unknown:
            raise InputError(
                f"{project.folder}: [{table}] names the item '{unknown[0]}', which is not there; name an item "
                "of the project"
            )
    both = sorted(gold & practice)
    if both:
        raise InputError(f"{project.folder}: '{both[0]}' is both a gold and a practice item; make it one or the other")
    if not names - gold - practice:
        raise InputError(f"{project.folder}: all items are gold or practice; add items to vote on")
    roles = {name: "gold" if name in gold else "practice" if name in practice else "vote" for name in names}
    asked = {item.name: item.wanted or project.k for item in items}
    wanted = {name: asked[name] if role == "vote" else 0 for name, role in roles.items()}
    there = dict(cursor.execute("SELECT name, role FROM item").fetchall())
    gone = sorted(there.keys() - names)
    if gone:
        raise InputError(
            f"{project.folder}: item '{gone[0]}' is in the project's database but no longer in its source; put it back"
        )
    changed = sorted(name for name, role in there.items() if roles[name] != role)
    if changed:
        used = cursor.execute(
            f"SELECT item.name FROM item JOIN assignment ON assignment.item = item.id WHERE item.name IN "
            f"({', '.join('?' * len(changed))}) LIMIT 1",
            changed,
        ).fetchone()
        if used:
            raise InputError(
                f"{project.folder}: '{used[0]}' was shown as a {there[used[0]]} item and is now a {roles[used[0]]} "
                "item; make it what it was"
            )
        cursor.executemany(
            "UPDATE item SET role = ?, wanted = ?, free = ? WHERE name = ?",
            [(roles[name], wanted[name], wanted[name], name) for name in changed],
        )
    # Evenly spaced, so that every item is equally likely to be the next one after a random place.
    order = [item.name for item in items]
    if project.item_order == "random":
        order.sort(key=lambda name: fraction(project.seed, "item", name))
    spread = {name: place / len(order) for place, name in enumerate(order)}
    cursor.executemany(
        "INSERT INTO item (name, role, media, text, wanted, free, spread) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (
                item.name,
                roles[item.name],
                item.media,
                item.text,
                wanted[item.name],
                wanted[item.name],
                spread[item.name],
            )
            for item in items
            if item.name not in there
        ],
    )
