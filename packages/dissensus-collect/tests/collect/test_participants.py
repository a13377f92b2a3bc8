"""Annotators from arrival to the finish code, and what researchers may do with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dissensus.errors import InputError
from dissensus_collect.work.answers import Refused
from dissensus_collect.work.assignment import Finished, Nothing
from dissensus_collect.work.attributes import final_answers
from dissensus_collect.work.leaving import break_off, delete_participant, exclude, include
from dissensus_collect.work.participants import External, annotator_by_id, annotator_of, arrive, finish_code
from dissensus_collect.work.steps import answer_questions, consent, misunderstood, practised, understood
from tests.collect.conftest import ASKED, CHECKED

if TYPE_CHECKING:
    from collections.abc import Callable

    from dissensus_collect.work.participants import Annotator
    from tests.collect.conftest import Collecting

    Make = Callable[..., Collecting]

CODES = '{ complete = "C", no-consent = "N", screened-out = "S", technical = "T" }'


def told(project: Collecting, annotator: int) -> Annotator:
    return project.database.read_now(lambda c: annotator_by_id(c, annotator))


def code(project: Collecting, annotator: int) -> str | None:
    return project.database.read_now(lambda c: finish_code(c, project.project, annotator))


def test_a_session_is_known_by_its_token_which_is_not_stored(collecting: Make) -> None:
    project = collecting()
    arrival = project.write(arrive)
    found = project.database.read_now(lambda c: annotator_of(c, arrival.token))
    assert found is not None
    assert (found.id, found.state) == (arrival.annotator, "arrived")
    assert (found.paid, found.counts, found.exported) == (False, True, True)
    assert project.database.read_now(lambda c: annotator_of(c, "guessed")) is None
    assert arrival.token not in str(project.read("SELECT * FROM session"))


def test_one_participant_is_one_annotator_even_if_they_join_again(collecting: Make) -> None:
    project = collecting()
    who = External(platform="prolific", id="5f", study="s", session="1")
    first, again = project.write(arrive, external=who), project.write(arrive, external=who)
    other = project.write(arrive, external=External(platform="mturk", id="5f"))
    assert again.annotator == first.annotator
    assert (first.returning, again.returning, other.returning) == (False, True, False)
    assert first.token != again.token
    assert other.annotator != first.annotator
    assert project.write(arrive).annotator != project.write(arrive).annotator


def test_every_ending_has_a_code_of_its_own_that_appears_only_at_the_end(collecting: Make) -> None:
    project = collecting(items=1, k=1, codes=CODES)
    declines = project.write(arrive).annotator
    assert code(project, declines) is None
    assert project.write(consent, declines, agreed=False) == "no-consent"
    assert code(project, declines) == "N"

    fails = project.write(arrive).annotator
    project.write(consent, fails, agreed=True)
    assert project.write(practised, fails, passed=False) == "consented"
    assert project.write(practised, fails, passed=False) == "screened-out"
    assert code(project, fails) == "S"

    completes = project.worker()
    lease = project.lease(completes)
    assert code(project, completes) is None
    project.save(completes, lease)
    assert code(project, completes) is None
    assert isinstance(project.next(completes), Finished)
    assert code(project, completes) == "C"
    assert told(project, completes).paid

    breaks = project.worker()
    project.write(break_off, breaks, reason="the network died")
    assert code(project, breaks) == "T"


def test_the_first_answer_to_the_consent_page_stands(collecting: Make) -> None:
    project = collecting()
    annotator = project.write(arrive).annotator
    project.write(consent, annotator, agreed=False)
    assert project.write(consent, annotator, agreed=True) == "no-consent"
    with pytest.raises(Refused):
        project.next(annotator)


def test_there_is_no_practice_before_consent(collecting: Make) -> None:
    project = collecting()
    annotator = project.write(arrive).annotator
    with pytest.raises(Refused) as refused:
        project.write(practised, annotator, passed=True)
    assert refused.value.kind == "closed"


def test_practice_stores_no_answer(collecting: Make) -> None:
    project = collecting(items=3, k=1, practice__items='["t0"]')
    annotator = project.worker()
    assert project.one("SELECT count(*) FROM judgement") == 0
    assert project.work_through(annotator) == 2
    assert project.read("SELECT counted FROM item WHERE role = 'practice'") == [(0,)]


def test_what_is_not_understood_twice_screens_out_and_touches_neither_pay_nor_votes(collecting: Make) -> None:
    project = collecting(more=CHECKED, codes=CODES)
    annotator = project.worker()
    assert told(project, annotator).state == "practised"
    with pytest.raises(Refused):
        project.next(annotator)
    right, wrong = ("Unsure", "None, one or several"), ("No", "None, one or several")
    for answers in ((), ("Unsure",), ("Unsure", "Both")):
        with pytest.raises(Refused) as refused:
            project.write(understood, annotator, answers=answers, attempt=0)
        assert refused.value.kind == "illegal"
    assert project.write(understood, annotator, answers=wrong, attempt=0) == "practised"
    assert project.database.read_now(lambda c: misunderstood(c, annotator)) == (0,)
    assert project.write(understood, annotator, answers=wrong, attempt=0) == "practised", "the same page again"
    assert project.write(understood, annotator, answers=right, attempt=1) == "working"
    assert project.write(understood, annotator, answers=wrong, attempt=1) == "working"

    other = project.worker()
    for attempt, state in enumerate(("practised", "screened-out")):
        assert project.write(understood, other, answers=wrong, attempt=attempt) == state
    now = told(project, other)
    assert (now.misunderstood, now.counts, now.gold_missed) == (2, True, 0)
    assert code(project, other) == "S"

    new = project.write(arrive).annotator
    with pytest.raises(Refused) as refused:
        project.write(understood, new, answers=right, attempt=0)
    assert refused.value.kind == "closed"


def test_final_answers_come_before_the_code_stand_and_are_deleted_with_the_participant(collecting: Make) -> None:
    project = collecting(items=1, k=2, more=ASKED, codes=CODES)
    one, other = project.worker(), project.worker()
    with pytest.raises(Refused) as refused:
        project.write(answer_questions, one, answers={"age_group": "Under 30"})
    assert refused.value.kind == "closed"
    for annotator in (one, other):
        project.work_through(annotator)
        assert code(project, annotator) is None
        assert told(project, annotator).paid
    for answers, kind in (
        ({}, "incomplete"),
        ({"feedback": "none"}, "incomplete"),
        ({"age_group": "7"}, "illegal"),
        ({"age_group": "Under 30", "shoe_size": "40"}, "illegal"),
        ({"age_group": "Under 30", "feedback": ""}, "illegal"),
    ):
        with pytest.raises(Refused) as refused:
            project.write(answer_questions, one, answers=answers)
        assert refused.value.kind == kind
    project.write(answer_questions, one, answers={"age_group": "Under 30", "feedback": "Fine."})
    project.write(answer_questions, one, answers={"age_group": "60 or older"})
    project.write(answer_questions, other, answers={"age_group": "60 or older"})
    assert code(project, one) == code(project, other) == "C"
    assert project.database.read_now(final_answers) == {
        one: {"age_group": "Under 30", "feedback": "Fine."},
        other: {"age_group": "60 or older"},
    }
    project.write(delete_participant, one)
    assert project.database.read_now(final_answers) == {other: {"age_group": "60 or older"}}
    assert "Fine" not in str(project.read("SELECT * FROM event"))


def test_breaking_off_gives_the_lease_back_and_keeps_what_was_saved(collecting: Make) -> None:
    project = collecting(items=2, k=1)
    annotator = project.worker()
    project.save(annotator, project.lease(annotator))
    project.lease(annotator)
    project.write(break_off, annotator, reason="browser")
    assert project.read("SELECT sum(counted), sum(leased) FROM item") == [(1, 0)]
    assert project.work_through(project.worker()) == 1


def test_excluding_refills_and_does_not_touch_pay(collecting: Make) -> None:
    project = collecting(items=3, k=1)
    annotator = project.worker()
    project.work_through(annotator)
    project.write(exclude, annotator, reason="too quick", by="researcher")
    now = told(project, annotator)
    assert (now.paid, now.counts, now.exported, now.reason) == (True, False, False, "too quick")
    assert project.read("SELECT DISTINCT counted FROM item") == [(0,)]
    assert project.work_through(project.worker()) == 3


def test_including_counts_again_what_still_has_a_slot(collecting: Make) -> None:
    project = collecting(items=3, k=1)
    annotator, other = project.worker(), project.worker()
    project.work_through(annotator)
    project.write(exclude, annotator, reason="too quick", by="researcher")
    project.save(other, project.lease(other))
    project.write(include, annotator, by="researcher", reason="looked at it")
    now = told(project, annotator)
    assert (now.counts, now.exported, now.reason) == (True, True, None)
    assert project.read("SELECT DISTINCT counted FROM item") == [(1,)]
    assert project.one("SELECT count(*) FROM assignment WHERE annotator = ? AND counts = 1", annotator) == 2


def test_including_gives_an_open_lease_its_slot_back(collecting: Make) -> None:
    project = collecting(items=1, k=1)
    annotator = project.worker()
    lease = project.lease(annotator)
    project.write(exclude, annotator, reason="?", by="researcher")
    project.write(include, annotator, by="researcher")
    assert isinstance(project.next(project.worker()), Nothing)
    assert project.save(annotator, lease).counted


def test_a_deleted_participant_is_gone_for_good_and_may_come_again_as_somebody_new(collecting: Make) -> None:
    project = collecting()
    who = External(platform="prolific", id="gone")
    arrival = project.write(arrive, external=who)
    project.write(delete_participant, arrival.annotator)
    assert project.database.read_now(lambda c: annotator_of(c, arrival.token)) is None
    for act in (exclude, include):
        with pytest.raises(InputError, match="deleted"):
            project.write(act, arrival.annotator, reason="?", by="researcher")
    assert project.write(arrive, external=who).annotator != arrival.annotator


def test_everything_is_in_the_event_log_in_order(collecting: Make) -> None:
    project = collecting(items=1, k=1, pay_per_hour="0.0")
    annotator = project.worker("P1")
    project.work_through(annotator)
    project.write(exclude, annotator, reason="speed", by="researcher")
    project.write(delete_participant, annotator)
    kinds = [kind for (kind,) in project.read("SELECT kind FROM event ORDER BY id")]
    assert kinds == ["arrived", "consented", "practised", "leased", "saved", "finished", "excluded", "deleted"]
    assert "P1" not in str(project.read("SELECT * FROM event"))


def test_there_is_no_annotator_of_an_unknown_number(collecting: Make) -> None:
    project = collecting()
    with pytest.raises(InputError, match="no annotator 99"):
        told(project, 99)
