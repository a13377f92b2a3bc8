"""Who said what: tables, files, validation, agreement, simulated panels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus.votes.agreement import Agreement as Agreement
    from dissensus.votes.agreement import fleiss_kappa as fleiss_kappa
    from dissensus.votes.agreement import gwet_ac1 as gwet_ac1
    from dissensus.votes.agreement import krippendorff_alpha as krippendorff_alpha
    from dissensus.votes.counting import count_votes as count_votes
    from dissensus.votes.inspection import Inspection as Inspection
    from dissensus.votes.inspection import inspect as inspect
    from dissensus.votes.reading import read_votes as read_votes
    from dissensus.votes.sampling import subsample as subsample
    from dissensus.votes.sides import swap_sides as swap_sides
    from dissensus.votes.simulate import Habits as Habits
    from dissensus.votes.simulate import simulate_responses as simulate_responses
    from dissensus.votes.simulate import simulate_votes as simulate_votes
    from dissensus.votes.table import Annotators as Annotators
    from dissensus.votes.table import Votes as Votes
    from dissensus.votes.table import votes_from_counts as votes_from_counts
    from dissensus.votes.writing import write_votes as write_votes

__getattr__, __dir__ = lazy_names(__name__)
