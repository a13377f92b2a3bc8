"""`dissensus votes`: look at votes, and turn one kind of votes file into another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dissensus.cli import options as opt
from dissensus.cli.printing import console, json_to, note, plain

if TYPE_CHECKING:
    from dissensus.votes.inspection import Inspection

app = typer.Typer(name="votes", help="Look at votes, or convert them.", no_args_is_help=True)


@app.command()
def inspect(
    source: opt.Source,
    format: opt.Format = None,  # noqa: A002 - the option's name
    item: opt.Item = None,
    annotator: opt.Annotator = None,
    label: opt.Label = None,
    response: opt.Response = None,
    seconds: opt.Seconds = None,
    attribute: opt.Attributes = None,
    keep: opt.Keep = None,
    annotators: opt.Annotators = None,
    columns: opt.ColumnNames = None,
    missing: opt.Missing = None,
    classes: opt.Classes = None,
    ordered: opt.Ordered = None,
    separator: opt.Separator = None,
    duplicates: opt.Duplicates = "refuse",
    contested: Annotated[int, typer.Option(help="How many contested items to list.", min=0)] = 10,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples behind each interval.", min=0)] = 1000,
    seed: opt.Seed = 0,
    json: opt.JsonTo = None,
) -> None:
    """Sizes, agreement with intervals, annotators who agree least, contested items."""
    from dissensus.votes.inspection import inspect as look

    votes, reading = opt.votes_named(source, opt.reading_options(locals()))
    found = look(votes, resamples=resamples, seed=seed, contested=contested)
    if json is not None:
        json_to(json, {"source": source, **opt.reading_dict(reading), **found.to_dict()})
    if json is None or str(json) != "-":
        opt.show_reading(reading)
        _print(found, source)


@app.command()
def convert(
    source: opt.Source,
    out: Annotated[Path, typer.Option("-o", "--out", help="The file to write; its ending says the kind.")],
    to: Annotated[
        str | None, typer.Option("--to", help="long, sets, wide or counts; chosen by what the votes are if not given.")
    ] = None,
    format: opt.Format = None,  # noqa: A002
    item: opt.Item = None,
    annotator: opt.Annotator = None,
    label: opt.Label = None,
    response: opt.Response = None,
    seconds: opt.Seconds = None,
    attribute: opt.Attributes = None,
    keep: opt.Keep = None,
    annotators: opt.Annotators = None,
    columns: opt.ColumnNames = None,
    missing: opt.Missing = None,
    classes: opt.Classes = None,
    ordered: opt.Ordered = None,
    separator: opt.Separator = None,
    duplicates: opt.Duplicates = "refuse",
) -> None:
    """Read any votes file and write it as another kind; Parquet reads back fastest."""
    from dissensus.votes.writing import write_votes

    votes, reading = opt.votes_named(source, opt.reading_options(locals()))
    opt.show_reading(reading)
    write_votes(votes, out, format=to)
    note(f"{len(votes):,} votes on {len(votes.items):,} items written to {out}")


def _print(found: Inspection, source: str) -> None:
    from rich.table import Table

    from dissensus.votes.agreement import TITLES

    out = console()
    panel = "anonymous" if found.annotators is None else f"{found.annotators:,} annotators"
    out.print(
        f"[bold]{plain(source)}[/]: {found.votes:,} votes, {found.items:,} items, {len(found.classes)} "
        f"{'ordered ' if found.ordered else ''}classes, {panel}",
        soft_wrap=True,
    )
    facts = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    per = found.judgements_per_item
    facts.add_row("judgements per item", f"{per.mean:.2f} (median {per.median:g}, {per.min} to {per.max})")
    if found.unanimous_share is not None and found.varied_share is not None:
        facts.add_row("unanimous / varied", f"{found.unanimous_share:.1%} / {found.varied_share:.1%} of items")
    facts.add_row("ties for the majority", f"{found.tied:,} items ({found.tied_share:.1%})")
    entropy = found.entropy
    facts.add_row(
        "entropy",
        f"{entropy.mean:.3f} nats (median {entropy.median:.3f}; corrected for few votes {entropy.corrected_mean:.3f})",
    )
    if found.seconds is not None:
        s = found.seconds
        facts.add_row(
            "seconds per judgement", f"{s.median:.1f} (half within {s.lower_quartile:.1f} to {s.upper_quartile:.1f})"
        )
    if found.unsure_rate is not None:
        facts.add_row("judgements with unsure", f"{found.unsure_rate:.1%}")
    out.print(facts)

    agreement = Table(title="Agreement", title_justify="left", box=None, padding=(0, 2, 0, 0))
    agreement.add_column("")
    agreement.add_column("value", justify="right")
    agreement.add_column("95 % interval", justify="right")
    rows: dict[str, Any] = {TITLES[name]: estimate for name, estimate in found.agreement.items()}
    if found.split_half is not None:
        rows["split-half reliability, entropy"] = found.split_half.entropy
        rows["split-half reliability, probabilities"] = found.split_half.probabilities
    rows |= {f"alpha of '{plain(name)}'": each.alpha for name, each in found.class_alpha.items()}
    for title, estimate in rows.items():
        if estimate is not None:
            interval = "" if estimate.low is None else f"{estimate.low:.3f} to {estimate.high:.3f}"
            agreement.add_row(title, f"{estimate.value:.3f}", interval)
    if rows:
        out.print()
        out.print(agreement)

    out.print()
    out.print(_classes(found))
    if found.annotator_agreement is not None and len(found.annotator_agreement):
        out.print()
        out.print(_annotators(found))
    if found.contested:
        out.print()
        out.print(_contested(found))
    for each in found.notes:
        note(f"not shown: {each}")


def _classes(found: Inspection) -> Any:
    from rich.table import Table

    table = Table(title="Classes", title_justify="left", box=None, padding=(0, 2, 0, 0))
    table.add_column("class")
    table.add_column("votes", justify="right")
    table.add_column("share", justify="right")
    table.add_column("")
    widest = max((each.share for each in found.classes), default=1.0) or 1.0
    for each in found.classes:
        table.add_row(
            plain(each.name),
            f"{each.votes:,}",
            f"{each.share:.1%}",
            f"[cyan]{'█' * round(24 * each.share / widest)}[/]",
        )
    return table


def _annotators(found: Inspection) -> Any:
    from rich.table import Table

    assert found.annotator_agreement is not None
    rows = [row for row in found.annotator_agreement.to_rows() if row["agreement"] is not None]
    table = Table(
        title="Annotators who agree least with the rest", title_justify="left", box=None, padding=(0, 2, 0, 0)
    )
    table.add_column("annotator")
    for column in ("judgements", "agreement", "95 % interval", "by chance"):
        table.add_column(column, justify="right")
    for row in rows[:10]:
        table.add_row(
            plain(str(row["annotator"])),
            f"{row['judgements']:,}",
            f"{row['agreement']:.3f}",
            f"{row['low']:.3f} to {row['high']:.3f}",
            f"{row['expected']:.3f}",
        )
    return table


def _contested(found: Inspection) -> Any:
    from rich.table import Table

    table = Table(title="Most contested items", title_justify="left", box=None, padding=(0, 2, 0, 0))
    table.add_column("item", overflow="ellipsis", no_wrap=True, max_width=40)
    table.add_column("entropy", justify="right")
    table.add_column("votes")
    for item in found.contested:
        votes = ", ".join(f"{plain(name)} {count}" for name, count in item.counts.items())
        table.add_row(plain(str(item.item)), f"{item.entropy:.3f}", votes)
    return table
