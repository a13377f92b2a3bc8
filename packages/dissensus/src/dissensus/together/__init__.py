"""Model and people together: sets that cover people, votes joined with predictions, and when to ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus.together.combined import Combined as Combined
    from dissensus.together.combined import combine as combine
    from dissensus.together.deferral import Deferral as Deferral
    from dissensus.together.deferral import defer as defer
    from dissensus.together.sets import PredictionSets as PredictionSets
    from dissensus.together.sets import prediction_sets as prediction_sets

__getattr__, __dir__ = lazy_names(__name__)
