"""Out-of-distribution (OOD) detection: scores of items, and how well they tell OOD from in-distribution items."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus_train.ood.measures import MEASURES as MEASURES
    from dissensus_train.ood.measures import aupr_in_distribution as aupr_in_distribution
    from dissensus_train.ood.measures import aupr_ood as aupr_ood
    from dissensus_train.ood.measures import auroc as auroc
    from dissensus_train.ood.measures import fpr95_in_distribution_positive as fpr95_in_distribution_positive
    from dissensus_train.ood.measures import fpr95_ood_positive as fpr95_ood_positive
    from dissensus_train.ood.measures import resampled_measures as resampled_measures
    from dissensus_train.ood.measures import roc_curves as roc_curves
    from dissensus_train.ood.measuring import measure_ood as measure_ood
    from dissensus_train.ood.ood_sets import OodSet as OodSet
    from dissensus_train.ood.ood_sets import read_ood_set as read_ood_set
    from dissensus_train.ood.outputs import model_outputs as model_outputs
    from dissensus_train.ood.outside import GivenOutputs as GivenOutputs
    from dissensus_train.ood.outside import given_outputs as given_outputs
    from dissensus_train.ood.outside import measure_outputs as measure_outputs
    from dissensus_train.ood.outside import measure_scores as measure_scores
    from dissensus_train.ood.outside import read_outputs as read_outputs
    from dissensus_train.ood.results import OodResult as OodResult
    from dissensus_train.ood.scores import SCORES as SCORES
    from dissensus_train.ood.scores import disagreement as disagreement
    from dissensus_train.ood.scores import energy as energy
    from dissensus_train.ood.scores import entropy as entropy
    from dissensus_train.ood.scores import knn as knn
    from dissensus_train.ood.scores import mahalanobis as mahalanobis
    from dissensus_train.ood.scores import max_logit as max_logit
    from dissensus_train.ood.scores import msp as msp
    from dissensus_train.ood.scores import odin as odin
    from dissensus_train.ood.scores import ood_scores as ood_scores
    from dissensus_train.ood.scores import react as react
    from dissensus_train.ood.scores import vim as vim
    from dissensus_train.ood.settings import OodSettings as OodSettings

__getattr__, __dir__ = lazy_names(__name__)
