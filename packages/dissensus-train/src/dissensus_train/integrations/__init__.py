"""Deliveries and recorders for training loops that are not ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus_train.integrations.loading import Delivered as Delivered
    from dissensus_train.integrations.loading import Loader as Loader
    from dissensus_train.integrations.loading import loader as loader
    from dissensus_train.integrations.recorder import Recorder as Recorder
    from dissensus_train.integrations.recorder import recorded_items as recorded_items

__getattr__, __dir__ = lazy_names(__name__)
