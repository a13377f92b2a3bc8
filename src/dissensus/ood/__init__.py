"""Out-of-distribution detection: how strange items look to a model, and how well that tells them from familiar ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus.ood.measures import MEASURES as MEASURES
    from dissensus.ood.measures import aupr_familiar as aupr_familiar
    from dissensus.ood.measures import aupr_strange as aupr_strange
    from dissensus.ood.measures import auroc as auroc
    from dissensus.ood.measures import fpr95_familiar_positive as fpr95_familiar_positive
    from dissensus.ood.measures import fpr95_strange_positive as fpr95_strange_positive
    from dissensus.ood.measures import resampled_measures as resampled_measures
    from dissensus.ood.measuring import measure_ood as measure_ood
    from dissensus.ood.outputs import model_outputs as model_outputs
    from dissensus.ood.results import OodResult as OodResult
    from dissensus.ood.scores import SCORES as SCORES
    from dissensus.ood.scores import energy as energy
    from dissensus.ood.scores import entropy as entropy
    from dissensus.ood.scores import knn as knn
    from dissensus.ood.scores import mahalanobis as mahalanobis
    from dissensus.ood.scores import max_logit as max_logit
    from dissensus.ood.scores import msp as msp
    from dissensus.ood.scores import odin as odin
    from dissensus.ood.scores import strangeness as strangeness
    from dissensus.ood.settings import OodSettings as OodSettings
    from dissensus.ood.strangers import StrangeSet as StrangeSet
    from dissensus.ood.strangers import read_strangers as read_strangers

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "MEASURES": "measures",
        "OodResult": "results",
        "OodSettings": "settings",
        "SCORES": "scores",
        "StrangeSet": "strangers",
        "aupr_familiar": "measures",
        "aupr_strange": "measures",
        "auroc": "measures",
        "energy": "scores",
        "entropy": "scores",
        "fpr95_familiar_positive": "measures",
        "fpr95_strange_positive": "measures",
        "knn": "scores",
        "mahalanobis": "scores",
        "max_logit": "scores",
        "measure_ood": "measuring",
        "model_outputs": "outputs",
        "msp": "scores",
        "odin": "scores",
        "read_strangers": "strangers",
        "resampled_measures": "measures",
        "strangeness": "scores",
    },
)
