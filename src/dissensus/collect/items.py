"""The items of a study: which there are, and putting them into its database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dissensus.collect.orders import fraction
from dissensus.datasets.sources import IMAGE_SUFFIXES, image_paths, read_source
from dissensus.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.collect.database import Cursor
    from dissensus.collect.study import CollectStudy


@dataclass(frozen=True, kw_only=True)
class StudyItem:
    """An item before it is in the database: a media file (relative to the folder of images) or a text."""

    name: str
    media: str | None = None
    text: str | None = None


def study_items(study: CollectStudy) -> list[StudyItem]:
    """The items that a study's folder of images or table of texts holds, in their order."""
    if study.images is not None:
        names = [path.relative_to(study.images).as_posix() for path in image_paths(study.images)]
        if not names:
            raise InputError(f"{study.images}: no image in it; images end in {', '.join(IMAGE_SUFFIXES)}")
        return [StudyItem(name=name, media=name) for name in names]
    assert study.table is not None
    source = read_source(study.table, item=study.item_column, text=study.text_column)
    if source.texts is None:
        raise InputError(f"{study.table}: holds images, not texts; give a table with a column of texts")
    return [StudyItem(name=str(name), text=str(text)) for name, text in zip(source.items, source.texts, strict=True)]


def classes_of(source: Path, *, is_table: bool) -> list[str]:
    """The classes that a source names: sub-folders of images, labels of a table; the ten digits where it names none."""
    if is_table:
        labels = read_source(source).labels
        named = set() if labels is None else {str(label) for label in labels if str(label)}
    else:
        paths = image_paths(source)
        if not paths:
            raise InputError(f"{source}: no image in it; images end in {', '.join(IMAGE_SUFFIXES)}")
        named = {path.relative_to(source).parts[0] for path in paths if path.parent != source}
    if not 2 <= len(named) <= 100:
        return [str(digit) for digit in range(10)]
    return sorted(named, key=lambda name: (not name.isdigit(), int(name) if name.isdigit() else 0, name))


def load_items(cursor: Cursor, study: CollectStudy) -> None:
    """Puts items that are not there yet into the database, and refuses where some that were there are gone."""
    items = study_items(study)
    names = {item.name for item in items}
    gold, practice = {each.item for each in study.gold}, set(study.practice)
    for table, listed in (("gold", gold), ("practice", practice)):
        unknown = sorted(listed - names)
        if unknown:
            raise InputError(f"{study.folder}: [{table}] names the item '{unknown[0]}', which is not there; name items")
    both = sorted(gold & practice)
    if both:
        raise InputError(f"{study.folder}: '{both[0]}' is both a gold and a practice item; make it one")
    if not names - gold - practice:
        raise InputError(f"{study.folder}: all items are gold or practice; add items to vote on")
    roles = {name: "gold" if name in gold else "practice" if name in practice else "vote" for name in names}
    wanted = {name: study.k if role == "vote" else 0 for name, role in roles.items()}
    there = dict(cursor.execute("SELECT name, role FROM item").fetchall())
    gone = sorted(there.keys() - names)
    if gone:
        raise InputError(
            f"{study.folder}: item '{gone[0]}' is in the study's database but no longer in its source; put it back"
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
                f"{study.folder}: '{used[0]}' was shown as a {there[used[0]]} item and is now a {roles[used[0]]} item; "
                "make it what it was"
            )
        cursor.executemany(
            "UPDATE item SET role = ?, wanted = ?, free = ? WHERE name = ?",
            [(roles[name], wanted[name], wanted[name], name) for name in changed],
        )
    # Evenly spaced, so that after a random place every item is equally likely to be the next.
    order = [item.name for item in items]
    if study.item_order == "random":
        order.sort(key=lambda name: fraction(study.seed, "item", name))
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
