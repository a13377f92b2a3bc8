"""Scores with what is needed to read them, and tables of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from dissensus.errors import InputError
from dissensus.evaluation.registry import METRICS
from dissensus.evaluation.strata import ALL
from dissensus.evaluation.tables import as_list, markdown, shown

if TYPE_CHECKING:
    from dissensus.votes.estimate import Estimate


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
    ceiling: float | None = None
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

    def to_markdown(self) -> str:
        """The rows as a Markdown table, and below it what their notes say; a dash stands where there is no number."""
        several = len({row.stratum for row in self.rows}) > 1
        header = ("metric", *(("stratum", "items") if several else ()), "system", "score", "sd over seeds")
        lines = [
            (
                METRICS[row.metric].title,
                *((row.stratum, f"{row.items:,}") if several else ()),
                row.system,
                *map(shown, (row.value, row.sd, row.corrected, row.floor, row.ceiling)),
            )
            for row in self.rows
        ]
        table = markdown((*header, "corrected", "noise floor", "human ceiling"), lines)
        return f"{table}\n\n{as_list(row.note for row in self.rows)}".rstrip()
