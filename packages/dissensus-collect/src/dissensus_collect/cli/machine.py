"""A project on its machine: `backup`, `restore`, `deploy`, `doctor`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import typer

from dissensus.cli import options as opt
from dissensus.cli.printing import console, json_alone, next_step, note, plain, typed
from dissensus.errors import InputError
from dissensus_collect.cli.shared import Folder, app, read_project


@app.command()
@opt.command("backup")
def backup(folder: Folder, to: Path | None = None, json: opt.JsonTo = None) -> None:
    """Copy the database into FOLDER/backups, even while it is being served, and check the copy."""
    from dissensus_collect.store.backup import back_up

    made = back_up(None, read_project(folder), to=to)
    if json_alone(json, {"backup": str(made)}):
        return
    console().print(plain(str(made)), soft_wrap=True)
    next_step(typed("collect", "restore", folder, made), "goes back to it, once nobody serves the project")


@app.command()
@opt.command("restore")
def restore(folder: Folder, backup: Path, json: opt.JsonTo = None) -> None:
    """Replace the database by a backup, keeping the old one; a broken backup is refused."""
    from dissensus_collect.store.backup import restore

    kept = restore(read_project(folder), backup)
    if json_alone(json, {"from": str(backup), "kept": None if kept is None else str(kept)}):
        return
    console().print(f"{plain(str(folder / 'collect.sqlite'))} is now {plain(str(backup))}", soft_wrap=True)
    if kept is not None:
        note(f"the database that was there is kept as {kept}")
    next_step(typed("collect", "serve", folder))


@app.command()
@opt.command("deploy")
def deploy(
    folder: Folder,
    host: str,
    docker: bool = False,
    systemd: bool = False,
    port: int = 8000,
    packages: Path | None = None,
    output: Path | None = None,
    json: opt.JsonTo = None,
) -> None:
    """Write what is needed to serve a project with TLS on a machine of its own; docs/collect.md walks through it."""
    from dissensus_collect.hosting.deploy import write_deployment

    if docker == systemd:
        raise InputError("collect deploy: give either --docker or --systemd")
    project = read_project(folder)
    kind, place = "docker" if docker else "systemd", output or project.folder / "deploy"
    done = write_deployment(project, place, kind=kind, host=host, port=port, packages=packages)
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
@opt.command("doctor")
def doctor(folder: Folder, base_url: str | None = None, json: opt.JsonTo = None) -> None:
    """Check address, proxy, TLS, disk, database, backups, file modes and clock of a project, and say what to do."""
    from dissensus_collect.hosting.doctor import examine

    checks = examine(read_project(folder), base_url=base_url)
    wrong = any(check.kind == "error" for check in checks)
    if not json_alone(json, [asdict(check) for check in checks]):
        for check in checks:
            typer.echo(f"{check.kind:8} {check.sentence}")
        next_step(typed("collect", "doctor" if wrong else "serve", folder), "once that is mended" if wrong else "")
    if wrong:
        raise typer.Exit(1)
