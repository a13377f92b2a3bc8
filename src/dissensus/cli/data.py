"""`dissensus data`: the known datasets."""

from __future__ import annotations

from typing import Annotated

import typer

from dissensus.cli.printing import console, note

app = typer.Typer(name="data", help="Known datasets: list them, look at one, fetch one.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="A name from `dissensus data list`.")]


@app.command("list")
def list_() -> None:
    """The known datasets, and which are here."""
    from rich.table import Table

    from dissensus.datasets import DATASETS

    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("name", "here", "what", "licence"):
        table.add_column(column, no_wrap=column != "what")
    for dataset in DATASETS.values():
        table.add_row(f"[bold]{dataset.name}[/]", "yes" if dataset.present() else "-", dataset.what, dataset.licence)
    console().print(table)


@app.command()
def show(name: Name) -> None:
    """What a dataset is, where it comes from, and whether it is here."""
    from dissensus.datasets import find

    dataset = find(name)
    out = console()
    out.print(f"[bold]{dataset.name}[/]: {dataset.what}")
    out.print(f"reference  {dataset.reference}")
    out.print(f"licence    {dataset.licence}")
    if dataset.file is not None:
        out.print(f"address    {dataset.address or dataset.page}")
        out.print(f"file       {dataset.path()}")
    if dataset.present():
        out.print(f"votes      {dataset.contents()}")
    elif dataset.package is not None:
        out.print(f"not here: it comes with the package {dataset.package}; `pip install {dataset.package}`")
    elif dataset.address is None:
        out.print("not here: download the file from this address and put it there")
    else:
        out.print(f"not here: fetch it with `dissensus data get {dataset.name}`")


@app.command("get")
def get_(name: Name) -> None:
    """Fetch a dataset from its authors, and check that it can be read."""
    from dissensus.datasets import find, get

    path = get(name)
    note(f"{name} comes with the package {find(name).package}" if path is None else f"{name} is at {path}")
