"""What models predicted for each item after every epoch: data maps, forgetting, divergence between epochs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus.dynamics.divergence import EpochDivergence as EpochDivergence
    from dissensus.dynamics.divergence import StratumDivergence as StratumDivergence
    from dissensus.dynamics.divergence import epoch_divergence as epoch_divergence
    from dissensus.dynamics.forgetting import Forgetting as Forgetting
    from dissensus.dynamics.forgetting import forgetting_events as forgetting_events
    from dissensus.dynamics.human_uncertainty import UncertaintyCorrelation as UncertaintyCorrelation
    from dissensus.dynamics.human_uncertainty import uncertainty_by_system as uncertainty_by_system
    from dissensus.dynamics.human_uncertainty import uncertainty_correlations as uncertainty_correlations
    from dissensus.dynamics.maps import DataMap as DataMap
    from dissensus.dynamics.maps import MapMeans as MapMeans
    from dissensus.dynamics.maps import data_map as data_map
    from dissensus.dynamics.maps import data_maps as data_maps
    from dissensus.dynamics.rank_correlation import resampled_spearman as resampled_spearman
    from dissensus.dynamics.recorded import read_dynamics as read_dynamics
    from dissensus.dynamics.regions import Regions as Regions
    from dissensus.dynamics.regions import regions_by_rank as regions_by_rank
    from dissensus.dynamics.regions import regions_by_rule as regions_by_rule

__getattr__, __dir__ = lazy_names(__name__)
