"""All metrics by name: per item `metric(human, model) -> (items,)`, and over items `metric(human, model) -> number`.

`registry.METRICS` says what the number of each means.

Examples:
    >>> import dissensus as dis
    >>> dis.metrics.kl([[0.5, 0.5], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]).round(3).tolist()
    [0.0, 0.693]
"""

from __future__ import annotations

from dissensus.evaluation.metrics.calibration_error import CalibrationCurve as CalibrationCurve
from dissensus.evaluation.metrics.calibration_error import calibration_curve as calibration_curve
from dissensus.evaluation.metrics.calibration_error import classwise_ece as classwise_ece
from dissensus.evaluation.metrics.calibration_error import ece as ece
from dissensus.evaluation.metrics.distances import FLOOR as FLOOR
from dissensus.evaluation.metrics.distances import WORST as WORST
from dissensus.evaluation.metrics.distances import abs_entce as abs_entce
from dissensus.evaluation.metrics.distances import brier as brier
from dissensus.evaluation.metrics.distances import cosine as cosine
from dissensus.evaluation.metrics.distances import entce as entce
from dissensus.evaluation.metrics.distances import entropy as entropy
from dissensus.evaluation.metrics.distances import jsd as jsd
from dissensus.evaluation.metrics.distances import kl as kl
from dissensus.evaluation.metrics.distances import manhattan as manhattan
from dissensus.evaluation.metrics.distances import reverse_kl as reverse_kl
from dissensus.evaluation.metrics.distances import rps as rps
from dissensus.evaluation.metrics.distances import soft_accuracy as soft_accuracy
from dissensus.evaluation.metrics.distances import soft_nll as soft_nll
from dissensus.evaluation.metrics.distances import tvd as tvd
from dissensus.evaluation.metrics.distances import wasserstein as wasserstein
from dissensus.evaluation.metrics.distributions import check_distributions as check_distributions
from dissensus.evaluation.metrics.ranking import accuracy as accuracy
from dissensus.evaluation.metrics.ranking import accuracy_original as accuracy_original
from dissensus.evaluation.metrics.ranking import brier_majority as brier_majority
from dissensus.evaluation.metrics.ranking import expected_accuracy as expected_accuracy
from dissensus.evaluation.metrics.ranking import rank_cs as rank_cs
from dissensus.evaluation.metrics.ranking import second_best_accuracy as second_best_accuracy
from dissensus.evaluation.metrics.set_level import entropy_pearson as entropy_pearson
from dissensus.evaluation.metrics.set_level import entropy_spearman as entropy_spearman
from dissensus.evaluation.metrics.set_level import mode_shift_rate as mode_shift_rate
from dissensus.evaluation.metrics.set_level import po_jsd as po_jsd
from dissensus.evaluation.metrics.set_level import soft_macro_f1 as soft_macro_f1
from dissensus.evaluation.metrics.set_level import soft_micro_f1 as soft_micro_f1
