"""Exactly k votes for every item, whatever people do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dissensus.errors import InputError
from dissensus_collect.results.live import status_of
from dissensus_collect.store.slots import want
from dissensus_collect.work.answers import Refused
from dissensus_collect.work.assignment import (
    Elsewhere,
    Finished,
    Nothing,
    back,
    expire_leases,
    heartbeat,
    keep_draft,
    next_item,
    report_problem,
    take_over,
)
from dissensus_collect.work.choosing import likely_next
from dissensus_collect.work.leaving import exclude
from dissensus_collect.work.participants import arrive

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.collect.conftest import Collecting

    Make = Callable[..., Collecting]


def test_every_item_gets_exactly_k_votes_each_by_another_annotator(collecting: Make) -> None:
    project = collecting(items=5, k=3)
    done = [project.work_through(project.worker()) for _ in range(4)]
    assert done == [5, 5, 5, 0]
    assert project.read("SELECT DISTINCT counted FROM item") == [(3,)]
    assert project.one("SELECT count(*) FROM (SELECT DISTINCT item, annotator FROM assignment) AS pairs") == 15


def test_a_reload_resumes_the_same_item_with_what_was_filled_in(collecting: Make) -> None:
    project = collecting()
    annotator = project.worker()
    first = project.lease(annotator)
    project.write(keep_draft, annotator, assignment=first.assignment, values={"0": "yes"})
    again = project.lease(annotator)
    assert (again.assignment, again.item, again.classes) == (first.assignment, first.item, first.classes)
    assert again.draft == {"0": "yes"}
    assert first.draft is None


def test_a_save_that_arrives_twice_is_stored_once(collecting: Make) -> None:
    project = collecting()
    annotator = project.worker()
    lease = project.lease(annotator)
    first = project.save(annotator, lease, uuid="the-same-uuid")
    second = project.save(annotator, lease, uuid="the-same-uuid")
    assert (first.duplicate, second.duplicate) == (False, True)
    assert first.counted
    assert second.counted
    assert project.one("SELECT count(*) FROM judgement") == 1
    assert project.one("SELECT done FROM annotator") == 1


def test_the_uuid_of_somebody_else_is_refused_and_tells_nothing(collecting: Make) -> None:
    project = collecting()
    one, other = project.worker(), project.worker()
    project.save(one, project.lease(one), uuid="the-same-uuid")
    with pytest.raises(Refused, match="another answer") as refused:
        project.save(other, project.lease(other), uuid="the-same-uuid")
    assert refused.value.kind == "foreign"


def test_nobody_can_touch_the_assignment_of_somebody_else(collecting: Make) -> None:
    project = collecting()
    owner, outsider = project.worker(), project.worker()
    lease = project.lease(owner)
    for call in (
        lambda: project.save(outsider, lease),
        lambda: project.write(heartbeat, outsider, assignment=lease.assignment, tab="tab"),
        lambda: project.write(report_problem, outsider, assignment=lease.assignment, reason="?"),
        lambda: project.write(keep_draft, outsider, assignment=lease.assignment, values={}),
    ):
        with pytest.raises(Refused) as refused:
            call()
        assert refused.value.kind == "foreign"


def test_an_abandoned_lease_returns_and_a_heartbeat_keeps_it(collecting: Make) -> None:
    project = collecting(items=1, k=1)
    leaves, stays = project.worker(), project.worker()
    lease = project.lease(leaves)
    assert isinstance(project.next(stays), Nothing)
    project.now += 500
    held = project.write(heartbeat, leaves, assignment=lease.assignment, tab="tab")
    assert held.mine
    assert held.held
    assert held.expires == project.now + project.project.lease.seconds
    project.now += 599
    assert project.write(expire_leases) == 0
    project.now += 2
    assert project.write(expire_leases) == 1
    other = project.worker()
    assert project.lease(other).item == lease.item


# A reservation lasts three times the longer of four items and one lease of 600 seconds.
@pytest.mark.parametrize(
    ("seconds", "longest", "sign"),
    [("12.5", 1800, "heartbeat"), ("150", 1800, "looking back"), ("300", 3600, "asking again")],
)
def test_heartbeat_holds_an_item_for_three_times_the_plan_at_most(
    collecting: Make, seconds: str, longest: int, sign: str
) -> None:
    project = collecting(items=4, k=1, seconds_per_item=seconds)
    who = project.worker()
    began = project.now
    first = project.lease(who)
    project.save(who, first)
    lease = project.lease(who)

    def live() -> None:
        if sign == "asking again":
            project.next(who)
        else:
            about = first if sign == "looking back" else lease
            project.write(heartbeat, who, assignment=about.assignment, tab="tab")

    while project.now < began + longest:
        project.write(expire_leases)
        assert project.one("SELECT count(*) FROM assignment WHERE state = 'open'") == 1, project.now - began
        live()
        project.now += 300
    project.now += 1
    assert project.write(expire_leases) == 1
    assert project.write(heartbeat, who, assignment=lease.assignment, tab="tab").held is False
    # Saved answers stay. The answer on the screen counts if nobody else has the item. The session continues.
    assert project.one("SELECT sum(counted) FROM item") == 1
    saved = project.save(who, lease)
    assert (saved.late, saved.counted) == (True, True)
    assert project.work_through(who) == 2


def test_next_item_brings_no_item_back_that_was_leased_after_the_longest_hold(collecting: Make) -> None:
    project = collecting(items=3, k=1)
    idle, honest = project.worker(), project.worker()
    before = project.lease(idle)
    project.now += 10_000
    again = project.lease(idle)
    assert again.assignment == before.assignment, "after a pause, what was begun is taken up once"
    seen = {again.item}
    for _ in range(2):
        project.now += 601
        seen.add(project.lease(idle).item)
    assert len(seen) == 3
    project.now += 601
    assert isinstance(project.next(idle), Finished)
    assert project.work_through(honest) == 3


def test_finished_work_never_expires(collecting: Make) -> None:
    project = collecting(items=1, k=1)
    annotator = project.worker()
    project.save(annotator, project.lease(annotator))
    project.now += 1e9
    assert project.write(expire_leases) == 0
    assert project.one("SELECT counted FROM item") == 1


def test_late_work_counts_where_its_slot_is_free(collecting: Make) -> None:
    project = collecting(items=1, k=1)
    annotator = project.worker()
    lease = project.lease(annotator)
    project.now += 10_000
    project.write(expire_leases)
    saved = project.save(annotator, lease)
    assert saved.late
    assert saved.counted


def test_work_is_late_as_soon_as_its_lease_has_ended_whether_or_not_it_was_given_back_yet(collecting: Make) -> None:
    project = collecting(items=2, k=1, lease__seconds="600")
    annotator = project.worker()
    on_time = project.lease(annotator)
    project.now = on_time.expires
    assert not project.save(annotator, on_time).late, "the last second is on time"
    lease = project.lease(annotator)
    project.now = lease.expires + 1
    # Nobody has looked for leases that ran out since, so that this one is open and holds its slot.
    assert project.one("SELECT state FROM assignment WHERE token = ?", lease.assignment) == "open"
    receipt = project.save(annotator, lease)
    assert (receipt.late, receipt.counted) == (True, True)


def test_late_work_is_kept_but_does_not_count_where_somebody_has_the_slot(collecting: Make) -> None:
    project = collecting(items=1, k=1)
    slow, quick = project.worker(), project.worker()
    late = project.lease(slow)
    project.now += 10_000
    fresh = project.lease(quick)
    saved = project.save(slow, late)
    assert saved.late
    assert not saved.counted
    assert project.save(quick, fresh).counted
    assert project.one("SELECT counted FROM item") == 1
    assert project.one("SELECT count(*) FROM judgement") == 2
    told = project.write(status_of)
    assert (told.late, told.spare, told.counted, told.needed, told.complete) == (1, 1, 1, 1, 1)


def test_a_kept_judgement_takes_the_slot_that_is_given_back_before_anybody_is_asked(collecting: Make) -> None:
    project = collecting(items=1, k=1)
    slow, quick = project.worker(), project.worker()
    late = project.lease(slow)
    project.now += 10_000
    project.lease(quick)
    assert not project.save(slow, late).counted
    project.now += 10_000
    assert isinstance(project.next(project.worker()), Finished)
    assert project.read("SELECT annotator, counts FROM assignment WHERE state = 'done'") == [(slow, 1)]


def test_of_two_kept_judgements_the_earlier_takes_the_only_slot(collecting: Make) -> None:
    project = collecting(items=1, k=1)
    late = []
    for _ in range(3):
        annotator = project.worker()
        late.append((annotator, project.lease(annotator)))
        project.now += 10_000
    project.now -= 10_000
    assert [project.save(*each).counted for each in late[:2]] == [False, False]
    project.now += 10_000
    assert project.write(expire_leases) == 1
    assert project.read("SELECT annotator FROM assignment WHERE counts = 1") == [(late[0][0],)]


def test_who_comes_back_after_the_lease_ran_out_resumes_the_item(collecting: Make) -> None:
    project = collecting(items=3, k=1)
    annotator = project.worker()
    lease = project.lease(annotator)
    project.now += 10_000
    assert project.lease(annotator).assignment == lease.assignment
    assert not project.save(annotator, lease).late


def test_a_heartbeat_takes_up_a_lease_that_ran_out_unless_the_slot_is_gone(collecting: Make) -> None:
    project = collecting(items=1, k=1)
    sleeper = project.worker()
    lease = project.lease(sleeper)
    project.now += 700
    project.write(expire_leases)
    assert project.write(heartbeat, sleeper, assignment=lease.assignment, tab="tab").held
    project.now += 700
    project.lease(project.worker())
    assert not project.write(heartbeat, sleeper, assignment=lease.assignment, tab="tab").held


def test_a_sign_of_life_of_an_old_item_does_not_open_a_second_lease(collecting: Make) -> None:
    project = collecting(items=2, k=1, order__items='"fixed"')
    annotator, other = project.worker(), project.worker()
    old = project.lease(annotator)
    project.now += 10_000
    taken = project.lease(other)
    new = project.lease(annotator)
    assert taken.item == old.item != new.item
    project.write(report_problem, other, assignment=taken.assignment, reason="?")
    project.write(heartbeat, annotator, assignment=old.assignment, tab="tab")
    assert project.lease(annotator).assignment == new.assignment
    assert project.one("SELECT count(*) FROM assignment WHERE annotator = ? AND state = 'open'", annotator) == 1


def test_a_second_tab_is_told_and_may_take_over(collecting: Make) -> None:
    project = collecting()
    annotator = project.worker()
    lease = project.lease(annotator, "one")
    assert isinstance(project.next(annotator, "two"), Elsewhere)
    project.write(take_over, annotator, tab="two")
    assert project.lease(annotator, "two").assignment == lease.assignment
    assert not project.write(heartbeat, annotator, assignment=lease.assignment, tab="one").mine
    assert project.write(heartbeat, annotator, assignment=lease.assignment, tab="two").mine


def test_a_tab_that_fell_silent_does_not_block_the_next(collecting: Make) -> None:
    project = collecting()
    annotator = project.worker()
    lease = project.lease(annotator, "closed")
    project.now += 2 * project.project.lease.heartbeat
    assert project.lease(annotator, "new").assignment == lease.assignment


def test_two_tabs_that_answer_the_same_item_give_one_vote(collecting: Make) -> None:
    project = collecting()
    annotator = project.worker()
    lease = project.lease(annotator)
    project.save(annotator, lease)
    with pytest.raises(Refused, match="answered already") as refused:
        project.save(annotator, lease)
    assert refused.value.kind == "closed"
    assert project.one("SELECT count(*) FROM judgement") == 1


def test_back_keeps_the_original_and_the_change(collecting: Make) -> None:
    project = collecting()
    annotator = project.worker()
    assert project.write(back, annotator) is None
    first = project.lease(annotator)
    project.save(annotator, first, said="yes no unsure")
    project.lease(annotator)
    again = project.write(back, annotator)
    assert again.assignment == first.assignment
    assert again.done
    assert again.draft == {"0": "yes", "1": "no", "2": "unsure"}
    saved = project.save(annotator, first, said="no yes no")
    assert saved.counted
    rows = "SELECT revision, current, class, value FROM judgement JOIN response ON response.judgement = judgement.id"
    assert project.read(f"{rows} ORDER BY revision, class") == [
        (0, 0, 0, 1), (0, 0, 1, 0), (0, 0, 2, 2), (1, 1, 0, 0), (1, 1, 1, 1), (1, 1, 2, 0),
    ]  # fmt: skip
    assert project.one("SELECT sum(counted) FROM item") == 1
    with pytest.raises(Refused):
        project.save(annotator, first)


def test_who_went_back_keeps_the_next_item(collecting: Make) -> None:
    project = collecting()
    annotator = project.worker()
    first = project.lease(annotator)
    project.save(annotator, first)
    following = project.lease(annotator)
    project.write(back, annotator)
    for _ in range(3):
        project.now += 400
        assert project.write(heartbeat, annotator, assignment=first.assignment, tab="tab").held
    assert project.write(expire_leases) == 0
    assert project.lease(annotator).assignment == following.assignment


def test_back_ends_when_the_next_item_is_saved_and_can_be_switched_off(collecting: Make) -> None:
    project = collecting()
    annotator = project.worker()
    first = project.lease(annotator)
    project.save(annotator, first)
    project.write(back, annotator)
    project.save(annotator, project.lease(annotator))
    with pytest.raises(Refused):
        project.save(annotator, first)
    without = collecting(back="false")
    annotator = without.worker()
    without.save(annotator, without.lease(annotator))
    assert without.write(back, annotator) is None


def test_a_reported_problem_gives_the_item_to_others_without_a_vote(collecting: Make) -> None:
    project = collecting(items=1, k=1)
    annotator = project.worker()
    lease = project.lease(annotator)
    project.write(report_problem, annotator, assignment=lease.assignment, reason="the image is blank")
    with pytest.raises(Refused) as refused:
        project.save(annotator, lease)
    assert refused.value.kind == "closed"
    assert project.read("SELECT counted, leased, problems FROM item") == [(0, 0, 1)]
    assert project.read("SELECT problem FROM assignment") == [("the image is blank",)]
    assert "blank" not in str(project.read("SELECT detail FROM event"))
    assert isinstance(project.next(annotator), Finished)
    other = project.worker()
    assert project.lease(other).item == lease.item


def test_an_annotator_stops_at_the_quota(collecting: Make) -> None:
    project = collecting(items=5, k=2, items_per_annotator="3")
    annotator = project.worker()
    assert project.lease(annotator).of == 3
    assert project.work_through(annotator) == 3
    assert isinstance(project.next(annotator), Finished)


def test_who_waits_for_leases_of_others_is_asked_to_wait_but_not_for_ever(collecting: Make) -> None:
    project = collecting(items=2, k=1)
    one, other = project.worker(), project.worker()
    lease = project.lease(one)
    project.save(other, project.lease(other))
    assert project.next(other) == Nothing(30.0)
    project.now += 61
    assert isinstance(project.next(other), Finished)
    project.save(one, lease)
    assert project.one("SELECT paid FROM annotator WHERE id = ?", other) == 1


def test_who_finished_early_may_go_on_when_an_item_comes_back(collecting: Make) -> None:
    project = collecting(items=2, k=1, patience="0")
    one, other = project.worker(), project.worker()
    lease = project.lease(one)
    assert project.work_through(other) == 1
    project.now += 10_000
    assert project.lease(other).item == lease.item


def test_who_was_let_in_and_finds_nothing_left_is_paid(collecting: Make) -> None:
    project = collecting(items=1, k=1)
    project.work_through(project.worker())
    late = project.worker()
    assert isinstance(project.next(late), Finished)
    assert project.read("SELECT state, paid FROM annotator WHERE id = ?", late) == [("finished", 1)]


def test_nothing_is_assigned_before_consent_and_practice(collecting: Make) -> None:
    project = collecting()
    outsider = project.write(arrive).annotator
    with pytest.raises(Refused) as refused:
        project.write(next_item, outsider, tab="tab")
    assert refused.value.kind == "closed"


def test_more_votes_may_be_wanted_of_one_item_and_the_decision_is_written_down(collecting: Make) -> None:
    project = collecting(items=2, k=1)
    project.work_through(project.worker())
    project.database.write_now(lambda c: want(c, 1, 2, now=5.0, reason="contested", inclusion=0.5))
    assert project.work_through(project.worker()) == 1
    assert project.read("SELECT id, counted FROM item ORDER BY id") == [(1, 2), (2, 1)]
    assert project.read("SELECT item, wanted_before, wanted, inclusion, reason FROM decision") == [
        (1, 1, 2, 0.5, "contested")
    ]
    with pytest.raises(InputError, match="want at least as many"):
        project.database.write_now(lambda c: want(c, 1, 1, now=5.0, reason="too many"))
    with pytest.raises(InputError, match="not an item to vote on"):
        project.database.write_now(lambda c: want(c, 99, 1, now=5.0, reason="?"))


def test_items_come_in_another_order_for_everybody_and_the_order_of_classes_is_recorded(collecting: Make) -> None:
    project = collecting(items=12, k=6)
    for _ in range(4):
        project.work_through(project.worker())
    shown = project.read("SELECT annotator, item, class_order FROM assignment ORDER BY annotator, number")
    orders = {annotator: [item for who, item, _ in shown if who == annotator] for annotator, _, _ in shown}
    assert len({tuple(order) for order in orders.values()}) == 4
    assert {order for _, _, order in shown} <= {
        f"[{a}, {b}, {c}]" for a in range(3) for b in range(3) for c in range(3)
    }
    fixed = collecting(items=3, k=1, order__items='"fixed"')
    assert [row[0] for row in fixed.read("SELECT name FROM item ORDER BY spread")] == ["t0", "t1", "t2"]


def test_what_is_loaded_ahead_is_what_comes_next(collecting: Make) -> None:
    project = collecting(items=6)
    annotator = project.worker()
    lease = project.lease(annotator)
    ahead = project.database.read_now(lambda c: likely_next(c, project.project, annotator, number=lease.number + 1))
    project.save(annotator, lease)
    assert project.lease(annotator).item == ahead


def test_an_excluded_annotator_goes_on_without_taking_slots(collecting: Make) -> None:
    project = collecting(items=3, k=1)
    annotator = project.worker()
    project.lease(annotator)
    project.write(exclude, annotator, reason="speed", by="researcher")
    assert project.read("SELECT DISTINCT leased FROM item") == [(0,)]
    assert project.work_through(annotator) == 3
    assert project.work_through(project.worker()) == 3
