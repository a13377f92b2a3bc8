"""Dawid-Skene on very many votes in one process: CPU seconds and the peak of its memory, votes included.

    python benchmarks/many_votes.py [votes] [iterations]

Bar for 100 million votes: under 8 GB, and minutes.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from dissensus.labels.dawid_skene import dawid_skene
from dissensus.votes.table import Annotators, Votes

CLASSES = 10
VOTES_OF_AN_ITEM = 10
ANNOTATORS = 20_000
BLOCK = 10_000_000


def simulated(votes: int) -> Votes:
    """Votes that are right in six cases of ten, in the order of their items, made a block at a time."""
    generator = np.random.default_rng(0)
    items = votes // VOTES_OF_AN_ITEM
    truth = generator.integers(0, CLASSES, items, dtype=np.int8)
    label, annotator = np.empty(votes, np.int32), np.empty(votes, np.int32)
    for first in range(0, votes, BLOCK):
        part = slice(first, min(first + BLOCK, votes))
        n = part.stop - part.start
        right = generator.random(n, dtype=np.float32) < 0.6
        said = generator.integers(0, CLASSES, n, dtype=np.int32)
        label[part] = np.where(right, truth[np.arange(part.start, part.stop) // VOTES_OF_AN_ITEM], said)
        annotator[part] = generator.integers(0, ANNOTATORS, n, dtype=np.int32)
    return Votes(
        item=np.repeat(np.arange(items, dtype=np.int32), VOTES_OF_AN_ITEM),
        label=label,
        items=np.arange(items),
        classes=tuple(str(k) for k in range(CLASSES)),
        annotators=Annotators(annotator, np.arange(ANNOTATORS)),
    )


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000_000
    iterations = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    votes = simulated(number)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    wall, cpu = time.perf_counter(), time.process_time()
    dawid_skene(votes, max_iterations=iterations, tolerance=0)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{number:,} votes of {number // VOTES_OF_AN_ITEM:,} items, {CLASSES} classes, {ANNOTATORS:,} annotators, "
        f"{iterations} iterations: {cpu:.0f} s of CPU, {wall:.0f} s of wall clock; peak {peak:.2f} GB, of which the "
        f"votes and their making {before:.2f} GB"
    )


if __name__ == "__main__":
    main()
