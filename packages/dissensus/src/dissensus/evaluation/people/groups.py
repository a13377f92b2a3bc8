"""Groups of people: whose votes a model predicts best, whose distribution it resembles, and whether groups differ.

A group with few votes per item has a noisy distribution, which looks far from any model. So nothing here compares with
such a distribution. Scores are means over single votes, whose expectation does not depend on how many there are. The
distance between a model and a group's distribution is a mean over pairs of different votes of one item,

    (e_v - q_v) . (e_w - q_w),

with the vote e_v as a one-hot vector and its prediction q_v: the noise of two people's votes is independent, so that
its expectation is the squared distance |p - q|^2 between the group's distribution p and the model's q, whatever the
size of the group. It may come out below 0 where the two hardly differ.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.evaluation.people.two_way import mean_over_votes

if TYPE_CHECKING:
    from collections.abc import Callable

    from dissensus.arrays import Codes, Floats, Ints, Table
    from dissensus.bootstrap import Estimate, Seed
    from dissensus.votes.privacy import Groups

PERMUTATIONS: Final = 5000
"""How often people are dealt out to groups anew; a p-value of 0.05 is then known to 0.003."""

APART: Final = (
    "the groups judged different items, and a group's squared distance is over its own; where these are easier, the "
    "system looks closer to the group, also in the test of distances"
)
"""Note on groups that judged different items."""

_HELD: Final = 1 << 21
"""Numbers held at once while people are dealt out."""


@dataclass(frozen=True, kw_only=True)
class GroupScore:
    """How a system does for one group of people.

    Attributes:
        name: of the group.
        people: how many voted.
        votes: how many they cast.
        scores: by metric, the mean over their votes, with an interval for other people and other items.
        disadvantage: the headline metric of their votes minus that of everybody's votes on the same items; above 0 the
            system does worse for them than for others.
        distance: squared distance between the group's distribution and the system's, corrected for the number of
            votes; None where no item has two of the group's votes.
    """

    name: str
    people: int
    votes: int
    scores: dict[str, Estimate]
    disadvantage: Estimate
    distance: Estimate | None


@dataclass(frozen=True, kw_only=True)
class GroupScores:
    """A system by one attribute of people.

    Attributes:
        attribute: its name.
        groups: those that may be shown, the largest first.
        worst: the group with the largest disadvantage; None where fewer than two are shown. A group that is of one mind
            is easier to predict: the distances say which group the system resembles.
        spread: the largest disadvantage minus the smallest; None likewise.
        p_scores: of the hypothesis that the system does equally well for all groups, by permutation of people between
            groups; None where there are fewer than two groups.
        p_distance: of the hypothesis that the system is as far from each group's distribution, likewise.
        p_votes: of the hypothesis that the groups do not differ in what they say of the same items, likewise; no model
            is part of it.
        hidden: a sentence on groups that are not shown; empty where all are.
        apart: a sentence where groups judged different items; empty where all judged the same.
    """

    attribute: str
    groups: tuple[GroupScore, ...]
    worst: str | None
    spread: float | None
    p_scores: float | None
    p_distance: float | None
    p_votes: float | None
    hidden: str
    apart: str

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)


def group_scores(
    groups: Groups,
    scores: dict[str, Floats],
    *,
    headline: str,
    human: Codes,
    model: Table,
    item: Codes,
    annotator: Codes,
    seed: Seed = 0,
) -> GroupScores:
    """The scores of a system by group.

    Of (votes,) values by metric, with `headline` the metric of disadvantages and tests; the (votes,) chosen classes,
    items and people; and the (votes, classes) predicted probabilities.
    """
    member = groups.group[annotator]
    beyond = beyond_item(scores[headline][:, None], item)
    rows = []
    for k in np.flatnonzero(groups.shown).tolist():
        mine = np.flatnonzero(member == k)
        if not mine.size:
            continue
        who: dict[str, Any] = {"item": item[mine], "annotator": annotator[mine]}
        rows.append(
            GroupScore(
                name=groups.names[k],
                people=len(np.unique(annotator[mine])),
                votes=mine.size,
                scores={name: mean_over_votes(values[mine], **who, low=0.0) for name, values in scores.items()},
                disadvantage=mean_over_votes(beyond[mine, 0], **who),
                distance=squared_distance(human[mine], model[mine], **who),
            )
        )
    worst = spread = p_scores = p_distance = p_votes = None
    judged = np.unique(np.stack([member, item], axis=1)[groups.shown[member]], axis=0)
    everywhere = len(np.unique(judged[:, 1])) * len(rows) == len(judged)
    if len(rows) > 1:
        behind = {row.name: row.disadvantage.value for row in rows}
        worst, spread = max(behind, key=behind.__getitem__), max(behind.values()) - min(behind.values())
        dealt: dict[str, Any] = {"group": groups.group, "annotator": annotator, "seed": seed}
        p_scores = permutation_test(beyond, **dealt)
        p_distance = distance_test(_off(human, model), item=item, **dealt)
        p_votes = permutation_test(beyond_item(np.eye(model.shape[1])[human], item), **dealt)
    return GroupScores(
        attribute=groups.attribute,
        groups=tuple(rows),
        worst=worst,
        spread=spread,
        p_scores=p_scores,
        p_distance=p_distance,
        p_votes=p_votes,
        hidden=groups.hidden,
        apart="" if everywhere else f"{groups.attribute}: {APART}",
    )


def beyond_item(values: Table, item: Codes | Ints) -> Table:
    """(votes, columns) values minus their mean over the votes of the same item: what is not the item's doing."""
    size = np.bincount(item)
    means = np.stack([np.bincount(item, weights=column) for column in values.T], axis=1) / np.maximum(size, 1)[:, None]
    return np.asarray(values - means[item])


def permutation_test(
    values: Table, *, group: Codes | Ints, annotator: Codes | Ints, permutations: int = PERMUTATIONS, seed: Seed = 0
) -> float | None:
    """The p-value of "groups do not differ": how often people dealt out to groups at random differ as much.

    People, not votes, are dealt out, each with all their votes: votes of one person are alike. The statistic is sum_g
    |sum of the group's values|^2 / (number of its votes), and the test is exact, whatever the (votes, columns) values
    are, such as scores beyond the item (`beyond_item`). None where the voters are all of one of the (annotators,)
    groups.
    """
    people, who = np.unique(annotator, return_inverse=True)
    columns = (*values.T, np.ones(len(who)))
    sums = np.stack([np.bincount(who, weights=column) for column in columns], axis=1).astype(np.float64)

    def statistic(dealt: Any, groups: int) -> Floats:
        total = np.zeros(len(dealt))
        for k in range(groups):
            of_group = (dealt == k) @ sums
            total += (of_group[:, :-1] ** 2).sum(axis=1) / np.maximum(of_group[:, -1], 1)
        return total

    return _p_value(statistic, group[people], permutations=permutations, held=people.size, seed=seed)


def distance_test(
    off: Table,
    *,
    group: Codes | Ints,
    item: Codes | Ints,
    annotator: Codes | Ints,
    permutations: int = 499,
    seed: Seed = 0,
) -> float | None:
    """The p-value of "the model is as far from each group's distribution": as `permutation_test`, of the distances.

    The statistic is the variance of the groups' distances, weighted by how well each is known, from (votes, classes)
    votes minus predictions. Who judged much cannot be exchanged for who judged little as if they were alike: with
    groups weighted by their votes alone, 8 people of 10 votes against 40 of 50 were found unlike in 23 % of trials in
    which they were alike, and 8 of 50 against 40 of 10 in none. So each distance is divided by its own standard error,
    in every deal anew (Janssen 1997; Chung and Romano 2013).
    """
    from scipy.sparse import csr_array

    people, who = np.unique(annotator, return_inverse=True)
    named, place = np.unique(item, return_inverse=True)
    ones, votes = np.ones(len(place)), np.arange(len(place))
    by_item = csr_array((ones, (place, votes)), shape=(named.size, len(place)))
    by_person = csr_array((ones, (who, votes)), shape=(people.size, len(place)))
    squares = np.einsum("vk,vk->v", off, off)[:, None]

    def of_group(mine: Any) -> tuple[Floats, Floats]:
        """The distance, and its variance, of (votes, permutations) votes that are a group's."""
        others = (by_item @ mine)[place] - 1
        paired = mine * (others > 0)
        sums = sum(column * (by_item @ (column * mine))[place] for column in off.T[:, :, None])
        values = (sums - squares) / np.maximum(others, 1)
        weight = np.maximum(paired.sum(axis=0), 1)
        mean = (values * paired).sum(axis=0) / weight
        moved = (values - mean) * paired / weight * np.where(others > 1, others / np.maximum(others - 1, 1), 2.0)
        # By people and by single votes: what few people say of their own spread is too rough to divide by.
        variance = ((by_person @ moved) ** 2).sum(axis=0) + (moved**2).sum(axis=0)
        return mean, np.maximum(variance, 1e-12)

    def statistic(dealt: Any, groups: int) -> Floats:
        found = [of_group((dealt == k).T[who].astype(np.float64)) for k in range(groups)]
        mean, known = np.stack([each[0] for each in found]), 1 / np.stack([each[1] for each in found])
        middle = (known * mean).sum(axis=0) / known.sum(axis=0)
        return np.asarray((known * (mean - middle) ** 2).sum(axis=0))

    return _p_value(statistic, group[people], permutations=permutations, held=len(place), seed=seed)


def _p_value(
    statistic: Callable[[Any, int], Floats], group: Codes | Ints, *, permutations: int, held: int, seed: Seed
) -> float | None:
    """The share of ways to deal people out, the true one among them, whose statistic is as large.

    The statistic takes (permutations, people) groups and their number; a permutation needs `held` numbers at once.
    """
    _, mine = np.unique(group, return_inverse=True)
    groups = int(mine.max(initial=0)) + 1
    if groups < 2:
        return None
    rng = np.random.default_rng(seed)
    observed = statistic(mine[None], groups)[0]
    as_far, step = 1, max(1, _HELD // held)
    for first in range(0, permutations, step):
        dealt = rng.permuted(np.tile(mine, (min(step, permutations - first), 1)), axis=1)
        # What is equal may differ by rounding.
        as_far += int((statistic(dealt, groups) >= observed * (1 - 1e-9)).sum())
    return as_far / (permutations + 1)


def squared_distance(human: Codes, model: Table, *, item: Codes, annotator: Codes) -> Estimate | None:
    """The squared distance between people's distribution and the model's, over pairs of votes of one item."""
    off = _off(human, model)
    size = np.bincount(item)
    paired = np.flatnonzero(size[item] > 1)
    if not paired.size:
        return None
    sums = np.stack([np.bincount(item, weights=column) for column in off.T], axis=1)
    with_others = np.einsum("vk,vk->v", off, sums[item] - off)[paired] / (size[item[paired]] - 1)
    return mean_over_votes(with_others, item=item[paired], annotator=annotator[paired], pairs=True)


def _off(human: Codes, model: Table) -> Table:
    """(votes, classes) votes as one-hot vectors minus their predictions."""
    off = -model
    off[np.arange(len(human)), human] += 1
    return off
