"""`dissensus data`: the known datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dissensus.cli import options as opt
from dissensus.cli.printing import console, json_alone, next_step, note, progress_bar, table, typed

app = typer.Typer(
    name="data",
    help="Known datasets: list them, look at one, fetch one; and a sample to try things with.",
    no_args_is_help=True,
)
Name = Annotated[str, typer.Argument(help="A name from `dissensus data list`.")]


@app.command("list")
def list_(json: opt.JsonTo = None) -> None:
    """The known datasets, and which are here."""
    from dissensus.datasets import DATASETS

    if json_alone(json, [dataset.facts() for dataset in DATASETS.values()]):
        return
    out = console()
    columns = ["name", "here", ">items", ">votes", ">annotators", "kind", "language", "licence"]
    # What a narrow screen has no room for, `data show` and --json tell.
    columns = columns[: 2 if out.width < 50 else 4 if out.width < 70 else 6 if out.width < 100 else None]
    lines = table(*columns)
    for column in lines.columns:
        column.no_wrap = True
    for dataset in DATASETS.values():
        sizes = (dataset.items, dataset.votes, dataset.annotators)
        cells = (
            f"[bold]{dataset.name}[/]",
            "yes" if dataset.present() else "-",
            *("-" if number is None else f"{number:,}" for number in sizes),
            dataset.kind,
            dataset.language or "-",
            dataset.licence,
        )
        lines.add_row(*cells[: len(columns)])
    out.print(lines)
    out.print("\n[bold]Unverified[/], for want of the real file or of the authors' word:")
    for dataset in DATASETS.values():
        if dataset.unverified:
            out.print(f"[bold]{dataset.name}[/]: {dataset.unverified}")
    next_step("dissensus data show words")


@app.command()
def show(name: Name, json: opt.JsonTo = None) -> None:
    """What a dataset is, where it comes from, and whether it is here."""
    from dissensus.datasets import find

    dataset = find(name)
    if json_alone(json, dataset.facts()):
        return
    out = console()
    out.print(f"[bold]{dataset.name}[/]: {dataset.what}")
    facts = table()
    for title, value in (
        ("reference", dataset.reference),
        ("licence", dataset.licence),
        ("kind", dataset.kind),
        ("language", dataset.language),
        ("columns", dataset.columns),
        ("address", dataset.address or dataset.page),
        ("file", dataset.path()),
        ("sha256", dataset.sha256),
        ("unverified", dataset.unverified),
        ("holds", dataset.contents() if dataset.present() else None),
    ):
        if value:
            facts.add_row(title, str(value))
    out.print(facts)
    if dataset.present():
        next_step(f"dissensus votes inspect {dataset.name}")
        return
    if dataset.package is not None:
        out.print(f"not here: it comes with the package {dataset.package}; `pip install {dataset.package}`")
    elif dataset.address is None:
        out.print("not here: download the file from this address and put it there")
    else:
        out.print(f"not here: fetch it with `dissensus data get {dataset.name}`")


@app.command("get")
def get_(name: Name, json: opt.JsonTo = None) -> None:
    """Fetch a dataset from its authors, continuing a download that broke off, and check that it can be read."""
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn

    from dissensus.datasets import find, get

    notes: list[str] = []
    with progress_bar(TextColumn(name), BarColumn(), DownloadColumn(), TransferSpeedColumn()) as progress:
        path = get(name, progress=progress, notes=notes)
    if json_alone(json, {"name": name, "file": None if path is None else str(path), "notes": notes}):
        return
    note(f"{name} comes with the package {find(name).package}" if path is None else f"{name} is at {path}")
    note(*notes)
    next_step(f"dissensus votes inspect {name}")


@app.command()
def sample(
    folder: Annotated[Path, typer.Argument(metavar="[FOLDER]", help="Where to put the files.")] = Path(),
    json: opt.JsonTo = None,
) -> None:
    """Write small files to try every command with: simulated votes, texts, models' predictions, images."""
    from dissensus.datasets.sample import FILES, write_sample

    written = dict(zip(map(str, write_sample(folder)), FILES.values(), strict=True))
    if json_alone(json, written):
        return
    for path, what in written.items():
        # Not through Rich, which would break a path over two lines.
        typer.echo(f"{path}: {what}")
    next_step(typed("votes", "inspect", folder / "votes.csv"))
