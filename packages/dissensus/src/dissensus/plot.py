"""Figures of a notebook, as Altair charts: from arrays, or from what the rest of the package returns.

Each is the figure that the report shows, so that a notebook and a page tell the same.

Examples:
    >>> import numpy as np
    >>> import dissensus as dis
    >>> from dissensus.planning import plan
    >>> truth = np.random.default_rng(0).dirichlet([1, 1, 1], 20)
    >>> votes = dis.simulate_votes(truth, 5, annotators=9, seed=0)
    >>> labels = dis.label(votes)
    >>> unsure = np.full((20, 3), 1 / 3)
    >>> systems = {"unsure": unsure, "halfway": (unsure + labels.probabilities) / 2}
    >>> dynamics = np.random.default_rng(1).dirichlet([1, 1, 1], (2, 4, 20))  # seeds, epochs, items
    >>> charts = [
    ...     dis.plot.entropy(labels, systems, classes=labels.classes),
    ...     dis.plot.reliability(labels.probabilities, unsure),
    ...     dis.plot.disagreement(labels),
    ...     dis.plot.contested(labels, systems, classes=labels.classes, most=3),
    ...     dis.plot.people_ruler(dis.evaluate(labels, systems, classes=labels.classes, resamples=10)),
    ...     dis.plot.data_map(dynamics, labels, epochs=4),
    ...     dis.plot.plan(plan(votes, budget=200)),
    ... ]
    >>> {type(chart).__module__.split(".")[0] for chart in charts}
    {'altair'}
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np

from dissensus.dynamics import DataMap
from dissensus.dynamics import data_map as map_of
from dissensus.errors import InputError
from dissensus.evaluation.arguments import people_in, systems_in
from dissensus.evaluation.evaluating import Evaluation, evaluate
from dissensus.planning.figure import plan_figure
from dissensus.planning.planned import Plan
from dissensus.report import figures, gains
from dissensus.report.dots import dots
from dissensus.report.drawing import standalone
from dissensus.report.items import class_colours, clipped
from dissensus.report.items import contested as most_contested
from dissensus.report.subject import files_subject

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.labels.distribution import LabelDistribution
    from dissensus.report.figures import Section
    from dissensus.report.subject import Subject

__all__ = ["contested", "data_map", "disagreement", "entropy", "people_ruler", "plan", "reliability"]


def __dir__() -> list[str]:
    # What is imported here is nothing that a notebook should offer for completion.
    return __all__


def entropy(human: LabelDistribution | Any, model: Any, *, classes: Sequence[str] | None = None) -> alt.TopLevelMixin:
    """How unsure a model is of each item beside how unsure people are; below the line it is surer than they are.

    Args:
        human: label distributions, or (items, classes) probabilities.
        model: (items, classes) or (seeds, items, classes) probabilities, `Predictions`, or several systems by name.
        classes: the names of the model's classes in order, where `human` has names.
    """
    return _charts(figures.entropies(_subject(human, model, classes)))


def reliability(
    human: LabelDistribution | Any, model: Any, *, classes: Sequence[str] | None = None
) -> alt.TopLevelMixin:
    """How many people chose what the model is sure of, by how sure it is; the arguments are those of `entropy`."""
    return _charts(figures.calibration(_subject(human, model, classes)))


def disagreement(
    human: LabelDistribution | Any, model: Any | None = None, *, classes: Sequence[str] | None = None
) -> alt.TopLevelMixin:
    """Which two classes people say of one item, in % of pairs of people; of models, of pairs of votes drawn from them.

    The arguments are those of `entropy`; without a model, people are shown alone.
    """
    people, _ = people_in(human)
    if model is None:
        # People stand first in that section; the model behind them, here people again, is not drawn.
        return _charts(gains.disagreement(_subject(people, people.probabilities, people.classes)), most=1)
    return _charts(gains.disagreement(_subject(human, model, classes)))


def people_ruler(evaluation: Evaluation) -> alt.TopLevelMixin:
    """Every system's score with its interval, under the scores that 0, 1, 2, ... people's votes would get."""
    if not isinstance(evaluation, Evaluation):
        raise InputError("people_ruler: give what dis.evaluate returned")
    return _charts(dots(evaluation))


def plan(result: Plan) -> alt.TopLevelMixin:
    """The power to find a significant difference, by votes per item at one cost, or the cost of a power of 80 %."""
    if not isinstance(result, Plan):
        raise InputError("plan: give what dissensus.planning.plan returned")
    return alt.LayerChart.from_dict(standalone(*plan_figure(result)), validate=False)


def contested(
    human: LabelDistribution | Any,
    model: Any | None = None,
    *,
    classes: Sequence[str] | None = None,
    texts: Sequence[str] | None = None,
    most: int = 6,
) -> alt.TopLevelMixin:
    """The items that divide people most, as bars: what people said, and what models say.

    Args:
        human: label distributions, or (items, classes) probabilities.
        model: as for `entropy`; None shows people alone.
        classes: the names of the model's classes in order, where `human` has names.
        texts: what to call each item; None takes its name.
        most: items.
    """
    people, _ = people_in(human)
    if texts is not None and len(texts) != len(people):
        raise InputError(f"contested: {len(texts):,} texts for {len(people):,} items; give one for each")
    speakers = {"people": people.probabilities}
    if model is not None:
        subject = _subject(people, model, classes)
        people, speakers = subject.people, {"people": subject.people.probabilities}
        speakers |= {name: subject.mean(name) for name in subject.systems}
    chosen = most_contested(people, most=most)
    if not chosen.size:
        raise InputError("contested: people are of one mind on every item; there is nothing to show")
    names = people.items if texts is None else texts
    rows = [
        {"place": n, "item": clipped(str(names[i]), 60), "who": who, "class": people.classes[k], "k": k, "share": share}
        for n, i in enumerate(chosen.tolist())
        for who, table in speakers.items()
        for k, share in enumerate(np.asarray(table[i], dtype=np.float64).tolist())
    ]
    colours = class_colours(len(people.classes), ordered=False)
    bars: Any = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_bar()
        .encode(
            x=alt.X("share:Q", title="probability").scale(domain=[0, 1]),
            y=alt.Y("who:N", title=None).sort(list(speakers)),
            color=alt.Color("class:N", title=None).scale(domain=list(people.classes), range=colours),
            order="k:Q",
            tooltip=["who:N", "class:N", alt.Tooltip("share:Q", format=".2f")],
        )
        .properties(width=360, height=22 * len(speakers))
    )
    faceted: alt.FacetChart = bars.facet(
        row=alt.Row("item:N", title=None).sort(field="place").header(labelAngle=0, labelAlign="left")
    )
    return faceted


def data_map(
    dynamics: DataMap | Any, human: LabelDistribution | Any | None = None, *, epochs: int | slice = 5
) -> alt.TopLevelMixin:
    """How sure, and how steadily, a model came to the label of each item (Swayamdipta et al. 2020).

    Args:
        dynamics: a `DataMap`; or (seeds, epochs, items, classes) probabilities after each epoch, or those of one run.
        human: what people said of these items; needed with probabilities.
        epochs: how many last epochs of each run, or a slice of its epochs, of probabilities.
    """
    if not isinstance(dynamics, DataMap):
        if human is None:
            raise InputError("data_map: give what people said of these items, or a DataMap of dissensus.dynamics")
        dynamics = map_of(dynamics, human, epochs=epochs)
    columns = (dynamics.items, dynamics.variability, dynamics.confidence, dynamics.correctness)
    rows = [
        {"item": str(item), "variability": x, "confidence": y, "correctness": right}
        for item, x, y, right in zip(*(column.tolist() for column in columns), strict=True)
    ]
    points: alt.Chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_circle(size=24, opacity=0.65)
        .encode(
            x=alt.X("variability:Q", title="variability"),
            y=alt.Y("confidence:Q", title="confidence").scale(domain=[0, 1]),
            color=alt.Color("correctness:Q", title="correctness").scale(domain=[0, 1], scheme="viridis"),
            tooltip=["item:N", *(alt.Tooltip(f"{name}:Q", format=".2f") for name in ("confidence", "variability"))],
        )
        .properties(width=360, height=300)
    )
    return points


def _subject(human: LabelDistribution | Any, model: Any, classes: Sequence[str] | None) -> Subject:
    """People and models as a page has them, evaluated without intervals."""
    people, _ = people_in(human)
    people, systems, _ = systems_in(model, people, classes=classes)
    evaluation = evaluate(people, systems, baselines=False, resamples=0)
    return files_subject(evaluation, people, systems, votes=None, title="")


def _charts(section: Section, *, most: int | None = None) -> alt.TopLevelMixin:
    """The figures of a section side by side, each with its title and its data."""
    specs = [
        {**standalone(figure, section.data[figure.data]), "title": figure.title} for figure in section.figures[:most]
    ]
    if len(specs) == 1:
        kinds: dict[str, Any] = {"hconcat": alt.HConcatChart, "layer": alt.LayerChart}
        kind = next((chart for key, chart in kinds.items() if key in specs[0]), alt.Chart)
        return kind.from_dict(specs[0], validate=False)
    data = {name: rows for spec in specs for name, rows in spec["datasets"].items()}
    beside = [
        {key: value for key, value in spec.items() if key not in ("$schema", "config", "datasets")} for spec in specs
    ]
    whole: dict[str, Any] = {key: value for key, value in specs[0].items() if key in ("$schema", "config")}
    return alt.HConcatChart.from_dict({**whole, "datasets": data, "hconcat": beside}, validate=False)
