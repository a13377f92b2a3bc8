"""Runs that did not train: they are kept, marked, and never scored as trained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dissensus_train.training.models import network_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dissensus_train.training.data import TrainingData
    from dissensus_train.training.run import Run


def why_failed(
    run: Run, data: TrainingData, *, history: Mapping[str, np.ndarray[Any, Any]], weights: Mapping[str, Any]
) -> str:
    """Why a run counts as failed; empty where it trained.

    A run failed where its training loss became NaN or infinite in any epoch, where the weights that it kept are not
    finite, or where they are still those it started from.
    """
    lost = np.flatnonzero(~np.isfinite(history["train_loss"]))
    if lost.size:
        return f"its training loss was {history['train_loss'][lost[0]]} in epoch {lost[0] + 1}"
    start = dict(network_of(run, data, checked=False).named_parameters())
    if not all(np.isfinite(weights[name]).all() for name in start):
        return "its weights are no longer finite numbers"
    # A network without parameters has nothing to learn, and has not failed to.
    if start and all(np.array_equal(weights[name], value.detach().numpy()) for name, value in start.items()):
        return "its weights never left the start"
    return ""
