"""`dissensus bench`: every method on every set by one protocol, and the page that says what to train with."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dissensus.cli import options as opt
from dissensus.cli.printing import json_alone, next_step, note
from dissensus_train.cli.progress import train_with_progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dissensus_papers.bench import Protocol
    from dissensus_papers.papers import StudySummary

app = typer.Typer(no_args_is_help=False)

Store = Annotated[Path, typer.Option(help="The folder that runs are kept in and resumed from.")]
Output = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        help="The folder of the page and of the summaries behind it; benched, or benched-quick.",
        callback=opt.not_standard_output,
    ),
]
Quick = Annotated[bool, typer.Option("--quick", help="Small networks, few epochs and seeds: minutes on a laptop.")]
Sets = Annotated[list[str] | None, typer.Option(help="A set to run, and no other; may be given again.")]
Seeds = Annotated[int, typer.Option(min=0, help="How many seeds; 0 takes those of the protocol.")]
Resamples = Annotated[int, typer.Option(min=0, help="Of items and seeds, behind each interval.")]
Own = Annotated[Path | None, typer.Option("--protocol", help="A protocol of your own (.toml).")]


@app.callback(invoke_without_command=True)
def bench(
    context: typer.Context,
    store: Store = Path("dissensus-runs"),
    output: Output = None,
    quick: Quick = False,
    kept: Annotated[
        Path | None,
        typer.Option("--from", metavar="FOLDER", help="Write the page from summaries that are there; nothing is run."),
    ] = None,
    sets: Sets = None,
    seeds: Seeds = 0,
    engine: opt.Engine = "auto",
    device: opt.Device = "auto",
    resamples: Resamples = 1000,
    protocol: Own = None,
    json: opt.JsonTo = None,
) -> None:
    """Run every delivery, baseline and annotator-aware model on the vote sets of one protocol, and write the page.

    Can be stopped and started again at any time: runs that are in the store are not trained again.
    """
    if context.invoked_subcommand is not None:
        return
    from dissensus_papers.bench import read_protocol, run_bench
    from dissensus_papers.papers.running import Reproduction

    stated = read_protocol(protocol)
    output = kept or output or Path("benched-quick" if quick else "benched")
    if kept is None:
        how = Reproduction(quick=quick, seeds=seeds, engine=engine, device=device, resamples=resamples)
        _tell(run_bench(stated, store, output, how=how, sets=tuple(sets or ()), train=train_with_progress))
    _show(stated, output, json)


@app.command()
def add(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="my_method.py, with a function called delivery, loss or model.")
    ],
    store: Store = Path("dissensus-runs"),
    output: Output = None,
    quick: Quick = False,
    sets: Sets = None,
    seeds: Seeds = 0,
    engine: opt.Engine = "auto",
    device: opt.Device = "auto",
    resamples: Resamples = 1000,
    protocol: Own = None,
    json: opt.JsonTo = None,
) -> None:
    """Put a method of your own into the table: it is run on the sets that the folder has, by the same protocol."""
    from dissensus_papers.bench import read_protocol, run_added
    from dissensus_papers.papers.running import Reproduction

    stated = read_protocol(protocol)
    output = output or Path("benched-quick" if quick else "benched")
    how = Reproduction(quick=quick, seeds=seeds, engine=engine, device=device, resamples=resamples)
    _tell(run_added(stated, file, store, output, how=how, sets=tuple(sets or ()), train=train_with_progress))
    _show(stated, output, json)


def _tell(summaries: Iterator[StudySummary]) -> None:
    for summary in summaries:
        note(f"{summary.name}: {f'not run: {summary.missing}' if summary.missing else 'done'}")


def _show(protocol: Protocol, folder: Path, json: Path | None) -> None:
    from dissensus_papers.bench.outcome import standings
    from dissensus_papers.bench.running import NAME
    from dissensus_papers.papers import read_summaries

    summaries = read_summaries(folder, NAME)
    found = standings(protocol, summaries)
    alone = json_alone(json, found.to_dict())
    for answer in found.answers if not alone else ():
        typer.echo(answer)
    if found.quick:
        note("quick: small networks, few epochs and seeds; this is no answer to what one should train with")
    if any(importlib.util.find_spec(name) is None for name in ("altair", "vl_convert")):
        note(f"no page here, where Altair is not installed; elsewhere: dissensus bench --from {folder}")
        return
    from dissensus_papers.bench.pages import write_pages

    note(f"written: {', '.join(map(str, write_pages(protocol, summaries, folder)))}")
    next_step("dissensus bench add my_method.py, to put a method of your own into the table")
