"""Votes beyond k for the items that gain most, in rounds.

A round begins when every item has the votes that it wants. The best use of the remaining budget is worked out
(`allocation.py`). Which items get one more vote now is drawn with known probabilities that favour those in the plan,
and the next round decides again with what those votes have taught. Every decision is kept with its reason and
probability.

What is known of an item before its votes is one Dirichlet distribution of all items, or what a model predicts of it:
then items whose first votes agree with the model get few or no more. How many people the prediction counts for is
learnt from the first k votes, which every item gets (`dissensus.together`).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dissensus.arrays import places_within
from dissensus.labels.mixture import Dirichlet
from dissensus.labels.schemes import weighted
from dissensus.together.allocation import best_votes, expected_error, gains_of_next_votes, panel_concentration
from dissensus_collect.results.collected import pseudonyms, read_judgements, votes_of_judgements
from dissensus_collect.results.drawing import draw_round
from dissensus_collect.store.slots import want

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dissensus.arrays import Floats, Ints, Table
    from dissensus.labels.mixture import Forecast
    from dissensus.votes.table import Votes
    from dissensus_collect.project.reading import Project
    from dissensus_collect.results.collected import Judgements


@dataclass(frozen=True, kw_only=True)
class Decision:
    """One more vote for one item, and why.

    Attributes:
        votes: how many votes the item wants from then on, in total.
        gain: how much the vote is expected to reduce the squared error of the label distribution; beside a model, its
            soft NLL on a further vote, in nats.
        inclusion: the probability with which the item was drawn in this round.
    """

    item: int
    name: str
    votes: int
    gain: float
    inclusion: float
    reason: str


def plan_allocation(cursor: Any, project: Project) -> list[Decision]:
    """What the next round would decide, the largest gain first; empty if no round can begin.

    The draw is seeded by the project's seed and the number of the round, so that asking twice gives the same answer.
    """
    if not project.adaptive.on:
        return []
    cursor.execute("SELECT id, name, wanted, counted FROM item WHERE role = 'vote' AND retired_at IS NULL ORDER BY id")
    rows = cursor.fetchall()
    wanted = np.array([row[2] for row in rows], dtype=np.int64)
    # Votes beyond k that were bought are spent, whether or not they still count.
    cursor.execute("SELECT coalesce(sum(wanted - wanted_before), 0), count(DISTINCT at) FROM decision")
    spent, rounds = cursor.fetchone()
    budget = project.adaptive.budget - int(spent)
    if budget <= 0 or any(row[3] < row[2] for row in rows):
        return []
    judgements, names = read_judgements(cursor, project, exported=False), {row[0]: row[1] for row in rows}
    votes = votes_of_judgements(judgements, project, items=names, annotators=pseudonyms(cursor))
    mass = weighted(votes, "uncertainty-weighted").probabilities * votes.panel_size[:, None]
    forecast: Forecast = Dirichlet(panel_concentration(mass)).forecast
    if project.adaptive.model:
        first = judgements.where(_places(judgements) <= project.k)
        taught = votes_of_judgements(first, project, items=names, annotators=pseudonyms(cursor))
        forecast = _beside_model(taught, project)
    room = np.maximum(project.adaptive.max_k - wanted, 0)
    score: Literal["brier", "soft_nll"] = "soft_nll" if project.adaptive.model else "brier"
    gains = gains_of_next_votes(mass, forecast, votes=max(int(room.max()), 1), score=score)
    eligible = np.flatnonzero(room)
    planned = best_votes(gains, room, budget=budget)[eligible] > 0
    drawn, inclusion = draw_round(planned, seed=_seed(project, int(rounds)))
    error = expected_error(mass, forecast)

    def what(at: int) -> str:
        if project.adaptive.model:
            return f"gain {gains[at, 0]:.2g} nats beside the model"
        return f"reduce a squared error of {error[at]:.2g} by {gains[at, 0]:.2g}"

    decisions = [
        Decision(
            item=rows[at][0],
            name=rows[at][1],
            votes=int(wanted[at]) + 1,
            gain=float(gains[at, 0]),
            inclusion=float(probability),
            reason=(
                f"round {rounds + 1}: vote {wanted[at] + 1} is expected to {what(at)}; "
                f"{'in' if best else 'outside'} the best plan, drawn with probability {probability:.3f}"
            ),
        )
        for at, probability, best in zip(
            eligible[drawn].tolist(), inclusion[drawn].tolist(), planned[drawn].tolist(), strict=True
        )
    ]
    return sorted(decisions, key=lambda decision: (-decision.gain, decision.item))


def allocate(cursor: Any, project: Project, *, now: float) -> list[Decision]:
    """Begin the next round: ask for one more vote on each item that `plan_allocation` names."""
    decisions = plan_allocation(cursor, project)
    decide(cursor, decisions, now=now)
    return decisions


def decide(cursor: Any, decisions: Iterable[Decision], *, now: float) -> None:
    """Ask for the votes of a plan, and keep each decision with its reason and probability."""
    for one in decisions:
        want(cursor, one.item, one.votes, now=now, reason=one.reason, inclusion=one.inclusion)


def inclusion_of_votes(cursor: Any, project: Project, judgements: Judgements) -> tuple[Ints, Floats]:
    """(judgements,) each judgement's place among the counted votes of its item, and the probability of that place.

    Every item gets the first k votes, so places 1 to k have probability 1; a later place has the probability of the
    draw that made it. `drawing.unbiased_shares` weights votes by these, which keeps estimates unbiased.
    """
    place = _places(judgements)
    cursor.execute("SELECT item, wanted, inclusion FROM decision ORDER BY item, wanted, id")
    bought = np.array(cursor.fetchall(), dtype=np.float64).reshape(-1, 3)
    probability = np.ones(len(judgements))
    if bought.size:
        most = int(max(bought[:, 1].max(), place.max(initial=0))) + 1
        made, asked = bought[:, 0] * most + bought[:, 1], judgements.item * most + place
        at = np.minimum(np.searchsorted(made, asked), made.size - 1)
        probability = np.where((made[at] == asked) & (place > project.k), bought[at, 2], 1.0)
    return place, probability


def _places(judgements: Judgements) -> Ints:
    """(judgements,) the place of each, from 1, among those of its item, the earliest first."""
    order = np.lexsort((judgements.assignment, judgements.done_at, judgements.item))
    place = np.empty(len(judgements), dtype=np.int64)
    place[order] = places_within(np.unique(judgements.item, return_counts=True)[1]) + 1
    return place


def _beside_model(votes: Votes, project: Project) -> Forecast:
    """What judgements make of the model's prediction of each item of these votes, from which its strength is learnt."""
    from dissensus.together.combined import beside_votes
    from dissensus.together.combining import learn_combination

    given = beside_votes(weighted(votes, "uncertainty-weighted"), votes, project.predictions)
    runs = [model[:, given.teachers] for model in given.models]
    combination = learn_combination(given.panel.take(given.teachers), runs, seed=project.seed)
    items, classes = given.panel.mass.shape
    pseudo = combination.pseudo_votes([model[:, :items] for model in given.models])

    def forecast(mass: Table) -> Table:
        # Predictions may name classes that the project does not ask for.
        padded = np.pad(mass, ((0, 0), (0, classes - mass.shape[1])))
        return combination.forecast(pseudo, padded)[:, : mass.shape[1]]

    return forecast


def _seed(project: Project, round_number: int) -> int:
    digest = hashlib.sha256(f"{project.seed} adaptive {round_number}".encode()).digest()
    return int.from_bytes(digest[:8], "big")
