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
    cost two to seven iterations (a fresh fit: 5 to 22).

    What is guaranteed: the objective never falls from one iteration to the next, and the fit stops at a point where an
    iteration gains less than the tolerance. What is not: that this is the optimum that a fresh fit finds. The
    likelihood has several, and the new votes may favour another than the one where the last fit ended; `update` then
    ends below a fresh fit, and some items have another class. Fit afresh before anything is published. Wawa takes one
    pass, and is always the same as a fresh fit.
    """
    fit = ANNOTATOR_MODELS[model.name]
    if model.name == "wawa":
        return fit(votes, **model.options)
    return fit(votes, start=model, **model.options)
