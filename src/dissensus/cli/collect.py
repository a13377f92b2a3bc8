"""`dissensus collect`: make a project, serve it, watch it, simulate it, export its votes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dissensus.cli import options as opt
from dissensus.cli.printing import console, json_to, note, plain

if TYPE_CHECKING:
    from dissensus.collect.assignment import Status
    from dissensus.collect.project import Project
    from dissensus.collect.simulation.bots import Simulation

app = typer.Typer(name="collect", help="Collect votes on the web: exactly k for every item.", no_args_is_help=True)
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
) -> None:
    """Make a project: one file, collect.toml, that holds every setting."""
    from dissensus.collect.project import init_project, read_project

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
    console().print(f"{plain(str(path))}: classes {plain(', '.join(project.classes))}; edit it as you like")
    _say_findings(project)
    note(f"next: dissensus collect serve {folder}")


@app.command()
def serve(
    folder: Folder,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 8000,
    database: DatabaseUrl = None,
    base_url: Annotated[
        str | None, typer.Option(help="The address that people use, if there is a proxy in front.")
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
    from dissensus.collect.project import read_project
    from dissensus.collect.serving import Links, serve_project

    project = read_project(folder)
    _say_findings(project)

    def ready(links: Links) -> None:
        # Not through Rich, which would break a link over two lines.
        typer.echo(f"annotators:  {links.annotator}")
        typer.echo(f"researcher:  {links.researcher}  (works once)")
        note("Ctrl-C stops the server; what was saved is on disk")

    serve_project(
        project, host=host, port=port, database_url=database, base_url=base_url, password=password, ready=ready
    )
    note("stopped; everything that was acknowledged is saved")


@app.command()
def status(folder: Folder, database: DatabaseUrl = None, json: opt.JsonTo = None) -> None:
    """Show how far a project has come, even while it is being served."""
    from dataclasses import asdict

    from dissensus.collect.assignment import status_of
    from dissensus.collect.collected import snapshot
    from dissensus.collect.events import is_simulated
    from dissensus.collect.project import read_project

    project = read_project(folder)
    with snapshot(project, database) as cursor:
        found, simulated = status_of(cursor), is_simulated(cursor)
    if json is not None:
        json_to(json, {"name": project.name, "simulated": simulated, **asdict(found)})
        if str(json) == "-":
            return
    _show_status(project, found, simulated=simulated)


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
        Path | None, typer.Option("-o", "--output", help="Keep the simulated project in this folder.")
    ] = None,
    seed: opt.Seed = 0,
    json: opt.JsonTo = None,
) -> None:
    """Rehearse a project with bots, through the real server, on a copy; real votes are not touched."""
    from tempfile import TemporaryDirectory

    from dissensus.collect.project import read_project
    from dissensus.collect.simulation.bots import Behaviour, simulate

    project = read_project(folder)
    behaviour = Behaviour(abandon=abandon, careless=careless, exclude=exclude)
    with TemporaryDirectory() as place:
        kept = output if output is not None else Path(place) / "project"
        found = simulate(project, kept, annotators=annotators, behaviour=behaviour, seed=seed)
        _show_simulation(project, found, json=json)
    if output is not None:
        note(f"the simulated project is in {output}; 'dissensus collect serve {output}' shows its researcher pages")


@app.command()
def export(
    folder: Folder,
    output: Annotated[Path, typer.Option("-o", "--output", help="A new folder for the files.")],
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
) -> None:
    """Write votes, answers, annotators, items, events, codebook and checksums; pseudonymous by default."""
    from dissensus.collect.collected import snapshot
    from dissensus.collect.export import FORMATS, export_project
    from dissensus.collect.project import read_project

    project = read_project(folder)
    with snapshot(project, database) as cursor:
        done = export_project(cursor, project, output, identities=identities, formats=formats or FORMATS)
    if done.simulated:
        note("these answers are simulated: bots gave them")
    what = (
        "no votes yet"
        if done.votes is None
        else f"{done.votes.n_judgements:,} judgements of {len(done.votes.items):,} items"
    )
    console().print(f"{plain(str(done.folder))}: {len(done.files)} files, {what}")
    if done.votes is not None:
        kind = "parquet" if (done.folder / "votes.parquet").exists() else (formats or FORMATS)[0]
        note(f"next: dissensus labels {done.folder / f'votes.{kind}'} --scheme uncertainty-weighted -o labels.parquet")


@app.command()
def backup(folder: Folder) -> None:
    """Copy the database into FOLDER/backups, even while it is being served, and check the copy."""
    from dissensus.collect.backup import back_up
    from dissensus.collect.project import read_project

    console().print(plain(str(back_up(None, read_project(folder)))), soft_wrap=True)


@app.command()
def restore(
    folder: Folder, backup: Annotated[Path, typer.Argument(metavar="BACKUP", help="One of FOLDER/backups.")]
) -> None:
    """Replace the database by a backup, keeping the old one; a broken backup is refused."""
    from dissensus.collect.backup import restore
    from dissensus.collect.project import read_project

    kept = restore(read_project(folder), backup)
    console().print(f"{plain(str(folder / 'collect.sqlite'))} is now {plain(str(backup))}", soft_wrap=True)
    if kept is not None:
        note(f"the database that was there is kept as {kept}")


def _say_findings(project: Project) -> None:
    from dissensus.collect.setup_check import check_setup

    for finding in check_setup(project):
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
    out.print(f"beside      {found.spare:,} surplus, {found.late:,} late; problems reported: {found.problems:,}")


def _histogram(by_votes: Any) -> str:
    return "with " + ", ".join(f"{votes} votes: {number:,}" for votes, number in sorted(by_votes.items()))


def _show_simulation(project: Project, found: Simulation, *, json: Path | None) -> None:
    import numpy as np

    from dissensus.collect.setup_check import project_budget
    from dissensus.errors import InputError

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
