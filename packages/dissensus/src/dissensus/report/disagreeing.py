"""Who disagrees with whom: annotators by what they answer, groups of them, and items on which groups part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import altair as alt
import numpy as np

from dissensus.arrays import places_of
from dissensus.evaluation.comparison.differences import shown_p
from dissensus.evaluation.comparison.verdict import listed
from dissensus.evaluation.people.evaluating import evaluate_people, item_predictions
from dissensus.evaluation.people.map import LEVEL, PeopleMap, parted_items, people_map
from dissensus.report.figures import Section, dashed, intervals, one_figure, row_names
from dissensus.report.items import PALETTE, Card, bar, class_colours, clipped
from dissensus.report.tables import Cell, Table, TableRow, capital, ends, estimated, table_of
from dissensus.votes.privacy import groups_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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
        sentences: what the map and the tests say.
        map: annotators by what they answer; None where that does not differ significantly from chance.
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

    None where annotators are unknown, where judgements hold several classes, and where no vote is on an evaluated item.
    """
    votes, best = subject.votes, subject.evaluation.closest()
    if votes is None or votes.annotators is None or votes.judgement is not None:
        return None
    predicted = item_predictions(votes, subject.people.items, subject.mean(best))
    if not len(predicted):
        return None
    least = subject.least_people
    groups = {name: groups_of(votes, name, least=least) for name in votes.annotator_attributes}
    chosen = {name: some for name, some in groups.items() if some.shown.sum() > 1 and len(some.names) <= MOST_GROUPS}
    scored = evaluate_people(
        votes, {best: predicted}, attributes=list(chosen), least=least, only_common=True, seed=seed
    )
    placed = people_map(votes, seed=seed)
    p_votes = {scores.attribute: scores.p_votes for scores in scored.by_group}
    apart = {name: p for name, p in p_votes.items() if p is not None and p <= LEVEL}
    sentences = [*_of_map(placed, votes), *_of_groups(scored.by_group)]
    sentences += [f"{capital(sentence)}." for some in chosen.values() for sentence in some.told]
    if left := [name for name in groups if name not in chosen]:
        sentences.append(
            f"Not shown by group: {', '.join(left)}, which have more than {MOST_GROUPS} values, or fewer than two with "
            f"{least} people."
        )
    surest = chosen[min(apart, key=lambda name: apart[name])] if apart else None
    parted = ((name, _parted(subject, chosen[name], seed=seed)) for name in apart)
    mapped, grouped = bool(placed.place.shape[1]), any(scores.groups for scores in scored.by_group)
    return WhoDisagrees(
        sentences=tuple(sentences),
        map=_map(placed, votes, surest) if mapped else None,
        groups=group_dots(scored) if grouped else None,
        tables=(*([_people_table(placed, votes)] if mapped else []), *([_group_table(scored)] if grouped else [])),
        parted=tuple((name, cards) for name, cards in parted if cards),
    )


def _of_map(placed: PeopleMap, votes: Votes) -> list[str]:
    left = [f"On the map {sentence}." for sentence in placed.left_out]
    if placed.reason:
        return [*left, f"No map of annotators: {placed.reason}."]
    p = shown_p(placed.p_values[0]) if placed.p_values[0] > 0.01 else "≤ 0.01"
    if not placed.place.shape[1]:
        nobody = (
            "Beyond what the items make everybody answer, no annotators are seen to answer more like each other than "
            f"votes dealt out at random do (p {p}): there is no map to draw."
        )
        return [*left, nobody]
    clear = int(((placed.low[:, 0] > 0) | (placed.high[:, 0] < 0)).sum())
    some = (
        f"Annotators differ in what they answer beyond what the items make everybody answer (p {p}, against votes "
        f"dealt out at random): {clear:,} of {len(placed.people):,} lie surely to one side of the middle."
    )
    return [some, *_axes(placed, votes), *left]


def _axes(placed: PeopleMap, votes: Votes) -> list[str]:
    """What lying to the right, or at the top, goes with."""
    sentences = []
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
        sentences.append(
            f"Those at the {side} choose {' and '.join(parts)} than others do on the same items."
            if parts
            else f"Lying at the {side} goes with no class in particular: people there agree item by item."
        )
    return sentences


def _of_groups(scored: Sequence[GroupScores]) -> list[str]:
    """For each attribute, whether its groups differ in what they say."""
    tested = [(scores.p_votes, scores.attribute) for scores in scored if scores.p_votes is not None]
    differing = [f"{name} (p {shown_p(p)})" for p, name in tested if p <= LEVEL]
    same = [f"{name} (p {shown_p(p)})" for p, name in tested if p > LEVEL]
    sentences = []
    if differing:
        sentences.append(f"Groups that differ in what they say of the same items: by {listed(differing)}.")
    if same:
        sentences.append(f"No significant difference: by {listed(same)}.")
    if len(scored) > 1 and differing:
        sentences.append(
            f"Of {len(scored)} attributes tested, {LEVEL * len(scored):.1g} would be expected to look so by chance "
            "alone; people, not votes, were dealt out to groups at random."
        )
    return sentences


def _map(placed: PeopleMap, votes: Votes, groups: Groups | None) -> Section:
    """People as points with intervals: on two axes, or where only one counts, in order along it."""
    assert votes.annotators is not None
    flat = placed.place.shape[1] == 1
    order = np.argsort(placed.place[:, 0], kind="stable") if flat else np.arange(len(placed.people))
    rows: list[Record] = [
        {
            "who": _cut(str(votes.annotators.names[placed.people[k]]), 24),
            "kind": _kind(placed, k, groups),
            **_axis(placed, k, 0, "x", "x_low", "x_high"),
            **({"y": rank} if flat else _axis(placed, k, 1, "y", "y_low", "y_high")),
        }
        for rank, k in enumerate(order.tolist())
    ]
    kinds = sorted(dict.fromkeys(row["kind"] for row in rows), key=lambda name: name in (OTHERS, _UNCLEAR))
    colours = [PALETTE[6] if name in (OTHERS, _UNCLEAR) else PALETTE[n % 6] for n, name in enumerate(kinds)]
    legend = alt.Legend(orient="bottom", columns=2, columnPadding=36, symbolOpacity=1)
    colour = alt.Color("kind:N", title=None if groups is None else groups.attribute, legend=legend)
    base = alt.Chart(alt.NamedData(name="people-map")).encode(color=colour.scale(domain=kinds, range=colours))
    lines = base.mark_rule(strokeWidth=1.5 if flat else 1, opacity=0.7 if len(rows) <= NAMED else 0.16)
    across = alt.X("x_low:Q", title="those who answer alike on the same items lie together").axis(grid=False)
    if flat:
        unnamed = alt.Y("y:O", title=None).axis(ticks=False, domain=False, labels=False).sort("ascending")
        y = row_names("people-map", "who", "y") if len(rows) <= NAMED else unnamed
        layers = [dashed(x=0), lines.encode(x=across, x2=alt.X2("x_high:Q"), y=y)]
    else:
        y = alt.Y("y:Q")
        up = alt.Y("y_low:Q", title="second dimension").axis(grid=False)
        layers = [
            dashed(x=0),
            dashed(y=0),
            lines.encode(x=across, x2=alt.X2("x_high:Q"), y=y),
            lines.encode(x=alt.X("x:Q"), y=up, y2=alt.Y2("y_high:Q")),
        ]
    points = base.mark_point(filled=True, size=36, opacity=0.9).encode(x=alt.X("x:Q"), y=y)
    return one_figure(
        "people-map",
        f"{len(rows):,} annotators by what they answer",
        alt.layer(*layers, points),
        rows,
        height=max(min(20 * len(rows), 520) if flat else 420, 120),
        about=f"Map of {len(rows):,} annotators: those who answer alike on the same items lie together",
        note="Each point is an annotator, with a 95 % interval over items; the dashed line is the middle of the panel. "
        "Distances say who answers alike on the same items, free of how hard the items are.",
    )


_UNCLEAR: Final = "not significantly off the middle"


def _kind(placed: PeopleMap, k: int, groups: Groups | None) -> str:
    if groups is None:
        return "surely to one side" if placed.low[k, 0] > 0 or placed.high[k, 0] < 0 else _UNCLEAR
    member = int(groups.group[placed.people[k]])
    return _cut(groups.names[member], 32) if groups.shown[member] else OTHERS


def _axis(placed: PeopleMap, k: int, axis: int, *names: str) -> Record:
    """Where a person lies on an axis, and the ends of the interval, by these names."""
    return {name: float(at[k, axis]) for name, at in zip(names, (placed.place, placed.low, placed.high), strict=True)}


def _people_table(placed: PeopleMap, votes: Votes) -> Table:
    assert votes.annotators is not None
    axes = ("first dimension", "second dimension")[: placed.place.shape[1]]
    records: list[Record] = []
    for k in np.argsort(-np.abs(placed.place[:, 0]), kind="stable").tolist():
        name = str(votes.annotators.names[placed.people[k]])
        record: Record = {"annotator": name, "votes": int(placed.votes[k])}
        for axis, of in enumerate(axes):
            record |= _axis(placed, k, axis, of, f"{of} low", f"{of} high")
        records.append(record | {f"lean to {label}": float(placed.lean[k, c]) for c, label in enumerate(votes.classes)})

    def along(of: str) -> Callable[[Mapping[str, Any]], Cell]:
        return lambda row: Cell(f"{row[of]:+.2f}", f"{row[f'{of} low']:+.2f} to {row[f'{of} high']:+.2f}")

    left = len(records) - LISTED
    return table_of(
        "people-map",
        "Annotators on the map",
        records,
        {
            "annotator": lambda row: row["annotator"],
            "votes that count": lambda row: f"{row['votes']:,}",
            **{of: along(of) for of in axes},
        },
        most=LISTED,
        note="Those furthest from the middle first." + (f" {left:,} more are in the CSV file." if left > 0 else ""),
    )


def _group_table(scored: PeopleEvaluation) -> Table:
    rows, records = [], []
    for scores in scored.by_group:
        tests = {name: getattr(scores, name) for name in ("p_votes", "p_scores", "p_distance")}
        for group in scores.groups:
            score = group.scores[scored.headline]
            cells = (
                Cell(f"{group.people:,}", f"{group.votes:,} votes"),
                estimated(score, "soft_nll"),
                estimated(group.disadvantage, "soft_nll"),
                Cell("–") if group.distance is None else estimated(group.distance, "brier"),
            )
            rows.append(TableRow(name=f"{scores.attribute}: {group.name}", cells=cells))
            record: Record = {"attribute": scores.attribute, "group": group.name}
            record |= {"people": group.people, "votes": group.votes}
            for name, value in (("nll", score), ("disadvantage", group.disadvantage), ("distance", group.distance)):
                record |= ends(value, name, f"{name}_low", f"{name}_high")
            records.append(record | tests)
    return Table(
        slug="groups",
        title=f"Groups of annotators and {scored.system}",
        header=("group", "people", "NLL per vote ↓", "disadvantage on the same items", "squared distance ↓"),
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
    distances = [
        (scores.attribute, group.name, group.distance)
        for scores in scored.by_group
        for group in scores.groups
        if group.distance is not None and group.distance.low is not None
    ]
    rows: list[Record] = [
        {"place": place, "group": _cut(f"{attribute}: {name}", 36), "attribute": _cut(attribute, 24)}
        | ends(distance, "distance", "low", "high")
        for place, (attribute, name, distance) in enumerate(distances)
    ]
    kinds = list(dict.fromkeys(row["attribute"] for row in rows))
    base = alt.Chart(alt.NamedData(name="group-distance")).encode(
        y=row_names("group-distance", "group"),
        color=alt.Color("attribute:N")
        .scale(domain=kinds, range=[PALETTE[n % 6] for n in range(len(kinds))])
        .legend(None),
    )
    at = alt.X("low:Q", title="squared distance to the group's distribution, corrected for votes ↓").axis(grid=False)
    tests = ", ".join(
        f"{scores.attribute} p {shown_p(scores.p_distance)}"
        for scores in scored.by_group
        if scores.p_distance is not None
    )
    note = "Dot and line: squared distance and its 95 % interval for other people and other items."
    note += "".join(f" {capital(scores.apart)}." for scores in scored.by_group if scores.apart)
    if tests:
        note += f" Are the distances of an attribute's groups alike? By dealing people out at random: {tests}."
    return one_figure(
        "group-distance",
        f"Whose distribution does {clipped(scored.system, 60)} resemble?",
        alt.layer(*intervals(base, "distance", at)),
        rows,
        height=22 * max(len(rows), 1),
        about="Squared distance between the model and each group of annotators, with its interval: "
        + "; ".join(f"{row['group']} {row['distance']:.3f}" for row in rows),
        note=note,
    )


def _parted(subject: Subject, groups: Groups, *, seed: Seed) -> list[Card]:
    """The evaluated items on which the groups of an attribute part, with what each group said."""
    assert subject.votes is not None
    place = places_of(subject.people.items, subject.votes.items)
    known = np.flatnonzero(place >= 0)
    votes = subject.votes.take_items(place[known])
    member = np.where(groups.shown[groups.group], groups.group, -1)
    parted = parted_items(votes, member, groups=len(groups.names), least=groups.least, seed=seed)
    colours = class_colours(len(votes.classes), ordered=votes.ordered)
    items = known[parted.items]
    cards = []
    for n, (item, picture) in enumerate(zip(items.tolist(), subject.picture(items), strict=True)):
        bars = []
        for k in np.flatnonzero(groups.shown & (parted.votes[n] > 0)).tolist():
            shares = bar(parted.shares[n, k], votes.classes, colours)
            bars.append((f"{_cut(groups.names[k], 24)} ({int(parted.votes[n, k])})", shares))
        remark = f"groups of {groups.attribute}, with their numbers of votes"
        cards.append(Card(text=str(subject.texts[item]), image=picture, remark=remark, bars=tuple(bars)))
    return cards


def _cut(name: str, longest: int) -> str:
    """A name that fits beside a chart."""
    return name if len(name) <= longest else f"{name[: longest - 1]}…"
