"""The questions of a datasheet, after Gebru et al. (2021), and their answers from a TOML file."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

import msgspec

from dissensus.toml_file import Table, TomlFile

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

QUESTIONS: Final[dict[str, dict[str, str]]] = tomllib.loads(
    resources.files("dissensus_train.curate").joinpath("datasheet.toml").read_text(encoding="utf-8")
)
"""By section and key of the answers file, what is asked."""


def read_answers(path: Path) -> dict[str, dict[str, str]]:
    """Answers by section and key, from a TOML file with a table a section; a key that nobody asks for is refused."""
    tables = [
        (name, msgspec.defstruct(name, [(key, str, "") for key in asked], bases=(Table,)))
        for name, asked in QUESTIONS.items()
    ]
    sheet = msgspec.defstruct("sheet", [(name, table | None, None) for name, table in tables], bases=(Table,))
    file = TomlFile(path, kind="file of answers")
    file.read_as(sheet)
    return {name: file.given[name] for name in QUESTIONS if file.given.get(name)}


def merged(*sheets: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """The answers of several sheets; where two answer a question, the later one counts."""
    answers: dict[str, dict[str, Any]] = {}
    for sheet in sheets:
        for section, given in sheet.items():
            answers.setdefault(section, {}).update({key: value for key, value in given.items() if value.strip()})
    return answers
