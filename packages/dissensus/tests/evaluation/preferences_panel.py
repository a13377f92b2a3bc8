"""Simulated preferences whose scores, position bias and effect of length are known (Davidson's model)."""

from __future__ import annotations

import numpy as np

from dissensus.votes.table import Annotators, Votes

TEXT = np.dtypes.StringDType()


def simulated_preferences(
    rng: np.random.Generator,
    scores: np.ndarray,
    *,
    questions: int = 150,
    annotators: int = 20,
    votes_each: int = 2,
    position: float = 0.3,
    length: float = 0.4,
    tie: float = -0.7,
    shared: float = 0.0,
    judge: np.ndarray | None = None,
    judge_position: float = 0.8,
) -> Votes:
    """Two pairs of systems a question, each judged by so many people, sides drawn at random for each vote.

    `shared` is the standard deviation of what a question adds to one system beside another, the same for all of its
    votes. `judge` are the scores of one model that judges every pair once.
    """
    systems, pairs = len(scores), 2 * questions
    left = rng.integers(systems, size=pairs)
    right = (left + rng.integers(1, systems, size=pairs)) % systems
    left, right = np.minimum(left, right), np.maximum(left, right)
    question = np.repeat(np.arange(questions), 2)
    own = rng.normal(0, shared, (questions, systems))
    longer = rng.normal(0, 1, pairs)
    item = np.repeat(np.arange(pairs), votes_each)
    who = np.concatenate([rng.permutation(annotators)[:votes_each] for _ in range(pairs)])
    of, bias = np.tile(scores, (len(item), 1)), np.full(len(item), position)
    if judge is not None:
        item, who = np.concatenate([item, np.arange(pairs)]), np.concatenate([who, np.full(pairs, annotators)])
        of, bias = np.concatenate([of, np.tile(judge, (pairs, 1))]), np.append(bias, np.full(pairs, judge_position))
    place, swapped = np.arange(len(item)), rng.random(len(item)) < 0.5
    gap = of[place, left[item]] - of[place, right[item]] + (own[question, left] - own[question, right])[item]
    eta = gap + np.where(swapped, -1, 1) * bias + length * longer[item]
    log = np.stack([eta / 2, np.full(len(item), tie), -eta / 2])
    label = (log + rng.gumbel(size=log.shape)).argmax(axis=0)
    names = [f"person {k}" for k in range(annotators)] + (["judge"] if judge is not None else [])
    called = np.array([f"system {k}" for k in range(systems)], dtype=TEXT)
    return Votes(
        item=item.astype(np.int32),
        label=label.astype(np.int32),
        items=np.arange(pairs),
        classes=("left", "tie", "right"),
        annotators=Annotators(who.astype(np.int32), np.array(names, dtype=TEXT)),
        by_model=who == annotators,
        item_attributes={
            "left": called[left],
            "right": called[right],
            "question": question,
            "length_left": 2.0 ** (longer / 2) * 1000,
            "length_right": 2.0 ** (-longer / 2) * 1000,
        },
        ordered=True,
        swapped=swapped,
    )
