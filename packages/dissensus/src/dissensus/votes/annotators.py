"""Each annotator beside the rest of the panel: who agrees, who doubts, who hurries."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from dissensus.arrays import cross_counts, group_medians
from dissensus.errors import InputError
from dissensus.votes.agreement import class_mass, vote_weights
from dissensus.votes.sides import symmetric

if TYPE_CHECKING:
    from dissensus.arrays import Floats, Ints, Mask, Names, Table
    from dissensus.votes.table import Votes


@dataclass(frozen=True, eq=False, kw_only=True)
class AnnotatorAgreement:
    """One row per annotator, as columns of equal length.

    Attributes:
        annotators: names.
        judgements: judgements given.
        votes: votes cast in them.
        compared: judgements of items that somebody else judged too.
        agreement: mean over compared judgements of the share of the others' votes on that item that equal this
            one's; NaN where none was compared.
        low: lower end of the interval of the agreement; NaN likewise.
        high: upper end, likewise.
        expected: the agreement expected by chance: that of this annotator's votes with votes drawn from all that the
            others said about any item; NaN likewise.
        seconds: median seconds of a judgement; NaN where unknown.
        unsure_rate: share of judgements with at least one unsure; NaN where nobody could say unsure.
        level: of the intervals.
    """

    annotators: Names
    judgements: Ints
    votes: Ints
    compared: Ints
    agreement: Floats
    low: Floats
    high: Floats
    expected: Floats
    seconds: Floats
    unsure_rate: Floats
    level: float = 0.95

    def __len__(self) -> int:
        return self.annotators.shape[0]

    def lowest_first(self) -> AnnotatorAgreement:
        """The same rows by the upper end of the interval of their agreement, rising; those without one come last.

        By the agreement itself, those who judged little would come first: a few judgements say little about anybody.
        """
        return self._rows(np.argsort(self.high, kind="stable"))

    def _rows(self, chosen: Any) -> AnnotatorAgreement:
        return replace(self, **{name: values[chosen] for name, values in self._columns().items()})

    def _columns(self) -> dict[str, Any]:
        return {column.name: getattr(self, column.name) for column in fields(self) if column.name != "level"}

    def to_rows(self) -> list[dict[str, Any]]:
        """One dictionary per annotator, ready for JSON: None where a column is NaN."""
        columns = {name: values.tolist() for name, values in self._columns().items()}
        names = ["annotator", *list(columns)[1:]]
        return [
            {name: None if value != value else value for name, value in zip(names, row, strict=True)}
            for row in zip(*columns.values(), strict=True)
        ]


def annotator_agreement(votes: Votes, *, level: float = 0.95) -> AnnotatorAgreement:
    """How far each annotator agrees with the rest of the panel.

    A judgement with several votes is spread equally over them. An annotator's other judgements of the same item are not
    "others". The interval is Wilson's, with the compared judgements as trials: their agreement is a share between 0 and
    1 and so varies no more than a hit or miss of the same mean, which makes the interval wide rather than narrow.
    """
    if votes.annotators is None or votes.judgement_annotator is None:
        raise InputError(
            "annotators: the votes are anonymous, so nobody can be compared with the rest; "
            "read them from a file with a column of annotators"
        )
    own_class, own_total = _own_share(votes, vote_weights(votes))
    others = votes.panel_size[votes.item] - own_total
    same = class_mass(votes)[votes.item, votes.label] - own_class
    return _compared(votes, others=others, same=same, rest=None, level=level)


def models_beside_people(votes: Votes) -> AnnotatorAgreement | None:
    """How far each model agrees with people: as `annotator_agreement`, where the others are people and nobody else.

    None where no vote is from a model, or nobody says from which.
    """
    if votes.judgement_by_model is None or votes.annotators is None:
        return None
    everybody = votes.models_as_people()
    theirs = everybody.take_judgements(np.flatnonzero(votes.judgement_by_model))
    people = everybody.take_judgements(np.flatnonzero(~votes.judgement_by_model))
    mass = class_mass(people)
    result = _compared(
        theirs,
        others=people.panel_size[theirs.item].astype(np.float64),
        same=mass[theirs.item, theirs.label],
        rest=mass.sum(axis=0, keepdims=True),
        level=0.95,
    )
    return result._rows(np.flatnonzero(votes.model_annotators))


def _compared(votes: Votes, *, others: Floats, same: Floats, rest: Table | None, level: float) -> AnnotatorAgreement:
    """Annotators beside others.

    `others` are the (votes,) judgements of the vote's item by others, `same` how many of these name the vote's class.
    `rest` is (1, classes) what others said about any item, for the agreement by chance; None takes, for each, what the
    other annotators said.
    """
    assert votes.annotators is not None
    assert votes.judgement_annotator is not None
    n_annotators, n_classes = len(votes.annotators), len(votes.classes)
    weight, together = vote_weights(votes), others > 0
    agreeing = np.divide(weight * same, others, out=np.zeros(len(votes)), where=together)
    trials = np.bincount(votes.annotators.code, weights=weight * together, minlength=n_annotators)
    compared = np.rint(trials).astype(np.int64)
    hits = np.bincount(votes.annotators.code, weights=agreeing, minlength=n_annotators)
    # Thirds and sevenths need not sum to exactly 1.
    agreement = np.minimum(ratio(hits, compared), 1.0)
    low, high = wilson(agreement, compared, level)
    shape = n_annotators, n_classes
    habits = cross_counts(votes.annotators.code, votes.label, shape, weights=weight * together).astype(np.float64)
    own = symmetric(habits) if votes.pairs else habits
    rest = own.sum(axis=0) - own if rest is None else rest
    by = votes.judgement_annotator
    judgements, unknown = np.bincount(by, minlength=n_annotators), np.full(n_annotators, np.nan)
    unsure = np.bincount(by[unsure_judgements(votes)], minlength=n_annotators)
    return AnnotatorAgreement(
        annotators=votes.annotators.names,
        judgements=judgements,
        votes=np.bincount(votes.annotators.code, minlength=n_annotators),
        compared=compared,
        agreement=agreement,
        low=low,
        high=high,
        # sum_k p_k q_k with p each annotator's shares of the classes and q those of all the others.
        expected=ratio((own * rest).sum(axis=1), own.sum(axis=1) * rest.sum(axis=1)),
        seconds=unknown if votes.seconds is None else group_medians(votes.seconds, by, groups=n_annotators),
        unsure_rate=unknown if votes.unsure is None else ratio(unsure, judgements),
        level=level,
    )


def normalised_seconds(votes: Votes) -> Floats | None:
    """(judgements,) the logarithm of the seconds in standard deviations from the annotator's own mean.

    Some people are quick and others slow; within a person, a slow judgement is a sign of doubt. NaN where the time is
    unknown or 0, and for annotators with fewer than two times or the same time throughout. None where no time is
    known, or nobody is told apart.
    """
    by = votes.judgement_annotator
    if votes.seconds is None or by is None or votes.annotators is None:
        return None
    with np.errstate(divide="ignore"):
        pace = np.log(votes.seconds)
    known = np.isfinite(pace)
    if not known.any():
        return None
    n = len(votes.annotators)
    size = np.bincount(by[known], minlength=n)
    mean = ratio(np.bincount(by[known], weights=pace[known], minlength=n), size)
    off = np.where(known, pace - mean[by], np.nan)
    spread = np.sqrt(ratio(np.bincount(by[known], weights=off[known] ** 2, minlength=n), np.maximum(size - 1, 0)))
    spread[~(spread > 1e-12)] = np.nan
    return np.asarray(off / spread[by])


def unsure_judgements(votes: Votes) -> Mask:
    """(judgements,) true where at least one response of the judgement is unsure."""
    unsure = np.zeros(len(votes)) if votes.unsure is None else votes.unsure
    return np.asarray(np.bincount(votes.judgement_of_vote, unsure, votes.n_judgements) > 0)


def _own_share(votes: Votes, weight: Floats) -> tuple[Floats, Floats]:
    """(votes,) the weight that its annotator gave to the same class of the same item, and to that item in all."""
    assert votes.annotators is not None
    assert votes.judgement_annotator is not None
    n_annotators = len(votes.annotators)
    judged = np.sort(votes.judgement_item.astype(np.int64) * n_annotators + votes.judgement_annotator)
    if not (judged[1:] == judged[:-1]).any():
        return weight, np.ones(len(votes))
    _, person = np.unique(votes.item.astype(np.int64) * n_annotators + votes.annotators.code, return_inverse=True)
    _, choice = np.unique(person * len(votes.classes) + votes.label, return_inverse=True)
    same = np.asarray(np.bincount(choice, weights=weight), dtype=np.float64)
    # Numbers of whole judgements: thirds and sevenths need not sum to them exactly.
    total = np.rint(np.bincount(person, weights=weight))
    return same[choice], total[person]


def wilson(share: Any, trials: Any, level: float) -> tuple[Any, Any]:
    """Wilson's score interval of a share, NaN where there was no trial (Wilson 1927)."""
    z = float(ndtri((1 + level) / 2))
    middle = (share * trials + z**2 / 2) / (trials + z**2)
    half = z * np.sqrt(share * (1 - share) * trials + z**2 / 4) / (trials + z**2)
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


def ratio(above: Floats | Ints, below: Floats | Ints) -> Floats:
    """The quotient, NaN where below is 0."""
    return np.asarray(np.divide(above, below, out=np.full(below.shape[0], np.nan), where=below > 0))
