"""Models, the run, the engines and the run store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus.training.data import TrainingData as TrainingData
    from dissensus.training.data import split_items as split_items
    from dissensus.training.engine import choose_engine as choose_engine
    from dissensus.training.engine import train as train
    from dissensus.training.models import MODELS as MODELS
    from dissensus.training.models import build as build
    from dissensus.training.on_ray import Cluster as Cluster
    from dissensus.training.people import People as People
    from dissensus.training.restoring import pair_probabilities as pair_probabilities
    from dissensus.training.run import Run as Run
    from dissensus.training.run import RunResult as RunResult
    from dissensus.training.run import people_run as people_run
    from dissensus.training.run import run_on as run_on
    from dissensus.training.settings import REGIMES as REGIMES
    from dissensus.training.settings import Training as Training
    from dissensus.training.store import RunStore as RunStore

__getattr__, __dir__ = lazy_names(__name__)
