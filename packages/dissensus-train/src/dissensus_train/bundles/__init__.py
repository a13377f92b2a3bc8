"""A trained model as a folder: it predicts on a machine that has never seen the votes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus_train.bundles.comparing import DeployedComparison as DeployedComparison
    from dissensus_train.bundles.comparing import compare_deployed as compare_deployed
    from dissensus_train.bundles.loading import TrainedModel as TrainedModel
    from dissensus_train.bundles.loading import load_model as load_model
    from dissensus_train.bundles.writing import export_bundle as export_bundle

__getattr__, __dir__ = lazy_names(__name__)
