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
    item_only = {name: system.model for name, system in systems.items() if system.runs[0].people is None}
    made = {}
    for name, own in scores.items():
        rivals = [rival for rival, model in item_only.items() if model == systems[name].model and name not in item_only]
        best = min(rivals, key=lambda rival: float(scores[rival].nll.mean()), default=None)
        other = None if best is None else scores[best]
        made[name] = VoteScore(
            nll=mean(own.nll, low=0.0),
            accuracy=mean(1 - own.error, low=0.0, high=1.0),
            against=best,
            nll_difference=None if other is None else mean(own.nll - other.nll),
            accuracy_difference=None if other is None else mean(other.error - own.error),
        )
    return made


def _mean_scores(system: StudySystem, data: TrainingData, split: str) -> VoteScores:
    """The scores of each vote in the mean over a system's seeds."""
    assert data.votes is not None
    rows = votes_of_split(data, split)
    said: Any = system.by_vote.get(split)
    if said is None:
        # Where people are not known, what is said of a vote's item.
        item = data.places_in(split)[data.votes.item[rows]]
        said = (panel[item] for panel in system.predictions[split])
    seeds = [score_votes(data.votes.label[rows], of_votes.astype(np.float64)) for of_votes in said]
    names = ("nll", "brier", "error")
    return VoteScores(**{name: np.mean([getattr(scores, name) for scores in seeds], axis=0) for name in names})
