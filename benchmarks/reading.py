"""Seconds and memory that reading votes takes: a long CSV of many votes, the same as ratings, a table of counts, ReaL.

    python -m benchmarks.reading [--votes 10000000] [--against /other/checkout] [--repeats 3]

`--against` names another checkout of the repository: both read the same files in alternation, each in a process of its
own, and the ratio of the medians is printed. Bar: no regression (a ratio of at most 1.05 where the machine is quiet).
ImageNet-ReaL is read where `DISSENSUS_DATA` holds it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np
import polars as pl

READ = """
import resource, sys, time
from dissensus.votes.reading import understand
before = time.process_time(), time.perf_counter()
votes = understand(sys.argv[1]).votes
after = time.process_time(), time.perf_counter()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
print(after[0] - before[0], after[1] - before[1], peak, len(votes), len(votes.items), len(votes.classes))
"""


def written(folder: Path, votes: int) -> dict[str, Path]:
    """Three files from one seed: ten votes an item, ten classes or five steps, twenty thousand annotators."""
    random = np.random.default_rng(0)
    item = np.repeat(np.arange(votes // 10), 10)
    annotator = (random.integers(0, 20_000 // 10, votes) * 10 + np.arange(votes) % 10).astype(np.int32)
    label = random.integers(0, 10, votes)
    paths = {name: folder / f"{name}.csv" for name in ("long", "ratings", "counts")}
    names = pl.Series([f"class {k}" for k in range(10)])
    pl.DataFrame({"item": item, "annotator": annotator, "label": names.gather(label)}).write_csv(paths["long"])
    pl.DataFrame({"item": item, "annotator": annotator, "rating": label % 5 + 1}).write_csv(paths["ratings"])
    # Rows that add up to ten may hold points, and are asked about.
    counts = random.multinomial(9, [0.5, 0.3, 0.2], votes // 10)
    pl.DataFrame(
        {"item": np.arange(votes // 10), "cat": counts[:, 0], "dog": counts[:, 1], "eel": counts[:, 2]}
    ).write_csv(paths["counts"])
    return paths


def read(path: Path, checkout: Path) -> list[float]:
    """CPU seconds, seconds and gigabytes, and how many votes, items and classes."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / "packages/dissensus/src")}
    done = subprocess.run(
        [sys.executable, "-c", READ, str(path)], env=environment, capture_output=True, text=True, check=True
    )
    return [float(word) for word in done.stdout.split()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--votes", type=int, default=10_000_000)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    here = Path(__file__).parents[1]
    checkouts = {"here": here} if options.against is None else {"here": here, "against": options.against}
    with tempfile.TemporaryDirectory() as folder:
        paths = written(Path(folder), options.votes)
        if os.environ.get("DISSENSUS_DATA"):
            paths["ImageNet-ReaL"] = Path(os.environ["DISSENSUS_DATA"]) / "imagenet-real" / "raters.npz"
        for name, path in paths.items():
            runs: dict[str, list[list[float]]] = {which: [] for which in checkouts}
            for _ in range(options.repeats):
                for which, checkout in checkouts.items():
                    runs[which].append(read(path, checkout))
            for which, measured in runs.items():
                cpu, wall, peak, votes, items, classes = (median(column) for column in zip(*measured, strict=True))
                print(
                    f"{name:14}{which:8}{cpu:7.2f} s of CPU {wall:7.2f} s {peak:6.2f} GB; {votes:,.0f} votes, "
                    f"{items:,.0f} items, {classes:.0f} classes"
                )
            if options.against is not None:
                ratio = median(run[0] for run in runs["here"]) / median(run[0] for run in runs["against"])
                print(f"{name:14}ratio of CPU seconds, here to the other: {ratio:.2f}")


if __name__ == "__main__":
    main()
