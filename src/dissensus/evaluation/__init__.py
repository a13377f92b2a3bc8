"""How close a model is to people, and whether that number is honest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus.evaluation.calibration import fit_calibrator as fit_calibrator
    from dissensus.evaluation.ceiling import human_ceiling as human_ceiling
    from dissensus.evaluation.ceiling import vote_ceiling as vote_ceiling
    from dissensus.evaluation.comparison import compare as compare
    from dissensus.evaluation.evaluating import Evaluation as Evaluation
    from dissensus.evaluation.evaluating import evaluate as evaluate
    from dissensus.evaluation.floors import noise_floor as noise_floor
    from dissensus.evaluation.metric import Metric as Metric
    from dissensus.evaluation.mode_audit import mode_shift as mode_shift
    from dissensus.evaluation.panels import panel_score as panel_score
    from dissensus.evaluation.predictions import read_predictions as read_predictions
    from dissensus.evaluation.registry import METRICS as METRICS
    from dissensus.evaluation.strata import by_attribute as by_attribute

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "Evaluation": "evaluating",
        "METRICS": "registry",
        "Metric": "metric",
        "by_attribute": "strata",
        "compare": "comparison",
        "evaluate": "evaluating",
        "fit_calibrator": "calibration",
        "human_ceiling": "ceiling",
        "mode_shift": "mode_audit",
        "noise_floor": "floors",
        "panel_score": "panels",
        "read_predictions": "predictions",
        "vote_ceiling": "ceiling",
    },
)
