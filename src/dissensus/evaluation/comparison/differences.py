"""Which of two systems is closer to people: differences over the same items and seeds, with intervals and tests."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from dissensus.errors import InputError
from dissensus.evaluation.comparison.intervals import estimate_over_seeds
from dissensus.evaluation.comparison.resampling import resampled_means
from dissensus.evaluation.comparison.scores import headline
from dissensus.evaluation.comparison.tables import markdown, shown
from dissensus.evaluation.metrics.arithmetic import average_ranks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.arrays import Floats, Table
    from dissensus.bootstrap import Estimate, Seed

Alternative: TypeAlias = Literal["two-sided", "less", "greater"]
"""What a test looks for: any difference, or that the system scores less, or more, than the reference."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A system minus a reference, on one metric, over the same items and seeds.

    Attributes:
        system: name.
        reference: name.
        metric: name; empty where scores came without one.
        stratum: the items that were compared.
        value: mean over items and seeds of system minus reference, with an interval for other items and other seeds
            (see `intervals.estimate_over_seeds`).
        sd: standard deviation over seeds of the difference, with n - 1; None for one seed.
        seeds: how many seeds were paired.
        p: exact Wilcoxon signed-rank p-value over seeds; None for one seed. With n seeds it cannot be below 2 / 2^n
            two-sided (0.0625 for five), or 1 / 2^n one-sided.
        p_holm: the same after Holm's correction over the table that this difference stands in.
        alternative: what the test looked for.
    """

    system: str
    reference: str
    metric: str
    stratum: str
    value: Estimate
    sd: float | None
    seeds: int
    p: float | None
    p_holm: float | None
    alternative: Alternative


@dataclass(frozen=True)
class Differences:
    """Differences to one reference, with Holm's correction over all of them.

    Attributes:
        rows: one for each system and metric.
    """

    rows: tuple[Difference, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def get(self, system: str, metric: str = "") -> Difference:
        """The difference of a system on a metric."""
        for row in self.rows:
            if (row.system, row.metric) == (system, metric):
                return row
        raise InputError(f"comparison: there is no difference of '{system}' on the metric '{metric}' in this table")

    def to_dict(self) -> list[dict[str, Any]]:
        """The rows, ready for JSON."""
        return [asdict(row) for row in self.rows]

    def grid(self) -> tuple[list[str], list[list[str]]]:
        """Header and cells of the table, as text."""
        header = ["metric", "system", "minus", "difference", "sd over seeds", "p (Wilcoxon)", "p (Holm)"]
        return header, [
            [headline(row.metric) if row.metric else "", row.system, row.reference]
            + [shown(each) for each in (row.value, row.sd, row.p, row.p_holm)]
            for row in self.rows
        ]

    def to_markdown(self) -> str:
        """The table as Markdown."""
        return markdown(*self.grid())


def compare(
    scores: Mapping[str, Any],
    reference: str,
    *,
    resamples: int = 2000,
    seed: Seed = 0,
    level: float = 0.95,
    alternative: Alternative = "two-sided",
) -> Differences:
    """Differences between each system and a reference in the mean of per-item scores.

    Args:
        scores: by system, (seeds, items) or (items,) values of one metric, on the same items in the same order; seed s
            of one system is paired with seed s of the other. A system with one seed is paired with every seed.
        reference: the system that is subtracted.
        resamples: of items and seeds.
        seed: of the draws.
        level: of the intervals.
        alternative: what the Wilcoxon test over seeds looks for.
    """
    tables = {name: np.atleast_2d(np.asarray(values, dtype=np.float64)) for name, values in scores.items()}
    shapes = {name: table.shape for name, table in tables.items()}
    if len({shape[1:] for shape in shapes.values()}) > 1 or any(len(shape) != 2 for shape in shapes.values()):
        raise InputError(f"comparison: scores of shapes {shapes} do not pair; give seeds by items, of the same items")
    undefined = [name for name, table in tables.items() if not table.size or not np.isfinite(table).all()]
    if undefined:
        raise InputError(f"comparison: the scores of {undefined[0]} are empty, NaN or infinite; give finite numbers")
    columns = np.concatenate(list(tables.values()))
    means = resampled_means(columns, resamples=resamples, seed=seed)
    ends = np.cumsum([shape[0] for shape in shapes.values()])[:-1]
    values = dict(zip(tables, np.split(means, ends, axis=1), strict=True))
    return with_holm(differences(values, reference, level=level, seed=seed, alternative=alternative))


def differences(
    values: Mapping[str, Table],
    reference: str,
    *,
    metric: str = "",
    stratum: str = "all",
    level: float = 0.95,
    seed: Seed = 0,
    alternative: Alternative = "two-sided",
) -> list[Difference]:
    """Differences from statistics that were resampled together: by system, (1 + resamples, seeds) values."""
    if alternative not in get_args(Alternative):
        raise InputError(f"comparison: '{alternative}' is no alternative; choose {', '.join(get_args(Alternative))}")
    if reference not in values:
        raise InputError(f"comparison: there is no system '{reference}'; choose one of {', '.join(values)}")
    base = values[reference]
    rows = []
    for name, each in values.items():
        if name == reference:
            continue
        if each.shape[1] != base.shape[1] and 1 not in (each.shape[1], base.shape[1]):
            raise InputError(
                f"comparison: {name} has {each.shape[1]} seeds and {reference} {base.shape[1]}; give the same seeds"
            )
        gap = each - base
        seeds = gap.shape[1]
        # Equal scores can differ by rounding after a mean: such a difference is none.
        scale = max(float(np.abs(each[0]).max()), float(np.abs(base[0]).max()), 1e-300)
        rows.append(
            Difference(
                system=name,
                reference=reference,
                metric=metric,
                stratum=stratum,
                value=estimate_over_seeds(gap, level=level, seed=seed),
                sd=float(gap[0].std(ddof=1)) if seeds > 1 else None,
                seeds=seeds,
                p=wilcoxon(np.round(gap[0] / scale, 12), alternative=alternative) if seeds > 1 else None,
                p_holm=None,
                alternative=alternative,
            )
        )
    return rows


def with_holm(rows: Sequence[Difference]) -> Differences:
    """A table of differences, their p-values corrected for standing in it together."""
    tested = [row for row in rows if row.p is not None]
    corrected = iter(holm(np.array([row.p for row in tested], dtype=np.float64)).tolist())
    return Differences(tuple(row if row.p is None else replace(row, p_holm=next(corrected)) for row in rows))


def holm(p: Floats) -> Floats:
    """(tests,) p-values corrected by Holm's step-down method, which holds the chance of any false find over all."""
    order = np.argsort(p)
    stepped = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    corrected = np.empty_like(stepped)
    corrected[order] = np.minimum(stepped, 1.0)
    return corrected


def wilcoxon(gaps: Floats, *, alternative: Alternative = "two-sided") -> float:
    """Exact p-value of Wilcoxon's signed-rank test that differences are symmetric around 0.

    Differences of 0 are dropped, tied ones share the mean of their ranks, and the distribution of the rank sum over all
    2^n signs is counted out, so that the value is exact with ties too. With nothing but zeros it is 1.
    """
    moved = gaps[gaps != 0]
    # Mean ranks of ties are halves: twice the rank is whole.
    ranks = np.rint(2 * average_ranks(np.abs(moved))).astype(np.int64)
    chance = np.ones(1)
    for rank in ranks.tolist():
        chance = (np.pad(chance, (0, rank)) + np.pad(chance, (rank, 0))) / 2
    above = int(ranks[moved > 0].sum())
    less, greater = float(chance[: above + 1].sum()), float(chance[above:].sum())
    return min(1.0, {"less": less, "greater": greater, "two-sided": 2 * min(less, greater)}[alternative])
