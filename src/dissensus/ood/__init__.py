"""Out-of-distribution (OOD) detection: scores of items, and how well they tell OOD from in-distribution items."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus.ood.measures import MEASURES as MEASURES
    from dissensus.ood.measures import aupr_in_distribution as aupr_in_distribution
    from dissensus.ood.measures import aupr_ood as aupr_ood
    from dissensus.ood.measures import auroc as auroc
    from dissensus.ood.measures import fpr95_in_distribution_positive as fpr95_in_distribution_positive
    from dissensus.ood.measures import fpr95_ood_positive as fpr95_ood_positive
    from dissensus.ood.measures import resampled_measures as resampled_measures
    from dissensus.ood.measures import roc_curves as roc_curves
    from dissensus.ood.measuring import measure_ood as measure_ood
    from dissensus.ood.ood_sets import OodSet as OodSet
    from dissensus.ood.ood_sets import read_ood_set as read_ood_set
    from dissensus.ood.outputs import model_outputs as model_outputs
    from dissensus.ood.outside import GivenOutputs as GivenOutputs
    from dissensus.ood.outside import given_outputs as given_outputs
    from dissensus.ood.outside import measure_outputs as measure_outputs
    from dissensus.ood.outside import read_outputs as read_outputs
    from dissensus.ood.results import OodResult as OodResult
    from dissensus.ood.scores import SCORES as SCORES
    from dissensus.ood.scores import disagreement as disagreement
    from dissensus.ood.scores import energy as energy
    from dissensus.ood.scores import entropy as entropy
    from dissensus.ood.scores import knn as knn
    from dissensus.ood.scores import mahalanobis as mahalanobis
    from dissensus.ood.scores import max_logit as max_logit
    from dissensus.ood.scores import msp as msp
    from dissensus.ood.scores import odin as odin
    from dissensus.ood.scores import ood_scores as ood_scores
    from dissensus.ood.settings import OodSettings as OodSettings

__getattr__, __dir__ = lazy_names(__name__)
