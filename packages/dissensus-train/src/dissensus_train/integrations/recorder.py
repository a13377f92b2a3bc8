"""`Recorder`: every item's probabilities after each epoch, from a training loop that is not ours."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, get_args

import numpy as np
from scipy.special import softmax

from dissensus.arrays import Ints, Names, first_listed
from dissensus.errors import InputError
from dissensus.evaluation.metrics.arithmetic import to_numpy
from dissensus.evaluation.probabilities import Given, checked_logits, checked_probabilities, tolerance_of
from dissensus_train.training.data import TRAIN
from dissensus_train.training.run import Run, RunResult
from dissensus_train.training.settings import Training
from dissensus_train.training.store import RunWriter

ITEMS: Final = "items.json"
"""The file, beside those of the run store, that says by split which item is in which row."""


class Recorder:
    """Collects a model's probabilities, from batches in any order, and writes the files that our engines write.

        recorder = Recorder(item_ids, model="my-net", target="majority", seed=0)
        for epoch in range(40):
            ...                                               # train as usual
            model.eval()
            with torch.no_grad():
                for ids, x in evaluation_loader:
                    recorder.record(ids, model(x))
            recorder.end_epoch()
        recorder.save("store")

    Record in a separate pass after each epoch, in evaluation mode: outputs collected during training come from as many
    different models as there are batches.

    Attributes:
        items: by split, (items,) names in the order of the recorded rows.
        given: whether `record` is given logits or probabilities.
    """

    def __init__(
        self,
        items: Any,
        *,
        given: Given = "logits",
        model: str = "own model",
        target: str = "own target",
        delivery: str = "own loop",
        seed: int = 0,
    ) -> None:
        """Start a recording.

        Args:
            items: names of the items to be recorded after every epoch (whole numbers or text), or by split; without
                splits they are the split `train`.
            given: what `record` is given: logits, or probabilities.
            model: name of the model, as the run is stored.
            target: name of what it is trained towards.
            delivery: name of how the target reaches the loss.
            seed: of the run.
        """
        if given not in get_args(Given):
            raise InputError(f"recorder: outputs are given as logits or as probabilities, not as '{given}'")
        by_split = items if isinstance(items, Mapping) else {TRAIN: items}
        self.items: dict[str, Names] = {name: _names(ids, f"split '{name}'") for name, ids in by_split.items()}
        self.given = given
        self._about: dict[str, Any] = {"model": model, "target": target, "delivery": delivery, "seed": seed}
        self._names = _joined(list(self.items.values()))
        # A batch is looked up thousands of times an epoch; sorting all names for each would take longer than training.
        self._row = {name: row for row, name in enumerate(self._names.tolist())}
        self._recorded = np.zeros(self._names.size, dtype=np.bool_)
        self._like_probabilities = True
        self._probabilities: np.ndarray[Any, np.dtype[np.float32]] | None = None
        self._epochs: list[np.ndarray[Any, np.dtype[np.float16]]] = []

    @property
    def ended(self) -> int:
        """How many epochs have ended."""
        return len(self._epochs)

    @property
    def _where(self) -> str:
        return f"recorder, epoch {len(self._epochs)}"

    @property
    def dynamics(self) -> dict[str, np.ndarray[Any, np.dtype[np.float16]]]:
        """By split, (epochs, items, classes) probabilities after each ended epoch."""
        if not self._epochs:
            return {}
        return {name: np.stack([epoch[rows] for epoch in self._epochs]) for name, rows in self._rows().items()}

    def record(self, item_ids: Any, outputs: Any) -> None:
        """Keep what the model predicts for these items now.

        Args:
            item_ids: (batch,) names: a tensor, an array, or a list.
            outputs: (batch, classes) logits or probabilities, as said when the recorder was made; tensor or array.
        """
        place = self._places(item_ids)
        probabilities = self._checked(outputs, place)
        if self._probabilities is None:
            self._probabilities = np.empty((self._names.size, probabilities.shape[1]), dtype=np.float32)
        self._probabilities[place] = probabilities
        self._recorded[place] = True

    def end_epoch(self) -> None:
        """Close the epoch; every item must have been recorded in it, once."""
        where, missing = self._where, np.flatnonzero(~self._recorded)
        if missing.size or self._probabilities is None:
            raise InputError(
                f"{where}: {missing.size:,} of {self._names.size:,} items were not recorded, the first is "
                f"{self._names[missing[0]]}; record every item in evaluation batches (no drop_last) before end_epoch"
            )
        if self.given == "logits" and self._like_probabilities:
            raise InputError(
                f"{where}: the logits of every item are 0 or more and sum to 1, so they are probabilities; make the "
                "recorder with given='probabilities', or record the model's outputs before softmax"
            )
        self._epochs.append(self._probabilities.astype(np.float16))
        self._recorded[:] = False
        self._like_probabilities = True

    def save(self, store: str | Path) -> str:
        """Write the recording as a run of a run store, whole or not at all, and return its key.

        `RunStore(store).load(key)` reads it. Its predictions are those of the last epoch, it has no weights, and of its
        training settings only the number of epochs is known. A recording of other numbers under the same items, names,
        seed and number of epochs is refused, and what is stored stays.
        """
        if not self._epochs or self._probabilities is None:
            raise InputError("recorder: no epoch has ended; call end_epoch() after each epoch, then save")
        if self._recorded.any():
            raise InputError(
                f"{self._where}: {int(self._recorded.sum()):,} items were recorded and the epoch "
                "has not ended; call end_epoch() before save"
            )
        result = self._result()
        with RunWriter(Path(store)) as writer:
            writer.save(result, beside={ITEMS: json.dumps(self._listed())})
            kept = writer.store.dynamics(result.run.key)
        if any(not np.array_equal(kept.get(name, ()), recorded) for name, recorded in result.dynamics.items()):
            run = result.run
            raise InputError(
                f"{store}: run {run.key} of model '{run.model}', target '{run.target}', delivery '{run.delivery}' and "
                f"seed {run.seed} is stored with other numbers; give each run names or a seed of its own, such as "
                f"Recorder(items, seed={run.seed + 1}), or remove {Path(store) / 'runs' / run.key}"
            )
        return result.run.key

    def _places(self, item_ids: Any) -> Ints:
        """(batch,) the row of each item; unknown and repeated items are refused."""
        where, wanted = self._where, _as_names(item_ids)
        if wanted.ndim != 1:
            raise InputError(f"{where}: item ids of shape {wanted.shape}; give a flat list, one id per row of outputs")
        if (wanted.dtype.kind in "iu") != (self._names.dtype.kind in "iu"):
            raise InputError(
                f"{where}: item ids are {_kind(wanted)} and the recorder was made with {_kind(self._names)}; give the "
                "same ids"
            )
        nearest = np.array([self._row.get(name, -1) for name in wanted.tolist()], dtype=np.int64)
        unknown = nearest < 0
        if unknown.any():
            raise InputError(
                f"{where}: item {wanted[unknown][0]} is not one that the recorder was made with; give it the ids of "
                "all recorded items when it is made"
            )
        seen = self._recorded[nearest] | ~first_listed(nearest)
        if seen.any():
            raise InputError(
                f"{where}: item {wanted[seen][0]} is recorded twice; record each item once per epoch (a sampler that "
                "fills up batches repeats items), and call end_epoch() between epochs"
            )
        return nearest

    def _checked(self, outputs: Any, place: Ints) -> np.ndarray[Any, Any]:
        """(batch, classes) probabilities of a batch."""
        where, values = self._where, np.asarray(to_numpy(outputs))
        if values.ndim != 2 or len(values) != len(place):
            raise InputError(
                f"{where}: outputs of shape {values.shape} for {len(place)} items; give one row of classes per item"
            )
        if self._probabilities is not None and values.shape[1] != self._probabilities.shape[1]:
            raise InputError(
                f"{where}: outputs for {values.shape[1]} classes after outputs for {self._probabilities.shape[1]}; "
                "record the same classes every time"
            )
        names, tolerance = self._names[place], tolerance_of(outputs)
        if self.given == "probabilities":
            return np.asarray(checked_probabilities(outputs, where, items=names)[0])
        logits = checked_logits(values, where, items=names)[0]
        self._like_probabilities &= bool((logits >= 0).all() and (np.abs(logits.sum(axis=1) - 1) < tolerance).all())
        return np.asarray(softmax(logits, axis=1))

    def _rows(self) -> dict[str, slice]:
        ends = np.cumsum([len(names) for names in self.items.values()]).tolist()
        return {name: slice(end - len(names), end) for (name, names), end in zip(self.items.items(), ends, strict=True)}

    def _listed(self) -> dict[str, list[Any]]:
        return {name: ids.tolist() for name, ids in self.items.items()}

    def _result(self) -> RunResult:
        assert self._probabilities is not None
        data = f"recorded-{hashlib.sha256(json.dumps(self._listed()).encode()).hexdigest()[:16]}"
        return RunResult(
            run=Run(training=Training(epochs=len(self._epochs), dynamics=True), data=data, **self._about),
            history={},
            chosen_epoch=len(self._epochs) - 1,
            predictions={name: self._probabilities[rows] for name, rows in self._rows().items()},
            dynamics=self.dynamics,
            weights={},
            timing={"engine": "recorder"},
        )


def recorded_items(store: str | Path, key: str) -> dict[str, Names]:
    """By split, (items,) the names of the rows of a recording, by the key that `Recorder.save` returned."""
    path = Path(store) / "runs" / key / ITEMS
    try:
        by_split = json.loads(path.read_text(encoding="utf-8"))
        return {name: _names(ids, f"{path}, split '{name}'") for name, ids in by_split.items()}
    except (OSError, ValueError, AttributeError) as error:
        raise InputError(
            f"{path}: the names of recorded items cannot be read ({error}); save the recording again"
        ) from error


def _as_names(ids: Any) -> Names:
    """Whole numbers as int64, everything else as text."""
    array = to_numpy(ids)
    return array.astype(np.int64) if array.dtype.kind in "iu" else array.astype(np.dtypes.StringDType())


def _names(ids: Any, where: str) -> Names:
    names = _as_names(list(ids) if isinstance(ids, (set, frozenset, range)) else ids)
    if names.ndim != 1 or not names.size:
        raise InputError(
            f"recorder: the item ids of {where} have shape {names.shape}; give one id per item, at least one"
        )
    return names


def _joined(splits: list[Names]) -> Names:
    if len({names.dtype.kind for names in splits}) > 1:
        raise InputError(
            "recorder: some splits have whole numbers as item ids and others text; use one of them for all"
        )
    if not splits:
        raise InputError("recorder: there are no splits; give the ids of the items to be recorded")
    names = np.concatenate(splits)
    ascending = np.sort(names)
    repeated = ascending[1:] == ascending[:-1]
    if repeated.any():
        raise InputError(
            f"recorder: item {ascending[1:][repeated][0]} is given twice; give each item once, in one split only"
        )
    return names


def _kind(names: Names) -> str:
    return "whole numbers" if names.dtype.kind in "iu" else "text"
