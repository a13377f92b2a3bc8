"""Small subjects of pages, made from arrays: people with known votes, and models that are near to them or far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus.evaluation.evaluating import evaluate
from dissensus.labels.distribution import LabelDistribution
from dissensus.report.subject import Subject

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

METRICS = ("soft_nll", "kl", "brier", "abs_entce", "accuracy", "ece_equal_mass")


def people_of(counts: Any, *, classes: Sequence[str] = ("a", "b", "c"), items: Sequence[str] | None = None) -> Any:
    """Label distributions that are the shares of counted votes."""
    table = np.asarray(counts, dtype=np.int64)
    names = [f"item {n}" for n in range(len(table))] if items is None else list(items)
    return LabelDistribution(
        probabilities=table / table.sum(axis=1, keepdims=True),
        counts=table,
        panel_size=table.sum(axis=1),
        items=np.array(names, dtype=np.dtypes.StringDType()),
        classes=tuple(classes),
        scheme="frequency",
    )


def panel(items: int, classes: int = 3, *, votes: int = 10, seed: int = 0) -> tuple[Any, Any]:
    """(items, classes) true distributions, and counts of votes that were drawn from them."""
    generator = np.random.default_rng(seed)
    truth = generator.dirichlet(np.full(classes, 0.5), items)
    return truth, generator.multinomial(votes, truth)


def blurred(truth: Any, *, weight: float, seeds: int = 3, seed: int = 0) -> Any:
    """(seeds, items, classes) the truth mixed with noise; the more weight, the nearer."""
    generator = np.random.default_rng(seed)
    noise = generator.dirichlet(np.ones(truth.shape[1]), (seeds, len(truth)))
    return weight * truth + (1 - weight) * noise


def made(
    people: LabelDistribution,
    systems: Mapping[str, Any],
    *,
    models: Mapping[str, tuple[str, ...]] | None = None,
    question: str = "Does it help?",
    reference: str | None = None,
    deliveries: Mapping[str, str] | None = None,
    resamples: int = 60,
    metrics: Sequence[str] = METRICS,
    **told: Any,
) -> Subject:
    """A subject from people and (seeds, items, classes) predictions; the first system is the reference."""
    models = models or {"": tuple(systems)}
    evaluation = evaluate(
        people,
        dict(systems),
        classes=people.classes,
        metrics=metrics,
        majority=reference,
        resamples=resamples,
    )
    given: dict[str, Any] = {
        "title": "made",
        "votes": None,
        "texts": people.items,
        "pictures": None,
        "where": f"{len(people)} items",
        "cautions": (),
        "facts": (),
        "commands": (),
    }
    return Subject(
        question=question,
        people=people,
        systems=systems,
        models=models,
        references={model: names[0] for model, names in models.items()},
        deliveries=deliveries or {},
        evaluation=evaluation,
        **(given | told),
    )
