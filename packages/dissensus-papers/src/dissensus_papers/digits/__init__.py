"""Ambiguous digits, and a panel that sees them: a set made from nothing that people must judge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus_papers.digits.ambiguous import AmbiguousDigits as AmbiguousDigits
    from dissensus_papers.digits.ambiguous import Blending as Blending
    from dissensus_papers.digits.ambiguous import ambiguous_digits as ambiguous_digits
    from dissensus_papers.digits.digits import Digits as Digits
    from dissensus_papers.digits.digits import read_digits as read_digits
    from dissensus_papers.digits.panel import Eyes as Eyes
    from dissensus_papers.digits.panel import SimulatedPanel as SimulatedPanel
    from dissensus_papers.digits.panel import perceive as perceive
    from dissensus_papers.digits.panel import simulate_panel as simulate_panel
    from dissensus_papers.digits.simulated_digits import DigitsRecipe as DigitsRecipe
    from dissensus_papers.digits.simulated_digits import SimulatedSet as SimulatedSet
    from dissensus_papers.digits.simulated_digits import simulated_set as simulated_set

__getattr__, __dir__ = lazy_names(__name__)
