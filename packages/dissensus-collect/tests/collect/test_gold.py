"""Gold items: everybody sees them, nobody's vote on them counts, and who misses them is replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus_collect.work.assignment import back
from dissensus_collect.work.gold import gold_missed
from dissensus_collect.work.leaving import exclude, include
from dissensus_collect.work.participants import annotator_by_id
from tests.collect.conftest import make_project

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dissensus_collect.work.participants import Annotator
    from tests.collect.conftest import Collecting

    Make = Callable[..., Collecting]

ONE = '[{ item = "t0", yes = ["a"] }]'
TWO = '[{ item = "t0", yes = ["a"] }, { item = "t1", yes = ["b"], no = ["c"] }]'
RIGHT, WRONG = "yes no no", "no no yes"


def told(project: Collecting, annotator: int) -> Annotator:
    return project.database.read_now(lambda c: annotator_by_id(c, annotator))


def test_required_answers_are_per_class_and_the_others_must_not_be_yes(tmp_path: Path) -> None:
    project = make_project(tmp_path, gold__items=TWO)
    assert not gold_missed(project, "t0", (1, 0, 0))
    assert not gold_missed(project, "t0", (1, 2, 2))
    assert gold_missed(project, "t0", (2, 0, 0))
    assert gold_missed(project, "t0", (1, 1, 0))
    assert not gold_missed(project, "t1", (2, 1, 0))
    assert gold_missed(project, "t1", (2, 1, 2))


def test_everybody_sees_every_gold_item_at_a_place_of_their_own(collecting: Make) -> None:
    project = collecting(items=8, k=5, gold__items=TWO, misses_allowed="2")
    for _ in range(5):
        annotator = project.worker()
        assert project.lease(annotator).of == 8
        assert project.work_through(annotator) == 8
    shown = project.read(
        "SELECT annotator, number FROM assignment JOIN item ON item.id = item WHERE role = 'gold' ORDER BY annotator"
    )
    assert len(shown) == 10
    assert len({number for _, number in shown}) > 2


def test_gold_items_do_not_count_towards_k(collecting: Make) -> None:
    project = collecting(items=3, k=1, gold__items=ONE)
    assert project.work_through(project.worker()) == 3
    assert project.read("SELECT role, counted FROM item ORDER BY id") == [("gold", 0), ("vote", 1), ("vote", 1)]
    assert project.one("SELECT count(*) FROM assignment WHERE counts = 1") == 2


def test_who_misses_gold_is_paid_but_replaced(collecting: Make) -> None:
    project = collecting(items=3, k=1, gold__items=ONE)
    careless = project.worker()
    assert project.work_through(careless, WRONG) == 3
    now = told(project, careless)
    assert (now.paid, now.counts, now.exported, now.reason) == (True, False, False, "gold rule")
    assert (now.gold_done, now.gold_missed) == (1, 1)
    assert project.read("SELECT sum(counted) FROM item") == [(0,)]
    assert project.work_through(project.worker(), RIGHT) == 3
    assert project.read("SELECT sum(counted) FROM item") == [(2,)]


def test_so_many_misses_as_allowed_change_nothing(collecting: Make) -> None:
    project = collecting(items=3, k=1, gold__items=ONE, misses_allowed="1")
    careless = project.worker()
    project.work_through(careless, WRONG)
    assert told(project, careless).counts
    assert told(project, careless).gold_missed == 1


def test_what_a_researcher_includes_no_rule_excludes_again(collecting: Make) -> None:
    project = collecting(items=6, k=1, gold__items=TWO)
    annotator = project.worker()
    while told(project, annotator).counts:
        project.save(annotator, project.lease(annotator), said=WRONG)
    project.write(include, annotator, by="researcher", reason="the gold item was wrong")
    project.work_through(annotator, WRONG)
    assert told(project, annotator).counts
    assert told(project, annotator).gold_missed == 2


def test_a_gold_answer_that_was_mended_by_going_back_is_no_miss(collecting: Make) -> None:
    project = collecting(items=3, k=1, gold__items=ONE)
    annotator = project.worker()
    while told(project, annotator).counts:
        project.save(annotator, project.lease(annotator), said=WRONG)
    project.save(annotator, project.write(back, annotator), said=RIGHT)
    now = told(project, annotator)
    assert now.counts
    assert now.gold_missed == 0


def test_whom_a_researcher_excluded_no_right_gold_answer_includes_again(collecting: Make) -> None:
    """Only what the gold rule did does the gold rule undo."""
    project = collecting(items=6, k=1, gold__items=TWO)
    annotator = project.worker()
    project.write(exclude, annotator, by="researcher", reason="the same answer to everything")
    project.work_through(annotator, "yes yes no")  # which is right for neither gold item
    assert told(project, annotator).gold_missed == 2
    other = project.worker()
    project.write(exclude, other, by="researcher", reason="a bot")
    while not told(project, other).gold_done:
        project.save(other, project.lease(other), said="yes no no")
    project.save(other, project.write(back, other), said="no yes no")
    for who, reason in ((annotator, "the same answer to everything"), (other, "a bot")):
        now = told(project, who)
        assert (now.counts, now.exported, now.reason) == (False, False, reason)


def test_nothing_that_an_annotator_is_given_tells_gold_from_other_items(collecting: Make) -> None:
    project = collecting(items=3, k=2, gold__items=ONE)
    annotator = project.worker()
    for _ in range(3):
        lease = project.lease(annotator)
        assert "gold" not in repr(lease)
        project.save(annotator, lease)


def test_gold_comes_also_to_who_finds_few_other_items_left_and_not_to_who_finds_none(collecting: Make) -> None:
    project = collecting(items=6, k=1, gold__items=TWO, misses_allowed="2", items_per_annotator="3")
    assert project.work_through(project.worker()) == 3 + 2
    assert project.work_through(project.worker()) == 1 + 2
    assert [project.work_through(project.worker()) for _ in range(5)] == [0] * 5
