"""What the words of the page mean: metrics, deliveries and schemes from where they are defined, the others here."""

from __future__ import annotations

import inspect
import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from dissensus.evaluation.metrics.registry import METRICS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dissensus.evaluation.metrics.metric import Metric
    from dissensus.report.chapters import Added
    from dissensus.report.subject import Subject

DELIVERY: Final = "how labels reach the loss, epoch by epoch"
"""A delivery in one line."""

TERMS: Final[dict[str, str]] = {
    "worth in people": (
        "How many people's votes would forecast the other people's votes as well as the model does. For each item, n "
        "of its votes make a forecast, which is scored on the item's other votes by soft NLL, and so is the model; "
        "where the model's score meets the curve over n = 0, 1, 2, ..., that is its worth. Nobody (0 people) forecasts "
        "by how often each class is chosen overall."
    ),
    "people ruler": "The scores of 0, 1, 2, ... people, on which a model's worth in people is read off.",
    "best achievable": (
        "What a perfect model, one that knew what everybody thinks of each item, would be expected to score against so "
        "few votes: a handful of votes is a noisy picture even of a perfect model."
    ),
    "interval": (
        "Where the number would lie with other items and other seeds of the same kind: 95 % of such intervals hold the "
        "truth. An interval of a difference that excludes 0 is marked."
    ),
    "reference": "The system that the others are compared with: the one trained on majority labels where there is one.",
    "baseline": "Predictions that take little or no learning; a model that does not beat them has learnt little.",
    "stratum": "A part of the items that is scored by itself, such as the items on which all people agree (unanimous).",
    "human entropy": (
        "How divided people are over an item: H(p) = -sum_k p_k ln p_k of their shares, in nats; 0 where all agree, "
        "and ln(classes) where every class has equally many votes."
    ),
    "gap": (
        "The total variation distance between people's distribution and the model's: the share of probability that "
        "would have to move from class to class, from 0 to 1."
    ),
    "p": (
        "How often a difference at least so large would come up if the two systems were equally close to people in the "
        "long run, from the same variance over items and seeds as the interval; Holm's correction is over the methods "
        "that are compared with the reference. Only the headline metric is tested."
    ),
}

PEOPLE: Final[dict[str, str]] = {
    "map of annotators": (
        "Annotators placed so that those who answer alike lie together. Two votes on an item are alike as far as they "
        "lie on the same side of the mean of its votes, less what all pairs of its votes do, so that easy items bring "
        "nobody together; only dimensions that votes dealt out at random do not have are drawn."
    ),
    "squared distance to a group": (
        "The squared distance between the distribution of a group's answers and the model's, from pairs of different "
        "people who judged the same item, which makes it right for any number of votes."
    ),
    "disadvantage of a group": (
        "The score of the group's votes minus that of everybody's votes on the same items; above 0 the model predicts "
        "them worse than others."
    ),
}
"""Words of the part on people."""


def glossary(subject: Subject, added: Added) -> list[tuple[str, str]]:
    """Every method and metric that the page names, and the words that it uses, in one alphabet."""
    from dissensus.labels.labelling import SCHEMES

    found = dict(TERMS)
    found |= {f"{METRICS[name].title}": metric_in_words(METRICS[name]) for name in subject.evaluation.metrics}
    found |= {name: baseline_in_words(name, subject.evaluation.notes) for name in subject.evaluation.baselines}
    if subject.votes is not None and subject.votes.annotators is not None:
        found |= PEOPLE
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
    unit = f", in {metric.unit}" if metric.unit and metric.unit not in paragraph(_function(metric)) else ""
    return f"{paragraph(_function(metric)).rstrip('.')}{unit}. {side[metric.better]}. ({metric.reference})"


def baseline_in_words(name: str, notes: Iterable[str]) -> str:
    """How a baseline was made, as the evaluation notes it."""
    made = next((note for note in notes if note.startswith(f"{name}: ")), "")
    text = made.removeprefix(f"{name}: ")
    return f"Baseline: {text}." if text else ""


def _function(metric: Metric) -> Any:
    found = metric.per_item or metric.over_items
    return found.func if isinstance(found, partial) else found


def paragraph(function: Any) -> str:
    """The first paragraph of a docstring on one line, without code marks."""
    text = inspect.getdoc(function) or ""
    return re.sub(r"`", "", " ".join(text.split("\n\n")[0].split()))
