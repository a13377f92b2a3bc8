"""Agreement of a panel: Krippendorff's alpha, Fleiss' kappa, Gwet's AC1, pairwise agreement, with intervals.

All of them compare judgements of the same item two by two, so only items with two judgements or more count; the
number of judgements may differ from item to item. Where every judgement is one vote, a judgement is that vote. Where
judgements hold several votes (multi-select, or yes / no / unsure for every class), each judgement spreads one unit
equally over its votes, yes and unsure alike, and two judgements agree to the degree that one vote drawn from each
names the same class. A judgement is never compared with itself.

Where all votes name one class, chance alone would agree as well, and alpha and kappa are 0 / 0: not defined, for there
is no variation that a panel could agree on. AC1 is 1.0 there, because its chance counts the classes that nobody chose;
of a single class it is 0 / 0 too.

Intervals are percentile bootstrap intervals over items. If three annotators or more are named, the intervals are over
annotators as well: the same few people may have judged all items, and other people may agree less or more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np
from scipy.special import stdtrit

from dissensus.arrays import cross_counts
from dissensus.bootstrap import Estimate, Seed, distinct_rows, percentile_estimate, resampled_sums, resampled_weights
from dissensus.errors import InputError
from dissensus.frames import Framed
from dissensus.votes.sides import on_one_side, symmetric
from dissensus.votes.table import Votes, check_counts, votes_from_counts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from dissensus.arrays import Counts, Floats, Ints, Table

Level = Literal["nominal", "ordinal", "interval"]
"""What the classes are to Krippendorff's alpha: names, ranks, or numbers on a scale."""

GROUPS: Final = 20
"""Maximum number of groups of annotators that are left out in turn."""

TITLES: Final = {
    "krippendorff_alpha_nominal": "Krippendorff's alpha, nominal",
    "krippendorff_alpha_ordinal": "Krippendorff's alpha, ordinal",
    "krippendorff_alpha_interval": "Krippendorff's alpha, interval",
    "fleiss_kappa": "Fleiss' kappa",
    "gwet_ac1": "Gwet's AC1",
    "pairwise_agreement": "pairwise agreement",
}
"""The statistics of `agreement` in the order of a report, by name, as people call them."""


def krippendorff_alpha(
    votes: Votes | ArrayLike,
    *,
    level: Level = "nominal",
    scale: ArrayLike | None = None,
    resamples: int = 1000,
    seed: Seed = 0,
) -> Estimate:
    """Krippendorff's alpha, 1 - D_o / D_e (Krippendorff 2011, Computing Krippendorff's Alpha-Reliability).

    With m_i judgements of item i, c_ik of them for class k, and n = sum_i m_i, the coincidences are
    o_kl = sum_i (c_ik c_il - [k = l] c_ik) / (m_i - 1), the pooled votes n_k = sum_l o_kl, and

        D_o = sum_kl o_kl d_kl / n,    D_e = sum_kl (n_k n_l - [k = l] n_k) d_kl / (n (n - 1)),

    where d_kl is 1 for k != l (nominal), the squared number of pooled votes from the middle of class k to the middle
    of class l (ordinal), or (scale_k - scale_l)^2 (interval).

    Args:
        votes: votes, or an (items, classes) table of counts.
        level: what the classes are. Ordinal and interval take single choices only.
        scale: (classes,) the place of each class, for the level interval; by default that of the votes
            (`Votes.scale`), or 0, 1, 2, ... for a table of counts.
        resamples: bootstrap resamples of items for the interval; 0 for none.
        seed: of the bootstrap.
    """
    if level not in ("nominal", "ordinal", "interval"):
        raise InputError(f"alpha: unknown level '{level}'; choose nominal, ordinal or interval")
    if level != "nominal" and isinstance(votes, Votes) and not single_choice(votes):
        raise InputError(
            f"alpha: judgements with several votes or none have no single place on a scale, as level='{level}' "
            "needs; use level='nominal', or class_alpha"
        )
    return _estimates(votes, [level], scale=scale, resamples=resamples, seed=seed)[f"krippendorff_alpha_{level}"]


def fleiss_kappa(votes: Votes | ArrayLike, *, resamples: int = 1000, seed: Seed = 0) -> Estimate:
    """Fleiss' kappa, (P_o - P_e) / (1 - P_e) (Fleiss 1971), for any number of judgements per item.

    P_o is the mean over items of P_i, the share of the pairs of judgements of item i that agree; P_e = sum_k p_k^2
    with p_k the share of class k among all votes of those items. With equally many votes per item this is Fleiss'
    formula.
    """
    return _estimates(votes, ["nominal"], resamples=resamples, seed=seed)["fleiss_kappa"]


def gwet_ac1(votes: Votes | ArrayLike, *, resamples: int = 1000, seed: Seed = 0) -> Estimate:
    """Gwet's AC1, (P_o - P_e) / (1 - P_e) (Gwet 2008), which does not collapse where one class dominates.

    P_o is that of `fleiss_kappa`; P_e = sum_k q_k (1 - q_k) / (K - 1) with q_k the mean over items of the share of
    class k, and K the number of classes that could be chosen, voted for or not. Items with one judgement do not
    count, here as in the other statistics (Gwet's own programs let them count in q_k).
    """
    return _estimates(votes, ["nominal"], resamples=resamples, seed=seed)["gwet_ac1"]


def pairwise_agreement(votes: Votes | ArrayLike, *, resamples: int = 1000, seed: Seed = 0) -> Estimate:
    """The share of all pairs of judgements of the same item that agree, not corrected for chance.

    Every pair weighs the same, so an item with m judgements weighs m (m - 1) / 2; the mean that weighs every item the
    same is the P_o of `fleiss_kappa`.
    """
    return _estimates(votes, ["nominal"], resamples=resamples, seed=seed)["pairwise_agreement"]


class Agreement(Framed, dict[str, Estimate]):
    """Statistics of agreement by name, in the order of `TITLES`, with intervals that cover `over`."""

    over: str = "items"

    def __repr__(self) -> str:
        known = any(estimate.low is not None for estimate in self.values())
        lines = [f"{TITLES[name]}: {estimate}" for name, estimate in self.items()]
        return "\n".join(lines + [f"(95 % intervals over {self.over})"] * known)

    def records(self) -> list[dict[str, Any]]:
        """A row per statistic."""
        return [{"statistic": TITLES[name], **estimate.to_dict()} for name, estimate in self.items()]


def agreement(votes: Votes | Any, *, resamples: int = 1000, seed: Seed = 0) -> Agreement:
    """All statistics of `TITLES` by name, from the same resamples.

    The alphas ordinal and interval are there for single choices on an ordered scale only. With the same seed each
    statistic equals what its own function gives.

    Args:
        votes: votes, or what `read_votes` reads, or an (items, classes) array of counts.
        resamples: bootstrap resamples of items for the intervals; 0 for none.
        seed: of the bootstrap, and of the groups of annotators that are left out in turn.

    Examples:
        >>> import dissensus as dis
        >>> dis.agreement(np.array([[3, 0], [0, 3], [2, 1]]), resamples=0)
        Krippendorff's alpha, nominal: 0.600
        Fleiss' kappa: 0.550
        Gwet's AC1: 0.561
        pairwise agreement: 0.778
        >>> round(dis.agreement(np.array([[3, 0], [0, 3], [2, 1]]))["krippendorff_alpha_nominal"].value, 3)
        0.6
    """
    if isinstance(votes, np.ndarray):
        votes = votes_from_counts(votes)
    elif not isinstance(votes, Votes):
        from dissensus.votes.reading import votes_in

        votes = votes_in(votes)
    levels: tuple[Level, ...] = get_args(Level) if votes.ordered and single_choice(votes) else ("nominal",)
    result = _estimates(votes, levels, resamples=resamples, seed=seed)
    agreed = Agreement({name: result[name] for name in TITLES if name in result})
    agreed.over = interval_over(votes)
    return agreed


@dataclass(frozen=True)
class ClassAlpha:
    """How well a panel agrees on one class.

    Attributes:
        alpha: nominal alpha of the three answers yes, no and unsure.
        without_unsure: nominal alpha of yes and no, an unsure counting as no answer; None where no item has two
            such answers.
    """

    alpha: Estimate
    without_unsure: Estimate | None


def class_alpha(votes: Votes, *, resamples: int = 1000, seed: Seed = 0) -> dict[str, ClassAlpha]:
    """Krippendorff's alpha of each class by itself, as if it were the only question: yes, no or unsure.

    A class that a judgement does not vote for was answered with no. The class `none` is not a question and is left out.
    """
    who, said = votes.judgement_annotator, np.ones(votes.n_judgements, dtype=np.int32)
    panel = None if votes.annotators is None or who is None else replace(votes.annotators, code=who)
    answered = Votes(
        item=votes.judgement_item, label=said, items=votes.items, classes=("yes", "no", "unsure"), annotators=panel
    )
    out = {}
    for k, name in enumerate(votes.classes):
        if k == votes.none:
            continue
        no = votes.panel_size - votes.counts[:, k]
        if (no < 0).any():
            raise InputError(
                f"votes: item {votes.items[no.argmin()]} has more votes for class '{name}' than judgements; "
                "a judgement answers each class once"
            )
        mine, label = votes.label == k, said.copy()
        label[votes.judgement_of_vote[mine]] = 0 if votes.unsure is None else 2 * votes.unsure[mine]
        answers = replace(answered, label=label)
        sure = answers.take_judgements(np.flatnonzero(label < 2))
        alpha = krippendorff_alpha(answers, resamples=resamples, seed=seed)
        without: Estimate | None = None
        if len(sure) == len(answers):
            without = alpha
        elif (sure.panel_size >= 2).any():
            without = krippendorff_alpha(sure, resamples=resamples, seed=seed)
        out[name] = ClassAlpha(alpha, without)
    return out


def single_choice(votes: Votes) -> bool:
    """Whether every judgement chose exactly one class, so that the counts hold all there is to compare."""
    return votes.none is None and votes.n_judgements == len(votes)


def vote_weights(votes: Votes) -> Floats:
    """(votes,) 1 / (votes of the vote's judgement), so that every judgement of a person weighs 1."""
    votes.require_people()
    if votes.judgement is None:
        return np.ones(len(votes))
    size = np.bincount(votes.judgement, minlength=votes.n_judgements)
    return np.asarray(1.0 / size[votes.judgement])


def class_mass(votes: Votes) -> Table:
    """(items, classes) judgements of each item for each class, a judgement spread equally over its votes."""
    if votes.n_judgements == len(votes):
        return votes.counts.astype(np.float64)
    shape, weights = (len(votes.items), len(votes.classes)), vote_weights(votes)
    return cross_counts(votes.item, votes.label, shape, weights=weights).astype(np.float64)


@dataclass(frozen=True, eq=False)
class _PairableItems:
    """Items with two judgements or more; those that are alike are one row, which stands for `times` items.

    `mass` is (rows, classes) judgements for each class, w_k; `judgements` (rows,) their number, m; `own` (rows,) the
    agreement of each judgement with itself, summed: the squares of its weights; `pairs` says that they are preferences.
    """

    mass: Table
    judgements: Floats
    own: Floats
    times: Ints
    pairs: bool = False

    def __getitem__(self, block: slice) -> _PairableItems:
        return replace(self, **{name: getattr(self, name)[block] for name in ("mass", "judgements", "own", "times")})

    def pooled(self, sums: Table) -> Table:
        """(n, classes) sums over items; of preferences, over both ways to name the sides of each."""
        return np.asarray(symmetric(sums)) if self.pairs else sums


def _rows(votes: Votes | ArrayLike) -> _PairableItems:
    if not isinstance(votes, Votes):
        return _grouped(_count_table(votes))
    if votes.n_judgements == len(votes):
        return _grouped(votes.counts, pairs=votes.pairs)
    pairable = _pairable(votes.panel_size)
    own = np.bincount(votes.item, weights=vote_weights(votes) ** 2, minlength=len(votes.items))
    return _PairableItems(
        mass=class_mass(votes)[pairable],
        judgements=votes.panel_size[pairable].astype(np.float64),
        own=own[pairable].astype(np.float64),
        times=np.ones(pairable.shape[0], dtype=np.int64),
    )


def _grouped(counts: Counts, *, pairs: bool = False) -> _PairableItems:
    some = counts[_pairable(counts.sum(axis=1))]
    rows, times = distinct_rows(on_one_side(some) if pairs else some)
    judgements = rows.sum(axis=1).astype(np.float64)
    return _PairableItems(mass=rows.astype(np.float64), judgements=judgements, own=judgements, times=times, pairs=pairs)


def _pairable(judgements: Ints) -> Ints:
    """The items with two judgements or more; refuses where there is none."""
    pairable = np.flatnonzero(judgements >= 2)
    if not pairable.size:
        raise InputError(
            "agreement: no item has two judgements, so there is no pair to compare; "
            "collect a second judgement for some of the items"
        )
    return pairable


def _count_table(counts: ArrayLike) -> Counts:
    table = np.asarray(counts)
    if table.ndim != 2 or table.size == 0:
        raise InputError(f"counts: expected a table of items by classes, got an array of shape {table.shape}")
    # Items without votes are no error here: they say nothing about agreement, and are left out.
    empty = ~np.asarray(table != 0).any(axis=1, keepdims=True)
    check_counts(np.where(empty, 1, table), np.arange(table.shape[0]))
    return table.astype(np.int64)


@dataclass(frozen=True)
class _Recipe:
    """Statistics that are functions of sums over items, so that one bootstrap serves them all.

    `columns` makes the (rows, width) contributions of one item of each row, `values` the statistics by name, (n,) each,
    from (n, width) sums.
    """

    width: int
    columns: Callable[[_PairableItems], Table]
    values: Callable[[Table], dict[str, Floats]]


def interval_over(votes: Votes | ArrayLike) -> str:
    """Return the sources of variation that the intervals cover: items, and annotators if there are three or more."""
    who = votes.annotators if isinstance(votes, Votes) else None
    return "items" if who is None or np.unique(who.code).size < 3 else "items and annotators"


def _estimates(
    votes: Votes | ArrayLike, levels: Sequence[Level], *, scale: ArrayLike | None = None, resamples: int, seed: Seed
) -> dict[str, Estimate]:
    """Return the statistics of these levels by name. Their intervals cover the sources that `interval_over` names.

    A jackknife (Tukey 1958) estimates the variance between annotators. Each annotator, or each random group of
    annotators, is left out in turn. The estimate also contains the noise of single votes. A second jackknife estimates
    this noise from groups of randomly assigned votes. Half of the noise is subtracted, for two reasons. The bootstrap
    over items already contains the noise once. The jackknife of a statistic of pairs contains the noise up to twice.
    """
    seed = _replayable(seed)
    drawn = _resampled(votes, levels, scale, resamples=resamples, seed=seed)
    estimates = {name: percentile_estimate(values) for name, values in drawn.items()}
    if not resamples or not isinstance(votes, Votes) or interval_over(votes) == "items":
        return estimates
    rng = np.random.default_rng(seed)
    _, who = np.unique(np.asarray(votes.judgement_annotator), return_inverse=True)
    judged = np.bincount(who)
    groups = min(judged.size, GROUPS)
    group = (rng.permutation(judged.size) % groups)[who]

    def variances(group: Ints) -> dict[str, float]:
        parts = (votes.take_judgements(np.flatnonzero(group != one)) for one in range(groups))
        left = [_resampled(part, levels, scale, resamples=0, seed=seed) for part in parts]
        return {name: (groups - 1) * float(np.var([each[name][0] for each in left])) for name in drawn}

    try:
        every, chance = variances(group), variances(rng.permutation(group))
    except InputError:
        # Without one of the groups, no item has two judgements. The variance between annotators is then unknown.
        every = chance = dict.fromkeys(drawn, np.nan)
    # A few annotators with most of the judgements lower the effective number of annotators.
    equal = judged.sum() ** 2 / (judged**2).sum()
    t = -float(stdtrit(max(1, round(min(groups, equal)) - 1), 0.025))
    for name, each in estimates.items():
        ends: tuple[float | None, float | None] = (None, None)
        if each.low is not None and each.high is not None and not np.isnan(every[name]):
            people = t * max(every[name] - chance[name] / 2, 0.0) ** 0.5
            below, above = (float(np.hypot(end - each.value, people)) for end in (each.low, each.high))
            least = 0.0 if name == "pairwise_agreement" else -1.0
            ends = min(each.low, max(each.value - below, least)), max(each.high, min(each.value + above, 1.0))
        estimates[name] = replace(each, low=ends[0], high=ends[1])
    return estimates


def _resampled(
    votes: Votes | ArrayLike, levels: Sequence[Level], scale: ArrayLike | None, *, resamples: int, seed: int
) -> dict[str, Floats]:
    """Return the (1 + resamples,) values of each statistic: of the votes, then of bootstrap resamples of items."""
    rows, recipes = _rows(votes), []
    if "nominal" in levels:
        recipes.append(_nominal(rows))
    if "interval" in levels:
        recipes.append(_interval(rows, _places(votes, rows, scale)))
    if "ordinal" in levels:
        recipes.append(_ordinal(rows, resamples=resamples, seed=seed))

    def contributions(block: slice) -> Table:
        return np.hstack([recipe.columns(rows[block]) for recipe in recipes])

    sums = resampled_sums(rows.times, contributions, resamples=resamples, seed=seed)
    parts = np.split(sums, np.cumsum([recipe.width for recipe in recipes])[:-1], axis=1)
    values = (recipe.values(part) for recipe, part in zip(recipes, parts, strict=True))
    return {name: of_one for each in values for name, of_one in each.items()}


def _nominal(rows: _PairableItems) -> _Recipe:
    """Alpha, kappa, AC1 and pairwise agreement, from a = sum_k w_k^2 - own, the agreeing ordered pairs of an item."""
    n_classes = rows.mass.shape[1]

    def columns(rows: _PairableItems) -> Table:
        w, m = rows.mass, rows.judgements
        a, pairs = (w * w).sum(axis=1) - rows.own, m * (m - 1)
        return np.column_stack([np.ones_like(m), m, rows.own, pairs, a, a / (m - 1), a / pairs, w, w / m[:, None]])

    def values(sums: Table) -> dict[str, Floats]:
        items, n, own, pairs, agreeing, coincident, agreement = sums[:, :7].T
        mass, shares = map(rows.pooled, np.split(sums[:, 7:], 2, axis=1))
        observed = 1 - agreement / items
        pooled, mean = mass / n[:, None], shares / items[:, None]
        return {
            "krippendorff_alpha_nominal": _one_minus(
                1 - coincident / n, 1 - ((mass**2).sum(axis=1) - own) / (n * (n - 1))
            ),
            "fleiss_kappa": _one_minus(observed, 1 - (pooled**2).sum(axis=1)),
            "gwet_ac1": _one_minus(observed, 1 - (mean * (1 - mean)).sum(axis=1) / (n_classes - 1))
            if n_classes > 1
            else np.full(len(sums), np.nan),
            "pairwise_agreement": np.asarray(agreeing / pairs),
        }

    return _Recipe(7 + 2 * n_classes, columns, values)


def _places(votes: Votes | ArrayLike, rows: _PairableItems, scale: ArrayLike | None) -> Floats:
    n_classes = rows.mass.shape[1]
    if scale is not None:
        places = np.asarray(scale, dtype=np.float64)
    else:
        places = votes.scale if isinstance(votes, Votes) else np.arange(n_classes, dtype=np.float64)
    if places.shape != (n_classes,) or not np.isfinite(places).all():
        raise InputError(
            f"alpha: the scale {places.tolist()} does not fit {n_classes} classes; give one finite number per class"
        )
    return places


def _interval(rows: _PairableItems, places: Floats) -> _Recipe:
    distance = (places[:, None] - places) ** 2

    def columns(rows: _PairableItems) -> Table:
        w = rows.mass
        return np.column_stack([w, ((w @ distance) * w).sum(axis=1) / (rows.judgements - 1)])

    def values(sums: Table) -> dict[str, Floats]:
        pooled, observed = rows.pooled(sums[:, :-1]), sums[:, -1]
        n = pooled.sum(axis=1)
        expected = ((pooled @ distance) * pooled).sum(axis=1)
        return {"krippendorff_alpha_interval": _one_minus(observed / n, expected / (n * (n - 1)))}

    return _Recipe(places.shape[0] + 1, columns, values)


def _ordinal(rows: _PairableItems, *, resamples: int, seed: int) -> _Recipe:
    """Interval alpha with the middle rank r_k of each class as its place, which differs from resample to resample.

    With (r_k - r_l)^2 multiplied out, sum_kl o_kl d_kl is twice sum_k r_k^2 sum_i m_i w_ik / (m_i - 1) minus
    sum_i (sum_k w_ik r_k)^2 / (m_i - 1). The last term needs the ranks, so the same resamples are drawn again for it.
    """
    n_classes = rows.mass.shape[1]

    def columns(rows: _PairableItems) -> Table:
        w, m = rows.mass, rows.judgements
        return np.column_stack([w, w * (m / (m - 1))[:, None]])

    def values(sums: Table) -> dict[str, Floats]:
        pooled, within = map(rows.pooled, np.split(sums, 2, axis=1))
        n = pooled.sum(axis=1)
        # From -1/2 to 1/2 about their mean, so that what follows cancels little.
        rank = (np.cumsum(pooled, axis=1) - pooled / 2) / n[:, None] - 0.5
        observed = (within * rank**2).sum(axis=1)
        for block, weights in resampled_weights(rows.times, resamples=resamples, seed=seed):
            sum_of_ranks = rank @ rows.mass[block].T
            observed -= (weights * sum_of_ranks**2) @ (1 / (rows.judgements[block] - 1))
        expected = (pooled * rank**2).sum(axis=1)
        return {"krippendorff_alpha_ordinal": _one_minus(observed / n, expected / (n - 1))}

    return _Recipe(2 * n_classes, columns, values)


def _replayable(seed: Seed) -> int:
    """A seed that gives the same resamples whenever it is used."""
    return int(seed.integers(2**62)) if isinstance(seed, np.random.Generator) else seed


def _one_minus(observed: Floats, expected: Floats) -> Floats:
    """1 - observed / expected disagreement; NaN where none is expected, for then none can be observed."""
    return np.asarray(1 - np.divide(observed, expected, out=np.full_like(observed, np.nan), where=expected > 0))
