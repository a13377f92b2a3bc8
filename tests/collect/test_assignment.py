"""Exactly k votes for every item, whatever people do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dissensus.collect.answers import Refused
from dissensus.collect.assignment import (
    Elsewhere,
    Finished,
    Nothing,
    back,
    expire_leases,
    heartbeat,
    keep_draft,
    likely_next,
    next_item,
    progress,
    report_problem,
    take_over,
)
from dissensus.collect.participants import arrive, exclude
from dissensus.collect.slots import want
from dissensus.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.collect.conftest import Collecting

    Make = Callable[..., Collecting]


def test_every_item_gets_exactly_k_votes_each_by_another_annotator(collecting: Make) -> None:
    study = collecting(items=5, k=3)
    done = [study.work_through(study.worker()) for _ in range(4)]
    assert done == [5, 5, 5, 0]
    assert study.read("SELECT DISTINCT counted FROM item") == [(3,)]
    assert study.one("SELECT count(*) FROM (SELECT DISTINCT item, annotator FROM assignment) AS pairs") == 15


def test_a_reload_resumes_the_same_item_with_what_was_filled_in(collecting: Make) -> None:
    study = collecting()
    annotator = study.worker()
    first = study.lease(annotator)
    study.write(keep_draft, annotator, assignment=first.assignment, values={"0": "yes"})
    again = study.lease(annotator)
    assert (again.assignment, again.item, again.classes) == (first.assignment, first.item, first.classes)
    assert again.draft == {"0": "yes"}
    assert first.draft is None


def test_a_save_that_arrives_twice_is_stored_once(collecting: Make) -> None:
    study = collecting()
    annotator = study.worker()
    lease = study.lease(annotator)
    first = study.save(annotator, lease, uuid="the-same-uuid")
    second = study.save(annotator, lease, uuid="the-same-uuid")
    assert (first.duplicate, second.duplicate) == (False, True)
    assert first.counted
    assert second.counted
    assert study.one("SELECT count(*) FROM judgement") == 1
    assert study.one("SELECT done FROM annotator") == 1


def test_the_uuid_of_somebody_else_is_refused_and_tells_nothing(collecting: Make) -> None:
    study = collecting()
    one, other = study.worker(), study.worker()
    study.save(one, study.lease(one), uuid="the-same-uuid")
    with pytest.raises(Refused, match="another answer") as refused:
        study.save(other, study.lease(other), uuid="the-same-uuid")
    assert refused.value.kind == "foreign"


def test_nobody_can_touch_the_assignment_of_somebody_else(collecting: Make) -> None:
    study = collecting()
    owner, outsider = study.worker(), study.worker()
    lease = study.lease(owner)
    for call in (
        lambda: study.save(outsider, lease),
        lambda: study.write(heartbeat, outsider, assignment=lease.assignment, tab="tab"),
        lambda: study.write(report_problem, outsider, assignment=lease.assignment, reason="?"),
        lambda: study.write(keep_draft, outsider, assignment=lease.assignment, values={}),
    ):
        with pytest.raises(Refused) as refused:
            call()
        assert refused.value.kind == "foreign"


def test_an_abandoned_lease_returns_and_a_heartbeat_keeps_it(collecting: Make) -> None:
    study = collecting(items=1, k=1)
    leaves, stays = study.worker(), study.worker()
    lease = study.lease(leaves)
    assert isinstance(study.next(stays), Nothing)
    study.now += 500
    held = study.write(heartbeat, leaves, assignment=lease.assignment, tab="tab")
    assert held.mine
    assert held.held
    assert held.expires == study.now + study.study.lease_seconds
    study.now += 599
    assert study.write(expire_leases) == 0
    study.now += 2
    assert study.write(expire_leases) == 1
    other = study.worker()
    assert study.lease(other).item == lease.item


def test_finished_work_never_expires(collecting: Make) -> None:
    study = collecting(items=1, k=1)
    annotator = study.worker()
    study.save(annotator, study.lease(annotator))
    study.now += 1e9
    assert study.write(expire_leases) == 0
    assert study.one("SELECT counted FROM item") == 1


def test_late_work_counts_where_its_slot_is_free(collecting: Make) -> None:
    study = collecting(items=1, k=1)
    annotator = study.worker()
    lease = study.lease(annotator)
    study.now += 10_000
    study.write(expire_leases)
    saved = study.save(annotator, lease)
    assert saved.late
    assert saved.counted


def test_late_work_is_kept_but_does_not_count_where_somebody_has_the_slot(collecting: Make) -> None:
    study = collecting(items=1, k=1)
    slow, quick = study.worker(), study.worker()
    late = study.lease(slow)
    study.now += 10_000
    fresh = study.lease(quick)
    saved = study.save(slow, late)
    assert saved.late
    assert not saved.counted
    assert study.save(quick, fresh).counted
    assert study.one("SELECT counted FROM item") == 1
    assert study.one("SELECT count(*) FROM judgement") == 2
    told = study.database.read_now(lambda c: progress(c, study.study))
    assert (told.late, told.spare, told.counted, told.needed, told.complete) == (1, 1, 1, 1, 1)


def test_a_kept_judgement_takes_the_slot_that_is_given_back_before_anybody_is_asked(collecting: Make) -> None:
    study = collecting(items=1, k=1)
    slow, quick = study.worker(), study.worker()
    late = study.lease(slow)
    study.now += 10_000
    study.lease(quick)
    assert not study.save(slow, late).counted
    study.now += 10_000
    assert isinstance(study.next(study.worker()), Finished)
    assert study.read("SELECT annotator, counts FROM assignment WHERE state = 'done'") == [(slow, 1)]


def test_of_two_kept_judgements_the_earlier_takes_the_only_slot(collecting: Make) -> None:
    study = collecting(items=1, k=1)
    late = []
    for _ in range(3):
        annotator = study.worker()
        late.append((annotator, study.lease(annotator)))
        study.now += 10_000
    study.now -= 10_000
    assert [study.save(*each).counted for each in late[:2]] == [False, False]
    study.now += 10_000
    assert study.write(expire_leases) == 1
    assert study.read("SELECT annotator FROM assignment WHERE counts = 1") == [(late[0][0],)]


def test_who_comes_back_after_the_lease_ran_out_resumes_the_item(collecting: Make) -> None:
    study = collecting(items=3, k=1)
    annotator = study.worker()
    lease = study.lease(annotator)
    study.now += 10_000
    assert study.lease(annotator).assignment == lease.assignment
    assert not study.save(annotator, lease).late


def test_a_heartbeat_takes_up_a_lease_that_ran_out_unless_the_slot_is_gone(collecting: Make) -> None:
    study = collecting(items=1, k=1)
    sleeper = study.worker()
    lease = study.lease(sleeper)
    study.now += 10_000
    study.write(expire_leases)
    assert study.write(heartbeat, sleeper, assignment=lease.assignment, tab="tab").held
    study.now += 10_000
    study.lease(study.worker())
    assert not study.write(heartbeat, sleeper, assignment=lease.assignment, tab="tab").held


def test_a_sign_of_life_of_an_old_item_does_not_open_a_second_lease(collecting: Make) -> None:
    study = collecting(items=2, k=1, order__items='"fixed"')
    annotator, other = study.worker(), study.worker()
    old = study.lease(annotator)
    study.now += 10_000
    taken = study.lease(other)
    new = study.lease(annotator)
    assert taken.item == old.item != new.item
    study.write(report_problem, other, assignment=taken.assignment, reason="?")
    study.write(heartbeat, annotator, assignment=old.assignment, tab="tab")
    assert study.lease(annotator).assignment == new.assignment
    assert study.one("SELECT count(*) FROM assignment WHERE annotator = ? AND state = 'open'", annotator) == 1


def test_a_second_tab_is_told_and_may_take_over(collecting: Make) -> None:
    study = collecting()
    annotator = study.worker()
    lease = study.lease(annotator, "one")
    assert isinstance(study.next(annotator, "two"), Elsewhere)
    study.write(take_over, annotator, tab="two")
    assert study.lease(annotator, "two").assignment == lease.assignment
    assert not study.write(heartbeat, annotator, assignment=lease.assignment, tab="one").mine
    assert study.write(heartbeat, annotator, assignment=lease.assignment, tab="two").mine


def test_a_tab_that_fell_silent_does_not_block_the_next(collecting: Make) -> None:
    study = collecting()
    annotator = study.worker()
    lease = study.lease(annotator, "closed")
    study.now += 2 * study.study.heartbeat_seconds
    assert study.lease(annotator, "new").assignment == lease.assignment


def test_two_tabs_that_answer_the_same_item_give_one_vote(collecting: Make) -> None:
    study = collecting()
    annotator = study.worker()
    lease = study.lease(annotator)
    study.save(annotator, lease)
    with pytest.raises(Refused, match="answered already") as refused:
        study.save(annotator, lease)
    assert refused.value.kind == "closed"
    assert study.one("SELECT count(*) FROM judgement") == 1


def test_back_keeps_the_original_and_the_change(collecting: Make) -> None:
    study = collecting()
    annotator = study.worker()
    assert study.write(back, annotator) is None
    first = study.lease(annotator)
    study.save(annotator, first, said="yes no unsure")
    study.lease(annotator)
    again = study.write(back, annotator)
    assert again.assignment == first.assignment
    assert again.done
    assert again.draft == {"0": "yes", "1": "no", "2": "unsure"}
    saved = study.save(annotator, first, said="no yes no")
    assert saved.counted
    rows = "SELECT revision, current, class, value FROM judgement JOIN response ON response.judgement = judgement.id"
    assert study.read(f"{rows} ORDER BY revision, class") == [
        (0, 0, 0, 1), (0, 0, 1, 0), (0, 0, 2, 2), (1, 1, 0, 0), (1, 1, 1, 1), (1, 1, 2, 0),
    ]  # fmt: skip
    assert study.one("SELECT sum(counted) FROM item") == 1
    with pytest.raises(Refused):
        study.save(annotator, first)


def test_who_went_back_keeps_the_next_item(collecting: Make) -> None:
    study = collecting()
    annotator = study.worker()
    first = study.lease(annotator)
    study.save(annotator, first)
    following = study.lease(annotator)
    study.write(back, annotator)
    for _ in range(3):
        study.now += 400
        assert study.write(heartbeat, annotator, assignment=first.assignment, tab="tab").held
    assert study.write(expire_leases) == 0
    assert study.lease(annotator).assignment == following.assignment


def test_back_ends_when_the_next_item_is_saved_and_can_be_switched_off(collecting: Make) -> None:
    study = collecting()
    annotator = study.worker()
    first = study.lease(annotator)
    study.save(annotator, first)
    study.write(back, annotator)
    study.save(annotator, study.lease(annotator))
    with pytest.raises(Refused):
        study.save(annotator, first)
    without = collecting(back="false")
    annotator = without.worker()
    without.save(annotator, without.lease(annotator))
    assert without.write(back, annotator) is None


def test_a_reported_problem_gives_the_item_to_others_without_a_vote(collecting: Make) -> None:
    study = collecting(items=1, k=1)
    annotator = study.worker()
    lease = study.lease(annotator)
    study.write(report_problem, annotator, assignment=lease.assignment, reason="the image is blank")
    with pytest.raises(Refused) as refused:
        study.save(annotator, lease)
    assert refused.value.kind == "closed"
    assert study.read("SELECT counted, leased, problems FROM item") == [(0, 0, 1)]
    assert study.read("SELECT problem FROM assignment") == [("the image is blank",)]
    assert "blank" not in str(study.read("SELECT detail FROM event"))
    assert isinstance(study.next(annotator), Finished)
    other = study.worker()
    assert study.lease(other).item == lease.item


def test_an_annotator_stops_at_the_quota(collecting: Make) -> None:
    study = collecting(items=5, k=2, items_per_annotator="3")
    annotator = study.worker()
    assert study.lease(annotator).of == 3
    assert study.work_through(annotator) == 3
    assert isinstance(study.next(annotator), Finished)


def test_who_waits_for_leases_of_others_is_asked_to_wait_but_not_for_ever(collecting: Make) -> None:
    study = collecting(items=2, k=1)
    one, other = study.worker(), study.worker()
    lease = study.lease(one)
    study.save(other, study.lease(other))
    assert study.next(other) == Nothing(30.0)
    study.now += 61
    assert isinstance(study.next(other), Finished)
    study.save(one, lease)
    assert study.one("SELECT paid FROM annotator WHERE id = ?", other) == 1


def test_who_finished_early_may_go_on_when_an_item_comes_back(collecting: Make) -> None:
    study = collecting(items=2, k=1, patience="0")
    one, other = study.worker(), study.worker()
    lease = study.lease(one)
    assert study.work_through(other) == 1
    study.now += 10_000
    assert study.lease(other).item == lease.item


def test_who_comes_when_all_is_done_is_screened_out(collecting: Make) -> None:
    study = collecting(items=1, k=1)
    study.work_through(study.worker())
    late = study.worker()
    assert isinstance(study.next(late), Finished)
    assert study.read("SELECT state, paid FROM annotator WHERE id = ?", late) == [("screened-out", 0)]


def test_nothing_is_assigned_before_consent_and_practice(collecting: Make) -> None:
    study = collecting()
    outsider = study.write(arrive).annotator
    with pytest.raises(Refused) as refused:
        study.write(next_item, outsider, tab="tab")
    assert refused.value.kind == "closed"


def test_more_votes_may_be_wanted_of_one_item_and_the_decision_is_written_down(collecting: Make) -> None:
    study = collecting(items=2, k=1)
    study.work_through(study.worker())
    study.database.write_now(lambda c: want(c, 1, 2, now=5.0, reason="contested", inclusion=0.5))
    assert study.work_through(study.worker()) == 1
    assert study.read("SELECT id, counted FROM item ORDER BY id") == [(1, 2), (2, 1)]
    assert study.read("SELECT item, wanted_before, wanted, inclusion, reason FROM decision") == [
        (1, 1, 2, 0.5, "contested")
    ]
    with pytest.raises(InputError, match="want at least as many"):
        study.database.write_now(lambda c: want(c, 1, 1, now=5.0, reason="too many"))
    with pytest.raises(InputError, match="no item to vote on"):
        study.database.write_now(lambda c: want(c, 99, 1, now=5.0, reason="?"))


def test_items_come_in_another_order_for_everybody_and_the_order_of_classes_is_recorded(collecting: Make) -> None:
    study = collecting(items=12, k=6)
    for _ in range(4):
        study.work_through(study.worker())
    shown = study.read("SELECT annotator, item, class_order FROM assignment ORDER BY annotator, number")
    orders = {annotator: [item for who, item, _ in shown if who == annotator] for annotator, _, _ in shown}
    assert len({tuple(order) for order in orders.values()}) == 4
    assert {order for _, _, order in shown} <= {
        f"[{a}, {b}, {c}]" for a in range(3) for b in range(3) for c in range(3)
    }
    fixed = collecting(items=3, k=1, order__items='"fixed"')
    assert [row[0] for row in fixed.read("SELECT name FROM item ORDER BY spread")] == ["t0", "t1", "t2"]


def test_what_is_loaded_ahead_is_what_comes_next(collecting: Make) -> None:
    study = collecting(items=6)
    annotator = study.worker()
    lease = study.lease(annotator)
    ahead = study.database.read_now(lambda c: likely_next(c, study.study, annotator, number=lease.number + 1))
    study.save(annotator, lease)
    assert study.lease(annotator).item == ahead


def test_an_excluded_annotator_goes_on_without_taking_slots(collecting: Make) -> None:
    study = collecting(items=3, k=1)
    annotator = study.worker()
    study.lease(annotator)
    study.write(exclude, annotator, reason="speed", by="researcher")
    assert study.read("SELECT DISTINCT leased FROM item") == [(0,)]
    assert study.work_through(annotator) == 3
    assert study.work_through(study.worker()) == 3
