"""CIFAR-10H with soft delivery, one thing changed at a time: what moves soft NLL? Needs a GPU; about five minutes.

The basins paper (Gheibi, Ghazizadeh 2026) prints soft NLL 0.510 and accuracy 0.869 for soft delivery; ours is worse.
Eight runs side by side on the fleet's streams, each with one setting that the paper leaves open set another way, and
one run by a plain PyTorch loop: float32 with TF32, CIFAR's usual constants, no captured graph. A second seed shows how
far two runs of one setting lie apart.

    python benchmarks/cifar_settings.py
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dissensus_train.studies import open_study, read_study
from dissensus_train.training.batches import PADDING, crop_flip, padded
from dissensus_train.training.loop import log_probabilities, same_bits
from dissensus_train.training.models import resnet18
from dissensus_train.training.streams import StreamedRuns, begin_from_zero

if TYPE_CHECKING:
    from dissensus_train.training.data import TrainingData

GPU = torch.device("cuda")
EPOCHS, RATE = 200, 0.1
NAMES = (
    "as shipped",
    "nesterov momentum",
    "weights drawn by fan-out",
    "each channel normalised",
    "another seed",
    "crops reach into black",
    "learning rate 0.05",
    "no decay of norms",
)


def rates(epoch: int) -> float:
    """The cosine from `RATE` to 0."""
    return RATE / 2 * (1 + math.cos(math.pi * epoch / EPOCHS))


def scores(log_q: Tensor, human: Tensor) -> str:
    """Soft NLL and accuracy, in words."""
    right = (log_q.argmax(1) == human.argmax(1)).double().mean()
    return f"soft NLL {float(-(human * log_q).sum(1).mean()):.4f}, accuracy {float(right):.4f}"


def ours(data: TrainingData, together: StreamedRuns, human: Tensor) -> None:
    """The eight runs with one change each."""
    seen = [together.features] * len(NAMES)
    raw = torch.from_numpy(np.asarray(data.features, dtype=np.float32)).to(GPU)
    train, (mean, deviation) = together.members["train"], data.normalisation
    _, nesterov, drawn, channels, _, black, _, undecayed = together.singles
    for group in nesterov.optimiser.param_groups:
        group["nesterov"] = True
    for layer in drawn.model.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    by_channel = raw[train].std((0, 2, 3), keepdim=True)
    seen[3] = ((raw - raw[train].mean((0, 2, 3), keepdim=True)) / by_channel).contiguous(
        memory_format=torch.channels_last
    )
    channels.train_features = padded(seen[3][train])
    black.train_features = ((padded(raw[train]) - mean) / deviation).contiguous(memory_format=torch.channels_last)
    weights = list(undecayed.model.parameters())
    groups = [
        {"params": [w for w in weights if w.ndim > 1], "weight_decay": 5e-4},
        {"params": [w for w in weights if w.ndim == 1], "weight_decay": 0.0},
    ]
    undecayed.optimiser = torch.optim.SGD(groups, lr=undecayed.rate, momentum=0.9, fused=True)
    begin_from_zero(undecayed.optimiser)
    with same_bits():
        for epoch in range(EPOCHS):
            rate = np.full(len(NAMES), rates(epoch))
            rate[6] /= 2
            together.train_epoch(epoch, rate)
        for name, one, features in zip(NAMES, together.singles, seen, strict=True):
            log_q = log_probabilities(one.model, features, together.members["test"], together.settings)
            print(f"{name:28}{scores(log_q, human)}")


def plain(data: TrainingData, human: Tensor) -> None:
    """The same network by a loop as people write it."""
    torch.manual_seed(1)
    train, test = (torch.from_numpy(data.splits[name]).to(GPU) for name in ("train", "test"))
    raw = torch.from_numpy(np.asarray(data.features, dtype=np.float32)).to(GPU)
    mean, deviation = (
        torch.tensor(each, device=GPU).view(3, 1, 1) for each in ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010))
    )
    images, target = (
        padded(raw[train]),
        torch.from_numpy(data.targets["frequency"].probabilities).float().to(GPU)[train],
    )
    net = resnet18(data.shape, data.classes).to(GPU).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimiser = torch.optim.SGD(net.parameters(), lr=RATE, momentum=0.9, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, EPOCHS)
    with torch.backends.cudnn.flags(enabled=True, benchmark=True, deterministic=False, allow_tf32=True):
        for _ in range(EPOCHS):
            net.train()
            for batch in torch.randperm(len(train), device=GPU).split(128):
                shift = torch.randint(0, 2 * PADDING + 1, (len(batch), 3), device=GPU)
                shift[:, 2] = torch.randint(0, 2, (len(batch),), device=GPU)
                optimiser.zero_grad()
                F.cross_entropy(net((crop_flip(images, batch, shift) - mean) / deviation), target[batch]).backward()
                optimiser.step()
            schedule.step()
        net.eval()
        with torch.no_grad():
            log_q = torch.cat([net((raw[part] - mean) / deviation).log_softmax(1) for part in test.split(500)])
    print(f"{'plain loop, TF32':28}{scores(log_q, human)}")


def main() -> None:
    """Train and print."""
    opened = open_study(read_study("cifar-10h"), "no-store")
    soft = [run for run in opened.runs if run.delivery == "soft"]
    together = StreamedRuns([soft[1] if name == "another seed" else soft[0] for name in NAMES], opened.data, GPU)
    human = torch.from_numpy(opened.data.targets["frequency"].probabilities[opened.data.splits["test"]]).to(GPU)
    ours(opened.data, together, human)
    plain(opened.data, human)


if __name__ == "__main__":
    main()
