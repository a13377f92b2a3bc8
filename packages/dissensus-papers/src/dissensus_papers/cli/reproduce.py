"""`dissensus reproduce`: a paper's studies run, its claims judged, and the pages that say so."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dissensus.cli import options as opt
from dissensus.cli.printing import console, json_to, next_step, note, plain, table
from dissensus_train.cli.progress import train_with_progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus_papers.papers import Judged, Paper


def reproduce(
    source: Annotated[
        str, typer.Argument(metavar="PAPER", help="singh, gheibi, pavlovic, or a file of claims (.toml).")
    ],
    store: Annotated[Path, typer.Option(help="The folder that runs are kept in and resumed from.")] = Path(
        "dissensus-runs"
    ),
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The folder of the pages and of the summaries behind them; reproduced, or reproduced-quick.",
            callback=opt.not_standard_output,
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small networks, few epochs and seeds: minutes on a laptop.")
    ] = False,
    kept: Annotated[
        Path | None,
        typer.Option("--from", metavar="FOLDER", help="Write the pages from summaries that are there; nothing is run."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(help="A study to run, and no other; may be given again. Pages show what is there."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=0, help="How many seeds; 0 takes those of the studies.")] = 0,
    engine: opt.Engine = "auto",
    device: opt.Device = "auto",
    resamples: Annotated[int, typer.Option(min=0, help="Of items and seeds, behind each interval.")] = 1000,
    json: opt.JsonTo = None,
) -> None:
    """Run a paper's studies, judge its claims on them, and write what came out as Markdown, HTML and JSON.

    Can be stopped and started again at any time: runs that are in the store are not trained again.
    """
    from dissensus_papers.papers import judge_paper, read_paper, read_summaries, write_pages
    from dissensus_papers.papers.running import Reproduction
    from dissensus_papers.papers.running import reproduce as run_studies

    paper = read_paper(source)
    output = output or Path("reproduced-quick" if quick else "reproduced")
    if kept is None:
        how = Reproduction(
            quick=quick, seeds=seeds, only=tuple(only or ()), engine=engine, device=device, resamples=resamples
        )
        for summary in run_studies(paper, store, output, how=how, train=train_with_progress):
            note(f"{summary.study}: {f'not run: {summary.missing}' if summary.missing else 'done'}")
    summaries = read_summaries(kept or output, paper.name)
    paths = write_pages(paper, summaries, output if kept is None else kept)
    judged = judge_paper(paper, summaries)
    if str(json) != "-":
        _show(paper, judged, quick=any(each.quick for each in summaries.values()))
    if json is not None:
        json_to(json, [each.to_dict() for each in judged])
    note(f"written: {', '.join(map(str, paths))}")
    next_step(f"dissensus reproduce {source}, without --quick" if quick else f"open {paths[1]} in a browser")


def _show(paper: Paper, judged: Sequence[Judged], *, quick: bool) -> None:

    from dissensus_papers.papers.pages import claim_cells

    shown = table("claim", "paper", "ours", "seeds", "verdict", title=plain(paper.authors))
    for each in judged:
        shown.add_row(*map(plain, claim_cells(each)))
    console().print(shown)
    if quick:
        note("quick: small networks, few epochs and seeds; these verdicts say nothing about the paper")
