"""Where a method helps and where it hurts: by human entropy, by class, and class by class."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

import altair as alt
import numpy as np

from dissensus.evaluation.comparison.differences import BETTER, WORSE, differences
from dissensus.evaluation.comparison.intervals import estimate_over_seeds
from dissensus.evaluation.comparison.strata import by_agreement, by_class, by_entropy, rows_of
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.evaluation.scoring import BY_HALVES, BY_THE_SAME, resample_systems
from dissensus.report.figures import SHADES, Figure, Section, dashed, intervals, named_colours, spec_of
from dissensus.report.items import clipped, distinct, short_names
from dissensus.report.tables import Cell, Table, TableRow, capital, difference_cell, ends, interval_cell, table_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dissensus.arrays import Table as Matrix
    from dissensus.evaluation.comparison.differences import Difference
    from dissensus.evaluation.comparison.strata import ScoredRows
    from dissensus.labels.distribution import LabelDistribution
    from dissensus.report.figures import Record
    from dissensus.report.subject import Subject

LEAST: Final = 5
"""Items of a stratum below which nothing is said of it."""

MOST: Final = 20
"""Classes that are drawn, those with the most items."""

MATRIX: Final = 12
"""Classes of a matrix, those that people disagree on most."""

ROW: Final = 30
"""Height of a stratum, in pixels."""


def strata_of(subject: Subject) -> dict[tuple[str, str], ScoredRows]:
    """By idea and stratum, what it is scored on; strata of few items are left out."""
    people, halves = subject.people, subject.evaluation.compared.halves
    ideas = {"agreement": by_agreement(people), "human entropy": by_entropy(people), "class": by_class(people)}
    scored: dict[tuple[str, str], ScoredRows] = {}
    for idea, strata in ideas.items():
        rows = {stratum.name: rows_of(stratum, people, halves) for stratum in strata[1:]}
        for name in sorted(rows, key=lambda name: -rows[name].items)[MOST:]:
            del rows[name]
        for name, of_stratum in rows.items():
            if of_stratum.items >= LEAST:
                scored[idea, name.removeprefix("entropy ") if idea == "human entropy" else name] = of_stratum
    return scored


def _resampled(subject: Subject, rows: ScoredRows, *, resamples: int, seed: int) -> dict[str, Matrix]:
    """By system, (1 + resamples, seeds) values of `Subject.measured` on a stratum."""
    systems = {name: subject.predictions(name) for name in subject.systems}
    metric = METRICS[subject.measured]
    return resample_systems(rows, systems, [metric], original=None, resamples=resamples, seed=seed)[metric.name]


def differences_by_stratum(
    subject: Subject, *, resamples: int = 1000, seed: int = 0
) -> dict[tuple[str, str], list[Difference]]:
    """By idea and stratum, every system minus its reference in the metric `Subject.measured`."""
    compared: dict[tuple[str, str], list[Difference]] = {}
    if all(len(names) == 1 for names in subject.models.values()):
        return compared
    for key, rows in strata_of(subject).items():
        values = _resampled(subject, rows, resamples=resamples, seed=seed)
        compared[key] = [
            row
            for model, names in subject.models.items()
            for row in differences(
                values,
                subject.references[model],
                seeds=subject.evaluation.compared.seeds,
                items=rows.items,
                metric=subject.measured,
                only=names,
                stratum=key[1],
            )
        ]
    return compared


def gains(subject: Subject, compared: Mapping[tuple[str, str], list[Difference]]) -> tuple[Section, Table] | None:
    """Dots with intervals and a table of the differences in each stratum; None where nothing is compared."""
    if not any(compared.values()):
        return None
    metric = METRICS[subject.measured]
    sizes = {key: rows.items for key, rows in strata_of(subject).items()}
    figures, data = [], {}
    for idea in ("human entropy", "class"):
        strata = {stratum: rows for (of, stratum), rows in compared.items() if of == idea}
        for number, (model, names) in enumerate(subject.models.items()):
            slug = f"gains-{idea.split()[-1]}-{number}"
            methods = [subject.method(name) for name in names if name in subject.shown and subject.reference_of(name)]
            called = distinct([f"{clipped(stratum, 30)} ({sizes[idea, stratum]:,})" for stratum in strata])
            rows = [
                {"place": place, "stratum": called[place]}
                | {"method": subject.method(row.system), **ends(row.value, "difference", "low", "high")}
                for place, of_stratum in enumerate(strata.values())
                for row in of_stratum
                if row.system in names and row.system in subject.shown and row.value.low is not None
            ]
            if not rows:
                continue
            data[slug] = rows
            reference = subject.method(subject.references[model])
            title = f"By {idea}, minus {reference}" + (f", {model}" if len(subject.models) > 1 else "")
            about = f"{metric.short} of each method minus that of {reference}, by {idea}, with 95 % intervals"
            # Titles of axes become part of expressions: the reference's name stands in the caption.
            spec = _dots(slug, methods, f"{metric.short} minus that of the reference", len(strata))
            figures.append(Figure(slug=slug, title=title, spec=spec, data=slug, about=about))
    note = (
        f"{capital(metric.short)} of each method minus that of the reference, with its 95 % interval over items and "
        "seeds: left of 0 the method is closer to people, right of 0 it is further. In brackets: items. A class is "
        f"that of the majority of people. {_how_chosen(subject)}"
    )
    return Section(figures=tuple(figures), data=data, note=note), _table(subject, compared, sizes)


def _dots(slug: str, methods: list[str], title: str, strata: int) -> dict[str, Any]:
    base = alt.Chart(alt.NamedData(name=slug)).encode(
        y=alt.Y("stratum:N", title=None).axis(ticks=False, domain=False).sort(field="place"),
        yOffset=alt.YOffset("method:N").scale(domain=methods),
        color=named_colours(methods),
    )
    layers = alt.layer(dashed(x=0), *intervals(base, "difference", alt.X("low:Q", title=title), size=45))
    return spec_of(layers, height=max(ROW, 9 * len(methods)) * max(strata, 2))


def _table(
    subject: Subject, compared: Mapping[tuple[str, str], list[Difference]], sizes: Mapping[tuple[str, str], int]
) -> Table:
    metric = METRICS[subject.measured]
    systems = [name for name in subject.systems if subject.reference_of(name)]
    rows = []
    for (idea, stratum), differences_there in compared.items():
        by_system = {row.system: row for row in differences_there}
        cells = (difference_cell(by_system[name]) for name in systems)
        rows.append(TableRow(name=f"{idea}: {stratum}", cells=(Cell(f"{sizes[idea, stratum]:,}"), *cells)))
    return Table(
        slug="gains",
        title=f"{metric.short} minus that of the reference, by stratum",
        header=("items of", "items", *systems),
        rows=tuple(rows),
        records=tuple(
            {"idea": idea, "stratum": stratum, "items": sizes[idea, stratum], "system": row.system}
            | {"reference": row.reference, "metric": metric.name, **ends(row.value, "difference", "low", "high")}
            for (idea, stratum), differences_there in compared.items()
            for row in differences_there
        ),
        note=f"{BETTER} closer to people than the reference, {WORSE} further: the 95 % interval excludes 0.",
    )


def scores_by_stratum(subject: Subject, system: str, *, resamples: int = 1000, seed: int = 0) -> Table:
    """The metric `Subject.measured` of one system in each stratum, with its interval."""
    metric = METRICS[subject.measured]
    records = []
    for (idea, stratum), scored in strata_of(subject).items():
        values = _resampled(subject, scored, resamples=resamples, seed=seed)[system]
        score = estimate_over_seeds(values, items=scored.items, low=metric.low, high=metric.high)
        records.append(
            {"idea": idea, "stratum": stratum, "items": scored.items, "system": system, "metric": metric.name}
            | ends(score, "score", "low", "high")
        )
    return table_of(
        "gains",
        f"{metric.short} of {system}, by stratum",
        records,
        {
            "items of": lambda record: f"{record['idea']}: {record['stratum']}",
            "items": lambda record: f"{record['items']:,}",
            metric.short: lambda record: interval_cell(record, "score"),
        },
        note=_how_chosen(subject),
    )


def _how_chosen(subject: Subject) -> str:
    """How votes put items into strata, and what follows for a reader."""
    halves = subject.evaluation.compared.halves
    how = f"{capital(BY_THE_SAME)}{halves}" if isinstance(halves, str) else capital(BY_HALVES)
    return f"Quarters of human entropy begin with the items that people agree on most. {how}."


def people_matrix(people: LabelDistribution) -> Matrix:
    """(classes, classes) how often two people who judge the same item say class i and class j, symmetric, sum 1.

    Two different votes of an item with m of them are i and j in (c_i c_j - [i = j] c_i) / (m (m - 1)) of the pairs; the
    mean is over items with two or more votes. Where labels are no shares of votes, their probabilities stand for it.
    """
    counts = people.counts.astype(np.float64)
    size = counts.sum(axis=1)
    shares = np.divide(counts, size[:, None], out=np.zeros_like(counts), where=size[:, None] > 0)
    some = size > 1
    if not some.any() or not np.allclose(shares, people.probabilities):
        return model_matrix(people.probabilities[None])
    weighted = counts[some] / (size[some] * (size[some] - 1))[:, None]
    return np.asarray((weighted.T @ counts[some] - np.diag(weighted.sum(axis=0))) / some.sum())


def model_matrix(runs: Any) -> Matrix:
    """(classes, classes) how often two votes drawn from a run's distribution of the same item are i and j."""
    runs = np.asarray(runs, dtype=np.float64)
    return np.asarray(np.mean([run.T @ run / len(run) for run in runs], axis=0))


def disagreement(subject: Subject) -> Section:
    """Matrices of which two classes people, and models, disagree about, on one colour scale."""
    people = people_matrix(subject.people)
    speakers = {"people": people}
    for model in subject.models:
        for name in dict.fromkeys((subject.references[model], subject.closest(model))):
            if len(speakers) <= 6:
                speakers[name] = model_matrix(subject.systems[name])
    apart = people - np.diag(np.diag(people))
    chosen = np.sort(np.argsort(-apart.sum(axis=1), kind="stable")[:MATRIX])
    classes = short_names([subject.people.classes[k] for k in chosen.tolist()], 18)
    data: dict[str, list[Record]] = {
        f"disagreement-{number}": [
            {"i": i, "j": j, "one": classes[i], "other": classes[j], "share": 200 * matrix[chosen[i], chosen[j]]}
            for i, j in combinations(range(len(classes)), 2)
        ]
        for number, matrix in enumerate(speakers.values())
    }
    largest = max((row["share"] for rows in data.values() for row in rows), default=1.0) or 1.0
    figures = []
    for number, name in enumerate(speakers):
        slug = f"disagreement-{number}"
        chart = (
            alt.Chart(alt.NamedData(name=slug))
            .mark_rect()
            .encode(
                x=alt.X("one:N", title=None).sort(field="i").axis(labelAngle=-40, grid=False),
                y=alt.Y("other:N", title=None).sort(field="j").axis(grid=False),
                color=alt.Color("share:Q", title="% of pairs")
                .scale(domain=[0, largest], range=SHADES)
                .legend(orient="right", gradientLength=120, tickCount=4),
            )
        )
        title = "People" if name == "people" else name
        about = f"Which two classes {name} would say of one item, in % of pairs"
        figures.append(Figure(slug=slug, title=title, spec=spec_of(chart, height=240), data=slug, about=about))
    agree = 100 * float(np.trace(people))
    note = (
        "Two people judge the same item: how often does one say the one class and the other the other, in % of all "
        f"pairs? People agree in {agree:.0f} % of pairs; the rest is here. For a model, two votes are drawn from its "
        "distribution of each item. All matrices have one colour scale."
    )
    if len(chosen) < len(subject.people.classes):
        note += f" The {len(chosen)} classes that people disagree on most, of {len(subject.people.classes)}."
    return Section(figures=tuple(figures), data=data, note=note)
