"""Learn from annotator disagreement instead of averaging it away.

Votes:     read_votes, write_votes, inspect, load, simulate_votes, simulate_responses, subsample, count_votes, Votes
Labels:    label, LabelDistribution
Training:  deliver, loader, losses, hf, lightning, sklearn; whole studies: run, open_study, load_model
Scores:    evaluate, Evaluator, report, plot; where a run ended: basins

Errors that a user can cause are `InputError`. Each name is loaded when it is first used, so that `import dissensus`
costs next to nothing.

Examples:
    >>> import numpy as np
    >>> import dissensus as dis
    >>> votes = dis.simulate_votes(np.full((4, 2), 0.5), 3, annotators=5, seed=0)
    >>> votes, dis.label(votes)
    (Votes(12 votes, 4 items, 2 classes, 5 annotators), LabelDistribution(4 items, 2 classes, frequency))
    >>> dis.__version__.split(".")[0]
    '0'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus import basins as basins
    from dissensus import plot as plot
    from dissensus.bundles import load_model as load_model
    from dissensus.datasets import load as load
    from dissensus.delivery import deliver as deliver
    from dissensus.errors import InputError as InputError
    from dissensus.evaluation import Evaluator as Evaluator
    from dissensus.evaluation import evaluate as evaluate
    from dissensus.integrations import hf as hf
    from dissensus.integrations import lightning as lightning
    from dissensus.integrations import loader as loader
    from dissensus.integrations import sklearn as sklearn
    from dissensus.labels import LabelDistribution as LabelDistribution
    from dissensus.labels import label as label
    from dissensus.report.writing import write_report as report
    from dissensus.studies import open_study as open_study
    from dissensus.studies import run as run
    from dissensus.training import losses as losses
    from dissensus.version import __version__ as __version__
    from dissensus.votes import Votes as Votes
    from dissensus.votes import count_votes as count_votes
    from dissensus.votes import inspect as inspect
    from dissensus.votes import read_votes as read_votes
    from dissensus.votes import simulate_responses as simulate_responses
    from dissensus.votes import simulate_votes as simulate_votes
    from dissensus.votes import subsample as subsample
    from dissensus.votes import write_votes as write_votes

__all__ = [
    "Evaluator",
    "InputError",
    "LabelDistribution",
    "Votes",
    "__version__",
    "basins",
    "count_votes",
    "deliver",
    "evaluate",
    "hf",
    "inspect",
    "label",
    "lightning",
    "load",
    "load_model",
    "loader",
    "losses",
    "open_study",
    "plot",
    "read_votes",
    "report",
    "run",
    "simulate_responses",
    "simulate_votes",
    "sklearn",
    "subsample",
    "write_votes",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "Evaluator": "evaluation",
        "InputError": "errors",
        "LabelDistribution": "labels",
        "Votes": "votes",
        "basins": "basins",
        "count_votes": "votes",
        "deliver": "delivery",
        "evaluate": "evaluation",
        "hf": "integrations.hf",
        "inspect": "votes",
        "label": "labels",
        "__version__": "version",
        "lightning": "integrations.lightning",
        "load": "datasets",
        "load_model": "bundles",
        "loader": "integrations",
        "losses": "training.losses",
        "open_study": "studies",
        "plot": "plot",
        "read_votes": "votes",
        "report": "report",
        "run": "studies",
        "simulate_responses": "votes",
        "simulate_votes": "votes",
        "sklearn": "integrations.sklearn",
        "subsample": "votes",
        "write_votes": "votes",
    },
)
