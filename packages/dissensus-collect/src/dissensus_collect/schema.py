"""The JSON schema of collection projects, made from what reads them: editors complete keys and mark wrong ones."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dissensus.responses import RESPONSES
from dissensus.toml_file import closed_table
from dissensus_collect.project import _TEMPLATE, ENDINGS, ENTRY_KEYS, KEYS, _ProjectFile

if TYPE_CHECKING:
    from collections.abc import Sequence


def project_schema() -> dict[str, Any]:
    """The schema of a collect.toml. It knows every key; what else must hold, reading the file tells."""
    asked = _Asked()
    asked.project()
    found, told = asked.kept, _remarks()
    found["classes"]["words"] = closed_table({each: {"type": "string"} for each in RESPONSES})
    found["recruitment"]["codes"] = closed_table({each: {"type": "string"} for each in ENDINGS})
    tables = {
        name: closed_table(
            {key: {**found.get(name, {}).get(key, {}), **told.get((name, key), {})} for key in keys},
            **told.get((name, ""), {}),
        )
        for name, keys in KEYS.items()
    }
    entries = {
        name: {"type": "array", "items": closed_table({key: {} for key in keys})} for name, keys in ENTRY_KEYS.items()
    }
    top = tables.pop("")
    top["properties"] |= {name: each for name, each in {**tables, **entries}.items() if name in top["properties"]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A collection project of dissensus",
        "description": "Items, classes and rules with which votes are collected on the web.",
        **top,
        "required": ["items", "classes"],
    }


class _Asked(_ProjectFile):
    """A project that keeps what it is asked for: the types of keys are where they are read, and nowhere else."""

    def __init__(self) -> None:
        self.path, self.text = Path("collect.toml"), ""
        self.given = {"classes": {"names": ["yes", "no"]}, "items": {"images": "."}}
        self.kept: dict[str, dict[str, Any]] = {}

    def keep(self, table: str, key: str, **schema: Any) -> None:
        self.kept.setdefault(table, {}).setdefault(key, {}).update(schema)

    def words(self, table: str, key: str, default: str) -> str:
        self.keep(table, key, type="string")
        return super().words(table, key, default)

    def one_of(self, table: str, key: str, names: Sequence[str]) -> str:
        self.keep(table, key, enum=list(names), default=names[0])
        return super().one_of(table, key, names)

    def truth(self, table: str, key: str, default: bool) -> bool:
        self.keep(table, key, type="boolean", default=default)
        return super().truth(table, key, default)

    def whole(self, table: str, key: str, default: int, *, least: int = 0) -> int:
        self.keep(table, key, type="integer", minimum=least, default=default)
        return super().whole(table, key, default, least=least)

    def number(self, table: str, key: str, default: float, *, above: float | None = None) -> float:
        self.keep(table, key, type="number", minimum=0, default=default)
        return super().number(table, key, default, above=above)

    def listed(self, table: str, key: str) -> list[Any]:
        self.keep(table, key, type="array")
        return super().listed(table, key)

    def names(self, table: str, key: str) -> list[str]:
        self.keep(table, key, items={"type": "string"})
        return super().names(table, key)


def _remarks() -> dict[tuple[str, str], dict[str, str]]:
    """What the file of a new project remarks beside tables and keys, by table and key."""
    table, found = "", {}
    for line in _TEMPLATE.replace("{{", "{").replace("}}", "}").splitlines():
        written = re.match(r"(?:\[(\w+)\]|(\w+) = .*?)\s*(?:#\s(.*))?$", line)
        if written is not None:
            table = written[1] or table
            if written[3]:
                found[table, written[2] or ""] = {"description": written[3]}
    return found
