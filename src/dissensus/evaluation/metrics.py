"""All metrics by name: per item `metric(human, model) -> (items,)`, and over items `metric(human, model) -> number`.

`registry.METRICS` says of each what its number means.
"""

from __future__ import annotations

from dissensus.evaluation.calibration_error import CalibrationCurve as CalibrationCurve
from dissensus.evaluation.calibration_error import calibration_curve as calibration_curve
from dissensus.evaluation.calibration_error import classwise_ece as classwise_ece
from dissensus.evaluation.calibration_error import ece as ece
from dissensus.evaluation.choices import accuracy as accuracy
from dissensus.evaluation.choices import accuracy_original as accuracy_original
from dissensus.evaluation.choices import brier_majority as brier_majority
from dissensus.evaluation.choices import expected_accuracy as expected_accuracy
from dissensus.evaluation.choices import rank_cs as rank_cs
from dissensus.evaluation.choices import second_best_accuracy as second_best_accuracy
from dissensus.evaluation.distances import FLOOR as FLOOR
from dissensus.evaluation.distances import WORST as WORST
from dissensus.evaluation.distances import abs_entce as abs_entce
from dissensus.evaluation.distances import brier as brier
from dissensus.evaluation.distances import cosine as cosine
from dissensus.evaluation.distances import entce as entce
from dissensus.evaluation.distances import entropy as entropy
from dissensus.evaluation.distances import jsd as jsd
from dissensus.evaluation.distances import kl as kl
from dissensus.evaluation.distances import manhattan as manhattan
from dissensus.evaluation.distances import reverse_kl as reverse_kl
from dissensus.evaluation.distances import soft_accuracy as soft_accuracy
from dissensus.evaluation.distances import soft_nll as soft_nll
from dissensus.evaluation.distances import tvd as tvd
from dissensus.evaluation.distances import wasserstein as wasserstein
from dissensus.evaluation.distributions import check_distributions as check_distributions
from dissensus.evaluation.overall import entropy_pearson as entropy_pearson
from dissensus.evaluation.overall import entropy_spearman as entropy_spearman
from dissensus.evaluation.overall import mode_shift_rate as mode_shift_rate
from dissensus.evaluation.overall import po_jsd as po_jsd
from dissensus.evaluation.overall import soft_macro_f1 as soft_macro_f1
from dissensus.evaluation.overall import soft_micro_f1 as soft_micro_f1
