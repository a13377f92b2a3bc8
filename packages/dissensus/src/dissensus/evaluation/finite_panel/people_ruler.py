"""How many people is a model worth?

For each item n of its m judgements, drawn without replacement, make a forecast: the posterior mean
f = (alpha + sum of the n) / (|alpha| + n) under a Dirichlet prior, fitted to other items. It is scored on the item's
other judgements, one by one, by NLL or Brier, and so is the model. Both scores are linear in the judgement that is
scored, so nothing needs correcting for few votes. The curve over n = 0 (the marginal), 1, 2, ... is the ruler, and a
model is worth as many people as it takes to score as well.

All means over draws are exact. Which judgement v is scored comes first; then, of single votes, the number of the n that
chose v's class k is hypergeometric, with c_k - 1 of m - 1 votes to draw from. Brier needs means and squares of sums
only, which sampling without replacement gives for any judgement vectors. Only the NLL of judgements with several votes
takes a stated number of random orders.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from scipy.special import gammaln

from dissensus.arrays import places_within
from dissensus.bootstrap import Estimate
from dissensus.errors import InputError
from dissensus.evaluation.comparison.intervals import Spread, spread_over_seeds
from dissensus.evaluation.comparison.resampling import resampled_means
from dissensus.evaluation.finite_panel.shared_annotators import THESE_PEOPLE, clustered, shared, with_annotators
from dissensus.evaluation.metrics.distances import FLOOR, soft_nll
from dissensus.labels.schemes import fit_concentration

if TYPE_CHECKING:
    from dissensus.arrays import Floats, Ints, Mask, Table
    from dissensus.evaluation.finite_panel.panel import Panel
    from dissensus.evaluation.probabilities import Runs

    Ruled = Literal["soft_nll", "brier"]
    """The scores that a ruler can have, under the names of the metrics that differ from them by no model."""

FOLDS: Final = 5
"""Parts of the scored items, each forecast with the prior of the others, where there are no training items."""

ORDERS: Final = 40
"""Random orders of the judgements of an item, for the NLL of judgements with several votes."""

LONGEST: Final = 100
"""The most people a ruler runs to."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Ruler:
    """What n people's judgements are worth as a forecast of the others'.

    Attributes:
        score: "soft_nll" (nats a judgement) or "brier" (1 - 2 q_v + sum_k q_k^2 a judgement).
        values: (1 + most,) the mean score of n = 0, 1, ..., most people, over the items with more than n judgements.
        items: (1 + most,) how many items these are.
        notes: sentences that belong beside it.
        per_item: (1 + most, items) the expected score of each item; NaN where it has no more than n judgements.
        panel: the judgements.
        prior: (items, classes) pseudo-votes alpha behind each item's forecasts.
    """

    score: Ruled
    values: Floats
    items: Ints
    notes: tuple[str, ...]
    per_item: Table = field(repr=False)
    panel: Panel = field(repr=False)
    prior: Table = field(repr=False)

    @property
    def most(self) -> int:
        """The most people that the ruler runs to."""
        return len(self.values) - 1

    def to_dict(self) -> dict[str, Any]:
        """The curve, ready for JSON."""
        return {
            "score": self.score,
            "people": list(range(len(self.values))),
            "values": self.values.tolist(),
            "items": self.items.tolist(),
            "notes": list(self.notes),
        }


@dataclass(frozen=True, kw_only=True)
class Worth:
    """How many people a model is worth.

    Attributes:
        estimate: in people, from 0 to `most`: ends and value that lie off the ruler are set to its end, and the four
            marks below say so; None where there is no ruler.
        fewer: the value is fewer than 0 people: the model scores worse than a constant that knows nothing of the item.
        more: the value is more than `most` people.
        low_open: the interval reaches below 0 people.
        high_open: the interval reaches beyond `most` people.
        most: where the ruler ends.
        notes: sentences that belong beside it.
        reason: why there is no estimate.
    """

    estimate: Estimate | None
    fewer: bool = False
    more: bool = False
    low_open: bool = False
    high_open: bool = False
    most: int = 0
    notes: tuple[str, ...] = ()
    reason: str = ""

    def __str__(self) -> str:
        if self.estimate is None:
            return self.reason
        low, high = self.estimate.low, self.estimate.high
        less, beyond = "fewer than 0", f"more than {self.most}"
        value = less if self.fewer else beyond if self.more else f"{self.estimate.value:.1f}"
        if low is None or high is None or (self.fewer and not high) or (self.more and low == self.most):
            return f"{value} people"
        ends = less if self.low_open else f"{low:.1f}", beyond if self.high_open else f"{high:.1f}"
        return f"{value} people [{ends[0]}, {ends[1]}]"

    def to_dict(self) -> dict[str, Any]:
        """The fields, ready for JSON, and the number in words."""
        return asdict(self) | {"words": str(self)}


def people_ruler(
    panel: Panel,
    *,
    training: Table | None = None,
    prior: Table | None = None,
    score: Ruled = "soft_nll",
    seed: int = 0,
) -> Ruler | str:
    """The ruler of a panel, or the reason why it has none.

    It runs to the largest n that at least half of the items reach, that is, have more than n judgements; at most 100.

    Args:
        panel: the judgements of the scored items.
        training: (items, classes) votes, or sums of judgements, of other items, that the prior is fitted to; without
            it, folds of the scored items stand in for them.
        prior: (items, classes) pseudo-votes behind each item's forecasts, in place of a fitted prior.
        score: which of the two.
        seed: of the folds, and of the random orders where there are any.
    """
    if score not in ("soft_nll", "brier"):
        raise InputError(f"people ruler: it is not for '{score}'; choose soft_nll or brier")
    most = min(int(np.sort(panel.size)[len(panel) // 2]) - 1, LONGEST)
    if most < 1:
        return "most items have a single judgement: nobody is left to score a person's forecast on"
    notes = [_reach(panel, most)]
    if prior is None:
        prior, told = _priors(panel, training, seed=seed)
        notes += told
    if score == "brier":
        per_item = np.stack([_brier(panel, n, prior) for n in range(most + 1)])
    elif panel.single:
        per_item = np.stack([_nll_of_votes(panel, n, prior) for n in range(most + 1)])
    else:
        per_item = _nll_in_random_orders(panel, most, prior, seed=seed)
        notes.append(f"the mean over {ORDERS} random orders of each item's judgements")
    reached = panel.size > np.arange(most + 1)[:, None]
    return Ruler(
        score=score,
        values=np.array([row[mask].mean() for row, mask in zip(per_item, reached, strict=True)]),
        items=reached.sum(axis=1),
        notes=tuple(notes),
        per_item=np.where(reached, per_item, np.nan),
        panel=panel,
        prior=prior,
    )


def _reach(panel: Panel, most: int) -> str:
    reach = int((panel.size > most).sum())
    told = f"the ruler runs to {most} people, which {reach:,} of {len(panel):,} items reach"
    return told + ("; each number of people is compared on the items that reach it" if reach < len(panel) else "")


def _priors(panel: Panel, training: Table | None, *, seed: int) -> tuple[Table, list[str]]:
    """(items, classes) the prior behind each item's forecasts, and how it was found."""
    if training is not None:
        return np.broadcast_to(fit_prior(training), panel.mass.shape), []
    if len(panel) < 2 * FOLDS:
        raise InputError(f"people ruler: {len(panel)} items are too few for a prior; give training items")
    fold = folds_of(panel, seed=seed)
    prior = np.empty_like(panel.mass)
    for each in range(FOLDS):
        prior[fold == each] = fit_prior(panel.mass[fold != each])
    return prior, [f"no training items: the forecasts' prior comes from {FOLDS} folds of the scored items"]


def folds_of(panel: Panel, *, seed: int) -> Ints:
    """(items,) the fold of each item, 0 to FOLDS - 1, of nearly equal size."""
    return np.asarray(np.random.default_rng(seed).permutation(len(panel)) % FOLDS)


def fit_prior(mass: Table) -> Floats:
    """(classes,) maximum-likelihood pseudo-votes; a class that nobody chose gets the share of half a vote."""
    alpha = fit_concentration(mass)
    return np.asarray(np.maximum(alpha, alpha.sum() * 0.5 / (mass.sum() + 0.5 * len(alpha))))


def _nll_of_votes(panel: Panel, n: int, prior: Table) -> Floats:
    """(items,) expected -ln f_v of a vote v, forecast by n of the others; nothing sound where size <= n."""
    return np.asarray(_cells(panel.mass, panel.size, n, prior).sum(axis=1) / panel.size)


def _cells(mass: Table, size: Ints, n: int, prior: Table) -> Table:
    """(items, classes) c_k E[-ln f_k] for a scored vote of class k, among `size` votes."""
    out = np.zeros(mass.shape)
    counts = np.rint(mass).astype(np.int64)
    # All items with the same prior and the same number of votes share one table.
    _, kind = np.unique(prior[:, 0], return_inverse=True)
    first = np.unique(kind, return_index=True)[1]
    for m in np.unique(size[size > n]).tolist():
        chance = _hypergeometric(m - 1, n)
        for which, row in enumerate(first.tolist()):
            some = (size == m) & (kind == which)
            alpha = prior[row]
            surprise = np.log(alpha.sum() + n) - np.log(alpha + np.arange(n + 1)[:, None])
            # Row c of the table is a class with c votes: its scored vote is one of them, and c - 1 can be drawn.
            table = np.arange(m + 1)[:, None] * np.vstack([np.zeros(len(alpha)), chance @ surprise])
            out[some] = np.take_along_axis(table, np.minimum(counts[some], m), axis=0)
    return out


def _hypergeometric(of: int, drawn: int) -> Table:
    """(of + 1, drawn + 1) chance of x marked among `drawn` of `of`, c of which are marked."""
    c, x = np.arange(of + 1)[:, None], np.arange(drawn + 1)
    possible = (x <= c) & (drawn - x <= of - c)

    def log_ways(a: Any, b: Any) -> Any:
        b = np.clip(b, 0, a)
        return gammaln(a + 1) - gammaln(b + 1) - gammaln(a - b + 1)

    return np.where(possible, np.exp(log_ways(c, x) + log_ways(of - c, drawn - x) - log_ways(of, drawn)), 0.0)


def _brier(panel: Panel, n: int, prior: Table) -> Floats:
    return _brier_of_sums(panel.mass, panel.squares, panel.size, n, prior)


def _brier_of_sums(mass: Any, squares: Any, size: Any, n: int, prior: Any) -> Floats:
    """(rows,) expected |x_v|^2 - 2 f.x_v + |f|^2 from sums and sums of squares of judgements x, exactly."""
    m = np.maximum(np.asarray(size, dtype=np.float64), 1.0)[:, None]
    pairs = (mass**2 - squares) / np.maximum(m * (m - 1), 1.0)
    strength = prior.sum(axis=1, keepdims=True) + n
    mean, square = n * mass / m, n * squares / m + n * (n - 1) * pairs
    together = (prior * mass / m + n * pairs) / strength
    return np.asarray((squares / m - 2 * together + (prior**2 + 2 * prior * mean + square) / strength**2).sum(axis=1))


def _nll_in_random_orders(panel: Panel, most: int, prior: Table, *, seed: int) -> Table:
    """(1 + most, items) the mean, over random orders, of what the first n say of the rest."""
    assert panel.item is not None
    assert panel.vectors is not None
    rng = np.random.default_rng(seed)
    strength = prior.sum(axis=1)
    total = np.zeros((1 + most, len(panel)))
    vectors = panel.vectors.toarray()
    size = panel.size
    begin = np.cumsum(size) - size
    for _ in range(ORDERS):
        order = np.lexsort((rng.random(len(panel.item)), panel.item))
        item, place = panel.item[order], places_within(size)
        reached = np.cumsum(vectors[order], axis=0)
        before = reached - vectors[order]
        before -= before[begin[item]]
        some = place <= most
        i, n, before = item[some], place[some], np.maximum(before[some], 0.0)
        rest = np.maximum(panel.mass[i] - before, 0.0)
        surprise = np.log(strength[i] + n)[:, None] - np.log(prior[i] + before)
        total[n, i] += (rest * surprise).sum(axis=1) / (size[i] - n) / ORDERS
    return total


def worth_in_people(ruler: Ruler, model: Runs | Table, *, resamples: int = 1000, seed: int = 0) -> Worth:
    """How many people a model is worth: where its score meets the ruler.

    At each n model and ruler are compared on the same items, and their mean gap has a 95 % interval over items, seeds
    and, where ids are known and shared, annotators. Worth is where the gap crosses 0, between whole n by linear
    interpolation; its interval is every n at which the interval of the gap holds 0.

    Args:
        ruler: of the same items.
        model: (items, classes) probabilities, or (seeds, items, classes).
        resamples: of items; at least 2.
        seed: of the resamples.
    """
    panel = ruler.panel
    runs = np.asarray(model, dtype=np.float64)
    runs = runs[None] if runs.ndim == 2 else runs
    if runs.shape[1:] != panel.mass.shape:
        raise InputError(
            f"worth in people: predictions of shape {runs.shape[1:]} for judgements of shape {panel.mass.shape}; "
            "give one distribution an item"
        )
    scores = np.stack([_model_score(ruler.score, panel, run) for run in runs])
    low, middle, high = _gaps(ruler, runs, scores, resamples=resamples, seed=seed)
    value, least, last = first_crossings(np.stack([middle, high, -low[::-1]])).tolist()
    most = ruler.most - last
    end = float(ruler.most)
    notes = list(ruler.notes)
    if shared(panel) and not _annotators_known(ruler):
        notes.append(THESE_PEOPLE)
    if len(runs) == 1:
        notes.append("over items, given this seed")
    inside = [min(max(each, 0.0), end) for each in (value, min(least, value), max(most, value))]
    return Worth(
        estimate=Estimate(inside[0], inside[1], inside[2], 0.95, resamples),
        fewer=value < 0,
        more=value > end,
        low_open=least < 0,
        high_open=most > end,
        most=ruler.most,
        notes=tuple(notes),
    )


def _model_score(score: Ruled, panel: Panel, run: Table) -> Floats:
    if score == "soft_nll":
        return np.asarray(soft_nll(panel.shares, run))
    return np.asarray((panel.squares / panel.size[:, None] - 2 * run * panel.shares + run * run).sum(axis=1))


def _gaps(ruler: Ruler, runs: Runs, scores: Table, *, resamples: int, seed: int) -> tuple[Floats, Floats, Floats]:
    """Lower end, value and upper end of model minus ruler, (1 + most,) each."""
    ends = np.empty((3, len(ruler.values)))
    reach = ruler.items
    for items in np.unique(reach).tolist():
        people = np.flatnonzero(reach == items)
        some = np.isfinite(ruler.per_item[people[0]])
        columns = np.concatenate([scores[:, some], ruler.per_item[np.ix_(people, some)]])
        values = resampled_means(columns, resamples=resamples, seed=seed)
        ours = values[:, : len(runs)]
        for place, n in enumerate(people.tolist()):
            gap = ours - values[:, len(runs) + place, None]
            spread = spread_over_seeds([gap], items=items)
            middle = float(gap[0].mean())
            half = np.inf if spread is None else _with_people(spread, ruler, runs, n, some).half_width()
            ends[:, n] = middle - half, middle, middle + half
    return ends[0], ends[1], ends[2]


def _annotators_known(ruler: Ruler) -> bool:
    return ruler.panel.single or ruler.score == "brier"


def _with_people(spread: Spread, ruler: Ruler, runs: Runs, n: int, some: Mask) -> Spread:
    """The spread of the gap at n people, over annotators too, from what leaving out each judgement does."""
    panel = ruler.panel
    if not shared(panel) or not _annotators_known(ruler):
        return spread
    # Without one of its judgements the smallest panel cannot have n left beside the one that is scored.
    n = min(n, int(panel.size[some].min()) - 2)
    if n < 0:
        return spread
    part = panel.take(some)
    deletion = _deletions(part, ruler.prior[some], runs[:, some], n, ruler.score)
    return with_annotators(spread, clustered(part, deletion))


def _deletions(panel: Panel, prior: Table, runs: Runs, n: int, score: Ruled) -> Floats:
    """(judgements,) the gap at n people of each judgement's item without it, minus the gap with all."""
    assert panel.item is not None
    assert panel.vectors is not None
    item, size = panel.item, panel.size
    left = size[item] - 1
    if score == "soft_nll":
        weights = -np.log(np.maximum(runs, FLOOR)).mean(axis=0)
        label = np.asarray(panel.vectors.argmax(axis=1)).ravel()
        cells, fewer = (_cells(each, size - 1, n, prior) for each in (panel.mass, np.maximum(panel.mass - 1, 0.0)))
        all_cells = cells.sum(axis=1)
        without = (all_cells[item] + fewer[item, label] - cells[item, label]) / left
        ruler = without - _nll_of_votes(panel, n, prior)[item]
        ours = (panel.shares * weights).sum(axis=1)
        return np.asarray((ours[item] - weights[item, label]) / left - ruler)
    x = panel.vectors.toarray()
    mean = runs.mean(axis=0)
    without = _brier_of_sums(panel.mass[item] - x, panel.squares[item] - x * x, left, n, prior[item])
    ruler = without - _brier(panel, n, prior)[item]
    of_vote = (x * x - 2 * x * mean[item]).sum(axis=1)
    of_item = ((panel.squares - 2 * panel.mass * mean) / size[:, None]).sum(axis=1)
    return np.asarray((of_item[item] - of_vote) / left - ruler)


def first_crossings(gaps: Table) -> Floats:
    """(rows,) where a gap over n = 0, 1, ... first crosses from below 0 to above it, linear between whole n.

    -inf where it begins above 0, inf where it stays below. Uneven panels can bring several crossings; read backwards
    and with its sign changed, the first is the last.

    >>> first_crossings(np.array([[-1.0, -0.5, 0.5], [-1.0, -1.0, -1.0], [2.0, 3.0, 4.0], [0.0, 1.0, 1.0]])).tolist()
    [1.5, inf, -inf, 0.0]
    """
    above = gaps >= 0
    n = above.argmax(axis=1)
    here, before = (np.take_along_axis(gaps, each[:, None], axis=1)[:, 0] for each in (n, np.maximum(n - 1, 0)))
    with np.errstate(divide="ignore", invalid="ignore"):  # nothing is interpolated before 0
        crossed = np.where(n > 0, n - here / (here - before), np.where(here == 0, 0.0, -np.inf))
    return np.where(above.any(axis=1), crossed, np.inf)
