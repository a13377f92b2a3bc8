"""Models that know people: crowd-layer beside two peers, and a grid on MD-Agreement (819 annotators, 10,753 items).

    python benchmarks/people.py prepare --out local/people        (where data, Polars and MiniLM's weights are)
    python benchmarks/people.py crowd-layer --data local/people
    python benchmarks/people.py grid --data local/people [--device cuda]

`prepare` leaves `md-agreement.npz`: frozen MiniLM embeddings, votes and the official splits; the other two need
PyTorch, NumPy and SciPy alone. `crowd-layer` trains the same network (a hidden layer of 128) with the same number of
votes a batch, rate and epochs, one run after the other: ours, crowd-kit's `CrowdLayer` (its MW matrices on class
probabilities) over a DataLoader of votes, and peerannot's `Crowdlayer_net` over a DataLoader of items with a column of
labels for each annotator, as its `run` feeds it. Accuracy is that of the most probable class of an item against the
majority of its test votes. `grid` trains the item-only model and four kinds of people by six seeds.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from dissensus.evaluation.people.two_way import mean_over_votes
from dissensus.evaluation.people.vote_scores import score_votes
from dissensus.labels.schemes import frequency
from dissensus.votes.table import Annotators, Votes
from dissensus_train.training.annotator_side import SHRINKAGE, People, votes_of_split
from dissensus_train.training.data import TrainingData
from dissensus_train.training.engine import train
from dissensus_train.training.loop import train_loop
from dissensus_train.training.run import people_run, run_on
from dissensus_train.training.settings import REGIMES, Training

if TYPE_CHECKING:
    from collections.abc import Callable

    from dissensus_train.training.run import Run, RunResult

FILE: Final = "md-agreement.npz"
SEEDS: Final = 6
CROWD: Final = Training(epochs=8)


def prepare(out: Path) -> None:
    from dissensus_train.encoders.encoding import encoded, fit_encoder
    from dissensus_train.studies.text_sets import lewidi

    given = lewidi("md-agreement")
    votes = given.votes
    assert votes is not None
    assert given.items is not None
    assert votes.annotators is not None
    features = encoded(fit_encoder("minilm", given.items, folder=Path()), given.items)
    out.mkdir(parents=True, exist_ok=True)
    np.savez(
        out / FILE,
        features=features.astype(np.float16),
        item=votes.item,
        annotator=votes.annotators.code,
        label=votes.label,
        **{f"split-{name}": members for name, members in given.splits.items()},  # type: ignore[arg-type]
    )
    print(out / FILE, f"{(out / FILE).stat().st_size / 2**20:.1f} MiB")


def read(folder: Path) -> TrainingData:
    held = np.load(folder / FILE)
    items = np.arange(len(held["features"]))
    votes = Votes(
        item=held["item"],
        label=held["label"],
        items=items,
        classes=("no", "yes"),
        annotators=Annotators(held["annotator"], np.arange(int(held["annotator"].max()) + 1)),
    )
    labels = frequency(votes)
    return TrainingData(
        name="MD-Agreement",
        features=held["features"].astype(np.float32),
        human=labels,
        targets={"frequency": labels},
        splits={name.removeprefix("split-"): held[name] for name in held.files if name.startswith("split-")},
        votes=votes,
        normalise=False,
    )


def network(width: int, classes: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, 128), nn.ReLU(), nn.Linear(128, classes))


def crowd_kit(data: TrainingData, seed: int) -> np.ndarray[Any, Any]:
    from crowdkit.learning import CrowdLayer

    votes, rows = data.votes, votes_of_split(data, "train")
    assert votes is not None
    assert votes.annotators is not None
    torch.manual_seed(seed)
    net = network(data.shape[0], data.classes)
    layer = CrowdLayer(data.classes, len(votes.annotators), conn_type="mw")
    features = torch.from_numpy(data.features)
    examples = TensorDataset(
        features[torch.from_numpy(votes.item[rows]).long()],
        torch.from_numpy(votes.annotators.code[rows]).long(),
        torch.from_numpy(votes.label[rows]).long(),
    )
    optimiser = torch.optim.Adam([*net.parameters(), *layer.parameters()], lr=CROWD.learning_rate)
    for _ in range(CROWD.epochs):
        for x, who, label in DataLoader(examples, batch_size=CROWD.batch_size, shuffle=True):
            loss = nn.functional.cross_entropy(layer(net(x).softmax(dim=1), who), label)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return _of_items(net, data)


def peerannot(data: TrainingData, seed: int) -> np.ndarray[Any, Any]:
    from peerannot.models.agg_deep.Crowdlayer import Crowdlayer_net

    votes, members = data.votes, data.splits["train"]
    assert votes is not None
    assert votes.annotators is not None
    torch.manual_seed(seed)
    net = network(data.shape[0], data.classes)
    model = Crowdlayer_net(data.classes, len(votes.annotators), net)
    rows = votes_of_split(data, "train")
    said = torch.full((len(data.human), len(votes.annotators)), -1)
    said[torch.from_numpy(votes.item[rows]).long(), torch.from_numpy(votes.annotators.code[rows]).long()] = (
        torch.from_numpy(votes.label[rows]).long()
    )
    examples = TensorDataset(torch.from_numpy(data.features[members]), said[torch.from_numpy(members)])
    optimiser = torch.optim.Adam(model.parameters(), lr=CROWD.learning_rate)
    criterion = nn.CrossEntropyLoss(ignore_index=-1, reduction="mean")
    # A batch of items holds as many votes as ours.
    size = max(1, CROWD.batch_size * len(members) // len(rows))
    for _ in range(CROWD.epochs):
        for x, labels in DataLoader(examples, batch_size=size, shuffle=True):
            loss = criterion(model(x).transpose(1, 2), labels)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return _of_items(net, data)


@torch.no_grad()
def _of_items(net: nn.Module, data: TrainingData) -> np.ndarray[Any, Any]:
    return np.asarray(net(torch.from_numpy(data.features[data.splits["test"]])).softmax(dim=1).numpy())


def accuracy(said: np.ndarray[Any, Any], data: TrainingData) -> float:
    human = data.human.probabilities[data.splits["test"]]
    clear = human[:, 0] != human[:, 1]
    return float((said.argmax(axis=1) == human.argmax(axis=1))[clear].mean())


def crowd_layer(data: TrainingData, seeds: int) -> None:
    runs = [
        people_run(data, model="simple-ffn", people=People(kind="crowd-layer"), seed=seed, training=CROWD)
        for seed in range(seeds)
    ]
    # What PyTorch imports at its first step is nobody's.
    train_loop(replace(runs[0], training=replace(CROWD, epochs=1)), data)
    ways: dict[str, Callable[[], list[np.ndarray[Any, Any]]]] = {
        "ours": lambda: [train_loop(run, data).predictions["test"] for run in runs],
        "crowd-kit": lambda: [crowd_kit(data, seed) for seed in range(seeds)],
        "peerannot": lambda: [peerannot(data, seed) for seed in range(seeds)],
    }
    for name, way in ways.items():
        began, used = time.perf_counter(), time.process_time()
        try:
            said = way()
        except ImportError as error:
            print(f"{name:12} is not here ({error})")
            continue
        wall, cpu = (time.perf_counter() - began) / seeds, (time.process_time() - used) / seeds
        found = [accuracy(each, data) for each in said]
        told = f"accuracy {np.mean(found):.4f} ± {np.std(found):.4f}"
        print(f"{name:12} {wall:6.2f} s a run, {cpu:6.2f} s of CPU, {told}", flush=True)


def grid(data: TrainingData, device: str) -> None:
    settings = REGIMES["early-stopping"]
    systems: dict[str, list[Run]] = {
        "item only": [
            run_on(data, model="simple-ffn", target="frequency", delivery="soft", seed=seed, training=settings)
            for seed in range(SEEDS)
        ]
    }
    for kind in SHRINKAGE:
        systems[kind] = [
            people_run(data, model="simple-ffn", people=People(kind=kind), seed=seed, training=settings)
            for seed in range(SEEDS)
        ]
    runs = [run for each in systems.values() for run in each]
    began = time.perf_counter()
    results: dict[str, RunResult] = {
        result.run.key: result for result in train(runs, data, engine="fleet", device=device)
    }
    print(f"{len(runs)} runs: {time.perf_counter() - began:.1f} s")
    votes, rows = data.votes, votes_of_split(data, "test")
    assert votes is not None
    assert votes.annotators is not None
    place = np.zeros(len(data.human), dtype=np.int64)
    place[data.splits["test"]] = np.arange(len(data.splits["test"]))
    human = data.human.probabilities[data.splits["test"]]
    scores = {}
    for name, each in systems.items():
        found = [results[run.key] for run in each]
        said = [
            result.by_vote["test"] if result.by_vote else result.predictions["test"][place[votes.item[rows]]]
            for result in found
        ]
        scored = [score_votes(votes.label[rows], one.astype(np.float64)) for one in said]
        scores[name] = np.mean([one.nll for one in scored], axis=0)
        panel = np.mean([-(human * np.log(result.predictions["test"])).sum(axis=1).mean() for result in found])
        right = 1 - np.mean([one.error.mean() for one in scored])
        less = mean_over_votes(
            scores[name] - scores["item only"], item=votes.item[rows], annotator=votes.annotators.code[rows]
        )
        print(
            f"{name:20} NLL a vote {scores[name].mean():.4f}, accuracy {right:.4f}, less item-only {less}, "
            f"panel's soft NLL {panel:.4f}, failed {sum(bool(result.failed) for result in found)}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["prepare", "crowd-layer", "grid"])
    parser.add_argument("--data", type=Path, default=Path("local/people"))
    parser.add_argument("--out", type=Path, default=Path("local/people"))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    if given.what == "prepare":
        prepare(given.out)
    elif given.what == "crowd-layer":
        crowd_layer(read(given.data), given.seeds)
    else:
        grid(read(given.data), given.device)
