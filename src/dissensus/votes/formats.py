"""What a named votes format is: how it is told from others, and how it is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dissensus.votes.table import Votes


@dataclass(frozen=True)
class Format:
    """A votes format with fixed columns, such as the official files of one dataset.

    Attributes:
        name: what `--format` calls it.
        what: one line for people, such as "ChaosNLI, one JSON object per item".
        read: reads a file of this format; raises `InputError` with the file's name where it is not one.
        read_label: reads the votes of one of several questions in a file, by the name of the question; None where it
            holds but one.
        detect: whether a file is of this format; cheap, it looks at the name, the header or the first bytes, and
            answers False, never an error, for a file of any other kind.
    """

    name: str
    what: str
    read: Callable[[Path], Votes]
    detect: Callable[[Path], bool]
    read_label: Callable[[Path, str], Votes] | None = None
