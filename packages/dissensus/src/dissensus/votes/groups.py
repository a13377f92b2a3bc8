"""The same facts by group: items of one source, or annotators of one country; and votes beside original labels."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import entr

from dissensus.arrays import cross_counts
from dissensus.errors import InputError, meant
from dissensus.votes.agreement import class_mass, krippendorff_alpha
from dissensus.votes.annotators import annotator_agreement, normalised_seconds, unsure_judgements, wilson
from dissensus.votes.privacy import LEAST_PEOPLE, groups_of

if TYPE_CHECKING:
    from dissensus.arrays import Counts, Names
    from dissensus.bootstrap import Estimate, Seed
    from dissensus.votes.table import Votes


@dataclass(frozen=True)
class ItemGroup:
    """Items that share the value of an attribute (`name`), with means over them; None where a number is not known.

    `entropy` is in nats; `unanimous_share` and `alpha` (Krippendorff's, nominal) are of the items with two judgements
    or more; `seconds` is the median of judgements, `normalised_seconds` their mean normalised within each annotator,
    and `unsure_rate` the share of judgements with an unsure.
    """

    name: str
    items: int
    judgements_per_item: float
    entropy: float
    unanimous_share: float | None
    alpha: Estimate | None
    seconds: float | None
    normalised_seconds: float | None
    unsure_rate: float | None


@dataclass(frozen=True)
class AnnotatorGroup:
    """Annotators who share the value of an attribute (`name`); None where a number is not known.

    `agreement` is the mean of their judgements with the rest of the panel, `seconds` the median of a judgement, and
    `unsure_rate` the share of judgements with an unsure.
    """

    name: str
    annotators: int
    judgements: int
    agreement: float | None
    seconds: float | None
    unsure_rate: float | None


@dataclass(frozen=True, eq=False)
class OriginalAgreement:
    """How the majority of the votes compares with labels that the items had before.

    Attributes:
        items: items with an original label that is one of the classes.
        same: of these, the share whose majority (the first of tied classes) is the original label.
        low: lower end of the 95 % Wilson interval.
        high: upper end.
        matrix: (classes, classes) items by original class (row) and majority class (column).
        left_out: items without an original label among the classes.
    """

    items: int
    same: float
    low: float
    high: float
    matrix: Counts
    left_out: int

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {**asdict(self), "matrix": self.matrix.tolist()}


def by_items(votes: Votes, attribute: str, *, resamples: int = 1000, seed: Seed = 0) -> tuple[ItemGroup, ...]:
    """The items by the value of one of their attributes, such as a source; largest group first."""
    if attribute not in votes.item_attributes:
        known = ", ".join(votes.item_attributes) or "none"
        remedy = meant(attribute, votes.item_attributes) or "; read its column as one that describes items"
        raise InputError(f"votes: items have no attribute '{attribute}' (they have {known}){remedy}")
    groups = []
    pace = normalised_seconds(votes)
    for name, chosen in _members(votes.item_attributes[attribute]):
        part = votes.take_items(chosen)
        mass, panel = class_mass(part), part.panel_size
        seen, paired = panel > 0, panel >= 2
        entropy = entr(mass[seen] / panel[seen, None]).sum(axis=1)
        mine = np.isin(votes.judgement_item, chosen)
        groups.append(
            ItemGroup(
                name=name,
                items=chosen.size,
                judgements_per_item=float(panel.mean()),
                entropy=float(entropy.mean()) if seen.any() else 0.0,
                unanimous_share=float((np.count_nonzero(mass[paired], axis=1) == 1).mean()) if paired.any() else None,
                alpha=krippendorff_alpha(part, resamples=resamples, seed=seed) if paired.any() else None,
                seconds=_median(part.seconds),
                normalised_seconds=None if pace is None else _mean(pace[mine]),
                unsure_rate=None if part.unsure is None else _mean(unsure_judgements(part)),
            )
        )
    return tuple(groups)


def by_annotators(votes: Votes, attribute: str, *, least: int = LEAST_PEOPLE) -> tuple[AnnotatorGroup, ...]:
    """The annotators by the value of one of their attributes, such as a country; largest group first.

    A group of fewer than `least` people is left out (`dissensus.votes.privacy`).
    """
    groups = groups_of(votes, attribute, least=least)
    panel = annotator_agreement(votes)
    by, doubted = votes.judgement_annotator, unsure_judgements(votes)
    assert by is not None
    rows = []
    for k in np.flatnonzero(groups.shown).tolist():
        chosen = np.flatnonzero(groups.group == k)
        mine = groups.group[by] == k
        compared = panel.compared[chosen]
        agreement = np.nan_to_num(panel.agreement[chosen]) @ compared / max(compared.sum(), 1)
        rows.append(
            AnnotatorGroup(
                name=groups.names[k],
                annotators=chosen.size,
                judgements=int(mine.sum()),
                agreement=float(agreement) if compared.any() else None,
                seconds=None if votes.seconds is None else _median(votes.seconds[mine]),
                unsure_rate=None if votes.unsure is None else _mean(doubted[mine]),
            )
        )
    return tuple(rows)


def original_agreement(votes: Votes, original: Names) -> OriginalAgreement:
    """The majority of the votes beside the items' original labels.

    `original` is (items,) a class name each; one that is no class, such as an empty one, leaves the item out.
    """
    place = {name: k for k, name in enumerate(votes.classes)}
    before = np.array([place.get(str(name), -1) for name in original.tolist()])
    known = (before >= 0) & (votes.panel_size > 0)
    if not known.any():
        raise InputError("votes: no original label is one of the classes; check its column")
    now = class_mass(votes).argmax(axis=1)
    matrix = cross_counts(before[known], now[known], (len(votes.classes), len(votes.classes)))
    n = int(known.sum())
    same = float(np.trace(matrix) / n)
    low, high = wilson(same, n, 0.95)
    return OriginalAgreement(n, same, float(low), float(high), matrix, int((~known).sum()))


def _members(values: Names) -> list[tuple[str, Any]]:
    """The distinct values with the places that have them, the most frequent first."""
    names, code = np.unique(values.astype(np.dtypes.StringDType()), return_inverse=True)
    often_first = np.argsort(-np.bincount(code, minlength=len(names)), kind="stable")
    return [(str(names[k]), np.flatnonzero(code == k)) for k in often_first]


def _median(values: Any) -> float | None:
    known = np.empty(0) if values is None else values[~np.isnan(values)]
    return float(np.median(known)) if known.size else None


def _mean(values: Any) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else None
