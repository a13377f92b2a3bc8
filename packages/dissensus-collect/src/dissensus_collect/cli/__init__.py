"""`dissensus collect`: make a project, serve it, watch it, simulate it, export its votes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dissensus.cli import options as opt
from dissensus.cli.printing import console, json_alone, json_to, next_step, note, plain
from dissensus.errors import InputError, meant

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dissensus_collect.project.reading import Project
    from dissensus_collect.project.setup_check import Check
    from dissensus_collect.results.live import Status
    from dissensus_collect.simulation.bots import Simulation

app = typer.Typer(name="collect", help="Collect votes on the web: exactly k for every item.", no_args_is_help=True)
items_app = typer.Typer(name="items", help="Items of a project that runs: set aside, use again, replace, add.")
app.add_typer(items_app)
Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of the project.")]
DatabaseUrl = Annotated[
    str | None,
    typer.Option("--database", metavar="URL", help="postgresql://... in place of FOLDER/collect.sqlite."),
]


@app.command()
def init(
    folder: Folder,
    images: Annotated[Path | None, typer.Option(help="A folder of images; by default FOLDER itself.")] = None,
    texts: Annotated[Path | None, typer.Option(help="A table of texts (CSV, TSV, JSONL, Parquet).")] = None,
    classes: Annotated[
        str | None,
        typer.Option(
            help="Class names, separated by commas; by default the sub-folders or labels, or else the digits."
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the project; by default the folder's.")] = None,
    question: Annotated[str | None, typer.Option(help="What is asked about every class.")] = None,
    layout: Annotated[
        Literal["rows", "one-at-a-time", "select-all", "single-choice", "rating", "points"],
        typer.Option(help="How classes are answered."),
    ] = "rows",
    k: Annotated[int, typer.Option("--k", "-k", min=1, help="Votes that every item gets.")] = 6,
    items_per_annotator: Annotated[
        int, typer.Option(min=1, help="The most items that one annotator is asked about.")
    ] = 70,
    recruitment: Annotated[
        Literal["plain", "prolific", "mturk"], typer.Option(help="Where annotators come from.")
    ] = "plain",
    json: opt.JsonTo = None,
) -> None:
    """Make a project: one file, collect.toml, that holds every setting."""
    from dataclasses import asdict

    from dissensus_collect.project.reading import read_project
    from dissensus_collect.project.setup_check import check_setup
    from dissensus_collect.project.starting import init_project

    path = init_project(
        folder,
        images=images,
        texts=texts,
        classes=None if classes is None else [each.strip() for each in classes.split(",")],
        name=name,
        question=question,
        layout=layout,
        k=k,
        items_per_annotator=items_per_annotator,
        recruitment=recruitment,
    )
    project = read_project(folder)
    found = check_setup(project)
    told = {"file": str(path), "name": project.name, "classes": project.classes.names}
    if json_alone(json, {**told, "findings": [asdict(each) for each in found]}):
        return
    console().print(f"{plain(str(path))}: classes {plain(', '.join(project.classes.names))}; edit it as you like")
    _say_findings(found)
    next_step(f"dissensus collect serve {folder}")


@app.command()
def serve(
    folder: Folder,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 8000,
    database: DatabaseUrl = None,
    base_url: Annotated[
        str | None, typer.Option(help="The address that people use, if there is a proxy in front.")
    ] = None,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            help="A proxy, or a network of them, whose word on visitors' addresses is taken; may be repeated. One on "
            "this machine is trusted if there is a --base-url.",
        ),
    ] = None,
    password: Annotated[
        str | None,
        typer.Option(
            envvar="DISSENSUS_PASSWORD",
            show_envvar=True,
            help="The researcher's password; better given in the environment than on the command line.",
        ),
    ] = None,
) -> None:
    """Serve a project until Ctrl-C; prints the link for annotators, and one for the researcher that works once."""
    from dissensus_collect.hosting.serving import Links, serve_project, serving_warnings
    from dissensus_collect.project.reading import read_project
    from dissensus_collect.project.setup_check import check_setup

    project = read_project(folder)
    _say_findings(check_setup(project))
    for warning in serving_warnings(host=host, base_url=base_url, password=password):
        note(f"warning: {warning}")

    def ready(links: Links) -> None:
        # Not through Rich, which would break a link over two lines.
        typer.echo(f"annotators:  {links.annotator}")
        typer.echo(f"researcher:  {links.researcher}  (works once)")
        note("Ctrl-C stops the server; what was saved is on disk")

    serve_project(
        project,
        host=host,
        port=port,
        database_url=database,
        base_url=base_url,
        trusted_proxies=trusted_proxy or (),
        password=password,
        ready=ready,
    )
    note("stopped; everything that was acknowledged is saved")
    next_step(f"dissensus collect export {folder}")


@app.command()
def login(folder: Folder, json: opt.JsonTo = None) -> None:
    """Print a new one-time link for the researcher, while the project is being served."""
    from dissensus.errors import InputError
    from dissensus_collect.project.reading import read_project
    from dissensus_collect.web.security import Logins

    logins = Logins(read_project(folder).folder)
    if logins.address is None:
        raise InputError(f"{folder}: it has not been served yet; start 'dissensus collect serve {folder}'")
    link = f"{logins.address}{logins.one_time_link()}"
    if json_alone(json, {"researcher": link}):
        return
    typer.echo(f"researcher:  {link}  (works once, within a day)")
    next_step("open the link in a browser")


@app.command()
def status(folder: Folder, database: DatabaseUrl = None, json: opt.JsonTo = None) -> None:
    """Show how far a project has come, even while it is being served."""
    from dataclasses import asdict

    from dissensus_collect.project.reading import read_project
    from dissensus_collect.results.live import status_of
    from dissensus_collect.store.events import is_simulated
    from dissensus_collect.store.opening import check_schema, snapshot
    from dissensus_collect.work.door import door, quotas_so_far

    project, now = read_project(folder), time.time()
    with snapshot(project, database) as cursor:
        check_schema(cursor)
        found, simulated = status_of(cursor, project, now=now), is_simulated(cursor)
        at_door, quotas = door(cursor, project, None, now=now), quotas_so_far(cursor, project, now=now)
    told = {"name": project.name, "simulated": simulated, "shut": at_door.shut, "places": at_door.places}
    if json_alone(json, {**told, **asdict(found), "quotas": [asdict(each) for each in quotas]}):
        return
    _show_status(project, found, simulated=simulated)
    shut = {"paused": "paused by a researcher", "closed": "closed by a researcher", "full": "all places are taken"}
    at_the_door = "open" if at_door.shut is None else shut[at_door.shut]
    console().print(f"door        {at_the_door}; votes that nobody is expected to give: {at_door.places:,}")
    for each in quotas:
        console().print(
            f"quota       {plain(each.attribute)} {plain(each.group)}: {each.finished} finished, {each.now} at work, "
            f"of {each.most}"
        )
    whole = found.counted >= found.needed
    next_step(f"dissensus collect {'export' if whole else 'serve'} {folder}{'' if whole else ', if nobody serves it'}")


@app.command()
def simulate(
    folder: Folder,
    annotators: Annotated[int, typer.Option(min=1, help="Bots at any one time.")] = 50,
    abandon: Annotated[
        float, typer.Option(min=0, max=0.9, help="Share of bots that leave in the middle of an item.")
    ] = 0.2,
    careless: Annotated[float, typer.Option(min=0, max=0.9, help="Share of bots that answer at random.")] = 0.05,
    exclude: Annotated[float, typer.Option(min=0, max=0.9, help="Share of bots that the researcher excludes.")] = 0.03,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Keep the simulated project in this folder.", callback=opt.not_standard_output
        ),
    ] = None,
    seed: opt.Seed = 0,
    json: opt.JsonTo = None,
) -> None:
    """Rehearse a project with bots, through the real server, on a copy; real votes are not touched."""
    from tempfile import TemporaryDirectory

    from dissensus_collect.project.reading import read_project
    from dissensus_collect.simulation.bots import Behaviour, simulate

    project = read_project(folder)
    behaviour = Behaviour(abandon=abandon, careless=careless, exclude=exclude)
    with TemporaryDirectory() as place:
        kept = output if output is not None else Path(place) / "project"
        found = simulate(project, kept, annotators=annotators, behaviour=behaviour, seed=seed)
        _show_simulation(project, found, json=json)
    if output is not None:
        note(f"the simulated project is in {output}; 'dissensus collect serve {output}' shows its researcher pages")
    if str(json) != "-":
        next_step(f"dissensus collect serve {folder}" if output is None else f"dissensus collect export {output}")


@app.command()
def export(
    folder: Folder,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="A new folder for the files; by default FOLDER/exports/DATE-TIME.",
            callback=opt.not_standard_output,
        ),
    ] = None,
    identities: Annotated[
        bool, typer.Option("--identities", help="Also write the annotators' ids on the platform, into a separate file.")
    ] = False,
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format", help="Format of the tables: csv, jsonl or parquet; may be repeated. All three by default."
        ),
    ] = None,
    database: DatabaseUrl = None,
    json: opt.JsonTo = None,
) -> None:
    """Write votes, answers, annotators, items, events, codebook and checksums; pseudonymous by default."""
    from dissensus_collect.project.reading import read_project
    from dissensus_collect.results.export import FORMATS, export_project
    from dissensus_collect.store.opening import check_schema, snapshot

    project = read_project(folder)
    if output is None:
        output = folder / "exports" / time.strftime("%Y%m%d-%H%M%S")
    with snapshot(project, database) as cursor:
        check_schema(cursor)
        done = export_project(cursor, project, output, identities=identities, formats=formats or FORMATS)
    votes = done.votes
    told = {"folder": str(done.folder), "files": [str(each) for each in done.files], "simulated": done.simulated}
    counts = {"judgements": votes.n_judgements, "items": len(votes.items)} if votes is not None else None
    if json_alone(json, {**told, "votes": counts}):
        return
    if done.simulated:
        note("these answers are simulated: bots gave them")
    what = "no votes yet" if votes is None else f"{votes.n_judgements:,} judgements of {len(votes.items):,} items"
    from_models = "" if done.simulated or votes is None else f", {votes.n_model_votes:,} votes from models"
    console().print(f"{plain(str(done.folder))}: {len(done.files)} files, {what}{from_models}")
    if votes is None:
        next_step(f"dissensus collect serve {folder}")
        return
    kind = "parquet" if (done.folder / "votes.parquet").exists() else (formats or FORMATS)[0]
    next_step(f"dissensus labels {done.folder / f'votes.{kind}'} --scheme uncertainty-weighted -o labels.parquet")


Reason = Annotated[str, typer.Option(help="Why; it is kept in the log.")]
Item = Annotated[str, typer.Argument(metavar="ITEM", help="The item's name.")]
BY = "command line"


@items_app.command()
def retire(folder: Folder, item: Item, reason: Reason, database: DatabaseUrl = None, json: opt.JsonTo = None) -> None:
    """Set an item aside, even while the project is being served: nobody is shown it, its votes are kept apart."""
    from dissensus_collect.project.reading import read_project
    from dissensus_collect.store.opening import write_beside
    from dissensus_collect.store.slots import retire

    def work(cursor: Any) -> None:
        retire(cursor, _item_named(cursor, item), now=time.time(), reason=reason, by=BY)

    write_beside(read_project(folder), database, work)
    if json_alone(json, {"item": item, "set_aside": True, "reason": reason}):
        return
    note(f"'{item}' is set aside")
    next_step(f"dissensus collect status {folder}; to undo it: dissensus collect items put-back {folder} {item}")


@items_app.command("put-back")
def put_back(folder: Folder, item: Item, database: DatabaseUrl = None, json: opt.JsonTo = None) -> None:
    """Use an item again that was set aside; its votes count as before."""
    from dissensus_collect.project.reading import read_project
    from dissensus_collect.store.opening import write_beside
    from dissensus_collect.store.slots import put_back

    def work(cursor: Any) -> None:
        put_back(cursor, _item_named(cursor, item), now=time.time(), by=BY)

    write_beside(read_project(folder), database, work)
    if json_alone(json, {"item": item, "set_aside": False}):
        return
    note(f"'{item}' is used again")
    next_step(f"dissensus collect status {folder}")


@items_app.command()
def replace(
    folder: Folder,
    items: Annotated[list[str], typer.Argument(metavar="ITEM...", help="Items whose file or text has changed.")],
    database: DatabaseUrl = None,
    json: opt.JsonTo = None,
) -> None:
    """Use the new version of changed items; the old ones are set aside under NAME#1, with what was answered to them."""
    added = _read_items(folder, database, replaced=items)
    if json_alone(json, {"replaced": items, "added": [name for name in added if name not in items]}):
        return
    note(f"{len(items)} replaced, {len(added) - len(items)} added")
    next_step(f"dissensus collect status {folder}")


@items_app.command()
def add(folder: Folder, database: DatabaseUrl = None, json: opt.JsonTo = None) -> None:
    """Take in items that were put into the project's folder or table, even while it is being served."""
    added = _read_items(folder, database)
    if json_alone(json, {"added": added}):
        return
    console().print(f"{len(added):,} items added" + (f": {plain(', '.join(added[:5]))}" if added else ""))
    next_step(f"dissensus collect status {folder}")


def _read_items(folder: Path, database: str | None, *, replaced: list[str] | None = None) -> list[str]:
    from dissensus_collect.project.items import hashes_of, project_items
    from dissensus_collect.project.reading import read_project
    from dissensus_collect.store.items import load_items
    from dissensus_collect.store.opening import write_beside

    project = read_project(folder)
    items = project_items(project)
    hashes = hashes_of(project, items)

    def work(cursor: Any) -> list[str]:
        return load_items(cursor, project, items, hashes=hashes, now=time.time(), replaced=replaced or (), by=BY)

    return write_beside(project, database, work)


def _item_named(cursor: Any, name: str) -> int:
    row = cursor.execute("SELECT id FROM item WHERE name = ?", (name,)).fetchone()
    if row is None:
        near = meant(name, (each for (each,) in cursor.execute("SELECT name FROM item").fetchall()))
        raise InputError(f"there is no item '{name}' in the project{near or '; look at the page Items'}")
    return int(row[0])


@app.command()
def void(
    folder: Folder,
    reason: Annotated[str, typer.Option(help="Why; it is kept with each judgement.")] = "",
    item: Annotated[str | None, typer.Option(help="Judgements of this item.")] = None,
    annotator: Annotated[str | None, typer.Option(help="Judgements of this annotator (the pseudonym).")] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Use the judgements again.")] = False,
    database: DatabaseUrl = None,
    json: opt.JsonTo = None,
) -> None:
    """Stop using single judgements (say, of an image that was not shown), and ask others for votes in their place."""
    from dissensus_collect.project.reading import read_project
    from dissensus_collect.store.opening import write_beside
    from dissensus_collect.store.slots import unvoid, void

    if item is None and annotator is None:
        raise InputError("void: say which judgements: --item NAME, --annotator PSEUDONYM, or both")
    if not undo and not reason.strip():
        raise InputError("void: give a --reason; it is kept with each judgement")

    def work(cursor: Any) -> int:
        if item is not None:
            _item_named(cursor, item)
        if annotator is not None:
            people = [name for (name,) in cursor.execute("SELECT pseudonym FROM annotator").fetchall()]
            if annotator not in people:
                raise InputError(f"void: there is no annotator '{annotator}'{meant(annotator, people)}")
        chosen = cursor.execute(
            "SELECT assignment.id FROM assignment JOIN item ON item.id = assignment.item "
            "JOIN annotator ON annotator.id = assignment.annotator WHERE assignment.state = 'done' "
            f"AND voided IS {'NOT NULL' if undo else 'NULL'} AND item.name = coalesce(?, item.name) "
            "AND pseudonym = coalesce(?, pseudonym) ORDER BY assignment.id",
            (item, annotator),
        ).fetchall()
        for (each,) in chosen:
            if undo:
                unvoid(cursor, each, now=time.time(), by=BY)
            else:
                void(cursor, each, now=time.time(), reason=reason.strip(), by=BY)
        return len(chosen)

    changed = write_beside(read_project(folder), database, work)
    if not changed:
        raise InputError("void: there is no such judgement; the names are those of the export")
    if json_alone(json, {"judgements": changed, "used": undo}):
        return
    console().print(f"{changed:,} judgements {'are used again' if undo else 'are not used any more'}")
    next_step(f"dissensus collect status {folder}")


@app.command()
def attributes(
    folder: Folder,
    table: Annotated[Path, typer.Argument(metavar="EXPORT", help="The platform's demographic export.")],
    columns: Annotated[list[str] | None, typer.Option("--column", help="Only this column; may be repeated.")] = None,
    database: DatabaseUrl = None,
    json: opt.JsonTo = None,
) -> None:
    """Join what Prolific or MTurk knows of the annotators to their votes, as attributes."""
    from dissensus_collect.project.reading import read_project
    from dissensus_collect.results.demographics import join_demographics
    from dissensus_collect.store.opening import write_beside

    found, names = write_beside(
        read_project(folder),
        database,
        lambda cursor: join_demographics(cursor, table, now=time.time(), columns=columns or ()),
    )
    if json_alone(json, {"annotators": found, "attributes": list(names)}):
        return
    console().print(f"{found:,} annotators: {plain(', '.join(names))}")
    next_step(f"dissensus collect export {folder}")


@app.command()
def pay(
    folder: Folder,
    approve: Annotated[
        list[str] | None,
        typer.Option(help="Approve this annotator (the pseudonym); 'due' for all who are due and carry no flag."),
    ] = None,
    reject: Annotated[list[str] | None, typer.Option(help="Reject this annotator; needs a --reason.")] = None,
    bonus: Annotated[float, typer.Option(min=0, help="For each who is approved now, in the project's currency.")] = 0.0,
    reason: Annotated[str, typer.Option(help="Kept with the decision.")] = "",
    write: Annotated[
        Path | None, typer.Option(help="Write the decisions in the platform's bulk formats into this folder.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Also decisions that were written before.")] = False,
    database: DatabaseUrl = None,
    json: opt.JsonTo = None,
) -> None:
    """Show what everybody is due, decide about it, and write it for Prolific or MTurk."""
    from dataclasses import asdict

    from dissensus_collect.project.reading import read_project
    from dissensus_collect.results.pay import bulk_files, decide_pay, pay_sheet, realised, realised_by_group
    from dissensus_collect.store.opening import write_beside

    project = read_project(folder)

    def work(cursor: Any) -> tuple[Any, dict[str, str]]:
        lines = pay_sheet(cursor, project)
        by_name = {each.pseudonym: each.annotator for each in lines}
        due = [each.pseudonym for each in lines if each.due and each.decision is None and not each.flags]
        for decision, names in (("approved", approve or []), ("rejected", reject or [])):
            chosen = [name for each in names for name in (due if each == "due" and decision == "approved" else [each])]
            unknown = [name for name in chosen if name not in by_name]
            if unknown:
                near = meant(unknown[0], ("due", *by_name)) or "; the names are those of this command's list"
                raise InputError(f"pay: there is no annotator '{unknown[0]}'{near}")
            people = [by_name[name] for name in chosen]
            if people:
                decide_pay(
                    cursor, project, people, now=time.time(), decision=decision, bonus=bonus, reason=reason, by=BY
                )
        kind = project.recruitment.kind
        files = {} if write is None else bulk_files(cursor, kind, now=time.time(), again=again)
        return pay_sheet(cursor, project), files

    lines, files = write_beside(project, database, work)
    if write is not None:
        _write_privately(write, files)
    if json is not None:
        groups = {
            name: {group: asdict(found) for group, found in each.items()}
            for name, each in realised_by_group(lines).items()
        }
        total = realised(lines)
        told = {"people": [asdict(each) for each in lines], "realised": None if total is None else asdict(total)}
        json_to(json, {**told, "by_group": groups, "currency": project.cost.currency})
        if str(json) == "-":
            return
    _show_pay(project, lines)
    waiting = any(each.due and each.decision is None for each in lines)
    step = "--approve due" if waiting else "--write OUT, for the platform"
    next_step(f"upload the files in {write}" if write is not None else f"dissensus collect pay {folder} {step}")


def _write_privately(folder: Path, files: dict[str, str]) -> None:
    """Writes files that only their owner may read, since they name people."""
    import os

    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = folder / name
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        note(f"wrote {path}")


def _show_pay(project: Project, lines: Any) -> None:
    from dissensus_collect.results.pay import realised, realised_by_group

    out = console()
    money = plain(project.cost.currency)
    for each in lines:
        minutes = "   –" if each.minutes is None else f"{each.minutes:4.1f}"
        flags = f"  ! {'; '.join(each.flags)}" if each.flags else ""
        out.print(
            f"{each.pseudonym}  {each.items:>4} of {each.of}  {minutes} min  {each.pay + each.bonus:7.2f} {money}  "
            f"{each.decision or ('due' if each.due else each.state)}{plain(flags)}"
        )
    groups = [("all who finished", realised(lines))]
    groups += [
        (f"{name} {group}", found) for name, each in realised_by_group(lines).items() for group, found in each.items()
    ]
    for name, found in groups:
        if found is not None:
            out.print(
                f"{plain(name)}: {found.people:,} people, median {found.minutes:.1f} minutes, {found.hourly:.2f} "
                f"{money} per hour"
            )


@app.command()
def backup(
    folder: Folder,
    to: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Another folder for the copy, best on another disk.")
    ] = None,
    json: opt.JsonTo = None,
) -> None:
    """Copy the database into FOLDER/backups, even while it is being served, and check the copy."""
    from dissensus_collect.project.reading import read_project
    from dissensus_collect.store.backup import back_up

    made = back_up(None, read_project(folder), to=to)
    if json_alone(json, {"backup": str(made)}):
        return
    console().print(plain(str(made)), soft_wrap=True)
    next_step(f"to go back to it: dissensus collect restore {folder} {made}")


@app.command()
def restore(
    folder: Folder,
    backup: Annotated[Path, typer.Argument(metavar="BACKUP", help="One of FOLDER/backups.")],
    json: opt.JsonTo = None,
) -> None:
    """Replace the database by a backup, keeping the old one; a broken backup is refused."""
    from dissensus_collect.project.reading import read_project
    from dissensus_collect.store.backup import restore

    kept = restore(read_project(folder), backup)
    if json_alone(json, {"from": str(backup), "kept": None if kept is None else str(kept)}):
        return
    console().print(f"{plain(str(folder / 'collect.sqlite'))} is now {plain(str(backup))}", soft_wrap=True)
    if kept is not None:
        note(f"the database that was there is kept as {kept}")
    next_step(f"dissensus collect serve {folder}")


@app.command()
def deploy(
    folder: Folder,
    host: Annotated[str, typer.Option(help="The name under which people reach the machine: study.example.org.")],
    docker: Annotated[bool, typer.Option("--docker", help="Dockerfile, compose file and Caddyfile.")] = False,
    systemd: Annotated[bool, typer.Option("--systemd", help="Unit files, a backup timer and a Caddyfile.")] = False,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the server behind the proxy.")] = 8000,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="A new folder for the files; FOLDER/deploy by default.",
            callback=opt.not_standard_output,
        ),
    ] = None,
    json: opt.JsonTo = None,
) -> None:
    """Write what is needed to serve a project with TLS on a machine of its own; docs/deploy.md walks through it."""
    from dissensus.errors import InputError
    from dissensus_collect.hosting.deploy import write_deployment
    from dissensus_collect.project.reading import read_project

    if docker == systemd:
        raise InputError("collect deploy: give either --docker or --systemd")
    project = read_project(folder)
    place = output if output is not None else project.folder / "deploy"
    done = write_deployment(project, place, kind="docker" if docker else "systemd", host=host, port=port)
    steps = [{"command": command, "what": about} for command, about in done.steps]
    if json_alone(json, {"folder": str(done.folder), "files": dict(done.files), "steps": steps}):
        return
    for name, about in done.files.items():
        typer.echo(f"{done.folder / name}: {about}")
    note("then, on that machine:")
    for command, about in done.steps:
        # Not through Rich, which would break a command over two lines.
        typer.echo(f"  {command}    # {about}")
    next_step(f"take {done.folder} to that machine, and type these commands there")


@app.command()
def doctor(
    folder: Folder,
    base_url: Annotated[
        str | None, typer.Option(help="The address that people use; by default the one it was served under last.")
    ] = None,
    json: opt.JsonTo = None,
) -> None:
    """Check address, proxy, TLS, disk, database, backups, file modes and clock of a project, and say what to do."""
    from dataclasses import asdict

    from dissensus_collect.hosting.doctor import examine
    from dissensus_collect.project.reading import read_project

    found = examine(read_project(folder), base_url=base_url)
    wrong = any(each.kind == "error" for each in found)
    if not json_alone(json, [asdict(each) for each in found]):
        for each in found:
            typer.echo(f"{each.kind:8} {each.sentence}")
        next_step(
            f"dissensus collect {'doctor' if wrong else 'serve'} {folder}{', once that is mended' if wrong else ''}"
        )
    if wrong:
        raise typer.Exit(1)


def _say_findings(findings: Iterable[Check]) -> None:
    for finding in findings:
        note(finding.sentence if finding.kind == "ok" else f"{finding.kind}: {finding.sentence}")


def _show_status(project: Project, found: Status, *, simulated: bool) -> None:
    out = console()
    share = found.counted / found.needed if found.needed else 1.0
    out.print(
        f"[bold]{plain(project.name)}[/]{' (simulated)' if simulated and 'simulated' not in project.name else ''}"
    )
    out.print(f"votes       {found.counted:,} of {found.needed:,} ({share:.0%}); {found.leases:,} being given now")
    out.print(f"items       {found.complete:,} of {found.items:,} complete; {_histogram(found.by_votes)}")
    people = ", ".join(f"{number:,} {state}" for state, number in sorted(found.annotators.items())) or "none yet"
    out.print(f"annotators  {people}; {found.excluded:,} excluded")
    out.print(
        f"beside      {found.spare:,} surplus, {found.late:,} late, {found.voided:,} not used; problems reported: "
        f"{found.problems:,}; items set aside: {found.retired:,}"
    )


def _histogram(by_votes: Any) -> str:
    return "with " + ", ".join(f"{votes} votes: {number:,}" for votes, number in sorted(by_votes.items()))


def _show_simulation(project: Project, found: Simulation, *, json: Path | None) -> None:
    import numpy as np

    from dissensus_collect.project.setup_check import project_budget

    budget = project_budget(project)
    p50, p99 = np.percentile(found.milliseconds, [50, 99]).tolist() if found.milliseconds.size else (0.0, 0.0)
    numbers = {
        "simulated": True,
        "name": project.name,
        "votes_per_item": {str(votes): items for votes, items in found.votes_per_item.items()},
        "annotators": found.annotators,
        "outcomes": dict(found.outcomes),
        "saves": len(found.acknowledged),
        "sent_twice": found.sent_twice,
        "reloads": found.reloads,
        "second_tabs": found.second_tabs,
        "surplus": found.surplus,
        "wrong": list(found.wrong),
        "seconds": found.seconds,
        "save_ms_p50": p50,
        "save_ms_p99": p99,
        "paid_hours": len(found.acknowledged) * project.cost.seconds_per_item / 3600,
        "planned_money": budget.money,
        "currency": budget.currency,
    }
    if json is not None:
        json_to(json, numbers)
    if json is None or str(json) != "-":
        out = console()
        out.print(f"[bold]{plain(project.name)}, simulated[/] (bots through the real server; no real votes)")
        out.print(f"items       {_histogram(found.votes_per_item)} (k = {project.k})")
        came = ", ".join(f"{number:,} {how}" for how, number in found.outcomes.items())
        out.print(f"annotators  {found.annotators:,} came: {came}")
        out.print(
            f"saves       {len(found.acknowledged):,} acknowledged, {found.sent_twice:,} sent twice, {found.reloads:,} "
            f"reloads, {found.second_tabs:,} second tabs; {found.surplus:,} surplus"
        )
        out.print(
            f"time        {found.seconds:.1f} s; a save with the next item took {p50:.0f} ms (median), "
            f"{p99:.0f} ms (99th percentile)"
        )
        hours = numbers["paid_hours"]
        rate = project.cost.pay_per_hour * (1 + project.cost.platform_fee)
        out.print(
            f"would cost  {hours:,.1f} paid hours, about {float(str(hours)) * rate:,.0f} {plain(budget.currency)}"
        )
    if found.wrong:
        raise InputError(f"simulate: {len(found.wrong)} replies of the server were wrong, such as: {found.wrong[0]}")
