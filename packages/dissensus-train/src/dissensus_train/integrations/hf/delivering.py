"""What a delivery changes in a Hugging Face `Trainer`: its examples, its batches and its loss."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from dissensus.errors import InputError
from dissensus_train.integrations.hf.rows import OWN_LABELS
from dissensus_train.integrations.loading import Delivered, ExampleOrder
from dissensus_train.training.losses import cross_entropy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from dissensus_train.delivery import Delivery
    from dissensus_train.training.losses import Loss


class Delivering:
    """A mixin for `transformers.Trainer` and its subclasses: `class Mine(dis.hf.Delivering, MyTrainer)`.

    In every epoch each training example has the target that its delivery gives it, in the order of our engines, with
    any number of workers and processes. Batches hold `labels`, (batch,) class indices or (batch, classes)
    distributions, and `item`, (batch,) the place of each item in the training set; `compute_loss` takes both out
    before the model is called, so a model never chooses a loss by the type of its labels (for distributions it would
    silently choose one of many yes-or-no questions).

    Evaluation sets keep their own `labels`, of either kind, and are scored by the same loss; one whose batches have
    none, by the trainer's own.
    """

    args: Any
    model: Any
    data_collator: Any
    train_dataset: Any
    label_smoother: Any
    compute_loss_func: Any

    def __init__(self, *args: Any, delivery: Delivery, loss: Loss = cross_entropy, **options: Any) -> None:
        """Make the trainer.

        Args:
            args: of the `Trainer`.
            delivery: over the items of `train_dataset`, in its order (see `labelled`), on the CPU.
            loss: of `dis.losses`, or any that gives one value per item. One with weights, as `RewardLoss`, is trained
                as a part of the model, and saved with it.
            options: of the `Trainer`.
        """
        super().__init__(*args, **options)
        if self.train_dataset is None:
            raise InputError("dis.hf: there is no train_dataset; give the items that the delivery is of")
        if self.compute_loss_func is not None or self.label_smoother is not None:
            given = "compute_loss_func" if self.compute_loss_func is not None else "label_smoothing_factor"
            instead = "loss=..." if given == "compute_loss_func" else "the delivery label-smoothing"
            raise InputError(f"dis.hf: {given} is not used where a delivery is; give {instead} in its place")
        if getattr(self.args, "train_sampling_strategy", "random") != "random":
            raise InputError(
                f"dis.hf: train_sampling_strategy is '{self.args.train_sampling_strategy}', and examples come in the "
                "order of our engines; leave it 'random'"
            )
        if not callable(loss):
            raise InputError(f"dis.hf: the loss is {loss!r}, which cannot be called; give one of dis.losses")
        delivered = Delivered(self.train_dataset, delivery)
        if delivery.mixing(0) is not None:
            raise InputError(
                "dis.hf: this delivery mixes inputs, and tokens cannot be mixed; choose another, or train the network "
                "as hf:NAME in a study, where embeddings are mixed"
            )
        self.train_dataset = delivered
        self.delivered_loss = loss
        if isinstance(loss, torch.nn.Module):
            # What it learns is trained, shared between processes and saved as the model's own.
            self.model.add_module("delivered_loss", loss.to(self.args.device))
        # The loss is a mean over the batch, which the Trainer divides by the number of accumulated batches.
        self.model_accepts_loss_kwargs = False

    def get_train_dataloader(self) -> Any:
        """As ever, with delivered targets and items in every batch."""
        own = self.data_collator
        # Unused columns are removed from inputs alone: what was delivered is put beside them afterwards.
        self.data_collator = partial(_collated, self._get_collator_with_removed_columns(own, description="training"))  # type: ignore[attr-defined]
        try:
            return super().get_train_dataloader()  # type: ignore[misc]
        finally:
            self.data_collator = own

    def _get_train_sampler(self, train_dataset: Any = None) -> ExampleOrder:
        seed = self.args.seed if self.args.data_seed is None else self.args.data_seed
        return ExampleOrder(self.train_dataset if train_dataset is None else train_dataset, seed=seed)

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The mean of the loss over a batch; the model sees neither labels nor items."""
        if "labels" not in inputs:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)  # type: ignore[misc]
        outputs = model(**{name: value for name, value in inputs.items() if name not in ("labels", "item")})
        logits = outputs["logits"] if isinstance(outputs, dict) else outputs[0]
        loss = self.delivered_loss(logits.float(), inputs["labels"]).mean()
        return (loss, outputs) if return_outputs else loss


def _collated(
    collate: Callable[[list[Any]], Any], examples: Sequence[tuple[dict[str, Any], Tensor, Tensor]]
) -> dict[str, Any]:
    inputs, target, item = zip(*examples, strict=True)
    batch = collate([{name: x[name] for name in x if name not in OWN_LABELS} for x in inputs])
    return {**batch, "labels": torch.stack(target), "item": torch.stack(item)}
