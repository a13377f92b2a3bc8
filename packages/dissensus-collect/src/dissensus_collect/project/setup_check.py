"""What a researcher should know before the first annotator arrives: cost, time, supply, and what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from dissensus.errors import InputError
from dissensus.responses import UNSURE
from dissensus_collect.store.items import project_items

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dissensus_collect.project.reading import Project

ABANDONED: Final = 0.2
"""Share of people who leave before the end, as in studies that we know of; for the number of people to invite."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing about a project: ok, a warning or an error, in a sentence."""

    kind: Literal["ok", "warning", "error"]
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What a project takes.

    Attributes:
        items: how many items votes are collected for.
        votes: judgements that count, including adaptive ones.
        annotators: the fewest people who can give them.
        invited: how many people to invite if a share of `ABANDONED` leaves early.
        minutes: one person's time for a full session, including gold items.
        hours: paid time in total.
        money: what it costs, in `currency`, including the platform's fee.
        currency: of the money.
    """

    items: int
    votes: int
    annotators: int
    invited: int
    minutes: float
    hours: float
    money: float
    currency: str


def project_budget(project: Project) -> Budget:
    """Time and money that a project takes, from its seconds per item and its pay."""
    apart = {gold.item for gold in project.gold_items} | set(project.practice_items)
    wanted = [item.wanted or project.k for item in project_items(project) if item.name not in apart]
    items = len(wanted)
    extra = min(project.adaptive.budget, items * (project.adaptive.max_k - project.k)) if project.adaptive.on else 0
    votes = sum(wanted) + max(extra, 0)
    each = min(project.items_per_annotator, items)
    most = max(project.adaptive.max_k if extra else 0, *wanted, project.k)
    annotators = max(-(-votes // each), most) if each else 0
    seconds = project.cost.seconds_per_item
    hours = (votes + annotators * len(project.gold_items)) * seconds / 3600
    return Budget(
        items=items,
        votes=votes,
        annotators=annotators,
        invited=-(-annotators * 100 // round(100 * (1 - ABANDONED))),
        minutes=(each + len(project.gold_items)) * seconds / 60,
        hours=hours,
        money=hours * project.cost.pay_per_hour * (1 + project.cost.platform_fee),
        currency=project.cost.currency,
    )


def check_setup(project: Project, *, annotators: int | None = None) -> list[Finding]:
    """What is in order and what is not, the worst first.

    Args:
        project: the project.
        annotators: how many people will come, if that is known; supply is then compared with demand.
    """
    try:
        budget = project_budget(project)
    except InputError as error:
        return [Finding(kind="error", sentence=str(error))]
    found = list(_findings(project, budget, annotators))
    return sorted(found, key=lambda each: ("error", "warning", "ok").index(each.kind))


def _findings(project: Project, budget: Budget, annotators: int | None) -> Iterator[Finding]:
    further = budget.votes - budget.items * project.k
    if further and not project.adaptive.on:
        demand = f"{budget.items:,} items with the votes that their table wants = {budget.votes:,} votes"
    else:
        more = f" + {further:,} adaptive" if project.adaptive.on else ""
        demand = f"{budget.items:,} items x {project.k} votes{more} = {budget.votes:,} votes"
    if budget.items == 0:
        yield Finding(
            kind="error", sentence="there is no item to vote on; add items that are neither gold nor practice"
        )
        return
    yield Finding(
        kind="ok",
        sentence=(
            f"{demand}: at least {budget.annotators:,} annotators of about {max(1, round(budget.minutes))} min each; "
            f"invite about {budget.invited:,}, because one in {round(1 / ABANDONED)} leaves early"
        ),
    )
    hours = f"{budget.hours:,.0f}" if budget.hours >= 10 else f"{budget.hours:.1f}"
    yield Finding(
        kind="ok",
        sentence=(
            f"about {hours} paid hours, {budget.money:,.0f} {budget.currency} with the platform's fee, at "
            f"{project.cost.seconds_per_item:g} s per item and {project.cost.pay_per_hour:g} {budget.currency} per hour"
        ),
    )
    if annotators is not None:
        supply = annotators * min(project.items_per_annotator, budget.items)
        enough = supply >= budget.votes and annotators >= project.k
        yield Finding(
            kind="ok" if enough else "warning",
            sentence=(
                f"supply {supply:,} {'>=' if supply >= budget.votes else '<'} demand {budget.votes:,} votes"
                + ("" if annotators >= project.k else f"; {annotators} people cannot give {project.k} votes per item")
            ),
        )
    for code, told in project.translations.items():
        named = [
            name for name in ("title", "consent", "instructions", "finish") if getattr(project.texts, name).strip()
        ]
        words = (
            [project.classes.words[each] for each in project.values]
            if project.layout in ("rows", "one-at-a-time")
            else []
        )
        missing = [each for each in (*named, project.question, *project.classes.names, *words) if each not in told]
        if missing:
            yield Finding(
                kind="warning",
                sentence=f"[translations.{code}] leaves {len(missing)} texts as they are, such as '{missing[0]}'",
            )
    if not project.gold_items:
        yield Finding(kind="warning", sentence="no gold item: nobody's attention is checked; name some under [gold]")
    elif project.gold.misses_allowed >= len(project.gold_items):
        yield Finding(
            kind="warning",
            sentence=(
                f"{project.gold.misses_allowed} of {len(project.gold.items)} gold items may be missed: nobody can be "
                "excluded"
            ),
        )
    yield from _taught(project)
    if project.k == 1:
        yield Finding(kind="warning", sentence="k is 1: one vote per item shows no disagreement; 3 or more do")
    if not project.texts.consent.strip():
        yield Finding(kind="warning", sentence="there is no consent text; write one under [texts]")
    if not project.texts.contact.strip():
        yield Finding(kind="warning", sentence="there is no contact; annotators need one when something fails")
    if project.lease.seconds < 3 * project.lease.heartbeat:
        yield Finding(
            kind="warning",
            sentence=(
                f"a lease of {project.lease.seconds:g} s with a heartbeat every {project.lease.heartbeat:g} s: two "
                "lost heartbeats give the item away; make the lease three heartbeats or longer"
            ),
        )
    if project.recruitment.kind == "prolific" and project.recruitment.jwks is None:
        yield Finding(
            kind="warning",
            sentence="Prolific without signed links: anybody can pretend to be a participant; name a jwks file",
        )
    if project.all_no_key:
        yield Finding(
            kind="warning", sentence="the all-No key is on: for those who use it, forced choice becomes select-all"
        )
    if budget.minutes > 60:
        yield Finding(
            kind="warning",
            sentence=f"a session takes {budget.minutes:.0f} minutes; people tire: lower items_per_annotator",
        )


def _taught(project: Project) -> Iterator[Finding]:
    """Where people would learn how unsure to be, which is what their votes should tell us."""
    for each in project.feedback:
        if any(right == {UNSURE} for right in each.required):
            yield Finding(
                kind="warning",
                sentence=(
                    f"the feedback on the practice item '{each.item}' calls unsure the right answer: it teaches people "
                    "how unsure to be; practise with items that are clear"
                ),
            )
    word = project.classes.words["unsure"]
    for asked in project.comprehension:
        if project.classes.unsure and asked.right.strip().casefold() == word.casefold():
            yield Finding(
                kind="warning",
                sentence=(
                    f"the question '{asked.question}' calls '{word}' the right answer: it teaches people when to be "
                    "unsure; ask about something else"
                ),
            )
