"""Annotator models: what they share.

Every model explains the votes by an unknown class for each item and the habits of each annotator. For all of them a
judgement is one unit of evidence, spread equally over the classes that it selects, yes and unsure alike: of m selected
classes each counts 1/m of a vote. Single choices are m = 1.

A class that nobody voted for, and that no gold item names, has probability 0 everywhere.

Of preferences, whose sides may be named either way round, each item is fitted together with its mirror image:
confusions and priors are shared between the sides, and the log-likelihood is half of what both have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from scipy.sparse import coo_array, csr_array

from dissensus.arrays import places_of, row_max, row_sum
from dissensus.errors import InputError
from dissensus.labels.schemes import judgement_weights, weighted
from dissensus.votes.sides import with_mirror_images

if TYPE_CHECKING:
    from dissensus.arrays import Codes, Confusions, Floats, Ints, Mask, Names, Table
    from dissensus.votes.table import Votes

Parameters = TypeVar("Parameters")

Gold = Mapping[Any, str]
"""The known class of some items: item name -> class name."""

FLOOR: Final = 1e-10
"""Pseudo-votes added to every count of a confusion matrix or skill, so that logarithms stay finite."""


@dataclass(frozen=True, eq=False, kw_only=True)
class AnnotatorModel:
    """An annotator model fitted to votes.

    Attributes:
        name: dawid-skene, one-coin, mace, glad or wawa.
        items: (items,) names.
        classes: names, in class order.
        annotators: (annotators,) names.
        n_judgements: the judgements behind the fit.
        posterior: (items, classes) probability of each class given all votes; rows sum to 1.
        class_prior: (classes,) probability of each class before any vote.
        confusion: (annotators, true classes, said classes) probabilities, rows sum to 1; Dawid-Skene only.
        skill: (annotators,) one number each: the probability of the right class (one-coin), of knowing it rather
            than guessing (MACE), the share of votes that are the majority's (Wawa), or the log-odds of the right class
            on an item of difficulty 1 (GLAD).
        strategy: (annotators, classes) what an annotator says when guessing, rows sum to 1; MACE only.
        difficulty: (items,) 1 and above are hard, towards 0 is easy: an annotator is right with probability
            sigmoid(skill / difficulty); GLAD only.
        log_likelihood: (iterations,) the objective after each iteration, in nats; it never falls. The log-likelihood
            of the votes, plus the log-density of the parameters where they have a prior; for MACE by variational
            Bayes, its lower bound on the log marginal likelihood. Empty for Wawa, which maximises nothing.
        converged: whether the last iteration gained less than the tolerance.
    """

    name: str
    items: Names
    classes: tuple[str, ...]
    annotators: Names
    n_judgements: int
    posterior: Table
    class_prior: Floats
    log_likelihood: Floats
    converged: bool
    confusion: Confusions | None = None
    skill: Floats | None = None
    strategy: Table | None = None
    difficulty: Floats | None = None

    @property
    def iterations(self) -> int:
        """How many iterations the fit took."""
        return self.log_likelihood.shape[0]

    def __repr__(self) -> str:
        return f"AnnotatorModel({self.report()})"

    def report(self) -> str:
        """The fit in one sentence."""
        panel = (
            f"{self.name}: {self.n_judgements:,} judgements by {len(self.annotators):,} annotators on "
            f"{len(self.items):,} items"
        )
        if self.iterations == 0:
            return f"{panel}, in one pass"
        objective = f"log-likelihood {self.log_likelihood[-1]:,.1f} nats"
        if self.converged:
            return f"{panel}, converged after {self.iterations} iterations at {objective}"
        gain = "" if self.iterations < 2 else f", the last step gaining {np.diff(self.log_likelihood)[-1]:.3g}"
        return f"{panel}, not converged after {self.iterations} iterations at {objective}{gain}; raise max_iterations"


@dataclass(frozen=True, eq=False, kw_only=True)
class FitVotes:
    """Votes as the annotator model of this name reads them.

    `annotator` is (votes,) the place of whose vote it is among the (annotators,) names `annotators`; `weight` (votes,)
    what each vote counts, 1 / (classes that its judgement selects); `frequencies` (items, classes) the shares of votes,
    gold items already decided; `gold_item` and `gold_class` (gold items,) codes; `possible` (classes,) true where a
    vote or a gold item names it.
    """

    name: str
    votes: Votes
    annotator: Codes
    annotators: Names
    weight: Floats
    frequencies: Table
    gold_item: Ints
    gold_class: Ints
    possible: Mask

    @property
    def shape(self) -> tuple[int, int, int]:
        """(items, annotators, classes) of the votes."""
        return len(self.votes.items), len(self.annotators), len(self.votes.classes)

    def even_class_prior(self) -> Floats:
        """(classes,) the same probability for every possible class."""
        return np.asarray(self.possible / self.possible.sum())

    def e_step(self, score: Table, class_prior: Floats, *, learned: bool = True) -> tuple[Table, float]:
        """The posterior, and the log-likelihood of the votes, plus the log-density of a class prior that is learned.

        `score` is (items, classes), the log-likelihood of the votes on each item, were it of each class; it is
        overwritten.
        """
        log_prior = np.log(class_prior, out=np.full(len(class_prior), -np.inf), where=self.possible)
        score += log_prior
        known = score[self.gold_item, self.gold_class]
        score[self.gold_item] = -np.inf
        score[self.gold_item, self.gold_class] = known
        posterior, log_evidence = normalise(score)
        return posterior, float(log_evidence.sum() + learned * FLOOR * log_prior[self.possible].sum())


def read_fit_votes(votes: Votes, name: str, *, gold: Gold | None) -> FitVotes:
    """Check the votes and gold items of a fit, and give them their shapes.

    Refuses anonymous votes, items without votes, and names that the votes do not hold.
    """
    if votes.annotators is None:
        raise InputError(
            f"labels: {name} needs to know who voted, and these votes are anonymous; choose frequency, dirichlet, "
            "majority or a weighting scheme, or give the annotator of each vote"
        )
    if not len(votes):
        raise InputError(f"labels: {name} has no votes to fit; give at least one")
    if len(votes.classes) < 2:
        raise InputError(f"labels: {name} needs two classes or more, and these votes have {len(votes.classes)}")
    gold_item = _find(votes.items, list(gold or ()), "gold item")
    gold_class = _find(np.array(votes.classes), list((gold or {}).values()), "gold class")
    if votes.pairs:
        # What is learnt of an annotator is shared between the sides.
        gold_item = np.concatenate([gold_item, gold_item + len(votes.items)])
        gold_class = np.concatenate([gold_class, len(votes.classes) - 1 - gold_class])
        votes = with_mirror_images(votes)
    assert votes.annotators is not None
    plain = weighted(votes, "equal-weighted")
    frequencies = plain.probabilities
    frequencies[gold_item] = 0.0
    frequencies[gold_item, gold_class] = 1.0
    possible = np.asarray(plain.counts.sum(axis=0) > 0)
    possible[gold_class] = True
    return FitVotes(
        name=name,
        votes=votes,
        annotator=votes.annotators.code,
        annotators=votes.annotators.names,
        weight=judgement_weights(votes, "equal-weighted")[2],
        frequencies=frequencies,
        gold_item=gold_item,
        gold_class=gold_class,
        possible=possible,
    )


def _find(names: Names, wanted: list[Any], what: str) -> Ints:
    if not wanted:
        return np.empty(0, dtype=np.int64)
    given = np.array(wanted)
    place = places_of(given if given.dtype.kind in "iu" else np.array(wanted, dtype=np.dtypes.StringDType()), names)
    missing = np.flatnonzero(place < 0)
    if missing.size:
        raise InputError(
            f"labels: {what} '{wanted[missing[0]]}' is not among the {len(names):,} of the votes; check its "
            "spelling, or leave it out"
        )
    return place


def votes_matrix(fit_votes: FitVotes) -> csr_array[np.float64]:
    """S, items by (annotator, said class): the weight of each vote; an E-step is S @ log(confusion)."""
    n_items, n_annotators, n_classes = fit_votes.shape
    column = _pairs(fit_votes.annotator, fit_votes.votes.label, shape=(n_annotators, n_classes))
    return _sparse(fit_votes.weight, fit_votes.votes.item, column, shape=(n_items, n_annotators * n_classes))


@dataclass(frozen=True, eq=False)
class Agreements:
    """Which entry of the posterior each vote agrees with, and whose vote it is.

    This is all that a model needs that makes no difference between wrong classes. `cell` is (votes,) item * classes +
    said class, rising; `by` (votes,) whose vote it is, of `size` annotators, or pairs of annotator and said class.
    """

    cell: Ints
    by: Ints
    weight: Floats
    shape: tuple[int, int]
    size: int

    def tally(self, worth: Floats) -> Table:
        """(items, classes) the weighted sum of what each vote is worth, over the votes for each class of an item."""
        n_items, n_classes = self.shape
        mass = np.bincount(self.cell, weights=self.weight * worth, minlength=n_items * n_classes)
        return mass.astype(np.float64, copy=False).reshape(self.shape)

    def credit(self, posterior: Table) -> Floats:
        """(size,) the weighted sum of the posterior of the said class, over the votes of each annotator or pair."""
        worth = posterior.ravel()[self.cell]
        worth *= self.weight
        return np.bincount(self.by, weights=worth, minlength=self.size).astype(np.float64, copy=False)


def agreements(fit_votes: FitVotes, *, by_class: bool = False) -> Agreements:
    """The agreements of each annotator, or of each pair of annotator and said class."""
    n_items, n_annotators, n_classes = fit_votes.shape
    cell = _pairs(fit_votes.votes.item, fit_votes.votes.label, shape=(n_items, n_classes))
    by, size = fit_votes.annotator, n_annotators
    if by_class:
        by = _pairs(fit_votes.annotator, fit_votes.votes.label, shape=(n_annotators, n_classes))
        size = n_annotators * n_classes
    # Votes in the order of their cells touch memory once; a sparse matrix is the quickest way to sort them.
    matrix = _sparse(fit_votes.weight, cell, by, shape=(n_items * n_classes, size))
    return Agreements(
        cell=np.repeat(np.arange(n_items * n_classes), np.diff(matrix.indptr)),
        by=matrix.indices.astype(np.int64),
        weight=matrix.data,
        shape=(n_items, n_classes),
        size=size,
    )


def _pairs(first: Codes, second: Codes, *, shape: tuple[int, int]) -> Any:
    """(n,) one code for each pair of codes, in four bytes where they suffice."""
    size: Any = np.int32 if shape[0] * shape[1] < 2**31 else np.int64
    return first.astype(size, copy=False) * size(shape[1]) + second


def _sparse(weight: Floats, row: Any, column: Any, *, shape: tuple[int, int]) -> csr_array[np.float64]:
    matrix = coo_array((weight, (row, column)), shape=shape)
    # Repeated votes may stay separate entries, which products add up; saying so spares a sort of every row.
    matrix.has_canonical_format = True
    return matrix.tocsr()


def normalise(score: Table) -> tuple[Table, Floats]:
    """Posterior rows and their log-normalisers from log-probabilities; overwrites `score`.

    Returns exp(score) with rows scaled to sum to 1, and log(sum(exp(score))) of each row.
    """
    top = row_max(score)
    score -= top[:, None]
    np.exp(score, out=score)
    total = row_sum(score)
    score /= total[:, None]
    return score, top + np.log(total)


def expectation_maximisation(
    fit_votes: FitVotes,
    parameters: Parameters,
    *,
    posterior: Table | None = None,
    m_step: Callable[[Table, Parameters], Parameters],
    e_step: Callable[[Parameters], tuple[Table, float]],
    estimates: Callable[[Parameters], dict[str, Any]],
    max_iterations: int,
    tolerance: float,
) -> AnnotatorModel:
    """Alternate M-steps and E-steps until the objective gains less than `tolerance` nats per judgement, or never for 0.

    One iteration is an M-step and the E-step after it, so that the posterior, the parameters and the objective that
    come out belong together. Without a `posterior` to begin with, it is that of the parameters. An M-step takes the
    posterior and the last parameters, an E-step makes posterior and objective of parameters; `estimates` are the
    parameters as `AnnotatorModel` calls them.
    """
    if max_iterations < 1:
        raise InputError(f"labels: max_iterations is {max_iterations}; give 1 or more")
    if not tolerance >= 0:
        raise InputError(f"labels: tolerance is {tolerance}; give 0 or more nats per judgement")
    # The gain is 0 up to rounding once a fit has settled: a tolerance of 0 asks for all iterations all the same.
    enough = tolerance * fit_votes.votes.n_judgements if tolerance > 0 else -np.inf
    posterior = e_step(parameters)[0] if posterior is None else posterior
    trace: list[float] = []
    converged = False
    while len(trace) < max_iterations and not converged:
        parameters = m_step(posterior, parameters)
        posterior, objective = e_step(parameters)
        trace.append(objective)
        converged = len(trace) > 1 and trace[-1] - trace[-2] < enough
    return fitted(fit_votes, posterior, np.array(trace), converged=converged, **estimates(parameters))


def class_shares(posterior: Table, fit_votes: FitVotes) -> Floats:
    """(classes,) the share of items that each class holds: the M-step of a class prior."""
    mass = np.einsum("ik->k", posterior) + FLOOR * fit_votes.possible
    return np.asarray(mass / mass.sum())


def fitted(
    fit_votes: FitVotes, posterior: Table, log_likelihood: Floats, *, converged: bool, **estimates: Any
) -> AnnotatorModel:
    """The model of a fit, under the names of its votes; mirror images of preferences were there for the fit alone."""
    times = 2 if fit_votes.votes.pairs else 1
    names: Any = fit_votes.votes.items
    if times == 2:
        names = names[: len(names) // 2]
        posterior = posterior[: len(names)]
        estimates |= {name: estimates[name][: len(names)] for name in ("difficulty",) if name in estimates}
    return AnnotatorModel(
        name=fit_votes.name,
        items=names,
        classes=fit_votes.votes.classes,
        annotators=fit_votes.annotators,
        n_judgements=fit_votes.votes.n_judgements // times,
        posterior=posterior,
        log_likelihood=log_likelihood / times,
        converged=converged,
        **estimates,
    )
