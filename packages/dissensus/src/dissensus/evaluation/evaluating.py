"""Any model's predictions against what people said: every score with its interval, its limits and its baselines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.arrays import places_of
from dissensus.errors import InputError, choices
from dissensus.evaluation.arguments import people_in, per_item, refuse_swapped, systems_in
from dissensus.evaluation.baselines import MAJORITY, make_baselines, marginal
from dissensus.evaluation.comparison.differences import (
    BETTER,
    GIVEN_THIS_SEED,
    WORSE,
    Differences,
    differences,
    interval_over,
    seed_numbers,
    with_holm,
)
from dissensus.evaluation.comparison.scores import BEST, Scores, arrow
from dissensus.evaluation.comparison.strata import ALL, Stratum, by_column, halves_of, make_strata
from dissensus.evaluation.comparison.tables import DASH, as_list, latex, shown
from dissensus.evaluation.comparison.verdict import listed, verdict
from dissensus.evaluation.finite_panel.people_ruler import Ruler, mean_losses, people_ruler, worth_in_people
from dissensus.evaluation.finite_panel.seeds import of_seeds
from dissensus.evaluation.finite_panel.shared_annotators import (
    THESE_PEOPLE,
    annotator_variance,
    shared,
    with_annotators,
)
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.evaluation.predictions import MODEL
from dissensus.evaluation.probabilities import Predictions, checked_human
from dissensus.evaluation.scoring import (
    BY_HALVES,
    BY_THE_SAME,
    Scorer,
    over_all_classes,
    panel_or_reason,
    with_classes,
)
from dissensus.frames import Framed
from dissensus.labels.distribution import LabelDistribution
from dissensus.pages import html, markdown
from dissensus.votes.table import Votes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from dissensus.arrays import Table
    from dissensus.cores import Over
    from dissensus.evaluation.comparison.intervals import Spread
    from dissensus.evaluation.comparison.scores import Score
    from dissensus.evaluation.comparison.strata import Halves
    from dissensus.evaluation.finite_panel.finding import Finding
    from dissensus.evaluation.finite_panel.panel import Panel
    from dissensus.evaluation.finite_panel.people_ruler import Ruled, Worth
    from dissensus.evaluation.finite_panel.seeds import OfSeeds
    from dissensus.evaluation.metrics.registry import Metric
    from dissensus.evaluation.probabilities import Runs
    from dissensus.evaluation.scoring import Resampled

DEFAULT_METRICS: Final = ("soft_nll", "kl", "tvd", "brier", "entce", "entropy_spearman", "accuracy")
"""What a table shows where no metrics are named; `registry.METRICS` has the others."""

HEADLINES: Final = ("soft_nll", "kl")
"""The headline metric is the first of these that a table shows, else the table's first metric. The differences between
systems are the same in both; soft NLL is what the people ruler measures."""

SECOND: Final[Ruled] = "rps"
"""The second headline, where classes are ordered: of wrong classes it holds near ones for less wrong."""

ONLY_CORRECTED: Final = ("tvd", "entce", "abs_entce")
"""What few votes move so far (DistCE, EntCE) that the short table has the corrected values, or none."""

LEGEND: Final = (
    "score: mean over items and seeds, with its 95 % interval; corrected: the score against everybody, of whom the "
    "votes are a sample; best achievable: what a perfect model would score against so few votes; people: how many "
    "people's votes would forecast the other people's as well (people ruler, by soft NLL)"
)
"""How a table is read."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Evaluation(Framed):
    """Systems and baselines against people: `verdict`, `overall`, `by_stratum`, `difference`.

    Attributes:
        items: how many items were evaluated.
        classes: names.
        systems: names of the models, then of the baselines.
        baselines: names of the baselines among them.
        reference: the model that the others are compared with: the one asked for, or trained on majority labels where
            that is one of them, else the first.
        metrics: names.
        headline: the metric that models are ranked and tested on.
        overall: the scores on all items.
        strata: for each idea of strata, the scores in each of its strata.
        ruler: what n people's votes are worth as a forecast of the others'; a sentence where there is none.
        worth: by system, how many people it is worth; empty where there is no ruler.
        second: the metric that stands beside the headline, the ranked probability score where classes are ordered; None
            where they are not.
        second_ruler: the ruler by that metric; None without one.
        second_worth: by system, how many people it is worth by that metric; empty where there is no such ruler.
        of_seeds: by model with two seeds or more, what these disagree about and are unsure of beside people.
        trained_on: by system, how many of these items were used to train or choose it, where any were.
        warnings: sentences without which the numbers mislead; that models were trained on these items comes first.
        data_warnings: those of them that are about votes and items, and not about what systems score.
        notes: further sentences that belong under the tables: how they are read, and how baselines were made.
        resamples: behind each interval.
        seed: random seed.
        compared: what `difference` is computed from.
    """

    items: int
    classes: tuple[str, ...]
    systems: tuple[str, ...]
    baselines: tuple[str, ...]
    reference: str
    metrics: tuple[str, ...]
    headline: str
    overall: Scores
    strata: Mapping[str, Scores]
    ruler: Ruler | str
    worth: Mapping[str, Worth]
    second: str | None
    second_ruler: Ruler | str | None
    second_worth: Mapping[str, Worth]
    of_seeds: Mapping[str, OfSeeds]
    trained_on: Mapping[str, int]
    warnings: tuple[str, ...]
    data_warnings: tuple[str, ...]
    notes: tuple[str, ...]
    resamples: int
    seed: int
    compared: _Compared

    @property
    def models(self) -> tuple[str, ...]:
        """The systems that are no baselines."""
        return tuple(name for name in self.systems if name not in self.baselines)

    @property
    def heads(self) -> dict[str, Mapping[str, Worth]]:
        """The headline metric, and the second where there is one: by each, how many people systems are worth."""
        return {self.headline: self.worth, **({self.second: self.second_worth} if self.second else {})}

    @property
    def verdict(self) -> tuple[str, str, str]:
        """Three sentences: who is closest to people, how many people it is worth, and the but.

        Where a model was trained on these items, the first begins with that.
        """
        closest, worth, but = verdict(self)
        return f"{self.warnings[0]}. {closest}" if self.trained_on else closest, worth, but

    @property
    def cautions(self) -> tuple[str, ...]:
        """The warnings, without the one that the verdict begins with."""
        return self.warnings[bool(self.trained_on) :]

    @property
    def compared_strata(self) -> tuple[tuple[str, str], ...]:
        """Idea and name of every stratum with items, without all items."""
        return tuple(key for key in self.compared.resampled if key[1] != ALL)

    def by_stratum(self, by: str = "agreement") -> Scores:
        """The scores in each stratum of an idea, such as agreement; all items first."""
        if by not in self.strata:
            known = ", ".join(self.strata) or "none"
            raise InputError(
                f"evaluation: there are no strata by '{by}' here but by {known}; ask for them in evaluate()"
            )
        return self.strata[by]

    def difference(
        self,
        reference: str | None = None,
        *,
        by: str = "agreement",
        stratum: str = ALL,
        only: Collection[str] | None = None,
        level: float = 0.95,
    ) -> Differences:
        """Every other system minus the reference, on every metric, over the same items.

        Seeds are paired where the two systems have the same. On all items the models are tested against a reference
        that is a model, on the headline metric; everything else has an interval and a mark.

        Args:
            reference: name of a system or baseline; None takes `reference`.
            by: the idea that the stratum belongs to; it does not matter for all items.
            stratum: the items to compare on.
            only: the systems to compare with the reference; None for all others.
            level: of the intervals.
        """
        reference = self.reference if reference is None else reference
        if reference not in self.systems:
            raise InputError(f"evaluation: there is no system '{reference}'{choices(reference, self.systems)}")
        key = (ALL, ALL) if stratum == ALL else (by, stratum)
        if key not in self.compared.resampled:
            known = [name for idea, name in self.compared.resampled if idea == by]
            raise InputError(f"evaluation: no item is in the stratum '{stratum}' by {by}{choices(stratum, known)}")
        rows = []
        for metric, values in self.compared.resampled[key].items():
            defined = {name: scores for name, scores in values.items() if np.isfinite(scores[0]).all()}
            tested = self.models if metric == self.headline and stratum == ALL and reference in self.models else ()
            if reference in defined:
                rows += differences(
                    defined,
                    reference,
                    seeds=self.compared.seeds,
                    items=self.compared.items[key],
                    metric=metric,
                    tested=tested,
                    only=only,
                    stratum=stratum,
                    level=level,
                    widened=self.compared.widened(reference, metric=metric, stratum=stratum),
                )
        return with_holm(rows)

    def against_baselines(self, *, by: str = "agreement", stratum: str = ALL) -> Differences:
        """Every model minus every baseline, on every metric, with intervals and marks."""
        rows = [
            row
            for baseline in self.baselines
            for row in self.difference(baseline, by=by, stratum=stratum, only=self.models).rows
        ]
        return Differences(tuple(sorted(rows, key=lambda row: self.metrics.index(row.metric))))

    def short_grid(self, *, most: int | None = None) -> tuple[list[str], list[list[str]]]:
        """Header and cells of the table of all items that fits a screen, as text: a row for each system.

        The headline metric has its interval, the others a mark where they differ from the reference. TVD and EntCE are
        the corrected ones; where there are none, `absent` says why. Of more than `most` models the closest to people
        are shown, closest first.
        """
        others = [name for name in self.metrics if name not in (*self.heads, *self.absent)]
        header = [cell for name in self.heads for cell in (f"{METRICS[name].short} {arrow(name)}", "people")]
        corrected = {name: self._corrected(name) for name in others if name in ONLY_CORRECTED}
        said = {name: ", corrected" if any(corrected.get(name, {}).values()) else "" for name in others}
        header = ["", *header, *(f"{METRICS[name].short}{said[name]} {arrow(name)}" for name in others)]
        compared = self.difference()
        marks = {(row.system, row.metric): row.mark for row in compared.rows}
        shown_models = list(self.models)
        if most is not None and len(shown_models) > most:
            shown_models = sorted(shown_models, key=self.distance)[:most]
        rows = []
        for name in (*shown_models, *self.baselines):
            cells = []
            for metric, worth in self.heads.items():
                mark = marks.get((name, metric), "") or " "
                cells.append(f"{shown(self.overall.get(name, metric).value)} {mark}")
                cells.append(worth[name].short if name in worth else DASH)
            for metric in others:
                if said[metric]:
                    finding = corrected[metric][name]
                    known = None if finding is None else finding.estimate
                    cells.append(DASH if known is None else f"{known.value:z.3f} ")
                    continue
                value = self.overall.get(name, metric).value
                cells.append(DASH if value is None else f"{value.value:z.3f}{marks.get((name, metric), '') or ' '}")
            reference = len(self.models) > 1 and name == self.reference
            rows.append([f"{name} (reference)" if reference else name, *cells])
        best = {metric: self._best(metric) for metric in self.metrics}
        if any(limit is not None for limit in best.values()):
            limits = [cell for metric in self.heads for cell in (f"{shown(best[metric])}  ", "")]
            # Against everybody a perfect model is off by nothing.
            limits += [
                f"{0:.3f} " if said[metric] else DASH if best[metric] is None else f"{best[metric].value:.3f} "
                for metric in others
            ]
            rows.append([BEST, *limits])
        return header, rows

    def _corrected(self, metric: str) -> dict[str, Finding | None]:
        """By system, its corrected score; None where people are no sample of everybody."""
        return {name: self.overall.get(name, metric).corrected for name in self.systems}

    @property
    def absent(self) -> dict[str, str]:
        """By metric that the short table leaves out, why: few votes move it, and no corrected value is known."""
        out = {}
        for metric in (name for name in self.metrics if name in ONLY_CORRECTED and name != self.headline):
            known = [finding for finding in self._corrected(metric).values() if finding is not None]
            if known and not any(finding.estimate for finding in known):
                out[metric] = known[0].reason
        return out

    def seeds_grid(self) -> tuple[list[str], list[list[str]]]:
        """Header and cells: does a model know what it does not know, and what people do not agree on?"""
        header = ["seeds", "mutual information", "error of the mean", "explained by seeds", "where sure / unsure"]
        header += ["expected entropy", "beyond people's"]
        rows = []
        for name, found in self.of_seeds.items():
            halves = (found.error_where_sure, found.error_where_unsure)
            rows.append(
                [
                    name,
                    f"{found.mutual_information:.3f}",
                    shown(found.error.estimate),
                    DASH if found.explained is None else f"{found.explained:.0%}",
                    " / ".join(DASH if half is None else f"{half:z.3f}" for half in halves),
                    f"{found.expected_entropy:.3f}",
                    shown(found.beyond_people.estimate),
                ]
            )
        return header, rows

    def variance_grid(self) -> tuple[list[str], list[list[str]]]:
        """Header and cells of what models' soft NLL would vary by: standard deviations, and shares of the variance."""
        parts = ("items", "annotators", "seeds")
        known = {row.system: row.variance for row in self.overall.rows if row.variance and row.system in self.models}
        rows = []
        for name, variance in known.items():
            total = sum(variance.values()) or 1.0
            cells = (variance.get(part) for part in parts)
            told = (DASH if size is None else f"{size**0.5:.4f} ({size / total:.0%})" for size in cells)
            rows.append([name, f"{total**0.5:.4f}", *told])
        return ["soft NLL, sd of the mean", "all", *(f"by {part}" for part in parts)], rows

    def distance(self, name: str) -> float:
        """How far a system is from people by the headline metric, for ranking: less is closer."""
        value = self.overall.get(name, self.headline).value
        if value is None:
            return np.inf
        return {"lower": value.value, "higher": -value.value, "zero": abs(value.value)}[METRICS[self.headline].better]

    def closest(self) -> str:
        """The model that is closest to people by the headline metric."""
        return min(self.models, key=self.distance)

    def _best(self, metric: str) -> Any:
        limit = self.overall.get(self.systems[0], metric).best_achievable
        return None if limit is None else limit.estimate

    @property
    def all_notes(self) -> tuple[str, ...]:
        """Every note there is: warnings, those of the scores, of the people ruler and of the baselines; each once."""
        tables = (self.overall, *self.strata.values())
        said = [*self.warnings, *(note for table in tables for note in table.notes)]
        said += [f"people: {note}" for name in self.models if name in self.worth for note in self.worth[name].notes]
        return tuple(dict.fromkeys([*said, *self.difference().notes, *self.notes]))

    def records(self) -> list[dict[str, Any]]:
        """A row per system, metric and stratum; `by` is what the stratum belongs to, `all` for all items."""
        rows = [{"by": ALL, **row} for row in self.overall.to_dict()]
        parts = ({"by": idea, **row} for idea, scores in self.strata.items() for row in scores.to_dict())
        return rows + [row for row in parts if row["stratum"] != ALL]

    def to_markdown(self) -> str:
        """The verdict, all tables, the differences, and the notes."""
        parts = [" ".join(self.verdict), f"## All {self.items:,} items", markdown(*self.short_grid())]
        parts += [markdown(*self.overall.grid())]
        for idea, scores in self.strata.items():
            parts += [f"## By {idea}", markdown(*scores.grid())]
        if len(self.models) > 1:
            parts += [f"## Minus {self.reference}", markdown(*self.difference().grid())]
        if self.baselines:
            parts += ["## Minus the baselines", markdown(*self.against_baselines().grid())]
        return "\n\n".join([*parts, "## Notes", as_list(self.all_notes)]).rstrip() + "\n"

    def to_latex(self) -> str:
        """The short table, whose caption says what it shows; the verdict and warnings are comments above it."""
        means = f"{BETTER} closer to people than {self.reference}, {WORSE} further"
        caption = f"How close models are to people, on {self.items:,} items; 95 % intervals; {means}."
        return latex(*self.short_grid(), caption=caption, label="evaluation", notes=[*self.verdict, *self.cautions])

    def to_dict(self) -> dict[str, Any]:
        """Everything that the tables say, ready for JSON."""
        facts = ("title", "short", "unit", "better", "reference")
        return {
            "verdict": list(self.verdict),
            "trained_on": dict(self.trained_on),
            "warnings": list(self.warnings),
            "items": self.items,
            "classes": list(self.classes),
            "systems": list(self.systems),
            "baselines": list(self.baselines),
            "reference": self.reference,
            "metrics": {name: {key: getattr(METRICS[name], key) for key in facts} for name in self.metrics},
            "headline": self.headline,
            "resamples": self.resamples,
            "seed": self.seed,
            "notes": list(self.all_notes),
            "ruler": self.ruler if isinstance(self.ruler, str) else self.ruler.to_dict(),
            "worth": {name: worth.to_dict() for name, worth in self.worth.items()},
            "second": self.second,
            "second_ruler": self.second_ruler.to_dict() if isinstance(self.second_ruler, Ruler) else self.second_ruler,
            "of_seeds": {name: found.to_dict() for name, found in self.of_seeds.items()},
            "second_worth": {name: worth.to_dict() for name, worth in self.second_worth.items()},
            "overall": self.overall.to_dict(),
            "strata": {idea: scores.to_dict() for idea, scores in self.strata.items()},
            "differences": self.difference().to_dict() if len(self.models) > 1 else [],
            "against_baselines": self.against_baselines().to_dict(),
        }

    def __repr__(self) -> str:
        models = f"{len(self.models)} {'model' if len(self.models) == 1 else 'models'}"
        about = f"{self.items:,} items, {len(self.classes)} classes, {models}"
        return f"Evaluation({about}, {len(self.metrics)} metrics)\n" + "\n".join(self.verdict)

    def _repr_html_(self) -> str:
        from html import escape

        notes = "".join(f"<li>{escape(note)}</li>" for note in self.cautions)
        return (
            f"<p>{escape(' '.join(self.verdict))}</p>{html(*self.short_grid())}{f'<ul>{notes}</ul>' if notes else ''}"
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class _Compared:
    """What differences are computed from: by idea and stratum what was resampled and how many items, by system seeds.

    `telling` are the strata, all items aside, whose scored votes did not choose their items; `halves` of the votes
    choose and score strata, or a sentence says why there are none. Where the same people are known to have judged
    several items there is the panel, and by score and system `losses`, (items, classes) the mean over seeds of what a
    vote for each class scores.
    """

    resampled: Mapping[tuple[str, str], Resampled]
    items: Mapping[tuple[str, str], int]
    seeds: Mapping[str, tuple[int | str, ...] | None]
    telling: tuple[tuple[str, str], ...]
    halves: Halves | str
    panel: Panel | None
    losses: Mapping[str, Mapping[str, Table]]

    def widened(self, reference: str, *, metric: str, stratum: str) -> dict[str, Callable[[Spread], Spread]]:
        """By system, how the spread of its score minus the reference's is widened for other annotators.

        Empty where people are not known, or for another metric than soft NLL and KL, whose differences are the same,
        and RPS.
        """
        losses = self.losses.get(HEADLINES[0] if metric in HEADLINES else metric)
        if self.panel is None or losses is None or stratum != ALL:
            return {}
        parts = {name: annotator_variance(self.panel, own - losses[reference]) for name, own in losses.items()}
        return {name: partial(with_annotators, part=part) for name, part in parts.items()}


def evaluate(
    human: LabelDistribution | Any,
    model: Any,
    *,
    classes: Sequence[str] | None = None,
    seeds: Mapping[str, Sequence[int]] | Sequence[int] | None = None,
    votes: Votes | Any | None = None,
    metrics: str | Sequence[str] | None = None,
    strata: str | Sequence[str] | Mapping[str, Any] = "agreement",
    baselines: bool = True,
    majority: Any | None = None,
    reference: str | None = None,
    training: Any | None = None,
    question: Any | None = None,
    validation: tuple[Any, Any] | None = None,
    original: Any | None = None,
    only_common: bool = False,
    resamples: int = 1000,
    seed: int = 0,
    over: Over = map,
) -> Evaluation:
    """Score predictions against people.

    Args:
        human: votes, or what `read_votes` reads (a frame, a dictionary of columns, a path); label distributions; or
            (items, classes) probabilities. Only with votes or labels is it known how many votes there were, and so are
            corrected scores, what is best achievable, and the people ruler.
        model: (items, classes) probabilities, or (seeds, items, classes), or a label per item; a frame with a column
            per class (rows are matched by a column `item` where there is one); a dictionary by item; a path;
            `Predictions`; or several systems by name.
        classes: the names of an array's columns in order; None takes the classes of the labels in their order, and
            refuses an array that fits the votes clearly better in another. Classes that nobody voted for may be among
            them.
        seeds: by system, the seeds of its runs (a plain list for a single system); systems with the same seeds are
            paired by number, others are compared unpaired. Runs without numbers are numbered from 0.
        votes: the votes behind `human`, where that is label distributions: with them judgements of several votes are
            taken as a whole, and people who judged many items are known.
        metrics: names from `registry.METRICS`; None takes `DEFAULT_METRICS`, and where the classes are ordered RPS and
            Wasserstein's distance, and the accuracy against original labels where these are given.
        strata: ideas of strata: agreement, entropy, class; or by name, a column with one value for each item, or strata
            made by a function of `dissensus.evaluation.comparison.strata`.
        baselines: whether tables carry the baselines.
        majority: probabilities of a model trained on majority labels, or the name of a system, for its baselines.
        reference: the system that the others are compared with; None takes the one that `majority` names, or the first.
        training: label distributions of the training items, for the marginal baseline and the people ruler.
        question: (items,) the question that each item belongs to, where people were asked several: the marginal and
            what people's votes forecast are then of each question, so that knowing the question is not worth people.
        validation: human distributions, and the majority model's probabilities, to fit baselines on; without it they
            are fitted across folds of the evaluated items.
        original: (items,) class indices of original labels, for accuracy against them.
        only_common: leave out items that not every system predicts, and predictions for items without votes, and say
            how many; without it they are refused.
        resamples: of items, behind each interval.
        seed: random seed.
        over: what calls a function on each of many jobs, where the bootstrap's work is: strata and systems. One that
            shares them among machines takes the place of `map`.

    Examples:
        >>> import numpy as np
        >>> found = evaluate(np.array([[0.5, 0.5], [0.0, 1.0]]), np.array([[0.5, 0.5], [0.5, 0.5]]), metrics=["tvd"])
        >>> float(found.overall.get("model", "tvd").value.value)
        0.25
    """
    refuse_swapped(human, model)
    people, own = people_in(human)
    training = people_in(training)[0] if isinstance(training, Votes) else training
    votes = own if votes is None else people_in(votes)[1]
    question = per_item(question, people.items, what="question")
    original = per_item(original, people.items, what="original")
    judged = people
    people, named, left_out = systems_in(model, people, classes=classes, only_common=only_common)
    kept = places_of(people.items, judged.items) if people is not judged else np.arange(len(people))
    question, original = (None if column is None else np.asarray(column)[kept] for column in (question, original))
    if isinstance(strata, Mapping):
        strata = {
            idea: made if _are_strata(made) else per_item(made, judged.items, what=f"strata '{idea}'")[kept]
            for idea, made in strata.items()
        }
    labels, models, warnings = over_all_classes(named, people)
    warnings = [*left_out, *warnings]
    if len(labels.classes) < 2:
        raise InputError(
            f"evaluate: '{labels.classes[0]}' is the only class, so that every model is right; give votes, or "
            "predictions, with the other classes"
        )
    numbered = seeds if seeds is None or isinstance(seeds, Mapping) else {MODEL: seeds}
    for name in numbered or ():
        if name not in named:
            raise InputError(f"evaluation: seeds= names '{name}', which is no system{choices(name, named)}")
    numbers = {
        name: seed_numbers(name, len(system.probabilities), numbered) if numbered and name in numbered else system.seeds
        for name, system in named.items()
    }
    if votes is not None and votes.classes != labels.classes and votes.classes == people.classes:
        votes = replace(votes, classes=labels.classes)
    systems = {
        name: replace(named[name], probabilities=runs, items=labels.items, classes=labels.classes, seeds=numbers[name])
        for name, runs in models.items()
    }
    notes = [LEGEND]
    if baselines:
        fitted_on: Any = {"training": training, "question": question, "validation": validation, "seed": seed}
        more, how = _baselines(labels, systems, majority=majority, **fitted_on)
        systems |= more
        notes += how
    panel, why = panel_or_reason(labels, votes)
    halves = why if panel is None else halves_of(labels, panel, seed=seed)
    table = Scorer(
        labels=labels,
        halves=halves,
        systems=systems,
        metrics=_metrics(metrics, labels, original),
        panel=panel,
        original=None if original is None else np.asarray(original),
        resamples=resamples,
        seed=seed,
    )
    everything = Stratum(name=ALL, items=np.ones(len(labels), dtype=np.bool_))
    ideas = {idea: of_idea[1:] for idea, of_idea in _strata(strata, labels).items()}
    filled = iter(over(table.fill, [everything, *(stratum for of_idea in ideas.values() for stratum in of_idea)]))
    overall, resampled_overall = next(filled)
    resampled, items = {(ALL, ALL): resampled_overall}, {(ALL, ALL): len(labels)}
    scores, telling = {}, []
    for idea, of_idea in ideas.items():
        rows = list(overall)
        for stratum in of_idea:
            more_rows, values = next(filled)
            rows += more_rows
            divided = stratum.rule is not None and not isinstance(halves, str)
            if values:
                resampled[idea, stratum.name] = values
                items[idea, stratum.name] = more_rows[0].items
                telling += [(idea, stratum.name)] if divided or not stratum.by_votes else []
            notes += [f"{stratum.name}: {stratum.note}"] if stratum.note else []
            reason = halves if isinstance(halves, str) else "the strata were given as lists of items"
            notes += [BY_HALVES if divided else BY_THE_SAME + reason] if stratum.by_votes else []
        order = [metric.name for metric in table.metrics]
        scores[idea] = Scores(tuple(sorted(rows, key=lambda row: order.index(row.metric))))
    measured: Any = {"training": training, "question": question, "seed": seed}
    ruler = why if panel is None else _ruler(panel, labels, **measured)
    of_people = panel if panel is not None and shared(panel) else None
    names = tuple(metric.name for metric in table.metrics)
    trained_on = {
        name: int(system.trained_on.sum())
        for name, system in systems.items()
        if system.trained_on is not None and system.trained_on.any()
    }

    def worth_by(ruler: Ruler | str | None) -> dict[str, Worth]:
        if not isinstance(ruler, Ruler):
            return {}
        measure = partial(worth_in_people, ruler, resamples=resamples, seed=seed)
        return dict(zip(systems, over(measure, [system.probabilities for system in systems.values()]), strict=True))

    headline = next((name for name in HEADLINES if name in names), names[0])
    second: Ruled | None = SECOND if SECOND in names and headline != SECOND else None
    second_ruler: Ruler | str | None = None if second is None else ruler
    if second is not None and panel is not None and isinstance(ruler, Ruler):
        second_ruler = _ruler(panel, labels, score=second, **measured)
    linear: tuple[Ruled, ...] = ("soft_nll", second) if second else ("soft_nll",)
    corrected_entce = {row.system: row.corrected for row in overall if row.metric == "entce"}
    of_data = [*warnings, *_of_votes(panel, why, ruler)]
    warnings = [
        *_in_sample(trained_on, len(labels)),
        *of_data,
        *_of_scores(overall, models),
        *_of_one_seed({name: systems[name] for name in models}),
    ]
    return Evaluation(
        items=len(labels),
        classes=labels.classes,
        systems=tuple(systems),
        baselines=tuple(name for name in systems if name not in models),
        reference=_reference(reference, majority, models),
        metrics=names,
        headline=headline,
        overall=Scores(tuple(overall)),
        strata=scores,
        ruler=ruler,
        worth=worth_by(ruler),
        second=second,
        second_ruler=second_ruler,
        second_worth=worth_by(second_ruler),
        of_seeds={}
        if panel is None
        else {
            name: of_seeds(panel, runs, resamples=resamples, seed=seed, entce=corrected_entce.get(name))
            for name, runs in models.items()
            if len(runs) > 1
        },
        trained_on=trained_on,
        warnings=tuple(dict.fromkeys(warnings)),
        data_warnings=tuple(dict.fromkeys(of_data)),
        notes=tuple(dict.fromkeys(notes)),
        resamples=resamples,
        seed=seed,
        compared=_Compared(
            resampled=resampled,
            items=items,
            seeds={name: system.seeds for name, system in systems.items()},
            telling=tuple(telling),
            halves=halves,
            panel=of_people,
            losses={}
            if of_people is None
            else {
                score: {name: mean_losses(system.probabilities, score) for name, system in systems.items()}
                for score in linear
            },
        ),
    )


def _reference(asked: str | None, majority: Any | None, models: Mapping[str, Runs]) -> str:
    """The system that others are compared with: the one asked for, or trained on majority labels, or the first."""
    if asked is not None:
        if asked not in models:
            raise InputError(f"evaluation: there is no system '{asked}' to compare with{choices(asked, models)}")
        return asked
    return majority if isinstance(majority, str) and majority in models else next(iter(models))


def _baselines(
    labels: LabelDistribution, systems: Mapping[str, Predictions], *, training: Any, majority: Any, **fitted_on: Any
) -> tuple[dict[str, Predictions], list[str]]:
    """The baselines as systems, and how they were made."""
    own = systems[majority] if isinstance(majority, str) and majority in systems else None
    model = majority if own is None else own.probabilities
    made, missing = make_baselines(labels, training=_padded(training, labels), majority=model, **fitted_on)
    baselines, how = {}, []
    for name, system in made.items():
        if own is not None and name == MAJORITY:
            how.append(f"{name}: the system '{majority}'")
            continue
        if name in systems:
            raise InputError(f"evaluation: '{name}' is the name of a baseline; call the system something else")
        baselines[name] = system if own is None or system.seeds is None else replace(system, seeds=own.seeds)
        how.append(f"{name}: {system.notes[0]}")
    return baselines, [*how, *missing]


def _padded(training: Any | None, labels: LabelDistribution) -> Table | None:
    """The training items' distributions over the classes of the labels."""
    if training is None:
        return None
    known = checked_human(training)
    return np.pad(known, ((0, 0), (0, len(labels.classes) - known.shape[1])))


def _ruler(
    panel: Panel,
    labels: LabelDistribution,
    *,
    training: Any | None,
    question: Any | None,
    seed: int,
    score: Ruled = "soft_nll",
) -> Ruler | str:
    votes = None
    if isinstance(training, LabelDistribution) and training.counts.any():
        votes = np.asarray(with_classes(training, labels.classes).counts, dtype=np.float64)
    code = None if question is None else np.unique(np.asarray(question), return_inverse=True)[1]
    if len(panel) < 2 and training is None:
        return "one item tells nothing of how items differ"
    # Nobody's forecast is the baseline `marginal`, so that this row is worth 0 people.
    nobody = marginal(labels, training=_padded(training, labels), question=question, pairs=labels.pairs).probabilities[
        0
    ]
    try:
        return people_ruler(panel, training=votes, question=code, nobody=nobody, score=score, seed=seed)
    except InputError as error:
        return str(error).removeprefix("people ruler: ")


def _in_sample(trained_on: Mapping[str, int], items: int) -> list[str]:
    """That systems were trained or chosen on some of the items, where they were."""
    seen = [f"{number:,} of {items:,} were used to train or choose {name}" for name, number in trained_on.items()]
    whose = "its scores here do not tell how it does" if len(seen) == 1 else "their scores here do not tell how they do"
    return [f"Trained on these items: {listed(seen)}, so {whose} on new items"] if seen else []


def _of_votes(panel: Panel | None, why: str, ruler: Ruler | str) -> list[str]:
    """What the votes themselves do not allow to say."""
    if panel is None:
        return [f"no best achievable, no corrected scores and no worth in people: {why}"]
    notes = [f"no worth in people: {ruler}"] if isinstance(ruler, str) else []
    notes += [f"the votes do not fit the labels, whose counts are used without them: {why}"] if why else []
    alone = int((panel.size == 1).sum())
    notes += (
        [f"{alone:,} of {len(panel):,} items have a single vote, which says little of what people think"]
        if alone
        else []
    )
    notes += [f"except for soft NLL, {THESE_PEOPLE}"] if shared(panel) else []
    return notes


def _of_one_seed(systems: Mapping[str, Predictions]) -> list[str]:
    """A sentence for the systems whose intervals do not say what another seed would give."""
    alone = [name for name, system in systems.items() if interval_over(system.seeds) == GIVEN_THIS_SEED]
    return [f"{', '.join(alone)}: one seed, so intervals are over {GIVEN_THIS_SEED}"] if alone else []


def _of_scores(rows: Sequence[Score], models: Mapping[str, Runs]) -> list[str]:
    """Warnings that stand in the models' rows, with the names they are about."""
    said: dict[str, list[str]] = {}
    for row in rows:
        if row.system not in models:
            continue
        for note in row.notes:
            said.setdefault(note, []).append(f"{row.system}, {METRICS[row.metric].short}")
    return [f"{note} ({'; '.join(where)})" for note, where in said.items()]


def _metrics(names: str | Sequence[str] | None, labels: LabelDistribution, original: Any | None) -> tuple[Metric, ...]:
    has = {"ordered": labels.ordered, "original": original is not None}
    names = [names] if isinstance(names, str) else names
    if names is None:
        more = [name for name, metric in METRICS.items() if metric.needs and all(has[need] for need in metric.needs)]
        first, *others = DEFAULT_METRICS
        names = [first, *(name for name in more if name == SECOND), *others, *more]
    for name in names:
        if name not in METRICS:
            raise InputError(f"evaluation: there is no metric '{name}'{choices(name, METRICS)}")
        for need in METRICS[name].needs:
            if not has[need]:
                remedy = {"ordered": "say that the classes are a scale", "original": "give the original labels"}[need]
                raise InputError(f"evaluation: {name} needs more than votes and predictions; {remedy}, or leave it out")
    if not names:
        raise InputError("evaluation: the list of metrics is empty; name at least one, or give none")
    return tuple(METRICS[name] for name in dict.fromkeys(names))


def _strata(
    given: str | Sequence[str] | Mapping[str, Any], labels: LabelDistribution
) -> dict[str, tuple[Stratum, ...]]:
    """For each idea its strata, all items first."""
    if isinstance(given, Mapping):
        return {idea: tuple(made) if _are_strata(made) else by_column(labels, made) for idea, made in given.items()}
    return {idea: make_strata(labels, idea) for idea in ([given] if isinstance(given, str) else given)}


def _are_strata(made: Any) -> bool:
    return isinstance(made, tuple) and all(isinstance(stratum, Stratum) for stratum in made)
