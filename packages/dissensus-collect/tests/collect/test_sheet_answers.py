"""What a project knows of a datasheet's questions: from its file, and from what was collected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typer.testing import CliRunner

from dissensus_collect.sheet_answers import sheet_answers
from dissensus_collect.store.opening import open_database, snapshot
from dissensus_collect.work.leaving import exclude
from dissensus_train.cli.curate import app
from dissensus_train.curate.sheet import QUESTIONS
from tests.collect.panels import NOW, judge_all, text_project

if TYPE_CHECKING:
    from pathlib import Path


def test_a_datasheet_takes_its_answers_and_votes_from_the_project(tmp_path: Path) -> None:
    project = text_project(tmp_path / "project", items=5, k=3, classes=("cat", "dog"))

    def said(item: int) -> dict[str, str]:
        return {"cat": "yes" if item % 2 else "no", "dog": "unsure"}

    with open_database(project) as database:
        people = [judge_all(database, project, said, external=f"P{number}") for number in range(3)]
        database.write_now(lambda cursor: exclude(cursor, people[0], now=NOW, reason="answered at random", by="lead"))
    with snapshot(project) as cursor:
        found = sheet_answers(cursor, project)
    assert all(set(given) <= set(QUESTIONS[section]) for section, given in found.items())
    collection = found["collection"]
    assert collection["annotators"] == "3 people arrived by a plain link; the answers of 2 are kept."
    assert collection["excluded"] == "1 answered at random"
    assert project.question in collection["instructions"]
    assert project.texts.instructions in collection["instructions"]
    assert collection["consent"] == project.texts.consent
    assert f"{project.cost.pay_per_hour:g} {project.cost.currency} per hour" in collection["pay"]
    (tmp_path / "list.csv").write_text("item\n" + "\n".join(f"item{number}" for number in range(5)) + "\n")
    (tmp_path / "sheet.toml").write_text("[collection]\nexcluded = 'nobody of note'\n[uses]\nnot_for = 'pets'\n")
    done = CliRunner().invoke(
        app,
        [
            *("datasheet", str(tmp_path / "list.csv"), "--project", str(project.folder)),
            *("--answers", str(tmp_path / "sheet.toml"), "-o", str(tmp_path / "sheet.md")),
            *("--croissant", str(tmp_path / "sheet.json")),
        ],
    )
    assert done.exit_code == 0, done.output
    sheet = (tmp_path / "sheet.md").read_text()
    assert "2 annotators gave 10 judgements" in sheet
    assert "- Whose answers were left out, and why: nobody of note" in sheet
    assert "- What it should not be used for: pets" in sheet
    assert "- Who the annotators are, and how they were recruited: 3 people arrived" in sheet
    assert '"rai:dataLimitations": "pets"' in (tmp_path / "sheet.json").read_text()
