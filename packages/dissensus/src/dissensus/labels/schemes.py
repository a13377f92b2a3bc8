"""Weighting schemes: readings of the same judgements as label distributions (soft-digits paper, section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.sparse import csr_array
from scipy.special import psi

from dissensus.arrays import cross_counts, row_sum
from dissensus.errors import InputError, choices
from dissensus.labels.distribution import LabelDistribution, TieRule, one_hot
from dissensus.votes.shown_pairs import shown_pairs
from dissensus.votes.sides import both_sides

if TYPE_CHECKING:
    from collections.abc import Callable

    from dissensus.arrays import Floats, Ints, Table
    from dissensus.votes.counting import CountedVotes
    from dissensus.votes.table import Votes

UNSURE_WEIGHT: Final = {"yes-only": 0.0, "equal-weighted": 1.0, "uncertainty-weighted": 0.5}
"""What an unsure counts for, where a yes counts 1."""


def frequency(votes: Votes | CountedVotes) -> LabelDistribution:
    """Every vote counts the same: p_k = (votes for k) / (votes of the item).

    Refuses an item without votes.
    """
    return _distribution(votes, votes.counts / _votes_of_each_item(votes)[:, None], "frequency")


def weighted(votes: Votes, scheme: str) -> LabelDistribution:
    """Every judgement counts the same: the mean over judgements of its normalised weights.

    A yes weighs 1 and an unsure `UNSURE_WEIGHT[scheme]`; a judgement whose weights sum to 0 is one vote for the
    class `none`.
    """
    total = _votes_of_each_item(votes)
    if votes.judgement is None and votes.unsure is None and scheme in UNSURE_WEIGHT:
        return _distribution(votes, votes.counts / total[:, None], scheme)
    judgement, label, weight = judgement_weights(votes, scheme)
    shape = len(votes.items), len(votes.classes)
    mass = cross_counts(votes.judgement_item[judgement], label, shape, weights=weight)
    return _distribution(votes, mass / votes.panel_size[:, None], scheme)


def judgement_vectors(votes: Votes, scheme: str) -> csr_array:
    """(judgements, classes) each judgement's own label distribution under a weighting scheme; sparse, rows sum to 1."""
    judgement, label, weight = judgement_weights(votes, scheme)
    return csr_array((weight, (judgement, label)), shape=(votes.n_judgements, len(votes.classes)))


def judgement_weights(votes: Votes, scheme: str) -> tuple[Any, Any, Floats]:
    """Judgement, class and weight of every vote, weights normalised to sum to 1 within each judgement.

    A judgement without weight has one more entry, for the class `none`.
    """
    if scheme not in UNSURE_WEIGHT:
        raise InputError(f"labels: '{scheme}' is not a weighting scheme{choices(scheme, UNSURE_WEIGHT)}")
    judgement = votes.judgement_of_vote
    if votes.judgement is None and votes.unsure is None:
        return judgement, votes.label, np.ones(len(votes))
    weight = np.ones(len(votes)) if votes.unsure is None else np.where(votes.unsure, UNSURE_WEIGHT[scheme], 1.0)
    total = np.bincount(judgement, weights=weight, minlength=votes.n_judgements)
    silent = np.flatnonzero(total == 0)
    if silent.size and votes.none is None:
        raise InputError(
            f"labels: {silent.size:,} judgements hold no yes, and the votes have no class 'none' for them; "
            "choose equal-weighted or uncertainty-weighted"
        )
    total[silent] = 1.0
    return (
        np.concatenate([judgement, silent]),
        np.concatenate([votes.label, np.full(silent.size, votes.none or 0)]),
        np.concatenate([weight / total[judgement], np.ones(silent.size)]),
    )


def dirichlet(votes: Votes | CountedVotes, *, concentration: float | Floats | None = None) -> LabelDistribution:
    """Shrunk towards the panel's overall habits: p_k = (c_k + a_k) / (n + sum a), a Dirichlet posterior mean.

    Args:
        votes: the votes; c_k are their frequencies.
        concentration: a, in pseudo-votes: one number for every class, or (classes,) numbers; None fits a by maximum
            likelihood of the Dirichlet-multinomial, so that few votes are shrunk as much as the panel warrants.
    """
    counts, total = votes.counts, _votes_of_each_item(votes)
    if concentration is None:
        concentration = fit_concentration(both_sides(counts) if votes.pairs else counts)
    a = np.broadcast_to(np.asarray(concentration, dtype=np.float64), (counts.shape[1],))
    if not (np.isfinite(a).all() and (a >= 0).all() and a.sum() > 0):
        raise InputError(f"labels: concentration {a.tolist()} must be finite, 0 or more, and not all 0")
    return _distribution(votes, (counts + a) / (total + a.sum())[:, None], "dirichlet")


def fit_concentration(counts: Any, *, max_iterations: int = 1000, tolerance: float = 1e-7) -> Floats:
    """Maximum-likelihood Dirichlet-multinomial concentration, (classes,) (Minka 2000, eq. 55).

    Each fixed-point step raises the likelihood. Sums run over the distinct counts, not over items, so the cost does
    not grow with the number of items. The concentration is held below 1e6 pseudo-votes (items that do not differ at
    all have no finite maximum).
    """
    table = np.asarray(counts)
    n_classes = table.shape[1]
    totals = np.unique(table.sum(axis=1), return_counts=True)
    seen = [totals, *(np.unique(table[:, k], return_counts=True) for k in range(n_classes))]
    # Of the totals and of all classes at once: a call of psi, or of a sum, takes longer than its few numbers.
    known, items = (np.concatenate(each) for each in zip(*seen, strict=True))
    size = [len(counted) for counted, _ in seen]
    part = np.repeat(np.arange(1 + n_classes), size)
    begin = np.cumsum([0, *size[:-1]])
    a = np.maximum(table.sum(axis=0) / table.sum(), 1e-6) * 1.0
    for _ in range(max_iterations):
        start = np.concatenate([[a.sum()], a])
        rise = np.add.reduceat(items * (psi(known + start[part]) - psi(start)[part]), begin)
        new = np.maximum(a * rise[1:] / rise[0], 1e-9)
        if new.sum() > 1e6:
            return np.asarray(new * (1e6 / new.sum()))
        if np.abs(new - a).max() < tolerance * start[0]:
            return np.asarray(new)
        a = new
    return np.asarray(a)


def majority(votes: Votes | CountedVotes, *, tie: TieRule = "first", seed: int = 0) -> LabelDistribution:
    """All probability on the most voted class, ties decided by the stated rule.

    Judgements with several votes or unsures are read as equal-weighted first. Of preferences no side is the first: the
    mass of a tie is split.
    """
    tie = "split" if votes.pairs and tie == "first" else tie
    if votes.judgement is None:
        _votes_of_each_item(votes)
        return _distribution(votes, one_hot(votes.counts, tie=tie, seed=seed), "majority")
    return _distribution(votes, weighted(votes, "equal-weighted").one_hot(tie=tie, seed=seed), "majority")


def label_counts(counted: CountedVotes, scheme: str = "frequency", **options: Any) -> LabelDistribution:
    """Label distributions from counts alone (`count_votes`), by a scheme that does not ask who voted.

    The schemes are frequency, dirichlet and majority, each with its own options.
    """
    schemes: dict[str, Callable[..., LabelDistribution]]
    schemes = {"frequency": frequency, "majority": majority, "dirichlet": dirichlet}
    if scheme not in schemes:
        raise InputError(f"labels: {scheme} needs to know who voted; from counts choose {', '.join(schemes)}")
    return schemes[scheme](counted, **options)


def _votes_of_each_item(votes: Votes | CountedVotes) -> Ints:
    total = votes.panel_size if votes.judgement is None else row_sum(votes.counts)
    empty = np.flatnonzero(total == 0)
    if empty.size:
        raise InputError(
            f"labels: item {votes.items[empty[0]]} has zero votes"
            f"{f', and {empty.size - 1:,} more items have none' if empty.size > 1 else ''}; "
            "remove them, or collect at least one vote for each"
        )
    return np.asarray(total)


def _distribution(votes: Votes | CountedVotes, probabilities: Table, scheme: str) -> LabelDistribution:
    mean_uncertainty, unsure_proportion = human_uncertainty(votes)
    return LabelDistribution(
        probabilities=probabilities,
        counts=votes.counts,
        panel_size=votes.panel_size,
        items=votes.items,
        classes=votes.classes,
        scheme=scheme,
        ordered=votes.ordered,
        mean_uncertainty=mean_uncertainty,
        unsure_proportion=unsure_proportion,
        pairs=votes.pairs,
        shown=shown_pairs(votes),
    )


def human_uncertainty(votes: Votes | CountedVotes) -> tuple[Floats, Floats] | tuple[None, None]:
    """Mean uncertainty and unsure proportion of each item (soft-digits paper, section 3).

    Mean uncertainty is the mean over judgements of (classes answered unsure) / (classes asked, without `none`);
    unsure proportion is the share of judgements with at least one unsure. None where no one could say unsure.
    """
    if votes.unsure is None:
        return None, None
    unsure = np.bincount(votes.judgement_of_vote, weights=votes.unsure, minlength=votes.n_judgements)
    asked = len(votes.classes) - (votes.none is not None)
    n_items = len(votes.items)
    size = np.maximum(votes.panel_size, 1)
    mean = np.bincount(votes.judgement_item, weights=unsure / asked, minlength=n_items) / size
    share = np.bincount(votes.judgement_item, weights=unsure > 0, minlength=n_items) / size
    return mean, share
