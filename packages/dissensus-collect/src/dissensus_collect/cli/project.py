"""Making a project, serving it and watching it: `init`, `serve`, `login`, `status`."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Literal

import typer

from dissensus.cli import options as opt
from dissensus.cli.printing import console, json_alone, next_step, note, plain, typed
from dissensus.errors import InputError
from dissensus_collect.cli.shared import (
    DatabaseUrl,
    Folder,
    PasswordFile,
    app,
    beside,
    histogram,
    password_in,
    read_project,
    say_checks,
    stated,
)
from dissensus_collect.project import Layout


@app.command()
@opt.command("init")
def init(
    folder: Folder,
    images: Path | None = None,
    texts: Path | None = None,
    pairs: Path | None = None,
    language: str = "en",
    classes: str | None = None,
    name: str | None = None,
    question: str | None = None,
    layout: Layout | None = None,
    k: int = 6,
    items_per_annotator: int = 70,
    recruitment: Literal["plain", "prolific", "mturk"] = "plain",
    model: Path | None = None,
    budget: int = 0,
    json: opt.JsonTo = None,
) -> None:
    """Make a project: one file, collect.toml, that holds every setting."""
    from dissensus_collect.project.setup_check import check_setup
    from dissensus_collect.project.starting import init_project

    path = init_project(
        folder,
        images=images,
        texts=texts,
        pairs=pairs,
        language=language,
        classes=None if classes is None else [label.strip() for label in classes.split(",")],
        name=name,
        question=question,
        layout=layout,
        k=k,
        items_per_annotator=items_per_annotator,
        recruitment=recruitment,
        model=model,
        budget=budget,
    )
    project = read_project(folder)
    checks = check_setup(project)
    about = {"file": str(path), "name": project.name, "classes": project.classes.names}
    if json_alone(json, {**about, "findings": [asdict(check) for check in checks]}):
        return
    console().print(f"{plain(str(path))}: classes {plain(', '.join(project.classes.names))}; edit it as you like")
    say_checks(checks)
    next_step(typed("collect", "serve", folder))


@app.command()
@opt.command("serve")
def serve(
    folder: Folder,
    host: str = "127.0.0.1",
    port: int = 8000,
    database: DatabaseUrl = None,
    base_url: str | None = None,
    trusted_proxy: list[str] | None = None,
    password_file: PasswordFile = None,
) -> None:
    """Serve a project until Ctrl-C; prints the link for annotators, and one for the researcher that works once.

    The researcher's password is in a file or in the environment variable DISSENSUS_PASSWORD, never on the command line.
    """
    from dissensus_collect.hosting.serving import Links, serve_project, serving_warnings
    from dissensus_collect.project.setup_check import check_setup
    from dissensus_collect.store.opening import snapshot
    from dissensus_collect.work.recruitment import codes_made

    project, password = read_project(folder), password_in(password_file) or os.environ.get("DISSENSUS_PASSWORD")
    codes = False
    with suppress(InputError), snapshot(project, database) as cursor:  # nothing has been collected at first
        codes = codes_made(cursor)
    checks = check_setup(project, codes=codes)
    say_checks(checks)
    if any(check.kind == "error" for check in checks):
        raise InputError(f"{folder}: put the errors above in order first; nothing is served")
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
    next_step(typed("collect", "export", folder, database=stated(database)))


@app.command()
@opt.command("login")
def login(
    folder: Folder,
    name: str = "researcher",
    role: str | None = None,
    password_file: PasswordFile = None,
    remove: bool = False,
    json: opt.JsonTo = None,
) -> None:
    """Print a new one-time link for a researcher, while the project is being served; make and remove accounts."""
    from dissensus_collect.web.logins import Logins

    logins = Logins(read_project(folder).folder)
    if logins.address is None:
        raise InputError(f"{folder}: it has not been served yet; start 'dissensus collect serve {folder}'")
    if remove or role is not None:
        logins.set_role(name, None if remove else role)
    if password_file is not None:
        logins.set_password(password_in(password_file), name)
    link = None if remove else f"{logins.address}{logins.one_time_link(name)}"
    accounts = {account.name: account.role for account in logins.accounts}
    if json_alone(json, {"researcher": link, "accounts": accounts}):
        return
    if len(accounts) > 1 or remove:
        note(f"accounts: {', '.join(f'{each} ({role})' for each, role in accounts.items())}")
    if link is None:
        return
    typer.echo(f"{name}:  {link}  (works once, within a day)")
    next_step("open the link in a browser")


@app.command()
@opt.command("invite")
def invite(folder: Folder, codes: int, database: DatabaseUrl = None, json: opt.JsonTo = None) -> None:
    """Print links for one person each; from then on, nobody comes in without one."""
    from dissensus_collect.web.logins import Logins
    from dissensus_collect.work import recruitment

    project = read_project(folder)
    if project.recruitment.kind != "plain":
        raise InputError(f"invite: people come from {project.recruitment.kind}, which has links of its own")
    address = Logins(project.folder).address
    if address is None:
        raise InputError(f"{folder}: it has not been served yet; start 'dissensus collect serve {folder}'")
    made = beside(folder, database, lambda cursor: recruitment.invite(cursor, codes, now=time.time()))
    links = [f"{address.rstrip('/')}/?code={code}" for code in made]
    if json_alone(json, {"links": links}):
        return
    # Not through Rich, which would break a link over two lines.
    typer.echo("\n".join(links))
    next_step("send each of them to one person")


@app.command()
def status(folder: Folder, database: DatabaseUrl = None, json: opt.JsonTo = None) -> None:
    """Show how far a project has come, even while it is being served."""
    from dissensus_collect.results.live import status_of, warnings
    from dissensus_collect.store.events import is_simulated
    from dissensus_collect.store.opening import snapshot
    from dissensus_collect.work.door import door, quotas_so_far

    project, now = read_project(folder), time.time()
    with snapshot(project, database) as cursor:
        reached, simulated = status_of(cursor, project, now=now), is_simulated(cursor)
        entrance, quotas = door(cursor, project, None, now=now), quotas_so_far(cursor, project, now=now)
        alerts = list(warnings(cursor))
    about = {"name": project.name, "simulated": simulated, "shut": entrance.shut, "places": entrance.places}
    if json_alone(json, {**about, **asdict(reached), "quotas": [asdict(quota) for quota in quotas], "alerts": alerts}):
        return
    out = console()
    share = f"{reached.counted / reached.needed:.0%}" if reached.needed else "no item is left to vote on"
    marked = " (simulated)" if simulated and "simulated" not in project.name else ""
    people = ", ".join(f"{number:,} {state}" for state, number in sorted(reached.annotators.items())) or "none yet"
    shut = {"paused": "paused by a researcher", "closed": "closed by a researcher", "full": "all places are taken"}
    is_open = "open" if entrance.shut is None else shut[entrance.shut]
    out.print(f"[bold]{plain(project.name)}[/]{marked}")
    out.print(f"votes       {reached.counted:,} of {reached.needed:,} ({share}); {reached.leases:,} being given now")
    out.print(f"items       {reached.complete:,} of {reached.items:,} complete; {histogram(reached.by_votes)}")
    out.print(f"annotators  {people}; {reached.excluded:,} excluded")
    out.print(
        f"beside      {reached.spare:,} surplus, {reached.late:,} late, {reached.voided:,} not used; problems "
        f"reported: {reached.problems:,}; items set aside: {reached.retired:,}"
    )
    out.print(f"door        {is_open}; votes that nobody is expected to give: {entrance.places:,}")
    for quota in quotas:
        out.print(
            f"quota       {plain(quota.attribute)} {plain(quota.group)}: {quota.finished} finished, {quota.now} at "
            f"work, of {quota.most}"
        )
    for alert in alerts:
        note(f"alert: {alert}")
    whole = 0 < reached.needed <= reached.counted
    command = typed("collect", "export" if whole else "serve", folder, database=stated(database))
    next_step(command, "" if whole else "if nobody serves it")
