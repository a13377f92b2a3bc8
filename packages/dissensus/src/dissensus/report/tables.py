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
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.pages import as_markdown, markdown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.bootstrap import Estimate
    from dissensus.evaluation.comparison.differences import Difference
    from dissensus.evaluation.comparison.scores import Score
    from dissensus.report.subject import Subject
    from dissensus.votes.annotators import AnnotatorAgreement

MARKS: Final = f"{HOW_MARKED}. Below each mean ± sd over seeds is its 95 % interval."
"""How marks are read."""

MAIN: Final = ("accuracy", "entropy_spearman", "abs_entce")
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
        body = [[as_markdown(cell) for cell in line] for line in self._lines()]
        table = markdown([as_markdown(each) for each in self.header], body)
        return f"## {as_markdown(self.title)}\n\n{table}\n\n{as_markdown(self.note)}".rstrip() + "\n"

    def to_latex(self) -> str:
        r"""A `tabular` with rules of `booktabs` in a `table`."""
        return latex(self.header, self._lines(), caption=f"{self.title}. {self.note}")

    def _lines(self) -> list[list[str]]:
        return [[row.name, *map(str, row.cells)] for row in self.rows]


def comparison(
    subject: Subject, *, metrics: Sequence[str], slug: str, title: str, by: str = "agreement", stratum: str = ALL
) -> Table | None:
    """Systems and baselines by metrics on the items of a stratum; None where it has no items.

    Args:
        subject: of the page.
        metrics: the columns.
        slug: of the table.
        title: of the table, without the number of items.
        by: the idea that the stratum belongs to.
        stratum: the items.
    """
    evaluation = subject.evaluation
    scores = evaluation.overall if stratum == ALL else evaluation.by_stratum(by)
    items = scores.get(evaluation.systems[0], metrics[0], stratum=stratum).items
    if not items:
        return None
    compared = _compared(subject, by=by, stratum=stratum)
    ruled = stratum == ALL and metrics[0] == evaluation.headline and bool(evaluation.worth)
    best = evaluation.closest() if len(evaluation.models) > 1 and stratum == ALL else None
    rows, records = [], []
    for name in evaluation.systems:
        across = [scores.get(name, metric, stratum=stratum) for metric in metrics]
        cells = [_cell(score, compared.get((name, score.metric))) for score in across]
        if ruled:
            cells.insert(1, _worth(subject, name))
        kind = "baseline" if name in evaluation.baselines else "best" if name == best else "method"
        rows.append(TableRow(name=_named(subject, name), cells=tuple(cells), kind=kind))
        records += [_record(subject, score, compared.get((name, score.metric))) for score in across]
    cells = [estimated(_best(score), score.metric) for score in across]
    if any(cell.text != DASH for cell in cells):
        if ruled:
            cells.insert(1, Cell(DASH))
        rows.append(TableRow(name=BEST, cells=tuple(cells), kind="people"))
    header = [f"{capital(METRICS[name].short)}{_percent(name)} {arrow(name)}" for name in metrics]
    if ruled:
        header.insert(1, "Worth in people ↑")
    return Table(
        slug=slug,
        title=f"{title} ({items:,} items)",
        header=("method", *header),
        rows=tuple(rows),
        records=tuple(records),
        note=MARKS,
    )


def _compared(subject: Subject, *, by: str, stratum: str) -> dict[tuple[str, str], Difference]:
    """By system and metric, each system and baseline minus the reference of its model."""
    found: dict[tuple[str, str], Difference] = {}
    for model, names in subject.models.items():
        rivals = [name for name in names if name != subject.references[model]]
        if rivals:
            rows = subject.evaluation.difference(subject.references[model], by=by, stratum=stratum, only=rivals).rows
            found |= {(row.system, row.metric): row for row in rows}
    return found


def comparisons(subject: Subject) -> list[Table]:
    """The table on all items, the other metrics, every stratum that has items, and the differences with their test."""
    evaluation = subject.evaluation
    beside = [name for name in MAIN if name in evaluation.metrics and name != evaluation.headline]
    first = [evaluation.headline, *beside]
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
    found = _compared(subject, by="agreement", stratum=ALL)
    if not found:
        return None
    rows = tuple(
        TableRow(
            name=f"{row.system}, {METRICS[row.metric].short}",
            cells=(
                Cell(row.reference),
                Cell(f"{signed(row.value.value)}{row.mark and f' {row.mark}'}"),
                Cell(signed_interval(row.value) or DASH),
                Cell(DASH if row.seeds_closer is None else f"{row.seeds_closer} of {row.seeds}"),
                Cell(shown_p(row.p)),
                Cell(shown_p(row.p_holm)),
            ),
        )
        for row in found.values()
    )
    return Table(
        slug="differences",
        title="Differences to the reference",
        header=("method, metric", "minus", "difference", "95 % interval", "closer on seeds", "p", "p (Holm)"),
        rows=rows,
        records=tuple({"over": row.over, **_numbers(row)} for row in found.values()),
        note=MARKS,
    )


def _numbers(row: Difference) -> dict[str, Any]:
    names = ("system", "reference", "metric", "stratum", "mark", "seeds", "paired", "sd", "seeds_closer", "p", "p_holm")
    ends = {"difference": row.value.value, "low": row.value.low, "high": row.value.high}
    return {name: getattr(row, name) for name in names} | ends


def _best(score: Score) -> Estimate | None:
    return None if score.best_achievable is None else score.best_achievable.estimate


def _worth(subject: Subject, name: str) -> Cell:
    found = subject.evaluation.worth.get(name)
    if found is None or found.estimate is None:
        return Cell(DASH)
    value, _, ends = str(found).partition(" people")
    return Cell(value.replace("fewer than", "<").replace("more than", ">"), ends.strip())


def _named(subject: Subject, name: str) -> str:
    compared = len(subject.systems) > 1 and name in subject.references.values()
    return f"{name} (reference)" if compared else name


def _cell(score: Score, difference: Difference | None) -> Cell:
    if score.value is None:
        return Cell(DASH)
    mark = f" {difference.mark}" if difference is not None and difference.mark else ""
    spread = "" if score.sd is None else f" ± {_number(score.sd, score.metric)}"
    under = estimated(score.value, score.metric).under
    return Cell(f"{_number(score.value.value, score.metric)}{spread}{mark}", under)


def _record(subject: Subject, score: Score, difference: Difference | None) -> dict[str, Any]:
    value, best = score.value, _best(score)
    worth = subject.evaluation.worth.get(score.system) if score.stratum == ALL else None
    people = None if worth is None or score.metric != subject.evaluation.headline else worth.estimate
    return {
        "stratum": score.stratum,
        "items": score.items,
        "system": score.system,
        "baseline": score.system in subject.evaluation.baselines,
        "metric": score.metric,
        "unit": METRICS[score.metric].unit,
        "seeds": score.seeds,
        "mean": None if value is None else value.value,
        "sd": score.sd,
        "low": None if value is None else value.low,
        "high": None if value is None else value.high,
        "worth_in_people": None if people is None else people.value,
        "worth_low": None if people is None else people.low,
        "worth_high": None if people is None else people.high,
        "best_achievable": None if best is None else best.value,
        "reference": None if difference is None else difference.reference,
        "difference": None if difference is None else difference.value.value,
        "difference_low": None if difference is None else difference.value.low,
        "difference_high": None if difference is None else difference.value.high,
        "mark": None if difference is None else difference.mark,
        "p": None if difference is None else difference.p,
        "p_holm": None if difference is None else difference.p_holm,
    }


def class_table(subject: Subject) -> Table:
    """Each class: its votes among the evaluated items, and the items of which it is the majority."""
    people = subject.people
    votes = people.counts.sum(axis=0)
    majority = people.majority()
    items = np.bincount(majority.label, minlength=len(people.classes))
    records: list[dict[str, Any]] = [
        {"class": name, "votes": int(v), "share": float(v / max(votes.sum(), 1)), "items": int(n)}
        for name, v, n in zip(people.classes, votes, items, strict=True)
    ]
    return Table(
        slug="classes",
        title="Classes among the evaluated items",
        header=("class", "votes", "share of votes, %", "items of which it is the majority"),
        rows=tuple(
            TableRow(
                name=record["class"],
                cells=tuple(
                    map(Cell, (f"{record['votes']:,}", f"{100 * record['share']:.1f}", f"{record['items']:,}"))
                ),
            )
            for record in records
        ),
        records=tuple(records),
        note="Where the majority is tied, the first of the tied classes counts." if majority.tied.any() else "",
    )


def annotators(panel: AnnotatorAgreement, *, shown: int) -> Table:
    """Each annotator beside the rest, lowest agreement first; the CSV has all, the table the first `shown`."""
    records = panel.lowest_first().to_rows()
    rows = [
        TableRow(
            name=str(record["annotator"]),
            cells=(
                Cell(f"{record['judgements']:,}"),
                Cell(_share(record["agreement"]), _range(record["low"], record["high"])),
                Cell(_share(record["expected"])),
            ),
        )
        for record in records[:shown]
    ]
    left = len(records) - len(rows)
    return Table(
        slug="annotators",
        title="Agreement of each annotator with the rest",
        header=("annotator", "judgements", "agreement with the rest", "expected by chance"),
        rows=tuple(rows),
        records=tuple(records),
        note=f"The {len(rows)} of lowest agreement; {left:,} more are in the CSV file." if left else "",
    )


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


def _percent(metric: str) -> str:
    return ", %" if metric == "accuracy" else ""


def _number(number: float | None, metric: str) -> str:
    if number is None:
        return DASH
    text = f"{100 * number:.1f}" if metric == "accuracy" else f"{number:.3f}"
    return text.replace("-", "\N{MINUS SIGN}")


def _share(number: float | None) -> str:
    return DASH if number is None else f"{number:.3f}"


def _range(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"[{low:.3f}, {high:.3f}]"
