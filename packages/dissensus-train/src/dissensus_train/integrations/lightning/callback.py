"""`DeliveryCallback`: moves labels with the epochs of a Lightning `Trainer`, and records what the model says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from dissensus.errors import InputError
from dissensus.parts import installed
from dissensus_train.delivery.deliveries import Fixed
from dissensus_train.integrations.loading import Delivered, Loader
from dissensus_train.training.data import TRAIN
from dissensus_train.training.last_layer import in_evaluation_mode

installed("lightning", "lightning", wanted_by="dis.lightning")

from lightning.pytorch import Callback  # noqa: E402 - what is missing is named first

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dissensus_train.integrations.recorder import Recorder


class DeliveryCallback(Callback):  # type: ignore[misc]
    """Sets the epoch of a loader before each epoch, and records every item's probabilities after it.

        batches = dis.loader(dataset, delivery, batch_size=64)
        callback = dis.lightning.DeliveryCallback(batches, recorder=Recorder(labels.items))
        Trainer(callbacks=[callback]).fit(module, batches)

    Recording calls the module itself with the inputs of a batch, in evaluation mode and without gradients; it must
    answer with what the recorder was made for (logits, unless said otherwise). Where several processes train, the
    first of them records all items.
    """

    def __init__(
        self, loader: Loader, recorder: Recorder | None = None, *, datasets: Mapping[str, Any] | None = None
    ) -> None:
        """Make the callback.

        Args:
            loader: as `dis.loader` makes it; give the same to the `Trainer`.
            recorder: of the items; call its `save` after training. None records nothing.
            datasets: by split of the recorder, what inputs are taken from, in the order of the recorder's items; None
                is the loader's own dataset as the split `train`.
        """
        super().__init__()
        if not hasattr(loader, "set_epoch"):
            raise InputError(f"dis.lightning: a {type(loader).__name__} delivers nothing; give what dis.loader made")
        self.loader, self.recorder = loader, recorder
        self.datasets = dict(datasets or {TRAIN: loader.dataset.dataset})
        if recorder is None:
            return
        recorded = {split: len(names) for split, names in recorder.items.items()}
        given = {split: len(dataset) for split, dataset in self.datasets.items()}
        if recorded != given:
            raise InputError(
                f"dis.lightning: the recorder is of {_sizes(recorded)}, and the datasets are {_sizes(given)}; give a "
                "dataset for each split of the recorder, of the same items"
            )

    def on_load_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        if trainer.state.fn != "fit" or "loops" not in checkpoint:
            return
        # Lightning asks a loader for its first batches before it says which epoch it resumes in.
        epoch = int(checkpoint["loops"]["fit_loop"]["epoch_progress"]["current"]["processed"])
        self.loader.set_epoch(epoch)
        if self.recorder is not None and self.recorder.ended != epoch:
            raise InputError(
                f"dis.lightning: the checkpoint is of {epoch} epochs and the recorder holds {self.recorder.ended}; "
                "record in one go, or resume without a recorder"
            )

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self.loader.set_epoch(trainer.current_epoch)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        if self.recorder is None or not trainer.is_global_zero:
            return
        with torch.no_grad(), in_evaluation_mode(pl_module):
            for split, dataset in self.datasets.items():
                names, every = self.recorder.items[split], torch.arange(len(dataset))
                batches = Loader(
                    Delivered(dataset, Fixed(every, every)),
                    batch_size=self.loader.batch_size,
                    collate_fn=self.loader.collate_fn,
                )
                for inputs, _, item in batches:
                    self.recorder.record(names[item.numpy()], pl_module(trainer.strategy.batch_to_device(inputs)))
        self.recorder.end_epoch()


def _sizes(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{split} ({size:,} items)" for split, size in sizes.items())
