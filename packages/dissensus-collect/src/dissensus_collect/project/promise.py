"""What somebody who takes part is promised: how many items a whole session has at most, and what it pays."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dissensus_collect.project.reading import Project

LONGEST_HOLD: Final = 3.0
"""Maximum time that a session may reserve items, in multiples of its planned seconds.

Heartbeats alone could otherwise extend a reservation for ever.
"""


@dataclass(frozen=True)
class Promise:
    """Fixed at consent, and unchanged by whatever becomes of items: pay in the project's currency, and items."""

    pay: float
    votes: int
    gold: int

    @property
    def text(self) -> str:
        """As a form brings it back: whoever agrees says to what."""
        return f"{self.pay} {self.votes} {self.gold}"


def promise_of(project: Project, vote_items: int) -> Promise:
    """What a project with so many items to vote on promises, by its planned seconds and pay per hour, to the cent."""
    votes, gold = min(project.items_per_annotator, vote_items), project.gold_shown
    seconds = (votes + gold) * project.cost.seconds_per_item
    return Promise(round(seconds / 3600 * project.cost.pay_per_hour, 2), votes, gold)


def held_until(project: Project, consented_at: float, items: int) -> float:
    """Return the time when a session of this many items loses its reserved items. Later heartbeats have no effect."""
    return consented_at + LONGEST_HOLD * max(items * project.cost.seconds_per_item, project.lease.seconds)


def share_of_pay(promised: float, done: int, items: int) -> float:
    """What is due for a part of a session: as much of the pay as was done of the items, to the next whole cent."""
    part = min(1.0, done / items) if items else 0.0
    # Of 0.3 * 3, which is a little less than 0.9, the next cent is 0.9.
    return math.ceil(round(100 * promised * part, 6)) / 100
