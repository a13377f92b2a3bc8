"""Deliveries in the `Trainer` of Hugging Face and TRL's `RewardTrainer`, and `datasets` in the order of labels.

Examples:
    >>> import datasets, numpy as np, tempfile, torch, transformers
    >>> import dissensus as dis
    >>> labels = dis.label(dis.simulate_votes(np.full((8, 2), 0.5), 3, annotators=5, seed=0))
    >>> texts = datasets.Dataset.from_dict({"item": labels.items[::-1].tolist(), "input_ids": [[0, 1]] * 8})
    >>> rows = dis.hf.labelled(texts, labels)
    >>> rows["item"][:] == labels.items.tolist(), rows["labels"][0] == labels.probabilities[0].astype("f").tolist()
    (True, True)
    >>> size = {"hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 4}
    >>> model = transformers.BertForSequenceClassification(transformers.BertConfig(vocab_size=2, num_labels=2, **size))
    >>> folder = tempfile.TemporaryDirectory()
    >>> settings = transformers.TrainingArguments(folder.name, num_train_epochs=1, report_to="none", use_cpu=True,
    ...     save_strategy="no", per_device_train_batch_size=4, disable_tqdm=True, dataloader_pin_memory=False)
    >>> trainer = dis.hf.Trainer(model, settings, train_dataset=rows, delivery=dis.deliver("sls", labels))
    >>> trainer.train().global_step  # doctest: +ELLIPSIS
    {'train_runtime': ...}
    2
    >>> class Mine(dis.hf.Delivering, transformers.Trainer):
    ...     pass
    >>> mine = Mine(model, settings, train_dataset=rows, delivery=dis.deliver("soft", labels))
    >>> batch = next(iter(mine.get_train_dataloader()))
    >>> sorted(batch), tuple(batch["labels"].shape)
    (['input_ids', 'item', 'labels'], (4, 2))
    >>> folder.cleanup()

    A reward model learns from votes on pairs of answers, here 2 for the left, 1 tie and none for the right:

    >>> loss, rewards = dis.hf.RewardLoss(classes=3), torch.tensor([[1.0], [0.0]])
    >>> round(loss(rewards, torch.tensor([[2 / 3, 1 / 3, 0.0]])).item(), 4)
    0.8059
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus_train.integrations.hf.delivering import Delivering as Delivering
    from dissensus_train.integrations.hf.rows import labelled as labelled
    from dissensus_train.integrations.hf.training import Trainer as Trainer
    from dissensus_train.training.pairs import RewardLoss as RewardLoss

__getattr__, __dir__ = lazy_names(__name__)
