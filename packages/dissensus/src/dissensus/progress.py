"""Work that takes a while: how far it is (`progress`, wherever a call may last), and who shares it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Step:
    """What is done so far.

    Attributes:
        what: what is counted, such as "encoded items".
        done: how many are done.
        total: how many there are; None where nobody knows.

    Examples:
        >>> step = Step("encoded items", 1500, 6000)
        >>> print(step, step.fraction)
        encoded items: 1,500 of 6,000 0.25
    """

    what: str
    done: int
    total: int | None

    @property
    def fraction(self) -> float:
        """The share that is done, from 0 to 1; 0 where the total is not known."""
        return self.done / self.total if self.total else float(self.total == 0)

    def __str__(self) -> str:
        return f"{self.what}: {self.done:,}" + ("" if self.total is None else f" of {self.total:,}")


Progress: TypeAlias = Callable[[Step], None]
"""What is called with each step as it is done, in the process that asked for the work."""

Over: TypeAlias = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""What calls a function on each of many jobs and gives what it makes of them in their order: `map`, or what shares the
jobs among machines."""


def silent(step: Step) -> None:
    """Nobody listens."""
