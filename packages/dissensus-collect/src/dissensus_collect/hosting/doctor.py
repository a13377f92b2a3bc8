"""Whether a project that is served is in good health, as seen from its own machine: what is wrong, and what to do."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import sqlite3
import ssl
import stat
import subprocess
import time
import urllib.request
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from dissensus.errors import InputError
from dissensus_collect.project.setup_check import Check, ok, warning, wrong
from dissensus_collect.results.live import LEAST_FREE
from dissensus_collect.store.backup import file_integrity
from dissensus_collect.store.sqlite import FILE, backups, connect
from dissensus_collect.web.logins import Logins
from dissensus_collect.web.security import checked_base_url

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dissensus_collect.project.reading import Project

OLDEST_BACKUP: Final = 3 * 3600.0
"""Seconds; the server makes one every hour."""
SHORTEST_CERTIFICATE: Final = 14 * 86400.0
"""Seconds for which a certificate should still be valid; proxies renew theirs a month before the end."""
WRONG_CLOCK: Final = 60.0
"""Seconds by which two clocks may differ."""
PATIENCE: Final = 5.0
"""Seconds that the doctor waits for an answer."""


def examine(project: Project, *, base_url: str | None = None, now: float | None = None) -> list[Check]:
    """Everything that was looked at, each with what to do if it is not in order.

    The project is asked at its `base_url`, by default the one it was served under last; `now` is UNIX seconds.
    """
    now = time.time() if now is None else now
    return [
        *_address(project, base_url, now=now),
        *_disk(project),
        *_database(project),
        *_backups(project, now=now),
        *_modes(project),
        *_clock(project, now=now),
    ]


def _address(project: Project, base_url: str | None, *, now: float) -> Iterator[Check]:
    known = base_url or Logins(project.folder).address
    if known is None:
        yield warning(f"it has not been served yet; start 'dissensus collect serve {project.folder}'")
        return
    try:
        address = checked_base_url(known)
    except InputError as error:
        yield wrong(str(error))
        return
    parts = urlsplit(address)
    local = (parts.hostname or "") in ("localhost", "127.0.0.1", "::1")
    if parts.scheme == "https":
        yield from _certificate(parts.hostname or "", parts.port or 443, now=now)
    elif not local:
        yield wrong(
            f"{address} is plain HTTP, so that answers and the password can be read on the way; put a proxy with TLS "
            "in front (dissensus collect deploy) and serve with --base-url https://..."
        )
    try:
        with urllib.request.urlopen(f"{address}/health", timeout=PATIENCE) as answer:
            health = json.loads(answer.read(10_000))
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        yield wrong(
            f"{address} does not answer as this project ({reason}); look whether the server runs "
            "and the proxy leads to it"
        )
        return
    if not isinstance(health, dict) or "dissensus" not in health:
        yield wrong(f"{address} answers, but not with this project; look at where the proxy leads to")
        return
    yield ok(f"{address} answers")
    yield from _proxy(health, local=local)
    if abs(float(health["time"]) - now) > WRONG_CLOCK:
        yield warning(
            f"the server's clock differs from this one by {abs(float(health['time']) - now):.0f} s; set both by NTP"
        )


def _proxy(health: dict[str, Any], *, local: bool) -> Iterator[Check]:
    if health["proxy"] == "trusted":
        yield ok("the proxy says who its visitors are, and is trusted")
    elif health["proxy"] == "untrusted":
        yield wrong(
            f"the proxy at {health['from']} is not trusted, so that all visitors count as one and some are turned "
            f"away; restart the server with --trusted-proxy {health['from']}"
        )
    elif not local:
        yield warning(
            "no proxy says who its visitors are (there is no X-Forwarded-For); if there is one, let it send the "
            "header, or all visitors count as one"
        )


def _certificate(host: str, port: int, *, now: float) -> Iterator[Check]:
    try:
        with (
            socket.create_connection((host, port), timeout=PATIENCE) as line,
            ssl.create_default_context().wrap_socket(line, server_hostname=host) as secured,
        ):
            certificate = secured.getpeercert() or {}
    except ssl.SSLError as error:
        yield wrong(f"the certificate of {host} is not accepted ({error.reason or error}); look at the proxy's log")
        return
    except OSError as error:
        yield wrong(
            f"{host}:{port} cannot be reached ({error.strerror or error}); look at its DNS entry, the "
            "firewall and the proxy"
        )
        return
    left = ssl.cert_time_to_seconds(str(certificate["notAfter"])) - now
    if left < SHORTEST_CERTIFICATE:
        yield warning(
            f"the certificate of {host} ends in {left / 86400:.0f} days; look why the proxy does not renew it"
        )
    else:
        yield ok(f"the certificate of {host} is valid for {left / 86400:.0f} more days")


def _disk(project: Project) -> Iterator[Check]:
    free = shutil.disk_usage(project.folder).free
    if free < LEAST_FREE:
        yield wrong(f"only {free / 1e6:,.0f} MB of disk are left in {project.folder}; make room")
    else:
        yield ok(f"{free / 1e9:,.0f} GB of disk are left")


def _database(project: Project) -> Iterator[Check]:
    path = project.folder / FILE
    if not path.exists():
        yield warning(f"there is no {path} (which is right on PostgreSQL, and before the first start)")
        return
    damage = file_integrity(path)
    if damage == "ok":
        yield ok("the database is sound")
    else:
        yield wrong(f"{path} is damaged ({damage}); stop the server and restore a backup")


def _backups(project: Project, *, now: float) -> Iterator[Check]:
    if not (project.folder / FILE).exists():
        return
    kept = backups(project.folder / "backups")
    if not kept:
        yield warning(f"there is no backup yet; make one with 'dissensus collect backup {project.folder}'")
        return
    newest = kept[0]
    age, damage = now - newest.stat().st_mtime, file_integrity(newest)
    if damage != "ok":
        yield wrong(f"the newest backup, {newest.name}, is broken ({damage}); make another and look at the disk")
    elif age > OLDEST_BACKUP:
        yield warning(
            f"the newest backup is {age / 3600:.0f} hours old, though a server makes one every hour; look "
            "whether it runs"
        )
    else:
        yield ok(f"the newest of {len(kept)} backups is {age / 60:.0f} minutes old and sound")
    if newest.stat().st_dev == (project.folder / FILE).stat().st_dev:
        yield warning(
            "these backups lie on the disk of the database; copy them to another machine, too ('dissensus collect "
            f"backup {project.folder} --to FOLDER' makes one elsewhere)"
        )


def _modes(project: Project) -> Iterator[Check]:
    folder = project.folder
    secret = [*folder.glob("collect*.sqlite*"), *(folder / "backups").glob("*.sqlite*"), *folder.glob("logins.json")]
    readable = [path for path in secret if stat.S_IMODE(path.stat().st_mode) & 0o077]
    if readable and os.name != "nt":
        yield wrong(
            f"{len(readable)} files with identities can be read by others, such as {readable[0]}; run: chmod 600 "
            f"{' '.join(map(str, readable[:3]))}{' ...' if len(readable) > 3 else ''}"
        )
    else:
        yield ok("files with identities are for their owner alone")


def _clock(project: Project, *, now: float) -> Iterator[Check]:
    path = project.folder / FILE
    if path.exists():
        with contextlib.suppress(sqlite3.Error), contextlib.closing(connect(path)) as connection:
            (last,) = connection.execute("SELECT max(at) FROM event").fetchone()
            if last is not None and last > now + WRONG_CLOCK:
                yield wrong(
                    f"the clock is {(last - now) / 60:.0f} minutes behind the last event; set it right, or leases last "
                    "too long"
                )
                return
    program = shutil.which("timedatectl")
    if program is None:
        return
    command = [program, "show", "-p", "NTPSynchronized", "--value"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    synchronized = done.stdout.strip()
    if synchronized == "no":
        yield warning("the clock of this machine is not kept right by NTP; run: sudo timedatectl set-ntp true")
    elif synchronized == "yes":
        yield ok("the clock is kept right by NTP")
