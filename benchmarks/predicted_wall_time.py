"""How long the benchmark would take on 1, 8 and 64 GPUs: a prediction from measured run times, not a measurement.

    python benchmarks/predicted_wall_time.py

Measured: seconds of a ResNet-18 run (8,000 images, 200 epochs) in fleets on an H200; hours of the runs of the sets of
texts whose summaries are in docs/results/bench, some on one core and some on two, all counted as two; seconds until the
first run begins on a Ray cluster. Assumed: time grows with images times epochs; a GPU comes with 16 cores, which train
the sets of texts beside it; nothing else waits.
"""

from __future__ import annotations

import heapq
import json
from pathlib import Path

from dissensus_papers.bench.protocol import read_protocol
from dissensus_train.training.fleet import FLEET

RESULTS = Path(__file__).parents[1] / "docs" / "results" / "bench"
SECONDS_OF_A_RUN = (24.0, 26.5)
"""In fleets of 16, least and most of what was measured."""
IN_SMALLER_FLEETS = 28.7
"""In a fleet of 8; smaller ones are taken to need as much."""
MEASURED_ON = 8_000 * 200
"""Images times epochs."""
IMAGES = {"cifar-10h": 7_000, "cifar-10n": 45_000}
"""In the training split of each set."""
CORES = 16
START = 12.0
"""Seconds: three nodes up, connected, PyTorch imported, on two quiet cores."""


def fleets(gpus: int, seconds: float) -> list[float]:
    """Seconds of each fleet of the sets of images, when shards are made for so many GPUs."""
    protocol, found = read_protocol(), []
    for each in protocol.sets:
        if each.kind != "images":
            continue
        kind = protocol.kinds[each.kind]
        methods = [delivery for delivery in protocol.deliveries if delivery not in protocol.left_out(each)]
        left = len(methods) * kind.seeds
        epochs = (kind.training | each.training)["epochs"]
        work = IMAGES[each.name] * epochs / MEASURED_ON
        size = min(FLEET, -(-left // gpus))
        while left:
            runs = min(size, left)
            found.append(runs * work * (seconds if runs == FLEET else max(seconds, IN_SMALLER_FLEETS)))
            left -= runs
    return found


def side_by_side(jobs: list[float], places: int) -> float:
    """Seconds until all jobs are done, each taken by the place that is free first, the longest first."""
    free = [0.0] * places
    for job in sorted(jobs, reverse=True):
        heapq.heapreplace(free, free[0] + job)
    return max(free)


def core_seconds() -> float:
    """Of the sets of texts that were run, on one core: at most, as if each had kept two busy."""
    kept = [
        json.loads(path.read_text("utf-8"))
        for path in RESULTS.glob("*.json")
        if path.stem.partition("--")[0] not in IMAGES
    ]
    return sum(float(each["machine_hours"]) for each in kept) * 3600 * 2


def minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f}"


def table() -> str:
    """The table of docs/measured.md."""
    lines = ["| GPUs | images, minutes | texts, minutes | all, minutes |", "|---|---|---|---|"]
    for gpus in (1, 8, 64):
        least, most = (side_by_side(fleets(gpus, seconds), gpus) + START for seconds in SECONDS_OF_A_RUN)
        texts = core_seconds() / (CORES * gpus) + START
        both = minutes(max(least, texts)), minutes(max(most, texts))
        images = " to ".join(dict.fromkeys((minutes(least), minutes(most))))
        cells = [str(gpus), images, minutes(texts), " to ".join(dict.fromkeys(both))]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
