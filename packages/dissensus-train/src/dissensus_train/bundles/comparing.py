"""Day 30: a deployed model beside one that was newly trained, on new votes. Three questions, and one verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.bootstrap import Estimate, json_fields, json_value
from dissensus.errors import InputError
from dissensus.evaluation.comparison.differences import BETTER, WORSE, Difference
from dissensus.evaluation.comparison.tables import shown
from dissensus.evaluation.evaluating import evaluate
from dissensus.evaluation.metrics.registry import METRICS, reported
from dissensus.evaluation.probabilities import Predictions
from dissensus.votes.echo import number
from dissensus_train.bundles.beside import prediction
from dissensus_train.bundles.drift import Drift, moved_on_the_same, moved_since
from dissensus_train.bundles.writing import chosen_model, distance_to_people, held_out_answers, model_inputs
from dissensus_train.training.data import TRAIN

if TYPE_CHECKING:
    from dissensus.arrays import Ints, Table
    from dissensus.evaluation.evaluated import Evaluation
    from dissensus.labels.distribution import LabelDistribution
    from dissensus.votes.table import Votes
    from dissensus_train.bundles.loading import TrainedModel
    from dissensus_train.studies import ScoredStudy

DEPLOYED: Final = "deployed"
NEW: Final = "newly trained"


@dataclass(frozen=True, eq=False, kw_only=True)
class DeployedComparison:
    """A deployed model and a newly trained one on held-out items of new votes that neither was trained on.

    Attributes:
        chosen: how the newly trained model was chosen, in words.
        members: places of the compared items in the study's data.
        left_out: how many held-out items were left out because the deployed model was trained on them.
        human: what people said of the compared items.
        predictions: by system, (items, classes) probabilities.
        evaluation: of both, on these items.
        at_export: the deployed model's distance to people when it was exported; None where that is not known.
        now: the same on the compared items.
        measure: what the distance is, in words.
        drift: how people's answers moved; None where that cannot be told.
    """

    chosen: str
    members: Ints
    left_out: int
    human: LabelDistribution
    predictions: dict[str, Table]
    evaluation: Evaluation
    at_export: Estimate | None
    now: Estimate | None
    measure: str
    drift: Drift | None

    def as_predictions(self) -> dict[str, Predictions]:
        """What both say of the compared items, as a report takes it."""
        about: dict[str, Any] = {"items": self.human.items, "classes": self.human.classes, "seeds": (0,)}
        return {name: Predictions(probabilities=said[None], **about) for name, said in self.predictions.items()}

    @property
    def difference(self) -> Difference:
        """The newly trained model less the deployed one, on the headline metric."""
        return self.evaluation.difference(DEPLOYED, only=[NEW]).get(NEW, self.evaluation.headline)

    @property
    def since_export(self) -> Estimate | None:
        """The deployed model's distance to people now less that at export, of other items; None where not known."""
        if self.at_export is None or self.now is None or self.at_export.high is None or self.now.high is None:
            return None
        # The lower end of a distance may be cut at 0.
        reach = float(np.hypot(self.at_export.high - self.at_export.value, self.now.high - self.now.value))
        value = self.now.value - self.at_export.value
        return Estimate(value, value - reach, value + reach)

    @property
    def verdict(self) -> tuple[str, str, str]:
        """What to do and why; whether the deployed model is as close to people as it was; whether people moved."""
        since, drift = self.since_export, self.drift
        further = since is not None and since.low is not None and since.low > 0
        row = self.difference
        title = METRICS[row.metric].title
        items = number(self.evaluation.items, "item")
        told = f"{title}, new minus deployed: {shown(row.value)}, on {items} new to both"
        if row.mark == BETTER:
            first = f"Deploy the newly trained model: it is significantly closer to people ({told})."
        elif row.mark == WORSE:
            first = f"Keep the deployed model: the newly trained one is significantly further from people ({told})."
        elif further or (drift is not None and drift.moved):
            first = (
                "Keep the deployed model for now, and train again on more new votes: something moved, and the newly "
                f"trained model is not significantly better yet ({told})."
            )
        else:
            first = f"Keep the deployed model: the newly trained one is not significantly better ({told})."
        if since is None:
            why = "it has no such score" if self.at_export is None else "the compared items are too few to score it"
            second = f"Whether the deployed model is as close to people as at export is not known: {why}."
        else:
            how, hedge = "as close to people as", ", as far as these votes tell"
            if further or (since.high is not None and since.high < 0):
                how, hedge = f"{'further from' if further else 'closer to'} people than", ""
            second = (
                f"The deployed model is {how} at export{hedge}: {self.measure} {shown(self.now)}, then "
                f"{shown(self.at_export)}, difference {shown(since)}."
            )
        third = str(drift) if drift is not None else "Whether people answer otherwise is not known: votes are missing."
        return first, second, third

    def to_dict(self) -> dict[str, Any]:
        """Everything that was found, ready for JSON."""
        about = json_fields(self, but=("members", "human", "predictions"))
        return {"verdict": list(self.verdict), "since_export": json_value(self.since_export), **about}


def compare_deployed(
    deployed: TrainedModel, scored: ScoredStudy, *, before: Votes | None = None, device: str = "auto", seed: int = 0
) -> DeployedComparison:
    """Compare a deployed model with the one that a study on new votes would export.

    Args:
        deployed: the model of an earlier bundle.
        scored: a study of the same classes, whose held-out items have new votes.
        before: votes that the deployed model's study had: where many of their items were judged again, these tell
            whether people moved; else, what people now answer beside what the model forecast, then and now.
        device: where the deployed model predicts.
        seed: of the resamples.
    """
    data, recipe, human = scored.opened.data, deployed.recipe, scored.human
    if set(deployed.classes) != set(human.classes):
        raise InputError(
            f"compare: the deployed model knows the classes {', '.join(deployed.classes)}, and the study has "
            f"{', '.join(human.classes)}; compare models of the same classes"
        )
    if recipe.reads != "features" and data.items is None:
        raise InputError(f"compare: the deployed model reads {recipe.reads}, and the study has features only")
    held_out = data.splits[scored.split]
    new_to_both = np.flatnonzero(~deployed.trained_on(model_inputs(data, recipe.reads, held_out)))
    if scored.split == TRAIN or not new_to_both.size:
        raise InputError(
            "compare: there is no item with new votes that neither model was trained on; hold out some items of the "
            "study that the deployed model has not seen"
        )
    members = held_out[new_to_both]
    order = [deployed.classes.index(name) for name in human.classes]
    said = deployed.predict_proba(model_inputs(data, recipe.reads, members), device=device)[:, order]
    system, seeds, chosen = chosen_model(scored)
    predictions = {DEPLOYED: said, NEW: prediction(scored, system, seeds)[new_to_both]}
    people = human.take(new_to_both)
    evaluation = evaluate(
        people,
        predictions,
        classes=human.classes,
        votes=data.votes,
        metrics=reported(ordered=human.ordered),
        reference=DEPLOYED,
        training=data.human.take(data.splits[TRAIN]),
        seed=seed,
    )
    then, now = recipe.scores["distance"], distance_to_people(evaluation, DEPLOYED)
    measure = "squared distance to people (Brier score without the noise of few votes)"
    if then is None or now is None:
        then = recipe.scores["metrics"].get("soft_nll")
        value = evaluation.overall.get(DEPLOYED, "soft_nll").value
        now = None if value is None else value.to_dict()
        measure = "soft NLL (which also depends on how divided people are)"
    drift = None if before is None or data.votes is None else moved_on_the_same(before, data.votes)
    answers = held_out_answers(scored, said, new_to_both)
    if drift is None and recipe.answers is not None and answers is not None:
        parts = {name: [recipe.answers[name][k] for k in order] for name in ("difference", "parts")}
        drift = moved_since({**recipe.answers, **parts}, answers, human.classes)
    return DeployedComparison(
        chosen=chosen,
        members=members,
        left_out=len(held_out) - len(members),
        human=people,
        predictions=predictions,
        evaluation=evaluation,
        at_export=None if then is None or recipe.scores["split"] == TRAIN else Estimate(**then),
        now=None if now is None else Estimate(**now),
        measure=measure,
        drift=drift,
    )
