"""Any model's predictions against what people said: every score with its interval, its floor and its baselines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.errors import InputError
from dissensus.evaluation.baselines import make_baselines
from dissensus.evaluation.comparison import Alternative, Differences, differences, with_holm
from dissensus.evaluation.intervals import estimate_over_seeds
from dissensus.evaluation.probabilities import checked_human, checked_probabilities
from dissensus.evaluation.registry import METRICS
from dissensus.evaluation.resampling import resampled_means, resampled_over_items
from dissensus.evaluation.scores import Score, Scores
from dissensus.evaluation.strata import ALL, Stratum, by_column, make_strata
from dissensus.evaluation.tables import as_list
from dissensus.labels.distribution import LabelDistribution

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.arrays import Table
    from dissensus.evaluation.metric import Metric
    from dissensus.evaluation.probabilities import Runs

    Resampled = dict[str, dict[str, Table]]
    """By metric and system, (1 + resamples, seeds) values on one stratum."""

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
        level: of the intervals.
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
    level: float
    resamples: int
    seed: int
    resampled: Mapping[tuple[str, str], Resampled] = field(repr=False)

    def by_stratum(self, by: str = "agreement") -> Scores:
        """The scores in each stratum of an idea, such as agreement; all items first."""
        if by not in self.strata:
            known = ", ".join(self.strata) or "none"
            raise InputError(f"evaluation: there are no strata by '{by}' here but by {known}; ask for them in evaluate()")
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
                    level=self.level,
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
            "level": self.level,
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
    level: float = 0.95,
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
            by a function of `dissensus.evaluation.strata`.
        baselines: whether tables carry the baselines.
        majority: probabilities of a model trained on majority labels, or the name of a system, for its baselines.
        training: label distributions of the training items, for the marginal baseline.
        validation: human distributions, and the majority model's probabilities, to fit baselines on; without it they
            are fitted across folds of the evaluated items.
        original: (items,) class indices of original labels, for accuracy against them.
        resamples: of items and seeds, behind each interval.
        level: of the intervals.
        seed: of everything random.
    """
    labels, counted = _labels(human)
    systems = _systems(model, labels)
    notes: list[str] = []
    made = {name: _System(runs=runs, over_items=runs) for name, runs in systems.items()}
    if baselines:
        found, missing = make_baselines(
            labels,
            training=training,
            majority=systems[majority] if isinstance(majority, str) and majority in systems else majority,
            validation=validation,
            seed=seed,
        )
        for each in found:
            if each.name in made:
                raise InputError(f"evaluation: '{each.name}' is the name of a baseline; call the system something else")
            constant = each.constant
            over_items = each.runs if constant is None else np.broadcast_to(constant, (1, *labels.probabilities.shape))
            made[each.name] = _System(runs=each.runs, over_items=over_items)
            notes.append(f"{each.name}: {each.note}")
        notes += missing
    chosen = _metrics(metrics, labels, original)
    if not counted:
        notes.append("people came as probabilities without votes, so there are no noise floors, corrections and ceilings")
    ideas = _strata(strata, labels)
    settings = _Settings(labels, chosen, made, original, counted, resamples=resamples, level=level, seed=seed)
    everything = Stratum(name=ALL, items=np.ones(len(labels), dtype=np.bool_))
    overall, resampled_all = _score(everything, settings)
    resampled = {(ALL, ALL): resampled_all}
    tables = {}
    for idea, each_stratum in ideas.items():
        rows: list[Score] = []
        for stratum in each_stratum:
            if stratum.name == ALL and stratum.human is None:
                rows += overall
                continue
            scored, values = _score(stratum, settings)
            rows += scored
            if values:
                resampled[idea, stratum.name] = values
            if stratum.note:
                notes.append(f"{stratum.name}: {stratum.note}")
        order = {name: place for place, name in enumerate(metric.name for metric in chosen)}
        tables[idea] = Scores(tuple(sorted(rows, key=lambda row: order[row.metric])))
    return Evaluation(
        items=len(labels),
        classes=labels.classes,
        systems=tuple(made),
        baselines=tuple(name for name in made if name not in systems),
        metrics=tuple(metric.name for metric in chosen),
        overall=Scores(tuple(overall)),
        strata=tables,
        notes=tuple(notes),
        level=level,
        resamples=resamples,
        seed=seed,
        resampled=resampled,
    )
