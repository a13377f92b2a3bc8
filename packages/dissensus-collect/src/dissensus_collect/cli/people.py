"""What is known of annotators, and what they are paid: `attributes`, `pay`."""

from __future__ import annotations

import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dissensus.cli import options as opt
from dissensus.cli.printing import console, json_alone, next_step, note, plain, typed
from dissensus.errors import InputError, meant
from dissensus.votes.echo import number
from dissensus_collect.cli.shared import BY, DatabaseUrl, Folder, app, beside, read_project, stated

if TYPE_CHECKING:
    from dissensus_collect.results.pay import PayLine, Realised


@app.command()
@opt.command("attributes")
def attributes(
    folder: Folder, table: Path, columns: list[str] | None = None, database: DatabaseUrl = None, json: opt.JsonTo = None
) -> None:
    """Join what Prolific or MTurk knows of the annotators to their votes, as attributes."""
    from dissensus_collect.results.demographics import join_demographics

    people, names = beside(
        folder, database, lambda cursor: join_demographics(cursor, table, now=time.time(), columns=columns or ())
    )
    if json_alone(json, {"annotators": people, "attributes": list(names)}):
        return
    console().print(f"{number(people, 'annotator')}: {plain(', '.join(names))}")
    next_step(typed("collect", "export", folder, database=stated(database)))


@app.command()
@opt.command("pay")
def pay(
    folder: Folder,
    approve: list[str] | None = None,
    reject: list[str] | None = None,
    bonus: float = 0.0,
    reason: str = "",
    write: Path | None = None,
    send: bool = False,
    again: bool = False,
    database: DatabaseUrl = None,
    json: opt.JsonTo = None,
) -> None:
    """Show what everybody is due, decide about it, and write it for Prolific or MTurk."""
    from dissensus_collect.results.pay import bulk_files, decide_pay, pay_sheet, realised, realised_by_group
    from dissensus_collect.results.prolific import send_to_prolific

    project, now = read_project(folder), time.time()
    if send and (write is None or again or project.recruitment.kind != "prolific"):
        raise InputError(
            "collect pay: --send is for Prolific, needs --write OUT, which keeps what is sent, and no --again"
        )

    def work(cursor: Any) -> tuple[list[PayLine], dict[str, str]]:
        lines = pay_sheet(cursor, project)
        by_name = {line.pseudonym: line.annotator for line in lines}
        due = [line.pseudonym for line in lines if line.open and not line.flags]
        approved = [person for name in approve or () for person in (due if name == "due" else [name])]
        for decision, names in (("approved", approved), ("rejected", reject or [])):
            for name in names:
                if name not in by_name:
                    near = meant(name, ("due", *by_name)) or "; the names are those of this command's list"
                    raise InputError(f"pay: there is no annotator '{name}'{near}")
            if people := [by_name[name] for name in names]:
                decide_pay(cursor, project, people, now=now, decision=decision, bonus=bonus, reason=reason, by=BY)
        files = {} if write is None else bulk_files(cursor, project.recruitment.kind, now=now, again=again)
        return pay_sheet(cursor, project), files

    lines, files = beside(folder, database, work)
    if write is not None:
        _write_privately(write, files)
    for done in send_to_prolific(files, study=project.recruitment.study) if send else ():
        note(done)
    everybody, by_group = realised(lines), realised_by_group(lines)
    about = {
        "people": [asdict(line) for line in lines],
        "realised": None if everybody is None else asdict(everybody),
        "by_group": {
            name: {group: asdict(part) for group, part in groups.items()} for name, groups in by_group.items()
        },
        "currency": project.cost.currency,
    }
    if json_alone(json, about):
        return
    groups = {} if everybody is None else {"all who finished": everybody}
    groups |= {f"{name} {group}": part for name, parts in by_group.items() for group, part in parts.items()}
    _show_pay(plain(project.cost.currency), lines, groups)
    flagged = [line.pseudonym for line in lines if line.open and line.flags]
    if flagged:
        note(f"left to decide, for their flags: {', '.join(flagged)}; approve or reject them by name")
    if write is not None:
        next_step(f"upload the files in {write}")
    elif any(line.open and not line.flags for line in lines):
        next_step(typed("collect", "pay", folder, "--approve", "due", database=stated(database)))
    elif project.recruitment.kind != "plain" and any(line.decision and line.sent_at is None for line in lines):
        next_step(typed("collect", "pay", folder, "--write", f"{folder.name}-pay", database=stated(database)))
    else:
        next_step(typed("collect", "export", folder, database=stated(database)))


def _write_privately(folder: Path, files: dict[str, str]) -> None:
    """Writes files that only their owner may read, since they name people."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = folder / name
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        note(f"wrote {path}")


def _decided(line: PayLine) -> str:
    if line.open:
        return f"due ({line.approved:.2f} of it approved)" if line.decision else "due"
    return line.decision or line.state


def _show_pay(money: str, lines: list[PayLine], groups: dict[str, Realised]) -> None:
    out = console()
    for line in lines:
        minutes = "   –" if line.minutes is None else f"{line.minutes:4.1f}"
        flags = f"  ! {'; '.join(line.flags)}" if line.flags else ""
        out.print(
            f"{line.pseudonym}  {line.items:>4} of {line.of}  {minutes} min  {line.pay + line.bonus:7.2f} {money}  "
            f"{_decided(line)}{plain(flags)}"
        )
    for name, group in groups.items():
        out.print(
            f"{plain(name)}: {group.people:,} people, median {group.minutes:.1f} minutes, {group.hourly:.2f} {money} "
            "per hour"
        )
