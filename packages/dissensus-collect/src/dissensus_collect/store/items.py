"""The items of a project in its database: taken in, replaced, and given their roles."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dissensus.errors import InputError, meant
from dissensus_collect.project.orders import fraction
from dissensus_collect.store.events import log_event
from dissensus_collect.store.slots import count_vote_items, retire

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

    Args:
        cursor: the writer's cursor.
        project: the project.
        items: from `project_items`.
        hashes: from `hashes_of`.
        now: the time.
        replaced: names of items whose new content replaces the old one: the old item is kept, with its votes, under
            the name `NAME#1` (or a higher number), and is set aside.
        by: who asked for it, for the log.
    """
    names = {item.name for item in items}
    roles = _roles(project, names)
    rows = cursor.execute(
        "SELECT id, name, role, hash, text, retired_at IS NOT NULL, EXISTS (SELECT 1 FROM assignment WHERE "
        "assignment.item = item.id) FROM item"
    ).fetchall()
    there = {
        name: _There(number, role, digest, text, bool(retired), bool(shown))
        for number, name, role, digest, text, retired, shown in rows
    }
    used = {name: each for name, each in there.items() if not each.retired}
    gone = sorted(used.keys() - names)
    if gone:
        raise InputError(
            f"{project.folder}: item '{gone[0]}' is in the project's database but no longer in its source; put it "
            f"back, or set it aside with 'dissensus collect items retire {project.folder} {gone[0]} --reason ...'"
        )
    asked = {item.name: item.wanted or project.k for item in items}
    wanted = {name: asked[name] if role == "vote" else 0 for name, role in roles.items()}
    _change_roles(cursor, project, used, roles, wanted)
    renewed = _change_contents(
        cursor, project, used, {item.name: item for item in items}, hashes, replaced, now=now, by=by
    )
    # Evenly spaced, so that every item is equally likely to be the next one after a random place.
    order = [item.name for item in items]
    if project.order.items == "random":
        order.sort(key=lambda name: fraction(project.seed, "item", name))
    spread = {name: place / len(order) for place, name in enumerate(order)}
    new = [item for item in items if item.name not in there or item.name in renewed]
    cursor.executemany(
        "INSERT INTO item (name, role, media, text, wanted, free, spread, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                item.name,
                roles[item.name],
                item.media,
                item.text,
                wanted[item.name],
                wanted[item.name],
                spread[item.name],
                hashes[item.name],
            )
            for item in new
        ],
    )
    if new and there:
        log_event(cursor, now=now, annotator=None, kind="items added", detail={"items": len(new), "by": by})
    count_vote_items(cursor)
    return [item.name for item in new]


@dataclass(frozen=True)
class _There:
    """An item that is in the database."""

    id: int
    role: str
    hash: str | None
    text: str | None
    retired: bool
    shown: bool


def _roles(project: Project, names: Collection[str]) -> dict[str, str]:
    """By name, what each item is for."""
    gold, practice = {each.item for each in project.gold_items}, set(project.practice_items)
    for table, listed in (("gold", gold), ("practice", practice)):
        unknown = sorted(listed - set(names))
        if unknown:
            raise InputError(
                f"{project.folder}: [{table}] names the item '{unknown[0]}', which is not there; name an item "
                "of the project"
            )
    both = sorted(gold & practice)
    if both:
        raise InputError(f"{project.folder}: '{both[0]}' is both a gold and a practice item; make it one or the other")
    if not set(names) - gold - practice:
        raise InputError(f"{project.folder}: all items are gold or practice; add items to vote on")
    return {name: "gold" if name in gold else "practice" if name in practice else "vote" for name in names}


def _change_roles(
    cursor: Cursor,
    project: Project,
    used: Mapping[str, _There],
    roles: Mapping[str, str],
    wanted: Mapping[str, int],
) -> None:
    changed = sorted(name for name, each in used.items() if roles[name] != each.role)
    for name in changed:
        if used[name].shown:
            raise InputError(
                f"{project.folder}: '{name}' was shown as a {used[name].role} item and is now a {roles[name]} "
                "item; make it what it was"
            )
    cursor.executemany(
        "UPDATE item SET role = ?, wanted = ?, free = ? WHERE id = ?",
        [(roles[name], wanted[name], wanted[name], used[name].id) for name in changed],
    )


def _change_contents(
    cursor: Cursor,
    project: Project,
    used: Mapping[str, _There],
    items: Mapping[str, ProjectItem],
    hashes: Mapping[str, str],
    replaced: Collection[str],
    *,
    now: float,
    by: str,
) -> set[str]:
    """Takes over changed files and texts that nobody was shown; the names of replaced items, which are set aside."""
    renewed = set()
    fresh = []
    for name, each in used.items():
        before = (
            hashlib.sha256(each.text.encode()).hexdigest() if each.hash is None and each.text is not None else each.hash
        )
        if before == hashes[name] and each.hash is not None:
            continue
        if before is None or before == hashes[name] or not each.shown:
            fresh.append((hashes[name], items[name].text, each.id))
        elif name not in replaced:
            raise InputError(
                f"{project.folder}: the {'text' if items[name].media is None else 'file'} of item '{name}' was changed "
                "after people had been shown it; change it back, or keep both versions apart with 'dissensus collect "
                f"items replace {project.folder} {name}'"
            )
        else:
            retire(cursor, each.id, now=now, reason="replaced by a new version", by=by)
            number = 1
            while cursor.execute("SELECT 1 FROM item WHERE name = ?", (f"{name}#{number}",)).fetchone():
                number += 1
            cursor.execute("UPDATE item SET name = ? WHERE id = ?", (f"{name}#{number}", each.id))
            log_event(cursor, now=now, annotator=None, kind="item replaced", detail={"item": each.id, "by": by})
            renewed.add(name)
    cursor.executemany("UPDATE item SET hash = ?, text = ? WHERE id = ?", fresh)
    same = sorted(set(replaced) - renewed)
    unknown = [name for name in same if name not in used]
    if unknown:
        raise InputError(f"{project.folder}: there is no item '{unknown[0]}' to replace{meant(unknown[0], used)}")
    if same:
        raise InputError(f"{project.folder}: item '{same[0]}' has not changed; there is nothing to replace it by")
    return renewed
