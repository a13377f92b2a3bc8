"""How close a model is to people, and whether that number is honest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus.evaluation.calibration import fit_calibrator as fit_calibrator
    from dissensus.evaluation.comparison.differences import compare as compare
    from dissensus.evaluation.comparison.strata import by_attribute as by_attribute
    from dissensus.evaluation.evaluating import Evaluation as Evaluation
    from dissensus.evaluation.evaluating import evaluate as evaluate
    from dissensus.evaluation.finite_panel.best_achievable import noise_floor as noise_floor
    from dissensus.evaluation.finite_panel.ceiling import human_ceiling as human_ceiling
    from dissensus.evaluation.finite_panel.ceiling import vote_ceiling as vote_ceiling
    from dissensus.evaluation.finite_panel.panel_score import panel_score as panel_score
    from dissensus.evaluation.metrics.metric import Metric as Metric
    from dissensus.evaluation.metrics.registry import METRICS as METRICS
    from dissensus.evaluation.mode_audit import mode_shift as mode_shift
    from dissensus.evaluation.predictions import read_predictions as read_predictions

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "Evaluation": "evaluating",
        "METRICS": "metrics.registry",
        "Metric": "metrics.metric",
        "by_attribute": "comparison.strata",
        "compare": "comparison.differences",
        "evaluate": "evaluating",
        "fit_calibrator": "calibration",
        "human_ceiling": "finite_panel.ceiling",
        "mode_shift": "mode_audit",
        "noise_floor": "finite_panel.best_achievable",
        "panel_score": "finite_panel.panel_score",
        "read_predictions": "predictions",
        "vote_ceiling": "finite_panel.ceiling",
    },
)
