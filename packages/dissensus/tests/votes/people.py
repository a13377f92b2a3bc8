"""Votes of other people."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dissensus.votes.table import Annotators, Votes


def people_of(votes: Votes) -> Annotators:
    """Who gave votes that are not anonymous."""
    assert votes.annotators is not None
    return votes.annotators


def with_people(votes: Votes, **changes: Any) -> Votes:
    """The same votes with other codes, names or attributes of annotators."""
    return replace(votes, annotators=replace(people_of(votes), **changes))
