"""Models, the run, the engines and the run store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus_train.training.annotator_side import People as People
    from dissensus_train.training.data import TrainingData as TrainingData
    from dissensus_train.training.data import split_items as split_items
    from dissensus_train.training.engine import choose_engine as choose_engine
    from dissensus_train.training.engine import train as train
    from dissensus_train.training.loop import one_thread as one_thread
    from dissensus_train.training.models import MODELS as MODELS
    from dissensus_train.training.models import build as build
    from dissensus_train.training.on_ray import Cluster as Cluster
    from dissensus_train.training.restoring import pair_probabilities as pair_probabilities
    from dissensus_train.training.run import Run as Run
    from dissensus_train.training.run import RunResult as RunResult
    from dissensus_train.training.run import people_run as people_run
    from dissensus_train.training.run import run_on as run_on
    from dissensus_train.training.settings import REGIMES as REGIMES
    from dissensus_train.training.settings import Training as Training
    from dissensus_train.training.store import RunStore as RunStore

__getattr__, __dir__ = lazy_names(__name__)
