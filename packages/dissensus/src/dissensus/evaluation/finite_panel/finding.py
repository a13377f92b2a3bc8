"""`Finding`: a number that few votes allow, or the reason why they do not."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dissensus.bootstrap import Estimate


@dataclass(frozen=True)
class Finding:
    """A number with what must be said beside it, or why there is none.

    Attributes:
        estimate: the number with its interval; None where the votes cannot tell.
        notes: sentences that belong beside the number, without full stops.
        reason: why there is no number; empty where there is one.
    """

    estimate: Estimate | None
    notes: tuple[str, ...] = ()
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The fields, ready for JSON."""
        return asdict(self)


def withheld(reason: str) -> Finding:
    """No number, and why."""
    return Finding(None, (), reason)
