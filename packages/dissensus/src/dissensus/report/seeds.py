"""What the seeds of a model tell of its uncertainty, beside people: a table, and two figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt

from dissensus.evaluation.finite_panel.seeds import course_of_seeds
from dissensus.evaluation.scoring import panel_or_reason
from dissensus.report.figures import Figure, Section, diagonal, named_colours, spec_of
from dissensus.report.tables import Cell, Table, TableRow

if TYPE_CHECKING:
    from dissensus.report.figures import Record
    from dissensus.report.subject import Subject

NOTE = (
    "Seeds are an ensemble. What they disagree about (mutual information) should be what the model gets wrong; what "
    "each of them is unsure of (expected entropy) should be what people do not agree on. “Explained by seeds”: the "
    "error that seeds which differ by chance alone would leave their mean, as a part of its error; near 0 they err "
    "together. Errors and people's entropy are corrected for few votes."
)


def seeds(subject: Subject) -> tuple[Section, Table] | None:
    """Does a model know what it does not know, and what people do not agree on? None where no model has two seeds."""
    header, lines = subject.evaluation.seeds_grid()
    panel, _ = panel_or_reason(subject.people, subject.votes)
    if not lines or panel is None:
        return None
    error: list[Record] = []
    people: list[Record] = []
    shown = [name for name in subject.shown if len(subject.systems[name]) > 1]
    for name in shown:
        course = course_of_seeds(panel, subject.systems[name].astype(float))
        if course is None:
            continue
        error += [{"method": name, "at": x, "value": y} for x, y in zip(course.information, course.error, strict=True)]
        if course.entropy_of_people is not None:
            pairs = zip(course.expected_entropy, course.entropy_of_people, strict=True)
            people += [{"method": name, "at": x, "value": y} for x, y in pairs]
    titles = {
        "seeds-error": (error, "What it does not know", "mutual information of its seeds, nats", "squared error"),
        "seeds-people": (
            people,
            "What people do not agree on",
            "expected entropy of a seed, nats",
            "entropy of people",
        ),
    }
    figures, data = [], {}
    for slug, (rows, title, across, up) in titles.items():
        if not rows:
            continue
        base = alt.Chart(alt.NamedData(name=slug)).encode(
            x=alt.X("at:Q", title=across).axis(format="~g"),
            y=alt.Y("value:Q", title=up).axis(format="~g"),
            color=named_colours(shown),
        )
        layers = [base.mark_line(strokeWidth=2), base.mark_point(filled=True, opacity=1, size=40)]
        if slug == "seeds-people":
            layers.append(diagonal(max(row[end] for row in rows for end in ("at", "value"))))
        data[slug] = rows
        figures.append(
            Figure(
                slug=slug, title=title, spec=spec_of(alt.layer(*layers)), data=slug, about=f"{title}: {up} by {across}"
            )
        )
    note = (
        "Items in five groups of equal size, from those that seeds agree on most, or are surest of, to the least. "
        "Left: a line that rises knows what it does not know. "
        "Right: on the dashed line a seed is as unsure as people are."
    )
    table = Table(
        slug="seeds",
        title="What the seeds tell",
        header=("method", *header[1:]),
        rows=tuple(TableRow(name=name, cells=tuple(map(Cell, cells))) for name, *cells in lines),
        records=tuple(
            {"system": name} | {key: value for key, value in found.to_dict().items() if not isinstance(value, dict)}
            for name, found in subject.evaluation.of_seeds.items()
        ),
        note=NOTE,
    )
    return Section(figures=tuple(figures), data=data, note=note), table
