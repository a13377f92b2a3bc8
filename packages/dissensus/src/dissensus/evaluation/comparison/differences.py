"""Which of two systems is closer to people: differences over the same items and seeds, with intervals and one test.

One family of tests: the methods against the reference, on the headline metric. A table that tested every metric of
every baseline too could find nothing with few seeds once it corrected for so many tests. All other differences have an
interval, and a mark where that excludes zero. With one seed of either system there is no test: of equal systems whose
seeds differ, one run each differs significantly in two of three trials.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from dissensus.errors import InputError, choices
from dissensus.evaluation.comparison.intervals import estimate_within, said_over, spread_over_seeds
from dissensus.evaluation.comparison.resampling import resampled_means
from dissensus.evaluation.comparison.scores import headline
from dissensus.evaluation.comparison.tables import DASH, TextTable, shown
from dissensus.evaluation.metrics.arithmetic import average_ranks
from dissensus.evaluation.metrics.registry import METRICS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from dissensus.arrays import Floats, Table
    from dissensus.bootstrap import Estimate, Seed
    from dissensus.evaluation.comparison.intervals import Spread

    SeedNumbers = tuple[int | str, ...] | None
    """The seeds of a system's runs in their order; None where nothing about it was drawn, as a uniform baseline."""

Alternative: TypeAlias = Literal["two-sided", "less", "greater"]
"""What Wilcoxon's test looks for: any difference, or that the system scores less, or more, than the reference."""

BETTER: Final = "▲"
"""The mark of a difference whose interval lies wholly on the side that is closer to people."""

WORSE: Final = "▼"
"""The mark of one that lies wholly on the side that is further from people."""

MARKS: Final = (
    f"{BETTER} closer to people than the reference, {WORSE} further: the 95 % interval of the difference excludes 0, "
    "and p (Holm) is below 0.05 where there is one; p is tested on the headline metric alone, with Holm's correction "
    "over the methods compared, and never with one seed"
)
"""How differences are read."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A system minus a reference, on one metric, over the same items.

    Attributes:
        system: name.
        reference: name.
        metric: name; empty where scores came without one.
        stratum: the items that were compared.
        value: mean over items and seeds of system minus reference, with an interval for other items and other seeds.
        over: what the interval is over, such as "items, seeds and annotators".
        mark: `BETTER`, `WORSE`, or "" where the interval holds 0, `p_holm` is not below 1 - its level, or the metric
            has no better side. Whatever is called sure has a mark.
        seeds: how many seeds the system has; 0 where nothing about it was drawn.
        paired: whether seed by seed the reference was subtracted; else its mean over seeds was.
        sd: standard deviation over paired seeds of the difference, with n - 1; None for one seed or unpaired ones.
        seeds_closer: on how many of the paired seeds the system is closer to people; None for unpaired ones.
        p: two-sided p-value from the same variance as the interval; None where the difference is not tested, or where
            either system has one seed.
        p_holm: the same after Holm's correction over the methods tested together.
    """

    system: str
    reference: str
    metric: str
    stratum: str
    value: Estimate
    over: str
    mark: str
    seeds: int
    paired: bool
    sd: float | None
    seeds_closer: int | None
    p: float | None = None
    p_holm: float | None = None


@dataclass(frozen=True, repr=False)
class Differences(TextTable):
    """Differences to one reference: a row for each system and metric."""

    rows: tuple[Difference, ...]

    def get(self, system: str, metric: str = "") -> Difference:
        """The difference of a system on a metric."""
        for row in self.rows:
            if (row.system, row.metric) == (system, metric):
                return row
        raise InputError(f"comparison: there is no difference of '{system}' on the metric '{metric}' in this table")

    @property
    def notes(self) -> tuple[str, ...]:
        """Return notes on the meaning of the marks and on the sources of variation that the intervals cover."""
        told = said_over({(row.over, row.metric, f"{row.system} minus {row.reference}"): None for row in self.rows})
        return (MARKS, *told) if self.rows else ()

    def grid(self) -> tuple[list[str], list[list[str]]]:
        """Header and cells of the table, as text."""
        header = ["metric", "system", "minus", "difference", "", "closer on", "p", "p (Holm)"]
        return header, [
            [
                headline(row.metric) if row.metric else "",
                row.system,
                row.reference,
                shown(row.value),
                row.mark,
                _of_seeds(row),
                shown_p(row.p),
                shown_p(row.p_holm),
            ]
            for row in self.rows
        ]


def shown_p(p: float | None) -> str:
    """A p-value to three decimals; a dash for None."""
    return DASH if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def _of_seeds(row: Difference) -> str:
    """On how many seeds the system is closer; a dash where seeds are not paired or nothing about it was drawn."""
    return DASH if row.seeds_closer is None or not row.seeds else f"{row.seeds_closer} of {row.seeds} seeds"


def compare(
    scores: Mapping[str, Any],
    reference: str,
    *,
    better: Literal["lower", "higher"] = "lower",
    seeds: Mapping[str, Sequence[int]] | None = None,
    resamples: int = 2000,
    seed: Seed = 0,
    level: float = 0.95,
) -> Differences:
    """Differences between each system and a reference in the mean of per-item scores, tested where there are seeds.

    Args:
        scores: by system, (seeds, items) or (items,) values of one metric, on the same items in the same order.
        reference: the system that is subtracted.
        better: whether lower or higher scores are closer to people.
        seeds: by system, the seed numbers of its rows; systems with the same seeds are paired by number, others are
            compared unpaired. Rows without numbers are numbered from 0.
        resamples: of items.
        seed: of the draws.
        level: of the intervals.
    """
    tables = {name: np.atleast_2d(np.asarray(values, dtype=np.float64)) for name, values in scores.items()}
    shapes = {name: table.shape for name, table in tables.items()}
    if len({shape[1:] for shape in shapes.values()}) > 1 or any(len(shape) != 2 for shape in shapes.values()):
        raise InputError(f"comparison: scores of shapes {shapes} do not pair; give seeds by items, of the same items")
    if undefined := [name for name, table in tables.items() if not table.size or not np.isfinite(table).all()]:
        raise InputError(f"comparison: the scores of {undefined[0]} are empty, NaN or infinite; give finite numbers")
    columns = np.concatenate(list(tables.values()))
    means = resampled_means(columns, resamples=resamples, seed=seed)
    ends = np.cumsum([shape[0] for shape in shapes.values()])[:-1]
    values = dict(zip(tables, np.split(means, ends, axis=1), strict=True))
    return with_holm(
        differences(
            values,
            reference,
            seeds={name: seed_numbers(name, shape[0], seeds) for name, shape in shapes.items()},
            items=columns.shape[1],
            better=better,
            tested=values,
            level=level,
        )
    )


def seed_numbers(name: str, runs: int, seeds: Mapping[str, Sequence[int]] | None) -> tuple[int, ...]:
    """The seeds of a system's runs: as given, or numbered from 0 in their order."""
    if seeds is None or name not in seeds:
        return tuple(range(runs))
    numbers = tuple(int(number) for number in seeds[name])
    if len(numbers) != runs or len(set(numbers)) < runs:
        raise InputError(
            f"{name}: {runs} runs with the seeds {', '.join(map(str, numbers)) or 'none'}; give one number for each "
            "run, each once"
        )
    return numbers


def differences(
    values: Mapping[str, Table],
    reference: str,
    *,
    seeds: Mapping[str, SeedNumbers],
    items: int,
    metric: str = "",
    better: Literal["lower", "higher", "zero"] = "lower",
    tested: Collection[str] = (),
    only: Collection[str] | None = None,
    stratum: str = "all",
    level: float = 0.95,
    widened: Mapping[str, Callable[[Spread], Spread]] | None = None,
) -> list[Difference]:
    """Differences from statistics that were resampled together, on one stratum.

    Args:
        values: by system, (1 + resamples, seeds) values.
        reference: the system that is subtracted.
        seeds: by system, the seed numbers of its columns.
        items: how many items were resampled.
        metric: its name.
        better: which side is closer to people; a metric that has one gives its own.
        tested: the systems whose difference gets a p-value, if neither they nor the reference have one seed.
        only: the systems that are compared; None for all.
        stratum: name of the items that were compared.
        level: of the intervals.
        widened: by system, how the spread of its difference is widened for other annotators, where that is known.
    """
    if reference not in values:
        raise InputError(f"comparison: there is no system '{reference}'{choices(reference, values)}")
    base, theirs = values[reference], seeds[reference]
    low, high = (METRICS[metric].low, METRICS[metric].high) if metric else (-np.inf, np.inf)
    better = METRICS[metric].better if metric else better
    rows = []
    for name, scores in values.items():
        if name == reference or (only is not None and name not in only):
            continue
        ours = seeds[name]
        paired, groups = _groups(scores, base, ours, theirs)
        value = float(sum(group[0].mean() for group in groups))
        # Equal scores can differ by rounding after a mean: such a difference is none.
        rounding = 1e-12 * max(float(np.abs(scores[0]).max()), float(np.abs(base[0]).max()))
        value = 0.0 if abs(value) <= rounding else value
        spread = spread_over_seeds(groups, items=items)
        of_people = spread is not None and bool(widened) and name in (widened or ())
        if spread is not None and widened and of_people:
            spread = widened[name](spread)
        over = _over(name, reference, ours, theirs, paired=paired, annotators=of_people)
        ends: Any = {"level": level, "low": low - high, "high": high - low}
        estimate = estimate_within(value, spread, **ends, resamples=len(base) - 1)
        gaps = groups[0][0] if paired else None
        alone = 1 in (len(ours or ()), len(theirs or ()))
        rows.append(
            Difference(
                system=name,
                reference=reference,
                metric=metric,
                stratum=stratum,
                value=estimate,
                over=over,
                mark=_mark(estimate, better),
                seeds=len(ours or ()),
                paired=paired,
                sd=float(gaps.std(ddof=1)) if gaps is not None and gaps.size > 1 else None,
                seeds_closer=None if gaps is None else _closer(gaps, better),
                p=spread.p_value(value) if spread is not None and name in tested and not alone else None,
            )
        )
    return rows


GIVEN_THIS_SEED: Final = "items, given this seed"
"""Sources of variation that the interval of a single run covers. The scores of other seeds may lie outside."""


def interval_over(seeds: SeedNumbers, *, annotators: bool = False) -> str:
    """Return the sources of variation that the interval of a system's score covers, with annotators if `annotators`.

    >>> interval_over((1, 2, 3), annotators=True), interval_over((1,)), interval_over(None)
    ('items, seeds and annotators', 'items, given this seed', 'items')
    """
    several = seeds is not None and len(seeds) > 1
    parts = ["items", *["seeds"] * several, *["annotators"] * annotators]
    named = " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0]
    return named if seeds is None or several else f"{named}, given this seed"


def _groups(scores: Table, base: Table, ours: SeedNumbers, theirs: SeedNumbers) -> tuple[bool, list[Table]]:
    """Whether seeds are paired, and the groups of values that add up to the difference."""
    if ours is None or theirs is None:
        return True, [scores - base]
    if set(ours) == set(theirs):
        return True, [scores - base[:, [theirs.index(number) for number in ours]]]
    return False, [scores, -base]


def _over(name: str, reference: str, ours: SeedNumbers, theirs: SeedNumbers, *, paired: bool, annotators: bool) -> str:
    if paired:
        return interval_over(ours if theirs is None else theirs, annotators=annotators)
    assert ours is not None
    assert theirs is not None
    alone = [system for system, seeds in ((name, ours), (reference, theirs)) if len(seeds) == 1]
    if len(alone) == 2:
        return f"{interval_over(None, annotators=annotators)}, given these two runs"
    why = "unpaired: the systems " + ("have different seeds" if set(ours) & set(theirs) else "share no seeds")
    over = interval_over((*ours, *theirs), annotators=annotators)
    return f"{over}{f', given the one seed of {alone[0]}' if alone else ''}, {why}"


def _mark(value: Estimate, better: str) -> str:
    if value.low is None or value.high is None or better == "zero" or value.low <= 0 <= value.high:
        return ""
    return BETTER if (value.value < 0) == (better == "lower") else WORSE


def _closer(gaps: Floats, better: str) -> int | None:
    if better == "zero":
        return None
    return int((gaps < 0).sum() if better == "lower" else (gaps > 0).sum())


def with_holm(rows: Sequence[Difference]) -> Differences:
    """A table of differences, the p-values in it corrected for being tested together, and the marks with them."""
    corrected = iter(holm(np.array([row.p for row in rows if row.p is not None], dtype=np.float64)).tolist())
    made = []
    for row in rows:
        p = None if row.p is None else next(corrected)
        doubtful = p is not None and p >= 1 - row.value.level
        made.append(replace(row, p_holm=p, mark="" if doubtful else row.mark))
    return Differences(tuple(made))


def turned(row: Difference) -> Difference:
    """The same difference seen from the other side: the reference minus the system."""
    low, high = (None if end is None else -end for end in (row.value.high, row.value.low))
    value = replace(row.value, value=-row.value.value, low=low, high=high)
    mark = {BETTER: WORSE, WORSE: BETTER}.get(row.mark, "")
    closer = None if row.seeds_closer is None else row.seeds - row.seeds_closer
    return replace(row, system=row.reference, reference=row.system, value=value, mark=mark, seeds_closer=closer)


def holm(p: Floats) -> Floats:
    """(tests,) p-values corrected by Holm's step-down method, which bounds the chance of any false finding."""
    order = np.argsort(p)
    stepped = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    corrected = np.empty_like(stepped)
    corrected[order] = np.minimum(stepped, 1.0)
    return corrected


def wilcoxon(gaps: Floats, *, alternative: Alternative = "two-sided") -> float:
    """Exact p-value of Wilcoxon's signed-rank test that differences are symmetric around 0.

    For claims of papers that used it. Over seeds it takes the items as given: two systems that are equal in the
    population and differ on the items at hand differ significantly in two of three trials with 6 seeds that are alike.

    Differences of 0 are dropped, tied ones share the mean of their ranks, and the distribution of the rank sum over all
    2^n signs is counted out, so that the value is exact with ties too. With nothing but zeros it is 1.

    Args:
        gaps: (n,) paired differences, such as one per seed.
        alternative: `two-sided`, or that they are `less` or `greater` than 0.
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
