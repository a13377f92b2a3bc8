"""What the words of the page mean: metrics, deliveries and schemes where they are defined, others in glossary.toml."""

from __future__ import annotations

import inspect
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from dissensus.evaluation.metrics.registry import METRICS
from dissensus.shipped import shipped_toml

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dissensus.evaluation.metrics.registry import Metric
    from dissensus.report.chapters import Added
    from dissensus.report.subject import Subject

DELIVERY: Final = "how labels reach the loss, epoch by epoch"
"""A delivery in one line."""


@cache
def terms() -> dict[str, dict[str, str]]:
    """What words of the report mean, by the part of the page that uses them: report, people, dynamics."""
    return shipped_toml("dissensus.report", "glossary.toml")


def glossary(subject: Subject, added: Added) -> list[tuple[str, str]]:
    """Every method and metric that the page names, and the words that it uses, in one alphabet."""
    from dissensus.labels.labelling import SCHEMES

    found = dict(terms()["report"])
    found |= {METRICS[name].title: metric_in_words(METRICS[name]) for name in subject.evaluation.metrics}
    found |= {name: baseline_in_words(name, subject.evaluation.notes) for name in subject.evaluation.baselines}
    if subject.votes is not None and subject.votes.annotators is not None:
        found |= terms()["people"]
    if subject.deliveries:
        found["delivery"] = f"A delivery is {DELIVERY}."
        used = dict.fromkeys(subject.deliveries.values())
        found |= {f"{name} (delivery)": subject.explained[name] for name in used}
    found |= added.words
    schemes = {subject.people.scheme, *added.schemes}
    found |= {f"{name} (scheme)": f"From votes to labels: {SCHEMES[name].what}." for name in schemes if name in SCHEMES}
    return sorted(((name, text) for name, text in found.items() if text), key=lambda entry: entry[0].casefold())


def delivery_in_words(paragraph: str) -> str:
    """A delivery in half a sentence, for its first use: `the observed votes in turn, one an epoch`."""
    text = paragraph.split(";")[0].rstrip(".")
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def metric_in_words(metric: Metric) -> str:
    """What a metric computes, in which unit, which side is closer to people, and who defined it."""
    side = {"lower": "Lower is closer to people", "higher": "Higher is closer to people", "zero": "0 is best"}
    function = metric.per_item or metric.over_items
    said = paragraph(function.func if isinstance(function, partial) else function)
    unit = f", in {metric.unit}" if metric.unit and metric.unit not in said else ""
    return f"{said.rstrip('.')}{unit}. {side[metric.better]}. ({metric.reference})"


def baseline_in_words(name: str, notes: Iterable[str]) -> str:
    """How a baseline was made, as the evaluation notes it."""
    text = next((note.removeprefix(f"{name}: ") for note in notes if note.startswith(f"{name}: ")), "")
    return f"Baseline: {text}." if text else ""


def paragraph(function: Any) -> str:
    """The first paragraph of a docstring on one line, without code marks."""
    text = inspect.getdoc(function) or ""
    return " ".join(text.split("\n\n")[0].split()).replace("`", "")
