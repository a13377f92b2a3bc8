"""`dissensus votes`: look at votes, and turn one kind of votes file into another."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dissensus.cli import options as opt
from dissensus.cli.inputs import is_known, reading_dict, votes_named
from dissensus.cli.printing import SHOWN, console, folded, json_alone, json_to, next_step, note, plain, table, typed
from dissensus.errors import InputError, choices
from dissensus.votes.echo import seen
from dissensus.votes.privacy import LEAST_PEOPLE, few_digits, groups_of, key_from, pseudonymous

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.evaluation.who_wins import SystemRanking
    from dissensus.labels.uncertainty import Correlations
    from dissensus.votes.formats import Options
    from dissensus.votes.groups import OriginalAgreement
    from dissensus.votes.inspection import Inspection

app = typer.Typer(name="votes", help="Look at votes, or convert them.", no_args_is_help=True)


@app.command()
@opt.command("inspect")
def inspect(
    source: str,
    reading: Options,
    contested: int = 10,
    resamples: int = 1000,
    by: str | None = None,
    original: str | None = None,
    html: Path | None = None,
    pseudonyms: str | None = None,
    by_person: bool = False,
    least_people: int = LEAST_PEOPLE,
    seed: int = 0,
    json: Path | None = None,
) -> None:
    """How much people agree, whom to look at and what is contested; by source, attribute or original label."""
    from dissensus.bootstrap import json_fields
    from dissensus.labels.uncertainty import uncertainty_correlations
    from dissensus.votes.groups import by_annotators, by_items, original_agreement
    from dissensus.votes.inspection import inspect as look

    described = [name for name in (by, original) if name is not None]
    options = reading
    if described and not is_known(source):
        options = replace(reading, item_attributes=tuple(dict.fromkeys((*reading.item_attributes, *described))))
    votes, how = votes_named(source, options)
    if pseudonyms is not None:
        votes = pseudonymous(votes, key_from(pseudonyms))
    result = look(votes, resamples=resamples, seed=seed, contested=contested)
    if (reading.attributes or by in votes.annotator_attributes) and not by_person:
        result = replace(result, annotator_agreement=None)
        note("nobody is listed beside groups, as together they tell who is in which (--by-person lists everybody)")
    votes = votes.people
    of_people = by is not None and by in votes.annotator_attributes and by not in votes.item_attributes
    groups = () if by is None or of_people else by_items(votes, by, resamples=resamples, seed=seed)
    described_by = dict.fromkeys((*reading.attributes, *([by] if by is not None and of_people else [])))
    people = {name: by_annotators(votes, name, least=least_people) for name in described_by}
    for name in people:
        note(*groups_of(votes, name, least=least_people).told)
    if original is not None and original not in votes.item_attributes:
        remedy = choices(original, votes.item_attributes) if votes.item_attributes else "; they have none"
        raise InputError(f"items have no attribute '{original}'{remedy}")
    before = None if original is None else original_agreement(votes, votes.item_attributes[original])
    in_doubt = votes.unsure is not None or votes.seconds is not None
    correlations = uncertainty_correlations(votes, resamples=resamples, seed=seed) if in_doubt else None
    if html is not None:
        from dissensus.report.votes_page import write_page

        write_page(result, votes, html, title=source)
        note(f"page written to {html}")
    more = {
        "by": None if by is None else {"attribute": by, "groups": [json_fields(group) for group in groups]},
        "by_attribute": {name: [json_fields(group) for group in rows] for name, rows in people.items()},
        "original": None if before is None else before.to_dict(),
        "uncertainty": None if correlations is None else correlations.to_dict(),
    }
    told = {"source": source, **reading_dict(how), **result.to_dict(), **more}
    if not json_alone(json, told if pseudonyms is None else few_digits(told)):
        _print(result, source)
        _print_groups(f"By {by}", groups)
        for name, rows in people.items():
            _print_groups(f"Annotators by {name}", rows)
        if before is not None:
            _print_original(before, votes.classes)
        if correlations is not None:
            _print_correlations(correlations)
    next_step(typed("labels", source, "-o", "labels.csv", reading=reading))


@app.command()
@opt.command("ranking")
def ranking(
    source: str,
    reading: Options,
    question: str | None = None,
    by: str | None = None,
    length: str | None = None,
    least_people: int = LEAST_PEOPLE,
    json: Path | None = None,
) -> None:
    """Who wins? Systems ranked by preferences, and whether judges and groups of people rank them alike."""
    from dissensus.evaluation.who_wins import ranking as rank

    sides = None if length is None else tuple(name.strip() for name in length.split(","))
    kept = [*reading.item_attributes, *([question] if question else []), *(sides or ())]
    people = [*reading.attributes, *([by] if by else [])]
    options = replace(
        reading,
        format=reading.format or "preferences",
        item_attributes=tuple(dict.fromkeys(kept)),
        attributes=tuple(dict.fromkeys(people)),
    )
    votes, how = votes_named(source, options)
    result = rank(votes, question=question, by=by, length=sides, least_people=least_people)
    if not json_alone(json, {"source": source, **reading_dict(how), **result.to_dict()}):
        for one in (result.people, *(other.ranking for other in result.beside)):
            lines = table("", "system", ">votes", ">wins", ">score", ">95 % interval", ">rank", title=_title(one))
            for row in one.standings:
                ends = "" if row.score.low is None else f"{row.score.low:+.2f} to {row.score.high:+.2f}"
                rank_ends = f"{row.best_rank}-{row.worst_rank}" if row.best_rank < row.worst_rank else str(row.rank)
                cells = f"{row.votes:,}", f"{row.wins:.1%}", f"{row.score.value:+.2f}", ends, rank_ends
                lines.add_row(str(row.rank), plain(row.system), *cells)
            _print_below(lines)
        for other in result.beside:
            console().print(plain(result.sentence(other)))
    note(*result.notes)
    next_step(typed("votes", "inspect", source, reading=options))


def _title(one: SystemRanking) -> str:
    effects = {"the side shown on the left": one.position, "a doubling of length": one.length}
    told = [f"{name} gains {effect.value:+.2f}" for name, effect in effects.items() if effect is not None]
    return plain(f"{one.name}: {one.votes:,} votes; {', '.join(told)}")


@app.command()
@opt.command("convert")
def convert(
    source: str,
    reading: Options,
    output: Path,
    to: str | None = None,
    croissant: Path | None = None,
    licence: str | None = None,
    json: Path | None = None,
) -> None:
    """Read any votes file and write it as another kind; Parquet reads back fastest."""
    from dissensus.datasets import DATASETS
    from dissensus.votes.croissant import REQUIRED
    from dissensus.votes.croissant import croissant as describe
    from dissensus.votes.echo import number
    from dissensus.votes.kinds import share_of_models
    from dissensus.votes.own import side_file
    from dissensus.votes.writing import check_target, write_votes

    check_target(output, to)
    votes, how = votes_named(source, reading)
    write_votes(votes, output, format=to)
    to_file = str(output) != "-"
    if to_file:
        beside = f", with what it cannot hold in {side_file(output)}" if side_file(output).exists() else ""
        note(f"{number(len(votes), 'vote')} on {number(len(votes.items), 'item')} written to {output}{beside}")
    if votes.by_model is not None:
        note(share_of_models(votes))
    if croissant is not None:
        about = {"licence": licence}
        if is_known(source):
            known = DATASETS[source]
            about = {
                "licence": licence or known.licence,
                "url": known.page or known.address,
                "citation": known.reference,
            }
        metadata = describe(votes, output, name=Path(source).stem, **about)
        json_to(croissant, metadata)
        lacking = ", ".join(name for name in REQUIRED if name not in metadata)
        note(
            f"Croissant metadata written to {croissant}",
            f"add {lacking} to it before you publish the set: Croissant requires them",
        )
    written = {"file": str(output), "votes": len(votes), "items": len(votes.items), "classes": votes.classes}
    if not json_alone(json, {**written, **reading_dict(how)}):
        again = typed("votes", "inspect", source, reading=reading)
        next_step(typed("votes", "inspect", output) if to_file else again)


def _print(result: Inspection, source: str) -> None:
    out = console()
    panel = "anonymous" if result.annotators is None else f"{result.annotators:,} annotators"
    out.print(
        f"[bold]{plain(source)}[/]: {result.votes:,} votes, {result.items:,} items, {len(result.classes)} "
        f"{'ordered ' if result.ordered else ''}classes, {panel}"
    )
    for sentence in result.sentences():
        out.print(plain(sentence))
    out.print()
    facts = table()
    for row in result.facts().items():
        facts.add_row(*row)
    out.print(facts)
    _print_agreement(result)
    _print_classes(result)
    if result.doubtful():
        from dissensus.votes.inspection import FEWEST

        title = f"Annotators who agree least with the rest (by the upper end; {FEWEST} judgements or more)"
        _print_compared(title, "annotator", result.doubtful())
    if result.models is not None and result.models.rows():
        _print_compared("Models beside people", "model", result.models.rows())
    if result.biased():
        title = "Position bias: votes for the side shown on the left (a tie is half a vote), beyond those of others"
        lines = table("annotator", ">judgements", ">left", ">others", ">bias", ">95 % interval", title=title)
        for one in result.biased()[:SHOWN]:
            ends = f"{one.low:+.3f} to {one.high:+.3f}"
            cells = f"{one.judgements:,}", f"{one.left:.1%}", f"{one.expected:.1%}", f"{one.bias:+.3f}", ends
            lines.add_row(plain(one.annotator) + (" (model)" if one.model else ""), *cells)
        _print_below(lines)
    if result.contested:
        lines = table("item", ">entropy", "votes", title="Most contested items")
        for item in result.contested:
            counts = ", ".join(f"{plain(seen(name))} {count}" for name, count in item.counts.items())
            lines.add_row(plain(str(item.item)), f"{item.entropy:.3f}", counts)
        _print_below(lines)
    note(*(f"not shown: {reason}" for reason in result.notes))


def _print_below(lines: Any) -> None:
    console().print()
    console().print(lines)


def _print_agreement(result: Inspection) -> None:
    rows, by_class = result.estimates(), list(result.class_alpha.items())
    rows |= {f"alpha of '{plain(name)}'": agreement.alpha for name, agreement in by_class[:SHOWN]}
    if not rows:
        return
    title = f"Agreement (95 % intervals over {result.over}, of split-half over items)"
    lines = table("", ">value", ">95 % interval", title=title)
    for title, estimate in rows.items():
        interval = "" if estimate.low is None else f"{estimate.low:.3f} to {estimate.high:.3f}"
        lines.add_row(title, f"{estimate.value:.3f}" if estimate.defined else str(estimate), interval)
    _print_below(lines)
    if len(by_class) > SHOWN:
        console().print(f"alpha of {len(by_class) - SHOWN} more classes: see --json")


def _print_classes(result: Inspection) -> None:
    lines = table("class", ">votes", ">share", "", title="Classes")
    room = console().width - 24 - min(max(len(label.name) for label in result.classes), 20)
    widest = max((label.share for label in result.classes), default=1.0) or 1.0
    rows = folded((label.name, label.votes, label.share) for label in result.classes)
    for place, (name, votes, share) in enumerate(rows):
        folded_row = place == SHOWN and len(rows) < len(result.classes)
        bar = "" if folded_row else "█" * round(min(24, max(room, 4)) * share / widest)
        lines.add_row(plain(seen(name)), f"{votes:,}", f"{share:.1%}", f"[cyan]{bar}[/]")
    _print_below(lines)


def _print_compared(title: str, who: str, rows: Sequence[dict[str, Any]]) -> None:
    """Annotators or models, a row each: how far they agree with the others."""
    lines = table(who, ">judgements", ">agreement", ">95 % interval", ">by chance", title=title, no_wrap=True)
    for row in rows[:10]:
        cells = (f"{row['judgements']:,}", f"{row['agreement']:.3f}", f"{row['low']:.3f} to {row['high']:.3f}")
        lines.add_row(plain(str(row["annotator"])), *cells, f"{row['expected']:.3f}")
    _print_below(lines)


def _print_groups(title: str, groups: Sequence[Any]) -> None:
    """Groups of items or annotators, a row each; columns that no group knows are left out."""
    if not groups:
        return
    names = [field.name for field in fields(groups[0])]
    names = [name for name in names if any(getattr(group, name) is not None for group in groups)]
    titles = [name.replace("_", " ") for name in names]

    def cell(value: Any) -> str:
        if isinstance(value, int | float):
            return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"
        return "" if value is None else plain(str(value))

    rows = [[cell(getattr(group, name)) for name in names] for group in groups[:SHOWN]]
    lines = table("", *(f">{heading}" for heading in titles[1:]), title=plain(title))
    for row in rows:
        lines.add_row(*row)
    _print_below(lines)
    if len(groups) > SHOWN:
        console().print(f"{len(groups) - SHOWN} more groups: see --json")


def _print_original(before: OriginalAgreement, classes: Sequence[str]) -> None:
    left_out = f"; {before.left_out:,} without one are left out" if before.left_out else ""
    console().print(
        f"\nThe majority is the original label for {before.same:.1%} of {before.items:,} items "
        f"({before.low:.1%} to {before.high:.1%}){left_out}."
    )
    if len(classes) > SHOWN:
        return
    lines = table("", *(f">{plain(name)}" for name in classes), title="Original label (row) and majority (column)")
    for name, row in zip(classes, before.matrix.tolist(), strict=True):
        lines.add_row(plain(name), *(f"{number:,}" for number in row))
    console().print(lines)


def _print_correlations(correlations: Correlations) -> None:
    """How the measures of human uncertainty hang together: a pair a row, so that it fits any screen."""
    title = f"How measures of human uncertainty hang together (Spearman, {correlations.items:,} items)"
    lines = table("", "", ">correlation", title=title)
    for (i, j), estimate in correlations.estimates.items():
        lines.add_row(correlations.measures[i], correlations.measures[j], str(estimate))
    _print_below(lines)
