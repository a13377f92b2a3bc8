"""How well systems predict single votes: overall, by person and by group, beside what needs no model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.special import stdtrit

from dissensus.arrays import places_of
from dissensus.bootstrap import json_fields
from dissensus.errors import InputError
from dissensus.evaluation.people.baselines import OTHERS, OWN, other_votes, own_frequencies
from dissensus.evaluation.people.groups import GroupScores, group_scores
from dissensus.evaluation.people.two_way import mean_over_votes, two_way_spread
from dissensus.evaluation.people.vote_scores import VotePredictions, score_votes
from dissensus.frames import Framed
from dissensus.item_names import places_of_items
from dissensus.votes.privacy import LEAST_PEOPLE, groups_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from dissensus.arrays import Floats, Ints, Names, Table
    from dissensus.bootstrap import Estimate
    from dissensus.votes.table import Votes

TITLES: Final = {
    "nll": "NLL a vote, nats",
    "brier": "Brier a vote",
    "error": "error rate",
    "distance": "distance on the scale",
}
"""The scores of votes, as people call them; lower is better for each."""

OF_LABELS: Final = ("error", "distance")
"""The scores that a predicted label has."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PeopleScores:
    """A system by person, as columns of equal length.

    Attributes:
        annotators: names.
        votes: (annotators,) votes scored.
        means: by metric, (annotators,) means.
        low: by metric, lower ends of 95 % intervals for other items, given the person; NaN for a single vote.
        high: likewise.
    """

    annotators: Names
    votes: Ints
    means: dict[str, Floats]
    low: dict[str, Floats]
    high: dict[str, Floats]

    def __len__(self) -> int:
        return len(self.annotators)

    def to_rows(self) -> list[dict[str, Any]]:
        """One dictionary a person, ready for JSON."""
        columns: dict[str, list[Any]] = {"annotator": self.annotators.tolist(), "votes": self.votes.tolist()}
        for name, values in self.means.items():
            columns[name] = values.tolist()
            columns[f"{name}_low"] = self.low[name].tolist()
            columns[f"{name}_high"] = self.high[name].tolist()
        return [
            {name: None if value != value else value for name, value in zip(columns, row, strict=True)}
            for row in zip(*columns.values(), strict=True)
        ]


@dataclass(frozen=True, kw_only=True)
class VoteDifference:
    """The first system minus another on the headline metric, vote by vote; below 0 the first is better.

    Attributes:
        system: the other one.
        value: with an interval for other people and other items.
        p_value: of no difference; None where there is no interval.
    """

    system: str
    value: Estimate
    p_value: float | None


@dataclass(frozen=True, eq=False, kw_only=True)
class PeopleEvaluation(Framed):
    """Systems and baselines on single votes.

    Attributes:
        system: the one that is shown by person and by group.
        headline: the metric of differences, disadvantages and tests.
        votes: how many were scored.
        people: how many cast them.
        items: how many they are about.
        scores: by system or baseline, by metric.
        differences: the system minus each other and each baseline.
        by_person: the system by person.
        between_people: by metric, the standard deviation between people that the noise of their votes does not
            explain; 0 where it explains all.
        by_group: the system by each attribute of people.
        notes: what a reader must know.
    """

    system: str
    headline: str
    votes: int
    people: int
    items: int
    scores: dict[str, dict[str, Estimate]]
    differences: tuple[VoteDifference, ...]
    by_person: PeopleScores
    between_people: dict[str, float]
    by_group: tuple[GroupScores, ...]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        about = f"{self.votes:,} votes of {self.people:,} people on {self.items:,} items"
        return f"PeopleEvaluation({about}, {len(self.scores)} systems)"

    def records(self) -> list[dict[str, Any]]:
        """A row per system and metric."""
        return [
            {"system": name, "metric": metric, **estimate.to_dict()}
            for name, scores in self.scores.items()
            for metric, estimate in scores.items()
        ]

    def to_dict(self, *, by_person: bool = False) -> dict[str, Any]:
        """Ready for JSON; people are in the order of their names.

        Beside groups they are left out unless `by_person`: who is in a group follows from its mean and their scores.
        """
        rows = sorted(self.by_person.to_rows(), key=lambda row: str(row["annotator"]))
        told = rows if by_person or not self.by_group else None
        return {**json_fields(self, but=("by_person",)), "by_person": told}


def evaluate_people(
    votes: Votes,
    systems: Mapping[str, VotePredictions],
    *,
    training: Votes | None = None,
    labels: Collection[str] = (),
    attributes: Sequence[str] | None = None,
    least: int = LEAST_PEOPLE,
    only_common: bool = False,
    seed: int = 0,
) -> PeopleEvaluation:
    """Scores of systems that predict single votes, beside two baselines.

    Args:
        votes: with annotators, one vote a judgement.
        systems: by name; the first is shown by person and group, and compared with the others.
        training: votes on other items, for the baseline of each person's own frequencies; without it these are their
            frequencies in all their other votes (leave one out).
        labels: the systems that predict labels, which have no NLL and no Brier score.
        attributes: of annotators, for groups; None takes all.
        least: how many people a group needs for its numbers to be shown.
        only_common: score the votes that every system predicts; without it a vote that one lacks is refused.
        seed: of the permutation tests.
    """
    if votes.annotators is None:
        raise InputError("votes: they are anonymous, so that no person is known; give votes with annotators")
    if votes.judgement is not None:
        raise InputError(
            "votes: judgements hold several classes, and single votes are scored; give votes with one class a judgement"
        )
    if not systems or not all(map(len, systems.values())):
        raise InputError("people: there are no predictions; give at least one system, and a row per vote")
    rows, aligned, notes = align_votes(votes, systems, only_common=only_common)
    human, item, annotator = votes.label[rows], votes.item[rows], votes.annotators.code[rows]
    tables = {**aligned, OWN: own_frequencies(votes, rows, training=training), OTHERS: other_votes(votes, rows)}
    where = "in the training votes" if training is not None else "in all their other votes (leave one out)"
    notes.append(f"{OWN}: how often each person chooses each class {where}, drawn towards everybody's")
    notes.append(f"{OTHERS}: what everybody else said of the item, drawn towards how often each class is chosen")
    named = list(votes.annotator_attributes if attributes is None else attributes)
    if len(named) > 1:
        notes.append(
            f"{len(named)} attributes of people are tested: by chance alone, each p-value falls below 0.05 for one "
            "attribute in 20"
        )
    scores = {}
    for name, table in tables.items():
        scale = votes.scale if votes.ordered and table.shape[1] == len(votes.classes) else None
        values = score_votes(human, table, scale=scale).by_name()
        scores[name] = {metric: values[metric] for metric in values if name not in labels or metric in OF_LABELS}
    system = next(iter(systems))
    first, headline = scores[system], next(iter(scores[system]))
    who: dict[str, Any] = {"item": item, "annotator": annotator}
    by_person, between = _by_person(votes.annotators.names, first, annotator)
    # A group is as large as those of it whose votes are scored.
    scored = votes.take_judgements(rows)
    return PeopleEvaluation(
        system=system,
        headline=headline,
        votes=len(rows),
        people=len(by_person),
        items=len(np.unique(item)),
        scores={
            name: {metric: mean_over_votes(column, **who, low=0.0) for metric, column in columns.items()}
            for name, columns in scores.items()
        },
        differences=tuple(
            _difference(name, first[headline] - columns[headline], **who)
            for name, columns in scores.items()
            if name != system and headline in columns
        ),
        by_person=by_person,
        between_people=between,
        by_group=tuple(
            group_scores(
                groups_of(scored, name, least=least),
                first,
                headline=headline,
                human=human,
                model=aligned[system],
                **who,
                seed=seed,
            )
            for name in named
        ),
        notes=tuple(notes),
    )


def item_predictions(votes: Votes, items: Names, probabilities: Table) -> VotePredictions:
    """What a model that knows only items predicts of each vote on them.

    Args:
        votes: with annotators.
        items: (items,) names of the predicted items.
        probabilities: (items, classes) for them.
    """
    assert votes.annotators is not None
    place = places_of_items(votes.items, items)[votes.item]
    rows = np.flatnonzero(place >= 0)
    return VotePredictions(votes.item[rows], votes.annotators.code[rows], np.asarray(probabilities[place[rows]]))


def align_votes(
    votes: Votes, systems: Mapping[str, VotePredictions], *, only_common: bool = False
) -> tuple[Ints, dict[str, Table], list[str]]:
    """The votes that are scored, each system's (votes, classes) probabilities for them, and notes."""
    assert votes.annotators is not None
    people = len(votes.annotators)
    pair = votes.item.astype(np.int64) * people + votes.annotators.code
    places = {
        name: places_of(pair, system.item.astype(np.int64) * people + system.annotator)
        for name, system in systems.items()
    }
    rows = np.flatnonzero(np.all([place >= 0 for place in places.values()], axis=0))
    notes = []
    for name, place in places.items():
        missing = np.flatnonzero(place < 0)
        if missing.size and not only_common:
            vote = missing[0]
            raise InputError(
                f"{name}: {missing.size:,} votes have no prediction, first item {votes.items[votes.item[vote]]} by "
                f"annotator {votes.annotators.names[votes.annotators.code[vote]]}; predict every vote, or evaluate "
                "only the common ones (only_common=)"
            )
        if spare := len(systems[name]) - len(np.unique(place[place >= 0])):
            notes.append(f"{name}: {spare:,} predictions are for items and annotators without a vote and do not count")
    if not rows.size:
        raise InputError("people: no vote has a prediction of every system; check the names of items and annotators")
    if rows.size < len(votes):
        notes.append(f"{rows.size:,} of {len(votes):,} votes have a prediction of every system; these count")
    return rows, {name: systems[name].probabilities[place[rows]] for name, place in places.items()}, notes


def _difference(system: str, values: Floats, *, item: Any, annotator: Any) -> VoteDifference:
    spread = two_way_spread(values, item=item, annotator=annotator)
    return VoteDifference(
        system=system,
        value=mean_over_votes(values, item=item, annotator=annotator),
        p_value=None if spread is None else spread.p_value(float(values.mean())),
    )


def _by_person(names: Names, scores: Mapping[str, Floats], annotator: Any) -> tuple[PeopleScores, dict[str, float]]:
    """The scores of each person who voted, with Student's interval, and how far people differ beyond noise."""
    people, who = np.unique(annotator, return_inverse=True)
    votes = np.bincount(who)
    several = votes > 1
    means, low, high, between = {}, {}, {}, {}
    for metric, values in scores.items():
        mean = np.bincount(who, weights=values) / votes
        squares = np.bincount(who, weights=(values - mean[who]) ** 2)
        noise = np.where(several, squares / np.maximum(votes - 1, 1), np.nan) / votes
        reach = -stdtrit(np.maximum(votes - 1, 1), 0.025) * np.sqrt(noise)
        means[metric], low[metric], high[metric] = mean, np.maximum(mean - reach, 0.0), mean + reach
        known = np.flatnonzero(several)
        spread = mean[known].var(ddof=1) - noise[known].mean() if known.size > 1 else 0.0
        between[metric] = float(np.sqrt(max(spread, 0.0)))
    return PeopleScores(annotators=names[people], votes=votes, means=means, low=low, high=high), between
