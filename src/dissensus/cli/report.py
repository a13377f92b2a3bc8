"""`dissensus report`: a study as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dissensus.cli import options as opt
from dissensus.cli.printing import console, note, plain


def report(
    source: Annotated[
        str, typer.Argument(metavar="STUDY|STORE", help="A study file (.toml), the name of one, or a run store.")
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
    from dissensus.report import write_report
    from dissensus.studies import open_study, read_study, score_study

    study, store = opt.study_and_store(source, store, command="report")
    scored = score_study(open_study(read_study(study), store), seed=seed)
    written = write_report(scored, output, seed=seed)
    console().print(plain(str(written)), soft_wrap=True)
    note(f"figures and tables are in {written.with_name(f'{written.stem}-files')}")
