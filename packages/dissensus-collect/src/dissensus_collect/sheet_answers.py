"""What a project knows by itself of the questions that a datasheet asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dissensus_collect.project.reading import read_project
from dissensus_collect.results.collected import collected_votes
from dissensus_collect.results.pay import pay_sheet, realised
from dissensus_collect.store.events import is_simulated
from dissensus_collect.store.opening import snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.votes.table import Votes
    from dissensus_collect.project.reading import Project


def of_project(folder: Path) -> tuple[dict[str, dict[str, str]], Votes]:
    """What a project knows of a datasheet's questions, and its votes (`dissensus curate datasheet --project`)."""
    project = read_project(folder)
    with snapshot(project) as cursor:
        return sheet_answers(cursor, project), collected_votes(cursor, project)


def sheet_answers(cursor: Any, project: Project) -> dict[str, dict[str, str]]:
    """By section and key of a datasheet, answers from the project file and from what was collected."""
    cursor.execute("SELECT COUNT(*), SUM(exported) FROM annotator")
    arrived, kept = (int(count or 0) for count in cursor.fetchone())
    cursor.execute(
        "SELECT COALESCE(reason, ''), COUNT(*) FROM annotator WHERE exported = 0 GROUP BY COALESCE(reason, '') "
        "ORDER BY COUNT(*) DESC, 1"
    )
    reasons = [f"{count:,} {reason or 'without a stated reason'}" for reason, count in cursor.fetchall()]
    whence = {"plain": "by a plain link", "prolific": "on Prolific", "mturk": "on Mechanical Turk"}
    simulated = "Simulated: bots gave the answers. " if is_simulated(cursor) else ""
    may_miss = f"of which {project.gold.misses_allowed} may be missed"
    checks = {
        f"{len(project.comprehension)} questions about the task before the first item": project.comprehension,
        f"{len(project.practice_items)} items for practice": project.practice_items,
        f"{project.gold_shown} items with a known answer, {may_miss}": project.gold_items,
        f"{len(project.eligibility)} questions before consent decided who may take part": project.eligibility,
    }
    lines = pay_sheet(cursor, project)
    measured, paid = realised(lines), sum(line.due and line.owed > 0 for line in lines)
    screened = "; ".join(f"{name}: {value}" for name, value in project.prescreening.items())
    invited = f" Prescreening: {screened}." if screened else ""
    cost, texts = project.cost, project.texts
    pay = f"{cost.pay_per_hour:g} {cost.currency} per hour, by the project's settings; {paid:,} people are to be paid."
    if measured is not None:
        pay += (
            f" Realised: a median of {measured.minutes:.1f} minutes and {measured.hourly:.2f} {cost.currency} per "
            f"hour, over {measured.people:,} people who finished."
        )
    return {
        "collection": {
            "annotators": f"{simulated}{arrived:,} people arrived {whence[project.recruitment.kind]}; the answers of "
            f"{kept:,} are kept.{invited}",
            "instructions": " ".join(
                f"Asked about every class ({', '.join(asked.classes)}): {asked.question}" for asked in project.asked
            )
            + f" {texts.instructions}",
            "pay": pay if cost.pay_per_hour else "",
            "consent": texts.consent,
            "checks": "; ".join(check for check, made in checks.items() if made),
            "excluded": "; ".join(reasons),
        },
        "maintenance": {"errors": texts.contact},
    }
