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
        detect: whether a file is of this format; cheap, it looks at the name, the header or the first bytes, and
            answers False, never an error, for a file of any other kind.
        options: what `read` takes by name: `label`, one of several questions in a file; `duplicates`; `notes`, a list
            for sentences on what was understood.
    """

    name: str
    what: str
    read: Callable[..., Votes]
    detect: Callable[[Path], bool]
    options: tuple[str, ...] = ()
