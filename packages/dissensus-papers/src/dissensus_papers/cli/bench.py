"""`dissensus bench`: every method on every set by one protocol, and the page that says what to train with."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from dissensus.cli.options import Device, Engine, JsonTo
from dissensus.cli.printing import json_alone, next_step, note, typed
from dissensus_papers.cli import Kept, Quick, Resamples, Seeds, Store, a_folder, pages_alone, show_progress
from dissensus_train.cli.progress import train_with_progress

app = typer.Typer(no_args_is_help=False)

Output = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        help="The folder of the page and of the summaries behind it; benched, or of quick runs benched-quick.",
        callback=a_folder,
    ),
]
Sets = Annotated[list[str] | None, typer.Option(help="A set to run, and no other; may be given again.")]
Own = Annotated[Path | None, typer.Option("--protocol", help="A protocol of your own (.toml).")]


@app.callback(invoke_without_command=True)
def bench(
    context: typer.Context,
    store: Store = Path("dissensus-runs"),
    output: Output = None,
    quick: Quick = False,
    kept: Kept = None,
    sets: Sets = None,
    seeds: Seeds = 0,
    engine: Engine = "auto",
    device: Device = "auto",
    resamples: Resamples = 1000,
    protocol: Own = None,
    json: JsonTo = None,
) -> None:
    """Run every delivery, baseline and annotator-aware model on the vote sets of one protocol, and write the page.

    Can be stopped and started again at any time: runs that are in the store are not trained again.
    """
    if context.invoked_subcommand is not None:
        return
    pages_alone(kept, quick=quick, sets=sets, seeds=seeds)
    output = output or kept or Path("benched-quick" if quick else "benched")
    how = {"quick": quick, "seeds": seeds, "engine": engine, "device": device, "resamples": resamples}
    _bench(store, output, protocol, json, sets=tuple(sets or ()), how=None if kept else how, kept=kept)


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
    engine: Engine = "auto",
    device: Device = "auto",
    resamples: Resamples = 1000,
    protocol: Own = None,
    json: JsonTo = None,
) -> None:
    """Put a method of your own into the table: it is run on the sets that the folder has, by the same protocol."""
    output = output or Path("benched-quick" if quick else "benched")
    how = {"quick": quick, "seeds": seeds, "engine": engine, "device": device, "resamples": resamples}
    _bench(store, output, protocol, json, sets=tuple(sets or ()), how=how, method=file, row=file.stem)


@app.command()
def submit(
    predictions: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A file for each set: SET.csv, with probabilities or single votes.")
    ],
    name: Annotated[str, typer.Option(help="Of the system, in the table.")],
    description: Annotated[str, typer.Option(help="What the system is and learnt from, in a sentence.")],
    output: Output = None,
    resamples: Resamples = 1000,
    protocol: Own = None,
    json: JsonTo = None,
) -> None:
    """Put predictions that were made elsewhere into the table: checked, and scored on the held-out items of each set.

    Files of LeWiDi 2025's tasks (CSC_test_soft.tsv) are scored as its organisers do.
    """
    from dissensus_papers.bench import read_protocol
    from dissensus_papers.bench.submitting import submit as score

    folder = output or Path("benched")
    asked = read_protocol(protocol)
    made = list(score(asked, predictions, folder, name=name, description=description, resamples=resamples))
    note(*(sentence for summary in made for sentence in summary.measured.get("notes", ())))
    note(*(f"caution, {summary.name}: {sentence}" for summary in made for sentence in summary.cautions))
    show_progress(made)
    _bench(Path(), folder, protocol, json, sets=(), how=None, row=name)
    note(f"what {name} learnt from is not known here, and not every leak of the held-out votes is told")


@app.command()
def splits(
    name: Annotated[str, typer.Argument(metavar="SET", help="A set of the protocol.")],
    protocol: Own = None,
) -> None:
    """Print which items of a set are trained on, with their votes, selected by, and held out, as CSV; fold by fold."""
    import csv
    import sys

    from dissensus_papers.bench import read_protocol
    from dissensus_papers.bench.submitting import split_rows

    read = read_protocol(protocol)
    csv.writer(sys.stdout, lineterminator="\n").writerows(split_rows(read, read.chosen((name,))[0]))


def _bench(
    store: Path,
    folder: Path,
    file: Path | None,
    json: Path | None,
    *,
    sets: tuple[str, ...],
    how: dict[str, Any] | None,
    method: Path | None = None,
    kept: Path | None = None,
    row: str = "",
) -> None:
    """Run what is to be run, write the page of what is in the folder then, and say where a row stands."""
    from dissensus_papers.bench import read_protocol, run_bench, standings
    from dissensus_papers.bench.pages import write_pages
    from dissensus_papers.bench.running import NAME
    from dissensus_papers.papers import read_summaries
    from dissensus_papers.papers.running import Reproduction

    protocol = read_protocol(file)
    if how is not None:
        run = partial(run_bench, protocol, store, folder, sets=sets, method=method, train=train_with_progress)
        show_progress(run(how=Reproduction(**how)))
    summaries = read_summaries(kept or folder, NAME)
    written, result = write_pages(protocol, summaries, folder), standings(protocol, summaries)
    if not json_alone(json, result.to_dict()):
        typer.echo("\n".join([*result.answers, *(on.row(row) for on in result.sets if row in on.losses(on.metric))]))
    if result.quick:
        note("quick: small networks, few epochs and seeds; this is no answer to what one should train with")
    note(f"written: {', '.join(map(str, written))}")
    next_step(typed("bench", "add", "FILE.py", "--quick"), "puts a method of your own into the table")
