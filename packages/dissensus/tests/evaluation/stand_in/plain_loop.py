"""The alternative annotator test word by word: a loop over annotators, items and the others of each item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import false_discovery_control, ttest_1samp, wilcoxon

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass
class Plain:
    annotators: list[str]
    p_values: list[float]
    advantage: list[float]
    won: list[bool]

    @property
    def winning_rate(self) -> float:
        return sum(self.won) / len(self.won)

    @property
    def advantage_probability(self) -> float:
        return float(np.mean(self.advantage))


def same(answer: Any, others: list[Any]) -> float:
    return float(np.mean([answer == other for other in others]))


def minus_rmse(answer: Any, others: list[Any]) -> float:
    return -float(np.sqrt(np.mean([(float(answer) - float(other)) ** 2 for other in others])))


def plain_loop(
    people: Mapping[str, Mapping[str, Any]],
    model: Mapping[str, Any],
    score: Callable[[Any, list[Any]], float],
    *,
    epsilon: float,
    rate: float = 0.05,
    least_items: int = 30,
    reference: Callable[[str, str], bool] = lambda annotator, other: True,
) -> Plain:
    """`reference` says whose votes an annotator is compared with."""
    judges: dict[str, list[str]] = {}
    for annotator, said in people.items():
        for item in said:
            judges.setdefault(item, []).append(annotator)
    names, p_values, advantage = [], [], []
    for annotator, said in people.items():
        differences, model_as_good = [], []
        for item, label in said.items():
            others = [
                people[other][item] for other in judges[item] if other != annotator and reference(annotator, other)
            ]
            if item not in model or not others:
                continue
            human_score, model_score = score(label, others), score(model[item], others)
            model_as_good.append(int(model_score >= human_score))
            differences.append(int(human_score >= model_score) - int(model_score >= human_score))
        if len(differences) < least_items:
            continue
        names.append(annotator)
        advantage.append(float(np.mean(model_as_good)))
        shifted = np.array(differences) - epsilon
        if not shifted.any():
            p_values.append(1.0)
        elif len(differences) < 30:
            p_values.append(float(wilcoxon(shifted, alternative="less", method="approx").pvalue))
        else:
            p_values.append(float(ttest_1samp(shifted, 0, alternative="less").pvalue))
    won = false_discovery_control(p_values, method="by") <= rate
    return Plain(names, p_values, advantage, won.tolist())
