"""`SHA256SUMS`: a bundle is exactly the parts that were written, byte by byte, or it is refused.

The file is what `sha256sum -c SHA256SUMS` reads. It tells damage and mistakes; whoever means harm can write it anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dissensus.errors import InputError
from dissensus.whole_file import sha256_of

if TYPE_CHECKING:
    from pathlib import Path

SUMS: Final = "SHA256SUMS"


def write_sums(folder: Path) -> None:
    """State all parts of a bundle; the last file to be written."""
    (folder / SUMS).write_bytes(_sums(folder).encode())


def check_parts(folder: Path) -> None:
    """Refuse a bundle with a part that is missing, changed, or not its own; the refusal names one."""
    again = "copy the bundle again, or export the model again"
    if not (folder / SUMS).is_file():
        raise InputError(f"{folder}: there is no {SUMS}, so its parts cannot be checked; {again}")
    given, actual = (folder / SUMS).read_bytes(), _sums(folder)
    if given == actual.encode():
        return
    stated, here = (_by_name(text) for text in (given.decode(errors="replace"), actual))
    for name in sorted(stated.keys() - here.keys()):
        raise InputError(f"{folder}: its part {name} is missing; {again}")
    for name in sorted(here.keys() - stated.keys()):
        raise InputError(f"{folder}: {name} is no part of it; remove that file, or {again}")
    changed = sorted(name for name in here if here[name] != stated[name])
    what = f"its part {changed[0]} is not as it was written" if changed else f"its {SUMS} is damaged"
    raise InputError(f"{folder}: {what}; {again}")


def _sums(folder: Path) -> str:
    """A line for each part, by name. What begins with a dot, as hubs and desktops leave it, is none and never read."""
    names = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    parts = sorted(name.as_posix() for name in names if not any(part.startswith(".") for part in name.parts))
    return "".join(f"{sha256_of(folder / name)}  {name}\n" for name in parts if name != SUMS)


def _by_name(sums: str) -> dict[str, str]:
    return {name: digest for digest, _, name in (line.partition("  ") for line in sums.splitlines())}
