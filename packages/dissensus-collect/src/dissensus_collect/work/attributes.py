"""What is known of annotators, by name: what they said of themselves, their links and their platform."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dissensus_collect.store.database import Cursor


def remember(cursor: Cursor, annotator: int, answers: Mapping[str, str]) -> None:
    """Keeps what is known of an annotator, by name; a later word replaces an earlier one."""
    cursor.executemany(
        "INSERT INTO final_answer (annotator, name, answer) VALUES (?, ?, ?) "
        "ON CONFLICT (annotator, name) DO UPDATE SET answer = excluded.answer",
        [(annotator, name, answer) for name, answer in answers.items()],
    )


def final_answers(cursor: Cursor, annotator: int | None = None) -> dict[int, dict[str, str]]:
    """For each annotator (or one of them), what is known of them, by name."""
    answers: dict[int, dict[str, str]] = {}
    only, which = ("WHERE annotator = ?", (annotator,)) if annotator is not None else ("", ())
    cursor.execute(f"SELECT annotator, name, answer FROM final_answer {only} ORDER BY annotator, name", which)
    for annotator, name, answer in cursor.fetchall():
        answers.setdefault(annotator, {})[name] = answer
    return answers
