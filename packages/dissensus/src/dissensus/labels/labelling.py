"""From votes to label distributions by the name of a scheme."""

from __future__ import annotations

import inspect
import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from dissensus.errors import InputError, VotesWarning, choices
from dissensus.labels.dawid_skene import dawid_skene, one_coin
from dissensus.labels.glad import glad
from dissensus.labels.mace import mace
from dissensus.labels.schemes import UNSURE_WEIGHT, dirichlet, frequency, majority, weighted
from dissensus.labels.wawa import wawa
from dissensus.votes.table import Votes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from dissensus.labels.annotator_models import AnnotatorModel
    from dissensus.labels.distribution import LabelDistribution


ONE_VOTE: Final = "no item has two judgements: each label distribution is one vote, and says nothing of disagreement"
"""Warning on labels made from one judgement per item."""


@dataclass(frozen=True)
class Scheme:
    """A way from votes to label distributions: what it is in a line, `make`, and its options with their defaults."""

    what: str
    make: Callable[..., LabelDistribution]
    options: dict[str, Any]


def label(votes: Votes | Any, scheme: str = "frequency", **options: Any) -> LabelDistribution:
    """The label distribution of each item: `label(votes, "uncertainty-weighted")`.

    Args:
        votes: who said what, or what `read_votes` reads: a frame, a list of dictionaries, a path.
        scheme: one of `SCHEMES`.
        options: what this scheme takes, `SCHEMES[scheme].options`; and of a table, what `read_votes` takes (`item=`).

    Examples:
        >>> from dissensus.votes import read_votes
        >>> said = [(1, "x", "yes"), (1, "y", "no"), (2, "x", "yes")]
        >>> votes = read_votes([{"item": i, "annotator": a, "label": given} for i, a, given in said])
        >>> label(votes).probabilities.tolist()
        [[0.5, 0.5], [0.0, 1.0]]
    """
    find_scheme(scheme)
    if not isinstance(votes, Votes):
        from dissensus.votes.reading import read_votes

        named = inspect.signature(read_votes).parameters
        votes = read_votes(votes, **{name: options.pop(name) for name in [*options] if name in named})
    made = find_scheme(scheme, options).make(votes, **options)
    if made.panel_size.max(initial=0) == 1:
        warnings.warn(ONE_VOTE, VotesWarning, stacklevel=2)
    return made


def find_scheme(name: str, options: Collection[str] = ()) -> Scheme:
    """Return the scheme of this name. Raise if no scheme has the name, or if the scheme lacks one of the options."""
    if name not in SCHEMES:
        raise InputError(f"'{name}' is not a scheme{choices(name, SCHEMES)}")
    if unknown := [option for option in options if option not in SCHEMES[name].options]:
        known = ", ".join(SCHEMES[name].options) or "none"
        raise InputError(f"scheme {name}: it has no option '{unknown[0]}'; its options: {known}")
    return SCHEMES[name]


ANNOTATOR_MODELS: Final[Mapping[str, Callable[..., AnnotatorModel]]] = {
    "dawid-skene": dawid_skene,
    "one-coin": one_coin,
    "mace": mace,
    "glad": glad,
    "wawa": wawa,
}
"""The fit of each annotator model, by its name."""


def _by_model(votes: Votes, *, name: str, **options: Any) -> LabelDistribution:
    """The posterior of an annotator model, with the counts of the votes behind it."""
    model = ANNOTATOR_MODELS[name](votes, **options)
    return replace(weighted(votes, "equal-weighted"), probabilities=model.posterior, scheme=name, model=model)


def _scheme(what: str, make: Callable[..., LabelDistribution] | str) -> Scheme:
    """A scheme of votes alone, or that of an annotator model by its name."""
    options = inspect.signature(ANNOTATOR_MODELS[make] if isinstance(make, str) else make).parameters.values()
    return Scheme(
        what,
        partial(_by_model, name=make) if isinstance(make, str) else make,
        {option.name: option.default for option in options if option.kind is option.KEYWORD_ONLY},
    )


SCHEMES: Final[dict[str, Scheme]] = {
    "frequency": _scheme("every vote counts the same", frequency),
    **{
        name: Scheme(
            f"every judgement counts the same; an unsure weighs {weight:g} of a yes", partial(weighted, scheme=name), {}
        )
        for name, weight in UNSURE_WEIGHT.items()
    },
    "dirichlet": _scheme("frequencies shrunk towards the panel's habits", dirichlet),
    "majority": _scheme("all on the most voted class", majority),
    "dawid-skene": _scheme("annotators with confusion matrices (Dawid, Skene 1979)", "dawid-skene"),
    "one-coin": _scheme("annotators with one accuracy each", "one-coin"),
    "mace": _scheme("annotators who know or guess (Hovy et al. 2013)", "mace"),
    "glad": _scheme("annotators' ability and items' difficulty (Whitehill et al. 2009)", "glad"),
    "wawa": _scheme("annotators weighted by agreement with the majority", "wawa"),
}
