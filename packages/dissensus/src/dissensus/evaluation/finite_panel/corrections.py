"""Corrected scores: what the model would score against everybody, from the few votes there are.

Three ways, by what a metric allows:

- Exact. Soft NLL and expected accuracy are linear in the true distribution p, and Brier and RPS are quadratic: their
  means are estimated without bias (those of the latter two from pairs of judgements).
- Bracketed. KL, signed EntCE, JSD, TVD and Wasserstein are no polynomials in p, so no unbiased estimate exists, but
  single votes bracket their mean whatever p is (`bracket`). The value is halfway; the interval runs from the lower end
  of the low mean to the upper end of the high mean, and holds without any assumption about p.
- Split-half. The Pearson correlation of entropies is divided by the square root of the reliability of the human
  entropies, from two halves of the panel (Spearman 1904). Plain entropies of halves are biased by unlike amounts, which
  makes that quotient too large (1.1 to 1.5 for a true 0.9 at 5 votes), so each half's entropy is the bracketed one, and
  the interval is widened by what the brackets leave open.

Intervals are over items, over seeds where there are several, and over annotators where the same are known to have
judged many items. Corrected values may lie a little outside the range of the metric, as unbiased estimates of a small
number must.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.special import entr

from dissensus.bootstrap import Estimate
from dissensus.evaluation.comparison.intervals import estimate_over_seeds, estimate_within, spread_over_seeds
from dissensus.evaluation.comparison.resampling import resampled_means
from dissensus.evaluation.finite_panel.bracket import MANY, Bracket, bracket_distances, fit_polynomials, jsd_of_cell
from dissensus.evaluation.finite_panel.finding import Finding, withheld
from dissensus.evaluation.finite_panel.panel import cumulated, draw_votes
from dissensus.evaluation.finite_panel.shared_annotators import (
    THESE_PEOPLE,
    clustered,
    deletions,
    shared,
    with_annotators,
)
from dissensus.evaluation.metrics.distances import LN2, entropy, soft_nll
from dissensus.evaluation.metrics.registry import METRICS

if TYPE_CHECKING:
    from collections.abc import Callable

    from dissensus.arrays import Counts, Floats, Ints, Table
    from dissensus.evaluation.finite_panel.bracket import CellFunction, Polynomials
    from dissensus.evaluation.finite_panel.panel import Panel
    from dissensus.evaluation.finite_panel.shared_annotators import Clustered, Scores
    from dissensus.evaluation.probabilities import Runs

    BracketOf = Callable[[Counts, Ints, Table], Bracket]
    """Votes of items, how many each has, and a model's probabilities, to the bracket of the items' scores."""

    BracketBy = Callable[[Counts, Runs, Ints], BracketOf]
    """Votes of all items, a model's runs, and the numbers of votes that brackets are wanted for, to such a function."""

    Term = Callable[[Table, Table], Any]
    """People's shares and a model's probabilities to the items' part of a score that is known without a bracket."""

    Known = dict[BracketBy, tuple[list[Bracket], Floats | None]]
    """Brackets of the items by run, and what leaving out a judgement does to their middles (`_brackets`)."""

LEVEL: Final = 0.95


def correct(
    name: str,
    panel: Panel,
    model: Runs | Table,
    *,
    resamples: int = 1000,
    splits: int = 10,
    seed: int = 0,
    known: Known | None = None,
) -> Finding:
    """The score of a model against the true distributions that judgements were drawn from.

    Args:
        name: of a metric in the registry.
        panel: the judgements.
        model: (items, classes) probabilities, or (seeds, items, classes): then the mean over seeds.
        resamples: of items, for the interval; with fewer than 2 a value has none, or the bracket alone.
        splits: random halvings, for the entropy correlation.
        seed: of resamples and splits.
        known: brackets that other metrics of the same panel, model and resamples needed, where there are several; what
            this one needs is added.
    """
    runs = panel.runs_of(model, what=f"corrected {name}")
    if name in UNBIASED:
        scores = METRICS[name].per_item
        assert scores is not None
        per_run = [lambda mass, _, size, rows, q=q: scores(mass / size[:, None], q[rows]) for q in runs]
        return _exact(name, panel, per_run, notes=(), resamples=resamples, seed=seed)
    if name == "brier":
        return _quadratic(name, panel, runs, resamples=resamples, seed=seed)
    if name == "rps":
        return _quadratic(name, panel.cumulated(), cumulated(runs), resamples=resamples, seed=seed)
    if name not in BRACKETED and name != "entropy_pearson":
        return withheld(WHY_NOT.get(name, "no sound correction is known"))
    if not panel.single:
        return withheld(f"{SINGLE_ONLY}; Brier and soft NLL are corrected for judgements too")
    if name == "entropy_pearson":
        return _entropy_pearson(panel, runs, resamples=resamples, splits=splits, seed=seed)
    return _bracketed(name, panel, runs, resamples=resamples, seed=seed, known={} if known is None else known)


SINGLE_ONLY: Final = "its estimate needs judgements that are one vote each"
"""Why judgements with several votes lack it."""


def _quadratic(name: str, panel: Panel, runs: Runs, *, resamples: int, seed: int) -> Finding:
    some = panel.size >= 2
    alone = int((~some).sum())
    if not some.any():
        return withheld(f"no item has two judgements, and {METRICS[name].short} needs pairs of them")

    notes = (f"{alone:,} items with a single judgement are left out",) if alone else ()
    per_run = [lambda mass, squares, size, rows, q=q[some]: squared_errors(mass, squares, size, q[rows]) for q in runs]
    return _exact(name, panel.take(some), per_run, notes=notes, resamples=resamples, seed=seed, least=2)


def squared_errors(mass: Table, squares: Table, size: Ints, q: Table) -> Floats:
    """(items,) |p - q|^2 without bias, from pairs of judgements; of an item with one judgement it says nothing."""
    k = size[:, None].astype(np.float64)
    pairs = (mass**2 - squares) / np.maximum(k * (k - 1), 1.0)
    return np.asarray((pairs - 2 * q * mass / k + q * q).sum(axis=1))


def _exact(
    name: str,
    panel: Panel,
    per_run: list[Callable[..., Floats]],
    *,
    notes: tuple[str, ...],
    resamples: int,
    seed: int,
    least: int = 1,
) -> Finding:
    """An unbiased mean over items with `least` judgements or more.

    `per_run` takes, for each seed, sums, sums of squares, sizes and row numbers of items to their scores.
    """
    rows = np.arange(len(panel))
    scores = np.stack([scores_of(panel.mass, panel.squares, panel.size, rows) for scores_of in per_run])
    values = resampled_means(scores, resamples=resamples, seed=seed)
    spread = spread_over_seeds([values], items=len(panel))
    if spread is not None and shared(panel):
        change = [
            deletions(panel, scores_of, score, least=least) for scores_of, score in zip(per_run, scores, strict=True)
        ]
        spread = with_annotators(spread, clustered(panel, np.mean(change, axis=0)))
    metric = METRICS[name]
    estimate = estimate_within(
        float(values[0].mean()), spread, level=LEVEL, low=metric.low, high=metric.high, resamples=resamples
    )
    return Finding(estimate, notes)


def _bracketed(name: str, panel: Panel, runs: Runs, *, resamples: int, seed: int, known: Known) -> Finding:
    by, factor, shift = BRACKETED[name]
    if by not in known:
        known[by] = _brackets(by, panel, runs, crossed=shared(panel) and resamples > 1)
    brackets, change = known[by]
    shifts = [shift(panel.shares, q) if callable(shift) else shift for q in runs]
    whole = [bracket.scaled(factor, shift=of) for bracket, of in zip(brackets, shifts, strict=True)]
    low, middle, high = (np.stack([getattr(bracket, end) for bracket in whole]) for end in ("low", "middle", "high"))
    part = None
    if change is not None:
        change = factor * change
        if callable(shift):

            def shifted(q: Table) -> Scores:
                return lambda mass, _, k, rows: shift(mass / k[:, None], q[rows])

            moved = [deletions(panel, shifted(q), np.asarray(of)) for q, of in zip(runs, shifts, strict=True)]
            change = change + np.mean(moved, axis=0)
        part = clustered(panel, change)
    metric = METRICS[name]
    value, least, most, between = mean_bracket(low, middle, high, resamples=resamples, seed=seed, part=part)
    if least > most:
        return withheld(CONTRADICTED)
    estimate = Estimate(value, min(value, max(least, metric.low)), max(value, min(most, metric.high)), LEVEL, resamples)
    notes = (WIDE_NOTE.format(*between),) if most - least > WIDE * abs(value) else ()
    return Finding(estimate, notes)


def _brackets(by: BracketBy, panel: Panel, runs: Runs, *, crossed: bool) -> tuple[list[Bracket], Floats | None]:
    """By run, the items' brackets; `crossed`, also `deletions` of their middles in the mean over runs."""
    counts, size = panel.counts, panel.size
    sizes = np.unique(np.concatenate([size, np.maximum(size - 1, 1)])) if crossed else np.unique(size)
    mirrored = np.concatenate([runs, runs[..., ::-1]], axis=1) if panel.pairs else runs
    bracket_of = by(panel.with_mirror_images().counts, mirrored, sizes)
    whole = [bracket_of(counts, size, q) for q in runs]
    if not crossed:
        return whole, None

    def middles(q: Table) -> Scores:
        return lambda mass, _, k, rows: bracket_of(np.rint(mass).astype(np.int64), k, q[rows]).middle

    change = [deletions(panel, middles(q), bracket.middle) for q, bracket in zip(runs, whole, strict=True)]
    return whole, np.mean(change, axis=0)


WIDE_NOTE: Final = "the votes leave it between {:.3g} and {:.3g}: quote the interval, not the value"

CONTRADICTED: Final = (
    "votes and predictions contradict each other: its lower bound lies above its upper bound, as happens where "
    "predictions were made from the votes that they are scored on, or items were chosen by these"
)
"""Why there is no number where a bracket is reversed."""


def mean_bracket(
    low: Table, middle: Table, high: Table, *, resamples: int, seed: int, part: Clustered | None = None
) -> tuple[float, float, float, tuple[float, float]]:
    """Value and ends of the interval of a bracketed mean, and the bracket itself.

    Of (seeds, items) lower ends, middles and upper ends, and the annotators' part of the variance. With fewer than 2
    resamples of items the interval is the bracket. Predictions that know the votes can reverse it: its low end then
    lies above its high end.
    """
    values = resampled_means(np.stack([low, middle, high]), resamples=resamples, seed=seed)
    ends = values[0].mean(axis=1)
    half = [0.0, 0.0]
    for side, place in enumerate((0, 2)):
        spread = spread_over_seeds([values[:, place]], items=low.shape[1])
        if spread is not None:
            half[side] = with_annotators(spread, part).half_width(LEVEL)
    least, most = float(ends[0] - half[0]), float(ends[2] + half[1])
    value = float(np.clip(ends[1], min(least, most), max(least, most)))
    return value, least, most, (float(min(ends[0], ends[2])), float(max(ends[0], ends[2])))


def _entropy_pearson(panel: Panel, runs: Runs, *, resamples: int, splits: int, seed: int) -> Finding:
    some = panel.size >= 4
    left_out = int((~some).sum())
    if some.sum() < 2:
        return withheld("too few items have four votes: the entropy of a half that is one vote is always 0")
    c, k, runs = panel.counts[some], panel.size[some], runs[:, some]
    one, other = (k + 1) // 2, k // 2
    guess = runs.mean(axis=0)
    fitted = fit_polynomials(_entropy_of_cell, c, guess, panel_size=k, sizes=np.concatenate([k, one, other]), parts=24)
    rng = np.random.default_rng(seed)
    first, second, product, gap = np.zeros((4, len(c)))
    for _ in range(splits):
        part = draw_votes(c, one, rng)
        a, b = (fitted.bracket(half, guess, panel_size=of) for half, of in ((part, one), (c - part, other)))
        first, second = first + a.middle / splits, second + b.middle / splits
        product = product + a.middle * b.middle / splits
        gap = gap + (a.high - a.low + b.high - b.low) / 2 / splits
    whole = fitted.bracket(c, guess, panel_size=k)
    human, surprise = whole.middle, np.stack([entropy(q) for q in runs])
    # Centred first, so that what is left of products is no difference of large numbers.
    centre, at = float(human.mean()), float(surprise.mean())
    x, y = human - centre, surprise - at
    product = product - centre * (first + second) + centre**2
    columns = np.concatenate([[x, first - centre, second - centre, product], y, x * y, y * y])
    values = resampled_means(columns, resamples=resamples, seed=seed)
    x, a, b, ab = values[:, :4].T
    y, xy, yy = np.split(values[:, 4:], 3, axis=1)
    between, spread = ab - a * b, yy - y * y
    if not (np.quantile(between, (1 - LEVEL) / 2) > 0 and between[0] > 0 and (spread[0] > 1e-12).all()):
        return withheld("the entropies of people, or of the model, do not differ between items beyond noise")
    # Resamples in which people hardly differ would blow the quotient up.
    known = (between > 0.05 * between[0])[:, None] & (spread > 1e-12)
    r = np.where(known, (xy - x[:, None] * y) / np.sqrt(np.where(known, between[:, None] * spread, 1.0)), np.nan)
    estimate = estimate_over_seeds(r, items=len(c))
    # What a bracket leaves open moves the covariance by at most half its width, and the deviation of people's entropies
    # by half that of the halves.
    sd = float(np.sqrt(between[0]))
    doubt = float((whole.high - whole.low).mean() + min(abs(estimate.value), 1.0) * gap.mean()) / 2 / sd
    if doubt > DOUBT:
        return withheld(
            "few votes do not tell how unsure people are of items that nearly all agree on, and that decides it here: "
            f"whatever the votes, it could be {doubt:.2f} more or less"
        )
    notes = []
    if left_out:
        notes.append(f"{left_out:,} items with fewer than four votes are left out")
    if shared(panel):
        notes.append(THESE_PEOPLE)
    value = float(np.clip(estimate.value, -1.0, 1.0))
    if estimate.low is None or estimate.high is None:
        return Finding(Estimate(value, level=LEVEL), tuple(notes))
    ends = max(-1.0, min(estimate.low - doubt, value)), min(1.0, max(estimate.high + doubt, value))
    if ends[1] - ends[0] > 1.0:
        return withheld(f"the votes leave it anywhere between {ends[0]:.2f} and {ends[1]:.2f}")
    return Finding(Estimate(value, *ends, LEVEL, resamples), tuple(notes))


DOUBT: Final = 0.25
"""How far brackets may leave the entropy correlation open; where further, it is withheld."""


def _entropy_of_cell(p: Any, q: Any) -> Any:
    return entr(p)


def _fitted(function: CellFunction, cells: Counts, runs: Runs, size: Ints, sizes: Ints, *, parts: int) -> Polynomials:
    """Polynomials for all seeds together: where their q lie close, so do their polynomials."""
    seeds = len(runs)
    return fit_polynomials(
        function,
        np.tile(cells, (seeds, 1)),
        runs.reshape(-1, runs.shape[2]),
        panel_size=np.tile(size, seeds),
        sizes=sizes,
        parts=parts,
        items=len(cells),
    )


def _of_cells(function: CellFunction, *, parts: int) -> BracketBy:
    def by(counts: Counts, runs: Runs, sizes: Ints) -> BracketOf:
        fitted = _fitted(function, counts, runs, counts.sum(axis=1), sizes, parts=parts)
        return lambda votes, size, q: fitted.bracket(votes, q, panel_size=size)

    return by


_jsd = _of_cells(jsd_of_cell, parts=96)


def _distances(counts: Counts, runs: Runs, sizes: Ints, size: Ints) -> BracketOf:
    """Sums of |p - q| over cells, of items with few votes by polynomials and of those with many about the plain one."""
    few = sizes[sizes < MANY]
    fitted = _fitted(lambda p, q: np.abs(p - q), counts, runs, size, few, parts=96)

    def of(votes: Counts, size: Ints, q: Table) -> Bracket:
        ends = np.empty((3, len(votes)))
        for some, bracket in ((size < MANY, fitted.bracket), (size >= MANY, bracket_distances)):
            part = bracket(votes[some], q[some], panel_size=size[some])
            ends[:, some] = part.low, part.middle, part.high
        return Bracket(*ends)

    return of


def _manhattan(counts: Counts, runs: Runs, sizes: Ints) -> BracketOf:
    return _distances(counts, runs, sizes, counts.sum(axis=1))


def _entropies(counts: Counts, runs: Runs, sizes: Ints) -> BracketOf:
    """Entropies are people's alone: the model is a guess of them, and that of the mean over seeds will do."""
    return _of_cells(_entropy_of_cell, parts=24)(counts, runs.mean(axis=0, keepdims=True), sizes)


def entropies_of_people(panel: Panel, guess: Table) -> Floats:
    """(items,) people's entropies in nats, corrected for few votes: right in the mean over items, rough for one.

    `guess` are (items, classes) probabilities that may be near people's; where it is far off, brackets are wide.
    """
    of = _entropies(panel.counts, guess[None], np.unique(panel.size))
    return of(panel.counts, panel.size, guess).middle


def _wasserstein(counts: Counts, runs: Runs, sizes: Ints) -> BracketOf:
    def below(q: Any) -> Any:
        return np.clip(cumulated(q), 0.0, 1.0)

    of = _distances(cumulated(counts), below(runs), sizes, counts.sum(axis=1))
    return lambda votes, size, q: of(cumulated(votes), size, below(q))


UNBIASED: Final = ("soft_nll", "expected_accuracy")
"""Linear in the true distribution."""

BRACKETED: Final[dict[str, tuple[BracketBy, float, float | Term]]] = {
    "kl": (_entropies, -1.0, soft_nll),
    "entce": (_entropies, -1.0, lambda _, q: entropy(q)),
    "jsd": (_jsd, 1.0, 0.0),
    "po_jsd": (_jsd, -1 / LN2, 1.0),
    "tvd": (_manhattan, 0.5, 0.0),
    "manhattan": (_manhattan, 1.0, 0.0),
    "soft_accuracy": (_manhattan, -0.5, 1.0),
    "soft_micro_f1": (_manhattan, -0.5, 1.0),
    "wasserstein": (_wasserstein, 1.0, 0.0),
}
"""Sums over classes of a function of one true probability: its bracket, times a factor, plus what is known."""

WIDE: Final = 0.5
"""The width of an interval, as a multiple of the value, from which on the value should not be quoted alone."""

_TOP: Final = (
    "which class most people would choose is not known from few votes; hold the plain score against the best achievable"
)

WHY_NOT: Final = {
    "reverse_kl": "classes that people hardly ever choose decide it, and few votes never show them",
    "abs_entce": "the absolute value of an item's difference needs its entropy, which few votes do not give; see entce",
    "entropy_spearman": "ranks of entropies have no unbiased moments; see entropy_pearson",
    "accuracy": _TOP,
    "second_best_accuracy": _TOP,
    "rank_cs": _TOP,
    "brier_majority": _TOP,
    "ece": _TOP,
    "ece_equal_mass": _TOP,
    "classwise_ece": _TOP,
}
"""Why a metric has no corrected score."""
