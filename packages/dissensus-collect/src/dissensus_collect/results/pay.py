"""What people are paid: a sheet with a line for each person, the decisions, and the platforms' bulk formats."""

from __future__ import annotations

import csv
import io
import statistics
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from dissensus.errors import InputError
from dissensus_collect.store.events import log_event
from dissensus_collect.work.attributes import final_answers
from dissensus_collect.work.participants import ending_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dissensus_collect.project.reading import Project
    from dissensus_collect.store.database import Cursor

DECISIONS: Final = ("approved", "rejected")
MANY_REPORTS: Final = 0.2
"""Share of an annotator's items above which reported problems are worth a look before paying."""
LEAST_SHARE: Final = 0.5
"""Share of the planned pay per hour below which the realised one is worth a look."""


@dataclass(frozen=True, kw_only=True)
class PayLine:
    """What is known about one person's pay.

    Attributes:
        code: the code they were given; None as long as the session has not ended.
        due: whether they are to be paid by the rules of the project.
        items: items judged, gold items included, `of` those of a whole session.
        reported: items that they reported a problem with instead.
        minutes: from consent to the end; None as long as the session has not ended.
        active_minutes: on items, without the time for which the page was hidden.
        flags: what to look at before deciding, as sentences.
        pay: what was decided, or else what the project's settings make of it.
        decision: "approved", "rejected", or None, with its reason.
        sent_at: when the decision was written into a file for the platform, UNIX seconds; None if it was not.
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
    pay: float
    bonus: float
    decision: str | None
    reason: str
    sent_at: float | None
    groups: Mapping[str, str]

    @property
    def completeness(self) -> float:
        """Share of a whole session that was done, at most 1."""
        return min(1.0, self.items / self.of) if self.of else 1.0


@dataclass(frozen=True, kw_only=True)
class Realised:
    """How long people took who have finished, and what that made an hour.

    Medians over people: of the minutes from consent to the end, and of pay and bonus by the hour.
    """

    people: int
    minutes: float
    hourly: float


def reward(project: Project, vote_items: int) -> float:
    """What a whole session pays, by the project's planned seconds and pay per hour, to the cent."""
    items = min(project.items_per_annotator, vote_items) + len(project.gold_items)
    return round(items * project.cost.seconds_per_item / 3600 * project.cost.pay_per_hour, 2)


def pay_sheet(cursor: Cursor, project: Project, *, afresh: bool = False) -> list[PayLine]:
    """A line for everybody who consented, by rising id.

    Whoever finished is due the whole reward, whether or not others left something to do for them. Whoever ended early
    for a technical reason is due the share that was done, once a researcher approves it. `afresh`, pay is what the
    project's settings make of it even where something was decided.
    """
    (vote_items,) = cursor.execute("SELECT count(*) FROM item WHERE role = 'vote' AND retired_at IS NULL").fetchone()
    whole, of = reward(project, vote_items), min(project.items_per_annotator, vote_items) + len(project.gold_items)
    rows = cursor.execute(
        "SELECT annotator.id, pseudonym, annotator.state, eligible, paid, annotator.counts, done + gold_done, "
        "gold_missed, finished_at - consented_at, coalesce(reported, 0), coalesce(active, 0.0), "
        "payment.pay, coalesce(payment.bonus, 0.0), payment.decision, coalesce(payment.reason, ''), payment.sent_at "
        "FROM annotator "
        "LEFT JOIN (SELECT annotator AS who, count(*) AS reported FROM assignment WHERE state = 'problem' "
        "GROUP BY annotator) AS problems ON problems.who = annotator.id "
        "LEFT JOIN (SELECT annotator AS who, sum(seconds - coalesce(hidden_seconds, 0)) AS active FROM assignment "
        "JOIN judgement ON judgement.assignment = assignment.id AND judgement.current = 1 GROUP BY annotator) AS times "
        "ON times.who = annotator.id "
        "LEFT JOIN payment ON payment.id IN (SELECT max(id) FROM payment GROUP BY annotator) "
        "AND payment.annotator = annotator.id WHERE consented_at IS NOT NULL ORDER BY annotator.id"
    ).fetchall()
    answers = final_answers(cursor)
    free_text = {asked.name for asked in project.questions if not asked.options}
    out = []
    for (
        who, pseudonym, state, eligible, paid, counts, items, missed, seconds, reported, active, pay, bonus, decision,
        reason, sent_at,
    ) in rows:  # fmt: skip
        ending = ending_of(state, eligible)
        share = 1.0 if paid else min(1.0, items / of) if of else 0.0
        line = PayLine(
            annotator=who,
            pseudonym=pseudonym,
            state=state,
            code=None if ending is None else project.recruitment.codes[ending],
            due=bool(paid),
            items=items,
            of=of,
            reported=reported,
            minutes=None if seconds is None else seconds / 60,
            active_minutes=active / 60,
            flags=(),
            pay=round(whole * share, 2) if pay is None or afresh else pay,
            bonus=bonus,
            decision=decision,
            reason=reason,
            sent_at=sent_at,
            groups={name: text for name, text in answers.get(who, {}).items() if name not in free_text},
        )
        out.append(_flagged(line, project, missed=missed, excluded=not counts))
    return out


def _flagged(line: PayLine, project: Project, *, missed: int, excluded: bool) -> PayLine:
    flags = []
    if line.items + line.reported and line.reported > MANY_REPORTS * (line.items + line.reported):
        flags.append(f"reported {line.reported} of {line.items + line.reported} items")
    if missed:
        flags.append(f"missed {missed} gold item{'s' if missed > 1 else ''}")
    if excluded:
        flags.append("does not count")
    if line.state == "finished" and not line.items:
        flags.append("let in, and found nothing left")
    if line.minutes and line.due and line.pay / line.minutes * 60 < LEAST_SHARE * project.cost.pay_per_hour:
        flags.append(f"took {line.minutes:.0f} minutes: less than half the planned pay per hour")
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
    """Keeps a decision about the pay of some people, as the sheet has it; what was decided before stays on record.

    It is one of `DECISIONS`; a rejection pays nothing, and needs a reason, because the platforms do. The bonus is for
    each of them.
    """
    if decision not in DECISIONS:
        raise InputError(f"pay: '{decision}' is no decision; approve or reject")
    if decision == "rejected" and not reason.strip():
        raise InputError("pay: a rejection needs a reason, which the platform shows to the person")
    if not 0 <= bonus < 1e6:
        raise InputError("pay: a bonus must be 0 or more")
    due = {line.annotator: line.pay for line in pay_sheet(cursor, project, afresh=True)}
    for annotator in annotators:
        if annotator not in due:
            raise InputError(f"pay: annotator {annotator} never consented; there is nothing to pay")
        pay, extra = (0.0, 0.0) if decision == "rejected" else (due[annotator], round(bonus, 2))
        cursor.execute(
            "INSERT INTO payment (at, annotator, decision, pay, bonus, currency, reason) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (now, annotator, decision, pay, extra, project.cost.currency, reason.strip()[:500]),
        )
        log_event(cursor, "pay", annotator, {"decision": decision, "pay": pay, "bonus": extra, "by": by}, now=now)


def bulk_files(cursor: Cursor, platform: str, *, now: float, again: bool = False) -> dict[str, str]:
    """The decisions in a platform's bulk formats, by file name, noting when they were written.

    Prolific takes a list of participants to approve, one a line, and bonuses as `participant,amount`. MTurk takes the
    file of a batch's results with a cross under Approve or a reason under Reject; it takes no file of bonuses, so
    these are written with the columns that its SendBonus needs. Decisions that were written before are left out,
    unless they are wanted `again`.
    """
    if platform not in ("prolific", "mturk"):
        raise InputError(f"pay: there is no bulk format for '{platform}'; choose prolific or mturk")
    rows = cursor.execute(
        "SELECT payment.id, external, study, session, decision, bonus, reason FROM payment "
        "JOIN identity ON identity.annotator = payment.annotator WHERE platform = ? "
        "AND payment.id IN (SELECT max(id) FROM payment GROUP BY annotator) "
        f"{'' if again else 'AND sent_at IS NULL'} ORDER BY payment.id",
        (platform,),
    ).fetchall()
    if not rows:
        raise InputError(
            f"pay: there is no decision about anybody from {platform} that was not written yet; approve people first"
        )
    cursor.executemany("UPDATE payment SET sent_at = ? WHERE id = ?", [(now, row[0]) for row in rows])
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
