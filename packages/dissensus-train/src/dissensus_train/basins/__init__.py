"""Where a run ended: curvature, sharpness and surfaces of the loss around its weights, each with its own error.

Examples:
    >>> import torch
    >>> import dissensus as dis
    >>> model = torch.nn.Linear(2, 2, bias=False).eval()
    >>> _ = torch.nn.init.zeros_(model.weight)
    >>> curvature = dis.basins.hessian(model, torch.eye(2), torch.full((2, 2), 0.5))
    >>> dis.basins.top_eigenvalues(curvature).values.round(4).tolist()
    [0.25]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus_train.basins.alignment import aligned as aligned
    from dissensus_train.basins.density import spectral_density as spectral_density
    from dissensus_train.basins.explanations import ExplanationStability as ExplanationStability
    from dissensus_train.basins.explanations import explain as explain
    from dissensus_train.basins.explanations import explanation_stability as explanation_stability
    from dissensus_train.basins.lanczos import top_eigenvalues as top_eigenvalues
    from dissensus_train.basins.last_layer import cka as cka
    from dissensus_train.basins.last_layer import gradient_variance as gradient_variance
    from dissensus_train.basins.measuring import Basin as Basin
    from dissensus_train.basins.measuring import BasinPair as BasinPair
    from dissensus_train.basins.measuring import compare_basins as compare_basins
    from dissensus_train.basins.measuring import compare_explanations as compare_explanations
    from dissensus_train.basins.measuring import measure as measure
    from dissensus_train.basins.measuring import measure_basins as measure_basins
    from dissensus_train.basins.objectives import objective as objective
    from dissensus_train.basins.operators import Operator as Operator
    from dissensus_train.basins.operators import gauss_newton as gauss_newton
    from dissensus_train.basins.operators import hessian as hessian
    from dissensus_train.basins.settings import BasinSettings as BasinSettings
    from dissensus_train.basins.sharpness import average_sharpness as average_sharpness
    from dissensus_train.basins.sharpness import worst_case_sharpness as worst_case_sharpness
    from dissensus_train.basins.summary import QUANTITIES as QUANTITIES
    from dissensus_train.basins.summary import BasinRow as BasinRow
    from dissensus_train.basins.summary import summarise_basins as summarise_basins
    from dissensus_train.basins.surfaces import loss_barrier as loss_barrier
    from dissensus_train.basins.surfaces import loss_line as loss_line
    from dissensus_train.basins.surfaces import loss_plane as loss_plane
    from dissensus_train.basins.traces import trace as trace

__getattr__, __dir__ = lazy_names(__name__)
