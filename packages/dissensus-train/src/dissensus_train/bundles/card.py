"""The model card of a bundle: what it is, on whose votes it learnt, and how well it did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.evaluation.comparison.tables import shown
from dissensus.evaluation.metrics.registry import METRICS
from dissensus.pages import as_markdown, markdown
from dissensus_train.training.data import TRAIN

if TYPE_CHECKING:
    from dissensus.evaluation.evaluating import Evaluation
    from dissensus_train.bundles.recipe import Recipe
    from dissensus_train.studies import ScoredStudy


def model_card(recipe: Recipe, scored: ScoredStudy, evaluation: Evaluation, *, chosen: str) -> str:
    """The card as Markdown, with the header that the Hugging Face Hub reads."""
    study, members = scored.opened.study, len(recipe.members)
    together = f"the mean of {members} networks (seeds {', '.join(map(str, recipe.members))})" if members > 1 else "one"
    parts = [
        "---\nlibrary_name: dissensus\ntags:\n- annotator-disagreement\n- soft-labels\n---",
        f"# {as_markdown(recipe.name['system'])}, from the study {as_markdown(recipe.name['study'])}",
        (
            f"It predicts how people's answers would spread over {len(recipe.classes)} classes"
            f"{', a scale' if recipe.ordered else ''}: {as_markdown(', '.join(recipe.classes))}."
        ),
        as_markdown(f"The study asked: {study.question}") if study.question else "",
        "## On whose votes it learnt",
        _people(scored),
        *(f"**{as_markdown(caution)}**" for caution in scored.cautions),
        "## How it was made",
        as_markdown(
            f"Network {recipe.network}, {together}. Target {recipe.learnt['target']}, delivered as "
            f"{recipe.learnt['delivery']}. It reads {recipe.reads}"
            + (f" through the encoder {recipe.encoder}." if recipe.encoder else ".")
        ),
        as_markdown(f"Chosen as {chosen}."),
        f"## How close it is to people ({recipe.scores['items']:,} items of the split '{as_markdown(scored.split)}')",
        *(as_markdown(sentence) for sentence in evaluation.verdict),
        _scores(recipe, evaluation),
        "Scores are of this very model, with 95 % intervals over items.",
        "## Use",
        "```\ndissensus predict this-folder new.csv -o predictions.parquet\n```",
        '```python\nimport dissensus as dis\n\nmodel = dis.load_model("this-folder")\n```',
        "## Limits",
        (
            "It answers for the people described above, on items like those they judged. Nothing is known of other "
            "people, languages or kinds of items."
        ),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _people(scored: ScoredStudy) -> str:
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
    return as_markdown(f"{data.name}: {size}{len(trained):,} training items. {who}")


def _scores(recipe: Recipe, evaluation: Evaluation) -> str:
    rows = []
    for name in evaluation.metrics:
        score = evaluation.overall.get(recipe.name["system"], name)
        best = None if score.best_achievable is None else score.best_achievable.estimate
        rows.append([METRICS[name].title, shown(score.value), shown(best)])
    return markdown(["metric", "this model", "best achievable"], rows)
