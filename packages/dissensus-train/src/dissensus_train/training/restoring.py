"""From what a run left back to its network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from dissensus.errors import InputError
from dissensus_train.training.annotator_side import mixed
from dissensus_train.training.inputs import network_inputs
from dissensus_train.training.loop import log_probabilities
from dissensus_train.training.models import network_of, panel_in
from dissensus_train.training.run import RunResult, data_fingerprint

if TYPE_CHECKING:
    from torch import nn

    from dissensus.arrays import Codes, Ints
    from dissensus_train.training.data import TrainingData


def trained_model(result: RunResult, data: TrainingData) -> nn.Module:
    """The network of a run with the weights it kept, in evaluation mode, on the CPU."""
    run = result.run
    names = ("target", "delivery", "training", "model", "people")
    if run.data != data_fingerprint(data, **{name: getattr(run, name) for name in names}):
        raise InputError(
            f"run {run.key} was trained on other data than {data.name} is now; run the study again, or give its data"
        )
    if not result.weights:
        raise InputError(f"run {run.key} comes without weights; load it with its weights, or run the study again")
    model = network_of(run, data)
    try:
        model.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in result.weights.items()})
    except RuntimeError as error:
        why = str(error).splitlines()[-1].strip()
        raise InputError(
            f"run {run.key}: its weights do not fit the model {run.model} ({why}); run it again"
        ) from error
    return model.eval()


def pair_probabilities(
    result: RunResult, data: TrainingData, item: Ints | Codes, annotator: Ints | Codes
) -> np.ndarray[Any, np.dtype[np.float32]]:
    """(pairs, classes) what a stored run says that people would answer; a model that knows nobody asks only the item.

    `item` and `annotator`, (pairs,), are places in the data and in the annotators of its votes; -1 is somebody who was
    never heard.
    """
    model, people = trained_model(result, data), result.run.people
    features = network_inputs(model, data, torch.device("cpu"))
    different, place = np.unique(np.asarray(item, dtype=np.int64), return_inverse=True)
    panel = log_probabilities(model, features, torch.from_numpy(different), result.run.training).exp().numpy()[place]
    if people is None:
        return np.asarray(panel)
    known = panel_in(data, people)
    unit = np.append(known.unit, len(known.units))[annotator]
    rows, who = torch.from_numpy(different[place]), torch.from_numpy(unit)
    own = log_probabilities(model, features, rows, result.run.training, who=who).exp().numpy()
    return np.asarray(mixed(own, panel, known.heard[unit]))
