"""From votes to label distributions by the name of a scheme."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from dissensus.errors import InputError, choices
from dissensus.labels.dawid_skene import dawid_skene, one_coin
from dissensus.labels.glad import glad
from dissensus.labels.mace import mace
from dissensus.labels.schemes import UNSURE_WEIGHT, dirichlet, frequency, majority, weighted
from dissensus.labels.wawa import wawa
from dissensus.votes.table import Votes

if TYPE_CHECKING:
    from collections.abc import Callable

    from dissensus.labels.annotator_models import AnnotatorModel
    from dissensus.labels.distribution import LabelDistribution


@dataclass(frozen=True)
class Scheme:
    """A way from votes to label distributions.

    Attributes:
        what: one line for a list.
        make: votes and keyword options to a label distribution.
        options: the options that `make` takes, with their defaults.
    """

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
    if not isinstance(votes, Votes):
        from dissensus.votes.reading import read_votes

        named = inspect.signature(read_votes).parameters
        votes = read_votes(votes, **{name: options.pop(name) for name in [*options] if name in named})
    if scheme not in SCHEMES:
        raise InputError(f"'{scheme}' is not a scheme{choices(scheme, SCHEMES)}")
    chosen = SCHEMES[scheme]
    unknown = [name for name in options if name not in chosen.options]
    if unknown:
        known = ", ".join(chosen.options) or "none"
        raise InputError(f"scheme {scheme}: it has no option '{unknown[0]}'; its options: {known}")
    return chosen.make(votes, **options)


def _by_model(fit: Callable[..., AnnotatorModel], votes: Votes, **options: Any) -> LabelDistribution:
    """The posterior of an annotator model, with the counts of the votes behind it."""
    model = fit(votes, **options)
    plain = weighted(votes, "equal-weighted")
    return replace(plain, probabilities=model.posterior, scheme=model.name, model=model)


def _of_votes(what: str, make: Callable[..., LabelDistribution]) -> Scheme:
    return Scheme(what, make, _options(make))


def _of_model(what: str, fit: Callable[..., AnnotatorModel]) -> Scheme:
    return Scheme(what, partial(_by_model, fit), _options(fit))


def _options(function: Callable[..., Any]) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters.values()
    return {each.name: each.default for each in parameters if each.kind is each.KEYWORD_ONLY}


SCHEMES: Final[dict[str, Scheme]] = {
    "frequency": _of_votes("every vote counts the same", frequency),
    **{
        name: Scheme(
            f"every judgement counts the same; an unsure weighs {weight:g} of a yes", partial(weighted, scheme=name), {}
        )
        for name, weight in UNSURE_WEIGHT.items()
    },
    "dirichlet": _of_votes("frequencies shrunk towards the panel's habits", dirichlet),
    "majority": _of_votes("all on the most voted class", majority),
    "dawid-skene": _of_model("annotators with confusion matrices (Dawid, Skene 1979)", dawid_skene),
    "one-coin": _of_model("annotators with one accuracy each", one_coin),
    "mace": _of_model("annotators who know or guess (Hovy et al. 2013)", mace),
    "glad": _of_model("annotators' ability and items' difficulty (Whitehill et al. 2009)", glad),
    "wawa": _of_model("annotators weighted by agreement with the majority", wawa),
}
