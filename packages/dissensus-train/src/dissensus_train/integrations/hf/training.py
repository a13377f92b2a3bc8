"""`Trainer`: that of Hugging Face, with a delivery."""

from __future__ import annotations

from dissensus.parts import installed
from dissensus_train.integrations.hf.delivering import Delivering

installed("transformers", "hf", wanted_by="dis.hf.Trainer")
installed("accelerate", "hf", wanted_by="dis.hf.Trainer")

import transformers  # noqa: E402 - what is missing is named first


class Trainer(Delivering, transformers.Trainer):  # type: ignore[misc]
    """`transformers.Trainer` with `delivery=`, and `loss=` where it is not cross-entropy; see `Delivering`.

    trainer = dis.hf.Trainer(model, args, train_dataset=train, delivery=dis.deliver("multipass", labels))
    """
