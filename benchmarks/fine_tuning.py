"""Does the delivery matter where it matters to people? Whole networks on real votes, as the data's own checks had them.

    python benchmarks/fine_tuning.py prepare --data DATA --minilm FOLDER --out local/fine-tuning
    python benchmarks/fine_tuning.py hs-brexit --data local/fine-tuning
    python benchmarks/fine_tuning.py cifar-10n --data local/fine-tuning

`prepare` runs where the official files are and leaves what a GPU machine needs: HS-Brexit's three files as they are
(train / dev / test, 6 annotators), MiniLM's folder with its weights in half precision, and CIFAR-10N: the three human
labels of the 50,000 training images and those images as JPEG in one folder, the 10,000 test images with the votes of
CIFAR-10H in another. The other two need PyTorch, NumPy, SciPy, and transformers or Pillow; they print mean and spread
over seeds.

HS-Brexit: MiniLM, 8 epochs, AdamW at 5e-5, the epoch that is best on validation. CIFAR-10N: ResNet-18, 40 epochs of SGD
with a cosine rate, the last epoch, scored on CIFAR-10H.
"""

from __future__ import annotations

import argparse
import io
import json
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from dissensus.evaluation.metrics import accuracy, entropy_spearman, kl, soft_nll
from dissensus.items.shown import Items
from dissensus.labels.distribution import LabelDistribution
from dissensus_train.training.data import TrainingData
from dissensus_train.training.engine import train
from dissensus_train.training.run import run_on
from dissensus_train.training.settings import REGIMES, Training

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus_train.training.run import RunResult

HS_BREXIT: Final = Training(
    optimiser="adamw",
    learning_rate=5e-5,
    weight_decay=0.01,
    batch_size=16,
    epochs=8,
    schedule="linear",
    warmup=0.5,
    clip_norm=1.0,
    keep="best",
    precision="bf16",
)
CIFAR_10N: Final = replace(REGIMES["sgd-cosine"], epochs=40, precision="bf16")


def prepare(data: Path, minilm: Path, out: Path) -> None:
    from safetensors.torch import load_file, save_file

    for split in ("train", "dev", "test"):
        (out / "hs-brexit").mkdir(parents=True, exist_ok=True)
        shutil.copy(data / "lewidi-2023" / f"HS-Brexit_{split}.json", out / "hs-brexit")
    (out / "minilm").mkdir(exist_ok=True)
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
        shutil.copy(minilm / name, out / "minilm")
    weights = load_file(minilm / "model.safetensors")
    half = {name: value.half() if value.is_floating_point() else value for name, value in weights.items()}
    save_file(half, out / "minilm" / "model.safetensors", metadata={"format": "pt"})
    first, second = out / "cifar-10n-train", out / "cifar-10n-test"
    first.mkdir(exist_ok=True)
    second.mkdir(exist_ok=True)
    shutil.copy(data / "cifar-10n" / "train-images.npz", first)
    said = torch.load(data / "cifar-10n" / "CIFAR-10_human.pt", weights_only=False)
    three = np.stack([np.asarray(said[f"random_label{number}"]) for number in (1, 2, 3)], axis=1).astype(np.uint8)
    np.savez(first / "labels.npz", three=three)
    shutil.copy(data / "cifar-10-batches-bin" / "test_batch.bin", second)
    shutil.copy(data / "cifar-10h" / "cifar10h-counts.npy", second)
    for folder in sorted(out.iterdir()):
        size = sum(path.stat().st_size for path in folder.rglob("*"))
        print(f"{folder}: {size / 2**20:.1f} MiB")


def hs_brexit(folder: Path) -> TrainingData:
    entries: list[Any] = []
    splits = {}
    for name, split in ("train", "train"), ("validation", "dev"), ("test", "test"):
        part = list(json.loads((folder / "hs-brexit" / f"HS-Brexit_{split}.json").read_text("utf-8")).values())
        splits[name] = np.arange(len(entries), len(entries) + len(part))
        entries += part
    said = [[int(each) for each in entry["annotations"].split(",")] for entry in entries]
    counts = np.array([[each.count(0), each.count(1)] for each in said])
    text = np.array([entry["text"] for entry in entries], dtype=np.dtypes.StringDType())
    return _data("HS-Brexit", counts, ("0", "1"), splits, items=Items(names=np.arange(len(text)), texts=(text,)))


def cifar_10n(folder: Path) -> TrainingData:
    first, second = folder / "cifar-10n-train", folder / "cifar-10n-test"
    stored, three = np.load(first / "train-images.npz"), np.load(first / "labels.npz")["three"]
    ours = np.stack([(three == k).sum(axis=1) for k in range(10)], axis=1)
    counts = np.concatenate([ours, np.load(second / "cifar10h-counts.npy")])
    records = np.fromfile(second / "test_batch.bin", dtype=np.uint8).reshape(-1, 3073)
    seen = _decoded(stored["jpeg"], stored["offset"]).transpose(0, 3, 1, 2)
    pixels = np.concatenate([seen, records[:, 1:].reshape(-1, 3, 32, 32)])
    features = pixels.astype(np.float32) / np.float32(255)
    splits = {"train": np.arange(50_000), "test": np.arange(50_000, 60_000)}
    classes = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
    return _data("CIFAR-10N", counts, classes, splits, features=np.ascontiguousarray(features))


def _decoded(stored: Any, offset: Any) -> np.ndarray[Any, np.dtype[np.uint8]]:
    from PIL import Image

    stored = stored.tobytes()

    def one(number: int) -> Any:
        return np.asarray(Image.open(io.BytesIO(stored[offset[number] : offset[number + 1]])).convert("RGB"))

    with ThreadPoolExecutor() as pool:
        return np.stack(list(pool.map(one, range(len(offset) - 1), chunksize=500)))


def _data(
    name: str,
    counts: np.ndarray[Any, Any],
    classes: tuple[str, ...],
    splits: dict[str, Any],
    *,
    features: Any = None,
    items: Items | None = None,
) -> TrainingData:
    people = LabelDistribution(
        probabilities=counts / counts.sum(axis=1, keepdims=True),
        counts=counts.astype(np.int64),
        panel_size=counts.sum(axis=1).astype(np.int64),
        items=np.arange(len(counts)),
        classes=classes,
        scheme="frequency",
    )
    return TrainingData(
        name=name,
        features=np.zeros((len(counts), 0), np.float32) if features is None else features,
        human=people,
        targets={"frequency": people},
        splits=splits,
        items=items,
        normalise=features is not None,
    )


def compare(data: TrainingData, model: str, deliveries: Sequence[str], seeds: int, settings: Training) -> None:
    runs = [
        run_on(data, model=model, target="frequency", delivery=name, seed=seed, training=settings)
        for name in deliveries
        for seed in range(seeds)
    ]
    began = time.perf_counter()
    human = data.human.probabilities[data.splits["test"]]
    scores: dict[str, list[list[float]]] = {name: [] for name in deliveries}
    for result in train(runs, data):
        scores[result.run.delivery].append(_scores(human, result))
        print(f"{result.run.delivery} seed {result.run.seed}: {scores[result.run.delivery][-1][0]:.3f}", flush=True)
    seconds = time.perf_counter() - began
    print(f"\n{data.name}, {model}: {len(runs)} runs in {seconds:.0f} s; mean ± sd over {seeds} seeds")
    floor = -(human * np.log(np.where(human > 0, human, 1))).sum(axis=1).mean()
    print(f"soft cross-entropy of a perfect model: {floor:.3f}")
    print("| delivery | soft cross-entropy | KL | accuracy | Spearman of entropies |")
    print("|---|---|---|---|---|")
    for name, rows in scores.items():
        cells = [f"{mean:.3f} ± {sd:.3f}" for mean, sd in zip(np.mean(rows, 0), np.std(rows, 0), strict=True)]
        print(f"| {name} | {' | '.join(cells)} |")


def _scores(human: np.ndarray[Any, Any], result: RunResult) -> list[float]:
    model = result.predictions["test"].astype(np.float64)
    model /= model.sum(axis=1, keepdims=True)
    each = [float(metric(human, model).mean()) for metric in (soft_nll, kl, accuracy)]
    return [*each, float(entropy_spearman(human, model) or float("nan"))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["prepare", "hs-brexit", "cifar-10n"])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--minilm", type=Path)
    parser.add_argument("--out", type=Path, default=Path("local/fine-tuning"))
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--deliveries", nargs="+")
    given = parser.parse_args()
    if given.what == "prepare":
        prepare(given.data, given.minilm, given.out)
    elif given.what == "hs-brexit":
        data = replace(hs_brexit(given.data), folder=given.data)
        compare(data, "hf:minilm", given.deliveries or ["majority", "soft"], given.seeds or 3, HS_BREXIT)
    else:
        deliveries = given.deliveries or ["majority", "soft", "sls", "multipass"]
        compare(cifar_10n(given.data), "resnet18", deliveries, given.seeds or 2, CIFAR_10N)


if __name__ == "__main__":
    main()
