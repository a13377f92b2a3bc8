"""Annotators: who they are, how they arrive and are known again, and how a session has ended."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, fields
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, Any, Final

from dissensus.errors import InputError
from dissensus_collect.project.promise import share_of_pay
from dissensus_collect.project.tables import ENDINGS
from dissensus_collect.store.events import is_simulated, log_event
from dissensus_collect.work.attributes import remember

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dissensus_collect.project.reading import Project
    from dissensus_collect.store.database import Cursor

PARAMETER: Final = 128
"""The most characters of a link's parameter that are kept."""
PAID_AND_DELETED: Final = "paid and deleted"
"""The platform of whom only a hash is left."""
ENDING_OF_STATE: Final = {
    "finished": "complete",
    "no-consent": "no-consent",
    "screened-out": "screened-out",
    "technical": "technical",
}


@dataclass(frozen=True, kw_only=True)
class External:
    """Who somebody is, according to a platform."""

    platform: str
    id: str
    study: str | None = None
    session: str | None = None


@dataclass(frozen=True, kw_only=True)
class Arrival:
    """An annotator with a new session; the token is given out once and stored as a hash."""

    annotator: int
    token: str
    returning: bool


@dataclass(frozen=True)
class Annotator:
    """How far an annotator has come.

    Attributes:
        pseudonym: the name in exports.
        state: "arrived", "consented", "practised", "working", "finished", "no-consent", "screened-out", "technical" or
            "deleted".
        eligible: whether the questions before consent let them in; None if they were not asked.
        counts: whether their votes count towards k.
        done: items judged, not including gold items.
        attempts: failed attempts at the practice.
        misunderstood: failed attempts at the comprehension questions.
        asked: whether the final questions were handed in.
        promised: the pay of a whole session, in the project's currency; None before consent.
    """

    id: int
    pseudonym: str
    state: str
    eligible: bool | None
    paid: bool
    counts: bool
    exported: bool
    reason: str | None
    done: int
    gold_done: int
    gold_missed: int
    attempts: int
    misunderstood: int
    promised: float | None
    asked: bool
    withdrawn: bool


_COLUMNS: Final = tuple(column.name for column in fields(Annotator))
_FLAGS: Final = ("eligible", "paid", "counts", "exported", "asked", "withdrawn")
_ANNOTATOR: Final = (
    f"SELECT annotator.{', '.join(_COLUMNS[:-2])}, asked_at IS NOT NULL, withdrawn_at IS NOT NULL FROM annotator"
)


def arrive(
    cursor: Cursor,
    *,
    now: float,
    external: External | None = None,
    parameters: Mapping[str, str] | None = None,
    address: str | None = None,
    device: str = "",
) -> Arrival:
    """A session for somebody who arrives; whoever came before under the same platform id is the same annotator.

    By the parameters of their link, quotas are kept. Of the network address, and of what the browser says of itself,
    only hashes are kept, by which people who share both can be told.
    """
    token = secrets.token_urlsafe(24)
    known = None
    if external is not None:
        known = cursor.execute(
            "SELECT annotator FROM identity WHERE (platform = ? AND external = ?) OR (platform = ? AND external = ?)",
            (external.platform, external.id, PAID_AND_DELETED, keyed(cursor, external.platform, external.id)),
        ).fetchone()
    if known is not None:
        annotator = int(known[0])
    else:
        (annotator,) = cursor.execute(
            "INSERT INTO annotator (pseudonym, state, seen_at, arrived_at, address, device) "
            "VALUES (?, 'arrived', ?, ?, ?, ?) RETURNING id",
            (f"a{secrets.token_hex(6)}", now, now, *_origin(cursor, address, device)),
        ).fetchone()
        if external is not None:
            cursor.execute(
                "INSERT INTO identity (annotator, platform, external, study, session) VALUES (?, ?, ?, ?, ?)",
                (annotator, external.platform, external.id, external.study, external.session),
            )
        remember(cursor, annotator, {name: value[:PARAMETER] for name, value in (parameters or {}).items()})
    cursor.execute("INSERT INTO session (hash, annotator, since) VALUES (?, ?, ?)", (token_hash(token), annotator, now))
    log_event(cursor, "arrived", annotator, {"returning": known is not None}, now=now)
    return Arrival(annotator=annotator, token=token, returning=known is not None)


def end_other_sessions(cursor: Cursor, annotator: int, token: str) -> None:
    """End all sessions of an annotator except the one with this token."""
    cursor.execute("DELETE FROM session WHERE annotator = ? AND hash <> ?", (annotator, token_hash(token)))


def _origin(cursor: Cursor, address: str | None, device: str) -> tuple[str | None, str | None]:
    """Keyed hashes of a network address, and of it together with a device."""
    if address is None:
        return None, None
    return keyed(cursor, network_of(address)), keyed(cursor, network_of(address), device)


def parsed_address(text: str) -> IPv4Address | IPv6Address | str:
    """Return a network address without port and scope. Return the text unchanged if it is no address."""
    text = text.strip()
    host = text[1:].partition("]")[0] if text.startswith("[") else text
    try:
        found = ip_address((host.partition(":")[0] if host.count(":") == 1 else host).partition("%")[0])
    except ValueError:
        return text
    # A socket for IPv4 and IPv6 reports 10.0.0.1 as ::ffff:10.0.0.1.
    return getattr(found, "ipv4_mapped", None) or found


def network_of(address: str) -> str:
    """Return the network that belongs to a single visitor: an IPv4 address or a /64 prefix of IPv6."""
    found = parsed_address(address)
    return str(ip_network((found, 64), strict=False) if isinstance(found, IPv6Address) else found)


def keyed(cursor: Cursor, *what: str) -> str:
    """A hash by which something can be known again, but not guessed: its key never leaves the database."""
    (salt,) = cursor.execute("SELECT value FROM salt").fetchone()
    return hashlib.blake2b("\n".join(what).encode(), key=salt.encode(), digest_size=12).hexdigest()


def shared_devices(cursor: Cursor) -> dict[str, int]:
    """By device, how many annotators who consented came with it from one network address; only where several did.

    Bots of a simulated project all do, and are not meant.
    """
    if is_simulated(cursor):
        return {}
    rows = cursor.execute(
        "SELECT device, count(*) FROM annotator WHERE device IS NOT NULL AND consented_at IS NOT NULL "
        "GROUP BY device HAVING count(*) > 1"
    ).fetchall()
    return {device: int(people) for device, people in rows}


def annotator_of(cursor: Cursor, token: str) -> Annotator | None:
    """The annotator whose session a token belongs to."""
    row = cursor.execute(
        f"{_ANNOTATOR} JOIN session ON session.annotator = annotator.id WHERE session.hash = ?", (token_hash(token),)
    ).fetchone()
    return None if row is None else _annotator(row)


def annotator_by_id(cursor: Cursor, annotator: int) -> Annotator:
    """The annotator with an id of the database."""
    row = cursor.execute(f"{_ANNOTATOR} WHERE annotator.id = ?", (annotator,)).fetchone()
    if row is None:
        raise InputError(f"there is no annotator {annotator}; look at the list of annotators")
    return _annotator(row)


def codes_of(cursor: Cursor, project: Project) -> dict[str, str]:
    """Return the code for each ending, from the project's file or derived from the project's secret."""
    return {each: keyed(cursor, "code", each)[:8].upper() for each in ENDINGS} | project.recruitment.codes


def finish_code(cursor: Cursor, project: Project, annotator: int) -> str | None:
    """The code for how the session ended; None as long as it has not."""
    person = annotator_by_id(cursor, annotator)
    ending = ending_of(person.state, person.eligible, withdrawn=person.withdrawn)
    return None if ending is None or questions_due(project, person) else codes_of(cursor, project)[ending]


def ending_of(state: str, eligible: bool | None, *, withdrawn: bool) -> str | None:
    """How a session ended, by the annotator's state; None as long as it has not."""
    if state == "technical" and withdrawn:
        return "withdrawn"
    return "ineligible" if eligible is not None and not eligible else ENDING_OF_STATE.get(state)


def questions_due(project: Project, annotator: Annotator) -> bool:
    """Whether all items are done and only the final questions are left."""
    return annotator.state == "finished" and bool(project.questions) and not annotator.asked and not annotator.withdrawn


def earned(cursor: Cursor, annotator: int) -> tuple[int, int, float]:
    """Return the number of items done, the number of items in the session, and the pay earned."""
    done, items, pay = cursor.execute(
        "SELECT done + gold_done, promised_votes + promised_gold, promised FROM annotator WHERE id = ?", (annotator,)
    ).fetchone()
    return done, items, share_of_pay(pay, done, items)


def _annotator(row: Any) -> Annotator:
    values = dict(zip(_COLUMNS, row, strict=True))
    return Annotator(**values | {name: bool(values[name]) for name in _FLAGS if values[name] is not None})


def token_hash(token: str) -> str:
    """A token as it is stored: it has so many random bits that nobody can guess it from a plain hash."""
    return hashlib.sha256(token.encode()).hexdigest()
