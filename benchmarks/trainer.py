"""Fine-tuning beside a plain Hugging Face Trainer: the same tweets, network, soft targets, batches of 16 and AdamW.

    python benchmarks/trainer.py --data DATA --minilm FOLDER [--epochs 1]

HS-Brexit's training tweets (784, six annotators), one thread of a CPU; both fine-tune and then predict every tweet. CPU
seconds, alternating, the least of two. The Trainer pads each batch to its longest text, as its users do.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dissensus.items.shown import Items
from dissensus.labels.distribution import LabelDistribution
from dissensus_train.training.data import TrainingData
from dissensus_train.training.engine import train
from dissensus_train.training.run import run_on
from dissensus_train.training.settings import Training


def tweets(path: Path) -> TrainingData:
    """The official training file; the first 20 tweets are a test split, since there must be one."""
    rows = list(json.loads(path.read_text(encoding="utf-8")).values())
    counts = np.array([np.bincount([int(vote) for vote in row["annotations"].split(",")], minlength=2) for row in rows])
    labels = LabelDistribution(
        items=np.arange(len(rows)),
        classes=("0", "1"),
        probabilities=counts / counts.sum(axis=1, keepdims=True),
        counts=counts,
        panel_size=counts.sum(axis=1),
        scheme="frequency",
    )
    texts = np.array([row["text"] for row in rows], dtype=np.dtypes.StringDType())
    return TrainingData(
        name="HS-Brexit",
        features=np.zeros((len(rows), 0), dtype=np.float32),
        human=labels,
        targets={"frequency": labels},
        splits={"test": np.arange(20), "train": np.arange(20, len(rows))},
        items=Items(names=np.arange(len(rows)), texts=(texts,)),
        normalise=False,
    )


def ours(data: TrainingData, minilm: Path, epochs: int) -> float:
    settings = Training(optimiser="adamw", learning_rate=5e-5, weight_decay=0.01, batch_size=16, epochs=epochs)
    run = run_on(data, model=f"hf:{minilm}", target="frequency", delivery="soft", seed=0, training=settings)
    began = time.process_time()
    (result,) = train([run], data, engine="loop", device="cpu")
    assert not result.failed
    return time.process_time() - began


def theirs(data: TrainingData, minilm: Path, epochs: int) -> float:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer, Trainer, TrainingArguments

    assert data.items is not None
    began = time.process_time()
    tokeniser = AutoTokenizer.from_pretrained(minilm)
    network = AutoModelForSequenceClassification.from_pretrained(minilm, num_labels=2)
    ids = tokeniser(list(map(str, data.items.texts[0])), truncation=True)["input_ids"]
    rows = [
        {"input_ids": text, "labels": p.astype(np.float32)}
        for text, p in zip(ids, data.human.probabilities, strict=True)
    ]

    def collated(batch: list[dict[str, Any]]) -> dict[str, Any]:
        padded = tokeniser.pad([{"input_ids": row["input_ids"]} for row in batch], return_tensors="pt")
        return {**padded, "labels": torch.from_numpy(np.stack([row["labels"] for row in batch]))}

    def loss(outputs: Any, labels: Any, **_: Any) -> Any:
        return torch.nn.functional.cross_entropy(outputs["logits"], labels)

    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=16,
            per_device_eval_batch_size=64,
            num_train_epochs=epochs,
            learning_rate=5e-5,
            weight_decay=0.01,
            use_cpu=True,
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
        )
        trainer = Trainer(
            network,
            arguments,
            train_dataset=rows[20:],
            data_collator=collated,
            compute_loss_func=loss,
        )
        trainer.train()
        trainer.predict(rows)
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of lewidi-2023")
    parser.add_argument("--minilm", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(1)
    data = tweets(given.data / "lewidi-2023" / "HS-Brexit_train.json")
    sides = [(ours(data, given.minilm, given.epochs), theirs(data, given.minilm, given.epochs)) for _ in range(2)]
    mine, plain = (min(times) for times in zip(*sides, strict=True))
    print(f"ours {mine:.1f} s, Trainer {plain:.1f} s of CPU: {plain / mine:.2f}x (bar 1.3x)")


if __name__ == "__main__":
    main()
