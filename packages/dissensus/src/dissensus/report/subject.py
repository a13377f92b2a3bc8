"""What a page is about: people, systems and their evaluation, whether a study made them or files hold them."""

from __future__ import annotations

import platform
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.evaluation.metrics.registry import METRICS
from dissensus.evaluation.probabilities import Predictions
from dissensus.evaluation.scoring import over_all_classes
from dissensus.report.items import data_uri, images
from dissensus.votes.echo import number
from dissensus.votes.privacy import LEAST_PEOPLE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dissensus.arrays import Ints, Names, Table
    from dissensus.evaluation.evaluated import Evaluation
    from dissensus.evaluation.probabilities import Runs
    from dissensus.labels.distribution import LabelDistribution
    from dissensus.report.chapters import Added
    from dissensus.votes.table import Votes

VERSIONS: Final = ("dissensus", "numpy", "scipy", "torch", "altair", "vl-convert-python")
"""The packages whose versions the page tells, those that are installed."""

SHOWN: Final = 8
"""How many systems get a figure or a bar of their own; the tables have all."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Subject:
    """What a page is about.

    Attributes:
        title: a short name, above the question.
        question: what the page answers.
        people: what people said of the evaluated items.
        systems: by name, (seeds, items, classes) probabilities for the evaluated items.
        models: by name of a model, the names of its systems, in order.
        references: by name of a model, the system that its others are compared with.
        deliveries: by name of a system, how labels reached its loss; empty where that is not known.
        evaluation: of all systems and baselines.
        votes: all votes there are; None where only label distributions are known.
        texts: (items,) what a reader is shown of each evaluated item: its text, or else its name.
        pictures: (at most so many items) indices to (items, ...) arrays that may be images; None where items are none.
        where: which items were evaluated, in words.
        cautions: what a reader must know before any number.
        reading: how files of predictions were read, and what in them names no class.
        facts: what another person needs to get the same numbers, as names and values.
        commands: the commands that make the page, one a line.
        explained: by delivery, what it is.
        adds: what is added to the page, from its subject, resamples and a seed; None where predictions came as files.
        least_people: how many people a group needs for its numbers to be shown.
    """

    title: str
    question: str
    people: LabelDistribution
    systems: Mapping[str, Runs]
    models: Mapping[str, tuple[str, ...]]
    references: Mapping[str, str]
    deliveries: Mapping[str, str]
    evaluation: Evaluation
    votes: Votes | None
    texts: Names
    pictures: Callable[[Ints], np.ndarray[Any, Any]] | None
    where: str
    cautions: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    commands: tuple[str, ...]
    reading: tuple[str, ...] = ()
    explained: Mapping[str, str] = field(default_factory=dict)
    adds: Callable[[Subject, int, int], Added] | None = None
    least_people: int = LEAST_PEOPLE

    def mean(self, system: str) -> Table:
        """(items, classes) what a system says in the mean over its seeds."""
        return np.asarray(self.systems[system].mean(axis=0, dtype=np.float64))

    def predictions(self, system: str) -> Predictions:
        """What a system says of the evaluated items, seed by seed."""
        return Predictions(
            probabilities=self.systems[system].astype(np.float64),
            seeds=self.evaluation.compared.seeds[system],
            items=self.people.items,
            classes=self.people.classes,
        )

    def model_of(self, system: str) -> str:
        """The model that a system belongs to."""
        return next(model for model, names in self.models.items() if system in names)

    def method(self, system: str) -> str:
        """The name of a system within its model."""
        return system.removeprefix(f"{self.model_of(system)}: ")

    def reference_of(self, system: str) -> str | None:
        """What a system is compared with; None for a reference itself."""
        reference = self.references[self.model_of(system)]
        return None if reference == system else reference

    def closest(self, model: str) -> str:
        """The system of a model that is closest to people by the headline metric."""
        return min(self.models[model], key=self.evaluation.distance)

    @property
    def shown(self) -> tuple[str, ...]:
        """The systems that are drawn: all, or where there are many, each model's reference and its closest system."""
        if len(self.systems) <= SHOWN:
            return tuple(self.systems)
        chosen = {name for model in self.models for name in (self.references[model], self.closest(model))}
        best = sorted(chosen, key=self.evaluation.distance)[:SHOWN]
        return tuple(name for name in self.systems if name in best)

    @property
    def measured(self) -> str:
        """The metric that strata are compared in: the headline, or soft NLL where that is no mean over items."""
        return self.evaluation.headline if METRICS[self.evaluation.headline].per_item is not None else "soft_nll"

    def picture(self, items: Ints) -> list[str | None]:
        """Data URIs of the chosen items' images; None for each where items are not images."""
        made = None if self.pictures is None or not items.size else images(self.pictures(items))
        return [None] * len(items) if made is None else [data_uri(each) for each in made]


def files_subject(
    evaluation: Evaluation,
    people: LabelDistribution,
    predictions: Mapping[str, Predictions],
    *,
    votes: Votes | None,
    title: str,
    texts: Names | None = None,
    files: Sequence[tuple[str, str]] = (),
    cautions: Sequence[str] = (),
    command: str = "",
    least_people: int = LEAST_PEOPLE,
) -> Subject:
    """Votes and predictions from files as the subject of a page, whose attributes say what most arguments are.

    `predictions` are by name, of the people's items in the same order; `texts` of None shows names; `files` are what
    was read, as names and values, `cautions` what was found while reading, and `command` is what was typed.
    """
    people, systems, _ = over_all_classes(predictions, people)
    names = tuple(systems)
    compared = "baselines that know nothing of the items" if len(names) == 1 else evaluation.reference
    subject = names[0] if len(names) == 1 else names[1] if len(names) == 2 else "another model"
    return Subject(
        title=title,
        question=f"Is {subject} closer to people than {compared}?",
        people=people,
        systems=systems,
        models={"": names},
        references={"": evaluation.reference},
        deliveries={},
        evaluation=evaluation,
        votes=votes,
        texts=people.items if texts is None else texts,
        pictures=None,
        where=f"{len(people):,} items",
        cautions=(*evaluation.leaks, *cautions),
        facts=(
            *files,
            ("items", f"{len(people):,}, of {len(people.classes)} classes"),
            ("labels", f"votes became label distributions by the scheme {people.scheme}"),
            ("systems", ", ".join(f"{name} ({number(len(runs), 'seed')})" for name, runs in systems.items())),
            *made_with(evaluation),
        ),
        commands=(command,) if command else (),
        reading=tuple(note for each in predictions.values() for note in each.notes),
        least_people=least_people,
    )


def made_with(evaluation: Evaluation) -> list[tuple[str, str]]:
    """How the intervals were made, and with which versions."""
    versions = [f"Python {platform.python_version()}"]
    for name in VERSIONS:
        with suppress(metadata.PackageNotFoundError):
            versions.append(f"{name} {metadata.version(name)}")
    return [
        ("intervals", f"{evaluation.resamples:,} resamples, seed {evaluation.seed}"),
        ("versions", ", ".join(versions)),
    ]
