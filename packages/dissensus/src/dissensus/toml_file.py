"""A TOML file that a person wrote, read into a model so that every refusal names the line and the nearest name."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform, get_type_hints

import msgspec
from msgspec import inspect as types

from dissensus.errors import InputError, choices, meant_path

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

__all__ = ["TableError", "TomlFile", "TomlTable", "fits", "known_keys", "no_such"]

Model = TypeVar("Model")
Place = tuple[str | int, ...]
"""Keys and places in lists that lead from the top of a file to a value."""


# msgspec passes frozen on to classes of the class; type checkers need to be told.
@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class TomlTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of a file: its keys, with types and defaults. Its `__post_init__` says what else must hold."""


class TableError(ValueError):
    """What a table has against one of its values; whoever reads the file adds where that is.

    Attributes:
        place: of the value, in the table.
        what: is wrong with it, and the remedy.
    """

    def __init__(self, place: str | Place, what: str) -> None:
        self.place, self.what = (place,) if isinstance(place, str) else place, what
        super().__init__(what)


def no_such(place: str | Place, given: Any, known: Iterable[str]) -> TableError:
    """The refusal of a value that is none of the known names."""
    names = list(known)
    return TableError(
        place, f"names '{given}', which is not there{choices(given, names) if names else '; leave it out'}"
    )


def known_keys(place: str | Place, given: Iterable[str], known: Collection[str]) -> None:
    """Refuses a key of a mapping that is none of the known ones."""
    for key in (key for key in given if key not in known):
        raise TableError(place, f"has '{key}', which is not one of its keys{choices(key, known)}")


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

    def read_as(self, model: type[Model]) -> Model:
        """The file as a model, or the refusal of what does not fit it."""
        try:
            return msgspec.convert(self.given, model)
        except msgspec.ValidationError as error:
            raise self._refusal(error, model) from error

    @contextmanager
    def refusals(self) -> Iterator[None]:
        """What is refused inside of what was read is told with its line."""
        try:
            yield
        except TableError as error:
            raise self.refuse(error.place, error.what) from error

    def refuse(self, place: str | Place, what: str) -> InputError:
        """The refusal of a value, by its place."""
        place = (place,) if isinstance(place, str) else place
        last = max(k for k, step in enumerate(place) if isinstance(step, str))
        line, steps = self._found(place)
        where = f"{self._table(place[:last])} " if last >= steps and last else ""
        return InputError(f"{self.path}, line {line}: '{place[last]}' {where}{what}")

    def line(self, *place: str | int) -> int:
        """The line of a value; where it has none of its own, that of what it is in; else 1."""
        return self._found(place)[0]

    def _found(self, place: Place) -> tuple[int, int]:
        """The line of a value, and how many steps of its place stand there."""
        steps = next((k for k in range(len(place), 0, -1) if place[:k] in self._lines), 0)
        return self._lines.get(place[:steps], 1), steps

    def _table(self, place: Place) -> str:
        """A table in words, as it is written: in [splits], in [[claims]], in words."""
        names = [step for step in place if isinstance(step, str)]
        if not names:
            return "at the top"
        line, steps = self._found(place)
        mark = re.match(r"\s*(\[*)", self.text.splitlines()[line - 1] if steps == len(place) else "")
        opened = mark[1] if mark else ""
        return f"in {opened}{names[-1] if opened != '[' else '.'.join(names)}{']' * len(opened)}"

    @cached_property
    def _lines(self) -> dict[Place, int]:
        """The line of every header and key."""
        inside: Place = ()
        found: dict[Place, int] = {}
        quote = ""
        for number, line in enumerate(self.text.splitlines(), start=1):
            header, key = re.match(rf"\s*(\[\[?)\s*({_KEY})\s*\]", line), re.match(rf"\s*({_KEY})\s*=", line)
            if header and not quote:
                inside = _steps(header[2])
                found.setdefault(inside, number)
                if header[1] == "[[":
                    inside += (sum(each[:-1] == inside and isinstance(each[-1], int) for each in found),)
                    found[inside] = number
            elif key and not quote:
                found.setdefault(inside + _steps(key[1]), number)
            for mark in re.findall(r"\"{3}|'{3}", line):
                quote = "" if mark == quote else quote or mark
        return found

    def _refusal(self, error: msgspec.ValidationError, model: Any) -> InputError:
        """What msgspec refuses, in our words: with the line, the value, and what would be right."""
        what, where = re.fullmatch(r"(.*?)(?: - at (.*))?", str(error), re.DOTALL).groups("")  # type: ignore[union-attr]
        cause = error.__cause__
        if cause is not None:
            where = str(error).removeprefix(str(cause)).removeprefix(" - at ")
        place = self._place(where, str(error), model)
        if cause is not None:
            return (
                self.refuse(place + cause.place, cause.what)
                if isinstance(cause, TableError)
                else InputError(str(cause))
            )
        node, given = _node(types.type_info(model), place), self._value(place)
        if field := re.fullmatch("Object (contains unknown|missing required) field `(.*)`", what):
            fields = {each.encode_name: each.type for table in _kinds(node, types.StructType) for each in table.fields}
            if field[1] == "contains unknown":
                return self._unknown(place, field[2], fields)
            return self.refuse((*place, field[2]), f"is missing; give {_in_words(fields[field[2]], field[2])}")
        names = [str(name) for each in _kinds(node, types.LiteralType) for name in each.values]
        if names and isinstance(given, str):
            return self.refuse(place, no_such((), given, names).what)
        verb = "has" if isinstance(place[-1], int) else "is"
        return self.refuse(place, f"{verb} {given!r}; give {_in_words(node, place[-1])}")

    def _unknown(self, place: Place, key: str, known: Iterable[str]) -> InputError:
        names = list(known)
        return InputError(
            f"{self.path}, line {self.line(*place, key)}: '{key}' is no key {self._table(place)}{choices(key, names)}"
        )

    def _place(self, where: str, message: str, model: Any) -> Place:
        """Where msgspec says that a value is; it leaves out by which key a value of a mapping stands."""
        place: Place = ()
        for name, number in re.findall(r"\.([^.\[`]+)|\[(\d+|\.\.\.)\]", where):
            if number != "...":
                place += (name or int(number),)
                continue
            for key in self._value(place):
                try:
                    msgspec.convert(_with_only(self.given, place, key), model)
                except msgspec.ValidationError as error:
                    if str(error) == message:
                        place += (key,)
                        break
        return place

    def _value(self, place: Place) -> Any:
        given: Any = self.given
        for step in place:
            given = given[step]
        return given


_KEY = r"""(?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*"""


def _steps(key: str) -> Place:
    """The steps of a key as it is written: a."b c".d."""
    return tuple(step.strip("\"'") for step in re.findall(r"""[\w-]+|"[^"]*"|'[^']*'""", key))


def _with_only(given: Any, place: Place, key: str) -> Any:
    """A copy of parsed values in which the mapping at a place has one key."""
    if not place:
        return {key: given[key]}
    copy = given.copy()
    copy[place[0]] = _with_only(given[place[0]], place[1:], key)
    return copy


def _members(node: Any) -> Iterator[Any]:
    """The types that a value may have."""
    if isinstance(node, types.Metadata):
        yield from _members(node.type)
    elif isinstance(node, types.UnionType):
        for each in node.types:
            yield from _members(each)
    else:
        yield node


def _kinds(node: Any, kind: type[Model]) -> list[Model]:
    return [each for each in _members(node) if isinstance(each, kind)]


def _node(node: Any, place: Place) -> Any:
    """The type of what stands at a place in a value of a type."""
    for step in place:
        if isinstance(step, int):
            node = [each.item_type for each in _kinds(node, types.VarTupleType)] or _kinds(node, types.TupleType)
            node = node[0].item_types[step] if isinstance(node[0], types.TupleType) else node[0]
        else:
            fields = [field for table in _kinds(node, types.StructType) for field in table.fields]
            mappings = [each.value_type for each in _kinds(node, types.DictType)]
            node = next((field.type for field in fields if field.encode_name == step), *mappings)
    return node


def _in_words(node: Any, key: str | int = "") -> str:
    """What a value of a type looks like, for the end of a sentence."""
    if isinstance(node, types.Metadata) and node.extra:
        return str(node.extra["write"])
    kinds = [each for each in _members(node) if not isinstance(each, types.NoneType)]
    any_number = any(isinstance(each, types.FloatType) for each in kinds)
    return " or ".join(
        _kind_in_words(each, key) for each in kinds if not any_number or not isinstance(each, types.IntType)
    )


def _kind_in_words(kind: Any, key: str | int) -> str:
    if isinstance(kind, types.IntType | types.FloatType):
        return f"a {'whole ' if isinstance(kind, types.IntType) else ''}number{_range(kind)}"
    if isinstance(kind, types.VarTupleType) and _kinds(kind.item_type, types.StructType) == [kind.item_type]:
        return f"tables, each written as [[{key}]]"
    if isinstance(kind, types.LiteralType):
        return f"one of {', '.join(map(str, kind.values))}"
    plain = {"BoolType": "true or false", "DictType": "a table in braces", "StructType": f"a table, written as [{key}]"}
    lists = dict.fromkeys(("VarTupleType", "TupleType"), "a list in square brackets, with one entry at least")
    return (plain | lists).get(type(kind).__name__, "a text in quotation marks")


def _range(number: Any) -> str:
    ends = [f"{number.ge:g} or more"] if number.ge is not None else []
    ends += [f"above {number.gt:g}"] if number.gt is not None else []
    ends += [f"{number.le:g} or less"] if number.le is not None else []
    return f", {' and '.join(ends)}" if ends else " such as 10" if isinstance(number, types.IntType) else " such as 0.5"


def fits(value: Any, hint: Any) -> str:
    """Empty where a value is of an annotated type; else what would be, for the end of a sentence."""
    try:
        msgspec.convert(value, hint)
    except msgspec.ValidationError:
        return _in_words(types.type_info(hint))
    return ""


def table_of(kind: type, what: str, **others: Any) -> type[msgspec.Struct]:
    """A table whose keys are the fields of settings (a dataclass) with their types.

    Args:
        kind: of settings.
        what: the table is, in a sentence.
        **others: types of keys that are not as the settings have them. Where a key is more than settings have, these
            only differ from others, and no default is told.
    """
    hints = get_type_hints(kind, localns={"Mapping": Mapping, "Path": str})
    more = set(others) - set(hints)
    keys: list[Any] = [(name, others[name] | None, None) for name in more]
    for each in fields(kind):
        hint = others.get(each.name, hints[each.name])
        default = msgspec.NODEFAULT if each.default is MISSING else each.default
        keys.append((each.name, hint | None, None) if more else (each.name, hint, default))
    attributes = inspect.cleandoc(kind.__doc__ or "").partition("Attributes:")
    return msgspec.defstruct(
        kind.__name__, keys, bases=(TomlTable,), namespace={"__doc__": what + "\n\n" + "".join(attributes[1:])}
    )


def schema_of(model: type, *, title: str) -> dict[str, Any]:
    """The JSON schema of files that are read as a model: editors complete keys with it and mark wrong ones."""
    (made,), parts = msgspec.json.schema_components([model], ref_template="{name}")
    made, parts = msgspec.json.decode(msgspec.json.encode((made, parts)))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title} | _plain(made, parts)


def _plain(given: dict[str, Any], parts: dict[str, Any]) -> dict[str, Any]:
    """A schema without references, with what docstrings say of keys; None is a key that is not written."""
    found = {**parts.get(given.get("$ref", ""), {}), **given}
    found = {key: value for key, value in found.items() if key not in ("$ref", "title") and value != []}
    for key in ("items", "additionalProperties"):
        if isinstance(found.get(key), dict):
            found[key] = _plain(found[key], parts)
    if "anyOf" in found:
        kinds = [_plain(each, parts) for each in found.pop("anyOf") if each != {"type": "null"}]
        kinds = [each for each in kinds if each.get("type") != "integer" or not _has(kinds, "number")]
        found |= kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    if "propertyNames" in found:
        each = found.pop("additionalProperties")
        found |= {"properties": dict.fromkeys(found.pop("propertyNames")["enum"], each), "additionalProperties": False}
    elif "properties" in found:
        text = inspect.cleandoc(found.pop("description", ""))
        told = {key: {"description": each} for key, each in attributes_in_words(text).items()}
        found["properties"] = {
            key: _plain(each, parts) | told.get(key, {}) for key, each in found["properties"].items()
        }
        found |= {"description": " ".join(text.partition("\n\n")[0].split())} if text else {}
    if found.get("default") in (None, "", {}) or "properties" in found:
        found.pop("default", None)
    return found


def _has(kinds: list[dict[str, Any]], kind: str) -> bool:
    return any(each.get("type") == kind for each in kinds)


def attributes_in_words(text: str | None) -> dict[str, str]:
    """What a docstring says of each attribute, on one line."""
    told = inspect.cleandoc(text or "").partition("Attributes:\n")[2]
    entries = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", told, re.MULTILINE)
    return {name: " ".join(words.split()) for name, words in entries}
