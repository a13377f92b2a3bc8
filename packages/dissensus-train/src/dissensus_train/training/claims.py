"""Who is at work on a store, and on which run, as files that any number of processes and hosts see in one folder.

CLAIMS/KEY.0 holds the name of the writer that trains the run. Where that writer has ended and the run is not stored,
another may make KEY.1, and so on: the last number counts. A file is made only where there is none of its name, which
every file system, NFS among them, grants to one process alone; so of several that see a dead claim one takes it over.

On one host a writer has ended when nobody holds its lock, which is known at once and for certain. Locks of another host
cannot be trusted on every shared folder, so there the date of the lock file tells, which a living writer moves on every
few seconds. Dates are compared with each other, never with a clock: all of them come from the one file server.
"""

from __future__ import annotations

import hashlib
import os
import platform
import threading
import uuid
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

NOBODY: Final = "nobody"
"""The owner of a claim that was given up."""


def last_claims(folder: Path) -> dict[str, int]:
    """By key, the number of the claim that counts."""
    last: dict[str, int] = {}
    for path in folder.iterdir():
        key, _, number = path.name.rpartition(".")
        if number.isdecimal():
            last[key] = max(int(number), last.get(key, -1))
    return last


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
    for old in range(number + 1):
        (folder / f"{key}.{old}").unlink(missing_ok=True)


HEARTBEAT: Final = 10.0
"""Seconds between signs of life."""

GONE_AFTER: Final = 120.0
"""Seconds without one after which a writer on another host has ended."""


@cache
def this_host() -> str:
    """This machine, as long as it is up: a short hash."""
    try:
        up = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    except OSError:
        up = f"{uuid.getnode():x}"
    return hashlib.sha256(f"{platform.node()} {up}".encode()).hexdigest()[:8]


class Presence:
    """A writer at work: `NAME.lock` in a folder, held and moved on for as long as the process lives."""

    def __init__(self, folder: Path) -> None:
        self.name = f"writer-{this_host()}-{os.getpid()}-{uuid.uuid4().hex}"
        self.lock = folder / f"{self.name}.lock"
        self._held, self._over = FileLock(self.lock), threading.Event()

    def begin(self) -> None:
        """Hold the lock, and show signs of life from now on."""
        self._held.acquire()
        threading.Thread(target=self._live, daemon=True).start()

    def end(self) -> None:
        """Be gone."""
        self._over.set()
        self._held.release()
        with suppress(OSError):
            self.lock.unlink(missing_ok=True)

    def _live(self) -> None:
        while not self._over.wait(HEARTBEAT):
            with suppress(OSError):
                os.utime(self.lock)

    def is_gone(self, name: str) -> bool:
        """Whether another writer of the same folder has ended."""
        lock = self.lock.with_name(f"{name}.lock")
        try:
            if _host(name) != this_host():
                os.utime(self.lock)
                return self.lock.stat().st_mtime - lock.stat().st_mtime > GONE_AFTER
            return ended_here(lock)
        except FileNotFoundError:
            return True


def ended_here(lock: Path) -> bool:
    """Whether the writer that holds a lock was of this host and has ended, which is known at once and for certain."""
    if _host(lock.stem) != this_host():
        return False
    if not lock.exists():
        return True
    try:
        with FileLock(lock, timeout=0):
            return True
    except Timeout:
        return False


def _host(name: str) -> str:
    """Of a writer; names of the first release have none, and are taken to be of this host."""
    parts = name.split("-")
    return parts[1] if len(parts) == 4 else this_host()
