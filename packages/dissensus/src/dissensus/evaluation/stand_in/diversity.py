"""Are six models six opinions? How far several models are apart, beside people.

On an item people's answers are independent draws from their label distribution p, so that the deviations of two people
from it, 1_a - p and 1_b - p, do not go together. Those of two models do where models share what sets them apart from
people. With rho the part of the squared deviation |1_a - p|^2 that two models share,

    rho = E (1_a - p).(1_b - p) / E |1_a - p|^2 = (MM - 2 MP + PP) / (1 - 2 MP + PP),

where MM, MP and PP are the chances that two models, a model and a person, or two people give the same answer, the mean
answer of M models is as far from people as that of M / (1 + (M - 1) rho) models of this kind that share nothing: Kish's
(1965) effective sample size, as Kohli (2026, arXiv 2605.29800) asks of judges. Six people are six, and six copies of a
model are one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.arrays import cross_counts
from dissensus.bootstrap import Estimate, json_fields, percentile_estimate, resampled_sums
from dissensus.votes.privacy import LEAST_PEOPLE, groups_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus.arrays import Floats
    from dissensus.evaluation.stand_in.answers import Answers
    from dissensus.votes.table import Votes


@dataclass(frozen=True, kw_only=True)
class Diversity:
    """How far models are apart, and how far people are; intervals are over items, for these models and people.

    Attributes:
        models: how many.
        items: that all of them answered and two people or more judged.
        effective: how many models that share nothing are as close to people in the mean as these; never more than
            there are.
        shared: rho, the part of their deviation from people that two models share.
        spread: the chance that two models give different answers about an item.
        people: the same of two people.
        groups: by attribute and group of annotators, the same of two people of the group.
    """

    models: int
    items: int
    effective: Estimate
    shared: Estimate
    spread: Estimate
    people: Estimate
    groups: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)

    def __str__(self) -> str:
        def percent(value: Estimate) -> str:
            return f"{max(value.value, 0.0):.0%}"

        low, high = self.effective.low, self.effective.high
        ends = "" if low is None or high is None else f" [{low:.1f}, {high:.1f}]"
        apart = [f"of {name} {percent(each)}" for groups in self.groups.values() for name, each in groups.items()]
        by_group = f" ({', '.join(apart)})" if apart else ""
        return (
            f"The {self.models} models count as {self.effective.value:.1f}{ends}: two of them share "
            f"{percent(self.shared)} of what sets them apart from people. Two of them differ on {percent(self.spread)} "
            f"of items, two people on {percent(self.people)}{by_group}."
        )

    def to_dict(self) -> dict[str, Any]:
        """The fields, ready for JSON, and in words."""
        return json_fields(self) | {"words": str(self)}


def diversity(
    votes: Votes, answers: Sequence[Answers], *, least_people: int = LEAST_PEOPLE, resamples: int = 1000, seed: int = 0
) -> Diversity | None:
    """How many opinions several models are; None where there is one, or no items that tell.

    Args:
        votes: single choices of people.
        answers: of each model.
        least_people: no numbers of a group of fewer people are shown.
        resamples: of items, behind each interval.
        seed: random seed.
    """
    # An answer that nobody gave is a class of its own, the same for all models that give it.
    further = dict.fromkeys(name for model in answers for name in model.classes if name not in votes.classes)
    classes = {name: place for place, name in enumerate((*votes.classes, *further))}
    said = np.stack([np.array([*(classes[name] for name in a.classes), -1])[a.label] for a in answers], axis=1)
    known = (said >= 0).all(axis=1) & (votes.panel_size > 1)
    models = len(answers)
    if models < 2 or not known.any():
        return None
    counts, size = votes.counts[known].astype(np.float64), votes.panel_size[known]
    said = said[known]
    share = np.pad(counts / size[:, None], ((0, 0), (0, len(further))))
    chosen = np.zeros(share.shape)
    np.add.at(chosen, (np.arange(len(said))[:, None], said), 1.0)
    columns = [_alike(chosen), (chosen * share).sum(axis=1) / models, _alike(counts), np.ones(len(said))]
    names: list[tuple[str, str]] = []
    for attribute in votes.annotator_attributes:
        assert votes.annotators is not None
        groups = groups_of(votes, attribute, least=least_people)
        for place in np.flatnonzero(groups.shown).tolist():
            own = np.flatnonzero(groups.group[votes.annotators.code] == place)
            theirs = cross_counts(votes.item[own], votes.label[own], votes.counts.shape)[known]
            several = theirs.sum(axis=1) > 1
            if several.any():
                names.append((attribute, groups.names[place]))
                columns += [np.where(several, _alike(theirs), 0.0), several.astype(np.float64)]
    table = np.stack(columns, axis=1)
    once = np.ones(len(table), dtype=np.int64)
    sums = resampled_sums(once, lambda block: table[block], resamples=resamples, seed=seed)
    mm, mp, pp = (sums[:, :3] / sums[:, 3:4]).T
    whole = 1 - 2 * mp + pp
    shared = np.divide(mm - 2 * mp + pp, whole, out=np.zeros_like(whole), where=whole > 0)
    with np.errstate(invalid="ignore"):
        groups_apart = 1 - sums[:, 4::2] / sums[:, 5::2]
    by: dict[str, dict[str, Estimate]] = {}
    for (attribute, name), apart in zip(names, groups_apart.T, strict=True):
        by.setdefault(attribute, {})[name] = percentile_estimate(apart[np.isfinite(apart)])
    return Diversity(
        models=models,
        items=len(said),
        effective=percentile_estimate(models / (1 + (models - 1) * np.clip(shared, 0, 1))),
        shared=percentile_estimate(shared),
        spread=percentile_estimate(1 - mm),
        people=percentile_estimate(1 - pp),
        groups=by,
    )


def _alike(counts: Any) -> Floats:
    """(items,) the chance that two different answers of (items, classes) counts are the same."""
    size = counts.sum(axis=1)
    return np.asarray((counts * (counts - 1)).sum(axis=1) / np.maximum(size * (size - 1), 1))
