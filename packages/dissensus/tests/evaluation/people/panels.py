"""Simulated panels of people in groups, with known answers."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import softmax

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
