"""Projects with known answers, collected through the core without a server."""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, Any

from dissensus_collect.project.reading import read_project
from dissensus_collect.project.starting import init_project
from dissensus_collect.results.overview import overview
from dissensus_collect.work.answers import check_answers
from dissensus_collect.work.assignment import Assigned, next_item, save
from dissensus_collect.work.participants import External, arrive
from dissensus_collect.work.steps import consent, practised
from tests.collect.conftest import let_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from dissensus_collect.project.reading import Project
    from dissensus_collect.results.quality import ClassAgreement
    from dissensus_collect.store.database import Database

NOW = 1_800_000_000.0


def text_project(
    folder: Path,
    *,
    items: int,
    k: int = 3,
    classes: Sequence[str] = ("cat", "dog"),
    gold: Mapping[str, str] | None = None,
    **changes: str,
) -> Project:
    """A project of texts named item0, item1, ...

    `gold` names the class that an item must be given; `changes` replace lines of the collect file: budget="budget = 2".
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "items.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["item", "text"])
        writer.writerows([f"item{n}", f"text number {n}"] for n in range(items))
    path = init_project(folder, texts=folder / "items.csv", classes=classes, k=k, items_per_annotator=items)
    text = path.read_text()
    listed = ", ".join(f'{{ item = "{item}", yes = ["{label}"] }}' for item, label in (gold or {}).items())
    text = text.replace("items = []", f"items = [{listed}]", 1)
    for key, line in changes.items():
        text, found = re.subn(rf"^{key} =.*$", line, text, count=1, flags=re.MULTILINE)
        assert found, f"no line begins with {key} ="
    path.write_text(text)
    return read_project(folder)


def join(database: Database, project: Project, *, external: str | None = None) -> int:
    """A new annotator who is ready to work."""

    def work(cursor: Any) -> int:
        who = None if external is None else External(platform="prolific", id=external)
        annotator = arrive(cursor, now=NOW, external=who).annotator
        if consent(cursor, project, annotator, now=NOW, agreed=True) == "arrived":
            let_in(cursor, project, annotator, now=NOW)
        practised(cursor, project, annotator, now=NOW, passed=True)
        return annotator

    return database.write_now(work)


def judge_all(
    database: Database,
    project: Project,
    answer: Callable[[int], dict[str, Any]],
    *,
    now: float = NOW,
    seconds: float = 5.0,
    external: str | None = None,
    most: int | None = None,
) -> int:
    """One annotator judges what is offered; `answer(n)` gives the values for item number n, by class name or code."""
    annotator = join(database, project, external=external)
    judged = 0
    while most is None or judged < most:
        now += 1.0

        def work(cursor: Any, now: float = now) -> bool:
            shown = next_item(cursor, project, annotator, now=now, tab="tab")
            if not isinstance(shown, Assigned):
                return False
            (name,) = cursor.execute("SELECT name FROM item WHERE id = ?", (shown.item.id,)).fetchone()
            number = int(name.removeprefix("item"))
            values = {str(project.classes.names.index(label)): value for label, value in answer(number).items()}
            raw = {
                "values": values,
                "first": {each: 100.0 * (int(each) + 1) for each in values},
                "last": {each: 500.0 * (int(each) + 1) for each in values},
                "changes": dict.fromkeys(values, 1),
                "total_ms": 1000 * seconds,
                "hidden_ms": 250.0,
                "input": "key",
            }
            answers = check_answers(project, raw)
            save(
                cursor, project, annotator, now=now, assignment=shown.assignment, uuid=f"{annotator:08}-{number}",
                answer=answers,
            )  # fmt: skip
            return True

        if not database.write_now(work):
            break
        judged += 1
    return annotator


def agreement_by_class(cursor: Any, project: Project) -> tuple[ClassAgreement, ...]:
    """Krippendorff's alpha of every class of the first question."""
    return overview(cursor, project).agreement[0].classes
