"""Any model's predictions against what people said: every score with its interval, its floor and its baselines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.errors import InputError
from dissensus.evaluation.baselines import MAJORITY, make_baselines
from dissensus.evaluation.comparison.differences import Alternative, Differences, differences, with_holm
from dissensus.evaluation.comparison.scores import Scores
from dissensus.evaluation.comparison.strata import ALL, Stratum, by_column, make_strata
from dissensus.evaluation.comparison.tables import as_list
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.evaluation.probabilities import checked_human, checked_probabilities
from dissensus.evaluation.scoring import BY_VOTES, Panel, System, empty_rows, panel_of, resample_systems, score_rows
from dissensus.labels.distribution import LabelDistribution

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.arrays import Codes
    from dissensus.evaluation.comparison.scores import Score
    from dissensus.evaluation.metrics.metric import Metric
    from dissensus.evaluation.probabilities import Runs
    from dissensus.evaluation.scoring import Resampled

DEFAULT_METRICS: Final = (
    "kl",
    "soft_nll",
    "tvd",
    "brier",
    "abs_entce",
    "accuracy",
    "entropy_pearson",
    "entropy_spearman",
)
"""What a table shows where no metrics are named; `registry.METRICS` has the others."""

LEGEND: Final = (
    "score: mean over items and seeds, with its 95 % interval over both; corrected: the same against everybody, not "
    "few votes; noise floor: what a perfect model would score against so few votes; human ceiling: what one half of "
    "the people scores against the other (under KL and soft NLL it pays 27.6 nats for a class that it happens to lack)"
)
"""How a table is read."""

MODEL: Final = "model"
"""What a system is called that came without a name."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Evaluation:
    """Systems and baselines against people: `overall`, `by_stratum`, `difference`.

    Attributes:
        items: how many items were evaluated.
        classes: names.
        systems: names of the models, then of the baselines.
        baselines: names of the baselines among them.
        metrics: names.
        overall: the scores on all items.
        strata: for each idea of strata, the scores in each of its strata.
        notes: sentences that belong under every table.
        resamples: behind each interval.
        seed: of everything random.
        resampled: for each idea and stratum, what `difference` is computed from.
    """

    items: int
    classes: tuple[str, ...]
    systems: tuple[str, ...]
    baselines: tuple[str, ...]
    metrics: tuple[str, ...]
    overall: Scores
    strata: Mapping[str, Scores]
    notes: tuple[str, ...]
    resamples: int
    seed: int
    resampled: Mapping[tuple[str, str], Resampled] = field(repr=False)

    def by_stratum(self, by: str = "agreement") -> Scores:
        """The scores in each stratum of an idea, such as agreement; all items first."""
        if by not in self.strata:
            known = ", ".join(self.strata) or "none"
            raise InputError(
                f"evaluation: there are no strata by '{by}' here but by {known}; ask for them in evaluate()"
            )
        return self.strata[by]

    def difference(
        self, reference: str, *, by: str = "agreement", stratum: str = ALL, alternative: Alternative = "two-sided"
    ) -> Differences:
        """Every other system minus the reference, on every metric, over the same items and seeds.

        Args:
            reference: name of a system or baseline.
            by: the idea that the stratum belongs to; does not matter for all items.
            stratum: the items to compare on.
            alternative: what the exact Wilcoxon test over seeds looks for: "less" asks whether a system scores less
                than the reference, which is closer to people only where lower is better.
        """
        if reference not in self.systems:
            raise InputError(f"evaluation: there is no system '{reference}'; choose one of {', '.join(self.systems)}")
        key = (ALL, ALL) if stratum == ALL else (by, stratum)
        if key not in self.resampled:
            known = ", ".join(name for idea, name in self.resampled if idea == by) or "none"
            raise InputError(f"evaluation: no item is in the stratum '{stratum}' by {by}; choose from {known}")
        rows = []
        for metric, values in self.resampled[key].items():
            defined = {name: each for name, each in values.items() if np.isfinite(each[0]).all()}
            if reference in defined:
                rows += differences(
                    defined,
                    reference,
                    metric=metric,
                    stratum=stratum,
                    seed=self.seed,
                    alternative=alternative,
                )
        return with_holm(rows)

    def to_markdown(self) -> str:
        """All tables, and the notes."""
        parts = [f"## All {self.items:,} items", self.overall.to_markdown()]
        for idea, scores in self.strata.items():
            parts += [f"## By {idea}", scores.to_markdown()]
        return "\n\n".join([*parts, as_list(self.notes)]).rstrip() + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Everything that the tables say, ready for JSON."""
        told = ("title", "unit", "better", "reference")
        return {
            "items": self.items,
            "classes": list(self.classes),
            "systems": list(self.systems),
            "baselines": list(self.baselines),
            "metrics": {name: {key: getattr(METRICS[name], key) for key in told} for name in self.metrics},
            "resamples": self.resamples,
            "seed": self.seed,
            "notes": list(self.notes),
            "overall": self.overall.to_dict(),
            "strata": {idea: scores.to_dict() for idea, scores in self.strata.items()},
        }


def evaluate(
    human: LabelDistribution | Any,
    model: Any,
    *,
    metrics: Sequence[str] | None = None,
    strata: str | Sequence[str] | Mapping[str, Any] = "agreement",
    baselines: bool = True,
    majority: Any | None = None,
    training: Any | None = None,
    validation: tuple[Any, Any] | None = None,
    original: Any | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> Evaluation:
    """Score predictions against people.

    Args:
        human: label distributions, or (items, classes) probabilities; only the former know how many votes there were,
            and so have noise floors, corrected estimates and ceilings.
        model: (items, classes) probabilities, or (seeds, items, classes); or several systems by name.
        metrics: names from `registry.METRICS`; None takes `DEFAULT_METRICS`, and Wasserstein's distance where the
            classes are ordered, and the accuracy against original labels where these are given.
        strata: ideas of strata: agreement, entropy, class; or by name, a column with one value an item, or strata made
            by a function of `dissensus.evaluation.comparison.strata`.
        baselines: whether tables carry the baselines.
        majority: probabilities of a model trained on majority labels, or the name of a system, for its baselines.
        training: label distributions of the training items, for the marginal baseline.
        validation: human distributions, and the majority model's probabilities, to fit baselines on; without it they
            are fitted across folds of the evaluated items.
        original: (items,) class indices of original labels, for accuracy against them.
        resamples: of items and seeds, behind each interval.
        seed: of everything random.
    """
    labels = _labels(human)
    models = _models(model, labels)
    systems = {name: System(runs=runs, over_items=runs) for name, runs in models.items()}
    notes = [LEGEND]
    if baselines:
        named = isinstance(majority, str) and majority in models
        given = models[str(majority)] if named else majority
        made, missing = make_baselines(labels, training=training, majority=given, validation=validation, seed=seed)
        for each in made:
            if named and each.name == MAJORITY:
                notes.append(f"{MAJORITY}: the system '{majority}'")
                continue
            if each.name in systems:
                raise InputError(f"evaluation: '{each.name}' is the name of a baseline; call the system something else")
            constant = each.runs if each.constant is None else np.broadcast_to(each.constant, each.runs.shape)
            systems[each.name] = System(runs=each.runs, over_items=constant)
            notes.append(f"{each.name}: {each.note}")
        notes += missing
    table = _Table(
        labels=labels,
        systems=systems,
        metrics=_metrics(metrics, labels, original),
        original=None if original is None else np.asarray(original),
        resamples=resamples,
        seed=seed,
    )
    everything = Stratum(name=ALL, items=np.ones(len(labels), dtype=np.bool_))
    overall, resampled_overall, why = table.fill(everything)
    notes += why
    resampled = {(ALL, ALL): resampled_overall}
    scores = {}
    for idea, strata_of_idea in _strata(strata, labels).items():
        rows = list(overall)
        for stratum in strata_of_idea[1:]:
            more, values, why = table.fill(stratum)
            rows += more
            resampled |= {(idea, stratum.name): values} if values else {}
            notes += [f"{stratum.name}: {stratum.note}"] if stratum.note else []
            notes += why
        order = [metric.name for metric in table.metrics]
        scores[idea] = Scores(tuple(sorted(rows, key=lambda row: order.index(row.metric))))
    return Evaluation(
        items=len(labels),
        classes=labels.classes,
        systems=tuple(systems),
        baselines=tuple(name for name in systems if name not in models),
        metrics=tuple(metric.name for metric in table.metrics),
        overall=Scores(tuple(overall)),
        strata=scores,
        notes=tuple(dict.fromkeys(notes)),
        resamples=resamples,
        seed=seed,
        resampled=resampled,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class _Table:
    """What every stratum is scored with."""

    labels: LabelDistribution
    systems: Mapping[str, System]
    metrics: tuple[Metric, ...]
    original: Codes | None
    resamples: int
    seed: int

    def fill(self, stratum: Stratum) -> tuple[list[Score], Resampled, list[str]]:
        """The scores of a stratum, what they were resampled from, and notes."""
        if not stratum.items.any():
            return empty_rows(stratum, self.metrics, self.systems), {}, []
        people = self.labels.take(stratum.items) if stratum.human is None else stratum.human
        resampled = resample_systems(
            people.probabilities,
            self.systems,
            self.metrics,
            items=stratum.items,
            original=self.original,
            resamples=self.resamples,
            seed=self.seed,
        )
        panel, notes = None, [BY_VOTES]
        if not stratum.by_votes:
            found = panel_of(people, self.metrics, resamples=self.resamples, seed=self.seed)
            panel = found if isinstance(found, Panel) else None
            notes = [] if isinstance(found, Panel) else [f"no noise floors, corrected scores and ceilings: {found}"]
        rows = score_rows(stratum, resampled, self.systems, panel=panel, resamples=self.resamples, seed=self.seed)
        return rows, resampled, notes


def _labels(human: LabelDistribution | Any) -> LabelDistribution:
    """Label distributions; those of bare probabilities have no votes."""
    if isinstance(human, LabelDistribution):
        return human
    p = checked_human(human)
    return LabelDistribution(
        probabilities=p,
        counts=np.zeros(p.shape, dtype=np.int64),
        panel_size=np.zeros(len(p), dtype=np.int64),
        items=np.arange(len(p)),
        classes=tuple(str(k) for k in range(p.shape[1])),
        scheme="given",
    )


def _models(model: Any, labels: LabelDistribution) -> dict[str, Runs]:
    named = dict(model) if isinstance(model, Mapping) else {MODEL: model}
    if not named:
        raise InputError("evaluation: there are no predictions; give at least one system")
    runs = {name: checked_probabilities(each, str(name)) for name, each in named.items()}
    shape = labels.probabilities.shape
    for name, each in runs.items():
        if each.shape[1:] != shape:
            raise InputError(
                f"{name}: predictions for {each.shape[1]:,} items and {each.shape[2]} classes, and people judged "
                f"{shape[0]:,} items and {shape[1]} classes; give one row for each item that people judged"
            )
    return runs


def _metrics(names: Sequence[str] | None, labels: LabelDistribution, original: Any | None) -> tuple[Metric, ...]:
    has = {"ordered": labels.ordered, "original": original is not None}
    if names is None:
        more = [name for name, metric in METRICS.items() if metric.needs and all(has[need] for need in metric.needs)]
        names = [*DEFAULT_METRICS, *more]
    for name in names:
        if name not in METRICS:
            raise InputError(f"evaluation: there is no metric '{name}'; choose from {', '.join(METRICS)}")
        for need in METRICS[name].needs:
            if not has[need]:
                remedy = {"ordered": "say that the classes are a scale", "original": "give the original labels"}[need]
                raise InputError(f"evaluation: {name} needs more than votes and predictions; {remedy}, or leave it out")
    if not names:
        raise InputError("evaluation: no metric is named; name at least one, or leave it open")
    return tuple(METRICS[name] for name in dict.fromkeys(names))


def _strata(
    given: str | Sequence[str] | Mapping[str, Any], labels: LabelDistribution
) -> dict[str, tuple[Stratum, ...]]:
    """For each idea its strata, all items first."""
    if isinstance(given, Mapping):
        return {idea: tuple(made) if _are_strata(made) else by_column(labels, made) for idea, made in given.items()}
    return {idea: make_strata(labels, idea) for idea in ([given] if isinstance(given, str) else given)}


def _are_strata(made: Any) -> bool:
    return isinstance(made, tuple) and all(isinstance(each, Stratum) for each in made)
