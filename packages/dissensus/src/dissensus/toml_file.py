"""A TOML file that a person wrote, read so that every refusal names the line and the nearest name."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Mapping
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

from dissensus.errors import InputError, choices, meant_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


class TomlFile:
    """A parsed file beside its text.

    Attributes:
        path: where it was read.
        text: as it was written.
        given: as it was parsed.
    """

    def __init__(self, path: Path, *, kind: str) -> None:
        self.path = path
        if not path.exists():
            raise InputError(f"{path}: there is no such {kind}{meant_path(path) or '; check the name and the folder'}")
        try:
            self.text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: the {kind} cannot be read ({error}); give a TOML file in UTF-8") from error
        try:
            self.given: dict[str, Any] = tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{path}: not valid TOML: {error}") from error

    def tables(self, keys: dict[str, tuple[str, ...]]) -> None:
        """Refuses keys that no table has; `keys` are by table, "" is the top."""
        for table, names in keys.items():
            inside = self.given if not table else self.table(table)
            for key in inside:
                self.known(key, names, table)

    def table(self, name: str) -> dict[str, Any]:
        """The table of a name, empty where it is not written."""
        inside = self.given.get(name, {})
        if not isinstance(inside, dict):
            raise self.refuse("", name, "must be a table, written as [" + name + "]")
        return inside

    def typed(self, table: str, key: str, hint: Any, default: Any) -> Any:
        """The value of a key, which must be of a type; `default` where the key is not written."""
        given = (self.table(table) if table else self.given).get(key, default)
        if not fits(given, hint):
            raise self.refuse(table, key, f"is {given!r}; give {in_words(hint)}")
        return given

    def known(self, key: str, keys: Sequence[str], table: str, *, beside: str | None = None) -> None:
        """Refuses a key that is none of `keys`."""
        if key not in keys:
            where = f"in {beside}" if beside else f"in [{table}]" if table else "at the top"
            raise InputError(
                f"{self.path}, line {self.line(table, beside or key)}: '{key}' is no key {where}"
                f"{choices(key, keys) if keys else '; there are none'}"
            )

    def no_such(self, table: str, key: str, given: Any, known: Iterable[str]) -> InputError:
        """The refusal of a value that is none of the known names."""
        names = list(known)
        return InputError(
            f"{self.path}, line {self.line(table, key)}: {key} names '{given}', which is not there"
            f"{choices(str(given), names)}"
        )

    def refuse(self, table: str, key: str, what: str) -> InputError:
        """The refusal of a key's value."""
        return InputError(f"{self.path}, line {self.line(table, key)}: '{key}' {what}")

    def line(self, table: str, key: str) -> int:
        """The line of a key in a table; of the table where the key is not written; else 1."""
        inside, found = "", 1
        for number, line in enumerate(self.text.splitlines(), start=1):
            header = re.match(r"\s*\[\s*([\w-]+)\s*\]", line)
            if header:
                inside = header[1]
                if inside == table or (not table and inside == key):
                    found = number
            if inside == table and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", line):
                return number
        return found


def fits(value: Any, hint: Any) -> bool:
    """Whether a parsed value is of an annotated type: a whole number is a float too, and true is neither."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return any(fits(value, each) for each in get_args(hint))
    if origin is Literal:
        # Which of them is for the settings to say, by name.
        return isinstance(value, str)
    if origin is tuple:
        return isinstance(value, list | tuple) and all(fits(each, get_args(hint)[0]) for each in value)
    if origin is not None and issubclass(origin, Mapping):
        return isinstance(value, dict)
    if hint is float:
        return type(value) in (int, float)
    return hint is Any or type(value) is hint or (hint not in (int, bool) and isinstance(value, hint))


def in_words(hint: Any) -> str:
    """What a value of an annotated type looks like, for the end of a sentence."""
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(in_words(each) for each in get_args(hint) if each is not type(None))
    plain = {int: "a whole number such as 10", float: "a number such as 0.5", bool: "true or false"}
    if get_origin(hint) is tuple:
        return "a list in square brackets"
    if isinstance(get_origin(hint), type) and issubclass(get_origin(hint), Mapping):
        return "a table in braces"
    return plain.get(hint, "a text in quotation marks")


def schema_of(hint: Any) -> dict[str, Any]:
    """The JSON schema of values of an annotated type, as `fits` takes them; None is a key that is not written."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        each = [schema_of(kind) for kind in inside if kind is not type(None)]
        return each[0] if len(each) == 1 else {"anyOf": each}
    if origin is Literal:
        return {"enum": list(inside)}
    if origin is tuple:
        return {"type": "array", "items": schema_of(inside[0])}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": schema_of(inside[1])}
    kinds = {bool: "boolean", int: "integer", float: "number"}
    return {} if hint is Any else {"type": kinds.get(hint, "string")}


def closed_table(properties: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """The JSON schema of a table that has these keys and no others."""
    return {"type": "object", "properties": dict(properties), "additionalProperties": False, **more}


def attributes_in_words(kind: type) -> dict[str, str]:
    """What the docstring of a class says of each of its attributes, on one line."""
    told = inspect.cleandoc(kind.__doc__ or "").partition("Attributes:\n")[2]
    entries = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", told, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in entries}
