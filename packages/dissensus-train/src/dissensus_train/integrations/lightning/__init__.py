"""Delivery and recording as a callback of Lightning.

Examples:
    >>> import lightning, numpy as np, torch
    >>> import dissensus as dis
    >>> from dissensus_train.integrations import Recorder
    >>> class Linear(torch.nn.Linear, lightning.LightningModule):
    ...     def training_step(self, batch, _):
    ...         inputs, target, item = batch
    ...         return dis.losses.cross_entropy(self(inputs), target).mean()
    ...     def configure_optimizers(self):
    ...         return torch.optim.SGD(self.parameters(), lr=0.1)
    >>> labels = dis.label(dis.simulate_votes(np.full((6, 2), 0.5), 3, annotators=5, seed=0))
    >>> batches = dis.loader(torch.eye(6), dis.deliver("sls", labels), batch_size=3)
    >>> callback = dis.lightning.DeliveryCallback(batches, recorder := Recorder(labels.items))
    >>> quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    >>> trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", callbacks=[callback],
    ...     enable_checkpointing=False, log_every_n_steps=1, **quiet)
    >>> trainer.fit(Linear(6, 2), batches)
    >>> recorder.dynamics["train"].shape
    (2, 6, 2)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus_train.integrations.lightning.callback import DeliveryCallback as DeliveryCallback

__getattr__, __dir__ = lazy_names(__name__)
