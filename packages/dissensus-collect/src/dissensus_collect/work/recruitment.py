"""Where participants come from: the parameters of links from Prolific and MTurk, plain links, and the way back."""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from dissensus.errors import InputError
from dissensus.parts import installed
from dissensus_collect.store.events import log_event
from dissensus_collect.work.participants import External

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dissensus_collect.project.tables import Recruitment
    from dissensus_collect.store.database import Cursor

PARAMETERS: Final[dict[str, tuple[str, str, str]]] = {
    "prolific": ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID"),
    "mturk": ("workerId", "hitId", "assignmentId"),
}
"""By platform: the URL parameters that name the participant, the study and the session."""

SIGNED: Final = "prolific_token"
"""The URL parameter in which Prolific hands over its signed token."""

MTURK_FRAMES: Final = ("https://www.mturk.com", "https://workersandbox.mturk.com", "https://worker.mturk.com")
"""The hosts that show an MTurk task in a frame, and to which a finished one is submitted."""

PREVIEW: Final = "ASSIGNMENT_ID_NOT_AVAILABLE"
"""What MTurk sends as the assignment of somebody who is only looking."""

NAME: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")
LEEWAY: Final = 30.0
"""Seconds by which the clocks of Prolific and of this machine may differ."""


class NotInvited(InputError):  # noqa: N818
    """The link does not lead into this project; the sentence, with its values, is for the person who followed it."""

    def __init__(self, sentence: str, **values: str) -> None:
        super().__init__(sentence.format(**values))
        self.template, self.values = sentence, values


@dataclass(frozen=True)
class Preview:
    """Somebody looks at the task on MTurk before accepting it."""


@dataclass(frozen=True)
class KeySet:
    """The public keys that may have signed a link, by id, and the address of this server, as a token's ``aud``."""

    keys: Mapping[str, Any]
    audience: str


def read_key_set(path: Path, *, audience: str) -> KeySet:
    """Read a cached JSON Web Key Set, so that signed links are checked without a network."""
    installed("jwt", "prolific", wanted_by="Signed Prolific links")
    import jwt

    try:
        entries = json.loads(path.read_text(encoding="utf-8"))["keys"]
        keys = {str(key["kid"]): jwt.PyJWK(key, "RS256").key for key in entries if key.get("kty") == "RSA"}
    except (OSError, ValueError, TypeError, KeyError, jwt.PyJWTError) as error:
        raise InputError(f"{path}: not a JSON Web Key Set ({error}); save Prolific's study/jwks.json there.") from None
    if not keys:
        raise InputError(f"{path}: no RSA key in the key set; save Prolific's study/jwks.json there again.")
    return KeySet(keys, audience)


def external_of(
    kind: str, query: Mapping[str, str], *, study_id: str | None = None, keys: KeySet | None = None, now: float = 0.0
) -> External | Preview | None:
    """Who a link says that somebody is: a participant, a preview, or None for a plain link, which names nobody.

    With the platform's id of this study, only its participants are let in; with keys, only links signed by one of
    them, which may have expired `now`. Everybody else is `NotInvited`.
    """
    if kind == "plain":
        return None
    if kind == "prolific" and keys is not None:
        query = _signed_claims(query.get(SIGNED), keys, now=now)
    if kind == "mturk" and query.get("assignmentId") == PREVIEW:
        return Preview()
    for name in PARAMETERS[kind]:
        if not NAME.fullmatch(query.get(name, "")):
            raise NotInvited(
                "This link does not say who you are ({name} is missing); please open the study again from {platform}.",
                name=name,
                platform="Prolific" if kind == "prolific" else "MTurk",
            )
    participant, study, session = (query[name] for name in PARAMETERS[kind])
    if study_id is not None and study != study_id:
        raise NotInvited("This link belongs to another study; please open the study again from its own page.")
    return External(platform=kind, id=participant, study=study, session=session)


def _signed_claims(token: str | None, keys: KeySet, *, now: float) -> Mapping[str, str]:
    import jwt

    refused = NotInvited(
        "This link is not signed by Prolific, or is too old; please open the study again from Prolific."
    )
    if not token:
        raise refused
    try:
        key = keys.keys[str(jwt.get_unverified_header(token).get("kid"))]
        # PyJWT reads the machine's clock; ours is passed in, so `exp` and `nbf` are checked below.
        claims = jwt.decode(
            token,
            key,
            algorithms=["RS256"],
            audience=keys.audience,
            options={"require": ["exp", "aud"], "verify_exp": False, "verify_nbf": False, "verify_iat": False},
        )
        if now > float(claims["exp"]) + LEEWAY or now < float(claims.get("nbf", 0)) - LEEWAY:
            raise refused
        return {str(name).upper(): str(value) for name, value in claims["prolific"].items()}
    except (jwt.PyJWTError, KeyError, TypeError, ValueError, AttributeError):
        raise refused from None


def invite(cursor: Cursor, people: int, *, now: float) -> list[str]:
    """Makes codes for so many people; from now on, nobody comes in by a plain link without one."""
    codes = [secrets.token_urlsafe(9) for _ in range(people)]
    cursor.executemany("INSERT INTO invitation (code, made_at) VALUES (?, ?)", [(code, now) for code in codes])
    log_event(cursor, "invited", None, {"people": people}, now=now)
    return codes


def codes_made(cursor: Cursor) -> bool:
    """Whether there are codes, without one of which nobody comes in by a plain link."""
    return cursor.execute("SELECT 1 FROM invitation LIMIT 1").fetchone() is not None


def invited(cursor: Cursor, code: str) -> External | None:
    """Whom the code of a plain link is for; None where anybody may come, because no codes were made."""
    if not codes_made(cursor):
        return None
    if cursor.execute("SELECT 1 FROM invitation WHERE code = ?", (code,)).fetchone() is None:
        raise NotInvited("This link is not complete, or not for this project; please open the link that you were sent.")
    return External(platform="code", id=code)


@dataclass(frozen=True)
class WayBack:
    """How a participant returns to the platform with a code: by a link, or by posting fields to an address (MTurk)."""

    link: str | None = None
    post_to: str | None = None
    fields: tuple[tuple[str, str], ...] = ()


def way_back(
    kind: str, code: str, *, return_url: str | None = None, session: str | None = None, submit_to: str | None = None
) -> WayBack:
    """The way back to the platform with a completion code. A plain link has none: the code is shown as text.

    The project's own `return_url` comes first; in it "{code}" stands for the code. MTurk is posted its assignment
    (`session`) where it said to `submit_to`; only its own hosts are trusted.
    """
    if return_url is not None:
        return WayBack(link=return_url.replace("{code}", quote(code)))
    if kind == "prolific":
        return WayBack(link=f"https://app.prolific.com/submissions/complete?cc={quote(code)}")
    if kind == "mturk" and session and submit_to:
        # Compared as text, not parsed: anything that is not exactly one of these hosts belongs to somebody else.
        host = submit_to.rstrip("/")
        if host in MTURK_FRAMES:
            return WayBack(post_to=f"{host}/mturk/externalSubmit", fields=(("assignmentId", session), ("code", code)))
    return WayBack()


def key_set_of(recruitment: Recruitment, *, base_url: str | None) -> KeySet | None:
    """The key set that a project names, or None if its links are not signed."""
    if recruitment.kind != "prolific" or recruitment.jwks is None:
        return None
    if base_url is None:
        raise InputError("Signed Prolific links name the address that they are for: give the server its base URL.")
    return read_key_set(Path(recruitment.jwks), audience=base_url.rstrip("/"))
