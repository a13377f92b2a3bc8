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
    """What is wrong with a value of a table, and the remedy; whoever reads the file adds where that is."""

    def __init__(self, place: str | Place, what: str) -> None:
        self.place, self.what = (place,) if isinstance(place, str) else place, what
        super().__init__(what)


def no_such(place: str | Place, value: Any, known: Iterable[str]) -> TableError:
    """The refusal of a value that is none of the known names."""
    names = list(known)
    return TableError(
        place, f"names '{value}', which is not there{choices(value, names) if names else '; leave it out'}"
    )


def known_keys(place: str | Place, keys: Iterable[str], known: Collection[str]) -> None:
    """Refuses a key of a mapping that is none of the known ones."""
    for key in (key for key in keys if key not in known):
        raise TableError(place, f"has '{key}', which is not one of its keys{choices(key, known)}")


class TomlFile:
    """A file of a path: its text as it was written, and what it was parsed to (`given`).

    Whoever puts a value of `given` elsewhere says in `moved`, by the new place, where it was written.
    """

    def __init__(self, path: Path, *, kind: str) -> None:
        self.path = path
        self.moved: dict[Place, Place] = {}
        if not path.exists():
            raise InputError(f"{path}: there is no such {kind}{meant_path(path) or '; check the name and the folder'}")
        try:
            self.text = path.read_text(encoding="utf-8-sig")
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
        """What is refused inside of what was read is refused with its line."""
        try:
            yield
        except TableError as error:
            raise self.refuse(error.place, error.what) from error

    def refuse(self, place: str | Place, what: str) -> InputError:
        """The refusal of a value, by its place."""
        place = self._written((place,) if isinstance(place, str) else place)
        last = max(k for k, step in enumerate(place) if isinstance(step, str))
        line, steps = self._nearest(place)
        where = f"{self._table(place[:last])} " if last >= steps and last else ""
        return InputError(f"{self.path}, line {line}: '{place[last]}' {where}{what}")

    def _written(self, place: Place) -> Place:
        """Where a value of `given` stands in the text."""
        known = next((k for k in range(len(place), 0, -1) if place[:k] in self.moved), 0)
        return self.moved.get(place[:known], ()) + place[known:]

    def line(self, *place: str | int) -> int:
        """The line of a value; where it has none of its own, that of what it is in; else 1."""
        return self._nearest(place)[0]

    def _nearest(self, place: Place) -> tuple[int, int]:
        """The line of a value, and how many steps of its place stand there."""
        steps = next((k for k in range(len(place), 0, -1) if place[:k] in self._lines), 0)
        return self._lines.get(place[:steps], 1), steps

    def _table(self, place: Place) -> str:
        """A table in words, as it is written: in [splits], in [[claims]], in words."""
        names = [step for step in place if isinstance(step, str)]
        if not names:
            return "at the top"
        line, steps = self._nearest(place)
        mark = re.match(r"\s*(\[*)", self.text.splitlines()[line - 1] if steps == len(place) else "")
        opened = mark[1] if mark else ""
        return f"in {opened}{'.'.join(names) if opened else names[-1]}{']' * len(opened)}"

    @cached_property
    def _lines(self) -> dict[Place, int]:
        """The line of every header and key, and of every table in braces that is in a list."""
        inside: Place = ()
        lines: dict[Place, int] = {}
        quote, begins = "", 0

        def entries(place: Place) -> int:
            return sum(known[:-1] == place and isinstance(known[-1], int) for known in lines)

        for number, line in enumerate(self.text.splitlines(keepends=True), start=1):
            header, key = re.match(rf"\s*(\[\[?)\s*({_KEY})\s*\]", line), re.match(rf"\s*({_KEY})\s*=\s*", line)
            if header and not quote:
                inside = ()
                for step in _steps(header[2]):
                    # Below [[a]], [a.b] is in the last of its entries.
                    inside += (entries(inside) - 1, step) if entries(inside) else (step,)
                lines.setdefault(inside, number)
                if header[1] == "[[":
                    inside += (entries(inside),)
                    lines[inside] = number
            elif key and not quote:
                place = inside + _steps(key[1])
                lines.setdefault(place, number)
                if line[key.end() :].startswith("["):
                    for entry, further in _tables_in(self.text, begins + key.end()):
                        lines.setdefault((*place, entry), number + further)
            for mark in re.findall(r"\"{3}|'{3}", line):
                quote = "" if mark == quote else quote or mark
            begins += len(line)
        return lines

    def _refusal(self, error: msgspec.ValidationError, model: Any) -> InputError:
        """What msgspec refuses, in our words: with the line, the value, and what would be right."""
        what, where = re.fullmatch(r"(.*?)(?: - at (.*))?", str(error), re.DOTALL).groups("")  # type: ignore[union-attr]
        cause = error.__cause__
        if cause is not None:
            where = str(error).removeprefix(str(cause)).removeprefix(" - at ")
        place = self._place(where, str(error), model)
        if isinstance(cause, TableError):
            return self.refuse(place + cause.place, cause.what)
        if cause is not None:
            return InputError(str(cause))
        node, value = _node(types.type_info(model), place), self._value(place)
        if field := re.fullmatch("Object (contains unknown|missing required) field `(.*)`", what):
            keys = {key.encode_name: key.type for table in _kinds(node, types.StructType) for key in table.fields}
            if field[1] == "contains unknown":
                place = self._written((*place, field[2]))
                line, table = self.line(*place), self._table(place[:-1])
                return InputError(f"{self.path}, line {line}: '{field[2]}' is no key {table}{choices(field[2], keys)}")
            return self.refuse((*place, field[2]), f"is missing; give {_in_words(keys[field[2]], field[2])}")
        names = [str(name) for literal in _kinds(node, types.LiteralType) for name in literal.values]
        if names and isinstance(value, str):
            return self.refuse(place, no_such((), value, names).what)
        verb = "has" if isinstance(place[-1], int) else "is"
        return self.refuse(place, f"{verb} {value!r}; give {_in_words(node, place[-1])}")

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
        value: Any = self.given
        for step in place:
            value = value[step]
        return value


_KEY = r"""(?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*"""
_MARKS = re.compile(r"""\"{3}.*?\"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\])*"|'[^']*'|\#[^\n]*|[\[\]{},\n]""", re.DOTALL)


def _steps(key: str) -> Place:
    """The steps of a key as it is written: a."b c".d."""
    return tuple(step.strip("\"'") for step in re.findall(r"""[\w-]+|"[^"]*"|'[^']*'""", key))


def _tables_in(text: str, begins: int) -> Iterator[tuple[int, int]]:
    """The tables in braces of a list that begins at a place of a text: which entry each is, and how many lines down."""
    depth = entry = lines = 0
    for found in _MARKS.finditer(text, begins):
        mark = found[0]
        if depth == 1 and mark == "{":
            yield entry, lines
        entry += depth == 1 and mark == ","
        lines += mark.count("\n")
        depth += (mark in ("[", "{")) - (mark in ("]", "}"))
        if not depth:
            return


def _with_only(values: Any, place: Place, key: str) -> Any:
    """A copy of parsed values in which the mapping at a place has one key."""
    if not place:
        return {key: values[key]}
    copy = values.copy()
    copy[place[0]] = _with_only(values[place[0]], place[1:], key)
    return copy


def _members(node: Any) -> Iterator[Any]:
    """The types that a value may have."""
    if isinstance(node, types.Metadata):
        yield from _members(node.type)
    elif isinstance(node, types.UnionType):
        for member in node.types:
            yield from _members(member)
    else:
        yield node


def _kinds(node: Any, kind: type[Model]) -> list[Model]:
    return [member for member in _members(node) if isinstance(member, kind)]


def _node(node: Any, place: Place) -> Any:
    """The type of what stands at a place in a value of a type."""
    for step in place:
        if isinstance(step, int):
            kind = next(kind for kind in _members(node) if isinstance(kind, types.VarTupleType | types.TupleType))
            node = kind.item_types[step] if isinstance(kind, types.TupleType) else kind.item_type
        else:
            keys = [key for table in _kinds(node, types.StructType) for key in table.fields]
            values = [mapping.value_type for mapping in _kinds(node, types.DictType)]
            node = next((key.type for key in keys if key.encode_name == step), *values)
    return node


def _in_words(node: Any, key: str | int = "") -> str:
    """What a value of a type looks like, for the end of a sentence."""
    if isinstance(node, types.Metadata) and node.extra:
        return str(node.extra["write"])
    hidden = (types.NoneType, types.IntType) if _kinds(node, types.FloatType) else types.NoneType
    return " or ".join(_kind_in_words(kind, key) for kind in _members(node) if not isinstance(kind, hidden))


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
    """A table whose keys are the fields of settings (a dataclass) with their types; `what` says what it is.

    `others` are types of keys that are not as the settings have them. Where one of them is no field of the settings,
    tables only say what differs from other settings, and no key has a default.
    """
    hints = get_type_hints(kind, localns={"Mapping": Mapping, "Path": str})
    more = set(others) - set(hints)
    keys: list[Any] = [(name, others[name] | None, None) for name in more]
    for field in fields(kind):
        hint = others.get(field.name, hints[field.name])
        default = msgspec.NODEFAULT if field.default is MISSING else field.default
        keys.append((field.name, hint | None, None) if more else (field.name, hint, default))
    attributes = inspect.cleandoc(kind.__doc__ or "").partition("Attributes:")
    return msgspec.defstruct(
        kind.__name__, keys, bases=(TomlTable,), namespace={"__doc__": what + "\n\n" + "".join(attributes[1:])}
    )


def schema_of(model: type, *, title: str) -> dict[str, Any]:
    """The JSON schema of files that are read as a model: editors complete keys with it and mark wrong ones."""
    (made,), parts = msgspec.json.schema_components([model], ref_template="{name}")
    made, parts = msgspec.json.decode(msgspec.json.encode((made, parts)))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title} | _plain(made, parts)


def _plain(written: dict[str, Any], parts: dict[str, Any]) -> dict[str, Any]:
    """A schema without references, with what docstrings say of keys; None is a key that is not written."""
    schema = {**parts.get(written.get("$ref", ""), {}), **written}
    schema = {key: value for key, value in schema.items() if key not in ("$ref", "title") and value != []}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            schema[key] = _plain(schema[key], parts)
    if "anyOf" in schema:
        kinds = [_plain(kind, parts) for kind in schema.pop("anyOf") if kind != {"type": "null"}]
        any_number = any(kind.get("type") == "number" for kind in kinds)
        kinds = [kind for kind in kinds if kind.get("type") != "integer" or not any_number]
        schema |= kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    if "propertyNames" in schema:
        keys, value = schema.pop("propertyNames")["enum"], schema.pop("additionalProperties")
        schema |= {"properties": dict.fromkeys(keys, value), "additionalProperties": False}
    elif "properties" in schema:
        text = inspect.cleandoc(schema.pop("description", ""))
        words = {key: {"description": sentence} for key, sentence in attributes_in_words(text).items()}
        schema["properties"] = {
            key: _plain(value, parts) | words.get(key, {}) for key, value in schema["properties"].items()
        }
        schema |= {"description": " ".join(text.partition("\n\n")[0].split())} if text else {}
    if schema.get("default") in (None, "", {}) or "properties" in schema:
        schema.pop("default", None)
    return schema


def attributes_in_words(text: str | None) -> dict[str, str]:
    """What a docstring says of each attribute, on one line."""
    attributes = inspect.cleandoc(text or "").partition("Attributes:\n")[2]
    entries = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", attributes, re.MULTILINE)
    return {name: " ".join(words.split()) for name, words in entries}
