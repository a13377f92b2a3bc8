"""The tables of a report, and each as CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dissensus.evaluation.comparison.differences import MARKS as HOW_MARKED
from dissensus.evaluation.comparison.scores import BEST
from dissensus.evaluation.comparison.strata import ALL
from dissensus.evaluation.comparison.tables import DASH, latex, markdown
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.studies.scored import AGREEMENT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.bootstrap import Estimate
    from dissensus.evaluation.comparison.scores import Score
    from dissensus.studies.scored import ScoredStudy
    from dissensus.votes.annotators import AnnotatorAgreement

APART: Final = "†"
"""The mark of a difference whose interval excludes zero, where no side is closer to people."""

MARKS: Final = f"{HOW_MARKED}. Below each mean ± sd over seeds is its 95 % interval."
"""How marks are read."""

COLUMNS: Final = {
    "kl": "KL ↓",
    "soft_nll": "Soft NLL ↓",
    "brier": "Brier ↓",
    "abs_entce": "Entropy error ↓",
    "entropy_spearman": "Entropy correlation (Spearman) ↑",
    "accuracy": "Accuracy, % ↑",
}
"""Short titles of the metrics, with an arrow that points to people."""


@dataclass(frozen=True)
class Cell:
    """One cell: what is said, and below it in small what belongs to it."""

    text: str
    under: str = ""

    def __str__(self) -> str:
        return f"{self.text} {self.under}".strip()


@dataclass(frozen=True, kw_only=True)
class Row:
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
    rows: tuple[Row, ...]
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
        body = [[_as_markdown(cell) for cell in line] for line in self._lines()]
        table = markdown([_as_markdown(each) for each in self.header], body)
        return f"## {_as_markdown(self.title)}\n\n{table}\n\n{_as_markdown(self.note)}".rstrip() + "\n"

    def to_latex(self) -> str:
        r"""A `tabular` with rules of `booktabs` in a `table`."""
        return latex(self.header, self._lines(), caption=f"{self.title}. {self.note}")

    def _lines(self) -> list[list[str]]:
        return [[row.name, *map(str, row.cells)] for row in self.rows]


def comparison(results: ScoredStudy, *, stratum: str = ALL) -> Table | None:
    """Systems and baselines by metrics on the items of a stratum; None where it has no items."""
    scores = results.evaluation.by_stratum(AGREEMENT)
    metrics = results.evaluation.metrics
    first = scores.get(results.evaluation.systems[0], metrics[0], stratum=stratum)
    if not first.items:
        return None
    values = {
        name: score.value.value
        for name in results.systems
        if (score := scores.get(name, "kl", stratum=stratum)).value is not None
    }
    best = min(values, key=values.__getitem__) if len(values) > 1 else None
    rows, records = [], []
    for name in results.evaluation.systems:
        across = [scores.get(name, metric, stratum=stratum) for metric in metrics]
        kind = _kind(results, name, best)
        rows.append(
            Row(name=_named(results, name), cells=tuple(_cell(results, score, stratum) for score in across), kind=kind)
        )
        records += [_record(results, score, stratum) for score in across]
    best_cells = tuple(estimated(_best(across[place]), metric) for place, metric in enumerate(metrics))
    if any(cell.text != DASH for cell in best_cells):
        rows.append(Row(name=BEST, cells=best_cells, kind="people"))
    return Table(
        slug=f"comparison-{stratum}",
        title=f"{'All' if stratum == ALL else stratum.capitalize()} items ({first.items:,})",
        header=("method", *(COLUMNS.get(metric, METRICS[metric].title) for metric in metrics)),
        rows=tuple(rows),
        records=tuple(records),
        note=MARKS,
    )


def _best(score: Score) -> Estimate | None:
    return None if score.best_achievable is None else score.best_achievable.estimate


def annotators(panel: AnnotatorAgreement, *, shown: int) -> Table:
    """Each annotator beside the rest, lowest agreement first; the CSV has all, the table the first `shown`."""
    records = panel.lowest_first().to_rows()
    rows = [
        Row(
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


def _kind(results: ScoredStudy, name: str, best: str | None) -> str:
    if name in results.evaluation.baselines:
        return "baseline"
    if name == best:
        return "best"
    return "method"


def _named(results: ScoredStudy, name: str) -> str:
    compared = len(results.systems) > 1 and name in results.references.values()
    return f"{name} (reference)" if compared else name


def _cell(results: ScoredStudy, score: Score, stratum: str) -> Cell:
    if score.value is None:
        return Cell(DASH)
    difference = results.differences.get((stratum, score.system, score.metric))
    marks = "" if difference is None else difference.mark
    spread = "" if score.sd is None else f" ± {_number(score.sd, score.metric)}"
    under = estimated(score.value, score.metric).under
    return Cell(f"{_number(score.value.value, score.metric)}{spread}{f' {marks}' if marks else ''}", under)


def _record(results: ScoredStudy, score: Score, stratum: str) -> dict[str, Any]:
    difference = results.differences.get((stratum, score.system, score.metric))
    value = score.value
    best = _best(score)
    return {
        "stratum": stratum,
        "items": score.items,
        "system": score.system,
        "baseline": score.system in results.evaluation.baselines,
        "metric": score.metric,
        "unit": METRICS[score.metric].unit,
        "seeds": score.seeds,
        "mean": None if value is None else value.value,
        "sd": score.sd,
        "low": None if value is None else value.low,
        "high": None if value is None else value.high,
        "best_achievable": None if best is None else best.value,
        "reference": None if difference is None else difference.reference,
        "difference": None if difference is None else difference.value.value,
        "difference_low": None if difference is None else difference.value.low,
        "difference_high": None if difference is None else difference.value.high,
        "p": None if difference is None else difference.p,
        "p_holm": None if difference is None else difference.p_holm,
    }


def estimated(estimate: Estimate | None, metric: str) -> Cell:
    """A value with its interval below it, in the digits of its metric."""
    if estimate is None:
        return Cell(DASH)
    if estimate.low is None or estimate.high is None:
        return Cell(_number(estimate.value, metric))
    return Cell(_number(estimate.value, metric), f"[{_number(estimate.low, metric)}, {_number(estimate.high, metric)}]")


def _number(number: float | None, metric: str) -> str:
    if number is None:
        return DASH
    text = f"{100 * number:.1f}" if metric == "accuracy" else f"{number:.3f}"
    return text.replace("-", "\N{MINUS SIGN}")


def _share(number: float | None) -> str:
    return DASH if number is None else f"{number:.3f}"


def _range(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"[{low:.3f}, {high:.3f}]"


def _as_markdown(text: str) -> str:
    escaped = " ".join(text.split()).replace("\\", "\\\\").replace("&", "&amp;").replace("<", "&lt;")
    for mark in "`*_[]":
        escaped = escaped.replace(mark, f"\\{mark}")
    return escaped


def all_tables(results: ScoredStudy) -> Sequence[Table]:
    """The comparison on all items and on every stratum that has any."""
    strata = dict.fromkeys(row.stratum for row in results.evaluation.by_stratum(AGREEMENT).rows)
    return [table for stratum in strata if (table := comparison(results, stratum=stratum)) is not None]
