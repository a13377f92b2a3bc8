"""Beside people: sets that hold their answers, votes and the model in people, and when to ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import altair as alt
import numpy as np

from dissensus.arrays import places_of
from dissensus.errors import InputError
from dissensus.report.chapters import Chapter
from dissensus.report.figures import Figure, Section, diagonal, intervals, named_colours, spec_of
from dissensus.report.items import PALETTE
from dissensus.report.tables import ends, interval_cell, table_of
from dissensus.together.deferral import POINTS, defer
from dissensus.together.gains import gains_of
from dissensus.together.sets import prediction_sets
from dissensus.votes.echo import number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dissensus.report.subject import Subject
    from dissensus.report.tables import Table
    from dissensus.together.deferral import Deferral
    from dissensus.together.gains import Gain
    from dissensus.together.sets import PredictionSets

LEAST: Final = 200
"""Evaluated items below which nothing is told: few items tell no rules apart."""

LEVEL: Final = 0.9


def beside_people(subject: Subject, *, resamples: int, seed: int) -> Chapter | None:
    """A chapter on the closest system beside people's votes; None where these are too few."""
    if len(subject.people) < LEAST or not subject.people.counts.any():
        return None
    people, votes, best = subject.people, subject.votes, subject.evaluation.closest()
    own = people if votes is None else votes.take_items(places_of(people.items, votes.items))
    systems = {name: subject.predictions(name) for name in subject.shown}
    try:
        asked = defer(own, {best: systems[best]}, resamples=resamples, seed=seed)
        sets = {
            name: prediction_sets(own, system, level=LEVEL, resamples=resamples) for name, system in systems.items()
        }
    except InputError:
        # Judgements of several votes, or weighted labels, say no single answers.
        return None
    drawn: list[tuple[Figure, list[dict[str, Any]]]] = []
    if asked.learnt is not None:
        drawn = [_risk(asked), _in_people(gains_of(asked.learnt, resamples=resamples, seed=seed))]
    data = {figure.slug: rows for figure, rows in drawn if rows}
    figures = tuple(figure for figure, _ in drawn if figure.slug in data)
    note = (
        f"When to ask: what not asking for {number(asked.asked, 'vote')} costs on the items that {best} answers, for "
        "several ways to choose items; the lower the better. In people: what its prediction and a few votes are worth "
        "together, and on the dashed line votes alone."
    )
    section = Section(figures=figures, data=data, note=note)
    return Chapter(
        anchor="together",
        title="Beside people",
        heading="Model and people together",
        note=" ".join(asked.verdict),
        tables=[_table(sets)],
        sections=[section] if figures else [],
    )


def _risk(asked: Deferral) -> tuple[Figure, list[dict[str, Any]]]:
    shares = np.linspace(0, 1, POINTS).tolist()
    rows = [
        {"method": rule.rule, "answered": share, "risk": risk}
        for rule in asked.rules
        for share, risk in zip(shares, rule.risk, strict=True)
    ]
    lines = alt.Chart(alt.NamedData(name="asking")).mark_line(strokeWidth=2)
    lines = lines.encode(
        x=alt.X("answered:Q", title="share of items that the model answers").scale(domain=[0, 1]),
        y=alt.Y("risk:Q", title="risk, nats per item"),
        color=named_colours([rule.rule for rule in asked.rules]),
    )
    about = "Risk of answering instead of asking, by share answered, for several ways to choose items"
    return Figure(slug="asking", title="When to ask", spec=spec_of(lines), data="asking", about=about), rows


def _in_people(gains: tuple[Gain, ...]) -> tuple[Figure, list[dict[str, Any]]]:
    rows: list[dict[str, Any]] = [
        {"beside": gain.votes, **ends(gain.worth.estimate, "people", "low", "high")}
        for gain in gains
        if not gain.worth.more and gain.worth.estimate.low is not None
    ]
    most = max((row["beside"] for row in rows), default=0) + 0.5
    base = alt.Chart(alt.NamedData(name="in-people")).encode(
        y=alt.Y("beside:Q", title="votes beside the model").scale(domain=[0, most], nice=False).axis(tickMinStep=1),
        color=alt.value(PALETTE[0]),
    )
    dots = intervals(base, "people", alt.X("low:Q", title="worth in people"))
    spec = spec_of(alt.layer(*dots, diagonal(most)))
    title = "Votes and the model, in people"
    return Figure(slug="in-people", title=title, spec=spec, data="in-people", about=title), rows


def _table(sets: Mapping[str, PredictionSets]) -> Table:
    records: list[dict[str, Any]] = [
        {"system": name, "calibrated": row.calibrated, "stratum": row.stratum, "items": row.items}
        | {"classes": row.size.value, **ends(row.coverage, "held", "low", "high")}
        for name, found in sets.items()
        for row in found.scores
        if row.stratum != "unanimous"
    ]
    return table_of(
        "sets",
        f"Sets for {LEVEL:.0%} of people's answers",
        records,
        {
            "System": lambda row: row["system"],
            "Calibrated on": lambda row: row["calibrated"],
            "Items": lambda row: f"{row['stratum']} ({row['items']:,})",
            "Answers held": lambda row: interval_cell(row, "held"),
            "Classes in a set": lambda row: f"{row['classes']:.2f}",
        },
        note="On items left out of calibration; an item's votes count once. Varied items are chosen by half of their "
        "votes and scored on the other half.",
    )
