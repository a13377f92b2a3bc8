"""Items and judgements of a project that runs: `items`, `void`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dissensus.cli import options as opt
from dissensus.cli.printing import console, json_alone, next_step, note, plain, typed
from dissensus.errors import InputError, meant
from dissensus.votes.echo import number
from dissensus_collect.cli.shared import BY, DatabaseUrl, Folder, app, beside, item_named, read_project, stated

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

items_app = typer.Typer(name="items", help="Items of a project that runs: set aside, use again, replace, add.")
app.add_typer(items_app)
Reason = Annotated[str, typer.Option(help="Why; it is kept in the log.")]
Item = Annotated[str, typer.Argument(metavar="ITEM", help="The item's name.")]


@items_app.command()
def retire(folder: Folder, item: Item, reason: Reason, database: DatabaseUrl = None, json: opt.JsonTo = None) -> None:
    """Set an item aside, even while the project is being served: nobody is shown it, its votes are kept apart."""
    from dissensus_collect.store.slots import retire

    def work(cursor: Any) -> None:
        retire(cursor, item_named(cursor, item), now=time.time(), reason=reason, by=BY)

    beside(folder, database, work)
    if json_alone(json, {"item": item, "set_aside": True, "reason": reason}):
        return
    note(f"'{item}' is set aside")
    next_step(typed("collect", "items", "put-back", folder, item, database=stated(database)), "undoes it")


@items_app.command("put-back")
@opt.command("put_back")
def put_back(
    folder: Folder,
    items: list[str] | None = None,
    reported: bool = False,
    database: DatabaseUrl = None,
    json: opt.JsonTo = None,
) -> None:
    """Use items again that were set aside; their votes count as before, and reports of them no more."""
    from dissensus_collect.work.reports import set_aside_by_reports, use_again

    if not items and not reported:
        raise InputError("items put-back: name items, or give --reported for all that reports have set aside")

    def work(cursor: Any) -> int:
        chosen = set()
        for name in items or ():
            chosen.add(item_named(cursor, name))
            if cursor.execute("SELECT 1 FROM item WHERE name = ? AND retired_at IS NULL", (name,)).fetchone():
                raise InputError(f"items put-back: '{name}' was not set aside; it is in use")
        chosen |= set(set_aside_by_reports(cursor) if reported else ())
        for item in sorted(chosen):
            use_again(cursor, item, now=time.time(), by=BY)
        return len(chosen)

    used = beside(folder, database, work)
    if json_alone(json, {"put_back": used}):
        return
    note(f"{used:,} {'item is' if used == 1 else 'items are'} used again")
    next_step(typed("collect", "status", folder, database=stated(database)))


@items_app.command()
@opt.command("replace")
def replace(folder: Folder, items: list[str], database: DatabaseUrl = None, json: opt.JsonTo = None) -> None:
    """Use the new version of changed items; the old ones are set aside under NAME#1, with what was answered to them."""
    added = _read_items(folder, database, replaced=items)
    if json_alone(json, {"replaced": items, "added": [name for name in added if name not in items]}):
        return
    note(f"{len(items)} replaced, {len(added) - len(items)} added")
    next_step(typed("collect", "status", folder, database=stated(database)))


@items_app.command()
def add(folder: Folder, database: DatabaseUrl = None, json: opt.JsonTo = None) -> None:
    """Take in items that were put into the project's folder or table, even while it is being served."""
    added = _read_items(folder, database)
    if json_alone(json, {"added": added}):
        return
    console().print(f"{number(len(added), 'item')} added" + (f": {plain(', '.join(added[:5]))}" if added else ""))
    next_step(typed("collect", "status", folder, database=stated(database)))


def _read_items(folder: Path, database: str | None, *, replaced: Collection[str] = ()) -> list[str]:
    from dissensus_collect.project.items import hashes_of, project_items
    from dissensus_collect.store.items import load_items

    project = read_project(folder)
    items = project_items(project)
    about: dict[str, Any] = {"hashes": hashes_of(project, items), "replaced": replaced, "by": BY}
    return beside(folder, database, lambda cursor: load_items(cursor, project, items, now=time.time(), **about))


@app.command()
@opt.command("void")
def void(
    folder: Folder,
    reason: str = "",
    item: str | None = None,
    annotator: str | None = None,
    undo: bool = False,
    database: DatabaseUrl = None,
    json: opt.JsonTo = None,
) -> None:
    """Stop using single judgements (say, of an image that was not shown), and ask others for votes in their place."""
    from dissensus_collect.store.slots import unvoid, void

    if item is None and annotator is None:
        raise InputError("void: say which judgements: --item NAME, --annotator PSEUDONYM, or both")
    if not undo and not reason.strip():
        raise InputError("void: give a --reason; it is kept with each judgement")

    def work(cursor: Any) -> int:
        if item is not None:
            item_named(cursor, item)
        if annotator is not None:
            people = [name for (name,) in cursor.execute("SELECT pseudonym FROM annotator").fetchall()]
            if annotator not in people:
                raise InputError(f"void: there is no annotator '{annotator}'{meant(annotator, people)}")
        judgements = cursor.execute(
            "SELECT assignment.id FROM assignment JOIN item ON item.id = assignment.item "
            "JOIN annotator ON annotator.id = assignment.annotator WHERE assignment.state = 'done' "
            f"AND voided IS {'NOT NULL' if undo else 'NULL'} AND item.name = coalesce(?, item.name) "
            "AND pseudonym = coalesce(?, pseudonym) ORDER BY assignment.id",
            (item, annotator),
        ).fetchall()
        for (judgement,) in judgements:
            if undo:
                unvoid(cursor, judgement, now=time.time(), by=BY)
            else:
                void(cursor, judgement, now=time.time(), reason=reason.strip(), by=BY)
        return len(judgements)

    changed = beside(folder, database, work)
    if not changed:
        raise InputError("void: there is no such judgement; the names are those of the export")
    if json_alone(json, {"judgements": changed, "used": undo}):
        return
    console().print(f"{number(changed, 'judgement')} {'used again' if undo else 'not used any more'}")
    next_step(typed("collect", "status", folder, database=stated(database)))
