"""Several questions about an item, scales with their own ends, reasons in words, and practice with feedback."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from dissensus.cli import app
from dissensus.errors import InputError
from dissensus.responses import NO, UNSURE, YES
from dissensus.votes.reading import read_votes
from dissensus_collect.project.orders import class_order
from dissensus_collect.project.reading import read_project
from dissensus_collect.project.setup_check import check_setup
from dissensus_collect.project.starting import init_project
from dissensus_collect.project.tables import LAYOUTS
from dissensus_collect.results.collected import collected_votes
from dissensus_collect.results.export import export_project
from dissensus_collect.simulation.crowd import answers_of
from dissensus_collect.store.opening import open_database, snapshot
from dissensus_collect.work.answers import Refused, amounts_of, check_answers, responses_of
from tests.collect.conftest import Collecting, make_project
from tests.collect.web import visited, web_project

if TYPE_CHECKING:
    from pathlib import Path

MORE = """
[[item_questions]]
name = "tone"
question = "What tone does it have?"
layout = "single-choice"
classes = ["kind", "rude"]

[[item_questions]]
name = "clear"
question = "How clear is it?"
layout = "rating"
classes = ["clear"]
scale = { least = -2, most = 2, step = 2, low = "murky", high = "crystal" }
"""
ANSWER = {"0": "yes", "1": "no", "2": "unsure", "3": "yes", "5": 2}


def test_classes_are_numbered_through_and_every_question_keeps_its_layout(tmp_path: Path) -> None:
    project = make_project(tmp_path, more=MORE)
    assert project.all_classes == ("a", "b", "c", "kind", "rude", "clear")
    answers = check_answers(project, {"values": ANSWER})
    assert responses_of(project, answers.values) == (YES, NO, UNSURE, YES, NO, YES)
    assert amounts_of(project, answers.values) == (None, None, None, None, None, 2.0)
    order = class_order(project, 7, 1)
    assert (sorted(order[:3]), sorted(order[3:5]), order[5]) == ([0, 1, 2], [3, 4], 5)


def test_the_words_of_a_scale_are_those_of_its_question_or_else_ours(tmp_path: Path) -> None:
    project = make_project(tmp_path, more=MORE, language='"de"', scale__low='"never"')
    tone, clear = project.item_questions
    assert (clear.scale.low, clear.scale.high) == ("murky", "crystal")
    assert (tone.scale.low, tone.scale.high) == ("gar nicht", "völlig")
    assert project.scale.low == "never"


@pytest.mark.parametrize(
    ("change", "kind", "sentence"),
    [
        ({"3": None}, "incomplete", "choose one class"),
        ({"4": "yes"}, "illegal", "2 are chosen"),
        ({"5": None}, "incomplete", "1 class left: clear"),
        ({"5": 1}, "illegal", "not an answer to clear; answer -2, 0, 2"),
        ({"3": "unsure"}, "illegal", "not an answer to kind"),
        ({"6": "yes"}, "illegal", "'6' is not a class"),
    ],
)
def test_an_answer_must_be_whole_and_legal_for_every_question(
    tmp_path: Path, change: dict[str, Any], kind: str, sentence: str
) -> None:
    project = make_project(tmp_path, more=MORE)
    values = {key: value for key, value in {**ANSWER, **change}.items() if value is not None}
    with pytest.raises(Refused, match=re.escape(sentence)) as refused:
        check_answers(project, {"values": values})
    assert refused.value.kind == kind


@pytest.mark.parametrize(("most", "expected"), [(4, "nnyy"), (5, "nnuyy"), (7, "nnnuyyy")])
def test_a_rating_above_the_middle_is_yes_and_the_middle_unsure(tmp_path: Path, most: int, expected: str) -> None:
    project = make_project(tmp_path, layout='"rating"', scale__most=str(most))
    said = ""
    for value in project.scale.values:
        (code, *_) = responses_of(project, {0: value, 1: 1, 2: 1})
        said += {YES: "y", NO: "n", UNSURE: "u"}[code]
    assert said == expected


@pytest.mark.parametrize(
    ("scale", "sentence"),
    [
        ("{ least = 3, most = 1 }", "goes from 3 to 1 by 1"),
        ("{ least = 0, most = 5, step = 2 }", "goes from 0 to 5 by 2"),
        ("{ least = 0, most = 100 }", "'most' in scale makes 101 steps; give 21 at most"),
        ("{ lowest = 1 }", "'lowest' is no key in scale"),
        ("{ low = 3 }", "'low' in scale is 3; give a text in quotation marks"),
    ],
)
def test_a_scale_that_leads_nowhere_is_refused_with_its_line(tmp_path: Path, scale: str, sentence: str) -> None:
    more = f'[[item_questions]]\nname = "x"\nquestion = "?"\nlayout = "rating"\nclasses = ["y"]\nscale = {scale}\n'
    with pytest.raises(InputError, match=r"line \d+: .*" + re.escape(sentence)):
        make_project(tmp_path, more=more)


def test_every_question_goes_into_votes_labels_and_inspect(tmp_path: Path) -> None:
    project = make_project(tmp_path / "p", items=2, k=2, more=MORE)
    with open_database(project) as database:
        collecting = Collecting(project, database)
        for said in ("yes no no yes no 2", "unsure yes no no yes 0"):
            who = collecting.worker()
            for _ in range(2):
                lease = collecting.lease(who)
                words = said.split()
                values = {str(k): int(each) if each.lstrip("-").isdigit() else each for k, each in enumerate(words)}
                collecting.save(who, lease, said=" ".join(map(str, values.values())))
    with snapshot(project) as cursor:
        export_project(cursor, project, tmp_path / "out")
        tone = collected_votes(cursor, project, question=1)
        clear = collected_votes(cursor, project, question=2)
    assert (tone.classes, tone.judgement) == (("kind", "rude"), None)
    assert (clear.classes, clear.ordered) == (("-2", "0", "2"), True)
    assert np.bincount(clear.label, minlength=3).tolist() == [0, 2, 2]
    back = read_votes(tmp_path / "out" / "votes-clear.parquet")
    assert sorted(back.classes[each] for each in back.label) == ["0", "0", "2", "2"]
    assert np.bincount(read_votes(tmp_path / "out" / "votes-tone.csv").label).tolist() == [2, 2]
    labels = pl.read_parquet(tmp_path / "out" / "labels-tone-equal-weighted.parquet")
    assert labels.select("kind", "rude").rows() == [(0.5, 0.5), (0.5, 0.5)]
    answers = pl.read_parquet(tmp_path / "out" / "answers.parquet")
    assert answers.group_by("question").len().sort("question").rows() == [("", 12), ("clear", 4), ("tone", 8)]
    assert "## votes-clear" in (tmp_path / "out" / "codebook.md").read_text()
    run = CliRunner()
    for name in ("votes-tone", "votes-clear"):
        told = run.invoke(app, ["votes", "inspect", str(tmp_path / "out" / f"{name}.parquet")])
        assert told.exit_code == 0, told.output
        made = tmp_path / f"{name}-labels.parquet"
        told = run.invoke(app, ["labels", str(tmp_path / "out" / f"{name}.parquet"), "-o", str(made)])
        assert told.exit_code == 0, told.output
        assert pl.read_parquet(made).height == 2


@pytest.mark.parametrize("ask", ["off", "optional", "required"])
def test_a_reason_is_kept_where_it_is_asked_for(tmp_path: Path, ask: str) -> None:
    project = web_project(tmp_path / "p", texts=["one"], k=1, changes={"ask": f'"{ask}"'})
    with visited(project) as site:
        visitor = site.visitor()
        visitor.open("/")
        visitor.form("/consent", agreed="yes")
        visitor.form("/instructions")
        tried = [{"values": {"0": "no", "1": "no", "2": "no"}, "reason": "because"}]
        visitor.form("/practice", answers=json.dumps(tried))
        item, values = visitor.next(), {"0": "no", "1": "no", "2": "no"}
        without = visitor.save(item, values, answers={"values": values, "reason": "  "})
        assert without.status_code == (422 if ask == "required" else 201)
        if ask == "required":
            assert visitor.save(item, values, answers={"values": values, "reason": "it\0 barks"}).status_code == 201
        assert site.read("SELECT reason FROM judgement") == [("it barks" if ask == "required" else None,)]
        export = site.database.read_now(lambda c: export_project(c, project, tmp_path / "out"))
    assert ((tmp_path / "out" / "reasons.csv") in export.files) == (ask != "off")


def test_instructions_of_a_new_project_fit_its_layout(tmp_path: Path) -> None:
    table = tmp_path / "texts.csv"
    table.write_text("text\nhello\n")
    words = {}
    for layout in LAYOUTS:
        init_project(tmp_path / layout, texts=table, classes=["x", "y"], layout=layout)
        project = read_project(tmp_path / layout)
        words[layout] = project.texts.instructions
        asks_for_unsure = "unsure" in project.texts.instructions
        assert asks_for_unsure == (layout in ("rows", "one-at-a-time")), layout
        assert not [each for each in check_setup(project) if "teaches" in each.sentence]
    assert len(set(words.values())) == len(LAYOUTS)
    assert "100 points" in words["points"]


def test_feedback_that_would_teach_uncertainty_is_warned_of(tmp_path: Path) -> None:
    clear = '[{ item = "t0", yes = ["a"], feedback = "Look at the end." }, "t1"]'
    project = make_project(tmp_path / "clear", practice__items=clear)
    assert project.practice_items == ("t0", "t1")
    assert [(each.item, each.feedback) for each in project.feedback] == [("t0", "Look at the end.")]
    assert not [each for each in check_setup(project) if "teaches" in each.sentence]
    unsure = make_project(tmp_path / "unsure", practice__items='[{ item = "t0", unsure = ["a"] }]')
    assert [each.kind for each in check_setup(unsure) if "how unsure to be" in each.sentence] == ["warning"]
    asked = '[[comprehension]]\nquestion = "And if you cannot tell?"\noptions = ["No", "Unsure"]\nright = "Unsure"\n'
    checked = make_project(tmp_path / "checked", more=asked)
    assert [each.kind for each in check_setup(checked) if "when to be unsure" in each.sentence] == ["warning"]


def test_feedback_reaches_the_page_of_its_item_only(tmp_path: Path) -> None:
    entry = '[{ item = "t0", yes = ["cat"], feedback = "Look at the ears." }, "t1"]'
    project = web_project(tmp_path, texts=["one", "two", "three"], changes={"practice.items": entry})
    with visited(project) as site:
        visitor = site.visitor()
        visitor.open("/")
        visitor.form("/consent", agreed="yes")
        page = visitor.form("/instructions").text
        assert page.count("Look at the ears.") == 1
        assert "&#34;feedback&#34;: null" in page


@pytest.mark.parametrize("layout", LAYOUTS)
def test_bots_answer_every_question(tmp_path: Path, layout: str) -> None:
    more = (
        f'[[item_questions]]\nname = "x"\nquestion = "?"\nlayout = "{layout}"\nclasses = ["p", "q"]\nunsure = false\n'
    )
    project = make_project(tmp_path, more=more)
    for said in ([YES, NO, UNSURE], [NO, NO, NO], [UNSURE, UNSURE, YES]):
        check_answers(project, answers_of(project, np.array(said), milliseconds=10.0))
