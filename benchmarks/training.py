"""Training speed: fleets against a loop as people write it, on the same machine in one run.

    python benchmarks/training.py                 CPU: 12 runs of simple-ffn and lenet, then with --grid all 144
    python benchmarks/training.py --device cuda   one GPU: 48 runs, the 144-run grid, ResNet-18

The shape is that of the soft-digits paper: 2,131 training images of 28 x 28, 11 classes, batch 64; images and votes are
simulated, since time does not depend on what they show. Beside each time stands the floor: the arithmetic (counted by
PyTorch's FlopCounterMode) over the matrix-product rate measured in the same run.
"""

from __future__ import annotations

import argparse
import platform
import time
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.flop_counter import FlopCounterMode

from dissensus.labels.schemes import frequency
from dissensus.votes.simulate import simulate_votes
from dissensus_train.cores import available_cores
from dissensus_train.training import streams
from dissensus_train.training.data import TrainingData
from dissensus_train.training.engine import train
from dissensus_train.training.models import build
from dissensus_train.training.run import Run
from dissensus_train.training.settings import REGIMES, Training

FIXED = replace(REGIMES["early-stopping"], patience=None)
"""All epochs, with validation after each: every run does the same work."""


def simulated(train_items: int, held_out: int, *, shape: tuple[int, ...], classes: int) -> TrainingData:
    items = train_items + 2 * held_out
    generator = np.random.default_rng(0)
    truth = generator.dirichlet(np.full(classes, 0.2), items)
    labels = frequency(simulate_votes(truth, 6, annotators=60, seed=0))
    pattern = truth @ generator.normal(size=(classes, int(np.prod(shape))))
    features = (pattern + generator.normal(size=pattern.shape)).reshape(items, *shape).astype(np.float32)
    splits = np.split(np.arange(items), [train_items, train_items + held_out])
    return TrainingData(
        name="simulated",
        features=features,
        human=labels,
        targets={"frequency": labels},
        splits=dict(zip(("train", "validation", "test"), splits, strict=True)),
    )


def plain_loop(model_name: str, data: TrainingData, settings: Training, *, seed: int, device: str) -> float:
    """A DataLoader loop as people write it; seconds."""
    torch.manual_seed(seed)
    model = build(model_name, data.shape, classes=data.classes, seed=seed).to(device)
    features, targets = torch.from_numpy(data.normalised()), torch.from_numpy(data.human.probabilities).float()
    parts = {name: TensorDataset(features[rows], targets[rows]) for name, rows in data.splits.items()}
    loader = DataLoader(parts["train"], batch_size=settings.batch_size, shuffle=True)
    validation = DataLoader(parts["validation"], batch_size=256)
    optimiser = torch.optim.Adam(model.parameters(), lr=settings.learning_rate)
    began = time.perf_counter()
    for _ in range(settings.epochs):
        model.train()
        total = 0.0
        for x, target in loader:
            x, target = x.to(device), target.to(device)
            optimiser.zero_grad()
            loss = F.cross_entropy(model(x), target)
            loss.backward()
            optimiser.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            sum(F.cross_entropy(model(x.to(device)), target.to(device)).item() for x, target in validation)
    if device != "cpu":
        torch.cuda.synchronize()
    return time.perf_counter() - began


def fleet(runs: list[Run], data: TrainingData, device: str) -> float:
    began = time.perf_counter()
    assert len(list(train(runs, data, engine="fleet", device=device))) == len(runs)
    return time.perf_counter() - began


def grid_runs(model: str, settings: Training, count: int) -> list[Run]:
    deliveries = ("majority", "soft", "sls", "multipass")
    return [
        Run(
            model=model,
            target="frequency",
            delivery=deliveries[i % 4],
            seed=i // 4,
            training=settings,
            data="simulated",
        )
        for i in range(count)
    ]


def step_flops(model_name: str, data: TrainingData, batch: int) -> float:
    """Floating-point operations of one training step, forward and backward."""
    model = build(model_name, data.shape, classes=data.classes, seed=0)
    with FlopCounterMode(display=False) as counter:
        model(torch.zeros(batch, *data.shape)).sum().backward()
    return float(counter.get_total_flops())


def matmul_rate(device: str, dtype: torch.dtype) -> float:
    """Operations a second of a large matrix product."""
    size = 1024 if device == "cpu" else 8192
    a, b = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    times = []
    for _ in range(8):
        began = time.perf_counter()
        a @ b
        if device != "cpu":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return 2 * size**3 / min(times)


def row(*cells: Any) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def compare(
    model: str, data: TrainingData, *, device: str, runs: int, epochs: int, plain_runs: int, bar: float
) -> None:
    settings = replace(FIXED, epochs=epochs)
    steps = epochs * -(-len(data.splits["train"]) // settings.batch_size)
    if device != "cpu":
        plain_loop(model, data, replace(settings, epochs=1), seed=0, device=device)
        fleet(grid_runs(model, replace(settings, epochs=1), runs), data, device)
    ours = fleet(grid_runs(model, settings, runs), data, device)
    plain = sum(plain_loop(model, data, settings, seed=seed, device=device) for seed in range(plain_runs)) / plain_runs
    floor = step_flops(model, data, settings.batch_size) / matmul_rate(device, torch.float32)
    mine = ours / runs / steps
    row(
        model,
        runs,
        f"{1e6 * plain / steps:.0f}",
        f"{1e6 * mine:.1f}",
        f"{plain / (ours / runs):.1f}x (bar {bar:g}x)",
        f"{1e6 * floor:.2f}",
        f"{floor / mine:.0%}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--grid", action="store_true", help="also all 144 runs of the soft-digits table")
    parser.add_argument("--resnet-epochs", type=int, default=36, help="epochs of ResNet-18 that are timed, of 200")
    given = parser.parse_args()
    cpu = given.device == "cpu"
    name = f"{available_cores()} cores of {platform.machine()}" if cpu else torch.cuda.get_device_name()
    print(f"torch {torch.__version__}, Python {platform.python_version()}, {name}\n")
    digits = simulated(2131, 457, shape=(1, 28, 28), classes=11)
    row(
        "net",
        "runs together",
        "plain loop, us a step",
        "fleet, us a step and run",
        "ratio",
        "floor, us",
        "share of floor",
    )
    row(*["---"] * 7)
    if cpu:
        compare("simple-ffn", digits, device="cpu", runs=12, epochs=60, plain_runs=2, bar=3)
        compare("lenet", digits, device="cpu", runs=12, epochs=15, plain_runs=1, bar=2)
    else:
        compare("simple-ffn", digits, device=given.device, runs=48, epochs=60, plain_runs=1, bar=100)
        compare("deeper-ffn", digits, device=given.device, runs=48, epochs=60, plain_runs=1, bar=100)
        compare("lenet", digits, device=given.device, runs=48, epochs=60, plain_runs=1, bar=100)
    if given.grid or not cpu:
        whole_grid(digits, given.device)
    if not cpu:
        resnet(given.device, epochs=given.resnet_epochs)


def whole_grid(mnist: TrainingData, device: str) -> None:
    """3 models x 4 methods x 2 sets x 6 seeds, 60 epochs with early stopping as in the paper."""
    mukhoti = simulated(1738, 373, shape=(1, 28, 28), classes=11)
    began = time.perf_counter()
    for data in (mnist, mukhoti):
        runs = [run for model in ("simple-ffn", "deeper-ffn", "lenet") for run in grid_runs(model, FIXED, 24)]
        fleet(runs, data, device)
    bar = "10 minutes" if device == "cpu" else "10 s"
    print(f"\n144 runs, 60 epochs each: {time.perf_counter() - began:.1f} s (bar {bar})")


def resnet(device: str, *, epochs: int, together: int = 16) -> None:
    """Compiled, whatever the number of epochs; what is paid once is timed by itself, so that 200 epochs can be told."""
    data = simulated(8000, 1000, shape=(3, 32, 32), classes=10)
    streams.WORTH_COMPILING = 0  # type: ignore[misc]

    def timed(epochs: int) -> float:
        settings = replace(REGIMES["sgd-cosine"], epochs=epochs, precision="bf16")
        run = Run(model="resnet18", target="frequency", delivery="sls", seed=0, training=settings, data="simulated")
        return fleet([replace(run, seed=seed) for seed in range(together)], data, device)

    compiling, once, whole = timed(1), timed(1), timed(epochs)
    seconds = (once + 199 * (whole - once) / (epochs - 1)) / together
    steps, batch = 200 * -(-8000 // 128), 128
    floor = steps * step_flops("resnet18", data, batch) / matmul_rate(device, torch.bfloat16)
    print(
        f"\nResNet-18, {together} runs together, bf16: {seconds:.1f} s a run of 200 epochs, from {epochs} timed, "
        f"and {compiling - once:.0f} s to compile (bar 24 s; floor {floor:.1f} s, {floor / seconds:.0%} of it reached)"
    )


if __name__ == "__main__":
    main()
