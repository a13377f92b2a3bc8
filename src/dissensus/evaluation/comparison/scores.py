"""Scores with what is needed to read them, and tables of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from dissensus.errors import InputError
from dissensus.evaluation.comparison.strata import ALL
from dissensus.evaluation.comparison.tables import DASH, as_list, markdown, shown
from dissensus.evaluation.metrics.registry import METRICS

if TYPE_CHECKING:
    from dissensus.bootstrap import Estimate


@dataclass(frozen=True, kw_only=True)
class Score:
    """One number of a table.

    Attributes:
        system: name of the model or baseline.
        metric: name.
        stratum: name.
        items: how many items the stratum has.
        seeds: over how many seeds the value is a mean.
        value: mean over seeds, with an interval for other items and other seeds; None where the stratum is empty or
            the metric is undefined on it, and `note` says which.
        sd: standard deviation over seeds, with n - 1; None for one seed.
        floor: what a perfect model would score against so few votes; None where that is not known.
        corrected: the value that votes without end would give; None where there is no such estimate.
        ceiling: one half of the people scored against the other; None where that is not known.
        note: what else a reader must know.
    """

    system: str
    metric: str
    stratum: str
    items: int
    seeds: int
    value: Estimate | None
    sd: float | None = None
    floor: float | None = None
    corrected: Estimate | None = None
    ceiling: Estimate | None = None
    note: str = ""


@dataclass(frozen=True)
class Scores:
    """A table: systems by metrics, in one stratum or several.

    Attributes:
        rows: the scores, metric by metric.
    """

    rows: tuple[Score, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def get(self, system: str, metric: str, *, stratum: str = ALL) -> Score:
        """The score of a system on a metric."""
        for row in self.rows:
            if (row.system, row.metric, row.stratum) == (system, metric, stratum):
                return row
        raise InputError(f"scores: there is none of '{system}' on '{metric}' in the stratum '{stratum}' of this table")

    def to_dict(self) -> list[dict[str, Any]]:
        """The rows, ready for JSON."""
        return [asdict(row) for row in self.rows]

    def grid(self) -> tuple[list[str], list[list[str]]]:
        """Header and cells of the table, as text: metric, system, and numbers.

        On one stratum the numbers are score, sd over seeds and corrected score. On several they are the scores in each,
        and corrected scores stand in rows of their own. Below the systems of a metric are its noise floor and human
        ceiling. Rows without any number on a stratum of its own are left out.
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
                if len(strata) == 1:
                    values += [shown(across[0].sd), shown(across[0].corrected)]
                cells.append([headline(metric), system, *values])
                if any(row.corrected is not None for row in across[1:]):
                    cells.append([headline(metric), f"{system}, corrected", *(shown(row.corrected) for row in across)])
            for name, numbers in _of_people(across).items():
                if any(number is not None for number in (numbers if len(strata) == 1 else numbers[1:])):
                    cells.append(
                        [headline(metric), name, *map(shown, numbers), *([DASH] * (len(header) - len(numbers)))]
                    )
        return ["metric", "system", *header], cells

    def to_markdown(self) -> str:
        """The table as Markdown, and below it the notes of its rows; a dash stands where there is no number."""
        header, cells = self.grid()
        return f"{markdown(header, cells)}\n\n{as_list(row.note for row in self.rows)}".rstrip()


def headline(metric: str) -> str:
    """A metric's title, its unit, and an arrow that points to people."""
    told = METRICS[metric]
    arrow = {"lower": "↓", "higher": "↑", "zero": "→ 0"}[told.better]
    return f"{told.title}{f', {told.unit}' if told.unit else ''} {arrow}"


def _of_people(across: list[Score]) -> dict[str, list[Any]]:
    return {"noise floor": [row.floor for row in across], "human ceiling": [row.ceiling for row in across]}
