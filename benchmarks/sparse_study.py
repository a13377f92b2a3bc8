"""A study over 200,000 texts by 20,000 TF-IDF features: seconds by part, and the peak memory of all its processes.

python benchmarks/sparse_study.py [texts]
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

WORDS = 60_000
LENGTH = 40
VOTES = 3
BAR = 2.0
"""GB, at most."""

STUDY = """\
[dataset]
votes = "votes.csv"
texts = "texts.csv"
encoder = "tfidf"

[grid]
deliveries = ["majority", "soft"]
models = ["linear"]
seeds = 1

[training]
regime = "early-stopping"
epochs = 2
batch_size = 256
"""


def write_texts(folder: Path, texts: int) -> None:
    """Texts whose words follow Zipf's law, and three votes each that hang on one word in ten."""
    generator = np.random.default_rng(0)
    words = np.array([f"word{number}" for number in range(WORDS)])
    likely = 1 / np.arange(1, WORDS + 1)
    likely /= likely.sum()
    weight = generator.normal(size=WORDS) * (np.arange(WORDS) % 10 == 0)
    with (folder / "texts.csv").open("w") as out, (folder / "votes.csv").open("w") as said:
        out.write("item,text\n")
        said.write("item,annotator,label\n")
        for start in range(0, texts, 10_000):
            drawn = generator.choice(WORDS, size=(min(10_000, texts - start), LENGTH), p=likely)
            share = 1 / (1 + np.exp(-weight[drawn].sum(axis=1)))
            yes = generator.random((len(drawn), VOTES)) < share[:, None]
            out.writelines(f"t{start + number},{' '.join(words[row])}\n" for number, row in enumerate(drawn))
            said.writelines(
                f"t{start + number},a{who},{'yes' if vote else 'no'}\n"
                for number, row in enumerate(yes)
                for who, vote in enumerate(row)
            )


def memory(process: int) -> int:
    """Bytes of a process and of those it started, shared ones divided among those that share them (PSS)."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        own = 1024 * int(next(line.split()[1] for line in lines if line.startswith("Pss:")))
        children = [
            int(child)
            for thread in Path(f"/proc/{process}/task").iterdir()
            for child in (thread / "children").read_text().split()
        ]
    except (OSError, StopIteration):
        return 0
    return own + sum(memory(child) for child in children)


def main() -> None:
    texts = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    from dissensus_train.studies import plan_study, read_study, run_plan, score_study

    peak, over = 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not over.wait(0.1):
            peak = max(peak, memory(os.getpid()))

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        write_texts(folder, texts)
        (folder / "study.toml").write_text(STUDY)
        watcher = threading.Thread(target=watch)
        watcher.start()
        marks = [time.perf_counter()]
        plan = plan_study(read_study(folder / "study.toml"), folder / "store", device="cpu")
        marks.append(time.perf_counter())
        list(run_plan(plan))
        marks.append(time.perf_counter())
        scored = score_study(plan.opened, resamples=100)
        marks.append(time.perf_counter())
        plan.writer.close()
        over.set()
        watcher.join()
    features = plan.opened.data.features
    print(
        f"{features.shape[0]:,} texts x {features.shape[1]:,} words, {features.nnz:,} filled, {len(plan.waiting)} runs"
    )
    for what, start, end in zip(("read and encode", "train", "score"), marks, marks[1:], strict=False):
        print(f"{what:16} {end - start:6.1f} s")
    for system in scored.systems:
        print(f"{system:16} accuracy {scored.evaluation.overall.get(system, 'accuracy').value}")
    print(f"peak memory      {peak / 1e9:6.2f} GB of all processes (bar: {BAR} GB)")
    print(f"dense features would take {4 * features.shape[0] * features.shape[1] / 1e9:.1f} GB")
    if peak > BAR * 1e9:
        raise SystemExit("more than the bar")


if __name__ == "__main__":
    main()
