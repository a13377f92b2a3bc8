"""Deliveries in the `Trainer` of Hugging Face, and `datasets` in the order of labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus.integrations.hf.delivering import Delivering as Delivering
    from dissensus.integrations.hf.rows import labelled as labelled
    from dissensus.integrations.hf.training import Trainer as Trainer

__getattr__, __dir__ = lazy_names(__name__, {"Delivering": "delivering", "Trainer": "training", "labelled": "rows"})
