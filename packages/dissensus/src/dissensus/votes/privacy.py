"""What may be said of people: pseudonyms in place of names, no numbers of groups of very few, and few digits.

The command line takes its defaults from here, so NumPy is imported when something is counted.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dissensus.errors import InputError, meant
from dissensus.votes.columns import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.arrays import Codes, Mask
    from dissensus.votes.table import Votes

LEAST_PEOPLE: Final = 5
"""People that a group needs for a number of it to be shown, unless the user says otherwise."""

UNKNOWN: Final = "unknown"
"""The group of people of whom an attribute is not known."""

AGES: Final = (18, 25, 35, 45, 55, 65)
"""The ages in years at which the bands of ages begin, after the first."""

KEY_VARIABLE: Final = "DISSENSUS_PSEUDONYMS"
"""The environment variable that a key of pseudonyms may stand in."""

SIGNIFICANT: Final = 3
"""Digits of a number in a file that names people by pseudonyms: with 16, the mean of a group is the sum of one set of
its possible members' scores and of no other, and a subset sum finds them."""

_DIGITS: Final = 10
_AGE: Final = re.compile(r"(^|_)ages?(_|$)")
_YEARS: Final = re.compile(r"1?[0-9]?[0-9]")


def pseudonyms_of(names: Sequence[str], key: str) -> list[str]:
    """A pseudonym for each name, such as `person-3f9a2c71d0`.

    It is the beginning of the HMAC-SHA256 of the name under the key: with the same key a person has the same pseudonym
    in every file, and without the key nobody can compute the pseudonym of a name they know, or the name from it. The
    key is as secret as the names: it is written nowhere.
    """
    if not key:
        raise InputError("pseudonyms: the key is empty, so that anybody could find the names; give a secret text")
    # Not at the top, where the command line would load them for its help.
    import hashlib
    import hmac

    made = [f"person-{hmac.new(key.encode(), name.encode(), hashlib.sha256).hexdigest()[:_DIGITS]}" for name in names]
    if len(set(made)) < len(made):
        raise InputError("pseudonyms: two people would have the same under this key; give another key")
    return made


def key_from(source: str) -> str:
    """The key of pseudonyms: what a file holds, or with `env` the variable `KEY_VARIABLE`.

    A key typed in a command stays in the shell's history and stands in the list of processes, so it is not taken; nor
    is it repeated in the refusal.
    """
    if source == "env":
        key = os.environ.get(KEY_VARIABLE, "")
        if not key.strip():
            raise InputError(f"pseudonyms: the environment variable {KEY_VARIABLE} is not set; put the key into it")
        return key.strip()
    path = Path(source)
    try:
        known = path.is_file()
        text = path.read_text(encoding="utf-8").strip() if known else ""
    except (OSError, ValueError):
        known, text = False, ""
    if not known:
        raise InputError(
            "pseudonyms: there is no such file; a key is not typed in a command, where the shell's history would keep "
            f"it: write it into a file and name that, or set {KEY_VARIABLE} and give pseudonyms='env'"
        )
    if not text:
        raise InputError(f"pseudonyms: {source} is empty; write a secret text into it")
    return text


def few_digits(value: Any) -> Any:
    """The same lists and dictionaries with numbers of `SIGNIFICANT` digits; whole numbers stay as they are.

    >>> few_digits({"score": [0.123456, 98765.4], "votes": 98765})
    {'score': [0.123, 98800.0], 'votes': 98765}
    """
    if isinstance(value, dict):
        return {name: few_digits(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [few_digits(part) for part in value]
    return float(f"{value:.{SIGNIFICANT}g}") if isinstance(value, float) else value


def pseudonymous(votes: Votes, key: str) -> Votes:
    """The same votes by people with pseudonyms (`pseudonyms_of`); models keep their names."""
    if votes.annotators is None:
        return votes
    import numpy as np

    named = votes.annotators.names.astype(np.dtypes.StringDType())
    people = ~votes.model_annotators
    named[people] = pseudonyms_of(named[people].tolist(), key)
    return replace(votes, annotators=replace(votes.annotators, names=named))


@dataclass(frozen=True, eq=False)
class Groups:
    """People by the value of one of their attributes.

    Attributes:
        attribute: its name.
        names: the values, largest group first.
        group: (annotators,) the group of each person, as an index into `names`.
        shown: (groups,) whether numbers of the group may be shown.
        least: how many people that takes.
        banded: whether the values are bands of ages, which were given in years.
    """

    attribute: str
    names: tuple[str, ...]
    group: Codes
    shown: Mask
    least: int
    banded: bool = False

    @property
    def told(self) -> list[str]:
        """Sentences on ages in bands, and on the groups that are not shown."""
        bands = f"{self.attribute}: years are in bands, under {AGES[0]}, {AGES[0]}-{AGES[1] - 1} and so on"
        return [*([bands] if self.banded else []), *([self.hidden] if self.hidden else [])]

    @property
    def hidden(self) -> str:
        """A sentence on the groups that are not shown; empty where all are."""
        names = [name for name, shown in zip(self.names, self.shown.tolist(), strict=True) if not shown]
        if not names:
            return ""
        more = f" and {len(names) - 3:,} more groups" if len(names) > 3 else ""
        few = f"{self.attribute}: no numbers of {', '.join(names[:3])}{more}"
        return f"{few}, as those of fewer than {self.least} people could give away what one of them said"


def groups_of(votes: Votes, attribute: str, *, least: int = LEAST_PEOPLE) -> Groups:
    """The people who voted, by one of their attributes; the groups of too few people are marked.

    Ages in years are put into bands (`AGES`): by single years, groups would be of few people and say little. Where the
    people of all such groups together are still fewer than `least`, the next smallest group is hidden with
    them: else the number of everybody less those of the other groups would be theirs.
    """
    if votes.annotators is None or attribute not in votes.annotators.attributes:
        attributes = votes.annotator_attributes
        known = ", ".join(attributes) or "none"
        remedy = meant(attribute, attributes) or "; name its column: attributes="
        raise InputError(f"annotators have no attribute '{attribute}' (they have {known}){remedy}")
    import numpy as np

    text = votes.annotators.attributes[attribute].astype(np.dtypes.StringDType())
    bands = _age_bands(attribute, text.tolist())
    if bands is not None:
        text = np.array(bands, dtype=np.dtypes.StringDType())
    values, code = np.unique(text, return_inverse=True)
    voted = np.zeros(len(votes.annotators), dtype=np.bool_)
    voted[votes.annotators.code] = True
    size = np.bincount(code[voted], minlength=values.size)
    order = np.argsort(-size, kind="stable")
    order = order[size[order] > 0]
    rank = np.full(values.size, -1)
    rank[order] = np.arange(order.size)
    # From the smallest group on, as long as the group or all that are hidden so far are fewer than the least.
    upwards = size[order][::-1]
    so_far = np.cumsum(upwards) - upwards
    shown = ((upwards >= least) & ((so_far == 0) | (so_far >= least)))[::-1]
    names = tuple(str(values[k]) or UNKNOWN for k in order.tolist())
    return Groups(attribute, names, rank[code].astype(np.int32), shown, least, bands is not None)


def _age_bands(attribute: str, values: list[str]) -> list[str] | None:
    """Ages in years as bands, unknown ones as they are; None for an attribute that is something else."""
    years = [value for value in values if value]
    if not (_AGE.search(plain(attribute)) and years and all(map(_YEARS.fullmatch, years))):
        return None
    called = [f"under {AGES[0]}", *(f"{low}-{high - 1}" for low, high in pairwise(AGES)), f"{AGES[-1]} and over"]
    return [called[bisect_right(AGES, int(value))] if value else value for value in values]
