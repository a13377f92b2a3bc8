"""The card of a bundle: what the model learnt from whom, and how close to people it is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dissensus.evaluation.comparison.tables import shown
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.pages import as_markdown, filled, markdown
from dissensus_train.training.data import TRAIN

if TYPE_CHECKING:
    from dissensus.evaluation.evaluated import Evaluation
    from dissensus_train.bundles.recipe import Recipe
    from dissensus_train.studies import ScoredStudy

REPORTED = ("soft_nll", "kl", "brier", "accuracy", "ece")
"""The metrics that a model card tells."""


def model_card(recipe: Recipe, scored: ScoredStudy, evaluation: Evaluation, *, chosen: str) -> str:
    """The card as Markdown, with the header that the Hugging Face Hub reads (`model_card.md.jinja`)."""
    return filled(
        "dissensus_train.bundles",
        "model_card.md.jinja",
        filters={"text": as_markdown, "json": json.dumps, "number": "{:,}".format},
        recipe=recipe,
        question=scored.opened.study.question,
        who=_annotators(scored),
        cautions=scored.cautions,
        chosen=chosen,
        split=scored.split,
        # The mean of several runs is scored as one, and is not one.
        verdict=[
            sentence
            for sentence in evaluation.verdict
            if len(recipe.members) == 1 or not sentence.startswith("But it is one run")
        ],
        scores=_scores(recipe, evaluation),
    )


def _annotators(scored: ScoredStudy) -> str:
    data = scored.opened.data
    trained = data.human.take(data.splits[TRAIN])
    judged = int(trained.panel_size.sum())
    votes = data.votes
    if votes is None:
        who = "Who judged them is not known here: the data bring label distributions without votes."
    elif votes.annotators is None:
        who = "The votes are anonymous."
    else:
        attributes = ", ".join(votes.annotators.attributes)
        about = f", described by {attributes}" if attributes else ""
        who = f"{len(votes.annotators):,} annotators judged the whole set{about}."
    size = f"{judged:,} judgements of " if judged else ""
    return f"{data.name}: {size}{len(trained):,} training items. {who}"


def _scores(recipe: Recipe, evaluation: Evaluation) -> str:
    rows = []
    for name in evaluation.metrics:
        score = evaluation.overall.get(recipe.name["system"], name)
        best = None if score.best_achievable is None else score.best_achievable.estimate
        rows.append([METRICS[name].title, shown(score.value), shown(best)])
    return markdown(["metric", "this model", "best achievable"], rows)
