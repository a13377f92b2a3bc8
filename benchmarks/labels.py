"""Votes to labels: ours, the peer's, and the ratio, on the same votes in one run.

    python benchmarks/labels.py                  # annotator models and majority; counting from Parquet
    python benchmarks/labels.py --only models    # or: parquet, real, huge
    python benchmarks/labels.py --huge           # also 100 million votes, counted from Parquet

Every contender runs in a process of its own. Its clock starts when the votes are in memory in its own format
(crowd-kit: a pandas long frame; ours: `Votes`), or, for Parquet, before the file is opened; runs repeat until three
seconds are spent, and the best counts. Peak memory is that of the whole process, imports included.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from dissensus.votes.table import Votes

# The simulation lies in the tests of the core, which are not installed.
sys.path.append(str(Path(__file__).parents[1] / "packages" / "dissensus"))

CLASSES = 10
ITERATIONS = 20
BARS = {
    "vote shares": 30,
    "majority": 30,
    "dawid-skene": 20,
    "one-coin": 50,
    "mace": 20,
    "wawa": None,
    "glad": 100,
}


# The votes ---------------------------------------------------------------------------------------------------------


def make_votes(n_votes: int, *, seed: int = 0) -> tuple[Votes, Any]:
    """Simulated votes and true classes: 10 classes, 5 to 10 votes an item by distinct annotators, rows shuffled.

    Each annotator has a confusion matrix of their own, with accuracy ~ Beta(6, 3) and errors ~ Dirichlet(0.5).
    """
    from dissensus.votes.simulate import simulate_votes
    from tests.votes.confusions import simulate_confusions

    generator = np.random.default_rng(seed)
    n_items = round(n_votes / 7.5)
    annotators = 50 if n_votes <= 10_000 else 200 if n_votes <= 100_000 else 1_000 if n_votes <= 1_000_000 else 5_000
    truth = generator.integers(0, CLASSES, n_items)
    votes = simulate_votes(
        np.eye(CLASSES)[truth],
        generator.integers(5, 11, n_items),
        annotators=annotators,
        confusion=simulate_confusions(annotators, CLASSES, seed=seed),
        seed=seed,
    )
    return votes.take_judgements(generator.permutation(len(votes))), truth


def write_models_input(n_votes: int, path: Path) -> None:
    votes, truth = make_votes(n_votes)
    assert votes.annotators is not None
    np.savez(path, item=votes.item, annotator=votes.annotators.code, label=votes.label, truth=truth)


def write_parquet(n_votes: int, path: Path, *, text: bool) -> None:
    import polars as pl

    votes, _ = make_votes(n_votes)
    assert votes.annotators is not None
    table = pl.DataFrame({"item": votes.item, "annotator": votes.annotators.code, "label": votes.label})
    if text:
        table = table.select(
            item="item_" + pl.col("item").cast(pl.String).str.zfill(8),
            annotator="worker-" + pl.col("annotator").cast(pl.String).str.zfill(5),
            label="class" + pl.col("label").cast(pl.String),
        )
    table.write_parquet(path)


def write_huge(n_votes: int, path: Path) -> None:
    """Votes of 5,000 annotators on items drawn at random, a chunk at a time, so that every item is spread over all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    generator = np.random.default_rng(0)
    n_items, chunk = round(n_votes / 7.5), 5_000_000
    schema = pa.schema([("item", pa.int32()), ("annotator", pa.int32()), ("label", pa.int32())])
    with pq.ParquetWriter(path, schema) as writer:
        for first in range(0, n_votes, chunk):
            rows = min(chunk, n_votes - first)
            item = generator.integers(0, n_items, rows, dtype=np.int32)
            label = (item + (generator.random(rows) < 0.3) * generator.integers(1, CLASSES, rows)) % CLASSES
            annotator = generator.integers(0, 5_000, rows, dtype=np.int32)
            columns = [item, annotator, label.astype(np.int32)]
            writer.write_table(pa.table([pa.array(each) for each in columns], schema=schema))


# The contenders ----------------------------------------------------------------------------------------------------


def ours(name: str) -> Any:
    def contender(path: Path) -> Any:
        from dissensus.labels.labelling import ANNOTATOR_MODELS
        from dissensus.labels.schemes import frequency, majority
        from dissensus.votes.table import Annotators, Votes

        columns = np.load(path)
        votes = Votes(
            item=columns["item"],
            label=columns["label"],
            items=np.arange(len(columns["truth"])),
            annotators=Annotators(columns["annotator"], np.arange(int(columns["annotator"].max()) + 1)),
            classes=tuple(str(k) for k in range(CLASSES)),
        )
        if name in ("vote shares", "majority"):
            scheme = frequency if name == "vote shares" else majority
            # A fresh copy each time: `Votes` counts once and remembers.
            return scheme, lambda: replace(votes), lambda labels: labels.probabilities
        options = {} if name == "wawa" else {"max_iterations": ITERATIONS, "tolerance": 0.0}
        fit = ANNOTATOR_MODELS[name]
        return lambda fresh: fit(fresh, **options), lambda: replace(votes), lambda model: model.posterior

    return contender


def crowd_kit(name: str) -> Any:
    def contender(path: Path) -> Any:
        import pandas as pd
        from crowdkit import aggregation
        from crowdkit.aggregation.classification import wawa

        # As shipped, crowd-kit's Wawa fails on scikit-learn 1.7 and later in this check.
        wawa.check_is_fitted = lambda *_, **__: None
        columns = np.load(path)
        frame = pd.DataFrame({"task": columns["item"], "worker": columns["annotator"], "label": columns["label"]})
        make = {
            "vote shares": aggregation.MajorityVote,
            "majority": aggregation.MajorityVote,
            "dawid-skene": lambda: aggregation.DawidSkene(n_iter=ITERATIONS, tol=-np.inf),
            "one-coin": lambda: aggregation.OneCoinDawidSkene(n_iter=ITERATIONS, tol=-np.inf),
            "mace": lambda: aggregation.MACE(n_restarts=1, n_iter=ITERATIONS),
            "glad": lambda: aggregation.GLAD(n_iter=ITERATIONS, tol=-np.inf),
            "wawa": aggregation.Wawa,
        }[name]

        def posterior(table: Any) -> Any:
            if name == "majority":
                return np.eye(CLASSES)[table.reindex(range(len(columns["truth"]))).to_numpy()]
            return table.reindex(index=range(len(columns["truth"])), columns=range(CLASSES)).to_numpy()

        if name == "majority":
            return lambda fresh: make().fit_predict(fresh), frame.copy, posterior
        return lambda fresh: make().fit_predict_proba(fresh), frame.copy, posterior

    return contender


def ours_parquet(path: Path) -> Any:
    from dissensus.labels.schemes import label_counts
    from dissensus.votes.counting import count_votes

    return lambda _: label_counts(count_votes(path)), lambda: None, None


def ours_counting(path: Path) -> Any:
    from dissensus.votes.counting import count_votes

    return lambda _: count_votes(path), lambda: None, None


def pandas_parquet(path: Path) -> Any:
    import pandas as pd

    def run(_: None) -> Any:
        table = pd.read_parquet(path, columns=["item", "label"])
        counts = table.groupby(["item", "label"]).size().unstack(fill_value=0)
        return counts.div(counts.sum(axis=1), axis=0)

    return run, lambda: None, None


def ours_real(path: Path) -> Any:
    """ImageNet-ReaL's answers, in memory, to a distribution over no, unsure and yes for each question."""
    from dissensus.labels.schemes import frequency
    from dissensus.votes.reading import read_votes

    votes = read_votes(path)
    return frequency, lambda: replace(votes), None


def pandas_real(path: Path) -> Any:
    """The same answers as a pandas frame of question and answer, grouped."""
    import pandas as pd

    from dissensus.votes.reading import read_votes

    votes = read_votes(path)
    frame = pd.DataFrame({"item": votes.item, "label": pd.Categorical.from_codes(votes.label, votes.classes)})

    def run(fresh: Any) -> Any:
        counts = fresh.groupby(["item", "label"], observed=False).size().unstack(fill_value=0)
        return counts.div(counts.sum(axis=1), axis=0)

    return run, frame.copy, None


def ours_real_file(path: Path) -> Any:
    """From the official file to distributions and every agreement statistic with its interval."""
    from dissensus.labels.schemes import frequency
    from dissensus.votes.agreement import agreement
    from dissensus.votes.reading import read_votes

    def run(_: None) -> Any:
        votes = read_votes(path)
        return frequency(votes), agreement(votes)

    return run, lambda: None, None


CONTENDERS: dict[str, Any] = {
    "ours real": ours_real,
    "pandas real": pandas_real,
    "ours real file": ours_real_file,
    **{f"ours {name}": ours(name) for name in BARS},
    **{f"crowd-kit {name}": crowd_kit(name) for name in BARS},
    "ours parquet": ours_parquet,
    "ours counting": ours_counting,
    "pandas parquet": pandas_parquet,
}


# One run in a process of its own ------------------------------------------------------------------------------------


def peak_megabytes() -> float:
    # The high-water mark of this process alone: getrusage also counts the parent that it was forked from.
    status = Path("/proc/self/status")
    if status.is_file():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run_here(contender: str, path: Path) -> dict[str, float]:
    warnings.simplefilter("ignore")
    call, fresh, posterior = CONTENDERS[contender](path)
    wall, cpu, result = np.inf, np.inf, None
    spent = 0.0
    while spent < 3:
        result = None
        votes = fresh()
        wall_start, cpu_start = time.perf_counter(), time.process_time()
        result = call(votes)
        took = time.perf_counter() - wall_start
        wall, cpu = min(wall, took), min(cpu, time.process_time() - cpu_start)
        spent += took
    measured = {"wall": wall, "cpu": cpu, "peak": peak_megabytes()}
    if posterior is not None:
        measured["right"] = float((posterior(result).argmax(axis=1) == np.load(path)["truth"]).mean())
    return measured


def run_apart(contender: str, path: Path) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, __file__, "--child", contender, "--input", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{contender} failed:\n{done.stderr}")
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def prepare_apart(what: str, n_votes: int, path: Path) -> None:
    """Write an input in a process of its own, so that this one stays small."""
    subprocess.run(
        [sys.executable, __file__, "--prepare", what, "--votes", str(n_votes), "--input", str(path)], check=True
    )


# The tables --------------------------------------------------------------------------------------------------------


def print_row(name: str, us: dict[str, float], them: dict[str, float], *, bar: float | None, notes: list[str]) -> None:
    ratio, cpu_ratio = them["wall"] / us["wall"], them["cpu"] / us["cpu"]
    cells = [f"{name:22}"]
    cells += [f"{each['wall']:8.4f} /{each['cpu']:8.4f} {each['peak']:6.0f}" for each in (us, them)]
    cells += [f"{ratio:6.1f}x {cpu_ratio:6.1f}x", f"{'' if bar is None else f'{bar}x':>5}"]
    print("  ".join(cells), "" if bar is None else f"{verdict(ratio >= bar)},", ", ".join(notes), flush=True)


def print_head(peer: str) -> None:
    sides = "  ".join(f"{name + ' wall / cpu s':>18} {'MB':>6}" for name in ("ours", peer))
    print(f"{'':22}  {sides}  {'ratio':>7} {'(cpu)':>7}  {'bar':>5}")


def verdict(met: bool) -> str:
    return "met" if met else "MISSED"


def print_models(n_votes: int, folder: Path) -> None:
    print(f"\nSimulated votes, {CLASSES} classes, about 7.5 an item; {ITERATIONS} iterations, or one pass.")
    print("From votes in memory (crowd-kit: pandas long frame; ours: Votes) to the posterior of every item.")
    print_head("crowd-kit")
    for name, bar in BARS.items():
        size = min(n_votes, 10_000) if name == "glad" else n_votes
        path = folder / f"votes-{size}.npz"
        if not path.exists():
            prepare_apart("models", size, path)
        us, them = run_apart(f"ours {name}", path), run_apart(f"crowd-kit {name}", path)
        notes = [
            f"memory {verdict(us['peak'] < them['peak'])}",
            f"right {us['right']:.4f} and {them['right']:.4f}",
        ]
        print_row(f"{name}, {size:,}", us, them, bar=bar, notes=notes)


def print_parquet(n_votes: int, folder: Path) -> None:
    print(f"\n{n_votes:,} votes from a Parquet file to label distributions.")
    print_head("pandas")
    for kind, bar in (("integers", 4.0), ("text", 1.5)):
        path = folder / f"{kind}.parquet"
        prepare_apart(kind, n_votes, path)
        us, them = run_apart("ours parquet", path), run_apart("pandas parquet", path)
        print_row(f"{kind}", us, them, bar=bar, notes=[f"under 1,500 MB {verdict(us['peak'] < 1_500)}"])


def print_real() -> None:
    folder = os.environ.get("DISSENSUS_DATA")
    path = Path(folder or "") / "imagenet-real" / "raters.npz"
    if folder is None or not path.is_file():
        print("\nImageNet-ReaL: not here (DISSENSUS_DATA); skipped.")
        return
    print("\nImageNet-ReaL, 924,810 answers in memory to yes / no / unsure distributions of 184,962 questions.")
    print_head("pandas")
    print_row("group by", run_apart("ours real", path), run_apart("pandas real", path), bar=5, notes=[])
    us = run_apart("ours real file", path)
    print(f"from the official file, with agreement and its intervals: {us['wall']:.1f} s wall, {us['cpu']:.1f} s cpu")


def print_huge(n_votes: int, folder: Path) -> None:
    path = folder / "huge.parquet"
    prepare_apart("huge", n_votes, path)
    us = run_apart("ours counting", path)
    print(f"\n{n_votes:,} votes counted from a Parquet file of {path.stat().st_size / 2**20:,.0f} MB:")
    print(f"{us['wall']:.2f} s wall, {us['cpu']:.2f} s cpu, {us['peak']:,.0f} MB", end="; ")
    print(f"under 4,000 MB {verdict(us['peak'] < 4_000)}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Votes to labels: ours, the peer's, and the ratio.")
    parser.add_argument("--votes", type=int, default=1_000_000, help="votes for the annotator models")
    parser.add_argument("--parquet-votes", type=int, default=10_000_000, help="votes in the Parquet files")
    parser.add_argument("--huge", action="store_true", help="also count 100 million votes")
    parser.add_argument("--only", choices=["models", "parquet", "real", "huge"], help="one table only")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--prepare", help=argparse.SUPPRESS)
    parser.add_argument("--input", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        print(json.dumps(run_here(asked.child, asked.input)))
    elif asked.prepare == "models":
        write_models_input(asked.votes, asked.input)
    elif asked.prepare == "huge":
        write_huge(asked.votes, asked.input)
    elif asked.prepare:
        write_parquet(asked.votes, asked.input, text=asked.prepare == "text")
    else:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            if asked.only in (None, "models"):
                print_models(asked.votes, folder)
            if asked.only in (None, "parquet"):
                print_parquet(asked.parquet_votes, folder)
            if asked.only in (None, "real"):
                print_real()
            if asked.huge or asked.only == "huge":
                print_huge(100_000_000, folder)


if __name__ == "__main__":
    main()
