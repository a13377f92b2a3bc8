"""Who is at work on a store: a lock that the system frees when a process dies, and a heartbeat for other hosts.

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
    """A writer at work: `NAME.lock` in a folder, held and moved on for as long as the process lives.

    Attributes:
        name: of the writer, unique, with its host.
        lock: the file.
    """

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
            if not lock.exists():
                return True
            with FileLock(lock, timeout=0):
                return True
        except Timeout:
            return False
        except FileNotFoundError:
            return True


def _host(name: str) -> str:
    """Of a writer; names of the first release have none, and are taken to be of this host."""
    parts = name.split("-")
    return parts[1] if len(parts) == 4 else this_host()
