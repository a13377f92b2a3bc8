"""`update`: continue an annotator model with further votes, instead of starting over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dissensus.labels.dawid_skene import dawid_skene, one_coin
from dissensus.labels.glad import glad
from dissensus.labels.mace import mace
from dissensus.labels.wawa import wawa

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dissensus.labels.annotator_models import AnnotatorModel
    from dissensus.votes.table import Votes

ANNOTATOR_MODELS: Final[Mapping[str, Callable[..., AnnotatorModel]]] = {
    "dawid-skene": dawid_skene,
    "one-coin": one_coin,
    "mace": mace,
    "glad": glad,
    "wawa": wawa,
}
"""The fit of each annotator model, by its name."""


def update(model: AnnotatorModel, votes: Votes) -> AnnotatorModel:
    """Fit the votes, which by now include new ones, from where the last fit ended.

    Items, annotators, gold items and prior counts are matched by name, so new items and new annotators may have come
    in anywhere; classes must be the same. The options are those of the last fit. A thousand votes added to a million
    cost two to seven iterations (a fresh fit: 5 to 22), and end at the optimum that a fresh fit would find within the
    tolerance; where an item stands between two optima, the two fits may choose differently. Wawa takes one pass in any
    case.
    """
    fit = ANNOTATOR_MODELS[model.name]
    if model.name == "wawa":
        return fit(votes, **model.options)
    return fit(votes, start=model, **model.options)
