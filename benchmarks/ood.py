"""Out-of-distribution detection: scores and measures beside pytorch-ood, scikit-learn and a plain loop, in one run.

    python benchmarks/ood.py            10,000 + 10,000 items, 20,000 training items, 128 features, 10 classes
    python benchmarks/ood.py --quick    a tenth of that, to see that it works

Logits and features are drawn: classes around means of their own, OOD items between them. For every score stand ours,
the peer's and the ratio of their seconds, and how far apart the values are; Mahalanobis distances of pytorch-ood are
half of squared distances under a covariance that is not divided by the number of items, so they are compared by their
ranks (1 - Spearman). Measures are compared with scikit-learn's on the same scores (pytorch-ood's areas under the
precision-recall curve follow the trapezoidal rule, which scikit-learn advises against). The bootstrap, which no peer
has, stands beside a loop over scikit-learn's functions on the same number of resamples. pytorch-ood is left out, and
that is said, where it is not installed. Seconds are those of the processor, on one thread, the best of three.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from dissensus_train import ood

if TYPE_CHECKING:
    from collections.abc import Callable

RESAMPLES, K = 100, 50


def drawn(items: int, training: int) -> dict[str, Any]:
    """Logits and features of in-distribution, OOD and training items."""
    rng = np.random.default_rng(0)
    means = rng.normal(0, 1, (10, 128))

    def some(n: int, pull: float) -> tuple[Any, Any, Any]:
        label = rng.integers(0, 10, n)
        features = pull * means[label] + rng.normal(0, 1, (n, 128))
        return torch.from_numpy(features @ means.T / 20), torch.from_numpy(features), torch.from_numpy(label)

    return {"inside": some(items, 1.0), "outside": some(items, 0.4), "training": some(training, 1.0)}


def timed(work: Callable[[], Any], times: int = 3) -> tuple[Any, float]:
    """What the work gives, and the fewest seconds of processor that it took."""
    best, found = np.inf, None
    for _ in range(times):
        began = time.process_time()
        found = work()
        best = min(best, time.process_time() - began)
    return found, best


def line(name: str, ours: float, theirs: float, peer: str, said: str) -> None:
    print(f"{name:<24} ours {ours:9.4f} s   {peer} {theirs:9.4f} s   ratio {theirs / ours:7.1f}   {said}")


def scores(data: dict[str, Any]) -> None:
    try:
        from pytorch_ood.detector import (  # type: ignore[import-not-found, unused-ignore]
            KNN,
            EnergyBased,
            Entropy,
            Mahalanobis,
            MaxLogit,
            MaxSoftmax,
        )
    except ImportError as error:
        print(f"pytorch-ood is not here ({error}); scores are not compared with it")
        return
    logits = torch.cat([data["inside"][0], data["outside"][0]])
    features = torch.cat([data["inside"][1], data["outside"][1]])
    _, trained, labels = data["training"]

    def peer_mahalanobis() -> Any:
        return Mahalanobis(None).fit_features(trained.float(), labels).predict_features(features.float())

    def peer_knn() -> Any:
        return KNN(None, k=K).fit_features(trained, labels).predict_features(features)

    for name, ours, theirs, alike in (
        ("msp", lambda: ood.msp(logits), lambda: MaxSoftmax.score(logits), lambda a, b: np.abs(a - 1 - b).max()),
        ("max-logit", lambda: ood.max_logit(logits), lambda: MaxLogit.score(logits), lambda a, b: np.abs(a - b).max()),
        ("entropy", lambda: ood.entropy(logits), lambda: Entropy.score(logits), lambda a, b: np.abs(a - b).max()),
        ("energy", lambda: ood.energy(logits), lambda: EnergyBased.score(logits), lambda a, b: np.abs(a - b).max()),
        (
            "mahalanobis",
            lambda: ood.mahalanobis(features, trained, labels),
            peer_mahalanobis,
            lambda a, b: 1 - spearmanr(a, b).statistic,
        ),
        ("knn", lambda: ood.knn(features, trained, k=K), peer_knn, lambda a, b: np.abs(a - b).max()),
    ):
        (mine, fast), (peers, slow) = timed(ours), timed(theirs)
        line(name, fast, slow, "pytorch-ood", f"apart by {alike(mine.numpy(), peers.numpy()):.1e}")


def peer_measures(inside: Any, outside: Any) -> dict[str, float]:
    """All five by scikit-learn."""
    truth = np.repeat([0, 1], [len(inside), len(outside)])
    values = np.concatenate([inside, outside])

    def fpr95(positive: Any, score: Any) -> float:
        alarms, hits, _ = roc_curve(positive, score, drop_intermediate=False)
        return float(alarms[(20 * np.rint(hits * positive.sum()) >= 19 * positive.sum()).argmax()])

    return {
        "auroc": roc_auc_score(truth, values),
        "aupr-ood": average_precision_score(truth, values),
        "aupr-in-distribution": average_precision_score(1 - truth, -values),
        "fpr95-ood-positive": fpr95(truth, values),
        "fpr95-in-distribution-positive": fpr95(1 - truth, -values),
    }


def measures(data: dict[str, Any]) -> bool:
    inside, outside = (ood.energy(data[name][0]).numpy() for name in ("inside", "outside"))
    ours = {
        "auroc": ood.auroc,
        "aupr-ood": ood.aupr_ood,
        "aupr-in-distribution": ood.aupr_in_distribution,
        "fpr95-ood-positive": ood.fpr95_ood_positive,
        "fpr95-in-distribution-positive": ood.fpr95_in_distribution_positive,
    }
    mine, fast = timed(lambda: {name: of(inside, outside) for name, of in ours.items()})
    theirs, slow = timed(lambda: peer_measures(inside, outside))
    apart = max(abs(mine[name] - theirs[name]) for name in ours)
    line("five measures", fast, slow, "scikit-learn", f"apart by {apart:.1e}")
    less, others = inside[:2000], outside[:2000]
    rng = np.random.default_rng(0)

    def loop() -> Any:
        return [
            peer_measures(
                less[rng.integers(0, len(less), len(less))], others[rng.integers(0, len(others), len(others))]
            )
            for _ in range(RESAMPLES)
        ]

    found, quick = timed(lambda: ood.resampled_measures(less[None], others[None], resamples=RESAMPLES, seed=0))
    resampled, slow = timed(loop, times=1)
    spread = [found["auroc"][1:, 0].std(), np.std([each["auroc"] for each in resampled])]
    line(
        f"{RESAMPLES} resamples of 2,000 + 2,000",
        quick,
        slow,
        "scikit-learn",
        f"deviation of AUROC {spread[0]:.5f} and {spread[1]:.5f}",
    )
    return bool(apart < 1e-12)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    part = 10 if parser.parse_args().quick else 1
    torch.set_num_threads(1)
    data = drawn(10_000 // part, 20_000 // part)
    scores(data)
    sys.exit(0 if measures(data) else 1)


if __name__ == "__main__":
    main()
