"""Training of today against that of the last tag, on this machine, alternating in one run.

    python benchmarks/since_tag.py [--since REF] [--device cuda]

Prints for each net ours, the tag's and the ratio: seconds of CPU by the loop, or of wall clock by the fleet on a GPU,
the least of three. `make release-check` runs it; where there is no tag yet, it says so. Ends with exit code 1 where
something became more than `WORST` times as slow.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 3
WORST = 1.5
NETS = {"linear": 8, "simple-ffn": 8, "lenet": 2, "resnet18": 1}
"""Epochs of each."""


def last_tag() -> str | None:
    """The last tag before this commit."""
    asked = ["git", "describe", "--tags", "--abbrev=0", "HEAD^"]
    said = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    return said.stdout.strip() or None


def work(device: str) -> dict[str, float]:
    """By net, how long a run takes (48 on a GPU) with the code that is imported."""
    import torch
    from training import FIXED, fleet, grid_runs, simulated  # type: ignore[import-not-found]

    from dissensus_train.training.engine import train

    digits, pictures = (simulated(640, 64, shape=shape, classes=11) for shape in ((1, 28, 28), (3, 32, 32)))
    torch.set_num_threads(1)
    taken = {}
    for model, epochs in NETS.items():
        data = pictures if model == "resnet18" else digits
        if model == "resnet18" and device == "cpu":
            data = simulated(64, 16, shape=(3, 32, 32), classes=3)
        settings = replace(FIXED, epochs=epochs if device == "cpu" else 20 * epochs)
        runs = grid_runs(model, settings, 1 if device == "cpu" else 48 if model != "resnet18" else 8)
        if device == "cpu":
            began = time.process_time()
            list(train(runs, data, engine="loop", device="cpu"))
            taken[model] = time.process_time() - began
        else:
            fleet([replace(run, training=replace(settings, epochs=1)) for run in runs], data, device)
            taken[model] = fleet(runs, data, device)
    return taken


def times(packages: Path, device: str) -> dict[str, float]:
    """The same, with the packages of a folder, in a process of its own."""
    path = os.pathsep.join([str(ROOT), *(str(source) for source in sorted(packages.glob("*/src")))])
    asked = [sys.executable, __file__, "--device", device, "--here"]
    done = subprocess.run(
        asked, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False, cwd=packages
    )
    if done.returncode:
        raise SystemExit(f"{packages}: {done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--since", help="a tag or commit in place of the last tag")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        print(json.dumps(work(given.device)))
        return
    since = given.since or last_tag()
    if since is None:
        print("training since the last tag: there is no tag yet, and so nothing to compare with")
        return
    packed = subprocess.run(["git", "archive", since, "packages"], cwd=ROOT, capture_output=True, check=True).stdout
    with tempfile.TemporaryDirectory() as made:
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(made, filter="data")
        sides = {"ours": ROOT / "packages", since: Path(made) / "packages"}
        rounds = [{name: times(folder, given.device) for name, folder in sides.items()} for _ in range(ROUNDS)]
    print(f"| net, {given.device} | ours, s | {since}, s | ratio |\n|---|---|---|---|")
    ratios = {}
    for net in NETS:
        ours, theirs = (min(one[name][net] for one in rounds) for name in sides)
        ratios[net] = ours / theirs
        print(f"| {net} | {ours:.3f} | {theirs:.3f} | {ratios[net]:.2f} |", flush=True)
    slower = [net for net, ratio in ratios.items() if ratio > WORST]
    if slower:
        raise SystemExit(f"more than {WORST} times as slow as {since}: {', '.join(slower)}")


if __name__ == "__main__":
    main()
