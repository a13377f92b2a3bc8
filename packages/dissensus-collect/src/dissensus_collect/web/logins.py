"""Researchers' accounts: their roles, passwords, one-time links, and who is logged in."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from filelock import FileLock

from dissensus.errors import InputError
from dissensus.whole_file import whole_file
from dissensus_collect.web.security import new_token
from dissensus_collect.work.participants import token_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ROLES: Final = ("reader", "reviewer", "owner")
"""What an account may do, each what those before it may.

A reader looks at pages, without names; a reviewer sees names and answers, and decides about people and items; an owner
also pays, exports, deletes, and steers the project.
"""
RESEARCHER: Final = "researcher"
"""The account that every project has: an owner."""
SCRYPT: Final = {"n": 2**14, "r": 8, "p": 1}
"""About 16 MB and 50 ms per guess."""
NOBODY: Final = f"{'0' * 32}${'0' * 128}"
"""What the password of an account that does not exist is compared with, so that this takes as long."""
LASTING: Final = 24 * 3600
"""Seconds that a session or an unused link lasts."""


@dataclass(frozen=True)
class Account:
    """Who is logged in, and which of `ROLES` that is."""

    name: str
    role: str

    def may(self, role: str) -> bool:
        """Whether this account may do what a role may."""
        return ROLES.index(self.role) >= ROLES.index(role)


def hash_password(password: str) -> str:
    """A password as it may be stored: salt and scrypt digest, both in hexadecimal."""
    salt = secrets.token_bytes(16)
    return f"{salt.hex()}${hashlib.scrypt(password.encode(), salt=salt, **SCRYPT).hex()}"


def check_password(password: str, hashed: str) -> bool:
    """Whether a password is the one that was hashed."""
    salt, digest = hashed.split("$")
    attempt = hashlib.scrypt(password.encode(), salt=bytes.fromhex(salt), **SCRYPT)
    return hmac.compare_digest(attempt, bytes.fromhex(digest))


@dataclass
class Logins:
    """The accounts of a project: roles and passwords, one-time links, and who is logged in.

    They are kept in the file logins.json of the project's folder, as hashes, for its owner alone: so they survive a
    restart, and `dissensus collect login` can make a link beside the server.

    Attributes:
        folder: the project's.
        clock: gives UNIX seconds.
    """

    folder: Path
    clock: Callable[[], float] = time.time

    @property
    def has_password(self) -> bool:
        """Whether there is a password to log in with; otherwise there are only one-time links."""
        return any(account["password"] is not None for account in self._kept()["accounts"].values())

    @property
    def accounts(self) -> list[Account]:
        """Everybody who may log in."""
        return [Account(name, account["role"]) for name, account in self._kept()["accounts"].items()]

    def set_password(self, password: str | None, name: str = RESEARCHER) -> None:
        """Set an account's password, or have none; if it is another than before, whoever is logged in by it is out."""
        accounts = self._kept()["accounts"]
        if name not in accounts:
            raise _no_account(name)
        before = accounts[name]["password"]
        if before == password or (None not in (before, password) and check_password(str(password), before)):
            return
        with self._changed() as kept:
            kept["accounts"][name]["password"] = None if password is None else hash_password(password)
            self._log_out(kept, name)

    def set_role(self, name: str, role: str | None) -> None:
        """Give somebody a role, and an account if there is none; without a role, the account is gone at once."""
        if not name.isprintable() or not 0 < len(name.strip()) <= 80 or (name == RESEARCHER and role != "owner"):
            raise InputError(f"account '{name}': give a name of 1 to 80 characters; '{RESEARCHER}' stays an owner")
        if role is not None and role not in ROLES:
            raise InputError(f"account '{name}': there is no role '{role}'; choose {', '.join(ROLES)}")
        with self._changed() as kept:
            if role is None and kept["accounts"].pop(name, None) is None:
                known = ", ".join(kept["accounts"])
                raise InputError(f"account '{name}': there is no such account; there are {known}")
            if role is None:
                self._log_out(kept, name)
            else:
                kept["accounts"].setdefault(name, {"password": None})["role"] = role

    @property
    def address(self) -> str | None:
        """Where the project was served last; None if it never was."""
        address: str | None = self._kept()["address"]
        return address

    def set_address(self, address: str) -> None:
        """Remember where the project is served."""
        with self._changed() as kept:
            kept["address"] = address

    def one_time_link(self, name: str = RESEARCHER) -> str:
        """A path that logs the holder of an account in, once."""
        token = new_token()
        with self._changed() as kept:
            if name not in kept["accounts"]:
                raise _no_account(name)
            kept["links"][token_hash(token)] = [self.clock() + LASTING, name]
        return f"/researcher/enter/{token}"

    def enter_by_link(self, token: str) -> str | None:
        """The new session, or None if the link was used, is too old or never existed."""
        with self._changed() as kept:
            _, name = kept["links"].pop(token_hash(token), (0.0, None))
        return None if name is None else self._begin(name)

    def enter_by_password(self, name: str, password: str) -> str | None:
        """The new session, or None if the name or the password is wrong (which takes as long to find out)."""
        hashed = self._kept()["accounts"].get(name, {"password": None})["password"]
        if not check_password(password, hashed or NOBODY) or hashed is None:
            return None
        return self._begin(name)

    def account_of(self, session: str | None) -> Account | None:
        """Who is logged in by a cookie; None for nobody."""
        kept = self._kept()
        _, name = kept["sessions"].get(token_hash(session or ""), (0.0, None))
        return Account(name, kept["accounts"][name]["role"]) if name in kept["accounts"] else None

    def leave(self, session: str) -> None:
        """Forget a session."""
        with self._changed() as kept:
            kept["sessions"].pop(token_hash(session), None)

    def _begin(self, name: str) -> str:
        session = new_token()
        with self._changed() as kept:
            kept["sessions"][token_hash(session)] = [self.clock() + LASTING, name]
        return session

    def _log_out(self, kept: dict[str, Any], name: str) -> None:
        for held in (kept["sessions"], kept["links"]):
            for digest in [digest for digest, (_, holder) in held.items() if holder == name]:
                del held[digest]

    @property
    def _path(self) -> Path:
        return self.folder / "logins.json"

    def _kept(self) -> dict[str, Any]:
        """What is in the file, without what is over; a file that is missing or damaged logs nobody in."""
        try:
            kept = json.loads(self._path.read_bytes())
            now = self.clock()
            alive = {
                held: {str(digest): [float(end), str(name)] for digest, (end, name) in kept[held].items() if now < end}
                for held in ("links", "sessions")
            }
            accounts = {
                str(name): {"role": str(x["role"]), "password": x["password"]} for name, x in kept["accounts"].items()
            }
            return {"accounts": accounts, "address": kept["address"], **alive}
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            owner = {RESEARCHER: {"role": "owner", "password": None}}
            return {"accounts": owner, "address": None, "links": {}, "sessions": {}}

    @contextmanager
    def _changed(self) -> Iterator[dict[str, Any]]:
        """What is in the file, to change; other processes wait for their turn."""
        with FileLock(self.folder / "logins.lock", timeout=10):
            kept = self._kept()
            yield kept
            with whole_file(self._path, remedy="nobody can log in; mend the rights of the folder") as part:
                part.touch(mode=0o600)
                part.write_text(json.dumps(kept), encoding="utf-8")


def _no_account(name: str) -> InputError:
    how = f"dissensus collect login FOLDER --name {name} --role reviewer"
    return InputError(f"account '{name}': there is none; make it: {how}")
