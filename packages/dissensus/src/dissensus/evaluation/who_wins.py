"""Who wins? Systems ranked by people's preferences between pairs of their answers, and as each judge would rank them.

Scores are those of `bradley_terry`, in logits: of decided votes, a system that is 1 above another wins 73 %. Degrees
count by their side alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.arrays import places_of
from dissensus.bootstrap import Estimate, json_fields
from dissensus.errors import InputError, choices
from dissensus.evaluation.answer_texts import number_of
from dissensus.evaluation.bradley_terry import Comparisons, estimate, fit_scores, unbounded, votes_on, weights_of
from dissensus.frames import Framed
from dissensus.votes.kinds import people_alone
from dissensus.votes.privacy import LEAST_PEOPLE, groups_of
from dissensus.votes.sides import side_pairs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.arrays import Counts, Floats, Mask, Names
    from dissensus.evaluation.bradley_terry import Fit
    from dissensus.votes.table import Votes

SIDES: Final = ("left", "right")
"""What describes items and names the systems of a pair."""


@dataclass(frozen=True)
class Standing:
    """Where a system stands.

    Attributes:
        system: its name.
        votes: votes on pairs with it.
        wins: its share of them; a tie is half a vote.
        score: in logits, 0 in the mean of all systems; those at equal length, where length is looked at. One that no
            votes bound has no interval, and is left out of the mean.
        rank: 1 for the highest score.
        best_rank: 1 and one more for each system that is significantly better.
        worst_rank: as many as there are systems, less those that are significantly worse.
    """

    system: str
    votes: int
    wins: float
    score: Estimate
    rank: int
    best_rank: int
    worst_rank: int


@dataclass(frozen=True, eq=False, kw_only=True)
class SystemRanking:
    """Systems as some votes rank them.

    Attributes:
        name: whose votes.
        standings: the systems, the best first.
        position: what the side shown on the left gains by being there, in logits.
        tie: how likely a tie is between equals: ln of its chance beside that of either side; None without ties.
        length: what an answer gains by a doubling of its length, in logits; None where it is not looked at.
        votes: how many.
        better: (systems, systems) 1 where the row is significantly better than the column, -1 where worse; in the
            order of `standings`.
    """

    name: str
    standings: tuple[Standing, ...]
    position: Estimate
    tie: Estimate | None
    length: Estimate | None
    votes: int
    better: Counts = field(repr=False)


@dataclass(frozen=True, eq=False, kw_only=True)
class RankedBeside:
    """A judge's ranking, or a group's, beside that of people (of the other people, for a group).

    Attributes:
        ranking: theirs.
        kind: judge or group.
        disagreement: the share of pairs of systems that are ranked the other way round. Its interval begins with the
            pairs that both rank clearly and unlike, and ends with all but those that both rank clearly and alike.
        differences: for each system, their score less people's; without an interval where no votes bound one of them.
    """

    ranking: SystemRanking
    kind: str
    disagreement: Estimate
    differences: Mapping[str, Estimate]


@dataclass(frozen=True, eq=False, kw_only=True)
class WhoWins(Framed):
    """Systems ranked by people, and beside them by each group of people and each judge."""

    people: SystemRanking
    beside: tuple[RankedBeside, ...]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        lines = [f"WhoWins({len(self.people.standings)} systems, {self.people.votes:,} votes of people)"]
        lines += [f"{row.rank}. {row.system}: {row.score}" for row in self.people.standings]
        return "\n".join([*lines, *(self.sentence(other) for other in self.beside)])

    def sentence(self, other: RankedBeside) -> str:
        """How a judge or a group ranks the systems beside people, in a line."""
        systems = len(other.differences)
        pairs, apart = systems * (systems - 1) // 2, other.disagreement
        assert apart.low is not None
        assert apart.high is not None
        return (
            f"{other.ranking.name} ranks {round(apart.value * pairs)} of {pairs} pairs of systems unlike "
            f"{'people' if other.kind == 'judge' else 'the others'}, {round(apart.low * pairs)} of them clearly; "
            f"{round((1 - apart.high) * pairs)} are clearly alike."
        )

    def records(self) -> list[dict[str, Any]]:
        """A row per ranking and system."""
        rankings = [self.people, *(other.ranking for other in self.beside)]
        return [{"by": one.name, **json_fields(row)} for one in rankings for row in one.standings]

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        of = {"people": self.people, **{other.ranking.name: other.ranking for other in self.beside}}
        return {
            "rankings": {name: json_fields(one, but=("better",)) for name, one in of.items()},
            "beside": [{"name": other.ranking.name, **json_fields(other, but=("ranking",))} for other in self.beside],
            "notes": list(self.notes),
        }


def ranking(
    votes: Votes,
    *,
    question: str | None = None,
    by: str | None = None,
    length: Sequence[str] | None = None,
    least_people: int = LEAST_PEOPLE,
) -> WhoWins:
    """Rank the systems whose answers people compared, and see whether judges and groups of people rank them alike.

    Args:
        votes: preferences (`read_votes(..., format="preferences")`) with the systems of each pair; votes of models
            are those of judges, each with a ranking of its own.
        question: the attribute of items that names what both sides answer; its votes are not independent. None takes
            each pair by itself.
        by: an attribute of annotators, whose groups are ranked, each beside the others.
        length: two attributes of items, the texts of the left and the right side or their lengths: scores are then
            those at equal length.
        least_people: smaller groups are left out.

    Examples:
        >>> from dissensus.votes import read_votes
        >>> said = [("x", "y", "model_a"), ("y", "z", "model_a"), ("z", "x", "model_b"), ("x", "y", "tie")]
        >>> rows = [{"item": k, "model_a": a, "model_b": b, "winner": won} for k, (a, b, won) in enumerate(said)]
        >>> [row.system for row in ranking(read_votes(rows, format="preferences")).people.standings]
        ['x', 'y', 'z']
    """
    compared = _comparisons(votes, question=question, length=length)
    _, left_out = people_alone(votes)
    human = np.ones(len(votes), dtype=np.bool_) if votes.by_model is None else ~votes.by_model
    people = _ranked("people", compared, human)
    beside = []
    if by is not None:
        groups = groups_of(votes.people, by, least=least_people)
        assert votes.annotators is not None
        assert votes.people.annotators is not None
        place = places_of(votes.annotators.names, votes.people.annotators.names)
        group = np.where(place < 0, -1, groups.group[place])[votes.annotators.code]
        for code, name in enumerate(groups.names):
            mine = human & (group == code)
            if groups.shown[code] and not mine[human].all():
                others = _ranked("others", compared, human & ~mine)
                beside.append(_beside("group", compared, _ranked(f"{by} {name}", compared, mine), others))
    if votes.annotators is not None:
        for code in np.flatnonzero(votes.model_annotators).tolist():
            judge = _ranked(str(votes.annotators.names[code]), compared, votes.annotators.code == code)
            beside.append(_beside("judge", compared, judge, people))
    elif not human.all():
        beside.append(_beside("judge", compared, _ranked("models", compared, ~human), people))
    notes = [] if votes.annotators is not None else ["who voted is not known: the intervals are for other questions"]
    notes += [] if question is not None else ["each pair counts by itself; question= names those of one question"]
    for one in (people[1], *(other.ranking for other in beside)):
        endless = [row.system for row in one.standings if row.score.low is None]
        if endless and one.position.low is not None:
            notes.append(
                f"{one.name}: no votes bound the scores of {', '.join(endless[:5])}, who always win or always lose "
                "against the others; they have no interval, and only the order of their scores says anything"
            )
    notes += [] if by is None else groups.told
    notes += [left_out.replace("left out", "rankings of their own")] if left_out else []
    return WhoWins(people=people[1], beside=tuple(beside), notes=tuple(notes))


def _comparisons(votes: Votes, *, question: str | None, length: Sequence[str] | None) -> Comparisons:
    about = votes.item_attributes
    if votes.swapped is None:
        raise InputError("ranking: these are no preferences; read them with format='preferences'")
    if not {*SIDES} <= {*about}:
        raise InputError(
            "ranking: nothing names the systems of a pair; name their columns with sides= where it is read"
        )
    for name in (*([question] if question else []), *(length or ())):
        if name not in about:
            raise InputError(f"ranking: items have no attribute '{name}'{choices(name, about)}")
    if length is not None and len(length) != 2:
        raise InputError("ranking: length= takes two attributes of items, of the left and of the right side")
    names = [about[side].astype(np.dtypes.StringDType()) for side in SIDES]
    systems, code = np.unique(np.concatenate(names), return_inverse=True)
    left, right = np.split(code, 2)
    if (left == right).any():
        both = int((left == right).argmax())
        raise InputError(f"ranking: item '{votes.items[both]}' has '{systems[left[both]]}' on both sides; correct it")
    asked = np.arange(len(votes.items)) if question is None else np.unique(about[question], return_inverse=True)[1]
    longer = None
    if length is not None:
        first, second = (np.log2(_lengths(name, about[name], votes.items)) for name in length)
        gap = first - second
        if tuple(length) not in side_pairs(about):
            # Names that say nothing of sides: they lie as the first vote on a pair was shown.
            some, vote = np.unique(votes.item, return_index=True)
            gap[some] = np.where(votes.swapped[vote], -gap[some], gap[some])
        longer = gap[votes.item]
    return Comparisons(
        left=left[votes.item],
        right=right[votes.item],
        shown=np.where(votes.swapped, -1.0, 1.0),
        longer=longer,
        outcome=np.sign((len(votes.classes) - 1) / 2 - votes.label).astype(np.int64),
        question=asked[votes.item].astype(np.int64),
        annotator=np.zeros(len(votes), np.int64)
        if votes.annotators is None
        else votes.annotators.code.astype(np.int64),
        systems=tuple(map(str, systems.tolist())),
    )


def _lengths(name: str, values: Any, items: Names) -> Floats:
    """Numbers as they are, and of texts the number of characters, 1 or more; refuses what is no length."""
    numbers = np.array([number_of(value) for value in values.tolist()])
    texts = values.dtype.kind not in "iufb" and 2 * np.isfinite(numbers).sum() < len(numbers)
    if texts:
        return np.maximum(np.strings.str_len(values.astype(np.dtypes.StringDType())), 1).astype(np.float64)
    wrong = ~(np.isfinite(numbers) & (numbers > 0))
    if wrong.any():
        first = int(wrong.argmax())
        raise InputError(
            f"ranking: item '{items[first]}' has '{values[first]}' in '{name}', which is no length"
            f"{f', and so have {more:,} more' if (more := int(wrong.sum()) - 1) else ''}; give numbers above 0 or texts"
        )
    return numbers


def _ranked(name: str, data: Comparisons, mask: Mask) -> tuple[Fit, SystemRanking]:
    fit, systems = fit_scores(data, mask), len(data.systems)
    met = votes_on(data, fit, by=name)
    endless = unbounded(data, fit)
    known = met > 0
    mean = known & ~endless if (known & ~endless).any() else known
    order = [k for k in np.argsort(-fit.values[:systems], kind="stable").tolist() if known[k]]
    better = np.zeros((len(order), len(order)), dtype=np.int64)
    for row, first in enumerate(order):
        for column, second in enumerate(order[:row]):
            if endless[first] or endless[second]:
                better[column, row] = _always(data, fit, second, first)
                continue
            gap = estimate(data, (fit, weights_of(fit, second, first)))
            better[column, row] = int(gap.low is not None and gap.low > 0)
    better -= better.T
    half = (data.outcome[fit.rows] + 1) / 2
    won = np.bincount(data.left[fit.rows], half, systems) + np.bincount(data.right[fit.rows], 1 - half, systems)
    standings = tuple(
        Standing(
            system=data.systems[k],
            votes=int(met[k]),
            wins=float(won[k] / met[k]),
            score=replace(score, low=None, high=None) if endless[k] else score,
            rank=1 + row,
            best_rank=1 + int((better[row] < 0).sum()),
            worst_rank=len(order) - int((better[row] > 0).sum()),
        )
        for row, k in enumerate(order)
        for score in [estimate(data, (fit, weights_of(fit, k, mean)))]
    )
    effects = [estimate(data, (fit, weights_of(fit, place))) for place in range(systems, len(fit.values))]
    last = 1 + (data.longer is not None)
    return fit, SystemRanking(
        name=name,
        standings=standings,
        position=effects[0],
        length=None if data.longer is None else effects[1],
        tie=effects[last] if len(effects) > last else None,
        votes=len(fit.rows),
        better=better,
    )


def _always(data: Comparisons, fit: Fit, first: int, second: int) -> bool:
    """Whether the first wins against the second on six questions or more, and never loses: chance is below 5 %."""
    left, right, outcome = data.left[fit.rows], data.right[fit.rows], data.outcome[fit.rows]
    gains = np.where((left == first) & (right == second), outcome, 0)
    gains += np.where((left == second) & (right == first), -outcome, 0)
    return bool(len(np.unique(data.question[fit.rows][gains > 0])) >= 6 and (gains >= 0).all())


def _beside(
    kind: str, data: Comparisons, mine: tuple[Fit, SystemRanking], others: tuple[Fit, SystemRanking]
) -> RankedBeside:
    (fit, own), (other_fit, theirs) = mine, others
    place = {row.system: k for k, row in enumerate(theirs.standings)}
    shared = [k for k, row in enumerate(own.standings) if row.system in place]
    names = [own.standings[k].system for k in shared]
    their = [place[name] for name in names]
    upper = np.triu_indices(len(shared), 1)
    clear = (own.better[np.ix_(shared, shared)] * theirs.better[np.ix_(their, their)])[upper]
    # In the order of `own`, every pair stands as they rank it.
    unlike = (np.subtract.outer(their, their) > 0)[upper]
    # Where both of a pair have the same score nothing is ranked.
    score = [
        np.array([ranked.standings[k].score.value for k in places])
        for ranked, places in ((own, shared), (theirs, their))
    ]
    unlike &= np.all([np.abs(np.subtract.outer(values, values)[upper]) > 1e-9 for values in score], axis=0)
    pairs = max(len(clear), 1)
    known = np.isin(data.systems, names)
    endless = unbounded(data, fit) | unbounded(data, other_fit)
    mean = known & ~endless if (known & ~endless).any() else known
    ends = float((clear < 0).sum()) / pairs, 1 - float((clear > 0).sum()) / pairs
    return RankedBeside(
        ranking=own,
        kind=kind,
        disagreement=Estimate(float(unlike.sum()) / pairs, *ends),
        differences={
            data.systems[k]: replace(gap, low=None, high=None) if endless[k] else gap
            for k in np.flatnonzero(known).tolist()
            for gap in [estimate(data, (fit, weights_of(fit, k, mean)), (other_fit, -weights_of(other_fit, k, mean)))]
        },
    )
