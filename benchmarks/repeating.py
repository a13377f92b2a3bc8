"""Do the bits of a compiled run repeat from process to process? Needs a GPU; half a minute.

    python benchmarks/repeating.py

The same two ResNet-18 take 40 steps in processes that start side by side, each with a compiler cache of its own:
kernels whose shape is chosen by timing them may come out different on a busy machine, and sum in another order. Once as
PyTorch does it, and once with `torch._inductor.config.deterministic`. Prints a hash of the weights of each process.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from tempfile import TemporaryDirectory

import numpy as np
import torch

from dissensus.labels import label
from dissensus.votes import votes_from_counts
from dissensus_train.training.data import TrainingData
from dissensus_train.training.loop import same_bits
from dissensus_train.training.run import run_on
from dissensus_train.training.settings import Training
from dissensus_train.training.streams import StreamedRuns

EPOCHS, IMAGES, TESTED, PROCESSES = 2, 2560, 128, 3


def trained(*, deterministic: bool) -> str:
    """A hash of the weights after some steps."""
    torch._inductor.config.deterministic = deterministic
    generator = np.random.default_rng(0)
    human = label(votes_from_counts(generator.integers(0, 5, (IMAGES + TESTED, 10)) + 1), "frequency")
    images = generator.random((IMAGES + TESTED, 3, 32, 32), dtype=np.float32)
    splits = {"train": np.arange(IMAGES), "test": IMAGES + np.arange(TESTED)}
    data = TrainingData(name="noise", features=images, human=human, targets={"frequency": human}, splits=splits)
    settings = Training(
        optimiser="sgd", learning_rate=0.1, batch_size=128, epochs=EPOCHS, schedule="cosine", precision="bf16"
    )
    runs = [
        run_on(data, model="resnet18", target="frequency", delivery=name, seed=0, training=settings)
        for name in ("soft", "sls")
    ]
    together = StreamedRuns(runs, data, torch.device("cuda"))
    for one in together.singles:
        one.whole_batch = torch.compile(one.model, dynamic=False)
    with same_bits():
        for epoch in range(EPOCHS):
            together.train_epoch(epoch, np.full(len(runs), 0.1))
    digest = hashlib.sha256()
    for one in together.singles:
        for value in one.model.state_dict().values():
            digest.update(value.cpu().numpy().tobytes())
    return digest.hexdigest()[:16]


def main() -> None:
    """One process of each kind after the other in a process that was told which; else start them all."""
    if len(sys.argv) > 1:
        began = time.monotonic()
        print(sys.argv[1], trained(deterministic=sys.argv[1] == "deterministic"), f"{time.monotonic() - began:.0f} s")
        return
    with TemporaryDirectory() as place:
        started = [
            subprocess.Popen(
                [sys.executable, __file__, kind],
                env=os.environ | {"TORCHINDUCTOR_CACHE_DIR": f"{place}/{kind}-{number}"},
            )
            for number in range(PROCESSES)
            for kind in ("default", "deterministic")
        ]
        for process in started:
            process.wait()


if __name__ == "__main__":
    main()
