"""Scores with what is needed to read them, and tables of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dissensus.errors import InputError
from dissensus.evaluation.comparison.intervals import said_over
from dissensus.evaluation.comparison.strata import ALL
from dissensus.evaluation.comparison.tables import DASH, TextTable, shown
from dissensus.evaluation.metrics.registry import METRICS

if TYPE_CHECKING:
    from dissensus.bootstrap import Estimate
    from dissensus.evaluation.finite_panel.finding import Finding

BEST: Final = "best achievable"
"""The row of what a perfect model would score against so few votes."""


@dataclass(frozen=True, kw_only=True)
class Score:
    """One number of a table.

    Attributes:
        system: name of the model or baseline.
        metric: name.
        stratum: name.
        items: how many items the stratum has.
        seeds: over how many seeds the value is a mean; 0 where nothing about the system was drawn.
        value: mean over items and seeds with its interval; None where the stratum is empty or the metric is undefined
            on it, and `notes` say which.
        over: what the interval is over, such as "items, seeds and annotators".
        sd: standard deviation over seeds, with n - 1; None for one seed.
        best_achievable: what a perfect model would score against so few votes, or why that is not known; None where it
            was not asked.
        corrected: the value that votes without end would give, or why there is no such estimate; None likewise.
        variance: of the soft NLL, the parts of the value's variance that other items, other seeds (where there are
            several) and other annotators (where the same judged many items) would bring; None for other metrics.
        notes: what else a reader must know.
    """

    system: str
    metric: str
    stratum: str
    items: int
    seeds: int
    value: Estimate | None
    over: str
    sd: float | None = None
    best_achievable: Finding | None = None
    corrected: Finding | None = None
    variance: dict[str, float] | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class Scores(TextTable):
    """A table: systems by metrics, in one stratum or several; the rows are scores, metric by metric."""

    rows: tuple[Score, ...]

    def get(self, system: str, metric: str, *, stratum: str = ALL) -> Score:
        """The score of a system on a metric."""
        for row in self.rows:
            if (row.system, row.metric, row.stratum) == (system, metric, stratum):
                return row
        raise InputError(f"scores: there is none of '{system}' on '{metric}' in the stratum '{stratum}' of this table")

    @property
    def notes(self) -> tuple[str, ...]:
        """Every sentence that belongs to a number of the table, or says why it is missing; each once."""
        sentences: dict[tuple[str, str], list[str]] = {}
        for row in self.rows:
            for sentence in (*row.notes, *_sentences("corrected score", row.corrected)):
                sentences.setdefault((row.metric, sentence), []).append(row.system)
            for sentence in _sentences(BEST, row.best_achievable):
                sentences.setdefault((row.metric, sentence), [])
        everybody = {row.system for row in self.rows}
        told = ((row.over, row.metric, row.system, row.stratum) for row in self.rows if row.value is not None)
        over = said_over(told)
        return *over, *(
            f"{METRICS[metric].short}, {sentence}"
            + ("" if not systems or set(systems) == everybody else f" ({', '.join(dict.fromkeys(systems))})")
            for (metric, sentence), systems in sentences.items()
        )

    def grid(self) -> tuple[list[str], list[list[str]]]:
        """Header and cells of the table, as text: metric, system, and numbers.

        On one stratum the numbers are score, sd over seeds and corrected score. On several they are the scores in each,
        and corrected scores stand in rows of their own. Below the systems of a metric stands what is best achievable.
        """
        strata = list(dict.fromkeys(row.stratum for row in self.rows))
        items = {row.stratum: row.items for row in self.rows}
        header = [f"{name} ({items[name]:,})" for name in strata]
        if len(strata) == 1:
            header = ["score", "sd over seeds", "corrected"]
        cells = []
        for metric in dict.fromkeys(row.metric for row in self.rows):
            of_metric = [row for row in self.rows if row.metric == metric]
            across: list[Score] = []
            for system in dict.fromkeys(row.system for row in of_metric):
                across = [row for row in of_metric if row.system == system]
                values = ["empty" if not row.items else shown(row.value) for row in across]
                corrected = [_estimate(row.corrected) for row in across]
                if len(strata) == 1:
                    values += [shown(across[0].sd), shown(corrected[0])]
                cells.append([headline(metric), system, *values])
                if any(corrected[1:]):
                    cells.append([headline(metric), f"{system}, corrected", *map(shown, corrected)])
            best = [_estimate(row.best_achievable) for row in across]
            if any(best):
                cells.append([headline(metric), BEST, *map(shown, best), *([DASH] * (len(header) - len(best)))])
        return ["metric", "system", *header], cells


def headline(metric: str) -> str:
    """A metric's title, its unit, and an arrow that points to people."""
    title, unit = METRICS[metric].title, METRICS[metric].unit
    return f"{title}{f', {unit}' if unit else ''} {arrow(metric)}"


def arrow(metric: str) -> str:
    """Where a metric points to people: down, up, or to 0."""
    return {"lower": "↓", "higher": "↑", "zero": "→ 0"}[METRICS[metric].better]


def _estimate(finding: Finding | None) -> Estimate | None:
    return None if finding is None else finding.estimate


def _sentences(what: str, finding: Finding | None) -> list[str]:
    if finding is None:
        return []
    missing = [f"no {what}: {finding.reason}"] if finding.reason else []
    return [f"{what}: {note}" for note in finding.notes] + missing
