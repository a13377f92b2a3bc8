"""Delivery and recording as a callback of Lightning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus.integrations.lightning.callback import DeliveryCallback as DeliveryCallback

__getattr__, __dir__ = lazy_names(__name__, {"DeliveryCallback": "callback"})
