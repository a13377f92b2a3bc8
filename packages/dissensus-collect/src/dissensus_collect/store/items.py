"""The items of a project in its database: taken in, replaced, and given their roles."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

from dissensus.errors import InputError, meant
from dissensus_collect.project.orders import fraction
from dissensus_collect.store.events import log_event
from dissensus_collect.store.slots import retire

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from dissensus_collect.project.items import ProjectItem
    from dissensus_collect.project.reading import Project
    from dissensus_collect.store.database import Cursor


def changed_items(cursor: Cursor, hashes: Mapping[str, str]) -> list[str]:
    """The names of items that people were shown and whose file or text is another now."""
    rows = cursor.execute(
        "SELECT name, hash FROM item WHERE retired_at IS NULL AND hash IS NOT NULL AND EXISTS "
        "(SELECT 1 FROM assignment WHERE assignment.item = item.id) ORDER BY name"
    ).fetchall()
    return [name for name, digest in rows if hashes.get(name, digest) != digest]


class _Known(NamedTuple):
    """An item that is in the database; `shown` says whether anybody was."""

    id: int
    name: str
    role: str
    hash: str | None
    text: str | None
    retired: bool
    shown: bool


def load_items(
    cursor: Cursor,
    project: Project,
    items: Sequence[ProjectItem],
    *,
    hashes: Mapping[str, str],
    now: float,
    replaced: Collection[str] = (),
    by: str = "start",
) -> list[str]:
    """Puts new items into the database and returns their names; refused if items that were there are gone or changed.

    Of the items named in `replaced`, the new content replaces the old: the old item is kept, with its votes, under the
    name `NAME#1` (or a higher number), and is set aside. `by` is who asked for it, for the log.
    """
    by_name = {item.name: item for item in items}
    roles = _roles(project, by_name)
    wanted = {item.name: item.wanted or project.k if roles[item.name] == "vote" else 0 for item in items}
    rows = cursor.execute(
        "SELECT id, name, role, hash, text, retired_at IS NOT NULL, EXISTS (SELECT 1 FROM assignment WHERE "
        "assignment.item = item.id) FROM item"
    ).fetchall()
    known = {row[1]: _Known(*row) for row in rows}
    used = {name: item for name, item in known.items() if not item.retired}
    if gone := sorted(used.keys() - by_name.keys()):
        raise InputError(
            f"{project.folder}: item '{gone[0]}' is in the project's database but no longer in its source; put it "
            f"back, or set it aside with 'dissensus collect items retire {project.folder} {gone[0]} --reason ...'"
        )
    for name in sorted(name for name, item in used.items() if roles[name] != item.role):
        if used[name].shown:
            raise InputError(
                f"{project.folder}: '{name}' was shown as a {used[name].role} item and is now a {roles[name]} "
                "item; make it what it was"
            )
        cursor.execute(
            "UPDATE item SET role = ?, wanted = ?, free = ? WHERE id = ?",
            (roles[name], wanted[name], wanted[name], used[name].id),
        )
    renewed = _change_contents(cursor, project, used, by_name, hashes, replaced, now=now, by=by)
    # Evenly spaced, so that every item is equally likely to be the next one after a random place.
    order = list(by_name)
    if project.order.items == "random":
        order.sort(key=lambda name: fraction(project.seed, "item", name))
    spread = {name: place / len(order) for place, name in enumerate(order)}
    new = [item for item in items if item.name not in known or item.name in renewed]
    cursor.executemany(
        "INSERT INTO item (name, role, media, text, wanted, free, spread, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (name, roles[name], item.media, item.text, wanted[name], wanted[name], spread[name], hashes[name])
            for item in new
            for name in [item.name]
        ],
    )
    if new and known:
        log_event(cursor, "items added", None, {"items": len(new), "by": by}, now=now)
    return [item.name for item in new]


def _roles(project: Project, names: Collection[str]) -> dict[str, str]:
    """By name, what each item is for."""
    gold, practice = {entry.item for entry in project.gold_items}, set(project.practice_items)
    for table, listed in (("gold", gold), ("practice", practice)):
        if unknown := sorted(listed - set(names)):
            raise InputError(
                f"{project.folder}: [{table}] names the item '{unknown[0]}', which is not there; name an item "
                "of the project"
            )
    if both := sorted(gold & practice):
        raise InputError(f"{project.folder}: '{both[0]}' is both a gold and a practice item; make it one or the other")
    if not set(names) - gold - practice:
        raise InputError(f"{project.folder}: all items are gold or practice; add items to vote on")
    return {name: "gold" if name in gold else "practice" if name in practice else "vote" for name in names}


def _change_contents(
    cursor: Cursor,
    project: Project,
    used: Mapping[str, _Known],
    items: Mapping[str, ProjectItem],
    hashes: Mapping[str, str],
    replaced: Collection[str],
    *,
    now: float,
    by: str,
) -> set[str]:
    """Takes over changed files and texts that nobody was shown; the names of replaced items, which are set aside."""
    renewed = set()
    for name, item in used.items():
        before = item.hash
        if before is None and item.text is not None:
            before = hashlib.sha256(item.text.encode()).hexdigest()
        if item.hash == hashes[name]:
            continue
        if before is None or before == hashes[name] or not item.shown:
            cursor.execute("UPDATE item SET hash = ?, text = ? WHERE id = ?", (hashes[name], items[name].text, item.id))
        elif name not in replaced:
            raise InputError(
                f"{project.folder}: the {'text' if items[name].media is None else 'file'} of item '{name}' was changed "
                "after people had been shown it; change it back, or keep both versions apart with 'dissensus collect "
                f"items replace {project.folder} {name}'"
            )
        else:
            retire(cursor, item.id, now=now, reason="replaced by a new version", by=by)
            number = 1
            while cursor.execute("SELECT 1 FROM item WHERE name = ?", (f"{name}#{number}",)).fetchone():
                number += 1
            cursor.execute("UPDATE item SET name = ? WHERE id = ?", (f"{name}#{number}", item.id))
            log_event(cursor, "item replaced", None, {"item": item.id, "by": by}, now=now)
            renewed.add(name)
    for name in sorted(set(replaced) - renewed):
        if name not in used:
            raise InputError(f"{project.folder}: there is no item '{name}' to replace{meant(name, used)}")
        raise InputError(f"{project.folder}: item '{name}' has not changed; there is nothing to replace it by")
    return renewed
