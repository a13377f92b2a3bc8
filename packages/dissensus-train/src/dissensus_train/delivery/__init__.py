"""Label distributions and votes to what the loss sees, epoch by epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus_train.delivery.deliveries import Delivery as Delivery
    from dissensus_train.delivery.deliveries import Mixing as Mixing
    from dissensus_train.delivery.named import DELIVERIES as DELIVERIES
    from dissensus_train.delivery.named import HARD as HARD
    from dissensus_train.delivery.named import ONE_TARGET as ONE_TARGET
    from dissensus_train.delivery.named import deliver as deliver
    from dissensus_train.delivery.named import delivery_options as delivery_options
    from dissensus_train.delivery.named import one_by_one as one_by_one
    from dissensus_train.delivery.named import ordered_judgements as ordered_judgements
    from dissensus_train.delivery.named import reads_votes as reads_votes
    from dissensus_train.delivery.named import shows_one_target as shows_one_target

__getattr__, __dir__ = lazy_names(__name__)
