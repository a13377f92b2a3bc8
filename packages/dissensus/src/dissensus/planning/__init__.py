"""Plans: how many items, how many votes, which items next, and what that would cost and show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus.planning.beside_model import PlanBeside as PlanBeside
    from dissensus.planning.beside_model import plan_with_model as plan_with_model
    from dissensus.planning.comparing import Pair as Pair
    from dissensus.planning.comparing import real_pair as real_pair
    from dissensus.planning.comparing import simulated_pair as simulated_pair
    from dissensus.planning.fitted import FittedPanel as FittedPanel
    from dissensus.planning.fitted import fit_panel as fit_panel
    from dissensus.planning.next_items import NextVotes as NextVotes
    from dissensus.planning.next_items import next_votes as next_votes
    from dissensus.planning.planned import Plan as Plan
    from dissensus.planning.planned import Prices as Prices
    from dissensus.planning.planned import plan as plan
    from dissensus.planning.predicted import Prediction as Prediction
    from dissensus.planning.predicted import predict as predict

__getattr__, __dir__ = lazy_names(__name__)
