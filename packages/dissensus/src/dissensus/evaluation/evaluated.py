"""What comes of an evaluation: scores with intervals, the verdict, differences, and the tables that show them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.bootstrap import json_value
from dissensus.errors import InputError, choices
from dissensus.evaluation.comparison.differences import BETTER, WORSE, Differences, differences, with_holm
from dissensus.evaluation.comparison.scores import BEST, arrow
from dissensus.evaluation.comparison.strata import ALL
from dissensus.evaluation.comparison.tables import DASH, as_list, latex, shown
from dissensus.evaluation.comparison.verdict import verdict
from dissensus.evaluation.finite_panel.shared_annotators import (
    UNKNOWN_PEOPLE,
    annotator_variance,
    with_annotators,
)
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.frames import Framed
from dissensus.pages import as_markdown, html, markdown
from dissensus.votes.echo import number

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from dissensus.arrays import Table
    from dissensus.evaluation.comparison.intervals import Spread
    from dissensus.evaluation.comparison.scores import Scores
    from dissensus.evaluation.comparison.strata import Halves
    from dissensus.evaluation.finite_panel.finding import Finding
    from dissensus.evaluation.finite_panel.panel import Panel
    from dissensus.evaluation.finite_panel.people_ruler import Ruler, Worth
    from dissensus.evaluation.finite_panel.seeds import OfSeeds
    from dissensus.evaluation.scoring import Resampled

HEADLINES: Final = ("soft_nll", "kl")
"""The headline metric is the first of these that a table shows, else the table's first metric. The differences between
systems are the same in both; soft NLL is what the people ruler measures."""

ONLY_CORRECTED: Final = ("tvd", "entce", "abs_entce")
"""What few votes move so far (DistCE, EntCE) that the short table has the corrected values, or none."""


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
        trained_on: by system, how many of these items, or of their votes, trained, chose or made it, where any did.
        knowing: by model that seems to know the votes that it is scored on, why.
        warnings: sentences without which the numbers mislead; that models were trained on these items, or know
            their votes, comes first.
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
    knowing: Mapping[str, str]
    warnings: tuple[str, ...]
    data_warnings: tuple[str, ...]
    notes: tuple[str, ...]
    resamples: int
    seed: int
    compared: Compared

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
    def leaks(self) -> tuple[str, ...]:
        """The warnings about models that were trained on these items, or that seem to know their votes."""
        return self.warnings[: bool(self.trained_on) + len(self.knowing)]

    @property
    def cautions(self) -> tuple[str, ...]:
        """Return the warnings that are not part of the verdict."""
        rest = self.warnings[bool(self.trained_on) :]
        return tuple(warning for warning in rest if warning != UNKNOWN_PEOPLE or not self.resamples)

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
        marks = {(row.system, row.metric): row.mark for row in self.difference().rows}
        few = most is None or len(self.models) <= most
        shown_models = self.models if few else sorted(self.models, key=self.distance)[:most]
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
        parts = [as_markdown(" ".join(self.verdict)), f"## All {self.items:,} items", markdown(*self.short_grid())]
        parts += [markdown(*self.overall.grid())]
        for idea, scores in self.strata.items():
            parts += [f"## By {as_markdown(idea)}", markdown(*scores.grid())]
        if len(self.models) > 1:
            parts += [f"## Minus {as_markdown(self.reference)}", markdown(*self.difference().grid())]
        if self.baselines:
            parts += ["## Minus the baselines", markdown(*self.against_baselines().grid())]
        return "\n\n".join([*parts, "## Notes", as_list(self.all_notes)]).rstrip() + "\n"

    def to_latex(self) -> str:
        """The short table, whose caption says what it shows and who seems to know the votes.

        The verdict and the other warnings are comments above it.
        """
        means = f"{BETTER} closer to people than {self.reference}, {WORSE} further"
        caption = f"How close models are to people, on {self.items:,} items; 95 % intervals; {means}"
        stated = "".join(f"{sentence}. " for sentence in (caption, *self.leaks)).strip()
        return latex(*self.short_grid(), caption=stated, label="evaluation", notes=[*self.verdict, *self.cautions])

    def to_dict(self) -> dict[str, Any]:
        """Everything that the tables say, ready for JSON."""
        facts = ("title", "short", "unit", "better", "reference")

        def of(*names: str) -> dict[str, Any]:
            return {name: json_value(getattr(self, name)) for name in names}

        return {
            **of(
                "verdict", "trained_on", "knowing", "warnings", "items", "classes", "systems", "baselines", "reference"
            ),
            "metrics": {name: {key: getattr(METRICS[name], key) for key in facts} for name in self.metrics},
            **of("headline", "resamples", "seed"),
            "notes": list(self.all_notes),
            **of("ruler", "worth", "second", "second_ruler", "of_seeds", "second_worth", "overall", "strata"),
            "differences": self.difference().to_dict() if len(self.models) > 1 else [],
            "against_baselines": self.against_baselines().to_dict(),
        }

    def __repr__(self) -> str:
        about = f"{self.items:,} items, {len(self.classes)} classes, {number(len(self.models), 'model')}"
        return f"Evaluation({about}, {len(self.metrics)} metrics)\n" + "\n".join(self.verdict)

    def _repr_html_(self) -> str:
        from html import escape

        notes = "".join(f"<li>{escape(note)}</li>" for note in self.cautions)
        return (
            f"<p>{escape(' '.join(self.verdict))}</p>{html(*self.short_grid())}{f'<ul>{notes}</ul>' if notes else ''}"
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Compared:
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
