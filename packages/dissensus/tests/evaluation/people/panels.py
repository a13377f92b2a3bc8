"""Simulated panels of people in groups, with known answers."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import softmax

from dissensus.evaluation.people.groups import distance_test
from dissensus.votes.table import Annotators, Votes


def simulated(
    *,
    items: int = 100,
    people: int = 40,
    classes: int = 3,
    share: float = 0.3,
    bias: float = 0.0,
    part: float = 0.0,
    seed: int = 0,
) -> tuple[Votes, Any]:
    """Votes, and the (items, people, classes) probabilities behind them.

    Args:
        items: how many.
        people: how many, the first half of them in group a, the rest in b.
        classes: how many.
        share: of the items that each person judges.
        bias: standard deviation of people's own log odds.
        part: how far the log odds of the first class of group a lie above those of b.
        seed: of everything.
    """
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 1.5, size=(items, 1, classes)) + bias * rng.normal(size=(1, people, classes))
    logits[:, : people // 2, 0] += part
    truth = softmax(logits, axis=2)
    item, person = np.nonzero(rng.random((items, people)) < share)
    label = (rng.random(len(item))[:, None] > np.cumsum(truth[item, person], axis=1)).sum(axis=1)
    text = np.dtypes.StringDType()
    votes = Votes(
        item=item.astype(np.int32),
        label=np.minimum(label, classes - 1).astype(np.int32),
        items=np.array([f"i{k}" for k in range(items)], dtype=text),
        classes=tuple("abcdefg"[:classes]),
        annotators=Annotators(
            person.astype(np.int32),
            np.array([f"p{k}" for k in range(people)], dtype=text),
            {"group": np.array(["a"] * (people // 2) + ["b"] * (people - people // 2), dtype=text)},
        ),
    )
    return votes, truth


def unequal_trials(
    one: tuple[int, int], other: tuple[int, int], *, habit: float, trials: int, items: int = 100, seed: int = 0
) -> list[float]:
    """p-values of `distance_test` where two groups of (people, votes each) come from one population.

    Classes are three, people lean to them by normal draws of standard deviation `habit` on the log scale, and the model
    says what a person without leanings would.
    """
    out = []
    group, votes = (np.repeat(pair, (one[0], other[0])) for pair in ((0, 1), (one[1], other[1])))
    who = np.repeat(np.arange(len(group)), votes)
    for trial in range(trials):
        rng = np.random.default_rng([seed, trial, *one, *other])
        base = np.log(rng.dirichlet(np.full(3, 0.7), items) + 0.01)
        item = np.concatenate([rng.permutation(items)[:number] for number in votes])
        chance = softmax(base[item] + rng.normal(0, habit, (len(group), 3))[who], axis=1)
        label = np.minimum((rng.random(len(item))[:, None] > np.cumsum(chance, axis=1)).sum(axis=1), 2)
        off = np.eye(3)[label] - softmax(base, axis=1)[item]
        found = distance_test(off, group=group, item=item, annotator=who, permutations=99, seed=trial)
        assert found is not None
        out.append(found)
    return out
