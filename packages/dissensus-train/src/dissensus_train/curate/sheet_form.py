"""The questions of a datasheet, after Gebru et al. (2021), and their answers from a TOML file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dissensus.toml_file import TomlFile

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

QUESTIONS: Final[dict[str, dict[str, str]]] = {
    "motivation": {
        "purpose": "For what purpose was the set made",
        "made_by": "Who made it",
        "funded_by": "Who funded it",
    },
    "composition": {
        "items": "What the items are",
        "sampling": "How the items were chosen from all that there are",
        "exclusions": "What was left out, and why",
        "biases": "Known errors, noise and biases",
        "sensitive": "What may be confidential, offensive, or tell who somebody is",
    },
    "collection": {
        "how": "How and when the items were acquired",
        "annotators": "Who the annotators are, and how they were recruited",
        "instructions": "What annotators were asked and told",
        "pay": "What annotators were paid",
        "consent": "What annotators agreed to",
        "checks": "How attention and understanding were checked",
        "excluded": "Whose answers were left out, and why",
        "review": "Ethical review",
    },
    "uses": {
        "so_far": "What the set has been used for",
        "meant_for": "What it may be used for",
        "not_for": "What it should not be used for",
    },
    "distribution": {
        "licence": "Licence of this set",
        "where": "Where it is kept",
        "cite": "How to cite it",
    },
    "maintenance": {
        "by": "Who keeps it up",
        "errors": "How errors are reported",
        "updates": "Whether and how it will be updated",
    },
}
"""By section and key of the answers file, what is asked."""


def read_answers(path: Path) -> dict[str, dict[str, str]]:
    """Answers by section and key, from a TOML file with a table a section; a key that nobody asks for is refused."""
    file = TomlFile(path, kind="file of answers")
    file.tables({"": tuple(QUESTIONS), **{section: tuple(asked) for section, asked in QUESTIONS.items()}})
    return {
        section: {key: file.typed(section, key, str, "") for key in file.table(section)}
        for section in QUESTIONS
        if file.table(section)
    }


def merged(*sheets: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """The answers of several sheets; where two answer a question, the later one counts."""
    answers: dict[str, dict[str, Any]] = {}
    for sheet in sheets:
        for section, given in sheet.items():
            answers.setdefault(section, {}).update({key: value for key, value in given.items() if value.strip()})
    return answers
