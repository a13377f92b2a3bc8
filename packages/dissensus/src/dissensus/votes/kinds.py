"""Votes of people and of models: which annotators are models, and people's votes alone, with what is left out."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

import numpy as np

from dissensus.errors import InputError
from dissensus.votes.echo import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.votes.table import Votes

_NAMED: Final = 3


def mark_models(votes: Votes, models: Sequence[str]) -> Votes:
    """The same votes, those of the named annotators marked as a model's.

    Each of `models`, names or patterns such as `gpt-*`, fits at least one annotator; none may be marked yet.
    """
    if votes.by_model is not None:
        raise InputError("votes: a column says already which votes are from models; leave out models=")
    if votes.annotators is None:
        raise InputError("votes: models= names annotators, and these votes are anonymous; add a column 'kind'")
    names = [str(name) for name in votes.annotators.names.tolist()]
    fits = [{name for name in names if name == pattern or fnmatchcase(name, pattern)} for pattern in models]
    for pattern, matches in zip(models, fits, strict=True):
        if not matches:
            raise InputError(f"votes: no annotator fits '{pattern}' of models=; name annotators as the votes do")
    chosen = set().union(*fits)
    return replace(votes, by_model=np.array([name in chosen for name in names])[votes.annotators.code])


def share_of_models(votes: Votes) -> str:
    """How many votes are from which models: `420 of 1,620 votes are from models (gpt-4, llama)`; empty for none."""
    if votes.models is None:
        return ""
    names = [] if votes.models.annotators is None else [str(name) for name in votes.models.annotators.names.tolist()]
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    which = f" ({', '.join(names[:_NAMED])}{more})" if names else ""
    are = "is from a model" if votes.n_model_votes == 1 else "are from models"
    return f"{votes.n_model_votes:,} of {len(votes):,} votes {are}{which}"


def people_alone(votes: Votes) -> tuple[Votes, str]:
    """The votes of people, and a sentence on the models' that are left out; empty where there are none.

    Refuses votes of which none is a person's.
    """
    if votes.by_model is None:
        return votes, ""
    people = votes.people
    if not len(people):
        raise InputError(
            f"votes: all {len(votes):,} votes are from models, and none is left that a person gave; add people's votes"
        )
    gone = []
    if items := len(votes.items) - len(people.items):
        gone.append(f"{number(items, 'item')} that only they judged")
    if unchosen := [f"'{name}'" for name in votes.classes if name not in people.classes]:
        gone.append(f"the {'class' if len(unchosen) == 1 else 'classes'} {', '.join(unchosen)} that only they chose")
    also = f", with {' and '.join(gone)}" if gone else ""
    return people, f"{share_of_models(votes)}: left out{also}"
