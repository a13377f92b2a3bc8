"""Are the intervals and the test of a comparison honest? Simulations with known truth.

    python benchmarks/honesty_comparison.py [--trials 2000] [--small]

Prints, for 1, 2, 3, 6 and 10 seeds:
- how often the 95 % interval of a score holds the truth, by the share of its variance that is due to seeds;
- how often two systems that are equal in the population, and differ by item, are called different (p < 0.05), by the
  test in use and by Wilcoxon's test over seeds;
- how often an interval leaves the range of its metric.
Ends with exit code 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

from dissensus.evaluation.comparison.differences import compare, wilcoxon
from dissensus.evaluation.comparison.intervals import estimate_over_seeds
from dissensus.evaluation.comparison.resampling import resampled_means

SEEDS = (1, 2, 3, 6, 10)
SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.95)
"""Of the variance of the mean, how much is due to seeds."""

ITEMS, RESAMPLES = 200, 300


def scores(rng: np.random.Generator, *, seeds: int, share: float, cells: float, heavy: bool) -> Any:
    """(seeds, items) scores of true mean 0; the variance of their mean over both is 1.

    Args:
        rng: of the draws.
        seeds: how many.
        share: of the variance, due to seeds.
        cells: of the rest, due to items within seeds.
        heavy: items with a long right tail (lognormal), as KL has, instead of normal ones.
    """

    def items(*shape: int) -> Any:
        if not heavy:
            return rng.normal(size=shape)
        drawn = rng.lognormal(size=shape)
        return (drawn - np.exp(0.5)) / np.sqrt((np.e - 1) * np.e)

    return (
        np.sqrt(share * seeds) * rng.normal(size=(seeds, 1))
        + np.sqrt((1 - share) * (1 - cells) * ITEMS) * items(1, ITEMS)
        + np.sqrt((1 - share) * cells * ITEMS * seeds) * items(seeds, ITEMS)
    )


def coverage(seeds: int, share: float, cells: float, *, heavy: bool, trials: int, seed: int) -> float:
    """The share of trials whose 95 % interval holds the truth."""
    rng = np.random.default_rng([seed, seeds, int(100 * share), int(100 * cells), heavy])
    held = 0
    for _ in range(trials):
        drawn = scores(rng, seeds=seeds, share=share, cells=cells, heavy=heavy)
        found = estimate_over_seeds(resampled_means(drawn, resamples=RESAMPLES, seed=rng), items=ITEMS)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 0 <= found.high
    return held / trials


def false_findings(seeds: int, share: float, *, trials: int, seed: int) -> tuple[float, float]:
    """How often p < 0.05 for two systems that are equal in the population: the test in use, and Wilcoxon's."""
    rng = np.random.default_rng([seed, seeds, int(100 * share)])
    found = over_seeds = 0
    for _ in range(trials):
        gap = scores(rng, seeds=seeds, share=share, cells=0.02, heavy=False)
        row = compare({"a": np.zeros_like(gap), "b": gap}, "a", resamples=RESAMPLES, seed=rng).get("b")
        assert row.p is not None
        found += row.p < 0.05
        over_seeds += wilcoxon(gap.mean(axis=1)) < 0.05
    return found / trials, over_seeds / trials


def outside(seeds: int, *, trials: int, seed: int) -> float:
    """How often the interval of an accuracy near 1 on few items leaves [0, 1] or misses its own value."""
    rng = np.random.default_rng([seed, seeds])
    left = 0
    for _ in range(trials):
        right = (rng.random((seeds, 20)) < 0.95 - 0.1 * rng.random((seeds, 1))).astype(np.float64)
        found = estimate_over_seeds(resampled_means(right, resamples=100, seed=rng), items=20, low=0.0, high=1.0)
        assert found.low is not None
        assert found.high is not None
        left += not 0 <= found.low <= found.value <= found.high <= 1
    return left / trials


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--small", action="store_true", help="a tenth of the trials, bars widened by four sigma")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    trials = options.trials // 10 if options.small else options.trials
    slack = 4 * np.sqrt(0.05 * 0.95 / trials)
    missed = []
    print(f"coverage of 95 % intervals, {trials:,} trials of {ITEMS} items, by the seeds' share of the variance")
    print(f"{'seeds':>5} {'items':>9} {'cells':>6} " + " ".join(f"{share:>6.0%}" for share in SHARES))
    for seeds in SEEDS:
        for heavy, cells in ((False, 0.0), (False, 0.5), (False, 1.0), (True, 0.1)):
            shares = SHARES if seeds > 1 else SHARES[:1]
            found = [coverage(seeds, share, cells, heavy=heavy, trials=trials, seed=options.seed) for share in shares]
            name = "long tail" if heavy else "normal"
            print(f"{seeds:>5} {name:>9} {cells:>6.0%} " + " ".join(f"{each:>6.3f}" for each in found), flush=True)
            low, high = 0.93, 0.97 if seeds in (6, 10) else 1.0
            missed += [(seeds, name, each) for each in found if not low - slack <= each <= high + slack]
    print("\nfalse findings at 5 % of systems that are equal in the population and differ by item")
    print(f"{'seeds':>5} {'share':>6} {'here':>6} {'Wilcoxon over seeds':>20}")
    for seeds in SEEDS[1:]:
        for share in (0.0, 0.1, 0.5):
            ours, theirs = false_findings(seeds, share, trials=trials, seed=options.seed)
            print(f"{seeds:>5} {share:>6.0%} {ours:>6.3f} {theirs:>20.3f}", flush=True)
            missed += [(seeds, "false findings", ours)] if ours > 0.06 + slack else []
    print("\nintervals that leave the range of the metric or miss their own value")
    for seeds in SEEDS:
        left = outside(seeds, trials=trials, seed=options.seed)
        print(f"{seeds:>5} {left:>6.3f}")
        missed += [(seeds, "range", left)] if left else []
    print(f"\n{len(missed)} bars missed" + "".join(f"\n  {each}" for each in missed))
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
