"""Claims: who trains which run, as files that any number of processes and hosts see in one folder.

CLAIMS/KEY.0 holds the name of the writer that trains the run. Where that writer has ended and the run is not stored,
another may make KEY.1, and so on: the last number counts. A file is made only where there is none of its name, which
every file system, NFS among them, grants to one process alone; so of several that see a dead claim one takes it over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

NOBODY: Final = "nobody"
"""The owner of a claim that was given up."""


def last_claims(folder: Path) -> dict[str, int]:
    """By key, the number of the claim that counts."""
    found: dict[str, int] = {}
    for path in folder.iterdir():
        key, _, number = path.name.rpartition(".")
        if number.isdecimal():
            found[key] = max(int(number), found.get(key, -1))
    return found


def make_claim(folder: Path, key: str, *, number: int, owner: str) -> bool:
    """Claim a run; False where somebody was quicker."""
    try:
        with (folder / f"{key}.{number}").open("x", encoding="utf-8") as file:
            file.write(owner)
    except FileExistsError:
        return False
    return True


def owner_of(folder: Path, key: str, *, number: int) -> str:
    """Who made a claim; `NOBODY` where it was given up, or is no longer there; empty where it is being written."""
    try:
        return (folder / f"{key}.{number}").read_text(encoding="utf-8")
    except FileNotFoundError:
        return NOBODY


def give_up_claim(folder: Path, key: str, *, number: int) -> None:
    """Let others have the run. The file stays: were it removed, two could claim the run under two numbers."""
    (folder / f"{key}.{number}").write_text(NOBODY, encoding="utf-8")


def remove_claims(folder: Path, key: str, *, number: int) -> None:
    """Remove the claims on a run that is stored, where everybody finds it."""
    for each in range(number + 1):
        (folder / f"{key}.{each}").unlink(missing_ok=True)
