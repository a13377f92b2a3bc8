"""Learn from annotator disagreement instead of averaging it away.

Names are loaded when they are first used, so that `import dissensus` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus import basins as basins
    from dissensus.bundles import load_model as load_model
    from dissensus.datasets import load as load
    from dissensus.delivery import deliver as deliver
    from dissensus.errors import InputError as InputError
    from dissensus.evaluation import evaluate as evaluate
    from dissensus.labels import LabelDistribution as LabelDistribution
    from dissensus.labels import label as label
    from dissensus.version import __version__ as __version__
    from dissensus.votes import Votes as Votes
    from dissensus.votes import count_votes as count_votes
    from dissensus.votes import inspect as inspect
    from dissensus.votes import read_votes as read_votes
    from dissensus.votes import simulate_responses as simulate_responses
    from dissensus.votes import simulate_votes as simulate_votes
    from dissensus.votes import subsample as subsample
    from dissensus.votes import write_votes as write_votes

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "InputError": "errors",
        "LabelDistribution": "labels",
        "Votes": "votes",
        "basins": "basins",
        "count_votes": "votes",
        "deliver": "delivery",
        "evaluate": "evaluation",
        "inspect": "votes",
        "label": "labels",
        "__version__": "version",
        "load": "datasets",
        "load_model": "bundles",
        "read_votes": "votes",
        "simulate_responses": "votes",
        "simulate_votes": "votes",
        "subsample": "votes",
        "write_votes": "votes",
    },
)
