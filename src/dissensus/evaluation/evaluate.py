"""Any model's predictions against what people said: every score with its interval, its floor and its baselines."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.errors import InputError
from dissensus.evaluation.baselines import make_baselines
from dissensus.evaluation.comparison import Alternative, Difference, differences, with_holm
from dissensus.evaluation.intervals import estimate_over_seeds
from dissensus.evaluation.probabilities import checked_human, checked_probabilities
from dissensus.evaluation.registry import METRICS
from dissensus.evaluation.resampling import resampled_means, resampled_over_items
from dissensus.evaluation.strata import ALL, Stratum, by_column, make_strata
from dissensus.labels.distribution import LabelDistribution

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dissensus.arrays import Table
    from dissensus.evaluation.metric import Metric
    from dissensus.evaluation.probabilities import Runs
    from dissensus.votes.estimate import Estimate

    Resampled = dict[str, dict[str, Table]]
    """By metric and system, (1 + resamples, seeds) values."""

DEFAULT_METRICS: Final = (
    "kl",
    "soft_nll",
    "tvd",
    "brier",
    "abs_entce",
    "accuracy",
    "entropy_pearson",
    "entropy_spearman",
)
"""What a table shows where no metrics are named; `METRICS` has the others."""


@dataclass(frozen=True, kw_only=True)
class Score:
    """One number of a table, with what is needed to read it.

    Attributes:
        system: name of the model or baseline.
        metric: name.
        stratum: name.
        items: how many items the stratum has.
        seeds: over how many seeds the value is a mean.
        value: mean over seeds, with an interval for other items and other seeds; None where the stratum is empty or the
            metric is undefined on it, and `note` says which.
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
    floor: Estimate | None = None
    corrected: Estimate | None = None
    ceiling: Estimate | None = None
    note: str = ""


@dataclass(frozen=True)
class Scores:
    """Rows of a table: systems by metrics, in one stratum or several."""

    rows: tuple[Score, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def get(self, system: str, metric: str, *, stratum: str = ALL) -> Score:
        """The score of a system on a metric."""
        for row in self.rows:
            if (row.system, row.metric, row.stratum) == (system, metric, stratum):
                return row
        raise InputError(f"evaluation: there is no score of {system} on {metric} in the stratum '{stratum}'")

    def to_dict(self) -> list[dict[str, Any]]:
        """The rows, ready for JSON."""
        return [asdict(row) for row in self.rows]

    def to_markdown(self) -> str:
        """The rows as a Markdown table; a dash stands where there is no number, and notes follow the table."""
        several = len({row.stratum for row in self.rows}) > 1
        header = ["metric", *(["stratum", "items"] if several else []), "system", "score", "sd over seeds", "corrected"]
        header += ["noise floor", "human ceiling"]
        lines = []
        for row in self.rows:
            where = [row.stratum, f"{row.items:,}"] if several else []
            numbers = [_shown(each) for each in (row.value, row.sd, row.corrected, row.floor, row.ceiling)]
            lines.append([METRICS[row.metric].title, *where, row.system, *numbers])
        return _markdown(header, lines) + _listed(row.note for row in self.rows)


@dataclass(frozen=True)
class Differences:
    """Differences to one reference: systems by metrics, with Holm's correction over all of them."""

    rows: tuple[Difference, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def get(self, system: str, metric: str) -> Difference:
        """The difference of a system on a metric."""
        for row in self.rows:
            if (row.system, row.metric) == (system, metric):
                return row
        raise InputError(f"evaluation: there is no difference of {system} on {metric}")

    def to_dict(self) -> list[dict[str, Any]]:
        """The rows, ready for JSON."""
        return [row.to_dict() for row in self.rows]

    def to_markdown(self) -> str:
        """The rows as a Markdown table."""
        header = ["metric", "system", "minus", "difference", "sd over seeds", "p (Wilcoxon)", "p (Holm)"]
        lines = [
            [METRICS[row.metric].title, row.system, row.reference, *map(_shown, (row.value, row.sd, row.p, row.p_holm))]
            for row in self.rows
        ]
        return _markdown(header, lines)


@dataclass(frozen=True, eq=False, kw_only=True)
class Evaluation:
    """Systems and baselines against people: `overall`, `by_stratum`, `difference`.

    Attributes:
        items: how many items were evaluated.
        classes: names.
        systems: names of the models, then of the baselines.
        baselines: names of the baselines among them.
        metrics: names.
        strata: for each idea of strata, its scores.
        notes: sentences that belong under every table.
        level: of the intervals.
        resamples: behind each interval.
        seed: of everything random.
    """

    items: int
    classes: tuple[str, ...]
    systems: tuple[str, ...]
    baselines: tuple[str, ...]
    metrics: tuple[str, ...]
    strata: Mapping[str, Scores]
    notes: tuple[str, ...]
    level: float
    resamples: int
    seed: int
    _overall: Scores = field(repr=False)
    _resampled: Mapping[tuple[str, str], Resampled] = field(repr=False)

    @property
    def overall(self) -> Scores:
        """The scores on all items."""
        return self._overall

    def by_stratum(self, by: str = "agreement") -> Scores:
        """The scores in each stratum of an idea, such as agreement; the stratum of all items first."""
        if by not in self.strata:
            raise InputError(f"evaluation: no strata by '{by}' here; there are {', '.join(self.strata) or 'none'}")
        return self.strata[by]

    def difference(
        self, reference: str, *, by: str = "agreement", stratum: str = ALL, alternative: Alternative = "two-sided"
    ) -> Differences:
        """Every other system minus the reference, on every metric, over the same items and seeds.

        Args:
            reference: name of a system or baseline.
            by: the idea of strata that `stratum` belongs to; not needed for all items.
            stratum: the items to compare on.
            alternative: what the exact Wilcoxon test over seeds looks for; "less" asks whether a system scores less than
                the reference, which is closer to people only where lower is better.
        """
        if reference not in self.systems:
            raise InputError(f"evaluation: there is no system '{reference}'; choose one of {', '.join(self.systems)}")
        key = (ALL, ALL) if stratum == ALL else (by, stratum)
        if key not in self._resampled:
            known = ", ".join(f"{name} ({idea})" for idea, name in self._resampled)
            raise InputError(f"evaluation: no scores in the stratum '{stratum}' by {by}; there are {known}")
        rows: list[Difference] = []
        for metric, values in self._resampled[key].items():
            defined = {name: each for name, each in values.items() if np.isfinite(each[0]).all()}
            if reference in defined:
                rows += differences(
                    defined,
                    reference,
                    metric=metric,
                    stratum=stratum,
                    level=self.level,
                    seed=self.seed,
                    alternative=alternative,
                )
        return Differences(with_holm(rows))

    def to_markdown(self) -> str:
        """All tables and notes."""
        parts = [f"## All {self.items:,} items\n\n{self.overall.to_markdown()}"]
        parts += [f"## By {idea}\n\n{scores.to_markdown()}" for idea, scores in self.strata.items()]
        parts.append("\n".join(f"- {note}" for note in self.notes))
        return "\n\n".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Everything in the tables, ready for JSON."""
        return {
            "items": self.items,
            "classes": list(self.classes),
            "systems": list(self.systems),
            "baselines": list(self.baselines),
            "metrics": {
                name: {
                    key: getattr(METRICS[name], key) for key in ("title", "unit", "better", "reference")
                }
                for name in self.metrics
            },
            "level": self.level,
            "resamples": self.resamples,
            "seed": self.seed,
            "notes": list(self.notes),
            "overall": self.overall.to_dict(),
            "strata": {idea: scores.to_dict() for idea, scores in self.strata.items()},
        }
