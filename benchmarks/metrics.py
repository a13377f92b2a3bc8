"""Metrics: ours, torchmetrics' and the ratio, on the same tensors in one run.

    python benchmarks/metrics.py
    python benchmarks/metrics.py --items 100000

One million items, ten classes, float32. Ours computes each metric on its own, per item, in one thread; torchmetrics,
where it has the metric, gets one thread and then all, and its better time counts. Times are wall times, the best of
several. Extra memory is the peak that a metric allocates above its inputs, its result included.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torchmetrics.functional.classification import multiclass_accuracy, multiclass_calibration_error
from torchmetrics.functional.regression import (
    cosine_similarity,
    jensen_shannon_divergence,
    kl_divergence,
    pearson_corrcoef,
    spearman_corrcoef,
)

from dissensus.evaluation.metrics.registry import METRICS

if TYPE_CHECKING:
    from collections.abc import Callable

    from dissensus.evaluation.metrics.registry import Metric

CLASSES = 10
REPEATS = 7


def panel(items: int, *, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Shares of 20 votes an item, and a model that is unsure in another way."""
    generator = np.random.default_rng(seed)
    human = generator.multinomial(20, generator.dirichlet(np.full(CLASSES, 0.3), items)) / 20
    model = generator.dirichlet(np.full(CLASSES, 1.0), items)
    return torch.from_numpy(human.astype(np.float32)), torch.from_numpy(model.astype(np.float32))


def entropies(distribution: torch.Tensor) -> torch.Tensor:
    value: torch.Tensor = torch.special.entr(distribution).sum(1)
    return value


def peers(human: torch.Tensor, model: torch.Tensor) -> dict[str, Callable[[], Any]]:
    """What torchmetrics has; labels are given to it ready made, entropies it must compute as we do."""
    label = human.argmax(1)
    return {
        "kl": lambda: kl_divergence(human, model, reduction="none"),
        "jsd": lambda: jensen_shannon_divergence(human, model, reduction="none"),
        "cosine": lambda: cosine_similarity(model, human, reduction="none"),
        "accuracy": lambda: multiclass_accuracy(model, label, num_classes=CLASSES, average="micro"),
        "ece": lambda: multiclass_calibration_error(model, label, num_classes=CLASSES, n_bins=10),
        "entropy_pearson": lambda: pearson_corrcoef(entropies(model), entropies(human)),
        "entropy_spearman": lambda: spearman_corrcoef(entropies(model), entropies(human)),
    }


def milliseconds(call: Callable[[], Any]) -> float:
    best = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return 1e3 * best


def milliseconds_of_peer(call: Callable[[], Any]) -> float:
    threads = torch.get_num_threads()
    times = []
    for count in {1, threads}:
        torch.set_num_threads(count)
        times.append(milliseconds(call))
    torch.set_num_threads(threads)
    return min(times)


def peak_bytes(call: Callable[[], Any]) -> int:
    tracemalloc.start()
    call()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def our_call(metric: Metric, human: Any, model: Any) -> Callable[[], Any]:
    needed = {"original": human.argmax(1)} if "original" in metric.needs else {}
    function = metric.per_item or metric.over_items
    assert function is not None
    return lambda: function(human, model, **needed)


def print_table(title: str, chosen: list[Metric], human: torch.Tensor, model: torch.Tensor) -> dict[str, float]:
    inputs = 2 * human.numel() * human.element_size()
    theirs_by_name = peers(human, model)
    print(f"\n{title:<24}{'ours ms':>10}{'torchmetrics ms':>18}{'ratio':>8}{'extra MB':>11}{'of inputs':>11}")
    total, shared_ours, shared_theirs, slowest, most = 0.0, 0.0, 0.0, float("inf"), 0.0
    for metric in chosen:
        call = our_call(metric, human, model)
        ours, extra = milliseconds(call), peak_bytes(call)
        total, most = total + ours, max(most, extra / inputs)
        line = f"{metric.name:<24}{ours:>10.1f}"
        if metric.name in theirs_by_name:
            theirs = milliseconds_of_peer(theirs_by_name[metric.name])
            shared_ours, shared_theirs = shared_ours + ours, shared_theirs + theirs
            slowest = min(slowest, theirs / ours)
            line += f"{theirs:>18.1f}{theirs / ours:>8.1f}"
        else:
            line += f"{'-':>18}{'-':>8}"
        print(f"{line}{extra / 1e6:>11.1f}{extra / inputs:>11.1%}")
    together = shared_theirs / shared_ours
    print(f"{'together':<24}{total:>10.1f}{shared_theirs:>18.1f}{together:>8.1f}{'':>11}{most:>11.1%}")
    return {"total": total, "together": together, "slowest": slowest, "memory": most}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--items", type=int, default=1_000_000)
    items = options.parse_args().items
    human, model = panel(items)
    print(f"{items:,} items x {CLASSES} classes, float32, torch {torch.__version__}, NumPy {np.__version__}")
    per_item = [metric for metric in METRICS.values() if metric.per_item]
    over_items = [metric for metric in METRICS.values() if metric.over_items]
    found = print_table("per item", per_item, human, model)
    print(
        f"all {len(per_item)} in {found['total'] / 1e3:.2f} s (bar 1 s at 1,000,000 items), together "
        f"{found['together']:.1f}x torchmetrics (bar 3x), least {found['slowest']:.1f}x (bar 1x), "
        f"at most {found['memory']:.1%} extra memory (bar 10 %)"
    )
    arrays = [milliseconds(our_call(metric, human.numpy(), model.numpy())) for metric in per_item]
    print(f"the same from NumPy arrays in {sum(arrays) / 1e3:.2f} s")
    print_table("over items", over_items, human, model)


if __name__ == "__main__":
    main()
