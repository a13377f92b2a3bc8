"""What people are paid: a sheet with a line for each person, the decisions, and the platforms' bulk formats.

What is due follows from what was promised at consent and from what the person did, and from nothing else. Decisions
are a ledger: each row approves what was not approved before, is sent once, and can be taken back only until then.
"""

from __future__ import annotations

import csv
import io
import statistics
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from dissensus.errors import InputError
from dissensus_collect.project.promise import share_of_pay
from dissensus_collect.results.quality import MANY_REPORTS
from dissensus_collect.store.events import is_simulated, log_event
from dissensus_collect.work.attributes import final_answers
from dissensus_collect.work.participants import codes_of, ending_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus_collect.project.reading import Project
    from dissensus_collect.store.database import Cursor

DECISIONS: Final = ("approved", "rejected")
LEAST_SHARE: Final = 0.5
"""Share of the planned pay per hour below which the realised one is worth a look."""
LEAST_TIME: Final = 0.1
"""Share of the planned time below which nobody has read the items."""


@dataclass(frozen=True, kw_only=True)
class PayLine:
    """What is known about one person's pay.

    Attributes:
        code: the code they were given; None as long as the session has not ended.
        due: whether they are to be paid by the rules of the project.
        items: items judged, gold items included, `of` those that a whole session was to have.
        reported: items that they reported a problem with instead.
        minutes: from consent to the end; None as long as the session has not ended.
        active_minutes: on items, without the time for which the page was hidden.
        flags: what to look at before deciding, as sentences.
        owed: what the person has earned by now.
        approved: of it, what was approved; `bonus` is all bonuses that were.
        pay: what is owed or was approved; nothing if pay was rejected.
        decision: "approved", "rejected", or None: the last one, with its reason.
        sent_at: when that was written into a file for the platform, UNIX seconds; None if it was not.
        groups: by attribute, what is known of the person.
    """

    annotator: int
    pseudonym: str
    state: str
    code: str | None
    due: bool
    items: int
    of: int
    reported: int
    minutes: float | None
    active_minutes: float
    flags: tuple[str, ...]
    owed: float
    approved: float
    pay: float
    bonus: float
    decision: str | None
    reason: str
    sent_at: float | None
    groups: Mapping[str, str]

    @property
    def open(self) -> bool:
        """Whether something is due that nobody has decided about, be it a rest."""
        return self.due and (self.decision is None or (self.decision == "approved" and self.owed > self.approved))


@dataclass(frozen=True, kw_only=True)
class Realised:
    """How long people took who have finished, and what that made an hour.

    Medians over people: of the minutes from consent to the end, and of pay and bonus by the hour.
    """

    people: int
    minutes: float
    hourly: float


def pay_sheet(cursor: Cursor, project: Project) -> list[PayLine]:
    """Return a line for each person who consented, by rising id.

    A person earns the promised pay times the share of items done, rounded up to a whole cent. This pay is due to
    everybody who finished or withdrew. After a technical end, a researcher must approve the pay first.
    """
    rows = cursor.execute(
        "SELECT annotator.id, pseudonym, annotator.state, eligible, withdrawn_at IS NOT NULL, paid, annotator.counts, "
        "done + gold_done, promised_votes + promised_gold, promised, gold_missed, finished_at - consented_at, "
        "reported + gold_reported, coalesce(active, 0.0), coalesce(approved, 0.0), coalesce(bonuses, 0.0), "
        "last.decision, coalesce(last.reason, ''), last.sent_at FROM annotator "
        "LEFT JOIN (SELECT annotator AS who, sum(seconds - coalesce(hidden_seconds, 0)) AS active FROM assignment "
        "JOIN judgement ON judgement.assignment = assignment.id AND judgement.current = 1 GROUP BY annotator) AS times "
        "ON times.who = annotator.id "
        "LEFT JOIN (SELECT annotator AS who, sum(pay) AS approved, sum(bonus) AS bonuses, max(id) AS last FROM payment "
        "WHERE cancelled_at IS NULL GROUP BY annotator) AS ledger ON ledger.who = annotator.id "
        "LEFT JOIN payment AS last ON last.id = ledger.last WHERE consented_at IS NOT NULL ORDER BY annotator.id"
    ).fetchall()
    answers, codes = final_answers(cursor), codes_of(cursor, project)
    free_text = {asked.name for asked in project.questions if not asked.options}
    out, timed = [], not is_simulated(cursor)
    for (
        who, pseudonym, state, eligible, withdrawn, paid, counts, items, of, promised, missed, seconds, reported,
        active, approved, bonus, decision, reason, sent_at,
    ) in rows:  # fmt: skip
        ending = ending_of(state, eligible, withdrawn=bool(withdrawn))
        approved, owed = round(approved, 2), share_of_pay(promised, items, of)
        line = PayLine(
            annotator=who,
            pseudonym=pseudonym,
            state="withdrawn" if ending == "withdrawn" else state,
            code=None if ending is None else codes[ending],
            due=bool(paid),
            items=items,
            of=of,
            reported=reported,
            minutes=None if seconds is None else seconds / 60,
            active_minutes=active / 60,
            flags=(),
            owed=owed,
            approved=approved,
            pay=0.0 if decision == "rejected" else max(owed, approved),
            bonus=round(bonus, 2),
            decision=decision,
            reason=reason,
            sent_at=sent_at,
            groups={name: text for name, text in answers.get(who, {}).items() if name not in free_text},
        )
        out.append(_flagged(line, project, missed=missed, excluded=not counts, timed=timed))
    return out


def _flagged(line: PayLine, project: Project, *, missed: int, excluded: bool, timed: bool) -> PayLine:
    flags = []
    if line.items + line.reported and line.reported > MANY_REPORTS * (line.items + line.reported):
        flags.append(f"reported {line.reported} of {line.items + line.reported} items")
    if missed:
        flags.append(f"missed {missed} gold item{'s' if missed > 1 else ''}")
    if excluded:
        flags.append("does not count")
    if line.due and line.items < line.of:
        flags.append(f"{line.items} of {line.of} items")
    if line.minutes and line.due and line.owed / line.minutes * 60 < LEAST_SHARE * project.cost.pay_per_hour:
        flags.append(f"took {line.minutes:.1f} min: less than half the planned pay per hour")
    if line.minutes and timed and line.minutes * 60 < LEAST_TIME * line.items * project.cost.seconds_per_item:
        flags.append(f"took {line.minutes * 60:.1f} s: less than a tenth of the planned time")
    return replace(line, flags=tuple(flags))


def realised(lines: Sequence[PayLine]) -> Realised | None:
    """The median time and pay per hour of those who have finished and were not refused pay; None if nobody has."""
    ended = [line for line in lines if line.state == "finished" and line.decision != "rejected"]
    times = [(line.minutes, 60 * (line.pay + line.bonus) / line.minutes) for line in ended if line.minutes]
    if not times:
        return None
    minutes, hourly = (statistics.median(values) for values in zip(*times, strict=True))
    return Realised(people=len(times), minutes=minutes, hourly=hourly)


def realised_by_group(lines: Sequence[PayLine]) -> dict[str, dict[str, Realised]]:
    """The same by attribute and group, of every attribute that is known of somebody."""
    out: dict[str, dict[str, Realised]] = {}
    for name, group in sorted({pair for line in lines for pair in line.groups.items() if pair[1]}):
        part = realised([line for line in lines if line.groups.get(name) == group])
        if part is not None:
            out.setdefault(name, {})[group] = part
    return out


def decide_pay(
    cursor: Cursor,
    project: Project,
    annotators: Sequence[int],
    *,
    now: float,
    decision: str,
    bonus: float = 0.0,
    reason: str = "",
    by: str,
) -> None:
    """Adds a decision about the pay of some people to the ledger.

    An approval is of what is due and was not approved before, and of a bonus for each of them. What was approved
    already is refused; the same bonus twice, too, unless another reason is given. A rejection pays nothing, needs a
    reason, because the platforms do, and takes back what was approved and not sent yet.
    """
    if decision not in DECISIONS:
        raise InputError(f"pay: '{decision}' is no decision; approve or reject")
    reason = reason.strip()[:500]
    if decision == "rejected" and not reason:
        raise InputError("pay: a rejection needs a reason, which the platform shows to the person")
    if not 0 <= bonus < 1e6 or bonus != round(bonus, 2):
        raise InputError(f"pay: a bonus of {bonus:g} is not possible; give whole cents, from 0 to below 1,000,000")
    lines = {line.annotator: line for line in pay_sheet(cursor, project)}
    for annotator in dict.fromkeys(annotators):
        line = lines.get(annotator)
        if line is None:
            raise InputError(f"pay: annotator {annotator} never consented; there is nothing to pay")
        before = cursor.execute(
            "SELECT at, decision, pay, bonus, reason, sent_at FROM payment WHERE annotator = ? "
            "AND cancelled_at IS NULL ORDER BY id",
            (annotator,),
        ).fetchall()
        pay, extra = 0.0, 0.0
        if decision == "rejected":
            _refuse_to_reject(line, before)
        else:
            pay = _to_approve(line, before, bonus=bonus, reason=reason, currency=project.cost.currency)
            extra = bonus
        if decision == "rejected" or line.decision == "rejected":
            # What was decided before and never left the house does not count.
            cursor.execute(
                "UPDATE payment SET cancelled_at = ? WHERE annotator = ? AND sent_at IS NULL AND cancelled_at IS NULL",
                (now, annotator),
            )
        cursor.execute(
            "INSERT INTO payment (at, annotator, decision, pay, bonus, currency, reason) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (now, annotator, decision, pay, extra, project.cost.currency, reason),
        )
        log_event(cursor, "pay", annotator, {"decision": decision, "pay": pay, "bonus": extra, "by": by}, now=now)


def _refuse_to_reject(line: PayLine, before: Sequence[Any]) -> None:
    for at, decision, *_, sent_at in before:
        if decision == "approved" and sent_at is not None:
            raise InputError(f"pay: {line.pseudonym} was approved on {_day(at)}, and the platform was told; it stands")


def _to_approve(line: PayLine, before: Sequence[Any], *, bonus: float, reason: str, currency: str) -> float:
    """What is due to a person and was not approved before, or a refusal where that is nothing, or a bonus was given."""
    for at, _, _, given, why, _ in before:
        if bonus and given == bonus and reason in ("", why):
            raise InputError(
                f"pay: {line.pseudonym} was given a bonus of {given:.2f} {currency} on {_day(at)}; for "
                "another one of the same amount, give another reason"
            )
    pay = round(line.owed - line.approved, 2)
    first = next((at for at, decision, *_ in before if decision == "approved"), None)
    if pay <= 0 and not bonus and first is not None:
        raise InputError(f"pay: {line.pseudonym} was approved on {_day(first)}; nobody is paid twice")
    return max(pay, 0.0)


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


def bulk_files(cursor: Cursor, platform: str, *, now: float, again: bool = False) -> dict[str, str]:
    """The decisions in a platform's bulk formats, by file name, noting when they were written.

    Prolific takes a list of participants to approve, one a line, and bonuses as `participant,amount`. MTurk takes the
    file of a batch's results with a cross under Approve or a reason under Reject; it takes no file of bonuses, so
    these are written with the columns that its SendBonus needs. An approval pays a whole session on either platform,
    so that a part of one is written as a bonus. Only what was not written before is; `again`, the last files are
    written once more, and nothing else.
    """
    if platform not in ("prolific", "mturk"):
        raise InputError(f"pay: there is no bulk format for '{platform}'; choose prolific or mturk")
    which = "sent_at IS NULL"
    if again:
        which = "sent_at = (SELECT max(sent_at) FROM payment JOIN identity USING (annotator) WHERE platform = ?)"
    # An approval pays the whole session, once; any other row is an amount.
    whole = (
        "payment.id = coalesce((SELECT min(id) FROM payment AS p WHERE p.annotator = payment.annotator "
        "AND p.pay >= promised AND p.decision = 'approved' AND p.cancelled_at IS NULL), 0)"
    )
    rows = cursor.execute(
        "SELECT payment.id, external, study, session, "
        f"CASE WHEN decision = 'approved' AND NOT {whole} THEN 'part' ELSE decision END, "
        f"CASE WHEN {whole} THEN bonus ELSE pay + bonus END, payment.reason FROM payment "
        "JOIN identity ON identity.annotator = payment.annotator JOIN annotator ON annotator.id = payment.annotator "
        f"WHERE platform = ? AND cancelled_at IS NULL AND {which} ORDER BY payment.id",
        (platform, platform)[: which.count("?") + 1],
    ).fetchall()
    if not rows:
        raise InputError(
            f"pay: there is no decision about anybody from {platform} that was not written yet; approve people first"
        )
    cursor.executemany("UPDATE payment SET sent_at = ? WHERE id = ?", [(now, row[0]) for row in rows if not again])
    log_event(cursor, "pay written", None, {"platform": platform, "people": len(rows)}, now=now)
    approved = [row for row in rows if row[4] == "approved"]
    bonuses = [row for row in rows if row[5] > 0]
    if platform == "prolific":
        files = {
            "prolific-approve.txt": "".join(f"{row[1]}\n" for row in approved),
            "prolific-bonus.csv": "".join(f"{row[1]},{row[5]:.2f}\n" for row in bonuses),
            "prolific-reject.csv": _csv(
                ["participant_id", "reason"], [[r[1], r[6]] for r in rows if r[4] == "rejected"]
            ),
        }
    else:
        results = [
            [study, session, external, "Submitted", *(("x", "") if decision == "approved" else ("", reason))]
            for _, external, study, session, decision, _, reason in rows
            if decision != "part"
        ]
        files = {
            "mturk-results.csv": _csv(
                ["HITId", "AssignmentId", "WorkerId", "AssignmentStatus", "Approve", "Reject"], results
            ),
            "mturk-bonus.csv": _csv(
                ["WorkerId", "AssignmentId", "BonusAmount", "Reason"],
                [[r[1], r[3], f"{r[5]:.2f}", r[6] or "Thank you"] for r in bonuses],
            ),
        }
    return {
        name: text
        for name, text in files.items()
        if text.count("\n") > name.endswith(("reject.csv", "mturk-bonus.csv"))
    }


def _csv(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    # A spreadsheet would run a text that begins like a formula.
    guarded = [[f"'{cell}" if str(cell).startswith(("=", "+", "-", "@")) else cell for cell in row] for row in rows]
    writer.writerows([heads, *guarded])
    return out.getvalue()
