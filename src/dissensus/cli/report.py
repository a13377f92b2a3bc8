"""`dissensus report`: a study as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
    from dissensus.errors import InputError
    from dissensus.report import write_report
    from dissensus.studies import plan_study, read_study

    if Path(source).is_dir():
        store, source = Path(source), _only_study(Path(source))
    if not store.is_dir():
        raise InputError(f"{store}: there is no such run store; run the study first: dissensus study run")
    written = write_report(plan_study(read_study(source), store), output, seed=seed)
    console().print(plain(str(written)), soft_wrap=True)
    note(f"figures and tables are in {written.with_name(f'{written.stem}-files')}")


def _only_study(store: Path) -> str:
    """The file of the study whose runs a store keeps."""
    from dissensus.errors import InputError
    from dissensus.training import RunStore

    known = RunStore(store).studies()
    if len(known) != 1:
        held = f"keeps the runs of {', '.join(known)}" if known else "is not the run store of a study"
        raise InputError(f"{store}: the folder {held}; name one study: dissensus report STUDY --store {store}")
    return next(iter(known.values()))
