"""How well systems predict single votes: given the item and, where a model knows people, who cast the vote."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.evaluation.people.two_way import mean_over_votes
from dissensus.evaluation.people.vote_scores import VoteScores, score_votes
from dissensus_train.training.annotator_side import votes_of_split

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dissensus.bootstrap import Estimate
    from dissensus_train.studies.scored import StudySystem
    from dissensus_train.training.data import TrainingData


@dataclass(frozen=True, kw_only=True)
class VoteScore:
    """How well one system predicts single votes, in the mean over its seeds; intervals are over people and items.

    NLL is in nats. Differences are vote by vote from `against`, the item-only system of the same model that predicts
    these votes best; None for that system itself, for other item-only systems, and where the model has none.
    """

    nll: Estimate
    accuracy: Estimate
    against: str | None = None
    nll_difference: Estimate | None = None
    accuracy_difference: Estimate | None = None

    def to_dict(self) -> dict[str, Any]:
        """As plain values; what is not there is left out."""
        names = ("nll", "accuracy", "nll_difference", "accuracy_difference")
        values = {name: value.to_dict() for name in names if (value := getattr(self, name)) is not None}
        return values if self.against is None else {**values, "against": self.against}


def score_by_vote(systems: Mapping[str, StudySystem], data: TrainingData, split: str) -> dict[str, VoteScore]:
    """By system, how well it predicts the votes on the items of a split; empty where votes are anonymous."""
    votes = data.votes
    if votes is None or votes.annotators is None:
        return {}
    rows = votes_of_split(data, split)
    mean = partial(mean_over_votes, item=votes.item[rows], annotator=votes.annotators.code[rows])
    scores = {name: _mean_scores(system, data, split) for name, system in systems.items()}
    made = {}
    for name, system in systems.items():
        # The systems of the same model that do not know people.
        rivals = [other for other, its in systems.items() if its.model == system.model and its.runs[0].people is None]
        own = scores[name]
        best = min(rivals, key=lambda rival: float(scores[rival].nll.mean()), default=None)
        known = system.runs[0].people is not None and best is not None
        other = scores[best] if known and best is not None else None
        made[name] = VoteScore(
            nll=mean(own.nll, low=0.0),
            accuracy=mean(1 - own.error, low=0.0, high=1.0),
            against=best if known else None,
            nll_difference=None if other is None else mean(own.nll - other.nll),
            accuracy_difference=None if other is None else mean(other.error - own.error),
        )
    return made


def _mean_scores(system: StudySystem, data: TrainingData, split: str) -> VoteScores:
    """The scores of each vote in the mean over a system's seeds."""
    assert data.votes is not None
    human = data.votes.label[votes_of_split(data, split)]
    by_vote = system.by_vote.get(split)
    seeds = [
        score_votes(human, _of_votes(panel, None if by_vote is None else by_vote[k], data, split).astype(np.float64))
        for k, panel in enumerate(system.predictions[split])
    ]
    names = ("nll", "brier", "error")
    return VoteScores(**{name: np.mean([getattr(scores, name) for scores in seeds], axis=0) for name in names})


def _of_votes(
    panel: np.ndarray[Any, Any], by_vote: np.ndarray[Any, Any] | None, data: TrainingData, split: str
) -> np.ndarray[Any, Any]:
    """(votes, classes) what is said of each vote: where people are not known, what is said of its item."""
    if by_vote is not None:
        return by_vote
    assert data.votes is not None
    return np.asarray(panel[data.places_in(split)[data.votes.item[votes_of_split(data, split)]]])
