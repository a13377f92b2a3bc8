"""Writing whole or not at all: what is written appears under its name by one rename, when it is complete."""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dissensus.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["check_place", "same_file", "sha256_of", "whole_file", "whole_folder"]


def check_place(path: Path, *read: str | Path) -> None:
    """Raise if the folder of `path` is missing, or if `path` is a folder or one of the files in `read`."""
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}; make it first")
    if path.is_dir():
        raise InputError(f"{path}: this is a folder; give the name of a file")
    if any(same_file(path, each) for each in read):
        raise InputError(f"{path}: this file is read, and would be written over; give another name")


def same_file(one: str | Path, other: str | Path) -> bool:
    """Return whether two paths lead to the same file, for example through a link."""
    with suppress(OSError):
        return Path(one).samefile(other)
    return os.path.realpath(one) == os.path.realpath(other)


@contextmanager
def whole_file(
    path: Path, *, within: Path | None = None, remedy: str = "nothing was changed; choose another place, or make room"
) -> Iterator[Path]:
    """A new file to write to, with the same ending; it takes the place of `path` when the block ends without an error.

    The unfinished file lies in the folder `within`, on the same file system; without it, in that of `path`.

    Raises:
        InputError: where the file cannot be written, ending with the remedy; what was there before is unharmed.
    """
    check_place(path)
    part = _unfinished(path, within)
    try:
        yield part
        part.replace(path)
    except OSError as error:
        raise _cannot_write("file", path, error, remedy) from error
    finally:
        with suppress(OSError):
            # On a read-only file system, `unlink` raises even if the file is missing, despite `missing_ok`.
            part.unlink(missing_ok=True)


@contextmanager
def whole_folder(
    path: Path, *, within: Path | None = None, remedy: str = "nothing was changed; choose another place, or make room"
) -> Iterator[Path]:
    """A new folder to fill; it becomes `path` when the block ends without an error. `within` is as for `whole_file`.

    Raises:
        InputError: where the folder cannot be written, or one with something in it is there already.
    """
    part = _unfinished(path, within)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.mkdir(parents=True)
        yield part
        if path.is_dir():
            # Windows does not rename onto an empty folder, as others do; nobody removes one with something in it.
            path.rmdir()
        part.replace(path)
    except OSError as error:
        raise _cannot_write("folder", path, error, remedy) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, by which its whole content is known again."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _unfinished(path: Path, within: Path | None) -> Path:
    # The ending stays last: by it readers and writers know the kind of file.
    return (within or path.parent) / f".{uuid.uuid4().hex}.part.{path.name}"


def _cannot_write(kind: str, path: Path, error: OSError, remedy: str) -> InputError:
    reason = os.strerror(error.errno) if error.errno else str(error).partition("\n")[0]
    return InputError(f"{path}: the {kind} cannot be written ({reason}); {remedy}")
