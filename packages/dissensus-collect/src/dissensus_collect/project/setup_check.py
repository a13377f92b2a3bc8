"""What a researcher should know before the first annotator arrives: cost, time, supply, and what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from dissensus.errors import InputError
from dissensus.item_names import places_of_items
from dissensus.responses import UNSURE
from dissensus.votes.echo import number
from dissensus_collect.project.items import project_items
from dissensus_collect.project.language import NAMES, language
from dissensus_collect.project.reading import USUAL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dissensus_collect.project.reading import Project

ABANDONED: Final = 0.2
"""Share of people who leave before the end, as in studies that we know of; for the number of people to invite."""


@dataclass(frozen=True)
class Check:
    """One thing about a project that was looked at: ok, a warning or an error, in a sentence."""

    kind: Literal["ok", "warning", "error"]
    sentence: str


ok, warning, wrong = (partial(Check, kind) for kind in ("ok", "warning", "error"))


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
    share = min(project.items_per_annotator, items)
    most = max(project.adaptive.max_k if extra else 0, *wanted, project.k)
    annotators = max(-(-votes // share), most) if share else 0
    seconds = project.cost.seconds_per_item
    hours = (votes + annotators * project.gold_shown) * seconds / 3600
    return Budget(
        items=items,
        votes=votes,
        annotators=annotators,
        invited=-(-annotators * 100 // round(100 * (1 - ABANDONED))),
        minutes=(share + project.gold_shown) * seconds / 60,
        hours=hours,
        money=hours * project.cost.pay_per_hour * (1 + project.cost.platform_fee),
        currency=project.cost.currency,
    )


def check_setup(project: Project, *, annotators: int | None = None, codes: bool = False) -> list[Check]:
    """What is in order and what is not, the worst first.

    Where it is known how many `annotators` will come, supply is compared with demand. `codes` says that links that work
    once were made, so that nobody comes by a plain one.
    """
    try:
        budget = project_budget(project)
    except InputError as error:
        return [wrong(str(error))]
    if budget.items == 0:
        return [wrong("there is no item to vote on; add items that are neither gold nor practice")]
    checks = [
        *_demand(project, budget, annotators),
        *_gaps(project, budget, codes),
        *_taught(project),
        *_predicted(project),
    ]
    return sorted(checks, key=lambda check: ("error", "warning", "ok").index(check.kind))


def _demand(project: Project, budget: Budget, annotators: int | None) -> Iterator[Check]:
    further = budget.votes - budget.items * project.k
    if further and not project.adaptive.on:
        demand = (
            f"{number(budget.items, 'item')} with the votes that their table wants = {number(budget.votes, 'vote')}"
        )
    else:
        more = f" + {further:,} adaptive" if project.adaptive.on else ""
        demand = f"{number(budget.items, 'item')} x {number(project.k, 'vote')}{more} = {number(budget.votes, 'vote')}"
    yield ok(
        f"{demand}: at least {number(budget.annotators, 'annotator')} of about {max(1, round(budget.minutes))} min "
        f"each; invite about {budget.invited:,}, because one in {round(1 / ABANDONED)} leaves early"
    )
    hours = f"{budget.hours:,.0f}" if budget.hours >= 10 else f"{budget.hours:.1f}"
    yield ok(
        f"about {hours} paid hours, {budget.money:,.0f} {budget.currency} with the platform's fee, at "
        f"{project.cost.seconds_per_item:g} s per item and {project.cost.pay_per_hour:g} {budget.currency} per hour"
    )
    if annotators is not None:
        supply = annotators * min(project.items_per_annotator, budget.items)
        few = "" if annotators >= project.k else f"; {annotators} people cannot give {project.k} votes per item"
        enough = supply >= budget.votes
        yield (ok if enough and not few else warning)(
            f"supply {supply:,} {'>=' if enough else '<'} demand {budget.votes:,} votes{few}"
        )


def _gaps(project: Project, budget: Budget, codes: bool) -> Iterator[Check]:
    """What is missing or risky, as warnings."""
    named = [name for name in ("title", "consent", "instructions", "finish") if getattr(project.texts, name).strip()]
    buttons = project.values if project.layout in ("rows", "one-at-a-time") else ()
    words = [project.classes.words[value] for value in buttons]
    texts = (*named, project.question, *project.classes.names, *words)
    for code in project.translations:
        ours = project.told(code)
        if missing := [text for text in texts if text not in ours]:
            yield wrong(
                f"[translations.{code}] leaves {len(missing)} texts as they are, such as '{missing[0]}'; translate them"
            )
    if foreign := list(_foreign(project)):
        yield wrong(
            f"the project speaks {NAMES[project.language]}, and '{foreign[0]}' is in another language; write all texts "
            f"in its language, or make it anew with --language {project.language}"
        )
    lease, misses, gold = project.lease, project.gold.misses_allowed, project.gold_shown
    beats = f"a lease of {lease.seconds:g} s with a heartbeat every {lease.heartbeat:g} s"
    gaps = (
        (not gold, "no gold item: nobody's attention is checked; name some under [gold]"),
        (0 < gold <= misses, f"{misses} of {gold} gold items may be missed: nobody can be excluded"),
        (
            0 < gold == len(project.gold_items),
            f"all {gold} gold items are shown to everybody: one that is reported is not replaced; lower [gold] shown",
        ),
        (
            project.recruitment.kind == "plain" and not codes,
            f"one person can give all {project.k} votes by a plain link; make single-use links with 'invite --codes'",
        ),
        (project.k == 1, "k is 1: one vote per item shows no disagreement; 3 or more do"),
        (not project.texts.consent.strip(), "there is no consent text; write one under [texts]"),
        (not project.texts.contact.strip(), "there is no contact; annotators need one when something fails"),
        (
            lease.seconds < 3 * lease.heartbeat,
            f"{beats}: two lost heartbeats give the item away; make the lease three heartbeats or longer",
        ),
        (
            project.recruitment.kind == "prolific" and project.recruitment.jwks is None,
            "Prolific without signed links: anybody can pretend to be a participant; name a jwks file",
        ),
        (project.all_no_key, "the all-No key is on: for those who use it, forced choice becomes select-all"),
        (budget.minutes > 60, f"a session takes {budget.minutes:.0f} minutes; people tire: lower items_per_annotator"),
    )
    yield from (warning(sentence) for is_so, sentence in gaps if is_so)


def _foreign(project: Project) -> Iterator[str]:
    """Texts of a project as we write them into new ones of another language."""
    scales = [asked.scale for asked in project.asked if asked.layout == "rating"]
    written = [
        project.question, project.texts.consent, project.texts.instructions, project.texts.finish,
        *(project.classes.words[value] for value in project.values),
        *(word for scale in scales for word in (scale.low, scale.high)),
        *([project.reason.question] if project.reason.ask != "off" else []),
    ]  # fmt: skip
    own = set(_defaults(project.language))
    others = {text for code in NAMES if code != project.language for text in _defaults(code)} - own
    yield from (text.strip() for text in written if " ".join(text.split()) in others)


def _defaults(code: str) -> Iterator[str]:
    """All that we write in a language."""
    spoken = language(code)
    yield from (spoken.say(word) for word in USUAL.values())
    for what in ("image", "text", "pair"):
        for asks, how in spoken.new["layouts"].values():
            yield asks.format(what=what)
            yield " ".join(spoken.new["instructions"].format(what=what, how=how.format(what=what)).split())
        yield from (" ".join(spoken.new[name].format(what=what).split()) for name in ("consent", "finish"))


def _predicted(project: Project) -> Iterator[Check]:
    """Whether the model beside which votes are collected predicts the items."""
    if not (project.adaptive.on and project.adaptive.model):
        return
    from dissensus.together.combining import LEAST

    names = np.array([item.name for item in project_items(project)], dtype=np.dtypes.StringDType())
    try:
        known = int((places_of_items(names, project.predictions.items) >= 0).sum())
    except InputError as error:
        yield wrong(str(error))
        return
    kind = wrong if known < LEAST else warning if known < len(names) else ok
    few = f"; how much it counts is learnt from {LEAST} or more" if known < LEAST else ""
    yield kind(f"the model of [adaptive] predicts {known:,} of {len(names):,} items{few}")
    if not project.adaptive.budget:
        yield warning("[adaptive] budget is 0, so that no votes beyond k are bought")


def _taught(project: Project) -> Iterator[Check]:
    """Where people would learn how unsure to be, which is what their votes should tell us."""
    for practised in project.feedback:
        if any(right == {UNSURE} for right in practised.required):
            yield warning(
                f"the feedback on the practice item '{practised.item}' calls unsure the right answer: it teaches "
                "people how unsure to be; practise with items that are clear"
            )
    word = project.classes.words["unsure"]
    for question in project.comprehension:
        if project.classes.unsure and question.right.strip().casefold() == word.casefold():
            yield warning(
                f"the question '{question.question}' calls '{word}' the right answer: it teaches people when to be "
                "unsure; ask about something else"
            )
