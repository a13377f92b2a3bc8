"""`write_report`: one page, and its figures and tables as files beside it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import vl_convert

from dissensus.errors import InputError
from dissensus.evaluation.arguments import people_in, systems_in
from dissensus.evaluation.comparison.resampling import ENOUGH
from dissensus.evaluation.evaluating import evaluate
from dissensus.evaluation.metrics.registry import reported
from dissensus.report import figures
from dissensus.report.chapters import Added
from dissensus.report.citation import bibliography
from dissensus.report.disagreeing import who_disagrees
from dissensus.report.dots import dots
from dissensus.report.drawing import COLUMN, as_pdf, drawn
from dissensus.report.gains import differences_by_stratum, gains, scores_by_stratum
from dissensus.report.glossary import glossary
from dissensus.report.items import cards, contested, largest_gaps
from dissensus.report.page import Page, render
from dissensus.report.seeds import seeds
from dissensus.report.subject import Subject, files_subject
from dissensus.report.tables import annotators, class_table, comparisons, items_to_look_at
from dissensus.report.together import beside_people
from dissensus.report.words import answer
from dissensus.votes.annotators import annotator_agreement
from dissensus.whole_file import whole_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.labels.distribution import LabelDistribution
    from dissensus.votes.table import Votes

ITEMS: Final = 6
"""How many contested items the page shows, and how many of the largest gaps."""

ANNOTATORS: Final = 30


class HasSubject(Protocol):
    """What can say by itself what a page about it shows: a scored study."""

    def subject(self) -> Subject: ...


def write_report(
    about: Subject | HasSubject | Votes | LabelDistribution,
    path: str | Path = "report.html",
    *,
    predictions: Any | None = None,
    classes: Sequence[str] | None = None,
    texts: Sequence[str] | None = None,
    seed: int = 0,
) -> Path:
    """Write a report: one HTML page that needs no network, and beside it a folder `NAME-files`.

    Args:
        about: a scored study; or votes or label distributions, with predictions for their items; or what a page is
            about (`subject.files_subject`).
        path: of the page, which ends in .html.
        predictions: of votes or label distributions: probabilities, `Predictions`, or several systems by name, as
            `dissensus.evaluate` takes them.
        classes: the names of the predictions' classes in order, where these are arrays.
        texts: (items,) what to show of each item; None shows its name.
        seed: of resamples, and of which points are shown where there are too many.

    Returns:
        The path of the page.
    """
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm") or path.is_dir():
        raise InputError(f"{path}: a report is a page; give the name of a .html file")
    subject = _subject(about, predictions, classes, texts, seed=seed)
    page = make_page(subject, files=f"{path.stem}-files", seed=seed)
    shown = [(figure, section.data[figure.data]) for section in page.sections for figure in section.figures]
    drawings = {figure.slug: drawn(figure, rows) for figure, rows in shown}
    columns = {figure.slug: drawn(figure, rows, inches=COLUMN) for figure, rows in shown}
    text = render(page, drawings, columns)
    folder = path.with_name(page.files)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for table in page.tables:
            for ending, content in (("csv", table.to_csv()), ("md", table.to_markdown()), ("tex", table.to_latex())):
                (folder / f"{table.slug}.{ending}").write_text(content, encoding="utf-8")
        for slug, svg in drawings.items():
            (folder / f"{slug}.svg").write_text(svg, encoding="utf-8")
            (folder / f"{slug}.png").write_bytes(vl_convert.svg_to_png(svg, scale=2))
            (folder / f"{slug}.pdf").write_bytes(as_pdf(svg))
            (folder / f"{slug}-column.pdf").write_bytes(as_pdf(columns[slug], most=COLUMN))
    except OSError as error:
        raise InputError(f"{path}: the report cannot be written ({error.strerror}); choose another place") from error
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")
    return path


report = write_report
"""What `dissensus` calls it."""


def _subject(
    about: Any, predictions: Any | None, classes: Sequence[str] | None, texts: Sequence[str] | None, *, seed: int
) -> Subject:
    if isinstance(about, Subject):
        return about
    if hasattr(about, "subject"):
        return about.subject()  # type: ignore[no-any-return]
    if predictions is None:
        raise InputError(
            f"report: about {type(about).__name__} without predictions there is no page; give a scored study, or votes "
            "or label distributions with predictions="
        )
    people, votes = people_in(about)
    people, systems, _ = systems_in(predictions, people, classes=classes)
    evaluation = evaluate(people, systems, votes=votes, metrics=reported(ordered=people.ordered), seed=seed)
    if texts is not None and len(texts) != len(people):
        raise InputError(f"report: {len(texts):,} texts for {len(people):,} items; give one for each")
    shown = None if texts is None else np.array(list(texts), dtype=np.dtypes.StringDType())
    return files_subject(evaluation, people, systems, votes=votes, title="Report", texts=shown)


def make_page(subject: Subject, *, files: str, seed: int) -> Page:
    """Everything that a page shows."""
    evaluation = subject.evaluation
    # Intervals take the variance of the resamples alone, which ENOUGH of them tell.
    resamples = min(max(evaluation.resamples, 2), ENOUGH)
    gained = gains(subject, differences_by_stratum(subject, resamples=resamples, seed=seed))
    best = evaluation.closest()
    divided = contested(subject.people, most=ITEMS)
    furthest, gap = largest_gaps(subject.people, subject.mean(best), most=ITEMS)
    votes = subject.votes
    known = votes is not None and votes.annotators is not None and not are_columns(votes)
    who = annotators(annotator_agreement(votes), shown=ANNOTATORS) if votes is not None and known else None
    added = Added() if subject.adds is None else subject.adds(subject, resamples, seed)
    beside = beside_people(subject, resamples=resamples, seed=seed)
    if beside is not None:
        added = replace(added, chapters=(beside, *added.chapters))
    return Page(
        subject=subject,
        answer=answer(subject),
        dots=dots(
            evaluation, references={name: subject.references[subject.model_of(name)] for name in subject.systems}
        ),
        contested=cards(
            subject, divided, remarks=[f"entropy {nats:.2f} nats" for nats in subject.people.entropy[divided].tolist()]
        ),
        gaps=cards(subject, furthest, remarks=[f"gap {distance:.2f}" for distance in gap.tolist()]),
        gaps_of=best,
        look_again=items_to_look_at(subject, best),
        gains=None if gained is None else gained[0],
        by_stratum=scores_by_stratum(subject, best, resamples=resamples, seed=seed) if gained is None else gained[1],
        entropies=figures.entropies(subject, only=[best]),
        calibration=figures.calibration(subject),
        seeds=seeds(subject),
        comparisons=[*comparisons(subject), *added.tables],
        data=data_facts(subject),
        classes=class_table(subject),
        annotators=who,
        panel=None if who is None else figures.panel(who, shown=ANNOTATORS),
        disagreeing=None if who is None else who_disagrees(subject, seed=seed),
        glossary=glossary(subject, added),
        bibliography=bibliography(subject, added),
        added=added,
        files=files,
    )


def are_columns(votes: Votes) -> bool:
    """Whether annotators are only the numbered columns of a table: nothing says that a column is one person."""
    names = [] if votes.annotators is None else votes.annotators.names.tolist()
    return bool(names) and all(re.fullmatch(r"(?i)(column|col|vote|answer)[ _]?\d+", str(name)) for name in names)


def data_facts(subject: Subject) -> list[tuple[str, str]]:
    """What is known of the votes, and of those who cast them."""
    people, votes = subject.people, subject.votes
    size = people.panel_size
    low, high = size.min(), size.max()
    spread = f"{low:,}" if low == high else f"{np.median(size):g} in the median, from {low:,} to {high:,}"
    facts = [
        ("evaluated", subject.where),
        ("judgements per item", spread),
        ("unanimous items", f"{int(people.unanimous.sum()):,} of {len(people):,} ({people.unanimous.mean():.0%})"),
        ("human entropy", f"{people.entropy.mean():.3f} nats in the mean; {np.log(len(people.classes)):.3f} at most"),
        ("classes", f"{len(people.classes)}, {'a scale' if people.ordered else 'in no order'}"),
    ]
    if votes is None:
        return facts
    facts.append(("all votes", f"{len(votes):,} votes on {len(votes.items):,} items"))
    if votes.annotators is None:
        who = "not known: the votes are anonymous"
    elif are_columns(votes):
        who = (
            f"not known: the votes stand in {len(votes.annotators)} numbered columns, and nothing says that a column "
            "is one person, so no column is ranked"
        )
    else:
        who = f"{len(votes.annotators):,}"
    return [*facts, ("annotators", who)]
