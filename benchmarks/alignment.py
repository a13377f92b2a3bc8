"""Loss barriers between two trained ResNet-18 before and after alignment, with PyTorch, NumPy and SciPy alone.

    python benchmarks/alignment.py FIRST.npz SECOND.npz --images .gpu/images.npz     # runs that `keep` wrote
    python benchmarks/alignment.py --try CIFAR_BATCH                                 # two barely trained ones

Each way is shown with the batch statistics of the two runs interpolated, as `loss_barrier` does, and with statistics
taken anew on training images at every point of the path (Jordan et al. 2022). Losses are soft cross-entropy to people's
answers, on test items that neither run was trained on.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dissensus_train.basins import aligned, loss_barrier, objective
from dissensus_train.training.loop import same_bits
from dissensus_train.training.models import resnet18

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dissensus_train.basins.objectives import Objective
    from dissensus_train.training.data import TrainingData
    from dissensus_train.training.run import RunResult

BATCH = 500


def keep(path: Path, result: RunResult, data: TrainingData) -> None:
    """What is needed of a run: its weights, its split, how it saw the images, and what people said."""
    np.savez(
        path,
        train=data.splits["train"],
        test=data.splits["test"],
        normalisation=np.array(data.normalisation),
        human=data.human.probabilities.astype(np.float32),
        **{f"weights/{name}": value for name, value in result.weights.items()},  # type: ignore[arg-type]
    )


def network(kept: dict[str, Any], device: torch.device) -> nn.Module:
    """The ResNet-18 of a run, in evaluation mode."""
    prefix = "weights/"
    weights = {name.removeprefix(prefix): value for name, value in kept.items() if name.startswith(prefix)}
    model = resnet18((3, 32, 32), kept["human"].shape[1])
    model.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in weights.items()})
    return model.to(device).eval()


@torch.no_grad()
def with_statistics_of(model: nn.Module, images: Tensor) -> None:
    """Take the batch statistics anew, as the average over batches of these images; the weights stay."""
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # an average over all batches
    model.train()
    for batch in images.split(BATCH):
        model(batch)
    model.eval()


@torch.no_grad()
def path(
    model: nn.Module, first: Objective, second: Objective, *, positions: list[float], train: Tensor
) -> Iterator[tuple[float, float]]:
    """Loss and accuracy on the way from one run to another, with batch statistics of training images at each place."""
    for t in positions:
        weights = first.named(torch.lerp(first.weights, second.weights, t))
        model.load_state_dict(weights, strict=False)
        with_statistics_of(model, train)
        losses, right = [], []
        for images, human in first.chunks():
            logits = model(images)
            losses.append(F.cross_entropy(logits, human, reduction="none"))
            right.append(logits.argmax(dim=1) == human.argmax(dim=1))
        yield float(torch.cat(losses).double().mean()), float(torch.cat(right).double().mean())


def report(
    one: dict[str, Any], other: dict[str, Any], images: Any, *, device: torch.device, points: int, most: int
) -> dict[str, Any]:
    """All barriers between two kept runs, printed and returned."""
    began = time.monotonic()
    rows = np.setdiff1d(np.intersect1d(one["test"], other["test"]), np.union1d(one["train"], other["train"]))
    mean, deviation = one["normalisation"]

    def seen(places: Any) -> Tensor:
        values = (images[places].astype(np.float32) / 255 - mean) / deviation
        return torch.from_numpy(values.astype(np.float32)).to(device)

    test, train = seen(rows), seen(one["train"][:most])
    human = torch.from_numpy(one["human"][rows]).to(device)
    first, second = (objective(network(kept, device), test, human, chunk=BATCH) for kept in (one, other))
    again = aligned(first, second)
    print(f"aligned in {time.monotonic() - began:.0f} s", flush=True)
    model = network(one, device)
    positions = np.linspace(0, 1, points).tolist()
    result: dict[str, Any] = {"test": len(rows), "train": len(train), "positions": positions}
    for name, end in (("before", second), ("after", again)):
        found = loss_barrier(first, end, points=points)
        losses, accuracy = zip(*path(model, first, end, positions=positions, train=train), strict=True)
        rise = np.array(losses) - np.interp(positions, [0, 1], [losses[0], losses[-1]])
        result[name] = {
            "interpolated": {"barrier": found.value, "error": found.error, "path": found.path.tolist()},
            "anew": {"barrier": float(rise.max()), "path": list(losses), "accuracy": list(accuracy)},
        }
        print(
            f"{name} alignment: barrier {found.value:.3f} +- {found.error:.3f} with interpolated statistics, "
            f"{rise.max():.3f} with statistics taken anew; accuracy {accuracy[0]:.3f} at one end, "
            f"{accuracy[points // 2]:.3f} in the middle, {accuracy[-1]:.3f} at the other",
            flush=True,
        )
    distances = [float((end.weights - first.weights).norm()) for end in (second, again)]
    print(
        f"distance of the weights {distances[0]:.1f} before, {distances[1]:.1f} after; {len(rows):,} test images, "
        f"statistics of {len(train):,} training images, {points} points; {time.monotonic() - began:.0f} s"
    )
    return result | {"distance": distances}


def barely_trained(batch: Path, folder: Path) -> tuple[list[Path], Path]:
    """Two runs of a few steps on CIFAR images, kept as `keep` keeps them, to try the way; they mean nothing."""
    values = np.fromfile(batch, dtype=np.uint8).reshape(-1, 3073)[:700]
    images, labels = values[:, 1:].reshape(-1, 3, 32, 32), values[:, 0]
    np.savez(folder / "images.npz", images=images)
    x = torch.from_numpy((images.astype(np.float32) / 255 - 0.47) / 0.25)
    y, paths = torch.from_numpy(labels.astype(np.int64)), []
    for seed in range(2):
        torch.manual_seed(seed)
        model = resnet18((3, 32, 32), 10)
        steps = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
        for _ in range(8):
            rows = torch.randint(500, (64,))
            F.cross_entropy(model(x[rows]), y[rows]).backward()
            steps.step()
            steps.zero_grad()
        paths.append(folder / f"run{seed}.npz")
        np.savez(
            paths[-1], train=np.arange(500), test=np.arange(500, 700), normalisation=np.array([0.47, 0.25]),
            human=np.eye(10, dtype=np.float32)[labels],
            **{f"weights/{name}": value.numpy() for name, value in model.state_dict().items()},
        )  # fmt: skip
    return paths, folder / "images.npz"


def main() -> None:
    """Print the barriers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="*")
    parser.add_argument("--images", type=Path, help="an npz with (items, 3, 32, 32) bytes")
    parser.add_argument("--try", dest="batch", type=Path, help="a binary batch of CIFAR-10")
    parser.add_argument("--points", type=int, default=21)
    parser.add_argument("--statistics", type=int, default=5000, help="training images for batch statistics")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs, place = barely_trained(given.batch, Path(folder)) if given.batch else (given.runs, given.images)
        with np.load(place) as arrays:
            images = arrays["images"]
        one, other = (dict(np.load(path)) for path in runs)
    with same_bits():
        found = report(
            one, other, images, device=torch.device(given.device), points=given.points, most=given.statistics
        )
    if given.json:
        given.json.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
