"""The tables of a report, and each as CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.evaluation.comparison.differences import MARKS as HOW_MARKED
from dissensus.evaluation.comparison.differences import shown_p
from dissensus.evaluation.comparison.scores import BEST, arrow
from dissensus.evaluation.comparison.strata import ALL
from dissensus.evaluation.comparison.tables import DASH, latex
from dissensus.evaluation.evaluated import ONLY_CORRECTED
from dissensus.evaluation.metrics.distances import tvd
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.pages import as_markdown, markdown
from dissensus.report.items import contested, in_words, largest_gaps, votes_in_words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dissensus.bootstrap import Estimate
    from dissensus.evaluation.comparison.differences import Difference
    from dissensus.evaluation.comparison.scores import Score
    from dissensus.evaluation.finite_panel.people_ruler import Worth
    from dissensus.report.subject import Subject
    from dissensus.votes.annotators import AnnotatorAgreement

MARKS: Final = f"{HOW_MARKED}. Below each mean ± sd over seeds is its 95 % interval."
"""How marks are read."""

LOOK_AGAIN: Final = 100
"""How many items are listed for another look, for a gap and for dividing people; of few items, a tenth."""

MAIN: Final = ("accuracy", "entropy_spearman", "entce")
"""What the first table shows beside the headline metric."""


@dataclass(frozen=True)
class Cell:
    """One cell: what is said, and below it in small what belongs to it."""

    text: str
    under: str = ""

    def __str__(self) -> str:
        return f"{self.text} {self.under}".strip()


@dataclass(frozen=True, kw_only=True)
class TableRow:
    """One row; its kind is `method`, `best`, `baseline` or `people`."""

    name: str
    cells: tuple[Cell, ...]
    kind: str = "method"


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table with a heading for each column.

    Attributes:
        slug: for file names.
        title: of the table.
        header: one for each column, that of the names first.
        rows: what it says.
        records: the same as numbers, for CSV.
        note: how it is read.
    """

    slug: str
    title: str
    header: tuple[str, ...]
    rows: tuple[TableRow, ...]
    records: tuple[Mapping[str, Any], ...]
    note: str = ""

    def to_csv(self) -> str:
        """The numbers, one record a line."""
        out = io.StringIO()
        names = list(dict.fromkeys(name for record in self.records for name in record))
        writer = csv.DictWriter(out, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.records)
        return out.getvalue()

    def to_markdown(self) -> str:
        """Title, table and note; nothing in it can become markup."""
        table = markdown(self.header, self._lines())
        return f"## {as_markdown(self.title)}\n\n{table}\n\n{as_markdown(self.note)}".rstrip() + "\n"

    def to_latex(self) -> str:
        r"""A `tabular` with rules of `booktabs` in a `table`."""
        notes = [self.note] if self.note else []
        return latex(self.header, self._lines(), caption=f"{self.title}.", label=self.slug, notes=notes)

    def _lines(self) -> list[list[str]]:
        return [[row.name, *map(str, row.cells)] for row in self.rows]


def comparison(
    subject: Subject, *, metrics: Sequence[str], slug: str, title: str, by: str = "agreement", stratum: str = ALL
) -> Table | None:
    """Systems and baselines by metrics on the items of a stratum, which belongs to an idea (`by`).

    The title is completed with the number of items; None where the stratum has none.
    """
    evaluation = subject.evaluation
    scores = evaluation.overall if stratum == ALL else evaluation.by_stratum(by)
    items = scores.get(evaluation.systems[0], metrics[0], stratum=stratum).items
    if not items:
        return None
    # Few votes move EntCE and TVD too far: corrected, or not at all.
    metrics = [name for name in metrics if name not in (evaluation.absent if stratum == ALL else ONLY_CORRECTED)]
    compared = _compared(subject, by=by, stratum=stratum)
    ruled = evaluation.heads if stratum == ALL else {}
    best = evaluation.closest() if len(evaluation.models) > 1 and stratum == ALL else None
    references = subject.references.values() if len(subject.systems) > 1 else ()
    rows, records = [], []
    by_system = {name: [scores.get(name, one, stratum=stratum) for one in metrics] for name in evaluation.systems}
    corrected = {score.metric for across in by_system.values() for score in across if _corrected(score) is not None}
    for name, across in by_system.items():
        cells = []
        for score in across:
            withheld = score.metric in corrected and _corrected(score) is None
            cells.append(Cell(DASH) if withheld else _cell(score, compared.get((name, score.metric))))
            cells += [_worth(worths.get(name))] if (worths := ruled.get(score.metric)) else []
        kind = "baseline" if name in evaluation.baselines else "best" if name == best else "method"
        called = f"{name} (reference)" if name in references else name
        rows.append(TableRow(name=called, cells=tuple(cells), kind=kind))
        records += [_record(subject, score, compared.get((name, score.metric))) for score in across]
    limits, header = [], []
    for score in across:
        # Against everybody a perfect model is off by nothing.
        perfect = Cell(_number(0.0, score.metric))
        limits.append(perfect if score.metric in corrected else estimated(best_achievable(score), score.metric))
        said = ", corrected" if score.metric in corrected else ", %" if score.metric == "accuracy" else ""
        header.append(f"{capital(METRICS[score.metric].short)}{said} {arrow(score.metric)}")
        if ruled.get(score.metric):
            limits.append(Cell(DASH))
            by = f", by {METRICS[score.metric].short}" if score.metric == evaluation.second else ""
            header.append(f"Worth in people{by} ↑")
    if any(best_achievable(score) is not None for score in across):
        rows.append(TableRow(name=BEST, cells=tuple(limits), kind="people"))
    left_out = [f"{METRICS[name].short} is left out: {why}." for name, why in evaluation.absent.items()]
    return Table(
        slug=slug,
        title=f"{title} ({items:,} items)",
        header=("method", *header),
        rows=tuple(rows),
        records=tuple(records),
        note=" ".join([MARKS, *(left_out if stratum == ALL else [])]),
    )


def _corrected(score: Score) -> Estimate | None:
    """What a cell shows in place of a score that few votes move too far; None where it shows the score."""
    return None if score.metric not in ONLY_CORRECTED or score.corrected is None else score.corrected.estimate


def _compared(subject: Subject, *, by: str, stratum: str) -> dict[tuple[str, str], Difference]:
    """By system and metric, each system and baseline minus the reference of its model."""
    differences: dict[tuple[str, str], Difference] = {}
    for model, names in subject.models.items():
        if rivals := [name for name in names if name != subject.references[model]]:
            rows = subject.evaluation.difference(subject.references[model], by=by, stratum=stratum, only=rivals).rows
            differences |= {(row.system, row.metric): row for row in rows}
    return differences


def comparisons(subject: Subject) -> list[Table]:
    """The table on all items, the other metrics, every stratum that has items, and the differences with their test."""
    evaluation = subject.evaluation
    first = list(dict.fromkeys([*evaluation.heads, *(name for name in MAIN if name in evaluation.metrics)]))
    others = [name for name in evaluation.metrics if name not in first]
    tables = [comparison(subject, metrics=first, slug="comparison-all", title="All items")]
    if others:
        tables.append(comparison(subject, metrics=others, slug="comparison-metrics", title="Other metrics"))
    for idea, scores in evaluation.strata.items():
        for stratum in dict.fromkeys(row.stratum for row in scores.rows if row.stratum != ALL):
            slug, title = f"comparison-{idea}-{len(tables)}", f"{capital(stratum)} items"
            tables.append(
                comparison(subject, metrics=evaluation.metrics, slug=slug, title=title, by=idea, stratum=stratum)
            )
    tables.append(_tested(subject))
    return [table for table in tables if table is not None]


def _tested(subject: Subject) -> Table | None:
    """Every difference to the reference on all items, with its interval, its mark and, on the headline, its test."""
    differences = list(_compared(subject, by="agreement", stratum=ALL).values())
    if not differences:
        return None
    names = ("system", "reference", "metric", "stratum", "mark", "seeds", "paired", "sd", "seeds_closer", "p", "p_holm")
    rows = tuple(
        TableRow(
            name=f"{row.system}, {METRICS[row.metric].short}",
            cells=(
                Cell(row.reference),
                Cell(difference_cell(row).text),
                Cell(signed_interval(row.value) or DASH),
                Cell(DASH if row.seeds_closer is None else f"{row.seeds_closer} of {row.seeds}"),
                Cell(shown_p(row.p)),
                Cell(shown_p(row.p_holm)),
            ),
        )
        for row in differences
    )
    return Table(
        slug="differences",
        title="Differences to the reference",
        header=("method, metric", "minus", "difference", "95 % interval", "closer on seeds", "p", "p (Holm)"),
        rows=rows,
        records=tuple(
            {"over": row.over, **{name: getattr(row, name) for name in names}}
            | ends(row.value, "difference", "low", "high")
            for row in differences
        ),
        note=MARKS,
    )


def best_achievable(score: Score) -> Estimate | None:
    """What a perfect model would score; None where that is not known."""
    return None if score.best_achievable is None else score.best_achievable.estimate


def _worth(worth: Worth | None) -> Cell:
    if worth is None or worth.estimate is None:
        return Cell(DASH)
    value, bracket, interval = worth.short.partition(" [")
    return Cell(value, f"{bracket.strip()}{interval}")


def _cell(score: Score, difference: Difference | None) -> Cell:
    if score.value is None:
        return Cell(DASH)
    known = _corrected(score)
    if known is not None:
        return estimated(known, score.metric)
    mark = f" {difference.mark}" if difference is not None and difference.mark else ""
    spread = "" if score.sd is None else f" ± {_number(score.sd, score.metric)}"
    under = estimated(score.value, score.metric).under
    return Cell(f"{_number(score.value.value, score.metric)}{spread}{mark}", under)


def _record(subject: Subject, score: Score, difference: Difference | None) -> dict[str, Any]:
    worth = subject.evaluation.heads.get(score.metric, {}).get(score.system) if score.stratum == ALL else None
    best, corrected = best_achievable(score), None if score.corrected is None else score.corrected.estimate
    return (
        {
            "stratum": score.stratum,
            "items": score.items,
            "system": score.system,
            "baseline": score.system in subject.evaluation.baselines,
            "metric": score.metric,
            "unit": METRICS[score.metric].unit,
            "seeds": score.seeds,
            "mean": None,
            "sd": score.sd,
        }
        | ends(score.value, "mean", "low", "high")
        | ends(corrected, "corrected", "corrected_low", "corrected_high")
        | ends(None if worth is None else worth.estimate, "worth_in_people", "worth_low", "worth_high")
        | {"best_achievable": None if best is None else best.value}
        | {"reference": None if difference is None else difference.reference}
        | ends(None if difference is None else difference.value, "difference", "difference_low", "difference_high")
        | {name: None if difference is None else getattr(difference, name) for name in ("mark", "p", "p_holm")}
    )


def items_to_look_at(subject: Subject, system: str) -> Table:
    """Items worth another look: those on which people and a system are furthest apart, and those that divide people."""
    people = subject.people
    most = min(LOOK_AGAIN, -(-len(people) // 10))
    furthest, _ = largest_gaps(people, subject.mean(system), most=most)
    why = dict.fromkeys(furthest.tolist(), "gap")
    for item in contested(people, most=most).tolist():
        why[item] = "gap and contested" if item in why else "contested"
    items = np.array(list(why), dtype=np.int64)
    model = subject.mean(system)[items]
    gap = np.asarray(tvd(people.probabilities[items], model))
    records = [
        {
            "item": str(people.items[item]),
            **({} if subject.texts is people.items else {"text": str(subject.texts[item])}),
            "why": why[item],
            "judgements": int(people.panel_size[item]),
            "votes": votes_in_words(people.counts[item].tolist(), people.classes),
            "model_says": in_words(model[place].tolist(), people.classes),
            "gap": round(float(gap[place]), 4),
            "entropy": round(float(people.entropy[item]), 4),
        }
        for place, item in enumerate(items.tolist())
    ]
    names = records[0] if records else ()
    return table_of(
        "items-to-look-at",
        "Items worth another look",
        records,
        {name: lambda record, name=name: str(record[name]) for name in names},  # type: ignore[misc]
        note=f"{len(records):,} items are worth another look: people and {system} are far apart, or people divided.",
    )


def class_table(subject: Subject) -> Table:
    """Each class: its votes among the evaluated items, and the items of which it is the majority."""
    people = subject.people
    votes = people.counts.sum(axis=0)
    majority = people.majority()
    items = np.bincount(majority.label, minlength=len(people.classes))
    return table_of(
        "classes",
        "Classes among the evaluated items",
        [
            {"class": name, "votes": int(v), "share": float(v / max(votes.sum(), 1)), "items": int(n)}
            for name, v, n in zip(people.classes, votes, items, strict=True)
        ],
        {
            "class": lambda record: record["class"],
            "votes": lambda record: f"{record['votes']:,}",
            "share of votes, %": lambda record: f"{100 * record['share']:.1f}",
            "items of which it is the majority": lambda record: f"{record['items']:,}",
        },
        note="Where the majority is tied, the first of the tied classes counts." if majority.tied.any() else "",
    )


def annotators(panel: AnnotatorAgreement, *, shown: int) -> Table:
    """Each annotator beside the rest, lowest agreement first; the CSV has all, the table the first `shown`."""
    records = panel.lowest_first().to_rows()
    left = len(records) - shown
    return table_of(
        "annotators",
        "Agreement of each annotator with the rest",
        records,
        {
            "annotator": lambda record: str(record["annotator"]),
            "judgements": lambda record: f"{record['judgements']:,}",
            "agreement with the rest": lambda record: interval_cell(record, "agreement"),
            "expected by chance": lambda record: DASH if record["expected"] is None else f"{record['expected']:.3f}",
        },
        most=shown,
        note=f"The {shown} of lowest agreement; {left:,} more are in the CSV file." if left > 0 else "",
    )


def table_of(
    slug: str,
    title: str,
    records: Sequence[Mapping[str, Any]],
    columns: Mapping[str, Callable[[Mapping[str, Any]], Cell | str]],
    *,
    most: int | None = None,
    note: str = "",
) -> Table:
    """A table of records, the first `most` of which are shown: by heading, what a cell says of a record."""
    rows = []
    for record in records[:most]:
        name, *cells = (column(record) for column in columns.values())
        shown = tuple(cell if isinstance(cell, Cell) else Cell(cell) for cell in cells)
        rows.append(TableRow(name=str(name), cells=shown))
    return Table(slug=slug, title=title, header=tuple(columns), rows=tuple(rows), records=tuple(records), note=note)


def ends(estimate: Estimate | None, value: str, low: str, high: str) -> dict[str, float | None]:
    """An estimate as three numbers of a record, by these names."""
    if estimate is None:
        return dict.fromkeys((value, low, high))
    return {value: estimate.value, low: estimate.low, high: estimate.high}


def interval_cell(record: Mapping[str, Any], name: str) -> Cell:
    """A number of a record to three decimals, and below it the interval from `low` to `high`."""
    low, high = record["low"], record["high"]
    under = "" if low is None or high is None else f"[{low:.3f}, {high:.3f}]"
    return Cell(DASH if record[name] is None else f"{record[name]:.3f}", under)


def difference_cell(row: Difference) -> Cell:
    """A difference with its mark, and its interval."""
    return Cell(f"{signed(row.value.value)}{row.mark and f' {row.mark}'}", signed_interval(row.value))


def estimated(estimate: Estimate | None, metric: str) -> Cell:
    """A value with its interval below it, in the digits of its metric."""
    if estimate is None:
        return Cell(DASH)
    if estimate.low is None or estimate.high is None:
        return Cell(_number(estimate.value, metric))
    return Cell(_number(estimate.value, metric), f"[{_number(estimate.low, metric)}, {_number(estimate.high, metric)}]")


def signed(number: float) -> str:
    """To three decimals, with a true minus sign."""
    return f"{number:+.3f}".replace("-", "\N{MINUS SIGN}")


def signed_interval(value: Estimate) -> str:
    """The interval of a difference in brackets; nothing where there is none."""
    return "" if value.low is None or value.high is None else f"[{signed(value.low)}, {signed(value.high)}]"


def capital(text: str) -> str:
    """With a capital first letter, and nothing else changed."""
    return f"{text[:1].upper()}{text[1:]}"


def _number(number: float | None, metric: str) -> str:
    if number is None:
        return DASH
    text = f"{100 * number:.1f}" if metric == "accuracy" else f"{number:.3f}"
    return text.replace("-", "\N{MINUS SIGN}")
