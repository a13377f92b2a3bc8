"""`dissensus reproduce`: a paper's studies run, its claims judged, and the pages that say so."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dissensus.cli.options import Device, Engine, JsonTo
from dissensus.cli.printing import console, json_alone, next_step, note, plain, table, typed
from dissensus.errors import InputError
from dissensus_papers.cli import Kept, Quick, Resamples, Store, a_folder, pages_alone, show_progress
from dissensus_train.cli.progress import train_with_progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus_papers.papers import JudgedClaim, Paper


def reproduce(
    source: Annotated[
        str, typer.Argument(metavar="PAPER", help="singh, gheibi, pavlovic, or a file of claims (.toml).")
    ],
    store: Store = Path("dissensus-runs"),
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The folder of the pages and of the summaries behind them; reproduced, or reproduced-quick.",
            callback=a_folder,
        ),
    ] = None,
    quick: Quick = False,
    kept: Kept = None,
    only: Annotated[
        list[str] | None,
        typer.Option(help="A study to run, and no other; may be given again. Pages show what is there."),
    ] = None,
    seeds: Annotated[
        str,
        typer.Option(
            metavar="NUMBER|FIRST-LAST",
            help="How many seeds, or which: 4-5 joins what is there of a study whose seeds have splits of their own; "
            "0 takes those that are stated.",
        ),
    ] = "0",
    engine: Engine = "auto",
    device: Device = "auto",
    resamples: Resamples = 1000,
    json: JsonTo = None,
) -> None:
    """Run a paper's studies, judge its claims on them, and write what came out as Markdown, HTML and JSON.

    Can be stopped and started again at any time: runs that are in the store are not trained again.
    """
    from dissensus_papers.papers import judge_paper, read_paper, read_summaries, write_pages
    from dissensus_papers.papers.running import Reproduction, refuse_other_studies
    from dissensus_papers.papers.running import reproduce as run_studies

    pages_alone(kept, quick=quick, only=only, seeds=_seeds(seeds))
    paper = read_paper(source)
    output = output or kept or Path("reproduced-quick" if quick else "reproduced")
    if kept is None:
        how = Reproduction(
            quick=quick, seeds=_seeds(seeds), only=tuple(only or ()), engine=engine, device=device, resamples=resamples
        )
        show_progress(run_studies(paper, store, output, how=how, train=train_with_progress))
    summaries = read_summaries(kept or output, paper.name)
    if kept is not None:
        refuse_other_studies(paper, summaries)
    judged = judge_paper(paper, summaries)
    paths = write_pages(paper, summaries, output)
    if not json_alone(json, [claim.to_dict() for claim in judged]):
        _show(paper, judged)
        if any(summary.quick for summary in summaries.values()):
            note("quick: small networks, few epochs and seeds; these verdicts say nothing about the paper")
    note(f"written: {', '.join(map(str, paths))}")
    next_step(typed("reproduce", source, only=only) if quick else f"open {paths[1]} in a browser")


def _seeds(given: str) -> int | range:
    first, dash, last = given.partition("-")
    if not first.isdecimal() or (dash and not (last.isdecimal() and int(first) <= int(last))):
        raise InputError(f"--seeds is '{given}'; give a number, as 10, or the first and the last of them, as 4-5")
    return range(int(first), int(last) + 1) if dash else int(first)


def _show(paper: Paper, judged: Sequence[JudgedClaim]) -> None:
    from dissensus_papers.papers.pages import claim_cells

    rows = table("claim", "paper", "ours", "seeds", "verdict", title=plain(paper.authors))
    for claim in judged:
        rows.add_row(*map(plain, claim_cells(claim)))
    console().print(rows)
