"""`dissensus report`: a study as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dissensus.cli.printing import console, note, plain


def report(
    source: Annotated[
        str, typer.Argument(metavar="STUDY", help="A study file (.toml), or the name of one that is shipped.")
    ],
    store: Annotated[Path, typer.Option(help="The folder that the study's results are kept in.")] = Path(
        "dissensus-runs"
    ),
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The page to write.")] = Path(
        "report.html"
    ),
    seed: Annotated[int, typer.Option(help="Of resamples and of thinned points.")] = 0,
) -> None:
    """Write a finished study as one self-contained page, and its figures and tables as files beside it."""
    from dissensus.errors import InputError
    from dissensus.report import write_report
    from dissensus.studies import plan_study, read_study

    if not store.is_dir():
        raise InputError(f"{store}: there is no such run store; run the study first: dissensus study run")
    written = write_report(plan_study(read_study(source), store), output, seed=seed)
    console().print(plain(str(written)), soft_wrap=True)
    note(f"figures and tables are in {written.with_name(f'{written.stem}-files')}")
