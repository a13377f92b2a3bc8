"""`dissensus votes`: look at votes, and turn one kind of votes file into another."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dissensus.cli import options as opt
from dissensus.cli.printing import console, json_alone, json_to, next_step, note, plain, table
from dissensus.votes.privacy import LEAST_PEOPLE, groups_of, pseudonymous

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.labels.uncertainty import Correlations
    from dissensus.votes.groups import OriginalAgreement
    from dissensus.votes.inspection import Inspection
    from dissensus.votes.reading import Options
    from dissensus.votes.table import Votes

SHOWN: Final = 12
"""Classes that are shown by themselves; the rest of a long list is folded into one line."""

app = typer.Typer(name="votes", help="Look at votes, or convert them.", no_args_is_help=True)


@app.command()
@opt.reads("pseudonyms", "least_people")
def inspect(
    source: opt.Source,
    reading: Options,
    contested: Annotated[int, typer.Option(help="How many contested items to list.", min=0)] = 10,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples behind each interval.", min=0)] = 1000,
    by: Annotated[
        str | None, typer.Option(help="Column that describes items, such as a source: a table by it.")
    ] = None,
    original: Annotated[
        str | None, typer.Option(help="Column of labels that the items had before: how often the majority is the same.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with figures to this file.")] = None,
    pseudonyms: opt.Pseudonyms = None,
    least_people: opt.LeastPeople = LEAST_PEOPLE,
    seed: opt.Seed = 0,
    json: opt.JsonTo = None,
) -> None:
    """How much people agree, whom to look at and what is contested; by source, attribute or original label."""
    from dissensus.bootstrap import told_by
    from dissensus.labels.uncertainty import uncertainty_correlations
    from dissensus.votes.groups import by_annotators, by_items, original_agreement
    from dissensus.votes.inspection import inspect as look

    asked = [name for name in (by, original) if name is not None]
    if asked and not opt.is_known(source):
        reading = replace(reading, item_attributes=tuple(dict.fromkeys((*reading.item_attributes, *asked))))
    votes, how = opt.votes_named(source, reading)
    if pseudonyms is not None:
        votes = pseudonymous(votes, pseudonyms)
    found = look(votes, resamples=resamples, seed=seed, contested=contested)
    votes = votes.people
    groups = () if by is None else by_items(votes, by, resamples=resamples, seed=seed)
    people = {name: by_annotators(votes, name, least=least_people) for name in reading.attributes}
    for name in people:
        for sentence in groups_of(votes, name, least=least_people).told:
            note(sentence)
    before = None if original is None else original_agreement(votes, opt.item_attribute(votes, original))
    hang = uncertainty_correlations(votes, resamples=resamples, seed=seed) if _knows_doubt(votes) else None
    if html is not None:
        from dissensus.report.votes_page import write_page

        write_page(found, votes, html, title=source)
        note(f"page written to {html}")
    if json is not None:
        more = {
            "by": None if by is None else {"attribute": by, "groups": [told_by(each) for each in groups]},
            "by_attribute": {name: [told_by(each) for each in rows] for name, rows in people.items()},
            "original": None if before is None else before.to_dict(),
            "uncertainty": None if hang is None else hang.to_dict(),
        }
        json_to(json, {"source": source, **opt.reading_dict(how), **found.to_dict(), **more})
    if json is None or str(json) != "-":
        opt.show_reading(how)
        _print(found, source)
        if groups:
            _print_groups(f"By {by}", groups)
        for name, rows in people.items():
            if rows:
                _print_groups(f"Annotators by {name}", rows)
        if before is not None:
            _print_original(before, votes.classes)
        if hang is not None:
            _print_correlations(hang)
    next_step(f"dissensus labels {source} -o labels.csv")


def _knows_doubt(votes: Votes) -> bool:
    return votes.unsure is not None or votes.seconds is not None


@app.command()
@opt.reads()
def convert(
    source: opt.Source,
    reading: Options,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="The file to write; its ending says the kind, and - is standard output."),
    ],
    to: Annotated[
        str | None, typer.Option("--to", help="long, sets, wide or counts; chosen by what the votes are if not given.")
    ] = None,
    croissant: Annotated[
        Path | None, typer.Option(help="Write Croissant metadata of the written file to this JSON file.")
    ] = None,
    licence: Annotated[str | None, typer.Option(help="The licence that the metadata names.")] = None,
    json: opt.JsonTo = None,
) -> None:
    """Read any votes file and write it as another kind; Parquet reads back fastest."""
    from dissensus.datasets import DATASETS
    from dissensus.votes.croissant import REQUIRED
    from dissensus.votes.croissant import croissant as describe
    from dissensus.votes.kinds import share_of_models
    from dissensus.votes.writing import write_votes

    votes, how = opt.votes_named(source, reading)
    opt.show_reading(how)
    write_votes(votes, output, format=to)
    if str(output) != "-":
        note(f"{len(votes):,} votes on {len(votes.items):,} items written to {output}")
    if votes.by_model is not None:
        note(share_of_models(votes))
    if croissant is not None:
        about = {"licence": licence}
        if opt.is_known(source):
            known = DATASETS[source]
            about = {
                "licence": licence or known.licence,
                "url": known.page or known.address,
                "citation": known.reference,
            }
        found = describe(votes, output, name=Path(source).stem, **about)
        json_to(croissant, found)
        note(f"Croissant metadata written to {croissant}")
        lacking = ", ".join(name for name in REQUIRED if name not in found)
        note(f"add {lacking} to it before you publish the set: Croissant requires them")
    written = {"file": str(output), "votes": len(votes), "items": len(votes.items), "classes": votes.classes}
    if json_alone(json, {**written, **opt.reading_dict(how)}):
        return
    next_step(f"dissensus votes inspect {source if str(output) == '-' else output}")


def _print(found: Inspection, source: str) -> None:
    from dissensus.votes.agreement import TITLES

    out = console()
    panel = "anonymous" if found.annotators is None else f"{found.annotators:,} annotators"
    out.print(
        f"[bold]{plain(source)}[/]: {found.votes:,} votes, {found.items:,} items, {len(found.classes)} "
        f"{'ordered ' if found.ordered else ''}classes, {panel}",
    )
    for sentence in found.sentences():
        out.print(plain(sentence))
    out.print()
    facts = table()
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

    agreement = table("", ">value", ">95 % interval", title="Agreement")
    rows: dict[str, Any] = {TITLES[name]: estimate for name, estimate in found.agreement.items()}
    if found.split_half is not None:
        rows["split-half reliability, entropy"] = found.split_half.entropy
        rows["split-half reliability, probabilities"] = found.split_half.probabilities
    by_class = list(found.class_alpha.items())
    rows |= {f"alpha of '{plain(name)}'": each.alpha for name, each in by_class[:SHOWN]}
    for title, estimate in rows.items():
        if estimate is not None:
            interval = "" if estimate.low is None else f"{estimate.low:.3f} to {estimate.high:.3f}"
            agreement.add_row(title, f"{estimate.value:.3f}" if estimate.defined else str(estimate), interval)
    if rows:
        out.print()
        out.print(agreement)
        if len(by_class) > SHOWN:
            out.print(f"alpha of {len(by_class) - SHOWN} more classes: see --json")

    out.print()
    out.print(_classes(found))
    if found.doubtful():
        out.print()
        out.print(_annotators(found))
    if found.models is not None and found.models.rows():
        out.print()
        out.print(_compared("Models beside people", "model", found.models.rows()))
    if found.contested:
        out.print()
        out.print(_contested(found))
    for each in found.notes:
        note(f"not shown: {each}")


def _classes(found: Inspection) -> Any:
    made = table("class", ">votes", ">share", "", title="Classes")
    room = console().width - 24 - min(max(len(each.name) for each in found.classes), 20)
    widest = max((each.share for each in found.classes), default=1.0) or 1.0
    shown, rest = found.classes, found.classes[:0]
    if len(found.classes) > SHOWN + 3:
        ranked = sorted(found.classes, key=lambda each: -each.votes)
        shown, rest = tuple(ranked[:SHOWN]), tuple(ranked[SHOWN:])
    for each in shown:
        bar = "█" * round(min(24, max(room, 4)) * each.share / widest)
        made.add_row(plain(each.name), f"{each.votes:,}", f"{each.share:.1%}", f"[cyan]{bar}[/]")
    if rest:
        votes, share = sum(each.votes for each in rest), sum(each.share for each in rest)
        made.add_row(f"{len(rest):,} more", f"{votes:,}", f"{share:.1%}", "")
    return made


def _annotators(found: Inspection) -> Any:
    from dissensus.votes.inspection import FEWEST

    title = f"Annotators who agree least with the rest (by the upper end; {FEWEST} judgements or more)"
    return _compared(title, "annotator", found.doubtful())


def _compared(title: str, who: str, rows: Sequence[dict[str, Any]]) -> Any:
    """Annotators or models, a row each: how far they agree with the others."""
    made = table(title=title)
    made.show_header = True
    narrow = console().width < 70
    made.add_column(who, overflow="ellipsis", no_wrap=True)
    headings = ("n", "agrees", "95 %") if narrow else ("judgements", "agreement", "95 % interval", "by chance")
    for column in headings:
        made.add_column(column, justify="right", no_wrap=True)
    for row in rows[:10]:
        interval = f"{row['low']:.2f}-{row['high']:.2f}" if narrow else f"{row['low']:.3f} to {row['high']:.3f}"
        cells = (f"{row['judgements']:,}", f"{row['agreement']:.3f}", interval, f"{row['expected']:.3f}")
        made.add_row(plain(str(row["annotator"])), *cells[: len(headings)])
    return made


def _contested(found: Inspection) -> Any:
    made = table("item", ">entropy", "votes", title="Most contested items")
    made.columns[0].overflow, made.columns[0].no_wrap, made.columns[0].max_width = "ellipsis", True, 40
    for item in found.contested:
        votes = ", ".join(f"{plain(name)} {count}" for name, count in item.counts.items())
        made.add_row(plain(str(item.item)), f"{item.entropy:.3f}", votes)
    return made


def _print_groups(title: str, groups: Sequence[Any]) -> None:
    """Groups of items or annotators, a row each; columns that no group knows are left out."""
    from dissensus.bootstrap import Estimate

    names = [each.name for each in fields(groups[0]) if any(getattr(group, each.name) is not None for group in groups)]
    headings = ("" if name == "name" else f">{name.replace('_', ' ')}" for name in names)
    shown = table(*headings, title=plain(title))

    def cell(value: Any) -> str:
        if value is None:
            return ""
        if isinstance(value, Estimate):
            return str(value)
        return f"{value:,}" if isinstance(value, int) else f"{value:.3f}" if isinstance(value, float) else plain(value)

    for group in groups[:SHOWN]:
        shown.add_row(*(cell(getattr(group, name)) for name in names))
    out = console()
    out.print()
    if out.width < 100:
        # A table of so many columns would be unreadable here.
        out.print(f"[italic]{plain(title)}[/]")
        for group in groups[:SHOWN]:
            told = ", ".join(f"{name.replace('_', ' ')} {cell(getattr(group, name))}" for name in names[1:])
            out.print(f"[bold]{plain(group.name)}[/]: {told}")
    else:
        out.print(shown)
    if len(groups) > SHOWN:
        out.print(f"{len(groups) - SHOWN} more groups: see --json")


def _print_original(before: OriginalAgreement, classes: Sequence[str]) -> None:
    out = console()
    out.print()
    left_out = f"; {before.left_out:,} without one are left out" if before.left_out else ""
    out.print(
        f"The majority is the original label for {before.same:.1%} of {before.items:,} items "
        f"({before.low:.1%} to {before.high:.1%}){left_out}."
    )
    if len(classes) > SHOWN:
        return
    made = table("", *(f">{plain(name)}" for name in classes), title="Original label (row) and majority (column)")
    for name, row in zip(classes, before.matrix.tolist(), strict=True):
        made.add_row(plain(name), *(f"{number:,}" for number in row))
    out.print(made)


def _print_correlations(found: Correlations) -> None:
    """How the measures of human uncertainty hang together: a pair a row, so that it fits any screen."""
    title = f"How measures of human uncertainty hang together (Spearman, {found.items:,} items)"
    made = table("", "", ">correlation", title=title)
    for (i, j), estimate in found.estimates.items():
        made.add_row(found.measures[i], found.measures[j], str(estimate))
    out = console()
    out.print()
    out.print(made)
