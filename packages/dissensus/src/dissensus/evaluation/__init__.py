"""How close a model is to people, and whether that number is honest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus.bootstrap import Estimate as Estimate
    from dissensus.evaluation.calibration import fit_calibrator as fit_calibrator
    from dissensus.evaluation.comparison.differences import compare as compare
    from dissensus.evaluation.comparison.differences import holm as holm
    from dissensus.evaluation.comparison.differences import wilcoxon as wilcoxon
    from dissensus.evaluation.comparison.intervals import Spread as Spread
    from dissensus.evaluation.comparison.intervals import estimate_within as estimate_within
    from dissensus.evaluation.comparison.intervals import spread_over_seeds as spread_over_seeds
    from dissensus.evaluation.comparison.strata import by_attribute as by_attribute
    from dissensus.evaluation.comparison.strata import make_strata as make_strata
    from dissensus.evaluation.evaluated import Evaluation as Evaluation
    from dissensus.evaluation.evaluating import evaluate as evaluate
    from dissensus.evaluation.finite_panel.best_achievable import best_achievable as best_achievable
    from dissensus.evaluation.finite_panel.corrections import correct as correct
    from dissensus.evaluation.finite_panel.panel import panel_of as panel_of
    from dissensus.evaluation.finite_panel.people_ruler import people_ruler as people_ruler
    from dissensus.evaluation.finite_panel.people_ruler import worth_in_people as worth_in_people
    from dissensus.evaluation.metrics.registry import METRICS as METRICS
    from dissensus.evaluation.metrics.registry import Metric as Metric
    from dissensus.evaluation.people.evaluating import evaluate_people as evaluate_people
    from dissensus.evaluation.people.evaluating import item_predictions as item_predictions
    from dissensus.evaluation.people.lewidi import read_reference as read_reference
    from dissensus.evaluation.people.lewidi import score_submission as score_submission
    from dissensus.evaluation.people.map import people_map as people_map
    from dissensus.evaluation.people.vote_scores import VotePredictions as VotePredictions
    from dissensus.evaluation.predictions import align_predictions as align_predictions
    from dissensus.evaluation.predictions import read_predictions as read_predictions
    from dissensus.evaluation.probabilities import Predictions as Predictions

__getattr__, __dir__ = lazy_names(__name__)
