"""Who disagrees with whom: annotators by what they answer, groups of them, and items on which groups part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import altair as alt
import numpy as np

from dissensus.evaluation.comparison.differences import shown_p
from dissensus.evaluation.comparison.verdict import listed
from dissensus.evaluation.people.evaluating import evaluate_people, item_predictions
from dissensus.evaluation.people.map import LEVEL, PeopleMap, parted_items, people_map
from dissensus.report.dots import write_figure
from dissensus.report.figures import Figure, Section, spec_of
from dissensus.report.items import PALETTE, Card, bar, class_colours, clipped
from dissensus.report.tables import Cell, Table, TableRow, capital, estimated
from dissensus.votes.privacy import groups_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dissensus.bootstrap import Seed
    from dissensus.evaluation.people.evaluating import PeopleEvaluation
    from dissensus.evaluation.people.groups import GroupScores
    from dissensus.report.figures import Record
    from dissensus.report.subject import Subject
    from dissensus.votes.privacy import Groups
    from dissensus.votes.table import Votes

MOST_GROUPS: Final = 12
"""Values of an attribute at most, for a table of its groups: with more, each is too small to say much."""

NAMED: Final = 40
"""People at most whose names stand beside the map."""

LISTED: Final = 30
"""People in the table of the map, those furthest from the middle; the CSV has all."""

TOLD: Final = 0.4
"""Correlation between people's places and how often they choose a class, from which an axis is named after it."""

OTHERS: Final = "other"


@dataclass(frozen=True, eq=False, kw_only=True)
class WhoDisagrees:
    """The part of the page on people.

    Attributes:
        sentences: what was found.
        map: annotators by what they answer; None where that is not told apart from chance.
        groups: how far the closest system is from each group's distribution; None where no group is shown.
        tables: people of the map, and groups.
        parted: by attribute, the items on which its groups part.
    """

    sentences: tuple[str, ...]
    map: Section | None
    groups: Section | None
    tables: tuple[Table, ...]
    parted: tuple[tuple[str, list[Card]], ...]


def who_disagrees(subject: Subject, *, seed: int) -> WhoDisagrees | None:
    """The part of the page on people.

    None where nobody is told apart, where judgements hold several classes, and where no vote is on an evaluated item.
    """
    votes, best = subject.votes, subject.evaluation.closest()
    if votes is None or votes.annotators is None or votes.judgement is not None:
        return None
    predicted = item_predictions(votes, subject.people.items, subject.mean(best))
    if not len(predicted):
        return None
    groups = {name: groups_of(votes, name, least=subject.least_people) for name in votes.annotator_attributes}
    chosen = {name: each for name, each in groups.items() if each.shown.sum() > 1 and len(each.names) <= MOST_GROUPS}
    scored = evaluate_people(
        votes,
        {best: predicted},
        attributes=list(chosen),
        least=subject.least_people,
        only_common=True,
        seed=seed,
    )
    placed = people_map(votes, seed=seed)
    tested = {each.attribute: each for each in scored.by_group}
    apart = [name for name, each in tested.items() if each.p_votes is not None and each.p_votes <= LEVEL]
    told = [*_of_map(placed, votes), *_of_groups(scored.by_group, tests=len(tested))]
    told += [f"{capital(sentence)}." for each in chosen.values() for sentence in each.told]
    left = [name for name in groups if name not in chosen]
    if left:
        told.append(
            f"Not shown by group: {', '.join(left)}, which have more than {MOST_GROUPS} values, or fewer than two with "
            f"{subject.least_people} people."
        )
    surest = min(apart, key=lambda name: tested[name].p_votes or 0.0) if apart else None
    parted = tuple((name, _parted(subject, chosen[name], seed=seed)) for name in apart)
    return WhoDisagrees(
        sentences=tuple(told),
        map=_map(placed, votes, None if surest is None else chosen[surest]) if placed.place.shape[1] else None,
        groups=group_dots(scored) if any(each.groups for each in scored.by_group) else None,
        tables=(
            *([_people_table(placed, votes)] if placed.place.shape[1] else []),
            *([_group_table(scored)] if any(each.groups for each in scored.by_group) else []),
        ),
        parted=tuple((name, cards) for name, cards in parted if cards),
    )


def _of_map(placed: PeopleMap, votes: Votes) -> list[str]:
    """What the map says, in words."""
    left = [f"On the map {each}." for each in placed.left_out]
    if placed.reason:
        return [*left, f"No map of annotators: {placed.reason}."]
    p = shown_p(placed.p_values[0]) if placed.p_values[0] > 0.01 else "≤ 0.01"
    if not placed.place.shape[1]:
        return [
            *left,
            (
                "Beyond what the items make everybody answer, no annotators are seen to answer more like each other "
                f"than votes dealt out at random do (p {p}): there is no map to draw."
            ),
        ]
    clear = int(((placed.low[:, 0] > 0) | (placed.high[:, 0] < 0)).sum())
    told = (
        f"Annotators differ in what they answer beyond what the items make everybody answer (p {p}, against votes "
        f"dealt out at random): {clear:,} of {len(placed.people):,} lie surely to one side of the middle."
    )
    return [told, *_axes(placed, votes), *left]


def _axes(placed: PeopleMap, votes: Votes) -> list[str]:
    """What lying to the right, or at the top, goes with."""
    told = []
    for k, side in enumerate(("right", "top")[: placed.place.shape[1]]):
        spread = placed.lean.std(axis=0)
        some = np.flatnonzero(spread > 1e-12)
        with_class = np.array([np.corrcoef(placed.place[:, k], placed.lean[:, c])[0, 1] for c in some])
        strong = [(float(r), votes.classes[c]) for r, c in zip(with_class, some, strict=True) if abs(r) >= TOLD]
        parts = [
            f"{listed([f'‘{clipped(name, 40)}’' for name in names])} {how} often"
            for sign, how in ((1, "more"), (-1, "less"))
            if (names := [name for r, name in strong if r * sign > 0])
        ]
        told.append(
            f"Those at the {side} choose {' and '.join(parts)} than others do on the same items."
            if parts
            else f"Lying at the {side} goes with no class in particular: people there agree item by item."
        )
    return told


def _of_groups(found: Sequence[GroupScores], *, tests: int) -> list[str]:
    """For each attribute, whether its groups differ in what they say."""
    differing = [f"{each.attribute} (p {shown_p(each.p_votes)})" for each in found if (each.p_votes or 1) <= LEVEL]
    same = [f"{each.attribute} (p {shown_p(each.p_votes)})" for each in found if each.p_votes and each.p_votes > LEVEL]
    told = []
    if differing:
        told.append(f"Groups that differ in what they say of the same items: by {listed(differing)}.")
    if same:
        told.append(f"No difference told apart from chance: by {listed(same)}.")
    if tests > 1 and differing:
        told.append(
            f"Of {tests} attributes tested, {LEVEL * tests:.1g} would be expected to look so by chance alone; people, "
            "not votes, were dealt out to groups at random."
        )
    return told


def _map(placed: PeopleMap, votes: Votes, groups: Groups | None) -> Section:
    """People as points with intervals: on two axes, or where only one counts, in order along it."""
    assert votes.annotators is not None
    flat = placed.place.shape[1] == 1
    order = np.argsort(placed.place[:, 0], kind="stable") if flat else np.arange(len(placed.people))
    rows: list[Record] = []
    for rank, k in enumerate(order.tolist()):
        person = int(placed.people[k])
        row: Record = {
            "who": _cut(str(votes.annotators.names[person]), 24),
            "kind": _kind(placed, k, groups, person),
            **_ends(placed, k, 0, "x"),
            **({"y": rank} if flat else _ends(placed, k, 1, "y")),
        }
        rows.append(row)
    kinds = sorted(dict.fromkeys(row["kind"] for row in rows), key=lambda name: name in (OTHERS, _UNCLEAR))
    colours = [PALETTE[6] if name in (OTHERS, _UNCLEAR) else PALETTE[n % 6] for n, name in enumerate(kinds)]
    title = groups.attribute if groups is not None else None
    legend = alt.Legend(orient="bottom", columns=2, columnPadding=36, symbolOpacity=1)
    colour = alt.Color("kind:N", title=title, legend=legend).scale(domain=kinds, range=colours)
    base = alt.Chart(alt.NamedData(name="people-map")).encode(color=colour)
    faint = 0.7 if len(rows) <= NAMED else 0.16
    across = alt.X("x_low:Q", title="those who answer alike on the same items lie together").axis(grid=False)
    if flat:
        named = len(rows) <= NAMED
        label = {"labelExpr": "data('people-map')[datum.value].who"} if named else {"labels": False}
        y = alt.Y("y:O", title=None).axis(ticks=False, domain=False, **label).sort("ascending")
        reach = [base.mark_rule(strokeWidth=1.5, opacity=faint).encode(x=across, x2=alt.X2("x_high:Q"), y=y)]
    else:
        y = alt.Y("y_low:Q", title="second dimension").axis(grid=False)
        reach = [
            base.mark_rule(strokeWidth=1, opacity=faint).encode(x=across, x2=alt.X2("x_high:Q"), y=alt.Y("y:Q")),
            base.mark_rule(strokeWidth=1, opacity=faint).encode(x=alt.X("x:Q"), y=y, y2=alt.Y2("y_high:Q")),
        ]
    tip = [alt.Tooltip("who:N", title="annotator"), alt.Tooltip("kind:N", title=title or "place")]
    points = base.mark_point(filled=True, size=36, opacity=0.9).encode(
        x=alt.X("x:Q"), y=y if flat else alt.Y("y:Q"), tooltip=tip
    )
    middle = alt.Chart(alt.InlineData(values=[{"at": 0}])).mark_rule(color="#8C8C8C", strokeDash=[4, 4])
    layers = [middle.encode(x=alt.X("at:Q")), *([] if flat else [middle.encode(y=alt.Y("at:Q"))]), *reach, points]
    height = min(20 * len(rows), 520) if flat else 420
    figure = Figure(
        slug="people-map",
        title=f"{len(rows):,} annotators by what they answer",
        spec=spec_of(alt.layer(*layers), height=max(height, 120)),
        data="people-map",
        about=f"Map of {len(rows):,} annotators: those who answer alike on the same items lie together",
    )
    note = (
        "Each point is an annotator, with a 95 % interval over items; the dashed line is the middle of the panel. "
        "Distances say who answers alike on the same items, free of how hard the items are."
    )
    return Section(figures=(figure,), data={"people-map": rows}, note=note)


_UNCLEAR: Final = "not told apart from the middle"


def _kind(placed: PeopleMap, k: int, groups: Groups | None, person: int) -> str:
    if groups is None:
        return "surely to one side" if placed.low[k, 0] > 0 or placed.high[k, 0] < 0 else _UNCLEAR
    member = int(groups.group[person])
    return _cut(groups.names[member], 32) if groups.shown[member] else OTHERS


def _ends(placed: PeopleMap, k: int, axis: int, name: str) -> Record:
    return {
        name: float(placed.place[k, axis]),
        f"{name}_low": float(placed.low[k, axis]),
        f"{name}_high": float(placed.high[k, axis]),
    }


def _people_table(placed: PeopleMap, votes: Votes) -> Table:
    assert votes.annotators is not None
    names = ("first dimension", "second dimension")[: placed.place.shape[1]]
    order = np.argsort(-np.abs(placed.place[:, 0]), kind="stable").tolist()
    records = []
    for k in order:
        name = str(votes.annotators.names[placed.people[k]])
        record: dict[str, Any] = {"annotator": name, "votes": int(placed.votes[k])}
        for axis, name in enumerate(names):
            record |= {
                name: float(placed.place[k, axis]),
                f"{name} low": float(placed.low[k, axis]),
                f"{name} high": float(placed.high[k, axis]),
            }
        record |= {f"lean to {name}": float(placed.lean[k, c]) for c, name in enumerate(votes.classes)}
        records.append(record)
    rows = [
        TableRow(
            name=record["annotator"],
            cells=(
                Cell(f"{record['votes']:,}"),
                *(
                    Cell(f"{record[name]:+.2f}", f"{record[f'{name} low']:+.2f} to {record[f'{name} high']:+.2f}")
                    for name in names
                ),
            ),
        )
        for record in records[:LISTED]
    ]
    left = len(records) - len(rows)
    return Table(
        slug="people-map",
        title="Annotators on the map",
        header=("annotator", "votes that count", *names),
        rows=tuple(rows),
        records=tuple(records),
        note="Those furthest from the middle first." + (f" {left:,} more are in the CSV file." if left else ""),
    )


def _group_table(scored: PeopleEvaluation) -> Table:
    rows, records = [], []
    for found in scored.by_group:
        for each in found.groups:
            score = each.scores[scored.headline]
            rows.append(
                TableRow(
                    name=f"{found.attribute}: {each.name}",
                    cells=(
                        Cell(f"{each.people:,}", f"{each.votes:,} votes"),
                        estimated(score, "soft_nll"),
                        estimated(each.disadvantage, "soft_nll"),
                        Cell("–") if each.distance is None else estimated(each.distance, "brier"),
                    ),
                )
            )
            record: dict[str, Any] = {"attribute": found.attribute, "group": each.name}
            record |= {"people": each.people, "votes": each.votes}
            for name, value in (("nll", score), ("disadvantage", each.disadvantage), ("distance", each.distance)):
                ends = (None, None, None) if value is None else (value.value, value.low, value.high)
                record |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
            tests = {"p_votes": found.p_votes, "p_scores": found.p_scores, "p_distance": found.p_distance}
            records.append(record | tests)
    return Table(
        slug="groups",
        title=f"Groups of annotators and {scored.system}",
        header=("group", "people", "NLL a vote ↓", "disadvantage on the same items", "squared distance ↓"),
        rows=tuple(rows),
        records=tuple(records),
        note=(
            "Disadvantage: NLL of the group's votes minus that of everybody's votes on the same items; a group that is "
            "of one mind is easier to predict. Squared distance: between the group's distribution and the model's, "
            "corrected for the number of votes (it may fall below 0 by chance). Intervals are for other people and "
            "other items."
        ),
    )


def group_dots(scored: PeopleEvaluation) -> Section:
    """The squared distance between a system and each group's distribution, as dots with intervals."""
    rows: list[Record] = []
    for found in scored.by_group:
        for each in found.groups:
            if each.distance is None or each.distance.low is None:
                continue
            rows.append(
                {
                    "place": len(rows),
                    "group": _cut(f"{found.attribute}: {each.name}", 36),
                    "attribute": _cut(found.attribute, 24),
                    "distance": each.distance.value,
                    "low": each.distance.low,
                    "high": each.distance.high,
                }
            )
    kinds = list(dict.fromkeys(row["attribute"] for row in rows))
    base = alt.Chart(alt.NamedData(name="group-distance")).encode(
        y=alt.Y("place:O", title=None)
        .axis(labelExpr="data('group-distance')[datum.value].group", ticks=False, domain=False)
        .sort("ascending"),
        color=alt.Color("attribute:N")
        .scale(domain=kinds, range=[PALETTE[n % 6] for n in range(len(kinds))])
        .legend(None),
    )
    at = alt.X("low:Q", title="squared distance to the group's distribution, corrected for votes ↓").axis(grid=False)
    tip = [
        alt.Tooltip("group:N", title="group"),
        *(
            alt.Tooltip(f"{name}:Q", title=title, format=".3f")
            for name, title in (("distance", "distance"), ("low", "from"), ("high", "to"))
        ),
    ]
    chart = alt.layer(
        base.mark_rule(strokeWidth=2).encode(x=at, x2=alt.X2("high:Q")),
        base.mark_point(filled=True, size=60, opacity=1).encode(x=alt.X("distance:Q"), tooltip=tip),
    )
    tests = ", ".join(
        f"{each.attribute} p {shown_p(each.p_distance)}" for each in scored.by_group if each.p_distance is not None
    )
    figure = Figure(
        slug="group-distance",
        title=f"Whose distribution does {clipped(scored.system, 60)} resemble?",
        spec=spec_of(chart, height=22 * max(len(rows), 1)),
        data="group-distance",
        about="Squared distance between the model and each group of annotators, with its interval: "
        + "; ".join(f"{row['group']} {row['distance']:.3f}" for row in rows),
    )
    note = "Dot and line: squared distance and its 95 % interval for other people and other items."
    if tests:
        note += f" Are the distances of an attribute's groups alike? By dealing people out at random: {tests}."
    return Section(figures=(figure,), data={"group-distance": rows}, note=note)


def draw_groups(scored: PeopleEvaluation, path: Path) -> None:
    """Write the distances by group as a file, by its ending: .svg, .png, .pdf, or .json (Vega-Lite)."""
    write_figure(group_dots(scored), path)


def _parted(subject: Subject, groups: Groups, *, seed: Seed) -> list[Card]:
    """The evaluated items on which the groups of an attribute part, with what each group said."""
    from dissensus.arrays import places_of

    assert subject.votes is not None
    place = places_of(subject.people.items, subject.votes.items)
    known = np.flatnonzero(place >= 0)
    votes = subject.votes.take_items(place[known])
    member = np.where(groups.shown[groups.group], groups.group, -1)
    found = parted_items(votes, member, groups=len(groups.names), least=groups.least, seed=seed)
    colours = class_colours(len(votes.classes), ordered=votes.ordered)
    items = known[found.items]
    cards = []
    for n, (item, picture) in enumerate(zip(items.tolist(), subject.picture(items), strict=True)):
        bars = []
        for k in np.flatnonzero(groups.shown & (found.votes[n] > 0)).tolist():
            shares = bar(found.shares[n, k], votes.classes, colours)
            bars.append((f"{_cut(groups.names[k], 24)} ({int(found.votes[n, k])})", shares))
        remark = f"groups of {groups.attribute}, with their numbers of votes"
        cards.append(Card(text=str(subject.texts[item]), image=picture, remark=remark, bars=tuple(bars)))
    return cards


def _cut(name: str, longest: int) -> str:
    """A name that fits beside a chart."""
    return name if len(name) <= longest else f"{name[: longest - 1]}…"
